//! Staging and launching: a convoy is looked at before it starts, and then starts at once. // SPEC C2, C3
//!
//! What a graph comes to is `gt_core::convoy::plan`; reading it is `staging::graph`. A staged convoy is a bead whose
//! status says so; nothing of the plan is stored.

use gt_core::bead::Bead;
use gt_core::convoy::ConvoyStatus;
use gt_core::convoy::findings::Category;
use gt_core::convoy::graph::Graph;
use gt_core::convoy::plan::{self, Plan, Source};
use gt_core::convoy::refusal::BadStaging;
use gt_core::edge::{Edge, EdgeType};
use gt_core::event::EventType;
use gt_core::rig::TOWN_PREFIX;
use gt_core::status::Status;
use gt_core::text::{self, TITLE_CHARS_MAX};
use rusqlite::{Connection, params};
use rustc_hash::FxHashSet;
use serde_json::json;

use crate::beads::{self, NewBead};
use crate::dispatch::feed;
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::rows::{self, Key};
use crate::store::{Stamp, Store};
use crate::{events, links};

pub(crate) mod graph;
pub(crate) mod picture;

use graph::Meant;

/// The field of a convoy that names the epic it was staged from.
const EPIC: &str = "epic";
const TRACKS: &str = "tracks";

/// What is to be staged.
#[derive(Debug, Clone, Default)]
pub struct Staging {
    /// An epic, a convoy, or tasks.
    pub words: Vec<String>,
    /// What the convoy is to be called; `None`: by what is in it.
    pub title: Option<String>,
    pub then: Going,
}

/// How far it is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Going {
    #[default]
    Stage,
    /// Opened at once; warnings do not stop it when forced.
    Launch { force: bool },
}

/// What was staged, or why it could not be.
#[derive(Debug, Clone)]
pub struct Staged {
    /// `None` when there are errors and none was there before.
    pub convoy: Option<String>,
    pub title: String,
    /// `None`: there are errors, and nothing was stored.
    pub status: Option<ConvoyStatus>,
    /// Whether it was there before.
    pub is_restaged: bool,
    /// The epic that was named.
    pub epic: Option<String>,
    pub graph: Graph,
    pub plan: Plan,
}

impl Staged {
    /// The first wave, in the order in which it is to be started: the most urgent first.
    pub fn first_wave(&self) -> Vec<String> {
        let mut first: Vec<u32> = self.plan.waves().next().unwrap_or_default().to_vec();
        first.sort_by_key(|at| (self.graph.spot(*at).priority, *at));
        let n_left = usize::from(gt_core::defect!("launch-forgets-one") && first.len() > 1);
        first.into_iter().skip(n_left).map(|at| self.graph.id(at).to_owned()).collect()
    }
}

impl Store {
    /// Stages, and where that is wanted launches, in one transaction. With errors in the plan nothing is stored.
    pub fn stage_convoy(&mut self, staging: &Staging, stamp: &Stamp) -> std::result::Result<Staged, StoreError> {
        if let Some(title) = &staging.title {
            text::check_title(title).map_err(gt_core::refusal::Refusal::from)?;
        }
        self.write(stamp, |tx| stage(tx, staging, stamp))
    }
}

fn stage(tx: &Connection, staging: &Staging, stamp: &Stamp) -> Result<Staged> {
    let meant = graph::understand(tx, &staging.words)?;
    let there = find(tx, &meant)?;
    let source = match &there {
        // What was an epic's stays one's: its tasks are expected to hang together.
        Some(there) if there.epic.is_some() => Source::Epic,
        _ => meant.source(),
    };
    let mut members = meant.members().to_vec();
    if let (Meant::Convoy { .. }, Some(epic)) = (&meant, there.as_ref().and_then(|there| there.epic.as_deref())) {
        members.extend(graph::epics(tx, epic)?); // tracked or not, they say what belongs together
    }
    let graph = graph::read(tx, &members)?;
    let plan = plan::plan(&graph, source);
    // One that was done while it was staged is opened all the same, and lands by that.
    let is_over =
        matches!((&meant, &staging.then), (Meant::Convoy { .. }, Going::Launch { .. })) && !members.is_empty();
    if !is_over && !graph.spots().iter().any(gt_core::convoy::graph::Spot::is_task) {
        return Err(refusal(BadStaging::Nothing { what: meant.name() }));
    }
    let mut staged = Staged {
        convoy: there.as_ref().map(|there| there.bead.id.clone()),
        title: staging.title.clone().unwrap_or_else(|| title(&meant, there.as_ref())),
        status: None,
        is_restaged: there.is_some(),
        epic: meant.epic().map(str::to_owned).or_else(|| there.as_ref().and_then(|there| there.epic.clone())),
        graph,
        plan,
    };
    if staged.plan.has_errors() {
        return Ok(staged);
    }
    if let Going::Launch { force: false } = staging.then {
        refuse_warned(&staged, &meant, &staging.words)?;
    }
    let found = if staged.plan.warnings.is_empty() { ConvoyStatus::StagedReady } else { ConvoyStatus::StagedWarnings };
    let key = put(tx, &mut staged, &meant, there, found, stamp)?;
    if let Going::Launch { force } = staging.then {
        launch(tx, key, &mut staged, force, stamp)?;
    }
    Ok(staged)
}

