//! `gt done` and the refinery, killed at each of their steps and called again; and what `gt done` refuses.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;

use gt_engine::crash::CrashPoint;

use super::{COMMITS, WORKS, add_origin, assert_merged_once, files, git, sling};
use crate::fleet::{Fleet, count};
use crate::town::{Answer, Call};

const BEAD: &str = "gt-a";
const SIGKILL: i32 = 9;

/// An agent that waits in its worktree while the test speaks for it. No daemon runs.
struct Scene {
    fleet: Fleet,
    run: String,
    worktree: PathBuf,
}

impl Scene {
    /// `before` is what the agent does first.
    fn new(before: &str, words: &[&str]) -> Scene {
        Scene::in_fleet(super::fleet(""), before, words)
    }

    fn in_fleet(fleet: Fleet, before: &str, words: &[&str]) -> Scene {
        fleet.script(&format!(
            "{before}\npwd > \"$HOME/at.new\"; mv \"$HOME/at.new\" \"$HOME/at\"\n\
             while [ ! -e \"$HOME/over\" ]; do sleep 0.02; done"
        ));
        sling(&fleet, &[BEAD], words);
        fleet.town.gt(["scheduler", "run"]).success();
        fleet.await_file("at");
        let worktree = std::fs::read_to_string(fleet.home("at")).expect("it was just written");
        let run = fleet.started_runs().remove(0);
        Scene { run, worktree: PathBuf::from(worktree.trim()), fleet }
    }

    fn call(&self, arguments: &[&str]) -> Call<'_> {
        self.fleet.town.call(["done"].iter().chain(arguments)).env("GT_RUN", &self.run).at(&self.worktree)
    }

    fn done(&self, arguments: &[&str]) -> Answer {
        self.call(arguments).env("GT_TOWN", self.fleet.town.root()).run()
    }

    /// `gt done` that is to die at a point.
    fn die_at(&self, point: CrashPoint) {
        let call = self.call(&[]).env("GT_TOWN", self.fleet.town.root()).env("GT_CRASH_AT", point.name());
        let output = call.spawn().wait_with_output().expect("the binary can be waited for");
        assert_eq!(output.status.signal(), Some(SIGKILL), "{}: {output:?}", point.name());
    }

    fn git(&self, arguments: &[&str]) {
        let worktree = self.worktree.display().to_string();
        self.fleet.town.git(&[&["-C", worktree.as_str()], arguments].concat());
    }

    /// The agent ends; all that follows has happened.
    fn end(&self) {
        self.fleet.open_gate("over");
        self.fleet.until_done(&[BEAD.to_owned()]);
    }

    /// A refusal: says so, ends with `code`, and has changed neither store nor refs.
    fn refused(&self, arguments: &[&str], code: i32) -> Answer {
        let refs = || git(&self.fleet, "shop", &["for-each-ref"]);
        let before = (self.fleet.town.state(), refs());
        let answer = self.done(arguments);
        assert_eq!(answer.code, code, "{answer}");
        assert!(before == (self.fleet.town.state(), refs()), "a refused `gt done` changed something: {answer}");
        answer
    }
}

fn done_dies_and_is_called_again(strategy: &str, points: &[CrashPoint]) {
    for point in points {
        let fleet = super::fleet("");
        add_origin(&fleet);
        let scene = Scene::in_fleet(fleet, COMMITS, &["--merge", strategy]);
        scene.die_at(*point);
        scene.done(&[]).success();
        scene.done(&[]).success();
        scene.end();
        assert_merged_once(&scene.fleet, BEAD);
        assert_eq!(git(&scene.fleet, "shop", &["rev-list", "--first-parent", "--count", "main"]), "2", "{point:?}");
        let there = git(&scene.fleet, "origin.git", &["rev-parse", "main"]);
        assert_eq!(git(&scene.fleet, "shop", &["rev-parse", "main"]), there, "{point:?}: here and there differ");
        assert_eq!(git(&scene.fleet, "shop", &["status", "--porcelain"]), "", "{point:?}: the checkout");
        assert_eq!(count(&scene.fleet.town.events(), "run.ended", Some(BEAD)), 1);
        scene.fleet.assert_at_rest(&[BEAD.to_owned()]);
    }
}

#[test]
fn done_killed_at_each_step_and_called_again_is_merged_once_by_the_refinery() {
    done_dies_and_is_called_again("mr", &[CrashPoint::KeptCommit, CrashPoint::HandedOver, CrashPoint::Committed]);
}

#[test]
fn done_killed_at_each_step_and_called_again_is_merged_once_directly() {
    done_dies_and_is_called_again(
        "direct",
        &[
            CrashPoint::KeptCommit,
            CrashPoint::HandedOver,
            CrashPoint::Stacked,
            CrashPoint::GatesPassed,
            CrashPoint::Pushed,
            CrashPoint::Landed,
            CrashPoint::RecordedMerge,
            CrashPoint::Committed,
        ],
    );
}

