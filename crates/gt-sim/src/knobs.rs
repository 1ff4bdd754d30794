//! The town's config: what people set it to, and what the judge holds the town to.

use std::fmt::Write as _;
use std::path::Path;

use fastrand::Rng;

use crate::git::gates::{FORMAT, TEST};
use crate::shortage::GuardKnobs;

/// The two rigs, with their prefixes. In the second one polecats have worktrees.
pub const RIGS: [(&str, &str); 2] = [("shop", "gt"), ("mill", "ml")];
pub const AGENTS: [&str; 2] = ["ada", "bob"];

/// Whose lines all agents print.
pub const SPEAKS: &str = "claude";

/// No config lets more starts of one context fail.
pub const FAILURES_MAX: i64 = 3;

/// The settings that dispatch goes by. Zero means: no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knobs {
    pub town: usize,
    pub rigs: [usize; 2],
    pub agents: [usize; 2],
    pub host: usize,
    pub batch: usize,
    /// What rules queued work while `town` is zero.
    pub queue: QueueKnobs,
    pub by_priority: bool,
    pub spawn_delay: u32,
    pub start_timeout: u32,
    pub max_failures: u32,
    pub breaker_reset: u32,
    pub cooldown: u32,
    pub attempts: u32,
    pub max_run: u32,
    pub stall_after: u32,
    pub per_second: usize,
    pub heartbeat: u32,
    /// Fires in a row that may fail before a job is disabled; 0: any number.
    pub job_failures: u32,
    pub guards: GuardKnobs,
    /// Further lines, for towns that need more than beads do.
    pub more: String,
    /// What towns of merging have besides.
    pub merging: Option<MergeKnobs>,
}

/// The settings of merging, for each rig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeKnobs {
    pub batch: usize,
    pub gates: [&'static [&'static str]; 2],
    pub push: [bool; 2],
    pub is_direct: [bool; 2],
    pub asks: [bool; 2],
}

impl MergeKnobs {
    pub fn draw(rng: &mut Rng) -> MergeKnobs {
        const GATES: [&[&str]; 6] = [&[], &[TEST], &[TEST], &[TEST], &[FORMAT, TEST], &[FORMAT, TEST]];
        let mut two = |one_in: u32| [rng.u32(0..one_in) == 0, rng.u32(0..one_in) == 0];
        let (push, is_direct, asks) = (two(2), two(6), two(6));
        let gates = [GATES[rng.usize(0..6)], GATES[rng.usize(0..6)]];
        MergeKnobs { batch: [1, 2, 4, 20][rng.usize(0..4)], gates, push, is_direct, asks }
    }

    fn to_toml(&self) -> String {
        let mut text = format!("refinery.batch = {}\nrefinery.gate_timeout = \"60s\"\n", self.batch);
        for (n, (rig, _)) in RIGS.iter().enumerate() {
            let merge = if self.is_direct[n] { "direct" } else { "mr" };
            let asks = if self.asks[n] { "[\"forge\"]" } else { "[]" };
            writeln!(
                text,
                "rigs.{rig}.gates = {:?}\nrigs.{rig}.push = {}\nrigs.{rig}.merge = \"{merge}\"\nrigs.{rig}.pull_request = {asks}",
                self.gates[n], self.push[n]
            )
            .expect("writing to a string cannot fail");
        }
        text
    }
}

/// The queue's own settings. Zero means: no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueKnobs {
    pub is_enabled: bool,
    pub town: usize,
    pub batch: usize,
    pub spawn_delay: u32,
}

impl Knobs {
    /// The cap that a queued bead is under.
    pub fn queued_town(&self) -> usize {
        if self.town > 0 { self.town } else { self.queue.town }
    }

    /// How many agents run at once where nothing but the guard of the machine says so.
    pub fn agents_guard(&self, is_queued: bool) -> Option<usize> {
        let has_cap = self.town > 0 || (self.queue.is_enabled && self.queue.town > 0);
        let has_own_cap = is_queued && self.queue.town > 0;
        (self.guards.agents > 0 && !has_cap && !has_own_cap).then_some(self.guards.agents)
    }

    /// Whether the daemon starts what is queued.
    pub fn starts_queued(&self) -> bool {
        self.town > 0 || self.queue.is_enabled
    }

