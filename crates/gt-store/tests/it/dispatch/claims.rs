//! Claims: the order, the caps, what holds everybody, and which polecat gets the work.

use gt_core::event::EventType;
use gt_core::plan::{Caps, Guard, Limit, PerSide, Trouble};
use gt_core::rig::RigState;
use gt_core::run::Outcome;
use gt_store::{BeadPatch, Claimant, Ended, Fault, Findings, Report, Sling, Store};
use jiff::SignedDuration;
use jiff::tz::TimeZone;

use crate::yard::{Yard, asked, beads_of, codes, ended, rig};

const FOUR: [&str; 4] = ["gt-1", "gt-2", "gt-3", "gt-4"];

/// Four beads, slung one after the other.
fn queue() -> Yard {
    let mut yard = Yard::with(&FOUR);
    for bead in FOUR {
        yard.sling(&[bead]);
        yard.pass(1);
    }
    yard
}

#[test]
fn the_first_to_come_is_the_first_to_start() {
    let mut yard = queue();
    yard.policy.caps.town = Some(2);
    assert_eq!(yard.claims(), ["gt-1", "gt-2"]);
    assert_eq!(yard.claims(), Vec::<String>::new());
    assert_eq!(yard.held_by("gt-3"), ["no-capacity"]);
    let message = &yard.scheduled("gt-3").reasons[0].message;
    assert_eq!(message, "all 2 slots of the town are taken by shop/Toast, shop/Ember");
}

#[test]
fn the_most_urgent_is_the_first_to_start_where_that_is_the_order() {
    let mut yard = queue();
    yard.policy.by_priority = true;
    let urgent = |priority: i64| BeadPatch { priority: Some(priority), ..BeadPatch::default() };
    yard.patch("gt-4", &urgent(0)).expect("it is changed");
    yard.patch("gt-2", &urgent(1)).expect("it is changed");
    let positions: Vec<String> = yard.outlook().scheduled.into_iter().map(|scheduled| scheduled.bead).collect();
    assert_eq!(positions, ["gt-4", "gt-2", "gt-1", "gt-3"]);
    assert_eq!(yard.claims(), positions);
}

/// SPEC B4: what was slung as a task and is none any more waits until it is one again.
#[test]
fn what_became_no_work_for_an_agent_does_not_start() {
    let mut yard = queue();
    let typed = |kind: &str| BeadPatch { issue_type: Some(kind.to_owned()), ..BeadPatch::default() };
    for (bead, kind) in [("gt-1", "epic"), ("gt-2", "decision"), ("gt-3", "convoy")] {
        yard.patch(bead, &typed(kind)).expect("it is changed");
    }
    assert_eq!(yard.outlook().n_ready, 1);
    assert_eq!(yard.claims(), ["gt-4"]);
    assert_eq!(yard.held_by("gt-1"), ["not-slingable"]);
    assert_eq!(yard.held_by("gt-2"), ["not-slingable"]);
    assert_eq!(yard.held_by("gt-3"), ["bookkeeping", "not-slingable"]);
    let message = &yard.scheduled("gt-1").reasons[0].message;
    assert_eq!(message, "its type epic is never given to an agent; its children may be");
    assert_eq!(yard.explained("gt-1"), "scheduled: scheduled not-slingable");
    yard.patch("gt-1", &typed("task")).expect("it is changed");
    assert_eq!(yard.claims(), ["gt-1"]);
}

/// While a run has the context it does not follow the bead; when its start fails it must have caught up.
#[test]
fn a_priority_that_changes_during_a_start_counts_after_it_failed() {
    let mut yard = queue();
    yard.policy.by_priority = true;
    yard.policy.batch = Some(1);
    let first = yard.claim_one();
    let urgent = BeadPatch { priority: Some(0), ..BeadPatch::default() };
    yard.patch("gt-1", &urgent).expect("it is changed");
    yard.patch("gt-3", &BeadPatch { priority: Some(1), ..BeadPatch::default() }).expect("it is changed");
    yard.fail(&first.run, "no such tool", Fault::Bead);
    yard.pass(10);
    yard.policy.batch = None;
    assert_eq!(yard.claims(), ["gt-1", "gt-3", "gt-2", "gt-4"]);
}

