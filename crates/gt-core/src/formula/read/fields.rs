//! The values of one table, by key and type, and the findings of one file.

use std::ops::Range;
use std::sync::Arc;

use toml_edit::{Item, TableLike};

use super::super::{At, FINDINGS_MAX, Finding, Level, Named, shown};
use crate::text;

/// What was found in one file, and where its lines begin.
pub(super) struct Notes<'t> {
    file: Arc<str>,
    text: &'t str,
    /// Where each line ends.
    line_ends: Vec<usize>,
    findings: Vec<Finding>,
    n_left_out: usize,
    /// Other formulas that steps name.
    pub(super) mentions: Vec<Named>,
}

impl<'t> Notes<'t> {
    pub(super) fn new(file: Arc<str>, text: &'t str) -> Notes<'t> {
        let line_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        Notes { file, text, line_ends, findings: Vec::new(), n_left_out: 0, mentions: Vec::new() }
    }

    pub(super) fn at(&self, span: Option<Range<usize>>) -> At {
        let start = span.map(|span| span.start).filter(|start| *start <= self.text.len());
        let line = start.map(|start| self.line_ends.partition_point(|end| *end < start) + 1);
        At { file: Arc::clone(&self.file), line }
    }

    /// Where a key of a table stands.
    pub(super) fn at_key(&self, table: &dyn TableLike, key: &str) -> At {
        let span = table.get_key_value(key).and_then(|(key, item)| key.span().or_else(|| item.span()));
        self.at(span)
    }

    pub(super) fn push(&mut self, finding: Finding) {
        if self.is_full() {
            self.n_left_out += 1;
        } else {
            self.findings.push(finding);
        }
    }

    /// Whether one more would not be shown.
    fn is_full(&self) -> bool {
        self.findings.len() >= FINDINGS_MAX
    }

    pub(super) fn finish(mut self) -> Vec<Finding> {
        if self.n_left_out > 0 {
            let at = self.at(None);
            self.findings.push(at.error(format!("there are {} more findings, which are not shown", self.n_left_out)));
        }
        self.findings
    }
}

/// One table with its name, asked key by key.
pub(super) struct Fields<'d, 'n, 't> {
    table: &'d dyn TableLike,
    at: At,
    /// As messages call it.
    pub(super) what: String,
    pub(super) notes: &'n mut Notes<'t>,
}

