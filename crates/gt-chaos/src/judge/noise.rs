//! No storms: neither of posts to a web hook nor of lines in the log; and no daemon that ends by itself.

use std::collections::BTreeMap;
use std::fs;

use super::{Case, Violation};
use crate::clock::{self, Micros, SECOND};
use crate::daemon::{self, SelfEnd};
use crate::receiver::Post;

const POSTS: &str = "nothing is posted again and again";
const LINES: &str = "the daemon's log does not flood";
const DAEMON: &str = "the daemon does not end by itself";

/// A retry comes after 1 s, then more rarely; each daemon that starts may try once more.
const POSTS_MAX: usize = 12;
const WINDOW: Micros = 10 * SECOND;
const LINES_MAX: usize = 50;
/// A worker of the refinery tells at its end what became of each merge, and no more come than the load makes in a minute.
const MERGES_MAX: usize = 200;
/// A daemon may end while the disk is full, and for a while after that.
const AFTERMATH: Micros = 10 * SECOND;

pub(super) fn judge(case: &Case) -> Vec<Violation> {
    let log = fs::read(daemon::log_path(case.town)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    case.tally.add("lines of the daemon's log", log.lines().count());
    let mut violations = storms(&case.posts);
    violations.extend(floods(&log));
    let panics = log.lines().filter(|line| line.contains("panicked at"));
    violations.extend(panics.map(|line| Violation::new(DAEMON, line)));
    case.tally.add("daemons that ended by themselves", case.self_ends.len());
    violations.extend(unexcused(&case.self_ends, &case.deeds.full_disks));
    violations
}

/// Ends of daemons that no full disk excuses.
fn unexcused(self_ends: &[SelfEnd], full_disks: &[(Micros, Micros)]) -> Vec<Violation> {
    let is_excused = |at: Micros| full_disks.iter().any(|(from, to)| (*from..*to + AFTERMATH).contains(&at));
    let ends = self_ends.iter().filter(|end| !is_excused(end.at));
    ends.map(|end| Violation::new(DAEMON, format!("at {}: {}", clock::shown(end.at), end.status))).collect()
}

fn storms(posts: &[Post]) -> Vec<Violation> {
    let mut times: BTreeMap<(&str, &str), Vec<Micros>> = BTreeMap::new();
    for post in posts {
        times.entry((&post.path, &post.key)).or_default().push(post.at);
    }
    let most = |times: &[Micros]| {
        let in_window = |from: &Micros| times.iter().filter(|at| (*from..*from + WINDOW).contains(at)).count();
        // A storm is long: looking at its first posts is enough, and quick.
        times.iter().take(1000).map(in_window).max().unwrap_or_default()
    };
    let counts = times.iter().map(|(what, times)| (what, most(times)));
    let storms = counts.filter(|(_, n)| *n > POSTS_MAX);
    storms.map(|((path, key), n)| Violation::new(POSTS, format!("{path} {key}: {n} times within 10 s"))).collect()
}

/// Lines of one kind in one second, the worst second of each kind.
fn floods(log: &str) -> Vec<Violation> {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for line in log.lines() {
        let (at, said) = line.split_once(' ').unwrap_or(("", line));
        *counts.entry((at.split('.').next().unwrap_or(at), kind(said))).or_default() += 1;
    }
    let mut worst: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for ((second, kind), n) in &counts {
        let most = worst.entry(kind).or_default();
        *most = (*most).max((*n, second));
    }
    let is_of_merges = |kind: &str| kind.contains(" is merged into ") || kind.contains(" comes back: ");
    let most = |kind: &str| if is_of_merges(kind) { MERGES_MAX } else { LINES_MAX };
    let floods = worst.into_iter().filter(|(kind, (n, _))| *n > most(kind));
    floods
        .map(|(kind, (n, second))| Violation::new(LINES, format!("{n} lines in the second {second}: {kind}")))
        .collect()
}

/// A line without what differs from one to the next.
fn kind(line: &str) -> String {
    let word = |word: &str| if word.contains(|c: char| c.is_ascii_digit()) { "#".to_owned() } else { word.to_owned() };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn posts(n: u64, apart: Micros) -> Vec<Post> {
        let post = |k| Post {
            at: k * apart,
            path: "/notices".to_owned(),
            key: "7".to_owned(),
            body: Value::Null,
            is_taken: true,
        };
        (0..n).map(post).collect()
    }

    #[test]
    fn a_storm_is_found_and_patient_retries_are_not() {
        assert_eq!(storms(&posts(100, 2 * SECOND)), []);
        assert_eq!(storms(&posts(100, SECOND / 10)).len(), 1);
    }

    #[test]
    fn only_a_full_disk_excuses_a_daemon_that_ends() {
        let ends = |at| [SelfEnd { at, status: "exit status: 1".to_owned() }];
        assert_eq!(unexcused(&ends(5 * SECOND), &[]).len(), 1);
        let full = [(6 * SECOND, 7 * SECOND)];
        let found: Vec<usize> = [5, 6, 7, 16, 18].map(|at| unexcused(&ends(at * SECOND), &full).len()).to_vec();
        assert_eq!(found, [1, 0, 0, 0, 1]);
    }

    #[test]
    fn a_flood_of_lines_that_differ_only_in_numbers_is_found() {
        let line = |k: usize| format!("2026-11-18T12:00:00.{k}Z a pass failed: {k}");
        let log = |n: usize| (0..n).map(line).collect::<Vec<_>>().join("\n");
        assert_eq!(floods(&log(LINES_MAX)), []);
        assert_eq!(floods(&log(LINES_MAX + 1)).len(), 1);
    }
}
