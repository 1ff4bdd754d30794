//! The judge of a town of jobs: what must hold after every step, before everybody sleeps, and in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use gt_core::job::{FireStatus, JobState};
use gt_core::run::Outcome;
use gt_store::{Fire, FireFilter, FiresOf, Job, MAYOR, Run, Store, StoreError, TurnState};
use jiff::{SignedDuration, Timestamp};

use super::book::Book;
use super::slots::{Gap, History, LATE_MAX, Times, said};
use super::{HEALED, Report};
use crate::jobs;
use crate::stage::Stage;

/// How many runs the lane of jobs has places for, how often a slot is tried, and how long each may take.
const LANE: usize = 2;
const ATTEMPTS_MAX: i64 = 4;
const TIMEOUT: SignedDuration = SignedDuration::from_mins(10);
/// Between two tries lie `min(2 s × 2^n, 30 s)`, a quarter more or less.
const RETRY_FIRST: f64 = 2.0;
const RETRY_MOST: f64 = 30.0;
const RETRY_SHARE: f64 = 0.25;
/// How far ahead the next slot of a job is at the most: what a clock may be behind, and the longest of their spans.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(3 * 60 + 10);
const EVENTS_AT_ONCE: usize = 10_000;

/// What a process was started for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Start {
    job: String,
    slot: String,
    attempt: i64,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} at {} of {}", self.attempt, self.slot, self.job)
    }
}

pub(super) struct Judge {
    store: Store,
    began: Timestamp,
    /// The latest that the clock has ever shown.
    pub(super) latest: Timestamp,
    seen: Option<i64>,
    book: Book,
    n_born: usize,
    starts: BTreeMap<Start, String>,
    /// Runs that were born in peace, and for how long the machine had been up then.
    born: BTreeMap<String, Duration>,
    is_peace: bool,
    /// For how long the machine had been up when the clock was set back in peace.
    set_back: Duration,
    /// Whether daemons of a town exclude each other: one does not know what another has seen meanwhile.
    has_lock: bool,
    /// Fires that ran when it was looked last.
    live: BTreeSet<i64>,
    /// Attempts in peace that are known to have failed.
    failed: BTreeSet<(i64, i64)>,
    gaps: Vec<Gap>,
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
fn words(error: StoreError) -> String {
    error.to_string()
}

impl Judge {
    /// The judge of a town in which the jobs are that nobody touches.
    pub(super) fn new(stage: &Stage) -> Judge {
        let mut store = stage.ground.medium.open().expect("the store is there");
        let began = stage.world().now();
        store.add_jobs(&jobs::steady(began), &stage.stamp("founder")).expect("nothing is wrong with them");
        Judge {
            store,
            began,
            latest: began,
            seen: None,
            book: Book::default(),
            n_born: 0,
            starts: BTreeMap::new(),
            born: BTreeMap::new(),
            is_peace: false,
            set_back: Duration::ZERO,
            has_lock: !stage.world().lock().faults.two_daemons,
            live: BTreeSet::new(),
            failed: BTreeSet::new(),
            gaps: Vec::new(),
        }
    }

    /// Every invariant, now.
    pub(super) fn look(&mut self, stage: &mut Stage) -> Result<(), String> {
        if let Some(violation) = stage.world().lock().violations.pop() {
            return Err(violation);
        }
        let latest = self.latest;
        self.latest = latest.max(stage.world().now());
        self.check_births(stage)?;
        self.check_stops(stage)?;
        let version = self.store.outside_commits().map_err(words)?;
        if self.seen.replace(version) == Some(version) {
            return Ok(());
        }
        let found = self.store.judge(self.latest).map_err(words)?;
        if let Some(complaint) = found.dispatch.first() {
            return Err(complaint.clone());
        }
        for event in self.store.events(self.book.seq, EVENTS_AT_ONCE).map_err(words)? {
            self.book.apply(&event, latest)?;
        }
        self.check_under_way()
    }

    /// Nothing is started before it is claimed, no attempt at a slot twice, and none that is not due.
    fn check_births(&mut self, stage: &Stage) -> Result<(), String> {
        let started = stage.ground.runtime.started();
        let uptime = stage.world().lock().uptime();
        for run in &started[self.n_born..] {
            if self.store.run(run).map_err(words)?.is_none() {
                return Err(format!("{run} was started before it was claimed"));
            }
            if self.is_peace {
                self.born.insert(run.clone(), uptime);
            }
            let Some(start) = start_of(stage, run) else { continue };
            self.check_attempt(&start)?;
            if let Some(before) = self.starts.insert(start.clone(), run.clone()) {
                return Err(format!("{start} was started as {before}, and again as {run}"));
            }
        }
        self.n_born = started.len();
        Ok(())
    }

