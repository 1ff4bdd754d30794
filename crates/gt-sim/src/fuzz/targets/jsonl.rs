//! A file of beads, taken in as `gt bead import` does it.
//!
//! Every line is taken or told with its number and a short reason. Afterwards the store is sound, whatever was there
//! before; the same file again changes nothing; what is written out comes back as the same bytes.

use gt_core::jsonl::{self, RowExtras};
use gt_core::text::{misleads, one_line};
use gt_engine::intake::{self, BeadFile};
use gt_store::{Filter, ImportOptions, ImportReport, Stamp, Store, StoreError};
use jiff::Timestamp;

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "jsonl", check, tokens: TOKENS };

/// What a person still reads of a line that was left out.
const REASON_CHARS_MAX: usize = 400;

const TOKENS: &[&str] = &[
    r#"{"id":"gt-1"}"#,
    r#""id":"gt-2","#,
    r#""id":null,"#,
    r#","status":"closed""#,
    r#","status":"pinned""#,
    r#","status":"tombstone""#,
    r#","status":"in_progress""#,
    r#","priority":-1"#,
    r#","issue_type":"epic""#,
    r#","assignee":"x""#,
    r#","gt_rig":"shop""#,
    r#","labels":["a","a","b"]"#,
    r#","dependencies":[{"depends_on_id":"gt-1","type":"blocks"}]"#,
    r#","dependencies":[{"depends_on_id":"gt-2","type":"parent-child"}]"#,
    r#","dependencies":[{"depends_on_id":"gt-3","type":"waits-for","metadata":"{\"gate\":\"any-children\"}"}]"#,
    r#",{"depends_on_id":"external:p:gt-1","type":"merge-blocks"}"#,
    r#",{"depends_on_id":"gt-1","type":"conditional-blocks"}"#,
    r#","comments":[{"id":1,"text":"t"}]"#,
    r#","updated_at":"2026-01-01T00:00:00Z""#,
    r#","updated_at":"2026-01-01T02:00:00.123456789+02:00""#,
    r#","defer_until":"9999-12-31T23:59:59Z""#,
    r#","defer_until":"2030-01-01T00:00:00Z""#,
    r#","closed_at":"0001-01-01T00:00:00Z""#,
    r#","merged_at":"x""#,
    r#","close_reason":"Merged in abc""#,
    r#","pinned":true"#,
    r#","ephemeral":true"#,
    r#","title":"t""#,
    r#","x":1"#,
    "gt-1",
    "gt-2",
    "gt-3",
    "blocks",
    "parent-child",
    "waits-for",
    "{\"id\":\"gt-4\"}\n",
    "null",
    "{}",
    "[]",
    ",",
    "}",
    "]",
];

fn check(bytes: &[u8]) -> Verdict {
    let file = intake::read(bytes, |_| {});
    accounts_for_every_line(bytes, &file);
    if file.beads.is_empty() {
        return Verdict::Refused;
    }
    let n_edges: usize = file.beads.iter().map(|one| one.bead.edges.len()).sum();
    let size_max = 6 * bytes.len() + 1_000 * file.beads.len() + 2_000 * n_edges;

    let mut town = Town::new();
    let report = town.import(bytes);
    assert_eq!(town.inspect(), report.created, "every new bead is there");
    assert_eq!((report.updated, report.kept_newer.len()), (0, 0), "nothing was there before");
    town.stays_the_same_after(bytes);
    town.shows_every_bead_safely();
    let written = town.export();
    assert!(written.len() <= size_max, "{} bytes became {}", bytes.len(), written.len());

    let mut copy = Town::new();
    copy.import(&written);
    assert_eq!(shown(&copy.export()), shown(&written), "written out, taken in and written out again");

    meets_an_older_town(bytes);
    Verdict::Accepted
}

