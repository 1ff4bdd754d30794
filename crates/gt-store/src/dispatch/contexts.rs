//! Sling contexts: making, closing, clearing, trying again, and how they read as beads. // SPEC D1, D7

use gt_core::context::{self, CloseReason, ContextBead, ContextState, SlingFields};
use gt_core::event::EventType;
use gt_core::id::IdSeed;
use gt_core::readiness::{Facts, Node};
use gt_core::refusal::Refusal;
use gt_core::status::Status;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use crate::dispatch::records::{self, Hold};
use crate::dispatch::runs;
use crate::error::{Result, StoreError};
use crate::events;
use crate::query::{self, Listing, View};
use crate::rows::{self, Key, micros, timestamp};
use crate::store::{Stamp, Store};

/// A context as stored.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) id: String,
    pub(crate) bead: Key,
    pub(crate) rig: String,
    pub(crate) agent: Option<String>,
    pub(crate) assignee: Option<String>,
    pub(crate) state: ContextState,
    pub(crate) enqueued_at: Timestamp,
    /// JSON, as stored.
    pub(crate) fields: String,
    pub(crate) failures: i64,
    pub(crate) last_failure: Option<String>,
    pub(crate) retry_at: Option<Timestamp>,
    pub(crate) closed_at: Option<Timestamp>,
    pub(crate) close_reason: Option<String>,
    /// Whether it was queued, rather than slung.
    pub(crate) is_queued: bool,
}

pub(crate) const COLUMNS: &str =
    "context.id, context.bead, context.rig, context.agent, context.assignee, context.state,
     context.enqueued_at, context.fields, context.failures, context.last_failure, context.retry_at, context.closed_at,
     context.close_reason, context.queued";
/// How many columns that are.
pub(crate) const N_COLUMNS: usize = 14;

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Context> {
    Ok(Context {
        id: row.get(0)?,
        bead: row.get(1)?,
        rig: row.get(2)?,
        agent: row.get(3)?,
        assignee: row.get(4)?,
        state: ContextState::parse(row.get_ref(5)?.as_str()?).unwrap_or(ContextState::Closed),
        enqueued_at: timestamp(row.get(6)?),
        fields: row.get(7)?,
        failures: row.get(8)?,
        last_failure: row.get(9)?,
        retry_at: row.get::<_, Option<i64>>(10)?.map(timestamp),
        closed_at: row.get::<_, Option<i64>>(11)?.map(timestamp),
        close_reason: row.get(12)?,
        is_queued: row.get(13)?,
    })
}

impl Context {
    /// The fields with the counts of now, or what is wrong with them.
    pub(crate) fn sling_fields(&self) -> std::result::Result<SlingFields, String> {
        let mut fields = context::parse(&self.fields)?;
        fields.dispatch_failures = self.failures;
        fields.last_failure.clone_from(&self.last_failure);
        Ok(fields)
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.sling_fields().is_ok()
    }
}

impl Store {
    /// Takes beads off the queue, one or all; returns the work they were for. What is being started stays.
    pub fn clear_contexts(
        &mut self,
        bead: Option<&str>,
        stamp: &Stamp,
    ) -> std::result::Result<Vec<String>, StoreError> {
        self.write(stamp, |tx| {
            let open = match bead {
                Some(id) => live_of(tx, query::require(tx, id)?)?.into_iter().collect(),
                None => open(tx)?,
            };
            let mut cleared = Vec::new();
            for context in open
                .into_iter()
                .filter(|context| context.state == ContextState::Open || gt_core::defect!("clear-takes-what-starts"))
            {
                clear(tx, &context, stamp)?;
                cleared.push(bead_id(tx, context.bead)?);
            }
            Ok(cleared)
        })
    }

    /// How many of these beads are scheduled or claimed.
    pub fn scheduled_among(&mut self, beads: &[String]) -> std::result::Result<usize, StoreError> {
        self.read(|tx| {
            let mut n = 0;
            for id in beads {
                if let Some(key) = rows::key_of(tx, id)? {
                    n += usize::from(live_of(tx, key)?.is_some());
                }
            }
            Ok(n)
        })
    }

