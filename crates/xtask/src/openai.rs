//! OpenAI's own client, from PyPI, that a test has talk to the daemon: which version, and installing it.
//!
//! Nothing is installed outside `target/openai`, and nothing is asked of OpenAI.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::agents::target;

/// Tells the tests which python has the client.
pub(crate) const VARIABLE: &str = "GT_TEST_OPENAI";

/// A new version is tried by hand first.
const PACKAGE: &str = "openai==3.49.0";

/// Makes sure that the client is there in this version, and tells the python that has it.
pub(crate) fn provide() -> Result<PathBuf, String> {
    let folder = target().join("openai");
    let python = folder.join("bin/python");
    if !python.exists() {
        run("python3", &[OsStr::new("-m"), OsStr::new("venv"), folder.as_os_str()])?;
    }
    run(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE])?;
    // The link itself, not what it leads to: that is what makes it the python of this folder.
    std::path::absolute(&python).map_err(|error| format!("cannot find {}: {error}", python.display()))
}

fn run<S: AsRef<OsStr>, const N: usize>(program: impl AsRef<Path>, args: &[S; N]) -> Result<(), String> {
    let program = program.as_ref();
    let words: Vec<_> = args.iter().map(|word| word.as_ref().to_string_lossy()).collect();
    let line = format!("{} {}", program.display(), words.join(" "));
    eprintln!("xtask: {line}");
    match Command::new(program).args(args).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("OpenAI's client could not be installed: `{line}` ended with {status}")),
        Err(error) => Err(format!("OpenAI's client comes with python3, which cannot be started: {error}")),
    }
}
