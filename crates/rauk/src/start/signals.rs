//! Ctrl-C and SIGTERM, from the first moment of the process to the last, an execution of itself included.
//!
//! Both are blocked in all threads and handled by none: one that comes is *pending* until somebody takes it (signalfd), and stays so when the process executes itself. So none is lost, whenever it comes. A handler
//! would take it off the process that is about to be replaced, with nobody left to act on it.
//!
//! | while | who looks | what happens |
//! |---|---|---|
//! | the process opens | a thread | it ends at once: nobody is served yet, and what is on disk is whole |
//! | it serves | [`Signals::take`] | an end in order; from then on a second signal ends it at once |
//! | it executes itself | nobody | the new program finds it pending |

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use parking_lot::Mutex;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// How often the thread looks while the process opens.
const LOOK: Duration = Duration::from_millis(50);

pub struct Signals {
    held: Arc<SignalFd>,
    /// Whether the process is still opening.
    opening: Arc<Mutex<bool>>,
}

impl Signals {
    /// To be called before any other thread is started: threads inherit what is blocked.
    pub fn hold() -> Result<Signals, String> {
        fn told(e: impl Display) -> String {
            format!("cannot wait for signals: {e}")
        }
        set().thread_block().map_err(told)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let held = Arc::new(SignalFd::with_flags(&set(), flags).map_err(told)?);
        let opening = Arc::new(Mutex::new(true));
        let (watched, watches) = (opening.clone(), held.clone());
        let watch = std::thread::Builder::new().name("signals".into()).spawn(move || {
            loop {
                {
                    // Under the lock, so that who has ended the opening finds what is pending.
                    let opening = watched.lock();
                    if !*opening {
                        return;
                    }
                    if take(&watches) {
                        tracing::info!("stopped before it served");
                        std::process::exit(0);
                    }
                }
                std::thread::sleep(LOOK);
            }
        });
        watch.map_err(told)?;
        Ok(Signals { held, opening })
    }

    /// From here on nobody acts on a signal but who calls [`Signals::take`].
    pub fn end_opening(&self) {
        *self.opening.lock() = false;
    }

    /// Whether there was one; then a second ends the process at once.
    pub fn take(&self) -> bool {
        if !take(&self.held) {
            return false;
        }
        tracing::info!("stopping; a second signal stops at once");
        std::thread::spawn(|| {
            let _ = set().wait();
            std::process::exit(1);
        });
        true
    }
}

fn set() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT].into_iter().collect()
}

/// Takes one that is pending.
fn take(held: &SignalFd) -> bool {
    matches!(held.read_signal(), Ok(Some(_)))
}
