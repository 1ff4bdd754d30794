//! `gt convoy stage`: look at beads that go together before they start. // SPEC C2

use std::path::{Path, PathBuf};

use clap::Args;
use gt_core::convoy::findings::Finding;
use gt_core::convoy::graph::Graph;
use gt_engine::Town;
use gt_store::{Going, Staged, Staging, Store};
use serde_json::{Value, json};

use super::view::{View, counted};
use super::{launch, mermaid, svg, table, tree};
use crate::cmd::sling;
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::fit;
use crate::render::{BOLD, DIM, GREEN, RED, YELLOW, paint};

/// Look at beads that go together before they start
///
/// Draws what waits for what, and the waves in which the work can go, and says what is wrong or odd. The convoy is
/// stored and touches nothing until `gt convoy launch`; staging it again brings it up to date. With errors nothing is
/// stored.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy stage gt-epic                 everything below an epic
  gt convoy stage gt-a1b2 gt-c3d4         these tasks
  gt convoy stage hq-cv-a1b2c             again
  gt convoy stage gt-epic --svg plan.svg  a picture
  gt convoy stage gt-epic --launch        and start it, if nothing is odd")]
pub(super) struct StageArgs {
    /// An epic, a convoy, or tasks
    #[arg(required = true, value_name = "EPIC|CONVOY|TASK")]
    words: Vec<String>,
    /// What to call the convoy
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Launch it at once
    #[arg(long)]
    launch: bool,
    /// Launch it in spite of warnings
    #[arg(long, requires = "launch")]
    force: bool,
    /// Draw it into this file; with --dry-run the picture alone is written, and nothing is stored
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print it as a Mermaid flowchart
    #[arg(long)]
    mermaid: bool,
}

pub(super) fn run(context: &Context, args: &StageArgs) -> Result<(), Failure> {
    let going = if args.launch { Going::Launch { force: args.force } } else { Going::Stage };
    if args.launch {
        sling::refuse_polecat()?;
    }
    if let Some(file) = &args.svg {
        check_writable(file)?;
    }
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let staging = Staging { words: args.words.clone(), title: args.title.clone(), then: going };
    let staged = store.stage_convoy(&staging, &context.stamp())?;
    if let Some(file) = &args.svg {
        write_picture(file, &staged)?;
    }
    if args.mermaid && !context.wants_json() {
        context.say(mermaid::draw(&View::staged(&staged)).trim_end())?;
        refuse_errors(&staged, &args.words)?;
        if args.launch {
            let answers = launch::start(context, &town, &mut store, &staged, &args.words)?;
            launch::refuse_untaken(&staged, &answers)?;
        }
        return Ok(());
    }
    answer(context, &town, &mut store, &staged, args)
}

fn answer(context: &Context, town: &Town, store: &mut Store, staged: &Staged, args: &StageArgs) -> Result<(), Failure> {
    if !context.wants_json() {
        context.say(&text(staged))?;
        refuse_errors(staged, &args.words)?;
        if args.launch {
            context.say("")?;
            let answers = launch::start(context, town, store, staged, &args.words)?;
            launch::show(context, staged, &answers)?;
            launch::refuse_untaken(staged, &answers)?;
        }
        return Ok(());
    }
    let answers = if args.launch && !staged.plan.has_errors() {
        launch::start(context, town, store, staged, &args.words)?
    } else {
        Vec::new()
    };
    context.json(&launch::with_results(to_json(staged), &answers, args.launch))?;
    refuse_errors(staged, &args.words)?;
    launch::refuse_untaken(staged, &answers)
}

/// What is wrong is shown in full on standard output, and as an error beside it.
pub(super) fn refuse_errors(staged: &Staged, words: &[String]) -> Result<(), Failure> {
    let Some(first) = staged.plan.errors.first() else { return Ok(()) };
    let what = match words {
        [only] => only.clone(),
        many => format!("these {}", counted(many.len(), "bead")),
    };
    let n = counted(staged.plan.errors.len(), "error");
    let failure = Failure::new(Kind::Refused, format!("{what} cannot be staged: {n}, and nothing was stored"));
    let causes = staged.plan.errors.iter().take(5).map(|error| error.message.clone());
    Err(failure.because(causes).hint(format!("mend it, as in `{}`", first.suggested_fix)))
}

/// A picture that could not be written should be heard of before anything is stored.
fn check_writable(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) || file.is_dir() {
        return Err(Failure::new(Kind::Refused, format!("cannot write the picture {}", file.display()))
            .hint("name a file in a directory that is there, as in `--svg plan.svg`"));
    }
    Ok(())
}

