//! The plan: what may start now, and for everything else the reason why not. // SPEC D2, D3
//!
//! One planner serves the claim, the dry run, `status`, `list` and `explain`: each shows it the same candidates in the
//! same order. It counts and decides; reading candidates and acting on its word is the store's and the engine's.

mod policy;
mod queue;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use crate::explain::{self, Reason};
use crate::readiness::Standing;
use crate::rig::RigState;
use crate::text::one_line;
use crate::time;

pub use self::policy::{Caps, Policy};
pub use self::queue::{PerSide, QueueRules, Side};
pub use self::trouble::{LONGEST_HOLD, Missing, Trial, Trouble, TroubleOf, account_of};

/// How many holders of a full cap are named.
const HOLDERS_NAMED: usize = 5;

/// Why something waits for the next second.
pub const SECOND_IS_FULL: &str = "this second has had its starts (`guards.starts_per_second`)";

/// A pause that somebody ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub by: String,
    pub at: Timestamp,
    pub reason: Option<String>,
}

/// A condition of the machine or the budget under which nothing starts. // SPEC D9
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    pub code: &'static str,
    pub message: String,
}

/// A polecat that lives, starting ones included, whoever started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    pub polecat: String,
    pub rig: String,
    pub agent: String,
    pub is_here: bool,
}

/// A polecat whose bead is closed and whose process has not ended yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finishing {
    pub run: String,
    pub polecat: String,
    pub rig: String,
    /// Until when a successor waits for it.
    pub until: Timestamp,
}

/// How long after its blocker's close a successor waits for the polecat that closed it to end. // SPEC P4
pub const SUCCESSOR_WAIT: SignedDuration = SignedDuration::from_secs(2);

/// How long a failed start is not tried again: a second, doubled with each failure. // SPEC D5
pub fn backoff(failures: i64) -> SignedDuration {
    const LONGEST: SignedDuration = SignedDuration::from_mins(5);
    let doublings = u32::try_from(failures - 1).unwrap_or(0).min(20);
    SignedDuration::from_secs(1 << doublings).min(LONGEST)
}

/// All that the plan rests on besides the candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scene {
    pub now: Timestamp,
    pub pause: Option<Pause>,
    /// What has passed is left out.
    pub troubles: BTreeMap<TroubleOf, Trouble>,
    pub trials: BTreeMap<TroubleOf, Trial>,
    pub guards: Vec<Guard>,
    pub caps: Caps,
    pub live: Vec<Live>,
    pub finishing: Vec<Finishing>,
    pub batch: Option<usize>,
    pub batch_once: Option<usize>,
    pub queue: Option<QueueRules>,
    /// Starts that are still allowed in this second; `None`: no limit.
    pub starts_left: Option<usize>,
}

/// A scheduled bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub context: String,
    pub bead: String,
    pub rig: String,
    /// `None`: there is no such rig any more.
    pub rig_state: Option<RigState>,
    pub agent: String,
    /// The account that its agent uses; `None`: its own.
    pub account: Option<String>,
    pub standing: Standing,
    /// Its type, where that is one that is never given to an agent: it was another when it was slung.
    pub no_work: Option<String>,
    /// Somebody else than when it was slung.
    pub assigned_to: Option<String>,
    /// What it waits for, in words, where it is blocked, deferred or held.
    pub waits_for: Vec<Reason>,
    /// A live run of the same bead that has to end first.
    pub old_run: Option<String>,
    pub retry: Option<Retry>,
    /// Finishing runs whose bead this one waited for.
    pub predecessors: Vec<String>,
    /// Whether it was queued, rather than slung.
    pub is_queued: bool,
}

/// A time before which a scheduled bead is not tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    pub at: Timestamp,
    pub why: RetryWhy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryWhy {
    /// Its start failed.
    FailedStart { failures: i64, last: String },
    /// Its last run ended without finishing it.
    Attempt { attempts: i64, last: String },
}

/// What the plan says of one candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Start,
    /// Every reason, the most telling first; never empty.
    Hold(Vec<Reason>),
}

/// What limited a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// There was nothing to do.
    None,
    Capacity,
    Batch,
    /// All that was ready was taken.
    Ready,
    Paused,
    Guard,
}

