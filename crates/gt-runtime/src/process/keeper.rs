//! The keeper: one process per town, the parent of its agents, which it starts, sees end and clears up after.
//!
//! One thread decides, around one `epoll`: callers, pidfds of agents and of what they left, the bell that rings when an
//! orphan has exited, and a timeout only while something is due. With nothing to do it is blocked; with nothing
//! to keep it goes away. Nothing a caller sends makes it end or panic.
//!
//! Agents are marked in their environment: `GT_RUN` names the run, `GT_KEEPER` the directory of the keeper.

mod bell;
mod callers;
mod endings;
mod events;
mod home;
mod log_lock;
mod messenger;
mod runs;
mod spawn;
mod terminals;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{getpid, set_child_subreaper, setsid};

use self::bell::Bell;
use self::callers::Callers;
use self::endings::Endings;
pub use self::endings::is_file_name;
use self::events::{Events, Token};
use self::home::Home;
use self::messenger::Messenger;
use self::runs::{Found, Runs};
use self::spawn::Spawner;
use self::terminals::Terminals;
use super::door::{Door, io_error};
use super::wire::{Batch, Reply, Request};
use crate::{Handle, Known, Launch, Place, RuntimeError, Sighting, StartError, Stop, patience};

/// With nothing to keep and nobody calling, the keeper goes away after this.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// How long to leave alone what just failed for lack of room: taking calls, writing an ending.
const ROOM_PAUSE: Duration = Duration::from_secs(1);

/// Keeps agents until there are none: the body of the keeper's process. Returns at once if the town has a keeper.
///
/// An ending that nobody watches for is told to `messenger`, a command; empty: to nobody.
/// Says `ready` or `taken` on standard output as soon as the town's keeper can be called.
pub fn keep(dir: &Path, messenger: &[OsString]) -> Result<(), RuntimeError> {
    let door = Door::make(dir)?;
    // It fails for the leader of a group, who was then started by hand, and stays where it was put.
    setsid().ok();
    set_child_subreaper(Some(getpid()))
        .map_err(|error| io_error("adopt the children of agents of", dir, error.into()))?;
    // Whoever starts or leaves has this one, so that `lock` is only ever seen taken by a keeper that takes calls.
    let changing = door.lock_file("starting")?;
    flock(&changing, FlockOperation::LockExclusive).map_err(|error| io_error("lock", dir, error.into()))?;
    let lock = door.lock_file("lock")?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return announce("taken").map_err(|error| io_error("announce", dir, error)),
        locked => locked.map_err(|error| io_error("lock", dir, error.into()))?,
    }
    let mut keeper = Keeper::new(&door, changing, messenger).map_err(|error| io_error("keep agents in", dir, error))?;
    announce("ready").map_err(|error| io_error("announce", dir, error))?;
    let kept = keeper.run().map_err(|error| io_error("keep agents in", dir, error));
    // Held until here: while it is, this is the town's keeper.
    drop(lock);
    kept
}

/// Of launches, as far as they have one.
type Results = Vec<Option<Result<Handle, StartError>>>;

struct Keeper {
    events: Events,
    listener: UnixListener,
    callers: Callers,
    bell: Bell,
    runs: Runs,
    endings: Endings,
    terminals: Terminals,
    messenger: Messenger,
    home: Home,
    changing: File,
    idle_since: Option<Instant>,
    /// When to try again what there was no room for.
    retry_at: Option<Instant>,
}

impl Keeper {
    fn new(door: &Door, changing: File, messenger: &[OsString]) -> io::Result<Self> {
        let events = Events::new()?;
        let listener = door.listen()?;
        listener.set_nonblocking(true)?;
        events.add(&listener, Token::LISTENER)?;
        let bell = Bell::hang()?;
        events.add(bell.as_fd(), Token::BELL)?;
        let home = Home::watch(&door.dir, Instant::now())?;
        home.as_fd().map_or(Ok(()), |news| events.add(news, Token::HOME))?;
        let endings = Endings::load(&door.dir)?;
        let terminals = Terminals::load(&door.dir)?;
        flock(&changing, FlockOperation::Unlock)?;
        let name = door.dir.canonicalize()?.to_string_lossy().into_owned();
        let (callers, runs) = (Callers::default(), Runs::new(name));
        let messenger = Messenger::new(messenger);
        Ok(Self {
            events,
            listener,
            callers,
            bell,
            runs,
            endings,
            terminals,
            messenger,
            home,
            changing,
            idle_since: None,
            retry_at: None,
        })
    }

