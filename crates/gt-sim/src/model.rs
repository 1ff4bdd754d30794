//! The model: what must follow from the events alone, worked out in the simplest way, to hold the store against.
//!
//! It knows nothing of tables, transactions or processes. It reads the log, in order, and says when something in it
//! cannot be, what it expects the store to say, and what will become of each bead when nothing goes wrong any more.

use std::collections::BTreeMap;

use gt_core::context::ContextState;
use gt_core::event::Event;
use gt_core::run::{Outcome, RunState};
use gt_core::status::Status;
use gt_store::Figure;
use jiff::{SignedDuration, Timestamp};

use crate::convoys::Convoys;
use crate::coverage::{Phase, RunPhase};
use crate::hunger;
use crate::knobs::{FAILURES_MAX, Knobs};
use crate::processes::{DAEMON, RUNNER};

/// What a run that ends well and says nothing may have come to, where some are done step by step.
const WELL: &[Outcome] = &[Outcome::Died, Outcome::StepDone, Outcome::Completed];

/// What a run has told that keeps it from working.
#[derive(Debug, Clone, Default)]
pub struct Unable {
    /// What it would end as now.
    pub now: Option<Outcome>,
    /// What it would have ended as at some time.
    pub ever: Vec<Outcome>,
}

/// A run, from its claim to its end.
#[derive(Debug, Clone)]
pub struct ModelRun {
    pub id: String,
    pub rig: String,
    pub agent: String,
    pub is_started: bool,
    pub said: Option<Outcome>,
    pub is_stopping: bool,
    /// Whether there ever was a reason to end it.
    pub was_over: bool,
}

#[derive(Debug, Clone, Default)]
pub struct ModelBead {
    pub is_done: bool,
    pub is_queued: bool,
    /// By `gt queue`, rather than by a sling.
    pub is_by_queue: bool,
    pub run: Option<ModelRun>,
    pub attempts: i64,
    /// Nothing starts it again by itself.
    pub is_held: bool,
    /// A broken circuit: one more try comes by itself.
    pub is_broken: bool,
    /// No automatic path starts it before.
    pub not_before: Option<Timestamp>,
    /// Its context is one that a broken circuit has let through.
    pub is_half_open: bool,
    /// Its start has failed as often as it may.
    pub must_break: bool,
    /// Its agent could not work, so it has to be queued again.
    pub must_queue: bool,
}

#[derive(Debug, Default)]
pub struct Model {
    pub beads: BTreeMap<String, ModelBead>,
    pub convoys: Convoys,
    /// Whether some beads are done step by step.
    pub has_steps: bool,
    pub is_paused: bool,
    /// Rigs that are not active.
    pub aside: BTreeMap<String, &'static str>,
    /// What is held up, until when, and whether the clock has shown that time.
    held: BTreeMap<String, (Timestamp, bool)>,
    /// What runs must end as, because of what they have told.
    pub unable: BTreeMap<String, Unable>,
    /// Runs whose end was nothing that they did, and whether everybody who looks can see that.
    pub lost: BTreeMap<String, bool>,
    /// Runs that were claimed, with their beads.
    pub claimed: BTreeMap<String, String>,
    /// When they were.
    claimed_at: Vec<Timestamp>,
    /// When the last one was that was slung, and the last that came by the queue.
    last_slung: Option<Timestamp>,
    last_queued: Option<Timestamp>,
}

/// Town, rig and agent caps that a claim must keep; `None`: none.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    pub town: Option<usize>,
    /// The cap of what is queued.
    pub queued_town: Option<usize>,
    /// Whether the daemon may start what is queued.
    pub starts_queued: bool,
    /// The shortest time between two starts of the queue, in seconds, where it rules itself; `None`: it may not.
    pub queue_spacing: Option<i64>,
    pub rigs: BTreeMap<String, Option<usize>>,
    pub agents: BTreeMap<String, Option<usize>>,
    pub host: Option<usize>,
    /// What the machine bears, of what was slung and of what was queued.
    pub guards: [Option<usize>; 2],
    pub per_second: Option<usize>,
    /// The shortest time between two starts, in seconds.
    pub spacing: i64,
    /// The fewest and the most attempts, and the shortest pause after one, in seconds.
    pub attempts_min: i64,
    pub attempts: i64,
    pub cooldown: i64,
    /// The shortest silence that is too long, in seconds.
    pub stall_after: i64,
    /// The most starts of a context that may fail.
    pub failures: i64,
}

