//! A town with agents that do as the test says, a daemon where one is wanted, and ways to wait for facts.
//!
//! Agents are `agent.sh` in the town's home: real processes that leave a line in `trace` when they start, so that a test
//! can count them. Whatever a test leaves running is killed when its fleet is dropped.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;

use crate::town::{GT, Town};

/// How long a fact may take on a very busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// A town that a busy machine, or one with little room, does not hold up.
pub(crate) const NO_GUARDS: &str =
    "guards.load_per_core = 0\nguards.free_memory = \"0 B\"\nguards.free_disk = \"0 B\"\n";

/// An agent that says that it started and ends its bead, with nothing to change.
pub(crate) const FINISHES: &str = "gt done --no-changes";

pub(crate) struct Fleet {
    pub(crate) town: Town,
    daemon: RefCell<Option<Child>>,
    /// What its daemons have said after their first line.
    log: Arc<Mutex<Vec<String>>>,
}

impl Fleet {
    /// A town with the rig `shop`, prefix `gt`, whose agents work in the rig itself and do what `script` says.
    pub(crate) fn new(script: &str) -> Fleet {
        Fleet::in_rig("shop", script)
    }

    /// No town yet, only the directory for one.
    pub(crate) fn unmade() -> Fleet {
        Fleet { town: Town::unmade(), daemon: RefCell::new(None), log: Arc::default() }
    }

    /// The same with a rig of another name.
    pub(crate) fn in_rig(rig: &str, script: &str) -> Fleet {
        let town = Town::new();
        town.repository(rig);
        town.gt(["rig", "add", rig, rig, "--prefix", "gt"]).success();
        let fleet = Fleet { town, daemon: RefCell::new(None), log: Arc::default() };
        fleet.script(script);
        let agent = fleet.home("agent.sh").display().to_string();
        let config = fs::read_to_string(fleet.town.path("town.toml")).expect("the config is there");
        let ours = format!(
            "{}{NO_GUARDS}default_agent = \"scripted\"\nguards.max_agents = 0\n\n[server]\nbind = \"127.0.0.1:0\"\n\n[rigs.{rig}]\nisolation = \"none\"\n\n[agents.scripted]\n\
             command = [\"bash\", \"{agent}\"]\nprompt = \"none\"\n",
            crate::place::config(fleet.town.root())
        );
        fleet.town.write("town.toml", config + &ours);
        fleet
    }

