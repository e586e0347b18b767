//! How a table is partitioned, as SHOW CREATE TABLE and information_schema.PARTITIONS show it: reading the clause back makes
//! the same partitions.

use super::create_table::quoted_text;
use crate::parse::RAUK_VERSION;
use crate::session::ddl::partition_values;
use rauk_types::partitioning::{
    Leaf, PartitionBound, PartitionBy, PartitionMethod, PartitionOn, PartitionOptions, PartitionValues, Partitioning,
    UserPartition,
};
use rauk_types::{DataType, TableSchema, Value};

/// The clause in its comment, which says since which version servers know it; INTERVAL in one that only Rauk reads.
pub fn clause(partitioning: &Partitioning, schema: &TableSchema, name: &dyn Fn(&str) -> String) -> String {
    let version = if is_of_columns(&partitioning.by) { "50500" } else { "50100" };
    let mut out = format!("\n/*!{version} PARTITION BY {}", shown_by(&partitioning.by, schema, name));
    if let Some(sub) = &partitioning.sub {
        out.push_str(&format!("\nSUBPARTITION BY {}", shown_by(sub, schema, name)));
        if partitioning.counted_sub && partitioning.leaves_each() > 1 {
            out.push_str(&format!("\nSUBPARTITIONS {}", partitioning.leaves_each()));
        }
    }
    if partitioning.counted {
        // A number makes partitions of KEY, which spreads rows over nodes without one.
        let is_key = matches!(partitioning.by.method, PartitionMethod::Key { .. });
        if partitioning.partitions.len() > 1 || is_key {
            out.push_str(&format!("\nPARTITIONS {}", partitioning.partitions.len()));
        }
    } else {
        let shown: Vec<String> =
            partitioning.partitions.iter().map(|of| shown_partition(of, partitioning, schema, name)).collect();
        out.push_str(&format!("\n({})", shown.join(",\n ")));
    }
    out.push_str(" */");
    if let Some(interval) = &partitioning.interval {
        out.push_str(&format!("\n/*!{RAUK_VERSION} {interval} */"));
    }
    out
}

/// RANGE COLUMNS or LIST COLUMNS.
fn is_of_columns(by: &PartitionBy) -> bool {
    matches!(by.method, PartitionMethod::Range | PartitionMethod::List) && matches!(by.on, PartitionOn::Columns { .. })
}

/// PARTITION_METHOD.
pub fn method(by: &PartitionBy) -> &'static str {
    let of_columns = is_of_columns(by);
    match by.method {
        PartitionMethod::Range if of_columns => "RANGE COLUMNS",
        PartitionMethod::Range => "RANGE",
        PartitionMethod::List if of_columns => "LIST COLUMNS",
        PartitionMethod::List => "LIST",
        PartitionMethod::Hash { linear: false } => "HASH",
        PartitionMethod::Hash { linear: true } => "LINEAR HASH",
        PartitionMethod::Key { linear: false, .. } => "KEY",
        PartitionMethod::Key { linear: true, .. } => "LINEAR KEY",
    }
}

/// PARTITION_EXPRESSION.
pub fn expression(by: &PartitionBy, schema: &TableSchema, name: &dyn Fn(&str) -> String) -> String {
    match &by.on {
        PartitionOn::Expression { text, .. } => text.clone(),
        PartitionOn::Columns { columns, .. } => {
            let names: Vec<String> = columns.iter().map(|&at| name(&schema.columns[at].name)).collect();
            names.join(",")
        }
    }
}

fn shown_by(by: &PartitionBy, schema: &TableSchema, name: &dyn Fn(&str) -> String) -> String {
    let on = match &by.on {
        PartitionOn::Columns { implied: true, .. } => String::new(),
        _ => expression(by, schema, name),
    };
    match by.method {
        // Two spaces, as MySQL has them.
        PartitionMethod::Range if is_of_columns(by) => format!("RANGE  COLUMNS({on})"),
        PartitionMethod::List if is_of_columns(by) => format!("LIST  COLUMNS({on})"),
        PartitionMethod::Key { algorithm: Some(algorithm), .. } => {
            format!("{} ALGORITHM = {algorithm} ({on})", method(by))
        }
        _ => format!("{} ({on})", method(by)),
    }
}

