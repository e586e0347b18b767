//! PARTITION BY from the syntax tree to [`Partitioning`], and back to a tree.
//!
//! A [`PartitionsDraft`] is the clause as it was written, its values computed ([`super::partition_values`]). What can be wrong
//! without knowing the columns is found when it is made ([`super::partition_clause`]). [`PartitionsDraft::finish`] looks at the columns, the keys and the values when the table is built.
//! ALTER TABLE takes a stored table apart with [`PartitionsDraft::of`] and so holds it to the same rules; partitions keep
//! their physical tables.
//!
//! `PARTITION BY KEY (…)` without a number and without names is no matter of this module: it says how rows are spread over
//! data nodes.
//!
//! Errors: 1221, 1488, 1493, 1495, 1502, 1503, 1505, 1506, 1566, 1652, 1655, 1659, 1660, and those of values and expressions.

use super::interval::{self, Moment};
use super::partition_changes::RangeEnd;
use super::partition_clause;
use super::partition_values::{self as values, Reader};
use crate::bind::partition_function::{self, Place};
use crate::expr::Context;
use crate::parse::ast::{
    self, ListValue, PartitionClause, PartitionDefinition, PartitionValues as Written, SubpartitionClause,
    SubpartitionDefinition,
};
use crate::parse::{Mode, parse_expression};
use rauk_types::error::codes;
use rauk_types::partitioning::{
    Leaf, MAX_PARTITION_COLUMNS, PartitionBound, PartitionBy, PartitionOn, PartitionOptions, PartitionValues,
    Partitioning, UserPartition,
};
use rauk_types::schema::MAX_KEY_BYTES;
use rauk_types::{IndexKind, IndexPart, IndexSchema, KeyDef, MysqlError, TableId, TableSchema, Value, ValueRef};
use std::collections::HashSet;

/// ER_FIELD_NOT_FOUND_PART_ERROR and what follows it, in the order of their numbers.
const FIELD_NOT_FOUND: u16 = 1488;
const RANGE_NOT_INCREASING: u16 = 1493;
const MULTIPLE_CONSTANT: u16 = 1495;
const BLOB_FIELD: u16 = 1502;
const MGMT_ON_NONPARTITIONED: u16 = 1505;
const FOREIGN_KEY: u16 = 1506;
const RANGE_CHANGED: u16 = 1520;
const NULL_IN_LESS_THAN: u16 = 1566;
const SAME_FIELD: u16 = 1652;
const TOO_MANY_FIELDS: u16 = 1655;
const FIELDS_TOO_LONG: u16 = 1660;

/// Options that change nothing, in the order in which they are shown.
const KEPT_OPTIONS: &[&str] = &["TABLESPACE", "NODEGROUP", "MAX_ROWS", "MIN_ROWS"];

/// The partitions of a table on its way.
#[derive(Clone, Debug)]
pub struct PartitionsDraft {
    /// Its values are literals.
    pub(super) clause: PartitionClause,
    /// Those of the leaves, in their order; a leaf that is new has none. Empty: the rows are yet to be told apart.
    pub(super) tables: Vec<Vec<TableId>>,
    /// Rows of leaves that are gone go into those that are new.
    pub(super) moves_rows: bool,
    pub(super) range_end: Option<RangeEnd>,
    /// What INTERVAL asks for is made.
    pub(super) due: Option<Due>,
}

/// The partitions that INTERVAL asks for at a moment.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub moment: Moment,
    /// Those whose time is over go.
    pub drops: bool,
}

impl Due {
    pub fn now(context: &Context, drops: bool) -> Due {
        Due { moment: Moment { micros: context.now_micros, zone: context.time_zone.clone() }, drops }
    }
}

impl PartitionsDraft {
    /// Of a clause as it was written. `engine`: what the statement says of the table's.
    pub fn written(
        clause: &PartitionClause,
        engine: Option<&str>,
        context: &mut Context,
    ) -> Result<PartitionsDraft, MysqlError> {
        partition_clause::check(clause, engine, context)?;
        let mut clause = clause.clone();
        values::fold(&mut clause.definitions, context)?;
        let due = Some(Due::now(context, false));
        Ok(PartitionsDraft { clause, tables: Vec::new(), moves_rows: false, range_end: None, due })
    }

