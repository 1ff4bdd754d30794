//! What jobs do: a message in a conversation of their own or in somebody's session, a command, a sling. // SPEC K1

use gt_core::job::{Command, Payload};
use gt_core::session::{Mode, Overflow};
use gt_store::{JobPlan, NewMessage, TurnState};
use jiff::SignedDuration;

use crate::desk::{killed, message};
use crate::jobs_clock::{Clock, MINUTE, SECOND, at, cron, every, runs, says};

/// A person says something.
fn send(clock: &mut Clock, session: &str, text: &str) -> i64 {
    let (rules, lanes) = (clock.sessions, clock.policy.lanes.clone());
    let message = NewMessage { lane: Some("main".to_owned()), ..message(session, text) };
    let sent = clock.does(|store, stamp| store.send(&[message], &rules, &lanes, stamp)).expect("the store answers");
    sent[0].as_ref().expect("it is taken").turn.expect("it is a turn")
}

fn into_session(name: &str, session: &str) -> JobPlan {
    JobPlan { payload: says(name, Some(session)), ..every(name, 10) }
}

#[test]
fn a_message_is_asked_in_a_conversation_of_its_own_with_which_nobody_goes_on() {
    let agent = |name: &str| Some(name.to_owned());
    let payload = Payload::Message { text: "what is new?".to_owned(), session: None, agent: agent("codex") };
    let mut clock = Clock::with(&[JobPlan { payload, ..every("x", 10) }, every("y", 30)]);
    for slot in ["00:10", "00:20"] {
        clock.fire_at(slot);
        let turn = clock.run_one("nothing");
        assert_eq!((turn.agent.as_str(), turn.text.as_str(), turn.resumes), ("codex", "what is new?", None), "{slot}");
        assert_eq!(turn.session, "cron:x");
        assert_eq!(turn.fire.map(|fire| (fire.job, fire.attempt, fire.command)), Some(("x".to_owned(), 1, None)));
    }
    let session = clock.town.store.session("cron:x").expect("it answers").expect("it is there");
    assert_eq!((session.conversation, session.talks_to), (None, None));
    clock.set("00:30");
    clock.pause("x");
    clock.fire();
    assert_eq!(clock.run_one("yes").agent, clock.policy.default_agent, "where none is named");
}

#[test]
fn what_is_tried_again_begins_anew() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.fire_at("00:10");
    let run = clock.start_one().run;
    clock.fail(&run);
    clock.fire_at("00:11");
    assert_eq!(clock.run_one("yes").resumes, None, "not with what the failure left");
}

#[test]
fn a_message_in_somebodys_session_waits_its_turn_and_goes_on_with_the_conversation() {
    let mut clock = Clock::with(&[into_session("x", "dm:anna")]);
    clock.sessions.debounce = SignedDuration::from_millis(800);
    send(&mut clock, "dm:anna", "hi");
    clock.town.now += SECOND;
    let first = clock.start_one();
    send(&mut clock, "dm:anna", "and?");
    clock.fire_at("00:10");
    assert_eq!(clock.claim().len(), 0, "one turn at a time");
    clock.answer(&first.run, "yes");
    let texts: Vec<String> = clock.answer_all().into_iter().map(|turn| turn.text).collect();
    assert_eq!(texts, ["and?", "x"]);
    clock.fire_at("00:20");
    let turn = clock.start_one();
    assert_eq!(
        (turn.lane.as_str(), turn.resumes.as_deref()),
        ("cron", Some("c-run-3")),
        "and at once, for it is whole"
    );
    clock.answer(&turn.run, "yes");
    let session = clock.town.store.session("dm:anna").expect("it answers").expect("it is there");
    assert_eq!(session.conversation.as_deref(), Some("c-run-4"), "who comes next knows of it");
}

