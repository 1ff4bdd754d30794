//! How the machine is: its load, what is free on it, and which time zone it keeps.
//!
//! What cannot be measured is `None`. What follows from the figures is decided in `settings/guards.rs`.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

/// Where a machine has its time zone. One without it keeps UTC.
const LOCALTIME: &str = "/etc/localtime";

/// The figures that guards go by.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    pub load_per_core: Option<f64>,
    /// Bytes.
    pub free_memory: Option<u64>,
    /// Bytes, where the town lies.
    pub free_disk: Option<u64>,
}

/// Measures a machine. The real one is `ThisMachine`; the simulation brings its own.
pub trait Gauge: Debug + Send + Sync {
    /// Time that only goes forward: how old a measurement is, goes by this.
    fn uptime(&self) -> Duration;

    fn measure(&self, town: &Path) -> Figures;

    /// The time zone by which a day begins. It is the machine's and not that of `TZ`, so that all processes on it agree.
    fn zone(&self) -> TimeZone;
}

/// The machine that this process runs on.
#[derive(Debug)]
pub struct ThisMachine {
    since: Instant,
}

impl ThisMachine {
    pub fn gauge() -> Arc<dyn Gauge> {
        Arc::new(ThisMachine { since: Instant::now() })
    }
}

impl Gauge for ThisMachine {
    fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    fn measure(&self, town: &Path) -> Figures {
        Figures { load_per_core: load_per_core(), free_memory: free_memory(), free_disk: free_disk(town) }
    }

    fn zone(&self) -> TimeZone {
        let machines = || TimeZone::tzif("", &std::fs::read(LOCALTIME).ok()?).ok();
        machines().unwrap_or(TimeZone::UTC)
    }
}

fn load_per_core() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let n_cores = std::thread::available_parallelism().ok()?.get();
    Some(load / n_cores as f64)
}

fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn free_disk(town: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(town).ok()?;
    Some(disk.f_bavail * disk.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_measured() {
        let Figures { load_per_core, free_memory, free_disk } = ThisMachine::gauge().measure(Path::new("/"));
        assert!(load_per_core.is_some_and(|load| load >= 0.0));
        assert!(free_memory.is_some_and(|free| free > 0) && free_disk.is_some());
    }
}
