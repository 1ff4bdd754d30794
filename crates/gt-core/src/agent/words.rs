//! What the words of an error mean. Vendors tell the same few things in many ways.
//!
//! Agents write prose about logins, quotas and status codes too, so a bare word decides nothing: a phrase counts that says
//! what has happened ("quota exceeded"), an identifier of an API, and a number that is called a status ("HTTP 429").

use jiff::{SignedDuration, Timestamp};

use super::{Failure, FailureClass, message};

/// Phrases for each class; the first that is found decides.
const PHRASES: [(FailureClass, &[&str]); 6] = [
    (
        FailureClass::Billing,
        &["billing_error", "insufficient_quota", "credit balance is too low", "payment required", "out of credits"],
    ),
    (
        FailureClass::Auth,
        &[
            "authentication_error",
            "authentication_failed",
            "authentication failed",
            "authentication required",
            "authentication is required",
            "invalid authentication",
            "failed to authenticate",
            "401 unauthorized",
            "error: unauthorized",
            "invalid api key",
            "invalid_api_key",
            "invalid x-api-key",
            "incorrect api key",
            "api key not valid",
            "you are not logged in",
            "please log in",
            "please run /login",
            "oauth token has expired",
            "oauth token expired",
            "oauth token revoked",
            "access token could not be refreshed",
            "permission_error",
        ],
    ),
    (
        FailureClass::RateLimit,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "ratelimiterror",
            "rate limit reached",
            "rate limit exceeded",
            "rate limit hit",
            "exceed your account's rate limit",
            "exceeded your rate limit",
            "usage_limit_reached",
            "usage limit reached",
            "session limit reached",
            "weekly limit reached",
            "hour limit reached",
            "hit your limit",
            "hit your usage limit",
            "hit your session limit",
            "hit your weekly limit",
            "quota_exceeded",
            "quota exceeded",
            "exceeded your quota",
            "exceeded your current quota",
            "exhausted your daily quota",
            "exhausted your capacity",
            "resource_exhausted",
            "request rejected (429)",
            "too many requests",
        ],
    ),
    // Whoever is over a quota is told to look at the bill too.
    (FailureClass::Billing, &["billing_hard_limit_reached", "billing hard limit", "billing to be enabled"]),
    (
        FailureClass::Overloaded,
        &[
            "overloaded_error",
            "error: overloaded",
            "is overloaded",
            "currently overloaded",
            "529 overloaded",
            "service unavailable",
            "model is at capacity",
            "currently at capacity",
        ],
    ),
    (
        FailureClass::Context,
        &[
            "context_length_exceeded",
            "exceeds the context window",
            "the model's context window",
            "context window exceeded",
            "maximum context length",
            "prompt is too long",
            "input is too long",
        ],
    ),
];

/// What agents say when they are to go on with a conversation that they do not have any more.
const LOST_CONVERSATION: [&str; 4] =
    ["no conversation found", "no rollout found for", "error resuming session", "session not found"];

/// What a number is called that is a status.
const STATUS_NAMES: [&str; 4] = ["status", "http", "error", "code"];

/// No limit lasts longer than this.
const LONGEST_SECS: f64 = 366.0 * 86_400.0;

/// The class of an error by its words.
pub(super) fn class(text: &str) -> FailureClass {
    let lower = text.to_lowercase();
    let is_said = |phrases: &&[&str]| phrases.iter().any(|phrase| has_phrase(&lower, phrase));
    let said = PHRASES.iter().find(|(_, phrases)| is_said(phrases)).map(|(class, _)| *class);
    said.or_else(|| named_status(text)).unwrap_or(FailureClass::Other)
}

/// Whether an agent says that it does not have the conversation with which it was to go on.
pub fn is_lost_conversation(text: &str) -> bool {
    let lower = text.to_lowercase();
    LOST_CONVERSATION.iter().any(|phrase| has_phrase(&lower, phrase))
}

/// The class of an error by the one word that its vendor has for it.
pub(super) fn class_of_code(code: &str) -> FailureClass {
    match code {
        "rate_limit" => FailureClass::RateLimit,
        "overloaded" | "server_error" => FailureClass::Overloaded,
        _ => class(code),
    }
}

/// Whether a phrase stands in a text, and is not a part of other words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(is_inner) && !text[at + phrase.len()..].starts_with(is_inner))
}

