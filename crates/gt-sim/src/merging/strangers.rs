//! People and their repositories: they commit, push, take back, edit files, rebase and switch branches as they like; origins
//! that go away or let nobody push.

use std::collections::BTreeMap;
use std::path::Path;

use super::tools::{is_free, move_here, move_there, own_branch, persons_commit, refresh, roots, words};
use super::{FILES, TARGETS, forge};
use crate::git::gates::is_sound;
use crate::git::{Author, Head, Id, Mood, here};
use crate::part::Part;
use crate::stage::Stage;
use crate::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// A commit on a target here.
    Commit,
    /// The commits of a target here are pushed.
    Push,
    /// A commit of somebody else's comes to the origin.
    CommitThere,
    /// The last commit is taken off a target here.
    TakeBack,
    /// The same at the origin, by force.
    TakeBackThere,
    /// The last commit of a target here is made anew.
    Amend,
    Edit,
    /// What was edited is committed, or thrown away.
    PutAway,
    Switch,
    Rebase,
    EndRebase,
    Away,
    Well,
    Forge,
    /// The branch of a polecat is deleted, though somebody may want it.
    DeleteBranch,
}

const DEEDS: [(Deed, usize); 15] = [
    (Deed::Commit, 3),
    (Deed::Push, 4),
    (Deed::CommitThere, 3),
    (Deed::TakeBack, 2),
    (Deed::TakeBackThere, 1),
    (Deed::Amend, 2),
    (Deed::Edit, 4),
    (Deed::PutAway, 4),
    (Deed::Switch, 2),
    (Deed::Rebase, 1),
    (Deed::EndRebase, 3),
    (Deed::Away, 1),
    (Deed::Well, 3),
    (Deed::Forge, 6),
    (Deed::DeleteBranch, 2),
];

pub(super) struct Strangers {
    habits: Vec<Deed>,
    is_peace: bool,
}

impl Strangers {
    pub(super) fn new(stage: &Stage) -> Strangers {
        let mut world = stage.world().lock();
        let mut habits = vec![Deed::PutAway, Deed::EndRebase, Deed::Well, Deed::Forge];
        for (deed, weight) in DEEDS {
            let times = [0, 0, 1, 3][world.rng.usize(0..4)];
            habits.extend(std::iter::repeat_n(deed, weight * times));
        }
        Strangers { habits, is_peace: false }
    }
}

impl Part for Strangers {
    fn weight(&self, _stage: &Stage) -> u32 {
        7
    }

    fn act(&mut self, stage: &mut Stage) {
        let roots = roots(stage);
        let (deed, root, target) = {
            let mut world = stage.world().lock();
            let deed = world.pick(&self.habits).unwrap_or(Deed::Well);
            (deed, roots[world.rng.usize(0..roots.len())].clone(), TARGETS[world.rng.usize(0..3) / 2])
        };
        let did = deed_of(&mut stage.world().lock(), deed, &root, target);
        if let Some(what) = did {
            stage.world().tell(|| format!("a person: {deed:?} {target} of {}: {what}", root.display()));
        }
    }

    fn heal(&mut self, _stage: &mut Stage) {
        self.is_peace = true;
    }

    /// Everything that only a person can mend.
    fn tidy(&mut self, stage: &mut Stage) {
        for root in roots(stage) {
            let mut world = stage.world().lock();
            tidy(&mut world, &root);
        }
    }

    fn work(&mut self, stage: &mut Stage) -> bool {
        self.is_peace && roots(stage).iter().any(|root| forge::judge_all(&mut stage.world().lock(), root))
    }
}

