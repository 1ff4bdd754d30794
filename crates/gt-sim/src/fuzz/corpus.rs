//! The stored inputs of a target: small files, each named after what it is.
//!
//! They are read from the source tree, so that a file put there is used without being listed anywhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One stored input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Where the stored inputs of a target lie.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The stored inputs of a target, by name: their order is part of what a seed means.
pub fn load(target: &str) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in fs::read_dir(folder(target))? {
        let file = file?;
        entries.push(Entry { name: file.file_name().to_string_lossy().into_owned(), bytes: fs::read(file.path())? });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}
