//! Stopping, failing, trying again, nested work, delivery: how turns end. // SPEC L4–L6

use gt_core::refusal::Refusal;
use gt_store::{Address, Ended, Fault, NewMessage, Stopped};
use jiff::SignedDuration;

use crate::desk::{Desk, killed, message};
use crate::yard::ended;

fn stopped(runs: &[&str], n_cancelled: usize, n_left: usize) -> Stopped {
    Stopped { runs: runs.iter().map(|run| (*run).to_owned()).collect(), n_cancelled, n_left }
}

#[test]
fn stop_ends_the_oldest_that_runs_and_leaves_the_others() {
    let mut desk = Desk::with_main(9);
    let turns: Vec<i64> = ["a", "b", "c", "d"].map(|text| desk.send("group:g", text)).to_vec();
    desk.starts();
    assert_eq!(desk.stop("group:g", false), stopped(&["run-1"], 0, 3));
    assert_eq!(desk.stop("group:g", false), stopped(&["run-2"], 0, 2), "the next one: the first is stopping already");
    assert_eq!(desk.end(killed("run-1")), ["d"], "its place is free when it has ended");
    assert_eq!(desk.words(&turns), ["cancelled", "live", "live", "live"]);
    assert_eq!(desk.error(turns[0]), "tester stopped it (killed by signal 15)");
}

#[test]
fn stop_works_while_a_turn_waits_for_its_session_its_lane_or_more_words() {
    let mut desk = Desk::with_main(1);
    desk.send("dm:holder", "held");
    desk.starts();
    let waits_for_lane = desk.send("dm:a", "1");
    assert_eq!(desk.stop("dm:a", false), stopped(&[], 1, 0));
    assert_eq!(desk.word(waits_for_lane), "cancelled");
    desk.rules.debounce = SignedDuration::from_millis(800);
    let debounced = desk.send("dm:b", "2");
    assert_eq!(desk.stop("dm:b", false).words(), "Cancelled 1 message that waited.");
    assert_eq!(desk.word(debounced), "cancelled");
    desk.pass_millis(900);
    assert_eq!(desk.answer("run-1", "yes"), Vec::<String>::new(), "nothing of it ever runs");
    assert_eq!(desk.stop("dm:b", false).words(), "Nothing runs or waits here.");
    assert_eq!(desk.stop("dm:unknown", true).words(), "Nothing runs or waits here.");
}

#[test]
fn stopall_ends_what_runs_and_empties_the_queue() {
    let mut desk = Desk::with_main(9);
    let turns: Vec<i64> = ["a", "b", "c", "d", "e"].map(|text| desk.send("group:g", text)).to_vec();
    desk.starts();
    let all = desk.stop("group:g", true);
    assert_eq!(all, stopped(&["run-1", "run-2", "run-3"], 2, 0));
    assert_eq!(all.words(), "Stopped 3 turns that ran and cancelled 2 messages that waited.");
    let later = desk.send("group:g", "later");
    assert_eq!(desk.starts(), Vec::<String>::new(), "three are still ending");
    assert_eq!(desk.end_all(["run-1", "run-2", "run-3"].map(killed).to_vec()), ["later"]);
    assert_eq!(desk.words(&turns), ["cancelled"; 5]);
    assert_eq!(desk.word(later), "live");
}

#[test]
fn a_turn_that_is_stopped_while_it_starts_never_runs() {
    let mut desk = Desk::new();
    let turn = desk.send("dm:a", "1");
    let claimed = desk.advance(&gt_store::Findings::default()).turns;
    assert_eq!(desk.stop("dm:a", false), stopped(&["run-1"], 0, 0));
    let started = vec![crate::desk::started(&claimed[0].run)];
    let advance = desk.advance(&gt_store::Findings { started, ..Default::default() });
    assert_eq!(advance.unwanted.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["run-1"]);
    desk.end(killed("run-1"));
    assert_eq!(desk.word(turn), "cancelled");
}

