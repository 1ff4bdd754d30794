//! `gt daemon`: the process that runs a town. // SPEC D8

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use gt_engine::daemon::Other;
use gt_engine::lock::Lock;
use gt_engine::{Town, TownError, daemon, wait};
use gt_server::Report;
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Kind};
use crate::render::{BOLD, paint};

/// How long `start` and `stop` wait for the daemon.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often `start` looks whether it is there.
const STEP: Duration = Duration::from_millis(2);
/// How much of the log is shown.
const LOG_BYTES: u64 = 64 * 1024;

/// Run the town: start work as it becomes ready
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt daemon start       in the background
  gt daemon status      exit code 0 when one runs, else 4
  gt daemon run         in the foreground, for systemd and the curious")]
pub(crate) struct DaemonArgs {
    #[command(subcommand)]
    command: DaemonCommand,
}

#[derive(Debug, Subcommand)]
enum DaemonCommand {
    Run(RunArgs),
    Start(StartArgs),
    Stop(StopArgs),
    Restart(RestartArgs),
    Status(StatusArgs),
    Logs(LogsArgs),
    Unit(UnitArgs),
}

/// Run in the foreground
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt daemon run\n  gt daemon run --wait      take over when the one that runs ends")]
struct RunArgs {
    /// If a daemon runs already, wait for its end
    #[arg(long)]
    wait: bool,
}

/// Start in the background
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt daemon start")]
struct StartArgs {}

/// Stop; agents go on, and the next daemon finds them again
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt daemon stop")]
struct StopArgs {}

/// Stop and start
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt daemon restart")]
struct RestartArgs {}

/// Say whether one runs: exit code 0, else 4
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt daemon status --json")]
struct StatusArgs {}

/// Show what it said
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gt daemon logs")]
struct LogsArgs {}

/// Print a systemd unit for this town
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  gt daemon unit > ~/.config/systemd/user/gasworks.service
  systemctl --user enable --now gasworks")]
struct UnitArgs {}

pub(crate) fn run(context: &Context, args: &DaemonArgs) -> Result<(), Failure> {
    let town = context.town()?;
    match args.command {
        DaemonCommand::Run(_) if context.is_dry_run() => Err(Failure::new(Kind::Usage, "a daemon has no dry run")
            .hint("`gt scheduler run --dry-run` shows what would start now")),
        DaemonCommand::Run(RunArgs { wait: true }) => foreground(&town, Other::WaitFor),
        DaemonCommand::Run(RunArgs { wait: false }) => foreground(&town, Other::Refuse),
        DaemonCommand::Start(_) => start(context, &town),
        DaemonCommand::Stop(_) => stop(context, &town),
        DaemonCommand::Restart(_) => restart(context, &town),
        DaemonCommand::Status(_) => status(context, &town),
        DaemonCommand::Logs(_) => logs(context, &town),
        DaemonCommand::Unit(_) => unit(context, &town),
    }
}

fn foreground(town: &Town, other: Other) -> Result<(), Failure> {
    town.open_store()?; // before anything else: what cannot be opened is told at once
    let log = |line: &str| {
        let now = gt_core::time::format(jiff::Timestamp::now());
        // A log that nobody reads any more is no reason to stop.
        writeln!(std::io::stdout(), "{now} {line}").unwrap_or_default();
    };
    let serve = || {
        let server = gt_server::start(town);
        let words = server.report().words();
        (server, Some(words))
    };
    Ok(daemon::run(town, "daemon", other, Box::new(log), serve)?)
}

/// The process that runs the town; a lock without a name in it belongs to somebody who has just taken it.
fn holder(town: &Town) -> Result<Option<u32>, Failure> {
    Ok(Lock::Daemon.holder(town)?.map(|holder| holder.pid.unwrap_or(0)))
}

fn log_path(town: &Town) -> PathBuf {
    town.state_dir().join("daemon.log")
}

fn start(context: &Context, town: &Town) -> Result<(), Failure> {
    if let Some(pid) = holder(town)? {
        return answer(context, Some(pid), "running", &format!("A daemon runs already (process {pid})."));
    }
    if context.is_dry_run() {
        return answer(context, None, "would-start", "Would start a daemon.");
    }
    let pid = launch(town)?;
    answer(context, Some(pid), "started", &format!("The daemon runs (process {pid})."))
}

/// Starts a daemon in the background, and waits until it runs.
fn launch(town: &Town) -> Result<u32, Failure> {
    town.open_store()?;
    let path = log_path(town);
    let io = |source| TownError::Io { doing: "write", path: path.clone(), source };
    let log = OpenOptions::new().create(true).append(true).open(&path).map_err(io)?;
    let begin = log.metadata().map_err(io)?.len();
    let exe = std::env::current_exe().map_err(io)?;
    let mut command = Command::new(exe);
    command.arg("--town").arg(town.root()).args(["daemon", "run"]).current_dir(town.root());
    // A daemon that an agent starts is not part of the agent's run.
    command.env_remove("GT_RUN").env_remove("GT_KEEPER");
    command.stdin(Stdio::null()).stderr(log.try_clone().map_err(io)?).stdout(log).process_group(0);
    let mut child = command.spawn().map_err(io)?;
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        // It holds the lock before it listens; it says when it does.
        let pid = child.id();
        let has_begun = || tail(&path, begin).is_ok_and(|said| said.contains(&format!("(process {pid})\n")));
        if holder(town)? == Some(pid) && has_begun() {
            return Ok(pid);
        }
        if let Ok(Some(_)) = child.try_wait() {
            break;
        }
        wait::pause(STEP);
    }
    let said = tail(&path, begin).unwrap_or_default();
    Err(Failure::new(Kind::Unreachable, format!("the daemon did not start: {}", said.trim()))
        .hint("see more with `gt daemon run`"))
}

