//! What agents tell: lines of each vendor become facts, and facts what is known of a run. // SPEC P5, D5
//!
//! Owns the words for activity, needs and failures, and how facts of several sources join. Which line means what is
//! in a file for each vendor. Reading files and acting on what is known is the engine's. Lines come from strangers:
//! whatever is in them, nothing here fails or grows without bound, and what is not known is passed over.

mod claude;
mod codex;
mod gemini;
mod hook;
mod opencode;
mod record;
mod reply;
mod usage;
mod words;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::run::Outcome;

pub use hook::{Hook, read_hook};
pub use reply::{REPLY_BYTES_MAX, cut, speech};
pub use usage::Usage;
pub use words::is_lost_conversation;

use reply::Reply;

/// Longest line of a stream that is looked at.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Tool calls that are kept in mind at once.
const TOOLS_MAX: usize = 64;
/// Longest name of a conversation or a tool call.
const NAME_CHARS_MAX: usize = 200;
/// Longest sentence of an agent that is kept.
const MESSAGE_CHARS_MAX: usize = 300;
/// No account is held up for longer: limits are for hours or a week.
const LONGEST_LIMIT: SignedDuration = SignedDuration::from_hours(8 * 24);

/// Whose lines an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vendor {
    Claude,
    Codex,
    Gemini,
    Opencode,
}

impl Vendor {
    pub const ALL: [Vendor; 4] = [Vendor::Claude, Vendor::Codex, Vendor::Gemini, Vendor::Opencode];

    pub fn as_str(self) -> &'static str {
        match self {
            Vendor::Claude => "claude",
            Vendor::Codex => "codex",
            Vendor::Gemini => "gemini",
            Vendor::Opencode => "opencode",
        }
    }

    pub fn parse(word: &str) -> Option<Vendor> {
        Vendor::ALL.into_iter().find(|vendor| vendor.as_str() == word)
    }

    /// What a person types to log its agent in again.
    pub fn login(self) -> &'static str {
        match self {
            Vendor::Claude => "claude /login",
            Vendor::Codex => "codex login",
            Vendor::Gemini => "gemini",
            Vendor::Opencode => "opencode auth login",
        }
    }

    /// Whether a turn that goes on with a conversation tells what all turns of it have used together.
    pub fn counts_conversations(self) -> bool {
        self == Vendor::Codex
    }
}

/// What a run waits for that only others can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    Approval,
    /// An answer; also: what to do next.
    Question,
    Auth,
    Trust,
    /// A rate limit to pass.
    Limit,
}

impl Need {
    pub const ALL: [Need; 5] = [Need::Approval, Need::Question, Need::Auth, Need::Trust, Need::Limit];

    pub fn as_str(self) -> &'static str {
        match self {
            Need::Approval => "approval",
            Need::Question => "question",
            Need::Auth => "auth",
            Need::Trust => "trust",
            Need::Limit => "limit",
        }
    }

    pub fn parse(word: &str) -> Option<Need> {
        Need::ALL.into_iter().find(|need| need.as_str() == word)
    }

    /// As in `Toast …`.
    pub fn words(self) -> &'static str {
        match self {
            Need::Approval => "waits for an approval",
            Need::Question => "waits for an answer: its turn is over and the bead is not closed",
            Need::Auth => "waits for a login",
            Need::Trust => "has not begun: its screen may ask for trust or a login",
            Need::Limit => "waits for a rate limit to pass",
        }
    }
}

/// What an agent does, by its own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    Working,
    Waiting(Need),
    /// It has nothing more to do, and ends by itself.
    TurnOver,
}

impl Activity {
    pub fn as_str(self) -> &'static str {
        match self {
            Activity::Working => "working",
            Activity::Waiting(_) => "waiting",
            Activity::TurnOver => "turn-over",
        }
    }

    pub fn parse(word: &str, need: Option<&str>) -> Option<Activity> {
        match word {
            "working" => Some(Activity::Working),
            "waiting" => Some(Activity::Waiting(Need::parse(need?)?)),
            "turn-over" => Some(Activity::TurnOver),
            _ => None,
        }
    }

    pub fn need(self) -> Option<Need> {
        match self {
            Activity::Waiting(need) => Some(need),
            Activity::Working | Activity::TurnOver => None,
        }
    }
}

