//! What holds a bead back, rule by rule. // SPEC B3, B4

use gt_store::{BeadPatch, ReadyFilter, Stamp, Store};

use crate::town::{Town, file, owned};

fn town(lines: &[&str]) -> Town {
    let mut town = Town::new();
    town.import(&file(lines));
    town
}

/// The blocked ones; every other bead of the town is ready.
fn check(town: &mut Town, blocked: &[&str], ready: &[&str]) {
    assert_eq!((town.blocked(), town.ready()), (owned(blocked), owned(ready)));
}

#[test]
fn adding_and_removing_a_blocking_edge_flips_the_bead() {
    for kind in ["blocks", "conditional-blocks", "waits-for", "merge-blocks"] {
        let mut town = town(&["gt-1", "gt-2"]);
        town.link("gt-1", "gt-2", kind);
        check(&mut town, &["gt-1"], &["gt-2"]);
        assert_eq!(town.unlink("gt-1", "gt-2"), ["gt-1"], "{kind}");
        check(&mut town, &[], &["gt-1", "gt-2"]);
    }
}

#[test]
fn other_edges_never_block() {
    for kind in ["tracks", "related", "discovered-from", "parent_child", "made-up", "parent-child"] {
        let mut town = town(&["gt-1", "gt-2"]);
        town.link("gt-1", "gt-2", kind);
        check(&mut town, &[], &["gt-1", "gt-2"]);
    }
}

#[test]
fn closing_and_reopening_a_blocker_flips_its_dependers() {
    let mut town = town(&["gt-1", "gt-2 > gt-1:blocks", "gt-3 > gt-1:blocks", "gt-4 > gt-2:blocks"]);
    check(&mut town, &["gt-2", "gt-3", "gt-4"], &["gt-1"]);
    assert_eq!(town.close("gt-1"), ["gt-2", "gt-3"]);
    check(&mut town, &["gt-4"], &["gt-2", "gt-3"]);
    town.reopen("gt-1");
    check(&mut town, &["gt-2", "gt-3", "gt-4"], &["gt-1"]);
}

#[test]
fn a_bead_with_two_blockers_waits_for_the_last() {
    let mut town = town(&["gt-1", "gt-2", "gt-3 > gt-1:blocks gt-2:blocks"]);
    assert_eq!(town.close("gt-1"), Vec::<String>::new());
    assert_eq!(town.close("gt-2"), ["gt-3"]);
}

#[test]
fn two_edges_to_one_blocker_are_released_together() {
    let mut town = town(&["gt-1", "gt-2 > gt-1:blocks gt-1:conditional-blocks"]);
    assert_eq!(town.close("gt-1"), ["gt-2"]);
    town.reopen("gt-1");
    check(&mut town, &["gt-2"], &["gt-1"]);
}

#[test]
fn pinning_acts_like_closing() {
    let mut town = town(&["gt-1", "gt-2 > gt-1:blocks"]);
    town.set_status("gt-1", "pinned");
    check(&mut town, &[], &["gt-2"]);
    town.set_status("gt-1", "open");
    check(&mut town, &["gt-2"], &["gt-1"]);
}

#[test]
fn a_blocked_parent_blocks_all_generations_below_it() {
    let lines = ["gt-0", "gt-1 > gt-0:blocks", "gt-2 > gt-1:parent-child", "gt-3 > gt-2:parent-child"];
    let mut town = town(&lines);
    check(&mut town, &["gt-1", "gt-2", "gt-3"], &["gt-0"]);
    assert_eq!(town.close("gt-0"), ["gt-1", "gt-2", "gt-3"]);
    town.reopen("gt-0");
    check(&mut town, &["gt-1", "gt-2", "gt-3"], &["gt-0"]);
    town.unlink("gt-2", "gt-1");
    check(&mut town, &["gt-1"], &["gt-0", "gt-2", "gt-3"]);
}

#[test]
fn a_closed_parent_passes_no_blocking_on() {
    let mut town = town(&["gt-0", "gt-1 > gt-0:blocks", "gt-2 > gt-1:parent-child"]);
    town.close("gt-1");
    check(&mut town, &[], &["gt-0", "gt-2"]);
}

