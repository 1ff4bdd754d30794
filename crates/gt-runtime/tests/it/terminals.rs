//! What only terminals can get wrong: words on their way through tmux, and a tmux that is killed, stopped or meddled with.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gt_runtime::terminal::{self, Sent, Server, TerminalError};
use gt_runtime::{Launch, Place, Runtime as _, Sighting, StartError, Stop};
use rustix::process::{Pid, Signal, kill_process};

use super::leftovers::is_marked;
use super::place::tests_in;
use super::town::{Town, is_alive, kill, known, pid_in, pids, tmuxes_of, until};

tests_in!(
    only_there,
    TERMINAL,
    words_reach_a_program_as_they_were_given,
    what_no_program_can_be_given_fails_alone,
    a_run_has_a_terminal_of_its_own,
    a_text_for_standard_input_is_read_and_then_removed,
    a_log_is_there_from_the_start_and_has_what_was_shown_in_the_end,
    a_name_that_is_taken_does_not_matter,
    the_exit_status_is_known_of_runs_that_ended_without_a_keeper,
    a_killed_server_ends_its_runs_and_the_next_start_makes_another,
    a_run_that_ignores_the_loss_of_its_terminal_is_ended,
    a_start_that_a_server_takes_along_is_not_made_again_in_another,
    a_session_that_somebody_removes_ends_its_run,
    a_killed_client_is_replaced,
    keepers_that_are_killed_leave_no_clients_behind,
    a_keeper_calls_only_when_the_client_before_is_gone_for_the_server_too,
    a_stopped_server_holds_nobody_up_for_ever,
    strangers_sessions_are_neither_counted_nor_touched,
    a_keeper_with_nothing_to_keep_ends_its_server,
    a_keeper_that_leaves_spares_a_strangers_session,
    what_a_killed_keeper_left_of_texts_and_drafts_is_removed_by_the_next,
    a_log_may_lie_anywhere_and_is_written_there,
    a_log_that_was_swapped_for_a_pipe_holds_nobody_up,
    a_program_does_not_know_of_the_terminals_of_others,
    a_pane_that_looks_like_tmux_itself_confuses_nobody,
    a_screen_can_be_looked_at_and_typed_into,
    a_run_without_a_terminal_is_said_to_have_none,
);

