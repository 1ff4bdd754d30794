//! A convoy as a picture: waves as columns, boxes with their beads, curves from each to what waits for it.
//!
//! One file that needs nothing else: no script, no font, no address. What comes from people is escaped.

use std::fmt::Write as _;

use super::view::{State, View, counted};
use crate::fit;

const MARGIN: f64 = 36.0;
const HEAD: f64 = 108.0;
const FOOT: f64 = 64.0;
const BOX: (f64, f64) = (224.0, 62.0);
/// Between columns, where the curves run, and between boxes of one column.
const GAP: (f64, f64) = (76.0, 16.0);
/// What is beyond is counted, so that the picture stays one.
const ROWS_MAX: usize = 40;
const COLUMNS_MAX: usize = 40;
const TITLE_COLUMNS: usize = 28;
/// How often the order in the columns is improved.
const SWEEPS: usize = 4;

/// The colours of a state: inside and line.
pub(super) fn colours(state: State) -> (&'static str, &'static str) {
    match state {
        State::Done => ("#dafbe1", "#1a7f37"),
        State::Running => ("#ddf4ff", "#0969da"),
        State::Queued => ("#e5e4ff", "#6639ba"),
        State::Ready => ("#ffffff", "#1a7f37"),
        State::Blocked => ("#fff8c5", "#9a6700"),
        State::Gated => ("#ffebe9", "#cf222e"),
        State::Deferred => ("#f6f8fa", "#6e7781"),
        State::Held => ("#fff1e5", "#bc4c00"),
        State::NoWork => ("#eaeef2", "#57606a"),
    }
}

/// What stands in one column, and what it is called.
struct Column {
    title: String,
    beads: Vec<u32>,
    n_more: usize,
}

/// Where everything is.
struct Layout {
    columns: Vec<Column>,
    /// By bead: column and row.
    places: Vec<Option<(usize, usize)>>,
}

impl Layout {
    fn of(view: &View<'_>) -> Layout {
        let all = columns(view);
        let n_cut = all.len().saturating_sub(COLUMNS_MAX);
        let n_tasks_cut = all.iter().skip(COLUMNS_MAX).map(|(_, beads)| beads.len()).sum::<usize>();
        let mut columns: Vec<Column> = Vec::new();
        let mut rows: Vec<f64> = vec![0.0; view.graph.len()];
        for (title, mut beads) in all.into_iter().take(COLUMNS_MAX) {
            let n_more = if beads.len() > ROWS_MAX { beads.len() - (ROWS_MAX - 1) } else { 0 };
            if n_more > 0 {
                // What others wait for is shown before what nobody waits for.
                beads.sort_by_key(|at| view.graph.dependents(*at).is_empty());
                beads.truncate(ROWS_MAX - 1);
            }
            // What waits for the upper boxes of the column before stands above: fewer curves cross.
            beads.sort_by(|a, b| mean(view, &rows, *a).total_cmp(&mean(view, &rows, *b)));
            for (row, at) in beads.iter().enumerate() {
                rows[*at as usize] = row as f64;
            }
            columns.push(Column { title, beads, n_more });
        }
        if n_cut > 0 {
            let title = format!("{} more", counted(n_cut, "wave"));
            columns.push(Column { title, beads: Vec::new(), n_more: n_tasks_cut });
        }
        let mut layout = Layout { columns, places: vec![None; view.graph.len()] };
        layout.improve(view);
        layout
    }

    /// Moves each bead towards the middle of what it is tied to, from the right and from the left in turn.
    fn improve(&mut self, view: &View<'_>) {
        self.settle();
        for sweep in 0..SWEEPS {
            let n = self.columns.len();
            for step in 0..n {
                let at = if sweep % 2 == 0 { n - 1 - step } else { step };
                let places = std::mem::take(&mut self.places);
                let row = |bead: &u32| places[*bead as usize].map(|(_, row)| row as f64);
                let pull = |bead: &u32| {
                    let tied = if sweep % 2 == 0 { view.graph.dependents(*bead) } else { view.graph.blockers(*bead) };
                    let rows: Vec<f64> = tied.iter().filter_map(row).collect();
                    let own = row(bead).unwrap_or(0.0);
                    if rows.is_empty() { own } else { rows.iter().sum::<f64>() / rows.len() as f64 }
                };
                self.columns[at].beads.sort_by(|a, b| pull(a).total_cmp(&pull(b)));
                self.places = places;
                self.settle();
            }
        }
    }

