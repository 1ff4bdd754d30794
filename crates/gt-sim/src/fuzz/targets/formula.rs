//! Formulas: files that extend each other, split by lines of three dashes; the first is cooked.
//!
//! A formula is cooked or refused in words that say where. What cooks is in order, repeats itself, keeps to its bounds and
//! leaves no placeholder of a variable that it knows.

use std::collections::BTreeMap;

use gt_core::formula::{AUTOMATIC, COOKED_BYTES_MAX, Cooked, Finding, Lookup, Recipe, Values, check_name, resolve};
use gt_core::text::misleads;

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "formula", check, tokens: TOKENS };

/// What the files of an input are called.
const NAMES: [&str; 4] = ["x", "y", "z", "w"];
const TOLD_CHARS_MAX: usize = 2_000;

const TOKENS: &[&str] = &[
    "formula = 'x'\nversion = 1\n",
    "\n---\n",
    "extends = ['y', 'z']\n",
    "extends = ['x']\n",
    "type = 'expansion'\n",
    "[[steps]]\nid = 'a'\ntitle = 'A'\n",
    "[[steps.children]]\nid = 'c'\ntitle = 'C'\n",
    "needs = ['a']\n",
    "depends_on = ['b', 'c']\n",
    "waits_for = 'children-of(a)'\n",
    "condition = '{{v}} == 1'\n",
    "condition = '!{{v}}'\n",
    "[vars]\nv = '1'\n",
    "[vars.v]\nrequired = true\n",
    "pattern = '^(a+)+$'\n",
    "enum = ['1', '2']\n",
    "type = 'int'\n",
    "{{v}}",
    "{{ issue }}",
    "{{{{",
    "}}",
    "on_complete = { for_each = 'output.x', bond = 'y' }\n",
    "loop = { count = 3, body = [] }\n",
    "gate = { type = 'x' }\n",
    "expand = 'y'\n",
    "acceptance = ['a', 'b']\n",
    "priority = 5\n",
    "children = [{ id = 'd', title = 'D' }]\n",
    "'''",
    "\"\"\"",
    "\\u0000",
    "\u{202e}",
];

fn check(bytes: &[u8]) -> Verdict {
    // What is not UTF-8 never gets so far as to be parsed.
    let Ok(text) = str::from_utf8(bytes) else { return Verdict::Refused };
    let files: BTreeMap<&str, &str> = NAMES.into_iter().zip(text.split("\n---\n")).collect();
    let look = |name: &str| match files.get(name) {
        Some(text) => Lookup::Found { file: format!("{name}.toml"), text: (*text).to_owned() },
        None => Lookup::Missing { near: Vec::new() },
    };
    let recipe = resolve("x", look("x"), &mut |name| look(name));
    recipe.findings.iter().for_each(is_told);
    let plain = recipe.cook(None);
    assert_eq!(plain.is_err(), recipe.errors().next().is_some(), "only errors keep it from being cooked");
    let values = Values::given("v=1").about("gt-1", "Title", "shop", "main");
    match recipe.cook(Some(&values)) {
        Ok(cooked) => {
            assert_eq!(Ok(&cooked), recipe.cook(Some(&values)).as_ref(), "cooking repeats itself");
            is_sound(&recipe, &cooked);
        }
        Err(findings) => {
            assert!(!findings.is_empty(), "refused without a word");
            findings.iter().for_each(is_told);
        }
    }
    // One that was taken apart got past the door, whatever else is wrong with it.
    Verdict::accepted_if(!recipe.steps.is_empty())
}

fn is_told(finding: &Finding) {
    let told = format!("{finding} {}", finding.hint.as_deref().unwrap_or_default());
    assert!(!finding.message.is_empty() && !told.contains(misleads), "{told:?}");
    assert!(told.chars().count() < TOLD_CHARS_MAX, "{} characters are told", told.len());
}

fn is_sound(recipe: &Recipe, cooked: &Cooked) {
    let place = |id: &str| cooked.steps.iter().position(|step| step.id == id);
    let mut n_bytes = 0;
    for (at, step) in cooked.steps.iter().enumerate() {
        let before = step.needs.iter().chain(&step.parent);
        before.for_each(|id| {
            assert!(place(id).is_some_and(|earlier| earlier < at), "{id} does not come before {}", step.id);
        });
        let texts = [&step.title, &step.description, &step.notes];
        n_bytes += texts.iter().map(|text| text.len()).sum::<usize>();
        assert!(texts.iter().all(|text| !text.contains('\0')), "an argument would end there");
        let is_plain = recipe.vars.iter().all(|var| !var.default.as_deref().unwrap_or_default().contains(['{', '}']));
        let names = recipe.vars.iter().map(|var| var.name.as_str()).chain(AUTOMATIC);
        for name in names.filter(|_| is_plain && !step.title.contains("{{{")) {
            assert!(!step.title.contains(&format!("{{{{{name}}}}}")), "`{name}` is left in {:?}", step.title);
        }
    }
    assert!(n_bytes <= COOKED_BYTES_MAX, "{n_bytes} bytes were cooked");
    assert_eq!(check_name(&cooked.formula), Ok(()));
}
