//! Rigs: which repository a bead belongs to, by binding or by prefix. // SPEC T3, T4

use thiserror::Error;

/// The prefix of town beads, which no rig may take.
pub const TOWN_PREFIX: &str = "hq";
pub const PREFIX_CHARS_MAX: usize = 20;
pub const NAME_CHARS_MAX: usize = 40;

/// Whether a rig takes work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RigState {
    Active,
    /// Set aside for a while.
    Parked,
    /// Out of service.
    Docked,
}

impl RigState {
    pub fn as_str(self) -> &'static str {
        match self {
            RigState::Active => "active",
            RigState::Parked => "parked",
            RigState::Docked => "docked",
        }
    }

    pub fn parse(word: &str) -> Option<RigState> {
        [RigState::Active, RigState::Parked, RigState::Docked].into_iter().find(|state| state.as_str() == word)
    }
}

/// A git repository registered in the town.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rig {
    pub name: String,
    pub prefix: String,
    /// Where the repository is on this machine.
    pub path: String,
    /// Where it was cloned from, if it was.
    pub url: Option<String>,
    pub branch: String,
    pub state: RigState,
}

/// Where a bead's work would be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home<'a> {
    Rig(&'a Rig),
    /// A town bead: never dispatched.
    Town,
    /// No registered prefix fits, or the rig it was bound to is gone.
    Nowhere,
}

/// Why a rig's name or prefix cannot be taken.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BadRig {
    #[error(
        "`{name}` is not a rig name: use up to {NAME_CHARS_MAX} letters, digits, `-` and `_`, starting with a letter"
    )]
    Name { name: String },
    #[error(
        "`{prefix}` is not a prefix: use up to {PREFIX_CHARS_MAX} lower-case letters, digits, `-` and `_`, starting with a letter and not ending with `-`"
    )]
    Prefix { prefix: String },
    #[error("the prefix `{prefix}` is taken by {holder}")]
    PrefixTaken {
        prefix: String,
        holder: String,
        /// One near it that nobody has.
        free: String,
    },
}

impl BadRig {
    /// What to type instead.
    pub fn hint(&self) -> String {
        match self {
            BadRig::Name { .. } => "choose another, as in `gt rig add my-rig PATH`".to_owned(),
            BadRig::Prefix { .. } => "choose another, as in `--prefix gt`".to_owned(),
            BadRig::PrefixTaken { free, .. } => format!("choose another, as in `--prefix {free}`"),
        }
    }
}

pub fn check_name(name: &str) -> Result<(), BadRig> {
    let fits = starts_with_letter(name)
        && name.len() <= NAME_CHARS_MAX
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if fits { Ok(()) } else { Err(BadRig::Name { name: crate::text::one_line(name) }) }
}

/// Checks a prefix for its form and against the registry.
pub fn check_prefix(prefix: &str, rigs: &[Rig]) -> Result<(), BadRig> {
    if !is_prefix(prefix) {
        return Err(BadRig::Prefix { prefix: crate::text::one_line(prefix) });
    }
    match holder(prefix, rigs) {
        Some(holder) => Err(BadRig::PrefixTaken { prefix: prefix.to_owned(), holder, free: free_prefix(prefix, rigs) }),
        None => Ok(()),
    }
}

fn is_prefix(word: &str) -> bool {
    starts_with_letter(word)
        && word.len() <= PREFIX_CHARS_MAX
        && !word.ends_with('-')
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
}

/// Who has a prefix already.
fn holder(prefix: &str, rigs: &[Rig]) -> Option<String> {
    if prefix == TOWN_PREFIX {
        return Some("the town".to_owned());
    }
    rigs.iter().find(|rig| rig.prefix == prefix).map(|rig| format!("rig `{}`", rig.name))
}

fn starts_with_letter(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// A prefix made from a name: initials of its parts, or the first letters of its only part.
pub fn derive_prefix(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split(['-', '_']).filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [only] => only.chars().take(if only.len() <= 4 { 4 } else { 2 }).collect(),
        parts => parts.iter().filter_map(|part| part.chars().next()).take(PREFIX_CHARS_MAX).collect(),
    }
}

/// The first free prefix near a wanted one, for a hint.
fn free_prefix(name: &str, rigs: &[Rig]) -> String {
    let letters: String = name.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let longer = (2..=letters.len().min(PREFIX_CHARS_MAX)).map(|n| letters[..n].to_owned());
    let stem: String =
        derive_prefix(name).chars().filter(char::is_ascii_alphanumeric).take(PREFIX_CHARS_MAX / 2).collect();
    let stem = if starts_with_letter(&stem) { stem } else { format!("r{stem}") };
    let numbered = (2_u64..).map(|n| format!("{stem}{n}"));
    let is_free = |prefix: &String| is_prefix(prefix) && holder(prefix, rigs).is_none();
    longer.chain(numbered).find(is_free).expect("numbers never run out")
}

/// Where a bead belongs: its binding first, then the longest registered prefix of its id.
pub fn home<'a>(id: &str, binding: Option<&str>, rigs: &'a [Rig]) -> Home<'a> {
    if let Some(name) = binding {
        return rigs.iter().find(|rig| rig.name == name).map_or(Home::Nowhere, Home::Rig);
    }
    let longest = rigs.iter().filter(|rig| has_prefix(id, &rig.prefix)).max_by_key(|rig| rig.prefix.len());
    match longest {
        Some(rig) => Home::Rig(rig),
        None if has_prefix(id, TOWN_PREFIX) => Home::Town,
        None => Home::Nowhere,
    }
}

/// Whether `id` is `prefix-something`.
pub fn has_prefix(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests;
