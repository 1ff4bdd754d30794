//! The agents' own command lines: where they are, how they are called, and what they need to reach the scripted model.
//!
//! All of it is what a user would write into `town.toml`. Nothing is read from or written to the user's own homes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Names the directory with the agents' programs; `cargo xtask test --with-agents` sets it.
pub(crate) const VARIABLE: &str = "GT_TEST_AGENTS";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cli {
    Claude,
    Codex,
}

/// What an agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    All,
    /// Only what harms nothing; for the rest it has to ask.
    Few,
    /// Not even to be in this directory, as in a home where nobody has worked yet.
    None,
}

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// As a plain process that prints lines of JSON.
    Process,
    /// On a screen of its own, telling what it does through hooks.
    Terminal,
}

/// What the command lines depend on.
pub(crate) struct Setup<'a> {
    pub(crate) programs: &'a Path,
    pub(crate) rights: Rights,
    pub(crate) place: Place,
    pub(crate) home: &'a Path,
    pub(crate) town: &'a Path,
    pub(crate) url: &'a str,
}

/// Runs an agent on a screen of its own, as long as it lives. The server has the environment of its first client.
const IN_TERMINAL: &str = r#"tmux -S "$HOME/$GT_BEAD.tmux" -f /dev/null new-session -d -x 120 -y 40 -c "$PWD" "$@"
tmux -S "$HOME/$GT_BEAD.tmux" wait-for end
"#;

/// Keeps what an agent tells, one line each.
const HOOK: &str = r#"{ tr -d '\n'; echo; } >> "$HOME/$GT_BEAD.hooks""#;

const CLAUDE_HOOKS: [&str; 8] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

const CODEX_HOOKS: [&str; 6] =
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop"];

/// The directory with the programs, or nothing where the tests are to be skipped.
pub(crate) fn programs() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|dir| !dir.is_empty());
    if named.is_none() {
        eprintln!("skipped: {VARIABLE} is not set; `cargo xtask test --with-agents` installs the agents");
    }
    named.map(PathBuf::from)
}

impl Cli {
    pub(crate) const ALL: [Cli; 2] = [Cli::Claude, Cli::Codex];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Cli::Claude => "claude",
            Cli::Codex => "codex",
        }
    }

    /// Writes the files that the agent needs, and returns its section of `town.toml`.
    pub(crate) fn section(self, setup: &Setup<'_>) -> String {
        let own = setup.home.join(self.name());
        fs::create_dir_all(&own).expect("the home can be written");
        for (name, text) in self.files(setup) {
            fs::write(own.join(name), text).expect("the home can be written");
        }
        let program = setup.programs.join(self.name()).display().to_string();
        let (mut command, prompt) = match setup.place {
            Place::Process => (vec![program], "stdin"),
            Place::Terminal => (vec!["sh".to_owned(), in_terminal(setup.home), program], "arg"),
        };
        command.extend(self.arguments(setup, &own));
        let env = self.variables(&own, setup.url);
        let env: Vec<String> = env.into_iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
        let (name, env) = (self.name(), env.join("\n"));
        format!("\n[agents.{name}]\nprompt = {prompt:?}\ncommand = {command:?}\n\n[agents.{name}.env]\n{env}\n")
    }

    fn arguments(self, setup: &Setup<'_>, own: &Path) -> Vec<String> {
        match self {
            Cli::Claude => claude_arguments(setup, own),
            Cli::Codex => codex_arguments(setup),
        }
    }

    fn files(self, setup: &Setup<'_>) -> Vec<(&'static str, String)> {
        match self {
            Cli::Claude => {
                let hooks: Value = CLAUDE_HOOKS.iter().map(|event| ((*event).to_owned(), hook())).collect();
                let settings = json!({ "hooks": hooks, "skipDangerousModePermissionPrompt": true });
                vec![("settings.json", settings.to_string()), (".claude.json", claude_state(setup))]
            }
            Cli::Codex => vec![("config.toml", codex_config(setup.url))],
        }
    }

    fn variables(self, own: &Path, url: &str) -> Vec<(&'static str, String)> {
        let own = own.display().to_string();
        match self {
            // A token, not a key: only then does Claude Code tell when a limit ends.
            Cli::Claude => vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("CLAUDE_CODE_OAUTH_TOKEN", "not-a-real-token".to_owned()),
                ("CLAUDE_CONFIG_DIR", own),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                // By itself it would try for minutes.
                ("CLAUDE_CODE_MAX_RETRIES", "2".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
                // Else it refuses to do anything unasked for root, as whom tests in a container run.
                ("IS_SANDBOX", "1".to_owned()),
            ],
            Cli::Codex => vec![("CODEX_HOME", own), ("OPENAI_API_KEY", "not-a-real-key".to_owned())],
        }
    }
}

