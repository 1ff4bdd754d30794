//! `gt polecat`: the workers. // SPEC P8

mod nuke;
mod screen;

use std::fs::File;

use clap::{Args, Subcommand};
use gt_core::agent::{Activity, Need, Usage};
use gt_core::run::{Outcome, RunState, StopOrder};
use gt_core::time;
use gt_engine::dispatch;
use gt_engine::once;
use gt_engine::salvaged::{self, Salvaged};
use gt_engine::settings::Settings;
use gt_engine::signs;
use gt_engine::{Town, process_id};
use gt_runtime::Handle;
use gt_store::{Polecat, Run, Store};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::cron::off_words;
use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BLUE, BOLD, DIM, RED, YELLOW, paint};

/// A name that got its work less than this ago may be taken for what it did before.
const JUST_CHANGED: SignedDuration = SignedDuration::from_mins(1);

/// Lines that `peek` shows.
const PEEK_LINES: u32 = 40;

/// See and steer the workers
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt polecat list
  gt polecat peek Toast
  gt polecat stop shop/Toast")]
pub(crate) struct PolecatArgs {
    #[command(subcommand)]
    command: PolecatCommand,
}

#[derive(Debug, Subcommand)]
enum PolecatCommand {
    List(ListArgs),
    Show(ShowArgs),
    Peek(PeekArgs),
    Logs(LogsArgs),
    Stop(StopArgs),
    Nuke(nuke::NukeArgs),
    Attach(AttachArgs),
    Send(SendArgs),
}

/// List the workers and what they do
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt polecat list\n  gt polecat list shop --json")]
struct ListArgs {
    /// Only those of this rig
    rig: Option<String>,
}

/// Show one worker
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt polecat show Toast")]
struct ShowArgs {
    /// NAME or RIG/NAME
    name: String,
}

/// Show the last lines that it printed
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt polecat peek Toast --lines 100")]
struct PeekArgs {
    /// NAME or RIG/NAME
    name: String,
    /// How many lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = PEEK_LINES, value_parser = clap::value_parser!(u32).range(1..))]
    lines: u32,
}

/// Print everything that its last run printed
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt polecat logs Toast | less")]
struct LogsArgs {
    /// NAME or RIG/NAME
    name: String,
}

/// Stop its run; the bead is released and waits for `gt scheduler retry` or another sling
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt polecat stop Toast --reason \"wrong branch\"
  gt polecat stop Toast --run RUN      `gt polecat show Toast` names it

For a minute after a worker went from one bead to another, its name alone is
refused, since you may mean the earlier bead: use --run, or confirm at a terminal.")]
struct StopArgs {
    /// NAME or RIG/NAME
    name: String,
    /// Only if it still has this run (`gt polecat show` names it)
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Why
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

/// Attach to its terminal; Ctrl-b d leaves it running
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt polecat attach Toast")]
struct AttachArgs {
    /// NAME or RIG/NAME
    name: String,
}

/// Type something into its terminal
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt polecat send Toast \"go on\"")]
struct SendArgs {
    /// NAME or RIG/NAME
    name: String,
    /// What to type
    text: String,
}

pub(crate) fn run(context: &Context, args: PolecatArgs) -> Result<(), Failure> {
    match args.command {
        PolecatCommand::List(args) => list(context, args.rig.as_deref()),
        PolecatCommand::Show(args) => show(context, &args.name),
        PolecatCommand::Peek(args) => screen::peek(context, &args),
        PolecatCommand::Logs(args) => screen::logs(context, &args.name),
        PolecatCommand::Stop(args) => stop(context, &args),
        PolecatCommand::Nuke(args) => nuke::run(context, &args),
        PolecatCommand::Attach(args) => screen::attach(context, &args),
        PolecatCommand::Send(args) => screen::send(context, &args),
    }
}

