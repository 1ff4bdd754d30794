//! The graph that a convoy is planned from: beads in the order of their ids, edges as numbers. // SPEC C2
//!
//! Beads are numbered by their ids, so whatever comes out of a plan has one order, whichever way it was read in.
//! Edges are kept in both directions in two flat lists each, so that a million beads fit and are walked in one sweep.

use crate::edge::EdgeType;
use crate::rig::RigState;
use crate::status::Status;

/// A bead as planning sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub id: String,
    pub title: String,
    /// The type, where it is not `task`.
    pub kind: Option<Box<str>>,
    pub status: Status,
    pub priority: i64,
    /// Where its work would be done: a place in `rigs`.
    pub rig: Option<u32>,
    /// Whether it is one of those that are planned; others are only what those wait for.
    pub is_member: bool,
    /// Whether dispatch takes it: a type that agents work on, and no short-lived record.
    pub is_slingable: bool,
    /// For an epic: whether its work has a branch of its own.
    pub has_branch: bool,
}

impl Spot {
    /// A member of type `task` that is open and at home nowhere.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Spot {
        Spot {
            id: id.into(),
            title: title.into(),
            kind: None,
            status: Status::Open,
            priority: crate::bead::DEFAULT_PRIORITY,
            rig: None,
            is_member: true,
            is_slingable: true,
            has_branch: false,
        }
    }

    pub fn type_word(&self) -> &str {
        self.kind.as_deref().unwrap_or("task")
    }

    pub fn is_epic(&self) -> bool {
        self.type_word() == "epic"
    }

    /// Whether a wave can hold it.
    pub fn is_task(&self) -> bool {
        self.is_member && self.is_slingable && self.status.is_active()
    }
}

/// A rig that beads of the graph belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub name: String,
    pub state: RigState,
}

/// An edge between two beads, by their places in the list that the graph is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub source: u32,
    pub target: u32,
    pub kind: LinkKind,
}

/// What an edge means for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// The target holds the source back.
    Holds,
    /// It would, but what it waited for has happened.
    Held,
    /// The target is the source's parent.
    Parent,
}

impl LinkKind {
    /// What an edge of this type means; `None` where a plan does not look at it.
    pub fn of(kind: &EdgeType, holds: bool) -> Option<LinkKind> {
        match kind {
            EdgeType::ParentChild => Some(LinkKind::Parent),
            _ if kind.is_blocking() => Some(if holds { LinkKind::Holds } else { LinkKind::Held }),
            _ => None,
        }
    }
}

/// For each bead the beads at the other ends of its edges, in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Rows {
    /// Sorts pairs into rows by counting, in two passes, so that both ends of every row are in order.
    fn of(n: usize, pairs: &[(u32, u32)]) -> Rows {
        let by_end = sort_by(n, pairs, |(_, end)| end);
        let sorted = sort_by(n, &by_end, |(start, _)| start);
        let mut rows = Rows { starts: Vec::with_capacity(n + 1), ends: Vec::with_capacity(pairs.len()) };
        let mut rest = sorted.iter().copied().peekable();
        for at in 0..n as u32 {
            rows.starts.push(rows.ends.len() as u32);
            let mut last = None;
            while let Some((_, end)) = rest.next_if(|(start, _)| *start == at) {
                if last != Some(end) {
                    rows.ends.push(end);
                }
                last = Some(end);
            }
        }
        rows.starts.push(rows.ends.len() as u32);
        rows
    }

    pub fn row(&self, at: u32) -> &[u32] {
        &self.ends[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }

    pub fn n_pairs(&self) -> usize {
        self.ends.len()
    }
}

fn sort_by(n: usize, pairs: &[(u32, u32)], by: impl Fn((u32, u32)) -> u32) -> Vec<(u32, u32)> {
    let mut places = vec![0_u32; n + 1];
    for pair in pairs {
        places[by(*pair) as usize + 1] += 1;
    }
    for at in 1..places.len() {
        places[at] += places[at - 1];
    }
    let mut sorted = vec![(0, 0); pairs.len()];
    for pair in pairs {
        let place = &mut places[by(*pair) as usize];
        sorted[*place as usize] = *pair;
        *place += 1;
    }
    sorted
}

