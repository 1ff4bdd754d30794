//! Who is told of an ending that nobody watches for: a command, one at a time.
//!
//! Without a daemon it is the only one to notice that a slot is free. It learns nothing from us but that it should look.

use std::ffi::OsString;
use std::process::{Command, Stdio};

#[derive(Debug)]
pub(super) struct Messenger {
    /// Empty: nobody is told.
    argv: Vec<OsString>,
    /// The process under way.
    pid: Option<u32>,
    /// Something ended since it was sent.
    is_due: bool,
}

impl Messenger {
    pub(super) fn new(argv: &[OsString]) -> Self {
        Self { argv: argv.to_vec(), pid: None, is_due: false }
    }

    /// Sends the command, or has it sent again when it is back.
    pub(super) fn send(&mut self) {
        self.is_due = true;
        if self.pid.is_some() {
            return;
        }
        let Some((program, arguments)) = self.argv.split_first() else { return };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It is waited for with all other children. One that cannot be started is not missed: the next command looks.
        self.pid = command.spawn().ok().map(|child| child.id());
        self.is_due = false;
    }

    /// The process under way.
    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    pub(super) fn handle_dead_child(&mut self, pid: u32) {
        if self.pid == Some(pid) {
            self.pid = None;
            if self.is_due {
                self.send();
            }
        }
    }
}
