//! Worktrees, with real git: made, found, reused, refused, and made anew after a crash.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gt_runtime::worktree::{
    Fingerprint, Leftover, LoneSubmodules, Prepared, WorktreeError, leftovers, prepare, remove, remove_saved, state,
};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::it::flocks::Held;
use crate::it::privileges::without_privileges;

struct Repository {
    root: TempDir,
    path: PathBuf,
}

impl Repository {
    /// With one commit on `main`.
    fn new() -> Self {
        let repository = Self::empty();
        repository.git(&["config", "user.email", "test@example.org"]);
        repository.git(&["config", "user.name", "Test"]);
        fs::write(repository.path.join("file"), "one\n").unwrap();
        repository.git(&["add", "."]);
        repository.git(&["commit", "--quiet", "-m", "first"]);
        repository
    }

    fn empty() -> Self {
        let root = TempDir::new().unwrap();
        let path = root.path().join("repository");
        git_in(root.path(), &["init", "--quiet", "-b", "main", "repository"]);
        Self { root, path }
    }

    fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.path, arguments)
    }

    fn worktree(&self) -> PathBuf {
        self.root.path().join("polecats/nux")
    }

    fn prepare(&self, branch: &str) -> Result<Prepared, WorktreeError> {
        prepare(&self.path, &self.worktree(), branch, "main")
    }

    /// As by a caller that has everything in it kept elsewhere.
    fn remove_saved(&self) -> Result<Option<PathBuf>, WorktreeError> {
        let seen = Fingerprint::of(&self.worktree());
        remove_saved(&self.path, &self.worktree(), &seen, LoneSubmodules::Kept)
    }

    fn commit_in_worktree(&self) {
        fs::write(self.worktree().join("work"), "done\n").unwrap();
        git_in(&self.worktree(), &["add", "."]);
        git_in(&self.worktree(), &["commit", "--quiet", "-m", "work"]);
    }

    /// The worktree is on `branch`, clean, and as far as `main`.
    fn assert_fresh(&self, branch: &str) {
        let state = state(&self.worktree(), "main").unwrap();
        assert_eq!((state.branch.as_deref(), state.is_dirty, state.n_ahead), (Some(branch), false, 0));
        assert_eq!(fs::read_to_string(self.worktree().join("file")).unwrap(), "one\n");
    }
}

fn git_in(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(dir).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_worktree_is_made_then_found_and_for_the_next_branch_reused() {
    let repository = Repository::new();
    assert_eq!(repository.prepare("gt/one").unwrap(), Prepared::Made);
    repository.assert_fresh("gt/one");
    repository.commit_in_worktree();
    assert_eq!(repository.prepare("gt/one").unwrap(), Prepared::Found);
    assert_eq!(state(&repository.worktree(), "main").unwrap().n_ahead, 1);
    assert_eq!(repository.prepare("gt/two").unwrap(), Prepared::Switched);
    repository.assert_fresh("gt/two");
    assert_eq!(repository.git(&["rev-list", "--count", "main..gt/one"]), "1");
}

#[test]
fn work_that_is_on_no_branch_is_never_thrown_away() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    for (name, text) in [("file", "changed\n"), ("new", "new\n")] {
        fs::write(repository.worktree().join(name), text).unwrap();
        assert!(state(&repository.worktree(), "main").unwrap().is_dirty);
        assert!(matches!(repository.prepare("gt/two"), Err(WorktreeError::Dirty { .. })));
        let refused = remove(&repository.path, &repository.worktree());
        assert!(matches!(refused, Err(WorktreeError::Dirty { .. })));
        git_in(&repository.worktree(), &["stash", "--quiet", "--include-untracked"]);
    }
    git_in(&repository.worktree(), &["checkout", "--quiet", "--detach"]);
    repository.commit_in_worktree();
    assert!(matches!(repository.prepare("gt/two"), Err(WorktreeError::Dirty { .. })));
    repository.remove_saved().unwrap();
    assert!(!repository.worktree().exists());
}

#[test]
fn removing_keeps_the_branch_and_may_be_repeated() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    repository.commit_in_worktree();
    remove(&repository.path, &repository.worktree()).unwrap();
    remove(&repository.path, &repository.worktree()).unwrap();
    assert!(!repository.worktree().exists());
    assert_eq!(repository.git(&["rev-list", "--count", "main..gt/one"]), "1");
}

