//! A play: a stage, and the parts that act on it by chance, until nobody has anything to do any more.

use crate::part::Part;
use crate::processes::Errand;
use crate::stage::Stage;

/// How often a process moves, beside the parts.
const MOVES_WEIGHT: u32 = 60;
/// How many moves lie between two rounds at the most.
const MOVES_MAX: usize = 20_000;

pub struct Play {
    pub stage: Stage,
    pub parts: Vec<Box<dyn Part>>,
}

impl Play {
    /// One move, by whoever is drawn.
    pub fn step(&mut self) {
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

    pub fn heal(&mut self) {
        for part in &mut self.parts {
            part.heal(&mut self.stage);
        }
    }

    pub fn tidy(&mut self) {
        for part in &mut self.parts {
            part.tidy(&mut self.stage);
        }
    }

    /// In the healed world: everything that is due at this moment, with somebody who looks after each move.
    pub fn exhaust(&mut self, mut look: impl FnMut(&mut Stage) -> Result<(), String>) -> Result<(), String> {
        for _ in 0..MOVES_MAX {
            self.stage.reads_since = None;
            self.stage.world().lock().step += 1;
            let ready = self.stage.ready_strands();
            let mover = self.stage.world().lock().pick(&ready);
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
