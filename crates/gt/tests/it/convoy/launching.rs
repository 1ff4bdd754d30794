//! Launching: whatever form the argument has, all of the first wave goes out. // SPEC C3, C6

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use crate::convoy_staging::{CHAIN, CHECKOUT, bead, stage};
use crate::fleet::{FINISHES, Fleet, count};
use crate::town::snapshot;

/// An agent that works until a file is there.
const WAITS: &str = "while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done; gt done";

/// Four tasks at once and one after them, below an epic.
fn hold_fan(fleet: &Fleet) {
    let mut lines = vec![bead("gt-e", "epic", "open", &[])];
    let fan = ["gt-a", "gt-b", "gt-c", "gt-d"];
    lines.extend(fan.map(|id| bead(id, "task", "open", &[("parent-child", "gt-e")])));
    let edges: Vec<(&str, &str)> = fan.iter().map(|id| ("blocks", *id)).chain([("parent-child", "gt-e")]).collect();
    lines.push(bead("gt-z", "task", "open", &edges));
    fleet.hold_lines(&lines.iter().map(String::as_str).collect::<Vec<_>>());
}

/// What became of each bead of the first wave.
fn outcomes(launched: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let mut all: Vec<(String, String)> = launched["results"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (text(&one["bead"]), text(&one["outcome"])))
        .collect();
    all.sort();
    all
}

fn four_times(outcome: &str) -> Vec<(String, String)> {
    ["gt-a", "gt-b", "gt-c", "gt-d"].map(|id| (id.to_owned(), outcome.to_owned())).to_vec()
}

/// The three forms that the argument of a launch can have.
fn forms(fleet: &Fleet) -> Vec<Vec<String>> {
    let convoy = stage(&fleet.town, &["gt-e"])["convoy_id"].as_str().expect("a convoy").to_owned();
    let tasks = ["gt-a", "gt-b", "gt-c", "gt-d", "gt-z"].map(str::to_owned).to_vec();
    vec![vec!["gt-e".to_owned()], tasks, vec![convoy]]
}

