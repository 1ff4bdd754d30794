//! What the demo draws while its agents work: one line per bead, redrawn in a terminal, told one by one elsewhere.

use std::io::IsTerminal as _;
use std::time::Instant;

use gt_core::event::Event;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BLUE, DIM, GREEN, YELLOW, paint};

/// How a bead stands.
#[derive(Clone, PartialEq, Eq)]
enum State {
    Waiting,
    Working { polecat: String },
    Done { polecat: String },
}

pub(super) struct Progress<'a> {
    context: &'a Context,
    beads: Vec<(&'a str, &'a str, State)>,
    polecats: Vec<String>,
    n_live: usize,
    most_live: usize,
    is_drawn: bool,
    since: Instant,
}

impl<'a> Progress<'a> {
    pub(super) fn new(ids: &'a [String], titles: &'a [&str], context: &'a Context) -> Progress<'a> {
        let beads = ids.iter().zip(titles).map(|(id, title)| (id.as_str(), *title, State::Waiting)).collect();
        let (polecats, since) = (Vec::new(), Instant::now());
        Progress { context, beads, polecats, n_live: 0, most_live: 0, is_drawn: false, since }
    }

    /// Takes in one line of the log.
    pub(super) fn note(&mut self, event: &Event) -> Result<(), Failure> {
        let polecat = event.data["polecat"].as_str().unwrap_or_default().to_owned();
        let state = match event.kind.as_str() {
            "bead.hooked" => {
                self.n_live += 1;
                self.most_live = self.most_live.max(self.n_live);
                if !self.polecats.contains(&polecat) {
                    self.polecats.push(polecat.clone());
                }
                State::Working { polecat }
            }
            "run.ended" => {
                self.n_live -= 1;
                State::Done { polecat }
            }
            _ => return Ok(()),
        };
        let bead = self.beads.iter_mut().find(|(id, ..)| Some(*id) == event.bead.as_deref());
        let Some(bead) = bead else { return Ok(()) };
        bead.2 = state;
        let line = line(bead);
        if std::io::stdout().is_terminal() { self.draw() } else { self.context.say(&line) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.beads.iter().all(|(.., state)| matches!(state, State::Done { .. }))
    }

    /// Draws every bead, over what was drawn before.
    fn draw(&mut self) -> Result<(), Failure> {
        let up = if self.is_drawn { format!("\x1b[{}A", self.beads.len()) } else { String::new() };
        self.is_drawn = true;
        let lines: Vec<String> = self.beads.iter().map(|bead| format!("{}\x1b[K", line(bead))).collect();
        self.context.say(&format!("{up}{}", lines.join("\n")))
    }

    pub(super) fn summary(&self) -> String {
        let (n, workers, took) = (self.beads.len(), self.polecats.len(), self.since.elapsed().as_secs_f64());
        format!("{n} beads done by {workers} polecats in {took:.1} s, never more than {} at once.", self.most_live)
    }
}

fn line((id, title, state): &(&str, &str, State)) -> String {
    match state {
        State::Waiting => format!("  {} {id}  {}", paint(YELLOW, "⏸"), paint(DIM, title)),
        State::Working { polecat } => format!("  {} {id}  {title}  {}", paint(BLUE, "▶"), paint(BLUE, polecat)),
        State::Done { polecat } => format!("  {} {id}  {title}  {}", paint(GREEN, "✓"), paint(DIM, polecat)),
    }
}
