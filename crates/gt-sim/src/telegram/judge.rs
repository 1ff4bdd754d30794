//! The judge of a town that people write to by Telegram: the promises of `docs/channels.md`, from what the Bot API was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_core::session::TurnOutcome;
use gt_store::{Store, TurnState, TurnView};

use super::CHANNEL;
use super::server::{Call, Due, PEACE, REST, Update, Verdict};
use super::writers;
use crate::conversations::judge::words;
use crate::stage::Stage;
use crate::world::{Pid, Shared};

const TURNS_MAX: usize = 10_000;

/// What was shown of an answer.
#[derive(Debug, Default)]
struct Shown {
    /// How many of its words have arrived, or may have.
    n_words: usize,
    /// Parts that a process knows to have arrived, by their first words.
    heard: BTreeSet<(Pid, usize)>,
    is_refused: bool,
}

pub(super) struct Judge {
    store: Store,
    seen: Option<i64>,
    /// The turn of each message that was taken.
    taken: BTreeMap<String, i64>,
    /// The answers of runs.
    shown: BTreeMap<String, Shown>,
    /// What each process was last refused by each method for each chat, and when.
    refused: BTreeMap<(Pid, String, String), (Verdict, Duration)>,
    /// Messages that were answered.
    answered: BTreeSet<(i64, i64)>,
}

impl Judge {
    pub(super) fn new(stage: &Stage) -> Judge {
        Judge {
            store: stage.ground.medium.open().expect("the store is there"),
            seen: None,
            taken: BTreeMap::new(),
            shown: BTreeMap::new(),
            refused: BTreeMap::new(),
            answered: BTreeSet::new(),
        }
    }

    /// After a commit, before anything else can happen: no mark is beyond what is stored.
    pub(super) fn after_commit(&mut self, world: &Shared) -> Result<(), String> {
        let Some(mark) = self.store.channel_mark(CHANNEL).map_err(words)? else { return Ok(()) };
        let due = unread(&world.lock().bot.updates, mark + 1, &self.taken);
        if due.is_empty() { Ok(()) } else { self.check_stored(&due, &format!("the mark is {mark}")) }
    }

    /// After every step.
    pub(super) fn look(&mut self, stage: &mut Stage) -> Result<(), String> {
        if let Some(violation) = stage.world().lock().violations.pop() {
            return Err(violation);
        }
        let (calls, confirmed) = {
            let mut world = stage.world().lock();
            (std::mem::take(&mut world.bot.calls), world.bot.confirmed)
        };
        for call in &calls {
            self.check_call(stage, call)?;
        }
        let due = unread(&stage.world().lock().bot.updates, confirmed, &self.taken);
        if !due.is_empty() {
            self.check_stored(&due, &format!("all before {confirmed} is confirmed"))?;
        }
        let version = self.store.outside_commits().map_err(words)?;
        if self.seen.replace(version) == Some(version) {
            return Ok(());
        }
        self.check_turns(stage)?;
        let found = self.store.judge(stage.world().now()).map_err(words)?;
        found.dispatch.first().map_or(Ok(()), |complaint| Err(complaint.clone()))
    }

    /// What counts as read is stored.
    fn check_stored(&mut self, due: &[(String, String)], why: &str) -> Result<(), String> {
        for (session, text) in due {
            let turns = self.store.turns(session, TURNS_MAX).map_err(words)?;
            let Some(turn) = turns.iter().find(|turn| turn.text.lines().any(|line| line == text)) else {
                return Err(format!("{why}, and `{text}` to {session} is not stored"));
            };
            self.taken.insert(text.clone(), turn.id);
        }
        Ok(())
    }