fn tmux(town: &Town, arguments: &[&str]) -> String {
    let mut command = Server::of(town.keeper_dir()).command();
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn sessions(town: &Town) -> Vec<String> {
    tmux(town, &["list-sessions", "-F", "#{session_name}"]).lines().map(str::to_owned).collect()
}

fn server_pid(town: &Town) -> u32 {
    tmux(town, &["display-message", "-p", "#{pid}"]).trim().parse().unwrap()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// Words that mean something to tmux, to a shell, to a terminal or to a format.
const NASTY: &[&str] = &[
    "",
    " ",
    "plain",
    "two words",
    "'",
    "\"",
    "\\",
    "\\n",
    "$HOME",
    "${HOME}",
    "`id`",
    "$(id)",
    ";",
    "a;b",
    "\\;",
    "a\nb",
    "\n",
    "\t\r\x1b[2J\x07",
    "#{pid}",
    "#(id)",
    "##",
    "#[fg=red]",
    "#,",
    "%H:%M",
    "%if",
    "~",
    "~root",
    "a~b",
    "{",
    "}",
    "{ id }",
    "-",
    "--",
    "-d",
    "-e",
    "=x",
    "A=b",
    "*",
    "?",
    "[a]",
    "!",
    "!!",
    "&",
    "|",
    ">x",
    "<x",
    "é",
    "日本語",
    "🦀",
    "\u{7f}",
    "\u{85}",
    "\u{feff}",
    "\u{202e}",
];

fn words_reach_a_program_as_they_were_given(town: &Town) {
    let mut runtime = town.watched_runtime();
    let long = "x'\"$;\n".repeat(10_000);
    let mut words: Vec<String> = NASTY.iter().map(|word| (*word).to_owned()).collect();
    words.push(long.clone());
    // Every pair of bytes that a text can begin with, so that no escape eats what follows it.
    words.extend((1..128_u8).map(|byte| format!("{0}{0}7{0}x", char::from(byte))));
    words.extend(std::iter::repeat_with(random_word).take(200));
    let show = "for word; do printf '%s\\0' \"$word\"; done > words; tr '\\n' '\\n' < /proc/self/environ > variables; pwd > dir; \
        readlink /proc/$$/fd/0 > input";
    let mut env: Vec<(String, String)> =
        words.iter().enumerate().map(|(n, word)| (format!("V{n}"), word.clone())).collect();
    let dirs = ["odd #{pid} #[x] ##", "%H'\"$(id);~\n", "-e", "~"];
    let launches: Vec<Launch> = dirs
        .iter()
        .enumerate()
        .map(|(n, dir)| {
            let dir = town.path(dir);
            fs::create_dir(&dir).unwrap();
            let mut launch = town.launch(&format!("r{n}"), show);
            launch.argv.push("sh".to_owned());
            launch.argv.extend(words.iter().cloned());
            env.extend(launch.env.clone());
            Launch { dir, env: env.clone(), session: format!("#(id) {dirs:?}"), ..launch }
        })
        .collect();
    for started in runtime.start(&launches) {
        started.unwrap();
    }
    for launch in &launches {
        assert_eq!(town.ending(&mut *runtime, &known(&launch.run, None)).code, Some(0), "{}", launch.dir.display());
        let read = |name: &str| fs::read_to_string(launch.dir.join(name)).unwrap();
        let given: Vec<String> = read("words").split_terminator('\0').map(str::to_owned).collect();
        assert_eq!(given, words);
        let variables = read("variables");
        let variables: BTreeMap<&str, &str> = variables.split('\0').filter_map(|pair| pair.split_once('=')).collect();
        for (name, value) in &launch.env[..words.len()] {
            assert_eq!(variables.get(name.as_str()), Some(&value.as_str()), "{name}");
        }
        assert_eq!(read("dir"), format!("{}\n", launch.dir.display()));
        assert!(read("input").starts_with("/dev/pts/"));
    }
}

/// Any letters, mostly those that mean something to somebody; an assertion that fails shows them.
fn random_word() -> String {
    let nasty: Vec<char> = NASTY.concat().chars().collect();
    let letter = || match fastrand::u8(..4) {
        0 => fastrand::char('\u{1}'..),
        _ => nasty[fastrand::usize(..nasty.len())],
    };
    std::iter::repeat_with(letter).take(fastrand::usize(..12)).collect()
}

fn what_no_program_can_be_given_fails_alone(town: &Town) {
    let mut runtime = town.watched_runtime();
    let with_word = |word: &str| {
        let mut launch = town.launch("bad", "true");
        launch.argv.push(word.to_owned());
        launch
    };
    let with_variable = |name: &str, value: &str| {
        let mut launch = town.launch("bad", "true");
        launch.env.push((name.to_owned(), value.to_owned()));
        launch
    };
    let bad = [
        with_word("a\0b"),
        with_word(&"x".repeat(200_000)),
        with_variable("A", "a\0b"),
        with_variable("A\0", "b"),
        with_variable("", "b"),
        with_variable("A=B", "b"),
        with_variable("LONG", &"x".repeat(200_000)),
    ];
    for bad in bad {
        let started = runtime.start(&[bad.clone(), town.launch("good", "exec sleep 1000")]);
        assert!(matches!(&started[0], Err(StartError::Failed { cause }) if !cause.is_empty()), "{started:?}");
        assert!(started[1].is_ok(), "{started:?}");
        assert!(!bad.log.exists(), "a log is the trace of a run that has begun");
    }
    assert_eq!(sessions(town).len(), 2);
}

fn a_run_has_a_terminal_of_its_own(town: &Town) {
    let mut runtime = town.watched_runtime();
    let script =
        "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && tty > tty; stty size > size; echo $SHELL > shell; read word; exit 3";
    let mut launch = town.launch("r1", script);
    launch.env.push(("SHELL".to_owned(), "/bin/bash".to_owned()));
    runtime.start(&[launch]).remove(0).unwrap();
    until("it waits for a line", || town.path("shell").exists());
    assert_eq!(sessions(town), ["gt-keeper", "test-r1"]);
    assert!(fs::read_to_string(town.path("tty")).unwrap().starts_with("/dev/pts/"));
    assert_eq!(fs::read_to_string(town.path("size")).unwrap(), "50 200\n");
    assert_eq!(terminal::send(town.keeper_dir(), "r1", "a line").unwrap(), Sent::Shown);
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(3));
    assert_eq!(fs::read_to_string(town.path("shell")).unwrap(), "/bin/bash\n");
    assert_eq!(town.log("r1"), "a line\n");
    until("its session is gone", || sessions(town) == ["gt-keeper"]);
}

fn a_text_for_standard_input_is_read_and_then_removed(town: &Town) {
    use std::os::unix::fs::PermissionsExt as _;
    let mut runtime = town.watched_runtime();
    town.fifo("go");
    let stdin = Some("secret $HOME\n\"quoted\"".to_owned());
    let launch = Launch { stdin, ..town.launch("r1", "cat > got; read word < go; [ -t 1 ]") };
    runtime.start(&[launch]).remove(0).unwrap();
    until("it was read", || fs::read(town.path("got")).is_ok_and(|got| got.ends_with(b"quoted\"")));
    let kept = || fs::read_dir(town.keeper_dir().join("terminals")).unwrap().flatten();
    assert!(kept().count() >= 2);
    for file in kept() {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    fs::write(town.path("go"), "go\n").unwrap();
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(0));
    assert_eq!(fs::read_to_string(town.path("got")).unwrap(), "secret $HOME\n\"quoted\"");
    until("nothing of it is kept", || kept().count() == 0);
}

fn what_a_killed_keeper_left_of_texts_and_drafts_is_removed_by_the_next(town: &Town) {
    let mut runtime = town.watched_runtime();
    let launch = Launch { stdin: Some("text".to_owned()), ..town.launch("r1", "sleep 1000") };
    runtime.start(&[launch]).remove(0).unwrap();
    town.kill_keeper();
    let file = |name: &str| town.keeper_dir().join("terminals").join(name);
    for name in ["r0.stdin", "r0.json.tmp", "r2.stdin.tmp"] {
        fs::write(file(name), "secret").unwrap();
    }
    assert_eq!(runtime.survey(&[]).unwrap().len(), 1);
    let mut kept: Vec<_> = fs::read_dir(file("")).unwrap().map(|file| file.unwrap().file_name()).collect();
    kept.sort();
    assert_eq!(kept, ["r1.json", "r1.stdin"]);
}

fn a_log_is_there_from_the_start_and_has_what_was_shown_in_the_end(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.fifo("go");
    town.start(&mut *runtime, "r1", "read word < go; seq 1 300; printf '%0300d\\n' 7; printf 'last, without an end'");
    assert_eq!(town.path("r1.log").metadata().unwrap().len(), 0);
    fs::write(town.path("go"), "go\n").unwrap();
    town.ending(&mut *runtime, &known("r1", None));
    let numbers = (1..=300).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    assert_eq!(town.log("r1"), format!("{numbers}\n{:0300}\nlast, without an end\n", 7));
}

fn a_name_that_is_taken_does_not_matter(town: &Town) {
    let mut runtime = town.watched_runtime();
    let named =
        |run: &str, session: &str| Launch { session: session.to_owned(), ..town.launch(run, "exec sleep 1000") };
    let launches =
        [named("r1", "same"), named("r2", "same"), named("r3", "gt-keeper"), named("r4", ":. #{pid}"), named("r5", "")];
    let handles: Vec<_> = runtime.start(&launches).into_iter().map(Result::unwrap).collect();
    assert!(handles.iter().all(|handle| is_alive(handle.pid)));
    assert_eq!(sessions(town), ["gt-keeper", "gt-keeper-r3", "pid-", "r5", "same", "same-r2"]);
}

fn the_exit_status_is_known_of_runs_that_ended_without_a_keeper(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.fifo("go");
    let first = town.start(&mut *runtime, "first", "read word < go; echo said; exit 5");
    let second = town.start(&mut *runtime, "second", "exec sleep 1000");
    let third = town.start(&mut *runtime, "third", "exec sleep 1000");
    town.kill_keeper();
    fs::write(town.path("go"), "go\n").unwrap();
    kill(second.pid);
    until("both are gone", || !is_alive(first.pid) && !is_alive(second.pid));
    // By run alone, as when the start was never recorded.
    let ending = town.ending(&mut *runtime, &known("first", None));
    assert_eq!((ending.code, ending.signal), (Some(5), None));
    assert_eq!(town.log("first"), "said\n");
    let ending = town.ending(&mut *runtime, &known("second", Some(&second)));
    assert_eq!((ending.code, ending.signal), (None, Some(9)));
    assert_eq!(runtime.survey(&[known("third", None)]).unwrap()["third"], Sighting::Running(third));
}

fn a_killed_server_ends_its_runs_and_the_next_start_makes_another(town: &Town) {
    let mut runtime = town.watched_runtime();
    for (round, is_asked) in [(1, false), (2, true)] {
        let names: Vec<String> = (0..5).map(|n| format!("r{round}-{n}")).collect();
        let launches: Vec<Launch> = names.iter().map(|run| town.launch(run, "exec sleep 1000")).collect();
        let handles: Vec<_> = runtime.start(&launches).into_iter().map(Result::unwrap).collect();
        if is_asked {
            tmux(town, &["kill-server"]);
        } else {
            kill(server_pid(town));
        }
        for (run, handle) in names.iter().zip(&handles) {
            let ending = town.ending(&mut *runtime, &known(run, Some(handle)));
            assert_eq!((ending.code, ending.signal, ending.is_lost), (None, None, true));
            assert!(!is_alive(handle.pid));
        }
        runtime.acknowledge(&names).unwrap();
    }
    town.start(&mut *runtime, "later", "exit 4");
    assert_eq!(town.ending(&mut *runtime, &known("later", None)).code, Some(4));
}

fn a_run_that_ignores_the_loss_of_its_terminal_is_ended(town: &Town) {
    let mut runtime = town.watched_runtime();
    let script = "trap '' HUP; echo $$ > pid; while :; do sleep 1000; done";
    let handle = town.start(&mut *runtime, "r1", script);
    pid_in(&town.path("pid"));
    kill(server_pid(town));
    town.ending(&mut *runtime, &known("r1", Some(&handle)));
    assert!(!is_alive(handle.pid));
}

fn a_start_that_a_server_takes_along_is_not_made_again_in_another(town: &Town) {
    let mut runtime = town.watched_runtime();
    let before = town.start(&mut *runtime, "before", "exec sleep 1000");
    let (server, mut other) = (server_pid(town), town.process_runtime());
    let launch = town.launch("meanwhile", "echo $$ > begun; exec sleep 1000");
    signal(server, Signal::STOP);
    let starting = std::thread::spawn(move || other.start(&[launch]));
    until("it is asked for", || town.keeper_dir().join("terminals/meanwhile.json").exists());
    kill(server);
    let started = starting.join().unwrap().remove(0);
    assert!(
        matches!(&started, Err(StartError::NoRoom { cause }) if cause == "tmux ended before it had answered"),
        "{started:?}"
    );
    assert!(!town.path("begun").exists());
    assert!(town.ending(&mut *runtime, &known("before", Some(&before))).is_lost);
    town.start(&mut *runtime, "later", "exit 4");
    assert_eq!(town.ending(&mut *runtime, &known("later", None)).code, Some(4));
}

fn a_session_that_somebody_removes_ends_its_run(town: &Town) {
    let mut runtime = town.watched_runtime();
    let stubborn = "trap '' HUP; echo $$ > pid; while :; do sleep 1000; done";
    let (plain, stubborn) =
        (town.start(&mut *runtime, "plain", "exec sleep 1000"), town.start(&mut *runtime, "stubborn", stubborn));
    let other = town.start(&mut *runtime, "other", "exec sleep 1000");
    pid_in(&town.path("pid"));
    tmux(town, &["kill-session", "-t", "=test-plain"]);
    tmux(town, &["kill-session", "-t", "=test-stubborn"]);
    for (run, handle) in [("plain", &plain), ("stubborn", &stubborn)] {
        let ending = town.ending(&mut *runtime, &known(run, Some(handle)));
        assert_eq!((ending.code, ending.signal, ending.is_lost), (None, None, false));
        assert!(!is_alive(handle.pid));
    }
    assert!(is_alive(other.pid));
}

fn a_killed_client_is_replaced(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.fifo("go");
    let before = town.start(&mut *runtime, "before", "read word < go; exit 5");
    let client: u32 = tmux(town, &["list-clients", "-F", "#{client_pid}"]).trim().parse().unwrap();
    kill(client);
    until("it is gone", || !is_alive(client));
    let after = town.start(&mut *runtime, "after", "exit 6");
    assert_eq!(town.ending(&mut *runtime, &known("after", Some(&after))).code, Some(6));
    fs::write(town.path("go"), "go\n").unwrap();
    assert_eq!(town.ending(&mut *runtime, &known("before", Some(&before))).code, Some(5));
}

fn keepers_that_are_killed_leave_no_clients_behind(town: &Town) {
    let mut runtime = town.watched_runtime();
    let handle = town.start(&mut *runtime, "r1", "exec sleep 1000");
    for _ in 0..3 {
        // More to tell than a pipe holds, and nobody who listens.
        signal(town.keeper_pid(), Signal::STOP);
        for n in 0..200 {
            tmux(town, &["rename-window", "-t", "=test-r1:", &format!("{n}{}", "x".repeat(1000))]);
        }
        town.kill_keeper();
        assert_eq!(runtime.survey(&[known("r1", None)]).unwrap()["r1"], Sighting::Running(handle.clone()));
    }
    until("one server and one client are left", || tmuxes_of(&Server::of(town.keeper_dir())).len() == 2);
}

/// tmux 3.3 tells a client that is still introducing itself that another one has left, and dies of it, with all that runs there.
fn a_keeper_calls_only_when_the_client_before_is_gone_for_the_server_too(town: &Town) {
    let mut runtime = town.watched_runtime();
    let handle = town.start(&mut *runtime, "r1", "exec sleep 1000");
    let server = server_pid(town);
    let with_word = |word: &str| {
        let has_it = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|is| is == word.as_bytes())
        };
        let tmuxes = tmuxes_of(&Server::of(town.keeper_dir())).into_iter();
        tmuxes.filter(|pid| *pid != server).filter(has_it).count()
    };
    assert_eq!(with_word("-C"), 1, "the keeper's own client");
    signal(server, Signal::STOP);
    town.kill_keeper();
    until("the next keeper waits for the server", || with_word("list-clients") == 1);
    assert_eq!(with_word("-C"), 0, "a client calls, and the server does not know yet that the one before has left");
    signal(server, Signal::CONT);
    assert_eq!(runtime.survey(&[known("r1", None)]).unwrap()["r1"], Sighting::Running(handle));
    assert_eq!(server_pid(town), server);
    assert_eq!(with_word("-C"), 1, "the keeper's own client");
}

