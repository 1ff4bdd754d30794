//! Programs that are missing, hang, flood or break: nobody waits for them, and each is told with its reason.

use std::time::{Duration, Instant};

use gt_runtime::{Handle, Launch, Runtime as _, StartError};

use super::place::{PATIENCE, Place, is_alive, known, pid_in, until};

/// What a start comes to, in one line.
fn said(result: &Result<Handle, StartError>) -> String {
    match result {
        Ok(_) => "started".to_owned(),
        Err(StartError::NoProgram { .. }) => format!("no program: {}", result.as_ref().unwrap_err()),
        Err(StartError::NoRoom { cause }) => format!("no room: {cause}"),
        Err(StartError::Failed { cause }) => format!("failed: {cause}"),
        Err(StartError::Unknown { cause }) => format!("unknown: {cause}"),
    }
}

fn start_with(body: &str) -> String {
    let place = Place::new();
    let mut runtime = place.script(body).with_timeout(PATIENCE);
    let results = runtime.start(&[place.launch("r1", "true")]);
    assert_eq!(results.len(), 1, "one result for each launch");
    said(&results[0])
}

#[test]
fn every_way_to_fail_at_a_start_has_its_kind_and_reason() {
    let cases = [
        // What was never called, or says itself that nothing was done, has started nothing.
        ("exit 75", "no room: `./program start` ended with exit code 75 and said nothing"),
        ("echo busy >&2; exit 75", "no room: `./program start` ended with exit code 75: busy"),
        ("exit 64", "no room: `./program start` ended with exit code 64 and said nothing"),
        // Of anything else nobody knows what it did.
        ("exit 0", "unknown: `./program start` printed no answer"),
        (
            "echo first >&2; printf 'it \\033[2Jbroke\\n\\n' >&2; exit 3",
            "unknown: `./program start` ended with exit code 3: it  [2Jbroke",
        ),
        ("kill -9 $$", "unknown: `./program start` was ended by signal 9 and said nothing"),
        ("echo '{\"results\": []}'", "unknown: `./program start` gave 0 results for 1 launches"),
        ("echo '{\"results\": [{\"run\": \"r2\"}]}'", "unknown: `./program start` answered for `r2`, not `r1`"),
        (
            "echo '{\"protocol\": 2, \"results\": [{\"run\": \"r1\"}]}'",
            "unknown: `./program start` speaks version 2 of the protocol, this is 1",
        ),
        (
            "echo welcome to host7",
            "unknown: `./program start` printed what is no answer (expected value at line 1 column 1): `welcome to host7`",
        ),
        (
            "printf '{\"results\": [{\"run\": \"r1\"}'; kill -9 $$",
            "unknown: `./program start` was ended by signal 9 and said nothing",
        ),
        // Refusals are taken at their word.
        (
            "echo '{\"results\": [{\"run\": \"r1\", \"error\": {\"kind\": \"no-room\", \"cause\": \"the queue is full\"}}]}'",
            "no room: the queue is full",
        ),
        (
            "echo '{\"results\": [{\"run\": \"r1\", \"error\": {\"kind\": \"no-program\", \"cause\": \"not in the image\"}}]}'",
            "no program: cannot start `sh`: not in the image",
        ),
        ("echo '{\"results\": [{\"run\": \"r1\", \"error\": {\"kind\": \"failed\"}}]}'", "failed: no cause was given"),
        ("echo '{\"results\": [{\"run\": \"r1\", \"error\": {\"kind\": \"odd\", \"cause\": \"hm\"}}]}'", "unknown: hm"),
        // What nobody asked for is ignored.
        ("echo '{\"protocol\": 1, \"more\": [], \"results\": [{\"run\": \"r1\", \"node\": 7}]}'", "started"),
    ];
    for (body, expected) in cases {
        assert_eq!(start_with(body), expected, "{body}");
    }
}

#[test]
fn rubbish_is_shown_by_its_first_bytes_only() {
    let binary = start_with("printf '\\377\\376\\000rubbish'");
    assert!(binary.contains("printed what is no answer") && binary.contains("rubbish`"), "{binary}");
    assert!(!binary.contains('\0'), "{binary:?}");
    let long = start_with("head -c 1000000 /dev/zero | tr '\\0' x");
    assert!(long.ends_with("xxx…`") && long.len() < 400, "{long}");
    let deep = start_with("printf '{\"x\": '; head -c 1000000 /dev/zero | tr '\\0' '['");
    assert!(deep.contains("printed what is no answer") && deep.len() < 400, "{deep}");
}

