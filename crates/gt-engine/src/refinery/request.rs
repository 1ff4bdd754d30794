//! Targets that nobody may push to: a command asks for the merge, and is asked how it stands. // SPEC M2
//!
//! `rigs.NAME.pull_request` is called with `open` for a merge, and prints what the request is called; later with `status` and
//! that name, and prints `open`, `merged` or `closed`. What it is about stands in its environment.

use std::path::Path;
use std::process::{Command, Stdio};

use gt_core::merge::Flaw;
use gt_core::rig::Rig;
use gt_core::text::one_line;
use gt_runtime::merge::{self, Base, Workbench};
use gt_store::Merge;

use super::gates::Verdict;
use super::{REMOTE_TIMEOUT, Stop, Worker, is_requested};
use crate::error::TownError;

/// Why a target waits whose requests are open: one, or several.
pub(super) const OPEN: [&str; 2] = ["a pull request is open", "pull requests are open"];

/// A name of a request is no longer than this.
const NAME_CHARS: usize = 500;

impl Worker<'_> {
    /// Opens what is not open, and looks at what is. Says whether to look again at once.
    pub(super) fn request(
        &mut self,
        rig: &Rig,
        repository: &Path,
        base: &Base,
        waiting: Vec<Merge>,
    ) -> Result<bool, Stop> {
        let mut n_open = 0;
        for merge in waiting {
            let is_open = if is_requested(&merge) {
                self.look_at(rig, repository, &merge)?
            } else {
                self.open(rig, repository, base, &merge)?
            };
            n_open += usize::from(is_open);
        }
        if n_open == 0 {
            return Ok(true);
        }
        let stamp = self.stamp();
        let until = stamp.now + self.settings.merge_poll();
        let words = OPEN[usize::from(n_open > 1)];
        self.store.hold_target(self.target, words, until, &stamp).map_err(TownError::from)?;
        self.worked.held = Some(words.to_owned());
        Ok(false)
    }

    /// Only what can be merged and passes here is asked for. Says whether a request is open now.
    fn open(&mut self, rig: &Rig, repository: &Path, base: &Base, merge: &Merge) -> Result<bool, Stop> {
        let bench = Workbench::open(repository, &self.dir.join("tree"))?;
        let Some(stack) = self.stack(repository, &bench, base, vec![merge.clone()])? else { return Ok(false) };
        if let Verdict::Failed(flaw) = self.pass_gates(rig, repository, &bench, &stack.tip)? {
            self.give_back(repository, base, merge, &flaw)?;
            return Ok(false);
        }
        if base.has_remote {
            merge::push_branch(repository, &merge.tip, &merge.branch, REMOTE_TIMEOUT)?;
        }
        let said = self.ask(rig, repository, merge, &["open"])?;
        let request: String = said.lines().last().unwrap_or_default().trim().chars().take(NAME_CHARS).collect();
        if request.is_empty() {
            return Err(Stop::Hold("the command of `pull_request` did not say what the request is called".to_owned()));
        }
        let stamp = self.stamp();
        self.store.record_requested(&merge.id, &request, &stamp).map_err(TownError::from)?;
        Ok(true)
    }

    fn look_at(&mut self, rig: &Rig, repository: &Path, merge: &Merge) -> Result<bool, Stop> {
        let request = merge.request.clone().unwrap_or_default();
        let said = self.ask(rig, repository, merge, &["status", &request])?;
        match said.lines().last().unwrap_or_default().trim() {
            "merged" => {
                // That has happened since the last look.
                let base = self.base(repository)?;
                // It may have been squashed: then only the command knows.
                self.bring_here(repository, &base)?;
                self.record_merged(repository, std::slice::from_ref(merge), &base.commit)?;
                Ok(false)
            }
            "closed" => {
                let base = self.base(repository)?;
                self.give_back(repository, &base, merge, &Flaw::Refused { request })?;
                Ok(false)
            }
            "open" => Ok(true),
            other => Err(Stop::Hold(format!(
                "the command of `pull_request` must say open, merged or closed of a request; it said `{}`",
                one_line(other)
            ))),
        }
    }

    fn ask(&self, rig: &Rig, repository: &Path, merge: &Merge, arguments: &[&str]) -> Result<String, Stop> {
        let argv = self.settings.pull_request(&rig.name).unwrap_or_default();
        let Some((program, rest)) = argv.split_first() else {
            return Err(Stop::Hold("the command of `pull_request` is empty".to_owned()));
        };
        let output = Command::new(program)
            .args(rest)
            .args(arguments)
            .current_dir(repository)
            .stdin(Stdio::null())
            .env("GT_TOWN", self.town.root())
            .env("GT_RIG", &rig.name)
            .env("GT_BEAD", &merge.bead)
            .env("GT_TITLE", &merge.title)
            .env("GT_BRANCH", &merge.branch)
            .env("GT_TARGET", &merge.target)
            .env("GT_COMMIT", &merge.tip)
            .env("GT_MERGE", &merge.id)
            .output()
            .map_err(|error| Stop::Hold(format!("the command of `pull_request` cannot be run: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = one_line(said.trim().lines().last().unwrap_or("it gave no reason"));
        Err(Stop::Hold(format!("the command of `pull_request` failed: {said}")))
    }
}
