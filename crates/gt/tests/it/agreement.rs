//! All who say what would start agree with what starts: `status`, `list`, `explain`, the dry run and the run. // SPEC D2
//!
//! On random towns: beads, dependencies, rigs, caps, batches, orders, pauses and agents that hang. `GT_TEST_TOWNS`
//! makes the suite try more of them.

use std::fmt::Write as _;

use serde_json::Value;

use crate::fleet::Fleet;

const N_TOWNS: u64 = 12;
const RIGS: [(&str, &str); 3] = [("shop", "gt"), ("yard", "yd"), ("dock", "dk")];
const HANGS: &str = "while [ ! -e \"$HOME/gate\" ]; do sleep 0.05; done; gt done";

/// A small generator (SplitMix64), so that a seed is a town.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).expect("it is below a usize")
    }

    fn is_one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn some<'a>(&mut self, all: &'a [String]) -> Vec<&'a str> {
        all.iter().filter(|_| self.below(3) > 0).map(String::as_str).collect()
    }
}

/// One line per bead, with dependencies on earlier ones only.
fn random_beads(dice: &mut Dice, name: &str, n: usize, earlier: &[String]) -> (Vec<String>, String) {
    let (mut ids, mut lines) = (Vec::new(), String::new());
    for at in 0..n {
        let id = format!("{}-{name}{at}", RIGS[dice.below(RIGS.len())].1);
        let mut line = format!(r#"{{"id":"{id}","title":"Bead {at}","issue_type":"task","priority":{}"#, dice.below(5));
        match dice.below(12) {
            0 => line.push_str(r#","status":"closed""#),
            1 => line.push_str(r#","defer_until":"2999-01-01T00:00:00Z""#),
            2 => line.push_str(r#","assignee":"ann""#),
            _ => {}
        }
        let known: Vec<&String> = earlier.iter().chain(&ids).collect();
        let mut edges = Vec::new();
        for _ in 0..if known.is_empty() { 0 } else { dice.below(3) } {
            let target = known[dice.below(known.len())];
            let kind = ["blocks", "blocks", "related", "waits-for"][dice.below(4)];
            edges.push(format!(r#"{{"issue_id":"{id}","depends_on_id":"{target}","type":"{kind}"}}"#));
        }
        write!(line, r#","dependencies":[{}]}}"#, edges.join(",")).expect("writing to a string cannot fail");
        lines.push_str(&line);
        lines.push('\n');
        ids.push(id);
    }
    (ids, lines)
}

fn add_beads(fleet: &Fleet, dice: &mut Dice, name: &str, earlier: &[String]) -> Vec<String> {
    let n = 4 + dice.below(12);
    let (ids, lines) = random_beads(dice, name, n, earlier);
    fleet.town.call(["bead", "import", "-"]).stdin(lines.as_bytes()).run().success();
    ids
}

/// Schedules some of them, a few at a time.
fn schedule_some(fleet: &Fleet, dice: &mut Dice, beads: &[String]) {
    for _ in 0..=dice.below(3) {
        let some = dice.some(beads);
        let agent: &[&str] = if dice.is_one_in(3) { &["--agent", "other"] } else { &[] };
        if some.len() > 1 {
            // All of them may be scheduled or closed already, and that is fine.
            fleet.town.call(["sling", "--queue"].iter().chain(agent).chain(&some)).run();
        }
    }
}

fn random_town(dice: &mut Dice) -> (Fleet, Vec<String>) {
    let fleet = Fleet::new(HANGS);
    let agent = fleet.home("agent.sh").display().to_string();
    let other = format!("\n[agents.other]\ncommand = [\"bash\", {agent:?}]\nprompt = \"none\"\n");
    fleet.town.write("town.toml", fleet.town.read("town.toml") + &other);
    for (rig, prefix) in &RIGS[1..] {
        fleet.town.repository(rig);
        fleet.town.gt(["rig", "add", rig, rig, "--prefix", prefix]).success();
        fleet.set(&format!("rigs.{rig}.isolation"), "none");
    }
    if dice.below(4) > 0 {
        fleet.set("scheduler.max_polecats", &(1 + dice.below(7)).to_string());
    } else {
        // What the queue leaves alone is told by who tells of the daemon; a run asked for by hand starts it.
        fleet.set("queue.enabled", "true");
        fleet.set("queue.spawn_delay", "0s");
        fleet.set("queue.max_polecats", &dice.below(7).to_string());
        fleet.set("queue.batch_size", &dice.below(4).to_string());
    }
    for key in ["rigs.shop.max_polecats", "rigs.yard.max_polecats", "agents.other.max"] {
        if dice.is_one_in(2) {
            fleet.set(key, &(1 + dice.below(3)).to_string());
        }
    }
    if dice.is_one_in(2) {
        fleet.set("scheduler.order", "priority");
    }
    let mut beads = add_beads(&fleet, dice, "a", &[]);
    if dice.below(4) > 0 {
        schedule_some(&fleet, dice, &beads);
        fleet.town.call(["scheduler", "run", "--batch", &(1 + dice.below(2)).to_string()]).run();
    }
    let more = add_beads(&fleet, dice, "b", &beads);
    beads.extend(more);
    schedule_some(&fleet, dice, &beads);
    if dice.is_one_in(3) {
        fleet.set("scheduler.batch_size", &(1 + dice.below(3)).to_string());
    }
    if dice.is_one_in(3) {
        fleet.town.gt(["rig", "park", RIGS[dice.below(RIGS.len())].0]).success();
    }
    if dice.is_one_in(6) {
        fleet.town.gt(["scheduler", "pause", "--reason", "lunch"]).success();
    }
    if dice.is_one_in(2) {
        // Whoever is slung and then handed to a person waits.
        let bead = &beads[dice.below(beads.len())];
        fleet.town.call(["bead", "update", bead, "--assignee", "bob"]).run();
    }
    (fleet, beads)
}

/// An answer in JSON, whatever its exit code says.
fn said(fleet: &Fleet, arguments: &[&str]) -> Value {
    let answer = fleet.town.call(arguments.iter().chain(&["--json"])).run();
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error} in {answer}"))
}

fn rows(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}")).clone()
}

/// Everything but the run ids, which are made up each time.
fn dispatches(value: &Value) -> Vec<[Value; 4]> {
    rows(value).iter().map(|one| ["bead", "rig", "polecat", "context"].map(|field| one[field].clone())).collect()
}

fn n_live(fleet: &Fleet) -> usize {
    fleet.agents().into_iter().filter(|agent| agent.leads).count()
}

/// What `explain` says of a scheduled bead is what `list` says of it.
fn assert_explained(fleet: &Fleet, row: &Value, n_scheduled: usize) {
    let explained = said(fleet, &["explain", row["bead"].as_str().expect("an id")]);
    let reasons = rows(&explained["reasons"]);
    let starts = row["reason"].is_null();
    let next = if starts { "; it starts with the next " } else { "" };
    let place = format!("it is number {} of {n_scheduled} in the queue{next}", row["position"]);
    let said = reasons[0]["message"].as_str().expect("a text");
    assert!(if starts { said.starts_with(&place) } else { said == place }, "{explained}");
    match reasons.get(1) {
        None => assert!(starts, "{row} {explained}"),
        Some(second) => assert_eq!(second["message"], row["reason"], "{explained}"),
    }
    let is_empty = |reason: &Value| reason["message"].as_str().is_none_or(|text| text.trim().is_empty());
    assert!(!reasons.iter().any(is_empty), "{explained}");
    assert!(!row["blocked"].as_bool().expect("a truth") || !starts, "{row}");
}

/// `status`, `list` and `explain` agree; returns those that a pass would start, in order.
fn assert_told_alike(fleet: &Fleet, beads: &[String]) -> Vec<Value> {
    let (status, list) = (said(fleet, &["scheduler", "status"]), said(fleet, &["scheduler", "list"]));
    assert_eq!(status["beads"], list);
    let list = rows(&list);
    let n_ready = list.iter().filter(|row| row["blocked"] == false).count();
    assert_eq!((&status["queued_total"], &status["queued_ready"]), (&list.len().into(), &n_ready.into()), "{status}");
    assert_eq!(status["active_polecats"], n_live(fleet), "{status}");
    for (at, row) in list.iter().enumerate() {
        assert_eq!(row["position"], at + 1, "{row}");
        assert_explained(fleet, row, list.len());
    }
    for bead in beads.iter().filter(|bead| !list.iter().any(|row| row["bead"] == ***bead)) {
        let explained = said(fleet, &["explain", bead]);
        let reasons = rows(&explained["reasons"]);
        assert!(!reasons.is_empty() && reasons.iter().all(|reason| reason["code"] != "scheduled"), "{explained}");
    }
    list.into_iter().filter(|row| row["reason"].is_null()).map(|row| row["bead"].clone()).collect()
}

/// Returns how many started.
fn assert_agreement(seed: u64) -> usize {
    let (fleet, beads) = random_town(&mut Dice(seed));
    let foreseen = assert_told_alike(&fleet, &beads);
    let n_before = n_live(&fleet);
    let dry = said(&fleet, &["scheduler", "run", "--dry-run"]);
    assert_eq!(said(&fleet, &["scheduler", "run", "--dry-run"])["ready"], dry["ready"], "a dry run changed something");
    let run = said(&fleet, &["scheduler", "run"]);
    let started = dispatches(&run["dispatched"]);
    assert_eq!(dispatches(&dry["would_dispatch"]), started, "{dry} {run}");
    assert_eq!(started.iter().map(|one| one[0].clone()).collect::<Vec<_>>(), foreseen, "{run}");
    for field in ["failed", "skipped", "reason", "capacity", "batch", "ready"] {
        assert_eq!(dry[field], run[field], "{field}: {dry} {run}");
    }
    assert_eq!(rows(&run["failed"]), [] as [Value; 0]);
    assert_eq!(n_live(&fleet), n_before + started.len());
    let next = assert_told_alike(&fleet, &beads);
    assert!(!run["batch"].is_null() || next.is_empty(), "one pass left what it could have started: {next:?}");
    started.len()
}

/// Tries every fourth town, so that four tests share them; something starts in them, at least this often.
fn assert_agreement_in_share(share: u64, n_started_min: usize) {
    let n_towns = std::env::var("GT_TEST_TOWNS").ok().and_then(|n| n.parse().ok()).unwrap_or(N_TOWNS);
    let seeds = (0..n_towns).filter(|seed| seed % 4 == share);
    let n_started: usize = seeds
        .map(|seed| {
            let seed = seed + 1000 * u64::from(n_towns != N_TOWNS);
            std::panic::catch_unwind(|| assert_agreement(seed)).unwrap_or_else(|_| panic!("in the town of seed {seed}"))
        })
        .sum();
    assert!(n_started >= n_started_min, "the towns did next to nothing: {n_started}");
}

#[test]
fn what_would_start_is_what_starts_and_everything_else_has_a_reason_that_all_give() {
    assert_agreement_in_share(0, 1);
}

#[test]
fn what_would_start_is_what_starts_and_all_give_the_same_reasons_in_the_second_share_of_towns() {
    assert_agreement_in_share(1, 1);
}

#[test]
fn what_would_start_is_what_starts_and_all_give_the_same_reasons_in_the_third_share_of_towns() {
    assert_agreement_in_share(2, 3);
}

#[test]
fn what_would_start_is_what_starts_and_all_give_the_same_reasons_in_the_fourth_share_of_towns() {
    assert_agreement_in_share(3, 3);
}

#[test]
fn beads_slung_together_stand_in_the_queue_and_start_in_the_order_in_which_they_were_named() {
    let fleet = Fleet::with_cap(12, HANGS);
    let beads: Vec<String> = (0..12).map(|n| fleet.town.create(&[&format!("Bead {n}"), "--rig", "shop"])).collect();
    let backwards: Vec<&str> = beads.iter().rev().map(String::as_str).collect();
    fleet.town.call(["sling"].iter().chain(&backwards)).run().success();
    let names = |value: &Value| rows(value).iter().map(|row| row["bead"].clone()).collect::<Vec<Value>>();
    assert_eq!(names(&said(&fleet, &["scheduler", "list"])), backwards);
    assert_eq!(names(&said(&fleet, &["scheduler", "run"])["dispatched"]), backwards);
}
