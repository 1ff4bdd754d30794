//! The origin: where a target stands there, pushes that are taken, refused or too late, and one that does not answer.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_runtime::merge::{Base, Makers, MergeError, base, brought, push, push_branch, unpublished};
use jiff::{SignedDuration, Timestamp};

use super::{LONG, Lifeline, Yard, commit, git};

fn base_of(repository: &Path) -> Result<Base, MergeError> {
    base(repository, "main", true, LONG)
}

#[test]
fn without_an_origin_the_base_is_the_branch_here() {
    let yard = Yard::new();
    assert_eq!(base_of(&yard.rig).unwrap(), Base { commit: yard.tip("main"), has_remote: false });
    assert!(matches!(base(&yard.rig, "trunk", true, LONG), Err(MergeError::NoTarget { .. })));
}

#[test]
fn the_base_is_here_or_there_whichever_is_ahead() {
    let yard = Yard::with_origin();
    assert_eq!(base_of(&yard.rig).unwrap(), Base { commit: yard.tip("main"), has_remote: true });
    let theirs = yard.other_pushes("theirs");
    assert_eq!(base_of(&yard.rig).unwrap().commit, theirs);
    git(&yard.rig, &["merge", "--quiet", "--ff-only", "origin/main"]);
    let ours = commit(&yard.rig, "ours", "");
    assert_eq!(base_of(&yard.rig).unwrap().commit, ours);

    let later = yard.other_pushes("later");
    match base_of(&yard.rig) {
        Err(MergeError::Parted { target, here, there, .. }) => {
            assert_eq!((target.as_str(), here, there), ("main", ours, later));
        }
        other => panic!("they have parted, but: {other:?}"),
    }
}

#[test]
fn an_origin_that_is_left_alone_is_not_asked_and_parts_nothing() {
    let yard = Yard::with_origin();
    let known = yard.other_pushes("theirs");
    git(&yard.rig, &["fetch", "--quiet", "origin"]);
    let ours = commit(&yard.rig, "ours", "");
    yard.other_pushes("later");
    let here = base(&yard.rig, "main", false, LONG).unwrap();
    assert_eq!(here, Base { commit: ours, has_remote: false });
    assert_eq!(git(&yard.rig, &["rev-parse", "origin/main"]), known, "it was asked");
}

#[test]
fn what_a_push_would_publish_is_what_no_branch_of_the_origin_has() {
    let yard = Yard::with_origin();
    let draft = commit(&yard.rig, "draft", "");
    let ours = commit(&yard.rig, "ours", "");
    let ids = |commit: &str| unpublished(&yard.rig, commit).unwrap().into_iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids("main"), [ours.clone(), draft.clone()]);
    git(&yard.rig, &["push", "--quiet", "origin", &format!("{draft}:refs/heads/elsewhere")]);
    assert_eq!(ids("main"), [ours]);
}

#[test]
fn what_a_merge_brings_is_not_what_the_target_had_before() {
    let yard = Yard::new();
    let base = yard.tip("main");
    let taken_back = commit(&yard.rig, "draft", "");
    let own = yard.work("work", "own", "");
    assert_eq!(
        brought(&yard.rig, "main", &taken_back, &own, makers(Timestamp::MIN)).unwrap().as_slice(),
        std::slice::from_ref(&own)
    );
    git(&yard.rig, &["reset", "--quiet", "--hard", &base]);
    assert_eq!(brought(&yard.rig, "main", &base, &own, makers(Timestamp::MIN)).unwrap(), [own]);
}

fn makers(since: Timestamp) -> Makers<'static> {
    Makers { branches: &["mine", "work"], folder: "polecat/", since }
}

#[test]
fn what_an_agent_merges_from_a_branch_of_a_persons_is_not_what_it_brings() {
    let yard = Yard::new();
    let base = yard.tip("main");
    let [draft, older, ours] =
        [("draft", "a"), ("mine", "b"), ("polecat/x", "c")].map(|(name, file)| yard.work(name, file, ""));
    let tree = yard.worktree("work");
    let theirs = commit(&tree, "own", "");
    git(&tree, &["merge", "--quiet", "--no-edit", "draft", "mine", "polecat/x"]);
    let tip = git(&tree, &["rev-parse", "HEAD"]);
    let brings = |since| {
        let mut brought = brought(&yard.rig, "main", &base, &tip, makers(since)).unwrap();
        brought.sort();
        brought
    };
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let agents = [tip.clone(), theirs, older, ours];
    assert_eq!(brings(Timestamp::now() + SignedDuration::from_hours(1)), sorted(agents.to_vec()));
    // A branch that was made since is the agent's.
    assert_eq!(brings(Timestamp::now() - SignedDuration::from_hours(1)), sorted([&agents[..], &[draft]].concat()));
}

