//! The agents' own programs: where they are, and what a user has set up so that they reach the scripted model.
//!
//! How they are started is the product's business: here are only the variables and files of somebody who uses them, and the
//! command lines of somebody who wants to be asked. Nothing is read from or written to the user's own homes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

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
    /// As the presets are.
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

impl Place {
    pub(crate) fn runtime(self) -> &'static str {
        match self {
            Place::Process => "process",
            Place::Terminal => "tmux",
        }
    }
}

/// What the agents' sections and files depend on.
pub(crate) struct Setup<'a> {
    pub(crate) rights: Rights,
    pub(crate) place: Place,
    pub(crate) home: &'a Path,
    pub(crate) town: &'a Path,
    pub(crate) url: &'a str,
}

/// The directory with the programs. These tests are built only where the agents are asked for, so they have to be there.
pub(crate) fn programs() -> PathBuf {
    named(VARIABLE)
}

/// What a variable names that `cargo xtask test --with-agents` sets.
pub(crate) fn named(variable: &str) -> PathBuf {
    let named = std::env::var_os(variable).filter(|path| !path.is_empty());
    let named = named.unwrap_or_else(|| panic!("{variable} is not set: run `cargo xtask test --with-agents`"));
    PathBuf::from(named)
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
        let (file, text) = match self {
            Cli::Claude => (".claude.json", claude_state(setup)),
            Cli::Codex => ("config.toml", codex_config(setup.url)),
        };
        fs::write(own.join(file), text).expect("the home can be written");
        let env = self.variables(&own, setup.url);
        let env: Vec<String> = env.into_iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
        let (name, env) = (self.name(), env.join("\n"));
        format!("{}\n[agents.{name}.env]\n{env}\n", self.own_command(setup))
    }

    /// The command of a user who wants something else than the preset.
    fn own_command(self, setup: &Setup<'_>) -> String {
        let command: &[&str] = match (self, setup.place, setup.rights) {
            (_, _, Rights::All) | (Cli::Claude, _, Rights::None) => return String::new(),
            (Cli::Claude, Place::Process, Rights::Few) => {
                &["claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "default"]
            }
            (Cli::Claude, Place::Terminal, Rights::Few) => {
                &["claude", "--settings", "{settings}", "--permission-mode", "default"]
            }
            (Cli::Codex, Place::Process, _) => {
                &["codex", "exec", "--json", "-c", "allow_login_shell=false", "-s", "workspace-write", "-"]
            }
            (Cli::Codex, Place::Terminal, Rights::Few) => &[
                "codex",
                "--no-daemon",
                "-c",
                "allow_login_shell=false",
                "-a",
                "on-request",
                "-s",
                "workspace-write",
                "--dangerously-bypass-hook-trust",
                "{codex-trust}",
                "{codex-hooks}",
            ],
            (Cli::Codex, Place::Terminal, Rights::None) => &[
                "codex",
                "--no-daemon",
                "-c",
                "allow_login_shell=false",
                "-s",
                "danger-full-access",
                "--dangerously-bypass-hook-trust",
                "{codex-hooks}",
            ],
        };
        let prompt = if setup.place == Place::Process { "stdin" } else { "arg" };
        let name = self.name();
        format!("\n[agents.{name}]\ncommand = {command:?}\nprompt = {prompt:?}\nspeaks = {name:?}\n")
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

#[test]
fn where_the_variable_is_set_the_agents_are_there() {
    let dir = programs();
    for cli in Cli::ALL {
        let program = dir.join(cli.name());
        assert!(program.is_file(), "{VARIABLE} is set, but there is no {}", program.display());
    }
}
