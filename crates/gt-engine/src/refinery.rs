//! The refinery: merges what waits into its target, one target at a time by one worker. // SPEC M2
//!
//! Git is asked what is merged, so whatever a worker that died has left is picked up by the next one. (decision 0009)
//! What git does is `gt_runtime::merge`'s, what is remembered the store's; the order of things is here. Pull requests are
//! `refinery/request.rs`'s, gates `refinery/gates.rs`'s, what may be pushed `refinery/publishing.rs`'s, what is left behind
//! `refinery/clearing.rs`'s.

mod again;
mod checkout;
mod clearing;
mod desk;
mod gates;
mod holds;
mod publishing;
mod request;
mod reworks;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gt_core::merge::{Flaw, MergeState, Strategy};
use gt_core::rig::Rig;
use gt_core::text::one_line;
use gt_runtime::merge::{Base, MergeError, Stacked, Titled};
use gt_store::{Merge, ReturnedAs, Stamp, Store, Target};

pub use self::again::{NotRetried, retry};
use self::checkout::Blocked;
pub use self::desk::AtWork;
use self::desk::Desk;
use self::gates::{Gates, Judged, Verdict, marker};
pub use self::holds::needs_a_person;
pub(crate) use self::holds::{due_targets, hold};
pub(crate) use self::reworks::has_work;
use crate::crash::{self, CrashPoint};
use crate::error::TownError;
use crate::settings::Settings;
use crate::surroundings::{self, Bench, Git, Surroundings};
use crate::town::Town;

/// How long a remote may take to answer.
const REMOTE_TIMEOUT: Duration = Duration::from_mins(2);
/// How long somebody who wants one merge only waits for whoever is at its target, and how often they look.
const TURN_WAIT: Duration = Duration::from_secs(30);
const TURN_LOOK: Duration = Duration::from_millis(50);

/// Where merges keep their commits.
const KEPT: &str = "refs/gt/merges/";

pub fn ref_of(merge: &str) -> String {
    format!("{KEPT}{merge}")
}

/// What a worker did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worked {
    /// Beads whose work is merged.
    pub merged: Vec<String>,
    /// Beads whose work came back, with the reason.
    pub returned: Vec<(String, String)>,
    /// Why it did not go on.
    pub held: Option<String>,
    /// Locks that a git that was killed had left, and that were cleared away.
    pub unlocked: Vec<PathBuf>,
    /// What was done about a landing that was left half-way, in words.
    pub resumed: Vec<String>,
    /// Whether somebody else is at it.
    pub is_busy: bool,
}

/// Merges whatever waits for the target and can be merged now.
pub fn work(around: &Arc<dyn Surroundings>, town: &Town, actor: &str, target: &Target) -> Result<Worked, TownError> {
    let mut worker = Worker::new(around, town, actor, target)?;
    while worker.is_due()? {
        let Some(desk) = Desk::take(&worker.dir)? else {
            worker.worked.is_busy = true;
            break;
        };
        worker.work_at(&desk)?;
        // Who came when the lock was about to be given back has gone away again, so there is one more look after it.
    }
    Ok(worker.worked)
}

/// Merges this one now, and nothing else: whoever asks has no time for the gates of others. Waits a while for its turn.
pub fn work_one(around: &Arc<dyn Surroundings>, town: &Town, actor: &str, merge: &Merge) -> Result<Worked, TownError> {
    let target = Target { rig: merge.rig.clone(), branch: merge.target.clone() };
    let mut worker = Worker::new(around, town, actor, &target)?;
    worker.only = Some(merge.id.clone());
    let deadline = around.uptime() + TURN_WAIT;
    while worker.is_due()? {
        if let Some(desk) = Desk::take(&worker.dir)? {
            worker.work_at(&desk)?;
            break;
        }
        if around.uptime() >= deadline {
            worker.worked.is_busy = true;
            break;
        }
        surroundings::pause(&**around, TURN_LOOK);
    }
    worker.note_what_others_did(&merge.id)?;
    Ok(worker.worked)
}

