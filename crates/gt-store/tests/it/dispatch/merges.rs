//! The refinery's queue: handing over, merging, coming back, trying again. // SPEC M1, M2

use std::slice;

use gt_core::edge::{Edge, EdgeType};
use gt_core::merge::{Flaw, MergeState, Strategy};
use gt_core::refusal::Refusal;
use gt_core::run::Outcome;
use gt_core::status::Status;
use gt_store::{BeadPatch, HandOver, Merge, Report, ReturnedAs, StoreError, Target};
use jiff::SignedDuration;

use crate::yard::{Yard, asked, ended, forced};

/// What comes late, or to a bead that a person has taken.
#[path = "merges_late.rs"]
mod late;

fn target() -> Target {
    Target { rig: "shop".to_owned(), branch: "main".to_owned() }
}

fn conflict() -> Flaw {
    Flaw::Conflict { files: vec!["a.txt".to_owned()] }
}

impl Yard {
    /// A run of the bead says that it is done, and hands this over.
    fn hand_over(&mut self, run: &str, id: &str) -> Result<Option<Vec<String>>, StoreError> {
        self.hand_over_instead(run, id, None)
    }

    /// The same for a rework that may replace what came back.
    fn hand_over_instead(
        &mut self,
        run: &str,
        id: &str,
        replaces: Option<&str>,
    ) -> Result<Option<Vec<String>>, StoreError> {
        let merge = HandOver {
            id: id.to_owned(),
            target: "main".to_owned(),
            branch: format!("polecat/Toast/{id}"),
            tip: format!("{id}-tip"),
            strategy: Strategy::Queue,
            replaces: replaces.map(str::to_owned),
        };
        let note = Some("made it".to_owned());
        let report = Report {
            run: run.to_owned(),
            outcome: Outcome::Completed,
            note,
            cost: None,
            merge: Some(merge),
            tip: None,
        };
        let stamp = self.stamp();
        self.store.report(&report, &stamp)
    }

    /// The work of a bead waits to be merged, and its run has ended.
    fn handed_over(&mut self, bead: &str, id: &str) {
        let run = self.working(bead).run;
        self.hand_over(&run, id).expect("it is taken").expect("it is new");
        self.end(&run);
    }

    /// What becomes ready when it is merged.
    fn merged(&mut self, id: &str) -> Vec<String> {
        self.merged_with(id, &[])
    }

    /// The same for a rework with which the target has the commits of these.
    fn merged_with(&mut self, id: &str, carried: &[&str]) -> Vec<String> {
        let (stamp, carried) = (self.stamp(), carried.iter().map(|&id| id.to_owned()).collect::<Vec<_>>());
        let (merge, before) = (self.merge(id), self.ready());
        self.store.record_merged(&[merge], "0123456789abcdef", &carried, &stamp).expect("it is recorded");
        self.ready().into_iter().filter(|bead| !before.contains(bead)).collect()
    }

    fn give_back(&mut self, id: &str, flaw: &Flaw) -> ReturnedAs {
        let (policy, stamp, merge) = (self.policy.clone(), self.stamp(), self.merge(id));
        self.store.return_merge(&merge, flaw, Some("/town/a.patch"), &policy, &stamp).expect("it is recorded")
    }

    /// Whether these may land.
    fn begin_landing(&mut self, ids: &[&str], commits: &[String]) -> bool {
        let (merges, stamp) = (ids.iter().map(|id| self.merge(id)).collect::<Vec<_>>(), self.stamp());
        self.store.begin_landing(&merges, commits, &stamp).expect("it answers")
    }

    fn merge(&mut self, id: &str) -> Merge {
        self.store.merge(id).expect("it is known")
    }

    fn waiting(&mut self) -> Vec<String> {
        let waiting = self.store.waiting_merges(&target()).expect("it answers");
        waiting.into_iter().map(|merge| merge.id).collect()
    }

    fn text(&mut self, bead: &str, field: &str) -> String {
        self.store.bead(bead).expect("it is there").bead.body.text(field).unwrap_or_default()
    }
}

