//! Many processes on one town, and processes that are killed half-way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::ExitStatus;

use serde_json::Value;

use crate::town::Town;

const N_WORKERS: u64 = 4;
const N_OPERATIONS: usize = 60;
const N_BEADS: u64 = 60;

/// What one worker was told had been done.
#[derive(Default)]
struct Acknowledged {
    claimed: Vec<String>,
    closed: Vec<String>,
    created: Vec<String>,
    linked: Vec<(String, String)>,
}

#[test]
fn what_many_processes_were_told_is_what_is_there() {
    let lines: Vec<String> =
        (0..N_BEADS).map(|n| format!(r#"{{"id":"gt-{n}","title":"bead {n}","priority":{}}}"#, n % 5)).collect();
    let town = Town::holding(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let calls = Calls::new(&town);
    let workers: Vec<Acknowledged> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..N_WORKERS)
            .map(|n| {
                scope.spawn({
                    let calls = &calls;
                    move || work(calls, n)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker met an exit code that is not allowed"))
            .collect()
    });
    let there = beads(&town.export());
    let mut holders: BTreeMap<&str, usize> = BTreeMap::new();
    for (n, worker) in workers.iter().enumerate() {
        for id in &worker.claimed {
            assert_eq!(holders.insert(id, n), None, "{id} was given to two");
            assert_eq!(there[id]["assignee"], format!("worker-{n}"), "{id}");
        }
        assert!(worker.closed.iter().all(|id| there[id]["status"] == "closed"));
        assert!(worker.created.iter().all(|id| there[id]["created_by"] == format!("worker-{n}")));
        assert!(worker.linked.iter().all(|(source, target)| depends_on(&there[source], target)));
    }
    let all_created: BTreeSet<&String> = workers.iter().flat_map(|worker| &worker.created).collect();
    assert_eq!(all_created.len(), workers.iter().map(|worker| worker.created.len()).sum::<usize>());
    assert_eq!(there.len(), N_BEADS as usize + all_created.len());
    assert!(holders.len() > 10 && !all_created.is_empty(), "the workers did next to nothing");
    town.assert_healthy();
}

/// A way to call the binary that threads can share.
struct Calls {
    root: std::path::PathBuf,
}

impl Calls {
    fn new(town: &Town) -> Calls {
        Calls { root: town.root().to_owned() }
    }

    /// Calls the binary; any exit code but those allowed is a failure.
    fn gt(&self, worker: u64, allowed: &[i32], arguments: &[&str]) -> Option<String> {
        let mut command = std::process::Command::new(crate::town::GT);
        command.args(arguments).current_dir(&self.root).env("GT_ACTOR", format!("worker-{worker}"));
        let output = command.env_remove("GT_TOWN").env_remove("GT_RIG").output().expect("the binary can be started");
        let code = output.status.code().expect("the binary ends by itself");
        assert!(allowed.contains(&code), "gt {arguments:?}: {code}, {}", String::from_utf8_lossy(&output.stderr));
        (code == 0).then(|| String::from_utf8(output.stdout).expect("the answer is UTF-8"))
    }
}

fn work(calls: &Calls, worker: u64) -> Acknowledged {
    let mut done = Acknowledged::default();
    let mut dice = Dice(worker + 1);
    for n in 0..N_OPERATIONS {
        let (one, other) = (format!("gt-{}", dice.roll(N_BEADS)), format!("gt-{}", dice.roll(N_BEADS)));
        match dice.roll(5) {
            0 | 1 => {
                let answer = calls.gt(worker, &[0], &["ready", "--claim", "--json"]).expect("0 is the only code");
                let row: Value = serde_json::from_str(&answer).expect("the answer is JSON");
                done.claimed.extend(row["id"].as_str().map(str::to_owned));
            }
            2 => {
                calls.gt(worker, &[0], &["close", &one]);
                done.closed.push(one);
            }
            3 => {
                let title = format!("made by {worker}, number {n}");
                let made =
                    calls.gt(worker, &[0], &["create", &title, "--quiet", "--type", "chore", "--blocked-by", &one]);
                done.created.extend(made.map(|id| id.trim().to_owned()));
            }
            _ => {
                let linked = calls.gt(worker, &[0, 1], &["bead", "dep", "add", &one, &other]);
                done.linked.extend(linked.map(|_| (one, other)));
            }
        }
    }
    done
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn beads(export: &str) -> BTreeMap<String, Value> {
    let rows = export.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    rows.map(|row| (row["id"].as_str().expect("a bead has an id").to_owned(), row)).collect()
}

fn depends_on(row: &Value, target: &str) -> bool {
    row["dependencies"].as_array().is_some_and(|edges| edges.iter().any(|edge| edge["depends_on_id"] == target))
}

/// Calls the binary and kills it as soon as the write-ahead log has this many bytes.
fn killed_at(town: &Town, arguments: &[&str], n_bytes: u64) -> (ExitStatus, String) {
    let wal = town.path(".gt/town.db-wal");
    let mut child = town.call(arguments.iter().copied()).spawn();
    let written = || fs::metadata(&wal).map_or(0, |metadata| metadata.len());
    while written() < n_bytes && child.try_wait().expect("the child can be asked").is_none() {
        std::thread::yield_now();
    }
    child.kill().expect("a child can be killed, even when it is done");
    let output = child.wait_with_output().expect("the child can be waited for");
    (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Calls the binary, which the system ends when it writes any file beyond this many blocks: the same byte every time.
fn ended_at(town: &Town, arguments: &[&str], n_blocks: u64) -> (ExitStatus, String) {
    let script = format!("ulimit -c 0; ulimit -f {n_blocks}; exec \"$0\" \"$@\"");
    let output = town.command("sh").args(["-c", &script, crate::town::GT]).args(arguments).output();
    let output = output.expect("sh is there");
    (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Bytes of the write-ahead log, from "as it starts" to "as it commits".
const KILL_POINTS: [u64; 8] = [0, 1, 4_096, 40_000, 200_000, 400_000, 800_000, u64::MAX];
/// Blocks of any file.
const END_POINTS: [u64; 8] = [1, 40, 90, 150, 300, 500, 900, 1500];

/// Every bead but the first waits for another.
fn lines(n_beads: usize) -> Vec<String> {
    let edge = |n: usize| format!(r#"{{"depends_on_id":"gt-{}","type":"blocks"}}"#, n / 2);
    let line = |n: usize| format!(r#"{{"id":"gt-{n}","title":"bead {n}","dependencies":[{}]}}"#, edge(n));
    (0..n_beads).map(line).collect()
}

/// Looks at what an import left behind; says whether it was ended early.
fn check_import(town: &Town, n_lines: usize, ended: &(ExitStatus, String)) -> bool {
    let (status, said) = ended;
    let n_there = town.export().lines().count();
    assert!([0, n_lines].contains(&n_there), "{n_there} of {n_lines} beads");
    assert!(n_there == n_lines || !said.contains("Imported"), "it said too much");
    town.assert_healthy();
    town.gt(["bead", "import", "many.jsonl"]).success();
    assert_eq!(town.export().lines().count(), n_lines);
    !status.success()
}

/// How many imports, each into a fresh town, are cut short at these points.
fn imports_cut_short(points: &[u64], cut: impl Fn(&Town, &[&str], u64) -> (ExitStatus, String)) -> usize {
    const N_LINES: usize = 3000;
    let file = lines(N_LINES).join("\n");
    let is_cut = |point: &&u64| {
        let town = Town::new();
        town.write("many.jsonl", &file);
        check_import(&town, N_LINES, &cut(&town, &["bead", "import", "many.jsonl"], **point))
    };
    points.iter().filter(is_cut).count()
}

#[test]
fn an_import_that_is_killed_is_all_or_nothing() {
    // How many of the kills come in time is up to the scheduler; the first one does.
    assert!(imports_cut_short(&KILL_POINTS, killed_at) >= 1);
}

#[test]
fn an_import_that_the_system_ends_is_all_or_nothing() {
    assert!(imports_cut_short(&END_POINTS, ended_at) >= 5);
}

#[test]
fn closes_that_are_killed_are_all_or_nothing() {
    const N_BEADS: usize = 400;
    let file = lines(N_BEADS);
    let town = Town::holding(&file.iter().map(String::as_str).collect::<Vec<_>>());
    let ids: Vec<String> = (0..N_BEADS).map(|n| format!("gt-{n}")).collect();
    let close: Vec<&str> = std::iter::once("close").chain(ids.iter().map(String::as_str)).collect();
    let check = |(status, said): (ExitStatus, String)| {
        let n_closed = beads(&town.export()).values().filter(|row| row["status"] == "closed").count();
        assert!([0, N_BEADS].contains(&n_closed), "{n_closed} closed");
        assert!(n_closed == N_BEADS || !said.contains("closed."), "it said too much");
        town.assert_healthy();
        let reopen = ["bead", "reopen"].into_iter().chain(ids.iter().map(String::as_str));
        town.call(reopen).run().success();
        !status.success()
    };
    assert!(KILL_POINTS.iter().filter(|point| check(killed_at(&town, &close, **point))).count() >= 1);
    assert!(END_POINTS.iter().filter(|point| check(ended_at(&town, &close, **point))).count() >= 3);
}

#[test]
fn a_crowd_that_makes_the_same_town_makes_one() {
    let town = Town::unmade();
    let children: Vec<_> = (0..6).map(|_| town.call(["init"]).spawn()).collect();
    let ends: Vec<ExitStatus> =
        children.into_iter().map(|child| child.wait_with_output().expect("it ends").status).collect();
    assert!(ends.iter().all(ExitStatus::success), "{ends:?}");
    town.assert_healthy();
    assert!(town.read("town.toml").starts_with('#'));
}

#[test]
fn settings_made_at_once_are_all_there() {
    let town = Town::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let set = |name: &&str| town.call(["config", "set", &format!("lanes.{name}"), "3"]).spawn();
    let children: Vec<_> = names.iter().map(set).collect();
    let ends = children.into_iter().map(|child| child.wait_with_output().expect("it ends").status);
    assert!(ends.collect::<Vec<_>>().iter().all(ExitStatus::success));
    for name in names {
        assert_eq!(town.gt(["config", "get", &format!("lanes.{name}")]).stdout, "3\n");
    }
    assert_eq!(town.events().len(), 1 + names.len());
}
