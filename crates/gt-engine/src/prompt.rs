//! The assignment text: what an agent is told when it starts, and again by `gt prime`. // SPEC P7

use std::fmt::Write as _;

use gt_core::context::split_vars;
use gt_store::Assignment;

use crate::agents::base_branch;

/// Everything that an agent has to know to do its work and to end it.
pub fn text(assignment: &Assignment, branch: Option<&str>) -> String {
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
    section("Before you", earlier(assignment).as_deref());
    section("How to work", Some(&rules(assignment, branch)));
    text
}

fn earlier(assignment: &Assignment) -> Option<String> {
    let times = match assignment.attempts {
        0 => return None,
        1 => "Once before a worker".to_owned(),
        n => format!("{n} times before a worker"),
    };
    let left = assignment.left_branch.as_deref();
    let left = left.map(|branch| format!(" What it left is on the branch {branch}.")).unwrap_or_default();
    Some(format!("{times} ended without finishing this.{left}"))
}

fn rules(assignment: &Assignment, branch: Option<&str>) -> String {
    let place = match branch {
        Some(branch) => format!(
            "- You are in a git worktree of your own, on the branch {branch}, which starts from {}. Commit your work there.",
            base_branch(assignment)
        ),
        None => "- You share this directory with others. Commit only what is yours.".to_owned(),
    };
    let bead = &assignment.bead;
    format!(
        "{place}
- `gt prime` shows this text again, `gt show {bead}` the bead.
- When the work is done and committed: `gt done`.
- When it cannot be done: `gt done --status failed --note \"why\"`. To put it off: `gt done --status deferred --note \"why\"`.
- When you need a person: `gt escalate \"what you need\"`.
- Then stop. Your process ends with your work."
    )
}
