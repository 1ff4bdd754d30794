//! Agents elsewhere: the project's example as `exec.command`, and programs that are no good. // SPEC P5, P6, D5
//!
//! Agents are another user in another directory where the tests may become one. Crashes, caps and bad agents are tried
//! in `elsewhere.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::fleet::{Fleet, count, kill};
use crate::town::{session, snapshot};

/// A program that can be asked what runs, and cannot watch.
const SEES_NOTHING: &str = "case $verb in survey) echo '{\"runs\": {}}'; exit;; watch) exit 64;; esac";

/// A fleet whose agents run elsewhere.
struct Elsewhere {
    fleet: Fleet,
}

impl Elsewhere {
    /// Agents do what `body` says; first each leaves `start BEAD RUN` in `starts`, and `$TOP` is where that lies.
    fn new(cap: usize, body: &str) -> Elsewhere {
        let fleet = Fleet::with_cap(cap, "");
        let top = fleet.town.home();
        open_to_all(&top, 0o711);
        let starts = fleet.home("starts");
        fs::write(&starts, "").expect("the home can be written");
        open_to_all(&starts, 0o666);
        let head = format!("TOP={}\necho \"start $GT_BEAD $GT_RUN\" >> $TOP/starts\n", top.display());
        fs::write(fleet.home("agent.sh"), head + body + "\n").expect("the home can be written");
        fleet.set("rigs.shop.isolation", "worktree");
        fleet.set("runtime", "exec");
        let elsewhere = Elsewhere { fleet };
        elsewhere.call(&elsewhere.host());
        elsewhere
    }

    fn host(&self) -> Vec<String> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/exec/other-host");
        let path = format!("PATH=/usr/bin:/bin:{}", std::env::var("PATH").unwrap_or_default());
        let other = self.fleet.home("other").display().to_string();
        let mut argv = vec!["env".to_owned(), path, program.display().to_string(), "--place".to_owned(), other];
        if is_root() {
            argv.extend(["--user".to_owned(), "nobody".to_owned()]);
        }
        argv
    }

    /// From now on this program is called.
    fn call(&self, argv: &[String]) {
        self.fleet.set("exec.command", &serde_json::to_string(argv).expect("texts are JSON"));
    }

    /// From now on this shell script is called; `$verb` is what is asked.
    fn call_script(&self, body: &str) {
        let path = self.fleet.town.write("program", format!("#!/bin/sh\nfor verb; do :; done\n{body}\n"));
        open_to_all(&path, 0o755);
        self.call(&["./program".to_owned()]);
    }

    fn starts(&self) -> Vec<String> {
        let text = fs::read_to_string(self.fleet.home("starts")).expect("it is there");
        text.lines().map(str::to_owned).collect()
    }

    fn until_started(&self, n: usize) {
        self.fleet.until_seen(&format!("{n} agents elsewhere"), || self.starts().len() >= n);
    }

    fn gt_json<const N: usize>(&self, arguments: [&str; N]) -> Value {
        self.fleet.town.gt(arguments).json()
    }

    fn worktree(&self) -> PathBuf {
        PathBuf::from(self.gt_json(["polecat", "list", "--json"])[0]["worktree"].as_str().expect("it has one"))
    }

    fn in_worktree(&self, arguments: &[&str]) -> String {
        let output = self.fleet.town.command("git").arg("-C").arg(self.worktree()).args(arguments).output();
        String::from_utf8(output.expect("git is installed").stdout).expect("text").trim().to_owned()
    }

    /// All starts were of different runs, and nothing of any run is left.
    fn assert_at_rest(&self, beads: &[&str]) {
        let mut runs = self.starts();
        let n_starts = runs.len();
        runs.sort();
        runs.dedup();
        assert_eq!(runs.len(), n_starts, "a run was started twice");
        let beads: Vec<String> = beads.iter().map(|bead| (*bead).to_owned()).collect();
        self.fleet.assert_at_rest(&beads);
        let kept = self.fleet.town.path(".gt/other-host");
        self.fleet.until_seen("every end acknowledged", || fs::read_dir(&kept).map_or(0, Iterator::count) == 0);
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.fleet.kill_daemon();
        let town = self.fleet.town.root().display().to_string();
        for entry in fs::read_dir("/proc").expect("there is a process table").flatten() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains(&town) && line.contains("other-host") {
                entry.file_name().to_string_lossy().parse().map(kill).unwrap_or_default();
            }
        }
    }
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("there is `id`");
    output.stdout == b"0\n"
}

