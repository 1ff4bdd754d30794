//! What seeds have found, told again by hand, so that it stays found when the seeds mean something else.

use std::time::Duration;

use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::rig::RigState;
use gt_core::run::{Outcome, RunState};
use gt_core::status::Status;
use gt_engine::daemon::Cause;
use gt_runtime::StartError;
use gt_runtime::simulated::StartOutcome;
use gt_sim::agents::Line;
use gt_sim::knobs::Knobs;
use gt_sim::people::sling_of;
use gt_sim::processes::Errand;
use gt_sim::scenario::Scenario;
use gt_store::{BeadPatch, NewConvoy, Sling};
use jiff::SignedDuration;

/// A town whose starts are given up after a minute.
fn town() -> Scenario {
    Scenario::new(Knobs { town: 2, start_timeout: 60, cooldown: 0, ..Knobs::calm() })
}

/// A scheduled bead, and a command that has claimed it and is about to start it.
fn about_to_start(scenario: &mut Scenario) -> (String, u32) {
    let bead = scenario.bead("Work");
    let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead.clone()]))));
    scenario.finish(queue);
    let starter = scenario.launch(Errand::Run);
    scenario.step_until(starter, |scenario| !scenario.live_runs().is_empty());
    (bead, starter)
}

/// Seed 129: one daemon gives a start up as too late while another one makes it, and the agent says that it is done.
#[test]
fn a_run_that_has_spoken_is_not_recorded_as_never_started() {
    let mut scenario = town();
    scenario.stage.world().lock().faults.broken_turn = true;
    let (bead, starter) = about_to_start(&mut scenario);
    scenario.pass(Duration::from_secs(61));
    // The other one has looked, and found nothing that runs.
    let judge = scenario.launch(Errand::Run);
    scenario.step_until(judge, |scenario| scenario.story().contains("surveys"));
    scenario.step_until(starter, |scenario| !scenario.running().is_empty());
    let run = scenario.running()[0].clone();
    assert_eq!(scenario.say(&run, Outcome::Completed), Ok(true));
    scenario.finish(judge);
    scenario.finish(starter);
    scenario.end(&run, 0);
    let last = scenario.launch(Errand::Run);
    scenario.finish(last);
    let runs = scenario.runs_of(&bead);
    assert_eq!((runs.len(), runs[0].outcome), (1, Some(Outcome::Completed)), "{}", scenario.story());
}

/// Seed 130: a person takes the worker's name off a bead; its run never starts, and the bead stays on a hook for ever.
#[test]
fn a_bead_whose_assignee_was_taken_off_is_free_again_when_its_run_ends() {
    let mut scenario = town();
    let (bead, starter) = about_to_start(&mut scenario);
    let unassign = BeadPatch { assignee: Some(None), ..BeadPatch::default() };
    let stamp = scenario.stage.stamp("ann");
    scenario.stage.store.update_bead(&bead, &unassign, &stamp).expect("a person may do this");
    scenario.finish(starter);
    let run = scenario.running()[0].clone();
    scenario.end(&run, 1);
    let recovery = scenario.launch(Errand::Run);
    scenario.finish(recovery);
    let runs = scenario.runs_of(&bead);
    assert_eq!(runs.len(), 2, "it is tried again:\n{}", scenario.story());
}

/// Seed 3880: the clock is set back between two looks at it, and what is being started is started once more.
#[test]
fn a_clock_that_is_set_back_during_a_look_starts_nothing_twice() {
    let mut scenario = town();
    let bead = {
        let mut bead = gt_core::bead::Bead::new("", "In a worktree");
        bead.issue_type = Some("task".to_owned());
        let stamp = scenario.stage.stamp("ann");
        let new = gt_store::NewBead { prefix: "ml".to_owned(), parent: None, bead };
        scenario.stage.store.create_bead(&new, &stamp).expect("nothing is wrong with it")
    };
    let daemon = scenario.launch(Errand::Daemon);
    scenario.settle();
    let stamp = scenario.stage.stamp("ann");
    scenario.stage.store.sling(&sling_of(vec![bead.clone()]), None, &stamp).expect("nothing is wrong with it");
    // Claimed, and its worktree is being made.
    scenario.finish(daemon);
    assert_eq!(scenario.runs_of(&bead)[0].state, RunState::Starting);
    scenario.pass(Duration::from_secs(61));
    let n_surveys = surveys(&scenario);
    scenario.step_until(daemon, |scenario| surveys(scenario) > n_surveys);
    scenario.set_clock(SignedDuration::from_secs(-60));
    scenario.settle();
    let prepared = scenario.story().lines().filter(|line| line.contains("prepares")).count();
    assert_eq!(prepared, 1, "{}", scenario.story());
}

