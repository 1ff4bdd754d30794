//! The same without us: a loop that sleeps until each time, and starts a process.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use jiff::Timestamp;

use crate::town::PROGRAM;
use crate::watch::wait;

/// Starts a process at each of these times, and says how late each had started.
pub(crate) fn lateness(slots: &[Timestamp]) -> Vec<Duration> {
    let (mut children, late): (Vec<Child>, Vec<Duration>) = slots.iter().map(|slot| start(*slot)).unzip();
    for child in &mut children {
        child.wait().expect("it is a child");
    }
    late
}

fn start(slot: Timestamp) -> (Child, Duration) {
    if let Ok(span) = Duration::try_from(slot.duration_since(Timestamp::now())) {
        wait(span);
    }
    let child = Command::new(PROGRAM).stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the program starts");
    (child, Duration::try_from(Timestamp::now().duration_since(slot)).unwrap_or_default())
}
