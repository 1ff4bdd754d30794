//! `gt session`: what sessions do, have said, and go by. // SPEC L2–L4

use clap::{Args, Subcommand};
use gt_core::session::{Mode, Overflow, TurnOutcome};
use gt_core::text::{many_lines, one_line};
use gt_core::time;
use gt_engine::config::parse_duration;
use gt_engine::talk::shape;
use gt_store::{Session, Store, TurnState, TurnView, Wishes};
use jiff::SignedDuration;
use serde_json::json;

use super::send;
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BLUE, BOLD, DIM, GREEN, RED, YELLOW, paint};

/// See, stop and set the sessions that agents answer
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt session list
  gt session show dm:anna
  gt session stop dm:anna             stops the oldest turn
  gt session set dm:anna --agent codex --debounce 0s")]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    List(ListArgs),
    Show(ShowArgs),
    Stop(StopArgs),
    Stopall(StopArgs),
    Set(SetArgs),
}

/// List sessions, those at work first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt session list
  gt session list --limit 0 --json")]
struct ListArgs {
    /// At most so many; 0: all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Show what was said in a session, what runs and what waits
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt session show dm:anna
  gt session show dm:anna --limit 100 --json")]
struct ShowArgs {
    #[arg(value_name = "SESSION")]
    key: String,
    /// The last so many turns; 0: all
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

/// Stop the oldest turn of a session; `stopall`: all of them, and what waits
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt session stop dm:anna
  gt session stopall group:ops")]
struct StopArgs {
    #[arg(value_name = "SESSION")]
    key: String,
}

/// Set what holds for one session, instead of what the config says
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt session set dm:anna --agent codex
  gt session set group:ops --mode interrupt --lane delegate
  gt session set dm:anna --channel my-hook      answers go to a channel of `channels.NAME`
  gt session set dm:anna --mode default         as the config says
  gt session set dm:anna --forget               the next turn begins a new conversation")]
struct SetArgs {
    #[arg(value_name = "SESSION")]
    key: String,
    /// Who answers
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The lane that its turns count in
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// What a message does while it is busy: queue, followup or interrupt
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Messages that may wait
    #[arg(long, value_name = "N")]
    cap: Option<String>,
    /// Which message gives way when it is full: old or new
    #[arg(long, value_name = "WHICH")]
    drop: Option<String>,
    /// How long messages of one sender become one turn
    #[arg(long, value_name = "SPAN")]
    debounce: Option<String>,
    /// The channel that its answers go to
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// To whom, in the channel's own words
    #[arg(long, value_name = "WHO")]
    to: Option<String>,
    /// Have the next turn begin a new conversation
    #[arg(long)]
    forget: bool,
}

pub(crate) fn run(context: &Context, args: SessionArgs) -> Result<(), Failure> {
    match args.command {
        SessionCommand::List(args) => list(context, &args),
        SessionCommand::Show(args) => show(context, &args),
        SessionCommand::Stop(args) => stop(context, &args.key, false),
        SessionCommand::Stopall(args) => stop(context, &args.key, true),
        SessionCommand::Set(args) => set(context, &args),
    }
}

fn list(context: &Context, args: &ListArgs) -> Result<(), Failure> {
    let sessions = context.store()?.sessions(Some(args.limit).filter(|limit| *limit > 0))?;
    if context.wants_json() {
        return context.json(&sessions.iter().map(shape::session).collect::<Vec<_>>());
    }
    if sessions.is_empty() {
        return context.say("Nobody has been talked to yet: `gt send dm:me 'Hello'`.");
    }
    let width = sessions.iter().map(|session| one_line(&session.key).chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = sessions.iter().map(|session| line(session, width)).collect();
    context.say(&lines.join("\n"))
}

fn line(session: &Session, width: usize) -> String {
    let sign = match (session.n_live, session.n_waiting) {
        (0, 0) => paint(DIM, "○"),
        (0, _) => paint(YELLOW, "◌"),
        _ => paint(BLUE, "▶"),
    };
    let key = format!("{:<width$}", one_line(&session.key));
    let busy = format!("{} running, {} waiting", session.n_live, session.n_waiting);
    let agent = session.wishes.agent.as_deref().or(session.talks_to.as_deref()).map(one_line).unwrap_or_default();
    let last = format!("last {}  {agent}", time::format(session.last_at));
    format!("{sign} {key}  {busy}  {}", paint(DIM, last.trim_end()))
}

fn require(store: &mut Store, key: &str) -> Result<Session, Failure> {
    store.session(key)?.ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("there is no session `{}`", one_line(key)))
            .hint("`gt session list` shows them; `gt send` makes one")
    })
}