    /// Forgets a bead's failures and attempts, lifts what holds it, and schedules it again. Returns its context.
    pub fn retry(&mut self, bead: &str, stamp: &Stamp) -> std::result::Result<String, StoreError> {
        self.write(stamp, |tx| {
            let key = query::require(tx, bead)?;
            refuse_finished(tx, key, bead)?;
            let record = records::load(tx, key)?;
            let live = live_of(tx, key)?;
            if let Some(context) = live {
                tx.execute(
                    "UPDATE context SET failures = 0, last_failure = NULL, retry_at = NULL WHERE id = ?1",
                    [&context.id],
                )?;
                reset(tx, key)?;
                note_scheduled(tx, &context.id, bead, ("retry", context.is_queued), stamp)?;
                return Ok(context.id);
            }
            let last = record.context.map(|id| by_id(tx, &id)).transpose()?.flatten();
            let Some(last) = last.filter(|_| record.hold.is_some()) else {
                return Err(Refusal::NotScheduled { id: bead.to_owned() }.into());
            };
            reset(tx, key)?;
            // Whoever asks for it by name takes it from whom it is assigned to; an automatic path does not.
            let assignee = assignee(tx, key)?;
            let again = Context { failures: 0, last_failure: None, retry_at: None, assignee, ..last };
            again_as_new(tx, &again, "retry", stamp)
        })
    }
}

fn reset(tx: &Connection, bead: Key) -> Result<()> {
    tx.execute("DELETE FROM dispatch_record WHERE bead = ?1", [bead])?;
    Ok(())
}

fn refuse_finished(tx: &Connection, key: Key, id: &str) -> Result<()> {
    match query::node(tx, key)?.facts.status {
        Status::Closed | Status::Tombstone => Err(Refusal::Closed { id: id.to_owned() }.into()),
        _ => Ok(()),
    }
}

/// What a new context is made of.
pub(crate) struct NewContext<'a> {
    pub(crate) work: Key,
    pub(crate) work_id: &'a str,
    /// Of the rig, for the id.
    pub(crate) prefix: &'a str,
    pub(crate) assignee: Option<&'a str>,
    pub(crate) fields: &'a SlingFields,
    pub(crate) failures: i64,
    pub(crate) last_failure: Option<&'a str>,
    pub(crate) retry_at: Option<Timestamp>,
    pub(crate) enqueued_at: Timestamp,
    /// Which verb made it, for the event.
    pub(crate) how: &'static str,
}

/// Takes a context off the queue; only an explicit sling puts its bead back.
fn clear(tx: &Connection, context: &Context, stamp: &Stamp) -> Result<()> {
    close(tx, context, CloseReason::Cleared, None, stamp)?;
    remember(tx, context)?;
    records::hold(tx, context.bead, Hold::Cleared, None)
}

/// Takes a bead off the queue unless it has started: `false`; `None`: it was neither.
pub(crate) fn withdraw(tx: &Connection, bead: Key, stamp: &Stamp) -> Result<Option<bool>> {
    match live_of(tx, bead)? {
        Some(context) if context.state == ContextState::Open => clear(tx, &context, stamp).map(|()| Some(true)),
        Some(_) => Ok(Some(false)),
        None => Ok(runs::live_of(tx, bead)?.map(|_| false)),
    }
}

