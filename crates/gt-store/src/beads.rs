//! Verbs that make and change beads. Each is one transaction with its events.

use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::fields::Fields;
use gt_core::id::{self, IdSeed};
use gt_core::readiness::{Facts, Standing};
use gt_core::refusal::Refusal;
use gt_core::status::Status;
use gt_core::{text, time};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::{Map, Value, json};

use crate::dispatch::{convoys, merges, runs};
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::rows::{self, Key};
use crate::store::{Stamp, Store};
use crate::{events, links, query};

/// A bead to be made; its id is chosen by the store.
#[derive(Debug, Clone)]
pub struct NewBead {
    /// For the id, unless a parent gives it.
    pub prefix: String,
    pub parent: Option<String>,
    /// Everything else, edges included; its id is ignored.
    pub bead: Bead,
}

/// What to change of a bead; `None` leaves a thing as it is.
#[derive(Debug, Clone, Default)]
pub struct BeadPatch {
    /// Takes the bead for somebody, in the same step: what refuses the one refuses the other.
    pub claim_for: Option<String>,
    pub title: Option<String>,
    pub status: Option<Status>,
    pub priority: Option<i64>,
    pub issue_type: Option<String>,
    pub assignee: Option<Option<String>>,
    pub defer_until: Option<Option<Timestamp>>,
    pub rig: Option<Option<String>>,
    pub pinned: Option<bool>,
    pub ephemeral: Option<bool>,
    /// The new parent; `Some(None)` leaves the bead without one.
    pub parent: Option<Option<String>>,
    /// Texts of the body by field name; `None` removes one.
    pub texts: Vec<(&'static str, Option<String>)>,
    pub add_labels: Vec<String>,
    pub remove_labels: Vec<String>,
}

/// What a change did: the beads it changed, and those that became ready by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    pub beads: Vec<String>,
    pub became_ready: Vec<String>,
}

impl Store {
    /// Makes a bead and returns its id.
    pub fn create_bead(&mut self, new: &NewBead, stamp: &Stamp) -> std::result::Result<String, StoreError> {
        text::check_title(&new.bead.title).map_err(Refusal::from)?;
        self.write(stamp, |tx| create(tx, new, stamp))
    }

    /// Makes a bead for a fire, once however often that is tried.
    pub fn create_bead_once(
        &mut self,
        new: &NewBead,
        fire: i64,
        stamp: &Stamp,
    ) -> std::result::Result<String, StoreError> {
        text::check_title(&new.bead.title).map_err(Refusal::from)?;
        self.write(stamp, |tx| {
            let sql = "SELECT bead.id FROM fire JOIN bead ON bead.id = fire.bead WHERE fire.id = ?1";
            if let Some(made) = tx.prepare_cached(sql)?.query_row([fire], |row| row.get(0)).optional()? {
                return Ok(made);
            }
            let id = create(tx, new, stamp)?;
            tx.prepare_cached("UPDATE fire SET bead = ?2 WHERE id = ?1")?.execute(params![fire, id])?;
            Ok(id)
        })
    }

    /// Changes a bead; says which fields really changed.
    pub fn update_bead(
        &mut self,
        id: &str,
        patch: &BeadPatch,
        stamp: &Stamp,
    ) -> std::result::Result<Changed, StoreError> {
        if let Some(title) = &patch.title {
            text::check_title(title).map_err(Refusal::from)?;
        }
        for label in &patch.add_labels {
            text::check_word("label", label).map_err(Refusal::from)?;
        }
        self.write(stamp, |tx| update(tx, id, patch, stamp))
    }

