use super::*;
use crate::check::{exhaust, hunt, shortest};
use std::collections::BTreeSet;

const TWO: Size = Size { nodes: 2, writes: 1, commands: 2, struck: false, copies: 0, crashes: 0, goes_back: false };

#[test]
fn every_state_is_safe() {
    let mut never: Option<BTreeSet<&str>> = None;
    for size in sizes(false) {
        let seen = exhaust(FollowerReads { size, mutation: None }, 1);
        seen.assert_safe();
        let missed: BTreeSet<_> = seen.never.into_iter().collect();
        never = Some(never.map_or(missed.clone(), |before| &before & &missed));
    }
    assert_eq!(never, Some(BTreeSet::new()), "seen at none of the sizes");
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use Mutation::*;
    let size = |nodes, commands, copies| Size { nodes, commands, copies, ..TWO };
    let struck = |nodes, writes, commands| Size { nodes, writes, commands, struck: true, ..TWO };
    let goes_back = Size { commands: 4, goes_back: true, ..TWO };
    for (mutation, size) in [
        (NotWaited, size(2, 2, 0)),
        (StruckForgotten, struck(3, 1, 4)),
        (WaitsOnceForEach, struck(2, 2, 4)),
        (OverBeforeLeaseEnds, size(2, 2, 0)),
        (SurvivorsForgotten, goes_back),
        (AnyAcknowledgementCounts, size(2, 2, 0)),
        (NamedBeforeStopped, size(2, 2, 0)),
        (StableBeforeWait, size(3, 2, 0)),
        (PendingPassedOver, size(2, 1, 0)),
        (PendingAtAnswerOnly, size(2, 1, 0)),
        (UnstableShown, size(2, 1, 0)),
        (LeaseNotChecked, size(2, 2, 0)),
        (LeaseWithoutEntries, size(2, 2, 0)),
        (InSyncNotChecked, size(2, 2, 0)),
        (InSyncAtLookOnly, size(2, 2, 0)),
        (InSyncAtAnswerOnly, size(2, 3, 0)),
        (WholeNotChecked, size(2, 2, 1)),
        (WholeAtAnswerOnly, size(2, 2, 1)),
        (CheckedBeforeLook, size(2, 2, 0)),
    ] {
        let seen = hunt(FollowerReads { size, mutation: Some(mutation) }, NEWEST);
        assert!(!seen.trace(NEWEST).is_empty(), "{mutation:?}");
    }
}

fn shortest_trace(mutation: Mutation, size: Size) -> Vec<String> {
    let seen = shortest(FollowerReads { size, mutation: Some(mutation) }, NEWEST);
    seen.trace(NEWEST).to_vec()
}

fn place(steps: &[String], step: &str) -> usize {
    steps.iter().position(|other| *other == step).unwrap_or_else(|| panic!("{step} in {steps:?}"))
}

/// *The read that slept through a strike*: everything is as it should be at the answer, and was not at the look.
#[test]
fn a_read_sleeps_through_a_strike() {
    let size = Size { commands: 3, struck: true, ..TWO };
    let steps = shortest_trace(Mutation::InSyncAtAnswerOnly, size);
    let at = |step: &str| place(&steps, step);
    let (look, answer) = (at("Look { node: 1 }"), at("Answer { node: 1 }"));
    assert!(at("Serve { node: 0 }") < look && look < at("CommitJoin") && at("CommitJoin") < answer, "{steps:?}");
}

/// *The read within a copy*: the follower has heard of nothing between the look and the answer, nor before.
#[test]
fn a_read_falls_into_a_copy() {
    let size = Size { copies: 1, ..TWO };
    let steps = shortest_trace(Mutation::WholeAtAnswerOnly, size);
    let at = |step: &str| place(&steps, step);
    let (look, answer) = (at("Look { node: 1 }"), at("Answer { node: 1 }"));
    let (begun, whole) = (at("BeginCopy { from: 0, to: 1 }"), at("EndCopy { from: 0, to: 1 }"));
    assert!(begun < look && look < whole && whole < answer, "{steps:?}");
    assert!(!steps.contains(&"Learn { node: 1 }".to_owned()), "{steps:?}");
}
