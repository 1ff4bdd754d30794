//! `gt mail`: letters that stay until they are read. // SPEC R3

use std::io::Read as _;

use clap::{Args, Subcommand};
use gt_core::text::{BODY_BYTES_MAX, BadText, many_lines, one_line};
use gt_core::time;
use gt_store::{Letter, MAYOR, NewLetter, box_of};
use serde_json::{Value, json};

use crate::context::{Context, variable};
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, DIM, YELLOW, paint};

/// Read and send letters
///
/// The town writes to the mayor when a person is needed, and to the deacon when it has recovered work.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt mail inbox                  what the mayor has not read
  gt mail read 7
  gt mail send mayor \"The build machine moves tonight\"")]
pub(crate) struct MailArgs {
    #[command(subcommand)]
    command: MailCommand,
}

#[derive(Debug, Subcommand)]
enum MailCommand {
    Send(SendArgs),
    Inbox(InboxArgs),
    Read(ReadArgs),
}

/// Send a letter
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt mail send mayor \"The build machine moves tonight\"
  gt mail send deacon \"Look at this\" \"It died twice\" --bead gt-a1b2
  git log -1 | gt mail send mayor \"What was merged\" -")]
struct SendArgs {
    /// Who gets it: mayor, deacon, or somebody who watches a convoy
    to: String,
    /// What it is about, in a line
    subject: String,
    /// More about it; `-` reads it from standard input
    #[arg(default_value = "", hide_default_value = true)]
    body: String,
    /// The bead that it is about
    #[arg(long, value_name = "ID")]
    bead: Option<String>,
}

/// List letters that were not read, the newest last
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt mail inbox
  gt mail inbox deacon --all
  gt mail inbox --json")]
struct InboxArgs {
    /// Whose letters
    #[arg(default_value = MAYOR)]
    who: String,
    /// Also those that were read
    #[arg(long)]
    all: bool,
    /// At most so many of the newest; 0: all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Read a letter; from then on it is not listed as new
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt mail read 7
  gt mail read 7 --json")]
struct ReadArgs {
    /// Its number
    #[arg(value_name = "ID")]
    id: i64,
}

pub(crate) fn run(context: &Context, args: MailArgs) -> Result<(), Failure> {
    match args.command {
        MailCommand::Send(args) => send(context, args),
        MailCommand::Inbox(args) => inbox(context, &args),
        MailCommand::Read(args) => read(context, args.id),
    }
}

fn send(context: &Context, args: SendArgs) -> Result<(), Failure> {
    let body = if args.body == "-" { from_stdin()? } else { args.body };
    let letter =
        NewLetter { to: box_of(&args.to), subject: args.subject, body, bead: args.bead, run: variable("GT_RUN") };
    let id = context.store()?.send_mail(&letter, &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({ "id": id, "to": letter.to, "subject": letter.subject }));
    }
    context.say(&format!("Letter {id} was sent to {}.", letter.to))
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(BODY_BYTES_MAX as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| {
        Failure::new(Kind::Refused, format!("the letter cannot be read from standard input: {error}"))
            .hint("give it as UTF-8 text")
    })?;
    if text.len() > BODY_BYTES_MAX {
        return Err(BadText::TooLarge { what: "letter", bytes: text.len(), max: BODY_BYTES_MAX }.into());
    }
    Ok(text)
}

fn inbox(context: &Context, args: &InboxArgs) -> Result<(), Failure> {
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let inbox = context.store()?.inbox(&args.who, args.all, limit)?;
    if context.wants_json() {
        context.json(&inbox.letters.iter().map(letter_json).collect::<Vec<_>>())?;
    } else if inbox.letters.is_empty() {
        let who = one_line(&box_of(&args.who));
        let what = if args.all { "no letters" } else { "no new letters; `--all` shows those that were read" };
        context.say(&format!("{who} has {what}."))?;
    } else {
        for letter in &inbox.letters {
            context.say(&line(letter))?;
        }
    }
    if inbox.more {
        context.note(&paint(DIM, "There are older ones; `--limit 0` shows all."));
    }
    Ok(())
}

fn line(letter: &Letter) -> String {
    let sign = if letter.read_at.is_none() { paint(YELLOW, "●") } else { paint(DIM, "○") };
    let when = paint(DIM, &format!("{} from {}", time::format(letter.sent_at), one_line(&letter.from)));
    format!("{sign} {:>4}  {}  {when}", letter.id, one_line(&letter.subject))
}

fn read(context: &Context, id: i64) -> Result<(), Failure> {
    let letter = context.store()?.read_mail(id, &context.stamp())?;
    if context.wants_json() {
        return context.json(&letter_json(&letter));
    }
    let mut text = paint(BOLD, &one_line(&letter.subject));
    let fields = [
        ("from", Some(letter.from)),
        ("to", Some(letter.to)),
        ("sent", Some(time::format(letter.sent_at))),
        ("bead", letter.bead),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            text.extend(["\n  ", &paint(DIM, &format!("{name:<4}")), " ", &one_line(&value)]);
        }
    }
    let body = many_lines(&letter.body);
    if !body.trim().is_empty() {
        text.extend(["\n\n", body.trim_end()]);
    }
    context.say(&text)
}

fn letter_json(letter: &Letter) -> Value {
    json!({
        "id": letter.id,
        "to": letter.to,
        "from": letter.from,
        "subject": letter.subject,
        "body": letter.body,
        "bead": letter.bead,
        "run": letter.run,
        "sent_at": time::format(letter.sent_at),
        "read_at": letter.read_at.map(time::format),
    })
}
