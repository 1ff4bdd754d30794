//! tmux alone: one client in control mode, told to make sessions, and its answers read.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use gt_runtime::Launch;
use gt_runtime::terminal::quoted;

pub(crate) struct Bare {
    socket: String,
    client: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Bare {
    pub(crate) fn start() -> Self {
        let socket = format!("gt-bench-{}", std::process::id());
        let mut command = Command::new("tmux");
        command.args([
            "-u",
            "-L",
            &socket,
            "-f",
            "/dev/null",
            "-C",
            "new-session",
            "-s",
            "bench",
            "--",
            "sleep",
            "1000",
        ]);
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = command.spawn().expect("tmux is installed");
        let to = client.stdin.take().expect("it is a pipe");
        let from = BufReader::new(client.stdout.take().expect("it is a pipe"));
        Self { socket, client, to, from }
    }

    /// Makes the same sessions; until the last answer.
    pub(crate) fn fan_out(&mut self, launches: &[Launch]) -> Duration {
        let begun = Instant::now();
        let mut lines = String::new();
        for launch in launches {
            write!(lines, "new-session -d -P -F \"#{{pane_pid}}\" -s {}", launch.session).expect("it is a string");
            for (name, value) in &launch.env {
                write!(lines, " -e {}", quoted(&format!("{name}={value}"))).expect("it is a string");
            }
            writeln!(lines, " -c {} -- sleep 1000", quoted(&launch.dir.display().to_string())).expect("it is a string");
        }
        self.say(&lines, launches.len());
        let took = begun.elapsed();
        for launch in launches {
            self.say(&format!("kill-session -t ={}\n", launch.session), 1);
        }
        took
    }

    fn say(&mut self, lines: &str, n_answers: usize) {
        self.to.write_all(lines.as_bytes()).expect("tmux reads");
        let mut n_left = n_answers;
        while n_left > 0 {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("tmux answers") > 0, "tmux went away");
            assert!(!line.starts_with("%error"), "tmux refused");
            n_left -= usize::from(line.starts_with("%end ") && line.ends_with(" 1\n"));
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output().ok();
        self.client.wait().ok();
    }
}