    /// Of a table that is there.
    pub fn of(schema: &TableSchema) -> Option<PartitionsDraft> {
        let partitioning = schema.partitioning.as_ref()?;
        let sub = partitioning.sub.as_ref().map(|by| SubpartitionClause {
            by: written_by(by, schema),
            count: partitioning.counted_sub.then_some(partitioning.leaves_each() as u64),
        });
        let definitions = match partitioning.counted {
            true => vec![],
            false => partitioning.partitions.iter().map(|of| written_partition(of, partitioning, schema)).collect(),
        };
        let clause = PartitionClause {
            by: written_by(&partitioning.by, schema),
            count: partitioning.counted.then_some(partitioning.partitions.len() as u64),
            sub,
            definitions,
            interval: partitioning.interval,
        };
        let tables = partitioning.leaves().map(|leaf| leaf.tables.clone()).collect();
        Some(PartitionsDraft { clause, tables, moves_rows: false, range_end: None, due: None })
    }

    /// Whether no physical tables are there.
    pub fn is_new(&self) -> bool {
        self.tables.is_empty()
    }

    /// As for a new table.
    pub fn forget_tables(&mut self) {
        self.tables.clear();
    }

    /// What the table has when its columns and keys are there.
    pub fn finish(&self, schema: &TableSchema) -> Result<Partitioning, MysqlError> {
        let clause = &self.clause;
        let (by, unsigned) = finished_by(&clause.by, schema, Place::Partition)?;
        let sub = match &clause.sub {
            Some(sub) => Some(finished_by(&sub.by, schema, Place::Subpartition)?.0),
            None => None,
        };
        let keys: Vec<KeyDef> = by.on.columns().iter().map(|&column| key_of(schema, column)).collect();
        let mut reader = Reader::new();
        let mut partitions = Vec::with_capacity(partition_clause::count(clause));
        for at in 0..partition_clause::count(clause) {
            let definition = clause.definitions.get(at);
            let name = definition.map_or_else(|| format!("p{at}"), |definition| definition.name.clone());
            let values = match definition {
                Some(definition) => finished_values(&definition.values, &name, &by, unsigned, schema, &mut reader)?,
                None => PartitionValues::None,
            };
            partitions.push(finished_partition(name, values, definition, clause.sub.as_ref()));
        }
        let mut partitioning = Partitioning {
            by,
            sub,
            partitions,
            counted: clause.definitions.is_empty() && clause.interval.is_none(),
            counted_sub: clause.sub.is_some()
                && clause.definitions.first().is_none_or(|first| first.subpartitions.is_empty()),
            interval: clause.interval,
            dead_entries: false,
        };
        check_bounds(&partitioning, &keys)?;
        if let Some(end) = &self.range_end {
            let taken = finished_values(&end.taken, "", &partitioning.by, unsigned, schema, &mut reader)?;
            check_range_end(&partitioning, end.made, taken, &keys)?;
        }
        check_keys(&partitioning, schema)?;
        if partitioning.leaves().count() == self.tables.len() {
            for (leaf, tables) in partitioning.leaves_mut().zip(&self.tables) {
                leaf.tables = tables.clone();
            }
        }
        if let Some(Due { moment, drops }) = &self.due {
            let each = partition_clause::count_each(clause);
            interval::apply(&mut partitioning, schema, moment, *drops, each)?;
            check_bounds(&partitioning, &keys)?;
        }
        Ok(partitioning)
    }
}

/// Error 1505.
pub fn not_partitioned() -> MysqlError {
    MysqlError::new(MGMT_ON_NONPARTITIONED, "Partition management on a not partitioned table is not possible")
}

/// Error 1506, for a partitioned table that refers to others or is referred to.
pub fn no_foreign_keys() -> MysqlError {
    let text = "Foreign keys are not yet supported in conjunction with partitioning";
    MysqlError::new(FOREIGN_KEY, text)
}

// With the columns of the table

