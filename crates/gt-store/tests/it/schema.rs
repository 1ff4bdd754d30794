//! The file itself: fresh, old, newer, a stranger's, or no database at all.

use std::fs;
use std::path::Path;

use gt_core::plan::{PerSide, Policy};
use gt_store::{Claimant, Findings, SlingOutcome, Store, StoreError};
use rusqlite::Connection;

use crate::town::{Town, file};
use crate::yard::{asked, beads_of, codes, ended, rig, started};

const NEWEST: i64 = 19;

fn in_dir<T>(work: impl FnOnce(&Path) -> T) -> T {
    let dir = tempfile::tempdir().expect("a directory");
    work(&dir.path().join("town.db"))
}

/// The answer to opening and to making; both must leave the file as it was.
fn check_refused(path: &Path, wanted: impl Fn(&StoreError) -> bool) {
    let before = fs::read(path).expect("the file can be read");
    for answer in [Store::open(path), Store::create(path)] {
        let error = answer.expect_err("it is refused");
        assert!(wanted(&error), "{error:?}");
        assert!(error.to_string().contains("town.db"), "{error}");
    }
    assert!(before == fs::read(path).expect("the file can be read"), "the file was changed");
}

#[test]
fn a_fresh_store_has_the_newest_schema() {
    in_dir(|path| {
        assert_eq!(Store::create(path).expect("it is made").schema_version().expect("it answers"), NEWEST);
        let mut again = Store::open(path).expect("it is opened");
        assert_eq!((again.schema_version().expect("it answers"), again.path()), (NEWEST, path));
        assert_eq!(again.last_event().expect("it answers"), 0);
    });
    assert_eq!(Store::in_memory().expect("it is made").schema_version().expect("it answers"), NEWEST);
}

#[test]
fn what_was_written_is_there_after_opening_again() {
    in_dir(|path| {
        let mut town = Town::on(Store::create(path).expect("it is made"));
        town.import(&file(&["gt-1", "gt-2 > gt-1:blocks"]));
        let before = town.export();
        drop(town);
        let mut town = Town::on(Store::create(path).expect("making it again opens it"));
        assert_eq!((town.export(), town.blocked()), (before, vec!["gt-2".to_owned()]));
        town.check();
    });
}

