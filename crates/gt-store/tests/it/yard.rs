//! A town with rigs and dispatch: verbs by short names, and every invariant after each step.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use gt_core::context::SlingFields;
use gt_core::explain::{Explanation, Reason};
use gt_core::plan::{Missing, PerSide, Policy};
use gt_core::rig::{Rig, RigState};
use gt_core::run::{Outcome, StopOrder};
use gt_store::{
    Assignment, Claimant, ConvoyWish, Ended, Fault, Findings, NotStarted, Outlook, Report, Run, Scheduled, Sling,
    SlingOutcome, Slung, Started, Store, StoreError,
};
use rusqlite::Connection;

use crate::town::{Town, owned};

/// A town with the rigs `shop` (beads `gt-…`) and `mill` (beads `ml-…`), on a file that a second connection reads.
pub(crate) struct Yard {
    town: Town,
    pub(crate) policy: Policy,
    /// Reads and spoils the tables behind the store's back.
    pub(crate) peek: Connection,
    n_runs: usize,
    /// What the machine lacks, as a claim finds it.
    pub(crate) lacks: fn(&str, &Rig) -> Option<Missing>,
    _dir: tempfile::TempDir,
}

impl Deref for Yard {
    type Target = Town;

    fn deref(&self) -> &Town {
        &self.town
    }
}

impl DerefMut for Yard {
    fn deref_mut(&mut self) -> &mut Town {
        &mut self.town
    }
}

pub(crate) fn rig(name: &str, prefix: &str) -> Rig {
    Rig {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
        path: format!("/src/{name}"),
        url: None,
        branch: "main".to_owned(),
        state: RigState::Active,
    }
}

/// A sling of these beads as `gt sling BEAD…` would ask for it.
pub(crate) fn asked(beads: &[&str]) -> Sling {
    Sling {
        beads: owned(beads),
        rig: None,
        fields: SlingFields::default(),
        force: false,
        convoy: ConvoyWish::Auto { title: None },
        is_batch: beads.len() > 1,
        prescriptions: std::collections::BTreeMap::new(),
    }
}

pub(crate) fn forced(bead: &str) -> Sling {
    Sling { force: true, ..asked(&[bead]) }
}

pub(crate) fn codes(reasons: &[Reason]) -> Vec<&'static str> {
    reasons.iter().map(|reason| reason.code).collect()
}

pub(crate) fn beads_of(claimed: &[Assignment]) -> Vec<&str> {
    claimed.iter().map(|assignment| assignment.bead.as_str()).collect()
}

pub(crate) fn started(run: &str) -> Started {
    Started {
        at: None,
        run: run.to_owned(),
        pid: 4711,
        birth: 99,
        branch: Some(format!("polecat/{run}")),
        worktree: Some(format!("/trees/{run}")),
        log: format!("/logs/{run}"),
        formula: None,
        conversation: None,
    }
}

