//! Killed at every point between intent and record, at odd moments, and all at once: nothing is lost or done twice.
//! // SPEC P6
//!
//! Who passes which point is a table here, and a point that an actor does not pass must leave it alive.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gt_engine::crash::CrashPoint;
use serde_json::Value;

use crate::fleet::{FINISHES, Fleet, count, kill};
use crate::place;
use crate::town::GT;

/// An agent that ends its bead once the test lets it.
const WAITS: &str = "while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; gt done --no-changes";

const SIGKILL: i32 = 9;

/// Three beads, the last of which waits for the first.
fn three_beads(fleet: &Fleet) -> [String; 3] {
    let first = fleet.town.create(&["First", "--rig", "shop"]);
    let second = fleet.town.create(&["Second", "--rig", "shop"]);
    let third = fleet.town.create(&["Third", "--rig", "shop", "--blocked-by", &first]);
    [first, second, third]
}

/// To die at each point, the first time, the second, and so on.
fn orders(times: usize) -> impl Iterator<Item = (CrashPoint, usize, String)> {
    let nth = move |point: CrashPoint| {
        (1..=times.min(place::TIMES)).map(move |n| (point, n, format!("{}:{n}", point.name())))
    };
    CrashPoint::DISPATCH.into_iter().flat_map(nth)
}

/// Every bead's agent has started exactly once, and all is over.
fn assert_done_once(fleet: &Fleet, beads: &[String]) {
    fleet.until_done(beads);
    let (mut started, mut wanted) = (fleet.starts(), beads.to_vec());
    started.sort();
    wanted.sort();
    assert_eq!(started, wanted, "an agent started twice or never\n{}", fleet.story());
    fleet.assert_at_rest(beads);
}

/// Daemon: with one slot and three beads it comes by each of its points three times.
fn daemon_passes(point: CrashPoint) -> bool {
    // It does not schedule, and it does not wake itself.
    !matches!(point, CrashPoint::Committed | CrashPoint::Scheduled)
}

fn kill_daemon_at(point: CrashPoint, order: &str, isolation: &str) {
    let fleet = Fleet::with_cap(1, FINISHES);
    fleet.set("rigs.shop.isolation", isolation);
    let beads = three_beads(&fleet);
    fleet.town.gt(["sling", &beads[0], &beads[1], &beads[2]]).success();
    fleet.start_daemon_with(&[("GT_CRASH_AT", order)]);
    if daemon_passes(point) {
        fleet.await_daemon_death();
        fleet.start_daemon();
    }
    assert_done_once(&fleet, &beads);
    assert!(fleet.daemon_lives(), "{order}");
}

#[test]
fn a_daemon_killed_at_any_point_has_lost_and_doubled_nothing() {
    for (point, _, order) in orders(3) {
        kill_daemon_at(point, &order, "none");
    }
}

#[test]
fn a_daemon_killed_around_worktrees_leaves_none_that_nobody_knows() {
    for (point, _, order) in orders(2).filter(|(point, ..)| daemon_passes(*point)) {
        kill_daemon_at(point, &order, "worktree");
    }
}

/// A command that dispatches: a first bead has been run and its end not yet been recorded; three more are to start,
/// one after the other, and their agents wait.
struct Scene {
    fleet: Fleet,
    early: String,
    beads: [String; 3],
}

impl Scene {
    fn new(cap: &str, isolation: &str) -> Scene {
        let fleet = Fleet::new("while [ ! -e \"$HOME/early\" ]; do sleep 0.02; done; gt done --no-changes");
        fleet.set("scheduler.max_polecats", cap);
        fleet.set("scheduler.spawn_delay", "1ms");
        fleet.set("rigs.shop.isolation", isolation);
        let early = fleet.town.create(&["Early", "--rig", "shop"]);
        fleet.town.gt(["sling", &early]).success();
        fleet.town.gt(["scheduler", "run"]).success();
        // Without a keeper nobody hears of its end before the command looks.
        fleet.kill_keepers();
        fleet.open_gate("early");
        fleet.until_seen("the early agent's end", || fleet.agents().is_empty());
        fleet.script(WAITS);
        let first = fleet.town.create(&["First", "--rig", "shop"]);
        let second = fleet.town.create(&["Second", "--rig", "shop"]);
        let third = fleet.town.create(&["Third", "--rig", "shop"]);
        Scene { fleet, early, beads: [first, second, third] }
    }

