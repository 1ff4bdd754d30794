//! Raw SQLite doing the same number of row writes or reads: a plain schema, prepared statements, the same pragmas.

use std::path::Path;
use std::time::{Duration, Instant};

use gt_store::ImportBead;
use rusqlite::{Connection, params};

pub(crate) struct Raw {
    conn: Connection,
}

impl Raw {
    pub(crate) fn create(path: &Path) -> Raw {
        let conn = Connection::open(path).expect("a database");
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
             CREATE TABLE bead (id TEXT PRIMARY KEY, title TEXT, status TEXT, priority INTEGER, n INTEGER);
             CREATE TABLE body (id INTEGER PRIMARY KEY, body TEXT);
             CREATE TABLE edge (source TEXT, target TEXT, type TEXT, extra TEXT, PRIMARY KEY (source, target, type));
             CREATE TABLE label (bead TEXT, label TEXT, PRIMARY KEY (bead, label));
             CREATE TABLE event (seq INTEGER PRIMARY KEY, data TEXT);",
        )
        .expect("the schema");
        Raw { conn }
    }

    /// The same rows as an import writes, with nothing worked out and nothing checked.
    pub(crate) fn import(&mut self, beads: &[ImportBead]) -> Duration {
        let rows: Vec<(String, Vec<String>)> = beads
            .iter()
            .map(|one| (one.bead.body.to_json(), one.bead.edges.iter().map(|edge| edge.extra.to_json()).collect()))
            .collect();
        let start = Instant::now();
        let tx = self.conn.transaction().expect("a transaction");
        {
            let mut bead = tx.prepare("INSERT INTO bead VALUES (?1, ?2, ?3, ?4, 0)").expect("a statement");
            let mut body = tx.prepare("INSERT INTO body (body) VALUES (?1)").expect("a statement");
            let mut edge = tx.prepare("INSERT INTO edge VALUES (?1, ?2, ?3, ?4)").expect("a statement");
            let mut label = tx.prepare("INSERT INTO label VALUES (?1, ?2)").expect("a statement");
            let mut event = tx.prepare("INSERT INTO event (data) VALUES (?1)").expect("a statement");
            for (one, (text, extras)) in beads.iter().zip(&rows) {
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
        tx.commit().expect("the commit");
        start.elapsed()
    }

    /// Reads so many beads by key, with their bodies.
    pub(crate) fn read(&self, first: i64, count: i64) -> Duration {
        let start = Instant::now();
        let mut query = self
            .conn
            .prepare_cached(
                "SELECT bead.*, body FROM bead JOIN body ON body.id = bead.rowid WHERE bead.rowid >= ?1 LIMIT ?2",
            )
            .expect("a statement");
        let mut rows = query.query(params![first, count]).expect("an answer");
        let mut n_bytes = 0;
        while let Some(row) = rows.next().expect("a row") {
            n_bytes += row.get::<_, String>(0).expect("an id").len() + row.get::<_, String>(5).expect("a body").len();
        }
        assert!(n_bytes > 0);
        start.elapsed()
    }

    /// Updates so many rows by key and appends one event, in one durable commit.
    pub(crate) fn update(&mut self, count: usize) -> Duration {
        let start = Instant::now();
        let tx = self.conn.transaction().expect("a transaction");
        {
            let mut update = tx.prepare_cached("UPDATE bead SET n = n + 1 WHERE rowid = ?1").expect("a statement");
            for key in 1..=count as i64 {
                update.execute([key]).expect("a row");
            }
            tx.execute("INSERT INTO event (data) VALUES ('closed')", []).expect("a row");
        }
        tx.commit().expect("the commit");
        start.elapsed()
    }
}
