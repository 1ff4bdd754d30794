//! The town under test: its directories, repositories, scripts and settings, and commands in it.
//!
//! What the judge reads (`evidence`) lies beside the town, so that a full disk of the town does not touch it. A janitor
//! process kills whatever is left of the town as soon as the tool ends, however it ends.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::command::{Ending, run};
use crate::disk;
use crate::options::{Options, Runtime};

/// Agents at work at once: in the town, in each rig; turns at once in each lane.
pub(crate) const TOWN_CAP: usize = 6;
pub(crate) const RIG_CAP: usize = 4;
pub(crate) const LANE_CAP: usize = 4;

/// A repository of the town.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rig {
    pub(crate) name: &'static str,
    pub(crate) prefix: &'static str,
    /// Whether the target branch is checked out in the repository that people use.
    pub(crate) is_checked_out: bool,
}

pub(crate) const RIGS: [Rig; 2] = [
    Rig { name: "yard", prefix: "ya", is_checked_out: true },
    Rig { name: "mill", prefix: "mi", is_checked_out: false },
];

const SCRIPTS: [(&str, &str); 4] = [
    ("agent.sh", include_str!("scripts/agent.sh")),
    ("turn.sh", include_str!("scripts/turn.sh")),
    ("slot.sh", include_str!("scripts/slot.sh")),
    ("gate.sh", include_str!("scripts/gate.sh")),
];

/// Plain files beside the directories of agents' work: people's, and in the way of a directory of the same name.
const IGNORED: &str = "/work/*\n!/work/*/\n";

const GIT_CONFIG: &str = "[user]\n\tname = Person\n\temail = person@example.org\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
     [init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n";

/// A town, the files around it, and its janitor.
#[derive(Debug)]
pub(crate) struct Town {
    /// Unique; part of every path, and of the environment of every process.
    pub(crate) token: String,
    gt: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) evidence: PathBuf,
    /// The defect that is switched on in the binary.
    defect: Option<String>,
    config: String,
    janitor: Mutex<Child>,
}

impl Town {
    /// Makes a town whose web hooks go to `receiver`, an address with a port.
    pub(crate) fn make(options: &Options, receiver: &str) -> Result<Town, String> {
        for program in ["bash", "flock", "git"] {
            Command::new(program)
                .arg("--version")
                .output()
                .map_err(|error| format!("cannot start `{program}`: {error}"))?;
        }
        let gt = options.gt.canonicalize().map_err(|error| format!("no binary {}: {error}", options.gt.display()))?;
        if let Some(disk) = &options.disk {
            disk::clear(disk);
        }
        let token = format!("c{:010x}", fastrand::Rng::new().u64(..1 << 40));
        let base = std::env::temp_dir().join(format!("chaos-{token}"));
        let home = match &options.disk {
            Some(disk) => disk.join(format!("{}{token}", disk::HOME)),
            None => base.join("h"),
        };
        let (root, evidence) = (home.join(&token), base.join("evidence"));
        let failed = |error: io::Error| format!("cannot make a town in {}: {error}", home.display());
        for folder in ["beads", "sessions", "jobs", "first"] {
            fs::create_dir_all(evidence.join(folder)).map_err(failed)?;
        }
        fs::create_dir_all(&root).map_err(failed)?;
        let janitor = start_janitor(&token, &home.join(disk::FILLER)).map_err(failed)?;
        let (defect, janitor) = (options.defect.clone(), Mutex::new(janitor));
        let mut town = Town { token, gt, home, root, evidence, defect, config: String::new(), janitor };
        let furnished = town.furnish(options.runtime, receiver);
        if furnished.is_err() {
            town.end();
            town.remove();
        }
        furnished.map(|()| town)
    }

