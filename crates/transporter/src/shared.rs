//! What all threads of a transporter share.

use crate::buffers::Buffers;
use crate::login::{Account, Accounts};
use crate::receive::role::Role as ReceiverRole;
use crate::receive::{ReceiveSet, Receiver};
use crate::send::thread::SendThread;
use crate::statistics::Statistics;
use crate::{Handler, Identity, Link, LinkStatistics, Options};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Handshakes under way at a time; whoever comes on top is turned away unread.
const MOST_HALF_OPEN: usize = 1024;

pub(crate) struct Shared {
    pub options: Options,
    identity: Mutex<Identity>,
    /// Who knows the accounts that are let in.
    pub accounts: OnceLock<Arc<dyn Accounts>>,
    /// What this side shows in the place of a secret.
    pub account: OnceLock<Account>,
    pub handler: Arc<dyn Handler>,
    pub buffers: Buffers,
    pub sets: Vec<Arc<ReceiveSet>>,
    /// Without receive threads: who receives.
    pub role: Option<ReceiverRole>,
    pub send_thread: SendThread,
    start: Instant,
    longest_wait: AtomicU64,
    serial: AtomicU64,
    links: Mutex<BTreeMap<u64, Arc<Link>>>,
    /// Places taken by links, and by peers that have said hello.
    taken: AtomicUsize,
    half_open: AtomicUsize,
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    pub moves: AtomicU64,
    /// Sums of closed links.
    closed: Mutex<Statistics>,
    /// Nobody is let in any more.
    pub stopping: AtomicBool,
    /// Threads end.
    pub ending: AtomicBool,
}

impl Shared {
    /// With one receiver for each receive thread, or one that is lent to whoever waits.
    pub fn new(
        options: Options,
        identity: Identity,
        handler: Arc<dyn Handler>,
    ) -> io::Result<(Arc<Shared>, Vec<Receiver>)> {
        let mut sets = Vec::new();
        let mut polls = Vec::new();
        let apart = usize::from(options.thread_apart && options.receive_threads > 0);
        for index in 0..options.receive_threads.max(1) + apart {
            let (set, poll) = ReceiveSet::new(index)?;
            sets.push(set);
            polls.push(poll);
        }
        let shared = Arc::new(Shared {
            role: (options.receive_threads == 0).then(|| ReceiverRole::new(sets[0].clone())),
            longest_wait: AtomicU64::new(nanos(options.longest_wait)),
            options,
            identity: Mutex::new(identity),
            accounts: OnceLock::new(),
            account: OnceLock::new(),
            handler,
            buffers: Buffers::default(),
            sets,
            send_thread: SendThread::new(),
            start: Instant::now(),
            serial: AtomicU64::new(1),
            links: Mutex::default(),
            taken: AtomicUsize::new(0),
            half_open: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            closed: Mutex::default(),
            stopping: AtomicBool::new(false),
            ending: AtomicBool::new(false),
        });
        let receivers = polls.into_iter().enumerate().map(|(i, poll)| Receiver::new(shared.clone(), i, poll)).collect();
        Ok((shared, receivers))
    }

    /// Time since the transporter began.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn longest_wait(&self) -> Duration {
        Duration::from_nanos(self.longest_wait.load(Relaxed))
    }

    pub fn set_longest_wait(&self, longest: Duration) {
        self.longest_wait.store(nanos(longest), Relaxed);
        for link in self.open_links() {
            link.sending.lock().adaptive.set_longest_wait(longest);
        }
    }

    pub fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Relaxed)
    }

    /// Who this side says it is.
    pub fn identity(&self) -> Identity {
        self.identity.lock().clone()
    }

    pub fn set_cluster(&self, cluster: [u8; 16]) {
        self.identity.lock().cluster = cluster;
    }

    /// Oldest and newest version that this side speaks.
    pub fn versions(&self) -> (u16, u16) {
        let version = self.identity.lock().version;
        let newest = if version == 0 { rauk_wire::PROTOCOL } else { version };
        (newest.saturating_sub(1), newest)
    }

    /// The thread with the fewest sockets, of those that get links by themselves.
    pub fn least_loaded(&self) -> &Arc<ReceiveSet> {
        let common = self.options.receive_threads.max(1);
        self.sets[..common].iter().min_by_key(|set| set.sockets.load(Relaxed)).expect("there is one at least")
    }

    pub fn take_half_open(&self) -> bool {
        let taken = self.half_open.fetch_add(1, SeqCst) < MOST_HALF_OPEN;
        if !taken {
            self.half_open.fetch_sub(1, SeqCst);
        }
        taken
    }

    pub fn give_half_open(&self) {
        self.half_open.fetch_sub(1, SeqCst);
    }

    /// A place for a link that we accept.
    pub fn take_place(&self) -> bool {
        let taken = self.taken.fetch_add(1, SeqCst) < self.options.max_links;
        if !taken {
            self.taken.fetch_sub(1, SeqCst);
        }
        taken
    }

    pub fn give_place(&self) {
        self.taken.fetch_sub(1, SeqCst);
    }

    pub fn add_link(&self, link: &Arc<Link>) {
        self.links.lock().insert(link.serial, link.clone());
    }

    /// The link has closed: its counts go to the sums.
    pub fn remove_link(&self, link: &Link) {
        let mut links = self.links.lock();
        if links.remove(&link.serial).is_some() {
            self.closed.lock().add(&link.sending.lock().counts, &link.received);
        }
    }

    pub fn open_links(&self) -> Vec<Arc<Link>> {
        self.links.lock().values().cloned().collect()
    }

    pub fn statistics(&self) -> Statistics {
        // Under the map's lock, so that a link is counted here or with the closed ones, and not twice.
        let links = self.links.lock();
        let mut sums = *self.closed.lock();
        for link in links.values() {
            let counts = link.sending.lock().counts;
            sums.add(&counts, &link.received);
        }
        sums.links_open = links.len() as u64;
        sums.links_accepted = self.accepted.load(Relaxed);
        sums.links_refused = self.refused.load(Relaxed);
        sums.moves = self.moves.load(Relaxed);
        for set in &self.sets {
            sums.spins += set.spins.load(Relaxed);
            sums.spins_that_found += set.spins_that_found.load(Relaxed);
            sums.sleeps += set.sleeps.load(Relaxed);
        }
        sums
    }

    pub fn link_statistics(&self) -> Vec<LinkStatistics> {
        self.open_links().iter().map(|link| link.statistics()).collect()
    }

    /// All threads end: receivers close what is left.
    pub fn end(&self) {
        self.stopping.store(true, SeqCst);
        self.ending.store(true, SeqCst);
        for set in &self.sets {
            set.notify();
        }
        if let Some(role) = &self.role {
            role.on_end();
        }
        self.send_thread.end();
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