    /// Takes a ready bead for somebody: of several at once, one wins. Taking it twice is fine.
    pub fn claim_bead(&mut self, id: &str, assignee: &str, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let key = query::require(tx, id)?;
            claim(tx, key, assignee, stamp)
        })
    }

    /// Takes the first ready bead that the filter lets through and that nobody has.
    pub fn claim_first_ready(
        &mut self,
        filter: &query::ReadyFilter,
        assignee: &str,
        stamp: &Stamp,
    ) -> std::result::Result<Option<String>, StoreError> {
        self.write(stamp, |tx| {
            let free = query::ReadyFilter {
                unassigned: true,
                include_deferred: false,
                include_ephemeral: false,
                ..filter.clone()
            };
            let mut limit = 1;
            loop {
                let keys = query::ready_keys(tx, &free, limit, stamp.now)?;
                let mut unworked = keys.iter().filter_map(|key| match runs::live_of(tx, *key) {
                    Ok(Some(_)) => None,
                    answer => Some(answer.map(|_| *key)),
                });
                if let Some(key) = unworked.next().transpose()? {
                    claim(tx, key, assignee, stamp)?;
                    return Ok(Some(rows::load(tx, key)?.id));
                }
                if keys.len() < limit {
                    return Ok(None);
                }
                limit *= 2;
            }
        })
    }

    /// Closes beads, all or none; those already closed stay as they are.
    pub fn close_beads(
        &mut self,
        ids: &[String],
        reason: Option<&str>,
        stamp: &Stamp,
    ) -> std::result::Result<Changed, StoreError> {
        self.move_all(ids, stamp, EventType::BeadClosed, |bead| {
            if bead.status == Status::Closed {
                return Ok(false);
            }
            if bead.status == Status::Tombstone {
                return Err(Refusal::Deleted { id: bead.id.clone() });
            }
            bead.set_status(Status::Closed, stamp.now);
            if let Some(reason) = reason {
                bead.body.put("close_reason", reason);
            }
            Ok(true)
        })
    }

    /// Opens closed, pinned or deleted beads again; active ones stay as they are.
    pub fn reopen_beads(&mut self, ids: &[String], stamp: &Stamp) -> std::result::Result<Changed, StoreError> {
        self.move_all(ids, stamp, EventType::BeadReopened, |bead| {
            if bead.status.is_active() {
                return Ok(false);
            }
            bead.set_status(Status::Open, stamp.now);
            bead.assignee = None;
            for field in ["deleted_at", "deleted_by", "delete_reason", "original_type"] {
                bead.body.remove(field);
            }
            Ok(true)
        })
    }

    /// Turns beads into tombstones: they hold nothing back any more, and their ids are never used again.
    pub fn delete_beads(
        &mut self,
        ids: &[String],
        reason: Option<&str>,
        stamp: &Stamp,
    ) -> std::result::Result<Changed, StoreError> {
        self.move_all(ids, stamp, EventType::BeadDeleted, |bead| {
            if bead.status == Status::Tombstone {
                return Ok(false);
            }
            bead.set_status(Status::Tombstone, stamp.now);
            bead.body.put("deleted_at", &time::format(stamp.now));
            bead.body.put("deleted_by", &stamp.actor);
            bead.body.put("delete_reason", reason.unwrap_or("deleted"));
            bead.body.put("original_type", bead.type_word().to_owned().as_str());
            Ok(true)
        })
    }

    /// Adds and removes labels; says whether anything changed.
    pub fn relabel(
        &mut self,
        id: &str,
        add: &[String],
        remove: &[String],
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        for label in add {
            text::check_word("label", label).map_err(Refusal::from)?;
        }
        self.write(stamp, |tx| {
            let key = query::require(tx, id)?;
            relabel(tx, key, id, add, remove, stamp)
        })
    }

    /// Adds a comment and returns its id.
    pub fn comment(&mut self, id: &str, words: &str, stamp: &Stamp) -> std::result::Result<String, StoreError> {
        text::check_body("comment", words).map_err(Refusal::from)?;
        self.write(stamp, |tx| {
            let key = query::require(tx, id)?;
            add_comment(tx, key, id, words, stamp)
        })
    }

    /// Moves several beads in one transaction; `edit` says whether it changed the bead.
    fn move_all(
        &mut self,
        ids: &[String],
        stamp: &Stamp,
        event: EventType,
        edit: impl Fn(&mut Bead) -> std::result::Result<bool, Refusal>,
    ) -> std::result::Result<Changed, StoreError> {
        self.write(stamp, |tx| {
            let mut ledger = Ledger::new(tx, stamp.now);
            let mut changed = Vec::new();
            for id in ids {
                let key = query::require(tx, id)?;
                let mut bead = rows::load(tx, key)?;
                let from = bead.status.clone();
                if edit(&mut bead)? {
                    bead.updated_at = Some(stamp.now);
                    ledger.rewrite(key, &bead)?;
                    if !(matches!(event, EventType::BeadClosed) && gt_core::defect!("close-without-event")) {
                        events::append(tx, stamp, event, Some(id), &move_data(&bead, &from))?;
                    }
                    merges::follow(tx, key, id, event, stamp)?;
                    changed.push(id.clone());
                }
            }
            let mut became_ready = ledger.flush()?;
            became_ready.retain(|id| !changed.contains(id));
            Ok(Changed { beads: changed, became_ready })
        })
    }
}

