//! Single words of strangers, one a line: times, ids, names, prefixes, statuses, edge types, titles, labels.
//!
//! A word that is taken means one thing and is written as it was read; whatever is shown cannot drive a terminal.

use gt_core::context::ContextState;
use gt_core::edge::{EdgeType, unwrap_target};
use gt_core::plan::TroubleOf;
use gt_core::rig::{self, BadRig, Home, Rig, RigState};
use gt_core::run::{Outcome, RunState};
use gt_core::status::{self, Status};
use gt_core::{id, near, text, time};

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "words", check, tokens: TOKENS };

const TOKENS: &[&str] = &[
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999-12:00",
    "-009999-01-02T01:59:59Z",
    "2016-12-31T23:59:60Z",
    "+02:00",
    "[Europe/Berlin]",
    ".123456789",
    "T24:00:00",
    "gt-a1b2",
    "gt-a1b2.1.2.3",
    "external:",
    "external:p:gt-1",
    "hq-",
    "hq",
    "a-",
    "-",
    "_",
    ":",
    ".",
    "agent ",
    "rig ",
    "closed",
    "tombstone",
    "parent-child",
    "waits-for",
    "timed-out",
    "claimed",
    "docked",
    "enhancement",
    "merge-request",
];

fn check(bytes: &[u8]) -> Verdict {
    let lossy = String::from_utf8_lossy(bytes);
    let mut n_known = 0;
    // A few are enough: each is looked at by itself.
    for word in lossy.split('\n').take(32) {
        n_known += usize::from(is_instant(word)) + usize::from(is_word_of_ours(word));
        is_id(word);
        is_rig(word);
        suggests_little(word);
    }
    is_shown_safely(&lossy);
    Verdict::accepted_if(n_known > 0)
}

fn is_instant(word: &str) -> bool {
    let utc = time::to_utc(word);
    let Some(at) = time::parse(word) else {
        assert_eq!(utc, word, "what is no time stays as it is");
        return false;
    };
    let written = time::format(at);
    assert_eq!(time::parse(&written), Some(time::truncate(at)), "{word} is written as {written}");
    assert_eq!(time::truncate(time::truncate(at)), time::truncate(at));
    assert_eq!(time::parse(&utc), Some(at), "{word} in UTC is {utc}");
    true
}

fn is_word_of_ours(word: &str) -> bool {
    assert_eq!(Status::parse(word).as_str(), word);
    assert_eq!(EdgeType::parse(word).as_str(), word);
    let trouble = TroubleOf::parse(word);
    assert_eq!(TroubleOf::parse(&trouble.key()), trouble, "trouble is found again under its key");
    let spellings = [
        ContextState::parse(word).map(ContextState::as_str),
        RunState::parse(word).map(RunState::as_str),
        Outcome::parse(word).map(Outcome::as_str),
        RigState::parse(word).map(RigState::as_str),
    ];
    let known: Vec<&str> = spellings.into_iter().flatten().collect();
    assert!(known.iter().all(|spelling| *spelling == word), "one spelling each");
    let full = status::unalias_type(word);
    assert_eq!(status::unalias_type(full), full);
    !known.is_empty() || !matches!(Status::parse(word), Status::Custom(_)) || EdgeType::parse(word).is_known()
}

fn is_id(word: &str) {
    let is_sane = id::is_sane(word);
    if is_sane {
        assert_eq!(text::one_line(word), word, "an id is printed as it is");
        assert!(!rig::has_prefix(word, word), "nothing is its own prefix");
    }
    let stem = id::stem(word);
    assert!(word.starts_with(stem) && (stem.len() == word.len() || rig_part(word, stem)));
    let target = unwrap_target(word);
    assert!(word.ends_with(target) && (word.is_empty() || !target.is_empty()), "a target names something");
    if let Some(mut children) = id::child_ids(word, 1) {
        assert!(children.next().is_some_and(|child| child.starts_with(word)));
    }
}

fn rig_part(word: &str, stem: &str) -> bool {
    word[stem.len()..].starts_with('-')
}

fn is_rig(word: &str) {
    match rig::check_name(word) {
        Ok(()) => has_a_free_prefix(word),
        Err(refusal) => is_told(&refusal, word),
    }
    match rig::check_prefix(word, &[]) {
        Ok(()) => {
            let own = shop(word);
            let id = format!("{word}-1");
            assert_eq!(rig::home(&id, None, std::slice::from_ref(&own)), Home::Rig(&own), "{id} is at home");
            assert!(rig::check_prefix(word, &[own]).is_err(), "a prefix is given once");
        }
        Err(refusal) => is_told(&refusal, word),
    }
}

fn has_a_free_prefix(name: &str) {
    let prefix = rig::derive_prefix(name);
    let free = match rig::check_prefix(&prefix, &[shop(&prefix)]) {
        Err(BadRig::PrefixTaken { free, .. }) => free,
        other => panic!("`{prefix}`, made from the name `{name}`, is {other:?}"),
    };
    assert_eq!(rig::check_prefix(&free, &[shop(&prefix)]), Ok(()), "what is offered can be taken");
}

fn shop(prefix: &str) -> Rig {
    let (name, path, branch) = ("shop".to_owned(), "/shop".to_owned(), "main".to_owned());
    Rig { name, prefix: prefix.to_owned(), path, url: None, branch, state: RigState::Active }
}

fn is_told(refusal: &BadRig, word: &str) {
    let told = refusal.to_string();
    assert!(!told.contains(text::misleads), "a refusal is one line that is safe to show: {told:?}");
    assert!(!refusal.hint().is_empty() && told.len() <= 400 + 3 * word.len());
}

fn suggests_little(word: &str) {
    // The distance of two words costs their product, which callers keep small.
    if word.len() <= 200 {
        assert!(near::closest(word, TOKENS.iter().copied()).len() <= 3);
    }
}

fn is_shown_safely(any: &str) {
    let line = text::one_line(any);
    assert!(!line.contains(char::is_control) && !line.contains(['\u{202e}', '\u{2066}', '\u{2028}']));
    assert_eq!(text::one_line(&line), line);
    assert_eq!(line.chars().count(), any.chars().count(), "columns stay in place");
    let lines = text::many_lines(any);
    assert!(!lines.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    assert_eq!(text::many_lines(&lines), lines);
    let taken = [("title", text::check_title(any)), ("label", text::check_word("label", any))];
    for (what, judged) in taken {
        match judged {
            Ok(()) => assert!(!any.contains(char::is_control) && !any.trim().is_empty(), "a {what} of {any:?}"),
            Err(refusal) => assert!(!refusal.to_string().contains(char::is_control) && !refusal.hint().is_empty()),
        }
    }
    if text::check_body("description", any).is_ok() {
        assert!(!any.contains(['\0', '\u{1b}']), "a body with {any:?}");
    }
}
