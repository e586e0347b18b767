//! A process's side of its lease: the right to answer.
//!
//! The process asks every [`super::HEARTBEAT`] and counts from *sending* the request, 10 % less than the leader, which counts from its arrival (rule 15). So by any two
//! clocks whose speeds differ by no more than that, the holder's lease ends before the leader's. A grant counts only once its holder has
//! applied everything that was committed before it (rule 16): a primary that was relieved cannot go on with a lease that was granted afterwards.
//!
//! Several grants are remembered: one that came with news not applied yet does not end the one before, which counts by itself.
//!
//! A refused request means that the control plane knows this process as ended: it holds nothing from then on, whatever
//! grants are still on the way. The node registers a new process, which begins with a new [`Lease`].

use std::time::Duration;

use super::HOLDER_LEASE;

/// Grants remembered: more than arrive within one lease.
const GRANTS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    until: Duration,
    index: u64,
}

/// A process's side of its lease. Made new with each process that is registered.
#[derive(Debug, Default)]
pub struct Lease {
    /// By end, the latest last.
    grants: Vec<Grant>,
    refused: bool,
}

impl Lease {
    /// A request was granted. `sent`: when it was sent, by this process's clock; `index`: the last command that was committed before the grant.
    pub fn on_grant(&mut self, sent: Duration, index: u64) {
        if self.refused {
            return;
        }
        let grant = Grant { until: sent.saturating_add(HOLDER_LEASE), index };
        // One that ends no later and asks for no less than another is of no use.
        if self.grants.iter().any(|g| g.until >= grant.until && g.index <= grant.index) {
            return;
        }
        self.grants.retain(|g| g.until > grant.until || g.index < grant.index);
        let place = self.grants.partition_point(|g| g.until <= grant.until);
        self.grants.insert(place, grant);
        if self.grants.len() > GRANTS {
            self.grants.remove(0);
        }
    }

    /// A request was refused: the process is not its node's newest any more, or down. It holds nothing from now on, for ever.
    pub fn on_refused(&mut self) {
        self.refused = true;
        self.grants.clear();
    }

    /// The process must register again before it can do anything.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether the lease holds: looked at after the work and before the answer (rule 15), with everything applied that was committed before the grant (rule 16).
    pub fn holds(&self, now: Duration, applied: u64) -> bool {
        self.grants.iter().any(|g| now < g.until && g.index <= applied)
    }

    /// Until when it holds for a process that has applied so much; zero: not at all.
    pub fn end(&self, applied: u64) -> Duration {
        let known = self.grants.iter().filter(|g| g.index <= applied);
        known.map(|g| g.until).max().unwrap_or(Duration::ZERO)
    }

    /// It will hold no longer than this, whatever comes, unless another grant does. Zero: not at all.
    pub fn until(&self) -> Duration {
        self.grants.last().map_or(Duration::ZERO, |g| g.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn it_counts_from_sending() {
        let mut lease = Lease::default();
        assert!(!lease.holds(ms(0), 100));
        assert_eq!(lease.until(), ms(0));
        lease.on_grant(ms(1000), 5);
        assert!(lease.holds(ms(1269), 5));
        assert!(!lease.holds(ms(1270), 5));
        assert_eq!(lease.until(), ms(1270));
    }

    #[test]
    fn it_counts_only_with_everything_applied_that_came_before() {
        let mut lease = Lease::default();
        lease.on_grant(ms(1000), 5);
        lease.on_grant(ms(1050), 9);
        assert!(!lease.holds(ms(1100), 4));
        assert!(lease.holds(ms(1100), 5));
        // The older grant counts by itself, and no longer than it does.
        assert!(!lease.holds(ms(1275), 8));
        assert!(lease.holds(ms(1275), 9));
    }

    #[test]
    fn late_grants_shorten_nothing() {
        let mut lease = Lease::default();
        lease.on_grant(ms(1050), 5);
        lease.on_grant(ms(1000), 5);
        lease.on_grant(ms(1000), 7);
        assert_eq!(lease.until(), ms(1320));
        assert!(lease.holds(ms(1319), 5));
        assert_eq!(lease.grants.len(), 1);
    }

    #[test]
    fn no_grant_helps_after_a_refusal() {
        let mut lease = Lease::default();
        lease.on_grant(ms(1000), 5);
        lease.on_refused();
        assert!(!lease.holds(ms(1001), 5));
        lease.on_grant(ms(1010), 5);
        assert!(!lease.holds(ms(1020), 5));
        assert!(lease.is_refused());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut lease = Lease::default();
        for i in 0..1000 {
            lease.on_grant(ms(i), i);
        }
        assert!(lease.grants.len() <= GRANTS);
        assert!(lease.holds(ms(1200), 999));
    }
}
