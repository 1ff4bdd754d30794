//! Calling git, in a given directory and nowhere else, and never with a question to anybody at a terminal.
//!
//! Owns how git is called and how its complaints are read; what to ask it is decided by those who call.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::child;
use crate::memory;

/// What a surrounding git command exports, a hook for example; it would point at another repository.
pub(crate) const FOREIGN_VARIABLES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// Why git gave no answer.
#[derive(Debug)]
pub(crate) enum GitError {
    /// It cannot be run.
    NoGit(io::Error),
    /// It did not do it.
    Complaint { doing: String, said: String },
}

/// One call of git.
pub(crate) struct Git {
    command: Command,
    dir: PathBuf,
}

impl Git {
    pub(crate) fn at(dir: &Path) -> Self {
        let mut command = Command::new("git");
        command.arg("-C").arg(dir).stdin(Stdio::null());
        for name in FOREIGN_VARIABLES {
            command.env_remove(name);
        }
        // Without the last, merely looking would take the lock that an agent's git may want.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        Self { command, dir: dir.to_owned() }
    }

    /// For what changes something: the hooks of the repository are not run.
    pub(crate) fn without_hooks_at(dir: &Path) -> Self {
        Self::at(dir).args(["-c", "core.hooksPath=/dev/null"])
    }

    pub(crate) fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, arguments: I) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn arg(self, argument: impl AsRef<OsStr>) -> Self {
        self.args([argument])
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Given on its standard input.
    pub(crate) fn input(mut self, bytes: &[u8]) -> Result<Self, GitError> {
        self.command.stdin(memory::file_of(bytes).map_err(GitError::NoGit)?);
        Ok(self)
    }

    /// Where its output goes.
    pub(crate) fn into_file(mut self, file: std::fs::File) -> Self {
        self.command.stdout(file);
        self
    }

    /// Runs it, for answers that need more than words.
    pub(crate) fn output(mut self) -> Result<Output, GitError> {
        self.command.output().map_err(GitError::NoGit)
    }

    /// Whether it ends well, for questions that are answered by that.
    pub(crate) fn succeeds(self) -> Result<bool, GitError> {
        Ok(self.output()?.status.success())
    }

    /// The same for git's commands that answer no by ending with 1: whatever else they end with is a complaint.
    pub(crate) fn answers(self, doing: &str) -> Result<bool, GitError> {
        let dir = self.dir.clone();
        let output = self.output()?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(complaint(&dir, doing, &output)),
        }
    }

    /// Runs it and returns what it printed; a complaint is an error.
    pub(crate) fn run(self, doing: &str) -> Result<String, GitError> {
        Ok(text_of(&self.run_for_bytes(doing)?))
    }

    /// As [`Git::run`], for what is not text.
    pub(crate) fn run_for_bytes(self, doing: &str) -> Result<Vec<u8>, GitError> {
        let dir = self.dir.clone();
        let output = self.output()?;
        if output.status.success() { Ok(output.stdout) } else { Err(complaint(&dir, doing, &output)) }
    }

    /// Runs it in a group of its own that is killed when it takes too long: then `None`.
    pub(crate) fn output_within(mut self, timeout: Duration) -> Result<Option<Output>, GitError> {
        // Who asks for a passphrase would wait for ever, or write on the terminal of whoever is there.
        for (name, value) in [("SSH_ASKPASS", "false"), ("SSH_ASKPASS_REQUIRE", "force"), ("GCM_INTERACTIVE", "never")]
        {
            if std::env::var_os(name).is_none() {
                self.command.env(name, value);
            }
        }
        child::output_within(&mut self.command, timeout).map_err(GitError::NoGit)
    }
}

/// What git said when it did not do something.
pub(crate) fn complaint(dir: &Path, doing: &str, output: &Output) -> GitError {
    GitError::Complaint { doing: format!("{doing} in {}", dir.display()), said: reason(output) }
}

pub(crate) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Why git failed, in one line: what killed it, or the line in which it says what is wrong. Advice may come before and after that.
pub(crate) fn reason(output: &Output) -> String {
    if let Some(signal) = output.status.signal() {
        return format!("it was killed by signal {signal}");
    }
    let said = text_of(&output.stderr);
    let marked = |mark: &str| said.lines().find_map(|line| line.strip_prefix(mark));
    let wrong = marked("fatal: ").or_else(|| marked("error: ")).or_else(|| said.lines().last());
    wrong.map_or_else(|| format!("it gave no reason ({})", output.status), str::to_owned)
}
