//! Lanes, queues and debounce, in virtual time. // SPEC L1–L4; facts: GoClaw's own cases, where ours do not differ

use gt_core::agent::{Told, Vendor};
use gt_core::refusal::Refusal;
use gt_core::session::{Mode, Overflow, Rules};
use gt_store::{Ended, Fault, Findings, NewMessage, SendOutcome, Telling, Wishes};
use jiff::SignedDuration;
use serde_json::json;

use crate::desk::{Desk, killed, message};
use crate::yard::ended;

#[test]
fn a_lane_runs_as_many_as_it_takes_and_not_one_more() {
    let mut desk = Desk::with_main(2);
    for n in 0..6 {
        desk.send(&format!("dm:{n}"), &n.to_string());
    }
    assert_eq!(desk.starts(), ["0", "1"]);
    assert_eq!(desk.starts(), Vec::<String>::new());
    for n in 1..=6 {
        desk.answer(&format!("run-{n}"), "yes");
    }
    assert_eq!(desk.most["main"], 2);
    let lanes = desk.town.store.lanes(&desk.policy).expect("it answers");
    assert!(lanes.iter().all(|lane| (lane.active, lane.pending) == (0, 0)), "{lanes:?}");
}

#[test]
fn a_lane_says_what_runs_and_what_waits() {
    let mut desk = Desk::with_main(1);
    desk.send("dm:a", "1");
    desk.send("dm:b", "2");
    desk.try_send(NewMessage { lane: Some("nonexistent".into()), ..message("dm:c", "3") }).expect("it is taken");
    desk.try_send(NewMessage { lane: Some("cron".into()), ..message("dm:d", "4") }).expect("it is taken");
    let mut starts = desk.starts();
    starts.sort();
    assert_eq!(starts, ["1", "4"]);
    let lanes = desk.town.store.lanes(&desk.policy).expect("it answers");
    let shown: Vec<String> =
        lanes.iter().map(|lane| format!("{} {:?} {} {}", lane.name, lane.limit, lane.active, lane.pending)).collect();
    assert_eq!(
        shown,
        ["cron Some(1) 1 0", "delegate Some(100) 0 0", "main Some(1) 1 2", "subagent Some(4) 0 0", "polecat None 0 0"]
    );
}

#[test]
fn a_lane_whose_limit_changes_follows_with_the_next_start() {
    let mut desk = Desk::with_main(1);
    for n in 0..4 {
        desk.send(&format!("dm:{n}"), &n.to_string());
    }
    assert_eq!(desk.starts(), ["0"]);
    desk.set_lane("main", 3);
    assert_eq!(desk.starts(), ["1", "2"]);
    desk.set_lane("main", 1);
    assert_eq!(desk.answer("run-1", "yes"), Vec::<String>::new());
    assert_eq!(desk.answer("run-2", "yes"), Vec::<String>::new());
    assert_eq!(desk.answer("run-3", "yes"), ["3"]);
}

#[test]
fn one_session_runs_one_turn_at_a_time_and_others_beside_it() {
    let mut desk = Desk::new();
    for text in ["1", "2", "3"] {
        desk.send("dm:a", text);
    }
    desk.send("dm:b", "other");
    assert_eq!(desk.starts(), ["1", "other"]);
    assert_eq!(desk.answer("run-1", "yes"), ["2"]);
    assert_eq!(desk.answer("run-3", "yes"), ["3"]);
    assert_eq!((desk.most["dm:a"], desk.most["main"]), (1, 2));
}

#[test]
fn one_session_runs_one_turn_at_a_time_whatever_their_lanes() {
    let mut desk = Desk::new();
    for lane in ["main", "subagent", "cron"] {
        desk.try_send(NewMessage { lane: Some(lane.into()), ..message("dm:a", lane) }).expect("it is taken");
    }
    assert_eq!(desk.starts(), ["main"]);
    assert_eq!(desk.answer("run-1", "yes"), ["subagent"]);
    assert_eq!(desk.answer("run-2", "yes"), ["cron"]);
}

