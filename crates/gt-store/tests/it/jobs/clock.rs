//! A town whose clock is turned by hand: jobs, what fires, and runs that end as a test wants. After each step the judge, and
//! what it does not know, must find nothing.

use std::time::Duration;

use gt_core::job::{Beat, FireStatus, Payload, Schedule};
use gt_core::plan::{PerSide, Policy};
use gt_core::run::{Outcome, StopOrder};
use gt_core::session::Rules;
use gt_store::{
    Address, Advance, BeatWord, Claimant, Ended, Fault, Findings, Fire, FireFilter, FireRules, Fired, FiresOf, Job,
    JobPlan, NotStarted, Stamp, Store, StoreError, Turn,
};
use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::desk::{killed, started};
use crate::town::Town;
use crate::yard::ended;

pub(crate) const SECOND: SignedDuration = SignedDuration::from_secs(1);
pub(crate) const MINUTE: SignedDuration = SignedDuration::from_mins(1);
pub(crate) const HOUR: SignedDuration = SignedDuration::from_hours(1);
pub(crate) const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A time of the first day, such as `00:10` or `00:10:30`; all tests begin at `00:00`.
pub(crate) fn time(clock: &str) -> Timestamp {
    let seconds = if clock.len() == 5 { ":00" } else { "" };
    format!("2026-01-01T{clock}{seconds}Z").parse().expect("a time of day")
}

/// A job that asks an agent for its own name, so that its turns can be told apart.
pub(crate) fn job(name: &str, schedule: Schedule) -> JobPlan {
    JobPlan::new(name, schedule, says(name, None))
}

/// Every so many minutes, counted from `00:00`.
pub(crate) fn every(name: &str, minutes: i64) -> JobPlan {
    job(name, Schedule::Every { span: SignedDuration::from_mins(minutes), anchor: time("00:00") })
}

pub(crate) fn at(name: &str, clock: &str) -> JobPlan {
    job(name, Schedule::At(time(clock)))
}

pub(crate) fn cron(name: &str, expr: &str) -> JobPlan {
    job(name, Schedule::Cron(gt_core::cron::Expr::parse(expr).expect("an expression")))
}

pub(crate) fn says(text: &str, session: Option<&str>) -> Payload {
    Payload::Message { text: text.to_owned(), session: session.map(str::to_owned), agent: None }
}

pub(crate) fn runs(command: &str) -> Payload {
    Payload::Run { command: command.to_owned() }
}

pub(crate) fn to(channel: &str, who: Option<&str>) -> Address {
    Address { channel: channel.to_owned(), recipient: who.map(str::to_owned), reply_to: None }
}

/// A heartbeat that tells nobody, in a town with the channels that tests use.
pub(crate) fn beat(agent: &str) -> Beat {
    let channels = ["tg", "web"].map(str::to_owned).to_vec();
    Beat { agent: agent.to_owned(), target: "none".to_owned(), ack_max_chars: 300, hours: None, channels }
}

