//! The refinery's queue: what waits to be merged, what was, and what came back. // SPEC M1, M2
//!
//! Whether something is merged is git's to say; here it is remembered, and what follows from it for the bead happens in the
//! same transaction. What a returned merge becomes is `returned.rs`'s, what a landed one means for beads `landed.rs`'s.

mod landed;
mod over;
mod questions;
mod returned;

use gt_core::event::EventType;
use gt_core::id::IdSeed;
use gt_core::merge::{MergeState, Strategy};
use gt_core::names;
use gt_core::refusal::Refusal;
use gt_core::status::Status;
use gt_core::text::one_line;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

pub(crate) use self::over::follow;
pub(crate) use self::returned::rework_of;
pub use self::returned::{ReturnedAs, Rework};
use crate::dispatch::records::{self, Hold};
use crate::dispatch::runs::Run;
use crate::error::{Result, StoreError};
use crate::events;
use crate::ledger::Ledger;
use crate::rows::{self, Key, micros, timestamp};
use crate::store::{Stamp, Store};

/// Work that is handed to the refinery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOver {
    /// Chosen by the caller, who keeps the commit under it.
    pub id: String,
    pub target: String,
    pub branch: String,
    /// The commit.
    pub tip: String,
    pub strategy: Strategy,
    /// Why a rework takes the place of the commits that came back.
    pub replaces: Option<String>,
}

/// A merge as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    pub id: String,
    pub bead: String,
    pub title: String,
    pub run: String,
    pub rig: String,
    pub target: String,
    pub branch: String,
    pub tip: String,
    pub strategy: Strategy,
    pub state: MergeState,
    pub queued_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reason: Option<String>,
    /// The commit that has it in the target.
    pub merged: Option<String>,
    pub request: Option<String>,
    /// The bead that was made of it when it came back.
    pub rework: Option<String>,
    pub patch: Option<String>,
    /// Why a rework takes the place of the commits that came back.
    pub replaces: Option<String>,
    pub(crate) key: Key,
}

/// A branch of a rig that work is merged into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub rig: String,
    pub branch: String,
}

/// Why nothing is merged into a target for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetHold {
    pub since: Timestamp,
    /// The next try.
    pub until: Timestamp,
    pub tries: i64,
    pub reason: String,
}

/// That nothing is merged until somebody resumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefineryPause {
    /// `None`: every rig.
    pub rig: Option<String>,
    pub at: Timestamp,
    pub by: String,
    pub reason: Option<String>,
}

const SELECT: &str =
    "SELECT merge.id, bead.id, bead.title, merge.run, merge.rig, merge.target, merge.branch, merge.tip,
    merge.strategy, merge.state, merge.queued_at, merge.ended_at, merge.reason, merge.merged, merge.request,
    (SELECT id FROM bead WHERE key = merge.rework), merge.patch, merge.replaces, merge.bead
  FROM merge JOIN bead ON bead.key = merge.bead";
const IS_LIVE: &str = "merge.state IN ('waiting', 'requested')";
const IS_LANDING: &str = "rig = ?1 AND target = ?2 AND state IN ('waiting', 'requested') AND landing = 1";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Merge> {
    Ok(Merge {
        id: row.get(0)?,
        bead: row.get(1)?,
        title: row.get(2)?,
        run: row.get(3)?,
        rig: row.get(4)?,
        target: row.get(5)?,
        branch: row.get(6)?,
        tip: row.get(7)?,
        strategy: Strategy::parse(row.get_ref(8)?.as_str()?).unwrap_or_default(),
        state: MergeState::parse(row.get_ref(9)?.as_str()?).unwrap_or(MergeState::Dropped),
        queued_at: timestamp(row.get(10)?),
        ended_at: row.get::<_, Option<i64>>(11)?.map(timestamp),
        reason: row.get(12)?,
        merged: row.get(13)?,
        request: row.get(14)?,
        rework: row.get(15)?,
        patch: row.get(16)?,
        replaces: row.get(17)?,
        key: row.get(18)?,
    })
}

fn select(tx: &Connection, rest: &str, arguments: impl rusqlite::Params) -> Result<Vec<Merge>> {
    let mut query = tx.prepare_cached(&format!("{SELECT} WHERE {rest}"))?;
    Ok(query.query_map(arguments, from_row)?.collect::<rusqlite::Result<_>>()?)
}

fn by_id(tx: &Connection, id: &str) -> Result<Merge> {
    match select(tx, "merge.id = ?1", [id])?.pop() {
        Some(merge) => Ok(merge),
        None => Err(StoreError::NoMerge { id: one_line(id), near: questions::near_ids(tx, id)? }),
    }
}