#[test]
fn each_cap_holds_and_says_who_has_the_slots() {
    let cap = |name: &str, cap: usize| [(name.to_owned(), cap)].into_iter().collect();
    for (caps, code, words) in [
        (Caps { town: Some(1), ..Caps::default() }, "no-capacity", "the one slot of the town is taken by shop/Toast"),
        (Caps { host: Some(1), ..Caps::default() }, "host-full", "the one slot of this host is taken by shop/Toast"),
        (
            Caps { rigs: cap("shop", 1), ..Caps::default() },
            "rig-full",
            "the one slot of rig shop is taken by shop/Toast",
        ),
        (
            Caps { agents: cap("claude", 1), ..Caps::default() },
            "agent-full",
            "the one slot of agent `claude` is taken by shop/Toast",
        ),
    ] {
        let mut yard = queue();
        yard.policy.caps = caps;
        let run = yard.claim_one().run;
        assert_eq!(yard.outlook().limit, Limit::Capacity);
        let held = yard.scheduled("gt-2").reasons;
        assert_eq!((codes(&held), held[0].message.as_str()), (vec![code], words));
        yard.start(&run);
        assert_eq!(yard.claims(), Vec::<String>::new(), "a started one still counts");
        yard.end(&run);
        assert_eq!(yard.claims(), ["gt-2"], "a slot that is free is filled");
    }
}

#[test]
fn a_cap_of_another_rig_agent_or_host_does_not_limit() {
    let mut yard = queue();
    yard.policy.caps.rigs.insert("mill".to_owned(), 0);
    yard.policy.caps.agents.insert("codex".to_owned(), 0);
    assert_eq!(yard.claims().len(), 4);
    // The same runs seen from another host: they fill the town, not that host.
    yard.import(&crate::town::file(&["gt-5", "gt-6"]));
    yard.sling(&["gt-5", "gt-6"]);
    yard.policy.host = "there".to_owned();
    yard.policy.caps.host = Some(1);
    assert_eq!(yard.claims(), ["gt-5"]);
    yard.policy.caps.host = None;
    yard.policy.caps.town = Some(5);
    assert_eq!(yard.held_by("gt-6"), ["no-capacity"]);
}

#[test]
fn a_lowered_cap_stops_nobody_and_starts_nobody() {
    let mut yard = queue();
    yard.policy.caps.town = Some(3);
    assert_eq!(yard.claims().len(), 3);
    yard.policy.caps.town = Some(1);
    assert_eq!(yard.claims(), Vec::<String>::new());
    assert_eq!((yard.outlook().capacity, yard.outlook().n_live), (Some(-2), 3));
}

#[test]
fn a_batch_a_limit_and_a_rate_are_the_most_of_one_pass() {
    let mut yard = queue();
    yard.policy.batch = Some(3);
    assert_eq!(yard.outlook().limit, Limit::Batch);
    assert_eq!(beads_of(&yard.pass_with(&Findings::default(), Some(1))), ["gt-1"]);
    yard.pass(1);
    yard.policy.starts_per_second = Some(2);
    yard.policy.batch = None;
    assert_eq!(yard.outlook().limit, Limit::Guard);
    assert_eq!(yard.claims(), ["gt-2", "gt-3"]);
    assert_eq!(yard.held_by("gt-4"), ["guard-starts"]);
    let (policy, now) = (yard.policy.clone(), yard.now);
    let next = yard.store.next_second(&policy, now).expect("it answers");
    assert_eq!(next, Some(now + SignedDuration::from_secs(1)));
    yard.pass(1);
    assert_eq!(yard.claims(), ["gt-4"]);
    let (policy, now) = (yard.policy.clone(), yard.now);
    assert_eq!(yard.store.next_second(&policy, now).expect("it answers"), None, "nobody waits for it");
}

#[test]
fn starts_before_the_clock_was_set_back_do_not_count_as_starts_of_this_second() {
    let mut yard = queue();
    yard.policy.starts_per_second = Some(2);
    assert_eq!(yard.claims(), ["gt-1", "gt-2"]);
    yard.pass(-3600);
    assert_eq!(yard.claims(), ["gt-3", "gt-4"]);
}

