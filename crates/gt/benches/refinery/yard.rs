//! A town whose finished work waits to be merged, and the time until it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gt_store::Stamp;
use jiff::Timestamp;
use rusqlite::Connection;
use tempfile::TempDir;

const GT: &str = env!("CARGO_BIN_EXE_gt");
const PATIENCE: Duration = Duration::from_mins(5);

/// Each writes a file of its own; one writes one that the gate does not like. Whoever works on something again waits.
const AGENT: &str = "case $GT_BEAD in gt-bench-*) ;; *) exec gt done --status deferred;; esac\n\
    echo \"$GT_BEAD\" > \"$GT_BEAD\"; [ \"$GT_BEAD\" = \"$1\" ] && touch bad\n\
    git add -A; git commit --quiet --message=\"$GT_BEAD\"; exec gt done\n";

/// What came of it.
pub(crate) struct Tally {
    pub(crate) time: Duration,
    pub(crate) n_merged: usize,
    pub(crate) n_back: usize,
    pub(crate) n_gates: usize,
}

pub(crate) struct Yard {
    dir: TempDir,
    daemon: Child,
    n: usize,
}

impl Yard {
    /// A town in which `n` pieces of work are done, and whose refinery is paused.
    pub(crate) fn new(gate: &str, batch: usize, bad: Option<usize>, n: usize) -> Yard {
        let dir = tempfile::Builder::new().prefix("bench-").tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("it was just made");
        let gt = |arguments: &[&str]| run(command(GT, &root).args(arguments));
        fs::write(root.join(".gitconfig"), "[user]\nname = agent\nemail = agent@example.org\n").expect("a directory");
        gt(&["init"]);
        run(command("git", &root).args(["init", "--quiet", "--initial-branch=main", "shop"]));
        run(command("git", &root).args(["-C", "shop", "commit", "--quiet", "--allow-empty", "--message=start"]));
        gt(&["rig", "add", "shop", "shop", "--prefix", "gt"]);
        fs::write(root.join("agent.sh"), AGENT).expect("the town can be written");
        let agent = root.join("agent.sh").display().to_string();
        let bad = bad.map(name).unwrap_or_default();
        let gate = format!("echo ran >> \"$GT_TOWN/gates\"; sleep {gate}; test ! -e bad");
        let config = format!(
            "runtime = \"process\"\ndefault_agent = \"bench\"\nscheduler.max_polecats = 4\nguards.load_per_core = 0\nguards.free_memory = \"0 B\"\nguards.free_disk = \"0 B\"\nguards.max_agents = 0\n\
             refinery.batch = {batch}\nrigs.shop.gates = [{gate:?}]\n\
             [agents.bench]\ncommand = [\"bash\", {agent:?}, {bad:?}]\nprompt = \"none\"\n"
        );
        fs::write(root.join("town.toml"), config).expect("the town can be written");
        let mut daemon = command(GT, &root);
        daemon.args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null());
        let yard = Yard { daemon: daemon.spawn().expect("the daemon starts"), dir, n };
        yard.pause(true);
        yard.finish_work();
        yard
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("it lives as long as the yard")
    }

    fn pause(&self, is_paused: bool) {
        let town = gt_engine::Town::at(&self.root()).expect("it is a town");
        let mut store = town.open_store().expect("the store is there");
        let stamp = Stamp::new(Timestamp::now(), "bench");
        if is_paused {
            store.pause_refinery(None, None, &stamp).expect("it can be written");
        } else {
            store.resume_refinery(None, &stamp).expect("it can be written");
        }
    }

    fn finish_work(&self) {
        let ids: Vec<String> = (0..self.n).map(name).collect();
        let lines: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}","title":"work {id}"}}"#)).collect();
        let path = self.root().join("beads.jsonl");
        fs::write(&path, lines.join("\n")).expect("the town can be written");
        run(command(GT, &self.root()).args(["bead", "import"]).arg(&path));
        run(command(GT, &self.root()).arg("sling").args(&ids));
        self.until("all is done", "SELECT count(*) FROM merge WHERE state = 'waiting'", self.n);
        self.until("all have gone", "SELECT count(*) FROM run WHERE state = 'ended'", self.n);
    }

    /// Lets the refinery go; returns when everything is merged or has come back.
    pub(crate) fn merge_all(&self) -> Tally {
        let start = Instant::now();
        self.pause(false);
        self.until("all is merged", "SELECT count(*) FROM merge WHERE state <> 'waiting'", self.n);
        let time = start.elapsed();
        let files = run(command("git", &self.root()).args(["-C", "shop", "ls-tree", "--name-only", "main"]));
        let gates = fs::read_to_string(self.root().join("gates")).unwrap_or_default();
        Tally {
            time,
            n_merged: files.lines().filter(|file| file.starts_with("gt-bench-")).count(),
            n_back: self.count("SELECT count(*) FROM merge WHERE state = 'returned'"),
            n_gates: gates.lines().count(),
        }
    }

    fn count(&self, sql: &str) -> usize {
        let store = Connection::open(self.root().join(".gt/town.db")).expect("the store is there");
        let n: u32 = store.query_row(sql, [], |row| row.get(0)).expect("it is SQL");
        usize::try_from(n).expect("it is small")
    }

    fn until(&self, what: &str, sql: &str, n: usize) {
        let (_sender, never) = std::sync::mpsc::channel::<()>();
        let deadline = Instant::now() + PATIENCE;
        while self.count(sql) < n {
            let status = || run(command(GT, &self.root()).arg("status"));
            assert!(Instant::now() < deadline, "waited in vain until {what}: {}", status());
            // The machine belongs to what is measured.
            never.recv_timeout(Duration::from_millis(10)).unwrap_or_default();
        }
    }
}

fn name(n: usize) -> String {
    format!("gt-bench-{n:02}")
}

fn command(program: &str, root: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root).env("HOME", root);
    command
}

pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Drop for Yard {
    fn drop(&mut self) {
        self.daemon.kill().unwrap_or_default();
        self.daemon.wait().map(drop).unwrap_or_default();
        // The keeper goes by itself when nobody calls and nothing runs.
    }
}
