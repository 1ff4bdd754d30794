//! The gates of a rig: commands that must all succeed before something is merged.
//!
//! What they say is about a tree, so the same tree is not judged twice by one worker: not the half of a batch that is what the
//! whole failed with, and not the base that was the last merge.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gt_core::merge::Flaw;
use gt_runtime::merge::{self, Gate, MergeError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed(Flaw),
}

/// Where gates run, and what they leave.
pub(super) struct Place<'a> {
    pub(super) tree: &'a Path,
    pub(super) log: &'a Path,
    pub(super) marker: &'a Path,
}

/// What is known of trees.
#[derive(Debug, Default)]
pub(super) struct Gates {
    commands: Vec<String>,
    known: BTreeMap<String, Verdict>,
}

impl Gates {
    /// Runs the commands in their order, unless what they say of this tree is known.
    pub(super) fn judge(
        &mut self,
        commands: &[String],
        tree: &str,
        env: &[(String, String)],
        place: &Place<'_>,
        timeout: Duration,
    ) -> Result<Verdict, MergeError> {
        if self.commands != commands {
            *self = Gates { commands: commands.to_vec(), known: BTreeMap::new() };
        }
        if let Some(known) = self.known.get(tree) {
            return Ok(known.clone());
        }
        let verdict = run(commands, env, place, timeout)?;
        self.known.insert(tree.to_owned(), verdict.clone());
        Ok(verdict)
    }
}

fn run(
    commands: &[String],
    env: &[(String, String)],
    place: &Place<'_>,
    timeout: Duration,
) -> Result<Verdict, MergeError> {
    for command in commands {
        if let Gate::Failed { how, tail } = merge::gate(place.tree, command, env, place.log, place.marker, timeout)? {
            return Ok(Verdict::Failed(Flaw::Gate { command: command.clone(), how, output: tail }));
        }
    }
    Ok(Verdict::Passed)
}
