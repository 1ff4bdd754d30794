//! A town that is served, and a caller who speaks HTTP byte for byte.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use gt_engine::Town;
use gt_server::{Limits, Server, start_with, token_path};
use gt_store::{Stamp, Store};
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

/// How long a fact may take to come true on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct Served {
    pub(crate) town: Town,
    server: Option<Server>,
    _dir: TempDir,
}

impl Served {
    /// With an agent, `plain`, that nothing here ever starts.
    pub(crate) fn new(limits: Limits) -> Served {
        let dir = TempDir::with_prefix("served-").expect("a temporary directory can be made");
        let (town, _) = Town::init(dir.path(), &stamp()).expect("the directory is empty");
        let config = "default_agent = \"plain\"\n[agents.plain]\ncommand = [\"/bin/true\"]\nheadless = [\"/bin/true\"]\n\
                      [server]\nbind = \"127.0.0.1:0\"\n";
        std::fs::write(town.config_path(), config).expect("the town can be written");
        let mut served = Served { town, server: None, _dir: dir };
        served.restart(limits);
        served
    }

    pub(crate) fn restart(&mut self, limits: Limits) {
        self.server = None;
        let server = start_with(&self.town, limits);
        assert_eq!(server.report().error, None);
        self.server = Some(server);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let report = self.server.as_ref().expect("it runs").report();
        report.address.expect("it answers")
    }

    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(token_path(&self.town)).expect("it is there").trim().to_owned()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.town.store_path()).expect("the store is there")
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        stream
    }

    /// The lines before a body of so many bytes; the connection ends with the answer.
    pub(crate) fn head(&self, line: &str, more: &str, n_bytes: usize) -> String {
        let (address, token) = (self.address(), self.token());
        format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{more}Connection: close\r\n\
             Content-Length: {n_bytes}\r\n\r\n"
        )
    }

    pub(crate) fn ask(&self, line: &str, more: &str, body: &str) -> Reply {
        let mut stream = self.connect();
        stream.write_all((self.head(line, more, body.len()) + body).as_bytes()).expect("it is read");
        reply(stream)
    }
}

pub(crate) fn stamp() -> Stamp {
    Stamp::new(Timestamp::now(), "tester")
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("no error in {self:?}")).to_owned()
    }
}

/// Reads an answer to its end.
pub(crate) fn reply(mut stream: TcpStream) -> Reply {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it is answered");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    Reply { status, body: body.to_owned() }
}

/// Looks again and again, giving others the processor: for facts that are not announced.
pub(crate) fn until(fact: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let (_never, pause) = channel::<()>();
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {fact}");
        assert_eq!(pause.recv_timeout(Duration::from_millis(2)), Err(RecvTimeoutError::Timeout));
    }
}
