//! Agents: they finish, fail, put off, hang, die, say it twice, or speak after they were declared dead.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;

use gt_core::run::Outcome;
use gt_engine::daemon::Cause;
use gt_store::{Report, StoreError};
use serde_json::json;

use crate::part::Part;
use crate::people::command;
use crate::processes::Errand;
use crate::stage::{RunKind, Stage};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// One thing that an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Say(Outcome),
    AskForHelp,
    Exit(i32),
    Die,
    /// Prints something: that it goes on, waits for an approval, has met a limit that passes after so many seconds, is not
    /// logged in, or that its turn is over.
    Print(Line),
    /// Goes on, and is taken for dead.
    Vanish,
    Hang,
}

/// What an agent prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    GoesOn,
    Asks,
    Limit(Option<i64>),
    NoLogin,
    TurnOver,
}

#[derive(Default)]
pub struct Agents {
    /// What each living agent is still going to do.
    scripts: BTreeMap<String, VecDeque<Act>>,
    /// Runs that were taken for dead or are over, and may still say something.
    ghosts: Vec<String>,
    /// Whether they all do their work now.
    are_good: bool,
}

impl Part for Agents {
    fn weight(&self, stage: &Stage) -> u32 {
        let n_running = u32::try_from(stage.ground.runtime.n_running()).unwrap_or(u32::MAX);
        1 + 10 * n_running.min(3)
    }

    fn act(&mut self, stage: &mut Stage) {
        let stopping = stage.ground.runtime.stopping();
        let (picked, speaks, ends) = {
            let mut world = stage.world().lock();
            (world.pick(&stopping), world.chance(12), world.chance(2))
        };
        if speaks {
            return self.speak_as_ghost(stage);
        }
        if speak_at_last(stage) {
            return;
        }
        if ends && self.heed_interrupt(stage) {
            return;
        }
        if let Some(run) = picked.filter(|_| ends) {
            let is_gentle = stage.world().lock().rng.bool();
            return self.end(stage, &run, None, Some(if is_gentle { SIGTERM } else { SIGKILL }));
        }
        let running = stage.running(RunKind::Bead);
        let picked = stage.world().lock().pick(&running);
        if let Some(run) = picked {
            self.act_as(stage, &run);
        }
    }

    fn heal(&mut self, _stage: &mut Stage) {
        self.are_good = true;
        self.scripts.clear();
        self.ghosts.clear();
    }

    fn work(&mut self, stage: &mut Stage) -> bool {
        if let Some(run) = stage.ground.runtime.stopping().first() {
            self.end(stage, run, None, Some(SIGTERM));
            return true;
        }
        if self.heed_interrupt(stage) {
            return true;
        }
        let running = stage.running(RunKind::Bead);
        // One that hangs after its last word waits to be ended; the others have something to do.
        let busy = running.iter().find(|run| self.scripts.get(*run).is_none_or(|script| !script.is_empty()));
        let Some(run) = busy.cloned() else { return false };
        self.act_as(stage, &run);
        true
    }
}

impl Agents {
    fn act_as(&mut self, stage: &mut Stage, run: &str) {
        if !self.scripts.contains_key(run) {
            let script = self.draw(stage);
            self.scripts.insert(run.to_owned(), script);
        }
        let act = self.scripts.get_mut(run).and_then(VecDeque::pop_front);
        stage.world().tell(|| format!("agent {run}: {act:?}"));
        match act {
            Some(Act::Say(outcome)) => drop(say(stage, run, outcome)),
            Some(Act::AskForHelp) => ask_for_help(stage, run),
            Some(Act::Print(line)) => print(stage, run, line),
            Some(Act::Exit(code)) => self.end(stage, run, Some(code), None),
            Some(Act::Die) => self.end(stage, run, None, Some(SIGKILL)),
            Some(Act::Vanish) => self.end(stage, run, None, None),
            Some(Act::Hang) | None => {}
        }
    }

    /// Somebody was interrupted: it goes on, prints no more than an echo, dies of it, or does not care.
    fn heed_interrupt(&mut self, stage: &mut Stage) -> bool {
        let (run, how) = {
            let mut world = stage.world().lock();
            (world.pokes.pop(), world.rng.u32(0..5))
        };
        let running = stage.ground.runtime.running();
        let Some(run) = run.filter(|run| running.contains(run)) else { return false };
        stage.world().tell(|| format!("agent {run} is interrupted ({how})"));
        match how {
            0 | 1 => {
                print(stage, &run, Line::GoesOn);
                self.scripts.insert(run, VecDeque::from([Act::Say(Outcome::Completed), Act::Exit(0)]));
            }
            2 => {
                let mut world = stage.world().lock();
                if let Some(sign) = world.signs.get(&run).copied() {
                    world.give_sign(&run, sign.is_excused);
                }
            }
            3 => self.end(stage, &run, None, Some(SIGINT)),
            _ => {}
        }
        true
    }

