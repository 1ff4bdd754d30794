//! Rows ↔ beads: the only place that knows the columns of a bead by name.

use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::fields::Fields;
use gt_core::readiness::{Children, Facts, Node, Standing};
use gt_core::status::{self, Status};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use crate::error::{Result, StoreError};

/// A bead's number inside the store.
pub(crate) type Key = i64;

pub(crate) fn micros(at: Timestamp) -> i64 {
    gt_core::time::truncate(at).as_microsecond()
}

pub(crate) fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn time_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(timestamp))
}

/// Finished beads are left out of the standing index.
pub(crate) fn standing_column(standing: Standing) -> Option<&'static str> {
    (standing != Standing::Done).then(|| standing.as_str())
}

pub(crate) fn key_of(tx: &Connection, id: &str) -> Result<Option<Key>> {
    Ok(tx.prepare_cached("SELECT key FROM bead WHERE id = ?1")?.query_row([id], |row| row.get(0)).optional()?)
}

/// The columns that make a node, in the order `node_from_row` reads them.
macro_rules! node_columns {
    () => {
        "id, status, issue_type, defer_until, pinned, wisp, merged, children_total, children_active, children_closed, \
         children_deleted, holding, blocked_parents, wake_at"
    };
}

pub(crate) const NODE_COLUMNS: &str = node_columns!();
pub(crate) const SELECT_NODE: &str = concat!("SELECT ", node_columns!(), " FROM bead WHERE key = ?1");
pub(crate) const SELECT_ALL_NODES: &str = concat!("SELECT ", node_columns!(), ", key, standing FROM bead ORDER BY key");
const SELECT_BEAD: &str = concat!(
    "SELECT ",
    node_columns!(),
    ", title, priority, assignee, rig, created_at, updated_at, closed_at, body \
     FROM bead JOIN bead_body ON bead = key WHERE key = ?1"
);
/// Where the columns of `SELECT_BEAD` go on behind those of the node.
const AFTER_NODE: usize = 14;

pub(crate) fn node_from_row(row: &Row<'_>) -> rusqlite::Result<(String, Node)> {
    let facts = Facts {
        status: Status::parse(row.get_ref(1)?.as_str()?),
        bookkeeping: status::is_bookkeeping(row.get_ref(2)?.as_str_or_null()?),
        defer_until: time_at(row, 3)?,
        pinned: row.get(4)?,
        ephemeral: row.get(5)?,
        merged: row.get(6)?,
    };
    let children = Children { total: row.get(7)?, active: row.get(8)?, closed: row.get(9)?, deleted: row.get(10)? };
    let (holding, blocked_parents, wake_at) = (row.get(11)?, row.get(12)?, time_at(row, 13)?);
    Ok((row.get(0)?, Node { facts, children, holding, blocked_parents, wake_at }))
}

/// Writes new beads with everything that belongs to them, except their edges.
pub(crate) struct Inserter<'tx> {
    tx: &'tx Connection,
    bead: CachedStatement<'tx>,
    body: CachedStatement<'tx>,
    label: CachedStatement<'tx>,
}

impl<'tx> Inserter<'tx> {
    pub(crate) fn new(tx: &'tx Connection) -> Result<Inserter<'tx>> {
        let bead = tx.prepare_cached(
            "INSERT INTO bead (key, id, title, status, priority, issue_type, assignee, rig, created_at, updated_at,
               closed_at, defer_until, pinned, wisp, merged, children_total, children_active, children_closed,
               children_deleted, holding, blocked_parents, wake_at, standing)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
               ?22, ?23)",
        )?;
        let body = tx.prepare_cached("INSERT INTO bead_body (bead, body) VALUES (?1, ?2)")?;
        let label = tx.prepare_cached(INSERT_LABEL)?;
        Ok(Inserter { tx, bead, body, label })
    }

    pub(crate) fn insert(&mut self, key: Key, bead: &Bead, node: &Node) -> Result<()> {
        self.bead.execute(params![
            key,
            bead.id,
            bead.title,
            bead.status.as_str(),
            bead.priority,
            bead.issue_type,
            bead.assignee,
            bead.rig,
            bead.created_at.map(micros),
            bead.updated_at.map(micros),
            bead.closed_at.map(micros),
            bead.defer_until.map(micros),
            node.facts.pinned,
            node.facts.ephemeral,
            node.facts.merged,
            node.children.total,
            node.children.active,
            node.children.closed,
            node.children.deleted,
            node.holding,
            node.blocked_parents,
            node.wake_at.map(micros),
            standing_column(node.standing()),
        ])?;
        self.body.execute(params![key, bead.body.to_json()])?;
        write_labels(&mut self.label, key, &bead.labels)?;
        if !bead.comments.is_empty() {
            write_comments(self.tx, key, &bead.comments)?;
        }
        Ok(())
    }
}

/// Overwrites a bead's own columns and body; counts, edges, labels and comments are not touched.
pub(crate) fn update(tx: &Connection, key: Key, bead: &Bead) -> Result<()> {
    let facts = Facts::of(bead);
    tx.prepare_cached(
        "UPDATE bead SET title = ?2, status = ?3, priority = ?4, issue_type = ?5, assignee = ?6, rig = ?7,
           created_at = ?8, updated_at = ?9, closed_at = ?10, defer_until = ?11, pinned = ?12, wisp = ?13, merged = ?14
         WHERE key = ?1",
    )?
    .execute(params![
        key,
        bead.title,
        bead.status.as_str(),
        bead.priority,
        bead.issue_type,
        bead.assignee,
        bead.rig,
        bead.created_at.map(micros),
        bead.updated_at.map(micros),
        bead.closed_at.map(micros),
        bead.defer_until.map(micros),
        facts.pinned,
        facts.ephemeral,
        facts.merged,
    ])?;
    tx.prepare_cached("UPDATE bead_body SET body = ?2 WHERE bead = ?1")?.execute(params![key, bead.body.to_json()])?;
    Ok(())
}