impl Bounds {
    /// The widest of several configs: whoever claims may have read any of them.
    pub fn widest<'a>(settings: impl Iterator<Item = &'a Knobs> + Clone) -> Bounds {
        let widest = |cap: &dyn Fn(&Knobs) -> usize| {
            let caps: Vec<usize> = settings.clone().map(cap).collect();
            (!caps.contains(&0)).then(|| caps.into_iter().max()).flatten()
        };
        let named = |names: &[&str], cap: &dyn Fn(&Knobs, usize) -> usize| {
            names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), widest(&|knobs| cap(knobs, at)))).collect()
        };
        let rigs: Vec<&str> = crate::knobs::RIGS.iter().map(|(name, _)| *name).collect();
        Bounds {
            town: widest(&|knobs| knobs.town),
            queued_town: widest(&Knobs::queued_town),
            starts_queued: settings.clone().any(Knobs::starts_queued),
            queue_spacing: queue_spacing(settings.clone()),
            rigs: named(&rigs, &|knobs, at| knobs.rigs[at]),
            agents: named(&crate::knobs::AGENTS, &|knobs, at| knobs.agents[at]),
            host: widest(&|knobs| knobs.host),
            guards: [false, true].map(|is_queued| widest(&|knobs| knobs.agents_guard(is_queued).unwrap_or(0))),
            per_second: widest(&|knobs| knobs.per_second),
            spacing: settings.clone().map(|knobs| i64::from(knobs.spawn_delay)).min().unwrap_or(0),
            attempts_min: settings.clone().map(|knobs| i64::from(knobs.attempts)).min().unwrap_or(0),
            attempts: settings.clone().map(|knobs| i64::from(knobs.attempts)).max().unwrap_or(i64::MAX),
            stall_after: settings.clone().map(|knobs| i64::from(knobs.stall_after)).min().unwrap_or(0),
            failures: settings.clone().map(|knobs| i64::from(knobs.max_failures)).max().unwrap_or(i64::MAX),
            cooldown: settings.map(|knobs| i64::from(knobs.cooldown)).min().unwrap_or(0),
        }
    }
}

/// A queued start keeps the queue's distance only where the scheduler has no cap.
fn queue_spacing<'a>(mut settings: impl Iterator<Item = &'a Knobs> + Clone) -> Option<i64> {
    let delays = settings.clone().map(|knobs| i64::from(knobs.queue.spawn_delay));
    settings.all(|knobs| knobs.town == 0).then(|| delays.min()).flatten()
}

impl ModelBead {
    pub fn phase(&self) -> Phase {
        let run = match &self.run {
            None => RunPhase::None,
            Some(run) if run.is_stopping => RunPhase::Stopping,
            Some(run) if run.said.is_some() => RunPhase::Spoken,
            Some(run) if run.is_started => RunPhase::Working,
            Some(_) => RunPhase::Starting,
        };
        Phase { is_done: self.is_done, is_queued: self.is_queued, run }
    }
}

impl ModelBead {
    /// Whether it gets done once nothing is in its way: `Some(false)`: nobody will touch it; `None`: it depends.
    pub fn wish(&self) -> Option<bool> {
        match &self.run {
            _ if self.is_queued || self.is_broken => Some(true),
            None => Some(false),
            // It is asked to stop, or has said its word; what then becomes of the bead depends on what came first.
            Some(run) if run.is_stopping || run.said.is_some() => None,
            // Whoever records its end may still go by an older config, with fewer attempts.
            Some(_) if self.attempts > 0 => None,
            Some(_) => Some(true),
        }
    }
}

impl Model {
    /// Of a town in which some beads are done step by step, or none.
    pub fn of_town(has_steps: bool) -> Model {
        Model { has_steps, ..Model::default() }
    }

