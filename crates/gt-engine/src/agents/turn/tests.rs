//! Tests of chat turns: what is started for a message, and what is read of what it left.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use gt_core::agent::Vendor;
use gt_store::Stamp;
use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::agents::PRESETS;
use crate::agents::launch::is_inherited;

const RUN: &str = "0198f3a0-1111-7abc-8def-0123456789ab";
const MESSAGE: &str = "-p it's \"so\"\n";

fn turn(config: &str, name: &str, resume: Option<&str>) -> Result<Launch, Unfit> {
    let dir = TempDir::with_prefix("turns-").expect("a temporary directory can be made");
    let (town, _) = Town::init(dir.path(), &Stamp::new(Timestamp::UNIX_EPOCH, "tester")).expect("it is empty");
    let config = Config::parse(config).expect("it is a config");
    let agent = find(&config, name).expect("it is known");
    let order = TurnOrder {
        run: RUN,
        session: "dm:ada",
        agent: name,
        message: MESSAGE,
        resume,
        dir: Path::new("/sessions/1"),
        log: Path::new("/logs/1.log"),
        errors: Path::new("/logs/1.err"),
        fire: None,
    };
    let launch = turn_launch(&agent, &order, &town)?;
    assert_eq!((launch.place, launch.stdin.as_deref()), (Place::Here, Some(MESSAGE)));
    Ok(launch)
}

fn argv(config: &str, name: &str, resume: Option<&str>) -> String {
    turn(config, name, resume).expect("it can be started").argv.join(" ")
}

fn env_of(config: &str, name: &str, resume: Option<&str>) -> BTreeMap<String, String> {
    turn(config, name, resume).expect("it can be started").env.into_iter().collect()
}

#[test]
fn every_preset_begins_a_conversation_and_goes_on_with_one() {
    let lines = PRESETS.iter().flat_map(|preset| [None, Some("ses_1")].map(|resume| argv("", preset.name, resume)));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    claude -p --output-format stream-json --verbose --permission-mode bypassPermissions --session-id 0198f3a0-1111-7abc-8def-0123456789ab
    claude -p --output-format stream-json --verbose --permission-mode bypassPermissions --resume ses_1
    codex exec --json -c allow_login_shell=false -s danger-full-access --skip-git-repo-check -
    codex exec --json -c allow_login_shell=false -s danger-full-access --skip-git-repo-check resume ses_1 -
    gemini --approval-mode yolo --skip-trust --output-format stream-json
    gemini --approval-mode yolo --skip-trust --output-format stream-json --resume ses_1
    opencode run --format json
    opencode run --format json --session ses_1
    sh
    sh
    ");
}

#[test]
fn what_cannot_be_the_id_of_a_conversation_begins_a_new_one() {
    let begun = argv("", "codex", None);
    let long = "x".repeat(201);
    for id in ["", "--last", "a b", "-", "id\n", "$(id)", &long] {
        assert_eq!(argv("", "codex", Some(id)), begun, "{id:?}");
    }
    assert_ne!(argv("", "codex", Some("0198f3a0-2222-7abc-8def-0123456789ab")), begun);
}

#[test]
fn a_turn_knows_its_session_and_nothing_of_a_bead() {
    let env = env_of("", "claude", Some("s-1"));
    let known = ["GT_RUN", "GT_SESSION", "GT_AGENT", "GT_CONVERSATION", "GT_ACTOR", "BD_ACTOR"].map(|name| &env[name]);
    assert_eq!(known, [RUN, "dm:ada", "claude", "s-1", "session:dm:ada", "session:dm:ada"]);
    assert!(["GT_BEAD", "GT_RIG", "GT_POLECAT", "GT_BRANCH"].iter().all(|name| !env.contains_key(*name)));
    assert!(env.contains_key("GT_TOWN") && env.contains_key("PATH"));
    assert_eq!(env["GIT_TERMINAL_PROMPT"], "0");
    let begun = env_of("[agents.mine]\nheadless = [\"turn\"]\nenv = { KEY = \"value\" }\n", "mine", None);
    assert_eq!((begun["GT_CONVERSATION"].as_str(), begun["KEY"].as_str()), ("", "value"));
}

