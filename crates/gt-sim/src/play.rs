//! A play: a stage, and the parts that act on it by chance, until nobody has anything to do any more.
//!
//! Somebody looks after each move, and says what is wrong; what is right is for others to know.

use std::time::Duration;

use crate::part::Part;
use crate::processes::Errand;
use crate::stage::Stage;

/// How often a process moves, beside the parts.
const MOVES_WEIGHT: u32 = 60;
/// How many moves lie between two rounds at the most.
const MOVES_MAX: usize = 20_000;
/// Everybody is given this long to notice what happened before they are said to sleep.
const NOTICE: Duration = Duration::from_millis(50);

pub struct Play {
    pub stage: Stage,
    pub parts: Vec<Box<dyn Part>>,
}

impl Play {
    /// Anything can happen.
    pub fn chaos(
        &mut self,
        n_steps: usize,
        mut look: impl FnMut(&mut Stage) -> Result<(), String>,
    ) -> Result<(), String> {
        for step in 0..n_steps {
            self.stage.world().lock().step = step;
            self.stage.reads_since = None;
            self.step();
            look(&mut self.stage)?;
        }
        Ok(())
    }

    /// One move, by whoever is drawn.
    fn step(&mut self) {
        let ready = self.stage.ready_strands();
        let moves = if ready.is_empty() { 0 } else { MOVES_WEIGHT };
        let weights: Vec<u32> = self.parts.iter().map(|part| part.weight(&self.stage)).collect();
        let (mut at, who) = {
            let mut world = self.stage.world().lock();
            (world.rng.u32(0..weights.iter().sum::<u32>() + moves), world.pick(&ready))
        };
        for (part, weight) in self.parts.iter_mut().zip(weights) {
            if at < weight {
                return part.act(&mut self.stage);
            }
            at -= weight;
        }
        let is_aside = self.stage.world().lock().rng.u32(0..4) == 0;
        if is_aside && self.stage.step_aside() {
            return;
        }
        if let Some(pid) = who {
            self.stage.step_strand(pid);
        }
    }

    /// Nothing goes wrong any more.
    pub fn heal(&mut self) {
        self.stage.world().lock().step += 1;
        for part in &mut self.parts {
            part.heal(&mut self.stage);
        }
    }

    pub fn tidy(&mut self) {
        for part in &mut self.parts {
            part.tidy(&mut self.stage);
        }
    }

    /// In the healed world: everything that is due by now, and that is noticed a moment later.
    pub fn round(&mut self, mut look: impl FnMut(&mut Stage) -> Result<(), String>) -> Result<(), String> {
        self.exhaust(&mut look)?;
        self.stage.world().lock().pass(NOTICE);
        self.exhaust(&mut look)
    }

    /// Time passes until somebody wakes up; `false`: nobody ever does.
    pub fn sleep(&mut self) -> bool {
        let Some(next) = self.stage.next_wake() else { return false };
        let mut world = self.stage.world().lock();
        let span = next.saturating_sub(world.uptime());
        world.pass(span);
        true
    }

    fn exhaust(&mut self, look: &mut impl FnMut(&mut Stage) -> Result<(), String>) -> Result<(), String> {
        for _ in 0..MOVES_MAX {
            self.stage.reads_since = None;
            self.stage.world().lock().step += 1;
            let ready = self.stage.ready_strands();
            let mover = {
                let mut world = self.stage.world().lock();
                // Where such work is a thread of its own, it begins while others move.
                let begins = world.git.is_used() && !world.asides.is_empty() && world.rng.u32(0..4) == 0;
                world.pick(&ready).filter(|_| !begins)
            };
            let has_moved = match mover {
                Some(pid) => {
                    self.stage.step_strand(pid);
                    true
                }
                None if self.stage.step_aside() => true,
                None if self.stage.n_daemons() == 0 => {
                    self.stage.launch(Errand::Daemon);
                    true
                }
                None => self.parts.iter_mut().any(|part| part.work(&mut self.stage)),
            };
            look(&mut self.stage)?;
            if !has_moved {
                return Ok(());
            }
        }
        Err("somebody is busy for ever".to_owned())
    }
}
