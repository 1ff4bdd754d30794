//! What the tool prints at the end.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::judge::Violation;

/// So many violations of one promise are shown; the rest is in the file.
const SHOWN_MAX: usize = 8;

/// Counts and broken promises of one run.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    pub runtime: &'static str,
    pub has_disk: bool,
    pub length: Duration,
    pub settled_in: Duration,
    pub counts: BTreeMap<&'static str, u64>,
    pub violations: Vec<Violation>,
    pub was_interrupted: bool,
    /// Where the town and the evidence are, if they were kept.
    pub kept: Option<(PathBuf, PathBuf)>,
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// All violations, for the file beside the town.
    pub(crate) fn list(&self) -> String {
        let lines: Vec<String> =
            self.violations.iter().map(|found| format!("{}: {}", found.promise, found.detail)).collect();
        lines.join("\n") + "\n"
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |span: Duration| format!("{:.0} s", span.as_secs_f64());
        writeln!(f, "chaos: seed {}, runtime {}, {} of load", self.seed, self.runtime, seconds(self.length))?;
        for (what, n) in &self.counts {
            writeln!(f, "{n:>8}  {what}")?;
        }
        if !self.has_disk {
            writeln!(f, "Full disks were left out: give `--disk DIR`.")?;
        }
        if self.was_interrupted {
            return writeln!(f, "Interrupted: nothing was judged.");
        }
        writeln!(f, "The town settled in {}.", seconds(self.settled_in))?;
        let mut promises: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for found in &self.violations {
            promises.entry(found.promise).or_default().push(&found.detail);
        }
        for (promise, details) in &promises {
            writeln!(f, "BROKEN ({}): {promise}", details.len())?;
            for detail in details.iter().take(SHOWN_MAX) {
                writeln!(f, "  - {detail}")?;
            }
            if details.len() > SHOWN_MAX {
                writeln!(f, "  … and {} more", details.len() - SHOWN_MAX)?;
            }
        }
        match &self.kept {
            Some((town, evidence)) => {
                writeln!(f, "{} violations; to look at them:", self.violations.len())?;
                writeln!(f, "  evidence: {}", evidence.display())?;
                writeln!(f, "  town:     {}", town.display())
            }
            None => writeln!(f, "No promise was broken."),
        }
    }
}
