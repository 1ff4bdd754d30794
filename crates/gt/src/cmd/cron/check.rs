//! What could not be slung today is not put off until tomorrow, to fail then.

use gt_core::context::SlingFields;
use gt_core::job::Payload;
use gt_core::refusal::Refusal;
use gt_core::text::one_line;
use gt_engine::Town;
use gt_engine::agents;
use gt_engine::settings::Settings;
use gt_engine::sling::{self, BadRequest, Request};
use gt_store::{Sling, SlingOutcome, Slung, Store, StoreError};

use crate::context::Context;
use crate::failure::{Failure, Kind};

/// Flags that are for single beads.
const TASK_FLAGS: [&str; 3] = ["--formula", "--args", "--agent"];

/// Refuses what `gt sling` would refuse, unless that passes by itself.
pub(super) fn check_sling(
    context: &Context,
    town: &Town,
    payload: &Payload,
    settings: &Settings,
) -> Result<(), Failure> {
    let Payload::Sling { words } = payload else { return Ok(()) };
    if let Some(agent) = value(words, "--agent") {
        agents::find(&settings.config, &agent).map_err(|why| Failure::new(Kind::Usage, one_line(&why)))?;
    }
    // Whoever only tries leaves nothing behind.
    let mut store = Store::open(&town.store_path())?.rehearse()?;
    let sling =
        sling::understand(&request(words), town, &mut store, settings, &context.stamp()).map_err(bad_request)?;
    sling.beads.iter().try_for_each(|bead| store.bead(bead).map(|_| ()))?;
    try_out(&mut store, &sling, context)
}

/// What is wrong with it, with a hint for the words of a job.
fn bad_request(bad: BadRequest) -> Failure {
    let hint = match &bad {
        BadRequest::OnlyARig { rig } => Some(format!("name what to sling before it: `--sling ID {rig}`")),
        BadRequest::NewWithoutRig => Some("say for which: `--rig RIG`".to_owned()),
        _ => None,
    };
    let failure = Failure::from(bad);
    hint.into_iter().fold(failure, Failure::hint)
}

fn value(words: &[String], flag: &str) -> Option<String> {
    words.iter().find_map(|word| Some(word.strip_prefix(flag)?.strip_prefix('=')?.to_owned()))
}

/// The same as `gt sling` makes of these words.
fn request(words: &[String]) -> Request {
    let plain = words.iter().filter(|word| !word.starts_with("--"));
    Request {
        words: plain.map(|word| word.trim_end_matches('/').to_owned()).collect(),
        new: value(words, "--new"),
        on: value(words, "--on"),
        fields: SlingFields { formula: value(words, "--formula"), ..SlingFields::default() },
        task_flags: TASK_FLAGS.into_iter().filter(|flag| value(words, flag).is_some()).collect(),
        ..Request::default()
    }
}

fn try_out(store: &mut Store, sling: &Sling, context: &Context) -> Result<(), Failure> {
    let answers = match store.sling(sling, None, &context.stamp()) {
        // Until then somebody may be done with it.
        Err(StoreError::Refused(Refusal::Hooked { .. })) => return Ok(()),
        answer => answer?.0,
    };
    let is_refused = |one: &&Slung| one.outcome == SlingOutcome::Refused;
    let is_in_vain = answers.iter().all(|one| is_refused(&one) || one.outcome == SlingOutcome::Skipped);
    match answers.iter().find(is_refused).filter(|_| is_in_vain) {
        Some(one) => {
            let why = one.reason.as_deref().unwrap_or("it is refused");
            Err(Failure::new(Kind::Refused, format!("none of these can be slung: {why}"))
                .hint(format!("see `gt explain {}`", one.bead)))
        }
        None => Ok(()),
    }
}