    fn run(&mut self) -> io::Result<()> {
        self.inherit_terminals();
        loop {
            for (token, is_writable) in self.events.wait(self.timeout(Instant::now()))? {
                self.handle(token, is_writable);
            }
            self.runs.handle_time(&mut self.events, Instant::now());
            self.terminals.handle_time(&mut self.events, Instant::now());
            self.record_ended();
            self.retry_if_due();
            if self.home.is_found_deleted(Instant::now()) && self.is_emptied() {
                note("the town was deleted; its agents were ended");
                self.terminals.leave(&mut self.events);
                return Ok(());
            }
            if self.is_time_to_leave(Instant::now()) && self.is_left() {
                self.terminals.leave(&mut self.events);
                return Ok(());
            }
        }
    }

    fn handle(&mut self, token: Token, is_writable: bool) {
        match token {
            Token::LISTENER => self.take_calls(),
            Token::BELL => self.reap(),
            Token::HOME => self.home.handle_news(Instant::now()),
            caller if self.callers.contains(caller) => {
                if is_writable {
                    self.callers.flush(caller, &self.events);
                }
                self.answer_all(caller);
            }
            leader if self.runs.is_leader_gone(leader) => self.reap(),
            tmux if self.terminals.handle(tmux, &mut self.events) => {}
            pidfd => self.runs.handle_exit(pidfd, &mut self.events),
        }
    }

    fn take_calls(&mut self) {
        if self.callers.take(&self.listener, &mut self.events).is_err() {
            // Left as it is, the waiting call would wake us again and again.
            self.events.pause(&self.listener, Token::LISTENER).ok();
            self.retry_at = Some(Instant::now() + ROOM_PAUSE);
        }
    }

    fn reap(&mut self) {
        let dead = self.bell.dead_children();
        for (pid, _) in &dead {
            self.messenger.handle_dead_child(*pid);
        }
        self.spare_own();
        self.runs.handle_dead_children(&dead, &mut self.events);
    }

    /// Answers what a caller asks now. Who went away has it done all the same; who does not listen has not.
    fn answer_all(&mut self, caller: Token) {
        let requests = self.callers.requests(caller);
        let was_there = self.callers.contains(caller);
        for request in requests {
            let reply = self.answer(caller, request);
            self.callers.send(caller, &reply, &self.events);
            if was_there && !self.callers.contains(caller) {
                break;
            }
        }
    }

    fn answer(&mut self, caller: Token, request: Request) -> Reply {
        match request {
            Request::Start(batch) => Reply::Started(self.start(&batch)),
            Request::Survey(known) => Reply::Surveyed(self.survey(&known)),
            Request::Stop(known, how) => {
                self.stop(&known, how);
                Reply::Done
            }
            Request::Acknowledge(runs) => {
                self.endings.forget(&runs);
                Reply::Done
            }
            Request::Watch => {
                self.callers.set_watching(caller);
                Reply::Done
            }
        }
    }

    fn start(&mut self, batch: &Batch) -> Vec<Result<Handle, StartError>> {
        let keeper = self.runs.keeper().to_owned();
        let mut spawner = Spawner::new(&batch.shared_env, &keeper);
        let mut results: Results = vec![None; batch.launches.len()];
        while self.start_processes(batch, &keeper, &mut results) {}
        while results.iter().any(Option::is_none) {
            self.start_in_terminals(&batch.launches, &mut spawner, &mut results);
        }
        self.bell.listen_again();
        results.into_iter().flatten().collect()
    }

