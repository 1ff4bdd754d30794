//! Which config is in force, case by case: what the file says, what is kept, and what the clock says.

use gt_store::SeenConfig;
use jiff::{SignedDuration, Timestamp};

use super::*;

const GATED: &str = "scheduler.max_polecats = 3\nrigs.shop.gates = [\"make\", \"make test\"]\n";
const UNGATED: &str = "scheduler.max_polecats = 3\n";

/// A second after the last good config was kept.
fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(400_000) + SignedDuration::from_secs(second)
}

fn kept(text: &str) -> LastGood {
    LastGood { text: text.to_owned(), kept_at: at(0), seen: None }
}

fn found(text: &str, changed_at: Option<Timestamp>) -> Found {
    let file = ConfigFile::new("town.toml");
    Found { read: file.parse(text).map(|config| (text.to_owned(), config)), changed_at }
}

/// The decision in a word, with what is left to wait.
fn word(decision: &Decision) -> (&'static str, i64) {
    match decision {
        Decision::Kept(_) => ("kept", 0),
        Decision::Take { .. } => ("take", 0),
        Decision::Wait { left, .. } => ("wait", left.as_secs()),
        Decision::Broken { config: Some(_), .. } => ("last good", 0),
        Decision::Broken { config: None, .. } => ("none", 0),
    }
}

#[test]
fn what_is_broken_never_counts() {
    for broken in ["scheduler = [", "no_such_key = 1", "scheduler.max_polecats = \"many\""] {
        let decided =
            |kept: Option<&LastGood>| word(&decide(found(broken, None), kept, at(99), Waited::Clock, |_| false)).0;
        assert_eq!(decided(Some(&kept(GATED))), "last good", "{broken}");
        assert_eq!(decided(None), "none", "{broken}");
        // Another version has kept what this one does not understand.
        assert_eq!(decided(Some(&kept(broken))), "none", "{broken}");
    }
}

#[test]
fn what_drops_nothing_counts_at_once() {
    for edit in [
        GATED.to_owned() + "default_agent = \"codex\"\n",
        GATED.replace('3', "500"),
        GATED.replace("make test", "true"),
        GATED.to_owned() + "guards.load_per_core = 0\n",
    ] {
        let decision = decide(found(&edit, Some(at(5))), Some(&kept(GATED)), at(5), Waited::Clock, |_| false);
        assert_eq!(word(&decision).0, "take", "{edit}");
    }
    assert_eq!(
        word(&decide(found(UNGATED, None), None, at(5), Waited::Clock, |_| false)).0,
        "take",
        "nothing was known"
    );
    assert_eq!(word(&decide(found(GATED, None), Some(&kept(GATED)), at(5), Waited::Clock, |_| false)).0, "kept");
}

#[test]
fn what_drops_a_limit_counts_after_ten_unchanged_seconds() {
    let seen_before = |changed: Option<i64>, first: i64| LastGood {
        seen: Some(SeenConfig { digest: digest(UNGATED), changed_at: changed.map(at), at: at(first) }),
        ..kept(GATED)
    };
    let never = || kept(GATED);
    // What is kept, when the file changed, what the clock says: what is decided.
    for (name, kept, changed, now, wanted) in [
        ("just now", never(), Some(100), 100, ("wait", 10)),
        ("a while ago", never(), Some(100), 107, ("wait", 3)),
        ("long enough ago", never(), Some(100), 110, ("take", 0)),
        ("moved here, older than what it replaces", never(), Some(-500), 100, ("wait", 10)),
        ("moved here, and seen", seen_before(Some(-500), 100), Some(-500), 104, ("wait", 6)),
        ("moved here, and seen for long", seen_before(Some(-500), 100), Some(-500), 110, ("take", 0)),
        ("seen, and written again since", seen_before(Some(-500), 50), Some(-400), 100, ("wait", 10)),
        ("written before the clock was set back", never(), Some(9000), 100, ("wait", 10)),
        ("the same, and seen", seen_before(Some(9000), 100), Some(9000), 110, ("take", 0)),
        ("seen before the clock was set back", seen_before(Some(9000), 9000), Some(9000), 100, ("wait", 10)),
        ("no time is known", never(), None, 100, ("wait", 10)),
        ("no time is known, and seen", seen_before(None, 100), None, 110, ("take", 0)),
    ] {
        let decision = decide(found(UNGATED, changed.map(at)), Some(&kept), at(now), Waited::Clock, |_| false);
        assert_eq!(word(&decision), wanted, "{name}");
    }
}