/// What rows are looked at by, and whether an expression is unsigned.
fn finished_by(by: &ast::PartitionBy, schema: &TableSchema, place: Place) -> Result<(PartitionBy, bool), MysqlError> {
    let (on, unsigned) = match &by.on {
        ast::PartitionOn::Expr(expr) => {
            let function = partition_function::settle(expr, schema, place)?;
            (PartitionOn::Expression { text: function.text, columns: function.columns }, function.unsigned)
        }
        ast::PartitionOn::Columns(names) if names.is_empty() => {
            (PartitionOn::Columns { columns: implied_columns(schema)?, implied: true }, false)
        }
        ast::PartitionOn::Columns(names) => {
            let is_list = partition_clause::is_ranged(&by.method);
            if names.len() > MAX_PARTITION_COLUMNS {
                let what = if place == Place::Subpartition {
                    "list of subpartition columns"
                } else {
                    "list of partition columns"
                };
                return Err(MysqlError::new(TOO_MANY_FIELDS, format!("Too many fields in '{what}'")));
            }
            (PartitionOn::Columns { columns: listed_columns(names, schema, is_list)?, implied: false }, false)
        }
    };
    if let PartitionOn::Columns { columns, .. } = &on {
        let bytes = |column: &usize| {
            let column = &schema.columns[*column];
            column.ty.row_bytes() + u64::from(column.nullable)
        };
        if columns.iter().map(bytes).sum::<u64>() > MAX_KEY_BYTES as u64 {
            let text = "The total length of the partitioning fields is too large";
            return Err(MysqlError::new(FIELDS_TOO_LONG, text));
        }
    }
    Ok((PartitionBy { method: by.method, on }, unsigned))
}

fn not_found() -> MysqlError {
    MysqlError::new(FIELD_NOT_FOUND, "Field in list of fields for partition function not found in table")
}

/// Columns by name. `is_list`: of RANGE COLUMNS or LIST COLUMNS.
fn listed_columns(names: &[String], schema: &TableSchema, is_list: bool) -> Result<Vec<usize>, MysqlError> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let is_it = |column: &rauk_types::Column| column.name.eq_ignore_ascii_case(name);
        let at = schema.visible_columns().iter().position(is_it).ok_or_else(not_found)?;
        let ty = &schema.columns[at].ty;
        if ty.is_lob() {
            return Err(MysqlError::new(BLOB_FIELD, "A BLOB field is not allowed in partition function"));
        }
        if is_list && !values::is_listed(ty) {
            return Err(partition_function::field_type_not_allowed(&schema.columns[at].name));
        }
        if columns.contains(&at) {
            return Err(MysqlError::new(SAME_FIELD, format!("Duplicate partition field name '{name}'")));
        }
        columns.push(at);
    }
    Ok(columns)
}

/// KEY (): the primary key, or the first unique one that no row is without.
fn implied_columns(schema: &TableSchema) -> Result<Vec<usize>, MysqlError> {
    let is_key = |index: &&IndexSchema| match index.kind {
        IndexKind::Primary => !schema.hidden_key,
        IndexKind::Unique => index.parts.iter().all(|part| !schema.columns[part.column].nullable),
        _ => false,
    };
    let key = schema.indexes.iter().find(is_key).ok_or_else(not_found)?;
    let columns = whole_columns(key);
    if columns.is_empty() { Err(not_in_key(key)) } else { Ok(columns) }
}

fn whole_columns(index: &IndexSchema) -> Vec<usize> {
    index.parts.iter().filter(|part| part.prefix.is_none()).map(|part| part.column).collect()
}

fn not_in_key(index: &IndexSchema) -> MysqlError {
    let kind = if index.kind == IndexKind::Primary { "PRIMARY KEY" } else { "UNIQUE INDEX" };
    let text = format!(
        "A {kind} must include all columns in the table's partitioning function (prefixed columns are not considered)."
    );
    MysqlError::new(codes::PARTITION_FUNC_NOT_ALLOWED, text)
}

/// Error 1503: no row is looked for in more than one partition to know that it is there once. A global key has an index table
/// for all of them.
fn check_keys(partitioning: &Partitioning, schema: &TableSchema) -> Result<(), MysqlError> {
    let looked_at = partitioning.columns();
    for index in &schema.indexes {
        let is_unique = match index.kind {
            IndexKind::Primary => !schema.hidden_key,
            IndexKind::Unique => true,
            IndexKind::Elements(elements) => elements.unique,
            _ => false,
        };
        let whole = whole_columns(index);
        if is_unique && !index.global && !looked_at.iter().all(|column| whole.contains(column)) {
            return Err(not_in_key(index));
        }
    }
    Ok(())
}

