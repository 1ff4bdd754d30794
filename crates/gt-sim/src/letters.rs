//! Letters and notices: whatever promises one is stored with it, and with nothing else. // SPEC C4, R1–R3
//!
//! What is promised follows from the log. The judge looks after whole transactions only, so a promise that is not kept by
//! then was not kept in its own.

use std::collections::BTreeMap;

use gt_core::event::Event;
use gt_store::{DEACON, Letter, MAYOR, Notice, Store};
use jiff::Timestamp;
use serde_json::Value;

use crate::model::Model;

/// How the subject of what people write to each other begins.
pub const HELLO: &str = "Hello";
/// Who watches convoys here.
pub const WATCHER: &str = "cleo";
const RECIPIENTS: [&str; 3] = [MAYOR, DEACON, WATCHER];

/// A letter's recipient, subject and bead; or a notice's kind and bead.
type Words = Vec<String>;

#[derive(Debug, Default)]
pub struct Letters {
    /// What is promised, and what was sent, since the judge looked last.
    owed: Vec<Words>,
    owed_notices: Vec<Words>,
    /// Letters with notices that may be left out: a circuit that breaks again was told of before.
    optional: Vec<Words>,
    /// Convoys that have landed, with their titles: who watches them is written to.
    landed: Vec<(String, String)>,
    /// Jobs that were disabled: the mayor is written to, and a notice tells of it.
    n_disabled: usize,
    sent: BTreeMap<i64, Words>,
    /// Every letter that was ever sent, and the last notice that is known.
    known: BTreeMap<i64, Words>,
    last_notice: i64,
}

impl Letters {
    /// Takes in what happened next, before the model does.
    pub fn apply(&mut self, event: &Event, model: &Model) {
        let text = |key: &str| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
        let bead = event.bead.clone().unwrap_or_default();
        match event.kind.as_str() {
            "mail.sent" => {
                let id = event.data.get("mail").and_then(Value::as_i64).unwrap_or_default();
                self.sent.insert(id, words([text("to"), text("subject"), &bead]));
            }
            "convoy.landed" => {
                self.owed_notices.push(words(["convoy.landed", &bead]));
                self.landed.push((bead, text("title").to_owned()));
            }
            "run.ended" if !bead.is_empty() && matches!(text("outcome"), "died" | "timed-out" | "lost") => {
                self.owed.push(words([DEACON, &format!("RECOVERED_BEAD {bead}"), &bead]));
            }
            "bead.escalated" => {
                let asks = event.data.get("attempts").map_or("needs a person", |_| "is out of attempts");
                self.owed.push(words([MAYOR, &format!("{bead} {asks}"), &bead]));
                self.owed_notices.push(words(["bead.escalated", &bead]));
            }
            "context.closed" if text("reason") == "circuit-broken" => {
                let letter = words([MAYOR, &format!("the circuit of {bead} is broken"), &bead]);
                if model.beads.get(&bead).is_some_and(|bead| bead.is_half_open) {
                    self.optional.push(letter);
                } else {
                    self.owed.push(letter);
                    self.owed_notices.push(words(["bead.escalated", &bead]));
                }
            }
            "job.disabled" => self.n_disabled += 1,
            "run.waiting" | "run.stalled" => self.owed_notices.push(words([&event.kind, &bead])),
            _ => {}
        }
    }

    /// After whole transactions: every promise is kept, once, and nothing else was sent.
    pub fn settle(&mut self, store: &mut Store) -> Result<(), String> {
        for (convoy, title) in std::mem::take(&mut self.landed) {
            let bead = store.bead(&convoy).map_err(|error| error.to_string())?.bead;
            let watchers = bead.body.get("watchers").and_then(|raw| serde_json::from_str(raw.get()).ok());
            let watchers: Vec<String> = watchers.unwrap_or_default();
            let to = |who: &String| words([who, &format!("Convoy landed: {title}"), &convoy]);
            self.owed.extend(watchers.iter().map(to));
        }
        let new = self.new_notices(store)?;
        if self.owed.is_empty() && self.sent.is_empty() && self.owed_notices.is_empty() && new.is_empty() {
            return Ok(());
        }
        let mut sent: Vec<Words> = self.sent.values().cloned().collect();
        let mut told: Vec<Words> = new.iter().map(key).collect();
        for letter in std::mem::take(&mut self.optional) {
            if take(&mut sent, &letter) && !take(&mut told, &words(["bead.escalated", &letter[2]])) {
                return Err(format!("{letter:?} was sent, and no notice tells of it"));
            }
        }
        sent.retain(|letter| !letter[1].starts_with(HELLO));
        for _ in 0..std::mem::take(&mut self.n_disabled) {
            let letter = sent.iter().position(|letter| letter[0] == MAYOR && letter[2].is_empty());
            let notice = told.iter().position(|notice| notice[0] == "job.disabled");
            let (Some(letter), Some(notice)) = (letter, notice) else {
                return Err(format!("a job was disabled, and {sent:?} and {told:?} do not say so"));
            };
            sent.remove(letter);
            told.remove(notice);
        }
        same("letters", std::mem::take(&mut self.owed), sent)?;
        same("notices", std::mem::take(&mut self.owed_notices), told)?;
        self.known.append(&mut self.sent);
        self.compare(store)
    }

    /// Notices since the last time; each is due at once, and says something.
    fn new_notices(&mut self, store: &mut Store) -> Result<Vec<Notice>, String> {
        let mut all = store.due_notices(Timestamp::MAX, usize::MAX >> 1).map_err(|error| error.to_string())?;
        all.retain(|notice| notice.id > self.last_notice);
        self.last_notice = all.iter().map(|notice| notice.id).max().unwrap_or(self.last_notice);
        match all.iter().find(|notice| notice.text.trim().is_empty() || !notice.targets.is_empty()) {
            Some(odd) => Err(format!("a notice that is new is odd: {odd:?}")),
            None => Ok(all),
        }
    }

    /// What was sent is there, as it was sent, and nothing else.
    fn compare(&self, store: &mut Store) -> Result<(), String> {
        let mut there: BTreeMap<i64, Words> = BTreeMap::new();
        for who in RECIPIENTS {
            let inbox = store.inbox(who, true, usize::MAX >> 1).map_err(|error| error.to_string())?;
            there.extend(inbox.letters.into_iter().map(|letter| (letter.id, of(&letter))));
        }
        if there == self.known {
            return Ok(());
        }
        let odd = there.iter().find(|(id, words)| self.known.get(*id) != Some(*words));
        let lost = self.known.iter().find(|(id, _)| !there.contains_key(*id));
        Err(format!("the letters are not those that were sent: {odd:?} is there, {lost:?} is not"))
    }
}

fn of(letter: &Letter) -> Words {
    words([&letter.to, &letter.subject, letter.bead.as_deref().unwrap_or_default()])
}

fn key(notice: &Notice) -> Words {
    words([&notice.kind, notice.bead.as_deref().unwrap_or_default()])
}

fn words<const N: usize>(of: [&str; N]) -> Words {
    of.map(str::to_owned).to_vec()
}

fn take(from: &mut Vec<Words>, what: &Words) -> bool {
    let at = from.iter().position(|one| one == what);
    at.map(|at| from.swap_remove(at)).is_some()
}

fn same(what: &str, mut owed: Vec<Words>, mut sent: Vec<Words>) -> Result<(), String> {
    owed.sort();
    sent.sort();
    if owed == sent {
        Ok(())
    } else {
        Err(format!("these {what} were promised: {owed:?}, and these are there: {sent:?}"))
    }
}
