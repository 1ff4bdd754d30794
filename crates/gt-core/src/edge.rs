//! Dependencies between beads: `A depends on B` is an edge from A to B.
//!
//! Which edges hold a bead back is decided in `readiness`; this file says what an edge is.

use std::fmt;

use crate::fields::Fields;

/// What an edge means. Only the first five touch readiness. // SPEC B3
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeType {
    Blocks,
    ConditionalBlocks,
    WaitsFor,
    MergeBlocks,
    ParentChild,
    /// `tracks`, `related`, `discovered-from`, and any word we do not know: never blocks.
    Other(String),
}

/// Every type that readiness looks at, as stored.
pub const READINESS_TYPES: [EdgeType; 5] =
    [EdgeType::Blocks, EdgeType::ConditionalBlocks, EdgeType::WaitsFor, EdgeType::MergeBlocks, EdgeType::ParentChild];

/// Types without influence on readiness that beads documents.
pub const KNOWN_OTHERS: [&str; 15] = [
    "related",
    "discovered-from",
    "replies-to",
    "relates-to",
    "duplicates",
    "supersedes",
    "authored-by",
    "assigned-to",
    "approved-by",
    "attests",
    "tracks",
    "until",
    "caused-by",
    "validates",
    "delegated-from",
];

impl EdgeType {
    pub fn parse(word: &str) -> EdgeType {
        match word {
            "blocks" => EdgeType::Blocks,
            "conditional-blocks" => EdgeType::ConditionalBlocks,
            "waits-for" => EdgeType::WaitsFor,
            "merge-blocks" => EdgeType::MergeBlocks,
            "parent-child" => EdgeType::ParentChild,
            other => EdgeType::Other(other.to_owned()),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            EdgeType::Blocks => "blocks",
            EdgeType::ConditionalBlocks => "conditional-blocks",
            EdgeType::WaitsFor => "waits-for",
            EdgeType::MergeBlocks => "merge-blocks",
            EdgeType::ParentChild => "parent-child",
            EdgeType::Other(word) => word,
        }
    }

    /// Whether the edge can hold its source back by itself.
    pub fn is_blocking(&self) -> bool {
        !matches!(self, EdgeType::ParentChild | EdgeType::Other(_))
    }

    pub fn touches_readiness(&self) -> bool {
        !matches!(self, EdgeType::Other(_))
    }

    pub fn is_known(&self) -> bool {
        match self {
            EdgeType::Other(word) => KNOWN_OTHERS.contains(&word.as_str()),
            _ => true,
        }
    }
}

impl fmt::Display for EdgeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// When a `waits-for` edge opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gate {
    AllChildren,
    AnyChildren,
}

/// One outgoing dependency of a bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The id of the bead depended on; it may not exist (yet).
    pub target: String,
    pub kind: EdgeType,
    /// Everything else the edge carries: `created_at`, `created_by`, `metadata`, an unusual spelling of the target.
    pub extra: Fields,
}

impl Edge {
    pub fn new(target: impl Into<String>, kind: EdgeType) -> Edge {
        Edge { target: target.into(), kind, extra: Fields::default() }
    }

    pub fn gate(&self) -> Gate {
        gate_of(&self.extra)
    }
}

/// Reads the gate out of an edge's metadata, which beads writes as an object or as a string that holds one.
pub fn gate_of(extra: &Fields) -> Gate {
    let Some(raw) = extra.get("metadata") else { return Gate::AllChildren };
    let text = serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    match Fields::parse(&text).ok().and_then(|metadata| metadata.text("gate")).as_deref() {
        Some("any-children") => Gate::AnyChildren,
        _ => Gate::AllChildren,
    }
}

/// The id inside `external:project:id`; any other target is its own id.
pub fn unwrap_target(spelling: &str) -> &str {
    match spelling.strip_prefix("external:") {
        Some(rest) => rest.rsplit(':').next().filter(|id| !id.is_empty()).unwrap_or(spelling),
        None => spelling,
    }
}

#[cfg(test)]
mod tests;