fn move_data(bead: &Bead, from: &Status) -> Value {
    let field = if bead.status == Status::Tombstone { "delete_reason" } else { "close_reason" };
    let reason = bead.body.text(field);
    json!({ "title": bead.title, "from": from.as_str(), "to": bead.status.as_str(), "reason": reason })
}

pub(crate) fn create(tx: &Connection, new: &NewBead, stamp: &Stamp) -> Result<String> {
    let mut bead = new.bead.clone();
    bead.id = free_id(tx, new, stamp)?;
    bead.created_at = Some(stamp.now);
    bead.updated_at = Some(stamp.now);
    if bead.body.get("created_by").is_none() {
        bead.body.put("created_by", &stamp.actor);
    }
    bead.edges.extend(new.parent.as_ref().map(|parent| Edge::new(parent, EdgeType::ParentChild)));
    let key = next_key(tx)?;
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.adopt(key, &bead.id, Facts::of(&bead));
    ledger.resolve_incoming(key)?;
    rows::Inserter::new(tx)?.insert(key, &bead, ledger.node(key)?)?;
    ledger.settle_adopted();
    for edge in &bead.edges {
        query::require(tx, &edge.target)?;
        links::refuse_cycle(tx, &bead.id, edge)?;
        ledger.link(key, &links::with_origin(edge, stamp))?;
    }
    ledger.flush()?;
    let data = json!({ "title": bead.title, "type": bead.type_word(), "priority": bead.priority });
    events::append(tx, stamp, EventType::BeadCreated, Some(&bead.id), &data)?;
    Ok(bead.id)
}

pub(crate) fn next_key(tx: &Connection) -> Result<Key> {
    Ok(tx.prepare_cached("SELECT coalesce(max(key), 0) + 1 FROM bead")?.query_row([], |row| row.get(0))?)
}

fn free_id(tx: &Connection, new: &NewBead, stamp: &Stamp) -> Result<String> {
    if let Some(parent) = &new.parent {
        let parent_key = query::require(tx, parent)?;
        let n_children: u64 = Ledger::new(tx, stamp.now).node(parent_key)?.children.total as u64;
        if let Some(mut ids) = id::child_ids(parent, n_children + 1) {
            return Ok(first_free(tx, &mut ids)?.expect("child numbers never run out"));
        }
    }
    let description = new.bead.body.text("description").unwrap_or_default();
    let seed = IdSeed {
        prefix: &new.prefix,
        title: &new.bead.title,
        description: &description,
        creator: &stamp.actor,
        at: stamp.now,
    };
    // Keys are dense enough to stand for the number of beads, and reading the last one costs nothing.
    let n_beads = next_key(tx)? as u64 - 1;
    first_free(tx, &mut seed.proposals(n_beads))?.ok_or_else(|| Refusal::NoFreeId { prefix: new.prefix.clone() }.into())
}

