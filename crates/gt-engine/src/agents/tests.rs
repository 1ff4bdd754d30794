//! Tests of what is started, in a terminal and without one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use gt_core::context::SlingFields;
use gt_core::rig::{Rig, RigState};
use gt_runtime::Launch;
use gt_store::{Assignment, Polecat, Stamp};
use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::town::Town;

const RUN: &str = "0198f3a0-1111-7abc-8def-0123456789ab";

fn assignment(agent: &str) -> Assignment {
    let polecat = Polecat {
        rig: "shop".to_owned(),
        name: "Toast".to_owned(),
        run: None,
        last_run: None,
        bead: None,
        worktree: None,
        branch: None,
        kept: None,
        since: Timestamp::UNIX_EPOCH,
    };
    let rig = Rig {
        name: "shop".to_owned(),
        prefix: "gt".to_owned(),
        path: "/rigs/shop".to_owned(),
        url: None,
        branch: "main".to_owned(),
        state: RigState::Active,
    };
    Assignment {
        run: RUN.to_owned(),
        context: "gt-wisp-1".to_owned(),
        bead: "gt-1".to_owned(),
        title: "Mend it".to_owned(),
        description: None,
        acceptance: None,
        rig,
        polecat,
        agent: agent.to_owned(),
        fields: SlingFields::default(),
        attempts: 0,
        left_branch: None,
        left_patch: None,
        handoff: None,
        rework: None,
        step: None,
        claimed_at: Timestamp::UNIX_EPOCH,
    }
}

/// What is started for an agent under this config.
fn launched(config: &str, name: &str, in_terminal: bool) -> (TempDir, Town, Result<Launch, Unfit>) {
    let dir = TempDir::with_prefix("agents-").expect("a temporary directory can be made");
    let (town, _) = Town::init(dir.path(), &Stamp::new(Timestamp::UNIX_EPOCH, "tester")).expect("it is empty");
    fs::create_dir_all(town.logs_dir()).expect("the town can be written");
    let config = Config::parse(config).expect("it is a config");
    let agent = find(&config, name).expect("it is known");
    let log = town.log_path(RUN);
    let place = Workplace { dir: Path::new("/trees/it's"), branch: None, log: &log, in_terminal };
    let launch = launch(&agent, &assignment(name), &place, &town, None);
    (dir, town, launch)
}

/// The command line with what differs from machine to machine masked.
fn argv(config: &str, name: &str, in_terminal: bool) -> String {
    let (_dir, town, launch) = launched(config, name, in_terminal);
    let launch = launch.expect("it can be started");
    let gt = std::env::current_exe().expect("we are a program").display().to_string();
    let root = town.root().display().to_string();
    let masked = |word: &String| {
        let is_assignment = word.starts_with("You are Toast");
        if is_assignment { "[ASSIGNMENT]".to_owned() } else { word.replace(&gt, "[GT]").replace(&root, "[TOWN]") }
    };
    let stdin = launch.stdin.map(|_| " < [ASSIGNMENT]").unwrap_or_default();
    launch.argv.iter().map(masked).collect::<Vec<_>>().join(" ") + stdin
}

