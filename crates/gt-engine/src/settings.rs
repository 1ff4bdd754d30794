//! The settings of dispatch, read off the config and the machine. // SPEC D3, D9
//!
//! The rules themselves are `gt_core::plan`; here a config becomes a `Policy`, and the machine's state its guards.

mod guards;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gt_core::lane::Lanes;
use gt_core::merge::Strategy;
use gt_core::plan::{Caps, Guard, PerSide, Policy, QueueRules, Side};
use gt_core::rig::Rig;
use gt_core::session::{Mode, Overflow, Rules};
use gt_store::{Run, Store};
use jiff::SignedDuration;
use jiff::tz::TimeZone;

use crate::agents;
use crate::config::{Config, Value, join};
use crate::error::{TownError, chain};
use crate::in_force;
use crate::places;
use crate::surroundings::{Gauge, Surroundings, ThisMachine};
use crate::town::Town;

/// How long a look at the machine holds.
const MEASURED_FOR: Duration = Duration::from_secs(1);

/// What dispatch goes by: the config as it was read last.
#[derive(Debug)]
pub struct Settings {
    pub config: Config,
    /// The least time between two starts; zero: they come together.
    pub spawn_delay: PerSide<SignedDuration>,
    pub start_timeout: SignedDuration,
    /// `None`: runs may last for ever.
    pub max_run: Option<SignedDuration>,
    /// The same for turns of sessions.
    pub turn_timeout: Option<SignedDuration>,
    /// Silence after which a run counts as stalled; `None`: however silent, it is left alone.
    pub stall_after: Option<SignedDuration>,
    pub heartbeat: SignedDuration,
    pub sweep: SignedDuration,
    policy: Policy,
    gauge: Arc<dyn Gauge>,
    /// What the machine said last, and when: it is not asked at every turn.
    measured: Mutex<Option<(Duration, Vec<Guard>)>>,
    /// Whether runs get a terminal: asked until there is an answer.
    terminal: OnceLock<bool>,
}

/// Other limits than the config's, for one command.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub batch: Option<usize>,
    pub max_polecats: Option<usize>,
    /// Whether it starts what is queued, whatever `queue.enabled` tells the daemon.
    pub starts_queued: bool,
}

/// Where a polecat works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// In a worktree of its own.
    Worktree,
    /// In the rig itself.
    None,
}

impl Settings {
    /// For this machine.
    pub fn new(config: Config) -> Settings {
        Settings::on(ThisMachine::gauge(), config)
    }

    /// For the machine that a gauge measures.
    pub fn on(gauge: Arc<dyn Gauge>, config: Config) -> Settings {
        let span = |key: &str| SignedDuration::try_from(config.duration(key)).unwrap_or(SignedDuration::MAX);
        let some = |span: SignedDuration| (!span.is_zero()).then_some(span);
        Settings {
            spawn_delay: PerSide { scheduler: span("scheduler.spawn_delay"), queue: span("queue.spawn_delay") },
            start_timeout: span("scheduler.start_timeout"),
            max_run: some(span("witness.max_run")),
            turn_timeout: some(span("sessions.timeout")),
            stall_after: some(span("witness.stall_after")),
            heartbeat: span("daemon.heartbeat"),
            sweep: span("convoy.sweep"),
            policy: policy(&config),
            gauge,
            measured: Mutex::new(None),
            terminal: OnceLock::new(),
            config,
        }
    }

    /// The settings in force: the town's config, or the last good one.
    pub fn load(town: &Town, store: &mut Store, around: &dyn Surroundings) -> Result<Settings, TownError> {
        Ok(Settings::on(around.gauge(), in_force::load(town, store, around)?.config))
    }

    /// How long a run may last.
    pub fn longest(&self, run: &Run) -> Option<SignedDuration> {
        match &run.turn {
            Some(_) if gt_core::defect!("timeout-never-over") => None,
            Some(turn) => turn.timeout.or(self.turn_timeout),
            None => self.max_run,
        }
    }

