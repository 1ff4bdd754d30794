//! The script: what is answered to whom, in which order.
//!
//! A script has parts, each with a key. A question belongs to the part whose key is in it; where several are, to the one
//! with the longest key. A key is for example the id of a bead, which is in the assignment of its agent, so that many
//! agents can share one model. The answers of a part are given in their order, and the last one again and again.
//!
//! The empty key is for everybody else. There each conversation goes through the answers by itself: the first command
//! that it was told to run has the first answer behind it, and so on.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One answer of the model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Asks the agent to run this shell command.
    Shell(String),
    /// The same, with the wish to be allowed more than the agent's surroundings allow.
    Escalate(String),
    /// Says this and ends its turn.
    Text(String),
    /// Refuses because the account has used up what it may, until so many seconds from now.
    Limit(u64),
    /// Refuses because there is too much to do for everybody.
    Overloaded,
    /// Refuses because it does not know the key.
    Unauthorised,
    /// Says nothing until whoever asked goes away.
    Hang,
    /// Begins to answer and closes the connection.
    Cut,
}

/// A shell command that does what a worker has to do: writes a file, commits it and ends the bead.
pub const WORK: &str = "echo \"$GT_BEAD\" > \"$GT_BEAD.txt\" && git add . && git -c user.name=worker \
    -c user.email=worker@example.org commit --quiet --message=\"$GT_BEAD\" && gt done";

/// What is answered to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    parts: BTreeMap<String, Vec<Answer>>,
}

/// Why a text is no script.
#[derive(Debug)]
pub struct BadScript(serde_json::Error);

impl std::fmt::Display for BadScript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this is no script: {}", self.0)
    }
}

impl std::error::Error for BadScript {}

impl Script {
    /// Every agent is told to do its work, and then thanked.
    pub fn work() -> Script {
        Script::default().with("", Script::working())
    }

    /// The answers that make an agent do its work.
    pub fn working() -> Vec<Answer> {
        vec![Answer::Shell(WORK.to_owned()), Answer::Text("All done.".to_owned())]
    }

    /// The same script with these answers for questions that hold the key.
    #[must_use]
    pub fn with(mut self, key: &str, answers: Vec<Answer>) -> Script {
        self.parts.insert(key.to_owned(), answers);
        self
    }

    /// Reads an object of lists, such as `{"gt-a": [{"shell": "make"}, {"text": "Done."}, "hang"]}`.
    pub fn read(json: &str) -> Result<Script, BadScript> {
        let parts = serde_json::from_str(json).map_err(BadScript)?;
        Ok(Script { parts })
    }

    /// The key of the part to which a question belongs.
    pub(crate) fn key_in(&self, question: &str) -> Option<&str> {
        let keys = self.parts.keys().map(String::as_str).filter(|key| question.contains(key));
        keys.max_by_key(|key| key.len())
    }

    /// The answer to the question with this number in a part, counted from 0.
    pub(crate) fn answer(&self, key: &str, number: usize) -> Option<&Answer> {
        let answers = self.parts.get(key)?;
        answers.get(number).or_else(|| answers.last())
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Script};

    #[test]
    fn a_question_belongs_to_the_longest_key_in_it() {
        let script = Script::work().with("gt-a", vec![Answer::Hang]).with("gt-ab", vec![Answer::Cut]);
        assert_eq!(script.key_in("Your work is gt-ab: paint"), Some("gt-ab"));
        assert_eq!(script.key_in("Your work is gt-a: paint"), Some("gt-a"));
        assert_eq!(script.key_in("Your work is gt-x: paint"), Some(""));
        assert_eq!(Script::default().key_in("anything"), None);
    }

    #[test]
    fn answers_come_in_order_and_the_last_one_stays() {
        let script = Script::default().with("k", vec![Answer::Hang, Answer::Cut]);
        let answers = [0, 1, 2, 9].map(|number| script.answer("k", number));
        assert_eq!(answers, [Some(&Answer::Hang), Some(&Answer::Cut), Some(&Answer::Cut), Some(&Answer::Cut)]);
        assert_eq!(Script::default().with("k", vec![]).answer("k", 0), None);
    }

    #[test]
    fn a_script_can_be_read_from_a_file() {
        let read = Script::read(r#"{"gt-a": [{"shell": "make"}, {"limit": 60}, "hang"], "": [{"text": "No."}]}"#);
        let expected = Script::default()
            .with("gt-a", vec![Answer::Shell("make".to_owned()), Answer::Limit(60), Answer::Hang])
            .with("", vec![Answer::Text("No.".to_owned())]);
        assert_eq!(read.expect("it is a script"), expected);
        let refusal = Script::read(r#"{"gt-a": ["dance"]}"#).expect_err("there is no such answer").to_string();
        assert!(refusal.starts_with("this is no script: unknown variant `dance`"), "{refusal}");
    }
}
