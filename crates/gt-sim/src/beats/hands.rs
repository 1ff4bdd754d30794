//! Agents of a town of heartbeats: they look after their lists and answer people, end or linger, fail, hang and die, some of
//! them again and again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write as _;

use fastrand::Rng;
use gt_engine::daemon::Cause;
use gt_store::beat_of;
use serde_json::json;

use super::AGENTS;
use super::answers::{self, DAILY};
use super::book::{Meaning, Reply, Shared};
use crate::agents::{Line, print};
use crate::part::Part;
use crate::people::command;
use crate::processes::Errand;
use crate::stage::Stage;

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
    Limit,
}

/// How well agents do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Any,
    /// Most answer, some fail or hang.
    Good,
    /// All say the same.
    Daily,
}

pub(crate) struct Hands {
    /// Where what they say is noted; elsewhere they say many words, each with its number.
    book: Option<Shared>,
    scripts: BTreeMap<String, VecDeque<Act>>,
    /// Agents that fail whatever they do.
    broken: BTreeSet<String>,
    mood: Mood,
    /// Those that hang until they are stopped.
    hung: BTreeSet<String>,
}

impl Hands {
    pub(crate) fn new(book: Option<Shared>) -> Hands {
        Hands { book, scripts: BTreeMap::new(), broken: BTreeSet::new(), mood: Mood::Any, hung: BTreeSet::new() }
    }

    fn draw(&self, stage: &Stage, agent: &str) -> VecDeque<Act> {
        use Act::{Answer, Begin, Die, Exit, Hang, Limit, Vanish};
        let mut world = stage.world().lock();
        let kinds: [&[Act]; 12] = [
            &[Answer, Exit(0)],
            &[Answer, Exit(0)],
            &[Begin, Answer, Exit(0)],
            &[Answer, Hang],
            &[Begin, Exit(3)],
            &[Exit(3)],
            &[Answer, Die],
            &[Hang],
            &[Begin, Die],
            &[Begin, Answer, Vanish],
            &[Vanish],
            &[Limit, Exit(1)],
        ];
        if self.broken.contains(agent) && self.mood != Mood::Daily {
            return VecDeque::from([Exit(3)]);
        }
        let n_kinds = match self.mood {
            Mood::Any => kinds.len(),
            Mood::Good => 6,
            Mood::Daily => 1,
        };
        kinds[world.rng.usize(0..n_kinds)].iter().copied().collect()
    }

    /// Does the next thing; says whether there was anything to do.
    fn act_as(&mut self, stage: &mut Stage, run: &str) -> bool {
        if self.hung.contains(run) {
            return false;
        }
        let Some(agent) = agent_of(stage, run) else { return false };
        if !self.scripts.contains_key(run) {
            let script = self.draw(stage, &agent);
            self.scripts.insert(run.to_owned(), script);
        }
        let Some(act) = self.scripts.get_mut(run).and_then(VecDeque::pop_front) else { return false };
        stage.world().tell(|| format!("agent {run} ({agent}): {act:?}"));
        match act {
            Act::Answer => self.answer(stage, run, true),
            Act::Begin => self.answer(stage, run, false),
            Act::Exit(code) => self.end(stage, run, Some(code), None),
            Act::Die => self.end(stage, run, None, Some(SIGKILL)),
            Act::Vanish => self.end(stage, run, None, None),
            Act::Limit => print(stage, run, Line::Limit(Some(60))),
            Act::Hang => drop(self.hung.insert(run.to_owned())),
        }
        true
    }

