//! The races of seed 001 §8, each with the schedule that would have caused it, and every schedule near it.
//!
//! Two processes are moved boundary by boundary: the first so far, then the second so far, then both to their ends; for
//! every pair of distances. The judge looks after each move.

use std::collections::BTreeSet;
use std::time::Duration;

use gt_core::run::Outcome;
use gt_sim::knobs::Knobs;
use gt_sim::people::sling_of;
use gt_sim::processes::Errand;
use gt_sim::scenario::Scenario;
use gt_store::{ConvoyWish, Sling};

/// Further apart than any two boundaries of these processes.
const FAR: usize = 60;

fn with_cap(town: usize) -> Knobs {
    Knobs { town, cooldown: 0, ..Knobs::calm() }
}

fn sling(beads: &[&str]) -> Sling {
    Sling { convoy: ConvoyWish::No, ..sling_of(beads.iter().map(|bead| (*bead).to_owned()).collect()) }
}

/// How far the two had come when they were stopped, if they were still on their way.
struct OnTheirWay(bool, bool);

/// Runs a race under every schedule of two preemptions; further than its end nobody can be let.
fn in_every_order(mut race: impl FnMut(usize, usize) -> OnTheirWay) {
    let mut n_schedules = 0;
    'firsts: for first in 0..FAR {
        for second in 0..FAR {
            n_schedules += 1;
            let OnTheirWay(is_first, is_second) = race(first, second);
            if !is_first {
                break 'firsts;
            }
            if !is_second {
                break;
            }
        }
    }
    assert!(n_schedules > 12, "only {n_schedules} schedules were tried");
}

/// Lets two processes race: the first so far, the second so far, and then both to their ends.
fn race(scenario: &mut Scenario, errands: [Errand; 2], first: usize, second: usize) -> OnTheirWay {
    let [a, b] = errands.map(|errand| scenario.launch(errand));
    let on_their_way = OnTheirWay(scenario.step(a, first), scenario.step(b, second));
    scenario.finish(a);
    scenario.finish(b);
    scenario.settle();
    on_their_way
}

/// Each bead was given to a run once, and no more live than the cap allows.
fn expect_once_each(scenario: &mut Scenario, beads: &[&str], cap: usize) {
    let live = scenario.live_runs();
    assert!(live.len() <= cap, "{} live with a cap of {cap}:\n{}", live.len(), scenario.story());
    for bead in beads {
        assert!(scenario.runs_of(bead).len() <= 1, "{bead} was dispatched twice:\n{}", scenario.story());
    }
    let started = scenario.stage.ground.runtime.started();
    assert_eq!(started.len(), started.iter().collect::<BTreeSet<_>>().len(), "a run was started twice");
}

/// Right before something happens: how many steps a process makes until then.
fn steps_before(mut scenario: Scenario, errand: Errand, mut happens: impl FnMut(&mut Scenario) -> bool) -> usize {
    let pid = scenario.launch(errand);
    let mut n_steps = 0;
    scenario.step_until(pid, |scenario| {
        n_steps += 1;
        happens(scenario)
    });
    n_steps - 2
}

/// X and Y wait in the queue of a town with one slot, in which the lock does not hold.
fn two_in_the_queue() -> Scenario {
    let mut scenario = Scenario::new(with_cap(1));
    scenario.stage.world().lock().faults.broken_turn = true;
    let (x, y) = (scenario.bead("X"), scenario.bead("Y"));
    let queue = scenario.launch(Errand::Sling(Box::new(sling(&[&x, &y]))));
    scenario.finish(queue);
    scenario
}

