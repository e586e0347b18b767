use super::*;
use crate::check::{exhaust, hunt};
use std::collections::BTreeSet;

#[test]
fn every_state_is_safe() {
    let mut never: Option<BTreeSet<&str>> = None;
    for (first, size) in sizes(false) {
        let seen = exhaust(BucketMove { first, size, mutation: None }, 1);
        seen.assert_safe();
        let missed: BTreeSet<_> = seen.never.into_iter().collect();
        never = Some(never.map_or(missed.clone(), |before| &before & &missed));
    }
    assert_eq!(never, Some(BTreeSet::new()), "seen at none of the sizes");
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use First::*;
    use Mutation::*;
    let size = Size { crashes: 0, kills: 0, second_at_target: true };
    for (mutation, property, first, size) in [
        (SealedWhileOpen, KEPT, Writes, size),
        (SealedBeforeDecided, KEPT, Prepares, size),
        (SealNotStable, NEWEST, Writes, size),
        (CopyNotWhole, KEPT, Writes, size),
        (CopiesWhatIsNotStable, TRUE, Writes, Size { crashes: 1, ..size }),
        (MaxReadNotHandedOn, REPEATABLE, Writes, size),
        (FinishedNotHandedOn, ORDERED, Prepares, size),
        (OlderSnapshotsAtTarget, WHOLE, Writes, size),
        (SnapshotsPastTheSeal, REPEATABLE, Writes, size),
        (SourceReadsOn, NEWEST, Writes, size),
        (SealAcknowledgedBeforeAdopted, NEWEST, Writes, size),
    ] {
        let seen = hunt(BucketMove { first, size, mutation: Some(mutation) }, property);
        assert!(!seen.trace(property).is_empty(), "{mutation:?}");
    }
}
