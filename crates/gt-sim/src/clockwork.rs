//! A town of jobs: the same world of crashes, faults and clocks that jump, with jobs instead of beads. // SPEC K2–K4
//!
//! Apart from the other simulation, because time itself is the work here: nothing ever comes to rest. After the chaos the
//! clock goes on for some hours, in which each slot must fire in time; then every slot of those jobs that nobody touched must
//! have its records, whatever happened.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_core::job::{FireStatus, Schedule};
use gt_engine::settings::Settings;
use gt_store::{Fire, FireFilter, FiresOf, JobPlan, Store};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::jobs::{self, Clockmaker, Hands, Timers};
use crate::part::Part;
use crate::play::Play;
use crate::sim::{Failure, Plan};
use crate::stage::Stage;
use crate::trouble::{Hours, Trouble};

/// For so long the clock goes on in peace.
const PEACE: SignedDuration = SignedDuration::from_hours(1);
/// By then whoever runs the town has noticed that all is well again.
const HEALED: SignedDuration = SignedDuration::from_mins(2);
/// How much later than it could a slot may fire.
const LATE_MAX: SignedDuration = SignedDuration::from_secs(1);
const ROUNDS_MAX: usize = 20_000;

/// What a simulation came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub n_fires: usize,
    pub n_missed: usize,
    pub n_starts: usize,
    pub story: Vec<String>,
}

/// Runs one seed.
pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
    let mut sim = Clockwork::new(plan);
    match sim.chaos().and_then(|()| sim.peace()) {
        Ok(report) => Ok(Report { story: sim.take_story(), ..report }),
        Err(what) => {
            let step = sim.play.stage.world().lock().step;
            Err(Box::new(Failure { plan, step, what, story: sim.take_story() }))
        }
    }
}

struct Clockwork {
    plan: Plan,
    play: Play,
    judge: Judge,
}

impl Clockwork {
    fn new(plan: Plan) -> Clockwork {
        let stage = Stage::set(plan.seed, plan.on_disk, plan.tells);
        stage.world().lock().faults.no_daemon = false;
        let judge = Judge::new(&stage);
        let tells = stage.world().lock().rng.bool();
        let parts: Vec<Box<dyn Part>> =
            vec![Box::new(Trouble), Box::new(Hours), Box::new(Timers), Box::new(Hands), Box::new(Clockmaker { tells })];
        Clockwork { plan, play: Play { stage, parts }, judge }
    }

    fn take_story(&self) -> Vec<String> {
        self.play.stage.world().lock().story.take().unwrap_or_default()
    }

    fn chaos(&mut self) -> Result<(), String> {
        let judge = &mut self.judge;
        self.play.chaos(self.plan.n_steps, |stage| judge.look(stage))
    }

    /// Nothing goes wrong any more: each slot comes in time, and all that has fired comes to an end.
    fn peace(&mut self) -> Result<Report, String> {
        self.play.heal();
        self.judge.look(&mut self.play.stage)?;
        let healed = self.judge.latest + HEALED;
        for _ in 0..ROUNDS_MAX {
            let judge = &mut self.judge;
            self.play.round(|stage| judge.look(stage))?;
            self.judge.check_no_stall(&self.play.stage)?;
            if self.play.stage.world().now() > healed + PEACE {
                return self.judge.conclude(&self.play.stage, healed);
            }
            if !self.play.sleep() {
                return Err("everybody sleeps for ever".to_owned());
            }
        }
        Err("time does not pass".to_owned())
    }
}

/// What a process was started for: the job, its slot and the attempt.
type Start = (String, String, String);

struct Judge {
    store: Store,
    began: Timestamp,
    /// The latest that the clock has ever shown.
    latest: Timestamp,
    seen: Option<i64>,
    n_born: usize,
    starts: BTreeMap<Start, String>,
}

impl Judge {
    /// The judge of a town in which the jobs are that nobody touches.
    fn new(stage: &Stage) -> Judge {
        let mut store = stage.ground.medium.open().expect("the store is there");
        let began = stage.world().now();
        store.add_jobs(&jobs::steady(began), &stage.stamp("founder")).expect("nothing is wrong with them");
        Judge { store, began, latest: began, seen: None, n_born: 0, starts: BTreeMap::new() }
    }

    /// Every invariant, now.
    fn look(&mut self, stage: &mut Stage) -> Result<(), String> {
        if let Some(violation) = stage.world().lock().violations.pop() {
            return Err(violation);
        }
        self.latest = self.latest.max(stage.world().now());
        self.check_births(stage)?;
        let version = self.store.outside_commits().map_err(|error| error.to_string())?;
        if self.seen.replace(version) == Some(version) {
            return Ok(());
        }
        let found = self.store.judge(self.latest).map_err(|error| error.to_string())?;
        match found.dispatch.first() {
            Some(complaint) => Err(complaint.clone()),
            None => self.check_overlap(stage),
        }
    }

    /// Nothing is started before it is claimed, and no attempt at a slot twice.
    fn check_births(&mut self, stage: &Stage) -> Result<(), String> {
        let started = stage.ground.runtime.started();
        for run in &started[self.n_born..] {
            if self.store.run(run).map_err(|error| error.to_string())?.is_none() {
                return Err(format!("{run} was started before it was claimed"));
            }
            let Some(start) = start_of(stage, run) else { continue };
            if let Some(before) = self.starts.insert(start.clone(), run.clone()) {
                return Err(format!("{start:?} was started as {before}, and again as {run}"));
            }
        }
        self.n_born = started.len();
        Ok(())
    }

