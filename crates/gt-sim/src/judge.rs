//! The judge: after every step it holds the town against each invariant of the design. // DESIGN, invariants
//!
//! It has a connection of its own that nothing disturbs. What it says first is the seed's verdict.

use std::collections::BTreeMap;

use gt_core::event::Event;
use gt_core::plan::{Guard, Policy};
use gt_core::readiness::Standing;
use gt_core::run::RunState;
use gt_core::status::Status;
use gt_engine::dispatch::{FINISH_GRACE, lingers_until};
use gt_store::{Outlook, Run, Store};
use jiff::{SignedDuration, Timestamp};

use crate::coverage::Coverage;
use crate::hunger::{Hunger, Moment, SWEPT_WITHIN};
use crate::knobs::Knobs;
use crate::letters::Letters;
use crate::model::{Bounds, Model, ModelRun};
use crate::recipes::judge::Steps;
use crate::shortage::judge::Guards;
use crate::silence::{Now, Silences, Watch};
use crate::stage::{RunKind, Setting, Stage};

/// How much later than it could something may be noticed: a time that the clock shows again after it was set back is not
/// expected twice.
const OVERSLEPT: SignedDuration = SignedDuration::from_secs(5);
/// Events read at a time.
const EVENTS_READ: usize = 512;

pub struct Judge {
    pub store: Store,
    /// What had been committed when the judge looked last.
    seen: Option<i64>,
    seq: i64,
    n_jumps: u32,
    /// The latest that the clock has ever shown: what has come due by then is not undone by setting it back.
    latest: Timestamp,
    n_born: usize,
    /// The policy by which the judge asks for reasons, and which of the configs that is.
    policy: Option<(Option<usize>, Policy)>,
    pub model: Model,
    hunger: Hunger,
    silences: Silences,
    letters: Letters,
    guards: Guards,
    /// Where beads are done step by step.
    steps: Option<Steps>,
    /// What was fed since the judge looked last.
    fed: Vec<String>,
    /// Whether beads were imported since.
    has_import: bool,
    pub coverage: Coverage,
}

impl Judge {
    pub fn new(stage: &Stage) -> Judge {
        let store = stage.ground.medium.open().expect("the store is there");
        let has_steps = stage.world().lock().recipes.is_used;
        Judge {
            store,
            seen: None,
            seq: 0,
            n_jumps: 0,
            latest: stage.world().now(),
            n_born: 0,
            policy: None,
            model: Model::of_town(has_steps),
            hunger: Hunger::default(),
            silences: Silences::default(),
            letters: Letters::default(),
            guards: Guards::default(),
            steps: has_steps.then(Steps::default),
            fed: Vec::new(),
            has_import: false,
            coverage: Coverage::default(),
        }
    }

    /// Every invariant, now.
    pub fn look(&mut self, stage: &mut Stage) -> Result<(), String> {
        if let Some(violation) = stage.world().lock().violations.pop() {
            return Err(violation);
        }
        self.latest = self.latest.max(stage.world().now());
        let version = self.store.outside_commits().map_err(|error| error.to_string())?;
        if self.seen.replace(version) != Some(version) {
            self.guards.note(&mut self.store)?;
            self.read_log(stage)?;
            self.guards.check_turns(&mut self.store, stage, &configs(stage))?;
            self.check_store()?;
            self.letters.settle(&mut self.store)?;
            self.check_convoys(stage)?;
            self.check_reasons(stage)?;
        }
        stage.world().lock().machine.forget_old_readings();
        self.check_orders(stage)?;
        self.check_births(stage)
    }

    /// Only what is over is stopped, and only what is recorded is forgotten.
    fn check_orders(&self, stage: &Stage) -> Result<(), String> {
        let (stops, interrupts, acknowledged) = {
            let mut world = stage.world().lock();
            let taken = (std::mem::take(&mut world.stops), std::mem::take(&mut world.interrupts));
            (taken.0, taken.1, std::mem::take(&mut world.acknowledged))
        };
        if let Some(run) = interrupts.iter().find(|run| !self.silences.may_be_interrupted(run)) {
            return Err(format!("{run} was interrupted before that was written down"));
        }
        if let Some(healthy) = stops.iter().filter_map(|run| self.model.live(run)).find(|run| !run.was_over) {
            return Err(format!("a healthy agent was stopped: {healthy:?}"));
        }
        match acknowledged.iter().find_map(|run| self.model.live(run)) {
            Some(live) => Err(format!("an end was acknowledged before it was recorded: {live:?}")),
            None => Ok(()),
        }
    }

