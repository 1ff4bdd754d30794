//! What the parts of a town of merging share: where repositories are, and what files can say.

use std::path::{Path, PathBuf};

use crate::git::gates::{BROKEN, CLASH, ENDLESS};
use crate::git::origin::SECRET;
use crate::git::{Author, GitWorld, Head, Id, Move, Tree, here, there};
use crate::knobs::RIGS;
use crate::stage::{Stage, rig};
use crate::world::World;

pub(super) fn roots(stage: &Stage) -> Vec<PathBuf> {
    RIGS.iter().map(|(name, prefix)| PathBuf::from(rig(name, prefix, &stage.ground.town).path)).collect()
}

pub(super) fn root_of(stage: &Stage, name: &str) -> PathBuf {
    PathBuf::from(rig(name, "", &stage.ground.town).path)
}

/// What somebody writes: most of it passes every gate.
pub(super) fn words(world: &mut World, is_good: bool) -> String {
    let n = world.rng.u32(1..1_000_000);
    let content = match world.rng.u32(0..24) {
        0 | 1 => BROKEN,
        2 | 3 => CLASH,
        4 => ENDLESS,
        5 => SECRET,
        _ => "text",
    };
    format!("{}-{n}", if is_good { "text" } else { content })
}

/// Takes out whatever would not pass.
pub(super) fn mended(world: &mut World, mut tree: Tree) -> Tree {
    for content in tree.values_mut().filter(|content| !content.starts_with("text") && !content.starts_with("by ")) {
        *content = words(world, true);
    }
    tree
}

/// A person moves a branch of a repository.
pub(super) fn move_here(git: &mut GitWorld, root: &Path, branch: &str, new: &Id) {
    let old = git.resolve(root, &here(branch));
    if let Some(repository) = git.repositories.get_mut(root) {
        repository.set_branch(branch, new, false);
    }
    note(git, root, branch, old, new, false);
}

/// A person moves a branch of the origin.
pub(super) fn move_there(git: &mut GitWorld, root: &Path, branch: &str, new: &Id, is_known: bool) {
    let Some(repository) = git.repositories.get_mut(root) else { return };
    let Some(origin) = &mut repository.origin else { return };
    let old = origin.refs.insert(here(branch), new.clone());
    if is_known {
        repository.refs.insert(there(branch), new.clone());
    }
    note(git, root, branch, old, new, true);
}

fn note(git: &mut GitWorld, root: &Path, branch: &str, old: Option<Id>, new: &Id, at_origin: bool) {
    let (branch, new) = (branch.to_owned(), new.clone());
    git.moves.push(Move { repository: root.to_path_buf(), at_origin, branch, old, new, by_refinery: false });
}

/// A commit of a person's on top of another.
pub(super) fn persons_commit(world: &mut World, on: &Id, is_good: bool) -> Id {
    let file = super::FILES[world.rng.usize(0..super::FILES.len())];
    let mut tree = world.git.objects.tree(on).clone();
    let content = words(world, is_good);
    tree.insert(file.to_owned(), content);
    let (at, n) = (world.now().as_second(), world.rng.u32(0..1000));
    world.git.objects.add(std::slice::from_ref(on), tree, &format!("a person's {n}"), Author::Person, at)
}

/// Somebody who helps an agent commits to its branch, wherever that is checked out.
pub(super) fn commit_to(world: &mut World, root: &Path, branch: &str) -> Option<Id> {
    let file = super::FILES[world.rng.usize(0..super::FILES.len())];
    let (content, at) = (words(world, false), world.now().as_second());
    let place = world.git.repositories[root].checkouts_of(branch).first().cloned();
    if let Some(place) = place {
        world.git.write(&place, file, Some(&content));
        return world.git.commit_all(&place, "help", Author::Agent, at);
    }
    let tip = world.git.resolve(root, &here(branch))?;
    let mut tree = world.git.objects.tree(&tip).clone();
    tree.insert(file.to_owned(), content);
    let new = world.git.objects.add(&[tip], tree, "help", Author::Agent, at);
    world.git.repositories.get_mut(root)?.set_branch(branch, &new, true);
    Some(new)
}

/// Whether a person can work in the checkout of a repository: nothing is half done there.
pub(super) fn is_free(git: &GitWorld, root: &Path) -> bool {
    let checkout = git.repositories[root].checkouts.get(root);
    checkout.is_none_or(|checkout| checkout.note.is_none() && !checkout.is_locked && checkout.rebases.is_none())
}

/// Puts the files of the checkout to what its head has, save for what a person has edited.
pub(super) fn refresh(git: &mut GitWorld, root: &Path) {
    let tree = git.head_tree(root);
    let edits = git.edits.get(root).cloned().unwrap_or_default();
    let Some(repository) = git.repositories.get_mut(root) else { return };
    if let Some(checkout) = repository.checkouts.get_mut(root) {
        (checkout.index, checkout.files) = (tree.clone(), tree);
        for (file, content) in edits {
            checkout.files.insert(file, content);
        }
    }
}

/// The branch that is checked out in the repository itself.
pub(super) fn own_branch(git: &GitWorld, root: &Path) -> Option<String> {
    match &git.repositories[root].checkouts.get(root)?.head {
        Head::Branch(branch) => Some(branch.clone()),
        Head::Detached(_) => None,
    }
}
