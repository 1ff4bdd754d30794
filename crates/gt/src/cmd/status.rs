//! `gt status`: the town on one screen. // SPEC U0

use std::collections::BTreeMap;

use clap::Args;
use gt_core::explain;
use gt_core::plan::Policy;
use gt_core::text::one_line;
use gt_core::time;
use gt_engine::channels::{self, ChannelTrouble};
use gt_engine::config::{self, Config, Dropped, How, Ineffective, is_missing};
use gt_engine::in_force::{self, InForce};
use gt_engine::lock::{Holder, Lock};
use gt_engine::surroundings::Machine;
use gt_engine::talk::shape;
use gt_engine::{Town, TownError};
use gt_store::{
    ConvoyProgress, DroppedLimit, Job, JobOutlook, LaneFigure, MAYOR, Outlook, Plea, Session, UnderWay, Via,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::cron::list::job_json;
use super::cron::{beat_agent, clock_words, go_on_command, next_words};
use super::polecat::{self, Worker};
use super::refinery::{self, Queue};
use super::scheduler::mode;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{BOLD, DIM, GREEN, RED, YELLOW, paint};

/// How many lines a part of the screen has at most; `--json` has all.
const LINES_MAX: usize = 10;

/// Show what runs, what waits and why, and what needs a person
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt status\n  gt status --json")]
pub(crate) struct StatusArgs {}

/// Everything that the screen shows.
struct Screen {
    town: Town,
    daemon: Option<Holder>,
    policy: Policy,
    outlook: Outlook,
    workers: Vec<Worker>,
    pleas: Vec<Plea>,
    /// What waits to be merged, and what came back.
    merging: Queue,
    /// Letters that the mayor has not read.
    n_unread: usize,
    convoys: Vec<ConvoyProgress>,
    n_convoys: i64,
    /// Sessions in which something runs or waits.
    sessions: Vec<Session>,
    lanes: Vec<LaneFigure>,
    jobs: JobOutlook,
    under_way: BTreeMap<String, UnderWay>,
    now: Timestamp,
    n_ready: usize,
    /// Whether a good config is known at all.
    has_config: bool,
    /// Why what is in force is not what the file says.
    config_problem: Option<String>,
    /// Limits that were dropped lately.
    dropped: Vec<(String, DroppedLimit)>,
    /// Keys whose defaults have changed, to be shown once.
    changed_defaults: Vec<String>,
    /// Settings that have no effect.
    ineffective: Vec<Ineffective>,
    /// Channels that do not work.
    channels: Vec<ChannelTrouble>,
}

pub(crate) fn run(context: &Context, _: &StatusArgs) -> Result<(), Failure> {
    let screen = look(context)?;
    if context.wants_json() {
        return context.json(&screen_json(&screen));
    }
    context.say(&screen_text(&screen))?;
    if !screen.changed_defaults.is_empty() {
        context.open(&screen.town)?.forget_changed_defaults(&screen.changed_defaults, &context.stamp())?;
    }
    Ok(())
}

fn look(context: &Context) -> Result<Screen, Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    // A broken config is shown with the rest, since the town goes on with the last good one.
    let (config, has_config, config_problem) = match in_force::load(&town, &mut store, &*Machine::here()) {
        Ok(InForce { config, notice, .. }) => (config, true, notice.map(|notice| notice.words())),
        Err(TownError::Config(error)) => (Config::default(), false, Some(gt_engine::chain(&error))),
        Err(error) => return Err(error.into()),
    };
    let names = in_force::known_names(&town, &mut store, &config)?;
    // The limits of a rig do not matter once it is removed.
    let matters = |one: &DroppedLimit| is_missing(&config, &one.key, &one.was) && !names.is_of_missing_rig(&one.key);
    let of = |one: DroppedLimit| {
        let how = if one.via == Via::File { How::InFile } else { How::ByCommand };
        (Dropped::of(&config, &one.key, &one.was, how).to_string(), one)
    };
    let dropped = store.dropped_limits(context.now())?.into_iter().filter(matters).map(of).collect();
    let ineffective = config::ineffective(&config, &names);
    let channels = channels::troubles(&town, &config, &mut store)?;
    let settings = gt_engine::settings::Settings::new(config);
    let policy = settings.policy(town.root());
    let outlook = store.outlook(&policy, context.now())?;
    let workers = polecat::workers(&town, &mut store, &settings)?;
    let pleas = store.pleas()?;
    let limit = if context.wants_json() { usize::MAX >> 1 } else { LINES_MAX };
    let (convoys, n_convoys) = store.open_convoys(limit)?;
    let busy = store.sessions(Some(limit))?.into_iter().filter(|one| one.n_live + one.n_waiting > 0).collect();
    let lanes = store.lanes(&policy)?;
    let ready = store.ready(&gt_store::ReadyFilter::default(), 100, context.now())?;
    Ok(Screen {
        daemon: Lock::Daemon.holder(&town)?,
        n_ready: ready.beads.len(),
        merging: Queue::look(&town, &mut store)?,
        town,
        policy,
        outlook,
        workers,
        pleas,
        n_unread: store.n_unread(MAYOR)?,
        convoys,
        n_convoys,
        sessions: busy,
        lanes,
        jobs: store.job_outlook(limit)?,
        under_way: store.under_way()?,
        now: context.now(),
        has_config,
        config_problem,
        dropped,
        changed_defaults: store.changed_defaults()?,
        ineffective,
        channels,
    })
}