    /// Runs a command that is to die at a point; says whether it did.
    fn is_killed(&self, arguments: &[&str], order: &str) -> bool {
        let child = self.fleet.town.call(arguments).env("GT_CRASH_AT", order).spawn();
        let output = child.wait_with_output().expect("the binary can be waited for");
        let is_killed = output.status.signal() == Some(SIGKILL);
        assert!(is_killed || output.status.success(), "{order}: {output:?}");
        is_killed
    }

    /// A daemon finds everything as it was left, and brings it to an end.
    fn recover(&self) {
        self.fleet.open_gate("gate");
        self.fleet.start_daemon();
        let all: Vec<String> = [&self.early].into_iter().chain(&self.beads).cloned().collect();
        assert_done_once(&self.fleet, &all);
    }
}

/// Sling in direct mode: how often it comes by, at least; it schedules once, and sees one end.
fn sling_passes(point: CrashPoint) -> usize {
    match point {
        CrashPoint::Scheduled | CrashPoint::SawEnds | CrashPoint::RecordedEnds | CrashPoint::Acknowledged => 1,
        // The first bead is claimed by the sling itself.
        _ => 2,
    }
}

fn kill_sling_at(point: CrashPoint, nth: usize, order: &str, isolation: &str) {
    let scene = Scene::new("-1", isolation);
    let [first, second, third] = &scene.beads;
    let is_killed = scene.is_killed(&["sling", first, second, third], order);
    // Between its spaced starts others may pass too, and take one of the beads.
    let is_shared = nth == 2 && matches!(point, CrashPoint::Claimed | CrashPoint::Prepared | CrashPoint::Launched);
    // Where others have to be asked, the early end may be seen by a later pass.
    let is_exact = !place::KEEPS_STATUS;
    assert!(!is_exact || is_shared || is_killed == (nth <= sling_passes(point)), "{order}");
    let is_scheduled = count(&scene.fleet.town.events(), "context.scheduled", Some(first)) == 1;
    // Its first commit is the record of the early end, and those before the sling are all that is left out.
    let before = [CrashPoint::Committed, CrashPoint::SawEnds, CrashPoint::RecordedEnds, CrashPoint::Acknowledged];
    let is_before = nth == 1 && before.contains(&point);
    assert!(!is_exact || is_scheduled != is_before, "{order}");
    if !is_scheduled {
        scene.fleet.set("queue.enabled", "true");
        scene.fleet.set("queue.spawn_delay", "0s");
        scene.fleet.town.gt(["queue", first, second, third]).success();
    }
    scene.recover();
}

#[test]
fn a_direct_sling_killed_at_any_point_has_lost_and_doubled_nothing() {
    for (point, nth, order) in orders(2) {
        kill_sling_at(point, nth, &order, "none");
    }
}

#[test]
fn a_direct_sling_killed_around_worktrees_leaves_none_that_nobody_knows() {
    let points = [CrashPoint::Claimed, CrashPoint::Prepared, CrashPoint::Launched, CrashPoint::RecordedStart];
    for point in points {
        kill_sling_at(point, 1, point.name(), "worktree");
    }
}

/// `gt scheduler run`: how often it comes by, at least, with three beads to start.
fn run_passes(point: CrashPoint) -> usize {
    match point {
        CrashPoint::Scheduled => 0,
        CrashPoint::SawEnds | CrashPoint::RecordedEnds | CrashPoint::Acknowledged => 1,
        _ => 2,
    }
}

fn kill_run_at(point: CrashPoint, nth: usize, order: &str, isolation: &str) {
    let scene = Scene::new("5", isolation);
    let [first, second, third] = &scene.beads;
    scene.fleet.town.gt(["sling", first, second, third]).success();
    let is_killed = scene.is_killed(&["scheduler", "run"], order);
    assert!(place::KEEPS_STATUS || is_killed == (nth <= run_passes(point)), "{order}");
    scene.recover();
}

#[test]
fn a_scheduler_run_killed_at_any_point_has_lost_and_doubled_nothing() {
    for (point, nth, order) in orders(2) {
        kill_run_at(point, nth, &order, "none");
    }
}

#[test]
fn a_scheduler_run_killed_around_worktrees_leaves_none_that_nobody_knows() {
    for point in [CrashPoint::Claimed, CrashPoint::Prepared, CrashPoint::Launched] {
        kill_run_at(point, 2, &format!("{}:2", point.name()), "worktree");
    }
}

