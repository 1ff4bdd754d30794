//! Scenarios: the same world without chance, moved by hand from boundary to boundary.
//!
//! For what a seed has found, and for races that are to be impossible: a test says who moves how far, and the judge
//! looks after every move as it does in a simulation.

use std::time::Duration;

use gt_core::bead::Bead;
use gt_core::edge::{Edge, EdgeType};
use gt_core::run::Outcome;
use gt_store::{NewBead, Report, Run};
use jiff::SignedDuration;

use crate::agents::{self, Line};
use crate::faults::Faults;
use crate::judge::Judge;
use crate::knobs::Knobs;
use crate::processes::Errand;
use crate::stage::Stage;
use crate::strand::Halt;
use crate::world::Pid;

/// No process makes more moves than this on its way to anything.
const MOVES_MAX: usize = 10_000;

pub struct Scenario {
    pub stage: Stage,
    judge: Judge,
}

impl Scenario {
    /// A town in which nothing goes wrong by itself, and everybody stops at every boundary.
    pub fn new(knobs: Knobs) -> Scenario {
        let mut stage = Stage::set(0, false, true);
        stage.world().lock().faults = Faults::none(1);
        stage.configure(knobs);
        let judge = Judge::new(&stage);
        Scenario { stage, judge }
    }

    /// A bead of the first rig.
    pub fn bead(&mut self, title: &str) -> String {
        let mut bead = Bead::new("", title);
        bead.issue_type = Some("task".to_owned());
        let new = NewBead { prefix: "gt".to_owned(), parent: None, bead };
        let stamp = self.stage.stamp("tester");
        let id = self.stage.store.create_bead(&new, &stamp).expect("nothing is wrong with it");
        self.look();
        id
    }

    pub fn link(&mut self, source: &str, target: &str) {
        let stamp = self.stage.stamp("tester");
        let edge = Edge::new(target, EdgeType::Blocks);
        self.stage.store.add_edge(source, &edge, &stamp).expect("nothing is wrong with it");
        self.look();
    }

    pub fn launch(&mut self, errand: Errand) -> Pid {
        self.stage.launch(errand)
    }

    /// Lets a process move over so many boundaries; says whether it could, and is not over.
    pub fn step(&mut self, pid: Pid, n: usize) -> bool {
        (0..n).all(|_| self.step_once(pid))
    }

    fn step_once(&mut self, pid: Pid) -> bool {
        if !self.stage.ready_strands().contains(&pid) {
            return false;
        }
        self.stage.reads_since = None;
        self.stage.world().lock().step += 1;
        self.stage.step_strand(pid);
        self.look();
        true
    }

    /// Lets a process move until something is so.
    pub fn step_until(&mut self, pid: Pid, mut is_so: impl FnMut(&mut Scenario) -> bool) {
        for _ in 0..MOVES_MAX {
            if is_so(self) {
                return;
            }
            assert!(self.step_once(pid), "process {pid} can move until it is so; the story so far:\n{}", self.story());
        }
        panic!("it never becomes so; the story so far:\n{}", self.story());
    }

    /// Lets a process move until it is over, idle, or has to wait for another.
    pub fn finish(&mut self, pid: Pid) {
        for _ in 0..MOVES_MAX {
            if !self.step_once(pid) {
                return;
            }
        }
        panic!("process {pid} never comes to an end");
    }

    /// Lets everybody move until nobody can.
    pub fn settle(&mut self) {
        for _ in 0..MOVES_MAX {
            let ready = self.stage.ready_strands();
            let has_moved = match ready.first() {
                Some(pid) => self.step_once(*pid),
                None => self.stage.step_aside(),
            };
            if !has_moved {
                return;
            }
        }
        panic!("nobody comes to rest");
    }

    pub fn is_over(&self, pid: Pid) -> bool {
        !self.stage.strands.contains_key(&pid)
    }

    pub fn waits_for_turn(&self, pid: Pid) -> bool {
        self.stage.strands.get(&pid).is_some_and(|strand| strand.halted_at() == Halt::WantsTurn)
    }

    pub fn kill(&mut self, pid: Pid) {
        self.stage.kill(pid);
        self.look();
    }

    pub fn pass(&mut self, span: Duration) {
        self.stage.world().lock().pass(span);
    }

    pub fn set_clock(&mut self, by: SignedDuration) {
        self.stage.world().lock().shift_clock(by);
    }

    pub fn live_runs(&mut self) -> Vec<Run> {
        self.judge.store.live_runs().expect("the store answers").to_vec()
    }

    /// The runs of a bead, the latest first.
    pub fn runs_of(&mut self, bead: &str) -> Vec<Run> {
        self.judge.store.runs_of(bead).expect("the bead is there")
    }

    pub fn running(&self) -> Vec<String> {
        self.stage.ground.runtime.running()
    }

    /// An agent says something; what it is told.
    pub fn say(&mut self, run: &str, outcome: Outcome) -> Result<bool, String> {
        let report = Report {
            run: run.to_owned(),
            outcome,
            note: Some("so it is".to_owned()),
            cost: None,
            merge: None,
            tip: None,
        };
        let stamp = self.stage.stamp(run);
        let answer = self.stage.store.report(&report, &stamp);
        self.look();
        answer.map(|changed| changed.is_some()).map_err(|error| error.to_string())
    }

    /// An agent prints something; whoever listens hears of it.
    pub fn print(&mut self, run: &str, line: Line) {
        agents::print(&mut self.stage, run, line);
        self.look();
    }

    pub fn end(&mut self, run: &str, code: i32) {
        self.stage.ground.runtime.end(run, Some(code), None);
        self.look();
    }

    /// What has happened, one line each.
    pub fn story(&self) -> String {
        self.stage.world().lock().story.clone().unwrap_or_default().join("\n")
    }

    /// Every invariant, after every move.
    pub fn look(&mut self) {
        if let Err(violation) = self.judge.look(&mut self.stage) {
            panic!("{violation}; the story so far:\n{}", self.story());
        }
    }
}
