//! A server on loopback that remembers what it was asked and answers as the test says.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::fleet::PATIENCE;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// With names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("it is JSON")
    }
}

pub(crate) enum Answer {
    /// A status, more lines of the head, and a body.
    Status(u16, &'static str, String),
    /// The connection is cut.
    Cut,
    /// Nothing, as long as whoever asked waits.
    Never,
}

pub(crate) fn ok() -> Answer {
    Answer::Status(200, "", String::new())
}

pub(crate) struct Double {
    pub(crate) url: String,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    is_more: Condvar,
}

impl Double {
    /// Answers each request by what it is, and the how manyth.
    pub(crate) fn new(answer: impl Fn(&Request, usize) -> Answer + Send + Sync + 'static) -> Double {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let seen = Arc::new(Seen::default());
        let (answer, notes) = (Arc::new(answer), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, notes) = (Arc::clone(&answer), Arc::clone(&notes));
                std::thread::spawn(move || serve(stream, &notes, &*answer));
            }
        });
        Double { url, seen }
    }

    /// Answers with these, one after the other, then with success.
    pub(crate) fn in_order(answers: Vec<fn() -> Answer>) -> Double {
        Double::new(move |_, n| answers.get(n).map_or_else(ok, |answer| answer()))
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().expect("nobody panicked").clone()
    }

    /// Waits until the requests so far satisfy the test.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&[Request]) -> bool) -> Vec<Request> {
        assert!(self.comes_within(PATIENCE, &is_so), "waited in vain for {what}: {:#?}", self.requests());
        self.requests()
    }

    /// Whether that comes to be so within a span.
    pub(crate) fn comes_within(&self, span: Duration, is_so: impl Fn(&[Request]) -> bool) -> bool {
        let requests = self.seen.requests.lock().expect("nobody panicked");
        let waited = self.seen.is_more.wait_timeout_while(requests, span, |requests| !is_so(requests));
        !waited.expect("nobody panicked").1.timed_out()
    }
}

fn serve(stream: TcpStream, seen: &Seen, answer: &dyn Fn(&Request, usize) -> Answer) {
    let mut stream = BufReader::new(stream);
    let Some(request) = read(&mut stream) else { return };
    let n_before = {
        let mut requests = seen.requests.lock().expect("nobody panicked");
        requests.push(request.clone());
        seen.is_more.notify_all();
        requests.len() - 1
    };
    match answer(&request, n_before) {
        Answer::Cut => {}
        Answer::Never => drop(stream.read(&mut [0])),
        Answer::Status(status, head, body) => {
            let length = body.len();
            let text =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{head}\r\n{body}");
            // Whoever asked may be dead by now.
            stream.get_mut().write_all(text.as_bytes()).unwrap_or_default();
        }
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length: &String| length.parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Request { path, headers, body: String::from_utf8(body).expect("it is text") })
}
