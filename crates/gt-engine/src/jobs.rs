//! Jobs in a town: by what rules they fire, and what is asked by a heartbeat. // SPEC K3, K4, H1, H1a
//!
//! Which slots have come and what became of them is the store's; when it is time to look, the daemon's.

use std::fs;
use std::io;
use std::path::PathBuf;

use gt_core::heartbeat;
use gt_core::job::Beat;
use gt_core::plan::Policy;
use gt_core::session::{Rules, TEXT_BYTES_MAX};
use gt_store::{BeatWord, Beats, FireRules, Job, Stamp, Store, StoreError, beat_of};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::config::Value;
use crate::settings::Settings;
use crate::town::Town;

/// The file with what is looked after.
pub const FILE: &str = "HEARTBEAT.md";
/// Room is left for the words around it.
const FILE_BYTES_MAX: u64 = TEXT_BYTES_MAX as u64 / 2;

/// The rules of a town's config; whoever fires has watched the clock since then.
pub fn rules<'a>(settings: &Settings, policy: &'a Policy, sessions: &'a Rules, since: Timestamp) -> FireRules<'a> {
    let count = |key: &str| u32::try_from(settings.config.integer(key)).unwrap_or(0);
    FireRules {
        policy,
        sessions,
        since,
        grace: span(settings, "cron.grace"),
        timeout: Some(span(settings, "cron.timeout")).filter(|span| !span.is_zero()),
        retries: count("cron.retries"),
        may_retry: true,
        failures_max: count("cron.max_failures"),
    }
}

fn span(settings: &Settings, key: &str) -> SignedDuration {
    SignedDuration::try_from(settings.config.duration(key)).unwrap_or(SignedDuration::MAX)
}

/// Whoever answers for the town's own file.
pub fn main_agent(settings: &Settings) -> String {
    settings.config.text("heartbeat.agent").unwrap_or_else(|| settings.default_agent())
}

/// Sees to it that there are the heartbeats that config and files ask for, and that none of their alerts waits for a
/// channel that the config does not have.
pub fn keep_beats(town: &Town, settings: &Settings, store: &mut Store, stamp: &Stamp) -> Result<(), StoreError> {
    let there = store.beats()?;
    store.keep_beats(&wanted_beats(town, settings, &there), stamp)?;
    store.mail_stranded_alerts(&settings.config.names("channels"), stamp)?;
    Ok(())
}

/// The heartbeats that there are to be: of every agent that has a file, and of one that had, until somebody says otherwise.
fn wanted_beats(town: &Town, settings: &Settings, there: &[Job]) -> Beats {
    let target = settings.config.text("heartbeat.target").unwrap_or_default();
    let ack_max_chars = usize::try_from(settings.config.integer("heartbeat.ack_max_chars")).unwrap_or(0);
    let hours = hours_words(settings);
    let channels: Vec<String> = settings.config.names("channels").into_iter().map(str::to_owned).collect();
    let beat =
        |agent| Beat { agent, target: target.clone(), ack_max_chars, hours: hours.clone(), channels: channels.clone() };
    let beats = beating(town, settings, there).into_iter().map(beat);
    let is_on = settings.config.boolean("heartbeat.enabled");
    Beats { is_on, interval: span(settings, "heartbeat.interval"), beats: beats.collect() }
}

/// The hours as the config has them: the same for everybody who reads it, wherever his clock is.
fn hours_words(settings: &Settings) -> Option<String> {
    let hours = settings.config.value("heartbeat.active_hours")?;
    let zone = settings.config.text("heartbeat.tz").map(|zone| format!(" {zone}")).unwrap_or_default();
    Some(format!("{hours}{zone}"))
}

/// The channel that a target names, perhaps with a recipient, if there is none of that name.
pub fn missing_channel<'a>(settings: &Settings, target: &'a str) -> Option<&'a str> {
    let channel = target.split_once(':').map_or(target, |(channel, _)| channel);
    Some(channel).filter(|channel| !settings.config.names("channels").contains(channel))
}

