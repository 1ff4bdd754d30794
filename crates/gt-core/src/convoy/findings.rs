//! What is wrong or odd about a convoy before it is launched, in words. // SPEC C2

use std::collections::BTreeMap;

use super::graph::{Graph, Spot};
use super::plan::{Plan, Source};
use crate::cycle;
use crate::rig::RigState;

/// A wave with more tasks than this is worth a warning.
pub const WAVE_TASKS_MAX: usize = 5;

/// How many beads a sentence names.
const NAMED_MAX: usize = 3;

/// What kind of finding it is; scripts rely on the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    Cycle,
    NoRig,
    Orphan,
    BlockedRig,
    CrossRig,
    Capacity,
    MissingBranch,
    Gated,
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Category::Cycle => "cycle",
            Category::NoRig => "no-rig",
            Category::Orphan => "orphan",
            Category::BlockedRig => "blocked-rig",
            Category::CrossRig => "cross-rig",
            Category::Capacity => "capacity",
            Category::MissingBranch => "missing-branch",
            Category::Gated => "gated",
        }
    }
}

/// One thing that a person should know before a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub category: Category,
    pub beads: Vec<u32>,
    pub message: String,
    pub suggested_fix: String,
}

/// What keeps a convoy from being staged.
pub(super) fn errors(graph: &Graph, rings: &[Vec<u32>]) -> Vec<Finding> {
    let cycles = rings.iter().map(|ring| ring_finding(graph, ring));
    cycles.chain(homeless(graph)).collect()
}

fn ring_finding(graph: &Graph, ring: &[u32]) -> Finding {
    let path: Vec<String> = ring.iter().chain(ring.first()).map(|at| graph.id(*at).to_owned()).collect();
    let (from, to) = (&path[0], &path[1]);
    Finding {
        category: Category::Cycle,
        beads: ring.to_vec(),
        message: format!("these wait for each other: {}", cycle::show(&path)),
        suggested_fix: format!("gt bead dep remove {from} {to}"),
    }
}

fn homeless(graph: &Graph) -> Option<Finding> {
    let beads: Vec<u32> = tasks(graph).filter(|at| graph.spot(*at).rig.is_none()).collect();
    let first = graph.id(*beads.first()?).to_owned();
    let verb = if beads.len() == 1 { "belongs" } else { "belong" };
    Some(Finding {
        category: Category::NoRig,
        message: format!("{} {verb} to no rig", named(graph, &beads)),
        suggested_fix: format!("gt bead update {first} --rig RIG"),
        beads,
    })
}

/// What should be looked at before a launch.
pub(super) fn warnings(graph: &Graph, plan: &Plan, source: Source) -> Vec<Finding> {
    let orphans = (source == Source::Epic).then(|| orphans(graph)).flatten();
    let found = orphans.into_iter().chain(blocked_rigs(graph)).chain(cross_rig(graph)).chain(crowds(graph, plan));
    found.chain(branchless(graph)).chain(gated(graph, plan)).collect()
}

fn tasks(graph: &Graph) -> impl Iterator<Item = u32> {
    graph.all().filter(|at| graph.spot(*at).is_task())
}

fn orphans(graph: &Graph) -> Option<Finding> {
    let beads: Vec<u32> = tasks(graph).filter(|at| !graph.is_linked(*at)).collect();
    let first = graph.id(*beads.first()?).to_owned();
    let verb = if beads.len() == 1 { "is" } else { "are" };
    Some(Finding {
        category: Category::Orphan,
        message: format!("{} {verb} tied to nothing else in the epic by a dependency", named(graph, &beads)),
        suggested_fix: format!("gt bead dep add {first} BEAD"),
        beads,
    })
}

/// Tasks by rig.
fn by_rig(graph: &Graph) -> BTreeMap<&str, (RigState, Vec<u32>)> {
    let mut lists: Vec<Vec<u32>> = vec![Vec::new(); graph.places().len()];
    for at in tasks(graph) {
        if let Some(rig) = graph.spot(at).rig {
            lists[rig as usize].push(at);
        }
    }
    let used = graph.places().iter().zip(lists).filter(|(_, beads)| !beads.is_empty());
    used.map(|(place, beads)| (place.name.as_str(), (place.state, beads))).collect()
}

fn blocked_rigs(graph: &Graph) -> Vec<Finding> {
    let aside = by_rig(graph).into_iter().filter(|(_, (state, _))| *state != RigState::Active);
    let finding = |(name, (state, beads)): (&str, (RigState, Vec<u32>))| {
        let undo = if state == RigState::Docked { "undock" } else { "unpark" };
        Finding {
            category: Category::BlockedRig,
            message: format!("rig `{name}` is {}, so {} will not start", state.as_str(), named(graph, &beads)),
            suggested_fix: format!("gt rig {undo} {name}"),
            beads,
        }
    };
    aside.map(finding).collect()
}

