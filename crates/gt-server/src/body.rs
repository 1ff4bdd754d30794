//! Reading what a caller sends: so much, in so long, as JSON; anything else is refused with a word.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::StreamExt as _;
use gt_core::session::TEXT_BYTES_MAX;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::problem::Problem;

/// A message and what is around it; in JSON a text may need twice its room.
const BODY_BYTES_MAX: usize = 2 * TEXT_BYTES_MAX + 64 * 1024;
/// What is too long is read on so far, so that its sender hears the answer.
const DRAIN_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Reads what comes within so long.
pub(crate) async fn json<T: DeserializeOwned>(body: Body, within: Duration) -> Result<T, Problem> {
    parse(&received(body, within).await?)
}

/// The same where nothing is fine too.
pub(crate) async fn json_if_any<T: DeserializeOwned>(body: Body, within: Duration) -> Result<Option<T>, Problem> {
    let bytes = received(body, within).await?;
    if bytes.trim_ascii().is_empty() { Ok(None) } else { parse(&bytes).map(Some) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| Problem::bad("the request is not UTF-8 text"))?;
    serde_json::from_str(text).map_err(|error| Problem::bad(format!("the request cannot be read: {error}")))
}

async fn received(body: Body, within: Duration) -> Result<Vec<u8>, Problem> {
    let late =
        |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the request did not arrive in time").finally();
    timeout(within, whole(body)).await.map_err(late)?
}

async fn whole(body: Body) -> Result<Vec<u8>, Problem> {
    let mut pieces = body.into_data_stream();
    let (mut bytes, mut n_bytes) = (Vec::new(), 0);
    while let Some(piece) = pieces.next().await {
        let piece: Bytes = piece.map_err(|_| Problem::bad("the request was cut off"))?;
        n_bytes += piece.len();
        match n_bytes {
            n if n > DRAIN_BYTES_MAX => break,
            n if n > BODY_BYTES_MAX => bytes = Vec::new(),
            _ => bytes.extend_from_slice(&piece),
        }
    }
    if n_bytes > BODY_BYTES_MAX {
        let message = format!("the request is longer than {BODY_BYTES_MAX} bytes");
        let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message);
        return Err(problem.hint("put it into a file, and send the file's name").finally());
    }
    Ok(bytes)
}
