//! Reads what is meant by an epic, a convoy or tasks, and the graph around it, in a few queries whatever its size.

use gt_core::convoy::graph::{Graph, Link, LinkKind, Place, Spot};
use gt_core::convoy::plan::Source;
use gt_core::convoy::refusal::BadStaging;
use gt_core::edge::{EdgeType, gate_of};
use gt_core::readiness::Node;
use gt_core::rig::{self, Home, Rig};
use gt_core::status;
use rusqlite::{Connection, Row};
use rustc_hash::{FxHashMap, FxHashSet};

use super::refusal;
use crate::dispatch::sling::CONVOY_IDS;
use crate::error::Result;
use crate::rows::{self, Key};
use crate::{query, rigs};

/// A label that gives an epic's work a branch of its own.
const BRANCH_LABEL: &str = "branch:";

/// What somebody named. Keys are those of every bead that is planned, the epic itself included.
#[derive(Debug)]
pub(super) enum Meant {
    Epic { id: String, title: String, keys: Vec<Key> },
    Convoy { id: String, title: String, key: Key, keys: Vec<Key> },
    Tasks { first: String, title: String, keys: Vec<Key> },
}

impl Meant {
    pub(super) fn source(&self) -> Source {
        match self {
            Meant::Epic { .. } => Source::Epic,
            Meant::Convoy { .. } => Source::Convoy,
            Meant::Tasks { .. } => Source::Tasks,
        }
    }

    pub(super) fn members(&self) -> &[Key] {
        match self {
            Meant::Epic { keys, .. } | Meant::Convoy { keys, .. } | Meant::Tasks { keys, .. } => keys,
        }
    }

    pub(super) fn epic(&self) -> Option<&str> {
        match self {
            Meant::Epic { id, .. } => Some(id),
            Meant::Convoy { .. } | Meant::Tasks { .. } => None,
        }
    }

    /// How a sentence speaks of it.
    pub(super) fn name(&self) -> String {
        match self {
            Meant::Epic { id, .. } => format!("epic {id}"),
            Meant::Convoy { id, .. } => format!("convoy {id}"),
            Meant::Tasks { first, keys, .. } if keys.len() == 1 => first.clone(),
            Meant::Tasks { keys, .. } => format!("these {} tasks", keys.len()),
        }
    }
}

/// A bead that was named.
struct Named {
    id: String,
    key: Key,
    title: String,
    kind: &'static str,
}

/// Works out what the words mean; a mixture, or two of a kind that goes alone, is refused.
pub(super) fn understand(tx: &Connection, words: &[String]) -> Result<Meant> {
    let named = look_up(tx, words)?;
    let first = &named[0];
    if let Some(other) = named.iter().find(|other| other.kind != first.kind) {
        return Err(refusal(BadStaging::Mixed {
            first: first.id.clone(),
            first_kind: first.kind,
            second: other.id.clone(),
            second_kind: other.kind,
        }));
    }
    if first.kind != TASK && named.len() > 1 {
        let ids = named.iter().map(|one| one.id.clone()).collect();
        return Err(refusal(BadStaging::Several { kind: first.kind, ids }));
    }
    let (id, title, key) = (first.id.clone(), first.title.clone(), first.key);
    Ok(match first.kind {
        EPIC => Meant::Epic { keys: below(tx, key, &id)?, id, title },
        CONVOY => Meant::Convoy { keys: tracked(tx, key)?, id, title, key },
        _ => Meant::Tasks { first: id, keys: named.iter().map(|one| one.key).collect(), title },
    })
}

const EPIC: &str = "epic";
const CONVOY: &str = "convoy";
const TASK: &str = "task";

fn look_up(tx: &Connection, words: &[String]) -> Result<Vec<Named>> {
    let mut query = tx.prepare_cached("SELECT key, title, issue_type FROM bead WHERE id = ?1")?;
    let mut seen = FxHashSet::default();
    let mut named = Vec::new();
    for id in words.iter().filter(|id| seen.insert(id.as_str())) {
        query::require(tx, id)?;
        named.push(query.query_row([id], |row| {
            let kind = match row.get_ref(2)?.as_str_or_null()? {
                _ if id.starts_with(CONVOY_IDS) => CONVOY,
                Some("convoy") => CONVOY,
                Some("epic") => EPIC,
                _ => TASK,
            };
            Ok(Named { id: id.clone(), key: row.get(0)?, title: row.get(1)?, kind })
        })?);
    }
    Ok(named)
}

