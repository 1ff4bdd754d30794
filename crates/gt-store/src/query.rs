//! Reading: one bead, lists of beads, the ready queue, the tree below a bead, and why a bead waits.

use gt_core::bead::Bead;
use gt_core::edge::EdgeType;
use gt_core::explain::{BlockedBy, Blocker};
use gt_core::near;
use gt_core::readiness::{Node, Standing};
use gt_core::rig::{self, Home, Rig};
use gt_core::status::Status;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use rustc_hash::FxHashSet;

use crate::dispatch::contexts;
use crate::error::{Result, StoreError};
use crate::rows::{self, Key, micros};
use crate::store::Store;
use crate::{links, rigs};

/// Near matches are looked for among at most this many ids at a time.
const NEAR_IDS_MAX: i64 = 5_000;

/// A bead as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub bead: Bead,
    /// The rig its work would be done in.
    pub rig: Option<String>,
    /// What readiness knows of it; how it stands depends on the time.
    pub node: Node,
    /// What holds it back now: blockers, and parents that are blocked.
    pub blocked_by: Vec<String>,
    pub n_dependents: i64,
}

/// A list that may have been cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub beads: Vec<View>,
    /// Whether the limit left something out.
    pub more: bool,
}

/// Which beads to list. Empty means: every active bead.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Finished beads too.
    pub all: bool,
    pub statuses: Vec<Status>,
    pub issue_type: Option<String>,
    pub priority: Option<i64>,
    pub assignee: Option<String>,
    pub unassigned: bool,
    pub labels: Vec<String>,
    pub parent: Option<String>,
    pub rig: Option<String>,
    pub title_contains: Option<String>,
}

/// Which ready beads to list.
#[derive(Debug, Clone, Default)]
pub struct ReadyFilter {
    pub assignee: Option<String>,
    /// Beats `assignee`.
    pub unassigned: bool,
    pub issue_type: Option<String>,
    pub priority: Option<i64>,
    pub labels: Vec<String>,
    pub rig: Option<String>,
    pub include_deferred: bool,
    pub include_ephemeral: bool,
}

/// A bead in the tree below another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNode {
    pub id: String,
    pub title: String,
    pub issue_type: String,
    pub node: Node,
    /// How it hangs on the one above: `child`, or the type of the dependency.
    pub relation: Option<String>,
    /// It stands higher up already; what is below it is shown there.
    pub repeated: bool,
    /// There is more below it than the depth allows to show.
    pub cut: bool,
    pub below: Vec<TreeNode>,
}

impl Store {
    pub fn bead(&mut self, id: &str) -> std::result::Result<View, StoreError> {
        self.read(|tx| {
            if rows::key_of(tx, id)?.is_none()
                && let Some(context) = contexts::view(tx, id)?
            {
                return Ok(context);
            }
            let key = require(tx, id)?;
            view(tx, key, &rigs::all(tx)?)
        })
    }

    /// Beads that could be worked on now, the most urgent first, then the oldest. `limit` 0 means all.
    pub fn ready(
        &mut self,
        filter: &ReadyFilter,
        limit: usize,
        now: Timestamp,
    ) -> std::result::Result<Listing, StoreError> {
        self.read(|tx| {
            let keys = ready_keys(tx, filter, one_more(limit), now)?;
            listing(tx, keys, limit)
        })
    }

    /// Active beads that something holds back, in the same order.
    pub fn blocked(&mut self, rig: Option<&str>, limit: usize) -> std::result::Result<Listing, StoreError> {
        self.read(|tx| {
            let rigs = rigs::all(tx)?;
            if let Some(name) = rig {
                rigs::require(tx, name)?;
            }
            let mut found = Vec::new();
            ordered(tx, &["standing = 'blocked'".to_owned()], &[], one_more(limit), &home_is(rig, &rigs), &mut found)?;
            listing(tx, found.into_iter().map(|item| item.key).collect(), limit)
        })
    }

