//! Targets that nobody may push to: what the command is asked, and when.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::thread;

use gt_core::merge::{MergeState, Strategy};
use gt_engine::refinery;
use gt_engine::surroundings::Machine;
use jiff::SignedDuration;

use crate::yard::{Yard, git, stamp, target};

const BY_REQUEST: &str = "[rigs.shop]\npull_request = [\"bash\", \"HOME/request.sh\"]\n";
/// Writes down what it is asked, and answers what the file `answer` says.
const COMMAND: &str = "cd \"$(dirname \"$0\")\"\necho \"$1 ${2:-$GT_BEAD}\" >> asked\n\
                       if [ \"$1\" = open ]; then echo \"request-$GT_MERGE\"; else cat answer; fi\n";

fn yard() -> Yard {
    let yard = Yard::new(BY_REQUEST);
    fs::write(yard.home("request.sh"), COMMAND).expect("it can be written");
    fs::write(yard.home("answer"), "open\n").expect("it can be written");
    yard
}

#[test]
fn a_request_is_opened_once_and_asked_about_when_its_time_has_come() {
    let mut yard = yard();
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    let request = format!("request-{}", merge.id);
    assert_eq!(yard.work().held.as_deref(), Some("a pull request is open"));
    assert_eq!(yard.lines("asked"), [format!("open {}", merge.bead)]);
    let known = yard.merge(&merge.id);
    assert_eq!((known.state, known.request.as_ref()), (MergeState::Requested, Some(&request)));
    yard.work();
    assert_eq!(yard.lines("asked").len(), 1, "it is not asked about before its time");
    yard.pass_hold();
    yard.work();
    assert_eq!(yard.lines("asked")[1..], [format!("status {request}")]);
    // It is merged elsewhere.
    git(&yard.rig, &["merge", "--quiet", "--squash", &merge.branch]);
    git(&yard.rig, &["commit", "--quiet", "-m", "squashed"]);
    fs::write(yard.home("answer"), "merged\n").expect("it can be written");
    yard.pass_hold();
    assert_eq!(yard.work().merged, [merge.bead]);
}

#[test]
fn a_merge_that_is_dropped_while_its_request_is_looked_at_is_not_reported_as_merged_and_keeps_its_commit() {
    let mut yard = yard();
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    yard.work();
    git(&yard.rig, &["merge", "--quiet", "--squash", &merge.branch]);
    git(&yard.rig, &["commit", "--quiet", "-m", "squashed"]);
    // The command answers only when it is told what to say.
    let answer = yard.home("answer");
    fs::remove_file(&answer).expect("it is there");
    assert!(Command::new("mkfifo").arg(&answer).status().expect("it runs").success());
    yard.pass_hold();
    let Yard { town, store, .. } = &mut yard;
    let worked = thread::scope(|scope| {
        let worker = scope.spawn(|| refinery::work(&Machine::here(), town, "tester", &target()));
        // Opening it waits until the command reads.
        let mut command = fs::File::options().write(true).open(&answer).expect("it can be opened");
        store.drop_merge(&merge.id, "not wanted", &stamp()).expect("it waits");
        command.write_all(b"merged\n").expect("the command reads it");
        drop(command);
        worker.join().expect("it does not panic").expect("it works")
    });
    assert_eq!(worked.merged, Vec::<String>::new());
    assert_eq!(yard.merge(&merge.id).state, MergeState::Dropped);
    assert_eq!(git(&yard.rig, &["rev-parse", &refinery::ref_of(&merge.id)]).trim(), merge.tip);
}

#[test]
fn what_was_closed_comes_back() {
    let mut yard = yard();
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    yard.work();
    fs::write(yard.home("answer"), "closed\n").expect("it can be written");
    yard.pass_hold();
    assert_eq!(yard.work().returned.len(), 1);
    assert_eq!(yard.merge(&merge.id).state, MergeState::Returned);
    assert_eq!(yard.files(), ["file"]);
}

