//! `gt bead`: one file per verb; this one lists them. // SPEC B1

pub(crate) mod blocked;
pub(crate) mod close;
pub(crate) mod comment;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod dep;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod label;
pub(crate) mod list;
pub(crate) mod ready;
pub(crate) mod reopen;
pub(crate) mod show;
mod texts;
pub(crate) mod update;

use std::collections::HashSet;

use clap::{Args, Subcommand};
use gt_core::status::{Status, TYPES, unalias_type};
use gt_core::{near, text};
use gt_engine::Town;
use gt_store::{Changed, Store};
use serde_json::json;

use super::{activity, formula};
use crate::context::{Context, daemon_runs, variable};
use crate::failure::Failure;
use crate::render::{self, DIM, GREEN, paint};

/// How many ids are named in a row; --json names all.
const NAMED_MAX: usize = 20;

/// Write down, change and look at work
///
/// A bead is a work item. Beads depend on each other; one that nothing holds back is ready.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead create \"Fix the login\" --priority 1
  gt bead dep add gt-b2 gt-a1     gt-b2 waits for gt-a1
  gt bead ready
  gt bead import .beads/issues.jsonl --rig gastown")]
pub(crate) struct BeadArgs {
    #[command(subcommand)]
    pub(crate) command: BeadCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BeadCommand {
    Create(create::CreateArgs),
    Show(show::ShowArgs),
    List(list::ListArgs),
    Update(Box<update::UpdateArgs>),
    Close(close::CloseArgs),
    Reopen(reopen::ReopenArgs),
    Delete(delete::DeleteArgs),
    Ready(ready::ReadyArgs),
    Blocked(blocked::BlockedArgs),
    Dep(dep::DepArgs),
    Label(label::LabelArgs),
    Comment(comment::CommentArgs),
    Cook(formula::CookArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Activity(activity::ActivityArgs),
}

pub(crate) fn run(context: &Context, args: BeadArgs) -> Result<(), Failure> {
    match args.command {
        BeadCommand::Create(args) => create::run(context, args),
        BeadCommand::Show(args) => show::run(context, &args),
        BeadCommand::List(args) => list::run(context, args),
        BeadCommand::Update(args) => update::run(context, *args),
        BeadCommand::Close(args) => close::run(context, &args),
        BeadCommand::Reopen(args) => reopen::run(context, &args),
        BeadCommand::Delete(args) => delete::run(context, &args),
        BeadCommand::Ready(args) => ready::run(context, args),
        BeadCommand::Blocked(args) => blocked::run(context, &args),
        BeadCommand::Dep(args) => dep::run(context, args),
        BeadCommand::Label(args) => label::run(context, args),
        BeadCommand::Comment(args) => comment::run(context, args),
        BeadCommand::Cook(args) => formula::cook(context, &args),
        BeadCommand::Import(args) => import::run(context, &args),
        BeadCommand::Export(args) => export::run(context, &args),
        BeadCommand::Activity(args) => activity::run(context, &args),
    }
}

/// Reads `2` or `P2`.
pub(crate) fn parse_priority(word: &str) -> Result<i64, String> {
    match word.trim_start_matches(['P', 'p']).parse() {
        Ok(priority @ 0..=4) => Ok(priority),
        _ => Err("a priority is 0 (most urgent) to 4".to_owned()),
    }
}

/// Reads a type, with a suggestion for a mistyped one.
pub(crate) fn parse_type(word: &str) -> Result<String, String> {
    let full = unalias_type(word);
    if TYPES.contains(&full) {
        return Ok(full.to_owned());
    }
    let near = near::closest(word, TYPES);
    let advice =
        near.first().map_or_else(|| format!("use one of {}", TYPES.join(", ")), |near| format!("did you mean {near}?"));
    Err(format!("there is no such type; {advice}"))
}

/// What to say when a filter finds nothing: that a word of it is probably mistyped, or the usual.
fn nothing_matches(statuses: &[String], issue_type: Option<&str>, otherwise: &str) -> String {
    let mistyped = |what: &str, word: &str, known: Vec<&'static str>| {
        let near = near::closest(word, known.iter().copied().filter(|_| !known.contains(&word)));
        near.first().map(|near| format!("No bead has the {what} {}; did you mean {near}?", text::one_line(word)))
    };
    let status = |word: &String| mistyped("status", word, Status::NAMED.iter().map(Status::as_str).collect());
    let by_type = issue_type.and_then(|word| mistyped("type", unalias_type(word), TYPES.to_vec()));
    statuses.iter().find_map(status).or(by_type).unwrap_or_else(|| otherwise.to_owned())
}

/// Checks a longer text and returns it.
pub(crate) fn checked_body(what: &'static str, words: String) -> Result<String, Failure> {
    text::check_body(what, &words)?;
    Ok(words)
}

/// Checks a short word and returns it.
fn checked_word(what: &'static str, word: String) -> Result<String, Failure> {
    text::check_word(what, &word)?;
    Ok(word)
}

/// How a change is told: what was done, and how a bead is that needed nothing.
struct Words {
    done: &'static str,
    already: &'static str,
}

/// Says what a change did: which beads, and what became ready by it.
fn report_change(context: &Context, asked: &[String], changed: &Changed, words: &Words) -> Result<(), Failure> {
    if context.wants_json() {
        return context.json(&json!({ "changed": changed.beads, "became_ready": changed.became_ready }));
    }
    for id in asked {
        context.say(&match (changed.beads.contains(id), context.is_dry_run()) {
            (true, false) => format!("{id} {}.", words.done),
            (true, true) => format!("{id} would be {}.", words.done),
            (false, _) => format!("{id} is {} already; nothing was changed.", words.already),
        })?;
    }
    if !changed.became_ready.is_empty() {
        say_ready(context, &changed.became_ready)?;
    }
    Ok(())
}

/// Says what a change makes ready.
fn say_ready(context: &Context, ready: &[String]) -> Result<(), Failure> {
    let words = if context.is_dry_run() { "Would be ready:" } else { "Now ready:" };
    context.say(&format!("{} {}", paint(GREEN, words), named(ready)))
}

/// Notes who still works on beads that were closed or deleted, and what becomes of that. An agent knows that of itself.
fn note_workers(context: &Context, town: &Town, store: &mut Store, beads: &[String]) -> Result<(), Failure> {
    let own = variable("GT_RUN");
    let runs = store.live_runs()?;
    for run in runs.iter().filter(|run| beads.contains(&run.bead) && own.as_ref() != Some(&run.id)) {
        let who = format!("{}/{}", run.rig, run.polecat);
        let commits = match run.branch.as_deref() {
            Some(branch) => format!("; what it has committed stays on branch {}, unmerged", text::one_line(branch)),
            None => String::new(),
        };
        let (still, end) = match (context.is_dry_run(), daemon_runs(town)) {
            (true, _) => ("would still work", "the daemon would end it within 10 s"),
            (false, true) => ("still works", "the daemon ends it within 10 s"),
            (false, false) => ("still works", "no daemon runs that would end it"),
        };
        context.note(&format!(
            "note: {who} {still} on {}: {end}{commits}\nhint: stop it now with `gt polecat stop {who} --run {}`",
            run.bead, run.id
        ));
    }
    Ok(())
}

/// The first ids of a list, and how many more there are.
fn named(ids: &[String]) -> String {
    match ids.split_at_checked(NAMED_MAX) {
        Some((first, rest)) if !rest.is_empty() => format!("{} and {} more", first.join(", "), rest.len()),
        _ => ids.join(", "),
    }
}

/// Every id once, in the order in which they were given.
pub(crate) fn once(ids: &[String]) -> Vec<String> {
    let mut met = HashSet::new();
    ids.iter().filter(|id| met.insert(id.as_str())).cloned().collect()
}

/// Prints a list, with a word on what the limit left out.
fn print_listing(context: &Context, listing: &gt_store::Listing, empty: &str) -> Result<(), Failure> {
    if context.wants_json() {
        context.json(&render::rows(listing))?;
    } else if listing.beads.is_empty() {
        context.say(empty)?;
    } else {
        context.say(&render::lines(&listing.beads, context.now()))?;
    }
    if listing.more {
        context.note(&paint(DIM, "There are more; `--limit 0` shows all."));
    }
    Ok(())
}