pub(crate) struct Clock {
    pub(crate) town: Town,
    pub(crate) policy: Policy,
    pub(crate) sessions: Rules,
    /// Since when somebody watches the clock.
    pub(crate) since: Timestamp,
    pub(crate) grace: SignedDuration,
    pub(crate) timeout: Option<SignedDuration>,
    pub(crate) retries: u32,
    pub(crate) failures_max: u32,
    /// What is to be done about heartbeats.
    pub(crate) word: BeatWord,
    /// Reads and spoils the tables behind the store's back.
    pub(crate) peek: Connection,
    n_runs: usize,
    dir: TempDir,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
        let path = dir.path().join("town.db");
        let town = Town::on(Store::create(&path).expect("a store"));
        Clock {
            since: town.now,
            town,
            policy: Policy::default(),
            sessions: Rules { debounce: SignedDuration::ZERO, ..Rules::default() },
            grace: HOUR,
            timeout: None,
            retries: 3,
            failures_max: 5,
            word: BeatWord::Ask("look".to_owned()),
            peek: Connection::open(&path).expect("a second connection"),
            n_runs: 0,
            dir,
        }
    }

    pub(crate) fn with(plans: &[JobPlan]) -> Clock {
        let mut clock = Clock::new();
        clock.try_add(plans).expect("the jobs are fine");
        clock
    }

    /// With so many turns at once in the lane `cron`.
    pub(crate) fn with_lane(limit: usize, plans: &[JobPlan]) -> Clock {
        let mut clock = Clock::with(plans);
        clock.policy.lanes = clock.policy.lanes.clone().with([("cron".to_owned(), limit)]);
        clock
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.dir.path().join("town.db")).expect("it is a store")
    }

    /// The daemon went, however, and another one comes: it has watched the clock since now.
    pub(crate) fn restart(&mut self) {
        self.town.store = self.open();
        self.since = self.town.now;
        self.check();
    }

    pub(crate) fn set(&mut self, clock: &str) {
        self.town.now = time(clock);
    }

    pub(crate) fn stamp(&self) -> Stamp {
        self.town.stamp()
    }

    /// Does something with the store, after which nothing may be wrong.
    pub(crate) fn does<T>(
        &mut self,
        work: impl FnOnce(&mut Store, &Stamp) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let stamp = self.stamp();
        let answer = work(&mut self.town.store, &stamp);
        self.check();
        answer
    }

    pub(crate) fn try_add(&mut self, plans: &[JobPlan]) -> Result<Vec<Job>, StoreError> {
        self.does(|store, stamp| store.add_jobs(plans, stamp))
    }

    pub(crate) fn edit(&mut self, name: &str, change: impl FnOnce(&mut JobPlan)) -> Result<Job, StoreError> {
        self.does(|store, stamp| store.edit_job(name, change, stamp))
    }

    pub(crate) fn pause(&mut self, name: &str) -> bool {
        self.does(|store, stamp| store.pause_job(name, stamp)).expect("it is there").1
    }

    pub(crate) fn resume(&mut self, name: &str) -> bool {
        self.does(|store, stamp| store.resume_job(name, stamp)).expect("it goes on").1
    }

    pub(crate) fn remove(&mut self, name: &str) -> Job {
        self.does(|store, stamp| store.remove_job(name, stamp)).expect("it is there")
    }

    pub(crate) fn job(&mut self, name: &str) -> Job {
        self.town.store.job(name).expect("it is there")
    }

    /// How many runs of it live.
    pub(crate) fn n_live(&mut self, name: &str) -> usize {
        let live = self.rows("SELECT fire.name FROM run JOIN turn ON turn.id = run.turn JOIN fire ON fire.id = turn.fire WHERE run.state <> 'ended'");
        live.iter().filter(|of| *of == name).count()
    }

    pub(crate) fn is_gone(&mut self, name: &str) -> bool {
        matches!(self.town.store.job(name), Err(StoreError::NoJob { .. }))
    }

    /// `active 00:10`, or why it is not.
    pub(crate) fn state(&mut self, name: &str) -> String {
        let job = self.job(name);
        let more = job.why.or(job.next_at.map(words));
        more.map_or(job.state.as_str().to_owned(), |more| format!("{} {more}", job.state.as_str()))
    }

    /// Fires what is due.
    pub(crate) fn fire(&mut self) -> Fired {
        let (policy, sessions, mut ask) = (self.policy.clone(), self.sessions, self.asked());
        let rules = self.rules(&policy, &sessions);
        self.does(|store, stamp| store.fire_due(&rules, &mut ask, stamp)).expect("it fires")
    }

    pub(crate) fn fire_at(&mut self, clock: &str) -> Fired {
        self.set(clock);
        self.fire()
    }

    /// Fires a job by hand.
    pub(crate) fn try_now(&mut self, name: &str) -> Result<Fire, StoreError> {
        let (policy, sessions, mut ask) = (self.policy.clone(), self.sessions, self.asked());
        let rules = self.rules(&policy, &sessions);
        self.does(|store, stamp| store.fire_now(name, &rules, &mut ask, stamp))
    }

    /// Says what is to be done about a heartbeat. Whoever does so reads files, so nobody may have to wait for him.
    fn asked(&self) -> impl FnMut(&Beat) -> BeatWord + use<> {
        let (word, path) = (self.word.clone(), self.dir.path().join("town.db"));
        move |_| {
            let other = Connection::open(&path).expect("it is a store");
            other.busy_timeout(Duration::ZERO).expect("it is a number");
            other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").expect("others can write meanwhile");
            word.clone()
        }
    }

    pub(crate) fn rules<'a>(&self, policy: &'a Policy, sessions: &'a Rules) -> FireRules<'a> {
        let (grace, timeout, retries, failures_max) = (self.grace, self.timeout, self.retries, self.failures_max);
        FireRules { policy, sessions, since: self.since, grace, timeout, retries, may_retry: true, failures_max }
    }
}

