//! Heartbeats: that there are those the config asks for, why one is left out, and what of its answer is told. // SPEC H1, H2

use gt_core::job::{BadJob, Beat, FireStatus};
use gt_core::refusal::Refusal;
use gt_core::run::Outcome;
use gt_store::{BeatWord, Beats, FireFilter, FiresOf, NewMessage, StoreError, beat_of};
use jiff::{SignedDuration, Timestamp};

use crate::desk::message;
use crate::jobs_clock::{Clock, DAY, MINUTE, SECOND, beat, every, time, to};
use crate::town::file;
use crate::yard::{asked, rig};

pub(crate) const NAME: &str = "heartbeat:claude";

/// Of these agents, every so many minutes.
pub(crate) fn beats(agents: &[&str], minutes: i64) -> Beats {
    let beats = agents.iter().map(|agent| beat(agent)).collect();
    Beats { is_on: true, interval: SignedDuration::from_mins(minutes), beats }
}

pub(crate) fn keep(clock: &mut Clock, wanted: &Beats) -> bool {
    clock.does(|store, stamp| store.keep_beats(wanted, stamp)).expect("they are kept")
}

/// A town in which Claude's heart beats every half hour, and tells whom this says.
pub(crate) fn beating(target: &str) -> Clock {
    let mut clock = Clock::new();
    let wanted = Beats { beats: vec![Beat { target: target.to_owned(), ..beat("claude") }], ..beats(&[], 30) };
    assert!(keep(&mut clock, &wanted));
    clock
}

/// The next beat comes, and is answered so; says what is known of its delivery.
pub(crate) fn says(clock: &mut Clock, reply: &str) -> String {
    clock.town.now = clock.job(NAME).next_at.expect("it beats");
    assert_eq!(clock.fire().n_fired, 1, "{:?}", clock.last(NAME));
    clock.run_one(reply);
    clock.last(NAME).delivery.expect("it is over")
}

fn send(clock: &mut Clock, channel: &str, who: &str) {
    let (rules, lanes) = (clock.sessions, clock.policy.lanes.clone());
    let message = NewMessage { deliver: Some(to(channel, Some(who))), ..message(&format!("dm:{who}"), "hi") };
    let sent = clock.does(|store, stamp| store.send(&[message], &rules, &lanes, stamp)).expect("the store answers");
    assert!(sent[0].is_ok());
}

#[test]
fn there_are_the_heartbeats_that_somebody_wants_and_no_others() {
    let mut clock = Clock::with(&[every("x", 60)]);
    assert!(keep(&mut clock, &beats(&["claude", "codex"], 30)));
    assert!(!keep(&mut clock, &beats(&["claude", "codex"], 30)), "all is as it is to be");
    assert_eq!(clock.events("job.added"), ["x", "heartbeat:claude", "heartbeat:codex"]);
    let names = |jobs: Vec<gt_store::Job>| jobs.iter().map(|job| job.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(clock.town.store.jobs(false, None).expect("it answers")), ["x"]);
    assert_eq!(names(clock.town.store.jobs(true, None).expect("it answers")).len(), 3);
    assert_eq!(names(clock.town.store.beats().expect("it answers")), [beat_of("claude"), beat_of("codex")]);
    clock.fire_at("00:30");
    clock.answer_all();
    assert!(keep(&mut clock, &beats(&["codex"], 30)));
    assert!(clock.is_gone(NAME));
    assert_eq!(clock.log(NAME), ["00:30 ok"], "what it did stays known");
    clock.fire_at("01:00");
    let of = |clock: &mut Clock, of| {
        clock.town.store.fires(&FireFilter { of, ..FireFilter::default() }).expect("it answers").len()
    };
    assert_eq!((of(&mut clock, FiresOf::Jobs), of(&mut clock, FiresOf::Beats)), (1, 3));
}

