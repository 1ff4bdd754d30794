//! `gt formula`: recipes by which agents work. // SPEC P9
//!
//! `gt bead cook` is the same as `gt formula cook`.

use std::sync::Arc;

use clap::{Args, Subcommand};
use gt_core::formula::{Cooked, CookedStep, CookedVar, Finding, Level, Recipe, Values, check_name};
use gt_core::text::{many_lines, one_line};
use gt_engine::formulas::{Entry, Library};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, DIM, GREEN, RED, YELLOW, paint};

/// Look at the recipes by which agents work
///
/// A formula is a TOML file NAME.formula.toml with steps, in the town's directory `formulas`, in
/// ~/.config/gasworks/formulas, or built in; the first of these that has a name decides.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt formula list
  gt formula show mol-polecat-work
  gt formula cook release --var version=1.2
  gt sling release --on gt-a1b2 --var version=1.2")]
pub(crate) struct FormulaArgs {
    #[command(subcommand)]
    command: FormulaCommand,
}

#[derive(Debug, Subcommand)]
enum FormulaCommand {
    List(ListArgs),
    Show(ShowArgs),
    Cook(CookArgs),
}

/// List the formulas there are
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt formula list\n  gt formula list --json")]
pub(crate) struct ListArgs {}

/// Show a formula's variables and steps
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt formula show mol-polecat-work")]
pub(crate) struct ShowArgs {
    /// The formula's name
    name: String,
}

/// Check a formula as a dispatch would, and print what comes of it
///
/// Without --var placeholders stay as they are. With --var they are filled in, and all that a dispatch would miss is
/// told; what it knows by itself (issue, feature, title, rig, base_branch) stays open.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt formula cook release
  gt formula cook release --var version=1.2 --var notes=short
  gt formula cook release --json")]
pub(crate) struct CookArgs {
    /// The formula's name
    name: String,
    /// A variable; may be repeated
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = super::sling::variable)]
    vars: Vec<String>,
}

pub(crate) fn run(context: &Context, args: FormulaArgs) -> Result<(), Failure> {
    match args.command {
        FormulaCommand::List(_) => list(context),
        FormulaCommand::Show(args) => show(context, &args.name),
        FormulaCommand::Cook(args) => cook(context, &args),
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let entries = Library::of(&context.town()?).list();
    if context.wants_json() {
        return context.json(&entries.iter().map(entry_json).collect::<Vec<_>>());
    }
    let width = |text: fn(&Entry) -> &str| entries.iter().map(|entry| text(entry).chars().count()).max().unwrap_or(0);
    let (names, origins) = (width(|entry| &entry.name), width(|entry| entry.origin.as_str()));
    for entry in &entries {
        let head = format!("{:names$}  {:origins$}  ", one_line(&entry.name), entry.origin.as_str());
        let shadowed = if entry.is_shadowed { paint(DIM, "(shadowed) ") } else { String::new() };
        context.say(&match &entry.problem {
            Some(problem) => format!("{head}{shadowed}{} {}", paint(RED, "broken:"), one_line(problem)),
            None => format!("{head}{shadowed}{}", one_line(&entry.description)),
        })?;
    }
    Ok(())
}

fn entry_json(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "source": entry.origin.as_str(),
        "file": entry.file.as_ref().map(|file| file.display().to_string()),
        "shadowed": entry.is_shadowed,
        "type": entry.kind,
        "version": entry.version,
        "description": entry.description,
        "steps": entry.n_steps,
        "problem": entry.problem,
    })
}

fn find(context: &Context, name: &str) -> Result<Arc<Recipe>, Failure> {
    let library = Library::of(&context.town()?);
    if let Err(why) = check_name(name) {
        return Err(Failure::new(Kind::Usage, why).hint("`gt formula list` shows what there is"));
    }
    library.recipe(name).ok_or_else(|| {
        let near: Vec<String> = library.near(name).iter().map(|near| format!("`{near}`")).collect();
        let hint = match near.as_slice() {
            [] => "`gt formula list` shows what there is".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        Failure::new(Kind::NotFound, format!("there is no formula `{name}`")).hint(hint)
    })
}

fn show(context: &Context, name: &str) -> Result<(), Failure> {
    let recipe = find(context, name)?;
    let cooked = recipe.cook(None).map_err(|findings| does_not_cook(name, &recipe, &findings))?;
    print(context, &cooked, Detail::Overview)
}

pub(crate) fn cook(context: &Context, args: &CookArgs) -> Result<(), Failure> {
    let recipe = find(context, &args.name)?;
    let values = (!args.vars.is_empty()).then(|| Values::given(&args.vars.join("\n")));
    let cooked = recipe.cook(values.as_ref()).map_err(|findings| does_not_cook(&args.name, &recipe, &findings))?;
    let unsupported: Vec<Finding> =
        cooked.findings.iter().filter(|finding| finding.level == Level::Unsupported).cloned().collect();
    if cooked.kind == gt_core::formula::Kind::Workflow && !unsupported.is_empty() {
        let message = format!("the formula `{}` makes sense, but cannot be given to an agent", args.name);
        return Err(Failure::new(Kind::Refused, message)
            .because(unsupported.iter().map(in_words))
            .hint(format!("`gt formula show {}` shows it all the same", args.name)));
    }
    print(context, &cooked, Detail::Texts)
}

fn does_not_cook(name: &str, recipe: &Recipe, findings: &[Finding]) -> Failure {
    let n = findings.len();
    let problems = if n == 1 { "problem" } else { "problems" };
    let is_sound = recipe.errors().next().is_none();
    let hint = if is_sound {
        format!("give other values; `gt formula show {name}` shows what each variable takes")
    } else {
        format!("mend the file, then `gt formula cook {name}` again; docs/formulas.md says what each key means")
    };
    Failure::new(Kind::Refused, format!("the formula `{name}` does not cook: {n} {problems}"))
        .because(findings.iter().map(in_words))
        .hint(hint)
}

fn in_words(finding: &Finding) -> String {
    let hint = finding.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{finding}{hint}")
}

/// How much of a formula is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Overview,
    Texts,
}

