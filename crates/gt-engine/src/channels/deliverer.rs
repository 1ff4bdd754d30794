//! Whoever delivers by one channel: takes what is due from the outbox, in order for each recipient, until it has arrived or
//! is given up. // SPEC L6
//!
//! How a parcel is delivered is the channel's. What was tried and cannot be noted in the store is remembered here, and
//! not sent again before it is noted; only what was sent and not noted before a crash is sent again, under the same key.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gt_core::defect;
use gt_store::{Parcel, Stamp, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use super::signal::Signal;
use super::{Channel, Common, Retry};
use crate::backoff::Backoff;
use crate::error::chain;
use crate::surroundings::Surroundings;

/// Parcels, each of another recipient, that are looked at together.
const BATCH: usize = 32;
/// Parcels of one recipient that are delivered before the next recipient's turn.
const IN_A_ROW: usize = 50;
/// How long to wait before what failed here, and not at a receiver, is tried again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const FIRST_SPAN: Duration = Duration::from_secs(1);
const SPAN_MAX: Duration = Duration::from_mins(5);
/// How long it is tried.
pub(super) const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(24);

pub(super) struct Deliverer {
    channel: Box<dyn Channel>,
    store: Store,
    common: Common,
    signal: Arc<Signal>,
    around: Arc<dyn Surroundings>,
    /// What became of parcels, as long as that is not noted.
    unnoted: BTreeMap<i64, Outcome>,
    /// Parts of parcels that have arrived, whether that could be noted or not.
    parts: BTreeMap<i64, usize>,
    pause: Backoff,
    /// Whether the last try failed, and that was said.
    is_failing: bool,
    /// Whether the store has failed, and that was said.
    has_complained: bool,
}

/// What to wait for before the next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// News, or the end of this span.
    Until(Option<Duration>),
    /// The end of this span, whatever there is to do.
    Rest(Duration),
}

/// What became of a try.
#[derive(Debug, Clone)]
enum Outcome {
    Arrived,
    Failed { error: String, again: Option<Timestamp> },
}

impl Deliverer {
    /// With a plain store: that something has arrived wakes nobody.
    pub(super) fn new(
        channel: Box<dyn Channel>,
        store: Store,
        common: Common,
        signal: Arc<Signal>,
        around: Arc<dyn Surroundings>,
    ) -> Deliverer {
        Deliverer {
            channel,
            store,
            common,
            signal,
            around,
            unnoted: BTreeMap::new(),
            parts: BTreeMap::new(),
            pause: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            is_failing: false,
            has_complained: false,
        }
    }

    pub(super) fn serve(&mut self) {
        while !self.signal.is_stopped() {
            match self.round() {
                Pause::Until(span) => drop(self.signal.wait(span)),
                Pause::Rest(span) => self.signal.rest(span),
            }
        }
    }

    /// Delivers what is due; says what to wait for.
    pub(super) fn round(&mut self) -> Pause {
        match self.look() {
            Ok(span) => {
                self.pause.reset();
                self.has_complained = false;
                Pause::Until(span)
            }
            Err(error) => {
                self.complain(&error);
                Pause::Rest(self.pause.grow())
            }
        }
    }

    /// Says that the store fails, once until it works again.
    fn complain(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.has_complained, true) {
            (self.common.say)(&format!("the channel {} waits: {}", self.channel.name(), chain(error)));
        }
    }

    /// Delivers what is due; says how long there is nothing to do.
    fn look(&mut self) -> Result<Option<Duration>, StoreError> {
        let name = self.channel.name().to_owned();
        loop {
            let due = self.store.due_parcels(&name, self.around.now(), BATCH)?;
            if due.is_empty() {
                break;
            }
            for parcel in due {
                self.deliver_row(parcel)?;
                if self.signal.is_stopped() {
                    return Ok(None);
                }
            }
        }
        // After that, so that nobody is seen at work on what has just been answered.
        let awaiting = self.store.awaiting(&name)?;
        let shown = self.channel.show_work(&awaiting);
        let next = self.store.next_parcel_of(&name)?.filter(|_| !defect!("delivery-deadline-forgotten"));
        let next = next.map(|at| Duration::try_from(at.duration_since(self.around.now())).unwrap_or_default());
        Ok([shown, next].into_iter().flatten().min())
    }

    /// Delivers a parcel, and those that wait behind it.
    fn deliver_row(&mut self, first: Parcel) -> Result<(), StoreError> {
        let mut next = Some(first);
        for _ in 0..IN_A_ROW {
            let Some(parcel) = next.take().filter(|_| !self.signal.is_stopped()) else { break };
            if self.deliver(&parcel)? {
                next = self.store.due_parcel_after(&parcel, self.around.now())?;
            }
        }
        Ok(())
    }

    /// Says whether the next is due: it has arrived, or is given up.
    fn deliver(&mut self, parcel: &Parcel) -> Result<bool, StoreError> {
        let outcome = match self.unnoted.get(&parcel.id) {
            Some(known) if !defect!("unnoted-delivery-sent-again") => known.clone(),
            _ => self.try_parcel(parcel),
        };
        self.unnoted.insert(parcel.id, outcome.clone());
        let stamp = self.stamp();
        let is_over = match &outcome {
            Outcome::Arrived => {
                self.store.delivered(parcel.id, &stamp)?;
                true
            }
            Outcome::Failed { error, again } => {
                self.store.not_delivered(parcel, error, *again, &stamp)?;
                again.is_none()
            }
        };
        self.unnoted.remove(&parcel.id);
        if is_over {
            self.parts.remove(&parcel.id);
        }
        Ok(is_over)
    }

    /// Sends what is left of a parcel.
    fn try_parcel(&mut self, parcel: &Parcel) -> Outcome {
        let n_known = self.parts.get(&parcel.id).copied().unwrap_or(0);
        let parcel = Parcel { n_sent: parcel.n_sent.max(n_known), ..parcel.clone() };
        let (store, parts) = (&mut self.store, &mut self.parts);
        let stamp = Stamp::new(self.around.now(), &self.common.actor);
        let mut arrived = |n_parts: usize| {
            parts.insert(parcel.id, n_parts);
            // For whoever comes after this process; what it cannot find noted is sent again.
            store.part_arrived(parcel.id, n_parts, &stamp).unwrap_or_default();
        };
        match self.channel.deliver(&parcel, &mut arrived) {
            Ok(()) => {
                self.is_failing = false;
                Outcome::Arrived
            }
            Err(failure) => {
                let again = again_at(parcel.made_at, parcel.tries, failure.retry, self.around.now());
                self.tell(&parcel, &failure.error, again.is_some());
                Outcome::Failed { error: failure.error, again }
            }
        }
    }

    /// Says that it does not work, once until it works again; what is given up is always said.
    fn tell(&mut self, parcel: &Parcel, error: &str, is_tried_again: bool) {
        let name = self.channel.name();
        if !is_tried_again {
            (self.common.say)(&format!(
                "the channel {name} has given up {} of {}: {error}",
                parcel.key, parcel.session
            ));
        } else if !std::mem::replace(&mut self.is_failing, true) {
            (self.common.say)(&format!("the channel {name} could not deliver and tries again: {error}"));
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(self.around.now(), &self.common.actor)
    }
}

