//! A simulated Bot API: what people have written waits until it is confirmed by an offset, and what the bot sends is remembered.
//! It fails, wants to be left in peace, tells of another reader, and says again what it has said.

use std::time::Duration;

use fastrand::Rng;
use gt_engine::channels::{BotAnswer, CallBot, NotPosted};
use serde_json::{Value, json};

use crate::around::Around;
use crate::strand::{self, Halt};
use crate::world::Pid;

/// How long it keeps a reader waiting who has nothing to read.
const LONG_POLL: Duration = Duration::from_secs(30);
/// When it wants to be asked again after too many questions.
pub(super) const PEACE: Duration = Duration::from_secs(20);
/// How long nothing is asked again after a failure, at least.
pub(super) const REST: Duration = Duration::from_secs(1);
/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The bot itself.
pub(super) const BOT: (i64, &str) = (999, "works_bot");

/// What is to become of something that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// It is a message in this session.
    Taken { session: String },
    /// It is a command, which is obeyed and answered.
    Obeyed,
    /// Only that it cannot be read is said.
    Unreadable,
    /// It is for another, or nobody can read it.
    Nothing,
    /// Whoever wrote it may not.
    Stranger,
}

/// Something that was written.
#[derive(Debug, Clone)]
pub(super) struct Update {
    pub(super) id: i64,
    pub(super) body: Value,
    pub(super) text: String,
    pub(super) chat: i64,
    pub(super) message: i64,
    pub(super) due: Due,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Fine,
    /// It was done, and the answer was lost.
    Unheard,
    Unreachable,
    Failing,
    WantsPeace,
    Conflict,
    /// The chat does not want to hear from the bot.
    Blocked,
}

/// A call that was made.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) asked: Value,
    pub(super) by: Pid,
    pub(super) verdict: Verdict,
    pub(super) uptime: Duration,
}

#[derive(Default)]
pub struct Server {
    pub(super) updates: Vec<Update>,
    /// All before this one are confirmed.
    pub(super) confirmed: i64,
    /// Since the judge looked.
    pub(super) calls: Vec<Call>,
    /// The processes that read and deliver.
    pub(super) threads: (Option<Pid>, Option<Pid>),
    /// It fails once in so many times; zero: never.
    failing: u32,
    /// Once in so many times what was confirmed comes again.
    repeating: u32,
}

impl Server {
    pub fn n_updates(&self) -> usize {
        self.updates.len()
    }

    pub fn draw_faults(&mut self, rng: &mut Rng) {
        self.failing = if rng.bool() { 0 } else { rng.u32(3..=20) };
        self.repeating = if rng.bool() { 0 } else { rng.u32(3..=20) };
    }

    pub fn heal(&mut self) {
        (self.failing, self.repeating) = (0, 4);
    }

    fn verdict(&self, method: &str, rng: &mut Rng) -> Verdict {
        use Verdict::{Blocked, Conflict, Failing, Unheard, Unreachable, WantsPeace};
        if self.failing == 0 || rng.u32(0..self.failing) > 0 {
            return Verdict::Fine;
        }
        match (rng.u32(0..8), method) {
            (0 | 1, _) => Unheard,
            (2, _) => Unreachable,
            (3 | 4, _) => WantsPeace,
            (5, "getUpdates") => Conflict,
            (5, "sendMessage") if rng.bool() => Blocked,
            _ => Failing,
        }
    }

    /// What there is from this one on; what was confirmed is forgotten, and now and then comes again all the same.
    fn read(&mut self, offset: Option<i64>, limit: usize, rng: &mut Rng) -> Vec<Value> {
        self.confirmed = self.confirmed.max(offset.unwrap_or(0));
        let repeats = self.repeating > 0 && rng.u32(0..self.repeating) == 0;
        let from = self.confirmed - if repeats { rng.i64(1..4) } else { 0 };
        let new = self.updates.iter().filter(|update| update.id >= self.confirmed).count();
        if new == 0 {
            return Vec::new();
        }
        self.updates.iter().filter(|update| update.id >= from).take(limit).map(|update| update.body.clone()).collect()
    }