/// What kind of failure an agent met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureClass {
    Other,
    /// More than the model can read.
    Context,
    Overloaded,
    Auth,
    Billing,
    RateLimit,
}

impl FailureClass {
    pub const ALL: [FailureClass; 6] = [
        FailureClass::Other,
        FailureClass::Context,
        FailureClass::Overloaded,
        FailureClass::Auth,
        FailureClass::Billing,
        FailureClass::RateLimit,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::Other => "other",
            FailureClass::Context => "context",
            FailureClass::Overloaded => "overloaded",
            FailureClass::Auth => "auth",
            FailureClass::Billing => "billing",
            FailureClass::RateLimit => "rate-limit",
        }
    }

    pub fn parse(word: &str) -> Option<FailureClass> {
        FailureClass::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// Whether every run of the same agent would meet it too, whatever its bead. // SPEC D5
    pub fn is_the_agents(self) -> bool {
        !matches!(self, FailureClass::Other | FailureClass::Context)
    }
}

/// A failure that an agent has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub class: FailureClass,
    pub message: String,
    /// When it passes, if the agent knows.
    pub until: Option<Timestamp>,
}

impl Failure {
    /// What it makes of a run that ends with it; `None`: nothing in particular.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.class {
            FailureClass::RateLimit => Some(Outcome::RateLimited),
            FailureClass::Auth | FailureClass::Billing | FailureClass::Overloaded => Some(Outcome::AgentUnable),
            FailureClass::Other | FailureClass::Context => None,
        }
    }

    /// Until when its agent is held up. A time that lies in the past or beyond any limit is a mistake of somebody's clock.
    pub fn hold_until(&self, now: Timestamp) -> Timestamp {
        let span = match self.class {
            FailureClass::Auth | FailureClass::Billing => SignedDuration::from_mins(10),
            FailureClass::Overloaded => SignedDuration::from_mins(1),
            FailureClass::RateLimit | FailureClass::Other | FailureClass::Context => SignedDuration::from_mins(5),
        };
        let told = self.until.filter(|until| *until > now).map(|until| until.min(now + LONGEST_LIMIT));
        told.unwrap_or(now + span)
    }

    /// Why an agent is held up, and what a person can do about it.
    pub fn reason(&self, vendor: Option<Vendor>) -> String {
        let message = &self.message;
        let login = vendor.map(|vendor| format!("; log in with `{}`", vendor.login())).unwrap_or_default();
        match self.class {
            FailureClass::RateLimit => format!("it is rate limited: {message}"),
            FailureClass::Overloaded => format!("its model is overloaded: {message}"),
            FailureClass::Auth => format!("it is not logged in: {message}{login}"),
            FailureClass::Billing => format!("its account cannot pay: {message}"),
            FailureClass::Other | FailureClass::Context => message.clone(),
        }
    }
}

/// Where a fact comes from; the later is the stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The agent's own hooks. It draws on a terminal, and somebody may answer it there.
    Hook,
    /// The stream of an agent that works by itself and ends.
    Stream,
}

/// One thing that a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fact {
    Conversation(String),
    /// It goes on, so whatever failed before is over.
    Working,
    ToolOpened(String),
    ToolClosed(String),
    Waiting(Need),
    TurnOver,
    /// Used so far.
    Total(Usage),
    /// Used by one step; the same step may be told again.
    Step(String, Usage),
    /// What the conversation fills of the context window, by the last call of the model.
    Context(u64),
    /// This is added to its reply.
    Said(String),
    /// What it says from here on is another answer.
    SaidAll,
    /// This is its reply, whatever it said on the way.
    Replied(String),
    /// It tries again by itself.
    Failing(Failure),
    /// Its turn is over with it.
    Failed(Failure),
}

