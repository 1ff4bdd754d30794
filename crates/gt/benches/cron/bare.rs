//! The same without us: a loop that sleeps until each time, and starts a process.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;

use crate::agent::{self, Start};
use crate::watch::wait;

/// Starts a process at each of these times, and says when they had their first instructions.
pub(crate) fn starts(dir: &Path, slots: &[Timestamp]) -> Vec<Start> {
    let file = dir.join("bare");
    let argv = agent::argv(&file);
    let mut children: Vec<Child> = slots.iter().map(|slot| start(&argv, *slot)).collect();
    for child in &mut children {
        child.wait().expect("it is a child");
    }
    agent::starts(&file)
}

fn start(argv: &[String], slot: Timestamp) -> Child {
    if let Ok(span) = Duration::try_from(slot.duration_since(Timestamp::now())) {
        wait(span);
    }
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env("GT_SLOT", slot.to_string()).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().expect("the program starts")
}
