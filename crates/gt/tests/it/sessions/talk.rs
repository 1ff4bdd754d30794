//! `gt send`, `gt chat`, `gt session`, `gt lane` and `gt trace`, with and without a daemon. // SPEC L1–L6

use crate::sessions_table::{ECHO, Table};
use crate::town::{session, snapshot};

#[test]
fn a_message_is_answered_with_a_daemon_and_without() {
    let table = Table::new(ECHO);
    let alone = table.town.gt(["send", "dm:a", "hello", "--wait"]);
    let kept = table.town.gt(["send", "dm:a", "are you there?"]);
    table.start_daemon();
    table.await_outcomes("dm:a", &["done", "done"]);
    let together = table.town.gt(["send", "dm:a", "and now?", "--wait"]);
    snapshot!(session([alone, kept, together]), @r"
    $ gt send dm:a hello --wait
    re hello
    $ gt send dm:a 'are you there?'
    Sent to dm:a.
    ! note: no daemon runs, so nothing starts by itself: `gt daemon start`
    $ gt send dm:a 'and now?' --wait
    re and now?
    ");
    assert_eq!(table.lines().len(), 6, "{:?}", table.lines());
}

#[test]
fn what_is_said_of_sessions_lanes_and_runs() {
    let table = Table::new("case $message in fail*) echo 'no key' >&2; exit 3;; esac; printf 're %s' \"$message\"");
    let nobody = table.town.gt(["session", "list"]);
    table.town.gt(["send", "dm:anna", "hello\nthere", "--wait"]).success();
    let failed = table.town.gt(["send", "dm:anna", "fail, please", "--wait"]);
    table.end_looks();
    table.town.gt(["send", "group:ops", "wait for a daemon"]).success();
    let shown = [
        nobody,
        failed,
        table.town.gt(["session", "list"]),
        table.town.gt(["session", "show", "dm:anna"]),
        table.town.gt(["session", "show", "group:ops", "--json"]),
        table.town.gt(["lane", "list"]),
        table.town.gt(["trace", "show", "dm:anna"]),
        table.town.gt(["trace", "show", "dm:anna", "--json"]),
    ];
    snapshot!("sessions_shown", session(shown));
}

#[test]
fn what_is_not_understood_is_refused_and_changes_nothing() {
    let table = Table::new(ECHO);
    let long = table.town.call(["send", "dm:a", "-"]).stdin(&vec![b'x'; 10 * 1024 * 1024]).run();
    let bytes = table.town.call(["send", "dm:a", "-"]).stdin(b"\xff\xfe").run();
    let refused = [
        long,
        bytes,
        table.town.gt(["send", "dm:a", " "]),
        table.town.gt(["send", "", "x"]),
        table.town.gt(["session", "show", "dm:nobody"]),
        table.town.gt(["session", "stop", "dm:nobody"]),
        table.town.gt(["session", "set", "dm:a", "--mode", "loud"]),
        table.town.gt(["session", "set", "dm:a", "--cap", "many"]),
        table.town.gt(["lane", "set", "main", "0"]),
        table.town.gt(["trace", "show", "dm:nobody"]),
        table.town.gt(["chat", "--json"]),
        table.town.gt(["send", "dm:a", "x", "--channel", "hok"]),
        table.town.gt(["session", "set", "dm:a", "--channel", "hok"]),
    ];
    snapshot!("sessions_refused", session(refused));
    assert_eq!(table.town.gt(["session", "list", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn what_may_be_a_slip_is_taken_with_a_word() {
    let table = Table::new(ECHO);
    let words = ["send", "dm:a", "x", "--wait", "--lane", "polecat"];
    let unknown = ["send", "dm:b", "x", "--agent", "nobody", "--lane", "lain"];
    snapshot!(session([table.town.gt(words), table.town.gt(unknown)]), @"
    $ gt send dm:a x --wait --lane polecat
    re x
    ! note: the lane `polecat` is the scheduler's own, so it counts in `main`
    $ gt send dm:b x --agent nobody --lane lain
    ! error: there is no agent `nobody`
    ! hint: built in are claude, codex, gemini, opencode and shell; your own: set `agents.nobody.command`
    [exit 3]
    ");
}

#[test]
fn lanes_follow_config_and_environment() {
    let table = Table::new(ECHO);
    let limits = |json: serde_json::Value| {
        let lanes = json.as_array().expect("a list").clone();
        lanes
            .iter()
            .map(|lane| format!("{} {}", lane["name"].as_str().expect("a name"), lane["limit"]))
            .collect::<Vec<_>>()
    };
    table.town.gt(["lane", "set", "research", "8"]).success();
    table.town.gt(["lane", "set", "polecat", "5"]).success();
    let listed =
        table.town.call(["lane", "list", "--json"]).env("GT_LANE_MAIN", "7").env("GOCLAW_LANE_CRON", "3").run();
    assert_eq!(limits(listed.json()), ["cron 3", "delegate 100", "main 7", "research 8", "subagent 4", "polecat 5"]);
    let unknown = table.town.gt(["send", "dm:a", "x", "--lane", "nowhere"]);
    assert!(unknown.stderr.contains("there is no lane `nowhere`, so it counts in `main`"), "{unknown}");
}

#[test]
fn rapid_messages_become_one_turn() {
    let table = Table::new(ECHO);
    table.set("sessions.debounce_ms", "60000");
    for word in ["one", "two", "three"] {
        table.town.gt(["send", "dm:a", word]).success();
    }
    let other = table.town.gt(["send", "dm:a", "mine", "--sender", "bert", "--json"]).json();
    assert_eq!(other["outcome"], "queued");
    assert_eq!(table.outcomes("dm:a"), ["waiting", "waiting"]);
    assert_eq!(table.session("dm:a")["turns"][0]["text"], "one\ntwo\nthree");
}

#[test]
fn a_name_counts_once_within_a_session_and_not_beyond_it() {
    let table = Table::new(ECHO);
    let send = |session: &str, text: &str| {
        table.town.gt(["send", session, text, "--id", "k1", "--wait", "--json"]).json()["reply"].clone()
    };
    assert_eq!(send("dm:a", "one"), "re one");
    assert_eq!(send("dm:a", "two"), "re one", "it is the same message");
    assert_eq!(send("dm:b", "three"), "re three", "it is another session's");
    assert_eq!(table.lines().len(), 4, "{:?}", table.lines());
}

#[test]
fn a_conversation_in_a_pipe_ends_with_its_last_answer() {
    let table = Table::new(ECHO);
    let said = table.town.call(["chat", "dm:a"]).stdin(b"first\n\nsecond\n").run();
    assert!(said.stdout.contains("re first") && said.stdout.ends_with("re second\n"), "{said}");
    let history = table.town.call(["chat", "dm:a"]).stdin(b"/history\n/quit\nnever sent\n").run();
    assert!(history.stdout.contains("> first\nre first\n> second\nre second"), "{history}");
    assert_eq!(table.outcomes("dm:a"), ["done", "done"]);
}

#[test]
fn each_line_of_a_pipe_is_answered_before_the_next_is_sent() {
    let table = Table::new(ECHO);
    table.set("sessions.mode", "interrupt");
    table.set("sessions.cap", "1");
    table.set("sessions.debounce_ms", "50");
    let said = table.town.call(["chat", "dm:a"]).stdin(b"one\ntwo\nthree\n/quit\n").run();
    assert_eq!((said.stdout.as_str(), said.code), ("re one\nre two\nre three\n", 0), "{said}");
    assert_eq!(table.outcomes("dm:a"), ["done", "done", "done"]);
}

#[test]
fn a_pipe_ends_with_1_if_a_line_was_not_answered() {
    let table = Table::new("echo sorry >&2; exit 3");
    let said = table.town.call(["chat", "dm:a"]).stdin(b"one\n").run();
    assert_eq!(said.code, 1, "{said}");
    assert!(said.stderr.contains("1 message was not answered"), "{said}");
}

#[test]
fn a_turn_that_takes_too_long_is_ended_for_real() {
    let table = Table::new("sleep 600 & sleep 600");
    table.set("sessions.timeout", "1s");
    table.start_daemon();
    let failed = table.town.gt(["send", "dm:a", "x", "--wait"]);
    snapshot!(failed, @r"
    $ gt send dm:a x --wait
    ! failed: it ran longer than `sessions.timeout` (killed by signal 15)
    [exit 1]
    ");
    table.until_seen("nobody to be left", || table.agents().is_empty());
}

#[test]
fn an_agent_that_takes_no_turns_or_is_not_there_fails_at_once_with_what_to_set() {
    let table = Table::new(ECHO);
    table.set("agents.mute.command", "[\"true\"]");
    table.set("agents.away.headless", "[\"no-such-program\"]");
    table.start_daemon();
    // Through the default agent nothing is known before the turn starts.
    table.set("default_agent", "mute");
    let answers = [
        table.town.gt(["send", "dm:a", "x", "--wait"]),
        table.town.gt(["send", "dm:b", "x", "--wait", "--agent", "away"]),
    ];
    snapshot!(session(answers), @"
    $ gt send dm:a x --wait
    ! failed: agent `mute` takes no chat turns; set `agents.mute.headless`
    [exit 1]
    $ gt send dm:b x --wait --agent away
    ! failed: agent `away` cannot start `no-such-program`: not found on the daemon's PATH; install it, set `agents.away.headless`, or run `gt daemon restart` if it is on your PATH
    [exit 1]
    ");
    let unknown = [
        table.town.gt(["send", "dm:c", "x", "--agent", "mute"]),
        table.town.gt(["send", "dm:c", "x", "--agent", "nosuch"]),
    ];
    snapshot!(session(unknown), @r#"
    $ gt send dm:c x --agent mute
    ! error: agent `mute` takes no chat turns; set `agents.mute.headless`
    ! hint: as in `gt config set agents.mute.headless '["bash", "turn.sh"]'`
    [exit 1]
    $ gt send dm:c x --agent nosuch
    ! error: there is no agent `nosuch`
    ! hint: built in are claude, codex, gemini, opencode and shell; your own: set `agents.nosuch.command`
    [exit 3]
    "#);
    table.set("agents.mute.headless", &format!("[\"bash\", \"{}\"]", table.home("turn.sh").display()));
    let mended = table.town.gt(["send", "dm:a", "y", "--wait"]);
    assert_eq!(mended.stdout.trim(), "re y", "{mended}");
}

#[test]
fn nested_work_in_a_full_lane_goes_on() {
    let table = Table::new(
        "case $message in
           ask*) printf 'heard: %s' \"$(gt send dm:inner-$GT_SESSION \"tell $message\" --wait --lane main)\";;
           tell*) printf '%s' \"$(gt send dm:deep-$GT_SESSION deepest --wait --lane main)\";;
           itself) gt send \"$GT_SESSION\" again --wait 2>&1; true;;
           *) printf 're %s' \"$message\";;
         esac",
    );
    table.set("lanes.main", "1");
    table.start_daemon();
    let answer = table.town.gt(["send", "dm:a", "ask", "--wait"]);
    assert_eq!(answer.stdout.trim(), "heard: re deepest", "{answer}");
    let refused = table.town.gt(["send", "dm:a", "itself", "--wait"]);
    assert!(refused.stdout.contains("`dm:a` could not answer: what it does waits for this very run"), "{refused}");
}

#[test]
fn a_run_of_a_turn_ends_no_bead() {
    let table = Table::new("gt done 2>&1; true");
    table.start_daemon();
    let said = table.town.gt(["send", "dm:a", "x", "--wait"]);
    assert!(said.stdout.contains("error:"), "{said}");
    assert_eq!(table.outcomes("dm:a"), ["done"]);
}

#[test]
fn a_chat_on_a_terminal_streams_and_stops() {
    let table = Table::new("echo first part; touch \"$HOME/half\"; sleep 600");
    table.start_daemon();
    let pane = Pane::open(&table, "gt chat dm:a");
    pane.type_line("tell me");
    pane.await_text("first part");
    pane.type_line("/stop");
    pane.await_text("Stopped 1 turn that ran.");
    pane.await_text("cancelled:");
    pane.type_line("/quit");
    table.await_outcomes("dm:a", &["cancelled"]);
    table.until_seen("nobody to be left", || table.agents().is_empty());
}

/// A terminal of a tmux server of its own.
struct Pane<'a> {
    table: &'a Table,
    socket: String,
}

impl Pane<'_> {
    fn open<'a>(table: &'a Table, command: &str) -> Pane<'a> {
        let socket = table.home("chat.sock").display().to_string();
        let path = format!(
            "{}:{}",
            std::path::Path::new(crate::town::GT).parent().expect("a place").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let line = format!("PATH='{path}' {command}");
        let root = table.town.root().display().to_string();
        let pane = Pane { table, socket };
        pane.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "-c", &root, &line]);
        pane
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = self.table.town.command("tmux").args(["-S", &self.socket]).args(arguments).output();
        String::from_utf8_lossy(&output.expect("tmux is there").stdout).into_owned()
    }

    fn type_line(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    fn await_text(&self, text: &str) {
        self.table.until_seen(text, || self.tmux(&["capture-pane", "-p"]).contains(text));
    }
}

impl Drop for Pane<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_session_is_not_given_to_an_agent_that_does_not_exist() {
    let fleet = crate::fleet::Fleet::new("true");
    let refused = fleet.town.gt(["session", "set", "dm:w", "--agent", "cluade"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("did you mean `claude`?"), "{refused}");
    fleet.town.gt(["session", "set", "dm:w", "--agent", "default"]).success();
}