#[test]
fn work_that_is_handed_over_is_the_refinerys_until_it_is_merged() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks", "gt-3 > gt-1:merge-blocks"]);
    let run = yard.working("gt-1").run;
    assert_eq!(yard.hand_over(&run, "mr-1").expect("it is taken"), Some(Vec::new()), "nothing is ready by it");
    assert_eq!(yard.hand_over(&run, "mr-9").expect("it is taken"), None, "it was said before");
    let refinery = ("in_progress".to_owned(), Some("shop/refinery".to_owned()));
    assert_eq!(yard.holder("gt-1"), refinery);
    yard.end(&run);
    assert_eq!(yard.holder("gt-1"), refinery, "the end of its run takes it from nobody");
    assert_eq!(yard.explained("gt-1"), "in_progress: merging");
    assert_eq!((yard.waiting(), yard.claims()), (vec!["mr-1".to_owned()], Vec::<String>::new()));
    assert!(yard.try_sling(&asked(&["gt-1"])).is_err(), "nobody takes it meanwhile");
    yard.pass(5);
    assert_eq!(yard.merged("mr-1"), ["gt-2", "gt-3"]);
    assert_eq!(yard.holder("gt-1").0, "closed");
    assert_eq!(yard.text("gt-1", "close_reason"), "Merged in 0123456789: made it");
    let merge = yard.merge("mr-1");
    assert_eq!((merge.state, merge.merged.as_deref()), (MergeState::Merged, Some("0123456789abcdef")));
    assert_eq!(yard.merged("mr-1"), Vec::<String>::new(), "once");
    assert!(yard.waiting().is_empty());
    yard.check();
}