#[test]
fn another_distance_is_counted_from_now_and_another_target_changes_no_time() {
    let mut clock = beating("none");
    clock.set("00:20");
    let told = Beat { target: "tg".to_owned(), ..beat("claude") };
    keep(&mut clock, &Beats { beats: vec![told], ..beats(&[], 30) });
    assert_eq!(clock.state(NAME), "active 00:30");
    keep(&mut clock, &beats(&["claude"], 60));
    assert_eq!(clock.state(NAME), "active 01:20");
    clock.restart();
    clock.fire_at("01:20");
    clock.answer_all();
    assert_eq!(clock.state(NAME), "active 02:20");
}

#[test]
fn a_heart_that_beats_too_fast_is_refused_and_the_others_stay() {
    let mut clock = beating("none");
    let wanted = Beats { interval: SECOND / 2, ..beats(&["claude", "codex"], 1) };
    let answer = clock.does(|store, stamp| store.keep_beats(&wanted, stamp));
    assert!(matches!(answer, Err(StoreError::Refused(Refusal::Job(BadJob::NeverRuns { .. })))), "{answer:?}");
    assert_eq!((clock.state(NAME), clock.is_gone("heartbeat:codex")), ("active 00:30".to_owned(), true));
}

#[test]
fn a_heartbeat_that_is_taken_away_ends_and_tells_nobody() {
    let mut clock = beating("tg:7");
    clock.fire_at("00:30");
    let run = clock.start_one().run;
    keep(&mut clock, &beats(&[], 30));
    clock.answer(&run, "the sky falls");
    assert_eq!((clock.outbox(), clock.last(NAME).delivery.as_deref()), (Vec::new(), Some("none")));
    let mut clock = beating("tg:7");
    clock.fire_at("00:30");
    let run = clock.start_one().run;
    clock.fail(&run);
    keep(&mut clock, &beats(&[], 30));
    assert_eq!(clock.last(NAME).error.as_deref(), Some("exit code 1; the heartbeat was taken away"));
    assert_eq!(clock.town.store.next_job_at().expect("it answers"), None);
}

#[test]
fn heartbeats_that_are_switched_off_and_on_keep_what_is_known_of_them() {
    let mut clock = Clock::new();
    let mut wanted = beats(&["claude", "paused", "tired"], 30);
    wanted.beats.iter_mut().for_each(|beat| beat.target = "tg".to_owned());
    keep(&mut clock, &wanted);
    clock.pause("heartbeat:paused");
    clock.set("00:30");
    (clock.retries, clock.failures_max) = (0, 1);
    clock.fire();
    for _ in 0..2 {
        let turn = clock.start_one();
        if turn.agent == "claude" { clock.answer(&turn.run, "the sky falls") } else { clock.fail(&turn.run) }
    }
    let off = Beats { is_on: false, ..wanted.clone() };
    assert!(keep(&mut clock, &off));
    assert!(!keep(&mut clock, &off));
    let states =
        |clock: &mut Clock| ["claude", "paused", "tired"].map(|agent| clock.job(&beat_of(agent)).state.as_str());
    assert_eq!(states(&mut clock), ["paused", "paused", "disabled"]);
    assert_eq!(clock.state(NAME), "paused heartbeats are switched off: `gt heartbeat enable`");
    assert_eq!(clock.fire_at("02:10").n_fired, 0);
    assert!(keep(&mut clock, &wanted));
    assert!(!keep(&mut clock, &wanted));
    assert_eq!(states(&mut clock), ["active", "paused", "disabled"], "who was stopped, or stopped itself, stays so");
    assert_eq!(clock.state(NAME), "active 02:30", "it goes on from now");
    assert_eq!(says(&mut clock, "the sky falls"), "repeated");
    assert_eq!(clock.outbox().len(), 1);
}

#[test]
fn who_is_stopped_while_all_rest_stays_so_when_they_go_on() {
    let mut clock = Clock::new();
    let wanted = beats(&["claude", "codex"], 30);
    keep(&mut clock, &wanted);
    keep(&mut clock, &Beats { is_on: false, ..wanted.clone() });
    assert!(clock.pause(NAME), "that is new");
    assert!(!clock.pause(NAME));
    keep(&mut clock, &wanted);
    assert_eq!((clock.state(NAME), clock.state("heartbeat:codex")), ("paused".to_owned(), "active 00:30".to_owned()));
}

