//! `gt sling`: hand work to agents. // SPEC P1–P4

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use gt_core::context::SlingFields;
use gt_core::plan::{PerSide, Policy, Side};
use gt_engine::Town;
use gt_engine::dispatch::PassReport;
use gt_engine::once;
use gt_engine::settings::Limits;
use gt_engine::sling::{self, Request};
use gt_store::{Assignment, Sling, SlingOutcome, Slung, Store};
use serde_json::{Value, json};

use crate::context::{self, Context};
use crate::dashes;
use crate::failure::{Failure, Kind, reword};
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
    #[command(flatten)]
    work: WorkArgs,
    /// Make a bead with this title, and sling it
    #[arg(long, value_name = "TITLE", allow_hyphen_values = true, value_parser = dashes::text)]
    new: Option<String>,
    /// Accepted, and changes nothing: a sling never starts a daemon
    #[arg(long)]
    no_boot: bool,
    /// Only queue it, as `gt queue` does
    #[arg(long)]
    queue: bool,
}

/// What is to be done, and how: the words of `gt sling` and of `gt queue`.
#[derive(Debug, Args)]
pub(super) struct WorkArgs {
    /// Beads, an epic, a convoy or a formula, and perhaps a rig
    #[arg(value_name = "BEAD|RIG")]
    words: Vec<String>,
    /// Apply the formula to this bead
    #[arg(long, value_name = "BEAD")]
    on: Option<String>,
    /// Take the bead from whoever has it, and into a rig that is not its own
    #[arg(long)]
    force: bool,
    /// Instructions for the agent
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, value_parser = dashes::text)]
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
    /// A fresh agent for each step of the formula, one after the other
    #[arg(long)]
    ralph: bool,
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
    let how = if args.queue { How::Queue } else { How::Sling };
    hand_over(context, &request(args.work, args.new, how), how)
}

/// Whether it may start at once, or only waits for its turn. // SPEC P2, Q1
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Sling,
    Queue,
}

/// `gt queue`: the same work, which always waits. A word that is nothing may be one of the commands, mistyped.
pub(super) fn queue(context: &Context, args: WorkArgs, commands: &'static [&'static str]) -> Result<ExitCode, Failure> {
    hand_over(context, &Request { commands, ..request(args, None, How::Queue) }, How::Queue)
}

