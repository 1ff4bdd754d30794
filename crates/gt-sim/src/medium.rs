//! Where a simulated town keeps its store: in memory, which is fast, or in a file, as in life.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use gt_store::{Store, StoreError};

/// The store's place; every clone opens the same one.
#[derive(Debug, Clone)]
pub enum Medium {
    Memory(String),
    Disk(PathBuf),
}

impl Medium {
    /// A place in memory that nobody else uses.
    pub fn memory() -> Medium {
        static N_PLACES: AtomicU64 = AtomicU64::new(0);
        Medium::Memory(format!("sim-{}", N_PLACES.fetch_add(1, Ordering::Relaxed)))
    }

    pub fn open(&self) -> Result<Store, StoreError> {
        match self {
            Medium::Memory(name) => Store::shared_in_memory(name),
            Medium::Disk(path) => Store::create(path),
        }
    }
}