/// What somebody has closed or deleted, by whatever verb, is not merged any more, and opening it again changes nothing.
#[test]
fn what_was_closed_or_deleted_by_hand_is_not_merged() {
    type Verb = fn(&mut Yard);
    let verbs: [(&str, Verb); 4] = [
        ("tester closed gt-1", |yard| {
            let stamp = yard.stamp();
            yard.store.close_beads(&["gt-1".to_owned()], None, &stamp).expect("it is closed");
        }),
        ("tester deleted gt-1", |yard| {
            let stamp = yard.stamp();
            yard.store.delete_beads(&["gt-1".to_owned()], None, &stamp).expect("it is deleted");
        }),
        ("tester closed gt-1", |yard| {
            let patch = BeadPatch { status: Some(Status::Closed), ..BeadPatch::default() };
            yard.patch("gt-1", &patch).expect("it is closed");
        }),
        ("tester closed gt-1", |yard| {
            drop(yard.import(r#"{"id":"gt-1","title":"gt-1","status":"closed","updated_at":"2099-01-01T00:00:00Z"}"#));
        }),
    ];
    for (reason, verb) in verbs {
        let mut yard = Yard::with(&["gt-1", "gt-3 > gt-1:merge-blocks"]);
        yard.handed_over("gt-1", "mr-1");
        verb(&mut yard);
        let merge = yard.merge("mr-1");
        assert_eq!((merge.state, merge.reason.as_deref()), (MergeState::Dropped, Some(reason)));
        assert_eq!((yard.waiting(), yard.merged("mr-1")), (Vec::new(), Vec::new()));
        let stamp = yard.stamp();
        yard.store.reopen_beads(&["gt-1".to_owned()], &stamp).expect("it is open");
        assert_eq!(yard.waiting(), Vec::<String>::new());
        yard.check();
    }
}

/// Once the target is being moved it is too late to close what is merged there.
#[test]
fn what_is_landing_cannot_be_closed() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-1");
    let stamp = yard.stamp();
    assert!(yard.begin_landing(&["mr-1"], &[]));
    let refused = yard.store.close_beads(&["gt-1".to_owned()], None, &stamp);
    assert!(matches!(refused, Err(StoreError::Refused(Refusal::MergeLands { .. }))), "{refused:?}");
    assert_eq!(yard.holder("gt-1").0, "in_progress");
    yard.merged("mr-1");
    assert_eq!(yard.holder("gt-1").0, "closed");
    yard.check();
}

/// A rework that nobody merges leaves what it was for to a person, who finds a way on.
#[test]
fn what_a_closed_rework_was_for_waits_for_a_person() {
    for verb in ["no changes", "closed", "deleted"] {
        let mut yard = Yard::with(&["gt-1"]);
        yard.handed_over("gt-1", "mr-1");
        let ReturnedAs::Rework { bead: rework } = yard.give_back("mr-1", &conflict()) else { panic!("a new bead") };
        let stamp = yard.stamp();
        match verb {
            "closed" => drop(yard.store.close_beads(slice::from_ref(&rework), None, &stamp).expect("it is closed")),
            "deleted" => drop(yard.store.delete_beads(slice::from_ref(&rework), None, &stamp).expect("it is deleted")),
            _ => {
                let run = yard.claim_one().run;
                yard.start(&run);
                yard.report(&run, Outcome::Completed).expect("it is taken");
                yard.end(&run);
            }
        }
        assert_eq!(yard.claims(), Vec::<String>::new(), "{verb}");
        assert_eq!(yard.explained("gt-1"), "ready: rework-closed", "{verb}");
        let letters = yard.store.inbox(gt_store::MAYOR, true, 10).expect("it answers").letters;
        assert_eq!(letters.iter().map(|letter| letter.subject.as_str()).collect::<Vec<_>>(), ["gt-1 is not merged"]);
        assert_eq!(yard.store.pleas().expect("it answers").len(), 1);
        // Whoever takes it after that is told of the work that there is.
        yard.store.retry("gt-1", &stamp).expect("it is tried again");
        let told = yard.claim_one().rework.expect("it is told");
        assert_eq!((told.of.as_str(), told.branch.as_str()), ("gt-1", "polecat/Toast/mr-1"));
        yard.check();
    }
}

/// Work that comes back every time costs an attempt each, however it is started again.
#[test]
fn what_comes_back_too_often_becomes_no_more_beads() {
    let mut yard = Yard::with(&["gt-1"]);
    let n_attempts = yard.policy.redispatch_attempts + 1;
    for n in 1..=n_attempts {
        let id = format!("mr-{n}");
        yard.handed_over("gt-1", &id);
        match yard.give_back(&id, &conflict()) {
            ReturnedAs::Rework { bead } if n < n_attempts => {
                let stamp = yard.stamp();
                yard.store.close_beads(&[bead], None, &stamp).expect("it is closed");
            }
            other => assert_eq!((n, other), (n_attempts, ReturnedAs::Itself { is_held: true })),
        }
        yard.check();
    }
    assert_eq!((yard.claims(), yard.explained("gt-1")), (Vec::new(), "ready: out-of-attempts".to_owned()));
    let letters = yard.store.inbox(gt_store::MAYOR, true, 10).expect("it answers").letters;
    assert!(letters.iter().any(|letter| letter.subject == "gt-1 is out of attempts"), "{letters:?}");
}

#[test]
fn what_cannot_be_merged_comes_back_as_a_bead_and_closes_with_it() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks"]);
    yard.handed_over("gt-1", "mr-1");
    let ReturnedAs::Rework { bead: rework } = yard.give_back("mr-1", &conflict()) else { panic!("a new bead") };
    assert_eq!(yard.give_back("mr-1", &conflict()), ReturnedAs::Over, "once");
    assert_eq!(yard.holder("gt-1"), ("open".to_owned(), None));
    assert_eq!([yard.explained("gt-1"), yard.explained("gt-2")], ["blocked: blocked convoy", "blocked: blocked"]);
    assert!(
        yard.text("gt-1", "notes")
            .starts_with("The work on gt-1 could not be merged: it conflicts with main in a.txt.")
    );
    let bead = yard.store.bead(&rework).expect("it is there").bead;
    assert_eq!(bead.title, "Resolve the conflict of gt-1 with main: gt-1");
    assert_eq!((bead.labels, bead.rig.as_deref()), (vec!["gt:rework".to_owned()], Some("shop")));
    // It is in line by itself, and whoever takes it knows what it is about.
    let claimed = yard.claim_one();
    assert_eq!(claimed.bead, rework);
    let told = claimed.rework.expect("it is told");
    assert_eq!((told.of.as_str(), told.branch.as_str(), told.tip.as_str()), ("gt-1", "polecat/Toast/mr-1", "mr-1-tip"));
    assert_eq!(told.patch.as_deref(), Some("/town/a.patch"));
    yard.start(&claimed.run);
    yard.hand_over(&claimed.run, "mr-2").expect("it is taken");
    yard.end(&claimed.run);
    assert_eq!(yard.merged_with("mr-2", &["mr-1"]), ["gt-2"], "both are merged, so what waits is ready");
    assert_eq!([yard.holder("gt-1").0, yard.holder(&rework).0], ["closed", "closed"]);
    assert_eq!(yard.merge("mr-1").state, MergeState::Merged);
    assert!(!yard.text("gt-1", "merged_at").is_empty());
    yard.check();
}

