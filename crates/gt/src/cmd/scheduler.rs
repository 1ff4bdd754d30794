//! `gt scheduler`: what waits, why, and the switches. // SPEC D6

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use gt_core::plan::{Limit, PerSide, Policy, TroubleOf};
use gt_core::readiness::Standing;
use gt_core::{explain, plan, time};
use gt_engine::Town;
use gt_engine::dispatch::PassReport;
use gt_engine::lock::{Held, Lock};
use gt_engine::once::{self, Limits, Turn};
use gt_store::{Assignment, Outlook, Plea, Scheduled};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::context::{After, Context};
use crate::failure::{Failure, Kind, reword};
use crate::render::{BOLD, DIM, GREEN, RED, YELLOW, paint};

/// Which of the two surfaces was called: they do the same, and speak of themselves. // SPEC Q1
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    Scheduler,
    Queue,
}

impl Surface {
    fn command(self) -> &'static str {
        match self {
            Surface::Scheduler => "gt scheduler",
            Surface::Queue => "gt queue",
        }
    }

    /// A reason names a command; here it is the one of this surface.
    fn words(self, reason: &str) -> String {
        match self {
            Surface::Scheduler => reason.to_owned(),
            Surface::Queue => reword(reason, &super::queue::SWITCHES),
        }
    }

    /// What is queued always waits for its turn.
    fn mode(self, policy: &Policy) -> &'static str {
        match self {
            Surface::Scheduler => mode(policy),
            Surface::Queue => "deferred",
        }
    }
}

/// See and steer what is scheduled
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler status
  gt scheduler list
  gt scheduler run --dry-run
  gt scheduler pause --reason \"release day\"")]
pub(crate) struct SchedulerArgs {
    #[command(subcommand)]
    command: SchedulerCommand,
}

