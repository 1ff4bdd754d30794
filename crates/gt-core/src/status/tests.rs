//! Status and type words: what each means, and that unknown ones survive.

use super::*;

#[test]
fn every_status_word_is_read_back_as_itself() {
    for status in Status::NAMED {
        assert_eq!(Status::parse(status.as_str()), status);
        assert_eq!(status.to_string(), status.as_str());
    }
}

#[test]
fn a_strange_status_word_is_kept_to_the_letter() {
    for word in ["in_review", "Open", "CLOSED", " open", "", "staged_ready", "gelöst"] {
        assert_eq!(Status::parse(word), Status::Custom(word.to_owned()));
        assert_eq!(Status::parse(word).as_str(), word);
    }
}

#[test]
fn only_closed_pinned_and_deleted_beads_hold_nothing_back() {
    let check = |word: &str, terminal: bool| {
        assert_eq!(Status::parse(word).is_terminal(), terminal, "{word}");
        assert_eq!(Status::parse(word).is_active(), !terminal, "{word}");
    };
    for word in ["closed", "pinned", "tombstone"] {
        check(word, true);
    }
    for word in ["open", "in_progress", "hooked", "blocked", "deferred", "in_review", "done", "Closed"] {
        check(word, false);
    }
}

/// Type, whether it keeps the books, whether dispatch takes it. // SPEC B4
fn check_type(word: Option<&str>, bookkeeping: bool, slingable: bool) {
    assert_eq!((is_bookkeeping(word), is_slingable(word)), (bookkeeping, slingable), "{word:?}");
}

#[test]
fn types_are_work_books_or_neither() {
    check_type(None, false, true);
    for word in ["task", "bug", "feature", "chore"] {
        check_type(Some(word), false, true);
    }
    for word in ["convoy", "event", "merge-request", "gate", "molecule", "message", "agent", "role", "rig"] {
        check_type(Some(word), true, false);
    }
    for word in ["epic", "decision", "spike", "story", "milestone", "slot", "made-up", "Task"] {
        check_type(Some(word), false, false);
    }
}

#[test]
fn short_spellings_of_types_become_their_full_word() {
    for (short, full) in [
        ("enhancement", "feature"),
        ("feat", "feature"),
        ("dec", "decision"),
        ("adr", "decision"),
        ("bug", "bug"),
        ("made-up", "made-up"),
    ] {
        assert_eq!(unalias_type(short), full);
    }
}

#[test]
fn a_full_type_word_is_no_alias_of_another() {
    for word in TYPES {
        assert_eq!(unalias_type(word), word);
    }
}
