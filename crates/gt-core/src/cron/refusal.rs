//! Why a text is no schedule: one sentence each, and what to type instead.

use thiserror::Error;

use super::Field;

/// Why a text is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadExpr {
    #[error("a schedule is not an empty text")]
    Empty,
    #[error("a schedule has {max} characters at the most, and this one has {n}")]
    TooLong { n: usize, max: usize },
    #[error("a schedule has five fields (minute, hour, day, month, weekday), and `{text}` has {n}")]
    FieldCount { text: String, n: usize },
    #[error(
        "`{text}` has {n} fields: seconds and years are not supported, there are five (minute, hour, day, month, weekday)"
    )]
    TooManyFields { text: String, n: usize },
    #[error("`{word}` is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly")]
    Nickname { word: String },
    #[error("`@reboot` is not a time: nothing here happens when a machine starts")]
    Reboot,
    #[error("`@every` is not part of a schedule with fields")]
    Every,
    #[error("the zone is not part of the schedule, as in `{word}`")]
    Zone { word: String },
    #[error("`{part}` is not {}: {}", field.name(), field.values())]
    NotAValue { field: Field, part: String },
    #[error("`{text}` has an empty part where {} belongs", field.name())]
    EmptyPart { field: Field, text: String },
    #[error("the range `{part}` runs backwards")]
    Backwards { field: Field, part: String, forwards: String },
    #[error("the step in `{part}` is not a number from 1 to {max}")]
    Step { field: Field, part: String, max: u8 },
    #[error("`{part}` says no weekday: `L` is the last one of a month only after it")]
    LastOfWhat { part: String },
    #[error("`{part}` is not one of a month's weekdays: they are #1 to #5")]
    Nth { part: String },
}

impl BadExpr {
    /// What to type instead, where that is clear.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            BadExpr::Empty | BadExpr::FieldCount { .. } => "for each day at 9:00 say `0 9 * * *`".to_owned(),
            BadExpr::TooLong { .. } => "say ranges and steps, as in `*/5 9-17 * * *`".to_owned(),
            BadExpr::TooManyFields { .. } => "leave out the seconds in front and the year at the end".to_owned(),
            BadExpr::Nickname { .. } => "say `@daily`, or five fields such as `0 9 * * *`".to_owned(),
            BadExpr::Every => "say `--every 5m` instead".to_owned(),
            BadExpr::Zone { .. } => "say it apart, as in `--tz Europe/Berlin`".to_owned(),
            BadExpr::Backwards { forwards, .. } => format!("say `{forwards}`"),
            BadExpr::Step { field: Field::Minute, .. } => "for each 90 minutes, say, there is `--every 90m`".to_owned(),
            BadExpr::Step { field: Field::Hour, .. } => "for each 36 hours, say, there is `--every 36h`".to_owned(),
            BadExpr::LastOfWhat { .. } => "say `5L` for the last Friday, or `L` as the day of the month".to_owned(),
            BadExpr::Nth { .. } => "say `fri#2` for the second Friday, `friL` for the last".to_owned(),
            BadExpr::EmptyPart { .. } => "separate values with one comma, as in `1,2`".to_owned(),
            BadExpr::NotAValue { field, part } => format!("say `{}`", field.name_within(part)?),
            BadExpr::Reboot | BadExpr::Step { .. } => return None,
        })
    }
}
