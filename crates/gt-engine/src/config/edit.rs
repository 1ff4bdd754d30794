//! Changing one key of a config text and nothing else in it.
//!
//! Edits are cuts and insertions in the text at the places the parser reports, not a
//! printed-again document: whatever is not the key's own line stays byte for byte, in
//! the user's style of tables. Where in the text that is, is the business of `place`.
//! Reading a whole config is not done here.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::{Array, Document, Item, Table, Value as Toml};

use super::error::ConfigError;
use super::keys::{self, Key, Match, join};
use super::place::{self, Node, Place, Site};
use super::secret::Secret;
use super::value::{Kind, Value};

const BOM: &str = "\u{feff}";

/// Sets a key to a value as typed on a command line, keeping every comment.
pub fn set(text: &str, key: &str, raw: &str) -> Result<String, ConfigError> {
    let path = keys::split(key)?;
    let key = keys::require(&path)?;
    let value = key.kind.read_text(raw);
    let value = value.ok_or_else(|| key.refuse(&path, raw, None))?;
    let (bom, body) = split_bom(text)?;
    // Said already, perhaps in other words (`0x3`, `'fifo'`): the user's stay.
    if reads(body, &path, key).as_ref() == Some(&value) {
        return Ok(text.to_owned());
    }
    let edited = match &value {
        Value::Table(entries) => put_table(body, &path, entries, &value)?,
        _ => put(body, &path, &value.to_toml())?,
    };
    // Whatever the user's layout, the text must now say what was asked.
    if reads(&edited, &path, key).as_ref() != Some(&value) {
        return Err(ConfigError::Layout { key: join(&path) });
    }
    Ok(format!("{bom}{edited}"))
}

/// Removes a key with the comment on its line; `None` when it was not set.
///
/// A key that is not known can be removed too: it is what a broken file needs.
pub fn unset(text: &str, key: &str) -> Result<Option<String>, ConfigError> {
    let path = keys::split(key)?;
    let (bom, body) = split_bom(text)?;
    let document = parse(body)?;
    let Place::Present { item, .. } = place::find(document.as_table(), &path) else {
        keys::require(&path)?;
        return Ok(None);
    };
    let edited = match (keys::find(&path), place::span(item), item.as_table_like()) {
        (Match::Group, _, Some(_)) => return Err(keys::is_group(&path)),
        (_, Some(_), _) => cut(body, &path)?,
        (Match::Key(key), None, Some(table)) if key.kind == Kind::TextTable => {
            let names = table.iter().map(|(name, _)| name.to_owned());
            cut_table(body, &path, &names.collect::<Vec<_>>())?
        }
        _ => return Err(ConfigError::Layout { key: join(&path) }),
    };
    Ok(Some(format!("{bom}{edited}")))
}

/// Removes several keys; `None` when none was set.
pub fn unset_all(text: &str, keys: &[String]) -> Result<Option<String>, ConfigError> {
    let mut edited = None;
    for key in keys {
        edited = unset(edited.as_deref().unwrap_or(text), key)?.or(edited);
    }
    Ok(edited)
}

fn split_bom(text: &str) -> Result<(&str, &str), ConfigError> {
    match text.strip_prefix(BOM) {
        // The parser would take the second mark for the first, and hide the error.
        Some(body) if body.starts_with(BOM) => parse(text).map(|_| (BOM, body)),
        Some(body) => Ok((BOM, body)),
        None => Ok(("", text)),
    }
}

fn parse(text: &str) -> Result<Document<&str>, ConfigError> {
    Document::parse(text).map_err(|error| ConfigError::syntax(text, &error))
}

fn reads(text: &str, path: &[String], key: &Key) -> Option<Value> {
    let document = Document::parse(text).ok()?;
    match place::find(document.as_table(), path) {
        Place::Present { item, .. } => key.kind.read_item(item, text),
        Place::Absent { .. } | Place::Blocked { .. } => None,
    }
}