/// An epic and everything below it, breadth first.
fn below(tx: &Connection, key: Key, id: &str) -> Result<Vec<Key>> {
    let mut query = tx.prepare_cached(
        "WITH RECURSIVE below(key, id) AS (
           VALUES (?1, ?2)
           UNION
           SELECT bead.key, bead.id FROM below CROSS JOIN edge ON edge.target = below.id AND edge.type = 'parent-child'
             CROSS JOIN bead ON bead.key = edge.source)
         SELECT key FROM below",
    )?;
    Ok(query.query_map((key, id), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// The epic with this id and those below it, where it is still there.
pub(super) fn epics(tx: &Connection, id: &str) -> Result<Vec<Key>> {
    let Some(key) = rows::key_of(tx, id)? else { return Ok(Vec::new()) };
    let below = below(tx, key, id)?;
    let mut query = tx.prepare_cached(
        "SELECT bead.key FROM json_each(?1) AS wanted CROSS JOIN bead ON bead.key = wanted.value
         WHERE issue_type = 'epic'",
    )?;
    Ok(query.query_map([list(&below)], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// What a convoy tracks and is there.
pub(super) fn tracked(tx: &Connection, convoy: Key) -> Result<Vec<Key>> {
    let mut query = tx.prepare_cached(
        "SELECT bead.key FROM edge CROSS JOIN bead ON bead.id = edge.target
         WHERE edge.source = ?1 AND edge.type = 'tracks'",
    )?;
    Ok(query.query_map([convoy], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// Keys as one argument of a query.
pub(super) fn list(keys: &[Key]) -> String {
    serde_json::to_string(keys).expect("numbers always serialise")
}

pub(super) fn ids(tx: &Connection, keys: &[Key]) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached(
        "SELECT bead.id FROM json_each(?1) AS wanted CROSS JOIN bead ON bead.key = wanted.value
         WHERE issue_type IS NULL OR issue_type <> 'epic'",
    )?;
    Ok(query.query_map([list(keys)], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// The graph of these beads and what they wait for.
pub(super) fn read(tx: &Connection, members: &[Key]) -> Result<Graph> {
    let mut reader = Reader::new(tx)?;
    reader.add(members, true)?;
    let edges = edges(tx, members)?;
    let outside: FxHashSet<Key> = edges
        .iter()
        .filter(|edge| edge.kind.is_blocking() && !reader.places.contains_key(&edge.target))
        .map(|edge| edge.target)
        .collect();
    let mut outside: Vec<Key> = outside.into_iter().collect();
    outside.sort_unstable();
    reader.add(&outside, false)?;
    reader.note_branches(members)?;
    let links = reader.links(&edges);
    let places = reader.rigs.iter().map(|rig| Place { name: rig.name.clone(), state: rig.state }).collect();
    Ok(Graph::new(reader.spots, places, &links))
}

/// An edge that readiness looks at, with a target that is there.
struct Tie {
    source: Key,
    target: Key,
    kind: EdgeType,
    extra: Option<String>,
}

fn edges(tx: &Connection, members: &[Key]) -> Result<Vec<Tie>> {
    let mut query = tx.prepare_cached(
        "SELECT edge.source, bead.key, edge.type, CASE edge.type WHEN 'waits-for' THEN edge.extra END
         FROM json_each(?1) AS member CROSS JOIN edge ON edge.source = member.value
           CROSS JOIN bead ON bead.id = edge.target
         WHERE edge.type IN ('blocks', 'conditional-blocks', 'waits-for', 'merge-blocks', 'parent-child')",
    )?;
    let tie = |row: &Row<'_>| {
        let kind = EdgeType::parse(row.get_ref(2)?.as_str()?);
        Ok(Tie { source: row.get(0)?, target: row.get(1)?, kind, extra: row.get(3)? })
    };
    Ok(query.query_map([list(members)], tie)?.collect::<rusqlite::Result<_>>()?)
}

/// What has been read so far.
struct Reader<'tx> {
    tx: &'tx Connection,
    rigs: Vec<Rig>,
    rig_of: FxHashMap<String, u32>,
    spots: Vec<Spot>,
    nodes: Vec<Node>,
    /// By key, a place in the lists above.
    places: FxHashMap<Key, u32>,
}

impl<'tx> Reader<'tx> {
    fn new(tx: &'tx Connection) -> Result<Reader<'tx>> {
        let rigs = rigs::all(tx)?;
        let rig_of = rigs.iter().enumerate().map(|(at, rig)| (rig.name.clone(), at as u32)).collect();
        Ok(Reader { tx, rigs, rig_of, spots: Vec::new(), nodes: Vec::new(), places: FxHashMap::default() })
    }

    fn add(&mut self, keys: &[Key], is_member: bool) -> Result<()> {
        let columns = rows::NODE_COLUMNS;
        let mut query = self.tx.prepare_cached(&format!(
            "SELECT {columns}, bead.key, title, priority, rig
             FROM (SELECT value AS wanted FROM json_each(?1)) CROSS JOIN bead ON bead.key = wanted"
        ))?;
        let mut found = query.query([list(keys)])?;
        while let Some(row) = found.next()? {
            let (id, node) = rows::node_from_row(row)?;
            let text = |column| row.get_ref(column).and_then(|value| Ok(value.as_str_or_null()?));
            let kind = text(2)?;
            let home = rig::home(&id, text(17)?, &self.rigs);
            let rig = match home {
                Home::Rig(rig) => self.rig_of.get(&rig.name).copied(),
                Home::Town | Home::Nowhere => None,
            };
            self.places.insert(row.get(14)?, self.spots.len() as u32);
            self.spots.push(Spot {
                kind: kind.filter(|kind| *kind != TASK).map(Into::into),
                is_slingable: status::is_slingable(kind) && !node.facts.ephemeral,
                status: node.facts.status.clone(),
                priority: row.get(16)?,
                rig,
                is_member,
                ..Spot::new(id, row.get::<_, String>(15)?)
            });
            self.nodes.push(node);
        }
        Ok(())
    }

    /// Which epics have a branch of their own.
    fn note_branches(&mut self, members: &[Key]) -> Result<()> {
        let epics: Vec<Key> = members.iter().copied().filter(|key| self.is_epic(*key)).collect();
        let mut query = self.tx.prepare_cached(
            "SELECT DISTINCT bead FROM json_each(?1) AS epic CROSS JOIN label ON label.bead = epic.value
             WHERE label.label LIKE ?2 || '_%'",
        )?;
        let mut found = query.query((list(&epics), BRANCH_LABEL))?;
        while let Some(row) = found.next()? {
            if let Some(place) = self.places.get(&row.get(0)?) {
                self.spots[*place as usize].has_branch = true;
            }
        }
        Ok(())
    }

    fn is_epic(&self, key: Key) -> bool {
        self.places.get(&key).is_some_and(|place| self.spots[*place as usize].is_epic())
    }

    fn links(&self, ties: &[Tie]) -> Vec<Link> {
        let mut children: FxHashMap<Key, Vec<u32>> = FxHashMap::default();
        for tie in ties.iter().filter(|tie| tie.kind == EdgeType::ParentChild) {
            children.entry(tie.target).or_default().push(self.places[&tie.source]);
        }
        let mut links = Vec::with_capacity(ties.len());
        for tie in ties {
            let Some(target) = self.places.get(&tie.target).copied() else { continue };
            let source = self.places[&tie.source];
            let holds = self.holds(tie, target);
            let Some(kind) = LinkKind::of(&tie.kind, holds) else { continue };
            if kind == LinkKind::Parent && !self.spots[target as usize].is_member {
                continue; // what is only waited for is nobody's parent here
            }
            let below = children.get(&tie.target).filter(|_| tie.kind == EdgeType::WaitsFor && holds);
            let is_active = |child: &&u32| self.nodes[**child as usize].is_active();
            // It waits for the children themselves, where those are planned too.
            let active: Vec<u32> = below.into_iter().flatten().filter(is_active).copied().collect();
            if active.is_empty() {
                links.push(Link { source, target, kind });
            }
            links.extend(active.into_iter().map(|target| Link { source, target, kind }));
        }
        links
    }

    fn holds(&self, tie: &Tie, target: u32) -> bool {
        let extra = tie.extra.as_deref().and_then(|json| gt_core::fields::Fields::parse(json).ok());
        self.nodes[target as usize].holds(&tie.kind, gate_of(&extra.unwrap_or_default()))
    }
}
