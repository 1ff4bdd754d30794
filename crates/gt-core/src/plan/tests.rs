//! Tests of the plan: the table of the count, each reason, and what must hold for any town.

use proptest::prelude::*;

use super::*;

mod queue;

fn now() -> Timestamp {
    "2026-02-22T10:00:00Z".parse().unwrap()
}

fn scene() -> Scene {
    Scene {
        now: now(),
        pause: None,
        troubles: BTreeMap::new(),
        trials: BTreeMap::new(),
        guards: Vec::new(),
        caps: Caps::default(),
        live: Vec::new(),
        finishing: Vec::new(),
        batch: None,
        batch_once: None,
        queue: None,
        starts_left: None,
    }
}

fn candidate(bead: &str) -> Candidate {
    Candidate {
        context: format!("{bead}-ctx"),
        bead: bead.to_owned(),
        rig: "shop".to_owned(),
        rig_state: Some(RigState::Active),
        agent: "claude".to_owned(),
        account: None,
        standing: Standing::Ready,
        no_work: None,
        assigned_to: None,
        waits_for: Vec::new(),
        old_run: None,
        retry: None,
        predecessors: Vec::new(),
        is_queued: false,
    }
}

fn live(polecat: &str, rig: &str, agent: &str) -> Live {
    Live { polecat: polecat.to_owned(), rig: rig.to_owned(), agent: agent.to_owned(), is_here: true }
}

fn soon() -> Timestamp {
    now() + jiff::SignedDuration::from_secs(60)
}

