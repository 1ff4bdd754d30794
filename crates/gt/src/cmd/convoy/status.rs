//! `gt convoy status`: waves, queued, running, blocked and done in one picture, once or as it changes. // SPEC C6

use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use clap::Args;
use gt_core::convoy::ConvoyStatus;
use gt_core::explain;
use gt_core::status::Status;
use gt_engine::Town;
use gt_store::{ConvoyPicture, Progress, Store, Worker};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::bar::{self, Counts};
use super::view::{State, View, few};
use crate::context::Context;
use crate::failure::Failure;
use crate::fit;
use crate::render::{BOLD, DIM, paint};
use gt_engine::news::News;

/// Members of one wave that are shown, and waves.
const MEMBERS_MAX: usize = 12;
const WAVES_MAX: usize = 12;
/// On a terminal the time that work has taken goes on while nothing else happens.
const TICK: Duration = Duration::from_secs(1);

/// Show how far a convoy has come
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy status hq-cv-a1b2c
  gt convoy status hq-cv-a1b2c --watch    until it is closed")]
pub(super) struct StatusArgs {
    /// The convoy
    #[arg(value_name = "CONVOY")]
    id: String,
    /// Keep showing it as it changes, until it is closed
    #[arg(long, short)]
    watch: bool,
}

pub(super) fn run(context: &Context, args: &StatusArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = town.open_store()?;
    if args.watch {
        return watch(context, &town, &mut store, &args.id);
    }
    let seen = Seen::look(context, &town, &mut store, &args.id)?;
    if context.wants_json() { context.json(&seen.to_json()) } else { context.say(&seen.text(fit::width())) }
}

fn watch(context: &Context, town: &Town, store: &mut Store, id: &str) -> Result<(), Failure> {
    // Watching starts before the first look, so nothing falls between the two.
    let mut news = News::of(town)?;
    let mut screen = Screen { is_terminal: std::io::stdout().is_terminal() && !context.wants_json(), n_lines: 0 };
    let mut shown = Value::Null;
    let mut commits = None;
    loop {
        let now = store.outside_commits()?;
        let is_new = commits.replace(now) != Some(now);
        if is_new || screen.is_terminal {
            let seen = Seen::look(context, town, store, id)?;
            let told = seen.to_json();
            if told != shown || (screen.is_terminal && seen.has_running()) {
                if context.wants_json() { context.json(&told)? } else { screen.show(context, &seen)? }
            }
            shown = told;
            if seen.picture.status == ConvoyStatus::Closed {
                return Ok(());
            }
        }
        if !news.wait(screen.is_terminal.then_some(TICK)) {
            return Ok(());
        }
    }
}

/// Where the picture is drawn again and again: over itself on a terminal, below itself elsewhere.
struct Screen {
    is_terminal: bool,
    n_lines: usize,
}

impl Screen {
    fn show(&mut self, context: &Context, seen: &Seen) -> Result<(), Failure> {
        let text = seen.text(fit::width());
        if !self.is_terminal {
            return context.say(&format!("{text}\n"));
        }
        // What has scrolled away cannot be drawn over, so no more is drawn than the terminal holds.
        let room = fit::height().unwrap_or(usize::MAX).saturating_sub(2).max(4);
        let mut lines: Vec<&str> = text.lines().collect();
        let is_cut = lines.len() > room;
        lines.truncate(room);
        if is_cut {
            lines.push("…");
        }
        let up = if self.n_lines > 0 { format!("\x1b[{}A", self.n_lines) } else { String::new() };
        let fresh: Vec<String> = lines.iter().map(|line| format!("\x1b[2K{line}")).collect();
        self.n_lines = lines.len();
        let mut out = anstream::stdout();
        out.write_all(format!("{up}\r").as_bytes()).unwrap_or_default();
        context.say(&format!("{}\x1b[J", fresh.join("\n")))
    }
}

/// A convoy at one time, with the reasons why what is queued has not started, or when it does.
struct Seen {
    picture: ConvoyPicture,
    reasons: FxHashMap<String, String>,
    starts: FxHashMap<String, &'static str>,
    now: Timestamp,
}