/// The work of `gt-1` came back; its rework, which may say that it replaces that, is merged without it.
fn merged_without_it(replaces: Option<&str>) -> (Yard, Vec<String>) {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:merge-blocks"]);
    yard.handed_over("gt-1", "mr-1");
    yard.give_back("mr-1", &conflict());
    let claimed = yard.claim_one();
    yard.start(&claimed.run);
    yard.hand_over_instead(&claimed.run, "mr-2", replaces).expect("it is taken");
    yard.end(&claimed.run);
    let became_ready = yard.merged("mr-2");
    assert_eq!(yard.holder(&claimed.bead).0, "closed", "the rework itself is merged");
    yard.check();
    (yard, became_ready)
}

#[test]
fn what_a_rework_is_merged_without_stays_open_and_waits_for_a_person() {
    let (mut yard, _) = merged_without_it(None);
    assert_eq!((yard.holder("gt-1").0.as_str(), yard.merge("mr-1").state), ("open", MergeState::Returned));
    assert_eq!((yard.claims(), yard.explained("gt-1")), (Vec::new(), "ready: left-out".to_owned()));
    assert_eq!(yard.explained("gt-2"), "blocked: blocked");
    let letters = yard.store.inbox(gt_store::MAYOR, true, 10).expect("it answers").letters;
    assert_eq!(letters.iter().map(|letter| letter.subject.as_str()).collect::<Vec<_>>(), ["gt-1 is not merged"]);
    let stamp = yard.stamp();
    yard.store.retry_merge("mr-1", "mr-1-tip", &stamp).expect("it waits again");
    assert_eq!((yard.merged("mr-1"), yard.holder("gt-1").0), (vec!["gt-2".to_owned()], "closed".to_owned()));
    yard.check();
}

#[test]
fn what_a_rework_replaces_is_closed_with_the_reason_and_its_own_merge_is_dropped() {
    let (mut yard, became_ready) = merged_without_it(Some("it was wrong"));
    assert_eq!((yard.holder("gt-1").0.as_str(), became_ready), ("closed", vec!["gt-2".to_owned()]));
    let reason = yard.text("gt-1", "close_reason");
    assert!(reason.starts_with("Replaced by ") && reason.ends_with(", merged in 0123456789: it was wrong"), "{reason}");
    let merge = yard.merge("mr-1");
    assert_eq!(merge.state, MergeState::Dropped);
    assert!(merge.reason.is_some_and(|reason| reason.ends_with(": it was wrong")));
    assert_eq!(yard.merge("mr-2").replaces.as_deref(), Some("it was wrong"));
}

/// A rework that comes back is no new bead: it costs an attempt, cools down, and ends with a person.
#[test]
fn a_rework_that_comes_back_is_tried_again_as_often_as_anything() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-0");
    let ReturnedAs::Rework { bead: rework } = yard.give_back("mr-0", &conflict()) else { panic!("a new bead") };
    let n_attempts = yard.policy.redispatch_attempts + 1;
    for n in 1..=n_attempts {
        let claimed = yard.claim_one();
        assert_eq!(claimed.bead, rework);
        yard.start(&claimed.run);
        let id = format!("mr-{n}");
        yard.hand_over(&claimed.run, &id).expect("it is taken");
        yard.end(&claimed.run);
        let returned = yard.give_back(&id, &conflict());
        assert_eq!(returned, ReturnedAs::Itself { is_held: n == n_attempts }, "attempt {n}");
        assert_eq!(yard.claims(), Vec::<String>::new(), "it cools down");
        yard.pass(400);
        yard.check();
    }
    assert_eq!(yard.claims(), Vec::<String>::new());
    assert_eq!(yard.explained(&rework), "ready: out-of-attempts");
    let letters = yard.store.inbox(gt_store::MAYOR, true, 10).expect("it answers");
    assert_eq!(letters.letters.len(), 1);
}

