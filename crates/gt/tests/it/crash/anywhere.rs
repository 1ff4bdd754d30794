//! Killed where only the store matters, not where agents run; one of the test binaries has these tests. // SPEC P6

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use gt_engine::crash::CrashPoint;

use crate::crash::points::one_test_per_point;
use crate::crash::{SIGKILL, WAITS, assert_done_once, points, sling_many};
use crate::fleet::{FINISHES, Fleet, count};
use crate::town::GT;

one_test_per_point!(a_killed_daemon_has_lost_and_doubled_nothing, super::points::kill_daemon:
    at_committed => Committed,
    at_scheduled => Scheduled,
    at_claimed => Claimed,
);

one_test_per_point!(a_killed_daemon_leaves_no_worktree_that_is_not_known, super::points::kill_daemon_around_worktrees:
    at_claimed => Claimed,
    at_recorded_start => RecordedStart,
    at_recorded_ends => RecordedEnds,
    at_acknowledged => Acknowledged,
);

one_test_per_point!(a_killed_direct_sling_has_lost_and_doubled_nothing, super::points::kill_sling:
    at_committed => Committed,
    at_scheduled => Scheduled,
    at_claimed => Claimed,
    at_prepared => Prepared,
);

one_test_per_point!(a_killed_direct_sling_leaves_no_worktree_that_is_not_known, super::points::kill_sling_around_worktrees:
    at_claimed => Claimed,
    at_prepared => Prepared,
    at_recorded_start => RecordedStart,
);

one_test_per_point!(a_killed_scheduler_run_has_lost_and_doubled_nothing, super::points::kill_run:
    at_committed => Committed,
    at_scheduled => Scheduled,
    at_claimed => Claimed,
    at_prepared => Prepared,
);

one_test_per_point!(a_killed_scheduler_run_leaves_no_worktree_that_is_not_known, super::points::kill_run_around_worktrees:
    at_claimed => Claimed,
    at_prepared => Prepared,
);

#[test]
fn every_actor_is_killed_at_every_point() {
    for (actor, here, placed) in [
        (
            "daemon",
            a_killed_daemon_has_lost_and_doubled_nothing::POINTS,
            points::a_killed_daemon_has_lost_and_doubled_nothing::POINTS,
        ),
        (
            "direct sling",
            a_killed_direct_sling_has_lost_and_doubled_nothing::POINTS,
            points::a_killed_direct_sling_has_lost_and_doubled_nothing::POINTS,
        ),
        (
            "scheduler run",
            a_killed_scheduler_run_has_lost_and_doubled_nothing::POINTS,
            points::a_killed_scheduler_run_has_lost_and_doubled_nothing::POINTS,
        ),
    ] {
        let tried: Vec<&str> = here.iter().chain(placed).map(|point| point.name()).collect();
        let all: Vec<&str> = CrashPoint::DISPATCH.iter().map(|point| point.name()).collect();
        assert_eq!(tried, all, "{actor}");
    }
}

#[test]
fn a_sling_killed_before_it_could_wake_the_daemon_is_heard_all_the_same() {
    let fleet = Fleet::with_cap(2, FINISHES);
    // No patrol finds it.
    fleet.set("daemon.heartbeat", "1h");
    fleet.start_daemon();
    let bead = fleet.town.create(&["Quiet", "--rig", "shop"]);
    let child = fleet.town.call(["sling", &bead]).env("GT_CRASH_AT", CrashPoint::Committed.name()).spawn();
    let output = child.wait_with_output().expect("the binary can be waited for");
    assert_eq!(output.status.signal(), Some(SIGKILL));
    fleet.until_events("run.started", Some(&bead), 1);
    assert_done_once(&fleet, &[bead]);
}

#[test]
fn work_whose_end_was_reported_by_a_command_that_was_killed_is_followed_by_the_next() {
    let fleet = Fleet::with_cap(
        2,
        "GT_CRASH_AT=committed gt done --no-changes; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done",
    );
    fleet.start_daemon();
    let first = fleet.town.create(&["First", "--rig", "shop"]);
    let second = fleet.town.create(&["Second", "--rig", "shop", "--blocked-by", &first]);
    fleet.town.gt(["sling", &first, &second]).success();
    // The first agent does not end, so nothing but the watch on the store can tell.
    fleet.until_events("run.started", Some(&second), 1);
    fleet.open_gate("gate");
    assert_done_once(&fleet, &[first, second]);
}

#[test]
fn a_second_daemon_waits_and_takes_over_when_the_first_is_killed() {
    let fleet = Fleet::with_cap(2, WAITS);
    let beads = sling_many(&fleet, 5);
    fleet.start_daemon();
    fleet.until_seen("two agents at work", || fleet.starts().len() == 2);
    let mut command = fleet.town.command(GT);
    command.args(["daemon", "run", "--wait"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut second = command.spawn().expect("the binary can be started");
    let mut log = BufReader::new(second.stdout.take().expect("its output is a pipe")).lines();
    let said = log.next().expect("it says something").expect("that is text");
    let holder = fleet.daemon_pid();
    let third = fleet.town.gt(["daemon", "run"]);
    assert!(third.stderr.contains(&format!("error: a daemon runs this town already (process {holder})")), "{third}");
    assert_eq!(third.code, 1, "{third}");
    assert!(said.contains(&format!("another daemon (process {holder}) runs this town; waiting")), "{said}");
    assert_eq!(count(&fleet.town.events(), "daemon.started", None), 1);
    fleet.kill_daemon();
    let said = log.next().expect("it says something").expect("that is text");
    assert!(said.contains("running"), "{said}");
    fleet.open_gate("gate");
    fleet.until_done(&beads);
    let mut started = fleet.starts();
    started.sort();
    assert_eq!(started, beads);
    fleet.assert_at_rest(&beads);
    second.kill().expect("it runs");
    second.wait().expect("it can be waited for");
}
