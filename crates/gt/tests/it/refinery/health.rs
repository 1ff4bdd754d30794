//! What `gt doctor` finds about merging.

use serde_json::{Value, json};

use super::{COMMITS, fleet, git, merges, paused_fleet, work_on};
use crate::fleet::Fleet;

/// What is wrong with merging: level, message and remedy.
fn findings(fleet: &Fleet) -> Vec<(Value, String, String)> {
    let answer = fleet.town.gt(["doctor", "--json"]);
    let all: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error} in {answer}"));
    let ours = all.as_array().expect("a list").iter().filter(|one| one["check"] == "merging").cloned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ours.map(|one| (one["level"].clone(), text(&one["message"]), text(&one["remedy"]))).collect()
}

#[test]
fn a_gate_whose_program_is_missing_is_found_and_what_a_shell_knows_is_not() {
    let fleet = fleet(COMMITS);
    let gates =
        ["true", "if true; then :; fi", "FOO=1 nothing-knows", "[ -d . ]", "no-such-program --all", "./check.sh"];
    fleet.set("rigs.shop.gates", &json!(gates).to_string());
    let found = findings(&fleet);
    let words: Vec<&str> = found.iter().map(|(_, message, _)| message.as_str()).collect();
    let missing = |word: &str| format!("a gate of shop cannot run: there is no `{word}`");
    assert_eq!(words, [missing("no-such-program"), missing("./check.sh")]);
    assert_eq!((&found[0].0, &found[1].0), (&json!("broken"), &json!("warning")));
    assert_eq!(fleet.town.gt(["doctor"]).code, 1);
}

#[test]
fn a_commit_that_is_gone_and_a_queue_without_a_daemon_are_found() {
    let fleet = paused_fleet(COMMITS);
    assert_eq!(findings(&fleet), []);
    work_on(&fleet, "gt-a");
    let id = &merges(&fleet)[0];
    let waits = findings(&fleet);
    assert_eq!((waits.len(), waits[0].1.as_str()), (1, "1 merge waits, and no daemon runs"));
    let shown = fleet.town.gt(["refinery", "show", id, "--json"]).json();
    let (tip, branch) = (shown["commit"].as_str().expect("a commit"), shown["branch"].as_str().expect("a branch"));
    // Somebody throws away all that keeps it.
    fleet.town.gt(["polecat", "nuke", "Toast"]).success();
    git(&fleet, &["update-ref", "-d", &format!("refs/gt/merges/{id}")]);
    git(&fleet, &["update-ref", "-d", &format!("refs/heads/{branch}")]);
    git(&fleet, &["reflog", "expire", "--expire=now", "--all"]);
    git(&fleet, &["gc", "--quiet", "--prune=now"]);
    let gone = findings(&fleet);
    assert!(gone[1].1.starts_with(&format!("{id}: the commit {tip} of gt-a is not in ")), "{gone:?}");
    assert_eq!(gone[1].0, json!("broken"));
    assert!(gone[1].2.contains(&format!("gt refinery drop {id}")), "{gone:?}");
    fleet.town.gt(["refinery", "drop", id]).success();
    assert_eq!(findings(&fleet), []);
    let refused = fleet.town.refused(["refinery", "retry", id]);
    assert!(refused.contains("and so is its commit"), "{refused}");
}
