//! What clients do to tables that users partition.
//!
//! Rows stay whatever is done, as the judge of rows demands: the partitions up to [`ROWS_END`] take every id that clients
//! write and are divided in other places, by ranges (some partitions are replaced by others) or in another way altogether (all rows are
//! written again); partitions beyond have no rows, and are added, dropped and emptied.
use super::{EXTRA, FIXED, NAMES, PREFIX, Work, add_column, name, new_schema};
use crate::node::client::Client;
use crate::node::tables::index;
use rand::Rng;
use rand::rngs::SmallRng;
use rauk_types::partitioning::{
    Leaf, PartitionBound, PartitionBy, PartitionMethod, PartitionOn, PartitionOptions, PartitionValues, Partitioning,
    UserPartition,
};
use rauk_types::schema::IndexKind;
use rauk_types::{Collation, DataType, TableSchema, Value};
use std::sync::Arc;

/// Clients write no id beyond.
const ROWS_END: i64 = 1_000_000;
/// Where partitions with rows are divided.
const BOUNDS: std::ops::Range<i64> = 1..700;
const MOST: usize = 6;

fn partition(token: &str, at: usize, values: PartitionValues) -> UserPartition {
    let (options, leaves) = (PartitionOptions::default(), vec![Leaf::new(None)]);
    UserPartition { name: format!("p {token} {at}"), values, options, leaves }
}

fn below(end: i64) -> PartitionValues {
    PartitionValues::LessThan(vec![PartitionBound::Value(Value::Int(end))])
}

/// Of a partition by RANGE.
fn end(partition: &UserPartition) -> i64 {
    match &partition.values {
        PartitionValues::LessThan(bounds) => match bounds.as_slice() {
            [PartitionBound::Value(Value::Int(end))] => *end,
            other => panic!("a bound: {other:?}"),
        },
        other => panic!("a partition by RANGE has {other:?}"),
    }
}

/// Any way to divide a table by its id, that no expression must be computed for; `None`: none.
fn any(rng: &mut SmallRng, token: &str) -> Option<Arc<Partitioning>> {
    let method = match rng.random_range(0..8) {
        0 => return None,
        1 | 2 => PartitionMethod::Key { linear: rng.random_bool(0.5), algorithm: None },
        _ => PartitionMethod::Range,
    };
    let partitions: Vec<UserPartition> = match method {
        PartitionMethod::Range => {
            let mut ends: Vec<i64> = (0..rng.random_range(0..4)).map(|_| rng.random_range(BOUNDS)).collect();
            ends.push(ROWS_END);
            ends.sort_unstable();
            ends.dedup();
            ends.iter().enumerate().map(|(at, end)| partition(token, at, below(*end))).collect()
        }
        _ => (0..rng.random_range(1..5)).map(|at| partition(token, at, PartitionValues::None)).collect(),
    };
    let by = PartitionBy { method, on: PartitionOn::Columns { columns: vec![0], implied: false } };
    Some(Arc::new(Partitioning {
        by,
        sub: None,
        partitions,
        counted: false,
        counted_sub: false,
        interval: None,
        dead_entries: false,
    }))
}

/// Divides a table in another way, or not at all.
fn divide(table: &mut TableSchema, rng: &mut SmallRng, token: &str) {
    table.partitioning = any(rng, token);
    if table.partitioning.is_none() {
        table.indexes.iter_mut().for_each(|index| index.global = false);
    }
}