#[test]
fn a_command_is_obeyed_once_however_often_it_comes() {
    let mut desk = Desk::new();
    desk.send("dm:a", "1");
    desk.send("dm:a", "2");
    desk.starts();
    let to = Address { channel: "tg".into(), recipient: Some("7".into()), reply_to: None };
    let command = NewMessage { source: Some("u1".into()), deliver: Some(to), ..message("dm:a", "/stop") };
    for _ in 0..2 {
        let stamp = desk.town.stamp();
        let answer = desk.town.store.obey(&command, false, &stamp).expect("it is obeyed");
        assert_eq!(answer, "Stopped 1 turn that ran; 1 more is left.");
    }
    let parcels = desk.town.store.due_parcels("tg", desk.town.now, 9).expect("it answers");
    assert_eq!(
        parcels.iter().map(|parcel| parcel.text.as_str()).collect::<Vec<_>>(),
        ["Stopped 1 turn that ran; 1 more is left."]
    );
}

#[test]
fn what_was_interrupted_is_tried_once_more_and_what_failed_is_reported() {
    let mut desk = Desk::new();
    let turn = desk.send("dm:a", "1");
    desk.starts();
    assert_eq!(desk.end(Ended { code: None, signal: Some(9), ..ended("run-1") }), ["1"], "nobody asked for that end");
    desk.end(Ended { code: None, signal: Some(9), ..ended("run-2") });
    assert_eq!(desk.word(turn), "failed");
    assert_eq!(desk.error(turn), "it was interrupted 2 times, the last time so: killed by signal 9");
    let turn = desk.send("dm:a", "2");
    desk.starts();
    assert_eq!(desk.end(Ended { last_output: Some("no key".into()), ..ended("run-3") }), Vec::<String>::new());
    assert_eq!((desk.word(turn), desk.error(turn)), ("failed", "no key (exit code 1)".into()));
    assert_eq!(desk.town.store.runs_of_turn(turn).expect("it answers").len(), 1);
}

#[test]
fn plain_text_whose_end_was_not_seen_is_the_answer_and_says_so() {
    let unseen = |run: &str| Ended { code: None, signal: None, ..ended(run) };
    let answered = |run: &str| Ended { reply: Some("half of it".into()), ..unseen(run) };
    let mut desk = Desk::new();
    let turn = desk.send("dm:a", "1");
    desk.starts();
    assert_eq!(desk.end(answered("run-1")), Vec::<String>::new(), "it is not run again");
    let why = "the end of this run was not seen, so the answer may be incomplete";
    assert_eq!((desk.word(turn), desk.error(turn)), ("done", why.into()));
    let view = desk.town.store.turn(turn).expect("it answers").expect("it is there");
    assert_eq!(view.reply.as_deref(), Some(format!("half of it\n\n[{why}]").as_str()));

    // Nothing was printed, a death was seen, a failure was seen: none of them is an answer.
    let no_answers = [
        Ended { reply: Some(String::new()), ..unseen("") },
        Ended { signal: Some(9), ..answered("") },
        Ended { is_lost: true, ..answered("") },
    ];
    for (n, end) in (1..).step_by(2).zip(no_answers) {
        let turn = desk.send("dm:a", "again");
        desk.starts();
        assert_eq!(desk.end(Ended { run: format!("run-{}", n + 1), ..end.clone() }), ["again"], "{end:?}");
        desk.end(Ended { run: format!("run-{}", n + 2), ..end });
        assert_eq!(desk.word(turn), "failed");
    }
    let turn = desk.send("dm:a", "2");
    desk.starts();
    desk.end(Ended { code: Some(1), ..answered("run-8") });
    assert_eq!(desk.word(turn), "failed");
}

#[test]
fn a_turn_that_goes_on_with_a_lost_conversation_begins_a_new_one() {
    let mut desk = Desk::new();
    let converse = |desk: &mut Desk, text: &str| {
        desk.send("dm:a", text);
        desk.start().remove(0)
    };
    let first = converse(&mut desk, "1");
    assert_eq!(first.resumes, None);
    desk.answer(&first.run, "yes");
    let second = converse(&mut desk, "2");
    assert_eq!(second.resumes.as_deref(), Some("c-run-1"));
    assert_eq!(desk.end(Ended { is_conversation_lost: true, ..ended(&second.run) }), ["2"]);
    let third = desk.town.store.claimed("run-3").expect("it answers").expect("it lives");
    assert_eq!(third.turn().expect("a turn").resumes, None);
    desk.answer("run-3", "yes");
    assert_eq!(converse(&mut desk, "4").resumes.as_deref(), Some("c-run-3"));
}

