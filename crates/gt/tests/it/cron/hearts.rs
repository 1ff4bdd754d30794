//! Switching hearts on and off: all of them, or one by its name; what is refused or rehearsed changes nothing. // SPEC H2

use rusqlite::Connection;

use super::ticking;
use crate::fleet::Fleet;
use crate::town::{Answer, session, snapshot};

/// A town in which the hearts of `other` and `scripted` beat.
fn two_hearts() -> Fleet {
    let fleet = ticking();
    fleet.town.write("HEARTBEAT.md", "- Is the shop up?\n");
    std::fs::create_dir_all(fleet.town.path("agents/other")).expect("the town can be written");
    fleet.town.write("agents/other/HEARTBEAT.md", "- Look after the garden\n");
    heart(&fleet, &["enable"]).success();
    fleet
}

fn heart(fleet: &Fleet, words: &[&str]) -> Answer {
    fleet.town.call(["heartbeat"].iter().chain(words).copied()).run()
}

/// As if it had failed too often.
fn tire(fleet: &Fleet, agent: &str) {
    let store = Connection::open(fleet.town.store()).expect("the store is there");
    let sql = "UPDATE job SET state = 'disabled', why = 'it failed 5 times in a row', next_at = NULL, failures = 5
               WHERE name = 'heartbeat:' || ?1";
    assert_eq!(store.execute(sql, [agent]).expect("it is a store"), 1);
}

/// What the config says, and how each heart stands.
fn stands(fleet: &Fleet) -> String {
    let status = heart(fleet, &["status", "--json"]).json();
    let agents = status["agents"].as_array().expect("a list").iter();
    let hearts: Vec<String> = agents.map(|one| format!("{} {}", one["agent"], one["state"])).collect();
    format!("{} {}", status["enabled"], hearts.join(" ")).replace('"', "")
}

const NO_DAEMON: &str = "! note: no daemon runs, so nothing starts by itself: `gt daemon start`\n";

/// Rehearses something, then does it: both must say the same.
fn twice(fleet: &Fleet, words: &[&str]) -> String {
    let before = fleet.town.state();
    let rehearsed = heart(fleet, &[words, &["--dry-run"]].concat());
    assert_eq!(fleet.town.state(), before, "{rehearsed}");
    let done = heart(fleet, words);
    let said = rehearsed.stdout.strip_prefix("Dry run, nothing is changed. This would happen:\n");
    assert_eq!((said, rehearsed.code), (Some(done.stdout.as_str()), done.code), "{rehearsed}{done}");
    format!("{}  {}\n", done.to_string().replace(NO_DAEMON, ""), stands(fleet))
}

