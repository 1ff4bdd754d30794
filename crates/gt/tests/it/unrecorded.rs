//! Starts that were never recorded, of processes that do not show which run they belong to: none is made again.
//!
//! A process that is just executing its program shows no environment. One that clears its own does not either, and a test
//! can rely on that.

use std::path::Path;

use serde_json::Value;

use crate::fleet::Fleet;

/// An agent that clears its environment, then waits until the test lets it finish.
const HIDES: &str = r#"export -p > "$HOME/env.$GT_RUN"
exec env -i PATH="$PATH" bash -c '
    echo hidden >> "$1/trace"
    while [ -d "$1" ] && [ ! -e "$1/gate" ]; do sleep 0.02; done
    . "$1/env.$2"; gt done --no-changes' agent "$HOME" "$GT_RUN"
"#;

/// The daemon and the keeper die right after an agent has started and before that is recorded.
fn lose_a_start(fleet: &Fleet) -> String {
    let bead = fleet.town.create(&["Hidden", "--rig", "shop"]);
    fleet.town.gt(["sling", &bead]).success();
    fleet.start_daemon_with(&[("GT_CRASH_AT", "launched")]);
    fleet.await_daemon_death();
    fleet.await_trace("hidden", 1);
    fleet.kill_keepers();
    bead
}

/// How the runs of a bead ended.
fn outcomes(fleet: &Fleet, bead: &str) -> Vec<Value> {
    let events = fleet.town.events();
    let ends = events.into_iter().filter(|event| event["type"] == "run.ended" && event["bead"] == bead);
    ends.map(|event| event["data"]["outcome"].clone()).collect()
}

#[test]
fn a_process_without_environment_is_taken_over_and_not_started_again() {
    let fleet = Fleet::with_cap(2, HIDES);
    fleet.set("witness.redispatch_cooldown", "0s");
    let bead = lose_a_start(&fleet);
    fleet.start_daemon();
    fleet.until("its start to be recorded", |events| {
        events.iter().any(|event| event["type"] == "run.started" || event["type"] == "run.ended")
    });
    fleet.open_gate("gate");
    fleet.until_done(std::slice::from_ref(&bead));
    assert_eq!(fleet.starts(), [bead.as_str()], "{}", fleet.story());
    fleet.until("its end", |events| events.iter().any(|event| event["type"] == "run.ended"));
    assert_eq!(outcomes(&fleet, &bead), ["completed"]);
}

#[test]
fn a_process_without_environment_can_be_stopped() {
    let fleet = Fleet::with_cap(2, HIDES);
    let bead = lose_a_start(&fleet);
    fleet.start_daemon();
    fleet.until_events("run.started", Some(&bead), 1);
    fleet.town.gt(["polecat", "stop", "Toast"]).success();
    fleet.until_events("run.ended", Some(&bead), 1);
    assert_eq!(outcomes(&fleet, &bead), ["stopped"]);
    assert!(!is_any_agent_there(&fleet.town.home()), "the agent was said to be stopped, and runs");
}

/// Whether a process has the home among its words.
fn is_any_agent_there(home: &Path) -> bool {
    let home = home.as_os_str().as_encoded_bytes();
    let mut processes = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
    processes.any(|process| {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        words.starts_with(b"bash\0") && words.split(|byte| *byte == 0).any(|word| word == home)
    })
}