#[test]
fn where_hearts_are_switched_off_none_is_made() {
    let mut clock = Clock::new();
    assert!(!keep(&mut clock, &Beats { is_on: false, ..beats(&["claude"], 30) }));
    assert!(clock.is_gone(NAME));
}

#[test]
fn a_heartbeat_is_the_configs_to_make_and_change() {
    let mut clock = beating("none");
    let is_refused = |answer: Result<gt_store::Job, StoreError>| {
        assert!(matches!(answer, Err(StoreError::Refused(Refusal::Job(BadJob::IsHeartbeat { .. })))), "{answer:?}");
    };
    is_refused(clock.edit(NAME, |plan| plan.retries = Some(0)));
    is_refused(clock.does(|store, stamp| store.remove_job(NAME, stamp)));
    assert!(clock.pause(NAME) && clock.resume(NAME), "but it may rest");
}

#[test]
fn why_a_heartbeat_was_left_out_is_known() {
    let mut clock = beating("tg");
    for (slot, why) in [("00:30", "there is no HEARTBEAT.md"), ("01:00", "there is nothing to do in HEARTBEAT.md")] {
        clock.word = BeatWord::Skip { why: why.to_owned(), open: None };
        assert_eq!(clock.fire_at(slot).skipped, [(NAME.to_owned(), why.to_owned())]);
        let last = clock.last(NAME);
        assert_eq!((last.status, last.error.as_deref(), last.attempt), (FireStatus::Skipped, Some(why), 0));
    }
    assert_eq!((clock.claim(), clock.job(NAME).failures), (Vec::new(), 0));
    assert_eq!((clock.state(NAME), clock.events("job.skipped").len()), ("active 01:30".to_owned(), 2));
    assert_eq!(clock.job(NAME).last_status, Some(FireStatus::Skipped));
}

/// When a heart beats next that was asked at `00:30`, outside its hours.
fn next_after_hours(minutes: i64, open: Option<(Timestamp, Timestamp)>) -> String {
    let mut clock = Clock::new();
    keep(&mut clock, &beats(&["claude"], minutes));
    clock.word = BeatWord::Skip { why: "it was outside its active hours".to_owned(), open };
    clock.town.now = clock.job(NAME).next_at.expect("it beats");
    clock.fire();
    assert_eq!(clock.last(NAME).status, FireStatus::Skipped);
    clock.state(NAME)
}

#[test]
fn outside_its_hours_a_heart_waits_for_the_first_beat_in_them() {
    let open = Some((time("08:00"), time("22:00")));
    assert_eq!(next_after_hours(30, open), "active 08:00");
    assert_eq!(next_after_hours(7, open), "active 08:03", "it keeps its beat");
    assert_eq!(next_after_hours(600, open), "active 20:00", "the next one is inside");
    assert_eq!(next_after_hours(1500, Some((time("08:00") + DAY * 2, time("22:00") + DAY * 2))), "active 01-03 08:00");
    assert_eq!(next_after_hours(30, None), "active 01:00", "they never open");
    let brief = Some((time("08:01"), time("08:02")));
    assert_eq!(next_after_hours(30, brief), "active 08:01", "where no beat falls into them, their beginning");
}

#[test]
fn a_beat_that_was_moved_to_the_opening_is_one_like_any_other() {
    let mut clock = Clock::new();
    keep(&mut clock, &beats(&["claude"], 30));
    clock.word = BeatWord::Skip { why: "too early".to_owned(), open: Some((time("08:10"), time("08:20"))) };
    clock.fire_at("00:30");
    assert_eq!(clock.state(NAME), "active 08:10");
    clock.word = BeatWord::Ask("look".to_owned());
    clock.fire_at("08:10");
    clock.run_one("HEARTBEAT_OK");
    assert_eq!(clock.state(NAME), "active 08:30");
    assert_eq!(clock.log(NAME), ["00:30 skipped", "08:10 ok"]);
}