#[test]
fn a_merge_is_dropped_or_tried_again_by_hand() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-1");
    let stamp = yard.stamp();
    yard.store.drop_merge("mr-1", "not like this", &stamp).expect("it is dropped");
    assert_eq!((yard.holder("gt-1"), yard.merge("mr-1").state), (("open".to_owned(), None), MergeState::Dropped));
    assert!(yard.store.drop_merge("mr-1", "again", &stamp).is_err(), "it is over");
    assert_eq!(yard.explained("gt-1"), "ready: cleared");
    assert_eq!(yard.claims(), Vec::<String>::new(), "nobody asked for it to be done again");
    yard.store.retry_merge("mr-1", "newer", &stamp).expect("it is tried again");
    assert_eq!((yard.waiting(), yard.merge("mr-1").tip.as_str()), (vec!["mr-1".to_owned()], "newer"));
    let ReturnedAs::Rework { bead: rework } = yard.give_back("mr-1", &conflict()) else { panic!("a new bead") };
    yard.store.retry_merge("mr-1", "newest", &stamp).expect("it is tried again");
    assert_eq!(yard.holder(&rework).0, "closed", "nobody has to work on it");
    assert_eq!(yard.claims(), Vec::<String>::new());
    assert_eq!(yard.holder("gt-1").1.as_deref(), Some("shop/refinery"));
    yard.merged("mr-1");
    assert!(yard.store.retry_merge("mr-1", "late", &stamp).is_err(), "it is merged");
    assert!(matches!(yard.store.merge("mr-7"), Err(StoreError::NoMerge { .. })));
    yard.check();
}

#[test]
fn a_bead_that_is_slung_again_by_force_leaves_the_queue() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-1");
    yard.try_sling(&forced("gt-1")).expect("it is slung");
    assert_eq!((yard.merge("mr-1").state, yard.claim_one().bead.as_str()), (MergeState::Dropped, "gt-1"));
    yard.check();
}

/// Between the gates and the record nobody can decide against it; before and after that, everybody.
#[test]
fn what_is_landing_cannot_be_dropped() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.handed_over("gt-1", "mr-1");
    yard.handed_over("gt-2", "mr-2");
    let (both, stamp) = (["mr-1", "mr-2"], yard.stamp());
    assert!(yard.begin_landing(&both, &[]));
    assert!(yard.store.drop_merge("mr-1", "no", &stamp).is_err() && yard.try_sling(&forced("gt-1")).is_err());
    yard.store.end_landing(&target(), &stamp).expect("whoever did it has died");
    yard.store.drop_merge("mr-1", "no", &stamp).expect("it is dropped");
    assert!(!yard.begin_landing(&both, &[]), "one of them is not wanted");
    yard.store.drop_merge("mr-2", "no", &stamp).expect("the other was not marked");
    yard.check();
}

#[test]
fn what_a_landing_brings_is_agents_work_and_a_landing_that_is_refused_brings_nothing() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.handed_over("gt-1", "mr-1");
    yard.handed_over("gt-2", "mr-2");
    let stamp = yard.stamp();
    let [one, two, other] = ["c1", "c2", "c3"].map(str::to_owned);
    assert!(yard.begin_landing(&["mr-1"], &[one.clone(), one.clone()]));
    yard.store.drop_merge("mr-2", "no", &stamp).expect("it is dropped");
    assert!(!yard.begin_landing(&["mr-2"], slice::from_ref(&two)));
    let known = yard.store.agent_commits(&[two, one.clone(), other]).expect("it answers");
    assert_eq!(known.into_iter().collect::<Vec<_>>(), [one]);
    yard.check();
}

