//! Calls of the Bot API: what is asked and answered is `frankenstein`'s, the way there is ours.
//!
//! The token is part of every address, so no error is passed on before it was taken out.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use frankenstein::TelegramApi;
use gt_core::text::one_line;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{Secret, mask_path};
use crate::web;

/// Far more than any answer has.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A bot, and how it is reached.
#[derive(Debug)]
pub(super) struct Api {
    url: Secret,
    token: Secret,
    agent: ureq::Agent,
}

/// Why a call was in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApiError {
    Refused {
        code: u64,
        description: String,
        retry_after: Option<u64>,
    },
    /// The chat has another id now.
    Moved {
        chat: i64,
    },
    /// Nobody knows whether it arrived.
    Unreachable(String),
}

impl Api {
    pub(super) fn new(url: &Secret, token: &Secret, timeout: Duration) -> Api {
        Api { url: url.clone(), token: token.clone(), agent: web::caller(timeout) }
    }

    fn post(&self, method: &str, body: &str) -> Result<Value, ApiError> {
        let url = format!("{}/bot{}/{method}", self.url.reveal().trim_end_matches('/'), self.token.reveal());
        let answer = self.agent.post(&url).header("content-type", "application/json").send(body);
        let mut answer = answer.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        let text = body.read_to_string().map_err(|error| self.unreachable(&error))?;
        let parsed: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() && parsed["ok"] == true {
            return Ok(parsed);
        }
        if let Some(chat) = parsed["parameters"]["migrate_to_chat_id"].as_i64() {
            return Err(ApiError::Moved { chat });
        }
        let said = parsed["description"].as_str().unwrap_or("it gave no reason");
        Err(ApiError::Refused {
            code: parsed["error_code"].as_u64().unwrap_or(status.as_u16().into()),
            description: self.scrubbed(said),
            retry_after: parsed["parameters"]["retry_after"].as_u64(),
        })
    }

    fn unreachable(&self, error: &ureq::Error) -> ApiError {
        let who = mask_path(self.url.reveal());
        ApiError::Unreachable(match error {
            ureq::Error::BadUri(_) => format!("{who} is no address"),
            error => format!("{who} could not be reached: {}", self.scrubbed(&error.to_string())),
        })
    }

    fn scrubbed(&self, text: &str) -> String {
        let short: String = one_line(text).chars().take(300).collect();
        short.replace(self.token.reveal(), "***")
    }
}

impl TelegramApi for Api {
    type Error = ApiError;

    fn request<Params, Output>(&self, method: &str, params: Option<Params>) -> Result<Output, ApiError>
    where
        Params: Serialize + fmt::Debug,
        Output: DeserializeOwned,
    {
        let odd = |error: serde_json::Error| ApiError::Unreachable(self.scrubbed(&format!("{method}: {error}")));
        let body = params.map_or(Ok("{}".to_owned()), |params| serde_json::to_string(&params)).map_err(odd)?;
        serde_json::from_value(self.post(method, &body)?).map_err(odd)
    }

    fn request_with_form_data<Params, Output>(
        &self,
        method: &str,
        params: Params,
        _files: Vec<(&str, PathBuf)>,
    ) -> Result<Output, ApiError>
    where
        Params: Serialize + fmt::Debug,
        Output: DeserializeOwned,
    {
        // No files are sent here.
        self.request(method, Some(params))
    }
}

impl ApiError {
    /// Whether the same call would be in vain for ever.
    pub(super) fn is_for_ever(&self) -> bool {
        matches!(self, ApiError::Refused { code: 400..=404 | 410 | 413, .. })
    }

    /// Whether another program asks for the same messages.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, ApiError::Refused { code: 409, .. })
    }

    /// How long Telegram wants to be left in peace.
    pub(super) fn retry_after(&self) -> Duration {
        match self {
            ApiError::Refused { retry_after: Some(seconds), .. } => Duration::from_secs(*seconds),
            _ => Duration::ZERO,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiError::Refused { code, description, .. } => write!(f, "Telegram refused it ({code}): {description}"),
            ApiError::Moved { chat } => write!(f, "the chat is {chat} now"),
            ApiError::Unreachable(why) => f.write_str(why),
        }
    }
}