#[test]
fn every_form_of_launch_starts_the_whole_first_wave_at_once() {
    for form in 0..3 {
        let fleet = Fleet::new(FINISHES);
        hold_fan(&fleet);
        let words = forms(&fleet).swap_remove(form);
        let call = ["convoy", "launch", "--json"].into_iter().map(str::to_owned).chain(words);
        let launched = fleet.town.call(call).run().json();
        assert_eq!(launched["status"], "open", "{launched}");
        assert_eq!(outcomes(&launched), four_times("dispatched"), "{launched}");
        fleet.until_events("run.reported", None, 4);
        let mut starts = fleet.starts();
        starts.sort();
        assert_eq!(starts[..4], ["gt-a", "gt-b", "gt-c", "gt-d"]);
        let events = fleet.town.events();
        assert_eq!(count(&events, "convoy.launched", launched["convoy_id"].as_str()), 1);
        // The convoy that is launched is the only one that tracks them.
        let lines = fleet.town.export();
        let n_open =
            lines.lines().filter(|line| line.contains(r#""issue_type":"convoy""#) && !line.contains("staged:"));
        assert_eq!(n_open.count(), 1, "{lines}");
    }
}

#[test]
fn every_form_of_launch_schedules_the_whole_first_wave_under_a_cap() {
    for form in 0..3 {
        let fleet = Fleet::with_cap(8, FINISHES);
        hold_fan(&fleet);
        let words = forms(&fleet).swap_remove(form);
        let call = ["convoy", "launch", "--json"].into_iter().map(str::to_owned).chain(words);
        let launched = fleet.town.call(call).run().json();
        assert_eq!(outcomes(&launched), four_times("scheduled"), "{launched}");
        assert_eq!(fleet.starts(), [""; 0], "under a cap the daemon starts");
        fleet.start_daemon();
        let four = ["gt-a", "gt-b", "gt-c", "gt-d"].map(str::to_owned);
        fleet.until("four are closed", |events| four.iter().all(|id| count(events, "bead.closed", Some(id)) == 1));
        let mut starts = fleet.starts();
        starts.truncate(4);
        starts.sort();
        assert_eq!(starts, four);
    }
}

#[test]
fn staging_and_launching_are_one_call_too() {
    let fleet = Fleet::new(WAITS);
    fleet.hold_lines(CHAIN);
    snapshot!(fleet.town.gt(["convoy", "stage", "gt-e", "--launch"]).to_string(), @"
    $ gt convoy stage gt-e --launch
    ◇ gt-e  Three steps  epic
    ├─ ○ gt-a  One  wave 1
    ├─ ⏸ gt-b  Two  wave 2  ← gt-a
    └─ ⏸ gt-c  Three  wave 3  ← gt-b

    Wave     ID    Title  Rig   Blocked by
    1      ○ gt-a  One    shop
    2      ⏸ gt-b  Two    shop  gt-a
    3      ⏸ gt-c  Three  shop  gt-b

    3 tasks across 3 waves (max parallelism: 1 in wave 1)

    ✓ Launched hq-cv-id01 Three steps
    ▶ Toast is on it: gt-a One (shop)
    2 more tasks in later waves; they start as they become ready. `gt convoy status hq-cv-id01 --watch` shows how it goes.
    ");
    fleet.open_gate("go");
}

#[test]
fn what_is_held_back_otherwise_is_scheduled_with_its_reason() {
    let fleet = Fleet::new(WAITS);
    fleet.hold_lines(&[
        r#"{"id":"gt-x","title":"First of all"}"#,
        r#"{"id":"gt-e","title":"Part","issue_type":"epic","dependencies":[{"depends_on_id":"gt-x","type":"blocks"}]}"#,
        r#"{"id":"gt-a","title":"Below it","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"}]}"#,
        r#"{"id":"gt-b","title":"Later","defer_until":"2999-01-01T00:00:00Z"}"#,
        r#"{"id":"gt-c","title":"Now"}"#,
        r#"{"id":"gt-d","title":"Outside","dependencies":[{"depends_on_id":"gt-x","type":"blocks"}]}"#,
    ]);
    let launched = fleet.town.gt(["convoy", "launch", "gt-a", "gt-b", "gt-c", "gt-d", "--json"]).json();
    let of = |bead: &str| {
        let results = launched["results"].as_array().expect("a list");
        let one = results.iter().find(|one| one["bead"] == bead).expect("it is in the first wave");
        format!("{} {}", one["outcome"].as_str().unwrap_or("?"), one["reason"].as_str().unwrap_or("-"))
    };
    assert_eq!(of("gt-c"), "dispatched -");
    assert!(of("gt-a").starts_with("scheduled ") && of("gt-a").contains("gt-e"), "{launched}");
    assert!(of("gt-b").starts_with("scheduled ") && of("gt-b").contains("2999"), "{launched}");
    assert!(of("gt-d").starts_with("scheduled ") && of("gt-d").contains("gt-x"), "{launched}");
    let convoy = launched["convoy_id"].as_str().expect("a convoy");
    let status = fleet.town.gt(["convoy", "status", convoy]);
    fleet.open_gate("go");
    let ages = (0..60).map(|age| format!("(shop), {age}s"));
    let text = ages.fold(status.to_string(), |text, age| text.replace(&age, "(shop), [AGE]"));
    snapshot!(text, @"
    $ gt convoy status hq-cv-id01
    hq-cv-id01 · Below it and 3 more  open
    ▓▓▓▓▓▓▓▓························  0/4 done · 1 running · 3 waiting

    Wave 1 (4)
      ⏸ gt-a  Below it  its parent gt-e (Part) is blocked
      ⏸ gt-b  Later  it is deferred until [TIME]
      ▶ gt-c  Now  Toast (shop), [AGE]
      ⏸ gt-d  Outside  ← gt-x
    ");
}

#[test]
fn one_refusal_does_not_stop_the_others() {
    let fleet = Fleet::new(WAITS);
    fleet.hold(&["gt-a", "gt-b", "gt-c"]);
    fleet.town.gt(["bead", "update", "gt-b", "--claim"]).success();
    let launched = fleet.town.gt(["convoy", "launch", "gt-a", "gt-b", "gt-c", "--json"]).json();
    let expected = [("gt-a", "dispatched"), ("gt-b", "skipped"), ("gt-c", "dispatched")];
    assert_eq!(outcomes(&launched), expected.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())));
    fleet.open_gate("go");
}

/// SPEC D5: what is assigned to a person is his, until somebody names that very bead.
#[test]
fn what_a_person_has_been_given_is_left_to_him_unless_it_is_named() {
    let fleet = Fleet::new(WAITS);
    hold_fan(&fleet);
    fleet.town.gt(["bead", "update", "gt-b", "--assignee", "ann"]).success();
    let launched = fleet.town.gt(["convoy", "launch", "gt-e", "--json"]).json();
    let expected = [("gt-a", "dispatched"), ("gt-b", "skipped"), ("gt-c", "dispatched"), ("gt-d", "dispatched")];
    assert_eq!(outcomes(&launched), expected.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())));
    let left = launched["results"].as_array().and_then(|all| all.iter().find(|one| one["bead"] == "gt-b"));
    let reason = left.expect("it is listed")["reason"].as_str().expect("a reason");
    assert_eq!(reason, "gt-b is assigned to ann");
    let bead = fleet.town.gt(["show", "gt-b", "--json"]).json();
    assert_eq!((&bead["status"], &bead["assignee"]), (&"open".into(), &"ann".into()));
    fleet.open_gate("go");

    let fleet = Fleet::new(WAITS);
    hold_fan(&fleet);
    fleet.town.gt(["bead", "update", "gt-b", "--assignee", "ann"]).success();
    let convoy = stage(&fleet.town, &["gt-e"])["convoy_id"].as_str().expect("a convoy").to_owned();
    let launched = fleet.town.gt(["convoy", "launch", &convoy, "--json"]).json();
    assert_eq!(outcomes(&launched)[1], ("gt-b".to_owned(), "skipped".to_owned()));
    fleet.open_gate("go");

    let fleet = Fleet::new(WAITS);
    hold_fan(&fleet);
    fleet.town.gt(["bead", "update", "gt-b", "--assignee", "ann"]).success();
    let launched = fleet.town.gt(["convoy", "launch", "gt-a", "gt-b", "--json"]).json();
    assert_eq!(outcomes(&launched)[1], ("gt-b".to_owned(), "dispatched".to_owned()));
    fleet.open_gate("go");
}

