//! Taking a file apart: types of values, known keys, and where everything stands.
//!
//! What is written under each key is judged as far as the key alone tells; `check` judges how the parts fit together.

mod fields;

use std::sync::Arc;

use toml_edit::{Document, TableLike};

use super::vars::{Var, is_name};
use super::{At, DEPTH_MAX, FILE_BYTES_MAX, Finding, Formula, ID_CHARS_MAX, Kind, Named, STEPS_MAX, Step};
use super::{VARS_MAX, shown};
use crate::text;

use self::fields::{Fields, Notes};

const FORMULA_KEYS: &[&str] = &[
    "formula",
    "version",
    "type",
    "description",
    "extends",
    "vars",
    "steps",
    "template",
    "compose",
    "advice",
    "pointcuts",
    "phase",
    "pour",
    "agent",
    "review_only",
    "inputs",
    "prompts",
    "output",
    "legs",
    "synthesis",
    "squash",
];
const STEP_KEYS: &[&str] = &[
    "id",
    "title",
    "description",
    "notes",
    "type",
    "priority",
    "labels",
    "metadata",
    "needs",
    "depends_on",
    "waits_for",
    "assignee",
    "expand",
    "expand_vars",
    "condition",
    "children",
    "gate",
    "loop",
    "on_complete",
    "parallel",
    "interactive",
    "acceptance",
];
const VAR_KEYS: &[&str] = &["description", "default", "required", "enum", "pattern", "type"];

/// Takes a file apart. What could be understood comes back even where something else is wrong.
pub(super) fn read(name: &str, file: &str, text: &str) -> (Option<Formula>, Vec<Finding>) {
    let file: Arc<str> = file.into();
    let at = At { file: Arc::clone(&file), line: None };
    if text.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes; at most {FILE_BYTES_MAX} are read", text.len());
        return (None, vec![at.error(message)]);
    }
    let mut notes = Notes::new(file, text);
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let at = notes.at(error.span());
            return (None, vec![at.error(format!("this is no TOML: {}", shown(error.message())))]);
        }
    };
    let formula = formula(name, document.as_table(), &mut notes);
    (Some(formula), notes.finish())
}

fn formula(name: &str, table: &dyn TableLike, notes: &mut Notes<'_>) -> Formula {
    let top = notes.at(None);
    let mut fields = Fields::new(table, top.clone(), "the formula".to_owned(), notes);
    called(name, &mut fields);
    let version = version(&mut fields);
    let kind = kind(&mut fields);
    let description = fields.text("description").unwrap_or_default();
    let extends = extends(&mut fields);
    let vars = vars(&mut fields);
    let mut count = 0;
    let mut steps = steps(&mut fields, "steps", 1, &mut count);
    let template = self::steps(&mut fields, "template", 1, &mut count);
    if kind == Kind::Expansion {
        steps.extend(template);
    } else if fields.has("template") {
        fields.unsupported("template", "a template is a part of expansions, which are not carried out here".to_owned());
    }
    let (mut mentions, anchors) = compose(&mut fields);
    mentions.append(&mut fields.notes.mentions);
    if kind == Kind::Workflow {
        not_in_workflows(&mut fields);
    }
    fields.only(FORMULA_KEYS);
    Formula { at: top, version, kind, description, extends, vars, steps, mentions, anchors }
}

fn called(name: &str, fields: &mut Fields<'_, '_, '_>) {
    match fields.text("formula") {
        None if fields.has("formula") => {}
        None => {
            let hint = format!("begin the file with `formula = \"{name}\"`");
            fields.error("formula", "its name is missing", Some(hint));
        }
        Some(given) if given != name => {
            let given = shown(&given);
            fields
                .warn("formula", format!("it calls itself `{given}`, but is found by the name of its file, `{name}`"));
        }
        Some(_) => {}
    }
}

fn version(fields: &mut Fields<'_, '_, '_>) -> i64 {
    match fields.integer("version") {
        None if !fields.has("version") => {
            fields.error("version", "its version is missing", Some("write `version = 1`".to_owned()));
            1
        }
        Some(version) if version < 1 => {
            fields.error("version", format!("its version is {version}; versions begin at 1"), None);
            1
        }
        version => version.unwrap_or(1),
    }
}

