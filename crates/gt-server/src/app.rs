//! What every answer needs, and the table of routes.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use gt_core::refusal::Refusal;
use gt_core::session::flaw_of_key;
use gt_engine::agents::find_for_turns;
use gt_engine::{Town, TownError};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::current::Current;
use crate::desk::Desk;
use crate::herald::{Herald, Word};
use crate::listen::Limits;
use crate::problem::Problem;
use crate::token::Token;
use crate::{chat, events, guard, sessions};

/// Requests that wait for an answer or follow a session at once; fewer than connections, so that one can always be stopped.
const WAITS_MAX: usize = 192;
/// The channel that callers speak for.
pub(crate) const CHANNEL: &str = "http";

pub(crate) struct App {
    pub(crate) town: Town,
    pub(crate) address: SocketAddr,
    pub(crate) token: Token,
    pub(crate) current: Arc<Current>,
    pub(crate) desk: Desk,
    pub(crate) limits: Limits,
    herald: Arc<Herald>,
    waits: Arc<Semaphore>,
}

/// Somebody who waits, and what he hears.
pub(crate) struct Ear {
    words: Receiver<Word>,
    _place: OwnedSemaphorePermit,
}

impl Ear {
    /// `None`: it was too slow, or the server ends.
    pub(crate) async fn hear(&mut self) -> Option<Word> {
        self.words.recv().await
    }
}

impl App {
    pub(crate) fn open(
        town: &Town,
        current: Arc<Current>,
        address: SocketAddr,
        limits: Limits,
    ) -> Result<App, TownError> {
        Ok(App {
            town: town.clone(),
            address,
            token: Token::of(town)?,
            desk: Desk::open(town, &current)?,
            herald: Herald::start(town, Arc::clone(&current))?,
            current,
            limits,
            waits: Arc::new(Semaphore::new(WAITS_MAX)),
        })
    }

    /// Hears of a session from now on.
    pub(crate) async fn listen(&self, session: &str, wants_words: bool) -> Result<Ear, Problem> {
        let place = Arc::clone(&self.waits).try_acquire_owned().map_err(|_| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-now", "too many requests wait for answers already")
                .hint("send without `wait`, and ask for the turn later")
        })?;
        let (herald, session) = (Arc::clone(&self.herald), session.to_owned());
        let words = self.desk.read(move |store| herald.listen(store, &session, wants_words)).await?;
        Ok(Ear { words, _place: place })
    }

    /// Checks that callers may talk to a session.
    pub(crate) fn admit(&self, session: &str) -> Result<(), Problem> {
        if let Some(why) = flaw_of_key(session) {
            return Err(Refusal::SessionKey { key: gt_core::text::one_line(session), why }.into());
        }
        if !self.current.allows(session) {
            let message = format!("callers may not talk to the session `{session}`");
            let problem = Problem::new(StatusCode::FORBIDDEN, "forbidden", message);
            return Err(problem.hint("`gt config get server.allow` shows to which").finally());
        }
        Ok(())
    }

    /// Checks that an agent takes turns.
    pub(crate) fn check_agent(&self, name: &str) -> Result<(), Problem> {
        let settings = self.current.settings();
        find_for_turns(&settings.config, name).map(drop).map_err(|why| Problem::bad(why).of("agent"))
    }

    /// The session that a path names.
    pub(crate) fn session(&self, path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
        let Path(key) = path.map_err(|_| Problem::bad("the name of the session is not UTF-8 text"))?;
        self.admit(&key).map(|()| key)
    }
}

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/{key}", get(sessions::show))
        .route("/v1/sessions/{key}/turns", get(sessions::turns))
        .route("/v1/sessions/{key}/messages", post(sessions::send))
        .route("/v1/sessions/{key}/stop", post(sessions::stop))
        .route("/v1/sessions/{key}/events", get(events::follow))
        .route("/v1/lanes", get(sessions::lanes))
        .route("/v1/models", get(chat::models))
        .route("/v1/models/{name}", get(chat::model))
        .route("/v1/chat/completions", post(chat::complete))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "not-found", "there is nothing at this address"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "usage", "this address is not asked like that")
        })
        // Bodies are read by `body`, which has its own limit.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(&app), guard::check))
        .with_state(app)
}
