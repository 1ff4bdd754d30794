//! Who looks after convoys: they make, stage, open, change, land and cancel them at random, and feed what is stranded.

use fastrand::Rng;
use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::status::Status;
use gt_store::{BeadPatch, FedConvoy, Filter, Going, NewBead, NewConvoy, Staging, Stamp, StoreError};
use jiff::SignedDuration;

use crate::part::Part;
use crate::people::expect_clear_refusal;
use crate::stage::Stage;

/// What can be done with convoys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Create,
    /// As staging leaves it, whatever makes it so.
    Stage,
    SetStatus,
    Add,
    Remove,
    Link,
    Unlink,
    /// `gt convoy stage` or `launch`, of one that is there; the launcher dies before it slings.
    Launch,
    Check,
    Close,
    Land,
    Cancel,
    Delete,
    /// `gt deacon feed-stranded`.
    Feed,
    Sweep,
}

/// Every deed, and how often it is done in an average town.
const DEEDS: [(Deed, u32); 15] = [
    (Deed::Create, 8),
    (Deed::Stage, 3),
    (Deed::Launch, 3),
    (Deed::SetStatus, 3),
    (Deed::Add, 5),
    (Deed::Remove, 3),
    (Deed::Link, 1),
    (Deed::Unlink, 1),
    (Deed::Check, 1),
    (Deed::Close, 2),
    (Deed::Land, 2),
    (Deed::Cancel, 3),
    (Deed::Delete, 1),
    (Deed::Feed, 3),
    (Deed::Sweep, 1),
];

/// The deacon leaves a convoy alone for so long, or not at all.
const FEED_PAUSES: [i64; 3] = [0, 30, 300];

pub struct Owners {
    /// How much they have to do in this town.
    weight: u32,
    habits: Vec<Deed>,
}

impl Owners {
    pub fn new(rng: &mut Rng) -> Owners {
        let mut habits = vec![Deed::Create, Deed::Add];
        for (deed, weight) in DEEDS {
            let times = [0, 1, 1, 3][rng.usize(0..4)];
            habits.extend(std::iter::repeat_n(deed, (weight * times) as usize));
        }
        Owners { weight: [0, 1, 4, 8][rng.usize(0..4)], habits }
    }
}

impl Part for Owners {
    fn weight(&self, _stage: &Stage) -> u32 {
        self.weight
    }

    fn act(&mut self, stage: &mut Stage) {
        let before = stage.store.last_event().unwrap_or_default();
        let deed = stage.world().lock().pick(&self.habits).unwrap_or(Deed::Create);
        let stamp = stage.stamp("cleo");
        let answer = Visit { stage: &mut *stage, stamp: &stamp }.deed(deed);
        match answer {
            Ok(()) => stage.world().tell(|| format!("cleo did {deed:?}")),
            // To stage one takes two writes, and the second may be refused.
            Err(_) if deed == Deed::Stage => {}
            Err(error) => expect_clear_refusal(stage, &format!("{deed:?}"), before, &error),
        }
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}

/// One of them, at one moment.
struct Visit<'a> {
    stage: &'a mut Stage,
    stamp: &'a Stamp,
}

