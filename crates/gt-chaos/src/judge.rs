//! The judge: reads what agents, git, the receiver and `gt … --json` say at the end, and lists every broken promise.

mod caps;
mod merges;
mod messages;
mod noise;
mod slots;
mod work;

use std::collections::BTreeMap;

use crate::clock::Micros;
use crate::daemon::SelfEnd;
use crate::evidence::Line;
use crate::load::Asked;
use crate::nemesis::Deeds;
use crate::receiver::Post;
use crate::tally::Tally;
use crate::town::Town;

/// A promise that was broken, and how one knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: &'static str,
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(promise: &'static str, detail: impl Into<String>) -> Violation {
        Violation { promise, detail: detail.into() }
    }
}

/// All that is known when a town has come to rest.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) town: &'a Town,
    pub(crate) tally: &'a Tally,
    pub(crate) asked: &'a Asked,
    pub(crate) deeds: &'a Deeds,
    pub(crate) posts: Vec<Post>,
    pub(crate) agents: Vec<Line>,
    pub(crate) turns: Vec<Line>,
    pub(crate) slots: Vec<Line>,
    /// When each run's process was last seen alive.
    pub(crate) last_seen: BTreeMap<String, Micros>,
    pub(crate) self_ends: Vec<SelfEnd>,
    pub(crate) jobs_paused_at: Micros,
}

pub(crate) fn judge(case: &Case) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(
        case.asked.failures.iter().map(|what| Violation::new("a command can be repeated until it succeeds", what)),
    );
    violations.extend(caps::judge(case));
    violations.extend(work::judge(case));
    violations.extend(merges::judge(case));
    violations.extend(messages::judge(case));
    violations.extend(slots::judge(case));
    violations.extend(noise::judge(case));
    violations
}
