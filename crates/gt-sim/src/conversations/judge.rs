//! The judge of a town of sessions: the promises of `docs/sessions.md`, looked at after every commit of any process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_core::lane::{MAIN, SUBAGENT};
use gt_core::plan::Policy;
use gt_core::run::Outcome;
use gt_core::session::TurnOutcome;
use gt_store::{ABOUT_TO_START, Run, Session, Store, StoreError, TurnState, TurnView};
use jiff::{SignedDuration, Timestamp};

use super::book::Shared;
use super::config::{CROWDED, GROUP_TURNS};
use super::deliveries::Deliveries;
use super::queue::{Queue, TURNS_MAX};
use super::{CHANNEL, NESTED, SESSIONS};
use crate::stage::Stage;

/// So often a turn is started whose runs were killed.
const KILLED_MAX: usize = 2;
/// How much later than it could a turn may start.
const LATE_MAX: SignedDuration = SignedDuration::from_secs(1);
/// What is said where more messages may come, before the time until then.
const MORE_MAY_COME: &str = "more messages may come until ";
/// So soon a machine is looked at again that was short of something, however long it takes to measure it.
const GUARD_NOTICED: SignedDuration = SignedDuration::from_secs(11);
const EVENTS_AT_ONCE: usize = 10_000;

pub(super) struct Judge {
    store: Store,
    book: Shared,
    /// The last event that was read.
    seq: i64,
    seen: Option<i64>,
    /// The runs that each turn has had.
    runs_of: BTreeMap<i64, Vec<String>>,
    known: BTreeSet<String>,
    /// How turns have ended.
    ends: BTreeMap<i64, TurnView>,
    n_born: usize,
    born: BTreeSet<String>,
    /// The earliest times at which turns start, as it was said of them while everybody slept.
    promised: BTreeMap<i64, Timestamp>,
    deliveries: Deliveries,
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
pub(crate) fn words(error: StoreError) -> String {
    error.to_string()
}

impl Judge {
    pub(super) fn new(stage: &Stage, book: Shared) -> Judge {
        let store = stage.ground.medium.open().expect("the store is there");
        Judge {
            store,
            book,
            seq: 0,
            seen: None,
            runs_of: BTreeMap::new(),
            known: BTreeSet::new(),
            ends: BTreeMap::new(),
            n_born: 0,
            born: BTreeSet::new(),
            promised: BTreeMap::new(),
            deliveries: Deliveries::default(),
        }
    }

    pub(super) fn n_runs(&self) -> usize {
        self.born.len()
    }

