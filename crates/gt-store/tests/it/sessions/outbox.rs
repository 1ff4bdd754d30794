//! The outbox as whoever delivers sees it: who waits, when to look again, and what nobody delivers. // SPEC L6

use gt_store::{Address, NewMessage};
use jiff::SignedDuration;

use crate::desk::{Desk, message};

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// Asks something whose answer goes to somebody by `tg`.
fn ask(desk: &mut Desk, session: &str, who: &str) {
    let to = Address { channel: "tg".to_owned(), recipient: Some(who.to_owned()), reply_to: None };
    desk.try_send(NewMessage { deliver: Some(to), ..message(session, "hi") }).expect("it is taken");
}

fn awaiting(desk: &mut Desk) -> Vec<String> {
    desk.town.store.awaiting("tg").expect("it answers")
}

#[test]
fn whoever_has_asked_is_seen_to_wait_until_the_turn_has_ended() {
    let mut desk = Desk::with_main(1);
    for (session, who) in [("dm:a", "anna"), ("dm:a", "anna"), ("dm:b", "bob")] {
        ask(&mut desk, session, who);
    }
    desk.send("dm:c", "delivered to nobody");
    let run = desk.start().remove(0).run;
    assert_eq!(awaiting(&mut desk), ["anna", "bob"]);
    desk.stop("dm:b", true);
    assert_eq!(awaiting(&mut desk), ["anna"]);
    desk.answer(&run, "fine");
    assert_eq!(awaiting(&mut desk), ["anna"], "one of two is left");
    desk.stop("dm:a", true);
    assert!(desk.town.store.awaiting("hook").expect("it answers").is_empty());
}

#[test]
fn what_waits_for_an_older_one_is_no_reason_to_look_before_that_is_due() {
    let mut desk = Desk::with_main(9);
    let next = |desk: &mut Desk| desk.town.store.next_parcel_of("tg").expect("it answers");
    assert_eq!(next(&mut desk), None);
    for session in ["dm:a", "dm:b"] {
        ask(&mut desk, session, "anna");
        let run = desk.start().remove(0).run;
        desk.answer(&run, "fine");
        desk.pass_millis(1000);
    }
    let (now, stamp) = (desk.town.now, desk.town.stamp());
    let first = desk.town.store.due_parcels("tg", now, 9).expect("it answers").remove(0);
    assert_eq!(next(&mut desk), Some(now - SECOND * 2));
    desk.town.store.not_delivered(&first, "nobody there", Some(now + SECOND * 9), &stamp).expect("it is recorded");
    assert_eq!(next(&mut desk), Some(now + SECOND * 9));
    desk.town.store.delivered(first.id, &stamp).expect("it is recorded");
    assert_eq!(next(&mut desk), Some(now - SECOND), "now it is the other's turn");
}

#[test]
fn what_nobody_delivers_is_found_once_it_is_old() {
    let mut desk = Desk::with_main(9);
    ask(&mut desk, "dm:a", "anna");
    let run = desk.start().remove(0).run;
    desk.answer(&run, "fine");
    desk.pass_millis(1000);
    let now = desk.town.now;
    let mut others = |channels: &[&str], before| {
        let parcels = desk.town.store.parcels_of_others(channels, before).expect("it answers");
        parcels.into_iter().map(|parcel| parcel.key).collect::<Vec<_>>()
    };
    assert_eq!(others(&["hook"], now), ["turn-1"]);
    assert_eq!(others(&[], now), ["turn-1"]);
    assert_eq!(others(&["hook", "tg"], now), [""; 0]);
    assert_eq!(others(&["hook"], now - SECOND * 2), [""; 0]);
}

#[test]
fn where_no_recipient_is_named_sessions_do_not_hold_up_each_other() {
    let mut desk = Desk::with_main(9);
    for session in ["dm:a", "dm:b", "dm:a", "dm:b"] {
        let to = Address { channel: "hook".to_owned(), recipient: None, reply_to: None };
        desk.try_send(NewMessage { deliver: Some(to), ..message(session, "hi") }).expect("it is taken");
        let run = desk.start().remove(0).run;
        desk.answer(&run, "fine");
    }
    let (now, stamp) = (desk.town.now, desk.town.stamp());
    let due = |desk: &mut Desk| desk.town.store.due_parcels("hook", now, 9).expect("it answers");
    let first = due(&mut desk);
    assert_eq!(first.iter().map(|parcel| &*parcel.key).collect::<Vec<_>>(), ["turn-1", "turn-2"]);
    desk.town.store.not_delivered(&first[0], "no", Some(now + SECOND), &stamp).expect("it is recorded");
    desk.town.store.delivered(first[1].id, &stamp).expect("it is recorded");
    let next = desk.town.store.due_parcel_after(&first[1], now).expect("it answers").map(|parcel| parcel.key);
    assert_eq!(next.as_deref(), Some("turn-4"), "the third waits behind the first");
    assert_eq!(due(&mut desk).iter().map(|parcel| &*parcel.key).collect::<Vec<_>>(), ["turn-4"]);
}

/// Seed 65 of Telegram: what was tried, or put there, before the clock was set back waits no longer than it was to.
#[test]
fn a_clock_that_was_set_back_holds_up_no_delivery() {
    let mut desk = Desk::with_main(9);
    let hour = SECOND * 3600;
    for (session, who) in [("dm:a", "anna"), ("dm:b", "bob"), ("dm:c", "carl")] {
        ask(&mut desk, session, who);
        let run = desk.start().remove(0).run;
        desk.answer(&run, "fine");
    }
    let (before, stamp) = (desk.town.now, desk.town.stamp());
    let due = |desk: &mut Desk, now| {
        let parcels = desk.town.store.due_parcels("tg", now, 9).expect("it answers");
        parcels.into_iter().map(|parcel| parcel.key).collect::<Vec<_>>()
    };
    let first = desk.town.store.due_parcels("tg", before, 1).expect("it answers").remove(0);
    desk.town.store.not_delivered(&first, "busy", Some(before + SECOND * 30), &stamp).expect("it is recorded");
    desk.town.now -= hour;
    let (now, stamp) = (desk.town.now, desk.town.stamp());
    let second = desk.town.store.due_parcels("tg", before, 1).expect("it answers").remove(0);
    assert_eq!(second.key, "turn-2");
    desk.town.store.not_delivered(&second, "busy", Some(now + SECOND * 40), &stamp).expect("it is recorded");
    assert_eq!(due(&mut desk, now), ["turn-3"], "it was never tried");
    let third = desk.town.store.due_parcels("tg", now, 1).expect("it answers").remove(0);
    desk.town.store.delivered(third.id, &stamp).expect("it is recorded");
    let next = desk.town.store.next_parcel_of("tg").expect("it answers");
    assert_eq!(next, Some(now + SECOND * 30), "it waits as long as it was to, from now on");
    assert_eq!(due(&mut desk, now + SECOND * 29), [""; 0], "a pause that a receiver wants is kept");
    assert_eq!(due(&mut desk, now + SECOND * 30), ["turn-1"]);
    assert_eq!(due(&mut desk, now + SECOND * 40), ["turn-1", "turn-2"], "what was tried since keeps its time");
}
