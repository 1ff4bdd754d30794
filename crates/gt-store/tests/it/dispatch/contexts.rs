//! Contexts: cleared, tried again, read as beads, and the answer of `explain` in every situation.

use gt_core::context::LABEL;
use gt_core::event::EventType;
use gt_core::rig::RigState;
use gt_core::run::Outcome;
use gt_core::status::Status;
use gt_store::{BeadPatch, Fault, Filter, Stamp, Store, StoreError, View};

use crate::town::ids;
use crate::yard::{Yard, asked, forced};

fn listed(yard: &mut Yard, filter: &Filter) -> Vec<View> {
    let filter = Filter { labels: vec![LABEL.to_owned()], ..filter.clone() };
    yard.store.list(&filter, 0).expect("the list answers").beads
}

#[test]
fn contexts_read_as_ephemeral_beads_that_track_their_work() {
    let mut yard = Yard::with(&["gt-1"]);
    let mut sling = asked(&["gt-1"]);
    sling.fields.args = Some("carefully".to_owned());
    let answer = yard.try_sling(&sling).expect("it is slung").remove(0);
    let id = answer.context.expect("it is scheduled");
    let view = yard.store.bead(&id).expect("it reads as a bead");
    let bead = &view.bead;
    assert_eq!((bead.title.as_str(), bead.status.as_str()), ("sling-context: gt-1", "open"));
    assert_eq!((bead.labels.as_slice(), bead.is_wisp()), ([LABEL.to_owned()].as_slice(), true));
    assert_eq!(view.rig.as_deref(), Some("shop"));
    let edges: Vec<(&str, &str)> = bead.edges.iter().map(|edge| (edge.target.as_str(), edge.kind.as_str())).collect();
    assert_eq!(edges, [("gt-1", "tracks")]);
    let fields = gt_core::context::parse(&bead.body.text("description").expect("the fields")).expect("they are valid");
    assert_eq!((fields.version, fields.work_bead_id.as_str(), fields.target_rig.as_str()), (1, "gt-1", "shop"));
    assert_eq!((fields.args.as_deref(), fields.convoy), (Some("carefully"), answer.convoy));
    assert!(!yard.export().contains(&id), "they are kept apart from the beads");
    assert_eq!(yard.ready(), ["gt-1"], "and are no work themselves");
}

#[test]
fn contexts_are_listed_by_their_label_and_status() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3 > gt-2:blocks"]);
    yard.working("gt-1");
    yard.sling(&["gt-2", "gt-3"]);
    yard.claim_one();
    let with = |status: Status| Filter { statuses: vec![status], ..Filter::default() };
    let mut works = |filter: &Filter| -> Vec<String> {
        listed(&mut yard, filter).into_iter().map(|view| view.bead.edges[0].target.clone()).collect()
    };
    assert_eq!(works(&Filter::default()), ["gt-2", "gt-3"]);
    assert_eq!(works(&Filter { all: true, ..Filter::default() }).len(), 3);
    for (status, work) in [(Status::Open, "gt-3"), (Status::Hooked, "gt-2"), (Status::Closed, "gt-1")] {
        assert_eq!(works(&with(status)), [work]);
    }
    let filter = Filter { labels: vec![LABEL.to_owned()], all: true, ..Filter::default() };
    let cut = yard.store.list(&filter, 2).expect("the list answers");
    assert_eq!((cut.beads.len(), cut.more), (2, true));
    let everything = yard.store.list(&Filter { all: true, ..Filter::default() }, 0).expect("the list answers");
    assert!(ids(everything.beads).iter().all(|id| !id.contains("wisp")), "only who asks for them gets them");
}

type Verb = fn(&mut Store, &str, &Stamp) -> Result<(), StoreError>;

#[test]
fn a_context_is_not_changed_like_a_bead() {
    let mut yard = Yard::with(&["gt-1"]);
    let id = yard.sling(&["gt-1"])[0].context.clone().expect("it is scheduled");
    let verbs: [Verb; 7] = [
        |store, id, stamp| store.update_bead(id, &BeadPatch::default(), stamp).map(drop),
        |store, id, stamp| store.close_beads(&[id.to_owned()], None, stamp).map(drop),
        |store, id, stamp| store.delete_beads(&[id.to_owned()], None, stamp).map(drop),
        |store, id, stamp| store.claim_bead(id, "ada", stamp).map(drop),
        |store, id, stamp| store.comment(id, "hello", stamp).map(drop),
        |store, id, stamp| store.clear_contexts(Some(id), stamp).map(drop),
        |store, id, stamp| store.sling(&asked(&[id]), None, stamp).map(drop),
    ];
    for verb in verbs {
        let said = yard.refused(|store, stamp| verb(store, &id, stamp));
        assert_eq!(said, format!("{id} is a sling context, not work"));
    }
    assert_eq!(yard.outlook().scheduled.len(), 1);
}