/// The merge as it is now, if it is under way and still about the commit that the caller has worked on: it may have been dropped
/// and put into line again with another one.
fn as_known(tx: &Connection, known: &Merge) -> Result<Option<Merge>> {
    let merge = by_id(tx, &known.id)?;
    let is_same = merge.tip == known.tip || gt_core::defect!("other-commit-judged");
    Ok(Some(merge).filter(|merge| merge.state.is_live() && is_same))
}

/// The merge of a bead that is under way.
pub(crate) fn live_of(tx: &Connection, bead: Key) -> Result<Option<Merge>> {
    Ok(select(tx, &format!("merge.bead = ?1 AND {IS_LIVE}"), [bead])?.pop())
}

/// What is under way in a rig.
pub(crate) fn of_rig(tx: &Connection, rig: &str) -> Result<Vec<Merge>> {
    select(tx, &format!("merge.rig = ?1 AND {IS_LIVE} ORDER BY merge.place"), [rig])
}

impl Store {
    /// An id for a merge that nobody has yet.
    pub fn new_merge_id(&mut self, bead: &str, prefix: &str, stamp: &Stamp) -> std::result::Result<String, StoreError> {
        self.read(|tx| {
            let prefix = format!("{prefix}-mr");
            let seed = IdSeed { prefix: &prefix, title: bead, description: "", creator: &stamp.actor, at: stamp.now };
            for id in seed.proposals(1000) {
                if select(tx, "merge.id = ?1", [&id])?.is_empty() && rows::key_of(tx, &id)?.is_none() {
                    return Ok(id);
                }
            }
            Err(Refusal::NoFreeId { prefix }.into())
        })
    }

    pub fn merge(&mut self, id: &str) -> std::result::Result<Merge, StoreError> {
        self.read(|tx| by_id(tx, id))
    }

    /// The merge of a run, the latest first.
    pub fn merge_of_run(&mut self, run: &str) -> std::result::Result<Option<Merge>, StoreError> {
        self.read(|tx| Ok(select(tx, "merge.run = ?1 ORDER BY merge.place DESC LIMIT 1", [run])?.pop()))
    }

    /// Merges in the order of the queue; without `all` those that are under way.
    pub fn merges(&mut self, all: bool) -> std::result::Result<Vec<Merge>, StoreError> {
        let which = if all { "true" } else { IS_LIVE };
        self.read(|tx| select(tx, &format!("{which} ORDER BY merge.rig, merge.target, merge.place"), []))
    }

    /// What is to be merged into a target, in its order.
    pub fn waiting_merges(&mut self, target: &Target) -> std::result::Result<Vec<Merge>, StoreError> {
        let rest = format!("merge.rig = ?1 AND merge.target = ?2 AND {IS_LIVE} ORDER BY merge.place");
        self.read(|tx| select(tx, &rest, [&target.rig, &target.branch]))
    }

