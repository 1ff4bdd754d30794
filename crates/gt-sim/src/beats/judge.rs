//! The judge of a town of heartbeats: when it looks, what it remembers, and what must hold while everybody sleeps and in the end.
//! What must hold of each heartbeat is in `check`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_core::job::{JobState, Payload};
use gt_store::{Fire, FireFilter, FiresOf, Job, MAYOR, Store, TurnState, beat_of};
use jiff::{SignedDuration, Timestamp};

use super::book::{Shared, Told};
use super::{AGENTS, CHANNEL, SESSIONS, SLOW};
use crate::conversations::deliveries::Deliveries;
use crate::conversations::judge::words;
use crate::couriers::Posting;
use crate::stage::Stage;

/// How much later than it could something may happen.
pub(super) const LATE_MAX: SignedDuration = SignedDuration::from_secs(1);
const EVENTS_AT_ONCE: usize = 10_000;
const TURNS_MAX: usize = 10_000;

pub(super) struct Judge {
    pub(super) store: Store,
    pub(super) book: Shared,
    pub(super) failures_max: i64,
    /// The latest that the clock has ever shown.
    pub(super) latest: Timestamp,
    pub(super) is_peace: bool,
    seq: i64,
    seen: Option<i64>,
    /// Fires of hearts as they were known last.
    pub(super) fires: BTreeMap<i64, Fire>,
    /// Those of them that are not over.
    pub(super) under_way: BTreeSet<i64>,
    /// Runs that are known to have been claimed.
    pub(super) claimed: BTreeSet<String>,
    /// Runs that are known to have given way.
    pub(super) gave_way: BTreeSet<String>,
    /// When each heart was to beat next, in peace.
    next: BTreeMap<String, Timestamp>,
    /// How often hearts have stopped themselves.
    n_stopped: BTreeMap<String, usize>,
    pub(super) deliveries: Deliveries,
}

impl Judge {
    pub(super) fn new(stage: &Stage, book: Shared, failures_max: i64) -> Judge {
        Judge {
            store: stage.ground.medium.open().expect("the store is there"),
            book,
            failures_max,
            latest: stage.world().now(),
            is_peace: false,
            seq: 0,
            seen: None,
            fires: BTreeMap::new(),
            under_way: BTreeSet::new(),
            claimed: BTreeSet::new(),
            gave_way: BTreeSet::new(),
            next: BTreeMap::new(),
            n_stopped: BTreeMap::new(),
            deliveries: Deliveries::default(),
        }
    }

    pub(super) fn n_fires(&self) -> usize {
        self.fires.len()
    }

    /// After a commit, before anything else can happen; whoever made it has looked at the town in or after this step.
    pub(super) fn after_commit(&mut self, read_since: usize, step: usize, now: Timestamp) -> Result<(), String> {
        self.book.lock().clock.note(step, now);
        self.check_claims(read_since)?;
        self.check_fires(read_since, now)?;
        self.check_gave_way(read_since)?;
        if self.is_peace {
            self.check_recorded(now)?;
        }
        for event in self.store.events(self.seq, EVENTS_AT_ONCE).map_err(words)? {
            self.seq = event.seq;
            let text = |key: &str| event.data.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
            let job = text("job").to_owned();
            match event.kind.as_str() {
                "job.disabled" => {
                    let n = self.book.lock().failures.remove(&job).unwrap_or(0);
                    if n < self.failures_max {
                        return Err(format!("{job} stopped itself after {n} of {} failures", self.failures_max));
                    }
                    *self.n_stopped.entry(job).or_default() += 1;
                    self.check_letters()?;
                }
                "job.removed" => {
                    let mut book = self.book.lock();
                    book.failures.remove(&job);
                    book.stopped.remove(&job);
                }
                _ => {}
            }
        }
        self.check_stopped()
    }

    /// Whom a person has stopped by name rests until a person says otherwise.
    fn check_stopped(&mut self) -> Result<(), String> {
        let stopped = self.book.lock().stopped.clone();
        for job in stopped {
            if self.beat(&job)?.is_some_and(|job| job.state == JobState::Active) {
                return Err(format!("{job} beats, and a person has stopped it"));
            }
        }
        Ok(())
    }

    /// Whatever becomes of a time that has come, it is recorded.
    fn check_recorded(&mut self, now: Timestamp) -> Result<(), String> {
        let beats = self.store.beats().map_err(words)?;
        let next = |job: &Job| Some((job.name().to_owned(), job.next_at?));
        let next: BTreeMap<String, Timestamp> = beats.iter().filter_map(next).collect();
        for (job, at) in std::mem::replace(&mut self.next, next) {
            let is_over = at <= now && self.next.get(&job) != Some(&at);
            let covers = |fire: &&Fire| fire.job == job && fire.slot <= at && fire.until.unwrap_or(fire.slot) >= at;
            if is_over && !self.fires.values().any(|fire| covers(&fire)) {
                return Err(format!("{at} of {job} has come, and has no record"));
            }
        }
        Ok(())
    }