    /// After a commit, before anything else can happen; whoever made it has read the config in or after this step.
    pub(super) fn after_commit(&mut self, read_since: usize) -> Result<(), String> {
        for run in self.store.live_runs().map_err(words)?.iter() {
            if self.known.insert(run.id.clone()) && !is_of_others(run) {
                self.check_claim(run, read_since)?;
            }
        }
        for event in self.store.events(self.seq, EVENTS_AT_ONCE).map_err(words)? {
            self.seq = event.seq;
            if event.kind.as_str() == "turn.ended" {
                let turn = event.data.get("turn").and_then(serde_json::Value::as_i64).unwrap_or_default();
                if self.is_ours(turn)? {
                    self.check_end(turn)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a turn is of a session that is talked to here, and not of a job.
    fn is_ours(&mut self, turn: i64) -> Result<bool, String> {
        let turn = self.store.turn(turn).map_err(words)?;
        Ok(turn.is_none_or(|turn| is_session(&turn.session)))
    }

    /// After every step.
    pub(super) fn look(&mut self, stage: &mut Stage) -> Result<(), String> {
        if let Some(violation) = stage.world().lock().violations.pop() {
            return Err(violation);
        }
        self.check_births(stage)?;
        let posts = std::mem::take(&mut stage.world().lock().posts);
        if !posts.is_empty() {
            self.deliveries.look(&mut self.store, posts)?;
        }
        let version = self.store.outside_commits().map_err(words)?;
        if self.seen.replace(version) == Some(version) {
            return Ok(());
        }
        let step = stage.world().lock().step;
        self.after_commit(step)?;
        let found = self.store.judge(stage.world().now()).map_err(words)?;
        if let Some(complaint) = found.dispatch.first() {
            return Err(complaint.clone());
        }
        self.store.sessions(None).map_err(words)?.iter().try_for_each(check_crowded)
    }

    /// A turn was claimed: it is its time, its place and its agent.
    fn check_claim(&mut self, run: &Run, read_since: usize) -> Result<(), String> {
        let Some(of) = &run.turn else { return Err(format!("{} answers nothing", run.id)) };
        let turn = self.store.turn(of.id).map_err(words)?.ok_or_else(|| format!("turn {} is gone", of.id))?;
        let session = self.store.session(&turn.session).map_err(words)?.ok_or("its session is gone")?;
        let siblings = self.store.turns(&turn.session, TURNS_MAX).map_err(words)?;
        let refuse = |why: String| Err(format!("turn {} of {} was claimed {why}", turn.id, turn.session));
        if let Some(first) = siblings.iter().find(|other| other.id < turn.id && other.state == TurnState::Waiting) {
            return refuse(format!("before turn {}", first.id));
        }
        if run.claimed_at < turn.due_at {
            return refuse(format!("at {}, and is due at {}", run.claimed_at, turn.due_at));
        }
        if let Some(at) = self.promised.get(&turn.id).filter(|at| run.claimed_at < **at) {
            return refuse(format!("at {}, and was said to wait until {at}", run.claimed_at));
        }
        let live: Vec<&TurnView> = siblings.iter().filter(|other| other.state == TurnState::Live).collect();
        let is_crowded = session.tokens.is_some_and(|tokens| tokens >= CROWDED);
        let most = if turn.session.starts_with("group:") && !is_crowded { GROUP_TURNS } else { 1 };
        if live.len() > most {
            return refuse(format!("as number {} at once, where {most} may run", live.len()));
        }
        self.check_beside(run, &live)?;
        let agent = turn.agent.clone().or(session.wishes.agent).unwrap_or_else(|| "ada".to_owned());
        if run.agent != agent {
            return refuse(format!("for {}, and {agent} was asked", run.agent));
        }
        self.check_runs_before(run, &turn)?;
        self.check_lane(run, read_since)
    }

    /// Beside others of its session it begins a conversation of its own, and not before what it took the place of has ended.
    fn check_beside(&mut self, run: &Run, live: &[&TurnView]) -> Result<(), String> {
        for other in live.iter().filter_map(|turn| turn.run.as_ref()).filter(|other| **other != run.id) {
            if self.book.lock().interrupted.contains(other) {
                return Err(format!("{} was claimed before {other} had ended, which gives way to it", run.id));
            }
            let other = self.store.run(other).map_err(words)?;
            if run.resumes.is_some() && other.is_some_and(|other| other.resumes == run.resumes) {
                return Err(format!("{} goes on with a conversation that another run goes on with", run.id));
            }
        }
        Ok(())
    }

    /// A message is answered once: it is asked again only if the run before was killed, could not begin, or met a limit.
    fn check_runs_before(&mut self, run: &Run, turn: &TurnView) -> Result<(), String> {
        let n_killed = self.n_killed(turn.id)?;
        let before = self.runs_of.entry(turn.id).or_default();
        for other in before.iter() {
            let view = self.store.run(other).map_err(words)?;
            let outcome = view.and_then(|view| view.outcome);
            let may_follow = matches!(
                outcome,
                Some(Outcome::Died | Outcome::Lost | Outcome::NotStarted | Outcome::RateLimited | Outcome::AgentUnable)
            );
            if !may_follow {
                return Err(format!("turn {} is asked again as {}, and {other} is {outcome:?}", turn.id, run.id));
            }
            if self.book.lock().stopped.contains(other) {
                return Err(format!("turn {} is asked again as {}, and {other} was stopped", turn.id, run.id));
            }
            if self.book.lock().answers.get(other).is_some_and(|answer| answer.is_whole) {
                return Err(format!("turn {} is asked again as {}, and {other} has answered", turn.id, run.id));
            }
        }
        if n_killed >= KILLED_MAX {
            return Err(format!("turn {} is asked again as {} after {n_killed} runs were killed", turn.id, run.id));
        }
        before.push(run.id.clone());
        Ok(())
    }

    /// No lane is above its limit. Those whom a run asks may have its place, so of them only the lanes' own count is known.
    fn check_lane(&mut self, run: &Run, read_since: usize) -> Result<(), String> {
        let [main, subagent] = self.book.lock().lanes_since(read_since);
        let live = self.store.live_runs().map_err(words)?;
        let is_apart = |run: &&Run| run.turn.as_ref().is_some_and(|of| !NESTED.contains(&of.session.as_str()));
        let limit = match run.lane.as_deref() {
            Some(SUBAGENT) => subagent,
            Some(MAIN) => main,
            other => return Err(format!("{} counts in the lane {other:?}", run.id)),
        };
        let n = live.iter().filter(|other| other.lane == run.lane).filter(is_apart).count();
        if is_apart(&run) && n > limit {
            return Err(format!(
                "{} was claimed as number {n} in the lane {:?}, whose limit is {limit}",
                run.id, run.lane
            ));
        }
        Ok(())
    }

    /// How many runs of a turn were killed.
    fn n_killed(&mut self, turn: i64) -> Result<usize, String> {
        let mut n_killed = 0;
        for run in self.runs_of.get(&turn).into_iter().flatten() {
            let outcome = self.store.run(run).map_err(words)?.and_then(|run| run.outcome);
            n_killed += usize::from(matches!(outcome, Some(Outcome::Died | Outcome::Lost)));
        }
        Ok(n_killed)
    }

    /// A turn is over, once, and for a reason that there was.
    fn check_end(&mut self, id: i64) -> Result<(), String> {
        let turn = self.store.turn(id).map_err(words)?.ok_or_else(|| format!("turn {id} ended, and is gone"))?;
        if self.ends.contains_key(&id) {
            return Err(format!("turn {id} ended twice"));
        }
        let n_killed = self.n_killed(id)?;
        let book = self.book.lock();
        if let Some(texts) = book.texts.get(&id)
            && texts.join("\n") != turn.text
        {
            return Err(format!("turn {id} asks `{}`, and was sent {texts:?}", turn.text));
        }
        let run = turn.run.as_ref();
        let answer = run.and_then(|run| book.answers.get(run));
        let is_stopped = run.is_some_and(|run| book.stopped.contains(run));
        let refuse = |why: &str| Err(format!("turn {id} of {} is {:?} {why}: {turn:?}", turn.session, turn.outcome));
        match turn.outcome {
            Some(TurnOutcome::Done) => {
                let (said, text) =
                    (turn.reply.as_deref().unwrap_or_default(), answer.map_or("", |answer| &answer.text));
                if !said.starts_with(text) || answer.is_none() && !said.is_empty() {
                    return refuse(&format!("with another answer than `{text}`"));
                }
                if is_stopped {
                    return refuse("though it was stopped");
                }
            }
            Some(TurnOutcome::Failed) => {
                if is_stopped {
                    return refuse("though it was stopped");
                }
                let order = run.map(|run| self.store.run(run)).transpose().map_err(words)?.flatten();
                let outcome = order.and_then(|run| run.outcome);
                let is_late = outcome == Some(Outcome::TimedOut);
                if matches!(outcome, Some(Outcome::RateLimited | Outcome::AgentUnable)) {
                    return refuse("though its agent only met a limit");
                }
                if matches!(outcome, Some(Outcome::Died | Outcome::Lost)) && n_killed < KILLED_MAX {
                    return refuse("though a run was killed for the first time");
                }
                if answer.is_some_and(|answer| answer.is_whole) && !is_late {
                    return refuse("though it was answered");
                }
            }
            Some(TurnOutcome::Cancelled) => {
                let is_wanted = is_stopped || book.cancelled.contains(&id);
                let is_abandoned = match &turn.parent {
                    Some(parent) => {
                        let parent = self.store.run(parent).map_err(words)?;
                        parent.is_none_or(|parent| !parent.is_live() || parent.stop.is_some())
                    }
                    None => false,
                };
                if !is_wanted && !is_abandoned {
                    return refuse("and it was not stopped");
                }
            }
            Some(TurnOutcome::Dropped) if book.dropped.contains(&id) => {}
            _ => return refuse("for no reason"),
        }
        let is_delivered = book.delivered.contains(&id);
        drop(book);
        if is_delivered {
            self.deliveries.expect(&mut self.store, &turn.session, None, id)?;
        }
        self.ends.insert(id, turn);
        Ok(())
    }

    /// Nothing is started twice, nor before it is claimed; and an agent is asked what was sent.
    fn check_births(&mut self, stage: &Stage) -> Result<(), String> {
        let started = stage.ground.runtime.started();
        for run in started.iter().skip(self.n_born) {
            if !self.born.insert(run.clone()) {
                return Err(format!("{run} was started twice"));
            }
            let Some(launch) = stage.ground.runtime.launch(run) else { continue };
            let view = self.store.run(run).map_err(words)?.ok_or_else(|| format!("{run} is of no turn"))?;
            if is_of_others(&view) {
                continue;
            }
            let turn = view.turn.map(|of| self.store.turn(of.id)).transpose().map_err(words)?.flatten();
            if turn.is_some_and(|turn| launch.stdin != Some(turn.text)) {
                return Err(format!("{run} is asked `{:?}`, and that was not sent", launch.stdin));
            }
        }
        self.n_born = started.len();
        Ok(())
    }

    /// Before everybody sleeps: nothing that could start waits, and what is said of all that waits is right.
    pub(super) fn check_no_stall(&mut self, stage: &Stage) -> Result<(), String> {
        if !stage.ready_strands().is_empty() {
            return Ok(());
        }
        let (now, uptime) = (stage.world().now(), stage.world().lock().uptime());
        let asleep = stage.next_wake().map_or(Duration::MAX, |wake| wake.saturating_sub(uptime));
        let sleeps = SignedDuration::try_from(asleep).unwrap_or(SignedDuration::MAX);
        let policy = stage.settings_in_force().policy(stage.ground.town.root());
        if let Some(at) = self.store.next_parcel_of(CHANNEL).map_err(words)?
            && sleeps > at.max(now).duration_since(now) + LATE_MAX
        {
            return Err(format!("an answer is to be delivered at {at}, it is {now}, and everybody sleeps"));
        }
        let unnoticed = stage.unnoticed_for();
        for session in SESSIONS.iter().chain(&NESTED) {
            let queue = Queue::look(&mut self.store, session).map_err(words)?;
            for turn in queue.waiting() {
                let why = self.store.why_waiting(turn.id, &policy, now).map_err(words)?.unwrap_or_default();
                if (why == ABOUT_TO_START && sleeps > unnoticed) || why.is_empty() {
                    return Err(format!("turn {} of {session} could start ({why}), and everybody sleeps", turn.id));
                }
                let is_next = queue.waiting().next().is_some_and(|first| first.id == turn.id);
                if let Some(until) = why.strip_prefix(MORE_MAY_COME) {
                    let at: Timestamp = until.parse().map_err(|_| format!("`{why}` names no time"))?;
                    self.promised.insert(turn.id, at);
                    if is_next && sleeps > at.max(now).duration_since(now) + LATE_MAX {
                        return Err(format!("turn {} is due at {at}, it is {now}, and everybody sleeps", turn.id));
                    }
                }
                // A machine that is short of something as well is no reason to look at it.
                let bare = Policy { guards: Vec::new(), ..policy.clone() };
                let other = self.store.why_waiting(turn.id, &bare, now).map_err(words)?.unwrap_or_default();
                if why == other || other == ABOUT_TO_START {
                    check_held(&why, sleeps, stage)?;
                }
                let is_behind = !is_next || queue.live().count() >= most_at_once(&queue);
                let is_said = why.contains("of its session");
                let is_of_turn = why.starts_with(MORE_MAY_COME) || why.starts_with("the lane");
                if is_said && !is_behind || is_of_turn && is_behind {
                    return Err(format!("turn {} of {session} waits, and it is said: {why}", turn.id));
                }
            }
        }
        Ok(())
    }

    /// Whether something waits or runs.
    pub(super) fn is_anything_to_come(&mut self) -> Result<bool, String> {
        let is_due = self.store.next_parcel_of(CHANNEL).map_err(words)?.is_some();
        let mut sessions = self.store.sessions(None).map_err(words)?.into_iter();
        Ok(is_due || sessions.any(|session| session.n_waiting + session.n_live > 0))
    }

    /// Everything that was acknowledged has come to its end, and what was sent at last is answered.
    pub(super) fn conclude(&mut self) -> Result<(), String> {
        let book = self.book.lock();
        for turn in book.texts.keys() {
            if !self.ends.contains_key(turn) {
                return Err(format!("turn {turn} was acknowledged, and has not ended"));
            }
        }
        for turn in &book.must_be_done {
            let end = self.ends.get(turn);
            if end.is_none_or(|end| end.outcome != Some(TurnOutcome::Done)) {
                return Err(format!("turn {turn} was to be answered, and is {end:?}"));
            }
        }
        self.deliveries.conclude(&mut self.store)
    }
}

fn is_session(key: &str) -> bool {
    SESSIONS.contains(&key) || NESTED.contains(&key)
}

/// Whether a run works on a bead, or is a job's.
fn is_of_others(run: &Run) -> bool {
    match &run.turn {
        Some(of) => !is_session(&of.session),
        None => !run.bead.is_empty(),
    }
}

/// What waits for a guard of the machine, or for another day, is not slept over.
fn check_held(why: &str, sleeps: SignedDuration, stage: &Stage) -> Result<(), String> {
    let most = match () {
        () if why.starts_with("the load is") || why.contains("are free, less than") => GUARD_NOTICED,
        () if why.contains("`budget.daily`") => stage.until_midnight() + LATE_MAX,
        () => return Ok(()),
    };
    if sleeps <= most {
        return Ok(());
    }
    Err(format!("a turn waits, since {why}, and everybody sleeps for {sleeps:#}"))
}

fn most_at_once(queue: &Queue) -> usize {
    queue.session.as_ref().map_or(1, |session| {
        let is_crowded = session.tokens.is_some_and(|tokens| tokens >= CROWDED);
        if session.key.starts_with("group:") && !is_crowded { GROUP_TURNS } else { 1 }
    })
}

/// A conversation that fills its window is known to.
fn check_crowded(session: &Session) -> Result<(), String> {
    let is_so = session.tokens.is_some_and(|tokens| tokens >= CROWDED);
    if session.is_crowded == is_so {
        return Ok(());
    }
    Err(format!("{} has {:?} tokens, and counts as crowded: {}", session.key, session.tokens, session.is_crowded))
}