impl Seen {
    fn look(context: &Context, town: &Town, store: &mut Store, id: &str) -> Result<Seen, Failure> {
        let now = context.now();
        let picture = store.convoy_picture(id, now)?;
        let has_queued = picture.progress.iter().any(|progress| matches!(progress, Progress::Queued { .. }));
        let (mut reasons, mut starts) = (FxHashMap::default(), FxHashMap::default());
        if has_queued {
            let policy = context.settings_in(town, store)?.policy(town.root());
            for one in store.outlook(&policy, now)?.scheduled {
                match one.reasons.into_iter().next() {
                    Some(reason) => drop(reasons.insert(one.bead, reason.message)),
                    None => drop(starts.insert(one.bead, explain::next_start(policy.has_batch(one.is_queued)))),
                }
            }
        }
        Ok(Seen { picture, reasons, starts, now })
    }

    fn has_running(&self) -> bool {
        self.picture.progress.iter().any(|progress| matches!(progress, Progress::Running(_)))
    }

    fn counts(&self, view: &View<'_>) -> Counts {
        let mut counts = Counts::default();
        self.picture.members().for_each(|at| counts.add(view.state(at)));
        let is_deleted = |at: &u32| self.picture.graph.spot(*at).status == Status::Tombstone;
        counts.deleted = self.picture.members().filter(is_deleted).count();
        self.picture.missing.iter().for_each(|_| counts.add(State::Blocked));
        counts
    }

    fn text(&self, width: usize) -> String {
        let picture = &self.picture;
        let view = View::of(picture);
        let owned = if picture.is_owned { ", owned" } else { "" };
        let about = format!("  {}{owned}", picture.status);
        let room = width.saturating_sub(fit::columns(&picture.id) + fit::columns(&about) + 3).max(12);
        let head = format!("{} · {}", picture.id, fit::cut(&picture.title, room));
        let mut text = format!("{}{}\n{}", paint(BOLD, &head), paint(DIM, &about), bar::draw(&self.counts(&view)));
        for (title, beads) in self.sections(&view) {
            text.push_str(&self.section(&view, &title, &beads, width));
        }
        if !picture.missing.is_empty() {
            let words: Vec<&str> = picture.missing.iter().map(String::as_str).collect();
            text.extend(["\n\n", &paint(BOLD, "Not there"), "\n  ", &few(&words)]);
        }
        text
    }

    /// Waves, then what waits for a person, then what is done.
    fn sections(&self, view: &View<'_>) -> Vec<(String, Vec<u32>)> {
        let plan = view.plan;
        let mut sections: Vec<(String, Vec<u32>)> = Vec::new();
        for (before, wave) in plan.waves().enumerate().take(WAVES_MAX) {
            sections.push((format!("Wave {}", before + 1), wave.to_vec()));
        }
        if plan.n_waves() > WAVES_MAX {
            let rest: Vec<u32> = plan.waves().skip(WAVES_MAX).flatten().copied().collect();
            sections.push((format!("Waves {} to {}", WAVES_MAX + 1, plan.n_waves()), rest));
        }
        sections.push(("Gated".to_owned(), plan.gated.iter().map(|gated| gated.bead).collect()));
        let of = |wanted: State| self.picture.members().filter(move |at| view.state(*at) == wanted).collect::<Vec<_>>();
        sections.push(("No work for agents".to_owned(), of(State::NoWork)));
        sections.push(("Done".to_owned(), of(State::Done)));
        sections.retain(|(_, beads)| !beads.is_empty());
        sections
    }

    fn section(&self, view: &View<'_>, title: &str, beads: &[u32], width: usize) -> String {
        let n = if beads.len() > 1 { format!(" ({})", beads.len()) } else { String::new() };
        let mut text = format!("\n\n{}", paint(BOLD, &format!("{title}{n}")));
        let n_shown = if beads.len() > MEMBERS_MAX + 1 { MEMBERS_MAX } else { beads.len() };
        let shown = &beads[..n_shown];
        let id_width = shown.iter().map(|at| fit::columns(view.graph.id(*at))).max().unwrap_or(0).min(28);
        for at in shown {
            let aside = self.aside(view, *at);
            let room = width.saturating_sub(id_width + 6);
            let aside = fit::cut(&aside, room / 2);
            let title = fit::cut(&view.graph.spot(*at).title, room.saturating_sub(fit::columns(&aside) + 2));
            let id = fit::pad(view.graph.id(*at), id_width);
            let state = view.state(*at);
            let title = if state == State::Done { paint(DIM, &title) } else { title };
            let aside = if aside.is_empty() { aside } else { paint(DIM, &format!("  {aside}")) };
            text.extend(["\n  ", &state.painted(), " ", &id, "  ", &title, &aside]);
        }
        if n_shown < beads.len() {
            text.push_str(&paint(DIM, &format!("\n  … and {} more", beads.len() - n_shown)));
        }
        text
    }

