//! `/v1/chat/completions` and `/v1/models`, as OpenAI's clients know them: the model is an agent. // SPEC L6
//!
//! `ask` makes a message of a question, `answer` tells what became of it in their words. A client that goes away before its
//! answer stops it, if the session was made for this one question.

mod answer;
mod ask;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::KeepAlive;
use axum::response::{IntoResponse as _, Response, Sse};
use futures_util::stream;
use gt_engine::talk::{self, Taken};
use gt_store::{NewMessage, SendOutcome, TurnState};
use serde_json::{Value, json};
use uuid::Uuid;

use self::answer::{Answer, Spent, Stream, reply};
use self::ask::Ask;
use crate::app::{App, CHANNEL};
use crate::body;
use crate::desk::Desk;
use crate::problem::Problem;
use crate::sessions::{asking_run, await_end, idempotency_key, is_full};

/// Stands for the agent of the session, else the default one.
const ANY_AGENT: &str = "gasworks";
const SESSION_HEADER: &str = "x-gasworks-session";

/// Stops a session that nobody else knows of when its caller is gone.
struct Leash {
    desk: Desk,
    session: Option<String>,
}

impl Leash {
    fn let_go(&mut self) {
        self.session = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.session.iter().for_each(|session| self.desk.abandon(session));
    }
}

pub(crate) async fn models(State(app): State<Arc<App>>) -> Json<Value> {
    let names = std::iter::once(ANY_AGENT.to_owned()).chain(app.current.agents());
    let data: Vec<Value> = names.map(|name| model_json(&name)).collect();
    Json(json!({ "object": "list", "data": data }))
}

pub(crate) async fn model(
    State(app): State<Arc<App>>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, Problem> {
    let Path(name) = path.map_err(|_| Problem::bad("the name of the model is not UTF-8 text"))?;
    app.agent(&name).map(|_| Json(model_json(&name)))
}

fn model_json(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": 0, "owned_by": "gasworks" })
}

impl App {
    /// The agent that a model stands for.
    fn agent(&self, model: &str) -> Result<Option<String>, Problem> {
        if model == ANY_AGENT {
            return Ok(None);
        }
        self.check_agent(model).map(|()| Some(model.to_owned())).map_err(|_| {
            let message = format!("the model `{model}` does not exist: no agent of that name takes chat turns");
            let problem = Problem::new(StatusCode::NOT_FOUND, "model_not_found", message).of("model").finally();
            problem.hint("GET /v1/models shows what there is")
        })
    }

    /// Whether an agent knows what was said before in a session, because it goes on with a conversation of its own.
    async fn remembers(&self, session: &str, agent: Option<&str>) -> Result<bool, Problem> {
        let key = session.to_owned();
        let Some(session) = self.desk.read(move |store| store.session(&key)).await? else { return Ok(false) };
        let usual = self.current.settings().config.text("default_agent");
        let agent = agent.map(str::to_owned).or(session.wishes.agent).or(usual);
        Ok(session.conversation.is_some() && session.talks_to == agent)
    }
}

pub(crate) async fn complete(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let ask: Ask = body::json(body, app.limits.body).await?;
    let agent = app.agent(&ask.model)?;
    let (session, is_own) = session(&headers, &ask)?;
    app.admit(&session)?;
    let remembers = !is_own && app.remembers(&session, agent.as_deref()).await?;
    let message = NewMessage {
        text: ask.text(remembers)?,
        sender: ask.user.clone().unwrap_or_else(|| CHANNEL.to_owned()),
        channel: CHANNEL.to_owned(),
        source: idempotency_key(&headers)?.map(|id| talk::source(&id, &session)),
        agent,
        parent: asking_run(&headers)?,
        is_whole: true,
        session: session.clone(),
        ..NewMessage::default()
    };
    // Heard of from before it is sent, so that nothing falls between the two; and held before, so that no caller who goes
    // meanwhile leaves something behind.
    let ear = app.listen(&session, ask.stream).await?;
    let mut leash = Leash { desk: app.desk.clone(), session: Some(session.clone()).filter(|_| is_own) };
    let sent = match app.desk.take(message).await? {
        Taken::Sent(sent) => sent,
        Taken::Obeyed(words) => {
            leash.let_go();
            return Ok(obeyed(&ask, &words));
        }
    };
    let Some(turn) = sent.turn else {
        leash.let_go();
        return Err(is_full(&session));
    };
    let known = match sent.outcome {
        SendOutcome::Repeated => app.desk.read(move |store| store.turn(turn)).await?,
        _ => None,
    };
    let known = known.filter(|view| view.state == TurnState::Ended).map(Arc::new);
    let answer = Answer::new(&format!("turn-{turn}"), ask.model);
    if ask.stream {
        let wants_usage = ask.stream_options.include_usage;
        return Ok(streamed(Stream::new(app, ear, leash, turn, answer, wants_usage, known)));
    }
    let view = match known {
        Some(view) => view,
        None => await_end(ear, turn).await?,
    };
    leash.let_go();
    let used = app.spent(turn).await?;
    Ok(Json(answer.whole(reply(&view)?, used)).into_response())
}

fn streamed(stream: Stream) -> Response {
    let events = stream::unfold(stream, |mut stream| async {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// What a command did, as an answer.
fn obeyed(ask: &Ask, words: &str) -> Response {
    let answer = Answer::new("command", ask.model.clone());
    if !ask.stream {
        return Json(answer.whole(words, Spent::default())).into_response();
    }
    let events = answer.chunks(words, ask.stream_options.include_usage);
    Sse::new(stream::iter(events.into_iter().map(Ok::<_, Infallible>))).into_response()
}

/// The session that a question belongs to, and whether it is made for it.
fn session(headers: &HeaderMap, ask: &Ask) -> Result<(String, bool), Problem> {
    if let Some(value) = headers.get(SESSION_HEADER) {
        let bytes = value.as_bytes().to_vec();
        let key = String::from_utf8(bytes).map_err(|_| Problem::bad("`X-Gasworks-Session` is not UTF-8 text"))?;
        return Ok((key, false));
    }
    Ok(match &ask.user {
        Some(user) => (format!("http:{user}"), false),
        None => (format!("http:chat-{}", Uuid::now_v7()), true),
    })
}