    /// What a run has told that decides its end, and what its end can be if it has told nothing.
    fn unspoken(&self, event: &Event) -> (Option<&Unable>, &'static [Outcome]) {
        let told = event.run.as_ref().and_then(|run| self.unable.get(run));
        let silent: &[Outcome] = match event.run.as_ref().and_then(|run| self.lost.get(run)) {
            None if self.has_steps && event.data.get("exit_code").is_some_and(|code| code == 0) => WELL,
            None => &[Outcome::Died],
            Some(true) => &[Outcome::Lost],
            Some(false) => &[Outcome::Lost, Outcome::Died],
        };
        (told, silent)
    }

    /// Takes in what happened next. The answer is what the event is called in the table of transitions.
    pub fn apply(&mut self, event: &Event, bounds: &Bounds) -> Result<Option<(Phase, String)>, String> {
        self.apply_to_town(event);
        self.convoys.apply(event, &self.beads)?;
        let Some(id) = &event.bead else { return Ok(None) };
        let data = |key: &str| event.data.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        let mut bead = self.beads.get(id).cloned().unwrap_or_default();
        let phase = bead.phase();
        let mut label = event.kind.clone();
        match event.kind.as_str() {
            // What was deleted here is closed elsewhere.
            "bead.closed" if bead.is_done && event.data.get("imported").is_some() => {
                "bead.updated".clone_into(&mut label);
            }
            "bead.closed" | "bead.deleted" => bead.is_done = true,
            "bead.reopened" => bead.is_done = false,
            "context.scheduled" => {
                label = format!("context.scheduled by {}", data("by"));
                self.schedule(event, id, &mut bead, &data("by"), bounds)?;
            }
            "context.closed" => {
                label = format!("context.closed {}", data("reason"));
                (bead.is_queued, bead.is_held) = (false, data("reason") != "stale-work-bead");
                bead.is_broken = data("reason") == "circuit-broken";
                bead.must_break = false;
            }
            "bead.hooked" => self.claim(event, id, &mut bead, bounds)?,
            "run.started" => with_run(event, &mut bead)?.is_started = true,
            "run.stopping" => with_run(event, &mut bead)?.is_stopping = true,
            "run.reported" => {
                label = format!("run.reported {}", data("outcome"));
                with_run(event, &mut bead)?.said = Outcome::parse(&data("outcome"));
            }
            "run.ended" => {
                label = format!("run.ended {}", data("outcome"));
                self.check_hold(event, &bead, &data("outcome"))?;
                let (told, silent) = self.unspoken(event);
                if silent == WELL && told.is_none_or(|told| told.now.is_none()) && data("outcome") == "completed" {
                    let is_alone = !bead.is_done && bead.run.as_ref().is_some_and(|run| run.said.is_none());
                    label = if is_alone { "run.ended completed alone".to_owned() } else { label };
                }
                end(event, &mut bead, &data("outcome"), &data("reason"), told, silent)?;
            }
            "context.failed" => {
                let failures = event.data.get("failures").and_then(serde_json::Value::as_i64).unwrap_or(0);
                // A circuit that has let one try through may fail once more.
                if data("error").is_empty() || (failures > FAILURES_MAX && !bead.is_half_open) {
                    return Err(format!("a start of {id} failed for the time {failures}: `{}`", data("error")));
                }
                bead.not_before = Some(event.ts + SignedDuration::from_secs(1));
                bead.must_break = failures >= bounds.failures;
            }
            // Attempts are used up; an agent that asks for help has a run.
            "bead.escalated" if bead.run.is_none() => {
                if bead.attempts <= bounds.attempts_min {
                    return Err(format!("{id} was given up after {} attempts", bead.attempts));
                }
                bead.is_held = true;
            }
            _ => {}
        }
        let is_done = bead.is_done;
        if let Some(run) = &mut bead.run {
            run.was_over |= is_done || run.said.is_some() || run.is_stopping;
        }
        self.beads.insert(id.clone(), bead);
        Ok(Some((phase, label)))
    }

