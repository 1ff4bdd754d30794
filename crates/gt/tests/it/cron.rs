//! Jobs and heartbeats: a real daemon, real processes, and a clock that a test can set. // SPEC K1–K4, H1, H2

use std::fs;
use std::ops::Deref;
use std::process::{Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::town::Answer;

#[path = "cron/beats.rs"]
mod beats;
#[path = "cron/crashes.rs"]
mod crashes;
#[path = "cron/edits.rs"]
mod edits;
#[path = "cron/hearts.rs"]
mod hearts;
#[path = "cron/lists.rs"]
mod lists;
#[path = "cron/missed.rs"]
mod missed;
#[path = "cron/next.rs"]
mod next;
#[path = "cron/runs.rs"]
mod runs;
#[path = "cron/words.rs"]
mod words;

/// Where the library is that sets the clock. The program that knows leaves something behind in memory under its number, and
/// fails where one with the same number has done so before.
fn preload() -> String {
    for _ in 0..10 {
        // The one for programs with threads: the other mixes up what several of them read at once.
        let mut faketime = Command::new("faketime");
        faketime.args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).stdout(Stdio::piped());
        let told = faketime.spawn().expect("faketime is installed: `cargo xtask test` does that");
        let number = told.id();
        let told = told.wait_with_output().expect("it is a child");
        for left in ["faketime_shm_", "sem.faketime_sem_"] {
            fs::remove_file(format!("/dev/shm/{left}{number}")).unwrap_or_default();
        }
        let path = String::from_utf8(told.stdout).expect("a path").trim().to_owned();
        if !path.is_empty() {
            return path;
        }
    }
    panic!("faketime does not say where its library is");
}

/// A town with a clock of its own: `gt` and all that it starts see what the test sets.
pub(crate) struct Clocked {
    fleet: Fleet,
    preload: String,
}

impl Deref for Clocked {
    type Target = Fleet;
    fn deref(&self) -> &Fleet {
        &self.fleet
    }
}

impl Clocked {
    /// A town in which it is that time; its daemon looks at the clock each second, since nobody tells it of this one.
    fn at(time: &str) -> Clocked {
        let clocked = Clocked { fleet: ticking(), preload: preload() };
        clocked.set_clock(time);
        clocked.set("daemon.heartbeat", "1s");
        clocked
    }

    /// From now on it is that time, and goes on from there.
    fn set_clock(&self, time: &str) {
        let ahead = instant(time).duration_since(Timestamp::now()).as_secs_f64();
        self.write_clock(&format!("{ahead:+.3}"));
    }

    /// From now on it is that time, and stays so.
    fn stop_clock(&self, time: Timestamp) {
        self.write_clock(&time.as_second().to_string());
    }

    /// In one step: somebody may be reading it.
    fn write_clock(&self, words: &str) {
        fs::write(self.home("clock.new"), words).expect("the home can be written");
        fs::rename(self.home("clock.new"), self.home("clock")).expect("the home can be written");
    }

    /// It becomes that time while the daemon watches: the clock jumps to just before it, and stands still until the daemon
    /// has seen that. However busy the machine is, that time does not pass unwatched.
    fn strike(&self, time: &str) {
        let n_jumps = || self.n_said(&["the clock has gone ahead by", "the clock was set back by"]);
        let n_before = n_jumps();
        self.stop_clock(just_before(time));
        self.until_seen("the daemon to look at its clock", || n_jumps() > n_before);
        self.set_clock(time);
    }

    /// The same for a daemon that starts just before that time.
    fn start_daemon_to_strike(&self, time: &str) {
        self.stop_clock(just_before(time));
        self.start_daemon();
        self.set_clock(time);
    }

