//! Slings: the guards in their order, batches, force, and the convoy that each sling gets.

use gt_core::event::EventType;
use gt_core::rig::RigState;
use gt_core::run::Outcome;
use gt_store::{BeadPatch, ConvoyWish, Kinds, LoadKind, Sling, SlingOutcome, Slung};

use crate::yard::{Yard, asked, beads_of, forced};

fn refused(yard: &mut Yard, sling: &Sling) -> String {
    let said = yard.refused(|store, stamp| store.sling(sling, None, stamp));
    yard.check();
    said
}

fn into_rig(bead: &str, rig: &str) -> Sling {
    Sling { rig: Some(rig.to_owned()), ..asked(&[bead]) }
}

fn park(yard: &mut Yard, rig: &str) {
    let stamp = yard.stamp();
    yard.store.set_rig_state(rig, RigState::Parked, EventType::RigParked, &stamp).expect("it is parked");
}

/// `bead outcome: reason`, one a line.
fn answers(slung: &[Slung]) -> Vec<String> {
    let line = |slung: &Slung| {
        let reason = slung.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{} {:?}{reason}", slung.bead, slung.outcome)
    };
    slung.iter().map(line).collect()
}

#[test]
fn a_sling_stores_a_context_and_leaves_the_work_as_it_was() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks"]);
    let before = yard.work();
    let slung = yard.sling(&["gt-1", "gt-2"]);
    assert_eq!(before, yard.work());
    for slung in &slung {
        assert_eq!(slung.rig.as_deref(), Some("shop"));
        assert!(slung.context.as_ref().is_some_and(|id| id.starts_with("gt-wisp-")), "{slung:?}");
    }
    assert_eq!(yard.live(), Vec::new(), "no agent before there is a slot");
    assert_eq!(yard.store.polecats().expect("it answers"), Vec::new());
    let now = yard.now;
    assert!(yard.store.has_ready_contexts(Kinds::All, now).expect("it answers"));
}

#[test]
fn each_guard_refuses_with_its_reason_and_changes_nothing() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4", "gt-5", "gt-6", "zz-7", "hq-8"]);
    yard.close("gt-2");
    yard.set_status("gt-3", "in_progress");
    yard.assign("gt-3", Some("ada"));
    let kind = |word: &str| BeadPatch { issue_type: Some(word.to_owned()), ..BeadPatch::default() };
    yard.patch("gt-4", &kind("epic")).expect("it is changed");
    yard.patch("gt-5", &BeadPatch { pinned: Some(true), ..BeadPatch::default() }).expect("it is pinned");
    yard.patch("gt-6", &BeadPatch { ephemeral: Some(true), ..BeadPatch::default() }).expect("it is a wisp");
    for (sling, why) in [
        (asked(&["gt-9"]), "there is no bead `gt-9`"),
        (into_rig("gt-1", "nowhere"), "there is no rig `nowhere`"),
        (asked(&["gt-2"]), "gt-2 is closed: its work is done"),
        (into_rig("gt-1", "mill"), "gt-1 belongs to rig `shop`, not to rig `mill`"),
        (asked(&["zz-7"]), "no registered rig has a prefix that fits zz-7"),
        (into_rig("zz-7", "mill"), "no registered rig has a prefix that fits zz-7"),
        (asked(&["hq-8"]), "hq-8 is a town bead, which is never given to an agent"),
        (Sling { force: true, ..into_rig("hq-8", "shop") }, "hq-8 is a town bead, which is never given to an agent"),
        (asked(&["gt-3"]), "gt-3 is already on the hook of ada"),
        (asked(&["gt-4"]), "gt-4 is of type epic, which is never given to an agent"),
        (asked(&["gt-5"]), "gt-5 is not ready: it is pinned"),
        (asked(&["gt-6"]), "gt-6 is not ready: it is ephemeral"),
    ] {
        let said = refused(&mut yard, &sling);
        assert!(said.starts_with(why), "{said}");
    }
    park(&mut yard, "shop");
    assert_eq!(refused(&mut yard, &asked(&["gt-1"])), "rig `shop` is parked, and takes no work");
    assert_eq!(refused(&mut yard, &forced("gt-1")), "rig `shop` is parked, and takes no work");
    let stamp = yard.stamp();
    yard.store.set_rig_state("shop", RigState::Docked, EventType::RigDocked, &stamp).expect("it is docked");
    assert_eq!(refused(&mut yard, &asked(&["gt-1"])), "rig `shop` is docked, and takes no work");
}

