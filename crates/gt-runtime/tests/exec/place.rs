//! A place for one test: a town's directory, programs to call, the project's example, and ways to wait for facts.
//!
//! Where the test may become another user, the example's agents are that user; so everything lies where anybody may go.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use gt_runtime::exec::ExecRuntime;
use gt_runtime::{Ending, Handle, Known, Launch, Runtime, Sighting};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

/// Longer than anything takes on a very busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// What was told: a run and its end, or that somebody should look.
pub(crate) type Told = Option<(String, Ending)>;

pub(crate) struct Place {
    root: TempDir,
    news: RefCell<Option<Receiver<Told>>>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = TempDir::with_prefix("exec-").unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o711)).unwrap();
        fs::create_dir(root.path().join("town")).unwrap();
        Self { root, news: RefCell::new(None) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn town(&self) -> PathBuf {
        self.path("town")
    }

    /// A runtime whose program is this shell script; `$verb` is what is asked.
    pub(crate) fn script(&self, body: &str) -> ExecRuntime {
        self.write_script("program", body);
        self.runtime(&["./program"])
    }

    pub(crate) fn write_script(&self, name: &str, body: &str) {
        let path = self.town().join(name);
        fs::write(&path, format!("#!/bin/sh\nfor verb; do :; done\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn runtime(&self, argv: &[&str]) -> ExecRuntime {
        ExecRuntime::new(argv.iter().map(OsString::from).collect(), self.town())
    }

    /// The project's example; its agents are somebody else where that is possible.
    pub(crate) fn host(&self) -> ExecRuntime {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/exec/other-host");
        let other = self.path("other");
        // The system's own interpreter is there for every user, and quicker than one that stands in for it.
        let path = format!("PATH=/usr/bin:/bin:{}", std::env::var("PATH").unwrap_or_default());
        let mut argv = vec!["env", &path, program.to_str().unwrap(), "--place", other.to_str().unwrap()];
        if geteuid().is_root() {
            argv.extend(["--user", "nobody"]);
        }
        self.runtime(&argv)
    }

    /// Has a runtime tell what `next_news` waits for.
    pub(crate) fn watch(&self, runtime: &mut ExecRuntime) {
        let (sender, receiver) = channel();
        runtime.watch(Box::new(move |told| sender.send(told).unwrap_or_default())).unwrap();
        *self.news.borrow_mut() = Some(receiver);
    }

    pub(crate) fn next_news(&self) -> Told {
        let news = self.news.borrow();
        news.as_ref().expect("the runtime is watched").recv_timeout(PATIENCE).expect("news in time")
    }

    /// Whether nothing is told for a while.
    pub(crate) fn is_quiet_for(&self, span: Duration) -> bool {
        self.news.borrow().as_ref().expect("the runtime is watched").recv_timeout(span).is_err()
    }

    pub(crate) fn launch(&self, run: &str, script: &str) -> Launch {
        let env = [("PATH", "/usr/bin:/bin"), ("GT_RUN", run), ("SECRET", "hush")];
        Launch {
            run: run.to_owned(),
            session: format!("test-{run}"),
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            dir: self.town(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            stdin: None,
            log: self.path(&format!("{run}.log")),
            errors: None,
            place: gt_runtime::Place::Process,
        }
    }

    /// A pipe with a name that anybody may use.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let status = Command::new("mkfifo").args(["-m", "666"]).arg(&path).status().unwrap();
        assert!(status.success());
        path
    }

    pub(crate) fn log(&self, run: &str) -> String {
        fs::read_to_string(self.path(&format!("{run}.log"))).unwrap_or_default()
    }

    /// Processes that have to do with this place: programs that are called with it, and what they started.
    pub(crate) fn processes(&self, word: &str) -> Vec<u32> {
        let root = self.root.path().to_str().unwrap();
        let holds = |pid: u32, file: &str, what: &str| {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(what)
        };
        let is_ours =
            |pid: &u32| (holds(*pid, "cmdline", root) || holds(*pid, "environ", root)) && holds(*pid, "cmdline", word);
        pids().filter(|pid| *pid != std::process::id()).filter(is_ours).filter(|pid| is_alive(*pid)).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Supervisors first, so that none of them starts something anew.
        self.processes("supervise").into_iter().chain(self.processes("")).for_each(kill);
        self.processes("").into_iter().for_each(kill);
    }
}

/// Looks until the run has ended.
pub(crate) fn ending(runtime: &mut dyn Runtime, run: &str) -> Ending {
    let mut ending = None;
    until("the run has ended", || {
        if let Some(Sighting::Ended(seen)) = runtime.survey(&[known(run)]).unwrap().remove(run) {
            ending = Some(seen);
        }
        ending.is_some()
    });
    ending.unwrap()
}

pub(crate) fn known(run: &str) -> Known {
    Known { run: run.to_owned(), handle: Some(Handle::ELSEWHERE), log: None }
}

pub(crate) fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).ok();
}

/// Looks again and again, giving others the processor: for facts that nobody announces.
pub(crate) fn until(fact: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let (_never, pause) = channel::<()>();
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {fact}");
        pause.recv_timeout(Duration::from_millis(5)).unwrap_or_default();
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z') && !fields.starts_with('X'))
}

/// The number a script wrote to a file.
pub(crate) fn pid_in(path: &Path) -> u32 {
    let read = || fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'));
    until("a process number is written", || read().is_some());
    read().unwrap().trim().parse().unwrap()
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|dir| dir.file_name().to_str()?.parse().ok())
}
