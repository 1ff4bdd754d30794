//! A store that refuses some writes while the daemon runs, as one on a full disk does: nothing is sent twice, and nothing
//! spins. // SPEC C4, L6, D8

use std::fs;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;

use crate::channels::double::{Answer, Double, Request, ok};
use crate::fleet::Fleet;

/// Long enough for a loop without a pause to come around many times.
const WHILE: Duration = Duration::from_secs(2);

/// The store refuses this kind of write to a table.
pub(crate) fn refuse(fleet: &Fleet, write: &str, table: &str) {
    let sql = format!(
        "CREATE TRIGGER refuse_{table} BEFORE {write} ON {table} BEGIN SELECT RAISE(ABORT, 'there is no room'); END"
    );
    Connection::open(fleet.town.store()).and_then(|store| store.execute_batch(&sql)).expect("the store can be changed");
}

fn take_again(fleet: &Fleet, table: &str) {
    let sql = format!("DROP TRIGGER refuse_{table}");
    Connection::open(fleet.town.store()).and_then(|store| store.execute_batch(&sql)).expect("the store can be changed");
}

fn count(fleet: &Fleet, sql: &str) -> i64 {
    let store = Connection::open(fleet.town.store()).expect("the store is there");
    store.query_row(sql, [], |row| row.get(0)).expect("it answers")
}

/// Lets time pass in which others write, so that the daemon has cause to look.
fn keep_busy(fleet: &Fleet, is_enough: impl Fn() -> bool) {
    let begin = Instant::now();
    while begin.elapsed() < WHILE && !is_enough() {
        fleet.town.gt(["create", "something happens"]).success();
    }
}

fn texts(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| request.json()["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_notice_that_cannot_be_noted_is_told_once() {
    let double = Double::new(|_, _| ok());
    let fleet = Fleet::new("exec sleep 600");
    fleet.set("convoy.notify", &json!([double.url]).to_string());
    fleet.hold(&["gt-a"]);
    refuse(&fleet, "UPDATE", "notice");
    fleet.start_daemon();
    fleet.town.gt(["escalate", "one", "--bead", "gt-a"]).success();
    double.until("the notice", |requests| !requests.is_empty());
    keep_busy(&fleet, || double.requests().len() > 1);
    assert_eq!(texts(&double.requests()), ["gt-a needs a person: one"], "{}", fleet.story());
    let waits = ["notifications wait: "];
    fleet.until_seen("that the daemon says so", || fleet.n_said(&waits) > 0);
    assert_eq!(fleet.n_said(&waits), 1, "{}", fleet.story());
    take_again(&fleet, "notice");
    fleet.until_seen("that it is noted", || count(&fleet, "SELECT count(*) FROM notice WHERE next_at IS NULL") == 1);
    fleet.town.gt(["escalate", "two", "--bead", "gt-a"]).success();
    double.until("the next notice", |requests| requests.len() > 1);
    assert_eq!(texts(&double.requests()), ["gt-a needs a person: one", "gt-a needs a person: two"]);
}

/// A town whose agent echoes, and that answers by a web hook.
fn with_hook(double: &Double) -> Fleet {
    let fleet = Fleet::new("");
    fs::write(fleet.home("turn.sh"), "echo \"re: $(cat)\"\n").expect("the home can be written");
    fleet.set("agents.scripted.headless", &json!(["bash", fleet.home("turn.sh")]).to_string());
    fleet.set("sessions.debounce_ms", "0");
    fleet.set("channels.hook.url", &double.url);
    fleet.set("channels.hook.kind", "webhook");
    fleet
}

#[test]
fn a_delivery_that_failed_and_cannot_be_noted_is_not_tried_again_before_it_is() {
    let double = Double::in_order(vec![|| Answer::Status(500, "", String::new())]);
    let fleet = with_hook(&double);
    refuse(&fleet, "UPDATE", "outbox");
    fleet.start_daemon();
    fleet.town.gt(["send", "dm:anna", "hi", "--channel", "hook"]).success();
    double.until("the answer", |requests| !requests.is_empty());
    keep_busy(&fleet, || double.requests().len() > 1);
    assert_eq!(double.requests().len(), 1, "{}", fleet.story());
    let waits = ["the channel hook waits: "];
    fleet.until_seen("that the daemon says so", || fleet.n_said(&waits) > 0);
    assert_eq!(fleet.n_said(&waits), 1, "{}", fleet.story());
    take_again(&fleet, "outbox");
    let delivered = "SELECT count(*) FROM outbox WHERE state = 'delivered' AND tries = 2";
    fleet.until_seen("that it is delivered", || count(&fleet, delivered) == 1);
    assert_eq!(texts(&double.requests()), ["re: hi", "re: hi"]);
}

#[test]
fn passes_that_fail_when_a_job_is_due_come_ever_more_rarely_and_are_said_once() {
    let fleet = Fleet::new("");
    refuse(&fleet, "INSERT", "fire");
    fleet.town.gt(["cron", "add", "tick", "--every", "1s", "--run", "true"]).success();
    fleet.start_daemon();
    fleet.until_seen("a pass that fails", || fleet.n_said(&["a pass failed"]) > 0);
    keep_busy(&fleet, || fleet.n_said(&["a pass failed"]) > 10);
    let n_said = fleet.n_said(&["a pass failed"]);
    assert_eq!(n_said, 1, "{}", fleet.story());
    take_again(&fleet, "fire");
    fleet.until_events("job.fired", None, 1);
    fleet.until_seen("that it is over", || fleet.n_said(&["passes succeed again, after "]) == 1);
}

#[test]
fn merging_that_fails_where_that_cannot_be_noted_pauses_all_the_same() {
    let works = "echo x > x.txt; git add -A; git commit --quiet --message=x; gt done";
    let fleet = Fleet::with_cap(4, works);
    fleet.set("rigs.shop.isolation", "worktree");
    fs::write(fleet.home(".gitconfig"), "[user]\nname = agent\nemail = agent@example.org\n").expect("a home");
    fleet.hold(&["gt-a"]);
    refuse(&fleet, "UPDATE", "merge");
    refuse(&fleet, "INSERT", "merge_hold");
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a"]).success();
    let fails = ["nothing can be merged into main of shop"];
    fleet.until_seen("that merging fails", || fleet.n_said(&fails) > 0);
    let begin = Instant::now();
    keep_busy(&fleet, || fleet.n_said(&fails) > 10);
    let n_said = fleet.n_said(&fails);
    // It rests for five seconds after each.
    assert!(n_said as u64 <= 2 + begin.elapsed().as_secs() / 5, "{}", fleet.story());
    take_again(&fleet, "merge");
    take_again(&fleet, "merge_hold");
    fleet.until_events("bead.closed", Some("gt-a"), 1);
}
