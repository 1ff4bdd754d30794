//! Reading the words of a time. Knows no zone and no present: what is `tomorrow` is found out by others.

use jiff::civil::{Date, Time, Weekday};
use jiff::{SignedDuration, Timestamp};

use super::BadWhen;
use crate::text::short_line;
use crate::time;

/// What a text says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum When {
    At(Timestamp),
    In(SignedDuration),
    On(Day, Time),
    /// A day and no time of it, with the words that name it.
    Day(Day, String),
}

/// The day on which a time is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Day {
    /// None was named.
    Any,
    Date(Date),
    Yesterday,
    Today,
    Tomorrow,
    Weekday(Weekday),
    NextWeekday(Weekday),
}

pub(super) fn when(text: &str) -> Result<When, BadWhen> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if let Some(at) = time::parse(text) {
        return Ok(When::At(at));
    }
    if let Some(length) = lower.strip_prefix("in ") {
        if is_number(length.trim()) {
            return Err(bare_number(length.trim(), ""));
        }
        return span(length)?.map(When::In).ok_or_else(|| BadWhen::NotALength { text: short_line(text) });
    }
    if let Some(span) = span(&lower)? {
        return Ok(When::In(span));
    }
    let spaced = time_apart(&lower);
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let Some(first) = words.first() else { return Err(BadWhen::Empty) };
    let (day, n_day_words) = match (day(first)?, words.get(1).and_then(|word| weekday(word))) {
        (Some(day), _) => (day, 1),
        (None, Some(weekday)) if *first == "next" => (Day::NextWeekday(weekday), 2),
        (None, _) => (Day::Any, 0),
    };
    let (day_words, time_words) = words.split_at(n_day_words);
    let day_words = day_words.join(" ");
    let time_words = time_words.strip_prefix(&["at"]).unwrap_or(time_words);
    match time_words {
        [] if !day_words.is_empty() => Ok(When::Day(day, day_words)),
        time_words => Ok(When::On(day, time_of_day(&day_words, time_words, text)?)),
    }
}

/// A date and a time with a `T` between them, as two words.
fn time_apart(lower: &str) -> String {
    let time = lower.get(10..).and_then(|rest| rest.strip_prefix('t'));
    match (lower.get(..10), time) {
        (Some(date), Some(time)) if is_iso(date) && time.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{date} {time}")
        }
        _ => lower.to_owned(),
    }
}

/// The day that a word names, if it names one.
fn day(word: &str) -> Result<Option<Day>, BadWhen> {
    if is_iso(word) {
        let date = word.parse().map_err(|_| BadWhen::NotADay { text: short_line(word) })?;
        return Ok(Some(Day::Date(date)));
    }
    let numbers: Vec<&str> = word.split(['/', '.', '-']).collect();
    if let [hour, minute] = numbers[..]
        && word.contains('.')
        && let (Ok(hour @ 0..=23), Ok(minute @ 0..=59), 2) = (hour.parse::<u8>(), minute.parse::<u8>(), minute.len())
    {
        return Err(BadWhen::Dotted { text: short_line(word), time: format!("{hour}:{minute:02}") });
    }
    if numbers.len() > 1 && numbers.iter().all(|number| is_number(number)) {
        return Err(BadWhen::DateOrder { text: short_line(word) });
    }
    Ok(match word {
        "yesterday" => Some(Day::Yesterday),
        "today" => Some(Day::Today),
        "tomorrow" => Some(Day::Tomorrow),
        _ => weekday(word).map(Day::Weekday),
    })
}

/// Whether a word has the shape of `2026-12-01`.
fn is_iso(word: &str) -> bool {
    let is_dash = |at| at == 4 || at == 7;
    word.len() == 10 && word.bytes().enumerate().all(|(at, b)| if is_dash(at) { b == b'-' } else { b.is_ascii_digit() })
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

/// `9:00`, `9am`, `9:30 pm`.
fn time_of_day(day: &str, words: &[&str], text: &str) -> Result<Time, BadWhen> {
    let unknown = || BadWhen::Unknown { text: short_line(text) };
    let word = match words {
        [word] => (*word).to_owned(),
        [word, half @ ("am" | "pm")] => format!("{word}{half}"),
        _ => return Err(unknown()),
    };
    if is_number(&word) {
        return Err(bare_number(&word, day));
    }
    let half = ["am", "pm"].into_iter().find(|half| word.ends_with(half));
    let numbers: Vec<&str> = word.strip_suffix(half.unwrap_or_default()).unwrap_or(&word).split(':').collect();
    if numbers.len() > 3 || !numbers.iter().all(|number| is_number(number)) {
        return Err(unknown());
    }
    clock(&numbers, half).ok_or_else(|| BadWhen::NotATimeOfDay { text: short_line(&word) })
}

/// Hours, minutes and seconds; in halves of twelve hours if one is named.
fn clock(numbers: &[&str], half: Option<&str>) -> Option<Time> {
    let hour: i8 = numbers.first()?.parse().ok()?;
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some("am") => hour % 12,
        Some(_) => hour % 12 + 12,
    };
    if numbers[1..].iter().any(|number| number.len() != 2) {
        return None;
    }
    let mut rest = numbers[1..].iter().map(|number| number.parse().ok());
    Time::new(hour, rest.next().unwrap_or(Some(0))?, rest.next().unwrap_or(Some(0))?, 0).ok()
}

/// Numbers with their units, as in `2h30m` or `90 minutes`; `None` if it is anything else.
fn span(text: &str) -> Result<Option<SignedDuration>, BadWhen> {
    let mut rest = text.trim();
    let mut seconds: i64 = 0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let after = after.trim_start();
        let (word, after) = after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        let Some(unit) = unit_seconds(word).filter(|_| !number.is_empty()) else { return Ok(None) };
        let length = number.parse::<i64>().ok().and_then(|number| number.checked_mul(unit));
        seconds = length
            .and_then(|length| seconds.checked_add(length))
            .ok_or_else(|| BadWhen::TooFar { text: short_line(text) })?;
        rest = after.trim_start();
    }
    Ok((!text.trim().is_empty()).then(|| SignedDuration::from_secs(seconds)))
}

fn unit_seconds(word: &str) -> Option<i64> {
    Some(match word {
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hr" | "hrs" | "hour" | "hours" => 60 * 60,
        "d" | "day" | "days" => 24 * 60 * 60,
        "w" | "week" | "weeks" => 7 * 24 * 60 * 60,
        _ => return None,
    })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn bare_number(number: &str, day: &str) -> BadWhen {
    BadWhen::BareNumber { number: short_line(number), day: day.to_owned() }
}
