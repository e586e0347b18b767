//! The runtime of production: background tasks have a thread each, timers share one, jobs run on as many threads as there are cores.
//!
//! Background tasks may block on disk access, which is why they do not live on the threads that run statements.

use super::clock::Clock;
use super::timer::Timer;
use super::{BoxFuture, Runtime};
use parking_lot::Mutex;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// The nice value of threads that work behind those of clients: of a core that both want they get a quarter. With less, a
/// thread that is put aside while it has a partition would make clients wait for long.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 5;

/// What is done when the node must stop.
type OnFatal = Box<dyn Fn(&str) + Send + Sync>;
type Job = Box<dyn FnOnce() + Send>;

pub struct Threads {
    clock: Clock,
    timer: Timer,
    random: AtomicU64,
    on_fatal: OnFatal,
}

impl Threads {
    /// A fatal error ends the process with code 70 after it was logged.
    pub fn start() -> std::io::Result<Arc<Threads>> {
        Self::with_fatal(|reason| {
            tracing::error!(reason, "the node must stop");
            eprintln!("rauk: fatal: {reason}");
            std::process::exit(70);
        })
    }

    /// With another end: tests record it.
    pub fn with_fatal(on_fatal: impl Fn(&str) + Send + Sync + 'static) -> std::io::Result<Arc<Threads>> {
        use std::hash::{BuildHasher, Hasher, RandomState};
        // The standard library seeds its hash maps from the system's random source.
        let seed = RandomState::new().build_hasher().finish();
        Ok(Arc::new(Threads {
            clock: Clock::start(),
            timer: Timer::start()?,
            random: AtomicU64::new(seed),
            on_fatal: Box::new(on_fatal),
        }))
    }
}

impl Runtime for Threads {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        Box::pin(self.timer.sleep(duration))
    }

    fn spawn(&self, name: &'static str, task: BoxFuture<()>) {
        let spawned = thread::Builder::new().name(format!("rauk-{name}")).spawn(move || block_on(task));
        if let Err(error) = spawned {
            self.fatal(&format!("cannot start the thread {name}: {error}"));
        }
    }

    fn spawn_behind(&self, name: &'static str, task: BoxFuture<()>) {
        let behind = async move {
            // On Linux a thread has a priority of its own. Elsewhere, and where it cannot be set, the task is like any other.
            #[cfg(target_os = "linux")]
            if let Err(error) = rustix::process::setpriority_process(None, BEHIND) {
                tracing::debug!(%error, name, "thread priority not lowered");
            }
            task.await;
        };
        self.spawn(name, Box::pin(behind));
    }

    fn cores(&self) -> usize {
        thread::available_parallelism().map_or(1, usize::from)
    }

    fn run_all(&self, jobs: Vec<Job>) {
        let threads = self.cores().min(jobs.len());
        if threads <= 1 {
            jobs.into_iter().for_each(|job| job());
            return;
        }
        let jobs: Vec<Mutex<Option<Job>>> = jobs.into_iter().map(|j| Mutex::new(Some(j))).collect();
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(slot) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let job = slot.lock().take();
                        if let Some(job) = job {
                            job();
                        }
                    }
                });
            }
        });
    }

    fn random(&self) -> u64 {
        // SplitMix64 over a counter that started at random.
        let mut z = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn fatal(&self, reason: &str) {
        (self.on_fatal)(reason);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs one future on the calling thread, which sleeps while the future waits.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static WAKER: Waker = Waker::from(Arc::new(Unpark(thread::current())));
    }
    let mut future = pin!(future);
    WAKER.with(|waker| {
        let mut cx = Context::from_waker(waker);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
                return value;
            }
            thread::park();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;
    use futures::stream::FuturesUnordered;
    use std::sync::atomic::AtomicU32;
    use std::time::Instant;

    #[test]
    fn sleeps_end_in_the_order_of_their_times() {
        // On one thread, which takes them as the timer wakes them: threads of their own would race on a machine that is busy.
        let runtime = Threads::start().unwrap();
        let start = Instant::now();
        let sleep = |ms: u64| {
            let sleep = runtime.sleep(Duration::from_millis(ms));
            async move {
                sleep.await;
                ms
            }
        };
        let mut sleeps: FuturesUnordered<_> = [30, 5, 15].into_iter().map(sleep).collect();
        let mut order = Vec::new();
        while let Some(ms) = block_on(sleeps.next()) {
            assert!(start.elapsed() >= Duration::from_millis(ms));
            order.push(ms);
        }
        assert_eq!(order, [5, 15, 30]);
    }

    #[test]
    fn dead_timers_do_not_pile_up() {
        let timer = Timer::start().unwrap();
        for _ in 0..10_000 {
            drop(timer.sleep(Duration::from_secs(3600)));
        }
        block_on(timer.sleep(Duration::from_millis(1)));
    }

    #[test]
    fn all_jobs_run_and_have_ended() {
        let runtime = Threads::start().unwrap();
        let count = Arc::new(AtomicU32::new(0));
        let jobs = (0..100)
            .map(|_| {
                let count = count.clone();
                Box::new(move || {
                    count.fetch_add(1, Ordering::Relaxed);
                }) as Job
            })
            .collect();
        runtime.run_all(jobs);
        assert_eq!(count.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn spawned_tasks_run() {
        let runtime = Threads::start().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        runtime.spawn("test", Box::pin(async move { send.send(7).unwrap() }));
        assert_eq!(receive.recv_timeout(Duration::from_secs(5)).unwrap(), 7);
    }
}
