//! Asking somebody by HTTP: who is named is asked, nobody else, and not for ever.

use std::time::Duration;

/// A caller that follows no redirection, which would lead to somebody who was not named, and leaves it to the caller what a
/// status means.
pub(crate) fn caller(timeout: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent("gasworks")
        .build()
        .into()
}