/// A bead with every fault at once; each is mended, and the next one is told. // SPEC P3
#[test]
fn the_guards_speak_in_the_promised_order() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    yard.close("gt-1");
    park(&mut yard, "mill");
    park(&mut yard, "shop");
    let wrong = into_rig("gt-1", "mill");
    assert_eq!(refused(&mut yard, &wrong), "gt-1 is closed: its work is done");
    yard.reopen("gt-1");
    assert_eq!(refused(&mut yard, &wrong), "gt-1 belongs to rig `shop`, not to rig `mill`");
    let slung = yard.try_sling(&asked(&["gt-1"])).expect("twice is fine");
    assert_eq!(answers(&slung), ["gt-1 AlreadyScheduled: it is scheduled already"]);
    let stamp = yard.stamp();
    yard.store.clear_contexts(Some("gt-1"), &stamp).expect("it is cleared");
    yard.set_status("gt-1", "in_progress");
    assert_eq!(refused(&mut yard, &asked(&["gt-1"])), "gt-1 is already on the hook of somebody");
    yard.set_status("gt-1", "open");
    assert_eq!(refused(&mut yard, &asked(&["gt-1"])), "rig `shop` is parked, and takes no work");
}

#[test]
fn a_batch_answers_for_each_bead_and_each_bead_once() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4", "ml-5", "zz-6", "hq-7"]);
    yard.sling(&["gt-1"]);
    yard.close("gt-2");
    let stamp = yard.stamp();
    yard.store.claim_bead("gt-3", "ada", &stamp).expect("ada has it");
    let beads = ["gt-1", "gt-2", "gt-3", "gt-4", "ml-5", "zz-6", "hq-7", "gt-9", "gt-4"];
    let slung = yard.try_sling(&asked(&beads)).expect("a batch goes on");
    assert_eq!(
        answers(&slung),
        [
            "gt-1 AlreadyScheduled: it is scheduled already",
            "gt-2 Skipped: gt-2 is closed: its work is done",
            "gt-3 Skipped: gt-3 is already on the hook of ada",
            "gt-4 Scheduled",
            "ml-5 Scheduled",
            "zz-6 Refused: no registered rig has a prefix that fits zz-6",
            "hq-7 Skipped: hq-7 is a town bead, which is never given to an agent",
            "gt-9 Refused: there is no bead `gt-9`",
        ]
    );
    assert_eq!(slung[4].rig.as_deref(), Some("mill"), "each bead has its own rig");
}

#[test]
fn slinging_twice_is_a_no_op_that_names_the_context() {
    let mut yard = Yard::with(&["gt-1"]);
    let first = yard.sling(&["gt-1"]).remove(0);
    for sling in [asked(&["gt-1"]), forced("gt-1")] {
        let (again, _) = yard.quiet(|store, stamp| store.sling(&sling, None, stamp));
        assert_eq!((again[0].outcome, &again[0].context), (SlingOutcome::AlreadyScheduled, &first.context));
    }
    // While it is being started it is still the same one.
    yard.claim_one();
    let again = yard.try_sling(&forced("gt-1")).expect("twice is fine");
    assert_eq!((again[0].outcome, &again[0].context), (SlingOutcome::AlreadyScheduled, &first.context));
    assert_eq!(yard.live()[0].stop, None, "what is being started is left alone");
}

#[test]
fn force_on_a_running_bead_fences_the_run_and_waits_for_its_end() {
    let mut yard = Yard::with(&["gt-1"]);
    let old = yard.working("gt-1");
    assert_eq!(refused(&mut yard, &asked(&["gt-1"])), "gt-1 is already on the hook of shop/polecats/Toast");
    yard.pass(5);
    let before = yard.work();
    let ((slung, _), told) = yard.told(|store, stamp| store.sling(&forced("gt-1"), None, stamp));
    assert_eq!(slung[0].outcome, SlingOutcome::Scheduled);
    assert!(told.iter().any(|event| event.starts_with("run.stopping gt-1")), "{told:?}");
    assert_eq!(before, yard.work(), "the bead is its run's until that ends");
    let stop = yard.run(&old.run).stop.expect("it was told to stop");
    assert_eq!((stop.outcome, stop.reason.as_str()), (Outcome::Stopped, "tester slung its bead again"));
    // What the old run says counts no more, and the new one waits.
    assert!(yard.report(&old.run, Outcome::Completed).is_err());
    assert_eq!(yard.held_by("gt-1"), ["old-run"]);
    assert_eq!(yard.claims(), Vec::<String>::new());
    yard.end(&old.run);
    assert_eq!(yard.run(&old.run).outcome, Some(Outcome::Stopped));
    let new = yard.claim_one();
    assert_eq!((new.bead.as_str(), new.attempts), ("gt-1", 0), "being taken away costs no attempt");
    assert_ne!(new.run, old.run);
}

