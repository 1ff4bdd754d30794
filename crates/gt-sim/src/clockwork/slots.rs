//! What must have become of the slots of a job that nobody touched: by its schedule and its rules alone.

use std::collections::BTreeMap;

use gt_core::job::{CATCH_UP_MAX, FireStatus, Missed, Schedule};
use gt_store::{Fire, JobPlan};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How much later than it could a slot may fire.
pub(super) const LATE_MAX: SignedDuration = SignedDuration::from_secs(1);
/// How late a missed slot may run of a job that does not say.
const GRACE: SignedDuration = SignedDuration::from_hours(1);

/// A time in peace that nobody watched: it was passed over by a clock that was set forward, or nobody ran the town.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// How many slots of each job were under way then.
    pub(super) under_way: BTreeMap<String, usize>,
}

/// What is known of the time in which slots came.
pub(super) struct Times<'a> {
    pub(super) began: Timestamp,
    pub(super) until: Timestamp,
    /// Since when all is well.
    pub(super) healed: Timestamp,
    pub(super) gaps: &'a [Gap],
}

/// A job with all that became of its slots, in the order in which it was written down.
pub(super) struct History<'a> {
    plan: &'a JobPlan,
    fires: Vec<Fire>,
    zone: TimeZone,
}

pub(super) fn said(fire: &Fire) -> String {
    let why = fire.error.as_deref().unwrap_or("-");
    format!("{} of {} ({}, made {}: {why})", fire.slot, fire.job, fire.status.as_str(), fire.made_at)
}

fn is_missed(fire: &Fire) -> bool {
    fire.status == FireStatus::Missed
}

impl<'a> History<'a> {
    pub(super) fn new(plan: &'a JobPlan, fires: Vec<Fire>) -> Result<History<'a>, String> {
        let zone = TimeZone::get(&plan.tz).map_err(|error| error.to_string())?;
        let mut history = History { plan, fires: Vec::new(), zone };
        // Whoever runs a job by hand just as a slot comes has run that.
        history.fires = fires.into_iter().filter(|fire| !fire.is_manual || history.is_slot(fire.slot)).collect();
        Ok(history)
    }

    /// All that must hold.
    pub(super) fn check(&self, times: &Times<'_>) -> Result<(), String> {
        self.check_records(times)?;
        self.check_has_run()?;
        self.fires.iter().try_for_each(|fire| self.check_is_slot(fire))?;
        self.fires
            .iter()
            .enumerate()
            .filter(|(_, fire)| is_missed(fire))
            .try_for_each(|(n, fire)| self.check_missed(fire, n))?;
        self.fires.iter().try_for_each(|fire| check_in_time(fire, times))?;
        times.gaps.iter().try_for_each(|gap| self.check_gap(gap))
    }

    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.plan.schedule.next(after, &self.zone)
    }

    /// Each slot has one record, or that it was missed and what then came of it.
    fn check_records(&self, times: &Times<'_>) -> Result<(), String> {
        for slot in self.slots(times.began, times.until) {
            let covers =
                |fire: &&Fire| fire.slot == slot || (fire.slot < slot && fire.until.is_some_and(|to| to >= slot));
            let records: Vec<&Fire> = self.fires.iter().filter(covers).collect();
            let is_so = match records[..] {
                [_] => true,
                [missed, late] => is_missed(missed) && !is_missed(late),
                _ => false,
            };
            if !is_so {
                let records: Vec<String> = records.into_iter().map(said).collect();
                return Err(format!("{slot} of {} has these records: {records:?}", self.plan.name));
            }
        }
        Ok(())
    }

    /// The slots after one time, up to another.
    fn slots(&self, after: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let first = self.next(after);
        std::iter::successors(first, |slot| self.next(*slot)).take_while(|slot| *slot <= until).collect()
    }

    /// Who runs once has run.
    fn check_has_run(&self) -> Result<(), String> {
        let has_run = self.fires.iter().any(|fire| !matches!(fire.status, FireStatus::Missed | FireStatus::Skipped));
        if has_run || !matches!(self.plan.schedule, Schedule::At(_)) {
            return Ok(());
        }
        Err(format!("{} never ran: {:?}", self.plan.name, self.fires.iter().map(said).collect::<Vec<_>>()))
    }

