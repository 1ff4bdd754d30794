//! Work that is worked on again: what came back, what was handed over, and what the dead have left. // SPEC M2, P7

use serde_json::Value;

use super::{COMMITS, WORKS_ANEW, assert_merged_once, files, fleet, git, git_agrees, last_of, set_gates, show, sling};
use crate::fleet::{Fleet, count};

fn read(fleet: &Fleet, name: &str) -> String {
    std::fs::read_to_string(fleet.home(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Two agents that begin together and write the same file; whoever works on it again brings both together.
const QUARREL: &str = r#"
gt prime > "$HOME/prime-$GT_BEAD"
if grep -q 'could not be merged' "$HOME/prime-$GT_BEAD"; then
  ls > "$HOME/seen-$GT_BEAD"; cat shared > "$HOME/base"
  branch=$(sed -n 's/^Its commits are on the branch \(.*\); you start.*/\1/p' "$HOME/prime-$GT_BEAD")
  git merge --quiet "$branch" > /dev/null
  (git show ":2:shared"; git show ":3:shared") > both; mv both shared
  git add -A; git commit --quiet --message="both"
else
  touch "$HOME/here-$GT_BEAD"
  while [ ! -e "$HOME/here-gt-a" ] || [ ! -e "$HOME/here-gt-b" ]; do sleep 0.02; done
  echo "$GT_BEAD" > shared; git add -A; git commit --quiet --message="work on $GT_BEAD"
fi
gt done"#;

#[test]
fn work_in_conflict_is_worked_on_again_from_the_new_base_and_closes_both() {
    let fleet = fleet(QUARREL);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a", "gt-b"], &[]);
    fleet.until_done(&beads);
    let events = fleet.town.events();
    assert_eq!(count(&events, "merge.returned", None), 1);
    let returned = events.iter().find(|event| event["type"] == "merge.returned").expect("it was counted");
    let (loser, rework) = (returned["bead"].as_str().expect("a bead"), returned["data"]["rework"].as_str());
    let rework = rework.expect("a bead was made of it");
    let winner = if loser == "gt-a" { "gt-b" } else { "gt-a" };
    assert_eq!(read(&fleet, "base"), format!("{winner}\n"), "it starts from what is merged");
    let prime = read(&fleet, &format!("prime-{rework}"));
    assert!(
        prime.contains(&format!(
            "The work on {loser} was done and could not be merged: it conflicts with main in shared."
        )),
        "{prime}"
    );
    let patch = prime.lines().find_map(|line| line.strip_prefix("The same as a patch: ")).expect("it names a patch");
    let patch = std::fs::read_to_string(patch).expect("the patch is there");
    assert!(patch.contains(&format!("Subject: [PATCH] work on {loser}")), "{patch}");
    assert_eq!(git(&fleet, "shop", &["show", "main:shared"]), format!("{winner}\n{loser}"));
    for bead in [loser, winner, rework] {
        let bead = show(&fleet, bead);
        assert_eq!((&bead["status"], bead["merged_at"].is_string()), (&"closed".into(), true), "{bead}");
    }
    fleet.assert_at_rest(&[beads, vec![rework.to_owned()]].concat());
}

#[test]
fn work_that_breaks_the_gate_names_the_gate_and_what_it_said() {
    let fleet =
        fleet(&format!("case $GT_BEAD in gt-a) touch bad;; *) gt prime > \"$HOME/prime\";; esac; {WORKS_ANEW}"));
    set_gates(&fleet, "shop", "if [ -e bad ]; then echo 'bad is bad'; exit 3; fi");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&["gt-a".to_owned()]);
    let prime = read(&fleet, "prime");
    assert!(prime.contains("main does not pass the gate") && prime.contains("bad is bad"), "{prime}");
    let branch = last_of(&fleet, "merge.returned", "branch");
    assert!(!files(&fleet, "main").contains(&"bad".to_owned()));
    assert!(files(&fleet, &branch).contains(&"bad".to_owned()), "what came back stays on its branch");
}

#[test]
fn work_that_never_passes_ends_with_a_letter_to_the_mayor() {
    let fleet = fleet(&format!("touch bad-$GT_BEAD; {COMMITS}; gt done"));
    set_gates(&fleet, "shop", "! ls | grep -q bad");
    fleet.set("witness.redispatch_attempts", "3");
    fleet.start_daemon();
    sling(&fleet, &["gt-a"], &[]);
    let letters = || fleet.town.gt(["mail", "inbox", "--json"]).json();
    fleet.until_seen("a letter to the mayor", || letters().as_array().is_some_and(|letters| !letters.is_empty()));
    let rework = last_of_first_return(&fleet);
    let letter = letters()[0].clone();
    assert_eq!(letter["bead"], rework, "{letter}");
    assert!(letter["body"].as_str().is_some_and(|body| body.contains("does not pass the gate")), "{letter}");
    let events = fleet.town.events();
    assert_eq!(count(&events, "merge.returned", Some("gt-a")), 1);
    assert_eq!(count(&events, "merge.returned", rework.as_str()), 4, "it is tried again three times");
    assert_eq!(files(&fleet, "main"), Vec::<String>::new());
    assert_eq!(show(&fleet, "gt-a")["status"], "open");
}

fn last_of_first_return(fleet: &Fleet) -> Value {
    let events = fleet.town.events();
    let first = events.iter().find(|event| event["type"] == "merge.returned").expect("something came back");
    first["data"]["rework"].clone()
}

#[test]
fn a_fresh_run_goes_on_where_the_one_before_handed_over() {
    let fleet = fleet(&format!(
        "gt prime > \"$HOME/prime\"; ls > \"$HOME/seen\"\n\
         if [ ! -e part ]; then echo 1 > part; git add -A; git commit --quiet --message=part; gt handoff 'the printer is next'\n\
         else {COMMITS}; gt done; fi"
    ));
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    let prime = read(&fleet, "prime");
    assert!(prime.contains("A worker has left this to you and says:\nthe printer is next"), "{prime}");
    assert!(!prime.contains("Once before"), "it has cost an attempt: {prime}");
    assert_eq!(read(&fleet, "seen"), "part\n");
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "part"]);
    fleet.assert_at_rest(&beads);
}

