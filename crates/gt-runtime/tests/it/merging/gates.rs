//! Gates: commands that pass, fail, hang, flood, leave children behind, or are left behind themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gt_runtime::merge::{Asked, Gate, MergeError, ask, end_leftover, gate};
use tempfile::TempDir;

use super::{LONG, Lifeline, text};

struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn gate_within(&self, command: &str, timeout: Duration) -> Result<Gate, MergeError> {
        let env = [("COLOUR".to_owned(), "green".to_owned())];
        gate(self.root.path(), command, &env, &self.path("log"), &self.path("marker"), timeout)
    }

    fn gate(&self, command: &str) -> Gate {
        let ended = self.gate_within(command, LONG).unwrap();
        assert!(!self.path("marker").exists());
        ended
    }

    fn lifeline(&self) -> Lifeline {
        Lifeline::new(self.path("lifeline"))
    }
}

fn failed(how: &str, tail: &str) -> Gate {
    Gate::Failed { how: how.to_owned(), tail: tail.to_owned() }
}

#[test]
fn a_gate_runs_in_its_directory_with_its_environment_and_without_input() {
    let place = Place::new();
    fs::write(place.path("log"), "before\n").unwrap();
    assert_eq!(place.gate("cat; echo $COLOUR; echo wrong >&2; pwd > where; echo \"${GIT_DIR-}\""), Gate::Passed);
    assert_eq!(text(place.path("log")), "before\ngreen\nwrong\n\n");
    assert_eq!(Path::new(text(place.path("where")).trim()), place.root.path().canonicalize().unwrap());
}

#[test]
fn a_gate_that_fails_says_how_and_shows_its_end() {
    let place = Place::new();
    assert_eq!(place.gate("echo nearly; exit 3"), failed("exit code 3", "nearly\n"));
    assert_eq!(place.gate("kill -SEGV $$"), failed("ended by signal 11", ""));
    // Letters of two bytes, cut in the middle.
    let Gate::Failed { tail, .. } = place.gate("printf x; for n in $(seq 3000); do printf ä; done; exit 1") else {
        panic!("it fails")
    };
    assert!(tail.chars().all(|letter| letter == 'ä') && tail.len() > 4000, "{tail}");
}

#[test]
fn a_gate_that_is_killed_has_not_failed() {
    let place = Place::new();
    let killed = |how: &str| Gate::Killed { how: how.to_owned(), tail: "nearly\n".to_owned() };
    assert_eq!(place.gate("echo nearly; kill -9 $$"), killed("ended by signal 9"));
    // So a shell says it of its child.
    assert_eq!(place.gate("echo nearly; exit 137"), killed("exit code 137"));
}

#[test]
fn a_gate_that_hangs_is_ended_with_its_children() {
    let place = Place::new();
    let lifeline = place.lifeline();
    let hangs = format!("{}; echo waiting; (trap '' TERM INT HUP; sleep 600) & sleep 600", lifeline.held());
    let ended = place.gate_within(&hangs, Duration::from_secs(5)).unwrap();
    assert_eq!(ended, failed("took longer than 5 seconds", "waiting\n"));
    lifeline.wait_until_dropped();
}

#[test]
fn children_that_a_gate_leaves_are_gone_when_it_is_over() {
    let place = Place::new();
    let lifeline = place.lifeline();
    let started = Instant::now();
    // They hold its output open, print on, and ignore what can be ignored.
    let leaves = format!("{}; (trap '' TERM; yes) & sleep 600 & echo done", lifeline.held());
    assert_eq!(place.gate(&leaves), Gate::Passed);
    assert!(started.elapsed() < LONG);
    lifeline.wait_until_dropped();
}