#[test]
fn a_heart_that_waits_for_its_hours_is_asked_again_when_they_are_others() {
    let hours = |hours: Option<&str>| {
        let beat = Beat { hours: hours.map(str::to_owned), ..beat("claude") };
        Beats { beats: vec![beat], ..beats(&[], 30) }
    };
    let mut clock = Clock::new();
    keep(&mut clock, &hours(Some("08:00-09:00")));
    clock.word = BeatWord::Skip { why: "too early".to_owned(), open: Some((time("08:00"), time("09:00"))) };
    clock.fire_at("00:30");
    assert_eq!((keep(&mut clock, &hours(Some("08:00-09:00"))), clock.state(NAME).as_str()), (false, "active 08:00"));
    clock.set("00:40");
    assert!(keep(&mut clock, &hours(Some("00:00-24:00"))));
    assert_eq!(clock.state(NAME), "active 01:00", "it keeps its beat");
    clock.fire_at("01:00");
    assert_eq!(clock.state(NAME), "active 08:00");
    assert!(keep(&mut clock, &hours(None)));
    assert_eq!(clock.state(NAME), "active 01:30", "there are none any more");
    clock.set("01:40");
    clock.restart();
    assert!(keep(&mut clock, &hours(Some("08:00-09:00"))));
    assert_eq!(clock.state(NAME), "active 01:30", "what was missed meanwhile is not forgotten");
    clock.pause(NAME);
    keep(&mut clock, &hours(None));
    assert_eq!(clock.job(NAME).next_at, None, "who rests goes on resting");
}

#[test]
fn who_answers_somebody_is_not_woken() {
    let mut clock = beating("tg");
    send(&mut clock, "tg", "anna");
    let run = clock.start_one().run;
    clock.fire_at("00:30");
    assert_eq!(clock.last(NAME).error.as_deref(), Some("claude was busy"));
    let refused = clock.try_now(NAME);
    assert!(matches!(refused, Err(StoreError::Refused(Refusal::Job(BadJob::AgentBusy { .. })))), "{refused:?}");
    clock.answer(&run, "yes");
    assert_eq!(says(&mut clock, "HEARTBEAT_OK"), "suppressed");
    assert_eq!(clock.log(NAME), ["00:30 skipped", "01:00 ok"]);
}

#[test]
fn who_has_as_many_runs_as_it_may_is_not_woken() {
    let mut clock = beating("tg");
    clock.town.import(&file(&["gt-1"]));
    clock.does(|store, stamp| store.add_rig(&rig("shop", "gt"), stamp)).expect("the rig is new");
    clock.does(|store, stamp| store.sling(&asked(&["gt-1"]), None, stamp)).expect("it is slung");
    assert_eq!(clock.advance(&gt_store::Findings::default()).claimed.len(), 1);
    clock.policy.caps.agents.insert("claude".to_owned(), 2);
    assert_eq!(says(&mut clock, "HEARTBEAT_OK"), "suppressed", "beside a polecat it may be");
    clock.policy.caps.agents.insert("claude".to_owned(), 1);
    clock.fire_at("01:00");
    assert_eq!(clock.last(NAME).error.as_deref(), Some("claude was busy"));
}

#[test]
fn a_beat_that_is_to_be_tried_again_is_left_out_when_somebody_came_in_between() {
    let mut clock = beating("tg");
    clock.fire_at("00:30");
    let run = clock.start_one().run;
    clock.fail(&run);
    send(&mut clock, "tg", "anna");
    clock.start_one();
    clock.fire_at("00:31");
    let last = clock.last(NAME);
    assert_eq!((last.status, last.error.as_deref()), (FireStatus::Skipped, Some("claude was busy")));
    assert_eq!((last.retry_at, clock.claim(), clock.job(NAME).failures), (None, Vec::new(), 0));
}

