//! Feeding: members of open convoys that somebody should work on, and nobody does, are put in line. // SPEC C4, C5, R2
//!
//! Triggers and verbs mark members in `to_feed`; before their transaction ends, those who should be fed are. Sweep and deacon
//! mark again whatever they find. One function decides for all of them who is fed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use gt_core::context::{self, SlingFields};
use gt_core::event::EventType;
use gt_core::rig::{self, Home, Rig, RigState};
use gt_core::status;
use gt_core::time;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use crate::dispatch::contexts::{self, NewContext};
use crate::dispatch::deacon::{self, IS_ABANDONED};
use crate::dispatch::{convoys, landing};
use crate::error::{Result, StoreError};
use crate::ledger;
use crate::rows::{self, Key, micros, timestamp};
use crate::store::{Stamp, Store};
use crate::{events, rigs};

/// A convoy with work that nobody is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    pub id: String,
    pub title: String,
    pub n_tracked: i64,
    /// What the next sweep would put in line.
    pub ready: Vec<String>,
}

/// What a sweep came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// What was on a hook without anybody there.
    pub released: Vec<String>,
    pub fed: Vec<String>,
    pub landed: Vec<String>,
}

/// What the deacon did for a convoy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FedConvoy {
    pub id: String,
    pub title: String,
    pub beads: Vec<String>,
    /// It was fed not long ago, and is left alone until then.
    pub cooling_until: Option<Timestamp>,
}

/// A member as feeding sees it.
struct Member {
    key: Key,
    id: String,
    issue_type: Option<String>,
    bound: Option<String>,
    convoy: Key,
}

/// How a convoy wants its members to be worked on.
struct Terms {
    id: String,
    merge: Option<String>,
    base_branch: Option<String>,
}

const MEMBER: &str = "SELECT bead.key, bead.id, bead.issue_type, bead.rig, convoy.key ";
/// From a bead to its convoys.
const OF_BEAD: &str = "FROM bead CROSS JOIN edge ON edge.target = bead.id AND edge.type = 'tracks'
   CROSS JOIN bead AS convoy ON convoy.key = edge.source ";
/// From the convoys to their beads.
const OF_CONVOYS: &str = "FROM bead AS convoy CROSS JOIN edge ON edge.source = convoy.key AND edge.type = 'tracks'
   CROSS JOIN bead ON bead.id = edge.target ";
const IN_OPEN_CONVOY: &str =
    "WHERE convoy.issue_type = 'convoy' AND convoy.standing IS NOT NULL AND convoy.status = 'open' ";
/// Somebody should work on it, and nobody does. What its type and its rig say to it is for `Kitchen::accept`.
const IS_HUNGRY: &str = "AND bead.standing = 'ready' AND bead.assignee IS NULL
   AND NOT EXISTS (SELECT 1 FROM context WHERE context.bead = bead.key AND context.state <> 'closed')
   AND NOT EXISTS (SELECT 1 FROM run WHERE run.bead = bead.key AND run.state <> 'ended')
   AND NOT EXISTS (SELECT 1 FROM dispatch_record AS record WHERE record.bead = bead.key AND record.hold IS NOT NULL) ";

impl Store {
    /// Open convoys with what in them nobody is on; empty ones and those that wait for others are among them.
    pub fn stranded(&mut self) -> std::result::Result<Vec<Stranded>, StoreError> {
        self.read(|tx| {
            let kitchen = Kitchen::open(tx)?;
            let mut found = Vec::new();
            for (key, id, title) in open_convoys(tx)? {
                let n_tracked = convoys::n_members(tx, key)?;
                let ready = kitchen.of_convoy(tx, key)?.into_iter().map(|(member, _)| member.id).collect();
                found.push(Stranded { id, title, n_tracked, ready });
            }
            Ok(found)
        })
    }

