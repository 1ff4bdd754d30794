//! Runs that are not over: their first process lives, or something that it left behind does.
//!
//! A run ends with its last process. When the first one has gone, what remains of it is asked to end, then killed;
//! whoever appears meanwhile is found by looking again. Only what [`table`] knows to be of the run is ever signalled.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, getsid, pidfd_open, pidfd_send_signal};

use super::endings::Ended;
use super::events::{Events, Token};
use super::log_lock;
use crate::process::table::{self, Entry, Mark};
use crate::{Ending, Handle, Known, Stop, patience};

/// From asking a run to end to killing it.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// From asking what a run left behind to end to killing it.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// Looks at once for who appeared while the others were signalled; after that in a while.
const LOOKS_MAX: u32 = 4;

#[derive(Debug)]
pub(super) struct Runs {
    /// What stands in the environment of all agents as `GT_KEEPER`.
    keeper: String,
    by_name: BTreeMap<String, Run>,
    /// Runs whose first process is our child, by its number.
    by_child: BTreeMap<u32, String>,
    by_pidfd: BTreeMap<Token, String>,
    /// The first processes of runs that are our children, until they end.
    leaders: BTreeMap<Token, OwnedFd>,
    ended: Vec<(String, Ended)>,
    /// Children that are no orphans.
    spared: BTreeSet<u32>,
}

#[derive(Debug)]
struct Run {
    handle: Handle,
    /// Its log, where another keeper started it: what holds the lock on that is of this run too.
    log: Option<PathBuf>,
    /// The kernel session that its process group lies in, as far as it was seen.
    session: Option<u32>,
    is_child: bool,
    /// Processes whose end we wait for, other than a first process that is our child.
    awaited: BTreeMap<Token, OwnedFd>,
    /// When to kill what is left.
    kill_at: Option<Instant>,
    /// Set once its first process has gone.
    departure: Option<Departure>,
}

#[derive(Debug)]
struct Departure {
    code: Option<i32>,
    signal: Option<i32>,
    at: Timestamp,
    left_behind: BTreeSet<(u32, u64)>,
    is_killing: bool,
}

pub(super) enum Found {
    /// It lives, or something of it does, and is kept from now on.
    Kept,
    /// It ended while nobody looked.
    Gone(Ended),
    /// It lives, and cannot be told from others yet.
    Unclear,
    /// It was never started.
    Nothing,
}

impl Runs {
    pub(super) fn new(keeper: String) -> Self {
        let (by_name, by_child, by_pidfd) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self {
            keeper,
            by_name,
            by_child,
            by_pidfd,
            leaders: BTreeMap::new(),
            ended: Vec::new(),
            spared: BTreeSet::new(),
        }
    }