/// When something that did not arrive is tried again; `None`: never.
fn again_at(made_at: Timestamp, tries: i64, retry: Retry, now: Timestamp) -> Option<Timestamp> {
    let Retry::After(least) = retry else { return None };
    let least = if defect!("receiver-not-left-in-peace") { Duration::ZERO } else { least };
    if defect!("delivery-given-up-at-once") {
        return None;
    }
    if now.duration_since(made_at) >= GIVE_UP_AFTER {
        return None;
    }
    let doublings = u32::try_from(tries.clamp(0, 16)).unwrap_or(0);
    let span = FIRST_SPAN.saturating_mul(1 << doublings).min(SPAN_MAX).max(least);
    let span = SignedDuration::try_from(span).unwrap_or(GIVE_UP_AFTER).min(GIVE_UP_AFTER);
    Some(now + span)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use gt_store::{Address, Moment};

    use super::*;
    use crate::channels::Undelivered;
    use crate::config::Config;
    use crate::settings::Settings;
    use crate::surroundings::Machine;
    use crate::town::Town;

    /// A channel whose receiver takes everything, and counts it.
    struct Counting(Arc<AtomicUsize>);

    impl Channel for Counting {
        fn name(&self) -> &'static str {
            "hook"
        }

        fn deliver(&mut self, _: &Parcel, _: &mut dyn FnMut(usize)) -> Result<(), Undelivered> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    #[test]
    fn what_arrived_and_could_not_be_noted_is_noted_later_and_not_sent_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let stamp = Stamp::new(Timestamp::now(), "tester");
        let (town, _) = Town::init(dir.path(), &stamp).expect("it can be made");
        let mut store = Store::open(&town.store_path()).expect("it is there");
        let to = Address { channel: "hook".to_owned(), recipient: None, reply_to: None };
        for key in ["first", "second"] {
            store.post(key, &to, "notice", "text", &stamp).expect("it is kept");
        }
        let (n_sent, is_full) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
        let (channel, refuses) = (Box::new(Counting(Arc::clone(&n_sent))), Arc::clone(&is_full));
        let mut own = Store::open(&town.store_path()).expect("it is there");
        own.set_gate(Box::new(move |moment| match moment {
            Moment::Writing if refuses.load(Ordering::SeqCst) => {
                const SQLITE_FULL: i32 = 13;
                Err(StoreError::of_sqlite_code(SQLITE_FULL, std::path::Path::new("town.db")))
            }
            _ => Ok(()),
        }));
        let settings = Arc::new(Mutex::new(Arc::new(Settings::new(Config::default()))));
        let common = Common { town, actor: "tester".to_owned(), settings, say: Arc::new(|_| {}) };
        let mut deliverer = Deliverer::new(channel, own, common, Signal::new(), Machine::here());
        for _ in 0..3 {
            assert!(deliverer.look().is_err(), "it cannot be noted");
            assert_eq!(n_sent.load(Ordering::SeqCst), 1, "the receiver has it");
        }
        is_full.store(false, Ordering::SeqCst);
        deliverer.look().expect("the store works again");
        assert_eq!(n_sent.load(Ordering::SeqCst), 2, "the second one is sent, the first one is not");
        assert_eq!(store.due_parcels("hook", Timestamp::now(), 9).expect("it answers"), []);
    }

    #[test]
    fn tries_come_ever_more_rarely_and_end_after_a_day() {
        let made = Timestamp::UNIX_EPOCH;
        let wait = |tries, least: u64, age: i64| {
            let now = made + SignedDuration::from_secs(age);
            let at = again_at(made, tries, Retry::After(Duration::from_secs(least)), now)?;
            Some(at.duration_since(now).as_secs())
        };
        assert_eq!([0, 1, 2, 8, 9, 99].map(|tries| wait(tries, 0, 0)), [1, 2, 4, 256, 300, 300].map(Some));
        assert_eq!(wait(0, 7, 0), Some(7), "the receiver knows better");
        assert_eq!(wait(9, 7, 0), Some(300));
        assert_eq!(wait(0, u64::MAX, 0), Some(86_400));
        assert_eq!((wait(3, 0, 86_399), wait(3, 0, 86_400)), (Some(8), None));
        assert_eq!(again_at(made, 0, Retry::Never, made), None);
    }
}
