//! A town that is talked to, in virtual time: verbs by short names, and every invariant after each step.

use std::collections::BTreeMap;

use gt_core::plan::{PerSide, Policy};
use gt_core::refusal::Refusal;
use gt_core::session::{Rules, TurnOutcome};
use gt_store::{
    Advance, Claimant, Ended, Fault, Findings, NewMessage, NotStarted, SendOutcome, Sent, Started, Stopped, Turn,
    TurnState, TurnView,
};
use jiff::SignedDuration;

use crate::town::Town;
use crate::yard::ended;

/// A town with sessions, whose debounce is off unless a test wants it.
pub(crate) struct Desk {
    pub(crate) town: Town,
    pub(crate) policy: Policy,
    pub(crate) rules: Rules,
    n_runs: usize,
    /// How many runs of a lane and of a session lived at once, at the most.
    pub(crate) most: BTreeMap<String, usize>,
}

/// A message, as a person types it.
pub(crate) fn message(session: &str, text: &str) -> NewMessage {
    NewMessage {
        session: session.to_owned(),
        text: text.to_owned(),
        sender: "anna".to_owned(),
        channel: "cli".to_owned(),
        ..NewMessage::default()
    }
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let rules = Rules { debounce: SignedDuration::ZERO, ..Rules::default() };
        Desk { town: Town::new(), policy: Policy::default(), rules, n_runs: 0, most: BTreeMap::new() }
    }

    /// With so many turns at once in the lane `main`.
    pub(crate) fn with_main(limit: usize) -> Desk {
        let mut desk = Desk::new();
        desk.set_lane("main", limit);
        desk
    }

    pub(crate) fn set_lane(&mut self, name: &str, limit: usize) {
        self.policy.lanes = self.policy.lanes.clone().with([(name.to_owned(), limit)]);
    }

    pub(crate) fn pass_millis(&mut self, millis: i64) {
        self.town.now += SignedDuration::from_millis(millis);
    }

    pub(crate) fn try_send(&mut self, message: NewMessage) -> Result<Sent, Refusal> {
        let stamp = self.town.stamp();
        let sent = self.town.store.send(&[message], &self.rules, &self.policy.lanes, &stamp);
        self.town.check();
        sent.expect("the store answers").remove(0)
    }

    /// Sends, and says which turn it became.
    pub(crate) fn send(&mut self, session: &str, text: &str) -> i64 {
        self.try_send(message(session, text)).expect("it is taken").turn.expect("it is a turn")
    }

    pub(crate) fn outcome(&mut self, session: &str, text: &str) -> SendOutcome {
        self.try_send(message(session, text)).expect("it is answered").outcome
    }

    pub(crate) fn advance(&mut self, findings: &Findings) -> Advance {
        let (stamp, policy) = (self.town.stamp(), self.policy.clone());
        let n = &mut self.n_runs;
        let mut new_run = || {
            *n += 1;
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
        let advance = self.town.store.advance(findings, &policy, Some(&mut claimant), &stamp);
        self.town.check();
        self.count();
        advance.expect("a pass works")
    }

    fn count(&mut self) {
        let mut now: BTreeMap<String, usize> = BTreeMap::new();
        for run in self.town.store.live_runs().expect("it answers").iter() {
            *now.entry(run.lane.clone().unwrap_or_default()).or_default() += 1;
            *now.entry(run.turn.as_ref().expect("a turn").session.clone()).or_default() += 1;
        }
        for (name, n) in now {
            let most = self.most.entry(name).or_default();
            *most = n.max(*most);
        }
    }

    /// Claims all that may start, and has it work.
    pub(crate) fn start(&mut self) -> Vec<Turn> {
        let turns = self.advance(&Findings::default()).turns;
        let started = turns.iter().map(|turn| started(&turn.run)).collect();
        self.advance(&Findings { started, ..Findings::default() });
        turns
    }

    /// The texts of what may start.
    pub(crate) fn starts(&mut self) -> Vec<String> {
        self.start().into_iter().map(|turn| turn.text).collect()
    }

    /// Ends a run with an answer, and starts what may start then; says what that is.
    pub(crate) fn answer(&mut self, run: &str, reply: &str) -> Vec<String> {
        self.end(Ended { code: Some(0), reply: Some(reply.to_owned()), ..ended(run) })
    }

    pub(crate) fn end(&mut self, ended: Ended) -> Vec<String> {
        self.end_all(vec![ended])
    }

    pub(crate) fn end_all(&mut self, ended: Vec<Ended>) -> Vec<String> {
        let turns = self.advance(&Findings { ended, ..Findings::default() }).turns;
        let started = turns.iter().map(|turn| started(&turn.run)).collect();
        self.advance(&Findings { started, ..Findings::default() });
        turns.into_iter().map(|turn| turn.text).collect()
    }

    pub(crate) fn fail_start(&mut self, run: &str, fault: Fault) {
        let failed = NotStarted { run: run.to_owned(), error: "no luck".to_owned(), fault, worktree: None };
        let (stamp, policy) = (self.town.stamp(), self.policy.clone());
        let findings = Findings { not_started: vec![failed], ..Findings::default() };
        self.town.store.advance(&findings, &policy, None, &stamp).expect("it is recorded");
        self.town.check();
    }

    pub(crate) fn stop(&mut self, session: &str, is_all: bool) -> Stopped {
        let stamp = self.town.stamp();
        let stopped = self.town.store.stop_session(session, is_all, &stamp).expect("it answers");
        self.town.check();
        stopped
    }

    pub(crate) fn turn(&mut self, turn: i64) -> TurnView {
        self.town.store.turn(turn).expect("it answers").expect("it is there")
    }

    /// How a turn stands: its outcome, else its state.
    pub(crate) fn word(&mut self, turn: i64) -> &'static str {
        let turn = self.turn(turn);
        match (turn.state, turn.outcome) {
            (TurnState::Waiting, _) => "waiting",
            (TurnState::Live, _) => "live",
            (TurnState::Ended, outcome) => outcome.map_or("nothing", TurnOutcome::as_str),
        }
    }

    pub(crate) fn words(&mut self, turns: &[i64]) -> Vec<&'static str> {
        turns.iter().map(|turn| self.word(*turn)).collect()
    }

    pub(crate) fn error(&mut self, turn: i64) -> String {
        self.turn(turn).error.unwrap_or_default()
    }
}

pub(crate) fn started(run: &str) -> Started {
    let conversation = Some(format!("c-{run}"));
    Started { branch: None, worktree: None, conversation, ..crate::yard::started(run) }
}

/// The end of a run that somebody told to stop.
pub(crate) fn killed(run: &str) -> Ended {
    Ended { code: None, signal: Some(15), ..ended(run) }
}