fn a_stopped_server_holds_nobody_up_for_ever(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "terminal", "exec sleep 1000");
    let server = server_pid(town);
    signal(server, Signal::STOP);
    let started = runtime.start(&[town.launch("late", "echo $$ > late; exec sleep 1000")]);
    assert!(matches!(&started[0], Err(StartError::NoRoom { cause }) if cause.contains("tmux")), "{started:?}");
    assert!(!town.path("late.log").exists());
    // From now on nobody waits for it, and what does not need it goes on. A busy machine may take its time, but not every time.
    until("a start that does not wait for it", || {
        let begun = Instant::now();
        assert!(matches!(&runtime.start(&[town.launch("later", "true")])[0], Err(StartError::NoRoom { .. })));
        begun.elapsed() < Duration::from_secs(4)
    });
    let process = Launch { place: Place::Process, ..town.launch("process", "exit 7") };
    runtime.start(&[process]).remove(0).unwrap();
    assert_eq!(town.ending(&mut *runtime, &known("process", None)).code, Some(7));
    // What is in its terminals can be stopped, though nobody learns how it ended.
    runtime.stop(&known("terminal", None), Stop::Now).unwrap();
    town.ending(&mut *runtime, &known("terminal", None));

    signal(server, Signal::CONT);
    let again = || town.runtime().start(&[town.launch("again", "exec sleep 1000")]);
    until("it starts again", || again()[0].is_ok());
    // Answers come in order, so by now the start that was given up has been made and discarded.
    until("nothing else is there", || sessions(town) == ["gt-keeper", "test-again"]);
    until("it does not run", || !pids().any(|pid| is_marked(pid, "late", town)));
}

