//! What must hold of each heartbeat: when it begins, when it is left out, and what comes of it. (docs/heartbeat.md)

use std::collections::BTreeSet;

use gt_core::heartbeat::prompt;
use gt_core::job::{FireStatus, JobState, Payload};
use gt_store::{Fire, FireFilter, FiresOf, Run, TurnState, beat_of};
use jiff::Timestamp;

use super::AGENTS;
use super::book::{Meaning, Told};
use super::config::{Pulse, TIMEOUT};
use super::judge::{Judge, LATE_MAX};
use super::lists::{List, shown};
use crate::conversations::judge::words;

/// Fires that are read together.
const PAGE: usize = 8;
const GAVE_WAY: &str = "it gave way to a message for its agent";

pub(super) fn said(fire: &Fire) -> String {
    let why = fire.error.as_deref().unwrap_or("-");
    format!("{} of {} ({}, made {}: {why})", fire.slot, fire.job, fire.status.as_str(), fire.made_at)
}

/// Whether people changed its heart just as it came.
fn is_overtaken(fire: &Fire) -> bool {
    let is_changed = fire.error.as_ref().is_some_and(|why| why.starts_with("nobody saw to it before "));
    is_changed && fire.made_at.duration_since(fire.slot) <= LATE_MAX
}

fn agent_of(fire: &Fire) -> &str {
    AGENTS.into_iter().find(|agent| fire.job == beat_of(agent)).unwrap_or_default()
}

impl Judge {
    /// What has become of hearts since the last look.
    pub(super) fn check_fires(&mut self, read_since: usize, now: Timestamp) -> Result<(), String> {
        for id in self.under_way.clone() {
            match self.store.fire(id).map_err(words)? {
                Some(fire) if fire.status == FireStatus::Running => drop(self.fires.insert(id, fire)),
                Some(fire) => {
                    self.under_way.remove(&id);
                    self.check_end(&fire, read_since, now)?;
                    self.fires.insert(id, fire);
                }
                None => return Err(format!("fire {id} was under way, and is gone")),
            }
        }
        for fire in self.new_fires()? {
            match fire.status {
                FireStatus::Running => {
                    self.check_begin(&fire, read_since)?;
                    self.under_way.insert(fire.id);
                }
                FireStatus::Skipped => self.check_skipped(&fire, read_since, now)?,
                FireStatus::Missed if fire.is_manual => return Err(format!("{} was asked for", said(&fire))),
                FireStatus::Missed if self.is_peace && !is_overtaken(&fire) => {
                    return Err(format!("{} came in peace", said(&fire)));
                }
                _ => {}
            }
            self.fires.insert(fire.id, fire);
        }
        Ok(())
    }

    /// Those that are not known, the oldest first.
    fn new_fires(&mut self) -> Result<Vec<Fire>, String> {
        let last = self.fires.keys().next_back().copied().unwrap_or(0);
        let mut limit = PAGE;
        loop {
            let filter = FireFilter { of: FiresOf::Beats, status: None, limit: Some(limit) };
            let mut fires = self.store.fires(&filter).map_err(words)?;
            let is_all = fires.len() < limit || fires.last().is_some_and(|fire| fire.id <= last);
            if is_all {
                fires.retain(|fire| fire.id > last);
                fires.reverse();
                return Ok(fires);
            }
            limit *= 4;
        }
    }

    /// A heart beats in its hours, while its agent is free, and looks after what is in its list.
    fn check_begin(&mut self, fire: &Fire, read_since: usize) -> Result<(), String> {
        let agent = agent_of(fire);
        let refuse = |why: &str| Err(format!("{} began, and {why}", said(fire)));
        {
            let book = self.book.lock();
            let mut pulses = book.pulses.since(read_since);
            if !pulses.any(|pulse| pulse.is_on) {
                return refuse("hearts are switched off");
            }
            let mut pulses = book.pulses.since(read_since);
            if !fire.is_manual && !pulses.any(|pulse| pulse.is_open(fire.made_at)) {
                return refuse("it is outside its active hours");
            }
        }
        if let Some(run) = self.busy_with(agent)? {
            return refuse(&format!("its agent was busy with {run}"));
        }
        self.check_asked(fire, read_since)
    }