fn kind(fields: &mut Fields<'_, '_, '_>) -> Kind {
    let Some(word) = fields.text("type") else { return Kind::Workflow };
    Kind::parse(&word).unwrap_or_else(|| {
        let words = Kind::ALL.map(Kind::as_str);
        let message = format!("there is no type `{}`; it is one of {}", shown(&word), words.join(", "));
        let finding = fields.at("type").error(message).near(&word, words);
        fields.notes.push(finding);
        Kind::Workflow
    })
}

fn extends(fields: &mut Fields<'_, '_, '_>) -> Vec<Named> {
    let named = fields.texts("extends");
    for one in &named {
        if let Err(why) = super::check_name(&one.name) {
            fields.notes.push(one.at.error(why));
        }
    }
    named.into_iter().filter(|one| super::check_name(&one.name).is_ok()).collect()
}

fn vars(fields: &mut Fields<'_, '_, '_>) -> Vec<Var> {
    let Some((table, _)) = fields.table("vars") else { return Vec::new() };
    if table.len() > VARS_MAX {
        fields.error("vars", format!("there are {} variables; at most {VARS_MAX} are read", table.len()), None);
    }
    let mut vars = Vec::new();
    for (name, item) in table.iter().take(VARS_MAX) {
        let at = fields.notes.at_key(table, name);
        if !is_name(name) {
            let why = format!("`{}` cannot be a variable: a name is made of letters, digits, `_` and `-`", shown(name));
            fields.notes.push(at.error(why));
            continue;
        }
        let mut var = Var::new(name, at.clone());
        if let Some(table) = item.as_table_like() {
            described(&mut var, table, &mut *fields.notes);
        } else if let Some(default) = fields::scalar(item) {
            var.default = Some(default);
        } else {
            fields.notes.push(at.error(format!("the variable `{name}` must be a default in quotes, or a table")));
        }
        vars.push(var);
    }
    vars
}

fn described(var: &mut Var, table: &dyn TableLike, notes: &mut Notes<'_>) {
    let mut fields = Fields::new(table, var.at.clone(), format!("the variable `{}`", var.name), notes);
    var.description = fields.text("description").unwrap_or_default();
    var.default = fields.scalar("default");
    var.is_required = fields.flag("required");
    var.choices = fields.texts("enum").into_iter().map(|one| one.name).collect();
    if fields.has("enum") && var.choices.is_empty() {
        fields.error("enum", "an empty `enum` allows no value", None);
    }
    var.pattern = fields.text("pattern");
    var.type_word = fields.text("type");
    if var.is_required && var.default.is_some() {
        let hint = "leave one of them out: with a default nobody has to give it".to_owned();
        fields.error("required", format!("`{}` is required and has a default", var.name), Some(hint));
    }
    fields.only(VAR_KEYS);
}

fn steps(fields: &mut Fields<'_, '_, '_>, key: &str, depth: usize, count: &mut usize) -> Vec<Step> {
    let tables = fields.tables(key);
    if depth > DEPTH_MAX && !tables.is_empty() {
        fields.error(key, format!("steps lie more than {DEPTH_MAX} deep in each other"), None);
        return Vec::new();
    }
    let mut steps = Vec::new();
    for (table, at) in tables {
        *count += 1;
        if *count > STEPS_MAX {
            fields.notes.push(at.error(format!("there are more than {STEPS_MAX} steps; the rest is not read")));
            break;
        }
        steps.push(step(table, at, depth, count, fields.notes));
    }
    steps
}

