//! Letters: sent, listed, read, and kept until they were.

use gt_store::{DEACON, Inbox, Letter, MAYOR, NewLetter};

use crate::town::Town;

fn letter(to: &str, subject: &str) -> NewLetter {
    NewLetter { to: to.to_owned(), subject: subject.to_owned(), body: "words".to_owned(), bead: None, run: None }
}

fn send(town: &mut Town, to: &str, subject: &str) -> i64 {
    let stamp = town.stamp();
    town.store.send_mail(&letter(to, subject), &stamp).expect("it is sent")
}

fn inbox(town: &mut Town, who: &str, with_read: bool, limit: usize) -> (Vec<String>, bool) {
    let Inbox { letters, more } = town.store.inbox(who, with_read, limit).expect("it answers");
    (letters.into_iter().map(|letter: Letter| letter.subject).collect(), more)
}

#[test]
fn the_newest_come_last_and_only_what_was_not_read_is_new() {
    let mut town = Town::new();
    for subject in ["one", "two", "three"] {
        send(&mut town, MAYOR, subject);
        town.pass(1);
    }
    send(&mut town, DEACON, "hello");
    assert_eq!(inbox(&mut town, MAYOR, false, 10), (vec!["one".into(), "two".into(), "three".into()], false));
    assert_eq!(inbox(&mut town, MAYOR, false, 2), (vec!["two".into(), "three".into()], true));
    assert_eq!(inbox(&mut town, DEACON, false, usize::MAX), (vec!["hello".into()], false));
    assert_eq!(town.store.n_unread(MAYOR).expect("it answers"), 3);

    let stamp = town.stamp();
    let read = town.store.read_mail(2, &stamp).expect("it is there");
    assert_eq!((read.subject.as_str(), read.read_at), ("two", Some(town.now)));
    town.pass(60);
    let stamp = town.stamp();
    assert_eq!(town.store.read_mail(2, &stamp).expect("it is there"), read, "it is read once");
    assert_eq!(inbox(&mut town, MAYOR, false, 10).0, ["one", "three"]);
    assert_eq!(inbox(&mut town, MAYOR, true, 10).0, ["one", "two", "three"]);
    assert_eq!(town.store.n_unread(MAYOR).expect("it answers"), 2);
}

#[test]
fn a_letter_is_told_with_its_event_and_a_bad_one_is_refused() {
    let mut town = Town::with(&["gt-1"]);
    let about = NewLetter { bead: Some("gt-1".to_owned()), ..letter(MAYOR, "look") };
    let (id, events) = town.told(|store, stamp| store.send_mail(&about, stamp));
    assert_eq!(id, 1);
    assert_eq!(events, [r#"mail.sent gt-1 {"mail":1,"subject":"look","to":"mayor"}"#]);
    for (bad, why) in [
        (letter("", "x"), "the recipient is empty"),
        (letter(&"x".repeat(101), "x"), "the recipient has 101 characters; at most 100 fit"),
        (letter("mayr", "x"), "there is no box `mayr`"),
        (letter(MAYOR, " "), "the subject is empty"),
        (letter(MAYOR, "two\nlines"), "the subject holds the control character U+000A at position 4"),
        (
            NewLetter { body: "\u{1b}[2J".to_owned(), ..letter(MAYOR, "x") },
            "the letter holds the control character U+001B at position 1",
        ),
        (
            NewLetter { body: "x".repeat(1024 * 1024 + 1), ..letter(MAYOR, "x") },
            "the letter has 1048577 bytes; at most 1048576 fit",
        ),
        (NewLetter { bead: Some("gt-9".to_owned()), ..letter(MAYOR, "x") }, "there is no bead `gt-9`"),
    ] {
        let told = town.refused(|store, stamp| store.send_mail(&bad, stamp));
        assert!(told.starts_with(why), "{told}");
    }
    let told = town.refused(|store, stamp| store.read_mail(7, stamp));
    assert_eq!(told, "there is no letter 7");
}

#[test]
fn what_was_read_goes_when_it_is_old_and_what_a_person_has_not_read_stays() {
    let mut town = Town::new();
    for (to, subject) in [(MAYOR, "read"), (MAYOR, "unread"), (DEACON, "done")] {
        send(&mut town, to, subject);
    }
    let stamp = town.stamp();
    town.store.read_mail(1, &stamp).expect("it is there");
    assert_eq!(town.store.prune_mail(town.now, &stamp).expect("it is cut"), 0, "they are not old yet");
    town.pass(100);
    let stamp = town.stamp();
    assert_eq!(town.store.prune_mail(town.now, &stamp).expect("it is cut"), 2);
    assert_eq!(inbox(&mut town, MAYOR, true, 9).0, ["unread"]);
    assert_eq!(inbox(&mut town, DEACON, true, 9).0, Vec::<String>::new());
    send(&mut town, DEACON, "new");
    assert_eq!(town.store.read_mail(4, &stamp).expect("it is there").subject, "new", "no number is given twice");
}
