//! The list of defects fits the points in the code, and what the simulation says is read.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::defects::{Towns, all};
use super::{Found, root};

/// The names in every `defect!("name")` of the product's crates.
fn points() -> Vec<String> {
    let mut points = Vec::new();
    for folder in fs::read_dir(root().join("crates")).expect("the repository can be read") {
        let folder = folder.expect("the repository can be read").path();
        if !folder.ends_with("xtask") {
            add_points(&folder.join("src"), &mut points);
        }
    }
    points
}

fn add_points(folder: &Path, points: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            add_points(&path, points);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            points.extend(names_in(&code.join("\n")));
        }
    }
}

fn names_in(code: &str) -> Vec<String> {
    let after = code.split("defect!(").skip(1);
    after.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next()).map(str::to_owned).collect()
}

#[test]
fn every_point_in_the_code_is_on_the_list() {
    let names: BTreeSet<&str> = all().map(|defect| defect.name).collect();
    let unknown: Vec<String> = points().into_iter().filter(|point| !names.contains(point.as_str())).collect();
    assert_eq!(unknown, [""; 0], "these are not on the list in crates/xtask/src/mutants/defects/");
}

#[test]
fn every_defect_on_the_list_has_a_point_in_the_code() {
    let points: BTreeSet<String> = points().into_iter().collect();
    let missing: Vec<&str> = all().map(|defect| defect.name).filter(|name| !points.contains(*name)).collect();
    assert_eq!(missing, [""; 0], "no `defect!` in crates/*/src has these names");
}

#[test]
fn every_defect_has_a_name_of_its_own_and_is_told_in_a_sentence() {
    let mut names = BTreeSet::new();
    for defect in all() {
        assert!(names.insert(defect.name), "{} is on the list twice", defect.name);
        assert!(defect.what.ends_with('.'), "{} is not told in a sentence", defect.name);
    }
}

#[test]
fn points_are_found_however_they_are_wrapped() {
    let code = "if a && !gt_core::defect!(\"one\") || crate::defect!(\n    \"two\"\n) {";
    assert_eq!(names_in(code), ["one", "two"]);
}

#[test]
fn there_are_enough_defects_for_towns_of_each_kind() {
    for (towns, n_least) in [(Towns::Beads, 18), (Towns::Jobs, 10)] {
        let n = all().filter(|defect| defect.towns == towns).count();
        assert!(n >= n_least, "{n} of {towns} are too few to say that the simulation finds what is wrong");
    }
}

#[test]
fn the_line_of_a_failing_seed_is_read() {
    let line = "seed 7, step 42: it was: odd — repeat with `cargo xtask sim --seed 7 --steps 500`";
    let found = Found { seed: 7, step: 42, verdict: "it was: odd".to_owned() };
    assert_eq!(Found::read(line), Some(found));
    assert_eq!(Found::read("7 seeds of 500 steps, 3 runs, 0 failures"), None);
}
