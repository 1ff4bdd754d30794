//! The words of the store for policies and states, and the names that a job may have.

use std::collections::BTreeSet;

use super::*;

/// Each value has one word of its own, and nothing else is that word.
fn check<T: Copy + PartialEq + std::fmt::Debug>(
    all: &[T],
    word: fn(T) -> &'static str,
    parse: fn(&str) -> Option<T>,
) -> String {
    for value in all {
        assert_eq!(parse(word(*value)), Some(*value));
        assert_eq!(parse(&word(*value).to_uppercase()), None);
        assert_eq!(parse(&format!(" {}", word(*value))), None);
    }
    assert_eq!(parse(""), None);
    let words: Vec<&str> = all.iter().map(|value| word(*value)).collect();
    assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), all.len());
    words.join(" ")
}

#[test]
fn each_policy_and_state_has_its_word() {
    assert_eq!(check(&Missed::ALL, Missed::as_str, Missed::parse), "skip once all");
    assert_eq!(check(&JobState::ALL, JobState::as_str, JobState::parse), "active paused disabled");
    let fires = check(&FireStatus::ALL, FireStatus::as_str, FireStatus::parse);
    assert_eq!(fires, "running ok failed timeout cancelled missed skipped");
}

#[test]
fn what_is_missed_runs_once_unless_somebody_says_otherwise() {
    assert_eq!(Missed::default(), Missed::Once);
}

#[test]
fn only_what_the_job_did_itself_is_its_failure() {
    let failures = FireStatus::ALL.into_iter().filter(|status| status.is_failure());
    assert_eq!(failures.collect::<Vec<_>>(), [FireStatus::Failed, FireStatus::Timeout]);
}

#[test]
fn a_name_is_a_plain_word() {
    let long = "x".repeat(NAME_CHARS_MAX + 1);
    let names = [
        "backup",
        "Backup-2.daily_x",
        "7",
        "überprüfung",
        "每日",
        "job",
        "job-",
        "job-12a",
        "job-1-2",
        "JOB-12",
        "xjob-12",
        &long[1..],
        "",
        &long,
        "a b",
        " a",
        "a/b",
        "a,b",
        "a\tb",
        "\u{202e}a",
        "a\u{200b}",
        "🔥",
        "-a",
        "_a",
        ".a",
        "--",
        "job-12",
        "job-0",
        "job-99999999999999999999",
    ];
    let told = names.map(|name| {
        let shown = crate::text::short_line(&name.replace('\u{200b}', "<200b>"));
        format!("{shown:<42} {}\n", flaw_of_name(name).unwrap_or("fine"))
    });
    insta::assert_snapshot!(told.concat(), @"
    backup                                     fine
    Backup-2.daily_x                           fine
    7                                          fine
    überprüfung                                fine
    每日                                         fine
    job                                        fine
    job-                                       fine
    job-12a                                    fine
    job-1-2                                    fine
    JOB-12                                     fine
    xjob-12                                    fine
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…  fine
                                               it is empty
    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…  it is longer than 100 characters
    a b                                        it may hold letters, digits, `-`, `_` and `.` only
     a                                         it may hold letters, digits, `-`, `_` and `.` only
    a/b                                        it may hold letters, digits, `-`, `_` and `.` only
    a,b                                        it may hold letters, digits, `-`, `_` and `.` only
    a b                                        it may hold letters, digits, `-`, `_` and `.` only
    �a                                         it may hold letters, digits, `-`, `_` and `.` only
    a<200b>                                    it may hold letters, digits, `-`, `_` and `.` only
    🔥                                          it may hold letters, digits, `-`, `_` and `.` only
    -a                                         it must begin with a letter or a digit
    _a                                         it must begin with a letter or a digit
    .a                                         it must begin with a letter or a digit
    --                                         it must begin with a letter or a digit
    job-12                                     it looks like the id of a job
    job-0                                      it looks like the id of a job
    job-99999999999999999999                   it looks like the id of a job
    ");
}

#[test]
fn letters_are_counted_not_bytes() {
    assert_eq!(flaw_of_name(&"ü".repeat(NAME_CHARS_MAX)), None);
    assert!(flaw_of_name(&"ü".repeat(NAME_CHARS_MAX + 1)).is_some());
}

#[test]
fn an_id_is_a_number_with_its_prefix() {
    for (word, wanted) in [
        ("job-1", true),
        ("job-007", true),
        ("job-18446744073709551616", true),
        ("job-", false),
        ("job", false),
        ("", false),
        ("1", false),
        ("Job-1", false),
        ("job-1 ", false),
        ("job--1", false),
        ("job-+1", false),
        ("job-1x", false),
        ("job-１", false),
    ] {
        assert_eq!(is_id(word), wanted, "{word:?}");
    }
}
