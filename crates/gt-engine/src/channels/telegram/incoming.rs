//! Whom a message concerns: who wrote it, whether they may, whether it is for us, and which session it belongs to.

use frankenstein::types::{ChatType, Message, User};

/// Who may write: ids of users and chats, and names of users.
#[derive(Debug, Clone)]
pub(super) struct Allow {
    ids: Vec<i64>,
    names: Vec<String>,
}

impl Allow {
    pub(super) fn new(entries: &[String]) -> Allow {
        let (mut ids, mut names) = (Vec::new(), Vec::new());
        for entry in entries.iter().map(|entry| entry.trim()) {
            match entry.parse() {
                Ok(id) => ids.push(id),
                Err(_) => names.push(entry.trim_start_matches('@').to_lowercase()),
            }
        }
        Allow { ids, names }
    }

    fn has(&self, chat: i64, sender: &Sender) -> bool {
        let is_named = |name: &String| self.names.contains(&name.to_lowercase());
        gt_core::defect!("stranger-let-in")
            || self.ids.contains(&chat)
            || self.ids.contains(&sender.id)
            || sender.name.as_ref().is_some_and(is_named)
    }
}

/// Who wrote something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) id: i64,
    pub(super) name: Option<String>,
}

/// What there is to do about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Incoming {
    /// It is for us.
    Said { from: Origin, text: String },
    /// It is for us, and nothing that an agent could read.
    Unreadable { from: Origin },
    /// Whoever wrote it may not.
    Stranger { sender: Sender, chat: i64 },
    /// It is not for us.
    Nothing,
}

/// Where it comes from, and where its answer goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) session: String,
    pub(super) sender: Sender,
    /// The chat, with its topic.
    pub(super) recipient: String,
    pub(super) message: i32,
}

/// Judges a message that the bot was shown; `channel` is the channel's name.
pub(super) fn judge(message: &Message, is_edited: bool, bot: &User, allow: &Allow, channel: &str) -> Incoming {
    let is_dm = match message.chat.type_field {
        ChatType::Private => true,
        ChatType::Group | ChatType::Supergroup => false,
        ChatType::Channel => return Incoming::Nothing,
    };
    let Some(sender) = sender(message) else { return Incoming::Nothing };
    let text = message.text.as_ref().or(message.caption.as_ref()).filter(|text| !text.trim().is_empty());
    let words = text.map_or("", String::as_str);
    let has_content = text.is_some() || has_medium(message) && !is_edited;
    let is_for_another = names_another(words, bot);
    let is_for_us =
        is_dm || words.trim_start().starts_with('/') || mentions(message, words, bot) || answers(message, bot);
    if !has_content || is_for_another || !is_for_us {
        return Incoming::Nothing;
    }
    if !allow.has(message.chat.id, &sender) {
        return Incoming::Stranger { sender, chat: message.chat.id };
    }
    let from = origin(message, sender, is_dm, channel);
    match text {
        Some(text) => Incoming::Said { from, text: text.clone() },
        None => Incoming::Unreadable { from },
    }
}

/// A person, or a chat that speaks as one; bots do not talk to bots.
fn sender(message: &Message) -> Option<Sender> {
    if let Some(chat) = &message.sender_chat {
        return Some(Sender { id: chat.id, name: chat.username.clone() });
    }
    let user = message.from.as_ref().filter(|user| !user.is_bot)?;
    Some(Sender { id: i64::try_from(user.id).ok()?, name: user.username.clone() })
}

fn origin(message: &Message, sender: Sender, is_dm: bool, channel: &str) -> Origin {
    let chat = message.chat.id;
    let topic = message.message_thread_id.filter(|_| message.is_topic_message == Some(true));
    let (session, recipient) = match (is_dm, topic) {
        (true, None) => (format!("dm:{channel}:{}", sender.id), chat.to_string()),
        (true, Some(topic)) => (format!("dm:{channel}:{}:topic:{topic}", sender.id), format!("{chat}:{topic}")),
        (false, None) if gt_core::defect!("group-answered-in-private") => {
            (format!("group:{channel}:{chat}"), sender.id.to_string())
        }
        (false, None) => (format!("group:{channel}:{chat}"), chat.to_string()),
        (false, Some(topic)) => (format!("group:{channel}:{chat}:topic:{topic}"), format!("{chat}:{topic}")),
    };
    Origin { session, sender, recipient, message: message.message_id }
}

/// Whether it is a command that names another bot.
fn names_another(words: &str, bot: &User) -> bool {
    let first = words.split_whitespace().next().unwrap_or_default();
    let named = first.strip_prefix('/').and_then(|command| command.split_once('@'));
    named.is_some_and(|(_, whom)| !is_called(bot, whom))
}

fn is_called(bot: &User, name: &str) -> bool {
    bot.username.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name))
}

fn mentions(message: &Message, words: &str, bot: &User) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = words.split('@').skip(1).map(|rest| rest.split(|c| !is_word(c)).next().unwrap_or_default());
    let entities = message.entities.iter().chain(&message.caption_entities).flatten();
    let mut linked = entities.filter_map(|entity| entity.user.as_ref());
    names.into_iter().any(|name| is_called(bot, name)) || linked.any(|user| user.id == bot.id)
}

/// Whether it answers the bot. In a topic everything seems to answer the message that opened it.
fn answers(message: &Message, bot: &User) -> bool {
    let answered = message.reply_to_message.as_ref().filter(|answered| answered.forum_topic_created.is_none());
    answered.and_then(|answered| answered.from.as_ref()).is_some_and(|user| user.id == bot.id)
}

/// Whether somebody sent something: what Telegram itself tells is nothing to answer.
fn has_medium(message: &Message) -> bool {
    message.animation.is_some()
        || message.audio.is_some()
        || message.contact.is_some()
        || message.dice.is_some()
        || message.document.is_some()
        || message.game.is_some()
        || message.location.is_some()
        || message.photo.is_some()
        || message.poll.is_some()
        || message.sticker.is_some()
        || message.story.is_some()
        || message.venue.is_some()
        || message.video.is_some()
        || message.video_note.is_some()
        || message.voice.is_some()
}

#[cfg(test)]
mod tests;
