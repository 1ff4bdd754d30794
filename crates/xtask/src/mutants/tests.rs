//! The list of defects fits the sources, and what the simulation says is read.

use std::collections::BTreeSet;

use super::copy::{edited, put_in, read};
use super::defects::{DEFECTS, Edit, Towns};
use super::{Found, root};

fn edit(from: &'static str, to: &'static str) -> Edit {
    Edit { file: "crates/a/src/b.rs", from, to }
}

#[test]
fn every_defect_still_has_its_place_in_the_sources() {
    let mut sources = read(root()).expect("the repository can be read");
    put_in(&mut sources, &DEFECTS).expect("every text to be changed is there exactly once");
}

#[test]
fn every_defect_has_a_name_of_its_own_that_each_of_its_switches_uses() {
    let names: BTreeSet<&str> = DEFECTS.iter().map(|defect| defect.name).collect();
    assert_eq!(names.len(), DEFECTS.len());
    for defect in DEFECTS.iter() {
        let switch = format!("crate::defect(\"{}\")", defect.name);
        assert!(defect.edits.iter().any(|edit| edit.to.contains(&switch)), "{} cannot be switched on", defect.name);
        assert!(defect.edits.iter().all(|edit| edit.from != edit.to), "{} changes nothing", defect.name);
        assert!(defect.what.ends_with('.'), "{} is not told in a sentence", defect.name);
    }
}

#[test]
fn there_are_enough_defects_for_towns_of_each_kind() {
    for (towns, n_least) in [(Towns::Beads, 18), (Towns::Jobs, 10)] {
        let n = DEFECTS.iter().filter(|defect| defect.towns() == towns).count();
        assert!(n >= n_least, "{n} of {towns} are too few to say that the simulation finds what is wrong");
    }
}

#[test]
fn edits_do_not_see_what_others_have_written() {
    let (first, second) = (edit("one", "two"), edit("two", "three"));
    assert_eq!(edited("one, two", &[&second, &first]).as_deref(), Ok("two, three"));
}

#[test]
fn an_edit_that_fits_nowhere_twice_or_over_another_is_refused() {
    assert_eq!(edited("a", &[&edit("b", "")]), Err("`b` is there 0 times, not once".to_owned()));
    assert_eq!(edited("bb", &[&edit("b", "")]), Err("`b` is there 2 times, not once".to_owned()));
    let both = [&edit("ab", ""), &edit("bc", "")];
    assert_eq!(edited("abc", &both), Err("`bc` overlaps another edit".to_owned()));
}

#[test]
fn the_line_of_a_failing_seed_is_read() {
    let line = "seed 7, step 42: it was: odd — repeat with `cargo xtask sim --seed 7 --steps 500`";
    let found = Found { seed: 7, step: 42, verdict: "it was: odd".to_owned() };
    assert_eq!(Found::read(line), Some(found));
    assert_eq!(Found::read("7 seeds of 500 steps, 3 runs, 0 failures"), None);
}
