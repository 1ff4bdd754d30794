//! A convoy as a Mermaid flowchart, for pages that draw one.

use std::fmt::Write as _;

use super::view::{State, View};

const TITLE_CHARS_MAX: usize = 60;

pub(super) fn draw(view: &View<'_>) -> String {
    let mut text = "flowchart LR\n".to_owned();
    for (before, wave) in view.plan.waves().enumerate() {
        let number = before + 1;
        group(&mut text, view, &format!("w{number}"), &format!("Wave {number}"), wave);
    }
    let gated: Vec<u32> = view.plan.gated.iter().map(|gated| gated.bead).collect();
    group(&mut text, view, "gated", "Gated", &gated);
    let loose: Vec<u32> = gates(view);
    for at in &loose {
        node(&mut text, view, *at);
    }
    let shown: Vec<u32> = view.plan.waves().flatten().chain(&gated).copied().collect();
    let mut is_drawn = vec![false; view.graph.len()];
    for at in shown.iter().chain(&loose) {
        is_drawn[*at as usize] = true;
    }
    for at in shown {
        for before in view.graph.blockers(at).iter().filter(|before| is_drawn[**before as usize]) {
            writeln!(text, "  n{before} --> n{at}").unwrap_or_default();
        }
    }
    for state in State::ALL {
        let (fill, line) = super::svg::colours(state);
        writeln!(text, "  classDef {} fill:{fill},stroke:{line},color:#1f2328", class(state)).unwrap_or_default();
    }
    text
}

/// What gates others, each once.
fn gates(view: &View<'_>) -> Vec<u32> {
    let mut gates: Vec<u32> = view.plan.gated.iter().flat_map(|gated| gated.by.iter().copied()).collect();
    gates.sort_unstable();
    gates.dedup();
    gates
}

fn group(text: &mut String, view: &View<'_>, name: &str, title: &str, beads: &[u32]) {
    if beads.is_empty() {
        return;
    }
    writeln!(text, "  subgraph {name}[\"{title}\"]").unwrap_or_default();
    for at in beads {
        text.push_str("  ");
        node(text, view, *at);
    }
    text.push_str("  end\n");
}

fn node(text: &mut String, view: &View<'_>, at: u32) {
    let spot = view.graph.spot(at);
    let title = crate::fit::cut(&spot.title, TITLE_CHARS_MAX);
    let (id, title, class) = (escaped(&spot.id), escaped(&title), class(view.state(at)));
    writeln!(text, "  n{at}[\"{id}<br/>{title}\"]:::{class}").unwrap_or_default();
}

fn class(state: State) -> String {
    state.word().replace(' ', "")
}

/// Everything that Mermaid or a page could read as more than text, by its number.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ',' | '/' | '…' | '(' | ')' | ':' | '\'') {
            safe.push(c);
        } else {
            write!(safe, "#{};", u32::from(c)).unwrap_or_default();
        }
    }
    safe
}
