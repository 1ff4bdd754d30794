//! What a daemon costs that has nothing to do.

use std::time::Duration;

use crate::agent;
use crate::town::Town;
use crate::watch::Idle;

const OPEN: usize = 1_000;
const BLOCKED: usize = 50;
pub(crate) const MEMORY_MB_MAX: u64 = 30;

pub(crate) fn measure(span: Duration) -> Idle {
    let town = Town::new(4, agent::STAMP);
    let open = town.create(OPEN - BLOCKED, None);
    let blocked = town.create(BLOCKED, Some(&open[0]));
    town.gt(&[&["sling"], blocked.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat());
    let pid = town.daemon_pid();
    Idle::watch(pid, span)
}

pub(crate) fn table(idle: &Idle) -> String {
    idle.table(&format!("{OPEN} open beads, {BLOCKED} scheduled but blocked"), MEMORY_MB_MAX)
}
