//! Who has to do with jobs: people who add, change and run them, the processes that they run, and whoever sets the clock.

use std::collections::BTreeSet;

use gt_core::cron::Expr;
use gt_core::job::{Missed, Payload, Schedule};
use gt_engine::daemon::Cause;
use gt_engine::jobs;
use gt_store::{BeatWord, JobPlan, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::knobs::Knobs;
use crate::part::Part;
use crate::people::command;
use crate::processes::Errand;
use crate::stage::{RunKind, Stage};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// Whoever adds jobs, changes, runs and removes them.
pub const ANN: &str = "ann";
/// The job that comes once.
pub const REMINDER: &str = "reminder";
/// Those that come again and again.
pub const RECURRING: [&str; 5] = ["skip", "once", "prompt", "all", "beside"];
/// Of these one slot at a time is under way.
pub const LONELY: [&str; 4] = ["skip", "once", "prompt", REMINDER];

/// Jobs that nobody touches but by running them: nothing of their slots may be missing.
pub fn steady(now: Timestamp) -> Vec<JobPlan> {
    vec![
        JobPlan { missed: Missed::Skip, ..cron("skip", "*/3 * * * *") },
        cron("once", "*/4 * * * *"),
        JobPlan { grace: Some(MINUTE * 2), ..every("prompt", 7, now) },
        JobPlan { missed: Missed::All, ..every("all", 5, now) },
        JobPlan { may_overlap: true, ..every("beside", 2, now) },
        job(REMINDER, Schedule::At(now + MINUTE * 7)),
    ]
}

fn job(name: &str, schedule: Schedule) -> JobPlan {
    JobPlan::new(name, schedule, Payload::Run { command: "true".to_owned() })
}

fn cron(name: &str, text: &str) -> JobPlan {
    job(name, Schedule::Cron(Expr::parse(text).expect("it is an expression")))
}

fn every(name: &str, minutes: i32, anchor: Timestamp) -> JobPlan {
    job(name, Schedule::Every { span: MINUTE * minutes, anchor })
}

/// People who have jobs of their own, do anything to those, and run all of them when they like.
pub struct Timers;

impl Part for Timers {
    fn weight(&self, _stage: &Stage) -> u32 {
        8
    }

    fn act(&mut self, stage: &mut Stage) {
        let (name, deed, minutes) = {
            let mut world = stage.world().lock();
            (["a", "b", "c"][world.rng.usize(0..3)], world.rng.u32(0..9), world.rng.i32(1..9))
        };
        let stamp = stage.stamp(ANN);
        let at = Schedule::At(stamp.now + MINUTE * minutes);
        let answer = match deed {
            0..3 => {
                let again = JobPlan { may_overlap: deed == 1, ..every(name, minutes, stamp.now) };
                let plan = if deed == 0 { job(name, at) } else { again };
                stage.store.add_jobs(&[plan], &stamp).map(drop)
            }
            3 => stage.store.pause_job(name, &stamp).map(drop),
            4 => stage.store.resume_job(name, &stamp).map(drop),
            5 => stage.store.remove_job(name, &stamp).map(drop),
            6 => stage.store.edit_job(name, |plan| plan.schedule = at, &stamp).map(drop),
            7 => stage.store.edit_job(name, |plan| plan.may_overlap ^= true, &stamp).map(drop),
            _ => run_now(stage, ["skip", "once", "all", name][minutes as usize % 4]),
        };
        stage.world().tell(|| format!("ann does {deed} to {name}: {:?}", answer.as_ref().map_err(ToString::to_string)));
        match answer {
            Ok(()) | Err(StoreError::Refused(_) | StoreError::NoJob { .. }) => {}
            Err(error) if Stage::is_outage(&error) => {}
            Err(error) => stage.world().violation(format!("ann met {error}")),
        }
    }

    /// What they wanted once may never have been possible; from now on they look on, under settings in which nobody looks
    /// at a clock because a patrol happens to come.
    fn heal(&mut self, stage: &mut Stage) {
        let mut knobs = Knobs::peaceful(&mut stage.world().lock().rng);
        knobs.max_run = 0;
        stage.configure(knobs);
    }
}

/// `gt cron run`.
fn run_now(stage: &mut Stage, name: &str) -> Result<(), StoreError> {
    let settings = stage.settings_in_force();
    let stamp = stage.stamp(ANN);
    let (policy, sessions) = (settings.policy(stage.ground.town.root()), settings.session_rules());
    let rules = jobs::rules(&settings, &policy, &sessions, stamp.now);
    let word = BeatWord::Ask("look".to_owned());
    stage.store.fire_now(name, &rules, &mut |_| word.clone(), &stamp).map(drop)
}

/// In peace something fails once in so many times, and hangs once in so many, but never two at once.
const FAILS: u32 = 8;
const HANGS: u32 = 30;

/// What runs: it ends well or badly, is killed, or hangs until its time is over.
#[derive(Default)]
pub struct Hands {
    /// Those that hang until they are stopped, in peace.
    hung: BTreeSet<String>,
    /// Nothing hangs any more.
    is_tidy: bool,
}

impl Part for Hands {
    fn weight(&self, stage: &Stage) -> u32 {
        1 + 8 * u32::try_from(stage.ground.runtime.n_running()).unwrap_or(u32::MAX).min(3)
    }

    fn act(&mut self, stage: &mut Stage) {
        let (running, stopping) = (stage.running(RunKind::Job), stage.ground.runtime.stopping());
        let (one, other, how) = {
            let mut world = stage.world().lock();
            (world.pick(&running), world.pick(&stopping), world.rng.u32(0..8))
        };
        match (one, other) {
            (_, Some(run)) if how < 4 => end(stage, &run, None, Some(SIGTERM)),
            (Some(run), _) if how < 4 => end(stage, &run, Some(0), None),
            (Some(run), _) if how < 6 => end(stage, &run, Some(3), None),
            (Some(run), _) if how == 6 => end(stage, &run, None, Some(SIGKILL)),
            _ => {}
        }
    }

    fn heal(&mut self, _stage: &mut Stage) {}

    /// What hangs goes on, and nothing hangs after it.
    fn tidy(&mut self, _stage: &mut Stage) {
        *self = Hands { hung: BTreeSet::new(), is_tidy: true };
    }

    /// From now on most things end well.
    fn work(&mut self, stage: &mut Stage) -> bool {
        if let Some(run) = stage.ground.runtime.stopping().first() {
            end(stage, run, None, Some(SIGTERM));
            return true;
        }
        let running = stage.running(RunKind::Job);
        let (hanging, mut free) = running.into_iter().partition::<Vec<String>, _>(|run| self.hung.contains(run));
        let Some(run) = free.pop() else { return false };
        let (hangs, code) = {
            let mut world = stage.world().lock();
            (world.chance(HANGS), if world.chance(FAILS) { 3 } else { 0 })
        };
        if hangs && !self.is_tidy && hanging.is_empty() {
            stage.world().tell(|| format!("{run} hangs"));
            self.hung.insert(run);
        } else {
            end(stage, &run, Some(code), None);
        }
        true
    }
}

/// A process ends; where no daemon listens, the keeper calls somebody.
fn end(stage: &mut Stage, run: &str, code: Option<i32>, signal: Option<i32>) {
    stage.ground.runtime.end(run, code, signal);
    stage.world().tell(|| format!("{run} ended ({code:?}, {signal:?})"));
    if !stage.is_watched() {
        command(stage, Errand::CarryOn);
    }
}

/// Whoever sets the clock, by more than the others do; and the kernel, which tells the daemon.
pub struct Clockmaker {
    /// Whether anybody is told: where that cannot be watched, patrols have to do.
    pub tells: bool,
}

impl Part for Clockmaker {
    fn weight(&self, _stage: &Stage) -> u32 {
        2
    }

    fn act(&mut self, stage: &mut Stage) {
        let mut world = stage.world().lock();
        let minutes = [-1500, -240, -61, -7, -1, 1, 7, 61, 240][world.rng.usize(0..9)];
        world.shift_clock(MINUTE * minutes);
        if self.tells {
            world.post_all(|| Cause::ClockSet);
        }
        drop(world);
        stage.world().tell(|| format!("the clock is set by {minutes} min"));
    }

    /// It was set right just now.
    fn heal(&mut self, stage: &mut Stage) {
        stage.world().lock().post_all(|| Cause::ClockSet);
    }
}
