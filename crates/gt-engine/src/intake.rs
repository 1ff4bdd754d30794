//! Reading a file of beads and taking it in, with a report of everything that was met. // SPEC B2

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use gt_core::edge::EdgeType;
use gt_core::jsonl::{self, BadLine, Line};
use gt_core::status::Status;
use gt_store::{ImportBead, ImportOptions, ImportReport, Stamp, Store};

use crate::error::TownError;

/// Smaller files are not worth a second thread.
const CHUNK_BYTES_MIN: usize = 128 * 1024;

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

/// Reads every line, on all cores; `progress` hears how many bytes are done.
pub fn read(bytes: &[u8], progress: impl Fn(usize) + Sync) -> BeadFile {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let n_done = AtomicUsize::new(0);
    let read_chunk = |chunk: Chunk<'_>| {
        let mut file = BeadFile::default();
        for (at, line) in chunk.bytes.split(|byte| *byte == b'\n').enumerate() {
            file.take(chunk.first_line + at, line);
            progress((n_done.fetch_add(line.len() + 1, Ordering::Relaxed) + line.len() + 1).min(bytes.len()));
        }
        file
    };
    let chunks = chunks(bytes, n_threads);
    std::thread::scope(|scope| {
        let readers: Vec<_> = chunks.into_iter().map(|chunk| scope.spawn(move || read_chunk(chunk))).collect();
        let mut files = readers.into_iter().map(|reader| reader.join().expect("reading a line never panics"));
        let first = files.next().unwrap_or_default();
        files.fold(first, BeadFile::followed_by)
    })
}

/// A run of whole lines.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    bytes: &'a [u8],
    first_line: usize,
}

/// Cuts a file into about equal parts, between lines.
#[expect(clippy::naive_bytecount, reason = "one pass over a file that is parsed anyway is not worth a crate")]
fn chunks(bytes: &[u8], n_parts: usize) -> Vec<Chunk<'_>> {
    let size = (bytes.len() / n_parts).max(CHUNK_BYTES_MIN);
    let mut chunks = Vec::new();
    let (mut rest, mut first_line) = (bytes, 1);
    while !rest.is_empty() {
        let end = rest.iter().skip(size).position(|byte| *byte == b'\n').map_or(rest.len(), |at| size + at + 1);
        let (chunk, after) = rest.split_at(end);
        chunks.push(Chunk { bytes: chunk.strip_suffix(b"\n").unwrap_or(chunk), first_line });
        first_line += chunk.iter().filter(|byte| **byte == b'\n').count();
        rest = after;
    }
    chunks
}

impl BeadFile {
    fn take(&mut self, number: usize, bytes: &[u8]) {
        if bytes.trim_ascii().is_empty() {
            return;
        }
        self.report.n_lines += 1;
        let bytes = if number == 1 { bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes) } else { bytes };
        let line = str::from_utf8(bytes).map_err(|_| BadLine::NotUtf8).and_then(|text| jsonl::parse_line(text.trim()));
        match line {
            Ok(Line::Bead { bead, n_bad_edges }) => {
                self.report.note(&bead, n_bad_edges);
                self.beads.push(ImportBead { line: number, bead });
            }
            Ok(Line::NoBead) => self.report.n_no_bead += 1,
            Err(reason) => self.report.skipped.push(SkippedLine { line: number, reason: reason.to_string() }),
        }
    }

    /// Joins the file with its next part.
    fn followed_by(mut self, next: BeadFile) -> BeadFile {
        self.beads.extend(next.beads);
        self.report.add(next.report);
        self
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
    fn add(&mut self, other: FileReport) {
        self.n_lines += other.n_lines;
        self.skipped.extend(other.skipped);
        self.n_no_bead += other.n_no_bead;
        self.n_tombstones += other.n_tombstones;
        self.n_wrapped += other.n_wrapped;
        self.n_bad_edges += other.n_bad_edges;
        for (word, count) in other.unknown_edge_types {
            *self.unknown_edge_types.entry(word).or_default() += count;
        }
    }

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