    /// The log has no gaps, and each event can follow those before it.
    fn read_log(&mut self, stage: &Stage) -> Result<(), String> {
        let bounds = bounds(stage);
        // Between two readings of another clock there is no distance to keep.
        let n_jumps = stage.world().lock().n_clock_jumps;
        if std::mem::replace(&mut self.n_jumps, n_jumps) != n_jumps {
            self.model.forget_distance();
        }
        // A time that has come stays past, though the clock be set back behind it.
        let now = stage.world().now();
        self.model.pass_holds(now);
        self.model.unable = stage.world().lock().unable.clone();
        self.model.lost.clone_from(&stage.world().lock().lost);
        let watch = watch(stage, &bounds);
        let planned = match &self.steps {
            Some(_) => self.store.planned_steps().map_err(|error| error.to_string())?,
            None => Vec::new(),
        };
        loop {
            let events = self.store.events(self.seq, EVENTS_READ).map_err(|error| error.to_string())?;
            for event in &events {
                if event.seq != self.seq + 1 {
                    return Err(format!("event {} follows event {}", event.seq, self.seq));
                }
                self.seq = event.seq;
                stage.world().tell(|| {
                    let (bead, run) = (event.bead.as_deref().unwrap_or(""), event.run.as_deref().unwrap_or(""));
                    format!("  event {} {bead} {run} {}", event.kind, event.data)
                });
                check_end(event, stage)?;
                self.guards.check_end(event, stage)?;
                if event.kind == "bead.hooked" {
                    let bead = event.bead.as_deref().unwrap_or_default();
                    self.guards.check_claim(bead, event.ts, stage, &configs(stage))?;
                }
                if let Some(steps) = &mut self.steps {
                    steps.apply(event, &self.model, &planned, stage)?;
                }
                self.silences.apply(event, &self.model, &watch)?;
                self.letters.apply(event, &self.model);
                self.has_import |= event.data.get("imported").is_some();
                if event.kind == "convoy.staged" {
                    self.note_staged(event)?;
                }
                if let Some((phase, label)) = self.model.apply(event, &bounds)? {
                    self.fed.extend(event.bead.clone().filter(|_| label == "context.scheduled by feed"));
                    self.coverage.meet(phase, &label)?;
                }
                // Stamped before the clock was set back: by the clock it lies ahead, and nobody keeps a distance to that.
                if event.ts > stage.world().now() {
                    self.model.forget_distance();
                }
            }
            if events.len() < EVENTS_READ {
                return match &mut self.steps {
                    Some(steps) => steps.check(&mut self.store, &self.model, &planned, stage),
                    None => Ok(()),
                };
            }
        }
    }

    /// Maintained is recomputed, nothing is twice, and the store says what the log says.
    fn check_store(&mut self) -> Result<(), String> {
        let found = self.store.judge(self.latest).map_err(|error| error.to_string())?;
        if let Some(wrong) = found.disagreements.first() {
            return Err(format!("maintained readiness is not recomputed readiness: {wrong:?}"));
        }
        if let Some((source, target)) = found.ring_edges.first() {
            return Err(format!("{source} and {target} wait for each other"));
        }
        if let Some(complaint) = found.dispatch.first() {
            return Err(complaint.clone());
        }
        self.model.compare(&self.store.figures().map_err(|error| error.to_string())?)
    }

