//! `gt chat`: a conversation in the terminal. // SPEC L6
//!
//! What a person types is sent at once, also while an agent answers. Lines from a pipe are sent one by one, each after the
//! answer to the line before. Nothing is kept here: another `gt chat`, or another channel, continues the same session.

use std::collections::VecDeque;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use clap::Args;
use gt_core::session::TurnOutcome;
use gt_core::text::{many_lines, one_line};
use gt_engine::Town;
use gt_engine::settings::Settings;
use gt_engine::talk::{self, Attendant, LiveReply, Taken};
use gt_store::{NewMessage, SendOutcome, Store, TurnState, TurnView};

use super::send::{CHANNEL, require_agent};
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, DIM, YELLOW, paint};

/// Turns that are shown of what was said before.
const HISTORY: usize = 5;
/// How often what is being said is looked at.
const TICK: Duration = Duration::from_millis(50);

const HELP: &str = "/stop stops the oldest turn, /stopall all of them; /history shows what was said, /quit ends.";

/// Talk to an agent
///
/// What you type is a message to the session; `/stop`, `/stopall`, `/history` and `/quit` are commands. Answers are shown as
/// they are given. From a pipe or a file each line is sent after the answer to the line before; the exit code is 1 if a line
/// was not answered.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt chat
  gt chat dm:anna --agent codex
  echo \"What is left to do?\" | gt chat review")]
pub(crate) struct ChatArgs {
    /// The session to go on with, or to begin
    #[arg(value_name = "SESSION", default_value = "dm:me")]
    session: String,
    /// Who answers, instead of the session's agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Count the turns in this lane
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
}

pub(crate) fn run(context: &Context, args: ChatArgs) -> Result<(), Failure> {
    if context.wants_json() {
        return Err(Failure::new(Kind::Usage, "a conversation has no JSON form")
            .hint("send one message with `gt send SESSION TEXT --wait --json`"));
    }
    if context.is_dry_run() {
        return Err(Failure::new(Kind::Usage, "a conversation has no dry run")
            .hint("see what one message would do with `gt send SESSION TEXT --dry-run`"));
    }
    let town = context.town()?;
    let settings = context.settings(&town)?;
    if let Some(agent) = &args.agent {
        require_agent(&settings, agent)?;
    }
    let mut attendant = Attendant::new(&town, &context.actor())?;
    let is_person = std::io::stdin().is_terminal();
    let mut chat = Chat {
        context,
        store: context.store()?,
        town,
        settings,
        args,
        followed: VecDeque::new(),
        is_person,
        n_failed: 0,
    };
    chat.greet()?;
    chat.talk(&lines(), &mut attendant)?;
    chat.verdict()
}

/// What is typed, a line at a time; closed at the end of the input.
fn lines() -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if sender.send(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    lines
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::new(Kind::Refused, format!("cannot write the answer: {error}")))
}

struct Chat<'a> {
    context: &'a Context,
    store: Store,
    town: Town,
    settings: Settings,
    args: ChatArgs,
    /// Turns whose answers are to be shown, in order.
    followed: VecDeque<Followed>,
    is_person: bool,
    n_failed: usize,
}

/// A turn whose answer is being shown.
struct Followed {
    turn: i64,
    live: Option<(String, LiveReply)>,
    n_shown: usize,
    /// Whether what was shown last ends a line.
    ends_line: bool,
}