#[test]
fn force_takes_a_bead_from_a_person_and_says_so() {
    let mut yard = Yard::with(&["gt-1"]);
    let stamp = yard.stamp();
    yard.store.claim_bead("gt-1", "ada", &stamp).expect("ada has it");
    assert_eq!(refused(&mut yard, &asked(&["gt-1"])), "gt-1 is already on the hook of ada");
    let sling = forced("gt-1");
    let (_, told) = yard.told(|store, stamp| store.sling(&sling, None, stamp));
    assert!(told.contains(&r#"bead.released gt-1 {"assignee":"ada","status":"open"}"#.to_owned()), "{told:?}");
    assert_eq!(yard.holder("gt-1"), ("open".to_owned(), None));
    assert_eq!(yard.claims(), ["gt-1"]);
}

/// The run has the slot, a person the bead: neither keeps it.
#[test]
fn force_takes_a_bead_from_its_run_and_from_a_person_at_once() {
    let mut yard = Yard::with(&["gt-1"]);
    let old = yard.working("gt-1");
    yard.assign("gt-1", Some("ada"));
    yard.try_sling(&forced("gt-1")).expect("by force");
    assert!(yard.run(&old.run).stop.is_some());
    yard.end(&old.run);
    assert_eq!(yard.claims(), ["gt-1"]);
}

/// A refusal in a batch must not have taken anything away before.
#[test]
fn force_into_a_parked_rig_leaves_the_bead_with_whoever_has_it() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "ml-3"]);
    let run = yard.working("gt-1").run;
    let stamp = yard.stamp();
    yard.store.claim_bead("gt-2", "ada", &stamp).expect("ada has it");
    park(&mut yard, "shop");
    let before = yard.work();
    let slung = yard.try_sling(&Sling { force: true, ..asked(&["gt-1", "gt-2", "ml-3"]) }).expect("a batch goes on");
    assert_eq!(
        answers(&slung),
        [
            "gt-1 Refused: rig `shop` is parked, and takes no work",
            "gt-2 Refused: rig `shop` is parked, and takes no work",
            "ml-3 Scheduled"
        ]
    );
    assert_eq!(before, yard.work());
    assert_eq!(yard.run(&run).stop, None);
}

#[test]
fn force_takes_a_bead_into_another_rig() {
    let mut yard = Yard::with(&["gt-1", "zz-2"]);
    for bead in ["gt-1", "zz-2"] {
        yard.pass(1);
        let slung = yard.try_sling(&Sling { force: true, ..into_rig(bead, "mill") }).expect("by force");
        assert_eq!(slung[0].rig.as_deref(), Some("mill"));
        assert!(slung[0].context.as_ref().is_some_and(|id| id.starts_with("ml-wisp-")), "{slung:?}");
    }
    let claimed = yard.claim();
    assert_eq!(beads_of(&claimed), ["gt-1", "zz-2"]);
    assert!(claimed.iter().all(|assignment| assignment.rig.name == "mill"));
}

/// One transaction has one time, and still the first is the first. // SPEC D2
#[test]
fn what_is_slung_together_stands_in_the_queue_as_it_was_named() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4", "gt-5", "gt-6", "gt-7", "gt-8"]);
    let beads = ["gt-4", "gt-1", "gt-8", "gt-5", "gt-2", "gt-7", "gt-3", "gt-6"];
    yard.sling(&beads);
    assert_eq!(yard.outlook().scheduled.iter().map(|scheduled| scheduled.bead.as_str()).collect::<Vec<_>>(), beads);
    assert_eq!(yard.claims(), beads);
}

#[test]
fn a_direct_sling_claims_what_it_schedules_in_the_same_step() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks"]);
    let (slung, claimed) = yard.sling_direct(&asked(&["gt-1", "gt-2"])).expect("it is slung");
    assert_eq!(answers(&slung), ["gt-1 Scheduled", "gt-2 Scheduled"]);
    assert_eq!(beads_of(&claimed), ["gt-1"]);
    assert_eq!((claimed[0].polecat.name.as_str(), claimed[0].agent.as_str()), ("Toast", "claude"));
    assert_eq!(yard.holder("gt-1"), ("hooked".to_owned(), Some("shop/polecats/Toast".to_owned())));
    assert_eq!(yard.held_by("gt-2"), ["blocked"]);
}