#[test]
fn in_a_terminal_each_is_given_its_hooks_on_its_command_line() {
    let lines: Vec<String> = PRESETS.iter().map(|preset| argv("", preset.name, true)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    claude --session-id 0198f3a0-1111-7abc-8def-0123456789ab --settings [TOWN]/.gt/logs/0198f3a0-1111-7abc-8def-0123456789ab.json --permission-mode bypassPermissions [ASSIGNMENT]
    codex --no-daemon -c allow_login_shell=false -a never -s danger-full-access --dangerously-bypass-hook-trust -c projects={"/trees/it's"={trust_level="trusted"},"/rigs/shop"={trust_level="trusted"}} -c hooks.SessionStart=[{hooks=[{type="command",command="'[GT]' agent-event codex",timeout=5}]}] -c hooks.UserPromptSubmit=[{hooks=[{type="command",command="'[GT]' agent-event codex",timeout=5}]}] -c hooks.PreToolUse=[{hooks=[{type="command",command="'[GT]' agent-event codex",timeout=5}]}] -c hooks.PermissionRequest=[{hooks=[{type="command",command="'[GT]' agent-event codex",timeout=5}]}] -c hooks.PostToolUse=[{hooks=[{type="command",command="'[GT]' agent-event codex",timeout=5}]}] -c hooks.Stop=[{hooks=[{type="command",command="'[GT]' agent-event codex",timeout=5}]}] -c hooks.SubagentStop=[{hooks=[{type="command",command="'[GT]' agent-event codex",timeout=5}]}] [ASSIGNMENT]
    gemini --approval-mode yolo --skip-trust -i [ASSIGNMENT]
    opencode --prompt [ASSIGNMENT]
    sh -c gt prime; exec "${SHELL:-sh}"
    "#);
}

#[test]
fn the_files_of_a_run_are_ours_alone_and_lie_beside_its_log() {
    let (_dir, town, launch) = launched("", "claude", true);
    launch.expect("it can be started");
    for path in [town.agent_settings_path(RUN), town.events_path(RUN)] {
        let mode = fs::metadata(&path).expect("it was written").permissions().mode();
        assert_eq!((mode & 0o777, path.parent()), (0o600, Some(town.logs_dir().as_path())));
    }
    let (_dir, town, launch) = launched("", "claude", false);
    launch.expect("it can be started");
    assert!(!town.events_path(RUN).exists(), "what it prints is its stream");
}

#[test]
fn a_command_of_the_users_is_started_as_it_is_and_keeps_its_language() {
    let config = "[agents.claude]\ncommand = [\"wrap\", \"claude\"]\n[agents.mine]\ncommand = [\"mine\"]\nspeaks = \"codex\"\nprompt = \"stdin\"\n[agents.mute]\ncommand = [\"mute\"]\nprompt = \"none\"\n";
    let lines = [
        argv(config, "claude", true),
        argv(config, "claude", false),
        argv(config, "mine", true),
        argv(config, "mute", false),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    wrap claude [ASSIGNMENT]
    wrap claude [ASSIGNMENT]
    mine < [ASSIGNMENT]
    mute
    ");
    let config = Config::parse(config).expect("it is a config");
    assert_eq!(speaks(&config, "claude"), Some(Vendor::Claude));
    assert_eq!(speaks(&config, "mine"), Some(Vendor::Codex));
    assert_eq!((speaks(&config, "mute"), speaks(&config, "shell")), (None, None));
    let silent = Config::parse("[agents.claude]\nspeaks = \"none\"\n").expect("it is a config");
    assert_eq!(speaks(&silent, "claude"), None);
}

#[test]
fn who_only_takes_chat_turns_is_given_no_bead() {
    let config = "[agents.chatty]\nheadless = [\"bash\", \"turn.sh\"]\n";
    for in_terminal in [true, false] {
        let (_dir, _town, launch) = launched(config, "chatty", in_terminal);
        let told = "agent `chatty` has no command; set `agents.chatty.command`".to_owned();
        assert_eq!(launch, Err(Unfit::Agent(told)));
    }
}

#[test]
fn a_users_variables_win_over_the_presets() {
    let config = "[agents.opencode]\nenv = { OPENCODE_CONFIG_CONTENT = \"mine\" }\n";
    let (_dir, _town, launch) = launched(config, "opencode", false);
    let env: BTreeMap<String, String> = launch.expect("it can be started").env.into_iter().collect();
    assert_eq!(env.get("OPENCODE_CONFIG_CONTENT").map(String::as_str), Some("mine"));
}

#[test]
fn every_preset_that_speaks_runs_without_a_terminal_too() {
    for preset in PRESETS {
        let (_dir, _town, launch) = launched("", preset.name, false);
        assert_eq!(launch.is_ok(), preset.speaks.is_some(), "{}", preset.name);
        assert!(!preset.install.is_empty() && !preset.program().is_empty());
    }
}
