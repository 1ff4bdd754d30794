//! `gt heartbeat status`: whose heart beats, when, and what came of it last.

use clap::Args;
use gt_core::job::{FireStatus, JobState};
use gt_core::text::{one_line, short_line};
use gt_engine::Town;
use gt_engine::agents::find_for_turns;
use gt_engine::config::Value as ConfigValue;
use gt_engine::jobs;
use gt_engine::settings::Settings;
use gt_store::{BeatWord, Fire, FireFilter, FiresOf, Job, Store, UnderWay, beat_of};
use serde_json::{Value, json};

use crate::cmd::cron::{go_on_command, next_words, off_words, under_way_words};
use crate::context::{Context, daemon_runs};
use crate::failure::Failure;
use crate::render::{BOLD, DIM, YELLOW, paint};

/// Show whose heart beats, when, and what came of it last
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt heartbeat status\n  gt heartbeat status --json")]
pub(super) struct StatusArgs {}

/// An agent whose heart beats.
struct Beating {
    agent: String,
    /// What it looks after.
    file: String,
    /// Why there is nothing to do, if that is so.
    idle: Option<String>,
    /// Why it could not do it, if that is so.
    unfit: Option<String>,
    job: Option<Job>,
    at: Option<UnderWay>,
    last: Option<Fire>,
}

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let mut store = context.store()?;
    let all = look(&town, &settings, &mut store)?;
    if context.wants_json() {
        return context.json(&body(&settings, &all));
    }
    let begins = begins(&settings, daemon_runs(&town));
    let mut text = vec![head(&settings)];
    text.extend(all.iter().map(|one| words(context, one, &begins)));
    if all.is_empty() {
        text.push("No heart beats: write what to look after into HEARTBEAT.md in the town's directory.".to_owned());
    }
    context.say(&text.join("\n"))?;
    if !all.is_empty() {
        context.note_missing_daemon(&town);
    }
    Ok(())
}

fn look(town: &Town, settings: &Settings, store: &mut Store) -> Result<Vec<Beating>, Failure> {
    let mut there = store.beats()?;
    let mut under_way = store.under_way()?;
    let mut all = Vec::new();
    for agent in jobs::beating(town, settings, &there) {
        let path = jobs::file_of(town, settings, &agent);
        let idle = match jobs::to_do(town, settings, &agent) {
            BeatWord::Ask(_) => None,
            BeatWord::Skip { why, .. } => Some(why),
        };
        let place = there.iter().position(|job| job.name() == beat_of(&agent));
        let of = FiresOf::One(beat_of(&agent));
        let last = store.fires(&FireFilter { of, status: None, limit: Some(1) })?.pop();
        let file = path.strip_prefix(town.root()).unwrap_or(&path).display().to_string();
        let job = place.map(|place| there.swap_remove(place));
        let at = job.as_ref().and_then(|job| under_way.remove(&job.id()));
        let unfit = find_for_turns(&settings.config, &agent).err();
        all.push(Beating { agent, file, idle, unfit, job, at, last });
    }
    Ok(all)
}

fn text_of(settings: &Settings, key: &str) -> Option<String> {
    settings.config.value(key).map(|value: ConfigValue| value.to_string())
}

fn head(settings: &Settings) -> String {
    if !settings.config.boolean("heartbeat.enabled") {
        return paint(YELLOW, "Heartbeats are switched off: `gt heartbeat enable`");
    }
    let hours = jobs::active_hours(settings)
        .map_or_else(|| "at any hour".to_owned(), |(hours, _, zone)| format!("between {hours} ({zone})"));
    let target = match text_of(settings, "heartbeat.target").as_deref() {
        Some("none") => "alerts go nowhere".to_owned(),
        Some("last") | None => "alerts go to the channel used last".to_owned(),
        Some(to) => match jobs::missing_channel(settings, to) {
            None => format!("alerts go to {}", one_line(to)),
            Some(name) => format!("there is no channel {}, so alerts are letters (`gt mail inbox`)", one_line(name)),
        },
    };
    let interval = text_of(settings, "heartbeat.interval").unwrap_or_default();
    format!("Every {interval}, {hours}; {target}.")
}

