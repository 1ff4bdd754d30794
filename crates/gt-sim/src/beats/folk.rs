//! People of a town of heartbeats: they write and empty lists, switch hearts on and off, have them beat now, change the hours,
//! and talk to the same agents.

use gt_core::job::{BadJob, JobState};
use gt_core::refusal::Refusal;
use gt_engine::jobs;
use gt_engine::settings::Settings;
use gt_engine::talk::{self, Taken};
use gt_engine::{TownError, chain};
use gt_store::{Address, Job, NewMessage, StoreError, beat_of};

use super::book::Shared;
use super::config::Pulse;
use super::lists::{self, List};
use super::{AGENTS, CHANNEL, SESSIONS};
use crate::knobs::Knobs;
use crate::part::Part;
use crate::stage::Stage;

/// Whoever does all this.
pub(super) const ANN: &str = "ann";

/// In peace, when hearts have to wait until their hours are over, when no more, and how long the hours last then: less than
/// lies between two things that people do.
const CLOSES: u32 = 6;
const OPENS: u32 = CLOSES + 1;
const CLOSES_AFTER: u16 = 3;

pub(super) struct Folk {
    book: Shared,
    /// How often in a row a heart may fail, in this town.
    failures_max: u32,
    n_messages: u32,
    n_lists: u32,
    /// How many things people have done in peace.
    n_deeds: Option<u32>,
}

impl Folk {
    pub(super) fn new(book: Shared, failures_max: u32) -> Folk {
        Folk { book, failures_max, n_messages: 0, n_lists: 0, n_deeds: None }
    }

    /// Sets what holds for all hearts.
    pub(super) fn configure(&self, stage: &mut Stage, pulse: Pulse, knobs: Knobs) {
        let step = stage.world().lock().step;
        let knobs = Knobs { job_failures: self.failures_max, ..pulse.with(knobs) };
        // Whoever reads it at once may go by it before it is known to be in force.
        self.book.lock().pulses.push(step, pulse);
        stage.configure(knobs);
    }

    fn draw_config(&self, stage: &mut Stage) {
        let (pulse, knobs) = {
            let mut world = stage.world().lock();
            (Pulse::draw(&mut world.rng), Knobs { max_run: 0, ..Knobs::draw(&mut world.rng) })
        };
        self.configure(stage, pulse, knobs);
    }

    fn write_list(&mut self, stage: &mut Stage, agent: &str) {
        self.n_lists += 1;
        let list = List::draw(&mut stage.world().lock().rng, self.n_lists);
        lists::leave(stage, &self.book, agent, &list);
    }

    fn say(&mut self, stage: &mut Stage) {
        self.n_messages += 1;
        let text = format!("message {}", self.n_messages);
        let message = {
            let mut world = stage.world().lock();
            let to = ["anna", "ben"][world.rng.usize(0..2)].to_owned();
            let recipient = world.chance(2).then_some(to);
            let deliver = Address { channel: CHANNEL.to_owned(), recipient, reply_to: None };
            NewMessage {
                session: SESSIONS[world.rng.usize(0..SESSIONS.len())].to_owned(),
                text: text.clone(),
                sender: ANN.to_owned(),
                channel: "chat".to_owned(),
                agent: Some(AGENTS[world.rng.usize(0..AGENTS.len())].to_owned()),
                deliver: world.chance(3).then_some(deliver),
                ..NewMessage::default()
            }
        };
        self.book.lock().said.insert(text);
        let (settings, stamp) = (stage.settings_in_force(), stage.stamp(ANN));
        let answer = talk::take(&mut stage.store, &settings, &message, None, &stamp);
        stage.world().tell(|| format!("ann to {}: `{}`: {answer:?}", message.session, message.text));
        match answer {
            Ok(Taken::Sent(sent)) => {
                if let (Some(to), Some(turn)) = (message.deliver, sent.turn) {
                    self.book.lock().last_used = Some((turn, to.channel, to.recipient));
                }
            }
            Ok(Taken::Obeyed(said)) => stage.world().violation(format!("`{}` was obeyed: {said}", message.text)),
            Err(TownError::Store(error)) if Stage::is_outage(&error) => {}
            Err(error) => stage.world().violation(format!("`{}` met {}", message.text, chain(&error))),
        }
    }

