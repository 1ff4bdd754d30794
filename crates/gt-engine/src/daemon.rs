//! The daemon: passes when something happens, and nothing otherwise. // SPEC D4, D8
//!
//! Owns the loop, its causes to wake up and the patrol. What a pass does is `dispatch`; what is started lives on without
//! this process. `run` gives the loop its threads and locks; the simulation drives the same loop without them.

mod chores;
mod clock;
mod config;
mod deadlines;
mod deletion;
mod listen;
mod merging;
mod retry;
mod takeover;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use gt_core::event::EventType;
use gt_core::plan::{PerSide, Trouble, TroubleOf};
use gt_core::run::RunState;
use gt_runtime::{Ending, RuntimeError};
use gt_store::{Claimed, Run, Store, Target};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use self::chores::Patrol;
pub use self::merging::Merged;
use self::retry::Retry;
pub use self::takeover::Other;
use self::takeover::take_over;
use crate::channels::{Channels, Say};
use crate::dispatch::{self, Dispatcher, PassReport, Prepared};
use crate::error::{TownError, chain};
use crate::formulas::Library;
use crate::logs::Logs;
use crate::notify::Notifier;
use crate::once;
use crate::pace::{Batch, Pace};
use crate::settings::Settings;
use crate::surroundings::{self, Surroundings};
use crate::town::Town;

/// How soon after a write the store is looked at again, since a write is heard of before its commit can be seen.
const LOOK_SOON: Duration = Duration::from_millis(2);
/// When looking again has become this rare it stops.
const LOOK_RARELY: Duration = Duration::from_secs(30);
/// How long a start may wait to be recorded, for something to be recorded with.
const RECORD_SOON: SignedDuration = SignedDuration::from_millis(50);

/// Why the daemon woke up.
#[derive(Debug)]
pub enum Cause {
    /// Somebody committed something.
    News,
    /// A run ended; nothing: somebody should look.
    Ended(Option<(String, Ending)>),
    /// One of the store's files was written.
    StoreWritten,
    ConfigWritten,
    /// There may be something to look after that was not there before.
    HeartbeatWritten,
    /// An agent has printed something, or a hook of it was called.
    Told,
    Prepared(Vec<Prepared>),
    /// A worker of the refinery has come to its end.
    Merged(Merged),
    /// A channel or whoever notifies has something for the log.
    Said(String),
    /// Somebody has set the clock, or the machine has slept.
    ClockSet,
    /// There is nothing left to run.
    TownDeleted,
    Stop,
}

/// What follows from a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Nothing,
    /// A pass that goes on with the batch under way.
    Pass,
    /// A pass with a batch of its own. // SPEC D4
    Batch,
}

impl Due {
    fn batch_if(is_so: bool) -> Due {
        if is_so { Due::Batch } else { Due::Nothing }
    }

    fn pass_if(is_so: bool) -> Due {
        if is_so { Due::Pass } else { Due::Nothing }
    }
}

/// What the daemon tells whoever watches its log.
pub type Log = Box<dyn Fn(&str) + Send>;

/// Runs the town until it is told to stop. What `beside` starts is there before the daemon says that it runs, and is dropped
/// when it stops; what it says of itself goes to the log.
pub fn run<B>(
    town: &Town,
    actor: &str,
    other: Other,
    log: Log,
    beside: impl FnOnce() -> (B, Option<String>),
) -> Result<(), TownError> {
    let _lock = take_over(town, other, &log)?;
    let (sender, causes) = mpsc::channel();
    // From the first event on it can be told to stop, and says that it did.
    listen::catch_signals(town, &sender)?;
    // A plain store: the daemon does not wake itself.
    let mut store = Store::open(&town.store_path())?;
    let dispatcher = once::dispatcher(town, &mut store, actor);
    let mut daemon = Daemon::new(dispatcher, store, sender.clone(), log)?;
    let (beside, said) = beside();
    // Listens before it reads config and lists, and before it says that it runs: an edit in between is not missed.
    if let Some(follow) = listen::listen(town, &sender)? {
        daemon.dispatcher.follow_records(follow);
    }
    daemon.begin()?;
    if let Some(said) = said {
        (daemon.log)(&said);
    }
    let say: Say = Arc::new(move |words: &str| sender.send(Cause::Said(words.to_owned())).unwrap_or_default());
    daemon.notifier = Some(Notifier::start(town, actor, Arc::clone(&say))?);
    let channels = daemon.channels.insert(Channels::new(town, actor, &daemon.settings, say));
    channels.apply(&daemon.settings);
    daemon.serve(&causes);
    drop(beside);
    daemon.notifier.iter().for_each(Notifier::end);
    daemon.channels.take().into_iter().for_each(Channels::end);
    daemon.end()
}

