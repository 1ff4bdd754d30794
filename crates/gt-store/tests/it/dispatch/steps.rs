//! The steps of which random histories of dispatch are made.

use gt_core::run::Outcome;
use proptest::prelude::*;

pub(crate) const IDS: [&str; 9] = ["gt-0", "gt-1", "gt-2", "gt-3", "gt-4", "gt-5", "ml-6", "ml-7", "hq-8"];
pub(crate) const RIGS: [&str; 2] = ["shop", "mill"];
pub(crate) const PREFIXES: [&str; 2] = ["gt", "ml"];
pub(crate) const AGENTS: [&str; 2] = ["claude", "codex"];
pub(crate) const STATUSES: [&str; 7] = ["open", "in_progress", "hooked", "blocked", "deferred", "pinned", "closed"];
pub(crate) const KINDS: [&str; 5] = ["blocks", "waits-for", "merge-blocks", "parent-child", "tracks"];
pub(crate) const OUTCOMES: [Outcome; 3] = [Outcome::Completed, Outcome::Failed, Outcome::Deferred];
pub(crate) const STOPS: [Outcome; 2] = [Outcome::Stopped, Outcome::TimedOut];

/// How a pass is limited.
#[derive(Debug, Clone)]
pub(crate) struct Knobs {
    pub(crate) town: Option<usize>,
    pub(crate) rig: Option<(usize, usize)>,
    pub(crate) agent: Option<(usize, usize)>,
    pub(crate) host: Option<usize>,
    pub(crate) batch: Option<usize>,
    pub(crate) limit: Option<usize>,
    /// The queue's cap, batch and switch, where it rules itself.
    pub(crate) queue: Option<(Option<usize>, Option<usize>, bool)>,
    pub(crate) per_second: Option<usize>,
    pub(crate) by_priority: bool,
    pub(crate) max_failures: i64,
    pub(crate) attempts: i64,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create {
        parent: Option<usize>,
    },
    Link {
        source: usize,
        target: usize,
        kind: usize,
    },
    Unlink {
        source: usize,
        target: usize,
    },
    Close {
        bead: usize,
        merged: bool,
    },
    Reopen {
        bead: usize,
    },
    Delete {
        bead: usize,
    },
    Status {
        bead: usize,
        status: usize,
    },
    Defer {
        bead: usize,
        seconds: Option<i64>,
    },
    Assign {
        bead: usize,
        who: Option<bool>,
    },
    Priority {
        bead: usize,
        priority: i64,
    },
    Import {
        bead: usize,
        status: usize,
    },
    Rig {
        rig: usize,
        state: usize,
    },
    Sling {
        beads: Vec<usize>,
        rig: Option<usize>,
        agent: Option<usize>,
        force: bool,
        convoy: bool,
        now: bool,
        queued: bool,
    },
    Advance {
        knobs: Knobs,
    },
    Start {
        run: usize,
        fault: usize,
        claims: bool,
    },
    End {
        run: usize,
        signal: bool,
        kept: bool,
        claims: bool,
    },
    Report {
        run: usize,
        outcome: usize,
        cost: u32,
    },
    /// An agent does its work, and a pass comes right after it.
    Finish {
        run: usize,
    },
    Stop {
        run: usize,
        outcome: usize,
    },
    Again {
        run: usize,
    },
    Clear {
        bead: Option<usize>,
    },
    Retry {
        bead: usize,
    },
    Pause,
    Resume,
    Spoil {
        bead: usize,
    },
    Pass {
        seconds: i64,
    },
}

fn knobs() -> impl Strategy<Value = Knobs> {
    let few = || proptest::option::weighted(0.15, prop_oneof![1 => Just(0_usize), 9 => 1_usize..4]);
    (
        (few(), proptest::option::weighted(0.15, (0..RIGS.len(), 0_usize..3))),
        (proptest::option::weighted(0.15, (0..AGENTS.len(), 0_usize..3)), few(), few(), few(), few()),
        (any::<bool>(), 1_i64..4, 0_i64..3),
        proptest::option::of((few(), few(), proptest::bool::weighted(0.8))),
    )
        .prop_map(
            |((town, rig), (agent, host, batch, limit, per_second), (by_priority, max_failures, attempts), queue)| {
                Knobs {
                    town,
                    rig,
                    agent,
                    host,
                    batch,
                    limit: if queue.is_none() { limit } else { None },
                    queue,
                    per_second,
                    by_priority,
                    max_failures,
                    attempts,
                }
            },
        )
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![25 => step_of_beads(), 75 => step_of_dispatch()]
}