    fn draw(&self, stage: &Stage) -> VecDeque<Act> {
        use Act::{AskForHelp, Die, Exit, Hang, Print, Say, Vanish};
        use Line::{Asks, GoesOn, Limit, NoLogin, TurnOver};
        let (done, failed, deferred) = (Say(Outcome::Completed), Say(Outcome::Failed), Say(Outcome::Deferred));
        let mut world = stage.world().lock();
        if self.are_good {
            // All work gets done in the end; that some linger after it or hang before it is for the daemon to see to.
            let n_ways = if world.machine.is_watched { 10 } else { 7 };
            return match world.rng.u32(0..n_ways) {
                0 => VecDeque::from([done]),
                // What it has cost is told by its last record, too, and nobody need have listened to that.
                7 | 8 => VecDeque::from([done, Print(TurnOver), Exit(0)]),
                9 => VecDeque::from([Print(TurnOver), done, Exit(0)]),
                // Whoever waits for somebody who never comes is ended when its time is over.
                6 => VecDeque::from([Print(Asks)]),
                1 => VecDeque::new(),
                _ => VecDeque::from([done, Exit(0)]),
            };
        }
        if world.rng.u32(0..3) == 0 {
            return VecDeque::from([done, Exit(0)]);
        }
        // A step is over with a word, without one, or has failed.
        if world.recipes.is_used && world.rng.bool() {
            let ways = [[done, Exit(0)], [failed, Exit(3)], [Exit(0), Hang]];
            return world.pick(&ways).map(VecDeque::from).unwrap_or_default();
        }
        let words = [done, done, failed, deferred, AskForHelp, Hang, Print(GoesOn), Print(Asks), Print(TurnOver)];
        let last_words = [Limit(None), Limit(Some(5)), Limit(Some(60)), Limit(Some(600)), NoLogin];
        if world.rng.u32(0..6) == 0 {
            let line = world.pick(&last_words).unwrap_or(NoLogin);
            let then = world.pick(&[Exit(1), Exit(1), Die, Vanish, Hang, Print(GoesOn)]).unwrap_or(Die);
            return VecDeque::from([Print(Asks), Print(line), then, Hang]);
        }
        let n_words = world.rng.usize(0..4);
        let mut script: VecDeque<Act> = (0..n_words).filter_map(|_| world.pick(&words)).collect();
        script.extend(world.pick(&[Exit(0), Exit(3), Die, Vanish, Hang]));
        script
    }

    /// The process ends; where no daemon listens, the keeper calls somebody.
    fn end(&mut self, stage: &mut Stage, run: &str, code: Option<i32>, signal: Option<i32>) {
        leave_work(stage, run);
        stage.ground.runtime.end(run, code, signal);
        stage.world().tell(|| format!("{run} ended ({code:?}, {signal:?})"));
        self.scripts.remove(run);
        self.ghosts.push(run.to_owned());
        if !stage.is_watched() {
            command(stage, Errand::CarryOn);
        }
    }

    /// Somebody who should be silent speaks: it must change nothing, and be told so.
    fn speak_as_ghost(&mut self, stage: &mut Stage) {
        let picked = stage.world().lock().pick(&self.ghosts);
        let Some(run) = picked else { return };
        let outcome = [Outcome::Completed, Outcome::Failed, Outcome::Deferred][stage.world().lock().rng.usize(0..3)];
        stage.world().tell(|| format!("ghost {run}: {outcome:?}"));
        drop(say(stage, &run, outcome));
    }
}

/// A silent run says something just when somebody has found out how long it is silent.
fn speak_at_last(stage: &mut Stage) -> bool {
    let (run, outcome) = {
        let mut world = stage.world().lock();
        let Some(run) = world.found_silent.pop() else { return false };
        (run, if world.chance(2) { Outcome::Completed } else { Outcome::Failed })
    };
    if !stage.ground.runtime.running().contains(&run) {
        return false;
    }
    stage.world().tell(|| format!("agent {run}, which was silent: {outcome:?}"));
    drop(say(stage, &run, outcome));
    true
}

