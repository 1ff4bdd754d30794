//! Texts that may begin with a dash. One word with two of them is an option that somebody has misspelt, and is not sent to
//! anybody, unless it comes after `--`.

/// Reads such a text.
pub(crate) fn text(given: &str) -> Result<String, String> {
    let is_meant = std::env::args_os().any(|word| word == "--");
    if is_meant { Ok(given.to_owned()) } else { plain(given) }
}

fn plain(given: &str) -> Result<String, String> {
    let is_name =
        |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains(char::is_whitespace);
    match given.strip_prefix("--") {
        Some(name) if is_name(name) => {
            Err("it looks like an option; if it is meant as a text, put a space before it".to_owned())
        }
        _ => Ok(given.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn only_what_looks_like_an_option_is_none() {
        for fine in ["", "-", "--", "---", "- buy milk", "--flag is unknown, why?", "-x", "--5", "a--b", " --waitt"] {
            assert_eq!(plain(fine).as_deref(), Ok(fine));
        }
        for option in ["--waitt", "--wait=5", "--no-merge"] {
            assert!(plain(option).is_err(), "{option}");
        }
    }
}