    pub(super) fn keeper(&self) -> &str {
        &self.keeper
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn handle(&self, run: &str) -> Option<Handle> {
        self.by_name.get(run).map(|run| run.handle.clone())
    }

    /// Every run that is kept.
    pub(super) fn handles(&self) -> impl Iterator<Item = (&str, &Handle)> {
        self.by_name.iter().map(|(name, run)| (name.as_str(), &run.handle))
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.by_name.values().filter_map(|run| run.kill_at).min()
    }

    pub(super) fn take_ended(&mut self) -> Vec<(String, Ended)> {
        std::mem::take(&mut self.ended)
    }

    pub(super) fn insert_child(&mut self, name: &str, handle: &Handle, events: &mut Events) {
        self.watch_leader(handle.pid, events);
        let session = getsid(None).ok().map(|session| session.as_raw_nonzero().get() as u32);
        self.by_child.insert(handle.pid, name.to_owned());
        self.by_name.insert(name.to_owned(), Run { is_child: true, ..Run::new(handle.clone(), session) });
    }

    /// Keeps a run whose first process is a child of somebody else, and may have ended already.
    pub(super) fn insert_other(&mut self, name: &str, handle: &Handle, events: &mut Events) {
        let session = table::living(handle).filter(|entry| entry.group == entry.pid).map(|entry| entry.session);
        self.by_name.insert(name.to_owned(), Run::new(handle.clone(), session));
        self.attend(name, events);
    }

    /// Has its end announced. Where there is no room for that, it is noticed with those of the orphans.
    fn watch_leader(&mut self, pid: u32, events: &mut Events) {
        let pidfd = Pid::from_raw(pid as i32).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        let Some(Ok(pidfd)) = pidfd else { return };
        let token = events.new_token();
        if events.add(&pidfd, token).is_ok() {
            self.leaders.insert(token, pidfd);
        }
    }

    /// Whether this is the end of an agent that we started; it is told once.
    pub(super) fn is_leader_gone(&mut self, pidfd: Token) -> bool {
        self.leaders.remove(&pidfd).is_some()
    }

    /// Finds a run that another keeper started.
    pub(super) fn adopt(&mut self, known: &Known, events: &mut Events) -> Found {
        // A start that was not answered is not recorded; the log knows it.
        let first = known.handle.clone().or_else(|| known.log.as_deref().and_then(log_lock::first));
        if let Some(entry) = first.as_ref().and_then(table::living) {
            return self.insert_adopted(known, &entry, events);
        }
        let members = self.unrecorded_members(known);
        if first.is_none()
            && let Some(entry) = members.iter().find(|entry| can_be_first(entry))
        {
            return self.insert_adopted(known, entry, events);
        }
        let is_held = || known.log.as_deref().is_some_and(log_lock::is_held);
        match (first.or(members.first().map(Entry::handle)), members.is_empty()) {
            // What holds its log shows itself soon: to be taken over, or to be ended.
            (_, true) if known.handle.is_none() && is_held() => Found::Unclear,
            (None, _) => Found::Nothing,
            (Some(handle), true) => Found::Gone(Ended { handle, ending: Departure::unseen().ending() }),
            (Some(handle), false) => {
                self.by_name.insert(known.run.clone(), Run { log: known.log.clone(), ..Run::new(handle, None) });
                self.handle_departure(&known.run, Departure::unseen(), events);
                Found::Kept
            }
        }
    }

    /// The processes of a run that show whose they are, by their environment or else by the lock on its log.
    fn unrecorded_members(&self, known: &Known) -> Vec<Entry> {
        let members = table::members(Mark { keeper: &self.keeper, run: &known.run, group: None });
        match &known.log {
            Some(log) if members.is_empty() && log_lock::is_held(log) => table::lock_holders(log),
            _ => members,
        }
    }

    /// Sees to it that the end of an adopted run is noticed; without room for that, the next survey tries again.
    pub(super) fn attend(&mut self, name: &str, events: &mut Events) {
        let Some(run) = self.by_name.get(name) else { return };
        if run.is_child || run.departure.is_some() || !run.awaited.is_empty() {
            return;
        }
        match table::open(&run.handle) {
            Some(pidfd) => self.await_end(name, pidfd, events),
            None if table::living(&run.handle).is_none() => self.handle_departure(name, Departure::unseen(), events),
            None => {}
        }
    }

    /// Children of ours that were waited for: first processes of runs, and orphans, who need nothing more.
    pub(super) fn handle_dead_children(&mut self, dead: &[(u32, WaitStatus)], events: &mut Events) {
        let mut departed = Vec::new();
        for (pid, status) in dead {
            if let Some(name) = self.by_child.remove(pid) {
                let (code, signal) = (status.exit_status(), status.terminating_signal());
                departed.push((name, Departure { code, signal, ..Departure::unseen() }));
            }
        }
        // One look serves them all.
        let have_left_nothing = !departed.is_empty() && !self.has_orphans();
        for (name, departure) in departed {
            if have_left_nothing {
                self.end_with(&name, departure);
            } else {
                self.handle_departure(&name, departure, events);
            }
        }
    }

    pub(super) fn handle_exit(&mut self, pidfd: Token, events: &mut Events) {
        let Some(name) = self.by_pidfd.remove(&pidfd) else { return };
        let Some(run) = self.by_name.get_mut(&name) else { return };
        run.awaited.remove(&pidfd);
        match &run.departure {
            None => self.handle_departure(&name, Departure::unseen(), events),
            Some(_) if run.awaited.is_empty() => self.settle(&name, events),
            Some(_) => {}
        }
    }

    pub(super) fn handle_time(&mut self, events: &mut Events, now: Instant) {
        let is_due = |run: &Run| run.kill_at.is_some_and(|at| at <= now);
        let due = self.by_name.iter().filter(|(_, run)| is_due(run));
        let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            self.stop(&name, Stop::Now, events, now);
        }
    }

