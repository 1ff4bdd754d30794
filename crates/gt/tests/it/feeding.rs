//! Convoys that feed and land: with a daemon, without one, after one was down, over three rigs, from all sides at once.
//! // SPEC C1, C4, C5

use std::process::Stdio;

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet, count};
use crate::town::{GT, session, snapshot};

/// The id of a convoy that is made of these.
fn convoy(fleet: &Fleet, title: &str, beads: &[&str]) -> String {
    let words = ["convoy", "create", title].into_iter().chain(beads.iter().copied()).chain(["--json"]);
    fleet.town.call(words).run().json()["id"].as_str().expect("it has an id").to_owned()
}

/// A chain of four beads, then three that hang on its end.
const CHAIN_AND_FAN: [&str; 7] = [
    r#"{"id":"gt-a","title":"A"}"#,
    r#"{"id":"gt-b","title":"B","dependencies":[{"depends_on_id":"gt-a","type":"blocks"}]}"#,
    r#"{"id":"gt-c","title":"C","dependencies":[{"depends_on_id":"gt-b","type":"blocks"}]}"#,
    r#"{"id":"gt-d","title":"D","dependencies":[{"depends_on_id":"gt-c","type":"blocks"}]}"#,
    r#"{"id":"gt-x","title":"X","dependencies":[{"depends_on_id":"gt-d","type":"blocks"}]}"#,
    r#"{"id":"gt-y","title":"Y","dependencies":[{"depends_on_id":"gt-d","type":"blocks"}]}"#,
    r#"{"id":"gt-z","title":"Z","dependencies":[{"depends_on_id":"gt-d","type":"blocks"}]}"#,
];
const ALL: [&str; 7] = ["gt-a", "gt-b", "gt-c", "gt-d", "gt-x", "gt-y", "gt-z"];

fn owned(beads: &[&str]) -> Vec<String> {
    beads.iter().map(|bead| (*bead).to_owned()).collect()
}

fn landings(fleet: &Fleet, convoy: &str) -> usize {
    let log = fleet.town.gt(["activity", "--json"]).stdout;
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    count(&events, "convoy.landed", Some(convoy))
}

#[test]
fn a_cold_convoy_is_worked_off_and_lands() {
    for (cap, has_daemon) in [(3, true), (0, true), (0, false)] {
        let fleet = Fleet::with_cap(cap, FINISHES);
        fleet.hold_lines(&CHAIN_AND_FAN);
        if has_daemon {
            fleet.start_daemon();
        }
        let id = convoy(&fleet, "All", &ALL);
        fleet.until_events("convoy.landed", Some(&id), 1);
        fleet.until_done(&owned(&ALL));
        let starts = fleet.starts();
        assert_eq!(starts[..4], ALL[..4], "the chain, one after the other");
        assert_eq!(starts.len(), 7, "{starts:?}");
        assert_eq!(landings(&fleet, &id), 1);
        fleet.assert_at_rest(&owned(&ALL));
    }
}

#[test]
fn a_convoy_over_three_rigs_lands_once_all_of_them_are_done() {
    let fleet = Fleet::with_cap(4, FINISHES);
    for (rig, prefix) in [("mill", "ml"), ("forge", "fg")] {
        fleet.town.repository(rig);
        fleet.town.gt(["rig", "add", rig, rig, "--prefix", prefix]).success();
        fleet.set(&format!("rigs.{rig}.isolation"), "none");
    }
    fleet.hold_lines(&[
        r#"{"id":"gt-1","title":"One"}"#,
        r#"{"id":"ml-2","title":"Two","dependencies":[{"depends_on_id":"gt-1","type":"blocks"}]}"#,
        r#"{"id":"fg-3","title":"Three","dependencies":[{"depends_on_id":"ml-2","type":"blocks"}]}"#,
    ]);
    fleet.start_daemon();
    let id = convoy(&fleet, "Three rigs", &["gt-1", "ml-2", "fg-3"]);
    fleet.until_events("convoy.landed", Some(&id), 1);
    assert_eq!(fleet.starts(), ["gt-1", "ml-2", "fg-3"]);
    assert_eq!(landings(&fleet, &id), 1);
}

