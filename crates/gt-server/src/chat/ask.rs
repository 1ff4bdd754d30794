//! A question as OpenAI's clients put it, and the message that it becomes.

use gt_core::session::Command;
use serde::Deserialize;

use crate::problem::Problem;

/// What is read of it; the rest is about models, and an agent chooses its own.
#[derive(Debug, Deserialize)]
pub(super) struct Ask {
    pub(super) model: String,
    messages: Vec<Line>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) stream: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) stream_options: StreamOptions,
    pub(super) user: Option<String>,
    n: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct StreamOptions {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) include_usage: bool,
}

#[derive(Debug, Deserialize)]
struct Line {
    role: String,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

impl Ask {
    /// What the agent is told. A session that is known has heard what was said before; any other is told all of it.
    pub(super) fn text(&self, is_known: bool) -> Result<String, Problem> {
        if self.n.is_some_and(|n| n != 1) {
            return Err(Problem::bad("an agent gives one answer, so `n` is 1").of("n"));
        }
        let Some((last, earlier)) = self.messages.split_last().filter(|(last, _)| last.role == "user") else {
            return Err(Problem::bad("the last of `messages` has to be one of role `user`").of("messages"));
        };
        let question = last.text()?;
        let earlier: Vec<String> = earlier.iter().map(Line::told).collect::<Result<_, _>>()?;
        let earlier: Vec<String> = earlier.into_iter().filter(|told| !told.is_empty()).collect();
        // A command is obeyed, whatever was said before.
        if is_known || earlier.is_empty() || Command::parse(&question, None).is_some() {
            return Ok(question);
        }
        Ok(format!("This was said before:\n\n{}\n\nNow answer this:\n\n{question}", earlier.join("\n\n")))
    }
}

impl Line {
    fn text(&self) -> Result<String, Problem> {
        match &self.content {
            None => Ok(String::new()),
            Some(Content::Text(text)) => Ok(text.clone()),
            Some(Content::Parts(parts)) => {
                let texts: Vec<&str> = parts.iter().map(Part::text).collect::<Result<_, _>>()?;
                Ok(texts.join("\n"))
            }
        }
    }

    /// As it is told to somebody who was not there.
    fn told(&self) -> Result<String, Problem> {
        let text = self.text()?;
        Ok(if text.trim().is_empty() { String::new() } else { format!("[{}]\n{text}", self.role) })
    }
}

impl Part {
    fn text(&self) -> Result<&str, Problem> {
        match (self.kind.as_str(), &self.text) {
            ("text", Some(text)) => Ok(text),
            (kind, _) => {
                let problem = Problem::bad(format!("agents are sent text, and this holds a part of type `{kind}`"));
                Err(problem.of("messages").hint("put it into a file, and send the file's name"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn text(messages: &Value, is_known: bool) -> Result<String, String> {
        let ask: Ask = serde_json::from_value(json!({ "model": "m", "messages": messages })).expect("a question");
        ask.text(is_known).map_err(|problem| problem.json()["error"]["message"].to_string())
    }

    #[test]
    fn a_known_session_is_sent_the_last_message_and_a_new_one_all_of_them() {
        let messages = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "One?" },
            { "role": "assistant", "content": null, "tool_calls": [] },
            { "role": "assistant", "content": "1" },
            { "role": "user", "content": [{ "type": "text", "text": "Two?" }, { "type": "text", "text": "Three?" }] },
        ]);
        assert_eq!(text(&messages, true), Ok("Two?\nThree?".to_owned()));
        let all = "This was said before:\n\n[system]\nBe brief.\n\n[user]\nOne?\n\n[assistant]\n1\n\nNow answer this:\n\nTwo?\nThree?";
        assert_eq!(text(&messages, false), Ok(all.to_owned()));
        assert_eq!(text(&json!([{ "role": "user", "content": "One?" }]), false), Ok("One?".to_owned()));
    }

    #[test]
    fn a_command_is_one_whatever_was_said_before() {
        let messages = json!([{ "role": "user", "content": "One?" }, { "role": "user", "content": "/stop" }]);
        assert_eq!(text(&messages, false), Ok("/stop".to_owned()));
    }

    #[test]
    fn what_is_no_question_or_no_text_is_refused() {
        assert!(text(&json!([]), false).is_err());
        assert!(text(&json!([{ "role": "assistant", "content": "x" }]), false).is_err());
        let image = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "x" } }] }]);
        let refused = text(&image, true).expect_err("it is no text");
        assert!(refused.contains("`image_url`"), "{refused}");
    }

    #[test]
    fn options_may_be_null() {
        let ask =
            json!({ "model": "m", "messages": [], "stream": true, "stream_options": null, "user": null, "tools": [] });
        let ask: Ask = serde_json::from_value(ask).expect("a question");
        assert!(ask.stream && !ask.stream_options.include_usage);
        let ask = json!({ "model": "m", "messages": [], "stream": null, "stream_options": { "include_usage": null } });
        let ask: Ask = serde_json::from_value(ask).expect("a question");
        assert!(!ask.stream && !ask.stream_options.include_usage);
    }
}