/// Has the runtime tell of every ending.
fn watch(dispatcher: &mut Dispatcher, sender: &Sender<Cause>) -> Result<(), TownError> {
    let news = sender.clone();
    Ok(dispatcher.runtime().watch(Box::new(move |end| news.send(Cause::Ended(end)).unwrap_or_default()))?)
}

/// The loop, with all that it knows.
pub struct Daemon {
    town: Town,
    dispatcher: Dispatcher,
    around: Arc<dyn Surroundings>,
    store: Store,
    settings: Arc<Settings>,
    /// Whether a good config was ever read.
    has_config: bool,
    config: config::Followed,
    sender: Sender<Cause>,
    log: Log,
    /// What other connections had committed when the store was looked at last.
    seen: i64,
    /// Whether a write was heard of whose commit may not have been seen: then when to look again.
    look_again: Option<Duration>,
    next_deadline: Option<Timestamp>,
    /// When the next of a batch may start whose starts keep their distance.
    next_of_batch: Option<Timestamp>,
    batch: Batch,
    /// The pause after a failed pass.
    retry: Retry,
    /// When starts are recorded that wait for something to be recorded with.
    record_at: Option<Timestamp>,
    patrol: Patrol,
    logs: Logs,
    /// Since when the clock has been watched: what came before that was missed.
    watching_since: Timestamp,
    /// When it was looked at last.
    looked: clock::Look,
    /// When open convoys are searched for what nobody is on; `None`: nothing has happened since they were.
    next_sweep: Option<Timestamp>,
    /// The last event that the last sweep knew of.
    swept: i64,
    /// Targets that somebody merges into right now.
    merging: BTreeSet<Target>,
    /// Targets that could not be worked on, as long as the store cannot remember that; and until what uptime.
    unheld: BTreeMap<Target, Duration>,
    /// Whoever tells others what happens here, where there is somebody.
    notifier: Option<Notifier>,
    /// Ways by which answers go out and messages come in, where there are some.
    channels: Option<Channels>,
    /// What was seen to hold agents up.
    troubles: BTreeMap<TroubleOf, Trouble>,
    is_stopping: bool,
    /// There is no store any more to record anything in.
    is_deleted: bool,
}

impl Daemon {
    pub fn new(
        mut dispatcher: Dispatcher,
        mut store: Store,
        sender: Sender<Cause>,
        log: Log,
    ) -> Result<Daemon, TownError> {
        let (town, around) = (dispatcher.town().clone(), Arc::clone(dispatcher.around()));
        dispatcher.record_starts_later();
        dispatcher.listen_to_agents();
        watch(&mut dispatcher, &sender)?;
        dispatcher.look_closely();
        let (known, has_config) = config::last_good(&town, &mut store)?;
        let settings = Arc::new(Settings::on(around.gauge(), known));
        let watching_since = dispatcher.now();
        let looked = clock::Look { now: watching_since, uptime: around.uptime() };
        let patrol = Patrol::first_at(watching_since + settings.heartbeat);
        let watching_since =
            if gt_core::defect!("downtime-unnoticed") { Timestamp::UNIX_EPOCH } else { watching_since };
        // What happened while nobody ran the town is found at once.
        let next_sweep = Some(dispatcher.now());
        let seen = store.outside_commits()?;
        Ok(Daemon {
            town,
            dispatcher,
            around,
            store,
            settings,
            has_config,
            config: config::Followed::default(),
            sender,
            log,
            seen,
            look_again: None,
            next_deadline: None,
            next_of_batch: None,
            batch: Batch::default(),
            retry: Retry::new(),
            record_at: None,
            patrol,
            logs: Logs::default(),
            watching_since,
            looked,
            next_sweep,
            swept: 0,
            merging: BTreeSet::new(),
            unheld: BTreeMap::new(),
            notifier: None,
            channels: None,
            troubles: BTreeMap::new(),
            is_stopping: false,
            is_deleted: false,
        })
    }

