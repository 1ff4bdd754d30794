//! Waiting for any of many file descriptors, each with a token that is never used twice.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

const EVENTS_MAX: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(u64);

impl Token {
    pub(super) const LISTENER: Self = Self(0);
    pub(super) const BELL: Self = Self(1);
    pub(super) const HOME: Self = Self(2);
}

#[derive(Debug)]
pub(super) struct Events {
    epoll: OwnedFd,
    n_tokens: u64,
}

impl Events {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, n_tokens: 3 })
    }

    pub(super) fn new_token(&mut self) -> Token {
        self.n_tokens += 1;
        Token(self.n_tokens)
    }

    /// Waits until it can be read. Closing it is enough to forget it.
    pub(super) fn add(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, epoll::EventData::new_u64(token.0), epoll::EventFlags::IN)?)
    }

    pub(super) fn await_writable(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        self.modify(source, token, epoll::EventFlags::IN | epoll::EventFlags::OUT)
    }

    pub(super) fn pause(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        self.modify(source, token, epoll::EventFlags::empty())
    }

    pub(super) fn resume(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        self.modify(source, token, epoll::EventFlags::IN)
    }

    /// What can be read or has ended, and whether it can be written; empty after the timeout.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<(Token, bool)>> {
        // Rounded up: waking a little early would only mean to wait again.
        let timeout = timeout.map(|timeout| timeout + Duration::from_millis(1));
        let timeout = timeout
            .map(|timeout| Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() });
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
            Err(Errno::INTR) => return Ok(Vec::new()),
            waited => waited?,
        };
        let is_writable = |flags: epoll::EventFlags| flags.contains(epoll::EventFlags::OUT);
        Ok(events.into_iter().map(|event| (Token(event.data.u64()), is_writable(event.flags))).collect())
    }

    fn modify(&self, source: impl AsFd, token: Token, flags: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, epoll::EventData::new_u64(token.0), flags)?)
    }
}