#[test]
fn a_flood_of_output_is_kept_within_bounds() {
    let place = Place::new();
    let Gate::Failed { how, tail } = place.gate("yes 0123456789abcde | head -c 40000000; echo the end; exit 1") else {
        panic!("it fails")
    };
    assert_eq!(how, "exit code 1");
    assert!(tail.ends_with("0123456789abcde\nthe end\n") && tail.len() <= 4096, "{tail}");
    let log = text(place.path("log"));
    assert!(log.len() < 17 << 20, "{}", log.len());
    assert!(log.contains("bytes are left out here") && log.ends_with("the end\n"));
    let endless = place.gate_within("yes", Duration::from_millis(300)).unwrap();
    assert!(matches!(endless, Gate::Failed { how, .. } if how == "took longer than 300 milliseconds"));
}

#[test]
fn a_gate_does_nothing_before_it_is_written_down() {
    let place = Place::new();
    let marker = place.path("missing/marker");
    let refused = gate(place.root.path(), "touch done", &[], &place.path("log"), &marker, LONG);
    assert!(matches!(refused, Err(MergeError::Io { doing: "write", .. })));
    assert!(!place.path("done").exists());
    assert!(matches!(
        gate(&place.path("missing"), "", &[], &place.path("log"), &marker, LONG),
        Err(MergeError::Io { .. })
    ));
}

#[test]
fn a_gate_that_a_killed_refinery_left_is_ended() {
    // With its first process, and without it.
    for last in ["sleep 600", "sleep 600 & kill -9 $$"] {
        let place = Place::new();
        let mut lifeline = place.lifeline();
        let command = format!("sleep 600 & {}; {last}", lifeline.held());
        let mut refinery = Command::new(env!("CARGO_BIN_EXE_gt-gate"));
        refinery.arg(place.root.path()).arg(command).arg(place.path("log")).arg(place.path("marker"));
        let mut refinery = refinery.stdout(Stdio::null()).spawn().unwrap();
        lifeline.wait_until_held();
        refinery.kill().unwrap();
        refinery.wait().unwrap();
        for _ in 0..2 {
            end_leftover(&place.path("marker")).unwrap();
        }
        lifeline.wait_until_dropped();
        assert!(!place.path("marker").exists());
    }
}

#[test]
fn a_marker_that_means_somebody_else_ends_nobody() {
    let place = Place::new();
    let lifeline = place.lifeline();
    let mut other = Command::new("sh");
    other.args(["-c", &format!("{}; exec sleep 600", lifeline.held())]);
    let mut other = std::os::unix::process::CommandExt::process_group(&mut other, 0).spawn().unwrap();
    for marker in [format!("{}:1\n", other.id()), format!("{}", other.id()), "x:y".to_owned(), String::new()] {
        fs::write(place.path("marker"), marker).unwrap();
        end_leftover(&place.path("marker")).unwrap();
        assert!(!place.path("marker").exists());
        assert_eq!(other.try_wait().unwrap(), None);
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_program_that_is_asked_answers_within_its_time_or_says_why_not() {
    let place = Place::new();
    let asked = |argv: &[&str], timeout| {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let env = [("GT_COLOUR".to_owned(), "green".to_owned())];
        let asked = ask(place.root.path(), &argv, &env, &place.path("marker"), timeout).unwrap();
        assert!(!place.path("marker").exists());
        asked
    };
    let failed = |why: &str| Asked::Failed(why.to_owned());
    let said = asked(&["sh", "-c", "cat; echo aside >&2; echo $GT_COLOUR \"$1\"", "sh", "a  b"], LONG);
    assert_eq!(said, Asked::Said("green a  b".to_owned()));
    assert_eq!(asked(&["sh", "-c", "echo yes; echo first >&2; echo no >&2; exit 3"], LONG), failed("no"));
    assert_eq!(asked(&["false"], LONG), failed("it gave no reason (exit status: 1)"));
    let lifeline = place.lifeline();
    let hangs = format!("{}; (trap '' TERM INT HUP; sleep 600) & sleep 600", lifeline.held());
    assert_eq!(asked(&["sh", "-c", &hangs], Duration::from_secs(1)), failed("it took longer than 1 second"));
    lifeline.wait_until_dropped();
}
