//! A random sequence of batches, in and out of transactions, and a map that says what each must answer.

use super::client::*;
use crate::support::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rauk_node::block_on;
use rauk_types::{TableSchema, Value};
use rauk_wire::{BatchOptions, CompareOp, Wanted};
use std::collections::BTreeMap;

type Rows = BTreeMap<i64, Vec<Value>>;

/// An operation, with what it is in the model.
#[derive(Clone, Debug)]
enum Act {
    Read(i64),
    Insert(Vec<Value>),
    Write(Vec<Value>),
    /// Key, column, value, and the value that the row must have.
    Update(i64, u16, Value, Option<i64>),
    Increment(i64, i64),
    Delete(i64, Option<i64>),
}

struct Run {
    random: StdRng,
    columns: usize,
    rows: Rows,
    client: Client,
}

pub fn run(seed: u64, schema: TableSchema) {
    let columns = schema.columns.len();
    let (db, t) = database_with(schema);
    let client = Client::new(&db, "t");
    let mut run = Run { random: StdRng::seed_from_u64(seed), columns, rows: Rows::new(), client };
    for number in 1..60 {
        match run.random.random_range(0..3) {
            0 => run.transaction(number),
            _ => run.lone(),
        }
    }
    let found: Vec<Vec<Value>> = block_on(contents(&db, &t));
    assert_eq!(found, run.rows.values().cloned().collect::<Vec<_>>(), "seed {seed}");
    assert_eq!(db.counters().transactions, 0);
}

impl Run {
    fn row(&mut self) -> Vec<Value> {
        let mut row = vec![int(self.random.random_range(0..12)), int(self.random.random_range(0..5))];
        if self.columns > 2 {
            row.push(self.code());
        }
        row
    }

    fn code(&mut self) -> Value {
        match self.random.random_range(0..9) {
            0..4 => Value::Null,
            n => text(&"abcdefgh"[n - 1..n]),
        }
    }

    fn act(&mut self) -> Act {
        let key = self.random.random_range(0..12);
        let condition = self.random.random_bool(0.3).then(|| self.random.random_range(0..5));
        match self.random.random_range(0..12) {
            0..3 => Act::Read(key),
            3..5 => Act::Insert(self.row()),
            5..7 => Act::Write(self.row()),
            7 => Act::Increment(key, self.random.random_range(-3..4)),
            8 => Act::Delete(key, condition),
            9 => Act::Update(key, 0, int(self.random.random_range(0..12)), condition),
            10 if self.columns > 2 => Act::Update(key, 2, self.code(), condition),
            _ => Act::Update(key, 1, int(self.random.random_range(0..5)), condition),
        }
    }

    fn batch(&mut self) -> (Ops, Vec<(Act, bool)>) {
        let mut ops = self.client.batch();
        let mut acts = Vec::new();
        let columns: Vec<u16> = (0..self.columns as u16).collect();
        for _ in 0..self.random.random_range(1..20) {
            let act = self.act();
            let wanted = self.random.random_bool(0.5);
            let is = |value: i64| compare(1, CompareOp::Equal, int(value));
            ops.wanted(if wanted { Wanted::Row } else { Wanted::Nothing });
            match &act {
                Act::Read(key) => ops.read(*key),
                Act::Insert(row) => ops.insert(&columns, row),
                Act::Write(row) => ops.write(&columns, row),
                Act::Increment(key, by) => ops.increment(*key, &[1], &[int(*by)]),
                Act::Delete(key, None) => ops.delete(*key),
                Act::Delete(key, Some(value)) => ops.delete_if(*key, is(*value)),
                Act::Update(key, column, value, None) => ops.update(*key, &[*column], std::slice::from_ref(value)),
                Act::Update(key, column, value, Some(v)) => {
                    ops.update_if(*key, &[*column], std::slice::from_ref(value), is(*v));
                }
            }
            acts.push((act, wanted));
        }
        (ops, acts)
    }

    fn lone(&mut self) {
        let (ops, acts) = self.batch();
        let expected: Vec<Out> = acts.iter().map(|(act, wanted)| apply(&mut self.rows, act, *wanted)).collect();
        assert_eq!(ops.run(), expected, "{acts:?}");
    }

