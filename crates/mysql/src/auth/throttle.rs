//! The brake on guessing passwords: after several failures from one address its next refusals come late, up to three seconds, and while
//! many of them are being held back, the address is not served at all. Only refusals are slowed; who has the password waits for nothing.
//!
//! The table is bounded: addresses that were quiet are forgotten first. Failures fade, one half a minute.
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Failures that cost nothing.
const FREE: u32 = 5;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(3);
const HALF_LIFE: Duration = Duration::from_secs(60);
/// Refusals held back at a time for one address.
const HELD: u32 = 32;
const ADDRESSES: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Entry {
    failures: u32,
    /// Refusals of this address that are waiting out their delay.
    held: u32,
    last: Instant,
}

impl Entry {
    fn fade(&mut self, now: Instant) {
        let halves = now.saturating_duration_since(self.last).as_secs() / HALF_LIFE.as_secs();
        if halves > 0 {
            self.failures = self.failures.checked_shr(halves.min(31) as u32).unwrap_or(0);
            self.last = now;
        }
    }
}

#[derive(Default)]
pub struct Throttle {
    entries: Mutex<BTreeMap<IpAddr, Entry>>,
}

impl Throttle {
    /// Whether an address may try at all now.
    pub fn admits(&self, peer: IpAddr) -> bool {
        peer.is_loopback() || self.entries.lock().get(&peer).is_none_or(|e| e.held < HELD)
    }

    /// Notes a failure and says how long to hold the refusal back. When the delay is not zero,
    /// [`released`](Self::released) must follow it.
    pub fn failed(&self, peer: IpAddr, now: Instant) -> Duration {
        let mut entries = self.entries.lock();
        if entries.len() >= ADDRESSES && !entries.contains_key(&peer) {
            entries.retain(|_, e| {
                e.fade(now);
                e.failures > 0 || e.held > 0
            });
            if entries.len() >= ADDRESSES
                && let Some(oldest) =
                    entries.iter().filter(|(_, e)| e.held == 0).min_by_key(|(_, e)| e.last).map(|(a, _)| *a)
            {
                entries.remove(&oldest);
            }
        }
        let entry = entries.entry(peer).or_insert(Entry { failures: 0, held: 0, last: now });
        entry.fade(now);
        entry.failures = entry.failures.saturating_add(1);
        if entry.failures <= FREE {
            return Duration::ZERO;
        }
        entry.held += 1;
        FIRST_DELAY.saturating_mul(1 << (entry.failures - FREE - 1).min(10)).min(LONGEST_DELAY)
    }

    /// A refusal that was held back has been sent, or its client has gone.
    pub fn released(&self, peer: IpAddr) {
        if let Some(entry) = self.entries.lock().get_mut(&peer) {
            entry.held = entry.held.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn peer(n: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(0x0A00_0000 + n))
    }

    #[test]
    fn slower_and_slower_then_forgiven() {
        let throttle = Throttle::default();
        let start = Instant::now();
        let delays: Vec<u64> = (0..12).map(|_| throttle.failed(peer(1), start).as_millis() as u64).collect();
        assert_eq!(delays, [0, 0, 0, 0, 0, 100, 200, 400, 800, 1600, 3000, 3000]);
        assert_eq!(throttle.failed(peer(2), start), Duration::ZERO, "others are not concerned");
        assert_eq!(throttle.failed(peer(1), start + 3 * HALF_LIFE), Duration::ZERO);
    }

    #[test]
    fn too_many_at_once_are_not_admitted() {
        let throttle = Throttle::default();
        let now = Instant::now();
        for _ in 0..FREE + HELD {
            assert!(throttle.admits(peer(1)));
            throttle.failed(peer(1), now);
        }
        assert!(!throttle.admits(peer(1)));
        assert!(throttle.admits(peer(2)));
        throttle.released(peer(1));
        assert!(throttle.admits(peer(1)));
    }

    #[test]
    fn the_table_is_bounded() {
        let throttle = Throttle::default();
        let now = Instant::now();
        for n in 0..ADDRESSES as u32 + 500 {
            throttle.failed(peer(n), now + Duration::from_millis(n.into()));
        }
        assert!(throttle.entries.lock().len() <= ADDRESSES);
    }
}
