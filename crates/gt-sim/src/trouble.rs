//! Trouble and time: daemons that come and go, clocks that jump, news that come late, and hours that pass.

use std::time::Duration;

use gt_engine::daemon::Cause;
use jiff::SignedDuration;

use crate::faults::Faults;
use crate::fleet::pay_owed_news;
use crate::part::Part;
use crate::processes::Errand;
use crate::stage::Stage;
use crate::world::Pid;

/// One runs the town, and one waits for its end; or two run it, where the lock does not hold.
const DAEMONS_MAX: usize = 2;
/// Daemons that wait for room on the disk make fewer moves than this until they come to rest.
const RETRY_MOVES_MAX: usize = 2_000;

/// Processes come, go and are killed; clocks are set.
pub struct Trouble;

impl Part for Trouble {
    fn weight(&self, stage: &Stage) -> u32 {
        if stage.n_daemons() == 0 && !stage.world().lock().faults.no_daemon { 12 } else { 4 }
    }

    fn act(&mut self, stage: &mut Stage) {
        let deed = stage.world().lock().rng.u32(0..21);
        match deed {
            0..9 if stage.n_daemons() < DAEMONS_MAX => start_daemon(stage),
            0..11 => pay_owed_news(stage.world()),
            11..14 => kill_one(stage),
            14 => stop_daemon(stage),
            15 => all_agents_die(stage),
            16..19 => set_clock(stage),
            19 => fill_disk(stage),
            _ => restart_machine(stage),
        }
    }

    fn heal(&mut self, stage: &mut Stage) {
        let halt = {
            let mut world = stage.world().lock();
            world.mend_clock();
            let halt = world.rng.u32(2..20);
            // Commands that die before they ring are part of life.
            world.faults = Faults { lost_bell: 2, ..Faults::none(halt) };
            halt
        };
        stage.world().tell(|| format!("the world is healed (a halt once in {halt})"));
        pay_owed_news(stage.world());
        // What commands are still about to do is not part of what is expected.
        let is_command = |pid: &Pid| stage.world().lock().processes.get(pid).is_some_and(|process| !process.is_daemon);
        for pid in stage.strands.keys().copied().filter(is_command).collect::<Vec<_>>() {
            stage.kill(pid);
        }
        if stage.n_daemons() == 0 {
            stage.launch(Errand::Daemon);
        }
    }
}

/// A process; one that has many threads is met more often. A thread has no end of its own.
fn any_process(stage: &Stage) -> Option<Pid> {
    let pids: Vec<Pid> = stage.strands.keys().copied().collect();
    let mut world = stage.world().lock();
    let pid = world.pick(&pids)?;
    Some(world.threads.get(&pid).copied().unwrap_or(pid))
}

fn kill_one(stage: &mut Stage) {
    let death = stage.world().lock().faults.death;
    if let Some(pid) = any_process(stage).filter(|_| death > 0) {
        stage.kill(pid);
    }
}

fn stop_daemon(stage: &mut Stage) {
    if let Some(pid) = any_process(stage) {
        stage.world().lock().post(pid, Cause::Stop);
    }
}

/// The agents die, and sometimes whoever kept them forgets that they ever were, or knows that they died with their place.
fn all_agents_die(stage: &mut Stage) {
    let (is_drawn, how) = {
        let mut world = stage.world().lock();
        let hows = ["", " and is forgotten", " with its place"];
        (world.faults.deaf_keeper > 0, hows[world.rng.usize(0..hows.len())])
    };
    if !is_drawn {
        return;
    }
    stage.world().tell(|| format!("every agent dies{how}"));
    match how {
        " with its place" => {
            let lost = stage.ground.runtime.lose_all();
            stage.world().lock().lost.extend(lost.into_iter().map(|run| (run, true)));
        }
        " and is forgotten" => {
            stage.ground.runtime.end_all_unseen();
            stage.ground.runtime.forget_ends();
            // Who has heard of it already remembers.
            stage.world().lock().lost.values_mut().for_each(|is_known| *is_known = false);
        }
        _ => stage.ground.runtime.end_all_unseen(),
    }
}

/// Everything dies at once, and the disk remembers.
fn restart_machine(stage: &mut Stage) {
    if stage.world().lock().faults.death == 0 {
        return;
    }
    stage.world().tell(|| "the machine restarts".to_owned());
    for pid in stage.strands.keys().copied().collect::<Vec<_>>() {
        stage.kill(pid);
    }
    stage.ground.runtime.end_all_unseen();
    start_daemon(stage);
}

/// Unless this is a town that never has one.
/// The disk is full for a while. Daemons may retry, but each comes to rest in between.
fn fill_disk(stage: &mut Stage) {
    let refusal = stage.world().lock().faults.refusal;
    if refusal == 0 {
        return;
    }
    stage.world().tell(|| "the disk is full".to_owned());
    stage.world().lock().faults.refusal = 1;
    for seconds in [0, 1, 10, 60] {
        stage.world().lock().pass(Duration::from_secs(seconds));
        let is_busy = (0..RETRY_MOVES_MAX).all(|_| step_daemon(stage));
        if is_busy {
            stage.world().violation("the disk is full, and a daemon retries without a pause".to_owned());
            break;
        }
    }
    stage.world().lock().faults.refusal = refusal;
    stage.world().tell(|| "there is room again".to_owned());
}

/// Lets a daemon move; says whether one could.
fn step_daemon(stage: &mut Stage) -> bool {
    let is_daemon = |pid: &Pid| stage.world().lock().processes.get(pid).is_some_and(|process| process.is_daemon);
    let Some(pid) = stage.ready_strands().into_iter().find(is_daemon) else { return false };
    stage.step_strand(pid);
    true
}

fn start_daemon(stage: &mut Stage) {
    let no_daemon = stage.world().lock().faults.no_daemon;
    if !no_daemon {
        stage.launch(Errand::Daemon);
    }
}

fn set_clock(stage: &mut Stage) {
    let mut world = stage.world().lock();
    let seconds = [-3600, -60, -1, 1, 60, 3600][world.rng.usize(0..6)];
    world.shift_clock(SignedDuration::from_secs(seconds));
    drop(world);
    stage.world().tell(|| format!("the clock is set by {seconds} s"));
}

/// Time passes.
pub struct Hours;

impl Part for Hours {
    fn weight(&self, _stage: &Stage) -> u32 {
        10
    }

    fn act(&mut self, stage: &mut Stage) {
        let next = stage.next_wake();
        let mut world = stage.world().lock();
        let span = match (world.rng.u32(0..10), next) {
            (0..5, Some(next)) => next.saturating_sub(world.uptime()),
            (0..7, _) => Duration::from_millis(world.rng.u64(1..100)),
            (7..9, _) => Duration::from_millis(world.rng.u64(100..5_000)),
            _ => Duration::from_secs(world.rng.u64(5..400)),
        };
        world.pass(span);
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}