    /// After every step.
    pub(super) fn look(&mut self, stage: &mut Stage) -> Result<(), String> {
        if let Some(violation) = stage.world().lock().violations.pop() {
            return Err(violation);
        }
        let (now, step) = (stage.world().now(), stage.world().lock().step);
        self.latest = self.latest.max(now);
        self.book.lock().clock.note(step, now);
        let posts = std::mem::take(&mut stage.world().lock().posts);
        if !posts.is_empty() {
            self.check_posts(&posts)?;
            self.deliveries.look(&mut self.store, posts)?;
        }
        let version = self.store.outside_commits().map_err(words)?;
        if self.seen.replace(version) == Some(version) {
            return Ok(());
        }
        self.after_commit(step, step, now)?;
        let found = self.store.judge(now).map_err(words)?;
        found.dispatch.first().map_or(Ok(()), |complaint| Err(complaint.clone()))
    }

    /// Of a heart nothing is posted but the alert that its turn came to, to whom it is to be told.
    fn check_posts(&self, posts: &[Posting]) -> Result<(), String> {
        let book = self.book.lock();
        for post in posts.iter().filter(|post| post.session.starts_with(&beat_of(""))) {
            let told = book.told.iter().find(|told| format!("turn-{}", told.turn) == post.key);
            let is_so = told
                .is_some_and(|told| told.text == post.text && told.to.as_ref().is_some_and(|(_, to)| *to == post.to));
            if !is_so {
                return Err(format!("{post:?} was posted, and {told:?} was to be told"));
            }
        }
        Ok(())
    }

    pub(super) fn beat(&mut self, name: &str) -> Result<Option<Job>, String> {
        Ok(self.store.beats().map_err(words)?.into_iter().find(|job| job.name() == name))
    }

    /// The heart that a fire is of, unless it is gone.
    pub(super) fn heart_of(&mut self, fire: &Fire) -> Result<Option<Job>, String> {
        Ok(self.beat(&fire.job)?.filter(|job| job.id() == fire.job_id()))
    }

    /// Each heart that has stopped itself has told so, as often as it did.
    fn check_letters(&mut self) -> Result<(), String> {
        let letters = self.store.inbox(MAYOR, true, usize::MAX).map_err(words)?.letters;
        for (job, n) in &self.n_stopped {
            let agent = job.strip_prefix(&beat_of("")).unwrap_or(job);
            let subject = format!("the heartbeat of {agent} stopped itself");
            let n_told = letters.iter().filter(|letter| letter.subject == subject).count();
            if n_told != *n {
                return Err(format!("{job} has stopped itself {n} times, and told so {n_told} times"));
            }
        }
        Ok(())
    }

    /// Before everybody sleeps: nothing that is due is slept over, and hearts beat that are to.
    pub(super) fn check_no_stall(&mut self, stage: &mut Stage) -> Result<(), String> {
        if !stage.ready_strands().is_empty() {
            return Ok(());
        }
        let (now, uptime) = (stage.world().now(), stage.world().lock().uptime());
        let asleep = stage.next_wake().map_or(Duration::MAX, |wake| wake.saturating_sub(uptime));
        let sleeps = SignedDuration::try_from(asleep).unwrap_or(SignedDuration::MAX);
        let due = [self.store.next_job_at(), self.store.next_parcel_of(CHANNEL)];
        for at in due.into_iter().collect::<Result<Vec<_>, _>>().map_err(words)?.into_iter().flatten() {
            if sleeps > at.max(now).duration_since(now) + LATE_MAX {
                return Err(format!("something is due at {at}, it is {now}, and everybody sleeps for {asleep:?}"));
            }
        }
        if self.is_peace {
            self.check_hearts(now)?;
            // Who keeps a distance between starts looks again a second later.
            if sleeps > LATE_MAX * 2 {
                self.check_places(stage)?;
            }
        }
        Ok(())
    }

