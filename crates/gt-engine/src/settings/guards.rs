//! What about this machine forbids to start anything. // SPEC D9
//!
//! Measuring is apart from judging. What cannot be measured forbids nothing.

use std::path::Path;

use gt_core::plan::Guard;

use crate::config::Config;

/// How the machine is now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Machine {
    load_per_core: Option<f64>,
    /// Bytes.
    free_memory: Option<u64>,
    free_disk: Option<u64>,
}

impl Machine {
    pub(super) fn measure(town: &Path) -> Machine {
        Machine { load_per_core: load_per_core(), free_memory: free_memory(), free_disk: free_disk(town) }
    }
}

/// The guards of the config that a machine trips.
pub(super) fn tripped(config: &Config, machine: &Machine) -> Vec<Guard> {
    let mut guards = Vec::new();
    let load_max = config.integer("guards.load_per_core");
    if let Some(load) = machine.load_per_core.filter(|load| load_max > 0 && *load > load_max as f64) {
        let message = format!("the load is {load:.1} per core, above `guards.load_per_core` = {load_max}");
        guards.push(Guard { code: "guard-load", message });
    }
    let sizes = [
        ("guard-memory", "memory", "guards.free_memory", machine.free_memory),
        ("guard-disk", "disk", "guards.free_disk", machine.free_disk),
    ];
    for (code, what, key, free) in sizes {
        let least = config.size_bytes(key);
        if let Some(free) = free.filter(|free| *free < least) {
            let (free, least) = (megabytes(free), megabytes(least));
            let message = format!("only {free} of {what} are free, less than `{key}` = {least}");
            guards.push(Guard { code, message });
        }
    }
    guards
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
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

    const MB: u64 = 1_000_000;

    fn codes(config: &str, machine: &Machine) -> Vec<&'static str> {
        let config = Config::parse(config).expect("the config is right");
        tripped(&config, machine).iter().map(|guard| guard.code).collect()
    }

    #[test]
    fn a_busy_machine_without_room_trips_every_guard_and_says_by_how_much() {
        let busy = Machine { load_per_core: Some(16.1), free_memory: Some(255 * MB), free_disk: Some(999 * MB) };
        let told: Vec<String> = tripped(&Config::default(), &busy)
            .into_iter()
            .map(|guard| format!("{}: {}", guard.code, guard.message))
            .collect();
        assert_eq!(
            told,
            [
                "guard-load: the load is 16.1 per core, above `guards.load_per_core` = 16",
                "guard-memory: only 255 MB of memory are free, less than `guards.free_memory` = 256 MB",
                "guard-disk: only 999 MB of disk are free, less than `guards.free_disk` = 1000 MB",
            ]
        );
        assert_eq!(codes("guards.load_per_core = 17", &busy), ["guard-memory", "guard-disk"]);
        assert_eq!(codes("[guards]\nload_per_core = 0\nfree_memory = \"0 B\"\nfree_disk = \"0 B\"", &busy), [""; 0]);
    }

    #[test]
    fn what_is_just_enough_or_cannot_be_measured_forbids_nothing() {
        let enough = Machine { load_per_core: Some(16.0), free_memory: Some(256 * MB), free_disk: Some(1000 * MB) };
        assert_eq!(codes("", &enough), [""; 0]);
        assert_eq!(codes("", &Machine::default()), [""; 0]);
    }

    #[test]
    fn this_machine_can_be_measured() {
        let Machine { load_per_core, free_memory, free_disk } = Machine::measure(Path::new("/"));
        assert!(load_per_core.is_some_and(|load| load >= 0.0));
        assert!(free_memory.is_some_and(|free| free > 0) && free_disk.is_some());
    }
}
