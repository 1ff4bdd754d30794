//! The process table: who belongs to a town, who lives, and signals.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// What the process table says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: i32,
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// When it started, in ticks: with the id it names a process for ever.
    pub(crate) started: u64,
}

impl Entry {
    pub(crate) fn of(pid: i32) -> Option<Entry> {
        Entry::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: i32, stat: &str) -> Option<Entry> {
        let (head, tail) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = tail.split_whitespace().collect();
        Some(Entry {
            pid,
            name,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// A zombie has ended already.
    pub(crate) fn is_alive(&self) -> bool {
        !['Z', 'X'].contains(&self.state)
    }

    pub(crate) fn words(&self) -> Vec<String> {
        read_list(self.pid, "cmdline")
    }

    /// The value of a variable in the environment with which it was started.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let environment = read_list(self.pid, "environ");
        environment.into_iter().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }

    /// Whether it is one of a town's processes. The server of its terminals starts with an empty environment.
    fn belongs_to(&self, token: &str) -> bool {
        let names = ["CHAOS_TOWN", "GT_TOWN", "HOME"];
        names.iter().any(|name| self.variable(name).is_some_and(|value| value.contains(token)))
            || self.is_tmux_of(token)
    }

    pub(crate) fn is_tmux_of(&self, token: &str) -> bool {
        self.name.starts_with("tmux") && self.words().iter().any(|word| word.starts_with(&format!("gt-{token}-")))
    }

    pub(crate) fn is_keeper_of(&self, keeper: &str) -> bool {
        // A fork of the keeper looks like it until it has executed its program, but does not lead the session.
        self.session == self.pid && self.words().windows(2).any(|pair| pair[0] == "keeper" && pair[1] == keeper)
    }
}

fn read_list(pid: i32, file: &str) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// Every live process.
pub(crate) fn all() -> Vec<Entry> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    pids.filter_map(Entry::of).filter(Entry::is_alive).collect()
}

/// Every live process of a town.
pub(crate) fn of_town(token: &str) -> Vec<Entry> {
    all().into_iter().filter(|entry| entry.belongs_to(token)).collect()
}

/// Sends a signal; says whether there was a process to get it.
pub(crate) fn signal(pid: i32, signal: Signal) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_is_read() {
        let stat = "7 (tmux: server (1)) S 1 7 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1";
        let entry = Entry::parse(7, stat).expect("it is a line of the process table");
        assert_eq!((entry.name.as_str(), entry.state, entry.parent), ("tmux: server (1)", 'S', 1));
        assert_eq!((entry.session, entry.started), (9, 123_456));
    }

    #[test]
    fn this_process_is_alive_and_in_no_town() {
        let own = Entry::of(std::process::id() as i32).expect("it runs");
        assert!(own.is_alive());
        assert!(!own.belongs_to("c0ffee-no-such-town"));
        assert!(all().iter().any(|entry| entry.pid == own.pid));
    }
}
