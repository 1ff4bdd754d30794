//! The list of deliberate defects, each of which the simulation has to find.
//!
//! Owns: what is broken, where and how. Does not own: how it gets into a copy of the sources (`copy.rs`). Every `from`
//! is in its file exactly once, and `to` is the same with the defect behind `crate::defect(name)`. A defect that by
//! design breaks no promise is not on the list; docs/simulation.md says which those are.

mod convoys;
mod jobs;
mod recovery;

use std::fmt;
use std::sync::LazyLock;

/// One way to break the town.
#[derive(Clone, Copy)]
pub(super) struct Defect {
    pub(super) name: &'static str,
    /// What is wrong then.
    pub(super) what: &'static str,
    pub(super) edits: &'static [Edit],
}

/// What there is to be done in the towns that are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Towns {
    Beads,
    Jobs,
}

impl fmt::Display for Towns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Towns::Beads => "beads",
            Towns::Jobs => "jobs",
        })
    }
}

impl Defect {
    /// In which towns it is looked for.
    pub(super) fn towns(&self) -> Towns {
        let is_of_jobs = jobs::DEFECTS.iter().any(|defect| defect.name == self.name);
        if is_of_jobs { Towns::Jobs } else { Towns::Beads }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Edit {
    pub(super) file: &'static str,
    pub(super) from: &'static str,
    pub(super) to: &'static str,
}

const PLAN: &str = "crates/gt-core/src/plan.rs";
const BEADS: &str = "crates/gt-store/src/beads.rs";
const CLAIM: &str = "crates/gt-store/src/dispatch/claim.rs";
const CONTEXTS: &str = "crates/gt-store/src/dispatch/contexts.rs";
const LEDGER: &str = "crates/gt-store/src/ledger.rs";
const OUTLOOK: &str = "crates/gt-store/src/dispatch/outlook.rs";
const REPORTS: &str = "crates/gt-store/src/dispatch/reports.rs";
const RUNS: &str = "crates/gt-store/src/dispatch/runs.rs";
const UNFINISHED: &str = "crates/gt-store/src/dispatch/unfinished.rs";
const SCENE: &str = "crates/gt-store/src/dispatch/scene.rs";
const SLING: &str = "crates/gt-store/src/dispatch/sling.rs";
const TELLINGS: &str = "crates/gt-store/src/dispatch/tellings.rs";
const DAEMON: &str = "crates/gt-engine/src/daemon.rs";
const DAEMON_CONFIG: &str = "crates/gt-engine/src/daemon/config.rs";
const PACE: &str = "crates/gt-engine/src/pace.rs";
const DISPATCH: &str = "crates/gt-engine/src/dispatch.rs";

/// Every defect.
pub(super) static DEFECTS: LazyLock<Vec<Defect>> =
    LazyLock::new(|| [DISPATCHING, convoys::DEFECTS, recovery::DEFECTS, jobs::DEFECTS].concat());

/// What is wrong with dispatch.
const DISPATCHING: &[Defect] = &[
    Defect {
        name: "limit-costs-an-attempt",
        what: "A run that met a rate limit counts as one that died.",
        edits: &[Edit {
            file: RUNS,
            from: r"_ => failure.and_then(Failure::outcome).unwrap_or(",
            to: r#"_ if crate::defect("limit-costs-an-attempt") => Outcome::Died,
            _ => failure.and_then(Failure::outcome).unwrap_or("#,
        }],
    },
    Defect {
        name: "limit-holds-nobody-up",
        what: "An agent that has reached its limit is given the next work at once.",
        edits: &[Edit {
            file: TELLINGS,
            from: r"if !failure.class.is_the_agents() {",
            to: r#"if !failure.class.is_the_agents() || crate::defect("limit-holds-nobody-up") {"#,
        }],
    },
    Defect {
        name: "limit-loses-its-bead",
        what: "A bead whose run met a rate limit is not queued again.",
        edits: &[Edit {
            file: UNFINISHED,
            from: r"is_next = outcome.is_tried_again(),",
            to: r#"is_next = outcome.is_tried_again() && !(outcome.is_the_agents() && crate::defect("limit-loses-its-bead")),"#,
        }],
    },
    Defect {
        name: "last-word-lingers",
        what: "Whoever lives on after its last word is left alone.",
        edits: &[Edit {
            file: DISPATCH,
            from: r"if self.end_lingering(run, store, settings)? {",
            to: r#"if !crate::defect("last-word-lingers") && self.end_lingering(run, store, settings)? {"#,
        }],
    },
    Defect {
        name: "stale-word-counts",
        what: "What a run says after its end still counts.",
        edits: &[Edit {
            file: REPORTS,
            from: r"Some(run) if !run.is_live() =>",
            to: r#"Some(run) if !run.is_live() && !crate::defect("stale-word-counts") =>"#,
        }],
    },
    Defect {
        name: "stopped-word-counts",
        what: "What a run says after it was told to stop still counts.",
        edits: &[Edit {
            file: REPORTS,
            from: r"Some(run) if run.stop.is_some() =>",
            to: r#"Some(run) if run.stop.is_some() && !crate::defect("stopped-word-counts") =>"#,
        }],
    },
    Defect {
        name: "unstored-word-acknowledged",
        what: "An agent is told that its word counts although it could not be stored.",
        edits: &[Edit {
            file: REPORTS,
            from: r"self.write(stamp, |tx| take_report(tx, report, stamp))",
            to: r#"self.write(stamp, |tx| take_report(tx, report, stamp)).or_else(|error| match error {
                StoreError::Busy { .. } | StoreError::Full { .. } if crate::defect("unstored-word-acknowledged") => {
                    Ok(Some(Vec::new()))
                }
                error => Err(error),
            })"#,
        }],
    },
    Defect {
        name: "close-loses-to-silence",
        what: "A run whose bead is closed counts as died when it ends without a word.",
        edits: &[Edit {
            file: RUNS,
            from: r"(true, ..) => Outcome::Completed,",
            to: r#"(true, ..) if !crate::defect("close-loses-to-silence") => Outcome::Completed,
            (true, None, None) => Outcome::Died,
            (true, ..) => Outcome::Completed,"#,
        }],
    },
    Defect {
        name: "end-counts-twice",
        what: "An end that is seen twice is recorded twice.",
        edits: &[Edit {
            file: RUNS,
            from: r"let Some(mut run) = by_id(tx, &end.run)?.filter(Run::is_live) else",
            to: r#"let is_taken = |run: &Run| run.is_live() || crate::defect("end-counts-twice");
    let Some(mut run) = by_id(tx, &end.run)?.filter(is_taken) else"#,
        }],
    },
    Defect {
        name: "bead-stays-on-its-hook",
        what: "A bead stays on the hook of a run that has ended.",
        edits: &[Edit {
            file: RUNS,
            from: r"if bead.status.is_active() && is_its {",
            to: r#"if bead.status.is_active() && is_its && !crate::defect("bead-stays-on-its-hook") {"#,
        }],
    },
    Defect {
        name: "starting-not-counted",
        what: "Runs that are being started are not counted against the caps.",
        edits: &[Edit {
            file: SCENE,
            from: r#""SELECT run.polecat, run.rig, run.agent, run.host, run.id, bead.standing, bead.closed_at
         FROM run JOIN bead ON bead.key = run.bead WHERE run.state <> 'ended' ORDER BY run.claimed_at, run.id","#,
            to: r#"if crate::defect("starting-not-counted") {
            "SELECT run.polecat, run.rig, run.agent, run.host, run.id, bead.standing, bead.closed_at
         FROM run JOIN bead ON bead.key = run.bead WHERE run.state = 'working' ORDER BY run.claimed_at, run.id"
        } else {
            "SELECT run.polecat, run.rig, run.agent, run.host, run.id, bead.standing, bead.closed_at
         FROM run JOIN bead ON bead.key = run.bead WHERE run.state <> 'ended' ORDER BY run.claimed_at, run.id"
        },"#,
        }],
    },
    Defect {
        name: "rig-cap-ignored",
        what: "A rig takes more runs than its cap allows.",
        edits: &[Edit {
            file: PLAN,
            from: r"if let Some(cap) = full(&self.scene.caps.rigs, &self.n_by_rig, rig) {",
            to: r#"if let Some(cap) = full(&self.scene.caps.rigs, &self.n_by_rig, rig)
            && !crate::defect("rig-cap-ignored")
        {"#,
        }],
    },
    Defect {
        name: "pause-ignored",
        what: "The claim gives out work while dispatch is paused.",
        edits: &[Edit {
            file: CLAIM,
            from: r"let scene = scene::scene(tx, policy, stamp.now)?;",
            to: r#"let mut scene = scene::scene(tx, policy, stamp.now)?;
    if crate::defect("pause-ignored") {
        scene.pause = None;
    }"#,
        }],
    },
    Defect {
        name: "parked-rig-starts",
        what: "A parked rig still starts work.",
        edits: &[
            Edit {
                file: CLAIM,
                from: r"const AFTER: usize = contexts::N_COLUMNS;",
                to: r#"const AFTER: usize = contexts::N_COLUMNS;
    let parked_too = u8::from(crate::defect("parked-rig-starts"));"#,
            },
            Edit {
                file: CLAIM,
                from: r"FROM rig WHERE state = 'active')",
                to: r"FROM rig WHERE state = 'active' OR (state = 'parked' AND {parked_too}))",
            },
            Edit {
                file: PLAN,
                from: r"reasons.extend(rig_reason(&candidate.rig, candidate.rig_state));",
                to: r#"let starts_parked = crate::defect("parked-rig-starts") && candidate.rig_state == Some(RigState::Parked);
        reasons.extend(rig_reason(&candidate.rig, candidate.rig_state).filter(|_| !starts_parked));"#,
            },
        ],
    },
    Defect {
        name: "attempts-forgotten",
        what: "Each redispatch begins to count a bead's attempts anew.",
        edits: &[Edit {
            file: UNFINISHED,
            from: r"retry_at, ..last }, how, stamp)?;",
            to: r#"retry_at, ..last }, how, stamp)?;
        if crate::defect("attempts-forgotten") {
            records::save(tx, run.key, &Record { attempts: 0, ..record })?;
        }"#,
        }],
    },
    Defect {
        name: "cooldown-ignored",
        what: "A bead is tried again at once after a run that did not finish it.",
        edits: &[Edit {
            file: UNFINISHED,
            from: r#"(Some(stamp.now + policy.redispatch_cooldown), "witness")"#,
            to: r#"let cooldown = Some(stamp.now + policy.redispatch_cooldown);
            (cooldown.filter(|_| !crate::defect("cooldown-ignored")), "witness")"#,
        }],
    },
    Defect {
        name: "attempts-never-used-up",
        what: "A bead is tried again however often its runs have ended unfinished.",
        edits: &[Edit {
            file: UNFINISHED,
            from: r"&& record.attempts > policy.redispatch_attempts => {",
            to: r#"&& record.attempts > policy.redispatch_attempts
            && !crate::defect("attempts-never-used-up") => {"#,
        }],
    },
    Defect {
        name: "backoff-ignored",
        what: "A start that failed is tried again at once.",
        edits: &[Edit {
            file: RUNS,
            from: r"let retry_at = is_its_fault.then(|| stamp.now + backoff(failures));",
            to: r#"let waits = is_its_fault && !crate::defect("backoff-ignored");
    let retry_at = waits.then(|| stamp.now + backoff(failures));"#,
        }],
    },
    Defect {
        name: "breaker-never-breaks",
        what: "A start that fails again and again never breaks its circuit.",
        edits: &[Edit {
            file: RUNS,
            from: r"if failures >= policy.max_failures {",
            to: r#"if failures >= policy.max_failures && !crate::defect("breaker-never-breaks") {"#,
        }],
    },
    Defect {
        name: "circuit-stays-broken",
        what: "A broken circuit never lets a try through.",
        edits: &[Edit {
            file: CLAIM,
            from: r"for (bead, context) in records::due(tx, stamp.now)? {",
            to: r#"for (bead, context) in records::due(tx, stamp.now)? {
        if crate::defect("circuit-stays-broken") {
            break;
        }"#,
        }],
    },
    Defect {
        name: "second-context",
        what: "A bead that is scheduled already is scheduled once more.",
        edits: &[Edit {
            file: SLING,
            from: r"if let Some(context) = contexts::live_of(tx, key)? {",
            to: r#"if let Some(context) = contexts::live_of(tx, key)?
        && !crate::defect("second-context")
    {"#,
        }],
    },
    Defect {
        name: "clear-takes-what-starts",
        what: "Clearing the queue takes a context whose run is being started.",
        edits: &[Edit {
            file: CONTEXTS,
            from: r"open.into_iter().filter(|context| context.state == ContextState::Open) {",
            to: r#"open
                .into_iter()
                .filter(|context| context.state == ContextState::Open || crate::defect("clear-takes-what-starts"))
            {"#,
        }],
    },
    Defect {
        name: "close-without-event",
        what: "A close is not in the log.",
        edits: &[Edit {
            file: BEADS,
            from: r"events::append(tx, stamp, event, Some(id), &move_data(&bead, &from))?;",
            to: r#"if !(matches!(event, EventType::BeadClosed) && crate::defect("close-without-event")) {
                        events::append(tx, stamp, event, Some(id), &move_data(&bead, &from))?;
                    }"#,
        }],
    },
    Defect {
        name: "close-frees-nobody",
        what: "A close does not free the beads that waited for it.",
        edits: &[Edit {
            file: LEDGER,
            from: r"_ => self.change(source, |node| node.holding += delta)?,",
            to: r#"_ if delta < 0 && crate::defect("close-frees-nobody") => {}
                    _ => self.change(source, |node| node.holding += delta)?,"#,
        }],
    },
    Defect {
        name: "deferral-never-ends",
        what: "Beads whose deferral has run out are not woken.",
        edits: &[Edit {
            file: LEDGER,
            from: r"if due.is_empty() {",
            to: r#"if due.is_empty() || crate::defect("deferral-never-ends") {"#,
        }],
    },
    Defect {
        name: "retry-deadline-forgotten",
        what: "The daemon does not wake up for a bead that is to be tried again later.",
        edits: &[
            Edit { file: OUTLOOK, from: r#""SELECT min(at) FROM ("#, to: r#"&"SELECT min(at) FROM ("# },
            Edit {
                file: OUTLOOK,
                from: r#"SELECT min(until) FROM trouble WHERE until > ?1)","#,
                to: r#"SELECT min(until) FROM trouble WHERE until > ?1)"
                    .replace("min(retry_at)", if crate::defect("retry-deadline-forgotten") { "NULL" } else { "min(retry_at)" }),"#,
            },
        ],
    },
    Defect {
        name: "silent-write-missed",
        what: "The daemon does not look when a store is written and nobody rings.",
        edits: &[Edit {
            file: DAEMON,
            from: r"Cause::StoreWritten => {",
            to: r#"Cause::StoreWritten if crate::defect("silent-write-missed") => Due::Nothing,
            Cause::StoreWritten => {"#,
        }],
    },
    Defect {
        name: "config-read-once",
        what: "The daemon never reads its config again.",
        edits: &[Edit {
            file: DAEMON_CONFIG,
            from: r"self.config_seen = config_id(&self.town);
        match",
            to: r#"self.config_seen = config_id(&self.town);
        if self.has_config && crate::defect("config-read-once") {
            return false;
        }
        match"#,
        }],
    },
    Defect {
        name: "in-flight-starts-again",
        what: "What a process is just starting is started by it once more.",
        edits: &[Edit {
            file: DISPATCH,
            from: r"let is_settled = |run: &&Run| !self.in_flight.contains(&run.id) || is_late(run);",
            to: r#"let is_settled = |run: &&Run| {
            crate::defect("in-flight-starts-again") || !self.in_flight.contains(&run.id) || is_late(run)
        };"#,
        }],
    },
    Defect {
        name: "orphaned-start-left-alone",
        what: "Nobody takes up a start whose starter has died.",
        edits: &[Edit {
            file: DISPATCH,
            from: r"if !is_late && !is_ours && self.around.is_alive(&run.starter) {",
            to: r#"if crate::defect("orphaned-start-left-alone") && !is_ours {
            return Ok(());
        }
        if !is_late && !is_ours && self.around.is_alive(&run.starter) {"#,
        }],
    },
    Defect {
        name: "no-second-look",
        what: "The daemon does not look again after a write that it heard of before the commit could be seen.",
        edits: &[Edit {
            file: DAEMON,
            from: r"self.look_again = Some(LOOK_SOON);",
            to: r#"self.look_again = (!crate::defect("no-second-look")).then_some(LOOK_SOON);"#,
        }],
    },
    Defect {
        name: "end-unheard",
        what: "The daemon hears of an end and does not pass.",
        edits: &[Edit {
            file: DAEMON,
            from: r"self.dispatcher.hear(run, ending);
                Due::Batch",
            to: r#"self.dispatcher.hear(run, ending);
                Due::batch_if(!crate::defect("end-unheard"))"#,
        }],
    },
    Defect {
        name: "unwanted-start-left-running",
        what: "A start that was given up is left running when it comes after all.",
        edits: &[
            Edit {
                file: DISPATCH,
                from: r"for run in &advance.unwanted {",
                to: r#"for run in advance.unwanted.iter().filter(|run| run.is_live() || !crate::defect("unwanted-start-left-running")) {"#,
            },
            Edit {
                file: DISPATCH,
                from: r"Sighting::Running(handle) if recorded.is_some() => {",
                to: r#"Sighting::Running(handle) if recorded.is_some() && !crate::defect("unwanted-start-left-running") => {"#,
            },
        ],
    },
    Defect {
        name: "finished-agent-lingers",
        what: "An agent that lives on after its work is over is never stopped.",
        edits: &[Edit {
            file: DISPATCH,
            from: r"let is_over = run.finished_at(now).is_some_and(|at| now >= at + FINISH_GRACE);",
            to: r#"let is_over = run.finished_at(now).is_some_and(|at| now >= at + FINISH_GRACE)
            && !crate::defect("finished-agent-lingers");"#,
        }],
    },
    Defect {
        name: "max-run-not-enforced",
        what: "A run that lasts longer than it may is never stopped.",
        edits: &[Edit {
            file: DISPATCH,
            from: r"if is_too_long && run.finished_at(now).is_none() {",
            to: r#"let is_too_long = is_too_long && !crate::defect("max-run-not-enforced");
        if is_too_long && run.finished_at(now).is_none() {"#,
        }],
    },
    Defect {
        name: "lost-answer-taken-for-started",
        what: "A start whose answer was lost is recorded as made.",
        edits: &[Edit {
            file: DISPATCH,
            from: r"Ok(handle) => Ok(started(claimed.run(), &ready, &handle, stamp.now)),",
            to: r#"Ok(handle) => Ok(started(claimed.run(), &ready, &handle, stamp.now)),
                    Err(StartError::Unknown { .. }) if crate::defect("lost-answer-taken-for-started") => {
                        Ok(started(claimed.run(), &ready, &Handle { pid: 0, birth: 0 }, stamp.now))
                    }"#,
        }],
    },
    Defect {
        name: "count-outside-claim",
        what: "What lives is counted before the claim instead of inside it.",
        edits: &[Edit {
            file: DISPATCH,
            from: r"let mut claimant = claimant(&policy, &self.me, &mut self.new_run, limits, n_before);",
            to: r#"let (mut policy, mut limits) = (policy.clone(), limits);
            if crate::defect("count-outside-claim") {
                let n_live = store.live_runs()?.len();
                let n_free = policy.caps.town.take().map(|cap| cap.saturating_sub(n_live));
                limits.scheduler = [limits.scheduler, n_free].into_iter().flatten().min();
            }
            let mut claimant = claimant(&policy, &self.me, &mut self.new_run, limits, n_before);"#,
        }],
    },
    Defect {
        name: "healthy-agent-stopped",
        what: "Every agent is stopped when somebody looks at it.",
        edits: &[Edit {
            file: DISPATCH,
            from: r"if run.stop.is_some() || is_over || is_too_long {",
            to: r#"if run.stop.is_some() || is_over || is_too_long || crate::defect("healthy-agent-stopped") {"#,
        }],
    },
    Defect {
        name: "spacing-deadline-forgotten",
        what: "The daemon does not wake up when the distance between two starts is over.",
        edits: &[Edit {
            file: DAEMON,
            from: r"let goes_on = Side::BOTH.into_iter().filter(|side| *left.of(*side) != Some(0));",
            to: r#"let goes_on = Side::BOTH.into_iter().filter(|side| *left.of(*side) != Some(0));
        let goes_on = goes_on.filter(|_| !crate::defect("spacing-deadline-forgotten"));"#,
        }],
    },
    Defect {
        name: "rate-deadline-forgotten",
        what: "The daemon does not wake up when a new second allows new starts.",
        edits: &[Edit {
            file: OUTLOOK,
            from: r"let is_felt = free_at.is_some() &&",
            to: r#"let is_felt = free_at.is_some() && !crate::defect("rate-deadline-forgotten") &&"#,
        }],
    },
    Defect {
        name: "queue-switch-ignored",
        what: "What is queued is started by whoever passes, though the queue is not enabled.",
        edits: &[
            Edit {
                file: PLAN,
                from: r"reasons.extend((!queue.is_open).then(queue::closed_reason));",
                to: r#"reasons.extend((!queue.is_open && !crate::defect("queue-switch-ignored")).then(queue::closed_reason));"#,
            },
            Edit {
                file: "crates/gt-core/src/plan/policy.rs",
                from: r"self.queue.as_ref().is_some_and(|queue| queue.is_open)",
                to: r#"self.queue.as_ref().is_some_and(|queue| queue.is_open || crate::defect("queue-switch-ignored"))"#,
            },
        ],
    },
    Defect {
        name: "queue-cap-ignored",
        what: "What is queued starts beyond the queue's cap.",
        edits: &[Edit {
            file: PLAN,
            from: r"if let Some(cap) = queue.cap.filter(|cap| self.n_town >= *cap) {",
            to: r#"if let Some(cap) = queue.cap.filter(|cap| self.n_town >= *cap && !crate::defect("queue-cap-ignored")) {"#,
        }],
    },
    Defect {
        name: "queue-spacing-ignored",
        what: "What is queued keeps no distance between its starts.",
        edits: &[Edit {
            file: PACE,
            from: r"Side::Queue => state.last_queued_at,",
            to: r#"Side::Queue => state.last_queued_at.filter(|_| !crate::defect("queue-spacing-ignored")),"#,
        }],
    },
];
