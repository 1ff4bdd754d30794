//! `gt sling`: hand work to agents. // SPEC P1–P4

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use gt_core::context::SlingFields;
use gt_engine::Town;
use gt_engine::dispatch::PassReport;
use gt_engine::once;
use gt_engine::settings::Settings;
use gt_engine::sling::{self, Request};
use gt_store::{Assignment, Sling, SlingOutcome, Slung, Store};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, DIM, GREEN, YELLOW, paint};

/// Hand work to an agent
///
/// Without a cap (scheduler.max_polecats is -1 or 0) what is ready starts at once. With a cap it is scheduled, and the
/// daemon starts it as slots are free. What is blocked is scheduled either way, and starts the moment it can.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt sling gt-a1b2                      to the rig of its prefix
  gt sling gt-a1b2 gt-c3d4 shop         several, to one rig
  gt sling gt-epic                      everything below an epic
  gt sling hq-cv-a1b2c                  everything in a convoy
  gt sling --new \"Fix the login\" shop   new work, at once
  gt sling release --on gt-a1b2         by the formula `release`
  gt sling gt-a1b2 --args \"mind the tests\" --agent codex")]
pub(crate) struct SlingArgs {
    /// Beads, an epic, a convoy or a formula, and perhaps a rig
    #[arg(value_name = "BEAD|RIG")]
    words: Vec<String>,
    /// Make a bead with this title, and sling it
    #[arg(long, value_name = "TITLE")]
    new: Option<String>,
    /// Apply the formula to this bead
    #[arg(long, value_name = "BEAD")]
    on: Option<String>,
    /// Take the bead from whoever has it, and into a rig that is not its own
    #[arg(long)]
    force: bool,
    /// Instructions for the agent
    #[arg(long, short, value_name = "TEXT")]
    args: Option<String>,
    /// A variable of the formula; may be repeated
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = variable)]
    vars: Vec<String>,
    /// The recipe to work by
    #[arg(long, value_name = "FORMULA")]
    formula: Option<String>,
    /// Without a formula
    #[arg(long, conflicts_with = "formula")]
    hook_raw_bead: bool,
    /// How the work is merged
    #[arg(long, value_enum, value_name = "HOW")]
    merge: Option<Merge>,
    /// Leave the work on its branch
    #[arg(long)]
    no_merge: bool,
    /// The branch the work starts from
    #[arg(long, value_name = "BRANCH")]
    base_branch: Option<String>,
    /// The agent's account
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// The agent, instead of the default one
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Leave the life of the convoy to me
    #[arg(long)]
    owned: bool,
    /// Make no convoy
    #[arg(long)]
    no_convoy: bool,
    /// Accepted, and changes nothing: a sling never starts a daemon
    #[arg(long)]
    no_boot: bool,
    /// A fresh agent for each step of the formula, one after the other
    #[arg(long)]
    ralph: bool,
    /// Only schedule, whatever the mode
    #[arg(long)]
    queue: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Merge {
    Direct,
    Mr,
    Local,
}

pub(crate) fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() && !text.contains('\n') => Ok(text.to_owned()),
        _ => Err("it must be KEY=VALUE on one line".to_owned()),
    }
}

pub(crate) fn run(context: &Context, args: SlingArgs) -> Result<ExitCode, Failure> {
    if let Some(run) = crate::context::variable("GT_RUN") {
        return Err(Failure::new(Kind::Refused, format!("a polecat does not sling work (this is run {run})"))
            .hint("write the work down with `gt create`, and end your own with `gt done`"));
    }
    let is_queued = args.queue;
    let request = request(args);
    let town = context.town()?;
    let settings = Settings::load(&town)?;
    let mut store = context.open(&town)?;
    let meant = sling::understand(&request, &town, &mut store, &settings, &context.stamp())?;
    let (slung, report) = if settings.policy(town.root()).is_deferred || is_queued {
        (once::schedule(&mut store, &meant, &context.stamp())?, PassReport::default())
    } else {
        start_now(context, &town, &mut store, &meant)?
    };
    let answers = answers(slung, &report, &mut store, &settings, &town, context)?;
    show(context, &answers)?;
    // Without a cap the end of an agent is noticed without a daemon too.
    let is_deferred = settings.policy(town.root()).is_deferred || is_queued;
    if is_deferred && answers.iter().any(|answer| answer.outcome == "scheduled") {
        context.note_missing_daemon(&town);
    }
    let is_refused = answers.iter().any(|answer| answer.outcome == "refused")
        && answers.iter().all(|answer| ["refused", "skipped"].contains(&answer.outcome));
    Ok(if is_refused { Kind::Refused.exit_code() } else { ExitCode::SUCCESS })
}

