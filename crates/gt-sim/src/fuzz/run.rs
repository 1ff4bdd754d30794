//! One input, one answer: a target is run so that a broken promise comes back as a value.
//!
//! What kills the process at once (a stack that overflows, memory that runs out) cannot be caught here; the program
//! notes the seed before each input, so that it is known afterwards.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::time::{Duration, Instant};

use super::{Target, Verdict};

/// No input is large, and no reader slow: longer than this on the most loaded machine means that work explodes.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How a promise was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Breach {
    pub message: String,
    /// File and line; another place would be another fault.
    pub place: String,
}

thread_local! {
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

pub(super) fn run(target: &Target, bytes: &[u8]) -> Result<Verdict, Breach> {
    listen();
    let since = Instant::now();
    IS_RUNNING.set(true);
    // Targets keep nothing from one input to the next.
    let judged = panic::catch_unwind(AssertUnwindSafe(|| (target.check)(bytes)));
    IS_RUNNING.set(false);
    let taken = since.elapsed();
    match judged {
        Err(payload) => Err(Breach { message: message_of(payload.as_ref()), place: PLACE.take() }),
        Ok(_) if taken > TIME_MAX => {
            let message = format!("{} bytes took {} ms", bytes.len(), taken.as_millis());
            Err(Breach { message, place: "the clock".to_owned() })
        }
        Ok(verdict) => Ok(verdict),
    }
}

/// Notes where a target panics instead of printing it; panics of others are printed as ever.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_RUNNING.get() {
                let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
                PLACE.set(place.unwrap_or_default());
            } else {
                before(info);
            }
        }));
    });
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}
