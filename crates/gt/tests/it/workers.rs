//! Polecats and the town as people see them: list, show, peek, logs, stop, prime, hook, status. // SPEC P4, P7, P8, U0

use std::fs;
use std::process::Command;

use crate::fleet::{FINISHES, Fleet, count};
use crate::town::{session, snapshot};

#[path = "workers/daemon.rs"]
mod daemon;
#[path = "workers/salvaged.rs"]
mod salvaged;
#[path = "workers/worktrees.rs"]
mod worktrees;

/// An agent that goes on until its test ends.
const STAYS: &str = "exec sleep 600";

/// A test's own amounts of process ids have no place in a transcript.
fn masked(text: &str) -> String {
    let mask = |line: &str| match line.split_once("  process   ") {
        Some((before, _)) => format!("{before}  process   [PID]"),
        None => line.to_owned(),
    };
    text.lines().map(mask).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_worker_from_its_first_line_to_its_end() {
    let fleet = Fleet::new("echo one; echo two; echo three; touch \"$HOME/ready\"; exec sleep 600");
    fleet.hold(&["gt-a"]);
    let none = fleet.town.gt(["polecat", "list"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_file("ready");
    let answers = [
        none,
        fleet.town.gt(["polecat", "list"]),
        fleet.town.gt(["polecat", "list", "shop"]),
        fleet.town.gt(["polecat", "show", "Toast"]),
        fleet.town.gt(["polecat", "peek", "toast", "--lines", "2"]),
        fleet.town.gt(["polecat", "logs", "shop/Toast"]),
        fleet.town.gt(["explain", "gt-a"]),
        fleet.town.gt(["polecat", "nuke", "Toast"]),
        fleet.town.gt(["polecat", "stop", "Toast"]),
        fleet.town.gt(["polecat", "list"]),
        fleet.town.gt(["polecat", "show", "Toast"]),
        fleet.town.gt(["polecat", "logs", "Toast"]),
        fleet.town.gt(["polecat", "nuke", "Toast"]),
        fleet.town.gt(["polecat", "list"]),
    ];
    snapshot!("polecat_life", masked(&session(answers)));
    assert!(fleet.agents().is_empty());
}

#[test]
fn who_closes_or_deletes_a_bead_hears_who_still_works_on_it() {
    let fleet = Fleet::with_cap(2, STAYS);
    fleet.set("rigs.shop.isolation", "worktree");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.town.gt(["scheduler", "run"]).success();
    let closed = fleet.town.gt(["close", "gt-a"]);
    closed.success();
    assert!(
        closed.stderr.contains("note: shop/Toast still works on gt-a: no daemon runs that would end it; "),
        "{closed}"
    );
    assert!(closed.stderr.contains("what it has committed stays on branch "), "{closed}");
    let (_, stop) = closed.stderr.split_once("stop it now with `gt ").expect("a command");
    let stop = stop.split('`').next().expect("a command");
    fleet.town.call(stop.split(' ')).run().success();
    let deleted = fleet.town.gt(["bead", "delete", "gt-b"]);
    assert!(deleted.stderr.contains(" still works on gt-b: "), "{deleted}");
}

#[test]
fn a_stop_never_ends_what_a_reused_name_does_now() {
    let fleet = Fleet::with_cap(1, STAYS);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.town.gt(["polecat", "stop", "Toast"]).success();
    fleet.until_events("run.started", Some("gt-b"), 1);
    let refused = fleet.town.gt(["polecat", "stop", "Toast"]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("shop/Toast changed its work"), "{refused}");
    assert!(refused.stderr.contains("from gt-a to gt-b Do gt-b"), "{refused}");
    assert_eq!(fleet.agents().len(), 1, "what it does now goes on");
    let run = fleet.town.gt(["polecat", "show", "Toast", "--json"]).json()["run"].as_str().expect("it runs").to_owned();
    assert!(refused.stderr.contains(&format!("gt polecat stop shop/Toast --run {run}")), "{refused}");
    let other = fleet.town.gt(["polecat", "stop", "Toast", "--run", "another"]);
    assert_eq!(other.code, 1, "{other}");
    fleet.town.gt(["polecat", "stop", "Toast", "--run", &run]).success();
    assert!(fleet.agents().is_empty());
}

#[test]
fn a_worker_that_is_not_there_or_has_no_terminal_is_told_with_the_way_on() {
    let fleet = Fleet::new(STAYS);
    fleet.town.repository("docs");
    fleet.town.gt(["rig", "add", "docs", "docs", "--prefix", "docs"]).success();
    fleet.set("rigs.docs.isolation", "none");
    fleet.hold(&["gt-a", "docs-a"]);
    let refused = |line: &str| fleet.town.refused(line.split(' '));
    let nobody = refused("polecat show Toast");
    fleet.town.gt(["sling", "gt-a", "docs-a"]).success();
    let refusals = [
        nobody,
        refused("polecat show Tost"),
        refused("polecat peek Nobody"),
        refused("polecat logs Nobody"),
        refused("polecat stop Nobody"),
        refused("polecat nuke Nobody"),
        refused("polecat list nowhere"),
        refused("polecat show Toast"),
        refused("polecat attach shop/Toast"),
        refused("polecat send shop/Toast hello"),
    ];
    snapshot!(refusals.concat(), @r"
    $ gt polecat show Toast
    ! error: there is no polecat `Toast`
    ! hint: `gt polecat list` shows who there is
    [exit 3]
    $ gt polecat show Tost
    ! error: there is no polecat `Tost`
    ! hint: did you mean `Toast`?
    [exit 3]
    $ gt polecat peek Nobody
    ! error: there is no polecat `Nobody`
    ! hint: `gt polecat list` shows who there is
    [exit 3]
    $ gt polecat logs Nobody
    ! error: there is no polecat `Nobody`
    ! hint: `gt polecat list` shows who there is
    [exit 3]
    $ gt polecat stop Nobody
    ! error: there is no polecat `Nobody`
    ! hint: `gt polecat list` shows who there is
    [exit 3]
    $ gt polecat nuke Nobody
    ! error: there is no polecat `Nobody`
    ! hint: `gt polecat list` shows who there is
    [exit 3]
    $ gt polecat list nowhere
    ! error: there is no rig `nowhere`
    ! hint: `gt rig list` shows what there is
    [exit 3]
    $ gt polecat show Toast
    ! error: several polecats are called Toast
    ! hint: say which: `docs/Toast` or `shop/Toast`
    [exit 1]
    $ gt polecat attach shop/Toast
    ! error: shop/Toast runs without a terminal
    ! hint: see what it prints with `gt polecat peek shop/Toast`
    [exit 1]
    $ gt polecat send shop/Toast hello
    ! error: shop/Toast runs without a terminal
    ! hint: see what it prints with `gt polecat peek shop/Toast`
    [exit 1]
    ");
}

#[test]
fn a_worker_that_has_been_silent_for_too_long_needs_a_person() {
    let fleet = Fleet::new("echo hello; touch \"$HOME/ready\"; exec sleep 600");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_file("ready");
    let log = fs::read_dir(fleet.town.path(".gt/logs")).expect("there are logs").flatten().next().expect("one").path();
    let aged = Command::new("touch").args(["-d", "3 hours ago"]).arg(log).status().expect("touch is there");
    assert!(aged.success());
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json()[0]["state"], "stalled");
    snapshot!(fleet.town.gt(["status"]).to_string(), @r"
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    1 agent running, no cap

    Needs a person (1)
      ! ● shop/Toast  stalled   gt-a Do gt-a  since [TIME]

    Running (1)
      ● shop/Toast  stalled   gt-a Do gt-a  since [TIME]

    Nothing is scheduled.

    Convoys (1)
      hq-cv-id01  0/1 done  Work: Do gt-a
    ");
}

#[test]
fn prime_tells_the_agent_all_it_has_to_know_and_hook_what_it_holds() {
    let fleet = Fleet::with_cap(5, "gt prime; gt hook; gt done > /dev/null; gt hook");
    fleet.hold_lines(&[
        r#"{"id":"gt-a","title":"Fix the login","description":"It fails on Mondays.","acceptance_criteria":"It works."}"#,
    ]);
    fleet.town.gt(["sling", "gt-a", "--args", "mind the tests", "--var", "browser=all"]).success();
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    snapshot!(fleet.town.gt(["polecat", "logs", "Toast"]).to_string(), @r#"
    $ gt polecat logs Toast
    You are Toast, a worker in the rig shop. Your work is gt-a: Fix the login

    ## Description
    It fails on Mondays.

    ## Acceptance
    It works.

    ## Instructions
    mind the tests

    ## Variables
    browser=all

    ## Steps
    Work by the formula mol-polecat-work, in this order:

    ### 1 Read what is asked [read]
    `gt prime` shows your assignment, `gt show gt-a` the bead with its comments and what it depends on. Read both to the
    end, then what the repository says to newcomers: README, CONTRIBUTING, AGENTS.md or the like.
    Done when: You can say in one sentence when gt-a is done, and how one would see it.

    ### 2 Find out how it is now [understand]
    Look at the code before you change it: where the behaviour lives, what calls it, which tests hold it in place. For a
    fault, make it happen first. If somebody before you left a branch, see what of it can be used.
    Note: If the work is not what its title says, is done already, or needs a decision that is not yours, do not guess: `gt escalate "what you need"`.
    Needs: read

    ### 3 See that you start from a sound place [ready]
    `git status` is clean, and you are where your assignment says: on a branch that begins at main. Build and run
    the tests once before your first change, so that you know later what was yours.
    Note: Tests that fail before you begin: write it down with `gt create`, and go on if they are not in your way.
    Needs: understand

    ### 4 Do it: Fix the login [implement]
    The smallest change that does all of what is asked, in the style of the code around it. Leave alone what has nothing to do
    with gt-a; other work that you come across becomes a bead of its own (`gt create`). A new behaviour gets a test, a
    mended fault one that failed before.
    Needs: ready

    ### 5 Read your own change as a stranger would [review]
    Go through `git diff` line by line: leftovers, names, errors that are swallowed, cases that nobody thought of, documents that
    are no longer true. Mend what you find.
    Needs: implement

    ### 6 Show that it works [test]
    Run the formatter, the linter and the tests of the repository, and try the change the way a user would.
    Done when: Everything that passed before passes, and the new tests do too.
    Note: What fails is mended, not skipped.
    Needs: review

    ### 7 Commit [commit]
    Small commits that each say what is now so, and why; name gt-a in the message. Nothing uncommitted stays behind.
    Done when: `git status` is clean.
    Needs: test

    ### 8 Hand it over [hand-over]
    `gt done --note "what you did, in a line"`, then end your process. If it could not be done, say so:
    `gt done --status failed --note "why"`. Half of the work handed over as done costs more than none.
    Needs: commit

    ## How to work
    - You share this directory with others. Commit only what is yours.
    - `gt prime` shows this text again, `gt show gt-a` the bead.
    - When the work is done and committed: `gt done`.
    - When you cannot keep all of it in mind any longer: commit, then `gt handoff "what the next worker has to know"`.
    - When it cannot be done: `gt done --status failed --note "why"`. To put it off: `gt done --status deferred --note "why"`.
    - When you need a person: `gt escalate "what you need"`.
    - Then stop. Your process ends with your work.
    gt-a: Fix the login
    Nothing: gt-a is done.
    "#);
}

#[test]
fn the_second_attempt_is_told_that_there_was_a_first() {
    let fleet = Fleet::with_cap(5, "gt prime | sed -n '/Before you/,/^$/p'; exit 1");
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.set("witness.redispatch_attempts", "1");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_events("bead.escalated", Some("gt-a"), 1);
    snapshot!(fleet.town.gt(["polecat", "logs", "Toast"]).to_string(), @r"
    $ gt polecat logs Toast
    ## Before you
    Once before a worker ended without finishing this.
    ");
}

#[test]
fn the_agent_finds_itself_in_its_environment_and_nothing_that_misleads() {
    let fleet = Fleet::new("env | grep -E '^(GT_|BD_|KEY|CLAUDE)' | sort; pwd; touch \"$HOME/ready\"; exec sleep 600");
    fleet.set("agents.scripted.env", r#"{ KEY = "secret" }"#);
    fleet.hold(&["gt-a"]);
    fleet.town.call(["sling", "gt-a"]).env("CLAUDECODE", "1").run().success();
    fleet.await_file("ready");
    snapshot!(fleet.town.gt(["polecat", "logs", "Toast"]).to_string(), @r"
    $ gt polecat logs Toast
    BD_ACTOR=shop/polecats/Toast
    GT_ACTOR=shop/polecats/Toast
    GT_AGENT=scripted
    GT_BASE_BRANCH=main
    GT_BEAD=gt-a
    GT_BRANCH=
    GT_KEEPER=[TOWN]/.gt/keeper
    GT_POLECAT=Toast
    GT_RIG=shop
    GT_RUN=[RUN]
    GT_TOWN=[TOWN]
    KEY=secret
    [TOWN]/shop
    ");
}

#[test]
fn a_chain_of_beads_uses_one_worker_after_the_other_is_done() {
    let fleet = Fleet::with_cap(5, FINISHES);
    fleet.hold_lines(&[
        r#"{"id":"gt-a","title":"A"}"#,
        r#"{"id":"gt-b","title":"B","dependencies":[{"depends_on_id":"gt-a","type":"blocks"}]}"#,
        r#"{"id":"gt-c","title":"C","dependencies":[{"depends_on_id":"gt-b","type":"blocks"}]}"#,
        r#"{"id":"gt-d","title":"D","dependencies":[{"depends_on_id":"gt-c","type":"blocks"}]}"#,
    ]);
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c", "gt-d"]).success();
    fleet.start_daemon();
    fleet.until_done(&["gt-a", "gt-b", "gt-c", "gt-d"].map(str::to_owned));
    assert_eq!(fleet.starts(), ["gt-a", "gt-b", "gt-c", "gt-d"]);
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json().as_array().map(Vec::len), Some(1));
}

#[test]
fn the_status_of_an_idle_a_busy_and_a_paused_town_fits_on_one_screen() {
    let fleet = Fleet::with_cap(2, STAYS);
    let fresh = fleet.town.gt(["status"]);
    fleet.hold(&["gt-a", "gt-b", "gt-c"]);
    fleet.hold_lines(&[
        r#"{"id":"gt-d","title":"Do gt-d","dependencies":[{"depends_on_id":"gt-a","type":"blocks"}]}"#,
        r#"{"id":"gt-e","title":"Nobody has slung this"}"#,
    ]);
    let idle = fleet.town.gt(["status"]);
    fleet.town.gt(["sling", "gt-a", "gt-b", "gt-c", "gt-d"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", None, 2);
    let busy = fleet.town.gt(["status"]);
    fleet.town.gt(["scheduler", "pause", "--reason", "release day"]).success();
    let paused = fleet.town.gt(["status"]);
    snapshot!(session([fresh, idle, busy, paused]), @r"
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    0 of 2 agents running

    Nothing runs.

    Nothing is scheduled.
    $ gt status
    [TOWN]  no daemon: `gt daemon start`
    0 of 2 agents running

    Nothing runs.

    Nothing is scheduled. 4 beads are ready: `gt ready`, then `gt sling BEAD`.
    $ gt status
    [TOWN]  daemon runs (process [PID])
    2 of 2 agents running

    Running (2)
      ● shop/Ember  working   gt-b Do gt-b  since [TIME]
      ● shop/Toast  working   gt-a Do gt-a  since [TIME]

    Waiting (2)
      ○ gt-c Do gt-c
          all 2 slots of the town are taken by shop/Toast, shop/Ember
      ⏸ gt-d Do gt-d
          it waits for gt-a (Do gt-a), which is in_progress

    Convoys (1)
      hq-cv-id01  0/4 done  Work: Do gt-a and 3 more
    $ gt status
    [TOWN]  daemon runs (process [PID])
    2 of 2 agents running
    PAUSED by tester since [TIME]: release day

    Running (2)
      ● shop/Ember  working   gt-b Do gt-b  since [TIME]
      ● shop/Toast  working   gt-a Do gt-a  since [TIME]

    Waiting (2)
      ○ gt-c Do gt-c
          dispatch is paused by tester since [TIME]: release day; `gt scheduler resume` goes on
      ⏸ gt-d Do gt-d
          it waits for gt-a (Do gt-a), which is in_progress

    Convoys (1)
      hq-cv-id01  0/4 done  Work: Do gt-a and 3 more
    ");
    let json = fleet.town.gt(["status", "--json"]).json();
    assert_eq!(
        (&json["active_polecats"], &json["max_polecats"], &json["paused"]),
        (&2.into(), &2.into(), &true.into())
    );
    assert_eq!(json["waiting"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_long_queue_does_not_fill_the_screen() {
    let fleet = Fleet::with_cap(1, STAYS);
    let ids: Vec<String> = (10..40).map(|n| format!("gt-{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    fleet.hold(&ids);
    fleet.town.call(["sling"].iter().chain(&ids).copied()).run().success();
    let status = fleet.town.gt(["status"]);
    assert!(status.stdout.lines().count() < 40, "{status}");
    assert!(status.stdout.contains("and 20 more"), "{status}");
}

#[test]
fn a_dry_sling_names_the_worker_and_makes_none() {
    let fleet = Fleet::new(STAYS);
    fleet.hold(&["gt-a"]);
    let before = fleet.town.state();
    let answer = fleet.town.gt(["sling", "gt-a", "--dry-run"]);
    assert_eq!(fleet.town.state(), before);
    assert_eq!(count(&fleet.town.events(), "bead.hooked", None), 0);
    assert!(fleet.agents().is_empty());
    assert!(answer.stdout.contains("Toast"), "{answer}");
    assert!(answer.stdout.starts_with("Dry run, nothing is changed. This would happen:\n"), "{answer}");
}