    /// Stops a run, or what is left of it.
    pub(super) fn stop(&mut self, name: &str, how: Stop, events: &mut Events, now: Instant) {
        let Some(run) = self.by_name.get_mut(name) else { return };
        match (&mut run.departure, how) {
            (None, Stop::Interrupt) => {
                run.signal_all(Mark { keeper: &self.keeper, run: name, group: run.group() }, Signal::INT);
            }
            // It has been asked to end already.
            (Some(_), Stop::Interrupt | Stop::Gently) => {}
            (Some(departure), Stop::Now) => {
                departure.is_killing = true;
                run.kill_at = Some(now + LEFTOVER_GRACE);
                self.settle(name, events);
            }
            (None, Stop::Gently) => {
                let deadline = now + patience::of(STOP_GRACE);
                run.kill_at = Some(run.kill_at.map_or(deadline, |earlier| earlier.min(deadline)));
                run.signal_all(Mark { keeper: &self.keeper, run: name, group: run.group() }, Signal::TERM);
            }
            (None, Stop::Now) => {
                run.kill_at = Some(now + LEFTOVER_GRACE);
                run.signal_all(Mark { keeper: &self.keeper, run: name, group: run.group() }, Signal::KILL);
            }
        }
    }

    fn insert_adopted(&mut self, known: &Known, entry: &Entry, events: &mut Events) -> Found {
        let session = (entry.group == entry.pid).then_some(entry.session);
        let run = Run { log: known.log.clone(), ..Run::new(entry.handle(), session) };
        self.by_name.insert(known.run.clone(), run);
        self.attend(&known.run, events);
        Found::Kept
    }

    fn await_end(&mut self, name: &str, pidfd: OwnedFd, events: &mut Events) {
        let token = events.new_token();
        if let Some(run) = self.by_name.get_mut(name)
            && events.add(&pidfd, token).is_ok()
        {
            run.awaited.insert(token, pidfd);
            self.by_pidfd.insert(token, name.to_owned());
        }
    }

    fn handle_departure(&mut self, name: &str, departure: Departure, events: &mut Events) {
        let Some(run) = self.by_name.get_mut(name) else { return };
        run.departure = Some(departure);
        run.kill_at = Some(Instant::now() + LEFTOVER_GRACE);
        self.settle(name, events);
    }

    /// Signals what is left of a run whose first process has gone; when nothing is, the run has ended.
    fn settle(&mut self, name: &str, events: &mut Events) {
        for _ in 0..LOOKS_MAX {
            let left = self.left_behind(name);
            if left.is_empty() {
                // Whose orphan is executing a program shows later: then this is called again, once, at `kill_at`.
                if self.is_killing(name) || !self.is_orphan_executing() {
                    self.end(name);
                }
                return;
            }
            let Some(run) = self.by_name.get_mut(name) else { return };
            let pidfds = run.send_off(&left);
            for pidfd in pidfds {
                self.await_end(name, pidfd, events);
            }
            if self.by_name.get(name).is_some_and(|run| !run.awaited.is_empty()) {
                return;
            }
        }
    }

    fn left_behind(&self, name: &str) -> Vec<Entry> {
        let Some(run) = self.by_name.get(name) else { return Vec::new() };
        if run.is_child && !self.has_orphans() {
            // What a child of ours leaves is ours, so there is no need to look at all the processes of the machine.
            return Vec::new();
        }
        // With its first process gone, the number of its group may have been given to another run.
        let group = run.group().filter(|(pid, _)| !self.by_child.contains_key(pid));
        let mut left = table::members(Mark { keeper: &self.keeper, run: name, group });
        let holders = run.log.as_deref().map(settled_holders).unwrap_or_default();
        left.extend(
            holders.into_iter().filter(|holder| left.iter().all(|entry| entry.pid != holder.pid)).collect::<Vec<_>>(),
        );
        if self.by_name.len() == 1 {
            // With no other run about, an orphan that hides whose it is (a cleared environment, a session of its own) can
            // only be this one's.
            let is_listed = |pid: &u32| left.iter().any(|entry| entry.pid == *pid);
            let orphans = self.orphans().into_iter().filter(|pid| !is_listed(pid)).filter_map(table::entry);
            let hidden: Vec<Entry> = orphans.filter(|entry| !entry.is_dead).collect();
            left.extend(hidden);
        }
        left
    }

    /// Children that are neither agents nor our own helpers. Who was started in a terminal belongs to that one.
    fn orphans(&self) -> Vec<u32> {
        let children = table::own_children().into_iter().flatten();
        let is_hidden = |pid: u32| !table::has_variable(pid, "TMUX_PANE") && !table::is_executing(pid);
        children.filter(|pid| self.is_orphan(*pid) && is_hidden(*pid)).collect()
    }

