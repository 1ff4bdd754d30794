//! What agents use: tokens, and what they cost.

/// What a run has used, in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// All that the model read, cached or not.
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// The part of what it read that came from a cache.
    pub tokens_cached: u64,
    /// Millionths of a US dollar.
    pub cost_micros: u64,
}

impl Usage {
    pub(super) fn plus(self, other: Usage) -> Usage {
        Usage {
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            tokens_cached: self.tokens_cached.saturating_add(other.tokens_cached),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }

    /// What was used since this was the sum.
    #[must_use]
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            tokens_in: self.tokens_in.saturating_sub(before.tokens_in),
            tokens_out: self.tokens_out.saturating_sub(before.tokens_out),
            tokens_cached: self.tokens_cached.saturating_sub(before.tokens_cached),
            cost_micros: self.cost_micros.saturating_sub(before.cost_micros),
        }
    }

    /// All that was read or written.
    pub fn tokens(self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }

    /// What is used does not become less.
    #[must_use]
    pub fn most(self, other: Usage) -> Usage {
        Usage {
            tokens_in: self.tokens_in.max(other.tokens_in),
            tokens_out: self.tokens_out.max(other.tokens_out),
            tokens_cached: self.tokens_cached.max(other.tokens_cached),
            cost_micros: self.cost_micros.max(other.cost_micros),
        }
    }
}