    /// Beads that pass the filter, in the same order.
    pub fn list(&mut self, filter: &Filter, limit: usize) -> std::result::Result<Listing, StoreError> {
        self.read(|tx| {
            // Contexts are not stored as beads, but read as such. // SPEC D1
            if filter.labels == [gt_core::context::LABEL] {
                return contexts::listing(tx, &filter.statuses, filter.all, limit);
            }
            let keys = list_keys(tx, filter, one_more(limit))?;
            listing(tx, keys, limit)
        })
    }

    /// Every bead in id order, handed out one by one.
    pub fn each_bead<E: From<StoreError>>(
        &mut self,
        mut each: impl FnMut(&Bead) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut stopped = None;
        self.read(|tx| {
            let mut query = tx.prepare("SELECT key FROM bead ORDER BY id")?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                if let Err(error) = each(&rows::load(tx, row.get(0)?)?) {
                    stopped = Some(error);
                    break;
                }
            }
            Ok(())
        })?;
        stopped.map_or(Ok(()), Err)
    }

    /// What a bead is made of and waits for: its children and its blockers, down to `depth`.
    pub fn tree(&mut self, id: &str, depth: usize) -> std::result::Result<TreeNode, StoreError> {
        self.read(|tx| {
            let key = require(tx, id)?;
            tree_node(tx, key, None, depth, &mut FxHashSet::default())
        })
    }
}

/// The key of a bead that must exist.
pub(crate) fn require(tx: &Connection, id: &str) -> Result<Key> {
    if let Some(key) = rows::key_of(tx, id)? {
        return Ok(key);
    }
    contexts::refuse_change(tx, id)?;
    Err(StoreError::NoBead { id: short(id), near: near_ids(tx, id)? })
}

fn short(id: &str) -> String {
    let line = gt_core::text::one_line(id);
    if line.chars().count() > 80 { line.chars().take(79).chain(['…']).collect() } else { line }
}

/// Looks among all ids with the same prefix; where those are too many, among the ones that begin most like this one.
fn near_ids(tx: &Connection, id: &str) -> Result<Vec<String>> {
    if id.chars().count() > gt_core::id::ID_CHARS_MAX {
        return Ok(Vec::new());
    }
    let stem = gt_core::id::stem(id).len();
    let all = ids_from(tx, &id[..stem])?;
    let longest_first = id.char_indices().rev().map(|(end, _)| end).filter(|end| *end > stem);
    if all.len() as i64 == NEAR_IDS_MAX {
        for end in longest_first {
            let near = near::closest(id, ids_from(tx, &id[..end])?.iter().map(String::as_str));
            if !near.is_empty() {
                return Ok(near);
            }
        }
    }
    Ok(near::closest(id, all.iter().map(String::as_str)))
}

