//! Staging and launching as the store does it: what is read, what is stored, what is told.

use gt_core::convoy::ConvoyStatus;
use gt_store::{BeadPatch, Going, Progress, Staged, Staging, StoreError};

use crate::town::owned;
use crate::yard::Yard;

fn staging(words: &[&str]) -> Staging {
    Staging { words: owned(words), title: None, then: Going::Stage }
}

fn launching(words: &[&str], force: bool) -> Staging {
    Staging { then: Going::Launch { force }, ..staging(words) }
}

fn stage(yard: &mut Yard, words: &[&str]) -> Staged {
    let stamp = yard.stamp();
    let staged = yard.store.stage_convoy(&staging(words), &stamp).expect("it can be staged");
    yard.check();
    staged
}

/// Waves as `a b | c`, then what is gated as `d by e`.
fn waves(staged: &Staged) -> String {
    let ids = |beads: &[u32]| beads.iter().map(|at| staged.graph.id(*at)).collect::<Vec<_>>().join(" ");
    let gated = staged.plan.gated.iter().map(|one| format!("; {} by {}", staged.graph.id(one.bead), ids(&one.by)));
    staged.plan.waves().map(ids).collect::<Vec<_>>().join(" | ") + &gated.collect::<String>()
}

fn retype(yard: &mut Yard, id: &str, kind: &str) {
    yard.patch(id, &BeadPatch { issue_type: Some(kind.to_owned()), ..BeadPatch::default() }).expect("it is there");
}

/// An epic with a part that is an epic too, three levels deep.
fn deep() -> Yard {
    let mut yard = Yard::with(&[
        "gt-e",
        "gt-s > gt-e:parent-child",
        "gt-a > gt-e:parent-child",
        "gt-b > gt-s:parent-child gt-a:blocks",
        "gt-c > gt-b:parent-child gt-b:conditional-blocks",
        "gt-x",
    ]);
    retype(&mut yard, "gt-e", "epic");
    retype(&mut yard, "gt-s", "epic");
    yard
}

#[test]
fn an_epic_is_read_through_all_its_levels() {
    let mut yard = deep();
    let staged = stage(&mut yard, &["gt-e"]);
    assert_eq!(waves(&staged), "gt-a | gt-b | gt-c");
    let convoy = yard.store.bead(&staged.convoy.expect("it was stored")).expect("it is there");
    let mut tracked: Vec<&str> = convoy.bead.edges.iter().map(|edge| edge.target.as_str()).collect();
    tracked.sort_unstable();
    assert_eq!(tracked, ["gt-a", "gt-b", "gt-c"], "work of all levels, and no epic");
    assert_eq!(convoy.bead.status.as_str(), "staged:warnings", "the epic below has no branch");
}

#[test]
fn a_convoy_remembers_the_epic_that_it_came_from() {
    let mut yard = deep();
    let first = stage(&mut yard, &["gt-e"]);
    let convoy = first.convoy.clone().expect("it was stored");
    let again = stage(&mut yard, &[&convoy]);
    assert_eq!((&again.convoy, &again.plan, &again.graph), (&first.convoy, &first.plan, &first.graph));
    assert_eq!((again.epic.as_deref(), again.is_restaged), (Some("gt-e"), true));
    yard.delete("gt-e");
    assert_eq!(waves(&stage(&mut yard, &[&convoy])), "gt-a | gt-b | gt-c");
}

#[test]
fn every_kind_of_blocking_edge_orders_while_it_holds() {
    for (kind, expected) in [
        ("blocks", "gt-a | gt-b"),
        ("conditional-blocks", "gt-a | gt-b"),
        ("merge-blocks", "gt-a | gt-b"),
        ("waits-for", "gt-a | gt-b"),
        ("related", "gt-a gt-b"),
        ("parent-child", "gt-a gt-b"),
        ("something-new", "gt-a gt-b"),
    ] {
        let mut yard = Yard::with(&["gt-a", &format!("gt-b > gt-a:{kind}")]);
        assert_eq!(waves(&stage(&mut yard, &["gt-a", "gt-b"])), expected, "{kind}");
    }
    let mut yard = Yard::with(&["gt-a", "gt-b > gt-a:blocks"]);
    yard.close("gt-a");
    assert_eq!(waves(&stage(&mut yard, &["gt-a", "gt-b"])), "gt-b", "what is done is in no wave");
}

#[test]
fn who_waits_for_an_epic_waits_for_its_children() {
    let mut yard =
        Yard::with(&["gt-e", "gt-a > gt-e:parent-child", "gt-b > gt-e:parent-child", "gt-z > gt-e:waits-for"]);
    retype(&mut yard, "gt-e", "epic");
    assert_eq!(waves(&stage(&mut yard, &["gt-a", "gt-b", "gt-z"])), "gt-a gt-b | gt-z");
    assert_eq!(waves(&stage(&mut yard, &["gt-z"])), "; gt-z by gt-e", "where they are not planned, it is gated");
}

#[test]
fn what_lies_outside_gates_only_if_no_agent_works_on_it() {
    let mut yard = Yard::with(&["gt-d", "gt-x", "gt-a > gt-d:blocks", "gt-b > gt-x:blocks", "gt-c > gt-a:blocks"]);
    retype(&mut yard, "gt-d", "decision");
    assert_eq!(waves(&stage(&mut yard, &["gt-a", "gt-b", "gt-c"])), "gt-b; gt-a by gt-d; gt-c by gt-d");
}

