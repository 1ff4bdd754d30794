//! One bad example per rule: a rule that finds nothing anywhere would look like a kept one.

use super::*;

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

fn check(offences: &[Offence], expected_starts: &[&str]) {
    let found: Vec<&str> = offences.iter().map(|offence| offence.0.as_str()).collect();
    assert_eq!(found.len(), expected_starts.len(), "{found:#?}");
    for (offence, start) in found.iter().zip(expected_starts) {
        assert!(offence.starts_with(start), "`{offence}` does not start with `{start}`");
    }
}

fn numbered(names: &[&str]) -> Vec<Offence> {
    let paths: Vec<String> = names.iter().map(|name| format!("docs/decisions/{name}")).collect();
    misnumbered(&paths)
}

#[test]
fn a_source_without_its_purpose_is_found() {
    let sources = [source("bare.rs", "use std::fmt;\n"), source("told.rs", "//! Owns it.\n")];
    check(&without_module_doc(&sources), &["bare.rs:1: no `//!`"]);
}

#[test]
fn a_long_file_is_found_unless_listed() {
    let sources = [source("long.rs", &"\n".repeat(601)), source("fits.rs", &"\n".repeat(600))];
    check(&too_long(&sources, &[]), &["long.rs:601: 601 lines"]);
    check(&too_long(&sources, &["long.rs"]), &[]);
}

#[test]
fn a_listed_file_that_fits_or_is_gone_is_found() {
    let sources = [source("long.rs", &"\n".repeat(601)), source("fits.rs", "")];
    let listed = ["long.rs", "fits.rs", "gone.rs"];
    check(&no_longer_too_long(&sources, &listed), &["fits.rs:1:", "gone.rs:1:"]);
}

#[test]
fn every_banned_token_is_found_in_code_and_not_in_comments() {
    for (needle, _) in UNFINISHED.iter().chain(IMPURE) {
        let text = format!("//! Speaks of {needle}\n    {needle}(1)\n");
        let found = mentions(&[source("a.rs", &text)], &[(needle, "")]);
        check(&found, &[&format!("a.rs:2: {needle}")]);
    }
}

#[test]
fn a_token_is_not_found_inside_longer_names() {
    let text = "let operand = brand(rand_core); offs::read(x)\n";
    check(&mentions(&[source("a.rs", text)], IMPURE), &[]);
}

#[test]
fn a_dependency_is_found_in_every_way_to_write_it() {
    let manifest = "[package]\nname = \"a\"\n\n[dependencies]\none.workspace = true\n\
        # no = \"1\"\ntwo = \"1\"\nx = { package = \"three\" }\n[dependencies.four]\n\
        version = \"1\"\n[target.'cfg(unix)'.dependencies]\nfive = \"1\"\n\
        [build-dependencies]\nsix = \"1\"\n[dev-dependencies]\nseven = \"1\"\n";
    let found = dependencies(manifest);
    let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["one", "two", "three", "four", "five", "six"]);
    assert_eq!(found[0].0, 5, "the line is the one in the file");
}

#[test]
fn a_dependency_the_core_must_not_have_is_found() {
    let path = "crates/gt-core/Cargo.toml";
    let manifest = source(path, "[dependencies]\nserde.workspace = true\nrusqlite = \"1\"\n");
    check(&not_allowed_in_core(&[manifest]), &["crates/gt-core/Cargo.toml:3: rusqlite"]);
}

#[test]
fn a_dependency_on_an_outer_crate_is_found() {
    let uses = |user: &str, dependency: &str| {
        let path = format!("crates/{user}/Cargo.toml");
        pointing_outwards(&[source(&path, &format!("[dependencies]\n{dependency} = \"1\"\n"))])
    };
    check(&uses("gt-core", "gt-store"), &["crates/gt-core/Cargo.toml:2: gt-store"]);
    check(&uses("gt-store", "gt-engine"), &["crates/gt-store/Cargo.toml:2: gt-engine"]);
    check(&uses("gt-engine", "gt-server"), &["crates/gt-engine/Cargo.toml:2: gt-server"]);
    check(&uses("gt-engine", "gt-store"), &[]);
    check(&uses("gt", "gt-engine"), &[]);
}

#[test]
fn an_empty_word_is_found_in_any_part_of_a_path() {
    let paths = ["crates/a/src/utils.rs", "crates/a/common/b.rs", "crates/a/src/uncommon.rs"];
    let found = empty_names(&paths.map(str::to_owned));
    check(&found, &["crates/a/src/utils.rs:1: util", "crates/a/common/b.rs:1: common"]);
}

#[test]
fn a_misnumbered_decision_is_found() {
    check(&numbered(&["0001-one.md", "0002-two.md"]), &[]);
    check(&numbered(&["1-one.md"]), &["docs/decisions/1-one.md:1: not"]);
    check(&numbered(&["0001-one.md", "0001-two.md"]), &["docs/decisions/0001-two.md:1: same"]);
    check(&numbered(&["0001-one.md", "0003-b.md"]), &["docs/decisions/0003-b.md:1: 0002 is"]);
    check(&numbered(&["0000-zero.md"]), &["docs/decisions/0000-zero.md:1: 0001 is"]);
}

#[test]
fn a_crate_off_the_map_is_found() {
    let map = source("ARCHITECTURE.md", "- `gt-core`: decides\n");
    let manifests = [source("crates/gt-core/Cargo.toml", ""), source("crates/gt/Cargo.toml", "")];
    check(&off_the_map(&map, &manifests), &["ARCHITECTURE.md:1: no `gt`"]);
}
