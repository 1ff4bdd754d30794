//! Schedules as cron writes them: reading one, and the next time at which it fires. // SPEC K1, K2
//!
//! Owns: an expression as a whole, and what happens where a zone's clock jumps. Reading the fields is `read`, the days and
//! minutes of a clock that never jumps are `calendar`, refusals are `refusal`. What is done when a job fires, and about
//! fires that were missed, is decided elsewhere. The rules for users are in `docs/cron-expressions.md`.

mod calendar;
mod field;
mod read;
mod refusal;

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use calendar::Calendar;
pub use field::Field;
pub use refusal::BadExpr;

/// A larger change of a zone's offset is no daylight saving; then the clock is simply followed, as Vixie does.
const SMALL_JUMP_MAX: SignedDuration = SignedDuration::from_hours(3);

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// A schedule: five fields, or a nickname such as `@daily`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    text: String,
    calendar: Calendar,
    /// The hour begins with `*` or has a step: every hour that the clock shows counts, be it shown twice or left out.
    follows_clock: bool,
}

impl Expr {
    /// Reads a schedule.
    pub fn parse(text: &str) -> Result<Expr, BadExpr> {
        read::expr(text)
    }

    /// The first time after `after`; `None`: never (the 30th of February).
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let after = second_of(after)?;
        let mut offset = zone.to_offset(after);
        let local = offset.to_datetime(after);
        let year_max = local.year().saturating_add(calendar::YEARS_MAX);
        let mut cursor = minute_after(local)?;
        if let Some(jump) = Jump::at_or_before(after, zone) {
            cursor = cursor.max(self.resume(&jump)?);
        }
        let mut since = after;
        loop {
            let found = self.calendar.first_from(cursor, year_max)?;
            let at = offset.to_timestamp(found).ok();
            let Some(jump) = Jump::after(since, offset, zone) else { return at };
            if at.is_some_and(|at| at < jump.at) {
                return at;
            }
            // By the old clock it comes at the jump or later, so if the new clock starts past it, it was left out.
            if self.minds(&jump) && found < jump.to {
                return Some(jump.at);
            }
            cursor = self.resume(&jump)?;
            (since, offset) = (jump.at, jump.offset);
        }
    }

    /// Whether the job runs once for what a jump leaves out, and once for what it repeats. // SPEC K2
    fn minds(&self, jump: &Jump) -> bool {
        !self.follows_clock && jump.is_small()
    }

    /// The first minute that counts after a jump: what is shown a second time is passed over.
    fn resume(&self, jump: &Jump) -> Option<DateTime> {
        minute_from(if self.minds(jump) { jump.from.max(jump.to) } else { jump.to })
    }
}

impl fmt::Display for Expr {
    /// As it was written, with single spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An instant at which a zone's clock is set, `from` one time `to` another.
struct Jump {
    at: Timestamp,
    from: DateTime,
    to: DateTime,
    /// In force from then on.
    offset: Offset,
}

impl Jump {
    fn new(at: Timestamp, before: Offset, offset: Offset) -> Jump {
        Jump { at, from: before.to_datetime(at), to: offset.to_datetime(at), offset }
    }

    /// The first one after `since`, at which `before` is in force.
    fn after(since: Timestamp, before: Offset, zone: &TimeZone) -> Option<Jump> {
        // Of a zone without a rule for the future, jiff 0.2.39 tells the last change again and again.
        let transition = zone.following(since).next().filter(|transition| transition.timestamp() > since)?;
        Some(Jump::new(transition.timestamp(), before, transition.offset()))
    }

    /// The one that made the clock what it is at this instant.
    fn at_or_before(instant: Timestamp, zone: &TimeZone) -> Option<Jump> {
        let just_after = instant.checked_add(SECOND).ok()?;
        let transition = zone.preceding(just_after).next()?;
        let just_before = transition.timestamp().checked_sub(SECOND).ok()?;
        Some(Jump::new(transition.timestamp(), zone.to_offset(just_before), transition.offset()))
    }

    fn is_small(&self) -> bool {
        self.to.duration_since(self.from).abs() <= SMALL_JUMP_MAX
    }
}

/// The second in which an instant lies. Clocks jump, and jobs fire, at whole seconds only; asked for a fraction of one
/// before 1970, jiff 0.2.39 looks at the second after it.
fn second_of(instant: Timestamp) -> Option<Timestamp> {
    let is_past_whole = instant.subsec_nanosecond() < 0;
    Timestamp::from_second(instant.as_second() - i64::from(is_past_whole)).ok()
}

/// The first whole minute after a time.
fn minute_after(time: DateTime) -> Option<DateTime> {
    let minute = time.with().second(0).build().ok()?;
    minute.checked_add(SignedDuration::from_mins(1)).ok()
}

/// The first whole minute that is not before a time.
fn minute_from(time: DateTime) -> Option<DateTime> {
    if time.second() == 0 { Some(time) } else { minute_after(time) }
}

#[cfg(test)]
mod tests;
