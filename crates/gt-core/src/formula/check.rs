//! Judging a formula: what its parts say to each other.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::condition::Condition;
use super::vars::{self, AUTOMATIC, Var, placeholders};
use super::{At, Finding, Formula, Kind, Level, Named, STEPS_MAX, Step, flatten, order, shown};

/// What is wrong inside one file: an id that is used twice.
pub(super) fn own(formula: &Formula) -> Vec<Finding> {
    twice(&flatten(&formula.steps))
}

fn twice(steps: &[&Step]) -> Vec<Finding> {
    let mut met: FxHashMap<&str, &At> = FxHashMap::default();
    let mut findings = Vec::new();
    for step in steps.iter().filter(|step| !step.id.is_empty()) {
        if let Some(first) = met.get(step.id.as_str()) {
            let place = first.line.map(|line| format!(", as in line {line}")).unwrap_or_default();
            findings.push(step.at.error(format!("the id `{}` is used twice{place}", shown(&step.id))));
        } else {
            met.insert(&step.id, &step.at);
        }
    }
    findings
}

/// A formula with all that it extends, as far as it has to be judged.
pub(super) struct Whole<'a> {
    pub(super) at: &'a At,
    pub(super) kind: Kind,
    pub(super) description: &'a str,
    pub(super) vars: &'a [Var],
    pub(super) steps: &'a [Step],
    pub(super) anchors: &'a [Named],
}

impl Whole<'_> {
    /// Everything that is wrong with the whole, and its patterns, ready to be used.
    pub(super) fn judge(&self) -> (Vec<Finding>, BTreeMap<String, Regex>) {
        let steps = flatten(self.steps);
        let mut findings = Vec::new();
        if self.kind == Kind::Workflow && steps.is_empty() {
            let hint = "add one: `[[steps]]` with an `id` and a `title`";
            findings.push(self.at.error("a workflow needs at least one step").hint(hint));
        }
        if steps.len() > STEPS_MAX {
            findings.push(self.at.error(format!("with what it extends it has more than {STEPS_MAX} steps")));
            return (findings, BTreeMap::new());
        }
        let patterns = self.judge_vars(&mut findings);
        self.judge_names(&steps, &mut findings);
        self.judge_placeholders(&steps, &mut findings);
        conditions(&steps, &mut findings);
        let twice = twice(&steps);
        // Two steps of one id would make nonsense of the order.
        if twice.is_empty()
            && let Err(circle) = order::order(self.steps, &BTreeSet::new())
        {
            findings.push(in_a_circle(&circle, &steps));
        }
        findings.extend(twice);
        (findings, patterns)
    }

    fn judge_vars(&self, findings: &mut Vec<Finding>) -> BTreeMap<String, Regex> {
        let mut patterns = BTreeMap::new();
        for var in self.vars {
            let (name, at) = (&var.name, &var.at);
            if !var.is_type_known() {
                let word = shown(var.type_word.as_deref().unwrap_or_default());
                let message = format!("the variable `{name}` has the type `{word}`; its value is taken as text");
                findings.push(at.finding(Level::Warning, message));
            }
            match var.pattern.as_deref().map(vars::compile) {
                Some(Ok(pattern)) => drop(patterns.insert(name.clone(), pattern)),
                Some(Err(why)) => findings.push(at.error(format!("the pattern of `{name}` cannot be used: {why}"))),
                None => {}
            }
            let Some(default) = &var.default else { continue };
            if let Some(objection) = var.objection(default, patterns.get(name)) {
                findings.push(at.error(format!("the default of {objection}")));
            }
            if placeholders(default).next().is_some() {
                let message = format!("the default of `{name}` holds a placeholder, which is not filled in");
                findings.push(at.finding(Level::Warning, message));
            }
        }
        patterns
    }

    fn judge_names(&self, steps: &[&Step], findings: &mut Vec<Finding>) {
        let known: FxHashSet<&str> = steps.iter().map(|step| step.id.as_str()).filter(|id| !id.is_empty()).collect();
        let needs = steps.iter().flat_map(|step| step.needs.iter().map(move |need| (Some(step), need)));
        let anchors = self.anchors.iter().map(|anchor| (None, anchor));
        for (step, need) in needs.chain(anchors).filter(|(_, need)| !known.contains(need.name.as_str())) {
            if findings.len() > super::FINDINGS_MAX {
                return;
            }
            let who = step.map_or("`compose` names".to_owned(), |step| format!("step `{}` needs", shown(&step.id)));
            let message = format!("{who} `{}`, and there is no such step", shown(&need.name));
            findings.push(need.at.error(message).near(&need.name, known.iter().copied()));
        }
    }

    fn judge_placeholders(&self, steps: &[&Step], findings: &mut Vec<Finding>) {
        let known: FxHashSet<&str> = self.vars.iter().map(|var| var.name.as_str()).chain(AUTOMATIC).collect();
        let top = [(self.at, "the description".to_owned(), self.description)];
        let in_steps = steps
            .iter()
            .flat_map(|step| texts(step).map(move |text| (&step.at, format!("step `{}`", shown(&step.id)), text)));
        let mut met = FxHashSet::default();
        for (at, place, text) in top.into_iter().chain(in_steps) {
            for name in placeholders(text).filter(|name| !known.contains(name)) {
                if met.insert((name, place.clone())) && met.len() <= super::FINDINGS_MAX {
                    let message = format!("{place} uses `{{{{{name}}}}}`, and there is no such variable");
                    let hint = format!("declare it: `[vars.{name}]`");
                    let finding = at.error(message).hint(hint);
                    findings.push(finding.near(name, known.iter().copied()));
                }
            }
        }
    }
}

/// Every text of a step in which variables are filled in.
pub(super) fn texts(step: &Step) -> impl Iterator<Item = &str> {
    let optional = [&step.condition, &step.assignee].into_iter().flatten();
    let lists = step.acceptance.iter().chain(&step.labels);
    [&step.title, &step.description, &step.notes].into_iter().chain(optional).chain(lists).map(String::as_str)
}

fn conditions(steps: &[&Step], findings: &mut Vec<Finding>) {
    for step in steps {
        if let Some(text) = step.condition.as_deref().filter(|text| Condition::parse(text).is_none()) {
            let message =
                format!("step `{}` has the condition `{}`, which is not supported", shown(&step.id), shown(text));
            let hint = "conditions are `{{x}}`, `!{{x}}`, `{{x}} == word` and `{{x}} != word`";
            findings.push(step.at.finding(Level::Unsupported, message).hint(hint));
        }
    }
}

fn in_a_circle(circle: &[String], steps: &[&Step]) -> Finding {
    let first = circle.first().map(String::as_str).unwrap_or_default();
    let at = steps.iter().find(|step| step.id == first).map(|step| step.at.clone());
    let at = at.unwrap_or_else(|| At { file: "".into(), line: None });
    let names: Vec<String> = circle.iter().chain(circle.first()).map(|id| shown(id)).collect();
    match circle {
        [one] => at.error(format!("step `{}` needs itself", shown(one))),
        _ => at.error(format!("steps need each other in a circle: {}", names.join(" → "))),
    }
}
