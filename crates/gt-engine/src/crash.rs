//! Crash points: the places between intent and record at which a test kills the process. // SPEC P6
//!
//! In use they cost one comparison. `GT_CRASH_AT=claimed` makes the process kill itself, as `kill -9` would, when it
//! comes to that point; `claimed:3` the third time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Signal, getpid, kill_process};

/// Where a process may die, in the order in which a run passes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// A command has stored something; nobody has been woken.
    Committed,
    /// The contexts are stored, and the daemon was told.
    Scheduled,
    /// Runs, hooks and slots are stored; nothing has happened.
    Claimed,
    /// The worktree is there; no process.
    Prepared,
    /// The processes run; that is not stored.
    Launched,
    /// The starts are stored.
    RecordedStart,
    /// Ends were seen; that is not stored.
    SawEnds,
    /// The ends are stored, not acknowledged; what they freed is claimed, not started.
    RecordedEnds,
    /// Everything is stored and acknowledged.
    Acknowledged,
    /// Slots that have come are turns now; nothing is claimed.
    Fired,
    /// A run that is done keeps its commit; that it is done is not stored.
    KeptCommit,
    /// Work waits to be merged.
    HandedOver,
    /// A batch lies on top of the base.
    Stacked,
    /// It has passed; nobody else can see it.
    GatesPassed,
    /// The remote has it; the target here has not.
    Pushed,
    /// The target has it; that is not stored.
    Landed,
    /// That is stored; what is left of it is not cleared away.
    RecordedMerge,
}

impl CrashPoint {
    /// From a sling to the end of a run.
    pub const DISPATCH: [CrashPoint; 9] = [
        CrashPoint::Committed,
        CrashPoint::Scheduled,
        CrashPoint::Claimed,
        CrashPoint::Prepared,
        CrashPoint::Launched,
        CrashPoint::RecordedStart,
        CrashPoint::SawEnds,
        CrashPoint::RecordedEnds,
        CrashPoint::Acknowledged,
    ];

    /// From done to merged.
    pub const MERGING: [CrashPoint; 7] = [
        CrashPoint::KeptCommit,
        CrashPoint::HandedOver,
        CrashPoint::Stacked,
        CrashPoint::GatesPassed,
        CrashPoint::Pushed,
        CrashPoint::Landed,
        CrashPoint::RecordedMerge,
    ];

    /// From a slot of a job to the end of its run.
    pub const CLOCK: [CrashPoint; 8] = [
        CrashPoint::Fired,
        CrashPoint::Claimed,
        CrashPoint::Prepared,
        CrashPoint::Launched,
        CrashPoint::RecordedStart,
        CrashPoint::SawEnds,
        CrashPoint::RecordedEnds,
        CrashPoint::Acknowledged,
    ];

    pub fn name(self) -> &'static str {
        match self {
            CrashPoint::Committed => "committed",
            CrashPoint::Scheduled => "scheduled",
            CrashPoint::Claimed => "claimed",
            CrashPoint::Prepared => "prepared",
            CrashPoint::Launched => "launched",
            CrashPoint::RecordedStart => "recorded-start",
            CrashPoint::SawEnds => "saw-ends",
            CrashPoint::RecordedEnds => "recorded-ends",
            CrashPoint::Acknowledged => "acknowledged",
            CrashPoint::Fired => "fired",
            CrashPoint::KeptCommit => "kept-commit",
            CrashPoint::HandedOver => "handed-over",
            CrashPoint::Stacked => "stacked",
            CrashPoint::GatesPassed => "gates-passed",
            CrashPoint::Pushed => "pushed",
            CrashPoint::Landed => "landed",
            CrashPoint::RecordedMerge => "recorded-merge",
        }
    }
}

/// Where this process is to die, and how many times it may pass before.
struct Order {
    point: Option<CrashPoint>,
    passes_left: AtomicU32,
}

/// Dies here, if that was ordered.
pub fn point(here: CrashPoint) {
    static ORDER: OnceLock<Order> = OnceLock::new();
    let order = ORDER.get_or_init(|| read_order(&std::env::var("GT_CRASH_AT").unwrap_or_default()));
    if order.point == Some(here) && order.passes_left.fetch_sub(1, Ordering::Relaxed) == 1 {
        // Nothing runs after a SIGKILL to oneself, so there is no result to look at.
        kill_process(getpid(), Signal::KILL).unwrap_or_default();
    }
}

fn read_order(text: &str) -> Order {
    let (name, times) = text.split_once(':').unwrap_or((text, "1"));
    let all = CrashPoint::DISPATCH.into_iter().chain(CrashPoint::MERGING).chain(CrashPoint::CLOCK);
    let point = all.into_iter().find(|point| point.name() == name);
    Order { point, passes_left: AtomicU32::new(times.parse().unwrap_or(1)) }
}
