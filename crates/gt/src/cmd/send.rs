//! `gt send`: a message to a session. // SPEC L2, L3

use std::io::Read as _;
use std::process::ExitCode;

use clap::Args;
use gt_core::lane::POLECAT;
use gt_core::session::{TEXT_BYTES_MAX, TurnOutcome};
use gt_core::text::{many_lines, one_line};
use gt_engine::Town;
use gt_engine::agents::{self, find_for_turns};
use gt_engine::settings::Settings;
use gt_engine::sling::BadRequest;
use gt_engine::talk::{self, Attendant, Taken};
use gt_store::{Address, NewMessage, SendOutcome, Sent, Store, TurnView};
use serde_json::{Value, json};

use crate::context::{Context, variable};
use crate::dashes;
use crate::failure::{Failure, Kind};

/// The channel that commands speak for.
pub(crate) const CHANNEL: &str = "cli";

/// Send a message to a session, which an agent answers
///
/// Messages are kept until they are answered, in order; what comes within `sessions.debounce_ms` from the same sender is
/// one turn. `/stop` stops the oldest turn, `/stopall` all of them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt send dm:anna \"How far is the login?\"
  gt send dm:anna \"How far is the login?\" --wait
  git diff | gt send review - --agent codex --wait
  gt send group:ops /stopall")]
pub(crate) struct SendArgs {
    /// Its name: `dm:…` and most others run one turn at a time, `group:…` up to three
    #[arg(value_name = "SESSION")]
    session: String,
    /// What to say; `-` reads it from standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true, value_parser = dashes::text)]
    text: String,
    /// Count the turn in this lane
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// Who answers, instead of the session's agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Wait for the answer, and print it
    #[arg(long)]
    wait: bool,
    /// Who says it; else you
    #[arg(long, value_name = "NAME")]
    sender: Option<String>,
    /// A name for this message: sent twice under one name to a session it is taken once
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Deliver the answer by this channel
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// To whom, in the channel's own words
    #[arg(long, value_name = "WHO", requires = "channel")]
    to: Option<String>,
}

pub(crate) fn run(context: &Context, args: SendArgs) -> Result<ExitCode, Failure> {
    let (town, mut store) = (context.town()?, context.store()?);
    let settings = context.settings(&town)?;
    if let Some(agent) = args.agent.as_deref() {
        require_agent(&settings, agent)?;
    }
    for doubt in doubts(&args, &settings) {
        context.note(&format!("note: {doubt}"));
    }
    if let Some(channel) = args.channel.as_deref() {
        require_channel(&settings, channel)?;
    }
    // Whoever waits for an answer inside a run is waited for.
    let parent = variable("GT_RUN").filter(|_| args.wait);
    let message = NewMessage {
        source: args.id.map(|id| talk::source(&id, &args.session)),
        session: args.session,
        text: if args.text == "-" { from_stdin()? } else { args.text },
        sender: args.sender.unwrap_or_else(|| context.actor()),
        channel: CHANNEL.to_owned(),
        agent: args.agent,
        lane: args.lane,
        deliver: args.channel.map(|channel| Address { channel, recipient: args.to, reply_to: None }),
        parent,
        is_whole: false,
    };
    // Heard of from before it is sent, so that nothing falls between the two.
    let attendant = args.wait.then(|| Attendant::new(&town, &context.actor())).transpose()?;
    match talk::take(&mut store, &settings, &message, None, &context.stamp())? {
        Taken::Obeyed(answer) => obeyed(context, &message.session, &answer),
        Taken::Sent(sent) => match (attendant, sent.turn) {
            (Some(mut attendant), Some(turn)) if !context.is_dry_run() => {
                let view = attendant
                    .await_end(&mut store, turn, |why| context.note(&format!("waiting: {}", one_line(why))))?;
                answered(context, &sent, view.as_ref())
            }
            _ => sent_off(context, &town, &mut store, &message.session, &sent),
        },
    }
}

/// An agent that does not exist or takes no turns would never answer.
pub(crate) fn require_agent(settings: &Settings, name: &str) -> Result<(), Failure> {
    if let Some(near) = agents::near(&settings.config, name) {
        return Err(BadRequest::NoAgent { name: one_line(name), near }.into());
    }
    find_for_turns(&settings.config, name).map(drop).map_err(|why| {
        let key = gt_engine::config::join(&["agents", name, "headless"]);
        Failure::new(Kind::Refused, one_line(&why))
            .hint(format!("as in `gt config set {key} '[\"bash\", \"turn.sh\"]'`"))
    })
}

