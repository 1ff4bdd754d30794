//! Starting real processes: what they get, and why one was not started.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use gt_runtime::{Launch, Runtime as _, Sighting, StartError};

use super::place::in_every_place;
use super::town::{Town, known};

in_every_place!(
    a_process_gets_its_directory_environment_input_and_log,
    a_program_that_is_missing_or_not_executable_is_the_programs_fault,
    a_path_that_is_not_utf8_is_an_error_and_no_panic,
    a_missing_directory_or_log_folder_is_said_to_be_missing,
    one_bad_launch_does_not_hold_up_the_others,
    a_hundred_starts_in_one_batch_all_run_and_all_end,
    an_agent_may_print_a_hundred_megabytes,
    a_town_may_lie_deeper_than_a_socket_path_can_say,
    a_program_may_be_called_anything,
);

fn a_process_gets_its_directory_environment_input_and_log(town: &Town) {
    let mut runtime = town.watched_runtime();
    let script = "pwd; cat > input; echo $GT_RUN $FLAVOUR; env | cut -d= -f1 | sort | tr '\\n' ' '; echo; echo >&2 complaint; \
        read word < go";
    let mut launch = town.launch("r1", script);
    launch.stdin = Some("text\n".repeat(100_000));
    launch.env.push(("FLAVOUR".to_owned(), "sour".to_owned()));
    let other = Launch {
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        ..town.launch("r2", "env; read word < go2")
    };
    let gates = [town.fifo("go"), town.fifo("go2")];
    for started in runtime.start(&[launch, other]) {
        started.unwrap();
    }
    // Opening them waits until both have said everything: tmux forgets what it has not read when a process ends.
    for gate in gates {
        std::fs::write(gate, "go\n").unwrap();
    }
    town.ending(&mut *runtime, &known("r1", None));
    town.ending(&mut *runtime, &known("r2", None));
    let given = ["FLAVOUR", "GT_KEEPER", "GT_RUN", "PATH", "PWD", "TOWN"];
    let names: BTreeSet<&str> = given.into_iter().chain(town.place().own_variables.iter().copied()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let root = town.path("").display().to_string();
    let expected = format!("{}\nr1 sour\n{}\ncomplaint\n", root.trim_end_matches('/'), names.join(" "));
    assert_eq!(town.log("r1").replace(" \n", "\n"), expected);
    assert_eq!(std::fs::read_to_string(town.path("input")).unwrap().matches("text\n").count(), 100_000);
    assert!(town.log("r2").contains("GT_RUN=r2") && !town.log("r2").contains("FLAVOUR"));
    assert_eq!(town.path("r1.log").metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn complaints_go_into_a_file_of_their_own_where_one_is_named() {
    let town = Town::new();
    let mut runtime = town.watched_runtime();
    let errors = town.path("r1.err");
    let launch = Launch { errors: Some(errors.clone()), ..town.launch("r1", "echo said; echo >&2 bad; echo more") };
    // With what a launch of another run has in common with it said once.
    let other = town.launch("r2", "echo said; echo >&2 bad");
    for started in runtime.start(&[launch, other]) {
        started.unwrap();
    }
    town.ending(&mut *runtime, &known("r1", None));
    town.ending(&mut *runtime, &known("r2", None));
    assert_eq!((town.log("r1").as_str(), town.log("r2").as_str()), ("said\nmore\n", "said\nbad\n"));
    assert_eq!(std::fs::read_to_string(&errors).unwrap(), "bad\n");
    assert_eq!(errors.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn where_complaints_cannot_go_nothing_is_started_and_no_log_says_otherwise() {
    let town = Town::new();
    let odd = town.path("").join(OsStr::from_bytes(b"a\xffb"));
    let nowhere = Launch { errors: Some(PathBuf::from("/no/such/errors")), ..town.launch("r1", "true") };
    let missing = Launch {
        argv: vec!["/no/such/program".to_owned()],
        errors: Some(town.path("r2.err")),
        ..town.launch("r2", "")
    };
    let results = town.runtime().start(&[nowhere, missing]);
    assert_eq!(
        failure(results[0].clone()),
        "cannot open its log /no/such/errors: No such file or directory (os error 2)"
    );
    assert!(matches!(&results[1], Err(StartError::NoProgram { .. })), "{results:?}");
    let unspeakable = town.runtime().start(&[Launch { errors: Some(odd), ..town.launch("r3", "true") }]).remove(0);
    assert!(failure(unspeakable).contains("is not UTF-8"));
    assert!(["r1.log", "r2.log", "r2.err", "r3.log"].iter().all(|name| !town.path(name).exists()));
}

#[test]
fn a_launch_of_an_older_version_can_be_read() {
    let mut launch = serde_json::to_value(Town::new().launch("r1", "true")).unwrap();
    launch.as_object_mut().unwrap().remove("errors").expect("it was there");
    assert_eq!(serde_json::from_value::<Launch>(launch).unwrap().errors, None);
}

fn a_program_that_is_missing_or_not_executable_is_the_programs_fault(town: &Town) {
    std::fs::write(town.path("plain"), "no program").unwrap();
    std::fs::write(town.path("garbage"), "no program").unwrap();
    std::fs::set_permissions(town.path("garbage"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let programs = ["no-such-program", "/no/such/program", "./plain", "./garbage", "/etc/passwd/x"];
    let launch = |program: &&str| Launch { argv: vec![(*program).to_owned()], ..town.launch("r1", "") };
    let launches: Vec<Launch> = programs.iter().map(launch).collect();
    for (result, name) in town.runtime().start(&launches).into_iter().zip(programs) {
        let Err(StartError::NoProgram { program, .. }) = &result else { panic!("{name}: {result:?}") };
        assert_eq!(program, name);
    }
}

fn a_path_that_is_not_utf8_is_an_error_and_no_panic(town: &Town) {
    let odd = town.path("").join(OsStr::from_bytes(b"a\xffb"));
    let (dir, log) = (odd.clone(), odd.join("log"));
    for launch in [Launch { dir, ..town.launch("r1", "true") }, Launch { log, ..town.launch("r1", "true") }] {
        let started = town.runtime().start(&[launch]);
        let [Err(StartError::Failed { cause })] = started.as_slice() else { panic!("{started:?}") };
        assert!(cause.contains("is not UTF-8"), "{cause}");
    }
}

fn a_missing_directory_or_log_folder_is_said_to_be_missing(town: &Town) {
    let nowhere = Launch { dir: PathBuf::from("/no/such/dir"), ..town.launch("r1", "true") };
    let file = Launch { dir: PathBuf::from("/etc/passwd"), ..town.launch("r1", "true") };
    let unlogged = Launch { log: PathBuf::from("/no/such/log"), ..town.launch("r1", "true") };
    let badly_named = Launch { run: "../r1".to_owned(), ..town.launch("r1", "true") };
    let empty = Launch { argv: Vec::new(), ..town.launch("r1", "true") };
    let said: Vec<String> =
        town.runtime().start(&[nowhere, file, unlogged, badly_named, empty]).into_iter().map(failure).collect();
    assert_eq!(
        said,
        [
            "cannot work in /no/such/dir: No such file or directory (os error 2)",
            "cannot work in /etc/passwd: it is not a directory",
            "cannot open its log /no/such/log: No such file or directory (os error 2)",
            "`../r1` cannot be the name of a run",
            "no program was given",
        ]
    );
}

fn failure(result: Result<gt_runtime::Handle, StartError>) -> String {
    match result {
        Err(StartError::Failed { cause }) => cause,
        other => panic!("{other:?}"),
    }
}

fn one_bad_launch_does_not_hold_up_the_others(town: &Town) {
    let mut runtime = town.watched_runtime();
    let bad = Launch { argv: vec!["no-such-program".to_owned()], ..town.launch("bad", "") };
    let results = runtime.start(&[town.launch("r1", "exit 1"), bad, town.launch("r2", "exit 2")]);
    assert!(results[0].is_ok() && results[1].is_err() && results[2].is_ok());
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(1));
    assert_eq!(town.ending(&mut *runtime, &known("r2", None)).code, Some(2));
}

fn a_hundred_starts_in_one_batch_all_run_and_all_end(town: &Town) {
    let mut runtime = town.watched_runtime();
    let launches: Vec<Launch> = (0..100).map(|n| town.launch(&format!("r{n}"), &format!("exit {n}"))).collect();
    let handles: Vec<_> = runtime.start(&launches).into_iter().map(Result::unwrap).collect();
    for (n, handle) in handles.iter().enumerate() {
        let ending = town.ending(&mut *runtime, &known(&format!("r{n}"), Some(handle)));
        assert_eq!((ending.code, ending.leftover), (Some(n as i32), 0));
    }
    let runs: Vec<String> = launches.into_iter().map(|launch| launch.run).collect();
    runtime.acknowledge(&runs).unwrap();
    assert_eq!(std::fs::read(town.keeper_dir().join("endings")).unwrap(), b"");
}

fn an_agent_may_print_a_hundred_megabytes(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "loud", "head -c 100000000 /dev/zero");
    assert_eq!(town.ending(&mut *runtime, &known("loud", None)).code, Some(0));
    let n_bytes = town.path("loud.log").metadata().unwrap().len();
    assert!(if town.place().keeps_all_output { n_bytes == 100_000_000 } else { n_bytes < 4_000_000 }, "{n_bytes}");
}

fn a_town_may_lie_deeper_than_a_socket_path_can_say(town: &Town) {
    let deep: PathBuf = (0..12).map(|_| "a-long-name-of-a-folder").collect();
    let town = town.with_keeper_in(&deep);
    assert!(town.keeper_dir().as_os_str().len() > 200);
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "r1", "exit 4");
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(4));
}

fn a_program_may_be_called_anything(town: &Town) {
    let mut runtime = town.watched_runtime();
    let odd = town.path("x) R 1 (y");
    std::fs::copy("/bin/sleep", &odd).unwrap();
    let argv = vec![odd.to_str().unwrap().to_owned(), "1000".to_owned()];
    let handle = runtime.start(&[Launch { argv, ..town.launch("r1", "") }]).remove(0).unwrap();
    town.kill_keeper();
    let seen = runtime.survey(&[known("r1", Some(&handle))]).unwrap();
    assert_eq!(seen["r1"], Sighting::Running(handle));
}

#[test]
fn a_keeper_that_cannot_be_started_is_no_ones_fault_and_nothing_runs() {
    let town = Town::new();
    let mut runtime =
        gt_runtime::process::ProcessRuntime::new(town.keeper_dir().to_owned(), vec!["/no/such/keeper".into()]);
    let results = runtime.start(&[town.launch("r1", "true")]);
    assert!(
        matches!(&results[0], Err(StartError::NoRoom { cause }) if cause.contains("/no/such/keeper")),
        "{results:?}"
    );
    assert!(runtime.survey(&[]).is_err());
    let seen = town.runtime().survey(&[known("r1", None)]).unwrap();
    assert_eq!(seen.values().filter(|sighting| matches!(sighting, Sighting::Running(_))).count(), 0);
}
