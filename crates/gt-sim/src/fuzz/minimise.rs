//! Making a failing input small: parts are dropped as long as it fails in the same place.

use super::Target;
use super::run::{Breach, run};

/// Enough for any input of ours, and an end for a slow target.
const TRIES_MAX: usize = 4_000;

/// A smaller input that breaks the same promise; greedy, so not the smallest there is.
pub(super) fn minimise(target: &Target, bytes: &[u8], breach: &Breach) -> Vec<u8> {
    let mut smallest = bytes.to_vec();
    let mut tries_left = TRIES_MAX;
    let mut still_fails = |candidate: &[u8]| {
        tries_left = tries_left.saturating_sub(1);
        tries_left > 0 && run(target, candidate).is_err_and(|found| found.place == breach.place)
    };
    let mut length = smallest.len().div_ceil(2);
    while length > 0 {
        let before = smallest.len();
        let mut start = 0;
        while start < smallest.len() {
            let end = (start + length).min(smallest.len());
            let candidate = [&smallest[..start], &smallest[end..]].concat();
            if still_fails(&candidate) {
                smallest = candidate;
            } else {
                start = end;
            }
        }
        // A part that could not go before may go now that others have gone.
        length = if smallest.len() < before { length.min(smallest.len()) } else { length / 2 };
    }
    smallest
}
