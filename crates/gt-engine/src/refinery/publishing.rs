//! What may be pushed: agents' work, and nothing else that the origin does not have yet, by the settings of now. // SPEC M2a

use std::path::Path;

use gt_core::rig::Rig;
use gt_core::text::one_line;
use gt_runtime::merge::{Base, Makers, Titled};
use gt_store::Merge;
use jiff::Timestamp;

use super::{Stop, Tried, Worker};
use crate::error::TownError;
use crate::settings::Settings;
use crate::tidy::POLECATS;

/// Of the commits that hold a push so many are named.
const COMMITS_NAMED: usize = 3;

impl Worker<'_> {
    /// Whether a person has changed what decides about a merge since the round began: gates may run for an hour, and a push
    /// cannot be taken back. // SPEC T5
    pub(super) fn is_set_as_before(&mut self, rig: &Rig) -> Result<bool, TownError> {
        let now = Settings::load(self.town, &mut self.store, &*self.around)?;
        let of =
            |settings: &Settings| (settings.gates(&rig.name), settings.push(rig), settings.pull_request(&rig.name));
        Ok(of(&now) == of(&self.settings) || gt_core::defect!("merge-settings-read-once"))
    }

    /// Whether the origin is asked where the target stands. It is left alone where nothing is ever pushed to it.
    pub(super) fn asks_origin(&self, rig: &Rig) -> bool {
        self.settings.push(rig) || self.settings.pull_request(&rig.name).is_some()
    }

    /// Holds a target that has commits of a person's that a push would publish.
    pub(super) fn hold_persons_commits(&mut self, rig: &Rig, repository: &Path, base: &Base) -> Result<(), Stop> {
        if !base.has_remote || !self.settings.push(rig) {
            return Ok(());
        }
        let commits = self.persons_commits(repository, base, &base.commit, &[])?;
        if commits.is_empty() { Ok(()) } else { Err(Stop::Hold(self.words_of_base(rig, &commits))) }
    }

    /// The same for what comes with merges: a branch began on commits that the target had then and has no more, or has merged a branch
    /// of a person's.
    pub(super) fn taken_back(
        &mut self,
        repository: &Path,
        base: &Base,
        tip: &str,
        merges: &[Merge],
    ) -> Result<Option<Tried>, Stop> {
        if !base.has_remote || gt_core::defect!("taken-back-published") {
            return Ok(None);
        }
        let commits = self.persons_commits(repository, base, tip, merges)?;
        Ok((!commits.is_empty()).then_some(Tried::TakenBack { commits }))
    }

    /// The commits of a person's that a push of `commit`, which builds on the base, would publish.
    fn persons_commits(
        &mut self,
        repository: &Path,
        base: &Base,
        commit: &str,
        merges: &[Merge],
    ) -> Result<Vec<Titled>, Stop> {
        let mut commits = self.git().unpublished(repository, commit)?;
        if !commits.is_empty() {
            let brought = self.brought(repository, base, commit, merges)?;
            commits.retain(|one| !brought.contains(&one.id));
        }
        let ids: Vec<String> = commits.iter().map(|one| one.id.clone()).collect();
        let known = self.store.agent_commits(&ids).map_err(TownError::from)?;
        commits.retain(|one| !known.contains(&one.id));
        if gt_core::defect!("persons-commits-published") {
            // Both the target and what comes on top of it are asked about.
            let is_there = |one: &Titled| self.git().is_part_of(repository, &one.id, &base.commit).unwrap_or_default();
            commits.retain(|one| !is_there(one));
        }
        Ok(commits)
    }

    /// The agents' commits that these merges bring to the base.
    pub(super) fn brought(
        &mut self,
        repository: &Path,
        base: &Base,
        commit: &str,
        merges: &[Merge],
    ) -> Result<Vec<String>, Stop> {
        let mut since = Timestamp::MIN;
        for merge in merges {
            let run = self.store.run(&merge.run).map_err(TownError::from)?;
            since = since.max(run.map_or(merge.queued_at, |run| run.claimed_at));
        }
        let branches: Vec<&str> = merges.iter().map(|merge| merge.branch.as_str()).collect();
        let makers = Makers { branches: &branches, folder: POLECATS, since };
        Ok(self.git().brought(repository, &self.target.branch, &base.commit, commit, makers)?)
    }

    fn words_of_base(&self, rig: &Rig, commits: &[Titled]) -> String {
        let (is, was, they) = if commits.len() == 1 { ("is", "was", "it") } else { ("are", "were", "them") };
        format!(
            "{} on {target} {is} not on the origin and {was} not merged by Gasworks: {}; push {they} with `git -C {} push origin \
             {target}`, or keep merged work here with `gt config set rigs.{}.push false`",
            counted(commits),
            listed(commits),
            rig.path,
            rig.name,
            target = self.target.branch,
        )
    }
}

/// Why a merge waits whose branch has commits of a person's.
pub(super) fn words_of_branch(merge: &str, commits: &[Titled]) -> String {
    let (is, they) = if commits.len() == 1 { ("is", "it") } else { ("are", "they") };
    format!(
        "its branch has {} that {is} not an agent's, and {they} would be published with it: {}; push to the origin what may be \
         published, or drop the merge with `gt refinery drop {merge}`",
        counted(commits),
        listed(commits),
    )
}

fn counted(commits: &[Titled]) -> String {
    if commits.len() == 1 { "1 commit".to_owned() } else { format!("{} commits", commits.len()) }
}

/// `1a2b3c4d5e fix the printer, …`
fn listed(commits: &[Titled]) -> String {
    let name = |commit: &Titled| format!("{} {}", commit.id.get(..10).unwrap_or(&commit.id), one_line(&commit.title));
    let named: Vec<String> = commits.iter().take(COMMITS_NAMED).map(name).collect();
    match commits.len().saturating_sub(COMMITS_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
