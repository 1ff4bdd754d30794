//! The JSON that scripts rely on, key for key. // SPEC Appendix

use serde_json::Value;

use super::{deferred, gastown};
use crate::fleet::FINISHES;

fn keys(object: &Value) -> String {
    let mut keys: Vec<&str> =
        object.as_object().unwrap_or_else(|| panic!("an object: {object}")).keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.join(" ")
}

#[test]
fn sling_answers_in_the_promised_shape_for_every_outcome() {
    let fleet = deferred(FINISHES);
    fleet.hold(&["gt-abc", "gt-def", "gt-ghi"]);
    fleet.hold_lines(&[r#"{"id":"hq-one","title":"Coordinate"}"#]);
    fleet.town.gt(["sling", "gt-def"]).success();
    fleet.town.gt(["close", "gt-ghi"]).success();
    let answer = fleet.town.gt(["sling", "gt-abc", "gt-def", "hq-one", "gt-ghi", "gt-no", "--json"]);
    assert_eq!(answer.code, 1, "a part was refused: {answer}");
    let answer: Value = serde_json::from_str(&answer.stdout).expect("it is JSON");
    assert_eq!(keys(&answer), "results");
    let results = answer["results"].as_array().expect("a list");
    for result in results {
        assert_eq!(keys(result), "bead context convoy outcome polecat reason rig run");
    }
    let outcomes: Vec<String> = results.iter().map(|one| format!("{} {}", one["bead"], one["outcome"])).collect();
    insta::assert_snapshot!(outcomes.join("\n"), @r#"
    "gt-abc" "scheduled"
    "gt-def" "already-scheduled"
    "hq-one" "skipped"
    "gt-ghi" "skipped"
    "gt-no" "refused"
    "#);
    assert!(results[1..].iter().all(|one| one["reason"].as_str().is_some_and(|why| !why.is_empty())), "{answer}");
}

#[test]
fn a_dispatched_sling_names_polecat_run_context_and_convoy() {
    let fleet = gastown(FINISHES);
    fleet.hold(&["gt-abc"]);
    let result = fleet.town.gt(["sling", "gt-abc", "--json"]).json()["results"][0].clone();
    assert_eq!(result["outcome"], "dispatched");
    for field in ["polecat", "run", "context", "convoy", "rig"] {
        assert!(result[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {result}");
    }
    assert_eq!(result["reason"], Value::Null);
}

#[test]
fn scheduler_status_list_and_run_have_the_promised_keys() {
    let fleet = deferred("exec sleep 600");
    fleet.hold(&["gt-abc", "gt-def"]);
    let status = fleet.town.gt(["scheduler", "status", "--json"]).json();
    assert_eq!(status["beads"], serde_json::json!([]));
    assert_eq!(fleet.town.gt(["scheduler", "list", "--json"]).json(), serde_json::json!([]));
    fleet.town.gt(["sling", "gt-abc", "gt-def"]).success();
    let status = fleet.town.gt(["scheduler", "status", "--json"]).json();
    let list = fleet.town.gt(["scheduler", "list", "--json"]).json();
    assert_eq!(status["beads"], list, "status shows the very list");
    let dry = fleet.town.gt(["scheduler", "run", "--dry-run", "--json"]).json();
    let run = fleet.town.gt(["scheduler", "run", "--batch", "1", "--json"]).json();
    insta::assert_snapshot!([&status, &list[0], &dry, &run, &run["dispatched"][0]].map(keys).join("\n"), @"
    active_polecats beads free held held_up last_dispatch_at last_dispatch_count max_polecats mode paused paused_at paused_by paused_reason queue queued_ready queued_total
    bead blocked context dispatch_failures enqueued_at last_failure position reason target_rig title
    batch capacity dry_run failed ready reason skipped waited would_dispatch
    batch capacity dispatched failed ready reason skipped waited
    bead context polecat rig run
    ");
    assert_eq!(status["mode"], "deferred");
    assert_eq!((&status["queued_total"], &status["queued_ready"]), (&2.into(), &2.into()));
    assert_eq!(
        (&status["max_polecats"], &status["free"], &status["active_polecats"]),
        (&5.into(), &5.into(), &0.into())
    );
    assert_eq!(status["paused"], false);
    assert_eq!((&list[0]["position"], &list[1]["position"]), (&1.into(), &2.into()));
}

#[test]
fn polecat_list_and_explain_have_the_promised_keys() {
    let fleet = gastown("exec sleep 600");
    assert_eq!(fleet.town.gt(["polecat", "list", "--json"]).json(), serde_json::json!([]));
    fleet.hold(&["gt-abc", "gt-def"]);
    fleet.town.gt(["sling", "gt-abc"]).success();
    let polecats = fleet.town.gt(["polecat", "list", "--json"]).json();
    let running = fleet.town.gt(["explain", "gt-abc", "--json"]).json();
    let idle = fleet.town.gt(["explain", "gt-def", "--json"]).json();
    let shown = [&polecats[0], &running, &running["reasons"][0], &idle, &idle["reasons"][0]].map(keys);
    insta::assert_snapshot!(shown.join("\n"), @"
    activity activity_at agent bead branch conversation cost_usd host last_bead last_output name pid rig run salvage session started_at state tokens_cached tokens_in tokens_out waiting_for worktree
    bead reasons state
    code message
    bead reasons state
    code message
    ");
    assert_eq!(polecats[0]["state"], "working");
    assert_eq!(polecats[0]["bead"], "gt-abc");
    assert_eq!(polecats[0]["session"], format!("gt-{}", polecats[0]["name"].as_str().expect("a name").to_lowercase()));
}