#[test]
fn a_heart_does_not_beat_twice_at_once_and_makes_up_for_nothing() {
    let mut clock = beating("tg");
    clock.fire_at("00:30");
    clock.fire_at("01:00");
    assert_eq!(clock.last(NAME).error.as_deref(), Some("the one of 2026-01-01T00:30:00Z had not begun yet"));
    clock.run_one("HEARTBEAT_OK");
    clock.set("02:10");
    clock.restart();
    assert_eq!(clock.fire().n_fired, 0);
    assert_eq!(clock.log(NAME), ["00:30 ok", "01:00 skipped", "01:30 missed", "02:00 missed"]);
}

#[test]
fn a_heartbeat_asks_what_it_is_given_in_a_conversation_of_its_own() {
    let mut clock = beating("tg");
    for slot in ["00:30", "01:00"] {
        clock.word = BeatWord::Ask(format!("look at {slot}"));
        clock.fire_at(slot);
        let turn = clock.run_one("HEARTBEAT_OK");
        assert_eq!((turn.text, turn.agent.as_str(), turn.resumes), (format!("look at {slot}"), "claude", None));
        assert_eq!((turn.session.as_str(), turn.lane.as_str()), (NAME, "cron"));
    }
    assert_eq!(clock.town.store.session(NAME).expect("it answers").and_then(|session| session.conversation), None);
}

#[test]
fn that_all_is_well_is_not_told() {
    let mut clock = beating("tg");
    for reply in ["HEARTBEAT_OK", "**HEARTBEAT_OK**", "HEARTBEAT_OK\nnothing new", "", "NO_REPLY"] {
        assert_eq!(says(&mut clock, reply), "suppressed", "{reply:?}");
        assert_eq!(clock.last(NAME).status, FireStatus::Ok);
    }
    assert_eq!(clock.outbox(), [""; 0]);
    let long = format!("HEARTBEAT_OK {}", "x".repeat(301));
    assert_eq!(says(&mut clock, &long), "waiting");
    assert_eq!(clock.outbox(), [format!("tg done {}", "x".repeat(301))], "without the word");
}

#[test]
fn the_same_is_not_told_twice_within_a_day() {
    let mut clock = beating("tg:7");
    assert_eq!(says(&mut clock, "the sky falls"), "waiting");
    assert_eq!(says(&mut clock, " the sky falls\n"), "repeated");
    clock.restart();
    assert_eq!(says(&mut clock, "the sky falls"), "repeated", "by another daemon too");
    assert_eq!(says(&mut clock, "HEARTBEAT_OK"), "suppressed");
    clock.town.now = time("00:30") + DAY - MINUTE * 50;
    clock.restart();
    clock.fire();
    assert_eq!(says(&mut clock, "the sky falls"), "repeated");
    assert_eq!(clock.town.now, time("00:00") + DAY, "23 and a half hours later");
    assert_eq!(says(&mut clock, "the sky falls"), "waiting", "a day later it is news again");
    assert_eq!(says(&mut clock, "the sky falls"), "repeated");
    assert_eq!(says(&mut clock, "the earth quakes"), "waiting");
    assert_eq!(says(&mut clock, "the sky falls"), "repeated", "whatever was told in between");
    assert_eq!(clock.outbox().len(), 3);
    assert!(clock.outbox().iter().all(|line| line.starts_with("tg:7 done the ")));
}

#[test]
fn a_heart_that_comes_back_remembers_what_it_has_told() {
    let mut clock = beating("tg");
    assert_eq!(says(&mut clock, "the sky falls"), "waiting");
    keep(&mut clock, &beats(&[], 30));
    keep(&mut clock, &beats(&["claude"], 30));
    assert_eq!(says(&mut clock, "the sky falls"), "repeated");
}