#[test]
fn what_was_closed_while_the_daemon_was_down_is_landed_and_fed() {
    let fleet = Fleet::with_cap(4, FINISHES);
    fleet.hold_lines(&CHAIN_AND_FAN);
    let (whole, first) = (convoy(&fleet, "Whole", &ALL), convoy(&fleet, "First", &["gt-a"]));
    // A close lands by itself; an import, which brings what another town did, is left to the daemon.
    fleet.town.gt(["close", "gt-a"]).success();
    assert_eq!((landings(&fleet, &first), landings(&fleet, &whole)), (1, 0));
    let second = convoy(&fleet, "Second", &["gt-b", "gt-c"]);
    fleet.hold_lines(&[
        r#"{"id":"gt-b","title":"B","status":"closed"}"#,
        r#"{"id":"gt-c","title":"C","status":"closed"}"#,
    ]);
    assert_eq!(landings(&fleet, &second), 0);
    fleet.start_daemon();
    fleet.until_events("convoy.landed", Some(&second), 1);
    fleet.until_events("convoy.landed", Some(&whole), 1);
    assert_eq!(fleet.starts().len(), 4, "{:?}", fleet.starts());
}

#[test]
fn feeders_sweeps_deacons_and_people_start_every_bead_once() {
    const ROUNDS: usize = 12;
    let fleet = Fleet::with_cap(4, FINISHES);
    fleet.set("convoy.sweep", "1s");
    fleet.set("deacon.feed_cooldown", "0s");
    fleet.start_daemon();
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        let ids: Vec<String> = (0..6).map(|n| format!("gt-{round}x{n}")).collect();
        let blocked = |n: usize| {
            let first = &ids[0];
            format!(
                r#"{{"id":"{}","title":"T","dependencies":[{{"depends_on_id":"{first}","type":"blocks"}}]}}"#,
                ids[n]
            )
        };
        let mut lines = vec![format!(r#"{{"id":"{}","title":"T"}}"#, ids[0])];
        lines.extend((1..6).map(blocked));
        fleet.hold_lines(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let members: Vec<&str> = ids.iter().map(String::as_str).collect();
        let id = convoy(&fleet, "Round", &members);
        let mut calls = vec![vec!["scheduler", "run"], vec!["scheduler", "run"], vec!["deacon", "feed-stranded"]];
        calls.push(vec!["convoy", "check"]);
        calls.push([&["convoy", "launch", "--force"], &members[..3]].concat());
        calls.extend(members[3..].iter().map(|bead| vec!["deacon", "redispatch", bead]));
        calls.extend(members[1..].iter().map(|bead| vec!["sling", bead]));
        let spawn =
            |words: &Vec<&str>| fleet.town.command(GT).args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let children: Vec<_> = calls.iter().map(|words| spawn(words).expect("the binary can be started")).collect();
        for (mut child, words) in children.into_iter().zip(&calls) {
            let code = child.wait().expect("it is a child").code();
            // Whoever comes too late is refused, or told that it is not the time.
            assert!(code.is_some_and(|code| [0, 1, 5].contains(&code)), "{words:?}: {code:?}");
        }
        fleet.until_events("convoy.landed", Some(&id), 1);
        all.extend(ids);
    }
    fleet.until_done(&all);
    let mut starts = fleet.starts();
    starts.sort();
    all.sort();
    assert_eq!(starts, all, "each once");
    fleet.assert_at_rest(&all);
}

#[test]
fn a_convoy_in_words() {
    let fleet = Fleet::with_cap(1, FINISHES);
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    let gt = |words: &[&str]| fleet.town.call(words.iter().copied()).run();
    let made = gt(&["convoy", "create", "Login", "gt-a", "gt-b", "--watch", "mayor"]);
    let id = fleet.town.gt(["convoy", "list", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
    let changes = session([
        made,
        gt(&["convoy", "add", &id, "gt-c", "gt-c"]),
        gt(&["convoy", "add", &id, "gt-c"]),
        gt(&["convoy", "remove", &id, "gt-b"]),
        gt(&["convoy", "watch", &id, "ann"]),
        gt(&["convoy", "unwatch", &id, "bob"]),
        gt(&["convoy", "list"]),
        gt(&["convoy", "stranded"]),
        gt(&["convoy", "check"]),
        gt(&["explain", "gt-d"]),
    ]);
    snapshot!("convoy_changes", changes);
    let refusals = [
        fleet.town.refused(["convoy", "create", "Nothing"]),
        fleet.town.refused(["convoy", "create", "Login", "gt-nope"]),
        fleet.town.refused(["convoy", "add", "gt-a", "gt-b"]),
        fleet.town.refused(["convoy", "remove", &id, "gt-d"]),
        fleet.town.refused(["convoy", "close", &id]),
        fleet.town.refused(["convoy", "land", &id]),
        fleet.town.refused(["convoy", "cancel", "hq-cv-nope-at-all"]),
        fleet.town.refused(["bead", "update", &id, "--status", "staged:ready"]),
    ];
    snapshot!("convoy_refusals", refusals.concat());
    let ends = session([
        gt(&["convoy", "cancel", &id, "--reason", "wrong plan", "--dry-run"]),
        gt(&["convoy", "cancel", &id, "--reason", "wrong plan"]),
        gt(&["convoy", "cancel", &id]),
        gt(&["scheduler", "list"]),
        gt(&["explain", "gt-a"]),
        gt(&["convoy", "create", "gt-d", "--owned"]),
        gt(&["close", "gt-d"]),
        gt(&["convoy", "check"]),
        gt(&["convoy", "list", "--all"]),
    ]);
    snapshot!("convoy_ends", ends);
}

#[test]
fn a_staged_convoy_is_launched_not_slung_and_lands_if_it_was_done_meanwhile() {
    let fleet = Fleet::with_cap(2, FINISHES);
    fleet.hold(&["gt-a", "gt-b"]);
    let staged = fleet.town.gt(["convoy", "stage", "gt-a", "gt-b", "--json"]).json();
    let id = staged["convoy_id"].as_str().expect("it has an id").to_owned();
    snapshot!(fleet.town.refused(["sling", &id]), @r"
    $ gt sling hq-cv-id01
    ! error: convoy hq-cv-id01 is staged, and starts nothing before it is launched
    ! hint: `gt convoy launch hq-cv-id01` starts it
    [exit 1]
    ");
    // By itself a member may go; a convoy of its own tells when it is done.
    let slung = fleet.town.gt(["sling", "gt-a", "--json"]).json();
    assert_ne!(slung["results"][0]["convoy"], *id, "{slung}");
    fleet.town.gt(["close", "gt-a", "gt-b"]).success();
    assert_eq!(landings(&fleet, &id), 0);
    fleet.town.gt(["convoy", "launch", &id]).success();
    assert_eq!(landings(&fleet, &id), 1);
}

#[test]
fn a_deleted_member_is_shown_as_deleted_and_not_as_done() {
    let fleet = Fleet::new("exec sleep 600");
    fleet.hold_lines(&CHAIN_AND_FAN);
    fleet.town.gt(["scheduler", "pause"]).success();
    let id = convoy(&fleet, "Chain", &["gt-a", "gt-b", "gt-c"]);
    fleet.town.gt(["close", "gt-a"]).success();
    fleet.town.gt(["bead", "delete", "gt-b"]).success();
    let status = fleet.town.gt(["status"]).stdout;
    assert!(status.contains(&format!("{id}  1/3 done, 1 deleted  Chain")), "{status}");
    let picture = fleet.town.gt(["convoy", "status", &id]).stdout;
    assert!(picture.contains("1/3 done") && picture.contains("1 deleted"), "{picture}");
}