/// A worker with what is known of its run.
pub(crate) struct Worker {
    pub(crate) polecat: Polecat,
    /// The live run, or the last one.
    pub(crate) run: Option<Run>,
    pub(crate) state: &'static str,
    /// Where the changes are that it left, and when its worktree goes.
    salvaged: Option<Salvaged>,
}

/// Every worker, by rig and name.
pub(crate) fn workers(town: &Town, store: &mut Store, settings: &Settings) -> Result<Vec<Worker>, Failure> {
    let mut workers = Vec::new();
    let polecats = store.polecats()?;
    let mut salvaged = salvaged::outlook(store, &settings.config, &polecats)?;
    for polecat in polecats {
        let run = match polecat.run.as_ref().or(polecat.last_run.as_ref()) {
            Some(run) => store.run(run)?,
            None => None,
        };
        let salvaged = salvaged.remove(&(polecat.rig.clone(), polecat.name.clone()));
        let state = if salvaged.is_some() { "salvaged" } else { state(&polecat, run.as_ref()) };
        workers.push(Worker { polecat, run, state, salvaged });
    }
    if let Some(span) = settings.stall_after {
        look_for_signs(town, &mut workers, span);
    }
    Ok(workers)
}

/// Who works, and has given no sign of life for so long, is stalled; of whom nobody can tell that is not said.
fn look_for_signs(town: &Town, workers: &mut [Worker], stall_after: SignedDuration) {
    let at_work = |worker: &Worker| worker.run.as_ref().filter(|_| worker.state == "working").map(|run| run.id.clone());
    let runs: Vec<String> = workers.iter().filter_map(at_work).collect();
    let ids: Vec<&str> = runs.iter().map(String::as_str).collect();
    let silent_before = Timestamp::now().checked_sub(stall_after).unwrap_or(Timestamp::MIN);
    let signs = signs::last_signs(town, &ids, silent_before);
    for worker in workers {
        if at_work(worker).and_then(|run| signs.get(&run)).is_some_and(|at| *at < silent_before) {
            worker.state = "stalled";
        }
    }
}

/// What it does, by looking.
fn state(polecat: &Polecat, run: Option<&Run>) -> &'static str {
    let Some(run) = run.filter(|run| polecat.run.is_some() && run.is_live()) else {
        return if polecat.kept.is_some() { "gone" } else { "idle" };
    };
    match run.state {
        RunState::Starting => "starting",
        _ if process_of(run).is_some_and(|process| process_id::birth(process.pid) != Some(process.birth)) => {
            // One that has finished its work is only waiting to be recorded.
            if run.is_bead_done { "idle" } else { "gone" }
        }
        // Who waits for somebody is silent with reason.
        _ if run.waits_for().is_some() => "waiting",
        _ => "working",
    }
}

/// Its process, if it is one of this machine.
fn process_of(run: &Run) -> Option<Handle> {
    dispatch::handle(run).filter(Handle::is_here)
}

fn open(context: &Context) -> Result<(Town, Settings, Store), Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let store = context.open(&town)?;
    Ok((town, settings, store))
}

fn list(context: &Context, rig: Option<&str>) -> Result<(), Failure> {
    let (town, settings, mut store) = open(context)?;
    if let Some(rig) = rig {
        store.rig(rig)?;
    }
    let mut workers = workers(&town, &mut store, &settings)?;
    workers.retain(|worker| rig.is_none_or(|rig| worker.polecat.rig == rig));
    if context.wants_json() {
        return context.json(&workers.iter().map(worker_json).collect::<Vec<_>>());
    }
    if workers.is_empty() {
        return context.say("There are no polecats. `gt sling BEAD` makes one when its work can start.");
    }
    let width = workers.iter().map(|w| w.polecat.rig.len() + w.polecat.name.len() + 1).max().unwrap_or(0);
    for worker in &workers {
        context.say(&line(worker, width))?;
    }
    Ok(())
}

