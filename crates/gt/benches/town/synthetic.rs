//! Towns made up for measuring: a graph like real ones, from a fixed seed.

use std::fmt::Write;

/// A small generator; the numbers only have to be the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

pub(crate) fn id(at: usize) -> String {
    format!("gt-{at:07}")
}

/// `size` beads: half of them wait for an earlier one, four in ten are parts of another, six in ten are closed.
pub(crate) fn jsonl(size: usize) -> String {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut text = String::new();
    for at in 0..size {
        let mut edges = Vec::new();
        if at > 10 && dice.roll(2) == 0 {
            edges.push(edge(at, at - 1 - dice.roll(at.min(1000)), "blocks"));
        }
        if at > 10 && dice.roll(10) < 4 {
            edges.push(edge(at, at / 10, "parent-child"));
        }
        let status = if dice.roll(10) < 4 { "open" } else { "closed" };
        let labels = if at.is_multiple_of(5) { r#","labels":["core","later"]"# } else { "" };
        writeln!(
            text,
            r#"{{"id":"{}","title":"Bead number {at}","description":"{}","status":"{status}","priority":{},"issue_type":"task","created_at":"{}","updated_at":"2026-01-02T00:00:00Z","dependencies":[{}]{labels}}}"#,
            id(at),
            "What has to be done, in some detail. ".repeat(6),
            dice.roll(5),
            created_at(at),
            edges.join(","),
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// One bead a second.
fn created_at(at: usize) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_767_225_600 + at as i64).expect("it is in range")
}

fn edge(from: usize, to: usize, kind: &str) -> String {
    format!(
        r#"{{"issue_id":"{}","depends_on_id":"{}","type":"{kind}","created_at":"2026-01-01T00:00:00Z","created_by":"bench"}}"#,
        id(from),
        id(to)
    )
}

pub(crate) fn hub(n_dependents: usize) -> String {
    format!("hub-{n_dependents}")
}

/// One open bead that so many others wait for, and nothing else.
pub(crate) fn hub_jsonl(n_dependents: usize) -> String {
    let hub = hub(n_dependents);
    let mut text = format!("{{\"id\":\"{hub}\",\"title\":\"The hub\"}}\n");
    for at in 0..n_dependents {
        writeln!(
            text,
            r#"{{"id":"{hub}.{at}","title":"Waits","dependencies":[{{"depends_on_id":"{hub}","type":"blocks"}}]}}"#
        )
        .expect("writing to a string cannot fail");
    }
    text
}
