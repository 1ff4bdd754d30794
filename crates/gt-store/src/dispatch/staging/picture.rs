//! The combined picture of a convoy: its waves, and of each member what is being done about it. // SPEC C6

use gt_core::convoy::ConvoyStatus;
use gt_core::convoy::graph::Graph;
use gt_core::convoy::plan::{self, Plan, Source};
use gt_core::readiness::Standing;
use gt_core::run::RunState;
use jiff::Timestamp;
use rusqlite::Connection;
use rustc_hash::FxHashMap;

use super::{TRACKS, graph};
use crate::dispatch::sling::CONVOY_IDS;
use crate::error::{Result, StoreError};
use crate::query;
use crate::rows::{self, Key, timestamp};
use crate::store::Store;

/// A convoy with all that is known of its members.
#[derive(Debug, Clone)]
pub struct ConvoyPicture {
    pub id: String,
    pub title: String,
    pub status: ConvoyStatus,
    pub is_owned: bool,
    pub graph: Graph,
    pub plan: Plan,
    /// By the number of the bead in the graph.
    pub progress: Vec<Progress>,
    /// Members that are not there.
    pub missing: Vec<String>,
}

/// How far a member has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    Done,
    Running(Worker),
    /// Scheduled: in line, or waiting for what blocks it.
    Queued {
        context: String,
        is_ready: bool,
    },
    Blocked,
    /// Nothing keeps it, and nobody has it.
    Ready,
    Deferred,
    /// A person has it, or it is no work.
    Held,
}

/// Who works on a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub run: String,
    pub rig: String,
    pub polecat: String,
    pub since: Timestamp,
    pub is_starting: bool,
}

impl ConvoyPicture {
    /// Members that are done.
    pub fn n_done(&self) -> usize {
        self.members().filter(|at| self.progress[*at as usize] == Progress::Done).count()
    }

    /// All members, those that are not there included.
    pub fn n_total(&self) -> usize {
        self.members().count() + self.missing.len()
    }

    /// The numbers of the members in the graph.
    pub fn members(&self) -> impl Iterator<Item = u32> {
        self.graph.all().filter(|at| self.graph.spot(*at).is_member)
    }

    pub fn progress_of(&self, at: u32) -> &Progress {
        &self.progress[at as usize]
    }
}

impl Store {
    /// A convoy as a person wants to see it.
    pub fn convoy_picture(&mut self, id: &str, now: Timestamp) -> std::result::Result<ConvoyPicture, StoreError> {
        self.read(|tx| picture(tx, id, now))
    }
}

fn picture(tx: &Connection, id: &str, now: Timestamp) -> Result<ConvoyPicture> {
    let key = query::require(tx, id)?;
    let bead = rows::load(tx, key)?;
    if bead.type_word() != "convoy" && !id.starts_with(CONVOY_IDS) {
        let kind = gt_core::text::one_line(bead.type_word());
        return Err(super::refusal(gt_core::convoy::refusal::BadStaging::NotAConvoy { id: bead.id, kind }));
    }
    let members = graph::tracked(tx, key)?;
    let graph = graph::read(tx, &members)?;
    let plan = plan::plan(&graph, Source::Convoy);
    let missing = bead.edges.iter().filter(|edge| edge.kind.as_str() == TRACKS && graph.find(&edge.target).is_none());
    Ok(ConvoyPicture {
        missing: missing.map(|edge| edge.target.clone()).collect(),
        status: ConvoyStatus::parse(bead.status.as_str()).unwrap_or(ConvoyStatus::Open),
        is_owned: bead.body.get("owned").is_some_and(|raw| raw.get() == "true"),
        progress: progress(tx, &members, &graph, now)?,
        id: bead.id,
        title: bead.title,
        graph,
        plan,
    })
}

/// What the store knows of each member beyond the graph.
fn progress(tx: &Connection, members: &[Key], graph: &Graph, now: Timestamp) -> Result<Vec<Progress>> {
    let mut workers = workers(tx, members)?;
    let mut contexts = contexts(tx, members)?;
    let mut progress = vec![Progress::Held; graph.len()];
    let sql = format!(
        "SELECT {} FROM (SELECT value AS wanted FROM json_each(?1)) CROSS JOIN bead ON bead.key = wanted",
        rows::NODE_COLUMNS
    );
    let mut query = tx.prepare_cached(&sql)?;
    let mut rows = query.query([graph::list(members)])?;
    while let Some(row) = rows.next()? {
        let (id, node) = rows::node_from_row(row)?;
        let Some(at) = graph.find(&id) else { continue };
        let standing = node.standing_at(now);
        progress[at as usize] = match (standing, workers.remove(&id), contexts.remove(&id)) {
            (Standing::Done, _, _) => Progress::Done,
            (_, Some(worker), _) => Progress::Running(worker),
            (_, None, Some(context)) => Progress::Queued { context, is_ready: standing == Standing::Ready },
            (Standing::Ready, None, None) => Progress::Ready,
            (Standing::Deferred, None, None) => Progress::Deferred,
            (Standing::Blocked, None, None) => Progress::Blocked,
            (Standing::Held, None, None) => Progress::Held,
        };
    }
    Ok(progress)
}

fn workers(tx: &Connection, members: &[Key]) -> Result<FxHashMap<String, Worker>> {
    let mut query = tx.prepare_cached(
        "SELECT bead.id, run.id, run.rig, run.polecat, coalesce(run.started_at, run.claimed_at), run.state
         FROM json_each(?1) AS member CROSS JOIN run ON run.bead = member.value AND run.state <> 'ended'
           CROSS JOIN bead ON bead.key = run.bead",
    )?;
    let found = query.query_map([graph::list(members)], |row| {
        let is_starting = row.get_ref(5)?.as_str()? == RunState::Starting.as_str();
        let (run, rig, polecat, since) = (row.get(1)?, row.get(2)?, row.get(3)?, timestamp(row.get(4)?));
        Ok((row.get(0)?, Worker { run, rig, polecat, since, is_starting }))
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn contexts(tx: &Connection, members: &[Key]) -> Result<FxHashMap<String, String>> {
    let mut query = tx.prepare_cached(
        "SELECT bead.id, context.id
         FROM json_each(?1) AS member CROSS JOIN context ON context.bead = member.value AND context.state <> 'closed'
           CROSS JOIN bead ON bead.key = context.bead",
    )?;
    let found = query.query_map([graph::list(members)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
