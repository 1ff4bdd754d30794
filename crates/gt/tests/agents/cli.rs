//! The agents' own command lines: where they are, how they are called, and what they need to reach the scripted model.
//!
//! All of it is what a user would write into `town.toml`. Nothing is read from or written to the user's own homes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

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
    /// Only what harms nothing; for the rest it would have to ask.
    Few,
}

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

    /// Its section of `town.toml`: headless, told its assignment on standard input, with files of its own in `home`.
    pub(crate) fn section(self, programs: &Path, rights: Rights, home: &Path, url: &str) -> String {
        let own = home.join(self.name());
        fs::create_dir_all(&own).expect("the home can be written");
        if self == Cli::Codex {
            fs::write(own.join("config.toml"), codex_config(url)).expect("the home can be written");
        }
        let program = programs.join(self.name());
        let mut section = format!("\n[agents.{}]\nprompt = \"stdin\"\ncommand = [{program:?}", self.name());
        for word in self.arguments(rights) {
            write!(section, ", {word:?}").expect("writing to a string cannot fail");
        }
        section.push_str("]\n\n");
        section.extend([format!("[agents.{}.env]\n", self.name())]);
        for (name, value) in self.variables(&own, url) {
            writeln!(section, "{name} = {value:?}").expect("writing to a string cannot fail");
        }
        section
    }

    fn arguments(self, rights: Rights) -> &'static [&'static str] {
        match (self, rights) {
            (Cli::Claude, Rights::All) => {
                &["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "bypassPermissions"]
            }
            (Cli::Claude, Rights::Few) => {
                &["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "default"]
            }
            // A login shell would put the system's PATH in place of ours, and `gt` would not be found.
            (Cli::Codex, Rights::All) => {
                &["exec", "--json", "-c", "allow_login_shell=false", "-s", "danger-full-access", "-"]
            }
            (Cli::Codex, Rights::Few) => {
                &["exec", "--json", "-c", "allow_login_shell=false", "-s", "workspace-write", "-"]
            }
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
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
                // Else it refuses to do anything unasked for root, as whom tests in a container run.
                ("IS_SANDBOX", "1".to_owned()),
            ],
            Cli::Codex => vec![("CODEX_HOME", own), ("OPENAI_API_KEY", "not-a-real-key".to_owned())],
        }
    }
}

fn codex_config(url: &str) -> String {
    format!(
        "model = \"gpt-5-codex\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\n\
         base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n"
    )
}

#[test]
fn where_the_variable_is_set_the_agents_are_there() {
    let Some(dir) = programs() else { return };
    for cli in Cli::ALL {
        let program = dir.join(cli.name());
        assert!(program.is_file(), "{VARIABLE} is set, but there is no {}", program.display());
    }
}
