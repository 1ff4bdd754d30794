//! Never over a cap, whatever agents do and whoever starts them: the process table is the judge. // SPEC D3
//!
//! A look at the table takes a while, in which one run may end and the next begin. So those who were seen are looked
//! at again: who still lives then, lived together with all the others when the first look ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use crate::fleet::{FINISHES, Fleet, agents_of, count, kill};

/// How many of each kind were ever seen to live at the same time.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Most {
    n_looks: usize,
    town: usize,
    rigs: BTreeMap<String, usize>,
    agents: BTreeMap<String, usize>,
}

/// A run that lives: itself, its rig, its agent kind.
type Life = (String, String, String);

impl Most {
    fn look(&mut self, town: &str) {
        let seen: Vec<(u32, Life)> = agents_of(town).into_iter().filter_map(|agent| life(agent.pid)).collect();
        let still = |(pid, before): &(u32, Life)| life(*pid).filter(|(_, now)| now == before).map(|(_, now)| now);
        let together: BTreeSet<Life> = seen.iter().filter_map(still).collect();
        self.n_looks += 1;
        self.town = self.town.max(together.len());
        for (most, name) in [(&mut self.rigs, 1), (&mut self.agents, 2)] {
            let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
            for (_, rig, agent) in &together {
                *counts.entry(if name == 1 { rig } else { agent }).or_default() += 1;
            }
            for (name, n) in counts {
                let before = most.entry(name.clone()).or_default();
                *before = n.max(*before);
            }
        }
    }
}

/// What a process says about itself; nothing if it is dead.
fn life(pid: u32) -> Option<(u32, Life)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let is_dead = stat.rsplit_once(')')?.1.trim_start().starts_with(['Z', 'X']);
    let environ = fs::read(format!("/proc/{pid}/environ")).ok().filter(|_| !is_dead)?;
    let text = String::from_utf8_lossy(&environ).into_owned();
    let find = |name: &str| text.split('\0').find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    Some((pid, (find("GT_RUN=")?, find("GT_RIG=")?, find("GT_AGENT=")?)))
}

/// Looks again and again while something happens, which is told how many were seen; whoever asks for it in `hanging` is
/// killed meanwhile.
fn watch(fleet: &Fleet, happens: impl FnOnce(&AtomicUsize)) -> Most {
    let (town, hanging) = (fleet.town.root().display().to_string(), fleet.home("hanging"));
    let (is_over, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut most, mut killed) = (Most::default(), 0);
            let (_sender, never) = mpsc::channel::<()>();
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                most.look(&town);
                seen.store(most.town, Ordering::Relaxed);
                let text = fs::read_to_string(&hanging).unwrap_or_default();
                let whole = text.rfind('\n').map_or("", |end| &text[..end]);
                let pids: Vec<u32> = whole.lines().map(|line| line.parse().expect("a process")).collect();
                pids[killed..].iter().copied().for_each(kill);
                killed = pids.len();
                // Half of the time is left to those who are watched.
                never.recv_timeout(began.elapsed()).unwrap_or_default();
            }
            most
        });
        let over = Over(&is_over);
        happens(&seen);
        drop(over);
        watcher.join().expect("looking does not panic")
    })
}

/// Ends the watch, also when a test panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn import(fleet: &Fleet, prefix: &str, n: usize) -> Vec<String> {
    let line = |n: usize| format!(r#"{{"id":"{prefix}-{n:03}","title":"Bead {n}","issue_type":"task"}}"#);
    let lines: Vec<String> = (0..n).map(line).collect();
    fleet.town.call(["bead", "import", "-"]).stdin(lines.join("\n").as_bytes()).run().success();
    (0..n).map(|n| format!("{prefix}-{n:03}")).collect()
}

fn sling(fleet: &Fleet, flags: &[&str], beads: &[String]) {
    let words = ["sling"].iter().chain(flags).copied().chain(beads.iter().map(String::as_str));
    fleet.town.call(words).run().success();
}

/// What agents do once the gate is open. Else they might all be too short to meet.
fn gated(script: &str) -> String {
    format!("while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done\n{script}")
}

/// Opens the gate when as many are at work as may be.
fn open_gate_at(n: usize, fleet: &Fleet, seen: &AtomicUsize) {
    fleet.until_seen("as many at work as may be", || seen.load(Ordering::Relaxed) >= n);
    fleet.open_gate("gate");
}