    fn apply_to_town(&mut self, event: &Event) {
        let rig = event.data.get("rig").or(event.data.get("name")).and_then(|name| name.as_str()).unwrap_or_default();
        match event.kind.as_str() {
            "scheduler.paused" => self.is_paused = true,
            "scheduler.resumed" => {
                self.is_paused = false;
                self.held.clear();
            }
            "scheduler.freed" => match event.data.get("what").and_then(|what| what.as_str()) {
                Some(what) => drop(self.held.remove(what)),
                None => self.held.clear(),
            },
            "scheduler.held_up" => self.hold_up(event),
            "rig.parked" => drop(self.aside.insert(rig.to_owned(), "parked")),
            "rig.docked" => drop(self.aside.insert(rig.to_owned(), "docked")),
            "rig.removed" => drop(self.aside.insert(rig.to_owned(), "removed")),
            "rig.added" | "rig.unparked" | "rig.undocked" => drop(self.aside.remove(rig)),
            _ => {}
        }
    }

    /// A bead gets into line, by some way.
    fn schedule(&self, event: &Event, id: &str, bead: &mut ModelBead, by: &str, bounds: &Bounds) -> Result<(), String> {
        if by == "feed" {
            self.check_feed(id, bead)?;
        }
        if matches!(by, "witness" | "agent") && bead.is_held {
            return Err(format!("{id} is queued again by its {by}, and is held"));
        }
        let is_claimed = bead.run.as_ref().is_some_and(|run| !run.is_started) && !bead.is_queued;
        let was_nobodys_fault = bead.must_queue;
        bead.is_queued = !is_claimed || by == "sling";
        (bead.is_held, bead.is_broken, bead.must_queue) = (false, false, false);
        bead.is_by_queue = event.data.get("queued").is_some_and(|queued| queued == true);
        if by == "retry" {
            bead.attempts = 0;
        }
        bead.is_half_open = match by {
            "breaker" => true,
            "sling" | "feed" => false,
            _ => bead.is_half_open,
        };
        let pause = SignedDuration::from_secs(bounds.cooldown);
        bead.not_before = (by == "witness").then(|| event.ts + pause);
        if by == "witness" && !was_nobodys_fault && bead.attempts > bounds.attempts {
            return Err(format!("{id} is tried again after {} attempts", bead.attempts));
        }
        Ok(())
    }

    /// Only a bead that nothing holds is fed, in a rig that takes work, for an open convoy.
    fn check_feed(&self, id: &str, bead: &ModelBead) -> Result<(), String> {
        if bead.is_held {
            return Err(format!("{id} was fed, and is held"));
        }
        if self.convoys.open_of(id).next().is_none() {
            return Err(format!("{id} was fed, and is in no open convoy"));
        }
        match hunger::rig_of(id).map(|rig| self.aside.get(rig)) {
            Some(None) => Ok(()),
            aside => Err(format!("{id} was fed, and its rig is {aside:?}")),
        }
    }

    /// Whose agent could not work, that agent is held up by now.
    fn check_hold(&self, event: &Event, bead: &ModelBead, outcome: &str) -> Result<(), String> {
        let is_the_agents = Outcome::parse(outcome).is_some_and(Outcome::is_the_agents);
        let Some(run) = bead.run.as_ref().filter(|run| is_the_agents && !run.is_stopping) else { return Ok(()) };
        match self.held.get(&format!("agent `{}`", run.agent)) {
            Some((until, _)) if *until > event.ts => Ok(()),
            held => Err(format!("{} ended as {outcome}, and {} is held up until {held:?}", run.id, run.agent)),
        }
    }

    /// The clock shows this time: what has come by then stays past, though it be set back.
    pub fn pass_holds(&mut self, now: Timestamp) {
        self.held.values_mut().for_each(|(until, is_over)| *is_over |= *until <= now);
    }

    /// An agent that cannot work, or cannot be started, is left alone for a while; so is a rig, and all of the town.
    fn hold_up(&mut self, event: &Event) {
        let text = |key: &str| event.data.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        if let Some(until) = gt_core::time::parse(text("until")) {
            self.held.insert(text("what").to_owned(), (until, false));
        }
    }

