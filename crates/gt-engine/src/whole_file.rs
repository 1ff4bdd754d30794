//! Writing a file so that a reader sees the old one or the new one, never half of either.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// As many links as the kernel follows before it calls them a loop.
const LINKS_MAX: usize = 40;

pub(crate) fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Follows symbolic links to the file itself, which need not exist: renaming onto a
/// link would replace the link and leave its target as it was.
pub fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let link = absent_as_none(fs::symlink_metadata(&path))?;
        if !link.is_some_and(|metadata| metadata.is_symlink()) {
            return Ok(path);
        }
        path = directory(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Puts a new file in the place of `path`; an old one's owner and permissions stay.
pub fn replace<T, E: From<io::Error>>(path: &Path, write: impl FnOnce(&mut File) -> Result<T, E>) -> Result<T, E> {
    let old = absent_as_none(fs::metadata(path))?;
    let mut prefix = OsStr::new(".").to_owned();
    prefix.push(path.file_name().unwrap_or(OsStr::new("gt")));
    let mut file = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory(path))?;
    let written = write(file.as_file_mut())?;
    if let Some(old) = old {
        keep_access(file.as_file(), &old)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory(path))?.sync_all()?;
    Ok(written)
}

/// Gives the new file the owner and the permissions of the old one.
fn keep_access(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may give a file away; without the right, the editor owns the file,
        // as after a save in any editor.
        fchown(file, Some(old.uid()), Some(old.gid())).ok();
    }
    file.set_permissions(old.permissions())
}

/// The directory a file lies in.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}
