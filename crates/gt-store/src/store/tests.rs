//! What the daemon asks again and again must not cost more as history grows: no statement of it goes through all of a table
//! that grows. // SPEC B8, K2

mod cost;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use gt_core::job::{Beat, Payload, Schedule};
use gt_core::plan::{PerSide, Policy};
use gt_core::session::Rules;
use jiff::{SignedDuration, Timestamp};
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use crate::{
    Address, BeatWord, Beats, Claimant, Ended, Findings, FireRules, JobPlan, NewMessage, Stamp, Started, Store,
};

/// Tables that grow with what has happened.
const HISTORY: [&str; 8] = ["event", "fire", "job", "mail", "message", "outbox", "run", "turn"];

/// Parts of them that hold only what is under way, or what there are few of; the last is read from its end.
const SMALL: [&str; 12] = [
    "fire_retry",
    "fire_running",
    "job_beat",
    "outbox_order",
    "outbox_waiting",
    "run_alive",
    "run_in_lane",
    "run_live",
    "run_turn_live",
    "turn_live",
    "turn_waiting",
    "turn_to_somebody",
];

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

struct Town {
    store: Store,
    now: Timestamp,
    policy: Policy,
    sessions: Rules,
    n_runs: usize,
    live: Vec<String>,
    heard: Arc<Mutex<BTreeSet<String>>>,
}

impl Town {
    /// With a job of each kind, a heartbeat, and somebody who has talked.
    fn new() -> Town {
        let mut policy = Policy::default();
        policy.caps.agents.insert("claude".to_owned(), 1);
        policy.lanes = policy.lanes.clone().with([("cron".to_owned(), 9)]);
        let store = Store::in_memory().expect("a store in memory");
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let sessions = Rules { debounce: SignedDuration::ZERO, ..Rules::default() };
        let mut town = Town { store, now, policy, sessions, n_runs: 0, live: Vec::new(), heard: Arc::default() };
        let to = || Some(Address { channel: "web".to_owned(), recipient: None, reply_to: None });
        let every = Schedule::Every { span: MINUTE, anchor: now };
        let says = Payload::Message { text: "look".to_owned(), session: None, agent: Some("codex".to_owned()) };
        let runs = Payload::Run { command: "true".to_owned() };
        let stamp = town.stamp();
        let plans =
            [JobPlan { deliver: to(), ..JobPlan::new("says", every.clone(), says) }, JobPlan::new("runs", every, runs)];
        town.store.add_jobs(&plans, &stamp).expect("they are fine");
        town.keep_beats();
        town
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(self.now, "tester")
    }

    fn keep_beats(&mut self) {
        let beat = Beat {
            agent: "claude".to_owned(),
            target: "last".to_owned(),
            ack_max_chars: 300,
            hours: None,
            channels: vec!["web".to_owned()],
        };
        let wanted = Beats { is_on: true, interval: MINUTE * 3, beats: vec![beat] };
        let stamp = self.stamp();
        self.store.keep_beats(&wanted, &stamp).expect("they are kept");
    }

