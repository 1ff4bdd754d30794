//! Formulas that people write, rewrite, break and delete, and slings that go by them, all at once or step by step.
//!
//! Owns the files over time and who changes them. What must hold of the steps is `judge`.

pub mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fastrand::Rng;
use gt_core::context::SlingFields;
use gt_engine::formulas::Library;
use gt_engine::sling::{BadRequest, Request, STEP_BY_STEP};
use gt_store::Sling;

use crate::knobs::replace;
use crate::part::Part;
use crate::processes::Errand;
use crate::stage::Stage;
use crate::world::World;

/// The formulas that there are, or are not.
const NAMES: [&str; 2] = ["alpha", "beta"];
/// The steps that they are made of.
const STEPS: [&str; 5] = ["plan", "build", "check", "write", "ship"];

/// A formula as its author meant it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recipe {
    /// What each step needs.
    pub needs: BTreeMap<&'static str, BTreeSet<&'static str>>,
    pub text: String,
    /// As `run.started` names it; `None`: it does not cook.
    pub hash: Option<String>,
}

impl Recipe {
    /// Steps in the order in which they are written, whatever they need.
    fn draw(rng: &mut Rng, name: &str) -> Recipe {
        let mut steps = STEPS;
        rng.shuffle(&mut steps);
        let n_steps = rng.usize(1..=STEPS.len());
        let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for at in 0..n_steps {
            let needed = steps[..at].iter().copied().filter(|_| rng.u32(0..3) == 0);
            needs.insert(steps[at], needed.collect());
        }
        rng.shuffle(&mut steps);
        let text = text(name, &needs, &steps);
        Recipe { needs, text, hash: None }
    }

    /// One that no sling gets, and no start.
    fn draw_broken(rng: &mut Rng, name: &str) -> Recipe {
        let text = match rng.u32(0..3) {
            0 => "steps = [\n".to_owned(),
            1 => text(
                name,
                &BTreeMap::from([("plan", BTreeSet::from(["build"])), ("build", BTreeSet::from(["plan"]))]),
                &STEPS,
            ),
            _ => text(name, &BTreeMap::from([("plan", BTreeSet::from(["nowhere"]))]), &STEPS),
        };
        Recipe { text, ..Recipe::default() }
    }

    /// One that has every step, so that whatever was planned can be done.
    fn whole(name: &str) -> Recipe {
        let needs: BTreeMap<&str, BTreeSet<&str>> = STEPS.into_iter().map(|step| (step, BTreeSet::new())).collect();
        let text = text(name, &needs, &STEPS);
        Recipe { needs, text, hash: None }
    }

    /// Whether steps in this order are all of its, and each comes after what it needs.
    pub fn allows(&self, order: &[String]) -> bool {
        let is_whole = order.len() == self.needs.len() && order.iter().all(|id| self.needs.contains_key(id.as_str()));
        let comes_after = |at: usize, id: &String| {
            self.needs[id.as_str()].iter().all(|needed| order[..at].iter().any(|before| before == needed))
        };
        is_whole && order.iter().enumerate().all(|(at, id)| comes_after(at, id))
    }
}

fn text(name: &str, needs: &BTreeMap<&str, BTreeSet<&str>>, written: &[&str]) -> String {
    let mut text = format!("formula = \"{name}\"\nversion = 1\n");
    for id in written.iter().filter(|id| needs.contains_key(**id)) {
        let needed: Vec<&&str> = needs[*id].iter().collect();
        write!(text, "\n[[steps]]\nid = \"{id}\"\ntitle = \"{}\"\nneeds = {needed:?}\n", title(id))
            .expect("writing to a string cannot fail");
    }
    text
}

/// What an agent is told of a step.
pub fn title(id: &str) -> String {
    format!("Do the {id} of {{{{issue}}}}")
}

/// The formulas of a town, as they were over time.
#[derive(Debug, Default)]
pub struct Recipes {
    pub is_used: bool,
    /// From which step of the simulation on a file was which; `None`: it was not there.
    history: BTreeMap<&'static str, Vec<(usize, Option<Recipe>)>>,
}