/// Beads that go together, with all that they wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    spots: Vec<Spot>,
    places: Vec<Place>,
    blockers: Rows,
    dependents: Rows,
    /// Every blocking edge between members, those that hold nothing back any more included.
    is_linked: Vec<bool>,
    parents: Rows,
    children: Rows,
}

impl Graph {
    /// Numbers the beads by their ids. Of two beads with one id the first stays.
    pub fn new(spots: Vec<Spot>, places: Vec<Place>, links: &[Link]) -> Graph {
        let (spots, number) = in_order(spots);
        let n = spots.len();
        let pairs = |kind: LinkKind| {
            let of_kind = links.iter().filter(move |link| link.kind == kind);
            of_kind.map(|link| (number[link.source as usize], number[link.target as usize]))
        };
        let holding: Vec<(u32, u32)> = pairs(LinkKind::Holds).collect();
        let parents: Vec<(u32, u32)> = pairs(LinkKind::Parent).filter(|(child, parent)| child != parent).collect();
        let mut is_linked = vec![false; n];
        for (source, target) in holding.iter().copied().chain(pairs(LinkKind::Held)) {
            if spots[source as usize].is_member && spots[target as usize].is_member {
                is_linked[source as usize] = true;
                is_linked[target as usize] = true;
            }
        }
        let turned = |pairs: &[(u32, u32)]| pairs.iter().map(|(a, b)| (*b, *a)).collect::<Vec<_>>();
        Graph {
            blockers: Rows::of(n, &holding),
            dependents: Rows::of(n, &turned(&holding)),
            parents: Rows::of(n, &parents),
            children: Rows::of(n, &turned(&parents)),
            is_linked,
            spots,
            places,
        }
    }

    pub fn len(&self) -> usize {
        self.spots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spots.is_empty()
    }

    pub fn spot(&self, at: u32) -> &Spot {
        &self.spots[at as usize]
    }

    pub fn id(&self, at: u32) -> &str {
        &self.spots[at as usize].id
    }

    pub fn spots(&self) -> &[Spot] {
        &self.spots
    }

    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The rig of a bead.
    pub fn place(&self, at: u32) -> Option<&Place> {
        self.spots[at as usize].rig.map(|rig| &self.places[rig as usize])
    }

    /// The number of the bead with this id.
    pub fn find(&self, id: &str) -> Option<u32> {
        self.spots.binary_search_by(|spot| spot.id.as_str().cmp(id)).ok().map(|at| at as u32)
    }

    /// What holds a bead back, directly.
    pub fn blockers(&self, at: u32) -> &[u32] {
        self.blockers.row(at)
    }

    /// What a bead holds back, directly.
    pub fn dependents(&self, at: u32) -> &[u32] {
        self.dependents.row(at)
    }

    pub fn parents(&self, at: u32) -> &[u32] {
        self.parents.row(at)
    }

    pub fn children(&self, at: u32) -> &[u32] {
        self.children.row(at)
    }

    /// Whether a blocking edge ties it to another member, whatever has become of that one.
    pub fn is_linked(&self, at: u32) -> bool {
        self.is_linked[at as usize]
    }

    pub fn n_edges(&self) -> usize {
        self.blockers.n_pairs()
    }

    /// The numbers of all beads.
    pub fn all(&self) -> std::ops::Range<u32> {
        0..self.spots.len() as u32
    }
}

/// The beads in the order of their ids, and for each place in the old list its number in the new one.
fn in_order(spots: Vec<Spot>) -> (Vec<Spot>, Vec<u32>) {
    let mut order: Vec<u32> = (0..spots.len() as u32).collect();
    if !spots.is_sorted_by(|a, b| a.id < b.id) {
        order.sort_by(|a, b| spots[*a as usize].id.cmp(&spots[*b as usize].id));
    }
    let mut number = vec![0; spots.len()];
    let mut n_kept = 0_u32;
    let mut old: Vec<Option<Spot>> = spots.into_iter().map(Some).collect();
    let mut kept: Vec<Spot> = Vec::with_capacity(old.len());
    for at in order {
        let spot = old[at as usize].take().expect("each place comes once");
        if kept.last().is_none_or(|last| last.id != spot.id) {
            kept.push(spot);
            n_kept += 1;
        }
        number[at as usize] = n_kept - 1;
    }
    (kept, number)
}