    fn listen(&mut self) {
        let heard = Arc::clone(&self.heard);
        let note = move |event: TraceEvent<'_>| {
            if let TraceEvent::Stmt(_, sql) = event {
                heard.lock().expect("nobody panics here").insert(sql.to_owned());
            }
        };
        self.store.conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note)).expect("it can be traced");
    }

    fn send(&mut self) {
        let deliver = Some(Address { channel: "web".to_owned(), recipient: None, reply_to: None });
        let (session, text) = ("dm:anna".to_owned(), "hi".to_owned());
        let message = NewMessage { session, text, deliver, ..NewMessage::default() };
        let (stamp, lanes) = (self.stamp(), self.policy.lanes.clone());
        let sent = self.store.send(&[message], &self.sessions, &lanes, &stamp).expect("the store answers");
        assert!(sent[0].is_ok(), "{sent:?}");
    }

    /// What a daemon does each time that it wakes up.
    fn pass(&mut self) {
        let stamp = self.stamp();
        self.store.rest_beats("it is night", &stamp).expect("it answers");
        let rules = FireRules {
            policy: &self.policy,
            sessions: &self.sessions,
            since: self.now - MINUTE,
            grace: MINUTE,
            timeout: None,
            retries: 1,
            may_retry: true,
            failures_max: 5,
        };
        let mut ask = |_: &Beat| BeatWord::Ask("look".to_owned());
        self.store.fire_due(&rules, &mut ask, &stamp).expect("it fires");
        self.store.mail_stranded_alerts(&["web"], &stamp).expect("it answers");
        self.store.note_stranded(&["web"], &stamp).expect("it answers");
        self.store.due_parcels("web", self.now, 9).expect("it answers");
        self.work(&stamp);
        self.store.live_runs().expect("it answers");
        self.store.next_job_at().expect("it answers");
        self.store.next_turn_at(self.now).expect("it answers");
        self.store.next_parcel_of("web").expect("it answers");
    }

    /// Claims what may start, ends what was started before, and has the new ones start.
    fn work(&mut self, stamp: &Stamp) {
        let mut n = self.n_runs;
        let mut new_run = || {
            n += 1;
            format!("run-{n}")
        };
        let limits = PerSide::both(None);
        let mut claimant = Claimant {
            policy: &self.policy,
            starter: "tester",
            new_run: &mut new_run,
            limits,
            n_before: 0,
            probe: &|_, _| None,
        };
        let advance = self.store.advance(&Findings::default(), &self.policy, Some(&mut claimant), stamp);
        let turns = advance.expect("it advances").turns;
        let first = self.n_runs;
        self.n_runs = n;
        let ended = std::mem::take(&mut self.live).iter().map(|run| ended(run, first.is_multiple_of(5))).collect();
        self.live = turns.into_iter().map(|turn| turn.run).collect();
        let started = self.live.iter().map(|run| started(run)).collect();
        let findings = Findings { started, ended, ..Findings::default() };
        self.store.advance(&findings, &self.policy, None, stamp).expect("it is recorded");
    }

    /// Statements that go through all of history, with how.
    fn long_ways(&self) -> Vec<String> {
        let heard = self.heard.lock().expect("nobody panics here");
        let plain =
            heard.iter().filter(|sql| ["SELECT", "INSERT", "UPDATE", "DELETE"].iter().any(|w| sql.starts_with(w)));
        plain.flat_map(|sql| self.scans(sql).into_iter().map(move |how| format!("{how}: {sql}"))).collect()
    }

    fn scans(&self, sql: &str) -> Vec<String> {
        let mut query = self.store.conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it is SQL");
        let steps = query.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<rusqlite::Result<Vec<_>>>();
        steps.expect("it has a plan").into_iter().filter(|step| is_long(step)).collect()
    }
}

/// Whether a step of a plan goes through all of a table that grows. What stops at the first row by its order does not.
fn is_long(step: &str) -> bool {
    let words: Vec<&str> = step.split(' ').collect();
    let index = words.iter().position(|word| *word == "INDEX").and_then(|at| words.get(at + 1));
    words[0] == "SCAN" && HISTORY.contains(&words[1]) && !index.is_some_and(|index| SMALL.contains(index))
}

fn started(run: &str) -> Started {
    Started {
        run: run.to_owned(),
        at: None,
        pid: 7,
        birth: 7,
        branch: None,
        worktree: None,
        log: String::new(),
        formula: None,
        conversation: None,
    }
}

fn ended(run: &str, has_failed: bool) -> Ended {
    Ended {
        run: run.to_owned(),
        code: Some(i32::from(has_failed)),
        signal: None,
        leftover: 0,
        is_lost: false,
        worktree: None,
        branch: None,
        kept: None,
        patch: None,
        told: None,
        last_output: None,
        reply: Some(format!("the sky falls for {run}")),
        is_conversation_lost: false,
    }
}

#[test]
fn what_a_daemon_asks_again_and_again_does_not_go_through_history() {
    let mut town = Town::new();
    town.listen();
    for n in 0..60 {
        town.now += MINUTE / 4;
        if n % 13 == 0 {
            town.send();
        }
        town.pass();
        town.keep_beats();
    }
    let heard = town.heard.lock().expect("nobody panics here").iter().cloned().collect::<Vec<_>>().join("\n");
    for part in ["fire.name = ?2", "channel IS NOT NULL AND fire IS NULL ORDER BY id DESC", "retry_at = NULL"] {
        assert!(heard.contains(part), "nobody asked: {part}");
    }
    assert_eq!(town.long_ways(), [""; 0]);
}