fn refusal(bad: BadStaging) -> StoreError {
    StoreError::Refused(bad.into())
}

/// A convoy that is staged already.
struct There {
    key: Key,
    bead: Bead,
    status: ConvoyStatus,
    /// The epic it was staged from.
    epic: Option<String>,
}

impl There {
    fn load(tx: &Connection, key: Key) -> Result<There> {
        let bead = rows::load(tx, key)?;
        // A word that no convoy should have is treated like that of one that is under way.
        let status = ConvoyStatus::parse(bead.status.as_str()).unwrap_or(ConvoyStatus::Open);
        let epic = bead.body.text(EPIC);
        Ok(There { key, bead, status, epic })
    }

    fn tracked(&self) -> FxHashSet<&str> {
        let tracks = self.bead.edges.iter().filter(|edge| edge.kind.as_str() == TRACKS);
        tracks.map(|edge| edge.target.as_str()).collect()
    }
}

/// The convoy that is meant, or a staged one that stands for the same work. What is under way or over is refused.
fn find(tx: &Connection, meant: &Meant) -> Result<Option<There>> {
    if let Meant::Convoy { key, .. } = meant {
        let there = There::load(tx, *key)?;
        if !there.status.may_become(ConvoyStatus::StagedReady) {
            let id = there.bead.id;
            let is_closed = there.status == ConvoyStatus::Closed;
            return Err(refusal(if is_closed { BadStaging::Closed { id } } else { BadStaging::Launched { id } }));
        }
        return Ok(Some(there));
    }
    for key in candidates(tx, meant)? {
        let there = There::load(tx, key)?;
        match (there.epic.as_deref(), meant.epic()) {
            (Some(known), Some(epic)) if known == epic && !there.status.is_staged() => {
                let (epic, convoy) = (epic.to_owned(), there.bead.id);
                return Err(refusal(BadStaging::EpicLaunched { epic, convoy }));
            }
            (Some(known), Some(epic)) if known == epic => return Ok(Some(there)),
            (None, _) if there.status.is_staged() && is_same_work(tx, &there, meant)? => return Ok(Some(there)),
            _ => {}
        }
    }
    Ok(None)
}

/// Convoys that are not over, track something of what is meant, and are staged or this epic's.
fn candidates(tx: &Connection, meant: &Meant) -> Result<Vec<Key>> {
    let mut query = tx.prepare_cached(
        "SELECT DISTINCT convoy.key FROM json_each(?1) AS member
           CROSS JOIN bead ON bead.key = member.value
           CROSS JOIN edge ON edge.target = bead.id AND edge.type = 'tracks'
           CROSS JOIN bead AS convoy ON convoy.key = edge.source
           CROSS JOIN bead_body ON bead_body.bead = convoy.key
         WHERE convoy.issue_type = 'convoy' AND convoy.standing IS NOT NULL
           AND (convoy.status LIKE 'staged%' OR json_extract(body, '$.epic') = ?2) ORDER BY convoy.key",
    )?;
    let keys = query.query_map(params![graph::list(meant.members()), meant.epic()], |row| row.get(0))?;
    Ok(keys.collect::<rusqlite::Result<_>>()?)
}

/// Whether a staged convoy tracks nothing but an epic's beads, or exactly these tasks.
fn is_same_work(tx: &Connection, there: &There, meant: &Meant) -> Result<bool> {
    let ids = graph::ids(tx, meant.members())?;
    let (ids, tracked) = (ids.iter().map(String::as_str).collect::<FxHashSet<_>>(), there.tracked());
    Ok(tracked.is_subset(&ids) && (meant.epic().is_some() || tracked.len() == ids.len()))
}

/// What it is called by itself.
fn title(meant: &Meant, there: Option<&There>) -> String {
    let title = match (there, meant) {
        (Some(there), _) => there.bead.title.clone(),
        (None, Meant::Tasks { title, keys, .. }) if keys.len() > 1 => format!("{title} and {} more", keys.len() - 1),
        (None, Meant::Tasks { title, .. } | Meant::Epic { title, .. } | Meant::Convoy { title, .. }) => title.clone(),
    };
    title.chars().take(TITLE_CHARS_MAX).collect()
}

