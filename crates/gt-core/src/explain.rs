//! Why a bead is, or is not, being worked on. // SPEC B6
//!
//! The answer is data: a state and at least one reason, each with a stable code and a sentence.

use jiff::Timestamp;
use serde::Serialize;

use crate::agent::Need;
use crate::bead::Bead;
use crate::readiness::{Node, Standing};
use crate::rig::Home;
use crate::status::{self, Status};
use crate::{plan, text, time};

/// One thing that a bead waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    pub id: String,
    pub title: String,
    pub status: Status,
    pub why: BlockedBy,
}

/// How a blocker blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockedBy {
    /// It is not closed.
    Open,
    /// It is closed, but its work is not merged.
    Unmerged,
    /// It has active children.
    Children { active: i64 },
    /// It is a parent that is itself blocked.
    BlockedParent,
    /// It is a parent that is deferred.
    DeferredParent { until: Timestamp },
}

/// All that the answer rests on.
#[derive(Debug)]
pub struct Case<'a> {
    pub bead: &'a Bead,
    pub node: &'a Node,
    pub blockers: &'a [Blocker],
    pub home: Home<'a>,
    pub dispatch: Dispatch,
    /// Why no automatic path takes it.
    pub hold: Option<Reason>,
    /// The convoy that will put it in line.
    pub convoy: Option<Following>,
    pub now: Timestamp,
}

/// A convoy that a bead is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Following {
    pub id: String,
    pub is_staged: bool,
}

/// What dispatch has to do with the bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispatch {
    Nothing,
    Scheduled {
        /// From 1.
        position: usize,
        n_scheduled: usize,
        /// What the plan says; empty when the next pass starts it.
        reasons: Vec<Reason>,
        /// Whether it comes in batches.
        has_batch: bool,
    },
    Running(Running),
}

/// The run that has the bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub run: String,
    pub rig: String,
    pub polecat: String,
    pub is_starting: bool,
    pub since: Timestamp,
    /// Why it was told to stop.
    pub stop: Option<String>,
    /// What it waits for, and since when.
    pub waits: Option<(Need, Timestamp)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub code: &'static str,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub bead: String,
    pub state: String,
    pub reasons: Vec<Reason>,
}

/// Says where the bead stands and every reason for it; the list is never empty.
pub fn explain(case: &Case<'_>) -> Explanation {
    let standing = case.node.standing_at(case.now);
    let mut reasons = Vec::new();
    match &case.dispatch {
        Dispatch::Running(run) => {
            reasons.push(running(run, standing));
            // That it is on a hook was just said.
            reasons.extend(base(case).into_iter().filter(|r| !["hooked", "in-progress"].contains(&r.code)));
        }
        Dispatch::Scheduled { position, n_scheduled, reasons: plan, has_batch } => {
            let next = if plan.is_empty() { format!("; it {}", next_start(*has_batch)) } else { String::new() };
            reasons.push(reason("scheduled", format!("it is number {position} of {n_scheduled} in the queue{next}")));
            reasons.extend(plan.iter().cloned());
        }
        Dispatch::Nothing => {
            reasons.extend(base(case));
            reasons.extend(in_convoy(case, standing));
        }
    }
    if standing != Standing::Done {
        reasons.extend(case.hold.clone());
    }
    if reasons.is_empty() && standing != Standing::Ready {
        reasons.push(reason("waiting", format!("it is {}, but what holds it is not recorded", standing.as_str())));
    }
    if reasons.is_empty() {
        reasons.extend(case.bead.assignee.as_deref().map(assigned));
    }
    if reasons.is_empty() {
        let id = &case.bead.id;
        let message = format!("it is ready; nothing holds it back, and nobody has taken it: `gt sling {id}`");
        reasons.push(reason("ready", message));
    }
    Explanation { bead: case.bead.id.clone(), state: state(case, standing), reasons }
}