pub(crate) fn line(worker: &Worker, width: usize) -> String {
    let style = match worker.state {
        "working" | "starting" => BLUE,
        "gone" => RED,
        "stalled" | "waiting" => YELLOW,
        _ => DIM,
    };
    let who = format!("{}/{}", worker.polecat.rig, worker.polecat.name);
    let what = match (&worker.run, worker.state) {
        (_, "idle") | (None, _) => String::new(),
        (Some(run), "gone") if worker.polecat.run.is_none() => {
            let why = worker.polecat.kept.as_deref().unwrap_or_default();
            format!("{}: {why} in {}", run.bead, worker.polecat.worktree.as_deref().unwrap_or("?"))
        }
        (Some(run), "salvaged") => salvaged_words(worker, &run.bead),
        (Some(run), "waiting") => {
            let title = gt_core::text::one_line(&run.title);
            let needs = run.waits_for().map(Need::words).unwrap_or_default();
            let attach = format!("gt polecat attach {}", worker.polecat.name);
            format!("{} {title}  {}", run.bead, paint(DIM, &format!("{needs}: `{attach}`")))
        }
        (Some(run), _) => {
            let since = time::format(run.started_at.unwrap_or(run.claimed_at));
            let title = gt_core::text::one_line(&run.title);
            let step =
                run.step.as_ref().map(|step| format!(" ({})", gt_core::text::one_line(step))).unwrap_or_default();
            format!("{} {title}{step}  {}", run.bead, paint(DIM, &format!("since {since}")))
        }
    };
    format!("{} {who:width$}  {:<8}  {what}", paint(style, "●"), worker.state).trim_end().to_owned()
}

/// What becomes of the worktree of one that is over.
fn salvaged_words(worker: &Worker, bead: &str) -> String {
    let (Some(salvaged), Some(path)) = (&worker.salvaged, &worker.polecat.worktree) else { return String::new() };
    let when = match salvaged.clears_at {
        at if at > Timestamp::now() => off_words(at, Timestamp::now()),
        _ => "by the next patrol".to_owned(),
    };
    format!("{bead} is closed and its changes are in {}; {path} is removed {when}", salvaged.name)
}

pub(crate) fn worker_json(worker: &Worker) -> Value {
    let live = worker.run.as_ref().filter(|_| worker.polecat.run.is_some());
    // What was used is known of the last run too.
    let usage = worker.run.as_ref().map(|run| run.usage);
    json!({
        "name": worker.polecat.name,
        "rig": worker.polecat.rig,
        "bead": live.map(|run| &run.bead),
        "run": live.map(|run| &run.id),
        "state": worker.state,
        "session": live.and_then(|run| run.session.as_ref()),
        "branch": live.and_then(|run| run.branch.as_ref()).or(worker.polecat.branch.as_ref()),
        "worktree": live.and_then(|run| run.worktree.as_ref()).or(worker.polecat.worktree.as_ref()),
        "started_at": live.and_then(|run| run.started_at).map(time::format),
        "host": live.map(|run| &run.host),
        "pid": live.and_then(process_of).map(|process| process.pid),
        "agent": live.map(|run| &run.agent),
        "waiting_for": live.and_then(Run::waits_for).map(Need::as_str),
        "activity": live.and_then(|run| run.activity).map(Activity::as_str),
        "activity_at": live.and_then(|run| run.activity_at).map(time::format),
        "conversation": live.and_then(|run| run.conversation.as_ref()),
        "tokens_in": usage.map(|usage| usage.tokens_in),
        "tokens_out": usage.map(|usage| usage.tokens_out),
        "tokens_cached": usage.map(|usage| usage.tokens_cached),
        "cost_usd": usage.map(|usage| usage.cost_micros as f64 / 1e6),
        "last_bead": worker.polecat.bead,
        "salvage": worker.salvaged.as_ref().map(|salvaged| json!({
            "ref": salvaged.name, "commit": salvaged.commit, "cleared_at": time::format(salvaged.clears_at),
        })),
        "last_output": worker.run.as_ref().and_then(|run| run.last_output.as_ref()),
    })
}