    /// Convoys are as the log says, feed who is hungry, and nobody else.
    fn check_convoys(&mut self, stage: &Stage) -> Result<(), String> {
        let stored = self.store.convoys(true).map_err(|error| error.to_string())?;
        self.model.convoys.compare(&stored, &self.model.beads)?;
        for id in std::mem::take(&mut self.fed) {
            if self.has_import {
                continue; // it may have changed what was fed before it, within the same look
            }
            let is_in_line = self.model.beads.get(&id).is_some_and(|bead| bead.is_queued && bead.run.is_none());
            let view = self.store.bead(&id).map_err(|error| error.to_string())?;
            if is_in_line && (view.bead.assignee.is_some() || view.node.standing() != Standing::Ready) {
                return Err(format!("{id} was fed, and is {view:?}"));
            }
        }
        let moment = Moment { step: stage.world().lock().step, has_import: std::mem::take(&mut self.has_import) };
        self.hunger.look(&mut self.store, &self.model, moment)?;
        self.model.convoys.pass_left(|bead| self.hunger.is_ready(bead));
        let launched = std::mem::take(&mut stage.world().lock().launched);
        launched.iter().try_for_each(|(convoy, step)| self.hunger.check_launched(convoy, *step, &self.model))
    }

    /// Whom a convoy tracks, as the store has it.
    fn note_staged(&mut self, event: &Event) -> Result<(), String> {
        let id = event.bead.as_deref().unwrap_or_default();
        let edges = self.store.bead(id).map_err(|error| error.to_string())?.bead.edges;
        let tracked = edges.into_iter().filter(|edge| edge.kind.as_str() == "tracks").map(|edge| edge.target);
        self.model.convoys.note_staged(event, tracked.collect())
    }

    /// In the healed world: whether anything waits for the sweep; nothing does for long.
    fn awaits_sweep(&mut self, stage: &Stage) -> Result<bool, String> {
        let (now, uptime) = (stage.world().now(), stage.world().lock().uptime());
        let waits = self.hunger.wait(&mut self.store, &self.model, now, uptime)?;
        if waits && Judge::asleep_for(stage) > SignedDuration::try_from(SWEPT_WITHIN).unwrap_or(SignedDuration::MAX) {
            return Err("somebody waits for a sweep, and everybody sleeps".to_owned());
        }
        Ok(waits)
    }

    /// Whatever was started was claimed before, and no run is started twice.
    fn check_births(&mut self, stage: &Stage) -> Result<(), String> {
        let started = stage.ground.runtime.started();
        for at in self.n_born..started.len() {
            let run = &started[at];
            if started[..at].contains(run) {
                return Err(format!("{run} was started twice"));
            }
            if stage.kind_of(run).is_none_or(|kind| kind == RunKind::Bead) && !self.model.claimed.contains_key(run) {
                return Err(format!("{run} was started before it was claimed"));
            }
        }
        self.n_born = started.len();
        let is_unborn = |run: &&ModelRun| run.is_started && !started.contains(&run.id);
        match self.model.beads.values().filter_map(|bead| bead.run.as_ref()).find(is_unborn) {
            Some(run) => Err(format!("{} is recorded as started, and never was", run.id)),
            None => self.check_starters(stage),
        }
    }

    /// Whoever starts a run is the one who has claimed it or taken it over.
    fn check_starters(&mut self, stage: &Stage) -> Result<(), String> {
        let starts = std::mem::take(&mut stage.world().lock().starts);
        for (pid, id) in starts {
            let run = self.store.run(&id).map_err(|error| error.to_string())?;
            if let Some(run) = run.filter(|run| run.is_live() && run.starter != pid.to_string()) {
                return Err(format!("process {pid} starts {id}, which is for process {} to start", run.starter));
            }
        }
        Ok(())
    }

    /// Everything that is scheduled starts or has a reason.
    pub fn check_reasons(&mut self, stage: &Stage) -> Result<Outlook, String> {
        let policy = self.policy(stage);
        let outlook = self.store.outlook(&policy, stage.world().now()).map_err(|error| error.to_string())?;
        for scheduled in &outlook.scheduled {
            let is_told = scheduled.reasons.iter().all(|reason| !reason.message.trim().is_empty());
            if scheduled.starts != scheduled.reasons.is_empty() || !is_told {
                return Err(format!("{} does not start, and nobody can say why", scheduled.bead));
            }
        }
        self.guards.check_reasons(stage, &outlook)?;
        Ok(outlook)
    }