/// Merges whatever can be merged now, target by target.
pub fn work_all(around: &Arc<dyn Surroundings>, town: &Town, actor: &str) -> Result<Vec<(Target, Worked)>, TownError> {
    let mut done: Vec<(Target, Worked)> = Vec::new();
    loop {
        let due = due_targets(&mut around.open_store(town)?, around.now())?;
        let Some(target) = due.into_iter().find(|target| done.iter().all(|(known, _)| known != target)) else {
            return Ok(done);
        };
        let worked = work(around, town, actor, &target)?;
        done.push((target, worked));
    }
}

/// Who works on a target right now, and at what.
pub fn at_work(town: &Town, target: &Target) -> Option<AtWork> {
    desk::look(&place(town, target))
}

/// Where a target is worked on. A branch's name may have any shape, a directory's not.
fn place(town: &Town, target: &Target) -> PathBuf {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) { c.to_string() } else { format!("%{:x}", c as u32) }
    };
    let branch: String = target.branch.chars().map(safe).collect();
    town.refinery_dir().join(&target.rig).join(branch.trim_start_matches('.'))
}

struct Worker<'a> {
    around: Arc<dyn Surroundings>,
    town: &'a Town,
    actor: &'a str,
    target: &'a Target,
    dir: PathBuf,
    store: Store,
    settings: Settings,
    gates: Gates,
    /// The one merge that it is about, if not all.
    only: Option<String>,
    /// Merges that wait for a person; they are not tried again by this worker.
    blocked: Vec<Blocked>,
    worked: Worked,
}

/// What waits on top of the base.
struct Stack {
    merges: Vec<Merge>,
    tip: String,
}

