//! Reading a schedule: five fields, each a list of values, ranges and steps.
//!
//! Owns: what may be written. What it means on a calendar is `calendar`'s.

use super::calendar::{Calendar, MonthDays, Set, Weekdays};
use super::{BadExpr, Expr, Field};
use crate::text::short_line;

/// Longest text of a schedule.
const CHARS_MAX: usize = 1000;
const NTH_MAX: u8 = 5;
const BEFORE_LAST_MAX: u8 = 30;

pub(super) fn expr(text: &str) -> Result<Expr, BadExpr> {
    let n = text.chars().count();
    if n > CHARS_MAX {
        return Err(BadExpr::TooLong { n, max: CHARS_MAX });
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let written = words.join(" ");
    let Some(first) = words.first() else { return Err(BadExpr::Empty) };
    if first.starts_with('@') {
        return fields(nickname(&words)?).map(|expr| Expr { text: written, ..expr });
    }
    if first.to_ascii_lowercase().starts_with("cron_tz=") || first.to_ascii_lowercase().starts_with("tz=") {
        return Err(BadExpr::Zone { word: short_line(first) });
    }
    match words.len() {
        5 => fields([words[0], words[1], words[2], words[3], words[4]]).map(|expr| Expr { text: written, ..expr }),
        n @ 6..=7 => Err(BadExpr::TooManyFields { text: short_line(&written), n }),
        n => Err(BadExpr::FieldCount { text: short_line(&written), n }),
    }
}

fn nickname(words: &[&str]) -> Result<[&'static str; 5], BadExpr> {
    let word = words.join(" ");
    Ok(match word.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => ["0", "0", "1", "1", "*"],
        "@monthly" => ["0", "0", "1", "*", "*"],
        "@weekly" => ["0", "0", "*", "*", "0"],
        "@daily" | "@midnight" => ["0", "0", "*", "*", "*"],
        "@hourly" => ["0", "*", "*", "*", "*"],
        "@reboot" => return Err(BadExpr::Reboot),
        lower if lower.starts_with("@every") => return Err(BadExpr::Every),
        _ => return Err(BadExpr::Nickname { word: short_line(&word) }),
    })
}

/// The meaning of five fields; the text is the caller's.
fn fields([minute, hour, day, month, weekday]: [&str; 5]) -> Result<Expr, BadExpr> {
    let calendar = Calendar {
        minutes: numbers(Field::Minute, minute)?,
        hours: numbers(Field::Hour, hour)?,
        days: month_days(any_for_question(day))?,
        months: numbers(Field::Month, month)?,
        weekdays: weekdays(any_for_question(weekday))?,
        needs_both: [day, weekday].iter().any(|field| field.starts_with(['*', '?'])),
    };
    Ok(Expr { text: String::new(), calendar, follows_clock: follows_clock(hour) })
}

/// Whoever wants each hour, or each second one, however that is written, wants what the clock shows. // SPEC K2
fn follows_clock(hour: &str) -> bool {
    hour.starts_with('*') || hour.contains('/')
}

/// `?` is another word for `*` in a day field.
fn any_for_question(field: &str) -> &str {
    if field == "?" { "*" } else { field }
}

fn numbers(field: Field, text: &str) -> Result<Set, BadExpr> {
    let mut set = Set::default();
    for part in parts(field, text)? {
        add(&mut set, field, part)?;
    }
    Ok(set)
}

fn month_days(text: &str) -> Result<MonthDays, BadExpr> {
    let mut days = MonthDays::default();
    for part in parts(Field::Day, text)? {
        let upper = part.to_ascii_uppercase();
        if upper == "LW" {
            days.last_workday = true;
        } else if upper == "L" {
            days.before_last.insert(0);
        } else if let Some(before) = upper.strip_prefix("L-") {
            days.before_last.insert(digits(before, 1, BEFORE_LAST_MAX).ok_or_else(|| not_a_value(Field::Day, part))?);
        } else if let Some(day) = upper.strip_suffix('W') {
            days.nearest.insert(digits(day, 1, 31).ok_or_else(|| not_a_value(Field::Day, part))?);
        } else {
            add(&mut days.plain, Field::Day, part)?;
        }
    }
    Ok(days)
}

