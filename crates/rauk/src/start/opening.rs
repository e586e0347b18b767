//! What a process says of itself while it opens its data directory and does not serve yet.
//!
//! Recovery of a large directory takes minutes. Meanwhile a load balancer, a person and a client must be able to tell a
//! server that starts from one that is gone. So the ports are open from the beginning:
//!
//! | port | answer before the server serves |
//! |---|---|
//! | HTTP `/health` | 503, with what is done, per cent and seconds left as JSON ([`Opening::page`]) |
//! | HTTP `/metrics` | `rauk_recovering` and how far it is ([`crate::metrics::opening`]) |
//! | MySQL | an error in place of the greeting ([`RefusingPort`]), which says the same in words |
//! | native, cluster, Unix socket | none: clients wait in the port's queue, the socket does not exist |
//!
//! The numbers come from recovery itself ([`RecoveryProgress`]). What comes before and behind it on a member of a cluster,
//! waiting for other nodes say, has no measure; the last line that was logged of it is shown.
//!
//! The error is 1053 (server shutdown): drivers know it as "this connection is lost, try again or try another host", which
//! is right here too; no other code of MySQL's is understood as widely. It carries no SQL state, as the protocol has it
//! for errors before the greeting.

use rauk_node::{RecoveryProgress, RecoveryState, Runtime};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::Mutex;

/// The error that MySQL clients get; see above.
const REFUSED: u16 = 1053;
/// After a failed accept (out of file descriptors), so as not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How far this process is on its way to serving.
pub struct Opening {
    recovery: Arc<RecoveryProgress>,
    runtime: Arc<dyn Runtime>,
    began: Instant,
    /// The last line of progress.
    told: Mutex<String>,
    /// MySQL clients that came too early.
    refused: AtomicU64,
}

impl Opening {
    pub fn new(recovery: Arc<RecoveryProgress>, runtime: Arc<dyn Runtime>) -> Opening {
        let told = Mutex::new("it opens its data directory".into());
        Opening { recovery, runtime, began: Instant::now(), told, refused: AtomicU64::new(0) }
    }

    /// A line of progress, for the log as well.
    pub fn tell(&self, line: &str) {
        tracing::info!("{line}");
        *self.told.lock() = line.into();
    }

    /// A line of progress that needs attention.
    pub fn warn(&self, line: &str) {
        tracing::warn!("{line}");
        *self.told.lock() = line.into();
    }

    pub fn state(&self) -> Option<RecoveryState> {
        self.recovery.look(self.runtime.now())
    }

    /// Since this process began to open.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// What `/health` and `/cluster` answer.
    pub fn page(&self) -> Value {
        let elapsed = self.elapsed().as_secs();
        let reason = self.words();
        match self.state() {
            None => json!({ "status": "starting", "reason": reason, "elapsed_seconds": elapsed }),
            Some(state) => json!({
                "status": "recovering", "reason": reason, "elapsed_seconds": elapsed, "step": state.step.name(),
                "percent": state.percent, "rows": state.rows, "seconds_left": state.left.map(seconds),
            }),
        }
    }

    /// The same for people: one line.
    pub fn words(&self) -> String {
        match self.state() {
            None => format!("the server is starting and takes no connections yet: {}", self.told.lock()),
            Some(state) => words(&state),
        }
    }
}

/// Rounded up: a wait of less than a second is one.
pub fn seconds(left: Duration) -> u64 {
    left.as_millis().div_ceil(1000) as u64
}

fn words(state: &RecoveryState) -> String {
    let left = match state.left {
        None => String::new(),
        Some(left) => format!(", about {} s left", seconds(left)),
    };
    format!(
        "the server is starting and takes no connections yet: recovery of its data is at {} % ({}){left}",
        state.percent,
        state.step.name()
    )
}

/// The MySQL port before anybody serves there: whoever connects is told why, and the connection is closed. Ends when
/// dropped; who connects from then on waits in the port's queue for the server.
pub struct RefusingPort {
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl RefusingPort {
    pub fn start(listener: &TcpListener, opening: Arc<Opening>) -> io::Result<RefusingPort> {
        let listener = listener.try_clone()?;
        // Between poll and accept a client may be gone. The server sets it, too.
        listener.set_nonblocking(true)?;
        let (stop, stopped) = UnixStream::pair()?;
        let run = move || refuse_all(&listener, &stopped, &opening);
        let thread = std::thread::Builder::new().name("starting".into()).spawn(run)?;
        Ok(RefusingPort { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for RefusingPort {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // One that has panicked has ended as well.
            let _ = thread.join();
        }
    }
}

fn refuse_all(listener: &TcpListener, stopped: &UnixStream, opening: &Opening) {
    loop {
        let mut watched =
            [PollFd::new(listener.as_fd(), PollFlags::POLLIN), PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut watched, PollTimeout::NONE);
        // The other end was closed.
        if watched[1].any().unwrap_or(false) {
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                opening.refused.fetch_add(1, Ordering::Relaxed);
                // A client that has gone needs no answer.
                let _ = refuse(stream, &opening.words());
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => std::thread::sleep(ACCEPT_PAUSE),
        }
    }
}

/// A client waits for the greeting and has sent nothing, so that closing loses nothing that is on its way.
fn refuse(mut stream: TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(&error_packet(REFUSED, text))?;
    stream.shutdown(Shutdown::Write)
}

/// An ERR packet in place of the greeting: length, number 0, 0xFF, code, text.
fn error_packet(code: u16, text: &str) -> Vec<u8> {
    let length = (3 + text.len()) as u32;
    let mut packet = length.to_le_bytes()[..3].to_vec();
    packet.extend([0, 0xFF]);
    packet.extend(code.to_le_bytes());
    packet.extend(text.as_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_node::RecoveryStep;
    use rauk_node::runtime::threads::Threads;
    use std::io::Read;

    fn opening() -> Arc<Opening> {
        Arc::new(Opening::new(Arc::default(), Threads::start().expect("threads")))
    }

    #[test]
    fn words_say_how_far_it_is() {
        let mut state = RecoveryState {
            step: RecoveryStep::RedoLog,
            percent: 42,
            rows: 7,
            elapsed: Duration::from_secs(3),
            left: None,
        };
        assert!(words(&state).ends_with("recovery of its data is at 42 % (redo log)"), "{}", words(&state));
        state.left = Some(Duration::from_millis(4_100));
        assert!(words(&state).ends_with("(redo log), about 5 s left"), "{}", words(&state));
        let opening = opening();
        opening.tell("waiting for the others");
        assert!(opening.words().ends_with("yet: waiting for the others"), "{}", opening.words());
        assert_eq!(opening.page()["status"], "starting");
    }

    #[test]
    fn who_comes_early_is_told_and_who_comes_later_waits_for_the_server() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let opening = opening();
        let port = RefusingPort::start(&listener, opening.clone()).expect("started");
        for _ in 0..3 {
            let mut told = Vec::new();
            TcpStream::connect(address).expect("it listens").read_to_end(&mut told).expect("read to its end");
            assert_eq!(told, error_packet(1053, &opening.words()));
            assert_eq!(told.len(), 4 + usize::from(told[0]));
        }
        assert_eq!(opening.refused(), 3);
        drop(port);
        let mut client = TcpStream::connect(address).expect("it listens still");
        let (mut served, _) = listener.accept().expect("it is in the queue");
        served.write_all(b"x").expect("written");
        let mut got = [0];
        client.read_exact(&mut got).expect("read");
        assert_eq!((got[0], opening.refused()), (b'x', 3));
    }
}
