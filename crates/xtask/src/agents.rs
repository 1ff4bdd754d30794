//! The real agents that some tests drive: which versions, and installing them.
//!
//! Owns: the one list of those agents with their versions, and where they are put. Does not own: what the tests do with
//! them, nor npm itself. Nothing is installed outside `target/agents`, and no agent is started here.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the tests that need the agents.
pub(crate) const FEATURE: &str = "gt/real-agents";

/// Tells the tests where the agents' programs are.
pub(crate) const VARIABLE: &str = "GT_TEST_AGENTS";

/// Every agent, as npm names it with its version, and its program. A new version is tried by hand first:
/// `docs/real-agents.md` says what the tests rely on.
const AGENTS: &[(&str, &str)] = &[("@anthropic-ai/claude-code@2.1.197", "claude"), ("@openai/codex@0.166.0", "codex")];

/// Installs without a trace in any manifest. npm sees by itself what is there already.
const INSTALL: &[&str] = &["install", "--no-save", "--no-audit", "--no-fund", "--prefix"];

/// Makes sure that the agents are there in these versions, and tells the directory of their programs.
pub(crate) fn provide() -> Result<PathBuf, String> {
    let folder = target().join("agents");
    install(&folder)?;
    let programs = folder.join("node_modules/.bin");
    match AGENTS.iter().find(|(_, program)| !programs.join(program).exists()) {
        Some((package, program)) => {
            Err(format!("npm installed {package}, but there is no `{program}` in {}", programs.display()))
        }
        None => programs.canonicalize().map_err(|error| format!("cannot find {}: {error}", programs.display())),
    }
}

/// How many tests need the agents.
pub(crate) fn count_tests() -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gt/tests/agents");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.map(|file| fs::read_to_string(file.path()).unwrap_or_default());
    texts.map(|text| text.lines().filter(|line| line.trim() == "#[test]").count()).sum()
}

fn install(folder: &Path) -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.args(INSTALL).arg(folder).args(AGENTS.iter().map(|(package, _)| package)).stdin(Stdio::null());
    let packages: Vec<&str> = AGENTS.iter().map(|(package, _)| *package).collect();
    eprintln!("xtask: npm {} {} {}", INSTALL.join(" "), folder.display(), packages.join(" "));
    match npm.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("npm could not install the agents: it ended with {status}")),
        Err(error) => Err(format!("the agents come with `npm`, which cannot be started: {error}; install Node.js")),
    }
}

/// The directory of the whole project.
pub(crate) fn workspace() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).unwrap_or(Path::new("."))
}

/// Cargo's own directory for what is made.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}
