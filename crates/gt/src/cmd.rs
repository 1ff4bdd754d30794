//! One file per verb; this one only finds the right one.

pub(crate) mod activity;
pub(crate) mod agent_event;
pub(crate) mod bead;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convoy;
pub(crate) mod cron;
pub(crate) mod daemon;
pub(crate) mod deacon;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod done;
pub(crate) mod escalate;
pub(crate) mod explain;
pub(crate) mod formula;
pub(crate) mod handoff;
pub(crate) mod heartbeat;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod keeper;
pub(crate) mod lane;
pub(crate) mod mail;
pub(crate) mod man;
pub(crate) mod polecat;
pub(crate) mod prime;
pub(crate) mod queue;
pub(crate) mod refinery;
pub(crate) mod rig;
pub(crate) mod scheduler;
pub(crate) mod send;
pub(crate) mod session;
pub(crate) mod sling;
pub(crate) mod status;
pub(crate) mod trace;

use std::process::ExitCode;

use crate::cli::Command;
use crate::context::Context;
use crate::failure::Failure;

pub(crate) fn run(context: &mut Context, command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Init(args) => init::run(context, &args)?,
        Command::Rig(args) => rig::run(context, args)?,
        Command::Config(args) => config::run(context, args)?,
        Command::Bead(args) => bead::run(context, args)?,
        Command::Create(args) => bead::create::run(context, args)?,
        Command::Show(args) => bead::show::run(context, &args)?,
        Command::Close(args) => bead::close::run(context, &args)?,
        Command::Ready(args) => bead::ready::run(context, args)?,
        Command::Formula(args) => formula::run(context, args)?,
        Command::Explain(args) => explain::run(context, &args)?,
        Command::Activity(args) => activity::run(context, &args)?,
        Command::Sling(args) => return sling::run(context, *args),
        Command::Scheduler(args) => return scheduler::run(context, args),
        Command::Queue(args) => return queue::run(context, *args),
        Command::Convoy(args) => convoy::run(context, *args)?,
        Command::Refinery(args) => return refinery::run(context, args),
        Command::Deacon(args) => deacon::run(context, args)?,
        Command::Mail(args) => mail::run(context, args)?,
        Command::Send(args) => return send::run(context, args),
        Command::Chat(args) => chat::run(context, args)?,
        Command::Session(args) => session::run(context, *args)?,
        Command::Lane(args) => lane::run(context, args)?,
        Command::Cron(args) => return cron::run(context, *args),
        Command::Heartbeat(args) => return heartbeat::run(context, args),
        Command::Trace(args) => trace::run(context, &args)?,
        Command::Polecat(args) => polecat::run(context, args)?,
        Command::Daemon(args) => daemon::run(context, &args)?,
        Command::Keeper(args) => keeper::run(&args)?,
        Command::AgentEvent(args) => agent_event::run(&args),
        Command::Status(args) => status::run(context, &args)?,
        Command::Prime(args) => prime::run(context, &args)?,
        Command::Hook(args) => hook::run(context, &args)?,
        Command::Done(args) => done::run(context, args)?,
        Command::Handoff(args) => handoff::run(context, args)?,
        Command::Escalate(args) => escalate::run(context, args)?,
        Command::Doctor(args) => return doctor::run(context, &args),
        Command::Demo(args) => demo::run(context, &args)?,
        Command::Completions(args) => completions::run(&args)?,
        Command::Man(args) => man::run(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}
