//! What an answer to a heartbeat comes to: `HEARTBEAT_OK`, plain or dressed up, is looked for at both ends.
//!
//! Whatever is delivered is what the agent wrote, in its order and with its line breaks: only tokens at the ends, with
//! what was wrapped around them alone, are taken away.

use super::is_apart;

const TOKEN: &str = "HEARTBEAT_OK";

/// No more than this many characters of punctuation may follow a token at the end, or surround one on each side.
const PUNCTUATION_MAX: usize = 4;

/// What emphasises or quotes in Markdown.
const MARKS: [char; 4] = ['*', '_', '~', '`'];

/// What ends a sentence or a part of one.
const STOPS: [char; 7] = ['.', ',', ':', ';', '!', '?', '…'];

/// What an answer to a heartbeat comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is nothing to deliver.
    AllWell,
    /// This is to be delivered.
    Alert(String),
}

/// Judges an answer: all well, if it is a token with at most so many characters beside it, or says nothing at all.
pub fn judge(reply: &str, ack_max_chars: usize) -> Verdict {
    let mut rest = Rest { before: String::new(), said: reply.trim(), after: String::new() };
    let mut is_acknowledged = false;
    while rest.drop_first_token() {
        is_acknowledged = true;
    }
    while rest.drop_last_token() {
        is_acknowledged = true;
    }
    let is_short = is_acknowledged && rest.said.chars().nth(ack_max_chars).is_none();
    if is_short || is_dress(rest.said) { Verdict::AllWell } else { Verdict::Alert(rest.text()) }
}

/// What is left of an answer.
struct Rest<'a> {
    /// Dress in front of a dropped token that was not for it alone, as in `**HEARTBEAT_OK but look at this**`.
    before: String,
    said: &'a str,
    /// The same behind one, with the punctuation that followed it.
    after: String,
}

impl Rest<'_> {
    /// Drops a token that nothing but dress precedes, or that stands alone but for a little punctuation.
    fn drop_first_token(&mut self) -> bool {
        let said = self.said;
        let Some(at) = said.match_indices(TOKEN).map(|(at, _)| at).find(|at| is_token(said, *at)) else { return false };
        let (before, _, after) = around(said, at);
        if is_almost_dress(before, PUNCTUATION_MAX) && is_almost_dress(after, PUNCTUATION_MAX) {
            self.said = "";
            return true;
        }
        if !is_dress(before) {
            return false;
        }
        self.before.push_str(before);
        self.said = after.trim_start_matches(STOPS).trim_start();
        true
    }

    /// Drops a token that little but dress follows.
    fn drop_last_token(&mut self) -> bool {
        let said = self.said;
        let Some(at) = said.rmatch_indices(TOKEN).map(|(at, _)| at).find(|at| is_token(said, *at)) else {
            return false;
        };
        let (before, stops, after) = around(said, at);
        let n_more = PUNCTUATION_MAX.checked_sub(stops.chars().count());
        if !n_more.is_some_and(|n_more| is_almost_dress(after, n_more)) {
            return false;
        }
        self.said = before.trim_end();
        self.after = format!("{stops}{}{}", after.trim_end(), self.after);
        true
    }

    fn text(&self) -> String {
        let Rest { before, said, after } = self;
        // "All clear. HEARTBEAT_OK." has one full stop too many.
        let after = if said.ends_with(STOPS) { after.trim_start_matches(STOPS) } else { after };
        format!("{before}{said}{after}").trim().to_owned()
    }
}

/// Whether the letters of the token at this place are a word of their own. Underscores emphasise, or join words.
fn is_token(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + TOKEN.len()..]);
    is_apart(before.trim_end_matches('_'), after.trim_start_matches('_'))
}

/// What stands before a token, the stops that touch it, and what stands after it, without the dress that is its own.
fn around(text: &str, at: usize) -> (&str, &str, &str) {
    let after = &text[at + TOKEN.len()..];
    let n_stops = after.len() - after.trim_start_matches(STOPS).len();
    let (stops, after) = after.split_at(n_stops);
    let mut both = (&text[..at], after);
    while let Some(undressed) = without_pair(both.0, both.1) {
        both = undressed;
    }
    (both.0, stops, both.1)
}

/// Both sides without the innermost pair of marks or tags, if there is one around what is between them.
fn without_pair<'a>(before: &'a str, after: &'a str) -> Option<(&'a str, &'a str)> {
    let (before, after) = (before.trim_end(), after.trim_start());
    if let Some(mark) = before.chars().next_back().filter(|mark| MARKS.contains(mark)) {
        return Some((before.strip_suffix(mark)?, after.strip_prefix(mark)?));
    }
    let (outside, name) = before.strip_suffix('>')?.rsplit_once('<')?;
    let n_closing = tag_bytes(after)?;
    let is_pair = tag_name(name) && after[..n_closing].strip_prefix("</")?.strip_suffix('>')?.trim_end() == name;
    is_pair.then_some((outside, &after[n_closing..]))
}

/// Whether a text is only dress: it says nothing, but shows something else in another way.
fn is_dress(text: &str) -> bool {
    is_almost_dress(text, 0)
}

/// Whether a text is only dress but for so many characters that are no letters or digits.
fn is_almost_dress(mut text: &str, mut n_others: usize) -> bool {
    while let Some(first) = text.chars().next() {
        if let Some(n_bytes) = dress_bytes(text) {
            text = &text[n_bytes..];
        } else if n_others > 0 && !first.is_alphanumeric() {
            text = &text[first.len_utf8()..];
            n_others -= 1;
        } else {
            return false;
        }
    }
    true
}

/// The length of the dress with which a text begins.
fn dress_bytes(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first.is_whitespace() || MARKS.contains(&first) {
        return Some(first.len_utf8());
    }
    text.starts_with("&nbsp;").then_some("&nbsp;".len()).or_else(|| tag_bytes(text))
}

/// The length of the tag with which a text begins: `<b>`, `</b>`, `<br/>`. One with attributes may show something.
fn tag_bytes(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('<')?;
    let end = inside.find(['<', '>']).filter(|end| inside[*end..].starts_with('>'))?;
    let inside = &inside[..end];
    let name = inside.strip_prefix('/').or_else(|| inside.strip_suffix('/')).unwrap_or(inside);
    tag_name(name.trim_end()).then_some(end + 2)
}

fn tag_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
}
