//! Whole processes, timed from the outside, interleaved so that a busy moment hits all of them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::synthetic;

const ROUNDS: usize = 300;

pub(crate) struct Processes {
    pub(crate) bin_true: Duration,
    pub(crate) version: Duration,
    pub(crate) show_small: Duration,
    pub(crate) show_large: Duration,
}

impl Processes {
    pub(crate) fn version_ratio(&self) -> f64 {
        self.version.as_secs_f64() / self.bin_true.as_secs_f64()
    }

    pub(crate) fn show_ratio(&self) -> f64 {
        self.show_large.as_secs_f64() / self.show_small.as_secs_f64()
    }
}

/// Each round shows another bead, all over the town.
pub(crate) fn measure(small: (&Path, usize), large: (&Path, usize)) -> Processes {
    let mut times: [Vec<Duration>; 4] = Default::default();
    for round in 0..ROUNDS {
        let commands = [Command::new("/bin/true"), gt(&["--version"]), show(small, round), show(large, round)];
        for (mut command, times) in commands.into_iter().zip(&mut times) {
            times.push(time(&mut command));
        }
    }
    let [bin_true, version, show_small, show_large] = times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    Processes { bin_true, version, show_small, show_large }
}

fn gt(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gt"));
    command.args(arguments);
    command
}

fn show((town, size): (&Path, usize), round: usize) -> Command {
    let mut command = gt(&["bead", "show", &synthetic::id((round * 7_919 + 13) % size), "--town"]);
    command.arg(town);
    command
}

fn time(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status().expect("the program starts");
    let took = start.elapsed();
    assert!(status.success(), "{command:?}");
    took
}
