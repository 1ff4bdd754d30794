//! The promises of work that is done step by step: each step once, after what it needs, and the last one closes the bead.
//!
//! Follows the plan of each bead by the log alone, and holds the store's plan, its claims and what agents are told against it.

use std::collections::{BTreeMap, BTreeSet};

use gt_core::event::Event;
use gt_core::run::Outcome;
use gt_store::{PlannedFigure, Store};

use super::{Recipe, Recipes, title};
use crate::model::Model;
use crate::stage::Stage;

/// What was planned for a bead by its last sling.
#[derive(Debug, Clone, Default)]
struct Plan {
    /// Each with the run that has done it.
    steps: Vec<(String, Option<String>)>,
    /// Runs that did not finish the step that comes next.
    n_tried: i64,
}

/// The step that a run was claimed for.
#[derive(Debug, Clone)]
struct Task {
    bead: String,
    sling: u64,
    at: usize,
    /// The step of the simulation in which it was claimed.
    since: usize,
    said: Option<Outcome>,
    is_stopping: bool,
}

#[derive(Default)]
pub struct Steps {
    plans: BTreeMap<String, Plan>,
    /// How often each bead was slung.
    slings: BTreeMap<String, u64>,
    tasks: BTreeMap<String, Task>,
    /// Since when runs that go by no plan were claimed.
    others: BTreeMap<String, usize>,
    /// Runs that were claimed since the judge looked, and beads whose step was done.
    claimed: Vec<String>,
    done: BTreeSet<String>,
    /// Runs that ended well and are said to have died: something has to be left of them.
    unclean: BTreeSet<String>,
    /// Runs that ended well and have done their step without a word: nothing may be left of them.
    silent: BTreeSet<String>,
    n_started: usize,
}

impl Steps {
    /// Takes in what happened next; `stored` is what the store says after all of it.
    pub fn apply(
        &mut self,
        event: &Event,
        model: &Model,
        stored: &[PlannedFigure],
        stage: &Stage,
    ) -> Result<(), String> {
        let text = |key: &str| event.data.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        let (bead, run) = (event.bead.clone().unwrap_or_default(), event.run.clone().unwrap_or_default());
        match event.kind.as_str() {
            "context.scheduled" => match text("by") {
                "sling" => self.plan(&bead, stored, stage)?,
                "feed" => drop(self.plans.remove(&bead)),
                "retry" => self.plans.get_mut(&bead).into_iter().for_each(|plan| plan.n_tried = 0),
                _ => {}
            },
            "bead.hooked" => self.claim(bead, run, stage),
            "run.started" => self.check_formula(&run, text("formula"), stage)?,
            "run.stopping" => {
                if let Some(task) = self.tasks.get_mut(&run) {
                    task.is_stopping = true;
                }
            }
            "run.reported" => self.hear(&run, Outcome::parse(text("outcome")))?,
            "run.ended" => self.end(event, &run, model)?,
            "polecat.kept" if self.silent.contains(&run) => {
                return Err(format!("{run} has done its step without a word, and left work behind: {}", event.data));
            }
            "polecat.kept" => drop(self.unclean.remove(&run)),
            _ => {}
        }
        Ok(())
    }

    /// A sling plans anew, by a formula that was there while it was made.
    fn plan(&mut self, bead: &str, stored: &[PlannedFigure], stage: &Stage) -> Result<(), String> {
        *self.slings.entry(bead.to_owned()).or_default() += 1;
        let ids: Vec<String> = stored.iter().filter(|one| one.bead == bead).map(|one| one.id.clone()).collect();
        if ids.is_empty() {
            self.plans.remove(bead);
            return Ok(());
        }
        let world = stage.world().lock();
        let mut recipes = world.recipes.any_since(stage.reads_since.unwrap_or(0)).flatten();
        if !recipes.any(|recipe| recipe.allows(&ids)) {
            return Err(format!("{bead} was slung with the steps {ids:?}, and no formula has them in this order"));
        }
        let steps = ids.into_iter().map(|id| (id, None)).collect();
        self.plans.insert(bead.to_owned(), Plan { steps, n_tried: 0 });
        Ok(())
    }