#[test]
fn staging_is_told_once_and_changes_no_work() {
    let mut yard = Yard::with(&["gt-a", "gt-b > gt-a:blocks"]);
    let before = yard.ready();
    let (staged, told) = yard.told(|store, stamp| store.stage_convoy(&staging(&["gt-a", "gt-b"]), stamp));
    let convoy = staged.convoy.expect("it was stored");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with(&format!("bead.created {convoy} ")), "{told:?}");
    let data = r#"{"members":2,"restaged":false,"status":"staged:ready","waves":2}"#;
    assert_eq!(told[1], format!("convoy.staged {convoy} {data}"));
    assert_eq!(yard.ready(), before);
    assert_eq!(yard.claims(), [""; 0], "it is inert");
}

#[test]
fn launching_opens_it_in_the_same_transaction() {
    let mut yard = Yard::with(&["gt-a", "gt-b > gt-a:blocks"]);
    let convoy = stage(&mut yard, &["gt-a", "gt-b"]).convoy.expect("it was stored");
    let (launched, told) = yard.told(|store, stamp| store.stage_convoy(&launching(&[&convoy], false), stamp));
    assert_eq!((launched.status, launched.first_wave()), (Some(ConvoyStatus::Open), owned(&["gt-a"])));
    let data = r#"{"first_wave":1,"forced":false,"waves":2}"#;
    assert_eq!(told.last(), Some(&format!("convoy.launched {convoy} {data}")));
    let again = yard.refused(|store, stamp| store.stage_convoy(&launching(&[&convoy], true), stamp));
    assert_eq!(again, format!("convoy {convoy} is already launched"));
}

#[test]
fn the_most_urgent_goes_out_first() {
    let mut yard = Yard::with(&["gt-a", "gt-b", "gt-c"]);
    yard.patch("gt-c", &BeadPatch { priority: Some(0), ..BeadPatch::default() }).expect("it is there");
    assert_eq!(stage(&mut yard, &["gt-a", "gt-b", "gt-c"]).first_wave(), ["gt-c", "gt-a", "gt-b"]);
}

#[test]
fn with_errors_nothing_is_stored() {
    let mut yard = Yard::with(&["gt-a", "zz-b"]);
    let staged = yard.quiet(|store, stamp| store.stage_convoy(&staging(&["gt-a", "zz-b"]), stamp));
    assert_eq!((staged.convoy.clone(), staged.status, staged.plan.errors.len()), (None, None, 1));
    let launched = yard.quiet(|store, stamp| store.stage_convoy(&launching(&["gt-a", "zz-b"], true), stamp));
    assert_eq!((launched.convoy.clone(), launched.status), (None, None));
}

#[test]
fn every_status_meets_every_wish() {
    for (word, wanted) in [
        ("staged:ready", "staged:ready, open"),
        ("STAGED_READY", "staged:ready, open"),
        ("staged:warnings", "staged:ready, open"),
        ("open", "convoy hq-cv-1 is already launched, convoy hq-cv-1 is already launched"),
        ("in_progress", "convoy hq-cv-1 is already launched, convoy hq-cv-1 is already launched"),
        ("closed", "convoy hq-cv-1 is closed, convoy hq-cv-1 is closed"),
        ("tombstone", "convoy hq-cv-1 is closed, convoy hq-cv-1 is closed"),
    ] {
        let answers = [staging(&["hq-cv-1"]), launching(&["hq-cv-1"], false)].map(|wish| {
            let mut yard = Yard::with(&["gt-a", "hq-cv-1 > gt-a:tracks"]);
            yard.set_status("hq-cv-1", word); // as a file may bring it; a convoy could not be set so
            retype(&mut yard, "hq-cv-1", "convoy");
            let stamp = yard.stamp();
            match yard.store.stage_convoy(&wish, &stamp) {
                Ok(staged) => staged.status.map_or("nothing".to_owned(), |status| status.to_string()),
                Err(StoreError::Refused(refusal)) => refusal.to_string(),
                Err(error) => panic!("{error}"),
            }
        });
        assert_eq!(answers.join(", "), wanted, "{word}");
    }
}

#[test]
fn the_picture_tells_who_has_what() {
    let mut yard = Yard::with(&["gt-a", "gt-b", "gt-c > gt-a:blocks", "gt-d", "gt-f", "hq-cv-1 > gt-zz:tracks"]);
    retype(&mut yard, "hq-cv-1", "convoy");
    for id in ["gt-a", "gt-b", "gt-c", "gt-d", "gt-f"] {
        yard.link("hq-cv-1", id, "tracks");
    }
    yard.working("gt-a");
    yard.sling(&["gt-b"]);
    yard.close("gt-d");
    let now = yard.stamp().now;
    let picture = yard.store.convoy_picture("hq-cv-1", now).expect("a picture");
    assert_eq!((picture.n_done(), picture.n_total(), &picture.missing), (1, 6, &owned(&["gt-zz"])));
    let of = |id: &str| picture.progress_of(picture.graph.find(id).expect("a member")).clone();
    assert!(matches!(of("gt-a"), Progress::Running(worker) if worker.rig == "shop" && !worker.is_starting));
    assert!(matches!(of("gt-b"), Progress::Queued { is_ready: true, .. }));
    assert_eq!((of("gt-c"), of("gt-d"), of("gt-f")), (Progress::Blocked, Progress::Done, Progress::Ready));
    let error = yard.refused(|store, stamp| store.convoy_picture("gt-a", stamp.now));
    assert_eq!(error, "gt-a is a task, not a convoy");
}
