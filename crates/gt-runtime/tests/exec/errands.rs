//! Errands: a command is told something, and whatever it does, nobody waits for it for long.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_runtime::exec::Errand;
use serde_json::json;

use super::place::{PATIENCE, is_alive, until};

fn errand(dir: &Path, command: &str) -> Errand {
    Errand {
        name: "the command".to_owned(),
        argv: ["sh", "-c", command, "secret"].map(Into::into).to_vec(),
        dir: dir.to_owned(),
        env: vec![("GT_TEXT", "hello".to_owned())],
        timeout: PATIENCE,
    }
}

#[test]
fn it_gets_what_it_is_told_and_is_over_when_its_own_process_is() {
    let dir = tempfile::tempdir().unwrap();
    // What it leaves in the background holds its output open.
    let command = r#"cat > told; echo "$GT_TEXT" > text; sleep 600 & echo $! > pid"#;
    let begun = Instant::now();
    assert_eq!(errand(dir.path(), command).run(&json!({ "a": 1 })), Ok(()));
    assert!(begun.elapsed() < PATIENCE, "it waits for what was left in the background");
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!((read("told").as_str(), read("text").as_str()), (r#"{"a":1}"#, "hello\n"));
    std::process::Command::new("kill").arg(read("pid").trim()).status().unwrap();
}

#[test]
fn one_that_hangs_is_ended_with_all_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let hangs = Errand {
        timeout: Duration::from_secs(5),
        ..errand(dir.path(), "trap '' TERM; sleep 600 & echo $! > pid; wait")
    };
    assert_eq!(hangs.run(&json!({})), Err("the command took longer than 5 seconds and was ended".to_owned()));
    let pid = fs::read_to_string(dir.path().join("pid")).unwrap();
    until("nothing of it is left", || !is_alive(pid.trim().parse().unwrap()));
}

#[test]
fn one_that_nobody_waits_for_any_more_is_ended_with_all_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let (end, other_end) = std::io::pipe().unwrap();
    let pid = dir.path().join("pid");
    let watcher = std::thread::spawn({
        let pid = pid.clone();
        move || {
            until("it runs", || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
            drop(other_end);
        }
    });
    let hangs = errand(dir.path(), "trap '' TERM; sleep 600 & echo $! > pid; wait");
    let told = hangs.run_until(&json!({}), Some(end.as_fd()));
    assert_eq!(told, Err("the command was ended before it was done".to_owned()));
    watcher.join().unwrap();
    let pid = fs::read_to_string(pid).unwrap();
    until("nothing of it is left", || !is_alive(pid.trim().parse().unwrap()));
}

#[test]
fn a_failure_is_one_line_without_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let failed = errand(dir.path(), "echo first >&2; echo last >&2; exit 3").run(&json!({}));
    assert_eq!(failed, Err("the command ended with exit code 3: last".to_owned()));
    let absent = Errand { argv: ["/nowhere/x", "secret"].map(Into::into).to_vec(), ..errand(dir.path(), "") };
    let told = absent.run(&json!({})).unwrap_err();
    assert!(told.starts_with("cannot call `/nowhere/x`: ") && !told.contains("secret"), "{told}");
    let nothing = Errand { argv: Vec::new(), ..errand(dir.path(), "") };
    assert_eq!(nothing.run(&json!({})), Err("there is no command".to_owned()));
}