fn ids_from(tx: &Connection, start: &str) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached("SELECT id FROM bead WHERE id >= ?1 AND id < ?2 LIMIT ?3")?;
    let end = format!("{start}\u{10FFFF}");
    Ok(query.query_map(params![start, end, NEAR_IDS_MAX], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn node(tx: &Connection, key: Key) -> Result<Node> {
    let mut query = tx.prepare_cached(rows::SELECT_NODE)?;
    Ok(query.query_row([key], rows::node_from_row)?.1)
}

fn view(tx: &Connection, key: Key, rigs: &[Rig]) -> Result<View> {
    let (bead, node) = rows::load_with_node(tx, key)?;
    let rig = match rig::home(&bead.id, bead.rig.as_deref(), rigs) {
        Home::Rig(rig) => Some(rig.name.clone()),
        Home::Town | Home::Nowhere => None,
    };
    let mut blocked_by: Vec<String> =
        if node.is_blocked() { blockers(tx, &bead)?.into_iter().map(|blocker| blocker.id).collect() } else { vec![] };
    blocked_by.dedup();
    let n_dependents =
        tx.prepare_cached("SELECT count(*) FROM edge WHERE target = ?1")?.query_row([&bead.id], |row| row.get(0))?;
    Ok(View { bead, rig, node, blocked_by, n_dependents })
}

/// Everything that holds a bead back, parents that are deferred included.
pub(crate) fn all_blockers(tx: &Connection, bead: &Bead, now: Timestamp) -> Result<Vec<Blocker>> {
    let mut all = blockers(tx, bead)?;
    all.extend(deferred_parents(tx, bead, now)?);
    Ok(all)
}

/// Everything that holds a bead back, in the order of its edges. // one row per target
fn blockers(tx: &Connection, bead: &Bead) -> Result<Vec<Blocker>> {
    let mut blockers: Vec<Blocker> = Vec::new();
    for edge in bead.edges.iter().filter(|edge| edge.kind.touches_readiness()) {
        let Some(key) = rows::key_of(tx, &edge.target)? else { continue };
        let target = node(tx, key)?;
        let why = match edge.kind {
            EdgeType::ParentChild if target.is_blocked() => BlockedBy::BlockedParent,
            EdgeType::WaitsFor if target.holds(&edge.kind, edge.gate()) && target.children.exist() => {
                BlockedBy::Children { active: target.children.active }
            }
            EdgeType::MergeBlocks if target.holds(&edge.kind, edge.gate()) && !target.is_active() => {
                BlockedBy::Unmerged
            }
            _ if target.holds(&edge.kind, edge.gate()) => BlockedBy::Open,
            _ => continue,
        };
        blockers.push(Blocker { id: edge.target.clone(), title: title(tx, key)?, status: target.facts.status, why });
    }
    Ok(blockers)
}

fn deferred_parents(tx: &Connection, bead: &Bead, now: Timestamp) -> Result<Vec<Blocker>> {
    let mut found = Vec::new();
    for edge in bead.edges.iter().filter(|edge| edge.kind == EdgeType::ParentChild) {
        let Some(key) = rows::key_of(tx, &edge.target)? else { continue };
        let parent = node(tx, key)?.facts;
        if let Some(until) = parent.defer_until.filter(|at| *at > now) {
            let why = BlockedBy::DeferredParent { until };
            found.push(Blocker { id: edge.target.clone(), title: title(tx, key)?, status: parent.status, why });
        }
    }
    Ok(found)
}

fn title(tx: &Connection, key: Key) -> Result<String> {
    Ok(tx.prepare_cached("SELECT title FROM bead WHERE key = ?1")?.query_row([key], |row| row.get(0))?)
}

/// A row of an ordered walk.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    priority: i64,
    created_at: Option<i64>,
    key: Key,
}

fn one_more(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit.saturating_add(1) }
}

/// Reads the views, and cuts the extra one that shows there is more.
fn listing(tx: &Connection, mut keys: Vec<Key>, limit: usize) -> Result<Listing> {
    let more = limit > 0 && keys.len() > limit;
    if more {
        keys.truncate(limit);
    }
    let rigs = rigs::all(tx)?;
    let beads = keys.into_iter().map(|key| view(tx, key, &rigs)).collect::<Result<_>>()?;
    Ok(Listing { beads, more })
}

/// Passes beads of the wanted rig, or all when none is wanted.
fn home_is<'a>(wanted: Option<&'a str>, rigs: &'a [Rig]) -> impl Fn(&str, Option<&str>) -> bool + 'a {
    move |id, binding| match wanted {
        None => true,
        Some(wanted) => {
            matches!(rig::home(id, binding, rigs), Home::Rig(rig) if rig.name == wanted)
        }
    }
}

/// Walks beads by priority and age until `limit` have passed. With an equality on `standing` the index gives the order.
fn ordered(
    tx: &Connection,
    conditions: &[String],
    arguments: &[Value],
    limit: usize,
    is_home: &impl Fn(&str, Option<&str>) -> bool,
    found: &mut Vec<Item>,
) -> Result<()> {
    let filter = if conditions.is_empty() { "1".to_owned() } else { conditions.join(" AND ") };
    let sql = format!(
        "SELECT priority, created_at, key, id, rig FROM bead WHERE {filter} ORDER BY priority, created_at, key"
    );
    let mut query = tx.prepare_cached(&sql)?;
    let mut rows = query.query(params_from_iter(arguments))?;
    let mut n_passed = 0;
    while n_passed < limit
        && let Some(row) = rows.next()?
    {
        let item = Item { priority: row.get(0)?, created_at: row.get(1)?, key: row.get(2)? };
        let text = |column| row.get_ref(column).and_then(|value| Ok(value.as_str_or_null()?));
        if is_home(text(3)?.unwrap_or_default(), text(4)?) {
            n_passed += 1;
            found.push(item);
        }
    }
    Ok(())
}