#[test]
fn whoever_watches_the_file_knows_better_than_the_clock() {
    let decided =
        |now, waited| word(&decide(found(UNGATED, Some(at(5))), Some(&kept(GATED)), at(now), waited, |_| false));
    assert_eq!(decided(5000, Waited::Left(SignedDuration::from_secs(4))), ("wait", 4));
    assert_eq!(decided(5000, Waited::Left(SignedDuration::ZERO)), ("take", 0));
    assert_eq!(decided(7, Waited::Daemon), ("wait", 8));
    assert_eq!(decided(5 + 69, Waited::Daemon), ("wait", 1));
}

/// It may be of an older version, which does not know the rule, or hang.
#[test]
fn a_daemon_that_decides_nothing_is_not_waited_for_without_end() {
    let decided = |kept, changed: Option<i64>, now| {
        word(&decide(found(UNGATED, changed.map(at)), Some(&kept), at(now), Waited::Daemon, |_| false))
    };
    assert_eq!(decided(kept(GATED), Some(5), 5 + 70), ("take", 0));
    let seen = SeenConfig { digest: digest(UNGATED), changed_at: None, at: at(100) };
    let seen = LastGood { seen: Some(seen), ..kept(GATED) };
    assert_eq!([decided(seen.clone(), None, 169), decided(seen, None, 170)], [("wait", 1), ("take", 0)]);
}

#[test]
fn what_waits_is_noted_where_nothing_else_tells_since_when() {
    let is_news = |changed: Option<i64>| {
        let decision = decide(found(UNGATED, changed.map(at)), Some(&kept(GATED)), at(100), Waited::Clock, |_| false);
        matches!(decision, Decision::Wait { is_news: true, .. })
    };
    assert_eq!([Some(95), Some(-5), Some(900), None].map(is_news), [false, true, true, true]);
}

#[test]
fn every_gate_and_cap_can_be_dropped() {
    let config = |line: &str| Config::parse(line).unwrap();
    for (set, gone, was) in [
        ("rigs.shop.gates = [\"a\", \"b\"]", "rigs.shop.gates = [\"b\"]", "[\"a\", \"b\"]"),
        ("rigs.shop.gates = [\"a\"]", "# nothing", "[\"a\"]"),
        ("rigs.shop.max_polecats = 1", "rigs.shop.max_polecats = 0", "1"),
        ("rigs.\"a.b\".max_polecats = 1", "# nothing", "1"),
        ("scheduler.max_polecats = 2", "scheduler.max_polecats = -1", "2"),
        ("queue.max_polecats = 2", "queue.max_polecats = 0", "2"),
        ("agents.x.max = 2", "# nothing", "2"),
        ("hosts.x.max = 2", "# nothing", "2"),
        ("lanes.own = 2", "# nothing", "2"),
        ("guards.load_per_core = 4", "guards.load_per_core = 0", "4"),
        ("guards.free_memory = \"1 GB\"", "guards.free_memory = \"0 MB\"", "1 GB"),
        ("guards.free_disk = \"1 GB\"", "guards.free_disk = \"0 MB\"", "1 GB"),
        ("guards.starts_per_second = 1", "# nothing", "1"),
        ("guards.max_agents = 4", "guards.max_agents = 0", "4"),
        ("budget.daily = 5", "# nothing", "5"),
        // Where the line goes, a default takes its place that holds back less.
        ("guards.max_agents = 4", "# nothing", "4"),
        ("queue.max_polecats = 2", "# nothing", "2"),
        ("guards.free_disk = \"5 GB\"", "# nothing", "5 GB"),
        ("lanes.main = 1", "# nothing", "1"),
        ("rigs.shop.pull_request = [\"./pr.sh\"]", "# nothing", "[\"./pr.sh\"]"),
        ("rigs.shop.merge = \"local\"", "# nothing", "local"),
        ("rigs.shop.merge = \"local\"", "rigs.shop.merge = \"mr\"", "local"),
        ("rigs.shop.merge = \"mr\"", "rigs.shop.merge = \"direct\"", "mr"),
        ("rigs.shop.push = false", "# nothing", "false"),
        ("rigs.shop.push = false", "rigs.shop.push = true", "false"),
        ("runtime = \"exec\"", "# nothing", "exec"),
        ("runtime = \"exec\"", "runtime = \"process\"", "exec"),
        ("exec.command = [\"./host\", \"--sandbox\"]", "exec.command = [\"./host\"]", "[\"./host\", \"--sandbox\"]"),
        ("agents.claude.command = [\"jail\", \"claude\"]", "# nothing", "[\"jail\", \"claude\"]"),
        ("agents.claude.headless = [\"jail\", \"claude\"]", "# nothing", "[\"jail\", \"claude\"]"),
        ("heartbeat.enabled = false", "# nothing", "false"),
        ("heartbeat.active_hours = \"08:00-22:00\"", "# nothing", "08:00-22:00"),
        ("server.allow = [\"dm:*\"]", "# nothing", "[\"dm:*\"]"),
        ("server.allow = [\"dm:*\"]", "server.allow = [\"dm:*\", \"*\"]", "[\"dm:*\"]"),
        ("server.allow = []", "# nothing", "[]"),
    ] {
        let found = dropped(&config(set), &config(gone), |_| false);
        assert_eq!(found.iter().map(|one| one.was.as_str()).collect::<Vec<_>>(), [was], "{set} → {gone}");
        assert!(is_missing(&config(gone), &found[0].key, was), "{set} → {gone}");
        assert!(!is_missing(&config(set), &found[0].key, was), "{set}");
        assert_eq!(dropped(&config(gone), &config(set), |_| false), [], "{gone} → {set}");
    }
}

