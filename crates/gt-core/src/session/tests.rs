//! Tables of the queue: collapsing, dropping, interrupting, and how many turns run at once.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).expect("a time")
}

fn turn(id: i64, origin: &str, first: i64, due: i64) -> Waiting {
    Waiting { id, origin: origin.to_owned(), first_at: at(first), due_at: at(due), bytes: 10, is_fresh: true }
}

fn waits(due: i64, dropped: &[i64]) -> Arrival {
    Arrival::Waits { due_at: at(due), dropped: dropped.to_vec() }
}

#[test]
fn rapid_messages_of_one_sender_become_one_turn() {
    let rules = Rules::default();
    let collapses = |turn, due| Arrival::Collapses { turn, due_at: at(due) };
    assert_eq!(rules.admit(&[], "a", 5, at(0)), waits(800, &[]));
    assert_eq!(rules.admit(&[turn(1, "a", 0, 800)], "a", 5, at(500)), collapses(1, 1300));
    assert_eq!(rules.admit(&[turn(1, "a", 0, 800)], "a", 5, at(800)), waits(1600, &[]), "its time is over");
    assert_eq!(rules.admit(&[turn(1, "a", 0, 800)], "b", 5, at(500)), waits(1300, &[]), "somebody else's");
    let both = [turn(1, "a", 0, 800), turn(2, "b", 100, 900)];
    assert_eq!(rules.admit(&both, "a", 5, at(500)), collapses(1, 1300), "each sender has his own");
    assert_eq!(rules.admit(&[turn(1, "a", 0, 8100)], "a", 5, at(7900)), collapses(1, 8000), "but not for ever");
    let started = Waiting { is_fresh: false, ..turn(1, "a", 0, 800) };
    assert_eq!(rules.admit(&[started], "a", 5, at(500)), waits(1300, &[]), "what was tried is left as it is");
    let long = Waiting { bytes: TEXT_BYTES_MAX - 5, ..turn(1, "a", 0, 800) };
    assert_eq!(rules.admit(&[long], "a", 5, at(500)), waits(1300, &[]), "it would become too long");
    let at_once = Rules { debounce: SignedDuration::ZERO, ..rules };
    assert_eq!(at_once.admit(&[turn(1, "a", 0, 0)], "a", 5, at(0)), waits(0, &[]), "no debounce, no collapsing");
    assert_eq!(at_once.admit(&[turn(1, "a", 1, 1)], "a", 5, at(0)), waits(0, &[]), "whoever was quicker");
}

#[test]
fn a_full_queue_drops_the_oldest_or_refuses_the_new_one() {
    let two = [turn(2, "b", 0, 0), turn(3, "c", 0, 0)];
    let rules = Rules { cap: 2, debounce: SignedDuration::ZERO, ..Rules::default() };
    assert_eq!(rules.admit(&two, "d", 1, at(9)), waits(9, &[2]));
    assert_eq!(rules.admit(&two[..1], "d", 1, at(9)), waits(9, &[]));
    let refusing = Rules { overflow: Overflow::New, ..rules };
    assert_eq!(refusing.admit(&two, "d", 1, at(9)), Arrival::Full);
    assert_eq!(refusing.admit(&two[..1], "d", 1, at(9)), waits(9, &[]));
    let tighter = Rules { cap: 1, ..rules };
    assert_eq!(tighter.admit(&two, "d", 1, at(9)), waits(9, &[2, 3]), "a cap that was lowered holds at once");
    let none = Rules { cap: 0, ..rules };
    assert_eq!(none.admit(&[], "d", 1, at(9)), waits(9, &[]), "what nobody is in the way of waits for its start");
}

