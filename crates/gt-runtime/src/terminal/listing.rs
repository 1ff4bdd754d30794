//! What tmux says of panes: the formats that it is asked with, and reading its answers.

use std::fmt;

/// Said by a session that was just made.
pub(crate) const START_FORMAT: &str = "#{session_id} #{window_id} #{pane_id} #{pane_pid}";

/// The run stands in the session's environment, where it was put when it was started.
pub(crate) const LIST_FORMAT: &str =
    "#{session_id} #{window_id} #{pane_id} #{pane_pid} #{pane_dead}/#{pane_dead_status}/#{pane_dead_signal}/#{GT_RUN}";

/// Where in tmux a run is. The ids are those of one server, which never gives one out twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    pub session: String,
    pub window: String,
    pub pane: String,
    pub pid: u32,
}

/// What has become of a pane's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneState {
    pub run: String,
    /// Its process has ended, and tmux reads no more of what it wrote.
    pub is_dead: bool,
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Pane {
    /// Reads a line of [`START_FORMAT`].
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut id = |mark: char| {
            let word = words.next()?;
            let is_id = word.strip_prefix(mark).is_some_and(is_number);
            is_id.then(|| word.to_owned())
        };
        let (session, window, pane) = (id('$')?, id('@')?, id('%')?);
        let pid = words.next()?.parse().ok()?;
        words.next().is_none().then_some(Self { session, window, pane, pid })
    }

    /// Reads a line of [`LIST_FORMAT`].
    pub(crate) fn parse_listed(line: &str) -> Option<(Self, PaneState)> {
        let (pane, state) = line.rsplit_once(' ')?;
        Some((Self::parse(pane)?, PaneState::parse(state)?))
    }

    /// The elder of two panes of one session is the run's own; people may have made others beside it.
    pub(crate) fn is_elder_than(&self, other: &Self) -> bool {
        let number = |pane: &Self| pane.pane[1..].parse::<u64>().unwrap_or(u64::MAX);
        number(self) < number(other)
    }
}

impl PaneState {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let is_dead = parts.next()? == "1";
        let (code, signal) = (parts.next()?.parse().ok(), parts.next()?.parse().ok());
        Some(Self { run: parts.next()?.to_owned(), is_dead, code, signal })
    }

    /// Whether tmux has waited for its process.
    pub(crate) fn is_known(&self) -> bool {
        self.code.is_some() || self.signal.is_some()
    }
}

impl fmt::Display for Pane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pane)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
