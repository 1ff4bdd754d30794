//! Asking a program of the user's something: what it prints is the answer.
//!
//! It is run as gates are: in a process group of its own, within a time, and with a marker by which whoever comes next ends it.

use std::fs;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use super::gate::{Running, waiter};
use super::{MergeError, io_error};
use crate::child::{read_back, seconds};
use crate::git::text_of;
use crate::memory;

/// Waits for the word, and becomes the program.
const WAITER: &str = r#"read -r GT_GATE && export GT_GATE && exec "$0" "$@" </dev/null"#;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Said(String),
    /// In one line why there is no answer.
    Failed(String),
}

/// Runs `argv` in `dir`, and ends with it whatever it leaves in its process group.
pub fn ask(
    dir: &Path,
    argv: &[String],
    env: &[(String, String)],
    marker: &Path,
    timeout: Duration,
) -> Result<Asked, MergeError> {
    let file = || memory::file_of("").map_err(io_error("make a file for", marker));
    let (stdout, stderr) = (file()?, file()?);
    let shared = |file: &fs::File| file.try_clone().map_err(io_error("make a file for", marker));
    let mut command = waiter(WAITER, dir, env);
    command.args(argv).stdout(shared(&stdout)?).stderr(shared(&stderr)?);
    let child = command.spawn().map_err(io_error("start a command in", dir))?;
    let mut running = Running::of(child).map_err(io_error("watch over a command in", dir))?;
    running.begin(marker).map_err(io_error("write", marker))?;
    let is_over = running.await_end(timeout).map_err(io_error("wait for a command in", dir))?;
    let status = running.end().map_err(io_error("wait for a command in", dir))?;
    fs::remove_file(marker).ok();
    let read = |file| read_back(file).map_err(io_error("read a command's output for", marker));
    if is_over && status.success() {
        return Ok(Asked::Said(text_of(&read(stdout)?)));
    }
    Ok(Asked::Failed(if is_over { last_words(&text_of(&read(stderr)?), status) } else { too_slow(timeout) }))
}

fn too_slow(timeout: Duration) -> String {
    format!("it took longer than {}", seconds(timeout))
}

fn last_words(said: &str, status: ExitStatus) -> String {
    said.lines().last().map_or_else(|| format!("it gave no reason ({status})"), str::to_owned)
}