    /// Nothing that could start waits while everybody sleeps, and nobody sleeps longer than until something comes due.
    pub fn check_no_stall(&mut self, stage: &Stage) -> Result<(), String> {
        let outlook = self.check_reasons(stage)?;
        let asleep = Judge::asleep_for(stage);
        self.guards.check_sleep(stage, &outlook, asleep)?;
        let knobs = stage.in_force().and_then(|setting| setting.knobs.as_ref());
        // Starts keep their distance; of a limit for each second it is enough to look once a second.
        let pause = knobs
            .map_or(0, |knobs| knobs.spawn_delay.max(knobs.queue.spawn_delay).max(u32::from(knobs.per_second > 0)));
        // With a batch, what one pass leaves waits for the next, whenever that is.
        let is_drip = knobs.is_some_and(|knobs| knobs.batch > 0 || (knobs.town == 0 && knobs.queue.batch > 0));
        if let Some(stalled) = outlook.scheduled.iter().find(|scheduled| scheduled.starts)
            && !is_drip
            && asleep > stage.unnoticed_for().max(SignedDuration::from_secs(i64::from(pause)))
        {
            return Err(format!("{} could start, and everybody sleeps for {asleep}", stalled.bead));
        }
        let (policy, now) = (self.policy(stage), stage.world().now());
        let due = self.store.next_deadline(&policy, now).map_err(|error| error.to_string())?;
        match due.filter(|due| *due + OVERSLEPT < now + asleep) {
            None => Ok(()),
            Some(due) => Err(format!("something comes due at {due}, and everybody sleeps for {asleep} from {now} on")),
        }
    }

