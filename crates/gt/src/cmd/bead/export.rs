//! `gt bead export`.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use gt_core::jsonl;
use gt_engine::{unwritten, whole_file, without_temporary_name};
use gt_store::{Store, StoreError};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Kind};

/// Write every bead as a line of JSON
///
/// The form is that of .beads/issues.jsonl; fields we do not know are written as they came.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt bead export > issues.jsonl
  gt bead export --output issues.jsonl     a whole file or none")]
pub(crate) struct ExportArgs {
    /// Write to this file, all or nothing, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &ExportArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    match &args.output {
        Some(path) => to_file(context, &mut store, path),
        None => match write_all(&mut store, io::stdout().lock()) {
            Err(Stopped::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map(|_| ()).map_err(|stopped| stopped.at("the export")),
        },
    }
}

fn to_file(context: &Context, store: &mut Store, path: &Path) -> Result<(), Failure> {
    let shown = path.display().to_string();
    let n_beads = write_to(store, path, context.is_dry_run()).map_err(|stopped| stopped.at(&shown))?;
    if context.wants_json() {
        return context.json(&json!({ "file": shown, "beads": n_beads, "dry_run": context.is_dry_run() }));
    }
    let verb = if context.is_dry_run() { "Would write" } else { "Wrote" };
    context.say(&format!("{verb} {n_beads} {} to {shown}.", if n_beads == 1 { "bead" } else { "beads" }))
}

/// The file to replace as a whole; `None` for what is no file, such as a pipe, which is written into.
fn file_at(path: &Path) -> Result<Option<PathBuf>, Stopped> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(None);
    }
    let target = whole_file::follow(path)?;
    let dir = whole_file::directory(&target);
    if dir.is_dir() { Ok(Some(target)) } else { Err(Stopped::NoDirectory(dir.to_owned())) }
}

fn write_to(store: &mut Store, path: &Path, is_dry_run: bool) -> Result<usize, Stopped> {
    match file_at(path)? {
        _ if is_dry_run => write_all(store, io::sink()),
        Some(target) => whole_file::replace(&target, |file| write_all(store, file)),
        None => write_all(store, OpenOptions::new().write(true).open(path)?),
    }
}

enum Stopped {
    NoDirectory(PathBuf),
    Io(io::Error),
    Store(StoreError),
}

impl Stopped {
    /// The failure to write what is called `name`.
    fn at(self, name: &str) -> Failure {
        match self {
            Stopped::Store(error) => error.into(),
            Stopped::NoDirectory(dir) => {
                let message = format!("cannot write {name}: there is no directory {}", dir.display());
                Failure::new(Kind::NotFound, message).hint(format!("make it with `mkdir -p {}`", dir.display()))
            }
            Stopped::Io(error) => {
                let hint = unwritten(&error);
                let message = format!("cannot write {name}: {}", without_temporary_name(error));
                Failure::new(Kind::Refused, message).hint(hint)
            }
        }
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Io(error)
    }
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Stopped {
        Stopped::Store(error)
    }
}

fn write_all(store: &mut Store, out: impl Write) -> Result<usize, Stopped> {
    let mut out = BufWriter::new(out);
    let mut n_beads = 0;
    store.each_bead(|bead| {
        n_beads += 1;
        writeln!(out, "{}", jsonl::to_line(bead)).map_err(Stopped::Io)
    })?;
    out.flush()?;
    Ok(n_beads)
}
