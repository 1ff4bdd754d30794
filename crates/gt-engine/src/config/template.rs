//! The fresh `town.toml`: comments only, made from the table of keys.
//!
//! Lines that begin with `# key =` show a default and work once the `# ` is gone;
//! lines indented further are examples. Writing the file is the caller's business.

use std::fmt::Write as _;

use super::keys::Key;
use super::table::KEYS;
use super::value::Kind;

/// Column at which the meanings begin, so that they can be read downwards.
const HELP_COLUMN: usize = 50;

const HEAD: &str = r"# town.toml: the settings of this town.
#
# Each line below is a comment that shows a key with its default and its meaning.
# To change one, remove the `# ` before it and edit the value, or let gt do it:
#
#   gt config set scheduler.max_polecats 3
#   gt config get scheduler.max_polecats
#   gt config unset scheduler.max_polecats
#   gt config list
#
# A running daemon takes changes at once. Lines indented further are examples.
# NAME stands for a name of your own. Tables such as [scheduler] can be added at the end.
";

const AGENT: &str = r#"
# An agent of your own, beside claude, codex, gemini, opencode and shell:
#
#   [agents.scripted]
#   command  = ["bash", "agent.sh"]   # started in the worktree with the GT_* environment
#   prompt   = "arg"                  # how the assignment reaches it: arg | stdin | none
#   headless = ["bash", "turn.sh"]    # one chat turn: prompt on stdin, reply on stdout
#   env      = { KEY = "value" }
"#;

/// Writes the file a new town starts with.
pub fn template() -> String {
    let mut text = HEAD.to_owned();
    let mut group = None;
    for key in KEYS {
        let name = key.path.split_once('.').map(|(group, _)| group);
        if group != Some(name) {
            text.push('\n');
            group = Some(name);
        }
        push_key(&mut text, key);
    }
    text.push_str(AGENT);
    text
}

fn push_key(text: &mut String, key: &Key) {
    let lead = match key.default_text() {
        Some(_) => "#",
        None => "#  ",
    };
    let choices = match key.kind {
        Kind::Choice(names) => format!(" ({})", names.join(" | ")),
        _ => String::new(),
    };
    let line = format!("{lead} {} = {}", key.path, key.sample().to_toml());
    writeln!(text, "{line:HELP_COLUMN$}# {}{choices}", key.help).expect("writing to a string cannot fail");
}
