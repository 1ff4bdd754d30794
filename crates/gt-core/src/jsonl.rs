//! The JSON forms of a bead: a line of `issues.jsonl`, and the row that `--json` prints.
//!
//! Reading is tolerant (real files are old, merged and hand-edited) and never loses a field. The line keeps
//! the spelling of imported times; the row shows every time in UTC and every known field, absent ones as `null`.

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use jiff::Timestamp;

use crate::bead::{Bead, DEFAULT_PRIORITY};
use crate::edge::{Edge, EdgeType, unwrap_target};
use crate::fields::{Fields, RawFields};
use crate::status::Status;
use crate::text::TITLE_CHARS_MAX;
use crate::{id, time};

/// How much of a parser's reason is told.
const REASON_CHARS_MAX: usize = 120;

/// Why a line was skipped.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadLine {
    #[error("not valid JSON: {reason}")]
    NotJson { reason: String },
    #[error("not valid UTF-8")]
    NotUtf8,
    #[error("a JSON {found}, where an object is needed")]
    NotAnObject { found: &'static str },
    #[error("`{id}` cannot be an id: it must be one word of at most {} characters", id::ID_CHARS_MAX)]
    BadId { id: String },
    #[error("`{field}` must be {wanted}")]
    WrongType { field: &'static str, wanted: &'static str },
    #[error("the title of {id} has {chars} characters; at most {TITLE_CHARS_MAX} fit")]
    TitleTooLong { id: String, chars: usize },
}

/// What a line holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Bead {
        bead: Box<Bead>,
        /// Dependencies that name no target; the bead is taken without them.
        n_bad_edges: usize,
    },
    /// An object without an id: a record that is no bead.
    NoBead,
}

/// Reads one line.
pub fn parse_line(line: &str) -> Result<Line, BadLine> {
    let mut fields = parse_object(line)?;
    let Some(raw_id) = fields.take("id") else { return Ok(Line::NoBead) };
    let id: String = typed(raw_id, "id", "a text")?;
    if !id::is_sane(&id) {
        return Err(BadLine::BadId { id: crate::text::one_line(&id).chars().take(60).collect() });
    }
    let mut bead = Bead::new(id, "");
    bead.title = take(&mut fields, "title", "a text")?.unwrap_or_default();
    let chars = bead.title.chars().count();
    if chars > TITLE_CHARS_MAX {
        return Err(BadLine::TitleTooLong { id: bead.id, chars });
    }
    bead.status = take_word(&mut fields, "status")?.map_or(Status::Open, |word| Status::parse(&word));
    bead.priority = take(&mut fields, "priority", "a whole number")?.unwrap_or(DEFAULT_PRIORITY);
    bead.issue_type = take_word(&mut fields, "issue_type")?;
    bead.assignee = take_word(&mut fields, "assignee")?;
    bead.rig = take_word(&mut fields, RIG_FIELD)?;
    bead.labels = take(&mut fields, "labels", "a list of texts")?.unwrap_or_default();
    bead.comments = comments(&mut fields)?;
    let dependencies: Vec<&RawValue> = take(&mut fields, "dependencies", "a list of objects")?.unwrap_or_default();
    let n_dependencies = dependencies.len();
    bead.edges = dependencies.into_iter().filter_map(|dependency| edge(dependency, &bead.id)).collect();
    bead.created_at = read_time(&mut fields, "created_at");
    bead.updated_at = read_time(&mut fields, "updated_at");
    bead.closed_at = read_time(&mut fields, "closed_at");
    bead.defer_until = read_time(&mut fields, "defer_until");
    let n_bad_edges = n_dependencies - bead.edges.len();
    bead.body = fields.into_fields();
    Ok(Line::Bead { bead: Box::new(bead), n_bad_edges })
}

fn parse_object(line: &str) -> Result<RawFields<'_>, BadLine> {
    RawFields::parse(line).map_err(|error| match serde_json::from_str::<&RawValue>(line) {
        Ok(raw) => BadLine::NotAnObject { found: shape(raw) },
        Err(_) => BadLine::NotJson { reason: reason(&error) },
    })
}