#[test]
fn an_interrupting_message_takes_the_place_of_all_others() {
    let rules = Rules { mode: Mode::Interrupt, ..Rules::default() };
    assert_eq!(rules.admit(&[], "a", 1, at(0)), Arrival::Interrupts { due_at: at(800) });
    let waiting = [turn(1, "a", 0, 800)];
    let collapses = Arrival::Collapses { turn: 1, due_at: at(900) };
    assert_eq!(rules.admit(&waiting, "a", 1, at(100)), collapses, "it has interrupted already");
    assert_eq!(rules.admit(&waiting, "b", 1, at(100)), Arrival::Interrupts { due_at: at(900) });
    let full = Rules { cap: 1, overflow: Overflow::New, ..rules };
    assert_eq!(full.admit(&waiting, "b", 1, at(100)), Arrival::Interrupts { due_at: at(900) }, "it needs no room");
}

#[test]
fn a_group_runs_three_turns_until_its_context_is_crowded() {
    for (tokens, window, wanted) in [
        (0, None, 3),
        (1_000_000, None, 3),
        (500, Some(1000), 3),
        (599, Some(1000), 3),
        (600, Some(1000), 1),
        (800, Some(1000), 1),
        (u64::MAX, Some(u64::MAX), 1),
        (5, Some(0), 3),
    ] {
        assert_eq!(limit("group:x", is_crowded(tokens, window)), wanted, "{tokens} of {window:?}");
        assert_eq!(limit("dm:x", is_crowded(tokens, window)), 1);
    }
    assert_eq!([limit("x", false), limit("grouper", false), limit("group:", false)], [1, 1, 3]);
}

#[test]
fn commands_are_words_of_their_own() {
    for (text, wanted) in [
        ("/stop", Some(Command::Stop)),
        (" /STOP\n", Some(Command::Stop)),
        ("/stopall", Some(Command::StopAll)),
        ("/stop@GasBot", Some(Command::Stop)),
        ("/stop@other_bot", None),
        ("/stop now", None),
        ("please /stop", None),
        ("stop", None),
        ("/stopping", None),
        ("", None),
    ] {
        assert_eq!(Command::parse(text, Some("gasbot")), wanted, "{text:?}");
    }
    assert_eq!(Command::parse("/stop@gasbot", None), None, "nobody here has a name");
}

#[test]
fn a_session_has_a_name_that_can_be_read() {
    for key in ["dm:anna", "group:-100123:topic:4", "a b", "ü"] {
        assert_eq!(flaw_of_key(key), None, "{key:?}");
    }
    for key in ["", " a", "a\n", "a\u{202e}b", &"x".repeat(201)] {
        assert!(flaw_of_key(key).is_some(), "{key:?}");
    }
}

proptest! {
    #[test]
    fn no_queue_grows_beyond_its_cap(cap in 1_usize..5, drops_new: bool, senders in prop::collection::vec(0_u8..3, 0..40)) {
        let overflow = if drops_new { Overflow::New } else { Overflow::Old };
        let rules = Rules { cap, overflow, ..Rules::default() };
        let mut queue: Vec<Waiting> = Vec::new();
        for (i, sender) in senders.into_iter().enumerate() {
            let now = at(i as i64 * 300);
            let origin = sender.to_string();
            match rules.admit(&queue, &origin, 1, now) {
                Arrival::Collapses { turn, due_at } => {
                    let turn = queue.iter_mut().find(|waiting| waiting.id == turn).expect("it waits");
                    prop_assert_eq!(&turn.origin, &origin);
                    turn.due_at = due_at;
                }
                Arrival::Waits { due_at, dropped } => {
                    queue.retain(|waiting| !dropped.contains(&waiting.id));
                    queue.push(Waiting { id: i as i64, origin, first_at: now, due_at, bytes: 1, is_fresh: true });
                }
                Arrival::Full => prop_assert!(drops_new && queue.len() == cap),
                Arrival::Interrupts { .. } => prop_assert!(false, "nobody asked for that"),
            }
            prop_assert!(queue.len() <= cap);
            prop_assert!(queue.is_sorted_by_key(|waiting| waiting.id), "the order is kept");
        }
    }
}
