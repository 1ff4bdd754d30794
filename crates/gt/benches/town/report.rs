//! The figures as Markdown, and the limits they must keep.

use std::fmt::Write;
use std::time::Duration;

use crate::process::Processes;
use crate::verbs::{Measured, Pair};

#[derive(Default)]
pub(crate) struct Report {
    text: String,
    limits: Vec<Limit>,
}

/// Something that must stay at or below a number.
pub(crate) struct Limit {
    name: String,
    value: f64,
    most: f64,
}

impl Limit {
    pub(crate) fn at_most(name: &str, value: f64, most: f64) -> Limit {
        Limit { name: name.to_owned(), value, most }
    }

    /// The largest town must cost no more than 1.5 times the smallest.
    pub(crate) fn flat(name: &str, small: Duration, large: Duration) -> Limit {
        Limit::at_most(&format!("{name}, largest town to smallest"), large.as_secs_f64() / small.as_secs_f64(), 1.5)
    }

    fn is_met(&self) -> bool {
        self.value <= self.most
    }
}

impl Report {
    pub(crate) fn verbs(&mut self, measured: &[Measured]) {
        self.text.push_str("| what | beads | gt | raw SQLite | ratio |\n|---|--:|--:|--:|--:|\n");
        for one in measured {
            self.row("import", one.size, one.import);
        }
        for one in measured {
            self.row("import, beside tables without indexes", one.size, one.import_plain);
        }
        for one in measured {
            self.row("ready, first 100", one.size, one.ready);
        }
        for one in measured {
            self.row("show", one.size, one.show);
        }
        for one in measured {
            self.row("show, first look", one.size, one.first_look);
        }
        for at in 0..measured[0].close.len() {
            for one in measured {
                let (n_dependents, pair) = one.close[at];
                self.row(&format!("close with {n_dependents} dependents"), one.size, pair);
            }
        }
    }

    fn row(&mut self, what: &str, size: usize, pair: Pair) {
        let (ours, raw) = (show(pair.ours), show(pair.raw));
        self.line(&format!("| {what} | {size} | {ours} | {raw} | {:.2} |", pair.ratio()));
    }

    pub(crate) fn processes(&mut self, processes: &Processes) {
        self.text.push_str("\n| whole process | median |\n|---|--:|\n");
        self.line(&format!("| `/bin/true` | {} |", show(processes.bin_true)));
        self.line(&format!("| `gt --version` | {} |", show(processes.version)));
        self.line(&format!("| `gt bead show`, smallest town | {} |", show(processes.show_small)));
        self.line(&format!("| `gt bead show`, largest town | {} |", show(processes.show_large)));
    }

    pub(crate) fn limit(&mut self, limit: Limit) {
        self.limits.push(limit);
    }

    pub(crate) fn all_met(&self) -> bool {
        self.limits.iter().all(Limit::is_met)
    }

    pub(crate) fn print(&mut self) {
        self.text.push_str("\n| limit | most | measured | |\n|---|--:|--:|---|\n");
        for limit in std::mem::take(&mut self.limits) {
            let verdict = if limit.is_met() { "met" } else { "**not met**" };
            self.line(&format!("| {} | {:.1} | {:.2} | {verdict} |", limit.name, limit.most, limit.value));
            self.limits.push(limit);
        }
        println!("{}", self.text);
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("writing to a string cannot fail");
    }
}

fn show(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1e3 => format!("{micros:.0} µs"),
        ..1e6 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}