#[test]
fn a_removal_that_was_killed_leaves_nothing_that_looks_like_work_and_the_next_one_ends_it() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    let place = repository.worktree();
    let aside = place.with_file_name(format!(".discarded-{}", place.file_name().unwrap().to_str().unwrap()));
    // As a removal has left it that was killed while it deleted: git knows the worktree still, its `.git` is gone.
    fs::rename(&place, &aside).unwrap();
    fs::remove_file(aside.join(".git")).unwrap();
    repository.prepare("gt/two").unwrap();
    assert!(place.join(".git").exists(), "the place can be used again");
    remove(&repository.path, &place).unwrap();
    assert!(!place.exists() && !aside.exists());
    assert_eq!(repository.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

#[test]
fn a_directory_that_is_something_else_is_refused_and_left_alone() {
    let repository = Repository::new();
    let other = Repository::new();
    fs::create_dir_all(repository.worktree()).unwrap();
    fs::write(repository.worktree().join("precious"), "text").unwrap();
    assert!(matches!(repository.prepare("gt/one"), Err(WorktreeError::NotAWorktree { .. })));
    assert!(matches!(repository.remove_saved(), Err(WorktreeError::NotAWorktree { .. })));
    assert!(repository.worktree().join("precious").exists());

    let theirs = prepare(&other.path, &repository.path, "gt/one", "main");
    assert!(matches!(theirs, Err(WorktreeError::NotAWorktree { .. })));
    let a_file = prepare(&other.path, &other.path.join("file"), "gt/one", "main");
    assert!(matches!(a_file, Err(WorktreeError::NotAWorktree { .. })));
    other.prepare("gt/one").unwrap();
    let of_another = prepare(&repository.path, &other.worktree(), "gt/one", "main");
    assert!(matches!(of_another, Err(WorktreeError::NotAWorktree { .. })));
}

#[test]
fn a_worktree_whose_making_was_killed_is_made_anew() {
    let repository = Repository::new();
    let (up, go) = (repository.root.path().join("up"), repository.root.path().join("go"));
    assert!(Command::new("mkfifo").args([&up, &go]).status().unwrap().success());
    fs::write(repository.path.join(".gitattributes"), "file filter=slow\n").unwrap();
    repository.git(&["add", "."]);
    repository.git(&["commit", "--quiet", "-m", "attributes"]);
    let slow = format!("echo up > {}; cat {}", up.display(), go.display());
    repository.git(&["config", "filter.slow.smudge", &slow]);

    let mut killed = Command::new("git");
    killed.arg("-C").arg(&repository.path).args(["worktree", "add", "-b", "gt/one"]).arg(repository.worktree());
    let mut killed = killed.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    fs::read_to_string(&up).unwrap();
    kill_process_group(Pid::from_child(&killed), Signal::KILL).unwrap();
    killed.wait().unwrap();
    assert!(repository.worktree().join(".git").exists());
    let desk = repository.path.join(".git/worktrees/nux");
    fs::write(desk.join("index.lock"), "").unwrap();

    repository.git(&["config", "filter.slow.smudge", "cat"]);
    assert_eq!(repository.prepare("gt/one").unwrap(), Prepared::Made);
    repository.assert_fresh("gt/one");
}

#[test]
fn traces_of_a_vanished_worktree_do_not_matter() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    let desk = repository.path.join(".git/worktrees/nux");
    fs::remove_dir_all(repository.worktree()).unwrap();
    assert_eq!(repository.prepare("gt/one").unwrap(), Prepared::Made);

    fs::remove_dir_all(repository.worktree()).unwrap();
    fs::write(desk.join("locked"), "initializing").unwrap();
    assert_eq!(repository.prepare("gt/one").unwrap(), Prepared::Made);

    fs::remove_file(repository.worktree().join("file")).unwrap();
    fs::remove_dir_all(&desk).unwrap();
    assert_eq!(repository.prepare("gt/one").unwrap(), Prepared::Made);
    repository.assert_fresh("gt/one");
}

#[test]
fn an_interrupted_switch_is_finished() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    repository.commit_in_worktree();
    let desk = repository.path.join(".git/worktrees/nux");
    fs::write(desk.join("gt-switching"), "gt/two").unwrap();
    for lock in ["index.lock", "HEAD.lock", "ORIG_HEAD.lock", "AUTO_MERGE.lock"] {
        fs::write(desk.join(lock), "").unwrap();
    }
    fs::remove_file(repository.worktree().join("work")).unwrap();
    fs::write(repository.worktree().join("half"), "made").unwrap();
    assert_eq!(repository.prepare("gt/two").unwrap(), Prepared::Switched);
    repository.assert_fresh("gt/two");
    assert!(!desk.join("gt-switching").exists());
}

#[test]
fn a_branch_of_an_attempt_that_came_to_nothing_is_used_and_one_with_commits_is_not() {
    let repository = Repository::new();
    repository.git(&["branch", "gt/nothing"]);
    assert_eq!(repository.prepare("gt/nothing").unwrap(), Prepared::Made);
    repository.commit_in_worktree();
    repository.git(&["branch", "gt/empty"]);
    assert_eq!(repository.prepare("gt/empty").unwrap(), Prepared::Switched);
    let taken = repository.prepare("gt/nothing").unwrap_err();
    assert_eq!(taken.to_string(), "the branch `gt/nothing` is there already, with commits that `main` does not have");
    repository.assert_fresh("gt/empty");
}