#[test]
fn what_cannot_be_delivered_is_a_letter_and_was_told() {
    let mut clock = beating("tg");
    assert_eq!(says(&mut clock, "the sky falls"), "waiting");
    let parcel = clock.town.store.due_parcels("tg", clock.town.now, 9).expect("it answers").remove(0);
    let later = clock.town.now + SECOND;
    clock.does(|store, stamp| store.not_delivered(&parcel, "busy", Some(later), stamp)).expect("it is recorded");
    assert_eq!(clock.letters(), [""; 0], "it may still arrive");
    clock.does(|store, stamp| store.not_delivered(&parcel, "gone for good", None, stamp)).expect("it is recorded");
    let last = clock.last(NAME);
    assert_eq!(
        (last.delivery.as_deref(), last.delivery_error.as_deref()),
        (Some("mailed"), Some("gone for good, so the mayor got a letter"))
    );
    assert_eq!(
        clock.rows("SELECT subject || ': ' || body FROM mail"),
        ["the heartbeat of claude has something to tell: the sky falls"]
    );
    assert_eq!(says(&mut clock, "the sky falls"), "repeated");
    assert_eq!(clock.outbox().len(), 1);
}

#[test]
fn each_heart_tells_its_own() {
    let mut clock = Clock::new();
    let mut wanted = beats(&["claude", "codex"], 30);
    wanted.beats.iter_mut().for_each(|beat| beat.target = "tg".to_owned());
    keep(&mut clock, &wanted);
    clock.fire_at("00:30");
    for _ in 0..2 {
        clock.run_one("the sky falls");
    }
    assert_eq!(clock.outbox(), ["tg done the sky falls"; 2]);
}

#[test]
fn an_alert_goes_to_the_named_channel_the_last_one_or_nobody() {
    let mut clock = beating("none");
    assert_eq!(says(&mut clock, "the sky falls"), "none");
    let tell = |clock: &mut Clock, target: &str| {
        let told = Beat { target: target.to_owned(), ..beat("claude") };
        keep(clock, &Beats { beats: vec![told], ..beats(&[], 30) });
        says(clock, "the sky falls")
    };
    assert_eq!(tell(&mut clock, "last"), "mailed", "nobody has used any");
    assert_eq!(clock.letters(), ["the heartbeat of claude has something to tell"]);
    clock.town.now += DAY + MINUTE;
    clock.restart();
    clock.fire();
    for (channel, who) in [("tg", "anna"), ("web", "bob")] {
        send(&mut clock, channel, who);
        clock.run_one("hello");
    }
    clock
        .does(|store, stamp| {
            let deliver = Some(to("cron-only", None));
            store.add_jobs(&[gt_store::JobPlan { deliver, ..every("x", 1440) }], stamp)
        })
        .expect("it is fine");
    clock.try_now("x").expect("it is free");
    clock.run_one("yes");
    let n = clock.outbox().len();
    assert_eq!(tell(&mut clock, "last"), "waiting");
    assert_eq!(clock.outbox()[n..], ["web:bob done the sky falls"], "where a person was last");
    assert_eq!(tell(&mut clock, "tg"), "repeated", "wherever it was told");
    clock.town.now += DAY + MINUTE;
    clock.restart();
    clock.fire();
    assert_eq!(tell(&mut clock, "tg:7:8"), "waiting");
    assert_eq!(clock.outbox()[n + 1..], ["tg:7:8 done the sky falls"]);
}

#[test]
fn an_alert_for_a_channel_that_is_not_there_is_a_letter() {
    let mut clock = beating("nosuch:7");
    assert_eq!(says(&mut clock, "the sky falls"), "mailed");
    let why = clock.last(NAME).delivery_error;
    assert_eq!(why.as_deref(), Some("there is no channel `nosuch`, so the mayor got a letter"));
    assert_eq!(says(&mut clock, "the sky falls"), "repeated", "a letter tells it");
    assert_eq!(clock.letters(), ["the heartbeat of claude has something to tell"]);
    assert_eq!(clock.rows("SELECT body FROM mail"), ["the sky falls"]);
    // The channel that was used last may be gone, too.
    send(&mut clock, "gone", "anna");
    clock.run_one("hello");
    keep(&mut clock, &Beats { beats: vec![Beat { target: "last".to_owned(), ..beat("claude") }], ..beats(&[], 30) });
    assert_eq!(says(&mut clock, "the earth quakes"), "mailed");
    let why = clock.last(NAME).delivery_error;
    assert_eq!(why.as_deref(), Some("there is no channel `gone`, so the mayor got a letter"));
    assert_eq!(clock.outbox(), ["gone:anna done hello"]);
}

