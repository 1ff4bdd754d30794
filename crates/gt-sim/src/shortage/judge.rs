//! The promises of guards and of the budget: nothing is claimed while one holds, and what is held says so.
//!
//! Works out from figures, configs and expenses what should hold, in the simplest way, and holds claims, reasons and sleep
//! against it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_core::event::Event;
use gt_store::{Outlook, Scheduled, Store};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{GuardKnobs, Machine};
use crate::knobs::Knobs;
use crate::stage::Stage;

/// How soon a process looks again at a machine that was short of something.
const LOOKS_AGAIN: Duration = Duration::from_secs(5);
/// How long it may take to measure it, twice in a pass.
const MEASURES: Duration = Duration::from_secs(6);
/// How much later than it could something may be noticed.
const OVERSLEPT: SignedDuration = SignedDuration::from_secs(5);

/// The guards of the machine, whatever the budget and the caps say.
const OF_MACHINE: [&str; 3] = ["guard-load", "guard-memory", "guard-disk"];
const BUDGET: &str = "guard-budget";

/// What runs have cost, in millionths of a dollar, and when that was told.
type Expenses = BTreeMap<String, (i64, Timestamp)>;

#[derive(Default)]
pub struct Guards {
    /// As the judge saw them last, and the time before.
    expenses: Expenses,
    before: Expenses,
    /// Runs of turns that are known.
    turns: BTreeSet<String>,
}

impl Guards {
    /// Reads what runs have cost by now; that never becomes less.
    pub fn note(&mut self, store: &mut Store) -> Result<(), String> {
        let stored = store.expenses().map_err(|error| error.to_string())?;
        let in_micros = |dollars: f64| (dollars * 1e6).round() as i64;
        let now: Expenses = stored.into_iter().map(|one| (one.run, (in_micros(one.dollars), one.told_at))).collect();
        self.before = std::mem::replace(&mut self.expenses, now);
        for (run, (before, _)) in &self.before {
            let now = self.expenses.get(run).map(|(cost, _)| *cost);
            if now.is_none_or(|now| now < *before) {
                return Err(format!("{run} had cost {before} millionths of a dollar, and has cost {now:?}"));
            }
        }
        Ok(())
    }

    /// Turns and jobs that were claimed since it was looked last.
    pub fn check_turns(&mut self, store: &mut Store, stage: &Stage, configs: &[&Knobs]) -> Result<(), String> {
        if !stage.world().lock().machine.is_watched {
            return Ok(());
        }
        for run in store.live_runs().map_err(|error| error.to_string())?.iter().filter(|run| run.turn.is_some()) {
            if self.turns.insert(run.id.clone()) {
                self.check_claim(&run.id, run.claimed_at, stage, configs)?;
            }
        }
        Ok(())
    }

    /// A claim, by a process that may have read any of these configs: no guard and no budget was in its way.
    pub fn check_claim(&self, what: &str, at: Timestamp, stage: &Stage, configs: &[&Knobs]) -> Result<(), String> {
        let world = stage.world().lock();
        let moved = &world.machine.moved;
        let readings = || moved.iter().filter_map(|pid| world.machine.readings.get(pid)).flatten();
        let is_clear = |knobs: &&Knobs| {
            readings().any(|reading| knobs.guards.tripped(&reading.figures).is_empty())
                || (readings().next().is_none() && knobs.guards == GuardKnobs::default())
        };
        if !configs.iter().any(is_clear) {
            return Err(format!("{what} was claimed on a machine that is {:?}", readings().last()));
        }
        let begin = day_of(at, &world.machine.zone).0;
        let spent = spent(&self.before, begin).min(spent(&self.expenses, begin));
        let has_left = |knobs: &&Knobs| knobs.guards.budget().is_none_or(|budget| spent < budget);
        if !configs.iter().any(has_left) {
            return Err(format!("{what} was claimed when {spent} millionths of a dollar were spent since {begin}"));
        }
        Ok(())
    }

    /// What is held by a guard says so, and nothing says so that is not.
    pub fn check_reasons(&self, stage: &Stage, outlook: &Outlook) -> Result<(), String> {
        let Some(knobs) = stage.in_force().and_then(|setting| setting.knobs.as_ref()) else { return Ok(()) };
        let tripped = stage.tripped();
        let now = stage.world().now();
        let is_spent = self.is_spent(stage, knobs, now);
        let mut n_live = outlook.n_live;
        for one in &outlook.scheduled {
            for code in OF_MACHINE.into_iter().chain([BUDGET]) {
                let expected = tripped.contains(&code) || (code == BUDGET && is_spent);
                if has(one, code) != expected {
                    return Err(format!(
                        "{} is held by {code}: {}, and that is {expected}: {:?}",
                        one.bead,
                        has(one, code),
                        one.reasons
                    ));
                }
            }
            let most = knobs.agents_guard(one.is_queued);
            let is_full = most.is_some_and(|most| n_live >= most);
            if (has(one, "guard-agents") && !is_full) || (one.starts && is_full) {
                return Err(format!("{} is {:?}, where {n_live} of {most:?} agents run", one.bead, one.reasons));
            }
            n_live += usize::from(one.starts);
        }
        Ok(())
    }

