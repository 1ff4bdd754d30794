//! The kernel's process table, `/proc`: who is there, since when, and whose run it belongs to.
//!
//! A process number alone says nothing, for it may have been given to another meanwhile; everything here goes by the
//! pair of number and birth, and signals go through a pidfd opened before that pair was compared.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};

use crate::Handle;

/// Executing a program takes a fraction of a millisecond, if there is a processor for it.
const EXEC_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };
const EXEC_LOOKS_MAX: u32 = 250;

/// Who was seen so often between programs, and always without an environment, has none.
const SETTLED_LOOKS: u32 = 8;

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub pid: u32,
    pub is_dead: bool,
    pub group: u32,
    pub session: u32,
    pub birth: u64,
}

impl Entry {
    pub fn handle(&self) -> Handle {
        Handle { pid: self.pid, birth: self.birth }
    }
}

/// How the processes of a run are told from all others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark<'a> {
    /// Runs of two towns may have the same name; their keepers do not.
    pub keeper: &'a str,
    pub run: &'a str,
    /// Group and kernel session of its first process. A group lies in one session, so this pair stays the run's own
    /// even if the number of the group is given out again elsewhere.
    pub group: Option<(u32, u32)>,
}

/// The living processes of a run, eldest first.
pub(super) fn members(mark: Mark<'_>) -> Vec<Entry> {
    let own_pid = std::process::id();
    let mut members: Vec<Entry> = all_living().filter(|entry| entry.pid != own_pid && belongs(entry, mark)).collect();
    members.sort_by_key(|entry| (entry.birth, entry.pid));
    members
}

/// The living processes that have inherited a lock on this file, eldest first. The kernel may not show it for one that is just
/// executing a program.
pub(super) fn lock_holders(file: &Path) -> Vec<Entry> {
    let identity = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let Some(wanted) = identity(file) else { return Vec::new() };
    let has_it = |entry: &Entry| {
        let of = |what: &str| PathBuf::from(format!("/proc/{}/{what}", entry.pid));
        let open = std::fs::read_dir(of("fd")).into_iter().flatten().flatten().map(|fd| fd.file_name());
        // A reader of the same file has it open too, but not the lock.
        let is_locked = |fd| std::fs::read_to_string(of("fdinfo").join(fd)).is_ok_and(|info| info.contains("FLOCK"));
        let mut of_file = open.filter(|fd| identity(&of("fd").join(fd)) == Some(wanted));
        of_file.any(is_locked)
    };
    let mut holders: Vec<Entry> = all_living().filter(has_it).collect();
    holders.sort_by_key(|entry| (entry.birth, entry.pid));
    holders
}

/// What stands in the table under this number.
pub(super) fn entry(pid: u32) -> Option<Entry> {
    // Its numbers and a short name have room in this.
    let mut stat = [0; 1024];
    let n = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&stat[..n]))
}

/// A pidfd of exactly this process, if it still lives.
pub(crate) fn open(handle: &Handle) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(handle.pid as i32)?, PidfdFlags::empty()).ok()?;
    living(handle).map(|_| pidfd)
}

/// Exactly this process, if it still lives.
pub(super) fn living(handle: &Handle) -> Option<Entry> {
    entry(handle.pid).filter(|entry| entry.birth == handle.birth && !entry.is_dead)
}

