//! Making a run ready: worktree, log and command line, and what it means when that fails. // SPEC P5, D5
//!
//! Touches neither store nor runtime, so it may run on any thread.

use std::path::PathBuf;

use gt_core::agent::conversation_of;
use gt_runtime::{Handle, Launch, StartError};
use gt_store::{Assignment, Claimed, Fault, NotStarted, Run, Started, Turn};
use jiff::{SignedDuration, Timestamp};

use super::probe;
use crate::agents::{self, Seeker, TurnOrder, Unfit, Workplace};
use crate::formulas::{Library, name_for};
use crate::prompt;
use crate::settings::{Isolation, Settings};
use crate::surroundings::Surroundings;
use crate::town::Town;
use crate::worktrees;

/// How long a machine without room is left alone.
pub(crate) const TOWN_TROUBLE: SignedDuration = SignedDuration::from_secs(30);

/// A run that is ready to be started, or why it never will be.
pub type Prepared = (Claimed, Result<Ready, NotStarted>);

/// A launch with the place it was made for.
#[derive(Debug, Clone)]
pub struct Ready {
    pub launch: Launch,
    pub(super) worktree: Option<PathBuf>,
    branch: Option<String>,
    formula: Option<String>,
    /// The name that it gives to its conversation.
    conversation: Option<String>,
}

pub(super) fn started(run: &str, ready: &Ready, handle: &Handle, at: Timestamp) -> Started {
    Started {
        run: run.to_owned(),
        at: Some(at),
        pid: handle.pid,
        birth: handle.birth,
        branch: ready.branch.clone(),
        worktree: ready.worktree.as_ref().map(|path| path.display().to_string()),
        log: ready.launch.log.display().to_string(),
        formula: ready.formula.clone(),
        conversation: ready.conversation.clone(),
    }
}

pub(super) fn refused(claimed: &Claimed, ready: &Ready, error: &StartError, seeker: Seeker) -> NotStarted {
    let (fault, error) = match (error, claimed) {
        (StartError::NoProgram { .. }, Claimed::Work(work)) => {
            (Fault::Agent, agents::cannot_start(&work.agent, "command", error, seeker))
        }
        // The command of a job is no agent's.
        (StartError::NoProgram { .. }, Claimed::Turn(turn)) if !turn.is_command() => {
            (Fault::Agent, agents::cannot_start(&turn.agent, "headless", error, seeker))
        }
        (StartError::NoProgram { .. }, Claimed::Turn(_)) => (Fault::Agent, error.to_string()),
        (StartError::NoRoom { .. }, _) => (Fault::Town, error.to_string()),
        (StartError::Failed { .. } | StartError::Unknown { .. }, _) => (Fault::Bead, error.to_string()),
    };
    let worktree = ready.worktree.as_ref().map(|path| path.display().to_string());
    NotStarted { run: claimed.run().to_owned(), error, fault, worktree }
}

/// A start of which the runtime says nothing.
pub(super) fn not_answered() -> Result<Handle, StartError> {
    Err(StartError::Unknown { cause: "it was not answered".to_owned() })
}

/// A start that is not waited for any longer. Where answers were lost (`unsure`), that is not the bead's fault.
pub(super) fn given_up(run: &Run, unsure: Option<String>) -> NotStarted {
    let (error, fault) = match (&run.stop, unsure) {
        (Some(stop), _) => (stop.reason.clone(), Fault::Bead),
        (None, Some(why)) => (why, Fault::Town),
        (None, None) => ("the start took longer than `scheduler.start_timeout`".to_owned(), Fault::Bead),
    };
    NotStarted { run: run.id.clone(), error, fault, worktree: None }
}

/// Makes worktree, log and command line of a run.
pub fn prepare(
    around: &dyn Surroundings,
    town: &Town,
    settings: &Settings,
    formulas: &Library,
    claimed: Claimed,
) -> Prepared {
    let ready = match &claimed {
        Claimed::Work(assignment) => make_ready(around, town, settings, formulas, assignment),
        Claimed::Turn(turn) => make_turn_ready(town, settings, turn),
    };
    (claimed, ready)
}

