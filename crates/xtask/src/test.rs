//! `cargo xtask test`: every test of the workspace, on a machine that may be fresh.
//!
//! Owns: the choice of the test runner and its exit status. Does not own: what the tests need
//! (`tools`, and `agents` and `openai` where real ones are wanted), nor which tests there are (the crates).

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use crate::{agents, help, openai, refuse, tools};

/// Tests that would skip for want of a required program fail instead: it was provided before.
const NOTHING_SKIPPED: &str = "GT_TEST_SKIP_NOTHING";

/// Provides the tools the tests need, then runs all tests; the status is the runner's.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let (wants_agents, args) = match args {
        [first, rest @ ..] if first == "--with-agents" => (true, rest),
        _ => (false, args),
    };
    let runner_args = match args {
        [] => args,
        [first, rest @ ..] if first == "--" => rest,
        [first, ..] if first == "--help" || first == "-h" => return help(),
        [first, ..] => {
            let given = first.to_string_lossy();
            return refuse(&format!("`{given}` is for the runner, so it goes after `--`"));
        }
    };
    match provide(wants_agents) {
        Ok(provided) => run_tests(runner_args, provided),
        Err(missing) => {
            eprintln!("error: {missing}");
            ExitCode::FAILURE
        }
    }
}

/// Where the real agents and OpenAI's client are, in the words of the tests, where they are wanted.
fn provide(wants_agents: bool) -> Result<Vec<(&'static str, PathBuf)>, String> {
    tools::provide().map_err(|missing| missing.to_string())?;
    if !wants_agents {
        return Ok(Vec::new());
    }
    Ok(vec![(agents::VARIABLE, agents::provide()?), (openai::VARIABLE, openai::provide()?)])
}

fn run_tests(runner_args: &[OsString], provided: Vec<(&'static str, PathBuf)>) -> ExitCode {
    let subcommand: &[&str] = if has_nextest() { &["nextest", "run"] } else { &["test"] };
    eprintln!("xtask: cargo {} --workspace", subcommand.join(" "));
    let tests =
        cargo().args(subcommand).arg("--workspace").args(runner_args).env(NOTHING_SKIPPED, "1").envs(provided).status();
    match tests {
        Ok(status) => exit_code(status),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Asks cargo itself, because it also finds subcommands in places that are not on the PATH.
fn has_nextest() -> bool {
    let asked = cargo()
        .args(["nextest", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// The cargo that runs this program, so that tests are built with the same toolchain.
fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A runner ended by a signal has no code; that is a failure like any other.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
