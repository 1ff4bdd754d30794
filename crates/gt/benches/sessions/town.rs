//! A town whose sessions are answered by a waiting daemon, which may be killed now and then.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gt_core::lane::Lanes;
use gt_core::session::Rules;
use gt_engine::Town;
use gt_store::{NewMessage, Stamp, Store, TurnView};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use crate::judge::{self, Judged};
use crate::{LaneOf, Measured, Size, agent};

const GT: &str = env!("CARGO_BIN_EXE_gt");
const PATIENCE: Duration = Duration::from_mins(10);
/// Messages that are committed together.
const TOGETHER: usize = 500;

/// Sends every message, waits for all answers and judges them.
pub(crate) fn measure(size: Size, lane_of: LaneOf, n_kills: usize) -> (Measured, Judged) {
    let dir = make();
    let town = Town::at(dir.path()).expect("it was just made");
    let mut store = town.open_store().expect("it opens");
    let mut daemon = start(dir.path());
    let begin = Timestamp::now();
    send(&mut store, size, lane_of);
    await_all(&mut store, size, n_kills, &mut daemon, dir.path());
    let turns: Vec<Vec<TurnView>> =
        (0..size.sessions).map(|n| store.turns(&key(n), usize::MAX).expect("it answers")).collect();
    end(&mut daemon);
    let log = fs::read_to_string(dir.path().join("turns.log")).expect("somebody has answered");
    let latencies: Vec<Duration> = turns
        .iter()
        .flatten()
        .filter_map(|turn| Duration::try_from(turn.ended_at?.duration_since(turn.made_at)).ok())
        .collect();
    let last = turns.iter().flatten().filter_map(|turn| turn.ended_at).max().unwrap_or(begin);
    let time = Duration::try_from(last.duration_since(begin)).unwrap_or_default();
    (Measured { time, latencies }, judge::judge(size, lane_of, &log, &turns))
}

fn key(session: usize) -> String {
    format!("dm:{session}")
}

fn make() -> TempDir {
    let dir = tempfile::Builder::new().prefix("bench-").tempdir().expect("a temporary directory");
    let done = Command::new(GT).current_dir(dir.path()).arg("init").output().expect("gt starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let argv = agent::argv(&dir.path().join("turns.log"));
    let config = format!(
        "default_agent = \"bench\"\nruntime = \"process\"\nguards.load_per_core = 0\nguards.free_memory = \"0 B\"\nguards.free_disk = \"0 B\"\nguards.max_agents = 0\nserver.bind = \"127.0.0.1:0\"\n\
         sessions.cap = 100\nsessions.debounce_ms = 0\n[agents.bench]\nheadless = {argv:?}\n"
    );
    fs::write(dir.path().join("town.toml"), config).expect("the town can be written");
    dir
}

fn start(dir: &Path) -> Child {
    let mut command = Command::new(GT);
    command.current_dir(dir).args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().expect("the daemon starts")
}

fn end(daemon: &mut Child) {
    daemon.kill().unwrap_or_default();
    daemon.wait().map(drop).unwrap_or_default();
}

/// All of them, the sessions in turn.
fn send(store: &mut Store, size: Size, lane_of: LaneOf) {
    let rules = Rules { cap: 100, debounce: SignedDuration::ZERO, ..Rules::default() };
    let message = |n: usize, session: usize| NewMessage {
        session: key(session),
        text: n.to_string(),
        sender: "bench".to_owned(),
        channel: "bench".to_owned(),
        lane: Some(lane_of(session).to_owned()),
        ..NewMessage::default()
    };
    let all: Vec<NewMessage> = (0..size.messages)
        .flat_map(|n| (0..size.sessions).map(move |session| (n, session)))
        .map(|(n, session)| message(n, session))
        .collect();
    for some in all.chunks(TOGETHER) {
        let stamp = Stamp::new(Timestamp::now(), "bench");
        let sent = store.send(some, &rules, &Lanes::default(), &stamp).expect("it is stored");
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    }
}

/// Waits until everything is answered; kills the daemon and starts another so many times on the way.
fn await_all(store: &mut Store, size: Size, n_kills: usize, daemon: &mut Child, dir: &Path) {
    let deadline = Instant::now() + PATIENCE;
    let mut n_killed = 0;
    loop {
        let sessions = store.sessions(None).expect("it answers");
        let n_left: usize = sessions.iter().map(|session| session.n_waiting + session.n_live).sum();
        if n_left == 0 && sessions.len() == size.sessions {
            return;
        }
        if n_killed < n_kills && n_left < size.n() * (n_kills - n_killed) / (n_kills + 1) {
            end(daemon);
            *daemon = start(dir);
            n_killed += 1;
        }
        assert!(Instant::now() < deadline, "{n_left} messages are not answered");
        // The machine belongs to what is measured.
        agent::wait(Duration::from_millis(100));
    }
}
