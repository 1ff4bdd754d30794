//! A command that the clock starts: no agent, but a run like any other. // SPEC K1

use std::path::Path;

use gt_core::job::Command;
use gt_runtime::{Launch, Place};
use gt_store::{FireOf, Turn};

use super::launch::{inherited_plain, own_program};
use crate::town::Town;

/// What to start for a turn that is a command.
pub fn command_launch(command: &Command, turn: &Turn, town: &Town, log: &Path, errors: &Path) -> Launch {
    Launch {
        run: turn.run.clone(),
        session: format!("turn-{}", turn.run),
        argv: argv(command, town),
        dir: town.root().to_owned(),
        env: environment(turn, town),
        stdin: None,
        log: log.to_owned(),
        errors: Some(errors.to_owned()),
        place: Place::Here,
    }
}

fn argv(command: &Command, town: &Town) -> Vec<String> {
    match command {
        Command::Shell(line) => ["sh", "-c", line].map(str::to_owned).to_vec(),
        Command::Gt(words) => {
            let own = own_program().display().to_string();
            let town = ["--town".to_owned(), town.root().display().to_string()];
            [own].into_iter().chain(town).chain(words.iter().cloned()).collect()
        }
    }
}

fn environment(turn: &Turn, town: &Town) -> Vec<(String, String)> {
    let mut env = inherited_plain();
    let job = turn.fire.as_ref().map(|fire| fire.job.as_str()).unwrap_or_default();
    env.extend([("GT_TOWN", town.root().display().to_string()), ("GT_ACTOR", format!("cron:{job}"))].map(owned));
    env.extend([("GT_RUN", turn.run.clone()), ("GT_SESSION", turn.session.clone())].map(owned));
    env.extend(turn.fire.iter().flat_map(of_fire));
    // What gt itself does for a fire it does once, however often that is tried.
    let own = turn.fire.as_ref().filter(|fire| matches!(fire.command, Some(Command::Gt(_))));
    env.extend(own.map(|fire| ("GT_FIRE".to_owned(), fire.id.to_string())));
    env.into_iter().collect()
}

fn owned((name, value): (&str, String)) -> (String, String) {
    (name.to_owned(), value)
}

/// What a run knows of the slot that it is of.
pub(super) fn of_fire(fire: &FireOf) -> [(String, String); 3] {
    [("GT_JOB", fire.job.clone()), ("GT_SLOT", fire.slot.to_string()), ("GT_ATTEMPT", fire.attempt.to_string())]
        .map(owned)
}