#[derive(Debug, Subcommand)]
enum SchedulerCommand {
    Status(StatusArgs),
    List(ListArgs),
    Run(RunArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Clear(ClearArgs),
    Retry(RetryArgs),
}

/// Show state, capacity and what is queued
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt scheduler status\n  gt scheduler status --json")]
struct StatusArgs {}

/// List what is scheduled, in dispatch order, with the reason for what waits
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt scheduler list\n  gt scheduler list --json")]
struct ListArgs {}

/// Start what may start now, without the daemon
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler run
  gt scheduler run --dry-run      look first
  gt scheduler run --batch 2")]
pub(super) struct RunArgs {
    /// Starts at most this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Another cap for this once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_polecats: Option<u32>,
    /// Record what has ended; in direct mode, start what that made possible
    #[arg(long, hide = true)]
    after_exit: bool,
}

/// Stop all dispatch, town-wide; what runs goes on
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt scheduler pause --reason \"release day\"")]
pub(super) struct PauseArgs {
    /// Why, for everybody to see
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

/// Go on dispatching
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt scheduler resume")]
struct ResumeArgs {}

/// Take beads off the queue
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt scheduler clear                   all of them
  gt scheduler clear --bead gt-a1b2    one")]
pub(super) struct ClearArgs {
    /// Only this one
    #[arg(long, value_name = "ID")]
    bead: Option<String>,
}

/// Forget a bead's failures and schedule it again
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt scheduler retry gt-a1b2")]
struct RetryArgs {
    /// The bead's id
    bead: String,
}

pub(crate) fn run(context: &Context, args: SchedulerArgs) -> Result<ExitCode, Failure> {
    let surface = Surface::Scheduler;
    match args.command {
        SchedulerCommand::Status(_) => status(context, surface)?,
        SchedulerCommand::List(_) => list(context, surface)?,
        SchedulerCommand::Run(args) => return dispatch(context, &args, surface),
        SchedulerCommand::Pause(args) => pause(context, &args, surface)?,
        SchedulerCommand::Resume(_) => resume(context)?,
        SchedulerCommand::Clear(args) => clear(context, &args)?,
        SchedulerCommand::Retry(args) => retry(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What the scheduler would do now, and what it has given up on.
struct View {
    surface: Surface,
    town: Town,
    policy: Policy,
    outlook: Outlook,
    held: Vec<Plea>,
    now: Timestamp,
}

fn view(context: &Context, surface: Surface) -> Result<View, Failure> {
    let town = context.town()?;
    let policy = context.settings(&town)?.policy(town.root());
    let mut store = context.open(&town)?;
    let outlook = store.outlook(&policy, context.now())?;
    Ok(View { surface, held: store.held()?, town, policy, outlook, now: context.now() })
}

/// What no pass takes any more, with the way on.
fn held_lines(held: &[Plea]) -> impl Iterator<Item = String> + '_ {
    held.iter().map(|one| format!("  {} {}: {}", paint(RED, "✗"), one.bead, gt_core::text::one_line(&one.reason)))
}

pub(super) fn status(context: &Context, surface: Surface) -> Result<(), Failure> {
    let view = view(context, surface)?;
    if context.wants_json() {
        return context.json(&status_json(&view));
    }
    context.say(&status_text(&view))?;
    let is_left_alone = |one: &Scheduled| !view.policy.starts(view.policy.side(one.is_queued));
    if !view.outlook.scheduled.iter().all(is_left_alone) {
        context.note_missing_daemon(&view.town);
    }
    Ok(())
}

fn status_text(view: &View) -> String {
    let View { surface, policy, outlook, held, now, .. } = view;
    let state = match &outlook.state.pause {
        None => paint(GREEN, "active"),
        Some(pause) => {
            let why = pause.reason.as_deref().map(|why| format!(": {}", gt_core::text::one_line(why)));
            let words = format!("PAUSED by {} since {}{}", pause.by, time::format(pause.at), why.unwrap_or_default());
            paint(YELLOW, &words)
        }
    };
    let (total, ready) = (outlook.scheduled.len(), n_ready(outlook));
    let title = if *surface == Surface::Queue { "Queue" } else { "Scheduler" };
    let mut lines = vec![
        paint(BOLD, title),
        format!("  State:  {state}, {} dispatch", surface.mode(policy)),
        format!("  Queued: {total} total, {ready} ready"),
        format!("  Active: {}", active_words(view)),
    ];
    lines.extend(queue_words(view));
    if let (Some(at), Some(n)) = (outlook.state.last_dispatch_at, outlook.state.last_dispatch_count) {
        lines.push(format!("  Last dispatch: {} ({n} {})", time::format(at), beads(n as usize)));
    }
    for (who, trouble) in &outlook.state.troubles {
        lines.push(format!("  {} {}", paint(RED, "!"), surface.words(&who.sentence(trouble, *now))));
    }
    lines.extend(policy.guards.iter().map(|guard| format!("  {} {}", paint(RED, "!"), guard.message)));
    lines.extend(held_lines(held));
    lines.join("\n")
}

fn beads(n: usize) -> &'static str {
    if n == 1 { "bead" } else { "beads" }
}

pub(super) fn mode(policy: &Policy) -> &'static str {
    if policy.is_deferred { "deferred" } else { "direct" }
}

fn active_words(view: &View) -> String {
    let n_live = view.outlook.n_live;
    let polecats = if n_live == 1 { "polecat" } else { "polecats" };
    match (cap(view), guard(view)) {
        (Some(cap), _) => format!("{n_live} of {cap} polecats, {} free", free(view).unwrap_or(0)),
        (None, Some(guard)) => format!("{n_live} {polecats}, at most {guard} (`guards.max_agents`)"),
        (None, None) => format!("{n_live} {polecats}, no cap"),
    }
}

/// The cap that rules what this surface shows.
fn cap(view: &View) -> Option<usize> {
    match (&view.policy.queue, view.surface) {
        (Some(queue), Surface::Queue) => queue.cap,
        _ => view.policy.caps.town,
    }
}

fn free(view: &View) -> Option<usize> {
    cap(view).or(guard(view)).map(|cap| cap.saturating_sub(view.outlook.n_live))
}

/// What limits agents where no cap does.
fn guard(view: &View) -> Option<usize> {
    view.policy.caps.guard.filter(|_| cap(view).is_none())
}

/// What rules queued work, where that is not the scheduler's cap.
fn queue_words(View { surface, policy, outlook, .. }: &View) -> Option<String> {
    let has_queued = outlook.scheduled.iter().any(|one| one.is_queued);
    let queue = policy.queue.as_ref().filter(|_| *surface == Surface::Queue || has_queued)?;
    let cap = queue.cap.map_or("no cap".to_owned(), |cap| format!("{cap} polecats at most"));
    let batch = queue.batch.map_or(String::new(), |batch| format!(", {batch} a pass"));
    let who = if queue.is_open {
        "the daemon starts what is queued"
    } else {
        "queue.enabled is false: the daemon leaves what is queued alone; `gt queue run` starts it, or `gt config set \
         queue.enabled true`"
    };
    Some(format!("  Queue:  {cap}{batch}; {who}"))
}

/// Scheduled beads whose work is ready, whatever else they wait for.
fn n_ready(outlook: &Outlook) -> usize {
    outlook.scheduled.iter().filter(|scheduled| scheduled.standing == Standing::Ready).count()
}

fn status_json(view: &View) -> Value {
    let View { policy, outlook, held, .. } = view;
    let pause = outlook.state.pause.as_ref();
    json!({
        "mode": mode(policy),
        "paused": pause.is_some(),
        "paused_by": pause.map(|pause| &pause.by),
        "paused_at": pause.map(|pause| time::format(pause.at)),
        "paused_reason": pause.and_then(|pause| pause.reason.as_ref()),
        "queued_total": outlook.scheduled.len(),
        "queued_ready": n_ready(outlook),
        "active_polecats": outlook.n_live,
        "max_polecats": cap(view).map_or(-1, |cap| cap as i64),
        "free": free(view),
        "queue": policy.queue.as_ref().map(|queue| json!({
            "enabled": queue.is_open, "max_polecats": queue.cap, "batch_size": queue.batch,
        })),
        "last_dispatch_at": outlook.state.last_dispatch_at.map(time::format),
        "last_dispatch_count": outlook.state.last_dispatch_count,
        "held_up": held_up_json(policy, outlook),
        "held": held.iter().map(|one| json!({ "bead": one.bead, "reason": one.reason })).collect::<Vec<_>>(),
        "beads": list_json(outlook),
    })
}

fn held_up_json(policy: &Policy, outlook: &Outlook) -> Vec<Value> {
    let troubles = outlook.state.troubles.iter().map(|(of, trouble)| {
        let (agent, rig) = match of {
            TroubleOf::Town => (None, None),
            TroubleOf::Agent(name) | TroubleOf::Program(name) => (Some(name), None),
            TroubleOf::Rig(name) => (None, Some(name)),
        };
        json!({ "code": "held-up", "agent": agent, "rig": rig, "message": trouble.reason,
                "until": time::format(trouble.until) })
    });
    let guards = policy.guards.iter().map(
        |guard| json!({ "code": guard.code, "agent": null, "rig": null, "message": guard.message, "until": null }),
    );
    troubles.chain(guards).collect()
}

pub(super) fn list(context: &Context, surface: Surface) -> Result<(), Failure> {
    let View { outlook, held, policy, .. } = view(context, surface)?;
    if context.wants_json() {
        return context.json(&list_json(&outlook));
    }
    if outlook.scheduled.is_empty() && held.is_empty() {
        let verb = if surface == Surface::Queue { "`gt queue BEAD` queues" } else { "`gt sling BEAD` schedules" };
        return context.say(&format!("Nothing is scheduled. {verb} a bead, `gt ready` shows which could be."));
    }
    let mut by_rig: BTreeMap<&str, Vec<(usize, &Scheduled)>> = BTreeMap::new();
    for (at, scheduled) in outlook.scheduled.iter().enumerate() {
        by_rig.entry(&scheduled.rig).or_default().push((at + 1, scheduled));
    }
    let mut lines = Vec::new();
    for (rig, scheduled) in by_rig {
        lines.push(paint(BOLD, rig));
        lines.extend(scheduled.into_iter().map(|(position, one)| {
            let next = explain::next_start(policy.has_batch(one.is_queued));
            list_line(position, one, next, surface)
        }));
    }
    if !held.is_empty() {
        lines.push(paint(BOLD, "not scheduled any more"));
        lines.extend(held_lines(&held));
    }
    context.say(&lines.join("\n"))
}

fn list_line(position: usize, scheduled: &Scheduled, next: &str, surface: Surface) -> String {
    let sign = match scheduled {
        one if one.starts => paint(GREEN, "▶"),
        one if one.is_blocked() => paint(YELLOW, "⏸"),
        _ => "○".to_owned(),
    };
    let title = gt_core::text::one_line(&scheduled.title);
    let why = match scheduled.reasons.first() {
        None => next.to_owned(),
        Some(reason) => surface.words(&reason.message),
    };
    format!("  {sign} {position:>3}  {}  {title}\n         {}", scheduled.bead, paint(DIM, &why))
}

fn list_json(outlook: &Outlook) -> Vec<Value> {
    let row = |(at, scheduled): (usize, &Scheduled)| {
        json!({
            "bead": scheduled.bead,
            "title": scheduled.title,
            "context": scheduled.context,
            "target_rig": scheduled.rig,
            "enqueued_at": time::format(scheduled.enqueued_at),
            "blocked": scheduled.is_blocked(),
            "position": at + 1,
            "dispatch_failures": scheduled.failures,
            "last_failure": scheduled.last_failure,
            "reason": scheduled.reasons.first().map(|reason| &reason.message),
        })
    };
    outlook.scheduled.iter().enumerate().map(row).collect()
}

pub(super) fn dispatch(context: &Context, args: &RunArgs, surface: Surface) -> Result<ExitCode, Failure> {
    let town = context.town()?;
    if args.after_exit {
        context.carry_on(&town, &mut context.open(&town)?, After::Exit)?;
        return Ok(ExitCode::SUCCESS);
    }
    let limits = Limits {
        batch: args.batch.map(|n| n as usize),
        max_polecats: args.max_polecats.map(|n| n as usize),
        starts_queued: true,
    };
    if context.is_dry_run() {
        let mut store = context.open(&town)?;
        let mut dispatcher = once::dispatcher(&town, &mut store, &context.actor());
        let mut settings = context.settings_in(&town, &mut store)?;
        settings.limit_once(limits);
        let policy = settings.policy(town.root());
        let before = store.outlook(&policy, context.now())?;
        let rehearsed = dispatcher.claim_by(&settings, &policy, PerSide::both(None), 0, |claimant| {
            store.advance(&gt_store::Findings::default(), &policy, Some(claimant), &context.stamp())
        })?;
        let report = PassReport { started: rehearsed.claimed, ..PassReport::default() };
        return show_run(context, &Ran { before, after: None, report, waited: false, surface });
    }
    let whole = take_run(context, &town)?;
    let mut store = context.open(&town)?;
    let mut dispatcher = once::dispatcher(&town, &mut store, &context.actor());
    context.note_config(&town, &mut store);
    let turn = Turn::take(dispatcher.around(), &town, &mut store, limits)?;
    let (waited, policy) = (whole.waited || turn.waited(), turn.settings.policy(town.root()));
    once::settle(&mut dispatcher, &mut store, &turn.settings)?;
    let before = store.outlook(&policy, context.now())?;
    let report = once::run(&mut dispatcher, &mut store, turn, 0)?;
    let after = Some(store.outlook(&policy, context.now())?);
    show_run(context, &Ran { before, after, report, waited, surface })
}

/// A pass that spaces its starts lets others in between, so that `pause` and `gt done` need not wait; but not a second one
/// like it.
fn take_run(context: &Context, town: &Town) -> Result<Held, Failure> {
    if let Some(held) = Lock::Run.try_take(town)? {
        return Ok(held);
    }
    context.note("note: another pass is under way; this one waits for its end");
    Ok(Lock::Run.take(town)?)
}

/// What a run came to.
struct Ran {
    /// The outlook right before.
    before: Outlook,
    /// And right after; `None`: it was only a rehearsal.
    after: Option<Outlook>,
    report: PassReport,
    waited: bool,
    surface: Surface,
}

impl Ran {
    fn limit(&self) -> Limit {
        let Ran { before, report, .. } = self;
        match (before.limit, self.after.as_ref().map(|after| after.limit)) {
            (limit @ (Limit::Paused | Limit::Guard), _) | (_, Some(limit @ (Limit::Paused | Limit::Guard))) => limit,
            _ => {
                let n = report.started.len() + report.failed.len();
                let (planned, _, limit) = plan::to_dispatch(before.capacity, before.batch, before.n_ready);
                if n < planned { Limit::Capacity } else { limit }
            }
        }
    }

