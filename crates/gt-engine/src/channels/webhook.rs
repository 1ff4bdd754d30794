//! Web hooks: each answer is posted as JSON, signed, under a key that stays the same however often it is tried.

use std::time::Duration;

use gt_core::defect;
use gt_core::text::one_line;
use gt_core::time;
use gt_store::Parcel;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::Sha256;
use ureq::http::StatusCode;

use super::spec::Spec;
use super::{Channel, Retry, Undelivered};
use crate::config::{Secret, join, mask_path};
use crate::web;

/// How long one try may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Refusals that may pass; any other is for ever.
const PASSING: [StatusCode; 4] =
    [StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];

/// Posts a body to an address. In use it is HTTP.
pub trait Post: Send {
    fn post(&self, url: &str, headers: &[(&str, String)], body: &str) -> Result<Posted, NotPosted>;
}

/// What a receiver answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Posted {
    pub status: u16,
    /// When it wants to be asked again, in its own words.
    pub retry_after: Option<String>,
}

/// Why no receiver answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPosted {
    BadAddress,
    Unreachable(String),
}

/// By HTTP.
struct Http(ureq::Agent);

impl Post for Http {
    fn post(&self, url: &str, headers: &[(&str, String)], body: &str) -> Result<Posted, NotPosted> {
        let request = headers.iter().fold(self.0.post(url), |request, (name, value)| request.header(*name, value));
        match request.send(body) {
            Ok(answer) => Ok(Posted {
                status: answer.status().as_u16(),
                retry_after: answer.headers().get("retry-after").and_then(|v| v.to_str().ok()).map(str::to_owned),
            }),
            // It would show the whole address.
            Err(ureq::Error::BadUri(_)) => Err(NotPosted::BadAddress),
            Err(error) => Err(NotPosted::Unreachable(one_line(&error.to_string()))),
        }
    }
}

pub(super) struct Webhook {
    name: String,
    url: Secret,
    secret: Option<Secret>,
    /// Sessions that may use it; none: all.
    allow: Vec<String>,
    caller: Box<dyn Post>,
}

impl Webhook {
    pub(super) fn new(spec: &Spec, url: &Secret, secret: Option<&Secret>) -> Webhook {
        Webhook::by(Box::new(Http(web::caller(TIMEOUT))), spec, url, secret)
    }

    /// One that posts in another way.
    pub(super) fn by(caller: Box<dyn Post>, spec: &Spec, url: &Secret, secret: Option<&Secret>) -> Webhook {
        Webhook {
            name: spec.name.clone(),
            url: url.clone(),
            secret: secret.cloned(),
            allow: spec.allow.clone(),
            caller,
        }
    }

    fn post(&self, parcel: &Parcel, body: &str) -> Result<(), Undelivered> {
        let mut headers =
            vec![("content-type", "application/json".to_owned()), ("idempotency-key", parcel.key.clone())];
        if let Some(secret) = &self.secret {
            headers.push(("x-gasworks-signature", signature(secret, Timestamp::now().as_second(), body)));
        }
        let who = mask_path(self.url.reveal());
        match self.caller.post(self.url.reveal(), &headers, body) {
            Ok(answer) => heed(&who, answer.status, answer.retry_after.as_deref()),
            Err(NotPosted::BadAddress) => Err(Undelivered::for_ever(format!("{who} is no address"))),
            Err(NotPosted::Unreachable(why)) => Err(Undelivered::for_now(format!("{who} could not be reached: {why}"))),
        }
    }
}

impl Channel for Webhook {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver(&mut self, parcel: &Parcel, _arrived: &mut dyn FnMut(usize)) -> Result<(), Undelivered> {
        if let Some(why) = refusal(&self.name, &self.allow, &parcel.session) {
            return Err(Undelivered::for_ever(why));
        }
        self.post(parcel, &letter(parcel).to_string())
    }
}

/// Why a session may not use a web hook, if it may not.
pub(super) fn refusal(name: &str, allow: &[String], session: &str) -> Option<String> {
    let is_allowed = allow.is_empty() || allow.iter().any(|pattern| fits(pattern, session));
    (!is_allowed).then(|| format!("`{}` does not name the session {session}", join(&["channels", name, "allow"])))
}

fn letter(parcel: &Parcel) -> Value {
    json!({
        "key": parcel.key,
        "to": parcel.to.recipient,
        "session": parcel.session,
        "run": parcel.run,
        "outcome": parcel.outcome,
        "text": parcel.text,
        "at": time::format(parcel.made_at),
    })
}

/// What an answer means.
fn heed(who: &str, status: u16, retry_after: Option<&str>) -> Result<(), Undelivered> {
    let error = format!("{who} answered with status {status}");
    let is_passing = PASSING.map(|passing| passing.as_u16()).contains(&status) && !defect!("passing-refusal-is-final");
    if (200..300).contains(&status) {
        Ok(())
    } else if (400..500).contains(&status) && !is_passing {
        Err(Undelivered::for_ever(error))
    } else {
        let least = retry_after.and_then(|text| span(text, Timestamp::now())).unwrap_or_default();
        Err(Undelivered { error, retry: Retry::After(least) })
    }
}

/// A span in seconds, or until a time of day.
fn span(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

/// Shows that the secret was known to whoever wrote the body, and when: `t=UNIX,v1=HEX`.
fn signature(secret: &Secret, at: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes()).expect("a key may have any length");
    mac.update(format!("{at}.{body}").as_bytes());
    let hex = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    format!("t={at},v1={hex}")
}

/// Whether a name fits a pattern, in which `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(head) else { return false };
    let mut ends = (0..=name.len()).filter(|at| name.is_char_boundary(*at));
    rest.is_empty() || ends.any(|at| fits(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_others_compute() {
        let signed = signature(&Secret::new("Jefe"), 0, "x");
        assert_eq!(signed, "t=0,v1=6d15f8f565f81ca17757f8569ccb192a1f1e1b2695979a6115221439a5eb67cb");
    }

    #[test]
    fn patterns_of_sessions() {
        for (pattern, name, is_so) in [
            ("dm:anna", "dm:anna", true),
            ("dm:anna", "dm:anna2", false),
            ("dm:*", "dm:anna", true),
            ("dm:*", "group:dm:", false),
            ("*", "", true),
            ("*:ops", "group:ops", true),
            ("g*:o*s", "group:a:ops", true),
            ("g*:o*s", "group:a:op", false),
        ] {
            assert_eq!(fits(pattern, name), is_so, "{pattern} {name}");
        }
    }

    #[test]
    fn an_answer_says_whether_it_is_worth_another_try() {
        let retry = |status: u16, after: Option<&str>| heed("x", status, after).err().map(|failure| failure.retry);
        assert_eq!([200, 204].map(|status| retry(status, None)), [None, None]);
        assert_eq!([400, 401, 403, 404, 410, 422].map(|status| retry(status, None)), [Some(Retry::Never); 6]);
        assert_eq!(
            [302, 408, 409, 429, 500, 503].map(|status| retry(status, None)),
            [Some(Retry::After(Duration::ZERO)); 6]
        );
        assert_eq!(retry(429, Some("7")), Some(Retry::After(Duration::from_secs(7))));
    }

    #[test]
    fn a_time_to_wait_for_may_be_a_date() {
        let now: Timestamp = "2026-11-16T17:00:00Z".parse().expect("a time");
        assert_eq!(span("Mon, 16 Nov 2026 17:00:30 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(span("Mon, 16 Nov 2026 16:00:00 GMT", now), Some(Duration::ZERO), "it is over");
        assert_eq!(span("soon", now), None);
    }
}