    fn furnish(&mut self, runtime: Runtime, receiver: &str) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot furnish the town: {error}");
        fs::write(self.home.join(".gitconfig"), GIT_CONFIG).map_err(failed)?;
        for (name, text) in SCRIPTS {
            let text = text.replace("@EVIDENCE@", &self.evidence.display().to_string());
            fs::write(self.evidence.join(name), text).map_err(failed)?;
        }
        self.must(self.gt(&["init"]))?;
        for rig in RIGS {
            self.must(self.git(&["init", "--quiet", rig.name]))?;
            self.must(self.git(&["-C", rig.name, "commit", "--quiet", "--allow-empty", "--message=start"]))?;
            self.must(self.gt(&["rig", "add", rig.name, rig.name, "--prefix", rig.prefix, "--branch", "main"]))?;
            self.ignore(rig, IGNORED).map_err(failed)?;
            if !rig.is_checked_out {
                self.must(self.git(&["-C", rig.name, "switch", "--quiet", "--create", "desk"]))?;
            }
        }
        let fresh = fs::read_to_string(self.config_path()).map_err(failed)?;
        self.config = fresh + &self.settings(runtime, receiver)?;
        fs::write(self.config_path(), &self.config).map_err(failed)?;
        self.must(self.gt(&["config", "list", "--json"]))
    }

    /// Has git ignore files in a rig.
    fn ignore(&self, rig: Rig, patterns: &str) -> io::Result<()> {
        let path = self.rig(rig).join(".git/info/exclude");
        let known = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, known + patterns)
    }

    /// Gates and caps come last, so that every truncated file lacks some.
    fn settings(&self, runtime: Runtime, receiver: &str) -> Result<String, String> {
        let script = |name: &str| self.evidence.join(name).display().to_string();
        let (agent, turn, gate) = (script("agent.sh"), script("turn.sh"), script("gate.sh"));
        let rigs =
            RIGS.map(|rig| format!("[rigs.{}]\nmax_polecats = {RIG_CAP}\ngates = [\"bash {gate}\"]\n", rig.name));
        Ok(format!(
            "runtime = \"{runtime}\"\ndefault_agent = \"scripted\"\n\
             [server]\nbind = \"127.0.0.1:0\"\n\
             [agents.scripted]\ncommand = [\"bash\", \"{agent}\"]\nprompt = \"none\"\nheadless = [\"bash\", \"{turn}\"]\n\
             [agents.teller]\nheadless = [\"bash\", \"{turn}\", \"claude\"]\nspeaks = \"claude\"\n\
             [channels.hook]\nkind = \"webhook\"\nurl = \"http://{receiver}/answers\"\n\
             [convoy]\nnotify = [\"http://{receiver}/notices\"]\nsweep = \"5s\"\n\
             [sessions]\ndebounce_ms = 0\ncap = 1000\n\
             [guards]\nload_per_core = 0\nfree_memory = \"0 MB\"\nfree_disk = \"0 MB\"\n\
             [cron]\nmax_failures = 0\n\
             [witness]\nredispatch_cooldown = \"1s\"\nredispatch_attempts = 1000\n\
             [deacon]\nfeed_cooldown = \"1s\"\n[daemon]\nheartbeat = \"5s\"\n\
             {retention}[lanes]\nmain = {LANE_CAP}\ncron = {LANE_CAP}\n\
             [scheduler]\nmax_failures = 1000\nbreaker_reset = \"1s\"\nmax_polecats = {TOWN_CAP}\n{}",
            rigs.concat(),
            runtime = runtime.name(),
            retention = self.retention()?,
        ))
    }

    /// Worktrees of dead workers are cleared away at once, by a version that does so at all.
    fn retention(&self) -> Result<&'static str, String> {
        let keys = self.ask(&["config", "list"])?;
        let mut keys = keys.as_array().into_iter().flatten();
        let is_known = keys.any(|key| key["key"] == "retention.worktrees");
        Ok(if is_known { "[retention]\nworktrees = \"1s\"\n" } else { "" })
    }

    fn must(&self, mut command: Command) -> Result<(), String> {
        match run(&mut command, None) {
            Ending::Exit { code: 0, .. } => Ok(()),
            ending => Err(format!("cannot make the town in {}: {command:?}: {ending}", self.root.display())),
        }
    }

    pub(crate) fn gt(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.gt);
        command.args(arguments).envs(self.defect.iter().map(|name| ("GT_DEFECT", name)));
        command
    }

    /// git as a person of the town calls it.
    pub(crate) fn git(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(Path::new("git"));
        command.args(arguments);
        command
    }

    fn command(&self, program: &Path) -> Command {
        self.shell(self.root.clone()).command(program)
    }

    pub(crate) fn shell(&self, dir: PathBuf) -> Shell {
        Shell { dir, home: self.home.clone(), token: self.token.clone() }
    }

    /// What `gt … --json` says, or why it does not.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<Value, String> {
        let ending = run(self.gt(arguments).arg("--json"), None);
        let Ending::Exit { stdout, .. } = &ending else { return Err(format!("gt {arguments:?}: {ending}")) };
        serde_json::from_str(stdout).map_err(|_| format!("gt {arguments:?}: {ending}"))
    }

    pub(crate) fn rig(&self, rig: Rig) -> PathBuf {
        self.root.join(rig.name)
    }

    pub(crate) fn keeper(&self) -> String {
        self.root.join(".gt/keeper").display().to_string()
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.root.join("town.toml")
    }

    /// What fills the disk.
    pub(crate) fn filler(&self) -> PathBuf {
        self.home.join(disk::FILLER)
    }

    /// The settings as they should be.
    pub(crate) fn config(&self) -> &str {
        &self.config
    }

    /// Puts the settings back in one step, as an editor does.
    pub(crate) fn restore_config(&self) -> io::Result<()> {
        let fresh = self.root.join("town.toml.new");
        fs::write(&fresh, &self.config)?;
        fs::rename(fresh, self.config_path())
    }

    /// Ends every process of the town.
    pub(crate) fn end(&self) {
        let mut janitor = self.janitor.lock().unwrap_or_else(PoisonError::into_inner);
        drop(janitor.stdin.take());
        janitor.wait().ok();
    }

    pub(crate) fn remove(&self) {
        fs::remove_dir_all(&self.home).ok();
        fs::remove_dir_all(self.base()).ok();
    }

    /// The directory that is kept when a promise was broken.
    pub(crate) fn base(&self) -> &Path {
        self.evidence.parent().unwrap_or(&self.evidence)
    }
}