#[test]
fn a_launch_of_which_nothing_was_taken_says_so() {
    let fleet = Fleet::new(FINISHES);
    hold_fan(&fleet);
    fleet.town.gt(["rig", "park", "shop"]).success();
    let staged = stage(&fleet.town, &["gt-e"])["convoy_id"].as_str().expect("a convoy").to_owned();
    let refused = fleet.town.gt(["convoy", "launch", &staged, "--force"]);
    let again = fleet.town.gt(["convoy", "status", &staged]);
    snapshot!(refused.to_string(), @"
    $ gt convoy launch hq-cv-id01 --force
    ✓ Launched hq-cv-id01 Do it
    ✗ Refused gt-a: rig `shop` is parked, and takes no work
    ✗ Refused gt-b: rig `shop` is parked, and takes no work
    ✗ Refused gt-c: rig `shop` is parked, and takes no work
    ✗ Refused gt-d: rig `shop` is parked, and takes no work
    4 beads: 4 refused.
    ! error: convoy hq-cv-id01 is open, but nothing of its first wave was taken
    !   caused by: gt-a: rig `shop` is parked, and takes no work
    !   caused by: gt-b: rig `shop` is parked, and takes no work
    !   caused by: gt-c: rig `shop` is parked, and takes no work
    !   caused by: gt-d: rig `shop` is parked, and takes no work
    ! hint: mend that, and it goes on by itself; `gt convoy cancel hq-cv-id01` withdraws it
    [exit 1]
    ");
    assert!(again.stdout.contains("open"), "{again}");
    let fleet = Fleet::new(FINISHES);
    hold_fan(&fleet);
    fleet.town.gt(["rig", "park", "shop"]).success();
    let refused = fleet.town.gt(["convoy", "launch", "gt-e", "--force", "--json"]);
    let answer: Value = serde_json::from_str(&refused.stdout).expect("JSON");
    assert_eq!((refused.code, outcomes(&answer)), (1, four_times("refused")), "{refused}");
    let error: Value = serde_json::from_str(&refused.stderr).expect("JSON");
    assert!(error["error"]["message"].is_string(), "{error}");
    // What was left to a person is no fault.
    let fleet = Fleet::new(FINISHES);
    fleet.hold_lines(CHAIN);
    fleet.town.gt(["bead", "update", "gt-a", "--assignee", "ann"]).success();
    let left = fleet.town.gt(["convoy", "launch", "gt-e"]);
    snapshot!(left.to_string(), @"
    $ gt convoy launch gt-e
    ✓ Launched hq-cv-id01 Three steps
    ! Skipped gt-a: gt-a is assigned to ann
    Nothing of it was taken. `gt convoy status hq-cv-id01` shows it.
    ");
}

#[test]
fn warnings_need_force() {
    let fleet = Fleet::new(WAITS);
    fleet.hold_lines(CHECKOUT);
    let epic = fleet.town.refused(["convoy", "launch", "gt-e"]);
    let convoy = stage(&fleet.town, &["gt-e"])["convoy_id"].as_str().expect("a convoy").to_owned();
    let told = epic + &fleet.town.refused(["convoy", "launch", &convoy]);
    fleet.town.gt(["convoy", "launch", &convoy, "--force"]).success();
    fleet.open_gate("go");
    snapshot!(told, @"
    $ gt convoy launch gt-e
    ! error: epic gt-e has 3 warnings
    ! hint: see them with `gt convoy stage gt-e`, or launch all the same: `gt convoy launch gt-e --force`
    [exit 1]
    $ gt convoy launch hq-cv-id01
    ! error: convoy hq-cv-id01 has 3 warnings
    ! hint: see them with `gt convoy stage hq-cv-id01`, or launch all the same: `gt convoy launch hq-cv-id01 --force`
    [exit 1]
    ");
}

#[test]
fn a_polecat_launches_nothing() {
    let fleet = Fleet::new(FINISHES);
    fleet.hold_lines(CHAIN);
    let answer = fleet.town.call(["convoy", "launch", "gt-e"]).env("GT_RUN", "some-run").run();
    assert!(answer.code == 1 && answer.stderr.contains("a polecat does not sling work"), "{answer}");
}

#[test]
fn status_shows_who_is_on_it_and_watching_ends_with_the_convoy() {
    let fleet = Fleet::new(WAITS);
    fleet.hold_lines(CHAIN);
    let launched = fleet.town.gt(["convoy", "launch", "gt-e", "--json"]).json();
    let convoy = launched["convoy_id"].as_str().expect("a convoy");
    let status = fleet.town.gt(["convoy", "status", convoy, "--json"]).json();
    let first = &status["tracked"][0];
    assert_eq!((&first["worker"], &first["state"]), (&"shop/Toast".into(), &"running".into()));
    assert_eq!((&first["wave"], &first["status"]), (&1.into(), &"in_progress".into()));
    let mut watching = fleet.town.call(["convoy", "status", convoy, "--watch", "--json"]).spawn();
    let mut lines = BufReader::new(watching.stdout.take().expect("its output is a pipe")).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON") };
    assert_eq!(next()["completed"], 0);
    fleet.town.gt(["close", "gt-c"]).success();
    assert_eq!(next()["completed"], 1);
    fleet.town.gt(["bead", "create", "Something else", "--rig", "shop"]).success();
    fleet.town.gt(["close", convoy]).success();
    assert_eq!(next()["status"], "closed", "what has nothing to do with it is not told");
    assert!(watching.wait().expect("it can be waited for").success());
    fleet.open_gate("go");
}

#[test]
fn who_watches_as_text_gets_a_block_for_each_change() {
    let fleet = Fleet::new(FINISHES);
    fleet.hold_lines(CHAIN);
    let staged = stage(&fleet.town, &["gt-e"]);
    let convoy = staged["convoy_id"].as_str().expect("a convoy");
    let watching = fleet.town.call(["convoy", "status", convoy, "--watch"]).spawn();
    for bead in ["gt-a", "gt-b", "gt-c", convoy] {
        fleet.town.gt(["close", bead]).success();
    }
    let output = watching.wait_with_output().expect("it can be waited for");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && text.contains("3/3 done") && text.contains("closed"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}
