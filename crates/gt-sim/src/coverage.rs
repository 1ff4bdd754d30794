//! The table of transitions: which event can meet a bead in which phase, and which of them were met.
//!
//! What the table does not allow is a violation; what it allows and no seed has met is a hole in the simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Where a bead is in dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Phase {
    pub is_done: bool,
    /// It has an open context.
    pub is_queued: bool,
    pub run: RunPhase,
}

/// Where its live run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunPhase {
    None,
    Starting,
    Working,
    /// It has said what became of its work.
    Spoken,
    /// It was told to stop.
    Stopping,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.is_done { "done" } else { "open" };
        let queued = if self.is_queued { ", queued" } else { "" };
        let run = match self.run {
            RunPhase::None => "",
            RunPhase::Starting => ", starting",
            RunPhase::Working => ", working",
            RunPhase::Spoken => ", spoken",
            RunPhase::Stopping => ", stopping",
        };
        write!(f, "{done}{queued}{run}")
    }
}

/// Every event that the table knows.
pub const EVENTS: [&str; 47] = [
    "bead.closed",
    "bead.reopened",
    "bead.deleted",
    "bead.updated",
    "bead.linked",
    "bead.unlinked",
    "bead.hooked",
    "bead.released",
    "bead.escalated",
    "context.scheduled by sling",
    "context.scheduled by retry",
    "context.scheduled by witness",
    "context.scheduled by breaker",
    "context.scheduled by agent",
    "context.scheduled by feed",
    "context.scheduled by deacon",
    "context.failed",
    "context.closed cleared",
    "context.closed circuit-broken",
    "context.closed stale-work-bead",
    "run.started",
    "run.waiting",
    "run.resumed",
    "run.stalled",
    "run.interrupted",
    "run.stopping",
    "run.reported completed",
    "run.reported failed",
    "run.reported deferred",
    "run.ended completed",
    "run.ended failed",
    "run.ended deferred",
    "run.ended died",
    "run.ended not-started",
    "run.ended stopped",
    "run.ended timed-out",
    "run.ended lost",
    "run.ended rate-limited",
    "run.ended agent-unable",
    "polecat.kept",
    "convoy.changed",
    "convoy.staged",
    "convoy.launched",
    "convoy.landed",
    "convoy.closed",
    "convoy.cancelled",
    "convoy.fed",
];

impl Phase {
    pub const RUNS: [RunPhase; 5] =
        [RunPhase::None, RunPhase::Starting, RunPhase::Working, RunPhase::Spoken, RunPhase::Stopping];

    /// Every phase that can be: a second context only follows a run that was told to stop.
    pub fn all() -> Vec<Phase> {
        let mut all = Vec::new();
        for is_done in [false, true] {
            for run in Phase::RUNS {
                all.push(Phase { is_done, is_queued: false, run });
                if matches!(run, RunPhase::None | RunPhase::Stopping) {
                    all.push(Phase { is_done, is_queued: true, run });
                }
            }
        }
        all
    }
}