/// Does it, and says what it was; `None`: it is not possible now.
fn deed_of(world: &mut World, deed: Deed, root: &Path, target: &str) -> Option<String> {
    match deed {
        Deed::Commit => {
            let on = movable(world, root, target)?;
            let new = persons_commit(world, &on, false);
            Some(set_here(world, root, target, &new))
        }
        Deed::Amend => {
            let on = movable(world, root, target)?;
            let parent = world.git.objects.get(&on).parents.first()?.clone();
            let new = persons_commit(world, &parent, false);
            Some(set_here(world, root, target, &new))
        }
        Deed::TakeBack => {
            let on = movable(world, root, target)?;
            let parent = world.git.objects.get(&on).parents.first()?.clone();
            Some(set_here(world, root, target, &parent))
        }
        Deed::Push => {
            let tip = world.git.resolve(root, &here(target))?;
            push(world, root, target, &tip, false)
        }
        Deed::CommitThere => {
            let on = world.git.repositories[root].origin.as_ref()?.refs.get(&here(target))?.clone();
            let new = persons_commit(world, &on, false);
            move_there(&mut world.git, root, target, &new, false);
            Some(format!("{new:.24}"))
        }
        Deed::TakeBackThere => {
            let on = world.git.repositories[root].origin.as_ref()?.refs.get(&here(target))?.clone();
            let parent = world.git.objects.get(&on).parents.first()?.clone();
            move_there(&mut world.git, root, target, &parent, false);
            Some(format!("{parent:.24}"))
        }
        Deed::Forge => forge::judge_one(world, root),
        Deed::DeleteBranch => delete_branch(world, root),
        Deed::Away | Deed::Well => {
            let is_away = world.rng.bool();
            let origin = world.git.repositories.get_mut(root)?.origin.as_mut()?;
            let trouble = if is_away { Mood::Away } else { Mood::Closed };
            origin.mood = if deed == Deed::Well { Mood::Well } else { trouble };
            Some(format!("{:?}", origin.mood))
        }
        other => in_checkout(world, other, root, target),
    }
}

/// A branch that nobody has checked out, and whose commits the town has kept.
fn delete_branch(world: &mut World, root: &Path) -> Option<String> {
    let repository = &world.git.repositories[root];
    let kept: Vec<&String> =
        repository.refs.iter().filter(|(name, _)| name.starts_with("refs/gt/")).map(|one| one.1).collect();
    let is_idle = |name: &str| repository.checkouts_of(name).is_empty();
    let own = repository.refs.iter().filter_map(|(name, id)| Some((name.strip_prefix("refs/heads/polecat/")?, id)));
    let own = own.map(|(name, id)| (format!("polecat/{name}"), id));
    let names: Vec<String> =
        own.filter(|(name, id)| is_idle(name) && kept.contains(id)).map(|(name, _)| name).collect();
    let name = world.pick(&names)?;
    world.git.repositories.get_mut(root)?.refs.remove(&here(&name));
    Some(name)
}

fn in_checkout(world: &mut World, deed: Deed, root: &Path, target: &str) -> Option<String> {
    let branch = own_branch(&world.git, root)?;
    if deed == Deed::EndRebase {
        world.git.repositories.get_mut(root)?.checkouts.get_mut(root)?.rebases.take()?;
        return Some(branch);
    }
    if deed == Deed::Edit {
        let file = if world.rng.u32(0..4) == 0 { "new" } else { FILES[world.rng.usize(0..FILES.len())] };
        let content = format!("mine-{}", world.rng.u32(0..1000));
        world.git.edits.entry(root.to_path_buf()).or_default().insert(file.to_owned(), content.clone());
        world.git.write(root, file, Some(&content));
        return Some(format!("{file}: {content}"));
    }
    if !is_free(&world.git, root) {
        return None;
    }
    match deed {
        Deed::PutAway => {
            let edits = world.git.edits.remove(root)?;
            let commits = world.rng.bool();
            if commits {
                let mut tree = world.git.head_tree(root);
                tree.extend(edits.into_keys().map(|file| (file, words(world, true))));
                let (old, at) = (world.git.resolve(root, "HEAD")?, world.now().as_second());
                let parents = std::slice::from_ref(&old);
                let new = world.git.objects.add(parents, tree, "a person's edits", Author::Person, at);
                move_here(&mut world.git, root, &branch, &new);
            }
            refresh(&mut world.git, root);
            Some(if commits { "committed" } else { "thrown away" }.to_owned())
        }
        Deed::Switch if world.git.edits.get(root).is_none_or(BTreeMap::is_empty) => {
            let to = if branch == target { "elsewhere" } else { target };
            if world.git.resolve(root, &here(to)).is_none() {
                let tip = world.git.resolve(root, "HEAD")?;
                world.git.repositories.get_mut(root)?.set_branch(to, &tip, false);
            }
            world.git.repositories.get_mut(root)?.checkouts.get_mut(root)?.head = Head::Branch(to.to_owned());
            refresh(&mut world.git, root);
            Some(to.to_owned())
        }
        Deed::Rebase => {
            world.git.repositories.get_mut(root)?.checkouts.get_mut(root)?.rebases = Some(branch.clone());
            Some(branch)
        }
        _ => None,
    }
}

