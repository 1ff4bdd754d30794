//! The agents that are known without config, as one table.
//!
//! Words in braces are filled in for each run: `{conversation}` the name we gave it, or in a turn that goes on with one the
//! agent's own; `{settings}` its file of hooks,
//! `{codex-trust}` and `{codex-hooks}` the overrides that make Codex trust its directory and tell us what it does.
//! Whatever runs without a person is told at its start that nobody will answer: approvals never wait.

use std::collections::BTreeMap;

use gt_core::agent::Vendor;

/// How the assignment reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    Arg,
    Stdin,
    None,
}

/// A command line, and how the assignment gets into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub argv: Vec<String>,
    pub prompt: Prompt,
}

/// The same as it stands in the table.
#[derive(Debug, Clone, Copy)]
pub struct Words(&'static [&'static str], Prompt);

impl From<Words> for Call {
    fn from(Words(argv, prompt): Words) -> Call {
        Call { argv: argv.iter().map(|word| (*word).to_owned()).collect(), prompt }
    }
}

/// The command lines of one chat turn: to begin a conversation, and to go on with one. The message comes on standard
/// input, as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TurnWords {
    pub begin: &'static [&'static str],
    pub resume: &'static [&'static str],
}

/// An agent that is known without config.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    pub speaks: Option<Vendor>,
    pub terminal: Words,
    /// `None`: it needs a terminal.
    pub headless: Option<Words>,
    pub(super) turn: TurnWords,
    /// Tokens; 0: not known.
    pub(super) context_window: u64,
    env: &'static [(&'static str, &'static str)],
    /// Variables of a surrounding program that would mislead it.
    pub cleared: &'static [&'static str],
    /// What to do where its program is missing.
    pub install: &'static str,
}

impl Preset {
    pub(super) fn env(&self) -> BTreeMap<String, String> {
        self.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// The program that has to be there.
    pub fn program(&self) -> &'static str {
        self.terminal.0.first().copied().unwrap_or_default()
    }
}

/// What debuggers and editors put there for their own programs.
const NODE: &[&str] = &["NODE_OPTIONS"];

pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "claude",
        speaks: Some(Vendor::Claude),
        terminal: Words(
            &[
                "claude",
                "--session-id",
                "{conversation}",
                "--settings",
                "{settings}",
                "--permission-mode",
                "bypassPermissions",
            ],
            Prompt::Arg,
        ),
        headless: Some(Words(
            &[
                "claude",
                "-p",
                "--output-format",
                "stream-json",
                "--verbose",
                "--session-id",
                "{conversation}",
                "--permission-mode",
                "bypassPermissions",
            ],
            Prompt::Stdin,
        )),
        turn: TurnWords {
            begin: &[
                "claude",
                "-p",
                "--output-format",
                "stream-json",
                "--verbose",
                "--permission-mode",
                "bypassPermissions",
                "--session-id",
                "{conversation}",
            ],
            resume: &[
                "claude",
                "-p",
                "--output-format",
                "stream-json",
                "--verbose",
                "--permission-mode",
                "bypassPermissions",
                "--resume",
                "{conversation}",
            ],
        },
        context_window: 200_000,
        env: &[],
        cleared: &["NODE_OPTIONS", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"],
        install: "npm install -g @anthropic-ai/claude-code",
    },
    Preset {
        name: "codex",
        speaks: Some(Vendor::Codex),
        terminal: Words(
            // With its server in the background, commands of one run would get the environment of another.
            &[
                "codex",
                "--no-daemon",
                "-c",
                "allow_login_shell=false",
                "-a",
                "never",
                "-s",
                "danger-full-access",
                "--dangerously-bypass-hook-trust",
                "{codex-trust}",
                "{codex-hooks}",
            ],
            Prompt::Arg,
        ),
        headless: Some(Words(
            // A login shell would forget the PATH on which `gt` is.
            &[
                "codex",
                "exec",
                "--json",
                "-c",
                "allow_login_shell=false",
                "-s",
                "danger-full-access",
                "--skip-git-repo-check",
                "-",
            ],
            Prompt::Stdin,
        )),
        turn: TurnWords {
            begin: &[
                "codex",
                "exec",
                "--json",
                "-c",
                "allow_login_shell=false",
                "-s",
                "danger-full-access",
                "--skip-git-repo-check",
                "-",
            ],
            // `-s` is taken before this word only.
            resume: &[
                "codex",
                "exec",
                "--json",
                "-c",
                "allow_login_shell=false",
                "-s",
                "danger-full-access",
                "--skip-git-repo-check",
                "resume",
                "{conversation}",
                "-",
            ],
        },
        context_window: 272_000,
        env: &[],
        cleared: &["NODE_OPTIONS", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID"],
        install: "npm install -g @openai/codex",
    },
    Preset {
        name: "gemini",
        speaks: Some(Vendor::Gemini),
        terminal: Words(&["gemini", "--approval-mode", "yolo", "--skip-trust", "-i"], Prompt::Arg),
        headless: Some(Words(
            &["gemini", "--approval-mode", "yolo", "--skip-trust", "--output-format", "stream-json", "-p"],
            Prompt::Arg,
        )),
        // Without `-p` it takes what comes on standard input for the whole of its message.
        turn: TurnWords {
            begin: &["gemini", "--approval-mode", "yolo", "--skip-trust", "--output-format", "stream-json"],
            resume: &[
                "gemini",
                "--approval-mode",
                "yolo",
                "--skip-trust",
                "--output-format",
                "stream-json",
                "--resume",
                "{conversation}",
            ],
        },
        context_window: 1_000_000,
        env: &[],
        cleared: NODE,
        install: "npm install -g @google/gemini-cli",
    },
    Preset {
        name: "opencode",
        speaks: Some(Vendor::Opencode),
        terminal: Words(&["opencode", "--prompt"], Prompt::Arg),
        headless: Some(Words(&["opencode", "run", "--format", "json"], Prompt::Arg)),
        turn: TurnWords {
            begin: &["opencode", "run", "--format", "json"],
            resume: &["opencode", "run", "--format", "json", "--session", "{conversation}"],
        },
        context_window: 200_000,
        env: &[("OPENCODE_CONFIG_CONTENT", r#"{"permission":"allow"}"#)],
        cleared: NODE,
        install: "npm install -g opencode-ai",
    },
    Preset {
        name: "shell",
        speaks: None,
        // A person works here: the assignment is shown, and then it is a shell like any other.
        terminal: Words(&["sh", "-c", r#"gt prime; exec "${SHELL:-sh}""#], Prompt::None),
        headless: None,
        // The message is a script.
        turn: TurnWords { begin: &["sh"], resume: &["sh"] },
        context_window: 0,
        env: &[],
        cleared: &[],
        install: "install a shell",
    },
];

pub(super) fn of(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
