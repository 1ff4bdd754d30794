//! A pause before a retry: it grows with each failure in a row, and is short again after a success.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, most: Duration) -> Backoff {
        Backoff { first, most, next: first }
    }

    /// How long to wait after one more failure.
    pub(crate) fn grow(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.most);
        pause
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_limit_and_is_short_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        assert_eq!([(); 5].map(|()| backoff.grow().as_secs()), [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!([(); 2].map(|()| backoff.grow().as_secs()), [1, 2]);
    }
}