fn step(table: &dyn TableLike, at: At, depth: usize, count: &mut usize, notes: &mut Notes<'_>) -> Step {
    let mut fields = Fields::new(table, at.clone(), "a step".to_owned(), notes);
    let id = fields.text("id").unwrap_or_default();
    if id.trim().is_empty() {
        fields.error("id", "this step has no id", Some("every step needs an `id` of its own".to_owned()));
    } else {
        fields.what = format!("step `{}`", shown(&id));
        check_id(&mut fields, &id);
    }
    let title = fields.text("title").unwrap_or_default();
    if title.trim().is_empty() && !fields.has("expand") {
        let what = fields.what.clone();
        fields.error("title", format!("{what} has no title"), None);
    }
    let priority = fields.integer("priority");
    if let Some(wrong) = priority.filter(|priority| !(0..=4).contains(priority)) {
        let what = fields.what.clone();
        fields.error("priority", format!("{what} has the priority {wrong}; it is 0 (most urgent) to 4"), None);
    }
    let mut needs = fields.texts("needs");
    needs.extend(fields.texts("depends_on"));
    needs.extend(waits_for(&mut fields));
    not_carried_out(&mut fields);
    let step = Step {
        title,
        description: fields.text("description").unwrap_or_default(),
        notes: fields.text("notes").unwrap_or_default(),
        acceptance: fields.text_or_texts("acceptance"),
        condition: fields.text("condition"),
        step_type: fields.text("type"),
        priority,
        labels: fields.texts("labels").into_iter().map(|label| label.name).collect(),
        assignee: fields.text("assignee"),
        is_interactive: fields.flag("interactive"),
        needs,
        children: steps(&mut fields, "children", depth + 1, count),
        id,
        at,
    };
    fields.flag("parallel");
    fields.only(STEP_KEYS);
    step
}

fn check_id(fields: &mut Fields<'_, '_, '_>, id: &str) {
    let what = fields.what.clone();
    if id.chars().count() > ID_CHARS_MAX {
        fields.error("id", format!("the id of {what} has more than {ID_CHARS_MAX} characters"), None);
    } else if id.chars().any(|c| c.is_whitespace() || text::misleads(c)) {
        fields.error("id", format!("the id of {what} holds spaces or control characters"), None);
    }
}

/// The step whose children are waited for. All of a step's children come before what needs the step, so waiting for
/// all, or for any, of the children of what is needed asks for nothing more.
fn waits_for(fields: &mut Fields<'_, '_, '_>) -> Option<Named> {
    let word = fields.text("waits_for")?;
    if ["all-children", "any-children"].contains(&word.as_str()) {
        return None;
    }
    let at = fields.at("waits_for");
    match word.strip_prefix("children-of(").and_then(|rest| rest.strip_suffix(')')) {
        Some(id) if !id.trim().is_empty() => Some(Named { name: id.trim().to_owned(), at }),
        _ => {
            let message = format!(
                "{} waits for `{}`; it can be `all-children`, `any-children` or `children-of(ID)`",
                fields.what,
                shown(&word)
            );
            fields.notes.push(at.error(message).near(&word, ["all-children", "any-children"]));
            None
        }
    }
}

/// What a step may ask for and nobody here does: it is judged, and then told instead of being left out.
fn not_carried_out(fields: &mut Fields<'_, '_, '_>) {
    let what = fields.what.clone();
    if fields.has("gate") {
        fields.table("gate");
        fields.unsupported("gate", format!("{what} has a gate, and gates are not supported"));
    }
    if let Some(name) = fields.text("expand") {
        let at = fields.at("expand");
        fields.notes.mentions.push(Named { name, at });
        fields.unsupported("expand", format!("{what} is to be expanded, and expansions are not supported"));
    }
    fields.table("expand_vars");
    fields.table("metadata");
    looped(fields);
    on_complete(fields);
    if let Some(who) = fields.text("assignee") {
        let who = shown(&who);
        fields.warn("assignee", format!("{what} is meant for {who}; one worker does all steps of a bead"));
    }
}

fn looped(fields: &mut Fields<'_, '_, '_>) {
    let what = fields.what.clone();
    let Some((table, at)) = fields.table("loop") else { return };
    let has = |key: &str| table.get(key).is_some();
    let ways = ["count", "until", "range"].into_iter().filter(|key| has(key)).count();
    if ways != 1 {
        fields.notes.push(at.error(format!("the loop of {what} needs one of `count`, `until` and `range`")));
    }
    if has("until") && !has("max") {
        fields.notes.push(at.error(format!("the loop of {what} has `until` and no `max`, so it may never end")));
    }
    let body = table.get("body").is_some_and(|body| body.as_array().is_none_or(|list| !list.is_empty()));
    if !body {
        fields.notes.push(at.error(format!("the loop of {what} has no `body`")));
    }
    fields.unsupported("loop", format!("{what} is a loop, and loops are not supported"));
}