fn surveys(scenario: &Scenario) -> usize {
    scenario.story().lines().filter(|line| line.contains("surveys")).count()
}

/// A start is given up as too late, is made after all, and its starter dies before it can take it back.
#[test]
fn an_agent_whose_start_was_given_up_does_not_run_on_unknown() {
    let mut scenario = town();
    scenario.stage.world().lock().faults.broken_turn = true;
    let (bead, starter) = about_to_start(&mut scenario);
    scenario.pass(Duration::from_secs(61));
    let other = scenario.launch(Errand::Run);
    scenario.finish(other);
    let given_up = scenario.runs_of(&bead).pop().expect("it was claimed");
    assert_eq!(given_up.outcome, Some(Outcome::NotStarted), "{}", scenario.story());
    scenario.step_until(starter, |scenario| scenario.running().contains(&given_up.id));
    scenario.kill(starter);
    let daemon = scenario.launch(Errand::Daemon);
    scenario.settle();
    assert!(!scenario.is_over(daemon));
    assert!(!scenario.running().contains(&given_up.id), "nobody waits for it:\n{}", scenario.story());
}

/// Two commands that start at once keep the distance that the settings ask for, as one pass does.
#[test]
fn a_direct_sling_keeps_its_distance_from_the_one_before() {
    let mut scenario = Scenario::new(Knobs { town: 0, spawn_delay: 5, ..Knobs::calm() });
    for title in ["First", "Second"] {
        let bead = scenario.bead(title);
        let sling = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
        scenario.finish(sling);
    }
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
    scenario.pass(Duration::from_secs(5));
    scenario.settle();
    assert_eq!(scenario.running().len(), 2, "{}", scenario.story());
}

/// Seed 734: a start is given up as too late; the clock is set back, so to its starter it does not seem late at all.
#[test]
fn an_agent_whose_start_was_given_up_is_stopped_whatever_the_clock_says_by_then() {
    let mut scenario = town();
    scenario.stage.world().lock().faults.broken_turn = true;
    let daemon = scenario.launch(Errand::Daemon);
    scenario.settle();
    let bead = scenario.bead("Work");
    let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead.clone()]))));
    scenario.finish(queue);
    scenario.step_until(daemon, |scenario| !scenario.live_runs().is_empty());
    scenario.pass(Duration::from_secs(61));
    let other = scenario.launch(Errand::Run);
    scenario.finish(other);
    let given_up = scenario.runs_of(&bead).pop().expect("it was claimed");
    assert_eq!(given_up.outcome, Some(Outcome::NotStarted), "{}", scenario.story());
    scenario.set_clock(SignedDuration::from_secs(-60));
    scenario.step_until(daemon, |scenario| scenario.running().contains(&given_up.id));
    scenario.settle();
    scenario.pass(Duration::from_millis(100));
    scenario.settle();
    assert!(!scenario.running().contains(&given_up.id), "nobody waits for it:\n{}", scenario.story());
}

/// The keeper dies just when a run is to be stopped: the order is given again.
#[test]
fn a_stop_that_the_keeper_did_not_hear_is_repeated() {
    let mut scenario = Scenario::new(Knobs { town: 2, max_run: 600, ..Knobs::calm() });
    let bead = scenario.bead("Work");
    let daemon = scenario.launch(Errand::Daemon);
    let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
    scenario.finish(queue);
    scenario.settle();
    let run = scenario.running()[0].clone();
    scenario.pass(Duration::from_millis(100));
    scenario.settle();
    scenario.pass(Duration::from_secs(601));
    // It is found to run for too long, and the order is stored.
    scenario.step_until(daemon, |scenario| scenario.story().contains("event run.stopping"));
    scenario.stage.world().lock().faults.deaf_keeper = 1;
    scenario.step_until(daemon, |scenario| scenario.story().contains("a pass failed"));
    scenario.stage.world().lock().faults.deaf_keeper = 0;
    scenario.finish(daemon);
    scenario.pass(Duration::from_secs(1));
    scenario.settle();
    assert_eq!(scenario.stage.ground.runtime.stopping(), [run], "{}", scenario.story());
}

