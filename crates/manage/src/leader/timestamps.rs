//! The timestamp service: numbers that only grow, over all leaders.
//!
//! A leader gives out numbers below a bound that the control plane has committed, and raises the bound ahead of need. A
//! new term begins at the bound that stood when its [`GroupCommand::Term`](crate::group::GroupCommand::Term) was
//! applied: its predecessor, as long as it has not heard of that command, knows no higher bound, and once it has, it
//! draws no more. So whatever the new leader draws is above everything that was ever drawn, without any clock.
//!
//! A commit's time is at most one above the last number drawn (rule 10), hence never above the bound: the first number of a new term is a
//! snapshot that sees every commit acknowledged before.

use crate::group::Group;
use rauk_types::Timestamp;

/// How far the bound is raised at once.
pub(super) const RAISE: u64 = 1_000_000;
/// It is raised when so few are left.
const LOW: u64 = RAISE / 2;

#[derive(Debug, Default)]
pub(super) struct Timestamps {
    /// The next to be drawn; unknown before the term's command is applied.
    next: Option<u64>,
}

impl Timestamps {
    fn next(&mut self, group: &Group) -> u64 {
        // Zero is before every commit.
        *self.next.get_or_insert(group.timestamp_bound.max(1))
    }

    /// The bound to propose, if it is time. The caller has seen to it that the term has begun.
    pub(super) fn wanted(&mut self, group: &Group) -> Option<u64> {
        let next = self.next(group);
        let left = group.timestamp_bound.saturating_sub(next);
        (left < LOW).then(|| group.timestamp_bound.max(next).saturating_add(RAISE))
    }

    /// The highest that may have been given out: what is drawn from now on is above it.
    pub(super) fn drawn(&self) -> Timestamp {
        Timestamp(self.next.map_or(0, |next| next - 1))
    }

    /// As [`super::Leader::draw_timestamp`], once the term has begun.
    pub(super) fn draw(&mut self, group: &Group) -> Option<Timestamp> {
        let time = self.next(group);
        if time >= group.timestamp_bound {
            return None;
        }
        self.next = Some(time + 1);
        Some(Timestamp(time))
    }
}
