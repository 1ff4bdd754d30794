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

use crate::channels::NotPosted;
use crate::config::{Secret, mask_path};
use crate::web;

/// Far more than any answer has.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Calls a method of the Bot API. In use it is HTTP.
pub trait CallBot: Send {
    fn call(&self, url: &str, body: &str) -> Result<BotAnswer, NotPosted>;
}

/// What the Bot API answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BotAnswer {
    pub status: u16,
    pub body: String,
}

/// By HTTP.
struct Http(ureq::Agent);

impl CallBot for Http {
    fn call(&self, url: &str, body: &str) -> Result<BotAnswer, NotPosted> {
        let failed = |error: ureq::Error| match error {
            ureq::Error::BadUri(_) => NotPosted::BadAddress,
            error => NotPosted::Unreachable(error.to_string()),
        };
        let mut answer = self.0.post(url).header("content-type", "application/json").send(body).map_err(failed)?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().map_err(failed)?;
        Ok(BotAnswer { status, body })
    }
}

/// A bot, and how it is reached.
pub(super) struct Api {
    url: Secret,
    token: Secret,
    caller: Box<dyn CallBot>,
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
        Api::by(Box::new(Http(web::caller(timeout))), url, token)
    }

    /// One that is reached in another way.
    pub(super) fn by(caller: Box<dyn CallBot>, url: &Secret, token: &Secret) -> Api {
        Api { url: url.clone(), token: token.clone(), caller }
    }

    fn post(&self, method: &str, body: &str) -> Result<Value, ApiError> {
        let url = format!("{}/bot{}/{method}", self.url.reveal().trim_end_matches('/'), self.token.reveal());
        let BotAnswer { status, body } = self.caller.call(&url, body).map_err(|error| self.unreachable(error))?;
        let parsed: Value = serde_json::from_str(&body).unwrap_or_default();
        if (200..300).contains(&status) && parsed["ok"] == true {
            return Ok(parsed);
        }
        if let Some(chat) = parsed["parameters"]["migrate_to_chat_id"].as_i64() {
            return Err(ApiError::Moved { chat });
        }
        let said = parsed["description"].as_str().unwrap_or("it gave no reason");
        Err(ApiError::Refused {
            code: parsed["error_code"].as_u64().unwrap_or(status.into()),
            description: self.scrubbed(said),
            retry_after: parsed["parameters"]["retry_after"].as_u64(),
        })
    }

    fn unreachable(&self, error: NotPosted) -> ApiError {
        let who = mask_path(self.url.reveal());
        ApiError::Unreachable(match error {
            NotPosted::BadAddress => format!("{who} is no address"),
            NotPosted::Unreachable(why) => format!("{who} could not be reached: {}", self.scrubbed(&why)),
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
            ApiError::Refused { .. } if gt_core::defect!("bot-api-not-left-in-peace") => Duration::ZERO,
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