    fn settle(&mut self) {
        for (column, of) in self.columns.iter().enumerate() {
            for (row, at) in of.beads.iter().enumerate() {
                self.places[*at as usize] = Some((column, row));
            }
        }
    }

    fn n_rows(&self) -> usize {
        let rows = self.columns.iter().map(|column| column.beads.len() + usize::from(column.n_more > 0));
        rows.max().unwrap_or(0).max(1)
    }

    /// The corner of a place. A column stands in the middle of the highest one.
    fn corner(&self, column: usize, row: usize) -> (f64, f64) {
        let of = &self.columns[column];
        let n = of.beads.len() + usize::from(of.n_more > 0);
        let free = (self.n_rows() - n) as f64 * (BOX.1 + GAP.1) / 2.0;
        (MARGIN + column as f64 * (BOX.0 + GAP.0), HEAD + free + row as f64 * (BOX.1 + GAP.1))
    }

    fn size(&self, n_legend: usize) -> (f64, f64) {
        let n = self.columns.len().max(1) as f64;
        let width = 2.0 * MARGIN + n * BOX.0 + (n - 1.0) * GAP.0;
        let legend = 2.0 * MARGIN + n_legend as f64 * LEGEND_STEP;
        (width.max(legend).max(480.0), HEAD + self.n_rows() as f64 * (BOX.1 + GAP.1) - GAP.1 + FOOT)
    }
}

const LEGEND_STEP: f64 = 92.0;

/// What is done, the waves, what gates, and what is gated.
fn columns(view: &View<'_>) -> Vec<(String, Vec<u32>)> {
    let is_done = |at: &u32| view.state(*at) == State::Done && view.graph.spot(*at).is_slingable;
    let done: Vec<u32> = view.graph.all().filter(|at| view.graph.spot(*at).is_member && is_done(at)).collect();
    let mut gates: Vec<u32> = view.plan.gated.iter().flat_map(|gated| gated.by.iter().copied()).collect();
    gates.sort_unstable();
    gates.dedup();
    let held_up: Vec<u32> = view.plan.gated.iter().map(|gated| gated.bead).collect();
    let waves = view.plan.waves().enumerate().map(|(before, wave)| (format!("Wave {}", before + 1), wave.to_vec()));
    let mut columns = vec![("Done".to_owned(), done)];
    columns.extend(waves);
    columns.extend([("For a person".to_owned(), gates), ("Gated".to_owned(), held_up)]);
    columns.retain(|(_, beads)| !beads.is_empty());
    columns
}

fn mean(view: &View<'_>, rows: &[f64], at: u32) -> f64 {
    let blockers = view.graph.blockers(at);
    let sum: f64 = blockers.iter().map(|before| rows[*before as usize]).sum();
    if blockers.is_empty() { 0.0 } else { sum / blockers.len() as f64 }
}

/// The whole picture, with a heading.
pub(super) fn draw(view: &View<'_>, title: &str, subtitle: &str) -> String {
    let layout = Layout::of(view);
    let states = legend_states(view, &layout);
    let (width, height) = layout.size(states.len());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\" role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif\">\n"
    );
    let name = escaped(title);
    let room = ((width - 2.0 * MARGIN) / 10.5) as usize;
    let short = escaped(&fit::cut(title, room));
    let subtitle = escaped(&fit::cut(subtitle, ((width - 2.0 * MARGIN) / 7.0) as usize));
    write!(
        svg,
        "<title>{name}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"42\" font-size=\"19\" font-weight=\"600\" fill=\"#1f2328\">{short}</text>\n\
         <text x=\"{MARGIN}\" y=\"64\" font-size=\"13\" fill=\"#59636e\">{subtitle}</text>\n"
    )
    .unwrap_or_default();
    bands(&mut svg, &layout, height);
    curves(&mut svg, view, &layout);
    boxes(&mut svg, view, &layout);
    legend(&mut svg, &states, height);
    svg.push_str("</svg>\n");
    svg
}