    /// Whether something waits that is not confirmed.
    pub(super) fn has_more(&self) -> bool {
        self.updates.last().is_some_and(|update| update.id >= self.confirmed)
    }
}

/// The way to it, as a process has it.
pub(super) struct Line(Around);

impl Line {
    pub(super) fn new(around: Around) -> Line {
        Line(around)
    }

    /// Waits until there is something to read, but not for long.
    fn wait(&self, offset: Option<i64>) {
        let until = self.0.world.lock().uptime() + LONG_POLL;
        loop {
            {
                let mut world = self.0.world.lock();
                let confirmed = world.bot.confirmed.max(offset.unwrap_or(0));
                let is_any = world.bot.updates.last().is_some_and(|update| update.id >= confirmed);
                if is_any || world.uptime() >= until {
                    return;
                }
                if let Some(process) = world.processes.get_mut(&self.0.pid) {
                    process.has_mail = false;
                }
            }
            strand::halt(Halt::Idle { until: Some(until) });
        }
    }

    fn serve(&self, method: &str, asked: &Value) -> Value {
        let mut world = self.0.world.lock();
        let world = &mut *world;
        match method {
            "getMe" => json!({ "id": BOT.0, "is_bot": true, "first_name": "works", "username": BOT.1 }),
            "getUpdates" => {
                let limit = asked["limit"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(100);
                Value::Array(world.bot.read(asked["offset"].as_i64(), limit, &mut world.rng))
            }
            "sendMessage" => {
                let chat = json!({ "id": asked["chat_id"], "type": "private" });
                json!({ "message_id": 1_000_000, "date": 0, "chat": chat, "text": asked["text"] })
            }
            _ => Value::Bool(true),
        }
    }
}

impl CallBot for Line {
    fn call(&self, url: &str, body: &str) -> Result<BotAnswer, NotPosted> {
        self.0.boundary();
        let method = url.rsplit('/').next().unwrap_or_default().to_owned();
        let asked: Value = serde_json::from_str(body).unwrap_or_default();
        let verdict = {
            let mut world = self.0.world.lock();
            let world = &mut *world;
            let verdict = world.bot.verdict(&method, &mut world.rng);
            let (by, uptime) = (self.0.pid, world.uptime());
            world.bot.calls.push(Call { method: method.clone(), asked: asked.clone(), by, verdict, uptime });
            if matches!(verdict, Verdict::Unheard | Verdict::Unreachable) {
                world.pass(TIMEOUT);
            }
            verdict
        };
        if method != "getUpdates" || verdict != Verdict::Fine {
            self.0.world.tell(|| format!("process {} calls {method} {asked}: {verdict:?}", self.0.pid));
        }
        let is_done = matches!(verdict, Verdict::Fine | Verdict::Unheard);
        if is_done && method == "getUpdates" {
            self.wait(asked["offset"].as_i64());
        }
        let result = if is_done { self.serve(&method, &asked) } else { Value::Null };
        self.0.boundary();
        let answer = |status: u16, body: Value| Ok(BotAnswer { status, body: body.to_string() });
        let refusal = |code: u16, more: Value| {
            answer(
                code,
                json!({ "ok": false, "error_code": code, "description": "so it was drawn", "parameters": more }),
            )
        };
        match verdict {
            Verdict::Fine => answer(200, json!({ "ok": true, "result": result })),
            Verdict::Failing => refusal(502, json!({})),
            Verdict::WantsPeace => refusal(429, json!({ "retry_after": PEACE.as_secs() })),
            Verdict::Conflict => refusal(409, json!({})),
            Verdict::Blocked => refusal(403, json!({})),
            Verdict::Unheard | Verdict::Unreachable => Err(NotPosted::Unreachable("so it was drawn".to_owned())),
        }
    }
}
