//! How many connections are served at once.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

use gt_server::Limits;

use crate::served::{PATIENCE, Served, reply, until};

/// Connections that wait at an address to be taken, as the kernel counts them.
fn n_waiting(address: SocketAddr) -> usize {
    const LISTENS: &str = "0A";
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel tells");
    let port = format!(":{:04X}", address.port());
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, LISTENS, queues, ..] = words.as_slice() else { return None };
        let waiting = queues.split_once(':')?.1;
        local.ends_with(&port).then(|| usize::from_str_radix(waiting, 16).ok())?
    };
    table.lines().find_map(of_line).expect("it listens")
}

/// Callers who wait for an answer, so many more than the others, who say nothing.
fn assert_bounded(limits: Limits, n_more: usize) {
    let served = Served::new(limits);
    let address = served.address();
    let mut silent: Vec<TcpStream> = (0..limits.connections).map(|_| served.connect()).collect();
    until("all places are taken", || n_waiting(address) == 0);
    let waiting: Vec<TcpStream> = (0..n_more).map(|_| served.connect()).collect();
    for mut stream in &waiting {
        stream.write_all(served.head("GET /v1/lanes", "", 0).as_bytes()).expect("the kernel takes it");
    }
    let is_answered = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).expect("it can be set");
        let is_answered = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).expect("it can be set");
        stream.flush().expect("there is nothing to do");
        is_answered
    };
    until("the others wait, or are answered", || n_waiting(address) == n_more || waiting.iter().any(is_answered));
    assert_eq!(n_waiting(address), n_more);
    assert!(!waiting.iter().any(is_answered));
    // One place is enough for all of them, one after the other.
    drop(silent.pop());
    for stream in waiting {
        assert_eq!(reply(stream).status, 200);
    }
    drop(silent);
}

#[test]
fn who_comes_when_all_places_are_taken_waits_for_one() {
    let limits = Limits { connections: 3, head: PATIENCE, ..Limits::default() };
    assert_bounded(limits, 4);
}

#[test]
fn the_limits_are_those_that_the_manual_names() {
    let manual = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md")).expect("a manual");
    let manual = manual.split_whitespace().collect::<Vec<_>>().join(" ");
    let Limits { connections, head, body, write } = Limits::default();
    let (head, body, write) = (head.as_secs(), body.as_secs(), write.as_secs());
    for promise in [
        format!("{connections} connections at once"),
        format!("A connection may be silent for {head} seconds, a body may take {body}"),
        "takes nothing of his answer for a minute is cut off".to_owned(),
    ] {
        assert!(manual.contains(&promise), "{promise}");
    }
    assert_eq!(write, 60);
    assert_bounded(Limits { head: PATIENCE, ..Limits::default() }, 2);
}