/// The schedule of scenario 1: the first has seen that a slot is free and X is ready; before it acts the second one
/// takes the slot.
#[test]
fn the_schedule_of_dual_feeding_gives_the_slot_to_one_of_them() {
    let n_steps = steps_before(two_in_the_queue(), Errand::Run, |scenario| !scenario.live_runs().is_empty());
    let mut scenario = two_in_the_queue();
    let (scan, feeder) = (scenario.launch(Errand::Run), scenario.launch(Errand::Run));
    assert!(scenario.step(scan, n_steps) && scenario.live_runs().is_empty(), "the scan has looked and not yet acted");
    scenario.finish(feeder);
    assert_eq!(scenario.running().len(), 1, "the feeder has taken the slot");
    scenario.finish(scan);
    assert_eq!((scenario.running().len(), scenario.live_runs().len()), (1, 1), "and the scan takes no other");
}

/// The schedule of scenario 2: the bead is released; the scan has seen it ready and is about to start it; the deacon
/// checks, finds it open, and slings it; the scan goes on.
#[test]
fn the_schedule_of_a_double_recovery_starts_one_worker() {
    let released = || {
        let mut scenario = Scenario::new(with_cap(2));
        let x = died_once(&mut scenario);
        (scenario, x)
    };
    let n_steps = steps_before(released().0, Errand::Run, |scenario| !scenario.live_runs().is_empty());
    assert!(n_steps > 0, "the scan looks before it acts");
    let (mut scenario, x) = released();
    let scan = scenario.launch(Errand::Run);
    scenario.step(scan, n_steps);
    let deacon = scenario.launch(Errand::Sling(Box::new(sling(&[&x]))));
    scenario.finish(deacon);
    scenario.finish(scan);
    scenario.settle();
    assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
    assert_eq!(scenario.runs_of(&x).len(), 2, "the one that died and its successor");
}

/// The schedule of scenario 3: both have seen that X has no context; then each makes one.
#[test]
fn the_schedule_of_duplicate_contexts_makes_one() {
    let fresh = || {
        let mut scenario = Scenario::new(with_cap(1));
        let x = scenario.bead("X");
        (scenario, sling(&[&x]))
    };
    let (scenario, wanted) = fresh();
    let is_scheduled = |scenario: &mut Scenario| scenario.story().contains("event context.scheduled");
    let n_steps = steps_before(scenario, Errand::Sling(Box::new(wanted)), is_scheduled);
    let (mut scenario, wanted) = fresh();
    let [feed, scan] = [0, 1].map(|_| scenario.launch(Errand::Sling(Box::new(wanted.clone()))));
    scenario.step(feed, n_steps);
    scenario.step(scan, n_steps);
    scenario.finish(scan);
    scenario.finish(feed);
    let n_scheduled = scenario.story().lines().filter(|line| line.contains("event context.scheduled")).count();
    assert_eq!(n_scheduled, 1, "{}", scenario.story());
}

/// Scenario 1. There, a scan slings X and, unaware of it, a feeder slings Y of the same convoy: two slots are taken where
/// one was meant. Here both only ask for a pass; whoever claims counts inside the claim.
#[test]
fn two_feeders_of_one_convoy_never_take_more_than_the_cap() {
    in_every_order(|first, second| {
        let mut scenario = Scenario::new(with_cap(1));
        let (x, y) = (scenario.bead("X"), scenario.bead("Y"));
        let queue = scenario.launch(Errand::Sling(Box::new(sling(&[&x, &y]))));
        scenario.finish(queue);
        let on_their_way = race(&mut scenario, [Errand::Run, Errand::Run], first, second);
        expect_once_each(&mut scenario, &[&x, &y], 1);
        assert_eq!(scenario.running().len(), 1, "one slot, one agent");
        on_their_way
    });
}

/// The same where the lock that makes passes wait for each other does not hold: the claim alone must do.
#[test]
fn two_feeders_without_a_lock_never_take_more_than_the_cap() {
    in_every_order(|first, second| {
        let mut scenario = Scenario::new(with_cap(1));
        scenario.stage.world().lock().faults.broken_turn = true;
        let (x, y) = (scenario.bead("X"), scenario.bead("Y"));
        let queue = scenario.launch(Errand::Sling(Box::new(sling(&[&x, &y]))));
        scenario.finish(queue);
        let on_their_way = race(&mut scenario, [Errand::Run, Errand::Run], first, second);
        expect_once_each(&mut scenario, &[&x, &y], 1);
        on_their_way
    });
}

