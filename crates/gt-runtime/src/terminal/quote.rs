//! Saying any text to tmux's own command parser, so that it comes out as it went in.

use std::fmt::Write as _;

/// A text as one word of a line for tmux. Whatever could mean something to its parser is said by number; inside double
/// quotes that holds for every byte but the zero, which no program can be given anyway.
pub fn quoted(text: &str) -> String {
    let mut word = String::with_capacity(text.len() + 2);
    word.push('"');
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b" _-./:,=@+".contains(&byte) {
            word.push(char::from(byte));
        } else {
            write!(word, "\\{byte:03o}").expect("writing to a string cannot fail");
        }
    }
    word.push('"');
    word
}
