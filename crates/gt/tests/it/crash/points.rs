//! Daemon, direct sling and `gt scheduler run`, killed at each crash point at which the place of agents matters. // SPEC P6
//!
//! Each point is a test of its own, so that they run side by side. The points at which only the store matters are in
//! `crash/anywhere.rs`. Which actor passes which point is a table here, and a point that an actor does not pass must
//! leave it alive.

use std::os::unix::process::ExitStatusExt as _;

use gt_engine::crash::CrashPoint;

use super::{SIGKILL, WAITS, assert_done_once};
use crate::fleet::{FINISHES, Fleet, count};
use crate::place;

/// A module with one test per crash point.
macro_rules! one_test_per_point {
    ($module:ident, $check:path: $($test:ident => $point:ident),+ $(,)?) => {
        pub(crate) mod $module {
            #[allow(dead_code, reason = "one of the test binaries looks whether all points are tried")]
            pub(crate) const POINTS: &[gt_engine::crash::CrashPoint] = &[$(gt_engine::crash::CrashPoint::$point),+];
            $(
                #[test]
                fn $test() {
                    $check(gt_engine::crash::CrashPoint::$point);
                }
            )+
        }
    };
}
#[allow(unused_imports, reason = "one of the test binaries has more tests")]
pub(crate) use one_test_per_point;

/// Dies at a point the first time, the second, and so on; as often as the place is worth it.
fn each_time(point: CrashPoint, times: usize, mut dies: impl FnMut(usize, &str)) {
    for nth in 1..=times.min(place::TIMES) {
        dies(nth, &format!("{}:{nth}", point.name()));
    }
}

/// Three beads, the last of which waits for the first.
fn three_beads(fleet: &Fleet) -> [String; 3] {
    let first = fleet.town.create(&["First", "--rig", "shop"]);
    let second = fleet.town.create(&["Second", "--rig", "shop"]);
    let third = fleet.town.create(&["Third", "--rig", "shop", "--blocked-by", &first]);
    [first, second, third]
}

/// Daemon: with one slot and three beads it comes by each of its points three times.
fn daemon_passes(point: CrashPoint) -> bool {
    // It does not schedule, and it does not wake itself.
    !matches!(point, CrashPoint::Committed | CrashPoint::Scheduled)
}

fn kill_daemon_at(point: CrashPoint, order: &str, isolation: &str) {
    let fleet = Fleet::with_cap(1, FINISHES);
    fleet.set("rigs.shop.isolation", isolation);
    let beads = three_beads(&fleet);
    fleet.town.gt(["sling", &beads[0], &beads[1], &beads[2]]).success();
    fleet.start_daemon_with(&[("GT_CRASH_AT", order)]);
    if daemon_passes(point) {
        fleet.await_daemon_death();
        fleet.start_daemon();
    }
    assert_done_once(&fleet, &beads);
    assert!(fleet.daemon_lives(), "{order}");
}

pub(crate) fn kill_daemon(point: CrashPoint) {
    each_time(point, 3, |_, order| kill_daemon_at(point, order, "none"));
}

pub(crate) fn kill_daemon_around_worktrees(point: CrashPoint) {
    each_time(point, 2, |_, order| kill_daemon_at(point, order, "worktree"));
}

/// A command that dispatches: a first bead has been run and its end not yet been recorded; three more are to start,
/// one after the other, and their agents wait.
struct Scene {
    fleet: Fleet,
    early: String,
    beads: [String; 3],
}

impl Scene {
    fn new(cap: &str, isolation: &str) -> Scene {
        let fleet = Fleet::new("while [ ! -e \"$HOME/early\" ]; do sleep 0.02; done; gt done --no-changes");
        fleet.set("scheduler.max_polecats", cap);
        fleet.set("scheduler.spawn_delay", "1ms");
        fleet.set("rigs.shop.isolation", isolation);
        let early = fleet.town.create(&["Early", "--rig", "shop"]);
        fleet.town.gt(["sling", &early]).success();
        fleet.town.gt(["scheduler", "run"]).success();
        // Without a keeper nobody hears of its end before the command looks.
        fleet.kill_keepers();
        fleet.open_gate("early");
        fleet.until_seen("the early agent's end", || fleet.agents().is_empty());
        fleet.script(WAITS);
        let first = fleet.town.create(&["First", "--rig", "shop"]);
        let second = fleet.town.create(&["Second", "--rig", "shop"]);
        let third = fleet.town.create(&["Third", "--rig", "shop"]);
        Scene { fleet, early, beads: [first, second, third] }
    }

    /// Runs a command that is to die at a point; says whether it did.
    fn is_killed(&self, arguments: &[&str], order: &str) -> bool {
        let child = self.fleet.town.call(arguments).env("GT_CRASH_AT", order).spawn();
        let output = child.wait_with_output().expect("the binary can be waited for");
        let is_killed = output.status.signal() == Some(SIGKILL);
        assert!(is_killed || output.status.success(), "{order}: {output:?}");
        is_killed
    }

