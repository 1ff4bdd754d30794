//! Reading a file of beads and taking it in, with a report of everything that was met. // SPEC B2

use std::collections::BTreeMap;

use gt_core::edge::EdgeType;
use gt_core::jsonl::{self, BadLine, Line};
use gt_core::status::Status;
use gt_store::{ImportBead, ImportOptions, ImportReport, Stamp, Store};

use crate::error::TownError;

/// A line that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLine {
    pub line: usize,
    pub reason: String,
}

/// What a file held, before the town had a say.
#[derive(Debug, Clone, Default)]
pub struct FileReport {
    pub n_lines: usize,
    pub skipped: Vec<SkippedLine>,
    /// Objects without an id.
    pub n_no_bead: usize,
    pub n_tombstones: usize,
    /// Targets written as `external:project:id`.
    pub n_wrapped: usize,
    /// Dependencies that name no target.
    pub n_bad_edges: usize,
    pub unknown_edge_types: BTreeMap<String, usize>,
}

/// A file, read and judged.
#[derive(Debug, Default)]
pub struct BeadFile {
    pub beads: Vec<ImportBead>,
    pub report: FileReport,
}

/// Reads every line; `progress` hears how many bytes are done.
pub fn read(bytes: &[u8], mut progress: impl FnMut(usize)) -> BeadFile {
    let mut file = BeadFile::default();
    let mut n_bytes = 0;
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        n_bytes += line.len() + 1;
        if !line.trim_ascii().is_empty() {
            file.take(at + 1, line);
            progress(n_bytes.min(bytes.len()));
        }
    }
    file
}

impl BeadFile {
    fn take(&mut self, number: usize, bytes: &[u8]) {
        self.report.n_lines += 1;
        let bytes = if number == 1 { bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes) } else { bytes };
        let line = str::from_utf8(bytes).map_err(|_| BadLine::NotUtf8).and_then(|text| jsonl::parse_line(text.trim()));
        match line {
            Ok(Line::Bead { bead, n_bad_edges }) => {
                self.report.note(&bead, n_bad_edges);
                self.beads.push(ImportBead { line: number, bead: *bead });
            }
            Ok(Line::NoBead) => self.report.n_no_bead += 1,
            Err(reason) => self.report.skipped.push(SkippedLine { line: number, reason: reason.to_string() }),
        }
    }

    /// The error of a strict import, if there is a bad line.
    pub fn refuse_bad_lines(&self) -> Result<(), TownError> {
        match self.report.skipped.first() {
            None => Ok(()),
            Some(first) => Err(TownError::BadLines {
                n_bad: self.report.skipped.len(),
                n_lines: self.report.n_lines,
                line: first.line,
                reason: first.reason.clone(),
            }),
        }
    }
}

impl FileReport {
    fn note(&mut self, bead: &gt_core::bead::Bead, n_bad_edges: usize) {
        self.n_bad_edges += n_bad_edges;
        self.n_tombstones += usize::from(bead.status == Status::Tombstone);
        for edge in &bead.edges {
            self.n_wrapped += usize::from(edge.extra.get("depends_on_id").is_some());
            if let EdgeType::Other(word) = &edge.kind
                && !edge.kind.is_known()
            {
                *self.unknown_edge_types.entry(word.clone()).or_default() += 1;
            }
        }
    }
}

/// Writes a file's beads into the town.
pub fn import(
    store: &mut Store,
    file: BeadFile,
    options: &ImportOptions,
    stamp: &Stamp,
    progress: impl FnMut(usize),
) -> Result<(FileReport, ImportReport), TownError> {
    let report = store.import(file.beads, options, stamp, progress)?;
    Ok((file.report, report))
}