impl Limit {
    pub fn as_str(self) -> &'static str {
        match self {
            Limit::None => "none",
            Limit::Capacity => "capacity",
            Limit::Batch => "batch",
            Limit::Ready => "ready",
            Limit::Paused => "paused",
            Limit::Guard => "guard",
        }
    }
}

/// `min(capacity, batch, ready)`: how many start, how many are left, and what decided. // SPEC D2
pub fn to_dispatch(capacity: Option<i64>, batch: Option<usize>, ready: usize) -> (usize, usize, Limit) {
    let free = capacity.map_or(usize::MAX, |slots| usize::try_from(slots).unwrap_or(0));
    let (n, limit) = match batch {
        _ if ready == 0 => (0, Limit::None),
        Some(batch) if batch <= free && batch <= ready => (batch, Limit::Batch),
        _ if free < ready => (free, Limit::Capacity),
        _ => (ready, Limit::Ready),
    };
    (n, ready - n, limit)
}

/// Decides one candidate after the other, and keeps count.
#[derive(Debug)]
pub struct Planner {
    scene: Scene,
    n_town: usize,
    n_here: usize,
    n_by_rig: BTreeMap<String, usize>,
    n_by_agent: BTreeMap<String, usize>,
    n_started: PerSide<usize>,
    n_ready: usize,
    /// Finishing runs that have a successor waiting.
    promised: BTreeSet<String>,
    /// What the last start is a trial for.
    begun: Vec<(TroubleOf, Trial)>,
}

impl Planner {
    pub fn new(scene: Scene) -> Planner {
        let mut planner = Planner {
            n_town: 0,
            n_here: 0,
            n_by_rig: BTreeMap::new(),
            n_by_agent: BTreeMap::new(),
            n_started: PerSide::default(),
            n_ready: 0,
            promised: BTreeSet::new(),
            begun: Vec::new(),
            scene,
        };
        for live in std::mem::take(&mut planner.scene.live) {
            planner.count(&live.rig, &live.agent, live.is_here);
            planner.scene.live.push(live);
        }
        planner
    }

    /// Slots that the cap of a side leaves; `None` without a cap.
    pub fn capacity(&self, side: Side) -> Option<i64> {
        self.cap(side).or(self.scene.caps.guard).map(|cap| cap as i64 - self.n_town as i64)
    }

    fn cap(&self, side: Side) -> Option<usize> {
        match (side, &self.scene.queue) {
            (Side::Queue, Some(queue)) => queue.cap,
            _ => self.scene.caps.town,
        }
    }

    pub fn n_live(&self) -> usize {
        self.n_town
    }

    pub fn n_started(&self) -> usize {
        self.n_started.scheduler + self.n_started.queue
    }

    /// How many of those considered nothing of their own holds back.
    pub fn n_ready(&self) -> usize {
        self.n_ready
    }

    /// Whether nothing more of a side can start, whatever comes.
    pub fn is_full(&self, side: Side) -> bool {
        let is_unused = side == Side::Queue && self.scene.queue.is_none();
        is_unused || !self.common_reasons().is_empty() || !self.side_reasons(side).is_empty()
    }

    fn side_of(&self, candidate: &Candidate) -> Side {
        if candidate.is_queued && self.scene.queue.is_some() { Side::Queue } else { Side::Scheduler }
    }

    /// What limited the pass so far.
    pub fn limit(&self) -> Limit {
        match () {
            () if self.n_ready == 0 => Limit::None,
            () if self.n_started() == self.n_ready => Limit::Ready,
            () if self.scene.pause.is_some() => Limit::Paused,
            () if !self.scene.guards.is_empty() || !self.scene.troubles.is_empty() => Limit::Guard,
            () if self.scene.starts_left.is_some_and(|left| self.n_started() >= left) => Limit::Guard,
            () if self.is_batch_over() => Limit::Batch,
            () => Limit::Capacity,
        }
    }

    fn is_batch_over(&self) -> bool {
        self.scene.batch_once.is_some_and(|batch| self.n_started() >= batch)
            || Side::BOTH.into_iter().any(|side| self.batch(side).is_some_and(|n| *self.n_started.of(side) >= n))
    }

