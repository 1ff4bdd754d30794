//! Registering rigs: finding or cloning the repository, choosing prefix and branch. // SPEC T3

use std::path::{Path, PathBuf};

use gt_core::refusal::Refusal;
use gt_core::rig::{self, Rig, RigState};
use gt_store::{Stamp, Store};

use crate::error::TownError;
use crate::git;
use crate::town::Town;

/// Where clones of rigs given by URL lie.
const CLONES_DIR: &str = "rigs";

/// What somebody asked to register.
#[derive(Debug, Clone)]
pub struct RigRequest {
    pub name: String,
    /// A local path or a URL.
    pub source: String,
    pub prefix: Option<String>,
    pub branch: Option<String>,
}

/// A registered rig, and what is odd about it.
#[derive(Debug, Clone)]
pub struct NewRig {
    pub rig: Rig,
    pub warning: Option<String>,
}

/// Registers a rig. What can be refused is refused before anything is cloned; a dry run keeps no clone.
pub fn add(
    town: &Town,
    store: &mut Store,
    request: &RigRequest,
    is_dry_run: bool,
    stamp: &Stamp,
) -> Result<NewRig, TownError> {
    let rigs = store.rigs()?;
    rig::check_name(&request.name).map_err(Refusal::from)?;
    if rigs.iter().any(|known| known.name == request.name) {
        return Err(Refusal::RigExists { name: request.name.clone() }.into());
    }
    let prefix = request.prefix.clone().unwrap_or_else(|| rig::derive_prefix(&request.name));
    rig::check_prefix(&prefix, &rigs).map_err(Refusal::from)?;
    let place = find_repository(town, request)?;
    let branch = choose_branch(&place.path, request.branch.as_deref()).inspect_err(|_| place.discard())?;
    let warning = (!git::has_commits(&place.path)?).then(|| {
        format!(
            "the repository has no commit yet; make one with `git -C {} commit --allow-empty -m start`",
            place.path.display()
        )
    });
    let rig = Rig {
        name: request.name.clone(),
        prefix,
        path: place.path.display().to_string(),
        url: place.url.clone(),
        branch,
        state: RigState::Active,
    };
    store.add_rig(&rig, stamp)?;
    if is_dry_run {
        place.discard();
    }
    Ok(NewRig { rig, warning })
}

struct Place {
    path: PathBuf,
    url: Option<String>,
    /// Cloned just now, for this rig.
    is_new: bool,
}

impl Place {
    /// Takes back a fresh clone of a rig that is refused after all.
    fn discard(&self) {
        if self.is_new {
            // The refusal is what matters; a rest is found and used by the next attempt.
            std::fs::remove_dir_all(&self.path).unwrap_or_default();
        }
    }
}

fn find_repository(town: &Town, request: &RigRequest) -> Result<Place, TownError> {
    let path = Path::new(&request.source);
    if path.exists() {
        let path = path.canonicalize().map_err(|source| TownError::io("look at", path, source))?;
        return match git::repository_at(&path)? {
            Some(top) => Ok(Place { path: top, url: None, is_new: false }),
            None => Err(no_repository(path)),
        };
    }
    if !is_url(&request.source) {
        return Err(TownError::NoSuchPath { path: path.to_owned() });
    }
    clone(town, request)
}

fn no_repository(path: PathBuf) -> TownError {
    match git::top_around(&path) {
        Ok(Some(top)) => TownError::InsideRepository { path, top },
        _ => TownError::NotARepository { path },
    }
}

fn clone(town: &Town, request: &RigRequest) -> Result<Place, TownError> {
    let target = town.root().join(CLONES_DIR).join(&request.name);
    let url = Some(request.source.clone());
    // A clone left by an attempt that did not get as far as the registry is used, not made again.
    if target.exists() && git::repository_at(&target)?.is_some() {
        return match git::origin(&target)? {
            origin if origin == url => Ok(Place { path: target, url, is_new: false }),
            _ => Err(TownError::OtherClone { path: target }),
        };
    }
    git::clone(&request.source, &target)?;
    Ok(Place { path: target, url, is_new: true })
}

/// `scheme://…`, or `host:path` as ssh users write it.
fn is_url(source: &str) -> bool {
    source.contains("://")
        || source
            .split_once(':')
            .is_some_and(|(host, path)| !host.is_empty() && !path.is_empty() && !host.contains('/') && host.len() > 1)
}

fn choose_branch(repository: &Path, wanted: Option<&str>) -> Result<String, TownError> {
    match wanted {
        Some(branch) if git::has_branch(repository, branch)? => Ok(branch.to_owned()),
        Some(branch) => {
            Err(TownError::NoSuchBranch { path: repository.to_owned(), branch: gt_core::text::one_line(branch) })
        }
        None => Ok(git::default_branch(repository)?.unwrap_or_else(|| "main".to_owned())),
    }
}
