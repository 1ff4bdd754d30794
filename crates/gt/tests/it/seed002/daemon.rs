//! The daemon and the queue: `queue.enabled` lets it, `gt queue run` needs no leave, and the config is live.

use super::{STAYS, gastown, gt, queued, said};
use crate::fleet::{Fleet, count};
use crate::town::snapshot;

/// A sling that the daemon has seen: whatever it was to do with the queue by then, it has done.
fn after_a_pass(fleet: &Fleet, bead: &str) {
    fleet.hold(&[bead]);
    gt(fleet, &format!("sling {bead}")).success();
    fleet.until_events("run.ended", Some(bead), 1);
}

#[test]
fn the_daemon_leaves_the_queue_alone_until_it_is_enabled() {
    let fleet = gastown("case $GT_BEAD in gt-p*) gt done;; *) exec sleep 600;; esac");
    fleet.hold(&["gt-abc", "gt-def"]);
    fleet.start_daemon();
    gt(&fleet, "queue gt-abc gt-def").success();
    after_a_pass(&fleet, "gt-p1");
    assert_eq!(queued(&fleet), ["gt-abc", "gt-def"]);
    let (status, explained) = (gt(&fleet, "queue status"), gt(&fleet, "explain gt-abc"));
    assert!(explained.stdout.contains("queue.enabled is false: the daemon leaves it alone"), "{explained}");
    assert!(status.stdout.contains("queue.enabled is false"), "{status}");
    // Manual override.
    assert_eq!(said(&fleet, "queue run --batch 1")["dispatched"][0]["bead"], "gt-abc");
    after_a_pass(&fleet, "gt-p2");
    assert_eq!(queued(&fleet), ["gt-def"]);
    // The switch works on what is queued already.
    fleet.set("queue.enabled", "true");
    fleet.until_events("run.started", Some("gt-def"), 1);
    assert!(queued(&fleet).is_empty());
}

#[test]
fn a_cap_of_the_scheduler_takes_over_what_is_queued_at_once() {
    let fleet = gastown(STAYS);
    fleet.hold(&["gt-abc", "gt-def"]);
    fleet.start_daemon();
    gt(&fleet, "queue gt-abc gt-def").success();
    fleet.set("scheduler.max_polecats", "1");
    fleet.until_events("run.started", Some("gt-abc"), 1);
    assert_eq!(queued(&fleet), ["gt-def"]);
    // Back without a cap the queue is under its own switch again.
    fleet.set("scheduler.max_polecats", "-1");
    snapshot!(gt(&fleet, "explain gt-def").to_string(), @r"
    $ gt explain gt-def
    gt-def is scheduled:
      - it is number 1 of 1 in the queue
      - queue.enabled is false: the daemon leaves it alone; `gt queue run` starts it, or `gt config set queue.enabled true`
    ");
    fleet.set("queue.enabled", "true");
    fleet.until_events("run.started", Some("gt-def"), 1);
}

#[test]
fn an_enabled_queue_fills_its_slots_and_goes_on_as_they_become_free() {
    let fleet = gastown("while [ ! -e \"$HOME/$GT_BEAD\" ]; do sleep 0.02; done; gt done");
    fleet.set("queue.enabled", "true");
    fleet.set("queue.max_polecats", "2");
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    fleet.start_daemon();
    gt(&fleet, "queue gt-a gt-b gt-c gt-d").success();
    fleet.until_events("run.started", None, 2);
    for (done, next) in [("gt-b", "gt-c"), ("gt-a", "gt-d")] {
        fleet.open_gate(done);
        let events = fleet.until_events("run.started", Some(next), 1);
        let n_live = count(&events, "bead.hooked", None) - count(&events, "run.ended", None);
        assert!(n_live <= 2, "{n_live} live");
    }
    assert!(queued(&fleet).is_empty());
}

#[test]
fn a_raised_cap_of_the_queue_is_taken_at_once() {
    let fleet = gastown(STAYS);
    fleet.set("queue.enabled", "true");
    fleet.set("queue.max_polecats", "1");
    fleet.hold(&["gt-a", "gt-b", "gt-c"]);
    fleet.start_daemon();
    gt(&fleet, "queue gt-a gt-b gt-c").success();
    fleet.until_events("run.started", None, 1);
    assert_eq!(queued(&fleet), ["gt-b", "gt-c"]);
    fleet.set("queue.max_polecats", "0");
    fleet.until_events("run.started", None, 3);
}

/// A pass of the daemon starts a batch; the next event leads to the next pass, as with `scheduler.batch_size`.
#[test]
fn a_batch_is_a_pass_and_the_next_event_is_the_next_pass() {
    let fleet = gastown(STAYS);
    fleet.set("queue.enabled", "true");
    fleet.set("queue.batch_size", "2");
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d", "gt-e"]);
    gt(&fleet, "queue gt-a gt-b gt-c gt-d gt-e").success();
    fleet.start_daemon();
    for n_started in [2, 4, 5] {
        fleet.until_events("run.started", None, n_started);
        gt(&fleet, "create Anything").success();
    }
    let events = fleet.town.events();
    let hooked: Vec<&str> =
        events.iter().filter(|event| event["type"] == "bead.hooked").filter_map(|event| event["ts"].as_str()).collect();
    let passes: Vec<usize> = hooked.chunk_by(|a, b| a == b).map(<[&str]>::len).collect();
    assert_eq!(passes, [2, 2, 1]);
}

#[test]
fn the_queue_spaces_its_own_starts_and_holds_up_nobody_else() {
    let fleet = gastown(STAYS);
    fleet.set("queue.enabled", "true");
    fleet.set("queue.spawn_delay", "700ms");
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-s"]);
    fleet.start_daemon();
    gt(&fleet, "queue gt-a gt-b gt-c").success();
    assert_eq!(said(&fleet, "sling gt-s")["results"][0]["outcome"], "dispatched", "a sling keeps no distance");
    let events = fleet.until_events("run.started", None, 4);
    let times: Vec<jiff::Timestamp> = events
        .iter()
        .filter(|event| event["type"] == "bead.hooked" && event["bead"] != "gt-s")
        .filter_map(|event| event["ts"].as_str()?.parse().ok())
        .collect();
    assert_eq!(times.len(), 3);
    for pair in times.windows(2) {
        assert!(pair[1].duration_since(pair[0]) >= jiff::SignedDuration::from_millis(700), "{times:?}");
    }
}

#[test]
fn the_guard_counts_only_while_neither_cap_does() {
    let fleet = Fleet::new("exec sleep 600");
    fleet.hold(&["gt-a", "gt-b", "gt-c", "gt-d"]);
    fleet.set("guards.max_agents", "1");
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    assert!(fleet.town.gt(["status"]).stdout.contains("1 agent running, at most 1 (`guards.max_agents`)"));
    let status = fleet.town.gt(["scheduler", "status"]).stdout;
    assert!(status.contains("1 polecat, at most 1 (`guards.max_agents`)"), "{status}");
    let json = fleet.town.gt(["scheduler", "status", "--json"]).json();
    assert_eq!(json["free"], 0);
    fleet.set("queue.enabled", "true");
    let sling = fleet.town.gt(["sling", "gt-c", "gt-d"]);
    sling.success();
    assert_eq!(fleet.agents().len(), 4, "{sling}{}", fleet.story());
    assert!(fleet.town.gt(["status"]).stdout.contains("4 agents running, no cap"));
}
