//! Agents that answer turns: they answer, and end or linger; say half of it, fail, hang, die; meet a limit; or ask another
//! session and wait for its answer.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;

use gt_engine::daemon::Cause;
use gt_store::{NewMessage, Sent, TurnState};
use serde_json::json;

use super::NESTED;
use super::book::Shared;
use super::config::{PLAIN, WINDOW};
use super::speakers::{Sending, send};
use crate::agents::{Line, print};
use crate::part::Part;
use crate::people::command;
use crate::processes::Errand;
use crate::stage::{RunKind, Stage};

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// One thing that an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Answer,
    /// Prints something that is not the whole answer.
    Begin,
    Exit(i32),
    Die,
    /// Goes without a trace of how.
    Vanish,
    Hang,
    Print(Line),
    /// Asks another session, and waits for the answer.
    Ask,
}

pub(super) struct Answerers {
    book: Shared,
    scripts: BTreeMap<String, VecDeque<Act>>,
    /// What runs have asked others, and wait for.
    asked: BTreeMap<String, i64>,
    n_asked: u32,
    /// Whether most of them do well now; and whether all do.
    are_good: bool,
    are_best: bool,
}

impl Answerers {
    pub(super) fn new(book: Shared) -> Answerers {
        let (scripts, asked) = (BTreeMap::new(), BTreeMap::new());
        Answerers { book, scripts, asked, n_asked: 0, are_good: false, are_best: false }
    }

    fn draw(&self, stage: &Stage) -> VecDeque<Act> {
        use Act::{Answer, Ask, Begin, Die, Exit, Hang, Print, Vanish};
        let mut world = stage.world().lock();
        if self.are_best {
            return VecDeque::from([Answer, Exit(0)]);
        }
        let kinds: [&[Act]; 14] = [
            &[Answer, Exit(0)],
            &[Answer, Hang],
            &[Begin, Ask, Answer, Exit(0)],
            &[Answer, Exit(0)],
            &[Ask, Answer, Exit(0)],
            &[Begin, Answer, Vanish],
            &[Answer, Die],
            &[Hang],
            &[Begin, Exit(3)],
            &[Begin, Die],
            &[Vanish],
            &[Print(Line::Limit(Some(60))), Exit(1)],
            &[Print(Line::NoLogin), Exit(1)],
            &[Exit(3)],
        ];
        let n_kinds = if self.are_good { 5 } else { kinds.len() };
        kinds[world.rng.usize(0..n_kinds)].iter().copied().collect()
    }

    /// Does the next thing; says whether there was anything to do.
    fn act_as(&mut self, stage: &mut Stage, run: &str) -> bool {
        if self.is_waiting(stage, run) {
            return false;
        }
        if !self.scripts.contains_key(run) {
            let script = self.draw(stage);
            self.scripts.insert(run.to_owned(), script);
        }
        let act = self.scripts.get_mut(run).and_then(VecDeque::pop_front);
        let Some(act) = act.filter(|act| *act != Act::Hang) else { return false };
        stage.world().tell(|| format!("agent {run}: {act:?}"));
        match act {
            Act::Answer => self.answer(stage, run, true),
            Act::Begin => self.answer(stage, run, false),
            Act::Exit(code) => self.end(stage, run, Some(code), None),
            Act::Die => self.end(stage, run, None, Some(SIGKILL)),
            Act::Vanish => self.end(stage, run, None, None),
            // Whoever prints no records cannot say so.
            Act::Print(line) if !is_plain(stage, run) => print(stage, run, line),
            Act::Ask => self.ask(stage, run),
            Act::Print(_) | Act::Hang => {}
        }
        true
    }

    /// Whether it has asked somebody who has not answered.
    fn is_waiting(&mut self, stage: &mut Stage, run: &str) -> bool {
        let Some(turn) = self.asked.get(run).copied() else { return false };
        let view = stage.look().turn(turn).ok().flatten();
        if view.is_some_and(|view| view.state != TurnState::Ended) {
            return true;
        }
        self.asked.remove(run);
        false
    }

    fn ask(&mut self, stage: &mut Stage, run: &str) {
        self.n_asked += 1;
        let session = NESTED[stage.world().lock().rng.usize(0..NESTED.len())].to_owned();
        let message = NewMessage {
            session,
            text: format!("question {}", self.n_asked),
            sender: run.to_owned(),
            channel: "agent".to_owned(),
            parent: Some(run.to_owned()),
            ..NewMessage::default()
        };
        if let Sending::Taken(Sent { turn: Some(turn), .. }) = send(stage, &self.book, &message) {
            self.asked.insert(run.to_owned(), turn);
        }
    }

