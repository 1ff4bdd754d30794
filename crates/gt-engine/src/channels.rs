//! Channels: ways by which answers reach people and programs, and messages come from them. // SPEC L6
//!
//! Owns which channels run: those of the config, each on threads of its own, so that a slow or dead receiver holds up nobody
//! else. A change of the config is taken at once: what it says anew starts anew. What is to be delivered is in the store's
//! outbox until it has arrived or was given up; an agent never runs again because of it.

mod deliverer;
mod health;
mod signal;
mod spec;
mod telegram;
mod webhook;

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gt_store::{Parcel, Stamp, Store, StoreError};

use self::deliverer::Deliverer;
pub use self::deliverer::Pause;
pub use self::health::{ChannelTrouble, troubles};
use self::signal::Signal;
use self::spec::{Kind, Spec};
pub use self::telegram::{BotAnswer, CallBot};
use self::telegram::{Poller, Telegram};
use self::webhook::Webhook;
pub use self::webhook::{NotPosted, Post, Posted};
use crate::config::Config;
use crate::settings::Settings;
use crate::surroundings::{Machine, Surroundings};
use crate::town::Town;

/// How long the end of the daemon waits for what is on its way to be noted.
const END_MAX: Duration = Duration::from_secs(5);

/// A way to deliver answers.
pub trait Channel: Send {
    /// As the config calls it.
    fn name(&self) -> &str;

    /// Delivers what is left of a parcel; `arrived` hears how many of its parts have, whenever that grows.
    fn deliver(&mut self, parcel: &Parcel, arrived: &mut dyn FnMut(usize)) -> Result<(), Undelivered>;

    /// Shows these recipients, who wait for an answer, that somebody is at it; says when to do so again.
    fn show_work(&mut self, _recipients: &[String]) -> Option<Duration> {
        None
    }
}

/// Why something has not arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// In words that hold no secret.
    pub error: String,
    pub retry: Retry,
}

/// Whether it may arrive later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It is tried again, not before this span is over.
    After(Duration),
    /// It never will.
    Never,
}

impl Undelivered {
    fn for_now(error: impl Into<String>) -> Undelivered {
        Undelivered { error: error.into(), retry: Retry::After(Duration::ZERO) }
    }

    fn for_ever(error: impl Into<String>) -> Undelivered {
        Undelivered { error: error.into(), retry: Retry::Never }
    }
}

/// Says something to whoever reads the daemon's log.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Why a channel would refuse for good what a session has to say, if it would.
pub fn refusal(config: &Config, channel: &str, session: &str) -> Option<String> {
    let spec = Spec::read(config, channel).ok()?;
    matches!(spec.kind, Kind::Webhook { .. }).then(|| webhook::refusal(channel, &spec.allow, session))?
}

/// Delivers by one channel, without a thread: whoever has it says when. The decisions are those of the daemon.
pub struct Courier(Deliverer);

impl Courier {
    /// For the web hook that the config calls so; the error says what is missing there.
    pub fn by(
        caller: Box<dyn Post>,
        name: &str,
        store: Store,
        town: &Town,
        settings: &Arc<Settings>,
        around: Arc<dyn Surroundings>,
    ) -> Result<Courier, String> {
        let spec = Spec::read(&settings.config, name)?;
        let Kind::Webhook { url, secret } = &spec.kind else { return Err(format!("`{name}` is no web hook")) };
        let channel = Box::new(Webhook::by(caller, &spec, url, secret.as_ref()));
        Ok(Courier(Deliverer::new(channel, store, Common::silent(town, settings), Signal::new(), around)))
    }

    /// For the bot of Telegram's that the config calls so.
    pub fn by_bot(
        caller: Box<dyn CallBot>,
        name: &str,
        store: Store,
        town: &Town,
        settings: &Arc<Settings>,
        around: Arc<dyn Surroundings>,
    ) -> Result<Courier, String> {
        let spec = Spec::read(&settings.config, name)?;
        let Kind::Telegram { url, token } = &spec.kind else { return Err(format!("`{name}` is no bot")) };
        let channel = Box::new(Telegram::calling(caller, &spec, url, token, Arc::clone(&around)));
        Ok(Courier(Deliverer::new(channel, store, Common::silent(town, settings), Signal::new(), around)))
    }

    /// Delivers what is due; says what to wait for.
    pub fn round(&mut self) -> Pause {
        self.0.round()
    }
}

/// Reads what people write to a bot, without a thread: whoever has it says when. The decisions are those of the daemon.
pub struct Listener(Poller);

impl Listener {
    /// For the bot of Telegram's that the config calls so; the error says what is missing there.
    pub fn by(
        caller: Box<dyn CallBot>,
        name: &str,
        town: &Town,
        settings: &Arc<Settings>,
        around: Arc<dyn Surroundings>,
    ) -> Result<Listener, String> {
        let spec = Spec::read(&settings.config, name)?;
        let Kind::Telegram { url, token } = &spec.kind else { return Err(format!("`{name}` is no bot")) };
        let common = Common::silent(town, settings);
        Ok(Listener(Poller::calling(caller, common, &spec, url, token, around)))
    }

    /// Reads what there is, or waits for it; says how long to rest after something went wrong.
    pub fn round(&mut self) -> Option<Duration> {
        self.0.round()
    }
}

/// What all threads of the channels have in common.
#[derive(Clone)]
struct Common {
    town: Town,
    actor: String,
    /// The last good ones.
    settings: Arc<Mutex<Arc<Settings>>>,
    say: Say,
}