/// What runs do.
impl Clock {
    pub(crate) fn advance(&mut self, findings: &Findings) -> Advance {
        let policy = self.policy.clone();
        let mut n = self.n_runs;
        let mut new_run = || {
            n += 1;
            format!("run-{n}")
        };
        let limits = PerSide::both(None);
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me:1",
            new_run: &mut new_run,
            limits,
            n_before: 0,
            probe: &|_, _| None,
        };
        let advance = self.does(|store, stamp| store.advance(findings, &policy, Some(&mut claimant), stamp));
        self.n_runs = n;
        advance.expect("a pass works")
    }

    /// Records what happened, and claims nothing.
    pub(crate) fn record(&mut self, findings: &Findings) {
        let policy = self.policy.clone();
        self.does(|store, stamp| store.advance(findings, &policy, None, stamp)).expect("it is recorded");
    }

    pub(crate) fn claim(&mut self) -> Vec<Turn> {
        self.advance(&Findings::default()).turns
    }

    pub(crate) fn starts(&mut self, turns: &[Turn]) {
        let started = turns.iter().map(|turn| started(&turn.run)).collect();
        self.record(&Findings { started, ..Findings::default() });
    }

    /// Claims all that may start, and has it work.
    pub(crate) fn start(&mut self) -> Vec<Turn> {
        let turns = self.claim();
        self.starts(&turns);
        turns
    }

    /// Starts what must be the only one that may.
    pub(crate) fn start_one(&mut self) -> Turn {
        let mut turns = self.start();
        assert_eq!(turns.len(), 1, "{turns:?}");
        turns.remove(0)
    }

    pub(crate) fn end(&mut self, end: Ended) {
        self.record(&Findings { ended: vec![end], ..Findings::default() });
    }

    pub(crate) fn answer(&mut self, run: &str, reply: &str) {
        self.end(Ended { code: Some(0), reply: Some(reply.to_owned()), ..ended(run) });
    }

    /// Its process ended with exit code 1.
    pub(crate) fn fail(&mut self, run: &str) {
        self.end(ended(run));
    }

    /// It answers, or fails.
    pub(crate) fn end_so(&mut self, run: &str, is_good: bool) {
        if is_good {
            self.answer(run, "yes");
        } else {
            self.fail(run);
        }
    }

    pub(crate) fn fail_start(&mut self, run: &str, fault: Fault) {
        let failed = NotStarted { run: run.to_owned(), error: "no luck".to_owned(), fault, worktree: None };
        self.record(&Findings { not_started: vec![failed], ..Findings::default() });
    }

    /// It is told to stop, and does.
    pub(crate) fn stop(&mut self, run: &str, outcome: Outcome) {
        let order = StopOrder { at: self.town.now, by: "ada".to_owned(), outcome, reason: "ada said so".to_owned() };
        self.does(|store, stamp| store.order_stop(run, &order, stamp)).expect("the order is taken");
        self.end(killed(run));
    }

    /// Starts the only one that may start, and has it answer.
    pub(crate) fn run_one(&mut self, reply: &str) -> Turn {
        let turn = self.start_one();
        self.answer(&turn.run, reply);
        turn
    }

    /// Has everything start and answer until nothing is left to start.
    pub(crate) fn answer_all(&mut self) -> Vec<Turn> {
        let mut all = Vec::new();
        loop {
            let turns = self.start();
            for turn in &turns {
                self.answer(&turn.run, "yes");
            }
            if turns.is_empty() {
                return all;
            }
            all.extend(turns);
        }
    }

    /// Has the only one that may start fail, and tries it again until it is given up; returns the attempts that took.
    pub(crate) fn fail_for_good(&mut self) -> i64 {
        let turn = self.start_one();
        self.fail(&turn.run);
        let id = self.fire_of(&turn).id;
        loop {
            let fire = self.town.store.fire(id).expect("it answers").expect("it is there");
            let Some(at) = fire.retry_at else { return fire.attempt };
            self.town.now = at;
            self.fire();
            let turn = self.start_one();
            self.fail(&turn.run);
        }
    }
}

