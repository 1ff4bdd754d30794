//! A town with a waiting daemon, for the benchmark.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::agent;

const GT: &str = env!("CARGO_BIN_EXE_gt");
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Town {
    dir: TempDir,
    daemon: Child,
    argv: Vec<String>,
}

impl Town {
    pub(crate) fn new(cap: usize, role: &str) -> Town {
        Town::new_in("process", cap, role)
    }

    pub(crate) fn new_in(runtime: &str, cap: usize, role: &str) -> Town {
        let dir = tempfile::Builder::new().prefix("bench-").tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("it was just made");
        let argv = agent::argv(role, &root);
        let gt = |arguments: &[&str]| run(Command::new(GT).current_dir(&root).args(arguments));
        gt(&["init"]);
        run(Command::new("git").current_dir(&root).args(["init", "--quiet", "--initial-branch=main", "shop"]));
        gt(&["rig", "add", "shop", "shop", "--prefix", "gt"]);
        let config = format!(
            "runtime = {runtime:?}\ndefault_agent = \"bench\"\nscheduler.max_polecats = {cap}\n\
             rigs.shop.isolation = \"none\"\nguards.load_per_core = 0\nguards.free_memory = \"0 B\"\nguards.free_disk = \"0 B\"\nguards.max_agents = 0\n[agents.bench]\ncommand = {argv:?}\nprompt = \"none\"\n"
        );
        fs::write(root.join("town.toml"), config).expect("the town can be written");
        run(Command::new("mkfifo").arg(root.join("gate")));
        let mut command = Command::new(GT);
        command.current_dir(&root).args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null());
        let daemon = command.spawn().expect("the daemon starts");
        let town = Town { dir, daemon, argv };
        let deadline = Instant::now() + PATIENCE;
        while town.try_gt(&["daemon", "status"]).is_none() {
            assert!(Instant::now() < deadline, "the daemon does not start");
        }
        town
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("it lives as long as the town")
    }

    pub(crate) fn kill_daemon(&mut self) {
        self.daemon.kill().unwrap_or_default();
        self.daemon.wait().map(drop).unwrap_or_default();
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.id()
    }

    pub(crate) fn gt(&self, arguments: &[&str]) -> String {
        run(Command::new(GT).current_dir(self.root()).args(arguments))
    }

    fn try_gt(&self, arguments: &[&str]) -> Option<String> {
        let output = Command::new(GT).current_dir(self.root()).args(arguments).output().expect("gt starts");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes beads in one import, each waiting for the blocker.
    pub(crate) fn create(&self, n: usize, blocker: Option<&str>) -> Vec<String> {
        let ids: Vec<String> = (0..n).map(|_| fresh_id()).collect();
        let wait = |id: &str| match blocker {
            Some(blocker) => {
                format!(r#","dependencies":[{{"issue_id":"{id}","depends_on_id":"{blocker}","type":"blocks"}}]"#)
            }
            None => String::new(),
        };
        let lines: Vec<String> = ids
            .iter()
            .map(|id| format!(r#"{{"id":"{id}","title":"work {id}","status":"open"{}}}"#, wait(id)))
            .collect();
        self.import(&lines);
        ids
    }

    /// Makes beads of which each waits for the one before.
    pub(crate) fn create_chain(&self, n: usize) -> Vec<String> {
        let ids: Vec<String> = (0..n).map(|_| fresh_id()).collect();
        let line = |at: usize| {
            let id = &ids[at];
            let wait = match at {
                0 => String::new(),
                _ => format!(
                    r#","dependencies":[{{"issue_id":"{id}","depends_on_id":"{}","type":"blocks"}}]"#,
                    ids[at - 1]
                ),
            };
            format!(r#"{{"id":"{id}","title":"link {id}","status":"open"{wait}}}"#)
        };
        self.import(&(0..n).map(line).collect::<Vec<_>>());
        ids
    }

    fn import(&self, lines: &[String]) {
        let path = self.root().join("beads.jsonl");
        fs::write(&path, lines.join("\n")).expect("the town can be written");
        self.gt(&["bead", "import", &path.display().to_string()]);
    }

    pub(crate) fn forget_stamps(&self) {
        fs::write(self.root().join("stamps"), "").expect("the town can be written");
    }

    /// Waits until so many agents have noted their time, and returns the last.
    pub(crate) fn await_stamps(&self, n: usize) -> Duration {
        let path = self.root().join("stamps");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if text.lines().count() >= n && text.ends_with('\n') {
                let last = text.lines().filter_map(|line| line.parse().ok()).max().expect("there are some");
                return Duration::from_nanos(last);
            }
            assert!(Instant::now() < deadline, "agents do not start: {}", self.gt(&["status"]));
            // The machine belongs to what is measured.
            wait(Duration::from_millis(5));
        }
    }

    /// Closes beads and lets their agents go; returns when all is quiet.
    pub(crate) fn finish(&self, beads: &[String]) {
        self.gt(&[&["close"], beads.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat());
        let deadline = Instant::now() + PATIENCE;
        loop {
            open_gate(&self.root());
            let status: Value = serde_json::from_str(&self.gt(&["scheduler", "status", "--json"])).expect("JSON");
            if status["active_polecats"] == 0 {
                return;
            }
            assert!(Instant::now() < deadline, "agents do not end: {status}");
            wait(Duration::from_millis(5));
        }
    }

    pub(crate) fn await_closed(&self, bead: &str) {
        let deadline = Instant::now() + PATIENCE;
        let store = rusqlite::Connection::open(self.root().join(".gt/town.db")).expect("the store is there");
        let mut query = store.prepare("SELECT status FROM bead WHERE id = ?1").expect("a statement");
        loop {
            let status: String = query.query_row([bead], |row| row.get(0)).expect("the bead is there");
            if status == "closed" {
                return;
            }
            assert!(Instant::now() < deadline, "the chain does not end: {}", self.gt(&["status"]));
            wait(Duration::from_millis(2));
        }
    }

    /// The agents' command with an environment and a log like theirs, started by hand.
    pub(crate) fn bare(&self, argv: &[String], n: usize) -> Command {
        let root = self.root();
        let log = fs::File::create(root.join(format!("bare-{n}.log"))).expect("the town can be written");
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).current_dir(root.join("shop")).process_group(0);
        for name in [
            "GT_TOWN",
            "GT_RUN",
            "GT_BEAD",
            "GT_RIG",
            "GT_POLECAT",
            "GT_AGENT",
            "GT_BRANCH",
            "GT_BASE_BRANCH",
            "GT_KEEPER",
        ] {
            command.env(name, format!("{}/{n}", root.display()));
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a handle")).stderr(log);
        command
    }

    pub(crate) fn argv(&self) -> &[String] {
        &self.argv
    }
}

fn fresh_id() -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(1000);
    format!("gt-b{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Waits without burning the cores that are measured.
fn wait(span: Duration) {
    let (_sender, never) = std::sync::mpsc::channel::<()>();
    never.recv_timeout(span).unwrap_or_default();
}

/// Lets everybody go who waits at the gate.
pub(crate) fn open_gate(root: &Path) {
    use std::os::unix::fs::OpenOptionsExt as _;
    // Without anybody at the other end this fails, which is fine.
    fs::OpenOptions::new().write(true).custom_flags(0o4000).open(root.join("gate")).map(drop).unwrap_or_default();
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Drop for Town {
    fn drop(&mut self) {
        self.kill_daemon();
        open_gate(&self.root());
        // The keeper goes by itself when nobody calls and nothing runs.
    }
}
