//! Random numbers from the run's seed: each part of the tool and each fault has a stream of its own.

use fastrand::Rng;

/// Streams of the load; the faults use those from 0 on.
pub(crate) const BEADS: u64 = 1 << 40;
pub(crate) const LANDINGS: u64 = 2 << 40;
pub(crate) const MESSAGES: u64 = 3 << 40;

/// The numbers of one stream. Neighbouring seeds and streams have nothing in common.
pub(crate) fn stream(seed: u64, stream: u64) -> Rng {
    Rng::with_seed(mixed(mixed(seed).wrapping_add(stream)))
}

/// The finaliser of SplitMix64: every bit of the input changes about half of the output's.
fn mixed(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_stream_of_a_seed_is_one_of_its_neighbours() {
        let firsts = |seed: u64| (0..200).map(move |n| stream(seed, n).u64(..));
        let all: BTreeSet<u64> = (0..20).flat_map(firsts).collect();
        assert_eq!(all.len(), 20 * 200);
    }

    #[test]
    fn a_seed_repeats_its_numbers() {
        assert_eq!(stream(7, BEADS).u64(..), stream(7, BEADS).u64(..));
    }
}