#[test]
fn a_group_runs_three_at_once_and_starts_them_in_order() {
    let mut desk = Desk::with_main(1);
    desk.send("dm:holder", "held");
    desk.starts();
    desk.set_lane("main", 9);
    for text in ["a", "b", "c", "d", "e"] {
        desk.send("group:g", text);
    }
    assert_eq!(desk.starts(), ["a", "b", "c"]);
    assert_eq!(desk.answer("run-3", "yes"), ["d"]);
    assert_eq!(desk.most["group:g"], 3);
}

#[test]
fn a_group_whose_context_is_crowded_runs_one_turn_at_a_time() {
    let mut desk = Desk::with_main(9);
    desk.policy.windows.insert("claude".into(), 1000);
    desk.send("group:g", "first");
    desk.starts();
    let told = |tokens: u64| {
        let mut told = Told::default();
        let line = format!(
            r#"{{"type":"assistant","session_id":"c-1","message":{{"id":"m","content":[{{"type":"text","text":"hi"}}],"usage":{{"input_tokens":{tokens},"output_tokens":0}}}}}}"#
        );
        told.hear_line(gt_core::agent::Vendor::Claude, &line, jiff::Timestamp::UNIX_EPOCH);
        let over = r#"{"type":"result","subtype":"success","result":"hi","session_id":"c-1","usage":{}}"#;
        told.hear_line(gt_core::agent::Vendor::Claude, over, jiff::Timestamp::UNIX_EPOCH);
        told
    };
    let answer = |desk: &mut Desk, run: &str, tokens: u64| {
        let telling =
            gt_store::Telling { run: run.to_owned(), vendor: gt_core::agent::Vendor::Claude, told: told(tokens) };
        desk.end(Ended { code: Some(0), reply: Some("hi".into()), told: Some(telling), ..ended(run) })
    };
    answer(&mut desk, "run-1", 600);
    let session = desk.town.store.session("group:g").expect("it answers").expect("it is there");
    assert_eq!((session.is_crowded, session.limit(), session.conversation.as_deref()), (true, 1, Some("c-1")));
    for text in ["a", "b", "c"] {
        desk.send("group:g", text);
    }
    assert_eq!(desk.starts(), ["a"]);
    assert_eq!(answer(&mut desk, "run-2", 599), ["b", "c"], "it was made smaller");
}

#[test]
fn a_full_queue_drops_the_oldest_that_waits() {
    let mut desk = Desk::new();
    desk.rules.cap = 2;
    let first = desk.send("dm:a", "r1");
    desk.starts();
    let turns = [first, desk.send("dm:a", "r2"), desk.send("dm:a", "r3")];
    assert_eq!(desk.words(&turns), ["live", "waiting", "waiting"], "what runs does not count");
    let fourth = desk.send("dm:a", "r4");
    assert_eq!(desk.words(&turns), ["live", "dropped", "waiting"]);
    assert_eq!(desk.error(turns[1]), "2 messages wait in `dm:a`, and newer ones came");
    assert_eq!(desk.answer("run-1", "yes"), ["r3"]);
    assert_eq!(desk.answer("run-2", "yes"), ["r4"]);
    desk.answer("run-3", "yes");
    assert_eq!(desk.words(&turns), ["done", "dropped", "done"]);
    assert_eq!(desk.word(fourth), "done");
}

#[test]
fn a_full_queue_can_refuse_the_new_one_instead() {
    let mut desk = Desk::new();
    desk.rules = Rules { cap: 2, overflow: Overflow::New, ..desk.rules };
    desk.send("dm:a", "r1");
    desk.starts();
    desk.send("dm:a", "r2");
    desk.send("dm:a", "r3");
    let sent = desk.try_send(message("dm:a", "r4")).expect("it is answered");
    assert_eq!((sent.turn, sent.outcome), (None, SendOutcome::Full));
}

#[test]
fn an_interrupting_message_waits_until_the_old_run_has_really_ended() {
    let mut desk = Desk::new();
    desk.rules.mode = Mode::Interrupt;
    let first = desk.send("dm:a", "r1");
    desk.starts();
    let second = desk.send("dm:a", "r2");
    assert_eq!(desk.starts(), Vec::<String>::new(), "the old one is still there");
    assert!(desk.town.store.run("run-1").expect("it answers").expect("it is there").stop.is_some());
    let third = desk.send("dm:a", "r3");
    assert_eq!(desk.end(killed("run-1")), ["r3"]);
    assert_eq!(desk.words(&[first, second, third]), ["cancelled", "cancelled", "live"]);
    assert_eq!(desk.error(first), "a newer message took its place (killed by signal 15)");
    desk.answer("run-2", "yes");
    assert_eq!(desk.word(third), "done");
}