/// Writes one value, in place of the old one or as a new line.
fn put(text: &str, path: &[String], value: &Toml) -> Result<String, ConfigError> {
    let document = parse(text)?;
    let layout = || ConfigError::Layout { key: join(path) };
    match place::find(document.as_table(), path) {
        Place::Present { item, .. } => {
            let span = place::span(item).ok_or_else(layout)?;
            let new = merged(&text[span.clone()], value);
            Ok(splice(text, span, &new))
        }
        Place::Absent { node, depth, home } => {
            let site = Site { text, path, node, depth, home };
            let (at, new) = site.insertion(&value.to_string());
            Ok(splice(text, at, &new))
        }
        Place::Blocked { depth } => Err(ConfigError::NotATable { key: join(&path[..depth]), line: None }),
    }
}

/// Writes a table of texts, entry by entry where the user gave it lines of its own.
fn put_table(
    text: &str,
    path: &[String],
    entries: &BTreeMap<String, Secret>,
    whole: &Value,
) -> Result<String, ConfigError> {
    let document = parse(text)?;
    let names = match place::find(document.as_table(), path) {
        Place::Present { item, .. } => own_lines(text, item),
        Place::Absent { .. } | Place::Blocked { .. } => None,
    };
    let Some(names) = names else {
        return put(text, path, &whole.to_toml());
    };
    let gone = names.into_iter().filter(|name| !entries.contains_key(name));
    let gone = gone.collect::<Vec<_>>();
    let mut edited = text.to_owned();
    // New entries first: a table that loses all its lines would lose its header too.
    for (name, value) in entries {
        edited = put(&edited, &child(path, name), &Toml::from(value.reveal()))?;
    }
    if entries.is_empty() {
        edited = cut_table(&edited, path, &gone)?;
        return put(&edited, path, &whole.to_toml());
    }
    gone.iter().try_fold(edited, |edited, name| cut(&edited, &child(path, name)))
}

/// Lists the entries of a table that is more than one value on a line.
fn own_lines(text: &str, item: &Item) -> Option<Vec<String>> {
    let inline = place::span(item);
    let is_plain = inline.is_some_and(|span| !text[span].contains('#'));
    let table = item.as_table_like().filter(|_| !is_plain)?;
    Some(table.iter().map(|(name, _)| name.to_owned()).collect())
}