/// Scenario 2. There, the recovered bead is slung by the scan, and then, on older news, slung again by force: the worker
/// goes on with a bead that is no longer its own. Here an automatic path never uses force, and is refused.
#[test]
fn a_recovered_bead_is_not_taken_from_its_new_worker_by_older_news() {
    in_every_order(|first, second| {
        let mut scenario = Scenario::new(with_cap(2));
        let x = died_once(&mut scenario);
        let on_their_way = race(&mut scenario, [Errand::Run, Errand::Sling(Box::new(sling(&[&x])))], first, second);
        let runs = scenario.runs_of(&x);
        assert_eq!(runs.len(), 2, "it died, and was dispatched once more:\n{}", scenario.story());
        assert!(runs[0].is_live() && runs[0].stop.is_none(), "its new worker is left alone:\n{}", scenario.story());
        assert_eq!(scenario.running(), [runs[0].id.clone()]);
        on_their_way
    });
}

/// And where a person does use force: the old worker is fenced before the new one starts, whenever that happens.
#[test]
fn a_bead_taken_by_force_never_has_two_workers_and_the_fenced_one_is_not_heard() {
    in_every_order(|first, second| {
        let mut scenario = Scenario::new(with_cap(2));
        let x = died_once(&mut scenario);
        let by_force = Sling { force: true, ..sling(&[&x]) };
        let on_their_way = race(&mut scenario, [Errand::Run, Errand::Sling(Box::new(by_force))], first, second);
        let live: Vec<_> = scenario.runs_of(&x).into_iter().filter(gt_store::Run::is_live).collect();
        assert_eq!(live.len(), 1, "one worker, fenced or not:\n{}", scenario.story());
        assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
        if live[0].stop.is_some() {
            let answer = scenario.say(&live[0].id, Outcome::Completed).expect_err("what it says does not count");
            assert!(answer.contains("was told to stop"), "{answer}");
        }
        on_their_way
    });
}

/// Scenario 3. There, a feed makes a context while a scan, which cannot see it yet, makes another one. Here the look and
/// the making are one transaction: the second finds it.
#[test]
fn two_slings_of_one_bead_make_one_context() {
    in_every_order(|first, second| {
        let mut scenario = Scenario::new(with_cap(1));
        let x = scenario.bead("X");
        let errand = || Errand::Sling(Box::new(sling(&[&x])));
        let on_their_way = race(&mut scenario, [errand(), errand()], first, second);
        let scheduled = scenario.story().lines().filter(|line| line.contains("event context.scheduled")).count();
        assert_eq!(scheduled, 1, "{}", scenario.story());
        on_their_way
    });
}

/// The same in direct mode, where each of the two would start it at once.
#[test]
fn two_direct_slings_of_one_bead_start_it_once() {
    in_every_order(|first, second| {
        let mut scenario = Scenario::new(with_cap(0));
        let x = scenario.bead("X");
        let errand = || Errand::Sling(Box::new(sling(&[&x])));
        let on_their_way = race(&mut scenario, [errand(), errand()], first, second);
        expect_once_each(&mut scenario, &[&x], 1);
        assert_eq!(scenario.running().len(), 1, "{}", scenario.story());
        on_their_way
    });
}

/// A bead whose worker has died; the next pass releases it and may try again.
fn died_once(scenario: &mut Scenario) -> String {
    let x = scenario.bead("X");
    let queue = scenario.launch(Errand::Sling(Box::new(sling(&[&x]))));
    scenario.finish(queue);
    let pass = scenario.launch(Errand::Run);
    scenario.finish(pass);
    let run = scenario.running().pop().expect("it was started");
    scenario.end(&run, 1);
    scenario.pass(Duration::from_secs(1));
    let recovery = scenario.launch(Errand::CarryOn);
    scenario.finish(recovery);
    assert!(scenario.live_runs().is_empty(), "its end is recorded:\n{}", scenario.story());
    x
}
