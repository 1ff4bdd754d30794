//! That nothing outlives a run of the tests: what is left after it makes it fail, and an interruption ends everything.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::Machine;

/// How long a fact may take on a very busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// The process that the runner has left, once it runs.
fn left(machine: &Machine) -> Option<u32> {
    let text = fs::read_to_string(machine.folder.join("log.pid")).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let (_never, pause) = channel::<()>();
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        pause.recv_timeout(Duration::from_millis(20)).unwrap_or_default();
    }
}

#[test]
fn a_green_run_that_leaves_a_process_fails_names_it_and_ends_it() {
    let machine = Machine::with("leaves", &["git"]).but("FAKE_LEAVES", "something");
    let ended = machine.xtask(&["test"]);
    let pid = left(&machine).expect("the runner has started one");
    ended.says("error: the tests left 1 process running:").says(&format!("  {pid} sleep 600")).status(1);
    assert!(!is_alive(pid));
}

#[test]
fn a_red_run_that_leaves_a_process_ends_it_and_keeps_its_status() {
    let machine = Machine::with("red-leaves", &["git"]).but("FAKE_LEAVES", "something").but("FAKE_STATUS", "100");
    let ended = machine.xtask(&["test"]);
    let pid = left(&machine).expect("the runner has started one");
    ended.says("error: the tests left 1 process running:").status(100);
    assert!(!is_alive(pid));
}

#[test]
fn an_interruption_ends_the_runner_and_all_that_it_has_started() {
    for signal in ["INT", "TERM"] {
        let machine = Machine::with(&format!("sig{signal}"), &["git"]).but("FAKE_LEAVES", "itself");
        let mut command = machine.command(&["test"]);
        let xtask = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let xtask = xtask.expect("the binary was built for this test");
        until("a process that was left", || left(&machine).is_some());
        let kill = format!("kill -{signal} {}", xtask.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell is there").success());
        let output = xtask.wait_with_output().expect("it is a child");
        let pid = left(&machine).expect("it was there");
        let ended = machine.ended(output);
        ended.status(130);
        assert!(ended.stderr().contains("xtask: interrupted; "), "{}", ended.stderr());
        assert!(!is_alive(pid), "{signal}");
    }
}
