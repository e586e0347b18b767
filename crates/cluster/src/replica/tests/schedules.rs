//! Random schedules: a time with faults, then a time without, at the end of which all placed replicas are in-sync and equal.

use super::super::*;
use super::world::{Counts, Faults, World};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

fn limits(rng: &mut StdRng, durable: bool) -> Limits {
    Limits {
        kept_bytes: rng.random_range(300..3000),
        append_bytes: rng.random_range(150..1000),
        flight_bytes: rng.random_range(300..3000),
        durable,
        resend: Duration::from_millis(20),
        heartbeat: Duration::from_millis(5),
        strike_after: Duration::from_millis(rng.random_range(60..200)),
    }
}

fn run(seed: u64, steps: usize) -> Counts {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
    let durable = !rng.random_ratio(1, 6);
    let nodes = rng.random_range(3..=4u16);
    let placed = rng.random_range(2..=nodes.min(3));
    let faults = Faults { lost: rng.random_range(0..12), doubled: rng.random_range(0..12) };
    let limits = limits(&mut rng, durable);
    let mut world = World::new(seed, nodes, placed, limits, faults);
    // What is not on disk is not promised without `durable`: nobody crashes then.
    let wild = if rng.random_ratio(1, 3) { 5 } else { 1 };
    let crashes = if durable { rng.random_range(0..8) * wild } else { 0 };
    let shakes = rng.random_range(0..8) * wild;
    let slow = rng.random_ratio(1, 3);
    for number in 0..steps {
        step(&mut world, crashes, shakes, slow);
        if number % 16 == 0 {
            world.check_disks();
        }
    }
    heal(&mut world, seed);
    world.counts
}

/// One thing happens. `crashes`, `shakes` (view changes, strikes, moves, cut links): how often, in a thousand.
fn step(world: &mut World, crashes: u32, shakes: u32, slow: bool) {
    let at = world.rng.random_range(0..world.nodes.len());
    let id = world.nodes[at].id;
    if world.rng.random_ratio(crashes, 1000) {
        if world.nodes[at].process.is_some() {
            world.crash(at);
        } else {
            world.start(at);
        }
    }
    if world.rng.random_ratio(crashes, 3000) {
        (0..world.nodes.len()).for_each(|at| world.crash(at));
    }
    if world.rng.random_ratio(shakes, 1000) {
        match world.rng.random_range(0..6) {
            0 => world.group_down(id),
            1 => {
                let count = world.rng.random_range(2..=world.nodes.len().min(3));
                world.group_place(count);
            }
            2 => {
                let other = world.nodes[world.rng.random_range(0..world.nodes.len())].id;
                world.cut_links.insert((id, other));
            }
            3 => world.cut_links.clear(),
            _ => world.group_lead(),
        }
    }
    if let Some(primary) = world.group.primary.filter(|_| world.rng.random_ratio(shakes, 4000)) {
        // The rows of one of the others are found to be damaged.
        let members = &world.group.in_sync;
        let member = members[world.rng.random_range(0..members.len())];
        let at = usize::from(primary.node.0) - 1;
        world.act(at, |replica, now, out| _ = replica.exclude(now, member, out));
    }
    if world.rng.random_ratio(shakes, 8000) {
        world.stop(at);
    }
    if world.is_stopped(at) && world.rng.random_ratio(1, 10) {
        world.help_stopped(at);
    }
    // Who is down and known to be, or was taken for dead, comes back as another process after a while; a primary that is gone is replaced.
    let lives = world.nodes[at].process.is_some();
    if !lives && world.rng.random_ratio(1, 40) {
        world.group_down(id);
    }
    if world.rng.random_ratio(1, 80) {
        if !lives {
            world.start(at);
        } else if !world.group.up.contains_key(&id) {
            world.crash(at);
            world.start(at);
        }
    }
    if world.group.primary.is_none() && world.rng.random_ratio(1, 20) {
        world.group_lead();
    }
    if world.rng.random_ratio(1, 50) {
        world.deliver_late();
    }
    match world.rng.random_range(0..100) {
        0..=39 => {
            if !world.wires.is_empty() {
                // Mostly the older ones, now and then any.
                let most = if world.rng.random_ratio(1, 10) { world.wires.len() } else { world.wires.len().min(4) };
                let which = world.rng.random_range(0..most);
                world.deliver(which);
            }
        }
        40..=54 => world.propose(at),
        55..=72 => {
            if !slow || world.rng.random_ratio(1, 4) {
                let all = world.rng.random_ratio(1, 2);
                world.sync(at, all);
            }
        }
        73..=80 => {
            world.now += Duration::from_millis(world.rng.random_range(1..8));
            world.act(at, |replica, now, out| replica.on_tick(now, out));
        }
        81..=87 => world.hear(at),
        88..=91 => world.group_request(),
        92..=97 => world.read(at),
        _ => {
            if world.rng.random_ratio(1, 3) {
                world.nodes[at].checkpoint();
            }
        }
    }
}

