//! A fingerprint of a directory: the same as before means that nothing in it was written since.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// What a directory looked like. It goes by names, sizes and times, and looks into no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(Vec<u8>);

impl Fingerprint {
    /// Takes it. What cannot be read, or is not there, counts as that.
    pub fn of(dir: &Path) -> Fingerprint {
        let mut digest = Sha256::new();
        let mut dirs = vec![dir.to_owned()];
        while let Some(inner) = dirs.pop() {
            digest.update([0]);
            let mut names: Vec<_> = match fs::read_dir(&inner) {
                Ok(entries) => entries.flatten().map(|entry| entry.file_name()).collect(),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(_) => {
                    digest.update([1]);
                    continue;
                }
            };
            names.sort();
            for name in names {
                let path = inner.join(&name);
                digest.update([2]);
                digest.update(name.as_bytes());
                match fs::symlink_metadata(&path) {
                    Ok(found) if found.is_dir() => dirs.push(path),
                    Ok(found) => {
                        let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
                        digest.update(found.ino().to_le_bytes());
                        digest.update(found.size().to_le_bytes());
                        for time in times {
                            digest.update(time.to_le_bytes());
                        }
                    }
                    Err(_) => digest.update([3]),
                }
            }
        }
        Fingerprint(digest.finalize().to_vec())
    }
}
