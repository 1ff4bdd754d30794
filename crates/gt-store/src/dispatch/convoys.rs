//! Convoys: beads that track others until all are closed. Every sling is tracked by one. // SPEC C1
//!
//! A convoy is a bead of type `convoy`; whoever it tracks are its `tracks` edges. Feeding, landing and staging have files of
//! their own.

use gt_core::bead::Bead;
use gt_core::convoy::ConvoyStatus;
use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::explain::Following;
use gt_core::refusal::Refusal;
use gt_core::rig::TOWN_PREFIX;
use gt_core::status::Status;
use gt_core::text::TITLE_CHARS_MAX;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use crate::beads::{self, NewBead};
use crate::dispatch::{contexts, feed, landing};
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::rows::{self, Key, timestamp};
use crate::store::{Stamp, Store};
use crate::{events, links, mail, query};

/// A convoy that is to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewConvoy {
    pub title: String,
    pub members: Vec<String>,
    /// Whether its caller lands it.
    pub is_owned: bool,
    pub owner: Option<String>,
    pub watchers: Vec<String>,
    pub merge: Option<String>,
    pub base_branch: Option<String>,
    pub molecule: Option<String>,
}

/// A convoy and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvoyProgress {
    pub id: String,
    pub title: String,
    pub status: String,
    pub is_owned: bool,
    pub created_at: Option<Timestamp>,
    pub n_done: i64,
    /// Of these, the deleted ones.
    pub n_deleted: i64,
    pub n_total: i64,
}

/// What became of a convoy that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub convoy: ConvoyProgress,
    pub has_landed: bool,
}

/// What was withdrawn with a convoy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withdrawn {
    /// Taken off the queue.
    pub beads: Vec<String>,
    /// Being worked on, and left to end by themselves.
    pub running: Vec<String>,
}

/// A convoy under way that tracks the bead; one that is staged tells nobody when it is done.
pub(crate) fn tracking(tx: &Connection, bead: &str) -> Result<Option<String>> {
    let mut query = tx.prepare_cached(
        "SELECT convoy.id FROM edge JOIN bead AS convoy ON convoy.key = edge.source
         WHERE edge.target = ?1 AND edge.type = 'tracks' AND convoy.issue_type = 'convoy'
           AND convoy.standing IS NOT NULL AND convoy.status NOT LIKE 'staged%' ORDER BY convoy.key LIMIT 1",
    )?;
    Ok(query.query_row([bead], |row| row.get(0)).optional()?)
}

/// The convoy that puts a bead in line: an open one before one that is staged.
pub(crate) fn following(tx: &Connection, bead: &str) -> Result<Option<Following>> {
    let mut query = tx.prepare_cached(
        "SELECT convoy.id, convoy.status FROM edge JOIN bead AS convoy ON convoy.key = edge.source
         WHERE edge.target = ?1 AND edge.type = 'tracks' AND convoy.issue_type = 'convoy'
           AND convoy.standing IS NOT NULL ORDER BY convoy.status <> 'open', convoy.key",
    )?;
    let mut rows = query.query([bead])?;
    while let Some(row) = rows.next()? {
        let status: String = row.get(1)?;
        if let Some(status) = ConvoyStatus::parse(&status) {
            return Ok(Some(Following { id: row.get(0)?, is_staged: status.is_staged() }));
        }
    }
    Ok(None)
}

/// Makes an open convoy and marks whom it tracks for the next pass.
pub(crate) fn create(tx: &Connection, new: &NewConvoy, stamp: &Stamp) -> Result<String> {
    let title: String = new.title.chars().take(TITLE_CHARS_MAX).collect();
    let mut convoy = Bead::new("", title);
    convoy.issue_type = Some("convoy".to_owned());
    convoy.edges = new.members.iter().map(|id| Edge::new(id, EdgeType::parse("tracks"))).collect();
    if new.is_owned {
        convoy.body.put("owned", &true);
    }
    let texts =
        [("owner", &new.owner), ("merge", &new.merge), ("base_branch", &new.base_branch), ("molecule", &new.molecule)];
    for (name, text) in texts {
        if let Some(text) = text {
            convoy.body.put(name, text);
        }
    }
    let mut seen = FxHashSet::default();
    let boxes = new.watchers.iter().map(|who| mail::box_of(who));
    let watchers = boxes.filter(|who| seen.insert(who.clone())).collect::<Vec<_>>();
    put_watchers(&mut convoy, &watchers);
    let id = beads::create(tx, &NewBead { prefix: format!("{TOWN_PREFIX}-cv"), parent: None, bead: convoy }, stamp)?;
    let data = json!({ "members": new.members, "owned": new.is_owned });
    events::append(tx, stamp, EventType::ConvoyCreated, Some(&id), &data)?;
    Ok(id)
}

