//! Times as people type them, one a line.
//!
//! What is taken is still to come, unless something may count from it, and says nothing that was passed over; what is not is
//! refused in few words, with a text to type instead that is not refused for its form.

use std::sync::LazyLock;

use gt_core::text::misleads;
use gt_core::time;
use gt_core::when::{BadWhen, parse_at, parse_from};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "when", check, tokens: TOKENS };

/// Each line is looked at by itself, so a few are enough.
const LINES_MAX: usize = 8;

const TOKENS: &[&str] = &[
    "in ",
    "2h",
    "90 minutes",
    "1w 2d 3h 4m 5s",
    "9:00",
    "9",
    "24",
    "13",
    "2:30",
    "1:30",
    "23:59:59",
    "9am",
    " pm",
    "12am",
    "at ",
    "yesterday ",
    "today",
    "tomorrow ",
    "friday ",
    "next ",
    "sun",
    "2027-03-14",
    "2027-11-07",
    "2026-02-30",
    "9999-12-31",
    "T",
    "T01:30-05:00",
    "Z",
    "03/04/2026",
    "1.12.2026",
    "-",
    ":",
];

/// All letters of what is taken belong to one of these.
const WORDS: &str = "in at am pm t z now next yesterday today tomorrow \
    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun \
    s sec secs second seconds m min mins minute minutes h hr hrs hour hours d day days w week weeks";

static ZONES: LazyLock<Vec<TimeZone>> = LazyLock::new(|| {
    let names = ["America/New_York", "Africa/Cairo", "Pacific/Apia"];
    let known = |name| TimeZoneDatabase::bundled().get(name).expect("it is in the data that is built in");
    std::iter::once(TimeZone::UTC).chain(names.map(known)).collect()
});

fn check(bytes: &[u8]) -> Verdict {
    let lossy = String::from_utf8_lossy(bytes);
    let n_taken = lossy.lines().take(LINES_MAX).filter(|line| is_taken(line)).count();
    Verdict::accepted_if(n_taken > 0)
}

/// Whether a text is a time for somebody: on plain days, before and within changes of a clock, at the ends of time.
fn is_taken(text: &str) -> bool {
    let texts = ["2026-11-18T15:00:00Z", "2027-03-13T17:00:00Z", "2027-04-29T10:00:00Z", "2027-11-07T05:45:00Z"];
    let instants = texts.map(|text| text.parse::<Timestamp>().expect("an instant"));
    let mut is_taken = false;
    for now in instants.into_iter().chain([Timestamp::MIN, Timestamp::MAX]) {
        for zone in ZONES.iter() {
            match parse_at(text, now, zone) {
                Ok(at) => {
                    assert!(at > now, "{text:?} at {now} is {at}");
                    says_nothing_else(text);
                    is_taken = true;
                }
                Err(refusal) => is_told(&refusal, now, zone),
            }
            counts_from(text, now, zone);
        }
    }
    is_taken
}

/// Something may count from each time that can be waited for, and from times that have passed.
fn counts_from(text: &str, now: Timestamp, zone: &TimeZone) {
    match (parse_from(text, now, zone), parse_at(text, now, zone)) {
        (Ok(from), Ok(at)) => assert_eq!(from, at, "{text:?} at {now}"),
        (Ok(_), Err(_)) => says_nothing_else(text),
        (Err(refusal), Ok(at)) => panic!("{text:?} at {now} is {at}, and nothing counts from it: {refusal}"),
        (Err(refusal), Err(_)) => is_told(&refusal, now, zone),
    }
}

fn says_nothing_else(text: &str) {
    let is_instant = time::parse(text.trim()).is_some();
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let is_known = |word: &str| WORDS.split(' ').any(|known| known.eq_ignore_ascii_case(word));
    assert!(is_instant || words.into_iter().all(is_known), "{text:?} is taken for a time");
}

fn is_told(refusal: &BadWhen, now: Timestamp, zone: &TimeZone) {
    let (told, hint) = (refusal.to_string(), refusal.hint());
    assert!(told.len() < 400 && !told.contains(misleads), "{told:?}");
    assert!(!hint.is_empty() && hint.len() < 400 && !hint.contains(misleads), "{hint:?}");
    // No clock shows a year before the first.
    for offered in hint.split('`').skip(1).step_by(2).filter(|offered| !offered.starts_with('-')) {
        if let Err(refusal) = parse_at(offered, now, zone) {
            assert!(is_of_its_time(&refusal), "`{offered}` is offered instead, and refused: {refusal}");
        }
    }
}

/// Whether a text that is well written was refused: as a time that is past, too far away, left out or shown twice, or of a
/// weekday that is today's.
fn is_of_its_time(refusal: &BadWhen) -> bool {
    use BadWhen::{LeftOut, Past, TooFar, Twice, TwoDays};
    matches!(refusal, Past { .. } | TooFar { .. } | LeftOut { .. } | Twice { .. } | TwoDays { .. })
}
