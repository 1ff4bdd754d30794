//! The claim: the one place that gives work to runs. // SPEC D2, D3, P6
//!
//! In one transaction it counts what lives, asks the plan, and writes run, hook, context and polecat together. Whoever
//! calls it, from whatever path, cannot exceed a cap or take a bead twice.

use gt_core::context::{CloseReason, SlingFields};
use gt_core::event::EventType;
use gt_core::names;
use gt_core::plan::{Missing, PerSide, Planner, Policy, Side, Verdict};
use gt_core::readiness::Standing;
use gt_core::rig::Rig;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::dispatch::contexts::{self, Context};
use crate::dispatch::feed;
use crate::dispatch::merges::{self, Rework};
use crate::dispatch::polecats::{self, Polecat, Stable};
use crate::dispatch::records::{self, Hold};
use crate::dispatch::runs::{self, Ended, NotStarted, Run, Started};
use crate::dispatch::scene::{self, Candidates, Work};
use crate::dispatch::scheduler;
use crate::dispatch::steps::{self, CurrentStep};
use crate::dispatch::tellings::Telling;
use crate::dispatch::troubles::{self, Probes};
use crate::error::{Result, StoreError};
use crate::rows::{self, Key, micros};
use crate::sessions::claim::{Turn, claim_turns};
use crate::store::{Stamp, Store};
use crate::{events, rigs, sessions};

/// Contexts read at a time.
const PAGE: usize = 256;

/// Who claims, and with what.
pub struct Claimant<'a> {
    pub policy: &'a Policy,
    /// The process that will start the runs.
    pub starter: &'a str,
    /// Makes run ids.
    pub new_run: &'a mut dyn FnMut() -> String,
    /// Claims no more than this of each side.
    pub limits: PerSide<Option<usize>>,
    /// How many starts of the same batch came before.
    pub n_before: usize,
    /// Looks for what an agent needs to be started in a rig; says what is missing.
    pub probe: &'a dyn Fn(&str, &Rig) -> Option<Missing>,
}

/// Which of the contexts whose work is ready are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    All,
    /// What was queued is left out.
    Slung,
    Queued,
}

impl Kinds {
    /// What belongs to the sides that are wanted.
    pub fn of(policy: &Policy, is_wanted: impl Fn(Side) -> bool) -> Option<Kinds> {
        match (is_wanted(Side::Scheduler), policy.queue.is_some(), is_wanted(Side::Queue)) {
            (true, false, _) | (true, true, true) => Some(Kinds::All),
            (true, true, false) => Some(Kinds::Slung),
            (false, true, true) => Some(Kinds::Queued),
            (false, _, _) => None,
        }
    }

    /// The table to read, and what has to hold besides.
    pub(crate) fn sql(self) -> (&'static str, &'static str) {
        match self {
            Kinds::All => ("context", "1"),
            Kinds::Slung => ("context INDEXED BY context_slung", "context.queued = 0"),
            Kinds::Queued => ("context", "context.queued = 1"),
        }
    }
}

/// A run that has been claimed and is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub run: String,
    pub context: String,
    pub bead: String,
    pub title: String,
    pub description: Option<String>,
    pub acceptance: Option<String>,
    pub rig: Rig,
    pub polecat: Polecat,
    pub agent: String,
    pub fields: SlingFields,
    /// Runs that ended without finishing what is to be done: the bead, or the step.
    pub attempts: i64,
    /// Where the last of them left its work.
    pub left_branch: Option<String>,
    /// The file with what it had not committed.
    pub left_patch: Option<String>,
    /// The word of a run that left its work to this one, which goes on from its branch.
    pub handoff: Option<String>,
    /// What it is to work on again.
    pub rework: Option<Rework>,
    pub claimed_at: Timestamp,
    /// The one step that is to be done; `None`: all of the work.
    pub step: Option<CurrentStep>,
}

/// What has been claimed and is to be started: work on a bead, or a turn of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    Work(Box<Assignment>),
    Turn(Box<Turn>),
}

