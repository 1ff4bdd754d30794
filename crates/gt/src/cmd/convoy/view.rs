//! A planned graph with a state for each bead: what every drawing of a convoy draws.

use anstyle::{AnsiColor, Style};
use gt_core::convoy::graph::Graph;
use gt_core::convoy::plan::Plan;
use gt_core::status::Status;
use gt_store::{ConvoyPicture, Progress, Staged};

use crate::render::{BLUE, DIM, GREEN, RED, YELLOW, paint};

const CYAN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));

/// How a bead of a convoy stands, as far as a picture shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Done,
    Running,
    Queued,
    Ready,
    Blocked,
    /// It waits for what no agent works on.
    Gated,
    Deferred,
    /// A person has it.
    Held,
    /// No work by itself: an epic, a decision.
    NoWork,
}

impl State {
    pub(super) const ALL: [State; 9] = [
        State::Done,
        State::Running,
        State::Queued,
        State::Ready,
        State::Blocked,
        State::Gated,
        State::Deferred,
        State::Held,
        State::NoWork,
    ];

    pub(super) fn word(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Running => "running",
            State::Queued => "queued",
            State::Ready => "ready",
            State::Blocked => "blocked",
            State::Gated => "gated",
            State::Deferred => "deferred",
            State::Held => "held",
            State::NoWork => "no work",
        }
    }

    pub(super) fn sign(self) -> &'static str {
        match self {
            State::Done => "✓",
            State::Running => "▶",
            State::Queued => "◔",
            State::Ready => "○",
            State::Blocked => "⏸",
            State::Gated => "⊘",
            State::Deferred => "◌",
            State::Held => "·",
            State::NoWork => "◇",
        }
    }

    pub(super) fn style(self) -> Style {
        match self {
            State::Done | State::Deferred | State::Held | State::NoWork => DIM,
            State::Running => BLUE,
            State::Queued => CYAN,
            State::Ready => GREEN,
            State::Blocked => YELLOW,
            State::Gated => RED,
        }
    }

    pub(super) fn painted(self) -> String {
        paint(self.style(), self.sign())
    }
}

pub(super) struct View<'a> {
    pub(super) graph: &'a Graph,
    pub(super) plan: &'a Plan,
    /// The epic that it is all below.
    pub(super) root: Option<u32>,
    states: Vec<State>,
}

impl<'a> View<'a> {
    /// Before anything runs, the graph itself says all.
    pub(super) fn staged(staged: &'a Staged) -> View<'a> {
        let (graph, plan) = (&staged.graph, &staged.plan);
        let root = staged.epic.as_deref().and_then(|epic| graph.find(epic));
        let mut states: Vec<State> = graph.all().map(|at| stand(graph, at)).collect();
        mark_gated(plan, &mut states);
        View { graph, plan, root, states }
    }

    /// With what is being done about each.
    pub(super) fn of(picture: &'a ConvoyPicture) -> View<'a> {
        let (graph, plan) = (&picture.graph, &picture.plan);
        let mut states: Vec<State> = graph.all().map(|at| going(picture, at)).collect();
        mark_gated(plan, &mut states);
        View { graph, plan, root: None, states }
    }

    pub(super) fn state(&self, at: u32) -> State {
        self.states[at as usize]
    }

    /// The ids of what a bead waits for, directly.
    pub(super) fn waits_for(&self, at: u32) -> Vec<&'a str> {
        self.graph.blockers(at).iter().map(|blocker| self.graph.id(*blocker)).collect()
    }

    pub(super) fn rig(&self, at: u32) -> Option<&'a str> {
        self.graph.place(at).map(|place| place.name.as_str())
    }
}

fn stand(graph: &Graph, at: u32) -> State {
    let spot = graph.spot(at);
    match &spot.status {
        status if status.is_terminal() => State::Done,
        _ if !spot.is_slingable => State::NoWork,
        Status::InProgress | Status::Hooked => State::Running,
        _ if !graph.blockers(at).is_empty() => State::Blocked,
        _ => State::Ready,
    }
}

fn going(picture: &ConvoyPicture, at: u32) -> State {
    let spot = picture.graph.spot(at);
    if !spot.is_member {
        return stand(&picture.graph, at);
    }
    match picture.progress_of(at) {
        Progress::Done => State::Done,
        Progress::Running(_) => State::Running,
        Progress::Queued { is_ready: true, .. } => State::Queued,
        Progress::Queued { is_ready: false, .. } | Progress::Blocked => State::Blocked,
        Progress::Ready => State::Ready,
        Progress::Deferred => State::Deferred,
        Progress::Held if !spot.is_slingable => State::NoWork,
        Progress::Held => State::Held,
    }
}

fn mark_gated(plan: &Plan, states: &mut [State]) {
    for gated in &plan.gated {
        let state = &mut states[gated.bead as usize];
        if matches!(state, State::Ready | State::Blocked) {
            *state = State::Gated;
        }
    }
}

/// The first few words of a list, and how many more there are.
pub(super) fn few(words: &[&str]) -> String {
    const SHOWN: usize = 3;
    let shown = words.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match words.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `1 task`, `2 tasks`.
pub(super) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