#[test]
fn which_defaults_have_changed_is_known_until_it_was_seen() {
    in_dir(|path| {
        let mut town = Town::on(Store::create(path).expect("it is made"));
        assert_eq!(town.store.changed_defaults().expect("it answers"), [""; 0], "a fresh town knows no others");
        let conn = Connection::open(path).expect("a connection");
        conn.execute_batch("INSERT INTO changed_default VALUES ('b'), ('a')").expect("it is SQL");
        let changed = town.store.changed_defaults().expect("it answers");
        assert_eq!(changed, ["a", "b"]);
        town.told(|store, stamp| store.forget_changed_defaults(&changed, stamp));
        assert_eq!(town.store.changed_defaults().expect("it answers"), [""; 0]);
    });
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_opening() {
    in_dir(|path| {
        assert!(matches!(Store::open(path), Err(StoreError::CannotOpen { .. })));
        assert!(!path.exists());
    });
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    in_dir(|path| {
        drop(Store::create(path).expect("it is made"));
        let conn = Connection::open(path).expect("a connection");
        conn.pragma_update(None, "user_version", NEWEST + 7).expect("it is set");
        drop(conn);
        check_refused(
            path,
            |error| matches!(error, StoreError::NewerSchema { found, known, .. } if (*found, *known) == (NEWEST + 7, NEWEST)),
        );
    });
}

#[test]
fn a_schema_number_that_cannot_be_is_refused() {
    in_dir(|path| {
        drop(Store::create(path).expect("it is made"));
        let conn = Connection::open(path).expect("a connection");
        conn.pragma_update(None, "user_version", -1).expect("it is set");
        drop(conn);
        let answer = std::panic::catch_unwind(|| Store::open(path).map(|_| ()));
        assert!(matches!(answer, Ok(Err(_))), "it opens, or panics");
    });
}

#[test]
fn a_strangers_database_is_refused_and_left_alone() {
    for version in [0, NEWEST, 99] {
        in_dir(|path| {
            let conn = Connection::open(path).expect("a connection");
            conn.execute_batch("CREATE TABLE recipe (name TEXT); INSERT INTO recipe VALUES ('soup');")
                .expect("it is made");
            conn.pragma_update(None, "user_version", version).expect("it is set");
            drop(conn);
            check_refused(path, |error| matches!(error, StoreError::NotAStore { .. }));
        });
    }
}

#[test]
fn a_text_file_is_refused_and_left_alone() {
    in_dir(|path| {
        fs::write(path, "dear diary\n".repeat(500)).expect("it is written");
        check_refused(path, |error| matches!(error, StoreError::NotAStore { .. }));
    });
}

#[test]
fn a_directory_is_refused() {
    in_dir(|path| {
        fs::create_dir(path).expect("it is made");
        for answer in [Store::open(path), Store::create(path)] {
            assert!(matches!(answer, Err(StoreError::CannotOpen { .. })), "{answer:?}");
        }
    });
}

#[test]
fn an_empty_file_becomes_a_store() {
    in_dir(|path| {
        fs::write(path, "").expect("it is written");
        let store = Store::create(path).expect("it is made");
        assert_eq!(store.schema_version().expect("it answers"), NEWEST);
    });
}

#[test]
fn many_that_make_one_store_at_once_all_get_it() {
    const N: usize = 8;
    for _ in 0..20 {
        in_dir(|path| {
            let start = std::sync::Barrier::new(N);
            let make = || {
                start.wait();
                Store::create(path).map(|_| ())
            };
            std::thread::scope(|scope| {
                let makers: Vec<_> = (0..N).map(|_| scope.spawn(make)).collect();
                for maker in makers {
                    maker.join().expect("no panic").expect("each one gets the store");
                }
            });
            let mut town = Town::on(Store::open(path).expect("it is opened"));
            town.create("a", None);
        });
    }
}

#[test]
fn a_damaged_file_is_told_and_not_mended_in_silence() {
    in_dir(|path| {
        let mut town = Town::on(Store::create(path).expect("it is made"));
        town.import(
            &(0..500)
                .map(|n| format!(r#"{{"id":"gt-{n}","title":"{}"}}"#, "x".repeat(200)))
                .collect::<Vec<_>>()
                .join("\n"),
        );
        drop(town);
        let mut bytes = fs::read(path).expect("the file can be read");
        let middle = bytes.len() / 2;
        bytes[middle..middle + 8192].fill(0xA5);
        fs::write(path, bytes).expect("it is written");
        let found = Store::open(path).and_then(|mut store| store.inspect(jiff::Timestamp::UNIX_EPOCH));
        let is_told = match &found {
            Ok(found) => !found.damage.is_empty(),
            Err(error) => matches!(error, StoreError::Damaged { .. }),
        };
        assert!(is_told, "{found:?}");
    });
}

/// A store as the first schema wrote it: it must open, be brought up to date, be sound, and say what it said then.
#[test]
fn a_store_of_schema_1_is_still_understood() {
    in_dir(|path| {
        fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/schema-1.db"), path)
            .expect("the fixture is there");
        let mut town = Town::on(Store::open(path).expect("it is opened"));
        town.check();
        assert_eq!(town.store.schema_version().expect("it answers"), NEWEST);
        assert_eq!(town.ready(), ["gt-1", "gt-3", "gt-5"]);
        assert_eq!(town.blocked(), ["gt-2", "gt-4"]);
        assert_eq!(town.store.rigs().expect("the list answers")[0].prefix, "gt");
        assert_eq!(town.store.last_event().expect("the log answers"), 7);
        insta::assert_snapshot!(town.export());
        // What came later is there, and empty.
        assert_eq!(town.store.live_runs().expect("it answers").to_vec(), Vec::new());
        let (policy, now) = (Policy::default(), town.now);
        assert!(town.store.outlook(&policy, now).expect("it answers").scheduled.is_empty());
        let slung = town.told(|store, stamp| store.sling(&asked(&["gt-1"]), None, stamp)).0.0;
        assert_eq!(slung[0].outcome, SlingOutcome::Scheduled);
    });
}

const SCHEMA_2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/schema-2.db");

/// Makes the fixture anew: `GT_MAKE_FIXTURES=1`, by hand, and never again once schema 2 is out.
fn make_the_store_of_schema_2() {
    in_dir(|path| {
        let mut town = Town::on(Store::create(path).expect("it is made"));
        let stamp = town.stamp();
        town.store.add_rig(&rig("shop", "gt"), &stamp).expect("the rig is new");
        town.import(&file(&["gt-1", "gt-2 > gt-1:blocks", "gt-3", "gt-4"]));
        town.store.sling(&asked(&["gt-1", "gt-2", "gt-3", "gt-4"]), None, &stamp).expect("they are slung");
        town.store.clear_contexts(Some("gt-4"), &stamp).expect("it is cleared");
        let policy = Policy::default();
        let mut runs = ["run-1", "run-2"].into_iter();
        let mut new_run = || runs.next().expect("two are ready").to_owned();
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me:1",
            new_run: &mut new_run,
            limits: PerSide::both(None),
            n_before: 0,
            probe: &|_, _| None,
        };
        town.store.advance(&Findings::default(), &policy, Some(&mut claimant), &stamp).expect("they are claimed");
        let started = vec![started("run-1"), started("run-2")];
        let findings = Findings { started, ended: vec![ended("run-2")], ..Findings::default() };
        town.store.advance(&findings, &policy, None, &stamp).expect("it is recorded");
        town.check();
        drop(town);
        let conn = Connection::open(path).expect("a connection");
        conn.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM;").expect("it is packed");
        drop(conn);
        fs::copy(path, SCHEMA_2).expect("it is kept");
    });
}

/// A store as the second schema wrote it: one bead runs, one waits for it, one has failed once, one was cleared.
#[test]
fn a_store_of_schema_2_is_still_understood() {
    if std::env::var_os("GT_MAKE_FIXTURES").is_some() {
        make_the_store_of_schema_2();
    }
    in_dir(|path| {
        fs::copy(SCHEMA_2, path).expect("the fixture is there");
        let mut town = Town::on(Store::open(path).expect("it is opened"));
        town.check();
        assert_eq!(town.store.schema_version().expect("it answers"), NEWEST);
        let (policy, now) = (Policy::default(), town.now);
        let run = town.store.live_runs().expect("it answers")[0].clone();
        assert_eq!((run.id.as_str(), run.bead.as_str(), run.pid), ("run-1", "gt-1", Some(4711)));
        assert_eq!(town.store.assignment("run-1").expect("it answers").expect("it lives").polecat.name, "Toast");
        let polecats = town.store.polecats().expect("it answers");
        let of_polecat: Vec<_> = polecats.iter().map(|p| (p.name.as_str(), p.run.as_deref())).collect();
        assert_eq!(of_polecat, [("Ember", None), ("Toast", Some("run-1"))]);
        let mut explained = |id: &str| {
            let explained = town.store.explain(id, &policy, now).expect("it answers");
            format!("{}: {}", explained.state, codes(&explained.reasons).join(" "))
        };
        assert_eq!(explained("gt-1"), "running: running");
        assert_eq!(explained("gt-2"), "blocked: scheduled blocked");
        assert_eq!(explained("gt-3"), "scheduled: scheduled cooling-down");
        assert_eq!(explained("gt-4"), "ready: cleared");
        // And it goes on from there.
        town.close("gt-1");
        town.pass(300);
        let mut runs = ["run-3", "run-4"].into_iter();
        let mut new_run = || runs.next().expect("two are ready").to_owned();
        let mut claimant = Claimant {
            policy: &policy,
            starter: "me:1",
            new_run: &mut new_run,
            limits: PerSide::both(None),
            n_before: 0,
            probe: &|_, _| None,
        };
        let findings = Findings { ended: vec![ended("run-1")], ..Findings::default() };
        let stamp = town.stamp();
        let advance = town.store.advance(&findings, &policy, Some(&mut claimant), &stamp);
        let claimed = advance.expect("they are claimed").claimed;
        assert_eq!(beads_of(&claimed), ["gt-2", "gt-3"]);
        town.check();
    });
}
