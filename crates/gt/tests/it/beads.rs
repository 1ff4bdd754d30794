//! The main path of a bead's life, as a transcript. // SPEC B1–B7

use crate::town::{Town, session, snapshot};

/// Two beads of a kind that blocks, one that waits, one closed.
const GRAPH: [&str; 5] = [
    r#"{"id":"gt-e1","title":"The epic","issue_type":"epic","priority":1,"created_at":"2026-01-01T10:00:00Z","updated_at":"2026-01-01T10:00:00Z"}"#,
    r#"{"id":"gt-a1","title":"First","priority":0,"issue_type":"task","created_at":"2026-01-01T10:01:00Z","updated_at":"2026-01-01T10:01:00Z","dependencies":[{"depends_on_id":"gt-e1","type":"parent-child"}]}"#,
    r#"{"id":"gt-b2","title":"Second","issue_type":"bug","labels":["release"],"assignee":"ada","created_at":"2026-01-01T10:02:00Z","updated_at":"2026-01-01T10:02:00Z","dependencies":[{"depends_on_id":"gt-e1","type":"parent-child"},{"depends_on_id":"gt-a1","type":"blocks"}]}"#,
    r#"{"id":"gt-c3","title":"Third","issue_type":"task","created_at":"2026-01-01T10:03:00Z","updated_at":"2026-01-01T10:03:00Z","dependencies":[{"depends_on_id":"gt-b2","type":"blocks"},{"depends_on_id":"gt-a1","type":"tracks"}]}"#,
    r#"{"id":"gt-d4","title":"Done","status":"closed","closed_at":"2026-01-02T10:00:00Z","close_reason":"was easy","created_at":"2026-01-01T10:04:00Z","updated_at":"2026-01-02T10:00:00Z"}"#,
];