#[test]
fn a_lost_conversation_costs_a_job_nothing() {
    let mut clock = Clock::with(&[into_session("x", "dm:anna")]);
    send(&mut clock, "dm:anna", "hi");
    clock.run_one("yes");
    clock.fire_at("00:10");
    let turn = clock.start_one();
    clock.end(gt_store::Ended { is_conversation_lost: true, ..crate::yard::ended(&turn.run) });
    let again = clock.run_one("yes");
    assert_eq!((again.turn, again.resumes), (turn.turn, None));
    assert_eq!(clock.log("x"), ["00:10 ok"]);
}

#[test]
fn a_session_that_takes_no_more_is_tried_again() {
    let mut clock = Clock::with(&[into_session("x", "dm:anna")]);
    (clock.sessions.cap, clock.sessions.overflow) = (1, Overflow::New);
    send(&mut clock, "dm:anna", "1");
    let first = clock.start_one();
    send(&mut clock, "dm:anna", "2");
    clock.fire_at("00:10");
    let fire = clock.last("x");
    assert_eq!(fire.error.as_deref(), Some("`dm:anna` takes no more messages now"));
    assert_eq!((fire.turn, fire.attempt, fire.retry_at.is_some()), (None, 1, true));
    clock.answer(&first.run, "yes");
    let second = clock.start_one();
    clock.fire_at("00:11");
    clock.answer(&second.run, "yes");
    assert_eq!(clock.run_one("yes").text, "x");
    assert_eq!(clock.log("x"), ["00:10 ok 2"]);
}

#[test]
fn a_session_that_never_takes_more_is_a_failure() {
    for once in [false, true] {
        let plan = if once { at("x", "00:10") } else { every("x", 60) };
        let mut clock = Clock::with(&[JobPlan { payload: says("x", Some("dm:anna")), ..plan }]);
        (clock.sessions.cap, clock.sessions.overflow) = (1, Overflow::New);
        send(&mut clock, "dm:anna", "1");
        clock.start_one();
        send(&mut clock, "dm:anna", "2");
        clock.set(if once { "00:10" } else { "01:00" });
        for _ in 0..4 {
            clock.fire();
            clock.town.now += SECOND * 20;
        }
        let fire = clock.last("x");
        assert_eq!((fire.attempt, fire.status.as_str(), fire.retry_at), (4, "failed", None));
        let why = "disabled its only run failed: `dm:anna` takes no more messages now";
        assert_eq!(clock.state("x"), if once { why } else { "active 02:00" });
    }
}

#[test]
fn a_job_that_is_given_up_in_the_moment_it_fires_rests() {
    let mut clock = Clock::with(&[JobPlan { retries: Some(0), ..into_session("x", "dm:anna") }]);
    (clock.sessions.cap, clock.sessions.overflow, clock.failures_max) = (0, Overflow::New, 1);
    clock.fire_at("00:10");
    assert_eq!(clock.state("x"), "disabled it failed: `dm:anna` takes no more messages now");
    assert_eq!(clock.fire_at("00:20"), gt_store::Fired::default());
    assert_eq!(clock.log("x"), ["00:10 failed"]);
}

#[test]
fn a_message_that_gives_way_to_newer_ones_is_tried_again() {
    let mut clock = Clock::with(&[into_session("x", "dm:anna")]);
    clock.sessions.cap = 1;
    send(&mut clock, "dm:anna", "1");
    let first = clock.start_one();
    clock.fire_at("00:10");
    send(&mut clock, "dm:anna", "2");
    let fire = clock.last("x");
    assert_eq!(fire.error.as_deref(), Some("1 messages wait in `dm:anna`, and newer ones came"));
    assert!(fire.retry_at.is_some());
    clock.answer(&first.run, "yes");
    clock.fire_at("00:11");
    let texts: Vec<String> = clock.answer_all().into_iter().map(|turn| turn.text).collect();
    assert_eq!(texts, ["x"], "the person's gave way to it");
    assert_eq!(clock.log("x"), ["00:10 ok 2"]);
}