    fn answer(&self, stage: &Stage, run: &str, is_all: bool) {
        let Some(launch) = stage.ground.runtime.launch(run) else { return };
        let env: BTreeMap<&str, &str> =
            launch.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let text = if is_all { format!("answer of {run}") } else { "well".to_owned() };
        let tokens = stage.world().lock().rng.u64(1..WINDOW);
        let resumed = env.get("GT_CONVERSATION").copied().filter(|name| !name.is_empty());
        let conversation = resumed.map_or_else(|| format!("talk-{run}"), str::to_owned);
        let mut lines = vec![text.clone()];
        if !is_plain(stage, run) {
            let message = json!({ "id": format!("{run}-{is_all}"), "content": [{ "type": "text", "text": text }],
                                  "usage": { "input_tokens": tokens } });
            let said = json!({ "type": "assistant", "message": message });
            lines = vec![json!({ "type": "system", "subtype": "init", "session_id": conversation }).to_string()];
            lines.push(said.to_string());
            let result = json!({ "type": "result", "is_error": false, "result": text });
            lines.extend(is_all.then(|| result.to_string()));
        }
        let file = std::fs::OpenOptions::new().create(true).append(true).open(stage.ground.town.log_path(run));
        file.and_then(|mut file| file.write_all((lines.join("\n") + "\n").as_bytes()))
            .expect("the town can be written");
        let mut book = self.book.lock();
        let answer = book.answers.entry(run.to_owned()).or_default();
        if is_plain(stage, run) && !answer.text.is_empty() {
            answer.text.push('\n');
            answer.text.push_str(&text);
        } else {
            answer.text = text;
        }
        // A record says that it is the last one; what is plain is known to be all once it has ended well.
        answer.is_whole = is_all && !is_plain(stage, run);
        drop(book);
        let mut world = stage.world().lock();
        let lost_bell = world.faults.lost_bell;
        if !world.chance(lost_bell) {
            world.post_all(|| Cause::Told);
        }
    }

    /// The process ends; where no daemon listens, the keeper calls somebody.
    fn end(&mut self, stage: &mut Stage, run: &str, code: Option<i32>, signal: Option<i32>) {
        if code == Some(0)
            && let Some(answer) = self.book.lock().answers.get_mut(run)
        {
            answer.is_whole = true;
        }
        stage.ground.runtime.end(run, code, signal);
        stage.world().tell(|| format!("{run} ended ({code:?}, {signal:?})"));
        self.scripts.remove(run);
        self.asked.remove(run);
        if !stage.is_watched() {
            command(stage, Errand::CarryOn);
        }
    }
}

fn is_plain(stage: &Stage, run: &str) -> bool {
    let launch = stage.ground.runtime.launch(run);
    launch.is_some_and(|launch| launch.argv.first().is_some_and(|program| program == PLAIN))
}

impl Part for Answerers {
    fn weight(&self, stage: &Stage) -> u32 {
        1 + 8 * u32::try_from(stage.ground.runtime.n_running()).unwrap_or(u32::MAX).min(3)
    }

    fn act(&mut self, stage: &mut Stage) {
        let (running, stopping) = (stage.running(RunKind::Turn), stage.ground.runtime.stopping());
        let (one, other, ends) = {
            let mut world = stage.world().lock();
            (world.pick(&running), world.pick(&stopping), world.chance(2))
        };
        match (one, other) {
            (_, Some(run)) if ends => self.end(stage, &run, None, Some(SIGTERM)),
            (Some(run), _) => drop(self.act_as(stage, &run)),
            _ => {}
        }
    }

    /// From now on all of them answer in the end; some linger after it, or ask others.
    fn heal(&mut self, _stage: &mut Stage) {
        self.are_good = true;
        self.scripts.retain(|_, script| script.contains(&Act::Answer));
    }

    fn tidy(&mut self, _stage: &mut Stage) {
        self.are_best = true;
    }

    fn work(&mut self, stage: &mut Stage) -> bool {
        if let Some(run) = stage.ground.runtime.stopping().first() {
            self.end(stage, run, None, Some(SIGTERM));
            return true;
        }
        stage.running(RunKind::Turn).into_iter().any(|run| self.act_as(stage, &run))
    }
}
