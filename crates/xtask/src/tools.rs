//! The programs that the tests call: which, how to see that one is missing, how to get it.
//!
//! Owns: the one table of those programs and their packages, and installing them where that
//! needs no question. Does not own: Rust, its components or a linker; without them this program
//! would not run. Never asks for a password and never installs what is only optional.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::process::{Command, Stdio};

/// Every program that a test of the workspace calls.
const TOOLS: &[Tool] = &[
    Tool { program: "git", need: Need::Required, packages: Packages::everywhere("git") },
    Tool { program: "bash", need: Need::Required, packages: Packages::everywhere("bash") },
    Tool { program: "tmux", need: Need::Required, packages: Packages::everywhere("tmux") },
    Tool { program: "faketime", need: Need::Required, packages: FAKETIME },
    Tool { program: "script", need: Need::Required, packages: SCRIPT },
    Tool { program: "unshare", need: OWN_FILE_SYSTEM, packages: Packages::everywhere(UTIL_LINUX) },
    Tool { program: "mount", need: OWN_FILE_SYSTEM, packages: Packages::everywhere(UTIL_LINUX) },
];

const UTIL_LINUX: &str = "util-linux";

const FAKETIME: Packages = Packages { apt_get: "faketime", ..Packages::everywhere("libfaketime") };

const SCRIPT: Packages = Packages { apt_get: "bsdutils", ..Packages::everywhere(UTIL_LINUX) };

const OWN_FILE_SYSTEM: Need =
    Need::Optional { os: "linux", without: "tests that mount a file system of their own skip" };

/// A program, how badly it is needed, and the package that brings it.
struct Tool {
    program: &'static str,
    need: Need,
    packages: Packages,
}

enum Need {
    Required,
    /// Wanted on one operating system only; `without` says what its absence costs.
    Optional {
        os: &'static str,
        without: &'static str,
    },
}

/// The package's name for each manager; one field each, so that none can be forgotten.
struct Packages {
    apt_get: &'static str,
    dnf: &'static str,
    pacman: &'static str,
    apk: &'static str,
    zypper: &'static str,
    brew: &'static str,
}

impl Packages {
    /// Exceptions are written as `Packages { dnf: "…", ..Packages::everywhere("…") }`.
    const fn everywhere(name: &'static str) -> Self {
        Self { apt_get: name, dnf: name, pacman: name, apk: name, zypper: name, brew: name }
    }

    fn name(&self, manager: Manager) -> &'static str {
        match manager {
            Manager::AptGet => self.apt_get,
            Manager::Dnf => self.dnf,
            Manager::Pacman => self.pacman,
            Manager::Apk => self.apk,
            Manager::Zypper => self.zypper,
            Manager::Brew => self.brew,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    AptGet,
    Dnf,
    Pacman,
    Apk,
    Zypper,
    Brew,
}

impl Manager {
    /// In the order of preference; brew is last, since on Linux it is only a guest.
    const ALL: [Self; 6] = [Self::AptGet, Self::Dnf, Self::Pacman, Self::Apk, Self::Zypper, Self::Brew];

    fn program(self) -> &'static str {
        match self {
            Self::AptGet => "apt-get",
            Self::Dnf => "dnf",
            Self::Pacman => "pacman",
            Self::Apk => "apk",
            Self::Zypper => "zypper",
            Self::Brew => "brew",
        }
    }

    /// The argument lists to run one after the other, without the packages, which end the last.
    fn steps(self) -> &'static [&'static [&'static str]] {
        match self {
            // A fresh image has no package lists, and old ones name files that are gone.
            Self::AptGet => &[&["update"], &["install", "--yes", "--no-install-recommends"]],
            Self::Dnf => &[&["install", "--assumeyes"]],
            // No `-y`: a fresh list with old packages is a partial upgrade, which can break them.
            Self::Pacman => &[&["-S", "--needed", "--noconfirm"]],
            Self::Apk => &[&["add", "--no-cache"]],
            Self::Zypper => &[&["--non-interactive", "install"]],
            Self::Brew => &[&["install"]],
        }
    }

    /// Brew is the one that refuses to run as root; all others need it.
    fn works_without_asking(self, rights: Rights) -> bool {
        match self {
            Self::Brew => rights != Rights::Root,
            _ => rights != Rights::User,
        }
    }

    /// What comes before the manager's own name: nothing, or `sudo`.
    fn prefix(self, rights: Rights) -> &'static [&'static str] {
        match (self, rights) {
            (Self::Brew, _) | (_, Rights::Root) => &[],
            (_, Rights::Sudo) => &["sudo", "-n"],
            (_, Rights::User) => &["sudo"],
        }
    }
}

/// What this process may do to the system without a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    Root,
    Sudo,
    User,
}

/// How missing packages get here.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    Install(Vec<CommandLine>),
    Advise(Vec<CommandLine>),
    NoManager,
}