#[test]
fn who_is_enabled_by_name_is_known_before_anything_changes() {
    let fleet = two_hearts();
    heart(&fleet, &["disable"]).success();
    let refused = [
        fleet.town.refused(["heartbeat", "enable", "nosuch"]),
        fleet.town.refused(["heartbeat", "enable", "other", "nosuch"]),
        fleet.town.refused(["heartbeat", "disable", "other", "nosuch"]),
    ];
    assert!(stands(&fleet).starts_with("false "), "{}", stands(&fleet));
    snapshot!(refused.concat(), @"
    $ gt heartbeat enable nosuch
    ! error: there is no heartbeat of `nosuch`
    ! hint: write what to look after into `agents/nosuch/HEARTBEAT.md`
    [exit 3]
    $ gt heartbeat enable other nosuch
    ! error: there is no heartbeat of `nosuch`
    ! hint: write what to look after into `agents/nosuch/HEARTBEAT.md`
    [exit 3]
    $ gt heartbeat disable other nosuch
    ! error: there is no heartbeat of `nosuch`
    ! hint: write what to look after into `agents/nosuch/HEARTBEAT.md`
    [exit 3]
    ");
    // Nor is a heart taken up, or let go, that somebody else will see to.
    heart(&fleet, &["enable"]).success();
    std::fs::create_dir_all(fleet.town.path("agents/third")).expect("the town can be written");
    fleet.town.write("agents/third/HEARTBEAT.md", "- Look after the house\n");
    fleet.town.refused(["heartbeat", "disable", "third", "nosuch"]);
}

#[test]
fn while_all_are_off_a_name_undoes_only_its_own_stop() {
    let fleet = two_hearts();
    let told = [
        twice(&fleet, &["disable", "other"]),
        twice(&fleet, &["disable"]),
        twice(&fleet, &["enable", "other"]),
        twice(&fleet, &["enable", "other", "scripted"]),
        twice(&fleet, &["enable"]),
        twice(&fleet, &["enable", "other"]),
    ];
    snapshot!(told.concat(), @"
    $ gt heartbeat disable other
    The heart of other rests.
      true other paused scripted active
    $ gt heartbeat disable
    No heart beats any more: heartbeat.enabled is false.
      false other paused scripted paused
    $ gt heartbeat enable other
    The heart of other beats as soon as heartbeats are switched on: `gt heartbeat enable`
      false other paused scripted paused
    $ gt heartbeat enable other scripted
    The hearts of other, scripted beat as soon as heartbeats are switched on: `gt heartbeat enable`
      false other paused scripted paused
    $ gt heartbeat enable
    Hearts beat again: `gt heartbeat status` says whose.
      true other active scripted active
    $ gt heartbeat enable other
    The heart of other beats already.
      true other active scripted active
    ");
}

#[test]
fn without_a_name_hearts_go_on_that_stopped_themselves_and_never_those_that_a_person_stopped() {
    let fleet = two_hearts();
    heart(&fleet, &["disable", "other"]).success();
    tire(&fleet, "scripted");
    let status = heart(&fleet, &["status"]);
    let on = twice(&fleet, &["enable"]);
    tire(&fleet, "scripted");
    let told = [on, twice(&fleet, &["disable"]), twice(&fleet, &["enable"]), twice(&fleet, &["enable", "other"])];
    tire(&fleet, "other");
    tire(&fleet, "scripted");
    let named = twice(&fleet, &["enable", "other"]);
    snapshot!(session([status]).replace(NO_DAEMON, "") + &told.concat() + &named + &twice(&fleet, &["enable"]), @"
    $ gt heartbeat status
    Every 30m, at any hour; alerts go to the channel used last.
    other  paused
      `gt heartbeat enable other` has it go on
      looks after agents/other/HEARTBEAT.md
      agent `other` takes no chat turns; set `agents.other.headless`
    scripted  disabled: it failed 5 times in a row
      `gt heartbeat enable scripted` has it go on
      looks after HEARTBEAT.md
      agent `scripted` takes no chat turns; set `agents.scripted.headless`
    $ gt heartbeat enable
    Hearts beat, all but other: `gt heartbeat enable other`
    The heart of scripted, which had stopped itself, beats again.
      true other paused scripted active
    $ gt heartbeat disable
    No heart beats any more: heartbeat.enabled is false.
      false other paused scripted disabled
    $ gt heartbeat enable
    Hearts beat again, all but other: `gt heartbeat enable other`
    The heart of scripted, which had stopped itself, beats again.
      true other paused scripted active
    $ gt heartbeat enable other
    The heart of other beats again.
      true other active scripted active
    $ gt heartbeat enable other
    The heart of other beats again.
      true other active scripted disabled
    $ gt heartbeat enable
    The heart of scripted, which had stopped itself, beats again.
      true other active scripted active
    ");
}

#[test]
fn a_heart_that_stopped_itself_says_in_the_status_what_has_it_go_on() {
    let fleet = two_hearts();
    tire(&fleet, "other");
    let status = fleet.town.gt(["status"]).stdout;
    let line = "the heartbeat of other is disabled: `gt heartbeat enable other`";
    assert!(status.contains(line), "{status}");
}

#[test]
fn a_heart_of_an_agent_that_takes_no_turns_fails_at_once() {
    let fleet = Fleet::new("true");
    fleet.town.write("HEARTBEAT.md", "- Is the shop up?\n");
    let run = heart(&fleet, &["run"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("gt config set agents.scripted.headless"), "{run}");
}
