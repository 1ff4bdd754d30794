//! Hunger: beads of open convoys that somebody should work on, and nobody does. // SPEC C4, C5
//!
//! Whatever makes a bead ready or opens its convoy puts it in line in the same transaction; the rest is for the sweep.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_core::readiness::Standing;
use gt_core::status::Status;
use gt_store::{Filter, Store, View};
use jiff::Timestamp;

use crate::knobs::RIGS;
use crate::model::Model;

/// How long something may wait for the sweep, in the healed world.
pub const SWEPT_WITHIN: Duration = Duration::from_secs(35);

/// What has to be so of a bead to be fed.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    is_ready: bool,
    is_in_open_convoy: bool,
    is_in_open_rig: bool,
    /// Nobody has it, and nothing holds it.
    is_free: bool,
}

impl Facts {
    fn is_hungry(self) -> bool {
        self.is_ready && self.is_in_open_convoy && self.is_in_open_rig && self.is_free
    }
}

/// When the judge looks, and after what.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub step: usize,
    /// Beads were imported since it looked last.
    pub has_import: bool,
}

#[derive(Debug, Default)]
pub struct Hunger {
    facts: BTreeMap<String, Facts>,
    /// Convoys that an import has completed, which are for the sweep.
    unlanded: BTreeSet<String>,
    /// Who is hungry, and since which step.
    hungry: BTreeMap<String, usize>,
    /// Since when something waits for the sweep.
    since: BTreeMap<String, Duration>,
}

impl Hunger {
    /// After a commit: what a verb has made ready is in line, and what it has completed has landed.
    pub fn look(&mut self, store: &mut Store, model: &Model, moment: Moment) -> Result<(), String> {
        let Moment { step, has_import } = moment;
        let beads = unfinished(store)?;
        let facts: BTreeMap<String, Facts> =
            beads.iter().map(|view| (view.bead.id.clone(), facts_of(view, model, None))).collect();
        let is_stranger = |bead: &str| model.convoys.open_of(bead).any(|convoy| convoy.leaves(bead));
        for (bead, now) in facts.iter().filter(|(_, now)| now.is_hungry()) {
            let before = self.facts.get(bead).copied().unwrap_or(Facts { is_in_open_rig: true, ..Facts::default() });
            // A rig that takes work again is for the sweep.
            let is_old = (before.is_ready && before.is_in_open_convoy) || !before.is_in_open_rig;
            if !is_old && !is_stranger(bead) && !has_import {
                return Err(format!("{bead} of an open convoy is ready, and was not fed: {before:?}, {now:?}"));
            }
        }
        self.hungry.retain(|bead, _| facts.get(bead).is_some_and(|now| now.is_hungry()));
        for bead in facts.iter().filter(|(_, now)| now.is_hungry()).map(|(bead, _)| bead) {
            self.hungry.entry(bead.clone()).or_insert(step);
        }
        self.facts = facts;
        let complete: BTreeSet<&String> =
            model.convoys.complete(&model.beads).filter(|(_, convoy)| !convoy.is_linked).map(|(id, _)| id).collect();
        self.unlanded.retain(|id| complete.contains(id));
        if has_import {
            self.unlanded = complete.iter().map(|id| (*id).clone()).collect();
        }
        if let Some(id) = complete.into_iter().find(|id| !self.unlanded.contains(*id)) {
            return Err(format!("every bead of {id} is closed, and it has not landed"));
        }
        self.check_stranded(store)
    }

    pub fn is_ready(&self, bead: &str) -> bool {
        self.facts.get(bead).is_some_and(|facts| facts.is_ready)
    }

    /// Somebody has launched a convoy, in this step, and slung its first wave: nobody in it is left over.
    pub fn check_launched(&self, convoy: &str, step: usize, model: &Model) -> Result<(), String> {
        let is_left = |bead: &&String| self.hungry.get(*bead).is_some_and(|since| *since <= step);
        match model.convoys.members(convoy).find(is_left) {
            Some(bead) => Err(format!("{convoy} was launched, and nobody has slung {bead} of it")),
            None => Ok(()),
        }
    }

    /// What the store calls stranded is what is hungry here.
    fn check_stranded(&self, store: &mut Store) -> Result<(), String> {
        let stranded = store.stranded().map_err(|error| error.to_string())?;
        let said: BTreeSet<String> = stranded.into_iter().flat_map(|convoy| convoy.ready).collect();
        let hungry = self.facts.iter().filter(|(_, facts)| facts.is_hungry()).map(|(bead, _)| bead.clone());
        let hungry: BTreeSet<String> = hungry.collect();
        if said == hungry { Ok(()) } else { Err(format!("the store calls {said:?} stranded, and {hungry:?} are")) }
    }

    /// In the healed world: whatever waits for the sweep, and since when; nothing waits for longer than it takes.
    pub fn wait(&mut self, store: &mut Store, model: &Model, now: Timestamp, uptime: Duration) -> Result<bool, String> {
        let beads = unfinished(store)?;
        let waits = |view: &&View| facts_of(view, model, Some(now)).is_hungry() || is_abandoned(view, model);
        let complete = model.convoys.complete(&model.beads).map(|(id, _)| id.clone());
        let waiting: BTreeSet<String> =
            beads.iter().filter(waits).map(|view| view.bead.id.clone()).chain(complete).collect();
        self.since.retain(|id, _| waiting.contains(id));
        for id in &waiting {
            let since = *self.since.entry(id.clone()).or_insert(uptime);
            if uptime > since + SWEPT_WITHIN {
                return Err(format!("{id} waits for a sweep since {since:?}, and it is {uptime:?}"));
            }
        }
        Ok(!waiting.is_empty())
    }
}

/// Every bead that can be worked on and is not done.
fn unfinished(store: &mut Store) -> Result<Vec<View>, String> {
    let filter = Filter { issue_type: Some("task".to_owned()), ..Filter::default() };
    Ok(store.list(&filter, 0).map_err(|error| error.to_string())?.beads)
}

/// It is on a hook, and nobody is there: the sweep takes it off.
fn is_abandoned(view: &View, model: &Model) -> bool {
    let View { bead, node, .. } = view;
    let is_on_hook = matches!(bead.status, Status::Hooked | Status::InProgress) && node.standing() == Standing::Held;
    let is_nobodys = bead.assignee.as_deref().is_none_or(|who| who.contains("/polecats/"));
    let is_idle = model.beads.get(&bead.id).is_some_and(|bead| bead.run.is_none());
    is_on_hook && is_nobodys && is_idle && model.convoys.open_of(&bead.id).next().is_some()
}

/// How a bead stands: as of the last write, or now.
fn facts_of(view: &View, model: &Model, now: Option<Timestamp>) -> Facts {
    let id = &view.bead.id;
    let standing = now.map_or_else(|| view.node.standing(), |now| view.node.standing_at(now));
    let is_idle = model.beads.get(id).is_some_and(|bead| !bead.is_queued && bead.run.is_none() && !bead.is_held);
    Facts {
        is_ready: standing == Standing::Ready,
        is_in_open_convoy: model.convoys.open_of(id).next().is_some(),
        is_in_open_rig: rig_of(id).is_some_and(|rig| !model.aside.contains_key(rig)),
        is_free: is_idle && view.bead.assignee.is_none(),
    }
}

/// The rig that a bead's name says it belongs to.
pub fn rig_of(bead: &str) -> Option<&'static str> {
    RIGS.iter().find(|(_, prefix)| bead.split('-').next() == Some(prefix)).map(|(name, _)| *name)
}