/// When hearts begin to beat that nobody has taken up yet.
fn begins(settings: &Settings, is_daemon_there: bool) -> String {
    if !settings.config.boolean("heartbeat.enabled") {
        return "rests".to_owned();
    }
    if !is_daemon_there {
        return "begins when a daemon runs".to_owned();
    }
    let patrol = text_of(settings, "daemon.heartbeat").unwrap_or_default();
    format!("begins with the daemon's next patrol, one every {patrol}")
}

fn words(context: &Context, one: &Beating, begins: &str) -> String {
    let now = context.now();
    let next = match &one.job {
        None => begins.to_owned(),
        Some(job) => match (job.state, job.next_at, &job.why) {
            (JobState::Active, Some(at), _) if at <= now => next_words(at, now),
            (JobState::Active, Some(at), _) => format!("next {}", off_words(at, now)),
            (JobState::Active, None, _) => "its time has come".to_owned(),
            (JobState::Paused, _, Some(why)) => format!("paused: {}", one_line(why)),
            (state, _, why) => rests(state, why.as_deref(), &go_on_command(job)),
        },
    };
    let mut text = format!("{}  {next}", paint(BOLD, &one_line(&one.agent)));
    let looks = one.idle.as_ref().map_or_else(|| format!("looks after {}", one.file), Clone::clone);
    text.extend(["\n  ".to_owned(), paint(DIM, &one_line(&looks))]);
    if let Some(why) = &one.unfit {
        text.extend(["\n  ".to_owned(), paint(YELLOW, &one_line(why))]);
    }
    if let Some(at) = &one.at {
        text.extend(["\n  ".to_owned(), under_way_words(at, now)]);
    }
    if let Some(last) = one.last.as_ref().filter(|last| last.status != FireStatus::Running) {
        let why = last.error.as_ref().or(last.delivery_error.as_ref());
        let why = why.map(|why| format!(": {}", short_line(why))).unwrap_or_default();
        let line = format!("last {} {}{why}", last.status.as_str(), off_words(last.slot, now));
        text.extend(["\n  ".to_owned(), paint(DIM, &line)]);
    }
    text
}

/// That somebody stopped it, or it stopped itself, and what has it go on.
fn rests(state: JobState, why: Option<&str>, command: &str) -> String {
    let why = why.map(|why| format!(": {}", one_line(why))).unwrap_or_default();
    format!("{}{why}\n  `{command}` has it go on", state.as_str())
}

fn body(settings: &Settings, all: &[Beating]) -> Value {
    json!({
        "enabled": settings.config.boolean("heartbeat.enabled"),
        "interval": text_of(settings, "heartbeat.interval"),
        "active_hours": text_of(settings, "heartbeat.active_hours"),
        "tz": text_of(settings, "heartbeat.tz"),
        "target": text_of(settings, "heartbeat.target"),
        "agents": all.iter().map(beating_json).collect::<Vec<_>>(),
    })
}

fn beating_json(one: &Beating) -> Value {
    let (job, last) = (one.job.as_ref(), one.last.as_ref());
    let said = job.and_then(Job::said);
    json!({
        "agent": one.agent,
        "file": one.file,
        "idle": one.idle,
        "unfit": one.unfit,
        "state": job.map(|job| job.state.as_str()),
        "reason": job.and_then(|job| job.why.as_ref()),
        "next_at": job.and_then(|job| job.next_at),
        "failures": job.map(|job| job.failures),
        "last_at": last.map(|fire| fire.slot),
        "last_status": last.map(|fire| fire.status).map(FireStatus::as_str),
        "last_reason": last.and_then(|fire| fire.error.as_ref().or(fire.delivery_error.as_ref())),
        "last_delivery": last.and_then(|fire| fire.delivery.as_ref()),
        "said": said.map(|(text, _)| text),
        "said_at": said.map(|(_, at)| at),
    })
}
