//! The load: beads with dependencies and convoys, messages to sessions, and jobs, fed for as long as the faults last.
//!
//! A command that was killed or failed is repeated as a person would repeat it: with the same ids. What was begun is
//! finished after the time is over.

mod beads;
mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) use self::messages::Sent;
use crate::chance;
use crate::command::{Ending, run};
use crate::pause::{End, pause};
use crate::receiver::Receiver;
use crate::tally::Tally;
use crate::town::Town;

pub(crate) const JOBS: usize = 10;
/// How long a command is repeated before its failure is a finding.
const REPEAT_MAX: Duration = Duration::from_mins(3);
const REPEAT_PAUSE: Duration = Duration::from_millis(200);

/// What the load has asked of the town.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) beads: BTreeSet<String>,
    /// The beads of each convoy, by its title.
    pub(crate) convoys: BTreeMap<String, Vec<String>>,
    pub(crate) messages: Vec<Sent>,
    /// Commands that could not be had to succeed.
    pub(crate) failures: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Load {
    town: Arc<Town>,
    receiver: Arc<Receiver>,
    tally: Arc<Tally>,
    over: Arc<End>,
    asked: Mutex<Asked>,
    /// So many of the next commands are killed in the middle.
    cuts: AtomicUsize,
}

impl Load {
    pub(crate) fn new(town: &Arc<Town>, receiver: &Arc<Receiver>, tally: &Arc<Tally>, over: &Arc<End>) -> Arc<Load> {
        Arc::new(Load {
            town: Arc::clone(town),
            receiver: Arc::clone(receiver),
            tally: Arc::clone(tally),
            over: Arc::clone(over),
            asked: Mutex::default(),
            cuts: AtomicUsize::new(0),
        })
    }

    /// Makes the jobs, then feeds beads and messages until the time is over.
    pub(crate) fn start(self: &Arc<Load>, seed: u64) -> Result<Vec<JoinHandle<()>>, String> {
        for n in 0..JOBS {
            self.add_job(n)?;
        }
        let mut threads = vec![self.spawn(chance::stream(seed, chance::BEADS), Load::feed_beads)];
        threads.push(self.spawn(chance::stream(seed, chance::LANDINGS), Load::feed_landings));
        for sender in 0..messages::SENDERS {
            let rng = chance::stream(seed, chance::MESSAGES + sender as u64);
            threads.push(self.spawn(rng, move |load, rng| load.feed_messages(sender, rng)));
        }
        Ok(threads)
    }

    fn spawn(
        self: &Arc<Load>,
        mut rng: fastrand::Rng,
        feed: impl Fn(&Load, &mut fastrand::Rng) + Send + 'static,
    ) -> JoinHandle<()> {
        let load = Arc::clone(self);
        thread::spawn(move || feed(&load, &mut rng))
    }

    /// Seven jobs run a command, three ask a session.
    fn add_job(&self, n: usize) -> Result<(), String> {
        let name = format!("job{n}");
        let every = format!("{}s", 1 + n % 3);
        let missed = ["once", "skip", "all"][n / 3 % 3];
        let command = format!("bash {}", self.town.evidence.join("slot.sh").display());
        let mut words = vec!["cron", "add", &name, "--every", &every, "--missed", missed];
        let session = format!("cron{n}");
        let is_message = n % 3 == 2;
        if is_message {
            words.extend(["--message", "tick", "--session", &session, "--channel", "hook"]);
        } else {
            words.extend(["--run", &command]);
        }
        match run(&mut self.town.gt(&words), None) {
            Ending::Exit { code: 0, .. } => Ok(()),
            ending => Err(format!("cannot add a job: {ending}")),
        }
    }

    /// Has the next commands of the load killed in the middle.
    pub(crate) fn cut(&self, n: usize) {
        self.cuts.store(n, Ordering::Relaxed);
    }

    pub(crate) fn asked(&self) -> std::sync::MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Repeats a command until it succeeds; returns what it printed.
    fn insist(&self, rng: &mut fastrand::Rng, command: impl Fn() -> Command) -> Option<String> {
        self.insist_until(rng, command, || false)
    }

    /// The same for a command that must not be repeated once `is_done`.
    fn insist_until(
        &self,
        rng: &mut fastrand::Rng,
        command: impl Fn() -> Command,
        is_done: impl Fn() -> bool,
    ) -> Option<String> {
        let deadline = Instant::now() + REPEAT_MAX;
        loop {
            let ending = run(&mut command(), self.next_cut(rng));
            match ending {
                Ending::Exit { code: 0, stdout, .. } => return Some(stdout),
                Ending::Killed => self.tally.one("commands killed in the middle"),
                Ending::Exit { .. } => self.tally.one("commands refused for a while"),
                Ending::Hung => {
                    self.asked().failures.push(format!("{:?} does not end", command()));
                    return None;
                }
            }
            if is_done() {
                return Some(String::new());
            }
            if Instant::now() > deadline {
                let ending = run(&mut command(), None);
                if let Ending::Exit { code: 0, stdout, .. } = ending {
                    return Some(stdout);
                }
                self.asked().failures.push(format!("{:?} fails for {REPEAT_MAX:?}: {ending}", command()));
                return None;
            }
            pause(REPEAT_PAUSE);
        }
    }

    fn next_cut(&self, rng: &mut fastrand::Rng) -> Option<Duration> {
        let take = |n: usize| n.checked_sub(1);
        let is_cut = self.cuts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        is_cut.then(|| Duration::from_micros(rng.u64(..30_000)))
    }
}