/// The parser's reason without its line number, which is always 1 here. It may quote the line, which may be long.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let (reason, has_place) =
        text.rsplit_once(" at line ").map_or((text.as_str(), false), |(reason, _)| (reason, true));
    let mut short: String = reason.chars().take(REASON_CHARS_MAX).collect();
    if short.len() < reason.len() {
        short.push('…');
    }
    if has_place { format!("{short} at column {}", error.column()) } else { short }
}

fn shape(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'[') => "list",
        Some(b'"') => "text",
        Some(b't' | b'f') => "truth value",
        Some(b'n') => "null",
        Some(b'{') => "object with a broken field",
        _ => "number",
    }
}

fn typed<'a, T: Deserialize<'a>>(raw: &'a RawValue, field: &'static str, wanted: &'static str) -> Result<T, BadLine> {
    serde_json::from_str(raw.get()).map_err(|_| BadLine::WrongType { field, wanted })
}

fn take<'a, T: Deserialize<'a>>(
    fields: &mut RawFields<'a>,
    field: &'static str,
    wanted: &'static str,
) -> Result<Option<T>, BadLine> {
    fields.take(field).map_or(Ok(None), |raw| typed::<Option<T>>(raw, field, wanted))
}

/// A text; an empty one counts as absent.
fn take_word(fields: &mut RawFields<'_>, field: &'static str) -> Result<Option<String>, BadLine> {
    Ok(take::<String>(fields, field, "a text")?.filter(|word| !word.is_empty()))
}

fn comments(fields: &mut RawFields<'_>) -> Result<Vec<Fields>, BadLine> {
    let wanted = "a list of objects";
    let comments: Vec<RawFields<'_>> = take(fields, "comments", wanted)?.unwrap_or_default();
    Ok(comments.into_iter().map(RawFields::into_fields).collect())
}

/// Reads a time and leaves its spelling behind where we would write it differently, or cannot read it.
fn read_time(fields: &mut RawFields<'_>, name: &str) -> Option<Timestamp> {
    let spelling = fields.text(name);
    let at = spelling.as_deref().and_then(time::parse).map(time::truncate);
    let says_nothing = fields.is_null(name);
    // Ours end in Z; only those are worth writing again to compare.
    let is_ours = spelling.as_deref().is_some_and(|text| text.ends_with('Z'))
        && spelling.as_deref() == at.map(time::format).as_deref();
    if says_nothing || is_ours {
        fields.take(name);
    }
    at
}

/// An edge, or nothing when it names no target, or a type that is no text.
fn edge(dependency: &RawValue, source: &str) -> Option<Edge> {
    let mut fields = RawFields::parse(dependency.get()).ok()?;
    let spelling = fields.text("depends_on_id").filter(|id| !id.is_empty())?;
    let target = unwrap_target(&spelling).to_owned();
    if target == spelling {
        fields.take("depends_on_id");
    }
    if fields.text("issue_id").is_none_or(|id| id == source) {
        fields.take("issue_id");
    }
    let kind = fields.text("type").filter(|word| !word.is_empty());
    let raw_kind = fields.take("type");
    if kind.is_none() && raw_kind.is_some_and(|raw| !matches!(raw.get(), "null" | "\"\"")) {
        return None;
    }
    Some(Edge { target, kind: EdgeType::parse(kind.as_deref().unwrap_or("blocks")), extra: fields.into_fields() })
}

/// Fields of the row in the order of the beads form. `true`: a time that lives in the body.
const BODY_FIELDS: [(&str, bool); 38] = [
    ("description", false),
    ("design", false),
    ("acceptance_criteria", false),
    ("notes", false),
    ("spec_id", false),
    ("owner", false),
    ("estimated_minutes", false),
    ("created_by", false),
    ("started_at", true),
    ("close_reason", false),
    ("closed_by_session", false),
    ("merged_at", true),
    ("due_at", true),
    ("external_ref", false),
    ("source_system", false),
    ("metadata", false),
    ("compaction_level", false),
    ("compacted_at", true),
    ("compacted_at_commit", false),
    ("original_size", false),
    ("sender", false),
    ("no_history", false),
    ("wisp_type", false),
    ("is_template", false),
    ("bonded_from", false),
    ("await_type", false),
    ("await_id", false),
    ("timeout", false),
    ("waiters", false),
    ("source_formula", false),
    ("source_location", false),
    ("mol_type", false),
    ("work_type", false),
    ("event_kind", false),
    ("actor", false),
    ("target", false),
    ("payload", false),
    ("deleted_at", true),
];

