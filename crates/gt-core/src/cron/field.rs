//! The five fields: what they are called, and which values they have.

/// One of the five fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

impl Field {
    /// The smallest and the largest number.
    pub(super) fn bounds(self) -> (u8, u8) {
        match self {
            Field::Minute => (0, 59),
            Field::Hour => (0, 23),
            Field::Day => (1, 31),
            Field::Month => (1, 12),
            Field::Weekday => (0, 7),
        }
    }

    /// How many different values there are; Sunday, 0 and 7, is one.
    pub(super) fn n_values(self) -> u8 {
        let (min, max) = self.bounds();
        if self == Field::Weekday { max } else { max - min + 1 }
    }

    /// The names of values, from the smallest on.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Field::Minute | Field::Hour | Field::Day => &[],
            Field::Month => &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
            Field::Weekday => &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        }
    }

    /// The name with which a longer word begins, as in `monday`.
    pub(super) fn name_within(self, word: &str) -> Option<&'static str> {
        let begins = |name: &&str| word.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        self.names().iter().copied().find(begins).filter(|_| word.bytes().all(|byte| byte.is_ascii_alphabetic()))
    }

    /// As it is called in a sentence, with its article.
    pub fn name(self) -> &'static str {
        match self {
            Field::Minute => "a minute",
            Field::Hour => "an hour",
            Field::Day => "a day of the month",
            Field::Month => "a month",
            Field::Weekday => "a day of the week",
        }
    }

    /// What may stand in it.
    pub fn values(self) -> &'static str {
        match self {
            Field::Minute => "0 to 59",
            Field::Hour => "0 to 23",
            Field::Day => "1 to 31, or such as L, L-3, LW, 15W",
            Field::Month => "1 to 12, or jan to dec",
            Field::Weekday => "0 to 7, or sun to sat, or such as 5L, fri#2",
        }
    }
}
