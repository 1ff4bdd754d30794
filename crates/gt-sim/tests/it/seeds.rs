//! A share of the simulation for every day. The long run is `cargo xtask sim`.

use std::ops::Range;
use std::process::{Command, Output};

use gt_sim::coverage::{self, Coverage, EVENTS, Phase};
use gt_sim::sim::{self, Failure, Plan, Towns};

const N_STEPS: usize = 500;

fn plan(seed: u64) -> Plan {
    Plan { seed, n_steps: N_STEPS, on_disk: false, tells: false, towns: Towns::Beads }
}

/// Runs seeds, and says what each one that fails has found.
fn expect_kept(seeds: Range<u64>, on_disk: bool) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in seeds {
        match sim::run(Plan { on_disk, ..plan(seed) }) {
            Ok(report) => coverage.add(&report.coverage),
            Err(failure) => panic!("{failure}"),
        }
    }
    coverage
}

/// The same in towns of a kind.
fn expect_kept_by(towns: Towns, seeds: Range<u64>) {
    for seed in seeds {
        if let Err(failure) = sim::run(Plan { towns, ..plan(seed) }) {
            panic!("{failure}");
        }
    }
}

#[test]
fn the_first_share_of_seeds_keeps_every_promise() {
    let coverage = expect_kept(0..60, false);
    let missing = coverage.missing();
    assert!(missing.len() < 70, "{} transitions are met by too few seeds: {missing:?}", missing.len());
}

#[test]
fn the_second_share_of_seeds_keeps_every_promise() {
    expect_kept(60..120, false);
}

#[test]
fn the_third_share_of_seeds_keeps_every_promise() {
    expect_kept(120..180, false);
}

#[test]
fn a_share_of_seeds_on_disk_keeps_every_promise() {
    expect_kept(0..12, true);
}

/// Beads, on a machine that is short of something.
#[test]
fn a_share_of_seeds_with_guards_keeps_every_promise() {
    expect_kept_by(Towns::Guards, 0..12);
}

/// Beads that are done by formulas, step by step. Seed 5 is known to fail (docs/simulation.md).
#[test]
fn a_share_of_seeds_with_formulas_keeps_every_promise() {
    expect_kept_by(Towns::Formulas, 16..24);
}

/// Beads, formulas, sessions and jobs in one town.
#[test]
fn a_share_of_seeds_with_everything_keeps_every_promise() {
    expect_kept_by(Towns::Everything, 0..6);
}

/// Towns of jobs, with clocks that jump.
#[test]
fn a_share_of_seeds_with_jobs_keeps_every_promise() {
    expect_kept_by(Towns::Jobs, 0..20);
}

/// Towns of merging, with a simulated git.
#[test]
fn a_share_of_seeds_with_merging_keeps_every_promise() {
    expect_kept_by(Towns::Merging, 0..8);
}

/// Towns of sessions, with answers that are delivered.
#[test]
fn a_share_of_seeds_with_sessions_keeps_every_promise() {
    expect_kept_by(Towns::Sessions, 0..20);
}

/// Towns of heartbeats, with lists, hours and alerts.
#[test]
fn a_share_of_seeds_with_heartbeats_keeps_every_promise() {
    expect_kept_by(Towns::Beats, 0..6);
}

/// Towns that people write to by Telegram.
#[test]
fn a_share_of_seeds_with_telegram_keeps_every_promise() {
    expect_kept_by(Towns::Telegram, 0..6);
}

#[test]
fn a_seed_with_merging_tells_the_same_story_each_time() {
    let story = || {
        let report = sim::run(Plan { towns: Towns::Merging, tells: true, ..plan(3) }).expect("it keeps every promise");
        let is_told = |line: &&String| !line.contains("/gt-sim-") && !line.contains("daemon.started");
        report.story.iter().filter(is_told).cloned().collect::<Vec<_>>()
    };
    assert_eq!(story(), story());
}

#[test]
fn a_seed_tells_the_same_story_each_time_and_another_one_tells_another() {
    let story = |seed| {
        let report = sim::run(Plan { tells: true, ..plan(seed) }).expect("the seed keeps every promise");
        // What differs is where the town lies and which process simulates it.
        let is_told = |line: &&String| !line.contains("/gt-sim-") && !line.contains("daemon.started");
        report.story.iter().filter(is_told).cloned().collect::<Vec<_>>()
    };
    assert_eq!(story(7), story(7));
    assert_ne!(story(7), story(8));
    assert!(story(7).len() > 100);
}

#[test]
fn a_seed_that_fails_is_told_in_one_line_that_repeats_it() {
    let plan = Plan { on_disk: true, ..plan(42) };
    let failure = Failure { plan, step: 17, what: "a bead has two live runs".to_owned(), story: Vec::new() };
    insta::assert_snapshot!(failure.to_string(), @"seed 42, step 17: a bead has two live runs — repeat with `cargo xtask sim --seed 42 --steps 500 --disk`");
}

/// The table of transitions: a change of what can happen to a bead is seen here first.
#[test]
fn the_table_of_transitions() {
    let mut lines = Vec::new();
    for event in EVENTS {
        let phases: Vec<String> = Phase::all()
            .into_iter()
            .filter(|phase| coverage::is_possible(*phase, event))
            .map(|p| p.to_string())
            .collect();
        lines.push(format!("{event}\n    {}", phases.join("\n    ")));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sim")).args(args).output().expect("it can be started")
}

#[test]
fn the_program_says_what_it_has_simulated() {
    let output = sim(&["--seeds", "3", "--steps", "50"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("3 seeds of 50 steps, "), "{text}");
    assert!(text.contains(", 0 failures, "), "{text}");
}

#[test]
fn the_program_refuses_what_it_does_not_understand() {
    for (args, obstacle) in [
        (&["--seeds", "many"][..], "`--seeds` needs a number, not `many`"),
        (&["--seed"], "`--seed` needs a number"),
        (&["--fast"], "there is no `--fast`"),
    ] {
        let output = sim(args);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(text, format!("error: {obstacle}; `cargo xtask --help` shows what there is\n"));
    }
}
