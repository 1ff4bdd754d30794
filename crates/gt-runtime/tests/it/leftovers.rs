//! What agents leave behind: children that outlive them, in their group and out of it, and those that do not listen.

use gt_runtime::Stop;

use super::place::in_every_place;
use super::town::{Town, is_alive, known, pid_in, pids, until};

in_every_place!(
    a_child_in_the_same_group_is_ended_with_the_run,
    a_daemon_that_left_group_and_session_is_ended_with_the_run,
    a_daemon_that_also_hides_whose_it_is_is_ended_when_no_other_run_is_about,
    a_leftover_that_ignores_the_request_is_killed_and_one_of_another_run_is_left_alone,
    an_agent_that_ignores_the_request_is_killed_after_the_grace,
    orphans_of_a_run_that_goes_on_are_not_left_as_zombies,
);

fn a_child_in_the_same_group_is_ended_with_the_run(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "r1", "sleep 1000 & echo $! > child; exit 3");
    let ending = town.ending(&mut *runtime, &known("r1", None));
    assert_eq!(ending.code, Some(3));
    assert!(ending.leftover == 1 || town.place().hangs_up, "{ending:?}");
    assert!(!is_alive(pid_in(&town.path("child"))));
}

fn a_daemon_that_left_group_and_session_is_ended_with_the_run(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.fifo("up");
    let daemon = "setsid sh -c '(echo $$ > daemon; echo up > up; exec sleep 1000) &' & read word < up; exit 0";
    town.start(&mut *runtime, "r1", daemon);
    let ending = town.ending(&mut *runtime, &known("r1", None));
    assert_eq!((ending.code, ending.leftover), (Some(0), 1));
    assert!(!pids().any(|pid| is_marked(pid, "r1", town)));
}

fn a_daemon_that_also_hides_whose_it_is_is_ended_when_no_other_run_is_about(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.fifo("up");
    let hidden = "env -i setsid sh -c 'echo $$ > hidden; echo up > up; exec sleep 1000' & read word < up; exit 0";
    town.start(&mut *runtime, "r1", hidden);
    let ending = town.ending(&mut *runtime, &known("r1", None));
    assert_eq!((ending.code, ending.leftover), (Some(0), 1));
    assert!(!is_alive(pid_in(&town.path("hidden"))));
}

fn a_leftover_that_ignores_the_request_is_killed_and_one_of_another_run_is_left_alone(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.fifo("up");
    let other = town.start(&mut *runtime, "other", "sleep 1000 & echo $! > other; wait");
    let stubborn = "(trap '' TERM HUP; echo up > up; while :; do sleep 1000; done) & read word < up; exit 0";
    town.start(&mut *runtime, "r1", stubborn);
    let ending = town.ending(&mut *runtime, &known("r1", None));
    assert_eq!(ending.code, Some(0));
    assert!(ending.leftover >= 2, "{ending:?}");
    assert!(is_alive(other.pid) && is_alive(pid_in(&town.path("other"))));
}

fn an_agent_that_ignores_the_request_is_killed_after_the_grace(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.fifo("up");
    let script = "trap '' TERM; echo up > up; while :; do sleep 1000; done";
    let handle = town.start(&mut *runtime, "r1", script);
    std::fs::read_to_string(town.path("up")).unwrap();
    runtime.stop(&known("r1", Some(&handle)), Stop::Gently).unwrap();
    let ending = town.ending(&mut *runtime, &known("r1", Some(&handle)));
    assert_eq!((ending.code, ending.signal), (None, Some(9)));
}

fn orphans_of_a_run_that_goes_on_are_not_left_as_zombies(town: &Town) {
    let mut runtime = town.watched_runtime();
    let script = "for n in 1 2 3 4 5; do (sh -c 'echo $$ > orphan; exit 0' &); done; echo done > done; exec sleep 1000";
    town.start(&mut *runtime, "r1", script);
    until("the script is through", || town.path("done").exists());
    let keeper = town.keeper_pid();
    // An agent, or tmux and our client of it.
    let n_staying = if town.place().hangs_up { 2 } else { 1 };
    until("all orphans were waited for", || children_of(keeper).len() == n_staying);
}

fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(1)?.parse().ok()) == Some(parent)
    };
    pids().filter(is_child).collect()
}

pub(super) fn is_marked(pid: u32, run: &str, town: &Town) -> bool {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has = |wanted: String| environ.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes());
    has(format!("GT_RUN={run}")) && has(format!("TOWN={}", town.path("").display().to_string().trim_end_matches('/')))
}