    /// What is worth knowing of a member: who is on it and how long, or what it waits for.
    fn aside(&self, view: &View<'_>, at: u32) -> String {
        let gates = view.plan.gated.binary_search_by_key(&at, |gated| gated.bead).ok();
        let waits_for = match gates {
            Some(place) => view.plan.gated[place].by.iter().map(|gate| view.graph.id(*gate)).collect(),
            None => view.waits_for(at),
        };
        let id = view.graph.id(at);
        let reason = || self.reasons.get(id).map(String::as_str).or(self.starts.get(id).copied());
        match self.picture.progress_of(at) {
            Progress::Done => String::new(),
            Progress::Running(worker) => self.worker_words(worker),
            _ if !waits_for.is_empty() => format!("← {}", few(&waits_for)),
            Progress::Queued { .. } => reason().unwrap_or_default().to_owned(),
            Progress::Blocked => "blocked by what its parent waits for".to_owned(),
            Progress::Ready => "ready".to_owned(),
            Progress::Deferred => "deferred".to_owned(),
            Progress::Held => gt_core::text::one_line(view.graph.spot(at).status.as_str()),
        }
    }

    fn worker_words(&self, worker: &Worker) -> String {
        let span = age(self.now.duration_since(worker.since).as_secs());
        let verb = if worker.is_starting { "starting, " } else { "" };
        format!("{} ({}), {verb}{span}", worker.polecat, worker.rig)
    }

    /// What scripts rely on.
    fn to_json(&self) -> Value {
        let picture = &self.picture;
        let view = View::of(picture);
        let members = picture.members().map(|at| self.member_json(&view, at));
        let missing = picture.missing.iter().map(|id| missing_json(id));
        json!({
            "id": picture.id,
            "title": picture.title,
            "status": picture.status.as_str(),
            "owned": picture.is_owned,
            "lifecycle": if picture.is_owned { "caller-managed" } else { "system-managed" },
            "completed": picture.n_done(),
            "total": picture.n_total(),
            "waves": picture.plan.n_waves(),
            "tracked": members.chain(missing).collect::<Vec<_>>(),
        })
    }

    fn member_json(&self, view: &View<'_>, at: u32) -> Value {
        let spot = view.graph.spot(at);
        let progress = self.picture.progress_of(at);
        let worker = if let Progress::Running(worker) = progress { Some(worker) } else { None };
        let context = if let Progress::Queued { context, .. } = progress { Some(context) } else { None };
        let state = view.state(at);
        json!({
            "id": spot.id,
            "title": spot.title,
            "type": spot.type_word(),
            "status": spot.status.as_str(),
            "rig": view.rig(at),
            "state": state.word(),
            "worker": worker.map(|worker| format!("{}/{}", worker.rig, worker.polecat)),
            "run": worker.map(|worker| &worker.run),
            "since": worker.map(|worker| gt_core::time::format(worker.since)),
            "context": context,
            "blocked": matches!(state, State::Blocked | State::Gated),
            "blocked_by": if state == State::Done { Vec::new() } else { view.waits_for(at) },
            "reason": self.reasons.get(&spot.id).filter(|_| context.is_some()),
            "wave": view.plan.wave_of(at),
        })
    }
}

/// A member that is not there keeps its place in the list.
fn missing_json(id: &str) -> Value {
    json!({
        "id": id, "title": null, "type": null, "status": "missing", "rig": null, "state": "missing", "worker": null,
        "run": null, "since": null, "context": null, "blocked": false, "blocked_by": [], "reason": null, "wave": null,
    })
}

/// A span in its two largest parts.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m {}s", s / 60, s % 60),
        s @ 3600..86400 => format!("{}h {}m", s / 3600, s % 3600 / 60),
        s => format!("{}d {}h", s / 86400, s % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn spans_are_short() {
        let shown = [-5, 0, 59, 60, 3599, 3600, 86399, 86400].map(age);
        assert_eq!(shown, ["0s", "0s", "59s", "1m 0s", "59m 59s", "1h 0m", "23h 59m", "1d 0h"]);
    }
}
