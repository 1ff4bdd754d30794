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

pub(crate) fn measure(small: &Path, large: &Path) -> Processes {
    let gt = env!("CARGO_BIN_EXE_gt");
    let id = synthetic::id(500);
    let show = |town: &Path| {
        let mut command = Command::new(gt);
        command.args(["--town".as_ref(), town.as_os_str(), "bead".as_ref(), "show".as_ref(), id.as_ref()]);
        command
    };
    let mut version = Command::new(gt);
    version.arg("--version");
    let mut commands = [Command::new("/bin/true"), version, show(small), show(large)];
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (command, times) in commands.iter_mut().zip(&mut times) {
            times.push(time(command));
        }
    }
    let [bin_true, version, show_small, show_large] = times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    Processes { bin_true, version, show_small, show_large }
}

fn time(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status().expect("the program starts");
    let took = start.elapsed();
    assert!(status.success(), "{command:?}");
    took
}
