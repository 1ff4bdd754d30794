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
