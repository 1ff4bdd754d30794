//! Runs in terminals: the keeper's side of the town's tmux server.
//!
//! tmux is asked to make a session, and later how its process ended and what it showed; everything between (seeing it
//! end, stopping it, clearing up) is done by [`super::runs`] as for any process. The one client has one queue of
//! questions, answered in order. Only starts are waited for, and nothing is for ever: whoever does not answer in time is
//! left alone until he does.

mod closing;
mod control;
mod farewell;
mod order;
mod reader;
mod records;
mod starting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Signal, pidfd_send_signal};

use self::closing::Closing;
use self::control::Control;
use self::reader::Said;
use self::records::Records;
use super::endings::Ended;
use super::events::{Events, Token};
use super::note;
use crate::process::table;
use crate::terminal::{KEEPER_SESSION, LIST_FORMAT, Pane, Server, quoted};
use crate::{Handle, Known};

/// tmux answers in milliseconds, or is stopped.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A server without a session ends in milliseconds; one that has somebody else's stays.
const SERVER_END_MAX: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A tmux that could not be reached is left alone for so long.
const CONNECT_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Terminals {
    server: Server,
    records: Records,
    control: Option<Control>,
    /// The server's own process, as long as it is known to live.
    process: Option<ServerProcess>,
    asked: VecDeque<(Question, Instant)>,
    /// Answers to the starts that are being waited for, by their place in the batch.
    started: BTreeMap<usize, Result<Pane, String>>,
    panes: BTreeMap<String, Pane>,
    closing: BTreeMap<String, Closing>,
    closed: Vec<(String, Ended)>,
    /// Runs whose terminal was taken away from them.
    bereft: Vec<String>,
    /// Runs whose server has gone before they were seen to end.
    lost: BTreeSet<String>,
    /// The shell that tmux was last told to put into the environment.
    shell: String,
    /// Until when it is not called again, and why.
    unreached: Option<(Instant, String)>,
}

#[derive(Debug)]
struct ServerProcess {
    handle: Handle,
    token: Token,
    pidfd: OwnedFd,
}

#[derive(Debug)]
enum Question {
    ServerProcess,
    List,
    /// `None`: nobody waits for it any more.
    Start(String, Option<usize>),
    Status(String),
    Screen(String),
    Whatever,
}

impl Terminals {
    pub(super) fn load(keeper_dir: &Path) -> io::Result<Self> {
        Ok(Self {
            server: Server::of(keeper_dir),
            records: Records::load(keeper_dir)?,
            control: None,
            process: None,
            asked: VecDeque::new(),
            started: BTreeMap::new(),
            panes: BTreeMap::new(),
            closing: BTreeMap::new(),
            closed: Vec::new(),
            bereft: Vec::new(),
            lost: BTreeSet::new(),
            shell: String::new(),
            unreached: None,
        })
    }

    /// Whether a run was started in a terminal and is not over.
    pub(super) fn holds(&self, run: &str) -> bool {
        self.records.get(run).is_some()
    }

    /// Runs that have ended and about which tmux is still being asked.
    pub(super) fn closing(&self) -> impl Iterator<Item = (&str, &Handle)> {
        self.closing.iter().map(|(run, closing)| (run.as_str(), closing.handle()))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.closing.is_empty()
    }

    /// Children that are no agents.
    pub(super) fn own_pids(&self) -> impl Iterator<Item = u32> {
        let server = self.process.as_ref().map(|process| process.handle.pid);
        self.control.as_ref().map(Control::pid).into_iter().chain(server)
    }

    pub(super) fn take_closed(&mut self) -> Vec<(String, Ended)> {
        std::mem::take(&mut self.closed)
    }

    /// Runs that have to be stopped: without its terminal, a process is no use to anybody.
    pub(super) fn take_bereft(&mut self) -> Vec<String> {
        std::mem::take(&mut self.bereft)
    }

    /// What former keepers have left: each run with its process, as far as it is known.
    pub(super) fn inherited(&mut self, events: &mut Events) -> Vec<Known> {
        let runs: Vec<String> = self.records.runs().map(str::to_owned).collect();
        if runs.is_empty() {
            return Vec::new();
        }
        if self.is_server_there() {
            match self.connect(events) {
                Ok(()) => self.bereft.extend(runs.iter().filter(|run| !self.panes.contains_key(*run)).cloned()),
                Err(cause) => note(&cause),
            }
        } else {
            self.bereft.clone_from(&runs);
            self.lost.extend(runs.iter().cloned());
        }
        let of = |run: &String| {
            let recorded = self.records.get(run).and_then(|record| record.handle.clone());
            recorded.or_else(|| self.panes.get(run).map(handle_of))
        };
        let handles: Vec<Option<Handle>> = runs.iter().map(of).collect();
        runs.into_iter().zip(handles).map(|(run, handle)| Known { run, handle, log: None }).collect()
    }