    /// Does something to hearts, as `gt heartbeat` does it.
    fn switch(&mut self, stage: &mut Stage) {
        let (what, agent) = {
            let mut world = stage.world().lock();
            (world.rng.u32(0..10), AGENTS[world.rng.usize(0..AGENTS.len())])
        };
        let (name, answer) = match what {
            0 => ("disables all", self.switch_all(stage, false)),
            1 | 2 => ("enables all", self.switch_all(stage, true)),
            3 => ("disables", self.disable(stage, agent)),
            4 | 5 => ("enables", self.enable(stage, agent)),
            _ => ("runs", Folk::run_now(stage, agent)),
        };
        stage.world().tell(|| format!("ann {name} {agent}: {:?}", answer.as_ref().map_err(ToString::to_string)));
        match answer {
            Ok(()) | Err(StoreError::Refused(_) | StoreError::NoJob { .. }) => {}
            Err(error) if Stage::is_outage(&error) => {}
            Err(error) => stage.world().violation(format!("ann met {error}")),
        }
    }

    /// `gt heartbeat enable` and `disable`, without a name.
    fn switch_all(&mut self, stage: &mut Stage, is_on: bool) -> Result<(), StoreError> {
        let pulse = self.book.lock().pulses.last().clone().switched(is_on);
        let is_new = *self.book.lock().pulses.last() != pulse;
        if is_new {
            let knobs = stage.settings.iter().rev().find_map(|setting| setting.knobs.clone());
            self.configure(stage, pulse, knobs.expect("there is a config"));
        }
        let settings = stage.settings_in_force();
        keep_beats(stage, &settings)?;
        if !is_on {
            return Ok(());
        }
        let beats = stage.store.beats()?;
        let tired: Vec<&str> = beats.iter().filter(|job| job.state == JobState::Disabled).map(Job::name).collect();
        self.resume(stage, &tired)
    }

