//! The leaves of a user's partitioned table, and which of them a row is in.
//!
//! A partitioned table ([`rauk_types::partitioning`]) has no rows: each of its leaves is a table of its own underneath, with
//! its own index tables. The leaves' definitions are made of the partitioned table's ([`physical`]), so that the
//! catalog keeps one definition and the ids. They are made once: partitions and statements have the same ones, and all of a table have their columns in
//! common, so that thousands of leaves without rows take little memory. They have its columns and layouts, so that a row of a leaf is a row of it; numbers (AUTO_INCREMENT, hidden
//! keys) are given by the partitioned table, so that they are unique in all of it. Its metadata lock stands for all leaves.
//!
//! A *global* unique index has one index table for all leaves. It belongs to the partitioned table, so that it comes and
//! goes with it and not with a leaf; its entries name rows by their primary keys alone, so rows may go to other leaves.
//! What this takes of transactions is in `transaction::global`.
//!
//! A row's leaf follows from its values. COLUMNS and KEY look at the columns as keys encode them, so that collations, NULL and the order of several columns are those of
//! an index; an expression's value is computed by the registered evaluator. Primary and unique keys that are not global contain all columns that are looked at (error 1503), so a whole key says the leaf
//! too: its parts are compared as they are, or an expression's columns are taken from it ([`Covering`]). Where a key does not tell (a hidden key, an expression over YEAR),
//! every leaf is looked in: a key is in at most one.
//!
//! KEY divides by our own hash, not by MySQL's: rows of a partition are others than there.

use super::{TableInfo, TableShared, UniqueIndex, entries};
use crate::error::NodeError;
use crate::scan::pushdown::Evaluator;
use rauk_types::error::codes;
use rauk_types::partitioning::{Leaf, PartitionBound, PartitionBy, PartitionMethod, PartitionOn, PartitionValues};
use rauk_types::schema::{IndexPart, IndexSchema};
use rauk_types::{
    Covering, IndexId, IndexKind, KeyDef, MysqlError, Partitioning, RowView, TableId, TableSchema, Value, ValueRef, key,
};
use rustc_hash::FxHashMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// The tables that have rows of a table: itself, or its leaves and their index tables.
pub fn physical(schema: &Arc<TableSchema>) -> Vec<Arc<TableSchema>> {
    match &schema.partitioning {
        None => vec![schema.clone()],
        Some(partitioning) => leaf_tables(schema, partitioning).to_vec(),
    }
}

/// The leaves, each with its index tables behind it, in the order of the unique indexes.
fn leaf_tables<'a>(schema: &'a TableSchema, partitioning: &Partitioning) -> &'a [Arc<TableSchema>] {
    schema.leaf_tables.get_or_make(|| {
        let each =
            TableSchema { partitioning: None, leaf_of: Some(schema.id), foreign_keys: Vec::new(), ..schema.clone() };
        partitioning.leaves().flat_map(|leaf| tables_of_leaf(&each, leaf)).collect()
    })
}

/// A leaf and its index tables; `each` is what all leaves have in common.
fn tables_of_leaf(each: &TableSchema, leaf: &Leaf) -> Vec<Arc<TableSchema>> {
    let mut own = TableSchema { id: leaf.rows(), ..each.clone() };
    let mut ids = leaf.tables[1..].iter();
    if ids.len() > 0 {
        for index in own.indexes.iter_mut().filter(|index| index.is_guarded_by_leaves()) {
            index.entry_table = ids.next().copied();
        }
    }
    assert!(ids.next().is_none(), "a leaf has a table for each unique index");
    let of_index = |index: &IndexSchema| Some(Arc::new(entries::schema(&own, index, index.entry_table?)));
    let of_indexes: Vec<_> = own.indexes.iter().filter(|index| !index.global).filter_map(of_index).collect();
    std::iter::once(Arc::new(own)).chain(of_indexes).collect()
}

/// The leaves of one version of a partitioned table.
pub struct Parts {
    /// In their order.
    leaves: Vec<Arc<TableInfo>>,
    by: By,
    sub: Option<By>,
    /// Leaves of one partition.
    each: usize,
    /// Of the primary key and the unique indexes.
    keys: FxHashMap<IndexId, Keys>,
    /// The leaf of every physical table.
    ids: FxHashMap<TableId, usize>,
}

/// One way to divide.
struct By {
    on: On,
    rule: Rule,
}

enum On {
    /// Of all columns of the table these are looked at.
    Expression(Vec<usize>),
    /// Encodes the columns as keys do.
    Columns(KeyDef),
}