fn show(context: &Context, args: &ShowArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let session = require(&mut store, &args.key)?;
    let most = if args.limit == 0 { usize::MAX } else { args.limit };
    let town = context.town()?;
    let policy = context.settings(&town)?.policy(town.root());
    let mut turns = Vec::new();
    for turn in store.turns(&args.key, most)? {
        let why = store.why_waiting(turn.id, &policy, context.now())?;
        turns.push((turn, why));
    }
    if context.wants_json() {
        let mut body = shape::session(&session);
        body["turns"] = turns.iter().map(|(turn, why)| shape::turn(turn, why.as_deref())).collect();
        return context.json(&body);
    }
    let mut text = paint(BOLD, &one_line(&session.key));
    for (name, value) in fields(&session) {
        text.extend(["\n  ", &paint(DIM, &format!("{name:<12}")), " ", &value]);
    }
    for (turn, why) in &turns {
        text.push_str("\n\n");
        text.push_str(&turn_text(turn, why.as_deref()));
    }
    context.say(&text)
}

/// What is worth knowing of a session besides what was said.
fn fields(session: &Session) -> Vec<(&'static str, String)> {
    let wishes = &session.wishes;
    let tokens = session.tokens.map(|tokens| {
        let crowded = if session.is_crowded { ", so its turns run one by one" } else { "" };
        format!("{tokens} tokens{crowded}")
    });
    let fields = [
        ("running", Some(format!("{} of {} at once", session.n_live, session.limit()))),
        ("waiting", Some(session.n_waiting.to_string())),
        ("agent", wishes.agent.clone()),
        ("lane", wishes.lane.clone()),
        ("mode", wishes.mode.map(|mode| mode.as_str().to_owned())),
        ("cap", wishes.cap.map(|cap| cap.to_string())),
        ("drop", wishes.overflow.map(|overflow| overflow.as_str().to_owned())),
        ("debounce", wishes.debounce.map(|span| format!("{span:#}"))),
        ("channel", wishes.channel.clone()),
        ("to", wishes.recipient.clone()),
        ("conversation", session.conversation.clone()),
        ("context", tokens),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, one_line(&value?)))).collect()
}

fn turn_text(turn: &TurnView, why: Option<&str>) -> String {
    let (sign, word) = match (turn.state, turn.outcome) {
        (TurnState::Waiting, _) => (paint(YELLOW, "◌"), "waits"),
        (TurnState::Live, _) => (paint(BLUE, "▶"), "is being answered"),
        (_, Some(TurnOutcome::Done)) => (paint(GREEN, "✓"), "done"),
        (_, Some(TurnOutcome::Failed)) => (paint(RED, "✗"), "failed"),
        (_, Some(TurnOutcome::Cancelled)) => (paint(DIM, "✗"), "cancelled"),
        (_, Some(TurnOutcome::Dropped)) => (paint(DIM, "✗"), "dropped"),
        (TurnState::Ended, None) => (paint(DIM, "?"), "ended"),
    };
    let run = turn.run.as_deref().map(|run| format!("  {run}")).unwrap_or_default();
    let head = paint(DIM, &format!("turn {}  {}  {word}{run}", turn.id, time::format(turn.made_at)));
    let mut text = format!("{sign} {head}\n{}", indented("> ", &turn.text));
    if let Some(reply) = &turn.reply {
        text.extend(["\n", &indented("  ", reply)]);
    }
    if let Some(why) = turn.error.as_deref().filter(|_| why.is_none()).or(why) {
        text.extend(["\n  ", &paint(DIM, &one_line(why))]);
    }
    text
}

fn indented(lead: &str, text: &str) -> String {
    many_lines(text).lines().map(|line| format!("  {lead}{line}")).collect::<Vec<_>>().join("\n")
}