fn strangers_sessions_are_neither_counted_nor_touched(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "r1", "exec sleep 1000");
    let mark = format!("TOWN={}", town.path("").display().to_string().trim_end_matches('/'));
    tmux(
        town,
        &[
            "new-session",
            "-d",
            "-s",
            "mine",
            "-e",
            &mark,
            "-c",
            "/",
            "--",
            "sh",
            "-c",
            "(setsid sleep 1000 &); exec sleep 1000",
        ],
    );
    let stranger: u32 = tmux(town, &["display-message", "-p", "-t", "=mine:", "#{pane_pid}"]).trim().parse().unwrap();
    assert_eq!(runtime.survey(&[]).unwrap().len(), 1);
    runtime.stop(&known("r1", None), Stop::Now).unwrap();
    town.ending(&mut *runtime, &known("r1", None));
    town.kill_keeper();
    runtime.acknowledge(&["r1".to_owned()]).unwrap();
    assert!(runtime.survey(&[]).unwrap().is_empty());
    town.start(&mut *runtime, "r2", "exit 1");
    town.ending(&mut *runtime, &known("r2", None));
    assert!(is_alive(stranger));
    assert!(sessions(town).contains(&"mine".to_owned()));
}

fn a_keeper_with_nothing_to_keep_ends_its_server(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "r1", "exit 0");
    town.ending(&mut *runtime, &known("r1", None));
    let (keeper, server) = (town.keeper_pid(), server_pid(town));
    drop(runtime);
    until("both are gone", || !is_alive(keeper) && !is_alive(server));
    assert!(!Server::of(town.keeper_dir()).socket().exists(), "and so is where it listened");
}