    /// A slot is tried again when the attempt before has failed in a way that may pass, and not too often.
    fn check_attempt(&mut self, start: &Start) -> Result<(), String> {
        if start.attempt > ATTEMPTS_MAX {
            return Err(format!("{start} is one too many"));
        }
        let before = Start { attempt: start.attempt - 1, ..start.clone() };
        let Some(run) = self.starts.get(&before) else { return Ok(()) };
        match self.store.run(run).map_err(words)?.map(|run| run.outcome) {
            Some(None) => Err(format!("{start} was started while {run}, the one before, lives")),
            Some(Some(end @ (Outcome::Completed | Outcome::Stopped | Outcome::TimedOut))) => {
                Err(format!("{start} was started though {run}, the one before, is {}", end.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// Nobody is told to stop before its time is over, whatever is done to the clock.
    fn check_stops(&mut self, stage: &Stage) -> Result<(), String> {
        let (stops, uptime) = {
            let mut world = stage.world().lock();
            (std::mem::take(&mut world.stops), world.uptime())
        };
        for run in stops {
            let Some(born) = self.born.get(&run) else { continue };
            let age = uptime.saturating_sub(*born);
            // What has ended meanwhile cannot be hurt.
            let is_live = self.store.run(&run).map_err(words)?.is_some_and(|run| run.is_live());
            if is_live && age < TIMEOUT.unsigned_abs() {
                return Err(format!("{run} was told to stop after {age:?}"));
            }
        }
        Ok(())
    }

    /// What is under way has its place, and nothing beside it that may not be there.
    fn check_under_way(&mut self) -> Result<(), String> {
        let n_live = self.store.live_runs().map_err(words)?.len();
        if n_live > LANE {
            return Err(format!("{n_live} runs live in a lane of {LANE}"));
        }
        let jobs: BTreeMap<String, Job> =
            self.store.jobs(false, None).map_err(words)?.into_iter().map(|job| (job.id(), job)).collect();
        let (mut waiting, mut live) = (Vec::new(), Vec::new());
        for fire in self.under_way()? {
            if self.is_live(&fire)? { live.push(fire) } else { waiting.push(fire) }
        }
        check_lonely(waiting.iter().chain(&live))?;
        for fire in &waiting {
            check_is_wanted(fire, jobs.get(&fire.job_id()))?;
        }
        let new = live.iter().filter(|fire| !self.live.contains(&fire.id));
        for fire in new {
            check_alone(fire, &live, jobs.get(&fire.job_id()))?;
        }
        self.live = live.iter().map(|fire| fire.id).collect();
        Ok(())
    }

    fn is_live(&mut self, fire: &Fire) -> Result<bool, String> {
        let Some(turn) = fire.turn.filter(|_| fire.retry_at.is_none()) else { return Ok(false) };
        Ok(self.store.turn(turn).map_err(words)?.is_some_and(|turn| turn.state == TurnState::Live))
    }

    /// What has fired and is not over.
    fn under_way(&mut self) -> Result<Vec<Fire>, String> {
        let mut fires = Vec::new();
        for id in &self.book.under_way {
            match self.store.fire(*id).map_err(words)? {
                Some(fire) if fire.status == FireStatus::Running => fires.push(fire),
                _ => return Err(format!("fire {id} is over, and the log does not say so")),
            }
        }
        Ok(fires)
    }

    /// Whether something waits to be tried again.
    pub(super) fn is_any_waiting(&mut self) -> Result<bool, String> {
        Ok(self.under_way()?.iter().any(|fire| fire.retry_at.is_some()))
    }

    /// Nobody watched the clock between these times.
    pub(super) fn note_gap(&mut self, from: Timestamp, to: Timestamp) -> Result<(), String> {
        let mut under_way = BTreeMap::new();
        for fire in self.under_way()? {
            *under_way.entry(fire.job).or_default() += 1;
        }
        self.gaps.push(Gap { from, to, under_way });
        Ok(())
    }

    /// The clock was set back. Who runs by then may have become younger by that, by no more than it had lasted.
    pub(super) fn note_set_back(&mut self, uptime: Duration) {
        self.set_back = uptime;
    }

    /// Nobody sleeps longer than until a slot comes, something is tried again, or the time of a run is over; and no job waits for
    /// a clock that was wrong.
    pub(super) fn check_no_stall(&mut self, stage: &Stage) -> Result<(), String> {
        let (now, uptime) = (stage.world().now(), stage.world().lock().uptime());
        if self.has_lock {
            self.check_goes_on(now)?;
        }
        let asleep = stage.next_wake().map_or(Duration::MAX, |wake| wake.saturating_sub(uptime));
        let sleeps = SignedDuration::try_from(asleep).unwrap_or(SignedDuration::MAX);
        if let Some(due) = self.next_due()?
            && sleeps > due.max(now).duration_since(now) + LATE_MAX
        {
            return Err(format!("something is due at {due}, it is {now}, and everybody sleeps for {asleep:?}"));
        }
        for run in self.store.live_runs().map_err(words)?.iter() {
            let Some(born) = self.born.get(&run.id) else { continue };
            let age = uptime.saturating_sub(self.set_back.max(*born));
            let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
            if age.saturating_add(sleeps) > TIMEOUT + LATE_MAX {
                return Err(format!("{} runs for {age:#}, and everybody sleeps for {asleep:?}", run.id));
            }
        }
        Ok(())
    }

    /// By a clock that is far behind what was seen before, jobs go on from now.
    fn check_goes_on(&mut self, now: Timestamp) -> Result<(), String> {
        let mut jobs = self.store.jobs(false, None).map_err(words)?;
        jobs.retain(|job| jobs::RECURRING.contains(&job.name()));
        let next = |job: &Job| Some((job.name().to_owned(), job.next_at?));
        match jobs.iter().filter_map(next).find(|(_, at)| *at > now + AHEAD_MAX) {
            Some((job, at)) => Err(format!("it is {now}, and {job} waits until {at}")),
            None => Ok(()),
        }
    }

    /// When a slot comes, or something is tried again.
    fn next_due(&mut self) -> Result<Option<Timestamp>, String> {
        let jobs = self.store.jobs(false, None).map_err(words)?;
        let retries = self.under_way()?.into_iter().filter_map(|fire| fire.retry_at);
        Ok(jobs.into_iter().filter_map(|job| job.next_at).chain(retries).min())
    }

    /// Once all is well, before everybody sleeps: whoever waits to be tried again waits as long as it is to.
    pub(super) fn look_in_peace(&mut self, stage: &Stage) -> Result<(), String> {
        self.is_peace = true;
        let now = stage.world().now();
        for fire in self.under_way()? {
            let Some(at) = fire.retry_at else { continue };
            if at.duration_since(now).as_secs_f64() > RETRY_MOST * (1.0 + RETRY_SHARE) {
                return Err(format!("{} failed, it is {now}, and it is tried again at {at}", said(&fire)));
            }
            if self.failed.insert((fire.id, fire.attempt)) {
                self.check_pause(&fire, at)?;
            }
        }
        Ok(())
    }

    /// Between two attempts lies what is to lie there.
    fn check_pause(&mut self, fire: &Fire, retry_at: Timestamp) -> Result<(), String> {
        let n = i32::try_from(fire.attempt - 1).unwrap_or(i32::MAX);
        let wanted = (RETRY_FIRST * 2_f64.powi(n)).min(RETRY_MOST);
        let Some(ended_at) = self.last_run(fire)?.and_then(|run| run.ended_at) else { return Ok(()) };
        let pause = retry_at.duration_since(ended_at).as_secs_f64();
        if (pause - wanted).abs() > wanted * RETRY_SHARE + 0.001 {
            return Err(format!("attempt {} at {} failed, and is followed after {pause} s", fire.attempt, said(fire)));
        }
        Ok(())
    }

    /// The run of the last attempt.
    fn last_run(&mut self, fire: &Fire) -> Result<Option<Run>, String> {
        let Some(turn) = fire.turn else { return Ok(None) };
        Ok(self.store.runs_of_turn(turn).map_err(words)?.pop())
    }

    /// What became of everything, by what the schedules say and nothing that the store remembers of it.
    pub(super) fn conclude(&mut self, stage: &Stage, healed: Timestamp) -> Result<Report, String> {
        let now = stage.world().now();
        for plan in jobs::steady(self.began) {
            let fires = self.fires(FiresOf::One(plan.name.clone()))?;
            for fire in &fires {
                self.check_end(stage, fire)?;
            }
            let times = Times { began: self.began, until: now - LATE_MAX, healed, gaps: &self.gaps };
            History::new(&plan, fires)?.check(&times)?;
        }
        self.check_reminder()?;
        let fires = self.fires(FiresOf::Jobs)?;
        let n_missed = fires.iter().filter(|fire| fire.status == FireStatus::Missed).count();
        Ok(Report { n_fires: fires.len(), n_missed, n_starts: self.starts.len(), story: Vec::new() })
    }

    /// What has fired comes to an end; what failed in a way that may pass was tried as often as it may be.
    fn check_end(&mut self, stage: &Stage, fire: &Fire) -> Result<(), String> {
        if fire.status == FireStatus::Running && fire.made_at < stage.world().now() - HEALED {
            let why = self.why_waiting(stage, fire)?;
            return Err(format!("{} has not come to an end: {why}", said(fire)));
        }
        if fire.status != FireStatus::Failed || fire.attempt >= ATTEMPTS_MAX {
            return Ok(());
        }
        match self.last_run(fire)?.and_then(|run| run.outcome) {
            Some(end @ (Outcome::Failed | Outcome::Died | Outcome::Lost)) => {
                Err(format!("{} was given up after attempt {}, which is {}", said(fire), fire.attempt, end.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// What runs once is gone when it went well; else it is kept, and somebody is told.
    fn check_reminder(&mut self) -> Result<(), String> {
        let ended = self.fires(FiresOf::One(jobs::REMINDER.to_owned()))?.pop().map(|fire| fire.status);
        let job = self.store.jobs(false, None).map_err(words)?.into_iter().find(|job| job.name() == jobs::REMINDER);
        let letters = self.store.inbox(MAYOR, true, usize::MAX).map_err(words)?.letters;
        let is_told = letters.iter().any(|letter| letter.subject.contains(jobs::REMINDER));
        match (ended == Some(FireStatus::Ok), job.map(|job| job.state)) {
            (true, None) => Ok(()),
            (false, Some(JobState::Disabled)) if is_told => Ok(()),
            (_, state) => Err(format!("{} ended as {ended:?}, is now {state:?}, told: {is_told}", jobs::REMINDER)),
        }
    }

    fn why_waiting(&mut self, stage: &Stage, fire: &Fire) -> Result<String, String> {
        let town = &stage.ground.town;
        let policy = stage.settings_in_force().policy(town.root());
        let Some(turn) = fire.turn else { return Ok(format!("it is tried again at {:?}", fire.retry_at)) };
        let why = self.store.why_waiting(turn, &policy, stage.world().now()).map_err(words)?;
        Ok(format!("turn {turn}, attempt {}, run {:?}, retry {:?}: {why:?}", fire.attempt, fire.run, fire.retry_at))
    }

    fn fires(&mut self, of: FiresOf) -> Result<Vec<Fire>, String> {
        let filter = FireFilter { of, ..FireFilter::default() };
        let mut fires = self.store.fires(&filter).map_err(words)?;
        fires.reverse();
        Ok(fires)
    }
}

/// What a process that runs was started for.
fn start_of(stage: &Stage, run: &str) -> Option<Start> {
    let env: BTreeMap<String, String> = stage.ground.runtime.launch(run)?.env.into_iter().collect();
    let of = |name: &str| env.get(name).cloned();
    Some(Start { job: of("GT_JOB")?, slot: of("GT_SLOT")?, attempt: of("GT_ATTEMPT")?.parse().ok()? })
}

/// Of a job that neither runs beside itself nor wants every slot, one slot at a time is under way.
fn check_lonely<'a>(fires: impl Iterator<Item = &'a Fire>) -> Result<(), String> {
    let mut slots = BTreeMap::new();
    for fire in fires.filter(|fire| jobs::LONELY.contains(&fire.job.as_str())) {
        if let Some(other) = slots.insert(&fire.job, fire.slot) {
            return Err(format!("{} is under way for {other} and for {}", fire.job, fire.slot));
        }
    }
    Ok(())
}

/// What rests neither waits to be started nor to be tried again.
fn check_is_wanted(fire: &Fire, job: Option<&Job>) -> Result<(), String> {
    match job.filter(|job| job.state != JobState::Active && !fire.is_manual) {
        Some(job) => Err(format!("{} waits, and its job is {}", said(fire), job.state.as_str())),
        None => Ok(()),
    }
}

/// Whoever may not run beside itself does not begin to.
fn check_alone(fire: &Fire, live: &[Fire], job: Option<&Job>) -> Result<(), String> {
    let Some(job) = job.filter(|job| !job.plan.may_overlap) else { return Ok(()) };
    match live.iter().find(|other| other.id != fire.id && other.job_id() == fire.job_id()) {
        Some(other) => Err(format!("{} runs for {} and for {} at once", job.name(), other.slot, fire.slot)),
        None => Ok(()),
    }
}