/// All that is known of a run by its agent's word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    activity: Option<Activity>,
    since: Option<Timestamp>,
    source: Option<Source>,
    conversation: Option<String>,
    failure: Option<Failure>,
    /// Open tool calls.
    tools: BTreeSet<String>,
    /// What earlier steps have used, and the last one.
    steps: Usage,
    step: Option<(String, Usage)>,
    total: Usage,
    context: Option<u64>,
    reply: Reply,
    /// When the last hook was called.
    hooked_at: Option<Timestamp>,
}

impl Told {
    /// Takes in a line that an agent printed at this time. What is no line of the vendor's changes nothing.
    pub fn hear_line(&mut self, vendor: Vendor, line: &str, at: Timestamp) {
        let Some(value) = parse(line) else { return };
        for fact in facts(vendor, &value, at) {
            self.take(fact, Source::Stream, at);
        }
    }

    /// Takes in what a hook was called with.
    pub fn hear_hook(&mut self, hook: &Hook) {
        self.hooked_at = self.hooked_at.max(Some(hook.at));
        for fact in hook.facts() {
            self.take(fact, Source::Hook, hook.at);
        }
    }

    /// Takes in a line of the record that it keeps itself. What its hooks have told since then is newer.
    pub fn hear_record(&mut self, vendor: Vendor, line: &str, now: Timestamp) {
        if line.len() > LINE_BYTES_MAX {
            return;
        }
        let Ok(value) = serde_json::from_str::<Value>(line) else { return };
        let (facts, at) = record::facts(vendor, &value, now);
        for fact in facts {
            let is_usage = matches!(fact, Fact::Total(_) | Fact::Step(..) | Fact::Context(_));
            if is_usage || self.hooked_at.is_none_or(|hooked_at| at >= hooked_at) {
                self.take(fact, Source::Hook, at);
            }
        }
    }

    /// Takes in that its hooks have been silent since it was started: before the first of them is called, an agent asks
    /// whether it may work here at all.
    pub fn hear_silence(&mut self, at: Timestamp) {
        if self.activity.is_none() && self.source.is_none() {
            self.turn_to(Activity::Waiting(Need::Trust), Source::Hook, at, None);
        }
    }

    /// What the run does. On a terminal a turn that is over waits for whoever sits there.
    pub fn activity(&self) -> Option<Activity> {
        match (self.activity?, self.source?) {
            (Activity::TurnOver, Source::Hook) => Some(Activity::Waiting(self.need_after_turn())),
            (activity, _) => Some(activity),
        }
    }

    fn need_after_turn(&self) -> Need {
        match self.failure.as_ref().map(|failure| failure.class) {
            Some(FailureClass::RateLimit) => Need::Limit,
            Some(FailureClass::Auth | FailureClass::Billing) => Need::Auth,
            _ => Need::Question,
        }
    }