    /// What is said of a run that lasted longer.
    pub fn too_long(&self, run: &Run) -> String {
        let key = match &run.turn {
            Some(turn) => match turn.timeout {
                Some(most) => return format!("it ran longer than its job may: {most:#}"),
                None => "sessions.timeout",
            },
            None => "witness.max_run",
        };
        format!("it ran longer than `{key}`")
    }

    /// How sessions take messages, unless somebody has set it otherwise for one of them.
    pub fn session_rules(&self) -> Rules {
        let word = |key: &str| self.config.text(key);
        Rules {
            mode: word("sessions.mode").as_deref().and_then(Mode::parse).unwrap_or_default(),
            cap: usize::try_from(self.config.integer("sessions.cap")).unwrap_or(0),
            overflow: word("sessions.drop").as_deref().and_then(Overflow::parse).unwrap_or_default(),
            debounce: SignedDuration::from_millis(self.config.integer("sessions.debounce_ms")),
        }
    }

    /// Who answers or works where nobody is named.
    pub fn default_agent(&self) -> String {
        self.policy.default_agent.clone()
    }

    pub fn lanes(&self) -> &Lanes {
        &self.policy.lanes
    }

    /// The policy, with the guards that the machine trips right now, and its time zone.
    pub fn policy(&self, town: &Path) -> Policy {
        Policy { guards: self.guards(town), zone: self.machine_zone(), ..self.policy.clone() }
    }

    pub(crate) fn machine_zone(&self) -> TimeZone {
        self.gauge.zone()
    }

    fn guards(&self, town: &Path) -> Vec<Guard> {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.gauge.uptime();
        match &*measured {
            Some((at, guards)) if now < *at + MEASURED_FOR || gt_core::defect!("guards-measured-once") => {
                guards.clone()
            }
            _ => measured.insert((now, guards::tripped(&self.config, &self.gauge.measure(town)))).1.clone(),
        }
    }

    /// Other limits, for one command.
    pub fn limit_once(&mut self, limits: Limits) {
        self.policy.batch_once = limits.batch;
        self.policy.caps.town = limits.max_polecats.or(self.policy.caps.town);
        if let Some(queue) = &mut self.policy.queue {
            queue.is_open = limits.starts_queued;
            queue.cap = limits.max_polecats.or(queue.cap);
            // Whoever names a number means it, more or less.
            queue.batch = if limits.batch.is_some() { None } else { queue.batch };
        }
        if limits.batch.is_some() {
            self.policy.batch = None;
        }
    }

    /// Whether starts of a side keep a distance.
    pub fn is_spaced(&self, side: Side) -> bool {
        !self.spawn_delay.of(side).is_zero()
    }

    /// Whether runs get a terminal; the error says why they cannot.
    pub fn in_terminal(&self) -> Result<bool, String> {
        if let Some(known) = self.terminal.get() {
            return Ok(*known);
        }
        let wants = places::wants_terminal(&self.config).map_err(|error| chain(&error))?;
        Ok(*self.terminal.get_or_init(|| wants))
    }

    pub fn isolation(&self, rig: &str) -> Isolation {
        match self.config.text(&join(&["rigs", rig, "isolation"])).as_deref() {
            Some("none") => Isolation::None,
            _ => Isolation::Worktree,
        }
    }

    /// What becomes of finished work of a rig, unless its sling said otherwise.
    pub fn merge(&self, rig: &str) -> Strategy {
        let word = self.config.text(&join(&["rigs", rig, "merge"]));
        word.as_deref().and_then(Strategy::parse).unwrap_or_default()
    }

    /// What must succeed before something is merged in a rig.
    pub fn gates(&self, rig: &str) -> Vec<String> {
        self.config.texts(&join(&["rigs", rig, "gates"]))
    }

    /// Whether merged work of a rig is pushed to its origin.
    pub fn push(&self, rig: &Rig) -> bool {
        pushes(&self.config, rig)
    }

    /// The command that asks for merges in a rig whose branches nobody pushes to.
    pub fn pull_request(&self, rig: &str) -> Option<Vec<String>> {
        pull_request(&self.config, rig)
    }

    /// How many merges are tried together.
    pub fn merge_batch(&self) -> usize {
        usize::try_from(self.config.integer("refinery.batch")).unwrap_or(1).max(1)
    }