/// A light ground and a heading for each column.
fn bands(svg: &mut String, layout: &Layout, height: f64) {
    for (at, column) in layout.columns.iter().enumerate() {
        let x = MARGIN + at as f64 * (BOX.0 + GAP.0);
        let (left, top, wide, high) = (x - 12.0, HEAD - 30.0, BOX.0 + 24.0, height - HEAD - FOOT + 42.0);
        let title = escaped(&column.title);
        let n = column.beads.len() + column.n_more;
        writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" rx=\"10\" fill=\"#f6f8fa\"/>\n\
             <text x=\"{x}\" y=\"{}\" font-size=\"12\" font-weight=\"600\" fill=\"#59636e\">{title} · {n}</text>",
            HEAD - 11.0
        )
        .unwrap_or_default();
    }
}

fn curves(svg: &mut String, view: &View<'_>, layout: &Layout) {
    svg.push_str("<g fill=\"none\" stroke=\"#8c959f\" stroke-width=\"1.4\" stroke-opacity=\"0.75\">\n");
    for at in view.graph.all() {
        let Some((column, row)) = layout.places[at as usize] else { continue };
        for before in view.graph.blockers(at) {
            let Some((from_column, from_row)) = layout.places[*before as usize] else { continue };
            let (from_x, from_y) = layout.corner(from_column, from_row);
            let (to_x, to_y) = layout.corner(column, row);
            let (start_x, start_y, end_y) = (from_x + BOX.0, from_y + BOX.1 / 2.0, to_y + BOX.1 / 2.0);
            // Within one column the curve leaves and comes back on the same side.
            let (end_x, bend, sign) = if column > from_column {
                (to_x, ((to_x - start_x) / 2.0).max(GAP.0 / 2.0), -1.0)
            } else {
                (to_x + BOX.0, GAP.0 / 2.0, 1.0)
            };
            let (first_x, second_x) = (start_x + bend, end_x + sign * bend);
            writeln!(svg, "<path d=\"M{start_x} {start_y} C{first_x} {start_y} {second_x} {end_y} {end_x} {end_y}\"/>")
                .unwrap_or_default();
            let tip = if sign < 0.0 { -6.0 } else { 6.0 };
            writeln!(
                svg,
                "<path d=\"M{} {} L{end_x} {end_y} L{} {}\"/>",
                end_x + tip,
                end_y - 3.5,
                end_x + tip,
                end_y + 3.5
            )
            .unwrap_or_default();
        }
    }
    svg.push_str("</g>\n");
}

fn boxes(svg: &mut String, view: &View<'_>, layout: &Layout) {
    for (at, column) in layout.columns.iter().enumerate() {
        for (row, bead) in column.beads.iter().enumerate() {
            one_box(svg, view, *bead, layout.corner(at, row));
        }
        if column.n_more > 0 {
            let (x, y) = layout.corner(at, column.beads.len());
            let (x, y) = (x + BOX.0 / 2.0, y + BOX.1 / 2.0 + 4.0);
            let n = column.n_more;
            let words = if column.beads.is_empty() { counted(n, "task") } else { format!("… and {n} more") };
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"13\" fill=\"#59636e\">{words}</text>"
            )
            .unwrap_or_default();
        }
    }
}