/// The worker of this name, in whichever rig.
fn find(town: &Town, store: &mut Store, settings: &Settings, name: &str) -> Result<Worker, Failure> {
    let all = workers(town, store, settings)?;
    let is_meant = |worker: &Worker| match name.split_once('/') {
        Some((rig, name)) => worker.polecat.rig == rig && worker.polecat.name.eq_ignore_ascii_case(name),
        None => worker.polecat.name.eq_ignore_ascii_case(name),
    };
    let full = |worker: &Worker| format!("{}/{}", worker.polecat.rig, worker.polecat.name);
    let known: Vec<String> = all.iter().map(full).collect();
    let all_names: Vec<String> = all.iter().map(|worker| worker.polecat.name.clone()).collect();
    let mut meant: Vec<Worker> = all.into_iter().filter(is_meant).collect();
    match meant.len() {
        1 => Ok(meant.remove(0)),
        0 => {
            let bare = all_names.iter().map(String::as_str).filter(|_| !name.contains('/'));
            let near = gt_core::near::closest(name, bare.chain(known.iter().map(String::as_str)));
            let hint = match near.first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`gt polecat list` shows who there is".to_owned(),
            };
            let name = gt_core::text::one_line(name);
            Err(Failure::new(Kind::NotFound, format!("there is no polecat `{name}`")).hint(hint))
        }
        _ => {
            let names: Vec<String> = meant.iter().map(|worker| format!("`{}`", full(worker))).collect();
            Err(Failure::new(Kind::Refused, format!("several polecats are called {name}"))
                .hint(format!("say which: {}", names.join(" or "))))
        }
    }
}

fn show(context: &Context, name: &str) -> Result<(), Failure> {
    let (town, settings, mut store) = open(context)?;
    let worker = find(&town, &mut store, &settings, name)?;
    if context.wants_json() {
        return context.json(&worker_json(&worker));
    }
    let mut text = paint(BOLD, &format!("{}/{}", worker.polecat.rig, worker.polecat.name));
    let run = worker.run.as_ref();
    let live = run.filter(|run| run.is_live());
    let time_of = |at: Option<jiff::Timestamp>| at.map(time::format);
    let fields = [
        ("state", Some(worker.state.to_owned())),
        ("waits", run.and_then(Run::waits_for).map(|need| need.words().to_owned())),
        ("bead", run.map(|run| format!("{} {}", run.bead, gt_core::text::one_line(&run.title)))),
        ("run", run.map(|run| run.id.clone())),
        ("agent", run.map(|run| run.agent.clone())),
        ("talk", run.and_then(|run| run.conversation.clone())),
        ("used", run.and_then(used)),
        ("process", live.and_then(process_of).map(|process| process.pid.to_string())),
        ("session", live.and_then(|run| run.session.clone())),
        ("branch", run.and_then(|run| run.branch.clone())),
        ("worktree", worker.polecat.worktree.clone()),
        ("kept", worker.polecat.kept.clone()),
        ("salvage", worker.salvaged.as_ref().zip(run).map(|(_, run)| salvaged_words(&worker, &run.bead))),
        ("log", run.and_then(|run| run.log.clone())),
        ("started", run.and_then(|run| time_of(run.started_at))),
        ("ended", run.and_then(|run| time_of(run.ended_at))),
        ("stalled", live.and_then(|run| time_of(run.stalled_at))),
        ("outcome", run.and_then(|run| Some(format!("{}: {}", run.outcome?.as_str(), run.end_reason.as_deref()?)))),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            text.extend(["\n  ", &paint(DIM, &format!("{name:<9}")), " ", &value]);
        }
    }
    if let Some(output) = run.and_then(|run| run.last_output.as_ref()) {
        text.extend(["\n  ", &paint(DIM, "last output")]);
        text.extend(output.lines().map(|line| format!("\n    {line}")));
    }
    context.say(&text)
}