pub fn plan(client: &mut Client) -> Work {
    let name = name(client);
    let token = format!("{:x}", client.rng.random::<u64>());
    let create = |rng: &mut SmallRng| {
        let partitioning = any(rng, &token);
        TableSchema { comment: token.clone(), partitioning, ..new_schema(&name) }
    };
    let Ok(table) = client.table(&name) else { return Work::Create(create(&mut client.rng)) };
    let rng = &mut client.rng;
    let mut new = (**table.schema()).clone();
    new.comment = token.clone();
    match rng.random_range(0..20) {
        0 => return Work::Drop(name),
        1 => return Work::Truncate(name),
        2 | 3 => return Work::Rename(name, format!("{PREFIX}{}", rng.random_range(0..NAMES))),
        4 => return Work::Create(create(rng)),
        5 | 6 => {
            divide(&mut new, rng, &token);
            return Work::Rewrite(table, new);
        }
        7 => {
            let ty = &mut new.columns[1].ty;
            *ty = match ty == &DataType::BIGINT {
                true => DataType::varchar(30, Collation::Utf8mb4GeneralCi),
                false => DataType::BIGINT,
            };
            return Work::Rewrite(table, new);
        }
        8 | 9 => {
            if new.indexes.len() > 1 && rng.random_bool(0.5) {
                let dropped = rng.random_range(1..new.indexes.len());
                new.indexes.remove(dropped);
            } else {
                let next = new.indexes.iter().map(|i| i.id.0).max().unwrap_or(0) + 1;
                let (kind, parts): (_, &[usize]) = match rng.random_range(0..4) {
                    0 | 1 => (IndexKind::Unique, &[2, 0]),
                    2 => (IndexKind::Ordered, &[1]),
                    _ => (IndexKind::Ordered, &[2, 1]),
                };
                let mut index = index(next, &format!("i {token}"), kind, parts);
                index.global = kind == IndexKind::Unique && new.partitioning.is_some() && rng.random_bool(0.5);
                new.indexes.push(index);
            }
            return Work::Rewrite(table, new);
        }
        10 | 11 => {
            if new.columns.len() > FIXED && (new.columns.len() >= FIXED + EXTRA || rng.random_bool(0.5)) {
                let dropped = rng.random_range(FIXED..new.columns.len());
                new.columns.remove(dropped);
            } else {
                add_column(&mut new.columns, &format!("x {token}"), DataType::BIGINT, true);
            }
            let is_divided = new.partitioning.is_some();
            return if is_divided { Work::Leaves(table, new) } else { Work::Alter(table, new) };
        }
        _ => {}
    }
    let by_range = new.partitioning.as_ref().is_some_and(|of| of.by.method == PartitionMethod::Range);
    if !by_range {
        divide(&mut new, rng, &token);
        return Work::Rewrite(table, new);
    }
    let partitioning = Arc::make_mut(new.partitioning.as_mut().expect("it has one"));
    let partitions = &mut partitioning.partitions;
    let with_rows = partitions.iter().position(|of| end(of) == ROWS_END).expect("ids have a partition") + 1;
    if rng.random_bool(0.5) {
        // Behind the rows.
        let extra = partitions.len() - with_rows;
        match rng.random_range(0..3) {
            0 if extra > 0 => {
                partitions.remove(with_rows + rng.random_range(0..extra));
            }
            1 if extra > 0 => partitions[with_rows + rng.random_range(0..extra)].leaves = vec![Leaf::new(None)],
            _ if partitions.len() < MOST => {
                let next = end(&partitions[partitions.len() - 1]) + 10;
                partitions.push(partition(&token, 0, below(next)));
            }
            _ => partitions.truncate(with_rows),
        }
        return Work::Leaves(table, new);
    }
    // Some neighbours give their rows to others, which end where they did.
    let first = rng.random_range(0..with_rows);
    let last = rng.random_range(first..with_rows.min(first + 3));
    let begin = if first == 0 { BOUNDS.start } else { end(&partitions[first - 1]) };
    let until = end(&partitions[last]);
    let mut ends = vec![until];
    if begin + 1 < until.min(BOUNDS.end) && partitions.len() < MOST {
        ends.insert(0, rng.random_range(begin + 1..until.min(BOUNDS.end)));
    }
    ends.dedup();
    let made: Vec<UserPartition> =
        ends.iter().enumerate().map(|(at, end)| partition(&token, at, below(*end))).collect();
    partitions.splice(first..=last, made);
    Work::Reorganize(table, new)
}
