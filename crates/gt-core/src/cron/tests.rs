//! Schedules: what is read and refused, and which days, jumps of the clock and instants follow from it.
//!
//! Two judges that share no code with ours: a slow simulation of Vixie's loop (`vixie`), and what croniter answered
//! (`croniter`). Zones come from the data that is built in, so that a test means the same on every machine.

mod croniter;
mod days;
mod jumps;
mod properties;
mod reading;
mod vixie;

use jiff::tz::TimeZoneDatabase;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).expect("it is in the data that is built in")
}

fn instant(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn expr(text: &str) -> Expr {
    Expr::parse(text).unwrap_or_else(|refusal| panic!("`{text}`: {refusal}"))
}

/// All times after `after` and before `end`.
fn between(expr: &Expr, after: Timestamp, end: Timestamp, zone: &TimeZone) -> Vec<Timestamp> {
    let times = std::iter::successors(expr.next(after, zone), |at| expr.next(*at, zone));
    times.take_while(|at| *at < end).collect()
}

/// The next times, as the clock of the zone shows them, with its offset.
fn shown(text: &str, zone_name: &str, after: &str, n: usize) -> Vec<String> {
    let (expr, zone) = (expr(text), zone(zone_name));
    let times = std::iter::successors(expr.next(instant(after), &zone), |at| expr.next(*at, &zone));
    times.take(n).map(|at| at.to_zoned(zone.clone()).strftime("%a %F %H:%M%:::z").to_string()).collect()
}
