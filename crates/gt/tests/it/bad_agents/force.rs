//! `--force` on a bead that somebody works on: the old process is seen to end before the new one starts. // SPEC P3

use std::fs;

use super::{STAYS, event, run_of};
use crate::fleet::{Fleet, count};
use crate::town::{session, snapshot};

/// Notes whether another agent of this town lives when it starts, and ends slowly when told to.
const WATCHFUL: &str = "others=$(ls \"$HOME\"/live-* 2>/dev/null | wc -l); echo \"others $others\" >> \"$HOME/trace\"
touch \"$HOME/live-$$\"; touch \"$HOME/ready\"
trap 'sleep 0.3; rm \"$HOME/live-$$\"; exit 0' TERM
while :; do sleep 0.05; done";

fn others(fleet: &Fleet) -> Vec<String> {
    let trace = fs::read_to_string(fleet.home("trace")).unwrap_or_default();
    trace.lines().filter_map(|line| line.strip_prefix("others ")).map(str::to_owned).collect()
}

fn assert_one_after_the_other(fleet: &Fleet, old: (&str, u32)) {
    let events = fleet.until_events("run.started", Some("gt-a"), 2);
    let at = |kind: &str, run: &str| {
        let is_meant = |event: &&serde_json::Value| event["type"] == kind && event["run"] == run;
        events.iter().position(|event| is_meant(&event)).unwrap_or_else(|| panic!("no {kind} of {run}"))
    };
    let new = event(&events, "run.started", "gt-a")["run"].as_str().expect("a run").to_owned();
    assert!(at("run.ended", old.0) < at("bead.hooked", &new), "the old run ended before the new claim");
    fleet.await_trace("others", 2);
    assert_eq!(others(fleet), ["0", "0"], "the old process was gone when the new one started");
    assert!(fleet.agents().iter().all(|agent| agent.run == new && agent.pid != old.1), "{:?}", fleet.agents());
}

#[test]
fn with_a_daemon_the_old_process_ends_before_the_new_one_starts() {
    let fleet = Fleet::with_cap(5, WATCHFUL);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.await_file("ready");
    fleet.until_events("run.started", Some("gt-a"), 1);
    let (run, pid) = run_of(&fleet);
    let answer = fleet.town.gt(["sling", "gt-a", "--force"]);
    assert_one_after_the_other(&fleet, (&run, pid));
    snapshot!(answer.to_string().replace(&run, "[OLD]"), @r"
    $ gt sling gt-a --force
    ✓ Scheduled gt-a → shop (context: gt-wisp-id01)
        its earlier run [OLD] has to end first
    Tracked by convoy hq-cv-id02.
    ");
}

#[test]
fn without_a_daemon_the_command_itself_sees_the_old_process_end() {
    let fleet = Fleet::new(WATCHFUL);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_file("ready");
    let (run, pid) = run_of(&fleet);
    let answer = fleet.town.gt(["sling", "gt-a", "--force"]);
    assert_one_after_the_other(&fleet, (&run, pid));
    snapshot!(answer.to_string(), @r"
    $ gt sling gt-a --force
    ▶ Toast is on it: gt-a Do gt-a (shop)
    Tracked by convoy hq-cv-id01.
    ");
}

#[test]
fn what_a_forced_out_run_says_changes_nothing() {
    let fleet = Fleet::new(STAYS);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let (old, _) = run_of(&fleet);
    fleet.town.gt(["sling", "gt-a", "--force"]).success();
    let (new, _) = run_of(&fleet);
    assert_ne!(old, new);
    let before = fleet.town.state();
    let say = |words: &[&str]| fleet.town.call(words.iter().copied()).env("GT_RUN", &old).env("GT_BEAD", "gt-a").run();
    let answers = [say(&["done"]), say(&["escalate", "help"])];
    assert_eq!(fleet.town.state(), before);
    assert_eq!(fleet.town.gt(["show", "gt-a", "--json"]).json()["status"], "in_progress");
    assert_eq!(count(&fleet.town.events(), "run.ended", Some("gt-a")), 1);
    snapshot!(session(answers), @r"
    $ gt done
    ! error: run [RUN] has ended: nothing that it says counts any more
    ! hint: stop here; another run has the work, or it is done
    [exit 1]
    $ gt escalate help
    ! error: run [RUN] has ended: nothing that it says counts any more
    ! hint: stop here; another run has the work, or it is done
    [exit 1]
    ");
}

#[test]
fn force_takes_a_bead_from_a_person_too() {
    let fleet = Fleet::new(STAYS);
    fleet.hold_lines(&[r#"{"id":"gt-a","title":"Mine","status":"in_progress","assignee":"ann"}"#]);
    let refused = fleet.town.refused(["sling", "gt-a"]);
    let forced = fleet.town.gt(["sling", "gt-a", "--force"]);
    assert_eq!(fleet.town.gt(["show", "gt-a", "--json"]).json()["assignee"], "shop/polecats/Toast");
    snapshot!(refused + &forced.to_string(), @r"
    $ gt sling gt-a
    ! error: gt-a is already on the hook of ann
    ! hint: see how it goes with `gt explain gt-a`, or take it away with `gt sling gt-a --force`
    [exit 1]
    $ gt sling gt-a --force
    ▶ Toast is on it: gt-a Mine (shop)
    Tracked by convoy hq-cv-id01.
    ");
}
