//! What a tmux client in control mode says, line by line: answers, and news that nobody asked for.
//!
//! An answer stands between `%begin` and `%end` (or `%error`) with the same numbers; what a pane shows may look like
//! either, so only the very line that was announced ends one. Pure: bytes go in, and how they are cut changes nothing.

/// What an answer may hold; the rest of it is dropped. A screen with its history stays well below.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// A line of news may be cut off here.
const LINE_BYTES_MAX: usize = 8 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// To something that we said; in the order in which we said it.
    Answer { is_ok: bool, text: Vec<u8> },
    /// A window of another session than the client's own is gone.
    WindowClosed(String),
}

#[derive(Debug, Default)]
pub(super) struct Reader {
    incoming: Vec<u8>,
    answer: Option<Answer>,
}

#[derive(Debug)]
struct Answer {
    /// Time, number and flags, as they stand in its first and last line.
    numbers: Vec<u8>,
    text: Vec<u8>,
}

impl Reader {
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Said> {
        let mut said = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.incoming.extend_from_slice(&rest[..end]);
            let line = std::mem::take(&mut self.incoming);
            said.extend(self.line(&line));
            rest = &rest[end + 1..];
        }
        if self.incoming.len() < LINE_BYTES_MAX {
            self.incoming.extend_from_slice(rest);
        }
        said
    }

    fn line(&mut self, line: &[u8]) -> Option<Said> {
        let Some(answer) = &mut self.answer else { return self.news(line) };
        for (word, is_ok) in [(&b"%end "[..], true), (b"%error ", false)] {
            if line.strip_prefix(word) == Some(&answer.numbers) {
                let answer = self.answer.take()?;
                return answer.is_to_us().then_some(Said::Answer { is_ok, text: answer.text });
            }
        }
        if answer.text.len() + line.len() < ANSWER_BYTES_MAX {
            answer.text.extend_from_slice(line);
            answer.text.push(b'\n');
        }
        None
    }

    fn news(&mut self, line: &[u8]) -> Option<Said> {
        if let Some(numbers) = line.strip_prefix(b"%begin ") {
            self.answer = Some(Answer { numbers: numbers.to_owned(), text: Vec::new() });
        }
        let window = line.strip_prefix(b"%unlinked-window-close ")?;
        Some(Said::WindowClosed(String::from_utf8_lossy(window).into_owned()))
    }
}

impl Answer {
    /// The last number is 1 for what came over the client's own line, and 0 for what it was started with.
    fn is_to_us(&self) -> bool {
        self.numbers.ends_with(b" 1")
    }
}

#[cfg(test)]
mod tests;
