//! `gt deacon`: what it says and what it starts, by the guards that hold for everybody. // SPEC R2

use rusqlite::Connection;
use serde_json::json;

use crate::fleet::{Fleet, count};
use crate::town::{session, snapshot};

/// A fleet with beads on hooks, as another tool may have left them.
fn on_hooks(script: &str) -> Fleet {
    let fleet = Fleet::with_cap(5, script);
    fleet.hold_lines(&[
        r#"{"id":"gt-a","title":"Left","status":"hooked","assignee":"shop/polecats/Nux","updated_at":"2026-01-01T00:00:00Z"}"#,
        r#"{"id":"gt-b","title":"Ada's","status":"in_progress","assignee":"ada","updated_at":"2026-01-01T00:00:00Z"}"#,
    ]);
    fleet
}

#[test]
fn a_stale_hook_is_released_and_given_out_again() {
    let fleet = on_hooks("gt done");
    let gt = |words: &str| fleet.town.call(words.split(' ')).run();
    let answers = [
        gt("deacon redispatch gt-a"),
        gt("deacon stale-hooks --max-age 3650d"),
        gt("deacon stale-hooks --dry-run"),
        gt("deacon stale-hooks"),
        gt("deacon stale-hooks"),
        gt("deacon redispatch gt-a --dry-run"),
        gt("deacon redispatch gt-a"),
        gt("deacon redispatch gt-a"),
        gt("deacon redispatch gt-b"),
        gt("deacon redispatch gt-zz"),
        gt("deacon feed-stranded"),
        gt("deacon stale-hooks --max-age soon"),
    ];
    assert_eq!(gt("deacon stale-hooks --json").json(), json!({ "released": [] }));
    assert_eq!(gt("deacon feed-stranded --json").json(), json!({ "convoys": [] }));
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    let done = gt("deacon redispatch gt-a --json").json();
    assert_eq!(done, json!({ "bead": "gt-a", "outcome": "done", "context": null, "polecat": null, "attempts": null }));
    snapshot!(session(answers), @"
    $ gt deacon redispatch gt-a
    ! error: gt-a is not given out: it is on the hook of shop/polecats/Nux; `gt deacon stale-hooks` releases what nobody works on
    ! hint: see more with `gt explain gt-a`
    [exit 1]
    $ gt deacon stale-hooks --max-age 3650d
    No hook is stale.
    $ gt deacon stale-hooks --dry-run
    Dry run, nothing is changed. This would happen:
    Released gt-a Left  hooked by shop/polecats/Nux since [TIME]
    $ gt deacon stale-hooks
    Released gt-a Left  hooked by shop/polecats/Nux since [TIME]
    $ gt deacon stale-hooks
    No hook is stale.
    $ gt deacon redispatch gt-a --dry-run
    Dry run, nothing is changed. This would happen:
    gt-a is scheduled again (context: gt-wisp-id01).
    $ gt deacon redispatch gt-a
    gt-a is scheduled again (context: gt-wisp-id02).
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt deacon redispatch gt-a
    gt-a is scheduled already (context: gt-wisp-id02).
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt deacon redispatch gt-b
    ! error: gt-b is not given out: it is on the hook of ada
    ! hint: see more with `gt explain gt-b`
    [exit 1]
    $ gt deacon redispatch gt-zz
    ! error: there is no bead `gt-zz`
    ! hint: `gt bead list --all` shows what there is
    [exit 3]
    $ gt deacon feed-stranded
    No convoy is stranded.
    $ gt deacon stale-hooks --max-age soon
    ! error: invalid value 'soon' for '--max-age <DURATION>': a duration is a number with s, m, h or d, as in 10m
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn while_a_bead_cools_down_the_answer_is_not_now_and_in_the_end_it_is_a_letter() {
    let fleet = Fleet::with_cap(5, "exit 3");
    fleet.set("witness.redispatch_attempts", "1");
    fleet.hold(&["gt-a"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("bead.released", Some("gt-a"), 1);
    let cooling = fleet.town.refused(["deacon", "redispatch", "gt-a"]);
    fleet.town.gt(["scheduler", "retry", "gt-a"]).success();
    fleet.until_events("bead.released", Some("gt-a"), 2);
    // Time passes.
    let store = Connection::open(fleet.town.store()).expect("the store is there");
    store.execute("UPDATE context SET retry_at = 1 WHERE state = 'open'", []).expect("it is changed");
    drop(store);
    fleet.town.gt(["create", "Wake up"]).success();
    fleet.until_events("bead.escalated", Some("gt-a"), 1);
    let asked = fleet.town.gt(["deacon", "redispatch", "gt-a"]);
    assert_eq!(fleet.town.gt(["mail", "inbox", "--json"]).json().as_array().map(Vec::len), Some(1));
    snapshot!(cooling + &asked.to_string(), @"
    $ gt deacon redispatch gt-a
    ! error: gt-a cools down until [TIME]
    ! hint: `gt scheduler retry gt-a` does not wait
    [exit 5]
    $ gt deacon redispatch gt-a
    ! error: gt-a is out of attempts: 2 ended unfinished; the mayor was asked before
    ! hint: to try it again: `gt scheduler retry gt-a`
    [exit 1]
    ");
}

#[test]
fn the_daemon_releases_stale_hooks_by_itself() {
    let fleet = on_hooks("exec sleep 600");
    fleet.set("daemon.heartbeat", "1s");
    fleet.start_daemon();
    let events = fleet.until_events("bead.released", Some("gt-a"), 1);
    assert_eq!(count(&events, "bead.released", Some("gt-b")), 0);
    let row = fleet.town.gt(["show", "gt-a", "--json"]).json();
    let row = row.as_array().map_or(row.clone(), |rows| rows[0].clone());
    assert_eq!((&row["status"], &row["assignee"]), (&json!("open"), &json!(null)), "{row}");
}