#[test]
fn a_turn_beside_others_of_its_group_begins_a_conversation_that_nobody_goes_on_with() {
    let mut desk = Desk::with_main(9);
    desk.send("group:g", "1");
    desk.starts();
    desk.answer("run-1", "yes");
    desk.send("group:g", "2");
    desk.send("group:g", "3");
    let resumes: Vec<Option<String>> = desk.start().into_iter().map(|turn| turn.resumes).collect();
    assert_eq!(resumes, [Some("c-run-1".to_owned()), None]);
    desk.answer("run-2", "yes");
    desk.answer("run-3", "yes");
    let session = desk.town.store.session("group:g").expect("it answers").expect("it is there");
    assert_eq!(session.conversation.as_deref(), Some("c-run-2"));
}

#[test]
fn a_start_that_fails_is_tried_again_and_then_given_up() {
    let mut desk = Desk::new();
    let turn = desk.send("dm:a", "1");
    for (n, wait) in [(1, 1), (2, 2)] {
        assert_eq!(desk.advance(&gt_store::Findings::default()).turns.len(), 1);
        desk.fail_start(&format!("run-{n}"), Fault::Bead);
        assert_eq!(desk.word(turn), "waiting");
        assert!(desk.advance(&gt_store::Findings::default()).turns.is_empty(), "not at once");
        desk.town.pass(wait);
    }
    assert_eq!(desk.advance(&gt_store::Findings::default()).turns.len(), 1);
    desk.fail_start("run-3", Fault::Bead);
    assert_eq!((desk.word(turn), desk.error(turn)), ("failed", "no luck".into()));
}

#[test]
fn a_conversation_that_was_forgotten_is_not_remembered_by_what_ran_meanwhile() {
    let mut desk = Desk::new();
    desk.send("dm:a", "1");
    desk.starts();
    desk.answer("run-1", "one");
    desk.send("dm:a", "2");
    assert_eq!(desk.start()[0].resumes.as_deref(), Some("c-run-1"));
    let stamp = desk.town.stamp();
    assert!(desk.town.store.forget_conversation("dm:a", &stamp).expect("it answers"));
    desk.answer("run-2", "two");
    desk.send("dm:a", "3");
    assert_eq!(desk.start()[0].resumes, None, "it begins anew");
    desk.answer("run-3", "three");
    desk.send("dm:a", "4");
    assert_eq!(desk.start()[0].resumes.as_deref(), Some("c-run-3"), "and goes on with that");
}

#[test]
fn nested_work_has_the_place_of_whoever_waits_for_it() {
    let mut desk = Desk::with_main(1);
    desk.set_lane("subagent", 1);
    let nested = |desk: &mut Desk, parent: &str, session: &str| {
        let message =
            NewMessage { parent: Some(parent.into()), lane: Some("main".into()), ..message(session, session) };
        desk.try_send(message).expect("it is taken").turn.expect("it is a turn")
    };
    desk.send("dm:a", "root");
    desk.send("dm:z", "stranger");
    assert_eq!(desk.starts(), ["root"]);
    nested(&mut desk, "run-1", "dm:b");
    nested(&mut desk, "run-1", "dm:c");
    assert_eq!(desk.starts(), ["dm:b"], "one at a time: a place is lent once");
    nested(&mut desk, "run-2", "dm:d");
    assert_eq!(desk.starts(), ["dm:d"], "and on and on");
    let main = |desk: &mut Desk| {
        let lanes = desk.town.store.lanes(&desk.policy).expect("it answers");
        lanes.into_iter().find(|lane| lane.name == "main").expect("it is there").active
    };
    assert_eq!(main(&mut desk), 1);
    assert_eq!(desk.answer("run-3", "yes"), Vec::<String>::new());
    assert_eq!(desk.answer("run-2", "yes"), ["dm:c"]);
    assert_eq!(desk.answer("run-4", "yes"), Vec::<String>::new());
    assert_eq!(desk.answer("run-1", "yes"), ["stranger"]);
}

