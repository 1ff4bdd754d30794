//! What goes wrong, and how often: each seed draws its own mixture, so that every fault is met alone and in company.

use fastrand::Rng;

/// Each number means: once in so many times; zero: never.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// A strand stops between two steps.
    pub halt: u32,
    /// A process dies at a boundary.
    pub death: u32,
    /// A write is refused, before or at its commit.
    pub refusal: u32,
    /// A write waits for a long time.
    pub delay: u32,
    /// A wake-up is lost, as when a command dies after its commit.
    pub lost_bell: u32,
    /// A start goes wrong.
    pub bad_start: u32,
    /// A program that a start needs is not found.
    pub missing: u32,
    /// A worktree cannot be made.
    pub bad_place: u32,
    /// A run leaves work in its worktree that is on no branch.
    pub unsaved: u32,
    /// The keeper does not answer.
    pub deaf_keeper: u32,
    /// An end is not told.
    pub lost_news: u32,
    /// An acknowledgement is lost.
    pub lost_acknowledgement: u32,
    /// A run leaves no sign of life that anybody could see.
    pub unseen: u32,
    /// A run whose start is not recorded is just executing its program: it lives, and nothing more is known of it.
    pub executing: u32,
    /// Git is killed, or cannot be run.
    pub git: u32,
    /// Git takes its time with a ref, and others move meanwhile.
    pub slow_git: u32,
    /// The way to an origin is cut off.
    pub remote: u32,
    /// A gate fails though nothing is wrong.
    pub flake: u32,
    /// A gate is killed from outside.
    pub killed_gate: u32,
    /// A receiver of answers does not take one, or is not heard when it does. Only where answers are delivered.
    pub bad_receiver: u32,
    /// Two daemons run at once, because a lock does not hold.
    pub two_daemons: bool,
    /// Nobody runs a daemon: commands pass for themselves.
    pub no_daemon: bool,
    /// Passes do not wait for each other, because a lock does not hold: the claim alone must do.
    pub broken_turn: bool,
}

impl Faults {
    /// Half of the faults, each in its own strength.
    pub fn draw(rng: &mut Rng) -> Faults {
        let mut one_in = |often: u32, rarely: u32| if rng.bool() { 0 } else { rng.u32(often..=rarely) };
        Faults {
            death: one_in(60, 1200),
            refusal: one_in(20, 300),
            delay: one_in(40, 400),
            lost_bell: one_in(2, 20),
            bad_start: one_in(3, 30),
            bad_place: one_in(3, 30),
            unsaved: one_in(2, 6),
            deaf_keeper: one_in(10, 100),
            lost_news: one_in(3, 30),
            lost_acknowledgement: one_in(2, 10),
            unseen: one_in(4, 20),
            executing: one_in(2, 10),
            halt: rng.u32(2..12),
            two_daemons: rng.u32(0..4) == 0,
            no_daemon: rng.u32(0..6) == 0,
            broken_turn: rng.u32(0..5) == 0,

            missing: if rng.bool() { 0 } else { rng.u32(30..=300) },
            ..Faults::default()
        }
    }

    /// What can go wrong with merging besides.
    pub fn draw_merging(&mut self, rng: &mut Rng) {
        let mut one_in = |often: u32, rarely: u32| if rng.bool() { 0 } else { rng.u32(often..=rarely) };
        self.git = one_in(20, 200);
        self.remote = one_in(4, 40);
        self.flake = one_in(4, 40);
        self.killed_gate = one_in(4, 40);
        self.slow_git = one_in(4, 40);
    }

    /// Nothing goes wrong any more; only the order of things is still open.
    pub fn none(halt: u32) -> Faults {
        Faults { halt, ..Faults::default() }
    }
}