/// Whether an event can meet a bead in this phase.
pub fn is_possible(phase: Phase, event: &str) -> bool {
    use RunPhase::{None, Spoken, Starting, Stopping, Working};
    let Phase { is_done, is_queued, run } = phase;
    match event {
        "bead.closed" => !is_done,
        "bead.reopened" => is_done,
        "bead.deleted" | "bead.updated" | "bead.linked" | "bead.unlinked" => true,
        "bead.hooked" => !is_done && is_queued && run == None,
        "bead.released" => !is_done && (run == None || (run == Stopping && !is_queued)),
        // An agent asks for help; or its attempts are used up, and nobody has slung it again.
        "bead.escalated" => match run {
            None => !is_done && !is_queued,
            Stopping => false,
            _ => true,
        },
        "context.scheduled by sling" => !is_done && !is_queued && matches!(run, None | Stopping),
        "context.scheduled by retry" => !is_done && matches!(run, None | Stopping | Starting | Spoken),
        "context.scheduled by witness"
        | "context.scheduled by agent"
        | "context.scheduled by feed"
        | "context.scheduled by deacon"
        | "context.scheduled by step"
        // Of a convoy, which nobody works on.
        | "convoy.fed"
        | "convoy.staged"
        | "convoy.launched" => !is_done && !is_queued && run == None,
        "context.scheduled by breaker" | "convoy.changed" => !is_queued && run == None,
        "context.failed" | "context.closed circuit-broken" => is_queued && run == None,
        "context.closed cleared" => is_queued,
        "context.closed stale-work-bead" => is_done && is_queued,
        "run.started" => !is_queued && !matches!(run, None | Working),
        "run.waiting" | "run.resumed" => !is_done && matches!(run, Starting | Working),
        "run.stalled" | "run.interrupted" => !is_done && run == Working,
        "run.stopping" => matches!(run, Starting | Working | Spoken),
        "run.reported completed" | "run.reported failed" | "run.reported deferred" | "run.reported step-done" => {
            matches!(run, Starting | Working | Spoken)
        }
        "run.ended completed" => run != None && (is_done || matches!(run, Spoken | Stopping)),
        // Of work that is done step by step.
        "run.ended step-done" => run != None,
        "run.ended completed alone" => !is_done && matches!(run, Starting | Working | Stopping),
        "run.ended failed" | "run.ended deferred" => !is_done && matches!(run, Spoken | Stopping),
        "run.ended died" | "run.ended rate-limited" | "run.ended agent-unable" => {
            !is_done && matches!(run, Starting | Working | Stopping)
        }
        "run.ended lost" => !is_done && matches!(run, Starting | Working),
        "run.ended not-started" => !is_queued && matches!(run, Starting | Stopping),
        "run.ended stopped" | "run.ended timed-out" => !is_done && run == Stopping,
        "polecat.kept" => run == None,
        "convoy.landed" | "convoy.closed" | "convoy.cancelled" => is_done && !is_queued && run == None,
        _ => false,
    }
}

/// What was met, and how often.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    met: BTreeMap<(Phase, String), u64>,
}

impl Coverage {
    /// Counts a transition; one that cannot be is an error.
    pub fn meet(&mut self, phase: Phase, event: &str) -> Result<(), String> {
        if matches!(event, "bead.created" | "convoy.created" | "bead.labelled" | "bead.commented" | "mail.sent") {
            return Ok(());
        }
        if !is_possible(phase, event) {
            return Err(format!("`{event}` met a bead that is {phase}"));
        }
        *self.met.entry((phase, event.to_owned())).or_default() += 1;
        Ok(())
    }

    pub fn add(&mut self, other: &Coverage) {
        for (pair, n) in &other.met {
            *self.met.entry(pair.clone()).or_default() += n;
        }
    }

    /// What the table allows and nobody has met.
    pub fn missing(&self) -> Vec<(Phase, &'static str)> {
        let pairs = Phase::all().into_iter().flat_map(|phase| EVENTS.map(|event| (phase, event)));
        pairs
            .filter(|(phase, event)| {
                is_possible(*phase, event) && !self.met.contains_key(&(*phase, (*event).to_owned()))
            })
            .collect()
    }

    pub fn n_met(&self) -> usize {
        self.met.len()
    }

    /// The rarest that were met, with their numbers.
    pub fn rarest(&self, n: usize) -> Vec<(String, u64)> {
        let mut rare: Vec<(String, u64)> =
            self.met.iter().map(|((phase, event), n)| (format!("{phase}: {event}"), *n)).collect();
        rare.sort_by_key(|(_, n)| *n);
        rare.truncate(n);
        rare
    }

    /// The table as people read it: a line for each event, with the phases that it met.
    pub fn table(&self) -> String {
        let mut lines = Vec::new();
        for event in EVENTS {
            let met: BTreeSet<String> =
                self.met.keys().filter(|(_, met)| met == event).map(|(phase, _)| phase.to_string()).collect();
            lines.push(format!("{event}: {}", met.into_iter().collect::<Vec<_>>().join(" | ")));
        }
        lines.join("\n")
    }
}
