//! Looking, before anything is claimed or made, for what a start needs: a program, a repository, git, tmux. // SPEC D5
//!
//! What can only be found by starting something is found by the one run that is tried for all others.

use std::path::Path;

use gt_core::plan::{Missing, TroubleOf};
use gt_core::rig::Rig;

use crate::agents::{self, Seeker};
use crate::config::join;
use crate::places;
use crate::settings::{Isolation, Settings};
use crate::surroundings::Surroundings;

/// What an agent needs to be started in a rig, and is not there.
pub(super) fn missing(
    around: &dyn Surroundings,
    settings: &Settings,
    agent: &str,
    rig: &Rig,
    seeker: Seeker,
) -> Option<Missing> {
    of_agent(around, settings, agent, seeker).and_then(|()| of_rig(around, settings, rig)).err()
}

fn of_agent(around: &dyn Surroundings, settings: &Settings, name: &str, seeker: Seeker) -> Result<(), Missing> {
    let fail = |reason: String| Missing { of: TroubleOf::Program(name.to_owned()), reason };
    let in_terminal =
        settings.in_terminal().map_err(|why| Missing { of: TroubleOf::Town, reason: no_terminal(&why) })?;
    let agent = agents::find(&settings.config, name).map_err(fail)?;
    let program = agents::program(&agent, in_terminal).map_err(fail)?;
    // Where agents run elsewhere, their programs are there too.
    if places::is_elsewhere(&settings.config) {
        return Ok(());
    }
    let found = around.find_program(program, &agents::search_path(&agent));
    found.map_err(|error| fail(agents::cannot_start(name, "command", &error, seeker)))
}

fn of_rig(around: &dyn Surroundings, settings: &Settings, rig: &Rig) -> Result<(), Missing> {
    if !Path::new(&rig.path).is_dir() {
        return Err(Missing { of: TroubleOf::Rig(rig.name.clone()), reason: no_repository(&rig.path) });
    }
    let path = std::env::var("PATH").unwrap_or_default();
    if settings.isolation(&rig.name) == Isolation::Worktree && around.find_program("git", &path).is_err() {
        let reason = format!(
            "git is not installed; without worktrees: `gt config set {} none`",
            join(&["rigs", &rig.name, "isolation"])
        );
        return Err(Missing { of: TroubleOf::Town, reason });
    }
    Ok(())
}

pub(super) fn no_terminal(why: &str) -> String {
    format!("no agent gets a terminal: {why}; without one: `gt config set runtime process`")
}

pub(super) fn no_repository(path: &str) -> String {
    format!("there is no repository at {path}")
}
