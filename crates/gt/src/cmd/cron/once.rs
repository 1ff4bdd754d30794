//! `gt cron run`: a job now, whatever its schedule says.

use std::process::ExitCode;

use clap::Args;
use gt_core::job::{BadJob, FireStatus};
use gt_core::refusal::Refusal;
use gt_core::text::{many_lines, one_line};
use gt_engine::Town;
use gt_engine::jobs;
use gt_engine::settings::Settings;
use gt_engine::talk::Attendant;
use gt_store::{ABOUT_TO_START, Fire, FireFilter, FiresOf, Store, StoreError, beat_of};
use jiff::Timestamp;

use super::runs::{fire_json, lines};
use super::{refuse_heartbeats, shown};
use crate::context::{Context, daemon_runs};
use crate::failure::{Failure, Kind};

/// Run a job now; its schedule stays as it is
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt cron run report
  gt cron run report --wait")]
pub(super) struct RunArgs {
    /// Its name or id
    #[arg(value_name = "JOB")]
    job: String,
    /// Wait for its end, and print what came of it
    #[arg(long)]
    wait: bool,
}

pub(super) fn run(context: &Context, args: &RunArgs) -> Result<ExitCode, Failure> {
    let town = context.town()?;
    let settings = context.settings(&town)?;
    let mut store = context.store()?;
    refuse_heartbeats(&mut store, std::slice::from_ref(&args.job))?;
    carry_out(context, &town, &settings, &mut store, &args.job, args.wait)
}

/// Fires a job, and says what came of it, or where that can be seen.
pub(crate) fn carry_out(
    context: &Context,
    town: &Town,
    settings: &Settings,
    store: &mut Store,
    job: &str,
    is_waiting: bool,
) -> Result<ExitCode, Failure> {
    match start(context, town, settings, store, job, is_waiting)? {
        (fire, Some(attendant)) => finish(context, store, fire, attendant),
        (fire, None) if fire.status == FireStatus::Running => {
            if context.wants_json() {
                context.json(&fire_json(&fire))?;
            } else {
                let (name, runs) = (shown(&fire.job), runs_command(&fire));
                context.say(&format!("{name} is on its way: `{runs}` shows what comes of it."))?;
            }
            context.note_missing_daemon(town);
            Ok(ExitCode::SUCCESS)
        }
        (fire, None) => tell_end(context, store, &fire),
    }
}

/// The command that shows what comes of it.
fn runs_command(fire: &Fire) -> String {
    match fire.job.strip_prefix(beat_of("").as_str()) {
        Some(agent) => format!("gt heartbeat logs {}", shown(agent)),
        None => format!("gt cron runs {}", shown(&fire.job)),
    }
}

/// Fires it, and stays where its end is waited for.
fn start(
    context: &Context,
    town: &Town,
    settings: &Settings,
    store: &mut Store,
    job: &str,
    is_waiting: bool,
) -> Result<(Fire, Option<Attendant>), Failure> {
    let stays = is_waiting && !context.is_dry_run();
    // Heard of from before it begins, so that nothing falls between the two.
    let attendant = stays.then(|| Attendant::new(town, &context.actor())).transpose()?;
    let (policy, sessions) = (settings.policy(town.root()), settings.session_rules());
    let mut rules = jobs::rules(settings, &policy, &sessions, context.now());
    // Who waits without a daemon waits for one attempt.
    rules.may_retry = !stays || daemon_runs(town);
    let fired = store.fire_now(job, &rules, &mut |beat| jobs::beat_now(town, settings, beat), &context.stamp());
    match fired {
        Err(StoreError::Refused(Refusal::Job(BadJob::Runs { name }))) => {
            Err(under_way(town, settings, store, &name, context.now())?)
        }
        fired => Ok((fired?, attendant)),
    }
}

/// What keeps it from starting; `None`: nothing does, or it has.
fn why_waiting(
    town: &Town,
    settings: &Settings,
    store: &mut Store,
    fire: &Fire,
    now: Timestamp,
) -> Result<Option<String>, Failure> {
    let Some(turn) = fire.turn else { return Ok(None) };
    let Some(why) = store.why_waiting(turn, &settings.policy(town.root()), now)? else { return Ok(None) };
    let why = Some(why).filter(|why| why != ABOUT_TO_START);
    let daemon = (!daemon_runs(town)).then(|| "no daemon runs: `gt daemon start`".to_owned());
    let all: Vec<String> = [why, daemon].into_iter().flatten().collect();
    Ok(Some(all.join("; and ")).filter(|all| !all.is_empty()))
}

