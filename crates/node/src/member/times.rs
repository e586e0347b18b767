//! Snapshot times: drawn from the manage leader, shared between statements that wait at the same time; and how old the oldest in use is.
//!
//! Rule 14: a snapshot is requested after its statement has begun. So a statement joins the *next* request to the leader, never the one that is under way.
//!
//! A snapshot registers a lower bound before it asks, the highest time this process has seen any snapshot at: what the leader gives is not below that. The oldest registered bound
//! goes with each heartbeat; the leader tells everybody the oldest of all, and below that old versions may go.

use super::Cluster;
use super::events::Event;
use super::signal::Signal;
use crate::error::NodeError;
use parking_lot::Mutex;
use rauk_types::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A question for a time is asked again after this.
const ASK: Duration = Duration::from_millis(100);
/// No snapshot can be had for so long: the statement fails.
const GIVE_UP: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Times {
    draws: Mutex<Draws>,
    drawn: Event,
    /// The highest time drawn by this process.
    highest: AtomicU64,
    /// The highest commit time that a transaction of this process has had or seen.
    seen: AtomicU64,
    /// Registered lower bounds of snapshots in use or being drawn, with their numbers.
    registered: Mutex<BTreeMap<u64, u32>>,
    /// As the leader told it last.
    oldest_in_cluster: AtomicU64,
}

#[derive(Default)]
struct Draws {
    /// Number of the newest request that has begun.
    begun: u64,
    /// Number of the newest request that has ended, and what it gave.
    ended: u64,
    time: u64,
    under_way: bool,
}

impl Times {
    /// A time drawn after this call began.
    pub async fn draw(&self, cluster: &Cluster) -> Result<Timestamp, NodeError> {
        let end = cluster.runtime.now() + GIVE_UP;
        // A request that is under way began before this call, so it does not count.
        let wanted = self.draws.lock().begun + 1;
        loop {
            let number = self.drawn.number();
            let mine = {
                let mut draws = self.draws.lock();
                if draws.ended >= wanted {
                    return Ok(Timestamp(draws.time));
                }
                let free = !draws.under_way;
                if free {
                    draws.under_way = true;
                    draws.begun += 1;
                }
                free.then_some(draws.begun)
            };
            if cluster.is_closed() {
                return Err(NodeError::ShuttingDown);
            }
            match mine {
                Some(request) => {
                    let under_way = UnderWay(self);
                    let time = self.ask(cluster).await;
                    if let Some(time) = time {
                        self.highest.fetch_max(time.0, Ordering::SeqCst);
                        let mut draws = self.draws.lock();
                        draws.ended = request;
                        draws.time = time.0;
                    }
                    drop(under_way);
                    if time.is_none() {
                        cluster.runtime.sleep(Duration::from_millis(10)).await;
                    }
                }
                None => {
                    cluster.timeout(ASK, self.drawn.after(number)).await;
                }
            }
            if cluster.runtime.now() >= end {
                let what = "no snapshot time can be had: the manage group has no leader, or it cannot be reached";
                return Err(NodeError::Unavailable(what.into()));
            }
        }
    }

    async fn ask(&self, cluster: &Cluster) -> Option<Timestamp> {
        let leader = cluster.manage_leader()?;
        // Registered bounds of all who share the answer are at or below this.
        let least = self.highest.load(Ordering::SeqCst);
        let answer = match leader == cluster.me() {
            true => cluster.timeout(ASK, cluster.on_draw_time()).await?,
            false => cluster.request(leader, Signal::DrawTime, ASK).await.ok()?,
        };
        let Signal::Time { time: Some(time) } = answer else { return None };
        // A leader that is being replaced may give out times below those that its successor, who has been heard here already, begins with: too late for this process, whose bounds have gone on.
        (time.0 >= least && cluster.knows_time(time).await).then_some(time)
    }

    /// A snapshot time for a statement that has begun; registered until [`Times::release`].
    pub async fn snapshot(&self, cluster: &Cluster) -> Result<Timestamp, NodeError> {
        let bound = Bound(self, self.register(|highest| highest));
        let time = self.draw(cluster).await?;
        self.register(|_| time.0);
        drop(bound);
        Ok(time)
    }

    fn register(&self, time: impl FnOnce(u64) -> u64) -> u64 {
        let mut registered = self.registered.lock();
        let time = time(self.highest.load(Ordering::SeqCst));
        *registered.entry(time).or_default() += 1;
        time
    }

    pub fn release(&self, time: Timestamp) {
        let mut registered = self.registered.lock();
        let count = registered.get_mut(&time.0).expect("it was registered");
        *count -= 1;
        if *count == 0 {
            registered.remove(&time.0);
        }
    }

    /// A transaction of this process has had this commit time, or has seen it.
    pub fn saw(&self, time: Timestamp) {
        if self.seen.load(Ordering::Relaxed) < time.0 {
            self.seen.fetch_max(time.0, Ordering::SeqCst);
        }
    }

    /// The same of a time that a client has seen at another process. Commit times are at most one above the counter
    /// (rule 10). A higher time comes from a client whose numbers are broken; it is ignored, since it would hide commits
    /// of this process from snapshots. When the counter known here is too low to tell, this asks for it. `Err`: no
    /// counter can be had, and the client must not commit below what it has seen.
    pub async fn saw_elsewhere(&self, cluster: &Cluster, time: Timestamp) -> Result<(), NodeError> {
        let is_sound = || time.0 <= self.highest.load(Ordering::SeqCst).saturating_add(1);
        if time <= self.seen() {
            return Ok(());
        }
        if !is_sound() {
            self.draw(cluster).await?;
        }
        if is_sound() {
            self.saw(time);
        }
        Ok(())
    }

    /// What is committed by this process from now on is not below this: no snapshot shows the later of two commits of a session without the earlier. (For all sessions of the process together, which
    /// costs nothing: many commits share a time.)
    pub fn seen(&self) -> Timestamp {
        Timestamp(self.seen.load(Ordering::SeqCst))
    }

    /// No snapshot of this process is or will be older.
    pub fn oldest_here(&self) -> Timestamp {
        let registered = self.registered.lock();
        let oldest = registered.keys().next().copied();
        Timestamp(oldest.unwrap_or_else(|| self.highest.load(Ordering::SeqCst)))
    }

    /// No snapshot of any process is or will be older, by what the leader told last.
    pub fn oldest_in_cluster(&self) -> Timestamp {
        Timestamp(self.oldest_in_cluster.load(Ordering::Relaxed))
    }

    pub fn on_oldest(&self, oldest: Timestamp) {
        self.oldest_in_cluster.fetch_max(oldest.0, Ordering::Relaxed);
    }

    /// The leader's counter has been told: this process draws nothing below it any more.
    pub fn on_counter(&self, time: Timestamp) {
        self.highest.fetch_max(time.0, Ordering::SeqCst);
    }

    pub fn count(&self) -> u64 {
        self.registered.lock().values().map(|n| u64::from(*n)).sum()
    }
}

/// What a snapshot that is being drawn will not be below.
struct Bound<'a>(&'a Times, u64);

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        self.0.release(Timestamp(self.1));
    }
}

/// The request ends, whoever drops it; another may begin.
struct UnderWay<'a>(&'a Times);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.draws.lock().under_way = false;
        self.0.drawn.fire();
    }
}
