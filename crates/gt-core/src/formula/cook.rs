//! Cooking: a recipe and its values become the steps that an agent is told.

use std::collections::BTreeSet;

use serde::Serialize;

use super::condition::Condition;
use super::order::{self, Placed};
use super::vars::{self, Values, Var};
use super::{AUTOMATIC, At, COOKED_BYTES_MAX, Finding, Kind, Level, Recipe, Step, flatten, shown};

/// A formula ready to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cooked {
    pub formula: String,
    pub version: i64,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub description: String,
    pub hash: String,
    pub vars: Vec<CookedVar>,
    pub steps: Vec<CookedStep>,
    /// What is not supported, and what is worth knowing.
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CookedVar {
    pub name: String,
    pub description: String,
    pub default: Option<String>,
    pub required: bool,
    #[serde(rename = "enum")]
    pub choices: Vec<String>,
    pub pattern: Option<String>,
    /// `None` where placeholders were kept.
    pub value: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CookedStep {
    pub id: String,
    pub title: String,
    pub description: String,
    pub notes: String,
    pub acceptance: Vec<String>,
    /// Ids of steps that come before.
    pub needs: Vec<String>,
    /// The step that it is a part of.
    pub parent: Option<String>,
    pub depth: usize,
    /// As written; with values it holds.
    pub condition: Option<String>,
    #[serde(rename = "type")]
    pub step_type: Option<String>,
    pub priority: Option<i64>,
    pub labels: Vec<String>,
    pub assignee: Option<String>,
    pub interactive: bool,
}

impl Cooked {
    /// Why it cannot be given to an agent, though it makes sense; empty: it can.
    pub fn objections(&self) -> Vec<String> {
        let kind = (self.kind != Kind::Workflow).then(|| {
            format!("`{}` is of the type `{}`; only workflows are given to agents", self.formula, self.kind.as_str())
        });
        let unsupported = self.findings.iter().filter(|finding| finding.level == Level::Unsupported);
        kind.into_iter().chain(unsupported.map(Finding::to_string)).collect()
    }
}

impl Recipe {
    /// Orders the steps and fills in values; without values placeholders and conditions stay.
    ///
    /// Fails with everything that is wrong.
    pub fn cook(&self, values: Option<&Values>) -> Result<Cooked, Vec<Finding>> {
        let mut errors: Vec<Finding> = self.errors().cloned().collect();
        errors.extend(values.map(|values| self.object(values)).unwrap_or_default());
        if !errors.is_empty() {
            return Err(errors);
        }
        let value_of = |name: &str| {
            let default = self.vars.iter().find(|var| var.name == name).and_then(|var| var.default.as_deref());
            // What a dispatch fills in by itself stays where nobody has dispatched.
            let absent = (!AUTOMATIC.contains(&name)).then_some("");
            values.and_then(|values| values.of(name, default.or(absent)))
        };
        let left_out = self.left_out(values.is_some(), &value_of);
        let placed = order::order(&self.steps, &left_out)
            .map_err(|circle| vec![nowhere().error(format!("steps need each other: {}", circle.join(" → ")))])?;
        if placed.is_empty() && self.kind == Kind::Workflow {
            return Err(vec![nowhere().error(format!("with these values no step of `{}` is left", self.name))]);
        }
        let kept: BTreeSet<&str> = placed.iter().map(|placed| placed.step.id.as_str()).collect();
        let mut room = COOKED_BYTES_MAX;
        let mut steps = Vec::new();
        for placed in placed {
            let step = cooked(placed, &kept, &value_of);
            let Some(left) = room.checked_sub(size(&step)) else {
                let message = format!("the texts of its steps have more than {COOKED_BYTES_MAX} bytes together");
                return Err(vec![
                    nowhere().error(message).hint("shorten them, or keep details in a file of the repository"),
                ]);
            };
            room = left;
            steps.push(step);
        }
        Ok(Cooked {
            formula: self.name.clone(),
            version: self.version,
            kind: self.kind,
            description: vars::fill(&self.description, value_of),
            hash: self.hash.clone(),
            vars: self.vars.iter().map(|var| cooked_var(var, values)).collect(),
            steps,
            findings: self.findings.iter().cloned().chain(values.map(|v| self.unused(v)).unwrap_or_default()).collect(),
        })
    }

    /// What is wrong with the values.
    fn object(&self, values: &Values) -> Vec<Finding> {
        let mut findings = Vec::new();
        let is_missing = |var: &&Var| {
            let is_empty = values.of(&var.name, None).is_none_or(str::is_empty);
            var.is_required && is_empty && !AUTOMATIC.contains(&var.name.as_str())
        };
        let missing: Vec<String> = self.vars.iter().filter(is_missing).map(|var| format!("`{}`", var.name)).collect();
        if let Some(first) = self.vars.iter().find(is_missing) {
            let (what, verb) = if missing.len() == 1 { ("variable", "is") } else { ("variables", "are") };
            let message = format!("the {what} {} of `{}` {verb} required", missing.join(", "), self.name);
            findings.push(nowhere().error(message).hint(format!("give it: `--var {}=VALUE`", first.name)));
        }
        for var in self.vars.iter().filter(|var| !is_missing(var)) {
            let value = values.of(&var.name, None);
            let objection = value.and_then(|value| var.objection(value, self.patterns.get(&var.name)));
            findings.extend(objection.map(|objection| nowhere().error(format!("the variable {objection}"))));
        }
        findings
    }

    /// Values that no variable takes.
    fn unused(&self, values: &Values) -> Vec<Finding> {
        let known = || self.vars.iter().map(|var| var.name.as_str()).chain(AUTOMATIC);
        let unused = values.given_names().filter(|name| !known().any(|known| known == *name));
        let told = unused.map(|name| {
            let message = format!("`{}` has no variable `{}`", self.name, shown(name));
            nowhere().finding(Level::Warning, message).near(name, known())
        });
        told.collect()
    }

    /// Steps whose condition does not hold.
    fn left_out<'v>(&self, is_filled: bool, value_of: &impl Fn(&str) -> Option<&'v str>) -> BTreeSet<&str> {
        let is_out = |step: &&Step| {
            let condition = step.condition.as_deref().and_then(Condition::parse);
            condition.is_some_and(|condition| !condition.holds(value_of(condition.var).unwrap_or_default()))
        };
        let steps = if is_filled { flatten(&self.steps) } else { Vec::new() };
        steps.into_iter().filter(is_out).map(|step| step.id.as_str()).collect()
    }
}