    fn answer(&self, stage: &mut Stage, run: &str, is_all: bool) {
        let view = stage.look().run(run).ok().flatten().and_then(|run| run.turn);
        let Some(session) = view.map(|turn| turn.session) else { return };
        let is_beat = session.starts_with(&beat_of(""));
        let (text, meaning) = match (is_beat, self.mood) {
            (true, Mood::Daily) => (DAILY.to_owned(), Meaning::Alert(DAILY.to_owned())),
            (true, _) => answers::draw(&mut stage.world().lock().rng),
            (false, _) if self.book.is_none() => (words_of(run, &mut stage.world().lock().rng), Meaning::Nothing),
            (false, _) => (format!("answer of {run}"), Meaning::Nothing),
        };
        let resumed = stage.ground.runtime.launch(run).map(|launch| launch.env).unwrap_or_default();
        let resumed = resumed.into_iter().find(|(name, value)| name == "GT_CONVERSATION" && !value.is_empty());
        let conversation = resumed.map_or_else(|| format!("talk-{run}"), |(_, name)| name);
        let content = if is_all { json!([{ "type": "text", "text": text }]) } else { json!([]) };
        let message = json!({ "id": format!("{run}-{is_all}"), "content": content });
        let mut lines = vec![json!({ "type": "system", "subtype": "init", "session_id": conversation }).to_string()];
        lines.push(json!({ "type": "assistant", "message": message }).to_string());
        let result = json!({ "type": "result", "is_error": false, "result": text });
        lines.extend(is_all.then(|| result.to_string()));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(stage.ground.town.log_path(run));
        file.and_then(|mut file| file.write_all((lines.join("\n") + "\n").as_bytes()))
            .expect("the town can be written");
        if let Some(book) = &self.book {
            let mut book = book.lock();
            book.conversations.entry(conversation).or_insert(session);
            book.replies.insert(run.to_owned(), Reply { text, meaning, is_whole: is_all });
        }
        let mut world = stage.world().lock();
        let lost_bell = world.faults.lost_bell;
        if !world.chance(lost_bell) {
            world.post_all(|| Cause::Told);
        }
    }

    /// The process ends; where no daemon listens, the keeper calls somebody.
    fn end(&mut self, stage: &mut Stage, run: &str, code: Option<i32>, signal: Option<i32>) {
        stage.ground.runtime.end(run, code, signal);
        stage.world().tell(|| format!("{run} ended ({code:?}, {signal:?})"));
        self.scripts.remove(run);
        if !stage.is_watched() {
            command(stage, Errand::CarryOn);
        }
    }

    /// An agent breaks, or works again.
    fn change(&mut self, stage: &Stage) {
        let agent = AGENTS[stage.world().lock().rng.usize(0..AGENTS.len())];
        if !self.broken.remove(agent) {
            self.broken.insert(agent.to_owned());
        }
        let broken = &self.broken;
        stage.world().tell(|| format!("these agents are broken now: {broken:?}"));
    }
}

/// A few words or many, each with its number.
fn words_of(run: &str, rng: &mut Rng) -> String {
    let n = [1, 3, 40, 1200][rng.usize(0..4)];
    (0..n).map(|word| format!("{run}:{word}")).collect::<Vec<_>>().join(" ")
}

fn agent_of(stage: &mut Stage, run: &str) -> Option<String> {
    stage.look().run(run).ok().flatten().map(|run| run.agent)
}

impl Part for Hands {
    fn weight(&self, stage: &Stage) -> u32 {
        1 + 8 * u32::try_from(stage.ground.runtime.n_running()).unwrap_or(u32::MAX).min(3)
    }

    fn act(&mut self, stage: &mut Stage) {
        let (running, stopping) = (stage.ground.runtime.running(), stage.ground.runtime.stopping());
        let (one, other, ends, changes) = {
            let mut world = stage.world().lock();
            (world.pick(&running), world.pick(&stopping), world.chance(2), world.chance(40))
        };
        match (one, other) {
            _ if changes => self.change(stage),
            (_, Some(run)) if ends => self.end(stage, &run, None, Some(SIGTERM)),
            (Some(run), _) => drop(self.act_as(stage, &run)),
            _ => {}
        }
    }

    fn heal(&mut self, _stage: &mut Stage) {
        self.mood = Mood::Good;
    }

    /// From now on all do well, and have the same to tell.
    fn tidy(&mut self, _stage: &mut Stage) {
        (self.mood, self.broken) = (Mood::Daily, BTreeSet::new());
        self.hung.clear();
        self.scripts.clear();
    }

    fn work(&mut self, stage: &mut Stage) -> bool {
        if let Some(run) = stage.ground.runtime.stopping().first() {
            self.end(stage, run, None, Some(SIGTERM));
            return true;
        }
        stage.ground.runtime.running().into_iter().any(|run| self.act_as(stage, &run))
    }
}