/// Says what a job is at, and what helps.
fn under_way(
    town: &Town,
    settings: &Settings,
    store: &mut Store,
    name: &str,
    now: Timestamp,
) -> Result<Failure, Failure> {
    let job = FiresOf::One(store.job(name)?.id());
    let fires = store.fires(&FireFilter { of: job, status: Some(FireStatus::Running), limit: None })?;
    let runs = Refusal::from(BadJob::Runs { name: name.to_owned() });
    // The oldest of those that do not wait to be tried again.
    let Some(fire) = fires.iter().rev().find(|fire| fire.retry_at.is_none()).or(fires.first()) else {
        return Ok((&runs).into()); // it has just ended
    };
    let see = runs_command(fire);
    if fire.retry_at.is_some() {
        let name = shown(name);
        let waits = format!("the job `{name}` has failed, and waits for its next try");
        let is_beat = fire.job.starts_with(&beat_of(""));
        let give_up = if is_beat { String::new() } else { format!("; `gt cron pause {name}` gives it up") };
        return Ok(Failure::new(Kind::NotNow, waits).hint(format!("`{see}` shows when that is{give_up}")));
    }
    let turn = fire.turn.map(|turn| store.turn(turn)).transpose()?.flatten();
    let stop = turn.map(|turn| format!(", or stop it with `gt session stop {}`", word(&turn.session)));
    let hint = format!("see it with `{see}`{}", stop.unwrap_or_default());
    Ok(match why_waiting(town, settings, store, fire, now)? {
        Some(why) => Failure::new(Kind::NotNow, format!("the job `{}` waits to be started: {why}", shown(name))),
        None => Failure::from(&runs),
    }
    .hint(hint))
}

/// A name as it is typed.
fn word(name: &str) -> String {
    let name = one_line(name);
    if name.contains(char::is_whitespace) { format!("'{name}'") } else { name }
}

/// Waits for the end of a fire, and says what came of it.
fn finish(context: &Context, store: &mut Store, fire: Fire, mut attendant: Attendant) -> Result<ExitCode, Failure> {
    let mut fire = fire;
    while fire.status == FireStatus::Running {
        if let Some(turn) = fire.turn.filter(|_| fire.retry_at.is_none()) {
            let name = shown(&fire.job);
            attendant.await_end(store, turn, |why| context.note(&format!("{name} waits: {}", one_line(why))))?;
        } else {
            attendant.see_to_turns(store)?;
            attendant.wait();
        }
        let Some(now) = store.fire(fire.id)? else {
            return Err(Failure::new(Kind::NotFound, "the run is gone: somebody has cleared it away"));
        };
        fire = now;
    }
    tell_end(context, store, &fire)
}

fn tell_end(context: &Context, store: &mut Store, fire: &Fire) -> Result<ExitCode, Failure> {
    if context.wants_json() {
        let mut body = fire_json(fire);
        body["reply"] = reply(store, fire)?.into();
        context.json(&body)?;
    } else if fire.status == FireStatus::Ok {
        context.say(&many_lines(&reply(store, fire)?.unwrap_or_default()))?;
    } else {
        context.note(&lines(std::slice::from_ref(fire), context.now()));
    }
    Ok(match fire.status {
        FireStatus::Ok => ExitCode::SUCCESS,
        // That a heart has nothing to look after is no failure.
        FireStatus::Skipped if fire.job.starts_with(&beat_of("")) => ExitCode::SUCCESS,
        FireStatus::Skipped => Kind::NotNow.exit_code(),
        _ => Kind::Refused.exit_code(),
    })
}

fn reply(store: &mut Store, fire: &Fire) -> Result<Option<String>, Failure> {
    let turn = fire.turn.map(|turn| store.turn(turn)).transpose()?.flatten();
    Ok(turn.and_then(|turn| turn.reply))
}