/// What the plan says, one line per candidate.
fn transcript(scene: Scene, candidates: &[Candidate]) -> String {
    let mut planner = Planner::new(scene);
    let line = |candidate: &Candidate| match planner.consider(candidate) {
        Verdict::Start => format!("{}: start", candidate.bead),
        Verdict::Hold(reasons) => {
            let words: Vec<String> = reasons.iter().map(|r| format!("{} ({})", r.message, r.code)).collect();
            format!("{}: {}", candidate.bead, words.join("; "))
        }
    };
    candidates.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_count_is_the_smallest_of_three() {
    use Limit::{Batch, Capacity, None as Nothing, Ready};
    let table = [
        (5, 3, 0, 0, 0, Nothing),
        (-1, 3, 10, 0, 10, Capacity),
        (0, 3, 10, 0, 10, Capacity),
        (2, 3, 10, 2, 8, Capacity),
        (10, 3, 10, 3, 7, Batch),
        (10, 5, 2, 2, 0, Ready),
        (100, 3, 10, 3, 7, Batch),
        (100, 5, 2, 2, 0, Ready),
        (3, 3, 3, 3, 0, Batch),
        (10, 3, 1, 1, 0, Ready),
        (1, 3, 10, 1, 9, Capacity),
    ];
    for (capacity, batch, ready, n, left, limit) in table {
        assert_eq!(to_dispatch(Some(capacity), Some(batch), ready), (n, left, limit), "{capacity}, {batch}, {ready}");
    }
    assert_eq!(to_dispatch(None, None, 7), (7, 0, Ready));
    assert_eq!(to_dispatch(Some(3), None, 7), (3, 4, Capacity));
}

#[test]
fn free_slots_are_filled_in_order_and_the_rest_is_told_who_has_them() {
    let scene = Scene {
        caps: Caps { town: Some(3), ..Caps::default() },
        live: vec![live("Toast", "shop", "claude")],
        ..scene()
    };
    insta::assert_snapshot!(transcript(scene, &["a", "b", "c"].map(candidate)), @r"
    a: start
    b: start
    c: all 3 slots of the town are taken by shop/Toast or go to what is before it (no-capacity)
    ");
}

#[test]
fn every_cap_holds_for_itself() {
    let caps =
        Caps { rigs: [("shop".to_owned(), 1)].into(), agents: [("codex".to_owned(), 1)].into(), ..Caps::default() };
    let scene = Scene { caps, live: vec![live("Ember", "barn", "codex")], ..scene() };
    let of = |bead: &str, rig: &str, agent: &str| Candidate {
        rig: rig.to_owned(),
        agent: agent.to_owned(),
        ..candidate(bead)
    };
    let candidates =
        [of("a", "shop", "claude"), of("b", "shop", "claude"), of("c", "barn", "codex"), of("d", "barn", "claude")];
    insta::assert_snapshot!(transcript(scene, &candidates), @r"
    a: start
    b: the one slot of rig shop goes to what is before it (rig-full)
    c: the one slot of agent `codex` is taken by barn/Ember (agent-full)
    d: start
    ");
}

#[test]
fn a_batch_and_a_rate_end_a_pass() {
    insta::assert_snapshot!(transcript(Scene { batch: Some(1), ..scene() }, &["a", "b"].map(candidate)), @r"
    a: start
    b: a pass starts 1 at most (`scheduler.batch_size`); it waits for the next one (batch)
    ");
    insta::assert_snapshot!(transcript(Scene { starts_left: Some(0), ..scene() }, &["a"].map(candidate)), @"a: this second has had its starts (`guards.starts_per_second`) (guard-starts)");
}

#[test]
fn each_reason_is_a_sentence() {
    let scene = Scene {
        pause: Some(Pause { by: "ann".to_owned(), at: now(), reason: Some("release day".to_owned()) }),
        troubles: [
            (TroubleOf::Town, Trouble { until: soon(), reason: "the disk is full".to_owned() }),
            (
                TroubleOf::Agent("codex".to_owned()),
                Trouble { until: soon(), reason: "`codex` is not installed".to_owned() },
            ),
            (TroubleOf::Rig("barn".to_owned()), Trouble { until: soon(), reason: "it is gone".to_owned() }),
        ]
        .into(),
        guards: vec![Guard { code: "guard-load", message: "the load is 40 per core".to_owned() }],
        caps: Caps { host: Some(0), ..Caps::default() },
        ..scene()
    };
    let candidates = [
        Candidate { agent: "codex".to_owned(), ..candidate("a") },
        Candidate { rig_state: Some(RigState::Parked), ..candidate("b") },
        Candidate { rig_state: None, ..candidate("c") },
        Candidate { old_run: Some("run-1".to_owned()), standing: Standing::Held, ..candidate("d") },
        Candidate { standing: Standing::Held, ..candidate("e") },
    ];
    let quiet =
        Scene { pause: None, troubles: BTreeMap::new(), guards: vec![], caps: Caps::default(), ..scene.clone() };
    insta::assert_snapshot!(transcript(scene, &candidates[..1]), @"a: dispatch is paused by ann since 2026-02-22T10:00:00Z: release day; `gt scheduler resume` goes on (paused); dispatch is held up: the disk is full; next try in 1 min, or at once with `gt scheduler resume` (held-up); the load is 40 per core (guard-load); all 0 slots of this host are taken (host-full); agent `codex` is held up: `codex` is not installed; next try in 1 min, or at once with `gt scheduler resume` (agent-held-up)");
    insta::assert_snapshot!(transcript(quiet, &candidates[1..]), @r"
    b: its rig shop is parked: `gt rig unpark shop` (rig-parked)
    c: it is meant for rig shop, which is not registered (no-rig)
    d: its earlier run run-1 has to end first (old-run)
    e: it is held (not-ready)
    ");
}

#[test]
fn a_time_to_wait_for_is_named_and_ends() {
    let failed = Retry { at: soon(), why: RetryWhy::FailedStart { failures: 2, last: "no room".to_owned() } };
    let died = Retry { at: soon(), why: RetryWhy::Attempt { attempts: 1, last: "exit code 3".to_owned() } };
    let lost = Retry { at: soon(), why: RetryWhy::Attempt { attempts: 0, last: "the server is gone".to_owned() } };
    let candidates = [("a", failed), ("b", died), ("c", lost)]
        .map(|(bead, retry)| Candidate { retry: Some(retry), ..candidate(bead) });
    insta::assert_snapshot!(transcript(scene(), &candidates), @"
    a: its start failed 2 times (no room); retry in 1 min, or now with `gt scheduler retry a` (backing-off)
    b: attempt 1 did not finish it (exit code 3); retry in 1 min, or now with `gt scheduler retry b` (cooling-down)
    c: its last run did not finish it (the server is gone); retry in 1 min, or now with `gt scheduler retry c` (cooling-down)
    ");
    assert_eq!(transcript(Scene { now: soon(), ..scene() }, &candidates), "a: start\nb: start\nc: start");
}

#[test]
fn one_successor_waits_for_the_polecat_that_finished_its_blocker() {
    let toast = Finishing { run: "r1".to_owned(), polecat: "Toast".to_owned(), rig: "shop".to_owned(), until: soon() };
    let after = |bead: &str| Candidate { predecessors: vec!["r1".to_owned()], ..candidate(bead) };
    let elsewhere = Candidate { rig: "barn".to_owned(), ..after("d") };
    let scene = Scene { finishing: vec![toast], ..scene() };
    insta::assert_snapshot!(transcript(scene.clone(), &[candidate("a"), after("b"), after("c"), elsewhere]), @r"
    a: start
    b: Toast has just finished what it waited for and takes it on next (awaiting-exit)
    c: start
    d: start
    ");
    let elsewhere = Candidate { rig: "barn".to_owned(), ..after("d") };
    assert_eq!(transcript(scene.clone(), &[elsewhere]), "d: start", "a polecat takes no work of another rig");
    assert_eq!(transcript(Scene { now: soon(), ..scene }, &[after("b")]), "b: start");
}

#[test]
fn a_failed_start_waits_ever_longer() {
    let waits: Vec<i64> = [1, 2, 3, 4, 9, 10, 100].into_iter().map(|n| backoff(n).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 8, 256, 300, 300]);
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    let rig = prop_oneof![Just("shop"), Just("barn")];
    let agent = prop_oneof![Just("claude"), Just("codex")];
    let standing = prop_oneof![4 => Just(Standing::Ready), 1 => Just(Standing::Blocked)];
    let flags = (prop::bool::weighted(0.1), any::<bool>());
    (rig, agent, standing, flags).prop_map(|(rig, agent, standing, (parked, is_queued))| Candidate {
        is_queued,
        rig: rig.to_owned(),
        agent: agent.to_owned(),
        standing,
        rig_state: Some(if parked { RigState::Parked } else { RigState::Active }),
        ..candidate("x")
    })
}

fn any_scene() -> impl Strategy<Value = Scene> {
    let cap = || prop::option::of(0_usize..6);
    let live_run = (prop_oneof![Just("shop"), Just("barn")], prop_oneof![Just("claude"), Just("codex")])
        .prop_map(|(rig, agent)| live("Toast", rig, agent));
    let batch = || prop::option::of(1_usize..5);
    let queue = prop::option::of((cap(), batch(), any::<bool>())).prop_map(|rules| {
        let (cap, batch, is_open) = rules?;
        Some(QueueRules { cap, batch, is_open })
    });
    let batches = (batch(), batch(), queue);
    (cap(), cap(), cap(), cap(), batches, prop::collection::vec(live_run, 0..6)).prop_map(
        |(town, shop, codex, host, (batch, batch_once, queue), live)| {
            let named = |name: &str, cap: Option<usize>| cap.map(|cap| (name.to_owned(), cap)).into_iter().collect();
            Scene {
                caps: Caps { town, rigs: named("shop", shop), agents: named("codex", codex), host, guard: None },
                live,
                batch,
                batch_once,
                queue,
                ..scene()
            }
        },
    )
}

proptest! {
    #[test]
    fn no_cap_is_ever_exceeded_and_no_startable_bead_is_left(
        scene in any_scene(),
        candidates in prop::collection::vec(any_candidate(), 0..30),
    ) {
        let mut planner = Planner::new(scene.clone());
        let mut live = scene.live.clone();
        let (mut n_slung, mut n_queued) = (0, 0);
        for candidate in &candidates {
            let queue = scene.queue.as_ref().filter(|_| candidate.is_queued);
            let side = if queue.is_some() { Side::Queue } else { Side::Scheduler };
            let fits = |live: &[Live]| {
                let under = |cap: Option<usize>, n: usize| cap.is_none_or(|cap| n < cap);
                under(scene.caps.town, live.len())
                    && under(scene.caps.host, live.len())
                    && under(scene.batch_once, n_slung + n_queued)
                    && match queue {
                        None => under(scene.batch, n_slung),
                        Some(rules) => rules.is_open && under(rules.cap, live.len()) && under(rules.batch, n_queued),
                    }
                    && under(scene.caps.rigs.get(&candidate.rig).copied(), live.iter().filter(|l| l.rig == candidate.rig).count())
                    && under(scene.caps.agents.get(&candidate.agent).copied(), live.iter().filter(|l| l.agent == candidate.agent).count())
            };
            let can_start = candidate.standing == Standing::Ready && candidate.rig_state == Some(RigState::Active) && fits(&live);
            if can_start {
                prop_assert!(!planner.is_full(side));
            }
            match planner.consider(candidate) {
                Verdict::Start => {
                    prop_assert!(can_start);
                    *(if side == Side::Queue { &mut n_queued } else { &mut n_slung }) += 1;
                    live.push(self::live("New", &candidate.rig, &candidate.agent));
                }
                Verdict::Hold(reasons) => {
                    prop_assert!(!can_start && !reasons.is_empty() && reasons.iter().all(|r| !r.message.is_empty()));
                }
            }
        }
        prop_assert_eq!(planner.n_started(), n_slung + n_queued);
    }

    #[test]
    fn without_nested_caps_the_planner_is_the_formula(
        town in prop::option::of(0_usize..6),
        batch in prop::option::of(1_usize..5),
        n_live in 0_usize..6,
        n_ready in 0_usize..10,
    ) {
        let live = vec![live("Toast", "shop", "claude"); n_live];
        let mut planner = Planner::new(Scene { caps: Caps { town, ..Caps::default() }, batch, live, ..scene() });
        let capacity = planner.capacity(Side::Scheduler);
        for _ in 0..n_ready {
            planner.consider(&candidate("x"));
        }
        let (n, left, _) = to_dispatch(capacity, batch, n_ready);
        prop_assert_eq!((planner.n_started(), planner.n_ready() - planner.n_started()), (n, left));
    }
}

#[test]
fn where_no_cap_is_set_the_guard_holds_what_is_too_much() {
    let caps = |town| Caps { town, guard: Some(2), ..Caps::default() };
    let verdicts = |scene: Scene| -> Vec<bool> {
        let mut planner = Planner::new(scene);
        (0..4).map(|n| planner.consider(&candidate(&format!("gt-{n}"))) == Verdict::Start).collect()
    };
    assert_eq!(verdicts(Scene { caps: caps(None), ..scene() }), [true, true, false, false]);
    assert_eq!(verdicts(Scene { caps: caps(Some(3)), ..scene() }), [true, true, true, false], "a cap is a decision");
    let mut planner = Planner::new(Scene { caps: caps(None), ..scene() });
    assert_eq!(planner.capacity(Side::Scheduler), Some(2));
    planner.consider(&candidate("gt-1"));
    planner.consider(&candidate("gt-2"));
    let Verdict::Hold(reasons) = planner.consider(&candidate("gt-3")) else { panic!("it starts") };
    assert_eq!(reasons[0].code, "guard-agents");
    assert!(reasons[0].message.contains("gt config set scheduler.max_polecats"), "{reasons:?}");
}
