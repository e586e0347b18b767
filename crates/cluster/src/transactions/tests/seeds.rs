//! Runs of the small cluster under many seeds, and with each rule switched off.

use super::cluster::{Count, World};
use super::safeguards::{Safeguard, switch_off};
use std::panic::{AssertUnwindSafe, catch_unwind};

const STEPS: usize = 600;

fn run(seeds: std::ops::Range<u64>) {
    let mut total = Count::default();
    for seed in seeds {
        let mut world = World::new(seed);
        let result = catch_unwind(AssertUnwindSafe(|| world.run(STEPS)));
        assert!(result.is_ok(), "seed {seed}");
        let count = world.count;
        total.committed += count.committed;
        total.aborted += count.aborted;
        total.taken_over += count.taken_over;
        total.cut += count.cut;
        total.fences += count.fences;
        total.unheard += count.unheard;
        total.chunks += count.chunks;
        total.taken_back += count.taken_back;
        total.named += count.named;
    }
    println!("{total:?}");
    let Count { committed, aborted, taken_over, cut, fences, unheard, chunks, taken_back, named } = total;
    let least = [committed, aborted, taken_over, cut, fences, unheard, chunks, taken_back, named].into_iter().min();
    assert!(least > Some(500), "runs in which little happens show little: {total:?}");
}

#[test]
fn all_reach_the_same_outcome_and_come_to_rest() {
    run(0..1_000);
}

#[test]
fn all_reach_the_same_outcome_and_come_to_rest_2() {
    run(1_000..2_000);
}

#[test]
#[ignore = "by hand: SEEDS=100000 cargo test -p rauk-cluster --lib by_hand -- --ignored --nocapture"]
fn more_seeds_by_hand() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    run(2_000..2_000 + seeds.unwrap_or(20_000));
}

#[test]
fn a_seed_gives_the_same_run() {
    let counts = [(); 2].map(|()| {
        let mut world = World::new(5);
        world.run(STEPS);
        format!("{:?}", world.count)
    });
    assert_eq!(counts[0], counts[1]);
}

/// The first seed that finds what the rule guards against.
fn found(safeguard: Safeguard) -> Option<u64> {
    switch_off(Some(safeguard));
    let found = (0..3_000).find(|seed| catch_unwind(|| World::new(*seed).run(STEPS)).is_err());
    switch_off(None);
    found
}

#[test]
fn every_rule_is_needed() {
    let all = [
        Safeguard::Fence,
        Safeguard::PrepareStable,
        Safeguard::AbortOnlyOnRefusal,
        Safeguard::OwnPrepareStable,
        Safeguard::ConfirmedStable,
        Safeguard::ForgetAllConfirmed,
        Safeguard::CoordinatorKnows,
        Safeguard::Tombstone,
        Safeguard::LargestTime,
        Safeguard::OrphansPushed,
        Safeguard::CommitRemembered,
    ];
    let found: Vec<(Safeguard, Option<u64>)> = all.into_iter().map(|safeguard| (safeguard, found(safeguard))).collect();
    println!("{found:?}");
    assert!(found.iter().all(|(_, seed)| seed.is_some()), "not found: {found:?}");
}
