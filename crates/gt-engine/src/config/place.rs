//! Where a key is in a config text, or where it would go.
//!
//! Owns the rules for a new key's place and shape: beside its siblings in their style,
//! else in a new table at the end, below every comment. It only computes; `edit` cuts.

use std::ops::Range;

use toml_edit::{InlineTable, Item, Key, Table, TableLike, Value as Toml};

use super::keys::join;

/// A table in either of its forms.
#[derive(Clone, Copy)]
pub(super) enum Node<'d> {
    Table(&'d Table),
    Inline(&'d InlineTable),
}

/// What a document has at a path.
pub(super) enum Place<'d> {
    Present {
        item: &'d Item,
        key: &'d Key,
        home: Home<'d>,
    },
    Absent {
        node: Node<'d>,
        depth: usize,
        home: Home<'d>,
    },
    /// Something that is no table stands in the way, `depth` names down the path.
    Blocked {
        depth: usize,
    },
}

/// The nearest table around a place that has a header or braces, not dotted keys.
#[derive(Clone, Copy)]
pub(super) struct Home<'d> {
    pub(super) node: Node<'d>,
    pub(super) depth: usize,
}

/// A place for a new key: `node` is the deepest table there is on its path.
pub(super) struct Site<'d> {
    pub(super) text: &'d str,
    pub(super) path: &'d [String],
    pub(super) node: Node<'d>,
    pub(super) depth: usize,
    pub(super) home: Home<'d>,
}

pub(super) fn find<'d>(root: &'d Table, path: &[String]) -> Place<'d> {
    let mut node = Node::Table(root);
    let mut home = Home { node, depth: 0 };
    for (depth, name) in path.iter().enumerate() {
        let Some((key, item)) = node.as_table_like().get_key_value(name) else {
            return Place::Absent { node, depth, home };
        };
        if depth + 1 == path.len() {
            return Place::Present { item, key, home };
        }
        node = match item {
            Item::Table(table) => Node::Table(table),
            Item::Value(Toml::InlineTable(table)) => Node::Inline(table),
            _ => return Place::Blocked { depth: depth + 1 },
        };
        if !node.as_table_like().is_dotted() {
            home = Home { node, depth: depth + 1 };
        }
    }
    Place::Blocked { depth: 0 }
}

/// Finds a value that is written in one piece, as a table of dotted keys is not.
pub(super) fn span(item: &Item) -> Option<Range<usize>> {
    let dotted = item.as_inline_table().is_some_and(InlineTable::is_dotted);
    item.as_value().filter(|_| !dotted)?.span()
}

pub(super) fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Finds the start of the next line, or the end of the text.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    text[offset..].find('\n').map_or(text.len(), |newline| offset + newline + 1)
}

impl<'d> Node<'d> {
    fn as_table_like(self) -> &'d dyn TableLike {
        match self {
            Self::Table(table) => table,
            Self::Inline(table) => table,
        }
    }

    /// Finds the end of the last value written in this table itself.
    fn values_end(self) -> Option<usize> {
        self.values_end_before(usize::MAX)
    }

    pub(super) fn values_end_before(self, limit: usize) -> Option<usize> {
        let values = match self {
            Self::Table(table) => table.get_values(),
            Self::Inline(table) => table.get_values(),
        };
        let ends = values.iter().filter_map(|(_, value)| Some(value.span()?.end));
        ends.filter(|end| *end <= limit).max()
    }
}

impl Site<'_> {
    /// Computes what to write for the key and which part of the text it replaces.
    pub(super) fn insertion(&self, value: &str) -> (Range<usize>, String) {
        let entry = format!("{} = {value}", join(&self.path[self.home.depth..]));
        let home = match self.home.node {
            Node::Inline(table) => return self.in_braces(table, &entry),
            Node::Table(table) => table,
        };
        let is_leaf = self.depth + 1 == self.path.len();
        let is_dotted = self.node.as_table_like().is_dotted();
        let is_root = self.home.depth == 0;
        let is_written = is_root || !home.is_implicit();
        match (self.node.values_end(), home.span()) {
            (Some(end), _) if is_dotted || (is_leaf && is_written) => self.below(end, &entry),
            (None, _) if is_leaf && is_root => self.above_tables(&entry),
            (None, Some(header)) if is_leaf && is_written => self.below(header.end, &entry),
            _ => self.new_table(value),
        }
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// Writes a line below the one that has `end`, indented alike.
    fn below(&self, end: usize, entry: &str) -> (Range<usize>, String) {
        let at = line_end(self.text, end);
        let line = &self.text[line_start(self.text, end)..end];
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let newline = self.newline();
        let lead = if self.text[..at].ends_with('\n') { "" } else { newline };
        (at..at, format!("{lead}{indent}{entry}{newline}"))
    }

    /// Writes the first line outside of tables: below the file's comments, above the
    /// first table and the comment that belongs to it.
    fn above_tables(&self, entry: &str) -> (Range<usize>, String) {
        let mut at = 0;
        let mut block = 0;
        let newline = self.newline();
        for line in self.text.split_inclusive('\n') {
            if line.trim_start().starts_with('[') {
                let at = if block > 0 { block } else { at };
                return (at..at, format!("{entry}{newline}{newline}"));
            }
            at += line.len();
            if line.trim().is_empty() {
                block = at;
            }
        }
        let gap = self.gap();
        (at..at, format!("{gap}{entry}{newline}"))
    }

    fn new_table(&self, value: &str) -> (Range<usize>, String) {
        let (leaf, table) = self.path.split_last().expect("a key has at least one name");
        let (at, gap, newline) = (self.text.len(), self.gap(), self.newline());
        let leaf = join(std::slice::from_ref(leaf));
        let header = join(table);
        let lines = format!("{gap}[{header}]{newline}{leaf} = {value}{newline}");
        (at..at, lines)
    }

    /// Gives what is missing between the end of the text and a blank line.
    fn gap(&self) -> String {
        let newline = self.newline();
        let ends_blank = self.text.ends_with("\n\n") || self.text.ends_with("\n\r\n");
        if self.text.is_empty() || ends_blank {
            String::new()
        } else if self.text.ends_with('\n') {
            newline.to_owned()
        } else {
            newline.repeat(2)
        }
    }

    fn in_braces(&self, table: &InlineTable, entry: &str) -> (Range<usize>, String) {
        if let Some(end) = self.home.node.values_end() {
            return (end..end, format!(", {entry}"));
        }
        let span = table.span().unwrap_or_default();
        let inside = span.start + 1..span.end.saturating_sub(1);
        if self.text.get(inside.clone()).is_some_and(|text| text.trim().is_empty()) {
            return (inside, format!(" {entry} "));
        }
        (inside.start..inside.start, format!(" {entry}"))
    }
}
