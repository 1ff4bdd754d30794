//! The HTTP server of the daemon: sessions as JSON and as OpenAI's clients know them. // SPEC L6, U3
//!
//! Owns who may ask (`guard`, `token`), what is asked and answered (`sessions`, `events`, `chat`), and how long and how much
//! (`listen`, `body`). What becomes of a message is `gt_engine::talk`'s; the store is reached through `desk`, by threads that
//! may block; whoever waits is told by `herald`, which reads the log once for all. (docs/http.md)

mod app;
mod body;
mod chat;
mod current;
mod desk;
mod events;
mod guard;
mod herald;
mod listen;
mod problem;
mod report;
mod sessions;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gt_engine::{Town, TownError, chain};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use self::app::App;
use self::current::Current;
pub use self::listen::Limits;
pub use self::report::Report;
pub use self::token::token_path;

/// Threads that answer; none of them ever waits for the store.
const WORKERS: usize = 2;
/// How long answers under way may take when the server ends.
const FAREWELL: Duration = Duration::from_millis(500);

/// A server that runs, or the word why it does not; ends when dropped.
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
    town: Town,
    report: Report,
}

/// Starts to serve a town at its `server.bind`. What hinders it is in the report: the town runs without it.
pub fn start(town: &Town) -> Server {
    start_with(town, Limits::default())
}

/// The same with other limits.
pub fn start_with(town: &Town, limits: Limits) -> Server {
    let (runtime, address, error) = match begin(town, limits) {
        Ok((runtime, address)) => (Some(runtime), Some(address), None),
        Err(error) => (None, None, Some(chain(&error))),
    };
    let report = Report::new(address, error);
    // Whoever cannot write here has been told so by everybody else.
    report.write(town).unwrap_or_default();
    Server { runtime, town: town.clone(), report }
}

impl Server {
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(FAREWELL);
        }
        Report::remove(&self.town);
    }
}

fn begin(town: &Town, limits: Limits) -> Result<(Runtime, SocketAddr), TownError> {
    let failed = |source| TownError::Io { doing: "serve", path: town.root().to_owned(), source };
    let current = Arc::new(Current::of(town));
    let bind = current.bind();
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(WORKERS).thread_name("gt-http").enable_all().build().map_err(failed)?;
    let listener = runtime.block_on(TcpListener::bind(bind));
    let at = bind.to_string().into();
    let listener = listener.map_err(|source| TownError::Io { doing: "listen at", path: at, source })?;
    let address = listener.local_addr().map_err(failed)?;
    let app = App::open(town, current, address, limits)?;
    runtime.spawn(listen::serve(listener, app::router(Arc::new(app)), limits));
    Ok((runtime, address))
}
