//! A fleet that is talked to: agents answer by `turn.sh`, and leave a line in `turns` when they begin and end.

use std::fs;
use std::ops::Deref;

use serde_json::Value;

use crate::fleet::Fleet;

/// A town whose sessions are answered.
pub(crate) struct Table {
    pub(crate) fleet: Fleet,
}

impl Deref for Table {
    type Target = Fleet;

    fn deref(&self) -> &Fleet {
        &self.fleet
    }
}

/// An agent that repeats what it was told.
pub(crate) const ECHO: &str = "printf 're %s' \"$message\"";

impl Table {
    /// Agents answer as `body` says; `$message` is what they were told. Debounce is off.
    pub(crate) fn new(body: &str) -> Table {
        let table = Table { fleet: Fleet::new("") };
        table.answers(body);
        let script = table.home("turn.sh").display().to_string();
        table.set("agents.scripted.headless", &format!("[\"bash\", \"{script}\"]"));
        table.set("sessions.debounce_ms", "0");
        table.set("server.bind", "127.0.0.1:0");
        table
    }

    /// What agents answer from now on.
    pub(crate) fn answers(&self, body: &str) {
        let text = format!(
            "message=$(cat)\nnote() {{ echo \"$1 $GT_SESSION $message\" >> \"$HOME/turns\"; }}\nnote start\n{body}\nnote end\n"
        );
        fs::write(self.home("turn.sh"), text).expect("the home can be written");
    }

    /// The lines that agents have left.
    pub(crate) fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.home("turns")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) fn await_lines(&self, what: &str, n: usize) {
        self.until_seen(&format!("{n} × {what}"), || {
            self.lines().iter().filter(|line| line.starts_with(what)).count() >= n
        });
    }

    pub(crate) fn session(&self, key: &str) -> Value {
        self.town.gt(["session", "show", key, "--json", "--limit", "0"]).json()
    }

    /// The outcomes of a session's turns, the oldest first; what has none is shown by its state.
    pub(crate) fn outcomes(&self, key: &str) -> Vec<String> {
        let session = self.session(key);
        let turns = session["turns"].as_array().expect("a list").clone();
        let word = |turn: &Value| turn["outcome"].as_str().or(turn["state"].as_str()).expect("a word").to_owned();
        turns.iter().map(word).collect()
    }

    pub(crate) fn await_outcomes(&self, key: &str, wanted: &[&str]) {
        self.until_seen(&format!("{key} to be {wanted:?}"), || self.outcomes(key) == wanted);
    }
}