#[test]
fn from_create_to_close() {
    let town = Town::with_rig();
    let first = town.gt(["create", "Fix the login", "--rig", "shop", "-p", "1", "--type", "bug", "--label", "release"]);
    let id = town.gt(["ready", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let answers = [
        first,
        town.gt(["create", "Deploy", "--rig", "shop", "--blocked-by", &id, "--description", "to all\nof them"]),
        town.gt(["ready"]),
        town.gt(["bead", "blocked"]),
        town.gt(["bead", "list"]),
        town.gt(["close", &id, "--reason", "fixed in 3f2a"]),
        town.gt(["close", &id]),
        town.gt(["ready"]),
        town.gt(["bead", "list", "--all"]),
        town.gt(["show", &id]),
    ];
    snapshot!(session(answers), @r"
    $ gt create 'Fix the login' --rig shop -p 1 --type bug --label release
    Created gt-id01 in shop: Fix the login
    $ gt create Deploy --rig shop --blocked-by gt-id01 --description 'to all\nof them'
    Created gt-id02 in shop: Deploy
    $ gt ready
    ○ gt-id01  P1  bug  Fix the login
    $ gt bead blocked
    ⏸ gt-id02  P2  task  Deploy  ← gt-id01
    $ gt bead list
    ○ gt-id01  P1  bug   Fix the login
    ⏸ gt-id02  P2  task  Deploy  ← gt-id01
    $ gt close gt-id01 --reason 'fixed in 3f2a'
    gt-id01 closed.
    Now ready: gt-id02
    $ gt close gt-id01
    gt-id01 is closed already; nothing was changed.
    $ gt ready
    ○ gt-id02  P2  task  Deploy
    $ gt bead list --all
    ✓ gt-id01  P1  bug   Fix the login
    ○ gt-id02  P2  task  Deploy
    $ gt show gt-id01
    ✓ gt-id01 · Fix the login
      status      closed
      type        bug
      priority    P1
      rig         shop
      labels      release
      dependents  1
      created     [TIME] by tester
      updated     [TIME]
      closed      [TIME]
      reason      fixed in 3f2a
    ");
}

#[test]
fn what_was_closed_or_deleted_comes_back() {
    let town = Town::with_rig();
    let id = town.create(&["Fix the login", "--rig", "shop"]);
    let answers = [
        town.gt(["close", &id]),
        town.gt(["bead", "reopen", &id]),
        town.gt(["bead", "reopen", &id]),
        town.gt(["bead", "delete", &id, "--reason", "written twice"]),
        town.gt(["explain", &id]),
        town.gt(["close", &id]),
        town.gt(["bead", "list", "--all"]),
        town.gt(["bead", "reopen", &id]),
        town.gt(["ready"]),
    ];
    let events: Vec<String> = town.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(events[3..], ["bead.closed", "bead.reopened", "bead.deleted", "bead.reopened"]);
    snapshot!(session(answers), @r"
    $ gt close gt-id01
    gt-id01 closed.
    $ gt bead reopen gt-id01
    gt-id01 reopened.
    $ gt bead reopen gt-id01
    gt-id01 is open already; nothing was changed.
    $ gt bead delete gt-id01 --reason 'written twice'
    gt-id01 deleted.
    $ gt explain gt-id01
    gt-id01 is done:
      - it was deleted: written twice
    $ gt close gt-id01
    ! error: gt-id01 is deleted
    ! hint: bring it back with `gt bead reopen gt-id01`
    [exit 1]
    $ gt bead list --all
    ✗ gt-id01  P2  task  Fix the login
    $ gt bead reopen gt-id01
    gt-id01 reopened.
    $ gt ready
    ○ gt-id01  P2  task  Fix the login
    ");
}

#[test]
fn the_reason_of_a_deletion_is_in_the_log() {
    let town = Town::holding(&GRAPH);
    town.gt(["bead", "delete", "gt-a1", "--reason", "written twice"]).success();
    let last = town.events().pop().unwrap();
    assert_eq!((&last["type"], &last["data"]["reason"]), (&"bead.deleted".into(), &"written twice".into()));
}

#[test]
fn a_graph_is_listed_drawn_and_explained() {
    let town = Town::holding(&GRAPH);
    let answers = [
        town.gt(["bead", "list", "--all"]),
        town.gt(["bead", "dep", "tree", "gt-e1"]),
        town.gt(["bead", "dep", "tree", "gt-c3"]),
        town.gt(["show", "gt-b2"]),
        town.gt(["explain", "gt-c3"]),
        town.gt(["explain", "gt-a1"]),
        town.gt(["explain", "gt-e1"]),
        town.gt(["explain", "gt-d4"]),
        town.gt(["explain", "gt-c3", "--json"]),
        town.gt(["rig", "park", "shop"]),
        town.gt(["explain", "gt-a1"]),
        town.gt(["close", "gt-a1", "gt-b2"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt bead list --all
    ○ gt-a1  P0  task  First
    ○ gt-e1  P1  epic  The epic
    ⏸ gt-b2  P2  bug   Second  @ada  ← gt-a1
    ⏸ gt-c3  P2  task  Third  ← gt-b2
    ✓ gt-d4  P2  task  Done
    $ gt bead dep tree gt-e1
    ○ gt-e1  The epic
    ├─ ○ gt-a1  First
    └─ ⏸ gt-b2  Second
       └─ ○ [blocks] gt-a1  First (shown above)
    $ gt bead dep tree gt-c3
    ⏸ gt-c3  Third
    └─ ⏸ [blocks] gt-b2  Second
       └─ ○ [blocks] gt-a1  First
    $ gt show gt-b2
    ⏸ gt-b2 · Second
      status      open, blocked
      type        bug
      priority    P2
      rig         shop
      assignee    ada
      labels      release
      blocked by  gt-a1
      depends on  gt-a1
      part of     gt-e1
      dependents  1
      created     [TIME]
      updated     [TIME]
    $ gt explain gt-c3
    gt-c3 is blocked:
      - it waits for gt-b2 (Second), which is open
    $ gt explain gt-a1
    gt-a1 is ready:
      - it is ready; nothing holds it back, and nobody has taken it: `gt sling gt-a1`
    $ gt explain gt-e1
    gt-e1 is ready:
      - its type epic is never given to an agent; its children may be
    $ gt explain gt-d4
    gt-d4 is done:
      - it was closed at [TIME]: was easy
    $ gt explain gt-c3 --json
    {"bead":"gt-c3","state":"blocked","reasons":[{"code":"blocked","message":"it waits for gt-b2 (Second), which is open"}]}
    $ gt rig park shop
    Rig shop is parked.
    $ gt explain gt-a1
    gt-a1 is ready:
      - its rig shop is parked: `gt rig unpark shop`
    $ gt close gt-a1 gt-b2
    gt-a1 closed.
    gt-b2 closed.
    Now ready: gt-c3
    "#);
}

#[test]
fn lists_are_filtered() {
    let town = Town::holding(&GRAPH);
    let answers = [
        town.gt(["bead", "list", "--status", "closed"]),
        town.gt(["bead", "list", "--type", "bug"]),
        town.gt(["bead", "list", "--assignee", "ada"]),
        town.gt(["bead", "list", "--label", "release", "--priority", "P2"]),
        town.gt(["bead", "list", "--parent", "gt-e1"]),
        town.gt(["bead", "list", "--title-contains", "third"]),
        town.gt(["bead", "list", "--rig", "shop", "--limit", "2"]),
        town.gt(["bead", "list", "--label", "nothing"]),
        town.gt(["ready", "--type", "task"]),
        town.gt(["ready", "--unassigned", "--limit", "1"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt bead list --status closed
    ✓ gt-d4  P2  task  Done
    $ gt bead list --type bug
    ⏸ gt-b2  P2  bug  Second  @ada  ← gt-a1
    $ gt bead list --assignee ada
    ⏸ gt-b2  P2  bug  Second  @ada  ← gt-a1
    $ gt bead list --label release --priority P2
    ⏸ gt-b2  P2  bug  Second  @ada  ← gt-a1
    $ gt bead list --parent gt-e1
    ○ gt-a1  P0  task  First
    ⏸ gt-b2  P2  bug   Second  @ada  ← gt-a1
    $ gt bead list --title-contains third
    ⏸ gt-c3  P2  task  Third  ← gt-b2
    $ gt bead list --rig shop --limit 2
    ○ gt-a1  P0  task  First
    ○ gt-e1  P1  epic  The epic
    ! There are more; `--limit 0` shows all.
    $ gt bead list --label nothing
    No beads match. `gt create "…"` writes one down, `--all` shows finished ones too.
    $ gt ready --type task
    ○ gt-a1  P0  task  First
    $ gt ready --unassigned --limit 1
    ○ gt-a1  P0  task  First
    ! There are more; `--limit 0` shows all.
    "#);
}

#[test]
fn a_mistyped_filter_is_pointed_out() {
    let town = Town::holding(&GRAPH);
    let answers = [
        town.gt(["bead", "list", "--status", "opne"]),
        town.gt(["bead", "list", "--type", "tsk"]),
        town.gt(["ready", "--type", "tsk"]),
        town.gt(["bead", "list", "--status", "in_review"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt bead list --status opne
    No bead has the status opne; did you mean open?
    $ gt bead list --type tsk
    No bead has the type tsk; did you mean task?
    $ gt ready --type tsk
    No bead has the type tsk; did you mean task?
    $ gt bead list --status in_review
    No beads match. `gt create "…"` writes one down, `--all` shows finished ones too.
    "#);
}

#[test]
fn an_update_says_what_it_did() {
    let town = Town::holding(&GRAPH);
    let answers = [
        town.gt(["bead", "update", "gt-a1", "--priority", "3", "--title", "First of all"]),
        town.gt(["bead", "update", "gt-a1", "--priority", "3"]),
        town.gt(["bead", "update", "gt-a1"]),
        town.gt(["bead", "update", "gt-a1", "--claim"]),
        town.gt(["bead", "update", "gt-a1", "--claim"]),
        town.call(["bead", "update", "gt-a1", "--claim", "--actor", "ada"]).run(),
        town.gt(["bead", "update", "gt-c3", "--claim"]),
        town.gt(["bead", "update", "gt-a1", "--assignee", ""]),
        town.gt(["bead", "update", "gt-a1", "--status", "closed"]),
        town.gt(["bead", "update", "gt-b2", "--defer", "2099-12-01"]),
        town.gt(["explain", "gt-b2"]),
        town.gt(["bead", "update", "gt-b2", "--defer", "", "--parent", "", "--notes", "no longer a part"]),
        town.gt(["show", "gt-b2"]),
    ];
    snapshot!(session(answers), @r"
    $ gt bead update gt-a1 --priority 3 --title 'First of all'
    gt-a1 updated.
    $ gt bead update gt-a1 --priority 3
    gt-a1 is like that already; nothing was changed.
    $ gt bead update gt-a1
    gt-a1 is like that already; nothing was changed.
    $ gt bead update gt-a1 --claim
    tester has gt-a1.
    $ gt bead update gt-a1 --claim
    tester has gt-a1 already; nothing was changed.
    $ gt bead update gt-a1 --claim --actor ada
    ! error: gt-a1 is already claimed by tester
    ! hint: see why with `gt explain gt-a1`
    [exit 1]
    $ gt bead update gt-c3 --claim
    ! error: gt-c3 is not ready: it is blocked
    ! hint: see why with `gt explain gt-c3`
    [exit 1]
    $ gt bead update gt-a1 --assignee ''
    gt-a1 updated.
    $ gt bead update gt-a1 --status closed
    gt-a1 updated.
    Now ready: gt-b2
    $ gt bead update gt-b2 --defer 2099-12-01
    gt-b2 updated.
    $ gt explain gt-b2
    gt-b2 is deferred:
      - it is deferred until [TIME]
    $ gt bead update gt-b2 --defer '' --parent '' --notes 'no longer a part'
    gt-b2 updated.
    $ gt show gt-b2
    ○ gt-b2 · Second
      status      open, ready
      type        bug
      priority    P2
      rig         shop
      assignee    ada
      labels      release
      depends on  gt-a1
      dependents  1
      created     [TIME]
      updated     [TIME]

    notes
      no longer a part
    ");
}

#[test]
fn dependencies_come_and_go() {
    let town = Town::holding(&GRAPH);
    let answers = [
        town.gt(["bead", "dep", "add", "gt-a1", "gt-d4"]),
        town.gt(["bead", "dep", "add", "gt-a1", "gt-d4"]),
        town.gt(["bead", "dep", "add", "gt-a1", "gt-d4", "--type", "related"]),
        town.gt(["bead", "dep", "add", "gt-a1", "gt-d4", "--type", "merge-blocks"]),
        town.gt(["explain", "gt-a1"]),
        town.gt(["bead", "dep", "remove", "gt-a1", "gt-d4", "--type", "merge-blocks"]),
        town.gt(["bead", "dep", "remove", "gt-a1", "gt-d4"]),
        town.gt(["bead", "dep", "remove", "gt-a1", "gt-d4"]),
        town.gt(["bead", "dep", "add", "gt-d4", "gt-e1", "--type", "waits-for", "--gate", "any-children"]),
        town.gt(["bead", "dep", "add", "gt-d4", "gt-e1", "--type", "invented-here"]),
    ];
    snapshot!(session(answers), @r"
    $ gt bead dep add gt-a1 gt-d4
    gt-a1 waits for gt-d4.
    $ gt bead dep add gt-a1 gt-d4
    gt-a1 waits for gt-d4 already; nothing was changed.
    $ gt bead dep add gt-a1 gt-d4 --type related
    gt-a1 is linked to gt-d4 (related).
    $ gt bead dep add gt-a1 gt-d4 --type merge-blocks
    gt-a1 waits for the merge of gt-d4.
    $ gt explain gt-a1
    gt-a1 is blocked:
      - it waits for the merge of gt-d4 (Done), which is closed but not merged
    $ gt bead dep remove gt-a1 gt-d4 --type merge-blocks
    gt-a1 no longer depends on gt-d4.
    Now ready: gt-a1
    $ gt bead dep remove gt-a1 gt-d4
    gt-a1 no longer depends on gt-d4.
    $ gt bead dep remove gt-a1 gt-d4
    ! error: gt-a1 does not depend on gt-d4
    ! hint: see its dependencies with `gt show gt-a1`
    [exit 1]
    $ gt bead dep add gt-d4 gt-e1 --type waits-for --gate any-children
    gt-d4 waits for the children of gt-e1.
    $ gt bead dep add gt-d4 gt-e1 --type invented-here
    gt-d4 is linked to gt-e1 (invented-here).
    ");
}

#[test]
fn labels_and_comments() {
    let town = Town::holding(&GRAPH);
    let answers = [
        town.gt(["bead", "label", "list", "gt-a1"]),
        town.gt(["bead", "label", "add", "gt-a1", "urgent", "release"]),
        town.gt(["bead", "label", "add", "gt-a1", "urgent"]),
        town.gt(["bead", "label", "remove", "gt-a1", "urgent"]),
        town.gt(["bead", "label", "list", "gt-a1", "--json"]),
        town.gt(["bead", "comment", "list", "gt-a1"]),
        town.gt(["bead", "comment", "add", "gt-a1", "seen on main\ntoo"]),
        town.gt(["bead", "comment", "list", "gt-a1"]),
        town.gt(["bead", "comment", "list", "gt-a1", "--json"]),
        town.gt(["show", "gt-a1"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt bead label list gt-a1
    gt-a1: no labels
    $ gt bead label add gt-a1 urgent release
    gt-a1: urgent, release
    $ gt bead label add gt-a1 urgent
    gt-a1 is like that already (urgent, release); nothing was changed.
    $ gt bead label remove gt-a1 urgent
    gt-a1: release
    $ gt bead label list gt-a1 --json
    {"changed":false,"id":"gt-a1","labels":["release"]}
    $ gt bead comment list gt-a1
    gt-a1 has no comments.
    $ gt bead comment add gt-a1 'seen on main\ntoo'
    Commented on gt-a1.
    $ gt bead comment list gt-a1
    tester at [TIME]
      seen on main
      too
    $ gt bead comment list gt-a1 --json
    [{"id":"gt-a1-c1","issue_id":"gt-a1","author":"tester","text":"seen on main\ntoo","created_at":"[TIME]"}]
    $ gt show gt-a1
    ○ gt-a1 · First
      status      open, ready
      type        task
      priority    P0
      rig         shop
      labels      release
      part of     gt-e1
      dependents  2
      created     [TIME]
      updated     [TIME]

    tester at [TIME]
      seen on main
      too
    "#);
}

#[test]
fn children_are_numbered_below_their_parent() {
    let town = Town::holding(&GRAPH);
    let answers = [
        town.gt(["create", "A part", "--parent", "gt-e1"]),
        town.gt(["create", "Another", "--parent", "gt-e1"]),
        town.gt(["create", "Deeper", "--parent", "gt-e1.2", "--quiet"]),
        town.gt(["bead", "list", "--parent", "gt-e1"]),
    ];
    snapshot!(session(answers), @r"
    $ gt create 'A part' --parent gt-e1
    Created gt-e1.3 in shop: A part
    $ gt create Another --parent gt-e1
    Created gt-e1.4 in shop: Another
    $ gt create Deeper --parent gt-e1.2 --quiet
    ! error: there is no bead `gt-e1.2`
    ! hint: did you mean `gt-e1.3` or `gt-e1.4` or `gt-e1`?
    [exit 3]
    $ gt bead list --parent gt-e1
    ○ gt-a1    P0  task  First
    ⏸ gt-b2    P2  bug   Second  @ada  ← gt-a1
    ○ gt-e1.3  P2  task  A part
    ○ gt-e1.4  P2  task  Another
    ");
}

#[test]
fn a_claim_takes_the_first_ready_bead_nobody_has() {
    let town = Town::holding(&GRAPH);
    let answers = [
        town.gt(["ready", "--claim", "--type", "task"]),
        town.gt(["ready", "--claim", "--type", "task"]),
        town.gt(["ready", "--claim", "--type", "task", "--json"]),
        town.gt(["explain", "gt-a1"]),
    ];
    snapshot!(session(answers), @r"
    $ gt ready --claim --type task
    tester has gt-a1: First
    $ gt ready --claim --type task
    Nothing is ready that nobody has; nothing was claimed.
    $ gt ready --claim --type task --json
    null
    $ gt explain gt-a1
    gt-a1 is in_progress:
      - it is being worked on by tester
    ");
}

#[test]
fn a_strangers_title_cannot_drive_the_terminal() {
    let town = Town::holding(&[
        r#"{"id":"gt-x1","title":"a\u001b[31mred\nsecond\u0007","description":"d\u001b]0;x\u0007","assignee":"\u001b[2J"}"#,
    ]);
    for answer in [
        town.gt(["ready"]),
        town.gt(["show", "gt-x1"]),
        town.gt(["explain", "gt-x1"]),
        town.gt(["bead", "dep", "tree", "gt-x1"]),
    ] {
        assert!(!answer.stdout.contains(['\u{1b}', '\u{7}']), "{answer}");
        answer.success();
    }
    snapshot!(town.gt(["ready"]), @r"
    $ gt ready
    ○ gt-x1  P2  task  a�[31mred second�  @�[2J
    ");
}

#[test]
fn a_bead_named_twice_is_changed_and_told_once() {
    let town = Town::holding(&[r#"{"id":"gt-a1","title":"A"}"#]);
    let answers = [
        town.gt(["close", "gt-a1", "gt-a1"]),
        town.gt(["bead", "reopen", "gt-a1", "gt-a1"]),
        town.gt(["bead", "delete", "gt-a1", "gt-a1", "--json"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt close gt-a1 gt-a1
    gt-a1 closed.
    $ gt bead reopen gt-a1 gt-a1
    gt-a1 reopened.
    $ gt bead delete gt-a1 gt-a1 --json
    {"became_ready":[],"changed":["gt-a1"]}
    "#);
}

#[test]
fn a_crowd_that_became_ready_is_named_in_part() {
    let waiting = |n: u32| {
        format!(r#"{{"id":"gt-w{n}","title":"W","dependencies":[{{"depends_on_id":"gt-a1","type":"blocks"}}]}}"#)
    };
    let lines: Vec<String> = (10..33).map(waiting).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).chain([r#"{"id":"gt-a1","title":"A"}"#]).collect();
    let town = Town::holding(&lines);
    let all = town.gt(["close", "gt-a1", "--dry-run", "--json"]).json();
    assert_eq!(all["became_ready"].as_array().map(Vec::len), Some(23));
    let said = town.gt(["close", "gt-a1"]).stdout;
    assert_eq!(said.matches("gt-w").count(), 20, "{said}");
    assert!(said.ends_with(" and 3 more\n"), "{said}");
}

#[test]
fn a_tree_marks_each_bead_as_the_lists_do() {
    let child = |id: &str, more: &str| {
        format!(
            r#"{{"id":"{id}","title":"{id}"{more},"dependencies":[{{"depends_on_id":"gt-e1","type":"parent-child"}}]}}"#
        )
    };
    let town = Town::holding(&[
        r#"{"id":"gt-e1","title":"gt-e1","issue_type":"epic"}"#,
        &child("gt-a1", ""),
        &child("gt-d2", r#","defer_until":"2999-01-01T00:00:00Z""#),
        &child("gt-m3", r#","issue_type":"message""#),
        &child("gt-c4", r#","status":"closed""#),
    ]);
    let answers = [town.gt(["bead", "dep", "tree", "gt-e1"]), town.gt(["bead", "list", "--all"])];
    snapshot!(session(answers), @r"
    $ gt bead dep tree gt-e1
    ○ gt-e1  gt-e1
    ├─ ○ gt-a1  gt-a1
    ├─ ◌ gt-d2  gt-d2
    ├─ · gt-m3  gt-m3
    └─ ✓ gt-c4  gt-c4
    $ gt bead list --all
    ○ gt-e1  P2  epic     gt-e1
    ○ gt-a1  P2  task     gt-a1
    ◌ gt-d2  P2  task     gt-d2  until [TIME]
    · gt-m3  P2  message  gt-m3  open
    ✓ gt-c4  P2  task     gt-c4
    ");
}