#[test]
fn many_beads_with_agents_that_crash_hang_and_are_killed_never_exceed_a_cap_of_three() {
    // At their first attempt they do, by turns: their work; exit 3; hang until killed from outside; die with all
    // that is theirs.
    let script = "mine=$((10#${GT_BEAD#gt-} % 4))\n\
        if [ $mine != 0 ] && mkdir \"$HOME/first-$GT_BEAD\" 2> /dev/null; then\n\
          case $mine in\n\
            1) exit 3;;\n\
            2) echo $$ >> \"$HOME/hanging\"; sleep 1000;;\n\
            3) kill -9 0;;\n\
          esac\n\
        fi\n\
        gt done";
    let fleet = Fleet::with_cap(3, &gated(script));
    fleet.set("witness.redispatch_cooldown", "0s");
    let beads = import(&fleet, "gt", crate::place::MANY);
    sling(&fleet, &[], &beads);
    let most = watch(&fleet, |seen| {
        fleet.start_daemon();
        open_gate_at(3, &fleet, seen);
        // Which beads they are is looked at in the end: with so many events that would take longer than the work.
        fleet.until("all closed and nothing live", |events| {
            let n_hooked = count(events, "bead.hooked", None);
            count(events, "bead.closed", None) >= beads.len() && count(events, "run.ended", None) == n_hooked
        });
    });
    assert_eq!(most.town, 3, "{most:?}");
    let starts = fleet.starts();
    for (n, bead) in beads.iter().enumerate() {
        let n_starts = starts.iter().filter(|start| *start == bead).count();
        assert_eq!(n_starts, if n % 4 == 0 { 1 } else { 2 }, "{bead}");
    }
    fleet.assert_at_rest(&beads);
}

#[test]
fn caps_of_rigs_and_agents_hold_under_the_cap_of_the_town() {
    let fleet = Fleet::with_cap(5, &gated(FINISHES));
    fleet.town.repository("yard");
    fleet.town.gt(["rig", "add", "yard", "yard", "--prefix", "yd"]).success();
    fleet.set("rigs.yard.isolation", "none");
    let agent = fleet.home("agent.sh").display().to_string();
    let other = format!("\n[agents.other]\ncommand = [\"bash\", {agent:?}]\nprompt = \"none\"\n");
    let config = fleet.town.read("town.toml");
    fleet.town.write("town.toml", config + &other);
    fleet.set("rigs.shop.max_polecats", "2");
    fleet.set("agents.other.max", "1");
    let (shop, yard) = (import(&fleet, "gt", 24), import(&fleet, "yd", 24));
    sling(&fleet, &[], &[&shop[..16], &yard[..16]].concat());
    sling(&fleet, &["--agent", "other"], &[&shop[16..], &yard[16..]].concat());
    let all = [shop, yard].concat();
    let most = watch(&fleet, |seen| {
        fleet.start_daemon();
        open_gate_at(5, &fleet, seen);
        fleet.until_done(&all);
    });
    let of = |counts: &BTreeMap<String, usize>, name: &str| counts.get(name).copied().unwrap_or_default();
    assert_eq!(most.town, 5, "{most:?}");
    assert!(of(&most.rigs, "shop") <= 2, "{most:?}");
    assert!(of(&most.agents, "other") <= 1, "{most:?}");
    assert!(of(&most.rigs, "yard") >= 3, "with five at work and two of the shop: {most:?}");
    assert_eq!(fleet.starts().len(), all.len());
    fleet.assert_at_rest(&all);
}

#[test]
fn slings_in_parallel_and_a_daemon_together_keep_to_the_cap_of_a_rig() {
    let fleet = Fleet::new(&gated(FINISHES));
    fleet.set("scheduler.max_polecats", "-1");
    fleet.set("rigs.shop.max_polecats", "3");
    let beads = import(&fleet, "gt", 48);
    fleet.start_daemon();
    let most = watch(&fleet, |seen| {
        let slings: Vec<_> = beads
            .chunks(6)
            .map(|some| fleet.town.call(["sling"].into_iter().chain(some.iter().map(String::as_str))).spawn())
            .collect();
        open_gate_at(3, &fleet, seen);
        for sling in slings {
            let output = sling.wait_with_output().expect("the binary can be waited for");
            assert!(output.status.success(), "{output:?}");
        }
        fleet.until_done(&beads);
    });
    assert_eq!(most.town, 3, "{most:?}");
    let mut started = fleet.starts();
    started.sort();
    assert_eq!(started, beads);
    fleet.assert_at_rest(&beads);
}

#[test]
fn a_hundred_agents_do_not_start_by_accident() {
    let fleet = Fleet::new("while [ ! -e \"$HOME/gate\" ]; do sleep 0.02; done; gt done --no-changes");
    fleet.town.gt(["config", "unset", "guards.max_agents"]).success();
    let ids: Vec<String> = (0..30).map(|n| format!("gt-{n:02}")).collect();
    fleet.hold(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let words: Vec<&str> = ["sling"].into_iter().chain(ids.iter().map(String::as_str)).chain(["--json"]).collect();
    let results = fleet.town.call(words).run().json()["results"].as_array().expect("a list").clone();
    let n = |outcome: &str| results.iter().filter(|one| one["outcome"] == outcome).count();
    assert_eq!((n("dispatched"), n("scheduled")), (16, 14));
    let why = results.last().expect("thirty")["reason"].as_str().expect("a reason").to_owned();
    assert!(why.starts_with("16 agents run, as many as `guards.max_agents` allows"), "{why}");
    fleet.until_seen("sixteen agents", || fleet.starts().len() == 16);
    assert!(fleet.town.gt(["status"]).stdout.contains("16 agents running, at most 16 (`guards.max_agents`)"));
    fleet.open_gate("gate");
    fleet.until_done(&ids);
}