pub(crate) fn ended(run: &str) -> Ended {
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

impl Yard {
    pub(crate) fn new() -> Yard {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
        let path = dir.path().join("town.db");
        let town = Town::on(Store::create(&path).expect("a store"));
        let peek = Connection::open(&path).expect("a second connection");
        let mut yard = Yard { town, policy: Policy::default(), peek, n_runs: 0, lacks: |_, _| None, _dir: dir };
        let stamp = yard.stamp();
        for rig in [rig("shop", "gt"), rig("mill", "ml")] {
            yard.store.add_rig(&rig, &stamp).expect("the rig is new");
        }
        yard
    }

    /// With the beads of a small file (see `town::file`).
    pub(crate) fn with(lines: &[&str]) -> Yard {
        let mut yard = Yard::new();
        yard.import(&crate::town::file(lines));
        yard
    }

    pub(crate) fn try_sling(&mut self, sling: &Sling) -> Result<Vec<Slung>, StoreError> {
        let stamp = self.stamp();
        let answer = self.store.sling(sling, None, &stamp).map(|(slung, _)| slung);
        self.check();
        answer
    }

    /// Schedules beads, each of which must be new to the queue.
    pub(crate) fn sling(&mut self, beads: &[&str]) -> Vec<Slung> {
        let slung = self.try_sling(&asked(beads)).expect("the sling is fine");
        assert!(slung.iter().all(|slung| slung.outcome == SlingOutcome::Scheduled), "{slung:#?}");
        slung
    }

    /// Schedules and claims in one step, as direct mode does.
    pub(crate) fn sling_direct(&mut self, sling: &Sling) -> Result<(Vec<Slung>, Vec<Assignment>), StoreError> {
        let (stamp, policy, lacks) = (self.stamp(), self.policy.clone(), self.lacks);
        let mut n = self.n_runs;
        let mut new_run = || next_run(&mut n);
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me:1",
            new_run: &mut new_run,
            limits: PerSide::both(None),
            n_before: 0,
            probe: &lacks,
        };
        let answer = self.store.sling(sling, Some(&mut claimant), &stamp);
        self.n_runs = n;
        self.check();
        answer
    }

    /// Records and claims, with the yard's policy.
    pub(crate) fn pass_with(&mut self, findings: &Findings, limit: Option<usize>) -> Vec<Assignment> {
        let (stamp, policy, lacks) = (self.stamp(), self.policy.clone(), self.lacks);
        let mut n = self.n_runs;
        let mut new_run = || next_run(&mut n);
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me:1",
            new_run: &mut new_run,
            limits: PerSide::both(limit),
            n_before: 0,
            probe: &lacks,
        };
        let advance = self.store.advance(findings, &policy, Some(&mut claimant), &stamp);
        let claimed = advance.expect("a pass works").claimed;
        self.n_runs = n;
        self.check();
        claimed
    }

    pub(crate) fn claim(&mut self) -> Vec<Assignment> {
        self.pass_with(&Findings::default(), None)
    }

    /// The beads that a pass claims now.
    pub(crate) fn claims(&mut self) -> Vec<String> {
        self.claim().into_iter().map(|assignment| assignment.bead).collect()
    }

    /// Claims exactly one and says which run has it.
    pub(crate) fn claim_one(&mut self) -> Assignment {
        let mut claimed = self.claim();
        assert_eq!(claimed.len(), 1, "{:#?}", self.outlook().scheduled);
        claimed.remove(0)
    }

    /// Slings a bead, and sees it working.
    pub(crate) fn working(&mut self, bead: &str) -> Assignment {
        self.sling(&[bead]);
        let claimed = self.claim_one();
        self.start(&claimed.run);
        claimed
    }

    pub(crate) fn record(&mut self, findings: &Findings) {
        let (stamp, policy) = (self.stamp(), self.policy.clone());
        self.store.advance(findings, &policy, None, &stamp).expect("it is recorded");
        self.check();
    }

    pub(crate) fn start(&mut self, run: &str) {
        self.record(&Findings { started: vec![started(run)], ..Findings::default() });
    }

    pub(crate) fn fail(&mut self, run: &str, error: &str, fault: Fault) {
        let failure = NotStarted { run: run.to_owned(), error: error.to_owned(), fault, worktree: None };
        self.record(&Findings { not_started: vec![failure], ..Findings::default() });
    }

    /// Its process ended, with exit code 1.
    pub(crate) fn end(&mut self, run: &str) {
        self.end_as(ended(run));
    }

    pub(crate) fn end_as(&mut self, end: Ended) {
        self.record(&Findings { ended: vec![end], ..Findings::default() });
    }

    pub(crate) fn report(&mut self, run: &str, outcome: Outcome) -> Result<Option<Vec<String>>, StoreError> {
        let report = Report { run: run.to_owned(), outcome, note: None, cost: None, merge: None, tip: None };
        let stamp = self.stamp();
        let answer = self.store.report(&report, &stamp);
        self.check();
        answer
    }

    pub(crate) fn stop(&mut self, run: &str, outcome: Outcome) -> bool {
        let stamp = self.stamp();
        let order = StopOrder { at: self.now, by: "ada".to_owned(), outcome, reason: "ada said so".to_owned() };
        let answer = self.store.order_stop(run, &order, &stamp).expect("the order is taken");
        self.check();
        answer
    }

    pub(crate) fn assign(&mut self, bead: &str, who: Option<&str>) {
        let patch = gt_store::BeadPatch { assignee: Some(who.map(Into::into)), ..gt_store::BeadPatch::default() };
        self.patch(bead, &patch).expect("it is assigned");
    }

    pub(crate) fn outlook(&mut self) -> Outlook {
        let policy = self.policy.clone();
        let now = self.now;
        self.store.outlook(&policy, now).expect("the outlook answers")
    }

    pub(crate) fn scheduled(&mut self, bead: &str) -> Scheduled {
        let found = self.outlook().scheduled.into_iter().find(|scheduled| scheduled.bead == bead);
        found.unwrap_or_else(|| panic!("{bead} is not scheduled"))
    }

    /// The codes of why a scheduled bead does not start.
    pub(crate) fn held_by(&mut self, bead: &str) -> Vec<&'static str> {
        codes(&self.scheduled(bead).reasons)
    }

    pub(crate) fn explain(&mut self, bead: &str) -> Explanation {
        let policy = self.policy.clone();
        let now = self.now;
        self.store.explain(bead, &policy, now).expect("it is explained")
    }

    /// `state: code code`
    pub(crate) fn explained(&mut self, bead: &str) -> String {
        let explained = self.explain(bead);
        format!("{}: {}", explained.state, codes(&explained.reasons).join(" "))
    }

    pub(crate) fn run(&mut self, id: &str) -> Run {
        self.store.run(id).expect("it answers").expect("the run is known")
    }

    pub(crate) fn live(&mut self) -> Vec<Run> {
        self.store.live_runs().expect("it answers").to_vec()
    }

    /// The bead's status and who has it.
    pub(crate) fn holder(&mut self, bead: &str) -> (String, Option<String>) {
        let bead = self.store.bead(bead).expect("it is there").bead;
        (bead.status.as_str().to_owned(), bead.assignee)
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.peek.query_row(sql, [], |row| row.get(0)).expect("the tables answer")
    }

    /// Rows of one column, as text.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        let mut query = self.peek.prepare_cached(sql).expect("it is SQL");
        let rows = query.query_map([], |row| row.get(0)).expect("the tables answer");
        rows.collect::<rusqlite::Result<_>>().expect("texts")
    }

    /// Every work bead in full; convoys, which slings make, left out.
    pub(crate) fn work(&mut self) -> String {
        let all = self.export();
        all.lines().filter(|line| !line.contains(r#""id":"hq-cv-"#)).collect::<Vec<_>>().join("\n")
    }
}

fn next_run(n: &mut usize) -> String {
    *n += 1;
    format!("run-{n:04}")
}

/// What must never be found in the tables: each query lists what breaks the rule it is named after.
const NEVER: [(&str, &str); 12] = [
    ("nothing is left to be fed or landed by somebody else", "SELECT bead || '' FROM to_feed UNION SELECT convoy || '' FROM to_land"),
    (
        "a convoy that has landed is closed, and once",
        "SELECT bead FROM event WHERE type = 'convoy.landed' GROUP BY bead
           HAVING count(*) > 1 + (SELECT count(*) FROM event AS again WHERE again.bead = event.bead AND again.type = 'bead.reopened')",
    ),
    (
        "a bead has one open or claimed context at most",
        "SELECT bead || '' FROM context WHERE state <> 'closed' GROUP BY bead HAVING count(*) > 1",
    ),
    (
        "a bead has one live run at most",
        "SELECT bead || '' FROM run WHERE state <> 'ended' GROUP BY bead HAVING count(*) > 1",
    ),
    (
        "the queue knows how the work stands, and how urgent it is",
        "SELECT context.id FROM context JOIN bead ON bead.key = context.bead WHERE state = 'open' AND
         (ready <> CASE WHEN standing IS NULL THEN 2 ELSE standing = 'ready' END OR context.priority <> bead.priority)",
    ),
    (
        "a polecat's run lives, and is its own",
        "SELECT name FROM polecat WHERE run IS NOT NULL AND NOT EXISTS (SELECT 1 FROM run WHERE run.id = polecat.run
         AND run.rig = polecat.rig AND run.polecat = polecat.name AND run.state <> 'ended')",
    ),
    (
        "a live run has a polecat, and one only",
        "SELECT id FROM run WHERE state <> 'ended' AND 1 <> (SELECT count(*) FROM polecat WHERE polecat.run = run.id)",
    ),
    (
        "a claimed context is being started",
        "SELECT id FROM context WHERE state = 'claimed' AND NOT EXISTS
         (SELECT 1 FROM run WHERE run.id = context.run AND run.context = context.id AND run.state = 'starting')",
    ),
    (
        "a run that is being started has its context",
        "SELECT id FROM run WHERE state = 'starting' AND NOT EXISTS
         (SELECT 1 FROM context WHERE context.id = run.context AND context.run = run.id AND context.state = 'claimed')",
    ),
    (
        "what is held is not scheduled",
        "SELECT context.id FROM context JOIN dispatch_record AS record ON record.bead = context.bead
         WHERE state <> 'closed' AND hold IS NOT NULL",
    ),
    (
        "a polecat's bead has a live run",
        "SELECT id FROM bead WHERE status IN ('hooked', 'in_progress') AND assignee LIKE '%/polecats/%' AND NOT EXISTS
         (SELECT 1 FROM run WHERE run.bead = bead.key AND run.state <> 'ended')",
    ),
    (
        "what ended unfinished is scheduled again, or held",
        "SELECT run.id FROM run JOIN bead ON bead.key = run.bead LEFT JOIN dispatch_record AS record
           ON record.bead = run.bead
         WHERE run.id = (SELECT max(id) FROM run AS other WHERE other.bead = run.bead) AND run.state = 'ended'
           AND run.outcome IN ('step-done', 'failed', 'died', 'timed-out', 'stopped', 'not-started', 'rate-limited',
             'agent-unable')
           AND bead.standing IS NOT NULL AND record.hold IS NULL
           AND NOT EXISTS (SELECT 1 FROM context WHERE context.bead = run.bead AND (context.state <> 'closed'
             OR closed_at >= run.ended_at AND close_reason IN ('stale-work-bead', 'invalid-context')))
           AND json_valid((SELECT fields FROM context WHERE context.id = run.context))",
    ),
];

