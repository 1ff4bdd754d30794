//! Worktrees of a large repository: one that is used again beside one that is made anew.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use gt_runtime::worktree;

use crate::show;
use crate::yard::run;

const ROUNDS: usize = 5;
const FILES_IN_FOLDER: usize = 100;

/// Medians.
pub(crate) struct Trees {
    n_files: usize,
    made: Duration,
    reused: Duration,
}

/// A polecat's next run, on a branch that starts from a base which has moved by one file.
pub(crate) fn measure(n_files: usize) -> Trees {
    eprintln!("worktrees of {n_files} files …");
    let dir = tempfile::Builder::new().prefix("bench-").tempdir().expect("a temporary directory");
    let (repository, tree) = (dir.path().join("repository"), dir.path().join("tree"));
    make_repository(&repository, n_files);
    let mut n = 0;
    let mut prepare = || {
        n += 1;
        advance(&repository, n);
        let start = Instant::now();
        worktree::prepare(&repository, &tree, &format!("run-{n}"), "main").expect("a worktree can be made");
        start.elapsed()
    };
    prepare();
    let reused = median((0..ROUNDS).map(|_| prepare()).collect());
    let made = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        worktree::remove(&repository, &tree).expect("nothing is in it");
        let removed = start.elapsed();
        removed + prepare()
    });
    Trees { n_files, made: median(made.collect()), reused }
}

fn make_repository(path: &Path, n_files: usize) {
    for folder in 0..n_files / FILES_IN_FOLDER {
        let folder = path.join(format!("folder-{folder}"));
        fs::create_dir_all(&folder).expect("a directory");
        for file in 0..FILES_IN_FOLDER {
            let text = format!("{} {file}\n", folder.display()).repeat(20);
            fs::write(folder.join(format!("file-{file}")), text).expect("a file");
        }
    }
    git(path, &["init", "--quiet", "--initial-branch=main"]);
    commit(path, "start");
}

fn advance(repository: &Path, n: usize) {
    fs::write(repository.join("counter"), n.to_string()).expect("a file");
    commit(repository, "next");
}

fn commit(repository: &Path, message: &str) {
    git(repository, &["add", "--all"]);
    git(repository, &["-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "--quiet", "-m", message]);
}

fn git(dir: &Path, arguments: &[&str]) {
    run(Command::new("git").current_dir(dir).args(arguments));
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

impl Trees {
    pub(crate) fn table(&self) -> String {
        let ratio = self.made.as_secs_f64() / self.reused.as_secs_f64();
        format!(
            "| the worktree of the next run, {} files | time | |\n|---|--:|---|\n\
             | removed and made anew | {} | |\n| used again, as it is done | {} | {ratio:.1} times as fast |",
            self.n_files,
            show(self.made),
            show(self.reused)
        )
    }
}