    /// Each message is part of one turn, once, in its session; nothing else is asked.
    fn check_turns(&mut self, stage: &mut Stage) -> Result<(), String> {
        let updates = stage.world().lock().bot.updates.clone();
        for session in self.store.sessions(None).map_err(words)? {
            let turns = self.store.turns(&session.key, TURNS_MAX).map_err(words)?;
            let mut lines: BTreeMap<&str, i64> = BTreeMap::new();
            for (line, turn) in turns.iter().flat_map(|turn| turn.text.lines().map(|line| (line, turn.id))) {
                if lines.insert(line, turn).is_some() || self.taken.get(line).is_some_and(|known| *known != turn) {
                    return Err(format!("`{line}` to {} was taken twice", session.key));
                }
            }
            let due = Due::Taken { session: session.key.clone() };
            for line in lines.keys() {
                if !updates.iter().any(|update| update.due == due && writers::words(update) == *line) {
                    return Err(format!("`{line}` was taken in {}, and is not for it", session.key));
                }
            }
        }
        Ok(())
    }

    /// A call: whoever was refused lets it be for a while, and nothing is said to strangers.
    fn check_call(&mut self, stage: &mut Stage, call: &Call) -> Result<(), String> {
        let chat = call.asked["chat_id"].to_string();
        let place = (call.by, call.method.clone(), chat);
        let rest = match self.refused.get(&place).map(|(verdict, _)| verdict) {
            Some(Verdict::WantsPeace) => PEACE,
            Some(_) => REST,
            None => Duration::ZERO,
        };
        let waited = self.refused.get(&place).map_or(Duration::MAX, |(_, at)| call.uptime.saturating_sub(*at));
        // Who delivers waits by the clock, and a clock may be set.
        if call.method == "getUpdates" && waited < rest {
            return Err(format!("{call:?} comes after {waited:?}, and {rest:?} of peace was wanted"));
        }
        match call.verdict {
            Verdict::Fine | Verdict::Unheard => drop(self.refused.remove(&place)),
            verdict => drop(self.refused.insert(place, (verdict, call.uptime))),
        }
        if !matches!(call.method.as_str(), "sendMessage" | "sendChatAction") {
            return Ok(());
        }
        let updates = stage.world().lock().bot.updates.clone();
        if !writers::is_known(&updates, &call.asked["chat_id"]) {
            return Err(format!("{call:?} is to a chat in which nobody may write"));
        }
        if call.method == "sendMessage" { self.check_sent(stage, &updates, call) } else { Ok(()) }
    }

    /// A message of the bot: the next part of an answer, to whoever has asked.
    fn check_sent(&mut self, stage: &mut Stage, updates: &[Update], call: &Call) -> Result<(), String> {
        let text = call.asked["text"].as_str().unwrap_or_default();
        let chat = call.asked["chat_id"].as_i64().unwrap_or_default();
        let answers = call.asked["reply_parameters"]["message_id"].as_i64();
        if let Some(message) = answers {
            let known = updates.iter().find(|update| update.chat == chat && update.message == message);
            if known.is_none_or(|update| matches!(update.due, Due::Stranger | Due::Nothing)) {
                return Err(format!("{call:?} answers {known:?}"));
            }
            if matches!(call.verdict, Verdict::Fine | Verdict::Unheard) {
                self.answered.insert((chat, message));
            }
        }
        let Some((run, first, n)) = part_of(text) else { return Ok(()) };
        let view = stage.look().run(&run).map_err(words)?;
        let session = view.and_then(|run| run.turn).map(|turn| turn.session).unwrap_or_default();
        let of_topic =
            call.asked["message_thread_id"].as_i64().map(|topic| format!(":topic:{topic}")).unwrap_or_default();
        let wanted =
            if chat > 0 { format!("dm:{CHANNEL}:{chat}") } else { format!("group:{CHANNEL}:{chat}{of_topic}") };
        if session != wanted {
            return Err(format!("an answer of {session} was sent to {wanted}"));
        }
        let shown = self.shown.entry(run.clone()).or_default();
        if first > shown.n_words {
            return Err(format!("{run} is shown from word {first} on, and the first {} have arrived", shown.n_words));
        }
        if shown.heard.contains(&(call.by, first)) {
            return Err(format!("process {} sends {run} from word {first} on again, and it has arrived", call.by));
        }
        match call.verdict {
            Verdict::Fine => {
                shown.n_words = shown.n_words.max(first + n);
                shown.heard.insert((call.by, first));
            }
            Verdict::Unheard => shown.n_words = shown.n_words.max(first + n),
            Verdict::Blocked => shown.is_refused = true,
            _ => {}
        }
        Ok(())
    }

