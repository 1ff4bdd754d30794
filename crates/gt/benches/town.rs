//! `cargo bench`: does cost follow the change, and how far are we from SQLite itself?
//!
//! Every figure stands beside raw SQLite doing the same number of row writes (or reads) on the same disk in the
//! same run; only the ratios mean anything. Prints Markdown for `docs/benchmarks.md`; exits with 1 when a limit is
//! not met. `cargo bench -- --quick` leaves the largest town out.

#[path = "town/process.rs"]
mod process;
#[path = "town/raw.rs"]
mod raw;
#[path = "town/report.rs"]
mod report;
#[path = "town/synthetic.rs"]
mod synthetic;
#[path = "town/verbs.rs"]
mod verbs;

use report::{Limit, Report};
use verbs::Measured;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let sizes: &[usize] = if is_quick { &[1_000, 100_000] } else { &[1_000, 100_000, 1_000_000] };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut report = Report::default();
    let measured: Vec<Measured> = sizes
        .iter()
        .map(|size| {
            eprintln!("measuring a town of {size} beads …");
            verbs::measure(&dir.path().join(size.to_string()), *size)
        })
        .collect();
    report.verbs(&measured);
    let (small, large) = (&measured[0], &measured[measured.len() - 1]);
    report.limit(Limit::flat("ready (first 100)", small.ready.ours, large.ready.ours));
    report.limit(Limit::flat("show", small.show.ours, large.show.ours));
    for one in &measured {
        report.limit(Limit::at_most(&format!("import of {}", one.size), one.import.ratio(), 3.0));
        report.limit(Limit::at_most(
            &format!("close at {}: one dependent more among 10,000, to among 1,000", one.size),
            one.growth(),
            1.5,
        ));
    }
    for at in 0..small.close.len() {
        let name = format!("close with {} dependents, largest town to smallest", small.close[at].0);
        report.limit(Limit::at_most(
            &name,
            large.close[at].1.ours.as_secs_f64() / small.close[at].1.ours.as_secs_f64(),
            1.5,
        ));
    }
    eprintln!("timing whole processes …");
    let processes = process::measure((&small.town, small.size), (&large.town, large.size));
    report.processes(&processes);
    report.limit(Limit::at_most("`gt --version` to `/bin/true`", processes.version_ratio(), 4.0));
    report.limit(Limit::at_most("`gt bead show`, largest town to smallest", processes.show_ratio(), 1.5));
    report.print();
    if !report.all_met() {
        std::process::exit(1);
    }
}