    /// The safety net: lets go of what dead workers hold, marks every member that nobody is on, feeds, and lands what is
    /// complete. // SPEC C5
    pub fn sweep(&mut self, stamp: &Stamp) -> std::result::Result<Swept, StoreError> {
        self.write(stamp, |tx| {
            let released = release_abandoned(tx, stamp)?;
            let hungry = format!("{OF_CONVOYS}{IN_OPEN_CONVOY}{IS_HUNGRY}");
            tx.prepare_cached(&format!("INSERT OR IGNORE INTO to_feed SELECT bead.key {hungry}"))?.execute([])?;
            let fed = settle(tx, stamp)?;
            tx.prepare_cached(
                "INSERT OR IGNORE INTO to_land SELECT key FROM bead WHERE issue_type = 'convoy' AND standing IS NOT NULL",
            )?
            .execute([])?;
            let landed = landing::settle(tx, stamp)?;
            Ok(Swept { released, fed, landed })
        })
    }

    /// Whether a sweep would find anything: nothing is written where there is nothing to do.
    pub fn needs_sweep(&mut self, now: Timestamp) -> std::result::Result<bool, StoreError> {
        self.read(|tx| {
            if ledger::is_any_due(tx, now)? {
                return Ok(true); // it may be a member, and only a write wakes it
            }
            let is_hungry = |tx: &Connection| -> Result<bool> {
                let kitchen = Kitchen::open(tx)?;
                let mut query = tx.prepare_cached(&format!("{MEMBER}{OF_CONVOYS}{IN_OPEN_CONVOY}{IS_HUNGRY}"))?;
                let mut rows = query.query([])?;
                while let Some(row) = rows.next()? {
                    if kitchen.accept(&member(row)?).is_some() {
                        return Ok(true);
                    }
                }
                Ok(false)
            };
            Ok((is_hungry(tx)? && !gt_core::defect!("imported-work-unnoticed"))
                || (landing::is_any_complete(tx)? && !gt_core::defect!("imported-end-unnoticed"))
                || !abandoned(tx)?.is_empty())
        })
    }

    /// Feeds stranded convoys, each at most once in a while and so many at a time. // SPEC R2
    pub fn feed_stranded(
        &mut self,
        cooldown: SignedDuration,
        max: usize,
        stamp: &Stamp,
    ) -> std::result::Result<Vec<FedConvoy>, StoreError> {
        self.write(stamp, |tx| {
            release_abandoned(tx, stamp)?;
            let (kitchen, mut table) = (Kitchen::open(tx)?, Table::lay(tx, stamp));
            let (mut answers, mut n_fed) = (Vec::new(), 0);
            for (key, id, title) in open_convoys(tx)? {
                let hungry = kitchen.of_convoy(tx, key)?;
                if hungry.is_empty() {
                    continue;
                }
                // What lies ahead was noted before the clock was set back, and holds nobody up.
                let fed_at = fed_at(tx, key)?.filter(|at| *at <= stamp.now);
                let cooling_until = fed_at.map(|at| at + cooldown).filter(|until| *until > stamp.now);
                let is_fed = cooling_until.is_none() && n_fed < max;
                let mut beads = Vec::new();
                for (member, rig) in hungry.into_iter().filter(|_| is_fed) {
                    table.serve(&member, rig)?;
                    beads.push(member.id);
                }
                if is_fed {
                    n_fed += 1;
                    note_fed(tx, key, &id, &beads, stamp)?;
                }
                answers.push(FedConvoy { id, title, beads, cooling_until });
            }
            Ok(answers)
        })
    }
}

/// Leaves what was touched to the next sweep.
pub(crate) fn forget(tx: &Connection) -> Result<()> {
    tx.execute("DELETE FROM to_feed", [])?;
    Ok(())
}

