//! The small languages inside values: durations, sizes, decimals, hours, zones, URLs.
//!
//! Each function reads one text and answers `None` when it is not of its language;
//! what to tell the user then is the business of `value`.

use std::fmt;
use std::time::Duration;

/// Longest duration taken, so that adding one to a point in time cannot overflow.
const DURATION_MAX: Duration = Duration::from_hours(100 * 365 * 24);

/// Largest amount of money taken, in millionths.
const MICROS_MAX: u64 = 1_000_000_000 * 1_000_000;

const DURATION_UNITS: [(&str, u64); 6] =
    [("w", 7 * 86_400_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

const SIZE_UNITS: [(&str, u64); 9] = [
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// First parts of the names in the IANA database; a name outside them is a typing error.
const ZONE_AREAS: [&str; 11] = [
    "Africa",
    "America",
    "Antarctica",
    "Arctic",
    "Asia",
    "Atlantic",
    "Australia",
    "Etc",
    "Europe",
    "Indian",
    "Pacific",
];

/// A daily window in minutes after midnight; it wraps when `end` is before `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveHours {
    pub start: u16,
    pub end: u16,
}

impl fmt::Display for ActiveHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = (self.start, self.end);
        write!(f, "{:02}:{:02}-{:02}:{:02}", start / 60, start % 60, end / 60, end % 60)
    }
}

/// Reads `800ms`, `5m` or `1h 30m`: whole numbers, each unit once, largest first.
pub fn duration(text: &str) -> Option<Duration> {
    let mut millis = 0_u64;
    let mut rest = text.trim();
    let mut units = DURATION_UNITS.iter();
    while !rest.is_empty() {
        let (number, tail) = leading_number(rest)?;
        let tail = tail.trim_start_matches(' ');
        let end = tail.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, tail) = tail.split_at(end.unwrap_or(tail.len()));
        // Taking from the same iterator is what enforces the order of the units.
        let (_, factor) = units.by_ref().find(|(name, _)| *name == unit)?;
        millis = millis.checked_add(number.checked_mul(*factor)?)?;
        rest = tail.trim_start_matches(' ');
    }
    let length = Duration::from_millis(millis);
    (!text.trim().is_empty() && length <= DURATION_MAX).then_some(length)
}

/// Reads `256 MB` or `1GiB`: a whole number with its unit, in bytes.
pub(super) fn size(text: &str) -> Option<u64> {
    let (number, unit) = leading_number(text.trim())?;
    let unit = unit.trim_start_matches(' ').to_ascii_lowercase();
    let (_, factor) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    let bytes = number.checked_mul(*factor)?;
    (i64::try_from(bytes).is_ok()).then_some(bytes)
}

/// Reads a decimal of at most six places as millionths: exact, where a float is not.
pub(super) fn micros(text: &str) -> Option<u64> {
    let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
    if places.is_empty() || places.len() > 6 || !places.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (whole, tail) = leading_number(whole)?;
    let fraction = format!("{places:0<6}").parse::<u64>().ok()?;
    let total = whole.checked_mul(1_000_000)?.checked_add(fraction)?;
    (tail.is_empty() && total <= MICROS_MAX).then_some(total)
}

/// Reads `08:00-22:00`; the end may be `24:00`, and before the start (over midnight).
pub(super) fn active_hours(text: &str) -> Option<ActiveHours> {
    let (start, end) = text.trim().split_once('-')?;
    let (start, end) = (clock(start)?, clock(end)?);
    // An empty window would silence the heartbeat for good, which has its own switch.
    (start < 24 * 60 && start != end).then_some(ActiveHours { start, end })
}

/// Tells whether a text has the shape of an IANA zone name, `UTC` included.
///
/// Whether this machine's database has the zone is not asked: that needs the disk.
pub(super) fn is_time_zone(text: &str) -> bool {
    let Some((area, place)) = text.split_once('/') else {
        return text == "UTC";
    };
    let named = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+'))
    };
    ZONE_AREAS.contains(&area) && text.len() <= 64 && place.split('/').all(named)
}

/// Tells whether a text is a PostgreSQL URL with a host.
pub(super) fn is_store_url(text: &str) -> bool {
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    let plain = |c: char| !c.is_whitespace() && !c.is_control();
    rest.is_some_and(|rest| {
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        !host.is_empty() && !host.starts_with(':') && rest.chars().all(plain)
    })
}

pub(super) fn is_web_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let plain = |c: char| !c.is_whitespace() && !c.is_control();
    rest.is_some_and(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        !host.is_empty() && !host.starts_with(':') && rest.chars().all(plain)
    })
}

fn clock(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let digits = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes) = (hours.parse::<u16>().ok()?, minutes.parse::<u16>().ok()?);
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= 24 * 60).then_some(total)
}

fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, tail) = text.split_at(end);
    Some((digits.parse().ok()?, tail))
}
