//! The simulated git answers as the real one does: the same stories, told to both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gt_engine::surroundings::{Git, RealGit};
use gt_runtime::merge::{Makers, MergeError};
use gt_sim::around::Around;
use gt_sim::faults::Faults;
use gt_sim::git::{Author, Checkout, Head, Repository, Tree, here};
use gt_sim::stage::Stage;
use jiff::Timestamp;
use tempfile::TempDir;

const MAKERS: Makers<'static> = Makers { branches: &[], folder: "polecat/", since: Timestamp::MIN };

/// A repository whose `main` is checked out, with two files.
trait Town {
    fn git(&self) -> &dyn Git;
    fn repository(&self) -> PathBuf;
    /// A branch at another one.
    fn branch(&self, name: &str, at: &str);
    /// Changes a file on a branch that nobody has checked out, and commits that.
    fn commit(&self, branch: &str, file: &str, content: &str) -> String;
    /// Writes a file in the checkout.
    fn edit(&self, file: &str, content: &str);
    fn read(&self, file: &str) -> Option<String>;
}

struct Real {
    dir: TempDir,
}

fn git(dir: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(dir).args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]).args(words);
    let output = command.output().expect("git can be run");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Real {
    fn new() -> Real {
        let dir = TempDir::with_prefix("gt-sim-git-").expect("a directory can be made");
        let root = dir.path().join("repo");
        fs::create_dir(&root).expect("it can be made");
        git(&root, &["init", "--quiet", "--initial-branch=main"]);
        for file in ["a", "b"] {
            fs::write(root.join(file), "0\n").expect("it can be written");
        }
        git(&root, &["add", "."]);
        git(&root, &["commit", "--quiet", "-m", "begin"]);
        Real { dir }
    }
}

impl Town for Real {
    fn git(&self) -> &dyn Git {
        &RealGit
    }

    fn repository(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn branch(&self, name: &str, at: &str) {
        git(&self.repository(), &["branch", "--quiet", name, at]);
    }

    fn commit(&self, branch: &str, file: &str, content: &str) -> String {
        let tree = self.dir.path().join("tree");
        git(&self.repository(), &["worktree", "add", "--quiet", &tree.display().to_string(), branch]);
        fs::write(tree.join(file), format!("{content}\n")).expect("it can be written");
        git(&tree, &["add", "."]);
        git(&tree, &["commit", "--quiet", "-m", "work"]);
        let commit = git(&tree, &["rev-parse", "HEAD"]);
        git(&self.repository(), &["worktree", "remove", "--force", &tree.display().to_string()]);
        commit
    }

    fn edit(&self, file: &str, content: &str) {
        fs::write(self.repository().join(file), format!("{content}\n")).expect("it can be written");
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.repository().join(file)).ok().map(|text| text.trim().to_owned())
    }
}

struct Simulated {
    stage: Stage,
    around: Around,
    root: PathBuf,
}

impl Simulated {
    fn new() -> Simulated {
        let stage = Stage::set(0, false, false);
        let root = stage.ground.town.root().join("shop");
        {
            let mut world = stage.world().lock();
            world.faults = Faults::none(0);
            let tree: Tree = ["a", "b"].map(|file| (file.to_owned(), "0".to_owned())).into();
            let first = world.git.objects.add(&[], tree.clone(), "begin", Author::Person, 0);
            let mut repository = Repository::default();
            repository.set_branch("main", &first, true);
            repository.checkouts.insert(root.clone(), Checkout::new(Head::Branch("main".to_owned()), &tree));
            world.git.repositories.insert(root.clone(), repository);
        }
        let around = stage.ground.around(1);
        Simulated { stage, around, root }
    }
}

impl Town for Simulated {
    fn git(&self) -> &dyn Git {
        &self.around
    }

    fn repository(&self) -> PathBuf {
        self.root.clone()
    }

    fn branch(&self, name: &str, at: &str) {
        let mut world = self.stage.world().lock();
        let tip = world.git.resolve(&self.root, &here(at)).expect("the branch is there");
        world.git.at(&self.root).expect("the repository is there").1.set_branch(name, &tip, false);
    }

