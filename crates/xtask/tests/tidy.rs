//! The project's written rules that no compiler or linter checks; one test per rule.
//!
//! Owns: the rules, their lists and their reasons. Reading the repository is `tidy/repo.rs`,
//! reading a manifest `tidy/manifest.rs`, and `tidy/bites.rs` shows that each rule finds what it
//! looks for. Does not own: formatting (rustfmt), lints and function length (clippy).

mod bites;
mod manifest;
mod repo;

use std::collections::BTreeMap;

use manifest::dependencies;
use repo::{Offence, Source, enforce};

const FILE_LINES_MAX: usize = 600;

/// Files that are longer than the limit. May only shrink: split a file, then take it off.
const FILES_OVER_LIMIT: &[&str] = &[];

/// Never in a source or a test. The words are cut in two, or this file would break its own rule.
const UNFINISHED: &[(&str, &str)] = &[
    (concat!("#[ig", "nore"), "a test that does not run proves nothing; fix or delete it"),
    (concat!("to", "do!"), "what is not there yet is not on the main branch"),
    (concat!("unimple", "mented!"), "what is not there yet is not on the main branch"),
    (concat!("db", "g!"), "prints for the author do not belong to the product"),
    (concat!("thread::sl", "eep"), "wait for the fact itself: sleeping is slow when it works"),
];

const CLOCK: &str = "take `now` as an argument, so that time can be simulated";
const OUTSIDE: &str = "the core decides and returns effects; other crates carry them out";

/// Never in the core, which has no clock, no randomness and no outside.
const IMPURE: &[(&str, &str)] = &[
    ("SystemTime::now", CLOCK),
    ("Instant::now", CLOCK),
    ("Timestamp::now", CLOCK),
    ("Zoned::now", CLOCK),
    ("std::fs", OUTSIDE),
    ("fs::", OUTSIDE),
    ("std::process", OUTSIDE),
    ("process::Command", OUTSIDE),
    ("rand", "take the seed or the choice as an argument, so that a run can be repeated"),
];

const CORE_DEPENDENCIES: &[&str] =
    &["jiff", "regex", "rustc-hash", "serde", "serde_json", "sha2", "strsim", "thiserror", "toml_edit"];

/// Words in a file's name that say nothing about what is in it.
const EMPTY_WORDS: &[&str] = &["util", "helper", "common", "misc"];

#[test]
fn every_source_says_first_what_it_owns() {
    enforce("every `.rs` file starts with `//!`", without_module_doc(&repo::rust_sources()));
}

#[test]
fn no_file_is_too_long_to_read() {
    let offences = too_long(&repo::rust_sources(), FILES_OVER_LIMIT);
    enforce(&format!("no file has more than {FILE_LINES_MAX} lines"), offences);
}

#[test]
fn the_list_of_long_files_only_shrinks() {
    let offences = no_longer_too_long(&repo::rust_sources(), FILES_OVER_LIMIT);
    enforce("every entry of `FILES_OVER_LIMIT` is still over the limit", offences);
}

#[test]
fn nothing_is_left_unfinished() {
    let offences = mentions(&repo::rust_sources(), UNFINISHED);
    enforce("no skipped tests, placeholders, debug prints or sleeps", offences);
}

#[test]
fn the_core_reads_no_clock_and_touches_nothing_outside() {
    let mut sources = repo::rust_sources();
    sources.retain(|source| source.path.starts_with("crates/gt-core/src/"));
    enforce("gt-core is pure", mentions(&sources, IMPURE));
}

#[test]
fn the_core_depends_on_small_pure_crates_only() {
    let mut manifests = repo::manifests();
    manifests.retain(|manifest| crate_of(manifest) == "gt-core");
    enforce("gt-core's dependencies are on the allow list", not_allowed_in_core(&manifests));
}

#[test]
fn dependencies_between_our_crates_point_inwards() {
    enforce("no crate uses one further out", pointing_outwards(&repo::manifests()));
}

#[test]
fn file_names_say_what_is_in_them() {
    enforce("no empty words in file names", empty_names(&repo::file_paths(&["crates", "docs"])));
}

#[test]
fn decisions_are_numbered_without_gaps() {
    let paths = repo::with_extension("md", repo::file_paths(&["docs/decisions"]));
    enforce("decisions are named `NNNN-title.md`, from 0001 on", misnumbered(&paths));
}

#[test]
fn every_crate_is_on_the_map() {
    let map = repo::read("ARCHITECTURE.md");
    enforce("ARCHITECTURE.md names every crate", off_the_map(&map, &repo::manifests()));
}

fn without_module_doc(sources: &[Source]) -> Vec<Offence> {
    let bare = sources.iter().filter(|source| !source.text.starts_with("//!"));
    bare.map(|source| source.offence(1, "no `//!`", "a reader must learn here what it owns and what not")).collect()
}

fn too_long(sources: &[Source], exceptions: &[&str]) -> Vec<Offence> {
    let checked = sources.iter().filter(|source| !exceptions.contains(&source.path.as_str()));
    checked.filter(|source| is_too_long(source)).map(length_offence).collect()
}

