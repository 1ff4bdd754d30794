//! What a pass costs follows what happens, not how much lies around. // SPEC B8
//!
//! Counted in steps of SQLite's machine, which are the same however busy the computer is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gt_core::context::SlingFields;
use gt_core::plan::{PerSide, Policy};
use gt_core::rig::{Rig, RigState};
use jiff::{SignedDuration, Timestamp};
use rusqlite::StatementStatus;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use crate::{
    Assignment, Claimant, ConvoyWish, Ended, Findings, ImportBead, ImportOptions, Sling, Stamp, Started, Store,
};

const LINKS: usize = 40;

struct Town {
    store: Store,
    now: Timestamp,
    n_steps: Arc<AtomicU64>,
}

impl Town {
    /// A town in which so many beads are scheduled and blocked, and so many runs have ended, beside one chain.
    fn crowded(n: usize) -> Town {
        let store = Store::in_memory().expect("a store in memory");
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let mut town = Town { store, now, n_steps: Arc::default() };
        let stamp = town.stamp();
        town.store.add_rig(&shop(), &stamp).expect("the rig is new");
        let alone = |id: String| (id, None);
        let link = |at: usize| (format!("gt-c{at}"), at.checked_sub(1).map(|before| format!("gt-c{before}")));
        let beads = std::iter::once(alone("gt-0".to_owned()))
            .chain((0..n).map(|at| alone(format!("gt-o{at}"))))
            .chain((0..n).map(|at| (format!("gt-w{at}"), Some("gt-0".to_owned()))))
            .chain((0..LINKS).map(link));
        town.import(beads);
        town.sling("o", n);
        let runs = town.advance(&Findings::default());
        let ids: Vec<String> = (0..n).map(|at| format!("gt-o{at}")).collect();
        town.store.close_beads(&ids, None, &stamp).expect("they close");
        town.advance(&Findings { ended: runs.iter().map(|run| ended(&run.run)).collect(), ..Findings::default() });
        town.sling("w", n);
        town.sling("c", LINKS);
        town.count();
        town
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(self.now, "tester")
    }

    /// Takes beads over, each with what blocks it.
    fn import(&mut self, beads: impl Iterator<Item = (String, Option<String>)>) {
        let line = |(id, blocker): (String, Option<String>)| {
            let edge = |blocker| serde_json::json!({ "issue_id": id, "depends_on_id": blocker, "type": "blocks" });
            let edges: Vec<_> = blocker.map(edge).into_iter().collect();
            serde_json::json!({ "id": id, "title": id, "dependencies": edges }).to_string()
        };
        let bead = |(at, text): (usize, String)| match gt_core::jsonl::parse_line(&text).expect("a good line") {
            gt_core::jsonl::Line::Bead { bead, .. } => ImportBead { line: at + 1, bead },
            gt_core::jsonl::Line::NoBead => panic!("a bead is expected in {text}"),
        };
        let beads: Vec<ImportBead> = beads.map(line).enumerate().map(bead).collect();
        let stamp = self.stamp();
        self.store.import(beads, &ImportOptions::default(), &stamp, |_| {}).expect("the import works");
    }

    fn sling(&mut self, kind: &str, n: usize) {
        let wanted = Sling {
            beads: (0..n).map(|at| format!("gt-{kind}{at}")).collect(),
            rig: None,
            fields: SlingFields::default(),
            force: false,
            convoy: ConvoyWish::Auto { title: None },
            is_batch: true,
            prescriptions: std::collections::BTreeMap::new(),
        };
        let stamp = self.stamp();
        self.store.sling(&wanted, None, &stamp).expect("they are scheduled");
    }

    fn advance(&mut self, findings: &Findings) -> Vec<Assignment> {
        let (stamp, policy) = (self.stamp(), Policy::default());
        let first = self.store.last_event().expect("the log answers");
        let mut n = 0;
        let mut new_run = || {
            n += 1;
            format!("run-{first}-{n}")
        };
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me:1",
            new_run: &mut new_run,
            limits: PerSide::both(None),
            n_before: 0,
            probe: &|_, _| None,
        };
        self.store.advance(findings, &policy, Some(&mut claimant), &stamp).expect("it is claimed").claimed
    }

    /// From now on the steps of every statement are counted.
    fn count(&mut self) {
        let n_steps = Arc::clone(&self.n_steps);
        let mut before = std::collections::BTreeMap::new();
        let note = move |event: TraceEvent<'_>| {
            if let TraceEvent::Profile(statement, _) = event {
                // A statement that is kept counts on from call to call.
                let n_so_far = u64::try_from(statement.get_status(StatementStatus::VmStep)).unwrap_or(0);
                let n_before = before.insert(statement.sql().into_owned(), n_so_far).unwrap_or(0);
                n_steps.fetch_add(n_so_far.checked_sub(n_before).unwrap_or(n_so_far), Ordering::Relaxed);
            }
        };
        self.store.conn.trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, Some(note)).expect("it can be traced");
    }

    /// The cheapest link of the chain: close, record the end, claim the next, look at what lives and when to look again.
    fn cheapest_link(&mut self) -> u64 {
        let mut run = self.advance(&Findings::default()).remove(0);
        let mut cheapest = u64::MAX;
        for _ in 1..LINKS {
            self.now += SignedDuration::from_secs(3);
            let stamp = self.stamp();
            let findings =
                Findings { started: vec![started(&run.run)], ended: vec![ended(&run.run)], ..Findings::default() };
            let before = self.n_steps.load(Ordering::Relaxed);
            self.store.close_beads(std::slice::from_ref(&run.bead), None, &stamp).expect("it closes");
            run = self.advance(&findings).remove(0);
            assert_eq!(self.store.live_runs().expect("it answers").len(), 1);
            assert_eq!(self.store.next_deadline(&Policy::default(), stamp.now).expect("it answers"), None);
            cheapest = cheapest.min(self.n_steps.load(Ordering::Relaxed) - before);
        }
        cheapest
    }
}

fn shop() -> Rig {
    Rig {
        name: "shop".to_owned(),
        prefix: "gt".to_owned(),
        path: "/src/shop".to_owned(),
        url: None,
        branch: "main".to_owned(),
        state: RigState::Active,
    }
}

fn started(run: &str) -> Started {
    Started {
        at: None,
        run: run.to_owned(),
        pid: 4711,
        birth: 99,
        branch: None,
        worktree: None,
        log: format!("/logs/{run}"),
        formula: None,
        conversation: None,
    }
}

fn ended(run: &str) -> Ended {
    Ended {
        run: run.to_owned(),
        code: Some(1),
        signal: None,
        leftover: 0,
        is_lost: false,
        worktree: None,
        branch: None,
        kept: None,
        patch: None,
        told: None,
        last_output: None,
        reply: None,
        is_conversation_lost: false,
    }
}

/// A walk through 1,000 rows takes several steps for each.
#[test]
fn a_link_of_a_chain_costs_the_same_in_a_crowded_town() {
    let (small, large) = (Town::crowded(30).cheapest_link(), Town::crowded(1_000).cheapest_link());
    assert!(small > 100, "hardly anything was counted: {small}");
    assert!(large < small + 1_000, "{small} steps beside 30 others, {large} beside 1,000");
}