/// What its convoy will do, where nothing but time and other beads stand in between.
fn in_convoy(case: &Case<'_>, standing: Standing) -> Option<Reason> {
    let Following { id, is_staged } = case.convoy.as_ref()?;
    let is_free = case.hold.is_none() && case.bead.assignee.is_none() && place(case).is_none();
    if !is_free || !status::is_slingable(case.bead.issue_type.as_deref()) {
        return None;
    }
    Some(match standing {
        Standing::Done | Standing::Held => return None,
        _ if *is_staged => {
            reason("staged", format!("its convoy {id} is staged, and starts nothing: `gt convoy launch {id}`"))
        }
        Standing::Ready => reason("convoy", format!("the daemon's next sweep puts it in line, for its convoy {id}")),
        Standing::Blocked | Standing::Deferred => {
            reason("convoy", format!("its convoy {id} puts it in line as soon as it is ready"))
        }
    })
}

/// What the bead, its neighbours and its rig say, without dispatch.
fn base(case: &Case<'_>) -> Vec<Reason> {
    let mut reasons = waits(case.bead, case.node, case.blockers, case.now);
    if case.node.standing_at(case.now) != Standing::Done {
        reasons.extend(place(case));
    }
    reasons
}

/// Why a bead is not ready; empty when it is.
pub fn waits(bead: &Bead, node: &Node, blockers: &[Blocker], now: Timestamp) -> Vec<Reason> {
    let mut reasons = match node.standing_at(now) {
        Standing::Done => vec![done(bead)],
        Standing::Held => Vec::new(),
        Standing::Blocked | Standing::Deferred | Standing::Ready => waiting(bead, node, blockers, now),
    };
    if node.is_active() && !node.could_be_ready() {
        reasons.push(held(bead));
    }
    reasons
}

fn state(case: &Case<'_>, standing: Standing) -> String {
    match (&case.dispatch, standing) {
        (Dispatch::Running(run), Standing::Held | Standing::Ready) if run.is_starting => "starting".to_owned(),
        (Dispatch::Running(_), Standing::Held | Standing::Ready) => "running".to_owned(),
        (Dispatch::Scheduled { .. }, Standing::Ready) => "scheduled".to_owned(),
        (_, Standing::Held) => case.bead.status.as_str().to_owned(),
        (_, standing) => standing.as_str().to_owned(),
    }
}

fn running(run: &Running, standing: Standing) -> Reason {
    let who = format!("{}/{}", run.rig, run.polecat);
    let since = time::format(run.since);
    if let Some(stop) = &run.stop {
        return reason(
            "stopping",
            format!("{who} was told to stop ({}); its run {} is ending", text::one_line(stop), run.run),
        );
    }
    match standing {
        Standing::Done => reason("ending", format!("the run {} of {who} is ending", run.run)),
        _ if run.is_starting => reason("starting", format!("{who} is being started since {since} (run {})", run.run)),
        _ if let Some((need, at)) = run.waits => {
            let (needs, at) = (need.words(), time::format(at));
            reason("waiting-for-a-person", format!("{who} {needs}, since {at}: `gt polecat attach {}`", run.polecat))
        }
        _ => reason("running", format!("{who} works on it since {since} (run {})", run.run)),
    }
}

/// When something starts that nothing holds back.
pub fn next_start(has_batch: bool) -> &'static str {
    if has_batch {
        "starts with the next batch: when something happens here, or at the daemon's next heartbeat"
    } else {
        "starts with the next pass"
    }
}

fn reason(code: &'static str, message: String) -> Reason {
    Reason { code, message }
}

fn done(bead: &Bead) -> Reason {
    let said =
        |field: &str| bead.body.text(field).map(|text| format!(": {}", text::one_line(&text))).unwrap_or_default();
    let when = bead.closed_at.map(|at| format!(" at {}", time::format(at))).unwrap_or_default();
    match bead.status {
        Status::Pinned => reason("pinned", "it is pinned: kept for reference, not worked on".to_owned()),
        Status::Tombstone => reason("deleted", format!("it was deleted{}", said("delete_reason"))),
        _ => reason("closed", format!("it was closed{when}{}", said("close_reason"))),
    }
}