    pub fn gate_timeout(&self) -> Duration {
        self.config.duration("refinery.gate_timeout")
    }

    /// How often pull requests are looked at.
    pub fn merge_poll(&self) -> SignedDuration {
        SignedDuration::try_from(self.config.duration("refinery.poll")).unwrap_or(SignedDuration::MAX)
    }
}

/// Whether a config lets merged work of a rig be pushed. A repository of the user's is not pushed unless they have said so.
pub(crate) fn pushes(config: &Config, rig: &Rig) -> bool {
    match config.value(&join(&["rigs", &rig.name, "push"])) {
        Some(Value::Boolean(is_wanted)) => is_wanted,
        _ => rig.url.is_some() || pull_request(config, &rig.name).is_some(),
    }
}

fn pull_request(config: &Config, rig: &str) -> Option<Vec<String>> {
    Some(config.texts(&join(&["rigs", rig, "pull_request"]))).filter(|argv| !argv.is_empty())
}

/// The name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn policy(config: &Config) -> Policy {
    let count = |key: &str| usize::try_from(config.integer(key)).ok().filter(|n| *n > 0);
    let span = |key: &str| SignedDuration::try_from(config.duration(key)).unwrap_or(SignedDuration::MAX);
    let host = host();
    let town = count("scheduler.max_polecats");
    let has_queue_cap = config.boolean("queue.enabled") && count("queue.max_polecats").is_some();
    let caps = Caps {
        town,
        rigs: named_caps(config, "rigs", "max_polecats"),
        agents: named_caps(config, "agents", "max"),
        host: count(&join(&["hosts", &host, "max"])),
        guard: count("guards.max_agents").filter(|_| town.is_none() && !has_queue_cap),
    };
    Policy {
        is_deferred: town.is_some(),
        caps,
        batch: match config.value("scheduler.batch_size") {
            Some(Value::Integer(n)) => usize::try_from(n).ok(),
            _ => None,
        },
        batch_once: None,
        queue: town.is_none().then(|| QueueRules {
            cap: count("queue.max_polecats"),
            batch: count("queue.batch_size"),
            is_open: config.boolean("queue.enabled"),
        }),
        by_priority: config.text("scheduler.order").as_deref() == Some("priority"),
        default_agent: config.text("default_agent").unwrap_or_default(),
        host,
        guards: Vec::new(),
        starts_per_second: count("guards.starts_per_second"),
        daily_micros: match config.value("budget.daily") {
            Some(Value::Money { micros, .. }) if micros > 0 => i64::try_from(micros).ok(),
            _ => None,
        },
        zone: TimeZone::UTC,
        max_failures: config.integer("scheduler.max_failures"),
        breaker_reset: span("scheduler.breaker_reset"),
        redispatch_cooldown: span("witness.redispatch_cooldown"),
        redispatch_attempts: config.integer("witness.redispatch_attempts"),
        lanes: lanes(config),
        windows: windows(config),
    }
}

/// The lanes of the config, and of the environment.
fn lanes(config: &Config) -> Lanes {
    let limit = |name: &str| usize::try_from(config.integer(&join(&["lanes", name]))).ok();
    let names = Lanes::default().iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let own = config.names("lanes").into_iter().map(str::to_owned);
    let set: Vec<(String, usize)> =
        names.into_iter().chain(own).filter_map(|name| Some((name.clone(), limit(&name)?))).collect();
    Lanes::default().with(set).overridden(|name| std::env::var(name).ok())
}

/// How much the conversations of agents can hold, as far as anybody knows.
fn windows(config: &Config) -> BTreeMap<String, u64> {
    let presets = agents::PRESETS.iter().map(|preset| preset.name);
    let names = config.names("agents").into_iter().chain(presets);
    names.filter_map(|name| Some((name.to_owned(), agents::context_window(config, name)?))).collect()
}

fn named_caps(config: &Config, group: &str, leaf: &str) -> BTreeMap<String, usize> {
    let cap = |name: &str| usize::try_from(config.integer(&join(&[group, name, leaf]))).ok().filter(|n| *n > 0);
    config.names(group).into_iter().filter_map(|name| Some((name.to_owned(), cap(name)?))).collect()
}