fn child(path: &[String], name: &str) -> Vec<String> {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// Removes a table of texts that has lines of its own.
fn cut_table(text: &str, path: &[String], names: &[String]) -> Result<String, ConfigError> {
    let edited = names.iter().try_fold(text.to_owned(), |text, name| cut(&text, &child(path, name)))?;
    cut_empty_headers(edited, path)
}

/// Removes one value, and the table around it if that is then empty.
fn cut(text: &str, path: &[String]) -> Result<String, ConfigError> {
    let document = parse(text)?;
    let layout = || ConfigError::Layout { key: join(path) };
    let Place::Present { item, key, home } = place::find(document.as_table(), path) else {
        return Err(layout());
    };
    let value = place::span(item).ok_or_else(layout)?;
    if let Node::Inline(table) = home.node {
        let braces = table.span().ok_or_else(layout)?;
        let before = home.node.values_end_before(value.start).unwrap_or(braces.start + 1);
        let edited = without_entry(text, before, &value);
        let removed = text.len() - edited.len();
        let inside = &edited[braces.start + 1..braces.end - 1 - removed];
        if inside.trim().is_empty() {
            return cut(&edited, &path[..home.depth]);
        }
        return Ok(edited);
    }
    let start = key.span().ok_or_else(layout)?.start;
    let line = place::line_start(text, start)..place::line_end(text, value.end);
    cut_empty_headers(splice(text, with_gap(text, line), ""), &path[..path.len() - 1])
}

/// Removes the headers of tables on the path that have nothing left, innermost first.
fn cut_empty_headers(text: String, path: &[String]) -> Result<String, ConfigError> {
    let mut text = text;
    for depth in (1..=path.len()).rev() {
        let document = parse(&text)?;
        let header = match place::find(document.as_table(), &path[..depth]) {
            Place::Present { item: Item::Table(table), .. } => empty_header(table),
            Place::Absent { .. } => continue,
            _ => return Ok(text),
        };
        match header {
            Some(span) => text = without_header(&text, &span),
            None => return Ok(text),
        }
    }
    Ok(text)
}

fn empty_header(table: &Table) -> Option<Range<usize>> {
    let has_header = !table.is_implicit() && !table.is_dotted();
    (table.is_empty() && has_header).then(|| table.span())?
}

fn without_header(text: &str, span: &Range<usize>) -> String {
    let line = place::line_start(text, span.start)..place::line_end(text, span.end);
    // The comment on the header's line is not the removed key's: it stays as a line.
    let comment = text[span.end..line.end].trim_start();
    if comment.is_empty() {
        return splice(text, with_gap(text, line), "");
    }
    splice(text, line, comment)
}

/// Widens a line to be cut by one of the two blank lines that would meet in its place.
fn with_gap(text: &str, line: Range<usize>) -> Range<usize> {
    let (above, below) = (&text[..line.start], &text[line.end..]);
    let ends_blank = above.ends_with("\n\n") || above.ends_with("\n\r\n");
    let begins_blank = below.starts_with('\n') || below.starts_with("\r\n");
    if ends_blank && (begins_blank || below.is_empty()) {
        return place::line_start(text, line.start - 1)..line.end;
    }
    if above.is_empty() && begins_blank {
        return line.start..place::line_end(text, line.end);
    }
    line
}

/// Removes an entry in braces and one comma; `before` is where the entry ahead ends.
fn without_entry(text: &str, before: usize, value: &Range<usize>) -> String {
    let comma_at = |at: usize| text[at..].starts_with(',').then_some(at..at + 1);
    let ahead = comma_at(skip_space(text, before));
    let start = skip_space(text, ahead.clone().map_or(before, |comma| comma.end));
    // Only spaces: a newline may be what ends the comment of the entry ahead.
    let start = text[..start].trim_end_matches([' ', '\t']).len();
    match (comma_at(skip_space(text, value.end)), ahead) {
        (Some(comma), _) => splice(&splice(text, comma, ""), start..value.end, ""),
        (None, Some(comma)) => splice(&splice(text, start..value.end, ""), comma, ""),
        (None, None) => splice(text, start..value.end, ""),
    }
}

/// Steps over white space and comments.
fn skip_space(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        at = text.len() - text[at..].trim_start().len();
        if !text[at..].starts_with('#') {
            return at;
        }
        at = place::line_end(text, at);
    }
}

/// Renders a new value; a list with comments inside is changed element by element.
fn merged(old: &str, new: &Toml) -> String {
    let commented = old.contains('#').then(|| old.parse::<Toml>().ok()).flatten();
    let Some((Toml::Array(mut kept), Toml::Array(new))) = commented.zip(Some(new.clone())) else {
        return new.to_string();
    };
    for (at, value) in new.iter().enumerate() {
        match kept.get_mut(at) {
            Some(old) => {
                let decor = old.decor().clone();
                *old = value.clone();
                *old.decor_mut() = decor;
            }
            None => append(&mut kept, value.clone()),
        }
    }
    while kept.len() > new.len() {
        drop_last(&mut kept);
    }
    kept.to_string()
}

fn append(array: &mut Array, mut value: Toml) {
    // What follows the last comma is a comment on the element before: it comes first.
    let trailing = raw(Some(array.trailing()));
    let lead = if trailing.contains('#') {
        array.set_trailing("\n");
        format!("{}\n  ", trailing.trim_end())
    } else {
        " ".to_owned()
    };
    value.decor_mut().set_prefix(lead);
    array.push_formatted(value);
}

fn drop_last(array: &mut Array) {
    let gone = array.remove(array.len() - 1);
    let decor = gone.decor();
    let comments = [raw(decor.prefix()), raw(decor.suffix())].concat();
    if comments.contains('#') {
        let trailing = raw(Some(array.trailing()));
        array.set_trailing(format!("{}\n{}\n", comments.trim_end(), trailing.trim_end()));
    }
}

fn raw(text: Option<&toml_edit::RawString>) -> String {
    text.and_then(toml_edit::RawString::as_str).unwrap_or_default().to_owned()
}

fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    [&text[..range.start], new, &text[range.end..]].concat()
}
