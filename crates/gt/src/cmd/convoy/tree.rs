//! The dependency tree of a convoy: parts below their epic, and what comes after a task below that task.
//!
//! However wide or deep the graph, the picture stays on a screen or two: what is left out is counted.

use gt_core::convoy::graph::Graph;
use serde_json::{Value, json};

use super::view::{State, View, few};
use crate::fit;
use crate::render::{BOLD, DIM, paint};

/// Beads below one other that are drawn.
const SIBLINGS_MAX: usize = 12;
const DEPTH_MAX: usize = 12;
const LINES_MAX: usize = 60;
/// How deep the JSON form goes: deeper than any tree that people make, and safe for any reader.
const JSON_DEPTH_MAX: usize = 64;

/// What stands below what.
struct Forest {
    roots: Vec<u32>,
    below: Vec<Vec<u32>>,
    /// How many beads each tree has.
    sizes: Vec<usize>,
    /// Whether a bead stands below another because it comes after it, rather than being a part of it.
    comes_after: Vec<bool>,
}

impl Forest {
    /// Each bead stands below its first parent; with `flow`, one without stands below the last that it waits for.
    fn of(view: &View<'_>, flow: bool) -> Forest {
        let graph = view.graph;
        let n = graph.len();
        let mut forest =
            Forest { roots: Vec::new(), below: vec![Vec::new(); n], sizes: vec![1; n], comes_after: vec![false; n] };
        for at in graph.all().filter(|at| graph.spot(*at).is_member) {
            let parent = graph.parents(at).first().copied().filter(|_| view.root != Some(at));
            let before = if flow && parent.is_none() { last_before(view, at) } else { None };
            forest.comes_after[at as usize] = before.is_some();
            match parent.or(before) {
                Some(above) => forest.below[above as usize].push(at),
                None => forest.roots.push(at),
            }
        }
        let key = |at: &u32| (view.plan.wave_of(*at).unwrap_or(u32::MAX), *at);
        forest.below.iter_mut().for_each(|below| below.sort_by_key(key));
        forest.roots.sort_by_key(key);
        forest.count(graph);
        forest
    }

    /// Adds up the sizes from the leaves on.
    fn count(&mut self, graph: &Graph) {
        let mut order: Vec<u32> = Vec::with_capacity(graph.len());
        order.extend(&self.roots);
        let mut next = 0;
        while next < order.len() {
            order.extend(&self.below[order[next] as usize]);
            next += 1;
        }
        for at in order.into_iter().rev() {
            let below: usize = self.below[at as usize].iter().map(|child| self.sizes[*child as usize]).sum();
            self.sizes[at as usize] += below;
        }
    }

    fn n_below(&self, at: u32) -> usize {
        self.sizes[at as usize] - 1
    }
}

/// Of what a task waits for, the one that comes last.
fn last_before(view: &View<'_>, at: u32) -> Option<u32> {
    let before = view.graph.blockers(at).iter().copied().filter(|before| view.plan.wave_of(*before).is_some());
    before.max_by_key(|before| (view.plan.wave_of(*before), std::cmp::Reverse(*before)))
}

/// The tree as lines of the given width.
pub(super) fn draw(view: &View<'_>, width: usize) -> String {
    let forest = Forest::of(view, true);
    let mut drawing = Drawing { view, forest: &forest, width, lines: Vec::new() };
    drawing.branches(&forest.roots, "", 0);
    let Drawing { mut lines, .. } = drawing;
    if lines.len() > LINES_MAX {
        let n_more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(paint(DIM, &format!("… and {n_more} more lines")));
    }
    lines.join("\n")
}

struct Drawing<'v, 'a> {
    view: &'v View<'a>,
    forest: &'v Forest,
    width: usize,
    lines: Vec<String>,
}

