//! The minutes that a schedule names, on a clock that never jumps.
//!
//! Owns: sets of minutes, hours, days and months, and the search in them, field by field. Knows no zone.

use jiff::civil::{Date, DateTime, Time};

/// How far a search goes. The 29th of February falls on a given weekday after 40 years at most: what does not come in
/// that time never comes.
pub(super) const YEARS_MAX: i16 = 40;

/// Numbers below 64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Set(u64);

impl Set {
    pub(super) fn insert(&mut self, number: u8) {
        self.0 |= 1 << number;
    }

    fn has(self, number: i8) -> bool {
        self.0 & (1 << number) != 0
    }

    /// The smallest that is not below `least`, which may be 64.
    fn first_from(self, least: i8) -> Option<i8> {
        let rest = self.0 & u64::MAX.checked_shl(least as u32).unwrap_or(0);
        (rest != 0).then(|| rest.trailing_zeros() as i8)
    }
}

/// A schedule's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) minutes: Set,
    pub(super) hours: Set,
    pub(super) months: Set,
    pub(super) days: MonthDays,
    pub(super) weekdays: Weekdays,
    /// Whether a day has to fit both day fields; otherwise one is enough. // Vixie: if either begins with `*`
    pub(super) needs_both: bool,
}

/// The field of days of the month.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MonthDays {
    pub(super) plain: Set,
    /// Days before the last one: `L` is 0, `L-3` is 3.
    pub(super) before_last: Set,
    /// `15W`: the weekday that is nearest, in the same month.
    pub(super) nearest: Set,
    /// `LW`: the last day from Monday to Friday.
    pub(super) last_workday: bool,
}

/// The field of weekdays, from Sunday (0) to Saturday (6).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Weekdays {
    pub(super) plain: Set,
    /// `5L`: the last one of a month.
    pub(super) last: Set,
    /// `5#2`: the n-th one of a month, as `7 * (n - 1) + weekday`.
    pub(super) nth: Set,
}

impl Calendar {
    /// The first minute that is named and not before `from`, a whole minute, up to the end of a year.
    pub(super) fn first_from(&self, from: DateTime, year_max: i16) -> Option<DateTime> {
        let today = self.first_day_from(from.date(), year_max)?;
        if today == from.date() {
            if let Some(time) = self.first_time_from(from.hour(), from.minute()) {
                return Some(today.to_datetime(time));
            }
            let later = self.first_day_from(today.tomorrow().ok()?, year_max)?;
            return Some(later.to_datetime(self.first_time_from(0, 0)?));
        }
        Some(today.to_datetime(self.first_time_from(0, 0)?))
    }

    fn first_time_from(&self, hour: i8, minute: i8) -> Option<Time> {
        let within = self.minutes.first_from(minute).filter(|_| self.hours.has(hour));
        let (hour, minute) = match within {
            Some(minute) => (hour, minute),
            None => (self.hours.first_from(hour + 1)?, self.minutes.first_from(0)?),
        };
        Time::new(hour, minute, 0, 0).ok()
    }

    fn first_day_from(&self, from: Date, year_max: i16) -> Option<Date> {
        let (mut year, mut month, mut day) = (from.year(), from.month(), from.day());
        loop {
            let Some(named) = self.months.first_from(month) else {
                (year, month, day) = (year + 1, 1, 1);
                if year > year_max {
                    return None;
                }
                continue;
            };
            if named != month {
                (month, day) = (named, 1);
            }
            let first = Date::new(year, month, 1).ok()?;
            if let Some(day) = self.days_of(Month::new(first)).first_from(day) {
                return first.with().day(day).build().ok();
            }
            (month, day) = (month + 1, 1);
        }
    }

    fn days_of(&self, month: Month) -> Set {
        let (days, weekdays) = (self.days.of(month), self.weekdays.of(month));
        Set(if self.needs_both { days & weekdays } else { days | weekdays })
    }
}

/// What one has to know of a month to find its days. Sets of days have bit 1 for the first.
#[derive(Debug, Clone, Copy)]
struct Month {
    n_days: u8,
    /// The weekday of the first, from Sunday (0).
    first: u8,
}

const SATURDAY: u8 = 6;
const SUNDAY: u8 = 0;
const EVERY_SEVENTH: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;

impl Month {
    fn new(first: Date) -> Month {
        let weekday = first.weekday().to_sunday_zero_offset();
        Month { n_days: first.days_in_month() as u8, first: weekday as u8 }
    }

    fn all(self) -> u64 {
        ((1 << self.n_days) - 1) << 1
    }

    fn weekday(self, day: u8) -> u8 {
        (self.first + day - 1) % 7
    }

    /// The first day of the month that is this weekday.
    fn first_of(self, weekday: u8) -> u8 {
        (weekday + 7 - self.first) % 7 + 1
    }

    /// The days of the month that are this weekday.
    fn each(self, weekday: u8) -> u64 {
        (EVERY_SEVENTH << self.first_of(weekday)) & self.all()
    }

    /// The day from Monday to Friday that is nearest to a day, without leaving the month.
    fn workday_near(self, day: u8) -> u8 {
        match self.weekday(day) {
            SATURDAY if day == 1 => 3,
            SATURDAY => day - 1,
            SUNDAY if day == self.n_days => day - 2,
            SUNDAY => day + 1,
            _ => day,
        }
    }
}

impl MonthDays {
    fn of(&self, month: Month) -> u64 {
        let mut days = self.plain.0 & month.all();
        for before in members(self.before_last).filter(|before| *before < month.n_days) {
            days |= 1 << (month.n_days - before);
        }
        for day in members(self.nearest).filter(|day| *day <= month.n_days) {
            days |= 1 << month.workday_near(day);
        }
        if self.last_workday {
            days |= 1 << month.workday_near(month.n_days);
        }
        days
    }
}

impl Weekdays {
    fn of(&self, month: Month) -> u64 {
        let mut days = 0;
        for weekday in members(self.plain) {
            days |= month.each(weekday);
        }
        for weekday in members(self.last) {
            days |= 1 << month.each(weekday).ilog2();
        }
        for nth in members(self.nth) {
            let day = month.first_of(nth % 7) + nth / 7 * 7;
            days |= (1 << day) & month.all();
        }
        days
    }
}

fn members(set: Set) -> impl Iterator<Item = u8> {
    let mut rest = set.0;
    std::iter::from_fn(move || {
        let lowest = (rest != 0).then(|| rest.trailing_zeros() as u8)?;
        rest &= rest - 1;
        Some(lowest)
    })
}