fn screen_text(screen: &Screen) -> String {
    let mut parts = vec![head(screen)];
    parts.extend(changed_defaults(screen));
    parts.extend(needs(screen));
    parts.extend(dropped_limits(screen));
    parts.push(running(screen));
    parts.push(waiting(screen));
    parts.extend(merging(screen));
    parts.extend(salvaged(screen));
    parts.extend(convoys(screen));
    parts.extend(sessions(screen));
    parts.extend(jobs(screen));
    parts.join("\n\n")
}

fn head(screen: &Screen) -> String {
    let daemon = match screen.daemon {
        Some(Holder { pid: Some(pid) }) => paint(GREEN, &format!("daemon runs (process {pid})")),
        Some(_) => paint(GREEN, "daemon runs"),
        None => paint(YELLOW, "no daemon: `gt daemon start`"),
    };
    let agents = agents_words(screen);
    let root = screen.town.root().display();
    let mut lines = vec![format!("{}  {daemon}", paint(BOLD, &root.to_string()))];
    lines.push(agents);
    if let Some(pause) = &screen.outlook.state.pause {
        let why = pause.reason.as_deref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
        let words = format!("PAUSED by {} since {}{why}", pause.by, time::format(pause.at));
        lines.push(paint(YELLOW, &words));
    }
    lines.join("\n")
}

/// How many agents run, and how many may.
fn agents_words(screen: &Screen) -> String {
    let n = screen.outlook.n_live;
    let running = if n == 1 { "1 agent running".to_owned() } else { format!("{n} agents running") };
    match (screen.policy.caps.town, screen.policy.caps.guard) {
        _ if !screen.has_config => format!("{running}; the caps are not known until the config is mended"),
        (Some(cap), _) => format!("{n} of {cap} agents running"),
        // The queue has a cap of its own.
        (None, Some(guard)) if n > guard => format!("{running}; no more are slung above {guard} (`guards.max_agents`)"),
        (None, Some(guard)) => format!("{running}, at most {guard} (`guards.max_agents`)"),
        (None, None) => format!("{running}, no cap"),
    }
}

