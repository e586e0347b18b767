//! Random streams, checkpoints, restarts, torn tails.

use super::streams::*;

const SEEDS: u64 = 16;
const STEPS: usize = 400;

fn run(seed: u64, steps: usize) -> World {
    let mut world = World::new(seed);
    for step in 0..steps {
        world.step();
        if step % 90 == 60 {
            world.checkpoint();
        }
        if step % 70 == 50 {
            world.restart();
        }
    }
    world
}

#[test]
fn what_was_logged_is_there_after_every_restart() {
    let mut seen = [0; 4];
    for seed in 0..SEEDS {
        let mut world = run(seed, STEPS);
        world.restart();
        for (sum, n) in seen.iter_mut().zip(world.seen) {
            *sum += n;
        }
    }
    assert!(seen.iter().all(|n| *n > SEEDS / 2), "copies, cuts, checkpoints, called stable late: {seen:?}");
}

/// What came after the last sync is not there, whatever of it has reached the disk.
#[test]
fn a_torn_tail_is_nothing() {
    for seed in 0..SEEDS / 2 {
        let steps = 61 + (seed as usize * 7) % 200;
        let mut expected = run(seed, steps);
        expected.log.flush().unwrap();
        let mut torn = run(seed, steps);
        torn.log.flush().unwrap();
        let end = torn.log.durable_lsn().0;
        for _ in 0..20 {
            torn.propose(0);
            torn.propose(1);
        }
        torn.log.flush().unwrap();
        let length = torn.log.end_lsn().0 - end;
        let file = torn.disk.open("redo/0000.redo", false).unwrap();
        let hole = vec![0; length as usize / 2];
        file.write_all_at(&hole, end + length / 2).unwrap();
        let mut parts = reopen(&torn.disk, &TABLES).unwrap();
        expected.check(&mut parts, &TABLES);
    }
}

#[test]
fn rows_of_dropped_tables_are_passed_over() {
    for seed in 0..10 {
        let mut world = run(seed, 100);
        world.log.flush().unwrap();
        let mut parts = reopen(&world.disk, &TABLES[..1]).unwrap();
        assert!(parts.passed_over.iter().eq(&TABLES[1..]));
        world.check(&mut parts, &TABLES[..1]);
    }
}