#[test]
fn an_alert_that_waits_for_a_channel_that_goes_away_is_a_letter() {
    let mut clock = beating("tg");
    assert_eq!(says(&mut clock, "the sky falls"), "waiting");
    send(&mut clock, "tg", "anna");
    clock.run_one("hello");
    let mail = |clock: &mut Clock, channels: &[&str]| {
        clock.does(|store, stamp| store.mail_stranded_alerts(channels, stamp)).expect("it is recorded")
    };
    assert_eq!(mail(&mut clock, &["tg"]), 0, "it may still arrive");
    assert_eq!((mail(&mut clock, &["web"]), mail(&mut clock, &["web"])), (1, 0), "once");
    let last = clock.last(NAME);
    assert_eq!(
        (last.delivery.as_deref(), last.delivery_error.as_deref()),
        (Some("mailed"), Some("there is no channel `tg`, so the mayor got a letter"))
    );
    assert_eq!(
        clock.rows("SELECT subject || ': ' || body FROM mail"),
        ["the heartbeat of claude has something to tell: the sky falls"]
    );
    assert_eq!(says(&mut clock, "the sky falls"), "repeated");
    let waiting = clock.town.store.due_parcels("tg", clock.town.now, 9).expect("it answers");
    assert_eq!(waiting.iter().map(|parcel| parcel.text.as_str()).collect::<Vec<_>>(), ["hello"], "only alerts are");
}

#[test]
fn a_heart_that_fails_tells_nobody_and_stops_itself_after_a_while() {
    let mut clock = beating("tg");
    for n in 1..=5 {
        clock.town.now = time("00:00") + MINUTE * 30 * n;
        clock.fire();
        if n == 3 {
            let run = clock.start_one().run;
            clock.stop(&run, Outcome::TimedOut);
        } else {
            assert_eq!(clock.fail_for_good(), 4);
        }
        assert_eq!(clock.last(NAME).delivery.as_deref(), Some("none"));
    }
    assert_eq!(clock.outbox(), [""; 0]);
    assert_eq!(clock.state(NAME), "disabled it failed 5 times in a row, the last time so: exit code 1");
    assert_eq!(clock.letters(), ["the heartbeat of claude stopped itself"]);
    assert!(clock.rows("SELECT body FROM mail")[0].ends_with("then: gt heartbeat enable claude\n"));
    assert_eq!(clock.rows("SELECT kind FROM notice"), ["job.disabled"]);
    clock.restart();
    keep(&mut clock, &beats(&["claude"], 60));
    assert_eq!(clock.job(NAME).state.as_str(), "disabled", "whatever the config says");
    clock.resume(NAME);
    assert_eq!((clock.job(NAME).state.as_str(), clock.job(NAME).failures), ("active", 0));
}

#[test]
fn a_heartbeat_by_hand_leaves_the_next_one_where_it_is() {
    let mut clock = beating("tg");
    clock.set("00:10");
    assert!(clock.try_now(NAME).expect("it is free").is_manual);
    clock.run_one("the sky falls");
    assert_eq!((clock.state(NAME), clock.outbox().len()), ("active 00:30".to_owned(), 1));
    clock.word = BeatWord::Skip { why: "there is no HEARTBEAT.md".to_owned(), open: None };
    let fire = clock.try_now(NAME).expect("somebody asked");
    assert_eq!((fire.status, fire.error.as_deref()), (FireStatus::Skipped, Some("there is no HEARTBEAT.md")));
}

#[test]
fn what_a_person_asks_for_is_tried_again_at_whatever_hour() {
    let mut clock = beating("tg");
    clock.word = BeatWord::Ask("look".to_owned());
    clock.try_now(NAME).expect("it is free");
    let run = clock.start_one().run;
    clock.fail(&run);
    clock.word = BeatWord::Skip { why: "it is night".to_owned(), open: Some((time("08:00"), time("09:00"))) };
    clock.set("00:01");
    assert_eq!(clock.fire().n_fired, 1);
    assert_eq!(clock.run_one("HEARTBEAT_OK").text, "look");
    assert_eq!((clock.last(NAME).status, clock.last(NAME).attempt), (FireStatus::Ok, 2));
}