impl Common {
    /// For whoever has no thread, and no log.
    fn silent(town: &Town, settings: &Arc<Settings>) -> Common {
        let settings = Arc::new(Mutex::new(Arc::clone(settings)));
        Common { town: town.clone(), actor: "daemon".to_owned(), settings, say: Arc::new(|_| {}) }
    }

    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The daemon's end of them.
pub struct Channels {
    common: Common,
    running: BTreeMap<String, Running>,
    /// What is wrong with those that do not run, so that it is said once.
    flaws: BTreeMap<String, String>,
    /// Whether these are noted for commands.
    has_noted: bool,
    /// Held by every thread that delivers: closed when all of them have ended.
    alive: Sender<()>,
    all_ended: Receiver<()>,
}

struct Running {
    spec: Spec,
    /// What wakes and ends each of its threads.
    signals: Vec<Arc<Signal>>,
    delivers: JoinHandle<()>,
}

impl Channels {
    /// None run yet: `apply` starts them.
    pub fn new(town: &Town, actor: &str, settings: &Arc<Settings>, say: Say) -> Channels {
        let (alive, all_ended) = mpsc::channel();
        let settings = Arc::new(Mutex::new(Arc::clone(settings)));
        let common = Common { town: town.clone(), actor: actor.to_owned(), settings, say };
        Channels { common, running: BTreeMap::new(), flaws: BTreeMap::new(), has_noted: false, alive, all_ended }
    }

    /// Has those run that the config names, as it says now; the others end.
    pub fn apply(&mut self, settings: &Arc<Settings>) {
        *self.common.settings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(settings);
        let config = &settings.config;
        let mut before = std::mem::take(&mut self.running);
        let mut flaws = BTreeMap::new();
        for name in config.names("channels") {
            match Spec::read(config, name) {
                Err(flaw) => drop(flaws.insert(name.to_owned(), flaw)),
                Ok(spec) => match before.remove(name) {
                    Some(running) if running.spec == spec => drop(self.running.insert(name.to_owned(), running)),
                    old => self.start(spec, old.map(Running::stop)),
                },
            }
        }
        for (name, flaw) in &flaws {
            if self.flaws.get(name) != Some(flaw) {
                (self.common.say)(&format!("the channel {name} does not run: {flaw}"));
            }
        }
        // One that was left by an earlier daemon names its process, and is not believed.
        if (self.flaws != flaws || !self.has_noted) && health::note(&self.common.town, &flaws).is_ok() {
            self.has_noted = true;
        }
        self.flaws = flaws;
        for (name, running) in before {
            running.stop();
            (self.common.say)(&format!("the channel {name} has ended"));
        }
    }

    /// Something may be there to be delivered, or somebody waits for an answer.
    pub fn nudge(&self) {
        self.running.values().flat_map(|running| &running.signals).for_each(|signal| signal.nudge());
    }

    /// Notes why something waits that is for a channel that does not run, and gives it up once it has waited for as long as
    /// anything is tried.
    pub fn give_up_stranded(&self, store: &mut Store, stamp: &Stamp) -> Result<(), StoreError> {
        let names: Vec<&str> = self.running.keys().map(String::as_str).collect();
        store.note_stranded(&names, stamp)?;
        for parcel in store.parcels_of_others(&names, stamp.now - deliverer::GIVE_UP_AFTER)? {
            let why = format!("there is no channel `{}` that runs", parcel.to.channel);
            store.not_delivered(&parcel, &why, None, stamp)?;
        }
        Ok(())
    }

    /// Begins nothing any more, and waits for what is on its way to be noted, but not for long.
    pub fn end(self) {
        self.running.into_values().for_each(|running| drop(running.stop()));
        drop(self.alive);
        // Nobody sends anything: all have ended, or it took too long.
        self.all_ended.recv_timeout(END_MAX).unwrap_or_default();
    }

    /// Starts a channel; whoever delivered by it before comes to his end first, so that nothing is sent twice.
    fn start(&mut self, spec: Spec, before: Option<JoinHandle<()>>) {
        let store = match Store::open(&self.common.town.store_path()) {
            Ok(store) => store,
            Err(error) => return (self.common.say)(&format!("the channel {} does not run: {error}", spec.name)),
        };
        if let Some(warning) = spec.warning() {
            (self.common.say)(&warning);
        }
        let signal = Signal::new();
        let mut signals = vec![Arc::clone(&signal)];
        let channel: Box<dyn Channel> = match &spec.kind {
            Kind::Webhook { url, secret } => Box::new(Webhook::new(&spec, url, secret.as_ref())),
            Kind::Telegram { url, token } => {
                let own = Signal::new();
                signals.push(Arc::clone(&own));
                let (common, delivers) = (self.common.clone(), Arc::clone(&signal));
                let poller = Poller::new(common, &spec, url, token, own, delivers, Machine::here());
                thread::spawn(move || poller.serve());
                Box::new(Telegram::new(&spec, url, token, Machine::here()))
            }
        };
        let mut deliverer = Deliverer::new(channel, store, self.common.clone(), signal, Machine::here());
        let alive = self.alive.clone();
        let delivers = thread::spawn(move || {
            // One that panicked has ended, too.
            before.map_or(Ok(()), JoinHandle::join).unwrap_or_default();
            deliverer.serve();
            drop(alive);
        });
        self.running.insert(spec.name.clone(), Running { spec, signals, delivers });
    }
}

impl Running {
    fn stop(self) -> JoinHandle<()> {
        self.signals.iter().for_each(|signal| signal.stop());
        self.delivers
    }
}
