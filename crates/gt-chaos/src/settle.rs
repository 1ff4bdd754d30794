//! After the faults: waiting until the town has done all that it was asked to, and naming what is missing if it has not.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{Ending, run};
use crate::load::{JOBS, Load};
use crate::pause::End;
use crate::processes;
use crate::receiver::Receiver;
use crate::town::Town;

/// How long a very busy machine may take until less is missing than ever before. What failed is tried again at least once a minute.
const SETTLE_MAX: Duration = Duration::from_mins(6);
/// How long patrols may take to clear away what is over.
const PATROL_MAX: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(500);
/// So many names of what is missing are shown.
const NAMES_MAX: usize = 12;

/// Stops the jobs; what is under way goes on.
pub(crate) fn pause_jobs(town: &Town, interrupted: &End) -> Result<(), String> {
    let names: Vec<String> = (0..JOBS).map(|n| format!("job{n}")).collect();
    let words: Vec<&str> = ["cron", "pause"].into_iter().chain(names.iter().map(String::as_str)).collect();
    await_none(SETTLE_MAX, interrupted, || match town.ask(&words) {
        Ok(_) => Vec::new(),
        Err(error) => vec![error],
    })
}

/// Waits until all is done.
pub(crate) fn settle(town: &Town, load: &Load, receiver: &Receiver, interrupted: &End) -> Result<(), String> {
    await_none(SETTLE_MAX, interrupted, || {
        let mut missing = unfinished_work(town);
        missing.extend(unanswered(load, receiver));
        missing.extend(unannounced(load, receiver));
        missing.extend(running_jobs(town));
        missing
    })
}

/// Waits until nothing needs a person, the doctor finds nothing, and nothing is left of workers that died.
pub(crate) fn recover(town: &Town, interrupted: &End) -> Result<(), String> {
    await_none(PATROL_MAX, interrupted, || [needs(town), findings(town), worktrees(town), strays(town)].concat())
}

/// The longest wait, in times that nothing may happen: a town that goes on, but only ever so slowly, has lost something, too.
const TIMES_MAX: u32 = 3;

