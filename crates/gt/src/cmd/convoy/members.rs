//! `gt convoy create|add|remove|watch|unwatch`: what a convoy is made of, and who wants to know.

use clap::Args;
use gt_core::text;
use gt_store::{NewConvoy, Store, box_of};
use serde_json::json;

use super::n_beads;
use crate::cmd::bead::once;
use crate::context::{After, Context};
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, paint};

/// Make a convoy of beads; what of it is ready is put in line
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt convoy create \"Login\" gt-a1b2 gt-c3d4
  gt convoy create gt-a1b2                 called like its bead
  gt convoy create \"Release\" gt-a1b2 --owned --watch mayor")]
pub(super) struct CreateArgs {
    /// Its name, or the first bead
    name: String,
    /// The beads that it tracks
    #[arg(value_name = "BEAD")]
    beads: Vec<String>,
    /// It does not land by itself; `gt convoy land` does it
    #[arg(long)]
    owned: bool,
    /// Whose it is
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Who gets a letter when it lands; may be given several times
    #[arg(long, value_name = "NAME", visible_alias = "notify")]
    watch: Vec<String>,
    /// How the work of its beads is merged
    #[arg(long, value_parser = ["direct", "mr", "local"])]
    merge: Option<String>,
    /// The branch that its work starts from
    #[arg(long, value_name = "BRANCH")]
    base_branch: Option<String>,
    /// The molecule that it belongs to
    #[arg(long, value_name = "ID")]
    molecule: Option<String>,
}

/// Track more beads; a convoy that has landed opens again
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy add hq-cv-a1b2c gt-e5f6")]
pub(super) struct AddArgs {
    /// The convoy
    convoy: String,
    /// The beads
    #[arg(required = true, value_name = "BEAD")]
    beads: Vec<String>,
}

/// No longer track beads; they stay in line if they are
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy remove hq-cv-a1b2c gt-e5f6")]
pub(super) struct RemoveArgs {
    /// The convoy
    convoy: String,
    /// The beads
    #[arg(required = true, value_name = "BEAD")]
    beads: Vec<String>,
}

/// Get a letter when a convoy lands
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy watch hq-cv-a1b2c\n  gt convoy watch hq-cv-a1b2c mayor")]
pub(super) struct WatchArgs {
    /// The convoy
    pub(super) convoy: String,
    /// Who; else whoever asks
    #[arg(value_name = "NAME")]
    pub(super) who: Option<String>,
}

/// Get no letter any more
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt convoy unwatch hq-cv-a1b2c")]
pub(super) struct UnwatchArgs {
    /// The convoy
    pub(super) convoy: String,
    /// Who; else whoever asks
    #[arg(value_name = "NAME")]
    pub(super) who: Option<String>,
}

pub(super) fn create(context: &Context, args: CreateArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let (title, members) = name_and_beads(&mut store, args.name, &args.beads)?;
    text::check_title(&title)?;
    for who in args.watch.iter().chain(&args.owner) {
        text::check_word("name", who)?;
    }
    let new = NewConvoy {
        title,
        members: members.clone(),
        is_owned: args.owned,
        owner: args.owner,
        watchers: args.watch,
        merge: args.merge,
        base_branch: args.base_branch,
        molecule: args.molecule,
    };
    let id = store.create_convoy(&new, &context.stamp())?;
    let n_fed = n_in_line(&mut store, &members)?;
    if context.wants_json() {
        let status = store.bead(&id)?.bead.status;
        context.json(&json!({ "id": id, "title": new.title, "status": status.as_str(), "owned": new.is_owned,
                              "tracked": members, "scheduled": n_fed }))?;
    } else {
        let fed = if n_fed > 0 { format!("; {n_fed} in line") } else { String::new() };
        let title = text::one_line(&new.title);
        context.say(&format!("Convoy {} tracks {}{fed}: {title}", paint(BOLD, &id), n_beads(members.len())))?;
    }
    context.carry_on(&town, &mut store, After::Command)
}

/// A name that is a bead's is the first of the beads, and the convoy is called like it.
fn name_and_beads(store: &mut Store, name: String, beads: &[String]) -> Result<(String, Vec<String>), Failure> {
    let (title, members) = match store.bead(&name) {
        Ok(view) => (view.bead.title, once(&[vec![name], beads.to_vec()].concat())),
        Err(_) => (name, once(beads)),
    };
    if members.is_empty() {
        return Err(Failure::new(Kind::Usage, "a convoy needs beads to track")
            .hint("`gt convoy create NAME BEAD…`; `gt ready` shows what there is"));
    }
    Ok((title, members))
}

/// How many of these wait in line or are being worked on.
fn n_in_line(store: &mut Store, members: &[String]) -> Result<usize, Failure> {
    Ok(store.scheduled_among(members)?)
}

pub(super) fn add(context: &Context, args: &AddArgs) -> Result<(), Failure> {
    let town = context.town()?;
    let mut store = context.open(&town)?;
    let added = store.add_to_convoy(&args.convoy, &once(&args.beads), &context.stamp())?;
    if context.wants_json() {
        context.json(&json!({ "id": args.convoy, "added": added }))?;
    } else if added.is_empty() {
        context.say(&format!("{} tracks them already; nothing was changed.", args.convoy))?;
    } else {
        context.say(&format!("{} tracks {} more.", args.convoy, n_beads(added.len())))?;
    }
    context.carry_on(&town, &mut store, After::Command)
}

pub(super) fn remove(context: &Context, args: &RemoveArgs) -> Result<(), Failure> {
    let beads = once(&args.beads);
    let mut store = context.store()?;
    store.remove_from_convoy(&args.convoy, &beads, &context.stamp())?;
    let status = store.bead(&args.convoy)?.bead.status;
    if context.wants_json() {
        return context.json(&json!({ "id": args.convoy, "removed": beads, "status": status.as_str() }));
    }
    let landed = if status.is_active() { "" } else { ", and has landed: all others are closed" };
    context.say(&format!("{} no longer tracks {}{landed}.", args.convoy, n_beads(beads.len())))
}

pub(super) fn watch(context: &Context, convoy: &str, who: Option<&str>, watches: bool) -> Result<(), Failure> {
    let who = box_of(who.unwrap_or(&context.actor()));
    text::check_word("name", &who)?;
    let changed = context.store()?.watch_convoy(convoy, &who, watches, &context.stamp())?;
    if context.wants_json() {
        return context.json(&json!({ "id": convoy, "watcher": who, "watches": watches, "changed": changed }));
    }
    context.say(&match (watches, changed) {
        (true, true) => format!("{who} watches {convoy}, and gets a letter when it lands."),
        (true, false) => format!("{who} watches {convoy} already; nothing was changed."),
        (false, true) => format!("{who} no longer watches {convoy}."),
        (false, false) => format!("{who} does not watch {convoy}; nothing was changed."),
    })
}
