//! Sling: guards, contexts and their convoy in one transaction, in direct mode the claim too. // SPEC P1–P3, D1, C1

use std::collections::BTreeMap;

use gt_core::context::{self, SlingFields};
use gt_core::convoy::ConvoyStatus;
use gt_core::event::EventType;
use gt_core::refusal::Refusal;
use gt_core::rig::{self, Home, Rig, RigState};
use gt_core::run::{Outcome, StopOrder};
use gt_core::status::{self, Status};
use gt_core::{bead::Bead, time};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashSet;
use serde_json::json;

use crate::dispatch::claim::{self, Assignment, Claimant};
use crate::dispatch::contexts::{self, NewContext};
use crate::dispatch::convoys::{self, NewConvoy};
use crate::dispatch::merges;
use crate::dispatch::records;
use crate::dispatch::runs::{self, Run};
use crate::dispatch::steps::{self, PlannedStep};
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::rows::{self, Key};
use crate::store::{Stamp, Store};
use crate::{events, query, rigs};

/// What somebody wants to be done.
#[derive(Debug, Clone)]
pub struct Sling {
    pub beads: Vec<String>,
    /// Where; `None`: each bead's own rig.
    pub rig: Option<String>,
    /// How; which bead, where and when is filled in.
    pub fields: SlingFields,
    /// Takes a bead away from whoever has it, and into a rig that is not its own.
    pub force: bool,
    pub convoy: ConvoyWish,
    /// Whether one refusal is an answer among others instead of the end.
    pub is_batch: bool,
    /// By bead, what its formula comes to; for one without, the fields say all.
    pub prescriptions: BTreeMap<String, Prescription>,
}

/// The formula by which one bead is to be worked on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prescription {
    pub formula: Option<String>,
    /// For work that is done step by step: all of them, in order.
    pub steps: Vec<PlannedStep>,
    /// Why it cannot be used for this bead.
    pub objection: Option<String>,
}

/// How a sling is to be tracked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConvoyWish {
    /// By a new convoy, for what no open one tracks; the title is the bead's own where none is given.
    Auto {
        title: Option<String>,
    },
    No,
    /// By the one that is launched as a whole. Nobody named its beads, so what is assigned to somebody stays his.
    Launched,
}

/// What became of one bead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slung {
    pub bead: String,
    pub title: String,
    pub rig: Option<String>,
    pub outcome: SlingOutcome,
    pub context: Option<String>,
    pub convoy: Option<String>,
    pub reason: Option<String>,
    /// It is in somebody's hands, and may be free another time.
    pub is_taken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlingOutcome {
    Scheduled,
    AlreadyScheduled,
    Skipped,
    Refused,
}

/// A bead and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Homed {
    pub id: String,
    pub title: String,
    pub rig: Option<String>,
}

/// What lies below an epic or in a convoy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    pub id: String,
    pub title: String,
    pub kind: LoadKind,
    /// A convoy that starts nothing before it is launched.
    pub is_staged: bool,
    pub members: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadKind {
    Epic,
    Convoy,
}

/// What is called so is a convoy, whatever its type says.
pub(crate) const CONVOY_IDS: &str = "hq-cv-";

impl Store {
    /// Schedules beads, and with a claimant starts at once what may.
    pub fn sling(
        &mut self,
        sling: &Sling,
        claimant: Option<&mut Claimant<'_>>,
        stamp: &Stamp,
    ) -> std::result::Result<(Vec<Slung>, Vec<Assignment>), StoreError> {
        self.write(stamp, |tx| {
            let answers = schedule(tx, sling, stamp)?;
            let is_new = answers.iter().any(|answer| answer.outcome == SlingOutcome::Scheduled);
            let claimed = match claimant.filter(|_| is_new) {
                Some(claimant) => claim::claim_ready(tx, claimant, stamp)?,
                None => Vec::new(),
            };
            Ok((answers, claimed))
        })
    }

