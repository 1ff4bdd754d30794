//! Why the town will not do something that was asked for: one sentence each, and the way on.

use thiserror::Error;

use crate::cycle;
use crate::rig::BadRig;
use crate::text::BadText;

/// A request that is understood and declined; nothing was changed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    #[error(transparent)]
    Text(#[from] BadText),
    #[error(transparent)]
    Rig(#[from] BadRig),
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
    #[error("rig `{name}` still has {n_active} active {}", if *n_active == 1 { "bead" } else { "beads" })]
    RigInUse { name: String, n_active: usize },
    #[error("rig `{name}` is docked")]
    RigDocked { name: String },
    #[error("no free id was found for prefix `{prefix}`")]
    NoFreeId { prefix: String },
}

impl Refusal {
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
                "close them first, or take it out with `gt rig remove {name} --force`: they stay, without a rig"
            ),
            Refusal::RigDocked { name } => format!("bring it back with `gt rig undock {name}`"),
            Refusal::Rig(bad) => bad.hint(),
            Refusal::Text(bad) => bad.hint(),
            Refusal::SelfEdge { .. } => "name another bead; `gt bead list` shows what there is".to_owned(),
            Refusal::NoFreeId { .. } => "try again: ids are drawn by chance".to_owned(),
        }
    }
}
