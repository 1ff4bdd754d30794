//! Polecats' names: a themed pool that never runs out. // SPEC P4
//!
//! A name is cosmetic; the run id is the identity.

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

/// Who holds a bead, as its assignee says it: `shop/polecats/Toast`.
pub fn assignee(rig: &str, polecat: &str) -> String {
    format!("{rig}/polecats/{polecat}")
}

#[cfg(test)]
mod tests;
