//! A node of the cluster as a client sees it: its address, and the connection to it.
//!
//! There is one connection at most, made when a request would have gone there for the first time. A node that cannot
//! be reached is left alone for a while, twice as long after each attempt, and nobody waits for it: requests go by the
//! connection that the client has. So an address that is advertised and leads nowhere, as in a network of containers,
//! costs an attempt a minute.
//!
//! A place that has gone (its node is down, or has another address) stays so, and whatever is still under way to make
//! its connection ends by closing that.

use crate::channel::remote::{Connection, jittered};
use parking_lot::Mutex;
use rauk_types::NodeId;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between the first two attempts to reach a node, and the longest time between two.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    pub node: NodeId,
    pub(super) address: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Somebody is about to make it, or has been asked to.
    opening: bool,
    failures: u32,
    not_before: Option<Instant>,
    gone: bool,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node {} at {}", self.node.0, self.address)
    }
}

impl State {
    /// No attempt before the pause is over.
    fn pause(&mut self, now: Instant, longest: bool) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + jittered(if longest { LONGEST_PAUSE } else { pause }));
    }
}

impl Place {
    pub fn new(node: NodeId, address: String) -> Place {
        Place { node, address, state: Mutex::default() }
    }

    pub fn is(&self, node: NodeId, address: &str) -> bool {
        self.node == node && self.address == address
    }

    /// The connection, if it works.
    pub fn connection(&self) -> Option<Arc<Connection>> {
        self.state.lock().connection.clone().filter(|connection| connection.is_usable())
    }

    /// Whether an attempt to connect is to be made now; then whoever asks makes it.
    pub fn begins(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        match &state.connection {
            Some(connection) if connection.is_usable() => return false,
            // A node that ends is not asked at once whether it is there again.
            Some(_) => {
                state.connection = None;
                state.pause(now, false);
            }
            None => {}
        }
        if state.gone || state.opening || state.not_before.is_some_and(|time| now < time) {
            return false;
        }
        state.opening = true;
        true
    }

    /// The attempt has failed. `hopeless`: it will fail again unless somebody changes something.
    pub fn failed(&self, now: Instant, hopeless: bool) {
        let mut state = self.state.lock();
        state.opening = false;
        state.pause(now, hopeless);
    }

    /// The attempt was given up before it was made.
    pub fn not_tried(&self) {
        self.state.lock().opening = false;
    }

    /// The attempt has succeeded. `false`: the node is no longer wanted, and the connection is the caller's to close.
    pub fn opened(&self, connection: Arc<Connection>) -> bool {
        let mut state = self.state.lock();
        state.opening = false;
        if state.gone {
            return false;
        }
        (state.failures, state.not_before) = (0, None);
        state.connection = Some(connection);
        true
    }

    /// For good; gives the connection to be closed.
    pub fn leave(&self) -> Option<Arc<Connection>> {
        let mut state = self.state.lock();
        state.gone = true;
        state.connection.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (Place, Instant) {
        (Place::new(NodeId(1), "a:4407".into()), Instant::now())
    }

    #[test]
    fn one_attempt_at_a_time() {
        let (place, now) = place();
        assert!(place.begins(now));
        assert!(!place.begins(now));
        place.not_tried();
        assert!(place.begins(now));
    }

    #[test]
    fn a_node_that_cannot_be_reached_is_left_alone_for_longer_and_longer() {
        let (place, mut now) = place();
        let mut last = Duration::ZERO;
        for failures in 0..20 {
            assert!(place.begins(now));
            place.failed(now, false);
            let pause = FIRST_PAUSE.saturating_mul(1 << failures).min(LONGEST_PAUSE);
            assert!(!place.begins(now + pause.mul_f64(0.49)), "after {failures} failures");
            now += pause;
            assert!(pause >= last);
            last = pause;
        }
        assert_eq!(last, LONGEST_PAUSE);
    }

    #[test]
    fn what_will_fail_again_is_tried_once_a_minute() {
        let (place, now) = place();
        assert!(place.begins(now));
        place.failed(now, true);
        assert!(!place.begins(now + LONGEST_PAUSE.mul_f64(0.49)));
        assert!(place.begins(now + LONGEST_PAUSE));
    }

    #[test]
    fn a_place_that_has_gone_is_not_opened() {
        let (place, now) = place();
        assert!(place.leave().is_none());
        assert!(!place.begins(now));
        assert!(place.connection().is_none());
    }
}