/// Makes an open context and returns its id.
pub(crate) fn insert(tx: &Connection, new: &NewContext<'_>, stamp: &Stamp) -> Result<String> {
    let id = free_id(tx, new, stamp)?;
    tx.prepare_cached(
        "INSERT INTO context (id, bead, rig, agent, assignee, state, ready, priority, enqueued_at, fields, failures,
           last_failure, retry_at, queued)
         SELECT ?1, key, ?3, ?4, ?5, 'open', CASE WHEN standing IS NULL THEN 2 ELSE standing = 'ready' END, priority,
           ?6, ?7, ?8, ?9, ?10, ?11 FROM bead WHERE key = ?2",
    )?
    .execute(params![
        id,
        new.work,
        new.fields.target_rig,
        new.fields.agent,
        new.assignee,
        micros(new.enqueued_at),
        context::json(new.fields),
        new.failures,
        new.last_failure,
        new.retry_at.map(micros),
        new.fields.queued,
    ])?;
    note_scheduled(tx, &id, new.work_id, (new.how, new.fields.queued), stamp)?;
    Ok(id)
}

fn note_scheduled(tx: &Connection, id: &str, bead: &str, (how, is_queued): (&str, bool), stamp: &Stamp) -> Result<()> {
    let mut data = json!({ "context": id, "by": how });
    if is_queued {
        data["queued"] = true.into();
    }
    events::append(tx, stamp, EventType::ContextScheduled, Some(bead), &data)
}

fn free_id(tx: &Connection, new: &NewContext<'_>, stamp: &Stamp) -> Result<String> {
    let prefix = format!("{}-wisp", new.prefix);
    let seed =
        IdSeed { prefix: &prefix, title: new.work_id, description: new.how, creator: &stamp.actor, at: stamp.now };
    for id in seed.proposals(1000) {
        if by_id(tx, &id)?.is_none() && rows::key_of(tx, &id)?.is_none() {
            return Ok(id);
        }
    }
    Err(Refusal::NoFreeId { prefix }.into())
}

/// A closed context comes back as a new one, in its old place in the queue.
pub(crate) fn again_as_new(tx: &Connection, last: &Context, how: &'static str, stamp: &Stamp) -> Result<String> {
    let Ok(fields) = last.sling_fields() else {
        return Err(Refusal::NotScheduled { id: bead_id(tx, last.bead)? }.into());
    };
    let prefix = last.id.split("-wisp-").next().unwrap_or("hq");
    let new = NewContext {
        work: last.bead,
        work_id: &fields.work_bead_id,
        prefix,
        assignee: last.assignee.as_deref(),
        fields: &SlingFields { dispatch_failures: 0, last_failure: None, ..fields.clone() },
        failures: last.failures,
        last_failure: last.last_failure.as_deref(),
        retry_at: last.retry_at,
        enqueued_at: last.enqueued_at,
        how,
    };
    insert(tx, &new, stamp)
}

pub(crate) fn assignee(tx: &Connection, bead: Key) -> Result<Option<String>> {
    Ok(tx.prepare_cached("SELECT assignee FROM bead WHERE key = ?1")?.query_row([bead], |row| row.get(0))?)
}

/// Closes a context; the note says more where the reason alone does not.
pub(crate) fn close(
    tx: &Connection,
    context: &Context,
    reason: CloseReason,
    note: Option<&str>,
    stamp: &Stamp,
) -> Result<()> {
    tx.prepare_cached("UPDATE context SET state = 'closed', closed_at = ?2, close_reason = ?3 WHERE id = ?1")?
        .execute(params![context.id, micros(stamp.now), reason.as_str()])?;
    let data = json!({ "context": context.id, "reason": reason.as_str(), "note": note });
    events::append(tx, stamp, EventType::ContextClosed, Some(&bead_id(tx, context.bead)?), &data)
}

/// Remembers the context with which the bead can be tried again.
pub(crate) fn remember(tx: &Connection, context: &Context) -> Result<()> {
    let mut record = records::load(tx, context.bead)?;
    record.context = Some(context.id.clone());
    records::save(tx, context.bead, &record)
}

pub(crate) fn by_id(tx: &Connection, id: &str) -> Result<Option<Context>> {
    let mut query = tx.prepare_cached(&format!("SELECT {COLUMNS} FROM context WHERE id = ?1"))?;
    Ok(query.query_row([id], from_row).optional()?)
}

