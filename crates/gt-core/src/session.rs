//! Sessions: what becomes of a message, and how many turns of a session run at once. // SPEC L2, L3, L4
//!
//! Owns the rules of the queue in words and values. Remembering messages and claiming turns is the store's; which of them
//! fits into its lane, `lane`.

use jiff::{SignedDuration, Timestamp};

use crate::defect;
use crate::text::misleads;

/// Longest name of a session.
pub const KEY_CHARS_MAX: usize = 200;
/// Longest message, and longest turn that messages become.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Turns of a group that run at once; of any other session: one. // SPEC L2
const GROUP_TURNS: usize = 3;
/// From so many hundredths of its context window on, a session runs one turn at a time.
const CROWDED_PERCENT: u64 = 60;
/// However fast messages follow each other, a turn waits for no more than so many debounces.
const DEBOUNCES_MAX: i32 = 10;

/// What a message does to a busy session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Queue,
    /// The same as `queue`.
    Followup,
    /// What runs is stopped, what waits is cancelled, and the message is next.
    Interrupt,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::Queue, Mode::Followup, Mode::Interrupt];

    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Queue => "queue",
            Mode::Followup => "followup",
            Mode::Interrupt => "interrupt",
        }
    }

    pub fn parse(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// Who gives way when too many wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The oldest that waits.
    #[default]
    Old,
    /// The message that has come.
    New,
}

impl Overflow {
    pub const ALL: [Overflow; 2] = [Overflow::Old, Overflow::New];

    pub fn as_str(self) -> &'static str {
        match self {
            Overflow::Old => "old",
            Overflow::New => "new",
        }
    }

    pub fn parse(word: &str) -> Option<Overflow> {
        Overflow::ALL.into_iter().find(|overflow| overflow.as_str() == word)
    }
}

/// By what rules a session takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub mode: Mode,
    /// Turns that may wait; those that run do not count.
    pub cap: usize,
    pub overflow: Overflow,
    /// Messages of one sender that follow each other within this span become one turn.
    pub debounce: SignedDuration,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { mode: Mode::Queue, cap: 10, overflow: Overflow::Old, debounce: SignedDuration::from_millis(800) }
    }
}

/// A turn that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub id: i64,
    /// Only messages that have all of this in common become one turn: sender, way of the answer, agent, lane.
    pub origin: String,
    pub first_at: Timestamp,
    /// Until when it waits for more.
    pub due_at: Timestamp,
    pub bytes: usize,
    /// Whether it may still grow: it was never started.
    pub is_fresh: bool,
}

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// It becomes part of this turn, which now waits until then.
    Collapses { turn: i64, due_at: Timestamp },
    /// It is a turn of its own, which may start then; these give way to it.
    Waits { due_at: Timestamp, dropped: Vec<i64> },
    /// All that runs or waits gives way to it.
    Interrupts { due_at: Timestamp },
    /// There is no room for it.
    Full,
}

impl Rules {
    /// What becomes of a message, given what waits, the oldest first.
    pub fn admit(&self, waiting: &[Waiting], origin: &str, bytes: usize, now: Timestamp) -> Arrival {
        // Of those who write at the same time, one may have looked at the clock before the other and be taken after it.
        let is_open = self.debounce.is_positive() && !defect!("debounce-ignored");
        if let Some(turn) = waiting
            .iter()
            .rev()
            .find(|turn| turn.origin == origin || defect!("debounce-mixes-senders"))
            .filter(|turn| turn.takes(bytes, now) && is_open)
        {
            let latest = turn.first_at + self.debounce * DEBOUNCES_MAX;
            return Arrival::Collapses { turn: turn.id, due_at: (now + self.debounce).min(latest) };
        }
        let due_at = now + self.debounce;
        if self.mode == Mode::Interrupt {
            return Arrival::Interrupts { due_at };
        }
        let cap = self.cap + usize::from(defect!("session-cap-exceeded"));
        let n_over = (waiting.len() + 1).saturating_sub(cap).min(waiting.len());
        match self.overflow {
            Overflow::Old if defect!("newest-waiting-dropped") => {
                let dropped = waiting[waiting.len() - n_over..].iter().map(|turn| turn.id).collect();
                Arrival::Waits { due_at, dropped }
            }
            Overflow::New if waiting.len() >= self.cap && !defect!("full-session-takes-more") => Arrival::Full,
            Overflow::New => Arrival::Waits { due_at, dropped: Vec::new() },
            Overflow::Old => Arrival::Waits { due_at, dropped: waiting[..n_over].iter().map(|turn| turn.id).collect() },
        }
    }
}

impl Waiting {
    fn takes(&self, bytes: usize, now: Timestamp) -> bool {
        self.is_fresh && now < self.due_at && self.bytes + 1 + bytes <= TEXT_BYTES_MAX
    }
}

/// How many turns of a session run at once.
pub fn limit(key: &str, is_crowded: bool) -> usize {
    if key.starts_with("group:") && (!is_crowded || defect!("throttle-ignored")) { GROUP_TURNS } else { 1 }
}

/// Whether a conversation fills so much of its context window that its turns run one by one; of a window that nobody knows
/// nobody can say.
pub fn is_crowded(tokens: u64, window: Option<u64>) -> bool {
    let full = |window: u64| tokens.saturating_mul(100) >= window.saturating_mul(CROWDED_PERCENT);
    window.filter(|window| *window > 0).is_some_and(full)
}

/// Why a text cannot name a session.
pub fn flaw_of_key(key: &str) -> Option<&'static str> {
    match key {
        "" => Some("it is empty"),
        key if key.chars().count() > KEY_CHARS_MAX => Some("it is longer than 200 characters"),
        key if key.contains(misleads) => Some("it holds characters that cannot be seen"),
        key if key.trim() != key => Some("it begins or ends with a space"),
        _ => None,
    }
}

/// What is obeyed instead of being answered. // SPEC L4
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Stops the oldest turn.
    Stop,
    /// Stops all that runs and cancels all that waits.
    StopAll,
}

impl Command {
    /// A message that is a command, whatever its case; one that names a bot is for that bot.
    pub fn parse(text: &str, bot: Option<&str>) -> Option<Command> {
        let (word, whom) = match text.trim().split_once('@') {
            Some((word, whom)) => (word, Some(whom)),
            None => (text.trim(), None),
        };
        if whom.is_some_and(|whom| !bot.is_some_and(|bot| bot.eq_ignore_ascii_case(whom))) {
            return None;
        }
        match word.to_ascii_lowercase().as_str() {
            "/stop" => Some(Command::Stop),
            "/stopall" => Some(Command::StopAll),
            _ => None,
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnOutcome {
    Done,
    Failed,
    Cancelled,
    /// It gave way to newer messages.
    Dropped,
}

impl TurnOutcome {
    pub const ALL: [TurnOutcome; 4] =
        [TurnOutcome::Done, TurnOutcome::Failed, TurnOutcome::Cancelled, TurnOutcome::Dropped];

    pub fn as_str(self) -> &'static str {
        match self {
            TurnOutcome::Done => "done",
            TurnOutcome::Failed => "failed",
            TurnOutcome::Cancelled => "cancelled",
            TurnOutcome::Dropped => "dropped",
        }
    }

    pub fn parse(word: &str) -> Option<TurnOutcome> {
        TurnOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

#[cfg(test)]
mod tests;