impl Visit<'_> {
    fn deed(&mut self, deed: Deed) -> Result<(), StoreError> {
        match deed {
            Deed::Create => self.create(),
            Deed::Stage => self.stage(),
            Deed::Launch => self.launch(),
            Deed::SetStatus => self.set_status(),
            Deed::Add => {
                let (convoy, members) = (self.any_convoy()?, self.some_beads(3)?);
                self.stage.store.add_to_convoy(&convoy, &members, self.stamp).map(drop)
            }
            Deed::Remove => {
                let (convoy, member) = self.any_member()?;
                self.stage.store.remove_from_convoy(&convoy, &[member], self.stamp)
            }
            Deed::Link => {
                let (convoy, members) = (self.any_convoy()?, self.some_beads(1)?);
                let Some(member) = members.first() else { return Ok(()) };
                let edge = Edge::new(member, EdgeType::parse("tracks"));
                self.stage.store.add_edge(&convoy, &edge, self.stamp).map(drop)
            }
            Deed::Unlink => {
                let (convoy, member) = self.any_member()?;
                self.stage.store.remove_edges(&convoy, &member, None, self.stamp).map(drop)
            }
            Deed::Check => {
                let convoy = self.any_convoy()?;
                let is_all = self.chance(2);
                self.stage.store.check_convoys((!is_all).then_some(convoy.as_str()), self.stamp).map(drop)
            }
            Deed::Close => {
                let (convoy, force) = (self.any_convoy()?, self.chance(2));
                self.stage.store.close_convoy(&convoy, None, force, self.stamp)?;
                self.expect_closed(&convoy);
                Ok(())
            }
            Deed::Land => self.land(),
            Deed::Cancel => {
                let convoy = self.any_convoy()?;
                self.stage.store.cancel_convoy(&convoy, None, self.stamp)?;
                self.expect_closed(&convoy);
                Ok(())
            }
            Deed::Delete => {
                let convoy = self.any_convoy()?;
                self.stage.store.delete_beads(&[convoy], None, self.stamp).map(drop)
            }
            Deed::Feed => self.feed(),
            Deed::Sweep => self.stage.store.sweep(self.stamp).map(drop),
        }
    }

    fn create(&mut self) -> Result<(), StoreError> {
        let members = self.some_beads(5)?;
        let new = NewConvoy {
            title: "Together".to_owned(),
            members,
            is_owned: self.chance(4),
            watchers: vec!["cleo".to_owned()],
            ..NewConvoy::default()
        };
        self.stage.store.create_convoy(&new, self.stamp).map(drop)
    }

    fn stage(&mut self) -> Result<(), StoreError> {
        let members = self.some_beads(5)?;
        let word = if self.chance(2) { "staged:ready" } else { "staged:warnings" };
        let mut bead = Bead::new("", "Later");
        bead.issue_type = Some("convoy".to_owned());
        bead.status = Status::parse(word);
        let new = NewBead { prefix: "hq-cv".to_owned(), parent: None, bead };
        let convoy = self.stage.store.create_bead(&new, self.stamp)?;
        self.stage.store.add_to_convoy(&convoy, &members, self.stamp).map(drop)
    }

    fn launch(&mut self) -> Result<(), StoreError> {
        let words = vec![self.any_convoy()?];
        let then = if self.chance(3) { Going::Stage } else { Going::Launch { force: true } };
        self.stage.store.stage_convoy(&Staging { words, title: None, then }, self.stamp).map(drop)
    }

    /// By hand, as one changes any bead; launching is this for one that is staged.
    fn set_status(&mut self) -> Result<(), StoreError> {
        const WORDS: [&str; 5] = ["open", "open", "open", "closed", "staged:ready"];
        let convoy = self.any_convoy()?;
        let word = WORDS[self.stage.world().lock().rng.usize(0..WORDS.len())];
        // What was deleted is not closed besides.
        if word == "closed" && self.stage.store.bead(&convoy)?.bead.status.is_terminal() {
            return Ok(());
        }
        let patch = BeadPatch { status: Some(Status::parse(word)), ..BeadPatch::default() };
        self.stage.store.update_bead(&convoy, &patch, self.stamp).map(drop)
    }

    /// Only who owns it lands it; unless by force, only when all is done.
    fn land(&mut self) -> Result<(), StoreError> {
        let (convoy, force) = (self.any_convoy()?, self.chance(3));
        let before = self.stage.store.convoys(false)?.into_iter().find(|one| one.id == convoy);
        self.stage.store.land_convoy(&convoy, force, self.stamp)?;
        if before.is_some_and(|one| !one.is_owned || (!force && one.n_done < one.n_total)) {
            self.stage.world().violation(format!("{convoy} was landed by somebody who may not"));
        }
        self.expect_closed(&convoy);
        Ok(())
    }

    fn feed(&mut self) -> Result<(), StoreError> {
        let (pause, max) = {
            let rng = &mut self.stage.world().lock().rng;
            (FEED_PAUSES[rng.usize(0..FEED_PAUSES.len())], rng.usize(1..4))
        };
        let pause = SignedDuration::from_secs(pause);
        let fed = self.stage.store.feed_stranded(pause, max, self.stamp)?;
        let n_fed = fed.iter().filter(|convoy| !convoy.beads.is_empty()).count();
        let is_odd = |convoy: &FedConvoy| {
            convoy.cooling_until.is_some_and(|until| !convoy.beads.is_empty() || until > self.stamp.now + pause)
        };
        if n_fed > max || fed.iter().any(is_odd) {
            self.stage
                .world()
                .violation(format!("the deacon was to feed {max} convoys after {pause}, and fed {fed:?}"));
        }
        Ok(())
    }

    fn chance(&self, one_in: u32) -> bool {
        self.stage.world().lock().chance(one_in)
    }

    /// Any convoy, but rather one that is not closed.
    fn any_convoy(&mut self) -> Result<String, StoreError> {
        let is_all = self.chance(4);
        let known: Vec<String> = self.stage.store.convoys(is_all)?.into_iter().map(|one| one.id).collect();
        let picked = self.stage.world().lock().pick(&known);
        Ok(picked.unwrap_or_else(|| "hq-cv-none".to_owned()))
    }

    /// Beads of any rig, done or not; now and then a convoy, or one that is not there.
    fn some_beads(&mut self, max: usize) -> Result<Vec<String>, StoreError> {
        let (is_convoy, is_missing) = (self.chance(8), self.chance(20));
        let filter = Filter { all: self.chance(2), issue_type: Some("task".to_owned()), ..Filter::default() };
        let known: Vec<String> =
            self.stage.store.list(&filter, 0)?.beads.into_iter().map(|view| view.bead.id).collect();
        let mut beads: Vec<String> = {
            let mut world = self.stage.world().lock();
            let n = world.rng.usize(0..=max);
            (0..n).filter_map(|_| world.pick(&known)).collect()
        };
        if is_convoy {
            beads.push(self.any_convoy()?);
        }
        beads.extend(is_missing.then(|| "gt-none".to_owned()));
        beads.sort();
        beads.dedup();
        Ok(beads)
    }

    fn any_member(&mut self) -> Result<(String, String), StoreError> {
        let convoy = self.any_convoy()?;
        let edges = self.stage.store.bead(&convoy)?.bead.edges;
        let picked = self.stage.world().lock().pick(&edges).map(|edge| edge.target);
        Ok((convoy, picked.unwrap_or_else(|| "gt-none".to_owned())))
    }

    /// What was acknowledged is so.
    fn expect_closed(&mut self, convoy: &str) {
        let status = self.stage.store.bead(convoy).map(|view| view.bead.status);
        if !status.is_ok_and(|status| status.is_terminal()) {
            self.stage.world().violation(format!("what was acknowledged of {convoy} is not so"));
        }
    }
}
