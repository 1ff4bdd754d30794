//! Guards and the budget, told by hand: what the seeds find seldom.

use std::time::Duration;

use gt_sim::knobs::Knobs;
use gt_sim::people::sling_of;
use gt_sim::processes::Errand;
use gt_sim::scenario::Scenario;
use gt_sim::shortage::{GuardKnobs, Machine};

/// How long it takes to measure the machine.
const MEASURES: Duration = Duration::from_millis(1500);

/// A town that starts nothing on a busy machine.
fn town(knobs: Knobs) -> Scenario {
    let guards = GuardKnobs { load: 2, ..GuardKnobs::default() };
    Scenario::new(Knobs { heartbeat: 1800, guards, ..knobs })
}

/// The machine changes some time from now.
fn change_after(scenario: &Scenario, span: Duration, is_busy_first: bool) {
    let mut world = scenario.stage.world().lock();
    let at = world.uptime() + span;
    world.machine = Machine::changing(at, is_busy_first, MEASURES);
}

/// At whichever moment of a pass it recovers: before the claim, or after it, when the claim has started nothing.
#[test]
fn a_machine_that_recovers_during_a_pass_is_looked_at_again_soon() {
    for after in (0..12).map(|n| Duration::from_millis(700 * n)) {
        let mut scenario = town(Knobs::calm());
        let bead = scenario.bead("Work");
        let sling = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
        scenario.finish(sling);
        change_after(&scenario, after, true);
        scenario.launch(Errand::Daemon);
        scenario.settle();
        // Each time that it is measured is a wake-up, too.
        for _ in 0..12 {
            let now = scenario.stage.world().lock().uptime();
            let asleep = scenario.stage.next_wake().map_or(Duration::MAX, |wake| wake.saturating_sub(now));
            if scenario.running().is_empty() {
                assert!(asleep <= Duration::from_secs(5), "it sleeps for {asleep:?}:\n{}", scenario.story());
                scenario.pass(asleep);
                scenario.settle();
            }
        }
        assert_eq!(scenario.running().len(), 1, "{after:?}\n{}", scenario.story());
    }
}

/// Seed 56 of guards: a direct sling asks the machine, then sees to what lives; it claims by the machine as it is after that.
#[test]
fn a_direct_sling_goes_by_the_machine_as_it_is_when_it_claims() {
    for after in (1..8).map(|n| Duration::from_millis(700 * n)) {
        let mut scenario = town(Knobs { town: 0, ..Knobs::calm() });
        let bead = scenario.bead("Work");
        change_after(&scenario, after, false);
        let sling = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
        // The judge compares each claim with what was measured last before it.
        scenario.finish(sling);
    }
}
