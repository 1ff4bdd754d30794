//! `gt convoy launch`: what was staged starts, all of its first wave at once. // SPEC C3

use clap::Args;
use gt_engine::Town;
use gt_store::{Going, Staged, Staging, Store};
use serde_json::{Value, json};

use super::stage;
use super::view::counted;
use crate::cmd::sling::{self, Answer, How};
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::fit;
use crate::render::{BOLD, DIM, GREEN, paint};

/// Answers that are shown one by one.
const LINES_MAX: usize = 20;
/// Refusals that are named as causes.
const CAUSES_MAX: usize = 5;

/// Start a convoy: all of its first wave, and the rest as it becomes ready
///
/// An epic or tasks are staged and launched in one go. What is ready starts at once, or is scheduled where a cap is
/// set; what is held back otherwise is scheduled with its reason.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy launch hq-cv-a1b2c
  gt convoy launch gt-epic
  gt convoy launch gt-a1b2 gt-c3d4 --force    in spite of warnings")]
pub(super) struct LaunchArgs {
    /// A staged convoy, an epic, or tasks
    #[arg(required = true, value_name = "CONVOY|EPIC|TASK")]
    words: Vec<String>,
    /// In spite of warnings
    #[arg(long)]
    force: bool,
    /// What to call the convoy
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
}

pub(super) fn run(context: &Context, args: &LaunchArgs) -> Result<(), Failure> {
    sling::refuse_polecat()?;
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let then = Going::Launch { force: args.force };
    let staging = Staging { words: args.words.clone(), title: args.title.clone(), then };
    let staged = store.stage_convoy(&staging, &context.stamp())?;
    if staged.plan.has_errors() {
        if context.wants_json() {
            context.json(&with_results(stage::to_json(&staged), &[], true))?;
        }
        return stage::refuse_errors(&staged, &args.words);
    }
    let answers = start(context, &town, &mut store, &staged, &args.words)?;
    if context.wants_json() {
        context.json(&with_results(stage::to_json(&staged), &answers, true))?;
    } else {
        show(context, &staged, &answers)?;
    }
    refuse_untaken(&staged, &answers)
}

/// Slings the first wave by the path that every sling takes. One refusal does not stop the others.
pub(super) fn start(
    context: &Context,
    town: &Town,
    store: &mut Store,
    staged: &Staged,
    words: &[String],
) -> Result<Vec<Answer>, Failure> {
    let settings = context.settings_in(town, store)?;
    let policy = settings.policy(town.root());
    let first = staged.first_wave();
    if first.is_empty() {
        return Ok(Vec::new());
    }
    let meant = gt_engine::sling::members(first, words, town, store, &settings)?;
    let answers = sling::carry_out(context, town, store, &meant, &policy, How::Sling)?;
    if policy.is_deferred && answers.iter().any(|answer| answer.outcome == "scheduled") {
        context.note_missing_daemon(town);
    }
    Ok(answers)
}

pub(super) fn show(context: &Context, staged: &Staged, answers: &[Answer]) -> Result<(), Failure> {
    let convoy = staged.convoy.as_deref().unwrap_or("?");
    let title = fit::cut(&staged.title, fit::width().saturating_sub(40).max(20));
    context.say(&format!("{} Launched {} {title}", paint(GREEN, "✓"), paint(BOLD, convoy)))?;
    for answer in answers.iter().take(LINES_MAX) {
        context.say(&sling::answer_line(answer, How::Sling, context.is_dry_run()))?;
    }
    if answers.len() > LINES_MAX {
        context.say(&paint(DIM, &format!("… and {} more", answers.len() - LINES_MAX)))?;
    }
    if answers.len() > 1 {
        context.say(&sling::tally(answers, How::Sling))?;
    }
    if is_untaken(answers) {
        // Refusals are said beside this, as an error.
        let is_failed = answers.iter().any(|answer| answer.outcome == "refused");
        let words = paint(DIM, &format!("Nothing of it was taken. `gt convoy status {convoy}` shows it."));
        return if is_failed { Ok(()) } else { context.say(&words) };
    }
    let n_later = staged.plan.n_tasks() - answers.len().min(staged.plan.n_tasks());
    let later = match (n_later, staged.plan.gated.len()) {
        (0, 0) => "That is all of it.".to_owned(),
        (0, 1) => "1 more task waits for a person.".to_owned(),
        (0, gated) => format!("{gated} more tasks wait for a person."),
        (n, _) => format!("{} in later waves; they start as they become ready.", counted(n, "more task")),
    };
    context.say(&paint(DIM, &format!("{later} `gt convoy status {convoy} --watch` shows how it goes.")))
}

/// Whether there was a first wave, and every bead of it was passed over or refused.
fn is_untaken(answers: &[Answer]) -> bool {
    !answers.is_empty() && answers.iter().all(|answer| ["refused", "skipped"].contains(&answer.outcome))
}

/// A launch of which nothing was taken, for reasons that somebody has to mend, has failed.
pub(super) fn refuse_untaken(staged: &Staged, answers: &[Answer]) -> Result<(), Failure> {
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.outcome == "refused").collect();
    if refused.is_empty() || !is_untaken(answers) {
        return Ok(());
    }
    let convoy = staged.convoy.as_deref().unwrap_or("?");
    let causes = refused.iter().take(CAUSES_MAX).map(|answer| {
        let why = answer.reason.as_deref().unwrap_or("it was refused");
        format!("{}: {why}", answer.bead)
    });
    let message = format!("convoy {convoy} is open, but nothing of its first wave was taken");
    let hint = format!("mend that, and it goes on by itself; `gt convoy cancel {convoy}` withdraws it");
    Err(Failure::new(Kind::Refused, message).because(causes).hint(hint))
}

/// The staged convoy, and what became of its first wave.
pub(super) fn with_results(mut staged: Value, answers: &[Answer], is_launched: bool) -> Value {
    if is_launched {
        staged["results"] = json!(answers.iter().map(sling::answer_json).collect::<Vec<_>>());
    }
    staged
}
