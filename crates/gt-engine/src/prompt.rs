//! The assignment text: what an agent is told when it starts, and again by `gt prime`. // SPEC P7

use std::fmt::Write as _;

use gt_core::context::split_vars;
use gt_core::formula::{Cooked, CookedStep};
use gt_store::{Assignment, CurrentStep, DoneStep, Rework};

use crate::worktrees::start_branch;

/// Of the steps before one, so many of the latest are told with what they left to know, and no more of it than this.
const NOTES_MAX: usize = 20;
const NOTE_CHARS_MAX: usize = 2_000;

/// Everything that an agent has to know to do its work and to end it.
pub fn text(assignment: &Assignment, cooked: Option<&Cooked>, branch: Option<&str>) -> String {
    let Assignment { bead, title, rig, polecat, .. } = assignment;
    let mut text =
        format!("You are {}, a worker in the rig {}. Your work is {bead}: {title}\n", polecat.name, rig.name);
    let mut section = |head: &str, body: Option<&str>| {
        if let Some(body) = body.filter(|body| !body.trim().is_empty()) {
            write!(text, "\n## {head}\n{}\n", body.trim()).expect("writing to a string cannot fail");
        }
    };
    section("Description", assignment.description.as_deref());
    section("Acceptance", assignment.acceptance.as_deref());
    section("Instructions", assignment.fields.args.as_deref());
    let vars = assignment.fields.vars.as_deref().map(|vars| split_vars(vars).collect::<Vec<_>>().join("\n"));
    section("Variables", vars.as_deref());
    match (&assignment.step, cooked) {
        (Some(step), Some(cooked)) => section("Your step", Some(&one_step(step, cooked))),
        (_, cooked) => section("Steps", cooked.map(steps).as_deref()),
    }
    section("Before you", earlier(assignment).as_deref());
    section("How to work", Some(&rules(assignment, branch)));
    text
}

/// The steps in their order, each with what it needs and when it is done.
fn steps(cooked: &Cooked) -> String {
    let mut text = format!("Work by the formula {}, in this order:\n", cooked.formula);
    let mut numbers: Vec<usize> = Vec::new();
    for step in &cooked.steps {
        numbers.truncate(step.depth + 1);
        numbers.resize(step.depth + 1, 0);
        if let Some(last) = numbers.last_mut() {
            *last += 1;
        }
        let number: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        write!(text, "\n### {} {} [{}]\n", number.join("."), step.title.trim(), step.id)
            .expect("writing to a string cannot fail");
        text.push_str(&details(step));
    }
    text
}

/// One step out of several, with what those before it have left to know.
fn one_step(step: &CurrentStep, cooked: &Cooked) -> String {
    let CurrentStep { id, title, place, total, done } = step;
    let mut text = format!(
        "This work is done by the formula {}, each step by a fresh worker. Yours is step {place} of {total}, and only that:\n\n\
         ### {title} [{id}]\n",
        cooked.formula
    );
    text.extend(cooked.steps.iter().find(|known| known.id == *id).map(details));
    if !done.is_empty() {
        text.push_str("\nDone before you:\n");
    }
    let n_old = done.len().saturating_sub(NOTES_MAX);
    for (number, DoneStep { title, note, .. }) in (1..).zip(done) {
        let note = note.as_deref().filter(|_| number > n_old).map(|note| {
            let short: String = note.trim().chars().take(NOTE_CHARS_MAX).collect();
            format!(": {short}")
        });
        let note = note.unwrap_or_default();
        writeln!(text, "{number}. {title}{note}").expect("writing to a string cannot fail");
    }
    text
}