#[test]
fn a_sling_killed_before_it_could_wake_the_daemon_is_heard_all_the_same() {
    let fleet = Fleet::with_cap(2, FINISHES);
    fleet.start_daemon();
    let bead = fleet.town.create(&["Quiet", "--rig", "shop"]);
    let child = fleet.town.call(["sling", &bead]).env("GT_CRASH_AT", CrashPoint::Committed.name()).spawn();
    let output = child.wait_with_output().expect("the binary can be waited for");
    assert_eq!(output.status.signal(), Some(SIGKILL));
    let since = Instant::now();
    fleet.until_events("run.started", Some(&bead), 1);
    // Sooner than any sweep or patrol would have found it, on however busy a machine.
    assert!(since.elapsed() < Duration::from_secs(25), "it took {:?}", since.elapsed());
    assert_done_once(&fleet, &[bead]);
}

#[test]
fn work_whose_end_was_reported_by_a_command_that_was_killed_is_followed_by_the_next() {
    let fleet = Fleet::with_cap(
        2,
        "GT_CRASH_AT=committed gt done --no-changes; while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done",
    );
    fleet.start_daemon();
    let first = fleet.town.create(&["First", "--rig", "shop"]);
    let second = fleet.town.create(&["Second", "--rig", "shop", "--blocked-by", &first]);
    fleet.town.gt(["sling", &first, &second]).success();
    // The first agent does not end, so nothing but the watch on the store can tell.
    fleet.until_events("run.started", Some(&second), 1);
    fleet.open_gate("gate");
    assert_done_once(&fleet, &[first, second]);
}

