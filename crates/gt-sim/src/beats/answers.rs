//! What agents answer to a heartbeat, with what it comes to: that all is well in many dresses, silence, and alerts.

use fastrand::Rng;

use super::book::Meaning;

/// With no more than so many characters beside the token all is well, under every config.
const SHORT: usize = 30;
/// From so many on it is an alert, under every config.
const LONG: usize = 301;

const WELL: [&str; 9] = [
    "HEARTBEAT_OK",
    "**HEARTBEAT_OK**",
    "HEARTBEAT_OK.",
    "<b>HEARTBEAT_OK</b>",
    "`HEARTBEAT_OK`",
    "\n HEARTBEAT_OK \n",
    "All is well. HEARTBEAT_OK",
    "HEARTBEAT_OK Nothing is new.",
    "## HEARTBEAT_OK!",
];
const SILENT: [&str; 4] = ["NO_REPLY", "The shop is down, but no_reply", "", " \n "];
/// What is told as it was written, but for space around it.
const ALERTS: [&str; 6] = [
    "The shop is down.",
    "  The shop is down.\n",
    "Two requests wait.",
    "Two requests wait.",
    "It says HEARTBEAT_OK, and it is not true.",
    "NOT_HEARTBEAT_OK",
];

/// What is told once a day.
pub(super) const DAILY: &str = "The certificate runs out.";

/// An answer, and what it comes to.
pub(super) fn draw(rng: &mut Rng) -> (String, Meaning) {
    match rng.u32(0..12) {
        0..5 => (WELL[rng.usize(0..WELL.len())].to_owned(), Meaning::Nothing),
        5 => (SILENT[rng.usize(0..SILENT.len())].to_owned(), Meaning::Nothing),
        6 => (format!("HEARTBEAT_OK {}", "x".repeat(SHORT)), Meaning::Nothing),
        7 => {
            let rest = "y".repeat(LONG);
            (format!("HEARTBEAT_OK {rest}"), Meaning::Alert(rest))
        }
        8 => {
            let text = format!("Request {} is old.", rng.u32(0..100));
            (text.clone(), Meaning::Alert(text))
        }
        _ => {
            let text = ALERTS[rng.usize(0..ALERTS.len())];
            (text.to_owned(), Meaning::Alert(text.trim().to_owned()))
        }
    }
}
