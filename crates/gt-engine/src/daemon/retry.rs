//! After a failed pass: when the next one may come, and what the log says of failures that repeat. // SPEC D8

use std::collections::BTreeMap;
use std::time::Duration;

use super::Daemon;
use crate::backoff::Backoff;
use crate::error::{TownError, chain};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often the log says that the same failure goes on.
const REPEAT_AFTER: Duration = Duration::from_mins(1);

/// Times are those of `Surroundings::uptime`: a clock that is set neither shortens nor prolongs a pause.
#[derive(Debug)]
pub(super) struct Retry {
    backoff: Backoff,
    /// When a pass is tried again; none is made before.
    at: Option<Duration>,
    /// Failures since the last success: how many, and what the log knows of each kind.
    n_failures: u32,
    said: BTreeMap<String, Said>,
}

#[derive(Debug)]
struct Said {
    at: Duration,
    /// How often it has happened again since.
    n_repeats: u32,
}

impl Retry {
    pub(super) fn new() -> Retry {
        let backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        Retry { backoff, at: None, n_failures: 0, said: BTreeMap::new() }
    }

    /// Whether no pass may be made yet.
    pub(super) fn is_pausing(&self, now: Duration) -> bool {
        self.at.is_some_and(|at| now < at)
    }

    /// Whether a pass is to be tried again now.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.at.is_some_and(|at| now >= at)
    }

    /// How long the pause still lasts, if there is one.
    pub(super) fn left(&self, now: Duration) -> Option<Duration> {
        self.at.map(|at| at.saturating_sub(now))
    }

    /// A person has done something about it.
    pub(super) fn end_pause(&mut self, now: Duration) {
        self.at = self.at.map(|at| at.min(now));
    }

    /// Begins a pause, unless one goes on; returns what the log should say.
    fn fail(&mut self, words: String, now: Duration) -> Option<String> {
        if !self.is_pausing(now) {
            self.at = Some(now + self.backoff.grow());
        }
        self.n_failures += 1;
        let Some(said) = self.said.get_mut(&words) else {
            self.said.insert(words.clone(), Said { at: now, n_repeats: 0 });
            return Some(words);
        };
        said.n_repeats += 1;
        let span = now.saturating_sub(said.at);
        if span < REPEAT_AFTER {
            return None;
        }
        let Said { n_repeats, .. } = std::mem::replace(said, Said { at: now, n_repeats: 0 });
        let times = if n_repeats == 1 { "once".to_owned() } else { format!("{n_repeats} times") };
        Some(format!("{words} (repeated {times} in {} s)", span.as_secs()))
    }

    /// Ends the pause; returns what the log should say if there were failures before.
    fn succeed(&mut self) -> Option<String> {
        self.at = None;
        self.backoff.reset();
        self.said.clear();
        let times = match std::mem::take(&mut self.n_failures) {
            0 => return None,
            1 => "1 failure".to_owned(),
            n => format!("{n} failures"),
        };
        Some(format!("passes succeed again, after {times}"))
    }
}

impl Daemon {
    pub(super) fn try_pass(&mut self) {
        match self.pass() {
            Ok(()) => self.retry.succeed().iter().for_each(|line| (self.log)(line)),
            Err(error) => {
                self.fail("a pass failed", &error);
                self.note_trouble(&error);
            }
        }
    }

    /// What failed for an outside reason is found again by looking, in a pass after the pause.
    pub(super) fn fail(&mut self, what: &str, error: &TownError) {
        self.dispatcher.look_again();
        let now = self.around.uptime();
        self.retry.fail(format!("{what}: {}", chain(error)), now).iter().for_each(|line| (self.log)(line));
    }

    pub(super) fn is_pausing(&self) -> bool {
        self.retry.is_pausing(self.around.uptime())
    }

    pub(super) fn is_retry_due(&self) -> bool {
        self.retry.is_due(self.around.uptime())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the log gets for failures at these seconds.
    fn said(retry: &mut Retry, failures: &[(u64, &str)]) -> Vec<String> {
        let line = |(at, words): &(u64, &str)| retry.fail((*words).to_owned(), Duration::from_secs(*at));
        failures.iter().filter_map(line).collect()
    }

    #[test]
    fn a_failure_that_repeats_is_said_once_and_then_once_a_minute() {
        let mut retry = Retry::new();
        let failures: Vec<(u64, &str)> = (0..=120).step_by(10).map(|at| (at, "full")).collect();
        assert_eq!(
            said(&mut retry, &failures),
            ["full", "full (repeated 6 times in 60 s)", "full (repeated 6 times in 60 s)"]
        );
        assert_eq!(retry.succeed().as_deref(), Some("passes succeed again, after 13 failures"));
        assert_eq!(retry.succeed(), None);
    }

    #[test]
    fn another_failure_is_said_at_once_and_those_that_take_turns_are_not() {
        let failures = [(0, "full"), (1, "full"), (2, "busy"), (3, "full"), (4, "busy"), (61, "full"), (130, "busy")];
        let wanted = ["full", "busy", "full (repeated 3 times in 61 s)", "busy (repeated 2 times in 128 s)"];
        assert_eq!(said(&mut Retry::new(), &failures), wanted);
    }

    #[test]
    fn several_failures_at_once_are_one_pause() {
        let mut retry = Retry::new();
        said(&mut retry, &[(5, "a"), (5, "b"), (5, "c")]);
        let now = Duration::from_secs(5);
        assert_eq!(retry.left(now), Some(FIRST_PAUSE));
        assert!(retry.is_pausing(now) && !retry.is_due(now));
        retry.end_pause(now);
        assert!(!retry.is_pausing(now) && retry.is_due(now), "it is tried again at once");
    }
}
