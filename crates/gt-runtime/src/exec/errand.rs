//! An errand: a command that is no agent, called once with JSON on its standard input.
//!
//! It is bounded as every call of a program is: in time, in output, and with its whole process group.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::program::Program;

/// What is called, and how.
#[derive(Debug, Clone)]
pub struct Errand {
    /// As it stands in what is said about it.
    pub name: String,
    /// Program and arguments, one at least after the program.
    pub argv: Vec<OsString>,
    pub dir: PathBuf,
    /// Added to the environment.
    pub env: Vec<(&'static str, String)>,
    pub timeout: Duration,
}

impl Errand {
    /// Calls it and waits for its end; a failure is told in one line.
    pub fn run(&self, input: &impl Serialize) -> Result<(), String> {
        self.run_until(input, None)
    }

    /// The same, for no longer than until something can be read from `end`, or nobody has its other end any more.
    pub fn run_until(&self, input: &impl Serialize, end: Option<BorrowedFd<'_>>) -> Result<(), String> {
        let Some((last, argv)) = self.argv.split_last() else { return Err("there is no command".to_owned()) };
        let last = last.to_string_lossy();
        let program =
            Program { argv: argv.to_vec(), dir: self.dir.clone(), env: self.env.clone(), timeout: self.timeout };
        let done = program.call_until(&last, input, end);
        // The arguments of a command may hold what is nobody's business.
        done.map(drop).map_err(|mishap| mishap.to_string().replace(&program.called(&last), &self.name))
    }
}