/// No more faults: everything gets well within a bounded time, with work going on in the first half.
fn heal(world: &mut World, seed: u64) {
    world.faults = Faults::default();
    world.cut_links.clear();
    for at in 0..world.nodes.len() {
        let known = world.group.up.get(&world.nodes[at].id).copied();
        if world.nodes[at].process.as_ref().is_none_or(|process| Some(process.me.process) != known) {
            world.crash(at);
            world.start(at);
        }
    }
    const ROUNDS: usize = 1200;
    for round in 0..ROUNDS {
        if world.group.primary.is_none_or(|primary| !world.group.is_up(primary)) {
            world.group_lead();
        }
        world.now += Duration::from_millis(4);
        for at in 0..world.nodes.len() {
            world.hear(at);
            if round < ROUNDS / 2 {
                world.propose(at);
            }
            world.help_stopped(at);
            if round > ROUNDS / 8 && world.group.primary.is_some_and(|primary| primary.node == world.nodes[at].id) {
                world.restart_stopped(at);
            }
            world.act(at, |replica, now, out| replica.on_tick(now, out));
            if round % 2 == 0 {
                world.sync(at, true);
            }
            world.read(at);
        }
        for _ in 0..world.wires.len() {
            world.deliver(0);
        }
        world.group_request();
        if round > ROUNDS / 2 && world.unwell().is_empty() {
            return;
        }
    }
    panic!("seed {seed} does not get well: {}\n{:?}", world.unwell(), world.group.in_sync);
}

fn run_many(seeds: std::ops::Range<u64>, steps: usize) -> Counts {
    let mut sum = Counts::default();
    for seed in seeds {
        let counts = match std::panic::catch_unwind(|| run(seed, steps)) {
            Ok(counts) => counts,
            Err(panic) => {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic)
            }
        };
        sum.stable += counts.stable;
        sum.views += counts.views;
        sum.joins += counts.joins;
        sum.strikes += counts.strikes;
        sum.copies += counts.copies;
        sum.resets += counts.resets;
        sum.cuts += counts.cuts;
        sum.crashes += counts.crashes;
        sum.discards += counts.discards;
        sum.stops += counts.stops;
        sum.begun_again += counts.begun_again;
    }
    sum
}

/// `RAUK_SEEDS=from..to` runs others.
#[test]
fn random_schedules() {
    let seeds = std::env::var("RAUK_SEEDS").ok().map(|range| {
        let (from, to) = range.split_once("..").expect("RAUK_SEEDS=from..to");
        from.parse().unwrap()..to.parse().unwrap()
    });
    let own = seeds.is_some();
    let counts = run_many(seeds.unwrap_or(0..300), 2500);
    eprintln!("{counts:?}");
    if !own {
        assert!(counts.views > 1000 && counts.joins > 400 && counts.strikes > 5, "{counts:?}");
        assert!(counts.discards > 10 && counts.stops > 40 && counts.begun_again > 20, "{counts:?}");
        assert!(counts.copies > 100 && counts.resets > counts.copies && counts.cuts > 80, "{counts:?}");
    }
}
