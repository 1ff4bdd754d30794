//! An answer as OpenAI's clients read it: whole, or bit by bit.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::sse::Event;
use gt_core::agent::REPLY_BYTES_MAX;
use gt_core::session::TurnOutcome;
use gt_store::TurnView;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Leash;
use crate::app::{App, Ear};
use crate::herald::Word;
use crate::problem::Problem;

/// What an answer has cost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    read: u64,
    written: u64,
}

impl App {
    /// What all runs of a turn have used together.
    pub(super) async fn spent(&self, turn: i64) -> Result<Spent, Problem> {
        let runs = self.desk.read(move |store| store.runs_of_turn(turn)).await?;
        Ok(runs.iter().fold(Spent::default(), |spent, run| Spent {
            read: spent.read.saturating_add(run.usage.tokens_in),
            written: spent.written.saturating_add(run.usage.tokens_out),
        }))
    }
}

impl Spent {
    fn json(self) -> Value {
        json!({ "prompt_tokens": self.read, "completion_tokens": self.written,
                "total_tokens": self.read.saturating_add(self.written) })
    }
}

/// What was answered; a turn that has no answer says why.
pub(super) fn reply(turn: &TurnView) -> Result<&str, Problem> {
    let (status, code) = match turn.outcome {
        Some(TurnOutcome::Done) => return Ok(turn.reply.as_deref().unwrap_or_default()),
        Some(TurnOutcome::Cancelled) => (StatusCode::CONFLICT, "cancelled"),
        Some(TurnOutcome::Dropped) => (StatusCode::TOO_MANY_REQUESTS, "dropped"),
        Some(TurnOutcome::Failed) | None => (StatusCode::BAD_GATEWAY, "failed"),
    };
    let why = turn.error.as_deref().unwrap_or("nobody knows why");
    let hint = turn.run.as_ref().map(|run| format!("`gt trace show {run}` tells more"));
    let problem = Problem::new(status, code, format!("the agent gave no answer: {why}")).finally();
    Err(hint.into_iter().fold(problem, Problem::hint))
}

/// The frame of an answer.
pub(super) struct Answer {
    id: String,
    model: String,
    created: i64,
}

impl Answer {
    pub(super) fn new(name: &str, model: String) -> Answer {
        Answer { id: format!("chatcmpl-{name}"), model, created: Timestamp::now().as_second() }
    }

    pub(super) fn whole(&self, text: &str, spent: Spent) -> Value {
        json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": text, "refusal": null },
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": spent.json(),
        })
    }

    /// A piece of it; with `usage`, which is empty in all but the last, only for those who want it.
    fn chunk(&self, delta: Option<Value>, finish: Option<&str>, usage: Option<Value>) -> Event {
        let choice = |delta: Value| json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]);
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": delta.map_or(json!([]), choice),
        });
        if let (Some(usage), Value::Object(chunk)) = (usage, &mut chunk) {
            chunk.insert("usage".to_owned(), usage);
        }
        Event::default().data(chunk.to_string())
    }

    /// All pieces of an answer that is known.
    pub(super) fn chunks(&self, text: &str, wants_usage: bool) -> Vec<Event> {
        let mut chunks = vec![self.role(wants_usage), self.content(text, wants_usage)];
        chunks.extend(self.finish(Spent::default(), wants_usage));
        chunks
    }

    fn role(&self, wants_usage: bool) -> Event {
        self.chunk(Some(json!({ "role": "assistant", "content": "" })), None, wants_usage.then_some(Value::Null))
    }

    fn content(&self, text: &str, wants_usage: bool) -> Event {
        self.chunk(Some(json!({ "content": text })), None, wants_usage.then_some(Value::Null))
    }

    fn finish(&self, spent: Spent, wants_usage: bool) -> Vec<Event> {
        let mut last = vec![self.chunk(Some(json!({})), Some("stop"), wants_usage.then_some(Value::Null))];
        last.extend(wants_usage.then(|| self.chunk(None, None, Some(spent.json()))));
        last.push(Event::default().data("[DONE]"));
        last
    }
}

