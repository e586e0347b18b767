//! One peer: its link, or the attempt to make one, and what waits for it.

use super::Lane;
use crate::{CloseReason, Link, TransportError, Urgency};
use parking_lot::Mutex;
use rauk_types::ErrorClass;
use rauk_wire::{Header, Kind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What waits while a link is being made.
const MOST_WAITING: usize = 4096;
const MOST_WAITING_BYTES: usize = 8 << 20;
/// Between attempts, at first and at most.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const REFUSED_WAIT: Duration = Duration::from_secs(5);
/// Rounds without a sign of life, and without a byte taken, after which a link is closed.
const SILENT: u32 = 16;

/// A frame to be.
pub(super) struct Post {
    pub header: Header,
    pub payload: Vec<u8>,
}

enum State {
    Idle,
    Connecting { waiting: VecDeque<Post>, bytes: usize },
    Open(Arc<Link>),
}

struct Inner {
    state: State,
    wait: Duration,
    /// No attempt before this.
    next: Instant,
    used: Instant,
    error: Option<TransportError>,
    dropped: u64,
    /// Links made.
    made: u64,
    silent: u32,
    /// Bytes that the link had taken by the last round.
    taken: Duration,
}

pub(super) struct Peer {
    pub address: String,
    pub lane: Lane,
    inner: Mutex<Inner>,
}

/// For the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatistics {
    pub address: String,
    pub connected: bool,
    /// Links made so far.
    pub links_made: u64,
    /// Messages dropped because there was no link, or the peer did not read.
    pub dropped: u64,
    pub unsent_bytes: u64,
    /// Why there is no link.
    pub error: Option<String>,
}

impl PeerStatistics {
    /// Another link to the same address.
    pub(super) fn add(&mut self, other: PeerStatistics) {
        self.connected &= other.connected;
        self.links_made += other.links_made;
        self.dropped += other.dropped;
        self.unsent_bytes += other.unsent_bytes;
        self.error = self.error.take().or(other.error);
    }
}

/// What became of a post.
#[derive(Default)]
pub(super) struct Posted {
    /// Calls that have failed by it.
    pub failed: Vec<(u64, TransportError)>,
    /// The caller is to connect.
    pub connect: bool,
}

pub(super) struct Failed {
    pub calls: Vec<u64>,
    /// It failed for another reason before, or not at all.
    pub is_news: bool,
}

fn dropped(post: &Post, error: &TransportError) -> Option<(u64, TransportError)> {
    (post.header.request != 0).then(|| (post.header.request, error.clone()))
}

fn send(link: &Link, post: &Post, urgency: Urgency) -> Result<(), TransportError> {
    let mut frame = link.buffer();
    frame.extend_from_slice(&post.payload);
    link.send(&post.header, frame, urgency)
}

impl Peer {
    pub fn new(address: &str, lane: Lane) -> Peer {
        let now = Instant::now();
        Peer {
            address: address.to_string(),
            lane,
            inner: Mutex::new(Inner {
                state: State::Idle,
                wait: FIRST_WAIT,
                next: now,
                used: now,
                error: None,
                dropped: 0,
                made: 0,
                silent: 0,
                taken: Duration::ZERO,
            }),
        }
    }

    pub fn post(&self, now: Instant, post: Post, urgency: Urgency) -> Posted {
        let mut posted = Posted::default();
        let mut inner = self.inner.lock();
        inner.used = now;
        let is_due = now >= inner.next;
        match &mut inner.state {
            State::Open(link) => {
                let link = link.clone();
                drop(inner);
                if let Err(error) = send(&link, &post, urgency) {
                    self.inner.lock().dropped += 1;
                    posted.failed.extend(dropped(&post, &error));
                }
            }
            State::Connecting { waiting, bytes } => {
                *bytes += post.payload.len();
                waiting.push_back(post);
                let mut lost = 0;
                while waiting.len() > MOST_WAITING || *bytes > MOST_WAITING_BYTES {
                    let Some(oldest) = waiting.pop_front() else { break };
                    *bytes -= oldest.payload.len();
                    lost += 1;
                    let congested = TransportError::Congested { bytes: *bytes };
                    posted.failed.extend(dropped(&oldest, &congested));
                }
                inner.dropped += lost;
            }
            State::Idle if is_due => {
                let bytes = post.payload.len();
                inner.state = State::Connecting { waiting: VecDeque::from([post]), bytes };
                posted.connect = true;
            }
            State::Idle => {
                inner.dropped += 1;
                let error = inner.error.clone().unwrap_or(TransportError::Closed(CloseReason::Peer));
                posted.failed.extend(dropped(&post, &error));
            }
        }
        posted
    }