#[test]
fn what_holds_back_as_much_as_before_is_not_dropped() {
    let config = |line: &str| Config::parse(line).unwrap();
    for (set, next) in [
        // The default is the stricter one.
        ("queue.max_polecats = 20", "# nothing"),
        ("guards.free_disk = \"1 MB\"", "# nothing"),
        ("lanes.main = 9", "# nothing"),
        ("rigs.shop.merge = \"direct\"", "# nothing"),
        ("rigs.shop.push = true", "# nothing"),
        ("runtime = \"process\"", "# nothing"),
        ("heartbeat.enabled = true", "# nothing"),
        ("server.allow = [\"*\"]", "# nothing"),
        // Another value was a choice.
        ("guards.max_agents = 4", "guards.max_agents = 40"),
        ("guards.free_memory = \"2 GB\"", "guards.free_memory = \"1 GB\""),
        ("exec.command = [\"./host\"]", "exec.command = [\"./other\"]"),
        ("server.allow = [\"dm:*\"]", "server.allow = [\"dm:*\", \"group:*\"]"),
        ("server.allow = [\"dm:*\"]", "server.allow = []"),
        ("heartbeat.active_hours = \"08:00-22:00\"", "heartbeat.active_hours = \"08:00-23:00\""),
        // An agent that does not exist starts nothing.
        ("agents.own.command = [\"bash\", \"agent.sh\"]", "# nothing"),
    ] {
        assert_eq!(dropped(&config(set), &config(next), |_| false), [], "{set} → {next}");
    }
}

#[test]
fn who_may_use_a_channel_is_dropped_where_that_opens_it() {
    let channel = |kind: &str, allow: &str| {
        let kind = if kind.is_empty() { String::new() } else { format!("channels.x.kind = \"{kind}\"\n") };
        Config::parse(&format!("{kind}{allow}")).unwrap()
    };
    let some = "channels.x.allow = [\"dm:*\"]";
    for (kind, next, is_dropped) in [
        ("webhook", "", true),
        ("webhook", "channels.x.allow = []", true),
        ("webhook", "channels.x.allow = [\"*\"]", true),
        ("webhook", "channels.x.allow = [\"cron:*\"]", false),
        // Nobody may write to a bot that names nobody, and what is no channel posts nothing.
        ("telegram", "", false),
        ("", "", false),
    ] {
        let found = dropped(&channel(kind, some), &channel(kind, next), |_| false);
        assert_eq!(!found.is_empty(), is_dropped, "{kind}: {next}");
    }
}
