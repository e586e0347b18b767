//! Damaged rows: the walk finds every flipped bit, whatever is written meanwhile; and writing over a damaged row does
//! not hide that it was damaged. That nothing is found where nothing is damaged, and that replicas have equal digests,
//! random histories show ([`super::model`], [`super::replica`]).

use super::support::*;
use crate::partition::{Stop, TableDigest};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rauk_types::{TableId, TableSchema};
use std::sync::Arc;

const IDS: i64 = 40;

fn filled(rng: &mut SmallRng) -> World {
    let mut w = World::new(schema(false, true));
    write(&mut w, rng, 60);
    // One row at least.
    let t = w.begin();
    w.insert(&t, &r(IDS, 1, "")).unwrap();
    w.commit(t);
    w
}

/// Random commits, and slices of the walk between them.
fn write(w: &mut World, rng: &mut SmallRng, commits: usize) {
    for _ in 0..commits {
        let t = w.begin();
        for _ in 0..rng.random_range(1..4) {
            let row = r(rng.random_range(0..IDS), rng.random_range(0..9), ["", "a", "bc"][rng.random_range(0..3)]);
            match rng.random_range(0..3) {
                0 => drop(w.insert(&t, &row)),
                1 => drop(w.update(&t, &row)),
                _ => drop(w.delete(&t, row.0)),
            }
        }
        if rng.random_ratio(1, 5) {
            w.abort(t);
        } else {
            w.commit(t);
        }
        if rng.random_ratio(1, 3) {
            w.collect_all();
        }
    }
}

/// Walks to the end of a round; what it has found.
fn rest_of_round(w: &mut World, rows: usize) -> Option<TableId> {
    let mut damaged = None;
    loop {
        let scrubbed = w.p.scrub(rows);
        damaged = damaged.or(scrubbed.damaged);
        if scrubbed.is_round {
            return damaged;
        }
    }
}

#[test]
fn a_flipped_bit_is_found_within_two_rounds_whatever_is_written_meanwhile() {
    for seed in 0..400 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut w = filled(&mut rng);
        for _ in 0..rng.random_range(0..20) {
            w.scrub(rng.random_range(1..5));
            write(&mut w, &mut rng, 1);
        }
        let before = w.p.digest();
        // Of `v`, at the end of the row: reading it stays possible.
        let id = rng.random_range(0..1000);
        assert!(w.p.flip_bit(TABLE, id, 9 * 8 + rng.random_range(0..8), false));
        assert_eq!(w.p.digest(), before, "the digest is of what was written");
        let (mut damaged, mut rounds) = (None, 0);
        while rounds < 2 {
            let scrubbed = w.p.scrub(rng.random_range(1..5));
            damaged = damaged.or(scrubbed.damaged);
            rounds += u32::from(scrubbed.is_round);
            if rng.random_ratio(1, 2) {
                write(&mut w, &mut rng, 1);
            }
        }
        assert_eq!(damaged, Some(TABLE), "seed {seed}");
    }
}

#[test]
fn damage_does_not_heal_when_the_row_is_written_again_or_deleted() {
    let mut rng = SmallRng::seed_from_u64(1);
    for delete in [false, true] {
        let mut w = World::new(schema(false, true));
        let t = w.begin();
        (0..3).for_each(|id| w.insert(&t, &r(id, 1, "")).unwrap());
        w.commit(t);
        let (mut intact, row) = (World::new(schema(false, true)), r(1, 7, "new"));
        let t = intact.begin();
        [r(0, 1, ""), row.clone(), r(2, 1, "")].iter().for_each(|row| intact.insert(&t, row).unwrap());
        intact.commit(t);
        assert!(w.p.flip_bit(TABLE, 1, 9 * 8 + rng.random_range(0..8), false));
        let t = w.begin();
        if delete {
            assert_eq!(w.delete(&t, 1), Ok(true));
        } else {
            assert_eq!(w.update(&t, &row), Ok(true));
        }
        w.commit(t);
        w.collect_all();
        assert_eq!(rest_of_round(&mut w, 2), Some(TABLE));
        assert_eq!(rest_of_round(&mut w, 100), Some(TABLE), "and in each round");
        assert!(w.p.digests_with(&[], 0) != intact.p.digests_with(&[], 0), "and by comparison with another replica");
    }
}

