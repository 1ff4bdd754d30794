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

/// Rewrites a time in UTC; what is not a time stays as it is.
pub fn to_utc(text: &str) -> String {
    parse(text).map_or_else(|| text.to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests;