    fn env(&self) -> [(&'static str, String); 6] {
        [
            // How a time that stays is written.
            ("FAKETIME_FMT", "%s".to_owned()),
            // Whoever is killed while it looks at a file would leave all others waiting for its semaphore.
            ("NO_FAKE_STAT", "1".to_owned()),
            ("LD_PRELOAD", self.preload.clone()),
            ("FAKETIME_TIMESTAMP_FILE", self.home("clock").display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }

    fn gt(&self, arguments: &[&str]) -> Answer {
        let call = self.fleet.town.call(arguments.iter().copied());
        self.env().iter().fold(call, |call, (name, value)| call.env(name, value)).run()
    }

    fn start_daemon(&self) {
        let env = self.env();
        self.fleet.start_daemon_with(&env.each_ref().map(|(name, value)| (*name, value.as_str())));
    }
}

fn instant(time: &str) -> Timestamp {
    time.parse().expect("an instant")
}

fn just_before(time: &str) -> Timestamp {
    instant(time) - SignedDuration::from_secs(1)
}

/// A town whose jobs can leave a line in `trace`: `tick JOB SLOT ATTEMPT`.
fn ticking() -> Fleet {
    let fleet = Fleet::new("");
    fs::write(fleet.home("tick.sh"), "echo \"tick $GT_JOB $GT_SLOT $GT_ATTEMPT\" >> \"$HOME/trace\"\n")
        .expect("the home can be written");
    fleet
}

/// The command of such a job.
const TICK: &str = "sh \"$HOME/tick.sh\"";

/// Adds a job; what it does is among the words.
fn add(fleet: &Fleet, words: &[&str]) {
    fleet.town.call(["cron", "add"].iter().chain(words).copied()).run().success();
}

/// The ticks so far: job, slot and attempt.
fn ticks(fleet: &Fleet) -> Vec<(String, String, String)> {
    let trace = fs::read_to_string(fleet.home("trace")).unwrap_or_default();
    let tick = |line: &str| {
        let words: Vec<String> = line.strip_prefix("tick ")?.split(' ').map(str::to_owned).collect();
        <[String; 3]>::try_from(words).ok().map(|[job, slot, attempt]| (job, slot, attempt))
    };
    trace.lines().filter_map(tick).collect()
}

/// Nothing has run twice.
fn assert_each_once(fleet: &Fleet) {
    let mut ticks = ticks(fleet);
    ticks.sort();
    let n = ticks.len();
    ticks.dedup();
    assert_eq!(ticks.len(), n, "a slot ran twice: {ticks:#?}");
}

/// What became of the slots of a job, the oldest first.
fn fires(fleet: &Fleet, job: &str) -> Vec<Value> {
    let mut rows = fleet.town.gt(["cron", "runs", job, "--limit", "0", "--json"]).json();
    let rows = rows.as_array_mut().expect("a list");
    rows.reverse();
    std::mem::take(rows)
}

/// The same, a line each: slot, status and reason.
fn told(fleet: &Fleet, job: &str) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |fire: &Value| {
        let slot = word(&fire["slot"]);
        format!("{job} {} {}: {}", &slot[11..16], word(&fire["status"]), word(&fire["error"]))
    };
    fires(fleet, job).iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Waits until so many fires have a status; of one job or of all.
fn await_fires(fleet: &Fleet, job: &str, status: &str, n: i64) {
    let store = Connection::open(fleet.town.store()).expect("the store is there");
    let sql = "SELECT count(*) FROM fire WHERE name LIKE ?1 AND status = ?2";
    let count = || store.query_row(sql, [job, status], |row| row.get::<_, i64>(0)).expect("it answers");
    fleet.until_seen(&format!("{n} fires of {job} {status}"), || count() >= n);
}

/// The headless agent does what this script says; its message is in `$text`.
fn answers(fleet: &Fleet, script: &str) {
    fs::write(
        fleet.home("turn.sh"),
        format!("text=$(cat)\necho \"turn $GT_SESSION $text\" >> \"$HOME/trace\"\n{script}\n"),
    )
    .expect("the home can be written");
    let turn = fleet.home("turn.sh").display().to_string();
    fleet.set("agents.scripted.headless", &json!(["bash", turn]).to_string());
}