#[test]
fn a_daemon_killed_at_each_step_of_merging_has_merged_once() {
    let points = [
        CrashPoint::Stacked,
        CrashPoint::GatesPassed,
        CrashPoint::Pushed,
        CrashPoint::Landed,
        CrashPoint::RecordedMerge,
    ];
    for point in points {
        let fleet = super::fleet(WORKS);
        add_origin(&fleet);
        fleet.start_daemon_with(&[("GT_CRASH_AT", point.name())]);
        let beads = sling(&fleet, &["gt-a", "gt-b"], &[]);
        fleet.await_daemon_death();
        fleet.start_daemon();
        fleet.until_done(&beads);
        for bead in &beads {
            assert_merged_once(&fleet, bead);
        }
        let there = git(&fleet, "origin.git", &["rev-parse", "main"]);
        assert_eq!(git(&fleet, "shop", &["rev-parse", "main"]), there, "{point:?}: here and there differ");
        // What the dead one left is cleared away with the next.
        let beads = [beads, sling(&fleet, &["gt-c"], &[])].concat();
        fleet.until_done(&beads);
        fleet.until_seen("kept commits let go", || git(&fleet, "shop", &["for-each-ref", "refs/gt/merges"]).is_empty());
        fleet.assert_at_rest(&beads);
    }
}

#[test]
fn what_was_pushed_before_a_death_is_here_too_before_others_start_on_it() {
    let fleet = super::fleet(&format!("ls > \"$HOME/seen-$GT_BEAD\"\n{WORKS}"));
    add_origin(&fleet);
    fleet.hold_lines(&[
        r#"{"id":"gt-a","title":"first"}"#,
        r#"{"id":"gt-b","title":"second","dependencies":[{"issue_id":"gt-b","depends_on_id":"gt-a","type":"blocks"}]}"#,
    ]);
    fleet.start_daemon_with(&[("GT_CRASH_AT", CrashPoint::Pushed.name())]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.await_daemon_death();
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    let seen = std::fs::read_to_string(fleet.home("seen-gt-b")).expect("it has looked");
    assert_eq!(seen, "gt-a.txt\n", "the second began without the first one's work");
}

#[test]
fn a_stale_run_changes_nothing() {
    let scene = Scene::new(COMMITS, &[]);
    scene.fleet.script(&format!("touch \"$HOME/second\"; while [ ! -e \"$HOME/over\" ]; do sleep 0.02; done; {WORKS}"));
    scene.fleet.town.gt(["polecat", "stop", "Toast"]).success();
    scene.fleet.until_events("run.ended", Some(BEAD), 1);
    scene.fleet.town.gt(["sling", BEAD]).success();
    scene.fleet.town.gt(["scheduler", "run"]).success();
    scene.fleet.await_file("second");
    let answer = scene.refused(&[], 1);
    assert!(answer.stderr.contains("run"), "{answer}");
    scene.end();
    assert_merged_once(&scene.fleet, BEAD);
}

#[test]
fn a_run_without_changes_says_so_and_closes_only_when_told() {
    let scene = Scene::new("", &[]);
    let answer = scene.refused(&[], 1);
    assert!(answer.stderr.contains("there is nothing to merge"), "{answer}");
    scene.done(&["--no-changes"]).success();
    scene.end();
    assert_eq!(count(&scene.fleet.town.events(), "merge.queued", None), 0);
    assert_eq!(files(&scene.fleet, "main"), Vec::<String>::new());
    scene.fleet.assert_at_rest(&[BEAD.to_owned()]);
}

#[test]
fn uncommitted_work_is_refused_whether_new_staged_or_changed() {
    let scene = Scene::new(COMMITS, &[]);
    let file = scene.worktree.join("new.txt");
    std::fs::write(&file, "new\n").expect("the worktree can be written");
    assert!(scene.refused(&[], 1).stderr.contains("uncommitted"), "new");
    scene.git(&["add", "new.txt"]);
    assert!(scene.refused(&[], 1).stderr.contains("uncommitted"), "staged");
    assert!(scene.refused(&["--no-changes"], 1).stderr.contains("uncommitted"), "told that there are none");
    scene.git(&["commit", "--quiet", "--message=work on more"]);
    std::fs::write(&file, "changed\n").expect("the worktree can be written");
    assert!(scene.refused(&[], 1).stderr.contains("uncommitted"), "changed");
    scene.git(&["checkout", "--quiet", "new.txt"]);
    scene.done(&[]).success();
    scene.end();
    assert_merged_once(&scene.fleet, BEAD);
    assert_eq!(files(&scene.fleet, "main"), ["gt-a.txt", "new.txt"]);
}

#[test]
fn work_on_a_branch_of_the_agents_own_making_is_merged() {
    let scene = Scene::new(COMMITS, &[]);
    scene.git(&["switch", "--quiet", "--create", "feature/mine"]);
    std::fs::write(scene.worktree.join("more.txt"), "more\n").expect("the worktree can be written");
    scene.git(&["add", "--all"]);
    scene.git(&["commit", "--quiet", "--message=more"]);
    scene.done(&[]).success();
    scene.end();
    assert_merged_once(&scene.fleet, BEAD);
    assert_eq!(files(&scene.fleet, "main"), ["gt-a.txt", "more.txt"]);
}

#[test]
fn a_detached_head_is_refused_and_nothing_of_it_is_lost() {
    let scene = Scene::new(COMMITS, &[]);
    scene.git(&["switch", "--quiet", "--detach"]);
    let answer = scene.refused(&[], 1);
    assert!(answer.stderr.contains("no branch is checked out"), "{answer}");
    std::fs::write(scene.worktree.join("more.txt"), "more\n").expect("the worktree can be written");
    scene.git(&["add", "--all"]);
    scene.git(&["commit", "--quiet", "--message=more"]);
    let answer = scene.refused(&[], 1);
    assert!(answer.stderr.contains("on no branch"), "{answer}");
    scene.git(&["switch", "--quiet", "--create", "found-again"]);
    scene.done(&[]).success();
    scene.end();
    assert_eq!(files(&scene.fleet, "main"), ["gt-a.txt", "more.txt"]);
}