/// The open or claimed context of a bead.
pub(crate) fn live_of(tx: &Connection, bead: Key) -> Result<Option<Context>> {
    let sql = format!("SELECT {COLUMNS} FROM context WHERE bead = ?1 AND state <> 'closed'");
    Ok(tx.prepare_cached(&sql)?.query_row([bead], from_row).optional()?)
}

/// The context of a bead that was made last.
pub(crate) fn latest_of(tx: &Connection, bead: Key) -> Result<Option<Context>> {
    if let Some(live) = live_of(tx, bead)? {
        return Ok(Some(live));
    }
    let sql = "SELECT context FROM run WHERE bead = ?1 ORDER BY claimed_at DESC, id DESC LIMIT 1";
    let last: Option<String> = tx.prepare_cached(sql)?.query_row([bead], |row| row.get(0)).optional()?;
    last.map_or(Ok(None), |id| by_id(tx, &id))
}

/// Every open context, the oldest first.
pub(crate) fn open(tx: &Connection) -> Result<Vec<Context>> {
    let sql = format!("SELECT {COLUMNS} FROM context WHERE state = 'open' ORDER BY enqueued_at, id");
    Ok(tx.prepare_cached(&sql)?.query_map([], from_row)?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn bead_id(tx: &Connection, key: Key) -> Result<String> {
    Ok(tx.prepare_cached("SELECT id FROM bead WHERE key = ?1")?.query_row([key], |row| row.get(0))?)
}

/// The context of this id, as a bead.
pub(crate) fn view(tx: &Connection, id: &str) -> Result<Option<View>> {
    by_id(tx, id)?.map(|context| as_view(tx, &context)).transpose()
}

/// Contexts that pass the statuses, as beads; without any, the open ones.
pub(crate) fn listing(tx: &Connection, statuses: &[Status], all: bool, limit: usize) -> Result<Listing> {
    let mut query = tx.prepare_cached(&format!("SELECT {COLUMNS} FROM context ORDER BY enqueued_at, id"))?;
    let mut rows = query.query([])?;
    let mut beads = Vec::new();
    while let Some(row) = rows.next()? {
        let context = from_row(row)?;
        let status = context.state.status();
        let is_wanted = if statuses.is_empty() { all || status.is_active() } else { statuses.contains(&status) };
        if is_wanted {
            if limit > 0 && beads.len() == limit {
                return Ok(Listing { beads, more: true });
            }
            beads.push(as_view(tx, &context)?);
        }
    }
    Ok(Listing { beads, more: false })
}

fn as_view(tx: &Connection, context: &Context) -> Result<View> {
    let title: String =
        tx.prepare_cached("SELECT title FROM bead WHERE key = ?1")?.query_row([context.bead], |row| row.get(0))?;
    let fields = context.sling_fields().unwrap_or_else(|_| SlingFields {
        work_bead_id: String::new(),
        target_rig: context.rig.clone(),
        ..SlingFields::default()
    });
    let mut bead = ContextBead {
        id: &context.id,
        work_title: &title,
        state: context.state,
        fields: &fields,
        enqueued_at: context.enqueued_at,
        closed_at: context.closed_at,
        close_reason: context.close_reason.as_deref(),
    }
    .to_bead();
    if fields.version == 0 {
        bead.edges.clear();
        bead.body.put("description", &context.fields); // unreadable; shown as it is
    }
    let node = Node::alone(Facts::of(&bead), context.enqueued_at);
    Ok(View { rig: Some(context.rig.clone()), bead, node, blocked_by: Vec::new(), n_dependents: 0 })
}

/// Says that an id is a context's, to whoever wanted to change it like a bead.
pub(crate) fn refuse_change(tx: &Connection, id: &str) -> Result<()> {
    match by_id(tx, id)? {
        Some(context) => Err(Refusal::IsContext { id: id.to_owned(), bead: bead_id(tx, context.bead)? }.into()),
        None => Ok(()),
    }
}