impl Yard {
    /// Everything that must always hold.
    pub(crate) fn check(&mut self) {
        self.town.check();
        for (rule, sql) in NEVER {
            assert_eq!(self.rows(sql), Vec::<String>::new(), "{rule}");
        }
        let outlook = self.outlook();
        let n = outlook.scheduled.len();
        let mut places = BTreeMap::new();
        for (at, scheduled) in outlook.scheduled.iter().enumerate() {
            assert_ne!(scheduled.starts, !scheduled.reasons.is_empty(), "{scheduled:?}");
            let place = format!("it is number {} of {n} in the queue", at + 1);
            places.insert(scheduled.bead.as_str(), (place, &scheduled.reasons));
        }
        assert_eq!(places.len(), n, "each bead is scheduled once");
        assert_eq!(outlook.n_live, self.live().len());
        assert_eq!(outlook.n_starting, outlook.scheduled.iter().filter(|scheduled| scheduled.starts).count());
        for id in self.rows("SELECT id FROM bead") {
            let explained = self.explain(&id);
            let is_told = explained.reasons.iter().all(|reason| !reason.message.is_empty());
            assert!(is_told && !explained.reasons.is_empty(), "{explained:?}");
            if let Some((place, reasons)) = places.get(id.as_str()) {
                assert!(explained.reasons[0].message.starts_with(place), "{explained:?}");
                // Which step is next says nothing about whether it starts.
                let why: Vec<_> =
                    explained.reasons[1..].iter().filter(|reason| reason.code != "step").cloned().collect();
                assert_eq!(why, **reasons, "explain and outlook agree on {id}");
            }
        }
    }
}
