//! One start, as the line that tells tmux to make a session.
//!
//! tmux tells a program where its server is, and a program that calls tmux would then reach all of the town's terminals. So
//! `env` is put before it, which forgets that. tmux takes `#` and `%` in a directory for formats; in that case, and to
//! redirect the input, it is a shell of ours instead. Either is replaced by the program.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::super::spawn::Prepared;
use crate::terminal::{START_FORMAT, quoted};
use crate::{Launch, StartError};

/// The kernel takes no longer word, environment included.
const WORD_BYTES_MAX: usize = 128 << 10;

const SHELL: &str = "/bin/sh";
const ENV: &str = "/usr/bin/env";

/// What stays of a session's name.
const NAME_CHARS_MAX: usize = 64;

/// The name that people see; `is_taken`: by somebody else's session.
pub(super) fn session_name(launch: &Launch, is_taken: bool) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let name: String = launch.session.chars().map(plain).take(NAME_CHARS_MAX).collect();
    let name = name.trim_start_matches('-');
    match (name.is_empty(), is_taken) {
        (false, false) => name.to_owned(),
        (true, _) => launch.run.chars().map(plain).collect(),
        (false, true) => format!("{name}-{}", launch.run.chars().map(plain).collect::<String>()),
    }
}

/// The whole line. `input` is a file that the program reads instead of the terminal.
pub(super) fn line(
    name: &str,
    launch: &Launch,
    prepared: &Prepared<'_>,
    input: Option<&Path>,
) -> Result<String, StartError> {
    let words = words(launch, prepared, input)?;
    check(&words, prepared)?;
    let dir = if has_format(&launch.dir) { "/".to_owned() } else { launch.dir.display().to_string() };
    let mut line = format!("new-session -d -P -F {} -s {}", quoted(START_FORMAT), quoted(name));
    for (variable, value) in prepared.env() {
        line.push_str(" -e ");
        line.push_str(&quoted(&format!("{variable}={value}")));
    }
    line.push_str(" -c ");
    line.push_str(&quoted(&dir));
    line.push_str(" --");
    for word in words {
        line.push(' ');
        line.push_str(&quoted(&word));
    }
    Ok(line)
}

fn words(launch: &Launch, prepared: &Prepared<'_>, input: Option<&Path>) -> Result<Vec<String>, StartError> {
    let mut script = String::new();
    let mut given = Vec::new();
    if has_format(&launch.dir) {
        script.push_str("cd -- \"$1\" && shift && ");
        given.push(text_of(&launch.dir)?);
    }
    if let Some(input) = input {
        script.push_str("exec <\"$1\" && shift && ");
        given.push(text_of(input)?);
    }
    let is_plain = |program: &String| !program.contains('=') && !program.starts_with('-');
    if script.is_empty() && launch.argv.first().is_some_and(is_plain) {
        let forgetful = [ENV, "-u", "TMUX", "-u", "TMUX_PANE"].map(str::to_owned);
        return Ok(forgetful.into_iter().chain(launch.argv.iter().cloned()).collect());
    }
    script.push_str("unset TMUX TMUX_PANE; exec \"$@\"");
    let program = text_of(&prepared.program)?;
    // A path, so that no shell takes it for an option or one of its own commands.
    let program = if program.starts_with(['/', '.']) { program } else { format!("./{program}") };
    let before = [SHELL, "-c", &script, SHELL].map(str::to_owned);
    let arguments = launch.argv.iter().skip(1).cloned();
    Ok(before.into_iter().chain(given).chain([program]).chain(arguments).collect())
}

/// Refuses what the kernel would refuse, when nobody could tell any more.
fn check(words: &[String], prepared: &Prepared<'_>) -> Result<(), StartError> {
    let failed = |cause: String| Err(StartError::Failed { cause });
    let mut n_bytes = 0;
    for word in words {
        n_bytes += word.len() + 9;
        if word.contains('\0') {
            return failed("an argument holds a zero byte".to_owned());
        }
        if word.len() >= WORD_BYTES_MAX {
            return failed(format!("an argument has {} bytes, and the most is {WORD_BYTES_MAX}", word.len()));
        }
    }
    for (name, value) in prepared.env() {
        n_bytes += name.len() + value.len() + 10;
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return failed(format!("`{}` cannot be set in an environment", name.escape_debug()));
        }
        if name.len() + value.len() + 1 >= WORD_BYTES_MAX {
            return failed(format!("`{name}` is too long for an environment: {} bytes", value.len()));
        }
    }
    // The kernel gives them a quarter of the stack.
    let most = getrlimit(Resource::Stack).current.unwrap_or(8 << 20) / 4;
    if n_bytes as u64 + (16 << 10) > most {
        return failed(format!("its arguments and environment have {n_bytes} bytes, and the most is {most}"));
    }
    Ok(())
}

fn has_format(dir: &Path) -> bool {
    dir.as_os_str().as_encoded_bytes().iter().any(|byte| b"#%\0".contains(byte))
}

fn text_of(path: &Path) -> Result<String, StartError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| StartError::Failed { cause: format!("{} is not UTF-8", path.display()) })
}