    /// What is asked is what its list said when it was looked at.
    fn check_asked(&mut self, fire: &Fire, read_since: usize) -> Result<(), String> {
        let Some(turn) = fire.turn else { return Err(format!("{} asks nothing", said(fire))) };
        let turn = self.store.turn(turn).map_err(words)?.ok_or_else(|| format!("turn {turn} is gone"))?;
        let book = self.book.lock();
        let mut lists = book.lists[agent_of(fire)].since(read_since);
        let is_so = lists.any(|list| matches!(list, List::Full(text) if turn.text == prompt(text)));
        if is_so && turn.session == fire.job {
            return Ok(());
        }
        let last = turn.text.lines().last().unwrap_or_default();
        Err(format!("{} asks for `{last}` in {}, and its list says something else", said(fire), turn.session))
    }

    /// What an agent does right now.
    fn busy_with(&mut self, agent: &str) -> Result<Option<String>, String> {
        let live = self.store.live_runs().map_err(words)?;
        Ok(live.iter().find(|run| run.agent == agent && run.lane.is_some()).map(|run| run.id.clone()))
    }

    /// The reason for which one is left out is so.
    fn check_skipped(&mut self, fire: &Fire, read_since: usize, now: Timestamp) -> Result<(), String> {
        let agent = agent_of(fire);
        let why = fire.error.clone().unwrap_or_default();
        let refuse = |what: &str| Err(format!("{} was left out, and {what}", said(fire)));
        if why == format!("{agent} was busy") {
            return match self.busy_with(agent)? {
                Some(_) => Ok(()),
                None => refuse("its agent is free"),
            };
        }
        let is_begun = self.fires.contains_key(&fire.id);
        if why.starts_with("the run of ") || why.starts_with("the one of ") {
            let is_other = |id: &i64| *id != fire.id && self.fires[id].job == fire.job;
            let is_beside = self.under_way.iter().any(is_other) && !is_begun;
            return if is_beside { Ok(()) } else { refuse("no other one goes on") };
        }
        let book = self.book.lock();
        let mut lists = book.lists[agent].since(read_since);
        if why == format!("there is no {}", shown(agent)) {
            return if lists.any(|list| !list.is_there()) { Ok(()) } else { refuse("the list is there") };
        }
        if why == format!("there is nothing to do in {}", shown(agent)) {
            let is_so = lists.any(|list| matches!(list, List::Empty(_)));
            return if is_so { Ok(()) } else { refuse("there is") };
        }
        drop(lists);
        drop(book);
        self.check_hours(fire, read_since, now)
    }

    /// It was outside of the hours that somebody can have known; then the next one comes within them.
    fn check_hours(&mut self, fire: &Fire, read_since: usize, now: Timestamp) -> Result<(), String> {
        let (why, is_begun) = (fire.error.clone().unwrap_or_default(), self.fires.contains_key(&fire.id));
        let refuse = |what: &str| Err(format!("{} was left out, and {what}", said(fire)));
        let is_late = why.starts_with("its active hours, ") && why.ends_with("were over before it could start");
        let is_reason = why.starts_with("it was outside its active hours, ") || is_late && is_begun;
        if !is_reason {
            return refuse("that is no reason");
        }
        let closed = {
            let book = self.book.lock();
            let was_closed = |pulse: &&Pulse| {
                let is_closed = |at: Timestamp| !pulse.is_open(at);
                is_closed(now) || book.clock.since(read_since).any(is_closed)
            };
            book.pulses.since(read_since).find(was_closed).cloned()
        };
        match closed {
            None => refuse("it was within its hours"),
            Some(_) if fire.is_manual => refuse("somebody had asked for it"),
            Some(_) if is_begun => Ok(()),
            Some(pulse) => self.check_next(fire, &pulse),
        }
    }

    /// After one outside of the hours comes the first within them.
    fn check_next(&mut self, fire: &Fire, pulse: &Pulse) -> Result<(), String> {
        let Some(job) = self.beat(&fire.job)?.filter(|job| job.state == JobState::Active) else { return Ok(()) };
        let Some(next) = job.next_at.filter(|_| pulse == self.book.lock().pulses.last()) else { return Ok(()) };
        let opening = pulse.opening(fire.made_at);
        let is_first = next >= opening && next < opening + pulse.interval && pulse.is_open(next);
        if is_first || self.fires.values().any(|other| other.job == fire.job && other.slot > fire.slot) {
            return Ok(());
        }
        Err(format!("{} was left out until {opening}, and the next one comes at {next}", said(fire)))
    }