/// A part of the screen: its title, its first lines, and how many more there are.
fn part(title: &str, lines: Vec<String>, n_total: usize) -> String {
    let mut text = vec![paint(BOLD, &format!("{title} ({n_total})"))];
    let n_shown = lines.len().min(LINES_MAX);
    text.extend(lines.into_iter().take(LINES_MAX));
    if n_total > n_shown {
        text.push(paint(DIM, &format!("  and {} more", n_total - n_shown)));
    }
    text.join("\n")
}

/// What works differently than when the town was made.
fn changed_defaults(screen: &Screen) -> Option<String> {
    let words = |key: &String| match key.as_str() {
        "guards.max_agents" => {
            "at most 16 agents run at once while no cap is set: `gt config set guards.max_agents 0` lifts that"
                .to_owned()
        }
        "rigs.NAME.push" => {
            "merged work of rigs that you added by path is not pushed: `gt config set rigs.NAME.push true` pushes it"
                .to_owned()
        }
        key => format!("the default of `{key}`"),
    };
    let lines: Vec<String> = screen.changed_defaults.iter().map(|key| format!("  {}", words(key))).collect();
    let n = lines.len();
    (n > 0).then(|| part("New defaults, shown once", lines, n))
}

fn needs(screen: &Screen) -> Option<String> {
    let sign = paint(RED, "!");
    let mut lines = Vec::new();
    // Who waits for a person is the first that a person should hear of.
    for worker in screen.workers.iter().filter(|worker| worker.state == "waiting") {
        lines.push(format!("  {sign} {}", polecat::line(worker, 0)));
    }
    lines.extend(screen.config_problem.iter().map(|problem| format!("  {sign} {problem}")));
    for (who, trouble) in &screen.outlook.state.troubles {
        lines.push(format!("  {sign} {}", who.sentence(trouble, screen.now)));
    }
    lines.extend(screen.policy.guards.iter().map(|guard| format!("  {sign} {}", guard.message)));
    for plea in &screen.pleas {
        let (title, reason) = (one_line(&plea.title), one_line(&plea.reason));
        lines.push(format!("  {sign} {} {title}\n      {}", plea.bead, paint(DIM, &reason)));
    }
    let held = screen.merging.targets.iter().filter_map(refinery::held_line);
    lines.extend(held.map(|held| format!("  {sign} {held}")));
    for worker in screen.workers.iter().filter(|worker| ["stalled", "gone"].contains(&worker.state)) {
        lines.push(format!("  {sign} {}", polecat::line(worker, 0)));
    }
    for job in &screen.jobs.disabled {
        let why = one_line(job.why.as_deref().unwrap_or("nobody knows why"));
        let what = match beat_agent(job.name()) {
            Some(agent) => format!("heartbeat of {agent}"),
            None => format!("job {}", one_line(job.name())),
        };
        let command = go_on_command(job);
        lines.push(format!("  {sign} the {what} is disabled: `{command}`\n      {}", paint(DIM, &why)));
    }
    match screen.n_unread {
        0 => {}
        1 => lines.push(format!("  {sign} 1 letter was not read: `gt mail inbox`")),
        n => lines.push(format!("  {sign} {n} letters were not read: `gt mail inbox`")),
    }
    for one in &screen.channels {
        lines.push(format!("  {sign} {}\n      {}", one.message, paint(DIM, &one.hint)));
    }
    // Last: nothing waits for these.
    let weak = paint(YELLOW, "!");
    let words = |one: &Ineffective| format!("  {weak} {one}\n      {}", paint(DIM, &one.hint));
    lines.extend(screen.ineffective.iter().map(words));
    let n = lines.len();
    (n > 0).then(|| part("Needs a person", lines, n))
}

/// Limits that no longer hold. They need a person only if they were dropped by mistake.
fn dropped_limits(screen: &Screen) -> Option<String> {
    let line = |(words, one): &(String, DroppedLimit)| format!("  {words} {}", time::ago(one.at, screen.now));
    let lines: Vec<String> = screen.dropped.iter().map(line).collect();
    let n = lines.len();
    (n > 0).then(|| part("Limits dropped in the last 24 h", lines, n))
}

