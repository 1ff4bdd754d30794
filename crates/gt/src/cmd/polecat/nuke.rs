//! `gt polecat nuke`: a worker and its worktree go, the work never does. // SPEC P8

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use gt_core::refusal::Refusal;
use gt_engine::{Town, TownError};
use gt_runtime::merge;
use gt_runtime::worktree::{self, Fingerprint, LoneSubmodules, WorktreeError};
use gt_store::{Polecat, Store};
use serde_json::{Value, json};

use super::{find, open};
use crate::context::Context;
use crate::failure::{Failure, Kind};

/// Forget a worker and remove its worktree; its branches stay
///
/// Refused while the worktree has changes that are not committed, or commits that are neither merged nor wait to be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt polecat nuke Toast
  gt polecat nuke shop/Toast --force     what is not committed is kept as a patch")]
pub(super) struct NukeArgs {
    /// NAME or RIG/NAME
    name: String,
    /// Also with work in it that is nowhere else; that is salvaged first
    #[arg(long)]
    force: bool,
}

/// What is left of a worker.
#[derive(Debug, Default)]
struct Left {
    salvaged: Option<Salvaged>,
    /// What is in nobody's way and could not be deleted.
    undeleted: Option<PathBuf>,
}

/// Where unfinished work was put.
#[derive(Debug)]
enum Salvaged {
    /// As a commit under a ref and as a patch.
    Commit { name: String, commit: String, patch: PathBuf },
    /// Git could not take all of it: the directory as it was.
    Directory { path: PathBuf },
}

pub(super) fn run(context: &Context, args: &NukeArgs) -> Result<(), Failure> {
    let (town, settings, mut store) = open(context)?;
    let polecat = find(&town, &mut store, &settings, &args.name)?.polecat;
    let Polecat { rig, name, worktree: path, .. } = &polecat;
    let path = path.as_ref().map(Path::new);
    let busy = || Refusal::PolecatBusy { rig: rig.clone(), name: name.clone(), what: "worktree" };
    if let Some(path) = path.filter(|_| !args.force) {
        refuse_unsafe(&mut store, rig, name, path)?;
    }
    // First of all nobody gives it work any more.
    if !store.keep_polecat(rig, name, Some("it is being nuked"), &context.stamp())? {
        return Err((&busy()).into());
    }
    let left = match path.filter(|_| !context.is_dry_run()) {
        None => Left::default(),
        Some(path) => match clear(&mut store, &town, &polecat, path, args.force) {
            Ok(left) => left,
            Err(error) => {
                store.keep_polecat(rig, name, polecat.kept.as_deref(), &context.stamp())?;
                return Err(error.hint(by_force(rig, name)));
            }
        },
    };
    // The patrol forgets a worker as soon as its worktree is gone, so it may have done that by now.
    if !store.forget_polecat(rig, name, &context.stamp())? && is_known(&mut store, rig, name)? {
        return Err((&busy()).into());
    }
    if context.wants_json() {
        let salvage = left.salvaged.as_ref().map(salvaged_json);
        return context.json(&json!({
            "polecat": format!("{rig}/{name}"),
            "outcome": "nuked",
            "salvage": salvage,
            "undeleted": left.undeleted,
        }));
    }
    let kept = left.salvaged.as_ref().map(|salvaged| format!("\n{}", salvaged_words(salvaged))).unwrap_or_default();
    let undeleted = left.undeleted.as_ref();
    let undeleted = undeleted.map(|path| format!("\nIts files cannot be deleted: {}", path.display()));
    context.say(&format!("{rig}/{name} is gone; its branches stay.{kept}{}", undeleted.unwrap_or_default()))
}

fn is_known(store: &mut Store, rig: &str, name: &str) -> Result<bool, Failure> {
    Ok(store.polecats()?.iter().any(|polecat| polecat.rig == *rig && polecat.name == *name))
}

/// Work that is nowhere else goes only by force.
fn refuse_unsafe(store: &mut Store, rig: &str, name: &str, path: &Path) -> Result<(), Failure> {
    let why = match worktree::unsaved(path) {
        Ok(Some(why)) => why.to_owned(),
        _ => match unkept(store, rig, path) {
            Some(why) => why,
            None => return Ok(()),
        },
    };
    Err(Failure::new(Kind::Refused, format!("the worktree {} is not safe to remove: {why}", path.display()))
        .hint(by_force(rig, name)))
}

/// The commits that no target has, that do not wait to be merged and are not kept in another way, in words.
fn unkept(store: &mut Store, rig: &str, path: &Path) -> Option<String> {
    let rig = store.rig(rig).ok()?;
    let merges = store.merges(true).ok()?;
    let others = merges.into_iter().filter(|merge| merge.rig == rig.name).map(|merge| merge.target);
    let mut targets: Vec<String> = others.chain([rig.branch.clone()]).collect();
    targets.sort();
    targets.dedup();
    match merge::n_unkept(path, &targets).ok()? {
        0 => None,
        1 => Some(format!("it has 1 commit that {} does not have", rig.branch)),
        n => Some(format!("it has {n} commits that {} does not have", rig.branch)),
    }
}

