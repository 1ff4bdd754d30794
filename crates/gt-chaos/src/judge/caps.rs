//! No two agents on one bead, turns of one session or runs of one job at once, no run twice, and no more than the caps.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, Violation};
use crate::clock::{self, Micros};
use crate::evidence::Line;
use crate::town::{LANE_CAP, RIG_CAP, RIGS, TOWN_CAP};

pub(super) fn judge(case: &Case) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (lines, promise) in [
        (&case.agents, "one agent at a time works on a bead"),
        (&case.turns, "one turn at a time runs in a session"),
        (&case.slots, "a job does not run beside itself"),
    ] {
        violations.extend(overlaps(lines, promise));
        violations.extend(repeats(lines));
    }
    case.tally.add("agents started", starts(&case.agents).count());
    let agents = intervals(&case.agents, &case.last_seen, |_| true);
    violations.extend(over_cap(agents, TOWN_CAP, "agents in the town"));
    for rig in RIGS {
        let agents = intervals(&case.agents, &case.last_seen, |line| line.rest == rig.name);
        violations.extend(over_cap(agents, RIG_CAP, "agents in a rig"));
    }
    let is_cron = |line: &Line| line.split_rest().0 != "-";
    let chats = intervals(&case.turns, &case.last_seen, |line| !is_cron(line));
    violations.extend(over_cap(chats, LANE_CAP, "turns in the lane main"));
    let mut jobs = intervals(&case.turns, &case.last_seen, is_cron);
    jobs.extend(intervals(&case.slots, &case.last_seen, |_| true));
    violations.extend(over_cap(jobs, LANE_CAP, "runs in the lane cron"));
    violations
}

fn starts(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| line.what == "start")
}

/// A script found the lock of its bead, session or job taken.
fn overlaps(lines: &[Line], promise: &'static str) -> Vec<Violation> {
    let doubles = lines.iter().filter(|line| line.what == "double");
    doubles
        .map(|line| {
            Violation::new(promise, format!("{} when run {} started: {}", line.subject, line.run, others(lines, line)))
        })
        .collect()
}

/// What else was written about the same subject shortly before.
fn others(lines: &[Line], double: &Line) -> String {
    let about =
        lines.iter().filter(|line| line.subject == double.subject && line.at <= double.at && line.run != double.run);
    let shown: Vec<String> = about
        .map(|line| format!("{} {} run {} process {}", clock::shown(line.at), line.what, line.run, line.pid))
        .collect();
    shown[shown.len().saturating_sub(4)..].join("; ")
}

fn repeats(lines: &[Line]) -> Vec<Violation> {
    let mut seen = BTreeSet::new();
    let twice = starts(lines).filter(|line| !seen.insert(&line.run));
    twice.map(|line| Violation::new("a run is started once", format!("run {} of {}", line.run, line.subject))).collect()
}

/// From when to when each run is known to have lived.
fn intervals(
    lines: &[Line],
    last_seen: &BTreeMap<String, Micros>,
    is_meant: impl Fn(&Line) -> bool,
) -> Vec<(Micros, Micros)> {
    let mut last_line: BTreeMap<&str, Micros> = BTreeMap::new();
    for line in lines {
        let last = last_line.entry(&line.run).or_default();
        *last = line.at.max(*last);
    }
    let end = |line: &Line| last_line[line.run.as_str()].max(last_seen.get(&line.run).copied().unwrap_or_default());
    starts(lines).filter(|line| is_meant(line)).map(|line| (line.at, end(line))).collect()
}

/// The worst moment at which more lived than may.
fn over_cap(intervals: Vec<(Micros, Micros)>, cap: usize, what: &'static str) -> Option<Violation> {
    let mut moments: Vec<(Micros, i32)> =
        intervals.into_iter().flat_map(|(start, end)| [(start, 1), (end, -1)]).collect();
    // At the same moment ends come first.
    moments.sort_unstable();
    let mut n_alive = 0;
    let alive = moments.into_iter().map(|(at, change)| {
        n_alive += change;
        (n_alive, at)
    });
    let (most, at) = alive.max()?;
    (most > cap as i32).then(|| {
        Violation::new(
            "caps hold",
            format!("{most} {what} at once, {cap} allowed, for example at {}", clock::shown(at)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: Micros, what: &str, subject: &str, run: &str) -> Line {
        let (what, subject, run) = (what.to_owned(), subject.to_owned(), run.to_owned());
        Line { at, what, subject, run, pid: 1, rest: "yard".to_owned() }
    }

    #[test]
    fn an_overlap_and_a_run_started_twice_are_found() {
        let lines = [
            line(1, "start", "ya-1", "r1"),
            line(2, "double", "ya-1", "r2"),
            line(3, "start", "ya-1", "r2"),
            line(9, "start", "ya-1", "r1"),
        ];
        let found = overlaps(&lines, "one at a time");
        assert_eq!(found.len(), 1);
        assert!(found[0].detail.contains("start run r1"), "{found:?}");
        assert_eq!(repeats(&lines).len(), 1);
        assert_eq!(repeats(&lines[..3]), []);
    }

    #[test]
    fn a_cap_is_broken_only_by_what_is_known_to_live_at_the_same_moment() {
        assert_eq!(over_cap(vec![(1, 5), (5, 9), (9, 12)], 1, "agents"), None);
        let found = over_cap(vec![(1, 6), (5, 9)], 1, "agents").expect("two lived at 5");
        assert!(found.detail.starts_with("2 agents at once, 1 allowed"), "{found:?}");
    }

    #[test]
    fn a_killed_run_lived_until_it_was_last_seen() {
        let lines = [line(1, "start", "ya-1", "r1"), line(4, "start", "ya-2", "r2"), line(7, "end", "ya-2", "r2")];
        let last_seen = BTreeMap::from([("r1".to_owned(), 5)]);
        assert_eq!(intervals(&lines, &last_seen, |_| true), [(1, 5), (4, 7)]);
    }
}
