//! `cargo xtask test`: every test of the workspace, on a machine that may be fresh.
//!
//! Owns: the choice of the test runner. Does not own: what is left when it is done (`leftovers`), what the tests need
//! (`tools`, and `agents`, `openai` and `old_release` where those are wanted), nor which tests there are (the crates).

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::{agents, help, leftovers, limits, old_release, openai, refuse, tools};

/// Tests that would skip for want of a required program fail instead: it was provided before.
const NOTHING_SKIPPED: &str = "GT_TEST_SKIP_NOTHING";

/// How many tests run at once, for nextest.
const TEST_THREADS: &str = "NEXTEST_TEST_THREADS";

/// Most tests wait for processes, git and disks: so many run per core.
const TESTS_PER_CORE: usize = 4;

/// Provides the tools the tests need, then runs all tests; the status is the runner's.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let (wants_agents, args) = take(args, "--with-agents");
    let (wants_old_release, args) = take(args, "--with-old-release");
    let (is_fast, args) = take(args, "--fast");
    if is_fast && !has_nextest() {
        eprintln!("error: `--fast` needs cargo-nextest; install it with `cargo install --locked cargo-nextest`");
        return ExitCode::FAILURE;
    }
    let runner_args = match args {
        [] => args,
        [first, rest @ ..] if first == "--" => rest,
        [first, ..] if first == "--help" || first == "-h" => return help(),
        [first, ..] => {
            let given = first.to_string_lossy();
            return refuse(&format!("`{given}` is for the runner, so it goes after `--`"));
        }
    };
    match provide(wants_agents, wants_old_release) {
        Ok(provided) => run_tests(runner_args, provided, is_fast),
        Err(missing) => {
            eprintln!("error: {missing}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the arguments begin with this option, and those after it.
fn take<'a>(args: &'a [OsString], option: &str) -> (bool, &'a [OsString]) {
    match args {
        [first, rest @ ..] if first == option => (true, rest),
        _ => (false, args),
    }
}

/// What was brought for tests that are left out otherwise: their features, and where things are, in the words of the tests.
#[derive(Default)]
struct Provided {
    features: Vec<&'static str>,
    variables: Vec<(&'static str, PathBuf)>,
}

fn provide(wants_agents: bool, wants_old_release: bool) -> Result<Provided, String> {
    tools::provide().map_err(|missing| missing.to_string())?;
    let mut provided = Provided::default();
    if wants_agents {
        provided.features.push(agents::FEATURE);
        provided.variables.extend([(agents::VARIABLE, agents::provide()?), (openai::VARIABLE, openai::provide()?)]);
    }
    if wants_old_release {
        provided.features.push(old_release::FEATURE);
        provided.variables.push((old_release::VARIABLE, old_release::provide()?));
    }
    Ok(provided)
}

/// Names the tests that are left out, and how to run them.
fn tell_left_out(provided: &Provided) {
    if !provided.features.contains(&agents::FEATURE) {
        let n_tests = agents::count_tests();
        eprintln!(
            "xtask: {n_tests} tests with real agents are left out; `cargo xtask test --with-agents` runs them too"
        );
    }
    if !provided.features.contains(&old_release::FEATURE) {
        eprintln!(
            "xtask: the upgrade under a live daemon is left out; `cargo xtask test --with-old-release` runs it too"
        );
    }
}

fn run_tests(runner_args: &[OsString], provided: Provided, is_fast: bool) -> ExitCode {
    let mut words = if has_nextest() { vec!["nextest", "run"] } else { vec!["test"] };
    words.push("--workspace");
    tell_left_out(&provided);
    let features = provided.features.join(",");
    if !features.is_empty() {
        words.extend(["--features", &features]);
    }
    eprintln!("xtask: cargo {}", words.join(" "));
    let mut tests = cargo();
    tests
        .args(words)
        .args(runner_args)
        .env(NOTHING_SKIPPED, "1")
        .env(limits::VARIABLE, limits::find())
        .envs(provided.variables);
    tests.envs(settings_of_nextest(is_fast));
    leftovers::run(&mut tests).unwrap_or_else(|error| {
        eprintln!("error: cannot run the tests: {error}");
        ExitCode::FAILURE
    })
}

/// What nextest reads from its environment, where the command line and its configuration do not say otherwise.
fn settings_of_nextest(is_fast: bool) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if env::var_os(TEST_THREADS).is_none() {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        settings.push((TEST_THREADS, (n_cores * TESTS_PER_CORE).to_string()));
    }
    if is_fast {
        settings.push(("NEXTEST_PROFILE", "fast".to_owned()));
    }
    settings
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