/// Ways to leave the branch that a run was given.
const ELSEWHERE: [&str; 3] =
    ["git switch --quiet --create mine", "git switch --quiet --detach", "git branch --move renamed"];

#[test]
fn a_fresh_run_goes_on_from_wherever_the_one_before_it_has_committed() {
    for leave in ELSEWHERE {
        let fleet = fleet(&format!(
            "if [ -e part ]; then {COMMITS}; gt done; exit; fi; mkdir \"$HOME/once\" || {{ gt done --no-changes; exit; }}\n\
             {leave}; echo 1 > part; git add -A; git commit --quiet --message=part; gt handoff 'the printer is next'"
        ));
        fleet.start_daemon();
        let beads = sling(&fleet, &["gt-a"], &[]);
        fleet.until_done(&beads);
        assert_eq!(files(&fleet, "main"), ["gt-a.txt", "part"], "{leave}");
        fleet.assert_at_rest(&beads);
    }
}

#[test]
fn what_a_killed_agent_has_committed_elsewhere_is_found_by_the_next() {
    for leave in ELSEWHERE {
        let fleet = fleet(&DIES.replace("echo one >", &format!("{leave}; echo one >")));
        fleet.start_daemon();
        let beads = sling(&fleet, &["gt-a"], &[]);
        fleet.until_done(&beads);
        assert_eq!(files(&fleet, "main"), ["gt-a.txt", "tracked", "untracked"], "{leave}");
    }
}

/// The first commits, changes more, and is killed; the second finds both.
const DIES: &str = r#"
gt prime > "$HOME/prime-$GT_RUN"
if mkdir "$HOME/first" 2> /dev/null; then
  echo one > tracked; git add -A; git commit --quiet --message="half"
  echo two >> tracked; echo new > untracked
  kill -9 $$
fi
branch=$(sed -n 's/.*What it left is on the branch \(.*\)\.$/\1/p' "$HOME/prime-$GT_RUN")
patch=$(sed -n 's/^What it had not committed is in \(.*\) (.*/\1/p' "$HOME/prime-$GT_RUN")
git merge --quiet "$branch" && git apply --3way "$patch" && git add -A && git commit --quiet --message="work on $GT_BEAD"
echo "$GT_BEAD" > "$GT_BEAD.txt"; git add -A; git commit --quiet --message=more
gt done"#;

#[test]
fn what_a_killed_agent_had_not_committed_is_named_to_the_next_and_applies() {
    let fleet = fleet(DIES);
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.until_done(&beads);
    assert_merged_once(&fleet, "gt-a");
    assert_eq!(files(&fleet, "main"), ["gt-a.txt", "tracked", "untracked"]);
    assert_eq!(git(&fleet, "shop", &["show", "main:tracked"]), "one\ntwo");
    let saved = git(&fleet, "shop", &["for-each-ref", "--format=%(refname)", "refs/gt/salvage"]);
    assert_eq!(saved.lines().count(), 1, "{saved}");
    assert!(git_agrees(&fleet, "shop", &["cat-file", "-e", &format!("{saved}:untracked")]));
}

/// Somebody decides against a merge while it is being tested: it does not land.
#[test]
fn what_is_slung_again_while_its_gates_run_is_not_merged_as_it_was() {
    let fleet = fleet(
        "if mkdir \"$HOME/first\" 2> /dev/null; then echo old > old.txt; else echo new > new.txt; fi; git add -A; \
         git commit --quiet --message=\"work on $GT_BEAD\"; gt done",
    );
    set_gates(&fleet, "shop", "touch \"$HOME/tested\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done");
    fleet.start_daemon();
    let beads = sling(&fleet, &["gt-a"], &[]);
    fleet.await_file("tested");
    fleet.town.gt(["sling", "gt-a", "--force"]).success();
    std::fs::write(fleet.home("go"), "").expect("the home can be written");
    fleet.until_done(&beads);
    assert_eq!(files(&fleet, "main").iter().filter(|name| *name == "old.txt" || *name == "new.txt").count(), 1);
    assert!(git_agrees(&fleet, "shop", &["cat-file", "-e", "main:new.txt"]), "the one that was asked for last");
}
