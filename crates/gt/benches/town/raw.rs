//! Raw SQLite doing the same number of row writes or reads: the store's own tables and indexes, prepared statements,
//! values that are worked out beforehand. What is left out is all that `gt` does besides.

use std::path::Path;
use std::time::{Duration, Instant};

use gt_store::{ImportBead, Store};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, params};

pub(crate) struct Raw {
    conn: Connection,
}

impl Raw {
    pub(crate) fn create(path: &Path) -> Raw {
        Store::create(path).expect("a store");
        let conn = Connection::open(path).expect("a database");
        conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;").expect("the pragmas");
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).expect("as the store has it");
        Raw { conn }
    }

    /// The rows that an import writes, as they are, in one transaction.
    pub(crate) fn import(&mut self, beads: &[ImportBead]) -> Duration {
        let rows: Vec<Row<'_>> = beads.iter().map(Row::of).collect();
        let start = Instant::now();
        let tx = self.conn.transaction().expect("a transaction");
        insert(&tx, &rows);
        tx.commit().expect("the commit");
        start.elapsed()
    }

    /// Reads so many beads by key, with their bodies.
    pub(crate) fn read(&self, first: i64, count: i64) -> Duration {
        let start = Instant::now();
        let mut query = self
            .conn
            .prepare_cached("SELECT bead.*, body FROM bead JOIN bead_body ON bead = key WHERE key >= ?1 LIMIT ?2")
            .expect("a statement");
        let mut rows = query.query(params![first, count]).expect("an answer");
        let mut n_bytes = 0;
        while let Some(row) = rows.next().expect("a row") {
            n_bytes +=
                row.get::<_, String>(1).expect("an id").len() + row.get::<_, String>("body").expect("a body").len();
        }
        assert!(n_bytes > 0);
        start.elapsed()
    }

    /// Moves so many beads to another standing and appends one event, in one durable commit.
    pub(crate) fn update(&mut self, count: usize, standing: &str) -> Duration {
        let start = Instant::now();
        let tx = self.conn.transaction().expect("a transaction");
        {
            let mut update =
                tx.prepare_cached("UPDATE bead SET holding = holding + 1, standing = ?2 WHERE key = ?1").expect("it");
            for key in 1..=count as i64 {
                update.execute(params![key, standing]).expect("a row");
            }
            tx.execute("INSERT INTO event (ts, type, actor, data) VALUES (0, 'raw', 'raw', '{}')", []).expect("a row");
        }
        tx.commit().expect("the commit");
        start.elapsed()
    }
}

/// The same number of rows in the plainest tables that could hold them: one key each, no other index.
pub(crate) fn import_plain(path: &Path, beads: &[ImportBead]) -> Duration {
    let mut conn = Connection::open(path).expect("a database");
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
         CREATE TABLE bead (id TEXT PRIMARY KEY, title TEXT, status TEXT, priority INTEGER);
         CREATE TABLE body (id INTEGER PRIMARY KEY, body TEXT);
         CREATE TABLE edge (source TEXT, target TEXT, type TEXT, extra TEXT, PRIMARY KEY (source, target, type));
         CREATE TABLE label (bead TEXT, label TEXT, PRIMARY KEY (bead, label));
         CREATE TABLE event (seq INTEGER PRIMARY KEY, data TEXT);",
    )
    .expect("the tables");
    let rows: Vec<Row<'_>> = beads.iter().map(Row::of).collect();
    let start = Instant::now();
    let tx = conn.transaction().expect("a transaction");
    insert_plain(&tx, &rows);
    tx.commit().expect("the commit");
    start.elapsed()
}

fn insert_plain(tx: &Transaction<'_>, rows: &[Row<'_>]) {
    let mut bead = tx.prepare("INSERT INTO bead VALUES (?1, ?2, ?3, ?4)").expect("a statement");
    let mut body = tx.prepare("INSERT INTO body (body) VALUES (?1)").expect("a statement");
    let mut edge = tx.prepare("INSERT INTO edge VALUES (?1, ?2, ?3, ?4)").expect("a statement");
    let mut label = tx.prepare("INSERT INTO label VALUES (?1, ?2)").expect("a statement");
    let mut event = tx.prepare("INSERT INTO event (data) VALUES (?1)").expect("a statement");
    for Row { one, body: text, extras } in rows {
        let it = &one.bead;
        bead.execute(params![it.id, it.title, it.status.as_str(), it.priority]).expect("a row");
        body.execute([text]).expect("a row");
        for (link, extra) in it.edges.iter().zip(extras) {
            edge.execute(params![it.id, link.target, link.kind.as_str(), extra]).expect("a row");
        }
        for word in &it.labels {
            label.execute(params![it.id, word]).expect("a row");
        }
        event.execute([&it.title]).expect("a row");
    }
}

/// A bead with the texts that have to be made first.
struct Row<'a> {
    one: &'a ImportBead,
    body: String,
    extras: Vec<String>,
}

impl Row<'_> {
    fn of(one: &ImportBead) -> Row<'_> {
        let extras = one.bead.edges.iter().map(|edge| edge.extra.to_json()).collect();
        Row { one, body: one.bead.body.to_json(), extras }
    }
}

fn insert(tx: &Transaction<'_>, rows: &[Row<'_>]) {
    let mut bead = tx
        .prepare(
            "INSERT INTO bead VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, NULL, ?7, ?7, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0,
             0, NULL, ?8)",
        )
        .expect("a statement");
    let mut body = tx.prepare("INSERT INTO bead_body VALUES (?1, ?2)").expect("a statement");
    let mut edge = tx.prepare("INSERT INTO edge VALUES (?1, ?2, ?3, ?4)").expect("a statement");
    let mut label = tx.prepare("INSERT INTO label VALUES (?1, ?2, ?3)").expect("a statement");
    let mut event = tx
        .prepare("INSERT INTO event (ts, type, actor, bead, data) VALUES (?1, 'bead.created', 'bench', ?2, '{}')")
        .expect("a statement");
    for (key, Row { one, body: text, extras }) in (1_i64..).zip(rows) {
        let it = &one.bead;
        let created_at = it.created_at.map(jiff::Timestamp::as_microsecond);
        let standing = it.status.is_active().then_some("ready");
        bead.execute(params![
            key,
            it.id,
            it.title,
            it.status.as_str(),
            it.priority,
            it.issue_type,
            created_at,
            standing
        ])
        .expect("a row");
        body.execute(params![key, text]).expect("a row");
        for (link, extra) in it.edges.iter().zip(extras) {
            edge.execute(params![key, link.target, link.kind.as_str(), extra]).expect("a row");
        }
        for (place, word) in (0_i64..).zip(&it.labels) {
            label.execute(params![key, place, word]).expect("a row");
        }
        event.execute(params![created_at.unwrap_or_default(), it.id]).expect("a row");
    }
}
