//! Who sends.
//!
//! Each link has a [`Sending`] state behind one small lock that is held to look at it and change it, never during a system call. A frame is queued as the buffer that it was built
//! in. Then:
//!
//! * somebody is sending on this socket (`active`): he will see it; go;
//! * the socket is full (`blocked`): its receive thread goes on when it is writable; go;
//! * a receive thread is in the middle of a round: the answers of the round leave together at its end (see `receive::round`);
//! * the adaptive state lets the frame wait: leave it, with a deadline that the send thread and the receivers keep;
//! * else become active and send until nothing is left.
//!
//! The active sender takes up to 64 frames at a time and writes them with one `writev`; it looks at the queue again only after that. When it has sent enough for one caller it hands
//! its role over to the send thread, still active, so that nobody else begins.
//!
//! Invariants: at most one thread is active on a link; only the active one touches the front of the queue; `unsent` counts the bytes of whole frames that the
//! socket has not taken; a link that has a [`CloseReason`] takes no frames, and whoever is active then (or the closer) shuts the socket down, once.
//!
//! Under TLS frames are sealed when they are taken, and what the socket does not take waits sealed.

pub(crate) mod thread;

use crate::adaptive::{AdaptiveSend, Decision};
use crate::receive::{Command, round};
use crate::shared::Shared;
use crate::statistics::SendCounts;
use crate::stream::Stream;
use crate::{CloseReason, Link, TransportError, Urgency};
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::Waker;
use std::time::Duration;

/// Frames that one system call sends at most.
const SLICES: usize = 64;
/// A caller hands over to the send thread after so many system calls, or so many bytes.
const ENOUGH_ROUNDS: u32 = 16;
const ENOUGH_BYTES: usize = 4 << 20;
/// Bytes that are sealed at a time under TLS.
const SEAL: usize = 256 << 10;
/// A corked link with more than this is sent in the middle of a round.
const CORKED_BYTES: usize = 256 << 10;

/// Who became the active sender, for the counters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Sender,
    Timer,
    SendThread,
}

/// A link's send state.
pub(crate) struct Sending {
    /// Gone when the link has ended.
    stream: Option<Arc<Stream>>,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the first frame that are gone already.
    offset: usize,
    /// TLS: sealed bytes that the socket has not taken.
    sealed: Sealed,
    /// An empty queue for the next batch.
    spare: VecDeque<Vec<u8>>,
    /// Bytes queued or being written.
    pub unsent: usize,
    active: bool,
    blocked: bool,
    corked: bool,
    /// Times that the socket became writable: an event between a full socket and `blocked` is not lost.
    writable_events: u64,
    pub adaptive: AdaptiveSend,
    /// Frames wait by the adaptive state's leave.
    waiting: bool,
    pub closed: Option<CloseReason>,
    /// When the socket last took something.
    pub progress: Duration,
    /// Waiting in [`Link::writable`].
    pub wakers: Vec<Waker>,
    pub counts: SendCounts,
}

#[derive(Default)]
struct Sealed {
    bytes: Vec<u8>,
    offset: usize,
}

impl Sealed {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.offset..]
    }
}

/// What came of one write.
struct Written {
    bytes: usize,
    calls: u64,
    end: io::Result<()>,
}

impl Sending {
    /// `raw` are bytes of the handshake that the socket has not taken.
    pub fn new(stream: Arc<Stream>, raw: Vec<u8>, shared: &Shared) -> Sending {
        let (queue, sealed) = match stream.is_tls() {
            true => (VecDeque::new(), Sealed { bytes: raw, offset: 0 }),
            false => (if raw.is_empty() { VecDeque::new() } else { VecDeque::from([raw]) }, Sealed::default()),
        };
        Sending {
            unsent: queue.iter().map(Vec::len).sum(),
            stream: Some(stream),
            queue,
            offset: 0,
            sealed,
            spare: VecDeque::new(),
            active: false,
            blocked: false,
            corked: false,
            writable_events: 0,
            adaptive: AdaptiveSend::new(shared.longest_wait()),
            waiting: false,
            closed: None,
            progress: shared.now(),
            wakers: Vec::new(),
            counts: SendCounts::default(),
        }
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.sealed.rest().is_empty()
    }
}

