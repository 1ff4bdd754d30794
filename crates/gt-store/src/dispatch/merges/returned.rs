//! What becomes of work that could not be merged as it was: a bead for whoever works on it again. // SPEC M2

use gt_core::bead::Bead;
use gt_core::context::SlingFields;
use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::merge::{Flaw, MergeState};
use gt_core::plan::Policy;
use gt_core::refusal::Refusal;
use gt_core::run::Outcome;
use gt_core::text::one_line;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::{Merge, append, as_known, by_id, give_back, live_of, select};
use crate::beads::{self, NewBead};
use crate::dispatch::contexts::{self, NewContext};
use crate::dispatch::{runs, unfinished};
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::rows::{self, Key, micros};
use crate::store::{Stamp, Store};
use crate::{links, query, rigs};

/// The label of beads that were made to work on something again.
const REWORK: &str = "gt:rework";
/// As much of what it is called as reads well in a list.
const TITLE_CHARS: usize = 200;

/// What came back, for whoever works on it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rework {
    /// The bead whose work it is.
    pub of: String,
    /// The branch with the commits of that bead, which a rework has to bring along.
    pub of_branch: String,
    pub merge: String,
    pub target: String,
    pub branch: String,
    pub tip: String,
    /// The file with its commits.
    pub patch: Option<String>,
    pub reason: String,
}

/// What was made of a merge that came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReturnedAs {
    /// A new bead, in line.
    Rework { bead: String },
    /// The bead itself: a rework already, which is tried again, or what is held after so many attempts.
    Itself { is_held: bool },
    /// Nothing: it was over before, or is in line again with another commit.
    Over,
}

impl Store {
    /// Gives work back that cannot be merged as it is, in one step with the bead for it.
    pub fn return_merge(
        &mut self,
        merge: &Merge,
        flaw: &Flaw,
        patch: Option<&str>,
        policy: &Policy,
        stamp: &Stamp,
    ) -> std::result::Result<ReturnedAs, StoreError> {
        self.write(stamp, |tx| match as_known(tx, merge)? {
            Some(merge) => return_merge(tx, &merge, flaw, patch, policy, stamp),
            None => Ok(ReturnedAs::Over),
        })
    }
}

fn return_merge(
    tx: &Connection,
    merge: &Merge,
    flaw: &Flaw,
    patch: Option<&str>,
    policy: &Policy,
    stamp: &Stamp,
) -> Result<ReturnedAs> {
    let reason = flaw.words(&merge.target);
    tx.prepare_cached(
        "UPDATE merge SET state = 'returned', ended_at = ?2, reason = ?3, patch = ?4, landing = 0 WHERE id = ?1",
    )?
    .execute(params![merge.id, micros(stamp.now), reason, patch])?;
    let note = note(merge, flaw, patch);
    let is_over = !rows::load(tx, merge.key)?.status.is_active();
    if is_over {
        // Somebody has closed it meanwhile, and nobody waits for the merge.
        append(tx, EventType::MergeReturned, merge, &json!({ "reason": reason }), stamp)?;
        return Ok(ReturnedAs::Itself { is_held: false });
    }
    give_back(tx, merge, Some(&note), stamp)?;
    if first_of(tx, merge.key)?.is_some() {
        append(tx, EventType::MergeReturned, merge, &json!({ "reason": reason }), stamp)?;
        let Some(run) = runs::by_id(tx, &merge.run)? else { return Ok(ReturnedAs::Itself { is_held: false }) };
        unfinished::plan_next(tx, &run, Outcome::Failed, &reason, None, policy, stamp)?;
        let is_held = crate::dispatch::records::load(tx, merge.key)?.hold.is_some();
        return Ok(ReturnedAs::Itself { is_held });
    }
    if let Some(run) = runs::by_id(tx, &merge.run)?
        && unfinished::count_return(tx, &run, &reason, policy, stamp)?
    {
        append(tx, EventType::MergeReturned, merge, &json!({ "reason": reason }), stamp)?;
        return Ok(ReturnedAs::Itself { is_held: true });
    }
    let bead = make_rework(tx, merge, flaw, &note, stamp)?;
    append(tx, EventType::MergeReturned, merge, &json!({ "reason": reason, "rework": bead }), stamp)?;
    Ok(ReturnedAs::Rework { bead })
}