/// Our own field: the rig a bead is bound to. Beads has none for it.
const RIG_FIELD: &str = "gt_rig";
const TIMES: [&str; 4] = ["created_at", "updated_at", "closed_at", "defer_until"];
const FLAGS: [&str; 2] = ["pinned", "ephemeral"];
/// Worked out for each row; what a file says under these names is not shown.
const DERIVED: [&str; 6] = ["parent", "dependency_count", "dependent_count", "comment_count", "rig", "blocked_by"];
const LISTS: [&str; 2] = ["bonded_from", "waiters"];

/// Writes the bead as a line of `issues.jsonl`: present fields only, spellings kept.
pub fn to_line(bead: &Bead) -> String {
    let mut object = Object::default();
    object.text("id", &bead.id);
    object.text("title", &bead.title);
    object.text("status", bead.status.as_str());
    object.raw("priority", &bead.priority.to_string());
    if let Some(word) = &bead.issue_type {
        object.text("issue_type", word);
    }
    if let Some(word) = &bead.assignee {
        object.text("assignee", word);
    }
    if let Some(name) = &bead.rig {
        object.text(RIG_FIELD, name);
    }
    for (name, at) in TIMES.into_iter().zip(times(bead)) {
        if let Some(spelling) = spelled(bead, name, at) {
            object.raw(name, &spelling);
        }
    }
    for (name, raw) in bead.body.iter().filter(|(name, _)| !TIMES.contains(name)) {
        object.raw(name, raw.get());
    }
    if !bead.labels.is_empty() {
        object.value("labels", &bead.labels);
    }
    if !bead.edges.is_empty() {
        object.raw("dependencies", &list(bead.edges.iter().map(|edge| edge_line(bead, edge))));
    }
    if !bead.comments.is_empty() {
        object.raw("comments", &list(bead.comments.iter().map(Fields::to_json)));
    }
    object.finish()
}

fn times(bead: &Bead) -> [Option<Timestamp>; 4] {
    [bead.created_at, bead.updated_at, bead.closed_at, bead.defer_until]
}

/// The raw JSON of a time: its original spelling while that still says the same, else ours.
fn spelled(bead: &Bead, name: &str, at: Option<Timestamp>) -> Option<String> {
    let original = bead.body.get(name);
    let read = bead.body.text(name).as_deref().and_then(time::parse).map(time::truncate);
    match original {
        Some(raw) if read == at => Some(raw.get().to_owned()),
        _ => at.map(|at| json_text(&time::format(at))),
    }
}

fn edge_line(bead: &Bead, edge: &Edge) -> String {
    let mut object = Object::default();
    if edge.extra.get("issue_id").is_none() {
        object.text("issue_id", &bead.id);
    }
    if edge.extra.get("depends_on_id").is_none() {
        object.text("depends_on_id", &edge.target);
    }
    object.text("type", edge.kind.as_str());
    edge.extra.iter().for_each(|(name, raw)| object.raw(name, raw.get()));
    object.finish()
}

/// What a row shows besides the bead itself.
#[derive(Debug, Clone, Default)]
pub struct RowExtras<'a> {
    pub rig: Option<&'a str>,
    pub blocked_by: &'a [String],
    pub n_dependents: i64,
}

