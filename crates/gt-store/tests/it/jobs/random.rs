//! Anything that can happen to jobs, in any order, by two who run the town in turns and a clock that jumps: after every step
//! every invariant holds, and in the end each slot of each job that nobody touched has one record. // SPEC K2–K4

use std::collections::BTreeMap;

use gt_core::job::{Missed, Payload, Schedule};
use gt_core::run::Outcome;
use gt_core::session::{Mode, Overflow};
use gt_store::{BeatWord, Beats, Ended, Fault, Findings, Fire, Job, JobPlan, Store, StoreError, Turn};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use crate::desk::{killed, message, started};
use crate::jobs_clock::{Clock, DAY, HOUR, MINUTE, SECOND, beat, cron, every, runs, says};
use crate::jobs_retries::told;
use crate::jobs_slots::are_of_one_slot;
use crate::town::n_cases;
use crate::yard::ended;

#[derive(Debug, Clone)]
enum Step {
    Time {
        seconds: u16,
    },
    /// What a daemon does when that much time has passed.
    Pass {
        seconds: u16,
    },
    /// Somebody sets the clock; a daemon may not notice that it was set forward.
    Jump {
        hours: i16,
        is_noticed: bool,
    },
    Fire,
    Claim,
    Started,
    End {
        run: u8,
        how: How,
    },
    Verb {
        job: u8,
        verb: Verb,
    },
    /// The other daemon's turn.
    Swap,
    Restart,
    Send {
        session: u8,
    },
    Stop {
        job: u8,
    },
    Parcel {
        is_good: bool,
    },
    Beat {
        is_on: bool,
        is_awake: bool,
    },
}

#[derive(Debug, Clone, Copy)]
enum How {
    Answered,
    Failed,
    Killed,
    Lost,
    TimedOut,
    Stopped,
    Refused,
    NotStarted,
    NoAgent,
    NoTown,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Add,
    Pause,
    Resume,
    Remove,
    Now,
    Edit,
    /// Where it speaks, or beside whom it may run.
    Move {
        is_own: bool,
        may_overlap: bool,
    },
    Reschedule {
        minutes: u8,
    },
}

fn how() -> impl Strategy<Value = How> {
    use How::{Answered, Failed, Killed, Lost, NoAgent, NoTown, NotStarted, Refused, Stopped, TimedOut};
    let rare = [Killed, Lost, TimedOut, Stopped, Refused, NotStarted, NoAgent, NoTown];
    prop_oneof![6 => Just(Answered), 4 => Just(Failed), 4 => proptest::sample::select(rare.to_vec())]
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        2 => Just(Verb::Add),
        1 => Just(Verb::Pause),
        1 => Just(Verb::Resume),
        1 => Just(Verb::Remove),
        3 => Just(Verb::Now),
        1 => Just(Verb::Edit),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(is_own, may_overlap)| Verb::Move { is_own, may_overlap }),
        2 => (0..40_u8).prop_map(|minutes| Verb::Reschedule { minutes }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let hours =
        prop_oneof![8 => Just(1_i16), 8 => Just(-1), 2 => Just(26), 2 => Just(-26), 1 => Just(-9000), 1 => Just(9000)];
    prop_oneof![
        3 => (0..400_u16).prop_map(|seconds| Step::Time { seconds }),
        14 => (0..400_u16).prop_map(|seconds| Step::Pass { seconds }),
        2 => (hours, any::<bool>()).prop_map(|(hours, is_noticed)| Step::Jump { hours, is_noticed }),
        3 => Just(Step::Fire),
        3 => Just(Step::Claim),
        2 => Just(Step::Started),
        9 => (any::<u8>(), how()).prop_map(|(run, how)| Step::End { run, how }),
        6 => (0..8_u8, verb()).prop_map(|(job, verb)| Step::Verb { job, verb }),
        2 => Just(Step::Swap),
        1 => Just(Step::Restart),
        1 => (0..2_u8).prop_map(|session| Step::Send { session }),
        1 => (0..10_u8).prop_map(|job| Step::Stop { job }),
        1 => any::<bool>().prop_map(|is_good| Step::Parcel { is_good }),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(is_on, is_awake)| Step::Beat { is_on, is_awake }),
    ]
}

