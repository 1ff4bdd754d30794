//! The judge of deliveries: the promises of `docs/channels.md` about web hooks, from what receivers have seen.

use std::collections::{BTreeMap, BTreeSet};

use gt_store::Store;

use super::judge::words;
use crate::couriers::{PEACE, Posting, Verdict};
use crate::part::Part;
use crate::processes::Errand;
use crate::stage::Stage;
use crate::world::Pid;

/// Whoever delivers: there is one, as long as it lives.
pub(crate) struct Couriers(pub(crate) &'static str);

impl Couriers {
    fn is_one(stage: &Stage, pid: Pid) -> bool {
        stage.world().lock().couriers.contains(&pid)
    }

    fn see_to_it(&self, stage: &mut Stage) -> bool {
        let is_there = stage.strands.keys().any(|pid| Couriers::is_one(stage, *pid));
        if !is_there {
            let pid = stage.launch(Errand::Deliver(self.0));
            stage.world().lock().couriers.insert(pid);
        }
        !is_there
    }
}

impl Part for Couriers {
    fn weight(&self, _stage: &Stage) -> u32 {
        2
    }

    fn act(&mut self, stage: &mut Stage) {
        self.see_to_it(stage);
    }

    fn heal(&mut self, _stage: &mut Stage) {}

    fn work(&mut self, stage: &mut Stage) -> bool {
        self.see_to_it(stage)
    }
}

#[derive(Default)]
pub(crate) struct Deliveries {
    /// The answers of each session to each recipient that are to be delivered, in order, with their keys.
    due: BTreeMap<(String, Option<String>), Vec<String>>,
    posts: BTreeMap<String, Vec<Posting>>,
    /// What was known to have arrived when it was looked last.
    noted: BTreeSet<String>,
}

impl Deliveries {
    /// A turn has ended whose answer is to be delivered.
    pub(crate) fn expect(
        &mut self,
        store: &mut Store,
        session: &str,
        to: Option<&str>,
        turn: i64,
    ) -> Result<(), String> {
        if store.delivery_of(turn).map_err(words)?.is_none() {
            return Err(format!("turn {turn} of {session} has ended, and nothing of that is delivered"));
        }
        self.due.entry((session.to_owned(), to.map(str::to_owned))).or_default().push(format!("turn-{turn}"));
        Ok(())
    }

    fn state(store: &mut Store, key: &str) -> Result<String, String> {
        let turn = key.strip_prefix("turn-").and_then(|id| id.parse().ok());
        let state = turn.map(|turn| store.delivery_of(turn)).transpose().map_err(words)?.flatten();
        Ok(state.map(|(state, _)| state).unwrap_or_default())
    }

    /// What was posted since the last look.
    pub(crate) fn look(&mut self, store: &mut Store, posts: Vec<Posting>) -> Result<(), String> {
        for post in posts {
            self.check(store, &post)?;
            self.posts.entry(post.key.clone()).or_default().push(post);
        }
        for key in self.posts.keys().filter(|key| !self.noted.contains(*key)).cloned().collect::<Vec<_>>() {
            if Deliveries::state(store, &key)? == "delivered" {
                self.noted.insert(key);
            }
        }
        Ok(())
    }

    /// An answer has one key and one text, comes in order, and not again once that is known.
    fn check(&self, store: &mut Store, post: &Posting) -> Result<(), String> {
        let refuse = |why: String| Err(format!("{} of {} was posted {why}", post.key, post.session));
        if self.noted.contains(&post.key) {
            return refuse("again, and it was noted that it has arrived".to_owned());
        }
        let before = self.posts.get(&post.key).map_or(&[][..], Vec::as_slice);
        if let Some(other) = before.iter().find(|other| other.text != post.text) {
            return refuse(format!("as `{}`, and before as `{}`", post.text, other.text));
        }
        for other in before.iter().filter(|other| other.by == post.by) {
            if matches!(other.verdict, Verdict::Took | Verdict::Refused) {
                return refuse(format!("again by process {}, which had heard: {:?}", post.by, other.verdict));
            }
            let waited = post.uptime.saturating_sub(other.uptime);
            if other.verdict == Verdict::WantsPeace && other.n_clock_jumps == post.n_clock_jumps && waited < PEACE {
                return refuse(format!("{waited:?} after the receiver had asked for {PEACE:?}"));
            }
        }
        let due = self.due.get(&(post.session.clone(), post.to.clone())).map_or(&[][..], Vec::as_slice);
        // What is said to those who stop something is delivered, too, and has no turn.
        let n_before = due.iter().position(|key| *key == post.key).unwrap_or(0);
        for earlier in &due[..n_before] {
            let has_arrived = self.posts.get(earlier).is_some_and(|posts| {
                posts.iter().any(|post| matches!(post.verdict, Verdict::Took | Verdict::TookUnheard | Verdict::Refused))
            });
            if !has_arrived && Deliveries::state(store, earlier)? == "waiting" {
                return refuse(format!("before {earlier}"));
            }
        }
        Ok(())
    }

    /// In the end each has arrived, or its receiver has refused it for good.
    pub(crate) fn conclude(&self, store: &mut Store) -> Result<(), String> {
        for key in self.due.values().flatten() {
            let posts = self.posts.get(key).map_or(&[][..], Vec::as_slice);
            let has = |verdicts: &[Verdict]| posts.iter().any(|post| verdicts.contains(&post.verdict));
            let is_so = match Deliveries::state(store, key)?.as_str() {
                "delivered" => has(&[Verdict::Took]),
                "failed" => has(&[Verdict::Refused]),
                _ => false,
            };
            if !is_so {
                let state = Deliveries::state(store, key)?;
                let verdicts: Vec<Verdict> = posts.iter().map(|post| post.verdict).collect();
                return Err(format!("{key} is {state}, and its receiver has seen: {verdicts:?}"));
            }
        }
        Ok(())
    }
}
