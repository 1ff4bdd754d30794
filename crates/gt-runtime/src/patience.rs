//! How long the product waits for others: for agents that are done or were asked to end, for a keeper's next caller.
//!
//! Owns the one variable with which a test shortens these spans, `GT_TEST_PATIENCE`: a share in percent. The spans
//! themselves stand where they are used.

use std::sync::OnceLock;
use std::time::Duration;

/// The share of its patience that this process has, in percent: all of it unless a test says otherwise.
pub fn percent() -> u8 {
    static PERCENT: OnceLock<u8> = OnceLock::new();
    *PERCENT.get_or_init(|| read(&std::env::var("GT_TEST_PATIENCE").unwrap_or_default()))
}

/// A span as it is for this process.
pub(crate) fn of(whole: Duration) -> Duration {
    whole * u32::from(percent()) / 100
}

fn read(text: &str) -> u8 {
    text.parse().ok().filter(|percent| (1..=100).contains(percent)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn patience_can_only_be_shortened() {
        assert_eq!(["1", "20", "100"].map(read), [1, 20, 100]);
        assert_eq!(["", "0", "101", "256", "-1", "half"].map(read), [100; 6]);
    }
}