impl Recipes {
    /// All that a formula was from a step on.
    pub fn since(&self, name: &str, step: usize) -> impl Iterator<Item = Option<&Recipe>> {
        let all = self.history.get(name).map_or(&[][..], Vec::as_slice);
        let first = all.iter().rposition(|(from, _)| *from <= step).unwrap_or(0);
        all[first..].iter().map(|(_, recipe)| recipe.as_ref())
    }

    /// All that any formula was from a step on.
    pub fn any_since(&self, step: usize) -> impl Iterator<Item = Option<&Recipe>> {
        NAMES.into_iter().flat_map(move |name| self.since(name, step))
    }

    /// A refusal of a formula has its cause in a file.
    fn explains(&self, bad: &BadRequest, since: usize) -> bool {
        let cooks = |recipe: Option<&Recipe>| recipe.is_some_and(|recipe| recipe.hash.is_some());
        match bad {
            BadRequest::NoFormula { name, .. } => self.since(name, since).any(|recipe| recipe.is_none()),
            BadRequest::BadFormula { name, .. } => self.since(name, since).any(|recipe| !cooks(recipe)),
            BadRequest::Unknown { .. } | BadRequest::Empty { .. } | BadRequest::Staged { .. } => true,
            _ => false,
        }
    }
}

impl World {
    /// A sling by a formula, perhaps step by step, of what a plain one was to sling.
    pub fn draw_request(&mut self, sling: Sling) -> Errand {
        let formula = (self.rng.u32(0..5) > 0).then(|| NAMES[self.rng.usize(0..NAMES.len())].to_owned());
        let mode = (formula.is_some() && self.rng.u32(0..4) > 0).then(|| STEP_BY_STEP.to_owned());
        let fields = SlingFields { formula, mode, ..sling.fields };
        let request = Request { words: sling.beads, fields, force: sling.force, ..Request::default() };
        Errand::Prescribe(Box::new(request))
    }

    /// What a sling was refused for is so.
    pub fn check_refused(&mut self, bad: &BadRequest, since: usize) {
        if !self.recipes.explains(bad, since) {
            self.violations.push(format!("a sling was refused, and nothing is wrong: {bad}"));
        }
    }
}

/// People who write formulas.
pub struct Cooks;

impl Part for Cooks {
    fn weight(&self, _: &Stage) -> u32 {
        3
    }

    fn act(&mut self, stage: &mut Stage) {
        let (name, recipe) = {
            let mut world = stage.world().lock();
            let name = NAMES[world.rng.usize(0..NAMES.len())];
            let recipe = match world.rng.u32(0..6) {
                0 => None,
                1 => Some(Recipe::draw_broken(&mut world.rng, name)),
                _ => Some(Recipe::draw(&mut world.rng, name)),
            };
            (name, recipe)
        };
        put(stage, name, recipe);
    }

    fn heal(&mut self, stage: &mut Stage) {
        for name in NAMES {
            put(stage, name, Some(Recipe::whole(name)));
        }
    }
}

/// The formulas with which a town begins.
pub fn begin(stage: &mut Stage) {
    stage.world().lock().recipes.is_used = true;
    for name in NAMES {
        let recipe = Recipe::draw(&mut stage.world().lock().rng, name);
        put(stage, name, Some(recipe));
    }
}

/// Writes a formula's file, or takes it away.
fn put(stage: &mut Stage, name: &'static str, recipe: Option<Recipe>) {
    let town = &stage.ground.town;
    let dir = town.root().join("formulas");
    std::fs::create_dir_all(&dir).expect("the town's directory can be written");
    let path = dir.join(format!("{name}.formula.toml"));
    match &recipe {
        Some(recipe) => replace(&path, &recipe.text),
        None => std::fs::remove_file(&path).unwrap_or_default(),
    }
    let hash = || Some(Library::of(town).recipe(name)?.cook(None).ok()?.hash);
    let recipe = recipe.map(|recipe| {
        let hash = hash().filter(|_| !recipe.needs.is_empty());
        Recipe { hash: hash.map(|hash| format!("{name}@{hash}")), ..recipe }
    });
    stage.world().tell(|| format!("the formula {name} is now {recipe:?}"));
    let mut world = stage.world().lock();
    let step = world.step;
    world.recipes.history.entry(name).or_default().push((step, recipe));
}
