//! Merges: the way of finished work to its target branch, in the words in which it is stored and shown. // SPEC M1, M2
//!
//! What git does is the runtime's, when it is done the engine's.

/// What becomes of work that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Merged at once by whoever says that it is done, without gates.
    Direct,
    /// Merged by the refinery.
    #[default]
    Queue,
    /// It stays on its branch.
    Local,
}

impl Strategy {
    pub const ALL: [Strategy; 3] = [Strategy::Direct, Strategy::Queue, Strategy::Local];

    pub fn as_str(self) -> &'static str {
        match self {
            Strategy::Direct => "direct",
            Strategy::Queue => "mr",
            Strategy::Local => "local",
        }
    }

    pub fn parse(word: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|strategy| strategy.as_str() == word)
    }
}

/// Where a merge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeState {
    Waiting,
    /// A pull request is open.
    Requested,
    /// Its commit is part of the target.
    Merged,
    /// It could not be merged as it was.
    Returned,
    /// Somebody decided against it.
    Dropped,
}

impl MergeState {
    pub const ALL: [MergeState; 5] =
        [MergeState::Waiting, MergeState::Requested, MergeState::Merged, MergeState::Returned, MergeState::Dropped];

    pub fn as_str(self) -> &'static str {
        match self {
            MergeState::Waiting => "waiting",
            MergeState::Requested => "requested",
            MergeState::Merged => "merged",
            MergeState::Returned => "returned",
            MergeState::Dropped => "dropped",
        }
    }

    pub fn parse(word: &str) -> Option<MergeState> {
        MergeState::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether it is still to be merged.
    pub fn is_live(self) -> bool {
        matches!(self, MergeState::Waiting | MergeState::Requested)
    }
}

/// Why work cannot be merged as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// The target has changed the same places.
    Conflict { files: Vec<String> },
    /// With it the target does not pass.
    Gate { command: String, how: String, output: String },
    /// Its pull request was closed.
    Refused { request: String },
    /// Git cannot merge it though nothing is in conflict, or the origin does not take it.
    Unmergeable { said: String },
}

/// Of the files that are in conflict so many are named in a line.
const FILES_NAMED: usize = 3;

impl Flaw {
    /// In one line: `it conflicts with main in a.txt and b.txt`.
    pub fn words(&self, target: &str) -> String {
        match self {
            Flaw::Conflict { files } => format!("it conflicts with {target}{}", in_files(files)),
            Flaw::Gate { command, how, .. } => {
                format!("with it {target} does not pass the gate `{}` ({how})", crate::text::one_line(command))
            }
            Flaw::Refused { request } => format!("its pull request {request} was closed without merging it"),
            Flaw::Unmergeable { said } => {
                format!("it cannot be merged into {target}: {}", said.lines().next().unwrap_or("nobody said why"))
            }
        }
    }

    /// What else there is to say of it.
    pub fn details(&self) -> Option<String> {
        match self {
            Flaw::Conflict { files } if files.len() > FILES_NAMED => Some(files.join("\n")),
            Flaw::Gate { output, .. } if !output.trim().is_empty() => Some(output.trim_end().to_owned()),
            Flaw::Unmergeable { said } if said.lines().nth(1).is_some() => Some(said.trim_end().to_owned()),
            _ => None,
        }
    }
}

fn in_files(files: &[String]) -> String {
    let (named, n_more) = (&files[..files.len().min(FILES_NAMED)], files.len().saturating_sub(FILES_NAMED));
    match (named, n_more) {
        ([], _) => String::new(),
        (named, 0) => format!(" in {}", named.join(", ")),
        (named, n) => format!(" in {} and {n} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests;