#[test]
fn a_target_that_only_one_side_has_will_do() {
    let yard = Yard::with_origin();
    git(&yard.rig, &["branch", "ours"]);
    git(&yard.path("origin.git"), &["branch", "theirs", "main"]);
    for target in ["ours", "theirs"] {
        assert_eq!(base(&yard.rig, target, true, LONG).unwrap().commit, yard.tip("main"));
    }
    assert!(matches!(base(&yard.rig, "trunk", true, LONG), Err(MergeError::NoTarget { .. })));
    git(yard.root.path(), &["init", "--quiet", "--bare", "empty.git"]);
    git(&yard.rig, &["remote", "set-url", "origin", yard.path("empty.git").to_str().unwrap()]);
    assert_eq!(base_of(&yard.rig).unwrap().commit, yard.tip("main"));
}

#[test]
fn clones_that_fetch_nothing_or_everything_by_themselves_learn_of_the_target() {
    let yard = Yard::with_origin();
    git(yard.root.path(), &["clone", "--quiet", "--bare", "origin.git", "bare.git"]);
    git(yard.root.path(), &["clone", "--quiet", "--mirror", "origin.git", "mirror.git"]);
    let old = yard.tip("main");
    let theirs = yard.other_pushes("theirs");
    for name in ["bare.git", "mirror.git"] {
        assert_eq!(base_of(&yard.path(name)).unwrap().commit, theirs);
        assert_eq!(git(&yard.path(name), &["rev-parse", "refs/heads/main"]), old, "no branch is moved by looking");
    }
}

#[test]
fn an_origin_that_is_not_there_is_an_error() {
    let yard = Yard::with_origin();
    fs::remove_dir_all(yard.path("origin.git")).unwrap();
    match base_of(&yard.rig) {
        Err(MergeError::Remote { said }) => assert!(said.contains("does not appear to be a git repository"), "{said}"),
        other => panic!("there is no origin, but: {other:?}"),
    }
    assert!(matches!(push(&yard.rig, "main", "main", LONG), Err(MergeError::Remote { .. })));
}