    /// Each list that is there is looked after as the config says, in time.
    fn check_hearts(&mut self, now: Timestamp) -> Result<(), String> {
        let pulse = self.book.lock().pulses.last().clone();
        for agent in AGENTS {
            let is_there = self.book.lock().list(agent).last().is_there();
            let job = self.beat(&beat_of(agent))?;
            // Of the town's own list the daemon hears at once, of the others with its next patrol.
            if job.is_none() && is_there && pulse.is_on && agent == AGENTS[0] {
                return Err(format!("the list of {agent} is there, and its heart does not beat"));
            }
            let Some(job) = job else { continue };
            let Payload::Heartbeat(beat) = &job.plan.payload else { return Err(format!("{job:?} is no heartbeat")) };
            if beat.target != pulse.target {
                return Err(format!("{agent} tells {}, and is to tell {}", beat.target, pulse.target));
            }
            match (job.state, job.next_at) {
                (JobState::Active, _) if !pulse.is_on => {
                    return Err(format!("hearts are switched off, and that of {agent} beats"));
                }
                (JobState::Active, Some(at)) if at > pulse.opening(now) + pulse.interval => {
                    return Err(format!("it is {now}, and the heart of {agent} waits until {at}: {pulse:?}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// No heartbeat keeps a place that a message waits for.
    fn check_places(&mut self, stage: &mut Stage) -> Result<(), String> {
        if self.store.scheduler_state(stage.world().now()).map_err(words)?.pause.is_some() {
            return Ok(());
        }
        let live = self.store.live_runs().map_err(words)?;
        for session in SESSIONS {
            for turn in self.store.turns(session, TURNS_MAX).map_err(words)? {
                let agent = turn.agent.as_deref().filter(|_| turn.state == TurnState::Waiting).unwrap_or_default();
                let places = self.book.lock().pulses.last().places_of(agent);
                let own: Vec<_> = live.iter().filter(|run| run.agent == agent).collect();
                let is_beat = |run: &gt_store::Run| {
                    run.turn.as_ref().is_some_and(|turn| turn.session == beat_of(agent)) && run.stop.is_none()
                };
                if places > 0 && own.len() >= places && own.iter().any(|run| is_beat(run)) {
                    let runs: Vec<&str> = own.iter().map(|run| run.id.as_str()).collect();
                    return Err(format!("turn {} of {session} waits for the place of a heartbeat: {runs:?}", turn.id));
                }
            }
        }
        Ok(())
    }

    /// In the end: what was to be told was told, once, what was told in the last day, too; and no session is another's.
    pub(super) fn conclude(&mut self, stage: &mut Stage) -> Result<(), String> {
        self.check_sessions()?;
        self.check_letters()?;
        self.check_alerts()?;
        self.check_daily(stage.world().now())?;
        self.deliveries.conclude(&mut self.store)
    }

    /// Nothing was said in a session but what people said.
    fn check_sessions(&mut self) -> Result<(), String> {
        for session in SESSIONS {
            for turn in self.store.turns(session, TURNS_MAX).map_err(words)? {
                if !turn.text.lines().all(|line| self.book.lock().said.contains(line)) {
                    return Err(format!("in {session} nobody has said `{}`", turn.text));
                }
            }
        }
        Ok(())
    }

    /// Each alert that could not be told by a channel is a letter, and no other is.
    fn check_alerts(&mut self) -> Result<(), String> {
        let mut expected: Vec<(String, String)> = Vec::new();
        let told: Vec<Told> = self.book.lock().told.clone();
        for told in told {
            let state = self.store.delivery_of(told.turn).map_err(words)?.map(|(state, _)| state);
            let is_mailed = match (&told.to, state.as_deref()) {
                (None, None) | (Some(_), Some("failed")) => true,
                (Some(_), Some("delivered" | "waiting")) => false,
                (_, state) => return Err(format!("{told:?} is {state:?}")),
            };
            expected.extend(is_mailed.then_some((told.agent, told.text)));
        }
        let letters = self.store.inbox(MAYOR, true, usize::MAX).map_err(words)?.letters;
        let mut found: Vec<(String, String)> = letters
            .into_iter()
            .filter_map(|letter| {
                let agent = letter.subject.strip_prefix("the heartbeat of ")?.strip_suffix(" has something to tell")?;
                Some((agent.to_owned(), letter.body))
            })
            .collect();
        expected.sort();
        found.sort();
        if expected == found {
            Ok(())
        } else {
            Err(format!("these alerts were to be letters: {expected:?}, and are: {found:?}"))
        }
    }

    /// What each heart says every few hours is told, and a day later again.
    fn check_daily(&mut self, now: Timestamp) -> Result<(), String> {
        for agent in AGENTS {
            let fires =
                self.store.fires(&FireFilter { of: FiresOf::One(beat_of(agent)), status: None, limit: Some(4) });
            let n_late = fires.map_err(words)?.iter().filter(|fire| fire.made_at > now - SLOW * 2).count();
            let book = self.book.lock();
            let daily = book.told.iter().filter(|told| told.agent == agent && told.text == super::answers::DAILY);
            if n_late == 0 || daily.count() < 2 {
                return Err(format!("{agent} has had the same to tell for a day, and told it only once"));
            }
        }
        Ok(())
    }
}
