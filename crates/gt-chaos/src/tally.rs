//! Counts of what happened, for the report.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<&'static str, u64>>);

impl Tally {
    pub(crate) fn add(&self, what: &'static str, n: usize) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += n as u64;
    }

    pub(crate) fn one(&self, what: &'static str) {
        self.add(what, 1);
    }

    pub(crate) fn take(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
