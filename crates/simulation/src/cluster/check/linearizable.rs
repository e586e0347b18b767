//! Promise: *a single row is a linearizable register*: every read and write of it takes effect at one moment between its call and its answer.
//!
//! Every write has a value of its own, so for each value there is one *zone* of time: from the earliest answer of its write and its reads to the latest call of one. If the
//! zone runs forward (earliest answer before latest call), the register certainly held the value during it. A history is linearizable exactly when no read is answered before its write is
//! called, no two forward zones overlap, and no backward zone lies wholly within a forward one (Gibbons and Korach, *Testing shared memories*).
//! A write without an answer may take effect at any later time, or never.
use super::Verdict;
use std::collections::BTreeMap;

/// What a register holds; zero: what it began with.
pub type Held = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Write,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub register: i64,
    pub kind: Kind,
    pub value: Held,
    /// Events in one order over the whole cluster.
    pub called: u64,
    /// `None`: the outcome is unknown. Reads without an answer are not recorded.
    pub answered: Option<u64>,
}

#[derive(Debug)]
struct Zone {
    value: Held,
    earliest_answer: u64,
    latest_call: u64,
}

pub fn check(ops: &[Op]) -> Verdict {
    let mut registers: BTreeMap<i64, Vec<Op>> = BTreeMap::new();
    ops.iter().for_each(|op| registers.entry(op.register).or_default().push(*op));
    for (register, ops) in registers {
        check_register(&ops).map_err(|what| format!("register {register} is not linearizable: {what}"))?;
    }
    Ok(())
}

