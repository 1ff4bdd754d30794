//! Connections: reading requests from them and sending replies, without ever waiting for one.
//!
//! Whoever sends nonsense, sends too much without an end of line, or does not read, is cut off.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};

use super::events::{Events, Token};
use super::note;
use crate::process::wire::{Greeting, LINE_BYTES_MAX, PROTOCOL, Reply, Request, line};

/// Read from one caller before others have their turn.
const TURN_BYTES: usize = 1 << 20;

/// Who has left so much unread is not told anything more.
const BACKLOG_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Callers {
    by_token: BTreeMap<Token, Caller>,
}

#[derive(Debug)]
struct Caller {
    stream: UnixStream,
    incoming: Vec<u8>,
    /// So much of what came in holds no end of line.
    n_searched: usize,
    outgoing: Vec<u8>,
    is_watching: bool,
}

impl Callers {
    pub(super) fn is_empty(&self) -> bool {
        self.by_token.is_empty()
    }

    pub(super) fn contains(&self, token: Token) -> bool {
        self.by_token.contains_key(&token)
    }

    pub(super) fn set_watching(&mut self, token: Token) {
        if let Some(caller) = self.by_token.get_mut(&token) {
            caller.is_watching = true;
        }
    }

    /// Takes and greets all who wait.
    pub(super) fn take(&mut self, listener: &UnixListener, events: &mut Events) -> io::Result<()> {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_only_that_caller(&error) => continue,
                Err(error) => return Err(error),
            };
            let token = events.new_token();
            stream.set_nonblocking(true)?;
            events.add(&stream, token)?;
            let caller =
                Caller { stream, incoming: Vec::new(), n_searched: 0, outgoing: Vec::new(), is_watching: false };
            self.by_token.insert(token, caller);
            self.send_line(token, &line(&Greeting { protocol: PROTOCOL, pid: std::process::id() }), events);
        }
    }

    /// What a caller asks now; a caller who is gone or talks nonsense is dropped.
    pub(super) fn requests(&mut self, token: Token) -> Vec<Request> {
        let Some(caller) = self.by_token.get_mut(&token) else { return Vec::new() };
        let is_over = caller.read().unwrap_or(true);
        match caller.take_requests() {
            Ok(requests) => {
                if is_over {
                    // What was asked completely is still done.
                    self.by_token.remove(&token);
                }
                requests
            }
            Err(cause) => {
                note(&format!("a caller was cut off: {cause}"));
                self.by_token.remove(&token);
                Vec::new()
            }
        }
    }

    pub(super) fn send(&mut self, token: Token, reply: &Reply, events: &Events) {
        self.send_line(token, &line(reply), events);
    }

    /// Tells everybody who watches; `false`: nobody does.
    pub(super) fn tell_watchers(&mut self, news: &Reply, events: &Events) -> bool {
        let watching = self.by_token.iter().filter(|(_, caller)| caller.is_watching);
        let watching: Vec<Token> = watching.map(|(token, _)| *token).collect();
        for token in &watching {
            self.send(*token, news, events);
        }
        !watching.is_empty()
    }

    /// Sends on what could not be sent before.
    pub(super) fn flush(&mut self, token: Token, events: &Events) {
        self.send_line(token, b"", events);
    }

    fn send_line(&mut self, token: Token, line: &[u8], events: &Events) {
        let Some(caller) = self.by_token.get_mut(&token) else { return };
        if caller.send(line, token, events).is_err() {
            self.by_token.remove(&token);
        }
    }
}

fn is_only_that_caller(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

impl Caller {
    /// Reads what is there; true at its end.
    fn read(&mut self) -> io::Result<bool> {
        let before = self.incoming.len();
        // Limited, or one that sends without end would be all that is ever read.
        match (&self.stream).take(TURN_BYTES as u64).read_to_end(&mut self.incoming) {
            Ok(_) => Ok(self.incoming.len() - before < TURN_BYTES),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn take_requests(&mut self) -> Result<Vec<Request>, String> {
        let unsearched = &self.incoming[self.n_searched..];
        let Some(end) = unsearched.iter().rposition(|byte| *byte == b'\n').map(|end| self.n_searched + end) else {
            self.n_searched = self.incoming.len();
            let is_too_long = self.incoming.len() > LINE_BYTES_MAX;
            return if is_too_long { Err("a line without end".to_owned()) } else { Ok(Vec::new()) };
        };
        let rest = self.incoming.split_off(end + 1);
        self.n_searched = rest.len();
        let whole = std::mem::replace(&mut self.incoming, rest);
        let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).map_err(|error| error.to_string())).collect()
    }

    fn send(&mut self, line: &[u8], token: Token, events: &Events) -> io::Result<()> {
        let was_waiting = !self.outgoing.is_empty();
        if self.outgoing.len() > BACKLOG_BYTES_MAX && !line.is_empty() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not read"));
        }
        self.outgoing.extend_from_slice(line);
        match (self.write()?, was_waiting) {
            (true, true) => events.resume(&self.stream, token),
            (false, false) => events.await_writable(&self.stream, token),
            _ => Ok(()),
        }
    }

    /// Writes what can be written now; true when that was all.
    fn write(&mut self) -> io::Result<bool> {
        let mut n_written = 0;
        while n_written < self.outgoing.len() {
            match (&self.stream).write(&self.outgoing[n_written..]) {
                Ok(n_bytes) => n_written += n_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.outgoing.drain(..n_written);
        Ok(self.outgoing.is_empty())
    }
}
