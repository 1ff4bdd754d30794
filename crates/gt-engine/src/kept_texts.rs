//! The texts of good configs, each in a file of its own beside the store, which knows them by their digests.
//!
//! A config may hold secrets, and the store must not; these files are for their owner alone. A text is there before the store
//! says that it counts, so a crash between the two loses neither.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::config::digest;
use crate::error::TownError;
use crate::town::Town;

/// How long a text is left that is about to be the one that counts. It may hold secrets that were removed, so not for long.
const LEFT_FOR: Duration = Duration::from_hours(1);

fn path(town: &Town, digest: &str) -> PathBuf {
    town.configs_dir().join(format!("{digest}.toml"))
}

/// The text with this digest, if it is there and whole.
pub(crate) fn find(town: &Town, wanted: &str) -> Option<String> {
    fs::read_to_string(path(town, wanted)).ok().filter(|text| digest(text) == wanted)
}

/// Puts a text there, and returns its digest.
pub(crate) fn put(town: &Town, text: &str) -> Result<String, TownError> {
    let (dir, digest) = (town.configs_dir(), digest(text));
    let path = path(town, &digest);
    let failed = |source| TownError::io("write", &path, source);
    fs::create_dir_all(&dir).map_err(failed)?;
    // Also where it is there already: it is fresh again, and not cleared away.
    let mut file = tempfile::NamedTempFile::new_in(&dir).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    fs::File::open(&dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    Ok(digest)
}

/// Removes all but this one that are older than an hour. Whatever cannot be looked at stays.
pub(crate) fn clear(town: &Town, kept: &str) {
    let is_old = |path: &Path| {
        let changed_at = fs::metadata(path).and_then(|file| file.modified()).ok();
        changed_at.and_then(|at| SystemTime::now().duration_since(at).ok()).is_some_and(|age| age > LEFT_FOR)
    };
    let kept = path(town, kept);
    for entry in fs::read_dir(town.configs_dir()).into_iter().flatten().flatten() {
        if entry.path() != kept && is_old(&entry.path()) {
            fs::remove_file(entry.path()).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use gt_store::Stamp;
    use jiff::Timestamp;

    use super::*;

    fn town() -> (tempfile::TempDir, Town) {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let (town, _) = Town::init(dir.path(), &Stamp::new(Timestamp::UNIX_EPOCH, "me")).expect("it is empty");
        (dir, town)
    }

    #[test]
    fn a_text_is_found_whole_and_by_its_owner_or_not_at_all() {
        let (_dir, town) = town();
        let digest = put(&town, "# hush").expect("it can be written");
        assert_eq!(find(&town, &digest).as_deref(), Some("# hush"));
        let mode = fs::metadata(path(&town, &digest)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(path(&town, &digest), "# hu").expect("it can be written");
        assert_eq!(find(&town, &digest), None);
        fs::remove_file(path(&town, &digest)).expect("it is there");
        assert_eq!(find(&town, &digest), None);
    }

    #[test]
    fn only_what_is_old_and_not_kept_is_cleared_away() {
        let (_dir, town) = town();
        let [kept, old, fresh] = ["# kept", "# old", "# fresh"].map(|text| put(&town, text).expect("it is written"));
        let long_ago = SystemTime::now() - LEFT_FOR - Duration::from_mins(1);
        for digest in [&kept, &old] {
            let file = fs::File::open(path(&town, digest)).expect("it is there");
            file.set_modified(long_ago).expect("it is ours");
        }
        clear(&town, &kept);
        assert_eq!([&kept, &old, &fresh].map(|digest| find(&town, digest).is_some()), [true, false, true]);
    }
}