    pub fn begin(&mut self) -> Result<(), TownError> {
        let data = json!({ "pid": std::process::id() });
        self.store.record(EventType::DaemonStarted, &data, &self.dispatcher.stamp())?;
        (self.log)(&format!("running {} (process {})", self.town.root().display(), std::process::id()));
        if !self.reload() {
            self.log_ineffective();
        }
        // It may be on the `PATH` of this process, or was installed meanwhile.
        self.store.look_again_for_missing(&self.dispatcher.stamp())?;
        self.heed_clock(SignedDuration::ZERO);
        self.keep_beats();
        Ok(())
    }

    pub fn end(&mut self) -> Result<(), TownError> {
        if !self.is_deleted {
            self.record_pending();
        }
        if !self.merging.is_empty() {
            self.around.git().end_gates();
        }
        if self.is_deleted {
            (self.log)("stopped; the town was deleted");
            return Ok(());
        }
        let is_working = |run: &&Run| run.state == RunState::Working;
        let n_live = self.store.live_runs()?.iter().filter(is_working).count();
        self.store.record(EventType::DaemonStopped, &json!({ "live": n_live }), &self.dispatcher.stamp())?;
        (self.log)(&match n_live {
            0 => "stopped".to_owned(),
            1 => "stopped; 1 agent goes on without it".to_owned(),
            n => format!("stopped; {n} agents go on without it"),
        });
        Ok(())
    }

    /// Passes, waits, and passes again.
    pub fn serve(&mut self, causes: &Receiver<Cause>) {
        let mut due = Due::Batch;
        while !self.is_stopping {
            // However busy it is, what is due by the clock is done.
            due = due.max(Due::batch_if(self.is_patrol_over() || self.has_come(self.next_deadline)));
            due = due.max(Due::batch_if(self.is_sweep_due() && self.has_swept()));
            due = due.max(Due::pass_if(self.has_come(self.next_of_batch) || self.is_retry_due()));
            // After a failed pass whatever is due waits until the pause is over.
            if due > Due::Nothing && (gt_core::defect!("pause-bypassed") || !self.is_pausing()) {
                if due == Due::Batch {
                    self.batch = Batch::default();
                }
                self.try_pass();
                due = Due::Nothing;
            }
            due = due.max(self.wait(causes));
        }
    }

    fn has_come(&self, at: Option<Timestamp>) -> bool {
        at.is_some_and(|at| self.dispatcher.now() >= at)
    }

    /// A time that lies further ahead than a sweep ever does was set before the clock was set back.
    fn is_sweep_due(&self) -> bool {
        let now = self.dispatcher.now();
        self.next_sweep.is_some_and(|at| {
            now >= at || (at > now + self.settings.sweep && !gt_core::defect!("sweep-waits-for-the-clock"))
        })
    }

    /// As long as nobody can be asked what runs elsewhere nothing starts, and that has to be seen.
    fn note_trouble(&mut self, error: &TownError) {
        let TownError::Runtime(RuntimeError::Elsewhere { .. }) = error else { return };
        let stamp = self.dispatcher.stamp();
        let trouble = Trouble { until: stamp.now + dispatch::TOWN_TROUBLE, reason: chain(error) };
        if let Err(error) = self.store.hold_up(&trouble, &stamp) {
            (self.log)(&chain(&error));
        }
    }

    /// Sleeps until there is a cause to pass.
    fn wait(&mut self, causes: &Receiver<Cause>) -> Due {
        self.notifier.iter().for_each(Notifier::nudge);
        self.channels.iter().for_each(Channels::nudge);
        // Before and after: a clock may be set at any time.
        if self.heed_jump() {
            return Due::Batch;
        }
        let span = self.sleep_for();
        let received = surroundings::receive(&*self.around, causes, span);
        let has_jumped = self.heed_jump();
        let mut due = match received {
            Ok(cause) => self.heed(cause),
            Err(RecvTimeoutError::Disconnected) => {
                self.is_stopping = true;
                Due::Nothing
            }
            Err(RecvTimeoutError::Timeout) => self.heed_time(),
        };
        due = due.max(Due::batch_if(has_jumped));
        // One pass serves all that has come meanwhile.
        while let Ok(cause) = causes.try_recv() {
            due = due.max(self.heed(cause));
        }
        due
    }

