//! What the operator sees of links.

/// Sums over all links, closed ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub links_open: u64,
    pub links_accepted: u64,
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
    pub spins: u64,
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
}
