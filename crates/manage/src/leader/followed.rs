//! Whether silence means anything: a leader without a majority can grant nothing, so it knows nothing of those who ask.
//!
//! A lease is granted only after a majority has followed the leader since it was asked for. While no majority does, all
//! leases of the cluster expire in the eyes of this leader, whoever lives. It must not say so: nobody would be granted
//! anything any more once it has been said ([`super::Leader::on_heartbeat`]), and all processes would have to register
//! again when the majority is back. To say late that a lease has ended is always right.
//!
//! So the leader says of nobody that its lease has ended while the newest round that a majority has followed was asked for
//! more than [`FRESH`] ago, and for as long afterwards as everybody needs to ask again ([`AFTER`]). Where rounds are slow
//! all the time that holds for no longer than [`SLOW`], else it would never mark a node down.

use super::{FRESH, HEARTBEAT, SLOW};
use std::time::Duration;

/// All who live have asked again by then, and have been granted their lease.
const AFTER: Duration = FRESH.saturating_add(HEARTBEAT);

/// A time without a majority.
#[derive(Debug)]
struct Unfollowed {
    /// The newest round that was followed, when it began.
    confirmed: Duration,
    /// The last look that found it so.
    last: Duration,
    /// When a newer round was first found.
    resumed: Option<Duration>,
}

/// Looks at the newest round that a majority has followed.
#[derive(Debug, Default)]
pub(super) struct Followed(Option<Unfollowed>);

impl Followed {
    /// `confirmed`: when the newest round was asked for that a majority has followed.
    pub fn look(&mut self, now: Duration, confirmed: Duration) {
        let is_stale = now >= confirmed.saturating_add(FRESH);
        match &mut self.0 {
            Some(unfollowed) if now < unfollowed.last.saturating_add(AFTER) => {
                if confirmed > unfollowed.confirmed {
                    unfollowed.resumed.get_or_insert(now);
                }
                if is_stale {
                    unfollowed.last = now;
                }
            }
            before if is_stale => *before = Some(Unfollowed { confirmed, last: now, resumed: None }),
            before => *before = None,
        }
    }

    /// Whether the silence of others says nothing yet.
    pub fn waits(&self, now: Duration) -> bool {
        self.0.as_ref().is_some_and(|unfollowed| {
            let is_slow = unfollowed.resumed.is_some_and(|resumed| now >= resumed.saturating_add(SLOW));
            now < unfollowed.last.saturating_add(AFTER) && !is_slow
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Looks every 10 ms; gives when it waits. `confirmed`: by the time of the look.
    fn waits(end: u64, confirmed: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut followed = Followed::default();
        let look = |now: u64| {
            followed.look(ms(now), ms(confirmed(now)));
            followed.waits(ms(now)).then_some(now)
        };
        (0..end).step_by(10).filter_map(look).collect()
    }

    #[test]
    fn it_waits_for_as_long_as_nobody_follows_and_a_little_longer() {
        let gap = |now: u64| if (500..4_000).contains(&now) { 490 } else { now };
        let waited = waits(6_000, gap);
        assert_eq!((waited.first(), waited.last()), (Some(&640), Some(&4_180)));
        assert_eq!(waited.len() as u64, (4_180 - 640) / 10 + 1, "all the time");
        assert_eq!(waits(6_000, |now| now.saturating_sub(100)), [0; 0], "rounds of 100 ms are well");
    }

    #[test]
    fn slow_rounds_do_not_keep_it_for_ever() {
        // Each takes 250 ms.
        let waited = waits(6_000, |now| (now / 250 * 250).saturating_sub(250));
        assert!(waited.last().is_some_and(|last| *last < 1_700), "{waited:?}");
    }
}
