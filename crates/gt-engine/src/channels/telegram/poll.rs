//! Reading what people write to the bot, by long polling.
//!
//! What was read counts as read only once it is stored, so a crash loses nothing; what comes again is taken once, by its
//! number. What is wrong with a message is said to its sender, but not to a flood.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use frankenstein::TelegramApi as _;
use frankenstein::methods::GetUpdatesParams;
use frankenstein::response::MethodResponse;
use frankenstein::types::{AllowedUpdate, Message, User};
use frankenstein::updates::{Update, UpdateContent};
use gt_core::text::one_line;
use gt_store::{Address, NewMessage, SendOutcome, Stamp, Store, StoreError};
use serde_json::Value;

use super::api::{Api, ApiError, CallBot};
use super::incoming::{Allow, Incoming, Origin, Sender, judge};
use super::notices::Notices;
use super::{Place, send};
use crate::backoff::Backoff;
use crate::channels::Common;
use crate::channels::signal::Signal;
use crate::channels::spec::Spec;
use crate::config::{Secret, join};
use crate::error::{TownError, chain};
use crate::surroundings::Surroundings;
use crate::talk::{self, Taken};

/// How long Telegram keeps us waiting when there is nothing.
const POLL_SECONDS: u32 = 30;
/// Updates that are read together.
const UPDATES_MAX: u32 = 50;
/// How long a call may take in all.
const TIMEOUT: Duration = Duration::from_secs(45);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Strangers, and updates that cannot be read, of which the log tells.
const NAMED_MAX: usize = 20;

const ONLY_TEXT: &str = "I understand only text.";
const FULL: &str = "Too many messages wait here; this one was not taken. Please try again later.";

pub(in crate::channels) struct Poller {
    common: Common,
    spec: Spec,
    allow: Allow,
    api: Api,
    signal: Arc<Signal>,
    /// Wakes whoever delivers: somebody waits for an answer now.
    delivers: Arc<Signal>,
    notices: Notices,
    strangers: BTreeSet<i64>,
    n_refused: u64,
    n_unreadable: usize,
    around: Arc<dyn Surroundings>,
    /// What was found out at the start, once it was.
    reader: Option<Reader>,
    /// What was said last of what is wrong.
    said: Option<String>,
    pause: Backoff,
}

/// What was found out at the start.
struct Reader {
    /// Each commit wakes the daemon.
    store: Store,
    bot: User,
    /// The number of the next update; it is Telegram's, who may begin anew after a week.
    offset: Option<i64>,
}

/// Why nothing could be read.
enum Trouble {
    Api(ApiError),
    Town(TownError),
}

impl Poller {
    pub(in crate::channels) fn new(
        common: Common,
        spec: &Spec,
        url: &Secret,
        token: &Secret,
        signal: Arc<Signal>,
        delivers: Arc<Signal>,
        around: Arc<dyn Surroundings>,
    ) -> Poller {
        Poller::by(Api::new(url, token, TIMEOUT), common, spec, signal, delivers, around)
    }

    /// One that reaches the bot in another way, and has a thread of its own or not.
    pub(in crate::channels) fn calling(
        caller: Box<dyn CallBot>,
        common: Common,
        spec: &Spec,
        url: &Secret,
        token: &Secret,
        around: Arc<dyn Surroundings>,
    ) -> Poller {
        Poller::by(Api::by(caller, url, token), common, spec, Signal::new(), Signal::new(), around)
    }

    fn by(
        api: Api,
        common: Common,
        spec: &Spec,
        signal: Arc<Signal>,
        delivers: Arc<Signal>,
        around: Arc<dyn Surroundings>,
    ) -> Poller {
        Poller {
            common,
            allow: Allow::new(&spec.allow),
            spec: spec.clone(),
            api,
            signal,
            delivers,
            notices: Notices::default(),
            strangers: BTreeSet::new(),
            n_refused: 0,
            n_unreadable: 0,
            around,
            reader: None,
            said: None,
            pause: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
        }
    }

    pub(in crate::channels) fn serve(mut self) {
        while !self.signal.is_stopped() {
            if let Some(span) = self.round() {
                self.signal.rest(span);
            }
        }
    }

    /// Reads what there is, or waits for it; says how long to rest after something went wrong.
    pub(in crate::channels) fn round(&mut self) -> Option<Duration> {
        // It is only lost if this process dies meanwhile.
        let mut reader = self.reader.take();
        let read = self.read(&mut reader);
        self.reader = reader;
        match read {
            Ok(()) => {
                if self.said.take().is_some() {
                    self.say("reads messages again");
                }
                self.pause.reset();
                None
            }
            Err(trouble) => {
                let words = trouble.words();
                if self.said.as_ref() != Some(&words) {
                    self.say(&words);
                    self.said = Some(words);
                }
                Some(self.pause.grow().max(trouble.retry_after()))
            }
        }
    }

    fn say(&self, words: &str) {
        (self.common.say)(&format!("the channel {}: {words}", self.spec.name));
    }