#[test]
fn what_is_cleared_is_held_until_somebody_asks_for_it() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    yard.sling(&["gt-1", "gt-2", "gt-3"]);
    assert_eq!(yard.told(|store, stamp| store.clear_contexts(Some("gt-2"), stamp)).0, ["gt-2"]);
    assert!(yard.quiet(|store, stamp| store.clear_contexts(Some("gt-2"), stamp)).is_empty());
    assert_eq!(yard.explained("gt-2"), "ready: cleared");
    yard.policy.batch = Some(1);
    assert_eq!(yard.claims(), ["gt-1"]);
    let (cleared, told) = yard.told(|store, stamp| store.clear_contexts(None, stamp));
    assert_eq!(cleared, ["gt-3"], "what is being started stays");
    assert!(told[0].starts_with("context.closed gt-3") && told[0].contains(r#""reason":"cleared""#), "{told:?}");
    yard.pass(100_000);
    assert_eq!(yard.claims(), Vec::<String>::new());
    yard.sling(&["gt-2"]);
    assert_eq!(yard.claims(), ["gt-2"]);
    yard.told(|store, stamp| store.retry("gt-3", stamp));
    assert_eq!(yard.claims(), ["gt-3"]);
    assert!(yard.refused(|store, stamp| store.clear_contexts(Some("gt-9"), stamp)).starts_with("there is no bead"));
}

#[test]
fn a_retry_forgets_what_failed_and_keeps_the_place_in_the_queue() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.sling(&["gt-1"]);
    let run = yard.claim_one().run;
    yard.fail(&run, "no such tool", Fault::Bead);
    yard.pass(1);
    yard.told(|store, stamp| store.pause(None, stamp));
    yard.sling(&["gt-2"]);
    // While it backs off …
    let context = yard.scheduled("gt-1").context;
    assert_eq!(yard.told(|store, stamp| store.retry("gt-1", stamp)).0, context, "the same context");
    assert_eq!((yard.scheduled("gt-1").failures, yard.scheduled("gt-1").last_failure), (0, None));
    // … and after its circuit broke.
    yard.told(Store::resume);
    yard.policy.max_failures = 1;
    yard.policy.batch = Some(1);
    let run = yard.claim_one();
    assert_eq!(run.bead, "gt-1");
    yard.fail(&run.run, "no such tool", Fault::Bead);
    assert_eq!(yard.explained("gt-1"), "ready: circuit-broken");
    let again = yard.told(|store, stamp| store.retry("gt-1", stamp)).0;
    assert_ne!(again, context);
    assert_eq!(yard.scheduled("gt-1").failures, 0);
    assert_eq!(yard.claims(), ["gt-1"], "before those that came after it");
}

#[test]
fn a_retry_of_what_nothing_holds_is_refused() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.close("gt-2");
    assert_eq!(yard.refused(|store, stamp| store.retry("gt-1", stamp)), "gt-1 is not scheduled");
    assert_eq!(yard.refused(|store, stamp| store.retry("gt-2", stamp)), "gt-2 is closed: its work is done");
    yard.working("gt-1");
    assert_eq!(yard.refused(|store, stamp| store.retry("gt-1", stamp)), "gt-1 is not scheduled");
}

/// Who asks by name takes a bead from whom it is assigned to. // SPEC D5
#[test]
fn a_retry_takes_what_was_assigned_meanwhile() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    yard.told(|store, stamp| store.clear_contexts(None, stamp));
    yard.assign("gt-1", Some("ada"));
    yard.told(|store, stamp| store.retry("gt-1", stamp));
    assert_eq!(yard.claims(), ["gt-1"]);
}

/// One situation, and what `explain` says of `gt-1` in it.
type Situation = (&'static str, fn(&mut Yard), &'static str);