/// Who is written to when a convoy lands.
pub(crate) fn watchers(convoy: &Bead) -> Vec<String> {
    let listed = convoy.body.get("watchers").and_then(|raw| serde_json::from_str(raw.get()).ok());
    listed.unwrap_or_default()
}

/// Everybody who watches any convoy.
pub(crate) fn all_watchers(tx: &Connection) -> Result<Vec<String>> {
    let mut query = tx.prepare_cached(
        "SELECT DISTINCT watcher.value FROM bead JOIN bead_body ON bead_body.bead = bead.key,
           json_each(body, '$.watchers') AS watcher WHERE bead.issue_type = 'convoy' AND watcher.type = 'text'",
    )?;
    Ok(query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn put_watchers(convoy: &mut Bead, watchers: &[String]) {
    if watchers.is_empty() {
        convoy.body.remove("watchers");
    } else {
        convoy.body.put("watchers", watchers);
    }
}

pub(crate) fn n_members(tx: &Connection, convoy: Key) -> Result<i64> {
    let sql = "SELECT count(*) FROM edge WHERE source = ?1 AND type = 'tracks'";
    Ok(tx.prepare_cached(sql)?.query_row([convoy], |row| row.get(0))?)
}

/// The convoy of that name.
pub(crate) fn require(tx: &Connection, id: &str) -> Result<(Key, Bead)> {
    let key = query::require(tx, id)?;
    let bead = rows::load(tx, key)?;
    if bead.type_word() != "convoy" {
        return Err(Refusal::NotAConvoy { id: id.to_owned() }.into());
    }
    Ok((key, bead))
}

/// Refuses a change of status that no convoy may make.
pub(crate) fn check_change(convoy: &Bead, next: &Status) -> Result<()> {
    let (from, to) = (ConvoyStatus::parse(convoy.status.as_str()), ConvoyStatus::parse(next.as_str()));
    // What a file brought along in a status of its own may be mended.
    let is_allowed = to.is_some_and(|to| from.is_none_or(|from| from.may_become(to)));
    if is_allowed {
        return Ok(());
    }
    let (from, to) = (convoy.status.as_str().to_owned(), next.as_str().to_owned());
    Err(Refusal::ConvoyStatus { id: convoy.id.clone(), from, to }.into())
}

const PROGRESS: &str = "SELECT convoy.id, convoy.title, convoy.status,
   coalesce((SELECT json_extract(body, '$.owned') FROM bead_body WHERE bead_body.bead = convoy.key), 0),
   convoy.created_at,
   (SELECT count(*) FROM edge JOIN bead AS member ON member.id = edge.target
      WHERE edge.source = convoy.key AND edge.type = 'tracks' AND member.status IN ('closed', 'tombstone')),
   (SELECT count(*) FROM edge WHERE edge.source = convoy.key AND edge.type = 'tracks'),
   (SELECT count(*) FROM edge JOIN bead AS member ON member.id = edge.target
      WHERE edge.source = convoy.key AND edge.type = 'tracks' AND member.status = 'tombstone')
 FROM bead AS convoy WHERE convoy.issue_type = 'convoy'";

fn progress(row: &rusqlite::Row<'_>) -> rusqlite::Result<ConvoyProgress> {
    Ok(ConvoyProgress {
        id: row.get(0)?,
        title: row.get(1)?,
        status: row.get(2)?,
        is_owned: row.get(3)?,
        created_at: row.get::<_, Option<i64>>(4)?.map(timestamp),
        n_done: row.get(5)?,
        n_total: row.get(6)?,
        n_deleted: row.get(7)?,
    })
}

impl ConvoyProgress {
    /// `2/3 done, 1 deleted`: a deleted bead holds nothing up, and was not done either.
    pub fn words(&self) -> String {
        let done = format!("{}/{} done", self.n_done - self.n_deleted, self.n_total);
        if self.n_deleted == 0 { done } else { format!("{done}, {} deleted", self.n_deleted) }
    }
}

fn progress_of(tx: &Connection, convoy: Key) -> Result<ConvoyProgress> {
    Ok(tx.prepare_cached(&format!("{PROGRESS} AND convoy.key = ?1"))?.query_row([convoy], progress)?)
}

impl Store {
    /// Open convoys, the latest first, at most so many; and how many there are.
    pub fn open_convoys(&mut self, limit: usize) -> std::result::Result<(Vec<ConvoyProgress>, i64), StoreError> {
        self.read(|tx| {
            let n_open = tx.query_row(
                "SELECT count(*) FROM bead WHERE standing IS NOT NULL AND issue_type = 'convoy'",
                [],
                |row| row.get(0),
            )?;
            let sql = format!("{PROGRESS} AND convoy.standing IS NOT NULL ORDER BY convoy.key DESC LIMIT ?1");
            let mut query = tx.prepare_cached(&sql)?;
            let found = query.query_map([limit as i64], progress)?;
            Ok((found.collect::<rusqlite::Result<_>>()?, n_open))
        })
    }

    /// Convoys, the oldest first: the ones that are not closed, or all.
    pub fn convoys(&mut self, is_all: bool) -> std::result::Result<Vec<ConvoyProgress>, StoreError> {
        self.read(|tx| {
            let active = if is_all { "" } else { "AND convoy.standing IS NOT NULL" };
            let mut query = tx.prepare_cached(&format!("{PROGRESS} {active} ORDER BY convoy.key"))?;
            Ok(query.query_map([], progress)?.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Makes a convoy of beads that are there. The next pass puts in line what of it is ready.
    pub fn create_convoy(&mut self, new: &NewConvoy, stamp: &Stamp) -> std::result::Result<String, StoreError> {
        self.write(stamp, |tx| {
            for id in &new.members {
                query::require(tx, id)?;
            }
            let id = create(tx, new, stamp)?;
            touch(tx, query::require(tx, &id)?)?;
            Ok(id)
        })
    }

    /// Tracks more beads, and opens a convoy that was closed again; returns those that are new in it.
    pub fn add_to_convoy(
        &mut self,
        convoy: &str,
        members: &[String],
        stamp: &Stamp,
    ) -> std::result::Result<Vec<String>, StoreError> {
        self.write(stamp, |tx| {
            let (key, mut bead) = require(tx, convoy)?;
            let mut ledger = Ledger::new(tx, stamp.now);
            let mut added = Vec::new();
            for id in members {
                query::require(tx, id)?;
                let edge = Edge::new(id, EdgeType::parse("tracks"));
                links::refuse_cycle(tx, &bead.id, &edge)?;
                if bead.edges.iter().any(|known| known.target == edge.target && known.kind == edge.kind) {
                    continue;
                }
                ledger.link(key, &edge)?;
                bead.edges.push(edge);
                added.push(id.clone());
            }
            if added.is_empty() {
                return Ok(added);
            }
            let is_closed = !bead.status.is_active();
            if is_closed {
                bead.set_status(Status::Open, stamp.now);
                bead.body.remove("close_reason");
            }
            bead.updated_at = Some(stamp.now);
            ledger.rewrite(key, &bead)?;
            ledger.flush()?;
            if is_closed {
                let data = json!({ "title": bead.title, "from": "closed", "to": "open", "reason": null });
                events::append(tx, stamp, EventType::BeadReopened, Some(&bead.id), &data)?;
            }
            changed(tx, &bead.id, &json!({ "added": added }), stamp)?;
            touch(tx, key)?;
            Ok(added)
        })
    }

    /// No longer tracks these beads; all must be in it.
    pub fn remove_from_convoy(
        &mut self,
        convoy: &str,
        members: &[String],
        stamp: &Stamp,
    ) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let (key, mut bead) = require(tx, convoy)?;
            let mut ledger = Ledger::new(tx, stamp.now);
            for id in members {
                if !ledger.unlink(key, id, &EdgeType::parse("tracks"))? {
                    return Err(Refusal::NotTracked { convoy: convoy.to_owned(), bead: id.clone() }.into());
                }
                bead.edges.retain(|edge| edge.target != *id || edge.kind.as_str() != "tracks");
            }
            bead.updated_at = Some(stamp.now);
            ledger.rewrite(key, &bead)?;
            ledger.flush()?;
            changed(tx, &bead.id, &json!({ "removed": members }), stamp)
        })
    }

    /// Has somebody written to when it lands, or no longer; says whether that changed anything.
    pub fn watch_convoy(
        &mut self,
        convoy: &str,
        who: &str,
        watches: bool,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let (key, mut bead) = require(tx, convoy)?;
            let (mut known, who) = (watchers(&bead), mail::box_of(who));
            let is_who = |one: &String| mail::box_of(one) == who;
            if known.iter().any(is_who) == watches {
                return Ok(false);
            }
            known.retain(|one| !is_who(one));
            known.extend(watches.then(|| who.clone()));
            put_watchers(&mut bead, &known);
            bead.updated_at = Some(stamp.now);
            rows::update(tx, key, &bead)?;
            changed(tx, &bead.id, &json!({ "watchers": known }), stamp)?;
            Ok(true)
        })
    }

    /// Lands a convoy, or every convoy, that is complete. // SPEC C1
    pub fn check_convoys(
        &mut self,
        convoy: Option<&str>,
        stamp: &Stamp,
    ) -> std::result::Result<Vec<Checked>, StoreError> {
        self.write(stamp, |tx| {
            let keys = match convoy {
                Some(id) => vec![require(tx, id)?.0],
                None => tx
                    .prepare_cached(
                        "SELECT key FROM bead WHERE issue_type = 'convoy' AND standing IS NOT NULL ORDER BY key",
                    )?
                    .query_map([], |row| row.get(0))?
                    .collect::<rusqlite::Result<Vec<Key>>>()?,
            };
            for key in &keys {
                note_touched(tx, *key)?;
            }
            let landed = landing::settle(tx, stamp)?;
            keys.into_iter()
                .map(|key| {
                    let convoy = progress_of(tx, key)?;
                    Ok(Checked { has_landed: landed.contains(&convoy.id), convoy })
                })
                .collect()
        })
    }

    /// Closes a convoy by hand; `false`: it was closed. With open beads in it only by force.
    pub fn close_convoy(
        &mut self,
        convoy: &str,
        reason: Option<&str>,
        force: bool,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let (key, mut bead) = require(tx, convoy)?;
            if !bead.status.is_active() {
                return Ok(false);
            }
            refuse_open(tx, key, &bead, force)?;
            landing::close(tx, key, &mut bead, reason.unwrap_or("closed by hand"), stamp)?;
            events::append(tx, stamp, EventType::ConvoyClosed, Some(&bead.id), &json!({ "reason": reason }))?;
            Ok(true)
        })
    }

    /// Lands an owned convoy; `false`: it was closed.
    pub fn land_convoy(&mut self, convoy: &str, force: bool, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let (key, bead) = require(tx, convoy)?;
            if !bead.status.is_active() {
                return Ok(false);
            }
            if !progress_of(tx, key)?.is_owned {
                return Err(Refusal::NotOwned { id: bead.id }.into());
            }
            refuse_open(tx, key, &bead, force)?;
            landing::land(tx, key, bead, "landed by its owner", stamp)?;
            Ok(true)
        })
    }

    /// Ends a convoy, and takes off the queue whatever of it has not started and is in no other open convoy.
    pub fn cancel_convoy(
        &mut self,
        convoy: &str,
        reason: Option<&str>,
        stamp: &Stamp,
    ) -> std::result::Result<Option<Withdrawn>, StoreError> {
        self.write(stamp, |tx| {
            let (key, mut bead) = require(tx, convoy)?;
            if !bead.status.is_active() {
                return Ok(None);
            }
            landing::close(tx, key, &mut bead, reason.unwrap_or("cancelled"), stamp)?;
            let mut withdrawn = Withdrawn::default();
            for edge in bead.edges.iter().filter(|edge| edge.kind.as_str() == "tracks") {
                let Some(member) = rows::key_of(tx, &edge.target)? else { continue };
                if !query::node(tx, member)?.facts.status.is_active() {
                    continue; // done, though its context may not be cleaned up yet
                }
                if following(tx, &edge.target)?.is_some_and(|other| !other.is_staged)
                    || gt_core::defect!("cancel-withdraws-nobody")
                {
                    continue;
                }
                match contexts::withdraw(tx, member, stamp)? {
                    Some(true) => withdrawn.beads.push(edge.target.clone()),
                    Some(false) => withdrawn.running.push(edge.target.clone()),
                    None => {}
                }
            }
            let data = json!({ "reason": reason, "withdrawn": withdrawn.beads, "running": withdrawn.running });
            events::append(tx, stamp, EventType::ConvoyCancelled, Some(&bead.id), &data)?;
            Ok(Some(withdrawn))
        })
    }
}

/// Has a convoy looked at that was made or has grown.
fn touch(tx: &Connection, convoy: Key) -> Result<()> {
    feed::mark_members(tx, convoy)?;
    note_touched(tx, convoy)
}

fn note_touched(tx: &Connection, convoy: Key) -> Result<()> {
    tx.prepare_cached("INSERT OR IGNORE INTO to_land VALUES (?1)")?.execute([convoy])?;
    Ok(())
}

fn changed(tx: &Connection, id: &str, data: &Value, stamp: &Stamp) -> Result<()> {
    events::append(tx, stamp, EventType::ConvoyChanged, Some(id), data)
}

fn refuse_open(tx: &Connection, key: Key, convoy: &Bead, force: bool) -> Result<()> {
    let progress = progress_of(tx, key)?;
    let n = progress.n_total - progress.n_done;
    if n > 0 && !force {
        return Err(Refusal::ConvoyOpen { id: convoy.id.clone(), n }.into());
    }
    Ok(())
}