fn finished_values(
    written: &Written,
    partition: &str,
    by: &PartitionBy,
    unsigned: bool,
    schema: &TableSchema,
    reader: &mut Reader,
) -> Result<PartitionValues, MysqlError> {
    let mut value = |at: usize, expr: &ast::Expr| {
        let constant = reader.read(expr)?;
        match &by.on {
            PartitionOn::Expression { .. } => values::integer(constant, unsigned, partition),
            PartitionOn::Columns { columns, .. } => reader.of_column(constant, &schema.columns[columns[at]]),
        }
    };
    Ok(match written {
        Written::None => PartitionValues::None,
        Written::Default => PartitionValues::Default,
        Written::LessThan(bounds) => {
            let mut finished = Vec::with_capacity(bounds.len());
            for (at, bound) in bounds.iter().enumerate() {
                finished.push(match bound {
                    ast::PartitionBound::MaxValue => PartitionBound::MaxValue,
                    ast::PartitionBound::Value(expr) => match value(at, expr)? {
                        Value::Null => {
                            let text = "Not allowed to use NULL value in VALUES LESS THAN";
                            return Err(MysqlError::new(NULL_IN_LESS_THAN, text));
                        }
                        value => PartitionBound::Value(value),
                    },
                });
            }
            PartitionValues::LessThan(finished)
        }
        Written::In(list) => {
            let mut finished = Vec::with_capacity(list.len());
            for of in list {
                let bounds = match of {
                    ListValue::One(bound) => std::slice::from_ref(bound),
                    ListValue::Row(bounds) => bounds,
                };
                let mut row = Vec::with_capacity(bounds.len());
                for (at, bound) in bounds.iter().enumerate() {
                    if let ast::PartitionBound::Value(expr) = bound {
                        row.push(value(at, expr)?);
                    }
                }
                finished.push(row);
            }
            PartitionValues::In(finished)
        }
    })
}

fn finished_partition(
    name: String,
    values: PartitionValues,
    definition: Option<&PartitionDefinition>,
    sub: Option<&SubpartitionClause>,
) -> UserPartition {
    let own = definition.map_or_else(PartitionOptions::default, |of| finished_options(&of.options, None));
    let named = definition.map_or(&[][..], |definition| &definition.subpartitions);
    let leaves: Vec<Leaf> = match sub {
        None => vec![Leaf::new(None)],
        Some(sub) if named.is_empty() => (0..sub.count.unwrap_or(1))
            .map(|at| Leaf::new(Some(partition_clause::subpartition_name(&name, at))))
            .collect(),
        Some(_) => named
            .iter()
            .map(|of| Leaf { options: finished_options(&of.options, Some(&own)), ..Leaf::new(Some(of.name.clone())) })
            .collect(),
    };
    // Named subpartitions have taken them over.
    let options = if named.is_empty() { own } else { PartitionOptions::default() };
    UserPartition { name, values, options, leaves }
}

/// `inherited`: those of the partition around a subpartition.
fn finished_options(written: &ast::PartitionOptions, inherited: Option<&PartitionOptions>) -> PartitionOptions {
    let mut finished = inherited.cloned().unwrap_or_default();
    for (name, value) in written {
        if *name == "COMMENT" {
            finished.comment = value.clone();
        } else if KEPT_OPTIONS.contains(name) {
            finished.others.retain(|(known, _)| known != name);
            finished.others.push((name.to_string(), value.clone()));
        }
    }
    finished.others.sort_by_key(|(name, _)| KEPT_OPTIONS.iter().position(|known| known == name));
    finished
}

/// How the values of a column are compared.
fn key_of(schema: &TableSchema, column: usize) -> KeyDef {
    let mut key = KeyDef::new(schema, &[IndexPart { column, prefix: None, descending: false }]);
    // A list may have NULL for a column that has none.
    key.parts[0].nullable = true;
    key
}

/// A bound in the order of bounds.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    Value(Vec<u8>),
    Max,
}