#[test]
fn an_open_parent_does_not_block_and_neither_do_children() {
    let mut town = town(&["gt-1", "gt-2 > gt-1:parent-child", "gt-3 > gt-1:parent-child"]);
    check(&mut town, &[], &["gt-1", "gt-2", "gt-3"]);
}

#[test]
fn deleting_a_blocker_clears_its_dependers() {
    for kind in ["blocks", "conditional-blocks", "waits-for", "merge-blocks"] {
        let mut town = town(&["gt-1", "gt-2", "gt-3 > gt-2:parent-child"]);
        town.link("gt-2", "gt-1", kind);
        check(&mut town, &["gt-2", "gt-3"], &["gt-1"]);
        town.delete("gt-1");
        check(&mut town, &[], &["gt-2", "gt-3"]);
        town.reopen("gt-1");
        check(&mut town, &["gt-2", "gt-3"], &["gt-1"]);
    }
}

#[test]
fn a_closed_depender_is_not_marked_again() {
    let mut town = town(&["gt-1", "gt-2 > gt-1:blocks"]);
    town.close("gt-1");
    town.close("gt-2");
    town.reopen("gt-1");
    check(&mut town, &[], &["gt-1"]);
    assert_eq!(town.close("gt-1"), Vec::<String>::new(), "what is closed does not become ready");
    town.reopen("gt-1");
    town.reopen("gt-2");
    check(&mut town, &["gt-2"], &["gt-1"]);
}

#[test]
fn waiting_for_a_bead_is_waiting_for_its_children() {
    let lines = ["gt-0", "gt-1 > gt-0:parent-child", "gt-2 > gt-0:parent-child", "gt-9 > gt-0:waits-for"];
    let mut town = town(&lines);
    town.close("gt-0");
    check(&mut town, &["gt-9"], &["gt-1", "gt-2"]);
    assert_eq!(town.close("gt-1"), Vec::<String>::new());
    assert_eq!(town.close("gt-2"), ["gt-9"]);
    town.reopen("gt-0");
    check(&mut town, &[], &["gt-0", "gt-9"]);
    town.reopen("gt-1");
    check(&mut town, &["gt-9"], &["gt-0", "gt-1"]);
}

#[test]
fn waiting_for_a_bead_without_children_is_waiting_for_the_bead_itself() {
    let mut town = town(&["gt-0", "gt-1", "gt-9 > gt-0:waits-for"]);
    check(&mut town, &["gt-9"], &["gt-0", "gt-1"]);
    town.close("gt-0");
    check(&mut town, &[], &["gt-1", "gt-9"]);
    town.link("gt-1", "gt-0", "parent-child");
    check(&mut town, &["gt-9"], &["gt-1"]);
    town.delete("gt-1");
    check(&mut town, &[], &["gt-9"]);
}

#[test]
fn waiting_for_a_bead_whose_children_are_all_deleted_is_waiting_for_the_bead_itself() {
    for any in [false, true] {
        let mut town = town(&["gt-0", "gt-1 > gt-0:parent-child", "gt-2 > gt-0:parent-child", "gt-9"]);
        if any {
            town.link_any("gt-9", "gt-0");
        } else {
            town.link("gt-9", "gt-0", "waits-for");
        }
        town.delete("gt-1");
        check(&mut town, &["gt-9"], &["gt-0", "gt-2"]);
        town.delete("gt-2");
        check(&mut town, &["gt-9"], &["gt-0"]);
        assert_eq!(town.close("gt-0"), ["gt-9"]);
    }
}

#[test]
fn the_any_children_gate_opens_at_the_first_closed_child() {
    let mut town = town(&["gt-0", "gt-1 > gt-0:parent-child", "gt-2 > gt-0:parent-child", "gt-9"]);
    town.link_any("gt-9", "gt-0");
    check(&mut town, &["gt-9"], &["gt-0", "gt-1", "gt-2"]);
    assert_eq!(town.close("gt-1"), ["gt-9"]);
    town.reopen("gt-1");
    check(&mut town, &["gt-9"], &["gt-0", "gt-1", "gt-2"]);
    town.set_status("gt-1", "pinned");
    check(&mut town, &["gt-9"], &["gt-0", "gt-2"]);
}