enum Rule {
    /// Upper ends, ascending; the last may have none.
    Ranges(Vec<Upper>),
    List {
        numbers: FxHashMap<Option<i128>, usize>,
        keys: FxHashMap<Vec<u8>, usize>,
        default: Option<usize>,
    },
    /// The number modulo this, or its last bits.
    Hash {
        linear: bool,
        count: usize,
    },
}

/// What rows of a range lie below.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Upper {
    Number(i128),
    Key(Vec<u8>),
    None,
}

/// How the columns that are looked at come out of a whole key of one index.
struct Keys {
    by: FromKey,
    sub: Option<FromKey>,
}

enum FromKey {
    /// Parts of the key, by number, one behind the other; all parts, to take it apart.
    Parts { wanted: Vec<usize>, all: KeyDef },
    /// Values, of which those of an expression's columns are true.
    Values(Covering),
    /// The key does not tell.
    Unknown,
}

/// A value that is looked at.
enum Looked<'a> {
    Number(Option<i128>),
    Key(&'a [u8]),
}

impl By {
    fn new(schema: &TableSchema, by: &PartitionBy, partitions: Option<&Partitioning>, count: usize) -> By {
        let on = match &by.on {
            PartitionOn::Expression { columns, .. } => On::Expression(columns.clone()),
            PartitionOn::Columns { columns, .. } => On::Columns(key_def(schema, columns)),
        };
        let values = || partitions.into_iter().flat_map(|p| &p.partitions).map(|partition| &partition.values);
        let rule = match by.method {
            PartitionMethod::Range => Rule::Ranges(values().map(|values| upper(&on, values)).collect()),
            PartitionMethod::List => {
                let (mut numbers, mut keys, mut default) = (FxHashMap::default(), FxHashMap::default(), None);
                for (number, values) in values().enumerate() {
                    match values {
                        PartitionValues::In(all) => {
                            for value in all {
                                match &on {
                                    On::Expression(_) => drop(numbers.insert(number_of(&value[0]), number)),
                                    On::Columns(def) => drop(keys.insert(encoded(def, value), number)),
                                }
                            }
                        }
                        PartitionValues::Default => default = Some(number),
                        other => unreachable!("{other:?} of a list"),
                    }
                }
                Rule::List { numbers, keys, default }
            }
            PartitionMethod::Hash { linear } | PartitionMethod::Key { linear, .. } => Rule::Hash { linear, count },
        };
        By { on, rule }
    }

    /// The partition of a value; `None`: there is none for it.
    fn place(&self, looked: &Looked<'_>) -> Option<usize> {
        match (&self.rule, looked) {
            // NULL is below all numbers.
            (Rule::Ranges(_), Looked::Number(None)) => Some(0),
            (Rule::Ranges(uppers), looked) => {
                let place = uppers.partition_point(|upper| !upper.is_above(looked));
                (place < uppers.len()).then_some(place)
            }
            (Rule::List { numbers, default, .. }, Looked::Number(number)) => numbers.get(number).copied().or(*default),
            (Rule::List { keys, default, .. }, Looked::Key(key)) => keys.get(*key).copied().or(*default),
            (Rule::Hash { linear, count }, Looked::Number(number)) => {
                let number = number.unwrap_or(0);
                // A number below zero counts without its sign, or with the bits that it has.
                let number = if *linear { number as u64 } else { number.unsigned_abs() as u64 };
                Some(shared_out(number, *linear, *count))
            }
            (Rule::Hash { linear, count }, Looked::Key(bytes)) => Some(shared_out(key::hash(bytes), *linear, *count)),
        }
    }

    fn place_of_row(&self, row: &[Value], value: impl FnOnce(&[Value]) -> Number) -> Result<usize, NodeError> {
        match &self.on {
            On::Expression(_) => {
                let number = value(row)?;
                self.place(&Looked::Number(number)).ok_or_else(|| no_partition(&shown(number)))
            }
            On::Columns(def) => {
                let mut bytes = Vec::with_capacity(32);
                def.encode_values(row, &mut bytes);
                self.place(&Looked::Key(&bytes)).ok_or_else(|| no_partition("from column_list"))
            }
        }
    }
}

type Number = Result<Option<i128>, NodeError>;

impl Upper {
    fn is_above(&self, looked: &Looked<'_>) -> bool {
        match (self, looked) {
            (Upper::None, _) => true,
            (Upper::Number(end), Looked::Number(number)) => number.is_none_or(|number| number < *end),
            (Upper::Key(end), Looked::Key(key)) => *key < end.as_slice(),
            _ => unreachable!("a range is of numbers or of keys"),
        }
    }
}

