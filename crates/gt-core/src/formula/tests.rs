//! Formulas: every rule of their form with a file that breaks it, what they extend, and how they cook.

mod cooking;
mod hostile;
mod joining;
mod properties;
mod rules;

use std::collections::BTreeMap;

use super::*;

/// A library of formulas by name.
#[derive(Debug, Default)]
struct Shelf {
    texts: BTreeMap<String, String>,
}

impl Shelf {
    fn with(mut self, name: &str, text: &str) -> Shelf {
        self.texts.insert(name.to_owned(), text.to_owned());
        self
    }

    fn look(&self, name: &str) -> Lookup {
        match self.texts.get(name) {
            Some(text) => Lookup::Found { file: format!("{name}.toml"), text: text.clone() },
            None => Lookup::Missing { near: crate::near::closest(name, self.texts.keys().map(String::as_str)) },
        }
    }

    fn recipe(&self, name: &str) -> Recipe {
        resolve(name, self.look(name), &mut |name| self.look(name))
    }
}

/// A formula `x` with these lines after its head.
fn alone(lines: &str) -> Recipe {
    let text = format!("formula = 'x'\nversion = 1\n{lines}");
    Shelf::default().with("x", &text).recipe("x")
}

/// A formula that is fine but for these lines.
fn with_a_step(lines: &str) -> Recipe {
    alone(&format!("{lines}\n[[steps]]\nid = 'a'\ntitle = 'A'\n"))
}

fn in_words(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let mark = match finding.level {
            Level::Error => "",
            Level::Unsupported => "(unsupported) ",
            Level::Warning => "(warning) ",
        };
        let hint = finding.hint.as_ref().map(|hint| format!(" | {hint}")).unwrap_or_default();
        format!("{mark}{finding}{hint}")
    };
    findings.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_told(recipe: &Recipe, wanted: &str) {
    assert_eq!(in_words(&recipe.findings), wanted);
    let is_error = recipe.findings.iter().any(|finding| finding.level == Level::Error);
    assert_eq!(recipe.cook(None).is_err(), is_error, "only errors keep it from being cooked");
}
