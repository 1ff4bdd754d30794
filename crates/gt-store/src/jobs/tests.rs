//! Which rows the statements about jobs read.

use super::settle::TOLD_LATELY;
use super::under_way::UNDER_WAY;
use crate::store::Store;

/// How SQLite goes about it: a line for each table.
fn plan_of(store: &mut Store, sql: &str) -> Vec<String> {
    let plan = store.read(|tx| {
        let mut query = tx.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
        Ok(query.raw_query().mapped(|row| row.get(3)).collect::<rusqlite::Result<_>>()?)
    });
    plan.expect("it is SQL")
}

#[test]
fn the_log_is_not_read_to_see_what_is_under_way() {
    let mut store = Store::in_memory().expect("a store");
    insta::assert_snapshot!(plan_of(&mut store, UNDER_WAY).join("\n"), @"
    SCAN fire USING INDEX fire_running
    SEARCH turn USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN
    SEARCH run USING PRIMARY KEY (id=?) LEFT-JOIN
    ");
}

#[test]
fn only_what_a_heartbeat_told_lately_is_read_to_see_what_it_told() {
    let mut store = Store::in_memory().expect("a store");
    insta::assert_snapshot!(plan_of(&mut store, TOLD_LATELY).join("\n"), @"SEARCH fire USING INDEX fire_told (name=? AND ended_at>? AND ended_at<?)");
}