    /// Targets into which something can be merged now.
    pub fn due_targets(&mut self, now: Timestamp) -> std::result::Result<Vec<Target>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached(&format!(
                "SELECT DISTINCT merge.rig, merge.target FROM merge
                   LEFT JOIN merge_hold ON merge_hold.rig = merge.rig AND merge_hold.target = merge.target
                 WHERE {IS_LIVE} AND (until IS NULL OR until <= ?1 OR since > ?1)
                   AND NOT EXISTS (SELECT 1 FROM merge_pause WHERE merge_pause.rig IN ('', merge.rig))
                 ORDER BY merge.rig, merge.target"
            ))?;
            let rows = query.query_map([micros(now)], |row| Ok(Target { rig: row.get(0)?, branch: row.get(1)? }))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// When a target that is held is tried again.
    pub fn next_merge_at(&mut self, now: Timestamp) -> std::result::Result<Option<Timestamp>, StoreError> {
        if gt_core::defect!("hold-never-tried-again") {
            return Ok(None);
        }
        self.read(|tx| {
            let mut query = tx.prepare_cached(&format!(
                "SELECT min(until) FROM merge_hold WHERE until > ?1 AND since <= ?1 AND EXISTS (SELECT 1 FROM merge
                   WHERE merge.rig = merge_hold.rig AND merge.target = merge_hold.target AND {IS_LIVE})"
            ))?;
            Ok(query.query_row([micros(now)], |row| row.get::<_, Option<i64>>(0))?.map(timestamp))
        })
    }

    /// Records that these are part of their target by now; closes their beads. Those that they are the reworks of are closed with
    /// them if they are among `carried`, whose commits are there too, or were replaced. Returns those of which it is recorded: the others
    /// were decided against, or are about another commit by now.
    pub fn record_merged(
        &mut self,
        merges: &[Merge],
        commit: &str,
        carried: &[String],
        stamp: &Stamp,
    ) -> std::result::Result<Vec<Merge>, StoreError> {
        self.write(stamp, |tx| {
            let mut recorded = Vec::new();
            for known in merges {
                if let Some(merge) = as_known(tx, known)? {
                    landed::record(tx, &merge, commit, carried, stamp)?;
                    recorded.push(merge);
                }
            }
            Ok(recorded)
        })
    }

    /// From now on nobody can decide against these; `false`: somebody has, and none of them lands. What they bring is agents' work.
    pub fn begin_landing(
        &mut self,
        merges: &[Merge],
        commits: &[String],
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            for merge in merges {
                if as_known(tx, merge)?.is_none() && !gt_core::defect!("decided-against-lands") {
                    return Ok(false);
                }
            }
            let mut record = tx.prepare_cached("INSERT OR IGNORE INTO agent_commit (id) VALUES (?1)")?;
            commits.iter().try_for_each(|commit| record.execute([commit]).map(drop))?;
            let mut mark = tx.prepare_cached("UPDATE merge SET landing = 1 WHERE id = ?1")?;
            merges.iter().try_for_each(|merge| mark.execute([&merge.id]).map(drop))?;
            Ok(true)
        })
    }

    /// Whether merges into a target are landing, so that nobody can have decided against them.
    pub fn is_landing(&mut self, target: &Target) -> std::result::Result<bool, StoreError> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM merge WHERE {IS_LANDING})");
        self.read(|tx| Ok(tx.prepare_cached(&sql)?.query_row([&target.rig, &target.branch], |row| row.get(0))?))
    }

    /// Whoever moved the target has died or given up.
    pub fn end_landing(&mut self, target: &Target, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        if !self.is_landing(target)? {
            return Ok(());
        }
        self.write(stamp, |tx| {
            let sql = format!("UPDATE merge SET landing = 0 WHERE {IS_LANDING}");
            tx.execute(&sql, [&target.rig, &target.branch])?;
            Ok(())
        })
    }

    /// Remembers that a pull request asks for a merge; `false`: it does not wait any more, or for another commit.
    pub fn record_requested(
        &mut self,
        merge: &Merge,
        request: &str,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let Some(merge) = as_known(tx, merge)?.filter(|merge| merge.state == MergeState::Waiting) else {
                return Ok(false);
            };
            tx.execute("UPDATE merge SET state = 'requested', request = ?2 WHERE id = ?1", [&merge.id, request])?;
            append(tx, EventType::MergeRequested, &merge, &json!({ "request": request }), stamp)?;
            Ok(true)
        })
    }

    /// Nothing is merged into a target until then, for a reason.
    pub fn hold_target(
        &mut self,
        target: &Target,
        reason: &str,
        until: Timestamp,
        stamp: &Stamp,
    ) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let before = hold_of(tx, target)?;
            let is_new = before.as_ref().is_none_or(|hold| hold.reason != reason);
            let since = before.as_ref().filter(|_| !is_new).map_or(stamp.now, |hold| hold.since.min(stamp.now));
            let tries = before.map_or(0, |hold| hold.tries) + 1;
            tx.prepare_cached(
                "INSERT OR REPLACE INTO merge_hold (rig, target, since, until, tries, reason)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![target.rig, target.branch, micros(since), micros(until), tries, reason])?;
            if is_new {
                let data = json!({ "rig": target.rig, "target": target.branch, "reason": reason });
                events::append(tx, stamp, EventType::MergeHeld, None, &data)?;
            }
            Ok(())
        })
    }

    /// Targets that are held are tried again now. The reason stays until then.
    pub fn retry_held_targets(&mut self, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            tx.prepare_cached("UPDATE merge_hold SET until = ?1, tries = 1 WHERE until > ?1")?
                .execute([micros(stamp.now)])?;
            Ok(())
        })
    }

    /// What held a target has passed.
    pub fn free_target(&mut self, target: &Target, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        if self.read(|tx| hold_of(tx, target))?.is_none() {
            return Ok(());
        }
        self.write(stamp, |tx| {
            let sql = "DELETE FROM merge_hold WHERE rig = ?1 AND target = ?2";
            if tx.execute(sql, [&target.rig, &target.branch])? > 0 {
                let data = json!({ "rig": target.rig, "target": target.branch });
                events::append(tx, stamp, EventType::MergeFreed, None, &data)?;
            }
            Ok(())
        })
    }

    pub fn target_hold(&mut self, target: &Target) -> std::result::Result<Option<TargetHold>, StoreError> {
        self.read(|tx| hold_of(tx, target))
    }

    /// Nothing more is merged, in a rig or anywhere. Says whether that is new.
    pub fn pause_refinery(
        &mut self,
        rig: Option<&str>,
        reason: Option<&str>,
        stamp: &Stamp,
    ) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let sql = "INSERT OR IGNORE INTO merge_pause (rig, at, by, reason) VALUES (?1, ?2, ?3, ?4)";
            let n = tx.execute(sql, params![rig.unwrap_or_default(), micros(stamp.now), stamp.actor, reason])?;
            if n > 0 {
                let data = json!({ "rig": rig, "reason": reason });
                events::append(tx, stamp, EventType::RefineryPaused, None, &data)?;
            }
            Ok(n > 0)
        })
    }

    /// Takes a pause back, of a rig or every one. Says whether there was one.
    pub fn resume_refinery(&mut self, rig: Option<&str>, stamp: &Stamp) -> std::result::Result<bool, StoreError> {
        self.write(stamp, |tx| {
            let n = match rig {
                Some(rig) => tx.execute("DELETE FROM merge_pause WHERE rig = ?1", [rig])?,
                None => tx.execute("DELETE FROM merge_pause", [])?,
            };
            if n > 0 {
                events::append(tx, stamp, EventType::RefineryResumed, None, &json!({ "rig": rig }))?;
            }
            Ok(n > 0)
        })
    }

    pub fn refinery_pauses(&mut self) -> std::result::Result<Vec<RefineryPause>, StoreError> {
        self.read(|tx| {
            let mut query = tx.prepare_cached("SELECT rig, at, by, reason FROM merge_pause ORDER BY rig")?;
            let rows = query.query_map([], |row| {
                let rig: String = row.get(0)?;
                let rig = Some(rig).filter(|rig| !rig.is_empty());
                Ok(RefineryPause { rig, at: timestamp(row.get(1)?), by: row.get(2)?, reason: row.get(3)? })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Puts a merge that came back or was dropped into line again, as its branch is now.
    pub fn retry_merge(&mut self, id: &str, tip: &str, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| returned::retry(tx, &by_id(tx, id)?, tip, stamp))
    }

    /// Takes a merge out of the queue: its bead is open again, its branch stays.
    pub fn drop_merge(&mut self, id: &str, reason: &str, stamp: &Stamp) -> std::result::Result<(), StoreError> {
        self.write(stamp, |tx| {
            let merge = by_id(tx, id)?;
            if !merge.state.is_live() {
                return Err(Refusal::MergeOver { id: id.to_owned(), state: merge.state.as_str() }.into());
            }
            drop_and_give_back(tx, &merge, reason, stamp)?;
            // Whoever decided against it has not asked for it to be done again.
            records::hold(tx, merge.key, Hold::Cleared, None)
        })
    }
}

/// Hands the work of a run over: its bead is the refinery's from now on. One that waits already is replaced.
pub(crate) fn hand_over(tx: &Connection, run: &Run, work: &HandOver, stamp: &Stamp) -> Result<()> {
    if let Some(older) = live_of(tx, run.key)?.filter(|_| !gt_core::defect!("older-hand-over-stays")) {
        drop_live(tx, &older, &format!("{} replaces it", work.id), stamp)?;
    }
    let place: i64 =
        tx.prepare_cached("SELECT coalesce(max(place), 0) + 1 FROM merge")?.query_row([], |row| row.get(0))?;
    tx.prepare_cached(
        "INSERT INTO merge (id, place, bead, run, rig, target, branch, tip, strategy, state, queued_at, replaces)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'waiting', ?10, ?11)",
    )?
    .execute(params![
        work.id,
        place,
        run.key,
        run.id,
        run.rig,
        work.target,
        work.branch,
        work.tip,
        work.strategy.as_str(),
        micros(stamp.now),
        work.replaces,
    ])?;
    let mut bead = rows::load(tx, run.key)?;
    bead.set_status(Status::InProgress, stamp.now);
    bead.assignee = Some(names::refinery(&run.rig));
    bead.updated_at = Some(stamp.now);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(run.key, &bead)?;
    ledger.flush()?;
    let mut data = json!({ "commit": work.tip });
    if let Some(why) = &work.replaces {
        data["replaces"] = json!(why);
    }
    append(tx, EventType::MergeQueued, &by_id(tx, &work.id)?, &data, stamp)
}

/// A merge that somebody decided against is no more in the queue; its bead stays where it is.
pub(crate) fn drop_live(tx: &Connection, merge: &Merge, reason: &str, stamp: &Stamp) -> Result<()> {
    let sql = "SELECT landing FROM merge WHERE id = ?1";
    if tx.prepare_cached(sql)?.query_row([&merge.id], |row| row.get(0))? {
        return Err(Refusal::MergeLands { id: merge.id.clone(), target: merge.target.clone() }.into());
    }
    tx.prepare_cached("UPDATE merge SET state = 'dropped', ended_at = ?2, reason = ?3 WHERE id = ?1")?
        .execute(params![merge.id, micros(stamp.now), reason])?;
    append(tx, EventType::MergeDropped, merge, &json!({ "reason": reason }), stamp)
}

/// The same, and its bead is open again.
pub(crate) fn drop_and_give_back(tx: &Connection, merge: &Merge, reason: &str, stamp: &Stamp) -> Result<()> {
    drop_live(tx, merge, reason, stamp)?;
    give_back(tx, merge, None, stamp)
}

/// The bead of a merge that is over is the refinery's no more.
fn give_back(tx: &Connection, merge: &Merge, note: Option<&str>, stamp: &Stamp) -> Result<()> {
    let mut bead = rows::load(tx, merge.key)?;
    if bead.status.is_active() && bead.assignee == Some(names::refinery(&merge.rig)) {
        bead.set_status(Status::Open, stamp.now);
        bead.assignee = None;
    }
    if let Some(note) = note {
        let notes = bead.body.text("notes").filter(|notes| !notes.trim().is_empty());
        let notes = notes.map_or_else(|| note.to_owned(), |notes| format!("{}\n\n{note}", notes.trim_end()));
        bead.body.put("notes", &notes);
    }
    bead.updated_at = Some(stamp.now);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(merge.key, &bead)?;
    ledger.flush()?;
    let data = json!({ "rig": merge.rig, "status": bead.status.as_str(), "merge": merge.id });
    events::append_of_run(tx, stamp, EventType::BeadReleased, &bead.id, &merge.run, &data)
}

fn hold_of(tx: &Connection, target: &Target) -> Result<Option<TargetHold>> {
    let mut query =
        tx.prepare_cached("SELECT since, until, tries, reason FROM merge_hold WHERE rig = ?1 AND target = ?2")?;
    let hold = query.query_row([&target.rig, &target.branch], |row| {
        Ok(TargetHold {
            since: timestamp(row.get(0)?),
            until: timestamp(row.get(1)?),
            tries: row.get(2)?,
            reason: row.get(3)?,
        })
    });
    Ok(hold.optional()?)
}

/// How far the work of a bead is from its target, in words.
pub(crate) fn reason(tx: &Connection, bead: Key) -> Result<Option<gt_core::explain::Reason>> {
    let Some(merge) = live_of(tx, bead)? else { return Ok(None) };
    let Merge { id, rig, target, .. } = &merge;
    let place: i64 = tx
        .prepare_cached(&format!(
            "SELECT count(*) FROM merge WHERE rig = ?1 AND target = ?2 AND {IS_LIVE}
               AND place <= (SELECT place FROM merge WHERE id = ?3)"
        ))?
        .query_row([rig, target, id], |row| row.get(0))?;
    let waits = match &merge.request {
        Some(request) => format!("its work waits for the pull request {} into {target}", one_line(request)),
        None => format!("its work is done and waits to be merged into {target}, at place {place} ({id})"),
    };
    let pause = "SELECT by FROM merge_pause WHERE rig IN ('', ?1) LIMIT 1";
    let paused_by: Option<String> = tx.prepare_cached(pause)?.query_row([rig], |row| row.get(0)).optional()?;
    let hold = hold_of(tx, &Target { rig: rig.clone(), branch: target.clone() })?;
    let message = match (paused_by, hold) {
        (Some(by), _) => format!("{waits}; {} has paused the refinery: `gt refinery resume`", one_line(&by)),
        (None, Some(hold)) => format!("{waits}; merging into {target} is held: {}", one_line(&hold.reason)),
        (None, None) => waits,
    };
    Ok(Some(gt_core::explain::Reason { code: "merging", message }))
}

fn append(tx: &Connection, kind: EventType, merge: &Merge, more: &serde_json::Value, stamp: &Stamp) -> Result<()> {
    let mut data = json!({ "merge": merge.id, "rig": merge.rig, "target": merge.target, "branch": merge.branch });
    if let (Some(data), Some(more)) = (data.as_object_mut(), more.as_object()) {
        data.extend(more.clone());
    }
    events::append_of_run(tx, stamp, kind, &merge.bead, &merge.run, &data)
}
