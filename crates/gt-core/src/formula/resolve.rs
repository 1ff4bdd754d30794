//! Joining a formula with what it extends.
//!
//! Every formula that is extended counts once, in the order in which it is named, what it extends itself before it. What
//! comes later wins: a variable or a step of a known name takes the place of the earlier one, new steps come last.

use std::collections::BTreeMap;

use regex::Regex;
use sha2::{Digest, Sha256};

use super::check::{self, Whole};
use super::read::read;
use super::vars::Var;
use super::{At, EXTENDS_DEPTH_MAX, FILES_MAX, Finding, Formula, Kind, Level, Named, Step, shown};

/// What there is under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    Found {
        /// As messages call it.
        file: String,
        text: String,
    },
    Missing {
        near: Vec<String>,
    },
    /// There is something that cannot be read.
    Unreadable {
        why: String,
    },
}

/// A formula with all that it extends, judged.
#[derive(Debug, Clone)]
pub struct Recipe {
    pub name: String,
    pub version: i64,
    pub kind: Kind,
    pub description: String,
    pub vars: Vec<Var>,
    pub steps: Vec<Step>,
    /// Says which text it was made of.
    pub hash: String,
    /// Everything to know about it, errors first.
    pub findings: Vec<Finding>,
    pub(super) patterns: BTreeMap<String, Regex>,
}

impl Recipe {
    /// What keeps it from being cooked at all.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Error)
    }
}

/// Takes apart the formula of this name, and all that it extends.
pub fn resolve(name: &str, found: Lookup, look: &mut dyn FnMut(&str) -> Lookup) -> Recipe {
    let mut visit = Visit {
        look,
        path: Vec::new(),
        formulas: Vec::new(),
        met: Vec::new(),
        findings: Vec::new(),
        hash: Sha256::new(),
    };
    visit.enter(name, None, found);
    visit.finish(name)
}

struct Visit<'l> {
    look: &'l mut dyn FnMut(&str) -> Lookup,
    /// Who extends whom, down to here.
    path: Vec<String>,
    /// What is extended comes before what extends it.
    formulas: Vec<Formula>,
    met: Vec<String>,
    findings: Vec<Finding>,
    hash: Sha256,
}

impl Visit<'_> {
    /// Recursion is as deep as formulas may extend each other.
    fn enter(&mut self, name: &str, from: Option<&At>, found: Lookup) {
        let from = from.cloned().unwrap_or_else(|| At { file: "".into(), line: None });
        let (file, text) = match found {
            Lookup::Found { file, text } => (file, text),
            Lookup::Missing { near } => {
                let message = format!("there is no formula `{}` to extend", shown(name));
                self.findings.push(from.error(message).near(name, near.iter().map(String::as_str)));
                return;
            }
            Lookup::Unreadable { why } => {
                self.findings.push(from.error(why));
                return;
            }
        };
        self.met.push(name.to_owned());
        for part in [name.as_bytes(), &(text.len() as u64).to_le_bytes(), text.as_bytes()] {
            self.hash.update(part);
        }
        let (formula, findings) = read(name, &file, &text);
        self.findings.extend(findings);
        let Some(formula) = formula else { return };
        self.findings.extend(check::own(&formula));
        self.path.push(name.to_owned());
        for base in &formula.extends {
            self.extend(base);
        }
        self.path.pop();
        self.formulas.push(formula);
    }

    fn extend(&mut self, base: &Named) {
        let Named { name, at } = base;
        if let Some(first) = self.path.iter().position(|known| known == name) {
            let circle: Vec<&str> = self.path[first..].iter().chain([name]).map(String::as_str).collect();
            self.findings.push(at.error(format!("formulas extend each other in a circle: {}", circle.join(" → "))));
        } else if self.met.contains(name) {
            // It has its place already.
        } else if self.path.len() >= EXTENDS_DEPTH_MAX {
            self.findings.push(at.error(format!("formulas extend each other more than {EXTENDS_DEPTH_MAX} deep")));
        } else if self.met.len() >= FILES_MAX {
            self.findings.push(at.error(format!("more than {FILES_MAX} formulas would be read for one")));
        } else {
            let found = (self.look)(name);
            self.enter(name, Some(at), found);
        }
    }

    /// Formulas that are named for other ends must be there too.
    fn look_for_mentions(&mut self) {
        let mentions: Vec<Named> = self.formulas.iter().flat_map(|formula| formula.mentions.clone()).collect();
        for Named { name, at } in mentions.into_iter().take(FILES_MAX) {
            if let Err(why) = super::check_name(&name) {
                self.findings.push(at.error(why));
            } else if let Lookup::Missing { near } = (self.look)(&name) {
                let message = format!("there is no formula `{}`", shown(&name));
                self.findings.push(at.error(message).near(&name, near.iter().map(String::as_str)));
            }
        }
    }

    fn finish(mut self, name: &str) -> Recipe {
        self.look_for_mentions();
        let digest = self.hash.finalize();
        let number = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let hash = format!("{number:012x}");
        let mut recipe = Recipe {
            name: name.to_owned(),
            version: 1,
            kind: Kind::Workflow,
            description: String::new(),
            vars: Vec::new(),
            steps: Vec::new(),
            hash,
            findings: self.findings,
            patterns: BTreeMap::new(),
        };
        let anchors: Vec<Named> = self.formulas.iter().flat_map(|formula| formula.anchors.clone()).collect();
        let mut at = None;
        // The formula itself is the last; where it could not be read, what it extends says nothing about it.
        for formula in self.formulas {
            at = Some(formula.at.clone());
            take_in(&mut recipe, formula);
        }
        if let Some(at) = at {
            let whole = Whole {
                at: &at,
                kind: recipe.kind,
                description: &recipe.description,
                vars: &recipe.vars,
                steps: &recipe.steps,
                anchors: &anchors,
            };
            let (findings, patterns) = whole.judge();
            let known = std::mem::take(&mut recipe.findings);
            recipe.findings.extend(findings.into_iter().filter(|finding| !known.contains(finding)));
            recipe.findings.extend(known);
            recipe.patterns = patterns;
        }
        recipe.findings.sort_by(|a, b| (a.level, &a.file, a.line).cmp(&(b.level, &b.file, b.line)));
        recipe
    }
}

fn take_in(recipe: &mut Recipe, formula: Formula) {
    (recipe.version, recipe.kind) = (formula.version, formula.kind);
    if !formula.description.is_empty() {
        recipe.description = formula.description;
    }
    for var in formula.vars {
        match recipe.vars.iter_mut().find(|known| known.name == var.name) {
            Some(known) => *known = var,
            None => recipe.vars.push(var),
        }
    }
    let mut new = Vec::new();
    for step in formula.steps {
        new.extend(replace(&mut recipe.steps, step));
    }
    recipe.steps.append(&mut new);
}

/// Puts a step in the place of the one with its id, wherever that lies; gives it back where there is none.
fn replace(steps: &mut [Step], new: Step) -> Option<Step> {
    let mut new = new;
    for step in steps {
        if step.id == new.id && !new.id.is_empty() {
            *step = new;
            return None;
        }
        new = replace(&mut step.children, new)?;
    }
    Some(new)
}
