//! The gates of a rig: commands that must all succeed before something is merged.
//!
//! What they say is about a tree, so the same tree is not judged twice by one worker: not the half of a batch that is what the
//! whole failed with, and not the base that was the last merge. What has passed is remembered by the process, for the next
//! worker at the same target; what failed is not, so whoever mends what it failed for is heard.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gt_core::merge::Flaw;
use gt_runtime::merge::{Gate, MergeError};

use crate::surroundings::{Bench, Command, Git};

/// So many trees that passed are remembered.
const PASSED_MAX: usize = 256;
/// So many trees whose gates were killed are remembered for a target.
const KILLED_MAX: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed(Flaw),
}

/// What came of running gates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judged {
    Sure(Verdict),
    /// Somebody else ended one of them, for the first time with this tree.
    Killed {
        command: String,
        how: String,
    },
}

/// Where gates run, and what they leave.
pub(super) struct Place<'a> {
    pub(super) git: &'a dyn Git,
    pub(super) bench: &'a dyn Bench,
    pub(super) commit: &'a str,
    /// The directory of the target.
    pub(super) dir: &'a Path,
}

impl Place<'_> {
    fn log(&self) -> PathBuf {
        self.dir.join("gates.log")
    }
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
    ) -> Result<Judged, MergeError> {
        if self.commands != commands {
            *self = Gates { commands: commands.to_vec(), known: BTreeMap::new() };
        }
        let name = (place.dir.to_owned(), commands.to_vec(), tree.to_owned());
        if place.git.passed().contains(&name) {
            return Ok(Judged::Sure(Verdict::Passed));
        }
        if let Some(known) = self.known.get(tree) {
            return Ok(Judged::Sure(known.clone()));
        }
        let killed = Killed::at(place.dir);
        let verdict = match run(commands, env, place, timeout)? {
            None | Some((_, Gate::Passed)) => Verdict::Passed,
            Some((command, Gate::Killed { how, .. }))
                if !killed.has(tree) && !gt_core::defect!("killed-gate-blames") =>
            {
                if !place.git.is_ending() {
                    killed.add(tree);
                }
                return Ok(Judged::Killed { command, how });
            }
            Some((command, Gate::Killed { how, tail } | Gate::Failed { how, tail })) => {
                Verdict::Failed(Flaw::Gate { command, how, output: tail })
            }
        };
        if verdict == Verdict::Passed || gt_core::defect!("failed-gates-count-as-passed") {
            let mut passed = place.git.passed();
            passed.push_back(name);
            let n_over = passed.len().saturating_sub(PASSED_MAX);
            passed.drain(..n_over);
        }
        self.known.insert(tree.to_owned(), verdict.clone());
        Ok(Judged::Sure(verdict))
    }
}

/// Runs one after the other; returns the one that did not succeed. Each finds what is to be merged, whatever the one before
/// it did to that.
fn run(
    commands: &[String],
    env: &[(String, String)],
    place: &Place<'_>,
    timeout: Duration,
) -> Result<Option<(String, Gate)>, MergeError> {
    for (n_before, command) in commands.iter().enumerate() {
        if n_before > 0 && !gt_core::defect!("tracked-files-not-put-back") {
            place.bench.restore(place.commit)?;
        }
        let marker = marker(place.dir);
        let how = Command { dir: place.bench.path(), env, marker: &marker, timeout };
        let gate = place.git.gate(command, &place.log(), &how)?;
        if gate != Gate::Passed {
            return Ok(Some((command.clone(), gate)));
        }
    }
    Ok(None)
}

/// The file that says which process works for a target's worker.
pub(super) fn marker(dir: &Path) -> PathBuf {
    dir.join("gate")
}

/// The trees of a target whose gates somebody has killed: once may be anything, again is a sign. A file, so that it is
/// known to whoever comes next; that it cannot be written costs another try.
struct Killed {
    path: PathBuf,
}

impl Killed {
    fn at(dir: &Path) -> Killed {
        Killed { path: dir.join("killed") }
    }

    fn trees(&self) -> Vec<String> {
        fs::read_to_string(&self.path).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn has(&self, tree: &str) -> bool {
        self.trees().iter().any(|known| known == tree)
    }

    fn add(&self, tree: &str) {
        let trees = self.trees();
        let recent = trees.iter().skip((trees.len() + 1).saturating_sub(KILLED_MAX)).map(String::as_str);
        let lines: Vec<&str> = recent.chain([tree]).collect();
        fs::write(&self.path, lines.join("\n") + "\n").unwrap_or_default();
    }
}
