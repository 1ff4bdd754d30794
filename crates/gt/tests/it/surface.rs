//! What every command has in common: help, JSON, colours, pipes, completions, manual pages. // SPEC U1

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::sync::mpsc;

use serde_json::Value;

use crate::fleet::PATIENCE;
use crate::town::{GT, Town, session, snapshot};

/// Every command, found by asking each one for its subcommands.
fn commands(town: &Town) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let help = help(town, &path);
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names = listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        open.extend(names.map(|name| path.iter().cloned().chain([name.to_owned()]).collect()));
        found.push(path);
    }
    found.sort();
    found
}

fn help(town: &Town, path: &[String]) -> String {
    let answer = town.call(path.iter().map(String::as_str).chain(["--help"])).run();
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer}");
    answer.stdout
}

#[test]
fn every_command_has_help_with_examples() {
    let town = Town::unmade();
    let commands = commands(&town);
    assert!(commands.len() > 35, "only {} commands were found", commands.len());
    let mut all = String::new();
    for path in &commands {
        let help = help(&town, path);
        assert!(help.contains("\nExamples:\n"), "gt {} has no examples", path.join(" "));
        let short = town.call(path.iter().map(String::as_str).chain(["-h"])).run();
        assert!(short.success().stdout.contains("\nExamples:\n"), "{short}");
        all.extend(["$ gt ", &path.join(" "), if path.is_empty() { "" } else { " " }, "--help\n", &help, "\n"]);
    }
    snapshot!("help", all);
}

#[test]
fn no_line_of_help_needs_a_wide_terminal() {
    let town = Town::unmade();
    for path in commands(&town) {
        let too_wide =
            help(&town, &path).lines().filter(|line| line.chars().count() > 120).map(str::to_owned).collect::<Vec<_>>();
        assert!(too_wide.is_empty(), "gt {}: {too_wide:?}", path.join(" "));
    }
}