fn running(screen: &Screen) -> String {
    let live: Vec<&Worker> = screen.workers.iter().filter(|worker| worker.polecat.run.is_some()).collect();
    if live.is_empty() {
        return paint(DIM, "Nothing runs.");
    }
    let width = live.iter().map(|w| w.polecat.rig.len() + w.polecat.name.len() + 1).max().unwrap_or(0);
    let lines = live.iter().map(|worker| format!("  {}", polecat::line(worker, width))).collect();
    part("Running", lines, live.len())
}

fn waiting(screen: &Screen) -> String {
    let scheduled = &screen.outlook.scheduled;
    if scheduled.is_empty() {
        let more = if screen.n_ready >= 100 { "100 or more" } else { &screen.n_ready.to_string() };
        let ready = match screen.n_ready {
            0 => String::new(),
            1 => " 1 bead is ready: `gt ready`, then `gt sling BEAD`.".to_owned(),
            _ => format!(" {more} beads are ready: `gt ready`, then `gt sling BEAD`."),
        };
        return paint(DIM, &format!("Nothing is scheduled.{ready}"));
    }
    let line = |one: &gt_store::Scheduled| {
        let next = if screen.has_config {
            explain::next_start(screen.policy.has_batch(one.is_queued))
        } else {
            "when it starts is not known until the config is mended"
        };
        let why = one.reasons.first().map_or(next, |reason| reason.message.as_str());
        let sign = if one.is_blocked() { paint(YELLOW, "⏸") } else { "○".to_owned() };
        format!("  {sign} {} {}\n      {}", one.bead, one_line(&one.title), paint(DIM, why))
    };
    part("Waiting", scheduled.iter().map(line).collect(), scheduled.len())
}

/// The refinery's queue: a branch with all that waits for it is one line more or less.
fn merging(screen: &Screen) -> Option<String> {
    let lines = refinery::screen_lines(&screen.merging);
    let n_total = lines.len();
    (n_total > 0).then(|| part("Merging", lines, n_total))
}

/// Worktrees that go by themselves: nobody has to do anything about them.
fn salvaged(screen: &Screen) -> Option<String> {
    let salvaged = screen.workers.iter().filter(|worker| worker.state == "salvaged");
    let lines: Vec<String> = salvaged.map(|worker| format!("  {}", polecat::line(worker, 0))).collect();
    let n_total = lines.len();
    (n_total > 0).then(|| part("Salvaged worktrees", lines, n_total))
}

fn convoys(screen: &Screen) -> Option<String> {
    let line = |convoy: &ConvoyProgress| format!("  {}  {}  {}", convoy.id, convoy.words(), one_line(&convoy.title));
    let lines = screen.convoys.iter().map(line).collect();
    (screen.n_convoys > 0).then(|| part("Convoys", lines, screen.n_convoys as usize))
}

/// Sessions at work, and lanes that are full.
fn sessions(screen: &Screen) -> Option<String> {
    let line = |session: &Session| {
        format!("  {}  {} running, {} waiting", one_line(&session.key), session.n_live, session.n_waiting)
    };
    let lines: Vec<String> = screen.sessions.iter().map(line).collect();
    let is_turns = |lane: &&LaneFigure| lane.name != gt_core::lane::POLECAT;
    let sum = |count: fn(&LaneFigure) -> usize| screen.lanes.iter().filter(is_turns).map(count).sum::<usize>();
    let title = format!("Sessions, {} turns running and {} waiting", sum(|lane| lane.active), sum(|lane| lane.pending));
    let n_total = lines.len();
    (n_total > 0).then(|| part(&title, lines, n_total))
}