/// A turn needs no place of its own: it talks in the town, and its agent is started as a plain process.
fn make_turn_ready(town: &Town, settings: &Settings, turn: &Turn) -> Result<Ready, NotStarted> {
    let fail = |error: String, fault: Fault| NotStarted { run: turn.run.clone(), error, fault, worktree: None };
    let unfit = |unfit: Unfit| match unfit {
        Unfit::Agent(why) => fail(why, Fault::Agent),
        Unfit::Machine(why) => fail(why, Fault::Town),
    };
    make_logs_dir(town).map_err(|why| fail(why, Fault::Town))?;
    let (log, errors) = (town.log_path(&turn.run), town.errors_path(&turn.run));
    if let Some(command) = turn.fire.as_ref().and_then(|fire| fire.command.as_ref()) {
        let launch = agents::command_launch(command, turn, town, &log, &errors);
        return Ok(Ready { launch, worktree: None, branch: None, formula: None, conversation: None });
    }
    let agent = agents::find_for_turns(&settings.config, &turn.agent).map_err(|why| unfit(Unfit::Agent(why)))?;
    let order = TurnOrder {
        run: &turn.run,
        session: &turn.session,
        agent: &turn.agent,
        message: &turn.text,
        resume: turn.resumes.as_deref(),
        dir: town.root(),
        log: &log,
        errors: &errors,
        fire: turn.fire.as_ref(),
    };
    let launch = agents::turn_launch(&agent, &order, town).map_err(unfit)?;
    let conversation = Some(conversation_of(&turn.run)).filter(|name| launch.argv.contains(name));
    Ok(Ready { launch, worktree: None, branch: None, formula: None, conversation })
}

fn make_logs_dir(town: &Town) -> Result<(), String> {
    std::fs::create_dir_all(town.logs_dir())
        .map_err(|error| format!("cannot make {}: {error}", town.logs_dir().display()))
}

fn make_ready(
    around: &dyn Surroundings,
    town: &Town,
    settings: &Settings,
    formulas: &Library,
    assignment: &Assignment,
) -> Result<Ready, NotStarted> {
    let fail = |error: String, fault: Fault| NotStarted { run: assignment.run.clone(), error, fault, worktree: None };
    let agent = agents::find(&settings.config, &assignment.agent).map_err(|error| fail(error, Fault::Agent))?;
    let in_terminal = settings.in_terminal().map_err(|why| fail(probe::no_terminal(&why), Fault::Town))?;
    let cooked = formulas
        .cook(assignment, settings)
        .map_err(|why| fail(formula_words(assignment, settings, &why), Fault::Bead))?;
    let log = town.log_path(&assignment.run);
    make_logs_dir(town).map_err(|cause| fail(cause, Fault::Town))?;
    if !std::path::Path::new(&assignment.rig.path).is_dir() {
        return Err(fail(probe::no_repository(&assignment.rig.path), Fault::Rig));
    }
    let (worktree, branch) = match settings.isolation(&assignment.rig.name) {
        Isolation::None => (None, None),
        Isolation::Worktree => {
            let (path, branch) = worktrees::make(around, town, assignment)
                .map_err(|error| fail(crate::chain(&error), worktrees::fault_of(&error)))?;
            let text = prompt::text(assignment, cooked.as_ref(), Some(&branch));
            worktrees::leave_assignment(around.worktrees(), assignment, &path, &text);
            (Some(path), Some(branch))
        }
    };
    let dir = worktree.clone().unwrap_or_else(|| PathBuf::from(&assignment.rig.path));
    let place = Workplace { dir: &dir, branch: branch.as_deref(), log: &log, in_terminal };
    let launch = agents::launch(&agent, assignment, &place, town, cooked.as_ref()).map_err(|unfit| NotStarted {
        worktree: worktree.as_ref().map(|path| path.display().to_string()),
        ..match unfit {
            Unfit::Agent(why) => fail(why, Fault::Agent),
            Unfit::Machine(why) => fail(why, Fault::Town),
        }
    })?;
    let conversation = Some(conversation_of(&assignment.run)).filter(|name| launch.argv.contains(name));
    let formula = cooked.as_ref().map(|cooked| format!("{}@{}", cooked.formula, cooked.hash));
    Ok(Ready { launch, worktree, branch, formula, conversation })
}

/// A formula that cooked when the bead was slung and does not any more.
fn formula_words(assignment: &Assignment, settings: &Settings, why: &str) -> String {
    let name = name_for(&assignment.fields, &assignment.rig, settings).unwrap_or_default();
    let name = gt_core::text::one_line(&name);
    format!("the formula `{name}` does not cook: {why}")
}