fn one_box(svg: &mut String, view: &View<'_>, bead: u32, (x, y): (f64, f64)) {
    let (spot, state) = (view.graph.spot(bead), view.state(bead));
    let (fill, line) = colours(state);
    let dash = if matches!(state, State::Gated | State::Deferred) { " stroke-dasharray=\"5 3\"" } else { "" };
    let (wide, high) = BOX;
    let rig = view.rig(bead).map(|rig| format!(" · {rig}")).unwrap_or_default();
    let tip = escaped(&format!("{} · {} · {}{rig}", spot.id, spot.title, state.word()));
    writeln!(
        svg,
        "<g><title>{tip}</title><rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" rx=\"8\" fill=\"{fill}\" \
         stroke=\"{line}\" stroke-width=\"1.4\"{dash}/>"
    )
    .unwrap_or_default();
    let id = escaped(&fit::cut(&spot.id, 18));
    let word = if state == State::NoWork { spot.type_word() } else { state.word() };
    let (left, right) = (x + 12.0, x + wide - 12.0);
    writeln!(
        svg,
        "<text x=\"{left}\" y=\"{}\" font-size=\"12\" font-weight=\"600\" fill=\"{line}\" \
         font-family=\"ui-monospace, 'SF Mono', Menlo, Consolas, monospace\">{id}</text>\
         <text x=\"{right}\" y=\"{}\" font-size=\"10\" text-anchor=\"end\" fill=\"{line}\">{}</text>",
        y + 19.0,
        y + 19.0,
        escaped(&fit::cut(word, 14))
    )
    .unwrap_or_default();
    for (at, words) in two_lines(&spot.title).into_iter().enumerate() {
        let y = y + 36.0 + 15.0 * at as f64;
        writeln!(svg, "<text x=\"{left}\" y=\"{y}\" font-size=\"12\" fill=\"#1f2328\">{}</text>", escaped(&words))
            .unwrap_or_default();
    }
    svg.push_str("</g>\n");
}

/// A title on at most two lines, broken between words where that works.
fn two_lines(title: &str) -> Vec<String> {
    let title = gt_core::text::one_line(title);
    let title = title.trim();
    if fit::columns(title) <= TITLE_COLUMNS {
        return vec![title.to_owned()];
    }
    let mut end = 0;
    for (at, _) in title.match_indices(' ') {
        if fit::columns(&title[..at]) > TITLE_COLUMNS {
            break;
        }
        end = at;
    }
    if end == 0 {
        let first: String = title
            .chars()
            .scan(0, |used, c| {
                *used += fit::columns(&c.to_string());
                (*used <= TITLE_COLUMNS).then_some(c)
            })
            .collect();
        end = first.len();
    }
    vec![title[..end].to_owned(), fit::cut(title[end..].trim_start(), TITLE_COLUMNS)]
}

/// The states that are in the picture.
fn legend_states(view: &View<'_>, layout: &Layout) -> Vec<State> {
    let shown: Vec<State> = layout.columns.iter().flat_map(|column| &column.beads).map(|at| view.state(*at)).collect();
    State::ALL.into_iter().filter(|state| shown.contains(state)).collect()
}

fn legend(svg: &mut String, states: &[State], height: f64) {
    for (at, state) in states.iter().enumerate() {
        let (fill, line) = colours(*state);
        let (x, y) = (MARGIN + at as f64 * LEGEND_STEP, height - 30.0);
        writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"14\" height=\"14\" rx=\"4\" fill=\"{fill}\" stroke=\"{line}\" \
             stroke-width=\"1.4\"/><text x=\"{}\" y=\"{}\" font-size=\"12\" fill=\"#59636e\">{}</text>",
            x + 21.0,
            y + 11.5,
            state.word()
        )
        .unwrap_or_default();
    }
}

/// Text that stays text inside the picture; what XML cannot hold is shown as unknown.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in gt_core::text::one_line(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\u{FFFE}' | '\u{FFFF}' => safe.push('\u{FFFD}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_people_write_gets_out_of_its_place() {
        assert_eq!(escaped("<b a='1'>&\"\u{1}\u{FFFE}"), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;\u{FFFD}\u{FFFD}");
    }

    #[test]
    fn titles_take_two_lines_at_most() {
        assert_eq!(two_lines("Fix the login"), ["Fix the login"]);
        let words = two_lines("Move the session store to the new schema and keep the old one readable for a week");
        assert_eq!(words, ["Move the session store to", "the new schema and keep the…"]);
        let solid = two_lines(&"x".repeat(300));
        assert_eq!((solid.len(), solid[0].len(), fit::columns(&solid[1])), (2, TITLE_COLUMNS, TITLE_COLUMNS));
    }
}