fn write_picture(file: &Path, staged: &Staged) -> Result<(), Failure> {
    let view = View::staged(staged);
    let picture = svg::draw(&view, &staged.title, &subtitle(staged));
    std::fs::write(file, picture)
        .map_err(|error| Failure::new(Kind::Refused, format!("cannot write the picture {}: {error}", file.display())))
}

fn subtitle(staged: &Staged) -> String {
    let (tasks, waves) = (counted(staged.plan.n_tasks(), "task"), counted(staged.plan.n_waves(), "wave"));
    let convoy = staged.convoy.as_deref().map(|id| format!("{id} · ")).unwrap_or_default();
    format!("{convoy}{} · {tasks} across {waves}", status_word(staged))
}

fn status_word(staged: &Staged) -> &'static str {
    staged.status.map_or("error", gt_core::convoy::ConvoyStatus::as_str)
}

/// The tree, the waves, and what is to be said about them.
fn text(staged: &Staged) -> String {
    let width = fit::width();
    let view = View::staged(staged);
    let mut parts = vec![tree::draw(&view, width), table::draw(&view, width)];
    parts.extend(findings(&staged.graph, "Errors", RED, "✗", &staged.plan.errors));
    parts.extend(findings(&staged.graph, "Warnings", YELLOW, "!", &staged.plan.warnings));
    parts.extend(ending(staged));
    parts.join("\n\n")
}

/// What was stored, and what to type next.
fn ending(staged: &Staged) -> Option<String> {
    let (convoy, status) = (staged.convoy.as_deref()?, staged.status?);
    if !status.is_staged() {
        return None; // the launch says it
    }
    let again = if staged.is_restaged { " again" } else { "" };
    let force = if staged.plan.warnings.is_empty() { "" } else { " --force" };
    let title = fit::cut(&staged.title, fit::width().saturating_sub(40).max(20));
    Some(format!(
        "{} Staged{again}: {} {title} ({status})\n{}",
        paint(GREEN, "✓"),
        paint(BOLD, convoy),
        paint(DIM, &format!("  Nothing starts until `gt convoy launch {convoy}{force}`."))
    ))
}

fn findings(graph: &Graph, title: &str, style: anstyle::Style, sign: &str, found: &[Finding]) -> Option<String> {
    let mut lines = vec![paint(BOLD, title)];
    for finding in found {
        let (category, n) = (finding.category.as_str(), finding.beads.len());
        let all = if n > 1 { format!(" ({})", counted(n, "bead")) } else { String::new() };
        lines.push(format!("  {} {category}{all}: {}", paint(style, sign), finding.message));
        lines.push(paint(DIM, &format!("      → {}", finding.suggested_fix)));
    }
    debug_assert!(found.iter().all(|one| one.beads.iter().all(|at| (*at as usize) < graph.len())));
    (!found.is_empty()).then(|| lines.join("\n"))
}

/// What scripts rely on.
pub(super) fn to_json(staged: &Staged) -> Value {
    let (graph, plan) = (&staged.graph, &staged.plan);
    let view = View::staged(staged);
    let task = |at: &u32| {
        let spot = graph.spot(*at);
        json!({
            "id": spot.id,
            "title": spot.title,
            "type": spot.type_word(),
            "rig": view.rig(*at),
            "status": spot.status.as_str(),
            "blocked_by": view.waits_for(*at),
        })
    };
    let wave = |(before, tasks): (usize, &[u32])| json!({ "number": before + 1, "tasks": tasks.iter().map(task).collect::<Vec<_>>() });
    json!({
        "status": status_word(staged),
        "convoy_id": staged.convoy,
        "title": staged.title,
        "restaged": staged.is_restaged,
        "errors": plan.errors.iter().map(|error| finding_json(graph, error)).collect::<Vec<_>>(),
        "warnings": plan.warnings.iter().map(|warning| finding_json(graph, warning)).collect::<Vec<_>>(),
        "waves": plan.waves().enumerate().map(wave).collect::<Vec<_>>(),
        "gated": plan.gated.iter().map(|gated| json!({
            "id": graph.id(gated.bead),
            "title": graph.spot(gated.bead).title,
            "type": graph.spot(gated.bead).type_word(),
            "gated_by": gated.by.iter().map(|by| graph.id(*by)).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "tree": tree::to_json(&view),
    })
}

fn finding_json(graph: &Graph, finding: &Finding) -> Value {
    json!({
        "category": finding.category.as_str(),
        "bead_ids": finding.beads.iter().map(|at| graph.id(*at)).collect::<Vec<_>>(),
        "message": finding.message,
        "suggested_fix": finding.suggested_fix,
    })
}
