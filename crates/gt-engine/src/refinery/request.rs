//! Targets that nobody may push to: a command asks for the merge, and is asked how it stands. // SPEC M2
//!
//! `rigs.NAME.pull_request` is called with `open` for a merge, and prints what the request is called; later with `status` and
//! that name, and prints `open`, `merged` or `closed`. What it is about stands in its environment.

use std::fs;
use std::path::{Path, PathBuf};

use gt_core::merge::Flaw;
use gt_core::rig::Rig;
use gt_core::text::one_line;
use gt_runtime::merge::{Asked, Base, MergeError};
use gt_store::Merge;

use super::gates::{Verdict, marker};
use super::publishing::words_of_branch;
use super::{REMOTE_TIMEOUT, Stop, Tried, Worker, is_requested};
use crate::error::TownError;
use crate::surroundings::Command;

/// Why a target waits whose requests are open: one, or several.
pub(super) const OPEN: [&str; 2] = ["a pull request is open", "pull requests are open"];

/// A name of a request is no longer than this.
const NAME_CHARS: usize = 500;

/// Whether a request is open now.
enum Opened {
    Yes,
    /// It came back, or waits because the target itself is flawed.
    Not(Option<String>),
}

impl Worker<'_> {
    /// Opens what is not open, and looks at what is. Says whether to look again at once.
    pub(super) fn request(
        &mut self,
        rig: &Rig,
        repository: &Path,
        base: &Base,
        waiting: Vec<Merge>,
    ) -> Result<bool, Stop> {
        let (mut n_open, mut held) = (0, None);
        for merge in waiting {
            let is_open = if is_requested(&merge) {
                self.look_at(rig, repository, &merge)?
            } else {
                match self.open(rig, repository, base, &merge)? {
                    Opened::Not(reason) => {
                        // Others are looked at all the same: one of them may be what mends it.
                        held = reason.or(held);
                        false
                    }
                    Opened::Yes => true,
                }
            };
            n_open += usize::from(is_open);
        }
        if let Some(reason) = held {
            return Err(Stop::Hold(reason));
        }
        if n_open == 0 {
            return self.free();
        }
        let stamp = self.stamp();
        let until = stamp.now + self.settings.merge_poll();
        let words = OPEN[usize::from(n_open > 1)];
        self.store.hold_target(self.target, words, until, &stamp).map_err(TownError::from)?;
        self.worked.held = Some(words.to_owned());
        Ok(false)
    }

    /// Only what can be merged and passes here is asked for.
    fn open(&mut self, rig: &Rig, repository: &Path, base: &Base, merge: &Merge) -> Result<Opened, Stop> {
        let bench = self.bench(repository)?;
        let Some(stack) = self.stack(repository, &*bench, base, vec![merge.clone()])? else {
            return Ok(Opened::Not(None));
        };
        if let Verdict::Failed(flaw) = self.pass_gates(rig, repository, &*bench, &stack.tip)? {
            let held = self.flaw_of_base(rig, repository, &*bench, base, &flaw)?;
            if held.is_none() {
                self.give_back(repository, base, merge, &flaw)?;
            }
            return Ok(Opened::Not(held));
        }
        if base.has_remote && self.settings.push(rig) {
            if let Some(Tried::TakenBack { commits }) =
                self.taken_back(repository, base, &merge.tip, std::slice::from_ref(merge))?
            {
                let why = words_of_branch(&merge.id, &commits);
                return Ok(Opened::Not(Some(format!("{} waits: {why}", merge.bead))));
            }
            match self.git().push_branch(repository, &merge.tip, &base.commit, &merge.branch, REMOTE_TIMEOUT) {
                Err(error @ MergeError::Refused { .. }) => {
                    self.give_back(repository, base, merge, &Flaw::Unmergeable { said: error.to_string() })?;
                    return Ok(Opened::Not(None));
                }
                pushed => pushed?,
            }
        }
        self.remember_base(base, merge)?;
        let said = self.ask(rig, repository, merge, &["open"])?;
        let request: String = said.lines().last().unwrap_or_default().trim().chars().take(NAME_CHARS).collect();
        if request.is_empty() {
            return Err(Stop::Hold("the command of `pull_request` did not say what the request is called".to_owned()));
        }
        let stamp = self.stamp();
        if !self.store.record_requested(merge, &request, &stamp).map_err(TownError::from)? {
            return Err(Stop::Again);
        }
        Ok(Opened::Yes)
    }

    fn look_at(&mut self, rig: &Rig, repository: &Path, merge: &Merge) -> Result<bool, Stop> {
        let request = merge.request.clone().unwrap_or_default();
        let said = self.ask(rig, repository, merge, &["status", &request])?;
        match said.lines().last().unwrap_or_default().trim() {
            "merged" => {
                // That has happened since the last look.
                let base = self.base(rig)?;
                self.check_moved(repository, &base, merge, &request)?;
                // It may have been squashed: then only the command knows.
                self.bring_here(repository, &base)?;
                self.record_merged(repository, std::slice::from_ref(merge), &base.commit)?;
                Ok(false)
            }
            "closed" => {
                let base = self.base(rig)?;
                self.give_back(repository, &base, merge, &Flaw::Refused { request })?;
                fs::remove_file(self.opened_on(merge)).unwrap_or_default();
                Ok(false)
            }
            "open" => Ok(true),
            other => Err(Stop::Hold(format!(
                "the command of `pull_request` must say open, merged or closed of a request; it said `{}`",
                one_line(other)
            ))),
        }
    }

    /// Where it is remembered what the target was when its request was opened.
    fn opened_on(&self, merge: &Merge) -> PathBuf {
        self.dir.join(format!("{}.base", merge.id))
    }

    /// Before it is opened: whoever died after that is called again, and by then it may be merged.
    fn remember_base(&self, base: &Base, merge: &Merge) -> Result<(), TownError> {
        let path = self.opened_on(merge);
        if path.exists() {
            return Ok(());
        }
        fs::write(&path, &base.commit).map_err(|source| TownError::io("write", &path, source))
    }

    /// What is merged has moved the target, however it was merged; a program that says otherwise is mistaken.
    fn check_moved(&self, repository: &Path, base: &Base, merge: &Merge, request: &str) -> Result<(), Stop> {
        let opened_on = self.opened_on(merge);
        let has_moved = fs::read_to_string(&opened_on).map_or(true, |known| known.trim() != base.commit);
        if has_moved || self.git().is_part_of(repository, &merge.tip, &base.commit)? {
            fs::remove_file(&opened_on).unwrap_or_default();
            return Ok(());
        }
        let target = &self.target.branch;
        Err(Stop::Hold(format!("{request} is said to be merged, but {target} has not moved since it was opened")))
    }

    fn ask(&self, rig: &Rig, repository: &Path, merge: &Merge, arguments: &[&str]) -> Result<String, Stop> {
        let mut argv = self.settings.pull_request(&rig.name).unwrap_or_default();
        if argv.is_empty() {
            return Err(Stop::Hold("the command of `pull_request` is empty".to_owned()));
        }
        argv.extend(arguments.iter().map(ToString::to_string));
        let town = self.town.root().display().to_string();
        let env = [
            ("GT_TOWN", &town),
            ("GT_RIG", &rig.name),
            ("GT_BEAD", &merge.bead),
            ("GT_TITLE", &merge.title),
            ("GT_BRANCH", &merge.branch),
            ("GT_TARGET", &merge.target),
            ("GT_COMMIT", &merge.tip),
            ("GT_MERGE", &merge.id),
        ]
        .map(|(name, value)| (name.to_owned(), value.clone()));
        let marker = marker(&self.dir);
        let how = Command { dir: repository, env: &env, marker: &marker, timeout: REMOTE_TIMEOUT };
        match self.git().ask(&argv, &how)? {
            _ if self.git().is_ending() => Err(Stop::Again),
            Asked::Said(said) => Ok(said),
            Asked::Failed(why) => Err(Stop::Hold(format!("the command of `pull_request` failed: {}", one_line(&why)))),
        }
    }
}