/// Writes maintained counts, for as many nodes as there are.
pub(crate) struct CountsWriter<'tx>(CachedStatement<'tx>);

impl<'tx> CountsWriter<'tx> {
    pub(crate) fn new(tx: &'tx Connection) -> Result<CountsWriter<'tx>> {
        Ok(CountsWriter(tx.prepare_cached(
            "UPDATE bead SET children_total = ?2, children_active = ?3, children_closed = ?4, children_deleted = ?5,
               holding = ?6, blocked_parents = ?7, wake_at = ?8, standing = ?9 WHERE key = ?1",
        )?))
    }

    pub(crate) fn write(&mut self, key: Key, node: &Node) -> Result<()> {
        self.0.execute(params![
            key,
            node.children.total,
            node.children.active,
            node.children.closed,
            node.children.deleted,
            node.holding,
            node.blocked_parents,
            node.wake_at.map(micros),
            standing_column(node.standing()),
        ])?;
        Ok(())
    }
}

const INSERT_LABEL: &str = "INSERT INTO label (bead, place, label) VALUES (?1, ?2, ?3)";

fn write_labels(insert: &mut CachedStatement<'_>, key: Key, labels: &[String]) -> Result<()> {
    for (place, label) in (0_i64..).zip(labels) {
        insert.execute(params![key, place, label])?;
    }
    Ok(())
}

pub(crate) fn write_comments(tx: &Connection, key: Key, comments: &[Fields]) -> Result<()> {
    let mut insert = tx.prepare_cached("INSERT INTO comment (bead, body) VALUES (?1, ?2)")?;
    for comment in comments {
        insert.execute(params![key, comment.to_json()])?;
    }
    Ok(())
}

pub(crate) fn replace_labels(tx: &Connection, key: Key, labels: &[String]) -> Result<()> {
    tx.prepare_cached("DELETE FROM label WHERE bead = ?1")?.execute([key])?;
    write_labels(&mut tx.prepare_cached(INSERT_LABEL)?, key, labels)
}

pub(crate) fn replace_comments(tx: &Connection, key: Key, comments: &[Fields]) -> Result<()> {
    tx.prepare_cached("DELETE FROM comment WHERE bead = ?1")?.execute([key])?;
    write_comments(tx, key, comments)
}

/// Reads a bead with everything that belongs to it.
pub(crate) fn load(tx: &Connection, key: Key) -> Result<Bead> {
    Ok(load_with_node(tx, key)?.0)
}

pub(crate) fn load_with_node(tx: &Connection, key: Key) -> Result<(Bead, Node)> {
    let mut query = tx.prepare_cached(SELECT_BEAD)?;
    let mut rows = query.query([key])?;
    let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let (id, node) = node_from_row(row)?;
    let mut bead = Bead::new(id, row.get::<_, String>(AFTER_NODE)?);
    bead.status = node.facts.status.clone();
    bead.issue_type = row.get(2)?;
    bead.defer_until = node.facts.defer_until;
    bead.priority = row.get(AFTER_NODE + 1)?;
    bead.assignee = row.get(AFTER_NODE + 2)?;
    bead.rig = row.get(AFTER_NODE + 3)?;
    bead.created_at = time_at(row, AFTER_NODE + 4)?;
    bead.updated_at = time_at(row, AFTER_NODE + 5)?;
    bead.closed_at = time_at(row, AFTER_NODE + 6)?;
    bead.body = fields(row.get_ref(AFTER_NODE + 7)?.as_str().map_err(rusqlite::Error::from)?, "a bead's body")?;
    bead.labels = labels(tx, key)?;
    bead.edges = edges_of(tx, key)?;
    bead.comments = comments(tx, key)?;
    Ok((bead, node))
}

pub(crate) fn fields(json: &str, place: &'static str) -> Result<Fields> {
    Fields::parse(json).map_err(|source| StoreError::Unreadable { place, source })
}

fn labels(tx: &Connection, key: Key) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached("SELECT label FROM label WHERE bead = ?1 ORDER BY place")?;
    Ok(query.query_map([key], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn comments(tx: &Connection, key: Key) -> Result<Vec<Fields>> {
    let mut query = tx.prepare_cached("SELECT body FROM comment WHERE bead = ?1 ORDER BY key")?;
    let mut rows = query.query([key])?;
    let mut comments = Vec::new();
    while let Some(row) = rows.next()? {
        comments.push(fields(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?, "a comment")?);
    }
    Ok(comments)
}

pub(crate) fn edges_of(tx: &Connection, key: Key) -> Result<Vec<Edge>> {
    let mut query = tx.prepare_cached("SELECT target, type, extra FROM edge WHERE source = ?1")?;
    let mut rows = query.query([key])?;
    let mut edges = Vec::new();
    while let Some(row) = rows.next()? {
        let extra: String = row.get(2)?;
        edges.push(Edge {
            target: row.get(0)?,
            kind: EdgeType::parse(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?),
            extra: fields(&extra, "an edge")?,
        });
    }
    Ok(edges)
}
