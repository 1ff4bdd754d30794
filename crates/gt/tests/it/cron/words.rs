//! What is typed and read: jobs and schedules, without anything that runs. // SPEC K1

use super::{Clocked, instant};
use crate::town::{Town, session, snapshot};

const NOW: &str = "2027-01-12T10:20:00Z";

#[test]
fn a_job_from_its_adding_to_its_end() {
    let clocked = Clocked::at(NOW);
    clocked.stop_clock(instant(NOW));
    let gt = |words: &[&str]| clocked.gt(words);
    let answers = [
        gt(&["cron", "list"]),
        gt(&["cron", "add", "report", "--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin", "--message", "What is new?"]),
        gt(&[
            "cron",
            "add",
            "backup",
            "--every",
            "6h",
            "--tz",
            "UTC",
            "--run",
            "./backup.sh",
            "--timeout",
            "1h",
            "--missed",
            "skip",
        ]),
        gt(&[
            "cron",
            "add",
            "reminder",
            "--at",
            "tomorrow 9:00",
            "--tz",
            "America/New_York",
            "--message",
            "Release!",
            "--session",
            "dm:anna",
        ]),
        gt(&["cron", "list"]),
        gt(&["cron", "show", "backup"]),
        gt(&["cron", "edit", "backup", "--every", "12h", "--timeout", "default", "--name", "copies"]),
        gt(&["cron", "pause", "copies"]),
        gt(&["cron", "pause", "copies"]),
        gt(&["cron", "list", "--limit", "1"]),
        gt(&["cron", "resume", "copies"]),
        gt(&["cron", "next", "report", "--count", "2"]),
        gt(&["cron", "runs"]),
        gt(&["cron", "remove", "copies"]),
        gt(&["cron", "show", "copies"]),
    ];
    let text = answers
        .map(|answer| {
            answer.to_string().replace("! note: no daemon runs, so nothing starts by itself: `gt daemon start`\n", "")
        })
        .concat();
    snapshot!("a_job_from_its_adding_to_its_end", text);
}

#[test]
fn what_is_unclear_or_wrong_is_refused_with_what_to_type() {
    let town = Town::new();
    town.gt(["cron", "add", "there", "--every", "1h", "--run", "true"]).success();
    let long = format!("0{} * * * *", ",0".repeat(60_000));
    let refused = [
        town.refused(["cron", "add", "x", "--run", "true"]),
        town.refused(["cron", "add", "x", "--every", "1h"]),
        town.refused(["cron", "add", "there", "--every", "1h", "--run", "true"]),
        town.refused(["cron", "add", "a b", "--every", "1h", "--run", "true"]),
        town.refused(["cron", "add", "job-7", "--every", "1h", "--run", "true"]),
        town.refused(["cron", "add", "x", "--every", "0s", "--run", "true"]),
        town.refused(["cron", "add", "x", "--every", "often", "--run", "true"]),
        town.refused(["cron", "add", "x", "--cron", "0 25 * * *", "--run", "true"]),
        town.refused(["cron", "add", "x", "--cron", "0 0 30 2 *", "--run", "true"]),
        town.refused(["cron", "add", "x", "--cron", "* * * *", "--run", "true"]),
        town.refused(["cron", "add", "x", "--at", "9", "--run", "true"]),
        town.refused(["cron", "add", "x", "--at", "tomorrow", "--run", "true"]),
        town.refused(["cron", "add", "x", "--at", "03/04/2027 9:00", "--run", "true"]),
        town.refused(["cron", "add", "x", "--at", "2027-11-07 1:30", "--tz", "America/New_York", "--run", "true"]),
        town.refused(["cron", "add", "x", "--every", "1h", "--tz", "Berlin", "--run", "true"]),
        town.refused(["cron", "add", "x", "--every", "1h", "--run", "true", "--missed", "maybe"]),
        town.refused(["cron", "add", "x", "--every", "1h", "--run", "true", "--channel", "nowhere"]),
        town.refused(["cron", "add", "x", "--every", "1h", "--run", "true", "--session", "dm:a"]),
        town.refused(["cron", "add", "x", "--every", "1h", "--message", "hi", "--agent", "nobody"]),
        town.refused(["cron", "add", "x", "--every", "1h", "--run", "true", "--timeout", "0s"]),
        town.refused(["cron", "edit", "there", "--timeout", "0s"]),
        town.refused(["cron", "add", "x", "--every", "1h", "--run", "true", "--lane", ""]),
        town.refused(["cron", "edit", "there", "--lane", " "]),
        town.refused(["cron", "next", &long]),
        town.refused(["cron", "add", "x", "--cron", &long, "--run", "true"]),
        town.refused(["cron", "edit", "there"]),
        town.refused(["cron", "edit", "their", "--every", "2h"]),
        town.refused(["cron", "pause", "nope"]),
        town.refused(["cron", "runs", "nope"]),
        town.refused(["cron", "runs", "--status", "odd"]),
        town.refused(["cron", "next", "0 0 30 2 *", "--from", "2027-01-01T00:00:00Z"]),
        town.refused(["cron", "next", "0 0 * * *", "--count", "0"]),
        town.refused(["heartbeat", "run"]),
        town.refused(["heartbeat", "disable", "nobody"]),
    ];
    snapshot!("what_is_unclear_or_wrong_is_refused", refused.concat());
}