/// Values stand in no file.
fn nowhere() -> At {
    At { file: "".into(), line: None }
}

fn cooked<'v>(placed: Placed<'_>, kept: &BTreeSet<&str>, value_of: &impl Fn(&str) -> Option<&'v str>) -> CookedStep {
    let step = placed.step;
    let fill = |text: &String| vars::fill(text, value_of);
    let mut needs: Vec<String> = Vec::new();
    for need in step.needs.iter().filter(|need| kept.contains(need.name.as_str())) {
        if !needs.contains(&need.name) {
            needs.push(need.name.clone());
        }
    }
    CookedStep {
        id: step.id.clone(),
        title: fill(&step.title),
        description: fill(&step.description),
        notes: fill(&step.notes),
        acceptance: step.acceptance.iter().map(fill).collect(),
        needs,
        parent: placed.parent.map(|parent| parent.id.clone()),
        depth: placed.depth,
        condition: step.condition.as_ref().map(fill),
        step_type: step.step_type.clone(),
        priority: step.priority,
        labels: step.labels.iter().map(fill).collect(),
        assignee: step.assignee.as_ref().map(fill),
        interactive: step.is_interactive,
    }
}

fn size(step: &CookedStep) -> usize {
    let lists = step.acceptance.iter().chain(&step.labels).chain(&step.needs);
    let texts = [&step.id, &step.title, &step.description, &step.notes].into_iter().chain(lists);
    texts.map(String::len).sum()
}

fn cooked_var(var: &Var, values: Option<&Values>) -> CookedVar {
    let value = values.and_then(|values| values.of(&var.name, var.default.as_deref()));
    CookedVar {
        name: var.name.clone(),
        description: var.description.clone(),
        default: var.default.clone(),
        required: var.is_required,
        choices: var.choices.clone(),
        pattern: var.pattern.clone(),
        value: value.map(str::to_owned),
    }
}
