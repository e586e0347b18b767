//! Random partitionings of two integer columns: a row is found in one leaf by its values and by every whole key, and in no leaf that pruning leaves out.

use super::*;
use crate::ops::change::RowChange;
use crate::scan::pushdown::RowProgram;
use proptest::prelude::*;
use rauk_types::partitioning::{Leaf, PartitionOptions, UserPartition};
use rauk_types::schema::{Column, IndexSchema};
use rauk_types::{ColumnId, DataType};

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.leaves[0].schema.leaf_of)
    }
}

/// The expression is the first column; of subpartitions the second.
struct Columns;

impl Evaluator for Columns {
    fn compute_generated(&self, _: &Arc<TableSchema>, _: &mut [Value]) -> Result<(), MysqlError> {
        Ok(())
    }

    fn partition_value(&self, _: &TableSchema, sub: bool, row: &[Value]) -> Result<Option<i128>, MysqlError> {
        Ok(number_of(&row[usize::from(sub)]))
    }

    fn prepare(&self, _: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowProgram>> {
        None
    }

    fn prepare_change(&self, _: &[u8], _: &Arc<TableSchema>) -> Option<Box<dyn RowChange>> {
        None
    }
}

fn expression(column: usize) -> PartitionOn {
    PartitionOn::Expression { text: format!("`c{column}`"), columns: vec![column] }
}

fn by(method: PartitionMethod, on: PartitionOn) -> PartitionBy {
    PartitionBy { method, on }
}

/// A table of two integers, both its primary key; leaves have the ids from 100 on.
fn table(by: PartitionBy, sub: Option<PartitionBy>, each: usize, values: Vec<PartitionValues>) -> Parts {
    let column = |at: u16| Column::new(ColumnId(at), format!("c{at}"), DataType::BIGINT, false);
    let columns = vec![column(0), column(1)];
    let mut schema = TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[1, 0])]);
    let mut next = 99;
    let mut leaf = || {
        next += 1;
        Leaf { tables: vec![TableId(next)], ..Leaf::new(None) }
    };
    let partition = |(at, values): (usize, PartitionValues)| UserPartition {
        name: format!("p{at}"),
        values,
        options: PartitionOptions::default(),
        leaves: (0..each).map(|_| leaf()).collect(),
    };
    let partitions = values.into_iter().enumerate().map(partition).collect();
    schema.partitioning = Some(Arc::new(Partitioning {
        by,
        sub,
        partitions,
        counted: false,
        counted_sub: true,
        interval: None,
        dead_entries: false,
    }));
    let schema = Arc::new(schema);
    Parts::new(&schema, &TableShared::new(&schema, 1, 1), &[])
}

fn less_than(ends: &[Option<i64>]) -> PartitionValues {
    let bound = |end: &Option<i64>| end.map_or(PartitionBound::MaxValue, |end| PartitionBound::Value(Value::Int(end)));
    PartitionValues::LessThan(ends.iter().map(bound).collect())
}