    fn heed(&mut self, cause: Cause) -> Due {
        match cause {
            // What was seen already, because its file was heard of first, is no new cause.
            Cause::News => Due::batch_if(self.has_outside_commits()).max(Due::Pass),
            Cause::Ended(Some((run, ending))) => {
                self.dispatcher.hear(run, ending);
                Due::batch_if(!gt_core::defect!("end-unheard"))
            }
            Cause::Ended(None) => {
                self.dispatcher.look_again();
                Due::Batch
            }
            Cause::StoreWritten if gt_core::defect!("silent-write-missed") => Due::Nothing,
            Cause::StoreWritten => {
                self.look_again = (!gt_core::defect!("no-second-look")).then_some(LOOK_SOON);
                Due::batch_if(self.has_outside_commits())
            }
            Cause::ConfigWritten => {
                self.retry.end_pause(self.around.uptime());
                Due::batch_if(self.reload())
            }
            Cause::HeartbeatWritten => {
                self.keep_beats();
                Due::Pass
            }
            Cause::Told => Due::pass_if(self.dispatcher.has_been_told(&mut self.store, &self.settings).unwrap_or(true)),
            Cause::Prepared(prepared) => Due::pass_if(self.start(prepared)),
            Cause::Merged(merged) => Due::pass_if(self.note_merged(merged)),
            Cause::Said(words) => {
                (self.log)(&words);
                Due::Nothing
            }
            // By how much is seen by looking; what that makes due is found by a pass.
            Cause::ClockSet => Due::Batch,
            Cause::TownDeleted => {
                (self.is_stopping, self.is_deleted) = (true, true);
                Due::Nothing
            }
            Cause::Stop => {
                self.is_stopping = true;
                Due::Nothing
            }
        }
    }

    /// Nothing came: is it time for something?
    fn heed_time(&mut self) -> Due {
        let has_news = match self.look_again {
            None => false,
            Some(pause) => {
                let next = pause * 2;
                self.look_again = (next <= LOOK_RARELY).then_some(next);
                self.has_outside_commits()
            }
        };
        if self.has_come(self.record_at) {
            self.record_pending();
        }
        let has_config = self.is_config_due() && self.reload();
        Due::batch_if(has_news || has_config)
    }

    fn has_outside_commits(&mut self) -> bool {
        match self.store.outside_commits() {
            Ok(version) => std::mem::replace(&mut self.seen, version) != version,
            Err(_) => true,
        }
    }

