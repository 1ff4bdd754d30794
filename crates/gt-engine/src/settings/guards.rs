//! What about this machine forbids to start anything. // SPEC D9
//!
//! What cannot be measured forbids nothing. Measuring is `surroundings/gauge.rs`.

use gt_core::plan::Guard;

use crate::config::Config;
use crate::surroundings::Figures;

/// The guards of the config that a machine trips.
pub(super) fn tripped(config: &Config, machine: &Figures) -> Vec<Guard> {
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
        if let Some(free) =
            free.filter(|free| *free < least && !(code == "guard-disk" && gt_core::defect!("disk-guard-ignored")))
        {
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

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn codes(config: &str, machine: &Figures) -> Vec<&'static str> {
        let config = Config::parse(config).expect("the config is right");
        tripped(&config, machine).iter().map(|guard| guard.code).collect()
    }

    #[test]
    fn a_busy_machine_without_room_trips_every_guard_and_says_by_how_much() {
        let busy = Figures { load_per_core: Some(16.1), free_memory: Some(255 * MB), free_disk: Some(999 * MB) };
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
        let enough = Figures { load_per_core: Some(16.0), free_memory: Some(256 * MB), free_disk: Some(1000 * MB) };
        assert_eq!(codes("", &enough), [""; 0]);
        assert_eq!(codes("", &Figures::default()), [""; 0]);
    }
}
