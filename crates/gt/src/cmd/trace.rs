//! `gt trace`: what a run was asked, answered, used and failed with. // SPEC L5

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gt_core::agent::Usage;
use gt_core::run::Outcome;
use gt_core::text::{many_lines, one_line};
use gt_core::time;
use gt_engine::Town;
use gt_store::{Run, Store, TurnView};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, DIM, paint};

/// See what a run was asked, answered and used
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt trace show 01a1e562-7614-77bb-a202-3bd86d9984c4
  gt trace show dm:anna            the last run of a session")]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    Show(ShowArgs),
}

/// Show one run: its status, times, cost, question and answer or error
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt trace show 01a1e562-7614-77bb-a202-3bd86d9984c4
  gt trace show dm:anna --json")]
struct ShowArgs {
    /// A run; or a session: then its last run
    #[arg(value_name = "RUN")]
    run: String,
}

pub(crate) fn run(context: &Context, args: &TraceArgs) -> Result<(), Failure> {
    let TraceCommand::Show(args) = &args.command;
    let (town, mut store) = (context.town()?, context.store()?);
    let run = find(&mut store, &args.run)?;
    let turn = run.turn.as_ref().map(|turn| store.turn(turn.id)).transpose()?.flatten();
    let delivery = turn.as_ref().map(|turn| store.delivery_of(turn.id)).transpose()?.flatten();
    let trace = Trace { run, turn, delivery };
    if context.wants_json() { context.json(&trace.json(&town)) } else { context.say(&trace.text(&town)) }
}

fn find(store: &mut Store, name: &str) -> Result<Run, Failure> {
    if let Some(run) = store.run(name)? {
        return Ok(run);
    }
    let last = store.turns(name, usize::MAX)?.into_iter().rev().find_map(|turn| turn.run);
    match last {
        Some(run) => store.run(&run)?.ok_or_else(|| none(name)),
        None => Err(none(name)),
    }
}

fn none(name: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no run `{}`", one_line(name)))
        .hint("`gt session show SESSION` and `gt activity` name them")
}

struct Trace {
    run: Run,
    turn: Option<TurnView>,
    delivery: Option<(String, Option<String>)>,
}

impl Trace {
    /// `running`, or how it ended.
    fn status(&self) -> &'static str {
        match (self.run.is_live(), self.run.outcome) {
            (true, _) if self.run.stop.is_some() => "stopping",
            (true, _) => self.run.state.as_str(),
            (false, Some(Outcome::Stopped)) => "cancelled",
            (false, outcome) => outcome.map_or("ended", Outcome::as_str),
        }
    }

    fn seconds(&self) -> Option<f64> {
        let span = self.run.ended_at?.duration_since(self.run.started_at?);
        // By a clock that was set back meanwhile it took less than no time.
        Some(span.as_secs_f64().max(0.0))
    }

    fn error(&self) -> Option<&str> {
        let is_failure = self.run.outcome.is_some_and(|outcome| !outcome.is_progress());
        self.run.end_reason.as_deref().filter(|_| is_failure)
    }

    /// Its log, unless that is gone: pruned, or all of it was the answer.
    fn log(&self, town: &Town) -> Option<PathBuf> {
        Some(town.log_path(&self.run.id)).filter(|log| log.exists())
    }

    fn text(&self, town: &Town) -> String {
        let run = &self.run;
        let at = |at: Option<Timestamp>| at.map(time::format);
        let usage = run.usage;
        let used = format!(
            "{} tokens in ({} cached), {} out, ${:.4}",
            usage.tokens_in,
            usage.tokens_cached,
            usage.tokens_out,
            usage.cost_micros as f64 / 1e6
        );
        let fields = [
            ("status", Some(self.status().to_owned())),
            ("session", run.turn.as_ref().map(|turn| turn.session.clone())),
            ("bead", Some(run.bead.clone()).filter(|bead| !bead.is_empty())),
            ("agent", Some(run.agent.clone())),
            ("lane", run.lane.clone()),
            ("claimed", Some(time::format(run.claimed_at))),
            ("started", at(run.started_at)),
            ("ended", at(run.ended_at)),
            ("took", self.seconds().map(|seconds| format!("{seconds:.3} s"))),
            ("used", (usage != Usage::default()).then_some(used)),
            ("resumed", run.resumes.clone()),
            ("conversation", run.conversation.clone()),
            ("error", self.error().map(str::to_owned)),
            (
                "delivery",
                self.delivery.as_ref().map(|(state, error)| match error {
                    Some(error) => format!("{state}: {error}"),
                    None => state.clone(),
                }),
            ),
            ("log", self.log(town).map(|log| log.display().to_string())),
        ];
        let mut text = paint(BOLD, &run.id);
        for (name, value) in fields {
            if let Some(value) = value {
                text.extend(["\n  ", &paint(DIM, &format!("{name:<12}")), " ", &one_line(&value)]);
            }
        }
        if let Some(turn) = &self.turn {
            text.extend(["\n\n", &paint(DIM, "asked"), "\n", &many_lines(&turn.text)]);
            if let Some(reply) = &turn.reply {
                text.extend(["\n\n", &paint(DIM, "answered"), "\n", &many_lines(reply)]);
            }
        }
        text
    }

    fn json(&self, town: &Town) -> Value {
        let run = &self.run;
        let is_last = self.turn.as_ref().is_some_and(|turn| turn.run.as_deref() == Some(&run.id));
        json!({
            "run": run.id,
            "status": self.status(),
            "session": run.turn.as_ref().map(|turn| &turn.session),
            "turn": run.turn.as_ref().map(|turn| turn.id.to_string()),
            "bead": Some(&run.bead).filter(|bead| !bead.is_empty()),
            "agent": run.agent,
            "lane": run.lane,
            "claimed_at": time::format(run.claimed_at),
            "started_at": run.started_at.map(time::format),
            "ended_at": run.ended_at.map(time::format),
            "duration_ms": self.seconds().map(|seconds| (seconds * 1e3).round() as i64),
            "usage": {
                "tokens_in": run.usage.tokens_in,
                "tokens_out": run.usage.tokens_out,
                "tokens_cached": run.usage.tokens_cached,
                "cost_usd": run.usage.cost_micros as f64 / 1e6,
            },
            "resumed": run.resumes,
            "conversation": run.conversation,
            "error": self.error(),
            "prompt": self.turn.as_ref().map(|turn| &turn.text),
            "reply": self.turn.as_ref().filter(|_| is_last).and_then(|turn| turn.reply.as_ref()),
            "delivery": self.delivery.as_ref().map(|(state, _)| state),
            "log": self.log(town),
        })
    }
}