#[test]
fn a_pause_stops_every_path_and_says_by_whom() {
    let mut yard = queue();
    let (was_running, told) = yard.told(|store, stamp| store.pause(Some("lunch"), stamp));
    assert!(was_running);
    assert_eq!(told, [r#"scheduler.paused - {"reason":"lunch"}"#]);
    assert!(!yard.quiet(|store, stamp| store.pause(Some("again"), stamp)));
    assert_eq!(yard.claims(), Vec::<String>::new());
    assert_eq!(yard.outlook().limit, Limit::Paused);
    let words = &yard.scheduled("gt-1").reasons[0].message;
    assert!(words.starts_with("dispatch is paused by tester since 2026-01-01T00:00:04Z: lunch;"), "{words}");
    yard.import(&crate::town::file(&["gt-5"]));
    let (_, claimed) = yard.sling_direct(&asked(&["gt-5"])).expect("it is scheduled");
    assert_eq!(claimed, Vec::new(), "a direct sling waits too");
    assert_eq!(yard.told(Store::resume).0, (true, 0));
    assert_eq!(yard.quiet(Store::resume), (false, 0));
    assert_eq!(yard.claims().len(), 5);
}

#[test]
fn a_guard_and_a_spent_budget_hold_everybody() {
    let mut yard = queue();
    yard.policy.guards = vec![Guard { code: "guard-disk", message: "the disk is full".to_owned() }];
    assert_eq!((yard.claims(), yard.outlook().limit), (Vec::new(), Limit::Guard));
    assert_eq!(yard.held_by("gt-1"), ["guard-disk"]);
    yard.policy.guards.clear();
    yard.policy.batch = Some(1);
    yard.policy.daily_micros = Some(2_500_000);
    let run = yard.claim_one().run;
    let stamp = yard.stamp();
    let report = Report { run, outcome: Outcome::Failed, note: None, cost: Some(2.5), merge: None, tip: None };
    yard.store.report(&report, &stamp).expect("it is taken");
    assert_eq!(yard.claims(), Vec::<String>::new());
    let words = &yard.scheduled("gt-2").reasons[0].message;
    assert_eq!(words, "agents have reported $2.50 today, and `budget.daily` is $2.50; work starts again at midnight");
    // A new day, a new budget; and the daemon knows when that is.
    let (policy, now) = (yard.policy.clone(), yard.now);
    let tomorrow = yard.store.next_deadline(&policy, now).expect("it answers").expect("midnight");
    assert_eq!(tomorrow.to_string(), "2026-01-02T00:00:00Z");
    // Where the clock on the wall shows more, the day ends earlier.
    yard.policy.zone = TimeZone::get("Asia/Tokyo").expect("it is known");
    let policy = yard.policy.clone();
    let tomorrow = yard.store.next_deadline(&policy, now).expect("it answers").expect("midnight");
    assert_eq!(tomorrow.to_string(), "2026-01-01T15:00:00Z");
    yard.now = tomorrow - SignedDuration::from_secs(1);
    assert_eq!(yard.held_by("gt-2"), ["guard-budget"]);
    yard.now = tomorrow;
    assert_eq!(yard.claims(), ["gt-2"]);
}

#[test]
fn a_budget_is_spent_to_the_cent() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3"]);
    // Added up as fractions, 1 cent and 6 cents are less than 7.
    yard.policy.daily_micros = Some(70_000);
    for (bead, cost) in [("gt-1", 0.01), ("gt-2", 0.06)] {
        let run = yard.working(bead).run;
        let stamp = yard.stamp();
        let report = Report { run, outcome: Outcome::Failed, note: None, cost: Some(cost), merge: None, tip: None };
        yard.store.report(&report, &stamp).expect("it is taken");
    }
    yard.sling(&["gt-3"]);
    assert_eq!(yard.held_by("gt-3"), ["guard-budget"]);
}

#[test]
fn trouble_holds_an_agent_or_the_town_until_its_time() {
    let mut yard = Yard::with(&FOUR);
    let mut codex = asked(&["gt-1", "gt-2"]);
    codex.fields.agent = Some("codex".to_owned());
    yard.try_sling(&codex).expect("it is slung");
    yard.pass(1);
    yard.sling(&["gt-3", "gt-4"]);
    yard.policy.batch = Some(1);
    let until = yard.now + SignedDuration::from_secs(30);
    let run = yard.claim_one().run;
    yard.fail(&run, "no such tool", Fault::Agent);
    assert_eq!(yard.held_by("gt-1"), ["agent-cannot-start"]);
    assert_eq!((yard.scheduled("gt-1").failures, yard.scheduled("gt-1").last_failure), (0, None), "it costs nothing");
    let claimed = yard.claim_one();
    assert_eq!((claimed.bead.as_str(), claimed.agent.as_str()), ("gt-3", "claude"), "another agent goes on");
    yard.fail(&claimed.run, "disk full", Fault::Town);
    assert_eq!(yard.claims(), Vec::<String>::new());
    assert_eq!(yard.held_by("gt-3"), ["held-up"]);
    assert_eq!(yard.outlook().limit, Limit::Guard);
    let (policy, now) = (yard.policy.clone(), yard.now);
    assert_eq!(yard.store.next_deadline(&policy, now).expect("it answers"), Some(until));
    yard.now = until;
    yard.policy.batch = None;
    let tried = yard.claim_one();
    assert_eq!(tried.bead, "gt-3", "one is tried for the others; the program is looked for a little later");
    yard.start(&tried.run);
    assert_eq!(yard.claims(), ["gt-4"]);
}

#[test]
fn trouble_of_no_run_holds_the_town_too_and_said_again_it_is_no_news() {
    let mut yard = queue();
    let until = yard.now + SignedDuration::from_secs(30);
    let hold_up = |yard: &mut Yard, reason: &str| {
        let trouble = Trouble { until, reason: reason.to_owned() };
        yard.told(|store, stamp| store.hold_up(&trouble, stamp)).1.len()
    };
    assert_eq!(hold_up(&mut yard, "no route"), 1);
    assert_eq!(hold_up(&mut yard, "no route"), 0);
    assert_eq!(hold_up(&mut yard, "no host"), 1);
    assert_eq!(yard.held_by("gt-1"), ["held-up"]);
    assert_eq!(yard.claims(), Vec::<String>::new());
    yard.now = until;
    assert_eq!(yard.claims(), FOUR);
}

#[test]
fn resuming_forgets_trouble() {
    let mut yard = queue();
    yard.policy.batch = Some(1);
    let run = yard.claim_one().run;
    yard.fail(&run, "disk full", Fault::Town);
    assert_eq!(yard.told(Store::resume).0, (false, 1), "it was not paused");
    assert_eq!(yard.claims(), ["gt-1"]);
}

#[test]
fn a_rig_that_is_set_aside_or_gone_holds_its_beads_only() {
    let mut yard = Yard::with(&["gt-1", "ml-2"]);
    yard.sling(&["gt-1", "ml-2"]);
    let stamp = yard.stamp();
    for (state, event, code) in
        [(RigState::Parked, EventType::RigParked, "rig-parked"), (RigState::Docked, EventType::RigDocked, "rig-docked")]
    {
        yard.store.set_rig_state("shop", state, event, &stamp).expect("it is set aside");
        assert_eq!(yard.held_by("gt-1"), [code]);
    }
    assert_eq!(yard.claims(), ["ml-2"]);
    yard.store.remove_rig("shop", true, &stamp).expect("it is gone");
    assert_eq!((yard.held_by("gt-1"), yard.claims()), (vec!["no-rig"], Vec::new()));
    yard.store.add_rig(&rig("shop", "gt"), &stamp).expect("it is back");
    assert_eq!(yard.claims(), ["gt-1"]);
}

#[test]
fn a_bead_assigned_to_a_person_after_its_sling_is_held() {
    let mut yard = Yard::with(&["gt-1", "gt-2"]);
    yard.assign("gt-2", Some("bob"));
    yard.sling(&["gt-1", "gt-2"]);
    yard.assign("gt-1", Some("ada"));
    assert_eq!(yard.held_by("gt-1"), ["assigned"]);
    assert_eq!(yard.scheduled("gt-1").reasons[0].message, "it is assigned to ada now");
    assert_eq!(yard.claims(), ["gt-2"], "whose it was when it was slung is no news");
    yard.assign("gt-1", None);
    assert_eq!(yard.claims(), ["gt-1"]);
}

#[test]
fn what_waits_starts_when_its_blocker_is_closed_or_its_time_has_come() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks", "gt-3", "gt-4"]);
    yard.sling(&["gt-2", "gt-3", "gt-4"]);
    yard.defer("gt-3", Some(60));
    yard.set_status("gt-4", "blocked");
    assert_eq!((yard.held_by("gt-2"), yard.held_by("gt-3")), (vec!["blocked"], vec!["deferred"]));
    assert_eq!(yard.held_by("gt-4"), ["status-blocked"]);
    assert_eq!(yard.claims(), Vec::<String>::new());
    let (policy, now) = (yard.policy.clone(), yard.now);
    let next = yard.store.next_deadline(&policy, now).expect("it answers");
    assert_eq!(next, Some(now + SignedDuration::from_secs(60)));
    yard.close("gt-1");
    assert_eq!(yard.claims(), ["gt-2"]);
    yard.pass(60);
    assert_eq!(yard.claims(), ["gt-3"], "nobody had to write in between");
}