impl Link {
    /// Queues a finished frame, and sends or leaves it.
    pub(crate) fn send_finished(&self, frame: Vec<u8>, urgency: Urgency) -> Result<(), TransportError> {
        let limit = self.shared.options.send_limit;
        let mut state = self.sending.lock();
        if let Some(reason) = &state.closed {
            return Err(TransportError::Closed(reason.clone()));
        }
        if state.unsent > self.hard_limit() {
            let bytes = state.unsent;
            drop(state);
            if self.accepted {
                self.close(CloseReason::Protocol(format!(
                    "{bytes} bytes of answers wait for a peer that does not read"
                )));
            }
            return Err(TransportError::Congested { bytes });
        }
        state.unsent += frame.len();
        state.counts.frames += 1;
        state.counts.bytes += frame.len() as u64;
        state.queue.push_back(frame);
        let over = state.unsent > limit && !self.over_limit.swap(true, SeqCst);
        self.send_or_leave(state, urgency);
        if over {
            self.command(Command::OverLimit);
        }
        Ok(())
    }

    /// What becomes of a frame that was just queued.
    fn send_or_leave<'l>(&'l self, mut state: MutexGuard<'l, Sending>, urgency: Urgency) {
        if state.active {
            state.counts.left_to_sender += 1;
            if urgency == Urgency::Adaptive {
                // It does not wait, but belongs to the load that the adaptive state learns.
                let now = self.shared.now();
                state.adaptive.on_message(now);
                state.adaptive.on_sent(now);
            }
            return;
        }
        if state.blocked {
            return;
        }
        if urgency == Urgency::Adaptive {
            if state.unsent <= CORKED_BYTES && (state.corked || round::cork(&self.me)) {
                state.corked = true;
                return;
            }
            if let Decision::WaitUntil(deadline) = state.adaptive.on_message(self.shared.now()) {
                state.counts.waited += 1;
                state.waiting = true;
                if self.deadline.load(Relaxed) == u64::MAX {
                    let deadline = deadline.as_nanos() as u64;
                    self.deadline.store(deadline, SeqCst);
                    drop(state);
                    self.shared.send_thread.watch(self, deadline);
                }
                return;
            }
            if state.waiting {
                self.deadline.store(u64::MAX, SeqCst);
                state.waiting = false;
            }
        }
        state.active = true;
        self.drive(state, By::Sender);
    }

    /// Beyond this many unsent bytes no frame is taken.
    fn hard_limit(&self) -> usize {
        let limit = self.shared.options.send_limit;
        if self.accepted { limit.saturating_mul(4).saturating_add(rauk_wire::MAX_PAYLOAD) } else { limit * 2 }
    }

    /// Becomes the active sender, when there is something to send, nobody is sending and `when` agrees.
    pub(crate) fn start_sending(&self, when: impl FnOnce(&mut Sending) -> bool, by: By) {
        let mut state = self.sending.lock();
        if !when(&mut state) || state.active || state.blocked || state.closed.is_some() {
            return;
        }
        let tls_speaks = state.stream.as_ref().is_some_and(|stream| stream.wants_write());
        if state.is_empty() && !tls_speaks {
            return;
        }
        state.active = true;
        self.drive(state, by);
    }

    /// The end of a round: what was corked leaves.
    pub(crate) fn uncork(&self) {
        self.start_sending(|state| std::mem::replace(&mut state.corked, false), By::Sender);
    }

    /// Sends what waits, if it should have gone by `until`.
    pub(crate) fn send_if_due(&self, until: Duration) {
        if u128::from(self.deadline.load(SeqCst)) > until.as_nanos() {
            return;
        }
        self.start_sending(|state| state.waiting, By::Timer);
    }

    /// The socket takes bytes again.
    pub(crate) fn on_writable(&self) {
        self.start_sending(
            |state| {
                state.writable_events += 1;
                std::mem::replace(&mut state.blocked, false)
            },
            By::Sender,
        );
    }

    /// The send thread goes on for a sender that has handed over; `active` is set.
    pub(crate) fn go_on_sending(&self) {
        self.drive(self.sending.lock(), By::SendThread);
    }

    /// Sends as the active sender: until nothing is left, the socket is full, or it is enough for one caller.
    fn drive<'l>(&'l self, mut state: MutexGuard<'l, Sending>, by: By) {
        debug_assert!(state.active, "whoever sends is active");
        match by {
            By::Sender => {}
            By::Timer => state.counts.by_timer += 1,
            By::SendThread => state.counts.by_send_thread += 1,
        }
        let Some(stream) = state.stream.clone() else {
            state.active = false;
            return;
        };
        let mut batch = std::mem::take(&mut state.spare);
        let (mut rounds, mut bytes) = (0, 0);
        loop {
            let tls_speaks = stream.wants_write();
            if state.is_empty() && !tls_speaks {
                state.active = false;
                state.spare = batch;
                return self.after_sending(state);
            }
            if (rounds >= ENOUGH_ROUNDS || bytes >= ENOUGH_BYTES) && state.closed.is_none() {
                state.spare = batch;
                drop(state);
                if let Some(link) = self.me.upgrade() {
                    self.shared.send_thread.take_over(link);
                }
                return;
            }
            if state.waiting {
                state.waiting = false;
                state.adaptive.on_sent(self.shared.now());
                self.deadline.store(u64::MAX, SeqCst);
            }
            let seen = state.writable_events;
            let mut offset = std::mem::take(&mut state.offset);
            if state.queue.len() <= SLICES {
                std::mem::swap(&mut batch, &mut state.queue);
            } else {
                batch.extend(state.queue.drain(..SLICES));
            }
            let mut sealed = std::mem::take(&mut state.sealed);
            drop(state);
            let written = if stream.is_tls() {
                self.write_sealed(&stream, &mut batch, &mut offset, &mut sealed)
            } else {
                self.write_plain(&stream, &mut batch, &mut offset)
            };
            rounds += written.calls as u32;
            bytes += written.bytes;
            state = self.sending.lock();
            state.counts.sends += written.calls;
            if written.bytes > 0 {
                state.progress = self.shared.now();
            }
            state.unsent -= written.bytes;
            state.offset = offset;
            state.sealed = sealed;
            while let Some(frame) = batch.pop_back() {
                state.queue.push_front(frame);
            }
            state = self.relieve(state);
            match written.end {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if state.writable_events != seen {
                        continue;
                    }
                    state.active = false;
                    state.blocked = true;
                    state.spare = batch;
                    return self.after_sending(state);
                }
                Err(e) => {
                    state.active = false;
                    if state.closed.is_none() {
                        state.closed = Some(closed_by(&e));
                        self.mark_closed();
                    }
                    return self.after_sending(state);
                }
            }
        }
    }

    /// One `writev`, or as many as it takes to get `batch` out or fill the socket; sent frames are taken off and their buffers kept.
    fn write_plain(&self, stream: &Stream, batch: &mut VecDeque<Vec<u8>>, offset: &mut usize) -> Written {
        let mut written = Written { bytes: 0, calls: 0, end: Ok(()) };
        while !batch.is_empty() {
            let sent = if batch.len() == 1 {
                stream.write(&batch[0][*offset..])
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let count = batch.len().min(SLICES);
                for (slice, frame) in slices.iter_mut().zip(batch.iter()) {
                    *slice = IoSlice::new(frame);
                }
                slices[0] = IoSlice::new(&batch[0][*offset..]);
                stream.write_vectored(&slices[..count])
            };
            written.calls += 1;
            match sent {
                Ok(sent) => {
                    written.bytes += sent;
                    let mut rest = *offset + sent;
                    let whole = batch
                        .iter()
                        .take_while(|frame| {
                            rest >= frame.len() && {
                                rest -= frame.len();
                                true
                            }
                        })
                        .count();
                    self.shared.buffers.give(batch.drain(..whole));
                    *offset = rest;
                }
                Err(e) => {
                    written.end = Err(e);
                    break;
                }
            }
        }
        written
    }

    /// Seals some of `batch` when nothing sealed is left, and writes. Bytes count as written when they have been sealed; what is sealed at a time is bounded.
    fn write_sealed(
        &self,
        stream: &Stream,
        batch: &mut VecDeque<Vec<u8>>,
        offset: &mut usize,
        sealed: &mut Sealed,
    ) -> Written {
        let mut written = Written { bytes: 0, calls: 0, end: Ok(()) };
        if sealed.rest().is_empty() {
            sealed.bytes.clear();
            sealed.offset = 0;
            written.end = stream.pull(&mut sealed.bytes);
            while written.end.is_ok()
                && sealed.bytes.len() < SEAL
                && let Some(frame) = batch.front()
            {
                let end = frame.len().min(*offset + SEAL);
                written.end = stream.seal(&frame[*offset..end], &mut sealed.bytes);
                written.bytes += end - *offset;
                if end == frame.len() {
                    *offset = 0;
                    self.shared.buffers.give(batch.pop_front().into_iter());
                } else {
                    *offset = end;
                }
            }
        }
        while written.end.is_ok() && !sealed.rest().is_empty() {
            written.calls += 1;
            match stream.write(sealed.rest()) {
                Ok(sent) => sealed.offset += sent,
                Err(e) => written.end = Err(e),
            }
        }
        written
    }

    /// The active sender has stopped.
    fn after_sending<'l>(&'l self, state: MutexGuard<'l, Sending>) {
        if state.closed.is_some() {
            return self.end(state);
        }
        drop(self.relieve(state));
    }

    /// When no more than half of the limit is left: those who wait for room are woken, and the peer's requests are read again.
    fn relieve<'l>(&'l self, mut state: MutexGuard<'l, Sending>) -> MutexGuard<'l, Sending> {
        let over = self.over_limit.load(Relaxed);
        if state.unsent > self.shared.options.send_limit / 2 || (!over && state.wakers.is_empty()) {
            return state;
        }
        let wakers = std::mem::take(&mut state.wakers);
        self.over_limit.store(false, SeqCst);
        drop(state);
        for waker in wakers {
            waker.wake();
        }
        if over {
            self.resume_if_possible();
        }
        self.sending.lock()
    }

    pub(crate) fn close_sending(&self, reason: CloseReason) {
        let mut state = self.sending.lock();
        if state.closed.is_some() {
            return;
        }
        state.closed = Some(reason);
        self.mark_closed();
        if state.active {
            return;
        }
        if state.blocked || state.is_empty() {
            return self.end(state);
        }
        state.active = true;
        self.drive(state, By::Sender);
    }

    /// Nothing will be sent any more: the socket is shut down and the receive thread told. Only the first call has an effect.
    fn end(&self, mut state: MutexGuard<'_, Sending>) {
        let Some(stream) = state.stream.take() else { return };
        let whole = state.sealed.rest().is_empty();
        state.queue = VecDeque::new();
        state.spare = VecDeque::new();
        state.sealed = Sealed::default();
        state.offset = 0;
        state.unsent = 0;
        state.waiting = false;
        self.deadline.store(u64::MAX, SeqCst);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        stream.end(whole);
        for waker in wakers {
            waker.wake();
        }
        self.command(Command::Closed);
    }

    /// There is nobody any more to go on for this sender.
    pub(crate) fn stop_sending(&self) {
        let mut state = self.sending.lock();
        state.active = false;
        if state.closed.is_none() {
            state.closed = Some(CloseReason::Here);
            self.mark_closed();
        }
        self.end(state);
    }

    /// Cuts the peer off when it is over the limit and has not read for `stalled`; gives when to look again, while it is over the limit.
    pub(crate) fn check_stalled(&self) -> Option<Duration> {
        let stalled = self.shared.options.stalled;
        let state = self.sending.lock();
        if state.closed.is_some() || !self.over_limit.load(SeqCst) {
            return None;
        }
        let (end, now) = (state.progress + stalled, self.shared.now());
        if now < end {
            return Some(end);
        }
        drop(state);
        self.close(CloseReason::NotReading(stalled.as_secs()));
        None
    }
}

/// What an error of the socket means for its link.
pub(crate) fn closed_by(error: &io::Error) -> CloseReason {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => CloseReason::Peer,
        _ => CloseReason::Io(error.to_string()),
    }
}
