//! The town's processes as strands: the daemon and the commands that pass for themselves, all of them the real code.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use gt_engine::daemon::Daemon;
use gt_engine::dispatch::Dispatcher;
use gt_engine::done::{self, NotDone, Word};
use gt_engine::once;
use gt_engine::refinery::{self, NotRetried};
use gt_engine::settings::Settings;
use gt_engine::sling::{self, BadRequest, Request};
use gt_engine::surroundings::{self, Surroundings};
use gt_engine::{Town, TownError, chain, talk};
use gt_runtime::simulated::SimulatedRuntime;
use gt_store::{Going, Sling, SlingOutcome, Slung, Staging, Stamp, Store, StoreError, TurnState};

use crate::around::Around;
use crate::couriers;
use crate::fleet::Fleet;
use crate::medium::Medium;
use crate::stage::Stage;
use crate::strand::Strand;
use crate::telegram;
use crate::world::{Pid, Shared};

/// Whom the log names for what the daemon claims, and for what somebody has asked to be started now.
pub const DAEMON: &str = "daemon";
pub const RUNNER: &str = "runner";

/// How often `gt send --wait` looks at the store.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What a process does.
#[derive(Debug, Clone)]
pub enum Errand {
    Daemon,
    /// `gt sling`.
    Sling(Box<Sling>),
    /// The same from the words on: its formula is looked up, and its steps planned.
    Prescribe(Box<Request>),
    /// `gt scheduler run --after-exit`, which the keeper calls where no daemon listens.
    CarryOn,
    /// `gt scheduler run`.
    Run,
    /// `gt convoy stage` and `launch`.
    Stage(Box<Staging>),
    /// `gt done`.
    Done(Box<Word>),
    /// `gt refinery run`.
    Refine,
    /// `gt refinery retry`.
    RetryMerge(String),
    /// `gt polecat stop`, once the order is stored.
    SeeStopped(String),
    /// What delivers answers by the web hook of this name, as the daemon's own thread does.
    Deliver(&'static str),
    /// What reads what people write to the bot of this name, and what delivers answers by it, as the daemon's threads do.
    Listen(&'static str),
    DeliverByBot(&'static str),
    /// `gt send --wait`, once the message is stored.
    Await(i64),
}

/// What every process needs to know of the town.
#[derive(Clone)]
pub struct Ground {
    pub world: Shared,
    pub town: Town,
    pub medium: Medium,
    pub runtime: SimulatedRuntime,
}

impl Ground {
    /// A process that stands before its first step.
    pub fn launch(&self, errand: Errand) -> (Pid, Strand) {
        let pid = self.world.lock().bear(matches!(errand, Errand::Daemon));
        self.world.tell(|| format!("process {pid} is {errand:?}"));
        let ground = self.clone();
        let strand = Strand::new(move |_| {
            let around = ground.around(pid);
            let end = ground.work(&around, &errand);
            around.world.tell(|| format!("process {pid} ends: {:?}", end.as_ref().map_err(chain_of)));
            match end {
                Err(error) if !is_expected(&error) => Err(format!("{errand:?} met {}", chain_of(&error))),
                _ => Ok(()),
            }
        });
        (pid, strand)
    }

    /// What a process sees of the world.
    pub fn around(&self, pid: Pid) -> Around {
        Around { world: self.world.clone(), pid, medium: self.medium.clone(), passed: Arc::default(), is_steady: false }
    }

    fn work(&self, around: &Around, errand: &Errand) -> Result<(), TownError> {
        let store = self.open(around)?;
        match errand {
            Errand::Daemon => self.serve(around, store),
            Errand::Deliver(channel) => couriers::deliver(around, &self.town, store, channel),
            Errand::Listen(channel) => telegram::listen(around, &self.town, store, channel),
            Errand::DeliverByBot(channel) => telegram::deliver(around, &self.town, store, channel),
            command => self.command(around, store, command),
        }
    }

    /// The store, with a gate; the daemon's own commits wake nobody by name.
    fn open(&self, around: &Around) -> Result<Store, StoreError> {
        let mut store = self.medium.open()?;
        store.set_gate(around.gate());
        Ok(store)
    }

    fn dispatcher(&self, around: &Around, actor: &str) -> Dispatcher {
        let fleet = Fleet { around: around.clone(), runtime: self.runtime.clone() };
        Dispatcher::new(self.town.clone(), Box::new(fleet), actor, Arc::new(around.clone()))
    }

    fn serve(&self, around: &Around, store: Store) -> Result<(), TownError> {
        let _town = around.take_town();
        let (sender, causes) = mpsc::channel();
        {
            let mut world = around.world.lock();
            if let Some(process) = world.processes.get_mut(&around.pid) {
                process.mail = Some(sender.clone());
            }
        }
        let log = {
            let (world, pid) = (around.world.clone(), around.pid);
            Box::new(move |line: &str| world.tell(|| format!("daemon {pid}: {line}")))
        };
        let mut daemon = Daemon::new(self.dispatcher(around, DAEMON), store, sender, log)?;
        daemon.begin()?;
        {
            let mut world = around.world.lock();
            world.bell = Some(around.pid);
            if let Some(process) = world.processes.get_mut(&around.pid) {
                process.is_listening = true;
            }
        }
        daemon.serve(&causes);
        daemon.end()
    }

    fn command(&self, around: &Around, mut store: Store, errand: &Errand) -> Result<(), TownError> {
        ring_after_commit(&around.world, &mut store);
        let actor = if matches!(errand, Errand::Run) { RUNNER } else { "command" };
        let mut dispatcher = self.dispatcher(around, actor);
        match errand {
            Errand::Daemon | Errand::Deliver(_) | Errand::Listen(_) | Errand::DeliverByBot(_) => {}
            Errand::Sling(sling) => {
                let settings = Settings::load(&self.town, &mut store, around)?;
                self.sling(&mut dispatcher, &mut store, &settings, sling)?;
            }
            Errand::Prescribe(request) => self.prescribe(around, &mut dispatcher, &mut store, request)?,
            Errand::Stage(staging) => self.stage(around, &mut dispatcher, &mut store, staging)?,
            Errand::CarryOn => {
                if !around.has_daemon(&self.town) {
                    once::carry_on(&mut dispatcher, &mut store)?;
                }
            }
            Errand::Run => {
                let limits = once::Limits { starts_queued: true, ..once::Limits::default() };
                let turn = once::Turn::take(dispatcher.around(), &self.town, &mut store, limits)?;
                once::settle(&mut dispatcher, &mut store, &turn.settings)?;
                once::run(&mut dispatcher, &mut store, turn, 0)?;
            }
            Errand::Done(word) => return self.say_done(around, &mut store, word),
            Errand::Refine => refine(around, &self.town)?,
            Errand::RetryMerge(id) => return retry_merge(around, &self.town, id),
            Errand::Await(turn) => await_turn(around, &mut dispatcher, &mut store, *turn)?,
            Errand::SeeStopped(run) => {
                let settings = Settings::load(&self.town, &mut store, around)?;
                once::see_stopped(&mut dispatcher, &mut store, &settings, run)?;
            }
        }
        Ok(())
    }
}

impl Ground {
    /// By the mode that the config says.
    fn sling(
        &self,
        dispatcher: &mut Dispatcher,
        store: &mut Store,
        settings: &Settings,
        wanted: &Sling,
    ) -> Result<Vec<Slung>, TownError> {
        if settings.policy(self.town.root()).is_deferred {
            return once::schedule(store, wanted, &dispatcher.stamp());
        }
        once::sling(dispatcher, store, wanted).map(|(slung, _)| slung)
    }

    /// Works out what a sling means, and slings that. A formula that is not there or does not cook is refused.
    fn prescribe(
        &self,
        around: &Around,
        dispatcher: &mut Dispatcher,
        store: &mut Store,
        request: &Request,
    ) -> Result<(), TownError> {
        let born = around.world.lock().processes.get(&around.pid).map_or(0, |process| process.reads_since);
        let settings = Settings::load(&self.town, store, around)?;
        match sling::understand(request, &self.town, store, &settings, &dispatcher.stamp()) {
            Ok(sling) => self.sling(dispatcher, store, &settings, &sling).map(drop),
            Err(BadRequest::Town(error)) => Err(error),
            Err(bad) => {
                around.world.tell(|| format!("process {} refuses: {bad}", around.pid));
                around.world.lock().check_refused(&bad, born);
                Ok(())
            }
        }
    }

    /// What is refused, and why, is the agent's to see.
    fn say_done(&self, around: &Around, store: &mut Store, word: &Word) -> Result<(), TownError> {
        let settings = Settings::load(&self.town, store, around)?;
        let (all, stamp) = (arc(around), Stamp::new(around.world.now(), word.run.as_str()));
        let done = done::done(&all, &self.town, &settings, store, word, &stamp);
        around.world.tell(|| format!("`gt done` of {}: {done:?}", word.run));
        match done {
            Err(NotDone::Town(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Stages; whoever launches slings the first wave afterwards, and all of it has an answer.
    fn stage(
        &self,
        around: &Around,
        dispatcher: &mut Dispatcher,
        store: &mut Store,
        staging: &Staging,
    ) -> Result<(), TownError> {
        let staged = store.stage_convoy(staging, &dispatcher.stamp())?;
        let step = around.world.lock().step;
        let first = staged.first_wave();
        if staged.plan.has_errors() || staging.then == Going::Stage || first.is_empty() {
            return Ok(());
        }
        let settings = Settings::load(&self.town, store, around)?;
        let meant = match sling::members(first.clone(), &staging.words, &self.town, store, &settings) {
            Err(BadRequest::Town(error)) => return Err(error),
            Err(bad) => {
                around.world.violation(format!("the first wave of {staging:?} cannot be slung: {bad}"));
                return Ok(());
            }
            Ok(meant) => meant,
        };
        let slung = self.sling(dispatcher, store, &settings, &meant)?;
        let is_told = |bead: &String| slung.iter().any(|one| one.bead == *bead && is_answer(one));
        if let Some(bead) = first.iter().find(|bead| !is_told(bead)) {
            around.world.violation(format!("{bead} was launched, and nothing was said of it: {slung:?}"));
        }
        around.world.lock().launched.extend(staged.convoy.map(|convoy| (convoy, step)));
        Ok(())
    }
}

fn arc(around: &Around) -> Arc<dyn Surroundings> {
    Arc::new(around.clone())
}

fn refine(around: &Around, town: &Town) -> Result<(), TownError> {
    refinery::work_all(&arc(around), town, RUNNER).map(drop)
}

fn retry_merge(around: &Around, town: &Town, id: &str) -> Result<(), TownError> {
    // A rehearsal keeps the store to itself, so nothing else moves meanwhile.
    let steady = Around { is_steady: true, ..around.clone() };
    let stamp = Stamp::new(around.world.now(), "ann");
    match refinery::retry(&steady, town, id, false, &stamp) {
        Err(NotRetried::Town(error)) => Err(error),
        _ => Ok(()),
    }
}

/// Waits for the end of a turn; sees to it where no daemon does.
fn await_turn(around: &Around, dispatcher: &mut Dispatcher, store: &mut Store, turn: i64) -> Result<(), TownError> {
    while store.turn(turn)?.is_some_and(|turn| turn.state != TurnState::Ended) {
        if !around.has_daemon(dispatcher.town()) {
            talk::see_to_turns(dispatcher, store)?;
        }
        surroundings::pause(around, LOOK_AGAIN);
    }
    Ok(())
}

/// It is on its way, or there is a reason.
fn is_answer(slung: &Slung) -> bool {
    let is_on_its_way = matches!(slung.outcome, SlingOutcome::Scheduled | SlingOutcome::AlreadyScheduled);
    is_on_its_way || slung.reason.as_ref().is_some_and(|reason| !reason.trim().is_empty())
}

fn chain_of(error: &TownError) -> String {
    chain(error)
}

/// What the world does to a process, and what a command is refused by rule; anything else is a defect.
fn is_expected(error: &TownError) -> bool {
    match error {
        TownError::Store(
            StoreError::Refused(_) | StoreError::NoBead { .. } | StoreError::NoRig { .. } | StoreError::NoMerge { .. },
        )
        | TownError::Merge(_)
        | TownError::Worktree(_)
        | TownError::Config(_)
        | TownError::Runtime(_) => true,
        TownError::Store(error) => Stage::is_outage(error),
        _ => false,
    }
}

/// A command rings after each commit, unless it dies first.
pub fn ring_after_commit(world: &Shared, store: &mut Store) {
    let world = world.clone();
    store.on_commit(move || {
        let mut world = world.lock();
        let lost_bell = world.faults.lost_bell;
        if !world.chance(lost_bell)
            && let Some(bell) = world.bell
        {
            world.post(bell, gt_engine::daemon::Cause::News);
        }
    });
}