#[test]
fn what_is_repeated_of_a_request_shows_no_secret() {
    let echoed = start_with("cat");
    assert!(echoed.contains("`{\"protocol\":1,\"town\":"), "{echoed}");
    assert!(!echoed.contains("hush") && !echoed.contains("SECRET"), "{echoed}");
}

#[test]
fn a_program_that_cannot_be_called_has_started_nothing() {
    let place = Place::new();
    std::fs::write(place.town().join("plain"), "no program").unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["./absent"], "no room: cannot call `./absent`: No such file or directory (os error 2)"),
        (&["./plain"], "no room: cannot call `./plain`: Permission denied (os error 13)"),
        (
            &["no-such-program-anywhere"],
            "no room: cannot call `no-such-program-anywhere`: No such file or directory (os error 2)",
        ),
        (&[], "no room: no program is set to run agents with: `gt config set exec.command '[\"./my-host\"]'`"),
    ];
    for (argv, expected) in cases {
        let mut runtime = place.runtime(argv);
        assert_eq!(said(&runtime.start(&[place.launch("r1", "true")])[0]), expected);
        let error = runtime.survey(&[known("r1")]).unwrap_err().to_string();
        assert!(error.contains(expected.strip_prefix("no room: ").unwrap()), "{error}");
    }
}

#[test]
fn a_program_that_hangs_is_ended_with_all_its_children() {
    let place = Place::new();
    let mut runtime = place.script("sleep 1000 & echo $! > child; wait").with_timeout(Duration::from_secs(5));
    let begin = Instant::now();
    let started = said(&runtime.start(&[place.launch("r1", "true")])[0]);
    assert_eq!(started, "unknown: `./program start` took longer than 5 seconds and was ended");
    assert!(begin.elapsed() < PATIENCE, "nobody waits for it");
    let child = pid_in(&place.town().join("child"));
    until("its child is gone", || !is_alive(child));
}

#[test]
fn a_program_that_floods_is_cut_off() {
    let place = Place::new();
    let mut runtime = place.script("echo $$ > pid; exec yes");
    let flooded = said(&runtime.start(&[place.launch("r1", "true")])[0]);
    assert_eq!(flooded, "unknown: `./program start` printed more than 16 MB and was ended");
    let pid = pid_in(&place.town().join("pid"));
    until("it is gone", || !is_alive(pid));
    let mut runtime = place.script("yes >&2").with_timeout(Duration::from_secs(1));
    let complained = said(&runtime.start(&[place.launch("r1", "true")])[0]);
    assert_eq!(complained, "unknown: `./program start` took longer than 1 second and was ended");
}

#[test]
fn a_program_that_never_reads_its_input_is_no_trouble() {
    let place = Place::new();
    let mut runtime = place.script("echo '{\"results\": [{\"run\": \"r1\"}]}'");
    let launch = Launch { stdin: Some("x".repeat(1_000_000)), ..place.launch("r1", "true") };
    assert_eq!(said(&runtime.start(&[launch])[0]), "started");
}

#[test]
fn a_program_is_over_when_it_is_whoever_still_holds_its_output() {
    let place = Place::new();
    let mut runtime = place.script("sleep 1000 & echo $! > child; echo '{\"results\": [{\"run\": \"r1\"}]}'");
    let begin = Instant::now();
    assert_eq!(said(&runtime.start(&[place.launch("r1", "true")])[0]), "started");
    assert!(begin.elapsed() < PATIENCE);
    let child = pid_in(&place.town().join("child"));
    assert!(is_alive(child), "what a good call leaves behind is left alone");
    super::place::kill(child);
}

#[test]
fn a_path_that_is_not_utf8_is_an_error_and_no_panic() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    let odd = place.path("").join(std::ffi::OsStr::from_bytes(b"a\xffb"));
    let mut runtime = place.script("exit 0");
    let launch = Launch { dir: odd.clone(), ..place.launch("r1", "true") };
    let told = said(&runtime.start(&[launch])[0]);
    assert!(told.starts_with("failed: ") && told.contains("is not UTF-8"), "{told}");
    std::fs::create_dir(&odd).unwrap();
    let mut runtime = gt_runtime::exec::ExecRuntime::new(vec!["/bin/true".into()], odd);
    let told = said(&runtime.start(&[place.launch("r1", "true")])[0]);
    assert!(told.starts_with("no room: ") && told.contains("UTF-8"), "{told}");
}

#[test]
fn nothing_is_called_for_nothing() {
    let place = Place::new();
    let mut runtime = place.script("echo $verb >> calls");
    assert!(runtime.start(&[]).is_empty());
    runtime.acknowledge(&[]).unwrap();
    assert!(!place.town().join("calls").exists());
}