#[test]
fn a_message_interrupts_where_messages_do() {
    let mut clock = Clock::with(&[into_session("x", "dm:anna"), into_session("y", "dm:anna")]);
    clock.sessions.mode = Mode::Interrupt;
    send(&mut clock, "dm:anna", "1");
    let first = clock.start_one();
    clock.fire_at("00:10");
    assert_eq!(clock.claim().len(), 0, "only when the old one has really ended");
    clock.end(killed(&first.run));
    assert_eq!(clock.run_one("yes").text, "y");
    assert_eq!((clock.log("x"), clock.log("y")), (vec!["00:10 cancelled".into()], vec!["00:10 ok".into()]));
}

#[test]
fn a_command_is_run_by_the_shell_and_a_sling_by_our_own_program() {
    let words = ["gt-1", "--rig", "shop"].map(str::to_owned).to_vec();
    let sling = JobPlan { payload: Payload::Sling { words }, ..every("sling", 10) };
    let mut clock = Clock::with(&[JobPlan { payload: runs("date; true"), ..every("run", 10) }, sling]);
    clock.fire_at("00:10");
    let run = clock.run_one("Thu");
    let command = |turn: &gt_store::Turn| turn.fire.as_ref().and_then(|fire| fire.command.clone());
    assert_eq!(command(&run), Some(Command::Shell("date; true".to_owned())));
    assert_eq!((run.agent.as_str(), run.text.as_str(), run.session.as_str()), ("sh", "date; true", "cron:run"));
    let sling = clock.claim().remove(0);
    let expected = ["sling", "gt-1", "--rig", "shop"].map(str::to_owned).to_vec();
    assert_eq!(command(&sling), Some(Command::Gt(expected)));
    assert_eq!((sling.agent.as_str(), sling.text.as_str()), ("sh", "gt sling gt-1 --rig shop"));
}

#[test]
fn an_edit_holds_from_the_next_attempt_on() {
    let mut clock = Clock::with(&[JobPlan { payload: runs("old"), ..every("x", 10) }]);
    clock.fire_at("00:10");
    clock.edit("x", |plan| plan.payload = runs("new")).expect("it is changed");
    let turn = clock.start_one();
    assert_eq!(turn.text, "old", "what has fired has fired");
    clock.fail(&turn.run);
    clock.fire_at("00:11");
    assert_eq!(clock.run_one("yes").text, "new");
}

#[test]
fn a_job_that_cannot_be_read_is_disabled_with_a_reason_and_holds_up_nobody() {
    let spoilt = [
        ("payload = '{\"dance\":{}}'", "what it is to do cannot be read"),
        ("payload = 'x'", "what it is to do cannot be read"),
        ("tz = 'Mars/Olympus'", "there is no time zone `Mars/Olympus`"),
        ("schedule = '61 * * * *'", "its schedule `61 * * * *` cannot be read"),
        ("kind = 'moon', schedule = 'full'", "its schedule `full` cannot be read"),
        ("kind = 'every', schedule = '0'", "its schedule `0` cannot be read"),
    ];
    for (what, why) in spoilt {
        let mut clock = Clock::with(&[cron("bad", "*/10 * * * *"), every("good", 10)]);
        clock.peek.execute(&format!("UPDATE job SET {what} WHERE name = 'bad'"), []).expect("it is spoiled");
        assert_eq!(clock.fire_at("00:10").n_fired, 1, "{what}");
        assert_eq!(clock.run_one("yes").text, "good");
        assert_eq!(clock.state("bad"), format!("disabled {why}"));
        assert_eq!((clock.letters(), clock.log("bad")), (vec!["the job bad is disabled".to_owned()], Vec::new()));
        assert_eq!(clock.fire_at("00:20").n_fired, 1);
        clock.edit("bad", |plan| *plan = every("bad", 10)).expect("it is mended");
        assert_eq!(clock.state("bad"), "active 00:30");
    }
}

