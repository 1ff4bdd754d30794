//! Why beads cannot be staged or launched: one sentence each, and the way on. // SPEC C2, C3

use thiserror::Error;

/// A staging or a launch that is declined; nothing was changed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadStaging {
    #[error(
        "{first} is {} and {second} is {}: only one kind goes into one call",
        article(first_kind),
        article(second_kind)
    )]
    Mixed { first: String, first_kind: &'static str, second: String, second_kind: &'static str },
    #[error("only one {kind} goes into one call, not {}", ids.join(" and "))]
    Several { kind: &'static str, ids: Vec<String> },
    #[error("there is nothing left in {what} that an agent could work on")]
    Nothing { what: String },
    #[error("convoy {id} is already launched")]
    Launched { id: String },
    #[error("epic {epic} is already launched, as convoy {convoy}")]
    EpicLaunched { epic: String, convoy: String },
    #[error("convoy {id} is closed")]
    Closed { id: String },
    #[error("{id} is {}, not a convoy", article(kind))]
    NotAConvoy { id: String, kind: String },
    #[error("{what} has {n_warnings} {}", if *n_warnings == 1 { "warning" } else { "warnings" })]
    Warnings { what: String, n_warnings: usize, words: String },
    #[error(
        "{} that the work belongs to {} no work: {}",
        if rigs.len() == 1 { "the rig" } else { "rigs" },
        if rigs.len() == 1 { "takes" } else { "take" },
        rigs.iter().map(|(name, state)| format!("{name} is {state}")).collect::<Vec<_>>().join(", ")
    )]
    RigsAside { rigs: Vec<(String, &'static str)>, words: String },
}

fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}

impl BadStaging {
    /// What to type instead. `words` are those that the command was called with.
    pub fn hint(&self) -> String {
        match self {
            BadStaging::Mixed { first, .. } => format!("stage them one after the other: `gt convoy stage {first}`"),
            BadStaging::Several { ids, .. } => {
                let first = ids.first().map_or("", String::as_str);
                format!("stage them one after the other: `gt convoy stage {first}`")
            }
            BadStaging::Nothing { .. } => "see what there is to do with `gt ready`".to_owned(),
            BadStaging::Launched { id } | BadStaging::EpicLaunched { convoy: id, .. } => {
                format!("see how far it has come with `gt convoy status {id}`")
            }
            BadStaging::Closed { id } => format!("see what was in it with `gt convoy status {id}`"),
            BadStaging::NotAConvoy { id, .. } => {
                format!("see it with `gt show {id}`, or stage it: `gt convoy stage {id}`")
            }
            BadStaging::Warnings { words, .. } => {
                format!(
                    "see them with `gt convoy stage {words}`, or launch all the same: `gt convoy launch {words} --force`"
                )
            }
            BadStaging::RigsAside { rigs, words } => {
                let (name, state) = rigs.first().map_or(("RIG", "parked"), |(name, state)| (name.as_str(), *state));
                let undo = if state == "docked" { "undock" } else { "unpark" };
                format!(
                    "bring it back with `gt rig {undo} {name}`, or launch the rest: `gt convoy launch {words} --force`"
                )
            }
        }
    }
}
