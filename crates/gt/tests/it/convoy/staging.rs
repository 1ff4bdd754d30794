//! Staging: what is stored and what not, staging again, and what is refused. // SPEC C2

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet};
use crate::town::{Town, session, snapshot};

/// An epic with a part that is one too: a diamond, something gated, something done, something on its own.
pub(crate) const CHECKOUT: &[&str] = &[
    r#"{"id":"gt-e","title":"Checkout rewrite","issue_type":"epic"}"#,
    r#"{"id":"gt-s","title":"Payments","issue_type":"epic","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"}]}"#,
    r#"{"id":"gt-a","title":"Write the parser","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"}]}"#,
    r#"{"id":"gt-b","title":"Use the parser","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"},{"depends_on_id":"gt-a","type":"blocks"}]}"#,
    r#"{"id":"gt-c","title":"Card payments","dependencies":[{"depends_on_id":"gt-s","type":"parent-child"},{"depends_on_id":"gt-a","type":"blocks"}]}"#,
    r#"{"id":"gt-d","title":"Refunds","dependencies":[{"depends_on_id":"gt-s","type":"parent-child"},{"depends_on_id":"gt-c","type":"blocks"},{"depends_on_id":"gt-b","type":"blocks"}]}"#,
    r#"{"id":"gt-f","title":"Which provider?","issue_type":"decision","dependencies":[{"depends_on_id":"gt-s","type":"parent-child"}]}"#,
    r#"{"id":"gt-g","title":"Sandbox","dependencies":[{"depends_on_id":"gt-s","type":"parent-child"},{"depends_on_id":"gt-f","type":"blocks"}]}"#,
    r#"{"id":"gt-h","title":"Old tables","status":"closed","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"}]}"#,
    r#"{"id":"gt-i","title":"Docs page","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"}]}"#,
];

/// A chain of three, in which nothing is odd.
pub(crate) const CHAIN: &[&str] = &[
    r#"{"id":"gt-e","title":"Three steps","issue_type":"epic"}"#,
    r#"{"id":"gt-a","title":"One","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"}]}"#,
    r#"{"id":"gt-b","title":"Two","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"},{"depends_on_id":"gt-a","type":"blocks"}]}"#,
    r#"{"id":"gt-c","title":"Three","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"},{"depends_on_id":"gt-b","type":"blocks"}]}"#,
];

