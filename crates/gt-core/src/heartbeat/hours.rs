//! The hours of the day in which heartbeats may be, by the clock on the wall of some zone.

use std::fmt;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

/// So many days are searched for the next opening. A change of the clock may swallow the hours of a day, and where the
/// date line moved there was a day that never was.
const DAYS_SEARCHED: i64 = 7;

/// No zone changes its clock more often in that time; jiff 0.2.39 tells the last change of a file without a rule for ever.
const MOVES_MAX: usize = 8;

/// A span of every day, in minutes from midnight, without its end. It goes over midnight when it ends before it starts;
/// the end may be 24:00. When both are the same it is never open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    pub start: u16,
    pub end: u16,
}

impl Hours {
    pub fn contains(&self, at: Timestamp, zone: &TimeZone) -> bool {
        let time = zone.to_datetime(at).time();
        let minute = time.hour() as u16 * 60 + time.minute() as u16;
        if self.start <= self.end {
            (self.start..self.end).contains(&minute)
        } else {
            minute >= self.start || minute < self.end
        }
    }

    /// When they begin next, if they are closed now.
    pub fn next_opening(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.contains(after, zone) {
            return None;
        }
        // They open when the clock shows their start, which it may do twice, or when it is moved into them.
        let last = after.saturating_add(SignedDuration::from_hours(24 * DAYS_SEARCHED)).unwrap_or(Timestamp::MAX);
        let moves = zone.following(after).map(|change| change.timestamp()).take(MOVES_MAX).take_while(|at| *at <= last);
        let openings = self.starts(after, zone).chain(moves);
        openings.filter(|at| *at > after && self.contains(*at, zone)).min()
    }

    /// The instants at which the clock shows the start, from the day of this one on.
    fn starts(&self, from: Timestamp, zone: &TimeZone) -> impl Iterator<Item = Timestamp> {
        let hour = i8::try_from(self.start / 60).ok();
        let start = hour.and_then(|hour| Time::new(hour, (self.start % 60) as i8, 0, 0).ok());
        let today = zone.to_datetime(from).date();
        let days = (0..=DAYS_SEARCHED).filter_map(move |n| today.checked_add(Span::new().days(n)).ok());
        let civil = days.filter_map(move |day| start.map(|start| day.to_datetime(start)));
        civil.flat_map(|at| instants(at, zone))
    }
}

/// `08:00-22:00`, as it is written in the settings.
impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = (self.start, self.end);
        write!(f, "{:02}:{:02}-{:02}:{:02}", start / 60, start % 60, end / 60, end % 60)
    }
}

/// When the clock on the wall shows this; twice, where it is set back.
fn instants(at: DateTime, zone: &TimeZone) -> impl Iterator<Item = Timestamp> + use<> {
    let ambiguous = zone.to_ambiguous_timestamp(at);
    [ambiguous.earlier(), ambiguous.later()].into_iter().filter_map(Result::ok)
}
