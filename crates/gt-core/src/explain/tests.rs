//! Every standing and every place has its sentence.

use super::*;
use crate::fields::Fields;
use crate::readiness::Facts;
use crate::rig::{Rig, RigState};

const NOW: &str = "2026-01-01T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn rig(state: RigState) -> Rig {
    let (name, prefix, path) = ("gasworks".to_owned(), "gt".to_owned(), "/src".to_owned());
    Rig { name, prefix, path, url: None, branch: "main".to_owned(), state }
}

/// A bead out of a line, in an active rig, with nothing before it.
fn bead(fields: &str) -> Bead {
    let line = format!(r#"{{"id":"gt-1","title":"a"{fields}}}"#);
    match crate::jsonl::parse_line(&line).unwrap() {
        crate::jsonl::Line::Bead { bead, .. } => *bead,
        crate::jsonl::Line::NoBead => unreachable!("the line has an id"),
    }
}

fn blocker(why: BlockedBy, status: &str) -> Blocker {
    Blocker { id: "gt-2".to_owned(), title: "the\nother".to_owned(), status: Status::parse(status), why }
}

fn told(bead: &Bead, blockers: &[Blocker], home: Home<'_>) -> Explanation {
    let mut node = Node::alone(Facts::of(bead), now());
    for blocker in blockers {
        match blocker.why {
            BlockedBy::DeferredParent { until } => node.wake_at = Some(until),
            BlockedBy::BlockedParent => node.blocked_parents += 1,
            _ => node.holding += 1,
        }
    }
    explain(&Case {
        bead,
        node: &node,
        blockers,
        home,
        dispatch: Dispatch::Nothing,
        hold: None,
        convoy: None,
        now: now(),
    })
}

fn shown(explanation: &Explanation) -> String {
    assert!(!explanation.reasons.is_empty());
    let reasons = explanation.reasons.iter().map(|reason| {
        assert!(!reason.message.is_empty() && !reason.message.contains('\n'), "{reason:?}");
        format!("\n  {}: {}", reason.code, reason.message)
    });
    format!("{}{}", explanation.state, reasons.collect::<String>())
}

/// The bead's own fields tell it; it is at home in an active rig.
fn check(fields: &str, wanted: &str) {
    let rig = rig(RigState::Active);
    assert_eq!(shown(&told(&bead(fields), &[], Home::Rig(&rig))), wanted, "{fields}");
}

#[test]
fn a_ready_bead_that_is_somebodys_says_whose_it_is() {
    check(r#","assignee":"bob""#, "ready\n  assigned: it is ready and assigned to bob, who has not started it");
}

#[test]
fn a_ready_bead_says_that_nothing_holds_it() {
    let ready = "ready\n  ready: it is ready; nothing holds it back, and nobody has taken it: `gt sling gt-1`";
    check("", ready);
    check(r#","issue_type":"bug","defer_until":"2025-12-31T00:00:00Z""#, ready);
}

#[test]
fn a_finished_bead_says_how_it_ended() {
    check(r#","status":"closed""#, "done\n  closed: it was closed");
    check(
        r#","status":"closed","closed_at":"2026-01-01T01:00:00+01:00","close_reason":"all\ngood""#,
        "done\n  closed: it was closed at 2026-01-01T00:00:00Z: all good",
    );
    check(r#","status":"pinned""#, "done\n  pinned: it is pinned: kept for reference, not worked on");
    check(r#","status":"tombstone""#, "done\n  deleted: it was deleted");
    check(r#","status":"tombstone","delete_reason":"twin""#, "done\n  deleted: it was deleted: twin");
}

#[test]
fn a_held_bead_says_by_what_and_by_whom() {
    check(r#","status":"hooked","assignee":"toast""#, "hooked\n  hooked: it is on a hook already by toast");
    check(r#","status":"hooked""#, "hooked\n  hooked: it is on a hook already");
    check(r#","status":"in_progress","assignee":"ada""#, "in_progress\n  in-progress: it is being worked on by ada");
    check(r#","status":"blocked""#, "blocked\n  status-blocked: its status was set to blocked");
    check(r#","status":"deferred""#, "deferred\n  status-deferred: its status was set to deferred");
    check(r#","pinned":true"#, "open\n  pinned: it is pinned, and pinned beads are not worked on");
    check(r#","ephemeral":true"#, "open\n  ephemeral: it is a short-lived record, not work");
    check(r#","issue_type":"convoy""#, "open\n  bookkeeping: its type convoy keeps the books and is not work");
    check(
        r#","status":"in\u001breview""#,
        "in\u{1b}review\n  status: its status is in\u{FFFD}review, and only open beads are worked on",
    );
}

#[test]
fn a_deferred_bead_says_until_when() {
    check(
        r#","defer_until":"2026-02-01T00:00:00Z""#,
        "deferred\n  deferred: it is deferred until 2026-02-01T00:00:00Z",
    );
}

#[test]
fn a_type_that_no_agent_takes_is_named() {
    check(
        r#","issue_type":"epic""#,
        "ready\n  not-slingable: its type epic is never given to an agent; its children may be",
    );
}

/// What stands in its way tells it.
fn check_blocked(why: BlockedBy, status: &str, wanted: &str) {
    let rig = rig(RigState::Active);
    assert_eq!(shown(&told(&bead(""), &[blocker(why, status)], Home::Rig(&rig))), wanted);
}

#[test]
fn a_blocked_bead_names_each_blocker_and_its_state() {
    check_blocked(BlockedBy::Open, "hooked", "blocked\n  blocked: it waits for gt-2 (the other), which is hooked");
    check_blocked(
        BlockedBy::Unmerged,
        "closed",
        "blocked\n  unmerged: it waits for the merge of gt-2 (the other), which is closed but not merged",
    );
    check_blocked(
        BlockedBy::Children { active: 1 },
        "open",
        "blocked\n  waits-for-children: it waits for gt-2 (the other), which has 1 active child",
    );
    check_blocked(
        BlockedBy::Children { active: 2 },
        "open",
        "blocked\n  waits-for-children: it waits for gt-2 (the other), which has 2 active children",
    );
    check_blocked(
        BlockedBy::BlockedParent,
        "open",
        "blocked\n  blocked-parent: its parent gt-2 (the other) is blocked",
    );
    check_blocked(
        BlockedBy::DeferredParent { until: "2026-03-01T00:00:00Z".parse().unwrap() },
        "open",
        "deferred\n  deferred-parent: its parent gt-2 (the other) is deferred until 2026-03-01T00:00:00Z",
    );
}

#[test]
fn a_blocked_bead_that_somebody_has_says_so_too() {
    let rig = rig(RigState::Active);
    let blockers = [blocker(BlockedBy::Open, "open")];
    let hooked = bead(r#","status":"hooked","assignee":"toast""#);
    assert_eq!(
        shown(&told(&hooked, &blockers, Home::Rig(&rig))),
        "blocked\n  blocked: it waits for gt-2 (the other), which is open\n  hooked: it is on a hook already by toast"
    );
}

#[test]
fn every_reason_is_told_not_only_the_first() {
    let parked = rig(RigState::Parked);
    let blockers = [blocker(BlockedBy::Open, "open"), blocker(BlockedBy::BlockedParent, "open")];
    let deferred = bead(r#","defer_until":"2026-02-01T00:00:00Z""#);
    let explanation = told(&deferred, &blockers, Home::Rig(&parked));
    let codes: Vec<&str> = explanation.reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(codes, ["blocked", "blocked-parent", "deferred", "rig-parked"]);
}

#[test]
fn the_place_of_a_bead_has_its_own_reasons() {
    let check = |fields: &str, home: Home<'_>, wanted: &str| {
        assert_eq!(shown(&told(&bead(fields), &[], home)), format!("ready\n  {wanted}"));
    };
    check("", Home::Town, "town-bead: it is a town bead, which is never given to an agent");
    check("", Home::Nowhere, "no-rig: no registered rig has a prefix that fits gt-1");
    check("", Home::Rig(&rig(RigState::Parked)), "rig-parked: its rig gasworks is parked: `gt rig unpark gasworks`");
    check("", Home::Rig(&rig(RigState::Docked)), "rig-docked: its rig gasworks is docked: `gt rig undock gasworks`");
    let bound = Bead { rig: Some("gone".to_owned()), ..bead("") };
    assert_eq!(
        shown(&told(&bound, &[], Home::Nowhere)),
        "ready\n  no-rig: it is bound to rig gone, which is not registered"
    );
}

/// Facts × homes × what the graph says: there is always an answer, and it never contradicts its state.
#[test]
fn there_is_always_a_reason_and_it_fits_the_state() {
    let (active, parked) = (rig(RigState::Active), rig(RigState::Parked));
    let homes = [Home::Rig(&active), Home::Rig(&parked), Home::Town, Home::Nowhere];
    for status in ["open", "in_progress", "hooked", "blocked", "deferred", "pinned", "closed", "tombstone", "odd", ""] {
        for fields in ["{}", r#"{"pinned":true}"#, r#"{"wisp":true}"#] {
            for (issue_type, home) in
                ["task", "epic", "gate"].into_iter().flat_map(|word| homes.map(|home| (word, home)))
            {
                for (holding, wakes) in [(0, false), (1, false), (0, true), (1, true)] {
                    let mut bead = Bead::new("gt-1", "a");
                    bead.status = if status.is_empty() { Status::Custom(String::new()) } else { Status::parse(status) };
                    bead.issue_type = Some(issue_type.to_owned());
                    bead.body = Fields::parse(fields).unwrap();
                    let mut node = Node::alone(Facts::of(&bead), now());
                    node.holding = holding;
                    node.wake_at = wakes.then(|| "2026-02-01T00:00:00Z".parse().unwrap());
                    let told = explain(&Case {
                        bead: &bead,
                        node: &node,
                        blockers: &[],
                        home,
                        dispatch: Dispatch::Nothing,
                        hold: None,
                        convoy: None,
                        now: now(),
                    });
                    shown(&told);
                    let says_ready = told.reasons.iter().any(|reason| reason.code == "ready");
                    assert!(!says_ready || node.standing() == Standing::Ready, "{told:?}");
                }
            }
        }
    }
}

fn running() -> Running {
    Running {
        run: "run-1".to_owned(),
        rig: "shop".to_owned(),
        polecat: "Toast".to_owned(),
        is_starting: false,
        since: now(),
        stop: None,
        waits: None,
    }
}

fn dispatched(fields: &str, dispatch: Dispatch, hold: Option<Reason>) -> String {
    let (bead, rig) = (bead(fields), rig(RigState::Active));
    let node = Node::alone(Facts::of(&bead), now());
    shown(&explain(&Case {
        bead: &bead,
        node: &node,
        blockers: &[],
        home: Home::Rig(&rig),
        dispatch,
        hold,
        convoy: None,
        now: now(),
    }))
}

#[test]
fn a_bead_that_has_a_run_says_who_works_on_it() {
    let hooked = r#","status":"hooked","assignee":"shop/polecats/Toast""#;
    let of = |run: Running| dispatched(hooked, Dispatch::Running(run), None);
    insta::assert_snapshot!(of(running()), @r"
    running
      running: shop/Toast works on it since 2026-01-01T00:00:00Z (run run-1)
    ");
    insta::assert_snapshot!(of(Running { is_starting: true, ..running() }), @r"
    starting
      starting: shop/Toast is being started since 2026-01-01T00:00:00Z (run run-1)
    ");
    insta::assert_snapshot!(of(Running { stop: Some("ann stopped it".to_owned()), ..running() }), @r"
    running
      stopping: shop/Toast was told to stop (ann stopped it); its run run-1 is ending
    ");
    insta::assert_snapshot!(dispatched(r#","status":"closed""#, Dispatch::Running(running()), None), @r"
    done
      ending: the run run-1 of shop/Toast is ending
      closed: it was closed
    ");
}

#[test]
fn a_scheduled_bead_says_its_place_and_what_the_plan_says() {
    let reasons = vec![reason("no-capacity", "all 3 slots are taken".to_owned())];
    insta::assert_snapshot!(dispatched("", Dispatch::Scheduled { position: 2, n_scheduled: 5, reasons, has_batch: true }, None), @r"
    scheduled
      scheduled: it is number 2 of 5 in the queue
      no-capacity: all 3 slots are taken
    ");
    let first = |has_batch: bool| Dispatch::Scheduled { position: 1, n_scheduled: 1, reasons: Vec::new(), has_batch };
    insta::assert_snapshot!(dispatched("", first(false), None), @r"
    scheduled
      scheduled: it is number 1 of 1 in the queue; it starts with the next pass
    ");
    insta::assert_snapshot!(dispatched("", first(true), None), @"
    scheduled
      scheduled: it is number 1 of 1 in the queue; it starts with the next batch: when something happens here, or at the daemon's next heartbeat
    ");
}

#[test]
fn a_held_bead_says_what_holds_it() {
    let hold = reason("circuit-broken", "its circuit is broken".to_owned());
    insta::assert_snapshot!(dispatched("", Dispatch::Nothing, Some(hold.clone())), @r"
    ready
      circuit-broken: its circuit is broken
    ");
    insta::assert_snapshot!(dispatched(r#","status":"closed""#, Dispatch::Nothing, Some(hold)), @r"
    done
      closed: it was closed
    ");
}

#[test]
fn a_member_of_a_convoy_says_what_that_will_do() {
    let (bead, rig) = (bead(""), rig(RigState::Active));
    let node = Node::alone(Facts::of(&bead), now());
    let said = |is_staged: bool, hold: Option<Reason>| {
        let convoy = Some(Following { id: "hq-cv-1".to_owned(), is_staged });
        let (home, dispatch) = (Home::Rig(&rig), Dispatch::Nothing);
        shown(&explain(&Case { bead: &bead, node: &node, blockers: &[], home, dispatch, hold, convoy, now: now() }))
    };
    insta::assert_snapshot!(said(true, None), @r"
    ready
      staged: its convoy hq-cv-1 is staged, and starts nothing: `gt convoy launch hq-cv-1`
    ");
    insta::assert_snapshot!(said(false, None), @r"
    ready
      convoy: the daemon's next sweep puts it in line, for its convoy hq-cv-1
    ");
    // What is held is not put in line by anybody.
    insta::assert_snapshot!(said(false, Some(reason("cleared", "it was taken off the queue".to_owned()))), @r"
    ready
      cleared: it was taken off the queue
    ");
}
