//! The command line: every command, its words and its examples.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cmd::{
    activity, agent_event, bead, chat, completions, config, convoy, cron, daemon, deacon, demo, doctor, done, escalate,
    explain, formula, handoff, heartbeat, hook, init, keeper, lane, mail, man, polecat, prime, queue, refinery, rig,
    scheduler, send, session, sling, status, trace,
};

/// Where help lists the options that every command has.
const EVERYWHERE: &str = "Options of every command";

/// Keeps a town of AI coding agents busy, and says why something is not running
#[derive(Debug, Parser)]
#[command(
    name = "gt",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Examples:
  gt demo                           see it work, in a temporary town
  gt init                           make a town here
  gt create \"Fix the login\" -p 1    write down work
  gt ready                          what could be worked on now
  gt sling gt-a1b2                  give it to an agent
  gt status                         what runs, what waits and why
  gt explain gt-a1b2                why a bead is, or is not, being worked on",
    after_long_help = "Examples:
  gt demo                           see it work, in a temporary town
  gt init                           make a town here
  gt create \"Fix the login\" -p 1    write down work
  gt ready                          what could be worked on now
  gt sling gt-a1b2                  give it to an agent
  gt status                         what runs, what waits and why
  gt explain gt-a1b2                why a bead is, or is not, being worked on

Exit codes:
  0  done, or nothing to do
  1  refused or failed
  2  wrong usage
  3  no such thing
  4  store or daemon unreachable
  5  not now (paused, cooling down, no capacity)

The town is the nearest directory above with a town.toml, or what --town or GT_TOWN names."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Globals {
    /// The town's directory, instead of the nearest one above; else GT_TOWN
    #[arg(long, global = true, value_name = "DIR", help_heading = EVERYWHERE)]
    pub(crate) town: Option<PathBuf>,
    /// Answer in JSON
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub(crate) json: bool,
    /// Show what would be done, and change nothing
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub(crate) dry_run: bool,
    /// Who is asking, for the event log; else GT_ACTOR, BD_ACTOR or USER
    #[arg(long, global = true, value_name = "NAME", help_heading = EVERYWHERE)]
    pub(crate) actor: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::InitArgs),
    Rig(rig::RigArgs),
    Config(config::ConfigArgs),
    Bead(bead::BeadArgs),
    Create(bead::create::CreateArgs),
    Show(bead::show::ShowArgs),
    Close(bead::close::CloseArgs),
    Ready(bead::ready::ReadyArgs),
    Sling(Box<sling::SlingArgs>),
    Formula(formula::FormulaArgs),
    Status(status::StatusArgs),
    Explain(explain::ExplainArgs),
    Scheduler(scheduler::SchedulerArgs),
    Queue(Box<queue::QueueArgs>),
    Convoy(Box<convoy::ConvoyArgs>),
    Polecat(polecat::PolecatArgs),
    Refinery(refinery::RefineryArgs),
    Deacon(deacon::DeaconArgs),
    Mail(mail::MailArgs),
    Send(send::SendArgs),
    Chat(chat::ChatArgs),
    Session(Box<session::SessionArgs>),
    Lane(lane::LaneArgs),
    Cron(Box<cron::CronArgs>),
    Heartbeat(heartbeat::HeartbeatArgs),
    Trace(trace::TraceArgs),
    Daemon(daemon::DaemonArgs),
    Prime(prime::PrimeArgs),
    Hook(hook::HookArgs),
    Done(done::DoneArgs),
    Handoff(handoff::HandoffArgs),
    Escalate(escalate::EscalateArgs),
    Activity(activity::ActivityArgs),
    Doctor(doctor::DoctorArgs),
    Demo(demo::DemoArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    #[command(hide = true)]
    Keeper(keeper::KeeperArgs),
    #[command(hide = true)]
    AgentEvent(agent_event::AgentEventArgs),
}

/// The commands that agents and the daemon's users call most. Building the words of all others takes longer than what
/// these do, so they are tried first; whatever does not fit here is read by `Cli`, and told by it.
#[derive(Debug, Parser)]
#[command(name = "gt", disable_help_flag = true, disable_help_subcommand = true)]
struct Quick {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: QuickCommand,
}

#[derive(Debug, Subcommand)]
enum QuickCommand {
    Close(bead::close::CloseArgs),
    Done(done::DoneArgs),
    Hook(hook::HookArgs),
    Prime(prime::PrimeArgs),
    Sling(Box<sling::SlingArgs>),
}

/// Commands that change nothing. With `--dry-run` they do what they always do: what they print is so, and not what would be.
const READ_ONLY: &[&str] = &[
    "activity",
    "bead activity",
    "bead blocked",
    "bead comment list",
    "bead dep tree",
    "bead explain",
    "bead label list",
    "bead list",
    "bead ready",
    "bead show",
    "completions",
    "config get",
    "config list",
    "convoy list",
    "convoy status",
    "convoy stranded",
    "cron list",
    "cron next",
    "cron runs",
    "cron show",
    "daemon logs",
    "daemon status",
    "daemon unit",
    "doctor",
    "explain",
    "formula list",
    "formula show",
    "heartbeat logs",
    "heartbeat status",
    "lane list",
    "mail inbox",
    "polecat list",
    "polecat logs",
    "polecat peek",
    "polecat show",
    "queue list",
    "queue status",
    "ready",
    "refinery list",
    "refinery show",
    "refinery status",
    "rig list",
    "rig show",
    "scheduler list",
    "scheduler status",
    "session list",
    "session show",
    "show",
    "status",
    "trace",
];

/// The options by which some of them change something after all.
const CHANGING: [&str; 2] = ["claim", "fix"];

/// Whether a command line changes nothing. `group` is what its first word is a part of.
pub(crate) fn is_read_only(command: clap::Command, group: Option<&str>, arguments: &[OsString]) -> bool {
    let Ok(matches) = command.try_get_matches_from(arguments) else { return false };
    let (mut words, mut at) = (Vec::from_iter(group), &matches);
    while let Some((word, below)) = at.subcommand() {
        words.push(word);
        at = below;
    }
    let changes = |option: &&str| at.try_get_one::<bool>(option).ok().flatten() == Some(&true);
    READ_ONLY.contains(&words.join(" ").as_str()) && !CHANGING.iter().any(changes)
}

impl Cli {
    /// Reads a command line.
    pub(crate) fn read(arguments: &[OsString]) -> Result<Cli, clap::Error> {
        if let Ok(quick) = Quick::try_parse_from(arguments) {
            return Ok(Cli { globals: quick.globals, command: quick.command.into() });
        }
        Cli::try_parse_from(arguments)
    }
}

impl From<QuickCommand> for Command {
    fn from(quick: QuickCommand) -> Command {
        match quick {
            QuickCommand::Close(args) => Command::Close(args),
            QuickCommand::Done(args) => Command::Done(args),
            QuickCommand::Hook(args) => Command::Hook(args),
            QuickCommand::Prime(args) => Command::Prime(args),
            QuickCommand::Sling(args) => Command::Sling(args),
        }
    }
}