/// What is to be known of one step, below its title.
fn details(step: &CookedStep) -> String {
    let mut text = String::new();
    let mut line = |head: &str, body: &str| {
        if !body.trim().is_empty() {
            writeln!(text, "{head}{}", body.trim()).expect("writing to a string cannot fail");
        }
    };
    line("", &step.description);
    line("Done when: ", &step.acceptance.join(" "));
    line("Note: ", &step.notes);
    line("Needs: ", &step.needs.join(", "));
    if step.interactive {
        line("", "Do this together with a person: `gt escalate \"what you need\"`.");
    }
    text
}

/// What others have left of this work, and where.
fn earlier(assignment: &Assignment) -> Option<String> {
    let Assignment { left_branch, left_patch, handoff, rework, .. } = assignment;
    let mut lines = Vec::new();
    if let Some(rework) = rework {
        let Rework { of, of_branch, target, branch, patch, reason, .. } = rework;
        let what = if *of == assignment.bead { "this".to_owned() } else { of.clone() };
        lines.push(format!("The work on {what} was done and could not be merged: {reason}."));
        let starts = format!("Its commits are on the branch {branch}; you start from {target} as it is now.");
        let goal = format!("see that the gates of {target} pass.");
        if *of == assignment.bead {
            lines.push(format!(
                "{starts} Bring over what is good of them (`git cherry-pick`, or `git merge {branch}`), so that it fits, and {goal}"
            ));
        } else {
            lines.push(format!(
                "{starts} Bring the commits of {of_branch} over: `git merge {of_branch}`, or a rebase or cherry-pick where nothing \
                 conflicts. Fix what is wrong in commits of your own, and {goal}"
            ));
            lines.push(format!(
                "Only with these commits {of} counts as merged. If your work takes their place instead, end with \
                 `gt done --replaces WHY`. Otherwise {of} stays open and a person is asked."
            ));
        }
        lines.extend(patch.as_ref().map(|patch| format!("The same as a patch: {patch}")));
    }
    // Whose work came back has finished it.
    let is_told = rework.as_ref().is_some_and(|rework| Some(&rework.branch) == left_branch.as_ref());
    let times = match (assignment.attempts, handoff) {
        (_, Some(note)) => Some(format!("A worker has left this to you and says:\n{note}")),
        (0, None) => None,
        _ if is_told => None,
        (1, None) => Some("Once before a worker ended without finishing this.".to_owned()),
        (n, None) => Some(format!("{n} times before a worker ended without finishing this.")),
    };
    if let Some(times) = times {
        let branch = left_branch.as_ref().map(|branch| format!(" What it left is on the branch {branch}."));
        lines.push(format!("{times}{}", branch.unwrap_or_default()));
        lines.extend(
            left_patch.as_ref().map(|patch| format!("What it had not committed is in {patch} (`git apply --3way`).")),
        );
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn rules(assignment: &Assignment, branch: Option<&str>) -> String {
    let place = match branch {
        Some(branch) => format!(
            "- You are in a git worktree of your own, on the branch {branch}, which starts from {}. Commit your work there.",
            start_branch(assignment)
        ),
        None => "- You share this directory with others. Commit only what is yours.".to_owned(),
    };
    let bead = &assignment.bead;
    let is_merged =
        branch.is_some() && !assignment.fields.no_merge && assignment.fields.merge.as_deref() != Some("local");
    let merging = if is_merged { " It is merged for you: do not push, and do not merge it yourself." } else { "" };
    let end = match &assignment.step {
        Some(step) if !step.is_last() => {
            "When your step is done and committed: `gt done --note \"what the next worker has to know\"`."
        }
        _ => "When the work is done and committed: `gt done`.",
    };
    format!(
        "{place}
- `gt prime` shows this text again, `gt show {bead}` the bead.
- {end}{merging}
- When you cannot keep all of it in mind any longer: commit, then `gt handoff \"what the next worker has to know\"`.
- When it cannot be done: `gt done --status failed --note \"why\"`. To put it off: `gt done --status deferred --note \"why\"`.
- When you need a person: `gt escalate \"what you need\"`.
- Then stop. Your process ends with your work."
    )
}
