//! The registry of rigs, and parking against docking. // SPEC T3

use gt_core::event::EventType;
use gt_core::rig::{Rig, RigState};
use gt_store::{BeadPatch, Filter, ReadyFilter};

use crate::town::Town;

fn rig(name: &str, prefix: &str) -> Rig {
    let (path, url) = (format!("/src/{name}"), Some("https://example.org/x".to_owned()));
    Rig { name: name.into(), prefix: prefix.into(), path, url, branch: "main".into(), state: RigState::Active }
}

fn with_rig() -> Town {
    let mut town = Town::with(&["gt-1", "gt-2", "hq-1"]);
    town.told(|store, stamp| store.add_rig(&rig("gasworks", "gt"), stamp));
    town
}

#[test]
fn a_rig_is_registered_and_found_again() {
    let mut town = Town::new();
    let ((), events) = town.told(|store, stamp| store.add_rig(&rig("gasworks", "gt"), stamp));
    assert_eq!(events, [r#"rig.added - {"path":"/src/gasworks","prefix":"gt","rig":"gasworks"}"#]);
    town.told(|store, stamp| store.add_rig(&rig("alpha", "al"), stamp));
    assert_eq!(town.store.rig("gasworks").expect("it is there"), rig("gasworks", "gt"));
    assert_eq!(town.store.rigs().expect("the list answers"), [rig("alpha", "al"), rig("gasworks", "gt")]);
}

#[test]
fn a_name_or_prefix_that_is_taken_or_bad_is_refused() {
    let mut town = with_rig();
    let mut check = |name: &str, prefix: &str, wanted: &str| {
        assert_eq!(town.refused(|store, stamp| store.add_rig(&rig(name, prefix), stamp)), wanted);
    };
    check("gasworks", "xx", "there is already a rig `gasworks`");
    check("other", "gt", "the prefix `gt` is taken by rig `gasworks`");
    check("other", "hq", "the prefix `hq` is taken by the town");
    check("../x", "xx", "`../x` is not a rig name: use up to 40 letters, digits, `-` and `_`, starting with a letter");
}

#[test]
fn an_unknown_rig_is_refused_with_near_names_by_every_verb() {
    let mut town = with_rig();
    let wanted = "there is no rig `gaswork`; near: gasworks";
    assert_eq!(town.refused(|store, _| store.rig("gaswork")), wanted);
    assert_eq!(town.refused(|store, stamp| store.remove_rig("gaswork", true, stamp)), wanted);
    let park = EventType::RigParked;
    assert_eq!(town.refused(|store, stamp| store.set_rig_state("gaswork", RigState::Parked, park, stamp)), wanted);
    let filter = Filter { rig: Some("gaswork".into()), ..Filter::default() };
    assert_eq!(town.refused(|store, _| store.list(&filter, 0)), wanted);
    let filter = ReadyFilter { rig: Some("gaswork".into()), ..ReadyFilter::default() };
    assert_eq!(town.refused(|store, stamp| store.ready(&filter, 0, stamp.now)), wanted);
}

#[test]
fn an_unknown_rig_is_refused_by_the_list_of_blocked_beads_too() {
    let mut town = with_rig();
    let wanted = "there is no rig `gaswork`; near: gasworks";
    assert_eq!(town.refused(|store, _| store.blocked(Some("gaswork"), 0)), wanted);
}

#[derive(Clone, Copy)]
enum Verb {
    Park,
    Unpark,
    Dock,
    Undock,
}

/// What a verb makes of a rig in a state: the new state, nothing, or a refusal.
fn answer(from: RigState, verb: Verb) -> String {
    let mut town = with_rig();
    let (to, event) = match verb {
        Verb::Park => (RigState::Parked, EventType::RigParked),
        Verb::Unpark => (RigState::Active, EventType::RigUnparked),
        Verb::Dock => (RigState::Docked, EventType::RigDocked),
        Verb::Undock => (RigState::Active, EventType::RigUndocked),
    };
    let start = if from == RigState::Docked { EventType::RigDocked } else { EventType::RigParked };
    town.told(|store, stamp| store.set_rig_state("gasworks", from, start, stamp));
    let seq = town.store.last_event().expect("the log answers");
    let stamp = town.stamp();
    let answer = match town.store.set_rig_state("gasworks", to, event, &stamp) {
        Ok(true) => town.store.rig("gasworks").expect("it is there").state.as_str().to_owned(),
        Ok(false) => "-".to_owned(),
        Err(error) => format!("({error})"),
    };
    let events = town.told_since(seq);
    let wanted = format!(r#"{} - {{"rig":"gasworks"}}"#, event.as_str());
    assert_eq!(events, if answer == to.as_str() { vec![wanted] } else { vec![] });
    answer
}

#[test]
fn parking_and_docking_as_a_whole_table() {
    let states = [RigState::Active, RigState::Parked, RigState::Docked];
    let verbs = [Verb::Park, Verb::Unpark, Verb::Dock, Verb::Undock];
    let row = |from: RigState| verbs.map(|verb| answer(from, verb)).join(" ");
    insta::assert_snapshot!(states.map(|from| format!("{}: {}", from.as_str(), row(from))).join("\n"), @r"
    active: parked - docked -
    parked: - active docked -
    docked: (rig `gasworks` is docked) (rig `gasworks` is docked) - active
    ");
}

#[test]
fn a_rig_with_active_beads_leaves_only_by_force() {
    let mut town = with_rig();
    let bound = BeadPatch { rig: Some(Some("gasworks".into())), ..BeadPatch::default() };
    town.patch("hq-1", &bound).expect("it is bound");
    let refusal = town.refused(|store, stamp| store.remove_rig("gasworks", false, stamp));
    assert_eq!(refusal, "rig `gasworks` still has 3 active beads");
    town.close("gt-1");
    town.close("gt-2");
    let refusal = town.refused(|store, stamp| store.remove_rig("gasworks", false, stamp));
    assert_eq!(refusal, "rig `gasworks` still has 1 active bead");
    let ((), events) = town.told(|store, stamp| store.remove_rig("gasworks", true, stamp));
    assert_eq!(events, [r#"rig.removed - {"rig":"gasworks"}"#]);
    assert_eq!(town.store.bead("hq-1").expect("it stays").rig, None);
}

#[test]
fn an_idle_rig_leaves_and_its_prefix_is_free_again() {
    let mut town = with_rig();
    town.close("gt-1");
    town.close("gt-2");
    town.told(|store, stamp| store.remove_rig("gasworks", false, stamp));
    town.told(|store, stamp| store.add_rig(&rig("other", "gt"), stamp));
    assert_eq!(town.store.bead("gt-1").expect("it is there").rig.as_deref(), Some("other"));
}

#[test]
fn a_bead_shows_the_rig_it_is_at_home_in() {
    let mut town = with_rig();
    town.told(|store, stamp| store.add_rig(&rig("tools", "gt-tools"), stamp));
    town.import("{\"id\":\"gt-tools-1\",\"title\":\"a\"}\n{\"id\":\"zz-1\",\"title\":\"a\"}");
    let mut check = |id: &str, wanted: Option<&str>| {
        assert_eq!(town.store.bead(id).expect("it is there").rig.as_deref(), wanted, "{id}");
    };
    check("gt-1", Some("gasworks"));
    check("gt-tools-1", Some("tools"));
    check("hq-1", None);
    check("zz-1", None);
}