fn shown_partition(
    partition: &UserPartition,
    partitioning: &Partitioning,
    schema: &TableSchema,
    name: &dyn Fn(&str) -> String,
) -> String {
    let mut out = format!("PARTITION {}", name(&partition.name));
    let described = description(partition, partitioning, schema);
    match &partition.values {
        PartitionValues::None => {}
        PartitionValues::LessThan(bounds)
            if !is_of_columns(&partitioning.by) && bounds[0] == PartitionBound::MaxValue =>
        {
            out.push_str(" VALUES LESS THAN MAXVALUE");
        }
        PartitionValues::LessThan(_) => out.push_str(&format!(" VALUES LESS THAN ({described})")),
        PartitionValues::In(_) => out.push_str(&format!(" VALUES IN ({described})")),
        PartitionValues::Default => out.push_str(" DEFAULT"),
    }
    if partitioning.sub.is_some() && !partitioning.counted_sub {
        let shown = |leaf: &Leaf| {
            let own = name(leaf.name.as_deref().unwrap_or_default());
            format!("SUBPARTITION {own}{}", shown_options(&leaf.options, name))
        };
        let shown: Vec<String> = partition.leaves.iter().map(shown).collect();
        out.push_str(&format!("\n ({})", shown.join(",\n  ")));
    } else {
        out.push_str(&shown_options(&partition.options, name));
    }
    out
}

fn shown_options(options: &PartitionOptions, name: &dyn Fn(&str) -> String) -> String {
    let mut out = String::new();
    for (option, value) in &options.others {
        let value = if option == "TABLESPACE" { name(value) } else { value.clone() };
        out.push_str(&format!(" {option} = {value}"));
    }
    if !options.comment.is_empty() {
        out.push_str(&format!(" COMMENT = {}", quoted_text(&options.comment)));
    }
    out.push_str(" ENGINE = InnoDB");
    out
}

/// PARTITION_DESCRIPTION: the values of a partition; empty where it has none.
pub fn description(partition: &UserPartition, partitioning: &Partitioning, schema: &TableSchema) -> String {
    let shown = |at: usize, value: &Value| {
        let ty = match &partitioning.by.on {
            PartitionOn::Expression { .. } => DataType::BIGINT,
            PartitionOn::Columns { columns, .. } => schema.columns[columns[at]].ty,
        };
        shown_value(value, &ty)
    };
    match &partition.values {
        PartitionValues::None => String::new(),
        PartitionValues::Default => "DEFAULT".to_string(),
        PartitionValues::LessThan(bounds) => {
            let bound = |(at, bound): (usize, &PartitionBound)| match bound {
                PartitionBound::MaxValue => "MAXVALUE".to_string(),
                PartitionBound::Value(value) => shown(at, value),
            };
            bounds.iter().enumerate().map(bound).collect::<Vec<_>>().join(",")
        }
        PartitionValues::In(list) => {
            let row = |row: &Vec<Value>| match row.as_slice() {
                [value] => shown(0, value),
                row => {
                    let values: Vec<String> = row.iter().enumerate().map(|(at, value)| shown(at, value)).collect();
                    format!("({})", values.join(","))
                }
            };
            let mut rows: Vec<&Vec<Value>> = list.iter().collect();
            if !is_of_columns(&partitioning.by) {
                // NULL comes first.
                rows.sort_by_key(|row| !row[0].is_null());
            }
            rows.into_iter().map(row).collect::<Vec<_>>().join(",")
        }
    }
}

fn shown_value(value: &Value, ty: &DataType) -> String {
    match value {
        Value::Null => "NULL".to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if bytes.iter().all(|b| (b' '..=b'~').contains(b)) => quoted_text(text),
            _ => format!("_binary 0x{}", bytes.iter().map(|b| format!("{b:02X}")).collect::<String>()),
        },
        value => quoted_text(&partition_values::text(value, ty)),
    }
}
