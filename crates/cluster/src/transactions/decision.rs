//! The rule by which a commit over several groups is decided: the same for its coordinator and for whoever takes over.
//!
//! All prepared: committed, at the largest of the least times. One refused: aborted. One knows the outcome: that. The rule gives everybody the same
//! outcome, because a stable prepare and a stable refusal of one participant exclude each other for ever (rules 1, 3), with one exception that does
//! no harm: a participant that had prepared, has heard that another refused, and forgot the transaction since the coordinator is dead, refuses when it
//! is asked again; the outcome is an abort all the same. So a refusal always outweighs an earlier "prepared" of the same participant.

use super::record::Outcome;
use super::safeguards::{Safeguard, off};
use super::table::Vote;
use rauk_types::{GroupId, Timestamp};

/// A commit over several groups being decided, by its coordinator or by who takes over.
#[derive(Clone, Debug)]
pub struct Decision {
    /// By participant: the least time that it has prepared for.
    votes: Vec<(GroupId, Option<Timestamp>)>,
    outcome: Option<Outcome>,
}

impl Decision {
    pub fn new(participants: &[GroupId]) -> Decision {
        assert!(!participants.is_empty(), "a transaction without participants needs no decision");
        Decision { votes: participants.iter().map(|group| (*group, None)).collect(), outcome: None }
    }

    /// A participant's vote; the outcome when it is decided now. Votes may come twice and late, and from who is none of the participants (passed over).
    /// [`Vote::Forgotten`] decides nothing: whoever is still in doubt then learns the outcome from its own group.
    ///
    /// # Panics
    /// Two known outcomes that differ, or one that a participant's least time excludes: the protocol is broken.
    pub fn on_vote(&mut self, from: GroupId, vote: Vote) -> Option<Outcome> {
        let slot = self.votes.iter_mut().find(|(group, _)| *group == from)?;
        if let Some(known) = self.outcome {
            if let Vote::Decided(outcome) = vote {
                assert_eq!(known, outcome, "participant {} knows another outcome", from.0);
            }
            return None;
        }
        self.outcome = match vote {
            Vote::Prepared(least) => {
                assert!(slot.1.is_none_or(|known| known == least), "participant {} has prepared for two times", from.0);
                slot.1 = Some(least);
                self.commit_time().map(Outcome::Committed)
            }
            Vote::Refused => Some(Outcome::Aborted),
            Vote::Decided(outcome) => {
                if let Outcome::Committed(time) = outcome {
                    let least = self.votes.iter().filter_map(|(_, least)| *least).max();
                    assert!(
                        least.is_none_or(|least| least <= time) || off(Safeguard::LargestTime),
                        "committed before it could be"
                    );
                }
                Some(outcome)
            }
            Vote::Forgotten => None,
        };
        self.outcome
    }

    /// Participants that have not voted.
    pub fn missing(&self) -> Vec<GroupId> {
        self.votes.iter().filter(|(_, least)| least.is_none()).map(|(group, _)| *group).collect()
    }

    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    fn commit_time(&self) -> Option<Timestamp> {
        let times: Option<Vec<Timestamp>> = self.votes.iter().map(|(_, least)| *least).collect();
        if off(Safeguard::LargestTime) { times?.first().copied() } else { times?.into_iter().max() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: GroupId = GroupId(1);
    const B: GroupId = GroupId(2);

    #[test]
    fn all_prepared_commits_at_the_largest_time() {
        let mut decision = Decision::new(&[A, B]);
        assert_eq!(decision.on_vote(B, Vote::Prepared(Timestamp(9))), None);
        assert_eq!(decision.on_vote(B, Vote::Prepared(Timestamp(9))), None, "a doubled vote counts once");
        assert_eq!(decision.on_vote(GroupId(7), Vote::Refused), None, "not a participant");
        assert_eq!(decision.missing(), [A]);
        let outcome = Outcome::Committed(Timestamp(9));
        assert_eq!(decision.on_vote(A, Vote::Prepared(Timestamp(4))), Some(outcome));
        assert_eq!(decision.on_vote(A, Vote::Decided(outcome)), None, "it was decided before");
        assert_eq!(decision.outcome(), Some(outcome));
    }

    #[test]
    fn one_refusal_aborts_whatever_was_said_before() {
        let mut decision = Decision::new(&[A, B]);
        assert_eq!(decision.on_vote(A, Vote::Prepared(Timestamp(4))), None);
        assert_eq!(decision.on_vote(A, Vote::Forgotten), None);
        assert_eq!(decision.on_vote(A, Vote::Refused), Some(Outcome::Aborted));
        assert_eq!(decision.on_vote(B, Vote::Prepared(Timestamp(4))), None);
        assert_eq!(decision.outcome(), Some(Outcome::Aborted));
    }

    #[test]
    fn a_known_outcome_is_taken() {
        let mut decision = Decision::new(&[A, B]);
        let outcome = Outcome::Committed(Timestamp(5));
        assert_eq!(decision.on_vote(B, Vote::Decided(outcome)), Some(outcome));
    }

    #[test]
    #[should_panic(expected = "knows another outcome")]
    fn two_outcomes_are_our_mistake() {
        let mut decision = Decision::new(&[A, B]);
        decision.on_vote(B, Vote::Decided(Outcome::Aborted));
        decision.on_vote(A, Vote::Decided(Outcome::Committed(Timestamp(5))));
    }
}
