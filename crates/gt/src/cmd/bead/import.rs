//! `gt bead import`. // SPEC B2

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use gt_core::text::one_line;
use gt_engine::intake::{self, FileReport};
use gt_store::{ImportOptions, ImportReport};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Kind};

/// How many of a list are named in the report; --json names all.
const NAMED_MAX: usize = 5;
/// How many lines are named by number alone.
const NUMBERS_MAX: usize = 100;

/// Take in beads from a JSONL file
///
/// Reads .beads/issues.jsonl and its relatives. The last line of an id counts; a line that cannot be read is
/// skipped and reported; an edge that would close a cycle is left out and reported. A bead that was changed here
/// after the file's version stays as it is. Importing twice changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead import .beads/issues.jsonl
  gt bead import .beads/issues.jsonl --rig gastown
  gt bead import - --strict < issues.jsonl")]
pub(crate) struct ImportArgs {
    /// The file, or - for standard input
    file: PathBuf,
    /// Bind every bead of the file to this rig, whatever its prefix
    #[arg(long, value_name = "NAME")]
    rig: Option<String>,
    /// Write nothing if a line cannot be read
    #[arg(long)]
    strict: bool,
    /// Take the file's word even where a bead here is newer
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run(context: &Context, args: &ImportArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let bytes = read(&args.file)?;
    let bar = bar(context, bytes.len(), "reading");
    let file = intake::read(&bytes, |done| bar.set_position(done as u64));
    bar.finish_and_clear();
    if args.strict {
        file.refuse_bad_lines()?;
    }
    let options = ImportOptions { rig: args.rig.clone(), overwrite: args.overwrite };
    let bar = self::bar(context, file.beads.len(), "writing");
    let (file, town) =
        intake::import(&mut store, file, &options, &context.stamp(), |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    if context.wants_json() {
        return context.json(&report_json(&file, &town, context.is_dry_run()));
    }
    context.say(&report_text(context, args, &file, &town))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let outcome = if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    outcome.map_err(|error| unread(path, &error))
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    let (kind, hint) = match error.kind() {
        ErrorKind::NotFound => (Kind::NotFound, "give a file that is there, or `-` for standard input"),
        ErrorKind::IsADirectory => (Kind::Refused, "give a file in it, such as .beads/issues.jsonl"),
        _ => (Kind::Refused, "see that you may read it"),
    };
    Failure::new(kind, format!("cannot read {}: {error}", path.display())).hint(hint)
}

fn bar(context: &Context, length: usize, doing: &'static str) -> ProgressBar {
    if !context.is_watched() || length < 1000 {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}%").unwrap_or(ProgressStyle::default_bar());
    ProgressBar::new(length as u64).with_style(style).with_message(doing)
}

fn report_json(file: &FileReport, town: &ImportReport, dry_run: bool) -> serde_json::Value {
    json!({
        "dry_run": dry_run,
        "lines": file.n_lines,
        "created": town.created,
        "updated": town.updated,
        "unchanged": town.unchanged,
        "kept_newer": town.kept_newer,
        "duplicates": town.duplicates,
        "skipped": file.skipped.iter().map(|line| json!({ "line": line.line, "reason": line.reason })).collect::<Vec<_>>(),
        "without_id": file.n_no_bead,
        "tombstones": file.n_tombstones,
        "dangling": town.dangling,
        "wrapped": file.n_wrapped,
        "bad_dependencies": file.n_bad_edges,
        "unknown_types": file.unknown_edge_types,
        "dropped_edges": town.dropped_edges.iter().map(|(source, target)| json!([source, target])).collect::<Vec<_>>(),
    })
}

fn report_text(context: &Context, args: &ImportArgs, file: &FileReport, town: &ImportReport) -> String {
    let verb = if context.is_dry_run() { "Would import" } else { "Imported" };
    let name = if args.file == Path::new("-") { "standard input".to_owned() } else { args.file.display().to_string() };
    let mut text =
        format!("{verb} {name}: {} new, {} changed, {} as they were.", town.created, town.updated, town.unchanged);
    let mut met = |what: &str, count: usize, examples: Vec<String>| {
        if count > 0 {
            let more = if examples.len() > NAMED_MAX { "; …" } else { "" };
            let named = examples.into_iter().take(NAMED_MAX).collect::<Vec<_>>().join("; ");
            let named = if named.is_empty() { named } else { format!(" ({named}{more})") };
            text.extend([format!("\n  {what}: {count}{named}")]);
        }
    };
    met("lines skipped, because they cannot be read", file.skipped.len(), skipped(file));
    met("beads kept, because they were changed here later", town.kept_newer.len(), town.kept_newer.clone());
    met("earlier lines of an id that comes again", town.duplicates, Vec::new());
    met("records without an id, which are no beads", file.n_no_bead, Vec::new());
    let dropped = town.dropped_edges.iter().map(|(source, target)| format!("{source} → {target}")).collect();
    met("dependencies left out, because they close a cycle", town.dropped_edges.len(), dropped);
    met("dependencies left out, because they name no target", file.n_bad_edges, Vec::new());
    met("dependencies on beads that are not here", town.dangling, Vec::new());
    met("dependencies written as external:…", file.n_wrapped, Vec::new());
    let unknown = file.unknown_edge_types.iter().map(|(word, count)| format!("{}: {count}", one_line(word))).collect();
    met("dependencies of unknown type, which never block", file.unknown_edge_types.values().sum(), unknown);
    met("deleted beads (tombstones)", file.n_tombstones, Vec::new());
    text
}

/// The first lines with their reasons, then the numbers of the others.
fn skipped(file: &FileReport) -> Vec<String> {
    let (first, others) = file.skipped.split_at(file.skipped.len().min(NAMED_MAX - 1));
    let mut named: Vec<String> = first.iter().map(|line| format!("line {}: {}", line.line, line.reason)).collect();
    let numbers: Vec<String> = others.iter().take(NUMBERS_MAX).map(|line| line.line.to_string()).collect();
    let more = others.len().saturating_sub(NUMBERS_MAX);
    match (numbers.as_slice(), more) {
        ([], _) => {}
        (numbers, 0) => named.push(format!("also {}", numbers.join(", "))),
        (numbers, more) => named.push(format!("also {} and {more} more, which `--json` names", numbers.join(", "))),
    }
    named
}