/// The first known status among the numbers that are called one.
fn named_status(text: &str) -> Option<FailureClass> {
    let lower = text.to_ascii_lowercase();
    let named = STATUS_NAMES.iter().flat_map(|name| lower.match_indices(name));
    named.filter_map(|(at, name)| leading_status(&text[at + name.len()..])).find_map(class_of_status)
}

/// The status with which a text begins, unless it only describes what follows: ` 401: no`, not ` 401 responses`.
fn leading_status(text: &str) -> Option<u64> {
    let (number, rest) = text.trim_start_matches([' ', ':', '=', '"']).split_at_checked(3)?;
    let describes = rest.trim_start().starts_with(char::is_lowercase);
    if describes || rest.starts_with(char::is_alphanumeric) { None } else { number.parse().ok() }
}

/// The class of an HTTP status.
pub(super) fn class_of_status(status: u64) -> Option<FailureClass> {
    match status {
        401 | 403 => Some(FailureClass::Auth),
        402 => Some(FailureClass::Billing),
        413 => Some(FailureClass::Context),
        429 => Some(FailureClass::RateLimit),
        500..=599 => Some(FailureClass::Overloaded),
        _ => None,
    }
}

/// A failure by its words, with the time that they name.
pub(super) fn failure(text: &str, at: Timestamp) -> Failure {
    let text = message(text);
    Failure { class: class(&text), until: until(&text, at), message: text }
}

/// The time that an error names: seconds since 1970, `in 3 days 2 hours 5 minutes`, or `resets 8:40am (UTC)`.
pub(super) fn until(text: &str, at: Timestamp) -> Option<Timestamp> {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '.')
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
        .collect();
    let epoch = words.iter().filter(|word| word.len() == 10).find_map(|word| word.parse::<i64>().ok());
    if let Some(epoch) = epoch {
        return Timestamp::from_second(epoch).ok();
    }
    let after = |mark: &str| words.iter().position(|word| word.eq_ignore_ascii_case(mark)).map(|at| &words[at + 1..]);
    if let Some(until) = after("resets").and_then(|words| time_of_day(words, at)) {
        return Some(until);
    }
    at.checked_add(span(after("in")?)?).ok()
}

/// The next time at which a clock in UTC shows this: `8 40am UTC`, `3pm UTC`. Other zones we know nothing of.
fn time_of_day(words: &[&str], at: Timestamp) -> Option<Timestamp> {
    const DAY: i64 = 86_400;
    let zone = words.iter().position(|word| *word == "UTC")?;
    let (hour, minute, half) = match &words[..zone] {
        [hour, rest] => (*hour, rest.get(..2)?, rest.get(2..)?),
        [one] => (one.trim_end_matches(char::is_alphabetic), "0", one.trim_start_matches(char::is_numeric)),
        _ => return None,
    };
    let bounded = |word: &str, most: i64| word.parse().ok().filter(|n| (0..=most).contains(n));
    let (hour, minute) = (bounded(hour, 24)?, bounded(minute, 59)?);
    let hour = match half.to_lowercase().as_str() {
        "am" => hour % 12,
        "pm" => hour % 12 + 12,
        _ => hour,
    };
    let of_day = (hour * 3600 + minute * 60).rem_euclid(DAY);
    let midnight = at.as_second() - at.as_second().rem_euclid(DAY);
    let today = midnight + of_day;
    Timestamp::from_second(if today > at.as_second() { today } else { today + DAY }).ok()
}

/// The time that the first words name; `None` when they name none.
fn span(words: &[&str]) -> Option<SignedDuration> {
    let mut words = words.iter();
    let mut seconds = 0.0_f64;
    while let Some(word) = words.next() {
        let n_digits = word.chars().take_while(|c| c.is_ascii_digit() || *c == '.').count();
        let (digits, unit) = word.split_at(n_digits);
        let Ok(n) = digits.parse::<f64>() else { break };
        let unit = if unit.is_empty() { words.next().copied().unwrap_or_default() } else { unit };
        let unit = match unit.to_lowercase().as_str() {
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        seconds += n * unit;
    }
    (seconds > 0.0).then(|| SignedDuration::from_secs(seconds.ceil().min(LONGEST_SECS) as i64))
}