    /// A clock before the first of them goes by the same rhythm.
    fn is_slot(&self, at: Timestamp) -> bool {
        match self.plan.schedule {
            Schedule::Every { span, anchor } => at.duration_since(anchor).as_micros().rem_euclid(span.as_micros()) == 0,
            _ => self.next(at - SignedDuration::from_micros(1)) == Some(at),
        }
    }

    /// Nothing fires between slots.
    fn check_is_slot(&self, fire: &Fire) -> Result<(), String> {
        if self.is_slot(fire.slot) { Ok(()) } else { Err(format!("{} is no time of its schedule", said(fire))) }
    }

    /// What was done about a slot besides noting that it was missed.
    fn sequel(&self, missed: &Fire) -> Option<&Fire> {
        self.fires.iter().find(|fire| fire.slot == missed.slot && !is_missed(fire))
    }

    /// Whether a missed slot was made up for is by the job's rule; `n` were written down before.
    fn check_missed(&self, missed: &Fire, n: usize) -> Result<(), String> {
        let together = || self.fires.iter().filter(|fire| fire.made_at == missed.made_at);
        let refuse = |why: &str| Err(format!("{} {why}", said(missed)));
        match (self.sequel(missed), self.plan.missed) {
            // What a clock that was ahead has left out is not over when it comes.
            (Some(ran), _) if ran.made_at < missed.made_at => refuse("was not missed: it came later"),
            // It came once more after the clock was set back.
            (Some(ran), _) if ran.made_at > missed.made_at => Ok(()),
            (Some(_), _) if matches!(self.plan.schedule, Schedule::At(_)) => Ok(()),
            (Some(_), Missed::Skip) => refuse("was missed, and ran all the same"),
            (Some(_), Missed::Once) if together().any(|other| is_missed(other) && other.slot > missed.slot) => {
                refuse("ran late, and is not the newest")
            }
            (Some(_), Missed::Once) if self.is_too_late(missed) => refuse("ran too late"),
            (None, Missed::All) if n < CATCH_UP_MAX && together().count() < CATCH_UP_MAX => {
                refuse("was not made up for")
            }
            _ => Ok(()),
        }
    }

    fn is_too_late(&self, missed: &Fire) -> bool {
        missed.made_at.duration_since(missed.slot) > self.plan.grace.unwrap_or(GRACE)
    }

    /// What nobody watched was missed, and is made up for as the job's rule says.
    fn check_gap(&self, gap: &Gap) -> Result<(), String> {
        let slots = self.slots(gap.from, gap.to + LATE_MAX);
        let n_under_way = gap.under_way.get(&self.plan.name).copied().unwrap_or(0);
        // One that comes as somebody looks again may be either; where very many wait in line some are left out.
        if slots.last().is_some_and(|last| *last >= gap.to) || n_under_way + slots.len() > CATCH_UP_MAX {
            return Ok(());
        }
        for (n_later, slot) in slots.iter().rev().enumerate() {
            let missed = self.fires.iter().find(|fire| fire.slot == *slot && is_missed(fire));
            let Some(missed) = missed else {
                return Err(format!("{slot} of {} came while nobody watched, and was not missed", self.plan.name));
            };
            if missed.made_at > gap.to + LATE_MAX {
                return Err(format!("{} came while nobody watched, and that was noticed late", said(missed)));
            }
            if self.sequel(missed).is_some() != self.is_made_up_for(missed, n_later, gap) {
                return Err(format!("{} came while nobody watched: {:?}", said(missed), self.sequel(missed).map(said)));
            }
        }
        Ok(())
    }

    fn is_made_up_for(&self, missed: &Fire, n_later: usize, gap: &Gap) -> bool {
        let n_under_way = gap.under_way.get(&self.plan.name).copied().unwrap_or(0);
        match self.plan.missed {
            Missed::Skip => false,
            Missed::All => true,
            Missed::Once => {
                let is_busy = !self.plan.may_overlap && n_under_way > 0;
                n_later == 0 && !is_busy && !self.is_too_late(missed)
            }
        }
    }
}

/// In peace each slot that somebody watched is made a fire when it comes.
fn check_in_time(fire: &Fire, times: &Times<'_>) -> Result<(), String> {
    let is_watched = !times.gaps.iter().any(|gap| gap.from < fire.slot && fire.slot < gap.to + LATE_MAX);
    let is_late = fire.status == FireStatus::Missed || fire.made_at > fire.slot + LATE_MAX;
    if fire.slot > times.healed && is_watched && is_late {
        return Err(format!("{} came in peace, and not in time", said(fire)));
    }
    Ok(())
}