fn sling_many(fleet: &Fleet, n: usize) -> Vec<String> {
    let line = |n: usize| format!(r#"{{"id":"gt-{n:03}","title":"Bead {n}","issue_type":"task"}}"#);
    let lines: Vec<String> = (0..n).map(line).collect();
    fleet.town.call(["bead", "import", "-"]).stdin(lines.join("\n").as_bytes()).run().success();
    let beads: Vec<String> = (0..n).map(|n| format!("gt-{n:03}")).collect();
    fleet.town.call(["sling", "--json"].into_iter().chain(beads.iter().map(String::as_str))).run().success();
    beads
}

#[test]
fn a_daemon_killed_at_odd_moments_under_load_starts_nothing_twice() {
    for isolation in ["none", "worktree"] {
        let fleet = Fleet::with_cap(4, FINISHES);
        fleet.set("rigs.shop.isolation", isolation);
        let beads = sling_many(&fleet, 30);
        let n_before = fleet.town.events().len();
        fleet.start_daemon();
        for k in [2, 5, 9, 14, 22, 31, 45, 58, 76, 95, 118] {
            fleet.until(&format!("event {k}"), |events| events.len() >= n_before + k);
            fleet.kill_daemon();
            fleet.start_daemon();
        }
        assert_done_once(&fleet, &beads);
    }
}

/// The outcomes of a bead's runs, in order.
fn outcomes(events: &[Value], bead: &str) -> Vec<String> {
    let ended = events.iter().filter(|event| event["type"] == "run.ended" && event["bead"] == bead);
    ended.map(|event| event["data"]["outcome"].as_str().expect("an end has an outcome").to_owned()).collect()
}

/// Each bead was finished by its last run, and by no other; those before it are known to have died.
fn assert_finished_in_the_end(fleet: &Fleet, beads: &[String]) {
    fleet.until_done(beads);
    let events = fleet.town.events();
    for bead in beads {
        let outcomes = outcomes(&events, bead);
        let (last, before) = outcomes.split_last().expect("it ran");
        assert_eq!(last, "completed", "{bead}");
        assert!(before.iter().all(|outcome| outcome == "died"), "{bead}: {outcomes:?}");
        assert!(fleet.starts().iter().filter(|start| *start == bead).count() <= outcomes.len(), "{bead}");
    }
    fleet.assert_at_rest(beads);
}

#[test]
fn agents_killed_together_with_the_daemon_are_noticed_and_their_beads_tried_again() {
    let fleet = Fleet::with_cap(4, "sleep 0.03; gt done --no-changes");
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.set("witness.redispatch_attempts", "100");
    let beads = sling_many(&fleet, 30);
    let n_before = fleet.town.events().len();
    fleet.start_daemon();
    for k in [7, 13, 26, 40, 61, 85, 120] {
        fleet.until(&format!("event {k}"), |events| events.len() >= n_before + k);
        fleet.kill_daemon();
        fleet.agents().into_iter().filter(|agent| agent.leads).for_each(|agent| kill(agent.pid));
        fleet.start_daemon();
    }
    assert_finished_in_the_end(&fleet, &beads);
}

#[test]
fn after_the_whole_machine_went_down_every_run_is_known_to_have_ended_and_tried_again() {
    let fleet = Fleet::with_cap(3, WAITS);
    fleet.set("witness.redispatch_cooldown", "0s");
    let beads = sling_many(&fleet, 5);
    fleet.start_daemon();
    fleet.until_events("run.started", None, 3);
    fleet.until_seen("three agents at work", || fleet.starts().len() == 3);
    let running = fleet.agents();
    fleet.kill_daemon();
    fleet.kill_keepers();
    running.into_iter().chain(fleet.agents()).for_each(|agent| kill(agent.pid));
    fleet.start_daemon();
    fleet.until_events("run.ended", None, 3);
    fleet.open_gate("gate");
    assert_finished_in_the_end(&fleet, &beads);
    let events = fleet.town.events();
    let died: Vec<&Value> = events.iter().filter(|event| event["data"]["outcome"] == "died").collect();
    assert_eq!(died.len(), 3);
    for end in died {
        let seen = if place::KEEPS_STATUS { "killed by signal 9" } else { "nobody saw how it ended" };
        assert_eq!(end["data"]["reason"], seen, "{end}");
    }
    assert_eq!(fleet.starts().len(), 8);
}

#[test]
fn agents_outlive_their_keeper_and_their_end_is_seen_and_how_if_anybody_knows() {
    let script = format!(
        "case $GT_BEAD in gt-001) [ -e \"$HOME/crashed\" ] || {{ {}; }};; esac\n{WAITS}",
        "while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; touch \"$HOME/crashed\"; exit 3"
    );
    let fleet = Fleet::with_cap(3, &script);
    fleet.set("witness.redispatch_cooldown", "0s");
    let beads = sling_many(&fleet, 3);
    fleet.start_daemon();
    fleet.until_seen("three agents at work", || fleet.starts().len() == 3);
    fleet.until_events("run.started", None, 3);
    let (keepers, agents) = (fleet.keepers(), leaders(&fleet));
    fleet.kill_keepers();
    fleet.until_seen("another keeper", || fleet.keepers().iter().any(|pid| !keepers.contains(pid)));
    if !place::OUTLIVES_KEEPER {
        fleet.until_events("run.ended", None, 3);
        assert!(leaders(&fleet).iter().all(|pid| !agents.contains(pid)), "an agent lives on whose run has ended");
        fleet.open_gate("gate");
        assert_finished_in_the_end(&fleet, &beads);
        return;
    }
    assert_eq!(leaders(&fleet), agents, "the agents live on");
    fleet.open_gate("gate");
    assert_finished_in_the_end(&fleet, &beads);
    let events = fleet.town.events();
    assert_eq!(outcomes(&events, "gt-001"), ["died", "completed"]);
    assert_eq!(fleet.starts().len(), 4);
    let first: Vec<&Value> = events.iter().filter(|event| event["type"] == "run.ended").take(3).collect();
    for end in first {
        let is_known = end["data"]["exit_code"] != Value::Null && end["data"]["reason"] != "nobody saw how it ended";
        assert_eq!(is_known, place::KEEPS_STATUS, "{end}");
    }
}

/// The processes that lead a run.
fn leaders(fleet: &Fleet) -> Vec<u32> {
    let mut pids: Vec<u32> = fleet.agents().into_iter().filter(|agent| agent.leads).map(|agent| agent.pid).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn a_keeper_killed_again_and_again_under_load_has_lost_and_doubled_nothing() {
    let fleet = Fleet::with_cap(4, FINISHES);
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.set("witness.redispatch_attempts", "100");
    let beads = sling_many(&fleet, 20);
    let n_before = fleet.town.events().len();
    fleet.start_daemon();
    for k in [3, 8, 17, 29, 44, 63] {
        fleet.until(&format!("event {k}"), |events| events.len() >= n_before + k);
        fleet.keepers().into_iter().for_each(kill);
    }
    if place::OUTLIVES_KEEPER {
        assert_done_once(&fleet, &beads);
    } else {
        assert_finished_in_the_end(&fleet, &beads);
    }
}

#[test]
fn a_second_daemon_waits_and_takes_over_when_the_first_is_killed() {
    let fleet = Fleet::with_cap(2, WAITS);
    let beads = sling_many(&fleet, 5);
    fleet.start_daemon();
    fleet.until_seen("two agents at work", || fleet.starts().len() == 2);
    let mut command = fleet.town.command(GT);
    command.args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut second = command.spawn().expect("the binary can be started");
    let mut log = BufReader::new(second.stdout.take().expect("its output is a pipe")).lines();
    let said = log.next().expect("it says something").expect("that is text");
    let holder = fleet.daemon_pid();
    assert!(said.contains(&format!("another daemon (process {holder}) runs this town; waiting")), "{said}");
    assert_eq!(count(&fleet.town.events(), "daemon.started", None), 1);
    fleet.kill_daemon();
    let said = log.next().expect("it says something").expect("that is text");
    assert!(said.contains("running"), "{said}");
    fleet.open_gate("gate");
    fleet.until_done(&beads);
    let mut started = fleet.starts();
    started.sort();
    assert_eq!(started, beads);
    fleet.assert_at_rest(&beads);
    second.kill().expect("it runs");
    second.wait().expect("it can be waited for");
}

#[test]
fn what_a_dead_agent_left_uncommitted_is_kept_though_nobody_recorded_its_start() {
    let script = "if mkdir \"$HOME/first\" 2> /dev/null; then echo draft > draft; exit 3; fi; gt done --no-changes";
    for order in ["", "launched", "saw-ends"] {
        let fleet = Fleet::with_cap(2, script);
        fleet.set("rigs.shop.isolation", "worktree");
        fleet.set("witness.redispatch_cooldown", "0s");
        let beads = sling_many(&fleet, 1);
        fleet.start_daemon_with(&[("GT_CRASH_AT", order)]);
        if !order.is_empty() {
            fleet.await_daemon_death();
            fleet
                .until_seen("the end of the first agent", || fleet.home("first").exists() && fleet.agents().is_empty());
            fleet.start_daemon();
        }
        assert_finished_in_the_end(&fleet, &beads);
        let events = fleet.town.events();
        let kept: Vec<&Value> = events.iter().filter(|event| event["type"] == "polecat.kept").collect();
        assert_eq!(kept.len(), 1, "{order}: {events:?}");
        let worktree = kept[0]["data"]["worktree"].as_str().expect("it is known where");
        assert_eq!(fs::read_to_string(format!("{worktree}/draft")).expect("the draft is there"), "draft\n");
        let hooked = events.iter().filter(|event| event["type"] == "bead.hooked");
        let polecats: Vec<&Value> = hooked.map(|event| &event["data"]["polecat"]).collect();
        assert_ne!(polecats[0], polecats[1], "the second attempt began in the first one's place");
    }
}

#[test]
fn a_worktree_made_for_a_start_that_fails_is_still_somebodys() {
    let fleet = Fleet::with_cap(2, FINISHES);
    fleet.set("rigs.shop.isolation", "worktree");
    sling_many(&fleet, 1);
    let config = fleet.town.read("town.toml").replace("command = [\"bash\",", "command = [\"no-such-agent\",");
    fleet.town.write("town.toml", config);
    let ran = fleet.town.gt(["scheduler", "run", "--json"]);
    assert!(ran.stdout.contains("no-such-agent"), "{ran}");
    assert!(fleet.town.path(".gt/polecats/shop").read_dir().expect("it was made").next().is_some());
    fleet.assert_worktrees_are_known();
}

#[test]
fn an_agent_told_to_stop_while_it_is_being_started_does_not_run_on_unseen() {
    let fleet = Fleet::with_cap(2, WAITS);
    fleet.set("rigs.shop.isolation", "worktree");
    let hook = fleet.town.path("shop/.git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().expect("hooks have a place")).expect("the repository can be written");
    fs::write(&hook, "#!/bin/sh\nwhile [ ! -e \"$HOME/hook\" ]; do sleep 0.02; done\n").expect("the same");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("it was just made");
    let beads = sling_many(&fleet, 1);
    fleet.start_daemon();
    fleet.until_events("bead.hooked", Some(&beads[0]), 1);
    let stop = fleet.town.call(["polecat", "stop", "Toast"]).spawn();
    fleet.until_events("run.stopping", Some(&beads[0]), 1);
    // Another pass looks at it too.
    fleet.town.call(["scheduler", "run"]).run();
    fleet.open_gate("hook");
    let output = stop.wait_with_output().expect("the binary can be waited for");
    assert!(output.status.success(), "{output:?}");
    fleet.until_events("run.ended", Some(&beads[0]), 1);
    let second = fleet.town.create(&["Second", "--rig", "shop"]);
    fleet.town.gt(["sling", &second]).success();
    fleet.until_events("run.started", Some(&second), 1);
    assert_eq!(leaders(&fleet).len(), 1, "the one that was stopped runs on");
    assert_eq!(outcomes(&fleet.town.events(), &beads[0]), ["stopped"]);
}