fn request(args: SlingArgs) -> Request {
    let vars = (!args.vars.is_empty()).then(|| args.vars.join("\n"));
    let task_flags = [
        ("--args", args.args.is_some()),
        ("--var", vars.is_some()),
        ("--formula", args.formula.is_some()),
        ("--hook-raw-bead", args.hook_raw_bead),
        ("--merge", args.merge.is_some()),
        ("--no-merge", args.no_merge),
        ("--base-branch", args.base_branch.is_some()),
        ("--account", args.account.is_some()),
        ("--agent", args.agent.is_some()),
        ("--owned", args.owned),
        ("--no-convoy", args.no_convoy),
        ("--ralph", args.ralph),
    ];
    let merge = args.merge.map(|merge| match merge {
        Merge::Direct => "direct",
        Merge::Mr => "mr",
        Merge::Local => "local",
    });
    Request {
        words: args.words.iter().map(|word| word.trim_end_matches('/').to_owned()).collect(),
        on: args.on,
        new: args.new,
        force: args.force,
        no_convoy: args.no_convoy,
        task_flags: task_flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag).collect(),
        fields: SlingFields {
            args: args.args,
            vars,
            formula: args.formula,
            hook_raw_bead: args.hook_raw_bead,
            merge: merge.map(str::to_owned),
            no_merge: args.no_merge,
            base_branch: args.base_branch,
            account: args.account,
            agent: args.agent,
            owned: args.owned,
            mode: args.ralph.then(|| sling::STEP_BY_STEP.to_owned()),
            ..SlingFields::default()
        },
    }
}

/// Stores, claims and starts, in this very process.
fn start_now(
    context: &Context,
    town: &Town,
    store: &mut Store,
    wanted: &Sling,
) -> Result<(Vec<Slung>, PassReport), Failure> {
    let mut dispatcher = once::dispatcher(town, &context.actor());
    if !context.is_dry_run() {
        return Ok(once::sling(&mut dispatcher, store, wanted)?);
    }
    let policy = Settings::load(town)?.policy(town.root());
    let mut claimant = dispatcher.claimant(&policy, None);
    let (slung, claimed) = store.sling(wanted, Some(&mut claimant), &context.stamp())?;
    Ok((slung, PassReport { started: claimed, ..PassReport::default() }))
}

/// What became of one bead, with everything that scripts rely on.
struct Answer {
    bead: String,
    title: String,
    rig: Option<String>,
    outcome: &'static str,
    polecat: Option<String>,
    run: Option<String>,
    context: Option<String>,
    convoy: Option<String>,
    reason: Option<String>,
    /// It was tried, and did not start.
    has_failed: bool,
}

fn answers(
    slung: Vec<Slung>,
    report: &PassReport,
    store: &mut Store,
    settings: &Settings,
    town: &Town,
    context: &Context,
) -> Result<Vec<Answer>, Failure> {
    let policy = settings.policy(town.root());
    let mut outlook = None;
    let mut answers = Vec::new();
    for slung in slung {
        let started = report.started.iter().chain(&report.unknown).find(|started| started.bead == slung.bead);
        let mut reason = slung.reason.clone();
        let outcome = match (slung.outcome, started) {
            (SlingOutcome::Scheduled, Some(_)) => "dispatched",
            (SlingOutcome::Scheduled, None) => {
                let outlook = match &outlook {
                    Some(outlook) => outlook,
                    None => outlook.insert(store.outlook(&policy, context.now())?),
                };
                let place = outlook.scheduled.iter().find(|scheduled| scheduled.bead == slung.bead);
                reason = place.and_then(|place| place.reasons.first()).map(|reason| reason.message.clone());
                "scheduled"
            }
            (SlingOutcome::AlreadyScheduled, _) => "already-scheduled",
            (SlingOutcome::Skipped, _) => "skipped",
            (SlingOutcome::Refused, _) => "refused",
        };
        let has_failed = report.failed.iter().any(|(one, _)| one.bead == slung.bead);
        answers.push(Answer { has_failed, ..answer(slung, started, outcome, reason) });
    }
    Ok(answers)
}