/// Where a target is that a person can move: nothing is half done in the checkout, and nothing was edited there.
fn movable(world: &World, root: &Path, target: &str) -> Option<String> {
    let is_checked_out = own_branch(&world.git, root).as_deref() == Some(target);
    let has_edits = world.git.edits.get(root).is_some_and(|edits| !edits.is_empty());
    let is_movable = !is_checked_out || (is_free(&world.git, root) && !has_edits);
    world.git.resolve(root, &here(target)).filter(|_| is_movable)
}

fn set_here(world: &mut World, root: &Path, target: &str, new: &str) -> String {
    move_here(&mut world.git, root, target, &new.to_owned());
    if own_branch(&world.git, root).as_deref() == Some(target) {
        refresh(&mut world.git, root);
    }
    format!("{new:.24}")
}

fn push(world: &mut World, root: &Path, target: &str, tip: &str, force: bool) -> Option<String> {
    let origin = world.git.repositories[root].origin.as_ref()?;
    let old = origin.refs.get(&here(target)).cloned();
    let is_forward = old.as_ref().is_none_or(|old| world.git.objects.is_part_of(old, tip));
    if !force && (origin.mood != Mood::Well || !is_forward) {
        return None;
    }
    move_there(&mut world.git, root, target, &tip.to_owned(), true);
    Some(format!("{tip:.24}"))
}

/// People put everything in order: what parted, what is broken, what lies about, what is not pushed.
fn tidy(world: &mut World, root: &Path) {
    if let Some(repository) = world.git.repositories.get_mut(root) {
        repository.locks.clear();
        if let Some(origin) = &mut repository.origin {
            origin.mood = Mood::Well;
        }
        for checkout in repository.checkouts.values_mut() {
            (checkout.rebases, checkout.is_locked) = (None, false);
        }
    }
    world.git.edits.remove(root);
    if is_free(&world.git, root) {
        refresh(&mut world.git, root);
    }
    for target in TARGETS {
        mend(world, root, target);
    }
    publish(world, root);
}

/// What people took off a target and agents still build on is pushed, under a name of its own.
fn publish(world: &mut World, root: &Path) {
    if world.git.repositories[root].origin.is_none() {
        return;
    }
    let tips: Vec<Id> = world.git.repositories[root].refs.values().cloned().collect();
    for tip in tips {
        let own = world.git.unpublished(root, &tip).into_iter();
        let last = own.into_iter().find(|id| world.git.objects.get(id).author == Author::Person);
        if let Some(id) = last {
            move_there(&mut world.git, root, &format!("kept-{id:.12}"), &id, true);
        }
    }
}

fn mend(world: &mut World, root: &Path, target: &str) {
    let Some(mut tip) = world.git.resolve(root, &here(target)) else { return };
    let theirs =
        world.git.repositories[root].origin.as_ref().and_then(|origin| origin.refs.get(&here(target)).cloned());
    if let Some(theirs) = theirs.filter(|theirs| *theirs != tip) {
        let is_ahead = world.git.objects.is_part_of(&tip, &theirs);
        if !is_ahead && !world.git.objects.is_part_of(&theirs, &tip) {
            let (at, tree) = (world.now().as_second(), world.git.objects.tree(&tip).clone());
            tip = world.git.objects.add(&[tip, theirs], tree, "a person merges", Author::Person, at);
        } else if is_ahead {
            tip = theirs;
        }
    }
    if !is_sound(world.git.objects.tree(&tip)) {
        let (at, tree) = (world.now().as_second(), world.git.objects.tree(&tip).clone());
        let tree = super::tools::mended(world, tree);
        tip = world.git.objects.add(&[tip], tree, "a person mends it", Author::Person, at);
    }
    let is_half_way = own_branch(&world.git, root).as_deref() == Some(target) && !is_free(&world.git, root);
    if !is_half_way {
        set_here(world, root, target, &tip);
    }
    push(world, root, target, &tip, true);
}
