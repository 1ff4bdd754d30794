//! Random histories of dispatch: after every step each invariant holds, and what the outlook says is what a pass does.

use std::collections::BTreeMap;

use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::plan::{Caps, Policy, QueueRules, Side};
use gt_core::rig::RigState;
use gt_core::run::{Outcome, RunState};
use gt_core::status::Status;
use gt_store::{
    Assignment, BeadPatch, ConvoyWish, Ended, Fault, Findings, NewBead, NotStarted, Run, Sling, StoreError,
};
use jiff::SignedDuration;
use proptest::prelude::*;

use crate::dispatch_steps::{AGENTS, IDS, KINDS, Knobs, OUTCOMES, PREFIXES, RIGS, STATUSES, STOPS, Step, step};
use crate::town::n_cases;
use crate::yard::{Yard, asked, ended, rig, started};

fn policy(knobs: &Knobs) -> Policy {
    Policy {
        caps: Caps {
            town: knobs.town,
            rigs: knobs.rig.iter().map(|(rig, cap)| (RIGS[*rig].to_owned(), *cap)).collect(),
            agents: knobs.agent.iter().map(|(agent, cap)| (AGENTS[*agent].to_owned(), *cap)).collect(),
            host: knobs.host,
            guard: None,
        },
        batch: knobs.batch,
        queue: knobs.queue.map(|(cap, batch, is_open)| QueueRules { cap, batch, is_open }),
        by_priority: knobs.by_priority,
        starts_per_second: knobs.per_second,
        max_failures: knobs.max_failures,
        redispatch_attempts: knobs.attempts,
        daily_micros: Some(50_000_000),
        ..Policy::default()
    }
}