/// One line of a file of beads.
pub(crate) fn bead(id: &str, kind: &str, status: &str, edges: &[(&str, &str)]) -> String {
    let edge = |(kind, target): &(&str, &str)| format!(r#"{{"depends_on_id":"{target}","type":"{kind}"}}"#);
    let edges = edges.iter().map(edge).collect::<Vec<_>>().join(",");
    format!(r#"{{"id":"{id}","title":"Do it","issue_type":"{kind}","status":"{status}","dependencies":[{edges}]}}"#)
}

pub(crate) fn stage(town: &Town, words: &[&str]) -> Value {
    town.call(["convoy", "stage", "--json"].iter().chain(words).copied()).run().json()
}

fn id_of(staged: &Value) -> String {
    staged["convoy_id"].as_str().expect("a convoy").to_owned()
}

fn tracked(town: &Town, convoy: &str) -> Vec<String> {
    let status = town.gt(["convoy", "status", convoy, "--json"]).json();
    let ids = status["tracked"].as_array().expect("a list").iter();
    ids.map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

fn convoys(town: &Town) -> usize {
    town.export().lines().filter(|line| line.contains(r#""issue_type":"convoy""#)).count()
}

#[test]
fn the_answer_has_the_shape_that_scripts_rely_on() {
    let town = Town::holding(CHECKOUT);
    let staged = stage(&town, &["gt-e"]);
    assert_eq!(staged["status"], "staged:warnings");
    assert!(id_of(&staged).starts_with("hq-cv-"));
    assert_eq!(staged["errors"], serde_json::json!([]));
    let categories: Vec<&str> =
        staged["warnings"].as_array().expect("a list").iter().filter_map(|one| one["category"].as_str()).collect();
    assert_eq!(categories, ["orphan", "missing-branch", "gated"]);
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&staged["warnings"][0]), ["bead_ids", "category", "message", "suggested_fix"]);
    assert_eq!(staged["warnings"][0]["bead_ids"], serde_json::json!(["gt-i"]));
    let waves = staged["waves"].as_array().expect("a list");
    let ids =
        |wave: &Value| wave["tasks"].as_array().expect("a list").iter().map(|t| t["id"].clone()).collect::<Vec<_>>();
    assert_eq!(waves.iter().map(ids).collect::<Vec<_>>(), [vec!["gt-a", "gt-i"], vec!["gt-b", "gt-c"], vec!["gt-d"]]);
    assert_eq!(waves[2]["number"], 3);
    let task = &waves[2]["tasks"][0];
    assert_eq!((&task["type"], &task["rig"], &task["title"]), (&"task".into(), &"shop".into(), &"Refunds".into()));
    assert_eq!(task["blocked_by"], serde_json::json!(["gt-b", "gt-c"]));
    assert_eq!(waves[0]["tasks"][0]["blocked_by"], serde_json::json!([]));
    assert_eq!(
        (&staged["gated"][0]["id"], &staged["gated"][0]["gated_by"]),
        (&"gt-g".into(), &serde_json::json!(["gt-f"]))
    );
    let root = &staged["tree"][0];
    assert_eq!((&root["id"], &root["type"], &root["status"]), (&"gt-e".into(), &"epic".into(), &"open".into()));
    assert_eq!(root["children"].as_array().map(Vec::len), Some(5));
}

#[test]
fn the_convoy_tracks_the_work_and_not_the_epics() {
    let town = Town::holding(CHECKOUT);
    let convoy = id_of(&stage(&town, &["gt-e"]));
    assert_eq!(tracked(&town, &convoy), ["gt-a", "gt-b", "gt-c", "gt-d", "gt-g", "gt-h", "gt-i"]);
    let status = town.gt(["convoy", "status", &convoy, "--json"]).json();
    assert_eq!((&status["completed"], &status["total"]), (&1.into(), &7.into()));
    assert_eq!((&status["status"], &status["owned"]), (&"staged:warnings".into(), &false.into()));
    let gated = &status["tracked"][4];
    assert_eq!((&gated["blocked"], &gated["wave"], &gated["worker"]), (&true.into(), &Value::Null, &Value::Null));
    town.assert_healthy();
}

#[test]
fn staging_again_updates_what_is_staged() {
    let town = Town::holding(CHAIN);
    let first = stage(&town, &["gt-e"]);
    assert_eq!((&first["status"], &first["restaged"]), (&"staged:ready".into(), &false.into()));
    let convoy = id_of(&first);
    town.gt(["bead", "update", "gt-c", "--parent", ""]).success();
    let extra = town.create(&["Four", "--rig", "shop", "--parent", "gt-e"]);
    let second = stage(&town, &["gt-e"]);
    assert_eq!((id_of(&second), &second["restaged"]), (convoy.clone(), &true.into()));
    assert_eq!(second["status"], "staged:warnings", "the new one is tied to nothing");
    assert_eq!(tracked(&town, &convoy), ["gt-a", "gt-b", &extra]);
    town.gt(["bead", "dep", "add", &extra, "gt-b"]).success();
    let third = stage(&town, &[&convoy]);
    assert_eq!((id_of(&third), &third["status"]), (convoy.clone(), &"staged:ready".into()));
    assert_eq!(tracked(&town, &convoy), ["gt-a", "gt-b", &extra]);
    let tasks = stage(&town, &["gt-a", "gt-b"]);
    assert_ne!(id_of(&tasks), convoy, "other work is another convoy");
    assert_eq!(id_of(&stage(&town, &["gt-b", "gt-a", "--title", "Anew"])), id_of(&tasks));
    assert_eq!(convoys(&town), 2);
    let staged: Vec<Value> = town.events().into_iter().filter(|event| event["type"] == "convoy.staged").collect();
    assert_eq!(staged.len(), 5);
    town.assert_healthy();
}

#[test]
fn what_is_launched_or_closed_is_never_staged_again() {
    let town = Town::holding(CHAIN);
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).success();
    let convoy = id_of(&stage(&town, &["gt-a"]));
    town.gt(["convoy", "launch", &convoy]).success();
    let again = town.refused(["convoy", "stage", &convoy]);
    let launched = town.refused(["convoy", "launch", &convoy]);
    let other = id_of(&stage(&town, &["gt-b"]));
    town.gt(["close", &other]).success();
    snapshot!(again + &launched + &town.refused(["convoy", "stage", &other]) + &town.refused(["convoy", "launch", &other]), @"
    $ gt convoy stage hq-cv-id01
    ! error: convoy hq-cv-id01 is already launched
    ! hint: see how far it has come with `gt convoy status hq-cv-id01`
    [exit 1]
    $ gt convoy launch hq-cv-id01
    ! error: convoy hq-cv-id01 is already launched
    ! hint: see how far it has come with `gt convoy status hq-cv-id01`
    [exit 1]
    $ gt convoy stage hq-cv-id02
    ! error: convoy hq-cv-id02 is closed
    ! hint: see what was in it with `gt convoy status hq-cv-id02`
    [exit 1]
    $ gt convoy launch hq-cv-id02
    ! error: convoy hq-cv-id02 is closed
    ! hint: see what was in it with `gt convoy status hq-cv-id02`
    [exit 1]
    ");
}

#[test]
fn an_epic_that_is_under_way_is_not_staged_beside_itself() {
    let town = Town::holding(CHAIN);
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).success();
    town.gt(["convoy", "launch", "gt-e"]).success();
    snapshot!(town.refused(["convoy", "stage", "gt-e"]), @"
    $ gt convoy stage gt-e
    ! error: epic gt-e is already launched, as convoy hq-cv-id01
    ! hint: see how far it has come with `gt convoy status hq-cv-id01`
    [exit 1]
    ");
}

#[test]
fn errors_are_told_and_nothing_is_stored() {
    let mut lines: Vec<&str> = CHAIN.to_vec();
    lines.push(r#"{"id":"zz-a","title":"Whose?","dependencies":[{"depends_on_id":"gt-e","type":"parent-child"}]}"#);
    let town = Town::holding(&lines);
    let before = town.state();
    let answer = town.gt(["convoy", "stage", "gt-e"]);
    let launched = town.gt(["convoy", "launch", "gt-e", "--force"]);
    let in_json = town.gt(["convoy", "stage", "gt-e", "--json"]);
    assert_eq!(before, town.state());
    let staged: Value = serde_json::from_str(&in_json.stdout).expect("JSON");
    assert_eq!((&staged["status"], &staged["convoy_id"]), (&"error".into(), &Value::Null));
    assert_eq!(staged["errors"][0]["category"], "no-rig");
    assert_eq!(staged["errors"][0]["bead_ids"], serde_json::json!(["zz-a"]));
    assert_eq!(in_json.code, 1);
    assert!(answer.stdout.contains("✗ no-rig: zz-a belongs to no rig"), "{answer}");
    snapshot!(launched.to_string(), @"
    $ gt convoy launch gt-e --force
    ! error: gt-e cannot be staged: 1 error, and nothing was stored
    !   caused by: zz-a belongs to no rig
    ! hint: mend it, as in `gt bead update zz-a --rig RIG`
    [exit 1]
    ");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let mut lines: Vec<&str> = CHECKOUT.to_vec();
    lines.push(r#"{"id":"gt-z","title":"Empty","issue_type":"epic"}"#);
    let town = Town::holding(&lines);
    let told: Vec<String> = [
        vec!["convoy", "stage", "gt-e", "gt-a"],
        vec!["convoy", "stage", "gt-e", "gt-s"],
        vec!["convoy", "stage", "gt-z"],
        vec!["convoy", "stage", "gt-h"],
        vec!["convoy", "stage", "gt-f"],
        vec!["convoy", "stage", "gt-nope"],
        vec!["convoy", "stage"],
        vec!["convoy", "status", "gt-a"],
    ]
    .into_iter()
    .map(|words| town.call(words).run().to_string())
    .collect();
    assert_eq!(convoys(&town), 0);
    snapshot!(told.concat(), @"
    $ gt convoy stage gt-e gt-a
    ! error: gt-e is an epic and gt-a is a task: only one kind goes into one call
    ! hint: stage them one after the other: `gt convoy stage gt-e`
    [exit 1]
    $ gt convoy stage gt-e gt-s
    ! error: only one epic goes into one call, not gt-e and gt-s
    ! hint: stage them one after the other: `gt convoy stage gt-e`
    [exit 1]
    $ gt convoy stage gt-z
    ! error: there is nothing left in epic gt-z that an agent could work on
    ! hint: see what there is to do with `gt ready`
    [exit 1]
    $ gt convoy stage gt-h
    ! error: there is nothing left in gt-h that an agent could work on
    ! hint: see what there is to do with `gt ready`
    [exit 1]
    $ gt convoy stage gt-f
    ! error: there is nothing left in gt-f that an agent could work on
    ! hint: see what there is to do with `gt ready`
    [exit 1]
    $ gt convoy stage gt-id01
    ! error: there is no bead `gt-id01`
    ! hint: `gt bead list --all` shows what there is
    [exit 3]
    $ gt convoy stage
    ! error: the following required arguments were not provided:
    !   <EPIC|CONVOY|TASK>...
    !
    ! Usage: gt convoy stage <EPIC|CONVOY|TASK>...
    !
    ! For more information, try '--help'.
    [exit 2]
    $ gt convoy status gt-a
    ! error: gt-a is a task, not a convoy
    ! hint: see it with `gt show gt-a`, or stage it: `gt convoy stage gt-a`
    [exit 1]
    ");
}

#[test]
fn a_dry_run_shows_all_and_stores_nothing() {
    let town = Town::holding(CHAIN);
    let before = town.state();
    let answer = town.gt(["convoy", "stage", "gt-e", "--dry-run"]);
    assert!(answer.success().stdout.contains("3 tasks across 3 waves"), "{answer}");
    town.gt(["convoy", "launch", "gt-e", "--dry-run"]).success();
    assert_eq!(before, town.state());
}

#[test]
fn a_staged_convoy_starts_nothing() {
    let fleet = Fleet::with_cap(5, FINISHES);
    fleet.hold_lines(CHAIN);
    let convoy = id_of(&stage(&fleet.town, &["gt-e"]));
    fleet.start_daemon();
    fleet.town.gt(["close", "gt-a"]).success();
    let other = fleet.town.create(&["Something else", "--rig", "shop"]);
    fleet.town.gt(["sling", &other]).success();
    fleet.until_done(std::slice::from_ref(&other)); // a pass has been made since
    assert_eq!(fleet.starts(), [other]);
    let status = fleet.town.gt(["convoy", "status", &convoy, "--json"]).json();
    assert_eq!((&status["status"], &status["completed"]), (&"staged:ready".into(), &1.into()));
}

#[test]
fn members_of_other_rigs_and_of_rigs_aside_are_told() {
    let town = Town::holding(CHAIN);
    town.repository("mill");
    town.gt(["rig", "add", "mill", "mill", "--prefix", "ml"]).success();
    let line = bead("ml-a", "task", "open", &[("blocks", "gt-a")]);
    town.call(["bead", "import", "-"]).stdin(line.as_bytes()).run().success();
    town.gt(["rig", "park", "mill"]).success();
    let staged = town.gt(["convoy", "stage", "gt-a", "gt-b", "ml-a"]);
    let launch = town.refused(["convoy", "launch", "gt-a", "gt-b", "ml-a"]);
    snapshot!(session([staged]) + &launch, @"
    $ gt convoy stage gt-a gt-b ml-a
    ○ gt-a  One  wave 1
    ├▶ ⏸ gt-b  Two  wave 2
    └▶ ⏸ ml-a  Do it  wave 2

    Wave     ID    Title  Rig   Blocked by
    1      ○ gt-a  One    shop
    2      ⏸ gt-b  Two    shop  gt-a
           ⏸ ml-a  Do it  mill  gt-a

    3 tasks across 2 waves (max parallelism: 2 in wave 2)

    Warnings
      ! blocked-rig: rig `mill` is parked, so ml-a will not start
          → gt rig unpark mill
      ! cross-rig: most tasks belong to rig `shop`, but ml-a belongs elsewhere (ml-a to `mill`)
          → gt bead update ml-a --rig shop

    ✓ Staged: hq-cv-id01 One and 2 more (staged:warnings)
      Nothing starts until `gt convoy launch hq-cv-id01 --force`.
    $ gt convoy launch gt-a gt-b ml-a
    ! error: the rig that the work belongs to takes no work: mill is parked
    ! hint: bring it back with `gt rig unpark mill`, or launch the rest: `gt convoy launch gt-a gt-b ml-a --force`
    [exit 1]
    ");
}