/// What a run has used, as far as its agent tells.
fn used(run: &Run) -> Option<String> {
    let Usage { tokens_in, tokens_out, tokens_cached, cost_micros } = run.usage;
    let dollars = cost_micros as f64 / 1e6;
    let cost = match cost_micros {
        0 => String::new(),
        1..10_000 => format!(", ${dollars:.4}"),
        _ => format!(", ${dollars:.2}"),
    };
    let tokens = format!("{tokens_in} tokens in ({tokens_cached} cached), {tokens_out} out{cost}");
    (run.usage != Usage::default()).then_some(tokens)
}

/// The log of its live or last run.
fn log_of(worker: &Worker, town: &Town) -> Result<File, Failure> {
    let none = || {
        Failure::new(Kind::NotFound, format!("{} has printed nothing that was kept", worker.polecat.name))
            .hint("`retention.logs` and `retention.logs_size` say how long logs are kept")
    };
    let run = worker.run.as_ref().ok_or_else(none)?;
    File::open(town.log_path(&run.id)).map_err(|_| none())
}

fn stop(context: &Context, args: &StopArgs) -> Result<(), Failure> {
    let (town, settings, mut store) = open(context)?;
    let worker = find(&town, &mut store, &settings, &args.name)?;
    let who = format!("{}/{}", worker.polecat.rig, worker.polecat.name);
    let Some(run) = worker.run.filter(Run::is_live) else {
        return answer_stop(context, &who, "idle", &format!("{who} has no run; nothing was changed."));
    };
    check_meant(context, &mut store, args, &who, &run)?;
    let reason = args.reason.clone().unwrap_or_else(|| format!("{} stopped it", context.actor()));
    let order = StopOrder { at: context.now(), by: context.actor(), outcome: Outcome::Stopped, reason };
    store.order_stop(&run.id, &order, &context.stamp())?;
    if context.is_dry_run() {
        return answer_stop(context, &who, "stopped", &format!("{who} would be stopped."));
    }
    let mut dispatcher = once::dispatcher(&town, &mut store, &context.actor());
    if once::see_stopped(&mut dispatcher, &mut store, &settings, &run.id)? {
        let words =
            format!("{who} has stopped; {} is released. `gt scheduler retry {}` starts it again.", run.bead, run.bead);
        return answer_stop(context, &who, "stopped", &words);
    }
    answer_stop(context, &who, "stopping", &format!("{who} was told to stop and has not ended yet."))
}

/// Names are reused: what a worker does now may not be what somebody wanted to stop. // SPEC P10
fn check_meant(context: &Context, store: &mut Store, args: &StopArgs, who: &str, run: &Run) -> Result<(), Failure> {
    let way_on = format!("to stop that: `gt polecat stop {who} --run {}`", run.id);
    let work = format!("{} {}", run.bead, gt_core::text::one_line(&run.title));
    match &args.run {
        Some(wanted) if *wanted == run.id => return Ok(()),
        Some(wanted) => {
            let wanted = gt_core::text::one_line(wanted);
            let message = format!("{who} does not have run {wanted} any more; it works on {work}");
            return Err(Failure::new(Kind::Refused, message).hint(way_on));
        }
        None => {}
    }
    let age = context.now().duration_since(run.claimed_at);
    let Some(before) = store.work_before(run)?.filter(|before| age < JUST_CHANGED && *before != run.bead) else {
        return Ok(());
    };
    let message = format!("{who} changed its work {} s ago, from {before} to {work}", age.as_secs().max(0));
    if context.is_confirmed(&format!("{message}. Stop {}?", run.bead)) {
        return Ok(());
    }
    let left = (JUST_CHANGED - age).as_secs().max(1);
    Err(Failure::new(Kind::Refused, message).hint(format!("{way_on}; its name alone does in {left} s")))
}

fn answer_stop(context: &Context, who: &str, outcome: &str, words: &str) -> Result<(), Failure> {
    if context.wants_json() {
        return context.json(&json!({ "polecat": who, "outcome": outcome }));
    }
    context.say(words)
}