    fn commit(&self, branch: &str, file: &str, content: &str) -> String {
        let mut world = self.stage.world().lock();
        let tip = world.git.resolve(&self.root, &here(branch)).expect("the branch is there");
        let mut tree = world.git.objects.tree(&tip).clone();
        tree.insert(file.to_owned(), content.to_owned());
        let commit = world.git.objects.add(&[tip], tree, "work", Author::Agent, 0);
        world.git.at(&self.root).expect("the repository is there").1.set_branch(branch, &commit, true);
        commit
    }

    fn edit(&self, file: &str, content: &str) {
        self.stage.world().lock().git.write(&self.root, file, Some(content));
    }

    fn read(&self, file: &str) -> Option<String> {
        let world = self.stage.world().lock();
        world.git.repositories[&self.root].checkouts[&self.root].files.get(file).cloned()
    }
}

/// What an answer comes to, without the names that differ from town to town.
fn word<T: std::fmt::Debug>(answer: &Result<T, MergeError>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(MergeError::Moved { .. }) => "moved".to_owned(),
        Err(MergeError::NotOnTop { .. }) => "not on top".to_owned(),
        Err(MergeError::InTheWay { files, .. }) => format!("in the way: {files:?}"),
        Err(MergeError::NoCommit { .. }) => "no commit".to_owned(),
        Err(MergeError::NoTarget { .. }) => "no target".to_owned(),
        Err(other) => format!("{other}"),
    }
}

/// Tells a story to both, and both say the same.
fn compare(story: impl Fn(&dyn Town) -> Vec<String>) -> Vec<String> {
    let (real, simulated) = (story(&Real::new()), story(&Simulated::new()));
    assert_eq!(real, simulated, "the real git (left) and the simulated one (right) differ");
    real
}

/// Merges a branch on top of `main`, and seals that.
fn sealed(town: &dyn Town, branch: &str) -> Result<String, String> {
    let (git, root) = (town.git(), town.repository());
    let bench = git.bench(&root, &root.with_file_name("bench")).expect("it can be made");
    let base = git.branch_tip(&root, "main").ok().flatten().expect("main is there");
    let tip = git.branch_tip(&root, branch).ok().flatten().expect("the branch is there");
    bench.reset(&base).expect("it can be reset");
    match bench.merge(&tip, "merge it") {
        Ok(gt_runtime::merge::Stacked::Done { tip }) => {
            Ok(git.seal(&root, &base, &tip, "merge it").expect("it is on top"))
        }
        other => Err(word(&other)),
    }
}

#[test]
fn a_branch_lands_in_a_checkout_and_is_deleted() {
    let said = compare(|town| {
        let (git, root) = (town.git(), town.repository());
        town.branch("polecat/x", "main");
        let tip = town.commit("polecat/x", "new", "1");
        let main = git.branch_tip(&root, "main").ok().flatten().expect("main is there");
        let landed = sealed(town, "polecat/x").expect("nothing conflicts");
        let before = word(&git.delete_branch(&root, "polecat/x", "main"));
        let brought = git.brought(&root, "main", &main, &landed, MAKERS).expect("it is looked at");
        let moved = word(&git.land(&root, "main", &main, &landed));
        let again = word(&git.land(&root, "main", &main, &landed));
        let is_there = word(&git.is_part_of(&root, &tip, "refs/heads/main"));
        let deleted = word(&git.delete_branch(&root, "polecat/x", "main"));
        vec![before, brought.len().to_string(), moved, again, format!("{:?}", town.read("new")), is_there, deleted]
    });
    assert_eq!(said, ["false", "2", "()", "()", "Some(\"1\")", "true", "true"]);
}

#[test]
fn what_both_have_changed_conflicts_and_the_same_change_does_not() {
    let said = compare(|town| {
        for (branch, content) in [("one", "1"), ("other", "2"), ("same", "1")] {
            town.branch(branch, "main");
            town.commit(branch, "a", content);
        }
        let main = town.git().branch_tip(&town.repository(), "main").ok().flatten().expect("main is there");
        let landed = sealed(town, "one").expect("nothing conflicts");
        let moved = word(&town.git().land(&town.repository(), "main", &main, &landed));
        let other = sealed(town, "other").map(drop);
        vec![moved, format!("{other:?}"), format!("{:?}", sealed(town, "same").map(drop))]
    });
    assert_eq!(said[1], "Err(\"Conflict { files: [\\\"a\\\"] }\")");
    assert_eq!(said[2], "Ok(())");
}

