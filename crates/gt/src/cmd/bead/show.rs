//! `gt bead show`, `gt show`.

use clap::Args;

use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Show beads with everything about them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt show gt-a1b2
  gt show gt-a1b2 --json")]
pub(crate) struct ShowArgs {
    /// Ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &ShowArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    let views = args.ids.iter().map(|id| store.bead(id)).collect::<Result<Vec<_>, _>>()?;
    match views.as_slice() {
        [view] if context.wants_json() => context.json(&render::row(view)),
        views if context.wants_json() => context.json(&views.iter().map(render::row).collect::<Vec<_>>()),
        views => {
            context.say(&views.iter().map(|view| render::card(view, context.now())).collect::<Vec<_>>().join("\n\n"))
        }
    }
}
