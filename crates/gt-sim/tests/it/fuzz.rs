//! Every stored input, and a brief search for new ones; and that the search itself finds, shrinks and repeats.
//!
//! Bounded by numbers of inputs, not by time. Longer searches are `cargo xtask fuzz`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use gt_sim::fuzz::corpus::{self, Entry};
use gt_sim::fuzz::search::{Origin, search_stored};
use gt_sim::fuzz::{INPUT_BYTES_MAX, Target, Verdict, input, search, targets};

const STORED_MAX: usize = 25;
const STORED_BYTES_MAX: usize = 4 * 1024;

fn target(name: &str) -> &'static Target {
    targets::ALL.iter().find(|target| target.name == name).expect("it is on the list")
}

/// The stored inputs and as many new ones; some have to get past the door, some not.
fn check(name: &str, n_seeds: u64) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    match search_stored(target(name), 0..n_seeds, folder.path(), |_| {}).expect("stored inputs can be read") {
        Ok(summary) => {
            assert_eq!(summary.n_inputs(), summary.n_stored as u64 + n_seeds);
            assert!(summary.n_accepted > n_seeds / 20 && summary.n_refused > n_seeds / 20, "{name}: {summary:?}");
        }
        Err(found) => panic!("{found}\n  which is {:?}", String::from_utf8_lossy(&found.smallest)),
    }
}

#[test]
fn what_agents_tell_keeps_its_promises() {
    check("agent-events", 3_000);
}

#[test]
fn a_config_file_and_its_edits_keep_their_promises() {
    check("config", 1_000);
}

#[test]
fn the_last_lines_of_an_output_keep_their_promises() {
    check("output", 5_000);
}

#[test]
fn json_inside_the_store_keeps_its_promises() {
    check("fields", 5_000);
}

#[test]
fn formulas_keep_their_promises() {
    check("formula", 3_000);
}

#[test]
fn a_file_of_beads_keeps_its_promises() {
    check("jsonl", 150);
}

#[test]
fn what_comes_to_the_keeper_keeps_its_promises() {
    check("keeper", 5_000);
}

#[test]
fn what_a_program_says_of_agents_elsewhere_keeps_its_promises() {
    check("exec", 5_000);
}

#[test]
fn names_of_sessions_keep_their_promises() {
    check("session-names", 5_000);
}

#[test]
fn units_of_settings_keep_their_promises() {
    check("units", 800);
}

#[test]
fn schedules_of_cron_keep_their_promises() {
    check("cron", 1_000);
}

#[test]
fn times_that_people_type_keep_their_promises() {
    check("when", 1_000);
}

#[test]
fn heartbeats_keep_their_promises() {
    check("heartbeat", 2_000);
}

#[test]
fn what_is_kept_of_jobs_keeps_its_promises() {
    check("job", 500);
}

#[test]
fn single_words_keep_their_promises() {
    check("words", 800);
}

#[test]
fn stored_inputs_are_few_small_and_no_two_alike() {
    for target in targets::ALL {
        let entries = corpus::load(target.name).unwrap();
        assert!((1..=STORED_MAX).contains(&entries.len()), "{} has {}", target.name, entries.len());
        let large = entries.iter().find(|entry| entry.bytes.len() >= STORED_BYTES_MAX);
        assert_eq!(large.map(|entry| &entry.name), None, "{}", target.name);
        let different: BTreeSet<&[u8]> = entries.iter().map(|entry| entry.bytes.as_slice()).collect();
        assert_eq!(different.len(), entries.len(), "{}", target.name);
    }
}