/// What of an answer was passed on.
#[derive(Debug, Default)]
struct Passed {
    text: String,
    /// Space at the end of what was said, which is passed on only if more comes.
    held: String,
}

impl Passed {
    /// What can be passed on of something that was said.
    fn say(&mut self, said: &str) -> String {
        let all = std::mem::take(&mut self.held) + said;
        let more = if self.text.is_empty() { all.trim_start() } else { &all };
        let kept = more.trim_end();
        more[kept.len()..].clone_into(&mut self.held);
        self.text.push_str(kept);
        kept.to_owned()
    }

    /// What is left of the answer when it is known; one that is not what was said comes after that.
    fn rest(&self, reply: &str) -> String {
        let reply = reply.trim();
        match reply.strip_prefix(self.text.as_str()) {
            Some(rest) => rest.to_owned(),
            None if self.text.ends_with(reply) => String::new(),
            None if self.text.len() >= REPLY_BYTES_MAX => String::new(), // the end of both was cut
            None => format!("\n\n{reply}"),
        }
    }
}

/// An answer that is given bit by bit.
pub(super) struct Stream {
    app: Arc<App>,
    ear: Ear,
    leash: Leash,
    turn: i64,
    answer: Answer,
    wants_usage: bool,
    passed: Passed,
    events: VecDeque<Event>,
    /// How it ended, if that was known before it began.
    known: Option<Arc<TurnView>>,
    is_over: bool,
}

impl Stream {
    pub(super) fn new(
        app: Arc<App>,
        ear: Ear,
        leash: Leash,
        turn: i64,
        answer: Answer,
        wants_usage: bool,
        known: Option<Arc<TurnView>>,
    ) -> Stream {
        let events = VecDeque::from([answer.role(wants_usage)]);
        let passed = Passed::default();
        Stream { app, ear, leash, turn, answer, wants_usage, passed, events, known, is_over: false }
    }

    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            match self.known.take() {
                Some(turn) => self.finish(&turn).await,
                None => self.hear().await,
            }
        }
    }

    async fn hear(&mut self) {
        match self.ear.hear().await {
            Some(Word::Said(said)) if said.turn == self.turn => {
                let text = self.passed.say(&said.text);
                self.say(&text);
            }
            Some(Word::Ended(_, turn)) if turn.id == self.turn => self.finish(&turn).await,
            Some(_) => {}
            None => self.fail(&Problem::ours("the server lost sight of the answer")),
        }
    }

    fn say(&mut self, text: &str) {
        if !text.is_empty() {
            self.events.push_back(self.answer.content(text, self.wants_usage));
        }
    }

    async fn finish(&mut self, turn: &TurnView) {
        self.leash.let_go();
        match reply(turn) {
            Ok(reply) => {
                let rest = self.passed.rest(reply);
                self.say(&rest);
                let spent = self.app.spent(self.turn).await.unwrap_or_default();
                self.events.extend(self.answer.finish(spent, self.wants_usage));
                self.is_over = true;
            }
            Err(problem) => self.fail(&problem),
        }
    }

    /// Its status was told long ago; clients of OpenAI's look for an error in the stream.
    fn fail(&mut self, problem: &Problem) {
        self.events.push_back(Event::default().data(problem.json().to_string()));
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::Passed;

    fn told(said: &[&str], reply: &str) -> String {
        let mut passed = Passed::default();
        let mut told: String = said.iter().map(|said| passed.say(said)).collect();
        told += &passed.rest(reply);
        told
    }

    #[test]
    fn what_was_said_bit_by_bit_is_the_answer_and_nothing_is_said_twice() {
        assert_eq!(told(&[], "Hello."), "Hello.");
        assert_eq!(told(&["Hel", "lo.\n"], "Hello."), "Hello.");
        assert_eq!(told(&["Hel"], "Hello."), "Hello.");
        assert_eq!(told(&["\n One ", "\n", " two"], "One \n two"), "One \n two");
        assert_eq!(told(&["Let me look.\n", "It is 3."], "It is 3."), "Let me look.\nIt is 3.");
        assert_eq!(told(&["Let me look."], "It is 3."), "Let me look.\n\nIt is 3.");
    }
}