fn claude_arguments(setup: &Setup<'_>, own: &Path) -> Vec<String> {
    let mode = if setup.rights == Rights::All { "bypassPermissions" } else { "default" };
    let settings = own.join("settings.json").display().to_string();
    let first = match setup.place {
        Place::Process => words(&["-p", "--output-format", "stream-json", "--verbose"]),
        Place::Terminal => words(&["--settings", &settings]),
    };
    [first, words(&["--permission-mode", mode])].concat()
}

fn codex_arguments(setup: &Setup<'_>) -> Vec<String> {
    let (asks, sandbox) = match setup.rights {
        Rights::All => ("never", "danger-full-access"),
        Rights::Few | Rights::None => ("on-request", "workspace-write"),
    };
    // A login shell would put the system's PATH in place of ours, and `gt` would not be found.
    let last = words(&["-c", "allow_login_shell=false", "-s", sandbox]);
    match setup.place {
        Place::Process => [words(&["exec", "--json"]), last, words(&["-"])].concat(),
        // With its background server, commands of one run would get the environment of another.
        Place::Terminal => {
            let first = words(&["--no-daemon", "--dangerously-bypass-hook-trust", "-a", asks]);
            [first, codex_overrides(setup), last].concat()
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn in_terminal(home: &Path) -> String {
    let script = home.join("in-terminal.sh");
    fs::write(&script, IN_TERMINAL).expect("the home can be written");
    script.display().to_string()
}

fn hook() -> Value {
    json!([{ "hooks": [{ "type": "command", "command": HOOK, "timeout": 5 }] }])
}

/// As after a first start by hand: the theme chosen and, unless nobody may, the town trusted with all below it.
fn claude_state(setup: &Setup<'_>) -> String {
    let town = setup.town.display().to_string();
    let trusted = setup.rights != Rights::None;
    let state = json!({ "hasCompletedOnboarding": true, "theme": "dark",
                        "projects": { town: { "hasTrustDialogAccepted": trusted } } });
    state.to_string()
}

fn codex_config(url: &str) -> String {
    format!(
        "model = \"gpt-5-codex\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\n\
         base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n\
         request_max_retries = 2\nstream_max_retries = 2\n"
    )
}

/// Hooks, and trust in the repository, which counts for its worktrees.
fn codex_overrides(setup: &Setup<'_>) -> Vec<String> {
    let repository = setup.town.join("shop").display().to_string();
    let trust = format!("projects={{{repository:?}={{trust_level=\"trusted\"}}}}");
    let hook = format!("[{{hooks=[{{type=\"command\",command={HOOK:?},timeout=5}}]}}]");
    let hooks = CODEX_HOOKS.iter().map(|event| format!("hooks.{event}={hook}"));
    let trust = (setup.rights != Rights::None).then_some(trust);
    hooks.chain(trust).flat_map(|setting| ["-c".to_owned(), setting]).collect()
}

#[test]
fn where_the_variable_is_set_the_agents_are_there() {
    let Some(dir) = programs() else { return };
    for cli in Cli::ALL {
        let program = dir.join(cli.name());
        assert!(program.is_file(), "{VARIABLE} is set, but there is no {}", program.display());
    }
}