    /// A run is for the first step that is not done.
    fn claim(&mut self, bead: String, run: String, stage: &Stage) {
        let since = stage.world().lock().step;
        let at = self.plans.get(&bead).and_then(Plan::next);
        let sling = self.slings.get(&bead).copied().unwrap_or_default();
        match at {
            Some(at) => {
                self.tasks.insert(run.clone(), Task { bead, sling, at, since, said: None, is_stopping: false });
            }
            None => drop(self.others.insert(run.clone(), since)),
        }
        self.claimed.push(run);
    }

    /// The plan that a run goes by, unless its bead was slung anew.
    fn plan_of(&mut self, run: &str) -> Option<(Task, &mut Plan)> {
        let task = self.tasks.get(run)?.clone();
        let is_its = self.slings.get(&task.bead).copied().unwrap_or_default() == task.sling;
        let plan = self.plans.get_mut(&task.bead).filter(|_| is_its)?;
        Some((task, plan))
    }

    /// To have done a step is not to have done all.
    fn hear(&mut self, run: &str, said: Option<Outcome>) -> Result<(), String> {
        if let Some((task, plan)) = self.plan_of(run) {
            let is_last = task.at + 1 == plan.steps.len();
            let is_wrong = match said {
                Some(Outcome::Completed) => !is_last,
                Some(Outcome::StepDone) => is_last,
                _ => false,
            };
            if is_wrong {
                return Err(format!(
                    "{run} is at step {} of {:?}, and its word counts as {said:?}",
                    task.at + 1,
                    plan.steps
                ));
            }
        }
        if let Some(task) = self.tasks.get_mut(run) {
            task.said = said;
        }
        Ok(())
    }

    fn end(&mut self, event: &Event, run: &str, model: &Model) -> Result<(), String> {
        let outcome = event.data.get("outcome").and_then(|word| word.as_str()).and_then(Outcome::parse);
        let outcome = outcome.ok_or("a run ended without an outcome")?;
        let is_well = event.data.get("exit_code").and_then(serde_json::Value::as_i64) == Some(0);
        let Some((task, plan)) = self.plan_of(run) else { return Ok(()) };
        let is_last = task.at + 1 == plan.steps.len();
        let is_bead_done = model.beads.get(&task.bead).is_some_and(|bead| bead.is_done);
        let is_silent = task.said.is_none() && !task.is_stopping && !is_bead_done;
        let is_done = task.said == Some(Outcome::StepDone)
            || outcome == Outcome::StepDone
            || (outcome == Outcome::Completed && is_last);
        if is_done {
            plan.steps[task.at].1 = Some(run.to_owned());
            plan.n_tried = 0;
        } else {
            plan.n_tried += i64::from(outcome.costs_an_attempt());
        }
        if outcome == Outcome::StepDone && (is_last || (task.said != Some(Outcome::StepDone) && !is_well)) {
            return Err(format!(
                "{run} counts as {outcome:?}, and is at {} of {:?}: {}",
                task.at + 1,
                plan.steps,
                event.data
            ));
        }
        if is_done && is_silent {
            self.silent.insert(run.to_owned());
        }
        if outcome == Outcome::StepDone {
            self.done.insert(task.bead);
        } else if outcome == Outcome::Died && is_well && is_silent {
            self.unclean.insert(run.to_owned());
        }
        Ok(())
    }

