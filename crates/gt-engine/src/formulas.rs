//! Where formulas come from: the town, the user, or built in; and reading their files within bounds. // SPEC P9
//!
//! The first of the three that has a name decides, even where its file cannot be read: nobody gets another recipe than
//! the one they see. What a formula means is `gt_core::formula`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gt_core::context::SlingFields;
use gt_core::formula::{self, Cooked, FILE_BYTES_MAX, Finding, Lookup, Recipe, SUFFIX, Values};
use gt_core::near;
use gt_core::rig::Rig;
use gt_core::text::one_line;
use gt_store::Assignment;
use rustix::fs::OFlags;

use crate::agents::base_branch;
use crate::config::join;
use crate::settings::Settings;
use crate::town::Town;

/// The one formula that is always there.
pub const DEFAULT: &str = "mol-polecat-work";

const BUILT_IN: [(&str, &str); 1] = [(DEFAULT, include_str!("formulas/mol-polecat-work.formula.toml"))];

/// Files of one directory that are looked at.
const FILES_MAX: usize = 1000;

/// Who a formula comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Town,
    User,
    BuiltIn,
}

impl Origin {
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Town => "town",
            Origin::User => "user",
            Origin::BuiltIn => "built in",
        }
    }
}

/// One line of the list.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: String,
    pub origin: Origin,
    /// `None`: it is built in.
    pub file: Option<PathBuf>,
    /// An earlier place has one of this name, which is used instead.
    pub is_shadowed: bool,
    pub kind: &'static str,
    pub version: i64,
    pub description: String,
    pub n_steps: usize,
    /// Why it cannot be cooked.
    pub problem: Option<String>,
}

/// The formulas that a town can use, each read and joined once.
#[derive(Debug)]
pub struct Library {
    places: Vec<(Origin, PathBuf)>,
    recipes: Mutex<BTreeMap<String, Option<Arc<Recipe>>>>,
}

impl Library {
    pub fn of(town: &Town) -> Library {
        let own = (Origin::Town, town.root().join("formulas"));
        let places = [Some(own), user_dir().map(|dir| (Origin::User, dir))].into_iter().flatten().collect();
        Library { places, recipes: Mutex::default() }
    }

    /// The formula of this name, joined with what it extends; `None`: there is none.
    pub fn recipe(&self, name: &str) -> Option<Arc<Recipe>> {
        let mut recipes = self.recipes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = recipes.get(name) {
            return known.clone();
        }
        let recipe = match self.look(name) {
            Lookup::Missing { .. } => None,
            Lookup::Found { file, .. } if file == built_in_file(DEFAULT) => Some(default_recipe()),
            found => Some(Arc::new(formula::resolve(name, found, &mut |name| self.look(name)))),
        };
        recipes.insert(name.to_owned(), recipe.clone());
        recipe
    }

    /// What there is under a name.
    fn look(&self, name: &str) -> Lookup {
        if formula::check_name(name).is_err() {
            return Lookup::Missing { near: Vec::new() };
        }
        for (_, dir) in &self.places {
            match read(&dir.join(format!("{name}{SUFFIX}"))) {
                Ok(None) => {}
                Ok(Some(found)) => return found,
                Err(why) => return Lookup::Unreadable { why },
            }
        }
        built_in(name).unwrap_or_else(|| Lookup::Missing { near: self.near(name) })
    }

    /// The names that look like this one.
    pub fn near(&self, name: &str) -> Vec<String> {
        let names: BTreeSet<String> = self.names().into_iter().map(|(_, name, _)| name).collect();
        near::closest(name, names.iter().map(String::as_str))
    }

    /// Every formula, by name; of those with one name, the one that is used comes first.
    pub fn list(&self) -> Vec<Entry> {
        let mut names = self.names();
        names.sort_by(|(_, a, _), (_, b, _)| a.cmp(b)); // the order of the places stays
        let mut entries: Vec<Entry> = Vec::new();
        for (origin, name, file) in names {
            let is_shadowed = entries.last().is_some_and(|last| last.name == name);
            entries.push(self.entry(origin, name, file, is_shadowed));
        }
        entries
    }

    fn entry(&self, origin: Origin, name: String, file: Option<PathBuf>, is_shadowed: bool) -> Entry {
        let found = match (&file, formula::check_name(&name)) {
            (_, Err(why)) => Lookup::Unreadable { why },
            (None, Ok(())) => built_in(&name).unwrap_or(Lookup::Missing { near: Vec::new() }),
            (Some(path), Ok(())) => match read(path) {
                Ok(Some(found)) => found,
                Ok(None) => Lookup::Unreadable { why: "it is gone".to_owned() },
                Err(why) => Lookup::Unreadable { why },
            },
        };
        let own_file = if let Lookup::Found { file, .. } = &found { file.clone() } else { String::new() };
        let recipe = formula::resolve(&name, found, &mut |name| self.look(name));
        let problem = recipe.errors().next().map(|finding| whose(finding, &own_file));
        let description = recipe.description.lines().next().unwrap_or_default().to_owned();
        let (kind, version) = (recipe.kind.as_str(), recipe.version);
        let n_steps = recipe.steps.len();
        Entry { name, origin, file, is_shadowed, kind, version, description, n_steps, problem }
    }

    /// Origin, name and file of every formula, in the order in which places are searched.
    pub(crate) fn names(&self) -> Vec<(Origin, String, Option<PathBuf>)> {
        let mut names = Vec::new();
        for (origin, dir) in &self.places {
            // A directory that is not there holds nothing.
            let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(FILES_MAX);
            names.extend(entries.filter_map(|entry| {
                let file_name = entry.file_name().to_string_lossy().into_owned();
                let name = file_name.strip_suffix(SUFFIX)?.to_owned();
                Some((*origin, name, Some(entry.path())))
            }));
        }
        names.extend(BUILT_IN.map(|(name, _)| (Origin::BuiltIn, name.to_owned(), None)));
        names
    }

