//! Whoever delivers by one channel: takes what is due from the outbox, in order for each recipient, until it has arrived or
//! is given up. // SPEC L6
//!
//! How a parcel is delivered is the channel's; what was sent before a crash and not noted is sent again under the same key.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use gt_store::{Parcel, Stamp, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use super::signal::Signal;
use super::{Channel, Common, Retry};

/// Parcels, each of another recipient, that are looked at together.
const BATCH: usize = 32;
/// Parcels of one recipient that are delivered before the next recipient's turn.
const IN_A_ROW: usize = 50;
/// How long to wait before what failed here, and not at a receiver, is tried again.
const RETRY: Duration = Duration::from_secs(2);
const FIRST_SPAN: Duration = Duration::from_secs(1);
const SPAN_MAX: Duration = Duration::from_mins(5);
/// How long it is tried.
pub(super) const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(24);

pub(super) struct Deliverer {
    channel: Box<dyn Channel>,
    store: Store,
    common: Common,
    signal: Arc<Signal>,
    /// What has arrived though that could not be noted yet: it is not sent again.
    unnoted: BTreeSet<i64>,
    /// Whether the last try failed, and that was said.
    is_failing: bool,
}

impl Deliverer {
    /// With a plain store: that something has arrived wakes nobody.
    pub(super) fn new(channel: Box<dyn Channel>, store: Store, common: Common, signal: Arc<Signal>) -> Deliverer {
        Deliverer { channel, store, common, signal, unnoted: BTreeSet::new(), is_failing: false }
    }

    pub(super) fn serve(&mut self) {
        while !self.signal.is_stopped() {
            let span = self.look().unwrap_or(Some(RETRY));
            self.signal.wait(span);
        }
    }

    /// Delivers what is due; says how long there is nothing to do.
    fn look(&mut self) -> Result<Option<Duration>, StoreError> {
        let name = self.channel.name().to_owned();
        loop {
            let due = self.store.due_parcels(&name, Timestamp::now(), BATCH)?;
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
        let next = self.store.next_parcel_of(&name)?;
        let next = next.map(|at| Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default());
        Ok([shown, next].into_iter().flatten().min())
    }

    /// Delivers a parcel, and those that wait behind it.
    fn deliver_row(&mut self, first: Parcel) -> Result<(), StoreError> {
        let mut next = Some(first);
        for _ in 0..IN_A_ROW {
            let Some(parcel) = next.take().filter(|_| !self.signal.is_stopped()) else { break };
            if self.deliver(&parcel)? {
                next = self.store.due_parcel_after(&parcel, Timestamp::now())?;
            }
        }
        Ok(())
    }

    /// Says whether the next is due: it has arrived, or is given up.
    fn deliver(&mut self, parcel: &Parcel) -> Result<bool, StoreError> {
        if !self.unnoted.contains(&parcel.id) {
            let (store, actor) = (&mut self.store, &self.common.actor);
            let mut arrived = |n_parts: usize| {
                // What cannot be noted is at worst sent again.
                store.part_arrived(parcel.id, n_parts, &Stamp::new(Timestamp::now(), actor)).unwrap_or_default();
            };
            if let Err(failure) = self.channel.deliver(parcel, &mut arrived) {
                let stamp = self.stamp();
                let again = again_at(parcel.made_at, parcel.tries, failure.retry, stamp.now);
                self.tell(parcel, &failure.error, again.is_some());
                self.store.not_delivered(parcel, &failure.error, again, &stamp)?;
                return Ok(again.is_none());
            }
            self.unnoted.insert(parcel.id);
            self.is_failing = false;
        }
        self.store.delivered(parcel.id, &self.stamp())?;
        self.unnoted.remove(&parcel.id);
        Ok(true)
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
        Stamp::new(Timestamp::now(), &self.common.actor)
    }
}

/// When something that did not arrive is tried again; `None`: never.
fn again_at(made_at: Timestamp, tries: i64, retry: Retry, now: Timestamp) -> Option<Timestamp> {
    let Retry::After(least) = retry else { return None };
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
    use super::*;

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