/// Leaves the members of a convoy to somebody else, or to the next sweep.
pub(crate) fn forget_members(tx: &Connection, convoy: Key) -> Result<()> {
    tx.prepare_cached(
        "DELETE FROM to_feed WHERE bead IN (SELECT bead.key FROM edge JOIN bead ON bead.id = edge.target
         WHERE edge.source = ?1 AND edge.type = 'tracks')",
    )?
    .execute([convoy])?;
    Ok(())
}

/// Marks the members of a convoy that has opened or grown.
pub(crate) fn mark_members(tx: &Connection, convoy: Key) -> Result<()> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO to_feed SELECT bead.key FROM edge JOIN bead ON bead.id = edge.target
         WHERE edge.source = ?1 AND edge.type = 'tracks' AND bead.standing = 'ready'",
    )?
    .execute([convoy])?;
    Ok(())
}

/// Puts in line whoever is marked and should be; returns their ids. The marks are gone afterwards either way.
pub(crate) fn settle(tx: &Connection, stamp: &Stamp) -> Result<Vec<String>> {
    let mut query =
        tx.prepare_cached("SELECT key FROM to_feed CROSS JOIN bead ON bead.key = to_feed.bead ORDER BY priority, key")?;
    let marked: Vec<Key> = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    if marked.is_empty() {
        return Ok(Vec::new());
    }
    let (kitchen, mut table) = (Kitchen::open(tx)?, Table::lay(tx, stamp));
    let mut fed = Vec::new();
    for key in marked {
        if let Some((member, rig)) = kitchen.one(tx, key)? {
            table.serve(&member, rig)?;
            fed.push(member.id);
        }
    }
    tx.prepare_cached("DELETE FROM to_feed")?.execute([])?;
    Ok(fed)
}

/// What is the same for everybody who is fed.
struct Kitchen {
    rigs: Vec<Rig>,
}

impl Kitchen {
    fn open(tx: &Connection) -> Result<Kitchen> {
        Ok(Kitchen { rigs: rigs::all(tx)? })
    }

    /// The rig that a member goes to, if dispatch takes it at all.
    fn accept(&self, member: &Member) -> Option<&Rig> {
        let Home::Rig(home) = rig::home(&member.id, member.bound.as_deref(), &self.rigs) else { return None };
        let rig = self.rigs.iter().find(|rig| rig.name == home.name)?;
        let takes_work = rig.state == RigState::Active || gt_core::defect!("parked-rig-fed");
        (status::is_slingable(member.issue_type.as_deref()) && takes_work).then_some(rig)
    }

    fn one(&self, tx: &Connection, key: Key) -> Result<Option<(Member, &Rig)>> {
        let mut sql =
            format!("{MEMBER}{OF_BEAD}{IN_OPEN_CONVOY}{IS_HUNGRY} AND bead.key = ?1 ORDER BY convoy.key LIMIT 1");
        if gt_core::defect!("fed-though-staged") {
            sql = sql.replace("AND convoy.status = 'open'", "");
        }
        if gt_core::defect!("fed-though-held") {
            sql = sql.replace("record.hold IS NOT NULL", "0");
        }
        let found = tx.prepare_cached(&sql)?.query_row([key], member).optional()?;
        Ok(found.and_then(|member| Some((self.accept(&member)?, member))).map(|(rig, member)| (member, rig)))
    }

    fn of_convoy(&self, tx: &Connection, convoy: Key) -> Result<Vec<(Member, &Rig)>> {
        let order = "AND convoy.key = ?1 ORDER BY bead.priority, bead.key";
        let mut query = tx.prepare_cached(&format!("{MEMBER}{OF_CONVOYS}{IN_OPEN_CONVOY}{IS_HUNGRY}{order}"))?;
        let members = query.query_map([convoy], member)?.collect::<rusqlite::Result<Vec<_>>>()?;
        let accepted = members.into_iter().filter_map(|member| Some((self.accept(&member)?, member)));
        Ok(accepted.map(|(rig, member)| (member, rig)).collect())
    }
}