    fn is_killing(&self, name: &str) -> bool {
        let departure = self.by_name.get(name).and_then(|run| run.departure.as_ref());
        departure.is_some_and(|departure| departure.is_killing)
    }

    fn is_orphan_executing(&self) -> bool {
        let mut children = table::own_children().into_iter().flatten();
        children.any(|pid| self.is_orphan(pid) && table::is_executing(pid))
    }

    /// Whom not to take for an orphan.
    pub(super) fn spare(&mut self, own: BTreeSet<u32>) {
        self.spared = own;
    }

    fn has_orphans(&self) -> bool {
        table::own_children().is_none_or(|children| children.iter().any(|pid| self.is_orphan(*pid)))
    }

    fn is_orphan(&self, child: u32) -> bool {
        !self.by_child.contains_key(&child) && !self.spared.contains(&child)
    }

    fn end(&mut self, name: &str) {
        let departure = self.by_name.get_mut(name).and_then(|run| run.departure.take());
        self.end_with(name, departure.unwrap_or_else(Departure::unseen));
    }

    fn end_with(&mut self, name: &str, departure: Departure) {
        let Some(run) = self.by_name.remove(name) else { return };
        for token in run.awaited.keys() {
            self.by_pidfd.remove(token);
        }
        self.ended.push((name.to_owned(), Ended { handle: run.handle, ending: departure.ending() }));
    }
}

/// The processes that hold the lock on a log for good. One that a keeper has forked and that executes no program yet may be of
/// any run.
fn settled_holders(log: &Path) -> Vec<Entry> {
    if !log_lock::is_held(log) {
        return Vec::new();
    }
    let own_words = table::words(std::process::id());
    let is_settled = |entry: &Entry| !table::is_executing(entry.pid) && table::words(entry.pid) != own_words;
    table::lock_holders(log).into_iter().filter(is_settled).collect()
}

/// Whether this can be what a keeper started, and not a helper of that. It leads its group, and only a terminal makes it
/// lead its kernel session too: the leader of a group cannot begin a session.
fn can_be_first(entry: &Entry) -> bool {
    let leads_session = entry.session == entry.pid;
    entry.group == entry.pid && (!leads_session || table::has_variable(entry.pid, "TMUX_PANE"))
}

impl Run {
    fn new(handle: Handle, session: Option<u32>) -> Self {
        Self { handle, log: None, session, is_child: false, awaited: BTreeMap::new(), kill_at: None, departure: None }
    }

    fn group(&self) -> Option<(u32, u32)> {
        self.session.map(|session| (self.handle.pid, session))
    }

    fn signal_all(&self, mark: Mark<'_>, signal: Signal) {
        let mut handles: Vec<Handle> = table::members(mark).iter().map(Entry::handle).collect();
        if !handles.contains(&self.handle) {
            handles.push(self.handle.clone());
        }
        for pidfd in handles.iter().filter_map(table::open) {
            // It may have ended just now, which is what is wanted.
            pidfd_send_signal(pidfd, signal).ok();
        }
    }

    /// Signals those who are left; returns the pidfds of those not signalled before.
    fn send_off(&mut self, left: &[Entry]) -> Vec<OwnedFd> {
        let Some(departure) = &mut self.departure else { return Vec::new() };
        let mut pidfds = Vec::new();
        for entry in left {
            let Some(pidfd) = table::open(&entry.handle()) else { continue };
            let is_new = departure.left_behind.insert((entry.pid, entry.birth));
            if is_new || departure.is_killing {
                let signal = if departure.is_killing { Signal::KILL } else { Signal::TERM };
                pidfd_send_signal(&pidfd, signal).ok();
            }
            if is_new || self.awaited.is_empty() {
                pidfds.push(pidfd);
            }
        }
        pidfds
    }
}

impl Departure {
    /// The end of a process that nobody waited for.
    fn unseen() -> Self {
        Self { code: None, signal: None, at: Timestamp::now(), left_behind: BTreeSet::new(), is_killing: false }
    }

    fn ending(self) -> Ending {
        let Self { code, signal, at, left_behind, .. } = self;
        Ending { code, signal, at, leftover: left_behind.len() as u32, is_lost: false }
    }
}