#[test]
fn an_origin_that_does_not_answer_is_given_up() {
    let yard = Yard::with_origin();
    let (program, lifeline) = (yard.path("hangs"), Lifeline::new(yard.path("lifeline")));
    fs::write(&program, format!("#!/bin/sh\n{}\nsleep 600\n", lifeline.held())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    git(&yard.rig, &["config", "remote.origin.uploadpack", program.to_str().unwrap()]);
    let started = Instant::now();
    match base(&yard.rig, "main", true, Duration::from_secs(1)) {
        Err(MergeError::Remote { said }) => assert_eq!(said, "it took longer than 1 second"),
        other => panic!("nobody answered, but: {other:?}"),
    }
    assert!(started.elapsed() < LONG);
    lifeline.wait_until_dropped();
}

#[test]
fn a_push_moves_the_target_there_and_may_be_repeated() {
    let yard = Yard::with_origin();
    let work = yard.work("gt/one", "work", "done\n");
    for _ in 0..2 {
        push(&yard.rig, &work, "main", LONG).unwrap();
    }
    assert_eq!(git(&yard.path("origin.git"), &["rev-parse", "main"]), work);
    push(&yard.rig, &work, "new", LONG).unwrap();
    assert_eq!(git(&yard.path("origin.git"), &["rev-parse", "new"]), work);
    assert!(matches!(push(&yard.rig, "nothing", "main", LONG), Err(MergeError::NoCommit { .. })));
}

#[test]
fn a_push_that_comes_too_late_changes_nothing() {
    let yard = Yard::with_origin();
    let work = yard.work("gt/one", "work", "done\n");
    let theirs = yard.other_pushes("theirs");
    assert!(matches!(push(&yard.rig, &work, "main", LONG), Err(MergeError::Moved { .. })));
    // Also after a fetch, when git knows beforehand.
    base_of(&yard.rig).unwrap();
    assert!(matches!(push(&yard.rig, &work, "main", LONG), Err(MergeError::Moved { .. })));
    assert_eq!(git(&yard.path("origin.git"), &["rev-parse", "main"]), theirs);
}

#[test]
fn a_push_that_is_overtaken_while_it_is_taken_changes_nothing() {
    let yard = Yard::with_origin();
    let work = yard.work("gt/one", "work", "done\n");
    let other = yard.other();
    let theirs = commit(&other, "theirs", "");
    git(&other, &["push", "--quiet", "origin", "HEAD:refs/heads/side"]);
    // Between what the origin promised and the moment it takes the push, somebody else moves the target.
    let hook = format!("git update-ref refs/heads/main {theirs}");
    write_hook(&yard.path("origin.git"), "update", &hook);
    assert!(matches!(push(&yard.rig, &work, "main", LONG), Err(MergeError::Moved { .. })));
    assert_eq!(git(&yard.path("origin.git"), &["rev-parse", "main"]), theirs);
}

#[test]
fn a_push_that_the_origin_does_not_want_says_why() {
    let yard = Yard::with_origin();
    let work = yard.work("gt/one", "work", "done\n");
    write_hook(&yard.path("origin.git"), "pre-receive", "echo first; echo 'main is protected'; exit 1");
    match push(&yard.rig, &work, "main", LONG) {
        Err(MergeError::Refused { said }) => {
            assert_eq!(said, "[remote rejected] (pre-receive hook declined): first\nmain is protected");
        }
        other => panic!("the hook does not want it, but: {other:?}"),
    }
}

#[test]
fn a_branch_that_nobody_may_push_to_is_the_origins_matter() {
    let yard = Yard::with_origin();
    let work = yard.work("gt/one", "work", "done\n");
    git(&yard.path("origin.git"), &["config", "core.bare", "false"]);
    assert!(matches!(push(&yard.rig, &work, "main", LONG), Err(MergeError::Closed { .. })));
}

#[test]
fn what_hosts_say_of_a_branch_that_is_not_pushed_to_is_understood() {
    let yard = Yard::with_origin();
    let work = yard.work("gt/one", "work", "done\n");
    for said in [
        "GitLab: You are not allowed to push code to protected branches on this project.",
        "- Changes must be made through a pull request.",
        "Branch refs/heads/main can only be modified through pull requests.",
        "fatal: write error: No space left on device",
    ] {
        write_hook(&yard.path("origin.git"), "pre-receive", &format!("echo first; echo '{said}'; exit 1"));
        match push(&yard.rig, &work, "main", LONG) {
            Err(MergeError::Closed { said: told }) => {
                assert_eq!(told, format!("[remote rejected] (pre-receive hook declined): {said}"));
            }
            other => panic!("nobody may push there ({said}), but: {other:?}"),
        }
    }
}

#[test]
fn a_branch_of_ours_is_replaced_there_unless_somebody_added_to_it() {
    let yard = Yard::with_origin();
    let base = yard.tip("main");
    let (one, two) = (yard.work("gt/one", "work", "1\n"), yard.work("gt/two", "work", "2\n"));
    for commit in [&one, &one, &two] {
        push_branch(&yard.rig, commit, &base, "gt/request", LONG).unwrap();
        assert_eq!(&git(&yard.path("origin.git"), &["rev-parse", "gt/request"]), commit);
    }
    let other = yard.other();
    git(&other, &["checkout", "--quiet", "gt/request"]);
    let theirs = commit(&other, "review", "better\n");
    git(&other, &["push", "--quiet", "origin", "gt/request"]);
    assert!(matches!(push_branch(&yard.rig, &one, &base, "gt/request", LONG), Err(MergeError::Moved { .. })));
    assert_eq!(git(&yard.path("origin.git"), &["rev-parse", "gt/request"]), theirs);
}

fn write_hook(repository: &Path, name: &str, script: &str) {
    let path = repository.join("hooks").join(name);
    fs::create_dir_all(repository.join("hooks")).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}
