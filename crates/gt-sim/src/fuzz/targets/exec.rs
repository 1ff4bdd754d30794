//! What a program prints that runs agents elsewhere: answers and lines of news.
//!
//! An answer is read or refused in one short line. A start has one result for each launch, each with a reason where it
//! failed. A run that was started is seen in every survey that is read. Nothing shown drives a terminal.

use gt_runtime::exec::answers;
use gt_runtime::{Handle, Known, Launch, Place, StartError};
use jiff::Timestamp;

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "exec", check, tokens: TOKENS };

const TOKENS: &[&str] = &[
    r#"{"protocol":1,"results":[{"run":"r1"},{"run":"r2"}]}"#,
    r#"{"results":[{"run":"r1"},{"run":"r2","error":{"kind":"no-room","cause":"full"}}]}"#,
    r#"{"runs":{"r1":{"state":"running"}}}"#,
    r#"{"runs":{"r2":{"state":"ended","code":0,"signal":null,"at":"2026-01-01T00:00:00Z","leftover":0}}}"#,
    r#"{"run":"r1","code":7}"#,
    "{}",
    r#""protocol":2"#,
    r#""no-program""#,
    r#""failed""#,
    r#""cause":"\u001b[2J""#,
    r#""signal":9"#,
    "null",
    "-1",
];

fn check(bytes: &[u8]) -> Verdict {
    let now = Timestamp::UNIX_EPOCH;
    let starts = has_a_result_for_each(bytes);
    let survey = sees_what_was_started(bytes, now);
    let news = bytes.split(|byte| *byte == b'\n').take(64).filter_map(|line| answers::told(line, now)).count();
    Verdict::accepted_if(starts || survey || news > 0)
}

fn has_a_result_for_each(printed: &[u8]) -> bool {
    let launches = ["r1", "r2"].map(|run| Launch {
        run: run.to_owned(),
        session: String::new(),
        argv: Vec::new(),
        dir: "/".into(),
        env: Vec::new(),
        stdin: None,
        log: "/log".into(),
        errors: None,
        place: Place::Process,
    });
    let results = answers::started(&launches, printed).inspect_err(|error| assert_can_be_shown(error));
    for result in results.iter().flatten() {
        if let Err(error) = result {
            assert_can_be_shown(&error.to_string());
            let (StartError::NoProgram { cause, .. }
            | StartError::NoRoom { cause }
            | StartError::Failed { cause }
            | StartError::Unknown { cause }) = error;
            assert!(!cause.is_empty(), "a reason is never empty");
        }
    }
    results.is_ok_and(|results| {
        assert_eq!(results.len(), launches.len());
        true
    })
}

fn sees_what_was_started(printed: &[u8], now: Timestamp) -> bool {
    let known = ["r1", "r2"].map(|run| Known { run: run.to_owned(), handle: Some(Handle::ELSEWHERE), log: None });
    let seen = answers::surveyed(&known, printed, now).inspect_err(|error| assert_can_be_shown(error));
    seen.is_ok_and(|seen| {
        assert!(known.iter().all(|known| seen.contains_key(&known.run)));
        true
    })
}

fn assert_can_be_shown(text: &str) {
    assert!(!text.contains(char::is_control), "{text:?} is one line that drives no terminal");
    assert!(text.chars().count() < 1_000, "{text:?} is short");
}