fn weekdays(text: &str) -> Result<Weekdays, BadExpr> {
    let mut weekdays = Weekdays::default();
    for part in parts(Field::Weekday, text)? {
        if part.eq_ignore_ascii_case("L") {
            return Err(BadExpr::LastOfWhat { part: short_line(part) });
        } else if let Some(weekday) = part.strip_suffix(['L', 'l']) {
            weekdays.last.insert(value(Field::Weekday, weekday, part)? % 7);
        } else if let Some((weekday, nth)) = part.split_once('#') {
            let nth = digits(nth, 1, NTH_MAX).ok_or_else(|| BadExpr::Nth { part: short_line(part) })?;
            weekdays.nth.insert(7 * (nth - 1) + value(Field::Weekday, weekday, part)? % 7);
        } else {
            add(&mut weekdays.plain, Field::Weekday, part)?;
        }
    }
    Ok(weekdays)
}

fn parts(field: Field, text: &str) -> Result<impl Iterator<Item = &str>, BadExpr> {
    if text.split(',').any(str::is_empty) {
        return Err(BadExpr::EmptyPart { field, text: short_line(text) });
    }
    Ok(text.split(','))
}

/// Adds what a value, a range or either with a step names.
fn add(set: &mut Set, field: Field, part: &str) -> Result<(), BadExpr> {
    let (base, step) = match part.split_once('/') {
        Some((base, step)) => (base, Some(step)),
        None => (part, None),
    };
    let (low, high) = range(field, base, step.is_some())?;
    let step = step.map_or(Ok(1), |step| {
        let max = field.n_values();
        digits(step, 1, max).ok_or_else(|| BadExpr::Step { field, part: short_line(part), max })
    })?;
    for number in (low..=high).step_by(usize::from(step)) {
        set.insert(if field == Field::Weekday { number % 7 } else { number });
    }
    Ok(())
}

/// `*`, `a-b` or `a`, which goes on to the end if it has a step.
fn range(field: Field, base: &str, has_step: bool) -> Result<(u8, u8), BadExpr> {
    let (min, max) = field.bounds();
    if base == "*" {
        return Ok((min, max));
    }
    let Some((from, to)) = base.split_once('-') else {
        let low = value(field, base, base)?;
        return Ok(match (has_step, field) {
            (false, _) => (low, low),
            (true, Field::Weekday) => (low % 7, 6),
            (true, _) => (low, max),
        });
    };
    let is_range = !from.is_empty() && !to.is_empty() && !to.contains('-');
    let told = |bound| if is_range { bound } else { base };
    let (low, mut high) = (value(field, from, told(from))?, value(field, to, told(to))?);
    if field == Field::Weekday && high == 0 && low > 0 {
        high = 7; // Sunday also ends the week: `fri-sun`.
    }
    if low > high {
        return Err(BadExpr::Backwards { field, part: short_line(base), forwards: around(field, low, high) });
    }
    Ok((low, high))
}

/// A range that runs backwards, said forwards: to the end, and on from the beginning.
fn around(field: Field, low: u8, high: u8) -> String {
    let (min, max) = if field == Field::Weekday { (1, 7) } else { field.bounds() };
    let piece = |low: u8, high: u8| if low == high { low.to_string() } else { format!("{low}-{high}") };
    format!("{},{}", piece(low, max), piece(min, high))
}

/// A number or a name, within `part`, which is told if it is neither.
fn value(field: Field, text: &str, part: &str) -> Result<u8, BadExpr> {
    let (min, max) = field.bounds();
    let name = field.names().iter().position(|name| text.eq_ignore_ascii_case(name));
    let number = name.map(|index| min + index as u8).or_else(|| digits(text, min, max));
    number.ok_or_else(|| not_a_value(field, part))
}

/// A number without a sign, within bounds.
fn digits(text: &str, min: u8, max: u8) -> Option<u8> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && (min..=max).contains(number))
}

fn not_a_value(field: Field, part: &str) -> BadExpr {
    BadExpr::NotAValue { field, part: short_line(part) }
}
