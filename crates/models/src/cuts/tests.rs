use super::*;
use crate::check::{Stuck, exhaust, hunt, shortest, stuck};
use std::collections::BTreeSet;

fn without(mutation: Mutation, size: Size) -> Cuts {
    Cuts { size, mutation: Some(mutation) }
}

#[test]
fn every_state_is_safe() {
    let mut never: Option<BTreeSet<&str>> = None;
    for size in sizes(false) {
        let seen = exhaust(Cuts { size, mutation: None }, 1);
        seen.assert_safe();
        let missed: BTreeSet<_> = seen.never.into_iter().collect();
        never = Some(never.map_or(missed.clone(), |before| &before & &missed));
    }
    assert_eq!(never, Some(BTreeSet::new()), "seen at none of the sizes");
}

#[test]
fn the_cluster_comes_to_rest_when_faults_stop() {
    for size in sizes(false) {
        assert_eq!(stuck(&Cuts { size, mutation: None }).1, None, "{size:?}");
    }
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use Mutation::*;
    let found = |mutation, property, size| {
        let seen = hunt(without(mutation, size), property);
        assert!(!seen.trace(property).is_empty(), "{mutation:?}");
    };
    let apart = Size { placed: APART, ..ONE };
    let alone = Size { alone: true, ..ONE };
    found(OnPrimaryOnly, KEPT, Size { cuts: 0, ..ONE });
    found(OnPrimaryOnly, WHOLE, Size { cuts: 0, ..ONE });
    found(MaxReadNotRaised, MISSING, apart);
    found(MaxReadNotRaised, WHOLE, apart);
    found(CutBeforeDecided, MISSING, apart);
    found(CutBeforeDecided, KEPT, apart);
    found(CompleteBeforeFlushed, HELD, Size { transactions: 0, ..apart });
    found(SumNotCompared, NEWER, alone);
    found(SumReadAfterDraw, NEWER, Size { reads: 1, ..alone });
    found(HolderByLog, NEWER, alone);
    found(OlderCutNoted, GROWING, Size { transactions: 0, cuts: 2, crashes: 0, ..apart });
    found(ReadUpToEntry, NEWER, apart);
    found(ReadUpToEntry, WHOLE, apart);
    found(CopyTakesCutAway, HELD, Size { transactions: 0, crashes: 2, ..alone });
    found(SurvivorsGoOn, WHOLE, apart);
    found(OutdatedRegistered, SAME, alone);
    found(CheckpointNotCovered, NEWER, Size { checkpoints: 1, ..apart });
    found(CheckpointUnderEarlierDraw, NEWER, Size { checkpoints: 1, ..apart });
    let silent = Size { cuts: 0, crashes: 0, silences: 1, ..apart };
    found(SilenceIsTheEnd, LOSSLESS, silent);
    found(FencedForgets, LOSSLESS, silent);
    found(FencedBeforeFlushed, KEPT, Size { crashes: 1, ..silent });
    found(OldClaim, KEPT, Size { crashes: 1, ..silent });
}

/// Where nobody else holds the cut, the cluster waits for ever for one that has it no more, or does not say so.
#[test]
fn without_a_holder_the_cluster_is_stuck() {
    use Mutation::*;
    let apart = Size { placed: APART, transactions: 0, ..ONE };
    let alone = Size { alone: true, transactions: 0, crashes: 2, ..ONE };
    let silent = Size { placed: APART, cuts: 0, crashes: 0, silences: 1, bound: true, ..ONE };
    for (mutation, size) in [
        (CompleteBeforeFlushed, apart),
        (OutdatedRegistered, apart),
        (CopyTakesCutAway, alone),
        (OlderMemoryKept, silent),
    ] {
        let found = stuck(&without(mutation, size)).1;
        assert!(matches!(found, Some(Stuck::Blocked(_))), "{mutation:?}: {found:?}");
    }
}

/// *The later time before the cut*: one partition has written its cut and prepares above it, the other decides with that time before its own cut.
#[test]
fn a_later_time_stands_before_the_cut() {
    let seen = shortest(without(Mutation::ReadUpToEntry, Size { placed: APART, ..ONE }), NEWER);
    let steps = seen.trace(NEWER);
    let at = |step: String| steps.iter().position(|other| *other == step);
    let decides_first = |partition: usize| {
        at(format!("Outcome {{ partition: {partition} }}")) < at(format!("WriteCut {{ partition: {partition} }}"))
    };
    assert_eq!(steps.len(), 14);
    assert!((0..PARTITIONS).any(decides_first), "{steps:?}");
}