    /// How many starts of a side a pass may have.
    fn batch(&self, side: Side) -> Option<usize> {
        match side {
            Side::Scheduler => self.scene.batch,
            Side::Queue => self.scene.queue.as_ref().and_then(|queue| queue.batch),
        }
    }

    /// Takes in that something was found to be in trouble.
    pub fn hold_up(&mut self, of: TroubleOf, trouble: Trouble) {
        self.scene.troubles.insert(of, trouble);
    }

    /// Whether its agent or its rig is held up.
    pub fn is_held_up(&self, candidate: &Candidate) -> bool {
        let (agent, rig) = (&candidate.agent, &candidate.rig);
        let scopes = [TroubleOf::Program(agent.clone()), TroubleOf::Agent(agent.clone()), TroubleOf::Rig(rig.clone())];
        scopes.iter().any(|of| self.scene.troubles.contains_key(of))
    }

    /// Decides about the next candidate.
    pub fn consider(&mut self, candidate: &Candidate) -> Verdict {
        let mut reasons = self.own_reasons(candidate);
        self.n_ready += usize::from(reasons.is_empty());
        let (may_wait, side) = (reasons.is_empty(), self.side_of(candidate));
        reasons.extend(self.common_reasons());
        reasons.extend(self.side_reasons(side));
        reasons.extend(self.trouble("agent-cannot-start", &TroubleOf::Program(candidate.agent.clone())));
        reasons.extend(self.trouble("agent-held-up", &TroubleOf::Agent(candidate.agent.clone())));
        if candidate.account.is_some() {
            let account = account_of(&candidate.agent, candidate.account.as_deref());
            reasons.extend(self.trouble("agent-held-up", &TroubleOf::Agent(account)));
        }
        reasons.extend(self.trouble("rig-held-up", &TroubleOf::Rig(candidate.rig.clone())));
        reasons.extend(self.cap_reasons(candidate));
        if reasons.is_empty() && may_wait {
            reasons.extend(self.await_predecessor(candidate));
        }
        if !reasons.is_empty() {
            return Verdict::Hold(reasons);
        }
        self.begin_trials(candidate);
        self.count(&candidate.rig, &candidate.agent, true);
        *self.n_started.of_mut(side) += 1;
        Verdict::Start
    }

    /// A start is the one try for what was in trouble: whatever else needs the same waits for it.
    fn begin_trials(&mut self, candidate: &Candidate) {
        self.begun.clear();
        let of_bead = [TroubleOf::Program(candidate.agent.clone()), TroubleOf::Rig(candidate.rig.clone())];
        for of in of_bead.into_iter().chain([TroubleOf::Town]) {
            if let Some(trial) = self.scene.trials.remove(&of) {
                self.scene.troubles.insert(of.clone(), trial.hold(&of, self.scene.now));
                self.begun.push((of, trial));
            }
        }
    }

    /// What the last start is a trial for.
    pub fn begun_trials(&self) -> &[(TroubleOf, Trial)] {
        &self.begun
    }

    fn count(&mut self, rig: &str, agent: &str, is_here: bool) {
        self.n_town += 1;
        self.n_here += usize::from(is_here);
        for (counts, name) in [(&mut self.n_by_rig, rig), (&mut self.n_by_agent, agent)] {
            match counts.get_mut(name) {
                Some(n) => *n += 1,
                None => drop(counts.insert(name.to_owned(), 1)),
            }
        }
    }