#[test]
fn nothing_of_a_surrounding_run_is_passed_on() {
    let agent = find(&Config::default(), "claude").expect("it is known");
    let of_a_run = ["GT_BEAD", "GT_RIG", "GT_POLECAT", "GT_BRANCH", "GT_BASE_BRANCH", "GT_ACCOUNT", "GT_SESSION"];
    let misleading = ["GT_AGENT_SETTINGS", "GT_CONVERSATION", "GT_RUN", "CLAUDECODE", "TMUX", "NODE_OPTIONS"];
    for name in of_a_run.into_iter().chain(misleading) {
        assert!(!is_inherited(&agent, name), "{name}");
    }
    assert!(["HOME", "LANG", "GT_LANE_MAIN"].iter().all(|name| is_inherited(&agent, name)));
}

#[test]
fn no_agent_inherits_the_secrets_of_channels() {
    let text = "agents.echo.headless = [\"cat\"]
        channels.tg = { kind = \"telegram\", token = \"env:BOT\" }
        channels.hook = { kind = \"webhook\", url = \"http://localhost\", secret = \"env:HUSH\" }
        channels.open = { kind = \"webhook\", url = \"http://localhost\", secret = \"HOME\" }";
    let agent = find(&Config::parse(text).expect("it is a config"), "echo").expect("it is one");
    assert_eq!(["BOT", "HUSH", "HOME"].map(|name| is_inherited(&agent, name)), [false, false, true]);
}

#[test]
fn a_users_own_turn_is_started_as_it_stands() {
    let config = "[agents.mine]\nheadless = [\"bash\", \"turn.sh\", \"{conversation}\"]\nspeaks = \"codex\"\n\
        [agents.claude]\ncommand = [\"wrap\"]\nheadless = [\"wrap\", \"-p\"]\n\
        [agents.gemini]\nheadless = [\"mine\"]\n";
    assert_eq!(argv(config, "mine", Some("th-1")), "bash turn.sh {conversation}");
    assert_eq!(argv(config, "claude", Some("s-1")), "wrap -p");
    assert_eq!(argv(config, "gemini", None), "mine");
    let config = Config::parse(config).expect("it is a config");
    let mine = find_for_turns(&config, "mine").expect("it takes turns");
    assert_eq!((mine.speaks, mine.terminal), (Some(Vendor::Codex), None));
}

#[test]
fn who_has_only_a_command_takes_no_turns_and_is_told_what_to_set() {
    let config = "[agents.mine]\ncommand = [\"mine\"]\n[agents.claude]\ncommand = [\"wrap\", \"claude\"]\n";
    for name in ["mine", "claude"] {
        let told = format!("agent `{name}` takes no chat turns; set `agents.{name}.headless`");
        assert_eq!(turn(config, name, None), Err(Unfit::Agent(told.clone())));
        assert_eq!(find_for_turns(&Config::parse(config).expect("it is a config"), name), Err(told));
    }
    let unknown = find_for_turns(&Config::default(), "no.body");
    assert_eq!(unknown, Err("agent `no.body` takes no chat turns; set `agents.\"no.body\".headless`".to_owned()));
}

#[test]
fn a_message_to_the_shell_is_its_script() {
    let launch = turn("", "shell", None).expect("it can be started");
    let mut shell = Command::new(&launch.argv[0]);
    shell.args(&launch.argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().expect("there is a shell");
    child.stdin.take().expect("it is piped").write_all(b"x='a b'\necho \"$x\"; exit 3\n").expect("it listens");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), b"a b\n".as_slice()));
}

#[test]
fn a_context_window_is_as_the_config_says_or_the_presets() {
    let config = "[agents.claude]\ncontext_window = 1000000\n[agents.codex]\ncontext_window = 0\n\
        [agents.mine]\nspeaks = \"claude\"\ncontext_window = 32000\n[agents.other]\nspeaks = \"claude\"\n";
    let window = |config: &str, name: &str| context_window(&Config::parse(config).expect("it is a config"), name);
    let defaults = PRESETS.map(|preset| window("", preset.name));
    assert_eq!(defaults, [Some(200_000), Some(272_000), Some(1_000_000), Some(200_000), None]);
    let set = ["claude", "codex", "mine", "other", "no body"].map(|name| window(config, name));
    assert_eq!(set, [Some(1_000_000), None, Some(32_000), None, None]);
}

fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    fs::write(&path, bytes).expect("it can be written");
    (dir, path)
}