fn hand_over(context: &Context, request: &Request, how: How) -> Result<ExitCode, Failure> {
    refuse_polecat()?;
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let settings = context.settings_in(&town, &mut store)?;
    let policy = settings.policy(town.root());
    let meant = sling::understand(request, &town, &mut store, &settings, &context.stamp())?;
    let answers = carry_out(context, &town, &mut store, &meant, &policy, how)?;
    show(context, &answers, how)?;
    // Without a cap the end of an agent is noticed without a daemon too. What is queued may wait for no daemon at all.
    let waits_for_daemon = policy.is_deferred || (how == How::Queue && policy.starts(Side::Queue));
    if waits_for_daemon && answers.iter().any(|answer| answer.outcome == "scheduled") {
        context.note_missing_daemon(&town);
    }
    let is_in_vain = answers.iter().all(|answer| ["refused", "skipped"].contains(&answer.outcome));
    let refused = answers.iter().find(|answer| answer.outcome == "refused");
    let taken = answers.iter().find(|answer| answer.is_taken);
    match (refused, taken, request.fire) {
        // Nobody reads the lines above: what the clock brought says in one why nothing came of it.
        (Some(one), _, Some(_)) if is_in_vain => Err(in_vain(Kind::Refused, one)),
        (None, Some(one), Some(_)) if is_in_vain => Err(in_vain(Kind::NotNow, one)),
        (Some(_), _, None) => Ok(Kind::Refused.exit_code()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn in_vain(kind: Kind, one: &Answer) -> Failure {
    let why = one.reason.as_deref().unwrap_or("nobody knows why");
    Failure::new(kind, format!("nothing was slung; {}: {why}", one.bead)).hint(format!("see `gt explain {}`", one.bead))
}

/// Who was given work does it, and hands none on.
pub(super) fn refuse_polecat() -> Result<(), Failure> {
    // Whoever answers in a session, or runs because of the clock, is no polecat.
    let Some(run) = context::variable("GT_RUN").filter(|_| context::variable("GT_SESSION").is_none()) else {
        return Ok(());
    };
    Err(Failure::new(Kind::Refused, format!("a polecat does not sling work (this is run {run})"))
        .hint("write the work down with `gt create`, and end your own with `gt done`"))
}

/// Stores, and in direct mode starts; says what became of each bead.
pub(super) fn carry_out(
    context: &Context,
    town: &Town,
    store: &mut Store,
    meant: &Sling,
    policy: &Policy,
    how: How,
) -> Result<Vec<Answer>, Failure> {
    let (slung, report) = if policy.is_deferred || how == How::Queue {
        (once::schedule(store, meant, &context.stamp())?, PassReport::default())
    } else {
        start_now(context, town, store, meant)?
    };
    answers(slung, &report, store, policy, context)
}

fn request(args: WorkArgs, new: Option<String>, how: How) -> Request {
    let vars = (!args.vars.is_empty()).then(|| args.vars.join("\n"));
    // Of a whole epic or convoy, the queue takes the formula that all of it is to be worked by.
    let is_sling = how == How::Sling;
    let task_flags = [
        ("--args", args.args.is_some()),
        ("--var", vars.is_some()),
        ("--formula", args.formula.is_some() && is_sling),
        ("--hook-raw-bead", args.hook_raw_bead && is_sling),
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
        new,
        fire: context::variable("GT_FIRE").and_then(|id| id.parse().ok()),
        force: args.force,
        no_convoy: args.no_convoy,
        commands: &[],
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
            queued: how == How::Queue,
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
    let mut dispatcher = once::dispatcher(town, store, &context.actor());
    if !context.is_dry_run() {
        return Ok(once::sling(&mut dispatcher, store, wanted)?);
    }
    let mut settings = context.settings_in(town, store)?;
    settings.limit_once(Limits::default());
    let policy = settings.policy(town.root());
    let (slung, claimed) = dispatcher.claim_by(&settings, &policy, PerSide::both(None), 0, |claimant| {
        store.sling(wanted, Some(claimant), &context.stamp())
    })?;
    Ok((slung, PassReport { started: claimed, ..PassReport::default() }))
}

/// What became of one bead, with everything that scripts rely on.
pub(super) struct Answer {
    pub(super) bead: String,
    title: String,
    rig: Option<String>,
    pub(super) outcome: &'static str,
    polecat: Option<String>,
    run: Option<String>,
    context: Option<String>,
    convoy: Option<String>,
    pub(super) reason: Option<String>,
    /// It was tried, and did not start.
    has_failed: bool,
    /// It is in somebody's hands.
    is_taken: bool,
}

fn answers(
    slung: Vec<Slung>,
    report: &PassReport,
    store: &mut Store,
    policy: &Policy,
    context: &Context,
) -> Result<Vec<Answer>, Failure> {
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
                    None => outlook.insert(store.outlook(policy, context.now())?),
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
        is_taken: slung.is_taken,
    }
}

fn show(context: &Context, answers: &[Answer], how: How) -> Result<(), Failure> {
    if context.wants_json() {
        return context.json(&json!({ "results": answers.iter().map(answer_json).collect::<Vec<_>>() }));
    }
    for answer in answers {
        context.say(&answer_line(answer, how, context.is_dry_run()))?;
    }
    let is_new = |answer: &&Answer| answer.outcome != "already-scheduled";
    let mut convoys: Vec<&str> = answers.iter().filter(is_new).filter_map(|answer| answer.convoy.as_deref()).collect();
    convoys.sort_unstable();
    convoys.dedup();
    for convoy in convoys {
        let verb = if context.is_dry_run() { "Would be tracked" } else { "Tracked" };
        context.say(&paint(DIM, &format!("{verb} by convoy {convoy}.")))?;
    }
    if answers.len() > 1 {
        context.say(&tally(answers, how))?;
    }
    Ok(())
}

pub(super) fn tally(answers: &[Answer], how: How) -> String {
    let words = ["dispatched", "scheduled", "already-scheduled", "skipped", "refused"];
    let counts = words.into_iter().filter_map(|word| {
        let n = answers.iter().filter(|answer| answer.outcome == word).count();
        let word = if (word, how) == ("scheduled", How::Queue) { "queued" } else { word };
        (n > 0).then(|| format!("{n} {}", word.replace('-', " ")))
    });
    format!("{} beads: {}.", answers.len(), counts.collect::<Vec<_>>().join(", "))
}

pub(super) fn answer_line(answer: &Answer, how: How, is_dry: bool) -> String {
    let Answer { bead, title, .. } = answer;
    let title = gt_core::text::one_line(title);
    let rig = answer.rig.as_deref().unwrap_or("?");
    let why = answer.reason.as_deref().unwrap_or_default();
    let why = if how == How::Queue { reword(why, &super::queue::SWITCHES) } else { why.to_owned() };
    match answer.outcome {
        "dispatched" => {
            let polecat = answer.polecat.as_deref().unwrap_or("somebody");
            let (sign, polecat) = (paint(GREEN, "▶"), paint(BOLD, polecat));
            if is_dry {
                return format!("{sign} Would start {polecat} on {bead} {title} ({rig})");
            }
            format!("{sign} {polecat} is on it: {bead} {title} ({rig})")
        }
        "scheduled" => {
            let context = answer.context.as_deref().unwrap_or("?");
            let why = if why.is_empty() { String::new() } else { format!("\n    {why}") };
            let (sign, verb) = if answer.has_failed {
                (paint(YELLOW, "!"), "Could not start it, so it is scheduled:")
            } else {
                let verb = match (how == How::Queue, is_dry) {
                    (true, false) => "Queued",
                    (true, true) => "Would queue",
                    (false, false) => "Scheduled",
                    (false, true) => "Would schedule",
                };
                (paint(GREEN, "✓"), verb)
            };
            format!("{sign} {verb} {bead} → {rig} (context: {context}){}", paint(DIM, &why))
        }
        "already-scheduled" => {
            let context = answer.context.as_deref().unwrap_or("?");
            format!("○ {bead} is already scheduled (context: {context}); nothing was changed")
        }
        "skipped" if is_dry => format!("{} Would skip {bead}: {why}", paint(YELLOW, "!")),
        "skipped" => format!("{} Skipped {bead}: {why}", paint(YELLOW, "!")),
        _ if is_dry => format!("{} Would refuse {bead}: {why}", paint(YELLOW, "✗")),
        _ => format!("{} Refused {bead}: {why}", paint(YELLOW, "✗")),
    }
}

pub(super) fn answer_json(answer: &Answer) -> Value {
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
