//! The repository as the rules see it: paths relative to its root, texts, lines, offences.
//!
//! Owns: walking and reading files, and how a broken rule is reported. Knows no rule.

use std::fs;
use std::path::{Path, PathBuf};

pub(super) struct Source {
    /// Relative to the repository's root, with `/` on every system.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn n_lines(&self) -> usize {
        self.text.lines().count()
    }

    /// The lines with their numbers from 1 on, without those that are only comment: prose may
    /// name what code must not use.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = (1..).zip(self.text.lines());
        numbered.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    pub(super) fn offence(&self, line: usize, what: &str, why: &str) -> Offence {
        Offence::new(&self.path, line, what, why)
    }
}

/// One place where a rule is broken.
pub(super) struct Offence(pub(super) String);

impl Offence {
    pub(super) fn new(path: &str, line: usize, what: &str, why: &str) -> Self {
        Self(format!("{path}:{line}: {what} ({why})"))
    }
}

/// Fails with the rule and every place at once, so that one run is enough to repair all.
pub(super) fn enforce(rule: &str, offences: Vec<Offence>) {
    let places: Vec<String> = offences.into_iter().map(|offence| offence.0).collect();
    assert!(places.is_empty(), "rule: {rule}\n  {}", places.join("\n  "));
}

pub(super) fn rust_sources() -> Vec<Source> {
    let paths = with_extension("rs", file_paths(&["crates"]));
    assert!(!paths.is_empty(), "a rule over no file at all would always hold");
    paths.iter().map(|path| read(path)).collect()
}

/// The manifest of every crate, in the order of their names.
pub(super) fn manifests() -> Vec<Source> {
    let folders = entries(&root().join("crates"));
    let manifests = folders.iter().map(|folder| folder.join("Cargo.toml"));
    manifests.filter(|path| path.is_file()).map(|path| read(&relative(&path))).collect()
}

pub(super) fn read(path: &str) -> Source {
    let text = fs::read_to_string(root().join(path));
    let text = text.unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    Source { path: path.to_owned(), text }
}

/// Every file below the folders, sorted; a folder that does not exist has none.
pub(super) fn file_paths(folders: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    let mut waiting: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = waiting.pop() {
        let (inner, found) = entries(&folder).into_iter().partition::<Vec<_>, _>(|p| p.is_dir());
        waiting.extend(inner.into_iter().filter(|folder| !folder.ends_with("target")));
        files.extend(found.iter().map(|file| relative(file)));
    }
    files.sort();
    files
}

pub(super) fn with_extension(extension: &str, paths: Vec<String>) -> Vec<String> {
    let has_it = |path: &String| Path::new(path).extension().is_some_and(|it| it == extension);
    paths.into_iter().filter(has_it).collect()
}

/// Whether a line has the needle as a token of its own: `rand` is neither in `operand` nor in
/// `rand_core`, while `fs::` is in `std::fs::read`.
pub(super) fn has_token(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + needle.len()..].chars().next();
        !joins(before, needle.chars().next()) && !joins(needle.chars().next_back(), after)
    })
}

/// Whether two neighbouring letters belong to the same name.
fn joins(left: Option<char>, right: Option<char>) -> bool {
    let is_part_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    left.is_some_and(is_part_of_name) && right.is_some_and(is_part_of_name)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = listing.map(|entry| entry.expect("a listed folder can be read").path()).collect();
    paths.sort();
    paths
}

fn relative(path: &Path) -> String {
    let below = path.strip_prefix(root()).expect("only paths below the root are walked");
    below.to_string_lossy().replace('\\', "/")
}

fn root() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("this crate lies in `crates/xtask`")
}