#[test]
fn a_place_that_was_lent_on_is_still_one_place_when_whoever_is_in_between_ends_first() {
    let mut desk = Desk::with_main(1);
    let nested = |desk: &mut Desk, parent: &str, session: &str| {
        let message =
            NewMessage { parent: Some(parent.into()), lane: Some("main".into()), ..message(session, session) };
        desk.try_send(message).expect("it is taken");
    };
    desk.send("dm:a", "root");
    assert_eq!(desk.starts(), ["root"]);
    nested(&mut desk, "run-1", "dm:b");
    assert_eq!(desk.starts(), ["dm:b"]);
    nested(&mut desk, "run-2", "dm:c");
    assert_eq!(desk.starts(), ["dm:c"]);
    nested(&mut desk, "run-1", "dm:d");
    desk.send("dm:z", "stranger");
    assert_eq!(desk.answer("run-2", "yes"), Vec::<String>::new(), "the place has somebody in it");
    let lanes = desk.town.store.lanes(&desk.policy).expect("it answers");
    assert_eq!(lanes.into_iter().find(|lane| lane.name == "main").map(|lane| lane.active), Some(1));
    assert_eq!(desk.end(killed("run-3")), ["dm:d"], "it is free to be lent again");
    assert_eq!(desk.answer("run-4", "yes"), Vec::<String>::new());
    assert_eq!(desk.answer("run-1", "yes"), ["stranger"]);
}

#[test]
fn what_is_ahead_of_nested_work_has_the_place_of_whoever_waits_behind_it() {
    let mut desk = Desk::with_main(1);
    desk.send("dm:a", "root");
    assert_eq!(desk.starts(), ["root"]);
    desk.send("dm:b", "first");
    desk.send("dm:b", "second");
    desk.send("dm:z", "stranger");
    assert_eq!(desk.starts(), Vec::<String>::new(), "the lane is full, and nobody waits");
    let nested = NewMessage { parent: Some("run-1".into()), ..message("dm:b", "nested") };
    desk.try_send(nested).expect("it is taken");
    assert_eq!(desk.starts(), ["first"]);
    assert_eq!(desk.starts(), Vec::<String>::new(), "a place is lent once");
    assert_eq!(desk.answer("run-2", "yes"), ["second"]);
    assert_eq!(desk.answer("run-3", "yes"), ["nested"]);
    assert_eq!(desk.answer("run-4", "yes"), Vec::<String>::new());
    assert_eq!(desk.answer("run-1", "yes"), ["stranger"]);
}

#[test]
fn nested_work_has_the_place_of_its_agent_too() {
    let mut desk = Desk::with_main(9);
    desk.policy.caps.agents.insert(desk.policy.default_agent.clone(), 1);
    desk.send("dm:a", "root");
    desk.send("dm:z", "stranger");
    assert_eq!(desk.starts(), ["root"]);
    for session in ["dm:b", "dm:c"] {
        desk.try_send(NewMessage { parent: Some("run-1".into()), ..message(session, session) }).expect("it is taken");
    }
    assert_eq!(desk.starts(), ["dm:b"], "a place is lent once");
    assert_eq!(desk.answer("run-2", "yes"), ["dm:c"]);
    assert_eq!(desk.answer("run-3", "yes"), Vec::<String>::new());
    assert_eq!(desk.answer("run-1", "yes"), ["stranger"]);
}

#[test]
fn a_run_cannot_wait_for_what_waits_for_it() {
    let mut desk = Desk::with_main(9);
    let ask = |desk: &mut Desk, parent: &str, session: &str| {
        let message = NewMessage { parent: Some(parent.into()), ..message(session, "x") };
        desk.try_send(message)
    };
    desk.send("dm:a", "1");
    desk.send("dm:b", "2");
    desk.starts();
    let itself = Err(Refusal::WaitsForItself { key: "dm:a".into() });
    assert_eq!(ask(&mut desk, "run-1", "dm:a"), itself, "its own session");
    ask(&mut desk, "run-1", "dm:b").expect("b does not wait for a yet");
    assert_eq!(ask(&mut desk, "run-2", "dm:a"), itself, "a waits for b, and b would wait for a");
    ask(&mut desk, "run-2", "dm:c").expect("somebody else");
    desk.starts();
    assert_eq!(ask(&mut desk, "run-3", "dm:a"), itself, "c would wait for a, which waits for b, which waits for c");
    desk.send("dm:a", "without waiting for it");
}

