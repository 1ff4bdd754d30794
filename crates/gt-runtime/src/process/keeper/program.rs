//! Finding the program of a launch, and saying beforehand whether it can be executed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Looks a name up as `execvp` would, in absolute folders only.
pub(super) fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    let candidates = std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    candidates.into_iter().find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// Fails as executing it would, for a place that cannot tell us afterwards.
pub(super) fn check(program: &Path, dir: &Path) -> io::Result<()> {
    let program = dir.join(program);
    check_file(&program)?;
    // One that may be executed but not read is taken on trust.
    let Some(start) = start_of(&program) else { return Ok(()) };
    match start.strip_prefix(b"#!") {
        Some(line) => check_interpreter(line, dir),
        None if start.starts_with(b"\x7fELF") => Ok(()),
        None => Err(Errno::NOEXEC.into()),
    }
}

fn check_file(program: &Path) -> io::Result<()> {
    if !program.metadata()?.is_file() {
        return Err(Errno::ACCESS.into());
    }
    Ok(access(program, Access::EXEC_OK)?)
}

fn check_interpreter(line: &[u8], dir: &Path) -> io::Result<()> {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let name = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    if name.is_empty() {
        return Err(Errno::NOEXEC.into());
    }
    check_file(&dir.join(std::ffi::OsStr::from_bytes(name)))
}

fn start_of(program: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    File::open(program).ok()?.take(256).read_to_end(&mut start).ok()?;
    Some(start)
}