#[test]
fn an_end_that_only_the_daemon_hears_of_is_seen_by_whoever_waits_for_it() {
    let elsewhere = Elsewhere::new(1, "trap 'sleep 1; exit' TERM; while :; do sleep 0.1; done");
    let deaf = "case $verb in watch) if tr '\\0' ' ' < /proc/$PPID/cmdline | grep -q 'polecat stop'; then\n\
        echo '{}'; exec cat > /dev/null; fi;; esac";
    elsewhere.call_script(&format!("{deaf}\nexec {} \"$@\"", elsewhere.host().join(" ")));
    elsewhere.fleet.start_daemon();
    elsewhere.fleet.hold(&["gt-a"]);
    elsewhere.fleet.town.gt(["sling", "gt-a"]).success();
    elsewhere.until_started(1);
    snapshot!(elsewhere.fleet.town.gt(["polecat", "stop", "Toast"]), @r"
    $ gt polecat stop Toast
    shop/Toast has stopped; gt-a is released. `gt scheduler retry gt-a` starts it again.
    ");
}

#[test]
fn work_is_done_elsewhere_by_somebody_else_and_its_commits_come_home() {
    let body = "gt prime > prime.txt && gt hook > hook.txt && gt show $GT_BEAD --json > show.json
        id -u > who; pwd > where; git branch --show-current > branch
        git add who where branch prime.txt hook.txt show.json
        git -c user.name=far -c user.email=far@example.org commit --quiet --message='done elsewhere'
        gt frobnicate 2> refusal; echo $? >> refusal; cat refusal
        gt done --no-changes --note 'three tables are enough'";
    let elsewhere = Elsewhere::new(2, body);
    let fleet = &elsewhere.fleet;
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned()]);
    assert_eq!(elsewhere.in_worktree(&["log", "--format=%an %s", "-1"]), "far done elsewhere");
    let read = |name: &str| fs::read_to_string(elsewhere.worktree().join(name)).expect("it came home");
    if is_root() {
        assert_eq!(read("who"), "65534\n");
    }
    assert!(read("where").starts_with(&fleet.home("other").display().to_string()), "{}", read("where"));
    assert_eq!(read("branch").trim(), elsewhere.in_worktree(&["branch", "--show-current"]));
    assert!(read("prime.txt").contains("gt-a") && read("hook.txt").contains("gt-a"));
    assert!(read("show.json").contains("\"Do gt-a\""));
    assert_eq!(elsewhere.in_worktree(&["status", "--porcelain"]), "");
    let log = fleet.town.gt(["polecat", "logs", "Toast"]).stdout;
    let id = fleet.town.events().into_iter().find(|event| event["type"] == "merge.queued").expect("it is merged");
    assert_eq!(
        log.replace(id["data"]["merge"].as_str().expect("an id"), "ID"),
        "gt: from here one can only ask: done, escalate, hook, prime, show\n2\n\
         gt-a is done and waits to be merged into main (ID). End your process now.\n"
    );
    elsewhere.assert_at_rest(&["gt-a"]);
}

#[test]
fn commits_come_home_too_when_the_agent_just_ends() {
    let body = "git -c user.name=far -c user.email=far@example.org commit --quiet --allow-empty --message=half
        exit 7";
    let elsewhere = Elsewhere::new(2, body);
    let fleet = &elsewhere.fleet;
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let ended = events.iter().rfind(|event| event["type"] == "run.ended").expect("it has");
    assert_eq!((&ended["data"]["outcome"], &ended["data"]["exit_code"]), (&"died".into(), &7.into()));
    assert_eq!(elsewhere.in_worktree(&["log", "--format=%s", "-1"]), "half");
    assert_eq!(elsewhere.gt_json(["show", "gt-a", "--json"])["status"], "open");
    let explained = fleet.town.gt(["explain", "gt-a"]).stdout;
    assert!(explained.contains("attempt 1 did not finish it (exit code 7)"), "{explained}");
}

