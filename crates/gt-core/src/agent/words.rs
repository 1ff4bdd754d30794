//! What the words of an error mean. Vendors tell the same few things in many ways.

use jiff::{SignedDuration, Timestamp};

use super::{Failure, FailureClass, message};

/// Words for each class; the first that is found decides.
const WORDS: [(FailureClass, &[&str]); 6] = [
    (
        FailureClass::Billing,
        &["billing_error", "insufficient_quota", "credit balance", "payment required", "out of credits", "402"],
    ),
    (
        FailureClass::Auth,
        &[
            "authentication",
            "unauthorized",
            "unauthenticated",
            "invalid api key",
            "invalid_api_key",
            "api key not valid",
            "not logged in",
            "please log in",
            "please run /login",
            "oauth token",
            "permission_error",
            "auth",
            "401",
        ],
    ),
    (
        FailureClass::RateLimit,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "usage limit",
            "usage_limit",
            "hit your limit",
            "limit reached",
            "quota",
            "too many requests",
            "resource_exhausted",
            "429",
        ],
    ),
    // Whoever is over a quota is told to look at the bill too.
    (FailureClass::Billing, &["billing"]),
    (FailureClass::Overloaded, &["overloaded", "server_error", "service unavailable", "at capacity", "529", "503"]),
    (
        FailureClass::Context,
        &[
            "context window",
            "context_length",
            "context length",
            "prompt is too long",
            "maximum context",
            "input is too long",
        ],
    ),
];

/// No limit lasts longer than this.
const LONGEST_SECS: f64 = 366.0 * 86_400.0;

/// The class of an error by its words.
pub(super) fn class(text: &str) -> FailureClass {
    let text = text.to_lowercase();
    let is_said = |words: &&[&str]| words.iter().any(|word| has_word(&text, word));
    WORDS.iter().find(|(_, words)| is_said(words)).map_or(FailureClass::Other, |(class, _)| *class)
}

/// Whether a word stands in a text, and is not a part of another.
fn has_word(text: &str, word: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(is_inner) && !after.strip_prefix('s').unwrap_or(after).starts_with(is_inner)
    })
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