/// What somebody should have looked at before it starts.
fn refuse_warned(staged: &Staged, meant: &Meant, words: &[String]) -> Result<()> {
    let words = words.join(" ");
    let aside = staged.plan.warnings.iter().filter(|warning| warning.category == Category::BlockedRig);
    let rigs = aside.filter_map(|warning| staged.graph.place(*warning.beads.first()?));
    let rigs: Vec<(String, &'static str)> = rigs.map(|rig| (rig.name.clone(), rig.state.as_str())).collect();
    if !rigs.is_empty() {
        return Err(refusal(BadStaging::RigsAside { rigs, words }));
    }
    let n_warnings = staged.plan.warnings.len();
    if n_warnings == 0 {
        return Ok(());
    }
    Err(refusal(BadStaging::Warnings { what: meant.name(), n_warnings, words }))
}

/// Stores a staged convoy: a new one, or the one that was there with what has changed.
fn put(
    tx: &Connection,
    staged: &mut Staged,
    meant: &Meant,
    there: Option<There>,
    status: ConvoyStatus,
    stamp: &Stamp,
) -> Result<Key> {
    let there = match there {
        Some(there) => there,
        None => create(tx, staged, meant, status, stamp)?,
    };
    staged.convoy = Some(there.bead.id.clone());
    staged.status = Some(status);
    let is_whole = matches!(meant, Meant::Convoy { .. }); // its members are what it tracks already
    let wanted = if is_whole { Vec::new() } else { members(&staged.graph) };
    let tracked = there.tracked();
    let mut ledger = Ledger::new(tx, stamp.now);
    let n_left = usize::from(gt_core::defect!("staged-without-its-first"));
    for id in wanted.iter().filter(|id| !tracked.contains(**id)).skip(n_left) {
        ledger.link(there.key, &links::with_origin(&Edge::new(*id, EdgeType::parse(TRACKS)), stamp))?;
    }
    let kept: FxHashSet<&str> = wanted.iter().copied().collect();
    for id in tracked.iter().filter(|id| !is_whole && !kept.contains(**id)) {
        ledger.unlink(there.key, id, &EdgeType::parse(TRACKS))?;
    }
    let mut bead = there.bead.clone();
    bead.title.clone_from(&staged.title);
    bead.set_status(Status::parse(status.as_str()), stamp.now);
    bead.updated_at = Some(stamp.now);
    ledger.rewrite(there.key, &bead)?;
    ledger.flush()?;
    let n_members = if is_whole { tracked.len() } else { wanted.len() };
    let data = json!({
        "status": status.as_str(),
        "restaged": staged.is_restaged,
        "members": n_members,
        "waves": staged.plan.n_waves(),
    });
    events::append(tx, stamp, EventType::ConvoyStaged, Some(&bead.id), &data)?;
    Ok(there.key)
}

fn create(tx: &Connection, staged: &Staged, meant: &Meant, status: ConvoyStatus, stamp: &Stamp) -> Result<There> {
    let mut bead = Bead::new("", staged.title.clone());
    bead.issue_type = Some("convoy".to_owned());
    bead.status = Status::parse(status.as_str());
    if let Some(epic) = meant.epic() {
        bead.body.put(EPIC, epic);
    }
    let id = beads::create(tx, &NewBead { prefix: format!("{TOWN_PREFIX}-cv"), parent: None, bead }, stamp)?;
    There::load(tx, crate::query::require(tx, &id)?)
}

/// What a convoy tracks: the work among what was named, what is done included; not the epics.
fn members(graph: &Graph) -> Vec<&str> {
    let is_work = |status: &Status| status.is_active() || *status == Status::Closed;
    let work = graph.spots().iter().filter(|spot| spot.is_member && spot.is_slingable && is_work(&spot.status));
    work.map(|spot| spot.id.as_str()).collect()
}

/// Opens a staged convoy. Its first wave is slung afterwards, by whoever launches it.
fn launch(tx: &Connection, key: Key, staged: &mut Staged, is_forced: bool, stamp: &Stamp) -> Result<()> {
    let mut bead = rows::load(tx, key)?;
    bead.set_status(Status::Open, stamp.now);
    bead.updated_at = Some(stamp.now);
    let mut ledger = Ledger::new(tx, stamp.now);
    ledger.rewrite(key, &bead)?;
    ledger.flush()?;
    // Whoever launches it slings its first wave, and gets the answers. Should it die before that, the next sweep feeds.
    feed::forget_members(tx, key)?;
    let first = staged.plan.waves().next().map_or(0, <[u32]>::len);
    let data = json!({ "waves": staged.plan.n_waves(), "first_wave": first, "forced": is_forced });
    events::append(tx, stamp, EventType::ConvoyLaunched, Some(&bead.id), &data)?;
    staged.status = Some(ConvoyStatus::Open);
    Ok(())
}