fn print(context: &Context, cooked: &Cooked, detail: Detail) -> Result<(), Failure> {
    let objections = cooked.objections();
    if context.wants_json() {
        let mut value = serde_json::to_value(cooked).map_err(|error| Failure::new(Kind::Refused, error.to_string()))?;
        value["dispatchable"] = objections.is_empty().into();
        return context.json(&value);
    }
    let mut text = format!(
        "{}  version {}, {}  {}\n",
        paint(BOLD, &cooked.formula),
        cooked.version,
        cooked.kind.as_str(),
        paint(DIM, &cooked.hash)
    );
    if !cooked.description.is_empty() {
        text.extend([many_lines(cooked.description.trim()).as_str(), "\n"]);
    }
    text.push_str(&vars(&cooked.vars));
    text.push_str(&steps(&cooked.steps, detail));
    for finding in cooked.findings.iter().filter(|finding| finding.level == Level::Warning) {
        text.extend(["\n", &paint(YELLOW, "note:"), " ", &in_words(finding)]);
    }
    for objection in &objections {
        text.extend(["\n", &paint(YELLOW, "not for agents:"), " ", objection]);
    }
    context.say(text.trim_end())
}

fn vars(vars: &[CookedVar]) -> String {
    if vars.is_empty() {
        return String::new();
    }
    let width = vars.iter().map(|var| var.name.chars().count()).max().unwrap_or(0);
    let mut text = format!("\n{}\n", paint(BOLD, "Variables"));
    for var in vars {
        let state = match (&var.value, &var.default) {
            (Some(value), _) => format!("= {}", one_line(value)),
            (None, Some(default)) => format!("default `{}`", one_line(default)),
            (None, None) if var.required => "required".to_owned(),
            (None, None) => "optional".to_owned(),
        };
        let choices =
            if var.choices.is_empty() { String::new() } else { format!(", one of {}", var.choices.join(", ")) };
        let pattern = var.pattern.as_ref().map(|pattern| format!(", matches `{pattern}`")).unwrap_or_default();
        let about = if var.description.is_empty() { String::new() } else { format!("  {}", var.description) };
        text.extend([format!(
            "  {:width$}  {}{}\n",
            var.name,
            one_line(&format!("{state}{choices}{pattern}")),
            paint(DIM, &one_line(&about))
        )]);
    }
    text
}

fn steps(steps: &[CookedStep], detail: Detail) -> String {
    if steps.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint(BOLD, "Steps"));
    for (number, step) in (1..).zip(steps) {
        let indent = "  ".repeat(step.depth);
        let title = one_line(&step.title);
        let mut about = format!("[{}]", one_line(&step.id));
        if !step.needs.is_empty() {
            about.extend([" needs ", &one_line(&step.needs.join(", "))]);
        }
        if let Some(condition) = &step.condition {
            about.extend([" if ", &one_line(condition)]);
        }
        text.extend([format!("  {indent}{} {title}  {}\n", paint(GREEN, &format!("{number:>2}")), paint(DIM, &about))]);
        if detail == Detail::Texts {
            text.push_str(&details(step));
        }
    }
    text
}

fn details(step: &CookedStep) -> String {
    let parts =
        [("", step.description.clone()), ("done when: ", step.acceptance.join(" ")), ("note: ", step.notes.clone())];
    let mut text = String::new();
    for (head, body) in parts.into_iter().filter(|(_, body)| !body.trim().is_empty()) {
        let body = many_lines(body.trim());
        for (at, line) in body.lines().enumerate() {
            let head = if at == 0 { head } else { "" };
            text.extend([format!("       {head}{line}").trim_end(), "\n"]);
        }
    }
    text
}
