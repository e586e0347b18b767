//! Ctrl-C and SIGTERM, from the first moment of the process to the last, an execution of itself included.
//!
//! Both are blocked in all threads and handled by none: one that comes is *pending* until somebody takes it, and stays so when the process executes itself. So none is lost, whenever it comes. A handler
//! would take it off the process that is about to be replaced, with nobody left to act on it.
//!
//! | while | who looks | what happens |
//! |---|---|---|
//! | the process opens | a thread | it ends at once: nobody is served yet, and what is on disk is whole |
//! | it serves | [`Signals::take`] | an end in order; from then on a second signal ends it at once |
//! | it executes itself | nobody | the new program finds it pending |

use parking_lot::Mutex;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

/// How often the thread looks while the process opens.
const LOOK: Duration = Duration::from_millis(50);

pub struct Signals {
    /// Whether the process is still opening.
    opening: Arc<Mutex<bool>>,
}

impl Signals {
    /// To be called before any other thread is started: threads inherit what is blocked.
    pub fn hold() -> Result<Signals, String> {
        let told = |e: io::Error| format!("cannot wait for signals: {e}");
        // SAFETY: the set is whole, and the former mask is not asked for.
        let failed = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set(), null_mut()) };
        if failed != 0 {
            return Err(told(io::Error::from_raw_os_error(failed)));
        }
        let opening = Arc::new(Mutex::new(true));
        let watched = opening.clone();
        let watch = std::thread::Builder::new().name("signals".into()).spawn(move || {
            loop {
                {
                    // Under the lock, so that who has ended the opening finds what is pending.
                    let opening = watched.lock();
                    if !*opening {
                        return;
                    }
                    if is_pending() {
                        tracing::info!("stopped before it served");
                        std::process::exit(0);
                    }
                }
                std::thread::sleep(LOOK);
            }
        });
        watch.map_err(told)?;
        Ok(Signals { opening })
    }

    /// From here on nobody acts on a signal but who calls [`Signals::take`].
    pub fn end_opening(&self) {
        *self.opening.lock() = false;
    }

    /// Whether there was one; then a second ends the process at once.
    pub fn take(&self) -> bool {
        if !is_pending() {
            return false;
        }
        wait();
        tracing::info!("stopping; a second signal stops at once");
        std::thread::spawn(|| {
            wait();
            std::process::exit(1);
        });
        true
    }
}

fn set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call makes the set whole, the others change it; these signals there are.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        set.assume_init()
    }
}

fn is_pending() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: the set is read only when it has been written.
    unsafe {
        libc::sigpending(pending.as_mut_ptr()) == 0
            && [libc::SIGTERM, libc::SIGINT].iter().any(|s| libc::sigismember(pending.as_ptr(), *s) == 1)
    }
}

/// Takes one; blocks until there is one.
fn wait() {
    let mut taken = 0;
    // SAFETY: the set is whole, and the number is written before it returns.
    let failed = unsafe { libc::sigwait(&set(), &mut taken) };
    assert_eq!(failed, 0, "a whole set of signals can be waited for");
}
