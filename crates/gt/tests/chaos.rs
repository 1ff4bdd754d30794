//! A share of `cargo xtask chaos` for the suite, and that the tool leaves nothing running, however it ends.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gt_chaos::{Options, Runtime};

/// Set in the process that a test starts to be killed.
const INNER: &str = "GT_TEST_CHAOS_INNER";

/// How long a fact may take on a very busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// How long load and faults last on each runtime: a minute in all.
const SHARE: Duration = Duration::from_secs(30);
/// A fault comes about every second, more rarely on a busy machine.
const FAULTS_MIN: u64 = 5;

fn options(length: Duration) -> Options {
    let gt = Path::new(env!("CARGO_BIN_EXE_gt")).to_owned();
    Options { gt, length, seed: 1, runtime: Runtime::Process, disk: None, only: Vec::new(), defect: None }
}

#[test]
fn a_town_of_processes_under_load_and_faults_keeps_every_promise() {
    keeps_every_promise(&options(SHARE));
}

#[test]
fn a_town_of_terminals_under_load_and_faults_keeps_every_promise() {
    if Command::new("tmux").arg("-V").output().is_err() {
        assert!(std::env::var_os("GT_TEST_SKIP_NOTHING").is_none(), "cannot be skipped: tmux is not installed");
        eprintln!("SKIPPED: tmux is not installed");
        return;
    }
    keeps_every_promise(&Options { seed: 2, runtime: Runtime::Tmux, ..options(SHARE) });
}

/// Also that there was something to keep promises about.
fn keeps_every_promise(options: &Options) {
    let report = gt_chaos::run(options).expect("a town can be made");
    assert!(report.is_clean(), "{report}");
    let count = |what: &str| report.counts.get(what).copied().unwrap_or_default();
    for what in ["beads", "messages", "answers delivered", "slots", "commands of jobs", "merges", "convoys"] {
        assert!(count(what) > 0, "no {what}: {report}");
    }
    let n_convoys = count("convoys") + count("convoys that land at once");
    assert!(count("landings announced") >= n_convoys, "convoys have not landed: {report}");
    assert!(count("faults that hit a target") >= FAULTS_MIN, "hardly any faults: {report}");
}

#[test]
fn a_tool_that_is_interrupted_leaves_nothing_running() {
    end_by("INT", "a_tool_that_is_interrupted_leaves_nothing_running");
}

#[test]
fn a_tool_that_is_killed_leaves_nothing_running() {
    end_by("KILL", "a_tool_that_is_killed_leaves_nothing_running");
}

/// Starts this test in a process of its own, which runs the tool, and ends that by a signal while agents work.
fn end_by(signal: &str, test: &str) {
    if std::env::var_os(INNER).is_some() {
        let report = gt_chaos::run(&options(PATIENCE)).expect("a town can be made");
        assert!(report.was_interrupted, "it ended by itself: {report}");
        return;
    }
    let mut tool = start_inner(test);
    let root = announced_town(&mut tool);
    let town = root.file_name().expect("a path has a last part").to_string_lossy().into_owned();
    let is_agent = |words: &[String]| words.iter().any(|word| word.ends_with("agent.sh"));
    let runs_agents = || gt_chaos::live_processes(&town).iter().any(|(_, words)| is_agent(words));
    until("an agent at work", runs_agents);
    let kill = format!("kill -{signal} {}", tool.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell is there").success());
    let ended = tool.wait().expect("it is a child");
    assert_eq!(ended.success(), signal == "INT", "{ended}");
    if signal == "INT" {
        assert_eq!(gt_chaos::live_processes(&town), [], "it ended before its town");
    }
    until("the end of the town", || gt_chaos::live_processes(&town).is_empty());
    // A tool that was killed could not remove its files.
    let base = root.ancestors().nth(2).expect("a town lies in a directory of its own");
    assert_eq!(base.exists(), signal == "KILL", "{}", base.display());
    fs::remove_dir_all(base).ok();
}

fn start_inner(test: &str) -> Child {
    let mut inner = Command::new(std::env::current_exe().expect("this is a program"));
    inner.args([test, "--exact", "--nocapture"]).env(INNER, "1").stdin(Stdio::null()).stdout(Stdio::null());
    inner.stderr(Stdio::piped()).spawn().expect("it can be started")
}

/// The town's directory, which the tool announces first.
fn announced_town(tool: &mut Child) -> PathBuf {
    let lines = BufReader::new(tool.stderr.take().expect("a pipe")).lines();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| sender.send(line).unwrap_or_default()));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let line =
            receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).expect("it announces a town");
        if let Some((_, path)) = line.split_once("the town is ") {
            return PathBuf::from(path);
        }
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let (_sender, never) = mpsc::channel::<()>();
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        never.recv_timeout(Duration::from_millis(20)).unwrap_or_default();
    }
}
