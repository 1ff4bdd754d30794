//! The keeper's own life: started once however many ask, killed at the worst moment, and pestered by bad callers.

use std::io::{BufRead as _, BufReader, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use gt_runtime::{Known, Runtime as _, Sighting, StartError, Stop};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::place::in_every_place;
use super::town::{PATIENCE, Town, is_alive, kill, known, until};

in_every_place!(
    agents_outlive_a_killed_keeper_and_are_adopted_by_the_next,
    an_agent_that_executes_one_program_after_the_other_is_found_at_any_moment,
    what_is_left_of_an_agent_that_ended_without_a_keeper_is_cleared_up,
    an_ending_outlives_clients_and_keepers_until_it_is_acknowledged,
    a_run_of_the_same_name_in_another_town_is_left_alone,
    a_deleted_town_has_neither_agents_nor_a_keeper,
    a_town_that_was_moved_keeps_its_agents,
    an_agent_goes_on_when_its_client_goes_away,
    a_watcher_tells_when_the_keeper_is_lost_and_when_there_is_another,
);

#[test]
fn clients_that_race_to_start_a_keeper_share_one() {
    let town = Town::new();
    let together = Barrier::new(8);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (mut runtime, launch) = (town.process_runtime(), town.launch(&format!("r{n}"), "exec sleep 1000"));
            let together = &together;
            scope.spawn(move || {
                together.wait();
                runtime.start(&[launch]).remove(0).unwrap();
            });
        }
    });
    until("only one keeper is left", || town.keeper_pids().len() == 1);
    let all: Vec<_> = (0..8).map(|n| known(&format!("r{n}"), None)).collect();
    let seen = town.runtime().survey(&all).unwrap();
    assert_eq!(seen.values().filter(|sighting| matches!(sighting, Sighting::Running(_))).count(), 8);
}

#[test]
fn a_keeper_with_nothing_to_keep_leaves_after_ten_seconds_and_not_before() {
    let town = Town::new();
    let mut runtime = town.watched_runtime();
    let handle = town.start(&mut *runtime, "r1", "exit 0");
    town.ending(&mut *runtime, &known("r1", Some(&handle)));
    runtime.acknowledge(&["r1".to_owned()]).unwrap();
    let (keeper, last_call) = (town.keeper_pid(), Instant::now());
    drop(runtime);
    until("the keeper has left", || !is_alive(keeper));
    assert!(last_call.elapsed() >= Duration::from_secs(10), "it left after {:?}", last_call.elapsed());
}

fn agents_outlive_a_killed_keeper_and_are_adopted_by_the_next(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.fifo("go");
    let recorded = town.start(&mut *runtime, "recorded", "read word < go; exit 5");
    let unrecorded = town.start(&mut *runtime, "unrecorded", "exec sleep 1000");
    town.kill_keeper();
    assert!(is_alive(recorded.pid) && is_alive(unrecorded.pid));

    let both = [known("recorded", Some(&recorded)), known("unrecorded", None), known("never", None)];
    let seen = runtime.survey(&both).unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen["recorded"], Sighting::Running(recorded.clone()));
    assert_eq!(seen["unrecorded"], Sighting::Running(unrecorded.clone()));
    let again = runtime.start(&[town.launch("recorded", "exit 0")]);
    assert_eq!(again[0], Ok(recorded));

    std::fs::write(town.path("go"), "go\n").unwrap();
    let ending = town.ending(&mut *runtime, &both[0]);
    let code = town.place().sees_ends_without_keeper.then_some(5);
    assert_eq!((ending.code, ending.signal), (code, None));
    runtime.stop(&both[1], Stop::Gently).unwrap();
    town.ending(&mut *runtime, &both[1]);
    assert!(!is_alive(unrecorded.pid));
}

fn an_agent_that_executes_one_program_after_the_other_is_found_at_any_moment(town: &Town) {
    let mut runtime = town.runtime();
    let handle = town.start(&mut *runtime, "r1", "echo 'exec sh again' > again; exec sh again");
    for _ in 0..50 {
        town.kill_keeper();
        let seen = runtime.survey(&[known("r1", None)]).unwrap();
        let running = Some(Sighting::Running(handle.clone()));
        assert_eq!(seen.get("r1"), running.as_ref(), "{}", town.keeper_log());
    }
}