/// Counts taken earlier decide nothing: each claim counts for itself. // DESIGN "Invariants"
#[test]
fn many_that_claim_at_once_exceed_no_cap_and_take_nothing_twice() {
    const BEADS: [&str; 12] =
        ["gt-1", "gt-2", "gt-3", "gt-4", "gt-5", "gt-6", "gt-7", "gt-8", "gt-9", "ml-1", "ml-2", "ml-3"];
    let mut yard = Yard::with(&BEADS);
    yard.sling(&BEADS);
    yard.policy.caps.town = Some(7);
    yard.policy.caps.rigs.insert("shop".to_owned(), 5);
    let (path, policy, stamp) = (yard.store.path().to_owned(), yard.policy.clone(), yard.stamp());
    let start = std::sync::Barrier::new(6);
    let claim = |who: usize| {
        let mut store = Store::open(&path).expect("it is opened");
        let mut n = 0;
        let mut new_run = || {
            n += 1;
            format!("run-{who}-{n}")
        };
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me:1",
            new_run: &mut new_run,
            limits: PerSide::both(Some(2)),
            n_before: 0,
            probe: &|_, _| None,
        };
        start.wait();
        store.advance(&Findings::default(), &policy, Some(&mut claimant), &stamp).expect("a pass works").claimed.len()
    };
    let claim = &claim;
    let n_claimed: usize = std::thread::scope(|scope| {
        let claimers: Vec<_> = (0..6).map(|who| scope.spawn(move || claim(who))).collect();
        claimers.into_iter().map(|claimer| claimer.join().expect("no panic")).sum()
    });
    assert_eq!((n_claimed, yard.live().len()), (7, 7));
    assert_eq!(yard.live().iter().filter(|run| run.rig == "shop").count(), 5);
    yard.check();
}