impl From<Assignment> for Claimed {
    fn from(assignment: Assignment) -> Claimed {
        Claimed::Work(Box::new(assignment))
    }
}

impl From<Turn> for Claimed {
    fn from(turn: Turn) -> Claimed {
        Claimed::Turn(Box::new(turn))
    }
}

impl Claimed {
    pub fn run(&self) -> &str {
        match self {
            Claimed::Work(assignment) => &assignment.run,
            Claimed::Turn(turn) => &turn.run,
        }
    }

    pub fn work(&self) -> Option<&Assignment> {
        match self {
            Claimed::Work(assignment) => Some(assignment),
            Claimed::Turn(_) => None,
        }
    }

    pub fn turn(&self) -> Option<&Turn> {
        match self {
            Claimed::Work(_) => None,
            Claimed::Turn(turn) => Some(turn),
        }
    }
}

/// What was found out since the last pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub started: Vec<Started>,
    pub not_started: Vec<NotStarted>,
    pub ended: Vec<Ended>,
    /// What agents have told that changes something.
    pub told: Vec<Telling>,
}

/// What an advance came to.
#[derive(Debug, Clone, Default)]
pub struct Advance {
    /// Work on beads, to be started now.
    pub claimed: Vec<Assignment>,
    /// Turns of sessions, to be started now.
    pub turns: Vec<Turn>,
    /// Started, but given up or told to stop meanwhile, or now in somebody's way: to be stopped.
    pub unwanted: Vec<Run>,
    /// Whether a start has shown that what was in trouble is not any more: others may start because of it.
    pub is_freed: bool,
}

impl Findings {
    pub fn is_empty(&self) -> bool {
        self.started.is_empty() && self.not_started.is_empty() && self.ended.is_empty() && self.told.is_empty()
    }
}

impl Store {
    /// Records what happened, and with a claimant claims all that may start after it, in one transaction.
    pub fn advance(
        &mut self,
        findings: &Findings,
        policy: &Policy,
        claimant: Option<&mut Claimant<'_>>,
        stamp: &Stamp,
    ) -> std::result::Result<Advance, StoreError> {
        self.write(stamp, |tx| {
            let is_freed = troubles::end_proven(tx, &findings.started, stamp)?;
            let mut unwanted = runs::record(tx, findings, policy, stamp)?;
            feed::settle(tx, stamp)?;
            let Some(claimant) = claimant else { return Ok(Advance { unwanted, is_freed, ..Advance::default() }) };
            let has_room = claimant.limits != PerSide::both(Some(0));
            let claimed = if has_room { claim_ready(tx, claimant, stamp)? } else { Vec::new() };
            let (turns, in_the_way) = claim_turns(tx, claimant, stamp)?;
            unwanted.extend(in_the_way);
            Ok(Advance { claimed, turns, unwanted, is_freed })
        })
    }

    /// The assignment of a live run, as it was claimed.
    pub fn assignment(&mut self, run: &str) -> std::result::Result<Option<Assignment>, StoreError> {
        self.read(|tx| assignment(tx, run))
    }

    /// What a live run was claimed for.
    pub fn claimed(&mut self, run: &str) -> std::result::Result<Option<Claimed>, StoreError> {
        self.read(|tx| match sessions::claim::of_run(tx, run)? {
            Some(turn) => Ok(Some(turn.into())),
            None => Ok(assignment(tx, run)?.map(Claimed::from)),
        })
    }
}

