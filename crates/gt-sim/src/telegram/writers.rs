//! People who write to the bot: those who may and strangers, alone, in a group and in a topic of it, what is for the bot and what
//! is not, words and pictures, commands, and what is written anew.

use serde_json::{Value, json};

use super::CHANNEL;
use super::server::{BOT, Due, Update};
use crate::knobs::Knobs;
use crate::part::Part;
use crate::stage::Stage;

/// Whoever may write, by name or by number, and a stranger.
const ANNA: (i64, &str) = (101, "anna");
const BEN: (i64, &str) = (102, "ben");
const EVE: (i64, &str) = (666, "eve");
/// Groups in which everybody may write, and in which only some may.
const OPEN: i64 = -1001;
const OTHER: i64 = -1002;
/// Where updates are counted from.
const FIRST: i64 = 5_000;

/// The config of such a town.
pub(super) fn configure(stage: &mut Stage) {
    let knobs = {
        let mut world = stage.world().lock();
        Knobs { max_run: 0, agents: [0, 0], per_second: 0, ..Knobs::draw(&mut world.rng) }
    };
    let allow = format!("[\"@Anna\", \"{}\", \"{OPEN}\"]", BEN.0);
    let more = format!(
        "lanes.main = 3\nsessions.cap = 200\nsessions.debounce_ms = 800\nsessions.timeout = \"2m\"\n\
         channels.{CHANNEL}.kind = \"telegram\"\nchannels.{CHANNEL}.token = \"{}:token\"\nchannels.{CHANNEL}.allow = {allow}\n\
         agents.ada.headless = [\"ada\"]\nagents.bob.headless = [\"bob\"]\n",
        BOT.0
    );
    stage.configure(Knobs { more, ..knobs });
}

#[derive(Default)]
pub(super) struct Writers {
    n_messages: i64,
    n_updates: i64,
}

impl Writers {
    /// Something is written; whoever waits for it hears of it.
    fn write(&mut self, stage: &Stage, who: (i64, &str), chat: i64, kind: u32) {
        self.n_messages += 1;
        self.n_updates += 1;
        let (id, message) = (FIRST + self.n_updates, self.n_messages);
        let is_dm = chat > 0;
        let may = who != EVE || chat == OPEN;
        let topic = (chat == OPEN && kind % 5 == 1).then_some(7);
        let text = match kind {
            0 => "/stop".to_owned(),
            _ if is_dm || kind % 4 == 3 => format!("message {message}"),
            1 | 2 => format!("@{} message {message}", BOT.1),
            _ => format!("message {message}, @{}", BOT.1.to_uppercase()),
        };
        let is_for_us = is_dm || kind % 4 != 3;
        let mut body = json!({
            "message_id": message, "date": 0, "chat": { "id": chat, "type": if is_dm { "private" } else { "supergroup" } },
            "from": { "id": who.0, "is_bot": false, "first_name": who.1, "username": who.1 },
        });
        let is_picture = kind == 11;
        if is_picture {
            body["dice"] = json!({ "emoji": "x", "value": 1 });
        } else {
            body["text"] = json!(text);
        }
        if let Some(topic) = topic {
            (body["message_thread_id"], body["is_topic_message"]) = (json!(topic), json!(true));
        }
        let of_topic = topic.map(|topic| format!(":topic:{topic}")).unwrap_or_default();
        let session =
            if is_dm { format!("dm:{CHANNEL}:{}", who.0) } else { format!("group:{CHANNEL}:{chat}{of_topic}") };
        // What is below a picture in a group names nobody.
        let is_for_us = is_for_us && (is_dm || !is_picture);
        let due = match (is_for_us, may) {
            (false, _) => Due::Nothing,
            (true, false) => Due::Stranger,
            (true, true) if is_picture => Due::Unreadable,
            (true, true) if kind == 0 => Due::Obeyed,
            (true, true) => Due::Taken { session },
        };
        let key = if kind == 12 { "edited_message" } else { "message" };
        let update = json!({ "update_id": id, key: body });
        let odd = json!({ "update_id": id, "message": { "odd": true } });
        let (body, due) = if kind == 13 { (odd, Due::Nothing) } else { (update, due) };
        stage.world().tell(|| format!("{} writes update {id} in {chat}: {due:?}", who.1));
        let mut world = stage.world().lock();
        world.bot.updates.push(Update { id, body, text, chat, message, due });
        let listens = world.bot.threads.0;
        if let Some(process) = listens.and_then(|pid| world.processes.get_mut(&pid)) {
            process.has_mail = true;
        }
    }

    fn anything(&mut self, stage: &Stage) {
        let (who, place, kind) = {
            let mut world = stage.world().lock();
            ([ANNA, BEN, ANNA, EVE][world.rng.usize(0..4)], world.rng.u32(0..4), world.rng.u32(0..20))
        };
        let chat = match place {
            0 | 1 => who.0,
            2 => OPEN,
            _ => OTHER,
        };
        self.write(stage, who, chat, kind);
    }
}

impl Part for Writers {
    fn weight(&self, _stage: &Stage) -> u32 {
        8
    }

    fn act(&mut self, stage: &mut Stage) {
        let many = stage.world().lock().chance(8);
        for _ in 0..if many { 5 } else { 1 } {
            self.anything(stage);
        }
    }

    /// Whose limit was told by a clock that was ahead is let try again.
    fn heal(&mut self, stage: &mut Stage) {
        let stamp = stage.stamp("ann");
        stage.store.resume(&stamp).map(drop).unwrap_or_default();
    }

    /// Everybody writes once more.
    fn tidy(&mut self, stage: &mut Stage) {
        for (who, chat) in [(ANNA, ANNA.0), (BEN, BEN.0), (EVE, EVE.0), (EVE, OPEN), (ANNA, OTHER)] {
            self.write(stage, who, chat, 2);
        }
    }
}

/// The words that people have written, of an update that is to be taken.
pub(super) fn words(update: &Update) -> &str {
    &update.text
}

/// Where those write who may.
pub(super) fn is_known(updates: &[Update], chat: &Value) -> bool {
    let may = |update: &&Update| !matches!(update.due, Due::Stranger | Due::Nothing);
    updates.iter().filter(may).any(|update| json!(update.chat) == *chat)
}
