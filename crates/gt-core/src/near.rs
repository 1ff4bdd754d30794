//! "Did you mean …": the known words closest to a mistyped one.

/// At most three of `known`, the nearest first; none when nothing is close. A third of the letters may be wrong, though one
/// in any word of two or more; of one letter nothing is left that could be near.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let n_letters = word.chars().count();
    let reach = if n_letters < 2 { 0 } else { (n_letters / 3).clamp(1, 3) };
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= reach)
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// How many slips of the finger lie between two words.
pub fn distance(from: &str, to: &str) -> usize {
    strsim::damerau_levenshtein(from, to)
}

#[cfg(test)]
mod tests;
