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

/// Registers a rig. What can be refused is refused before anything is cloned; a dry run clones nothing.
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
    let place = find_repository(town, request, is_dry_run)?;
    let (branch, warning) = look_at(&place, request.branch.as_deref()).inspect_err(|_| place.discard())?;
    let rig = Rig {
        name: request.name.clone(),
        prefix,
        path: place.path.display().to_string(),
        url: place.url.clone(),
        branch,
        state: RigState::Active,
    };
    store.add_rig(&rig, stamp)?;
    Ok(NewRig { rig, warning })
}

struct Place {
    path: PathBuf,
    url: Option<String>,
    cloned: Cloned,
}

/// Whether the repository of a rig was cloned for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cloned {
    Before,
    Now,
    /// A dry run would have to.
    Not,
}

impl Place {
    /// Takes back a fresh clone of a rig that is refused after all.
    fn discard(&self) {
        if self.cloned == Cloned::Now {
            // The refusal is what matters; a rest is found and used by the next attempt.
            std::fs::remove_dir_all(&self.path).unwrap_or_default();
        }
    }
}

fn find_repository(town: &Town, request: &RigRequest, is_dry_run: bool) -> Result<Place, TownError> {
    let path = Path::new(&request.source);
    if path.exists() {
        let path = path.canonicalize().map_err(|source| TownError::io("look at", path, source))?;
        return match git::repository_at(&path)? {
            Some(top) => Ok(Place { path: top, url: None, cloned: Cloned::Before }),
            None => Err(no_repository(path)),
        };
    }
    if !is_url(&request.source) {
        return Err(TownError::NoSuchPath { path: path.to_owned() });
    }
    clone(town, request, is_dry_run)
}

fn no_repository(path: PathBuf) -> TownError {
    match git::top_around(&path) {
        Ok(Some(top)) => TownError::InsideRepository { path, top },
        _ => TownError::NotARepository { path },
    }
}

fn clone(town: &Town, request: &RigRequest, is_dry_run: bool) -> Result<Place, TownError> {
    let target = town.root().join(CLONES_DIR).join(&request.name);
    let url = Some(request.source.clone());
    // A clone left by an attempt that did not get as far as the registry is used, not made again.
    if target.exists() && git::repository_at(&target)?.is_some() {
        return match git::origin(&target)? {
            origin if origin == url => Ok(Place { path: target, url, cloned: Cloned::Before }),
            _ => Err(TownError::OtherClone { path: target }),
        };
    }
    if is_dry_run {
        return Ok(Place { path: target, url, cloned: Cloned::Not });
    }
    git::clone(&request.source, &target)?;
    Ok(Place { path: target, url, cloned: Cloned::Now })
}

/// `scheme://…`, or `host:path` as ssh users write it.
fn is_url(source: &str) -> bool {
    source.contains("://")
        || source
            .split_once(':')
            .is_some_and(|(host, path)| !host.is_empty() && !path.is_empty() && !host.contains('/') && host.len() > 1)
}

/// The branch of a repository, and what is odd about it.
fn look_at(place: &Place, wanted: Option<&str>) -> Result<(String, Option<String>), TownError> {
    if place.cloned == Cloned::Not {
        let warning = "a dry run clones nothing: neither the address nor the branch was checked";
        return Ok((wanted.unwrap_or("HEAD").to_owned(), Some(warning.to_owned())));
    }
    let branch = choose_branch(&place.path, wanted)?;
    if git::has_commits(&place.path)? {
        return Ok((branch, None));
    }
    let path = place.path.display();
    let advice = if git::is_bare(&place.path)? {
        format!("push one from a repository that has some: `git push {path} HEAD:{branch}`")
    } else {
        format!("make one with `git -C {path} commit --allow-empty -m start`")
    };
    Ok((branch, Some(format!("the repository has no commit yet; {advice}"))))
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