fn what_is_left_of_an_agent_that_ended_without_a_keeper_is_cleared_up(town: &Town) {
    let mut runtime = town.watched_runtime();
    let handle = town.start(&mut *runtime, "r1", "sleep 1000 & echo $! > child; wait");
    let child = super::town::pid_in(&town.path("child"));
    town.kill_keeper();
    kill(handle.pid);
    until("the agent is gone", || !is_alive(handle.pid));
    let ending = town.ending(&mut *runtime, &known("r1", Some(&handle)));
    assert_eq!((ending.code, ending.signal), (None, town.place().sees_ends_without_keeper.then_some(9)));
    assert!(ending.leftover == 1 || town.place().hangs_up, "{ending:?}");
    assert!(!is_alive(child));
}

fn an_ending_outlives_clients_and_keepers_until_it_is_acknowledged(town: &Town) {
    let mut runtime = town.watched_runtime();
    let handle = town.start(&mut *runtime, "r1", "kill -USR1 $$");
    let ending = town.ending(&mut *runtime, &known("r1", Some(&handle)));
    assert_eq!((ending.code, ending.signal), (None, Some(10)));
    drop(runtime);
    town.kill_keeper();

    let mut later = town.runtime();
    assert_eq!(later.survey(&[]).unwrap()["r1"], Sighting::Ended(ending));
    assert_eq!(later.start(&[town.launch("r1", "exit 0")])[0], Ok(handle));
    later.acknowledge(&["r1".to_owned()]).unwrap();
    drop(later);
    town.kill_keeper();
    assert!(town.runtime().survey(&[]).unwrap().is_empty());
}

fn a_run_of_the_same_name_in_another_town_is_left_alone(town: &Town) {
    let other = town.other();
    let (mut runtime, mut others) = (town.watched_runtime(), other.watched_runtime());
    let handle = town.start(&mut *runtime, "r1", "exec sleep 1000");
    let theirs = other.start(&mut *others, "r1", "exec sleep 1000");
    town.kill_keeper();
    runtime.stop(&known("r1", None), Stop::Now).unwrap();
    town.ending(&mut *runtime, &known("r1", Some(&handle)));
    assert!(is_alive(theirs.pid));
}

fn a_deleted_town_has_neither_agents_nor_a_keeper(town: &Town) {
    let mut runtime = town.watched_runtime();
    let handle = town.start(&mut *runtime, "r1", "exec sleep 1000");
    let keeper = town.keeper_pid();
    std::fs::remove_dir_all(town.keeper_dir()).unwrap();
    until("its agent has ended", || !is_alive(handle.pid));
    until("its keeper has ended", || !is_alive(keeper));
}

fn a_town_that_was_moved_keeps_its_agents(town: &Town) {
    let mut runtime = town.watched_runtime();
    let handle = town.start(&mut *runtime, "r1", "exec sleep 1000");
    // A file that goes makes the keeper look, and the directory is there.
    std::fs::write(town.keeper_dir().join("stray"), "").unwrap();
    std::fs::remove_file(town.keeper_dir().join("stray")).unwrap();
    let elsewhere = town.path("moved");
    std::fs::rename(town.keeper_dir(), &elsewhere).unwrap();
    std::fs::rename(&elsewhere, town.keeper_dir()).unwrap();
    let seen = runtime.survey(&[known("r1", Some(&handle))]).unwrap();
    assert_eq!(seen["r1"], Sighting::Running(handle.clone()));
    runtime.stop(&known("r1", Some(&handle)), Stop::Now).unwrap();
    town.ending(&mut *runtime, &known("r1", Some(&handle)));
}

fn an_agent_goes_on_when_its_client_goes_away(town: &Town) {
    let handle = town.start(&mut *town.runtime(), "r1", "exec sleep 1000");
    let seen = town.runtime().survey(&[known("r1", None)]).unwrap();
    assert_eq!(seen["r1"], Sighting::Running(handle));
}