fn stop(context: &Context, key: &str, is_all: bool) -> Result<(), Failure> {
    let mut store = context.store()?;
    require(&mut store, key)?;
    let stopped = store.stop_session(key, is_all, &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({
            "session": key,
            "stopped": stopped.runs,
            "cancelled": stopped.n_cancelled,
            "left": stopped.n_left,
        }));
    }
    context.say(&stopped.words())
}

fn set(context: &Context, args: &SetArgs) -> Result<(), Failure> {
    if let Some(why) = gt_core::session::flaw_of_key(&args.key) {
        let key = one_line(&args.key);
        return Err(Failure::new(Kind::Refused, format!("`{key}` cannot name a session: {why}"))
            .hint("name it like `dm:anna` or `group:ops`"));
    }
    let changes = Changes::read(args)?;
    let named = |name: &Option<String>| name.clone().filter(|name| name != "default");
    let (channel, agent) = (named(&args.channel), named(&args.agent));
    if channel.is_some() || agent.is_some() {
        let settings = context.settings(&context.town()?)?;
        agent.map_or(Ok(()), |agent| send::require_agent(&settings, &agent))?;
        channel.map_or(Ok(()), |channel| send::require_channel(&settings, &channel))?;
    }
    let mut store = context.store()?;
    if args.forget {
        store.forget_conversation(&args.key, &context.stamp())?;
    }
    let session = store.set_session(&args.key, |wishes| changes.apply(wishes), &context.stamp())?;
    if context.wants_json() {
        return context.json(&shape::session(&session));
    }
    let mut text = format!("{} is set.", one_line(&session.key));
    for (name, value) in fields(&session) {
        text.extend(["\n  ", &paint(DIM, &format!("{name:<12}")), " ", &value]);
    }
    context.say(&text)
}

/// What is to be set: nothing said, as the config says, or a value.
type Change<T> = Option<Option<T>>;

struct Changes {
    agent: Change<String>,
    lane: Change<String>,
    mode: Change<Mode>,
    cap: Change<usize>,
    overflow: Change<Overflow>,
    debounce: Change<SignedDuration>,
    channel: Change<String>,
    recipient: Change<String>,
}

impl Changes {
    fn read(args: &SetArgs) -> Result<Changes, Failure> {
        let word = |text: &String| Some(text.clone());
        Ok(Changes {
            agent: change(args.agent.as_ref(), "--agent", "the name of an agent", word)?,
            lane: change(args.lane.as_ref(), "--lane", "the name of a lane", word)?,
            mode: change(args.mode.as_ref(), "--mode", "queue, followup or interrupt", |text| Mode::parse(text))?,
            cap: change(args.cap.as_ref(), "--cap", "a number", |text| text.parse().ok())?,
            overflow: change(args.drop.as_ref(), "--drop", "old or new", |text| Overflow::parse(text))?,
            debounce: change(args.debounce.as_ref(), "--debounce", "a span such as 800ms or 2s", |text| {
                SignedDuration::try_from(parse_duration(text)?).ok()
            })?,
            channel: change(args.channel.as_ref(), "--channel", "the name of a channel", word)?,
            recipient: change(args.to.as_ref(), "--to", "whom the channel knows", word)?,
        })
    }

    fn apply(self, wishes: &mut Wishes) {
        fn set<T>(wish: &mut Option<T>, change: Change<T>) {
            if let Some(value) = change {
                *wish = value;
            }
        }
        set(&mut wishes.agent, self.agent);
        set(&mut wishes.lane, self.lane);
        set(&mut wishes.mode, self.mode);
        set(&mut wishes.cap, self.cap);
        set(&mut wishes.overflow, self.overflow);
        set(&mut wishes.debounce, self.debounce);
        set(&mut wishes.channel, self.channel);
        set(&mut wishes.recipient, self.recipient);
    }
}

fn change<T>(
    text: Option<&String>,
    option: &str,
    wanted: &str,
    read: impl Fn(&String) -> Option<T>,
) -> Result<Change<T>, Failure> {
    let Some(text) = text else { return Ok(None) };
    if text == "default" {
        return Ok(Some(None));
    }
    let bad = || {
        Failure::new(Kind::Usage, format!("`{option} {}` is not understood", one_line(text)))
            .hint(format!("it must be {wanted}, or `default` for what the config says"))
    };
    read(text).map(|value| Some(Some(value))).ok_or_else(bad)
}
