//! Sessions as JSON: sending, looking, stopping. (docs/http.md)

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use gt_core::session::TurnOutcome;
use gt_engine::talk::{self, Taken, shape};
use gt_store::{Address, NewMessage, SendOutcome, Sent, StoreError, TurnState, TurnView};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::{App, CHANNEL, Ear};
use crate::body;
use crate::herald::Word;
use crate::problem::Problem;

/// Longest names of senders, recipients and messages.
const NAME_CHARS_MAX: usize = 200;
/// How much is listed, unless somebody asks for more.
const LISTED: usize = 100;
const LISTED_MAX: usize = 10_000;

type KeyPath = Result<Path<String>, PathRejection>;
type Page = Result<Query<PageOf>, QueryRejection>;

#[derive(Deserialize)]
pub(crate) struct PageOf {
    limit: Option<usize>,
}

fn limit(page: Page) -> Result<usize, Problem> {
    let page = page.map_err(|_| Problem::bad("`limit` is not a number").of("limit"))?;
    Ok(page.limit.unwrap_or(LISTED).min(LISTED_MAX))
}

/// A message as a caller writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    text: String,
    sender: Option<String>,
    agent: Option<String>,
    lane: Option<String>,
    id: Option<String>,
    #[serde(default)]
    wait: bool,
    deliver: Option<Deliver>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deliver {
    channel: String,
    to: Option<String>,
}

impl Ask {
    fn message(self, session: String, header: Option<String>) -> Result<NewMessage, Problem> {
        let name = |field: &'static str, text: Option<String>| match text {
            Some(text) if text.is_empty() || text.chars().count() > NAME_CHARS_MAX => {
                Err(Problem::bad(format!("`{field}` has 1 to {NAME_CHARS_MAX} characters")).of(field))
            }
            text => Ok(text),
        };
        let deliver = match self.deliver {
            None => None,
            Some(to) => Some(Address {
                channel: name("deliver", Some(to.channel))?.unwrap_or_default(),
                recipient: name("deliver", to.to)?,
                reply_to: None,
            }),
        };
        let id = name("id", self.id.or(header))?;
        Ok(NewMessage {
            text: self.text,
            sender: name("sender", self.sender)?.unwrap_or_else(|| CHANNEL.to_owned()),
            channel: CHANNEL.to_owned(),
            source: id.map(|id| talk::source(&id, &session)),
            agent: name("agent", self.agent)?,
            lane: name("lane", self.lane)?,
            deliver,
            parent: None,
            is_whole: false,
            session,
        })
    }
}

/// The name that a header gives to a message.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    header(headers, "idempotency-key")
}

/// The run that waits for the answer, if it says so: it lends its place, and does not wait for itself.
pub(crate) fn asking_run(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    header(headers, "x-gasworks-run")
}

fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let text = |value: &axum::http::HeaderValue| {
        value.to_str().map(str::to_owned).map_err(|_| Problem::bad(format!("`{name}` is not plain text")))
    };
    headers.get(name).map(text).transpose()
}

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    path: KeyPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let key = app.session(path)?;
    let ask: Ask = body::json(body, app.limits.body).await?;
    let wants_answer = ask.wait;
    let message = ask.message(key.clone(), idempotency_key(&headers)?)?;
    let message = NewMessage { parent: asking_run(&headers)?.filter(|_| wants_answer), ..message };
    message.agent.iter().try_for_each(|agent| app.check_agent(agent))?;
    // Heard of from before it is sent, so that nothing falls between the two.
    let ear = if wants_answer { Some(app.listen(&key, false).await?) } else { None };
    let sent = match app.desk.take(message).await? {
        Taken::Sent(sent) => sent,
        Taken::Obeyed(words) => return Ok(Json(obeyed(&key, &words)).into_response()),
    };
    let Some(turn) = sent.turn else { return Ok(full(&key, &sent)) };
    let known = match (sent.outcome, ear) {
        (SendOutcome::Repeated, ear) => match (app.turn(turn).await?, ear) {
            (Some(view), Some(ear)) if view.state != TurnState::Ended => Some(await_end(ear, turn).await?),
            (view, _) => view.map(Arc::new),
        },
        (_, Some(ear)) => Some(await_end(ear, turn).await?),
        (_, None) => None,
    };
    let ended = known.filter(|view| view.state == TurnState::Ended);
    let status = if ended.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(answer(&key, &sent, ended.as_deref()))).into_response())
}

/// Waits until a turn has ended.
pub(crate) async fn await_end(mut ear: Ear, turn: i64) -> Result<Arc<TurnView>, Problem> {
    loop {
        match ear.hear().await {
            Some(Word::Ended(_, view)) if view.id == turn => return Ok(view),
            Some(_) => {}
            None => return Err(Problem::ours("the server lost sight of the turn").hint("ask for it: GET …/turns")),
        }
    }
}

