//! The project's example beyond what every runtime promises (`it/promises.rs`): who agents are, what they get, what they leave behind, and who is killed.

use std::fs;

use gt_runtime::{Handle, Launch, Runtime as _, Sighting, StartError, Stop};
use rustix::process::geteuid;

use super::place::{Place, ending, is_alive, kill, known, pid_in, until};

#[test]
fn an_agent_has_another_directory_home_and_user_and_a_clean_environment() {
    let place = Place::new();
    let mut runtime = place.host();
    let launch = Launch {
        stdin: Some("text\n".repeat(100_000)),
        ..place.launch("r1", "pwd; echo $HOME; id -u; wc -l; env | sort | cut -d= -f1 | tr '\\n' ' '; echo >&2 bad")
    };
    runtime.start(&[launch]).remove(0).unwrap();
    assert_eq!(ending(&mut runtime, "r1").code, Some(0));
    let other = place.path("other/r1").display().to_string();
    let user = if geteuid().is_root() { 65534 } else { geteuid().as_raw() };
    let names = "GT_POST GT_RUN HOME LANG OTHER_HOST_RUN PATH PWD";
    assert_eq!(place.log("r1"), format!("{other}/work\n{other}/home\n{user}\n100000\n{names} bad\n"));
}

#[test]
fn complaints_go_into_a_file_of_their_own_where_one_is_named() {
    let place = Place::new();
    let mut runtime = place.host();
    let launch = Launch { errors: Some(place.path("r1.err")), ..place.launch("r1", "echo said; echo >&2 bad") };
    runtime.start(&[launch]).remove(0).unwrap();
    assert_eq!(ending(&mut runtime, "r1").code, Some(0));
    assert_eq!((place.log("r1"), fs::read_to_string(place.path("r1.err")).unwrap()), ("said\n".into(), "bad\n".into()));
}

#[test]
fn what_is_kept_of_a_launch_is_for_its_owner_only_and_in_no_command_line() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let mut runtime = place.host();
    runtime.start(&[place.launch("r1", "exec sleep 1000")]).remove(0).unwrap();
    let kept = place.town().join(".gt/other-host/r1/launch.json");
    assert!(fs::read_to_string(&kept).unwrap().contains("hush"));
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o077, 0);
    for pid in place.processes("") {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&line).contains("hush"), "process {pid}");
    }
}

#[test]
fn a_program_that_is_missing_there_is_the_programs_fault_and_nothing_began() {
    let place = Place::new();
    let mut runtime = place.host();
    let missing = Launch { argv: vec!["no-such-program".to_owned()], ..place.launch("r1", "") };
    let badly_named = Launch { run: "../r2".to_owned(), ..place.launch("r2", "true") };
    let results = runtime.start(&[missing, badly_named, place.launch("r3", "exit 3")]);
    assert!(matches!(&results[0], Err(StartError::NoProgram { program, .. }) if program == "no-such-program"));
    assert!(matches!(&results[1], Err(StartError::Failed { .. })), "{results:?}");
    assert_eq!(ending(&mut runtime, "r3").code, Some(3), "the others are not held up");
    assert_eq!(runtime.survey(&[]).unwrap().len(), 1);
    assert!(!place.path("r1.log").exists());
    assert_eq!(runtime.start(&[place.launch("r1", "exit 4")]), [Ok(Handle::ELSEWHERE)]);
    assert_eq!(ending(&mut runtime, "r1").code, Some(4));
}

#[test]
fn a_place_that_cannot_be_made_is_nobodys_fault() {
    let place = Place::new();
    fs::write(place.path("other"), "a file").unwrap();
    let results = place.host().start(&[place.launch("r1", "true")]);
    assert!(matches!(&results[0], Err(StartError::NoRoom { cause }) if !cause.is_empty()), "{results:?}");
    assert!(place.host().survey(&[]).unwrap().is_empty());
}

#[test]
fn what_a_run_leaves_behind_is_ended_with_it_even_what_went_its_own_way() {
    let place = Place::new();
    let mut runtime = place.host();
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; while :; do sleep 1000; done' & \
                  while [ ! -s daemon ]; do sleep 0.02; done; exit 3";
    runtime.start(&[place.launch("r1", script)]).remove(0).unwrap();
    let daemon = pid_in(&place.path("other/r1/work/daemon"));
    let ending = ending(&mut runtime, "r1");
    assert_eq!(ending.code, Some(3));
    assert!(ending.leftover >= 1, "{ending:?}");
    assert!(!is_alive(daemon));
}