#[test]
fn what_a_run_has_asked_for_ends_with_it() {
    let mut desk = Desk::with_main(9);
    desk.send("dm:a", "1");
    desk.starts();
    let ask = |desk: &mut Desk, session: &str| {
        let message = NewMessage { parent: Some("run-1".into()), ..message(session, session) };
        desk.try_send(message).expect("it is taken").turn.expect("it is a turn")
    };
    let runs = ask(&mut desk, "dm:b");
    desk.starts();
    let waits = ask(&mut desk, "dm:b");
    assert_eq!(desk.stop("dm:a", false), stopped(&["run-1", "run-2"], 1, 0));
    desk.end_all(vec![killed("run-1"), killed("run-2")]);
    assert_eq!(desk.words(&[runs, waits]), ["cancelled", "cancelled"]);
}

#[test]
fn an_answer_is_put_into_the_outbox_once_and_kept_in_order() {
    let mut desk = Desk::with_main(9);
    let to = |who: &str| Address { channel: "tg".into(), recipient: Some(who.into()), reply_to: Some("m9".into()) };
    let ask = |desk: &mut Desk, session: &str, who: &str| {
        let message = NewMessage { deliver: Some(to(who)), ..message(session, session) };
        desk.try_send(message).expect("it is taken").turn.expect("it is a turn")
    };
    let first = ask(&mut desk, "group:g", "7");
    ask(&mut desk, "group:g", "7");
    ask(&mut desk, "group:g", "8");
    desk.starts();
    desk.answer("run-1", "one");
    desk.stop("group:g", false);
    desk.end(killed("run-2"));
    desk.end(Ended { last_output: Some("broken".into()), ..ended("run-3") });
    let due = |desk: &mut Desk| {
        let parcels = desk.town.store.due_parcels("tg", desk.town.now, 9).expect("it answers");
        let shown = |parcel: &gt_store::Parcel| format!("{} {} {}", parcel.key, parcel.outcome, parcel.text);
        (parcels.iter().map(shown).collect::<Vec<_>>(), parcels)
    };
    let (shown, parcels) = due(&mut desk);
    assert_eq!(shown, ["turn-1 done one", "turn-3 failed This could not be answered: broken (exit code 1)."]);
    let stamp = desk.town.stamp();
    desk.town
        .store
        .not_delivered(&parcels[0], "nobody there", Some(desk.town.now + SignedDuration::from_secs(5)), &stamp)
        .expect("it is recorded");
    assert_eq!(due(&mut desk).0.len(), 1, "what comes after it waits too");
    assert_eq!(
        desk.town.store.delivery_of(first).expect("it answers"),
        Some(("waiting".into(), Some("nobody there".into())))
    );
    desk.town.pass(5);
    desk.town.store.delivered(parcels[0].id, &stamp).expect("it is recorded");
    assert_eq!(due(&mut desk).0[0], "turn-2 cancelled ", "only that it is over");
    let (_, parcels) = due(&mut desk);
    desk.town.store.not_delivered(&parcels[0], "gone for good", None, &stamp).expect("it is recorded");
    assert_eq!(
        desk.town.store.delivery_of(2).expect("it answers"),
        Some(("failed".into(), Some("gone for good".into())))
    );
    assert_eq!(desk.word(first), "done", "whatever becomes of its delivery");
}

#[test]
fn old_turns_are_forgotten_and_what_waits_is_not() {
    let mut desk = Desk::with_main(1);
    let old = desk.send("dm:a", "1");
    desk.starts();
    desk.answer("run-1", "yes");
    let waits = desk.send("dm:a", "2");
    desk.town.pass(100);
    let stamp = desk.town.stamp();
    assert_eq!(desk.town.store.prune_turns(desk.town.now, &stamp).expect("it answers"), 1);
    desk.town.check();
    assert_eq!(desk.town.store.turn(old).expect("it answers"), None);
    assert_eq!(desk.word(waits), "waiting");
}

#[test]
fn nested_work_goes_only_so_deep() {
    let mut desk = Desk::with_main(1);
    desk.send("dm:0", "0");
    let mut parent = desk.start().remove(0).run;
    for depth in 1..16 {
        let message = NewMessage { parent: Some(parent.clone()), ..message(&format!("dm:{depth}"), "x") };
        desk.try_send(message).expect("it is taken");
        parent = desk.start().remove(0).run;
    }
    let deeper = NewMessage { parent: Some(parent), ..message("dm:deeper", "x") };
    assert_eq!(desk.try_send(deeper), Err(Refusal::TooDeep { most: 16 }));
    assert_eq!(desk.town.store.session("dm:deeper").expect("it answers"), None, "nothing was changed");
}