#[test]
fn what_cannot_be_read_is_not_run_by_hand_either() {
    let mut clock = Clock::with(&[every("bad", 10)]);
    clock.peek.execute("UPDATE job SET payload = '{}'", []).expect("it is spoiled");
    let fire = clock.try_now("bad").expect("there is such a job");
    assert_eq!((fire.status.as_str(), fire.error.as_deref()), ("failed", Some("what it is to do cannot be read")));
    assert_eq!((clock.log("bad"), clock.claim()), (vec!["00:00 failed".to_owned()], Vec::new()));
}

#[test]
fn what_became_unreadable_is_not_tried_again() {
    let mut clock = Clock::with(&[every("bad", 60)]);
    clock.fire_at("01:00");
    let run = clock.start_one().run;
    clock.fail(&run);
    clock.peek.execute("UPDATE job SET payload = '{}'", []).expect("it is spoiled");
    clock.fire_at("01:01");
    assert_eq!(clock.claim(), []);
    assert_eq!(clock.log("bad"), ["01:00 failed 2"]);
    assert_eq!(clock.town.store.next_job_at().expect("it answers"), clock.job("bad").next_at);
}

#[test]
fn a_job_runs_in_its_lane() {
    let lane = |name: &str, lane: &str| JobPlan { lane: Some(lane.to_owned()), ..every(name, 10) };
    let in_dm = JobPlan { lane: Some("main".to_owned()), ..into_session("dm", "dm:anna") };
    let plans = [
        every("usual", 10),
        lane("named", "delegate"),
        lane("gone", "nowhere"),
        lane("cat", "polecat"),
        lane("made", "night"),
        in_dm,
    ];
    let mut clock = Clock::with(&plans);
    clock.policy.lanes = clock.policy.lanes.clone().with([("night".to_owned(), 1), ("main".to_owned(), 9)]);
    clock.fire_at("00:10");
    let lanes: Vec<(String, String)> = clock.start().into_iter().map(|turn| (turn.text, turn.lane)).collect();
    let lane_of = |name: &str| lanes.iter().find(|(text, _)| text == name).map(|(_, lane)| lane.as_str());
    let found = ["usual", "named", "gone", "cat", "made", "dm"].map(lane_of);
    assert_eq!(found, [Some("cron"), Some("delegate"), Some("main"), Some("main"), Some("night"), Some("main")]);
}

#[test]
fn as_many_run_at_once_as_their_lane_allows() {
    let plans: Vec<JobPlan> = (0..5).map(|n| every(&format!("x{n}"), 10)).collect();
    let mut clock = Clock::with_lane(2, &plans);
    clock.fire_at("00:10");
    let mut order = Vec::new();
    while let [first, ..] = clock.start().as_slice() {
        let live = clock.town.store.live_runs().expect("it answers");
        assert!(live.len() <= 2);
        order.push(first.text.clone());
        let oldest = live[0].id.clone();
        clock.answer(&oldest, "yes");
    }
    assert_eq!(order, ["x0", "x2", "x3", "x4"], "in the order of their slots");
}

#[test]
fn a_job_waits_with_everybody_while_the_scheduler_is_paused() {
    let mut clock = Clock::with(&[every("x", 10)]);
    clock.does(|store, stamp| store.pause(None, stamp)).expect("it is paused");
    clock.fire_at("00:10");
    assert_eq!(clock.claim(), []);
    clock.fire_at("00:20");
    clock.does(gt_store::Store::resume).expect("it goes on");
    let turn = clock.run_one("yes");
    assert_eq!(clock.town.store.turn(turn.turn).expect("it answers").map(|turn| turn.state), Some(TurnState::Ended));
    assert_eq!(clock.log("x"), ["00:10 ok", "00:20 skipped"]);
    clock.town.now += MINUTE;
    assert_eq!(clock.claim(), []);
}
