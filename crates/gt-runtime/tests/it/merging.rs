//! Merging, with real git: a repository, an origin, and what can be in the way between them.

mod gates;
mod halfway;
mod history;
mod landing;
mod locks;
mod remotes;
mod salvaging;
mod stacking;
mod unseen;

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use tempfile::TempDir;

/// No call that is waited for takes as long, unless something is wrong.
const LONG: Duration = Duration::from_mins(3);

/// A directory with repositories in it.
struct Yard {
    root: TempDir,
    /// On `main`, with one commit of the file `file`.
    rig: PathBuf,
}

impl Yard {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let rig = root.path().join("rig");
        git(root.path(), &["init", "--quiet", "-b", "main", "rig"]);
        identify(&rig);
        commit(&rig, "file", "one\n");
        Self { root, rig }
    }

    /// As above, and `main` is at a bare origin too.
    fn with_origin() -> Self {
        let yard = Self::new();
        git(&yard.rig, &["clone", "--quiet", "--bare", ".", yard.path("origin.git").to_str().unwrap()]);
        git(&yard.rig, &["remote", "add", "origin", yard.path("origin.git").to_str().unwrap()]);
        git(&yard.rig, &["fetch", "--quiet", "origin"]);
        yard
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Somebody else's clone of the origin.
    fn other(&self) -> PathBuf {
        let other = self.path("other");
        git(self.root.path(), &["clone", "--quiet", "origin.git", "other"]);
        identify(&other);
        other
    }

    /// Somebody else pushes a commit to `main`.
    fn other_pushes(&self, file: &str) -> String {
        let other = self.other();
        let pushed = commit(&other, file, "theirs\n");
        git(&other, &["push", "--quiet", "origin", "main"]);
        fs::remove_dir_all(other).unwrap();
        pushed
    }

    /// A worktree with a branch of its own.
    fn worktree(&self, branch: &str) -> PathBuf {
        let path = self.path(&branch.replace('/', "-"));
        git(&self.rig, &["worktree", "add", "--quiet", "-b", branch, path.to_str().unwrap(), "main"]);
        path
    }

    /// A commit on top of `main` that is on a branch of its own.
    fn work(&self, branch: &str, file: &str, text: &str) -> String {
        let path = self.worktree(branch);
        let made = commit(&path, file, text);
        git(&self.rig, &["worktree", "remove", path.to_str().unwrap()]);
        made
    }

    fn tip(&self, name: &str) -> String {
        git(&self.rig, &["rev-parse", name])
    }
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(dir).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn identify(repository: &Path) {
    git(repository, &["config", "user.email", "test@example.org"]);
    git(repository, &["config", "user.name", "Test"]);
}

fn commit(dir: &Path, file: &str, text: &str) -> String {
    fs::write(dir.join(file), text).unwrap();
    git(dir, &["add", "--force", file]);
    git(dir, &["commit", "--quiet", "-m", &format!("change {file}")]);
    git(dir, &["rev-parse", "HEAD"])
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

/// Shows that processes are gone: they hold it open for as long as they live.
struct Lifeline {
    reader: File,
    path: PathBuf,
}

impl Lifeline {
    fn new(path: PathBuf) -> Self {
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let reader = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path).unwrap();
        fcntl_setfl(&reader, OFlags::empty()).unwrap();
        Self { reader, path }
    }

    /// What a shell does to hold it, and its children with it; it says so in one byte.
    fn held(&self) -> String {
        format!("exec 9>{}; printf . >&9", self.path.display())
    }

    /// Waits until somebody holds it.
    fn wait_until_held(&mut self) {
        // Without a writer, reading ends at once.
        let _writer = OpenOptions::new().write(true).open(&self.path).unwrap();
        self.reader.read_exact(&mut [0]).unwrap();
    }

    /// Waits until nobody holds it any more.
    fn wait_until_dropped(mut self) {
        self.reader.read_to_end(&mut Vec::new()).unwrap();
    }
}
