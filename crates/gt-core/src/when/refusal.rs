//! Why a text is no time, or not a clear one: one sentence each, and what to type instead.

use thiserror::Error;

/// Why a text is no time that can be waited for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadWhen {
    #[error("a time is not an empty text")]
    Empty,
    #[error("`{text}` is not a time")]
    Unknown { text: String },
    #[error("`{text}` is not a length of time")]
    NotALength { text: String },
    #[error("`{number}` could be a time of day, or a number of minutes or hours")]
    BareNumber { number: String, day: String },
    #[error("`{day}` says no time of day")]
    NoTime { day: String },
    #[error("`{text}` is read as different days in different countries")]
    DateOrder { text: String },
    #[error("`{text}` could be a time of day, or a day and a month")]
    Dotted { text: String, time: String },
    #[error("`{text}` is not a day of the calendar")]
    NotADay { text: String },
    #[error("`{text}` is not a time of day: they go from 0:00 to 23:59, or from 12am to 11:59pm")]
    NotATimeOfDay { text: String },
    #[error("{clock} does not exist in {zone}: the clock jumps from {from} to {to}")]
    LeftOut { clock: String, zone: String, from: String, to: String },
    #[error("{clock} happens twice in {zone}: {first} and {second}")]
    Twice { clock: String, zone: String, first: String, second: String },
    #[error("`{text}` could be {first}{} or {second}", if *has_passed { ", which has passed," } else { "" })]
    TwoDays { text: String, first: String, second: String, has_passed: bool },
    #[error("`{text}` has passed: it was {clock}")]
    Past { text: String, clock: String, time: String },
    #[error("`{text}` is further away than times go")]
    TooFar { text: String },
}

const DATE: &str = "say year, month, day and time: `2026-12-01 9:00`";

impl BadWhen {
    /// What to type instead.
    pub fn hint(&self) -> String {
        match self {
            BadWhen::Empty | BadWhen::Unknown { .. } | BadWhen::TooFar { .. } => {
                "say `in 2h`, `9:00`, `tomorrow 9:00`, `friday 9:00` or `2026-12-01 9:00`".to_owned()
            }
            BadWhen::NotALength { .. } => "say `in 90m`, `in 2h30m` or `in 3d`".to_owned(),
            // `next friday 9:00` would be refused in turn.
            BadWhen::NoTime { day } | BadWhen::BareNumber { day, .. } if is_next(day) => DATE.to_owned(),
            BadWhen::BareNumber { number, day } => bare_number_hint(number, day),
            BadWhen::NoTime { day } => format!("say `{day} 9:00`"),
            BadWhen::TwoDays { second, has_passed: true, .. } => format!("say `{second}`"),
            BadWhen::DateOrder { .. } | BadWhen::NotADay { .. } => DATE.to_owned(),
            BadWhen::Dotted { time, .. } => format!("say `{time}`, or year, month, day and time: `2026-12-01 9:00`"),
            BadWhen::NotATimeOfDay { .. } => "say `9:00`, `21:30` or `9:30pm`".to_owned(),
            BadWhen::LeftOut { to, .. } => format!("say `{to}`"),
            BadWhen::Twice { first, second, .. } | BadWhen::TwoDays { first, second, .. } => {
                format!("say `{first}` or `{second}`")
            }
            BadWhen::Past { time, .. } => format!("say a time to come: `tomorrow {time}`, `in 1h`"),
        }
    }
}

/// Whether somebody says `next friday`, which may be two days.
fn is_next(day: &str) -> bool {
    day.starts_with("next ")
}

/// Only what would be taken: not each number is an hour, or can be followed by `pm`.
fn bare_number_hint(number: &str, day: &str) -> String {
    let hour = number.parse::<u8>().ok().filter(|hour| *hour < 24);
    match (hour, day) {
        (Some(0), "") => format!("say `{number}:00`"),
        (Some(_), "") => format!("say `{number}:00`, `in {number}m` or `in {number}h`"),
        (Some(1..=12), day) => format!("say `{day} {number}:00`, or `{day} {number}pm`"),
        (Some(_), day) => format!("say `{day} {number}:00`"),
        (None, "") if number.len() < 6 => format!("say `in {number}m` or `in {number}h`"),
        (None, "") => "say `9:00`, `in 90m` or `in 3d`".to_owned(),
        (None, day) => format!("say `{day} 9:00`"),
    }
}
