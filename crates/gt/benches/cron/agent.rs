//! What a job starts: this very program, in another role.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

const STAMP: &str = "--stamp";

/// When a process had its first instruction, and when it should have had it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) slot: Duration,
    pub(crate) at: Duration,
}

impl Start {
    pub(crate) fn late(&self) -> Duration {
        self.at.saturating_sub(self.slot)
    }
}

/// Notes the time as its first instruction, if that is what this process was started for.
pub(crate) fn has_played(arguments: &[String]) -> bool {
    let at = now();
    let (Some(STAMP), Some(file)) = (arguments.get(1).map(String::as_str), arguments.get(2)) else { return false };
    let slot: Timestamp = std::env::var("GT_SLOT").ok().and_then(|slot| slot.parse().ok()).expect("it is told");
    let slot = Duration::try_from(slot.as_duration()).expect("it is later than 1970");
    // One short line is written in one piece, whoever else writes.
    let line = format!("{} {}\n", slot.as_nanos(), at.as_nanos());
    let file = OpenOptions::new().append(true).create(true).open(file);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("it can be written");
    println!("done");
    true
}

/// Since 1970: comparable between processes.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970")
}

pub(crate) fn argv(file: &Path) -> Vec<String> {
    let own = std::env::current_exe().expect("it runs").display().to_string();
    vec![own, STAMP.to_owned(), file.display().to_string()]
}

/// What the processes have noted so far.
pub(crate) fn starts(file: &Path) -> Vec<Start> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).map(Duration::from_nanos);
    let start = |line: &str| {
        let mut words = line.split(' ');
        Some(Start { slot: number(words.next())?, at: number(words.next())? })
    };
    text.lines().filter_map(start).collect()
}