#[test]
fn nor_does_one_run_beside_the_old_runs_of_a_group() {
    let mut desk = Desk::new();
    desk.send("group:g", "r1");
    desk.send("group:g", "r2");
    assert_eq!(desk.starts(), ["r1", "r2"]);
    desk.rules.mode = Mode::Interrupt;
    desk.send("group:g", "r3");
    assert_eq!(desk.starts(), Vec::<String>::new(), "both are still there");
    assert_eq!(desk.end(killed("run-1")), Vec::<String>::new(), "one is still there");
    assert_eq!(desk.end(killed("run-2")), ["r3"]);
}

#[test]
fn debounce_collapses_what_one_sender_says_in_a_row() {
    let mut desk = Desk::new();
    desk.rules.debounce = SignedDuration::from_millis(200);
    let turns: Vec<i64> = (0..5)
        .map(|n| {
            desk.pass_millis(50);
            desk.send("dm:a", &format!("part {n}"))
        })
        .collect();
    assert!(turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
    assert_eq!(desk.starts(), Vec::<String>::new(), "none before the window is over");
    let due = desk.town.store.next_turn_at(desk.town.now).expect("it answers");
    assert_eq!(due, Some(desk.town.now + SignedDuration::from_millis(200)));
    desk.pass_millis(199);
    assert_eq!(desk.starts(), Vec::<String>::new());
    desk.pass_millis(1);
    assert_eq!(desk.starts(), ["part 0\npart 1\npart 2\npart 3\npart 4"]);
    assert_eq!(desk.turn(turns[0]).n_messages, 5);
}

#[test]
fn other_senders_agents_and_whole_messages_are_turns_of_their_own() {
    let mut desk = Desk::new();
    desk.rules.debounce = SignedDuration::from_millis(200);
    let base = || message("group:g", "x");
    let of = |desk: &mut Desk, message: NewMessage| desk.try_send(message).expect("it is taken").turn;
    let first = of(&mut desk, base());
    let others = [
        NewMessage { sender: "bert".into(), ..base() },
        NewMessage { agent: Some("codex".into()), ..base() },
        NewMessage { lane: Some("cron".into()), ..base() },
        NewMessage { is_whole: true, ..base() },
    ];
    for other in others {
        assert_ne!(of(&mut desk, other.clone()), first, "{other:?}");
    }
    assert_eq!(of(&mut desk, NewMessage { source: Some("1".into()), ..base() }), first);
}

#[test]
fn a_message_that_comes_twice_is_taken_once() {
    let mut desk = Desk::new();
    let named = || NewMessage { source: Some("update-7".into()), ..message("dm:a", "hello") };
    let first = desk.try_send(named()).expect("it is taken");
    let again = desk.try_send(named()).expect("it is taken");
    assert_eq!((again.turn, again.message, again.outcome), (first.turn, first.message, SendOutcome::Repeated));
    let elsewhere = desk.try_send(NewMessage { channel: "http".into(), ..named() }).expect("it is taken");
    assert_eq!(elsewhere.outcome, SendOutcome::Queued, "another channel has its own names");
}

#[test]
fn what_cannot_be_a_message_is_refused_and_holds_up_nobody() {
    let mut desk = Desk::new();
    let long = "x".repeat(gt_core::session::TEXT_BYTES_MAX + 1);
    let stamp = desk.town.stamp();
    let messages = [
        message("dm:a", " \n"),
        message("", "x"),
        message("dm:a\u{7}", "x"),
        message("dm:a", &long),
        message("dm:a", "fine"),
    ];
    let answers = desk.town.store.send(&messages, &desk.rules, &desk.policy.lanes, &stamp).expect("it answers");
    assert_eq!(answers[0], Err(Refusal::EmptyMessage));
    assert!(
        matches!(answers[1], Err(Refusal::SessionKey { .. })) && matches!(answers[2], Err(Refusal::SessionKey { .. }))
    );
    assert!(matches!(answers[3], Err(Refusal::LongMessage { .. })));
    assert_eq!(answers[4].as_ref().expect("it is taken").outcome, SendOutcome::Queued);
    assert_eq!(desk.starts(), ["fine"]);
}

#[test]
fn a_session_may_have_rules_of_its_own() {
    let mut desk = Desk::new();
    let stamp = desk.town.stamp();
    let set = |wishes: &mut Wishes| {
        wishes.cap = Some(1);
        wishes.overflow = Some(Overflow::New);
        wishes.agent = Some("codex".into());
        wishes.lane = Some("cron".into());
    };
    desk.town.store.set_session("dm:a", set, &stamp).expect("it is set");
    assert_eq!(desk.outcome("dm:a", "1"), SendOutcome::Queued);
    assert_eq!(desk.outcome("dm:a", "2"), SendOutcome::Full);
    assert_eq!(desk.outcome("dm:b", "3"), SendOutcome::Queued);
    let turns = desk.start();
    assert_eq!((turns[0].agent.as_str(), turns[0].lane.as_str()), ("codex", "cron"));
    assert_eq!((turns[1].agent.as_str(), turns[1].lane.as_str()), ("claude", "main"));
}

#[test]
fn a_paused_scheduler_and_a_guard_start_no_turn_and_an_agent_that_cannot_start_fails_it() {
    let mut desk = Desk::new();
    let turn = desk.send("dm:a", "1");
    let stamp = desk.town.stamp();
    desk.town.store.pause(None, &stamp).expect("it is paused");
    assert_eq!(desk.starts(), Vec::<String>::new());
    desk.town.store.resume(&stamp).expect("it goes on");
    desk.policy.guards = vec![gt_core::plan::Guard { code: "guard-load", message: "too much".into() }];
    assert_eq!(desk.starts(), Vec::<String>::new());
    desk.policy.guards.clear();
    assert_eq!(desk.advance(&Findings::default()).turns.len(), 1);
    desk.fail_start("run-1", Fault::Agent);
    assert_eq!(desk.word(turn), "failed", "somebody waits for the answer");
    desk.send("dm:b", "2");
    assert_eq!(desk.starts(), ["2"], "the agent may be there by now");
}

#[test]
fn a_spent_budget_starts_no_turn_until_the_next_day() {
    let mut desk = Desk::new();
    desk.policy.daily_micros = Some(2_500_000);
    desk.send("dm:a", "1");
    assert_eq!(desk.starts(), ["1"]);
    let mut told = Told::default();
    let spent = json!({ "type": "result", "result": "Yes.", "total_cost_usd": 2.5 });
    told.hear_line(Vendor::Claude, &spent.to_string(), desk.town.now);
    let told = Some(Telling { run: "run-1".to_owned(), vendor: Vendor::Claude, told });
    let turn = desk.send("dm:b", "2");
    assert_eq!(desk.end(Ended { code: Some(0), told, ..ended("run-1") }), Vec::<String>::new());
    let (policy, now) = (desk.policy.clone(), desk.town.now);
    let why = desk.town.store.why_waiting(turn, &policy, now).expect("it answers");
    assert_eq!(
        why.as_deref(),
        Some("agents have reported $2.50 today, and `budget.daily` is $2.50; work starts again at midnight")
    );
    desk.town.pass(24 * 60 * 60);
    assert_eq!(desk.starts(), ["2"]);
}

#[test]
fn no_more_turns_of_an_agent_run_than_its_cap_allows() {
    let mut desk = Desk::with_main(9);
    desk.policy.caps.agents.insert("claude".into(), 1);
    desk.send("dm:a", "1");
    desk.send("dm:b", "2");
    assert_eq!(desk.starts(), ["1"]);
    assert_eq!(desk.answer("run-1", "yes"), ["2"]);
}

#[test]
fn turns_beyond_the_starts_of_a_second_wait_for_the_next_and_say_so() {
    let mut desk = Desk::with_main(9);
    desk.policy.starts_per_second = Some(2);
    let turns = ["dm:a", "dm:b", "dm:c"].map(|session| desk.send(session, session));
    assert_eq!(desk.starts(), ["dm:a", "dm:b"]);
    let (policy, now) = (desk.policy.clone(), desk.town.now);
    let why = desk.town.store.why_waiting(turns[2], &policy, now).expect("it answers");
    assert_eq!(why.as_deref(), Some("this second has had its starts (`guards.starts_per_second`)"));
    let next = desk.town.store.next_second(&policy, now).expect("it answers").expect("somebody waits for it");
    // Whoever asks a little later is told the same, though by then it has come.
    let later = next + SignedDuration::from_millis(20);
    assert_eq!(desk.town.store.next_second(&policy, later).expect("it answers"), Some(next));
    desk.town.now = next;
    assert_eq!(desk.starts(), ["dm:c"]);
    assert_eq!(desk.town.store.next_second(&policy, next).expect("it answers"), None, "nobody waits any more");
}

#[test]
fn whatever_waits_says_why() {
    let mut desk = Desk::with_main(1);
    let why = |desk: &mut Desk, turn: i64| {
        let (policy, now) = (desk.policy.clone(), desk.town.now);
        desk.town.store.why_waiting(turn, &policy, now).expect("it answers").expect("it waits")
    };
    let first = desk.send("dm:a", "1");
    assert_eq!(why(&mut desk, first), "nothing is in its way: it starts with the next pass of the daemon");
    desk.starts();
    let (policy, now) = (desk.policy.clone(), desk.town.now);
    assert_eq!(desk.town.store.why_waiting(first, &policy, now).expect("it answers"), None);
    let (second, third) = (desk.send("dm:a", "2"), desk.send("dm:a", "3"));
    assert_eq!(why(&mut desk, second), "1 turn of its session is ahead of it");
    assert_eq!(why(&mut desk, third), "2 turns of its session are ahead of it");
    let other = desk.send("dm:b", "x");
    assert_eq!(why(&mut desk, other), "the lane `main` is full: 1 of 1 run; `gt lane set main N` changes that");
    desk.policy.caps.agents.insert("claude".into(), 1);
    assert_eq!(why(&mut desk, other), "as many runs of agent `claude` live as `agents.claude.max` allows");
    desk.rules.debounce = SignedDuration::from_secs(5);
    let more = desk.send("dm:c", "x");
    assert_eq!(why(&mut desk, more), "more messages may come until 2026-01-01T00:00:05Z");
    desk.policy.guards = vec![gt_core::plan::Guard { code: "guard-load", message: "the load is high".into() }];
    assert_eq!(why(&mut desk, other), "the load is high");
    let stamp = desk.town.stamp();
    desk.town.store.pause(None, &stamp).expect("it is paused");
    assert_eq!(why(&mut desk, other), "the scheduler is paused by tester; `gt scheduler resume` lets it go on");
}

#[test]
fn a_message_that_took_the_place_of_others_says_that_they_are_ending() {
    let mut desk = Desk::with_main(9);
    desk.rules.mode = Mode::Interrupt;
    desk.send("group:ops", "1");
    assert_eq!(desk.starts(), ["1"]);
    let newer = desk.send("group:ops", "2");
    assert_eq!(desk.starts(), Vec::<String>::new(), "the first one has not ended");
    let (policy, now) = (desk.policy.clone(), desk.town.now);
    let why = desk.town.store.why_waiting(newer, &policy, now).expect("it answers");
    assert_eq!(why.as_deref(), Some("it starts once what it takes the place of has ended"));
}

#[test]
fn a_message_waits_for_the_agent_that_its_session_was_given_later() {
    let mut desk = Desk::with_main(9);
    desk.policy.caps.agents.insert("codex".into(), 1);
    let codex = |wishes: &mut Wishes| wishes.agent = Some("codex".to_owned());
    let first = desk.send("dm:a", "1");
    let second = desk.send("dm:b", "2");
    let stamp = desk.town.stamp();
    for session in ["dm:a", "dm:b"] {
        desk.town.store.set_session(session, codex, &stamp).expect("it is set");
    }
    assert_eq!(desk.starts(), ["1"]);
    assert_eq!(desk.turn(first).run.as_deref(), Some("run-1"));
    let (policy, now) = (desk.policy.clone(), desk.town.now);
    let why = desk.town.store.why_waiting(second, &policy, now).expect("it answers");
    assert_eq!(why.as_deref(), Some("as many runs of agent `codex` live as `agents.codex.max` allows"));
}
