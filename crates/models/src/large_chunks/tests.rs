use super::*;
use crate::check::{exhaust, hunt, stuck};
use std::collections::BTreeSet;

#[test]
fn every_state_is_safe() {
    let mut never: Option<BTreeSet<&str>> = None;
    for size in sizes(false) {
        let seen = exhaust(LargeChunks { size, mutation: None }, 1);
        seen.assert_safe();
        let missed: BTreeSet<_> = seen.never.into_iter().collect();
        never = Some(never.map_or(missed.clone(), |before| &before & &missed));
    }
    assert_eq!(never, Some(BTreeSet::new()), "seen at none of the sizes");
}

#[test]
fn the_log_can_be_released_in_the_end() {
    for size in sizes(false) {
        let (states, found) = stuck(&LargeChunks { size, mutation: None });
        assert_eq!(found, None, "{size:?}, {states} states");
    }
    let size = Size { crashes: 1, removals: 0, kills: 0, savepoint: false, prepares: false };
    let (_, found) = stuck(&LargeChunks { size, mutation: Some(Mutation::ChunksOutliveViews) });
    assert!(found.is_some(), "chunks of an older view keep the log");
}

/// Each safeguard, switched off, breaks what it guards.
#[test]
fn every_mutation_is_found() {
    use Mutation::*;
    let calm = Size { crashes: 0, removals: 0, kills: 0, savepoint: false, prepares: false };
    for (mutation, property, size) in [
        (CountNotChecked, ENTIRE, calm),
        (BackAfterRelease, COUNTED, Size { savepoint: true, ..calm }),
        (ShowsOpenChunks, CLEAN, calm),
        (NamedBeforePending, NEWEST, calm),
        (ReleasedWhileOpen, COUNTED, Size { crashes: 1, ..calm }),
        (ReleasedWhileOpen, KEPT, Size { crashes: 1, ..calm }),
        (ReleasedOnceNamed, KEPT, Size { crashes: 1, prepares: true, ..calm }),
        (JoinsWithoutChunks, COUNTED, Size { removals: 1, ..calm }),
        (JoinsWithoutChunks, KEPT, Size { removals: 1, crashes: 1, ..calm }),
    ] {
        let seen = hunt(LargeChunks { size, mutation: Some(mutation) }, property);
        assert!(seen.broken.iter().any(|(name, _)| *name == property), "{mutation:?}: {property}");
    }
}
