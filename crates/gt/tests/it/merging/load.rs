//! Many at once, some in conflict, some that break the gate, and somebody who kills daemons and agents: what is on the
//! target in the end is asked of git alone.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::{add_origin, fleet, git, set_gates};
use crate::fleet::{Fleet, count, kill};

/// Rigs with their prefixes.
const RIGS: [(&str, &str); 3] = [("shop", "gt"), ("mill", "ml"), ("yard", "yd")];
const BEADS: usize = 20;

/// Nothing bad is there, and every line that all share is there once.
const GATE: &str = "! ls | grep -q '^bad' && test \"$(grep -c '^slot' ledger)\" = 20 && test \"$(wc -l < shared)\" = 1";

/// Each adds its mark below its own line of two files that all write to. Three of a rig begin at the first commit and change
/// the same line, so two of them are in conflict; two break the gate. What broke the gate is mended by whoever works on
/// it again; what is in conflict is put off for a person. Whoever loses a program that it has called, because that was killed,
/// gives up.
const AGENT: &str = r#"
set -e
save() { git add -A && git commit --quiet --message="$1" && git rev-parse HEAD >> "$HOME/commits-$GT_RIG"; }
gt prime > "$HOME/prime-$GT_RUN"
branch=$(sed -n 's/^Its commits are on the branch \(.*\); you start.*/\1/p' "$HOME/prime-$GT_RUN")
if grep -q 'it conflicts with' "$HOME/prime-$GT_RUN"; then exec gt done --status deferred; fi
if [ -n "$branch" ]; then
  git merge --quiet --no-edit "$branch" > /dev/null && git rm --quiet bad-* && save "mend $GT_BEAD"
  exec gt done
fi
slot=${GT_BEAD#*-}
case $slot in 05|10|15) git reset --quiet --hard "$(git rev-list --max-parents=0 HEAD)"; echo "$GT_BEAD" > shared;; esac
case $slot in 08|16) touch "bad-$GT_BEAD";; esac
sed -i "s/^slot $slot\$/&\nmark $GT_BEAD/" ledger
save "first of $GT_BEAD"
sed -i "s/^slot $slot\$/&\nmark $GT_BEAD/" index
save "work on $GT_BEAD"
gt done
"#;

/// Three rigs with the files that all write to, and room for twelve.
fn crowd() -> Fleet {
    let fleet = fleet(AGENT);
    for (rig, prefix) in RIGS {
        if rig != "shop" {
            fleet.town.repository(rig);
            fleet.town.gt(["rig", "add", rig, rig, "--prefix", prefix]).success();
        }
        let slots: Vec<String> = (1..=BEADS).map(|slot| format!("slot {slot:02}\n\n\n\n")).collect();
        for (file, text) in [("ledger", slots.concat()), ("index", slots.concat()), ("shared", "nobody\n".to_owned())] {
            std::fs::write(fleet.town.path(rig).join(file), text).expect("the rig can be written");
        }
        fleet.town.git(&["-C", rig, "add", "--all"]);
        fleet.town.git(&["-C", rig, "commit", "--quiet", "--amend", "--message=start"]);
        set_gates(&fleet, rig, GATE);
    }
    // One of them has others to agree with.
    add_origin(&fleet);
    fleet.set("scheduler.max_polecats", "12");
    fleet.set("witness.redispatch_attempts", "100");
    fleet
}