    /// Nothing is asked of an agent that is busy, nor by whoever is to rest, and each time is a conversation of its own.
    pub(super) fn check_claims(&mut self, read_since: usize) -> Result<(), String> {
        let live = self.store.live_runs().map_err(words)?;
        let new: Vec<&Run> = live.iter().filter(|run| !self.claimed.contains(&run.id)).collect();
        let before: BTreeSet<String> = self.claimed.clone();
        for run in &new {
            self.claimed.insert(run.id.clone());
            let Some(of) = &run.turn else { return Err(format!("{} answers nothing", run.id)) };
            if of.session != beat_of(&run.agent) {
                self.check_conversation(run, &of.session)?;
                continue;
            }
            let is_earlier = |other: &&Run| before.contains(&other.id) || other.id < run.id;
            let beside = live.iter().filter(|other| other.agent == run.agent && other.id != run.id).find(is_earlier);
            if let Some(beside) = beside {
                return Err(format!(
                    "{}, a heartbeat, was claimed while {} was busy with {}",
                    run.id, run.agent, beside.id
                ));
            }
            if run.resumes.is_some() {
                return Err(format!("{}, a heartbeat, goes on with {:?}", run.id, run.resumes));
            }
            self.check_may_start(run, of.id, read_since)?;
        }
        Ok(())
    }

    /// What people say goes on with what was said there.
    fn check_conversation(&self, run: &Run, session: &str) -> Result<(), String> {
        let Some(resumed) = &run.resumes else { return Ok(()) };
        match self.book.lock().conversations.get(resumed) {
            Some(own) if own == session => Ok(()),
            own => Err(format!("{} of {session} goes on with {resumed}, which is of {own:?}", run.id)),
        }
    }

    /// What has waited starts only in its hours, and only if its heart beats; what a person asks for at any time.
    fn check_may_start(&mut self, run: &Run, turn: i64, read_since: usize) -> Result<(), String> {
        let fires = self.under_way.iter().map(|id| &self.fires[id]);
        let fire = fires.into_iter().find(|fire| fire.turn == Some(turn)).cloned();
        let Some(fire) = fire else { return Ok(()) };
        let is_active = self.beat(&fire.job)?.is_some_and(|job| job.state == JobState::Active);
        if fire.is_manual {
            return Ok(());
        }
        if !is_active {
            return Err(format!("{} was claimed for {}, and its heart rests", run.id, said(&fire)));
        }
        let book = self.book.lock();
        let is_open =
            |pulse: &Pulse| pulse.is_open(run.claimed_at) || book.clock.since(read_since).any(|at| pulse.is_open(at));
        if book.pulses.since(read_since).any(is_open) {
            return Ok(());
        }
        Err(format!("{} was claimed for {}, after its active hours", run.id, said(&fire)))
    }

    /// A heartbeat gives way just if a message wants the place of its agent.
    pub(super) fn check_gave_way(&mut self, read_since: usize) -> Result<(), String> {
        let live = self.store.live_runs().map_err(words)?;
        for run in live.iter() {
            let is_it = run.stop.as_ref().is_some_and(|stop| stop.reason == GAVE_WAY);
            if !is_it || !self.gave_way.insert(run.id.clone()) {
                continue;
            }
            let n_live = live.iter().filter(|other| other.agent == run.agent).count();
            let is_full = |pulse: &Pulse| (1..=n_live).contains(&pulse.places_of(&run.agent));
            if !self.book.lock().pulses.since(read_since).any(is_full) {
                return Err(format!("{} gave way, and {} has a place left", run.id, run.agent));
            }
            let mut is_wanted = false;
            for session in super::SESSIONS {
                let turns = self.store.turns(session, usize::MAX).map_err(words)?;
                is_wanted |= turns
                    .iter()
                    .any(|turn| turn.state == TurnState::Waiting && turn.agent.as_ref() == Some(&run.agent));
            }
            if !is_wanted {
                return Err(format!("{} gave way, and {} is asked nothing", run.id, run.agent));
            }
        }
        Ok(())
    }

