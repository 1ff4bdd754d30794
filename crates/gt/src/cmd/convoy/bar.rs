//! A progress bar that tells what is done, what runs, what is in line and what is left.

use super::view::State;
use crate::render::{DIM, paint};

const WIDTH: usize = 32;

/// How many members are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) done: usize,
    /// Of these, the deleted ones.
    pub(super) deleted: usize,
    pub(super) running: usize,
    pub(super) queued: usize,
    pub(super) ready: usize,
    pub(super) waiting: usize,
    pub(super) total: usize,
}

impl Counts {
    pub(super) fn add(&mut self, state: State) {
        self.total += 1;
        match state {
            State::Done => self.done += 1,
            State::Running => self.running += 1,
            State::Queued => self.queued += 1,
            State::Ready => self.ready += 1,
            State::Blocked | State::Gated | State::Deferred | State::Held | State::NoWork => self.waiting += 1,
        }
    }
}

/// The bar and the figures beside it.
pub(super) fn draw(counts: &Counts) -> String {
    let parts = [
        (counts.done, "█", State::Done, "done"),
        (counts.running, "▓", State::Running, "running"),
        (counts.queued, "▒", State::Queued, "queued"),
        (counts.ready, "░", State::Ready, "ready"),
    ];
    let mut bar = String::new();
    let (mut n_before, mut used) = (0, 0);
    for (n, cell, state, _) in parts {
        n_before += n;
        let until = cells(n_before, counts.total).max(used + usize::from(n > 0)).min(WIDTH);
        // What is done is never drawn as all of it before it is.
        let until = if n_before < counts.total { until.min(WIDTH - 1) } else { until };
        let style = if state == State::Done { State::Ready.style() } else { state.style() };
        bar.push_str(&paint(style, &cell.repeat(until.saturating_sub(used))));
        used = until.max(used);
    }
    bar.push_str(&paint(DIM, &"·".repeat(WIDTH - used)));
    let mut words = vec![format!("{}/{} done", counts.done - counts.deleted, counts.total)];
    let rest = parts
        .into_iter()
        .skip(1)
        .map(|(n, _, _, word)| (n, word))
        .chain([(counts.waiting, "waiting"), (counts.deleted, "deleted")]);
    words.extend(rest.filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
    format!("{bar}  {}", words.join(" · "))
}

fn cells(n: usize, total: usize) -> usize {
    (n * WIDTH).checked_div(total).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(counts: Counts) -> String {
        anstream::adapter::strip_str(&draw(&counts)).to_string()
    }

    #[test]
    fn the_bar_is_full_only_when_all_is_done() {
        let counts = Counts { done: 999, waiting: 1, total: 1000, ..Counts::default() };
        assert_eq!(plain(counts), format!("{}·  999/1000 done · 1 waiting", "█".repeat(31)));
        let all = Counts { done: 3, total: 3, ..Counts::default() };
        assert_eq!(plain(all), format!("{}  3/3 done", "█".repeat(32)));
        assert_eq!(plain(Counts::default()), format!("{}  0/0 done", "·".repeat(32)));
    }

    #[test]
    fn whatever_there_is_has_a_cell() {
        let counts =
            Counts { done: 1, running: 1, queued: 1, ready: 1, waiting: 996, total: 1000, ..Counts::default() };
        let rest = "·".repeat(28);
        assert_eq!(plain(counts), format!("█▓▒░{rest}  1/1000 done · 1 running · 1 queued · 1 ready · 996 waiting"));
    }
}