#[test]
fn the_walk_goes_over_all_tables_and_over_what_becomes_of_them() {
    let mut w = World::new(schema(false, true));
    let other = |id: u32| Arc::new(TableSchema { id: TableId(id), ..(*schema(false, true)).clone() });
    w.p.create_table(other(3));
    w.p.create_table(other(9));
    let t = w.begin();
    (0..10).for_each(|id| w.insert(&t, &r(id, 1, "a")).unwrap());
    w.commit(t);
    let rows = |w: &mut World| {
        let mut rows = 0;
        loop {
            let scrubbed = w.p.scrub(4);
            rows += scrubbed.rows;
            if scrubbed.is_round {
                return rows;
            }
        }
    };
    assert_eq!((rows(&mut w), rows(&mut w)), (10, 10));
    w.scrub(4);
    let digests = w.p.digests_with(&[], 0).unwrap();
    let digests: Vec<_> = digests.iter().map(|d| (d.table, d.digest)).collect();
    assert_eq!(digests, [(TableId(3), 0), (TABLE, w.p.digest()), (TableId(9), 0)]);
    w.p.drop_table(TABLE);
    assert_eq!((rows(&mut w), w.p.digest()), (0, 0));
    assert_eq!(w.p.digests_with(&[], 0).map(|digests| digests.len()), Some(2));
    w.p.create_table(schema(false, true));
    assert_eq!(rows(&mut w), 0);
    w.p.clear();
    assert_eq!((rows(&mut w), w.p.digest()), (0, 0));
}

#[test]
fn what_is_about_to_commit_counts_up_to_a_number_of_changes() {
    let mut w = World::new(schema(false, true));
    w.p.set_end_slice(2);
    let t = w.begin();
    (0..5).for_each(|id| w.insert(&t, &r(id, 1, "a")).unwrap());
    let id = t.r.id;
    assert_eq!(w.p.digests_with(&[id], 4), None, "too much");
    assert_eq!(w.p.digests_with(&[], 0), Some(vec![TableDigest { table: TABLE, digest: 0 }]));
    let expected = w.p.digests_with(&[id], 5).unwrap();
    w.commit(t);
    assert!(w.p.has_ends());
    assert_eq!(w.p.digests_with(&[], 5), None, "under way");
    w.p.finish_ends();
    assert_eq!(w.p.digests_with(&[], 0), Some(expected));
}

#[test]
fn a_read_only_partition_refuses_new_writes_and_takes_in_what_is_decided() {
    let mut w = World::new(schema(false, true));
    let t = w.begin();
    (0..3).for_each(|id| w.insert(&t, &r(id, 1, "a")).unwrap());
    w.p.set_read_only(true);
    assert_eq!(w.insert(&t, &r(7, 1, "")), Err(Stop::ReadOnly));
    assert_eq!(w.insert_many(&t, &[r(7, 1, "")]), [false]);
    assert_eq!(w.update(&t, &r(1, 2, "")), Err(Stop::ReadOnly));
    assert_eq!(w.delete(&t, 1), Err(Stop::ReadOnly));
    w.commit(t);
    assert_eq!(w.rows(), 3);
    w.p.set_read_only(false);
    let t = w.begin();
    assert_eq!(w.delete(&t, 1), Ok(true));
    w.commit(t);
}

#[test]
fn a_row_that_was_written_wrongly_is_found_by_comparison_alone() {
    let mut replicas = [0, 1].map(|_| World::new(schema(false, true)));
    for w in &mut replicas {
        let t = w.begin();
        (0..3).for_each(|id| w.insert(&t, &r(id, 1, "a")).unwrap());
        w.commit(t);
    }
    let [one, other] = &mut replicas;
    assert_eq!(one.p.digests_with(&[], 0), other.p.digests_with(&[], 0));
    assert!(one.p.flip_bit(TABLE, 2, 75, true));
    assert_eq!(rest_of_round(one, 2), None);
    assert_ne!(one.p.digests_with(&[], 0), other.p.digests_with(&[], 0));
}