    /// A heartbeat is over: what it says is told, or there is a reason why not.
    fn check_end(&mut self, fire: &Fire, read_since: usize, now: Timestamp) -> Result<(), String> {
        match fire.status {
            FireStatus::Skipped => return self.check_skipped(fire, read_since, now),
            FireStatus::Ok => self.check_told(fire, now)?,
            FireStatus::Timeout => self.check_timeout(fire)?,
            _ => {}
        }
        let Some(heart) = self.heart_of(fire)? else { return Ok(()) };
        let mut book = self.book.lock();
        if fire.status == FireStatus::Ok {
            book.failures.remove(&fire.job);
        } else if fire.status.is_failure() && !fire.is_manual {
            let n = book.failures.entry(fire.job.clone()).or_default();
            *n += 1;
            if *n >= self.failures_max && heart.state == JobState::Active {
                return Err(format!("{} has failed {n} times in a row, and goes on", fire.job));
            }
        }
        Ok(())
    }

    /// What used up its time was given it.
    fn check_timeout(&mut self, fire: &Fire) -> Result<(), String> {
        let Some(run) = fire.run.as_ref().map(|run| self.store.run(run)).transpose().map_err(words)?.flatten() else {
            return Err(format!("{} has had no run", said(fire)));
        };
        let lasted = run.ended_at.zip(run.started_at).map(|(end, start)| end.duration_since(start));
        if self.is_peace && lasted.is_some_and(|lasted| lasted < TIMEOUT) {
            return Err(format!("{} has had {lasted:?}", said(fire)));
        }
        Ok(())
    }

    /// All that is well is kept, and the same is not told twice; anything else is told, once.
    fn check_told(&mut self, fire: &Fire, now: Timestamp) -> Result<(), String> {
        let refuse =
            |what: &str| Err(format!("{} {what}: {:?} ({:?})", said(fire), fire.delivery, fire.delivery_error));
        let Some(turn) = fire.turn else { return refuse("is well without a turn") };
        let (delivery, reply) = {
            let book = self.book.lock();
            let reply = fire.run.as_ref().and_then(|run| book.replies.get(run)).cloned();
            (fire.delivery.clone().unwrap_or_default(), reply)
        };
        let Some(reply) = reply.filter(|reply| reply.is_whole) else { return refuse("is well without an answer") };
        let in_outbox = self.store.delivery_of(turn).map_err(words)?.is_some();
        let agent = agent_of(fire);
        let (text, target) = match (&reply.meaning, self.heart_of(fire)?) {
            (Meaning::Nothing, Some(_)) if delivery == "suppressed" && !in_outbox => return Ok(()),
            (Meaning::Nothing, Some(_)) => return refuse(&format!("says {:?}, which is nothing to tell", reply.text)),
            // Whoever has no heart any more has nothing to tell.
            (_, None) if !in_outbox => return Ok(()),
            (_, None) => return refuse("is told, and its heart is gone"),
            (Meaning::Alert(text), Some(job)) => {
                let Payload::Heartbeat(beat) = &job.plan.payload else { return refuse("is no heartbeat") };
                if self.book.lock().was_told(agent, text, now) {
                    return if delivery == "repeated" && !in_outbox {
                        Ok(())
                    } else {
                        refuse("was told within 24 hours")
                    };
                }
                if beat.target == "none" {
                    return if delivery == "none" && !in_outbox { Ok(()) } else { refuse("is for nobody") };
                }
                (text.clone(), beat.target.clone())
            }
        };
        let to = if target == "last" {
            self.book.lock().last_used.clone().map(|(_, channel, to)| (channel, to))
        } else {
            Pulse::named(&target)
        };
        let to = to.filter(|(channel, _)| channel == super::CHANNEL);
        match &to {
            None if delivery == "mailed" && !in_outbox => {}
            Some((_, recipient)) if delivery == "waiting" && in_outbox => {
                self.deliveries.expect(&mut self.store, &fire.job, recipient.as_deref(), turn)?;
            }
            _ => return refuse(&format!("was to be told to {to:?}")),
        }
        self.book.lock().told.push(Told { agent: agent.to_owned(), text, at: now, turn, to });
        Ok(())
    }
}