/// The dry run is the real one, and nothing of it stays.
#[test]
fn a_rehearsed_sling_claims_what_the_real_one_does_and_leaves_no_trace() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks"]);
    let before = (yard.export(), yard.store.last_event().expect("the log answers"));
    let mut stage = Store::open(yard.store.path()).and_then(Store::rehearse).expect("a rehearsal");
    let (policy, stamp) = (yard.policy.clone(), yard.stamp());
    let mut new_run = || "run-0001".to_owned();
    let mut claimant = Claimant {
        policy: &policy,
        starter: "me:1",
        new_run: &mut new_run,
        limits: PerSide::both(None),
        n_before: 0,
        probe: &|_, _| None,
    };
    let sling = asked(&["gt-1", "gt-2"]);
    let rehearsed = stage.sling(&sling, Some(&mut claimant), &stamp).expect("it is slung");
    drop(stage);
    assert_eq!(before, (yard.export(), yard.store.last_event().expect("the log answers")));
    assert_eq!(yard.outlook().scheduled.len(), 0);
    assert_eq!(yard.sling_direct(&sling).expect("it is slung"), rehearsed);
}

#[test]
fn an_idle_polecat_is_taken_before_a_new_one_is_made() {
    let mut yard = queue();
    yard.policy.caps.town = Some(1);
    let names: Vec<String> = (0..4)
        .map(|_| {
            let claimed = yard.claim_one();
            yard.start(&claimed.run);
            yard.report(&claimed.run, Outcome::Completed).expect("it is done");
            yard.end(&claimed.run);
            claimed.polecat.name
        })
        .collect();
    assert_eq!(names, ["Toast"; 4], "a chain of four uses one agent at a time");
    assert_eq!(yard.store.polecats().expect("it answers").len(), 1);
}

