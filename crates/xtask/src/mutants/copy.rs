//! The copy of the sources that has the defects in it, each behind a switch.
//!
//! Owns: what is copied, under which names, and how the defects are put in. Does not own: which defects there are
//! (`defects.rs`), nor the build. The crates lie in a folder of another name than the project's: cargo tells the
//! artefacts of two workspaces apart by the paths inside them only, and the copy's must not pass for the project's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::defects::{Defect, Edit};

/// The environment variable that names the defect that is switched on.
pub(super) const SWITCH: &str = "GT_DEFECT";
/// The simulating program of the copy; the project's own keeps its name to itself.
pub(super) const PROGRAM: &str = "mutated-sim";

/// Where the crates lie in the project, and in the copy.
const CRATES: &str = "crates/";
const MUTATED: &str = "mutated/";

/// What the library of each crate that has a defect gets, with the name of the variable in it.
const SWITCH_SOURCE: &str = r#"
/// Whether this deliberate defect is switched on.
pub(crate) fn defect(name: &str) -> bool {
    static ON: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    ON.get_or_init(|| std::env::var("SWITCH").ok()).as_deref() == Some(name)
}
"#;

/// Files by their path below the root, with `/`.
type Sources = BTreeMap<String, Vec<u8>>;

/// Writes the copy; what is in it already and would not differ is left alone, so that cargo builds only what changed.
pub(super) fn write(root: &Path, folder: &Path, defects: &[Defect]) -> Result<(), String> {
    let mut sources = read(root).map_err(|error| format!("cannot read the sources: {error}"))?;
    put_in(&mut sources, defects)?;
    replace(folder, &renamed(sources)).map_err(|error| format!("cannot write {}: {error}", folder.display()))
}

/// Everything that the workspace is built from.
pub(super) fn read(root: &Path) -> io::Result<Sources> {
    let mut sources = Sources::new();
    for path in ["Cargo.toml", "Cargo.lock"] {
        sources.insert(path.to_owned(), fs::read(root.join(path))?);
    }
    for path in files_below(&root.join(CRATES))? {
        sources.insert(relative(root, &path), fs::read(path)?);
    }
    Ok(sources)
}

/// Puts every defect into the sources, and the switch into each crate that has one.
pub(super) fn put_in(sources: &mut Sources, defects: &[Defect]) -> Result<(), String> {
    let mut by_file: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
    for edit in defects.iter().flat_map(|defect| defect.edits) {
        by_file.entry(edit.file).or_default().push(edit);
    }
    let mut libraries = BTreeSet::new();
    for (file, edits) in by_file {
        let text = sources.get(file).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| format!("there is no source {file}"))?;
        let edited = edited(text, &edits).map_err(|why| format!("{file}: {why}"))?;
        sources.insert(file.to_owned(), edited.into_bytes());
        libraries.insert(library_of(file)?);
    }
    for library in libraries {
        let text = sources.get_mut(&library).ok_or_else(|| format!("there is no source {library}"))?;
        text.extend_from_slice(SWITCH_SOURCE.replace("SWITCH", SWITCH).as_bytes());
    }
    Ok(())
}

/// A text after several edits, each of which finds its place in the text as it was, whatever the others do.
pub(super) fn edited(text: &str, edits: &[&Edit]) -> Result<String, String> {
    let mut places = Vec::new();
    for edit in edits {
        let found: Vec<usize> = text.match_indices(edit.from).map(|(at, _)| at).collect();
        match found.as_slice() {
            [at] => places.push((*at, *edit)),
            _ => return Err(format!("`{}` is there {} times, not once", edit.from, found.len())),
        }
    }
    places.sort_by_key(|(at, _)| *at);
    let (mut result, mut end) = (String::new(), 0);
    for (at, edit) in places {
        let between = text.get(end..at).ok_or_else(|| format!("`{}` overlaps another edit", edit.from))?;
        result.push_str(between);
        result.push_str(edit.to);
        end = at + edit.from.len();
    }
    result.push_str(&text[end..]);
    Ok(result)
}

/// The root of the crate that a file belongs to.
fn library_of(file: &str) -> Result<String, String> {
    let name = file.strip_prefix(CRATES).and_then(|rest| rest.split('/').next());
    name.map(|name| format!("{CRATES}{name}/src/lib.rs")).ok_or_else(|| format!("{file} is in no crate"))
}

/// The sources under the names that they have in the copy.
fn renamed(sources: Sources) -> Sources {
    let rename = |(path, bytes): (String, Vec<u8>)| match path.as_str() {
        "Cargo.toml" => (path, String::from_utf8_lossy(&bytes).replace(CRATES, MUTATED).into_bytes()),
        "crates/gt-sim/src/bin/sim.rs" => (format!("{MUTATED}gt-sim/src/bin/{PROGRAM}.rs"), bytes),
        _ => (path.replacen(CRATES, MUTATED, 1), bytes),
    };
    sources.into_iter().map(rename).collect()
}

/// Makes the folder hold exactly these files.
fn replace(folder: &Path, sources: &Sources) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for path in files_below(folder)? {
        if !sources.contains_key(&relative(folder, &path)) {
            fs::remove_file(path)?;
        }
    }
    for (path, bytes) in sources {
        let path = folder.join(path);
        if fs::read(&path).is_ok_and(|there| there == *bytes) {
            continue;
        }
        fs::create_dir_all(path.parent().expect("it lies below the folder"))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() { waiting.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}

fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).expect("only paths below the root are walked");
    below.to_string_lossy().replace('\\', "/")
}
