//! What the config says about a channel, complete and with its secrets at hand.

use crate::config::{Config, Secret, join};

const TELEGRAM_API: &str = "https://api.telegram.org";

/// A channel as it is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Who may use it.
    pub(super) allow: Vec<String>,
    pub(super) agent: Option<String>,
    pub(super) lane: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Webhook { url: Secret, secret: Option<Secret> },
    Telegram { url: Secret, token: Secret },
}

impl Spec {
    /// The error says what is missing, and what to type.
    pub(super) fn read(config: &Config, name: &str) -> Result<Spec, String> {
        let key = |leaf: &str| join(&["channels", name, leaf]);
        let missing = |leaf: &str, example: &str| {
            let key = key(leaf);
            format!("`{key}` is not set; try: gt config set {key} {example}")
        };
        let url = config.secret(&key("url"));
        let kind = match config.text(&key("kind")).as_deref() {
            Some("telegram") => {
                let token = secret(config, &key("token"))?.ok_or_else(|| missing("token", "env:TELEGRAM_TOKEN"))?;
                Kind::Telegram { url: url.unwrap_or_else(|| Secret::new(TELEGRAM_API)), token }
            }
            Some(_) => {
                let url = url.ok_or_else(|| missing("url", "https://example.org/hook"))?;
                Kind::Webhook { url, secret: secret(config, &key("secret"))? }
            }
            None => return Err(missing("kind", "telegram")),
        };
        Ok(Spec {
            name: name.to_owned(),
            kind,
            allow: config.texts(&key("allow")),
            agent: config.text(&key("agent")),
            lane: config.text(&key("lane")),
        })
    }

    /// What its owner should know though it runs.
    pub(super) fn warning(&self) -> Option<String> {
        let key = join(&["channels", &self.name, "allow"]);
        let is_closed = matches!(self.kind, Kind::Telegram { .. }) && self.allow.is_empty();
        is_closed.then(|| {
            format!(
                "the channel {}: `{key}` is empty, so nobody may write; try: gt config set {key} '[\"@you\"]'",
                self.name
            )
        })
    }
}

/// A secret of the config, or of the environment where the config says so.
fn secret(config: &Config, key: &str) -> Result<Option<Secret>, String> {
    let Some(secret) = config.secret(key) else { return Ok(None) };
    let Some(variable) = secret.variable() else { return Ok(Some(secret)) };
    match std::env::var(variable) {
        Ok(value) if !value.trim().is_empty() => Ok(Some(Secret::new(value.trim()))),
        _ => Err(format!(
            "`{key}` is read from the environment, which has no {variable}: `export {variable}=…`, then `gt daemon restart`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Spec, String> {
        Spec::read(&Config::parse(text).expect("it is a config"), "x")
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_type() {
        for (text, flaw) in [
            ("channels.x.allow = []", "`channels.x.kind` is not set; try: gt config set channels.x.kind telegram"),
            (
                "channels.x.kind = \"webhook\"",
                "`channels.x.url` is not set; try: gt config set channels.x.url https://example.org/hook",
            ),
            (
                "channels.x.kind = \"telegram\"",
                "`channels.x.token` is not set; try: gt config set channels.x.token env:TELEGRAM_TOKEN",
            ),
            (
                "channels.x.kind = \"telegram\"\nchannels.x.token = \"env:GT_NO_SUCH_TOKEN\"",
                "`channels.x.token` is read from the environment, which has no GT_NO_SUCH_TOKEN: \
                 `export GT_NO_SUCH_TOKEN=…`, then `gt daemon restart`",
            ),
        ] {
            assert_eq!(read(text).expect_err(text), flaw);
        }
    }

    #[test]
    fn a_bot_that_nobody_may_write_to_runs_and_says_so() {
        let spec = read("channels.x.kind = \"telegram\"\nchannels.x.token = \"1:a\"").expect("it is complete");
        assert_eq!(spec.kind, Kind::Telegram { url: Secret::new(TELEGRAM_API), token: Secret::new("1:a") });
        assert!(spec.warning().is_some_and(|words| words.contains("nobody may write")));
    }
}
