//! The real `xtask mutants` on a few defects that are found soon, so that the way from the list to a verdict stays whole.
//!
//! Owns: that the build with defects works, that without a defect it breaks nothing, and that the answer is in the exit
//! status. That every defect is found takes minutes: it is `cargo xtask mutants` itself.

use std::process::{Command, Output};

/// Found within the first few seeds. The seeds mean something else after each change of the simulation, so the bound
/// is wide.
const SOON: [&str; 3] = ["attempts-forgotten", "close-without-event", "second-context"];
const N_SEEDS: &str = "12";
/// Found by many towns of jobs. The run stops at the first of them, so a wide bound costs only the clean seeds.
const SOON_OF_JOBS: &str = "busy-job-fires";
const N_SEEDS_OF_JOBS: &str = "12";

/// In the profile of the tests, whose third-party artefacts are there.
fn mutants(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["mutants", "--profile", "dev"]).args(args);
    command.output().expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn defects_are_found_and_without_one_the_same_seeds_are_clean() {
    let args: Vec<&str> = SOON.iter().flat_map(|name| ["--only", *name]).chain(["--seeds", N_SEEDS]).collect();
    let ended = mutants(&args);
    let said = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{said}{}", text(&ended.stderr));
    assert!(said.contains(&format!("without a defect {N_SEEDS} seeds of beads are clean")), "{said}");
    assert!(said.contains("3 of 3 defects found"), "{said}");

    let ended = mutants(&["--only", SOON_OF_JOBS, "--seeds", N_SEEDS_OF_JOBS]);
    let said = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{said}{}", text(&ended.stderr));
    assert!(said.contains(&format!("without a defect {N_SEEDS_OF_JOBS} seeds of jobs are clean")), "{said}");

    let ended = mutants(&["--only", SOON[0], "--seeds", "0"]);
    assert_eq!(ended.status.code(), Some(1), "what is not found is a failure: {}", text(&ended.stdout));
    assert!(text(&ended.stdout).contains("NOT FOUND in 0 seeds"), "{}", text(&ended.stdout));
}

#[test]
fn a_defect_that_is_not_on_the_list_is_refused() {
    assert_eq!(mutants(&["--only", "no-such-defect"]).status.code(), Some(2));
    assert_eq!(mutants(&["--seeds", "many"]).status.code(), Some(2));
    assert_eq!(mutants(&["--only"]).status.code(), Some(2));
    assert_eq!(mutants(&["--towns", "nowhere"]).status.code(), Some(2));
    let chaos = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["chaos", "--defect", "no-such-defect"]).output();
    let chaos = chaos.expect("the binary was built for this test");
    assert_eq!(chaos.status.code(), Some(2));
    assert!(text(&chaos.stderr).contains("half-moved-checkout-left"), "{}", text(&chaos.stderr));
}