/// Nobody touches these but by running them, so nothing of their slots may be missing.
const STEADY: [&str; 5] = ["five", "berlin", "all", "beside", "dm"];
/// Anybody may do anything to these.
const TOUCHED: [&str; 4] = ["often", "once", "twice", "sling"];

fn steady() -> [JobPlan; 5] {
    [
        cron("five", "*/5 * * * *"),
        JobPlan { tz: "Europe/Berlin".to_owned(), missed: Missed::Skip, ..cron("berlin", "15,45 * * * *") },
        JobPlan { missed: Missed::All, deliver: Some(crate::jobs_clock::to("tg", None)), ..every("all", 17) },
        JobPlan { may_overlap: true, payload: runs("true"), ..every("beside", 11) },
        JobPlan { payload: says("dm", Some("dm:0")), ..every("dm", 13) },
    ]
}

fn touched(name: &str, now: Timestamp) -> JobPlan {
    let once = |name: &str| crate::jobs_clock::job(name, Schedule::At(now + MINUTE * 9));
    match name {
        "once" => once("once"),
        "twice" => JobPlan { may_overlap: true, payload: says("twice", Some("dm:1")), ..once("twice") },
        "sling" => {
            JobPlan { payload: Payload::Sling { words: vec!["gt-1".to_owned()] }, ..cron("sling", "*/7 * * * *") }
        }
        name => every(name, 6),
    }
}

struct Story {
    clock: Clock,
    /// The store as the other daemon has it open, and since when that watches the clock.
    other: (Store, Timestamp),
    began: Timestamp,
    /// The latest time that the clock has shown.
    latest: Timestamp,
    /// The turn of each attempt at a slot of those that nobody touches.
    seen: BTreeMap<(String, Timestamp, i64), i64>,
}

impl Story {
    fn new(began: &str) -> Story {
        let mut clock = Clock::new();
        let began: Timestamp = began.parse().expect("a time");
        (clock.town.now, clock.since) = (began, began);
        clock.try_add(&steady()).expect("they are fine");
        clock.try_add(&TOUCHED.map(|name| touched(name, began))).expect("they are fine");
        let other = (clock.open(), began);
        Story { clock, other, began, latest: began, seen: BTreeMap::new() }
    }

