use super::*;
use crate::check::{exhaust, hunt, stuck};

fn model(start: Start, replicas: [usize; 2], crashes: u8, suspicions: u8) -> CommitTakeover {
    CommitTakeover { size: Size { start, replicas, crashes, suspicions }, mutation: None }
}

#[test]
fn every_state_is_safe() {
    for size in sizes(false) {
        let seen = exhaust(CommitTakeover { size, mutation: None }, 1);
        seen.assert_safe();
        if size.start == Start::Touched {
            assert!(seen.never.is_empty(), "{size:?}: never {:?}", seen.never);
        }
    }
}

#[test]
fn nobody_is_blocked_for_ever_when_faults_stop() {
    for model in
        [model(Start::Touched, [1, 1], 1, 0), model(Start::Touched, [2, 1], 0, 1), model(Start::Orphaned, [2, 1], 1, 1)]
    {
        assert_eq!(stuck(&model).1, None, "{model:?}");
    }
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use Mutation::*;
    use Start::*;
    let found = |mutation, property, model: CommitTakeover| {
        let seen = hunt(CommitTakeover { mutation: Some(mutation), ..model }, property);
        assert!(!seen.trace(property).is_empty(), "{mutation:?}");
    };
    found(NoFence, ATOMIC, model(Touched, [1, 1], 0, 0));
    found(NoFence, FENCE, model(Touched, [1, 1], 0, 0));
    found(FenceOnPrimaryOnly, ATOMIC, model(Touched, [2, 1], 1, 1));
    found(AbortWithoutRefusal, TOLD_ABORTED, model(Touched, [1, 1], 0, 0));
    found(PrimaryOnly, DURABLE, model(Touched, [2, 1], 0, 1));
    found(PrimaryOnly, ACKNOWLEDGED, model(Touched, [2, 1], 0, 1));
    found(ForgottenUnconfirmed, ATOMIC, model(Touched, [1, 1], 1, 0));
    found(CoordinatorNotAsked, TOLD_ABORTED, model(Touched, [1, 1], 1, 0));
    found(ConfirmedBeforeReplicated, ATOMIC, model(Orphaned, [2, 1], 1, 1));
    found(OldPrepareTaken, LOCKED, model(Touched, [1, 1], 0, 0));
    found(OldStreamTaken, ATOMIC, model(Touched, [2, 1], 0, 1));
    found(RefusedBeforeOpened, TOLD_ABORTED, model(Touched, [2, 1], 1, 1));
    found(OwnPrepareNotReplicated, ATOMIC, model(Touched, [2, 1], 0, 1));
    found(NoTombstone, ATOMIC, model(Touched, [1, 1], 0, 0));
    found(TombstoneNotFollowed, ATOMIC, model(Touched, [2, 1], 0, 1));
    found(AsksWithoutLease, ATOMIC, model(Orphaned, [2, 1], 1, 1));
}