#[test]
fn a_persons_files_are_in_the_way_of_what_changes_them_alone() {
    let said = compare(|town| {
        let (git, root) = (town.git(), town.repository());
        let main = git.branch_tip(&root, "main").ok().flatten().expect("main is there");
        for (branch, file) in [("one", "a"), ("other", "b"), ("new", "c")] {
            town.branch(branch, "main");
            town.commit(branch, file, "1");
        }
        let landed: Vec<String> =
            ["one", "other", "new"].iter().map(|branch| sealed(town, branch).expect("nothing conflicts")).collect();
        town.edit("a", "mine");
        town.edit("c", "mine");
        let can: Vec<String> = landed.iter().map(|commit| word(&git.can_land(&root, "main", commit))).collect();
        let refused = word(&git.land(&root, "main", &main, &landed[0]));
        let moved = word(&git.land(&root, "main", &main, &landed[1]));
        let files = ["a", "b", "c"].map(|file| format!("{:?}", town.read(file)));
        [can, vec![refused, moved], files.to_vec()].concat()
    });
    assert_eq!(said[3], "in the way: [\"a\"]");
    assert_eq!(said[5..], ["Some(\"mine\")", "Some(\"1\")", "Some(\"mine\")"]);
}

#[test]
fn a_target_moves_forward_only_and_only_from_where_it_was() {
    let said = compare(|town| {
        let (git, root) = (town.git(), town.repository());
        let main = git.branch_tip(&root, "main").ok().flatten().expect("main is there");
        for branch in ["one", "other"] {
            town.branch(branch, "main");
            town.commit(branch, branch, "1");
        }
        let (one, other) = (sealed(town, "one").expect("no conflict"), sealed(town, "other").expect("no conflict"));
        let first = word(&git.land(&root, "main", &main, &one));
        let late = word(&git.land(&root, "main", &main, &other));
        let not_on_top = word(&git.land(&root, "main", &one, &other));
        let sealed = word(&git.seal(&root, &one, &other, "x").map(drop));
        vec![first, late, not_on_top, sealed]
    });
    assert_eq!(said, ["()", "moved", "not on top", "not on top"]);
}

#[test]
fn work_is_there_by_its_commits_or_by_the_same_changes() {
    let said = compare(|town| {
        let (git, root) = (town.git(), town.repository());
        for branch in ["old", "picked", "different"] {
            town.branch(branch, "main");
        }
        let old = town.commit("old", "a", "1");
        town.commit("picked", "b", "1");
        town.commit("picked", "a", "1");
        town.commit("different", "a", "2");
        let has = |of: &str| word(&git.has_work_of(&root, &old, &here(of)));
        vec![has("old"), has("picked"), has("different"), has("main")]
    });
    assert_eq!(said, ["true", "true", "false", "false"]);
}

#[test]
fn refs_keep_commits_until_they_are_forgotten() {
    let said = compare(|town| {
        let (git, root) = (town.git(), town.repository());
        town.branch("polecat/x", "main");
        let tip = town.commit("polecat/x", "a", "1");
        let kept = word(&git.keep(&root, "refs/gt/merges/m1", &tip));
        let names = |prefix| git.kept(&root, prefix).map(|all| all.into_iter().map(|one| one.0).collect::<Vec<_>>());
        let there = word(&names("refs/gt/merges/"));
        let main = git.branch_tip(&root, "main").ok().flatten().expect("main is there");
        let other = word(&git.forget_at(&root, "refs/gt/merges/m1", &main));
        let found = word(&git.find_commit(&root, "refs/gt/merges/m1").map(|found| found == Some(tip.clone())));
        let forgotten = word(&git.forget(&root, "refs/gt/merges/m1"));
        let none = word(&git.find_commit(&root, "refs/gt/merges/m1"));
        let base = git.base(&root, "main", true, Duration::from_mins(1)).map(|base| base.has_remote);
        let gone = word(&git.base(&root, "none", true, Duration::from_mins(1)).map(drop));
        vec![kept, there, other, found, forgotten, none, word(&base), gone, word(&git.branches(&root, "polecat/"))]
    });
    assert_eq!(said[7], "no target");
}
