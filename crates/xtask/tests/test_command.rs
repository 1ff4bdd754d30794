//! Transcripts of the real `xtask` binary on a PATH that holds only stand-ins.
//!
//! Owns: what `cargo xtask test` starts, in which order, and how it ends. Does not install
//! anything and runs no other test: `apt-get`, `sudo`, `id` and `cargo` are fake-program.sh.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[cfg(target_os = "linux")]
#[path = "test_command/leftovers.rs"]
mod leftovers;

/// A machine with a few programs, as root with a working `apt-get` unless told otherwise.
struct Machine {
    folder: PathBuf,
    settings: Vec<(&'static str, &'static str)>,
}

impl Machine {
    fn with(name: &str, programs: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("an earlier run's folder is ours to remove");
        }
        fs::create_dir_all(folder.join("bin")).expect("cargo's folder for tests is writable");
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-program.sh");
        for program in programs.iter().chain(&["bash", "cargo", "faketime", "id", "script", "tmux"]) {
            symlink(&fake, folder.join("bin").join(program)).expect("the folder is fresh");
        }
        let settings = vec![
            ("FAKE_UID", "0"),
            ("FAKE_SUDO", "asks"),
            ("FAKE_APT", "works"),
            ("FAKE_NPM", "works"),
            ("FAKE_PIP", "works"),
            ("FAKE_NEXTEST", "absent"),
            ("FAKE_STATUS", "0"),
        ];
        Self { folder, settings }
    }

    fn but(mut self, setting: &'static str, value: &'static str) -> Self {
        self.settings.push((setting, value));
        self
    }

    fn xtask(&self, args: &[&str]) -> Ended {
        self.ended(self.command(args).output().expect("the binary was built for this test"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let bin = self.folder.join("bin");
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .args(args)
            .env_clear()
            .env("PATH", &bin)
            .env("CARGO", bin.join("cargo"))
            .env("CARGO_TARGET_DIR", &self.folder)
            .env("FAKE_LOG", self.folder.join("log"))
            .envs(self.settings.iter().copied());
        command
    }

    fn ended(&self, output: Output) -> Ended {
        Ended { output, started: fs::read_to_string(self.folder.join("log")).unwrap_or_default() }
    }
}

struct Ended {
    output: Output,
    started: String,
}

impl Ended {
    fn started(&self, expected: &[&str]) -> &Self {
        let started: Vec<&str> = self.started.lines().collect();
        assert_eq!(started, expected, "programs started; stderr was:\n{}", self.stderr());
        self
    }

    fn status(&self, expected: i32) -> &Self {
        assert_eq!(self.output.status.code(), Some(expected), "stderr was:\n{}", self.stderr());
        self
    }

    fn says(&self, sentence: &str) -> &Self {
        let stderr = self.stderr();
        assert!(stderr.lines().any(|line| line == sentence), "not said in:\n{stderr}");
        self
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

#[test]
fn with_all_tools_present_only_the_runner_starts() {
    Machine::with("all-present", &["git", "apt-get"])
        .xtask(&["test"])
        .started(&["cargo nextest --version", "cargo test --workspace"])
        .status(0);
}

#[test]
fn nextest_is_preferred_and_gets_the_extra_arguments() {
    Machine::with("nextest", &["git"])
        .but("FAKE_NEXTEST", "present")
        .xtask(&["test", "--", "--no-capture", "some_test"])
        .started(&["cargo nextest --version", "cargo nextest run --workspace --no-capture some_test"])
        .status(0);
}

#[test]
fn the_fast_tests_are_a_profile_of_nextest_which_they_need() {
    Machine::with("fast", &["git"])
        .but("FAKE_NEXTEST", "present")
        .xtask(&["test", "--fast", "--", "some_test"])
        .started(&[
            "cargo nextest --version",
            "cargo nextest --version",
            "cargo nextest run --workspace some_test",
            "profile fast",
        ])
        .status(0);
    Machine::with("fast-without", &["git"])
        .xtask(&["test", "--fast"])
        .started(&["cargo nextest --version"])
        .says("error: `--fast` needs cargo-nextest; install it with `cargo install --locked cargo-nextest`")
        .status(1);
}

#[test]
fn the_exit_status_is_the_runners() {
    Machine::with("status", &["git"]).but("FAKE_STATUS", "101").xtask(&["test"]).status(101);
}

#[test]
fn root_gets_git_installed_even_though_one_package_source_is_broken() {
    Machine::with("root-installs", &["apt-get"])
        .xtask(&["test"])
        .started(&[
            "id -u",
            "apt-get update",
            "apt-get install --yes --no-install-recommends git",
            "cargo nextest --version",
            "cargo test --workspace",
        ])
        .status(0);
}

#[test]
fn free_sudo_gets_git_installed() {
    Machine::with("sudo-installs", &["apt-get", "sudo"])
        .but("FAKE_UID", "1000")
        .but("FAKE_SUDO", "free")
        .xtask(&["test"])
        .started(&[
            "id -u",
            "sudo -n true",
            "sudo -n apt-get update",
            "apt-get update",
            "sudo -n apt-get install --yes --no-install-recommends git",
            "apt-get install --yes --no-install-recommends git",
            "cargo nextest --version",
            "cargo test --workspace",
        ])
        .status(0);
}

#[test]
fn without_rights_one_sentence_says_what_to_install() {
    Machine::with("no-rights", &["apt-get", "sudo"])
        .but("FAKE_UID", "1000")
        .xtask(&["test"])
        .started(&["id -u", "sudo -n true"])
        .says(
            "error: the tests need `git`, missing here; install with \
             `sudo apt-get update && sudo apt-get install --yes --no-install-recommends git`",
        )
        .status(1);
}

#[test]
fn an_install_that_brings_nothing_ends_before_the_tests() {
    Machine::with("install-fails", &["apt-get"])
        .but("FAKE_APT", "broken")
        .xtask(&["test"])
        .started(&["id -u", "apt-get update", "apt-get install --yes --no-install-recommends git"])
        .says(
            "error: the tests need `git`, missing here even after \
             `apt-get update && apt-get install --yes --no-install-recommends git`",
        )
        .status(1);
}

#[test]
fn without_a_package_manager_the_program_is_named() {
    Machine::with("no-manager", &[])
        .xtask(&["test"])
        .says("error: the tests need `git`, missing here; your system's package manager has it")
        .status(1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_missing_optional_tool_is_named_and_not_installed() {
    Machine::with("optional", &["git", "apt-get", "mount"])
        .xtask(&["test"])
        .started(&["cargo nextest --version", "cargo test --workspace"])
        .says("note: `unshare` is missing, so tests that mount a file system of their own skip");
}

#[test]
fn without_agents_it_is_said_how_many_tests_are_left_out() {
    let ended = Machine::with("left-out", &["git"]).xtask(&["test"]);
    let n_left_out = ended.stderr().lines().find_map(|line| {
        line.strip_prefix("xtask: ")?
            .strip_suffix(" tests with real agents are left out; `cargo xtask test --with-agents` runs them too")?
            .parse()
            .ok()
    });
    assert!(n_left_out.is_some_and(|n: usize| n > 20), "{}", ended.stderr());
}

#[test]
fn without_the_old_release_it_is_said_that_the_upgrade_is_left_out() {
    Machine::with("no-old-release", &["git"])
        .xtask(&["test"])
        .says("xtask: the upgrade under a live daemon is left out; `cargo xtask test --with-old-release` runs it too");
}

#[test]
fn a_history_without_the_old_release_ends_it_before_the_tests() {
    let ended = Machine::with("shallow", &["git"]).xtask(&["test", "--with-old-release"]);
    ended.says("error: the history does not have gt 0.1.0; try `git fetch --unshallow`").status(1);
    ended.started(&[
        "git log --max-count=1 --diff-filter=A --format=%P -- crates/gt-store/src/migrations/0013_config.sql",
    ]);
}

#[test]
fn an_argument_for_the_runner_needs_the_two_dashes() {
    Machine::with("no-dashes", &["git"]).xtask(&["test", "some_test"]).started(&[]).status(2);
}

#[test]
fn with_agents_npm_and_pip_bring_them_and_the_tests_are_told_where_they_are() {
    let machine = Machine::with("agents", &["git", "npm", "python3"]);
    let folder = machine.folder.canonicalize().expect("it was just made").display().to_string();
    let ended = machine.xtask(&["test", "--with-agents", "--", "some_test"]);
    let started: Vec<&str> = ended.started.lines().collect();
    let [npm, venv, pip, rest @ ..] = &started[..] else { panic!("nothing was started:\n{}", ended.stderr()) };
    assert!(npm.starts_with("npm install --no-save --no-audit --no-fund --prefix "), "{npm}");
    assert!(npm.contains(" @anthropic-ai/claude-code@") && npm.contains(" @openai/codex@"), "{npm}");
    assert_eq!(*venv, format!("python3 -m venv {folder}/openai"));
    assert!(pip.starts_with("python -m pip install ") && pip.contains(" openai=="), "{pip}");
    let told = [
        format!("agents in {folder}/agents/node_modules/.bin"),
        format!("OpenAI's client in {folder}/openai/bin/python"),
    ];
    let test = "cargo test --workspace --features gt/real-agents some_test";
    assert_eq!(rest, ["cargo nextest --version", test, &told[0], &told[1]]);
    ended.status(0);
}

#[test]
fn agents_that_cannot_be_installed_end_it_before_the_tests() {
    let ended = Machine::with("no-agents", &["git", "npm"]).but("FAKE_NPM", "broken").xtask(&["test", "--with-agents"]);
    ended.says("error: npm could not install the agents: it ended with exit status: 1").status(1);
    assert!(!ended.started.contains("cargo"), "{}", ended.started);
    let ended = Machine::with("no-npm", &["git"]).xtask(&["test", "--with-agents"]);
    assert!(ended.stderr().contains("install Node.js"), "{}", ended.stderr());
    ended.status(1).started(&[]);
    let programs = ["git", "npm", "python3"];
    let ended = Machine::with("no-openai", &programs).but("FAKE_PIP", "broken").xtask(&["test", "--with-agents"]);
    assert!(ended.stderr().contains("error: OpenAI's client could not be installed: "), "{}", ended.stderr());
    ended.status(1);
    assert!(!ended.started.contains("cargo"), "{}", ended.started);
}

#[test]
fn the_search_is_built_for_speed_and_its_status_is_passed_on() {
    Machine::with("fuzz", &[])
        .but("FAKE_STATUS", "2")
        .xtask(&["fuzz", "--target", "words", "--seed", "7"])
        .started(&["cargo run --quiet --profile checked --package gt-sim --bin fuzz -- --target words --seed 7"])
        .status(2);
}

#[test]
fn chaos_gets_the_binary_of_its_profile_and_its_status_is_passed_on() {
    let machine = Machine::with("chaos", &[]);
    let built = machine.folder.join("checked");
    fs::create_dir_all(&built).expect("the folder is fresh");
    symlink(machine.folder.join("bin/cargo"), built.join("chaos")).expect("the folder is fresh");
    let ended = machine.xtask(&["chaos", "--seed", "7", "--profile", "checked", "--minutes", "2"]);
    let gt = built.join("gt").display().to_string();
    let chaos = format!("chaos --gt {gt} --seed 7 --minutes 2");
    ended.started(&["cargo build --quiet --package gt --package gt-chaos --profile checked", &chaos]).status(130);
    machine
        .xtask(&["chaos", "--profile"])
        .status(2)
        .says("error: `--profile` needs a value; `cargo xtask --help` shows what there is");
}

#[test]
fn help_names_every_command() {
    let machine = Machine::with("help", &[]);
    for args in
        [&[][..], &["--help"], &["test", "--help"], &["mutants", "--help"], &["fuzz", "--help"], &["chaos", "--help"]]
    {
        let ended = machine.xtask(args);
        ended.started(&[]).status(0);
        let help = String::from_utf8_lossy(&ended.output.stdout).into_owned();
        assert!(
            help.contains("  test [--with-agents] [--with-old-release] [--fast] [-- ARGS]"),
            "{args:?} printed:\n{help}"
        );
        assert!(
            help.contains("  mutants [--only NAME]… [--towns KIND]… [--seeds N] [--profile P]"),
            "{args:?} printed:\n{help}"
        );
        assert!(help.contains("  chaos [--minutes N] [--seed S]"), "{args:?} printed:\n{help}");
        assert!(help.contains("  fuzz [--target NAME] [--seeds N] [--seed S]"), "{args:?} printed:\n{help}");
    }
}
