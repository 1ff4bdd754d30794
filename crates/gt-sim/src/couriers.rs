//! Who delivers answers, with the real decisions of a channel; and the receivers of web hooks, which take them or do not.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use gt_engine::channels::{Courier, NotPosted, Pause, Post, Posted};
use gt_engine::settings::Settings;
use gt_engine::surroundings;
use gt_engine::{Town, TownError};
use gt_store::Store;
use serde_json::Value;

use crate::around::Around;
use crate::world::Pid;

/// How long one try may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// When a receiver that wants peace wants to be asked again.
pub const PEACE: Duration = Duration::from_secs(30);

/// What was posted, and what the receiver made of it.
#[derive(Debug, Clone)]
pub struct Posting {
    pub key: String,
    pub session: String,
    /// The recipient that was named.
    pub to: Option<String>,
    pub text: String,
    pub by: Pid,
    pub verdict: Verdict,
    pub uptime: Duration,
    /// How often the clock had been set.
    pub n_clock_jumps: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Took,
    /// It has it, and its answer was lost.
    TookUnheard,
    Busy,
    WantsPeace,
    Unreachable,
    Refused,
}

/// A receiver, as whoever delivers reaches it.
struct Receiver(Around);

impl Receiver {
    fn draw(&self) -> Verdict {
        use Verdict::{Busy, Refused, Took, TookUnheard, Unreachable, WantsPeace};
        let mut world = self.0.world.lock();
        let bad_receiver = world.faults.bad_receiver;
        if !world.chance(bad_receiver) {
            return Took;
        }
        let verdicts = [TookUnheard, TookUnheard, Busy, WantsPeace, Unreachable, Refused];
        verdicts[world.rng.usize(0..verdicts.len())]
    }
}

impl Post for Receiver {
    fn post(&self, _url: &str, headers: &[(&str, String)], body: &str) -> Result<Posted, NotPosted> {
        self.0.boundary();
        let verdict = self.draw();
        let letter: Value = serde_json::from_str(body).unwrap_or_default();
        let text_of = |name: &str| letter[name].as_str().unwrap_or_default().to_owned();
        let key = headers.iter().find(|(name, _)| *name == "idempotency-key").map(|(_, key)| key.clone());
        {
            let mut world = self.0.world.lock();
            let (uptime, n_clock_jumps) = (world.uptime(), world.n_clock_jumps);
            let (session, text) = (text_of("session"), text_of("text"));
            let (key, to) = (key.unwrap_or_default(), letter["to"].as_str().map(str::to_owned));
            world.posts.push(Posting { key, session, to, text, by: self.0.pid, verdict, uptime, n_clock_jumps });
            if matches!(verdict, Verdict::TookUnheard | Verdict::Unreachable) {
                world.pass(TIMEOUT);
            }
        }
        self.0.world.tell(|| format!("process {} posts {}: {verdict:?}", self.0.pid, text_of("key")));
        self.0.boundary();
        let answer = |status: u16| Ok(Posted { status, retry_after: None });
        match verdict {
            Verdict::Took => answer(200),
            Verdict::Busy => answer(503),
            Verdict::WantsPeace => Ok(Posted { status: 429, retry_after: Some(PEACE.as_secs().to_string()) }),
            Verdict::Refused => answer(404),
            Verdict::TookUnheard | Verdict::Unreachable => Err(NotPosted::Unreachable("so it was drawn".to_owned())),
        }
    }
}

/// Delivers what is due, and waits for more, until it is killed.
pub fn deliver(around: &Around, town: &Town, mut store: Store, channel: &str) -> Result<(), TownError> {
    let settings = Arc::new(Settings::load(town, &mut store, around)?);
    let (sender, causes) = mpsc::channel();
    if let Some(process) = around.world.lock().processes.get_mut(&around.pid) {
        (process.mail, process.is_courier) = (Some(sender.clone()), true);
    }
    let receiver = Box::new(Receiver(around.clone()));
    let mut courier = match Courier::by(receiver, channel, store, town, &settings, Arc::new(around.clone())) {
        Ok(courier) => courier,
        Err(flaw) => {
            around.world.violation(format!("the channel {channel} does not run: {flaw}"));
            return Ok(());
        }
    };
    loop {
        match courier.round() {
            Pause::Until(span) => drop(surroundings::receive(around, &causes, span)),
            Pause::Rest(span) => surroundings::pause(around, span),
        }
    }
}