    fn live(&mut self) -> Vec<String> {
        self.clock.town.store.live_runs().expect("it answers").iter().map(|run| run.id.clone()).collect()
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Time { seconds } => self.clock.town.now += SECOND * i32::from(seconds),
            Step::Pass { seconds } => {
                self.clock.town.now += SECOND * i32::from(seconds);
                self.clock.fire();
                let turns = self.clock.start();
                self.note(&turns);
            }
            Step::Jump { hours, is_noticed } => self.jump(HOUR * i32::from(hours), is_noticed),
            Step::Fire => drop(self.clock.fire()),
            Step::Claim => {
                let turns = self.clock.claim();
                self.note(&turns);
            }
            Step::Started => {
                let started = self.live().iter().map(|run| started(run)).collect();
                self.clock.record(&Findings { started, ..Findings::default() });
            }
            Step::End { run, how } => self.end(run, how),
            Step::Verb { job, verb } => self.verb(usize::from(job), verb),
            Step::Swap => {
                std::mem::swap(&mut self.clock.town.store, &mut self.other.0);
                std::mem::swap(&mut self.clock.since, &mut self.other.1);
            }
            Step::Restart => self.clock.restart(),
            Step::Send { session } => {
                let (rules, lanes) = (self.clock.sessions, self.clock.policy.lanes.clone());
                let message = message(&format!("dm:{session}"), "x");
                self.clock.does(|store, stamp| store.send(&[message], &rules, &lanes, stamp)).expect("it answers");
            }
            Step::Stop { job } => {
                let key =
                    names().nth(usize::from(job)).map_or_else(|| "dm:0".to_owned(), |name| format!("cron:{name}"));
                self.clock.does(|store, stamp| store.stop_session(&key, true, stamp)).expect("it answers");
            }
            Step::Parcel { is_good } => self.deliver(is_good),
            Step::Beat { is_on, is_awake } => self.beat(is_on, is_awake),
        }
        self.latest = self.latest.max(self.clock.town.now);
    }

    /// Whoever remembers all that ever started sees no attempt twice, whatever the store has forgotten.
    fn note(&mut self, turns: &[Turn]) {
        for turn in turns {
            let Some(fire) = turn.fire.as_ref().filter(|fire| STEADY.contains(&fire.job.as_str())) else { continue };
            let first = *self.seen.entry((fire.job.clone(), fire.slot, fire.attempt)).or_insert(turn.turn);
            assert_eq!(first, turn.turn, "it fired before: {turn:?}");
        }
    }

    fn jump(&mut self, by: SignedDuration, is_noticed: bool) {
        let clock = &mut self.clock;
        clock.town.now += by;
        if by.is_negative() {
            (clock.since, self.other.1) = (clock.since.min(clock.town.now), self.other.1.min(clock.town.now));
            clock.does(|store, stamp| store.heed_clock(jiff::SignedDuration::ZERO, stamp)).expect("it answers");
        } else if is_noticed {
            (clock.since, self.other.1) = (clock.town.now, clock.town.now);
        }
    }

    fn end(&mut self, run: u8, how: How) {
        let live = self.live();
        let Some(run) = live.get(usize::from(run) % live.len().max(1)) else { return };
        let clock = &mut self.clock;
        match how {
            How::Answered => clock.answer(run, "yes"),
            How::Failed => clock.fail(run),
            How::Killed => clock.end(killed(run)),
            How::Lost => clock.end(Ended { code: None, is_lost: true, ..ended(run) }),
            How::TimedOut => clock.stop(run, Outcome::TimedOut),
            How::Stopped => clock.stop(run, Outcome::Stopped),
            How::Refused => {
                let no = json!({ "type": "result", "is_error": true, "api_error_status": 401, "result": "no" });
                let end = told(clock, run, &no);
                clock.end(end);
            }
            How::NotStarted => clock.fail_start(run, Fault::Bead),
            How::NoAgent => clock.fail_start(run, Fault::Agent),
            How::NoTown => clock.fail_start(run, Fault::Town),
        }
    }

    fn verb(&mut self, at: usize, verb: Verb) {
        if matches!(verb, Verb::Now) {
            let name = names().nth(at).expect("there are so many");
            return is_answered(self.clock.try_now(name).map(drop));
        }
        let (clock, name) = (&mut self.clock, TOUCHED[at % TOUCHED.len()]);
        let now = clock.town.now;
        let (before, peak) = (clock.town.store.job(name).ok(), peak_of(clock, name));
        is_answered(match verb {
            Verb::Add => clock.try_add(&[touched(name, now)]).map(drop),
            Verb::Pause => clock.does(|store, stamp| store.pause_job(name, stamp)).map(drop),
            Verb::Resume => clock.does(|store, stamp| store.resume_job(name, stamp)).map(drop),
            Verb::Remove => clock.does(|store, stamp| store.remove_job(name, stamp)).map(drop),
            Verb::Edit => {
                clock.edit(name, |plan| plan.retries = Some(plan.retries.map_or(1, |n| (n + 1) % 3))).map(drop)
            }
            Verb::Move { is_own, may_overlap } => {
                let payload = says("moved", (!is_own).then_some("dm:1"));
                // Whoever runs beside itself does so until it ends.
                let may_overlap = may_overlap || clock.n_live(name) > 1;
                clock.edit(name, |plan| (plan.payload, plan.may_overlap) = (payload, may_overlap)).map(drop)
            }
            Verb::Reschedule { minutes } if minutes < 20 => {
                let at = Schedule::At(now + MINUTE * i32::from(minutes));
                clock.edit(name, |plan| plan.schedule = at).map(drop)
            }
            Verb::Reschedule { minutes } => {
                clock.edit(name, |plan| plan.schedule = every("", i64::from(minutes - 19)).schedule).map(drop)
            }
            Verb::Now => unreachable!("that is done"),
        });
        if let Some(before) = before {
            self.check_passed_over(&before, peak);
        }
    }

    /// A slot that had come is known of, though its job does not wait for it any more. By a clock that is past the latest time at
    /// which the job was seen to, no slot before that time has come.
    fn check_passed_over(&mut self, before: &Job, peak: Option<Timestamp>) {
        let now = self.clock.town.now;
        let is_over = |slot: Timestamp| peak.is_some_and(|peak| peak <= now && slot <= peak);
        let Some(slot) = before.next_at.filter(|slot| *slot <= now && !is_over(*slot)) else { return };
        if self.clock.town.store.job(&before.id()).is_ok_and(|job| job.next_at == Some(slot)) {
            return;
        }
        let fires = self.clock.fires(&before.id());
        assert!(fires.iter().any(|fire| covers(fire, slot)), "{} {slot} was passed over: {fires:#?}", before.name());
    }

    fn deliver(&mut self, is_good: bool) {
        let clock = &mut self.clock;
        let due = clock.town.store.due_parcels("tg", clock.town.now, 1).expect("it answers");
        for parcel in due {
            let answer = if is_good {
                clock.does(|store, stamp| store.delivered(parcel.id, stamp))
            } else {
                clock.does(|store, stamp| store.not_delivered(&parcel, "gone for good", None, stamp))
            };
            answer.expect("it is recorded");
        }
    }

    fn beat(&mut self, is_on: bool, is_awake: bool) {
        let now = self.clock.town.now;
        let open = Some((now + MINUTE * 40, now + HOUR));
        self.clock.word = if is_awake {
            BeatWord::Ask("look".to_owned())
        } else {
            BeatWord::Skip { why: "too early".to_owned(), open }
        };
        let wanted = Beats { is_on, interval: MINUTE * 10, beats: vec![beat("codex")] };
        self.clock.does(|store, stamp| store.keep_beats(&wanted, stamp)).expect("they are kept");
    }

    /// However it began, all that has fired comes to an end: whoever runs answers, and who waits is tried again.
    fn finish(&mut self) {
        self.clock.town.now = self.latest + HOUR * 4;
        let clock = &mut self.clock;
        clock.policy.lanes = clock.policy.lanes.clone().with([("cron".to_owned(), 500), ("main".to_owned(), 500)]);
        clock.restart();
        // Whoever comes back after a long time sees to it in parts.
        while clock.fire().is_more {}
        clock.word = BeatWord::Skip { why: "it is late".to_owned(), open: None };
        for _ in 0..300 {
            let clock = &mut self.clock;
            let live = clock.town.store.live_runs().expect("it answers");
            let end = |run: &gt_store::Run| Ended { code: Some(0), reply: Some("yes".into()), ..ended(&run.id) };
            let findings = Findings { ended: live.iter().map(end).collect(), ..Findings::default() };
            let turns = clock.advance(&findings).turns;
            if live.is_empty() && turns.is_empty() {
                // Whatever waits is waited for.
                clock.town.now += SECOND * 40;
                clock.fire();
            }
            self.note(&turns);
            if self.clock.rows("SELECT name FROM fire WHERE status = 'running'").is_empty() {
                return;
            }
        }
        panic!("{:?} never ends", self.clock.rows("SELECT name || ' ' || slot FROM fire WHERE status = 'running'"));
    }

    /// What became of everything, by what the schedules say and nothing that the store remembers of it.
    fn judge(&mut self) {
        let twice =
            "SELECT fire || '' FROM turn WHERE fire IS NOT NULL AND outcome = 'done' GROUP BY fire HAVING count(*) > 1";
        assert_eq!(self.clock.rows(twice), [""; 0], "nothing that was done is done again");
        let lost = "SELECT name FROM job WHERE kind = 'at' AND state = 'active' AND next_at IS NULL";
        assert_eq!(self.clock.rows(lost), [""; 0], "who runs once has run, or says why not");
        for plan in steady() {
            let zone = TimeZone::get(&plan.tz).expect("a zone");
            let fires = self.clock.fires(&plan.name);
            let mut at = self.began;
            while let Some(slot) = plan.schedule.next(at, &zone).filter(|slot| *slot <= self.clock.town.now) {
                let found = fires.iter().filter(|fire| covers(fire, slot)).collect::<Vec<_>>();
                assert!(are_of_one_slot(&found), "{} {slot}: {found:#?}", plan.name);
                at = slot;
            }
            let is_a_slot = |fire: &&Fire| match plan.schedule {
                Schedule::Every { span, anchor } => {
                    fire.slot.duration_since(anchor).as_micros() % span.as_micros() == 0
                }
                _ => plan.schedule.next(fire.slot - SECOND, &zone) == Some(fire.slot),
            };
            let strange = fires.iter().filter(|fire| !fire.is_manual).find(|fire| !is_a_slot(fire));
            assert_eq!(strange, None, "{}: that is no slot of it", plan.name);
        }
    }
}

