//! `gt bead export`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use gt_core::jsonl;
use gt_engine::without_temporary_name;
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
    let Some(path) = &args.output else {
        return match write_all(&mut store, io::stdout().lock()) {
            Ok(_) => Ok(()),
            Err(Stopped::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(Stopped::Io(error)) => Err(Failure::new(Kind::Refused, format!("cannot write the export: {error}"))),
            Err(Stopped::Store(error)) => Err(error.into()),
        };
    };
    let failed = |error: io::Error| {
        let error = without_temporary_name(error);
        Failure::new(Kind::Refused, format!("cannot write {}: {error}", path.display()))
    };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
    if !dir.is_dir() {
        let message = format!("cannot write {}: there is no directory {}", path.display(), dir.display());
        return Err(Failure::new(Kind::NotFound, message));
    }
    let mut file = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
    let n_beads = write_all(&mut store, &mut file).map_err(|stopped| match stopped {
        Stopped::Io(error) => failed(error),
        Stopped::Store(error) => error.into(),
    })?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    if context.wants_json() {
        return context.json(&json!({ "file": path.display().to_string(), "beads": n_beads }));
    }
    context.say(&format!("Wrote {n_beads} beads to {}.", path.display()))
}

enum Stopped {
    Io(io::Error),
    Store(StoreError),
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
    out.flush().map_err(Stopped::Io)?;
    Ok(n_beads)
}