fn member(row: &rusqlite::Row<'_>) -> rusqlite::Result<Member> {
    Ok(Member { key: row.get(0)?, id: row.get(1)?, issue_type: row.get(2)?, bound: row.get(3)?, convoy: row.get(4)? })
}

/// Puts members in line, in their order.
struct Table<'a> {
    tx: &'a Connection,
    stamp: &'a Stamp,
    terms: BTreeMap<Key, Terms>,
    n_served: i64,
}

impl<'a> Table<'a> {
    fn lay(tx: &'a Connection, stamp: &'a Stamp) -> Table<'a> {
        Table { tx, stamp, terms: BTreeMap::new(), n_served: 0 }
    }

    /// Makes the context of a member, as its convoy wants it.
    fn serve(&mut self, member: &Member, rig: &Rig) -> Result<()> {
        let at = self.stamp.now + SignedDuration::from_micros(self.n_served);
        self.n_served += 1;
        let terms = match self.terms.entry(member.convoy) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(terms(self.tx, member.convoy)?),
        };
        let fields = SlingFields {
            version: context::VERSION,
            work_bead_id: member.id.clone(),
            target_rig: rig.name.clone(),
            enqueued_at: time::format(at),
            merge: terms.merge.clone(),
            base_branch: terms.base_branch.clone(),
            convoy: Some(terms.id.clone()),
            ..SlingFields::default()
        };
        let new = NewContext {
            work: member.key,
            work_id: &member.id,
            prefix: &rig.prefix,
            assignee: None,
            fields: &fields,
            failures: 0,
            last_failure: None,
            retry_at: None,
            enqueued_at: at,
            how: "feed",
        };
        contexts::insert(self.tx, &new, self.stamp).map(drop)
    }
}

fn terms(tx: &Connection, convoy: Key) -> Result<Terms> {
    let (id, body): (String, String) = tx
        .prepare_cached("SELECT id, body FROM bead JOIN bead_body ON bead_body.bead = key WHERE key = ?1")?
        .query_row([convoy], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let body = rows::fields(&body, "a convoy's body")?;
    Ok(Terms { id, merge: body.text("merge"), base_branch: body.text("base_branch") })
}

fn open_convoys(tx: &Connection) -> Result<Vec<(Key, String, String)>> {
    let mut query = tx.prepare_cached(
        "SELECT key, id, title FROM bead WHERE issue_type = 'convoy' AND standing IS NOT NULL AND status = 'open'
         ORDER BY key",
    )?;
    let found = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn fed_at(tx: &Connection, convoy: Key) -> Result<Option<Timestamp>> {
    let at = tx
        .prepare_cached("SELECT fed_at FROM feeding WHERE convoy = ?1")?
        .query_row([convoy], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(at.map(timestamp))
}

fn note_fed(tx: &Connection, convoy: Key, id: &str, beads: &[String], stamp: &Stamp) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO feeding (convoy, fed_at) VALUES (?1, ?2) ON CONFLICT (convoy) DO UPDATE SET fed_at = excluded.fed_at",
    )?
    .execute(params![convoy, micros(stamp.now)])?;
    events::append(tx, stamp, EventType::ConvoyFed, Some(id), &json!({ "beads": beads }))
}

/// Members of open convoys that are on a hook without anybody there.
fn abandoned(tx: &Connection) -> Result<Vec<(Key, String)>> {
    let sql = format!("SELECT DISTINCT bead.key, bead.id {OF_CONVOYS}{IN_OPEN_CONVOY} AND {IS_ABANDONED}");
    let mut query = tx.prepare_cached(&sql)?;
    Ok(query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?)
}

fn release_abandoned(tx: &Connection, stamp: &Stamp) -> Result<Vec<String>> {
    let abandoned = abandoned(tx)?;
    abandoned.iter().try_for_each(|(key, _)| deacon::release(tx, *key, stamp))?;
    Ok(abandoned.into_iter().map(|(_, id)| id).collect())
}
