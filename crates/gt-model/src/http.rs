//! Just enough HTTP/1.1: one request of a connection is read, one answer is written, and the connection is closed.
//!
//! Does not own: what is asked and answered. Bodies and heads are bounded, so that no agent can make a test eat memory.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The most that is read of a request's head and of its body. A whole conversation is asked each time.
const HEAD_MAX: u64 = 64 * 1024;
const BODY_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without what follows a question mark.
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

/// One answer: a status, more headers, and a body of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Reply {
        Reply { status, headers: Vec::new(), kind: "application/json", body: body.to_string() }
    }

    /// Server-sent events, each named after its `type`.
    pub(crate) fn events(events: &[serde_json::Value]) -> Reply {
        let block = |event: &serde_json::Value| {
            let name = event["type"].as_str().unwrap_or_default();
            format!("event: {name}\ndata: {event}\n\n")
        };
        let body = events.iter().map(block).collect();
        Reply { status: 200, headers: Vec::new(), kind: "text/event-stream", body }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Reply {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// Reads one request; nothing if the other side closed without asking.
pub(crate) fn read(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let Some(head) = read_head(&mut reader)? else { return Ok(None) };
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(String, &str)> = lines.filter_map(header).collect();
    let find = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let length = find("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let body = match find("transfer-encoding") {
        Some("chunked") => read_chunks(&mut reader)?,
        _ => read_exactly(&mut reader, length)?,
    };
    let path = target.split('?').next().unwrap_or_default().to_owned();
    Ok(Some(Request { method: method.to_owned(), path, body }))
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut head = String::new();
    let mut bounded = reader.take(HEAD_MAX);
    while !head.ends_with("\r\n\r\n") {
        match bounded.read_line(&mut head)? {
            0 if head.is_empty() => return Ok(None),
            0 => return Err(io::Error::new(io::ErrorKind::InvalidData, "the head of the request does not end")),
            _ => {}
        }
    }
    Ok(Some(head))
}

fn header(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim()))
}

fn read_exactly(reader: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if length > BODY_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the body of the request is too long"));
    }
    reader.take(length).read_to_end(&mut body)?;
    if body.len() as u64 == length { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.take(HEAD_MAX).read_line(&mut line)?;
        let digits = line.trim().split(';').next().unwrap_or_default();
        let length = u64::from_str_radix(digits, 16)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a chunk has no length"))?;
        body.extend(read_exactly(reader, length.min(BODY_MAX - body.len() as u64 + 1))?);
        read_exactly(reader, 2)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

/// Writes the whole answer; the connection is then closed by whoever drops it.
pub(crate) fn write(stream: &mut TcpStream, reply: &Reply, wants_body: bool) -> io::Result<()> {
    let head = head(reply, Some(reply.body.len()));
    stream.write_all(head.as_bytes())?;
    if wants_body {
        stream.write_all(reply.body.as_bytes())?;
    }
    stream.flush()
}

/// Writes the beginning of an answer that never comes to its end.
pub(crate) fn write_half(stream: &mut TcpStream, reply: &Reply) -> io::Result<()> {
    let first = reply.body.split_inclusive("\n\n").next().unwrap_or_default();
    stream.write_all(head(reply, None).as_bytes())?;
    stream.write_all(first.as_bytes())?;
    stream.flush()
}

fn head(reply: &Reply, length: Option<usize>) -> String {
    let mut head = format!("HTTP/1.1 {} Scripted\r\ncontent-type: {}\r\n", reply.status, reply.kind);
    for (name, value) in &reply.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    let length = length.map(|length| format!("content-length: {length}\r\n")).unwrap_or_default();
    head + &length + "connection: close\r\n\r\n"
}
