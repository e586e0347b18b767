//! What the operator sees of links.
//!
//! Every link counts for itself: what concerns sending under the lock of its send state, which a sender holds anyway, what concerns receiving in
//! atomics that only its receive thread writes. Nothing on the way of a frame is shared between links. Totals are added up when they are asked for;
//! a link that closes leaves its counts to the sums of closed ones.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sums over all links, closed ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub links_open: u64,
    pub links_accepted: u64,
    /// Peers that did not get through the handshake, or were one too many.
    pub links_refused: u64,
    /// Frames and bytes, headers included.
    pub frames_sent: u64,
    pub bytes_sent: u64,
    pub frames_received: u64,
    pub bytes_received: u64,
    /// System calls that sent.
    pub sends: u64,
    /// Frames that waited for company, and sends by the timer.
    pub frames_waited: u64,
    pub sends_by_timer: u64,
    pub sends_by_send_thread: u64,
    /// Frames whose sender found somebody else sending, and left them to him.
    pub frames_left_to_sender: u64,
    /// Times that reading from a link paused because its peer did not read answers.
    pub pauses: u64,
    /// Links that moved to another receive thread.
    pub moves: u64,
    /// Times that a receiver spun, that it found something by it, and that it slept.
    pub spins: u64,
    pub spins_that_found: u64,
    pub sleeps: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatistics {
    pub connection: u64,
    pub peer: String,
    pub name: String,
    pub max_waits: u32,
    pub frames_sent: u64,
    pub sends: u64,
    pub unsent_bytes: u64,
    pub frames_received: u64,
    /// Requests read from it and not answered yet.
    pub requests: u64,
    /// Index of the receive thread that serves it.
    pub receive_thread: usize,
}

/// Counted under the lock of a send state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendCounts {
    pub frames: u64,
    pub bytes: u64,
    pub sends: u64,
    pub waited: u64,
    pub by_timer: u64,
    pub by_send_thread: u64,
    pub left_to_sender: u64,
}

/// Counted by the receive thread of a link.
#[derive(Debug, Default)]
pub(crate) struct ReceiveCounts {
    pub frames: AtomicU64,
    pub bytes: AtomicU64,
    pub pauses: AtomicU64,
}

impl Statistics {
    pub(crate) fn add(&mut self, sent: &SendCounts, received: &ReceiveCounts) {
        self.frames_sent += sent.frames;
        self.bytes_sent += sent.bytes;
        self.sends += sent.sends;
        self.frames_waited += sent.waited;
        self.sends_by_timer += sent.by_timer;
        self.sends_by_send_thread += sent.by_send_thread;
        self.frames_left_to_sender += sent.left_to_sender;
        self.frames_received += received.frames.load(Relaxed);
        self.bytes_received += received.bytes.load(Relaxed);
        self.pauses += received.pauses.load(Relaxed);
    }
}