/// A yard whose requests go to an origin that takes what this script of its hook lets through.
fn yard_with_origin(hook: &str) -> Yard {
    let yard = Yard::new(&format!("{BY_REQUEST}push = true\n"));
    fs::write(yard.home("request.sh"), COMMAND).expect("it can be written");
    git(&yard.home(""), &["clone", "--quiet", "--bare", "shop", "origin.git"]);
    git(&yard.rig, &["remote", "add", "origin", &yard.home("origin.git").display().to_string()]);
    let place = yard.home("origin.git").join("hooks/pre-receive");
    fs::create_dir_all(place.parent().expect("it has one")).expect("it can be made");
    fs::write(&place, format!("#!/bin/sh\nread old new name; {hook}\n")).expect("it can be written");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("it can be run");
    yard
}

#[test]
fn a_commit_that_the_origin_refuses_comes_back_and_the_others_are_asked_for() {
    let mut yard = yard_with_origin("if git cat-file -e $new:a 2> /dev/null; then echo no a here; exit 1; fi");
    let (refused, taken) = (yard.handed_over("a", "x", Strategy::Queue), yard.handed_over("b", "x", Strategy::Queue));
    let returned = yard.work().returned;
    assert_eq!(returned.len(), 1, "{returned:?}");
    assert!(returned[0].1.contains("the origin refuses it") && returned[0].1.contains("no a here"), "{returned:?}");
    assert_eq!(yard.merge(&refused.id).state, MergeState::Returned);
    assert_eq!(yard.merge(&taken.id).state, MergeState::Requested);
    let there = git(&yard.home("origin.git"), &["branch", "--list", "--format=%(refname:short)"]);
    assert_eq!(there, format!("main\n{}", taken.branch), "nothing is left of the refused one");
}

#[test]
fn an_origin_that_takes_no_such_branches_holds_the_target_and_no_agent_is_blamed() {
    let mut yard = yard_with_origin("echo branches are named by the policy; exit 1");
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    let held = yard.work().held.expect("it is held");
    assert!(held.contains("branches are named by the policy"), "{held}");
    assert_eq!(yard.merge(&merge.id).state, MergeState::Waiting);
}

#[test]
fn a_request_is_not_said_to_be_merged_while_its_target_has_not_moved() {
    let mut yard = yard();
    let merge = yard.handed_over("a", "x", Strategy::Queue);
    yard.work();
    fs::write(yard.home("answer"), "merged\n").expect("it can be written");
    yard.pass_hold();
    let held = yard.work().held.expect("it is held");
    assert!(held.ends_with("is said to be merged, but main has not moved since it was opened"), "{held}");
    assert_eq!(yard.merge(&merge.id).state, MergeState::Requested);
}

#[test]
fn of_a_paused_rig_no_request_is_opened_or_asked_about() {
    for rig in [None, Some("shop")] {
        let mut yard = yard();
        let first = yard.handed_over("a", "x", Strategy::Queue);
        yard.work();
        yard.store.pause_refinery(rig, None, &stamp()).expect("it is paused");
        // One is due, and another is new.
        yard.pass_hold();
        let second = yard.handed_over("b", "x", Strategy::Queue);
        yard.work();
        assert_eq!(yard.lines("asked"), [format!("open {}", first.bead)]);
        // Not due, and still another is new.
        let now = stamp();
        let until = now.now + SignedDuration::from_hours(1);
        let reason = yard.hold().expect("it is held").reason;
        yard.store.hold_target(&target(), &reason, until, &now).expect("it is held");
        yard.work();
        assert_eq!(yard.lines("asked").len(), 1);
        yard.store.resume_refinery(rig, &stamp()).expect("it is resumed");
        yard.work();
        let asked = yard.lines("asked");
        let wanted = [format!("status request-{}", first.id), format!("open {}", second.bead)];
        assert_eq!(asked[1..], wanted, "what is new does not wait for what is open");
    }
}
