//! The dependencies a `Cargo.toml` names.
//!
//! Owns: just as much TOML as our manifests use. Development dependencies are left out on
//! purpose: a test may use crates that the product of its crate must not.

/// The crates needed at build or run time, each with the number of its line.
pub(super) fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut table = "";
    for (number, line) in (1..).zip(manifest.lines().map(str::trim)) {
        if let Some(header) = header(line) {
            table = header;
            found.extend(named_in_header(header).map(|name| (number, name.to_owned())));
        } else if is_dependency_table(table) {
            found.extend(named_in_entry(line).map(|name| (number, name.to_owned())));
        }
    }
    found
}

fn header(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.split(']').next()
}

/// `dependencies`, `build-dependencies`, or either of them for one target only.
fn is_dependency_table(table: &str) -> bool {
    table.ends_with("dependencies") && !table.ends_with("dev-dependencies")
}

/// The crate of `[dependencies.<crate>]`.
fn named_in_header(header: &str) -> Option<&str> {
    let (table, name) = header.rsplit_once('.')?;
    is_dependency_table(table).then_some(name)
}

/// The crate of `<crate> = …`, `<crate>.workspace = …` or `alias = { package = "<crate>" }`.
fn named_in_entry(line: &str) -> Option<&str> {
    let (key, value) = line.split_once('=')?;
    if key.starts_with('#') {
        return None;
    }
    let renamed = value.split_once("package = \"").and_then(|(_, rest)| rest.split('"').next());
    let (name, _) = key.split_once('.').unwrap_or((key, ""));
    Some(renamed.unwrap_or_else(|| name.trim().trim_matches('"')))
}