/// The agents whose hearts beat.
pub fn beating(town: &Town, settings: &Settings, there: &[Job]) -> Vec<String> {
    let main = main_agent(settings);
    let had = there.iter().filter_map(|job| job.name().strip_prefix(beat_of("").as_str()).map(str::to_owned));
    let had = had.filter(|agent| *agent == main || agent_dir(town, agent).is_dir());
    let mut agents: Vec<String> = own_files(town).into_iter().chain(had).collect();
    agents.extend(Some(main).filter(|main| file_of(town, settings, main).is_file()));
    agents.sort_unstable();
    agents.dedup();
    agents
}

fn agent_dir(town: &Town, agent: &str) -> PathBuf {
    town.root().join("agents").join(agent)
}

/// Agents that have a file of their own.
fn own_files(town: &Town) -> Vec<String> {
    let Ok(entries) = fs::read_dir(town.root().join("agents")) else { return Vec::new() };
    let dirs = entries.flatten().filter(|entry| entry.path().join(FILE).is_file());
    dirs.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The file that an agent looks after: its own, else the town's.
pub fn file_of(town: &Town, settings: &Settings, agent: &str) -> PathBuf {
    let own = agent_dir(town, agent).join(FILE);
    if own.is_file() || agent != main_agent(settings) { own } else { town.root().join(FILE) }
}

/// What is to be done about a heartbeat that is due: the first steps of it, until the agent is asked.
pub fn beat(town: &Town, settings: &Settings, beat: &Beat, now: Timestamp) -> BeatWord {
    asleep(settings, now).unwrap_or_else(|| to_do(town, settings, &beat.agent))
}

/// The same for one that a person asks for, at whatever hour.
pub fn beat_now(town: &Town, settings: &Settings, beat: &Beat) -> BeatWord {
    to_do(town, settings, &beat.agent)
}

/// The hours in which hearts beat, with their time zone.
pub fn active_hours(settings: &Settings) -> Option<(heartbeat::Hours, TimeZone, String)> {
    let Some(Value::ActiveHours(hours)) = settings.config.value("heartbeat.active_hours") else { return None };
    let named = settings.config.text("heartbeat.tz");
    let zone = named.as_deref().and_then(|name| TimeZone::get(name).ok()).unwrap_or_else(|| settings.machine_zone());
    let name = zone.iana_name().unwrap_or("this machine's time").to_owned();
    Some((heartbeat::Hours { start: hours.start, end: hours.end }, zone, name))
}

fn asleep(settings: &Settings, now: Timestamp) -> Option<BeatWord> {
    let (hours, zone, name) = active_hours(settings)?;
    if hours.contains(now, &zone) || gt_core::defect!("active-hours-ignored") {
        return None;
    }
    let minutes = (i64::from(hours.end) - i64::from(hours.start)).rem_euclid(24 * 60);
    let open = hours.next_opening(now, &zone).map(|from| (from, from + SignedDuration::from_mins(minutes)));
    Some(BeatWord::Skip { why: format!("it was outside its active hours, {hours} ({name})"), open })
}

/// Why a heartbeat that has waited until now is not to begin any more.
pub fn too_late(settings: &Settings, now: Timestamp) -> Option<String> {
    let (hours, zone, name) = active_hours(settings)?;
    (!hours.contains(now, &zone))
        .then(|| format!("its active hours, {hours} ({name}), were over before it could start"))
}

/// What an agent is to do, or why there is nothing.
pub fn to_do(town: &Town, settings: &Settings, agent: &str) -> BeatWord {
    let path = file_of(town, settings, agent);
    let shown = path.strip_prefix(town.root()).unwrap_or(&path).display().to_string();
    let skip = |why: String| BeatWord::Skip { why, open: None };
    // Somebody waits for the answer, so nothing is read that may take its time.
    match fs::metadata(&path) {
        Ok(found) if !found.is_file() => return skip(format!("{shown} is not a file")),
        Ok(found) if found.len() > FILE_BYTES_MAX => return skip(format!("{shown} is too large")),
        _ => {}
    }
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => skip(format!("there is no {shown}")),
        Err(error) => skip(format!("{shown} cannot be read: {error}")),
        Ok(text) if heartbeat::is_empty(&text) && !gt_core::defect!("empty-list-asked") => {
            skip(format!("there is nothing to do in {shown}"))
        }
        Ok(text) => BeatWord::Ask(heartbeat::prompt(&text)),
    }
}
