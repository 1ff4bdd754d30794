//! The daemon killed at every point between a slot and the end of its run: nothing is lost, nothing runs twice. // SPEC K2

use gt_engine::crash::CrashPoint;

use super::{TICK, add, assert_each_once, await_fires, fires, ticking, ticks};
use crate::fleet::kill;

#[test]
fn a_one_shot_survives_a_daemon_that_is_killed_at_any_point() {
    for point in CrashPoint::CLOCK {
        let fleet = ticking();
        add(&fleet, &["reminder", "--at", "in 1s", "--run", TICK]);
        fleet.start_daemon_with(&[("GT_CRASH_AT", point.name())]);
        fleet.await_daemon_death();
        fleet.start_daemon();
        await_fires(&fleet, "reminder", "ok", 1);
        assert_eq!(ticks(&fleet).len(), 1, "{}", point.name());
        assert_eq!(fleet.town.gt(["cron", "list", "--json"]).stdout.trim(), "[]", "it has run, and is gone");
        fleet.town.assert_healthy();
    }
}

#[test]
fn a_run_that_is_killed_between_its_start_and_its_end_is_tried_again_as_the_same_slot() {
    let fleet = ticking();
    let wait = format!("{TICK}; [ \"$GT_ATTEMPT\" = 2 ] || while true; do sleep 0.05; done");
    add(&fleet, &["reminder", "--at", "in 1s", "--run", &wait]);
    fleet.start_daemon();
    fleet.await_trace("^tick reminder .* 1$", 1);
    fleet.kill_daemon();
    fleet.agents().iter().for_each(|agent| kill(agent.pid));
    fleet.start_daemon();
    await_fires(&fleet, "reminder", "ok", 1);
    let attempts: Vec<String> = ticks(&fleet).into_iter().map(|(_, _, attempt)| attempt).collect();
    assert_eq!(attempts, ["1", "2"]);
    let all = fires(&fleet, "reminder");
    assert_eq!(all.len(), 1, "one slot, one record: {all:?}");
    assert_eq!(all[0]["attempt"], 2, "{all:?}");
    assert_each_once(&fleet);
}
