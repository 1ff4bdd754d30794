//! What this machine does not let the tests do.
//!
//! Owns: finding out, saying which tests skip because of it, and telling those tests that they may. Any other test that
//! would skip fails instead. Programs that are missing are the business of `tools`.

use std::fs;
use std::process::{Command, Stdio};

/// Names to the tests what they may skip for, separated by commas.
pub(crate) const VARIABLE: &str = "GT_TEST_MAY_SKIP";

/// The bit of Linux's `CAP_SYS_TIME`.
const MAY_SET_CLOCK: u32 = 25;

/// What is not possible here, in the words of [`VARIABLE`].
pub(crate) fn find() -> String {
    let mut limits = Vec::new();
    if !may_mount() {
        limits.push("mount");
    }
    if !may_set_clock() {
        eprintln!("note: the clock cannot be set here, so the test that sets it skips; root may");
        limits.push("clock");
    }
    limits.join(",")
}

/// Whether a process may have mounts of its own, as root or in a user namespace.
fn may_mount() -> bool {
    let ways: [&[&str]; 2] = [&["--mount", "true"], &["--user", "--map-root-user", "--mount", "true"]];
    for way in ways {
        match Command::new("unshare").args(way).stdin(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(status) if status.success() => return true,
            Ok(_) => {}
            // That it is missing was said with all other programs.
            Err(_) => return false,
        }
    }
    eprintln!("note: no file system can be mounted here, so tests that mount one of their own skip");
    false
}

fn may_set_clock() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> MAY_SET_CLOCK & 1 == 1)
}
