//! What the patrol prunes by the settings of `retention`, and what it keeps whatever they say.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use gt_core::plan::Policy;
use gt_store::{MAYOR, NewLetter, NewMessage};
use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::config::Config;

const DAY: SignedDuration = SignedDuration::from_hours(24);

struct Place {
    _dir: TempDir,
    town: Town,
    store: Store,
    now: Timestamp,
}

impl Place {
    fn new() -> Place {
        let (dir, now) = (TempDir::with_prefix("patrol-").expect("a directory"), Timestamp::now());
        let (town, _) = Town::init(dir.path(), &Stamp::new(now - DAY * 200, "tester")).expect("it can be made");
        let store = Store::open(&town.store_path()).expect("it is there");
        Place { _dir: dir, town, store, now }
    }

    fn days_ago(&self, days: i32) -> Stamp {
        Stamp::new(self.now - DAY * days, "tester")
    }

    fn clean(&mut self, config: &str) {
        let settings = Settings::new(Config::parse(config).expect("the config is right"));
        let stamp = Stamp::new(self.now, "patrol");
        clean(&self.town, &mut self.store, &settings, &mut Logs::default(), &stamp).expect("it cleans");
    }

    /// How old the events are that are left, in days.
    fn events(&mut self) -> Vec<i64> {
        let events = self.store.events(0, 1000).expect("the log answers");
        events.iter().map(|event| self.now.duration_since(event.ts).as_hours() / 24).collect()
    }

    fn letters(&mut self) -> Vec<String> {
        let letters = self.store.inbox(MAYOR, true, 100).expect("it answers").letters;
        letters.into_iter().map(|letter| letter.subject).collect()
    }

    /// A message that is answered by being cancelled.
    fn said(&mut self, session: &str, stamp: &Stamp) {
        let message = NewMessage { session: session.to_owned(), text: "x".to_owned(), ..NewMessage::default() };
        let (rules, lanes) = (gt_core::session::Rules::default(), Policy::default().lanes);
        self.store.send(&[message], &rules, &lanes, stamp).expect("it is taken");
        self.store.stop_session(session, true, stamp).expect("it is stopped");
    }

    fn sessions(&mut self) -> Vec<String> {
        let mut sessions: Vec<String> =
            self.store.sessions(None).expect("it answers").into_iter().map(|session| session.key).collect();
        sessions.sort();
        sessions
    }

    fn log(&self, run: &str, age: Duration) {
        fs::create_dir_all(self.town.logs_dir()).expect("it can be made");
        let path = self.town.log_path(run);
        fs::write(&path, "said").expect("it can be written");
        let file = File::options().write(true).open(path).expect("it is there");
        file.set_modified(SystemTime::now() - age).expect("it is ours");
    }

    fn logs(&self) -> Vec<String> {
        let entries = fs::read_dir(self.town.logs_dir()).expect("it is there").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

#[test]
fn events_go_when_they_are_older_than_the_setting_and_every_reader_has_read_them() {
    let mut place = Place::new();
    for days in [90, 40, 20, 2] {
        let stamp = place.days_ago(days);
        place.store.pause(None, &stamp).expect("it is paused");
        place.store.resume(&stamp).expect("it goes on");
    }
    let last = *place.events().last().expect("there are some");
    assert_eq!(last, 2);
    place.clean("retention.events = \"100d\"");
    assert_eq!(place.events(), [90, 90, 40, 40, 20, 20, 2, 2]);
    place.clean("");
    assert_eq!(place.events(), [20, 20, 2, 2], "30 days, unless it is set");
    let (seq, stamp) = (place.store.last_event().expect("it answers"), place.days_ago(0));
    place.store.mark_read("reader", seq - 3, &stamp).expect("it is noted");
    place.clean("retention.events = \"1d\"");
    assert_eq!(place.events(), [20, 2, 2], "a reader still wants them");
    place.store.mark_read("reader", seq, &stamp).expect("it is noted");
    place.clean("retention.events = \"1d\"");
    assert_eq!(place.events(), [2], "the last one says how far it went");
}

#[test]
fn letters_go_once_they_were_read_and_never_before() {
    let mut place = Place::new();
    for (subject, days) in [("old and read", 40), ("old", 40), ("new and read", 2)] {
        let letter =
            NewLetter { to: MAYOR.to_owned(), subject: subject.to_owned(), body: String::new(), bead: None, run: None };
        let stamp = place.days_ago(days);
        let id = place.store.send_mail(&letter, &stamp).expect("it is sent");
        if subject.ends_with("read") {
            place.store.read_mail(id, &stamp).expect("it is read");
        }
    }
    place.clean("");
    assert_eq!(place.letters(), ["old", "new and read"]);
    place.clean("retention.events = \"1d\"");
    assert_eq!(place.letters(), ["old"]);
}

#[test]
fn what_sessions_said_goes_when_it_is_older_than_the_setting_and_what_waits_stays() {
    let mut place = Place::new();
    for (session, days) in [("dm:old", 40), ("dm:new", 2)] {
        let stamp = place.days_ago(days);
        place.said(session, &stamp);
    }
    let waiting = NewMessage { session: "dm:waits".to_owned(), text: "x".to_owned(), ..NewMessage::default() };
    let (rules, lanes, stamp) = (gt_core::session::Rules::default(), Policy::default().lanes, place.days_ago(40));
    place.store.send(&[waiting], &rules, &lanes, &stamp).expect("it is taken");
    place.clean("retention.messages = \"50d\"");
    assert_eq!(place.sessions(), ["dm:new", "dm:old", "dm:waits"]);
    place.clean("");
    assert_eq!(place.sessions(), ["dm:new", "dm:waits"], "30 days, unless it is set");
    place.clean("retention.messages = \"1d\"");
    assert_eq!(place.sessions(), ["dm:waits"]);
}

#[test]
fn logs_go_when_they_are_older_than_the_setting() {
    const DAY: u64 = 24 * 60 * 60;
    let place = &mut Place::new();
    for (run, days) in [("run-1", 20), ("run-2", 10), ("run-3", 2)] {
        place.log(run, Duration::from_secs(days * DAY));
    }
    place.clean("retention.logs = \"30d\"");
    assert_eq!(place.logs().len(), 3);
    place.clean("");
    assert_eq!(place.logs(), ["run-2.log", "run-3.log"], "14 days, unless it is set");
    place.clean("retention.logs = \"5d\"");
    assert_eq!(place.logs(), ["run-3.log"]);
}