    /// The steps of an assignment; `None`: it has no formula. The error says all that is wrong.
    pub fn cook(&self, assignment: &Assignment, settings: &Settings) -> Result<Option<Cooked>, String> {
        let Some(name) = name_for(&assignment.fields, &assignment.rig, settings) else { return Ok(None) };
        let vars = assignment.fields.vars.as_deref().unwrap_or_default();
        let values = Values::given(vars).about(
            &assignment.bead,
            &assignment.title,
            &assignment.rig.name,
            base_branch(assignment),
        );
        let Some(recipe) = self.recipe(&name) else {
            return Err(format!("there is no formula `{}` any more", one_line(&name)));
        };
        let cooked = cook(&recipe, &values)?;
        match &assignment.step {
            Some(step)
                if !cooked.steps.iter().any(|known| known.id == step.id)
                    && !gt_core::defect!("vanished-step-starts") =>
            {
                Err(format!("it has no step `{}` any more; sling the bead again", one_line(&step.id)))
            }
            _ => Ok(Some(cooked)),
        }
    }
}

/// A finding, which may be about a formula that this one extends.
fn whose(finding: &Finding, own_file: &str) -> String {
    if finding.file.is_empty() || finding.file == own_file {
        return finding.to_string();
    }
    let file_name = finding.file.rsplit('/').next().unwrap_or_default();
    format!("it extends `{}`, which is broken: {finding}", file_name.strip_suffix(SUFFIX).unwrap_or(file_name))
}

/// The formula of a bead: none for a raw one, else the one that is named, its rig's default, or the built-in one.
pub fn name_for(fields: &SlingFields, rig: &Rig, settings: &Settings) -> Option<String> {
    if fields.hook_raw_bead {
        return None;
    }
    let default = || settings.config.text(&join(&["rigs", &rig.name, "default_formula"]));
    Some(fields.formula.clone().or_else(default).unwrap_or_else(|| DEFAULT.to_owned()))
}

fn built_in(name: &str) -> Option<Lookup> {
    let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    Some(Lookup::Found { file: built_in_file(name), text: (*text).to_owned() })
}

/// How messages call a formula that lies in no file; no path looks like it, for paths begin with a slash.
fn built_in_file(name: &str) -> String {
    format!("built in {name}")
}

/// The built-in recipe extends nothing and never changes, so a process takes it apart once.
fn default_recipe() -> Arc<Recipe> {
    static RECIPE: OnceLock<Arc<Recipe>> = OnceLock::new();
    let make = || {
        let found = built_in(DEFAULT).unwrap_or(Lookup::Missing { near: Vec::new() });
        Arc::new(formula::resolve(DEFAULT, found, &mut |_| Lookup::Missing { near: Vec::new() }))
    };
    Arc::clone(RECIPE.get_or_init(make))
}

/// Cooks for an agent: what only people can read is refused too.
pub fn cook(recipe: &Recipe, values: &Values) -> Result<Cooked, String> {
    let cooked = recipe.cook(Some(values)).map_err(|findings| sentence(&findings))?;
    let objections = cooked.objections();
    if objections.is_empty() { Ok(cooked) } else { Err(objections.join("; ")) }
}

/// Findings in one sentence.
pub fn sentence(findings: &[Finding]) -> String {
    const NAMED_MAX: usize = 10;
    let in_words = |finding: &Finding| match &finding.hint {
        Some(hint) => format!("{finding} ({hint})"),
        None => finding.to_string(),
    };
    let mut told: Vec<String> = findings.iter().take(NAMED_MAX).map(in_words).collect();
    if findings.len() > NAMED_MAX {
        told.push(format!("and {} more", findings.len() - NAMED_MAX));
    }
    told.join("; ")
}

/// Where a user keeps formulas for all towns.
fn user_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(config.join("gasworks").join("formulas"))
}

/// Reads a formula's file; `None`: it is not there. Only a regular file of bounded size is read, and nothing is waited for.
fn read(path: &Path) -> Result<Option<Lookup>, String> {
    let file = one_line(&path.display().to_string());
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
        _ => Err(format!("cannot read {file}: {error}")),
    };
    let refuse = |why: &str| Err(format!("{file} {why}"));
    match fs::symlink_metadata(path) {
        Err(error) => return failed(error),
        Ok(there) if there.is_symlink() => return refuse("is a symbolic link; put the file itself there"),
        Ok(there) if !there.is_file() => return refuse("is no regular file"),
        Ok(_) => {}
    }
    // It may have been replaced since: a link is not followed, a pipe not waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path);
    let handle = match opened {
        Ok(handle) => handle,
        Err(error) => return failed(error),
    };
    match handle.metadata() {
        Err(error) => return failed(error),
        Ok(there) if !there.is_file() => return refuse("is no regular file"),
        Ok(there) if there.len() > FILE_BYTES_MAX as u64 => {
            return refuse(&format!("has {} bytes; at most {FILE_BYTES_MAX} are read", there.len()));
        }
        Ok(_) => {}
    }
    match read_text(handle) {
        Err(error) => failed(error),
        Ok(None) => refuse("is no UTF-8 text"),
        Ok(Some(text)) => Ok(Some(Lookup::Found { file, text })),
    }
}

/// The text of a file, or the beginning of one that grew meanwhile; `None`: it is no text.
fn read_text(file: File) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests;