/// An answer that goes where nobody is would wait for ever.
pub(crate) fn require_channel(settings: &Settings, name: &str) -> Result<(), Failure> {
    let known = settings.config.names("channels");
    if known.contains(&name) {
        return Ok(());
    }
    let there = match known.as_slice() {
        [] => "there are none; `docs/channels.md` shows how to make one".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    Err(Failure::new(Kind::NotFound, format!("there is no channel `{}`", one_line(name))).hint(there))
}

/// What is taken as it stands, though its sender may have meant something else.
fn doubts(args: &SendArgs, settings: &Settings) -> Vec<String> {
    let lane = args.lane.as_deref().filter(|lane| !settings.lanes().has(lane)).map(|lane| match one_line(lane) {
        lane if lane == POLECAT => "the lane `polecat` is the scheduler's own, so it counts in `main`".to_owned(),
        lane => format!("there is no lane `{lane}`, so it counts in `main`: `gt lane set {lane} 4` makes one"),
    });
    lane.into_iter().collect()
}

fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(TEXT_BYTES_MAX as u64 + 2).read_to_end(&mut bytes);
    read.map_err(|error| Failure::new(Kind::Refused, format!("the message cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::new(Kind::Refused, "the message is not UTF-8 text").hint("send a file by its name, not by its bytes")
    })?;
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

fn obeyed(context: &Context, session: &str, answer: &str) -> Result<ExitCode, Failure> {
    if context.wants_json() {
        let body = json!({ "session": session, "message": null, "run": null, "outcome": "stopped", "reply": answer });
        context.json(&body)?;
    } else {
        context.say(answer)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is said of a message that nobody waits for.
fn sent_off(
    context: &Context,
    town: &Town,
    store: &mut Store,
    session: &str,
    sent: &Sent,
) -> Result<ExitCode, Failure> {
    let code = if sent.outcome == SendOutcome::Full { Kind::NotNow.exit_code() } else { ExitCode::SUCCESS };
    if context.wants_json() {
        context.json(&sent_json(session, sent))?;
        return Ok(code);
    }
    let key = one_line(session);
    let n_ahead = store.session(session)?.map_or(0, |session| (session.n_waiting + session.n_live).saturating_sub(1));
    let ahead = match n_ahead {
        0 => String::new(),
        1 => "; 1 other is ahead of it".to_owned(),
        n => format!("; {n} others are ahead of it"),
    };
    let sent_to = if context.is_dry_run() { "Would send to" } else { "Sent to" };
    match sent.outcome {
        SendOutcome::Queued => context.say(&format!("{sent_to} {key}{ahead}."))?,
        SendOutcome::Collapsed => context.say(&format!("{sent_to} {key}, together with what you said just before."))?,
        SendOutcome::Repeated => context.say(&format!("{key} has this message already; nothing was changed."))?,
        SendOutcome::Full => context.say(&format!(
            "{key} takes no more messages now: `gt session show {key}` shows what waits, `gt session stopall {key}` clears it."
        ))?,
    }
    context.note_missing_daemon(town);
    Ok(code)
}

fn answered(context: &Context, sent: &Sent, turn: Option<&TurnView>) -> Result<ExitCode, Failure> {
    let Some(turn) = turn else {
        return Err(Failure::new(Kind::NotFound, "the turn is gone: somebody has cleared it away"));
    };
    let outcome = turn.outcome.unwrap_or(TurnOutcome::Failed);
    if context.wants_json() {
        context.json(&turn_json(turn, &format!("m{}", sent.message)))?;
    } else if outcome == TurnOutcome::Done {
        context.say(&many_lines(turn.reply.as_deref().unwrap_or_default()))?;
    }
    if outcome == TurnOutcome::Done {
        return Ok(ExitCode::SUCCESS);
    }
    if !context.wants_json() {
        context.note(&format!(
            "{}: {}",
            outcome.as_str(),
            one_line(turn.error.as_deref().unwrap_or("nobody knows why"))
        ));
    }
    Ok(Kind::Refused.exit_code())
}

fn sent_json(session: &str, sent: &Sent) -> Value {
    let turn = sent.turn.map(|turn| turn.to_string());
    json!({ "session": session, "message": format!("m{}", sent.message), "turn": turn, "run": null,
            "outcome": sent.outcome.as_str(), "reply": null })
}

/// A turn that has ended, as the answer to a message.
fn turn_json(turn: &TurnView, message: &str) -> Value {
    json!({ "session": turn.session, "message": message, "turn": turn.id.to_string(), "run": turn.run,
            "outcome": turn.outcome.map(TurnOutcome::as_str), "reply": turn.reply, "error": turn.error })
}