    /// The same with beads that have these ids and stand ready.
    pub(crate) fn hold(&self, ids: &[&str]) {
        let lines: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}","title":"Do {id}"}}"#)).collect();
        self.hold_lines(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Takes these beads into the town.
    pub(crate) fn hold_lines(&self, lines: &[&str]) {
        self.town.call(["bead", "import", "-"]).stdin(lines.join("\n").as_bytes()).run().success();
    }

    /// Waits until a file is in the home.
    pub(crate) fn await_file(&self, name: &str) {
        let path = self.home(name);
        self.until_seen(&format!("file {name}"), || path.exists());
    }

    /// Waits until so many lines of the trace hold a word.
    pub(crate) fn await_trace(&self, word: &str, n: usize) {
        let pattern = Regex::new(word).expect("a pattern");
        let has_all = || {
            let trace = fs::read_to_string(self.home("trace")).unwrap_or_default();
            trace.lines().filter(|line| pattern.is_match(line)).count() >= n
        };
        self.until_seen(&format!("{n} × {word} in the trace"), has_all);
    }

    /// Waits until a process is gone or only waits to be collected.
    pub(crate) fn await_end(&self, pid: u32) {
        let is_gone = || stat_of(pid).is_none_or(|fields| fields[0] == "Z");
        self.until_seen(&format!("the end of process {pid}"), is_gone);
    }

    /// One of the town's live agents ends as if somebody had sent it a signal.
    pub(crate) fn signal(pid: u32, signal: &str) {
        let status =
            Command::new("sh").args(["-c", &format!("kill {signal} {pid}")]).status().expect("a shell is there");
        assert!(status.success(), "process {pid} is there");
    }

    /// The same with a cap.
    pub(crate) fn with_cap(cap: usize, script: &str) -> Fleet {
        let fleet = Fleet::new(script);
        fleet.set("scheduler.max_polecats", &cap.to_string());
        fleet
    }

    pub(crate) fn set(&self, key: &str, value: &str) {
        self.town.gt(["config", "set", key, value]).success();
    }

    /// What agents do from now on; `$GT_BEAD`, `$HOME` and `gt` are there. Each first leaves `start BEAD RUN` in `trace`.
    pub(crate) fn script(&self, body: &str) {
        let text = format!("echo \"start $GT_BEAD $GT_RUN\" >> \"$HOME/trace\"\n{body}\n");
        fs::write(self.home("agent.sh"), text).expect("the home can be written");
    }

    pub(crate) fn home(&self, name: &str) -> PathBuf {
        self.town.home().join(name)
    }

    /// The beads whose agents have started, in order, once per start.
    pub(crate) fn starts(&self) -> Vec<String> {
        let trace = fs::read_to_string(self.home("trace")).unwrap_or_default();
        trace.lines().filter_map(|line| Some(line.strip_prefix("start ")?.split(' ').next()?.to_owned())).collect()
    }

    /// Runs a daemon until it is killed or the fleet is dropped; returns when it runs the town.
    pub(crate) fn start_daemon(&self) {
        self.start_daemon_with(&[]);
    }

    /// The same with more environment; a daemon that dies before it says anything is fine.
    pub(crate) fn start_daemon_with(&self, env: &[(&str, &str)]) {
        let mut command = self.town.command(GT);
        command.args(["daemon", "run", "--wait"]).envs(env.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the binary can be started");
        let mut said = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("the log can be read");
        // Somebody has to read on, or the daemon would block one day.
        let log = Arc::clone(&self.log);
        std::thread::spawn(move || {
            said.lines().map_while(Result::ok).for_each(|line| log.lock().expect("nobody panics here").push(line));
        });
        *self.daemon.borrow_mut() = Some(child);
    }

    /// All that is known of what happened, for a failure that cannot be had a second time.
    pub(crate) fn story(&self) -> String {
        let events: Vec<String> = self.town.events().iter().map(Value::to_string).collect();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let (trace, keeper) = (read(self.home("trace")), read(self.town.path(".gt/keeper/keeper.log")));
        let daemon = self.log.lock().expect("nobody panics here").join("\n");
        format!("events:\n{}\ntrace:\n{trace}\nkeeper:\n{keeper}\ndaemon:\n{daemon}", events.join("\n"))
    }

    /// How many lines of what daemons have said hold one of these.
    pub(crate) fn n_said(&self, words: &[&str]) -> usize {
        let log = self.log.lock().expect("nobody panics here");
        log.iter().filter(|line| words.iter().any(|words| line.contains(words))).count()
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.borrow().as_ref().expect("a daemon was started").id()
    }

    /// Kills the daemon as `kill -9` does.
    pub(crate) fn kill_daemon(&self) {
        if let Some(mut daemon) = self.daemon.borrow_mut().take() {
            daemon.kill().unwrap_or_default();
            daemon.wait().expect("it can be waited for");
        }
    }

    /// Waits until the daemon has died by itself.
    pub(crate) fn await_daemon_death(&self) {
        let mut daemon = self.daemon.borrow_mut().take().expect("a daemon was started");
        let (sender, receiver) = mpsc::channel();
        let pid = daemon.id();
        std::thread::spawn(move || sender.send(daemon.wait()).unwrap_or_default());
        receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("daemon {pid} does not die")).expect("it is a child");
    }

    /// Follows the log from its start until the events so far satisfy the test.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut(&[Value]) -> bool) -> Vec<Value> {
        let mut follow = self.town.command(GT);
        follow.args(["activity", "--follow", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = follow.spawn().expect("the binary can be started");
        let lines = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let deadline = Instant::now() + PATIENCE;
        let mut events = Vec::new();
        loop {
            // What is there already is looked at once, together: to look at each event costs the square of their number.
            let known = receiver.try_iter().map(|line| serde_json::from_str(&line).expect("an event is JSON"));
            events.extend(known);
            if is_so(&events) {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = receiver.recv_timeout(left) else {
                let tail: Vec<String> = events.iter().rev().take(30).rev().map(Value::to_string).collect();
                let status = self.town.gt(["status"]);
                child.kill().unwrap_or_default();
                panic!("waited in vain for: {what}\n{status}\nlast events:\n{}", tail.join("\n"));
            };
            events.push(serde_json::from_str(&line).expect("an event is JSON"));
        }
        child.kill().expect("it runs");
        child.wait().expect("it can be waited for");
        events
    }

    /// Waits until so many events of a type have happened, about one bead or any.
    pub(crate) fn until_events(&self, kind: &str, bead: Option<&str>, n: usize) -> Vec<Value> {
        self.until(&format!("{n} × {kind} {}", bead.unwrap_or("")), |events| count(events, kind, bead) >= n)
    }

    /// Waits until each of these beads is closed and its run, if it had one, has ended.
    pub(crate) fn until_done(&self, beads: &[String]) {
        self.until("all beads done and nothing live", |events| {
            let is_closed = |bead: &String| count(events, "bead.closed", Some(bead)) > 0;
            let n_hooked = count(events, "bead.hooked", None);
            beads.iter().all(is_closed) && count(events, "run.ended", None) == n_hooked
        });
    }

    /// Live processes of this town's agents: process, run, and whether it leads its group.
    pub(crate) fn agents(&self) -> Vec<Agent> {
        agents_of(&self.town.root().display().to_string())
    }

    /// Makes a file that agents wait for with `while [ ! -e "$HOME/NAME" ]; do sleep 0.02; done`.
    pub(crate) fn open_gate(&self, name: &str) {
        fs::write(self.home(name), "").expect("the home can be written");
    }

    /// The run ids of the agents that have started, in order.
    pub(crate) fn started_runs(&self) -> Vec<String> {
        let trace = fs::read_to_string(self.home("trace")).unwrap_or_default();
        trace.lines().filter_map(|line| Some(line.strip_prefix("start ")?.split(' ').nth(1)?.to_owned())).collect()
    }

    /// Whether the daemon that was started last still runs.
    pub(crate) fn daemon_lives(&self) -> bool {
        let mut daemon = self.daemon.borrow_mut();
        daemon.as_mut().is_some_and(|daemon| daemon.try_wait().expect("it is a child").is_none())
    }

    /// The processes that keep this town's agents: its keeper, or elsewhere a supervisor for each and who tells of ends.
    pub(crate) fn keepers(&self) -> Vec<u32> {
        let town = self.town.root().display().to_string();
        let (keeper, program) = (format!("{town}/.gt/keeper"), format!("{town}/host/other-host"));
        let is_keeper = |pid: u32, words: &[String]| {
            // Until an agent has executed its program it looks like the keeper, but for the session that is not its own.
            let is_here =
                words.windows(2).any(|pair| pair[0] == "keeper" && pair[1] == keeper) && leads_its_session(pid);
            is_here
                || words.contains(&program) && words.last().is_some_and(|verb| verb == "supervise" || verb == "watch")
        };
        let live = commands().filter(|(pid, words)| is_keeper(*pid, words) && leads_its_group(*pid).is_some());
        live.map(|(pid, _)| pid).collect()
    }

    pub(crate) fn kill_keepers(&self) {
        let keepers = self.keepers();
        assert!(!keepers.is_empty(), "somebody keeps agents");
        keepers.into_iter().for_each(kill);
    }

    /// Has nobody look, and start what waits, because a run has ended.
    pub(crate) fn end_looks(&self) {
        // One that has kept nothing for long enough is gone already.
        self.keepers().into_iter().for_each(kill);
        let town = self.town.root().display().to_string();
        let looks = |words: &[String]| {
            words.iter().any(|word| word == "--after-exit") && words.iter().any(|word| word.contains(&town))
        };
        self.until_seen("nobody to look", || !commands().any(|(_, words)| looks(&words)));
    }

    /// Waits for what the log does not tell: looks again and again.
    pub(crate) fn until_seen(&self, what: &str, is_so: impl FnMut() -> bool) {
        assert!(comes_true(PATIENCE, is_so), "waited in vain for: {what}\n{}", self.town.gt(["status"]));
    }

    /// The same where there may be no town any more that could be asked.
    pub(crate) fn until_true(&self, what: &str, is_so: impl FnMut() -> bool) {
        assert!(comes_true(PATIENCE, is_so), "waited in vain for: {what}\nthere are {:?}", self.processes());
    }

    /// All that was started in this town, has its home or names it, and its tmux server, whatever became of the town.
    pub(crate) fn processes(&self) -> Vec<(u32, Vec<String>)> {
        let home = self.town.home().display().to_string();
        let server = gt_runtime::terminal::Server::of(&self.town.path(".gt/keeper")).name().to_owned();
        let is_ours = |pid: u32, words: &[String]| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            words.iter().any(|word| word.contains(&home) || *word == server)
                || environ.split(|byte| *byte == 0).any(|line| String::from_utf8_lossy(line).contains(&home))
        };
        commands().filter(|(pid, words)| is_ours(*pid, words) && leads_its_group(*pid).is_some()).collect()
    }

    pub(crate) fn scheduler_status(&self) -> Value {
        self.town.gt(["scheduler", "status", "--json"]).json()
    }

    /// All that must hold when the work is over: nothing lives, nothing waits, nothing lies around.
    pub(crate) fn assert_at_rest(&self, beads: &[String]) {
        let export = self.town.export();
        let exported: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for bead in beads {
            let row = exported.iter().find(|row| row["id"] == **bead).expect("the bead is there");
            assert_eq!(row["status"], "closed", "{row}");
        }
        let status = self.scheduler_status();
        assert_eq!((&status["queued_total"], &status["active_polecats"]), (&0.into(), &0.into()), "{status}");
        let store = rusqlite::Connection::open(self.town.store()).expect("the store is there");
        for (what, sql) in [
            ("contexts", "SELECT count(*) FROM context WHERE state <> 'closed'"),
            ("runs", "SELECT count(*) FROM run WHERE state <> 'ended'"),
            ("busy polecats", "SELECT count(*) FROM polecat WHERE run IS NOT NULL"),
        ] {
            let n: i64 = store.query_row(sql, [], |row| row.get(0)).expect("it is SQL");
            assert_eq!(n, 0, "{what} are left");
        }
        let mut runs = self.started_runs();
        runs.sort();
        let n_started = runs.len();
        runs.dedup();
        assert_eq!(runs.len(), n_started, "a run was started twice");
        assert_eq!(self.agents(), [], "agents are left");
        let kept = self.town.path(".gt/keeper/endings");
        self.until_seen("every ending acknowledged", || {
            fs::metadata(&kept).map_or(0, |file| file.len()) == 0 || !self.daemon_lives()
        });
        self.assert_worktrees_are_known();
        self.town.assert_healthy();
    }

    /// What git has of worktrees is what the polecats have.
    pub(crate) fn assert_worktrees_are_known(&self) {
        let polecats = self.town.gt(["polecat", "list", "--json"]).json();
        let worktree = |polecat: &Value| polecat["worktree"].as_str().map(str::to_owned);
        let mut known: Vec<String> = polecats.as_array().expect("a list").iter().filter_map(worktree).collect();
        let output = self.town.command("git").args(["-C", "shop", "worktree", "list", "--porcelain"]).output();
        let text = String::from_utf8(output.expect("git is installed").stdout).expect("paths here are text");
        let all = text.lines().filter_map(|line| line.strip_prefix("worktree "));
        let is_refinery = |path: &&str| path.contains("/.gt/refinery/");
        let mut there: Vec<String> = all.skip(1).filter(|path| !is_refinery(path)).map(str::to_owned).collect();
        known.sort();
        there.sort();
        assert_eq!(there, known, "worktrees and polecats differ");
        assert!(there.iter().all(|path| PathBuf::from(path).is_dir()), "{there:?}");
    }
}

/// Kills a process as `kill -9` does; one that is gone is fine.
pub(crate) fn kill(pid: u32) {
    kill_all([pid]);
}

fn kill_all(pids: impl IntoIterator<Item = u32>) {
    let pids: Vec<String> = pids.into_iter().map(|pid| pid.to_string()).collect();
    if !pids.is_empty() {
        // The shell's own: not every system has a program for it.
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("kill -9 {}", pids.join(" "))])
            .stderr(Stdio::null())
            .status()
            .expect("there is a shell");
    }
}