fn length_offence(source: &Source) -> Offence {
    let what = format!("{} lines", source.n_lines());
    source.offence(FILE_LINES_MAX + 1, &what, "one file, one idea: move a part out by its meaning")
}

fn no_longer_too_long(sources: &[Source], exceptions: &[&str]) -> Vec<Offence> {
    let is_settled = |path: &&&str| !sources.iter().any(|source| source.path.as_str() == **path && is_too_long(source));
    let settled = exceptions.iter().filter(is_settled);
    settled.map(|path| Offence::new(path, 1, "within the limit", "take it off the list")).collect()
}

fn is_too_long(source: &Source) -> bool {
    source.n_lines() > FILE_LINES_MAX
}

fn mentions(sources: &[Source], banned: &[(&str, &str)]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for source in sources {
        for (number, line) in source.code_lines() {
            let found = banned.iter().filter(|(needle, _)| repo::has_token(line, needle));
            offences.extend(found.map(|(needle, why)| source.offence(number, needle, why)));
        }
    }
    offences
}

fn not_allowed_in_core(manifests: &[Source]) -> Vec<Offence> {
    offending_dependencies(
        manifests,
        |_, name| CORE_DEPENDENCIES.contains(&name),
        "the core stays small and pure; a new one needs a decision record and a place on the list",
    )
}

fn pointing_outwards(manifests: &[Source]) -> Vec<Offence> {
    offending_dependencies(
        manifests,
        |user, name| !name.starts_with("gt-") || may_use(user, name),
        "an inner crate that knows an outer one can no longer be understood or tested alone",
    )
}

/// The direction of dependencies; crates that are not listed sit at the edge and may use all.
fn may_use(user: &str, dependency: &str) -> bool {
    match user {
        "gt-core" => false,
        "gt-store" | "gt-runtime" => dependency == "gt-core",
        "gt-engine" => ["gt-core", "gt-store", "gt-runtime"].contains(&dependency),
        _ => true,
    }
}

fn offending_dependencies(manifests: &[Source], is_fine: impl Fn(&str, &str) -> bool, why: &str) -> Vec<Offence> {
    let mut offences = Vec::new();
    for manifest in manifests {
        for (number, name) in dependencies(&manifest.text) {
            if !is_fine(crate_of(manifest), &name) {
                offences.push(manifest.offence(number, &name, why));
            }
        }
    }
    offences
}

/// The folder of a manifest, which is also the name of its crate.
fn crate_of(manifest: &Source) -> &str {
    manifest.path.split('/').nth(1).expect("manifests are read from `crates/<name>/`")
}

fn empty_names(paths: &[String]) -> Vec<Offence> {
    let why = "such a file collects what belongs elsewhere; name it after what it owns";
    let mut offences = Vec::new();
    for path in paths {
        let empty = words(path).find(|word| EMPTY_WORDS.contains(word));
        offences.extend(empty.map(|word| Offence::new(path, 1, word, why)));
    }
    offences
}

/// The words of a path in the singular.
fn words(path: &str) -> impl Iterator<Item = &str> {
    path.split(|letter: char| !letter.is_alphanumeric()).map(|word| word.strip_suffix('s').unwrap_or(word))
}

fn misnumbered(paths: &[String]) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut by_number: BTreeMap<u32, &str> = BTreeMap::new();
    for path in paths {
        let Some(number) = decision_number(path) else {
            let why = "four digits and a title in small letters keep the folder in order";
            offences.push(Offence::new(path, 1, "not `NNNN-title.md`", why));
            continue;
        };
        if let Some(other) = by_number.insert(number, path) {
            let what = format!("same number as {other}");
            offences.push(Offence::new(path, 1, &what, "a decision is cited by its number"));
        }
    }
    offences.extend(after_gaps(&by_number));
    offences
}

fn decision_number(path: &str) -> Option<u32> {
    let (_, file_name) = path.rsplit_once('/')?;
    let (digits, title) = file_name.strip_suffix(".md")?.split_once('-')?;
    let is_slug = title.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_number = digits.len() == 4 && digits.chars().all(|c| c.is_ascii_digit());
    (is_number && is_slug && !title.is_empty()).then(|| digits.parse().ok())?
}

fn after_gaps(by_number: &BTreeMap<u32, &str>) -> Vec<Offence> {
    let misplaced = (1..).zip(by_number).find(|(expected, (number, _))| expected != *number);
    let offence = misplaced.map(|(expected, (_, path))| {
        let what = format!("{expected:04} is missing before it");
        Offence::new(path, 1, &what, "a gap looks like a decision that was lost")
    });
    offence.into_iter().collect()
}

fn off_the_map(map: &Source, manifests: &[Source]) -> Vec<Offence> {
    let why = "a newcomer looks there first to find where something lives";
    let crates = manifests.iter().map(crate_of);
    crates
        .filter(|name| !map.text.contains(&format!("`{name}`")))
        .map(|name| map.offence(1, &format!("no `{name}`"), why))
        .collect()
}