impl<'d, 'n, 't> Fields<'d, 'n, 't> {
    pub(super) fn new(table: &'d dyn TableLike, at: At, what: String, notes: &'n mut Notes<'t>) -> Fields<'d, 'n, 't> {
        Fields { table, at, what, notes }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Where a key stands; a missing one stands where its table does.
    pub(super) fn at(&self, key: &str) -> At {
        if self.has(key) { self.notes.at_key(self.table, key) } else { self.at.clone() }
    }

    pub(super) fn error(&mut self, key: &str, message: impl Into<String>, hint: Option<String>) {
        let finding = self.at(key).error(message);
        self.notes.push(Finding { hint, ..finding });
    }

    pub(super) fn warn(&mut self, key: &str, message: String) {
        let finding = self.at(key).finding(Level::Warning, message);
        self.notes.push(finding);
    }

    pub(super) fn unsupported(&mut self, key: &str, message: String) {
        let finding = self.at(key).finding(Level::Unsupported, message);
        self.notes.push(finding);
    }

    fn wrong(&mut self, key: &str, wanted: &str) {
        let message = format!("`{key}` of {} must be {wanted}", self.what);
        self.error(key, message, None);
    }

    /// A text without control characters.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let item = self.table.get(key)?;
        let Some(text) = item.as_str() else {
            self.wrong(key, "a text in quotes");
            return None;
        };
        self.checked(key, text)
    }

    fn checked(&mut self, key: &str, text: &str) -> Option<String> {
        match text::check_body("text", text) {
            Ok(()) => Some(text.to_owned()),
            Err(bad) => {
                let message = format!("`{key}` of {} cannot be taken: {bad}", self.what);
                self.error(key, message, None);
                None
            }
        }
    }

    /// A text with its place; nothing is said where it is none.
    pub(super) fn named(&mut self, key: &str) -> Option<Named> {
        let name = self.table.get(key)?.as_str()?.to_owned();
        Some(Named { name, at: self.at(key) })
    }

    /// A list of texts, or nothing.
    pub(super) fn texts(&mut self, key: &str) -> Vec<Named> {
        let Some(item) = self.table.get(key) else { return Vec::new() };
        let Some(list) = item.as_array() else {
            self.wrong(key, "a list of texts");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for value in list {
            let at = self.notes.at(value.span());
            match value.as_str() {
                Some(text) => texts.extend(self.checked(key, text).map(|name| Named { name, at })),
                None => self.wrong(key, "a list of texts"),
            }
        }
        texts
    }

    pub(super) fn text_or_texts(&mut self, key: &str) -> Vec<String> {
        match self.table.get(key) {
            Some(item) if item.is_str() => self.text(key).into_iter().collect(),
            _ => self.texts(key).into_iter().map(|one| one.name).collect(),
        }
    }

    pub(super) fn integer(&mut self, key: &str) -> Option<i64> {
        let item = self.table.get(key)?;
        let number = item.as_integer();
        if number.is_none() {
            self.wrong(key, "a whole number");
        }
        number
    }

    pub(super) fn flag(&mut self, key: &str) -> bool {
        let Some(item) = self.table.get(key) else { return false };
        let flag = item.as_bool();
        if flag.is_none() {
            self.wrong(key, "true or false");
        }
        flag.unwrap_or_default()
    }

    /// A text, or a number or truth value as a text.
    pub(super) fn scalar(&mut self, key: &str) -> Option<String> {
        let item = self.table.get(key)?;
        let Some(text) = scalar(item) else {
            self.wrong(key, "a text");
            return None;
        };
        self.checked(key, &text)
    }

    pub(super) fn table(&mut self, key: &str) -> Option<(&'d dyn TableLike, At)> {
        let item = self.table.get(key)?;
        let Some(table) = item.as_table_like() else {
            self.wrong(key, "a table");
            return None;
        };
        Some((table, self.at(key)))
    }

    /// Tables under one key: `[[key]]`, or a list of tables in braces.
    pub(super) fn tables(&mut self, key: &str) -> Vec<(&'d dyn TableLike, At)> {
        let Some(item) = self.table.get(key) else { return Vec::new() };
        let mut tables: Vec<(&dyn TableLike, At)> = Vec::new();
        match (item.as_array_of_tables(), item.as_array()) {
            (Some(list), _) => {
                tables.extend(list.iter().map(|table| (table as &dyn TableLike, self.notes.at(table.span()))));
            }
            (None, Some(list)) => {
                for value in list {
                    match value.as_inline_table() {
                        Some(table) => tables.push((table, self.notes.at(value.span()))),
                        None => self.wrong(key, "a list of tables"),
                    }
                }
            }
            (None, None) => self.wrong(key, "a list of tables"),
        }
        tables
    }

    /// Tells of keys that mean nothing here.
    pub(super) fn only(&mut self, known: &[&str]) {
        for (key, _) in self.table.iter().filter(|(key, _)| !known.contains(key)) {
            let message = format!("`{}` means nothing in {}, and is left out", shown(key), self.what);
            let finding = self.notes.at_key(self.table, key).finding(Level::Warning, message);
            let near = if self.notes.is_full() { &[] } else { known };
            self.notes.push(finding.near(key, near.iter().copied()));
        }
    }
}

/// A text, or a number or truth value as a text.
pub(super) fn scalar(item: &Item) -> Option<String> {
    let text = item.as_str().map(str::to_owned);
    let number = || item.as_integer().map(|number| number.to_string());
    let flag = || item.as_bool().map(|flag| flag.to_string());
    let float = || item.as_float().map(|float| float.to_string());
    text.or_else(number).or_else(flag).or_else(float)
}
