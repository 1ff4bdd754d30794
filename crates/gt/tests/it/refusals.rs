//! Bad input: one sentence, the way on, an exit code, and nothing changed. // SPEC U1, B5

use crate::town::{Town, session, snapshot};

fn chain() -> Town {
    Town::holding(&[
        r#"{"id":"gt-a1","title":"A"}"#,
        r#"{"id":"gt-b2","title":"B","dependencies":[{"depends_on_id":"gt-a1","type":"blocks"}]}"#,
        r#"{"id":"gt-c3","title":"C","dependencies":[{"depends_on_id":"gt-b2","type":"blocks"}]}"#,
        r#"{"id":"gt-e9","title":"Epic","issue_type":"epic"}"#,
        r#"{"id":"gt-k5","title":"Kid","dependencies":[{"depends_on_id":"gt-e9","type":"parent-child"}]}"#,
    ])
}

#[test]
fn an_unknown_bead_is_named_with_the_nearest_everywhere() {
    let town = chain();
    snapshot!(town.refused(["show", "gt-a2"]), @r"
    $ gt show gt-a2
    ! error: there is no bead `gt-a2`
    ! hint: did you mean `gt-a1` or `gt-b2`?
    [exit 3]
    ");
    snapshot!(town.refused(["show", "gt-a1", "zz-nothing"]), @r"
    $ gt show gt-a1 zz-nothing
    ! error: there is no bead `zz-nothing`
    ! hint: `gt bead list --all` shows what there is
    [exit 3]
    ");
    snapshot!(town.refused(["close", "gt-a1", "gt-zz9"]), @r"
    $ gt close gt-a1 gt-zz9
    ! error: there is no bead `gt-zz9`
    ! hint: did you mean `gt-e9`?
    [exit 3]
    ");
    snapshot!(town.refused(["show", "\u{1b}[31m\nx"]), @r"
    $ gt show '\u{1b}[31m\nx'
    ! error: there is no bead `�[31m x`
    ! hint: `gt bead list --all` shows what there is
    [exit 3]
    ");
    let ids: [&[&str]; 12] = [
        &["explain", "gt-zz"],
        &["bead", "update", "gt-zz", "--title", "x"],
        &["bead", "update", "gt-zz", "--claim"],
        &["bead", "reopen", "gt-zz"],
        &["bead", "delete", "gt-a1", "gt-zz"],
        &["bead", "dep", "add", "gt-a1", "gt-zz"],
        &["bead", "dep", "add", "gt-zz", "gt-a1"],
        &["bead", "dep", "remove", "gt-zz", "gt-a1"],
        &["bead", "dep", "tree", "gt-zz"],
        &["bead", "label", "add", "gt-zz", "x"],
        &["bead", "comment", "add", "gt-zz", "x"],
        &["create", "x", "--parent", "gt-zz"],
    ];
    for arguments in ids {
        let transcript = town.refused(arguments.iter().copied());
        assert!(
            transcript.contains("error: there is no bead `gt-zz`") && transcript.ends_with("[exit 3]\n"),
            "{transcript}"
        );
    }
}

#[test]
fn titles_are_one_line_of_sane_length() {
    let town = chain();
    let (long, huge) = ("é".repeat(501), "x".repeat(100_000));
    snapshot!(town.refused(["create", ""]), @r#"
    $ gt create ''
    ! error: the title is empty
    ! hint: say in a few words what is to be done, as in `gt create "Fix the login"`
    [exit 1]
    "#);
    snapshot!(town.refused(["create", "   "]), @r#"
    $ gt create '   '
    ! error: the title is empty
    ! hint: say in a few words what is to be done, as in `gt create "Fix the login"`
    [exit 1]
    "#);
    snapshot!(town.refused(["create", &long]), @r"
    $ gt create 'éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…'
    ! error: the title has 501 characters; at most 500 fit
    ! hint: say it in at most 500 characters; more fits into `--description`
    [exit 1]
    ");
    snapshot!(town.refused(["create", &huge]), @r"
    $ gt create 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'
    ! error: the title has 100000 characters; at most 500 fit
    ! hint: say it in at most 500 characters; more fits into `--description`
    [exit 1]
    ");
    snapshot!(town.refused(["create", "two\nlines"]), @r"
    $ gt create 'two\nlines'
    ! error: the title holds the control character U+000A at position 4
    ! hint: leave that character out; several lines fit into `--description`
    [exit 1]
    ");
    snapshot!(town.refused(["create", "red \u{1b}[31m"]), @r"
    $ gt create 'red \u{1b}[31m'
    ! error: the title holds the control character U+001B at position 5
    ! hint: leave that character out; several lines fit into `--description`
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "update", "gt-a1", "--title", ""]), @r#"
    $ gt bead update gt-a1 --title ''
    ! error: the title is empty
    ! hint: say in a few words what is to be done, as in `gt create "Fix the login"`
    [exit 1]
    "#);
    snapshot!(town.refused(["bead", "update", "gt-a1", "--title", &long]), @r"
    $ gt bead update gt-a1 --title 'éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…'
    ! error: the title has 501 characters; at most 500 fit
    ! hint: say it in at most 500 characters; more fits into `--description`
    [exit 1]
    ");
    town.create(&[&"é".repeat(500)]);
}

#[test]
fn other_texts_are_checked_too() {
    let town = chain();
    snapshot!(town.refused(["bead", "label", "add", "gt-a1", "good", ""]), @r"
    $ gt bead label add gt-a1 good ''
    ! error: the label is empty
    ! hint: give at least one character that is no space
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "label", "add", "gt-a1", "a\nb"]), @r"
    $ gt bead label add gt-a1 'a\nb'
    ! error: the label holds the control character U+000A at position 2
    ! hint: leave that character out
    [exit 1]
    ");
    snapshot!(town.refused(["create", "x", "--label", &"l".repeat(101)]), @r"
    $ gt create x --label 'llllllllllllllllllllllllllllllllllllllllllllllllllllllllllll…'
    ! error: the label has 101 characters; at most 100 fit
    ! hint: use at most 100 characters
    [exit 1]
    ");
    snapshot!(town.refused(["create", "x", "--assignee", "\u{7}"]), @r"
    $ gt create x --assignee '\u{7}'
    ! error: the assignee holds the control character U+0007 at position 1
    ! hint: leave that character out
    [exit 1]
    ");
    snapshot!(town.refused(["create", "x", "--description", "a\u{8}b"]), @r"
    $ gt create x --description 'a\u{8}b'
    ! error: the description holds the control character U+0008 at position 2
    ! hint: leave that character out
    [exit 1]
    ");
    snapshot!(town.refused(["close", "gt-a1", "--reason", "\u{1b}c"]), @r"
    $ gt close gt-a1 --reason '\u{1b}c'
    ! error: the reason holds the control character U+001B at position 1
    ! hint: leave that character out
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "comment", "add", "gt-a1", ""]), @r"
    $ gt bead comment add gt-a1 ''
    ! error: the comment is empty
    ! hint: give at least one character that is no space
    [exit 1]
    ");
    snapshot!(town.refused(["create", "x", "--defer", "whenever"]), @r"
    $ gt create x --defer whenever
    ! error: `whenever` is not a time
    ! hint: say `2h`, `3d`, `2026-12-01`, `2026-12-01T09:00` or `[TIME]`
    [exit 2]
    ");
    snapshot!(town.refused(["create", "x", "--due", "2026-13-45"]), @r"
    $ gt create x --due 2026-13-45
    ! error: `2026-13-45` is not a time
    ! hint: say `2h`, `3d`, `2026-12-01`, `2026-12-01T09:00` or `[TIME]`
    [exit 2]
    ");
}

#[test]
fn mistyped_words_are_refused_with_a_suggestion() {
    let town = chain();
    snapshot!(town.refused(["create", "x", "--priority", "9"]), @r"
    $ gt create x --priority 9
    ! error: invalid value '9' for '--priority <PRIORITY>': a priority is 0 (most urgent) to 4
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["create", "x", "--priority", "high"]), @r"
    $ gt create x --priority high
    ! error: invalid value 'high' for '--priority <PRIORITY>': a priority is 0 (most urgent) to 4
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["create", "x", "--type", "tsk"]), @r"
    $ gt create x --type tsk
    ! error: invalid value 'tsk' for '--type <TYPE>': there is no such type; did you mean task?
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["create", "x", "--type", "xyzzy"]), @r"
    $ gt create x --type xyzzy
    ! error: invalid value 'xyzzy' for '--type <TYPE>': there is no such type; use one of task, bug, feature, chore, epic, decision, spike, story, milestone, message, molecule, gate
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["bead", "update", "gt-a1", "--status", "opne"]), @r"
    $ gt bead update gt-a1 --status opne
    ! error: invalid value 'opne' for '--status <STATUS>': there is no such status; did you mean open?
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["bead", "update", "gt-a1", "--status", "xyzzy"]), @r"
    $ gt bead update gt-a1 --status xyzzy
    ! error: invalid value 'xyzzy' for '--status <STATUS>': there is no such status; use one of open, in_progress, hooked, blocked, deferred, pinned, closed, tombstone
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["bead", "dep", "add", "gt-a1", "gt-e9", "--type", "blokcs"]), @r"
    $ gt bead dep add gt-a1 gt-e9 --type blokcs
    ! error: invalid value 'blokcs' for '--type <TYPE>': there is no such type; did you mean blocks?
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["bead", "dep", "add", "gt-a1", "gt-e9", "--gate", "some"]), @r"
    $ gt bead dep add gt-a1 gt-e9 --gate some
    ! error: invalid value 'some' for '--gate <GATE>'
    !   [possible values: all-children, any-children]
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn a_wrong_call_is_shown_the_right_one() {
    let town = chain();
    snapshot!(town.refused(["bead", "update", "gt-a1", "--claim", "--assignee", "ada"]), @r"
    $ gt bead update gt-a1 --claim --assignee ada
    ! error: the argument '--claim' cannot be used with '--assignee <ASSIGNEE>'
    !
    ! Usage: gt bead update --claim <ID>
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["raedy"]), @r"
    $ gt raedy
    ! error: unrecognized subcommand 'raedy'
    !
    !   tip: a similar subcommand exists: 'ready'
    !
    ! Usage: gt [OPTIONS] <COMMAND>
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["create"]), @r"
    $ gt create
    ! error: the following required arguments were not provided:
    !   <TITLE>
    !
    ! Usage: gt create <TITLE>
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
    snapshot!(town.refused(["ready", "--limit", "-1"]), @r"
    $ gt ready --limit -1
    ! error: unexpected argument '-1' found
    !
    ! Usage: gt ready [OPTIONS]
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn cycles_are_refused_by_name() {
    let town = chain();
    snapshot!(town.refused(["bead", "dep", "add", "gt-a1", "gt-c3"]), @r"
    $ gt bead dep add gt-a1 gt-c3
    ! error: this would close a cycle: gt-a1 → gt-c3 → gt-b2 → gt-a1
    ! hint: see what gt-c3 waits for with `gt bead dep tree gt-c3`
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "dep", "add", "gt-a1", "gt-a1"]), @r"
    $ gt bead dep add gt-a1 gt-a1
    ! error: gt-a1 cannot depend on itself
    ! hint: name another bead; `gt bead list` shows what there is
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "dep", "add", "gt-a1", "gt-a1", "--type", "related"]), @r"
    $ gt bead dep add gt-a1 gt-a1 --type related
    ! error: gt-a1 cannot depend on itself
    ! hint: name another bead; `gt bead list` shows what there is
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "dep", "add", "gt-e9", "gt-k5", "--type", "parent-child"]), @r"
    $ gt bead dep add gt-e9 gt-k5 --type parent-child
    ! error: this would close a cycle: gt-e9 → gt-k5 → gt-e9
    ! hint: see what gt-k5 waits for with `gt bead dep tree gt-k5`
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "dep", "add", "gt-e9", "gt-k5"]), @r"
    $ gt bead dep add gt-e9 gt-k5
    ! error: this would close a cycle: gt-e9 → gt-k5 → gt-e9
    ! hint: see what gt-k5 waits for with `gt bead dep tree gt-k5`
    [exit 1]
    ");
    snapshot!(town.refused(["bead", "update", "gt-e9", "--parent", "gt-k5"]), @r"
    $ gt bead update gt-e9 --parent gt-k5
    ! error: this would close a cycle: gt-e9 → gt-k5 → gt-e9
    ! hint: see what gt-k5 waits for with `gt bead dep tree gt-k5`
    [exit 1]
    ");
    town.gt(["bead", "dep", "add", "gt-a1", "gt-c3", "--type", "tracks"]).success();
}

#[test]
fn a_usage_error_in_json_says_what_is_missing() {
    let town = chain();
    let answers =
        [town.gt(["bead", "dep", "add", "gt-a1", "--json"]), town.gt(["--json"]), town.gt(["raedy", "--json"])];
    answers.iter().for_each(crate::town::Answer::assert_is_json_error);
    snapshot!(session(answers), @r#"
    $ gt bead dep add gt-a1 --json
    ! {"error":{"code":"usage","hint":"`--help` shows how to call it","message":"the following required arguments were not provided: <B>"}}
    [exit 2]
    $ gt --json
    ! {"error":{"code":"usage","hint":"`--help` shows how to call it","message":"'gt' requires a subcommand but one was not provided [subcommands: init, rig, config, bead, create, show, close, ready, sling, formula, status, explain, scheduler, queue, convoy, polecat, refinery, deacon, mail, send, chat, session, lane, cron, heartbeat, trace, daemon, prime, hook, done, handoff, escalate, activity, doctor, demo, completions, man, keeper, agent-event, help]"}}
    [exit 2]
    $ gt raedy --json
    ! {"error":{"code":"usage","hint":"a similar subcommand exists: 'ready'","message":"unrecognized subcommand 'raedy'"}}
    [exit 2]
    "#);
}

#[test]
fn the_exit_codes_are_those_of_the_manual() {
    let town = chain();
    let code = |arguments: &[&str]| town.call(arguments.iter().copied()).run().code;
    assert_eq!(code(&["ready"]), 0);
    assert_eq!(code(&["ready", "--label", "nothing"]), 0);
    assert_eq!(code(&["bead", "dep", "add", "gt-a1", "gt-c3"]), 1);
    assert_eq!(code(&["ready", "--nonsense"]), 2);
    assert_eq!(code(&["show", "gt-zz"]), 3);
    std::fs::remove_file(town.store()).unwrap();
    assert_eq!(code(&["ready"]), 4);
}

#[test]
fn an_actor_is_one_short_word_too() {
    let town = chain();
    snapshot!(town.refused(["create", "x", "--actor", "two\nlines"]), @r"
    $ gt create x --actor 'two\nlines'
    ! error: the actor holds the control character U+000A at position 4
    ! hint: leave that character out
    [exit 1]
    ");
    snapshot!(town.refused(["create", "x", "--actor", &"a".repeat(101)]), @r"
    $ gt create x --actor 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    ! error: the actor has 101 characters; at most 100 fit
    ! hint: use at most 100 characters
    [exit 1]
    ");
}

#[test]
fn a_tree_is_never_deeper_than_the_stack() {
    let line =
        |n: usize| format!(r#"{{"id":"gt-{n}","title":"x","dependencies":[{{"depends_on_id":"gt-{}"}}]}}"#, n + 1);
    let lines: Vec<String> = (0..3000).map(line).collect();
    let town = Town::holding(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(town.gt(["bead", "dep", "tree", "gt-0", "--depth", "100"]).success().stdout.lines().count(), 101);
    town.gt(["bead", "dep", "tree", "gt-0", "--depth", "100", "--json"]).success();
    snapshot!(town.refused(["bead", "dep", "tree", "gt-0", "--depth", "100000"]), @r"
    $ gt bead dep tree gt-0 --depth 100000
    ! error: invalid value '100000' for '--depth <DEPTH>': 100000 is not in 1..=100
    !
    ! For more information, try '--help'.
    [exit 2]
    ");
}

#[test]
fn an_unknown_agent_is_refused_like_an_unknown_formula() {
    let town = Town::holding(&[r#"{"id":"gt-a","title":"A"}"#]);
    let answers = [
        town.refused(["sling", "gt-a", "--agent", "claud"]),
        town.refused(["sling", "gt-a", "--agent", "nosuch"]),
        town.refused(["send", "dm:a", "x", "--agent", "nosuch"]),
    ];
    snapshot!(answers.concat(), @"
    $ gt sling gt-a --agent claud
    ! error: there is no agent `claud`
    ! hint: did you mean `claude`?
    [exit 3]
    $ gt sling gt-a --agent nosuch
    ! error: there is no agent `nosuch`
    ! hint: built in are claude, codex, gemini, opencode and shell; your own: set `agents.nosuch.command`
    [exit 3]
    $ gt send dm:a x --agent nosuch
    ! error: there is no agent `nosuch`
    ! hint: built in are claude, codex, gemini, opencode and shell; your own: set `agents.nosuch.command`
    [exit 3]
    ");
}