    fn resume(&self, stage: &mut Stage, names: &[&str]) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        let stamp = stage.stamp(ANN);
        for (job, is_new) in stage.store.resume_jobs(names, &stamp)? {
            if is_new {
                self.book.lock().failures.remove(job.name());
            }
            // What became of it the judge has not seen yet.
            self.book.lock().stopped.remove(job.name());
        }
        Ok(())
    }

    /// `gt heartbeat disable NAME`.
    fn disable(&self, stage: &mut Stage, agent: &str) -> Result<(), StoreError> {
        let settings = stage.settings_in_force();
        keep_beats(stage, &settings)?;
        let stamp = stage.stamp(ANN);
        stage.store.pause_jobs(&[beat_of(agent)], &stamp)?;
        self.book.lock().stopped.insert(beat_of(agent));
        Ok(())
    }

    /// `gt heartbeat enable NAME`.
    fn enable(&self, stage: &mut Stage, agent: &str) -> Result<(), StoreError> {
        let settings = stage.settings_in_force();
        keep_beats(stage, &settings)?;
        let is_stopped = |job: &Job| match job.state {
            JobState::Active => false,
            JobState::Paused => job.why.is_none(),
            JobState::Disabled => true,
        };
        let beats = stage.store.beats()?;
        let stopped = beats.iter().filter(|job| job.name() == beat_of(agent) && is_stopped(job));
        let names: Vec<&str> = stopped.map(Job::name).collect();
        self.resume(stage, &names)?;
        keep_beats(stage, &settings)
    }

    /// `gt heartbeat run`.
    fn run_now(stage: &mut Stage, agent: &str) -> Result<(), StoreError> {
        let settings = stage.settings_in_force();
        if !settings.config.boolean("heartbeat.enabled") {
            return Ok(());
        }
        keep_beats(stage, &settings)?;
        let (policy, sessions) = (settings.policy(stage.ground.town.root()), settings.session_rules());
        let stamp = stage.stamp(ANN);
        let rules = jobs::rules(&settings, &policy, &sessions, stamp.now);
        let town = stage.ground.town.clone();
        let fired =
            stage.store.fire_now(&beat_of(agent), &rules, &mut |beat| jobs::beat_now(&town, &settings, beat), &stamp);
        if let Err(StoreError::Refused(Refusal::Job(BadJob::AgentBusy { agent }))) = &fired {
            let live = stage.look().live_runs()?;
            if !live.iter().any(|run| run.agent == *agent) {
                stage.world().violation(format!("{agent} was said to be busy, and nothing runs"));
            }
        }
        fired.map(drop)
    }

    fn pause(stage: &mut Stage) {
        let stamp = stage.stamp(ANN);
        let is_pause = stage.world().lock().chance(3);
        let answer = if is_pause {
            stage.store.pause(Some("lunch"), &stamp).map(drop)
        } else {
            stage.store.resume(&stamp).map(drop)
        };
        stage.world().tell(|| format!("ann pauses the scheduler ({is_pause}): {}", answer.is_ok()));
    }

    fn resume_all(stage: &mut Stage) {
        let stamp = stage.stamp(ANN);
        stage.store.resume(&stamp).map(drop).expect("nothing is wrong any more");
    }

    /// Every list has something in it, and every heart beats.
    fn fill_all(&mut self, stage: &mut Stage) {
        for agent in AGENTS {
            self.n_lists += 1;
            lists::leave(stage, &self.book, agent, &List::Full(format!("- thing {}\n", self.n_lists)));
            self.enable(stage, agent).expect("nothing is wrong any more");
        }
    }

    /// Hearts still beat for a while, and what they begin has to wait until their hours are over.
    fn close(&mut self, stage: &mut Stage) {
        let (now, pulse) = (stage.world().now(), self.book.lock().pulses.last().clone());
        let knobs = stage.settings.iter().rev().find_map(|setting| setting.knobs.clone());
        self.configure(stage, pulse.closing(now, CLOSES_AFTER), knobs.expect("there is a config"));
        self.fill_all(stage);
        let stamp = stage.stamp(ANN);
        stage.store.pause(Some("night"), &stamp).map(drop).expect("nothing is wrong any more");
    }

    /// One thing that people do.
    fn live(&mut self, stage: &mut Stage) {
        let (deed, agent) = {
            let mut world = stage.world().lock();
            (world.rng.u32(0..20), AGENTS[world.rng.usize(0..AGENTS.len())])
        };
        match deed {
            0 => self.draw_config(stage),
            1 => Folk::pause(stage),
            2..7 => self.write_list(stage, agent),
            7..13 => self.say(stage),
            _ => self.switch(stage),
        }
    }
}

fn keep_beats(stage: &mut Stage, settings: &Settings) -> Result<(), StoreError> {
    let (town, stamp) = (stage.ground.town.clone(), stage.stamp(ANN));
    jobs::keep_beats(&town, settings, &mut stage.store, &stamp)
}

impl Part for Folk {
    fn weight(&self, _stage: &Stage) -> u32 {
        8
    }

    fn act(&mut self, stage: &mut Stage) {
        let n = self.n_deeds.map(|n| n + 1);
        self.n_deeds = n;
        match n {
            Some(CLOSES) => self.close(stage),
            Some(OPENS) => Folk::resume_all(stage),
            _ => self.live(stage),
        }
    }

    /// Both lists have something in them, and hearts beat at any hour or not.
    fn heal(&mut self, stage: &mut Stage) {
        let (pulse, knobs) = {
            let mut world = stage.world().lock();
            (Pulse::draw(&mut world.rng), Knobs { max_run: 0, ..Knobs::peaceful(&mut world.rng) })
        };
        self.configure(stage, pulse.switched(true), knobs);
        self.n_deeds = Some(0);
        Folk::resume_all(stage);
        self.fill_all(stage);
    }

    /// From now on each heart beats every few hours, and people only look on.
    fn tidy(&mut self, stage: &mut Stage) {
        let (pulse, knobs) = {
            let mut world = stage.world().lock();
            (Pulse::draw(&mut world.rng), Knobs { max_run: 0, ..Knobs::peaceful(&mut world.rng) })
        };
        self.configure(stage, pulse.slow(super::SLOW), knobs);
        Folk::resume_all(stage);
        self.fill_all(stage);
    }
}
