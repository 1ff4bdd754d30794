//! The receiver of web hooks: takes posts on loopback, writes each down, and fails in the ways that it is told to.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::clock::{self, Micros};
use crate::pause::pause;

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Fine,
    /// Takes nothing, and says 500.
    Fails,
    /// Takes it, and does not answer for so long.
    Hangs(Duration),
    /// Takes it, and hangs up without an answer, so that it comes again.
    Forgets,
}

/// A post that was read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) at: Micros,
    pub(crate) path: String,
    pub(crate) key: String,
    pub(crate) body: Value,
    /// Whether it was taken: a receiver that fails has not got it.
    pub(crate) is_taken: bool,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    address: SocketAddr,
    mode: Mutex<Mode>,
    posts: Mutex<Vec<Post>>,
    /// The session and key of every answer that was taken.
    answers: Mutex<BTreeSet<(String, String)>>,
}

impl Receiver {
    /// Listens until the process ends.
    pub(crate) fn start() -> Result<Arc<Receiver>, String> {
        let failed = |error: std::io::Error| format!("cannot listen on loopback: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let receiver = Arc::new(Receiver {
            address,
            mode: Mutex::new(Mode::Fine),
            posts: Mutex::default(),
            answers: Mutex::default(),
        });
        let serving = Arc::clone(&receiver);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let receiver = Arc::clone(&serving);
                thread::spawn(move || receiver.serve(stream));
            }
        });
        Ok(receiver)
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    pub(crate) fn posts(&self) -> Vec<Post> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many answers of sessions whose name begins like this were taken.
    pub(crate) fn n_answers(&self, prefix: &str) -> usize {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.iter().filter(|(session, _)| session.starts_with(prefix)).count()
    }

    /// The titles of convoys whose landing was announced.
    pub(crate) fn landed(&self) -> BTreeSet<String> {
        let posts = self.posts.lock().unwrap_or_else(PoisonError::into_inner);
        posts.iter().filter_map(landed_title).map(str::to_owned).collect()
    }

    fn serve(&self, stream: TcpStream) {
        stream.set_read_timeout(Some(Duration::from_secs(30))).ok();
        let Some((path, key, body)) = read_request(&stream) else { return };
        let mode = *self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        let post = Post { at: clock::now(), path, key, body, is_taken: mode != Mode::Fails };
        if post.is_taken
            && let Some(session) = post.body["session"].as_str()
        {
            let answer = (session.to_owned(), post.key.clone());
            self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(answer);
        }
        self.posts.lock().unwrap_or_else(PoisonError::into_inner).push(post);
        match mode {
            Mode::Fine => answer(stream, "200 OK"),
            Mode::Fails => answer(stream, "500 Internal Server Error"),
            Mode::Hangs(span) => {
                pause(span);
                answer(stream, "200 OK");
            }
            Mode::Forgets => {}
        }
    }
}

/// The title of the convoy whose landing a post announces, if it was taken.
pub(crate) fn landed_title(post: &Post) -> Option<&str> {
    let is_landing = post.path == "/notices" && post.is_taken && post.body["event"] == "convoy.landed";
    post.body["data"]["title"].as_str().filter(|_| is_landing)
}

/// The path, the key and the body of a request.
fn read_request(stream: &TcpStream) -> Option<(String, String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut key) = (0, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "idempotency-key" => value.trim().clone_into(&mut key),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    if key.is_empty() {
        key = body["id"].to_string();
    }
    Some((path, key, body))
}

fn answer(mut stream: TcpStream, status: &str) {
    stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").as_bytes()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(receiver: &Receiver, key: &str) -> String {
        let mut stream = TcpStream::connect(receiver.address()).expect("it listens");
        let body = r#"{"text":"hi"}"#;
        let head =
            format!("POST /answers HTTP/1.1\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers in text");
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn posts_are_written_down_and_answered_as_told() {
        let receiver = Receiver::start().expect("loopback is there");
        for (mode, expected) in [
            (Mode::Fine, "HTTP/1.1 200 OK"),
            (Mode::Fails, "HTTP/1.1 500 Internal Server Error"),
            (Mode::Hangs(Duration::from_millis(5)), "HTTP/1.1 200 OK"),
            (Mode::Forgets, ""),
        ] {
            receiver.set_mode(mode);
            assert_eq!(post(&receiver, "turn-1"), expected);
        }
        let posts = receiver.posts();
        let taken: Vec<bool> = posts.iter().map(|post| post.is_taken).collect();
        assert_eq!(taken, [true, false, true, true]);
        assert!(posts.iter().all(|post| post.key == "turn-1" && post.path == "/answers" && post.body["text"] == "hi"));
    }
}
