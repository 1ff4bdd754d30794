//! Schedules as cron writes them, one a line.
//!
//! A line is read, and then reads back and has times that come one after another; or it is refused in few words, and what
//! is offered instead can be taken.

use std::sync::LazyLock;

use gt_core::cron::{BadExpr, Expr, Field};
use gt_core::text::misleads;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "cron", check, tokens: TOKENS };

/// Each line is looked at by itself, so a few are enough.
const LINES_MAX: usize = 8;

const NANO: SignedDuration = SignedDuration::from_nanos(1);

const TOKENS: &[&str] = &[
    "0 9 * * *",
    "30 2 * * *",
    "*",
    "*/5",
    "0-23/2",
    "1,2,3",
    "22-2",
    "5/20",
    "mon-fri",
    "SUN",
    "sat-mon",
    "jan",
    "dec-feb",
    "L",
    "L-3",
    "LW",
    "15W",
    "31W",
    "fri#2",
    "0#5",
    "5L",
    "?",
    "29 2",
    "@daily",
    "@every 5m",
    "@reboot",
    "CRON_TZ=UTC",
    " ",
    "-",
    "/",
    ",",
    "#",
];

/// Clocks of all kinds: an hour, half an hour, at midnight, a day left out, offsets with seconds.
static ZONES: LazyLock<Vec<TimeZone>> = LazyLock::new(|| {
    let names = ["America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Pacific/Apia", "Africa/Monrovia"];
    let known = |name| TimeZoneDatabase::bundled().get(name).expect("it is in the data that is built in");
    std::iter::once(TimeZone::UTC).chain(names.map(known)).collect()
});

fn check(bytes: &[u8]) -> Verdict {
    let lossy = String::from_utf8_lossy(bytes);
    let n_read = lossy.lines().take(LINES_MAX).filter(|line| is_read(line, bytes.len())).count();
    Verdict::accepted_if(n_read > 0)
}

fn is_read(line: &str, number: usize) -> bool {
    match Expr::parse(line) {
        Ok(expr) => {
            let written = expr.to_string();
            assert_eq!(Expr::parse(&written).as_ref(), Ok(&expr), "{line:?} is written as {written:?}");
            assert!(!written.contains("  ") && written.trim() == written, "{written:?} has single spaces");
            ZONES.iter().for_each(|zone| comes_in_order(&expr, zone, number));
            true
        }
        Err(refusal) => {
            is_told(&refusal);
            false
        }
    }
}

/// From the ends of time, from before zones had rules, and from times before changes of a clock.
fn comes_in_order(expr: &Expr, zone: &TimeZone, number: usize) {
    let hours = SignedDuration::from_hours(number as i64);
    let texts = ["1883-11-18T00:00:00Z", "2011-12-28T00:00:00Z", "2027-03-01T00:00:00Z", "2027-10-01T00:00:00Z"];
    let starts = texts.map(|text| text.parse::<Timestamp>().expect("an instant") + hours);
    let ends = [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH - NANO];
    let before_jumps = starts.map(|start| zone.following(start).next().map_or(start, |jump| jump.timestamp() - hours));
    for start in starts.into_iter().chain(ends).chain(before_jumps) {
        let mut after = start;
        for _ in 0..3 {
            let Some(next) = expr.next(after, zone) else { break };
            assert!(next > after && next.subsec_nanosecond() == 0, "`{expr}` after {after} comes at {next}");
            is_the_first_wherever_one_asks(expr, after, next, zone);
            after = next;
        }
    }
}

/// Just before it, and around a change of the clock if there is one.
fn is_the_first_wherever_one_asks(expr: &Expr, after: Timestamp, next: Timestamp, zone: &TimeZone) {
    let jump = zone.following(after).next().map_or(after, |jump| jump.timestamp());
    let around_jump = [-NANO, SignedDuration::ZERO, SignedDuration::from_mins(1), SignedDuration::from_mins(29)];
    let around_jump = around_jump.into_iter().filter_map(|away| jump.checked_add(away).ok());
    for asked in around_jump.chain([next - NANO]).filter(|asked| (after..next).contains(asked)) {
        assert_eq!(expr.next(asked, zone), Some(next), "`{expr}` after {after}, and after {asked}");
    }
}

fn is_told(refusal: &BadExpr) {
    let (told, hint) = (refusal.to_string(), refusal.hint().unwrap_or_default());
    assert!(told.len() < 400 && !told.contains(misleads), "{told:?}");
    assert!(hint.len() < 200 && !hint.contains(misleads), "{hint:?}");
    if let BadExpr::Backwards { field, forwards, .. } = refusal {
        let whole = match field {
            Field::Minute => format!("{forwards} * * * *"),
            Field::Hour => format!("* {forwards} * * *"),
            Field::Day => format!("* * {forwards} * *"),
            Field::Month => format!("* * * {forwards} *"),
            Field::Weekday => format!("* * * * {forwards}"),
        };
        assert!(Expr::parse(&whole).is_ok(), "`{forwards}` is offered, and refused");
    }
}
