//! Rows ↔ beads: the only place that knows the columns of a bead by name.

use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::fields::Fields;
use gt_core::readiness::{Children, Facts, Node, Standing};
use gt_core::status::{self, Status};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, StoreError};

/// A bead's number inside the store.
pub(crate) type Key = i64;

pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

pub(crate) fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn optional_time(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(timestamp))
}

/// Finished beads are left out of the standing index.
pub(crate) fn standing_column(standing: Standing) -> Option<&'static str> {
    (standing != Standing::Done).then(|| standing.as_str())
}

pub(crate) fn key_of(tx: &Connection, id: &str) -> Result<Option<Key>> {
    Ok(tx.prepare_cached("SELECT key FROM bead WHERE id = ?1")?.query_row([id], |row| row.get(0)).optional()?)
}

/// The columns of `node_from_row`, in its order.
pub(crate) const NODE_COLUMNS: &str = "id, status, issue_type, defer_until, pinned, wisp, merged, \
    children_present, children_active, children_closed, holding, blocked_parents, wake_at";

pub(crate) fn node_from_row(row: &Row<'_>) -> rusqlite::Result<(String, Node)> {
    let facts = Facts {
        status: Status::parse(row.get_ref(1)?.as_str()?),
        bookkeeping: status::is_bookkeeping(row.get_ref(2)?.as_str_or_null()?),
        defer_until: row.get::<_, Option<i64>>(3)?.map(timestamp),
        pinned: row.get(4)?,
        ephemeral: row.get(5)?,
        merged: row.get(6)?,
    };
    let children = Children { present: row.get(7)?, active: row.get(8)?, closed: row.get(9)? };
    let wake_at = row.get::<_, Option<i64>>(12)?.map(timestamp);
    Ok((row.get(0)?, Node { facts, children, holding: row.get(10)?, blocked_parents: row.get(11)?, wake_at }))
}

/// Writes a new bead with everything that belongs to it, except its edges.
pub(crate) fn insert(tx: &Connection, key: Key, bead: &Bead, node: &Node) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO bead (key, id, title, status, priority, issue_type, assignee, rig, created_at, updated_at,
           closed_at, defer_until, pinned, wisp, merged, children_present, children_active, children_closed,
           holding, blocked_parents, wake_at, standing)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
    )?
    .execute(params![
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
        node.children.present,
        node.children.active,
        node.children.closed,
        node.holding,
        node.blocked_parents,
        node.wake_at.map(micros),
        standing_column(node.standing()),
    ])?;
    tx.prepare_cached("INSERT INTO bead_body (bead, body) VALUES (?1, ?2)")?
        .execute(params![key, bead.body.to_json()])?;
    write_labels(tx, key, &bead.labels)?;
    write_comments(tx, key, &bead.comments)
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

/// Writes a node's maintained counts.
pub(crate) fn update_counts(tx: &Connection, key: Key, node: &Node) -> Result<()> {
    tx.prepare_cached(
        "UPDATE bead SET children_present = ?2, children_active = ?3, children_closed = ?4, holding = ?5,
           blocked_parents = ?6, wake_at = ?7, standing = ?8 WHERE key = ?1",
    )?
    .execute(params![
        key,
        node.children.present,
        node.children.active,
        node.children.closed,
        node.holding,
        node.blocked_parents,
        node.wake_at.map(micros),
        standing_column(node.standing()),
    ])?;
    Ok(())
}

pub(crate) fn write_labels(tx: &Connection, key: Key, labels: &[String]) -> Result<()> {
    let mut insert = tx.prepare_cached("INSERT OR IGNORE INTO label (bead, label) VALUES (?1, ?2)")?;
    for label in labels {
        insert.execute(params![key, label])?;
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

pub(crate) fn delete_labels_and_comments(tx: &Connection, key: Key) -> Result<()> {
    tx.prepare_cached("DELETE FROM label WHERE bead = ?1")?.execute([key])?;
    tx.prepare_cached("DELETE FROM comment WHERE bead = ?1")?.execute([key])?;
    Ok(())
}

/// Reads a bead with everything that belongs to it.
pub(crate) fn load(tx: &Connection, key: Key) -> Result<Bead> {
    let mut query = tx.prepare_cached("SELECT bead.*, body FROM bead JOIN bead_body ON bead = key WHERE key = ?1")?;
    let (mut bead, body) = query.query_row([key], |row| Ok((bead_from_row(row)?, row.get::<_, String>("body")?)))?;
    bead.body = fields(&body, "a bead's body")?;
    bead.labels = labels(tx, key)?;
    bead.edges = edges_of(tx, key)?;
    bead.comments = comments(tx, key)?;
    Ok(bead)
}

fn bead_from_row(row: &Row<'_>) -> rusqlite::Result<Bead> {
    let mut bead = Bead::new(row.get::<_, String>("id")?, row.get::<_, String>("title")?);
    bead.status = Status::parse(row.get_ref("status")?.as_str()?);
    bead.priority = row.get("priority")?;
    bead.issue_type = row.get("issue_type")?;
    bead.assignee = row.get("assignee")?;
    bead.rig = row.get("rig")?;
    bead.created_at = optional_time(row, "created_at")?;
    bead.updated_at = optional_time(row, "updated_at")?;
    bead.closed_at = optional_time(row, "closed_at")?;
    bead.defer_until = optional_time(row, "defer_until")?;
    Ok(bead)
}

pub(crate) fn fields(json: &str, place: &'static str) -> Result<Fields> {
    Fields::parse(json).map_err(|source| StoreError::Unreadable { place, source })
}

fn labels(tx: &Connection, key: Key) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached("SELECT label FROM label WHERE bead = ?1 ORDER BY rowid")?;
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
