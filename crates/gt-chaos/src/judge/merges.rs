//! Nothing that was committed is lost, and nothing is in the target that the gates have not let pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use super::{Case, Violation};
use crate::command::run;
use crate::evidence::Line;
use crate::town::{RIGS, Rig};

const KEPT: &str = "a commit that was handed over is in the target, or visibly on its way";
const MERGED: &str = "a bead that is closed as merged has its commit in the target";
const GATES: &str = "what is in the target has passed the gates";
const PERSON: &str = "nothing that a person committed is lost";
const UNCOMMITTED: &str = "what a person has not committed stays as it is";
const CHECKOUT: &str = "the checkout is left without changes that no person made";
const READABLE: &str = "`gt` and git answer at the end";

pub(super) fn judge(case: &Case) -> Vec<Violation> {
    match read(case) {
        Ok(books) => judge_books(case, &books),
        Err(error) => vec![Violation::new(READABLE, error)],
    }
}

/// What git and the town know of merged work.
struct Books {
    /// Every commit of each rig's target.
    commits: BTreeMap<&'static str, BTreeSet<String>>,
    beads: Vec<Value>,
    merges: Vec<Value>,
}

fn read(case: &Case) -> Result<Books, String> {
    let mut commits = BTreeMap::new();
    for rig in RIGS {
        commits.insert(rig.name, git(case, rig, &["rev-list", "main"])?.lines().map(str::to_owned).collect());
    }
    let rows = |value: Value| value.as_array().cloned().unwrap_or_default();
    let beads = rows(case.town.ask(&["bead", "list", "--all", "--limit", "0"])?);
    let merges = rows(case.town.ask(&["refinery", "list", "--all"])?);
    Ok(Books { commits, beads, merges })
}

fn git(case: &Case, rig: Rig, words: &[&str]) -> Result<String, String> {
    let words: Vec<&str> = ["-C", rig.name].iter().chain(words).copied().collect();
    run(&mut case.town.git(&words), None).success().ok_or_else(|| format!("git {words:?} fails in {}", rig.name))
}

fn judge_books(case: &Case, books: &Books) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(handed_over(case, books));
    violations.extend(
        case.deeds
            .commits
            .iter()
            .filter(|made| !books.commits[made.rig.name].contains(&made.commit))
            .map(|made| Violation::new(PERSON, format!("{} is not in main of {}", made.commit, made.rig.name))),
    );
    violations.extend(books.beads.iter().filter_map(|bead| closed_bead(case, books, bead)));
    violations.extend(case.deeds.damages.iter().map(|damage| Violation::new(UNCOMMITTED, damage)));
    for rig in RIGS {
        violations.extend(history(case, rig));
        violations.extend(changes(case, rig));
    }
    case.tally.add("commits by people", case.deeds.commits.len());
    violations
}

/// Whatever git sees in the checkout that is not committed: people have put away all that they wrote.
fn changes(case: &Case, rig: Rig) -> Option<Violation> {
    match git(case, rig, &["status", "--porcelain"]) {
        Ok(status) if status.is_empty() => None,
        Ok(status) => {
            Some(Violation::new(CHECKOUT, format!("{}: {}", rig.name, status.trim_end().replace('\n', ", "))))
        }
        Err(error) => Some(Violation::new(READABLE, error)),
    }
}

fn is_in_target(books: &Books, commit: &str) -> bool {
    books.commits.values().any(|commits| commits.contains(commit))
}

fn handed_over(case: &Case, books: &Books) -> Vec<Violation> {
    let done: Vec<&Line> = case.agents.iter().filter(|line| line.what == "done").collect();
    case.tally.add("commits handed over", done.len());
    let is_lost = |line: &&&Line| {
        let merge = books.merges.iter().find(|merge| merge["commit"] == *line.rest);
        // Work that waits or came back is visible.
        let is_visible = merge.is_some_and(|merge| merge["state"] != "merged");
        !is_in_target(books, &line.rest) && !is_visible
    };
    let lost = done.iter().filter(is_lost);
    lost.map(|line| {
        let merge = books.merges.iter().find(|merge| merge["bead"] == *line.subject);
        Violation::new(
            KEPT,
            format!(
                "{} of {} by run {}; its merge: {}",
                line.rest,
                line.subject,
                line.run,
                merge.unwrap_or(&Value::Null)
            ),
        )
    })
    .collect()
}

fn closed_bead(case: &Case, books: &Books, bead: &Value) -> Option<Violation> {
    let id = bead["id"].as_str()?;
    let is_work =
        bead["status"] == "closed" && bead["issue_type"] == "task" && !bead["ephemeral"].as_bool().unwrap_or(false);
    if !is_work || (id.contains("-work") && id.ends_with('9')) {
        return None;
    }
    if bead["merged_at"].is_null() {
        return Some(Violation::new(MERGED, format!("{id} is closed without being merged: {}", bead["close_reason"])));
    }
    // What came back is in the target too: its rework merges it.
    let is_merged = case.agents.iter().any(|line| {
        line.subject == id && (line.what == "intent" || line.what == "done") && is_in_target(books, &line.rest)
    });
    (!is_merged).then(|| Violation::new(MERGED, format!("{id}: {}", bead["close_reason"])))
}

/// Every step of the target is a person's, or a tree that passed; and none has brought the forbidden file.
fn history(case: &Case, rig: Rig) -> Vec<Violation> {
    let passed = fs::read_to_string(case.town.evidence.join("gates.log")).unwrap_or_default();
    let passed: BTreeSet<&str> = passed.lines().filter_map(|line| line.strip_prefix(rig.name)).map(str::trim).collect();
    let people: BTreeSet<&str> = case.deeds.commits.iter().map(|made| made.commit.as_str()).collect();
    let steps = match git(case, rig, &["log", "--first-parent", "--format=%H %T %s", "main"]) {
        Ok(steps) => steps,
        Err(error) => return vec![Violation::new(READABLE, error)],
    };
    let mut violations = Vec::new();
    let mut n_steps = 0;
    for step in steps.lines() {
        let mut words = step.splitn(3, ' ');
        let (commit, tree, title) =
            (words.next().unwrap_or_default(), words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_persons = people.contains(commit) || title.starts_with("person-") || title == "start";
        n_steps += usize::from(!is_persons);
        if !is_persons && !passed.contains(tree) {
            violations
                .push(Violation::new(GATES, format!("{commit} of {} ({title}): no gate has seen its tree", rig.name)));
        }
    }
    case.tally.add("merges", n_steps);
    let added =
        ["log", "--first-parent", "-m", "--diff-filter=A", "--format=%H", "--name-only", "main", "--", "FORBIDDEN-*"];
    match git(case, rig, &added) {
        Ok(found) if found.trim().is_empty() => {}
        Ok(found) => {
            violations.push(Violation::new(GATES, format!("forbidden files in {}: {}", rig.name, found.trim())));
        }
        Err(error) => violations.push(Violation::new(READABLE, error)),
    }
    violations
}
