//! Whether a `HEARTBEAT.md` holds anything to do. What is not known to be nothing is something.

/// Where a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<'a> {
    Text,
    Comment,
    /// Behind the marker that opened the block.
    Fence(&'a str),
}

/// Whether a `HEARTBEAT.md` holds nothing to do: only blank lines, headings, items without text, and comments.
pub fn is_empty(file: &str) -> bool {
    let mut place = Place::Text;
    // A lone carriage return ends a line in Markdown too.
    file.trim_start_matches('\u{feff}').split(['\n', '\r']).all(|line| {
        let (is_nothing, next) = look(line.trim(), place);
        place = next;
        is_nothing
    })
}

/// Whether a line says nothing, and where the next one stands.
fn look<'a>(line: &'a str, place: Place<'a>) -> (bool, Place<'a>) {
    match place {
        Place::Fence(marker) if closes(line, marker) => (true, Place::Text),
        // What a comment opens in here is not closed out there.
        Place::Fence(_) => (is_nothing(line) || is_remark(line) || opened_fence(line) == Some(line), place),
        Place::Text if let Some(marker) = opened_fence(line) => (true, Place::Fence(marker)),
        Place::Text | Place::Comment => {
            let (visible, is_open) = without_comments(line, place == Place::Comment);
            (is_nothing(visible.trim()), if is_open { Place::Comment } else { Place::Text })
        }
    }
}

/// A blank line, a heading or an item without text.
fn is_nothing(line: &str) -> bool {
    line.is_empty() || is_heading(line) || is_empty_item(line)
}

/// `#` and a space or nothing; `#TODO` is no heading.
fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches('#');
    text.len() < line.len() && is_blank_or_apart(text)
}

/// `-`, `*`, `+`, `- [ ]`, `- [x]`.
fn is_empty_item(line: &str) -> bool {
    line.strip_prefix(['-', '*', '+']).is_some_and(|text| matches!(text.trim(), "" | "[]" | "[ ]" | "[x]" | "[X]"))
}

/// A comment of one line in what may be a script or a page.
fn is_remark(line: &str) -> bool {
    let is_page = line.starts_with("<!--") && without_comments(line, false) == (String::new(), false);
    is_page || line.strip_prefix("//").is_some_and(is_blank_or_apart)
}

fn is_blank_or_apart(text: &str) -> bool {
    text.is_empty() || text.starts_with(char::is_whitespace)
}

/// The marker of the block that a line opens. What follows it names the language, and has no backtick.
fn opened_fence(line: &str) -> Option<&str> {
    let language = line.trim_start_matches(['`', '~']);
    let marker = &line[..line.len() - language.len()];
    let is_fence = is_run(marker, '~') || is_run(marker, '`') && !language.contains('`');
    is_fence.then_some(marker)
}

/// At least three of one character.
fn is_run(text: &str, of: char) -> bool {
    text.len() >= 3 && text.chars().all(|c| c == of)
}

/// At least as many of the same.
fn closes(line: &str, marker: &str) -> bool {
    line.len() >= marker.len() && line.chars().all(|c| marker.starts_with(c))
}

/// A line without what is commented out in it, and whether a comment goes on behind it.
fn without_comments(line: &str, mut is_open: bool) -> (String, bool) {
    let (mut visible, mut left) = (String::new(), line);
    loop {
        let (before, after) = left.split_once(if is_open { "-->" } else { "<!--" }).unwrap_or((left, ""));
        if !is_open {
            visible.push_str(before);
        }
        if before.len() == left.len() {
            return (visible, is_open);
        }
        // The dashes that open a comment may close it at once: `<!-->`.
        left = if is_open { after } else { &left[before.len() + "<!".len()..] };
        is_open = !is_open;
    }
}