    /// How long nobody wakes up by itself.
    fn asleep_for(stage: &Stage) -> SignedDuration {
        let span = stage.next_wake().map(|wake| wake.saturating_sub(stage.world().lock().uptime()));
        span.map_or(SignedDuration::MAX, |span| SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX))
    }

    /// Whether time alone will still change something.
    pub fn is_anything_to_come(&mut self, stage: &Stage) -> Result<bool, String> {
        let (policy, now) = (self.policy(stage), stage.world().now());
        let is_live = !self.store.live_runs().map_err(|error| error.to_string())?.is_empty();
        let due = self.store.next_deadline(&policy, now).map_err(|error| error.to_string())?;
        let outlook = self.check_reasons(stage)?;
        // What nothing of its own holds back is taken by a pass to come; when that is, the settings say.
        let is_next = |code: &str| {
            code.starts_with("guard-") || ["batch", "no-capacity", "queue-full", "host-full"].contains(&code)
        };
        let waits = outlook.scheduled.iter().any(|one| one.reasons.iter().all(|reason| is_next(reason.code)));
        // A circuit that is broken lets one try through, as soon as a pass may start something.
        let is_broken = self.model.beads.values().any(|bead| bead.is_broken && !bead.is_done);
        let awaits_sweep = self.awaits_sweep(stage)?;
        Ok(is_live || awaits_sweep || due.is_some() || waits || is_broken || !stage.ground.runtime.running().is_empty())
    }

    /// Nobody sleeps over an end, and nothing outlives its work or its time.
    pub fn check_ends(&mut self, stage: &Stage) -> Result<(), String> {
        let (now, running) = (stage.world().now(), stage.ground.runtime.running());
        let stopping = stage.ground.runtime.stopping();
        let settings = stage.settings_in_force();
        let max_run = settings.max_run;
        let is_past = |at: Option<Timestamp>, span: SignedDuration| at.is_some_and(|at| now >= at + span);
        for run in self.store.live_runs().map_err(|error| error.to_string())?.iter().filter(|run| run.turn.is_none()) {
            if let Some(span) = settings.stall_after {
                self.check_silence(stage, run, span)?;
            }
            let what = match () {
                () if run.state == RunState::Working && !running.contains(&run.id) => "has ended",
                () if run.stop.is_some() && running.contains(&run.id) && !stopping.contains(&run.id) => {
                    "was told to stop, and nobody stopped it"
                }
                () if is_past(run.finished_at(now), FINISH_GRACE) => "lives on after its work",
                () if is_past(lingers_until(run), SignedDuration::ZERO) => "lives on after its last word",
                // How long it has lasted, whoever watches it knows better than the clock.
                () if max_run.is_some_and(|max| is_past(run.started_at, max) && Judge::asleep_for(stage) > max) => {
                    "runs for too long"
                }
                () => continue,
            };
            return Err(format!("{} of {} {what}, and everybody sleeps", run.id, run.bead));
        }
        Ok(())
    }

    /// Nobody who is silent without reason is slept over.
    fn check_silence(&self, stage: &Stage, run: &Run, span: SignedDuration) -> Result<(), String> {
        let (sign, now, set_at) = {
            let world = stage.world().lock();
            (world.signs.get(&run.id).copied(), Now { clock: world.now(), uptime: world.uptime() }, world.set_at)
        };
        let Some(sign) = sign.filter(|_| stage.ground.runtime.running().contains(&run.id)) else { return Ok(()) };
        self.silences.check_late(run, &sign, set_at, span.unsigned_abs(), now)
    }

    /// Every bead is done or says why not; nobody works on anything; nothing runs that nobody knows of.
    pub fn check_rest(&mut self, stage: &Stage) -> Result<(), String> {
        self.check_no_stall(stage)?;
        let live = self.store.live_runs().map_err(|error| error.to_string())?;
        if let Some(run) = live.first() {
            return Err(format!("{} of {} is still {:?} at rest", run.id, run.bead, run.state));
        }
        if let Some(run) = stage.ground.runtime.running().first() {
            return Err(format!("{run} still runs at rest, and nobody knows of it"));
        }
        self.guards.check_told(stage)?;
        let policy = self.policy(stage);
        for (id, bead) in &self.model.beads {
            if bead.is_done {
                continue;
            }
            let why = self.store.explain(id, &policy, stage.world().now()).map_err(|error| error.to_string())?;
            let is_shrug =
                |reason: &gt_core::explain::Reason| reason.code == "waiting" || reason.message.trim().is_empty();
            if why.reasons.is_empty() || why.reasons.iter().any(is_shrug) {
                return Err(format!("{id} is not done, and nobody can say why"));
            }
        }
        let inspection = self.store.inspect(self.latest).map_err(|error| error.to_string())?;
        inspection.damage.first().map_or(Ok(()), |damage| Err(damage.clone()))
    }

    /// The policy of the config in force.
    fn policy(&mut self, stage: &Stage) -> Policy {
        let at = stage.settings.iter().rposition(|setting| setting.in_force.is_some());
        if self.policy.as_ref().is_none_or(|(known, _)| *known != at) {
            self.policy = Some((at, stage.settings_in_force().policy(stage.ground.town.root())));
        }
        let known = self.policy.as_ref().map(|(_, policy)| policy.clone()).unwrap_or_default();
        let guard = |code| Guard { code, message: "so it was measured".to_owned() };
        Policy { guards: stage.tripped().into_iter().map(guard).collect(), ..known }
    }

    /// Every bead is closed.
    pub fn check_all_done(&mut self) -> Result<(), String> {
        let figures = self.store.figures().map_err(|error| error.to_string())?;
        match figures.iter().find(|figure| !matches!(figure.status, Status::Closed | Status::Tombstone)) {
            None => Ok(()),
            Some(figure) => Err(format!("everything could be done, but {figure:?}")),
        }
    }

    /// What each bead was expected to come to, it has come to.
    pub fn check_forecast(&mut self, stage: &Stage, forecast: &BTreeMap<String, bool>) -> Result<(), String> {
        for (id, is_done) in forecast {
            let bead = self.model.beads.get(id).cloned().unwrap_or_default();
            if bead.is_done != *is_done {
                let (was, is) = if *is_done { ("done", "not") } else { ("left alone", "done") };
                let policy = self.policy(stage);
                let why = self.store.explain(id, &policy, stage.world().now());
                return Err(format!("{id} was expected to be {was}, and is {is}: {bead:?}, {why:?}"));
            }
        }
        Ok(())
    }

    /// What becomes of each bead if nothing goes wrong from now on; beads about which that cannot be said are left out.
    pub fn forecast(&mut self) -> Result<BTreeMap<String, bool>, String> {
        let filter = gt_store::Filter { all: true, ..gt_store::Filter::default() };
        let listing = self.store.list(&filter, 0).map_err(|error| error.to_string())?;
        let mut forecast = BTreeMap::new();
        let mut wanted: BTreeMap<&str, &gt_core::bead::Bead> = BTreeMap::new();
        for view in &listing.beads {
            let Some(bead) = self.model.beads.get(&view.bead.id) else { continue };
            if self.model.convoys.contains(&view.bead.id) {
                continue;
            }
            let is_fed = !bead.is_held && self.model.convoys.open_of(&view.bead.id).next().is_some();
            match bead.wish() {
                _ if bead.is_done => drop(forecast.insert(view.bead.id.clone(), true)),
                // Its convoy sees to it, once nothing is in its way.
                Some(false) if is_fed && is_plain(&view.bead, false) => {
                    wanted.insert(&view.bead.id, &view.bead);
                }
                Some(false) if is_fed => {}
                Some(false) => drop(forecast.insert(view.bead.id.clone(), false)),
                Some(true) if is_plain(&view.bead, bead.run.is_some()) => {
                    wanted.insert(&view.bead.id, &view.bead);
                }
                _ => {}
            }
        }
        // Whatever waits only for what gets done gets done.
        loop {
            let next = wanted.iter().find(|(_, bead)| {
                bead.edges
                    .iter()
                    .filter(|edge| edge.kind.as_str() != "related")
                    .all(|edge| edge.kind.as_str() == "blocks" && forecast.get(&edge.target) == Some(&true))
            });
            let Some(id) = next.map(|(id, _)| (*id).to_owned()) else { break };
            wanted.remove(id.as_str());
            forecast.insert(id, true);
        }
        Ok(forecast)
    }
}