fn step_of_beads() -> impl Strategy<Value = Step> {
    let id = 0..IDS.len();
    prop_oneof![
        1 => proptest::option::of(id.clone()).prop_map(|parent| Step::Create { parent }),
        5 => (id.clone(), id.clone(), 0..KINDS.len())
            .prop_map(|(source, target, kind)| Step::Link { source, target, kind }),
        2 => (id.clone(), id.clone()).prop_map(|(source, target)| Step::Unlink { source, target }),
        3 => (id.clone(), any::<bool>()).prop_map(|(bead, merged)| Step::Close { bead, merged }),
        4 => id.clone().prop_map(|bead| Step::Reopen { bead }),
        1 => id.clone().prop_map(|bead| Step::Delete { bead }),
        3 => (id.clone(), 0..STATUSES.len()).prop_map(|(bead, status)| Step::Status { bead, status }),
        2 => (id.clone(), proptest::option::of(-5_i64..20)).prop_map(|(bead, seconds)| Step::Defer { bead, seconds }),
        2 => (id.clone(), proptest::option::of(any::<bool>())).prop_map(|(bead, who)| Step::Assign { bead, who }),
        2 => (id.clone(), 0_i64..5).prop_map(|(bead, priority)| Step::Priority { bead, priority }),
        1 => (id, 0..STATUSES.len()).prop_map(|(bead, status)| Step::Import { bead, status }),
        2 => (0..RIGS.len(), 0_usize..6).prop_map(|(rig, state)| Step::Rig { rig, state }),
    ]
}

fn step_of_dispatch() -> impl Strategy<Value = Step> {
    let id = 0..IDS.len();
    let slings = (
        proptest::collection::vec(id.clone(), 1..5),
        proptest::option::weighted(0.2, 0..RIGS.len()),
        proptest::option::weighted(0.3, 0..AGENTS.len()),
        (proptest::bool::weighted(0.3), any::<bool>(), proptest::bool::weighted(0.3), any::<bool>()),
    )
        .prop_map(|(beads, rig, agent, (force, convoy, now, queued))| Step::Sling {
            beads,
            rig,
            agent,
            force,
            convoy,
            now,
            queued: queued && !now,
        });
    let run = 0_usize..8;
    prop_oneof![
        14 => slings,
        14 => knobs().prop_map(|knobs| Step::Advance { knobs }),
        14 => (run.clone(), 0_usize..8, any::<bool>())
            .prop_map(|(run, fault, claims)| Step::Start { run, fault, claims }),
        10 => (run.clone(), any::<bool>(), proptest::bool::weighted(0.1), any::<bool>())
            .prop_map(|(run, signal, kept, claims)| Step::End { run, signal, kept, claims }),
        8 => (0_usize..30, 0..OUTCOMES.len(), 0_u32..300)
            .prop_map(|(run, outcome, cost)| Step::Report { run, outcome, cost }),
        8 => run.clone().prop_map(|run| Step::Finish { run }),
        3 => (run.clone(), 0..STOPS.len()).prop_map(|(run, outcome)| Step::Stop { run, outcome }),
        3 => (0_usize..30).prop_map(|run| Step::Again { run }),
        2 => proptest::option::weighted(0.8, id.clone()).prop_map(|bead| Step::Clear { bead }),
        3 => id.clone().prop_map(|bead| Step::Retry { bead }),
        1 => Just(Step::Pause),
        4 => Just(Step::Resume),
        1 => id.prop_map(|bead| Step::Spoil { bead }),
        8 => prop_oneof![0_i64..4, 0_i64..400, 3000_i64..4000].prop_map(|seconds| Step::Pass { seconds }),
    ]
}
