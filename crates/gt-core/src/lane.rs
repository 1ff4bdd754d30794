//! Lanes: named limits for how many turns run at once. // SPEC L1
//!
//! The lane `polecat` is the scheduler's cap and its own business. Counting what runs is the store's.

use std::collections::BTreeMap;

/// The lane of what names none, or one that is not there.
pub const MAIN: &str = "main";
/// The lane of turns that an agent asks for.
pub const SUBAGENT: &str = "subagent";
/// The scheduler's own.
pub const POLECAT: &str = "polecat";

/// The lanes of a town, each with its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lanes {
    limits: BTreeMap<String, usize>,
}

impl Default for Lanes {
    fn default() -> Lanes {
        let limits = [(MAIN, 2), (SUBAGENT, 4), ("delegate", 100), ("cron", 1)];
        Lanes { limits: limits.into_iter().map(|(name, limit)| (name.to_owned(), limit)).collect() }
    }
}

impl Lanes {
    /// The lanes as somebody set them; a limit of 0 is none at all, and is passed over.
    #[must_use]
    pub fn with(mut self, set: impl IntoIterator<Item = (String, usize)>) -> Lanes {
        let sensible = set.into_iter().filter(|(name, limit)| *limit > 0 && name != POLECAT);
        self.limits.extend(sensible);
        self
    }

    /// The same, with what the environment sets: `GT_LANE_X`, else `GOCLAW_LANE_X`; what is no number above 0 is passed over.
    #[must_use]
    pub fn overridden(mut self, variable: impl Fn(&str) -> Option<String>) -> Lanes {
        for (name, limit) in &mut self.limits {
            let word = name.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            let set = ["GT_LANE_", "GOCLAW_LANE_"].into_iter().find_map(|prefix| {
                variable(&format!("{prefix}{word}"))?.trim().parse::<usize>().ok().filter(|limit| *limit > 0)
            });
            *limit = set.unwrap_or(*limit);
        }
        self
    }

    /// The lane that a name stands for.
    pub fn resolve<'a>(&'a self, name: &str) -> &'a str {
        self.limits.get_key_value(name).map_or(MAIN, |(name, _)| name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.limits.contains_key(name)
    }

    /// How many run at once in the lane that a name stands for.
    pub fn limit(&self, name: &str) -> usize {
        self.limits.get(self.resolve(name)).copied().unwrap_or(1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.limits.iter().map(|(name, limit)| (name.as_str(), *limit))
    }
}

#[cfg(test)]
mod tests;