#[test]
fn of_two_beats_that_come_together_none_waits_for_one_that_was_left_out() {
    let mut clock = Clock::new();
    keep(&mut clock, &Beats { interval: SECOND * 20, ..beats(&["claude"], 1) });
    clock.word = BeatWord::Skip { why: "there is no HEARTBEAT.md".to_owned(), open: None };
    clock.town.now = time("00:00") + SECOND * 45;
    clock.fire();
    let reasons: Vec<_> = clock.fires(NAME).into_iter().filter_map(|fire| fire.error).collect();
    assert_eq!(reasons, ["there is no HEARTBEAT.md"; 2]);
}

#[test]
fn a_run_that_ends_before_its_start_is_recorded_is_known_by_its_fire() {
    let mut clock = beating("tg");
    clock.fire_at("00:30");
    let turn = clock.claim().remove(0);
    clock.answer(&turn.run, "HEARTBEAT_OK");
    assert_eq!(clock.last(NAME).run, Some(turn.run));
}

#[test]
fn what_did_not_arrive_does_not_undo_what_was_told_since() {
    let mut clock = beating("tg:anna");
    assert_eq!(says(&mut clock, "The disk is full."), "waiting");
    let first = clock.town.store.due_parcels("tg", clock.town.now, 1).expect("it answers").remove(0);
    assert_eq!(says(&mut clock, "The shop is down."), "waiting");
    clock.does(|store, stamp| store.not_delivered(&first, "gone for good", None, stamp)).expect("it is recorded");
    assert_eq!(says(&mut clock, "The shop is down."), "repeated");
}

#[test]
fn a_heartbeat_that_has_waited_beyond_its_hours_is_left_out_unless_a_person_wants_it() {
    let mut clock = beating("tg:anna");
    clock.town.now = clock.job(NAME).next_at.expect("it beats");
    assert_eq!(clock.fire().n_fired, 1);
    let rest = |clock: &mut Clock| clock.does(|store, stamp| store.rest_beats("it is night", stamp)).expect("it does");
    assert_eq!(rest(&mut clock), 1);
    assert_eq!(rest(&mut clock), 0, "nothing is left to do");
    let last = clock.last(NAME);
    assert_eq!((last.status, last.error.as_deref()), (FireStatus::Skipped, Some("it is night")));
    clock.try_now(NAME).expect("it is free");
    assert_eq!(rest(&mut clock), 0);
    clock.run_one("The shop is down.");
    assert_eq!(clock.last(NAME).status, FireStatus::Ok);
}

#[test]
fn an_agent_that_says_nothing_has_not_said_that_all_is_well() {
    let mut clock = beating("tg:anna");
    assert_eq!(says(&mut clock, "  \n"), "suppressed");
    assert_eq!(clock.last(NAME).delivery_error.as_deref(), Some("it said nothing"));
}

#[test]
fn heartbeats_that_are_switched_off_start_nothing_that_waits_or_is_to_be_tried_again() {
    let mut clock = beating("none");
    clock.fire_at("00:30");
    keep(&mut clock, &Beats { is_on: false, ..beats(&["claude"], 30) });
    assert_eq!((clock.log(NAME), clock.claim()), (vec!["00:30 cancelled".to_owned()], Vec::new()));
    assert_eq!(clock.last(NAME).error.as_deref(), Some("heartbeats were switched off"));
    keep(&mut clock, &beats(&["claude"], 30));
    clock.town.now = clock.job(NAME).next_at.expect("it beats");
    clock.fire();
    let run = clock.start_one().run;
    clock.fail(&run);
    keep(&mut clock, &Beats { is_on: false, ..beats(&["claude"], 30) });
    assert_eq!(clock.town.store.next_job_at().expect("it answers"), None);
    assert_eq!(clock.last(NAME).error.as_deref(), Some("exit code 1; heartbeats were switched off"));
}
