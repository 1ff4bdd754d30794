//! Strands: real code on a thread of its own that runs only when it is told to, and stops where it is told to.
//!
//! One strand moves at a time, so the order in which they move is the simulation's to choose and a seed repeats it. A
//! strand that is killed goes no further than where it stands, as a process does.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Where a strand stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// Between two steps of its work.
    Between,
    /// It cannot go on before somebody gives up the turn.
    WantsTurn,
    /// It cannot go on before the daemon that runs the town has ended.
    WantsTown,
    /// It waits for mail, or for this time.
    Idle { until: Option<Duration> },
}

/// How a strand's work ended.
pub type End = Result<(), String>;

enum Word {
    Halted(Halt),
    Over(End),
}

enum Order {
    GoOn,
    Die,
}

/// What is thrown through a strand that is killed.
struct Killed;

thread_local! {
    /// The end of the strand whose thread this is.
    static OWN: RefCell<Option<Rope>> = const { RefCell::new(None) };
}

/// Whether this is a strand, and not the simulation itself.
pub fn is_strand() -> bool {
    OWN.with_borrow(Option::is_some)
}

/// Stops this strand here until it is told to go on. The simulation itself does not stop.
pub fn halt(at: Halt) {
    if let Some(rope) = OWN.with_borrow(Clone::clone) {
        rope.halt(at);
    }
}

/// The handle by which a strand is moved.
pub struct Strand {
    orders: Sender<Order>,
    words: Receiver<Word>,
    thread: Option<JoinHandle<()>>,
    halt: Halt,
}

/// The strand's own end of it.
#[derive(Clone)]
pub struct Rope {
    words: Sender<Word>,
    orders: Arc<Mutex<Receiver<Order>>>,
}

impl Rope {
    /// Stops here until told to go on; does not return when killed.
    pub fn halt(&self, at: Halt) {
        if thread::panicking() {
            return; // what is cleaned up after a death is the kernel's work and does not stop
        }
        self.words.send(Word::Halted(at)).unwrap_or_default();
        let order = self.orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
        if !matches!(order, Ok(Order::GoOn)) {
            die();
        }
    }
}

/// Ends this strand on the spot.
pub fn die() -> ! {
    resume_unwind(Box::new(Killed))
}

impl Strand {
    /// A strand that stands before its first step.
    pub fn new(work: impl FnOnce(&Rope) -> End + Send + 'static) -> Strand {
        let (orders, own_orders) = mpsc::channel();
        let (own_words, words) = mpsc::channel();
        let rope = Rope { words: own_words, orders: Arc::new(Mutex::new(own_orders)) };
        let thread = thread::spawn(move || {
            let is_begun = matches!(rope.orders.lock().unwrap_or_else(PoisonError::into_inner).recv(), Ok(Order::GoOn));
            if is_begun {
                OWN.set(Some(rope.clone()));
                let end = catch_unwind(AssertUnwindSafe(|| work(&rope))).unwrap_or_else(|thrown| end_of(&*thrown));
                rope.words.send(Word::Over(end)).unwrap_or_default();
            }
        });
        Strand { orders, words, thread: Some(thread), halt: Halt::Between }
    }

    pub fn halted_at(&self) -> Halt {
        self.halt
    }

    /// Lets it move to where it stops next; `Some`: that was the end.
    pub fn go_on(&mut self) -> Option<End> {
        self.order(Order::GoOn)
    }

    /// Ends it where it stands.
    pub fn kill(mut self) {
        self.order(Order::Die);
    }

    fn order(&mut self, order: Order) -> Option<End> {
        self.orders.send(order).unwrap_or_default();
        match self.words.recv() {
            Ok(Word::Halted(halt)) => {
                self.halt = halt;
                None
            }
            Ok(Word::Over(end)) => Some(end),
            Err(_) => Some(Ok(())), // killed before its first step
        }
    }
}

impl Drop for Strand {
    fn drop(&mut self) {
        self.orders.send(Order::Die).unwrap_or_default();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

fn end_of(thrown: &(dyn Any + Send)) -> End {
    if thrown.is::<Killed>() {
        return Ok(());
    }
    let text = thrown.downcast_ref::<String>().map(String::as_str).or(thrown.downcast_ref::<&str>().copied());
    Err(format!("it panicked: {}", text.unwrap_or("without a text")))
}