/// A process that belongs to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) pid: u32,
    pub(crate) run: String,
    pub(crate) leads: bool,
}

pub(crate) fn count(events: &[Value], kind: &str, bead: Option<&str>) -> usize {
    let is_meant = |event: &&Value| event["type"] == kind && bead.is_none_or(|bead| event["bead"] == bead);
    events.iter().filter(is_meant).count()
}

/// Looks through the process table. Zombies do not count.
pub(crate) fn agents_of(town: &str) -> Vec<Agent> {
    let mut agents = Vec::new();
    for entry in fs::read_dir("/proc").expect("there is a process table").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(environ) = fs::read(entry.path().join("environ")) else { continue };
        let find = |name: &str| {
            let lines = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            lines.into_iter().find_map(|line| Some(line.strip_prefix(name)?.to_owned()))
        };
        if find("GT_TOWN=").is_some_and(|root| root == town)
            && let Some(run) = find("GT_RUN=")
            && let Some(leads) = leads_its_group(pid)
        {
            agents.push(Agent { pid, run, leads });
        }
    }
    agents
}

/// The words by which each process was called.
fn commands() -> impl Iterator<Item = (u32, Vec<String>)> {
    let entries = fs::read_dir("/proc").expect("there is a process table").flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_string_lossy().parse().ok()?;
        let line = String::from_utf8_lossy(&fs::read(entry.path().join("cmdline")).ok()?).into_owned();
        Some((pid, line.split_terminator('\0').map(str::to_owned).collect()))
    })
}