#[test]
fn bare_repositories_and_branches_of_the_origin_will_do() {
    let repository = Repository::new();
    let (bare, clone) = (repository.root.path().join("bare.git"), repository.root.path().join("clone"));
    repository.git(&["branch", "develop"]);
    repository.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    assert_eq!(prepare(&bare, &repository.worktree(), "gt/one", "develop").unwrap(), Prepared::Made);
    repository.git(&["clone", "--quiet", ".", clone.to_str().unwrap()]);
    let other = repository.root.path().join("polecats/ace");
    assert_eq!(prepare(&clone, &other, "gt/one", "develop").unwrap(), Prepared::Made);
    assert_eq!(state(&other, "develop").unwrap().branch.as_deref(), Some("gt/one"));
}

#[test]
fn an_empty_repository_and_a_missing_base_are_said_to_be_so() {
    let empty = Repository::empty();
    assert!(matches!(empty.prepare("gt/one"), Err(WorktreeError::NoCommits { .. })));
    let repository = Repository::new();
    let missing = prepare(&repository.path, &repository.worktree(), "gt/one", "trunk");
    assert!(matches!(missing, Err(WorktreeError::NoBase { .. })));
    let nowhere = prepare(repository.root.path(), &repository.worktree(), "gt/one", "main");
    assert!(matches!(nowhere, Err(WorktreeError::Git { .. })));
}

#[test]
fn many_may_prepare_in_one_repository_at_once() {
    let repository = Repository::new();
    let prepare_nth = |n: usize| {
        let path = repository.root.path().join(format!("polecats/p{}", n % 6));
        prepare(&repository.path, &path, &format!("gt/{}", n % 6), "main").unwrap()
    };
    let prepare_nth = &prepare_nth;
    let prepared: Vec<Prepared> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..12).map(|n| scope.spawn(move || prepare_nth(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(prepared.iter().filter(|prepared| **prepared == Prepared::Made).count(), 6);
    assert_eq!(prepared.iter().filter(|prepared| **prepared == Prepared::Found).count(), 6);
}

/// A worktree with a submodule, and a commit in that which nobody else has.
fn with_commit_in_submodule(repository: &Repository) -> String {
    let lib = Repository::new();
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.path.to_str().unwrap(), "lib"];
    repository.git(&add);
    repository.git(&["commit", "--quiet", "-m", "a submodule"]);
    repository.prepare("gt/one").unwrap();
    let update = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"];
    git_in(&repository.worktree(), &update);
    let inner = repository.worktree().join("lib");
    let identity = ["-c", "user.email=test@example.org", "-c", "user.name=Test"];
    git_in(&inner, &[&identity[..], &["commit", "--quiet", "--allow-empty", "-m", "inner"]].concat());
    let made = git_in(&inner, &["rev-parse", "HEAD"]);
    git_in(&inner, &["branch", "side"]);
    git_in(&inner, &["checkout", "--quiet", "HEAD~1"]);
    made
}

#[test]
fn commits_that_only_a_submodule_of_it_has_outlive_a_worktree() {
    for is_gone in [false, true] {
        let repository = Repository::new();
        let made = with_commit_in_submodule(&repository);
        if is_gone {
            fs::remove_dir_all(repository.worktree()).unwrap();
            repository.prepare("gt/two").unwrap();
        } else {
            let seen = Fingerprint::of(&repository.worktree());
            let saved = remove_saved(&repository.path, &repository.worktree(), &seen, LoneSubmodules::Refused);
            for refused in [remove(&repository.path, &repository.worktree()), saved] {
                assert!(matches!(refused, Err(WorktreeError::LoneSubmodule { .. })), "{refused:?}");
            }
            repository.remove_saved().unwrap();
        }
        let mut kept = fs::read_dir(repository.path.join(".git/gt-submodules")).unwrap();
        let kept = git_in(&kept.next().unwrap().unwrap().path(), &["rev-parse", "side"]);
        assert_eq!(kept, made);
    }
}

#[test]
fn a_worktree_whose_changes_are_kept_elsewhere_is_removed_with_them() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    fs::write(repository.worktree().join("new"), "changed").unwrap();
    let refused = remove(&repository.path, &repository.worktree());
    assert!(matches!(refused, Err(WorktreeError::Dirty { .. })), "{refused:?}");
    repository.remove_saved().unwrap();
    assert!(!repository.worktree().exists());
    repository.remove_saved().unwrap();
}