fn a_keeper_that_leaves_spares_a_strangers_session(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "r1", "exit 0");
    town.ending(&mut *runtime, &known("r1", None));
    tmux(town, &["new-session", "-d", "-s", "mine", "--", "sleep", "1000"]);
    let keeper = town.keeper_pid();
    drop(runtime);
    until("the keeper is gone", || !is_alive(keeper));
    until("only the stranger's session is left", || sessions(town) == ["mine"]);
}

fn a_pane_that_looks_like_tmux_itself_confuses_nobody(town: &Town) {
    let mut runtime = town.watched_runtime();
    // tmux has counted to some hundreds by then, and shows the second.
    let script = "now=$(date +%s); n=200; while [ $n -lt 840 ]; do \
        for t in 0 1 2; do echo \"%end $((now+t)) $n 1\"; done; n=$((n+1)); done; echo '%begin 1 1 1'; echo '%exit'; exit 3";
    town.start(&mut *runtime, "liar", script);
    assert_eq!(town.ending(&mut *runtime, &known("liar", None)).code, Some(3));
    town.start(&mut *runtime, "next", "exit 4");
    assert_eq!(town.ending(&mut *runtime, &known("next", None)).code, Some(4));
}

fn a_log_may_lie_anywhere_and_is_written_there(town: &Town) {
    let mut runtime = town.watched_runtime();
    let dir = town.path("C#H #{pid} #(touch made-by-tmux) %H ~");
    fs::create_dir(&dir).unwrap();
    let log = dir.join("it's.log");
    // Not in its very last moment: of that tmux may keep nothing.
    let launch = Launch { log: log.clone(), ..town.launch("r1", "echo said; sleep 1; exit 3") };
    runtime.start(&[launch]).remove(0).unwrap();
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(3));
    assert_eq!(fs::read_to_string(&log).unwrap(), "said\n");
    assert!(!town.path("made-by-tmux").exists() && !std::path::Path::new("/made-by-tmux").exists());
}

