use super::*;
use crate::check::{exhaust, hunt, shortest};

fn model(rule: Rule, second: Second, replicas: [u8; 2], snapshots: usize, crashes: u8) -> LeastTimestamp {
    LeastTimestamp { rule, second, size: Size { replicas, snapshots, crashes, suspicions: 0 }, mutation: None }
}

#[test]
fn every_state_is_safe() {
    for (second, size) in sizes(false) {
        let seen = exhaust(LeastTimestamp { rule: Rule::Confirm, second, size, mutation: None }, 1);
        seen.assert_safe();
    }
}

/// The rule that was replaced, and where it fails: the struck reader, and the inherited prepare.
#[test]
fn refusal_by_replicas_fails() {
    let struck = shortest(model(Rule::Refusal, Second::Later, [2, 1], 1, 1), REPEATABLE);
    assert_eq!(struck.trace(REPEATABLE).len(), 13);
    let fresh = Rule::RefusalAndFreshAfterStrike;
    exhaust(model(fresh, Second::Later, [2, 1], 1, 1), 1).assert_safe();
    assert!(!hunt(model(fresh, Second::Later, [2, 1], 1, 2), REPEATABLE).trace(REPEATABLE).is_empty());
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use Mutation::*;
    use Second::*;
    let found = |mutation, property, second, replicas, snapshots, crashes| {
        let model =
            LeastTimestamp { mutation: Some(mutation), ..model(Rule::Confirm, second, replicas, snapshots, crashes) };
        let seen = hunt(model, property);
        assert!(!seen.trace(property).is_empty(), "{mutation:?}");
    };
    found(NoMaxRead, REPEATABLE, Later, [1, 1], 1, 0);
    found(LookThenRaise, REPEATABLE, Later, [1, 1], 1, 0);
    found(ReplicaOnItsOwn, REPEATABLE, Later, [2, 1], 1, 0);
    found(StreamNotAwaited, WHOLE, Later, [2, 1], 1, 0);
    found(OldMaxReadAfterPromotion, REPEATABLE, Later, [2, 1], 1, 1);
    found(IgnoresFinishedCommits, ORDERED, Later, [1, 1], 1, 0);
    found(IgnoresFinishedCommits, CAUSAL, Later, [1, 1], 1, 0);
    found(IgnoresSession, ORDERED, Dependent, [1, 1], 1, 0);
    found(IgnoresSession, CAUSAL, Dependent, [1, 1], 1, 0);
    found(ReadsBelowPrepared, WHOLE, Later, [1, 1], 1, 0);
    found(WaitsStrictlyBelow, WHOLE, Later, [1, 1], 1, 0);
    found(Prefetched, ACKNOWLEDGED, Later, [1, 1], 2, 0);
    found(LeastChangedAfterPromotion, ONE_TIME, Later, [2, 1], 1, 1);
    // The old rule has its own safeguard.
    let careless = LeastTimestamp { mutation: Some(ReplicaOnItsOwn), ..model(Rule::Refusal, Later, [2, 1], 1, 0) };
    assert!(!hunt(careless, REPEATABLE).trace(REPEATABLE).is_empty());
}