/// Conditions with the arguments they name, numbered as they are added.
#[derive(Default, Clone)]
struct Conditions {
    sql: Vec<String>,
    arguments: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, sql: &str, argument: impl Into<Value>) {
        self.arguments.push(argument.into());
        self.sql.push(sql.replace("?N", &format!("?{}", self.arguments.len())));
    }

    fn labels(&mut self, labels: &[String]) {
        for label in labels {
            self.add("key IN (SELECT bead FROM label WHERE label = ?N)", label.clone());
        }
    }

    fn assignee(&mut self, assignee: Option<&String>, unassigned: bool) {
        match assignee {
            _ if unassigned => self.sql.push("assignee IS NULL".to_owned()),
            Some(assignee) => self.add("assignee = ?N", assignee.clone()),
            None => {}
        }
    }

    fn issue_type(&mut self, word: Option<&String>) {
        match word.map(String::as_str) {
            Some("task") => self.sql.push("(issue_type = 'task' OR issue_type IS NULL)".to_owned()),
            Some(word) => self.add("issue_type = ?N", word.to_owned()),
            None => {}
        }
    }
}

/// Keys of ready beads: the index of the settled ones, and the few whose deferral has just run out.
pub(crate) fn ready_keys(tx: &Connection, filter: &ReadyFilter, limit: usize, now: Timestamp) -> Result<Vec<Key>> {
    let rigs = rigs::all(tx)?;
    if let Some(name) = &filter.rig {
        rigs::require(tx, name)?;
    }
    let mut conditions = Conditions::default();
    conditions.labels(&filter.labels);
    conditions.assignee(filter.assignee.as_ref(), filter.unassigned);
    conditions.issue_type(filter.issue_type.as_ref());
    if let Some(priority) = filter.priority {
        conditions.add("priority = ?N", priority);
    }
    let mut parts = vec![with(&conditions, "standing = 'ready'")];
    if filter.include_deferred {
        parts.push(with(&conditions, "standing = 'deferred'"));
    } else {
        let mut due = with(&conditions, "standing = 'deferred'");
        due.add("wake_at <= ?N", micros(now));
        parts.push(due);
    }
    let is_home = home_is(filter.rig.as_deref(), &rigs);
    let mut found = Vec::new();
    if filter.include_ephemeral {
        // How many of them are work is known only afterwards, so none is left out here.
        let wisps = with(&conditions, "standing = 'held' AND wisp = 1");
        let mut held = Vec::new();
        ordered(tx, &wisps.sql, &wisps.arguments, usize::MAX, &is_home, &mut held)?;
        found.extend(wisps_that_are_work(tx, held, filter.include_deferred, now)?);
    }
    for part in parts {
        ordered(tx, &part.sql, &part.arguments, limit, &is_home, &mut found)?;
    }
    Ok(first(found, limit))
}

fn with(conditions: &Conditions, sql: &str) -> Conditions {
    let mut conditions = conditions.clone();
    conditions.sql.insert(0, sql.to_owned());
    conditions
}

/// Short-lived records stand as held; asked for, they go through the same predicate as if they were work.
fn wisps_that_are_work(tx: &Connection, held: Vec<Item>, include_deferred: bool, now: Timestamp) -> Result<Vec<Item>> {
    let mut work = Vec::new();
    for item in held {
        let mut node = node(tx, item.key)?;
        node.facts.ephemeral = false;
        match node.standing_at(now) {
            Standing::Ready => work.push(item),
            Standing::Deferred if include_deferred => work.push(item),
            _ => {}
        }
    }
    Ok(work)
}

fn first(mut found: Vec<Item>, limit: usize) -> Vec<Key> {
    found.sort_unstable();
    found.truncate(limit);
    found.into_iter().map(|item| item.key).collect()
}

