//! Anything that can happen to sessions, in any order: after every step every invariant holds. // SPEC L1–L4

use gt_core::session::{Mode, Overflow};
use gt_store::{Ended, Fault, Findings, NewMessage};
use jiff::SignedDuration;
use proptest::prelude::*;

use crate::desk::{Desk, killed, message, started};
use crate::town::n_cases;
use crate::yard::ended;

#[derive(Debug, Clone)]
enum Step {
    Send {
        session: u8,
        sender: u8,
        lane: u8,
    },
    /// A run asks another session and waits.
    Ask {
        run: u8,
        session: u8,
    },
    Pass,
    Started,
    NotStarted {
        run: u8,
        is_fault: bool,
    },
    Answered {
        run: u8,
    },
    Failed {
        run: u8,
    },
    Killed {
        run: u8,
    },
    Stop {
        session: u8,
        is_all: bool,
    },
    Time {
        millis: u16,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..5_u8, 0..2_u8, 0..3_u8).prop_map(|(session, sender, lane)| Step::Send { session, sender, lane }),
        2 => (any::<u8>(), 0..5_u8).prop_map(|(run, session)| Step::Ask { run, session }),
        5 => Just(Step::Pass),
        4 => Just(Step::Started),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(run, is_fault)| Step::NotStarted { run, is_fault }),
        5 => any::<u8>().prop_map(|run| Step::Answered { run }),
        1 => any::<u8>().prop_map(|run| Step::Failed { run }),
        1 => any::<u8>().prop_map(|run| Step::Killed { run }),
        1 => (0..5_u8, any::<bool>()).prop_map(|(session, is_all)| Step::Stop { session, is_all }),
        3 => (0..2000_u16).prop_map(|millis| Step::Time { millis }),
    ];
    prop::collection::vec(step, 1..60)
}

fn key(session: u8) -> String {
    if session < 3 { format!("dm:{session}") } else { format!("group:{session}") }
}

const LANES: [&str; 3] = ["main", "subagent", "cron"];

struct Story {
    desk: Desk,
    turns: Vec<i64>,
}

impl Story {
    fn live(&mut self) -> Vec<String> {
        self.desk.town.store.live_runs().expect("it answers").iter().map(|run| run.id.clone()).collect()
    }

    fn any(&mut self, at: u8) -> Option<String> {
        let live = self.live();
        (!live.is_empty()).then(|| live[usize::from(at) % live.len()].clone())
    }

    fn end(&mut self, run: u8, end: impl FnOnce(&str) -> Ended) {
        if let Some(run) = self.any(run) {
            self.desk.advance(&Findings { ended: vec![end(&run)], ..Findings::default() });
        }
    }

    fn send(&mut self, message: NewMessage) {
        // What is refused, or finds no room, is no turn.
        self.turns.extend(self.desk.try_send(message).ok().and_then(|sent| sent.turn));
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Send { session, sender, lane } => self.send(NewMessage {
                sender: sender.to_string(),
                lane: Some(LANES[usize::from(lane)].to_owned()),
                ..message(&key(session), "x")
            }),
            Step::Ask { run, session } => {
                if let Some(parent) = self.any(run) {
                    self.send(NewMessage { parent: Some(parent), ..message(&key(session), "x") });
                }
            }
            Step::Pass => drop(self.desk.advance(&Findings::default())),
            Step::Started => {
                let started = self.live().iter().map(|run| started(run)).collect();
                self.desk.advance(&Findings { started, ..Findings::default() });
            }
            Step::NotStarted { run, is_fault } => {
                if let Some(run) = self.any(run) {
                    self.desk.fail_start(&run, if is_fault { Fault::Bead } else { Fault::Town });
                }
            }
            Step::Answered { run } => {
                self.end(run, |run| Ended { code: Some(0), reply: Some("yes".into()), ..ended(run) });
            }
            Step::Failed { run } => self.end(run, ended),
            Step::Killed { run } => self.end(run, killed),
            Step::Stop { session, is_all } => drop(self.desk.stop(&key(session), is_all)),
            Step::Time { millis } => self.desk.pass_millis(millis.into()),
        }
        self.judge();
    }

    /// What the store's own judge does not know: limits.
    fn judge(&mut self) {
        for lane in self.desk.town.store.lanes(&self.desk.policy).expect("it answers") {
            assert!(lane.limit.is_none_or(|limit| lane.active <= limit), "{lane:?}");
        }
        for session in self.desk.town.store.sessions(None).expect("it answers") {
            assert!(session.n_live <= session.limit(), "{session:?}");
        }
    }

    /// However it began, it comes to an end: everything that was taken has an outcome.
    fn finish(&mut self) {
        for _ in 0..500 {
            self.desk.pass_millis(400_000);
            let live = self.live();
            let started = live.iter().map(|run| started(run)).collect();
            self.desk.advance(&Findings { started, ..Findings::default() });
            let end = |run: &String| Ended { code: Some(0), reply: Some("yes".into()), ..ended(run) };
            self.desk.advance(&Findings { ended: live.iter().map(end).collect(), ..Findings::default() });
            if self.live().is_empty() && self.desk.advance(&Findings::default()).turns.is_empty() {
                break;
            }
        }
        for turn in self.turns.clone() {
            assert!(self.desk.turn(turn).outcome.is_some(), "{:?}", self.desk.turn(turn));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: n_cases(150), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_happens_breaks_an_invariant_or_holds_a_turn_for_ever(
        mode in prop_oneof![Just(Mode::Queue), Just(Mode::Interrupt)],
        drops_new: bool,
        cap in 1_usize..4,
        debounce in prop_oneof![Just(0_i64), Just(800)],
        steps in steps(),
    ) {
        let mut desk = Desk::with_main(2);
        desk.set_lane("subagent", 1);
        desk.rules.mode = mode;
        desk.rules.cap = cap;
        desk.rules.overflow = if drops_new { Overflow::New } else { Overflow::Old };
        desk.rules.debounce = SignedDuration::from_millis(debounce);
        let mut story = Story { desk, turns: Vec::new() };
        for step in &steps {
            story.take(step);
        }
        story.finish();
    }
}