fn assignment(tx: &Connection, id: &str) -> Result<Option<Assignment>> {
    let Some(run) = runs::by_id(tx, id)?.filter(Run::is_live) else { return Ok(None) };
    let (Some(polecat), Some(context)) = (polecats::of_run(tx, id)?, contexts::by_id(tx, &run.context)?) else {
        return Ok(None);
    };
    let Ok(fields) = context.sling_fields() else { return Ok(None) };
    // A rig that was taken off the registry meanwhile starts nothing.
    let Some(rig) = rigs::all(tx)?.into_iter().find(|rig| rig.name == run.rig) else { return Ok(None) };
    let bead = rows::load(tx, context.bead)?;
    let step = steps::current(tx, context.bead, context.enqueued_at)?;
    let record = records::load(tx, context.bead)?;
    let (left_patch, handoff) = (record.patch.clone(), record.handoff.clone());
    let (attempts, left_branch) = steps::unfinished(tx, &context, record, step.as_ref())?;
    let rework = merges::rework_of(tx, context.bead)?;
    Ok(Some(Assignment {
        run: run.id,
        context: context.id,
        description: bead.body.text("description"),
        acceptance: bead.body.text("acceptance_criteria"),
        bead: bead.id,
        title: bead.title,
        rig,
        polecat,
        agent: run.agent,
        fields,
        attempts,
        left_branch,
        left_patch,
        handoff,
        rework,
        claimed_at: run.claimed_at,
        step,
    }))
}

pub(crate) fn claim_ready(tx: &Connection, claimant: &mut Claimant<'_>, stamp: &Stamp) -> Result<Vec<Assignment>> {
    let policy = claimant.policy;
    if scheduler::state(tx, stamp.now)?.pause.is_none() {
        half_open(tx, stamp)?;
    }
    close_stale(tx, stamp)?;
    if !is_any_ready(tx, stamp.now)? {
        return Ok(Vec::new()); // who lives, and where, matters only to whoever may start
    }
    let mut scene = scene::scene(tx, policy, stamp.now)?;
    if gt_core::defect!("pause-ignored") {
        scene.pause = None;
    }
    let rigs = rigs::all(tx)?;
    let candidates = Candidates::new(tx, policy, &rigs, &scene);
    let mut planner = Planner::new(scene);
    let mut probes = Probes::default();
    let mut stable = Stable::default();
    let (mut claimed, mut n_claimed) = (Vec::new(), PerSide::<usize>::default());
    let mut after = Place::START;
    let limits = claimant.limits;
    let has_room = |planner: &Planner, n: &PerSide<usize>, side: Side| {
        limits.of(side).is_none_or(|limit| *n.of(side) < limit) && !planner.is_full(side)
    };
    while let Some(kinds) = Kinds::of(policy, |side| has_room(&planner, &n_claimed, side)) {
        let page = ready_page(tx, kinds, policy.by_priority, &after, stamp.now)?;
        let Some(last) = page.last() else { break };
        after = last.place();
        for item in page {
            let side = policy.side(item.context.is_queued);
            if !has_room(&planner, &n_claimed, side) {
                if Kinds::of(policy, |side| has_room(&planner, &n_claimed, side)).is_none() {
                    break;
                }
                continue;
            }
            let fields = match item.context.sling_fields() {
                Ok(fields) => fields,
                Err(why) => {
                    quarantine(tx, &item.context, &why, stamp)?;
                    continue;
                }
            };
            let work = Work {
                id: &item.work_id,
                standing: Standing::Ready,
                issue_type: item.issue_type.as_deref(),
                assignee: item.assignee.as_deref(),
                waits_for: Vec::new(),
            };
            let candidate = candidates.make(&item.context, work, stamp.now)?;
            probes.look(tx, &candidate, candidates.rig(&item.context.rig), claimant, &mut planner, stamp)?;
            if planner.consider(&candidate) == Verdict::Start {
                troubles::begin_trials(tx, &planner, stamp.now)?;
                let rig = candidates.rig(&item.context.rig).expect("the plan holds what has no rig").clone();
                let run = (claimant.new_run)();
                let polecat = stable.find(tx, &rig.name, item.context.bead, stamp.now)?;
                let hook = Hook { item, fields, rig, polecat, run, agent: candidate.agent };
                claimed.push(hook.write(tx, claimant.starter, &policy.host, stamp)?);
                *n_claimed.of_mut(side) += 1;
            }
        }
    }
    if !claimed.is_empty() {
        let is_any_queued = claimed.iter().any(|one: &Assignment| one.fields.queued);
        scheduler::note_dispatch(tx, claimant.n_before + claimed.len(), is_any_queued, stamp)?;
    }
    Ok(claimed)
}