    /// A daemon finds everything as it was left, and brings it to an end.
    fn recover(&self) {
        self.fleet.open_gate("gate");
        self.fleet.start_daemon();
        let all: Vec<String> = [&self.early].into_iter().chain(&self.beads).cloned().collect();
        assert_done_once(&self.fleet, &all);
    }
}

/// Sling in direct mode: how often it comes by, at least; it schedules once, and sees one end.
fn sling_passes(point: CrashPoint) -> usize {
    match point {
        CrashPoint::Scheduled | CrashPoint::SawEnds | CrashPoint::RecordedEnds | CrashPoint::Acknowledged => 1,
        // The first bead is claimed by the sling itself.
        _ => 2,
    }
}

fn kill_sling_at(point: CrashPoint, nth: usize, order: &str, isolation: &str) {
    let scene = Scene::new("-1", isolation);
    let [first, second, third] = &scene.beads;
    let is_killed = scene.is_killed(&["sling", first, second, third], order);
    // Between its spaced starts others may pass too, and take one of the beads.
    let is_shared = nth == 2 && matches!(point, CrashPoint::Claimed | CrashPoint::Prepared | CrashPoint::Launched);
    // Where others have to be asked, the early end may be seen by a later pass.
    let is_exact = !place::KEEPS_STATUS;
    assert!(!is_exact || is_shared || is_killed == (nth <= sling_passes(point)), "{order}");
    let is_scheduled = count(&scene.fleet.town.events(), "context.scheduled", Some(first)) == 1;
    // Its first commit is the record of the early end, and those before the sling are all that is left out.
    let before = [CrashPoint::Committed, CrashPoint::SawEnds, CrashPoint::RecordedEnds, CrashPoint::Acknowledged];
    let is_before = nth == 1 && before.contains(&point);
    assert!(!is_exact || is_scheduled != is_before, "{order}");
    if !is_scheduled {
        scene.fleet.set("queue.enabled", "true");
        scene.fleet.set("queue.spawn_delay", "0s");
        scene.fleet.town.gt(["queue", first, second, third]).success();
    }
    scene.recover();
}

pub(crate) fn kill_sling(point: CrashPoint) {
    each_time(point, 2, |nth, order| kill_sling_at(point, nth, order, "none"));
}

pub(crate) fn kill_sling_around_worktrees(point: CrashPoint) {
    kill_sling_at(point, 1, point.name(), "worktree");
}

/// `gt scheduler run`: how often it comes by, at least, with three beads to start.
fn run_passes(point: CrashPoint) -> usize {
    match point {
        CrashPoint::Scheduled => 0,
        CrashPoint::SawEnds | CrashPoint::RecordedEnds | CrashPoint::Acknowledged => 1,
        _ => 2,
    }
}

fn kill_run_at(point: CrashPoint, nth: usize, order: &str, isolation: &str) {
    let scene = Scene::new("5", isolation);
    let [first, second, third] = &scene.beads;
    scene.fleet.town.gt(["sling", first, second, third]).success();
    let is_killed = scene.is_killed(&["scheduler", "run"], order);
    assert!(place::KEEPS_STATUS || is_killed == (nth <= run_passes(point)), "{order}");
    scene.recover();
}

pub(crate) fn kill_run(point: CrashPoint) {
    each_time(point, 2, |nth, order| kill_run_at(point, nth, order, "none"));
}

pub(crate) fn kill_run_around_worktrees(point: CrashPoint) {
    kill_run_at(point, 2, &format!("{}:2", point.name()), "worktree");
}

one_test_per_point!(a_killed_daemon_has_lost_and_doubled_nothing, super::kill_daemon:
    at_prepared => Prepared,
    at_launched => Launched,
    at_recorded_start => RecordedStart,
    at_saw_ends => SawEnds,
    at_recorded_ends => RecordedEnds,
    at_acknowledged => Acknowledged,
);

one_test_per_point!(a_killed_daemon_leaves_no_worktree_that_is_not_known, super::kill_daemon_around_worktrees:
    at_prepared => Prepared,
    at_launched => Launched,
    at_saw_ends => SawEnds,
);

one_test_per_point!(a_killed_direct_sling_has_lost_and_doubled_nothing, super::kill_sling:
    at_launched => Launched,
    at_recorded_start => RecordedStart,
    at_saw_ends => SawEnds,
    at_recorded_ends => RecordedEnds,
    at_acknowledged => Acknowledged,
);

one_test_per_point!(a_killed_direct_sling_leaves_no_worktree_that_is_not_known, super::kill_sling_around_worktrees:
    at_launched => Launched,
);

one_test_per_point!(a_killed_scheduler_run_has_lost_and_doubled_nothing, super::kill_run:
    at_launched => Launched,
    at_recorded_start => RecordedStart,
    at_saw_ends => SawEnds,
    at_recorded_ends => RecordedEnds,
    at_acknowledged => Acknowledged,
);

one_test_per_point!(a_killed_scheduler_run_leaves_no_worktree_that_is_not_known, super::kill_run_around_worktrees:
    at_launched => Launched,
);