fn a_log_that_was_swapped_for_a_pipe_holds_nobody_up(town: &Town) {
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "r1", "rm r1.log; mkfifo r1.log; exit 3");
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(3));
    town.start(&mut *runtime, "r2", "exit 4");
    assert_eq!(town.ending(&mut *runtime, &known("r2", None)).code, Some(4));
}

fn a_program_does_not_know_of_the_terminals_of_others(town: &Town) {
    let mut runtime = town.watched_runtime();
    // Into a file: of what is printed in the very last moment tmux may keep nothing.
    let script = "echo \"<${TMUX-}${TMUX_PANE-}>\" > known; exit 3";
    let odd = town.path("a=b");
    std::os::unix::fs::symlink("/bin/sh", &odd).unwrap();
    let odd =
        Launch { argv: vec![odd.display().to_string(), "-c".to_owned(), script.to_owned()], ..town.launch("odd", "") };
    let fed = Launch { stdin: Some("x".to_owned()), ..town.launch("fed", script) };
    for launch in [town.launch("plain", script), odd, fed] {
        let run = launch.run.clone();
        runtime.start(&[launch]).remove(0).unwrap();
        assert_eq!(town.ending(&mut *runtime, &known(&run, None)).code, Some(3));
        assert_eq!(fs::read_to_string(town.path("known")).unwrap(), "<>\n", "{run}");
        fs::remove_file(town.path("known")).unwrap();
    }
}