/// A deferral ends while the daemon is late to record a start: it wakes once for both.
#[test]
fn a_deadline_that_comes_while_a_start_waits_to_be_recorded_is_not_lost() {
    let mut scenario = Scenario::new(Knobs { town: 4, heartbeat: 3600, ..Knobs::calm() });
    let (deferred, other) = (scenario.bead("Deferred"), scenario.bead("Other"));
    let stamp = scenario.stage.stamp("ann");
    let until = Some(Some(stamp.now + SignedDuration::from_millis(20)));
    let patch = BeadPatch { defer_until: until, ..BeadPatch::default() };
    scenario.stage.store.update_bead(&deferred, &patch, &stamp).expect("a person may do this");
    let both = vec![deferred, other];
    let queue = scenario.launch(Errand::Sling(Box::new(gt_store::Sling { is_batch: true, ..sling_of(both) })));
    scenario.finish(queue);
    scenario.launch(Errand::Daemon);
    scenario.settle();
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
    // By the time it wakes up both are due.
    scenario.pass(Duration::from_millis(60));
    scenario.settle();
    assert_eq!(scenario.running().len(), 2, "{}", scenario.story());
}

/// A config is replaced right after a start, and the daemon is told of it only after it has seen it by itself.
#[test]
fn a_config_that_is_seen_before_it_is_told_of_still_leads_to_a_pass() {
    let mut scenario = Scenario::new(Knobs { town: 1, heartbeat: 3600, ..Knobs::calm() });
    let beads = vec![scenario.bead("First"), scenario.bead("Second")];
    let queue = scenario.launch(Errand::Sling(Box::new(gt_store::Sling { is_batch: true, ..sling_of(beads) })));
    scenario.finish(queue);
    scenario.launch(Errand::Daemon);
    scenario.settle();
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
    let wider = Knobs { town: 2, heartbeat: 3600, ..Knobs::calm() };
    scenario.stage.write_config(wider);
    // Late enough for the start to be recorded by itself; of the config it is told after that.
    scenario.pass(Duration::from_millis(60));
    scenario.settle();
    scenario.stage.tell_config();
    scenario.settle();
    assert_eq!(scenario.running().len(), 2, "{}", scenario.story());
}

/// In a town with a daemon a direct sling does not wait for its turn to start something: that is the daemon's.
#[test]
fn a_direct_sling_does_not_wait_for_starts_that_the_daemon_will_make() {
    let mut scenario = Scenario::new(Knobs { town: 0, spawn_delay: 5, ..Knobs::calm() });
    let daemon = scenario.launch(Errand::Daemon);
    scenario.settle();
    for title in ["First", "Second", "Third"] {
        let bead = scenario.bead(title);
        let sling = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
        scenario.finish(sling);
        assert!(scenario.is_over(sling), "{}", scenario.story());
    }
    for n_running in 1..=3 {
        scenario.settle();
        assert_eq!(scenario.running().len(), n_running, "{}", scenario.story());
        scenario.pass(Duration::from_secs(5));
    }
    assert!(!scenario.is_over(daemon));
}

/// Seed 7787: a broken circuit comes due while starts keep their distance; its try comes when the distance is kept.
#[test]
fn a_try_that_comes_due_too_soon_after_a_start_is_not_lost() {
    let knobs = Knobs { spawn_delay: 5, max_failures: 1, breaker_reset: 60, heartbeat: 3600, ..Knobs::calm() };
    let mut scenario = Scenario::new(knobs);
    let (broken, other) = (scenario.bead("Broken"), scenario.bead("Other"));
    let cause = "not today".to_owned();
    scenario.stage.ground.runtime.expect_start([StartOutcome::Fails(StartError::Failed { cause })]);
    scenario.launch(Errand::Daemon);
    for (bead, span) in [(broken, 57), (other, 3)] {
        let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
        scenario.finish(queue);
        scenario.settle();
        scenario.pass(Duration::from_secs(span));
    }
    scenario.settle();
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
    scenario.pass(Duration::from_secs(2));
    scenario.settle();
    assert_eq!(scenario.running().len(), 2, "{}", scenario.story());
}