#[test]
fn the_any_children_gate_opens_also_when_a_closed_child_is_added() {
    let mut town = town(&["gt-0", "gt-1 > gt-0:parent-child", "gt-2", "gt-9"]);
    town.link_any("gt-9", "gt-0");
    town.close("gt-2");
    check(&mut town, &["gt-9"], &["gt-0", "gt-1"]);
    town.link("gt-2", "gt-0", "parent-child");
    check(&mut town, &[], &["gt-0", "gt-1", "gt-9"]);
}

#[test]
fn merge_blocks_waits_for_the_merge_and_not_for_the_close() {
    let mut town = town(&["gt-1", "gt-2 > gt-1:merge-blocks"]);
    assert_eq!(town.close("gt-1"), Vec::<String>::new());
    check(&mut town, &["gt-2"], &[]);
    town.reopen("gt-1");
    assert_eq!(town.close_because("gt-1", Some("Merged in mr-7")), ["gt-2"]);
}

#[test]
fn a_merge_that_is_noted_after_the_close_unblocks() {
    let mut town = town(&["gt-1", "gt-2 > gt-1:merge-blocks"]);
    town.close("gt-1");
    let texts = vec![("merged_at", Some("2026-01-01T00:00:00Z".to_owned()))];
    town.patch("gt-1", &BeadPatch { texts, ..BeadPatch::default() }).expect("it is noted");
    check(&mut town, &[], &["gt-2"]);
}

#[test]
fn a_missing_target_does_not_block_until_it_appears() {
    for kind in ["blocks", "waits-for", "merge-blocks"] {
        let mut town = town(&[&format!("gt-1 > gt-9:{kind}"), "gt-2 > gt-1:parent-child"]);
        check(&mut town, &[], &["gt-1", "gt-2"]);
        town.import(&file(&["gt-9"]));
        check(&mut town, &["gt-1", "gt-2"], &["gt-9"]);
    }
}

#[test]
fn a_blocker_of_any_active_status_blocks() {
    let mut town = town(&["gt-1", "gt-2 > gt-1:blocks"]);
    for status in ["in_progress", "hooked", "blocked", "deferred", "in_review", "done"] {
        town.set_status("gt-1", status);
        check(&mut town, &["gt-2"], &[]);
    }
}

#[test]
fn only_open_work_is_ready() {
    let mut town = town(&["gt-1"]);
    for status in ["in_progress", "hooked", "blocked", "deferred", "pinned", "closed", "in_review"] {
        town.set_status("gt-1", status);
        check(&mut town, &[], &[]);
    }
    town.set_status("gt-1", "open");
    town.patch("gt-1", &BeadPatch { pinned: Some(true), ..BeadPatch::default() }).expect("it is pinned");
    check(&mut town, &[], &[]);
}

#[test]
fn bookkeeping_types_are_never_ready() {
    let words = ["convoy", "event", "merge-request", "gate", "molecule", "message", "agent", "role", "rig"];
    let mut town = town(&["gt-1"]);
    for word in words {
        town.patch("gt-1", &BeadPatch { issue_type: Some(word.into()), ..BeadPatch::default() }).expect("it is typed");
        check(&mut town, &[], &[]);
    }
    for word in ["epic", "task", "spike", "made-up"] {
        town.patch("gt-1", &BeadPatch { issue_type: Some(word.into()), ..BeadPatch::default() }).expect("it is typed");
        check(&mut town, &[], &["gt-1"]);
    }
}

#[test]
fn ephemeral_beads_are_ready_only_when_asked_for() {
    let mut town = town(&["gt-1", "gt-2", "gt-3 > gt-1:blocks"]);
    let wisp = BeadPatch { ephemeral: Some(true), ..BeadPatch::default() };
    town.patch("gt-1", &wisp).expect("it is a wisp");
    town.patch("gt-3", &wisp).expect("it is a wisp");
    let filter = ReadyFilter { include_ephemeral: true, ..ReadyFilter::default() };
    assert_eq!((town.ready(), town.ready_with(&filter)), (owned(&["gt-2"]), owned(&["gt-1", "gt-2"])));
    check(&mut town, &["gt-3"], &["gt-2"]);
    town.close("gt-1");
    assert_eq!(town.ready_with(&filter), ["gt-2", "gt-3"]);
}

