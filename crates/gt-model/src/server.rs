//! The server: accepts connections, finds the answer in the script, and remembers every question.
//!
//! A thread per connection; a question that hangs costs one. Does not own: how an answer is worded (`anthropic`,
//! `openai`), nor how it travels (`http`).

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::http::{self, Reply, Request};
use crate::script::{Answer, Script};
use crate::{anthropic, openai};

/// Whose words a question was asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Anthropic,
    OpenAi,
}

/// Something that the model was asked.
#[derive(Debug, Clone)]
pub struct Question {
    pub vendor: Vendor,
    /// The key of the part of the script to which it belongs.
    pub key: String,
    pub body: Value,
}

/// A model that serves until it is dropped.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    script: Script,
    memory: Mutex<Memory>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct Memory {
    questions: Vec<Question>,
    n_answered: BTreeMap<String, usize>,
    is_over: bool,
}

impl Model {
    /// Serves on a port of the system's choice.
    pub fn serve(script: Script) -> io::Result<Model> {
        Model::serve_at(script, 0)
    }

    pub fn serve_at(script: Script, port: u16) -> io::Result<Model> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { script, memory: Mutex::default(), asked: Condvar::new() });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || serving.accept(&listener));
        Ok(Model { address, shared })
    }

    /// Where it is, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The questions that were about work so far and belong to a key; what agents ask on the side is not among them.
    pub fn questions(&self, key: &str) -> Vec<Question> {
        let memory = self.shared.memory();
        memory.questions.iter().filter(|question| question.key == key).cloned().collect()
    }

    /// Waits until so many questions that belong to a key were asked, and says whether they were in time.
    pub fn wait_for(&self, key: &str, n: usize, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut memory = self.shared.memory();
        while memory.questions.iter().filter(|question| question.key == key).count() < n {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            memory = self.shared.asked.wait_timeout(memory, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.memory().is_over = true;
        // The thread that accepts is woken by a last connection, and then sees that it is over.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    /// A thread that panicked while it held the memory has broken nothing in it.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.memory().is_over {
                return;
            }
            let Ok(stream) = stream else { continue };
            let shared = Arc::clone(&self);
            std::thread::spawn(move || {
                if let Err(error) = shared.converse(stream) {
                    eprintln!("gt-model: a connection broke: {error}");
                }
            });
        }
    }

    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        let Some(request) = http::read(&stream)? else { return Ok(()) };
        let wants_body = request.method != "HEAD";
        match self.decide(&request) {
            Deed::Reply(reply) => http::write(&mut stream, &reply, wants_body),
            Deed::Half(reply) => http::write_half(&mut stream, &reply),
            Deed::Hang => wait_for_end(&mut stream),
        }
    }

    fn decide(&self, request: &Request) -> Deed {
        let vendor = match (request.method.as_str(), request.path.as_str()) {
            ("POST", path) if path.ends_with("/messages/count_tokens") => return Deed::Reply(anthropic::count()),
            ("POST", path) if path.ends_with("/messages") => Vendor::Anthropic,
            ("POST", path) if path.ends_with("/responses") => Vendor::OpenAi,
            ("GET", path) if path.ends_with("/models") => return Deed::Reply(openai::models()),
            // An agent looks whether anybody is there.
            ("HEAD", _) => return Deed::Reply(Reply::json(200, &json!({}))),
            (method, path) => return Deed::Reply(not_found(&format!("{method} {path} is not scripted"))),
        };
        match serde_json::from_slice(&request.body) {
            Ok(body) => self.answer(vendor, &body),
            Err(error) => Deed::Reply(not_found(&format!("the question is no JSON: {error}"))),
        }
    }

    fn answer(&self, vendor: Vendor, body: &Value) -> Deed {
        let (is_work, n_run) = match vendor {
            Vendor::Anthropic => (anthropic::is_work(body), anthropic::n_run(body)),
            Vendor::OpenAi => (openai::is_work(body), openai::n_run(body)),
        };
        if !is_work {
            return word(vendor, &Answer::Text("Work".to_owned()), body, "side");
        }
        let Some(key) = self.script.key_in(&body.to_string()).map(str::to_owned) else {
            return Deed::Reply(not_found("no part of the script is for this question"));
        };
        let n_before = self.remember(Question { vendor, key: key.clone(), body: body.clone() });
        let number = if key.is_empty() { n_run } else { n_before };
        match self.script.answer(&key, number) {
            Some(answer) => word(vendor, answer, body, &n_before.to_string()),
            None => Deed::Reply(not_found("this part of the script has no answers")),
        }
    }

    /// Remembers a question and says the how manieth it is for its key, from 0 on.
    fn remember(&self, question: Question) -> usize {
        let mut memory = self.memory();
        let n_answered = memory.n_answered.entry(question.key.clone()).or_default();
        let number = *n_answered;
        *n_answered += 1;
        memory.questions.push(question);
        self.asked.notify_all();
        number
    }
}

enum Deed {
    Reply(Reply),
    Half(Reply),
    Hang,
}

fn word(vendor: Vendor, answer: &Answer, question: &Value, id: &str) -> Deed {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let reply = match vendor {
        Vendor::Anthropic => anthropic::reply(answer, question, id, now),
        Vendor::OpenAi => openai::reply(answer, id, now),
    };
    match answer {
        Answer::Hang => Deed::Hang,
        Answer::Cut => Deed::Half(reply),
        _ => Deed::Reply(reply),
    }
}

fn not_found(why: &str) -> Reply {
    Reply::json(404, &json!({ "type": "error", "error": { "type": "not_found_error", "message": why } }))
}

/// Returns when the other side goes away: it has said all it had to say.
fn wait_for_end(stream: &mut TcpStream) -> io::Result<()> {
    let mut rest = [0; 64];
    while stream.read(&mut rest)? > 0 {}
    Ok(())
}