fn sling_all(fleet: &Fleet) -> Vec<String> {
    let ids: Vec<String> =
        RIGS.iter().flat_map(|(_, prefix)| (1..=BEADS).map(move |n| format!("{prefix}-{n:02}"))).collect();
    fleet.hold(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.town.call(["sling"].into_iter().chain(ids.iter().map(String::as_str))).run().success();
    ids
}

/// The bead that was made of one that came back.
fn rework_of(events: &[Value], bead: &str) -> Option<String> {
    let returned = events.iter().find(|event| event["type"] == "merge.returned" && event["bead"] == bead)?;
    returned["data"]["rework"].as_str().map(str::to_owned)
}

/// Whether a bead is merged, or what was made of it is put off.
fn is_over(events: &[Value], bead: &str) -> bool {
    let is_put_off = |bead: &str| {
        let ends = events.iter().filter(|event| event["type"] == "run.ended" && event["bead"] == bead);
        ends.into_iter().any(|end| end["data"]["outcome"] == "deferred")
    };
    count(events, "bead.closed", Some(bead)) > 0 || rework_of(events, bead).is_some_and(|bead| is_put_off(&bead))
}

fn until_over(fleet: &Fleet, beads: &[String]) -> Vec<Value> {
    fleet.until("all merged or put off, and nobody at work", |events| {
        // What is over stays over: asked from the last one on, which mostly is not.
        beads.iter().rev().all(|bead| is_over(events, bead))
            && count(events, "run.ended", None) == count(events, "bead.hooked", None)
    })
}

fn assert_nothing_lost_and_nothing_broken(fleet: &Fleet, events: &[Value], beads: &[String]) {
    for (rig, prefix) in RIGS {
        let (ledger, index) = (git(fleet, rig, &["show", "main:ledger"]), git(fleet, rig, &["show", "main:index"]));
        let log = git(fleet, rig, &["log", "--format=%s", "main"]);
        let mut n_away = 0;
        for bead in beads.iter().filter(|bead| bead.starts_with(prefix)) {
            let n_times = |text: &str, line: &str| text.lines().filter(|known| *known == line).count();
            let (mark, subject) = (format!("mark {bead}"), format!("work on {bead}"));
            let found = [n_times(&ledger, &mark), n_times(&index, &mark), n_times(&log, &subject)];
            let rework = rework_of(events, bead);
            if found == [0, 0, 0] {
                n_away += 1;
                let rework = rework.unwrap_or_else(|| panic!("{bead} is neither on main nor is there a bead for it"));
                fleet.town.gt(["show", &rework]).success();
            } else {
                assert_eq!(found, [1, 1, 1], "{bead} is on main more than once or in parts");
            }
        }
        assert_eq!(n_away, 2, "{rig}: of three in conflict one is first");
        assert_passes_everywhere(fleet, rig);
        assert_all_reachable(fleet, rig);
    }
    let there = git(fleet, "origin.git", &["rev-parse", "main"]);
    assert_eq!(git(fleet, "shop", &["rev-parse", "main"]), there, "here and there differ");
    fleet.town.assert_healthy();
}

/// Checks every first-parent commit of `main` out, and asks the gate.
fn assert_passes_everywhere(fleet: &Fleet, rig: &str) {
    let place = fleet.home(&format!("check-{rig}"));
    let place = place.to_str().expect("paths here are text");
    git(fleet, rig, &["worktree", "add", "--quiet", "--detach", place, "main"]);
    for commit in git(fleet, rig, &["rev-list", "--first-parent", "main"]).lines() {
        git(fleet, place, &["checkout", "--quiet", commit]);
        let passed = fleet.town.command("sh").args(["-c", GATE]).current_dir(Path::new(place)).status();
        assert!(passed.expect("a shell is there").success(), "{rig}: main does not pass at {commit}");
    }
    git(fleet, rig, &["worktree", "remove", "--force", place]);
}

/// Every commit that an agent has made is on some branch, or kept by a ref.
fn assert_all_reachable(fleet: &Fleet, rig: &str) {
    let made = std::fs::read_to_string(fleet.home(&format!("commits-{rig}"))).expect("agents have committed");
    let all = git(fleet, rig, &["rev-list", "--all"]);
    let all: BTreeSet<&str> = all.lines().collect();
    let lost: Vec<&str> = made.lines().filter(|commit| !all.contains(commit)).collect();
    assert_eq!(lost, Vec::<&str>::new(), "{rig}: lost");
    assert!(made.lines().count() >= 2 * BEADS);
}

#[test]
fn sixty_beads_in_three_rigs_are_on_main_once_or_come_back() {
    let fleet = crowd();
    fleet.start_daemon();
    let beads = sling_all(&fleet);
    let events = until_over(&fleet, &beads);
    assert_nothing_lost_and_nothing_broken(&fleet, &events, &beads);
    assert_eq!(fleet.starts().len(), 60 + 12, "each once, and what came back once more");
}

/// The same numbers for the same seed, everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % n
    }
}

fn under_fire(seed: u64) {
    let fleet = crowd();
    let mut dice = Dice(seed);
    fleet.start_daemon();
    let beads = sling_all(&fleet);
    let mut n_events = fleet.town.events().len();
    for _ in 0..12 {
        n_events += 5 + dice.below(40);
        let events = fleet.until("more to happen", |events| {
            events.len() >= n_events || beads.iter().rev().all(|bead| is_over(events, bead))
        });
        n_events = n_events.max(events.len());
        let agents = fleet.agents();
        if dice.below(2) == 0 || agents.is_empty() {
            fleet.kill_daemon();
            fleet.start_daemon();
        } else {
            kill(agents[dice.below(agents.len())].pid);
        }
    }
    let events = until_over(&fleet, &beads);
    assert_nothing_lost_and_nothing_broken(&fleet, &events, &beads);
}

#[test]
fn daemons_and_agents_killed_at_random_lose_and_double_nothing() {
    under_fire(1);
}

#[test]
fn daemons_and_agents_killed_at_other_moments_lose_and_double_nothing() {
    under_fire(2);
}