fn list_keys(tx: &Connection, filter: &Filter, limit: usize) -> Result<Vec<Key>> {
    let rigs = rigs::all(tx)?;
    if let Some(name) = &filter.rig {
        rigs::require(tx, name)?;
    }
    let conditions = list_conditions(tx, filter)?;
    let is_home = home_is(filter.rig.as_deref(), &rigs);
    let mut found = Vec::new();
    if filter.all || !filter.statuses.is_empty() {
        ordered(tx, &conditions.sql, &conditions.arguments, limit, &is_home, &mut found)?;
    } else {
        for standing in Standing::ALL.into_iter().filter(|standing| *standing != Standing::Done) {
            let part = with(&conditions, &format!("standing = '{}'", standing.as_str()));
            ordered(tx, &part.sql, &part.arguments, limit, &is_home, &mut found)?;
        }
    }
    Ok(first(found, limit))
}

fn list_conditions(tx: &Connection, filter: &Filter) -> Result<Conditions> {
    let mut conditions = Conditions::default();
    conditions.labels(&filter.labels);
    conditions.assignee(filter.assignee.as_ref(), filter.unassigned);
    conditions.issue_type(filter.issue_type.as_ref());
    if !filter.statuses.is_empty() {
        let words: Vec<String> = filter.statuses.iter().map(|status| status.as_str().to_owned()).collect();
        let list = serde_json::to_string(&words).expect("words always serialise");
        conditions.add("status IN (SELECT value FROM json_each(?N))", list);
    }
    if let Some(priority) = filter.priority {
        conditions.add("priority = ?N", priority);
    }
    if let Some(parent) = &filter.parent {
        require(tx, parent)?;
        conditions.add("key IN (SELECT source FROM edge WHERE target = ?N AND type = 'parent-child')", parent.clone());
    }
    if let Some(words) = &filter.title_contains {
        conditions.add("instr(lower(title), lower(?N)) > 0", words.clone());
    }
    Ok(conditions)
}

fn tree_node(
    tx: &Connection,
    key: Key,
    relation: Option<String>,
    depth: usize,
    seen: &mut FxHashSet<Key>,
) -> Result<TreeNode> {
    let (id, title, issue_type): (String, String, Option<String>) = tx
        .prepare_cached("SELECT id, title, issue_type FROM bead WHERE key = ?1")?
        .query_row([key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let repeated = seen.contains(&key);
    let next = if repeated { Vec::new() } else { below_of(tx, key, &id)? };
    let cut = depth == 0 && !next.is_empty();
    let mut below = Vec::new();
    if depth > 0 {
        seen.insert(key);
        for (next, relation) in next {
            below.push(tree_node(tx, next, Some(relation), depth - 1, seen)?);
        }
    }
    let issue_type = issue_type.unwrap_or_else(|| "task".to_owned());
    Ok(TreeNode { id, title, issue_type, node: node(tx, key)?, relation, repeated, cut, below })
}

/// What stands below a bead in its tree: first what it waits for, then its children.
fn below_of(tx: &Connection, key: Key, id: &str) -> Result<Vec<(Key, String)>> {
    let mut below = Vec::new();
    for (target, kind) in links::waits_of(tx, key)?.into_iter().filter(|(_, kind)| kind.is_blocking()) {
        below.extend(rows::key_of(tx, &target)?.map(|key| (key, kind.as_str().to_owned())));
    }
    let mut query = tx.prepare_cached(
        "SELECT source FROM edge JOIN bead ON key = source WHERE target = ?1 AND type = 'parent-child' ORDER BY bead.key",
    )?;
    let children: Vec<Key> = query.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    below.extend(children.into_iter().map(|child| (child, "child".to_owned())));
    Ok(below)
}

/// Whether the town has any edge at all; an import into an empty town can skip a lot.
pub(crate) fn has_edges(tx: &Connection) -> Result<bool> {
    Ok(tx.query_row("SELECT 1 FROM edge LIMIT 1", [], |_| Ok(())).optional()?.is_some())
}