/// Whether a live process does.
fn leads_its_group(pid: u32) -> Option<bool> {
    let fields = stat_of(pid)?;
    (fields[0] != "Z").then(|| fields[2] == pid.to_string())
}

fn leads_its_session(pid: u32) -> bool {
    stat_of(pid).is_some_and(|fields| fields[3] == pid.to_string())
}

/// What the process table says of a process, from its state on.
fn stat_of(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// Looks again and again whether something has come to be so.
fn comes_true(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let (_sender, never) = mpsc::channel::<()>();
    let deadline = Instant::now() + patience;
    loop {
        let began = Instant::now();
        if is_so() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        // To look may be costly: those who are waited for need the cores more.
        never.recv_timeout(began.elapsed().max(Duration::from_millis(3))).unwrap_or_default();
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_daemon();
        // One that is just executing its program shows neither words nor environment, and others may start more.
        let mut n_clean = 0;
        comes_true(PATIENCE, || {
            let left = self.processes();
            n_clean = if left.is_empty() { n_clean + 1 } else { 0 };
            kill_all(left.into_iter().map(|(pid, _)| pid));
            n_clean == 2
        });
        fs::remove_file(gt_runtime::terminal::Server::of(&self.town.path(".gt/keeper")).socket()).ok();
    }
}