/// Seed 444: a direct sling waits between its starts, and meanwhile a cap is set: what is left is the daemon's.
#[test]
fn a_cap_that_is_set_between_the_starts_of_a_direct_sling_ends_its_pass() {
    let mut scenario = Scenario::new(Knobs { town: 0, spawn_delay: 5, ..Knobs::calm() });
    let beads = vec![scenario.bead("First"), scenario.bead("Second")];
    let sling = Sling { is_batch: true, ..sling_of(beads) };
    let sling = scenario.launch(Errand::Sling(Box::new(sling)));
    scenario.step_until(sling, |scenario| !scenario.running().is_empty());
    scenario.stage.configure(Knobs { town: 4, ..Knobs::calm() });
    scenario.settle();
    scenario.pass(Duration::from_secs(5));
    scenario.finish(sling);
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
}

/// Starts that keep their distance are still one batch: what it leaves waits for the next cause.
#[test]
fn a_batch_bounds_starts_that_keep_their_distance() {
    let mut scenario = Scenario::new(Knobs { town: 8, batch: 2, spawn_delay: 5, heartbeat: 600, ..Knobs::calm() });
    let beads = (0..5).map(|n| scenario.bead(&format!("Work {n}"))).collect();
    let queue = scenario.launch(Errand::Sling(Box::new(Sling { is_batch: true, ..sling_of(beads) })));
    scenario.finish(queue);
    scenario.launch(Errand::Daemon);
    for n_running in [1, 2, 2] {
        scenario.settle();
        assert_eq!(scenario.running().len(), n_running, "{}", scenario.story());
        scenario.pass(Duration::from_secs(5));
    }
    let count = |scenario: &mut Scenario| {
        let now = scenario.stage.world().now();
        scenario.stage.store.scheduler_state(now).expect("it can be read").last_dispatch_count
    };
    assert_eq!(count(&mut scenario), Some(2));
    // An end is a cause, and begins the next.
    let first = scenario.running()[0].clone();
    scenario.say(&first, Outcome::Completed).expect("it is heard");
    scenario.end(&first, 0);
    for n_running in [2, 3, 3] {
        scenario.settle();
        assert_eq!(scenario.running().len(), n_running, "{}", scenario.story());
        scenario.pass(Duration::from_secs(5));
    }
    // So is the patrol.
    scenario.pass(Duration::from_mins(10));
    scenario.settle();
    assert_eq!((scenario.running().len(), count(&mut scenario)), (4, Some(1)), "{}", scenario.story());
}

/// One commit is heard of twice, by the file that was written and by the bell, and an agent says something: one batch.
#[test]
fn what_was_heard_of_twice_is_one_batch() {
    let knobs = Knobs { town: 8, batch: 2, spawn_delay: 5, heartbeat: 600, ..Knobs::calm() };
    let mut scenario = Scenario::new(knobs);
    let daemon = scenario.launch(Errand::Daemon);
    scenario.settle();
    let beads = (0..5).map(|n| scenario.bead(&format!("Work {n}"))).collect();
    let queue = scenario.launch(Errand::Sling(Box::new(Sling { is_batch: true, ..sling_of(beads) })));
    scenario.finish(queue);
    scenario.settle();
    for cause in [Cause::News, Cause::StoreWritten, Cause::Told] {
        scenario.stage.world().lock().post(daemon, cause);
        scenario.settle();
    }
    for n_running in [1, 2, 2, 2] {
        assert_eq!(scenario.running().len(), n_running, "{}", scenario.story());
        scenario.pass(Duration::from_secs(5));
        scenario.settle();
    }
}

/// Seed 40: after a clock was set back, what only a sweep finds waited until the clock had caught up.
#[test]
fn a_clock_that_is_set_back_holds_up_no_sweep() {
    let mut scenario = town();
    let bead = scenario.bead("Work");
    let stamp = scenario.stage.stamp("ann");
    scenario.stage.store.set_rig_state("shop", RigState::Parked, EventType::RigParked, &stamp).expect("it is parked");
    let new = NewConvoy { title: "Together".to_owned(), members: vec![bead], ..NewConvoy::default() };
    scenario.stage.store.create_convoy(&new, &stamp).expect("its bead is there");
    scenario.launch(Errand::Daemon);
    scenario.settle();
    scenario.set_clock(SignedDuration::from_hours(-1));
    let stamp = scenario.stage.stamp("ann");
    scenario.stage.store.set_rig_state("shop", RigState::Active, EventType::RigUnparked, &stamp).expect("it is free");
    scenario.settle();
    scenario.pass(Duration::from_secs(30));
    scenario.settle();
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
}

