//! The agents of the benchmark: this very program, in another role.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Notes the time as its first instruction, then waits until the gate opens.
pub(crate) const STAMP: &str = "--stamp";
/// Ends its bead. Played by `gt` itself.
pub(crate) const FINISH: &str = "--finish";
/// Does nothing.
const NOTHING: &str = "--nothing";

pub(crate) enum Role {
    Stamp { at: Duration, dir: PathBuf },
    Nothing,
}

/// The role that this process was started for.
pub(crate) fn role(arguments: &[String]) -> Option<Role> {
    let at = now();
    match arguments.get(1).map(String::as_str) {
        Some(STAMP) => Some(Role::Stamp { at, dir: PathBuf::from(arguments.get(2)?) }),
        Some(NOTHING) => Some(Role::Nothing),
        _ => None,
    }
}

impl Role {
    pub(crate) fn play(self) {
        let Role::Stamp { at, dir } = self else { return };
        let stamps = OpenOptions::new().append(true).create(true).open(dir.join("stamps"));
        // One short line is written in one piece, whoever else writes.
        stamps
            .and_then(|mut stamps| stamps.write_all(format!("{}\n", at.as_nanos()).as_bytes()))
            .expect("it can be written");
        // Opening a pipe waits for its other end.
        File::open(dir.join("gate")).map(drop).unwrap_or_default();
    }
}

/// Since 1970, to the nanosecond: comparable between processes.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970")
}

/// The command line of a role.
pub(crate) fn argv(role: &str, dir: &std::path::Path) -> Vec<String> {
    if role == FINISH {
        return vec![env!("CARGO_BIN_EXE_gt").to_owned(), "done".to_owned()];
    }
    let own = std::env::current_exe().expect("it runs").display().to_string();
    vec![own, role.to_owned(), dir.display().to_string()]
}

pub(crate) fn nothing() -> Vec<String> {
    let own = std::env::current_exe().expect("it runs").display().to_string();
    vec![own, NOTHING.to_owned()]
}