    /// A claim: the one thing that everything else is about.
    fn claim(&mut self, event: &Event, id: &str, bead: &mut ModelBead, bounds: &Bounds) -> Result<(), String> {
        let text = |key: &str| event.data.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        let run = event.run.clone().unwrap_or_default();
        let (rig, agent) = (text("rig"), text("agent"));
        if bead.not_before.is_some_and(|at| event.ts < at) {
            return Err(format!("{id} was claimed before {:?}", bead.not_before));
        }
        if self.is_paused {
            return Err(format!("{id} was claimed while the scheduler was paused"));
        }
        if let Some(state) = self.aside.get(&rig) {
            return Err(format!("{id} was claimed in rig {rig}, which is {state}"));
        }
        let scopes = [format!("agent `{agent}`"), format!("the program of agent `{agent}`"), format!("rig {rig}")];
        for what in scopes.into_iter().chain(["dispatch".to_owned()]) {
            let held = self.held.get(&what).filter(|(until, is_over)| event.ts < *until && !is_over);
            if let Some((until, _)) = held {
                return Err(format!("{id} was given to {agent}, and {what} is held up until {until}"));
            }
        }
        if self.claimed.insert(run.clone(), id.to_owned()).is_some() {
            return Err(format!("the name {run} was given to two runs"));
        }
        if bead.is_by_queue && event.actor != RUNNER && !(event.actor == DAEMON && bounds.starts_queued) {
            return Err(format!("{id} is queued, and {} claimed it unasked", event.actor));
        }
        (bead.is_queued, bead.not_before) = (false, None);
        bead.run = Some(ModelRun {
            id: run,
            rig: rig.clone(),
            agent: agent.clone(),
            is_started: false,
            said: None,
            is_stopping: false,
            was_over: false,
        });
        let others: Vec<&ModelRun> =
            self.beads.iter().filter(|(other, _)| *other != id).filter_map(|(_, bead)| bead.run.as_ref()).collect();
        let n_of = |is_it: &dyn Fn(&ModelRun) -> bool| 1 + others.iter().filter(|run| is_it(run)).count();
        let counts = [
            ("the town", n_of(&|_| true), if bead.is_by_queue { bounds.queued_town } else { bounds.town }),
            ("the host", n_of(&|_| true), bounds.host),
            ("the machine", n_of(&|_| true), bounds.guards[usize::from(bead.is_by_queue)]),
            ("its rig", n_of(&|run| run.rig == rig), bounds.rigs.get(&rig).copied().flatten()),
            ("its agent", n_of(&|run| run.agent == agent), bounds.agents.get(&agent).copied().flatten()),
        ];
        for (whose, n, cap) in counts {
            if cap.is_some_and(|cap| n > cap) {
                return Err(format!("{id} was claimed as number {n} in {whose}, whose cap is {cap:?}"));
            }
        }
        self.space(event.ts, bead.is_by_queue, bounds)
    }

    /// The clock was set: times before and after it cannot be compared.
    pub fn forget_distance(&mut self) {
        self.claimed_at.clear();
        (self.last_slung, self.last_queued) = (None, None);
    }

    /// Starts keep their distance, and no second has too many. Only what lies before by the clock counts.
    fn space(&mut self, now: Timestamp, is_by_queue: bool, bounds: &Bounds) -> Result<(), String> {
        let since = |span: SignedDuration| move |at: &&Timestamp| **at <= now && **at > now - span;
        let (last, spacing) = match bounds.queue_spacing {
            _ if bounds.town.is_some() => (self.claimed_at.last(), bounds.spacing),
            _ if !is_by_queue => (self.last_slung.as_ref(), bounds.spacing),
            Some(spacing) => (self.last_queued.as_ref(), spacing),
            // Some configs have a cap and others have none: it may have been either distance.
            None => (None, 0),
        };
        if let Some(last) = last.filter(since(SignedDuration::from_secs(spacing))) {
            return Err(format!("a start at {now} follows one at {last}"));
        }
        let n_in_second = 1 + self.claimed_at.iter().filter(since(SignedDuration::from_secs(1))).count();
        if bounds.per_second.is_some_and(|most| n_in_second > most) {
            return Err(format!("{n_in_second} starts in a second, and {:?} are allowed", bounds.per_second));
        }
        self.claimed_at.push(now);
        *(if is_by_queue { &mut self.last_queued } else { &mut self.last_slung }) = Some(now);
        Ok(())
    }

