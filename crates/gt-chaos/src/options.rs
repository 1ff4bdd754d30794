//! What the tool is asked to do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where agents run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    Process,
    Tmux,
}

impl Runtime {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Runtime::Process => "process",
            Runtime::Tmux => "tmux",
        }
    }
}

/// One run of the tool.
#[derive(Debug, Clone)]
pub struct Options {
    /// The binary that is tested.
    pub gt: PathBuf,
    /// How long load and faults last; the town settles after that.
    pub length: Duration,
    /// Repeats the choice of faults and work. When they happen is up to the machine.
    pub seed: u64,
    pub runtime: Runtime,
    /// The full path of a small file system of its own that may be filled.
    pub disk: Option<PathBuf>,
    /// Faults to inject, by name; all if empty.
    pub only: Vec<String>,
    /// The defect to switch on, in a binary that has any.
    pub defect: Option<String>,
}

impl Options {
    /// Reads `--gt FILE [--minutes N] [--seed S] [--runtime process|tmux] [--disk DIR] [--only FAULT]… [--defect NAME]`.
    pub fn parse(arguments: &[OsString]) -> Result<Options, String> {
        let mut options = Options {
            gt: PathBuf::new(),
            length: Duration::from_mins(1),
            seed: fastrand::u64(..1_000_000),
            runtime: Runtime::Process,
            disk: None,
            only: Vec::new(),
            defect: None,
        };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| format!("`{}` needs a value", name.display()))?;
            options.set(&name.to_string_lossy(), value)?;
        }
        if options.gt.as_os_str().is_empty() {
            return Err("`--gt` must name the binary to test".to_owned());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &OsString) -> Result<(), String> {
        let text = value.to_string_lossy();
        match name {
            "--gt" => self.gt = PathBuf::from(value),
            "--minutes" => self.length = minutes(&text)?,
            "--seed" => self.seed = text.parse().map_err(|_| format!("`--seed {text}` is not a number"))?,
            "--runtime" => self.runtime = runtime(&text)?,
            "--disk" => self.disk = Some(crate::disk::accept(Path::new(value))?),
            "--only" => self.only.push(crate::nemesis::known_fault(&text)?),
            "--defect" => self.defect = Some(text.into_owned()),
            _ => return Err(format!("unknown option `{name}`")),
        }
        Ok(())
    }
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: f64 = text.parse().map_err(|_| format!("`--minutes {text}` is not a number"))?;
    let span = Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| format!("`--minutes {text}` is no span"))?;
    if span.is_zero() { Err("`--minutes` must be more than 0".to_owned()) } else { Ok(span) }
}

fn runtime(text: &str) -> Result<Runtime, String> {
    match text {
        "process" => Ok(Runtime::Process),
        "tmux" => Ok(Runtime::Tmux),
        _ => Err(format!("`--runtime {text}` is neither `process` nor `tmux`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        Options::parse(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        let options = parse(&["--gt", "gt", "--minutes", "0.5", "--seed", "7", "--runtime", "tmux"]);
        let options = options.expect("all of them are known");
        assert_eq!((options.length, options.seed, options.runtime), (Duration::from_secs(30), 7, Runtime::Tmux));
        assert_eq!((options.disk, options.only), (None, Vec::new()));
    }

    #[test]
    fn wrong_options_are_refused_with_their_reason() {
        for (words, reason) in [
            (&["--minutes", "1"][..], "`--gt` must name the binary to test"),
            (&["--gt"], "`--gt` needs a value"),
            (&["--gt", "gt", "--minutes", "-1"], "`--minutes -1` is no span"),
            (&["--gt", "gt", "--minutes", "0"], "`--minutes` must be more than 0"),
            (&["--gt", "gt", "--seed", "x"], "`--seed x` is not a number"),
            (&["--gt", "gt", "--runtime", "exec"], "`--runtime exec` is neither `process` nor `tmux`"),
            (&["--gt", "gt", "--hours", "1"], "unknown option `--hours`"),
        ] {
            assert_eq!(parse(words).map(|_| ()), Err(reason.to_owned()));
        }
        assert!(parse(&["--gt", "gt", "--disk", "/"]).is_err_and(|why| why.contains("is refused")));
        assert!(parse(&["--gt", "gt", "--only", "flood"]).is_err_and(|why| why.contains("kill-daemon")));
    }
}
