//! People at a worker's screen: looking, typing, attaching; and runs that stay where they were started. // SPEC P5, P8

use std::fs;
use std::process::Command;

use crate::fleet::{FINISHES, Fleet};
use crate::town::snapshot;

/// A tmux server of the test's own, whose only pane is a person's terminal.
struct Desk {
    socket: String,
}

impl Desk {
    /// A terminal in which a person calls the binary.
    fn calling(fleet: &Fleet, words: &str) -> Desk {
        let socket = format!("desk-{}", std::process::id());
        let town = fleet.town.root().display();
        let line = format!("exec {} --town '{town}' {words}", crate::town::GT);
        let desk = Desk { socket };
        desk.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "sh", "-c", &line]);
        desk
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(words).output().expect("tmux is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let path = self.tmux(&["display-message", "-p", "#{socket_path}"]);
        self.tmux(&["kill-server"]);
        fs::remove_file(path.trim()).ok();
    }
}

#[test]
fn a_worker_is_told_something_and_its_screen_is_seen() {
    let fleet = Fleet::new("echo \"what now?\"\nread -r line\necho \"heard $line\" | tee \"$HOME/heard\"\ngt done");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_seen("its question", || fleet.town.gt(["polecat", "peek", "Toast"]).stdout.contains("what now?"));
    let logs = fleet.town.gt(["polecat", "logs", "Toast"]);
    assert!(logs.stdout.contains("what now?"), "its log is what it shows, while it runs: {logs}");
    let words = "go on; it's \"$HOME\" #{pane_id} ~ é;";
    snapshot!(fleet.town.gt(["polecat", "send", "toast", words]), @r#"
    $ gt polecat send toast 'go on; it's "$HOME" #{pane_id} ~ é;'
    shop/Toast was told.
    "#);
    fleet.until_done(&["gt-a".to_owned()]);
    assert_eq!(fs::read_to_string(fleet.home("heard")).unwrap_or_default(), format!("heard {words}\n"));
    // What was on the screen is in the log now.
    let logs = fleet.town.gt(["polecat", "logs", "Toast"]);
    assert!(logs.stdout.contains("what now?") && logs.stdout.contains("heard go on"), "{logs}");
    snapshot!(fleet.town.gt(["polecat", "send", "toast", "too late"]), @r"
    $ gt polecat send toast 'too late'
    ! error: shop/Toast has no run
    ! hint: what its last one printed: `gt polecat logs shop/Toast`
    [exit 1]
    ");
    snapshot!(fleet.town.gt(["polecat", "attach", "toast"]), @r"
    $ gt polecat attach toast
    ! error: shop/Toast has no run
    ! hint: what its last one printed: `gt polecat logs shop/Toast`
    [exit 1]
    ");
    fleet.assert_at_rest(&["gt-a".to_owned()]);
}

#[test]
fn a_person_attaches_answers_and_leaves() {
    let fleet = Fleet::new("echo \"shall I?\"\nread -r line\necho \"$line\" > \"$HOME/answer\"\ngt done");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_trace("start", 1);
    snapshot!(fleet.town.gt(["polecat", "attach", "Toast"]), @r"
    $ gt polecat attach Toast
    ! error: attaching needs a terminal, and this is none
    ! hint: see its screen with `gt polecat peek Toast`
    [exit 1]
    ");
    let desk = Desk::calling(&fleet, "polecat attach Toast");
    fleet.until_seen("the worker's screen on the desk", || desk.screen().contains("shall I?"));
    desk.tmux(&["send-keys", "-l", "yes"]);
    desk.tmux(&["send-keys", "-H", "0d"]);
    fleet.until_done(&["gt-a".to_owned()]);
    assert_eq!(fs::read_to_string(fleet.home("answer")).unwrap_or_default(), "yes\n");
    fleet.assert_at_rest(&["gt-a".to_owned()]);
}

#[test]
fn a_run_stays_where_it_was_started_whatever_the_config_says_then() {
    let waits = "while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done\ngt done";
    let fleet = Fleet::with_cap(4, waits);
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.set("runtime", "process");
    fleet.town.gt(["sling", "gt-b"]).success();
    fleet.until_events("run.started", Some("gt-b"), 1);
    let has_screen = |name: &str| fleet.town.gt(["polecat", "attach", name, "--dry-run"]).code == 0;
    assert_eq!((has_screen("Toast"), has_screen("Ember")), (true, false));
    elsewhere(&fleet);
    fleet.set("runtime", "exec");
    fleet.kill_daemon();
    fleet.start_daemon();
    fleet.open_gate("go");
    let both = ["gt-a".to_owned(), "gt-b".to_owned()];
    fleet.until_done(&both);
    assert_eq!(fleet.starts(), ["gt-a", "gt-b"]);
    fleet.set("runtime", "tmux");
    fleet.assert_at_rest(&both);
}

/// The example, in a directory of the test's own.
fn elsewhere(fleet: &Fleet) {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/exec/other-host");
    let place = fleet.home("elsewhere").display().to_string();
    fleet.set("exec.command", &format!("[\"{program}\", \"--place\", \"{place}\"]"));
}

#[test]
fn a_start_that_was_not_recorded_is_found_where_it_was_made() {
    let fleet = Fleet::new("while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done\ngt done");
    elsewhere(&fleet);
    fleet.hold(&["gt-a"]);
    fleet.town.call(["sling", "gt-a"]).env("GT_CRASH_AT", "launched").spawn().wait().expect("it is a child");
    fleet.await_trace("start", 1);
    fleet.set("runtime", "exec");
    fleet.start_daemon();
    fleet.until_events("run.started", Some("gt-a"), 1);
    fleet.open_gate("go");
    fleet.until_done(&["gt-a".to_owned()]);
    assert_eq!(fleet.starts(), ["gt-a"]);
}

#[test]
fn a_place_that_does_not_answer_hides_nothing_of_the_other() {
    let fleet = Fleet::with_cap(4, "while [ ! -e \"$HOME/$GT_BEAD\" ]; do sleep 0.02; done\ngt done");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.until_events("run.started", None, 2);
    fleet.set("exec.command", "[\"false\"]");
    fleet.set("runtime", "exec");
    fleet.open_gate("gt-a");
    fleet.until_events("run.ended", Some("gt-a"), 1);
    let beads = fleet.town.gt(["polecat", "list", "--json"]).json();
    let live = beads.as_array().expect("a list").iter().find(|one| one["bead"] == "gt-b").expect("it lives").clone();
    fleet.town.gt(["polecat", "stop", live["name"].as_str().expect("a name")]).success();
    fleet.until_events("run.ended", Some("gt-b"), 1);
}

#[test]
fn who_writes_to_its_screen_is_not_stalled() {
    let fleet =
        Fleet::new("while [ ! -e \"$HOME/go\" ]; do echo tick; sleep 0.2; done; touch \"$HOME/quiet\"; sleep 1000");
    fleet.set("witness.stall_after", "3s");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let state = || fleet.town.gt(["polecat", "list", "--json"]).json()[0]["state"].as_str().map(str::to_owned);
    let log = fs::read_dir(fleet.town.path(".gt/logs")).expect("there are logs").flatten().next().expect("one").path();
    fleet.until_seen("a log that was not written for so long", || {
        let at = fs::metadata(&log).and_then(|data| data.modified()).expect("it is a file");
        at.elapsed().is_ok_and(|age| age.as_secs() >= 4)
    });
    assert_eq!(state().as_deref(), Some("working"));
    fleet.open_gate("go");
    fleet.await_file("quiet");
    fleet.until_seen("that it is stalled", || state().as_deref() == Some("stalled"));
}

#[test]
fn who_hangs_on_its_screen_gets_the_interrupt_key_and_its_echo_is_no_sign_of_life() {
    let fleet = Fleet::with_cap(
        4,
        r#"if [ -e "$HOME/interrupted" ]; then gt done; exit; fi
        trap 'touch "$HOME/interrupted"' INT; echo working; while true; do sleep 600; done"#,
    );
    fleet.set("witness.stall_after", "2s");
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.start_daemon();
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let events = fleet.until_events("bead.closed", Some("gt-a"), 1);
    assert!(fleet.home("interrupted").exists(), "it got the key");
    for kind in ["run.stalled", "run.interrupted", "run.stopping"] {
        assert_eq!(crate::fleet::count(&events, kind, Some("gt-a")), 1, "{kind}");
    }
    let end = events.iter().find(|event| event["type"] == "run.ended").expect("it ended");
    assert_eq!((&end["data"]["outcome"], &end["data"]["last_output"]), (&"timed-out".into(), &"working\n^C".into()));
}

#[test]
fn a_limit_in_a_stream_on_a_screen_costs_no_attempt() {
    let fleet = Fleet::with_cap(
        4,
        r#"echo '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4102444800}}'
        echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit"}'
        while [ ! -e "$HOME/seen" ]; do sleep 0.02; done; exit 1"#,
    );
    fleet.set("agents.scripted.speaks", "claude");
    fleet.hold(&["gt-a"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a"]).success();
    // Of what is printed in the very last moment tmux may keep nothing.
    fleet.until_seen("the limit on its screen", || fleet.town.gt(["polecat", "peek", "Toast"]).stdout.contains("429"));
    std::fs::write(fleet.home("seen"), "").expect("the home can be written");
    let events = fleet.until_events("run.ended", Some("gt-a"), 1);
    let ended = events.iter().find(|event| event["type"] == "run.ended").expect("it has ended");
    assert_eq!(ended["data"]["outcome"], "rate-limited", "{ended}");
    let why = fleet.town.gt(["explain", "gt-a"]).stdout;
    assert!(why.contains("it is rate limited"), "{why}");
}

#[test]
fn without_tmux_the_config_decides() {
    let fleet = Fleet::new(FINISHES);
    fleet.hold(&["gt-a", "gt-b"]);
    let bin = fleet.home("bin");
    fs::create_dir(&bin).expect("the home can be written");
    for program in ["bash", "sh", "git", "env"] {
        let found =
            Command::new("sh").args(["-c", &format!("command -v {program}")]).output().expect("a shell is there");
        let path = String::from_utf8(found.stdout).expect("paths here are text");
        std::os::unix::fs::symlink(path.trim(), bin.join(program)).expect("the home can be written");
    }
    snapshot!(fleet.town.call(["sling", "gt-a"]).env("PATH", &bin).run(), @r"
    $ gt sling gt-a
    ✓ Scheduled gt-a → shop (context: gt-wisp-id01)
        dispatch is held up: no agent gets a terminal: tmux is not installed; without one: `gt config set runtime process`; next try in [SPAN], or at once with `gt scheduler resume`
    Tracked by convoy hq-cv-id02.
    ");
    let config = fleet.town.read("town.toml").replace("runtime = \"tmux\"\n", "");
    fleet.town.write("town.toml", config);
    fleet.town.gt(["scheduler", "resume"]).success();
    fleet.town.call(["sling", "gt-b"]).env("PATH", &bin).run().success();
    fleet.until_events("bead.closed", Some("gt-b"), 1);
}

#[test]
fn what_an_agent_writes_only_into_its_own_record_is_heard_at_once() {
    let start =
        r#"echo "{\"hook_event_name\":\"SessionStart\",\"transcript_path\":\"$HOME/record\"}" | gt agent-event codex"#;
    let limit = r#"echo '{"payload":{"type":"task_complete","error":{"message":"You have hit your usage limit."}}}'"#;
    // It is quiet for so long that nothing else wakes the daemon.
    let gate = r#"while [ ! -e "$HOME/go" ]; do sleep 0.02; done; sleep 3"#;
    let fleet =
        Fleet::new(&format!("touch \"$HOME/record\"\n{start}\n{gate}\n{limit} >> \"$HOME/record\"\nexec sleep 600"));
    fleet.set("agents.scripted.speaks", "codex");
    fleet.start_daemon();
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    let worker = || fleet.town.gt(["polecat", "list", "--json"]).json()[0].clone();
    fleet.until_seen("that it works, by its own word", || worker()["activity"] == "working");
    fleet.open_gate("go");
    fleet.until_events("run.waiting", Some("gt-a"), 1);
    assert_eq!(worker()["waiting_for"], "limit");
}

#[test]
fn a_killed_tmux_server_is_no_bead_s_fault() {
    let fleet = Fleet::with_cap(4, "while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done\ngt done");
    fleet.hold(&["gt-a", "gt-b"]);
    fleet.start_daemon();
    fleet.town.gt(["sling", "gt-a", "gt-b"]).success();
    fleet.set("witness.redispatch_cooldown", "0s");
    fleet.await_trace("start", 2);
    let mut server = gt_runtime::terminal::Server::of(&fleet.town.path(".gt/keeper")).command();
    assert!(server.arg("kill-server").status().expect("tmux is installed").success());
    for bead in ["gt-a", "gt-b"] {
        let events = fleet.until_events("run.ended", Some(bead), 1);
        let ended = events.iter().find(|event| event["type"] == "run.ended").expect("it has ended");
        assert_eq!(ended["data"]["outcome"], "lost", "{ended}");
        assert_eq!(ended["data"]["reason"], "the server of its terminal is gone, and took it along", "{ended}");
    }
    // They come again, in another server, and have all their attempts.
    fleet.until_events("run.started", None, 4);
    let events = fleet.town.gt(["activity", "--json"]).stdout;
    assert!(!events.contains("bead.escalated"), "{events}");
    fleet.open_gate("go");
    let both = ["gt-a".to_owned(), "gt-b".to_owned()];
    fleet.until_done(&both);
    fleet.assert_at_rest(&both);
}

#[test]
fn a_server_that_hangs_is_named_with_a_way_out() {
    let fleet = Fleet::new("echo here; exec sleep 1000");
    fleet.hold(&["gt-a"]);
    fleet.town.gt(["sling", "gt-a"]).success();
    fleet.await_trace("start", 1);
    let server = gt_runtime::terminal::Server::of(&fleet.town.path(".gt/keeper"));
    let pid = server.command().args(["display-message", "-p", "#{pid}"]).output().expect("tmux is installed").stdout;
    let pid = String::from_utf8_lossy(&pid).trim().parse().expect("its process");
    let healthy = fleet.town.gt(["doctor"]);
    Fleet::signal(pid, "-STOP");
    let hanging = fleet.town.gt(["doctor"]);
    let remedy = format!("pkill -CONT -f {}", server.name());
    let woken = Command::new("sh").args(["-c", &remedy]).status().expect("a shell is there");
    assert!(woken.success(), "the remedy finds the server");
    let awake = fleet.town.gt(["doctor"]);
    assert!(healthy.stdout.contains("✓ tmux") && awake.stdout.contains("✓ tmux"), "{healthy}{awake}");
    let wanted = format!("the town's server {} does not answer: it said nothing for 5 seconds", server.name());
    assert_eq!(hanging.code, 1, "{hanging}");
    assert!(hanging.stdout.contains(&wanted) && hanging.stdout.contains(&format!("`{remedy}`")), "{hanging}");
}

#[test]
fn a_convoy_that_is_watched_is_drawn_over_itself() {
    let fleet = Fleet::new(FINISHES);
    fleet.hold(&["gt-a", "gt-b", "gt-c"]);
    let staged = fleet.town.gt(["convoy", "stage", "gt-a", "gt-b", "gt-c", "--json"]).json();
    let convoy = staged["convoy_id"].as_str().expect("a convoy");
    let desk = Desk::calling(&fleet, &format!("convoy status {convoy} --watch"));
    fleet.until_seen("the first picture", || desk.screen().contains("0/3 done"));
    fleet.town.gt(["close", "gt-b"]).success();
    fleet.until_seen("the next picture", || desk.screen().contains("1/3 done"));
    let screen = desk.screen();
    assert!(!screen.contains("0/3 done"), "{screen}");
    assert_eq!(screen.matches(convoy).count(), 1, "{screen}");
    // On a lower terminal it is cut rather than scrolled.
    desk.tmux(&["resize-window", "-x", "60", "-y", "6"]);
    fleet.town.gt(["close", "gt-a"]).success();
    fleet.until_seen("what fits of it", || desk.screen().contains("2/3 done") && desk.screen().contains('…'));
}
