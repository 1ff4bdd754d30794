//! `gt bead comment`.

use clap::{Args, Subcommand};
use gt_core::text::BadText;
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Add and list comments
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead comment add gt-a1b2 \"seen on main too\"\n  gt bead comment list gt-a1b2")]
pub(crate) struct CommentArgs {
    #[command(subcommand)]
    command: CommentCommand,
}

#[derive(Debug, Subcommand)]
enum CommentCommand {
    Add(AddArgs),
    List(ListArgs),
}

/// Add a comment to a bead
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead comment add gt-a1b2 \"seen on main too\"")]
struct AddArgs {
    /// The bead's id
    id: String,
    /// What to say
    text: String,
}

/// List a bead's comments
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt bead comment list gt-a1b2 --json")]
struct ListArgs {
    /// The bead's id
    id: String,
}

pub(crate) fn run(context: &Context, args: CommentArgs) -> Result<(), Failure> {
    let mut store = context.store()?;
    match args.command {
        CommentCommand::Add(args) => {
            if args.text.trim().is_empty() {
                return Err(BadText::Empty { what: "comment" }.into());
            }
            let comment = store.comment(&args.id, &args.text, &context.stamp())?;
            if context.wants_json() {
                return context.json(&json!({ "id": comment, "issue_id": args.id }));
            }
            context.say(&format!("Commented on {}.", args.id))
        }
        CommentCommand::List(args) => {
            let bead = store.bead(&args.id)?.bead;
            if context.wants_json() {
                return context.json(&gt_core::jsonl::comment_rows(&bead));
            }
            if bead.comments.is_empty() {
                return context.say(&format!("{} has no comments.", args.id));
            }
            context.say(render::comments(&bead).trim_matches('\n'))
        }
    }
}
