//! The config of a town of sessions: its agents, lanes and queues, each seed with its own.

use std::fmt::Write as _;

use fastrand::Rng;

use crate::knobs::Knobs;

/// Those who answer; what the last of them prints is its answer.
pub(super) const AGENTS: [&str; 3] = ["ada", "bob", PLAIN];
pub(super) const PLAIN: &str = "cat";

/// How many tokens fit into a conversation, and from how many on its turns run one by one.
pub(super) const WINDOW: u64 = 1_000;
pub(super) const CROWDED: u64 = 600;

/// So many turns of a group run at once; of any other session one.
pub(super) const GROUP_TURNS: usize = 3;

/// What people have set for sessions.
#[derive(Debug, Clone)]
pub(super) struct Talk {
    /// The limits of the lanes `main` and `subagent`.
    pub(super) lanes: [usize; 2],
    mode: &'static str,
    cap: usize,
    drop: &'static str,
    debounce_ms: u32,
}

impl Talk {
    pub(super) fn draw(rng: &mut Rng) -> Talk {
        Talk {
            lanes: [rng.usize(1..4), rng.usize(1..3)],
            mode: ["queue", "followup", "interrupt"][rng.usize(0..3)],
            cap: rng.usize(1..5),
            drop: ["old", "new"][rng.usize(0..2)],
            debounce_ms: [0, 800, 5_000][rng.usize(0..3)],
        }
    }

    /// The same town, with room for all that waits.
    pub(super) fn roomy(self) -> Talk {
        Talk { mode: "queue", cap: 100, ..self }
    }

    /// The whole config.
    pub(super) fn with(&self, knobs: Knobs) -> Knobs {
        let Talk { lanes: [main, subagent], mode, cap, drop, debounce_ms } = self;
        let mut more = format!(
            "lanes.main = {main}\nlanes.subagent = {subagent}\nsessions.mode = \"{mode}\"\nsessions.cap = {cap}\n\
             sessions.drop = \"{drop}\"\nsessions.debounce_ms = {debounce_ms}\nsessions.timeout = \"10m\"\n\
             channels.post.kind = \"webhook\"\nchannels.post.url = \"http://receiver.invalid/answers\"\n"
        );
        for agent in AGENTS {
            writeln!(more, "agents.{agent}.headless = [\"{agent}\"]\nagents.{agent}.context_window = {WINDOW}")
                .expect("writing to a string cannot fail");
        }
        Knobs { more, ..knobs }
    }
}
