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

#[cfg(test)]
mod tests {
    use gt_core::lane::Lanes;
    use gt_core::plan::{PerSide, Policy};
    use gt_core::session::Rules;
    use gt_engine::Town;
    use gt_store::{Claimant, Ended, Findings, NewMessage, Stamp, Started, Store};
    use jiff::Timestamp;
    use tokio::runtime::Builder;

    use super::*;
    use crate::current::Current;
    use crate::listen::Limits;

    fn stamp() -> Stamp {
        Stamp::new(Timestamp::now(), "tester")
    }

    /// A turn that is asked for, and answered.
    fn answered(store: &mut Store, run: &str) {
        let message = NewMessage {
            session: "dm:a".to_owned(),
            text: "x".to_owned(),
            agent: Some("plain".to_owned()),
            is_whole: true,
            ..NewMessage::default()
        };
        store.send(&[message], &Rules::default(), &Lanes::default(), &stamp()).expect("it is taken");
        let (policy, mut new_run) = (Policy::default(), || run.to_owned());
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me",
            new_run: &mut new_run,
            limits: PerSide::both(None),
            n_before: 0,
            probe: &|_, _| None,
        };
        store.advance(&Findings::default(), &policy, Some(&mut claimant), &stamp()).expect("it is claimed");
        let started = Started {
            run: run.to_owned(),
            at: None,
            pid: 1,
            birth: 1,
            branch: None,
            worktree: None,
            log: String::new(),
            formula: None,
            conversation: None,
        };
        let ended = Ended {
            run: run.to_owned(),
            code: Some(0),
            signal: None,
            leftover: 0,
            is_lost: false,
            worktree: None,
            branch: None,
            kept: None,
            patch: None,
            told: None,
            last_output: None,
            reply: Some(format!("the reply of {run}")),
            is_conversation_lost: false,
        };
        let findings = Findings { started: vec![started], ended: vec![ended], ..Findings::default() };
        store.advance(&findings, &policy, None, &stamp()).expect("it is recorded");
    }

    /// It ends after the caller is heard of and before the log is read for him: both tell of it.
    #[test]
    fn an_end_at_the_seam_of_what_was_missed_and_what_comes_is_told_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let (town, _) = Town::init(dir.path(), &stamp()).expect("it can be made");
        let mut store = town.open_store().expect("it is there");
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let address = "127.0.0.1:1".parse().expect("an address");
        let app = App::open(&town, Arc::new(Current::of(&town)), address, Limits::default()).expect("it opens");
        let app = Arc::new(app);
        let told: Vec<String> = runtime.block_on(async {
            answered(&mut store, "run-1");
            let Ok(ear) = app.listen("dm:a", false).await else { panic!("it cannot be heard") };
            answered(&mut store, "run-2");
            let (session, missed) = ("dm:a".to_owned(), VecDeque::new());
            let mut follower = Follower { app, session, ear, told: 0, missed, is_behind: true };
            let mut told = Vec::new();
            for n in 2..=4 {
                told.push(follower.next().await.map(|event| format!("{event:?}")).expect("there is more"));
                answered(&mut store, &format!("run-{}", n + 1));
            }
            told
        });
        let replies = ["run-1", "run-2", "run-3"].map(|run| format!("the reply of {run}"));
        for (told, reply) in told.iter().zip(&replies) {
            assert!(told.contains(reply.as_str()), "{told}");
        }
    }
}
