//! Following a session: what is said in it and how its turns end, as server-sent events.
//!
//! Ends are numbered as in the town's log, so whoever comes back with the last number has missed none of them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use gt_core::session::TurnOutcome;
use gt_store::TurnView;
use serde_json::json;

use crate::app::{App, Ear};
use crate::herald::{Said, Word};
use crate::problem::Problem;

/// Ends that are looked up together for somebody who comes back.
const PAGE: usize = 100;

/// A caller who follows a session.
struct Follower {
    app: Arc<App>,
    session: String,
    ear: Ear,
    /// The last end that he was told.
    told: i64,
    /// Ends that he has missed, and whether there are more of them.
    missed: VecDeque<(i64, TurnView)>,
    is_behind: bool,
}

pub(crate) async fn follow(
    State(app): State<Arc<App>>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let session = app.session(path)?;
    let since = since(&headers)?;
    let ear = app.listen(&session, true).await?;
    let follower =
        Follower { app, session, ear, told: since.unwrap_or(0), missed: VecDeque::new(), is_behind: since.is_some() };
    let events = stream::unfold(follower, |mut follower| async {
        let event = follower.next().await?;
        Some((Ok(event), follower))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

fn since(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let number = |value: &axum::http::HeaderValue| value.to_str().ok()?.trim().parse::<i64>().ok();
    let wrong = || Problem::bad("`Last-Event-ID` is not the number of an event");
    headers.get("last-event-id").map(|value| number(value).ok_or_else(wrong)).transpose()
}

impl Follower {
    /// The next event; `None`: he was too slow, or the server ends, and he may come back.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((seq, turn)) = self.missed.pop_front() {
                self.told = seq;
                return Some(ended(seq, &turn));
            }
            if self.is_behind {
                self.look_back().await.ok()?;
                continue;
            }
            match self.ear.hear().await? {
                Word::Said(said) => return Some(delta(&said)),
                Word::Ended(seq, turn) if seq > self.told => {
                    self.told = seq;
                    return Some(ended(seq, &turn));
                }
                Word::Ended(..) => {}
            }
        }
    }

    async fn look_back(&mut self) -> Result<(), Problem> {
        let (session, told) = (self.session.clone(), self.told);
        self.missed = self.app.desk.read(move |store| store.turn_ends(&session, told, PAGE)).await?.into();
        self.is_behind = self.missed.len() == PAGE;
        Ok(())
    }
}

fn delta(said: &Said) -> Event {
    let data = json!({ "turn": said.turn.to_string(), "run": said.run, "offset": said.offset, "text": said.text });
    Event::default().event("delta").data(data.to_string())
}

fn ended(seq: i64, turn: &TurnView) -> Event {
    let data = json!({ "turn": turn.id.to_string(), "run": turn.run, "outcome": turn.outcome.map(TurnOutcome::as_str),
                       "reply": turn.reply, "error": turn.error });
    Event::default().event("turn").id(seq.to_string()).data(data.to_string())
}