fn assigned(who: &str) -> Reason {
    let who = text::one_line(who);
    reason("assigned", format!("it is ready and assigned to {who}, who has not started it"))
}

fn held(bead: &Bead) -> Reason {
    let by = bead.assignee.as_deref().map(|who| format!(" by {}", text::one_line(who))).unwrap_or_default();
    match &bead.status {
        Status::Hooked => reason("hooked", format!("it is on a hook already{by}")),
        Status::InProgress => reason("in-progress", format!("it is being worked on{by}")),
        Status::Blocked => reason("status-blocked", "its status was set to blocked".to_owned()),
        Status::Deferred => reason("status-deferred", "its status was set to deferred".to_owned()),
        Status::Open if bead.is_pinned() => {
            reason("pinned", "it is pinned, and pinned beads are not worked on".to_owned())
        }
        Status::Open if bead.is_wisp() => reason("ephemeral", "it is a short-lived record, not work".to_owned()),
        Status::Open => reason("bookkeeping", format!("its type {} keeps the books and is not work", bead.type_word())),
        other => reason(
            "status",
            format!("its status is {}, and only open beads are worked on", text::one_line(other.as_str())),
        ),
    }
}

fn waiting(bead: &Bead, node: &Node, blockers: &[Blocker], now: Timestamp) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = blockers.iter().map(blocked).collect();
    if node.standing_at(now) != Standing::Ready
        && let Some(until) = bead.defer_until.filter(|at| *at > now)
    {
        reasons.push(reason("deferred", format!("it is deferred until {}", time::format(until))));
    }
    reasons
}

fn blocked(blocker: &Blocker) -> Reason {
    let who = format!("{} ({})", blocker.id, text::one_line(&blocker.title));
    let status = text::one_line(blocker.status.as_str());
    match &blocker.why {
        BlockedBy::Open => reason("blocked", format!("it waits for {who}, which is {status}")),
        BlockedBy::Unmerged => {
            reason("unmerged", format!("it waits for the merge of {who}, which is {status} but not merged"))
        }
        BlockedBy::Children { active } => {
            let noun = if *active == 1 { "child" } else { "children" };
            reason("waits-for-children", format!("it waits for {who}, which has {active} active {noun}"))
        }
        BlockedBy::BlockedParent => reason("blocked-parent", format!("its parent {who} is blocked")),
        BlockedBy::DeferredParent { until } => {
            reason("deferred-parent", format!("its parent {who} is deferred until {}", time::format(*until)))
        }
    }
}

/// What about its place keeps it from being dispatched, whatever its standing.
fn place(case: &Case<'_>) -> Option<Reason> {
    if !status::is_slingable(case.bead.issue_type.as_deref()) && case.node.standing() != Standing::Held {
        return Some(not_slingable(case.bead.type_word()));
    }
    match case.home {
        Home::Town => Some(reason("town-bead", "it is a town bead, which is never given to an agent".to_owned())),
        Home::Nowhere => Some(no_rig(case.bead)),
        Home::Rig(rig) => plan::rig_reason(&rig.name, Some(rig.state)),
    }
}

/// Why a bead of this type is not started, whatever else it is.
pub fn not_slingable(kind: &str) -> Reason {
    let kind = text::one_line(kind);
    reason("not-slingable", format!("its type {kind} is never given to an agent; its children may be"))
}

fn no_rig(bead: &Bead) -> Reason {
    match &bead.rig {
        Some(name) => reason("no-rig", format!("it is bound to rig {name}, which is not registered")),
        None => reason("no-rig", format!("no registered rig has a prefix that fits {}", bead.id)),
    }
}

#[cfg(test)]
mod tests;