    /// Forgets a run whose end is recorded, and removes its session.
    pub(super) fn forget(&mut self, run: &str, events: &Events) {
        if let Some(pane) = self.panes.remove(run) {
            self.ask(Question::Whatever, &format!("kill-session -t {}", quoted(&pane.session)));
            self.flush(events);
        }
        self.closing.remove(run);
        self.lost.remove(run);
        self.records.remove(run);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.closing.values().map(Closing::next_deadline).min()
    }

    /// Takes what belongs to tmux; `false`: it is somebody else's.
    pub(super) fn handle(&mut self, token: Token, events: &mut Events) -> bool {
        if self.control.as_ref().is_some_and(|control| control.has(token)) {
            self.converse(events);
            return true;
        }
        let is_server = self.process.as_ref().is_some_and(|process| process.token == token);
        if is_server {
            self.lose_server();
        }
        is_server
    }

    /// Ends the server with the keeper, unless somebody else has a session in it.
    pub(super) fn leave(&mut self, events: &mut Events) {
        if self.control.is_some() {
            self.ask(Question::Whatever, &format!("kill-session -t {}", quoted(&own_session())));
            self.converse_until(events, |terminals| terminals.asked.is_empty());
        }
        self.clear_socket();
    }

    /// tmux leaves the place at which it listened, where more and more would gather. Nobody but a keeper starts a server
    /// there, and there is no other keeper yet.
    fn clear_socket(&self) {
        if let Some(process) = &self.process {
            poll(&mut [PollFd::new(&process.pidfd, PollFlags::IN)], Some(&SERVER_END_MAX)).ok();
        }
        if !self.is_server_there() {
            fs::remove_file(self.server.socket()).ok();
        }
    }

    /// Reaches the server, starting it if need be, and learns which panes there are.
    fn connect(&mut self, events: &mut Events) -> Result<(), String> {
        if self.control.is_some() {
            return if self.is_stuck() { Err(no_answer()) } else { Ok(()) };
        }
        if let Some((until, cause)) = &self.unreached
            && Instant::now() < *until
        {
            return Err(cause.clone());
        }
        let mut called = self.call(events);
        if called.is_err() && !self.is_server_there() {
            // It has ended just now, and the next call starts another one.
            called = self.call(events);
        }
        self.unreached = called.as_ref().err().map(|cause| (Instant::now() + CONNECT_PAUSE, cause.clone()));
        called
    }

