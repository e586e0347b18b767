//! Adaptive send, as the builders of MySQL Cluster described it: per socket, how many sends may wait for company.
//!
//! Pure: the time is passed in. See `design` of the rules in [`AdaptiveSend::on_message`].

use std::time::Duration;

/// What to do with a message that was put into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send everything that waits.
    Send,
    /// Leave it; it must have gone by this time.
    WaitUntil(Duration),
}

/// One socket's state.
#[derive(Debug)]
pub struct AdaptiveSend {
    _private: (),
}

impl AdaptiveSend {
    /// `longest_wait` zero: every message is sent at once.
    pub fn new(_longest_wait: Duration) -> AdaptiveSend {
        todo!()
    }

    pub fn set_longest_wait(&mut self, _longest_wait: Duration) {
        todo!()
    }

    /// A message was put into the buffer at `now`.
    pub fn on_message(&mut self, _now: Duration) -> Decision {
        todo!()
    }

    /// What waited was sent at `now` for another reason (forced, timer, somebody else's send).
    pub fn on_sent(&mut self, _now: Duration) {
        todo!()
    }

    /// How many may wait at present.
    pub fn max_waits(&self) -> u32 {
        todo!()
    }
}
