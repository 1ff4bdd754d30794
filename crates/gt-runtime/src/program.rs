//! Finding the program of a launch, and saying beforehand whether it can be executed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::StartError;

/// Says before anything is made for a run that its program cannot be executed. A path that is relative to the directory of
/// the run is not judged here: that directory may not exist yet.
pub fn probe(name: &str, path: &str) -> Result<(), StartError> {
    let root = Path::new("/");
    let found = match name.contains('/') {
        true if Path::new(name).is_relative() => return Ok(()),
        true => PathBuf::from(name),
        false => on_path(name, path).ok_or_else(|| missing(name))?,
    };
    match check(&found, root) {
        // A script without an interpreter may still run, depending on how it is started.
        Err(error) if Errno::from_io_error(&error) != Some(Errno::NOEXEC) => Err(cannot_execute(name, &found, &error)),
        _ => Ok(()),
    }
}

/// Why a name is not found that is in no folder of the `PATH`.
pub const NOT_ON_PATH: &str = "not found on the PATH";

/// A name that is in no folder of the `PATH`.
pub(crate) fn missing(name: &str) -> StartError {
    StartError::NoProgram { program: name.to_owned(), cause: NOT_ON_PATH.to_owned() }
}

/// A program that is not there or cannot be executed.
pub(crate) fn cannot_execute(name: &str, file: &Path, error: &io::Error) -> StartError {
    let cause = match error.kind() {
        io::ErrorKind::NotFound if file.exists() => "its interpreter is not found".to_owned(),
        io::ErrorKind::NotFound => "not found".to_owned(),
        io::ErrorKind::PermissionDenied => "it is not an executable file".to_owned(),
        _ => error.to_string(),
    };
    StartError::NoProgram { program: name.to_owned(), cause }
}

/// Looks a name up as `execvp` would, in absolute folders only.
pub(crate) fn on_path(name: &str, path: &str) -> Option<PathBuf> {
    let candidates = std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    candidates.into_iter().find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// Fails as executing it would, for a place that cannot tell us afterwards.
pub(crate) fn check(program: &Path, dir: &Path) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn why(name: &str, path: &str) -> String {
        probe(name, path).map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn a_program_is_judged_by_its_path_or_by_the_path_variable() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let path = dir.path().display().to_string();
        let put = |name: &str, text: &str, mode: u32| {
            let file = dir.path().join(name);
            fs::write(&file, text).expect("a file can be written");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("its mode can be set");
            file.display().to_string()
        };
        let good = put("good", "#!/bin/sh\n", 0o755);
        put("dead", "#!/no/such/interpreter\n", 0o755);
        let bare = put("bare", "echo\n", 0o755);
        assert_eq!([why("good", &path), why(&good, ""), why(&bare, ""), why("./any", "")], ["fine"; 4]);
        assert_eq!(why("good", "/nowhere"), "cannot start `good`: not found on the PATH");
        assert_eq!(why("/nowhere/x", &path), "cannot start `/nowhere/x`: not found");
        assert_eq!(why("dead", &path), "cannot start `dead`: its interpreter is not found");
        assert_eq!(why(&path, ""), format!("cannot start `{path}`: it is not an executable file"));
    }
}