/// How many live, in all and by rig and agent.
fn counts(live: &[Run]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for run in live {
        for name in ["town", &run.rig, &run.agent] {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// A pass: it claims what the outlook said, in that order, and never more than the caps allow.
fn advance(yard: &mut Yard, findings: &Findings, limit: Option<usize>) -> Vec<Assignment> {
    if !findings.is_empty() {
        yard.record(findings);
    }
    let due = format!(
        "SELECT count(*) FROM dispatch_record WHERE hold = 'circuit-broken' AND hold_until <= {}",
        yard.now.as_microsecond()
    );
    // What wakes up in the pass itself, or gets another try there, may be put in line by it.
    let asleep =
        format!("SELECT count(*) FROM bead WHERE standing = 'deferred' AND wake_at <= {}", yard.now.as_microsecond());
    let is_settled = yard.number(&due) == 0 && yard.number(&asleep) == 0;
    let outlook = yard.outlook();
    let before = counts(&yard.live());
    let claimed = yard.pass_with(&Findings::default(), limit);
    let said: Vec<&str> = outlook.scheduled.iter().filter(|s| s.starts).map(|s| s.bead.as_str()).collect();
    let done: Vec<&str> = claimed.iter().map(|assignment| assignment.bead.as_str()).collect();
    if is_settled || outlook.state.pause.is_some() {
        let n = limit.map_or(said.len(), |limit| limit.min(said.len()));
        assert_eq!(said[..n], done, "the pass does what the outlook said");
    }
    let (caps, after) = (yard.policy.caps.clone(), counts(&yard.live()));
    let town = caps.town.into_iter().chain(caps.host).map(|cap| ("town".to_owned(), cap));
    for (name, cap) in town.chain(caps.rigs).chain(caps.agents) {
        let n = |counts: &BTreeMap<String, usize>| counts.get(&name).copied().unwrap_or(0);
        assert!(n(&after) <= cap.max(n(&before)), "{name}: {} of {cap}", n(&after));
    }
    let most = [limit, yard.policy.starts_per_second];
    assert!(most.into_iter().flatten().all(|most| claimed.len() <= most), "{claimed:#?}");
    let policy = &yard.policy;
    let (of_queue, slung): (Vec<&Assignment>, Vec<&Assignment>) =
        claimed.iter().partition(|one| policy.side(one.fields.queued) == Side::Queue);
    assert!(policy.batch.is_none_or(|batch| slung.len() <= batch), "{slung:#?}");
    if let Some(rules) = policy.queue.as_ref().filter(|_| !of_queue.is_empty()) {
        assert!(rules.is_open && rules.batch.is_none_or(|batch| of_queue.len() <= batch), "{of_queue:#?}");
        let n_before = before.get("town").copied().unwrap_or(0);
        assert!(rules.cap.is_none_or(|cap| n_before + of_queue.len() <= cap), "{of_queue:#?}");
    }
    for assignment in &claimed {
        assert!(outlook.state.pause.is_none(), "a paused scheduler starts nothing");
        assert_eq!(assignment.rig.state, RigState::Active, "a rig that is set aside starts nothing");
        assert_eq!(
            yard.store.assignment(&assignment.run).expect("it answers").as_ref().map(|a| &a.bead),
            Some(&assignment.bead)
        );
    }
    claimed
}

fn any_of<T: Clone>(items: &[T], at: usize) -> Option<T> {
    (!items.is_empty()).then(|| items[at % items.len()].clone())
}

fn runs_in(yard: &mut Yard, state: RunState) -> Vec<String> {
    yard.live().into_iter().filter(|run| run.state == state).map(|run| run.id).collect()
}

fn known_runs(yard: &Yard) -> Vec<String> {
    yard.rows("SELECT id FROM run ORDER BY id DESC LIMIT 12")
}

/// Does the step. Refusals by rule and things that are not there are fine.
fn take(yard: &mut Yard, step: &Step) {
    let stamp = yard.stamp();
    let answer = match step {
        Step::Advance { knobs } => {
            yard.policy = policy(knobs);
            advance(yard, &Findings::default(), knobs.limit);
            Ok(())
        }
        Step::Sling { .. } => sling(yard, step),
        Step::Start { run, fault, claims } => {
            if let Some(run) = any_of(&runs_in(yard, RunState::Starting), *run) {
                settle_start(yard, &run, *fault, *claims);
            }
            Ok(())
        }
        Step::End { run, signal, kept, claims } => {
            let live: Vec<String> = yard.live().into_iter().map(|run| run.id).collect();
            if let Some(run) = any_of(&live, *run) {
                let kept = kept.then(|| "uncommitted work".to_owned());
                let end = Ended { code: (!signal).then_some(1), signal: signal.then_some(9), kept, ..ended(&run) };
                settle(yard, &Findings { ended: vec![end], ..Findings::default() }, *claims);
            }
            Ok(())
        }
        Step::Report { run, outcome, cost } => report(yard, *run, OUTCOMES[*outcome], *cost),
        Step::Finish { run } => {
            if let Some(run) = any_of(&runs_in(yard, RunState::Working), *run) {
                let is_stale = yard.run(&run).stop.is_some();
                assert!(yard.report(&run, Outcome::Completed).is_ok() || is_stale);
                advance(yard, &Findings::default(), None);
            }
            Ok(())
        }
        Step::Stop { run, outcome } => {
            let live: Vec<String> = yard.live().into_iter().map(|run| run.id).collect();
            if let Some(run) = any_of(&live, *run) {
                assert!(yard.stop(&run, STOPS[*outcome]));
            }
            Ok(())
        }
        Step::Again { run } => {
            again(yard, *run);
            Ok(())
        }
        Step::Clear { bead } => yard.store.clear_contexts(bead.map(|at| IDS[at]), &stamp).map(drop),
        Step::Retry { bead } => yard.store.retry(IDS[*bead], &stamp).map(drop),
        Step::Pause => yard.store.pause(Some("lunch"), &stamp).map(drop),
        Step::Resume => yard.store.resume(&stamp).map(drop),
        Step::Spoil { bead } => {
            let sql = "UPDATE context SET fields = '{' WHERE bead = (SELECT key FROM bead WHERE id = ?1)";
            yard.peek.execute(sql, [IDS[*bead]]).expect("it is spoilt");
            Ok(())
        }
        Step::Pass { seconds } => {
            yard.pass(*seconds);
            Ok(())
        }
        other => take_bead(yard, other),
    };
    if let Err(error) = answer {
        let is_fine = matches!(error, StoreError::NoBead { .. } | StoreError::NoRig { .. } | StoreError::Refused(_));
        assert!(is_fine, "{step:?}: {error:?}");
        assert!(!error.to_string().is_empty());
    }
}

fn take_bead(yard: &mut Yard, step: &Step) -> Result<(), StoreError> {
    let stamp = yard.stamp();
    let id = |at: &usize| IDS[*at];
    let one = |at: &usize| vec![IDS[*at].to_owned()];
    let patch = BeadPatch::default();
    match step {
        Step::Create { parent } => {
            let parent = parent.map(|at| IDS[at].to_owned());
            let new = NewBead { prefix: "gt".into(), parent, bead: gt_core::bead::Bead::new("", "more") };
            yard.store.create_bead(&new, &stamp).map(drop)
        }
        Step::Link { source, target, kind } => {
            yard.store.add_edge(id(source), &Edge::new(id(target), EdgeType::parse(KINDS[*kind])), &stamp).map(drop)
        }
        Step::Unlink { source, target } => yard.store.remove_edges(id(source), id(target), None, &stamp).map(drop),
        Step::Close { bead, merged } => {
            yard.store.close_beads(&one(bead), merged.then_some("Merged in mr-1"), &stamp).map(drop)
        }
        Step::Reopen { bead } => yard.store.reopen_beads(&one(bead), &stamp).map(drop),
        Step::Delete { bead } => yard.store.delete_beads(&one(bead), None, &stamp).map(drop),
        Step::Status { bead, status } => {
            let status = Status::parse(STATUSES[*status]);
            // Who says that a bead is being worked on says by whom.
            let assignee = matches!(status, Status::Hooked | Status::InProgress).then(|| Some("ada".to_owned()));
            yard.store.update_bead(id(bead), &BeadPatch { status: Some(status), assignee, ..patch }, &stamp).map(drop)
        }
        Step::Defer { bead, seconds } => {
            let until = seconds.map(|seconds| yard.now + SignedDuration::from_secs(seconds));
            yard.store.update_bead(id(bead), &BeadPatch { defer_until: Some(until), ..patch }, &stamp).map(drop)
        }
        Step::Assign { bead, who } => {
            let who = who.map(|is_ada| if is_ada { "ada" } else { "bob" }.to_owned());
            yard.store.update_bead(id(bead), &BeadPatch { assignee: Some(who), ..patch }, &stamp).map(drop)
        }
        Step::Priority { bead, priority } => {
            yard.store.update_bead(id(bead), &BeadPatch { priority: Some(*priority), ..patch }, &stamp).map(drop)
        }
        Step::Import { bead, status } => {
            let line = serde_json::json!({ "id": id(bead), "title": "imported", "status": STATUSES[*status],
                "priority": 1, "updated_at": "2027-01-01T00:00:00Z" });
            yard.import(&line.to_string());
            Ok(())
        }
        Step::Rig { rig: at, state: 4 } => yard.store.remove_rig(RIGS[*at], true, &stamp),
        Step::Rig { rig: at, state: 5 } => yard.store.add_rig(&rig(RIGS[*at], PREFIXES[*at]), &stamp),
        Step::Rig { rig, state } => {
            let (state, event) = [
                (RigState::Parked, EventType::RigParked),
                (RigState::Active, EventType::RigUnparked),
                (RigState::Docked, EventType::RigDocked),
                (RigState::Active, EventType::RigUndocked),
            ][*state];
            yard.store.set_rig_state(RIGS[*rig], state, event, &stamp).map(drop)
        }
        other => unreachable!("{other:?}"),
    }
}

/// Scheduling never changes the work, unless by force.
fn sling(yard: &mut Yard, step: &Step) -> Result<(), StoreError> {
    let Step::Sling { beads, rig, agent, force, convoy, now, queued } = step else { unreachable!("{step:?}") };
    let mut sling = Sling {
        rig: rig.map(|at| RIGS[at].to_owned()),
        force: *force,
        convoy: if *convoy { ConvoyWish::Auto { title: None } } else { ConvoyWish::No },
        ..asked(&beads.iter().map(|at| IDS[*at]).collect::<Vec<_>>())
    };
    sling.fields.queued = *queued;
    sling.fields.agent = agent.map(|at| AGENTS[at].to_owned());
    if *now {
        return yard.sling_direct(&sling).map(drop);
    }
    let before = yard.work();
    let answer = yard.try_sling(&sling);
    if !force || answer.is_err() {
        assert_eq!(before, yard.work(), "scheduling changed the work");
    }
    answer.map(drop)
}

fn settle(yard: &mut Yard, findings: &Findings, claims: bool) {
    if claims {
        advance(yard, findings, None);
    } else {
        yard.record(findings);
    }
}

fn settle_start(yard: &mut Yard, run: &str, fault: usize, claims: bool) {
    let fault = match fault {
        0 | 1 => Fault::Bead,
        2 => Fault::Agent,
        3 => Fault::Town,
        _ => {
            return settle(yard, &Findings { started: vec![started(run)], ..Findings::default() }, claims);
        }
    };
    let failure = NotStarted { run: run.to_owned(), error: "no such tool".to_owned(), fault, worktree: None };
    settle(yard, &Findings { not_started: vec![failure], ..Findings::default() }, claims);
}

/// A run that has ended or was told to stop is refused, unless it only repeats itself; nothing changes by it.
fn report(yard: &mut Yard, at: usize, outcome: Outcome, cents: u32) -> Result<(), StoreError> {
    let Some(id) = any_of(&known_runs(yard), at) else { return Ok(()) };
    let run = yard.run(&id);
    let before = (yard.export(), yard.store.last_event()?);
    let stamp = yard.stamp();
    let cost = Some(f64::from(cents) / 100.0);
    let report =
        gt_store::Report { run: id.clone(), outcome, note: Some("so it is".to_owned()), cost, merge: None, tip: None };
    let answer = yard.store.report(&report, &stamp);
    yard.check();
    let is_stale = !run.is_live() || run.stop.is_some();
    match &answer {
        Ok(None) => assert_eq!(run.said, Some(outcome)),
        Ok(Some(_)) => assert!(!is_stale, "{run:?}"),
        Err(_) => assert!(is_stale, "{run:?}"),
    }
    if !matches!(answer, Ok(Some(_))) {
        assert_eq!(before, (yard.export(), yard.store.last_event()?));
    }
    answer.map(drop)
}

/// What was recorded once is recorded again: nothing happens.
fn again(yard: &mut Yard, at: usize) {
    let Some(id) = any_of(&known_runs(yard), at) else { return };
    let run = yard.run(&id);
    let failure = NotStarted { run: id.clone(), error: "late".to_owned(), fault: Fault::Bead, worktree: None };
    let findings = match run.state {
        RunState::Starting => return,
        RunState::Working => {
            Findings { started: vec![started(&id)], not_started: vec![failure], ..Findings::default() }
        }
        RunState::Ended => {
            Findings { started: vec![started(&id)], not_started: vec![failure], ended: vec![ended(&id)], told: vec![] }
        }
    };
    let before = (yard.export(), yard.store.last_event().expect("the log answers"), yard.run(&id));
    yard.record(&findings);
    assert_eq!(before, (yard.export(), yard.store.last_event().expect("the log answers"), yard.run(&id)));
}

/// Reasons that lie in the bead, and pass only when somebody does something about it.
const OWN: [&str; 12] = [
    "blocked",
    "unmerged",
    "waits-for-children",
    "blocked-parent",
    "in-progress",
    "hooked",
    "status-blocked",
    "status-deferred",
    "assigned",
    "pinned",
    "closed",
    "invalid-context",
];

/// Everything that is nobody's fault is put right, and the agents do their work: what stays has a reason of its own.
fn heal(yard: &mut Yard) {
    let stamp = yard.stamp();
    for (name, prefix) in RIGS.into_iter().zip(PREFIXES) {
        if yard.store.rig(name).is_err() {
            yard.store.add_rig(&rig(name, prefix), &stamp).expect("the rig is new");
        }
        for event in [EventType::RigUndocked, EventType::RigUnparked] {
            yard.store.set_rig_state(name, RigState::Active, event, &stamp).expect("the rig is brought back");
        }
    }
    yard.store.resume(&stamp).expect("it goes on");
    yard.policy = Policy::default();
    for _ in 0..40 {
        yard.pass(7200);
        let starting = runs_in(yard, RunState::Starting);
        let findings = Findings { started: starting.iter().map(|run| started(run)).collect(), ..Findings::default() };
        let claimed = advance(yard, &findings, None);
        let working = runs_in(yard, RunState::Working);
        if claimed.is_empty() && working.is_empty() {
            break;
        }
        for run in &working {
            let known = yard.run(run);
            let is_stale = known.stop.is_some() && known.said != Some(Outcome::Completed);
            assert_eq!(yard.report(run, Outcome::Completed).is_err(), is_stale, "{known:?}");
        }
        yard.record(&Findings { ended: working.iter().map(|run| ended(run)).collect(), ..Findings::default() });
    }
    assert_eq!(yard.live(), Vec::new(), "every run ends");
    for scheduled in yard.outlook().scheduled {
        let is_own = |reason: &gt_core::explain::Reason| OWN.contains(&reason.code);
        assert!(!scheduled.starts && scheduled.reasons.iter().all(is_own), "{scheduled:?}");
    }
}

/// Beads of these priorities, some of which wait for the one before.
fn town_of(start: &[(i64, bool)]) -> Yard {
    let line = |(at, (priority, is_linked)): (usize, &(i64, bool))| {
        let edge = serde_json::json!({ "issue_id": IDS[at], "depends_on_id": IDS[at.saturating_sub(1)],
            "type": "blocks" });
        let edges: Vec<_> = (*is_linked && at > 0).then_some(edge).into_iter().collect();
        let line = serde_json::json!({ "id": IDS[at], "title": IDS[at], "priority": priority, "dependencies": edges });
        line.to_string()
    };
    let lines: Vec<String> = start.iter().enumerate().map(line).collect();
    let mut yard = Yard::new();
    yard.import(&lines.join("\n"));
    yard
}

/// Whether a step went through verbs of the yard, which check after each change.
fn checks_itself(step: &Step) -> bool {
    matches!(
        step,
        Step::Sling { .. }
            | Step::Advance { .. }
            | Step::Start { .. }
            | Step::End { .. }
            | Step::Report { .. }
            | Step::Finish { .. }
            | Step::Stop { .. }
            | Step::Again { .. }
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: n_cases(64), max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_the_invariants_hold_and_the_work_gets_done(
        start in proptest::collection::vec((0_i64..4, proptest::bool::weighted(0.4)), IDS.len()),
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut yard = town_of(&start);
        yard.sling(&IDS[..6]);
        for step in &steps {
            take(&mut yard, step);
            if !checks_itself(step) {
                yard.check();
            }
        }
        heal(&mut yard);
    }
}
