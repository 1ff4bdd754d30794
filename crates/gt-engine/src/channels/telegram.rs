//! Telegram: answers as messages of a bot, in parts that fit, and a sign that somebody is at work.
//!
//! What comes in is `poll`; whom it concerns, `incoming`; how a text is cut, `parts`; the calls themselves, `api`. A message that was
//! sent when the process died before that was noted comes twice: Telegram knows no keys.

mod api;
mod incoming;
mod notices;
mod parts;
mod poll;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use frankenstein::TelegramApi as _;
use frankenstein::methods::{SendChatActionParams, SendMessageParams};
use frankenstein::types::{ChatAction, ReplyParameters};
use gt_core::session::TurnOutcome;
use gt_store::Parcel;

use self::api::{Api, ApiError};
pub use self::api::{BotAnswer, CallBot};
use self::notices::Notices;
pub(super) use self::poll::Poller;
use super::spec::Spec;
use super::{Channel, Retry, Undelivered};
use crate::config::Secret;
use crate::surroundings::Surroundings;

/// How long one message may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Telegram shows for five seconds that somebody types.
const TYPES_AGAIN: Duration = Duration::from_millis(4500);
/// Chats in which somebody is seen to type at once.
const TYPES_MAX: usize = 20;
/// How long nobody is seen to type when that could not be shown.
const NOT_SHOWN: Duration = Duration::from_secs(30);
/// The topic that every forum has goes without saying.
const GENERAL_TOPIC: i32 = 1;

pub(super) struct Telegram {
    name: String,
    api: Api,
    /// For how long the machine had been up when each chat was last shown that somebody types.
    shown: BTreeMap<String, Duration>,
    /// Nobody is shown that before.
    not_before: Option<Duration>,
    notices: Notices,
    around: Arc<dyn Surroundings>,
}

impl Telegram {
    pub(super) fn new(spec: &Spec, url: &Secret, token: &Secret, around: Arc<dyn Surroundings>) -> Telegram {
        Telegram::by(Api::new(url, token, TIMEOUT), spec, around)
    }

    /// One that reaches the bot in another way.
    pub(super) fn calling(
        caller: Box<dyn CallBot>,
        spec: &Spec,
        url: &Secret,
        token: &Secret,
        around: Arc<dyn Surroundings>,
    ) -> Telegram {
        Telegram::by(Api::by(caller, url, token), spec, around)
    }

    fn by(api: Api, spec: &Spec, around: Arc<dyn Surroundings>) -> Telegram {
        let (shown, notices) = (BTreeMap::new(), Notices::default());
        Telegram { name: spec.name.clone(), api, shown, not_before: None, notices, around }
    }
}

impl Channel for Telegram {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver(&mut self, parcel: &Parcel, arrived: &mut dyn FnMut(usize)) -> Result<(), Undelivered> {
        let recipient = parcel.to.recipient.as_deref().unwrap_or_default();
        // The message clears it; if more is waited for, it is shown again.
        self.shown.remove(recipient);
        let Some(mut place) = Place::parse(recipient) else {
            return Err(Undelivered::for_ever(format!("`{recipient}` is no chat of Telegram's")));
        };
        // Whoever floods a chat is told once that not all of it is answered.
        if parcel.outcome == TurnOutcome::Dropped.as_str() && !self.notices.may_tell(recipient, self.around.uptime()) {
            return Ok(());
        }
        let parts = parts::cut(&parcel.text, &parcel.session);
        let n_sent = if gt_core::defect!("parts-sent-again") { 0 } else { parcel.n_sent };
        for (at, part) in parts.iter().enumerate().skip(n_sent) {
            let answers = parcel.to.reply_to.as_deref().filter(|_| at == 0).and_then(|id| id.parse().ok());
            match send(&self.api, place, answers, part) {
                Err(ApiError::Moved { chat }) => {
                    place.chat = chat;
                    send(&self.api, place, None, part)
                }
                sent => sent,
            }
            .map_err(|error| undelivered(&error))?;
            arrived(at + 1);
        }
        Ok(())
    }

    fn show_work(&mut self, recipients: &[String]) -> Option<Duration> {
        let first = &recipients[..recipients.len().min(TYPES_MAX)];
        self.shown.retain(|recipient, _| first.contains(recipient));
        for recipient in first {
            let now = self.around.uptime();
            let is_shown = self.shown.get(recipient).is_some_and(|at| now.saturating_sub(*at) < TYPES_AGAIN);
            if is_shown || self.not_before.is_some_and(|at| now < at) {
                continue;
            }
            let Some(place) = Place::parse(recipient) else { continue };
            if let Err(error) = type_in(&self.api, place) {
                self.not_before = Some(now + error.retry_after().max(NOT_SHOWN));
            }
            self.shown.insert(recipient.clone(), now);
        }
        let again = *self.shown.values().min()? + TYPES_AGAIN;
        Some(again.max(self.not_before.unwrap_or(again)).saturating_sub(self.around.uptime()))
    }
}

/// A chat, or one topic of it: `CHAT`, `CHAT:TOPIC` or `CHAT:topic:TOPIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    chat: i64,
    topic: Option<i32>,
}

impl Place {
    fn parse(text: &str) -> Option<Place> {
        let (chat, topic) = match text.split_once(':') {
            None => (text, None),
            Some((chat, topic)) => (chat, Some(topic.strip_prefix("topic:").unwrap_or(topic).parse().ok()?)),
        };
        Some(Place { chat: chat.parse().ok()?, topic })
    }

    /// The topic as it is named when something is sent there.
    fn thread(self) -> Option<i32> {
        self.topic.filter(|topic| *topic != GENERAL_TOPIC)
    }
}

/// Sends a message, as an answer to another or not.
fn send(api: &Api, place: Place, answers: Option<i32>, text: &str) -> Result<(), ApiError> {
    let reply = answers.map(|id| ReplyParameters::builder().message_id(id).allow_sending_without_reply(true).build());
    let message = SendMessageParams::builder()
        .chat_id(place.chat)
        .maybe_message_thread_id(place.thread())
        .maybe_reply_parameters(reply)
        .text(text)
        .build();
    api.send_message(&message).map(drop)
}

fn type_in(api: &Api, place: Place) -> Result<(), ApiError> {
    let action = SendChatActionParams::builder()
        .chat_id(place.chat)
        .maybe_message_thread_id(place.topic)
        .action(ChatAction::Typing)
        .build();
    api.send_chat_action(&action).map(drop)
}

fn undelivered(error: &ApiError) -> Undelivered {
    let retry = if error.is_for_ever() { Retry::Never } else { Retry::After(error.retry_after()) };
    Undelivered { error: error.to_string(), retry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipient_is_a_chat_or_a_topic_of_one() {
        for (text, place) in [
            ("7", Some((7, None))),
            ("-100123", Some((-100_123, None))),
            ("-100123:4", Some((-100_123, Some(4)))),
            ("-100123:topic:4", Some((-100_123, Some(4)))),
            ("", None),
            ("@anna", None),
            ("7:", None),
            ("7:topic:x", None),
        ] {
            assert_eq!(Place::parse(text), place.map(|(chat, topic)| Place { chat, topic }), "{text}");
        }
        assert_eq!(Place { chat: 7, topic: Some(GENERAL_TOPIC) }.thread(), None);
    }
}