    /// What about the bead itself keeps it from being started.
    fn own_reasons(&self, candidate: &Candidate) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if let Some(run) = &candidate.old_run {
            let message = format!("its earlier run {run} has to end first");
            reasons.push(reason("old-run", message));
        } else if candidate.standing != Standing::Ready {
            reasons.extend(candidate.waits_for.iter().cloned());
            if reasons.is_empty() {
                reasons.push(reason("not-ready", format!("it is {}", candidate.standing.as_str())));
            }
        }
        reasons.extend(candidate.no_work.as_deref().map(explain::not_slingable));
        if let Some(who) = &candidate.assigned_to {
            reasons.push(reason("assigned", format!("it is assigned to {} now", one_line(who))));
        }
        let starts_parked = crate::defect!("parked-rig-starts") && candidate.rig_state == Some(RigState::Parked);
        reasons.extend(rig_reason(&candidate.rig, candidate.rig_state).filter(|_| !starts_parked));
        let retry = candidate.retry.as_ref().filter(|retry| retry.at > self.scene.now);
        reasons.extend(retry.map(|retry| retry_reason(&candidate.bead, retry, self.scene.now)));
        reasons
    }

    /// What holds everybody.
    fn common_reasons(&self) -> Vec<Reason> {
        let scene = &self.scene;
        let mut reasons = Vec::new();
        reasons.extend(scene.pause.as_ref().map(pause_reason));
        reasons.extend(self.trouble("held-up", &TroubleOf::Town));
        reasons.extend(scene.guards.iter().map(|guard| reason(guard.code, guard.message.clone())));
        if scene.caps.town.is_some_and(|cap| self.n_town >= cap) && !crate::defect!("town-cap-ignored") {
            let cap = scene.caps.town.unwrap_or_default();
            reasons.push(reason("no-capacity", self.taken(cap, "the town", |_| true)));
        }
        if scene.caps.host.is_some_and(|cap| self.n_here >= cap) && !crate::defect!("host-cap-ignored") {
            let cap = scene.caps.host.unwrap_or_default();
            reasons.push(reason("host-full", self.taken(cap, "this host", |live| live.is_here)));
        }
        if let Some(batch) = scene.batch_once.filter(|batch| self.n_started() >= *batch) {
            reasons.push(batch_reason(batch, "--batch"));
        }
        if scene.starts_left.is_some_and(|left| self.n_started() >= left) && !crate::defect!("full-second-starts") {
            reasons.push(reason("guard-starts", SECOND_IS_FULL.to_owned()));
        }
        reasons
    }

    /// What holds everybody of a side. // SPEC Q1
    fn side_reasons(&self, side: Side) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if let (Side::Queue, Some(queue)) = (side, &self.scene.queue) {
            reasons.extend((!queue.is_open && !crate::defect!("queue-switch-ignored")).then(queue::closed_reason));
            if let Some(cap) = queue.cap.filter(|cap| self.n_town >= *cap && !crate::defect!("queue-cap-ignored")) {
                reasons.push(reason("queue-full", self.taken(cap, "the queue", |_| true)));
            }
        }
        let guard =
            self.scene.caps.guard.filter(|_| self.cap(side).is_none() && !crate::defect!("guard-agents-ignored"));
        if let Some(guard) = guard.filter(|guard| self.n_town >= *guard) {
            reasons.push(guard_reason(guard));
        }
        if let Some(batch) = self.batch(side).filter(|batch| *self.n_started.of(side) >= *batch) {
            let key = if side == Side::Queue { "queue.batch_size" } else { "scheduler.batch_size" };
            reasons.push(batch_reason(batch, key));
        }
        reasons
    }

    fn trouble(&self, code: &'static str, of: &TroubleOf) -> Option<Reason> {
        let trouble = self.scene.troubles.get(of)?;
        let now = self.scene.now;
        (trouble.until > now).then(|| reason(code, of.sentence(trouble, now)))
    }

    fn cap_reasons(&self, candidate: &Candidate) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let (rig, agent) = (&candidate.rig, &candidate.agent);
        if let Some(cap) = full(&self.scene.caps.rigs, &self.n_by_rig, rig)
            && !crate::defect!("rig-cap-ignored")
        {
            reasons.push(reason("rig-full", self.taken(cap, &format!("rig {rig}"), |live| live.rig == *rig)));
        }
        if let Some(cap) = full(&self.scene.caps.agents, &self.n_by_agent, agent)
            && !crate::defect!("agent-cap-ignored")
        {
            let what = format!("agent `{}`", one_line(agent));
            reasons.push(reason("agent-full", self.taken(cap, &what, |live| live.agent == *agent)));
        }
        reasons
    }

    /// A successor takes over the polecat that has just finished its blocker, so it waits for it to end. // SPEC P4
    fn await_predecessor(&mut self, candidate: &Candidate) -> Option<Reason> {
        let now = self.scene.now;
        let is_free =
            |run: &&Finishing| run.rig == candidate.rig && run.until > now && candidate.predecessors.contains(&run.run);
        let run = self.scene.finishing.iter().filter(is_free).find(|run| !self.promised.contains(&run.run))?;
        self.promised.insert(run.run.clone());
        let message = format!("{} has just finished what it waited for and takes it on next", run.polecat);
        Some(reason("awaiting-exit", message))
    }

    /// Who has the slots of a full cap, as far as they are not only promised to what is started first.
    fn taken(&self, cap: usize, what: &str, holds: impl Fn(&Live) -> bool) -> String {
        let n_live = self.scene.live.iter().filter(|live| holds(live)).count();
        let (slots, are, go) = match cap {
            1 => ("the one slot".to_owned(), "is", "goes"),
            _ => (format!("all {cap} slots"), "are", "go"),
        };
        let holders = self.holders(holds);
        match (n_live, cap) {
            (n_live, cap) if n_live >= cap => format!("{slots} of {what} {are} taken{holders}"),
            (0, _) => format!("{slots} of {what} {go} to what is before it"),
            _ => format!("{slots} of {what} {are} taken{holders} or {go} to what is before it"),
        }
    }

    /// ` by shop/Toast, shop/Ember and 3 more`, or nothing when only this pass took the slots.
    fn holders(&self, holds: impl Fn(&Live) -> bool) -> String {
        let mut names =
            self.scene.live.iter().filter(|live| holds(live)).map(|live| format!("{}/{}", live.rig, live.polecat));
        let first: Vec<String> = names.by_ref().take(HOLDERS_NAMED).collect();
        let mut text = if first.is_empty() { String::new() } else { format!(" by {}", first.join(", ")) };
        let n_more = names.count();
        if n_more > 0 {
            write!(text, " and {n_more} more").expect("writing to a string cannot fail");
        }
        text
    }
}