fn answer(slung: Slung, started: Option<&Assignment>, outcome: &'static str, reason: Option<String>) -> Answer {
    Answer {
        bead: slung.bead,
        title: slung.title,
        rig: slung.rig,
        outcome,
        polecat: started.map(|started| started.polecat.name.clone()),
        run: started.map(|started| started.run.clone()),
        context: slung.context,
        convoy: slung.convoy,
        reason,
        has_failed: false,
    }
}

fn show(context: &Context, answers: &[Answer]) -> Result<(), Failure> {
    if context.wants_json() {
        return context.json(&json!({ "results": answers.iter().map(answer_json).collect::<Vec<_>>() }));
    }
    for answer in answers {
        context.say(&answer_line(answer))?;
    }
    let is_new = |answer: &&Answer| answer.outcome != "already-scheduled";
    let mut convoys: Vec<&str> = answers.iter().filter(is_new).filter_map(|answer| answer.convoy.as_deref()).collect();
    convoys.sort_unstable();
    convoys.dedup();
    for convoy in convoys {
        context.say(&paint(DIM, &format!("Tracked by convoy {convoy}.")))?;
    }
    if answers.len() > 1 {
        context.say(&tally(answers))?;
    }
    Ok(())
}

fn tally(answers: &[Answer]) -> String {
    let words = ["dispatched", "scheduled", "already-scheduled", "skipped", "refused"];
    let counts = words.into_iter().filter_map(|word| {
        let n = answers.iter().filter(|answer| answer.outcome == word).count();
        (n > 0).then(|| format!("{n} {}", word.replace('-', " ")))
    });
    format!("{} beads: {}.", answers.len(), counts.collect::<Vec<_>>().join(", "))
}

fn answer_line(answer: &Answer) -> String {
    let Answer { bead, title, .. } = answer;
    let title = gt_core::text::one_line(title);
    let rig = answer.rig.as_deref().unwrap_or("?");
    let why = answer.reason.as_deref().unwrap_or_default();
    match answer.outcome {
        "dispatched" => {
            let polecat = answer.polecat.as_deref().unwrap_or("somebody");
            format!("{} {} is on it: {bead} {title} ({rig})", paint(GREEN, "▶"), paint(BOLD, polecat))
        }
        "scheduled" => {
            let context = answer.context.as_deref().unwrap_or("?");
            let why = if why.is_empty() { String::new() } else { format!("\n    {why}") };
            let (sign, verb) = if answer.has_failed {
                (paint(YELLOW, "!"), "Could not start it, so it is scheduled:")
            } else {
                (paint(GREEN, "✓"), "Scheduled")
            };
            format!("{sign} {verb} {bead} → {rig} (context: {context}){}", paint(DIM, &why))
        }
        "already-scheduled" => {
            let context = answer.context.as_deref().unwrap_or("?");
            format!("○ {bead} is already scheduled (context: {context}); nothing was changed")
        }
        "skipped" => format!("{} Skipped {bead}: {why}", paint(YELLOW, "!")),
        _ => format!("{} Refused {bead}: {why}", paint(YELLOW, "✗")),
    }
}

fn answer_json(answer: &Answer) -> Value {
    json!({
        "bead": answer.bead,
        "rig": answer.rig,
        "outcome": answer.outcome,
        "polecat": answer.polecat,
        "run": answer.run,
        "context": answer.context,
        "convoy": answer.convoy,
        "reason": answer.reason,
    })
}