    /// What was started goes by the formula as it was meanwhile.
    fn check_formula(&mut self, run: &str, formula: &str, stage: &Stage) -> Result<(), String> {
        let since = self.tasks.get(run).map(|task| task.since).or(self.others.get(run).copied()).unwrap_or(0);
        let name = formula.split('@').next().unwrap_or_default();
        let step = self.plan_of(run).map(|(task, plan)| plan.steps[task.at].0.clone());
        let world = stage.world().lock();
        let has_step = |recipe: &Recipe| step.as_ref().is_none_or(|id| recipe.needs.contains_key(id.as_str()));
        let is_known = |recipes: &Recipes| {
            let mut known = recipes.since(name, since).flatten();
            known.any(|recipe| recipe.hash.as_deref() == Some(formula) && has_step(recipe))
        };
        let is_ours = super::NAMES.contains(&name);
        if is_ours && !is_known(&world.recipes) {
            return Err(format!("{run} was started by {formula}, which was not there"));
        }
        Ok(())
    }

    /// After all that happened: the store's plans are those of the log, and who was claimed is told the right step.
    pub fn check(
        &mut self,
        store: &mut Store,
        model: &Model,
        stored: &[PlannedFigure],
        stage: &Stage,
    ) -> Result<(), String> {
        for (bead, plan) in &self.plans {
            let steps: Vec<(String, Option<String>)> =
                stored.iter().filter(|one| one.bead == *bead).map(|one| (one.id.clone(), one.run.clone())).collect();
            if steps != plan.steps && !plan.steps.is_empty() {
                return Err(format!("the steps of {bead} are {steps:?}, and by the log they are {:?}", plan.steps));
            }
        }
        if let Some(run) = std::mem::take(&mut self.unclean).into_iter().next() {
            return Err(format!("{run} ended well, left nothing behind, and is said to have died"));
        }
        self.silent.clear();
        for bead in std::mem::take(&mut self.done) {
            let goes_on =
                |bead: &crate::model::ModelBead| bead.is_queued || bead.is_done || bead.is_held || bead.run.is_some();
            if !model.beads.get(&bead).is_some_and(goes_on) {
                return Err(format!("a step of {bead} is done, and the next one never comes"));
            }
        }
        for run in std::mem::take(&mut self.claimed) {
            self.check_assignment(&run, store, model)?;
        }
        self.check_told(stage)
    }

    fn check_assignment(&mut self, run: &str, store: &mut Store, model: &Model) -> Result<(), String> {
        let Some(assignment) = store.assignment(run).map_err(|error| error.to_string())? else { return Ok(()) };
        let Some((task, plan)) = self.plan_of(run) else { return Ok(()) };
        let step = assignment.step.as_ref().map(|step| (step.id.as_str(), step.place, step.total));
        let expected = (plan.steps[task.at].0.as_str(), task.at + 1, plan.steps.len());
        if step != Some(expected) {
            return Err(format!("{run} of {} is given {step:?}, and is to do {expected:?}", task.bead));
        }
        let attempts = model.beads.get(&task.bead).map_or(0, |bead| bead.attempts);
        let n_tried = if task.at == 0 { attempts } else { plan.n_tried.min(attempts) };
        if assignment.attempts != n_tried {
            return Err(format!(
                "{run} is told of {} attempts at {expected:?}, and there were {n_tried}",
                assignment.attempts
            ));
        }
        Ok(())
    }

    /// Whoever was started was told its step.
    fn check_told(&mut self, stage: &Stage) -> Result<(), String> {
        let started = stage.ground.runtime.started();
        for run in &started[self.n_started.min(started.len())..] {
            let (Some(task), Some(launch)) = (self.tasks.get(run), stage.ground.runtime.launch(run)) else { continue };
            let Some(plan) = self.plans.get(&task.bead) else { continue };
            let title = title(&plan.steps[task.at.min(plan.steps.len() - 1)].0).replace("{{issue}}", &task.bead);
            let is_its = self.slings.get(&task.bead).copied().unwrap_or_default() == task.sling;
            let head = format!("### {title} [");
            if is_its && !launch.argv.iter().chain(&launch.stdin).any(|word| word.contains(&head)) {
                return Err(format!("{run} was not told `{head}`: {:?}", launch.argv));
            }
        }
        self.n_started = started.len();
        Ok(())
    }
}

impl Plan {
    fn next(&self) -> Option<usize> {
        self.steps.iter().position(|(_, run)| run.is_none())
    }
}