    /// What is still to be read or answered.
    pub(super) fn what_is_to_come(&mut self, stage: &mut Stage) -> Result<String, String> {
        let confirmed = stage.world().lock().bot.has_more();
        let parcel = self.store.next_parcel_of(CHANNEL).map_err(words)?;
        let sessions: Vec<String> = self
            .store
            .sessions(None)
            .map_err(words)?
            .into_iter()
            .filter(|session| session.n_waiting + session.n_live > 0)
            .map(|session| session.key)
            .collect();
        Ok(format!("unread: {confirmed}, to be delivered: {parcel:?}, sessions: {sessions:?}"))
    }

    pub(super) fn is_anything_to_come(&mut self, stage: &mut Stage) -> Result<bool, String> {
        let is_due = self.store.next_parcel_of(CHANNEL).map_err(words)?.is_some();
        let mut sessions = self.store.sessions(None).map_err(words)?.into_iter();
        let is_busy = sessions.any(|session| session.n_waiting + session.n_live > 0);
        Ok(is_due || is_busy || stage.world().lock().bot.has_more())
    }

    /// In the end each message has been taken, and its answer has arrived, all of it, or was refused for good.
    pub(super) fn conclude(&mut self, stage: &mut Stage) -> Result<(), String> {
        let updates = stage.world().lock().bot.updates.clone();
        let due = unread(&updates, i64::MAX, &self.taken);
        self.check_stored(&due, "all was read")?;
        for session in self.store.sessions(None).map_err(words)? {
            for turn in self.store.turns(&session.key, TURNS_MAX).map_err(words)? {
                self.check_answered(&turn)?;
            }
        }
        let last = updates.iter().rev().take(5).filter(|update| matches!(update.due, Due::Taken { .. }));
        for update in last {
            if !self.answered.contains(&(update.chat, update.message)) {
                return Err(format!("{update:?} was written in peace, and has no answer"));
            }
        }
        Ok(())
    }

    fn check_answered(&mut self, turn: &TurnView) -> Result<(), String> {
        let delivery = self.store.delivery_of(turn.id).map_err(words)?.map(|(state, _)| state);
        if turn.state != TurnState::Ended {
            return Err(format!("turn {} of {} has not ended", turn.id, turn.session));
        }
        let Some(run) = turn.run.as_ref().filter(|_| turn.outcome == Some(TurnOutcome::Done)) else { return Ok(()) };
        let said = turn.reply.as_deref().unwrap_or_default();
        let shown = self.shown.get(run);
        let n_words = said.split_whitespace().filter(|word| word.contains(':')).count();
        let is_so = match delivery.as_deref() {
            Some("delivered") => shown.is_some_and(|shown| shown.n_words >= n_words) || n_words == 0,
            Some("failed") => shown.is_some_and(|shown| shown.is_refused) || n_words == 0,
            _ => false,
        };
        if is_so {
            return Ok(());
        }
        Err(format!(
            "turn {} of {} is {delivery:?}, and of its {n_words} words were shown: {shown:?}",
            turn.id, turn.session
        ))
    }
}

/// What is to be taken of the updates before this one, and is not known to be.
fn unread(updates: &[Update], before: i64, taken: &BTreeMap<String, i64>) -> Vec<(String, String)> {
    let due = updates.iter().take_while(|update| update.id < before).filter_map(|update| match &update.due {
        Due::Taken { session } => Some((session.clone(), writers::words(update).to_owned())),
        _ => None,
    });
    due.filter(|(_, text)| !taken.contains_key(text)).collect()
}

/// The run whose words these are, which is the first of them, and how many they are.
fn part_of(text: &str) -> Option<(String, usize, usize)> {
    let mut numbered = text.split_whitespace().filter_map(|word| word.split_once(':'));
    let (run, first) = numbered.next().filter(|(run, _)| run.starts_with("run-"))?;
    Some((run.to_owned(), first.parse().ok()?, 1 + numbered.count()))
}
