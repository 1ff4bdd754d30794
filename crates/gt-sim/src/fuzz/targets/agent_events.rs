//! What agents print and what their hooks are called with: the first line names the vendor, the rest is theirs.
//!
//! Whatever comes, something is made of it or it is passed over; what is kept is short, safe to show and reads back; what was
//! used never becomes less.

use gt_core::agent::{Hook, Told, Vendor, read_hook};
use gt_core::text::misleads;
use jiff::Timestamp;

use crate::fuzz::{Target, Verdict};

pub(super) const TARGET: Target = Target { name: "agent-events", check, tokens: TOKENS };

const TOKENS: &[&str] = &[
    "claude\n",
    "codex\n",
    "gemini\n",
    "opencode\n",
    r#"{"type":"result","is_error":true,"api_error_status":429}"#,
    r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000}}"#,
    r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t"}],"usage":{"input_tokens":1}}}"#,
    r#"{"type":"turn.failed","error":{"message":"try again in 3 days"}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":18446744073709551615}}"#,
    r#"{"type":"step_finish","part":{"id":"p","reason":"stop","cost":1e308,"tokens":{"input":1}}}"#,
    r#"{"hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"resets 8:40am (UTC)"}"#,
    r#"{"at":"2026-01-01T00:00:00Z","vendor":"claude","hook":{"hook_event_name":"Stop"}}"#,
    r#""total_cost_usd":-1,"#,
    "9223372036854775807",
    "resets ",
    "in 9 days",
    "\u{202E}",
    "{",
    "}",
    ",",
    "\n",
];

/// The longest line that is kept of a hook.
const KEPT_BYTES_MAX: usize = 16 * 1024;

fn check(bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let vendor = Vendor::parse(first.trim());
    let mut is_understood = false;
    for vendor in vendor.map_or(Vendor::ALL.to_vec(), |vendor| vec![vendor]) {
        let mut told = Told::default();
        for (second, line) in rest.lines().enumerate() {
            let at = Timestamp::from_second(1_800_000_000 + second as i64).expect("it is a time");
            let before = told.usage();
            told.hear_line(vendor, line, at);
            for hook in [read_hook(vendor, line, at), Hook::parse(line)].into_iter().flatten() {
                told.hear_hook(&hook);
            }
            kept_as_it_came(vendor, line, at);
            assert_eq!(told.usage().most(before), told.usage(), "what was used becomes less");
        }
        is_understood |= told != Told::default();
        safe_to_show(&told, vendor);
    }
    Verdict::accepted_if(is_understood)
}

/// A line that is kept of a hook is one line, short, and reads back.
fn kept_as_it_came(vendor: Vendor, given: &str, at: Timestamp) {
    let Some(hook) = read_hook(vendor, given, at) else { return };
    let line = hook.to_line();
    assert!(line.len() <= KEPT_BYTES_MAX && !line.contains('\n'), "{} bytes", line.len());
    assert_eq!(Hook::parse(&line).as_ref(), Some(&hook), "{line}");
}

fn safe_to_show(told: &Told, vendor: Vendor) {
    let now = Timestamp::from_second(1_800_000_000).expect("it is a time");
    if let Some(failure) = told.failure() {
        let reason = failure.reason(Some(vendor));
        assert!(!failure.message.is_empty() && !reason.contains(misleads), "{reason:?}");
        assert!(failure.hold_until(now) > now, "a hold ends later than it begins");
    }
    assert!(told.conversation().is_none_or(|name| !name.is_empty() && !name.contains(misleads)));
}