#[test]
fn each_sling_gets_one_convoy_for_what_no_open_one_tracks() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3", "gt-4"]);
    let slung = yard.sling(&["gt-1", "gt-2"]);
    let convoy = slung[0].convoy.clone().expect("it is tracked");
    assert!(convoy.starts_with("hq-cv-"), "{convoy}");
    assert_eq!(slung[1].convoy.as_ref(), Some(&convoy));
    let bead = yard.store.bead(&convoy).expect("it is a bead").bead;
    assert_eq!((bead.title.as_str(), bead.type_word()), ("Work: gt-1 and 1 more", "convoy"));
    assert_eq!(bead.edges.iter().map(|edge| edge.target.as_str()).collect::<Vec<_>>(), ["gt-1", "gt-2"]);
    // Taken off and slung again: the same convoy still tracks it, and only the new one gets another.
    let stamp = yard.stamp();
    yard.store.clear_contexts(None, &stamp).expect("they are cleared");
    let slung = yard.sling(&["gt-1", "gt-3"]);
    assert_eq!(slung[0].convoy.as_ref(), Some(&convoy));
    let other = slung[1].convoy.clone().expect("it is tracked");
    assert_ne!(other, convoy);
    assert_eq!(yard.number("SELECT count(*) FROM bead WHERE issue_type = 'convoy'"), 2);
    // A closed convoy tracks nobody.
    yard.close(&other);
    yard.store.clear_contexts(None, &stamp).expect("they are cleared");
    let slung = yard.sling(&["gt-3"]);
    assert!(slung[0].convoy.as_ref().is_some_and(|id| *id != other), "{slung:?}");
    assert_eq!(yard.store.bead(slung[0].convoy.as_ref().expect("told")).expect("it is there").bead.title, "Work: gt-3");
}

#[test]
fn a_convoy_can_be_left_out_named_or_owned() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    let none = yard.try_sling(&Sling { convoy: ConvoyWish::No, ..asked(&["gt-1"]) }).expect("it is slung");
    assert_eq!(none[0].convoy, None);
    assert_eq!(yard.number("SELECT count(*) FROM bead WHERE issue_type = 'convoy'"), 0);
    let mut sling = Sling { convoy: ConvoyWish::Auto { title: Some("autumn".to_owned()) }, ..asked(&["gt-2"]) };
    sling.fields.owned = true;
    let owned = yard.try_sling(&sling).expect("it is slung")[0].convoy.clone().expect("it is tracked");
    let bead = yard.store.bead(&owned).expect("it is a bead").bead;
    assert_eq!(
        (bead.title.as_str(), bead.body.get("owned").map(ToString::to_string).as_deref()),
        ("Work: autumn", Some("true"))
    );
    // A sling that schedules nothing makes none.
    yard.try_sling(&asked(&["gt-2"])).expect("twice is fine");
    assert_eq!(yard.number("SELECT count(*) FROM bead WHERE issue_type = 'convoy'"), 1);
}

#[test]
fn an_epic_and_a_convoy_say_what_they_are_made_of() {
    let mut yard = Yard::with(&[
        "gt-1",
        "gt-2 > gt-1:parent-child",
        "gt-3 > gt-2:parent-child",
        "gt-4 > gt-1:parent-child",
        "gt-5 > gt-1:blocks",
    ]);
    let kind = |word: &str| BeadPatch { issue_type: Some(word.to_owned()), ..BeadPatch::default() };
    yard.patch("gt-1", &kind("epic")).expect("it is changed");
    yard.patch("gt-2", &kind("epic")).expect("it is changed");
    let load = yard.store.load_of("gt-1").expect("it answers").expect("an epic");
    assert_eq!((load.kind, load.title.as_str()), (LoadKind::Epic, "gt-1"));
    assert_eq!(load.members, ["gt-3", "gt-4"], "an epic below is no work, what is below it is");
    assert_eq!(yard.store.load_of("gt-3").expect("it answers"), None);
    let convoy = yard.sling(&["gt-5", "gt-4"])[0].convoy.clone().expect("it is tracked");
    let load = yard.store.load_of(&convoy).expect("it answers").expect("a convoy");
    assert_eq!(load.kind, LoadKind::Convoy);
    assert_eq!(load.members.len(), 2);
    assert!(yard.refused(|store, _| store.load_of("gt-9")).starts_with("there is no bead `gt-9`"));
}

/// Seed 167 of formulas: the old run ends after the sling that took its bead away was taken off the queue.
#[test]
fn a_retry_goes_by_the_last_sling_though_an_older_run_ended_after_it() {
    let mut yard = Yard::with(&["gt-1"]);
    let old = yard.working("gt-1").run;
    let mut sling = Sling { force: true, ..asked(&["gt-1"]) };
    sling.fields.agent = Some("codex".to_owned());
    yard.try_sling(&sling).expect("by force");
    yard.told(|store, stamp| store.clear_contexts(Some("gt-1"), stamp));
    yard.end(&old);
    yard.told(|store, stamp| store.retry("gt-1", stamp));
    assert_eq!(yard.claim_one().agent, "codex");
}