    /// A run that lives, as far as the log says.
    pub fn live(&self, run: &str) -> Option<&ModelRun> {
        let bead = self.beads.get(self.claimed.get(run)?)?;
        bead.run.as_ref().filter(|live| live.id == run)
    }

    /// What the store says of each bead is what the log says.
    pub fn compare(&self, figures: &[Figure]) -> Result<(), String> {
        for figure in figures {
            let bead = self.beads.get(&figure.bead).cloned().unwrap_or_default();
            if bead.must_break {
                return Err(format!("the start of {} failed as often as it may, and its circuit holds", figure.bead));
            }
            if bead.must_queue {
                return Err(format!("the agent of {} could not work, and nobody else is to do it", figure.bead));
            }
            let is_done = matches!(figure.status, Status::Closed | Status::Tombstone);
            let is_queued = figure.context == Some(ContextState::Open);
            if figure.hold.is_some() != bead.is_held {
                return Err(format!("the store says {figure:?}, the log says {bead:?}"));
            }
            let run = figure.run.as_ref().map(|(id, state)| (id.clone(), *state == RunState::Working));
            let expected = bead.run.as_ref().map(|run| (run.id.clone(), run.is_started));
            if (is_done, is_queued, &run, figure.attempts) != (bead.is_done, bead.is_queued, &expected, bead.attempts) {
                return Err(format!("the store says {figure:?}, the log says {bead:?}"));
            }
        }
        Ok(())
    }
}

fn with_run<'a>(event: &Event, bead: &'a mut ModelBead) -> Result<&'a mut ModelRun, String> {
    let run = bead.run.as_mut().filter(|run| Some(&run.id) == event.run.as_ref());
    run.ok_or_else(|| format!("{} of {:?}, which is not the bead's live run", event.kind, event.run))
}

/// A run ends as what it said, what became of its bead and what it was told demand.
fn end(
    event: &Event,
    bead: &mut ModelBead,
    outcome: &str,
    reason: &str,
    told: Option<&Unable>,
    silent: &[Outcome],
) -> Result<(), String> {
    let run = with_run(event, bead)?.clone();
    let outcome = Outcome::parse(outcome).ok_or("a run ended without an outcome")?;
    let is_right = match outcome {
        Outcome::NotStarted => !run.is_started && run.said.is_none(),
        _ if bead.is_done => outcome == Outcome::Completed,
        _ => match (run.said, run.is_stopping) {
            // Its step is done, and nobody goes on after it.
            (Some(Outcome::StepDone), true) => matches!(outcome, Outcome::StepDone | Outcome::Stopped),
            (Some(said), _) => outcome == said,
            // Whoever was told to stop because of what it said may have got over it meanwhile.
            (None, true) if outcome.is_the_agents() => told.is_some_and(|told| told.ever.contains(&outcome)),
            (None, true) if silent == WELL && matches!(outcome, Outcome::StepDone | Outcome::Completed) => true,
            (None, true) => matches!(outcome, Outcome::Stopped | Outcome::TimedOut | Outcome::Died),
            (None, false) => told.and_then(|told| told.now).map_or(silent.contains(&outcome), |now| now == outcome),
        },
    };
    if !is_right {
        return Err(format!("{run:?} of a bead that is {bead:?} ended as {outcome:?}"));
    }
    if reason.is_empty() {
        return Err(format!("{} ended as {outcome:?} without a word", run.id));
    }
    bead.run = None;
    bead.attempts += i64::from(outcome.costs_an_attempt());
    // A start that failed is tried again, unless the log says otherwise right after.
    bead.is_queued |= outcome == Outcome::NotStarted;
    bead.must_queue =
        (outcome.is_the_agents() || outcome == Outcome::Lost) && !run.is_stopping && !bead.is_queued && !bead.is_held;
    bead.is_held |= outcome == Outcome::Stopped && !bead.is_queued;
    Ok(())
}