    /// The titles of beads and the names of their rigs; beads that are not there, and those of no rig, are left out.
    pub fn homes(&mut self, beads: &[String]) -> std::result::Result<Vec<Homed>, StoreError> {
        self.read(|tx| {
            let rigs = rigs::all(tx)?;
            let mut query = tx.prepare_cached("SELECT title, rig FROM bead WHERE id = ?1")?;
            let mut homes = Vec::new();
            for id in beads {
                let found =
                    query.query_row([id], |row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?))).optional()?;
                let Some((title, bound)) = found else { continue };
                let rig = match rig::home(id, bound.as_deref(), &rigs) {
                    Home::Rig(rig) => Some(rig.name.clone()),
                    Home::Town | Home::Nowhere => None,
                };
                homes.push(Homed { id: id.clone(), title, rig });
            }
            Ok(homes)
        })
    }

    /// What an epic or a convoy is made of; `None` for any other bead.
    pub fn load_of(&mut self, id: &str) -> std::result::Result<Option<Load>, StoreError> {
        self.read(|tx| {
            let bead = rows::load(tx, query::require(tx, id)?)?;
            let (kind, members) = match bead.type_word() {
                _ if id.starts_with(CONVOY_IDS) => (LoadKind::Convoy, tracked(&bead)),
                "epic" => (LoadKind::Epic, descendants(tx, id)?),
                "convoy" => (LoadKind::Convoy, tracked(&bead)),
                _ => return Ok(None),
            };
            let is_staged = ConvoyStatus::parse(bead.status.as_str()).is_some_and(ConvoyStatus::is_staged);
            Ok(Some(Load { id: bead.id, title: bead.title, kind, is_staged, members }))
        })
    }
}

fn tracked(convoy: &Bead) -> Vec<String> {
    convoy.edges.iter().filter(|edge| edge.kind.as_str() == "tracks").map(|edge| edge.target.clone()).collect()
}

/// Everything below a bead that could be given to an agent, in the order in which it was made.
fn descendants(tx: &Connection, id: &str) -> Result<Vec<String>> {
    let mut query = tx.prepare(
        "WITH RECURSIVE below(key, id) AS (
           SELECT bead.key, bead.id FROM edge JOIN bead ON bead.key = edge.source
             WHERE edge.target = ?1 AND edge.type = 'parent-child'
           UNION
           SELECT bead.key, bead.id FROM below JOIN edge ON edge.target = below.id AND edge.type = 'parent-child'
             JOIN bead ON bead.key = edge.source)
         SELECT below.id, bead.issue_type FROM below JOIN bead ON bead.key = below.key ORDER BY below.key",
    )?;
    let mut rows = query.query([id])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let kind: Option<String> = row.get(1)?;
        if status::is_slingable(kind.as_deref()) {
            found.push(row.get(0)?);
        }
    }
    Ok(found)
}

pub(crate) fn schedule(tx: &Connection, sling: &Sling, stamp: &Stamp) -> Result<Vec<Slung>> {
    let rigs = rigs::all(tx)?;
    if let Some(name) = &sling.rig {
        rigs::require(tx, name)?;
    }
    let mut answers = Vec::new();
    let mut seen = FxHashSet::default();
    for id in sling.beads.iter().filter(|id| seen.insert(id.as_str())) {
        answers.push(judge(tx, sling, id, &rigs, stamp)?);
    }
    let convoy = make_convoy(tx, sling, &mut answers, stamp)?;
    // They come at one time, and stay in their order.
    let times = (0_i64..).map(|place| stamp.now + SignedDuration::from_micros(place));
    answers.into_iter().zip(times).map(|(answer, at)| answer.settle(tx, sling, convoy.as_deref(), at, stamp)).collect()
}

/// A bead that passed the guards, or the answer to one that did not.
enum Judged<'a> {
    Accepted { key: Key, bead: Box<Bead>, rig: &'a Rig, convoy: Option<String> },
    Answered(Slung),
}

fn judge<'a>(tx: &Connection, sling: &Sling, id: &str, rigs: &'a [Rig], stamp: &Stamp) -> Result<Judged<'a>> {
    let key = match (rows::key_of(tx, id)?, sling.is_batch) {
        (Some(key), _) => key,
        (None, false) => query::require(tx, id)?,
        (None, true) => {
            let reason = Some(format!("there is no bead `{}`", gt_core::text::one_line(id)));
            return Ok(Judged::Answered(answer(id, "", SlingOutcome::Refused, reason)));
        }
    };
    let bead = rows::load(tx, key)?;
    match guard(tx, sling, key, &bead, rigs, stamp) {
        Err(StoreError::Refused(refusal)) if sling.is_batch => {
            let outcome = if is_skipped(&refusal) { SlingOutcome::Skipped } else { SlingOutcome::Refused };
            let is_taken = matches!(refusal, Refusal::Hooked { .. } | Refusal::Assigned { .. });
            let answer = answer(id, &bead.title, outcome, Some(refusal.to_string()));
            Ok(Judged::Answered(Slung { is_taken, ..answer }))
        }
        judged => judged,
    }
}

