//! What a `gt sling` means: beads, a rig, an epic, a convoy, a formula on a bead, or new work. // SPEC P1
//!
//! Turns words into a `Sling` for the store; the guards are the store's.

use gt_core::bead::Bead;
use gt_core::context::SlingFields;
use gt_core::refusal::Refusal;
use gt_core::rig::{self, Home, RigState};
use gt_store::{ConvoyWish, Load, NewBead, Sling, Stamp, Store, StoreError};
use thiserror::Error;

use crate::config::join;
use crate::error::TownError;
use crate::settings::Settings;

/// The one formula that is always there.
pub const BUILT_IN_FORMULA: &str = "mol-polecat-work";

/// What somebody typed.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Ids, and perhaps a rig at the end; or a formula, with `on`.
    pub words: Vec<String>,
    /// The bead that a formula is to be applied to.
    pub on: Option<String>,
    /// The title of work that does not exist yet.
    pub new: Option<String>,
    pub fields: SlingFields,
    pub force: bool,
    pub no_convoy: bool,
    /// Flags that only make sense for single tasks, as they were typed.
    pub task_flags: Vec<&'static str>,
}

/// Why a call cannot be understood.
#[derive(Debug, Error)]
pub enum BadRequest {
    #[error("name a bead to sling")]
    Nothing,
    #[error("there is neither a bead nor a rig `{word}`")]
    Unknown { word: String, near: Vec<String> },
    #[error("`{rig}` is a rig; name the bead before it")]
    OnlyARig { rig: String },
    #[error("`--new` needs the rig that the work belongs to")]
    NewWithoutRig,
    #[error("there is no formula `{name}`")]
    NoFormula { name: String },
    #[error("`--on` takes a formula and at most a rig")]
    OnNeedsFormula,
    #[error("{id} is {article} {kind}, and its parts go to their own rigs")]
    LoadWithRig { id: String, article: &'static str, kind: &'static str },
    #[error("slinging {article} {kind} does not take {}", flags.join(", "))]
    TaskFlags { article: &'static str, kind: &'static str, flags: Vec<&'static str> },
    #[error("{kind} {id} has nothing in it that could be given to an agent")]
    Empty { id: String, kind: &'static str },
    #[error(transparent)]
    Town(#[from] TownError),
}

impl From<StoreError> for BadRequest {
    fn from(error: StoreError) -> BadRequest {
        BadRequest::Town(error.into())
    }
}

/// Works out what is meant. New work is made here, so that it has an id to be slung by.
pub fn understand(
    request: &Request,
    store: &mut Store,
    settings: &Settings,
    stamp: &Stamp,
) -> Result<Sling, BadRequest> {
    let known_rigs = store.rigs()?;
    let rigs: Vec<String> = known_rigs.iter().map(|rig| rig.name.clone()).collect();
    let (mut words, rig) = split_rig(&request.words, &rigs);
    let mut fields = request.fields.clone();
    if let Some(bead) = &request.on {
        match words.as_slice() {
            [formula] => fields.formula = Some(formula.clone()),
            _ => return Err(BadRequest::OnNeedsFormula),
        }
        words = vec![bead.clone()];
    }
    check_formula(&mut fields, rig.as_deref(), settings)?;
    if let Some(title) = &request.new {
        let rig = match (&rig, words.as_slice()) {
            (Some(rig), _) => rig.clone(),
            (None, [word]) => store.rig(word)?.name, // there is none, and this says so
            _ => return Err(BadRequest::NewWithoutRig),
        };
        words = vec![create(store, title, &rig, stamp)?];
    }
    match (words.as_slice(), &rig) {
        ([], Some(rig)) => return Err(BadRequest::OnlyARig { rig: rig.clone() }),
        ([], None) => return Err(BadRequest::Nothing),
        ([id], _) => {
            if let Some(load) = find(store, id, &rigs)? {
                return whole_load(request, load, rig.as_deref(), fields);
            }
        }
        // A last word that cannot be a bead is a rig that was mistyped, and nothing of the batch is right.
        ([.., last], None) if matches!(rig::home(last, None, &known_rigs), Home::Nowhere) => {
            find(store, last, &rigs)?;
        }
        _ => {}
    }
    let convoy = if request.no_convoy { ConvoyWish::No } else { ConvoyWish::Auto { title: None } };
    let is_batch = words.len() > 1;
    Ok(Sling { beads: words, rig, fields, force: request.force, convoy, is_batch })
}

/// The last word is a rig if one is called so.
fn split_rig(words: &[String], rigs: &[String]) -> (Vec<String>, Option<String>) {
    match words.split_last() {
        Some((last, before)) if rigs.contains(last) => (before.to_vec(), Some(last.clone())),
        _ => (words.to_vec(), None),
    }
}

/// Looks at the one bead that is named; a word that is nothing is told with both kinds of near matches.
fn find(store: &mut Store, id: &str, rigs: &[String]) -> Result<Option<Load>, BadRequest> {
    match store.load_of(id) {
        Err(StoreError::NoBead { id, near }) => {
            let rigs = gt_core::near::closest(&id, rigs.iter().map(String::as_str));
            Err(BadRequest::Unknown { word: id, near: near.into_iter().chain(rigs).collect() })
        }
        answer => Ok(answer?),
    }
}

fn whole_load(request: &Request, load: Load, rig: Option<&str>, fields: SlingFields) -> Result<Sling, BadRequest> {
    let (article, kind) = match load.kind {
        gt_store::LoadKind::Epic => ("an", "epic"),
        gt_store::LoadKind::Convoy => ("a", "convoy"),
    };
    if rig.is_some() {
        return Err(BadRequest::LoadWithRig { id: load.id, article, kind });
    }
    if !request.task_flags.is_empty() {
        return Err(BadRequest::TaskFlags { article, kind, flags: request.task_flags.clone() });
    }
    if load.members.is_empty() {
        return Err(BadRequest::Empty { id: load.id, kind });
    }
    let convoy = match load.kind {
        gt_store::LoadKind::Epic => ConvoyWish::Auto { title: Some(load.title) },
        gt_store::LoadKind::Convoy => ConvoyWish::No,
    };
    Ok(Sling { beads: load.members, rig: None, fields, force: request.force, convoy, is_batch: true })
}

/// The formula: the one named, the rig's default, or the built-in one; none for a raw bead.
fn check_formula(fields: &mut SlingFields, rig: Option<&str>, settings: &Settings) -> Result<(), BadRequest> {
    if fields.hook_raw_bead {
        fields.formula = None;
        return Ok(());
    }
    let default = || rig.and_then(|rig| settings.config.text(&join(&["rigs", rig, "default_formula"])));
    let name = fields.formula.take().or_else(default).unwrap_or_else(|| BUILT_IN_FORMULA.to_owned());
    if name != BUILT_IN_FORMULA {
        return Err(BadRequest::NoFormula { name: gt_core::text::one_line(&name) });
    }
    fields.formula = Some(name);
    Ok(())
}

fn create(store: &mut Store, title: &str, rig: &str, stamp: &Stamp) -> Result<String, BadRequest> {
    let rig = store.rig(rig)?;
    if rig.state != RigState::Active {
        return Err(StoreError::from(Refusal::RigAside { name: rig.name, state: rig.state.as_str() }).into());
    }
    let mut bead = Bead::new("", title);
    bead.issue_type = Some("task".to_owned());
    Ok(store.create_bead(&NewBead { prefix: rig.prefix, parent: None, bead }, stamp)?)
}