/// As MySQL's HASH and LINEAR HASH share numbers out.
fn shared_out(number: u64, linear: bool, count: usize) -> usize {
    let count = count as u64;
    if !linear {
        return (number % count) as usize;
    }
    let mut mask = count.next_power_of_two() - 1;
    while number & mask >= count {
        mask >>= 1;
    }
    (number & mask) as usize
}

fn key_def(schema: &TableSchema, columns: &[usize]) -> KeyDef {
    let part = |&column: &usize| IndexPart { column, prefix: None, descending: false };
    KeyDef::new(schema, &columns.iter().map(part).collect::<Vec<_>>())
}

fn encoded(def: &KeyDef, values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    def.encode_prefix(&values, &mut bytes);
    bytes
}

/// The upper end of a range: below the first MAXVALUE all columns count, behind it none.
fn upper(on: &On, values: &PartitionValues) -> Upper {
    let PartitionValues::LessThan(bounds) = values else { unreachable!("{values:?} of a range") };
    let mut given = Vec::new();
    for bound in bounds {
        match bound {
            PartitionBound::Value(value) => given.push(value.clone()),
            PartitionBound::MaxValue => break,
        }
    }
    let has_most = given.len() < bounds.len();
    match on {
        On::Expression(_) if has_most => Upper::None,
        On::Expression(_) => Upper::Number(number_of(&given[0]).expect("a range ends at a number")),
        On::Columns(def) => {
            let mut end = encoded(def, &given);
            match has_most && !key::prefix_successor(&mut end) {
                true => Upper::None,
                false => Upper::Key(end),
            }
        }
    }
}

fn number_of(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some((*number).into()),
        Value::UInt(number) => Some((*number).into()),
        Value::Null => None,
        other => unreachable!("{other:?} is no value of a partitioning expression"),
    }
}

fn shown(number: Option<i128>) -> String {
    number.map_or_else(|| "NULL".to_string(), |number| number.to_string())
}

fn no_partition(value: &str) -> NodeError {
    NodeError::Refused(MysqlError::new(
        codes::NO_PARTITION_FOR_GIVEN_VALUE,
        format!("Table has no partition for value {value}"),
    ))
}

impl FromKey {
    fn new(schema: &TableSchema, index: &[IndexPart], on: &On) -> FromKey {
        let all = KeyDef::new(schema, index);
        let whole = |column: usize| index.iter().position(|part| part.column == column && part.prefix.is_none());
        match on {
            On::Columns(def) => {
                let wanted: Option<Vec<usize>> = def.parts.iter().map(|part| whole(part.column)).collect();
                wanted.map_or(FromKey::Unknown, |wanted| FromKey::Parts { wanted, all })
            }
            On::Expression(columns) => match Covering::is_possible(schema, index, columns) {
                true => Covering::new(schema, &all, columns).map_or(FromKey::Unknown, FromKey::Values),
                false => FromKey::Unknown,
            },
        }
    }
}

impl Parts {
    /// Of a partitioned table; what all versions of a leaf share is kept by `shared`. `global`: the table's global unique
    /// indexes.
    pub fn new(schema: &Arc<TableSchema>, shared: &Arc<TableShared>, global: &[UniqueIndex]) -> Parts {
        let partitioning = schema.partitioning.as_ref().expect("a partitioned table");
        let guarded = schema.indexes.iter().filter(|index| index.is_guarded_by_leaves()).count();
        partitioning.validate(1 + guarded);
        let tables = leaf_tables(schema, partitioning);
        let of_leaves = shared.of_leaves(tables);
        let tables: Vec<_> = tables.iter().zip(of_leaves).collect();
        let mut leaves: Vec<Arc<TableInfo>> = Vec::with_capacity(tables.len() / (1 + guarded));
        for tables in tables.chunks(1 + guarded) {
            let first = leaves.first().cloned();
            let info = |at: usize, entries_of: &mut dyn FnMut(TableId) -> Arc<TableInfo>| {
                let (schema, shared) = &tables[at];
                // The first leaf has what all have in common.
                let alike = first.as_ref().map(|first| match at.checked_sub(1) {
                    None => first,
                    Some(of_index) => {
                        let mut own = first.uniques.iter().filter(|unique| !unique.global);
                        &own.nth(of_index).expect("all leaves have the same indexes").entries
                    }
                });
                match alike {
                    Some(alike) => alike.alike((*schema).clone(), shared.clone(), entries_of),
                    None => TableInfo::new((*schema).clone(), shared.clone(), entries_of),
                }
            };
            leaves.push(info(0, &mut |id| {
                if let Some(unique) = global.iter().find(|unique| unique.entries.schema.id == id) {
                    return unique.entries.clone();
                }
                let at = tables.iter().position(|(table, _)| table.id == id).expect("a leaf has its index tables");
                info(at, &mut |_| unreachable!("index tables have no unique index"))
            }));
        }
        let each = partitioning.leaves_each();
        let by = By::new(schema, &partitioning.by, Some(partitioning), partitioning.partitions.len());
        let sub = partitioning.sub.as_ref().map(|sub| By::new(schema, sub, None, each));
        let is_key = |index: &IndexKind| matches!(index, IndexKind::Primary | IndexKind::Unique);
        let keys = schema.indexes.iter().filter(|index| is_key(&index.kind)).map(|index| {
            let from = |by: &By| FromKey::new(schema, &index.parts, &by.on);
            (index.id, Keys { by: from(&by), sub: sub.as_ref().map(from) })
        });
        let ids = partitioning.leaves().enumerate().flat_map(|(at, leaf)| leaf.tables.iter().map(move |id| (*id, at)));
        Parts { ids: ids.collect(), keys: keys.collect(), leaves, by, sub, each }
    }