fn full(caps: &BTreeMap<String, usize>, counts: &BTreeMap<String, usize>, name: &str) -> Option<usize> {
    let cap = *caps.get(name)?;
    (counts.get(name).copied().unwrap_or(0) >= cap).then_some(cap)
}

fn reason(code: &'static str, message: String) -> Reason {
    Reason { code, message }
}

fn guard_reason(guard: usize) -> Reason {
    let message = format!(
        "{guard} agents run, as many as `guards.max_agents` allows where no cap is set; set one with `gt config set scheduler.max_polecats N`"
    );
    reason("guard-agents", message)
}

fn batch_reason(batch: usize, key: &str) -> Reason {
    reason("batch", format!("a pass starts {batch} at most (`{key}`); it waits for the next one"))
}

fn pause_reason(pause: &Pause) -> Reason {
    let why = pause.reason.as_deref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
    let (by, at) = (one_line(&pause.by), time::format(pause.at));
    reason("paused", format!("dispatch is paused by {by} since {at}{why}; `gt scheduler resume` goes on"))
}

/// Why nothing is started in a rig, whatever the bead. // SPEC T3
pub fn rig_reason(rig: &str, state: Option<RigState>) -> Option<Reason> {
    match state {
        Some(RigState::Active) => None,
        Some(RigState::Parked) => Some(reason("rig-parked", format!("its rig {rig} is parked: `gt rig unpark {rig}`"))),
        Some(RigState::Docked) => Some(reason("rig-docked", format!("its rig {rig} is docked: `gt rig undock {rig}`"))),
        None => Some(reason("no-rig", format!("it is meant for rig {rig}, which is not registered"))),
    }
}

fn retry_reason(bead: &str, retry: &Retry, now: Timestamp) -> Reason {
    let next = format!("retry {}, or now with `gt scheduler retry {bead}`", time::until(retry.at, now));
    match &retry.why {
        RetryWhy::FailedStart { failures, last } => {
            let times = if *failures == 1 { "once".to_owned() } else { format!("{failures} times") };
            reason("backing-off", format!("its start failed {times} ({}); {next}", one_line(last)))
        }
        RetryWhy::Attempt { attempts, last } => {
            // Not every run costs one.
            let which = if *attempts == 0 { "its last run".to_owned() } else { format!("attempt {attempts}") };
            reason("cooling-down", format!("{which} did not finish it ({}); {next}", one_line(last)))
        }
    }
}

#[cfg(test)]
mod tests;
