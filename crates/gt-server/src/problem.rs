//! An error as a caller meets it: a status, one sentence, and what to try. // SPEC appendix
//!
//! One shape for all: `{"error": {"code", "message", "hint"}}`, with `type` and `param` beside them, which OpenAI's clients
//! look for.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use gt_core::refusal::Refusal;
use gt_engine::{TownError, chain};
use gt_store::StoreError;
use serde_json::{Value, json};

/// Keeps clients that try again by themselves from asking an agent twice.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
    param: Option<&'static str>,
    is_final: bool,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, code, message: message.into(), hint: None, param: None, is_final: false }
    }

    /// Something that the caller can put right.
    pub(crate) fn bad(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "usage", message)
    }

    /// Nothing that the caller can put right.
    pub(crate) fn ours(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unreachable", message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// Names the part of the question that it is about.
    pub(crate) fn of(mut self, param: &'static str) -> Problem {
        self.param = Some(param);
        self
    }

    /// Asked again, it would be the same, or cost the same once more.
    pub(crate) fn finally(mut self) -> Problem {
        self.is_final = true;
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "error": { "code": self.code, "message": self.message, "hint": self.hint,
                           "type": self.kind(), "param": self.param } })
    }

    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.json())).into_response();
        if self.is_final {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let (status, code) = match &refusal {
            Refusal::LongMessage { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
            Refusal::SessionKey { .. } | Refusal::EmptyMessage => (StatusCode::BAD_REQUEST, "usage"),
            _ => (StatusCode::CONFLICT, "refused"),
        };
        Problem::new(status, code, refusal.to_string()).hint(refusal.hint()).finally()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::Refused(refusal) => refusal.into(),
            error => Problem::ours(chain(&error)).hint("see what is wrong with `gt doctor`"),
        }
    }
}

impl From<TownError> for Problem {
    fn from(error: TownError) -> Problem {
        match error {
            TownError::Store(error) => error.into(),
            error => Problem::ours(chain(&error)).hint("see what is wrong with `gt doctor`"),
        }
    }
}