/// What a batch passes over, because nothing is wrong with it.
fn is_skipped(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Closed { .. } | Refusal::TownBead { .. } | Refusal::Hooked { .. } | Refusal::Assigned { .. }
    )
}

fn answer(bead: &str, title: &str, outcome: SlingOutcome, reason: Option<String>) -> Slung {
    let (bead, title) = (bead.to_owned(), title.to_owned());
    Slung { bead, title, rig: None, outcome, context: None, convoy: None, reason, is_taken: false }
}

/// The guards, in the order in which they are promised; nothing changes before the last of them. // SPEC P3
fn guard<'a>(
    tx: &Connection,
    sling: &Sling,
    key: Key,
    bead: &Bead,
    rigs: &'a [Rig],
    stamp: &Stamp,
) -> Result<Judged<'a>> {
    let id = bead.id.clone();
    let rig = match resolve(bead, sling, rigs) {
        _ if matches!(bead.status, Status::Closed | Status::Tombstone) => return Err(Refusal::Closed { id }.into()),
        Err(refusal) => return Err(refusal.into()),
        Ok(rig) => rig,
    };
    if let Some(context) = contexts::live_of(tx, key)?
        && !gt_core::defect!("second-context")
    {
        let reason = Some("it is scheduled already".to_owned());
        let answer = answer(&id, &bead.title, SlingOutcome::AlreadyScheduled, reason);
        let convoy = convoys::tracking(tx, &bead.id)?;
        return Ok(Judged::Answered(Slung { rig: Some(context.rig), context: Some(context.id), convoy, ..answer }));
    }
    if !status::is_slingable(bead.issue_type.as_deref()) {
        return Err(Refusal::NotSlingable { id, kind: gt_core::text::one_line(bead.type_word()) }.into());
    }
    if bead.status == Status::Pinned || bead.is_pinned() || bead.is_wisp() {
        let standing = if bead.is_wisp() { "ephemeral" } else { "pinned" }.to_owned();
        return Err(Refusal::NotReady { id, standing }.into());
    }
    let live = runs::live_of(tx, key)?;
    let is_taken = matches!(bead.status, Status::Hooked | Status::InProgress);
    if (is_taken || live.is_some()) && !sling.force {
        let holder = bead.assignee.clone().or(live).unwrap_or_else(|| "somebody".to_owned());
        return Err(Refusal::Hooked { id, holder: gt_core::text::one_line(&holder) }.into());
    }
    if let Some(who) = bead.assignee.as_deref().filter(|_| sling.convoy == ConvoyWish::Launched) {
        return Err(Refusal::Assigned { id, who: gt_core::text::one_line(who) }.into()); // SPEC D5
    }
    if rig.state != RigState::Active {
        return Err(Refusal::RigAside { name: rig.name.clone(), state: rig.state.as_str() }.into());
    }
    if let Some(why) = sling.prescriptions.get(&id).and_then(|one| one.objection.clone()) {
        let name = sling.prescriptions.get(&id).and_then(|one| one.formula.clone()).unwrap_or_default();
        return Err(Refusal::Formula { id, name, why }.into());
    }
    let live = live.map(|run| runs::by_id(tx, &run)).transpose()?.flatten();
    take_away(tx, live.as_ref(), key, bead, stamp)?;
    let convoy = convoys::tracking(tx, &bead.id)?;
    Ok(Judged::Accepted { key, bead: Box::new(bead.clone()), rig, convoy })
}

fn resolve<'a>(bead: &Bead, sling: &Sling, rigs: &'a [Rig]) -> std::result::Result<&'a Rig, Refusal> {
    let home = rig::home(&bead.id, bead.rig.as_deref(), rigs);
    let id = || bead.id.clone();
    let Some(target) = &sling.rig else {
        return match home {
            Home::Rig(rig) => Ok(rigs.iter().find(|known| known.name == rig.name).expect("it came from there")),
            Home::Town => Err(Refusal::TownBead { id: id() }),
            Home::Nowhere => Err(Refusal::NoRigFor { id: id() }),
        };
    };
    let wanted = rigs.iter().find(|rig| rig.name == *target).expect("the rig was looked up before");
    match home {
        Home::Town => Err(Refusal::TownBead { id: id() }),
        Home::Rig(rig) if rig.name == *target => Ok(wanted),
        _ if sling.force => Ok(wanted),
        Home::Rig(rig) => {
            Err(Refusal::OtherRig { id: id(), home: format!("rig `{}`", rig.name), target: target.clone() })
        }
        Home::Nowhere => Err(Refusal::NoRigFor { id: id() }),
    }
}

