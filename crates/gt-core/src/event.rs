//! Events: every change of the town, numbered. // SPEC B7

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happened. The word is `noun.verbed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    BeadCreated,
    BeadUpdated,
    BeadClaimed,
    BeadClosed,
    BeadReopened,
    BeadDeleted,
    BeadLinked,
    BeadUnlinked,
    BeadLabelled,
    BeadUnlabelled,
    BeadCommented,
    RigAdded,
    RigRemoved,
    RigParked,
    RigUnparked,
    RigDocked,
    RigUndocked,
    ConfigChanged,
    TownCreated,
    ReadinessRepaired,
    BeadHooked,
    BeadReleased,
    BeadEscalated,
    ContextScheduled,
    ContextFailed,
    ContextClosed,
    RunStarted,
    RunReported,
    RunWaiting,
    RunResumed,
    RunStopping,
    RunEnded,
    RunStalled,
    RunInterrupted,
    ConvoyCreated,
    ConvoyChanged,
    ConvoyStaged,
    ConvoyLaunched,
    ConvoyLanded,
    ConvoyClosed,
    ConvoyCancelled,
    ConvoyFed,
    MailSent,
    NoticeFailed,
    PolecatKept,
    PolecatNuked,
    SchedulerPaused,
    SchedulerResumed,
    SchedulerHeldUp,
    SchedulerFreed,
    DaemonStarted,
    DaemonStopped,
    ConfigRejected,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::BeadCreated => "bead.created",
            EventType::BeadUpdated => "bead.updated",
            EventType::BeadClaimed => "bead.claimed",
            EventType::BeadClosed => "bead.closed",
            EventType::BeadReopened => "bead.reopened",
            EventType::BeadDeleted => "bead.deleted",
            EventType::BeadLinked => "bead.linked",
            EventType::BeadUnlinked => "bead.unlinked",
            EventType::BeadLabelled => "bead.labelled",
            EventType::BeadUnlabelled => "bead.unlabelled",
            EventType::BeadCommented => "bead.commented",
            EventType::RigAdded => "rig.added",
            EventType::RigRemoved => "rig.removed",
            EventType::RigParked => "rig.parked",
            EventType::RigUnparked => "rig.unparked",
            EventType::RigDocked => "rig.docked",
            EventType::RigUndocked => "rig.undocked",
            EventType::ConfigChanged => "config.changed",
            EventType::TownCreated => "town.created",
            EventType::ReadinessRepaired => "readiness.repaired",
            EventType::BeadHooked => "bead.hooked",
            EventType::BeadReleased => "bead.released",
            EventType::BeadEscalated => "bead.escalated",
            EventType::ContextScheduled => "context.scheduled",
            EventType::ContextFailed => "context.failed",
            EventType::ContextClosed => "context.closed",
            EventType::RunStarted => "run.started",
            EventType::RunReported => "run.reported",
            EventType::RunWaiting => "run.waiting",
            EventType::RunResumed => "run.resumed",
            EventType::RunStopping => "run.stopping",
            EventType::RunEnded => "run.ended",
            EventType::RunStalled => "run.stalled",
            EventType::RunInterrupted => "run.interrupted",
            EventType::ConvoyCreated => "convoy.created",
            EventType::ConvoyChanged => "convoy.changed",
            EventType::ConvoyStaged => "convoy.staged",
            EventType::ConvoyLaunched => "convoy.launched",
            EventType::ConvoyLanded => "convoy.landed",
            EventType::ConvoyClosed => "convoy.closed",
            EventType::ConvoyCancelled => "convoy.cancelled",
            EventType::ConvoyFed => "convoy.fed",
            EventType::MailSent => "mail.sent",
            EventType::NoticeFailed => "notice.failed",
            EventType::PolecatKept => "polecat.kept",
            EventType::PolecatNuked => "polecat.nuked",
            EventType::SchedulerPaused => "scheduler.paused",
            EventType::SchedulerResumed => "scheduler.resumed",
            EventType::SchedulerHeldUp => "scheduler.held_up",
            EventType::SchedulerFreed => "scheduler.freed",
            EventType::DaemonStarted => "daemon.started",
            EventType::DaemonStopped => "daemon.stopped",
            EventType::ConfigRejected => "config.rejected",
        }
    }
}

/// One line of the log, as `gt activity --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub seq: i64,
    #[serde(serialize_with = "as_utc")]
    pub ts: Timestamp,
    #[serde(rename = "type")]
    pub kind: String,
    pub actor: String,
    pub bead: Option<String>,
    pub run: Option<String>,
    pub data: Value,
}

fn as_utc<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&crate::time::format(*at))
}

#[cfg(test)]
mod tests;
