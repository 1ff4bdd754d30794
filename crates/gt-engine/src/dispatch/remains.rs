//! What is there of a run that is found, or found to be gone: its worktree, its branch, and what is not saved in them.

use std::path::Path;

use gt_core::run::RunState;
use gt_runtime::Handle;
use gt_store::{Ended, Findings, Run, Started, Store};

use super::Dispatcher;
use crate::agents;
use crate::error::TownError;
use crate::settings::{Isolation, Settings};
use crate::signs;
use crate::surroundings;
use crate::worktrees;

impl Dispatcher {
    /// A run that was started by a process which did not live to record it.
    pub(super) fn adopted(
        &self,
        run: &Run,
        handle: &Handle,
        store: &mut Store,
        settings: &Settings,
    ) -> Result<Started, TownError> {
        let (worktree, branch) = self.workplace(run, store, settings)?.unzip();
        let log = self.town.log_path(&run.id).display().to_string();
        Ok(Started {
            run: run.id.clone(),
            at: None,
            pid: handle.pid,
            birth: handle.birth,
            branch: branch.flatten(),
            worktree,
            log,
            formula: None,
            conversation: None, // its agent tells it
        })
    }

    /// A run that is gone, and nobody knows how.
    pub(super) fn ended_unseen(
        &mut self,
        run: &Run,
        store: &mut Store,
        settings: &Settings,
    ) -> Result<Ended, TownError> {
        if run.is_turn() {
            return Ok(self.ended_turn(run, settings));
        }
        // A start that waits to be recorded is recorded together with this end, and says where it was.
        let pending = self.pending.iter().find(|start| start.run == run.id);
        let (worktree, branch) = match (run.state, pending) {
            (RunState::Starting, None) => self.workplace(run, store, settings)?.unzip(),
            (RunState::Starting, Some(start)) => (start.worktree.clone(), Some(start.branch.clone())),
            _ => (run.worktree.clone(), Some(run.branch.clone())),
        };
        Ok(Ended {
            run: run.id.clone(),
            code: None,
            signal: None,
            leftover: 0,
            is_lost: false,
            worktree,
            branch: branch.flatten(),
            kept: None, // all are looked at together
            patch: None,
            told: self.last_words(run, settings),
            last_output: signs::last_output(&self.town, &run.id),
            reply: None,
            is_conversation_lost: false,
        })
    }

    /// A turn that is gone: what it answered, or complained of.
    fn ended_turn(&mut self, run: &Run, settings: &Settings) -> Ended {
        let told = self.last_words(run, settings);
        let (log, errors) = (self.town.log_path(&run.id), self.town.errors_path(&run.id));
        let words = told.as_ref().map(|telling| &telling.told);
        let reply = agents::reply(words, &log).ok();
        let is_conversation_lost = run.resumes.is_some() && agents::has_lost_conversation(words, &errors);
        // Many a program says only where it answers why it fails.
        let last_output = agents::last_error(&errors).or_else(|| words.is_none().then(|| agents::last_error(&log))?);
        Ended {
            run: run.id.clone(),
            code: None,
            signal: None,
            leftover: 0,
            is_lost: false,
            worktree: None,
            branch: None,
            kept: None,
            patch: None,
            told,
            last_output,
            reply,
            is_conversation_lost,
        }
    }

    /// What would be lost with the worktrees of those who ended, saved as a patch for whoever comes next. Git takes its time, and many may end at once.
    pub(super) fn look_for_unsaved(&self, findings: &mut Findings) {
        let (around, town) = (&*self.around, &self.town);
        let unsaved = |ended: &mut Ended| {
            let Some(tree) = ended.worktree.as_deref().map(Path::new) else { return };
            // Whoever comes next is told of this branch, and may begin there.
            if let Some(branch) = ended.branch.as_deref() {
                around.worktrees().bring_along(tree, branch);
            }
            ended.kept = around.worktrees().unsaved(tree);
            if ended.kept.is_some() {
                let patch = town.salvage_dir().join(format!("{}.patch", ended.run));
                let is_saved = around.worktrees().salvage(tree, &ended.run, &patch);
                ended.patch = is_saved.then(|| patch.display().to_string());
            }
        };
        surroundings::for_each(around, findings.ended.iter_mut().collect(), unsaved);
    }

    /// The worktree that was made for a run whose start is not recorded, and its branch; where that was not made or is gone,
    /// the one that is in it.
    pub(super) fn workplace(
        &self,
        run: &Run,
        store: &mut Store,
        settings: &Settings,
    ) -> Result<Option<(String, Option<String>)>, TownError> {
        if run.is_turn() || settings.isolation(&run.rig) == Isolation::None {
            return Ok(None);
        }
        let Some(assignment) = store.assignment(&run.id)? else { return Ok(None) };
        let (trees, own) = (self.around.worktrees(), worktrees::branch_name(&assignment));
        let Some((path, branch)) = worktrees::of_run(trees, &self.town, &assignment) else { return Ok(None) };
        let has_own = trees.has_git() && matches!(self.around.git().branch_tip(&path, &own), Ok(Some(_)));
        Ok(Some((path.display().to_string(), if has_own { Some(own) } else { branch })))
    }
}
