//! Why the town will not do something that was asked for: one sentence each, and the way on.

use thiserror::Error;

use crate::convoy::refusal::BadStaging;
use crate::cycle;
use crate::job::BadJob;
use crate::rig::BadRig;
use crate::text::BadText;

/// A request that is understood and declined; nothing was changed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    #[error(transparent)]
    Text(#[from] BadText),
    #[error(transparent)]
    Rig(#[from] BadRig),
    #[error(transparent)]
    Staging(#[from] BadStaging),
    #[error(transparent)]
    Job(#[from] BadJob),
    #[error("{id} cannot depend on itself")]
    SelfEdge { id: String },
    #[error("this would close a cycle: {}", cycle::show(ring))]
    Cycle { ring: Vec<String> },
    #[error("{source_id} does not depend on {target}")]
    NoSuchEdge { source_id: String, target: String },
    #[error("{id} is already claimed by {holder}")]
    Claimed { id: String, holder: String },
    #[error("{id} is not ready: it is {standing}")]
    NotReady { id: String, standing: String },
    #[error("{id} is deleted")]
    Deleted { id: String },
    #[error("there is already a rig `{name}`")]
    RigExists { name: String },
    #[error(
        "rig `{name}` still has {n_active} active {}{}",
        if *n_active == 1 { "bead" } else { "beads" },
        waiting_merges(*n_merges)
    )]
    RigInUse { name: String, n_active: usize, n_merges: usize },
    #[error("rig `{name}` is docked")]
    RigDocked { name: String },
    #[error("no free id was found for prefix `{prefix}`")]
    NoFreeId { prefix: String },
    #[error("{id} is closed: its work is done")]
    Closed { id: String },
    #[error("{id} is of type {kind}, which is never given to an agent")]
    NotSlingable { id: String, kind: String },
    #[error("{id} is a town bead, which is never given to an agent")]
    TownBead { id: String },
    #[error("no registered rig has a prefix that fits {id}")]
    NoRigFor { id: String },
    #[error("{id} belongs to {home}, not to rig `{target}`")]
    OtherRig { id: String, home: String, target: String },
    #[error("{id} is no convoy")]
    NotAConvoy { id: String },
    #[error("a convoy that is {from} cannot become {to}")]
    ConvoyStatus { id: String, from: String, to: String },
    #[error("convoy {id} has {n} open {}", if *n == 1 { "bead" } else { "beads" })]
    ConvoyOpen { id: String, n: i64 },
    #[error("convoy {id} lands by itself once its beads are closed")]
    NotOwned { id: String },
    #[error("{convoy} does not track {bead}")]
    NotTracked { convoy: String, bead: String },
    #[error("{id} is already on the hook of {holder}")]
    Hooked { id: String, holder: String },
    #[error("{id} is assigned to {who}")]
    Assigned { id: String, who: String },
    #[error("rig `{name}` is {state}, and takes no work")]
    RigAside { name: String, state: &'static str },
    #[error("{id} cannot be worked on by the formula `{name}`: {why}")]
    Formula { id: String, name: String, why: String },
    #[error("run {run} {why}: nothing that it says counts any more")]
    StaleRun { run: String, why: String },
    #[error("{id} is over: it is {state}")]
    MergeOver { id: String, state: &'static str },
    #[error("{id} is being merged into {target} right now")]
    MergeLands { id: String, target: String },
    #[error("the work on {bead} waits to be merged already, as {id}")]
    MergeWaits { id: String, bead: String },
    #[error("{id} is not scheduled")]
    NotScheduled { id: String },
    #[error("{id} is a sling context, not work")]
    IsContext { id: String, bead: String },
    #[error("`{key}` cannot name a session: {why}")]
    SessionKey { key: String, why: &'static str },
    #[error("the message is empty")]
    EmptyMessage,
    #[error("the message is longer than {most} bytes, and a session takes no more at once")]
    LongMessage { most: usize },
    #[error("{most} runs wait for each other's answers already, one below the other")]
    TooDeep { most: usize },
    #[error("`{key}` could not answer: what it does waits for this very run")]
    WaitsForItself { key: String },
    #[error("the {what} of polecat {rig}/{name} is in use")]
    PolecatBusy { rig: String, name: String, what: &'static str },
}

/// By its run, since a name alone is not enough just after the worker changed its bead.
fn stop_first(rig: &str, name: &str) -> String {
    let who = format!("{rig}/{name}");
    format!("stop its run first: `gt polecat stop {who} --run RUN`, with the run of `gt polecat show {who}`")
}

impl Refusal {
    /// Whether the same may be done later, though nobody changes anything.
    pub fn is_for_now(&self) -> bool {
        matches!(self, Refusal::Job(BadJob::Runs { .. } | BadJob::AgentBusy { .. }))
    }

    /// What to type instead.
    pub fn hint(&self) -> String {
        match self {
            Refusal::Cycle { ring } => {
                let on = ring.get(1).map_or("", String::as_str);
                format!("see what {on} waits for with `gt bead dep tree {on}`")
            }
            Refusal::NoSuchEdge { source_id, .. } => format!("see its dependencies with `gt show {source_id}`"),
            Refusal::Claimed { id, .. } | Refusal::NotReady { id, .. } => {
                format!("see why with `gt explain {id}`")
            }
            Refusal::Deleted { id } => format!("bring it back with `gt bead reopen {id}`"),
            Refusal::RigExists { name } => format!("see it with `gt rig show {name}`, or choose another name"),
            Refusal::RigInUse { name, .. } => format!(
                "close them first, or take it out with `gt rig remove {name} --force`: they stay, without a rig, and nothing more \
                 is merged"
            ),
            Refusal::RigDocked { name } => format!("bring it back with `gt rig undock {name}`"),
            Refusal::Rig(bad) => bad.hint(),
            Refusal::Staging(bad) => bad.hint(),
            Refusal::Job(bad) => bad.hint(),
            Refusal::Text(bad) => bad.hint(),
            Refusal::SelfEdge { .. } => "name another bead; `gt bead list` shows what there is".to_owned(),
            Refusal::Closed { id } => format!("open it again with `gt bead reopen {id}`"),
            Refusal::NotSlingable { id, .. } => {
                format!("sling its children, or change it with `gt bead update {id} --type task`")
            }
            Refusal::TownBead { id } => format!("bind it to a rig with `gt bead update {id} --rig RIG`"),
            Refusal::NoRigFor { id } => {
                format!("name the rig: `gt sling {id} RIG --force`, or register one: `gt rig add`")
            }
            Refusal::OtherRig { id, target, .. } => {
                format!("leave the rig out, or insist with `gt sling {id} {target} --force`")
            }
            Refusal::NotAConvoy { .. } => "`gt convoy list` shows them".to_owned(),
            Refusal::ConvoyStatus { id, .. } => {
                format!("it can be `open`, `closed` or, before it is launched, staged: `gt convoy status {id}`")
            }
            Refusal::ConvoyOpen { id, .. } => {
                format!(
                    "see them with `gt convoy status {id}`; `--force` closes it all the same, `gt convoy cancel {id}` withdraws what has not started"
                )
            }
            Refusal::NotOwned { id } => format!("`gt convoy check {id}` looks whether it is complete"),
            Refusal::NotTracked { convoy, .. } => format!("`gt convoy status {convoy}` shows what it tracks"),
            Refusal::Hooked { id, .. } => {
                format!("see how it goes with `gt explain {id}`, or take it away with `gt sling {id} --force`")
            }
            Refusal::Assigned { id, .. } => format!("take it all the same: `gt sling {id}`"),
            Refusal::RigAside { name, state } => {
                let verb = if *state == "docked" { "undock" } else { "unpark" };
                format!("bring it back with `gt rig {verb} {name}`")
            }
            Refusal::Formula { name, .. } => {
                format!("see it with `gt formula cook {name}`, or go without: `--hook-raw-bead`")
            }
            Refusal::StaleRun { .. } => "stop here; another run has the work, or it is done".to_owned(),
            Refusal::MergeOver { .. } => "see what is in the queue with `gt refinery list`".to_owned(),
            Refusal::MergeLands { .. } => "look in a moment what came of it: `gt refinery list --all`".to_owned(),
            Refusal::MergeWaits { id, .. } => format!("see how it stands with `gt refinery show {id}`"),
            Refusal::NotScheduled { id } => format!("schedule it with `gt sling {id}`"),
            Refusal::IsContext { bead, .. } => {
                format!("change the work itself ({bead}), or take it off the queue: `gt scheduler clear --bead {bead}`")
            }
            Refusal::PolecatBusy { rig, name, .. } => stop_first(rig, name),
            Refusal::SessionKey { .. } => "name it like `dm:anna` or `group:ops`".to_owned(),
            Refusal::EmptyMessage => "say something: `gt send dm:anna 'How far are you?'`".to_owned(),
            Refusal::LongMessage { .. } => "put it into a file, and send the file's name".to_owned(),
            Refusal::TooDeep { .. } => "answer yourself, or send without `--wait`".to_owned(),
            Refusal::WaitsForItself { key } => format!("send without waiting: `gt send {key} TEXT`"),
            Refusal::NoFreeId { .. } => "try again: ids are drawn by chance".to_owned(),
        }
    }
}

fn waiting_merges(n: usize) -> String {
    match n {
        0 => String::new(),
        1 => ", and 1 merge waits".to_owned(),
        n => format!(", and {n} merges wait"),
    }
}