impl<'a> Worker<'a> {
    fn new(
        around: &Arc<dyn Surroundings>,
        town: &'a Town,
        actor: &'a str,
        target: &'a Target,
    ) -> Result<Worker<'a>, TownError> {
        let dir = place(town, target);
        fs::create_dir_all(&dir).map_err(|source| TownError::io("make", &dir, source))?;
        let mut store = around.open_store(town)?;
        Ok(Worker {
            around: Arc::clone(around),
            town,
            actor,
            target,
            dir,
            settings: Settings::load(town, &mut store, &**around)?,
            store,
            gates: Gates::default(),
            only: None,
            blocked: Vec::new(),
            worked: Worked::default(),
        })
    }

    /// Batch after batch, as long as there is something to do.
    fn work_at(&mut self, desk: &Desk) -> Result<(), TownError> {
        self.git().end_leftover(&marker(&self.dir))?;
        while self.round(desk)? {
            self.settings = Settings::load(self.town, &mut self.store, &*self.around)?;
        }
        Ok(())
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(self.around.now(), self.actor)
    }

    fn git(&self) -> &dyn Git {
        self.around.git()
    }

    fn bench(&self, repository: &Path) -> Result<Box<dyn Bench>, MergeError> {
        self.git().bench(repository, &self.dir.join("tree"))
    }

    /// Whether something waits that can be merged now.
    fn is_due(&mut self) -> Result<bool, TownError> {
        Ok(!self.git().is_ending() && due_targets(&mut self.store, self.around.now())?.contains(self.target))
    }

    /// Whoever was at the target before may have worked on it too.
    fn note_what_others_did(&mut self, id: &str) -> Result<(), TownError> {
        let merge = self.store.merge(id)?;
        let Worked { merged, returned, is_busy, .. } = &mut self.worked;
        match merge.state {
            MergeState::Merged if !merged.contains(&merge.bead) => merged.push(merge.bead),
            MergeState::Returned if returned.iter().all(|(bead, _)| *bead != merge.bead) => {
                returned.push((merge.bead, merge.reason.unwrap_or_default()));
            }
            _ => return Ok(()),
        }
        *is_busy = false;
        Ok(())
    }

    /// One batch. Says whether another round may find more to do.
    fn round(&mut self, desk: &Desk) -> Result<bool, TownError> {
        match self.try_round(desk) {
            Ok(may_find_more) => Ok(may_find_more),
            Err(Stop::Again) => Ok(true),
            Err(Stop::Hold(reason)) => self.hold(&reason),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn try_round(&mut self, desk: &Desk) -> Result<bool, Stop> {
        if !self.is_due()? {
            return Ok(false);
        }
        let rigs = self.store.rigs().map_err(TownError::from)?;
        let Some(rig) = rigs.into_iter().find(|rig| rig.name == self.target.rig) else {
            return Err(Stop::Hold(format!("there is no rig `{}` any more", self.target.rig)));
        };
        let repository = PathBuf::from(&rig.path);
        self.clear_dead_locks(&repository)?;
        self.resume_landing(&repository)?;
        let (base, stamp) = (self.base(&rig)?, self.stamp());
        self.store.end_landing(self.target, &stamp).map_err(TownError::from)?;
        self.clear_leftovers(&repository, &base)?;
        let mut waiting = self.record_what_is_merged(&repository, &base)?;
        if waiting.is_empty() {
            return self.free();
        }
        if let Some(only) = &self.only {
            waiting.retain(|merge| merge.id == *only);
            if waiting.is_empty() {
                return Ok(false);
            }
        }
        self.hold_persons_commits(&rig, &repository, &base)?;
        if self.settings.pull_request(&rig.name).is_some() {
            desk.lay_out(&waiting);
            return self.request(&rig, &repository, &base, waiting);
        }
        self.bench(&repository)?.leave_branch()?;
        let batch = self.batch(self.without_blocked(waiting)?);
        desk.lay_out(&batch);
        self.settle(&rig, &repository, base, batch)?;
        // Those that wait for a person hold it again when all others are through.
        if self.blocked.is_empty() { self.free() } else { Ok(true) }
    }

    /// Nothing holds the target any more, and there may be more to do.
    fn free(&mut self) -> Result<bool, Stop> {
        let stamp = self.stamp();
        self.store.free_target(self.target, &stamp).map_err(TownError::from)?;
        Ok(true)
    }

    /// Where the target stands, here or at its origin; while nobody can say, it is held.
    fn base(&self, rig: &Rig) -> Result<Base, Stop> {
        let asked = self.git().base(Path::new(&rig.path), &self.target.branch, self.asks_origin(rig), REMOTE_TIMEOUT);
        asked.map_err(|error| Stop::Hold(crate::chain(&error)))
    }

    /// What the origin has of the target is here too before anybody hears of it: whoever waits for it starts from here.
    fn bring_here(&self, repository: &Path, base: &Base) -> Result<(), Stop> {
        Ok(self.git().land(repository, &self.target.branch, &base.commit, &base.commit)?)
    }

    /// The next few. What is to be merged directly goes alone, without gates.
    fn batch(&self, waiting: Vec<Merge>) -> Vec<Merge> {
        let is_direct = |merge: &Merge| merge.strategy == Strategy::Direct;
        if waiting.first().is_some_and(is_direct) {
            return waiting.into_iter().take(1).collect();
        }
        let n = self.settings.merge_batch();
        let is_gated = |merge: &Merge| !is_direct(merge) || gt_core::defect!("direct-takes-others-along");
        waiting.into_iter().take_while(is_gated).take(n).collect()
    }

    /// A worker may have died after it moved the target: what is part of it is merged. Returns what is not.
    fn record_what_is_merged(&mut self, repository: &Path, base: &Base) -> Result<Vec<Merge>, Stop> {
        let (mut there, mut waiting) = (Vec::new(), Vec::new());
        for merge in self.store.waiting_merges(self.target).map_err(TownError::from)? {
            match self.git().is_part_of(repository, &merge.tip, &base.commit) {
                Ok(true) => there.push(merge),
                Ok(false) => waiting.push(merge),
                Err(MergeError::NoCommit { .. }) => {
                    let stamp = self.stamp();
                    let reason = format!("its commit {} is gone from {}", merge.tip, repository.display());
                    self.store.drop_merge(&merge.id, &reason, &stamp).map_err(TownError::from)?;
                    self.worked.returned.push((merge.bead, reason));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !there.is_empty() {
            self.bring_here(repository, base)?;
            self.record_merged(repository, &there, &base.commit)?;
        }
        Ok(waiting)
    }

    /// Merges a batch, or each half of it by itself, until only what is flawed is left; returns the base of now.
    fn settle(&mut self, rig: &Rig, repository: &Path, base: Base, batch: Vec<Merge>) -> Result<Base, Stop> {
        let bench = self.bench(repository)?;
        let Some(stack) = self.stack(repository, &*bench, &base, batch)? else { return Ok(base) };
        crash::point(CrashPoint::Stacked);
        let tried = self.try_stack(rig, repository, &*bench, &base, &stack)?;
        let may_be_halved = stack.merges.len() > 1 && !gt_core::defect!("batch-blamed-as-a-whole");
        if may_be_halved && !matches!(tried, Tried::Landed(_)) {
            let mut first = stack.merges;
            let second = first.split_off(first.len() / 2);
            let base = self.settle(rig, repository, base, first)?;
            return self.settle(rig, repository, base, second);
        }
        let Some(merge) = stack.merges.first() else { return Ok(base) };
        match tried {
            Tried::Flawed(flaw) => {
                if let Some(reason) = self.flaw_of_base(rig, repository, &*bench, &base, &flaw)? {
                    return Err(Stop::Hold(reason));
                }
                self.give_back(repository, &base, merge, &flaw)?;
            }
            Tried::InTheWay { checkout, files } => self.blocked.push(Blocked::by_files(merge, checkout, files)),
            Tried::TakenBack { commits } => self.blocked.push(Blocked::by_commits(merge, &commits)),
            Tried::Landed(base) => return Ok(base),
        }
        Ok(base)
    }

    /// Lands what passes the gates, unless a person's files are in the way of it: then nothing is judged.
    fn try_stack(
        &mut self,
        rig: &Rig,
        repository: &Path,
        bench: &dyn Bench,
        base: &Base,
        stack: &Stack,
    ) -> Result<Tried, Stop> {
        if let Some(in_the_way) = self.in_the_way(repository, &stack.tip)? {
            return Ok(in_the_way);
        }
        if let Some(taken_back) = self.taken_back(repository, base, &stack.tip, &stack.merges)? {
            return Ok(taken_back);
        }
        let is_one_direct = |merge: &Merge| merge.strategy == Strategy::Direct;
        let is_direct = stack.merges.iter().all(is_one_direct)
            || (gt_core::defect!("direct-takes-others-along") && stack.merges.iter().any(is_one_direct))
            || (gt_core::defect!("gates-skipped-for-batches") && stack.merges.len() > 1);
        let verdict = if is_direct { Verdict::Passed } else { self.pass_gates(rig, repository, bench, &stack.tip)? };
        match verdict {
            Verdict::Passed => self.land(rig, repository, base, stack),
            Verdict::Failed(flaw) => Ok(Tried::Flawed(flaw)),
        }
    }

    /// A target that does not pass its own gates is held with this reason, and nobody is blamed.
    fn flaw_of_base(
        &mut self,
        rig: &Rig,
        repository: &Path,
        bench: &dyn Bench,
        base: &Base,
        flaw: &Flaw,
    ) -> Result<Option<String>, Stop> {
        if !matches!(flaw, Flaw::Gate { .. }) || gt_core::defect!("target-never-blamed") {
            return Ok(None);
        }
        bench.reset(&base.commit)?;
        match self.pass_gates(rig, repository, bench, &base.commit)? {
            Verdict::Passed => Ok(None),
            Verdict::Failed(flaw) => {
                let words = flaw.words(&self.target.branch).replacen("with it ", "", 1);
                Ok(Some(format!("without anything new, {words}")))
            }
        }
    }

    /// Merges one after the other on top of the base. What cannot be is given back if nothing lies between.
    fn stack(
        &mut self,
        repository: &Path,
        bench: &dyn Bench,
        base: &Base,
        batch: Vec<Merge>,
    ) -> Result<Option<Stack>, Stop> {
        bench.reset(&base.commit)?;
        let mut stack = Stack { merges: Vec::new(), tip: base.commit.clone() };
        for merge in batch {
            match bench.merge(&merge.tip, &format!("Merge {}: {}", merge.bead, one_line(&merge.title))) {
                Ok(Stacked::Done { tip }) => {
                    stack.tip = tip;
                    stack.merges.push(merge);
                }
                Ok(Stacked::Conflict { files })
                    if stack.merges.is_empty() || gt_core::defect!("conflict-blamed-behind-others") =>
                {
                    self.give_back(repository, base, &merge, &Flaw::Conflict { files })?;
                }
                Err(MergeError::Unrelated { .. }) if stack.merges.is_empty() => {
                    self.give_back(repository, base, &merge, &Flaw::Conflict { files: Vec::new() })?;
                }
                Ok(Stacked::Failed { said }) if stack.merges.is_empty() => {
                    self.give_back(repository, base, &merge, &Flaw::Unmergeable { said })?;
                }
                // It is its turn when what it conflicts with is merged, or is not.
                Ok(Stacked::Conflict { .. } | Stacked::Failed { .. }) | Err(MergeError::Unrelated { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(stack).filter(|stack| !stack.merges.is_empty()))
    }

    fn pass_gates(&mut self, rig: &Rig, repository: &Path, bench: &dyn Bench, commit: &str) -> Result<Verdict, Stop> {
        let git = self.around.git();
        let tree = git.tree_of(repository, commit)?;
        let env = [
            ("GT_TOWN", self.town.root().display().to_string()),
            ("GT_RIG", rig.name.clone()),
            ("GT_TARGET", self.target.branch.clone()),
            ("GT_COMMIT", commit.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        let place = gates::Place { git, bench, commit, dir: &self.dir };
        let timeout = self.settings.gate_timeout();
        let judged = self.gates.judge(&self.settings.gates(&rig.name), &tree, &env, &place, timeout)?;
        bench.leave_branch()?;
        match judged {
            _ if git.is_ending() => Err(Stop::Again),
            Judged::Sure(verdict) => Ok(verdict),
            Judged::Killed { command, how } => {
                Err(Stop::Hold(format!("the gate `{}` was killed ({how}), and is asked again", one_line(&command))))
            }
        }
    }

    /// Makes the batch part of the target, by one merge.
    fn land(&mut self, rig: &Rig, repository: &Path, base: &Base, stack: &Stack) -> Result<Tried, Stop> {
        let commit = self.git().seal(repository, &base.commit, &stack.tip, &message(&stack.merges))?;
        crash::point(CrashPoint::GatesPassed);
        // What people did here while gates ran: nothing is pushed that could not be landed here as well.
        if let Some(in_the_way) = self.in_the_way(repository, &commit)? {
            return Ok(in_the_way);
        }
        if !self.is_set_as_before(rig)? {
            return Err(Stop::Again);
        }
        let brought = self.brought(repository, base, &commit, &stack.merges)?;
        let stamp = self.stamp();
        if !self.store.begin_landing(&stack.merges, &brought, &stamp).map_err(TownError::from)? {
            return Err(Stop::Again); // somebody has decided against one of them while it was tested
        }
        let moved = self.move_target(repository, base, &commit);
        if moved.as_ref().is_err_and(|error| is_untouched(error, base)) {
            let stamp = self.stamp();
            self.store.end_landing(self.target, &stamp).map_err(TownError::from)?;
        }
        match moved {
            Err(error @ MergeError::Refused { .. }) => {
                return Ok(Tried::Flawed(Flaw::Unmergeable { said: error.to_string() }));
            }
            moved => moved?,
        }
        self.record_merged(repository, &stack.merges, &commit)?;
        Ok(Tried::Landed(Base { commit, ..base.clone() }))
    }

    /// At the origin first, so that nothing is here alone.
    fn move_target(&self, repository: &Path, base: &Base, commit: &str) -> Result<(), MergeError> {
        if base.has_remote && !gt_core::defect!("push-left-out") {
            self.git().push(repository, commit, &self.target.branch, REMOTE_TIMEOUT)?;
            crash::point(CrashPoint::Pushed);
        }
        self.git().land(repository, &self.target.branch, &base.commit, commit)?;
        crash::point(CrashPoint::Landed);
        Ok(())
    }

    fn record_merged(&mut self, repository: &Path, merges: &[Merge], commit: &str) -> Result<(), TownError> {
        let (carried, stamp) = (self.carried(repository, merges, commit)?, self.stamp());
        let recorded = self.store.record_merged(merges, commit, &carried, &stamp)?;
        crash::point(CrashPoint::RecordedMerge);
        self.clear_all(repository, &recorded);
        self.worked.merged.extend(recorded.into_iter().map(|merge| merge.bead));
        Ok(())
    }

    /// Its commits stay on their branch, and as a patch for whoever works on it again.
    fn give_back(&mut self, repository: &Path, base: &Base, merge: &Merge, flaw: &Flaw) -> Result<(), TownError> {
        let dir = self.town.salvage_dir();
        fs::create_dir_all(&dir).map_err(|source| TownError::io("make", &dir, source))?;
        let patch = dir.join(format!("{}.patch", merge.id));
        let patch =
            self.git().patch(repository, &base.commit, &merge.tip, &patch).is_ok().then(|| patch.display().to_string());
        let policy = self.settings.policy(self.town.root());
        let stamp = self.stamp();
        let returned = self.store.return_merge(merge, flaw, patch.as_deref(), &policy, &stamp)?;
        if returned != ReturnedAs::Over {
            self.worked.returned.push((merge.bead.clone(), flaw.words(&self.target.branch)));
        }
        Ok(())
    }

    /// Leaves the target alone for a while.
    fn hold(&mut self, reason: &str) -> Result<bool, TownError> {
        let stamp = self.stamp();
        hold(&mut self.store, self.target, reason, &stamp)?;
        self.worked.held = Some(reason.to_owned());
        Ok(false)
    }
}

/// What became of a batch that was tried.
enum Tried {
    /// The base of now.
    Landed(Base),
    Flawed(Flaw),
    /// Files of a person that it would overwrite.
    InTheWay {
        checkout: PathBuf,
        files: Vec<String>,
    },
    /// Commits of a person's that it would publish.
    TakenBack {
        commits: Vec<Titled>,
    },
}

/// Why a batch is not settled.
enum Stop {
    /// The target has moved meanwhile.
    Again,
    /// Nothing can be merged into it for now.
    Hold(String),
    Failed(TownError),
}

impl From<MergeError> for Stop {
    fn from(error: MergeError) -> Stop {
        match error {
            MergeError::Moved { .. } => Stop::Again,
            MergeError::NoGit { .. } | MergeError::Io { .. } => Stop::Failed(error.into()),
            _ => Stop::Hold(crate::chain(&error)),
        }
    }
}

impl From<TownError> for Stop {
    fn from(error: TownError) -> Stop {
        Stop::Failed(error)
    }
}

/// Whether the target is certainly where it was, so that people can decide about what was to be landed.
fn is_untouched(error: &MergeError, base: &Base) -> bool {
    let is_half_way = matches!(error, MergeError::HalfWay { .. });
    (!base.has_remote && !is_half_way) || matches!(error, MergeError::Refused { .. } | MergeError::Closed { .. })
}

fn message(merges: &[Merge]) -> String {
    let line = |merge: &Merge| format!("{}: {}", merge.bead, one_line(&merge.title));
    match merges {
        [one] => format!("Merge {}", line(one)),
        many => {
            let lines: Vec<String> = many.iter().map(line).collect();
            format!("Merge {} beads\n\n{}", many.len(), lines.join("\n"))
        }
    }
}

/// Whether a merge waits for somebody else's word.
fn is_requested(merge: &Merge) -> bool {
    merge.state == MergeState::Requested
}