    /// Starts plain processes that have no result yet; of launches of the same run the first. Says whether there were some.
    fn start_processes(&mut self, batch: &Batch, keeper: &str, results: &mut Results) -> bool {
        let (mut places, mut wanted, mut runs) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (at, launch) in batch.launches.iter().enumerate() {
            if results[at].is_some() {
                continue;
            }
            if let Some(handle) = self.known_handle(&launch.run) {
                results[at] = Some(Ok(handle));
            } else if launch.place != Place::Terminal && runs.insert(&launch.run) {
                places.push(at);
                wanted.push(launch);
            }
        }
        for (at, started) in places.into_iter().zip(spawn::spawn_all(&wanted, &batch.shared_env, keeper)) {
            if let Ok(handle) = &started {
                self.runs.insert_child(&batch.launches[at].run, handle, &mut self.events);
            }
            results[at] = Some(started);
        }
        !wanted.is_empty()
    }

    /// Starts what has no result yet, all at once. Of launches of the same run the first: whether another is needed
    /// shows after it.
    fn start_in_terminals<'a>(&mut self, launches: &'a [Launch], spawner: &mut Spawner<'a>, results: &mut Results) {
        let (mut places, mut wanted, mut runs) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (at, launch) in launches.iter().enumerate() {
            if results[at].is_some() {
                continue;
            }
            if let Some(handle) = self.known_handle(&launch.run) {
                results[at] = Some(Ok(handle));
            } else if runs.insert(&launch.run) {
                match spawner.prepare(launch) {
                    Err(error) => results[at] = Some(Err(error)),
                    Ok(prepared) => {
                        places.push(at);
                        wanted.push((launch, prepared));
                    }
                }
            }
        }
        let started = if wanted.is_empty() { Vec::new() } else { self.terminals.start(&wanted, &mut self.events) };
        self.spare_own();
        for ((at, (launch, _)), started) in places.into_iter().zip(&wanted).zip(started) {
            if let Ok(handle) = &started {
                log_lock::note_first(&launch.log, handle);
                self.runs.insert_other(&launch.run, handle, &mut self.events);
            }
            results[at] = Some(started);
        }
    }

    /// Takes over what former keepers have started in terminals.
    fn inherit_terminals(&mut self) {
        for known in self.terminals.inherited(&mut self.events) {
            self.spare_own();
            if self.endings.handle(&known.run).is_some() {
                self.terminals.forget(&known.run, &self.events);
                continue;
            }
            match self.runs.adopt(&known, &mut self.events) {
                Found::Kept => {}
                Found::Gone(ended) => self.terminals.close(&known.run, ended, &mut self.events),
                // Its keeper was killed before tmux had heard of it.
                Found::Nothing | Found::Unclear => self.terminals.forget(&known.run, &self.events),
            }
        }
        self.bell.listen_again();
    }

    /// Our own helpers are children too, but nobody's orphans.
    fn spare_own(&mut self) {
        self.runs.spare(self.messenger.pid().into_iter().chain(self.terminals.own_pids()).collect());
    }

    fn survey(&mut self, known: &[Known]) -> BTreeMap<String, Sighting> {
        let starting: Vec<&Known> = known.iter().filter(|known| self.is_unclear(known)).collect();
        self.record_ended();
        let mut sightings = self.endings.sightings();
        sightings.extend(starting.into_iter().map(|known| (known.run.clone(), Sighting::Starting)));
        let running = self.runs.handles().chain(self.terminals.closing());
        sightings.extend(running.map(|(run, handle)| (run.to_owned(), Sighting::Running(handle.clone()))));
        sightings
    }

    fn stop(&mut self, known: &Known, how: Stop) {
        if self.is_unclear(known) {
            return; // once it is seen to run, it is asked for again
        }
        if how == Stop::Interrupt && self.terminals.holds(&known.run) {
            return self.terminals.interrupt(&known.run, &mut self.events);
        }
        self.runs.stop(&known.run, how, &mut self.events, Instant::now());
    }

    /// Looks for a run that another keeper started, unless it is known already. True: it lives, and what it is will show.
    fn is_unclear(&mut self, known: &Known) -> bool {
        if self.known_handle(&known.run).is_some() || !endings::is_file_name(&known.run) {
            self.runs.attend(&known.run, &mut self.events);
            return false;
        }
        let found = self.runs.adopt(known, &mut self.events);
        let is_unclear = matches!(found, Found::Unclear);
        match found {
            Found::Gone(ended) if self.terminals.holds(&known.run) => {
                self.terminals.close(&known.run, ended, &mut self.events);
            }
            Found::Gone(ended) => self.record(&known.run, ended),
            Found::Kept | Found::Nothing | Found::Unclear => {}
        }
        is_unclear
    }

    /// The process of a run that runs here, or has ended and is not acknowledged.
    fn known_handle(&self, run: &str) -> Option<Handle> {
        let closing = || self.terminals.closing().find(|(name, _)| *name == run).map(|(_, handle)| handle.clone());
        self.runs.handle(run).or_else(closing).or_else(|| self.endings.handle(run))
    }

    fn record_ended(&mut self) {
        for run in self.terminals.take_bereft() {
            self.runs.stop(&run, Stop::Gently, &mut self.events, Instant::now());
        }
        for (run, ended) in self.runs.take_ended() {
            if self.terminals.holds(&run) {
                self.terminals.close(&run, ended, &mut self.events);
            } else {
                self.record(&run, ended);
            }
        }
        for (run, ended) in self.terminals.take_closed() {
            self.record(&run, ended);
            // Only now: a keeper that is killed before finds it all again.
            self.terminals.forget(&run, &self.events);
        }
    }

    fn record(&mut self, run: &str, ended: endings::Ended) {
        let news = Reply::Ended(run.to_owned(), ended.ending.clone());
        if let Err(error) = self.endings.insert(run, ended) {
            note(&format!("cannot keep the ending of {run} yet: {error}"));
            self.retry_at = Some(Instant::now() + ROOM_PAUSE);
        }
        if !self.callers.tell_watchers(&news, &self.events) {
            self.messenger.send();
            self.spare_own();
            self.bell.listen_again();
        }
    }

    fn retry_if_due(&mut self) {
        if self.retry_at.is_some_and(|at| at <= Instant::now()) {
            let is_written = self.endings.write_rest().is_ok();
            let is_listening = self.events.resume(&self.listener, Token::LISTENER).is_ok();
            self.retry_at = (!is_written || !is_listening).then(|| Instant::now() + ROOM_PAUSE);
        }
    }

    fn is_time_to_leave(&mut self, now: Instant) -> bool {
        let is_idle =
            self.runs.is_empty() && self.terminals.is_idle() && self.callers.is_empty() && self.endings.are_written();
        self.idle_since = if is_idle { self.idle_since.or(Some(now)) } else { None };
        self.idle_since.is_some_and(|since| now.duration_since(since) >= patience::of(IDLE_MAX))
    }

    /// Asks all agents to end; whether they have.
    fn is_emptied(&mut self) -> bool {
        let runs: Vec<String> = self.runs.handles().map(|(run, _)| run.to_owned()).collect();
        for run in &runs {
            self.runs.stop(run, Stop::Gently, &mut self.events, Instant::now());
        }
        runs.is_empty() && self.terminals.is_idle()
    }

    /// Whether it can go: nobody is starting another keeper, and nobody has called at the last moment.
    fn is_left(&mut self) -> bool {
        if flock(&self.changing, FlockOperation::NonBlockingLockExclusive).is_ok() {
            self.take_calls();
            if self.callers.is_empty() {
                return true;
            }
            flock(&self.changing, FlockOperation::Unlock).ok();
        }
        self.idle_since = None;
        false
    }

    fn timeout(&self, now: Instant) -> Option<Duration> {
        let leave_at = self.idle_since.map(|since| since + patience::of(IDLE_MAX));
        let next = [
            self.runs.next_deadline(),
            self.terminals.next_deadline(),
            self.home.next_deadline(),
            self.retry_at,
            leave_at,
        ]
        .into_iter()
        .flatten()
        .min();
        next.map(|at| at.saturating_duration_since(now))
    }
}

fn announce(word: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{word}").and_then(|()| stdout.flush()).or_else(|error| match error.kind() {
        // Who asked for the keeper is gone; others will call.
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}

/// Writes to the keeper's log; a full disk is no reason to stop.
fn note(text: &str) {
    writeln!(io::stderr(), "{} {text}", jiff::Timestamp::now()).ok();
}
