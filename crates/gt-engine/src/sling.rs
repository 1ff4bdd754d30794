//! What a `gt sling` means: beads, a rig, an epic, a convoy, a formula on a bead, or new work. // SPEC P1
//!
//! Turns words into a `Sling` for the store; the guards are the store's.

use std::collections::BTreeMap;

use gt_core::bead::Bead;
use gt_core::context::SlingFields;
use gt_core::formula::{self, Values};
use gt_core::refusal::Refusal;
use gt_core::rig::{self, Home, Rig, RigState};
use gt_store::{ConvoyWish, Homed, Load, NewBead, PlannedStep, Prescription, Sling, Stamp, Store, StoreError};
use thiserror::Error;

use crate::agents;
use crate::error::TownError;
use crate::formulas::{self, Library};
use crate::settings::Settings;
use crate::town::Town;

/// The mode in which each step gets a fresh run: `gt sling --ralph`.
pub const STEP_BY_STEP: &str = "ralph";

/// What somebody typed.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Ids, and perhaps a rig at the end; or a formula, with `on`.
    pub words: Vec<String>,
    /// The bead that a formula is to be applied to.
    pub on: Option<String>,
    /// The title of work that does not exist yet.
    pub new: Option<String>,
    /// The fire that slings it, which may try several times.
    pub fire: Option<i64>,
    pub fields: SlingFields,
    pub force: bool,
    pub no_convoy: bool,
    /// Words that are commands beside ids, where the one that was typed is neither.
    pub commands: &'static [&'static str],
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
    NoFormula { name: String, near: Vec<String> },
    #[error("there is no agent `{name}`")]
    NoAgent { name: String, near: Vec<String> },
    #[error("the formula `{name}` cannot be used: {why}")]
    BadFormula { name: String, why: String },
    #[error("`{name}` is a formula, and needs a bead to be worked on by it")]
    OnlyAFormula { name: String },
    #[error("`--on` takes a formula and at most a rig")]
    OnNeedsFormula,
    #[error("{id} is {article} {kind}, and its parts go to their own rigs")]
    LoadWithRig { id: String, article: &'static str, kind: &'static str },
    #[error("slinging {article} {kind} does not take {}", flags.join(", "))]
    TaskFlags { article: &'static str, kind: &'static str, flags: Vec<&'static str> },
    #[error("convoy {id} is staged, and starts nothing before it is launched")]
    Staged { id: String },
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
    town: &Town,
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
    let formulas = Formulas { library: Library::of(town), settings };
    formulas.check_named(&fields)?;
    check_agent(&fields, settings)?;
    if let Some(title) = &request.new {
        let rig = match (&rig, words.as_slice()) {
            (Some(rig), _) => rig.clone(),
            (None, [word]) => store.rig(word)?.name, // there is none, and this says so
            _ => return Err(BadRequest::NewWithoutRig),
        };
        formulas.check_for(&store.rig(&rig)?, title, &fields)?;
        words = vec![create(store, title, &rig, request.fire, stamp)?];
    }
    match (words.as_slice(), &rig) {
        ([], Some(rig)) => return Err(BadRequest::OnlyARig { rig: rig.clone() }),
        ([], None) => return Err(BadRequest::Nothing),
        ([id], _) => {
            if let Some(load) = find(store, id, &rigs, &formulas, request.commands)? {
                let mut sling = whole_load(request, load, rig.as_deref(), fields)?;
                formulas.prescribe(&mut sling, store, &known_rigs)?;
                return Ok(sling);
            }
        }
        // A last word that cannot be a bead is a rig that was mistyped, and nothing of the batch is right.
        ([.., last], None) if matches!(rig::home(last, None, &known_rigs), Home::Nowhere) => {
            find(store, last, &rigs, &formulas, &[])?;
        }
        _ => {}
    }
    let convoy = if request.no_convoy { ConvoyWish::No } else { ConvoyWish::Auto { title: None } };
    let is_batch = words.len() > 1;
    let prescriptions = BTreeMap::new();
    let mut sling = Sling { beads: words, rig, fields, force: request.force, convoy, is_batch, prescriptions };
    formulas.prescribe(&mut sling, store, &known_rigs)?;
    Ok(sling)
}

/// Whether there is an agent by the name that was given. // SPEC P3
fn check_agent(fields: &SlingFields, settings: &Settings) -> Result<(), BadRequest> {
    match fields.agent.as_deref().and_then(|name| Some((name, agents::near(&settings.config, name)?))) {
        Some((name, near)) => Err(BadRequest::NoAgent { name: gt_core::text::one_line(name), near }),
        None => Ok(()),
    }
}

/// A sling of what a convoy tracks already, each bead to its own rig; one refusal does not stop the others. What somebody
/// named is taken even from whom it is assigned to. // SPEC C3, D5
pub fn members(
    beads: Vec<String>,
    named: &[String],
    town: &Town,
    store: &mut Store,
    settings: &Settings,
) -> Result<Sling, BadRequest> {
    let known_rigs = store.rigs()?;
    let is_each_named = beads.iter().all(|bead| named.contains(bead));
    let mut sling = Sling {
        beads,
        rig: None,
        fields: SlingFields::default(),
        force: false,
        convoy: if is_each_named { ConvoyWish::No } else { ConvoyWish::Launched },
        is_batch: true,
        prescriptions: BTreeMap::new(),
    };
    Formulas { library: Library::of(town), settings }.prescribe(&mut sling, store, &known_rigs)?;
    Ok(sling)
}

/// The last word is a rig if one is called so.
fn split_rig(words: &[String], rigs: &[String]) -> (Vec<String>, Option<String>) {
    match words.split_last() {
        Some((last, before)) if rigs.contains(last) => (before.to_vec(), Some(last.clone())),
        _ => (words.to_vec(), None),
    }
}

