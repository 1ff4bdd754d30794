//! What a clock that is set does to runs, told by hand: nothing.

use std::time::Duration;

use gt_core::run::RunState;
use gt_engine::daemon::Cause;
use gt_sim::knobs::Knobs;
use gt_sim::people::sling_of;
use gt_sim::processes::Errand;
use gt_sim::scenario::Scenario;
use jiff::SignedDuration;

use crate::found::with_silent_run;

/// Seed 209: a clock that was set back kept a silent run from being reported until it had caught up.
#[test]
fn a_silent_run_is_reported_though_the_clock_was_set_back() {
    let (mut scenario, _) = with_silent_run();
    scenario.launch(Errand::Daemon);
    scenario.settle();
    scenario.set_clock(SignedDuration::from_hours(-1));
    scenario.stage.tell_config();
    scenario.bead("Something that happens");
    scenario.settle();
    for _ in 0..3 {
        assert!(!scenario.story().contains("run.stopping"), "{}", scenario.story());
        scenario.pass(Duration::from_secs(61));
        scenario.settle();
    }
    let story = scenario.story();
    for rung in ["run.stalled", "run.interrupted", "run.stopping"] {
        assert!(story.contains(rung), "{story}");
    }
}

/// Seed 271: what was known of a run before the clock was set back counted as a sign of life once the clock had caught up.
#[test]
fn a_clock_that_has_caught_up_brings_no_sign_of_life() {
    let (mut scenario, run) = with_silent_run();
    scenario.launch(Errand::Daemon);
    scenario.settle();
    scenario.set_clock(SignedDuration::from_secs(-150));
    scenario.stage.tell_config();
    scenario.bead("Something that happens");
    scenario.settle();
    for rung in ["run.stalled", "run.interrupted"] {
        scenario.pass(Duration::from_secs(61));
        scenario.settle();
        assert!(scenario.story().contains(rung), "{}", scenario.story());
    }
    // The terminal echoes the interrupt.
    scenario.stage.world().lock().give_sign(&run, false);
    scenario.pass(Duration::from_secs(61));
    scenario.settle();
    assert!(scenario.story().contains("run.stopping"), "{}", scenario.story());
}

/// A run that nobody has looked at since it started is as old as it is, whatever is done to the clock.
#[test]
fn a_clock_that_is_set_ends_no_run_and_keeps_none() {
    for hours in [1, -1] {
        let mut scenario = Scenario::new(Knobs { max_run: 600, stall_after: 3_000, ..Knobs::calm() });
        let bead = scenario.bead("Work");
        let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
        scenario.finish(queue);
        scenario.launch(Errand::Daemon);
        scenario.settle();
        scenario.pass(Duration::from_secs(1)); // its start is recorded
        scenario.settle();
        assert_eq!(scenario.live_runs()[0].state, RunState::Working, "{}", scenario.story());
        scenario.set_clock(SignedDuration::from_hours(hours));
        scenario.stage.world().lock().post_all(|| Cause::ClockSet);
        scenario.settle();
        // Beside the daemon nobody judges by the clock.
        let command = scenario.launch(Errand::Run);
        scenario.finish(command);
        assert!(!scenario.story().contains("run.stopping"), "{}", scenario.story());
        scenario.pass(Duration::from_mins(10));
        scenario.settle();
        assert!(scenario.story().contains("run.stopping"), "{}", scenario.story());
    }
}