#[test]
fn a_polecat_with_work_in_its_tree_is_kept_from_new_work() {
    let mut yard = queue();
    yard.policy.caps.town = Some(1);
    let claimed = yard.claim_one();
    yard.start(&claimed.run);
    yard.end_as(Ended { kept: Some("2 files changed".to_owned()), ..ended(&claimed.run) });
    assert_eq!(yard.claim_one().polecat.name, "Ember");
    let kept = yard.store.polecats().expect("it answers").into_iter().find(|polecat| polecat.name == "Toast");
    assert_eq!(kept.and_then(|polecat| polecat.kept).as_deref(), Some("2 files changed"));
}

#[test]
fn a_name_that_never_had_a_place_to_work_in_is_given_back() {
    let mut yard = Yard::with(&["gt-1"]);
    yard.sling(&["gt-1"]);
    let run = yard.claim_one().run;
    yard.fail(&run, "no such tool", Fault::Bead);
    assert_eq!(yard.store.polecats().expect("it answers"), Vec::new());
}

#[test]
fn the_polecat_that_finished_the_blocker_is_preferred() {
    let mut yard = Yard::with(&["gt-1", "gt-2", "gt-3 > gt-1:blocks"]);
    yard.sling(&["gt-1", "gt-2", "gt-3"]);
    let claimed = yard.claim();
    for assignment in &claimed {
        yard.start(&assignment.run);
        yard.report(&assignment.run, Outcome::Completed).expect("it is done");
    }
    // The other one is the last to become idle, and would be taken otherwise.
    yard.end(&claimed[0].run);
    yard.pass(1);
    yard.end(&claimed[1].run);
    let next = yard.claim_one();
    assert_eq!((next.bead.as_str(), &next.polecat.name), ("gt-3", &claimed[0].polecat.name));
    assert!(next.polecat.worktree.is_some(), "with the tree it worked in");
}

#[test]
fn one_successor_waits_for_the_exit_of_its_predecessor_and_no_longer_than_two_seconds() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks", "gt-3 > gt-1:blocks", "ml-4 > gt-1:blocks"]);
    yard.sling(&["gt-1", "gt-2", "gt-3", "ml-4"]);
    let first = yard.claim_one();
    yard.start(&first.run);
    assert_eq!(
        yard.report(&first.run, Outcome::Completed).expect("it is taken"),
        Some(vec!["gt-2".to_owned(), "gt-3".to_owned(), "ml-4".to_owned()])
    );
    assert_eq!(yard.held_by("gt-2"), ["awaiting-exit"]);
    assert_eq!(yard.claims(), ["gt-3", "ml-4"], "only one waits, and only in the same rig");
    assert_eq!(yard.held_by("gt-2"), ["awaiting-exit"]);
    let (policy, now) = (yard.policy.clone(), yard.now);
    let next = yard.store.next_deadline(&policy, now).expect("it answers");
    assert_eq!(next, Some(now + SignedDuration::from_secs(2)));
    yard.pass(2);
    let late = yard.claim_one();
    assert_eq!(late.bead, "gt-2", "it has waited long enough");
    assert_ne!(late.polecat.name, first.polecat.name);
}

/// A file from a machine whose clock is ahead.
#[test]
fn a_blocker_closed_in_the_future_makes_nobody_wait_for_it() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks"]);
    yard.sling(&["gt-1", "gt-2"]);
    let first = yard.claim_one();
    yard.start(&first.run);
    let late = "2027-01-01T00:00:00Z";
    let line = serde_json::json!({ "id": "gt-1", "title": "gt-1", "status": "closed", "closed_at": late,
        "updated_at": late });
    yard.import(&line.to_string());
    yard.pass(2);
    assert_eq!(yard.claims(), ["gt-2"]);
}

