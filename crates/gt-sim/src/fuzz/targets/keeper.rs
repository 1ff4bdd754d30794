//! What comes over the keeper's socket, one line each way, and what the kernel says of a process.
//!
//! A line is read or refused, and what is read is written as it reads. A run whose name is taken names a file in one
//! directory and none beside it. A process has the number that was asked for, whatever its program calls itself.

use std::path::{Component, Path};

use gt_runtime::process::wire::{Greeting, Reply, Request, line};
use gt_runtime::process::{is_file_name, parse_stat};
use gt_runtime::{Ending, Handle};
use serde_json::from_slice;

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "keeper", check, tokens: TOKENS };

const TOKENS: &[&str] = &[
    r#"{"protocol":1,"pid":7}"#,
    r#""Watch""#,
    r#"{"Survey":[{"run":"r1","handle":null}]}"#,
    r#"{"Stop":[{"run":"r1","handle":{"pid":7,"birth":9}},"Gently"]}"#,
    r#"{"Acknowledge":["r1"]}"#,
    r#"{"Start":{"shared_env":[["A","b"]],"launches":[]}}"#,
    r#"{"Started":[{"Ok":{"pid":7,"birth":9}},{"Err":{"NoRoom":{"cause":"c"}}}]}"#,
    r#"{"Surveyed":{"r1":{"Running":{"pid":7,"birth":9}}}}"#,
    r#"{"Ended":["r1",{"code":0,"signal":null,"at":"2026-01-01T00:00:00Z","leftover":0}]}"#,
    r#""Done""#,
    "7 (sh) S 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0",
    ") Z ",
    "(",
    "..",
    "/",
    "r1",
    "null",
];

fn check(bytes: &[u8]) -> Verdict {
    let mut is_known = false;
    for sent in bytes.split(|byte| *byte == b'\n').take(64) {
        is_known |= is_message(sent);
        is_known |= is_process(&String::from_utf8_lossy(sent));
        names_one_file(&String::from_utf8_lossy(sent));
    }
    Verdict::accepted_if(is_known)
}

fn is_message(sent: &[u8]) -> bool {
    let mut is_known = false;
    if let Ok(request) = from_slice::<Request>(sent) {
        let written = line(&request);
        let again: Request = from_slice(&written).expect("what we write we can read");
        assert_eq!(line(&again), written, "a request says the same again");
        assert_one_line(&written);
        is_known = true;
    }
    if let Ok(reply) = from_slice::<Reply>(sent) {
        let written = line(&reply);
        let again: Reply = from_slice(&written).expect("what we write we can read");
        assert_eq!(line(&again), written, "a reply says the same again");
        assert_one_line(&written);
        is_known = true;
    }
    is_known | from_slice::<Greeting>(sent).is_ok() | is_record(sent)
}

/// The parts of the record of an end that outlives the keeper.
fn is_record(sent: &[u8]) -> bool {
    let ending = from_slice::<Ending>(sent);
    if let Ok(ending) = &ending {
        let again: Ending = from_slice(&line(ending)).expect("what we write we can read");
        assert_eq!(again, *ending);
    }
    ending.is_ok() | from_slice::<Handle>(sent).is_ok()
}

fn assert_one_line(written: &[u8]) {
    let end = written.iter().position(|byte| *byte == b'\n');
    assert_eq!(end, Some(written.len() - 1), "a message ends where its line ends");
}

fn is_process(stat: &str) -> bool {
    let Some(entry) = parse_stat(7, stat) else { return false };
    assert_eq!((entry.pid, entry.handle().birth), (7, entry.birth));
    // A program may call itself anything, which must not change what is read.
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    for name in ["sh", ") Z 1 1", "a) (b", "\u{1b}[31m", ""] {
        assert_eq!(parse_stat(7, &format!("7 ({name}){rest}")), Some(entry), "its name is {name:?}");
    }
    true
}

fn names_one_file(run: &str) {
    if is_file_name(run) {
        let file = format!("{run}.json");
        let parts: Vec<Component<'_>> = Path::new(&file).components().collect();
        assert!(matches!(parts.as_slice(), [Component::Normal(_)]), "{file} is one file of its directory");
        assert!(file.len() <= 255, "{file} fits into a directory");
    }
}