/// What the clock brings next.
fn jobs(screen: &Screen) -> Option<String> {
    let width = screen.jobs.next.iter().map(|job| one_line(job.name()).chars().count()).max().unwrap_or(0);
    let line = |(job, at): (&Job, Timestamp)| {
        let clock = format!("{} ({})", clock_words(at, &job.plan.tz), job.plan.tz);
        format!("  {:<width$}  {}  {}", one_line(job.name()), next_words(at, screen.now), paint(DIM, &clock))
    };
    let lines = screen.jobs.next.iter().filter_map(|job| Some((job, job.next_at?))).map(line).collect();
    (screen.jobs.n_next > 0).then(|| part("Next by the clock", lines, screen.jobs.n_next))
}

fn screen_json(screen: &Screen) -> Value {
    let pause = screen.outlook.state.pause.as_ref();
    let live = screen.workers.iter().filter(|worker| worker.polecat.run.is_some());
    json!({
        "town": screen.town.root(),
        "daemon": screen.daemon.and_then(|holder| holder.pid),
        "mode": mode(&screen.policy),
        "paused": pause.is_some(),
        "paused_by": pause.map(|pause| &pause.by),
        "paused_reason": pause.and_then(|pause| pause.reason.as_ref()),
        "active_polecats": screen.outlook.n_live,
        "max_polecats": screen.policy.caps.town.map_or(-1, |cap| cap as i64),
        "free": screen.outlook.capacity.map(|free| free.max(0)),
        "running": live.map(|worker| json!({
            "polecat": worker.polecat.name,
            "rig": worker.polecat.rig,
            "state": worker.state,
            "waiting_for": worker.run.as_ref().and_then(gt_store::Run::waits_for).map(gt_core::agent::Need::as_str),
            "bead": worker.run.as_ref().map(|run| &run.bead),
            "run": worker.run.as_ref().map(|run| &run.id),
            "step": worker.run.as_ref().and_then(|run| run.step.as_ref()),
        })).collect::<Vec<_>>(),
        "waiting": screen.outlook.scheduled.iter().map(|one| json!({
            "bead": one.bead,
            "rig": one.rig,
            "blocked": one.is_blocked(),
            "reasons": one.reasons,
        })).collect::<Vec<_>>(),
        "unread_mail": screen.n_unread,
        "needs": screen.pleas.iter().map(|plea| json!({ "bead": plea.bead, "reason": plea.reason }))
            .collect::<Vec<_>>(),
        "salvaged": screen.workers.iter().filter(|worker| worker.state == "salvaged").map(polecat::worker_json)
            .collect::<Vec<_>>(),
        "merging": refinery::queue_json(&screen.merging),
        "guards": screen.policy.guards.iter().map(|guard| &guard.message).collect::<Vec<_>>(),
        "channels": screen.channels.iter().map(|one| json!({
            "channel": one.channel, "message": one.message, "hint": one.hint,
        })).collect::<Vec<_>>(),
        "config_problem": screen.config_problem,
        "changed_defaults": screen.changed_defaults,
        "config_warnings": screen.ineffective.iter().map(|one| json!({
            "key": one.key, "message": one.to_string(), "hint": one.hint,
        })).collect::<Vec<_>>(),
        "config_dropped": screen.dropped.iter().map(|(_, one)| json!({
            "key": one.key, "was": one.was, "via": one.via.as_str(), "at": time::format(one.at),
        })).collect::<Vec<_>>(),
        "sessions": screen.sessions.iter().map(|session| json!({
            "key": session.key, "running": session.n_live, "waiting": session.n_waiting,
        })).collect::<Vec<_>>(),
        "lanes": screen.lanes.iter().map(shape::lane).collect::<Vec<_>>(),
        "jobs": screen.jobs.next.iter().chain(&screen.jobs.disabled).map(|job| job_json(job, &screen.under_way)).collect::<Vec<_>>(),
        "convoys": screen.convoys.iter().map(|convoy| json!({
            "id": convoy.id, "title": convoy.title, "completed": convoy.n_done, "total": convoy.n_total,
        })).collect::<Vec<_>>(),
    })
}
