//! A town for one test: a keeper's directory, agents that are small shell scripts, and ways to wait for facts.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use gt_runtime::process::ProcessRuntime;
use gt_runtime::terminal::Server;
use gt_runtime::{Ending, Handle, Known, Launch, Runtime, Sighting};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::place::{PROCESS, Place};

/// Longer than anything takes on a very busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

pub(crate) struct Town {
    root: TempDir,
    keeper_dir: PathBuf,
    place: &'static Place,
    news: RefCell<Option<Receiver<()>>>,
}

impl Town {
    pub(crate) fn new() -> Self {
        Self::new_in(&PROCESS)
    }

    pub(crate) fn new_in(place: &'static Place) -> Self {
        let root = TempDir::new().unwrap();
        let keeper_dir = root.path().join("keeper");
        Self { root, keeper_dir, place, news: RefCell::new(None) }
    }

    /// Another town in the same place.
    pub(crate) fn other(&self) -> Self {
        Self::new_in(self.place)
    }

    pub(crate) fn with_keeper_in(&self, below: &Path) -> Self {
        let root = TempDir::new().unwrap();
        let keeper_dir = root.path().join(below);
        fs::create_dir_all(keeper_dir.parent().unwrap()).unwrap();
        Self { root, keeper_dir, place: self.place, news: RefCell::new(None) }
    }

    pub(crate) fn place(&self) -> &'static Place {
        self.place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn keeper_dir(&self) -> &Path {
        &self.keeper_dir
    }

    pub(crate) fn runtime(&self) -> Box<dyn Runtime> {
        (self.place.runtime)(self)
    }

    pub(crate) fn process_runtime(&self) -> ProcessRuntime {
        let argv = vec![OsString::from(env!("CARGO_BIN_EXE_gt-keeper")), self.keeper_dir.clone().into_os_string()];
        ProcessRuntime::new(self.keeper_dir.clone(), argv)
    }

    /// A runtime whose news `until` waits for.
    pub(crate) fn watched_runtime(&self) -> Box<dyn Runtime> {
        let mut runtime = self.runtime();
        let (sender, receiver) = channel();
        runtime.watch(Box::new(move |_| _ = sender.send(()).ok())).unwrap();
        *self.news.borrow_mut() = Some(receiver);
        runtime
    }

    pub(crate) fn launch(&self, run: &str, script: &str) -> Launch {
        let env = [("PATH", "/usr/bin:/bin"), ("GT_RUN", run), ("TOWN", self.root.path().to_str().unwrap())];
        Launch {
            run: run.to_owned(),
            session: format!("test-{run}"),
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            dir: self.root.path().to_owned(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            stdin: None,
            log: self.path(&format!("{run}.log")),
            errors: None,
            place: self.place.launch,
        }
    }

    pub(crate) fn start(&self, runtime: &mut dyn Runtime, run: &str, script: &str) -> Handle {
        runtime.start(&[self.launch(run, script)]).remove(0).unwrap()
    }

    /// Surveys after every news, until the run has ended.
    pub(crate) fn ending(&self, runtime: &mut dyn Runtime, known: &Known) -> Ending {
        loop {
            if let Some(Sighting::Ended(ending)) =
                runtime.survey(std::slice::from_ref(known)).unwrap().remove(&known.run)
            {
                return ending;
            }
            self.wait_for_news();
        }
    }

    pub(crate) fn wait_for_news(&self) {
        let news = self.news.borrow();
        news.as_ref().expect("the runtime is watched").recv_timeout(PATIENCE).expect("news in time");
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let status = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(status.success());
        path
    }

    pub(crate) fn log(&self, run: &str) -> String {
        fs::read_to_string(self.path(&format!("{run}.log"))).unwrap_or_default()
    }

    /// What the keepers had to say.
    pub(crate) fn keeper_log(&self) -> String {
        fs::read_to_string(self.keeper_dir.join("keeper.log")).unwrap_or_default()
    }

    pub(crate) fn keeper_pid(&self) -> u32 {
        keepers_of(&self.keeper_dir).first().copied().expect("a keeper runs")
    }

    pub(crate) fn keeper_pids(&self) -> Vec<u32> {
        keepers_of(&self.keeper_dir)
    }

    /// Kills the keeper and waits until it is gone.
    pub(crate) fn kill_keeper(&self) {
        let pid = self.keeper_pid();
        kill(pid);
        until("the keeper is gone", || !is_alive(pid));
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        let is_agent = |pid: u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mark = format!("TOWN={}", self.root.path().display());
            environ.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes())
        };
        let server = Server::of(&self.keeper_dir);
        // Until twice nothing is seen: one that is just executing its program shows neither words nor environment, and a
        // keeper may have been starting others.
        let (mut n_clean, deadline) = (0, Instant::now() + PATIENCE);
        let (_never, pause) = channel::<()>();
        while n_clean < 2 && Instant::now() < deadline {
            let agents = pids().filter(|pid| is_agent(*pid) && is_alive(*pid));
            let left: Vec<u32> =
                keepers_of(&self.keeper_dir).into_iter().chain(tmuxes_of(&server)).chain(agents).collect();
            n_clean = if left.is_empty() { n_clean + 1 } else { 0 };
            left.into_iter().for_each(kill);
            pause.recv_timeout(Duration::from_millis(2)).ok();
        }
        fs::remove_file(server.socket()).ok();
    }
}

pub(crate) fn known(run: &str, handle: Option<&Handle>) -> Known {
    Known { run: run.to_owned(), handle: handle.cloned(), log: None }
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
        assert_eq!(pause.recv_timeout(Duration::from_millis(2)), Err(RecvTimeoutError::Timeout));
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z') && !fields.starts_with('X'))
}

/// The number an agent's script wrote to a file.
pub(crate) fn pid_in(path: &Path) -> u32 {
    let read = || fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'));
    until("a process number is written", || read().is_some());
    read().unwrap().trim().parse().unwrap()
}

pub(crate) fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|dir| dir.file_name().to_str()?.parse().ok())
}

/// The server and all clients of it.
pub(crate) fn tmuxes_of(server: &Server) -> Vec<u32> {
    let named = format!("\0-L\0{}\0", server.name()).into_bytes();
    let is_one = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.windows(named.len()).any(|part| part == named)
    };
    pids().filter(is_one).filter(|pid| is_alive(*pid)).collect()
}

fn keepers_of(dir: &Path) -> Vec<u32> {
    let wanted = [env!("CARGO_BIN_EXE_gt-keeper").as_bytes(), dir.as_os_str().as_encoded_bytes(), b""].join(&0);
    let is_keeper = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words == wanted);
    pids().filter(is_keeper).filter(|pid| is_alive(*pid)).collect()
}