#[test]
fn ephemeral_beads_that_are_no_work_do_not_crowd_out_those_that_are() {
    let mut town = Town::new();
    let message =
        |n: u32| format!(r#"{{"id":"gt-{n}","title":"m","priority":0,"issue_type":"message","ephemeral":true}}"#);
    let mut lines: Vec<String> = (1..=5).map(message).collect();
    lines.push(r#"{"id":"gt-9","title":"w","priority":3,"ephemeral":true}"#.to_owned());
    town.import(&lines.join("\n"));
    let filter = ReadyFilter { include_ephemeral: true, ..ReadyFilter::default() };
    assert_eq!(town.ready_with(&filter), ["gt-9"]);
    let now = town.now;
    let cut = town.store.ready(&filter, 1, now).expect("ready answers");
    assert_eq!((crate::town::ids(cut.beads), cut.more), (owned(&["gt-9"]), false));
}

#[test]
fn unassigned_beats_assignee() {
    let mut town = town(&["gt-1", "gt-2"]);
    let ada = Some(Some("ada".to_owned()));
    town.patch("gt-1", &BeadPatch { assignee: ada, ..BeadPatch::default() }).expect("it is assigned");
    let filter = |assignee: Option<&str>, unassigned| ReadyFilter {
        assignee: assignee.map(Into::into),
        unassigned,
        ..ReadyFilter::default()
    };
    assert_eq!(town.ready_with(&filter(Some("ada"), false)), ["gt-1"]);
    assert_eq!(town.ready_with(&filter(Some("bob"), false)), Vec::<String>::new());
    assert_eq!(town.ready_with(&filter(None, true)), ["gt-2"]);
    assert_eq!(town.ready_with(&filter(Some("ada"), true)), ["gt-2"]);
}

#[test]
fn two_claimers_at_once_never_win_the_same_bead() {
    const N: usize = 40;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("town.db");
    let mut town = Town::on(Store::create(&path).expect("a store"));
    let names: Vec<String> = (0..N).map(|n| format!("gt-{n}")).collect();
    town.import(&file(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    let now = town.now;
    let claim_all = |who: &'static str| {
        let mut store = Store::open(&path).expect("a second handle");
        let mut won = Vec::new();
        let stamp = Stamp::new(now, who);
        while let Some(id) = store.claim_first_ready(&ReadyFilter::default(), who, &stamp).expect("a claim answers") {
            won.push(id);
        }
        won
    };
    let (ada, bob) = std::thread::scope(|scope| {
        let (ada, bob) = (scope.spawn(|| claim_all("ada")), scope.spawn(|| claim_all("bob")));
        (ada.join().expect("ada ends"), bob.join().expect("bob ends"))
    });
    let mut won: Vec<String> = ada.iter().chain(&bob).cloned().collect();
    won.sort();
    won.dedup();
    assert_eq!((won.len(), ada.len() + bob.len()), (N, N));
    for (who, ids) in [("ada", ada), ("bob", bob)] {
        for id in ids {
            assert_eq!(town.store.bead(&id).expect("it is there").bead.assignee.as_deref(), Some(who));
        }
    }
    town.check();
}

#[test]
fn a_deferral_that_has_ended_stays_ended_when_the_clock_is_set_back() {
    let mut town = Town::with(&["gt-1", "gt-2"]);
    let until = Some(Some(town.now + jiff::SignedDuration::from_secs(60)));
    let put_off = gt_store::BeadPatch { defer_until: until, ..gt_store::BeadPatch::default() };
    town.patch("gt-1", &put_off).expect("it is put off");
    town.pass(61);
    town.set_status("gt-2", "closed"); // any change after its time wakes it
    town.pass(-61);
    town.check();
    let stamp = town.stamp();
    assert_eq!(town.store.repair_readiness(&stamp).expect("it answers"), 0);
}
