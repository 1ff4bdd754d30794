//! Watching a daemon from outside: what the kernel counts of it.

use std::fs;
use std::time::Duration;

/// What daemon and keeper did in the time that they were watched.
pub(crate) struct Idle {
    watched: Duration,
    cpu_ticks: u64,
    wake_ups: u64,
    children: usize,
    memory_kb: u64,
}

impl Idle {
    /// Waits until a daemon is idle, and watches it for a while.
    pub(crate) fn watch(pid: u32, span: Duration) -> Idle {
        // After a write the daemon looks again ever more rarely, for about a minute; then it is idle.
        settle(pid);
        let (cpu, wakes) = (cpu_ticks(pid), wake_ups(pid));
        wait(span);
        Idle {
            watched: span,
            cpu_ticks: cpu_ticks(pid) - cpu,
            wake_ups: wake_ups(pid) - wakes,
            children: children(pid),
            memory_kb: memory_kb(pid),
        }
    }

    /// CPU that rounds to 0.0 % of a core, no wake-up, no subprocess, little memory.
    pub(crate) fn is_well(&self, memory_mb_max: u64) -> bool {
        let is_small = self.memory_kb < memory_mb_max * 1000;
        self.cpu_percent() < 0.05 && self.wake_ups == 0 && self.children == 0 && is_small
    }

    fn cpu_percent(&self) -> f64 {
        // The kernel counts in hundredths of a second.
        self.cpu_ticks as f64 / self.watched.as_secs_f64()
    }

    pub(crate) fn table(&self, beside: &str, memory_mb_max: u64) -> String {
        let verdict = if self.is_well(memory_mb_max) { "met" } else { "**not met**" };
        format!(
            "| idle daemon, {beside} | limit | measured |\n|---|--:|--:|\n\
             | CPU of a core over {} s | 0.0 % | {:.1} % |\n| wake-ups, and so queries | 0 | {} |\n\
             | subprocesses | 0 | {} |\n| memory | {memory_mb_max} MB | {:.1} MB |\n\nIdle limits: {verdict}.",
            self.watched.as_secs(),
            self.cpu_percent(),
            self.wake_ups,
            self.children,
            self.memory_kb as f64 / 1000.0
        )
    }
}

/// Waits until the daemon has not woken up for a long while.
fn settle(pid: u32) {
    let mut before = wake_ups(pid);
    loop {
        wait(Duration::from_secs(35));
        let now = wake_ups(pid);
        if now == before {
            return;
        }
        before = now;
    }
}

pub(crate) fn wait(span: Duration) {
    let (_sender, never) = std::sync::mpsc::channel::<()>();
    never.recv_timeout(span).unwrap_or_default();
}

fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the daemon runs");
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number")
}

/// How often any of its threads has woken up.
fn wake_ups(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon runs");
    let of_task = |path: std::path::PathBuf| {
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    tasks.flatten().map(|task| of_task(task.path())).sum()
}

fn children(pid: u32) -> usize {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let is_keeper =
        |child: &str| fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.contains("keeper"));
    children.split_whitespace().filter(|child| !is_keeper(child)).count()
}

fn memory_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the daemon runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory is told");
    line.trim().trim_end_matches("kB").trim().parse().expect("a number")
}