/// Takes the bead from whoever has it: its run is fenced and told to stop, anybody else loses it at once.
fn take_away(tx: &Connection, live: Option<&Run>, key: Key, bead: &Bead, stamp: &Stamp) -> Result<()> {
    if let Some(run) = live {
        let reason = format!("{} slung its bead again", stamp.actor);
        let order = StopOrder { at: stamp.now, by: stamp.actor.clone(), outcome: Outcome::Stopped, reason };
        runs::order_stop(tx, run, &order, stamp)?;
    }
    if let Some(merge) = merges::live_of(tx, key)? {
        merges::drop_live(tx, &merge, &format!("{} slung its bead again", stamp.actor), stamp)?;
    }
    let is_taken = matches!(bead.status, Status::Hooked | Status::InProgress);
    if !is_taken || live.is_some_and(|run| bead.assignee == Some(run.assignee())) {
        return Ok(()); // a run gives its bead back when it ends
    }
    let mut freed = bead.clone();
    freed.set_status(Status::Open, stamp.now);
    freed.assignee = None;
    freed.updated_at = Some(stamp.now);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(key, &freed)?;
    ledger.flush()?;
    let data = json!({ "assignee": bead.assignee, "status": freed.status.as_str() });
    events::append(tx, stamp, EventType::BeadReleased, Some(&bead.id), &data)
}

/// One convoy for all that no open one tracks yet.
fn make_convoy(tx: &Connection, sling: &Sling, answers: &mut [Judged<'_>], stamp: &Stamp) -> Result<Option<String>> {
    let ConvoyWish::Auto { title } = &sling.convoy else { return Ok(None) };
    let mut untracked = Vec::new();
    let mut first_title = None;
    for answer in answers.iter() {
        if let Judged::Accepted { bead, convoy: None, .. } = answer {
            first_title.get_or_insert_with(|| bead.title.clone());
            untracked.push(bead.id.clone());
        }
    }
    let Some(first_title) = first_title else { return Ok(None) };
    let title = title.clone().unwrap_or_else(|| match untracked.len() {
        1 => first_title,
        n => format!("{first_title} and {} more", n - 1),
    });
    let new = NewConvoy {
        title: format!("Work: {title}"),
        members: untracked,
        is_owned: sling.fields.owned,
        merge: sling.fields.merge.clone(),
        base_branch: sling.fields.base_branch.clone(),
        ..NewConvoy::default()
    };
    Ok(Some(convoys::create(tx, &new, stamp)?))
}

impl Judged<'_> {
    /// Makes the context of an accepted bead.
    fn settle(
        self,
        tx: &Connection,
        sling: &Sling,
        new_convoy: Option<&str>,
        enqueued_at: Timestamp,
        stamp: &Stamp,
    ) -> Result<Slung> {
        let (key, bead, rig, convoy) = match self {
            Judged::Answered(given) => return Ok(given),
            Judged::Accepted { key, bead, rig, convoy } => (key, bead, rig, convoy),
        };
        let convoy = convoy.or_else(|| new_convoy.map(str::to_owned));
        let prescription = sling.prescriptions.get(&bead.id);
        let formula = prescription.map_or(&sling.fields.formula, |one| &one.formula).clone();
        let fields = SlingFields {
            formula,
            version: context::VERSION,
            work_bead_id: bead.id.clone(),
            target_rig: rig.name.clone(),
            enqueued_at: time::format(enqueued_at),
            convoy: convoy.clone(),
            ..sling.fields.clone()
        };
        let assignee = contexts::assignee(tx, key)?;
        let new = NewContext {
            work: key,
            work_id: &bead.id,
            prefix: &rig.prefix,
            assignee: assignee.as_deref(),
            fields: &fields,
            failures: 0,
            last_failure: None,
            retry_at: None,
            enqueued_at,
            how: "sling",
        };
        records::lift(tx, key)?;
        steps::plan(tx, key, enqueued_at, prescription.map_or(&[], |one| &one.steps))?;
        let context = contexts::insert(tx, &new, stamp)?;
        Ok(Slung {
            rig: Some(rig.name.clone()),
            context: Some(context),
            convoy,
            ..answer(&bead.id, &bead.title, SlingOutcome::Scheduled, None)
        })
    }
}