fn answer(context: &Context, pid: Option<u32>, outcome: &str, words: &str) -> Result<(), Failure> {
    if context.wants_json() {
        return context.json(&json!({ "outcome": outcome, "pid": pid }));
    }
    context.say(words)
}

fn stop(context: &Context, town: &Town) -> Result<(), Failure> {
    let Some(pid) = holder(town)? else {
        return answer(context, Some(0), "not-running", "No daemon runs; nothing was changed.");
    };
    if context.is_dry_run() {
        return answer(context, Some(pid), "would-stop", &format!("Would stop the daemon (process {pid})."));
    }
    end(pid)?;
    answer(context, Some(pid), "stopped", "The daemon has stopped; agents go on.")
}

/// Has a daemon end, and waits until it has.
fn end(pid: u32) -> Result<(), Failure> {
    gt_engine::lock::terminate(pid).map_err(|error| {
        Failure::new(Kind::Unreachable, format!("the daemon (process {pid}) cannot be stopped: {error}"))
    })?;
    if wait::for_end(pid, PATIENCE) {
        return Ok(());
    }
    Err(Failure::new(Kind::Unreachable, format!("the daemon (process {pid}) does not stop"))
        .hint(format!("end it with `kill -9 {pid}`; nothing is lost by that")))
}

fn restart(context: &Context, town: &Town) -> Result<(), Failure> {
    let before = holder(town)?;
    match before {
        Some(pid) if context.is_dry_run() => {
            let words = format!("Would stop the daemon (process {pid}) and start another.");
            return answer(context, Some(pid), "would-restart", &words);
        }
        None if context.is_dry_run() => {
            return answer(context, None, "would-start", "No daemon runs. Would start one.");
        }
        Some(pid) => end(pid)?,
        None => {}
    }
    let pid = launch(town)?;
    match before {
        Some(_) => {
            answer(context, Some(pid), "restarted", &format!("Restarted the daemon (process {pid}); agents went on."))
        }
        None => answer(context, Some(pid), "started", &format!("No daemon was running; started one (process {pid}).")),
    }
}

fn status(context: &Context, town: &Town) -> Result<(), Failure> {
    match holder(town)? {
        Some(pid) => running(context, town, pid),
        None => Err(Failure::new(Kind::Unreachable, "no daemon runs").hint("start one with `gt daemon start`")),
    }
}

/// With what became of its server; of one that another daemon had nothing is known.
fn running(context: &Context, town: &Town, pid: u32) -> Result<(), Failure> {
    let server = Report::read(town).filter(|report| report.pid == pid);
    if context.wants_json() {
        let server = server.map(|report| json!({ "address": report.address, "error": report.error }));
        return context.json(&json!({ "outcome": "running", "pid": pid, "server": server }));
    }
    context.say(&format!("A daemon runs (process {pid})."))?;
    if let Some(error) = server.and_then(|report| report.error) {
        context.note(&format!("{} it answers no HTTP requests: {error}", paint(BOLD, "note:")));
        context.note(&format!(
            "{} `gt config set server.bind 127.0.0.1:7778`, then `gt daemon restart`",
            paint(BOLD, "hint:")
        ));
    }
    Ok(())
}

fn logs(context: &Context, town: &Town) -> Result<(), Failure> {
    let path = log_path(town);
    if !path.exists() {
        return context.say("There is no log: no daemon was started with `gt daemon start`.");
    }
    let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let io = |source| TownError::Io { doing: "read", path: path.clone(), source };
    let text = tail(&path, length.saturating_sub(LOG_BYTES)).map_err(io)?;
    context.say(text.trim_end())
}

/// What a file holds from a place on, without a line that was cut.
fn tail(path: &PathBuf, from: u64) -> std::io::Result<String> {
    let mut file = BufReader::new(File::open(path)?);
    file.seek(SeekFrom::Start(from.saturating_sub(1)))?;
    if from > 0 {
        file.skip_until(b'\n')?;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A word of a command line, as systemd reads it.
fn unit_word(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c));
    if is_plain { escaped } else { format!("\"{escaped}\"") }
}

fn unit(context: &Context, town: &Town) -> Result<(), Failure> {
    let exe = std::env::current_exe().map_or_else(|_| "gt".to_owned(), |exe| exe.display().to_string());
    let root = town.root().display().to_string().replace('%', "%%");
    let (exe, quoted_root) = (unit_word(&exe), unit_word(&town.root().display().to_string()));
    context.say(&format!(
        "[Unit]
Description=Gasworks daemon of {root}

[Service]
ExecStart={exe} --town {quoted_root} daemon run --wait
WorkingDirectory={root}
Restart=always
# Agents live on when the daemon is stopped or restarted.
KillMode=process

[Install]
WantedBy=default.target"
    ))?;
    context.note(&format!("{} it keeps running after you log out with `loginctl enable-linger`", paint(BOLD, "hint:")));
    Ok(())
}
