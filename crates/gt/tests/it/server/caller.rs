//! A town whose daemon answers HTTP, and somebody who calls it, byte for byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::fleet::{Fleet, PATIENCE};

/// Answers at once, with what it was told.
pub(crate) const ECHOES: &str = "printf 'You said: %s' \"$said\"";
/// Answers when the gate opens, and leaves its process in a file before.
pub(crate) const WAITS: &str = "printf 'You '; touch \"$HOME/begun\"; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; printf 'said: %s' \"$said\"";

/// A town with a daemon, whose agent takes turns.
pub(crate) struct Place {
    pub(crate) fleet: Fleet,
}

impl Place {
    /// What the agent does with `$said`; each message is a turn of its own.
    pub(crate) fn new(turn: &str) -> Place {
        Place::with(turn, &[])
    }

    /// The same with other settings.
    pub(crate) fn with(turn: &str, settings: &[(&str, &str)]) -> Place {
        let place = Place { fleet: Fleet::new("exit 1") };
        place.answer_with(turn);
        let script = place.fleet.home("turn.sh").display().to_string();
        let own = [("sessions.debounce_ms", "0"), ("agents.scripted.headless", &format!(r#"["bash", "{script}"]"#))];
        for (key, value) in own.iter().chain(settings) {
            place.fleet.set(key, value);
        }
        place.fleet.start_daemon();
        place
    }

    pub(crate) fn answer_with(&self, turn: &str) {
        let text = format!("said=$(cat); echo \"turn $GT_SESSION $GT_RUN\" >> \"$HOME/trace\"\n{turn}\n");
        std::fs::write(self.fleet.home("turn.sh"), text).expect("the home can be written");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let report: Value = serde_json::from_str(&self.fleet.town.read(".gt/server.json")).expect("it is JSON");
        report["address"].as_str().expect("it answers").parse().expect("an address")
    }

    pub(crate) fn token(&self) -> String {
        self.fleet.town.read(".gt/token").trim().to_owned()
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller { address: self.address(), token: self.token() }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.caller().call("GET", path, "", "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.caller().post(path, body)
    }

    /// How many turns were begun.
    pub(crate) fn n_turns(&self) -> usize {
        std::fs::read_to_string(self.fleet.home("trace")).unwrap_or_default().matches("turn ").count()
    }
}

/// Somebody who knows the token.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) address: SocketAddr,
    token: String,
}

impl Caller {
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.call("POST", path, "", body.to_string())
    }

    /// Asks with more lines in the head, each ended.
    pub(crate) fn call(&self, method: &str, path: &str, head: &str, body: impl AsRef<[u8]>) -> Reply {
        let (address, token) = (self.address, &self.token);
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{head}");
        self.raw(&head, body.as_ref())
    }

    /// Asks with nothing but these lines.
    pub(crate) fn raw(&self, head: &str, body: &[u8]) -> Reply {
        let mut stream = connect(self.address);
        let head = format!("{head}Connection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), body].concat()).expect("it is read to its end");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("it is answered");
        let text = String::from_utf8(bytes).expect("answers are text");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
        Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Asks, and does not read the answer.
    pub(crate) fn ask_and_hold(&self, path: &str, body: &str) -> TcpStream {
        let mut stream = connect(self.address);
        let (address, token, length) = (self.address, &self.token, body.len());
        let question = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(question.as_bytes()).expect("it is read");
        stream
    }

    /// Asks for a stream. In the old version of the protocol it comes as it is, without frames.
    pub(crate) fn open(&self, method: &str, path: &str, head: &str, body: &str) -> Follower {
        let mut stream = connect(self.address);
        let (address, token, length) = (self.address, &self.token, body.len());
        let question = format!(
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{head}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(question.as_bytes()).expect("it is read");
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).expect("it is answered"), 0, "{head}");
        }
        assert!(head.contains(" 200 "), "{head}");
        Follower { lines }
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
    stream
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// In small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The answer to a question that must succeed.
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    /// The code of an error, in the shape that all of them have.
    pub(crate) fn error(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        let body = self.json();
        let error = body["error"].as_object().expect("an error");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        assert!(error.contains_key("hint"), "{body}");
        error["code"].as_str().expect("a code").to_owned()
    }
}

/// A stream of events that is being read.
pub(crate) struct Follower {
    lines: BufReader<TcpStream>,
}

/// One of them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Follower {
    /// The next event; `None`: there are no more.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let mut event = Event::default();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("it goes on") == 0 {
                return None;
            }
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", kind)) => kind.clone_into(&mut event.kind),
                Some(("id", id)) => id.clone_into(&mut event.id),
                Some(("data", data)) => data.clone_into(&mut event.data),
                None if line == "\n" && event != Event::default() => return Some(event),
                _ => {}
            }
        }
    }

    /// The next that tells of the end of a turn, and what was said until then.
    pub(crate) fn turn(&mut self) -> (String, Event) {
        let mut said = String::new();
        loop {
            let event = self.next().expect("it goes on");
            match event.kind.as_str() {
                "delta" => said += event.json()["text"].as_str().expect("a text"),
                "turn" => return (said, event),
                other => panic!("{other} is no event"),
            }
        }
    }

    /// All that is left.
    pub(crate) fn rest(mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.next()).collect()
    }
}
