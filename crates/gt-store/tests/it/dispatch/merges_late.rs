//! Merges that are over or whose bead a person has taken: what comes late changes nothing, and what comes back keeps to its bead.

use std::slice;

use gt_core::merge::MergeState;
use gt_store::ReturnedAs;

use super::conflict;
use crate::yard::Yard;

#[test]
fn a_request_for_a_merge_that_is_over_is_not_recorded() {
    type Verb = fn(&mut Yard);
    let verbs: [(MergeState, Verb); 3] = [
        (MergeState::Merged, |yard| drop(yard.merged("mr-1"))),
        (MergeState::Returned, |yard| drop(yard.give_back("mr-1", &conflict()))),
        (MergeState::Dropped, |yard| {
            let stamp = yard.stamp();
            yard.store.drop_merge("mr-1", "not like this", &stamp).expect("it is dropped");
        }),
    ];
    for (state, verb) in verbs {
        let mut yard = Yard::with(&["gt-1"]);
        yard.handed_over("gt-1", "mr-1");
        verb(&mut yard);
        let (seq, stamp) = (yard.store.last_event().expect("the log answers"), yard.stamp());
        let merge = yard.merge("mr-1");
        assert!(!yard.store.record_requested(&merge, "https://forge.example/1", &stamp).expect("it is no error"));
        let merge = yard.merge("mr-1");
        assert_eq!((merge.state, merge.request), (state, None));
        assert_eq!(yard.told_since(seq), Vec::<String>::new(), "{state:?}");
        yard.check();
    }
}

#[test]
fn a_request_is_recorded_once() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-1");
    let stamp = yard.stamp();
    for request in ["first", "second"] {
        let merge = yard.merge("mr-1");
        let is_recorded = yard.store.record_requested(&merge, request, &stamp).expect("it is no error");
        assert_eq!(is_recorded, request == "first");
        let merge = yard.merge("mr-1");
        assert_eq!((merge.state, merge.request.as_deref()), (MergeState::Requested, Some("first")));
    }
}

/// Gates may run for an hour: what was dropped and put into line again meanwhile is not judged by the commit that it was.
#[test]
fn what_became_of_a_commit_does_not_count_for_the_one_that_took_its_place() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-1");
    let (old, policy, stamp) = (yard.merge("mr-1"), yard.policy.clone(), yard.stamp());
    yard.store.drop_merge("mr-1", "not like this", &stamp).expect("it is dropped");
    yard.store.retry_merge("mr-1", "another commit", &stamp).expect("it is in line again");
    let seq = yard.store.last_event().expect("the log answers");
    let returned = yard.store.return_merge(&old, &conflict(), None, &policy, &stamp).expect("it is no error");
    assert_eq!(returned, ReturnedAs::Over);
    assert!(!yard.store.begin_landing(slice::from_ref(&old), &[], &stamp).expect("it answers"));
    assert!(!yard.store.record_requested(&old, "https://forge.example/1", &stamp).expect("it is no error"));
    let merged = yard.store.record_merged(slice::from_ref(&old), "0123456789abcdef", &[], &stamp);
    assert_eq!(merged.expect("it is no error"), []);
    let merge = yard.merge("mr-1");
    assert_eq!((merge.state, merge.tip.as_str()), (MergeState::Waiting, "another commit"));
    assert_eq!(yard.told_since(seq), Vec::<String>::new());
    assert!(yard.store.begin_landing(&[merge], &[], &stamp).expect("it answers"));
    yard.check();
}

/// Who took it while its work was in the queue keeps it, however the merge ends.
#[test]
fn a_bead_that_a_person_has_taken_stays_theirs_when_its_merge_comes_back_or_is_dropped() {
    type Verb = fn(&mut Yard);
    let verbs: [Verb; 2] = [
        |yard| drop(yard.give_back("mr-1", &conflict())),
        |yard| {
            let stamp = yard.stamp();
            yard.store.drop_merge("mr-1", "not like this", &stamp).expect("it is dropped");
        },
    ];
    for verb in verbs {
        let mut yard = Yard::with(&["gt-1"]);
        yard.handed_over("gt-1", "mr-1");
        yard.assign("gt-1", Some("ada"));
        verb(&mut yard);
        assert_eq!(yard.holder("gt-1"), ("in_progress".to_owned(), Some("ada".to_owned())));
        yard.check();
    }
}

#[test]
fn the_note_of_a_merge_that_came_back_is_on_the_bead_whose_work_it_is() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-1");
    let ReturnedAs::Rework { bead: rework } = yard.give_back("mr-1", &conflict()) else { panic!("a new bead") };
    let first = yard.text("gt-1", "notes");
    assert!(first.starts_with("The work on gt-1 could not be merged"), "{first}");
    assert_eq!(yard.text(&rework, "notes"), "", "its description has it");
    let run = yard.claim_one().run;
    yard.start(&run);
    yard.hand_over(&run, "mr-2").expect("it is taken");
    yard.end(&run);
    assert_eq!(yard.give_back("mr-2", &conflict()), ReturnedAs::Itself { is_held: false });
    let second = yard.text(&rework, "notes");
    assert!(second.starts_with(&format!("The work on {rework} could not be merged")), "{second}");
    assert_eq!(yard.text("gt-1", "notes"), first);
}
