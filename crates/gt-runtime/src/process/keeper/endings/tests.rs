//! Of endings: what the next keeper knows, whatever was cut off.

use jiff::Timestamp;

use super::*;

fn ended(pid: u32) -> Ended {
    let ending = Ending { code: Some(0), signal: None, at: Timestamp::UNIX_EPOCH, leftover: 0, is_lost: false };
    Ended { handle: Handle { pid, birth: 7 }, ending }
}

fn names(runs: &[&str]) -> Vec<String> {
    runs.iter().map(|run| (*run).to_owned()).collect()
}

/// What the next keeper would know.
fn known(dir: &Path) -> Vec<String> {
    Endings::load(dir).expect("it can be read").by_run.into_keys().collect()
}

#[test]
fn the_next_keeper_knows_what_was_not_acknowledged() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut endings = Endings::load(dir.path()).expect("it can be made");
    for (pid, run) in ["a", "b", "c"].into_iter().enumerate() {
        endings.insert(run, ended(pid as u32)).expect("it can be written");
    }
    endings.forget(&names(&["b", "nobody"]));
    assert_eq!(known(dir.path()), ["a", "c"]);
    let mut next = Endings::load(dir.path()).expect("it can be read");
    assert_eq!(next.handle("c"), Some(Handle { pid: 2, birth: 7 }));
    next.insert("b", ended(9)).expect("it can be written");
    assert_eq!(known(dir.path()), ["a", "b", "c"], "a name may come again");
    next.forget(&names(&["a", "b", "c"]));
    assert_eq!(fs::read(dir.path().join("endings")).expect("it is there"), b"", "nothing is left");
    next.insert("d", ended(1)).expect("it can be written");
    assert_eq!(known(dir.path()), ["d"]);
}

#[test]
fn a_line_that_was_cut_off_costs_nobody_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut endings = Endings::load(dir.path()).expect("it can be made");
    endings.insert("a", ended(1)).expect("it can be written");
    endings.insert("cut", ended(2)).expect("it can be written");
    let path = dir.path().join("endings");
    let whole = fs::read(&path).expect("it is there");
    let first = whole.iter().position(|byte| *byte == b'\n').expect("two lines") + 1;
    for n_kept in first..whole.len() - 1 {
        fs::write(&path, &whole[..n_kept]).expect("it can be written");
        let mut next = Endings::load(dir.path()).expect("it can be read");
        assert!(next.handle("cut").is_none(), "{n_kept}");
        next.insert("b", ended(3)).expect("it can be written");
        assert_eq!(known(dir.path()), ["a", "b"], "{n_kept}");
    }
}

#[test]
fn history_does_not_grow_without_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut endings = Endings::load(dir.path()).expect("it can be made");
    endings.insert("kept", ended(1)).expect("it can be written");
    for n in 0..20_000 {
        let run = n.to_string();
        endings.insert(&run, ended(n)).expect("it can be written");
        endings.forget(&[run]);
    }
    assert_eq!(known(dir.path()), ["kept"]);
    let n_bytes = fs::metadata(dir.path().join("endings")).expect("it is there").len();
    assert!(n_bytes <= HISTORY_BYTES_MAX + 1000, "{n_bytes}");
    assert_eq!(n_bytes, endings.n_bytes);
}

#[test]
fn what_could_not_be_written_is_known_and_written_later() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut endings = Endings::load(dir.path()).expect("it can be made");
    endings.insert("a", ended(1)).expect("it can be written");
    let journal = std::mem::replace(&mut endings.journal, File::open("/dev/null").expect("it is there"));
    assert!(endings.insert("b", ended(2)).is_err());
    assert!(!endings.are_written() && endings.sightings().contains_key("b"));
    assert!(endings.write_rest().is_err() && !endings.are_written());
    endings.journal = journal;
    endings.write_rest().expect("there is room again");
    assert!(endings.are_written());
    assert_eq!(known(dir.path()), ["a", "b"]);
}
