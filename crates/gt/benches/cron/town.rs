//! A town with very many jobs, and a waiting daemon.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gt_core::cron::Expr;
use gt_core::job::{FireStatus, Payload, Schedule, every};
use gt_engine::Town as Place;
use gt_store::{Fire, FireFilter, JobPlan, Stamp, Store};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use crate::watch::wait;

const GT: &str = env!("CARGO_BIN_EXE_gt");
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two looks at what has been done.
const PAUSE: Duration = Duration::from_millis(500);
/// What each job starts: it does nothing, so that nothing but the starting is measured.
pub(crate) const PROGRAM: &str = "/bin/true";
/// Jobs that are added together.
const TOGETHER: usize = 1_000;

pub(crate) struct Town {
    dir: TempDir,
    daemon: Child,
}

impl Town {
    /// A town with so many jobs whose time is far away, and room for all that is due.
    pub(crate) fn new(n_jobs: usize, lane: usize) -> Town {
        let dir = tempfile::Builder::new().prefix("bench-").tempdir().expect("a temporary directory");
        run(Command::new(GT).current_dir(dir.path()).arg("init"));
        let argv = [PROGRAM];
        let config = format!(
            "default_agent = \"bench\"\nruntime = \"process\"\nguards.load_per_core = 0\nguards.free_memory = \"0 B\"\nguards.free_disk = \"0 B\"\nguards.max_agents = 0\nserver.bind = \"127.0.0.1:0\"\n\
             daemon.heartbeat = \"1h\"\nlanes.cron = {lane}\n[agents.bench]\nheadless = {argv:?}\n"
        );
        fs::write(dir.path().join("town.toml"), config).expect("the town can be written");
        let mut store = open(dir.path());
        let now = Timestamp::now();
        let names: Vec<usize> = (0..n_jobs).collect();
        for some in names.chunks(TOGETHER) {
            let plans: Vec<JobPlan> = some.iter().map(|n| plan(&format!("far-{n}"), far(*n, now))).collect();
            store.add_jobs(&plans, &stamp()).expect("they are new");
        }
        let mut command = Command::new(GT);
        command.current_dir(dir.path()).args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null());
        let daemon = command.spawn().expect("the daemon starts");
        let town = Town { dir, daemon };
        let deadline = Instant::now() + PATIENCE;
        while !town.try_gt(&["daemon", "status"]) {
            assert!(Instant::now() < deadline, "the daemon does not start");
        }
        town
    }

    pub(crate) fn pid(&self) -> u32 {
        self.daemon.id()
    }

    /// Adds jobs that run once, at these times.
    pub(crate) fn add(&self, slots: &[Timestamp]) {
        let name = |n: usize| format!("once-{}-{n}", slots[0].as_microsecond());
        let plans: Vec<JobPlan> =
            slots.iter().enumerate().map(|(n, slot)| plan(&name(n), Schedule::At(*slot))).collect();
        let mut store = open(self.dir.path());
        store.add_jobs(&plans, &stamp()).expect("they are new");
    }

    /// Waits until all that was due at these times is over, and says how late each had started.
    pub(crate) fn lateness(&self, slots: &[Timestamp]) -> Vec<Duration> {
        let mut store = open(self.dir.path());
        let (first, last) = (slots[0], slots[slots.len() - 1]);
        // The machine belongs to what is measured.
        wait(Duration::try_from(last.duration_since(Timestamp::now())).unwrap_or_default() + PAUSE);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let filter = FireFilter { status: Some(FireStatus::Ok), limit: Some(slots.len()), ..FireFilter::default() };
            let mut fires = store.fires(&filter).expect("it answers");
            fires.retain(|fire| fire.slot >= first && fire.slot <= last);
            if fires.len() == slots.len() {
                return fires.iter().map(late).collect();
            }
            assert!(Instant::now() < deadline, "{} of {} have run", fires.len(), slots.len());
            wait(PAUSE);
        }
    }

    /// How long a command takes.
    pub(crate) fn time(&self, arguments: &[&str]) -> Duration {
        let start = Instant::now();
        run(Command::new(GT).current_dir(self.dir.path()).args(arguments));
        start.elapsed()
    }

    fn try_gt(&self, arguments: &[&str]) -> bool {
        let done = Command::new(GT).current_dir(self.dir.path()).args(arguments).output();
        done.expect("gt starts").status.success()
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        self.daemon.kill().unwrap_or_default();
        self.daemon.wait().map(drop).unwrap_or_default();
    }
}

fn late(fire: &Fire) -> Duration {
    let started = fire.started_at.expect("it has run");
    Duration::try_from(started.duration_since(fire.slot)).unwrap_or_default()
}

fn run(command: &mut Command) {
    let done = command.output().expect("gt starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn open(dir: &Path) -> Store {
    Place::at(dir).and_then(|place| place.open_store()).expect("it was just made")
}

fn stamp() -> Stamp {
    Stamp::new(Timestamp::now(), "bench")
}

/// A schedule of each kind, none of which comes soon.
fn far(n: usize, now: Timestamp) -> Schedule {
    let days = SignedDuration::from_hours(24 * (2 + n as i64 % 300));
    match n % 3 {
        0 => Schedule::At(now + days),
        1 => every(days, now).expect("it is sensible"),
        _ => {
            let text = format!("{} {} {} 6 *", n % 60, n % 24, 1 + n % 28);
            Schedule::Cron(Expr::parse(&text).expect("it is an expression"))
        }
    }
}

fn plan(name: &str, schedule: Schedule) -> JobPlan {
    let payload = Payload::Message { text: "go".to_owned(), session: None, agent: None };
    JobPlan { tz: "Europe/Berlin".to_owned(), ..JobPlan::new(name, schedule, payload) }
}