    /// Since when it does that.
    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }

    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    /// The failure that it has not got over.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// A failure with which its turn is over, so that it will not get over it by itself.
    pub fn final_failure(&self) -> Option<&Failure> {
        self.failure.as_ref().filter(|_| self.activity == Some(Activity::TurnOver))
    }

    pub fn has_open_tool(&self) -> bool {
        !self.tools.is_empty()
    }

    pub fn usage(&self) -> Usage {
        let step = self.step.as_ref().map(|(_, usage)| *usage).unwrap_or_default();
        self.total.most(self.steps.plus(step))
    }

    /// The answer that it has given, as it wrote it.
    pub fn reply(&self) -> Option<&str> {
        self.reply.text()
    }

    /// How much of the context window its conversation fills: what the last call of its model has read and written. Who
    /// tells only sums seems to fill more than it does; of Codex that is the sum of all turns of the conversation.
    pub fn context_tokens(&self) -> Option<u64> {
        self.context.or_else(|| Some(self.usage().tokens()).filter(|tokens| *tokens > 0))
    }

    fn take(&mut self, fact: Fact, source: Source, at: Timestamp) {
        match fact {
            Fact::Conversation(name) => self.conversation = Some(name),
            Fact::Total(usage) => self.total = self.total.most(usage),
            Fact::Step(name, usage) => self.take_step(name, usage),
            Fact::Context(tokens) => self.context = Some(tokens),
            Fact::Said(text) => self.reply.add(&text),
            Fact::SaidAll => self.reply.end(),
            Fact::Replied(text) => {
                self.reply.end();
                self.reply.add(&text);
                self.reply.end();
            }
            Fact::ToolOpened(name) => {
                if self.tools.len() < TOOLS_MAX {
                    self.tools.insert(name);
                }
            }
            Fact::ToolClosed(name) => drop(self.tools.remove(&name)),
            Fact::Failing(failure) => self.fail(failure),
            Fact::Working => self.turn_to(Activity::Working, source, at, None),
            Fact::Waiting(need) => self.turn_to(Activity::Waiting(need), source, at, self.failure.clone()),
            Fact::TurnOver => {
                self.tools.clear();
                self.turn_to(Activity::TurnOver, source, at, None);
            }
            Fact::Failed(failure) => {
                self.tools.clear();
                self.fail(failure);
                self.turn_to(Activity::TurnOver, source, at, self.failure.clone());
            }
        }
    }

    fn take_step(&mut self, name: String, usage: Usage) {
        match &mut self.step {
            Some((last, told)) if *last == name => *told = told.most(usage),
            step => {
                let last = step.replace((name, usage)).map(|(_, usage)| usage).unwrap_or_default();
                self.steps = self.steps.plus(last);
            }
        }
    }

    /// The last word about a failure is often the vaguest.
    fn fail(&mut self, failure: Failure) {
        let known = self.failure.take();
        self.failure = Some(match known {
            Some(known) if known.class > failure.class => known,
            Some(known) if known.class == failure.class => Failure { until: failure.until.or(known.until), ..failure },
            _ => failure,
        });
    }

    /// The newest fact of the strongest source holds; a weaker one can only put it in doubt.
    fn turn_to(&mut self, activity: Activity, source: Source, at: Timestamp, failure: Option<Failure>) {
        if self.source.is_some_and(|strongest| source < strongest) {
            let is_newer = self.since.is_none_or(|since| at > since);
            if is_newer && self.activity != Some(activity) {
                self.activity = None;
            }
            return;
        }
        if self.activity != Some(activity) {
            self.since = Some(at);
        }
        (self.activity, self.source, self.failure) = (Some(activity), Some(source), failure);
    }
}

/// The value of a line that may be one of a stream.
fn parse(line: &str) -> Option<Value> {
    let line = line.trim();
    if !line.starts_with('{') || line.len() > LINE_BYTES_MAX {
        return None;
    }
    serde_json::from_str(line).ok()
}

fn facts(vendor: Vendor, line: &Value, at: Timestamp) -> Vec<Fact> {
    match vendor {
        Vendor::Claude => claude::facts(line),
        Vendor::Codex => codex::facts(line, at),
        Vendor::Gemini => gemini::facts(line, at),
        Vendor::Opencode => opencode::facts(line, at),
    }
}

/// The name that we give to the conversation of a run, before it is started: a UUID, the run's own where it is one.
pub fn conversation_of(run: &str) -> String {
    let is_uuid = run.len() == 36
        && run.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        });
    if is_uuid {
        return run.to_owned();
    }
    let hash = Sha256::digest(run.as_bytes());
    let hex = hash.iter().take(16).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    // Version 8: made by a rule of one's own.
    format!("{}-{}-8{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// A text of a line; a stranger's, so short and on one line.
fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(message)
}

fn message(text: &str) -> String {
    let line = crate::text::one_line(text);
    line.chars().take(MESSAGE_CHARS_MAX).collect()
}

/// A name that can be stored and shown.
fn name(value: &Value, key: &str) -> Option<String> {
    let name = value.get(key)?.as_str()?;
    let is_fit = !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && !name.contains(crate::text::misleads);
    is_fit.then(|| name.to_owned())
}

fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Dollars of a line in millionths; nonsense is nothing.
fn micros(value: &Value, key: &str) -> u64 {
    let dollars = value.get(key).and_then(Value::as_f64).filter(|cost| cost.is_finite() && *cost > 0.0);
    dollars.map_or(0, |cost| (cost * 1e6).round().min(1e15) as u64)
}

#[cfg(test)]
mod tests;
