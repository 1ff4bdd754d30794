//! Connections: how many there are at once, and how long one may keep us waiting.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};

/// How long all the words before a body may be.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long to wait when the machine has no more connections to give.
const RETRY: Duration = Duration::from_millis(100);

/// How many connections there may be, and how slow they may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; the next ones wait until one of them ends.
    pub connections: usize,
    /// How long a connection may be idle, or take to say what it wants.
    pub head: Duration,
    /// How long sending a body may take.
    pub body: Duration,
    /// How long a caller may refuse to take what it asked for.
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            head: Duration::from_secs(15),
            body: Duration::from_secs(30),
            write: Duration::from_mins(1),
        }
    }
}

/// Answers until the runtime ends.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(HEAD_BYTES_MAX);
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(RETRY).await;
            continue;
        };
        // What is said bit by bit is heard bit by bit; without that it is only later.
        stream.set_nodelay(true).unwrap_or_default();
        let io = TokioIo::new(Impatient { stream, patience: limits.write, deadline: None });
        let connection = http.serve_connection(io, TowerToHyperService::new(router.clone()));
        tokio::spawn(async move {
            // A caller who has gone is no error of ours.
            connection.await.unwrap_or_default();
            drop(place);
        });
    }
}

/// A connection that is given up when nothing can be written to it for too long.
struct Impatient {
    stream: TcpStream,
    patience: Duration,
    /// Runs while somebody waits to write.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let patience = self.patience;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(patience)));
        deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream as Caller};
    use std::time::Instant;

    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use futures_util::stream;
    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::mpsc;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_mins(3);

    /// A server of one connection, whose `/flood` never ends; tells when a flood was given up.
    fn server(limits: Limits) -> (Runtime, SocketAddr, mpsc::UnboundedReceiver<()>) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("there is a free port");
        let address = listener.local_addr().expect("it has one");
        let (given_up, heard) = mpsc::unbounded_channel();
        let flood = move || {
            let given_up = OnDrop(given_up.clone());
            let pieces = stream::unfold(given_up, |given_up| async {
                Some((Ok::<_, io::Error>(Bytes::from(vec![0; 64 * 1024])), given_up))
            });
            std::future::ready(Body::from_stream(pieces))
        };
        let router = Router::new().route("/", get(async || "here")).route("/flood", get(flood));
        runtime.spawn(serve(listener, router, limits));
        (runtime, address, heard)
    }

    struct OnDrop(mpsc::UnboundedSender<()>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.send(()).unwrap_or_default();
        }
    }

    /// Asks until it is answered: on a busy machine an honest caller, too, may need longer than [`SHORT`] for its head.
    fn ask(address: SocketAddr) -> String {
        let deadline = Instant::now() + LONG;
        loop {
            match try_to_ask(address) {
                Ok(answer) if !answer.is_empty() => return answer,
                given_up => assert!(Instant::now() < deadline, "no caller is served: {given_up:?}"),
            }
        }
    }

    fn try_to_ask(address: SocketAddr) -> io::Result<String> {
        let mut caller = Caller::connect(address)?;
        caller.set_read_timeout(Some(LONG))?;
        caller.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        caller.read_to_string(&mut answer)?;
        Ok(answer)
    }

    #[test]
    fn callers_who_say_nothing_or_never_end_are_let_go_and_the_next_is_served() {
        let (_runtime, address, _) = server(Limits { connections: 1, head: SHORT, body: LONG, write: LONG });
        let silent = Caller::connect(address).expect("it listens");
        assert!(ask(address).ends_with("here"));
        let mut halting = Caller::connect(address).expect("it listens");
        halting.write_all(b"GET / HTTP/1.1\r\nHost: ").expect("it is read");
        assert!(ask(address).ends_with("here"));
        let mut idle = Caller::connect(address).expect("it listens");
        idle.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is read");
        assert!(ask(address).ends_with("here"));
        drop((silent, halting, idle));
    }

    #[test]
    fn a_caller_who_does_not_take_what_it_asked_for_is_let_go() {
        let (runtime, address, mut given_up) = server(Limits { connections: 1, head: LONG, body: LONG, write: SHORT });
        let mut greedy = Caller::connect(address).expect("it listens");
        greedy.write_all(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is read");
        runtime.block_on(given_up.recv()).expect("it is given up");
        assert!(ask(address).ends_with("here"));
        drop(greedy);
    }
}