/// Every kind, over numbers from -10 to 10.
fn parts() -> impl Strategy<Value = Parts> {
    let ends = prop::collection::btree_set(-10..10_i64, 1..5);
    let pairs = prop::collection::btree_set((-10..10_i64, prop::option::of(-10..10_i64)), 1..5);
    let linear = any::<bool>();
    let sub = prop::option::of((any::<bool>(), 1..4_usize));
    (0..5_u8, ends, pairs, linear, 1..7_usize, sub).prop_map(|(kind, ends, pairs, linear, count, sub)| {
        let of_sub = |(is_key, each): (bool, usize)| match is_key {
            true => {
                let on = PartitionOn::Columns { columns: vec![1], implied: false };
                (by(PartitionMethod::Key { linear, algorithm: None }, on), each)
            }
            false => (by(PartitionMethod::Hash { linear }, expression(1)), each),
        };
        let (sub, each) = sub.map(of_sub).map_or((None, 1), |(sub, each)| (Some(sub), each));
        let columns = PartitionOn::Columns { columns: vec![0, 1], implied: false };
        match kind {
            0 => {
                let values = ends.iter().map(|end| less_than(&[Some(*end)])).chain([less_than(&[None])]);
                table(by(PartitionMethod::Range, expression(0)), sub, each, values.collect())
            }
            1 => {
                // MAXVALUE is above all others, so it is the last of those with one first column.
                let mut pairs: Vec<(i64, Option<i64>)> = pairs.into_iter().collect();
                pairs.sort_by_key(|(a, b)| (*a, b.is_none(), *b));
                let values = pairs.iter().map(|(a, b)| less_than(&[Some(*a), *b]));
                table(by(PartitionMethod::Range, columns), sub, each, values.collect())
            }
            2 => {
                let lists = ends.iter().map(|end| PartitionValues::In(vec![vec![Value::Int(*end)]]));
                let values = lists.chain(linear.then_some(PartitionValues::Default));
                table(by(PartitionMethod::List, expression(0)), sub, each, values.collect())
            }
            3 => {
                table(by(PartitionMethod::Hash { linear }, expression(0)), None, 1, vec![PartitionValues::None; count])
            }
            _ => {
                let key = by(PartitionMethod::Key { linear, algorithm: None }, columns);
                table(key, None, 1, vec![PartitionValues::None; count])
            }
        }
    })
}

proptest! {
    #[test]
    fn a_row_is_where_its_keys_say_and_where_pruning_looks(
        parts in parts(),
        rows in prop::collection::vec((-12..12_i64, -12..12_i64), 1..20),
        ends in (-12..12_i64, -12..12_i64),
    ) {
        let schema = &parts.leaves()[0].schema;
        for (a, b) in rows {
            let row = [Value::Int(a), Value::Int(b)];
            let mut key = Vec::new();
            schema.key_def(schema.primary()).encode_values(&row, &mut key);
            let by_key = parts.leaves_of_key(schema, IndexId::PRIMARY, &key, &Columns).unwrap();
            let Ok(place) = parts.leaf_of(schema, &row, &Columns) else {
                prop_assert!(by_key.is_empty(), "no leaf has the row, and its key says {by_key:?}");
                continue;
            };
            prop_assert_eq!(by_key, place..place + 1);
            let partition = place / parts.leaves_each();
            let (low, high) = (ends.0.min(ends.1), ends.0.max(ends.1));
            match parts.columns(false) {
                None => {
                    let looked = parts.partitions_of_numbers(Some(low.into()), Some(high.into()), false);
                    prop_assert!(looked[partition] || !(low..=high).contains(&a), "{a} in {low}..={high}");
                }
                Some(def) => {
                    let encoded = |values: &[Value]| encoded(def, values);
                    let whole = encoded(&row);
                    prop_assert_eq!(parts.place_of_columns(false, &whole), Some(partition));
                    // By the first column alone.
                    let (first, mut last) = (encoded(&[Value::Int(low)]), encoded(&[Value::Int(high)]));
                    prop_assert!(key::prefix_successor(&mut last));
                    let looked = parts.partitions_of_keys(Bound::Included(&first), Bound::Excluded(&last));
                    prop_assert!(looked[partition] || !(low..=high).contains(&a), "{a} in {low}..={high}");
                }
            }
        }
    }
}

/// MySQL's manual, "LINEAR HASH Partitioning": six partitions, the years 2003 and 1998.
#[test]
fn numbers_are_shared_out_as_in_the_manual() {
    assert_eq!((shared_out(2003, true, 6), shared_out(1998, true, 6)), (3, 2));
    assert_eq!((shared_out(2003, false, 4), shared_out(2005, false, 4)), (3, 1));
    assert_eq!(shared_out(-3_i64 as u64, true, 6), 5);
}