/// Children of this process, dead ones not yet waited for included; `None` when the kernel does not list them.
pub(super) fn own_children() -> Option<BTreeSet<u32>> {
    let mut children = BTreeSet::new();
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        let listed = std::fs::read_to_string(task.path().join("children")).ok()?;
        children.extend(listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Some(children)
}

/// The living processes that were called as this command would be, whatever they have become since.
pub(super) fn called_like(command: &Command) -> Vec<Entry> {
    let mut arguments = Vec::new();
    for argument in command.get_args() {
        arguments.extend_from_slice(argument.as_encoded_bytes());
        arguments.push(0);
    }
    let is_so = |entry: &Entry| {
        let words = read_at_once(&format!("/proc/{}/cmdline", entry.pid)).unwrap_or_default();
        let program = words.iter().position(|byte| *byte == 0);
        program.is_some_and(|end| words[end + 1..] == arguments)
    };
    all_living().filter(is_so).collect()
}

/// The living processes whose programs' names begin so.
pub(crate) fn named(beginning: &str) -> Vec<Entry> {
    let name_of = |entry: &Entry| read_at_once(&format!("/proc/{}/comm", entry.pid)).unwrap_or_default();
    all_living().filter(|entry| name_of(entry).starts_with(beginning.as_bytes())).collect()
}

/// The words by which a process was called.
pub(crate) fn words(pid: u32) -> Vec<String> {
    let line = read_at_once(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).split_terminator('\0').map(str::to_owned).collect()
}

/// The living processes of a group.
pub(super) fn group(group: u32) -> Vec<Entry> {
    all_living().filter(|entry| entry.group == group).collect()
}

/// Whether a process was given this variable with this value, `NAME=VALUE`.
pub(super) fn has_pair(pid: u32, pair: &str) -> bool {
    environment_of(pid).unwrap_or_default().split(|byte| *byte == 0).any(|is| is == pair.as_bytes())
}

fn all_living() -> impl Iterator<Item = Entry> {
    let listed = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = listed.filter_map(|dir| dir.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(entry).filter(|entry| !entry.is_dead)
}

fn belongs(entry: &Entry, mark: Mark<'_>) -> bool {
    // Threads of the kernel are in no group.
    entry.group != 0 && (mark.group == Some((entry.group, entry.session)) || is_marked(entry.pid, mark))
}

fn is_marked(pid: u32, mark: Mark<'_>) -> bool {
    let environment = environment_of(pid).unwrap_or_default();
    let has = |name: &str, value: &str| {
        let is_pair = |pair: &[u8]| pair.strip_prefix(name.as_bytes()).is_some_and(|is| is == value.as_bytes());
        environment.split(|byte| *byte == 0).any(is_pair)
    };
    has("GT_RUN=", mark.run) && has("GT_KEEPER=", mark.keeper)
}

/// Whether a process was given this variable.
pub(super) fn has_variable(pid: u32, name: &str) -> bool {
    let is_it = |pair: &[u8]| pair.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
    environment_of(pid).unwrap_or_default().split(|byte| *byte == 0).any(is_it)
}

/// Whether a process is just executing a program, and has been for a while: nothing is known of it yet.
pub(super) fn is_executing(pid: u32) -> bool {
    environment_of(pid).is_none()
}

/// What a process was given by the name of this variable.
pub(crate) fn variable(pid: u32, name: &str) -> Option<String> {
    let value = |pair: &[u8]| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    let found = environment_of(pid)?.split(|byte| *byte == 0).find_map(value)?;
    Some(String::from_utf8_lossy(&found).into_owned())
}

/// The environment that a process was given; empty for one of another user, and no agent is. Nothing of one that is still
/// executing a program: then it is not known.
fn environment_of(pid: u32) -> Option<Vec<u8>> {
    let read = |what: &str| read_at_once(&format!("/proc/{pid}/{what}")).unwrap_or_default();
    if is_of_another_user(pid) {
        return Some(Vec::new());
    }
    let mut n_settled = 0;
    for _ in 0..EXEC_LOOKS_MAX {
        let environment = read("environ");
        // Around the moment of executing a program, a process shows neither environment nor arguments.
        n_settled += u32::from(!read("cmdline").is_empty());
        let is_whole = environment.last() == Some(&0);
        if is_whole || n_settled >= SETTLED_LOOKS {
            return Some(environment);
        }
        // One that has ended and was not waited for looks the same, and has nothing to show any more.
        if entry(pid).is_none_or(|entry| entry.is_dead) {
            return Some(Vec::new());
        }
        // It may wait for a processor, and nothing tells when it got one.
        poll(&mut [], Some(&EXEC_PAUSE)).ok();
    }
    None
}

/// Reads in one go if it can: what comes after another program was executed would be missing.
fn read_at_once(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1 << 16);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_of_another_user(pid: u32) -> bool {
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|dir| dir.uid());
    // At that same moment every process seems to be root's.
    owner.is_ok_and(|owner| owner != 0 && owner != geteuid().as_raw())
}

/// Reads `/proc/PID/stat`. The name in brackets may hold anything, brackets too, so what counts is after the last one.
pub fn parse_stat(pid: u32, stat: &str) -> Option<Entry> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // The third field of the file is the first one here.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Entry {
        pid,
        is_dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        group: number(5)? as u32,
        session: number(6)? as u32,
        birth: number(22)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_process_is_not_taken_for_one_that_executes_a_program() {
        let mut child = Command::new("true").spawn().expect("it is a usual program");
        while entry(child.id()).is_some_and(|entry| !entry.is_dead) {
            poll(&mut [], Some(&EXEC_PAUSE)).ok();
        }
        assert!(!is_executing(child.id()), "it has ended and was not waited for");
        child.wait().expect("it is a child");
        assert!(!is_executing(child.id()), "it is gone");
    }
}
