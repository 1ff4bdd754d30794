//! What can go wrong between us and the store, in a closed list.

use std::path::PathBuf;

use gt_core::refusal::Refusal;
use rusqlite::ErrorCode;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("there is no bead `{id}`")]
    NoBead { id: String, near: Vec<String> },
    #[error("there is no rig `{name}`")]
    NoRig { name: String, near: Vec<String> },
    #[error("there is no merge `{id}`")]
    NoMerge { id: String, near: Vec<String> },
    #[error("there is no job `{name}`")]
    NoJob { name: String, near: Vec<String> },
    #[error("there is no letter {id}")]
    NoLetter { id: i64 },
    #[error("there is no box `{who}`, and nobody would read the letter")]
    NoBox { who: String, boxes: Vec<String> },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the store {} was written by a newer gt (schema {found}; this one knows {known})", path.display())]
    NewerSchema { path: PathBuf, found: i64, known: i64 },
    #[error("{} is not a town's store", path.display())]
    NotAStore { path: PathBuf },
    #[error("the store {} cannot be opened", path.display())]
    CannotOpen {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the store {} cannot be written", path.display())]
    ReadOnly {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the disk is full: the store {} cannot grow", path.display())]
    Full {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the store {} has been locked by another process for too long", path.display())]
    Busy {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the store {} is damaged", path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error("the store {} did not answer", path.display())]
    Failed {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    /// Not yet tied to a file; `located` does that before it leaves the crate.
    #[error("the store did not answer")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the store holds something unreadable in {place}")]
    Unreadable {
        place: &'static str,
        #[source]
        source: serde_json::Error,
    },
}

/// SQLite's code for no room for the index of its log: how opening a store meets a full disk.
const IOERR_SHMSIZE: i32 = 4874;

impl StoreError {
    /// What SQLite's own code means to a person; for whoever makes it fail on purpose.
    pub fn of_sqlite_code(code: i32, path: &std::path::Path) -> StoreError {
        StoreError::Sqlite(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None)).located(path)
    }

    /// Names the file, and sorts SQLite's codes by what a person can do about them.
    pub(crate) fn located(self, path: &std::path::Path) -> StoreError {
        let StoreError::Sqlite(source) = self else { return self };
        let path = path.to_owned();
        match source.sqlite_error_code() {
            _ if source.sqlite_error().is_some_and(|error| error.extended_code == IOERR_SHMSIZE) => {
                StoreError::Full { path, source }
            }
            Some(ErrorCode::DiskFull) => StoreError::Full { path, source },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path, source },
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, source },
            Some(ErrorCode::NotADatabase) => StoreError::NotAStore { path },
            Some(ErrorCode::CannotOpen) => StoreError::CannotOpen { path, source },
            _ => StoreError::Failed { path, source },
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, StoreError>;
