//! `gt daemon`: one per town, gone and back again, and agents that do not mind. // SPEC D8

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet, count};
use crate::town::{session, snapshot};

/// Ends with 7 when the gate opens.
const GATED: &str = "touch \"$HOME/ready\"; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; exit 7";

#[test]
fn a_daemon_from_start_to_stop() {
    let fleet = Fleet::with_cap(5, FINISHES);
    let answers = [
        fleet.town.gt(["daemon", "status"]),
        fleet.town.gt(["daemon", "stop"]),
        fleet.town.gt(["daemon", "logs"]),
        fleet.town.gt(["daemon", "start"]),
        fleet.town.gt(["daemon", "start"]),
        fleet.town.gt(["daemon", "status"]),
        fleet.town.gt(["daemon", "restart"]),
        fleet.town.gt(["daemon", "stop"]),
        fleet.town.gt(["daemon", "status"]),
    ];
    assert_eq!(answers.each_ref().map(|answer| answer.code), [4, 0, 0, 0, 0, 0, 0, 0, 4]);
    let events = fleet.town.events();
    assert_eq!((count(&events, "daemon.started", None), count(&events, "daemon.stopped", None)), (2, 2));
    snapshot!(session(answers), @r"
    $ gt daemon status
    ! error: no daemon runs
    ! hint: start one with `gt daemon start`
    [exit 4]
    $ gt daemon stop
    No daemon runs; nothing was changed.
    $ gt daemon logs
    There is no log: no daemon was started with `gt daemon start`.
    $ gt daemon start
    The daemon runs (process [PID]).
    $ gt daemon start
    A daemon runs already (process [PID]).
    $ gt daemon status
    A daemon runs (process [PID]).
    $ gt daemon restart
    Restarted the daemon (process [PID]); agents went on.
    $ gt daemon stop
    The daemon has stopped; agents go on.
    $ gt daemon status
    ! error: no daemon runs
    ! hint: start one with `gt daemon start`
    [exit 4]
    ");
}

#[test]
fn a_dry_run_says_what_would_become_of_the_daemon() {
    let fleet = Fleet::with_cap(5, FINISHES);
    let without = [
        fleet.town.gt(["daemon", "start", "--dry-run"]),
        fleet.town.gt(["daemon", "start", "--dry-run", "--json"]),
        fleet.town.gt(["daemon", "restart", "--dry-run"]),
        fleet.town.gt(["send", "dm:a", "hello", "--dry-run"]),
        fleet.town.gt(["daemon", "restart"]),
    ];
    let with = [fleet.town.gt(["daemon", "stop", "--dry-run"]), fleet.town.gt(["daemon", "restart", "--dry-run"])];
    let stopped = fleet.town.gt(["daemon", "stop", "--dry-run", "--json"]).json();
    assert_eq!((&stopped["outcome"], &stopped["dry_run"]), (&"would-stop".into(), &true.into()));
    fleet.town.gt(["daemon", "stop"]).success();
    snapshot!(session(without) + &session(with), @r#"
    $ gt daemon start --dry-run
    Dry run, nothing is changed. This would happen:
    Would start a daemon.
    $ gt daemon start --dry-run --json
    {"dry_run":true,"outcome":"would-start","pid":null}
    $ gt daemon restart --dry-run
    Dry run, nothing is changed. This would happen:
    No daemon runs. Would start one.
    $ gt send dm:a hello --dry-run
    Dry run, nothing is changed. This would happen:
    Would send to dm:a.
    $ gt daemon restart
    No daemon was running; started one (process [PID]).
    $ gt daemon stop --dry-run
    Dry run, nothing is changed. This would happen:
    Would stop the daemon (process [PID]).
    $ gt daemon restart --dry-run
    Dry run, nothing is changed. This would happen:
    Would stop the daemon (process [PID]) and start another.
    "#);
}

#[test]
fn a_daemon_tells_in_its_log_what_it_does() {
    let fleet = Fleet::with_cap(5, FINISHES);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["daemon", "start"]).success();
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    fleet.town.gt(["daemon", "stop"]).success();
    snapshot!(fleet.town.gt(["daemon", "logs"]).to_string(), @r"
    $ gt daemon logs
    [TIME] running [TOWN] (process [PID])
    [TIME] answering HTTP at [ADDRESS]
    [TIME] started shop/Toast on gt-a
    [TIME] stopped
    ");
}

#[test]
fn the_unit_names_this_town_and_leaves_agents_alone() {
    let fleet = Fleet::new(FINISHES);
    let answer = fleet.town.gt(["daemon", "unit"]);
    snapshot!(answer.to_string().replace(crate::town::GT, "[GT]"), @"
    $ gt daemon unit
    [Unit]
    Description=Gasworks daemon of [TOWN]

    [Service]
    ExecStart=[GT] --town [TOWN] daemon run --wait
    WorkingDirectory=[TOWN]
    Restart=always
    # Agents live on when the daemon is stopped or restarted.
    KillMode=process

    [Install]
    WantedBy=default.target
    ! hint: it keeps running after you log out with `loginctl enable-linger`
    ");
}

#[test]
fn the_unit_of_a_town_with_an_odd_name_is_quoted() {
    let town = crate::town::Town::unmade();
    let odd = town.path("my 100% town");
    town.call(["init", "my 100% town"]).run().success();
    let answer = town.call(["daemon", "unit"]).at(&odd).run();
    snapshot!(answer.to_string().replace(crate::town::GT, "[GT]"), @r#"
    $ gt daemon unit
    [Unit]
    Description=Gasworks daemon of [TOWN]/my 100%% town

    [Service]
    ExecStart=[GT] --town "[TOWN]/my 100%% town" daemon run --wait
    WorkingDirectory=[TOWN]/my 100%% town
    Restart=always
    # Agents live on when the daemon is stopped or restarted.
    KillMode=process

    [Install]
    WantedBy=default.target
    ! hint: it keeps running after you log out with `loginctl enable-linger`
    "#);
}

#[test]
fn agents_outlive_a_stopped_daemon_and_how_they_ended_is_known_to_the_next() {
    let fleet = Fleet::with_cap(5, GATED);
    fleet.set("witness.redispatch_cooldown", "1h");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.town.gt(["daemon", "start"]).success();
    fleet.await_file("ready");
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.town.gt(["daemon", "stop"]).success();
    let agent = fleet.agents().into_iter().find(|agent| agent.leads).expect("the agent lives on");
    fleet.open_gate("gate");
    fleet.await_end(agent.pid);
    fleet.town.gt(["daemon", "start"]).success();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let ended = events.iter().find(|event| event["type"] == "run.ended").expect("it ended");
    assert_eq!(ended["data"]["exit_code"], 7);
    assert_eq!(fleet.starts(), ["gt-a"], "it was started once");
    fleet.town.gt(["daemon", "stop"]).success();
}

#[test]
fn a_daemon_takes_up_an_agent_that_still_runs_and_sees_its_end() {
    let fleet = Fleet::with_cap(1, GATED);
    fleet.set("witness.redispatch_cooldown", "1h");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.kill_daemon();
    fleet.start_daemon();
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json()[0]["state"], "working");
    let run = fleet.town.gt(["scheduler", "run"]);
    assert_eq!(run.code, 5, "the slot is taken: {run}");
    fleet.open_gate("gate");
    let events = fleet.until_events("run.started", Some("gt-b"), 1);
    let is_its_end = |event: &&Value| event["type"] == "run.ended" && event["bead"] == "gt-a";
    let ended: Vec<&Value> = events.iter().filter(is_its_end).collect();
    assert_eq!((ended.len(), &ended[0]["data"]["exit_code"]), (1, &7.into()));
}

#[test]
fn a_second_daemon_waits_its_turn_and_takes_over() {
    let fleet = Fleet::with_cap(5, FINISHES);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["daemon", "start"]).success();
    fleet.until_events("daemon.started", None, 1);
    let first = fleet.town.gt(["daemon", "status", "--json"]).json()["pid"].clone();
    fleet.start_daemon(); // says that it waits
    assert_eq!(fleet.town.gt(["daemon", "status", "--json"]).json()["pid"], first);
    let pid = u32::try_from(first.as_u64().expect("a number")).expect("a process id");
    Fleet::signal(pid, "-9");
    fleet.until_events("daemon.started", None, 2);
    assert_eq!(fleet.town.gt(["daemon", "status", "--json"]).json()["pid"], fleet.daemon_pid());
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
}
