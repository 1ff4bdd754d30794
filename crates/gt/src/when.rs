//! Times as people type them: `2h`, `2026-12-01`, `2026-12-01T09:00`, or a full RFC 3339 time.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::failure::{Failure, Kind};

/// Reads a time; a span counts from now, a date without a zone is local.
pub(crate) fn parse(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    parse_in(text, now, &TimeZone::system()).ok_or_else(|| not_a_time(text))
}

fn not_a_time(text: &str) -> Failure {
    Failure::new(Kind::Usage, format!("`{}` is not a time", gt_core::text::one_line(text)))
        .hint("say `2h`, `3d`, `2026-12-01`, `2026-12-01T09:00` or `2026-12-01T09:00:00Z`")
}

fn parse_in(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.trim();
    let text = text.strip_prefix("in ").or_else(|| text.strip_prefix('+')).unwrap_or(text);
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok()) {
        return now.checked_add(SignedDuration::try_from_hours(days.checked_mul(24)?)?).ok();
    }
    if let Ok(span) = text.parse::<SignedDuration>() {
        return now.checked_add(span).ok();
    }
    let local = text
        .parse::<DateTime>()
        .ok()
        .or_else(|| Some(text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight())))?;
    local.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests;