/// Looks at the one bead that is named; a word that is nothing is told with every kind of near matches.
fn find(
    store: &mut Store,
    id: &str,
    rigs: &[String],
    formulas: &Formulas<'_>,
    commands: &[&'static str],
) -> Result<Option<Load>, BadRequest> {
    match store.load_of(id) {
        Err(StoreError::NoBead { id, .. }) if formulas.library.recipe(&id).is_some() => {
            Err(BadRequest::OnlyAFormula { name: id })
        }
        Err(StoreError::NoBead { id, near }) => {
            let commands = gt_core::near::closest(&id, commands.iter().copied());
            let commands = commands.into_iter().map(|command| format!("gt queue {command}"));
            let rigs = gt_core::near::closest(&id, rigs.iter().map(String::as_str));
            Err(BadRequest::Unknown { word: id, near: commands.chain(near).chain(rigs).collect() })
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
    if load.is_staged {
        return Err(BadRequest::Staged { id: load.id });
    }
    if load.members.is_empty() {
        return Err(BadRequest::Empty { id: load.id, kind });
    }
    let convoy = match load.kind {
        gt_store::LoadKind::Epic => ConvoyWish::Auto { title: Some(load.title) },
        gt_store::LoadKind::Convoy => ConvoyWish::No,
    };
    let prescriptions = BTreeMap::new();
    Ok(Sling { beads: load.members, rig: None, fields, force: request.force, convoy, is_batch: true, prescriptions })
}

/// Which formula a bead gets, and whether it cooks for it.
struct Formulas<'s> {
    library: Library,
    settings: &'s Settings,
}

impl Formulas<'_> {
    /// A formula that is named explicitly is there and makes sense, before anything else is looked at.
    fn check_named(&self, fields: &SlingFields) -> Result<(), BadRequest> {
        let Some(name) = fields.formula.as_deref().filter(|_| !fields.hook_raw_bead) else { return Ok(()) };
        let shown = gt_core::text::one_line(name);
        if let Err(why) = formula::check_name(name) {
            return Err(BadRequest::BadFormula { name: shown, why });
        }
        let Some(recipe) = self.library.recipe(name) else {
            return Err(BadRequest::NoFormula { near: self.library.near(name), name: shown });
        };
        match recipe.cook(None) {
            Err(findings) => Err(BadRequest::BadFormula { name: shown, why: formulas::sentence(&findings) }),
            Ok(cooked) if cooked.objections().is_empty() => Ok(()),
            Ok(cooked) => Err(BadRequest::BadFormula { name: shown, why: cooked.objections().join("; ") }),
        }
    }

    /// Work that does not exist yet is not made for a formula that would not cook for it.
    fn check_for(&self, rig: &Rig, title: &str, fields: &SlingFields) -> Result<(), BadRequest> {
        let bead = Homed { id: format!("{}-new", rig.prefix), title: title.to_owned(), rig: Some(rig.name.clone()) };
        let Prescription { formula, objection, .. } = self.prescription(&bead, rig, fields);
        match objection {
            Some(why) => Err(BadRequest::BadFormula { name: formula.unwrap_or_default(), why }),
            None => Ok(()),
        }
    }

    /// Decides for every bead of a sling. What has no rig, or is not there, is refused for that elsewhere.
    fn prescribe(&self, sling: &mut Sling, store: &mut Store, rigs: &[Rig]) -> Result<(), BadRequest> {
        for bead in store.homes(&sling.beads)? {
            let name = sling.rig.as_ref().or(bead.rig.as_ref());
            if let Some(rig) = rigs.iter().find(|rig| Some(&rig.name) == name) {
                let prescription = self.prescription(&bead, rig, &sling.fields);
                sling.prescriptions.insert(bead.id, prescription);
            }
        }
        Ok(())
    }

    fn prescription(&self, bead: &Homed, rig: &Rig, fields: &SlingFields) -> Prescription {
        let Some(name) = formulas::name_for(fields, rig, self.settings) else { return Prescription::default() };
        let base_branch = fields.base_branch.as_deref().unwrap_or(&rig.branch);
        let given = Values::given(fields.vars.as_deref().unwrap_or_default());
        let values = given.about(&bead.id, &bead.title, &rig.name, base_branch);
        let cooked = match self.library.recipe(&name) {
            Some(recipe) => formulas::cook(&recipe, &values),
            None => Err(format!("there is no formula `{}`", gt_core::text::one_line(&name))),
        };
        let formula = Some(name);
        match cooked {
            Err(why) => Prescription { formula, objection: Some(why), steps: Vec::new() },
            Ok(cooked) => {
                let is_by_step = fields.mode.as_deref() == Some(STEP_BY_STEP);
                let steps = cooked.steps.into_iter().filter(|_| is_by_step);
                let steps = steps.map(|step| PlannedStep { id: step.id, title: step.title }).collect();
                Prescription { formula, objection: None, steps }
            }
        }
    }
}

fn create(store: &mut Store, title: &str, rig: &str, fire: Option<i64>, stamp: &Stamp) -> Result<String, BadRequest> {
    let rig = store.rig(rig)?;
    if rig.state != RigState::Active {
        return Err(StoreError::from(Refusal::RigAside { name: rig.name, state: rig.state.as_str() }).into());
    }
    let mut bead = Bead::new("", title);
    bead.issue_type = Some("task".to_owned());
    let new = NewBead { prefix: rig.prefix, parent: None, bead };
    Ok(match fire {
        Some(fire) => store.create_bead_once(&new, fire, stamp)?,
        None => store.create_bead(&new, stamp)?,
    })
}
