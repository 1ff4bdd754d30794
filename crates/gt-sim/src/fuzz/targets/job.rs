//! What the store keeps of a job: the kind of its schedule, the text of that, and what it does. Each is a part of the
//! input, apart by a line break; the last part may have several lines.
//!
//! Whatever is there is read, if only as something that nobody can read; what is read is written as it reads; slots come
//! in order, and each has one fate. Any line may also be a job's name.

use gt_core::job::{
    Backlog, Command, Fate, Missed, NAME_CHARS_MAX, Payload, Schedule, Watch, fates, flaw_of_name, is_id,
};
use gt_core::text::misleads;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "job", check, tokens: TOKENS };

const RECORDS_MAX: usize = 1_000;

const TOKENS: &[&str] = &[
    "at\n",
    "every\n",
    "cron\n",
    "2026-12-01T08:00:00Z",
    "1000000",
    "999999",
    "316224000000000",
    "316224000000001",
    "-1000000",
    "* * * * *",
    "0 9 * * mon-fri",
    "@daily",
    r#"{"message":{"text":"hi"}}"#,
    r#"{"run":{"command":"make"}}"#,
    r#"{"sling":{"words":["gt-1","shop"]}}"#,
    r#"{"heartbeat":{"agent":"a","target":"last","ack_max_chars":300}}"#,
    r#","session":"s""#,
    r#","agent":null"#,
    r#""broken":"x""#,
    "job-12",
    "backup",
    "\\u0000",
    "\n",
    "{",
    "}",
];

fn check(bytes: &[u8]) -> Verdict {
    let lossy = String::from_utf8_lossy(bytes);
    let mut parts = lossy.splitn(3, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let (kind, text, payload) = (next(), next(), next());
    let is_schedule = schedule_comes_back(kind, text);
    let is_payload = payload_comes_back(payload);
    lossy.lines().take(8).for_each(is_name);
    Verdict::accepted_if(is_schedule || is_payload)
}

fn schedule_comes_back(kind: &str, text: &str) -> bool {
    let anchor = "2026-01-01T00:00:00.000001Z".parse().expect("an instant");
    let schedule = Schedule::parse(kind, text, anchor);
    assert_eq!(schedule.kind(), kind);
    let again = Schedule::parse(kind, &schedule.text(), anchor);
    assert_eq!(again, schedule, "{kind} {text:?} comes back");
    let is_broken = matches!(schedule, Schedule::Broken { .. });
    assert!(!is_broken || (schedule.text(), schedule.words()) == (text.to_owned(), text.to_owned()));
    assert!(is_broken || !schedule.words().contains(misleads), "{:?} can be shown", schedule.words());
    for after in [Timestamp::MIN, anchor, Timestamp::MAX] {
        if let Some(first) = schedule.next(after, &TimeZone::UTC) {
            assert!(first > after && !is_broken, "{kind} {text:?} after {after} comes at {first}");
            each_slot_has_its_fate(&schedule, first);
        }
    }
    !is_broken
}

/// Forty days later, and under each policy.
fn each_slot_has_its_fate(schedule: &Schedule, first: Timestamp) {
    let Ok(now) = first.checked_add(SignedDuration::from_hours(40 * 24)) else { return };
    let Backlog { slots, earlier } = Backlog::of(schedule, first, now, &TimeZone::UTC);
    assert!((1..=RECORDS_MAX).contains(&slots.len()) && slots.is_sorted_by(|a, b| a < b));
    assert!(slots.iter().all(|slot| (first..=now).contains(slot)));
    match earlier {
        Some((oldest, last)) => assert!(oldest == first && oldest <= last && last < slots[0]),
        None => assert_eq!(slots[0], first),
    }
    for missed in Missed::ALL {
        let (grace, since) = (Some(SignedDuration::from_hours(1)), now - SignedDuration::from_mins(90));
        let watch =
            Watch { missed, grace, may_overlap: false, since, now, busy_with: None, has_begun: false, n_unfinished: 0 };
        let fates = fates(&slots, &watch);
        assert!(fates.iter().map(|(slot, _)| slot).eq(&slots), "each has one, in order");
        let n_fires = fates.iter().filter(|(_, fate)| *fate == Fate::Fires).count();
        assert!(n_fires <= 1 || missed == Missed::All && n_fires <= 100, "{n_fires} at once");
    }
}

fn payload_comes_back(text: &str) -> bool {
    let payload = Payload::parse(text);
    assert_eq!(Payload::parse(&payload.text()), payload, "{text:?} comes back");
    let is_broken = matches!(payload, Payload::Broken(_));
    assert_eq!(is_broken, payload.kind() == "unreadable");
    if is_broken {
        assert_eq!((payload.text().as_str(), payload.command()), (text, None), "it is kept, and starts nothing");
    } else {
        assert!(!payload.text().contains(['\n', '\r', '\0']), "{:?} is one line", payload.text());
    }
    if let Some(Command::Gt(words)) = payload.command() {
        assert_eq!(words.first().map(String::as_str), Some("sling"), "nothing else of ours is started");
    }
    !is_broken
}

fn is_name(line: &str) {
    if let Some(flaw) = flaw_of_name(line) {
        assert!(!flaw.is_empty());
        return;
    }
    assert!(!is_id(line) && !line.contains(misleads) && !line.contains(char::is_whitespace), "{line:?}");
    assert!((1..=NAME_CHARS_MAX).contains(&line.chars().count()) && !line.starts_with('-'), "{line:?}");
}