    fn sleep_for(&mut self) -> Option<Duration> {
        let now = self.dispatcher.now();
        let until = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO);
        // What only leads to a pass waits for the pause after a failed one.
        let for_passes = [self.next_deadline, self.next_of_batch]
            .map(|at| at.filter(|_| gt_core::defect!("pause-bypassed") || !self.is_pausing()));
        // A clock that was set back just now, and was not looked at since, does not put these off.
        let next_sweep = self.next_sweep.map(|at| at.min(now + self.settings.sweep));
        let next_patrol = self.patrol.next.min(now + self.settings.heartbeat);
        let others = [self.record_at, Some(next_patrol), next_sweep];
        let deadline = for_passes.into_iter().chain(others).flatten().min().map(until);
        let retry = self.retry.left(self.around.uptime());
        [deadline, self.look_again, self.config_due_in(), retry].into_iter().flatten().min()
    }

    /// One pass, and what follows from it.
    fn pass(&mut self) -> Result<(), TownError> {
        let _turn = self.around.take_turn(&self.town)?;
        self.has_outside_commits(); // what is there now, this pass sees
        self.reload_if_replaced();
        let since = self.dispatcher.now();
        loop {
            let is_more = self.fire()?;
            let claimed = self.claim()?;
            self.batch.count(&self.settings.policy(self.town.root()), &claimed);
            let (slow, quick): (Vec<Claimed>, Vec<Claimed>) =
                claimed.into_iter().partition(|one| once::needs_worktree(&self.settings, one));
            self.prepare_aside(slow);
            let report = once::start(&mut self.dispatcher, &mut self.store, &self.settings, quick)?;
            self.tell(&report);
            self.leave_places(&report);
            // What could not be started has left its slot to others.
            if !report.has_failures() && !is_more {
                break;
            }
        }
        self.dispatcher.acknowledge();
        self.log_troubles()?;
        self.note_pending();
        self.next_deadline = self.find_deadline(since)?;
        self.next_of_batch = self.find_next_of_batch()?;
        self.tend_refinery()?;
        self.plan_sweep()
    }

    /// Nobody knows the caps before a good config was read, so nothing starts.
    fn claim(&mut self) -> Result<Vec<Claimed>, TownError> {
        if !self.has_config {
            return self.dispatcher.settle(&mut self.store, &self.settings);
        }
        let limits = self.limits()?;
        self.dispatcher.claim(&mut self.store, &self.settings, limits, self.batch.n_all())
    }

    /// What could not be started does not count in its batch.
    fn leave_places(&mut self, report: &PassReport) {
        let policy = self.settings.policy(self.town.root());
        report.failed.iter().for_each(|(one, _)| self.batch.uncount(&policy, one));
    }

    /// With a delay between starts, one at a time, so that pause and clear still bite. // SPEC D4
    fn limits(&mut self) -> Result<PerSide<Option<usize>>, TownError> {
        let policy = self.settings.policy(self.town.root());
        let pace = Pace::of(&self.settings, &policy, &mut self.store, self.dispatcher.now())?;
        Ok(self.batch.within(&policy, pace.limits))
    }

    /// Makes worktrees on threads of their own: a slow repository holds up nobody else.
    fn prepare_aside(&self, slow: Vec<Claimed>) {
        let formulas = Arc::new(Library::of(&self.town));
        for share in once::shares(slow, self.around.n_threads()) {
            let (town, settings, sender) = (self.town.clone(), Arc::clone(&self.settings), self.sender.clone());
            let (around, formulas) = (Arc::clone(&self.around), Arc::clone(&formulas));
            self.around.aside(Box::new(move || {
                for one in share {
                    let prepared = dispatch::prepare(&*around, &town, &settings, &formulas, one);
                    sender.send(Cause::Prepared(vec![prepared])).unwrap_or_default();
                }
            }));
        }
    }

    fn start(&mut self, prepared: Vec<Prepared>) -> bool {
        match self.dispatcher.start(&mut self.store, &self.settings, prepared) {
            Ok(report) => {
                self.tell(&report);
                self.leave_places(&report);
                self.note_pending();
                report.has_failures() || report.has_unknown()
            }
            Err(error) => {
                self.fail("a start could not be recorded", &error);
                true
            }
        }
    }

    fn tell(&self, report: &PassReport) {
        for one in &report.started {
            (self.log)(&format!("started {}/{} on {}", one.rig.name, one.polecat.name, one.bead));
        }
        for (one, why) in &report.failed {
            (self.log)(&format!("could not start {}/{} on {}: {why}", one.rig.name, one.polecat.name, one.bead));
        }
        for (turn, why) in &report.turns.failed {
            (self.log)(&format!("could not start {} for {}: {why}", turn.agent, turn.session));
        }
    }

    /// Starts that found nothing to be recorded with are recorded by themselves, soon.
    fn note_pending(&mut self) {
        self.record_at = self.dispatcher.has_pending().then(|| self.dispatcher.now() + RECORD_SOON);
    }

    fn record_pending(&mut self) {
        self.record_at = None;
        if self.reload_if_replaced() {
            self.next_deadline = Some(self.dispatcher.now()); // a changed config leads to a pass
        }
        let since = self.dispatcher.now();
        let recorded = self
            .dispatcher
            .settle(&mut self.store, &self.settings)
            .and_then(|again| once::start(&mut self.dispatcher, &mut self.store, &self.settings, again))
            .and_then(|_| Ok((self.find_deadline(since)?, self.find_next_of_batch()?)));
        if self.dispatcher.take_freed() {
            self.next_deadline = Some(self.dispatcher.now()); // others waited for this start
        }
        match recorded {
            // One that came due since the last pass began is still due: nothing was claimed here.
            Ok((deadline, next_of_batch)) => {
                self.next_deadline = [self.next_deadline, deadline].into_iter().flatten().min();
                self.next_of_batch = [self.next_of_batch, next_of_batch].into_iter().flatten().min();
            }
            Err(error) => self.fail("a start could not be recorded", &error),
        }
    }

    /// A pass comes by then.
    fn wake_by(&mut self, at: Timestamp) {
        self.next_deadline = Some(self.next_deadline.map_or(at, |known| known.min(at)));
    }
}