fn a_screen_can_be_looked_at_and_typed_into(town: &Town) {
    let mut runtime = town.watched_runtime();
    let script = "seq 1 100; echo ready; while read -r line; do printf 'got <%s>\\n' \"$line\"; [ \"$line\" = end ] && exit 2; done";
    town.start(&mut *runtime, "r1", script);
    let shown = |lines| terminal::capture(town.keeper_dir(), "r1", lines).unwrap();
    until("it is ready", || shown(1) == "ready\n");
    assert_eq!(shown(3), "99\n100\nready\n");
    assert_eq!(shown(1000).lines().count(), 101);
    for text in ["plain", "-l --", "$HOME `id` \"quoted\" \\n #{pid} ;", "Enter", "日本語 é", "C-c", "\\;", ";"] {
        assert_eq!(terminal::send(town.keeper_dir(), "r1", text).unwrap(), Sent::Shown, "{text} in {}", shown(9));
        until("it was read", || shown(1) == format!("got <{text}>\n"));
    }
    terminal::send(town.keeper_dir(), "r1", "first\nsecond").unwrap();
    until("both lines were read", || shown(4).ends_with("got <second>\n") && shown(4).contains("got <first>\n"));
    let long = "0123456789abcdef ".repeat(200);
    terminal::send(town.keeper_dir(), "r1", &format!("{long}\n{long};")).unwrap();
    until("the long lines were read", || shown(1).ends_with(&format!("got <{long};>\n")));
    terminal::send(town.keeper_dir(), "r1", "end\n").unwrap();
    assert_eq!(town.ending(&mut *runtime, &known("r1", None)).code, Some(2));
}

fn a_run_without_a_terminal_is_said_to_have_none(town: &Town) {
    let none = |run: &str| terminal::capture(town.keeper_dir(), run, 10);
    assert!(matches!(none("r1"), Err(TerminalError::NoTerminal { run }) if run == "r1"), "no server");
    let mut runtime = town.watched_runtime();
    town.start(&mut *runtime, "r1", "exec sleep 1000");
    assert!(matches!(none("test-r1"), Err(TerminalError::NoTerminal { .. })), "a name is not a run");
    assert!(matches!(none("r"), Err(TerminalError::NoTerminal { .. })), "the beginning of a run is not a run");
    assert!(matches!(none(""), Err(TerminalError::NoTerminal { .. })));
    let attach = terminal::attach_command(town.keeper_dir(), "r1").unwrap();
    let session = tmux(town, &["display-message", "-p", "-t", "=test-r1:", "#{session_id}"]);
    assert!(attach.get_args().any(|word| word == session.trim()), "{attach:?}");
}
