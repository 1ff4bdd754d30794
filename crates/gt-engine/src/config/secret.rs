//! Text that may hold a password or token: shown masked unless revealed on purpose.
//!
//! Owns the masking rules (SPEC U3: no secrets in logs or listings). It does not
//! judge whether a URL is usable; that is `units`.

use std::fmt;

const MASK: &str = "***";

/// A text that `Display` and `Debug` never print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The variable of the environment that holds it, where it says so: `env:NAME`.
    pub fn variable(&self) -> Option<&str> {
        self.0.strip_prefix("env:").filter(|name| !name.is_empty())
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Leaves of an address of the web what is no secret: who is asked.
pub fn mask_path(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    let path = if rest[end..].len() > 1 { format!("/{MASK}") } else { String::new() };
    gt_core::text::one_line(&format!("{scheme}://{host}{path}"))
}

/// Masks what follows the name of a secret in a line of a config that cannot be read.
pub(super) fn mask_line(line: &str) -> String {
    let names = ["token", "secret", "url", "env"];
    let is_name = |at: usize, name: &str| {
        let rest = line[at + name.len()..].trim_start_matches(['"', '\'', ' ', '\t']);
        // Of the others, only the password is one.
        let is_secret = name != "url" || rest.contains("http");
        (is_secret && rest.starts_with(['=', '.'])).then(|| line.len() - rest.len() + 1)
    };
    let ends = names.iter().flat_map(|name| line.match_indices(name).filter_map(|(at, _)| is_name(at, name)));
    match ends.min() {
        Some(end) if !line[end..].trim().is_empty() => format!("{} {MASK}", &line[..end]),
        _ => line.to_owned(),
    }
}

/// Masks the password of every URL in a text, in the authority and in `password=`.
pub(super) fn mask_urls(text: &str) -> String {
    mask_parameters(&mask_authorities(text))
}

fn mask_authorities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        out.push_str(before);
        let (url, tail) = after.split_at(length(after, char::is_whitespace));
        // The last `@`, not the first after the host: an unescaped `/` or `@` in a
        // password must not leave half of it readable.
        match url.rsplit_once('@') {
            Some((user, host)) => {
                let name = user.split_once(':').map_or(user, |(name, _)| name);
                out.push_str(name);
                if name.len() < user.len() {
                    out.push(':');
                    out.push_str(MASK);
                }
                out.push('@');
                out.push_str(host);
            }
            None => out.push_str(url),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn mask_parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("password=") {
        let (before, after) = rest.split_at(at + "password=".len());
        out.push_str(before);
        out.push_str(MASK);
        rest = &after[length(after, |c| c == '&' || c.is_whitespace())..];
    }
    out.push_str(rest);
    out
}

/// How far it is to the end of a URL or a parameter. Quotes belong to that end, not to what is before it: a password
/// may have some.
fn length(text: &str, is_end: impl Fn(char) -> bool) -> usize {
    let end = text.find(is_end).unwrap_or(text.len());
    text[..end].trim_end_matches(['"', '\'', '`']).len()
}
