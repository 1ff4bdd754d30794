//! Workers that have ended and left changes in their worktrees, and what is left of worktrees that were removed. // SPEC P8

use std::fs;

use gt_runtime::worktree::{self, Leftover};
use gt_store::{Polecat, Store};

use super::{Finding, Level};
use crate::config::Config;
use crate::error::TownError;
use crate::salvaged;
use crate::town::Town;

const CHECK: &str = "worktrees";

/// What is salvaged and goes by itself, and what a person has to look at; nothing, when there is neither.
pub(super) fn findings(town: &Town, store: &mut Store, config: &Config) -> Result<Vec<Finding>, TownError> {
    let polecats = store.polecats()?;
    let salvaged = salvaged::outlook(store, config, &polecats)?;
    let is_open = |polecat: &&Polecat| !salvaged.contains_key(&(polecat.rig.clone(), polecat.name.clone()));
    let mut findings = Vec::new();
    let what = match salvaged.len() {
        0 => None,
        1 => Some("1 worktree of an ended worker is salvaged".to_owned()),
        n => Some(format!("{n} worktrees of ended workers are salvaged")),
    };
    let later = "the daemon removes what is older than `retention.worktrees`";
    findings.extend(what.map(|what| Finding::ok(CHECK, format!("{what}; {later}"))));
    let left = polecats.iter().filter(|polecat| polecat.run.is_none() && polecat.kept.is_some());
    for polecat in left.filter(is_open) {
        let Polecat { rig, name, .. } = polecat;
        let (bead, why) = (polecat.bead.as_deref().unwrap_or("?"), polecat.kept.as_deref().unwrap_or("?"));
        let path = polecat.worktree.as_deref().unwrap_or("?");
        let message = format!("{rig}/{name} has ended with {bead}, and {path} stays: {why}");
        let remedy = format!(
            "look into it, or remove it and keep what is in it as a patch: `gt polecat nuke {rig}/{name} --force`"
        );
        findings.push(Finding::bad(CHECK, Level::Warning, message, remedy));
    }
    let folders = fs::read_dir(town.polecats_dir()).into_iter().flatten().flatten();
    findings.extend(folders.flat_map(|folder| worktree::leftovers(&folder.path())).map(|left| leftover(&left)));
    Ok(findings)
}

/// Nothing waits for it, so a warning is all it needs.
fn leftover(left: &Leftover) -> Finding {
    let (message, remedy) = match left {
        Leftover::Undeleted(path) => (
            format!("{} is left of a removed worktree and cannot be deleted", path.display()),
            format!("everything in it is kept elsewhere; delete it: `sudo rm -rf {}`", path.display()),
        ),
        Leftover::Unchecked(path) => (
            format!("{} is a worktree whose removal was interrupted", path.display()),
            "the daemon puts it back; if it is still here in a minute, look into it and move it away".to_owned(),
        ),
    };
    Finding::bad(CHECK, Level::Warning, message, remedy)
}