    /// Ready beads that were not started. What was cleared or put off meanwhile is none of them.
    fn n_left(&self) -> usize {
        let n_tried = self.report.started.len() + self.report.failed.len();
        self.after.as_ref().map_or(self.before.n_ready.saturating_sub(n_tried), |after| after.n_ready)
    }

    fn last(&self) -> &Outlook {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// The pause, if something waits for its end.
    fn pause(&self) -> Option<&gt_core::explain::Reason> {
        let mut reasons = self.last().scheduled.iter().flat_map(|one| &one.reasons);
        reasons.find(|reason| reason.code == "paused")
    }

    /// Why the first of them waits.
    fn reason(&self) -> Option<&gt_core::explain::Reason> {
        self.last().scheduled.iter().find_map(|one| (!one.starts && !one.is_blocked()).then(|| one.reasons.first())?)
    }
}

fn show_run(context: &Context, ran: &Ran) -> Result<ExitCode, Failure> {
    if context.wants_json() {
        context.json(&run_json(ran, context.is_dry_run()))?;
    } else {
        context.say(&run_text(ran, context.is_dry_run()))?;
    }
    Ok(match (ran.report.started.is_empty(), ran.n_left(), ran.report.failed.len()) {
        (true, ..) if ran.pause().is_some() => Kind::NotNow.exit_code(),
        (true, 1.., _) => Kind::NotNow.exit_code(),
        (true, 0, 1..) => Kind::Refused.exit_code(),
        _ => ExitCode::SUCCESS,
    })
}

fn run_text(ran: &Ran, is_dry: bool) -> String {
    let mut lines = Vec::new();
    if ran.waited {
        lines.push(paint(DIM, "Waited for another pass to end."));
    }
    let verb = if is_dry { "Would start" } else { "Started" };
    for one in &ran.report.started {
        let who = paint(BOLD, &one.polecat.name);
        lines.push(format!("{} {verb} {who} on {} {} ({})", paint(GREEN, "▶"), one.bead, one.title, one.rig.name));
    }
    for (one, why) in &ran.report.failed {
        lines.push(format!("{} Could not start {}: {why}", paint(RED, "✗"), one.bead));
    }
    let (n_left, list) = (ran.n_left(), format!("{} list", ran.surface.command()));
    match (ran.report.started.is_empty() && ran.report.failed.is_empty(), n_left) {
        (true, _) if let Some(pause) = ran.pause() => {
            let (n, why) = (ran.last().scheduled.len(), ran.surface.words(&pause.message));
            lines.push(format!("{} {n} scheduled {} waiting: {why}", paint(YELLOW, "⏸"), beads(n)));
        }
        (true, 0) if ran.last().scheduled.is_empty() => lines.push("Nothing is scheduled.".to_owned()),
        (true, 0) => lines.push(format!("Nothing that is scheduled can start now: `{list}` says why.")),
        (true, n) => {
            let why = ran.reason().map(|reason| ran.surface.words(&reason.message)).unwrap_or_default();
            lines.push(format!("{} {n} ready {} waiting: {why}", paint(YELLOW, "⏸"), beads(n)));
        }
        (false, 0) => {}
        (false, n) => {
            let why = match ran.limit() {
                Limit::Ready => format!("`{list}` says why"),
                limit => limit.as_str().to_owned(),
            };
            lines.push(paint(DIM, &format!("{n} ready {} left ({why}).", beads(n))));
        }
    }
    lines.join("\n")
}

fn run_json(ran: &Ran, is_dry: bool) -> Value {
    let dispatched: Vec<Value> = ran.report.started.iter().map(assignment_json).collect();
    let failed: Vec<Value> =
        ran.report.failed.iter().map(|(one, error)| json!({ "bead": one.bead, "error": error })).collect();
    json!({
        (if is_dry { "would_dispatch" } else { "dispatched" }): dispatched,
        "failed": failed,
        "skipped": ran.n_left(),
        "reason": ran.limit().as_str(),
        "capacity": ran.before.capacity,
        "batch": ran.before.batch,
        "ready": ran.before.n_ready,
        "waited": ran.waited,
    })
}

fn assignment_json(one: &Assignment) -> Value {
    json!({ "bead": one.bead, "rig": one.rig.name, "polecat": one.polecat.name, "run": one.run, "context": one.context })
}

pub(super) fn pause(context: &Context, args: &PauseArgs, surface: Surface) -> Result<(), Failure> {
    if let Some(reason) = &args.reason {
        gt_core::text::check_body("reason", reason)?;
    }
    let mut store = context.store()?;
    let changed = store.pause(args.reason.as_deref(), &context.stamp())?;
    let pause = store.scheduler_state(context.now())?.pause;
    if context.wants_json() {
        return context.json(&json!({ "paused": true, "changed": changed }));
    }
    let by = pause.map(|pause| format!(" by {} since {}", pause.by, time::format(pause.at))).unwrap_or_default();
    context.say(&if changed {
        format!("Paused. What runs goes on; nothing new starts. `{} resume` goes on.", surface.command())
    } else {
        format!("It is paused already{by}; nothing was changed.")
    })
}

pub(super) fn resume(context: &Context) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let (was_paused, n_lifted) = store.resume(&context.stamp())?;
    if context.wants_json() {
        let changed = was_paused || n_lifted > 0;
        return context.json(&json!({ "paused": false, "changed": changed, "lifted": n_lifted }));
    }
    let lifted = if n_lifted == 1 { "what was held up is".to_owned() } else { format!("{n_lifted} hold-ups are") };
    context.say(&match (was_paused, n_lifted) {
        (true, 0) => "Dispatch goes on.".to_owned(),
        (true, _) => format!("Dispatch goes on; {lifted} tried again now."),
        (false, 0) => "It was not paused; nothing was changed.".to_owned(),
        (false, _) => format!("It was not paused; {lifted} tried again now."),
    })?;
    context.carry_on(&town, &mut store, After::Command)
}

pub(super) fn clear(context: &Context, args: &ClearArgs) -> Result<(), Failure> {
    let cleared = context.store()?.clear_contexts(args.bead.as_deref(), &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({ "cleared": cleared }));
    }
    context.say(&match (cleared.as_slice(), &args.bead) {
        ([], Some(bead)) => format!("{bead} is not scheduled; nothing was changed."),
        ([], None) => "Nothing is scheduled; nothing was changed.".to_owned(),
        ([one], _) => format!("Took {one} off the queue."),
        (many, _) => format!("Took {} beads off the queue.", many.len()),
    })
}

fn retry(context: &Context, args: &RetryArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let scheduled = store.retry(&args.bead, &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({ "bead": args.bead, "context": scheduled }));
    }
    context.say(&format!("{} is scheduled again (context: {scheduled}); its failures are forgotten.", args.bead))?;
    context.carry_on(&town, &mut store, After::Command)
}