fn answer(key: &str, sent: &Sent, ended: Option<&TurnView>) -> Value {
    let outcome = match sent.outcome {
        SendOutcome::Repeated => SendOutcome::Queued.as_str(), // as it was the first time
        outcome => outcome.as_str(),
    };
    json!({
        "session": key,
        "message": format!("m{}", sent.message),
        "turn": sent.turn.map(|turn| turn.to_string()),
        "run": ended.and_then(|view| view.run.as_deref()),
        "outcome": ended.and_then(|view| view.outcome).map_or(outcome, TurnOutcome::as_str),
        "reply": ended.and_then(|view| view.reply.as_deref()),
        "error": ended.and_then(|view| view.error.as_deref()),
    })
}

/// What a command did.
fn obeyed(key: &str, words: &str) -> Value {
    json!({ "session": key, "message": null, "turn": null, "run": null, "outcome": "stopped", "reply": words, "error": null })
}

/// That a session takes no more.
pub(crate) fn is_full(key: &str) -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "full", format!("the session `{key}` takes no more messages now"))
        .hint("wait until it has answered some, or stop them: POST …/stop {\"all\": true}")
}

fn full(key: &str, sent: &Sent) -> Response {
    let problem = is_full(key);
    let mut body = problem.json();
    let told = json!({ "session": key, "message": format!("m{}", sent.message), "turn": null, "run": null,
                       "outcome": SendOutcome::Full.as_str(), "reply": null });
    if let (Value::Object(body), Value::Object(told)) = (&mut body, told) {
        body.extend(told);
    }
    (problem.status(), Json(body)).into_response()
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct StopAsk {
    #[serde(default)]
    all: bool,
}

pub(crate) async fn stop(State(app): State<Arc<App>>, path: KeyPath, body: Body) -> Result<Json<Value>, Problem> {
    let key = app.session(path)?;
    let ask: Option<StopAsk> = body::json_if_any(body, app.limits.body).await?;
    let key_read = key.clone();
    if app.desk.read(move |store| store.session(&key_read)).await?.is_none() {
        return Err(unknown(&key));
    }
    let stopped = app.desk.stop(&key, ask.unwrap_or_default().all).await?;
    Ok(Json(json!({ "session": key, "outcome": "stopped", "reply": stopped.words(), "stopped": stopped.runs,
                    "cancelled": stopped.n_cancelled, "left": stopped.n_left })))
}

fn unknown(key: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not-found", format!("there is no session `{key}`"))
        .hint("GET /v1/sessions shows what there is")
}

pub(crate) async fn list(State(app): State<Arc<App>>, page: Page) -> Result<Json<Vec<Value>>, Problem> {
    let limit = limit(page)?;
    let most = if app.current.allows_all() { limit } else { LISTED_MAX };
    let sessions = app.desk.read(move |store| store.sessions(Some(most))).await?;
    let allowed = sessions.iter().filter(|session| app.current.allows(&session.key));
    Ok(Json(allowed.take(limit).map(shape::session).collect()))
}

pub(crate) async fn show(State(app): State<Arc<App>>, path: KeyPath) -> Result<Json<Value>, Problem> {
    let key = app.session(path)?;
    let asked = key.clone();
    let session = app.desk.read(move |store| store.session(&asked)).await?;
    session.map(|session| Json(shape::session(&session))).ok_or_else(|| unknown(&key))
}

pub(crate) async fn turns(State(app): State<Arc<App>>, path: KeyPath, page: Page) -> Result<Json<Vec<Value>>, Problem> {
    let (key, limit) = (app.session(path)?, limit(page)?);
    let (asked, settings, root) = (key.clone(), app.current.settings(), app.town.root().to_owned());
    let found = app.desk.read(move |store| {
        if store.session(&asked)?.is_none() {
            return Ok(None);
        }
        let (policy, now) = (settings.policy(&root), Timestamp::now());
        let turns = store.turns(&asked, limit)?;
        let with_reason = |turn: TurnView| Ok((store.why_waiting(turn.id, &policy, now)?, turn));
        turns.into_iter().map(with_reason).collect::<Result<Vec<_>, StoreError>>().map(Some)
    });
    let turns = found.await?.ok_or_else(|| unknown(&key))?;
    Ok(Json(turns.iter().map(|(why, turn)| shape::turn(turn, why.as_deref())).collect()))
}

pub(crate) async fn lanes(State(app): State<Arc<App>>) -> Result<Json<Vec<Value>>, Problem> {
    let (settings, root) = (app.current.settings(), app.town.root().to_owned());
    let lanes = app.desk.read(move |store| store.lanes(&settings.policy(&root))).await?;
    Ok(Json(lanes.iter().map(shape::lane).collect()))
}

impl App {
    async fn turn(&self, id: i64) -> Result<Option<TurnView>, Problem> {
        self.desk.read(move |store| store.turn(id)).await
    }
}
