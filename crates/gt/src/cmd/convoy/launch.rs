//! `gt convoy launch`: what was staged starts, all of its first wave at once. // SPEC C3

use clap::Args;
use gt_engine::Town;
use gt_engine::settings::Settings;
use gt_store::{Going, Staged, Staging, Store};
use serde_json::{Value, json};

use super::stage;
use super::view::counted;
use crate::cmd::sling::{self, Answer, How};
use crate::context::Context;
use crate::failure::Failure;
use crate::fit;
use crate::render::{BOLD, DIM, GREEN, paint};

/// Answers that are shown one by one.
const LINES_MAX: usize = 20;

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
    let answers = start(context, &town, &mut store, &staged)?;
    if context.wants_json() {
        return context.json(&with_results(stage::to_json(&staged), &answers, true));
    }
    show(context, &staged, &answers)
}

/// Slings the first wave by the path that every sling takes. One refusal does not stop the others.
pub(super) fn start(
    context: &Context,
    town: &Town,
    store: &mut Store,
    staged: &Staged,
) -> Result<Vec<Answer>, Failure> {
    let settings = Settings::load(town)?;
    let policy = settings.policy(town.root());
    let first = staged.first_wave();
    if first.is_empty() {
        return Ok(Vec::new());
    }
    let meant = gt_engine::sling::members(first, town, store, &settings)?;
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
        context.say(&sling::answer_line(answer, How::Sling))?;
    }
    if answers.len() > LINES_MAX {
        context.say(&paint(DIM, &format!("… and {} more", answers.len() - LINES_MAX)))?;
    }
    if answers.len() > 1 {
        context.say(&sling::tally(answers, How::Sling))?;
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

/// The staged convoy, and what became of its first wave.
pub(super) fn with_results(mut staged: Value, answers: &[Answer], is_launched: bool) -> Value {
    if is_launched {
        staged["results"] = json!(answers.iter().map(sling::answer_json).collect::<Vec<_>>());
    }
    staged
}