const SITUATIONS: [Situation; 22] = [
    ("free", |_| {}, "ready: ready"),
    ("assigned", |yard| yard.assign("gt-1", Some("ada")), "ready: assigned"),
    ("scheduled", |yard| drop(yard.sling(&["gt-1"])), "scheduled: scheduled"),
    (
        "blocked",
        |yard| {
            yard.link("gt-1", "gt-2", "blocks");
            yard.sling(&["gt-1"]);
        },
        "blocked: scheduled blocked",
    ),
    (
        "deferred",
        |yard| {
            yard.defer("gt-1", Some(60));
            yard.sling(&["gt-1"]);
        },
        "deferred: scheduled deferred",
    ),
    (
        "taken by a person",
        |yard| {
            yard.sling(&["gt-1"]);
            yard.set_status("gt-1", "in_progress");
        },
        "in_progress: scheduled in-progress",
    ),
    (
        "given to a person",
        |yard| {
            yard.sling(&["gt-1"]);
            yard.assign("gt-1", Some("ada"));
        },
        "scheduled: scheduled assigned",
    ),
    (
        "in a parked rig",
        |yard| {
            yard.sling(&["gt-1"]);
            yard.told(|store, stamp| store.set_rig_state("shop", RigState::Parked, EventType::RigParked, stamp));
        },
        "scheduled: scheduled rig-parked",
    ),
    (
        "paused",
        |yard| {
            yard.sling(&["gt-1"]);
            yard.told(|store, stamp| store.pause(None, stamp));
        },
        "scheduled: scheduled paused",
    ),
    (
        "no capacity",
        |yard| {
            yard.sling(&["gt-1"]);
            yard.policy.caps.town = Some(0);
        },
        "scheduled: scheduled no-capacity",
    ),
    (
        "everything at once",
        |yard| {
            yard.link("gt-1", "gt-2", "blocks");
            yard.sling(&["gt-1"]);
            yard.assign("gt-1", Some("ada"));
            yard.policy.caps.host = Some(0);
            yard.told(|store, stamp| store.pause(None, stamp));
        },
        "blocked: scheduled blocked assigned paused host-full",
    ),
    (
        "starting",
        |yard| {
            yard.sling(&["gt-1"]);
            yard.claim_one();
        },
        "starting: starting",
    ),
    ("running", |yard| drop(yard.working("gt-1")), "running: running"),
    (
        "stopping",
        |yard| {
            let run = yard.working("gt-1").run;
            yard.stop(&run, Outcome::Stopped);
        },
        "running: stopping",
    ),
    (
        "slung again",
        |yard| {
            yard.working("gt-1");
            yard.try_sling(&forced("gt-1")).expect("by force");
        },
        "in_progress: scheduled old-run",
    ),
    (
        "stopped",
        |yard| {
            let run = yard.working("gt-1").run;
            yard.stop(&run, Outcome::Stopped);
            yard.end(&run);
        },
        "ready: stopped",
    ),
    (
        "cooling down",
        |yard| {
            let run = yard.working("gt-1").run;
            yard.end(&run);
        },
        "scheduled: scheduled cooling-down",
    ),
    (
        "out of attempts",
        |yard| {
            yard.policy.redispatch_attempts = 0;
            let run = yard.working("gt-1").run;
            yard.end(&run);
        },
        "ready: out-of-attempts",
    ),
    (
        "backing off",
        |yard| {
            yard.sling(&["gt-1"]);
            let run = yard.claim_one().run;
            yard.fail(&run, "no such tool", Fault::Bead);
        },
        "scheduled: scheduled backing-off",
    ),
    (
        "broken",
        |yard| {
            yard.policy.max_failures = 1;
            yard.sling(&["gt-1"]);
            let run = yard.claim_one().run;
            yard.fail(&run, "no such tool", Fault::Bead);
        },
        "ready: circuit-broken",
    ),
    (
        "finished, still ending",
        |yard| {
            let run = yard.working("gt-1").run;
            yard.report(&run, Outcome::Completed).expect("it is taken");
        },
        "done: ending closed",
    ),
    (
        "cleared and closed",
        |yard| {
            yard.sling(&["gt-1"]);
            yard.told(|store, stamp| store.clear_contexts(None, stamp));
            yard.close("gt-1");
        },
        "done: closed",
    ),
];

#[test]
fn explain_has_an_answer_in_every_situation() {
    for (name, make, wanted) in SITUATIONS {
        let mut yard = Yard::with(&["gt-1", "gt-2"]);
        make(&mut yard);
        yard.check();
        assert_eq!(yard.explained("gt-1"), wanted, "{name}");
    }
}

#[test]
fn nothing_that_only_asks_leaves_a_trace() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks"]);
    yard.sling(&["gt-1", "gt-2"]);
    let (policy, now) = (yard.policy.clone(), yard.now);
    let before = yard.number("PRAGMA data_version");
    yard.quiet(|store, _| {
        store.outlook(&policy, now)?;
        store.explain("gt-2", &policy, now)?;
        store.next_deadline(&policy, now)?;
        store.scheduler_state(now).map(drop)
    });
    assert_eq!(before, yard.number("PRAGMA data_version"));
}
