//! Every acknowledged message gets one answer, in order, and no answer is given twice.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, Violation};
use crate::clock::{self, Micros};
use crate::evidence::Line;
use crate::receiver::Post;

const ONCE: &str = "an acknowledged message gets one answer";
const WHOLE: &str = "an answer that was given whole is delivered whole";
const ORDER: &str = "the answers of a session arrive in order";
const AGAIN: &str = "a turn that was answered is not run again";
const SLOT: &str = "a slot is answered once";

/// What became of one message.
#[derive(Debug, Default)]
struct Fate<'a> {
    /// The lines of its turns, in order.
    lines: Vec<&'a Line>,
    /// Its answers by key, each as it came first.
    answers: BTreeMap<&'a str, &'a Post>,
}

pub(super) fn judge(case: &Case) -> Vec<Violation> {
    let fates = fates(case);
    let mut violations = Vec::new();
    let mut last_arrivals: BTreeMap<&str, (Micros, &str)> = BTreeMap::new();
    let empty = Fate::default();
    for sent in &case.asked.messages {
        let fate = fates.get(sent.text.as_str()).unwrap_or(&empty);
        violations.extend(answered_once(case, &sent.text, fate));
        let arrival = fate.answers.values().map(|post| post.at).min().unwrap_or_default();
        let last = last_arrivals.entry(&sent.session).or_default();
        if arrival != 0 && arrival < last.0 {
            violations.push(Violation::new(ORDER, format!("{} of {} before {}", sent.text, sent.session, last.1)));
        }
        *last = (arrival.max(last.0), &sent.text);
    }
    violations.extend(fates.iter().filter_map(|(text, fate)| run_again(case, text, fate)));
    violations.extend(slots_answered_once(&case.posts));
    case.tally.add("answers delivered", taken(&case.posts).map(|post| &post.key).collect::<BTreeSet<_>>().len());
    case.tally.add("posts to web hooks", case.posts.len());
    violations
}

fn taken(posts: &[Post]) -> impl Iterator<Item = &Post> {
    posts.iter().filter(|post| post.path == "/answers" && post.is_taken)
}

fn fates<'a>(case: &'a Case) -> BTreeMap<&'a str, Fate<'a>> {
    let mut fates: BTreeMap<&str, Fate> = BTreeMap::new();
    let mut texts_of_runs = BTreeMap::new();
    for line in case.turns.iter().filter(|line| line.split_rest().0 == "-") {
        let text = line.split_rest().1;
        texts_of_runs.insert(line.run.as_str(), text);
        fates.entry(text).or_default().lines.push(line);
    }
    for post in taken(&case.posts) {
        let by_run = post.body["run"].as_str().and_then(|run| texts_of_runs.get(run).copied());
        let text = by_run.or_else(|| Some(words_after(post.body["text"].as_str()?, "answer to ")?.0));
        if let Some(text) = text.filter(|text| *text != "tick") {
            fates.entry(text).or_default().answers.entry(&post.key).or_insert(post);
        }
    }
    fates
}

/// The word after these words, and what follows it.
fn words_after<'a>(text: &'a str, words: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = text.split_once(words)?;
    Some(rest.split_once(' ').unwrap_or((rest.trim_end(), "")))
}

fn answered_once(case: &Case, text: &str, fate: &Fate) -> Vec<Violation> {
    if fate.answers.len() != 1 {
        let keys: Vec<String> = fate
            .answers
            .iter()
            .map(|(key, post)| format!("{key} at {}: {}", clock::shown(post.at), post.body))
            .collect();
        return vec![Violation::new(ONCE, format!("{text} has {} answers: {}", keys.len(), keys.join("; ")))];
    }
    let has_failed = |line: &&Line| line.what == "unwritten" || case.deeds.killed_runs.contains(&line.run);
    let is_excused = fate.lines.iter().any(has_failed);
    let is_whole = |post: &&&Post| {
        post.body["outcome"] == "done"
            && post.body["text"].as_str().is_some_and(|said| said.contains(&format!("answer to {text} by ")))
    };
    let broken = fate.answers.values().find(|post| !is_excused && !is_whole(post));
    broken.map(|post| Violation::new(WHOLE, format!("{text}: {}", post.body))).into_iter().collect()
}

/// A run began after another had answered and was not killed by the nemesis.
fn run_again(case: &Case, text: &str, fate: &Fate) -> Option<Violation> {
    let answered =
        fate.lines.iter().find(|line| line.what == "answered" && !case.deeds.killed_runs.contains(&line.run))?;
    let again =
        fate.lines.iter().find(|line| line.what == "start" && line.at > answered.at && line.run != answered.run)?;
    let (at, then) = (clock::shown(answered.at), clock::shown(again.at));
    Some(Violation::new(
        AGAIN,
        format!(
            "{text} of {}: run {} answered at {at}, run {} began at {then}",
            answered.subject, answered.run, again.run
        ),
    ))
}

fn slots_answered_once(posts: &[Post]) -> Vec<Violation> {
    let mut keys: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for post in taken(posts) {
        let slot = post.body["text"].as_str().and_then(|text| words_after(text, "answer to tick by "));
        if let (Some((_, slot)), Some(session)) = (slot, post.body["session"].as_str()) {
            keys.entry((session, slot)).or_default().insert(&post.key);
        }
    }
    let twice = keys.into_iter().filter(|(_, keys)| keys.len() > 1);
    twice.map(|((session, slot), keys)| Violation::new(SLOT, format!("{session} {slot}: {keys:?}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn post(key: &str, text: &str) -> Post {
        let body = json!({ "session": "cron2", "text": text });
        Post { at: 1, path: "/answers".to_owned(), key: key.to_owned(), body, is_taken: true }
    }

    #[test]
    fn a_slot_that_is_answered_under_two_keys_is_found() {
        let text = "answer to tick by r1 for 2026-11-18T12:00:00Z\n";
        assert_eq!(slots_answered_once(&[post("turn-1", text), post("turn-1", text)]), []);
        assert_eq!(slots_answered_once(&[post("turn-1", text), post("turn-2", text)]).len(), 1);
    }
}