#[test]
fn completions_are_scripts() {
    let town = Town::unmade();
    for shell in ["bash", "zsh", "fish"] {
        let answer = town.gt(["completions", shell]);
        assert!(answer.success().stdout.contains("ready") && answer.stdout.len() > 1000, "{shell}");
    }
    let script = town.write("gt.bash", town.gt(["completions", "bash"]).stdout);
    let output = town.command("bash").arg("-n").arg(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    snapshot!(town.gt(["completions", "tcsh"]), @r"
    $ gt completions tcsh
    ! error: invalid value 'tcsh' for '<SHELL>'
    !   [possible values: bash, elvish, fish, powershell, zsh]
    !
    !   tip: a similar value exists: 'zsh'
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn there_is_a_manual_page_per_command() {
    let town = Town::unmade();
    town.gt(["man", "pages/man1"]).success();
    let pages: BTreeSet<String> = fs::read_dir(town.path("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for path in commands(&town) {
        let name = std::iter::once("gt".to_owned()).chain(path).collect::<Vec<_>>().join("-") + ".1";
        assert!(pages.contains(&name), "{name} is missing");
        assert!(town.read(&format!("pages/man1/{name}")).contains("Examples:"), "{name} has no examples");
    }
}

#[test]
fn colours_are_for_terminals_only() {
    let town = Town::with_rig();
    let blocker = town.create(&["Colourful"]);
    town.create(&["Waits", "--blocked-by", &blocker]);
    for arguments in [
        &["ready"][..],
        &["bead", "blocked"],
        &["show", &blocker],
        &["doctor"],
        &["activity"],
        &["show", "nope"],
        &["--help"],
    ] {
        let answer = town.call(arguments.iter().copied()).run();
        assert!(!answer.stdout.contains('\u{1b}') && !answer.stderr.contains('\u{1b}'), "{answer}");
    }
    let in_terminal = |no_color: Option<&str>| {
        let mut command = town.command("script");
        command.args(["-qec", &format!("{GT} ready"), "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
        no_color.map(|value| command.env("NO_COLOR", value));
        command.output()
    };
    let coloured = in_terminal(None).expect("there is `script`: `cargo xtask test` installs it");
    assert!(coloured.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&coloured.stdout));
    let plain = in_terminal(Some("1")).unwrap();
    assert!(!plain.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&plain.stdout));
}

#[test]
fn called_as_bd_it_speaks_beads() {
    let town = Town::with_rig();
    let bd = |arguments: &[&str]| town.call(arguments.iter().copied()).called_as("bd").run();
    let (a, b) = (town.create(&["A", "--label", "x"]), town.create(&["B"]));
    let answers = [
        bd(&["list", "--label=x", "--status=open"]),
        bd(&["create", "--ephemeral", "a wisp"]),
        bd(&["dep", "add", &a, &b, "--type=tracks"]),
        bd(&["close", &b]),
        bd(&["activity", "--since", "6"]),
        bd(&["explain", &a]),
    ];
    let ready = bd(&["ready", "--json", "--limit=0"]).json();
    assert_eq!(ready.as_array().unwrap().iter().map(|row| row["title"].clone()).collect::<Vec<_>>(), ["A"]);
    assert_eq!(bd(&["--version"]).code, 0);
    assert!(bd(&["--help"]).success().stdout.contains("dep"));
    snapshot!(session(answers), @r#"
    $ bd list --label=x --status=open
    ○ hq-id01  P2  task  A
    $ bd create --ephemeral 'a wisp'
    Created hq-id02 (a town bead): a wisp
    $ bd dep add hq-id01 hq-id03 --type=tracks
    hq-id01 is linked to hq-id03 (tracks).
    $ bd close hq-id03
    hq-id03 closed.
    $ bd activity --since 6
         7  [TIME]  bead.closed       hq-id03        tester  {"from":"open","reason":null,"title":"B","to":"closed"}
    $ bd explain hq-id01
    hq-id01 is ready:
      - it is a town bead, which is never given to an agent
    "#);
}

#[test]
fn called_as_bd_flags_may_come_before_the_word() {
    let town = Town::with_rig();
    let id = town.create(&["A"]);
    let root = town.root().display().to_string();
    let bd = |arguments: &[&str]| town.call(arguments.iter().copied()).called_as("bd").run();
    assert_eq!(bd(&["--json", "activity"]).stdout, town.gt(["activity", "--json"]).stdout);
    let explained = bd(&["--town", &root, "--actor=me", "--json", "explain", &id]);
    assert_eq!(explained.success().stdout, town.gt(["explain", &id, "--json"]).stdout);
    assert_eq!(bd(&["--actor", "activity", "--json", "list"]).json()[0]["title"], "A");
    assert_eq!(bd(&["--json", "--version"]).code, 0);
    assert_eq!(bd(&["--town"]).code, 2);
}

#[test]
fn the_demo_has_no_json() {
    let town = Town::unmade();
    let answer = town.gt(["demo", "--json"]);
    answer.assert_is_json_error();
    snapshot!(answer, @r#"
    $ gt demo --json
    ! {"error":{"code":"usage","hint":"type `gt demo`","message":"the demo is a show for people; it has no JSON"}}
    [exit 2]
    "#);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let lines: Vec<String> =
        (0..3000).map(|n| format!(r#"{{"id":"gt-{n}","title":"bead number {n} with a title"}}"#)).collect();
    let town = Town::holding(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    for command in
        ["bead list --limit 0", "bead list --limit 0 --json", "bead export", "activity", "config list", "--help"]
    {
        let script = format!("{{ \"$0\" {command}; echo $? >&2; }} | head -c 20");
        let output = town.command("sh").args(["-c", &script, GT]).output().unwrap();
        assert_eq!(
            (output.stdout.len(), String::from_utf8(output.stderr).unwrap().as_str()),
            (20, "0\n"),
            "gt {command}"
        );
    }
}

/// Calls that print, each with what it needs to have something to print.
const PRINTING: [&[&str]; 30] = [
    &["create", "new", "--parent", "gt-e1"],
    &["show", "gt-a1"],
    &["show", "gt-a1", "gt-b2"],
    &["ready"],
    &["ready", "--label", "nothing"],
    &["ready", "--claim"],
    &["bead", "list", "--all"],
    &["bead", "blocked"],
    &["bead", "update", "gt-a1", "--priority", "1"],
    &["bead", "dep", "add", "gt-a1", "gt-c3", "--type", "related"],
    &["bead", "dep", "tree", "gt-e1"],
    &["bead", "dep", "remove", "gt-a1", "gt-c3"],
    &["bead", "label", "add", "gt-a1", "x"],
    &["bead", "label", "list", "gt-a1"],
    &["bead", "comment", "add", "gt-a1", "x"],
    &["bead", "comment", "list", "gt-a1"],
    &["bead", "comment", "list", "gt-b2"],
    &["bead", "import", "-"],
    &["bead", "export", "--output", "x.jsonl"],
    &["explain", "gt-b2"],
    &["close", "gt-a1"],
    &["bead", "reopen", "gt-a1"],
    &["bead", "delete", "gt-c3"],
    &["rig", "list"],
    &["rig", "show", "shop"],
    &["rig", "park", "shop"],
    &["config", "list"],
    &["config", "set", "runtime", "process"],
    &["doctor"],
    &["init"],
];

fn graph() -> Town {
    Town::holding(&[
        r#"{"id":"gt-e1","title":"E","issue_type":"epic"}"#,
        r#"{"id":"gt-a1","title":"A","created_at":"2026-01-01T10:00:00.123456789+02:00","due_at":"2026-02-01T00:00:00-05:00"}"#,
        r#"{"id":"gt-b2","title":"B","dependencies":[{"depends_on_id":"gt-a1","type":"blocks","created_at":"2026-01-01T10:00:00+02:00"}]}"#,
        r#"{"id":"gt-c3","title":"C"}"#,
    ])
}

#[test]
fn every_command_that_prints_prints_json() {
    let town = graph();
    for arguments in PRINTING {
        let answer = town.call(arguments.iter().copied().chain(["--json"])).run();
        let json = answer.json();
        assert_eq!(answer.stdout.lines().count(), 1, "{answer}");
        assert_no_null_lists(&json, arguments);
    }
}

/// Fields that hold lists are lists, whatever is in them.
fn assert_no_null_lists(json: &Value, arguments: &[&str]) {
    const LISTS: [&str; 8] =
        ["labels", "dependencies", "comments", "blocked_by", "changed_beads", "became_ready", "reasons", "children"];
    match json {
        Value::Array(items) => items.iter().for_each(|item| assert_no_null_lists(item, arguments)),
        Value::Object(fields) => {
            for (name, value) in fields {
                assert!(!LISTS.contains(&name.as_str()) || value.is_array(), "gt {arguments:?}: {name} is {value}");
                assert_no_null_lists(value, arguments);
            }
        }
        _ => {}
    }
}

/// The row of the beads form, and what we add.
const ROW: &str = "id title description design acceptance_criteria notes spec_id status priority issue_type assignee owner \
    estimated_minutes created_at created_by updated_at started_at closed_at close_reason closed_by_session due_at defer_until \
    external_ref source_system metadata compaction_level compacted_at compacted_at_commit original_size labels dependencies \
    comments sender ephemeral no_history wisp_type pinned is_template bonded_from await_type await_id timeout waiters \
    source_formula source_location mol_type work_type event_kind actor target payload dependency_count dependent_count \
    comment_count parent rig blocked_by";

#[test]
fn a_row_has_every_field_and_its_times_are_utc() {
    let town = graph();
    let shown = town.gt(["show", "gt-b2", "--json"]).json();
    let listed = town.gt(["bead", "list", "--json"]).json();
    let ready = town.gt(["ready", "--json"]).json();
    let blocked = town.gt(["bead", "blocked", "--json"]).json();
    let rows = [&listed, &ready, &blocked].into_iter().flat_map(|list| list.as_array().unwrap()).chain([&shown]);
    for row in rows {
        for field in ROW.split_whitespace() {
            assert!(row.get(field).is_some(), "{} has no {field}", row["id"]);
        }
    }
    assert_eq!(shown["rig"], "shop");
    assert_eq!(shown["blocked_by"], serde_json::json!(["gt-a1"]));
    assert_eq!(shown["dependencies"][0]["created_at"], "2026-01-01T08:00:00Z");
    let first = town.gt(["show", "gt-a1", "--json"]).json();
    assert_eq!(first["created_at"], "2026-01-01T08:00:00.123456Z");
    assert_eq!(first["due_at"], "2026-02-01T05:00:00Z");
}

#[test]
fn times_are_utc_in_every_zone() {
    let town = graph();
    let answer = town.call(["create", "x", "--json", "--defer", "2026-12-01T09:00"]).env("TZ", "Asia/Tokyo").run();
    let row = answer.json();
    assert_eq!(row["defer_until"], "2026-12-01T00:00:00Z");
    assert!(row["created_at"].as_str().unwrap().ends_with('Z'));
    let shown = town.call(["show", "gt-a1"]).env("TZ", "Asia/Tokyo").run();
    assert!(shown.stdout.contains("2026-01-01T08:00:00.123456Z"), "{shown}");
}

/// Lines of a process that does not end, as they come; it is killed with the feed.
struct Feed {
    child: std::process::Child,
    lines: mpsc::Receiver<String>,
}

impl Feed {
    fn follow(town: &Town) -> Feed {
        let mut child = town.call(["activity", "--follow", "--json"]).spawn();
        let out = child.stdout.take().expect("standard output is a pipe");
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            lines.take_while(|line| sender.send(line.clone()).is_ok()).count()
        });
        Feed { child, lines }
    }

    /// Waits for the event of a bead with this title; everything before it is passed over.
    fn until_title(&self, title: &str) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no event of {title}"));
            let event: Value = serde_json::from_str(&line).expect("an event is JSON");
            if event["data"]["title"] == title {
                return event;
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

#[test]
fn a_feed_hears_of_every_change_by_another_process() {
    let town = Town::with_rig();
    town.create(&["before"]);
    let feed = Feed::follow(&town);
    town.create(&["while it starts"]);
    assert_eq!(feed.until_title("before")["seq"], 3);
    assert_eq!(feed.until_title("while it starts")["seq"], 4);
    for n in 0..20 {
        let title = format!("number {n}");
        town.create(&[&title]);
        let event = feed.until_title(&title);
        assert_eq!((event["type"].as_str(), event["seq"].as_i64()), (Some("bead.created"), Some(5 + n)));
    }
}

#[test]
fn a_feed_hears_of_a_writer_that_stays() {
    let town = Town::with_rig();
    let feed = Feed::follow(&town);
    town.create(&["first"]);
    feed.until_title("first");
    let store = rusqlite::Connection::open(town.store()).unwrap();
    store.busy_timeout(PATIENCE).unwrap();
    for n in 0..5 {
        let title = format!("late {n}");
        let data = serde_json::json!({ "title": title }).to_string();
        store.execute("INSERT INTO event (ts, type, actor, data) VALUES (0, 'bead.created', 'x', ?1)", [data]).unwrap();
        feed.until_title(&title);
    }
}

#[test]
fn the_version_is_told() {
    let town = Town::unmade();
    snapshot!(session([town.gt(["--version"]), town.gt(["-V"])]), @r"
    $ gt --version
    gt [VERSION]
    $ gt -V
    gt [VERSION]
    ");
    let mut nothing = String::new();
    let mut child = town.call(std::iter::empty::<&str>()).spawn();
    child.stdout.take().unwrap().read_to_string(&mut nothing).unwrap();
    assert_eq!((child.wait().unwrap().code(), nothing.as_str()), (Some(2), ""));
}

#[test]
fn a_dry_run_shows_what_would_be_done_and_changes_nothing() {
    let town = Town::holding(&[
        r#"{"id":"gt-a1","title":"A"}"#,
        r#"{"id":"gt-b2","title":"B","dependencies":[{"depends_on_id":"gt-a1","type":"blocks"}]}"#,
    ]);
    town.repository("other");
    let before = town.state();
    let answers = [
        town.gt(["create", "C", "--rig", "shop", "--dry-run"]),
        town.gt(["close", "gt-a1", "--dry-run"]),
        town.gt(["bead", "update", "gt-a1", "--title", "AA", "--dry-run"]),
        town.gt(["bead", "dep", "remove", "gt-b2", "gt-a1", "--dry-run"]),
        town.gt(["bead", "label", "add", "gt-a1", "x", "--dry-run"]),
        town.gt(["bead", "delete", "gt-a1", "--dry-run"]),
        town.gt(["ready", "--claim", "--dry-run"]),
        town.gt(["config", "set", "scheduler.max_polecats", "3", "--dry-run"]),
        town.gt(["rig", "add", "other", "other", "--dry-run"]),
        town.gt(["rig", "park", "shop", "--dry-run"]),
        town.gt(["init", "../elsewhere", "--dry-run"]),
        town.gt(["close", "gt-zz", "--dry-run"]),
    ];
    snapshot!(session(answers), @r#"
    $ gt create C --rig shop --dry-run
    Dry run, nothing is changed. This would happen:
    Would create gt-id01 in shop: C
    $ gt close gt-a1 --dry-run
    Dry run, nothing is changed. This would happen:
    gt-a1 would be closed.
    Would be ready: gt-b2
    $ gt bead update gt-a1 --title AA --dry-run
    Dry run, nothing is changed. This would happen:
    gt-a1 would be updated.
    $ gt bead dep remove gt-b2 gt-a1 --dry-run
    Dry run, nothing is changed. This would happen:
    gt-b2 no longer depends on gt-a1.
    Now ready: gt-b2
    $ gt bead label add gt-a1 x --dry-run
    Dry run, nothing is changed. This would happen:
    gt-a1: x
    $ gt bead delete gt-a1 --dry-run
    Dry run, nothing is changed. This would happen:
    gt-a1 would be deleted.
    Would be ready: gt-b2
    $ gt ready --claim --dry-run
    Dry run, nothing is changed. This would happen:
    tester has gt-a1: A
    $ gt config set scheduler.max_polecats 3 --dry-run
    Dry run, nothing is changed. This would happen:
    Set scheduler.max_polecats = 3
    $ gt rig add other other --dry-run
    Dry run, nothing is changed. This would happen:
    Registered rig other: [TOWN]/other, prefix ot, branch main.
    Merged work lands on branch main of [TOWN]/other. It has no origin, so nothing is pushed.
    $ gt rig park shop --dry-run
    Dry run, nothing is changed. This would happen:
    Rig shop is parked.
    $ gt init ../elsewhere --dry-run
    Dry run, nothing is changed. This would happen:
    Made a town at [HOME]/elsewhere.
    Next: `gt rig add NAME PATH` registers a repository, `gt create "…"` writes down work.
    $ gt close gt-zz --dry-run
    ! error: there is no bead `gt-zz`
    ! hint: `gt bead list --all` shows what there is
    [exit 3]
    "#);
    assert_eq!(town.state(), before);
    assert!(!town.home().join("elsewhere").exists());
    assert_eq!(town.gt(["rig", "list", "--json"]).json().as_array().map(Vec::len), Some(1));
}

#[test]
fn a_command_that_changes_nothing_has_no_use_for_a_dry_run() {
    let town = Town::holding(&[r#"{"id":"gt-a1","title":"A"}"#]);
    for words in [["status"].as_slice(), &["ready"], &["show", "gt-a1"], &["activity"], &["rig", "list"]] {
        for flags in [&[][..], &["--json"]] {
            let plain = town.call(words.iter().chain(flags).copied()).run();
            let dry = town.call(words.iter().chain(flags).chain(&["--dry-run"]).copied()).run();
            assert_eq!((&dry.stdout, dry.code), (&plain.stdout, plain.code), "{dry}{plain}");
        }
    }
    let dry = town.gt(["ready", "--claim", "--dry-run", "--json"]);
    assert!(dry.stdout.contains("\"dry_run\":true"), "{dry}");
}

#[test]
fn what_cannot_be_rehearsed_refuses_a_dry_run() {
    let town = Town::with_rig();
    for words in [["daemon", "run"].as_slice(), &["daemon", "run", "--wait"], &["demo"], &["chat"]] {
        let refused = town.call(words.iter().copied().chain(["--dry-run"])).run();
        assert_eq!(refused.code, 2, "{refused}");
        assert!(refused.stderr.contains("has no dry run"), "{refused}");
    }
}