/// Tasks outside the rig that most of them belong to.
fn cross_rig(graph: &Graph) -> Option<Finding> {
    let rigs = by_rig(graph);
    let (main, _) = rigs.iter().max_by_key(|(name, (_, beads))| (beads.len(), std::cmp::Reverse(**name)))?;
    let mut beads: Vec<u32> =
        rigs.iter().filter(|(name, _)| *name != main).flat_map(|(_, (_, beads))| beads.iter().copied()).collect();
    beads.sort_unstable();
    let first = *beads.first()?;
    let (id, rig) = (graph.id(first), graph.place(first).map_or("?", |place| &place.name));
    let verb = if beads.len() == 1 { "belongs" } else { "belong" };
    Some(Finding {
        category: Category::CrossRig,
        message: format!(
            "most tasks belong to rig `{main}`, but {} {verb} elsewhere ({id} to `{rig}`)",
            named(graph, &beads)
        ),
        suggested_fix: format!("gt bead update {id} --rig {main}"),
        beads,
    })
}

fn crowds(graph: &Graph, plan: &Plan) -> Vec<Finding> {
    let crowded = plan.waves().enumerate().filter(|(_, wave)| wave.len() > WAVE_TASKS_MAX);
    let finding = |(at, wave): (usize, &[u32])| {
        let number = at + 1;
        Finding {
            category: Category::Capacity,
            beads: wave.to_vec(),
            message: format!("wave {number} has {} tasks that could all run at once", wave.len()),
            suggested_fix: format!("gt config set scheduler.max_polecats {WAVE_TASKS_MAX}"),
        }
    };
    let mut found: Vec<Finding> = crowded.map(finding).collect();
    if found.len() > NAMED_MAX {
        found = vec![many_crowds(graph, &found)];
    }
    found
}

/// Where waves are many, one sentence says so of all.
fn many_crowds(graph: &Graph, found: &[Finding]) -> Finding {
    let widest = found.iter().map(|finding| finding.beads.len()).max().unwrap_or(0);
    let mut beads: Vec<u32> = found.iter().flat_map(|finding| finding.beads.iter().copied()).collect();
    beads.sort_unstable();
    debug_assert!(beads.len() <= graph.len(), "each is in one wave");
    Finding {
        message: format!("{} waves have more than {WAVE_TASKS_MAX} tasks, up to {widest} at once", found.len()),
        beads,
        ..found[0].clone()
    }
}

/// Epics below the one that is staged whose work has no branch of its own.
fn branchless(graph: &Graph) -> Option<Finding> {
    let is_below = |spot: &Spot, at: u32| {
        let has_parent = graph.parents(at).iter().any(|parent| graph.spot(*parent).is_member);
        spot.is_epic() && spot.is_member && spot.status.is_active() && has_parent
    };
    let beads: Vec<u32> =
        graph.all().filter(|at| is_below(graph.spot(*at), *at) && !graph.spot(*at).has_branch).collect();
    let first = graph.id(*beads.first()?).to_owned();
    let words = match beads.len() {
        1 => "is an epic below this one, and has no branch of its own",
        _ => "are epics below this one, and have no branches of their own",
    };
    Some(Finding {
        category: Category::MissingBranch,
        message: format!("{} {words}", named(graph, &beads)),
        suggested_fix: format!("gt bead label add {first} branch:NAME"),
        beads,
    })
}

fn gated(graph: &Graph, plan: &Plan) -> Option<Finding> {
    let gate = *plan.gated.first()?.by.first()?;
    let beads: Vec<u32> = plan.gated.iter().map(|gated| gated.bead).collect();
    let kind = graph.spot(gate).type_word();
    let verb = if beads.len() == 1 { "waits" } else { "wait" };
    Some(Finding {
        category: Category::Gated,
        message: format!(
            "{} {verb} for what no agent works on, such as {} {} {}",
            named(graph, &beads),
            if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" },
            crate::text::one_line(kind),
            graph.id(gate),
        ),
        suggested_fix: format!("gt close {}", graph.id(gate)),
        beads,
    })
}

/// The first few ids, and how many more there are.
pub fn named(graph: &Graph, beads: &[u32]) -> String {
    let shown: Vec<&str> = beads.iter().take(NAMED_MAX).map(|at| graph.id(*at)).collect();
    match (beads.len().saturating_sub(NAMED_MAX), shown.as_slice()) {
        (0, [before @ .., last]) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        (0, _) => shown.concat(),
        (more, _) => format!("{} and {more} more", shown.join(", ")),
    }
}
