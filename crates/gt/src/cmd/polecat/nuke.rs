//! `gt polecat nuke`: a worker and its worktree go, the work never does. // SPEC P8

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use gt_core::refusal::Refusal;
use gt_engine::{Town, TownError};
use gt_runtime::{merge, worktree};
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
    let salvaged = match path.filter(|_| !context.is_dry_run()) {
        None => None,
        Some(path) => match clear(&mut store, &town, &polecat, path, args.force) {
            Ok(salvaged) => salvaged,
            Err(error) => {
                store.keep_polecat(rig, name, polecat.kept.as_deref(), &context.stamp())?;
                return Err(error.hint(by_force(rig, name)));
            }
        },
    };
    if !store.forget_polecat(rig, name, &context.stamp())? {
        return Err((&busy()).into());
    }
    if context.wants_json() {
        let salvage = salvaged.as_ref().map(salvaged_json);
        return context.json(&json!({ "polecat": format!("{rig}/{name}"), "outcome": "nuked", "salvage": salvage }));
    }
    let kept = salvaged.as_ref().map(|salvaged| format!("\n{}", salvaged_words(salvaged))).unwrap_or_default();
    context.say(&format!("{rig}/{name} is gone; its branches stay.{kept}"))
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
fn clear(
    store: &mut Store,
    town: &Town,
    polecat: &Polecat,
    path: &Path,
    is_forced: bool,
) -> Result<Option<Salvaged>, Failure> {
    let salvaged = if is_forced && path.exists() { salvage(town, polecat, path)? } else { None };
    remove(store, town, &polecat.rig, path, is_forced)?;
    Ok(salvaged)
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
        // Too large, not readable, or no worktree any more.
        Ok(Some(_)) | Err(_) => Ok(Some(Salvaged::Directory { path: set_aside(path, &dir, run)? })),
    }
}

/// Moves a directory to where nobody clears it.
fn set_aside(path: &Path, dir: &Path, name: &str) -> Result<PathBuf, TownError> {
    let mut places = (1..=u32::MAX).map(|n| dir.join(format!("{name}.{n}")));
    let place = places.find(|place| !place.exists()).unwrap_or_else(|| dir.join(name));
    fs::rename(path, &place).map_err(|source| TownError::Io { doing: "move", path: path.to_owned(), source })?;
    Ok(place)
}

/// By git where the repository is known; what is left of one that is gone is a plain directory.
fn remove(store: &mut Store, town: &Town, rig: &str, path: &Path, is_forced: bool) -> Result<(), Failure> {
    let removed = match store.rig(rig) {
        Ok(rig) => worktree::remove(Path::new(&rig.path), path, is_forced).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let is_ours = path.starts_with(town.state_dir().join("polecats"));
    match removed {
        Ok(()) => Ok(()),
        Err(_) if is_forced && is_ours => fs::remove_dir_all(path)
            .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
            .map_err(|source| TownError::Io { doing: "remove", path: path.to_owned(), source }.into()),
        Err(why) => Err(Failure::new(Kind::Refused, why)),
    }
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
