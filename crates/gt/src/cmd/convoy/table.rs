//! The wave table of a convoy: what can start together, and what it waits for.

use super::view::{View, counted, few};
use crate::fit;
use crate::render::{BOLD, DIM, RED, paint};

/// Tasks of one wave that are shown, and lines of the whole table.
const WAVE_LINES_MAX: usize = 12;
const LINES_MAX: usize = 60;
const ID_COLUMNS_MAX: usize = 24;
const RIG_COLUMNS_MAX: usize = 16;
const WAITS_COLUMNS_MAX: usize = 40;

/// How wide each column is.
struct Columns {
    id: usize,
    title: usize,
    rig: usize,
    waits: usize,
}

impl Columns {
    fn of(view: &View<'_>, tasks: &[u32], width: usize) -> Columns {
        let widest = |text: &dyn Fn(u32) -> usize, head: &str, max: usize| {
            tasks.iter().map(|at| text(*at)).max().unwrap_or(0).max(head.len()).min(max)
        };
        let id = widest(&|at| fit::columns(view.graph.id(at)), "ID", ID_COLUMNS_MAX);
        let rig = widest(&|at| fit::columns(view.rig(at).unwrap_or("-")), "Rig", RIG_COLUMNS_MAX);
        let waits =
            widest(&|at| fit::columns(&few(&view.waits_for(at))), "Blocked by", WAITS_COLUMNS_MAX.min(width / 3));
        let title = widest(&|at| fit::columns(&view.graph.spot(at).title), "Title", usize::MAX);
        // Wave and mark take nine columns, and two lie between each two of the rest.
        let room = width.saturating_sub(9 + id + rig + waits + 6).max(12);
        Columns { id, title: title.min(room), rig, waits }
    }
}

pub(super) fn draw(view: &View<'_>, width: usize) -> String {
    if view.plan.n_waves() == 0 {
        return format!("{}{}", paint(DIM, "No wave: nothing in it can start."), gates(view, width));
    }
    let shown = rows(view);
    let columns = Columns::of(view, &shown.iter().filter_map(Row::task).collect::<Vec<_>>(), width);
    let head = format!(
        "Wave     {}  {}  {}  Blocked by",
        fit::pad("ID", columns.id),
        fit::pad("Title", columns.title),
        fit::pad("Rig", columns.rig)
    );
    let mut lines = vec![paint(BOLD, &head)];
    lines.extend(shown.iter().map(|row| row.line(view, &columns)));
    lines.push(String::new());
    lines.push(summary(view));
    lines.join("\n") + &gates(view, width)
}

/// A line of the table.
enum Row {
    Task { at: u32, wave: Option<usize> },
    MoreTasks { n: usize },
    MoreWaves { n_waves: usize, n_tasks: usize },
}

impl Row {
    fn task(&self) -> Option<u32> {
        match self {
            Row::Task { at, .. } => Some(*at),
            Row::MoreTasks { .. } | Row::MoreWaves { .. } => None,
        }
    }

    fn line(&self, view: &View<'_>, columns: &Columns) -> String {
        match self {
            Row::Task { at, wave } => {
                let (state, spot) = (view.state(*at), view.graph.spot(*at));
                let wave = wave.map(|wave| wave.to_string()).unwrap_or_default();
                let (id, title) = (fit::pad(&spot.id, columns.id), fit::pad(&spot.title, columns.title));
                let rig = fit::pad(view.rig(*at).unwrap_or("-"), columns.rig);
                let waits = fit::cut(&few(&view.waits_for(*at)), columns.waits);
                let line = format!("{wave:<6} {} {id}  {title}  {rig}  {waits}", state.painted());
                line.trim_end().to_owned()
            }
            Row::MoreTasks { n } => paint(DIM, &format!("         … and {n} more")),
            Row::MoreWaves { n_waves, n_tasks } => {
                let (waves, tasks) = (counted(*n_waves, "wave"), counted(*n_tasks, "task"));
                paint(DIM, &format!("…        and {waves} more, with {tasks}"))
            }
        }
    }
}

/// The first tasks of each wave, as far as the table goes.
fn rows(view: &View<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (before, wave) in view.plan.waves().enumerate() {
        if rows.len() >= LINES_MAX {
            let n_waves = view.plan.n_waves() - before;
            let n_tasks = view.plan.waves().skip(before).map(<[u32]>::len).sum();
            rows.push(Row::MoreWaves { n_waves, n_tasks });
            break;
        }
        // One more than the limit is shown rather than counted.
        let n_shown = if wave.len() > WAVE_LINES_MAX + 1 { WAVE_LINES_MAX } else { wave.len() };
        let number = |place: usize| (place == 0).then_some(before + 1);
        rows.extend(wave[..n_shown].iter().enumerate().map(|(place, at)| Row::Task { at: *at, wave: number(place) }));
        if n_shown < wave.len() {
            rows.push(Row::MoreTasks { n: wave.len() - n_shown });
        }
    }
    rows
}

fn summary(view: &View<'_>) -> String {
    let (tasks, waves) = (counted(view.plan.n_tasks(), "task"), counted(view.plan.n_waves(), "wave"));
    match view.plan.widest() {
        Some((wave, size)) if view.plan.n_tasks() > 1 => {
            format!("{tasks} across {waves} (max parallelism: {size} in wave {wave})")
        }
        _ => format!("{tasks} across {waves}"),
    }
}

/// What is in no wave, because it waits for a person.
fn gates(view: &View<'_>, width: usize) -> String {
    let gated = &view.plan.gated;
    if gated.is_empty() {
        return String::new();
    }
    let mut lines = vec![String::new(), String::new(), paint(BOLD, &format!("Gated ({})", gated.len()))];
    let n_shown = if gated.len() > WAVE_LINES_MAX + 1 { WAVE_LINES_MAX } else { gated.len() };
    for one in &gated[..n_shown] {
        let by: Vec<String> = one.by.iter().map(|gate| gate_words(view, *gate)).collect();
        let by = few(&by.iter().map(String::as_str).collect::<Vec<_>>());
        let id = view.graph.id(one.bead);
        let room = width.saturating_sub(fit::columns(id) + fit::columns(&by) + 9).max(12);
        let title = fit::cut(&view.graph.spot(one.bead).title, room);
        lines.push(format!("  {} {id}  {title}{}", paint(RED, "⊘"), paint(DIM, &format!("  ← {by}"))));
    }
    if n_shown < gated.len() {
        lines.push(paint(DIM, &format!("  … and {} more", gated.len() - n_shown)));
    }
    lines.join("\n")
}

fn gate_words(view: &View<'_>, gate: u32) -> String {
    let spot = view.graph.spot(gate);
    format!("{} ({})", spot.id, gt_core::text::one_line(spot.type_word()))
}
