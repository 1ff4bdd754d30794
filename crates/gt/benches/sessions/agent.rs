//! The agent that answers: this very program, in another role.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TURN: &str = "--turn";

/// Answers a message, if that is what this process was started for.
pub(crate) fn has_played(arguments: &[String]) -> bool {
    let (Some(TURN), Some(log)) = (arguments.get(1).map(String::as_str), arguments.get(2)) else { return false };
    let mut message = String::new();
    std::io::stdin().read_to_string(&mut message).expect("the message is text");
    let session = std::env::var("GT_SESSION").expect("it is told");
    note(log, "start", &session, &message);
    wait(takes(&session, &message));
    print!("re {message}");
    std::io::stdout().flush().expect("it is heard");
    note(log, "end", &session, &message);
    true
}

/// One short line is written in one piece, whoever else writes.
fn note(log: &str, what: &str, session: &str, message: &str) {
    let line = format!("{} {what} {session} {message}\n", now().as_nanos());
    let file = OpenOptions::new().append(true).create(true).open(log);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("it can be written");
}

/// Does nothing for so long.
pub(crate) fn wait(span: Duration) {
    let (_sender, never) = std::sync::mpsc::channel::<()>();
    never.recv_timeout(span).unwrap_or_default();
}

/// How long the answer to a message takes: 0–20 ms, the same whoever asks.
pub(crate) fn takes(session: &str, message: &str) -> Duration {
    let sum: u32 =
        session.bytes().chain(message.bytes()).fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Duration::from_micros(u64::from(sum % 20_000))
}

/// Since 1970: comparable between processes.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970")
}

pub(crate) fn argv(log: &Path) -> Vec<String> {
    let own = std::env::current_exe().expect("it runs").display().to_string();
    vec![own, TURN.to_owned(), log.display().to_string()]
}