    pub(crate) fn leaves(&self) -> &[Arc<TableInfo>] {
        &self.leaves
    }

    /// A leaf or an index table of one.
    pub(super) fn find(&self, id: TableId) -> Option<&TableInfo> {
        self.leaves[*self.ids.get(&id)?].find(id)
    }

    /// How many leaves there are.
    pub fn count(&self) -> usize {
        self.leaves.len()
    }

    /// The leaf of a row, one value a column; error 1526 where there is none.
    pub fn leaf_of(&self, schema: &TableSchema, row: &[Value], evaluator: &dyn Evaluator) -> Result<usize, NodeError> {
        let value =
            |sub: bool| move |row: &[Value]| evaluator.partition_value(schema, sub, row).map_err(NodeError::Refused);
        let place = self.by.place_of_row(row, value(false))?;
        let within = self.sub.as_ref().map_or(Ok(0), |sub| sub.place_of_row(row, value(true)))?;
        Ok(place * self.each + within)
    }

    /// The leaves that may have a row with this whole key of an index.
    pub fn leaves_of_key(
        &self,
        schema: &TableSchema,
        index: IndexId,
        key: &[u8],
        evaluator: &dyn Evaluator,
    ) -> Result<Range<usize>, NodeError> {
        let all = 0..self.leaves.len();
        let Some(from) = self.keys.get(&index) else { return Ok(all) };
        let Some(place) = self.place_of_key(schema, &self.by, &from.by, false, key, evaluator)? else {
            return Ok(all);
        };
        let Some(place) = place else { return Ok(0..0) };
        let of_partition = place * self.each..(place + 1) * self.each;
        let (Some(sub), Some(from)) = (&self.sub, &from.sub) else { return Ok(of_partition) };
        Ok(match self.place_of_key(schema, sub, from, true, key, evaluator)? {
            Some(Some(within)) => of_partition.start + within..of_partition.start + within + 1,
            Some(None) => 0..0,
            None => of_partition,
        })
    }

    /// `None`: the key does not tell; `Some(None)`: no partition takes such a row.
    fn place_of_key(
        &self,
        schema: &TableSchema,
        by: &By,
        from: &FromKey,
        sub: bool,
        key: &[u8],
        evaluator: &dyn Evaluator,
    ) -> Result<Option<Option<usize>>, NodeError> {
        match from {
            FromKey::Unknown => Ok(None),
            FromKey::Parts { wanted, all } => {
                let mut bounds = Vec::with_capacity(all.parts.len());
                let mut at = 0;
                for part in &all.parts {
                    let end = at + part.length_in(&key[at..]);
                    bounds.push((at, end, part.descending));
                    at = end;
                }
                let mut bytes = Vec::with_capacity(key.len());
                for &part in wanted {
                    let (start, end, descending) = bounds[part];
                    let mask = if descending { 0xFF } else { 0 };
                    bytes.extend(key[start..end].iter().map(|byte| byte ^ mask));
                }
                Ok(Some(by.place(&Looked::Key(&bytes))))
            }
            FromKey::Values(covering) => {
                let mut row = Vec::new();
                if !covering.fill(key, &mut row) {
                    return Ok(None);
                }
                let On::Expression(columns) = &by.on else { unreachable!("values are of expressions") };
                let view = RowView::new(schema, covering.layout(), &row);
                let mut values = vec![Value::Null; schema.columns.len()];
                columns.iter().for_each(|&column| values[column] = view.get(column).to_owned());
                let number = evaluator.partition_value(schema, sub, &values).map_err(NodeError::Refused)?;
                Ok(Some(by.place(&Looked::Number(number))))
            }
        }
    }