impl Drawing<'_, '_> {
    fn branches(&mut self, beads: &[u32], indent: &str, depth: usize) {
        // One more than the limit is drawn rather than counted.
        let n_shown = if beads.len() > SIBLINGS_MAX + 1 { SIBLINGS_MAX } else { beads.len() };
        for (place, at) in beads[..n_shown].iter().copied().enumerate() {
            let is_last = place + 1 == beads.len();
            let (branch, deeper) = match (depth, self.forest.comes_after[at as usize], is_last) {
                (0, ..) => ("", ""),
                (_, false, false) => ("├─ ", "│  "),
                (_, false, true) => ("└─ ", "   "),
                (_, true, false) => ("├▶ ", "│  "),
                (_, true, true) => ("└▶ ", "   "),
            };
            self.line(at, &format!("{indent}{branch}"));
            let below = &self.forest.below[at as usize];
            let deeper = format!("{indent}{deeper}");
            if depth + 1 < DEPTH_MAX && self.lines.len() <= LINES_MAX {
                self.branches(below, &deeper, depth + 1);
            } else if !below.is_empty() {
                self.more(&deeper, self.forest.n_below(at), "below");
            }
        }
        if n_shown < beads.len() {
            let n_more = beads[n_shown..].iter().map(|at| self.forest.sizes[*at as usize]).sum();
            let branch = if depth == 0 { "" } else { "└─ " };
            self.more(&format!("{indent}{branch}"), n_more, "more");
        }
    }

    fn more(&mut self, indent: &str, n: usize, word: &str) {
        self.lines.push(paint(DIM, &format!("{indent}… and {n} {word}")));
    }

    fn line(&mut self, at: u32, indent: &str) {
        let (view, spot) = (self.view, self.view.graph.spot(at));
        let state = view.state(at);
        let aside = aside(view, at, self.forest.comes_after[at as usize]);
        let head = format!("{indent}{} {}  ", state.sign(), spot.id);
        let room = self.width.saturating_sub(fit::columns(&head) + fit::columns(&aside)).max(12);
        let title = fit::cut(&spot.title, room);
        let title = match state {
            State::NoWork => paint(BOLD, &title),
            State::Done => paint(DIM, &title),
            _ => title,
        };
        let id = gt_core::text::one_line(&spot.id);
        self.lines.push(format!("{}{} {id}  {title}{}", paint(DIM, indent), state.painted(), paint(DIM, &aside)));
    }
}

/// What is worth knowing beside the title.
fn aside(view: &View<'_>, at: u32, comes_after: bool) -> String {
    let spot = view.graph.spot(at);
    let kind =
        if spot.is_slingable { String::new() } else { format!("  {}", gt_core::text::one_line(spot.type_word())) };
    let wave = view.plan.wave_of(at).map(|wave| format!("  wave {wave}")).unwrap_or_default();
    let waits_for = view.waits_for(at);
    // Standing below the only thing it waits for says that already.
    let waits = match waits_for.len() {
        0 => String::new(),
        1 if comes_after => String::new(),
        _ => format!("  ← {}", few(&waits_for)),
    };
    format!("{kind}{wave}{waits}")
}

/// The parts below their epics.
pub(super) fn to_json(view: &View<'_>) -> Value {
    let forest = Forest::of(view, false);
    forest.roots.iter().map(|at| node_json(view, &forest, *at, JSON_DEPTH_MAX)).collect()
}

fn node_json(view: &View<'_>, forest: &Forest, at: u32, depth: usize) -> Value {
    let spot = view.graph.spot(at);
    let below = if depth > 0 { forest.below[at as usize].as_slice() } else { &[] };
    json!({
        "id": spot.id,
        "title": spot.title,
        "type": spot.type_word(),
        "status": spot.status.as_str(),
        "rig": view.rig(at),
        "wave": view.plan.wave_of(at),
        "cut": if depth > 0 { 0 } else { forest.n_below(at) },
        "children": below.iter().map(|child| node_json(view, forest, *child, depth - 1)).collect::<Vec<_>>(),
    })
}
