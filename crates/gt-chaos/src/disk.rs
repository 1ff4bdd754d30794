//! The file system that may be filled: which ones are accepted, and clearing away what an earlier run filled one with.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Larger file systems are somebody's, and take long to fill.
const SIZE_MAX: u64 = 2 << 30;
/// The name of the file that fills a disk, in the home of a town.
pub(crate) const FILLER: &str = "filler";
/// How the names of towns' homes on such a disk begin.
pub(crate) const HOME: &str = "h-";

/// What is known of a directory and its surroundings.
#[derive(Debug, Clone, Copy)]
struct Facts {
    device: u64,
    device_of_parent: u64,
    device_of_temp: u64,
    n_bytes: u64,
}

/// The directory with its full path, if it is the root of a small file system of its own.
pub(crate) fn accept(disk: &Path) -> Result<PathBuf, String> {
    let failed = |error: io::Error| format!("cannot use `--disk {}`: {error}", disk.display());
    let full = disk.canonicalize().map_err(failed)?;
    let facts = facts(&full).map_err(failed)?;
    match objection(facts) {
        None => Ok(full),
        Some(why) => Err(format!(
            "`--disk {}` is refused: {why}; it would be filled to its last byte. Mount a small one there, as root: \
             mount -t tmpfs -o size=256m none DIR",
            disk.display()
        )),
    }
}

fn facts(full: &Path) -> io::Result<Facts> {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev());
    let found = rustix::fs::statvfs(full)?;
    Ok(Facts {
        device: device(full)?,
        device_of_parent: device(&full.join(".."))?,
        device_of_temp: device(&std::env::temp_dir())?,
        n_bytes: found.f_blocks.saturating_mul(found.f_frsize),
    })
}

fn objection(facts: Facts) -> Option<&'static str> {
    if facts.device == facts.device_of_parent {
        Some("it is not the root of a file system of its own")
    } else if facts.device == facts.device_of_temp {
        Some("temporary files lie on the same file system")
    } else if facts.n_bytes > SIZE_MAX {
        Some("its file system is larger than 2 GB")
    } else {
        None
    }
}

/// Removes what a run that was killed with its janitor left to fill the disk.
pub(crate) fn clear(disk: &Path) {
    let homes = fs::read_dir(disk).into_iter().flatten().flatten();
    let homes = homes.filter(|entry| entry.file_name().to_string_lossy().starts_with(HOME));
    homes.for_each(|home| fs::remove_file(home.path().join(FILLER)).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh_directory() -> PathBuf {
        let directory = std::env::temp_dir().join(format!("chaos-disk-{:016x}", fastrand::u64(..)));
        fs::create_dir(&directory).expect("temporary files can be made");
        directory
    }

    #[test]
    fn only_a_small_file_system_of_its_own_is_accepted() {
        let good = Facts { device: 7, device_of_parent: 1, device_of_temp: 1, n_bytes: 256 << 20 };
        assert_eq!(objection(good), None);
        for bad in [
            Facts { device_of_parent: 7, ..good },
            Facts { device_of_temp: 7, ..good },
            Facts { n_bytes: SIZE_MAX + 1, ..good },
        ] {
            assert!(objection(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn an_ordinary_directory_is_refused_and_so_is_none() {
        let directory = fresh_directory();
        assert!(accept(&directory).is_err_and(|why| why.contains("not the root of a file system")));
        assert!(accept(Path::new(".")).is_err_and(|why| why.contains("is refused")));
        fs::remove_dir(&directory).ok();
        assert!(accept(&directory).is_err_and(|why| why.contains("cannot use")));
    }

    #[test]
    fn what_fills_a_disk_is_cleared_away_and_nothing_else() {
        let disk = fresh_directory();
        let names = ["h-c1/filler", "h-c1/kept", "other/filler"];
        for name in names {
            fs::create_dir_all(disk.join(name).parent().expect("it lies in a directory")).expect("it can be made");
            fs::write(disk.join(name), "x").expect("it can be written");
        }
        clear(&disk);
        assert_eq!(names.map(|name| disk.join(name).exists()), [false, true, true]);
        fs::remove_dir_all(&disk).ok();
    }
}
