//! How the built-in agents are started, with programs of their names that note what they were given.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::fleet::Fleet;
use crate::town::{session, snapshot};

/// What a surrounding editor, agent or terminal would tell them, and is none of their business.
const SURROUNDING: [&str; 4] = ["NODE_OPTIONS", "CLAUDECODE", "TMUX", "TMUX_PANE"];

/// Puts a program of this name on the agent's PATH, which notes its arguments, input and environment, and ends its bead.
fn install(fleet: &Fleet, name: &str) {
    let bin = fleet.home("bin");
    fs::create_dir_all(&bin).expect("the home can be written");
    let script = format!(
        "#!/bin/sh\nfor word; do echo \"arg $word\"; done > \"$HOME/{name}.args\"\ncat > \"$HOME/{name}.in\"\n\
         env > \"$HOME/{name}.env\"\ngt done\n"
    );
    let path = bin.join(name);
    fs::write(&path, script).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    let gt = std::path::Path::new(crate::town::GT).parent().expect("it is in a directory").display().to_string();
    let path = format!("{}:{gt}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    fleet.set(&format!("agents.{name}.env"), &format!("{{ PATH = \"{path}\" }}"));
}

fn noted(fleet: &Fleet, name: &str, what: &str) -> String {
    fs::read_to_string(fleet.home(&format!("{name}.{what}"))).expect("it was noted")
}

#[test]
fn each_is_told_how_to_speak_and_never_waits_for_an_answer() {
    let fleet = Fleet::new("true");
    let mut shown = Vec::new();
    for (name, bead) in [("claude", "gt-a"), ("codex", "gt-b"), ("gemini", "gt-c"), ("opencode", "gt-d")] {
        install(&fleet, name);
        fleet.hold(&[bead]);
        let call = fleet.town.call(["sling", bead, "--agent", name]);
        let call = SURROUNDING.iter().fold(call, |call, variable| call.env(variable, "1"));
        call.run().success();
        fleet.until_done(&[bead.to_owned()]);
        let given = noted(&fleet, name, "in");
        let args = noted(&fleet, name, "args");
        let (text, how) =
            if given.is_empty() { (args.clone(), "as an argument") } else { (given, "on standard input") };
        assert!(text.contains(&format!("Your work is {bead}: Do {bead}")), "{name}: {text}");
        let flags: Vec<&str> = args
            .lines()
            .filter_map(|line| line.strip_prefix("arg "))
            .take_while(|word| !word.starts_with("You are"))
            .collect();
        shown.push(format!("{name} {}, the assignment {how}", flags.join(" ")));
        let env = noted(&fleet, name, "env");
        let is_inherited = |variable: &&&str| env.lines().any(|line| line.split('=').next() == Some(**variable));
        assert_eq!(SURROUNDING.iter().find(is_inherited), None, "{name}");
    }
    snapshot!(shown.join("\n"), @r"
    claude -p --output-format stream-json --verbose --session-id [RUN] --permission-mode bypassPermissions, the assignment on standard input
    codex exec --json -c allow_login_shell=false -s danger-full-access --skip-git-repo-check -, the assignment on standard input
    gemini --approval-mode yolo --skip-trust --output-format stream-json -p, the assignment as an argument
    opencode run --format json, the assignment as an argument
    ");
    let row = fs::read_to_string(fleet.home("claude.env")).expect("it was noted");
    let settings = row.lines().find_map(|line| line.strip_prefix("GT_AGENT_SETTINGS=")).expect("it knows its hooks");
    let mode = fs::metadata(settings).expect("the file is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let hooks: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(settings).expect("it can be read")).expect("JSON");
    let command = hooks["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().expect("a command");
    assert!(command.ends_with("/gt' agent-event claude"), "{command}");
}

#[test]
fn an_assignment_that_is_too_long_for_an_argument_is_read_by_the_agent() {
    let fleet = Fleet::new("true");
    install(&fleet, "gemini");
    let long = "x".repeat(200 * 1024);
    fleet.hold_lines(&[&format!(r#"{{"id":"gt-a","title":"Do gt-a","description":"{long}"}}"#)]);
    fleet.town.gt(["sling", "gt-a", "--agent", "gemini"]).success();
    fleet.until_done(&["gt-a".to_owned()]);
    assert!(noted(&fleet, "gemini", "args").contains("Run `gt prime` first"));
}

#[test]
fn a_shell_without_a_terminal_says_what_it_needs() {
    let fleet = Fleet::new("true");
    fleet.hold(&["gt-a"]);
    let answers = [fleet.town.gt(["sling", "gt-a", "--agent", "shell"]), fleet.town.gt(["explain", "gt-a"])];
    snapshot!(session(answers), @r"
    $ gt sling gt-a --agent shell
    ✓ Scheduled gt-a → shop (context: gt-wisp-id01)
        agent `shell` needs a terminal; set `agents.shell.command`, or `gt config set runtime tmux`; next try in [SPAN], or at once with `gt scheduler resume`
    Tracked by convoy hq-cv-id02.
    $ gt explain gt-a
    gt-a is scheduled:
      - it is number 1 of 1 in the queue
      - agent `shell` needs a terminal; set `agents.shell.command`, or `gt config set runtime tmux`; next try in [SPAN], or at once with `gt scheduler resume`
    ");
}
