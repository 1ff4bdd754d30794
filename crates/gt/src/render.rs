//! How beads look in a terminal: marks, colours, lines and trees.

use anstyle::{AnsiColor, Style};
use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::fields::Fields;
use gt_core::jsonl::{self, RowExtras};
use gt_core::readiness::Standing;
use gt_core::status::Status;
use gt_core::text::one_line;
use gt_store::{Listing, TreeNode, View};
use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
pub(crate) const YELLOW: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
pub(crate) const RED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
pub(crate) const BLUE: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Blue)));

pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// One sign for how a bead stands.
fn mark(status: &Status, standing: Standing) -> (&'static str, Style) {
    match (status, standing) {
        (Status::Tombstone, _) => ("✗", DIM),
        (Status::Pinned, _) => ("◆", DIM),
        (_, Standing::Done) => ("✓", DIM),
        (_, Standing::Ready) => ("○", GREEN),
        (_, Standing::Deferred) => ("◌", DIM),
        (_, Standing::Blocked) => ("⏸", YELLOW),
        (Status::InProgress | Status::Hooked, Standing::Held) => ("▶", BLUE),
        (_, Standing::Held) => ("·", DIM),
    }
}

/// Beads below each other, columns aligned.
pub(crate) fn lines(views: &[View], now: Timestamp) -> String {
    let width = |text: fn(&View) -> &str| views.iter().map(|view| text(view).chars().count()).max().unwrap_or(0);
    let id_width = width(|view| &view.bead.id);
    let type_width = width(|view| view.bead.type_word());
    views.iter().map(|view| line(view, id_width, type_width, now)).collect::<Vec<_>>().join("\n")
}

fn line(view: &View, id_width: usize, type_width: usize, now: Timestamp) -> String {
    let bead = &view.bead;
    let (sign, style) = mark(&bead.status, view.node.standing_at(now));
    let mut line = format!(
        "{} {:id_width$}  P{}  {:type_width$}  {}",
        paint(style, sign),
        bead.id,
        bead.priority,
        one_line(bead.type_word()),
        one_line(&bead.title)
    );
    line.push_str(&paint(DIM, &aside(view, now)));
    line
}

/// What is worth knowing beside the title: the blockers, the holder, the date.
fn aside(view: &View, now: Timestamp) -> String {
    let holder = view.bead.assignee.as_deref().map(|who| format!("  @{}", one_line(who))).unwrap_or_default();
    match view.node.standing_at(now) {
        Standing::Blocked => format!("{holder}  ← {}", few(&view.blocked_by)),
        Standing::Deferred => {
            let until = view.node.wake_at.map(gt_core::time::format).unwrap_or_default();
            format!("{holder}  until {until}")
        }
        Standing::Held => format!("{holder}  {}", one_line(view.bead.status.as_str())),
        Standing::Ready | Standing::Done => holder,
    }
}

/// The first three ids, and how many more.
fn few(ids: &[String]) -> String {
    let shown = ids.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The whole bead.
pub(crate) fn card(view: &View, now: Timestamp) -> String {
    let bead = &view.bead;
    let standing = view.node.standing_at(now);
    let (sign, style) = mark(&bead.status, standing);
    let mut card =
        format!("{} {} · {}\n", paint(style, sign), paint(BOLD, &bead.id), paint(BOLD, &one_line(&bead.title)));
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            card.extend(["  ", &paint(DIM, &format!("{name:<11}")), " ", &one_line(value), "\n"]);
        }
    };
    let time = |at: Option<jiff::Timestamp>| at.map(gt_core::time::format).unwrap_or_default();
    let body = |name: &str| bead.body.text(name).unwrap_or_default();
    field("status", &status_words(&bead.status, standing));
    field("type", bead.type_word());
    field("priority", &format!("P{}", bead.priority));
    field("rig", view.rig.as_deref().unwrap_or_default());
    field("assignee", bead.assignee.as_deref().unwrap_or_default());
    field("labels", &bead.labels.join(", "));
    field("blocked by", &view.blocked_by.join(", "));
    for edge in &bead.edges {
        let (name, target) = edge_words(edge);
        field(name, &target);
    }
    field("dependents", &if view.n_dependents > 0 { view.n_dependents.to_string() } else { String::new() });
    field("deferred", &time(bead.defer_until));
    field("due", &body("due_at"));
    field("created", format!("{} {}", time(bead.created_at), by(&body("created_by"))).trim());
    field("updated", &time(bead.updated_at));
    field("closed", &time(bead.closed_at));
    field("reason", &body("close_reason"));
    for name in ["description", "design", "acceptance_criteria", "notes"] {
        card.push_str(&section(name, &body(name)));
    }
    card.push_str(&comments(bead));
    card.trim_end().to_owned()
}

