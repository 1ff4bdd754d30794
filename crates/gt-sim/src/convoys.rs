//! Convoys as the log tells of them: whom they track, how they live, and what of it cannot be.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::event::Event;
use gt_store::ConvoyProgress;
use serde_json::Value;

use crate::model::ModelBead;

/// Where a convoy is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Life {
    /// Nothing happens for its sake.
    #[default]
    Staged,
    Open,
    Closed,
}

#[derive(Debug, Clone, Default)]
pub struct ModelConvoy {
    pub life: Life,
    /// Its owner lands it.
    pub is_owned: bool,
    pub members: BTreeSet<String>,
    /// Somebody linked a bead to it like any other: before the sweep nobody looks.
    pub is_linked: bool,
    /// Beads that whoever launched it may still be about to sling.
    left: BTreeSet<String>,
    /// Which event closed it, and what it was before.
    closed: Option<(i64, Life)>,
}

/// Every convoy that the log has told of.
#[derive(Debug, Default)]
pub struct Convoys(BTreeMap<String, ModelConvoy>);

type Beads = BTreeMap<String, ModelBead>;

impl Convoys {
    /// Takes in what happened next, before the beads do.
    pub fn apply(&mut self, event: &Event, beads: &Beads) -> Result<(), String> {
        let Some(id) = &event.bead else { return Ok(()) };
        let is_new = event.kind == "bead.created" && event.data.get("type").is_some_and(|word| word == "convoy");
        if is_new {
            self.0.insert(id.clone(), ModelConvoy::default());
        }
        if event.kind == "convoy.cancelled" {
            self.check_withdrawal(id, event, beads)?;
        }
        let Some(convoy) = self.0.get_mut(id) else { return Ok(()) };
        match event.kind.as_str() {
            "convoy.created" => {
                convoy.life = Life::Open;
                convoy.is_owned = event.data.get("owned").is_some_and(|owned| owned == true);
                convoy.members.extend(names(&event.data, "members"));
            }
            "convoy.changed" => {
                let removed = names(&event.data, "removed");
                convoy.members.extend(names(&event.data, "added"));
                convoy.members.retain(|member| !removed.contains(member));
                convoy.is_linked = false;
            }
            "bead.linked" | "bead.unlinked" => convoy.link(event),
            "bead.closed" | "bead.deleted" => {
                convoy.closed = Some((event.seq, convoy.life));
                convoy.life = Life::Closed;
            }
            "bead.reopened" => (convoy.life, convoy.is_linked) = (Life::Open, false),
            "bead.updated" => convoy.update(event),
            "convoy.landed" => convoy.check_landing(id, event, beads)?,
            "convoy.closed" | "convoy.cancelled" if convoy.life != Life::Closed => {
                return Err(format!("{} tells of {id}, which is {:?}", event.kind, convoy.life));
            }
            "convoy.fed" => convoy.check_fed(id, event, beads)?,
            // Staging and launching say by themselves what becomes of it.
            "convoy.staged" => convoy.life = Life::Staged,
            // Whoever launches it slings its first wave afterwards; should it die before that, the sweep feeds.
            "convoy.launched" => {
                (convoy.life, convoy.is_linked) = (Life::Open, false);
                convoy.left.clone_from(&convoy.members);
            }
            _ => {}
        }
        Ok(())
    }

    /// What was only in a convoy that is cancelled is in line no more; what was withdrawn is held.
    fn check_withdrawal(&self, id: &str, event: &Event, beads: &Beads) -> Result<(), String> {
        let withdrawn = names(&event.data, "withdrawn");
        let is_wanted = |bead: &str| self.0.values().any(|one| one.life == Life::Open && one.members.contains(bead));
        let members = self.0.get(id).map(|convoy| &convoy.members).into_iter().flatten();
        for (member, bead) in members.filter_map(|member| beads.get_key_value(member)) {
            let is_held_back = !withdrawn.contains(member) || bead.is_held;
            if (bead.is_queued && !bead.is_done && !is_wanted(member)) || !is_held_back {
                return Err(format!("{id} was cancelled, and {member} of it is {bead:?}"));
            }
        }
        Ok(())
    }

    /// Staging does not name whom it tracks; the store does. How many they are it says.
    pub fn note_staged(&mut self, event: &Event, members: BTreeSet<String>) -> Result<(), String> {
        let Some((id, convoy)) = event.bead.as_ref().and_then(|id| Some((id, self.0.get_mut(id)?))) else {
            return Err(format!("{event:?} tells of no convoy"));
        };
        if event.data.get("members").and_then(Value::as_u64) != Some(members.len() as u64) {
            return Err(format!("{id} was staged with {members:?}, and the log says {}", event.data));
        }
        convoy.members = members;
        Ok(())
    }