#[test]
fn a_whole_tree_is_stopped_and_what_does_not_listen_is_killed() {
    let place = Place::new();
    let mut runtime = place.host();
    let tree =
        "trap '' TERM; (sleep 1000 & echo $! > child; wait) & echo $$ > parent; while :; do wait; sleep 1000; done";
    for (run, how) in [("r1", Stop::Now), ("r2", Stop::Gently)] {
        runtime.start(&[place.launch(run, tree)]).remove(0).unwrap();
        let pids = ["parent", "child"].map(|name| pid_in(&place.path(&format!("other/{run}/work/{name}"))));
        runtime.stop(&known(run), how).unwrap();
        let ending = ending(&mut runtime, run);
        assert_eq!((ending.code, ending.signal), (None, Some(9)));
        assert!(!pids.into_iter().any(is_alive));
    }
}

#[test]
fn a_run_whose_supervisor_was_killed_has_ended_and_its_processes_with_it() {
    let place = Place::new();
    let mut runtime = place.host();
    runtime.start(&[place.launch("r1", "echo $$ > pid; exec sleep 1000")]).remove(0).unwrap();
    let agent = pid_in(&place.path("other/r1/work/pid"));
    let supervisors = place.processes("supervise");
    assert_eq!(supervisors.len(), 1, "{supervisors:?}");
    supervisors.into_iter().for_each(kill);
    let ending = ending(&mut runtime, "r1");
    assert_eq!((ending.code, ending.signal), (None, None));
    assert!(!is_alive(agent), "it does not work on, unseen");
    assert_eq!(runtime.start(&[place.launch("r1", "echo again")]), [Ok(Handle::ELSEWHERE)]);
    assert!(matches!(runtime.survey(&[]).unwrap()["r1"], Sighting::Ended(_)), "and it is not started again");
    assert_eq!(place.log("r1"), "");
}

#[test]
fn a_caller_that_is_killed_at_any_time_loses_and_doubles_nothing() {
    let place = Place::new();
    // Each caller is killed a little later than the one before: while it reads, starts, waits and answers.
    for delay in 0..6 {
        let run = format!("r{delay}");
        let launch = place.launch(&run, "echo started; exec sleep 1000");
        let timeout = std::time::Duration::from_millis(60 * delay + 1);
        place.host().with_timeout(timeout).start(std::slice::from_ref(&launch));
        // Whoever comes next starts it or finds it.
        assert_eq!(place.host().start(&[launch]), [Ok(Handle::ELSEWHERE)]);
        until("it has begun", || place.log(&run).ends_with("started\n"));
        assert_eq!(place.host().survey(&[]).unwrap()[&run], Sighting::Running(Handle::ELSEWHERE));
        assert_eq!(place.log(&run), "started\n");
    }
}

#[test]
fn its_last_lines_can_be_peeked_at() {
    let place = Place::new();
    let mut runtime = place.host();
    runtime.start(&[place.launch("r1", "seq 100")]).remove(0).unwrap();
    ending(&mut runtime, "r1");
    assert_eq!(runtime.peek("r1", 2).unwrap().as_deref(), Some("99\n100\n"));
    assert!(!runtime.send("r1", "hello").unwrap(), "it has no terminal to type into");
}

#[test]
fn a_run_that_many_start_at_once_starts_once() {
    let place = Place::new();
    let launch = place.launch("r1", "echo started");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (mut runtime, launch) = (place.host(), launch.clone());
            scope.spawn(move || assert_eq!(runtime.start(&[launch]), [Ok(Handle::ELSEWHERE)]));
        }
    });
    assert_eq!(ending(&mut place.host(), "r1").code, Some(0));
    assert_eq!(place.log("r1"), "started\n");
}

#[test]
fn acknowledging_forgets_what_has_ended_with_its_place_and_nothing_that_runs() {
    let place = Place::new();
    let mut runtime = place.host();
    let go = place.fifo("go");
    runtime.start(&[place.launch("r1", &format!("read word < {}", go.display()))]).remove(0).unwrap();
    runtime.acknowledge(&["r1".to_owned()]).unwrap();
    assert_eq!(runtime.survey(&[]).unwrap()["r1"], Sighting::Running(Handle::ELSEWHERE));
    fs::write(go, "go\n").unwrap();
    ending(&mut runtime, "r1");
    runtime.acknowledge(&["r1".to_owned()]).unwrap();
    assert!(runtime.survey(&[]).unwrap().is_empty());
    assert!(!place.path("other/r1").exists(), "its place is cleared");
}
