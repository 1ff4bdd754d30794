//! What makes an agent tell us what it does: hooks that call `gt agent-event`, given for one run only.
//!
//! Nothing is written into the worktree or the user's own settings; Claude's hooks are added to the user's.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use gt_core::agent::Vendor;
use serde_json::{Map, Value, json};

/// The first line of the events of a run in a terminal: its hooks speak, and what it prints is a picture.
pub(super) const TERMINAL_MARK: &str = r#"{"terminal":true}"#;
/// The same where we gave it hooks, so that silence means something.
pub(super) const HOOKED_MARK: &str = r#"{"terminal":true,"hooked":true}"#;

/// The moments of Claude at which it calls us.
const CLAUDE: [&str; 14] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
];

/// The same of Codex.
const CODEX: [&str; 7] =
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop", "SubagentStop"];

/// Seconds that an agent waits for us at the most.
const TIMEOUT_SECS: u32 = 5;

/// The command that a hook runs; a shell reads it.
fn command(gt: &Path, vendor: Vendor) -> String {
    let quoted = gt.display().to_string().replace('\'', r"'\''");
    format!("'{quoted}' agent-event {}", vendor.as_str())
}

/// Writes the settings of one run of Claude: our hooks, and that nobody has to be warned of what we ask for.
pub(super) fn write_settings(path: &Path, gt: &Path) -> io::Result<()> {
    let call =
        json!([{ "hooks": [{ "type": "command", "command": command(gt, Vendor::Claude), "timeout": TIMEOUT_SECS }] }]);
    let hooks: Map<String, Value> = CLAUDE.iter().map(|event| ((*event).to_owned(), call.clone())).collect();
    let settings = json!({ "skipDangerousModePermissionPrompt": true, "hooks": hooks });
    private(path)?.write_all(format!("{settings}\n").as_bytes())
}

/// Begins the events of a run in a terminal.
pub(super) fn begin_events(path: &Path, is_hooked: bool) -> io::Result<()> {
    let mark = if is_hooked { HOOKED_MARK } else { TERMINAL_MARK };
    private(path)?.write_all(format!("{mark}\n").as_bytes())
}

/// A new file for our eyes only.
fn private(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Overrides that make Codex call us, one for each moment. Their values are TOML, whose strings JSON's are.
pub(super) fn codex_hooks(gt: &Path) -> Vec<String> {
    let command = json!(command(gt, Vendor::Codex));
    let call = format!(r#"[{{hooks=[{{type="command",command={command},timeout={TIMEOUT_SECS}}}]}}]"#);
    CODEX.iter().flat_map(|event| ["-c".to_owned(), format!("hooks.{event}={call}")]).collect()
}

/// The override that makes Codex trust these directories.
pub(super) fn codex_trust(dirs: &[&Path]) -> Vec<String> {
    let trusted = |dir: &&Path| format!(r#"{}={{trust_level="trusted"}}"#, json!(dir.display().to_string()));
    let dirs: Vec<String> = dirs.iter().map(trusted).collect();
    vec!["-c".to_owned(), format!("projects={{{}}}", dirs.join(","))]
}