/// Waits for as long as less and less is missing.
fn await_none(at_most: Duration, interrupted: &End, missing: impl Fn() -> Vec<String>) -> Result<(), String> {
    let last = Instant::now() + at_most * TIMES_MAX;
    let (mut deadline, mut fewest) = (Instant::now() + at_most, usize::MAX);
    loop {
        let missing = missing();
        if missing.is_empty() || interrupted.has_come() {
            return Ok(());
        }
        if missing.len() < fewest {
            (deadline, fewest) = (last.min(Instant::now() + at_most), missing.len());
        }
        if Instant::now() > deadline {
            let n = missing.len();
            let shown: Vec<String> = missing.into_iter().take(NAMES_MAX).collect();
            let more = if n > NAMES_MAX { format!("\n    … and {} more", n - NAMES_MAX) } else { String::new() };
            return Err(format!("for {at_most:?} or longer:\n    {}{more}", shown.join("\n    ")));
        }
        interrupted.wait(LOOK);
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn unfinished_work(town: &Town) -> Vec<String> {
    let status = match town.ask(&["status"]) {
        Ok(status) => status,
        Err(error) => return vec![error],
    };
    let mut missing = Vec::new();
    if status["daemon"].is_null() {
        missing.push("no daemon runs".to_owned());
    }
    missing.extend(list(&status, "running").map(|run| format!("still running: {run}")));
    missing.extend(list(&status, "convoys").map(|convoy| format!("not landed: {convoy}")));
    let busy = list(&status, "lanes").filter(|lane| lane["active"] != 0 || lane["pending"] != 0);
    missing.extend(busy.map(|lane| format!("a lane is not empty: {lane}")));
    if status["merging"]["waiting"] != 0 {
        missing.push(format!("still merging: {}", status["merging"]));
    }
    missing.extend(open_beads(town));
    missing
}

fn open_beads(town: &Town) -> Vec<String> {
    let beads = match town.ask(&["bead", "list", "--limit", "0"]) {
        Ok(beads) => beads,
        Err(error) => return vec![error],
    };
    let is_open = |bead: &&Value| bead["status"] != "closed" && bead["issue_type"] != "convoy";
    let open = beads.as_array().into_iter().flatten().filter(is_open);
    let ids = open.filter_map(|bead| bead["id"].as_str());
    ids.enumerate().map(|(n, id)| if n < NAMES_MAX { explain(town, id) } else { id.to_owned() }).collect()
}

fn explain(town: &Town, bead: &str) -> String {
    let explained = town.ask(&["explain", bead]).unwrap_or_default();
    format!("{bead} is not closed: {} {}", explained["state"], explained["reasons"])
}

fn unanswered(load: &Load, receiver: &Receiver) -> Vec<String> {
    let n_sent = load.asked().messages.len();
    let n_answered = receiver.n_answers("dm:");
    let is_short = n_answered < n_sent;
    is_short.then(|| format!("{} of {n_sent} answers have not arrived", n_sent - n_answered)).into_iter().collect()
}

fn unannounced(load: &Load, receiver: &Receiver) -> Vec<String> {
    let (asked, landed) = (load.asked(), receiver.landed());
    let missing = asked.convoys.keys().filter(|title| !landed.contains(*title));
    missing.map(|title| format!("the landing of {title} is not announced")).collect()
}

fn running_jobs(town: &Town) -> Vec<String> {
    match town.ask(&["cron", "runs", "--status", "running", "--limit", "0"]) {
        Ok(runs) => runs.as_array().into_iter().flatten().map(|run| format!("a job is not over: {run}")).collect(),
        Err(error) => vec![error],
    }
}

/// What needs a person though the nemesis has left nothing that does, in the words that people read.
fn needs(town: &Town) -> Vec<String> {
    let ending = run(&mut town.gt(&["status"]), None);
    let Ending::Exit { code: 0, stdout, .. } = ending else { return vec![format!("gt status: {ending}")] };
    let listed = needs_in(&stdout).into_iter();
    listed.map(|line| format!("`gt status` says that this needs a person: {line}")).collect()
}

/// The lines of the part of this title, which ends with an empty line.
fn needs_in(status: &str) -> Vec<&str> {
    let part = status.lines().skip_while(|line| !line.starts_with("Needs a person")).skip(1);
    part.take_while(|line| !line.is_empty()).map(str::trim).collect()
}

fn findings(town: &Town) -> Vec<String> {
    let findings = match town.ask(&["doctor"]) {
        Ok(findings) => findings,
        Err(error) => return vec![error],
    };
    let bad = findings.as_array().into_iter().flatten().filter(|finding| finding["level"] != "ok");
    bad.map(|finding| format!("`gt doctor` finds {}: {}", finding["check"], finding["message"])).collect()
}

/// Worktrees of dead workers whose changes are salvaged: the patrol removes them a second after their beads are closed.
fn worktrees(town: &Town) -> Vec<String> {
    match town.ask(&["status"]) {
        Ok(status) => list(&status, "salvaged").map(|worker| format!("a worktree is left: {worker}")).collect(),
        Err(error) => vec![error],
    }
}

/// Processes of the town that are neither daemon, keeper nor server of terminals.
fn strays(town: &Town) -> Vec<String> {
    let keeper = town.keeper();
    let is_servant = |entry: &processes::Entry| {
        let words = entry.words();
        entry.is_tmux_of(&town.token)
            || words.contains(&keeper)
            || words.windows(2).any(|pair| pair == ["daemon", "run"])
    };
    let of_town = processes::of_town(&town.token).into_iter();
    let strays = of_town.filter(|entry| entry.parent != std::process::id() as i32 && !is_servant(entry));
    strays.map(|entry| format!("a process is left: {} {:?}", entry.pid, entry.words())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_person_is_found_on_the_screen() {
        let status = "town\n\nNeeds a person (2)\n  ! one\n  ! two\n\nNothing runs.\n";
        assert_eq!(needs_in(status), ["! one", "! two"]);
        assert_eq!(needs_in("town\n\nNothing runs.\n"), [""; 0]);
    }
}
