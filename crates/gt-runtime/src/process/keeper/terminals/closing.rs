//! The end of a run in a terminal: its process is gone, and tmux knows how it ended and what it showed last.
//!
//! tmux may hear of the end later than we do, and has read everything only when nobody holds the terminal any more, so it
//! is asked again, ever more rarely and not for long. What it cannot say then, nobody can. It closes a terminal as soon as it
//! hears that its process has ended, so what was written in that very instant may be missing from the log.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{Signal, pidfd_send_signal};

use super::{Question, Terminals, note};
use crate::Handle;
use crate::process::keeper::endings::Ended;
use crate::process::keeper::events::Events;
use crate::terminal::{LIST_FORMAT, Pane, quoted};

/// From the end of a run to its record, whatever tmux says.
const CLOSING_MAX: Duration = Duration::from_secs(3);

const DELAY_MIN: Duration = Duration::from_millis(1);
const DELAY_MAX: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Closing {
    ended: Ended,
    until: Instant,
    ask_at: Option<Instant>,
    delay: Duration,
    is_screen_asked: bool,
}

impl Closing {
    pub(super) fn handle(&self) -> &Handle {
        &self.ended.handle
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.ask_at.map_or(self.until, |at| at.min(self.until))
    }

    pub(super) fn ask_again(&mut self, at: Instant) {
        self.ask_at = Some(at);
    }
}

impl Terminals {
    /// A run has ended; its end shows in [`Terminals::take_closed`] when tmux has said what it knows.
    pub(in crate::process::keeper) fn close(&mut self, run: &str, ended: Ended, events: &mut Events) {
        let until = Instant::now() + CLOSING_MAX;
        let closing = Closing { ended, until, ask_at: None, delay: DELAY_MIN, is_screen_asked: false };
        self.closing.insert(run.to_owned(), closing);
        self.ask_status(run, events);
    }

    pub(in crate::process::keeper) fn handle_time(&mut self, events: &mut Events, now: Instant) {
        let due = self.closing.iter().filter(|(_, closing)| closing.next_deadline() <= now);
        let due: Vec<(String, bool)> = due.map(|(run, closing)| (run.clone(), closing.until <= now)).collect();
        for (run, is_last) in due {
            if is_last {
                self.hurry(&run, now);
            } else {
                self.ask_status(&run, events);
            }
        }
        self.flush(events);
    }

    pub(super) fn close_all(&mut self) {
        let runs: Vec<String> = self.closing.keys().cloned().collect();
        for run in runs {
            self.finish(&run);
        }
    }

    fn ask_status(&mut self, run: &str, events: &mut Events) {
        if let Some(closing) = self.closing.get_mut(run) {
            closing.ask_at = None;
        }
        let is_reached = self.control.is_some() || (self.is_server_there() && self.connect(events).is_ok());
        let Some(pane) = self.panes.get(run).filter(|_| is_reached).map(|pane| pane.pane.clone()) else {
            if !is_reached && !self.is_server_there() {
                self.lost.insert(run.to_owned());
            }
            return self.finish(run);
        };
        let line = format!("display-message -p -t {} {}", quoted(&pane), quoted(LIST_FORMAT));
        self.ask(Question::Status(run.to_owned()), &line);
        self.flush(events);
    }

    pub(super) fn hear_status(&mut self, run: &str, answer: Option<&str>) {
        let state = answer.and_then(|line| Pane::parse_listed(line.trim_end_matches('\n'))).map(|(_, state)| state);
        let Some(closing) = self.closing.get_mut(run) else { return };
        let Some(state) = state.filter(|state| state.run == run) else {
            // Somebody has removed it.
            self.panes.remove(run);
            return self.finish(run);
        };
        closing.ended.ending.code = state.code;
        closing.ended.ending.signal = state.signal;
        if state.is_dead && state.is_known() {
            return self.ask_screen(run);
        }
        closing.ask_again(Instant::now() + closing.delay);
        closing.delay = (closing.delay * 2).min(DELAY_MAX);
        if state.is_dead
            && let Some(server) = &self.process
        {
            // tmux can miss that a child has ended, and then looks only when the next one does.
            pidfd_send_signal(&server.pidfd, Signal::CHILD).ok();
        }
    }

    fn ask_screen(&mut self, run: &str) {
        let Some(pane) = self.panes.get(run).map(|pane| quoted(&pane.pane)) else { return };
        let Some(log) = self.records.get(run).map(|record| record.log.clone()) else { return };
        if !is_plain_file(&log) {
            note(&format!("the log of {run} is no file any more"));
            return self.finish(run);
        }
        // tmux takes a path for a format.
        let log = quoted(&log.to_string_lossy().replace('#', "##"));
        if let Some(closing) = self.closing.get_mut(run) {
            (closing.is_screen_asked, closing.ask_at) = (true, None);
        }
        // tmux writes it down itself: in an answer, what a pane shows could be taken for the end of the answer.
        let buffer = quoted(&format!("gt-{run}"));
        self.ask(Question::Whatever, &format!("capture-pane -J -S - -b {buffer} -t {pane}"));
        self.ask(Question::Screen(run.to_owned()), &format!("save-buffer -b {buffer} {log}"));
        self.ask(Question::Whatever, &format!("delete-buffer -b {buffer}"));
    }

    pub(super) fn hear_screen(&mut self, run: &str, answer: Result<&str, &str>) {
        if let Some(log) = self.records.get(run).map(|record| record.log.clone()) {
            let tidy = || -> io::Result<()> {
                if !is_plain_file(&log) {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                fs::write(&log, tidied(&String::from_utf8_lossy(&fs::read(&log)?)))
            };
            let written = answer.map_err(str::to_owned).and_then(|_| tidy().map_err(|error| error.to_string()));
            if let Err(cause) = written {
                note(&format!("cannot write the log of {run}: {cause}"));
            }
        }
        self.finish(run);
    }

    /// Its time is over. What it has shown is still asked for once, if tmux answers at all.
    fn hurry(&mut self, run: &str, now: Instant) {
        let is_stuck = self.is_stuck();
        match self.closing.get_mut(run) {
            Some(closing) if !closing.is_screen_asked && !is_stuck && self.control.is_some() => {
                closing.until = now + CLOSING_MAX;
                self.ask_screen(run);
            }
            _ => self.finish(run),
        }
    }

    fn finish(&mut self, run: &str) {
        if let Some(closing) = self.closing.get(run) {
            let mut ended = closing.ended.clone();
            let is_unseen = ended.ending.code.is_none() && ended.ending.signal.is_none();
            ended.ending.is_lost = is_unseen && self.lost.contains(run);
            if !self.closed.iter().any(|(known, _)| known == run) {
                self.closed.push((run.to_owned(), ended));
            }
        }
    }
}

/// Neither a link nor something to wait for: agents can write where their logs are.
fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.is_file())
}

/// Without the blanks that fill a terminal's lines, and its last lines that are empty.
fn tidied(screen: &str) -> String {
    let mut text = String::with_capacity(screen.len());
    for line in screen.trim_end().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
