//! Tests of the name pool.

use std::collections::BTreeSet;

use super::*;

#[test]
fn names_are_different_and_never_run_out() {
    let names: Vec<String> = proposals().take(1000).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 1000);
    assert_eq!(names[0], "Toast");
    assert_eq!(names[60], "Polecat-61");
}

#[test]
fn sessions_of_different_polecats_differ() {
    let sessions: BTreeSet<String> = proposals().take(200).map(|name| session("gt", &name)).collect();
    assert_eq!(sessions.len(), 200);
}