/// The bead for it, what it is for waiting for it, and its place in line.
fn make_rework(tx: &Connection, merge: &Merge, flaw: &Flaw, note: &str, stamp: &Stamp) -> Result<String> {
    let old = rows::load(tx, merge.key)?;
    let what = match flaw {
        Flaw::Conflict { .. } => format!("Resolve the conflict of {} with {}", merge.bead, merge.target),
        Flaw::Gate { .. } => format!("Make {} pass the gates of {}", merge.bead, merge.target),
        Flaw::Refused { .. } => format!("Work on {} again", merge.bead),
        Flaw::Unmergeable { .. } => format!("Make it possible to merge {} into {}", merge.bead, merge.target),
    };
    let title: String = format!("{what}: {}", one_line(&old.title)).chars().take(TITLE_CHARS).collect();
    let mut bead = Bead::new("", title);
    bead.issue_type = Some("task".to_owned());
    bead.priority = old.priority;
    bead.rig = Some(merge.rig.clone());
    bead.labels = vec![REWORK.to_owned()];
    let asked = old.body.text("description").map(|text| format!("\n\nWhat was asked for:\n{text}")).unwrap_or_default();
    bead.body.put("description", &format!("{note}{asked}"));
    if let Some(acceptance) = old.body.text("acceptance_criteria") {
        bead.body.put("acceptance_criteria", &acceptance);
    }
    bead.edges = vec![Edge::new(&merge.bead, EdgeType::parse("discovered-from"))];
    let prefix = rigs::all(tx)?.into_iter().find(|rig| rig.name == merge.rig).map_or("hq".to_owned(), |rig| rig.prefix);
    let id = beads::create(tx, &NewBead { prefix: prefix.clone(), parent: None, bead }, stamp)?;
    let key = query::require(tx, &id)?;
    tx.execute("UPDATE merge SET rework = ?2 WHERE id = ?1", params![merge.id, key])?;
    let wait = links::with_origin(&Edge::new(&id, EdgeType::Blocks), stamp);
    links::refuse_cycle(tx, &merge.bead, &wait)?;
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.link(merge.key, &wait)?;
    ledger.flush()?;
    let data = links::edge_data(&wait);
    crate::events::append(tx, stamp, EventType::BeadLinked, Some(&merge.bead), &data)?;
    schedule(tx, merge, &id, key, &prefix, stamp)?;
    Ok(id)
}

/// Puts a rework into the place that its work had, by the same wishes.
fn schedule(tx: &Connection, merge: &Merge, id: &str, key: Key, prefix: &str, stamp: &Stamp) -> Result<()> {
    let context: Option<String> = tx
        .prepare_cached("SELECT context FROM run WHERE id = ?1")?
        .query_row([&merge.run], |row| row.get(0))
        .optional()?;
    let Some(old) = context.map(|id| contexts::by_id(tx, &id)).transpose()?.flatten() else { return Ok(()) };
    let Ok(fields) = old.sling_fields() else { return Ok(()) };
    if gt_core::defect!("rework-not-in-line") {
        return Ok(());
    }
    // Its steps are done; what is left is one piece of work.
    let by_steps = fields.mode.is_some();
    let fields = SlingFields {
        work_bead_id: id.to_owned(),
        formula: fields.formula.filter(|_| !by_steps),
        mode: None,
        convoy: None,
        base_branch: Some(merge.target.clone()),
        dispatch_failures: 0,
        last_failure: None,
        ..fields
    };
    let new = NewContext {
        work: key,
        work_id: id,
        prefix,
        assignee: None,
        fields: &fields,
        failures: 0,
        last_failure: None,
        retry_at: None,
        enqueued_at: old.enqueued_at,
        how: "refinery",
    };
    contexts::insert(tx, &new, stamp).map(drop)
}

fn note(merge: &Merge, flaw: &Flaw, patch: Option<&str>) -> String {
    let head = format!(
        "The work on {} could not be merged: {}.\nIts commits are on the branch {} ({}).",
        merge.bead,
        flaw.words(&merge.target),
        merge.branch,
        merge.tip
    );
    let patch = patch.map(|patch| format!("\nAs a patch: {patch}")).unwrap_or_default();
    let details = flaw.details().map(|details| format!("\n\n{details}")).unwrap_or_default();
    format!("{head}{patch}{details}")
}

/// The merge that a bead was made to work on again.
fn first_of(tx: &Connection, bead: Key) -> Result<Option<Merge>> {
    Ok(select(tx, "merge.rework = ?1 ORDER BY merge.place LIMIT 1", [bead])?.pop())
}