fn check_register(ops: &[Op]) -> Verdict {
    let mut zones: BTreeMap<Held, Zone> = BTreeMap::new();
    let initial = Zone { value: 0, earliest_answer: 0, latest_call: 0 };
    zones.insert(0, initial);
    let mut called: BTreeMap<Held, u64> = BTreeMap::from([(0, 0)]);
    let was_read = |value: Held| ops.iter().any(|op| op.kind == Kind::Read && op.value == value);
    for op in ops.iter().filter(|op| op.kind == Kind::Write) {
        if op.answered.is_none() && !was_read(op.value) {
            continue;
        }
        let earliest_answer = op.answered.unwrap_or(u64::MAX);
        let zone = Zone { value: op.value, earliest_answer, latest_call: op.called };
        if zones.insert(op.value, zone).is_some() {
            return Err(format!("{} was written twice", op.value));
        }
        called.insert(op.value, op.called);
    }
    for op in ops.iter().filter(|op| op.kind == Kind::Read) {
        let Some(answered) = op.answered else { continue };
        let Some(zone) = zones.get_mut(&op.value) else {
            return Err(format!("{op:?} saw what nobody wrote"));
        };
        if answered < called[&op.value] {
            return Err(format!("{op:?} saw what was written later"));
        }
        zone.earliest_answer = zone.earliest_answer.min(answered);
        zone.latest_call = zone.latest_call.max(op.called);
    }
    let (forward, backward): (Vec<&Zone>, Vec<&Zone>) =
        zones.values().partition(|zone| zone.earliest_answer < zone.latest_call || zone.value == 0);
    let mut forward = forward;
    forward.sort_by_key(|zone| zone.earliest_answer);
    for pair in forward.windows(2) {
        if pair[1].earliest_answer < pair[0].latest_call {
            return Err(format!("it held both {:?} and {:?}", pair[0], pair[1]));
        }
    }
    for zone in backward {
        // It runs from latest_call to earliest_answer.
        let around =
            forward.iter().find(|f| f.earliest_answer < zone.latest_call && zone.earliest_answer < f.latest_call);
        if let Some(around) = around {
            return Err(format!("{zone:?} lies within {around:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    fn op(kind: Kind, value: Held, called: u64, answered: u64) -> Op {
        let answered = (answered > 0).then_some(answered);
        Op { register: 1, kind, value, called, answered }
    }

    use Kind::{Read, Write};

    #[test]
    fn sound_histories_pass() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[op(Read, 0, 1, 2), op(Write, 1, 3, 4), op(Read, 1, 5, 6)]), Ok(()));
        // Concurrent with the write: before or after.
        assert_eq!(check(&[op(Write, 1, 1, 10), op(Read, 0, 2, 3), op(Read, 1, 4, 5)]), Ok(()));
        assert_eq!(check(&[op(Write, 1, 1, 10), op(Write, 2, 2, 9), op(Read, 1, 11, 12)]), Ok(()));
        // Unknown, and took effect late; unknown, and never did.
        assert_eq!(check(&[op(Write, 1, 1, 0), op(Read, 0, 5, 6), op(Read, 1, 7, 8)]), Ok(()));
        assert_eq!(check(&[op(Write, 1, 1, 0), op(Read, 0, 5, 6)]), Ok(()));
    }

    #[test]
    fn bad_histories_are_found() {
        let bad = |ops: &[Op], what: &str| {
            let verdict = check(ops).unwrap_err();
            assert!(verdict.contains(what), "{verdict}");
        };
        // Stale.
        bad(&[op(Write, 1, 1, 2), op(Read, 0, 3, 4)], "register 1");
        bad(&[op(Write, 1, 1, 2), op(Write, 2, 3, 4), op(Read, 1, 5, 6)], "lies within");
        // Taken back.
        bad(&[op(Write, 1, 1, 0), op(Read, 1, 3, 4), op(Read, 0, 5, 6)], "lies within");
        // Back and forth.
        bad(&[op(Write, 1, 1, 20), op(Write, 2, 2, 21), op(Read, 1, 3, 4), op(Read, 2, 5, 6), op(Read, 1, 7, 8)], "");
        bad(&[op(Read, 1, 1, 2), op(Write, 1, 3, 4)], "written later");
        bad(&[op(Read, 9, 1, 2)], "nobody wrote");
        bad(&[op(Write, 9, 1, 2), op(Write, 9, 3, 4)], "twice");
    }

    /// Tries all orders.
    fn by_force(ops: &[Op]) -> bool {
        fn go(ops: &[Op], done: u32, value: Held) -> bool {
            let left = |i: &usize| done & (1 << i) == 0;
            if (0..ops.len()).filter(left).all(|i| ops[i].answered.is_none()) {
                return true;
            }
            let first_answer = (0..ops.len()).filter(left).filter_map(|i| ops[i].answered).min().unwrap_or(u64::MAX);
            (0..ops.len()).filter(left).any(|i| {
                let op = ops[i];
                op.called <= first_answer
                    && match op.kind {
                        Kind::Write => go(ops, done | 1 << i, op.value),
                        Kind::Read => op.value == value && go(ops, done | 1 << i, value),
                    }
            })
        }
        go(ops, 0, 0)
    }

    #[test]
    fn agrees_with_trying_all_orders() {
        let (mut good, mut bad) = (0, 0);
        for seed in 0..4000 {
            let mut rng = SmallRng::seed_from_u64(seed);
            let count = rng.random_range(2..7);
            let mut times: Vec<u64> = (1..=2 * count as u64).collect();
            let mut take = |rng: &mut SmallRng| times.swap_remove(rng.random_range(0..times.len()));
            let ops: Vec<Op> = (0..count)
                .map(|i| {
                    let (a, b) = (take(&mut rng), take(&mut rng));
                    let kind = if rng.random_bool(0.4) { Write } else { Read };
                    let value = if kind == Write { i as u64 + 1 } else { rng.random_range(0..=count as u64) };
                    let lost = kind == Write && rng.random_bool(0.2);
                    op(kind, value, a.min(b), if lost { 0 } else { a.max(b) })
                })
                .collect();
            assert_eq!(check(&ops).is_ok(), by_force(&ops), "seed {seed}: {ops:?}");
            *if check(&ops).is_ok() { &mut good } else { &mut bad } += 1;
        }
        assert!(good > 300 && bad > 300, "{good} {bad}");
    }
}
