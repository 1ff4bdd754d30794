//! Which process is which: a number with a time of birth, since numbers come again.

use std::fs;

use gt_runtime::process::parse_stat;

/// This process, as `pid:birth`.
pub fn own() -> String {
    let pid = std::process::id();
    format!("{pid}:{}", birth(pid).unwrap_or(0))
}

/// Whether the process that is called so still lives.
pub fn is_alive(id: &str) -> bool {
    let Some((pid, born)) = id.split_once(':') else { return false };
    match (pid.parse(), born.parse::<u64>()) {
        (Ok(pid), Ok(born)) => birth(pid) == Some(born),
        _ => false,
    }
}

/// When a process was born, in clock ticks since the machine's start; `None` when it is gone or a zombie.
pub fn birth(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &stat).filter(|entry| !entry.is_dead).map(|entry| entry.birth)
}
