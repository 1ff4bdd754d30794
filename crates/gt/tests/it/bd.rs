//! The binary called as `bd`: every line of the seeds that begins with `bd`, and the words it speaks. // SPEC B1

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use serde_json::Value;

use crate::fleet::{FINISHES, Fleet};
use crate::town::{Answer, GT, session, snapshot};

fn fleet() -> Fleet {
    let fleet = Fleet::in_rig("gastown", FINISHES);
    fleet.set("scheduler.max_polecats", "5");
    fleet.hold(&["gt-abc", "gt-def"]);
    fleet
}

fn bd(fleet: &Fleet, line: &str) -> Answer {
    fleet.town.call(line.split(' ')).called_as("bd").run()
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|row| row["id"].as_str()).collect()
}

/// Seed 000, the query of a pass: all contexts, joined with all that is ready.
#[test]
fn contexts_and_ready_work_are_listed() {
    let fleet = fleet();
    fleet.town.gt(["sling", "gt-abc", "gastown"]).success();
    for line in ["list --label=gt:sling-context", "list --label=gt:sling-context --status=open"] {
        let contexts = bd(&fleet, &format!("{line} --json")).json();
        assert_eq!(ids(&contexts).len(), 1, "{contexts}");
        assert_eq!(contexts[0]["dependencies"][0]["depends_on_id"], "gt-abc");
    }
    assert_eq!(ids(&bd(&fleet, "ready --json --limit=0").json()), ["gt-abc", "gt-def"]);
    assert_eq!(bd(&fleet, "ready").code, 0);
}

/// Seed 000: `bd create --ephemeral` with a label, `bd dep add --type=tracks`.
#[test]
fn a_record_is_made_labelled_and_linked() {
    let fleet = fleet();
    let made = bd(&fleet, "create --ephemeral note --label gt:sling-context --json").json();
    let id = made["id"].as_str().expect("an id").to_owned();
    assert_eq!((&made["ephemeral"], &made["labels"][0]), (&true.into(), &"gt:sling-context".into()));
    bd(&fleet, &format!("dep add {id} gt-abc --type=tracks")).success();
    let shown = bd(&fleet, &format!("show {id} --json")).json();
    assert_eq!(
        (&shown["dependencies"][0]["depends_on_id"], &shown["dependencies"][0]["type"]),
        (&"gt-abc".into(), &"tracks".into())
    );
    assert_eq!(ids(&bd(&fleet, "ready --json --limit=0").json()), ["gt-abc", "gt-def"], "a record is no work");
}

/// Seed 002: `bd update --description=…`, `bd update --add-label=gt:queued`, `bd ready --label gt:queued`.
#[test]
fn texts_and_labels_are_changed_and_asked_for() {
    let fleet = fleet();
    bd(&fleet, "update gt-abc --description=more").success();
    bd(&fleet, "update gt-abc --add-label=gt:queued").success();
    let again = bd(&fleet, "update gt-abc --add-label=gt:queued");
    assert!(again.success().stdout.contains("nothing was changed"), "{again}");
    let shown = bd(&fleet, "show gt-abc --json").json();
    assert_eq!((&shown["description"], &shown["labels"][0]), (&"more".into(), &"gt:queued".into()));
    for line in
        ["ready --label gt:queued --json --limit=0", "list --label=gt:queued --json", "ready --label=gt:queued --json"]
    {
        assert_eq!(ids(&bd(&fleet, line).json()), ["gt-abc"], "{line}");
    }
    bd(&fleet, "update gt-abc --remove-label=gt:queued").success();
    assert_eq!(bd(&fleet, "list --label=gt:queued --json").json(), serde_json::json!([]));
    bd(&fleet, "close gt-abc").success();
    assert_eq!(bd(&fleet, "show gt-abc --json").json()["status"], "closed");
}

/// Seed 002: `bd activity --follow`.
#[test]
fn activity_is_followed_and_is_the_same_by_each_name() {
    let fleet = fleet();
    let all = fleet.town.gt(["activity"]).stdout;
    assert_eq!(bd(&fleet, "activity").stdout, all);
    assert_eq!(fleet.town.gt(["bead", "activity"]).stdout, all);
    let link = fleet.home("bd");
    let mut command: Command = fleet.town.command(link);
    let mut child = command
        .args(["activity", "--follow", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("its output is a pipe")).lines().map_while(Result::ok);
    fleet.town.gt(["close", "gt-abc"]).success();
    let is_close = |line: &String| line.contains("bead.closed") && line.contains("gt-abc");
    assert!(lines.into_iter().any(|line| is_close(&line)));
    child.kill().expect("it runs");
    child.wait().expect("it can be waited for");
}

#[test]
fn help_and_errors_speak_of_bd() {
    let fleet = fleet();
    let help = bd(&fleet, "--help");
    assert!(help.success().stdout.contains("Usage: bd "), "{help}");
    for line in ["create --help", "dep add --help", "ready --help", "activity --help", "explain --help", "help update"]
    {
        let help = bd(&fleet, line);
        let text = &help.success().stdout;
        assert!(text.contains("Usage: bd ") && text.contains("\n  bd "), "{help}");
        assert!(!text.contains("gt bead") && !text.contains("\n  gt "), "{help}");
    }
    snapshot!(session([
        bd(&fleet, "show gt-nono"),
        bd(&fleet, "dep add gt-abc"),
        bd(&fleet, "raedy"),
        bd(&fleet, "ready --limt 3"),
        bd(&fleet, "show gt-nono --json"),
    ]), @r#"
    $ bd show gt-id01
    ! error: there is no bead `gt-id01`
    ! hint: `bd list --all` shows what there is
    [exit 3]
    $ bd dep add gt-abc
    ! error: the following required arguments were not provided:
    !   <B>
    !
    ! Usage: bd dep add <A> <B>
    !
    ! For more information, try '--help'.
    [exit 2]
    $ bd raedy
    ! error: unrecognized subcommand 'raedy'
    !
    !   tip: a similar subcommand exists: 'ready'
    !
    ! Usage: bd [OPTIONS] <COMMAND>
    !
    ! For more information, try '--help'.
    [exit 2]
    $ bd ready --limt 3
    ! error: unexpected argument '--limt' found
    !
    !   tip: a similar argument exists: '--limit'
    !
    ! Usage: bd ready --limit <LIMIT>
    !
    ! For more information, try '--help'.
    [exit 2]
    $ bd show gt-id01 --json
    ! {"error":{"code":"not-found","hint":"`bd list --all` shows what there is","message":"there is no bead `gt-id01`"}}
    [exit 3]
    "#);
}

/// A copy is as good as a link, and another name is not it.
#[test]
fn only_the_name_decides() {
    let fleet = fleet();
    let copy = fleet.home("bin").join("bd");
    std::fs::create_dir(fleet.home("bin")).expect("the home can be written");
    std::fs::copy(GT, &copy).expect("the home can be written");
    let output = fleet.town.command(&copy).args(["show", "gt-abc", "--json"]).output().expect("it starts");
    assert!(output.status.success());
    let other = fleet.home("bd2");
    std::os::unix::fs::symlink(GT, &other).expect("the home can be written");
    let output = fleet.town.command(&other).args(["dep", "tree", "gt-abc"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2), "`gt dep` is no command");
}