    fn is_spent(&self, stage: &Stage, knobs: &Knobs, now: Timestamp) -> bool {
        let zone = stage.world().lock().machine.zone.clone();
        knobs.guards.budget().is_some_and(|budget| spent(&self.expenses, day_of(now, &zone).0) >= budget)
    }

    /// In the healed world: nobody sleeps past the next look at a guard, nor past the end of a day whose budget is spent.
    pub fn check_sleep(&self, stage: &Stage, outlook: &Outlook, asleep: SignedDuration) -> Result<(), String> {
        let Some(knobs) = stage.in_force().and_then(|setting| setting.knobs.as_ref()) else { return Ok(()) };
        let most = SignedDuration::try_from(LOOKS_AGAIN + MEASURES).unwrap_or(SignedDuration::MAX);
        let is_held = |one: &&Scheduled| {
            !one.reasons.is_empty() && one.reasons.iter().all(|reason| OF_MACHINE.contains(&reason.code))
        };
        if let Some(held) = outlook.scheduled.iter().find(is_held).filter(|_| asleep > most) {
            return Err(format!("{} waits for a guard, and everybody sleeps for {asleep}", held.bead));
        }
        let (now, zone) = (stage.world().now(), stage.world().lock().machine.zone.clone());
        let waits = |one: &Scheduled| one.reasons.iter().any(|reason| reason.code == BUDGET);
        let midnight = day_of(now, &zone).1;
        if self.is_spent(stage, knobs, now)
            && outlook.scheduled.iter().any(waits)
            && asleep > midnight.duration_since(now) + OVERSLEPT
        {
            return Err(format!(
                "the budget is spent until {midnight}, it is {now}, and everybody sleeps for {asleep}"
            ));
        }
        Ok(())
    }

    /// At rest: what agents have told of their cost in the healed world is remembered.
    pub fn check_told(&self, stage: &Stage) -> Result<(), String> {
        let world = stage.world().lock();
        world.machine.priced_in_peace.iter().try_for_each(|run| self.check_price(run, &world.machine))
    }

    /// An end whose process was seen to end: all that it has told before of its cost is known with it.
    pub fn check_end(&self, event: &Event, stage: &Stage) -> Result<(), String> {
        let is_seen =
            ["exit_code", "signal"].iter().any(|key| event.data.get(*key).is_some_and(|code| !code.is_null()));
        match event.run.as_ref().filter(|_| is_seen && event.kind == "run.ended") {
            Some(run) => self.check_price(run, &stage.world().lock().machine),
            None => Ok(()),
        }
    }

    fn check_price(&self, run: &str, machine: &Machine) -> Result<(), String> {
        let told = machine.prices.get(run).copied().unwrap_or(0);
        let known = self.expenses.get(run).map_or(0, |(cost, _)| *cost);
        if known < told {
            return Err(format!("{run} has told {told} millionths of a dollar, and {known} are known"));
        }
        Ok(())
    }
}

impl Stage {
    /// The guards that the machine trips now, under the config in force.
    pub fn tripped(&self) -> Vec<&'static str> {
        let world = self.world().lock();
        let knobs = self.in_force().and_then(|setting| setting.knobs.as_ref()).filter(|_| world.machine.is_watched);
        knobs.map(|knobs| knobs.guards.tripped(&world.machine.at(world.uptime()))).unwrap_or_default()
    }

    /// How long the day still lasts, where the machine is.
    pub fn until_midnight(&self) -> SignedDuration {
        let (now, zone) = (self.world().now(), self.world().lock().machine.zone.clone());
        day_of(now, &zone).1.duration_since(now)
    }

    /// How much longer a change of the machine may go unnoticed.
    pub fn unnoticed_for(&self) -> SignedDuration {
        let world = self.world().lock();
        if !world.machine.is_watched {
            return SignedDuration::ZERO;
        }
        let until = world.machine.changed_at(world.uptime()) + LOOKS_AGAIN + MEASURES;
        SignedDuration::try_from(until.saturating_sub(world.uptime())).unwrap_or(SignedDuration::ZERO)
    }
}

fn has(one: &Scheduled, code: &str) -> bool {
    one.reasons.iter().any(|reason| reason.code == code)
}

fn spent(expenses: &Expenses, since: Timestamp) -> i64 {
    expenses.values().filter(|(_, told_at)| *told_at >= since).map(|(cost, _)| cost).sum()
}

/// When the day of a time began on the wall, and when the next does.
fn day_of(now: Timestamp, zone: &TimeZone) -> (Timestamp, Timestamp) {
    let today = now.to_zoned(zone.clone()).date();
    let begin = |day: jiff::civil::Date| zone.to_zoned(day.at(0, 0, 0, 0)).expect("days begin").timestamp();
    (begin(today), begin(today.tomorrow().expect("there is another day")))
}
