//! Polecats' names, a themed pool that never runs out, and the names of sessions. // SPEC P4, P5
//!
//! A name is cosmetic; the run id is the identity. A session's name is read only to tell people whose it is.

use thiserror::Error;

/// The prefix of the town's own roles. A rig may have it too.
const TOWN_PREFIX: &str = "hq";

/// What glows, boils and burns in a gasworks and its kitchen.
const POOL: [&str; 60] = [
    "Toast", "Ember", "Kettle", "Wick", "Cinder", "Pilot", "Copper", "Flint", "Skillet", "Mantle", "Bellows", "Anvil",
    "Rivet", "Spanner", "Gasket", "Valve", "Piston", "Boiler", "Furnace", "Lantern", "Torch", "Beacon", "Spark",
    "Tinder", "Coke", "Clinker", "Soot", "Ash", "Crucible", "Bunsen", "Griddle", "Waffle", "Crumpet", "Biscuit",
    "Pretzel", "Pepper", "Saffron", "Ginger", "Nutmeg", "Clove", "Fennel", "Sorrel", "Basil", "Bramble", "Marble",
    "Slate", "Basalt", "Quartz", "Garnet", "Onyx", "Topaz", "Cobalt", "Nickel", "Zinc", "Pewter", "Brass", "Argon",
    "Neon", "Xenon", "Radon",
];

/// Names to try in a rig, in order.
pub fn proposals() -> impl Iterator<Item = String> {
    let pool = POOL.into_iter().map(str::to_owned);
    pool.chain((POOL.len() + 1..).map(|number| format!("Polecat-{number}")))
}

/// The name of the session of a polecat: `gt-toast`.
pub fn session(prefix: &str, polecat: &str) -> String {
    format!("{prefix}-{}", polecat.to_lowercase())
}

/// Whose session it is, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role<'a> {
    Mayor,
    Deacon,
    /// The one that starts the deacon.
    Boot,
    Overseer,
    Dog {
        name: &'a str,
    },
    Witness {
        rig: &'a str,
    },
    Refinery {
        rig: &'a str,
    },
    Crew {
        rig: &'a str,
        name: &'a str,
    },
    Polecat {
        rig: &'a str,
        name: &'a str,
    },
}

/// Why a name says nothing about whose session it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotOurs {
    #[error("no rig has the prefix that `{session}` begins with")]
    UnknownPrefix { session: String },
    #[error("`{session}` names nobody")]
    Nobody { session: String },
}

/// Reads the name of a session, given the rigs as pairs of prefix and name. Only a registered prefix counts, the longest
/// that fits: guessing at a dash would take strangers' sessions for ours.
pub fn parse_session<'a>(session: &'a str, rigs: &[(&str, &'a str)]) -> Result<Role<'a>, NotOurs> {
    if let Some(role) = after_prefix(session, TOWN_PREFIX).and_then(town_role) {
        return Ok(role);
    }
    let fitting = rigs.iter().filter_map(|(prefix, rig)| Some((prefix.len(), *rig, after_prefix(session, prefix)?)));
    let longest = fitting.max_by_key(|(length, ..)| *length);
    let (_, rig, rest) = longest.ok_or_else(|| NotOurs::UnknownPrefix { session: session.to_owned() })?;
    rig_role(rig, rest).ok_or_else(|| NotOurs::Nobody { session: session.to_owned() })
}

fn after_prefix<'a>(session: &'a str, prefix: &str) -> Option<&'a str> {
    session.strip_prefix(prefix)?.strip_prefix('-').filter(|_| !prefix.is_empty())
}

/// The roles that a town has once.
fn town_role(rest: &str) -> Option<Role<'_>> {
    match rest {
        "mayor" => Some(Role::Mayor),
        "deacon" => Some(Role::Deacon),
        "boot" => Some(Role::Boot),
        "overseer" => Some(Role::Overseer),
        _ => rest.strip_prefix("dog-").filter(|name| !name.is_empty()).map(|name| Role::Dog { name }),
    }
}

/// The roles that every rig has.
fn rig_role<'a>(rig: &'a str, rest: &'a str) -> Option<Role<'a>> {
    match (rest, rest.strip_prefix("crew-")) {
        ("" | "crew-", _) => None,
        ("witness", _) => Some(Role::Witness { rig }),
        ("refinery", _) => Some(Role::Refinery { rig }),
        (_, Some(name)) => Some(Role::Crew { rig, name }),
        (name, None) => Some(Role::Polecat { rig, name }),
    }
}

/// Who holds a bead, as its assignee says it: `shop/polecats/Toast`.
pub fn assignee(rig: &str, polecat: &str) -> String {
    format!("{rig}/polecats/{polecat}")
}

/// Who has the beads of a rig whose work waits to be merged.
pub fn refinery(rig: &str) -> String {
    format!("{rig}/refinery")
}

#[cfg(test)]
mod tests;