/// Seed 182: a run that was claimed and finished an hour ahead, by a clock that was set back then, was left alone for that hour.
#[test]
fn an_agent_that_finished_before_the_clock_was_set_back_does_not_linger() {
    let mut scenario = town();
    scenario.set_clock(SignedDuration::from_hours(1));
    let bead = scenario.bead("Work");
    scenario.launch(Errand::Daemon);
    let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead]))));
    scenario.finish(queue);
    scenario.settle();
    let run = scenario.running()[0].clone();
    scenario.say(&run, Outcome::Completed).expect("it is heard");
    scenario.set_clock(SignedDuration::from_hours(-1));
    scenario.settle();
    scenario.pass(Duration::from_secs(30));
    scenario.settle();
    assert_eq!(scenario.stage.ground.runtime.stopping(), [run], "{}", scenario.story());
}

/// Seed 3170: a rig took work again after a sweep had looked and before it noted how much of the log it knew.
#[test]
fn what_happens_while_a_sweep_looks_is_for_the_next_one() {
    for n_moves in 0.. {
        let mut scenario = town();
        let bead = scenario.bead("Work");
        let stamp = scenario.stage.stamp("ann");
        let store = &mut scenario.stage.store;
        store.set_rig_state("shop", RigState::Parked, EventType::RigParked, &stamp).expect("it is parked");
        let new = NewConvoy { title: "Together".to_owned(), members: vec![bead], ..NewConvoy::default() };
        store.create_convoy(&new, &stamp).expect("its bead is there");
        let daemon = scenario.launch(Errand::Daemon);
        scenario.settle();
        scenario.bead("Something that happens");
        scenario.settle();
        scenario.pass(Duration::from_secs(30));
        let is_at_it = scenario.step(daemon, n_moves);
        let stamp = scenario.stage.stamp("ann");
        let store = &mut scenario.stage.store;
        store.set_rig_state("shop", RigState::Active, EventType::RigUnparked, &stamp).expect("it is free");
        scenario.settle();
        scenario.pass(Duration::from_secs(30));
        scenario.settle();
        assert_eq!(scenario.running().len(), 1, "after {n_moves} moves:\n{}", scenario.story());
        if !is_at_it {
            return;
        }
    }
}

/// Seed 3134: what a sweep took off a hook was in line already, or was to wait for a time, and nobody looked at it.
#[test]
fn what_a_sweep_takes_off_a_hook_and_is_in_line_already_starts() {
    let mut scenario = town();
    let bead = scenario.bead("Work");
    scenario.launch(Errand::Daemon);
    scenario.settle();
    let stamp = scenario.stage.stamp("ann");
    let taken = BeadPatch { status: Some(Status::InProgress), ..BeadPatch::default() };
    let store = &mut scenario.stage.store;
    store.pause(None, &stamp).expect("it is paused");
    store.sling(&sling_of(vec![bead.clone()]), None, &stamp).expect("nothing is wrong with it");
    store.update_bead(&bead, &taken, &stamp).expect("a person may do this");
    store.resume(&stamp).expect("it goes on");
    scenario.settle();
    scenario.pass(Duration::from_secs(30));
    scenario.settle();
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
}

/// What a sweep frees by landing a convoy starts at once.
#[test]
fn what_waits_for_a_convoy_that_a_sweep_lands_starts() {
    let mut scenario = town();
    let (work, done) = (scenario.bead("Work"), scenario.bead("Done"));
    let stamp = scenario.stage.stamp("ann");
    let store = &mut scenario.stage.store;
    store.close_beads(std::slice::from_ref(&done), None, &stamp).expect("it is closed");
    let new = NewConvoy { title: "First".to_owned(), ..NewConvoy::default() };
    let convoy = store.create_convoy(&new, &stamp).expect("it is made");
    scenario.link(&work, &convoy);
    let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![work]))));
    scenario.finish(queue);
    scenario.launch(Errand::Daemon);
    scenario.settle();
    let edge = Edge::new(&done, EdgeType::parse("tracks"));
    scenario.stage.store.add_edge(&convoy, &edge, &stamp).expect("nothing is wrong with it");
    scenario.settle();
    scenario.pass(Duration::from_secs(30));
    scenario.settle();
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
}