#[test]
fn a_plain_reply_is_what_was_printed_without_the_last_newlines() {
    let cases: [(&[u8], &str); 5] = [
        (b"", ""),
        (b"\n\r\n", ""),
        (b"  one\n\ntwo \r\n\n", "  one\n\ntwo "),
        (b"caf\xc3\xa9\xff", "café\u{FFFD}"),
        (b"{\"type\":\"result\"}\n", "{\"type\":\"result\"}"),
    ];
    for (bytes, expected) in cases {
        let (_dir, path) = file(bytes);
        assert_eq!(plain_reply(&path).expect("it can be read"), expected);
    }
    let (dir, path) = file(b"");
    assert!(plain_reply(&path.with_extension("none")).is_err());
    assert!(plain_reply(dir.path()).is_err(), "a directory is no file");
}

#[test]
fn a_plain_reply_without_end_is_cut_between_characters() {
    for shift in 0..3 {
        let (_dir, path) = file((" ".repeat(shift) + &"€".repeat(REPLY_BYTES_MAX)).as_bytes());
        let reply = plain_reply(&path).expect("it can be read");
        let (kept, note) = reply.split_once("\n\n").expect("there is a note");
        assert!(kept.len() <= REPLY_BYTES_MAX && kept.len() > REPLY_BYTES_MAX - 3, "{} bytes", kept.len());
        assert!(kept.trim_start().chars().all(|c| c == '€') && note.starts_with("[cut here"));
    }
    let (_dir, path) = file(&vec![b'x'; REPLY_BYTES_MAX]);
    assert_eq!(plain_reply(&path).expect("it can be read").len(), REPLY_BYTES_MAX, "what just fits is whole");
}

#[test]
fn a_reply_is_what_a_stream_tells_and_else_what_was_printed() {
    let (_dir, log) = file(b"Plain words.\n");
    let heard = |lines: &[&str]| {
        let mut told = Told::default();
        for line in lines {
            told.hear_line(Vendor::Codex, line, Timestamp::UNIX_EPOCH);
        }
        reply(Some(&told), &log).expect("it can be read")
    };
    let begun = r#"{"type":"thread.started","thread_id":"th"}"#;
    let said = r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Told words."}}"#;
    assert_eq!(heard(&[begun, said]), "Told words.");
    assert_eq!(heard(&[begun]), "", "it speaks, and has said nothing");
    assert_eq!(heard(&["Plain words."]), "Plain words.");
    assert_eq!(reply(None, &log).expect("it can be read"), "Plain words.");
}

#[test]
fn the_last_complaint_is_one_short_line_without_colours() {
    let kept = |bytes: &[u8]| {
        let (_dir, path) = file(bytes);
        last_error(&path)
    };
    assert_eq!(last_error(Path::new("/no/such/file")), None);
    assert_eq!(kept(b""), None);
    assert_eq!(kept(b" \n\t\n"), None);
    assert_eq!(kept(b"warning: so\n  fatal: it\tis so \n\n").as_deref(), Some("fatal: it is so"));
    assert_eq!(
        kept(b"error: no\nerror: it is closed\nhint: open it\n").as_deref(),
        Some("it is closed"),
        "not the hint"
    );
    assert_eq!(kept(b"\x1b[91m\x1b[1mError: \x1b[0mNo \xff").as_deref(), Some("Error: No \u{FFFD}"));
    assert_eq!(kept(b"Error: it broke\n\nStack backtrace:\n   0: <unknown>\n").as_deref(), Some("Error: it broke"));
    assert_eq!(kept(&b"long ".repeat(100_000)).expect("there is one").chars().count(), ERROR_CHARS_MAX);
}

#[test]
fn a_conversation_that_is_gone_is_noticed_wherever_it_is_said() {
    let (_dir, silent) = file(b"");
    assert!(!has_lost_conversation(None, &silent));
    let (_dir, errors) = file(b"\x1b[91m\x1b[1mError: \x1b[0mSession not found\n\nStack backtrace:\n  0: <unknown>\n");
    assert!(has_lost_conversation(None, &errors));
    let line = r#"{"type":"result","is_error":true,"errors":["No conversation found with session ID: 1"]}"#;
    let mut told = Told::default();
    told.hear_line(Vendor::Claude, line, Timestamp::UNIX_EPOCH);
    assert!(has_lost_conversation(Some(&told), &silent));
}