    /// What is not ready when a convoy is launched is not for the launcher to sling.
    pub fn pass_left(&mut self, is_ready: impl Fn(&str) -> bool) {
        self.0.values_mut().for_each(|convoy| convoy.left.retain(|bead| is_ready(bead)));
    }

    pub fn members<'a>(&'a self, id: &str) -> impl Iterator<Item = &'a String> {
        self.0.get(id).into_iter().flat_map(|convoy| &convoy.members)
    }

    pub fn contains(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// The open convoys that a bead is in.
    pub fn open_of<'a>(&'a self, bead: &'a str) -> impl Iterator<Item = &'a ModelConvoy> {
        self.0.values().filter(move |convoy| convoy.life == Life::Open && convoy.members.contains(bead))
    }

    /// Convoys that nothing keeps from landing by themselves.
    pub fn complete<'a>(&'a self, beads: &'a Beads) -> impl Iterator<Item = (&'a String, &'a ModelConvoy)> {
        self.0.iter().filter(|(_, convoy)| convoy.life == Life::Open && !convoy.is_owned && convoy.is_done(beads))
    }

    /// What the store says of each convoy is what the log says.
    pub fn compare(&self, stored: &[ConvoyProgress], beads: &Beads) -> Result<(), String> {
        for one in stored {
            let convoy = self.0.get(&one.id).ok_or_else(|| format!("no event tells of {}", one.id))?;
            let life = match one.status.as_str() {
                "open" => Life::Open,
                "closed" | "tombstone" => Life::Closed,
                _ => Life::Staged,
            };
            let n_done = convoy.members.iter().filter(|member| is_done(beads, member)).count();
            let said = (life, one.is_owned, one.n_total as usize, one.n_done as usize);
            if said != (convoy.life, convoy.is_owned, convoy.members.len(), n_done) {
                return Err(format!("the store says {one:?}, the log says {convoy:?} with {n_done} done"));
            }
        }
        Ok(())
    }
}

impl ModelConvoy {
    /// Whether nobody looks after a bead of it before the next sweep.
    pub fn leaves(&self, bead: &str) -> bool {
        self.is_linked || self.left.contains(bead)
    }

    fn link(&mut self, event: &Event) {
        let text = |key: &str| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("type") != "tracks" {
            return;
        }
        if event.kind == "bead.unlinked" {
            self.members.remove(text("target"));
        } else {
            self.is_linked |= self.members.insert(text("target").to_owned());
        }
    }

    fn update(&mut self, event: &Event) {
        match event.data.get("status").and_then(Value::as_str) {
            Some("open") => (self.life, self.is_linked) = (Life::Open, false),
            Some(word) if word.starts_with("staged") => self.life = Life::Staged,
            _ => {}
        }
    }

    /// Each of its beads is there and closed.
    fn is_done(&self, beads: &Beads) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| is_done(beads, member))
    }

    /// Once for each time that it was open, by itself when all is done, or by its owner.
    fn check_landing(&mut self, id: &str, event: &Event, beads: &Beads) -> Result<(), String> {
        let Some((seq, before)) = self.closed.take().filter(|(seq, _)| seq + 1 == event.seq) else {
            return Err(format!("{id} landed, and nothing closed it"));
        };
        let is_by_owner = event.data.get("reason").is_some_and(|reason| reason == "landed by its owner");
        let is_right = if is_by_owner {
            self.is_owned && before != Life::Closed
        } else {
            !self.is_owned && before == Life::Open && self.is_done(beads)
        };
        if is_right { Ok(()) } else { Err(format!("{id} landed, was {before:?} before event {seq}, and is {self:?}")) }
    }

    fn check_fed(&self, id: &str, event: &Event, beads: &Beads) -> Result<(), String> {
        let fed = names(&event.data, "beads");
        let is_in_line = |bead: &String| beads.get(bead).is_some_and(|bead| bead.is_queued);
        if self.life == Life::Open
            && !fed.is_empty()
            && fed.iter().all(|bead| is_in_line(bead) && self.members.contains(bead))
        {
            return Ok(());
        }
        Err(format!("{id} was fed with {fed:?}, and is {self:?}"))
    }
}

fn is_done(beads: &Beads, id: &str) -> bool {
    beads.get(id).is_some_and(|bead| bead.is_done)
}

fn names(data: &Value, key: &str) -> Vec<String> {
    let listed = data.get(key).and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