    /// Whoever may not run beside itself does not.
    fn check_overlap(&mut self, stage: &Stage) -> Result<(), String> {
        let live = self.store.live_runs().map_err(|error| error.to_string())?;
        let mut slots: BTreeMap<String, String> = BTreeMap::new();
        for (job, slot, _) in live.iter().filter_map(|run| start_of(stage, &run.id)) {
            let is_lonely = ["skip", "once", "all", "reminder"].contains(&job.as_str());
            if let Some(other) = slots.insert(job.clone(), slot.clone()).filter(|other| is_lonely && *other != slot) {
                return Err(format!("{job} runs for {other} and for {slot} at once"));
            }
        }
        Ok(())
    }

    /// Nobody sleeps longer than until a slot comes or something is tried again.
    fn check_no_stall(&mut self, stage: &Stage) -> Result<(), String> {
        let Some(due) = self.store.next_job_at().map_err(|error| error.to_string())? else { return Ok(()) };
        let (now, uptime) = (stage.world().now(), stage.world().lock().uptime());
        let asleep = stage.next_wake().map_or(Duration::MAX, |wake| wake.saturating_sub(uptime));
        let wakes = now.saturating_add(SignedDuration::try_from(asleep).unwrap_or(SignedDuration::MAX));
        match wakes {
            Ok(wakes) if wakes <= due.max(now) + LATE_MAX => Ok(()),
            _ => Err(format!("something is due at {due}, it is {now}, and everybody sleeps for {asleep:?}")),
        }
    }

    /// What became of everything, by what the schedules say and nothing that the store remembers of it.
    fn conclude(&mut self, stage: &Stage, healed: Timestamp) -> Result<Report, String> {
        let now = stage.world().now();
        for plan in jobs::steady(self.began) {
            let fires = self.fires(FiresOf::One(plan.name.clone()))?;
            if let Some(fire) = fires.iter().find(|fire| fire.status == FireStatus::Running && fire.slot < now - HEALED)
            {
                let why = self.why_waiting(stage, fire)?;
                return Err(format!("{} has not come to an end: {why}", said(fire)));
            }
            check_slots(&plan, &fires, self.began, now - LATE_MAX)?;
            check_in_time(&fires, healed)?;
        }
        let fires = self.fires(FiresOf::Jobs)?;
        let n_missed = fires.iter().filter(|fire| fire.status == FireStatus::Missed).count();
        Ok(Report { n_fires: fires.len(), n_missed, n_starts: self.starts.len(), story: Vec::new() })
    }

    fn why_waiting(&mut self, stage: &Stage, fire: &Fire) -> Result<String, String> {
        let town = &stage.ground.town;
        let policy = Settings::load(town).map_err(|error| error.to_string())?.policy(town.root());
        let Some(turn) = fire.turn else { return Ok(format!("it is tried again at {:?}", fire.retry_at)) };
        let why = self.store.why_waiting(turn, &policy, stage.world().now()).map_err(|error| error.to_string())?;
        Ok(format!("turn {turn}, attempt {}, run {:?}, retry {:?}: {why:?}", fire.attempt, fire.run, fire.retry_at))
    }

    fn fires(&mut self, of: FiresOf) -> Result<Vec<Fire>, String> {
        let filter = FireFilter { of, ..FireFilter::default() };
        let mut fires = self.store.fires(&filter).map_err(|error| error.to_string())?;
        fires.retain(|fire| !fire.is_manual);
        fires.reverse();
        Ok(fires)
    }
}

/// What a process that runs was started for.
fn start_of(stage: &Stage, run: &str) -> Option<Start> {
    let env: BTreeMap<String, String> = stage.ground.runtime.launch(run)?.env.into_iter().collect();
    let of = |name: &str| env.get(name).cloned();
    Some((of("GT_JOB")?, of("GT_SLOT")?, of("GT_ATTEMPT")?))
}

fn said(fire: &Fire) -> String {
    let why = fire.error.as_deref().unwrap_or("-");
    format!("{} of {} ({}, made {}: {why})", fire.slot, fire.job, fire.status.as_str(), fire.made_at)
}

/// Each slot has one record, or that it was missed and what then came of it.
fn check_slots(plan: &JobPlan, fires: &[Fire], began: Timestamp, until: Timestamp) -> Result<(), String> {
    let zone = TimeZone::get(&plan.tz).map_err(|error| error.to_string())?;
    let mut at = began;
    while let Some(slot) = plan.schedule.next(at, &zone).filter(|slot| *slot <= until) {
        let covers = |fire: &&Fire| fire.slot == slot || (fire.slot < slot && fire.until.is_some_and(|to| to >= slot));
        let records: Vec<&Fire> = fires.iter().filter(covers).collect();
        let is_so = match records[..] {
            [_] => true,
            [missed, late] => missed.status == FireStatus::Missed && late.status != FireStatus::Missed,
            _ => false,
        };
        if !is_so {
            let records: Vec<String> = records.into_iter().map(said).collect();
            return Err(format!("{slot} of {} has these records: {records:?}", plan.name));
        }
        at = slot;
    }
    // Who runs once has run.
    let has_run = fires.iter().any(|fire| !matches!(fire.status, FireStatus::Missed | FireStatus::Skipped));
    if matches!(plan.schedule, Schedule::At(_)) && !has_run {
        return Err(format!("{} never ran: {:?}", plan.name, fires.iter().map(said).collect::<Vec<_>>()));
    }
    Ok(())
}

/// In peace each slot is made a fire when it comes.
fn check_in_time(fires: &[Fire], healed: Timestamp) -> Result<(), String> {
    let late = |fire: &&Fire| fire.status == FireStatus::Missed || fire.made_at > fire.slot + LATE_MAX;
    match fires.iter().filter(|fire| fire.slot > healed).find(late) {
        Some(fire) => Err(format!("{} came in peace, and not in time", said(fire))),
        None => Ok(()),
    }
}