fn a_watcher_tells_when_the_keeper_is_lost_and_when_there_is_another(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.kill_keeper();
    town.wait_for_news();
    town.wait_for_news();
    town.start(&mut *runtime, "r1", "exit 6");
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(6));
}

#[test]
fn bad_callers_are_cut_off_and_nobody_else_notices() {
    let town = Town::new();
    let mut runtime = town.watched_runtime();
    let keeper = town.keeper_pid();
    let call = || UnixStream::connect(town.keeper_dir().join("sock")).unwrap();
    for nonsense in [&b"\xff\xfe\n"[..], b"{\"Start\":\n", b"{}\n", b"[[[[[[\n", b"\"Nothing\"\n", b"null\n"] {
        let mut bad = call();
        bad.write_all(nonsense).unwrap();
        bad.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut heard = Vec::new();
        bad.read_to_end(&mut heard).unwrap();
        assert!(heard.starts_with(b"{\"protocol\""), "only the greeting");
    }
    let mut endless = call();
    let chunk = vec![b'x'; 1 << 20];
    let is_cut_off = (0..80).any(|_| endless.write_all(&chunk).is_err());
    assert!(is_cut_off, "a line without end");
    let (mut vanishing, mut waiting) = (call(), call());
    vanishing.write_all(b"{\"Survey\":[]}\n{\"Sur").unwrap();
    drop(vanishing);
    waiting.write_all(b"{\"Sur").unwrap();

    town.start(&mut *runtime, "r1", "exit 9");
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(9));
    assert_eq!(town.keeper_pids(), [keeper]);
}

#[test]
fn a_caller_that_asks_and_never_reads_is_cut_off() {
    let town = Town::new();
    let mut runtime = town.watched_runtime();
    let mut deaf = UnixStream::connect(town.keeper_dir().join("sock")).unwrap();
    for n in 0..50 {
        town.start(&mut *runtime, &format!("r{n}"), "true");
        town.ending(&mut *runtime, &known(&format!("r{n}"), None));
    }
    deaf.set_write_timeout(Some(PATIENCE)).unwrap();
    let questions = b"{\"Survey\":[]}\n".repeat(1000);
    let is_cut_off = (0..100).any(|_| deaf.write_all(&questions).is_err());
    assert!(is_cut_off);
    assert_eq!(runtime.survey(&[]).unwrap().len(), 50);
}

#[test]
fn a_keeper_with_nothing_to_keep_goes_away_and_the_next_call_starts_another() {
    let town = Town::new();
    let mut runtime = town.runtime();
    runtime.survey(&[]).unwrap();
    let first = town.keeper_pid();
    drop(runtime);
    until("it is gone", || !is_alive(first));
    let mut runtime = town.runtime();
    runtime.survey(&[]).unwrap();
    assert_ne!(town.keeper_pid(), first);
}

/// Chaos found it: a daemon that began just then ended.
#[test]
fn a_keeper_that_dies_when_a_watcher_comes_is_replaced() {
    let town = Town::new();
    let socket = town.keeper_dir().join("sock");
    let mut greeting = String::new();
    town.runtime().survey(&[]).unwrap();
    BufReader::new(UnixStream::connect(&socket).unwrap()).read_line(&mut greeting).unwrap();
    let keeper = town.keeper_pid();
    kill(keeper);
    until("the keeper is gone", || !is_alive(keeper));
    std::fs::remove_file(&socket).unwrap();
    let dying = UnixListener::bind(&socket).unwrap();
    let ending = std::thread::spawn(move || {
        let (mut caller, _) = dying.accept().unwrap();
        caller.write_all(greeting.as_bytes()).unwrap();
        BufReader::new(&caller).read_line(&mut String::new()).unwrap();
    });
    let mut runtime = town.watched_runtime();
    ending.join().unwrap();
    let handle = town.start(&mut *runtime, "r1", "exit 0");
    town.ending(&mut *runtime, &known("r1", Some(&handle)));
}

/// Locks a file and has no process show it, as one that is just executing its program: the descriptor is on its way through a
/// socket.
fn lock_without_process(path: &std::path::Path) -> (UnixStream, UnixStream) {
    let file = std::fs::File::create(path).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let (sender, receiver) = UnixStream::pair().unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [file.as_fd()];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(&sender, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::empty()).unwrap();
    (sender, receiver)
}