pub(crate) fn first_free(tx: &Connection, ids: &mut dyn Iterator<Item = String>) -> Result<Option<String>> {
    for id in ids {
        if rows::key_of(tx, &id)?.is_none() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn update(tx: &Connection, id: &str, patch: &BeadPatch, stamp: &Stamp) -> Result<Changed> {
    let key = query::require(tx, id)?;
    let claimed = patch.claim_for.as_ref().map_or(Ok(false), |who| claim(tx, key, who, stamp))?;
    let relabelled = relabel(tx, key, id, &patch.add_labels, &patch.remove_labels, stamp)?;
    let before = rows::load(tx, key)?;
    if let Some(next) = patch.status.as_ref().filter(|_| before.type_word() == "convoy") {
        convoys::check_change(&before, next)?;
    }
    let mut bead = before.clone();
    apply(&mut bead, patch, stamp.now);
    let mut changed = differences(&before, &bead);
    let mut ledger = Ledger::new(tx, stamp.now);
    if let Some(parent) = &patch.parent
        && reparent(tx, &mut ledger, key, &before, parent.as_deref(), stamp)?
    {
        changed.insert("parent".to_owned(), json!(parent));
    }
    if changed.is_empty() {
        let beads = if claimed || relabelled { vec![id.to_owned()] } else { Vec::new() };
        return Ok(Changed { beads, became_ready: Vec::new() });
    }
    bead.updated_at = Some(stamp.now);
    ledger.rewrite(key, &bead)?;
    let event = update_event(&before, &bead);
    events::append(tx, stamp, event, Some(id), &Value::Object(changed))?;
    merges::follow(tx, key, id, event, stamp)?;
    Ok(Changed { beads: vec![id.to_owned()], became_ready: ledger.flush()? })
}

/// Which event the step from one state of a bead to the next is.
pub(crate) fn update_event(before: &Bead, after: &Bead) -> EventType {
    match (&before.status, &after.status) {
        (old, Status::Closed) if *old != Status::Closed => EventType::BeadClosed,
        (old, Status::Tombstone) if *old != Status::Tombstone => EventType::BeadDeleted,
        (old, new) if old.is_terminal() && new.is_active() => EventType::BeadReopened,
        _ => EventType::BeadUpdated,
    }
}

fn apply(bead: &mut Bead, patch: &BeadPatch, now: Timestamp) {
    let patch = patch.clone();
    bead.title = patch.title.unwrap_or_else(|| bead.title.clone());
    bead.priority = patch.priority.unwrap_or(bead.priority);
    bead.issue_type = patch.issue_type.or_else(|| bead.issue_type.take());
    bead.assignee = patch.assignee.unwrap_or_else(|| bead.assignee.take());
    bead.defer_until = patch.defer_until.unwrap_or(bead.defer_until);
    bead.rig = patch.rig.unwrap_or_else(|| bead.rig.take());
    for (name, flag) in [("pinned", patch.pinned), ("ephemeral", patch.ephemeral)] {
        if let Some(on) = flag {
            bead.set_flag(name, on);
        }
    }
    for (field, words) in patch.texts {
        match words {
            Some(words) => bead.body.put(field, &words),
            None => bead.body.remove(field),
        }
    }
    if let Some(status) = patch.status {
        bead.set_status(status, now);
    }
}

/// New values of the fields that differ, for the event.
fn differences(before: &Bead, after: &Bead) -> Map<String, Value> {
    let mut changed = Map::new();
    let mut note = |name: &str, differs: bool, value: Value| {
        if differs {
            changed.insert(name.to_owned(), value);
        }
    };
    note("title", before.title != after.title, json!(after.title));
    note("status", before.status != after.status, json!(after.status.as_str()));
    note("priority", before.priority != after.priority, json!(after.priority));
    note("issue_type", before.issue_type != after.issue_type, json!(after.issue_type));
    note("assignee", before.assignee != after.assignee, json!(after.assignee));
    note("defer_until", before.defer_until != after.defer_until, json!(after.defer_until.map(time::format)));
    note("rig", before.rig != after.rig, json!(after.rig));
    let names = before.body.iter().chain(after.body.iter()).map(|(name, _)| name);
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        let raw = |bead: &Bead| bead.body.get(name).map(|raw| raw.get().to_owned());
        let value = raw(after).and_then(|raw| serde_json::from_str(&raw).ok()).unwrap_or(Value::Null);
        note(name, raw(before) != raw(after), value);
    }
    changed
}

fn reparent(
    tx: &Connection,
    ledger: &mut Ledger<'_>,
    key: Key,
    bead: &Bead,
    parent: Option<&str>,
    stamp: &Stamp,
) -> Result<bool> {
    let (kept, old): (Vec<&Edge>, Vec<&Edge>) = bead
        .edges
        .iter()
        .filter(|edge| edge.kind == EdgeType::ParentChild)
        .partition(|edge| Some(edge.target.as_str()) == parent);
    for edge in &old {
        ledger.unlink(key, &edge.target, &edge.kind)?;
    }
    let Some(parent) = parent.filter(|_| kept.is_empty()) else { return Ok(!old.is_empty()) };
    query::require(tx, parent)?;
    let edge = Edge::new(parent, EdgeType::ParentChild);
    links::refuse_cycle(tx, &bead.id, &edge)?;
    ledger.link(key, &links::with_origin(&edge, stamp))?;
    Ok(true)
}

/// What a bead is instead of ready.
fn not_ready_word(bead: &Bead, standing: Standing) -> &str {
    match standing {
        Standing::Held if bead.status != Status::Open => bead.status.as_str(),
        Standing::Held if bead.is_pinned() => "pinned",
        Standing::Held if bead.is_wisp() => "ephemeral",
        Standing::Held => "bookkeeping, not work",
        standing => standing.as_str(),
    }
}

fn claim(tx: &Connection, key: Key, assignee: &str, stamp: &Stamp) -> Result<bool> {
    let mut bead = rows::load(tx, key)?;
    if let Some(holder) = &bead.assignee {
        if holder == assignee && bead.status == Status::InProgress {
            return Ok(false);
        }
        if holder != assignee {
            return Err(Refusal::Claimed { id: bead.id, holder: holder.clone() }.into());
        }
    }
    // An open bead may still have a run, if somebody opened it behind its back.
    if let Some(run) = runs::live_of(tx, key)? {
        return Err(Refusal::Claimed { id: bead.id, holder: format!("run {run}") }.into());
    }
    let mut ledger = Ledger::new(tx, stamp.now);
    let standing = ledger.node(key)?.standing_at(stamp.now);
    if standing != Standing::Ready {
        return Err(Refusal::NotReady { standing: not_ready_word(&bead, standing).to_owned(), id: bead.id }.into());
    }
    bead.assignee = Some(assignee.to_owned());
    bead.set_status(Status::InProgress, stamp.now);
    bead.updated_at = Some(stamp.now);
    ledger.rewrite(key, &bead)?;
    ledger.flush()?;
    events::append(tx, stamp, EventType::BeadClaimed, Some(&bead.id), &json!({ "assignee": assignee }))?;
    Ok(true)
}

pub(crate) fn relabel(
    tx: &Connection,
    key: Key,
    id: &str,
    add: &[String],
    remove: &[String],
    stamp: &Stamp,
) -> Result<bool> {
    let mut labels = rows::load(tx, key)?.labels;
    let before = labels.clone();
    for label in add.iter().filter(|label| !before.contains(label)) {
        if !labels.contains(label) {
            labels.push(label.clone());
            events::append(tx, stamp, EventType::BeadLabelled, Some(id), &json!({ "label": label }))?;
        }
    }
    for label in remove.iter().filter(|label| before.contains(label)) {
        labels.retain(|other| other != label);
        events::append(tx, stamp, EventType::BeadUnlabelled, Some(id), &json!({ "label": label }))?;
    }
    if labels == before {
        return Ok(false);
    }
    rows::replace_labels(tx, key, &labels)?;
    touch(tx, key, stamp)?;
    Ok(true)
}

pub(crate) fn add_comment(tx: &Connection, key: Key, id: &str, words: &str, stamp: &Stamp) -> Result<String> {
    let n_before: i64 = tx.query_row("SELECT count(*) FROM comment WHERE bead = ?1", [key], |row| row.get(0))?;
    let comment_id = format!("{id}-c{}", n_before + 1);
    let mut comment = Fields::default();
    comment.put("id", &comment_id);
    comment.put("issue_id", id);
    comment.put("author", &stamp.actor);
    comment.put("text", words);
    comment.put("created_at", &time::format(stamp.now));
    rows::write_comments(tx, key, &[comment])?;
    touch(tx, key, stamp)?;
    events::append(tx, stamp, EventType::BeadCommented, Some(id), &json!({ "comment": comment_id }))?;
    Ok(comment_id)
}

/// Marks a bead as changed now.
pub(crate) fn touch(tx: &Connection, key: Key, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached("UPDATE bead SET updated_at = ?2 WHERE key = ?1")?
        .execute(params![key, rows::micros(stamp.now)])?;
    Ok(())
}
