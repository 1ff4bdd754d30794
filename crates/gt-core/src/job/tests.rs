//! Jobs: when they run, what the store keeps of them, what becomes of their slots, and when a failure is tried again.

mod backlog;
mod fates;
mod payload;
mod retry;
mod schedule;
mod words;

use jiff::tz::TimeZoneDatabase;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).expect("it is in the data that is built in")
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn ms(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).expect("within bounds")
}

fn cron(text: &str) -> Schedule {
    Schedule::Cron(Expr::parse(text).expect("a schedule"))
}

/// All slots after a time, in order, as a simple loop finds them.
fn slots_after(schedule: &Schedule, after: Timestamp, zone: &TimeZone) -> impl Iterator<Item = Timestamp> {
    std::iter::successors(schedule.next(after, zone), |slot| schedule.next(*slot, zone))
}