/// The latest time at which a job was seen to.
fn peak_of(clock: &Clock, name: &str) -> Option<Timestamp> {
    let rows = clock.rows(&format!("SELECT CAST(peak_at AS TEXT) FROM job WHERE name = '{name}'"));
    rows.first().map(|at| Timestamp::from_microsecond(at.parse().expect("a number")).expect("a time"))
}

/// Whether a record is of this slot.
fn covers(fire: &Fire, slot: Timestamp) -> bool {
    fire.slot == slot || fire.slot < slot && fire.until.is_some_and(|until| until >= slot)
}

fn names() -> impl Iterator<Item = &'static str> {
    STEADY.into_iter().chain(TOUCHED)
}

/// What people are refused, or what is not there, is an answer.
fn is_answered(answer: Result<(), StoreError>) {
    match answer {
        Ok(()) | Err(StoreError::Refused(_) | StoreError::NoJob { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: n_cases(40), max_shrink_iters: 3000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_each_slot_has_one_record_and_all_that_fires_comes_to_an_end(
        began in prop_oneof![
            Just("2026-01-01T00:00:00Z"),
            Just("2026-03-29T00:20:00Z"), // an hour is left out in Berlin
            Just("2026-10-25T00:20:00Z"), // and one comes twice
        ],
        mode in prop_oneof![3 => Just(Mode::Queue), 1 => Just(Mode::Interrupt)],
        drops_new: bool,
        cap in 1_usize..4,
        lane in 1_usize..4,
        retries in 0_u32..3,
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut story = Story::new(began);
        let clock = &mut story.clock;
        clock.policy.lanes = clock.policy.lanes.clone().with([("cron".to_owned(), lane)]);
        clock.sessions.mode = mode;
        clock.sessions.cap = cap;
        clock.sessions.overflow = if drops_new { Overflow::New } else { Overflow::Old };
        clock.retries = retries;
        clock.failures_max = 0;
        for step in &steps {
            story.take(step);
        }
        story.finish();
        story.judge();
    }
}

/// A case that was drawn once in some hundred: a slot that only a clock set back has brought is not missed.
#[test]
fn a_slot_from_before_its_job_is_not_passed_over() {
    let mut story = Story::new("2026-01-01T00:00:00Z");
    for step in [
        Step::Jump { hours: -26, is_noticed: false },
        Step::Jump { hours: 26, is_noticed: false },
        Step::Verb { job: 0, verb: Verb::Remove },
    ] {
        story.take(&step);
    }
    story.finish();
    story.judge();
}

#[test]
fn a_day_of_failures_ends_with_what_was_given_up() {
    let mut story = Story::new("2026-01-01T00:00:00Z");
    (story.clock.retries, story.clock.failures_max) = (0, 3);
    let end = story.began + DAY;
    while story.clock.town.now < end {
        story.take(&Step::Pass { seconds: 300 });
        story.take(&Step::End { run: 0, how: How::Failed });
    }
    for name in STEADY {
        assert!(story.clock.state(name).starts_with("disabled it failed 3 times in a row"), "{name}");
    }
    assert_eq!(story.clock.letters().len(), STEADY.len() + TOUCHED.len());
}