/// What came back of a bead's work, or what it was made to work on again.
pub(crate) fn rework_of(tx: &Connection, bead: Key) -> Result<Option<Rework>> {
    // Its own merges that came back tell more than the first one.
    let is_open = "NOT EXISTS (SELECT 1 FROM merge AS newer WHERE newer.bead = merge.bead AND newer.place > merge.place
                     AND newer.state = 'merged')";
    let rest = format!("merge.bead = ?1 AND merge.state = 'returned' AND {is_open} ORDER BY merge.place DESC LIMIT 1");
    let own = select(tx, &rest, [bead])?.pop();
    let first = first_of(tx, bead)?;
    let of = first.as_ref().map(|first| (first.bead.clone(), first.branch.clone()));
    let Some(latest) = own.or(first) else { return Ok(None) };
    let (of, of_branch) = of.unwrap_or_else(|| (latest.bead.clone(), latest.branch.clone()));
    let Merge { id, target, branch, tip, patch, reason, .. } = latest;
    Ok(Some(Rework { of, of_branch, merge: id, target, branch, tip, patch, reason: reason.unwrap_or_default() }))
}

/// Puts a merge into line again.
pub(super) fn retry(tx: &Connection, merge: &Merge, tip: &str, stamp: &Stamp) -> Result<()> {
    if let Some(other) = live_of(tx, merge.key)? {
        return Err(Refusal::MergeWaits { id: other.id, bead: merge.bead.clone() }.into());
    }
    if !matches!(merge.state, MergeState::Returned | MergeState::Dropped) {
        return Err(Refusal::MergeOver { id: merge.id.clone(), state: merge.state.as_str() }.into());
    }
    let bead = rows::load(tx, merge.key)?;
    if !bead.status.is_active() {
        return Err(Refusal::Closed { id: merge.bead.clone() }.into());
    }
    for key in [Some(merge.key), merge_rework(tx, merge)?].into_iter().flatten() {
        if runs::live_of(tx, key)?.is_some() {
            let id = contexts::bead_id(tx, key)?;
            return Err(Refusal::Hooked { id, holder: "a run".to_owned() }.into());
        }
    }
    if let Some(rework) = merge_rework(tx, merge)? {
        close_rework(tx, merge, rework, stamp)?;
    }
    contexts::withdraw(tx, merge.key, stamp)?;
    crate::dispatch::records::lift(tx, merge.key)?;
    tx.execute(
        "UPDATE merge SET state = 'waiting', ended_at = NULL, reason = NULL, request = NULL, rework = NULL, tip = ?2,
           place = (SELECT max(place) + 1 FROM merge) WHERE id = ?1",
        [&merge.id, tip],
    )?;
    let mut bead = rows::load(tx, merge.key)?;
    bead.set_status(gt_core::status::Status::InProgress, stamp.now);
    bead.assignee = Some(gt_core::names::refinery(&merge.rig));
    bead.updated_at = Some(stamp.now);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(merge.key, &bead)?;
    ledger.flush()?;
    append(tx, EventType::MergeQueued, &by_id(tx, &merge.id)?, &json!({ "commit": tip, "again": true }), stamp)
}

fn merge_rework(tx: &Connection, merge: &Merge) -> Result<Option<Key>> {
    merge.rework.as_deref().map_or(Ok(None), |id| rows::key_of(tx, id))
}

/// Nobody has to work on it again: it is tried as it is.
fn close_rework(tx: &Connection, merge: &Merge, rework: Key, stamp: &Stamp) -> Result<()> {
    contexts::withdraw(tx, rework, stamp)?;
    let mut ledger = Ledger::new(tx, stamp.now);
    let id = contexts::bead_id(tx, rework)?;
    ledger.unlink(merge.key, &id, &EdgeType::Blocks)?;
    let mut bead = rows::load(tx, rework)?;
    if bead.status.is_active() {
        bead.set_status(gt_core::status::Status::Closed, stamp.now);
        bead.body.put("close_reason", &format!("{} is tried again as it is", merge.id));
        bead.updated_at = Some(stamp.now);
        ledger.rewrite(rework, &bead)?;
        let data = json!({ "title": bead.title, "to": "closed", "reason": "not needed" });
        crate::events::append(tx, stamp, EventType::BeadClosed, Some(&id), &data)?;
    }
    ledger.flush().map(drop)
}
