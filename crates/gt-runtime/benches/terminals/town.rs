//! A town for one measurement: a keeper's directory, and runs that wait to be ended.

use std::path::PathBuf;

use gt_runtime::process::ProcessRuntime;
use gt_runtime::terminal::Server;
use gt_runtime::{Known, Launch, Place, Runtime, Sighting, Stop};
use tempfile::TempDir;

pub(crate) struct Town {
    root: TempDir,
}

impl Town {
    pub(crate) fn new() -> Self {
        Self { root: TempDir::new().expect("there is room") }
    }

    pub(crate) fn exists(&self) -> bool {
        self.root.path().exists()
    }

    fn keeper_dir(&self) -> PathBuf {
        self.root.path().join("keeper")
    }

    pub(crate) fn runtime(&self) -> ProcessRuntime {
        ProcessRuntime::new(self.keeper_dir(), vec![env!("CARGO_BIN_EXE_gt-keeper").into(), self.keeper_dir().into()])
    }

    /// With as large an environment as a person's.
    pub(crate) fn launch(&self, run: &str, place: Place) -> Launch {
        let mut env: Vec<(String, String)> =
            (0..40).map(|n| (format!("VARIABLE_{n}"), "some value".repeat(3))).collect();
        env.push(("PATH".to_owned(), "/usr/bin:/bin".to_owned()));
        Launch {
            run: run.to_owned(),
            session: format!("test-{run}"),
            argv: ["sleep", "1000"].map(str::to_owned).to_vec(),
            dir: self.root.path().to_owned(),
            env,
            stdin: None,
            log: self.root.path().join(format!("{run}.log")),
            errors: None,
            place,
        }
    }

    /// Ends and forgets everything.
    pub(crate) fn end_all(&self, runtime: &mut ProcessRuntime) {
        for run in self.live(runtime) {
            runtime.stop(&Known { run, handle: None, log: None }, Stop::Now).expect("the keeper answers");
        }
        self.await_live(runtime, 0);
        let ended: Vec<String> = runtime.survey(&[]).expect("the keeper answers").into_keys().collect();
        runtime.acknowledge(&ended).expect("the keeper answers");
    }

    pub(crate) fn await_live(&self, runtime: &mut ProcessRuntime, n_live: usize) {
        while self.live(runtime).len() > n_live {
            std::thread::yield_now();
        }
    }

    fn live(&self, runtime: &mut ProcessRuntime) -> Vec<String> {
        assert!(self.exists());
        let seen = runtime.survey(&[]).expect("the keeper answers");
        seen.into_iter().filter(|(_, sighting)| matches!(sighting, Sighting::Running(_))).map(|(run, _)| run).collect()
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        let mut runtime = self.runtime();
        self.end_all(&mut runtime);
        Server::of(&self.keeper_dir()).command().arg("kill-server").output().ok();
    }
}
