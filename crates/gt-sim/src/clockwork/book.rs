//! What the log says of jobs: whether each is there and active, so that something may become of its slots; up to when that was
//! seen to; and which fires are under way.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::event::Event;
use jiff::Timestamp;
use serde_json::Value;

use crate::jobs::{ANN, RECURRING};

#[derive(Debug, Default)]
pub(super) struct Book {
    /// The last event that was read.
    pub(super) seq: i64,
    /// Fires that are not over.
    pub(super) under_way: BTreeSet<i64>,
    /// Jobs, each with its state.
    states: BTreeMap<String, String>,
    /// The job that has just come to a good end.
    just_done: Option<String>,
    /// When the slots of each job that nobody touches were seen to.
    seen: BTreeMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    last: Timestamp,
    /// The latest of the times before the last.
    peak: Timestamp,
}

impl Book {
    /// Takes in what happened next; until then the clock had shown nothing later than this.
    pub(super) fn apply(&mut self, event: &Event, latest: Timestamp) -> Result<(), String> {
        self.seq = event.seq;
        let text = |key: &str| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
        let (job, fire) = (text("job"), event.data.get("fire").and_then(Value::as_i64).unwrap_or_default());
        let just_done = self.just_done.take();
        match event.kind.as_str() {
            "job.added" | "job.changed" => drop(self.states.insert(job.to_owned(), text("state").to_owned())),
            "job.disabled" => drop(self.states.insert(job.to_owned(), "disabled".to_owned())),
            "job.missed" | "job.skipped" => self.see_to(job, event, latest)?,
            "job.fired" => {
                if event.data.get("manual") != Some(&Value::Bool(true)) {
                    self.see_to(job, event, latest)?;
                }
                self.under_way.insert(fire);
            }
            "job.ended" => {
                self.under_way.remove(&fire);
                // What else it had under way is given up with it.
                self.just_done = just_done.or((text("status") == "ok").then(|| job.to_owned()));
            }
            "job.removed" => self.remove(job, just_done.as_deref(), event)?,
            _ => {}
        }
        Ok(())
    }

    /// Nothing becomes of the slots of a job that rests; nor, by a clock that is past all that it ever showed, of those that came
    /// before the job was seen to.
    fn see_to(&mut self, job: &str, event: &Event, latest: Timestamp) -> Result<(), String> {
        let state = self.states.get(job).map_or("removed", String::as_str);
        if state != "active" {
            return Err(format!("{} of {job}, which is {state}", event.kind));
        }
        let slot = event.data.get("slot").and_then(Value::as_str).and_then(|slot| slot.parse().ok());
        let Some(slot): Option<Timestamp> = slot.filter(|_| RECURRING.contains(&job)) else { return Ok(()) };
        let seen = self.seen.entry(job.to_owned()).or_insert(Seen { last: event.ts, peak: Timestamp::MIN });
        if seen.last != event.ts {
            *seen = Seen { last: event.ts, peak: seen.peak.max(seen.last) };
        }
        if event.ts >= latest && slot <= seen.peak {
            return Err(format!("{} of {job} for {slot}, and all until {} was seen to", event.kind, seen.peak));
        }
        Ok(())
    }

    /// A job goes when a person says so, or when it has done what it was to do once.
    fn remove(&mut self, job: &str, just_done: Option<&str>, event: &Event) -> Result<(), String> {
        self.states.remove(job);
        if event.actor == ANN || just_done == Some(job) {
            return Ok(());
        }
        Err(format!("{job} is forgotten, and its run did not go well"))
    }
}
