//! An edit of the config that drops a cap, whatever is done to the clock meanwhile. // SPEC T5

use std::time::Duration;

use gt_sim::knobs::Knobs;
use gt_sim::people::sling_of;
use gt_sim::processes::Errand;
use gt_sim::scenario::Scenario;
use gt_store::Sling;
use jiff::SignedDuration;

/// A rig with a cap of one, and two beads that wait for it.
fn capped() -> Scenario {
    let mut scenario = Scenario::new(Knobs { rigs: [1, 0], heartbeat: 3600, ..Knobs::calm() });
    let beads = vec![scenario.bead("First"), scenario.bead("Second")];
    let queue = scenario.launch(Errand::Sling(Box::new(Sling { is_batch: true, ..sling_of(beads) })));
    scenario.finish(queue);
    scenario
}

fn uncapped() -> Knobs {
    Knobs { rigs: [0, 0], heartbeat: 3600, ..Knobs::calm() }
}

/// Lets a while pass; so many agents run then.
fn check(scenario: &mut Scenario, seconds: u64, n_running: usize) {
    scenario.pass(Duration::from_secs(seconds));
    scenario.settle();
    assert_eq!(scenario.running().len(), n_running, "{}", scenario.story());
}

#[test]
fn the_daemon_counts_the_seconds_itself_whatever_is_done_to_the_clock() {
    for jump in [0, 3600, -3600] {
        let mut scenario = capped();
        scenario.launch(Errand::Daemon);
        check(&mut scenario, 0, 1);
        scenario.stage.edit_config(uncapped());
        check(&mut scenario, 3, 1);
        scenario.set_clock(SignedDuration::from_secs(jump));
        check(&mut scenario, 6, 1);
        check(&mut scenario, 1, 2);
    }
}

#[test]
fn an_edit_that_is_taken_back_in_time_was_never_in_force() {
    let mut scenario = capped();
    scenario.launch(Errand::Daemon);
    check(&mut scenario, 0, 1);
    scenario.stage.edit_config(uncapped());
    check(&mut scenario, 9, 1);
    scenario.stage.edit_config(Knobs { rigs: [1, 0], ..uncapped() });
    check(&mut scenario, 60, 1);
    assert!(!scenario.story().contains("config.loosened"), "{}", scenario.story());
}

#[test]
fn each_further_edit_begins_the_wait_anew() {
    let mut scenario = capped();
    scenario.launch(Errand::Daemon);
    check(&mut scenario, 0, 1);
    for n in 0..3 {
        scenario.stage.edit_config(Knobs { attempts: 90 + n, ..uncapped() });
        check(&mut scenario, 9, 1);
    }
    check(&mut scenario, 1, 2);
}

#[test]
fn a_daemon_that_starts_in_the_meantime_waits_for_the_rest() {
    let mut scenario = capped();
    let daemon = scenario.launch(Errand::Daemon);
    check(&mut scenario, 0, 1);
    scenario.stage.edit_config(uncapped());
    check(&mut scenario, 4, 1);
    scenario.kill(daemon);
    check(&mut scenario, 3, 1);
    scenario.launch(Errand::Daemon);
    check(&mut scenario, 2, 1);
    check(&mut scenario, 1, 2);
}

#[test]
fn without_a_daemon_commands_go_by_the_files_time() {
    let mut scenario = capped();
    let run = |scenario: &mut Scenario| {
        let run = scenario.launch(Errand::Run);
        scenario.finish(run);
        scenario.running().len()
    };
    assert_eq!(run(&mut scenario), 1, "{}", scenario.story());
    scenario.stage.edit_config(uncapped());
    scenario.pass(Duration::from_secs(9));
    assert_eq!(run(&mut scenario), 1, "{}", scenario.story());
    scenario.pass(Duration::from_secs(1));
    assert_eq!(run(&mut scenario), 2, "{}", scenario.story());
}

#[test]
fn without_a_daemon_a_clock_that_was_set_back_makes_commands_wait_from_when_they_saw_it() {
    let mut scenario = capped();
    let run = |scenario: &mut Scenario| {
        let run = scenario.launch(Errand::Run);
        scenario.finish(run);
        scenario.running().len()
    };
    assert_eq!(run(&mut scenario), 1, "{}", scenario.story());
    scenario.stage.edit_config(uncapped());
    scenario.set_clock(SignedDuration::from_hours(-1));
    for _ in 0..2 {
        assert_eq!(run(&mut scenario), 1, "{}", scenario.story());
        scenario.pass(Duration::from_secs(6));
    }
    assert_eq!(run(&mut scenario), 2, "{}", scenario.story());
}

#[test]
fn a_broken_config_keeps_its_caps_for_a_daemon_that_starts_then() {
    let mut scenario = capped();
    scenario.stage.spoil_config();
    scenario.launch(Errand::Daemon);
    check(&mut scenario, 0, 1);
    check(&mut scenario, 60, 1);
}
