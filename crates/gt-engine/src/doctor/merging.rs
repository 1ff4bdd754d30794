//! What keeps finished work from its branch. // SPEC M2

use std::path::Path;
use std::process::{Command, Stdio};

use gt_core::rig::Rig;
use gt_core::text::one_line;
use gt_runtime::merge;
use gt_store::{Merge, Store, StoreError};

use super::{Finding, Level};
use crate::config::{Config, join};
use crate::git;
use crate::lock::Lock;
use crate::refinery;
use crate::settings;
use crate::town::Town;

const CHECK: &str = "merging";
/// Characters by which a first word is no plain name of a program.
const NOT_PLAIN: &[char] =
    &['=', '$', '`', '"', '\'', '(', ')', '{', '}', '<', '>', '|', '&', ';', '*', '?', '~', '\\'];

/// What is wrong with the queue; nothing, when all is well.
pub(super) fn findings(town: &Town, store: &mut Store) -> Result<Vec<Finding>, StoreError> {
    let (merges, rigs) = (store.merges(false)?, store.rigs()?);
    let mut findings = Vec::new();
    if !merges.is_empty() && matches!(Lock::Daemon.holder(town), Ok(None)) {
        let waits =
            if merges.len() == 1 { "1 merge waits".to_owned() } else { format!("{} merges wait", merges.len()) };
        let remedy = "start one with `gt daemon start`, or merge now with `gt refinery run`";
        findings.push(Finding::bad(CHECK, Level::Warning, format!("{waits}, and no daemon runs"), remedy));
    }
    for merge in &merges {
        let rig = rigs.iter().find(|rig| rig.name == merge.rig);
        findings.extend(rig.and_then(|rig| gone(rig, merge)));
    }
    for (target, hold) in store.target_holds()? {
        let is_wanted = merges.iter().any(|merge| merge.rig == target.rig && merge.target == target.branch);
        if is_wanted && refinery::needs_a_person(&hold) {
            let reason = one_line(&hold.reason);
            let message = format!("merging into {} of {} is held: {reason}", target.branch, target.rig);
            findings.push(Finding::bad(CHECK, Level::Warning, message, "mend that, then `gt refinery run`"));
        }
    }
    Ok(findings)
}

/// A merge that can never be, because its commit is not there any more. Of a repository that cannot be read others tell.
fn gone(rig: &Rig, merge: &Merge) -> Option<Finding> {
    let found = merge::find_commit(Path::new(&rig.path), &merge.tip).ok()?;
    found.is_none().then(|| {
        let Merge { id, bead, tip, .. } = merge;
        let message = format!("{id}: the commit {tip} of {bead} is not in {} any more", rig.path);
        let remedy = format!("bring it back (`git fetch`), or give it up with `gt refinery drop {id}`");
        Finding::bad(CHECK, Level::Broken, message, remedy)
    })
}

/// Whether merged work goes to the origin, where there is one.
pub(super) fn push_words(rig: &Rig, config: &Config, repository: &Path) -> String {
    if !matches!(git::origin(repository), Ok(Some(_))) {
        return String::new();
    }
    let key = join(&["rigs", &rig.name, "push"]);
    if settings::pushes(config, rig) {
        format!("; merged work is pushed to its origin (`{key}`)")
    } else {
        format!("; merged work is not pushed to its origin (`gt config set {key} true`)")
    }
}

/// Gates whose program is not there.
pub(super) fn gate_findings(rig: &Rig, config: &Config) -> Vec<Finding> {
    let key = join(&["rigs", &rig.name, "gates"]);
    let missing = config.texts(&key).into_iter().filter(|command| is_missing(command, Path::new(&rig.path)));
    let finding = |command: String| {
        let program = command.split_whitespace().next().unwrap_or_default();
        let message = format!("a gate of {} cannot run: there is no `{}`", rig.name, one_line(program));
        // A path is meant in the merged tree, which may have what is not checked out here.
        let level = if program.contains('/') { Level::Warning } else { Level::Broken };
        Finding::bad(CHECK, level, message, format!("install it, or change `{key}` with `gt config set`"))
    };
    missing.map(finding).collect()
}

/// Whether the shell that runs a gate would not find its first word, as far as that can be told without running it.
fn is_missing(command: &str, dir: &Path) -> bool {
    let Some(word) = command.split_whitespace().next().filter(|word| !word.contains(NOT_PLAIN)) else { return false };
    let asked = Command::new("sh")
        .args(["-c", "command -v -- \"$1\"", "sh", word])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| !status.success())
}