#[test]
fn a_run_elsewhere_works_without_a_process_here_and_can_be_stopped() {
    let elsewhere = Elsewhere::new(2, "sleep 600 & wait");
    let fleet = &elsewhere.fleet;
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    let events = fleet.until_events("run.started", Some("gt-a"), 1);
    let started = events.iter().find(|event| event["type"] == "run.started").expect("it has");
    assert_eq!(started["data"]["pid"], Value::Null);
    let worker = elsewhere.gt_json(["polecat", "show", "Toast", "--json"]);
    assert_eq!((&worker["state"], &worker["pid"]), (&"working".into(), &Value::Null), "{worker}");
    assert!(!fleet.town.gt(["polecat", "show", "Toast"]).stdout.contains("process"));
    elsewhere.until_started(1);
    let stopped = fleet.town.gt(["polecat", "stop", "Toast"]);
    snapshot!(stopped.to_string(), @r"
    $ gt polecat stop Toast
    shop/Toast has stopped; gt-a is released. `gt scheduler retry gt-a` starts it again.
    ");
    assert_eq!(fleet.agents(), [], "no process of its tree is left");
    assert_eq!(elsewhere.gt_json(["show", "gt-a", "--json"])["status"], "open");
}

#[test]
fn a_daemon_that_is_killed_finds_its_runs_elsewhere_again_and_starts_none_twice() {
    let elsewhere = Elsewhere::new(3, "while [ ! -e $TOP/gate ]; do sleep 0.05; done; gt done --no-changes");
    let fleet = &elsewhere.fleet;
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", None, 2);
    fleet.kill_daemon();
    fleet.start_daemon();
    fleet.until_events("daemon.started", None, 2);
    assert_eq!(elsewhere.gt_json(["scheduler", "status", "--json"])["active_polecats"], 2);
    fleet.kill_daemon();
    // One ends while nobody looks.
    fleet.open_gate("gate");
    fleet.until_events("bead.closed", None, 2);
    fleet.start_daemon();
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    assert_eq!(elsewhere.starts().len(), 2);
    elsewhere.assert_at_rest(&["gt-a", "gt-b"]);
}

#[test]
fn without_a_daemon_an_end_elsewhere_is_recorded_and_leads_to_the_next_start() {
    let elsewhere = Elsewhere::new(1, "gt done --no-changes");
    let fleet = &elsewhere.fleet;
    fleet.set("scheduler.max_polecats", "-1");
    fleet.hold_lines(&[
        r#"{"id":"gt-a","title":"first"}"#,
        r#"{"id":"gt-b","title":"second","dependencies":[{"issue_id":"gt-b","depends_on_id":"gt-a","type":"blocks"}]}"#,
    ]);
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.until_done(&["gt-a".to_owned(), "gt-b".to_owned()]);
    assert_eq!(elsewhere.starts().len(), 2);
}

/// A program that is no good holds the town up, says why, and costs the bead nothing; a good one sets it free.
fn check_bad_program(name: &str, make_bad: impl Fn(&Elsewhere), expected: &str) {
    let elsewhere = Elsewhere::new(3, "gt done --no-changes");
    let fleet = &elsewhere.fleet;
    fleet.set("exec.timeout", "1s");
    make_bad(&elsewhere);
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_seen(&format!("{name}: the reason in `gt status`"), || {
        fleet.town.gt(["status"]).stdout.contains(expected)
    });
    let list = elsewhere.gt_json(["scheduler", "list", "--json"]);
    assert!(list.as_array().expect("a list").iter().all(|one| one["dispatch_failures"] == 0), "{name}: {list}");
    elsewhere.call(&elsewhere.host());
    fleet.set("exec.timeout", "1m");
    fleet.until_done(&["gt-a".to_owned()]);
    assert_eq!(elsewhere.starts().len(), 1, "{name}");
    assert_eq!(count(&fleet.town.events(), "bead.escalated", None), 0, "{name}");
}

#[test]
fn a_program_that_is_missing_or_cannot_be_executed_holds_the_town_up_with_its_reason() {
    let absent = |elsewhere: &Elsewhere| elsewhere.call(&["./absent".to_owned()]);
    check_bad_program("missing", absent, "cannot call `./absent`: No such file or directory (os error 2)");
    let plain = |elsewhere: &Elsewhere| {
        elsewhere.call_script("exit 0");
        open_to_all(&elsewhere.fleet.town.path("program"), 0o644);
    };
    check_bad_program("not executable", plain, "cannot call `./program`: Permission denied (os error 13)");
    let unset = |elsewhere: &Elsewhere| {
        elsewhere.fleet.town.gt(["config", "unset", "exec.command"]).success();
    };
    check_bad_program("unset", unset, "`gt config set exec.command '[\"./my-host\"]'`");
}

#[test]
fn a_program_that_hangs_holds_the_town_up_with_its_reason() {
    let all = |elsewhere: &Elsewhere| elsewhere.call_script("sleep 600");
    check_bad_program("hangs", all, "`./program survey` took longer than 1 second and was ended");
    let at_starts = |elsewhere: &Elsewhere| elsewhere.call_script(&format!("{SEES_NOTHING}\nsleep 600"));
    check_bad_program("hangs at starts", at_starts, "`./program start` took longer than 1 second and was ended");
}

#[test]
fn a_program_that_floods_holds_the_town_up_with_its_reason() {
    let at_starts = |elsewhere: &Elsewhere| {
        elsewhere.fleet.set("exec.timeout", "20s");
        elsewhere.call_script(&format!("{SEES_NOTHING}\nexec yes"));
    };
    check_bad_program("floods", at_starts, "`./program start` printed more than 16 MB and was ended");
}

#[test]
fn a_program_that_answers_rubbish_holds_the_town_up_with_its_reason() {
    let cases = [
        ("echo welcome", "printed what is no answer (expected value at line 1 column 1): `welcome`"),
        ("echo '{\"results\": []}'", "gave 0 results for 1 launches"),
        ("printf '{\"results\": ['; echo no route >&2; exit 255", "ended with exit code 255: no route"),
        ("echo full up >&2; exit 75", "ended with exit code 75: full up"),
    ];
    for (body, expected) in cases {
        let bad = |elsewhere: &Elsewhere| elsewhere.call_script(&format!("{SEES_NOTHING}\n{body}"));
        check_bad_program(body, bad, expected);
    }
}

#[test]
fn what_keeps_a_bead_waiting_is_said_everywhere() {
    let elsewhere = Elsewhere::new(3, "gt done --no-changes");
    let fleet = &elsewhere.fleet;
    elsewhere.call(&["./absent".to_owned()]);
    // That a command was replaced by a shorter one is shown too, and is another test's.
    let store = rusqlite::Connection::open(fleet.town.store()).expect("the store is there");
    store.execute("DELETE FROM config_dropped", []).expect("it is SQL");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_events("scheduler.held_up", None, 1);
    let answers = [fleet.town.gt(["explain", "gt-a"]), fleet.town.gt(["status"])];
    assert_eq!(fleet.town.gt(["scheduler", "run"]).code, 5, "not now");
    snapshot!(session(answers), @r"
    $ gt explain gt-a
    gt-a is scheduled:
      - it is number 1 of 1 in the queue
      - dispatch is held up: the program that runs agents elsewhere does not answer: cannot call `./absent`: No such file or directory (os error 2); next try in [SPAN], or at once with `gt scheduler resume`
    $ gt status
    [TOWN]  daemon runs (process [PID])
    0 of 3 agents running

    Needs a person (1)
      ! dispatch is held up: the program that runs agents elsewhere does not answer: cannot call `./absent`: No such file or directory (os error 2); next try in [SPAN], or at once with `gt scheduler resume`

    Nothing runs.

    Waiting (1)
      ○ gt-a Do gt-a
          dispatch is held up: the program that runs agents elsewhere does not answer: cannot call `./absent`: No such file or directory (os error 2); next try in [SPAN], or at once with `gt scheduler resume`

    Convoys (1)
      hq-cv-id01  0/1 done  Work: Do gt-a
    ");
}

#[test]
fn a_run_in_one_place_is_not_taken_for_dead_by_another() {
    let elsewhere = Elsewhere::new(3, "while [ ! -e $TOP/gate ]; do sleep 0.05; done; gt done --no-changes");
    let fleet = &elsewhere.fleet;
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-a"), 1);
    // From now on agents are started here, by this daemon and by the next.
    fleet.set("runtime", "process");
    fleet.kill_daemon();
    fleet.start_daemon();
    assert_eq!(elsewhere.gt_json(["polecat", "list", "--json"])[0]["state"], "working");
    fleet.open_gate("gate");
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    assert_eq!(count(&events, "scheduler.held_up", None), 0, "it is asked for where it is");
    assert_eq!(elsewhere.starts().len(), 1);
}
