//! Every bead and convoy that `gt` accepted is there and finished, and each landing is announced once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Case, Violation};
use crate::load::Asked;
use crate::receiver::{Post, landed_title};

const BEAD: &str = "an accepted bead is there at the end, and closed";
const CONVOY: &str = "an accepted convoy is there once, with its beads, and has landed";
const NOTICE: &str = "the landing of a convoy is announced once";

pub(super) fn judge(case: &Case) -> Vec<Violation> {
    let beads = match case.town.ask(&["bead", "list", "--all", "--limit", "0"]) {
        Ok(beads) => beads,
        Err(error) => return vec![Violation::new(BEAD, error)],
    };
    let rows: Vec<&Value> = beads.as_array().into_iter().flatten().collect();
    let announced = announced(&case.posts);
    case.tally.add("landings announced", announced.len());
    [lost_beads(case.asked, &rows), lost_convoys(case.asked, &rows), unannounced(case.asked, &announced)].concat()
}

fn lost_beads(asked: &Asked, rows: &[&Value]) -> Vec<Violation> {
    let by_id: BTreeMap<&str, &Value> = rows.iter().filter_map(|row| Some((row["id"].as_str()?, *row))).collect();
    let problem = |id: &String| match by_id.get(id.as_str()) {
        None => Some(format!("{id} is gone")),
        Some(row) if row["status"] != "closed" => Some(format!("{id} is {}", row["status"])),
        Some(_) => None,
    };
    asked.beads.iter().filter_map(problem).map(|what| Violation::new(BEAD, what)).collect()
}

fn lost_convoys(asked: &Asked, rows: &[&Value]) -> Vec<Violation> {
    let problem = |(title, beads): (&String, &Vec<String>)| {
        let is_it = |row: &&&Value| row["issue_type"] == "convoy" && row["title"] == **title;
        match rows.iter().filter(is_it).collect::<Vec<_>>()[..] {
            [convoy] if convoy["status"] != "closed" => Some(format!("{title} is {}", convoy["status"])),
            [convoy] => {
                let edges = convoy["dependencies"].as_array().into_iter().flatten();
                let tracked: BTreeSet<&str> = edges.filter_map(|edge| edge["depends_on_id"].as_str()).collect();
                let missing: Vec<&String> = beads.iter().filter(|bead| !tracked.contains(bead.as_str())).collect();
                (!missing.is_empty()).then(|| format!("{title} does not track {missing:?}"))
            }
            ref found => Some(format!("{title} is there {} times", found.len())),
        }
    };
    asked.convoys.iter().filter_map(problem).map(|what| Violation::new(CONVOY, what)).collect()
}

/// The keys under which the landing of each convoy was announced, by its title.
fn announced(posts: &[Post]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut announced: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (title, post) in posts.iter().filter_map(|post| Some((landed_title(post)?, post))) {
        announced.entry(title).or_default().insert(&post.key);
    }
    announced
}

fn unannounced(asked: &Asked, announced: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Violation> {
    let problem = |title: &String| match announced.get(title.as_str()) {
        None => Some(format!("{title}: never")),
        Some(keys) if keys.len() > 1 => Some(format!("{title}: under the keys {keys:?}")),
        Some(_) => None,
    };
    asked.convoys.keys().filter_map(problem).map(|what| Violation::new(NOTICE, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked() -> Asked {
        let (beads, title) = (["ya-1", "ya-2"].map(str::to_owned), "convoy 1".to_owned());
        Asked { beads: beads.clone().into(), convoys: [(title, beads.to_vec())].into(), ..Asked::default() }
    }

    fn bead(id: &str, status: &str) -> Value {
        json!({ "id": id, "title": id, "issue_type": "task", "status": status, "dependencies": [] })
    }

    fn convoy(status: &str, beads: &[&str]) -> Value {
        let edges: Vec<Value> = beads.iter().map(|bead| json!({ "depends_on_id": bead })).collect();
        json!({ "id": "hq-cv-1", "title": "convoy 1", "issue_type": "convoy", "status": status, "dependencies": edges })
    }

    fn details(found: Vec<Violation>) -> Vec<String> {
        found.into_iter().map(|violation| violation.detail).collect()
    }

    #[test]
    fn a_bead_that_is_gone_or_open_is_found() {
        let rows = [bead("ya-1", "closed"), bead("ya-2", "closed")];
        assert_eq!(lost_beads(&asked(), &rows.iter().collect::<Vec<_>>()), []);
        let rows = [bead("ya-2", "open")];
        let found = details(lost_beads(&asked(), &rows.iter().collect::<Vec<_>>()));
        assert_eq!(found, ["ya-1 is gone", "ya-2 is \"open\""]);
    }

    #[test]
    fn a_convoy_that_is_gone_doubled_open_or_short_of_a_bead_is_found() {
        let (whole, open) = (convoy("closed", &["ya-1", "ya-2"]), convoy("open", &["ya-1", "ya-2"]));
        let short = convoy("closed", &["ya-1"]);
        let judged = |rows: &[&Value]| details(lost_convoys(&asked(), rows)).join(", ");
        assert_eq!(judged(&[&whole]), "");
        assert_eq!(judged(&[]), "convoy 1 is there 0 times");
        assert_eq!(judged(&[&whole, &whole]), "convoy 1 is there 2 times");
        assert_eq!(judged(&[&open]), "convoy 1 is \"open\"");
        assert_eq!(judged(&[&short]), "convoy 1 does not track [\"ya-2\"]");
    }

    #[test]
    fn a_landing_that_is_announced_never_or_twice_is_found() {
        let post = |key: &str, is_taken| {
            let body = json!({ "event": "convoy.landed", "data": { "title": "convoy 1" } });
            Post { at: 1, path: "/notices".to_owned(), key: key.to_owned(), body, is_taken }
        };
        let judged = |posts: &[Post]| details(unannounced(&asked(), &announced(posts))).join(", ");
        assert_eq!(judged(&[post("7", true), post("7", true)]), "");
        assert_eq!(judged(&[post("7", false)]), "convoy 1: never");
        assert_eq!(judged(&[post("7", true), post("8", true)]), "convoy 1: under the keys {\"7\", \"8\"}");
    }
}
