//! Rigs: homes of beads, names and prefixes. // SPEC T3, T4

use super::*;

fn rig(name: &str, prefix: &str) -> Rig {
    let path = format!("/src/{name}");
    Rig { name: name.into(), prefix: prefix.into(), path, url: None, branch: "main".into(), state: RigState::Active }
}

/// `gasworks` has the prefix `gt`, and so on.
fn registry() -> Vec<Rig> {
    vec![rig("gasworks", "gt"), rig("tools", "gt-tools"), rig("wisps", "gt_wisp"), rig("convoys", "hq-cv")]
}

/// The home is written as `rig NAME`, `town` or `nowhere`.
fn check_home(id: &str, binding: Option<&str>, wanted: &str) {
    let rigs = registry();
    let home = match home(id, binding, &rigs) {
        Home::Rig(rig) => format!("rig {}", rig.name),
        Home::Town => "town".to_owned(),
        Home::Nowhere => "nowhere".to_owned(),
    };
    assert_eq!(home, wanted, "{id} bound to {binding:?}");
}

#[test]
fn the_longest_registered_prefix_wins() {
    check_home("gt-1", None, "rig gasworks");
    check_home("gt-toolsy-1", None, "rig gasworks");
    check_home("gt-tools", None, "rig gasworks");
    check_home("gt-tools-1", None, "rig tools");
    check_home("gt-tools-1.2.3", None, "rig tools");
    check_home("gt_wisp-1", None, "rig wisps");
}

#[test]
fn a_prefix_ends_at_its_dash() {
    check_home("gtx-1", None, "nowhere");
    check_home("gt", None, "nowhere");
    check_home("gt-", None, "nowhere");
    check_home("GT-1", None, "nowhere");
    check_home("", None, "nowhere");
}

#[test]
fn town_beads_are_at_home_in_the_town_unless_a_longer_prefix_is_registered() {
    check_home("hq-1", None, "town");
    check_home("hq-cv-ab12c", None, "rig convoys");
    check_home("hq-cv", None, "town");
    check_home("hqx-1", None, "nowhere");
}

#[test]
fn a_binding_beats_every_prefix() {
    check_home("gt-1", Some("tools"), "rig tools");
    check_home("hq-1", Some("gasworks"), "rig gasworks");
    check_home("nothing-fits", Some("gasworks"), "rig gasworks");
}

#[test]
fn a_bead_bound_to_a_vanished_rig_is_nowhere_whatever_its_prefix() {
    check_home("gt-1", Some("gone"), "nowhere");
    check_home("hq-1", Some("gone"), "nowhere");
    check_home("gt-1", Some(""), "nowhere");
}

#[test]
fn a_prefix_is_derived_from_the_parts_of_a_name() {
    for (name, prefix) in [
        ("gasworks", "ga"),
        ("tool", "tool"),
        ("hop", "hop"),
        ("my-project", "mp"),
        ("My_Big-Project", "mbp"),
        ("beads-", "be"),
        ("a--b", "ab"),
        ("x", "x"),
        ("r2-d2", "rd"),
    ] {
        assert_eq!(derive_prefix(name), prefix, "{name}");
    }
}

#[test]
fn a_derived_prefix_of_a_good_name_is_a_good_prefix() {
    for name in ["gasworks", "A", "z-1-2", "q_", "a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q-r-s-t", &"n".repeat(NAME_CHARS_MAX)]
    {
        check_name(name).unwrap();
        assert_eq!(check_prefix(&derive_prefix(name), &[]), Ok(()), "{name}");
    }
}

fn check_refused(answer: Result<(), BadRig>, wanted: &str) {
    assert_eq!(answer.unwrap_err().to_string(), wanted);
}

#[test]
fn a_clash_names_the_holder() {
    check_refused(check_prefix("gt", &registry()), "the prefix `gt` is taken by rig `gasworks`");
    check_refused(check_prefix("hq", &registry()), "the prefix `hq` is taken by the town");
    assert_eq!(check_prefix("gt2", &registry()), Ok(()));
}

#[test]
fn a_bad_prefix_is_refused_with_the_rule() {
    let too_long = "p".repeat(PREFIX_CHARS_MAX + 1);
    for prefix in ["", "GT", "1a", "-a", "_a", "a-", "a b", "a.b", "ä", "a\n", &too_long] {
        let shown = prefix.replace('\n', " ");
        check_refused(
            check_prefix(prefix, &[]),
            &format!(
                "`{shown}` is not a prefix: use up to 20 lower-case letters, digits, `-` and `_`, starting with a letter and not ending with `-`"
            ),
        );
    }
    for prefix in ["a", "a1", "a-b", "a_", &too_long[1..]] {
        assert_eq!(check_prefix(prefix, &[]), Ok(()), "{prefix}");
    }
}

#[test]
fn a_bad_name_is_refused_with_the_rule() {
    let too_long = "n".repeat(NAME_CHARS_MAX + 1);
    for name in ["", "1a", "-a", "a b", "a/b", "..", "naïve", &too_long] {
        check_refused(
            check_name(name),
            &format!("`{name}` is not a rig name: use up to 40 letters, digits, `-` and `_`, starting with a letter"),
        );
    }
    for name in ["a", "A-1", "my_rig", &too_long[1..]] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
}

#[test]
fn a_free_prefix_is_near_the_name_and_really_free() {
    assert_eq!(free_prefix("gtools", &registry()), "gto");
    assert_eq!(free_prefix("hq", &registry()), "hq2");
    assert_eq!(free_prefix("gt", &registry()), "gt2");
    assert_eq!(free_prefix("my-rig", &registry()), "my");
}

#[test]
fn a_free_prefix_is_found_for_any_name_at_all() {
    let crowded: Vec<Rig> = (2..=20).map(|n| rig(&format!("r{n}"), &"a".repeat(n))).collect();
    let one_letter_each = ["a"; 20].join("-");
    for name in ["", "1st", "9", "---", "ünï", &one_letter_each, &"a".repeat(40)] {
        let prefix = free_prefix(name, &crowded);
        assert_eq!(check_prefix(&prefix, &crowded), Ok(()), "{name} gave {prefix}");
    }
}

#[test]
fn rig_states_are_read_back_as_themselves() {
    for state in [RigState::Active, RigState::Parked, RigState::Docked] {
        assert_eq!(RigState::parse(state.as_str()), Some(state));
    }
    assert_eq!(RigState::parse("Parked"), None);
}