impl Chat<'_> {
    fn greet(&mut self) -> Result<(), Failure> {
        if !self.is_person {
            return Ok(());
        }
        let key = one_line(&self.args.session);
        self.context.say(&paint(DIM, &format!("You talk to {key}. {HELP}")))?;
        self.context.note_missing_daemon_for_chat(&self.town);
        self.history()?;
        self.prompt()
    }

    fn prompt(&self) -> Result<(), Failure> {
        if self.is_person { print(&paint(BOLD, "> ")) } else { Ok(()) }
    }

    fn history(&mut self) -> Result<(), Failure> {
        for turn in self.store.turns(&self.args.session, HISTORY)? {
            self.context.say(&paint(DIM, &format!("> {}", many_lines(&turn.text))))?;
            if let Some(reply) = &turn.reply {
                self.context.say(&many_lines(reply))?;
            }
        }
        Ok(())
    }

    /// Sends what is typed and shows what is answered, until both have come to their end.
    fn talk(&mut self, lines: &Receiver<String>, attendant: &mut Attendant) -> Result<(), Failure> {
        let mut is_over = false;
        loop {
            if is_over || self.awaits_answer() {
                attendant.wait();
            } else {
                match lines.recv_timeout(TICK) {
                    Ok(line) if line.trim() == "/quit" => return Ok(()),
                    Ok(line) => self.take(&line)?,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => is_over = true,
                }
            }
            if !self.followed.is_empty() {
                attendant.see_to_turns(&mut self.store)?;
            }
            while self.has_finished_showing()? {}
            if is_over && self.followed.is_empty() {
                return Ok(());
            }
        }
    }

    /// Whether the next line has to wait: sent at once, lines from a pipe would be joined, interrupt each other, or find the
    /// session's queue full.
    fn awaits_answer(&self) -> bool {
        !self.is_person && !self.followed.is_empty()
    }

    /// Tells a script whether every line was answered.
    fn verdict(&self) -> Result<(), Failure> {
        if self.is_person || self.n_failed == 0 {
            return Ok(());
        }
        let what =
            if self.n_failed == 1 { "1 message was".to_owned() } else { format!("{} messages were", self.n_failed) };
        Err(Failure::new(Kind::Refused, format!("{what} not answered"))
            .hint(format!("`gt session show {}` has the whole conversation", one_line(&self.args.session))))
    }

    fn take(&mut self, line: &str) -> Result<(), Failure> {
        match line.trim() {
            "" => return self.prompt(),
            "/help" => {
                self.context.say(HELP)?;
                return self.prompt();
            }
            "/history" => {
                self.history()?;
                return self.prompt();
            }
            _ => {}
        }
        let message = NewMessage {
            session: self.args.session.clone(),
            text: line.to_owned(),
            sender: self.context.actor(),
            channel: CHANNEL.to_owned(),
            agent: self.args.agent.clone(),
            lane: self.args.lane.clone(),
            ..NewMessage::default()
        };
        match talk::take(&mut self.store, &self.settings, &message, None, &self.context.stamp())? {
            Taken::Obeyed(answer) => {
                self.context.say(&answer)?;
                self.prompt()
            }
            Taken::Sent(sent) if sent.outcome == SendOutcome::Full => {
                self.n_failed += 1;
                self.context.say(&paint(YELLOW, "Too many messages wait here; /stopall clears them."))?;
                self.prompt()
            }
            Taken::Sent(sent) => {
                let turn = sent.turn.filter(|turn| self.followed.iter().all(|followed| followed.turn != *turn));
                self.followed.extend(turn.map(|turn| Followed { turn, live: None, n_shown: 0, ends_line: false }));
                Ok(())
            }
        }
    }

    /// Shows what is new of the first answer that is to come; says whether that was all of it.
    fn has_finished_showing(&mut self) -> Result<bool, Failure> {
        let Some(followed) = self.followed.front_mut() else { return Ok(false) };
        let Some(turn) = self.store.turn(followed.turn)? else {
            self.followed.pop_front();
            return Ok(true);
        };
        let new = followed.more(&turn, &self.town, &self.settings);
        let (n_shown, ends_line) = (followed.n_shown, followed.ends_line);
        if !new.is_empty() {
            print(&many_lines(&new))?;
        }
        if turn.state != TurnState::Ended {
            return Ok(false);
        }
        self.followed.pop_front();
        self.finish(&turn, n_shown, ends_line)?;
        Ok(true)
    }

    /// What was not shown as it came.
    fn finish(&mut self, turn: &TurnView, n_shown: usize, ends_line: bool) -> Result<(), Failure> {
        let reply = turn.reply.as_deref().unwrap_or_default();
        match turn.outcome {
            Some(TurnOutcome::Done) if n_shown == 0 => self.context.say(&many_lines(reply))?,
            Some(TurnOutcome::Done) if ends_line => {}
            Some(TurnOutcome::Done) => print("\n")?,
            outcome => {
                self.n_failed += 1;
                let word = outcome.map_or("ended", TurnOutcome::as_str);
                let why = one_line(turn.error.as_deref().unwrap_or("unknown reason"));
                let lead = if n_shown == 0 || ends_line { "" } else { "\n" };
                self.context.say(&format!("{lead}{}", paint(YELLOW, &format!("{word}: {why}"))))?;
            }
        }
        self.prompt()
    }
}

impl Followed {
    /// What its run has said since the last time; a run that is tried again begins anew.
    fn more(&mut self, turn: &TurnView, town: &Town, settings: &Settings) -> String {
        let Some(run) = turn.run.as_ref() else { return String::new() };
        if self.live.as_ref().is_none_or(|(known, _)| known != run) {
            let agent = turn.agent.clone().unwrap_or_else(|| settings.default_agent());
            self.live = Some((run.clone(), LiveReply::of(town, &settings.config, run, &agent)));
        }
        let Some((_, live)) = &mut self.live else { return String::new() };
        let text = live.more().unwrap_or_default();
        let text = if self.n_shown == 0 { text.trim_start_matches('\n').to_owned() } else { text };
        self.n_shown += text.len();
        self.ends_line = if text.is_empty() { self.ends_line } else { text.ends_with('\n') };
        text
    }
}