fn accounts_for_every_line(bytes: &[u8], file: &BeadFile) {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let n_lines = lines.iter().filter(|line| !line.trim_ascii().is_empty()).count();
    let report = &file.report;
    assert_eq!(report.n_lines, n_lines, "every line with something on it counts");
    assert_eq!(file.beads.len() + report.n_no_bead + report.skipped.len(), n_lines, "taken or told");
    let mut numbers: Vec<usize> = file.beads.iter().map(|one| one.line).collect();
    numbers.extend(report.skipped.iter().map(|line| line.line));
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "no line is told of twice");
    assert!(numbers.iter().all(|number| (1..=lines.len()).contains(number)), "the lines are those of the file");
    for line in &report.skipped {
        let reason = &line.reason;
        assert!(!reason.is_empty() && !reason.contains(misleads), "line {} is refused with {reason:?}", line.line);
        let chars = reason.chars().count();
        assert!(chars <= REASON_CHARS_MAX, "line {} is refused with {chars} characters", line.line);
    }
}

/// One half of the file is there, then the other, then all of it: the ways on which edges meet what they wait for.
fn meets_an_older_town(bytes: &[u8]) {
    let half = bytes.len() / 2;
    let cut = bytes[half..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| half + at + 1);
    let mut town = Town::new();
    for part in [&bytes[cut..], &bytes[..cut], bytes] {
        town.import(part);
        town.inspect();
    }
    town.stays_the_same_after(bytes);
}

struct Town {
    store: Store,
    stamp: Stamp,
}

impl Town {
    fn new() -> Town {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().expect("this is a time");
        Town { store: Store::in_memory().expect("memory has room for a store"), stamp: Stamp::new(now, "fuzz") }
    }

    fn import(&mut self, bytes: &[u8]) -> ImportReport {
        let file = intake::read(bytes, |_| {});
        let options = ImportOptions::default();
        let (_, report) =
            intake::import(&mut self.store, file, &options, &self.stamp, |_| {}).expect("any file can be taken in");
        report
    }

    /// Looks for damage; returns how many beads there are.
    fn inspect(&mut self) -> usize {
        let found = self.store.inspect(self.stamp.now).expect("the store can be read");
        assert!(found.damage.is_empty(), "SQLite complains: {:?}", found.damage);
        assert!(found.disagreements.is_empty(), "readiness is wrong: {:?}", found.disagreements);
        assert!(found.ring_edges.is_empty(), "some wait for each other: {:?}", found.ring_edges);
        assert!(found.dispatch.is_empty(), "dispatch is wrong: {:?}", found.dispatch);
        found.n_beads
    }

    fn stays_the_same_after(&mut self, bytes: &[u8]) {
        let before = self.export();
        let again = self.import(bytes);
        assert_eq!((again.created, again.updated), (0, 0), "the same file again changes nothing");
        assert_eq!(shown(&self.export()), shown(&before), "the same file again changes nothing");
    }

    fn export(&mut self) -> Vec<u8> {
        let mut written = Vec::new();
        let done = self.store.each_bead(|bead| {
            written.extend_from_slice(jsonl::to_line(bead).as_bytes());
            written.push(b'\n');
            Ok::<(), StoreError>(())
        });
        done.expect("the store can be read");
        written
    }

    /// Ids are printed as they are, so nothing in them may drive a terminal; a row is always JSON.
    fn shows_every_bead_safely(&mut self) {
        let everything = Filter { all: true, ..Filter::default() };
        let listing = self.store.list(&everything, 0).expect("the store can be read");
        for view in listing.beads {
            let ids = view.blocked_by.iter().chain([&view.bead.id]);
            ids.for_each(|id| assert_eq!(*id, one_line(id), "an id is safe to show"));
            let extras = RowExtras { rig: None, blocked_by: &view.blocked_by, n_dependents: view.n_dependents };
            let row = jsonl::to_row(&view.bead, &extras);
            assert!(!row.get().contains('\n'), "a row is one line");
            jsonl::comment_rows(&view.bead);
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