/// Errors 1493, 1495.
fn check_bounds(partitioning: &Partitioning, keys: &[KeyDef]) -> Result<(), MysqlError> {
    let of_expression = matches!(partitioning.by.on, PartitionOn::Expression { .. });
    let encoded = |at: usize, value: &Value| {
        let mut out = Vec::new();
        match value.as_ref() {
            value if !of_expression => keys[at].encode_prefix(&[value], &mut out),
            ValueRef::Null => {}
            value => {
                let number = value.as_integer().expect("a value of an expression is an integer");
                out.extend_from_slice(&(number as u128 ^ 1 << 127).to_be_bytes());
            }
        }
        out
    };
    let mut last: Option<Vec<Position>> = None;
    let mut known: HashSet<Vec<Vec<u8>>> = HashSet::new();
    for partition in &partitioning.partitions {
        match &partition.values {
            PartitionValues::None | PartitionValues::Default => {}
            PartitionValues::LessThan(bounds) => {
                let place = |(at, bound): (usize, &PartitionBound)| match bound {
                    PartitionBound::MaxValue => Position::Max,
                    PartitionBound::Value(value) => Position::Value(encoded(at, value)),
                };
                let this: Vec<Position> = bounds.iter().enumerate().map(place).collect();
                if last.is_some_and(|last| last >= this) {
                    let text = "VALUES LESS THAN value must be strictly increasing for each partition";
                    return Err(MysqlError::new(RANGE_NOT_INCREASING, text));
                }
                last = Some(this);
            }
            PartitionValues::In(list) => {
                for row in list {
                    let row = row.iter().enumerate().map(|(at, value)| encoded(at, value)).collect();
                    if !known.insert(row) {
                        let text = "Multiple definition of same constant in list partitioning";
                        return Err(MysqlError::new(MULTIPLE_CONSTANT, text));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Error 1520: the ranges that were made end elsewhere than those that were taken. The last range of all may grow.
fn check_range_end(
    partitioning: &Partitioning,
    made: usize,
    taken: PartitionValues,
    keys: &[KeyDef],
) -> Result<(), MysqlError> {
    let last = &partitioning.partitions[made];
    let mut both = Partitioning { partitions: vec![last.clone(), last.clone()], ..partitioning.clone() };
    both.partitions[0].values = taken;
    let is_last = made + 1 == partitioning.partitions.len();
    let fits = both.partitions[0].values == last.values || is_last && check_bounds(&both, keys).is_ok();
    if fits {
        return Ok(());
    }
    let text = "Reorganize of range partitions cannot change total ranges except for last partition where it can extend the range";
    Err(MysqlError::new(RANGE_CHANGED, text))
}

// Back to what could have been written

fn written_by(by: &PartitionBy, schema: &TableSchema) -> ast::PartitionBy {
    let on = match &by.on {
        PartitionOn::Expression { text, .. } => {
            let expr = parse_expression(text, Mode::default()).expect("the catalog keeps texts of expressions");
            ast::PartitionOn::Expr(Box::new(expr))
        }
        PartitionOn::Columns { implied: true, .. } => ast::PartitionOn::Columns(vec![]),
        PartitionOn::Columns { columns, .. } => {
            ast::PartitionOn::Columns(columns.iter().map(|&at| schema.columns[at].name.clone()).collect())
        }
    };
    ast::PartitionBy { method: by.method, on }
}

fn written_partition(
    partition: &UserPartition,
    partitioning: &Partitioning,
    schema: &TableSchema,
) -> PartitionDefinition {
    let literal = |at: usize, value: &Value| {
        let ty = match &partitioning.by.on {
            PartitionOn::Expression { .. } => rauk_types::DataType::BIGINT,
            PartitionOn::Columns { columns, .. } => schema.columns[columns[at]].ty,
        };
        ast::PartitionBound::Value(values::literal(value, &ty))
    };
    let values = match &partition.values {
        PartitionValues::None => Written::None,
        PartitionValues::Default => Written::Default,
        PartitionValues::LessThan(bounds) => {
            let bound = |(at, bound): (usize, &PartitionBound)| match bound {
                PartitionBound::MaxValue => ast::PartitionBound::MaxValue,
                PartitionBound::Value(value) => literal(at, value),
            };
            Written::LessThan(bounds.iter().enumerate().map(bound).collect())
        }
        PartitionValues::In(list) => {
            let value = |row: &Vec<Value>| match row.as_slice() {
                [value] => ListValue::One(literal(0, value)),
                row => ListValue::Row(row.iter().enumerate().map(|(at, value)| literal(at, value)).collect()),
            };
            Written::In(list.iter().map(value).collect())
        }
    };
    let subpartition = |leaf: &Leaf| SubpartitionDefinition {
        name: leaf.name.clone().expect("a subpartition has a name"),
        options: written_options(&leaf.options),
    };
    let subpartitions = match partitioning.sub.is_some() && !partitioning.counted_sub {
        true => partition.leaves.iter().map(subpartition).collect(),
        false => vec![],
    };
    PartitionDefinition {
        name: partition.name.clone(),
        values,
        options: written_options(&partition.options),
        subpartitions,
    }
}

fn written_options(options: &PartitionOptions) -> ast::PartitionOptions {
    let kept = |(name, value): &(String, String)| {
        let name = KEPT_OPTIONS.iter().find(|known| *known == name)?;
        Some((*name, value.clone()))
    };
    let mut written: ast::PartitionOptions = options.others.iter().filter_map(kept).collect();
    if !options.comment.is_empty() {
        written.push(("COMMENT", options.comment.clone()));
    }
    written
}