    fn call(&mut self, events: &mut Events) -> Result<(), String> {
        self.see_off_clients()?;
        let control = Control::start(&self.server, events).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "tmux is not installed".to_owned(),
            _ => format!("cannot start tmux: {error}"),
        });
        self.control = Some(control?);
        self.shell.clear();
        self.ask(Question::ServerProcess, "display-message -p \"#{pid}\"");
        self.ask(Question::List, &format!("list-panes -a -F {}", quoted(LIST_FORMAT)));
        if self.converse_until(events, |terminals| terminals.asked.is_empty()) && self.process.is_some() {
            return Ok(());
        }
        self.lose_client();
        Err("tmux cannot be reached; see `keeper.log`".to_owned())
    }

    /// Whether it has left a question unanswered for too long.
    fn is_stuck(&self) -> bool {
        self.asked.front().is_some_and(|(_, since)| since.elapsed() >= ANSWER_MAX)
    }

    /// Whether anybody listens, without starting anything or waiting for one that is stuck.
    fn is_server_there(&self) -> bool {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let called = SocketAddrUnix::new(self.server.socket())
            .and_then(|address| connect(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?, &address));
        !matches!(called, Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR | Errno::ACCESS))
    }

    fn ask(&mut self, question: Question, line: &str) {
        if let Some(control) = &mut self.control {
            control.say(line);
            self.asked.push_back((question, Instant::now()));
        }
    }

    fn flush(&mut self, events: &Events) {
        if self.control.as_mut().is_some_and(|control| control.write(events).is_err()) {
            self.lose_client();
        }
    }

    /// Talks until it is enough, or there is no progress for too long; says which.
    fn converse_until(&mut self, events: &mut Events, is_enough: impl Fn(&Self) -> bool) -> bool {
        let mut deadline = Instant::now() + ANSWER_MAX;
        self.flush(events);
        while !is_enough(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(control) = &self.control else { return false };
            if left.is_zero() || !control.wait(left) {
                return false;
            }
            let n_asked = self.asked.len();
            self.converse(events);
            if self.asked.len() < n_asked {
                deadline = Instant::now() + ANSWER_MAX;
            }
        }
        true
    }

    fn converse(&mut self, events: &mut Events) {
        self.flush(events);
        let Some(control) = &mut self.control else { return };
        match control.read() {
            Ok(said) => said.into_iter().for_each(|said| self.hear(said, events)),
            Err(_) => self.lose_client(),
        }
        self.flush(events);
    }

    fn hear(&mut self, said: Said, events: &mut Events) {
        match said {
            Said::WindowClosed(window) => {
                let of = self.panes.iter().find(|(_, pane)| pane.window == window);
                if let Some(run) = of.map(|(run, _)| run.clone()) {
                    self.panes.remove(&run);
                    self.bereft.push(run);
                }
            }
            Said::Answer { is_ok, text } => {
                let text = String::from_utf8_lossy(&text).into_owned();
                if let Some((question, _)) = self.asked.pop_front() {
                    self.hear_answer(question, if is_ok { Ok(&text) } else { Err(text.trim()) }, events);
                }
            }
        }
    }

    fn hear_answer(&mut self, question: Question, answer: Result<&str, &str>, events: &mut Events) {
        match question {
            Question::ServerProcess => self.watch_server(answer.unwrap_or_default().trim(), events),
            Question::List => self.take_list(answer.unwrap_or_default()),
            Question::Start(run, slot) => self.hear_start(&run, slot, answer),
            Question::Status(run) => self.hear_status(&run, answer.ok()),
            Question::Screen(run) => self.hear_screen(&run, answer),
            Question::Whatever => {}
        }
    }

    fn watch_server(&mut self, pid: &str, events: &mut Events) {
        let entry = pid.parse().ok().and_then(table::entry);
        let Some(handle) = entry.map(|entry| entry.handle()) else { return };
        if self.process.as_ref().is_some_and(|process| process.handle == handle) {
            return;
        }
        if self.process.take().is_some() {
            note("there is another tmux server");
            self.lose_runs();
        }
        let token = events.new_token();
        if let Some(pidfd) = table::open(&handle)
            && events.add(&pidfd, token).is_ok()
        {
            self.process = Some(ServerProcess { handle, token, pidfd });
        }
    }

    /// Notes where runs are. A session of a run that nobody knows of is from a start that was given up.
    fn take_list(&mut self, listed: &str) {
        self.panes.clear();
        let mut unknown = Vec::new();
        for (pane, state) in listed.lines().filter_map(Pane::parse_listed).filter(|(_, state)| !state.run.is_empty()) {
            if !self.holds(&state.run) {
                unknown.push(pane);
            } else if self.panes.get(&state.run).is_none_or(|other| pane.is_elder_than(other)) {
                self.panes.insert(state.run, pane);
            }
        }
        for pane in unknown {
            self.discard(&pane);
        }
    }

    /// Presses the key that interrupts what runs in a terminal.
    pub(super) fn interrupt(&mut self, run: &str, events: &mut Events) {
        if self.connect(events).is_ok()
            && let Some(pane) = self.panes.get(run).map(|pane| pane.pane.clone())
        {
            // The character itself: what a key sends depends on what the program has asked of the terminal.
            self.ask(Question::Whatever, &format!("send-keys -t {} -H 03", quoted(&pane)));
            self.flush(events);
        }
    }

    /// Ends a session of ours that nobody is to know of.
    fn discard(&mut self, pane: &Pane) {
        end_process(pane.pid);
        self.ask(Question::Whatever, &format!("kill-session -t {}", quoted(&pane.session)));
    }

    /// The client is gone or given up; the server may well live.
    fn lose_client(&mut self) {
        self.control = None;
        for (question, _) in std::mem::take(&mut self.asked) {
            if let Question::Status(run) | Question::Screen(run) = question
                && let Some(closing) = self.closing.get_mut(&run)
            {
                closing.ask_again(Instant::now());
            }
        }
    }

    fn lose_server(&mut self) {
        note("the tmux server is gone");
        self.process = None;
        self.lose_client();
        self.lose_runs();
    }

    /// All that was started is gone with its server.
    fn lose_runs(&mut self) {
        self.panes.clear();
        self.bereft = self.records.runs().map(str::to_owned).collect();
        self.lost.extend(self.bereft.iter().cloned());
        self.close_all();
    }
}

/// The process of a pane. One that tmux has waited for already has left no birth to know it by; no living one has none.
fn handle_of(pane: &Pane) -> Handle {
    table::entry(pane.pid).map_or(Handle { pid: pane.pid, birth: 0 }, |entry| entry.handle())
}

/// Ends a process that tmux holds, and whose number therefore is still its own.
fn end_process(pid: u32) {
    if let Some(pidfd) = table::entry(pid).and_then(|entry| table::open(&entry.handle())) {
        pidfd_send_signal(pidfd, Signal::KILL).ok();
    }
}

fn own_session() -> String {
    format!("={KEEPER_SESSION}")
}

fn no_answer() -> String {
    format!("tmux has not answered for {} seconds", ANSWER_MAX.as_secs())
}
