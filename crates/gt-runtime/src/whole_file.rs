//! Writing a file so that a reader sees the old one or the new one, never half of either, whatever is cut off.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file that is not yet in its place; dropped, it is gone.
pub(crate) struct Draft {
    pub file: File,
    place: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Begins to write what is to be at `path`.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        static N_DRAFTS: AtomicU32 = AtomicU32::new(0);
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}-{}.draft", std::process::id(), N_DRAFTS.fetch_add(1, Ordering::Relaxed)));
        let place = path.with_file_name(name);
        Ok(Self { file: File::create(&place)?, place, path: path.to_owned() })
    }

    /// Puts it in its place, and on the disk.
    pub(crate) fn publish(self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.place, &self.path)?;
        let dir = self.path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        File::open(dir)?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        fs::remove_file(&self.place).ok();
    }
}