#[test]
fn a_held_target_waits_for_its_time_and_a_paused_one_for_a_person() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.handed_over("gt-1", "mr-1");
    let due = |yard: &mut Yard| {
        let now = yard.now;
        yard.store.due_targets(now).expect("it answers").len()
    };
    let next = |yard: &mut Yard| {
        let now = yard.now;
        yard.store.next_merge_at(now).expect("it answers")
    };
    assert_eq!((due(&mut yard), next(&mut yard)), (1, None));
    let until = yard.now + SignedDuration::from_secs(10);
    for n in 1..=2 {
        let stamp = yard.stamp();
        yard.store.hold_target(&target(), "it is dirty", until, &stamp).expect("it is held");
        let hold = yard.store.target_hold(&target()).expect("it answers").expect("it is held");
        assert_eq!((hold.tries, hold.reason.as_str()), (n, "it is dirty"));
    }
    assert_eq!(yard.rows("SELECT count(*) || '' FROM event WHERE type = 'merge.held'"), ["1"], "one story, told once");
    assert_eq!((due(&mut yard), next(&mut yard)), (0, Some(until)));
    assert!(yard.explain("gt-1").reasons.iter().any(|reason| reason.message.contains("it is dirty")));
    let stamp = yard.stamp();
    yard.store.retry_held_targets(&stamp).expect("they are due");
    assert_eq!((due(&mut yard), next(&mut yard)), (1, None));
    let hold = yard.store.target_hold(&target()).expect("it answers").expect("the reason stays until it is tried");
    assert_eq!((hold.tries, hold.reason.as_str()), (1, "it is dirty"));
    yard.store.hold_target(&target(), "it is dirty", until, &stamp).expect("it is held");
    assert_eq!((due(&mut yard), next(&mut yard)), (0, Some(until)));
    yard.pass(10);
    assert_eq!((due(&mut yard), next(&mut yard)), (1, None));
    let stamp = yard.stamp();
    yard.store.free_target(&target(), &stamp).expect("it is free");
    assert_eq!(yard.store.target_hold(&target()).expect("it answers"), None);
    for rig in [None, Some("shop")] {
        assert!(yard.store.pause_refinery(rig, Some("lunch"), &stamp).expect("it is paused"));
        assert!(!yard.store.pause_refinery(rig, Some("lunch"), &stamp).expect("it is paused"), "once");
        assert_eq!(due(&mut yard), 0);
        assert!(yard.store.resume_refinery(rig, &stamp).expect("it is resumed"));
        assert_eq!(due(&mut yard), 1);
    }
    assert!(yard.store.pause_refinery(Some("docs"), None, &stamp).expect("it is paused"));
    assert_eq!(due(&mut yard), 1, "another rig");
}

#[test]
fn a_clock_that_is_set_back_does_not_hold_a_target_until_it_has_caught_up() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-1");
    let hold = |yard: &mut Yard| {
        let (stamp, until) = (yard.stamp(), yard.now + SignedDuration::from_secs(10));
        yard.store.hold_target(&target(), "it is dirty", until, &stamp).expect("it is held");
        until
    };
    hold(&mut yard);
    let back = yard.now - SignedDuration::from_hours(1);
    assert_eq!(yard.store.due_targets(back).expect("it answers"), [target()]);
    assert_eq!(yard.store.next_merge_at(back).expect("it answers"), None);
    // Held again, it waits by the clock of now.
    yard.now = back;
    let until = hold(&mut yard);
    assert_eq!(yard.store.due_targets(back).expect("it answers"), []);
    assert_eq!(yard.store.next_merge_at(back).expect("it answers"), Some(until));
}

/// A run that leaves its work to a fresh one costs nothing, keeps its place, and its word and branch are told.
#[test]
fn a_handoff_is_told_to_the_next_run() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    let note = Some("half of it is there".to_owned());
    let report = Report { run: run.clone(), outcome: Outcome::HandedOff, note, cost: None, merge: None, tip: None };
    let stamp = yard.stamp();
    yard.store.report(&report, &stamp).expect("it is taken");
    yard.end_as(gt_store::Ended { patch: Some("/town/run.patch".to_owned()), ..ended(&run) });
    let next = yard.claim_one();
    assert_eq!((next.bead.as_str(), next.attempts), ("gt-1", 0));
    assert_eq!(next.handoff.as_deref(), Some("half of it is there"));
    assert_eq!((next.left_branch, next.left_patch.as_deref()), (yard.run(&run).branch, Some("/town/run.patch")));
    // One that dies after that is told as what it is.
    yard.start(&next.run);
    yard.end(&next.run);
    yard.pass(400);
    let third = yard.claim_one();
    assert_eq!((third.handoff, third.attempts, third.left_patch), (None, 1, None));
    yard.check();
}