/// Whether nothing but its blockers keeps a bead from being worked on.
fn is_plain(bead: &gt_core::bead::Bead, has_run: bool) -> bool {
    let is_free = match bead.status {
        Status::Open => bead.assignee.is_none(),
        Status::Hooked | Status::InProgress => {
            has_run && bead.assignee.as_deref().is_none_or(|assignee| assignee.contains("/polecats/"))
        }
        _ => false,
    };
    is_free && bead.defer_until.is_none() && !bead.is_pinned()
}

/// What whoever has just moved knows of signs of life.
fn watch(stage: &Stage, bounds: &Bounds) -> Watch {
    let world = stage.world().lock();
    let read = world.mover.and_then(|pid| world.read_signs.get(&pid)).cloned().unwrap_or_default();
    Watch { read, span: bounds.stall_after, uptime: world.uptime(), set_at: world.set_at }
}

/// The configs that whoever has just moved can go by: what was in force when it read the config, or came after that.
fn configs(stage: &Stage) -> Vec<&Knobs> {
    let since = stage.reads_since.unwrap_or(0);
    let was_in_force = |setting: &Setting| setting.in_force.is_some_and(|step| step <= since);
    let first = stage.settings.iter().rposition(was_in_force).unwrap_or(0);
    stage.settings[first..].iter().filter_map(|setting| setting.knobs.as_ref()).collect()
}

/// The widest caps of these configs.
fn bounds(stage: &Stage) -> Bounds {
    let mut bounds = Bounds::widest(configs(stage).into_iter());
    // A start that was made ready earlier may be recorded by what held then.
    let failures = stage.settings.iter().filter_map(|setting| setting.knobs.as_ref()).map(|knobs| knobs.max_failures);
    bounds.failures = failures.max().map_or(i64::MAX, i64::from);
    if stage.world().lock().faults.broken_turn {
        // The distance is kept by waiting for the turn.
        (bounds.spacing, bounds.queue_spacing) = (0, bounds.queue_spacing.map(|_| 0));
    }
    bounds
}

/// A run that is recorded as dead does not live on: its bead would be given out beside it.
fn check_end(event: &Event, stage: &Stage) -> Result<(), String> {
    let is_death = event.kind == "run.ended" && event.data["outcome"] == "died";
    match event.run.as_ref().filter(|_| is_death) {
        Some(run) if stage.ground.runtime.running().contains(run) => {
            Err(format!("{run} is recorded as dead, and lives: {}", event.data))
        }
        _ => Ok(()),
    }
}
