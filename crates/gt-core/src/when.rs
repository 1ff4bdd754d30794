//! Times as people type them, for `gt cron add --at` and `gt cron next --from`: `in 2h`, `tomorrow 9:00`, `2026-12-01 09:00`.
//! // SPEC K1
//!
//! Owns: which instant the words mean, in a zone. Reading the words is `read`. What is unclear is refused, with what to
//! type instead; nothing is guessed. What `--defer` of beads takes is `gt`'s own.

mod read;
mod refusal;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::text::short_line;
use read::{Day, When};
pub use refusal::BadWhen;

/// Reads a time that is still to come.
pub fn parse_at(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, BadWhen> {
    let asked = Asked { text, now, zone, may_have_passed: false };
    match read::when(text)? {
        When::At(at) => asked.to_come(at),
        When::In(span) => asked.to_come(now.checked_add(span).map_err(|_| asked.too_far())?),
        When::On(day, time) => asked.on(day, time),
        When::Day(Day::Yesterday, _) => asked.beginning_of(Day::Yesterday),
        When::Day(_, day) => Err(BadWhen::NoTime { day }),
    }
}

/// Reads a time from which something counts: it may have passed, and a day alone means its beginning.
pub fn parse_from(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, BadWhen> {
    let asked = Asked { text, now, zone, may_have_passed: true };
    if text.trim().eq_ignore_ascii_case("now") {
        return Ok(now);
    }
    match read::when(text)? {
        When::At(at) => Ok(at),
        When::In(span) => now.checked_add(span).map_err(|_| asked.too_far()),
        When::On(day, time) => asked.on(day, time),
        When::Day(day, _) => asked.beginning_of(day),
    }
}

/// What was typed, when and where.
struct Asked<'a> {
    text: &'a str,
    now: Timestamp,
    zone: &'a TimeZone,
    /// Whether a time that is not to come is one too.
    may_have_passed: bool,
}

impl Asked<'_> {
    /// A time of a day; alone it means the first that is to come.
    fn on(&self, day: Day, time: Time) -> Result<Timestamp, BadWhen> {
        match day {
            Day::Any => self.at_or_tomorrow(self.today(), time),
            day => self.at(self.date(day, time)?, time),
        }
    }

    /// The first instant of a day: where the clock leaves out midnight it is later, where it shows it twice the first one.
    fn beginning_of(&self, day: Day) -> Result<Timestamp, BadWhen> {
        let midnight = self.date(day, Time::midnight())?.to_datetime(Time::midnight());
        let first = self.zone.to_ambiguous_timestamp(midnight).compatible();
        self.to_come(first.map_err(|_| self.too_far())?)
    }

    fn today(&self) -> Date {
        self.zone.to_datetime(self.now).date()
    }

    /// The date of a day. A weekday means the first such day, unless it could be another.
    fn date(&self, day: Day, time: Time) -> Result<Date, BadWhen> {
        let today = self.today();
        let first = |weekday| self.add_days(today, i64::from(today.weekday().until(weekday)));
        match day {
            Day::Date(date) => Ok(date),
            Day::Any | Day::Today => Ok(today),
            Day::Tomorrow => self.add_days(today, 1),
            Day::Yesterday => self.add_days(today, -1),
            // Never today, so it is clear.
            Day::NextWeekday(weekday) if weekday == today.weekday() => self.add_days(today, 7),
            Day::NextWeekday(weekday) => Err(self.two_days(first(weekday)?, time)?),
            Day::Weekday(weekday) if weekday == today.weekday() => Err(self.two_days(today, time)?),
            Day::Weekday(weekday) => first(weekday),
        }
    }

    /// Somebody may mean that day, or the same of the week after.
    fn two_days(&self, date: Date, time: Time) -> Result<BadWhen, BadWhen> {
        let clock = |date: Date| minute(date.to_datetime(time));
        Ok(BadWhen::TwoDays {
            text: short_line(self.text),
            first: clock(date),
            second: clock(self.add_days(date, 7)?),
            has_passed: matches!(self.at(date, time), Err(BadWhen::Past { .. })),
        })
    }

    fn at_or_tomorrow(&self, today: Date, time: Time) -> Result<Timestamp, BadWhen> {
        match (Asked { may_have_passed: false, ..*self }).at(today, time) {
            Err(BadWhen::Past { .. }) => self.at(self.add_days(today, 1)?, time),
            found => found,
        }
    }

    /// The instant at which the clock shows this, if it is one alone.
    fn at(&self, date: Date, time: Time) -> Result<Timestamp, BadWhen> {
        let clock = date.to_datetime(time);
        match self.zone.to_ambiguous_timestamp(clock).offset() {
            AmbiguousOffset::Unambiguous { offset } => self.to_come(self.instant(clock, offset)?),
            AmbiguousOffset::Gap { before, after } => {
                let (at, from, to) = self.gap(clock, before, after)?;
                self.to_come(at)?;
                Err(BadWhen::LeftOut {
                    clock: minute(clock),
                    zone: self.zone_name(),
                    from: minute(from),
                    to: minute(to),
                })
            }
            AmbiguousOffset::Fold { before, after } => {
                self.to_come(self.instant(clock, after)?)?;
                let with = |offset: Offset| Ok(self.instant(clock, offset)?.display_with_offset(offset).to_string());
                let (first, second) = (with(before)?, with(after)?);
                Err(BadWhen::Twice { clock: minute(clock), zone: self.zone_name(), first, second })
            }
        }
    }

    /// When the clock leaves out this time, and from what to what it jumps then.
    fn gap(&self, clock: DateTime, before: Offset, after: Offset) -> Result<(Timestamp, DateTime, DateTime), BadWhen> {
        // By the old clock, this is at the jump or soon after it.
        let soon = self.instant(clock, before)?;
        let soon = soon.checked_add(SignedDuration::from_secs(1)).map_err(|_| self.too_far())?;
        let jump = self.zone.preceding(soon).next().map_or(soon, |jump| jump.timestamp());
        Ok((jump, before.to_datetime(jump), after.to_datetime(jump)))
    }

    fn to_come(&self, at: Timestamp) -> Result<Timestamp, BadWhen> {
        if at > self.now || self.may_have_passed {
            return Ok(at);
        }
        let clock = self.zone.to_datetime(at);
        Err(BadWhen::Past {
            text: short_line(self.text),
            clock: minute(clock),
            time: clock.strftime("%-H:%M").to_string(),
        })
    }

    fn instant(&self, clock: DateTime, offset: Offset) -> Result<Timestamp, BadWhen> {
        offset.to_timestamp(clock).map_err(|_| self.too_far())
    }

    fn add_days(&self, date: Date, n: i64) -> Result<Date, BadWhen> {
        date.checked_add(n.days()).map_err(|_| self.too_far())
    }

    fn too_far(&self) -> BadWhen {
        BadWhen::TooFar { text: short_line(self.text) }
    }

    fn zone_name(&self) -> String {
        self.zone.iana_name().unwrap_or("this zone").to_owned()
    }
}

/// A time as it can be typed again.
fn minute(clock: DateTime) -> String {
    clock.strftime(if clock.second() == 0 { "%F %H:%M" } else { "%F %T" }).to_string()
}

#[cfg(test)]
mod tests;
