//! How instants are written and read: RFC 3339, in UTC when we write them.

use jiff::Timestamp;

/// Reads an RFC 3339 time with any offset. The very last days of the year 9999, a way to say "never",
/// lie beyond what an instant can hold and count as the last one that it can.
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| text.starts_with("9999-12-3").then_some(Timestamp::MAX).filter(|_| is_time(text)))
}

/// Whether the text would be a time in any other year.
fn is_time(text: &str) -> bool {
    format!("1999{}", &text[4..]).parse::<Timestamp>().is_ok()
}

/// Writes an instant in UTC, to the microsecond at most.
pub fn format(at: Timestamp) -> String {
    truncate(at).to_string()
}

/// The instant as the store keeps it. Finer digits live on in the spelling of an imported time.
pub fn truncate(at: Timestamp) -> Timestamp {
    // Of the very last second only the beginning can be made from a number of microseconds.
    let whole_second = || Timestamp::from_second(at.as_second());
    Timestamp::from_microsecond(at.as_microsecond()).or_else(|_| whole_second()).unwrap_or(at)
}

/// When something will be, for people: `in 4 s`, `in 12 min`, `in 3 h`, `in 9 days`; `now` once its time has come. Rounded
/// up, so that it is never later than said.
pub fn until(at: Timestamp, now: Timestamp) -> String {
    let span = at.duration_since(now);
    let seconds = span.as_secs() + i64::from(span.subsec_nanos() > 0);
    let in_units = |unit: i64| (seconds + unit - 1) / unit;
    match (seconds, in_units(60), in_units(3600)) {
        (..=0, ..) => "now".to_owned(),
        (..60, ..) => format!("in {seconds} s"),
        (_, minutes @ ..60, _) => format!("in {minutes} min"),
        (.., hours @ ..48) => format!("in {hours} h"),
        _ => format!("in {} days", in_units(86_400)),
    }
}

/// How long ago something was, to the unit that people would name: `12 s ago`, `3 min ago`, `5 h ago`, `9 days ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    match now.duration_since(at).as_secs().max(0) {
        seconds @ 0..60 => format!("{seconds} s ago"),
        seconds @ 60..3600 => format!("{} min ago", seconds / 60),
        seconds @ 3600..172_800 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// Rewrites a time in UTC; what is not a time stays as it is.
pub fn to_utc(text: &str) -> String {
    parse(text).map_or_else(|| text.to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests;