fn on_complete(fields: &mut Fields<'_, '_, '_>) {
    let what = fields.what.clone();
    let Some((table, at)) = fields.table("on_complete") else { return };
    let text = |key: &str| table.get(key).and_then(|item| item.as_str());
    let flag = |key: &str| table.get(key).and_then(toml_edit::Item::as_bool).unwrap_or_default();
    let wrong = match (text("for_each"), text("bond")) {
        (Some(each), Some(_)) if !each.starts_with("output.") => {
            Some(format!("goes through `{}`, and `for_each` begins with `output.`", shown(each)))
        }
        (Some(_), None) => Some("has `for_each` without `bond`".to_owned()),
        (None, Some(_)) => Some("has `bond` without `for_each`".to_owned()),
        (None, None) => Some("has neither `for_each` nor `bond`".to_owned()),
        _ => None,
    };
    let both = (flag("parallel") && flag("sequential")).then(|| "is both parallel and sequential".to_owned());
    for wrong in [wrong, both].into_iter().flatten() {
        fields.notes.push(at.error(format!("`on_complete` of {what} {wrong}")));
    }
    if let Some(name) = text("bond") {
        fields.notes.mentions.push(Named { name: name.to_owned(), at });
    }
    fields.unsupported("on_complete", format!("{what} makes more work when it is complete, which is not supported"));
}

/// Keys that change what a workflow does, and that nobody here carries out.
fn not_in_workflows(fields: &mut Fields<'_, '_, '_>) {
    for key in ["compose", "advice", "pointcuts", "inputs", "prompts", "output", "legs", "synthesis"] {
        if fields.has(key) {
            fields.unsupported(key, format!("`{key}` is not supported in a workflow"));
        }
    }
    if fields.flag("review_only") {
        fields.unsupported("review_only", "`review_only` is not supported: a worker may change and commit".to_owned());
    }
    if fields.flag("pour") {
        fields.warn("pour", "steps are not made into beads; the agent reads them in its assignment".to_owned());
    }
    if fields.text("agent").is_some() {
        fields.warn("agent", "the agent is not taken from here; name it with `gt sling --agent NAME`".to_owned());
    }
}

/// The fields of `compose`: formulas that it names, and steps that it hangs something on.
fn compose(fields: &mut Fields<'_, '_, '_>) -> (Vec<Named>, Vec<Named>) {
    let (mut mentions, mut anchors) = (Vec::new(), Vec::new());
    let Some((table, at)) = fields.table("compose") else { return (mentions, anchors) };
    let mut compose = Fields::new(table, at, "`compose`".to_owned(), fields.notes);
    let parts: [(&str, &[&str]); 6] = [
        ("bond_points", &["id"]),
        ("hooks", &["trigger", "attach"]),
        ("expand", &["target", "with"]),
        ("map", &["select", "with"]),
        ("branch", &["from", "join"]),
        ("gate", &["before", "condition"]),
    ];
    for (key, needed) in parts {
        for (table, at) in compose.tables(key) {
            let mut part = Fields::new(table, at.clone(), format!("`compose.{key}`"), compose.notes);
            let missing: Vec<String> =
                needed.iter().filter(|key| part.text(key).is_none()).map(|key| format!("`{key}`")).collect();
            if !missing.is_empty() {
                part.notes.push(at.error(format!("an entry of `compose.{key}` has no {}", missing.join(" and no "))));
            }
            for name in ["with", "attach"] {
                mentions.extend(part.named(name));
            }
            for step in ["after_step", "before_step", "before", "target", "from", "join"] {
                anchors.extend(part.named(step));
            }
            if part.has("after_step") && part.has("before_step") {
                part.notes.push(at.error("a bond point lies after a step or before one, not both"));
            }
        }
    }
    mentions.extend(compose.texts("aspects"));
    compose.only(&["bond_points", "hooks", "expand", "map", "branch", "gate", "aspects"]);
    (mentions, anchors)
}