/// Writes the bead as `--json` shows it: every known field, times in UTC, then unknown fields as they came.
pub fn to_row(bead: &Bead, extras: &RowExtras<'_>) -> Box<RawValue> {
    let mut object = Object::default();
    object.text("id", &bead.id);
    object.text("title", &bead.title);
    object.text("status", bead.status.as_str());
    object.raw("priority", &bead.priority.to_string());
    object.text("issue_type", bead.type_word());
    object.value("assignee", &bead.assignee);
    for (name, at) in TIMES.into_iter().zip(times(bead)) {
        object.value(name, &at.map(time::format));
    }
    object.value("pinned", &bead.is_pinned());
    object.value("ephemeral", &bead.is_wisp());
    for (name, is_time) in BODY_FIELDS {
        object.raw(name, &body_field(bead, name, is_time));
    }
    object.value("labels", &bead.labels);
    object.raw("dependencies", &list(bead.edges.iter().map(|edge| edge_row(bead, edge))));
    object.raw("comments", &list(bead.comments.iter().map(|comment| comment_row(bead, comment))));
    object.value("parent", &bead.edges.iter().find(|edge| edge.kind == EdgeType::ParentChild).map(|e| &e.target));
    object.raw("dependency_count", &bead.edges.len().to_string());
    object.raw("dependent_count", &extras.n_dependents.to_string());
    object.raw("comment_count", &bead.comments.len().to_string());
    object.value("rig", &extras.rig);
    object.value("blocked_by", extras.blocked_by);
    let is_known = |name: &str| {
        TIMES.contains(&name)
            || FLAGS.contains(&name)
            || DERIVED.contains(&name)
            || BODY_FIELDS.iter().any(|(known, _)| *known == name)
    };
    bead.body.iter().filter(|(name, _)| !is_known(name)).for_each(|(name, raw)| object.raw(name, raw.get()));
    RawValue::from_string(object.finish()).expect("an object of valid JSON values is valid JSON")
}

fn body_field(bead: &Bead, name: &str, is_time: bool) -> String {
    match bead.body.get(name) {
        None if LISTS.contains(&name) => "[]".to_owned(),
        Some(raw) if LISTS.contains(&name) && raw.get() == "null" => "[]".to_owned(),
        None => "null".to_owned(),
        Some(_) if is_time => bead.body.text(name).map_or("null".to_owned(), |text| json_text(&time::to_utc(&text))),
        Some(raw) => raw.get().to_owned(),
    }
}

fn edge_row(bead: &Bead, edge: &Edge) -> String {
    let mut object = Object::default();
    object.text("issue_id", &bead.id);
    object.text("depends_on_id", &edge.target);
    object.text("type", edge.kind.as_str());
    object.value("created_at", &edge.extra.text("created_at").map(|text| time::to_utc(&text)));
    object.value("created_by", &edge.extra.text("created_by"));
    let shown = ["issue_id", "depends_on_id", "created_at", "created_by"];
    edge.extra.iter().filter(|(name, _)| !shown.contains(name)).for_each(|(name, raw)| object.raw(name, raw.get()));
    object.finish()
}

/// A bead's comments as `--json` shows them.
pub fn comment_rows(bead: &Bead) -> Vec<Box<RawValue>> {
    let raw = |json| RawValue::from_string(json).expect("an object of valid JSON values is valid JSON");
    bead.comments.iter().map(|comment| raw(comment_row(bead, comment))).collect()
}

fn comment_row(bead: &Bead, comment: &Fields) -> String {
    let mut object = Object::default();
    let known = ["id", "issue_id", "author", "text", "created_at"];
    let raw = |name: &str| comment.get(name).map_or("null", RawValue::get);
    let id = comment.get("id").map_or("null".to_owned(), |raw| match serde_json::from_str::<String>(raw.get()) {
        Ok(_) => raw.get().to_owned(),
        Err(_) => json_text(raw.get()),
    });
    object.raw("id", &id);
    object.text("issue_id", &bead.id);
    object.raw("author", raw("author"));
    object.raw("text", raw("text"));
    object.value("created_at", &comment.text("created_at").map(|text| time::to_utc(&text)));
    comment.iter().filter(|(name, _)| !known.contains(name)).for_each(|(name, raw)| object.raw(name, raw.get()));
    object.finish()
}

fn json_text(text: &str) -> String {
    serde_json::to_string(text).expect("text always serialises")
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A JSON object written field by field, in the order given.
#[derive(Default)]
struct Object {
    json: String,
}

impl Object {
    fn raw(&mut self, name: &str, json: &str) {
        self.json.push(if self.json.is_empty() { '{' } else { ',' });
        self.json.push_str(&json_text(name));
        self.json.push(':');
        self.json.push_str(json);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.raw(name, &json_text(text));
    }

    fn value<T: serde::Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.raw(name, &serde_json::to_string(value).expect("plain values always serialise"));
    }

    fn finish(mut self) -> String {
        if self.json.is_empty() {
            self.json.push('{');
        }
        self.json.push('}');
        self.json
    }
}

#[cfg(test)]
mod tests;