/// A context that nobody can read is closed at once, and said so. // SPEC D5
fn quarantine(tx: &Connection, context: &Context, why: &str, stamp: &Stamp) -> Result<()> {
    let mut record = records::load(tx, context.bead)?;
    record.last_failure = Some(why.to_owned());
    record.hold = Some(Hold::Invalid);
    records::save(tx, context.bead, &record)?;
    contexts::close(tx, context, CloseReason::InvalidContext, Some(why), stamp)
}

/// Work that was finished by somebody else needs no agent any more. // SPEC D7
fn close_stale(tx: &Connection, stamp: &Stamp) -> Result<()> {
    let sql = format!("SELECT {} FROM context WHERE state = 'open' AND ready = 2", contexts::COLUMNS);
    let stale: Vec<Context> =
        tx.prepare_cached(&sql)?.query_map([], contexts::from_row)?.collect::<rusqlite::Result<_>>()?;
    for context in stale {
        contexts::close(tx, &context, CloseReason::StaleWorkBead, None, stamp)?;
    }
    Ok(())
}

/// A broken circuit lets one try through when its time has come. // SPEC D5
fn half_open(tx: &Connection, stamp: &Stamp) -> Result<()> {
    for (bead, context) in records::due(tx, stamp.now)? {
        if gt_core::defect!("circuit-stays-broken") {
            break;
        }
        records::lift(tx, bead)?;
        let Some(last) = contexts::by_id(tx, &context)?.filter(Context::is_valid) else { continue };
        if contexts::live_of(tx, bead)?.is_none() {
            contexts::again_as_new(tx, &Context { retry_at: None, ..last }, "breaker", stamp)?;
        }
    }
    Ok(())
}

/// Whether there is work that could be taken, if there were room for it.
fn is_any_ready(tx: &Connection, now: Timestamp) -> Result<bool> {
    let mut query = tx.prepare_cached(
        "SELECT 1 FROM context WHERE state = 'open' AND ready = 1 AND (retry_at IS NULL OR retry_at <= ?1) LIMIT 1",
    )?;
    Ok(query.exists([micros(now)])?)
}

/// Where in the queue a page ends.
struct Place {
    priority: i64,
    enqueued_at: i64,
    id: String,
}

impl Place {
    const START: Place = Place { priority: i64::MIN, enqueued_at: i64::MIN, id: String::new() };
}

/// A context whose work is ready.
struct Item {
    context: Context,
    work_id: String,
    title: String,
    description: Option<String>,
    acceptance: Option<String>,
    issue_type: Option<String>,
    assignee: Option<String>,
    priority: i64,
}

impl Item {
    fn place(&self) -> Place {
        let enqueued_at = micros(self.context.enqueued_at);
        Place { priority: self.priority, enqueued_at, id: self.context.id.clone() }
    }
}

