//! Noticing that some child has exited, agents and the orphans they leave to the keeper alike.
//!
//! Nobody announces an orphan, so there is no descriptor to wait for, and a signal handler would need unsafe code.
//! Instead a second thread blocks in `waitid`, rings, and waits to be told that the dead have been collected. It
//! decides nothing and collects nobody.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid};

#[derive(Debug)]
pub(super) struct Bell {
    rung: Arc<OwnedFd>,
    again: Sender<()>,
    /// The thread waits for children, or has rung. Without children there is nothing to wait for.
    is_listening: bool,
}

impl Bell {
    pub(super) fn hang() -> io::Result<Self> {
        let rung = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (again, told) = channel();
        let ringing = Arc::clone(&rung);
        std::thread::Builder::new().name("bell".to_owned()).spawn(move || ring(&ringing, &told))?;
        Ok(Self { rung, again, is_listening: false })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.rung.as_fd()
    }

    /// Children may have been started.
    pub(super) fn listen_again(&mut self) {
        if !self.is_listening {
            self.is_listening = self.again.send(()).is_ok();
        }
    }

    /// Collects all dead children, after the bell has rung.
    pub(super) fn dead_children(&mut self) -> Vec<(u32, WaitStatus)> {
        let mut count = [0; 8];
        rustix::io::read(&self.rung, &mut count).ok();
        let mut dead = Vec::new();
        let has_children = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => dead.push((pid.as_raw_nonzero().get() as u32, status)),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        self.is_listening = false;
        if has_children {
            self.listen_again();
        }
        dead
    }
}

fn ring(bell: &OwnedFd, told: &Receiver<()>) {
    while told.recv().is_ok() {
        // Whatever it returns, even that there are no children, the other thread finds out.
        waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).ok();
        rustix::io::write(bell, &1_u64.to_ne_bytes()).ok();
    }
}