    /// The partitions, by number, that may have rows whose partitioning expression has a value within these ends; NULL is below all.
    /// Of what no order helps (HASH of a wide range) all.
    pub fn partitions_of_numbers(&self, low: Option<i128>, high: Option<i128>, with_null: bool) -> Vec<bool> {
        let mut may = vec![false; self.leaves.len() / self.each];
        let low = low.unwrap_or(i128::MIN);
        let high = high.unwrap_or(i128::MAX);
        if with_null && let Some(place) = self.by.place(&Looked::Number(None)) {
            may[place] = true;
        }
        if low > high {
            return may;
        }
        match &self.by.rule {
            Rule::Ranges(uppers) => {
                let above =
                    |number: i128| uppers.partition_point(|upper| !upper.is_above(&Looked::Number(Some(number))));
                let (first, last) = (above(low), above(high));
                (first..=last).filter(|place| *place < uppers.len()).for_each(|place| may[place] = true);
            }
            Rule::List { numbers, default, .. } => {
                let within = numbers.iter().filter(|(number, _)| number.is_some_and(|n| (low..=high).contains(&n)));
                within.for_each(|(_, place)| may[*place] = true);
                // Numbers that no list has may be there.
                let alone = low == high && numbers.contains_key(&Some(low));
                default.iter().filter(|_| !alone).for_each(|place| may[*place] = true);
            }
            Rule::Hash { count, .. } => {
                let few = high.checked_sub(low).is_some_and(|wide| wide < *count as i128);
                match few {
                    true => (low..=high).for_each(|number| {
                        may[self.by.place(&Looked::Number(Some(number))).expect("each number has one")] = true;
                    }),
                    false => may.fill(true),
                }
            }
        }
        may
    }

    /// The partitions, by number, that may have rows whose columns, encoded as [`Parts::columns`] says, lie within these ends.
    pub fn partitions_of_keys(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Vec<bool> {
        let mut may = vec![false; self.leaves.len() / self.each];
        let within = |key: &[u8]| {
            let above = match low {
                Bound::Included(low) => key >= low,
                Bound::Excluded(low) => key > low,
                Bound::Unbounded => true,
            };
            above
                && match high {
                    Bound::Included(high) => key <= high,
                    Bound::Excluded(high) => key < high,
                    Bound::Unbounded => true,
                }
        };
        match &self.by.rule {
            Rule::Ranges(uppers) => {
                // A range has keys from the upper end before it on.
                let first = match low {
                    Bound::Included(low) | Bound::Excluded(low) => {
                        uppers.partition_point(|upper| !upper.is_above(&Looked::Key(low)))
                    }
                    Bound::Unbounded => 0,
                };
                for (place, may) in may.iter_mut().enumerate().skip(first) {
                    let begins_within = match (place.checked_sub(1).map(|before| &uppers[before]), high) {
                        (None, _) | (_, Bound::Unbounded) => true,
                        (Some(Upper::Key(begin)), Bound::Included(high)) => begin.as_slice() <= high,
                        (Some(Upper::Key(begin)), Bound::Excluded(high)) => begin.as_slice() < high,
                        (Some(_), _) => false,
                    };
                    *may = begins_within;
                }
            }
            Rule::List { keys, default, .. } => {
                keys.iter().filter(|(key, _)| within(key)).for_each(|(_, place)| may[*place] = true);
                default.iter().for_each(|place| may[*place] = true);
            }
            Rule::Hash { .. } => may.fill(true),
        }
        may
    }

    /// The place of one whole value of the columns of KEY, RANGE COLUMNS or LIST COLUMNS; `sub`: of the subpartitions.
    pub fn place_of_columns(&self, sub: bool, key: &[u8]) -> Option<usize> {
        let by = if sub { self.sub.as_ref()? } else { &self.by };
        by.place(&Looked::Key(key))
    }

    /// The subpartition of a number.
    pub fn sub_of_number(&self, number: Option<i128>) -> Option<usize> {
        self.sub.as_ref()?.place(&Looked::Number(number))
    }

    /// How columns that are looked at are encoded; `None`: an expression is looked at.
    pub fn columns(&self, sub: bool) -> Option<&KeyDef> {
        let by = if sub { self.sub.as_ref()? } else { &self.by };
        match &by.on {
            On::Columns(def) => Some(def),
            On::Expression(_) => None,
        }
    }

    /// Leaves of one partition.
    pub fn leaves_each(&self) -> usize {
        self.each
    }
}

#[cfg(test)]
mod tests;