fn by_force(rig: &str, name: &str) -> String {
    format!("look into it, or remove it and keep what is in it as a patch: `gt polecat nuke {rig}/{name} --force`")
}

/// Removes the worktree; what would be lost with it is put somewhere else first.
fn clear(store: &mut Store, town: &Town, polecat: &Polecat, path: &Path, is_forced: bool) -> Result<Left, Failure> {
    let repository = repository(store, &polecat.rig, path);
    if !is_forced {
        let undeleted = match repository {
            Some(repository) => worktree::remove(&repository, path),
            None if path.exists() => worktree::repository_of(path).map(|_| None),
            None => Ok(None),
        };
        return Ok(Left { salvaged: None, undeleted: undeleted.map_err(|error| refused(&error))? });
    }
    // What is written after this is not deleted unseen.
    let seen = Fingerprint::of(path);
    let salvaged = if path.exists() { salvage(town, polecat, path)? } else { None };
    let Some(repository) = repository else { return Ok(Left { salvaged, undeleted: None }) };
    let undeleted = if path.exists() {
        worktree::remove_saved(&repository, path, &seen, LoneSubmodules::Kept).map_err(|error| refused(&error))?
    } else {
        // Only the repository has traces of it now, and may be gone itself.
        let nothing = Fingerprint::of(path);
        worktree::remove_saved(&repository, path, &nothing, LoneSubmodules::Kept).unwrap_or_default()
    };
    Ok(Left { salvaged, undeleted })
}

fn refused(error: &WorktreeError) -> Failure {
    Failure::new(Kind::Refused, error.to_string())
}

/// The repository that a worktree is of: that of its rig, or where the rig is unknown the one that it names itself.
fn repository(store: &mut Store, rig: &str, path: &Path) -> Option<PathBuf> {
    let of_rig = store.rig(rig).map(|rig| PathBuf::from(rig.path)).ok();
    of_rig.or_else(|| worktree::repository_of(path).ok())
}

fn salvage(town: &Town, polecat: &Polecat, path: &Path) -> Result<Option<Salvaged>, Failure> {
    let own = format!("{}-{}", polecat.rig, polecat.name);
    let run = polecat.run.as_ref().or(polecat.last_run.as_ref()).unwrap_or(&own);
    let (name, dir) = (format!("refs/gt/salvage/{run}"), town.salvage_dir());
    let file = dir.join(format!("{run}.patch"));
    fs::create_dir_all(&dir).map_err(|source| TownError::Io { doing: "make", path: dir.clone(), source })?;
    match merge::salvage(path, &name, &file) {
        Ok(None) => Ok(None),
        Ok(Some(saved)) if saved.left_out.is_empty() => {
            Ok(Some(Salvaged::Commit { name, commit: saved.commit, patch: file }))
        }
        // Too large, not readable, or a repository of its own.
        Ok(Some(_)) => Ok(Some(Salvaged::Directory { path: set_aside(path, &dir, run)? })),
        // Git cannot look into it, or it is no worktree any more.
        Err(_) => {
            keep_commits(path, &format!("{name}.head"))?;
            Ok(Some(Salvaged::Directory { path: set_aside(path, &dir, run)? }))
        }
    }
}

/// Commits that are on no branch are forgotten with the worktree, wherever its files are.
fn keep_commits(path: &Path, name: &str) -> Result<(), TownError> {
    if worktree::repository_of(path).is_err() || worktree::branch(path)?.is_some() {
        return Ok(());
    }
    if let Some(commit) = merge::find_commit(path, "HEAD")? {
        merge::keep(path, name, &commit)?;
    }
    Ok(())
}

/// Moves a directory to where it is kept like a patch: from now on.
fn set_aside(path: &Path, dir: &Path, name: &str) -> Result<PathBuf, TownError> {
    let io = |source| TownError::Io { doing: "move", path: path.to_owned(), source };
    let mut places = (1..=u32::MAX).map(|n| dir.join(format!("{name}.{n}")));
    let place = places.find(|place| !place.exists()).unwrap_or_else(|| dir.join(name));
    fs::File::open(path).and_then(|opened| opened.set_modified(SystemTime::now())).map_err(io)?;
    fs::rename(path, &place).map_err(io)?;
    Ok(place)
}

fn salvaged_words(salvaged: &Salvaged) -> String {
    match salvaged {
        Salvaged::Commit { name, patch, .. } => {
            format!("What was not committed is kept in {} (`git apply --3way`) and as {name}.", patch.display())
        }
        Salvaged::Directory { path } => format!("Its directory was moved to {}.", path.display()),
    }
}

fn salvaged_json(salvaged: &Salvaged) -> Value {
    match salvaged {
        Salvaged::Commit { name, commit, patch } => {
            json!({ "ref": name, "commit": commit, "patch": patch, "directory": null })
        }
        Salvaged::Directory { path } => json!({ "ref": null, "commit": null, "patch": null, "directory": path }),
    }
}