/// What a person of the town types commands into.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    pub(crate) dir: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) token: String,
}

impl Shell {
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(&self.dir);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.home).env("TMPDIR", &self.home).env("CHAOS_TOWN", &self.token);
        command.env("GT_ACTOR", "person").env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
        command
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        self.end();
    }
}

/// It has a process group of its own, so that what kills the tool's group leaves it alone.
fn start_janitor(token: &str, filler: &Path) -> io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let mut janitor = Command::new("bash");
    janitor.args(["-c", include_str!("scripts/janitor.sh"), "janitor"]).stdin(Stdio::piped()).process_group(0);
    let mut child = janitor.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    if let Some(pipe) = child.stdin.as_mut() {
        writeln!(pipe, "{token}\n{}", filler.display())?;
    }
    Ok(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_janitor_empties_the_disk_when_the_tool_ends() {
        let filler = std::env::temp_dir().join(format!("chaos-filler-{:016x}", fastrand::u64(..)));
        fs::write(&filler, "x").expect("it can be written");
        let mut janitor = start_janitor("c0ffee-no-such-town", &filler).expect("bash is there");
        assert!(janitor.try_wait().is_ok_and(|ended| ended.is_none()) && filler.exists(), "the tool is still there");
        drop(janitor.stdin.take());
        janitor.wait().expect("it is a child");
        assert!(!filler.exists());
    }
}
