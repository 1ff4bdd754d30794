//! The way to the store: a few threads that read, and one that writes all that has come in together.
//!
//! Whoever asks waits without holding up anybody. What a write does is `gt_engine::talk`'s and the store's.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use gt_engine::talk::{self, Taken};
use gt_engine::{Town, TownError};
use gt_store::{NewMessage, Stamp, Stopped, Store, StoreError};
use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::current::Current;
use crate::problem::Problem;

/// Who changes something, as far as the log is concerned.
const ACTOR: &str = "http";
/// Threads that read.
const READERS: usize = 2;
/// Writes that become one transaction at most.
const TOGETHER_MAX: usize = 256;

type Read = Box<dyn FnOnce(&mut Store) + Send>;
type Answer<T> = oneshot::Sender<Result<T, Problem>>;

enum Write {
    Take(Box<NewMessage>, Answer<Taken>),
    /// Nobody may wait for the answer.
    Stop {
        session: String,
        is_all: bool,
        answer: Option<Answer<Stopped>>,
    },
}

#[derive(Clone)]
pub(crate) struct Desk {
    reads: Sender<Read>,
    writes: Sender<Write>,
}

impl Desk {
    /// Opens the store for every thread; they end when nobody is left to ask.
    pub(crate) fn open(town: &Town, current: &Arc<Current>) -> Result<Desk, TownError> {
        let (reads, questions) = mpsc::channel::<Read>();
        let questions = Arc::new(Mutex::new(questions));
        for _ in 0..READERS {
            let (mut store, questions) = (Store::open(&town.store_path())?, Arc::clone(&questions));
            thread::spawn(move || read_all(&mut store, &questions));
        }
        let (writes, orders) = mpsc::channel();
        // Each commit wakes the daemon, as anybody's does.
        let (mut store, current) = (town.open_store()?, Arc::clone(current));
        thread::spawn(move || write_all(&mut store, &current, &orders));
        Ok(Desk { reads, writes })
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Problem> {
        let (sender, answer) = oneshot::channel();
        let question: Read = Box::new(move |store| drop(sender.send(ask(store).map_err(Problem::from))));
        self.reads.send(question).map_err(|_| ending())?;
        answer.await.map_err(|_| ending())?
    }

    /// Takes a message; it is stored when this returns.
    pub(crate) async fn take(&self, message: NewMessage) -> Result<Taken, Problem> {
        let (sender, answer) = oneshot::channel();
        self.writes.send(Write::Take(Box::new(message), sender)).map_err(|_| ending())?;
        answer.await.map_err(|_| ending())?
    }

    pub(crate) async fn stop(&self, session: &str, is_all: bool) -> Result<Stopped, Problem> {
        let (sender, answer) = oneshot::channel();
        let order = Write::Stop { session: session.to_owned(), is_all, answer: Some(sender) };
        self.writes.send(order).map_err(|_| ending())?;
        answer.await.map_err(|_| ending())?
    }

    /// Stops all of a session, and does not wait for it.
    pub(crate) fn abandon(&self, session: &str) {
        let order = Write::Stop { session: session.to_owned(), is_all: true, answer: None };
        // A server that ends leaves what runs to the next one.
        self.writes.send(order).unwrap_or_default();
    }
}

fn ending() -> Problem {
    Problem::ours("the server is ending").hint("ask again when the daemon runs: `gt daemon status`")
}

fn read_all(store: &mut Store, questions: &Mutex<Receiver<Read>>) {
    loop {
        let question = questions.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(question) = question else { return };
        question(store);
    }
}

fn write_all(store: &mut Store, current: &Current, orders: &Receiver<Write>) {
    while let Ok(first) = orders.recv() {
        let mut messages = Vec::new();
        for order in std::iter::once(first).chain(orders.try_iter().take(TOGETHER_MAX - 1)) {
            match order {
                Write::Take(message, answer) => messages.push((*message, answer)),
                Write::Stop { session, is_all, answer } => {
                    take(store, current, std::mem::take(&mut messages)); // in the order in which they came
                    let stopped = store.stop_session(&session, is_all, &stamp()).map_err(Problem::from);
                    drop(answer.map(|answer| answer.send(stopped)));
                }
            }
        }
        take(store, current, messages);
    }
}

/// Whoever has gone meanwhile is not told.
fn take(store: &mut Store, current: &Current, orders: Vec<(NewMessage, Answer<Taken>)>) {
    let (messages, answers): (Vec<_>, Vec<_>) = orders.into_iter().unzip();
    if messages.is_empty() {
        return;
    }
    match talk::take_all(store, &current.settings(), &messages, None, &stamp()) {
        Ok(taken) => {
            for (answer, taken) in answers.into_iter().zip(taken) {
                drop(answer.send(taken.map_err(Problem::from)));
            }
        }
        Err(error) => {
            let problem = Problem::from(error);
            for answer in answers {
                drop(answer.send(Err(problem.clone())));
            }
        }
    }
}

fn stamp() -> Stamp {
    Stamp::new(Timestamp::now(), ACTOR)
}

#[cfg(test)]
mod tests {
    use gt_store::SendOutcome;

    use super::*;

    #[test]
    fn what_comes_together_is_taken_in_the_order_in_which_it_came() {
        let dir = tempfile::tempdir().expect("a directory");
        let (town, _) = Town::init(dir.path(), &stamp()).expect("it can be made");
        let (orders, received) = mpsc::channel();
        let mut answers = Vec::new();
        for text in ["one", "two", "/stop", "three", ""] {
            let (answer, told) = oneshot::channel();
            let (session, channel) = ("dm:a".to_owned(), "test".to_owned());
            let message =
                NewMessage { session, channel, text: text.to_owned(), is_whole: true, ..NewMessage::default() };
            orders.send(Write::Take(Box::new(message), answer)).expect("it is kept");
            answers.push(told);
        }
        let (answer, told) = oneshot::channel();
        orders
            .send(Write::Stop { session: "dm:a".to_owned(), is_all: true, answer: Some(answer) })
            .expect("it is kept");
        drop(orders);
        let mut store = town.open_store().expect("it is there");
        write_all(&mut store, &Current::of(&town), &received);
        let taken: Vec<String> = answers
            .into_iter()
            .map(|mut told| match told.try_recv().expect("it is answered") {
                Ok(Taken::Sent(sent)) => format!("{:?} {}", sent.turn, sent.outcome == SendOutcome::Queued),
                Ok(Taken::Obeyed(words)) => words,
                Err(problem) => problem.status().to_string(),
            })
            .collect();
        let stopped = "Cancelled 1 message that waited; 1 more is left.";
        assert_eq!(taken, ["Some(1) true", "Some(2) true", stopped, "Some(3) true", "400 Bad Request"]);
        let mut told = told;
        let stopped = told.try_recv().expect("it is answered").expect("it is done");
        assert_eq!((stopped.n_cancelled, stopped.n_left), (2, 0));
    }
}