#[test]
fn a_run_whose_log_is_locked_lives_even_if_no_process_shows_it() {
    let town = Town::new();
    let launch = town.launch("r1", "exit 0");
    let in_flight = lock_without_process(&launch.log);
    // Who only reads the log has nothing to do with the run.
    let _reader = std::fs::File::open(&launch.log).unwrap();
    let known = Known { log: Some(launch.log.clone()), ..known("r1", None) };
    let mut runtime = town.process_runtime();
    assert_eq!(runtime.survey(std::slice::from_ref(&known)).unwrap()["r1"], Sighting::Starting);
    runtime.stop(&known, Stop::Now).unwrap();
    let again = runtime.start(std::slice::from_ref(&launch));
    assert!(matches!(again[0], Err(StartError::Unknown { .. })), "{again:?}");
    drop(in_flight);
    assert!(runtime.survey(std::slice::from_ref(&known)).unwrap().is_empty(), "nothing of it is left");
    runtime.start(&[launch])[0].as_ref().expect("it can be started now");
}

#[test]
fn an_agent_that_clears_its_environment_is_found_by_its_output() {
    let town = Town::new();
    let mut runtime = town.process_runtime();
    let handle = town.start(&mut runtime, "r1", "exec env -i sleep 1000");
    town.kill_keeper();
    until("it has no environment", || {
        std::fs::read(format!("/proc/{}/environ", handle.pid)).is_ok_and(|bytes| bytes.is_empty())
            && std::fs::read(format!("/proc/{}/cmdline", handle.pid)).is_ok_and(|words| words.starts_with(b"sleep"))
    });
    let known = Known { log: Some(town.path("r1.log")), ..known("r1", None) };
    let seen = runtime.survey(std::slice::from_ref(&known)).unwrap();
    assert_eq!(seen["r1"], Sighting::Running(handle.clone()));
    runtime.stop(&known, Stop::Now).unwrap();
    until("it is stopped", || !is_alive(handle.pid));
}

/// Kills the keeper before anything is recorded of a run, ends its agent, and returns a helper that the agent has left.
fn leave_helper(town: &Town, runtime: &mut dyn gt_runtime::Runtime, helper: &str) -> (Known, u32) {
    town.fifo("go");
    let script = format!("{helper} & echo $! > child; read word < go; exit 1");
    let agent = town.start(runtime, "r1", &script);
    let child = super::town::pid_in(&town.path("child"));
    until("the helper works", || {
        std::fs::read(format!("/proc/{child}/stat"))
            .is_ok_and(|stat| String::from_utf8_lossy(&stat).contains("(sleep)"))
            || helper.starts_with("timeout")
    });
    town.kill_keeper();
    std::fs::write(town.path("go"), "go\n").unwrap();
    until("the agent has ended", || !is_alive(agent.pid));
    (Known { log: Some(town.path("r1.log")), ..known("r1", None) }, child)
}

#[test]
fn a_helper_that_outlives_an_unrecorded_agent_is_ended_and_not_taken_for_it() {
    // Without the mark of its run, in a kernel session of its own, and in a group of its own.
    for helper in ["env -i setsid sleep 1000", "setsid sleep 1000", "timeout 1000 sleep 1000"] {
        let town = Town::new();
        let mut runtime = town.watched_runtime();
        let (known, child) = leave_helper(&town, &mut *runtime, helper);
        let ending = town.ending(&mut *runtime, &known);
        assert_eq!((ending.code, ending.signal), (None, None), "{helper}");
        assert!(!is_alive(child), "{helper}");
    }
}

#[test]
fn a_helper_is_told_from_an_agent_of_which_the_log_knows_nothing() {
    let town = Town::new();
    let mut runtime = town.watched_runtime();
    let (known, child) = leave_helper(&town, &mut *runtime, "env -i setsid sleep 1000");
    // As on a file system without such attributes.
    rustix::fs::removexattr(town.path("r1.log"), "user.gasworks.process").ok();
    town.ending(&mut *runtime, &known);
    assert!(!is_alive(child));
}