    pub fn draw(rng: &mut Rng) -> Knobs {
        let mut one_of = |of: &[u32]| of[rng.usize(0..of.len())];
        Knobs {
            town: one_of(&[0, 1, 2, 3, 5]) as usize,
            rigs: [one_of(&[0, 0, 1, 2]) as usize, one_of(&[0, 0, 1, 2]) as usize],
            agents: [one_of(&[0, 0, 0, 1, 2]) as usize, one_of(&[0, 0, 0, 1]) as usize],
            host: one_of(&[0, 0, 0, 2]) as usize,
            batch: one_of(&[0, 0, 1, 2]) as usize,
            queue: QueueKnobs {
                is_enabled: one_of(&[0, 1]) == 1,
                town: one_of(&[0, 1, 2, 4]) as usize,
                batch: one_of(&[0, 0, 0, 1, 2]) as usize,
                spawn_delay: one_of(&[0, 0, 1, 5]),
            },
            by_priority: one_of(&[0, 1]) == 1,
            spawn_delay: one_of(&[0, 0, 0, 1, 5]),
            start_timeout: one_of(&[5, 60, 300]),
            max_failures: one_of(&[1, 2, 3]),
            breaker_reset: one_of(&[10, 60, 600]),
            cooldown: one_of(&[0, 1, 30, 300]),
            attempts: one_of(&[1, 2, 3]),
            max_run: one_of(&[0, 0, 60, 600]),
            stall_after: one_of(&[20, 60, 180, 600]),
            per_second: one_of(&[0, 0, 0, 1, 3]) as usize,
            heartbeat: one_of(&[10, 60, 180]),
            job_failures: 0,
            guards: GuardKnobs::default(),
            merging: None,
            more: String::new(),
        }
    }

    /// A config under which everything gets done in the end, each time by another way.
    pub fn peaceful(rng: &mut Rng) -> Knobs {
        let mut knobs = Knobs { attempts: 100, max_run: 600, max_failures: 3, heartbeat: 1800, ..Knobs::draw(rng) };
        knobs.queue.is_enabled = true;
        knobs
    }

    /// Nothing in the way of anybody.
    pub fn calm() -> Knobs {
        Knobs {
            town: 4,
            rigs: [0, 0],
            agents: [0, 0],
            host: 0,
            batch: 0,
            queue: QueueKnobs { is_enabled: true, town: 0, batch: 0, spawn_delay: 0 },
            by_priority: false,
            spawn_delay: 0,
            start_timeout: 60,
            max_failures: 3,
            breaker_reset: 60,
            cooldown: 1,
            attempts: 100,
            max_run: 600,
            stall_after: 600,
            per_second: 0,
            heartbeat: 60,
            job_failures: 0,
            guards: GuardKnobs::default(),
            merging: None,
            more: String::new(),
        }
    }

    pub fn to_toml(&self) -> String {
        let mut text = String::from("default_agent = \"ada\"\nruntime = \"process\"\nlanes.cron = 2\n");
        let batch = if self.batch == 0 { "\"auto\"".to_owned() } else { self.batch.to_string() };
        let order = if self.by_priority { "priority" } else { "fifo" };
        let lines = [
            format!("guards.starts_per_second = {}", self.per_second),
            format!("hosts.{:?}.max = {}", gt_engine::settings::host(), self.host),
            format!("cron.max_failures = {}", self.job_failures),
            format!("daemon.heartbeat = \"{}s\"", self.heartbeat),
            format!("scheduler.max_polecats = {}", self.town),
            format!("scheduler.batch_size = {batch}"),
            format!("queue.enabled = {}", self.queue.is_enabled),
            format!("queue.max_polecats = {}", self.queue.town),
            format!("queue.batch_size = {}", self.queue.batch),
            format!("queue.spawn_delay = \"{}s\"", self.queue.spawn_delay),
            format!("scheduler.order = \"{order}\""),
            format!("scheduler.spawn_delay = \"{}s\"", self.spawn_delay),
            format!("scheduler.start_timeout = \"{}s\"", self.start_timeout),
            format!("scheduler.max_failures = {}", self.max_failures),
            format!("scheduler.breaker_reset = \"{}s\"", self.breaker_reset),
            format!("witness.redispatch_cooldown = \"{}s\"", self.cooldown),
            format!("witness.redispatch_attempts = {}", self.attempts),
            format!("witness.max_run = \"{}s\"", self.max_run),
            format!("witness.stall_after = \"{}s\"", self.stall_after),
        ];
        for line in lines {
            writeln!(text, "{line}").expect("writing to a string cannot fail");
        }
        for ((rig, _), cap) in RIGS.iter().zip(self.rigs) {
            let isolation = if *rig == "mill" || self.merging.is_some() { "worktree" } else { "none" };
            writeln!(text, "rigs.{rig}.isolation = \"{isolation}\"\nrigs.{rig}.max_polecats = {cap}")
                .expect("writing to a string cannot fail");
        }
        for (agent, cap) in AGENTS.iter().zip(self.agents) {
            writeln!(text, "agents.{agent}.command = [\"{agent}\"]\nagents.{agent}.max = {cap}\nagents.{agent}.speaks = \"{SPEAKS}\"")
                .expect("writing to a string cannot fail");
        }
        text.push_str(&self.guards.to_toml());
        text.push_str(&self.more);
        text + &self.merging.as_ref().map(MergeKnobs::to_toml).unwrap_or_default()
    }
}

/// Replaces the config as a whole by this text, as an editor does.
pub fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).expect("the town's directory can be written");
    std::fs::rename(&beside, path).expect("the town's directory can be written");
}
