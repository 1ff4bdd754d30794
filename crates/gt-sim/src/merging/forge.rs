//! Where pull requests are merged, squashed or closed.

use std::path::Path;

use super::tools::move_there;
use crate::git::origin::RequestState;
use crate::git::{Author, here};
use crate::world::World;

/// Decides about one of the open requests.
pub(super) fn judge_one(world: &mut World, root: &Path) -> Option<String> {
    let open = world.git.repositories[root].requests.iter();
    let open: Vec<String> =
        open.filter(|(_, request)| request.state == RequestState::Open).map(|(name, _)| name.clone()).collect();
    let name = world.pick(&open)?;
    let how = world.rng.u32(0..4);
    decide(world, root, &name, how)
}

/// In peace every request is merged; says whether there was one.
pub(super) fn judge_all(world: &mut World, root: &Path) -> bool {
    let open = world.git.repositories[root].requests.iter();
    let name = open.filter(|(_, request)| request.state == RequestState::Open).map(|(name, _)| name.clone()).next();
    name.is_some_and(|name| decide(world, root, &name, 0).is_some())
}

fn decide(world: &mut World, root: &Path, name: &str, how: u32) -> Option<String> {
    let request = world.git.repositories[root].requests.get(name)?.clone();
    let has_origin = world.git.repositories[root].origin.is_some();
    let merged =
        if how < 3 && has_origin { merged(world, root, &request.target, &request.tip, how == 2) } else { None };
    let state = if merged.is_some() { RequestState::Merged } else { RequestState::Closed };
    if let Some(new) = &merged {
        move_there(&mut world.git, root, &request.target, new, false);
    }
    world.git.repositories.get_mut(root)?.requests.get_mut(name)?.state = state;
    Some(format!("{name} is {state:?}"))
}

/// What the origin makes of it: a merge, or one commit with the same changes.
fn merged(world: &mut World, root: &Path, target: &str, tip: &str, squashes: bool) -> Option<String> {
    let base = world.git.repositories[root].origin.as_ref()?.refs.get(&here(target))?.clone();
    if world.git.objects.is_part_of(tip, &base) {
        return Some(base);
    }
    let tree = world.git.objects.merge_trees(&base, tip)?.ok()?;
    let parents = if squashes { vec![base] } else { vec![base, tip.to_owned()] };
    let at = world.now().as_second();
    Some(world.git.objects.add(&parents, tree, "merged by the forge", Author::Refinery, at))
}