#[test]
fn every_target_has_its_name_and_its_stored_inputs_alone() {
    let names: BTreeSet<&str> = targets::ALL.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), targets::ALL.len());
    let folders = fs::read_dir(corpus::folder("config").parent().unwrap()).unwrap().map(Result::unwrap);
    let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir());
    let folders: BTreeSet<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert_eq!(folders, names.into_iter().map(str::to_owned).collect());
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_gives_others() {
    for target in targets::ALL {
        let entries = corpus::load(target.name).unwrap();
        let made: Vec<Vec<u8>> = (0..200).map(|seed| input(target, &entries, seed)).collect();
        assert_eq!(made, (0..200).map(|seed| input(target, &entries, seed)).collect::<Vec<_>>());
        assert!(made.iter().collect::<BTreeSet<_>>().len() > 180, "{}", target.name);
        assert!(made.iter().all(|bytes| bytes.len() <= INPUT_BYTES_MAX));
    }
}

/// Refuses everything, and cannot bear two bytes together that no stored input has.
fn breaks_at_a_bell(bytes: &[u8]) -> Verdict {
    assert!(!bytes.windows(2).any(|two| two == b"!\x07"), "a bell after {} bytes", bytes.len());
    Verdict::Refused
}

const BROKEN: Target = Target { name: "broken", check: breaks_at_a_bell, tokens: &["!\x07", "plain"] };

fn harmless() -> Vec<Entry> {
    vec![Entry { name: "harmless".to_owned(), bytes: b"quite harmless, and rather long for what it says".to_vec() }]
}

#[test]
fn a_broken_promise_is_found_made_small_and_told_with_the_line_that_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let found = search(&BROKEN, &harmless(), 0..1_000, folder.path(), |_| {}).unwrap().unwrap_err();
    assert_eq!((found.smallest.as_slice(), fs::read(&found.file).unwrap().as_slice()), (&b"!\x07"[..], &b"!\x07"[..]));
    let Origin::Seed(seed) = found.origin else { panic!("no stored input is broken") };
    assert_eq!(found.again(), format!("cargo xtask fuzz --target broken --seed {seed}"));
    assert!(breaks_again(seed, folder.path()), "the seed alone is enough");
    let told = found.to_string();
    assert!(told.contains("a bell after 2 bytes") && told.contains("it/fuzz.rs:"), "{told}");
    assert!(told.contains(&found.again()) && told.contains(&found.file.display().to_string()), "{told}");
}

fn breaks_again(seed: u64, folder: &Path) -> bool {
    let found = search(&BROKEN, &harmless(), seed..seed + 1, folder, |_| {});
    found.expect("what is found can be written").is_err()
}

#[test]
fn a_stored_input_that_breaks_a_promise_is_told_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let loud = vec![Entry { name: "loud".to_owned(), bytes: b"loud!\x07!".to_vec() }];
    let found = search(&BROKEN, &loud, 0..0, folder.path(), |_| {}).unwrap().unwrap_err();
    assert_eq!((found.origin.clone(), found.smallest.as_slice()), (Origin::Stored("loud".to_owned()), &b"!\x07"[..]));
    assert!(found.again().contains("--seeds 0") && found.again().contains("`loud`"), "{}", found.again());
}

#[test]
fn each_seed_is_heard_of_before_its_input_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    let found = search(&BROKEN, &harmless(), 0..1_000, folder.path(), |seed| heard.push(seed)).unwrap().unwrap_err();
    let Origin::Seed(seed) = found.origin else { panic!("no stored input is broken") };
    assert_eq!(heard, (0..=seed).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_searched_is_refused_in_a_sentence() {
    let names = "agent-events, config, cron, exec, fields, formula, heartbeat, job, jsonl, keeper, output, session-names, \
                 units, when, words";
    for (args, wanted) in [
        (&["--target", "word"][..], format!("there is no target `word`; there are {names}")),
        (&["--target"], "`--target` needs a value".to_owned()),
        (&["--seeds", "-1"], format!("`--seeds` needs a whole number from 0 to {}, not `-1`", u64::MAX)),
        (&["--seed", "x"], format!("`--seed` needs a whole number from 0 to {}, not `x`", u64::MAX)),
        (&["--quick"], "`--quick` is none of `--target NAME`, `--seeds N` and `--seed S`".to_owned()),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_fuzz")).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((said, output.status.code()), (format!("error: {wanted}\n"), Some(2)), "{args:?}");
    }
}
