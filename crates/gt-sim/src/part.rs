//! A part of the world: something that acts by chance, and can be put right. Each later capability adds one.

use crate::stage::Stage;

pub trait Part {
    /// How often it acts, beside the others.
    fn weight(&self, stage: &Stage) -> u32;

    /// Does one thing by chance.
    fn act(&mut self, stage: &mut Stage);

    /// Puts right what is nobody's decision: after this the town must come to rest by itself.
    fn heal(&mut self, stage: &mut Stage);

    /// Takes back decisions that only a person can take back: after this everything must get done.
    fn tidy(&mut self, _stage: &mut Stage) {}

    /// In the healed world: does what is due at once; says whether there was anything.
    fn work(&mut self, _stage: &mut Stage) -> bool {
        false
    }
}