    fn transaction(&mut self, number: u64) {
        let mut rows = self.rows.clone();
        let mut savepoint: Option<(u32, Rows)> = None;
        for i in 0..self.random.random_range(1..5) {
            let stop = self.random.random_bool(0.3);
            let options = BatchOptions { begin: i == 0, stop_at_failure: stop, ..GO_ON };
            let (ops, acts) = self.batch();
            let before = rows.clone();
            let mut expected = Vec::new();
            for (i, (act, wanted)) in acts.iter().enumerate() {
                let out = apply(&mut rows, act, *wanted);
                let failed = matches!(out, Out::Missing | Out::Duplicate(_) | Out::ConditionFalse);
                expected.push(out);
                if failed && stop {
                    rows = before;
                    expected[..i].fill(Out::NotExecuted);
                    expected.resize(acts.len(), Out::NotExecuted);
                    break;
                }
            }
            let (out, answer) = ops.within(number, options).unwrap();
            assert_eq!(out, expected, "stop {stop}: {acts:?}");
            assert!(!answer.ended);
            match (&savepoint, self.random.random_range(0..3)) {
                (None, 0) => {
                    let mut ops = self.client.batch();
                    ops.savepoint();
                    let (out, _) = ops.within(number, GO_ON).unwrap();
                    let Out::Savepoint(point) = out[0] else { panic!("{out:?}") };
                    savepoint = Some((point, rows.clone()));
                }
                (Some((point, then)), 0) => {
                    let mut ops = self.client.batch();
                    ops.rollback_to(*point);
                    assert_eq!(ops.within(number, GO_ON).unwrap().0, [Out::Done(None)]);
                    rows = then.clone();
                }
                _ => {}
            }
        }
        if self.random.random_bool(0.7) {
            assert!(self.client.batch().within(number, COMMIT).unwrap().1.committed);
            self.rows = rows;
        } else {
            self.client.rollback(number);
        }
    }
}

fn answered(wanted: bool, row: &[Value]) -> Out {
    if wanted { Out::Row(row.to_vec()) } else { Out::Done(None) }
}

/// The row that has this code already.
fn taken(rows: &Rows, code: Option<&Value>, but: i64) -> bool {
    let Some(code) = code.filter(|c| !c.is_null()) else { return false };
    rows.iter().any(|(&key, row)| key != but && row[2] == *code)
}

fn apply(rows: &mut Rows, act: &Act, wanted: bool) -> Out {
    let key_of = |row: &[Value]| row[0].as_ref().as_integer().unwrap() as i64;
    match act {
        Act::Read(key) => rows.get(key).map_or(Out::Missing, |row| answered(wanted, row)),
        Act::Insert(row) => insert(rows, row, wanted),
        Act::Write(row) => match rows.contains_key(&key_of(row)) {
            false => insert(rows, row, wanted),
            true => change(rows, key_of(row), row.clone(), wanted),
        },
        Act::Increment(key, by) => match rows.get(key).cloned() {
            None => Out::Missing,
            Some(mut row) => {
                let Value::Int(value) = row[1] else { panic!("{row:?}") };
                row[1] = int(value + by);
                change(rows, *key, row, wanted)
            }
        },
        Act::Update(key, column, value, condition) => match rows.get(key).cloned() {
            None => Out::Missing,
            Some(row) if condition.is_some_and(|v| row[1] != int(v)) => Out::ConditionFalse,
            Some(mut row) => {
                row[usize::from(*column)] = value.clone();
                change(rows, *key, row, wanted)
            }
        },
        Act::Delete(key, condition) => match rows.get(key) {
            None => Out::Missing,
            Some(row) if condition.is_some_and(|v| row[1] != int(v)) => Out::ConditionFalse,
            Some(_) => answered(wanted, &rows.remove(key).unwrap()),
        },
    }
}

fn insert(rows: &mut Rows, row: &[Value], wanted: bool) -> Out {
    let Value::Int(key) = row[0] else { panic!("{row:?}") };
    if rows.contains_key(&key) {
        return Out::Duplicate(0);
    }
    if taken(rows, row.get(2), key) {
        return Out::Duplicate(2);
    }
    rows.insert(key, row.to_vec());
    answered(wanted, row)
}

fn change(rows: &mut Rows, old: i64, row: Vec<Value>, wanted: bool) -> Out {
    let Value::Int(key) = row[0] else { panic!("{row:?}") };
    if key != old && rows.contains_key(&key) {
        return Out::Duplicate(0);
    }
    if taken(rows, row.get(2), old) {
        return Out::Duplicate(2);
    }
    rows.remove(&old);
    rows.insert(key, row.clone());
    answered(wanted, &row)
}