/// What is known.
impl Clock {
    /// What became of the slots of a job, the oldest record first.
    pub(crate) fn fires(&mut self, name: &str) -> Vec<Fire> {
        let filter = FireFilter { of: FiresOf::One(name.to_owned()), ..FireFilter::default() };
        let mut fires = self.town.store.fires(&filter).expect("it answers");
        fires.reverse();
        fires
    }

    /// The same in words: `00:10 ok`, `00:20 failed 4` where that took four attempts.
    pub(crate) fn log(&mut self, name: &str) -> Vec<String> {
        self.fires(name).iter().map(line).collect()
    }

    pub(crate) fn last(&mut self, name: &str) -> Fire {
        self.fires(name).pop().expect("something became of a slot")
    }

    pub(crate) fn fire_of(&mut self, turn: &Turn) -> Fire {
        let slot = turn.fire.as_ref().expect("the clock brought it");
        let mut fires = self.fires(&slot.job);
        fires.retain(|fire| fire.slot == slot.slot);
        fires.pop().expect("it is in the log")
    }

    /// Everything in the outbox: `tg:7 done fine`.
    pub(crate) fn outbox(&self) -> Vec<String> {
        self.rows(
            "SELECT channel || coalesce(':' || recipient, '') || ' ' || outcome || ' ' || text FROM outbox ORDER BY id",
        )
    }

    /// The letters to the mayor, by their subjects.
    pub(crate) fn letters(&self) -> Vec<String> {
        self.rows("SELECT subject FROM mail WHERE recipient = 'mayor' ORDER BY id")
    }

    pub(crate) fn events(&self, kind: &str) -> Vec<String> {
        self.rows(&format!("SELECT data ->> '$.job' FROM event WHERE type = '{kind}' ORDER BY seq"))
    }

    /// Rows of one column, as text.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        let mut query = self.peek.prepare_cached(sql).expect("it is SQL");
        let rows = query.query_map([], |row| row.get(0)).expect("the tables answer");
        rows.collect::<rusqlite::Result<_>>().expect("texts")
    }

    /// Everything that must always hold.
    pub(crate) fn check(&mut self) {
        self.town.check();
        for (rule, sql) in NEVER {
            assert_eq!(self.rows(sql), Vec::<String>::new(), "{rule}");
        }
    }
}

/// What must never be found in the tables: each query lists what breaks the rule it is named after.
const NEVER: [(&str, &str); 6] = [
    (
        "no job runs beside itself, unless that is allowed",
        "SELECT job.name FROM run JOIN turn ON turn.id = run.turn JOIN fire ON fire.id = turn.fire JOIN job ON job.id = fire.job
         WHERE run.state <> 'ended' AND NOT may_overlap GROUP BY job.id HAVING count(*) > 1",
    ),
    ("only an active job has a next slot", "SELECT name FROM job WHERE state <> 'active' AND next_at IS NOT NULL"),
    ("whoever is disabled knows why", "SELECT name FROM job WHERE (state = 'disabled') <> (why IS NOT NULL) AND NOT is_beat"),
    (
        "a job that comes again and again has a next slot",
        "SELECT name FROM job WHERE state = 'active' AND kind <> 'at' AND next_at IS NULL",
    ),
    (
        "who waits to be tried again is under way, and its job is there",
        "SELECT name FROM fire WHERE retry_at IS NOT NULL
           AND (status <> 'running' OR NOT EXISTS (SELECT 1 FROM job WHERE job.id = fire.job))",
    ),
    (
        "what is over has an end, and what is not has none",
        "SELECT name FROM fire WHERE (status = 'running') <> (ended_at IS NULL)",
    ),
];

fn line(fire: &Fire) -> String {
    let more = if fire.attempt > 1 { format!(" {}", fire.attempt) } else { String::new() };
    format!("{} {}{more}", words(fire.slot), fire.status.as_str())
}

/// A time as a clock shows it, with its day if that is not the first one.
pub(crate) fn words(at: Timestamp) -> String {
    let day = if at < time("00:00") + DAY { "" } else { "%m-%d " };
    let seconds = if at.as_second() % 60 == 0 { "" } else { ":%S" };
    at.strftime(&format!("{day}%H:%M{seconds}")).to_string()
}

pub(crate) fn is_ok(fire: &Fire) -> bool {
    fire.status == FireStatus::Ok
}
