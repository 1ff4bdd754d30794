//! Promises of the README that need a whole daemon: idle, it does nothing; on a machine without room it starts nothing.

use std::fs;
use std::sync::mpsc;
use std::time::Duration;

use crate::fleet::{FINISHES, Fleet};

/// How often any thread of a process has gone to sleep, as the kernel counts it: once for each time that it woke up.
fn n_wake_ups(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon runs");
    let of_task = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    tasks.flatten().map(of_task).sum()
}

/// After a write it looks again for a while, ever more rarely; what wakes it every few seconds would do so for ever.
#[test]
fn an_idle_daemon_sleeps() {
    const WATCHED: Duration = Duration::from_secs(6);
    const WINDOWS: usize = 20;
    let fleet = Fleet::with_cap(1, FINISHES);
    fleet.hold_lines(&[
        r#"{"id":"gt-1","title":"A person's","assignee":"ada","status":"in_progress"}"#,
        r#"{"id":"gt-2","title":"Blocked","dependencies":[{"issue_id":"gt-2","depends_on_id":"gt-1","type":"blocks"}]}"#,
    ]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-2"]).success();
    let (_sender, never) = mpsc::channel::<()>();
    let daemon = fleet.daemon_pid();
    let mut counts = vec![n_wake_ups(daemon)];
    let is_asleep = (0..WINDOWS).any(|_| {
        never.recv_timeout(WATCHED).unwrap_or_default();
        counts.push(n_wake_ups(daemon));
        counts.ends_with(&[counts[counts.len() - 2]; 2])
    });
    assert!(is_asleep, "it woke up in each {WATCHED:?}: {counts:?}\n{}", fleet.story());
    // It is not dead: what frees the bead wakes it.
    fleet.town.gt(["close", "gt-1"]).success();
    fleet.until_done(&["gt-2".to_owned()]);
}

#[test]
fn a_machine_without_room_holds_dispatch_and_says_so() {
    let fleet = Fleet::with_cap(1, FINISHES);
    fleet.hold(&["gt-1", "gt-2"]);
    fleet.start_daemon();
    for (bead, key, what) in [("gt-1", "guards.free_memory", "memory"), ("gt-2", "guards.free_disk", "disk")] {
        fleet.set(key, "1000000 GB");
        fleet.town.gt(["sling", bead]).success();
        let words = format!("of {what} are free, less than `{key}` = 1000000000 MB");
        let explained = fleet.town.gt(["explain", bead]);
        assert!(explained.success().stdout.contains(&words), "{explained}");
        // By hand it starts no more than by the daemon.
        let by_hand = fleet.town.gt(["scheduler", "run"]);
        assert!(by_hand.code == 5 && by_hand.stdout.contains(&words), "{by_hand}");
        assert!(!fleet.starts().contains(&bead.to_owned()), "{:?}", fleet.starts());
        fleet.set(key, "0 B");
        fleet.until_done(&[bead.to_owned()]);
    }
}