/// What can be started but for the caps: what the plan would hold anyway, because its rig takes no work or its time has
/// not come, is passed over here, where that is cheap.
fn ready_page(tx: &Connection, kinds: Kinds, by_priority: bool, after: &Place, now: Timestamp) -> Result<Vec<Item>> {
    const AFTER: usize = contexts::N_COLUMNS;
    let parked_too = u8::from(gt_core::defect!("parked-rig-starts"));
    let (order, from) = if by_priority {
        ("context.priority, enqueued_at, context.id", "(context.priority, enqueued_at, context.id) > (?1, ?2, ?3)")
    } else {
        ("enqueued_at, context.id", "?1 IS NOT NULL AND (enqueued_at, context.id) > (?2, ?3)")
    };
    let (table, is_wanted) = kinds.sql();
    let sql = format!(
        "SELECT {}, bead.id, bead.title, bead.assignee, context.priority,
           body ->> '$.description', body ->> '$.acceptance_criteria', bead.issue_type
         FROM {table} JOIN bead ON bead.key = context.bead JOIN bead_body ON bead_body.bead = context.bead
         WHERE context.state = 'open' AND context.ready = 1 AND {is_wanted} AND {from}
           AND context.rig IN (SELECT name FROM rig WHERE state = 'active' OR (state = 'parked' AND {parked_too}))
           AND (context.retry_at IS NULL OR context.retry_at <= ?4) ORDER BY {order} LIMIT {PAGE}",
        contexts::COLUMNS
    );
    let mut query = tx.prepare_cached(&sql)?;
    let items = query.query_map(params![after.priority, after.enqueued_at, after.id, micros(now)], |row| {
        Ok(Item {
            context: contexts::from_row(row)?,
            work_id: row.get(AFTER)?,
            title: row.get(AFTER + 1)?,
            assignee: row.get(AFTER + 2)?,
            priority: row.get(AFTER + 3)?,
            description: text_or_none(row, AFTER + 4)?,
            acceptance: text_or_none(row, AFTER + 5)?,
            issue_type: row.get(AFTER + 6)?,
        })
    })?;
    Ok(items.collect::<rusqlite::Result<_>>()?)
}

/// A field of a stranger's bead may hold anything; only a text is a text.
fn text_or_none(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Text(_) => row.get(column),
        _ => Ok(None),
    }
}

/// Everything that one claim writes.
struct Hook {
    item: Item,
    fields: SlingFields,
    rig: Rig,
    polecat: Polecat,
    run: String,
    agent: String,
}

impl Hook {
    fn write(self, tx: &Connection, starter: &str, host: &str, stamp: &Stamp) -> Result<Assignment> {
        let Hook { item, fields, rig, polecat, run, agent } = self;
        let step = steps::current(tx, item.context.bead, item.context.enqueued_at)?;
        let record = records::load(tx, item.context.bead)?;
        let (left_patch, handoff) = (record.patch.clone(), record.handoff.clone());
        let (attempts, left_branch) = steps::unfinished(tx, &item.context, record, step.as_ref())?;
        let rework = merges::rework_of(tx, item.context.bead)?;
        hook_bead(tx, item.context.bead, &names::assignee(&rig.name, &polecat.name), stamp)?;
        tx.prepare_cached("UPDATE context SET state = 'claimed', run = ?2 WHERE id = ?1")?
            .execute(params![item.context.id, run])?;
        tx.prepare_cached(
            "INSERT INTO run (id, bead, context, rig, polecat, agent, host, state, starter, claimed_at, session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'starting', ?8, ?9, ?10)",
        )?
        .execute(params![
            run,
            item.context.bead,
            item.context.id,
            rig.name,
            polecat.name,
            agent,
            host,
            starter,
            micros(stamp.now),
            names::session(&rig.prefix, &polecat.name),
        ])?;
        polecats::occupy(tx, &polecat, &run, &item.work_id, stamp)?;
        let data = json!({ "rig": rig.name, "polecat": polecat.name, "agent": agent, "context": item.context.id });
        events::append_of_run(tx, stamp, EventType::BeadHooked, &item.work_id, &run, &data)?;
        Ok(Assignment {
            run,
            context: item.context.id.clone(),
            bead: item.work_id,
            title: item.title,
            description: item.description,
            acceptance: item.acceptance,
            rig,
            polecat,
            agent,
            fields,
            attempts,
            left_branch,
            left_patch,
            handoff,
            rework,
            claimed_at: stamp.now,
            step,
        })
    }
}

/// Puts a ready bead on a hook. Its neighbours see no difference: an open bead and a hooked one hold back alike, so
/// the ledger has nothing to follow.
fn hook_bead(tx: &Connection, bead: Key, assignee: &str, stamp: &Stamp) -> Result<()> {
    tx.prepare_cached(
        "UPDATE bead SET status = 'hooked', assignee = ?2, updated_at = ?3, standing = 'held' WHERE key = ?1",
    )?
    .execute(params![bead, assignee, micros(stamp.now)])?;
    Ok(())
}