impl Yard {
    /// A run of the only bead hands its work on at a commit. What the next one has had to wait for.
    fn hand_on(&mut self, tip: &str) {
        let run = self.claim_one().run;
        self.start(&run);
        let (tip, note) = (Some(tip.to_owned()), Some("go on".to_owned()));
        let report = Report { run: run.clone(), outcome: Outcome::HandedOff, note, cost: None, merge: None, tip };
        let stamp = self.stamp();
        self.store.report(&report, &stamp).expect("it is taken");
        self.end(&run);
        self.pass(1);
    }
}

/// Handing on and on without a commit is no progress: it cools down, costs attempts, and ends with a person.
#[test]
fn a_handoff_without_a_new_commit_costs_an_attempt() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    for tip in ["a", "b", "c"] {
        yard.hand_on(tip);
    }
    for _ in 0..=yard.policy.redispatch_attempts {
        yard.hand_on("c");
        assert_eq!(yard.claims(), Vec::<String>::new(), "it cools down");
        yard.pass(400);
    }
    assert_eq!((yard.claims(), yard.explained("gt-1")), (Vec::new(), "ready: out-of-attempts".to_owned()));
    let letters = yard.store.inbox(gt_store::MAYOR, true, 10).expect("it answers").letters;
    assert_eq!(letters.len(), 1, "{letters:?}");
    yard.check();
}

/// However much is committed: work that is handed on all the time is looked at in the end.
#[test]
fn twenty_handoffs_in_a_row_are_free() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    for n in 0..20 {
        yard.hand_on(&n.to_string());
    }
    yard.hand_on("one more");
    assert_eq!(yard.claims(), Vec::<String>::new(), "it cools down");
    yard.pass(400);
    assert_eq!(yard.claim_one().attempts, 1);
    yard.check();
}

/// What is committed after the work was handed over takes the place of it, while that waits.
#[test]
fn later_work_of_a_run_replaces_what_waits() {
    let mut yard = Yard::with(&["gt-1"]);
    let run = yard.working("gt-1").run;
    yard.hand_over(&run, "mr-1").expect("it is taken");
    let again = |yard: &mut Yard, id: &str| {
        let (branch, target) = ("polecat/Toast/mr-1".to_owned(), "main".to_owned());
        let (id, tip) = (id.to_owned(), "later".to_owned());
        let work = HandOver { id, target, branch, tip, strategy: Strategy::Queue, replaces: None };
        let stamp = yard.stamp();
        yard.store.hand_over_again(&run, &work, &stamp).expect("it answers")
    };
    assert!(again(&mut yard, "mr-2"));
    assert_eq!((yard.merge("mr-1").state, yard.waiting()), (MergeState::Dropped, vec!["mr-2".to_owned()]));
    assert!(!yard.begin_landing(&["mr-1"], &[]), "the old one lands no more");
    assert!(yard.begin_landing(&["mr-2"], &[]));
    assert!(!again(&mut yard, "mr-3"), "it is too late");
    yard.merged("mr-2");
    assert!(!again(&mut yard, "mr-3"), "it is over");
    yard.check();
}

#[test]
fn a_rig_with_merges_that_wait_is_removed_only_by_force_and_drops_them() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.handed_over("gt-1", "mr-1");
    let stamp = yard.stamp();
    let refused = yard.store.remove_rig("shop", false, &stamp).expect_err("it is in use").to_string();
    assert_eq!(refused, "rig `shop` still has 2 active beads, and 1 merge waits");
    yard.store.remove_rig("shop", true, &stamp).expect("it is removed");
    let merge = yard.merge("mr-1");
    assert_eq!((merge.state, merge.reason.as_deref()), (MergeState::Dropped, Some("the rig shop was removed")));
    assert_eq!(yard.holder("gt-1"), ("open".to_owned(), None));
}

/// An edge by hand from the rework to what it is for would be a cycle.
#[test]
fn a_rework_cannot_wait_for_what_waits_for_it() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.handed_over("gt-1", "mr-1");
    let ReturnedAs::Rework { bead: rework } = yard.give_back("mr-1", &conflict()) else { panic!("a new bead") };
    let stamp = yard.stamp();
    assert!(yard.store.add_edge(&rework, &Edge::new("gt-1", EdgeType::Blocks), &stamp).is_err());
}