#[test]
fn several_jobs_at_once_are_one_answer_and_all_or_nothing() {
    let town = Town::new();
    for name in ["f", "h"] {
        town.gt(["cron", "add", name, "--every", "1h", "--run", "true"]).success();
    }
    let names = |answer: crate::town::Answer| match answer.json() {
        serde_json::Value::Array(jobs) => jobs.iter().map(|job| job["name"].to_string()).collect(),
        job => job["name"].to_string(),
    };
    for verb in ["pause", "resume", "remove"] {
        let refused = town.refused(["cron", verb, "f", "nosuch"]);
        assert!(refused.contains("no job `nosuch`") && refused.contains("[exit 3]"), "{refused}");
        assert_eq!(names(town.gt(["cron", verb, "f", "h", "job-1", "--json", "--dry-run"])), r#""f""h""#);
        assert_eq!(names(town.gt(["cron", verb, "h", "h", "--json", "--dry-run"])), r#""h""#);
    }
    assert_eq!(town.gt(["cron", "remove", "h", "h", "f"]).stdout, "Removed h.\nRemoved f.\n");
}

#[test]
fn the_log_knows_whose_it_is_also_when_its_name_has_gone_to_another() {
    let town = Town::new();
    let make = || town.gt(["cron", "add", "x", "--every", "1h", "--run", "true"]).success().code;
    make();
    let fire = town.gt(["cron", "run", "x", "--json"]).json();
    assert_eq!((&fire["job"], &fire["job_id"]), (&"x".into(), &"job-1".into()));
    town.gt(["cron", "remove", "x"]).success();
    make();
    let runs = town.gt(["cron", "runs", "x", "--json"]).json();
    assert_eq!((&runs[0]["id"], &runs[0]["job_id"]), (&fire["id"], &"job-1".into()));
    assert!(fire["id"].is_string(), "{fire}");
    let say = |words: [&str; 5]| town.gt(words).success().stdout.clone();
    assert_eq!(say(["cron", "runs", "x", "--status", "missed"]), "None of them is missed.\n");
    assert_eq!(say(["cron", "runs", "job-2", "--status", "missed"]), "Nothing has come of it yet.\n");
    assert_eq!(town.gt(["cron", "show", "x", "--json"]).json()["runs"], serde_json::json!([]), "those are not its own");
}

#[test]
fn times_are_shown_before_they_are_trusted_also_outside_a_town() {
    let town = Town::unmade();
    let next = |words: [&str; 8]| town.gt(words);
    let answers = [
        next([
            "cron",
            "next",
            "30 2 * * *",
            "--tz",
            "America/New_York",
            "--from",
            "2027-03-12T12:00:00-05:00",
            "--count=3",
        ]),
        next([
            "cron",
            "next",
            "0 12 L * *",
            "--tz",
            "Asia/Kolkata",
            "--from",
            "2028-01-31T13:00:00+05:30",
            "--count=2",
        ]),
        next(["cron", "next", "@daily", "--tz", "Australia/Lord_Howe", "--from", "2027-04-03T12:00:00Z", "--count=2"]),
    ];
    snapshot!(session(answers), @"
    $ gt cron next '30 2 * * *' --tz America/New_York --from 2027-03-12T12:00:00-05:00 --count=3
    2027-03-13T02:30:00-05:00
    2027-03-14T03:00:00-04:00
    2027-03-15T02:30:00-04:00
    $ gt cron next '0 12 L * *' --tz Asia/Kolkata --from 2028-01-31T13:00:00+05:30 --count=2
    2028-02-29T12:00:00+05:30
    2028-03-31T12:00:00+05:30
    $ gt cron next @daily --tz Australia/Lord_Howe --from [TIME] --count=2
    2027-04-04T00:00:00+11:00
    2027-04-05T00:00:00+10:30
    ");
}

#[test]
fn a_rehearsal_leaves_nothing() {
    let town = Town::new();
    let answer = town.gt(["cron", "add", "x", "--every", "1h", "--run", "true", "--dry-run"]);
    answer.success();
    assert_eq!(town.gt(["cron", "list", "--json"]).stdout.trim(), "[]");
}

#[test]
fn a_town_with_jobs_shows_what_comes_next() {
    let clocked = Clocked::at(NOW);
    clocked.gt(&["cron", "add", "backup", "--cron", "0 3 * * *", "--tz", "UTC", "--run", "true"]).success();
    let status = clocked.gt(&["status"]).stdout;
    let part = status.split("\n\n").find(|part| part.starts_with("Next by the clock")).expect("it is shown");
    assert_eq!(part.trim_end(), "Next by the clock (1)\n  backup  in 16h 40m  Wed 2027-01-13 03:00 +00:00 (UTC)");
}

#[test]
fn a_zone_without_a_name_is_nothing_that_a_job_could_keep() {
    let town = Town::new();
    let call = |words: &[&str]| town.call(words.iter().copied()).env("TZ", "CET-1CEST,M3.5.0,M10.5.0/3").run();
    for words in [&["cron", "next", "0 9 * * *"][..], &["cron", "add", "x", "--cron", "0 9 * * *", "--run", "true"]] {
        let answer = call(words);
        assert_eq!(answer.code, 2, "{answer}");
        assert!(answer.stderr.contains("hint: name one: `--tz Europe/Berlin`, or `--tz UTC`"), "{answer}");
    }
    call(&["cron", "next", "0 9 * * *", "--tz", "Europe/Berlin"]).success();
    call(&["cron", "add", "x", "--every", "6h", "--run", "true"]).success();
}

#[test]
fn a_grace_for_what_never_comes_late_is_refused() {
    let town = Town::new();
    let add = ["cron", "add", "x", "--every", "1h", "--grace", "5m", "--run", "true"];
    for missed in ["skip", "all"] {
        let answer = town.call(add.into_iter().chain(["--missed", missed])).run();
        assert_eq!(answer.code, 2, "{answer}");
        assert!(answer.stderr.contains(&format!("`--grace` means nothing with `--missed {missed}`")), "{answer}");
    }
    town.gt(add).success();
    assert_eq!(town.gt(["cron", "edit", "x", "--missed", "all"]).code, 2);
    town.gt(["cron", "edit", "x", "--missed", "all", "--grace", "default"]).success();
}

#[test]
fn words_that_begin_with_a_dash_are_words() {
    let town = Town::with_rig();
    let payload = |name: &str, words: &[&str]| {
        let add = ["cron", "add", name, "--every", "1h", "--json"];
        town.call(add.iter().chain(words).copied()).run().json()["payload"].to_string()
    };
    town.gt(["config", "set", "agents.claude.headless", r#"["true"]"#]).success();
    assert_eq!(payload("a", &["--message", "- check the mail"]), r#"{"message":{"text":"- check the mail"}}"#);
    assert_eq!(payload("b", &["--run", " --version"]), r#"{"run":{"command":" --version"}}"#);
    assert_eq!(
        payload("c", &["--new", "- tidy up", "--args", "-v is enough", "--rig", "shop"]),
        r#"{"sling":{"words":["shop","--new=- tidy up","--args=-v is enough"]}}"#
    );
    let edited = town.gt(["cron", "edit", "a", "--message", "-- and the post", "--json"]).json();
    assert_eq!(edited["payload"]["message"]["text"], "-- and the post");
    let refused = |words: &[&str]| town.refused(["cron", "add", "x", "--run", "true"].iter().chain(words).copied());
    let refused = [
        refused(&["--every", "-5m"]),
        refused(&["--every", "--missed"]),
        refused(&["--every", "1h", "--retries", "-1"]),
        refused(&["--every", "1h", "--timeout", "-1h"]),
        refused(&["--every", "1h", "--grace", "-1h"]),
        refused(&["--at", "-2h"]),
        refused(&["--cron", "-1 * * * *"]),
        town.refused(["cron", "next", "0 9 * * *", "--from", "-2h"]),
    ];
    snapshot!(refused.concat(), @"
    $ gt cron add x --run true --every -5m
    ! error: `-5m` is not a span of time for --every
    ! hint: say `30s`, `5m` or `1h 30m`
    [exit 2]
    $ gt cron add x --run true --every --missed
    ! error: `--missed` is not a span of time for --every
    ! hint: say `30s`, `5m` or `1h 30m`
    [exit 2]
    $ gt cron add x --run true --every 1h --retries -1
    ! error: `-1` is not a number of retries
    ! hint: say 0 to 100
    [exit 2]
    $ gt cron add x --run true --every 1h --timeout -1h
    ! error: `-1h` is not a span of time for --timeout
    ! hint: say `30s`, `5m` or `1h 30m`
    [exit 2]
    $ gt cron add x --run true --every 1h --grace -1h
    ! error: `-1h` is not a span of time for --grace
    ! hint: say `30s`, `5m` or `1h 30m`
    [exit 2]
    $ gt cron add x --run true --at -2h
    ! error: `-2h` is not a time
    ! hint: say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    [exit 2]
    $ gt cron add x --run true --cron '-1 * * * *'
    ! error: `-1` is not a minute: 0 to 59
    ! hint: for example `0 9 * * 1-5`, at nine on workdays; try it with `gt cron next EXPR`
    [exit 2]
    $ gt cron next '0 9 * * *' --from -2h
    ! error: `-2h` is not a time
    ! hint: say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`
    [exit 2]
    ");
}

#[test]
fn one_word_that_looks_like_an_option_is_sent_to_nobody() {
    let town = Town::new();
    let refused = [
        town.refused(["cron", "add", "x", "--every", "1h", "--message", "--overlap"]),
        town.refused(["send", "dm:anna", "--waitt"]),
    ];
    snapshot!(refused.concat(), @"
    $ gt cron add x --every 1h --message --overlap
    ! error: invalid value '--overlap' for '--message <TEXT>': it looks like an option; if it is meant as a text, put a space before it
    !
    ! For more information, try '--help'.
    [exit 2]
    $ gt send dm:anna --waitt
    ! error: invalid value '--waitt' for '<TEXT>': it looks like an option; if it is meant as a text, put a space before it
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn what_is_told_of_lanes_rigs_and_jobs_that_are_not_there_can_be_typed() {
    let town = Town::with_rig();
    let add = |words: &[&str]| town.call(["cron", "add"].iter().chain(words).copied()).run();
    let every = ["--every", "1h", "--tz", "UTC"];
    let told = [
        add(&[&["lost"], &every[..], &["--run", "true", "--lane", "nope", "--json"]].concat()).stderr,
        add(&[&["x"], &every[..], &["--new", "Tidy up"]].concat()).to_string(),
        add(&[&["x"], &every[..], &["--sling", "shop"]].concat()).to_string(),
        town.gt(["cron", "next", "@daily", "--from", "9999-12-30", "--tz", "UTC"]).to_string(),
        town.gt(["cron", "next", "0 0 31 2 *", "--from", "2026-12-30", "--tz", "UTC"]).to_string(),
    ];
    snapshot!(told.join("\n"), @"
    note: there is no lane `nope`, so it counts in `main`; `gt lane list` shows what there is
    note: no daemon runs, so nothing starts by itself: `gt daemon start`

    $ gt cron add x --every 1h --tz UTC --new 'Tidy up'
    ! error: `--new` needs the rig that the work belongs to
    ! hint: say for which: `--rig RIG`
    [exit 2]

    $ gt cron add x --every 1h --tz UTC --sling shop
    ! error: `shop` is a rig; name the bead before it
    ! hint: name what to sling before it: `--sling ID shop`
    [exit 2]

    $ gt cron next @daily --from 9999-12-30 --tz UTC
    ! error: no time of `@daily` comes after 9999-12-30T00:00:00+00:00
    ! hint: the calendar ends with the year 9999
    [exit 1]

    $ gt cron next '0 0 31 2 *' --from 2026-12-30 --tz UTC
    ! error: no time of `0 0 31 2 *` comes after 2026-12-30T00:00:00+00:00
    ! hint: does that day exist in that month?
    [exit 1]
    ");
    town.gt(["cron", "run", "lost", "--wait"]).success();
    town.gt(["cron", "remove", "lost"]).success();
    snapshot!(session([town.gt(["cron", "show", "lost"]), town.gt(["cron", "next", "lost"])]), @"
    $ gt cron show lost
    ! error: there is no job `lost` any more
    ! hint: `gt cron runs lost` shows what became of it
    [exit 3]
    $ gt cron next lost
    ! error: there is no job `lost` any more
    ! hint: `gt cron runs lost` shows what became of it
    [exit 3]
    ");
}

#[test]
fn a_message_a_text_and_instructions_may_begin_with_a_dash() {
    let town = Town::with_rig();
    town.gt(["send", "dm:anna", "- and the milk"]).success();
    town.gt(["send", "dm:anna", "--", "--wait"]).success();
    let said = town.gt(["session", "show", "dm:anna", "--json"]).stdout;
    assert!(said.contains("- and the milk") && said.contains("--wait"), "{said}");
    // What is known stays a flag, wherever it stands.
    assert_eq!(town.gt(["send", "--json", "dm:bob", "--sender", "carl", "hi"]).json()["session"], "dm:bob");
    let bead = town.create(&["Shop", "--rig", "shop", "-d", "- milk", "--notes", "- bread", "--design", "-x"]);
    let shown = town.gt(["show", &bead, "--json"]).stdout;
    assert!(shown.contains("- milk") && shown.contains("- bread"), "{shown}");
    town.gt(["bead", "update", &bead, "--acceptance", "- all is there"]).success();
    town.gt(["config", "set", "scheduler.max_polecats", "1"]).success();
    town.gt(["sling", &bead, "--args", "- only the milk"]).success();
}

#[test]
fn what_was_asked_for_is_read_back_and_an_empty_log_says_that_it_is_empty() {
    let town = Town::new();
    let off = |words: [&str; 2]| {
        let added = town.gt(["cron", "add", "x", words[0], words[1], "--tz", "UTC", "--run", "true"]);
        town.gt(["cron", "remove", "x"]).success();
        added.stdout.rsplit_once(", in ").expect("it says how far off it is").1.to_owned()
    };
    assert_eq!([off(["--every", "20m"]), off(["--at", "in 2h"])], ["20m.\n", "2h.\n"]);
    assert_eq!(town.gt(["cron", "runs"]).stdout, "There are no runs yet.\n");
    assert_eq!(town.gt(["cron", "runs", "--status", "ok"]).stdout, "There are no runs yet.\n");
}
