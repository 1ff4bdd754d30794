//! Preparing a launch, starting it as a process, and saying exactly why not.
//!
//! Everything is arranged so that the standard library can take its fast way (`posix_spawn`, no fork): programs are
//! looked up here, and nothing runs between fork and exec.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::endings::is_file_name;
use super::log_lock;
use crate::process::table;
use crate::{Handle, Launch, StartError};
use crate::{memory, program};

/// Threads that help to start processes, at the most.
const HELPERS_MAX: usize = 3;

pub(super) struct Spawner<'a> {
    shared_env: &'a [(String, String)],
    keeper: &'a str,
    /// Programs found on a `PATH` in this batch.
    programs: BTreeMap<(String, String), PathBuf>,
}

/// A launch that nothing is known to stand against.
pub(super) struct Prepared<'a> {
    pub program: PathBuf,
    shared_env: &'a [(String, String)],
    env: &'a [(String, String)],
    run: &'a str,
    keeper: &'a str,
}

impl Prepared<'_> {
    /// The whole environment; where a name stands twice, the later one holds.
    pub(super) fn env(&self) -> impl Iterator<Item = (&str, &str)> {
        let given = self.shared_env.iter().chain(self.env).map(|(name, value)| (name.as_str(), value.as_str()));
        given.chain([("GT_RUN", self.run), ("GT_KEEPER", self.keeper)])
    }
}

/// Starts processes in their order, as many at a time as there are processors for: most of a start is waiting for the new
/// process to get that far.
pub(super) fn spawn_all<'a>(
    launches: &[&'a Launch],
    shared_env: &'a [(String, String)],
    keeper: &'a str,
) -> Vec<Result<Handle, StartError>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut spawner = Spawner::new(shared_env, keeper);
        let mut started = Vec::new();
        while let Some((at, launch)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            launches.get(at).map(|launch| (at, *launch))
        } {
            started.push((at, spawner.spawn(launch)));
        }
        started
    };
    let n_helpers = thread::available_parallelism().map_or(1, NonZero::get).min(launches.len()).saturating_sub(1);
    let mut all = thread::scope(|scope| {
        // Where there is no room for a thread, one does it alone.
        let helper = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (0..n_helpers.min(HELPERS_MAX)).filter_map(helper).collect();
        let mut all = work();
        for helper in helpers {
            all.extend(helper.join().expect("starting does not panic"));
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, started)| started).collect()
}

impl<'a> Spawner<'a> {
    pub(super) fn new(shared_env: &'a [(String, String)], keeper: &'a str) -> Self {
        Self { shared_env, keeper, programs: BTreeMap::new() }
    }

    /// Checks what can be checked before anything is touched, in every place alike.
    pub(super) fn prepare(&mut self, launch: &'a Launch) -> Result<Prepared<'a>, StartError> {
        if !is_file_name(&launch.run) {
            return Err(failed(format!("`{}` cannot be the name of a run", launch.run)));
        }
        let name = launch.argv.first().ok_or_else(|| failed("no program was given".to_owned()))?;
        let program = self.find_program(name, launch)?;
        Ok(Prepared { program, shared_env: self.shared_env, env: &launch.env, run: &launch.run, keeper: self.keeper })
    }

    pub(super) fn spawn(&mut self, launch: &'a Launch) -> Result<Handle, StartError> {
        let prepared = self.prepare(launch)?;
        let output = Output::open(launch)?;
        let mut command = Command::new(&prepared.program);
        command.arg0(&launch.argv[0]).args(&launch.argv[1..]).current_dir(&launch.dir).process_group(0);
        command.env_clear().envs(prepared.env());
        command.stdin(stdin_of(launch)?);
        command.stdout(output.log).stderr(output.errors);
        // Waited for by the bell, like all children.
        let child = command.spawn().map_err(|error| {
            // A log is the trace of a run that has begun.
            remove_output(launch);
            spawn_error(&error, launch)
        })?;
        let pid = child.id();
        let entry = table::entry(pid).ok_or_else(|| StartError::Unknown { cause: format!("no /proc/{pid}/stat") })?;
        let handle = entry.handle();
        log_lock::note_first(&launch.log, &handle);
        Ok(handle)
    }

    fn env<'b>(&'b self, launch: &'b Launch) -> impl Iterator<Item = (&'b String, &'b String)> {
        self.shared_env.iter().chain(&launch.env).map(|(name, value)| (name, value))
    }

    /// A name without a slash is looked up on the `PATH` of the launch.
    fn find_program(&mut self, name: &str, launch: &Launch) -> Result<PathBuf, StartError> {
        if name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let path = self.env(launch).filter(|(key, _)| *key == "PATH").last();
        let path = path.map(|(_, value)| value.clone()).unwrap_or_default();
        let key = (name.to_owned(), path);
        if let Some(found) = self.programs.get(&key) {
            return Ok(found.clone());
        }
        let found = program::on_path(name, &key.1).ok_or_else(|| program::missing(name))?;
        self.programs.insert(key, found.clone());
        Ok(found)
    }
}

/// Where a process writes.
struct Output {
    log: File,
    errors: File,
}

impl Output {
    fn open(launch: &Launch) -> Result<Output, StartError> {
        let log = log_lock::take(&launch.log)?;
        let errors = match &launch.errors {
            Some(path) => open_log(path),
            None => log.try_clone().map_err(|error| log_error(&launch.log, &error)),
        };
        // It has not begun.
        let errors = errors.inspect_err(|_| drop(std::fs::remove_file(&launch.log)))?;
        Ok(Output { log, errors })
    }
}

fn remove_output(launch: &Launch) {
    for path in [&launch.log].into_iter().chain(&launch.errors) {
        std::fs::remove_file(path).ok();
    }
}

pub(super) fn open_log(path: &Path) -> Result<File, StartError> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    log.map_err(|error| log_error(path, &error))
}

fn stdin_of(launch: &Launch) -> Result<Stdio, StartError> {
    let Some(text) = &launch.stdin else { return Ok(Stdio::null()) };
    let file = memory::file_of(text);
    file.map(Stdio::from).map_err(|error| classify(&error, format!("cannot keep its standard input: {error}")))
}

fn log_error(path: &Path, error: &io::Error) -> StartError {
    classify(error, format!("cannot open its log {}: {error}", path.display()))
}

/// Why a start failed, by the error of executing the program.
pub(super) fn spawn_error(error: &io::Error, launch: &Launch) -> StartError {
    let name = launch.argv.first().map(String::as_str).unwrap_or_default();
    // The same errors come from entering the directory as from executing the program.
    if launch.dir.is_file() {
        return failed(format!("cannot work in {}: it is not a directory", launch.dir.display()));
    }
    if let Err(cause) = access(&launch.dir, Access::EXEC_OK).map_err(io::Error::from) {
        return failed(format!("cannot work in {}: {cause}", launch.dir.display()));
    }
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::ACCESS | Errno::NOEXEC | Errno::NOTDIR) => {
            program::cannot_execute(name, Path::new(name), error)
        }
        _ => classify(error, format!("cannot start `{name}`: {error}")),
    }
}

pub(super) fn classify(error: &io::Error, cause: String) -> StartError {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::NOMEM | Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::DQUOT) => {
            StartError::NoRoom { cause }
        }
        _ => failed(cause),
    }
}

fn failed(cause: String) -> StartError {
    StartError::Failed { cause }
}
