//! Beads in small graphs over both rigs, slung by themselves or as a convoy; and convoys that land at once.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Load, REPEAT_MAX, REPEAT_PAUSE};
use crate::evidence::{Script, lines};
use crate::pause::pause;
use crate::town::RIGS;

/// Beads of one graph.
const GRAPH: usize = 10;
/// No more are fed while so many are not handed over.
const OUTSTANDING_MAX: usize = 40;
/// Time between two graphs: at most two hundred beads a minute.
const PAUSE: Duration = Duration::from_secs(3);
/// Time between two convoys that land at once.
const LANDING_PAUSE: Duration = Duration::from_secs(1);
/// A bead that is closed from the start. No work is expected of a chore.
const FINISHED: &str = "ya-finished";

impl Load {
    pub(super) fn feed_beads(&self, rng: &mut fastrand::Rng) {
        for n in 0.. {
            self.feed_graph(n, rng);
            if self.over.wait(PAUSE) {
                return;
            }
            while self.n_outstanding() >= OUTSTANDING_MAX {
                if self.over.wait(Duration::from_millis(500)) {
                    return;
                }
            }
        }
    }

    /// Convoys of a bead that is closed already. Each has to be announced, so that there is always something to post.
    pub(super) fn feed_landings(&self, rng: &mut fastrand::Rng) {
        let bead = json!({ "id": FINISHED, "title": FINISHED, "status": "closed", "issue_type": "chore" });
        if self.import("finished", &bead.to_string(), rng).is_none() {
            return;
        }
        self.asked().beads.insert(FINISHED.to_owned());
        for n in 0.. {
            let title = format!("landing {n}");
            if self.make_convoy(&title, &["convoy", "create", &title, FINISHED], &[FINISHED.to_owned()], rng) {
                self.tally.one("convoys that land at once");
            }
            if self.over.wait(LANDING_PAUSE) {
                return;
            }
        }
    }

    /// Imports lines through a file of this name.
    fn import(&self, name: &str, lines: &str, rng: &mut fastrand::Rng) -> Option<()> {
        let file = self.town.evidence.join(format!("{name}.jsonl"));
        if let Err(error) = fs::write(&file, lines) {
            self.asked().failures.push(format!("cannot write {}: {error}", file.display()));
            return None;
        }
        let file = file.display().to_string();
        self.insist(rng, || self.town.gt(&["bead", "import", &file])).map(drop)
    }

    /// A convoy whose command was killed may be there; it must not be made twice.
    fn make_convoy(&self, title: &str, words: &[&str], beads: &[String], rng: &mut fastrand::Rng) -> bool {
        let is_made = self.insist_until(rng, || self.town.gt(words), || self.has_convoy(title)).is_some();
        if is_made {
            self.asked().convoys.insert(title.to_owned(), beads.to_vec());
        }
        is_made
    }

    fn n_outstanding(&self) -> usize {
        let done: BTreeSet<String> = lines(&self.town.evidence, Script::Agent)
            .into_iter()
            .filter(|line| line.what == "done")
            .map(|line| line.subject)
            .collect();
        self.asked().beads.iter().filter(|bead| !done.contains(*bead)).count()
    }

    fn feed_graph(&self, n: usize, rng: &mut fastrand::Rng) {
        let ids: Vec<String> =
            (0..GRAPH).map(|k| format!("{}-work{:05}", RIGS[rng.usize(..RIGS.len())].prefix, n * GRAPH + k)).collect();
        let lines: Vec<String> = (0..GRAPH).map(|k| bead_line(&ids, k, rng)).collect();
        if self.import(&format!("graph{n}"), &lines.join("\n"), rng).is_none() {
            return;
        }
        self.asked().beads.extend(ids.iter().cloned());
        self.tally.add("beads", GRAPH);
        let title = format!("convoy {n}");
        let words: &[&str] = match n % 3 {
            0 => &["convoy", "create", &title],
            1 => &["convoy", "stage", "--title", &title, "--launch", "--force"],
            _ => &["sling"],
        };
        let words: Vec<&str> = words.iter().copied().chain(ids.iter().map(String::as_str)).collect();
        if n % 3 == 2 {
            self.insist(rng, || self.town.gt(&words));
        } else if self.make_convoy(&title, &words, &ids, rng) {
            self.tally.one("convoys");
        }
    }

    /// Whether there is a convoy of this title that is not merely staged. Asked until there is an answer: on a full disk
    /// there may be none for a while.
    fn has_convoy(&self, title: &str) -> bool {
        let is_launched = |status: &Value| !status.as_str().unwrap_or_default().starts_with("staged");
        let deadline = Instant::now() + REPEAT_MAX;
        while Instant::now() < deadline {
            if let Some(convoys) = self.town.ask(&["convoy", "list", "--all"]).unwrap_or_default().as_array() {
                return convoys.iter().any(|convoy| convoy["title"] == title && is_launched(&convoy["status"]));
            }
            pause(REPEAT_PAUSE);
        }
        self.asked().failures.push(format!("`gt convoy list` does not answer for {REPEAT_MAX:?}"));
        false
    }
}

/// A bead that depends on up to two earlier ones of its graph.
fn bead_line(ids: &[String], k: usize, rng: &mut fastrand::Rng) -> String {
    let n_needs = if k == 0 { 0 } else { rng.usize(..3) };
    let needs: BTreeSet<usize> = (0..n_needs).map(|_| rng.usize(..k)).collect();
    let edge = |need: usize| json!({ "issue_id": ids[k], "depends_on_id": ids[need], "type": "blocks" });
    let edges: Vec<_> = needs.into_iter().map(edge).collect();
    json!({ "id": ids[k], "title": format!("work {}", ids[k]), "dependencies": edges }).to_string()
}