#[test]
fn an_exit_in_time_hands_the_polecat_to_the_successor() {
    let mut yard = Yard::with(&["gt-1", "gt-2 > gt-1:blocks"]);
    yard.sling(&["gt-1", "gt-2"]);
    let first = yard.claim_one();
    yard.start(&first.run);
    yard.report(&first.run, Outcome::Completed).expect("it is taken");
    assert_eq!(yard.claims(), Vec::<String>::new());
    let exit = Findings { ended: vec![ended(&first.run)], ..Findings::default() };
    let claimed = yard.pass_with(&exit, None);
    assert_eq!(beads_of(&claimed), ["gt-2"], "recorded and claimed in one step");
    assert_eq!(claimed[0].polecat.name, first.polecat.name);
}

#[test]
fn a_context_that_cannot_be_read_is_closed_and_the_others_go_on() {
    for fields in ["{", "{}", r#"{"version":9}"#, "[]"] {
        let mut yard = Yard::with(&["gt-1", "gt-2"]);
        yard.sling(&["gt-1", "gt-2"]);
        let context = yard.scheduled("gt-1").context;
        yard.peek.execute("UPDATE context SET fields = ?1 WHERE id = ?2", [fields, &context]).expect("it is spoilt");
        assert_eq!(yard.held_by("gt-1"), ["invalid-context"]);
        assert_eq!(yard.claims(), ["gt-2"]);
        let bead = yard.store.bead(&context).expect("it still reads as a bead").bead;
        assert_eq!(bead.body.text("close_reason").as_deref(), Some("invalid-context"));
        assert_eq!(bead.body.text("description").as_deref(), Some(fields), "as it is");
        assert_eq!(yard.explained("gt-1"), "ready: invalid-context");
        let why = yard.rows("SELECT last_failure FROM dispatch_record").pop().expect("the reason is kept");
        assert!(!why.is_empty());
        let told = yard.explain("gt-1").reasons.remove(0).message;
        assert!(told.contains(&format!("({why})")), "{told}");
        assert_eq!(yard.sling(&["gt-1"]).len(), 1, "a new sling is fine");
    }
}

#[test]
fn what_somebody_else_finished_is_closed_as_stale() {
    let mut yard = Yard::with(&FOUR);
    yard.sling(&FOUR);
    yard.close("gt-1");
    yard.delete("gt-2");
    yard.set_status("gt-3", "pinned");
    assert_eq!(yard.held_by("gt-1"), ["closed"]);
    assert_eq!(yard.claims(), ["gt-4"]);
    assert_eq!(yard.number("SELECT count(*) FROM context WHERE close_reason = 'stale-work-bead'"), 3);
    assert_eq!(yard.outlook().scheduled.len(), 0);
}

#[test]
fn what_is_claimed_tells_all_that_a_start_needs() {
    let mut yard = Yard::with(&["gt-1"]);
    let text = |name: &'static str| (name, Some(format!("its {name}")));
    let patch = BeadPatch { texts: vec![text("description"), text("acceptance_criteria")], ..BeadPatch::default() };
    yard.patch("gt-1", &patch).expect("it is changed");
    let mut sling: Sling = asked(&["gt-1"]);
    sling.fields.args = Some("carefully".to_owned());
    yard.try_sling(&sling).expect("it is slung");
    let claimed = yard.claim_one();
    assert_eq!(claimed.description.as_deref(), Some("its description"));
    assert_eq!(claimed.acceptance.as_deref(), Some("its acceptance_criteria"));
    assert_eq!(claimed.fields.args.as_deref(), Some("carefully"));
    assert_eq!(claimed.fields.work_bead_id, "gt-1");
    let known = yard.store.assignment(&claimed.run).expect("it answers").expect("the run lives");
    assert_eq!((known.bead, known.fields, known.polecat.name), (claimed.bead, claimed.fields, claimed.polecat.name));
    let run = yard.run(&claimed.run);
    assert_eq!((run.starter.as_str(), run.host.as_str(), run.session.as_deref()), ("me:1", "here", Some("gt-toast")));
    let state = yard.outlook().state;
    assert_eq!((state.last_dispatch_at, state.last_dispatch_count), (Some(yard.now), Some(1)));
}