/// The deacon leaves a convoy alone for its cooldown, not for as long as a clock was set back.
#[test]
fn a_clock_that_is_set_back_does_not_starve_a_convoy() {
    let mut scenario = town();
    let beads = vec![scenario.bead("First"), scenario.bead("Second")];
    let stamp = scenario.stage.stamp("ann");
    let new = NewConvoy { title: "Together".to_owned(), ..NewConvoy::default() };
    let convoy = scenario.stage.store.create_convoy(&new, &stamp).expect("it is made");
    let mut fed = Vec::new();
    for bead in &beads {
        let stamp = scenario.stage.stamp("ann");
        let edge = Edge::new(bead, EdgeType::parse("tracks"));
        let store = &mut scenario.stage.store;
        store.add_edge(&convoy, &edge, &stamp).expect("nothing is wrong with it");
        fed.extend(store.feed_stranded(SignedDuration::from_mins(5), 3, &stamp).expect("it feeds"));
        scenario.set_clock(SignedDuration::from_hours(-1));
    }
    assert_eq!(fed.into_iter().flat_map(|convoy| convoy.beads).collect::<Vec<_>>(), beads, "{}", scenario.story());
}

/// A town in which a minute of silence is too long, and a run that has just been started in it.
pub(crate) fn with_silent_run() -> (Scenario, String) {
    let mut scenario = Scenario::new(Knobs { stall_after: 60, ..Knobs::calm() });
    let bead = scenario.bead("Work");
    for errand in [Errand::Sling(Box::new(sling_of(vec![bead]))), Errand::Run] {
        let command = scenario.launch(errand);
        scenario.finish(command);
    }
    let run = scenario.running()[0].clone();
    (scenario, run)
}

/// Seed 43: nobody listened while an agent said that it waits, and the first to look took it for stalled.
#[test]
fn a_run_that_waits_and_was_not_heard_is_not_taken_for_stalled() {
    let (mut scenario, run) = with_silent_run();
    scenario.print(&run, Line::Asks);
    scenario.pass(Duration::from_secs(61));
    let looker = scenario.launch(Errand::Run);
    scenario.finish(looker);
    assert!(!scenario.story().contains("run.stalled"), "{}", scenario.story());
    scenario.print(&run, Line::GoesOn);
    scenario.pass(Duration::from_secs(61));
    let looker = scenario.launch(Errand::Run);
    scenario.finish(looker);
    assert!(scenario.story().contains("run.stalled"), "{}", scenario.story());
}

/// Seed 682: between the look at a run and the report of its silence it had said that it is done.
#[test]
fn a_run_that_spoke_after_it_was_looked_at_is_not_reported_as_silent() {
    let (mut scenario, run) = with_silent_run();
    scenario.pass(Duration::from_secs(61));
    let looker = scenario.launch(Errand::Run);
    scenario.step_until(looker, |scenario| scenario.story().contains("looks for signs of life"));
    assert_eq!(scenario.say(&run, Outcome::Completed), Ok(true));
    scenario.finish(looker);
    assert!(!scenario.story().contains("run.stalled"), "{}", scenario.story());
}

/// Seed 519: fewer failures were allowed after as many had been, so the circuit broke late, and nobody was written to.
#[test]
fn whoever_lowers_what_may_fail_is_told_of_the_circuit_that_breaks_by_it() {
    let knobs = Knobs { max_failures: 3, ..Knobs::calm() };
    let mut scenario = Scenario::new(knobs.clone());
    let bead = scenario.bead("Work");
    let queue = scenario.launch(Errand::Sling(Box::new(sling_of(vec![bead.clone()]))));
    scenario.finish(queue);
    for n_failed in 0..3 {
        if n_failed == 2 {
            scenario.stage.configure(Knobs { max_failures: 2, ..knobs.clone() });
        }
        let why = StartError::Failed { cause: "so it was drawn".to_owned() };
        scenario.stage.ground.runtime.expect_start([StartOutcome::Fails(why)]);
        scenario.pass(Duration::from_mins(10));
        let starter = scenario.launch(Errand::Run);
        scenario.finish(starter);
    }
    let letters = scenario.stage.store.inbox("mayor", false, 9).expect("the store answers").letters;
    let subjects: Vec<String> = letters.into_iter().map(|letter| letter.subject).collect();
    assert_eq!(subjects, [format!("the circuit of {bead} is broken")], "{}", scenario.story());
}