/// An edge read from the bead that has it: `blocks` alone would sound as if the bead were the blocker.
fn edge_words(edge: &Edge) -> (&'static str, String) {
    match &edge.kind {
        EdgeType::ParentChild => ("part of", edge.target.clone()),
        EdgeType::Blocks => ("depends on", edge.target.clone()),
        kind if kind.touches_readiness() => ("depends on", format!("{} ({kind})", edge.target)),
        kind => ("see also", format!("{} ({kind})", edge.target)),
    }
}

/// A bead's comments below each other.
pub(crate) fn comments(bead: &Bead) -> String {
    let section_of = |comment: &Fields| {
        let words = |name: &str| comment.text(name).unwrap_or_default();
        let head = format!("{} at {}", words("author"), gt_core::time::to_utc(&words("created_at")));
        section(&one_line(&head), &words("text"))
    };
    bead.comments.iter().map(section_of).collect()
}

fn by(who: &str) -> String {
    if who.is_empty() { String::new() } else { format!("by {who}") }
}

fn status_words(status: &Status, standing: Standing) -> String {
    let (status, word) = (status.as_str(), standing.as_str());
    if matches!(standing, Standing::Held | Standing::Done) || status == word {
        status.to_owned()
    } else {
        format!("{status}, {word}")
    }
}

fn section(name: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let head = name.replace('_', " ");
    let lines: Vec<String> = gt_core::text::many_lines(text).lines().map(|line| format!("  {line}")).collect();
    format!("\n{}\n{}\n", paint(BOLD, &head), lines.join("\n"))
}

/// The bead as `--json` shows it.
pub(crate) fn row(view: &View) -> Box<RawValue> {
    let extras = RowExtras { rig: view.rig.as_deref(), blocked_by: &view.blocked_by, n_dependents: view.n_dependents };
    jsonl::to_row(&view.bead, &extras)
}

pub(crate) fn rows(listing: &Listing) -> Vec<Box<RawValue>> {
    listing.beads.iter().map(row).collect()
}

/// A tree with its branches drawn.
pub(crate) fn tree(root: &TreeNode, now: Timestamp) -> String {
    let mut lines = vec![tree_line(root, now)];
    branches(root, "", now, &mut lines);
    lines.join("\n")
}

fn branches(node: &TreeNode, indent: &str, now: Timestamp, lines: &mut Vec<String>) {
    for (at, below) in node.below.iter().enumerate() {
        let is_last = at + 1 == node.below.len();
        let (branch, deeper) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        lines.push(format!("{}{}", paint(DIM, &format!("{indent}{branch}")), tree_line(below, now)));
        branches(below, &format!("{indent}{deeper}"), now, lines);
    }
}

fn tree_line(node: &TreeNode, now: Timestamp) -> String {
    let (sign, style) = mark(&node.node.facts.status, node.node.standing_at(now));
    let relation = match node.relation.as_deref() {
        None | Some("child") => String::new(),
        Some(kind) => format!("{} ", paint(DIM, &format!("[{kind}]"))),
    };
    let repeated = match node {
        TreeNode { repeated: true, .. } => paint(DIM, " (shown above)"),
        TreeNode { cut: true, .. } => paint(DIM, " … (`--depth` shows more)"),
        _ => String::new(),
    };
    format!("{} {relation}{}  {}{repeated}", paint(style, sign), node.id, one_line(&node.title))
}

pub(crate) fn tree_json(node: &TreeNode) -> Value {
    json!({
        "id": node.id,
        "title": node.title,
        "type": node.issue_type,
        "status": node.node.facts.status.as_str(),
        "blocked": node.node.is_blocked(),
        "relation": node.relation,
        "repeated": node.repeated,
        "cut": node.cut,
        "children": node.below.iter().map(tree_json).collect::<Vec<_>>(),
    })
}
