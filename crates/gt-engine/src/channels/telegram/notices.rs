//! How often a chat is told that something was not taken: whoever floods it is not flooded in turn.

use std::collections::BTreeMap;
use std::time::Duration;

/// How often at most.
const BETWEEN: Duration = Duration::from_mins(1);
/// Chats that are told within that time.
const CHATS_MAX: usize = 1000;

/// For how long the machine had been up when each chat was last told.
#[derive(Debug, Default)]
pub(super) struct Notices {
    told: BTreeMap<String, Duration>,
}

impl Notices {
    /// Whether a chat may be told something now; then it counts as told.
    pub(super) fn may_tell(&mut self, chat: &str, uptime: Duration) -> bool {
        self.told.retain(|_, at| uptime.saturating_sub(*at) < BETWEEN);
        let may = !self.told.contains_key(chat) && self.told.len() < CHATS_MAX;
        if may {
            self.told.insert(chat.to_owned(), uptime);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chat_is_told_once_and_not_too_many_are() {
        let mut notices = Notices::default();
        let chats: Vec<String> = (0..=CHATS_MAX).map(|chat| chat.to_string()).collect();
        assert_eq!(chats.iter().filter(|chat| notices.may_tell(chat, Duration::ZERO)).count(), CHATS_MAX);
        assert!(!notices.may_tell("0", Duration::from_secs(59)));
        assert!(notices.may_tell("0", BETWEEN));
    }
}
