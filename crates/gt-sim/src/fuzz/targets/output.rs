//! What agents print, of which the last lines are kept: plain, few and short, and the same when they are read again.

use gt_core::output::{BYTES_MAX, LINES_MAX, last_lines};
use gt_core::text::misleads;

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "output", check, tokens: TOKENS };

const TOKENS: &[&str] = &[
    "\u{1b}",
    "\u{1b}[",
    "\u{1b}[31m",
    "\u{1b}]0;",
    "\u{1b}\\",
    "\u{9b}",
    "\u{7}",
    "\r",
    "\n",
    "\t",
    "\u{202e}",
    "ä",
    "words ",
];

fn check(bytes: &[u8]) -> Verdict {
    let Some(kept) = last_lines(bytes) else { return Verdict::accepted_if(false) };
    assert!(kept.len() <= BYTES_MAX && kept.lines().count() <= LINES_MAX, "{} bytes", kept.len());
    assert!(kept.chars().all(|c| c == '\n' || !misleads(c)), "{kept:?}");
    assert_eq!(last_lines(kept.as_bytes()).as_deref(), Some(kept.as_str()), "it is not kept as it was");
    Verdict::accepted_if(true)
}
