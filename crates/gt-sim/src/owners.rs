//! Who looks after convoys: they make, stage, open, change, land and cancel them at random, and feed what is stranded.

use fastrand::Rng;
use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::status::Status;
use gt_store::{BeadPatch, FedConvoy, Filter, Going, MAYOR, NewBead, NewConvoy, NewLetter, Staging, Stamp, StoreError};
use jiff::SignedDuration;

use crate::knobs::RIGS;
use crate::letters::{HELLO, WATCHER};
use crate::part::Part;
use crate::people::{command, expect_clear_refusal};
use crate::processes::Errand;
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
    /// `gt convoy stage` or `launch`: of an epic, of tasks, of one that is there.
    Launch,
    /// An epic is made, or gets work.
    Epic,
    Check,
    Close,
    Land,
    Cancel,
    Delete,
    /// `gt deacon feed-stranded`.
    Feed,
    Sweep,
    /// `gt mail`: somebody writes, or reads.
    Write,
    Read,
    /// `gt deacon redispatch` and `stale-hooks`.
    Redispatch,
    FreeHooks,
}

/// Every deed, and how often it is done in an average town.
const DEEDS: [(Deed, u32); 20] = [
    (Deed::Create, 8),
    (Deed::Stage, 3),
    (Deed::Launch, 6),
    (Deed::Epic, 4),
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
    (Deed::Write, 1),
    (Deed::Read, 1),
    (Deed::Redispatch, 3),
    (Deed::FreeHooks, 1),
];

/// No town has more epics that are not done.
const EPICS_MAX: usize = 2;

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

    /// Nobody works on epics; a person closes them.
    fn tidy(&mut self, stage: &mut Stage) {
        let stamp = stage.stamp("cleo");
        let epics = Visit { stage: &mut *stage, stamp: &stamp }.epics().expect("nothing is wrong any more");
        for epic in epics {
            stage.store.close_beads(&[epic], None, &stamp).expect("a person may do this");
        }
    }
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
            Deed::Epic => self.epic(),
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
            Deed::Write => self.write(),
            Deed::Read => self.read(),
            Deed::Redispatch => self.redispatch(),
            Deed::FreeHooks => {
                let age = SignedDuration::from_secs(self.stage.world().lock().rng.i64(0..120));
                self.stage.store.release_stale_hooks(self.stamp.now - age, self.stamp).map(drop)
            }
        }
    }

    fn create(&mut self) -> Result<(), StoreError> {
        let members = self.some_beads(5)?;
        let new = NewConvoy {
            title: "Together".to_owned(),
            members,
            is_owned: self.chance(4),
            watchers: vec![WATCHER.to_owned()],
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
        let what = self.stage.world().lock().rng.u32(0..4);
        let words = match what {
            0 => self.some_beads(4)?,
            1 => vec![self.any_convoy()?],
            _ => self.epics()?.into_iter().take(1).collect(),
        };
        let then = if self.chance(2) { Going::Stage } else { Going::Launch { force: !self.chance(4) } };
        if !words.is_empty() {
            command(self.stage, Errand::Stage(Box::new(Staging { words, title: None, then })));
        }
        Ok(())
    }

    /// Those that are not done, in any order.
    fn epics(&mut self) -> Result<Vec<String>, StoreError> {
        let filter = Filter { issue_type: Some("epic".to_owned()), ..Filter::default() };
        let mut epics: Vec<String> =
            self.stage.store.list(&filter, 0)?.beads.into_iter().map(|view| view.bead.id).collect();
        self.stage.world().lock().rng.shuffle(&mut epics);
        Ok(epics)
    }

    /// A new one, work for one, or something that waits for one.
    fn epic(&mut self) -> Result<(), StoreError> {
        let epics = self.epics()?;
        if epics.len() < EPICS_MAX && (epics.is_empty() || self.chance(4)) {
            let mut bead = Bead::new("", "Something big");
            bead.issue_type = Some("epic".to_owned());
            let new = NewBead { prefix: RIGS[0].1.to_owned(), parent: None, bead };
            return self.stage.store.create_bead(&new, self.stamp).map(drop);
        }
        let (Some(epic), tasks) = (epics.into_iter().next(), self.some_beads(3)?) else { return Ok(()) };
        let Some(task) = tasks.first() else { return Ok(()) };
        let kind = if self.chance(8) { "blocks" } else { "parent-child" };
        self.stage.store.add_edge(task, &Edge::new(&epic, EdgeType::parse(kind)), self.stamp).map(drop)
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

    fn write(&mut self) -> Result<(), StoreError> {
        let bead = self.some_beads(1)?.into_iter().next();
        let letter = NewLetter {
            to: MAYOR.to_owned(),
            subject: format!("{HELLO} from cleo"),
            body: "How is it going?".to_owned(),
            bead,
            run: None,
        };
        let id = self.stage.store.send_mail(&letter, self.stamp)?;
        let there = self.stage.store.inbox(MAYOR, true, usize::MAX >> 1)?.letters;
        if !there.iter().any(|one| one.id == id && one.subject == letter.subject) {
            self.stage.world().violation(format!("letter {id} was acknowledged, and is not there"));
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), StoreError> {
        let who = if self.chance(2) { MAYOR } else { WATCHER };
        let unread: Vec<i64> =
            self.stage.store.inbox(who, false, 10)?.letters.into_iter().map(|letter| letter.id).collect();
        let picked = self.stage.world().lock().pick(&unread);
        let Some(id) = picked else { return Ok(()) };
        self.stage.store.read_mail(id, self.stamp)?;
        if self.stage.store.inbox(who, false, usize::MAX >> 1)?.letters.iter().any(|letter| letter.id == id) {
            self.stage.world().violation(format!("letter {id} was read, and is not"));
        }
        Ok(())
    }

    /// By the policy of the config as it is.
    fn redispatch(&mut self) -> Result<(), StoreError> {
        let Some(bead) = self.some_beads(2)?.into_iter().next() else { return Ok(()) };
        let town = &self.stage.ground.town;
        let policy = self.stage.settings_in_force().policy(town.root());
        let answer = self.stage.store.redispatch(&bead, &policy, self.stamp)?;
        self.stage.world().tell(|| format!("the deacon gives out {bead} again: {answer:?}"));
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