#[test]
fn a_stash_that_only_a_submodule_of_it_has_is_not_thrown_away() {
    let repository = Repository::new();
    with_commit_in_submodule(&repository);
    let inner = repository.worktree().join("lib");
    git_in(&inner, &["branch", "--quiet", "-D", "side"]);
    fs::write(inner.join("file"), "precious\n").unwrap();
    let identity = ["-c", "user.email=test@example.org", "-c", "user.name=Test"];
    git_in(&inner, &[&identity[..], &["stash", "--quiet"]].concat());
    let refused = remove(&repository.path, &repository.worktree());
    assert!(matches!(refused, Err(WorktreeError::LoneSubmodule { .. })), "{refused:?}");
}

#[test]
fn what_is_written_after_it_was_looked_at_keeps_a_worktree() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    let (place, seen) = (repository.worktree(), Fingerprint::of(&repository.worktree()));
    for name in ["file", "new"] {
        fs::write(place.join(name), "precious").unwrap();
        let refused = remove_saved(&repository.path, &place, &seen, LoneSubmodules::Kept);
        assert!(matches!(refused, Err(WorktreeError::Changed { .. })), "{refused:?}");
        assert_eq!(fs::read_to_string(place.join(name)).unwrap(), "precious");
        fs::remove_file(place.join("new")).ok();
    }
    assert_eq!(state(&place, "main").unwrap().branch.as_deref(), Some("gt/one"), "it can be used as before");
}

/// Another process may be about to give the worktree to an agent.
#[test]
fn a_removal_waits_for_its_turn_and_looks_again_then() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    let place = repository.worktree();
    let others_turn = Held::take(&repository.path.join(".git/gt-worktree.lock"));
    let refused = std::thread::scope(|scope| {
        let removing = scope.spawn(|| remove(&repository.path, &place));
        others_turn.until_awaited_by(&removing);
        fs::write(place.join("new"), "precious").unwrap();
        drop(others_turn);
        removing.join().unwrap()
    });
    assert!(matches!(refused, Err(WorktreeError::Dirty { .. } | WorktreeError::Changed { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(place.join("new")).unwrap(), "precious");
}

#[test]
fn a_worktree_that_a_killed_removal_was_looking_at_is_put_back() {
    for is_prepared in [false, true] {
        let repository = Repository::new();
        repository.prepare("gt/one").unwrap();
        let place = repository.worktree();
        fs::write(place.join("new"), "precious").unwrap();
        fs::rename(&place, place.with_file_name(".checking-nux")).unwrap();
        let refused = if is_prepared {
            repository.prepare("gt/two").map(drop)
        } else {
            remove(&repository.path, &place).map(drop)
        };
        assert!(matches!(refused, Err(WorktreeError::Dirty { .. } | WorktreeError::Changed { .. })), "{refused:?}");
        assert_eq!(fs::read_to_string(place.join("new")).unwrap(), "precious");
        assert_eq!(leftovers(place.parent().unwrap()), []);
    }
}

#[test]
fn what_cannot_be_deleted_is_in_the_way_of_no_other_removal() {
    let repository = Repository::new();
    repository.prepare("gt/one").unwrap();
    let place = repository.worktree();
    // A file where a directory is expected cannot be deleted like one.
    let stuck = place.with_file_name(".discarded-nux");
    fs::write(&stuck, "").unwrap();
    for branch in ["gt/one", "gt/two"] {
        repository.prepare(branch).unwrap();
        assert_eq!(remove(&repository.path, &place).unwrap(), None);
        assert!(!place.exists());
        assert_eq!(leftovers(place.parent().unwrap()), [Leftover::Undeleted(stuck.clone())]);
    }
}

#[test]
fn write_protected_directories_are_deleted() {
    without_privileges(|| {
        let repository = Repository::new();
        fs::write(repository.path.join(".gitignore"), "cache\n").unwrap();
        repository.git(&["add", "."]);
        repository.git(&["commit", "--quiet", "-m", "ignore"]);
        for branch in ["gt/one", "gt/two"] {
            repository.prepare(branch).unwrap();
            let cache = repository.worktree().join("cache");
            fs::create_dir_all(cache.join("deep")).unwrap();
            fs::write(cache.join("deep/m"), "x").unwrap();
            for dir in [&cache.join("deep"), &cache] {
                fs::set_permissions(dir, fs::Permissions::from_mode(0o555)).unwrap();
            }
            assert!(fs::write(cache.join("deep/n"), "x").is_err(), "they are write-protected");
            assert_eq!(remove(&repository.path, &repository.worktree()).unwrap(), None);
            assert_eq!(fs::read_dir(repository.worktree().parent().unwrap()).unwrap().count(), 0);
        }
    });
}