    fn read(&mut self, reader: &mut Option<Reader>) -> Result<(), Trouble> {
        let reader = match reader {
            Some(reader) => reader,
            None => reader.insert(self.begin()?),
        };
        let asked = GetUpdatesParams::builder()
            .maybe_offset(reader.offset)
            .limit(UPDATES_MAX)
            .timeout(POLL_SECONDS)
            .allowed_updates(vec![AllowedUpdate::Message, AllowedUpdate::EditedMessage])
            .build();
        let answer: MethodResponse<Vec<Value>> = self.api.request("getUpdates", Some(asked))?;
        if self.signal.is_stopped() {
            return Ok(());
        }
        let mut read = None;
        let taken = answer.result.into_iter().try_for_each(|update| {
            let Some(id) = update["update_id"].as_i64() else { return Ok(()) };
            if gt_core::defect!("offset-before-store") {
                read = Some(id);
            }
            self.take(reader, id, update)?;
            read = Some(id);
            Ok(())
        });
        if let Some(id) = read {
            reader.offset = Some(id + 1);
            let stamp = Stamp::new(self.around.now(), &self.common.actor);
            reader.store.mark_channel(&self.spec.name, id, &stamp)?;
            self.delivers.nudge();
        }
        taken
    }

    fn begin(&self) -> Result<Reader, Trouble> {
        let bot = self.api.get_me()?.result;
        let mut store = self.around.open_store(&self.common.town)?;
        let offset = store.channel_mark(&self.spec.name)?.map(|mark| mark + 1);
        self.say(&format!("reads messages to @{}", one_line(bot.username.as_deref().unwrap_or_default())));
        Ok(Reader { store, bot, offset })
    }

    fn take(&mut self, reader: &mut Reader, id: i64, update: Value) -> Result<(), Trouble> {
        let (message, is_edited): (Box<Message>, bool) = match serde_json::from_value::<Update>(update) {
            Ok(Update { content: UpdateContent::Message(message), .. }) => (message, false),
            Ok(Update { content: UpdateContent::EditedMessage(message), .. }) => (message, true),
            Ok(_) => return Ok(()),
            Err(error) => {
                self.n_unreadable += 1;
                if self.n_unreadable <= NAMED_MAX {
                    self.say(&format!("update {id} is left out, nobody can read it: {}", one_line(&error.to_string())));
                }
                return Ok(());
            }
        };
        match judge(&message, is_edited, &reader.bot, &self.allow, &self.spec.name) {
            Incoming::Nothing => {}
            Incoming::Stranger { sender, chat } => self.refuse(&sender, chat),
            Incoming::Unreadable { from } => self.notice(&from, ONLY_TEXT),
            Incoming::Said { from, text } => self.pass_on(reader, id, &from, text)?,
        }
        Ok(())
    }

    fn pass_on(&mut self, reader: &mut Reader, id: i64, from: &Origin, text: String) -> Result<(), Trouble> {
        let settings = self.common.settings();
        let sender = format!("{}:{}", self.spec.name, from.sender.id);
        let stamp = Stamp::new(self.around.now(), &sender);
        let message = NewMessage {
            session: from.session.clone(),
            text,
            sender,
            channel: self.spec.name.clone(),
            source: Some(id.to_string()).filter(|_| !gt_core::defect!("update-taken-again")),
            agent: self.spec.agent.clone(),
            lane: self.spec.lane.clone(),
            deliver: Some(Address {
                channel: self.spec.name.clone(),
                recipient: Some(from.recipient.clone()),
                reply_to: Some(from.message.to_string()),
            }),
            parent: None,
            is_whole: false,
        };
        let bot = reader.bot.username.as_deref();
        match talk::take(&mut reader.store, &settings, &message, bot, &stamp) {
            Ok(Taken::Sent(sent)) if sent.outcome == SendOutcome::Full => self.notice(from, FULL),
            Ok(_) => {}
            Err(TownError::Store(StoreError::Refused(why))) => {
                self.notice(from, &format!("This was not taken: {why}."));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Says something to whoever wrote, if they were not told anything lately. Whether it arrives is not worth another try.
    fn notice(&mut self, to: &Origin, words: &str) {
        if !self.notices.may_tell(&to.recipient, self.around.uptime()) {
            return;
        }
        if let Some(place) = Place::parse(&to.recipient) {
            send(&self.api, place, Some(to.message), words).unwrap_or_default();
        }
    }

    /// Strangers get no answer; the first of them are named to the owner, who may know them.
    fn refuse(&mut self, sender: &Sender, chat: i64) {
        self.n_refused += 1;
        if self.strangers.len() < NAMED_MAX && self.strangers.insert(sender.id) {
            let name = sender.name.as_ref().map(|name| format!(" (@{})", one_line(name))).unwrap_or_default();
            let key = join(&["channels", &self.spec.name, "allow"]);
            self.say(&format!("user {}{name} in chat {chat} may not write, `{key}` names neither", sender.id));
        } else if self.n_refused.is_multiple_of(1000) {
            self.say(&format!("{} messages of strangers were not taken so far", self.n_refused));
        }
    }
}

impl Trouble {
    fn words(&self) -> String {
        match self {
            Trouble::Api(error) if error.is_conflict() => {
                format!("messages cannot be read as long as another program reads them: {error}")
            }
            Trouble::Api(error) => format!("messages cannot be read: {error}"),
            Trouble::Town(error) => format!("messages cannot be stored: {}", chain(error)),
        }
    }

    fn retry_after(&self) -> Duration {
        match self {
            Trouble::Api(error) => error.retry_after(),
            Trouble::Town(_) => Duration::ZERO,
        }
    }
}

impl From<ApiError> for Trouble {
    fn from(error: ApiError) -> Trouble {
        Trouble::Api(error)
    }
}

impl From<TownError> for Trouble {
    fn from(error: TownError) -> Trouble {
        Trouble::Town(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Town(error.into())
    }
}