    /// There is a link: what waits goes first. Gives calls that have failed all the same.
    pub fn connected(&self, link: &Arc<Link>) -> Vec<(u64, TransportError)> {
        let mut failed = Vec::new();
        loop {
            let posts = {
                let mut inner = self.inner.lock();
                match &mut inner.state {
                    State::Connecting { waiting, bytes } if !waiting.is_empty() => {
                        *bytes = 0;
                        std::mem::take(waiting)
                    }
                    _ => {
                        let had_failed = inner.error.take().is_some();
                        inner.silent = 0;
                        inner.made += 1;
                        if link.is_closed() {
                            // It has ended before it was known here: as after an attempt that failed.
                            inner.state = State::Idle;
                            inner.next = Instant::now() + inner.wait;
                            return failed;
                        }
                        inner.wait = FIRST_WAIT;
                        inner.state = State::Open(link.clone());
                        if had_failed || inner.made == 1 {
                            tracing::info!(peer = self.address, "linked to a node");
                        }
                        return failed;
                    }
                }
            };
            for post in posts {
                if let Err(error) = send(link, &post, Urgency::Adaptive) {
                    self.inner.lock().dropped += 1;
                    failed.extend(dropped(&post, &error));
                }
            }
        }
    }

    /// The attempt has failed: what waits is dropped.
    pub fn failed(&self, now: Instant, error: TransportError) -> Failed {
        let mut inner = self.inner.lock();
        inner.next = now + inner.wait;
        // Who has refused us will do so again, and says so in its log each time.
        let permanent = error.class() == ErrorClass::Permanent;
        inner.wait = (inner.wait * 2).min(if permanent { REFUSED_WAIT } else { LONGEST_WAIT });
        let is_news = inner.error.replace(error.clone()) != Some(error);
        let State::Connecting { waiting, .. } = std::mem::replace(&mut inner.state, State::Idle) else {
            unreachable!("one attempt at a time")
        };
        inner.dropped += waiting.len() as u64;
        let calls = waiting.iter().map(|post| post.header.request).filter(|number| *number != 0).collect();
        Failed { calls, is_news }
    }

    /// The link has ended; whether it was the one in use.
    pub fn closed(&self, link: &Arc<Link>) -> bool {
        let mut inner = self.inner.lock();
        let current = matches!(&inner.state, State::Open(open) if Arc::ptr_eq(open, link));
        if current {
            inner.state = State::Idle;
            inner.next = Instant::now();
        }
        current
    }

    pub fn disconnect(&self) {
        let link = match &self.inner.lock().state {
            State::Open(link) => link.clone(),
            _ => return,
        };
        link.close(CloseReason::Here);
    }

    /// It lives: the next message may try.
    pub fn try_at_once(&self) {
        let mut inner = self.inner.lock();
        inner.wait = FIRST_WAIT;
        inner.next = Instant::now();
    }

    /// A sign of life.
    pub fn heard(&self) {
        self.inner.lock().silent = 0;
    }

    pub fn is_unused(&self, now: Instant, limit: Duration) -> bool {
        let inner = self.inner.lock();
        let unused = now.saturating_duration_since(inner.used) > limit;
        if unused && let State::Open(link) = &inner.state {
            let link = link.clone();
            drop(inner);
            // It is forgotten when it has closed.
            link.close(CloseReason::Here);
            return false;
        }
        unused && matches!(inner.state, State::Idle)
    }

    pub fn on_round(&self) {
        let link = {
            let mut inner = self.inner.lock();
            let State::Open(link) = &inner.state else { return };
            let link = link.clone();
            let taken = link.progress();
            if taken != inner.taken && link.unsent() > 0 {
                inner.silent = 0;
            }
            inner.taken = taken;
            inner.silent += 1;
            if inner.silent > SILENT {
                drop(inner);
                let seconds = (SILENT * super::ROUND.as_millis() as u32).div_ceil(1000);
                return link.close(CloseReason::Protocol(format!("no sign of life for {seconds} s")));
            }
            // The first round after a sign of life asks for none.
            if inner.silent.is_multiple_of(2) { link } else { return }
        };
        // A link that takes nothing any more is found out by its silence.
        let _ = link.send_as(&Header::new(Kind::Ping, 0), link.buffer(), Urgency::Force);
    }

    pub fn statistics(&self) -> PeerStatistics {
        let inner = self.inner.lock();
        let link = match &inner.state {
            State::Open(link) => Some(link),
            _ => None,
        };
        PeerStatistics {
            address: self.address.clone(),
            connected: link.is_some(),
            links_made: inner.made,
            dropped: inner.dropped,
            unsent_bytes: link.map_or(0, |link| link.unsent()),
            error: inner.error.as_ref().map(ToString::to_string),
        }
    }
}
