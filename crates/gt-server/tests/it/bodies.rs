//! Bodies: how long they may take, and how much of them is kept.

use std::io::Write as _;
use std::time::Duration;

use gt_server::Limits;
use serde_json::json;

use crate::served::{Served, reply};

const SEND: &str = "POST /v1/sessions/dm:a/messages";

#[test]
fn a_body_that_does_not_come_in_time_is_answered_with_408() {
    let served = Served::new(Limits { body: Duration::from_millis(50), ..Limits::default() });
    for line in [SEND, "POST /v1/sessions/dm:a/stop", "POST /v1/chat/completions"] {
        let mut slow = served.connect();
        slow.write_all((served.head(line, "", 100) + "{\"text\"").as_bytes()).expect("it is read");
        let answer = reply(slow);
        assert_eq!((answer.status, answer.code().as_str()), (408, "too-slow"), "{line}");
    }
    assert_eq!(served.ask("GET /v1/sessions", "", "").json(), json!([]), "nothing of it was taken");
}

/// The most memory that this process ever had, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes * 1024
}

/// It is read on, so that its sender hears the answer, but not kept.
#[test]
fn of_a_body_that_is_too_large_nothing_is_kept() {
    static PIECE: [u8; 64 * 1024] = [b' '; 64 * 1024];
    const N_PIECES: usize = 480;
    let served = Served::new(Limits::default());
    let mut callers: Vec<_> = (0..4).map(|_| served.connect()).collect();
    let head = served.head(SEND, "", N_PIECES * PIECE.len());
    for caller in &mut callers {
        caller.write_all(head.as_bytes()).expect("it is read");
    }
    let before = peak_memory();
    for _ in 0..N_PIECES {
        for caller in &mut callers {
            caller.write_all(&PIECE).expect("it is read");
        }
    }
    for caller in callers {
        let answer = reply(caller);
        assert_eq!((answer.status, answer.code().as_str()), (413, "too-large"));
    }
    let (grown, sent) = (peak_memory() - before, 4 * N_PIECES * PIECE.len());
    // What is kept until it is too much, twice where it grows, and what callers and kernel need.
    assert!(grown < sent / 3, "{grown} of {sent} bytes");
}
