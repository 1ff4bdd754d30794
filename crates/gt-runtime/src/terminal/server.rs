//! Which tmux server is a town's, and how it is called and set up.
//!
//! Its name follows from where the keeper's directory lies, so that keeper, commands and people find the same one
//! whatever their environment says.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};

/// The session of the keeper's own client: it holds nothing that runs.
pub(crate) const KEEPER_SESSION: &str = "gt-keeper";

/// So many characters of a town's name are enough to know it by.
const NAME_CHARS_MAX: usize = 24;

/// Set before the first session, and again by every keeper, in case somebody changed them by hand.
const SETTINGS: &[&[&str]] = &[
    // A pane stays when its process has ended, or nobody would learn its exit status.
    &["-g", "remain-on-exit", "on"],
    // Not known to every version: quietly.
    &["-gq", "remain-on-exit-format", ""],
    // With the keeper's own session the server goes, unless somebody else has one in it.
    &["-g", "exit-empty", "on"],
    &["-g", "destroy-unattached", "off"],
    // Nothing of whoever looks in becomes part of the next run.
    &["-g", "update-environment", ""],
    &["-g", "history-limit", "2000"],
    &["-g", "default-size", "200x50"],
    &["-g", "window-size", "latest"],
    &["-g", "default-shell", "/bin/sh"],
    &["-g", "default-command", ""],
    &["-g", "status", "off"],
    &["-g", "automatic-rename", "off"],
    &["-g", "allow-rename", "off"],
    &["-g", "set-titles", "off"],
    &["-g", "visual-activity", "off"],
    &["-s", "escape-time", "0"],
];

/// The tmux server of one town.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    name: String,
}

impl Server {
    /// The one that belongs to a keeper's directory, whether it runs or not.
    pub fn of(keeper_dir: &Path) -> Self {
        let path = keeper_dir.canonicalize().or_else(|_| std::path::absolute(keeper_dir));
        let path = path.unwrap_or_else(|_| keeper_dir.to_owned());
        let hash = Sha256::digest(path.as_os_str().as_bytes());
        Self { name: format!("gt-{}-{:02x}{:02x}{:02x}", town_name(&path), hash[0], hash[1], hash[2]) }
    }

    /// What stands after `tmux -L`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `tmux` for this server, in whatever environment we are ourselves.
    pub fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", &self.name]).env_remove("TMUX").env_remove("TMUX_TMPDIR");
        command
    }

    /// A client that is spoken to by lines; it starts the server if need be. Nothing of our environment becomes the
    /// server's, and none of the user's files is read.
    pub(crate) fn control_command(&self) -> Command {
        let mut command = self.command();
        if let Some(program) = tmux_program() {
            command = Command::new(program);
            command.args(["-u", "-L", &self.name]);
        }
        command.env_clear().current_dir("/").args(["-f", "/dev/null", "-C", "start-server"]);
        for setting in SETTINGS {
            command.args([";", "set-option"]).args(*setting);
        }
        // Two words, so that tmux needs no shell. It stays: while tmux looks after a child that has ended, it closes the
        // terminals of all others that end meanwhile, and has not read what they wrote.
        command.args([";", "new-session", "-A", "-s", KEEPER_SESSION, "-f", "no-output,ignore-size", "--", "cat", "-"]);
        command
    }

    /// Where tmux listens, unless `TMUX_TMPDIR` says otherwise, which we never let it.
    pub fn socket(&self) -> PathBuf {
        PathBuf::from(format!("/tmp/tmux-{}/{}", geteuid().as_raw(), self.name))
    }
}

/// Where `tmux` is, on our own `PATH`.
pub(crate) fn tmux_program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("tmux")).find(|program| program.is_file())
}

/// The folder that people know a town by: not the ones inside of it.
fn town_name(keeper_dir: &Path) -> String {
    let names = keeper_dir.ancestors().filter_map(Path::file_name).map(OsStr::to_string_lossy);
    let name = names.into_iter().find(|name| name != "keeper" && !name.starts_with('.')).unwrap_or_default();
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(plain).take(NAME_CHARS_MAX).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "town".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
