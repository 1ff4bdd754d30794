//! Messages to twenty sessions. Each session has one sender, who sends the next message when the last was acknowledged.

use std::time::Duration;

use serde_json::Value;

use super::Load;

pub(super) const SENDERS: usize = 2;
const SESSIONS: usize = 20;
/// No more are sent while so many wait for their answer.
const UNANSWERED_MAX: usize = 60;

/// A message that `gt send` acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) session: String,
    /// Unique, and without blanks.
    pub(crate) text: String,
}

impl Load {
    pub(super) fn feed_messages(&self, sender: usize, rng: &mut fastrand::Rng) {
        for n in 0.. {
            if self.over.wait(Duration::from_millis(rng.u64(50..400))) {
                return;
            }
            if self.n_unanswered() < UNANSWERED_MAX {
                let session = format!("dm:{}", rng.usize(..SESSIONS / SENDERS) * SENDERS + sender);
                self.send(&session, &format!("m{sender}-{n}"), rng);
            }
        }
    }

    fn n_unanswered(&self) -> usize {
        self.asked().messages.len().saturating_sub(self.receiver.n_answers("dm:"))
    }

    fn send(&self, session: &str, text: &str, rng: &mut fastrand::Rng) {
        let agent = if rng.bool() { "scripted" } else { "teller" };
        let words = ["send", session, text, "--id", text, "--channel", "hook", "--agent", agent, "--json"];
        let Some(printed) = self.insist(rng, || self.town.gt(&words)) else { return };
        let outcome: Value = serde_json::from_str(&printed).unwrap_or_default();
        if ["queued", "repeated"].iter().any(|known| outcome["outcome"] == *known) {
            self.tally.one("messages");
            self.asked().messages.push(Sent { session: session.to_owned(), text: text.to_owned() });
        } else {
            self.asked().failures.push(format!("`gt send` answers {printed}"));
        }
    }
}