type CommandLine = Vec<&'static str>;

/// Required programs that are missing and stay so, with the commands that would bring them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    programs: Vec<&'static str>,
    commands: Vec<CommandLine>,
    tried: bool,
}

impl Missing {
    fn new(tools: &[&Tool], commands: Vec<CommandLine>, tried: bool) -> Self {
        Self { programs: tools.iter().map(|tool| tool.program).collect(), commands, tried }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs = self.programs.join("` and `");
        write!(f, "the tests need `{programs}`, missing here")?;
        match (self.commands.is_empty(), self.tried) {
            (true, _) => write!(f, "; your system's package manager has it"),
            (false, false) => write!(f, "; install with `{}`", one_line(&self.commands)),
            (false, true) => write!(f, " even after `{}`", one_line(&self.commands)),
        }
    }
}

/// Makes sure that every required program is there, and says which optional ones are not.
pub(crate) fn provide() -> Result<(), Missing> {
    note_missing_optional();
    let missing = missing_required();
    if missing.is_empty() {
        return Ok(());
    }
    match remedy(&missing, &present_managers(), rights()) {
        Remedy::Install(commands) => install(commands),
        Remedy::Advise(commands) => Err(Missing::new(&missing, commands, false)),
        Remedy::NoManager => Err(Missing::new(&missing, Vec::new(), false)),
    }
}

fn note_missing_optional() {
    for tool in TOOLS {
        if let Need::Optional { os, without } = tool.need
            && os == env::consts::OS
            && !is_present(tool.program)
        {
            eprintln!("note: `{}` is missing, so {without}", tool.program);
        }
    }
}

fn missing_required() -> Vec<&'static Tool> {
    let required = TOOLS.iter().filter(|tool| matches!(tool.need, Need::Required));
    required.filter(|tool| !is_present(tool.program)).collect()
}

fn present_managers() -> Vec<Manager> {
    Manager::ALL.into_iter().filter(|manager| is_present(manager.program())).collect()
}

/// The first manager that need not ask installs; if all would ask, the first one is advised.
fn remedy(missing: &[&Tool], present: &[Manager], rights: Rights) -> Remedy {
    let willing = present.iter().copied().find(|manager| manager.works_without_asking(rights));
    match (willing, present.first()) {
        (Some(manager), _) => Remedy::Install(command_lines(manager, rights, missing)),
        (None, Some(&manager)) => Remedy::Advise(command_lines(manager, rights, missing)),
        (None, None) => Remedy::NoManager,
    }
}

fn command_lines(manager: Manager, rights: Rights, missing: &[&Tool]) -> Vec<CommandLine> {
    let start = [manager.prefix(rights), &[manager.program()]].concat();
    let mut lines: Vec<CommandLine> = manager.steps().iter().map(|step| [&start, *step].concat()).collect();
    if let Some(last) = lines.last_mut() {
        last.extend(packages(manager, missing));
    }
    lines
}

/// The packages in the order of the table, each once: one package may bring several programs.
fn packages(manager: Manager, missing: &[&Tool]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for tool in missing {
        let name = tool.packages.name(manager);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Runs all commands and judges by the result alone: `apt-get update` may fail for a source that
/// has nothing to do with us, while what we need still installs.
fn install(commands: Vec<CommandLine>) -> Result<(), Missing> {
    for command in &commands {
        eprintln!("xtask: {}", command.join(" "));
        run_unattended(command);
    }
    let missing = missing_required();
    if missing.is_empty() { Ok(()) } else { Err(Missing::new(&missing, commands, true)) }
}

fn run_unattended(command: &CommandLine) {
    let ended = Command::new(command[0])
        .args(&command[1..])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status();
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("xtask: `{}` ended with {status}", command.join(" ")),
        Err(error) => eprintln!("xtask: cannot start `{}`: {error}", command[0]),
    }
}

fn one_line(commands: &[CommandLine]) -> String {
    commands.iter().map(|command| command.join(" ")).collect::<Vec<_>>().join(" && ")
}

fn rights() -> Rights {
    if quiet_output("id", &["-u"]).is_some_and(|uid| uid.trim() == "0") {
        Rights::Root
    } else if quiet_output("sudo", &["-n", "true"]).is_some() {
        Rights::Sudo
    } else {
        Rights::User
    }
}

/// What the program prints, or nothing when it is not there or does not succeed.
fn quiet_output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_present(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| is_on(&path, program))
}

fn is_on(path: &OsStr, program: &str) -> bool {
    let file_name = format!("{program}{}", env::consts::EXE_SUFFIX);
    env::split_paths(path)
        .filter_map(|folder| fs::metadata(folder.join(&file_name)).ok())
        .any(|found| is_executable(&found))
}

#[cfg(unix)]
fn is_executable(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.is_file() && found.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(found: &fs::Metadata) -> bool {
    found.is_file()
}

#[cfg(test)]
mod tests;