/// `gt done`. A word that does not count changes nothing; one that counts is there afterwards.
fn say(stage: &mut Stage, run: &str, outcome: Outcome) -> Result<(), StoreError> {
    let before = stage.store.last_event()?;
    let known = stage.store.run(run)?;
    let report = Report {
        run: run.to_owned(),
        outcome,
        note: Some("so it is".to_owned()),
        cost: Some(0.01),
        merge: None,
        tip: None,
    };
    let stamp = stage.stamp(run);
    let answer = stage.store.report(&report, &stamp);
    let (after, now) = (stage.store.last_event()?, stage.store.run(run)?);
    let counts = known.as_ref().is_some_and(|run| run.is_live() && run.stop.is_none());
    // To be done with a step is to be done, for whoever does it.
    let is_it = |said: Option<Outcome>| {
        said == Some(outcome) || (outcome == Outcome::Completed && said == Some(Outcome::StepDone))
    };
    let has_said_so = known.as_ref().is_some_and(|run| is_it(run.said));
    let complaint = match &answer {
        Ok(Some(_)) if !counts => Some("a stale run was heard"),
        Ok(Some(_)) if now.is_none_or(|run| !is_it(run.said)) => Some("what a run said was lost"),
        Ok(None) if !has_said_so => Some("a run's word was passed over"),
        Ok(None) | Err(_) if before != after => Some("a word that did not count changed something"),
        Err(error) if !Stage::is_outage(error) && counts => Some("a live run was not heard"),
        _ => None,
    };
    if let Some(complaint) = complaint {
        stage.world().violation(format!("{complaint}: {run} said {outcome:?}, {answer:?}"));
    }
    if matches!(answer, Ok(Some(_))) {
        stage.world().lock().machine.note_price(run, 0.01);
    }
    answer.map(drop)
}

/// The agent prints a line; whoever listens hears of it, or not.
pub fn print(stage: &mut Stage, run: &str, line: Line) {
    let now = stage.world().now().as_second();
    let result = |error: bool, status: u32, words: &str| json!({ "type": "result", "is_error": error, "api_error_status": status, "result": words, "total_cost_usd": 0.02 });
    let lines = match line {
        Line::GoesOn => vec![json!({ "type": "assistant", "message": { "content": [] } })],
        Line::Asks => vec![json!({ "type": "control_request", "request": { "subtype": "can_use_tool" } })],
        Line::TurnOver => vec![result(false, 0, "done")],
        Line::NoLogin => vec![result(true, 401, "not logged in")],
        Line::Limit(None) => vec![result(true, 429, "slow down")],
        Line::Limit(Some(after)) => {
            let info = json!({ "status": "rejected", "resetsAt": now + after });
            vec![json!({ "type": "rate_limit_event", "rate_limit_info": info }), result(true, 429, "slow down")]
        }
    };
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let text = lines.join("\n") + "\n";
    let log = stage.ground.town.log_path(run);
    let dir = stage.ground.town.logs_dir();
    std::fs::create_dir_all(dir).expect("the town can be written");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("the town can be written");
    let is_live = stage.look().run(run).is_ok_and(|run| run.is_some_and(|run| run.is_live()));
    let mut world = stage.world().lock();
    if is_live && matches!(line, Line::TurnOver | Line::NoLogin | Line::Limit(_)) {
        world.machine.note_price(run, 0.02);
    }
    if world.signs.contains_key(run) {
        world.give_sign(run, line != Line::GoesOn);
    }
    let told = world.unable.entry(run.to_owned()).or_default();
    told.now = match line {
        Line::Limit(_) => Some(Outcome::RateLimited),
        Line::NoLogin => Some(Outcome::AgentUnable),
        Line::GoesOn | Line::TurnOver => None,
        Line::Asks => told.now,
    };
    told.ever.extend(told.now);
    let lost_bell = world.faults.lost_bell;
    if !world.chance(lost_bell) {
        world.post_all(|| Cause::Told);
    }
}

fn ask_for_help(stage: &mut Stage, run: &str) {
    let Ok(Some(known)) = stage.store.run(run) else { return };
    let stamp = stage.stamp(run);
    // A stale run is refused; that is checked where it reports.
    stage.store.escalate(&known.bead, Some(run), "which way?", &stamp).unwrap_or_default();
}

/// Sometimes something is in the worktree that is on no branch.
fn leave_work(stage: &Stage, run: &str) {
    let Some(launch) = stage.ground.runtime.launch(run) else { return };
    let mut world = stage.world().lock();
    let unsaved = world.faults.unsaved;
    if world.chance(unsaved)
        && let Some(place) = world.places.get_mut(&launch.dir)
    {
        place.unsaved = Some("uncommitted changes".to_owned());
    }
}
