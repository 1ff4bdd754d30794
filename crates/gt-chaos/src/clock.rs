//! Times as the scripts write them: microseconds since 1970, from the one clock that all processes here share.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

pub(crate) type Micros = u64;

pub(crate) const SECOND: Micros = 1_000_000;

pub(crate) fn now() -> Micros {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as Micros)
}

/// Reads bash's `EPOCHREALTIME`.
pub(crate) fn from_bash(text: &str) -> Option<Micros> {
    let (seconds, micros) = text.split_once(['.', ','])?;
    Some(seconds.parse::<Micros>().ok()? * SECOND + micros.parse::<Micros>().ok()?)
}

/// Reads a time of `gt … --json`.
pub(crate) fn from_rfc3339(text: &str) -> Option<Micros> {
    let at: Timestamp = text.parse().ok()?;
    Micros::try_from(at.as_microsecond()).ok()
}

/// For people: the UTC time of day.
pub(crate) fn shown(at: Micros) -> String {
    Timestamp::from_microsecond(at as i64).map_or_else(|_| at.to_string(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_and_gt_tell_the_same_time() {
        assert_eq!(from_bash("1763468921.743416"), from_rfc3339("2025-11-18T12:28:41.743416Z"));
        assert_eq!(from_bash("soon"), None);
        assert_eq!(shown(1_763_468_921_743_416), "2025-11-18T12:28:41.743416Z");
    }
}
