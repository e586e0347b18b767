//! What can be wrong with a partition clause before the columns of its table are known: numbers and names of partitions, which
//! values belong to which method, subpartitions, options.
//!
//! Errors that MySQL's parser finds have the code 1064 and the text of the error that they are.

use super::partition_values::syntax;
use super::{check_identifier, interval, options};
use crate::expr::Context;
use crate::parse::ast::{self, ListValue, PartitionClause, PartitionDefinition, PartitionValues as Written};
use rauk_types::MysqlError;
use rauk_types::error::codes;
use rauk_types::partitioning::{MAX_PARTITIONS, PartitionMethod};
use std::collections::HashSet;

/// ER_PARTITION_REQUIRES_VALUES_ERROR and what follows it, in the order of their numbers.
const REQUIRES_VALUES: u16 = 1479;
const WRONG_VALUES: u16 = 1480;
const MAXVALUE_NOT_LAST: u16 = 1481;
const MUST_BE_DEFINED: u16 = 1492;
const MIX_OF_ENGINES: u16 = 1497;
pub(super) const TOO_MANY: u16 = 1499;
pub(super) const TOO_MANY_TEXT: &str = "Too many partitions (including subpartitions) were defined";
const SUBPARTITION: u16 = 1500;
const NO_PARTS: u16 = 1504;
const SAME_NAME: u16 = 1517;
const WRONG_NAME: u16 = 1567;
const COLUMN_LIST: u16 = 1653;
const TOO_MANY_VALUES: u16 = 1657;
const COMMENT_TOO_LONG: u16 = 1793;
/// MariaDB's ER_PARTITION_DEFAULT_ERROR.
const SECOND_DEFAULT: u16 = 4030;

const COLUMN_LIST_TEXT: &str = "Inconsistency in usage of column lists for partitioning";

/// Characters of a partition's comment.
const LONGEST_COMMENT: usize = 1024;

/// Errors 1059, 1286, 1479, 1480, 1481, 1492, 1497, 1499, 1500, 1504, 1517, 1567, 1653, 1657, 1793, 4030; warning 1618. `engine`: what the
/// statement says of the table's.
pub fn check(clause: &PartitionClause, engine: Option<&str>, context: &mut Context) -> Result<(), MysqlError> {
    check_counts(clause)?;
    for (at, definition) in clause.definitions.iter().enumerate() {
        check_values(&clause.by, definition, at + 1 == clause.definitions.len())?;
    }
    check_shape(clause)?;
    interval::check_clause(clause)?;
    check_names(clause)?;
    check_options(&clause.definitions, engine, context)
}

pub(super) fn is_ranged(method: &PartitionMethod) -> bool {
    matches!(method, PartitionMethod::Range | PartitionMethod::List)
}

/// RANGE or LIST.
pub(super) fn kind(method: &PartitionMethod) -> &'static str {
    if *method == PartitionMethod::List { "LIST" } else { "RANGE" }
}

pub(super) fn count(clause: &PartitionClause) -> usize {
    match clause.definitions.len() {
        0 if clause.interval.is_some() => 0,
        0 => clause.count.unwrap_or(1) as usize,
        written => written,
    }
}

/// How many subpartitions each partition has; one where there are none.
pub(super) fn count_each(clause: &PartitionClause) -> u64 {
    let Some(sub) = &clause.sub else { return 1 };
    match clause.definitions.first().map_or(0, |first| first.subpartitions.len()) {
        0 => sub.count.unwrap_or(1),
        written => written as u64,
    }
}

pub(super) fn check_counts(clause: &PartitionClause) -> Result<(), MysqlError> {
    let counts = [(clause.count, "partitions"), (clause.sub.as_ref().and_then(|sub| sub.count), "subpartitions")];
    for (count, what) in counts {
        if count == Some(0) {
            return Err(MysqlError::new(NO_PARTS, format!("Number of {what} = 0 is not an allowed value")));
        }
    }
    Ok(())
}

/// What each definition says of its values: errors 1479, 1480, 1481, 1653, 1656, 1657, 1658.
pub(super) fn check_values(
    by: &ast::PartitionBy,
    definition: &PartitionDefinition,
    is_last: bool,
) -> Result<(), MysqlError> {
    let wrong = |method: &str, values: &str| {
        let text = format!("Only {method} PARTITIONING can use VALUES {values} in partition definition");
        Err(MysqlError::new(WRONG_VALUES, text))
    };
    match (&by.method, &definition.values) {
        (method, Written::None) if is_ranged(method) => {
            let values = if *method == PartitionMethod::Range { "LESS THAN" } else { "IN" };
            let kind = kind(method);
            let text =
                format!("Syntax error: {kind} PARTITIONING requires definition of VALUES {values} for each partition");
            Err(MysqlError::new(REQUIRES_VALUES, text))
        }
        (PartitionMethod::Range, Written::LessThan(bounds)) => match &by.on {
            ast::PartitionOn::Columns(columns) => check_width(bounds.len(), columns.len()),
            ast::PartitionOn::Expr(_) if bounds.len() > 1 => Err(too_many_values("RANGE")),
            ast::PartitionOn::Expr(_) if bounds[0] == ast::PartitionBound::MaxValue && !is_last => {
                let text = "MAXVALUE can only be used in last partition definition";
                Err(MysqlError::new(MAXVALUE_NOT_LAST, text))
            }
            ast::PartitionOn::Expr(_) => Ok(()),
        },
        (PartitionMethod::List, Written::In(list)) => list.iter().try_for_each(|value| check_list_value(by, value)),
        (PartitionMethod::List, Written::Default) | (_, Written::None) => Ok(()),
        (_, Written::LessThan(_)) => wrong("RANGE", "LESS THAN"),
        (_, Written::In(_)) => wrong("LIST", "IN"),
        (_, Written::Default) => wrong("LIST", "DEFAULT"),
    }
}

fn too_many_values(kind: &str) -> MysqlError {
    let text = format!("Cannot have more than one value for this type of {kind} partitioning");
    MysqlError::new(TOO_MANY_VALUES, text)
}

/// Values for as many columns as there are.
fn check_width(values: usize, columns: usize) -> Result<(), MysqlError> {
    match values.cmp(&columns) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(syntax(COLUMN_LIST_TEXT)),
        std::cmp::Ordering::Greater => Err(MysqlError::new(COLUMN_LIST, COLUMN_LIST_TEXT)),
    }
}

fn check_list_value(by: &ast::PartitionBy, value: &ListValue) -> Result<(), MysqlError> {
    let columns = match &by.on {
        ast::PartitionOn::Columns(columns) => columns.len(),
        ast::PartitionOn::Expr(_) => 1,
    };
    let bounds = match value {
        ListValue::One(_) if columns > 1 => return Err(syntax(COLUMN_LIST_TEXT)),
        ListValue::One(bound) => std::slice::from_ref(bound),
        ListValue::Row(_) if columns == 1 => {
            return Err(syntax("Row expressions in VALUES IN only allowed for multi-field column partitioning"));
        }
        ListValue::Row(bounds) => bounds,
    };
    if bounds.contains(&ast::PartitionBound::MaxValue) {
        return Err(syntax("Cannot use MAXVALUE as value in VALUES IN"));
    }
    check_width(bounds.len(), columns)
}

/// Numbers of partitions and subpartitions: errors 1484, 1485, 1492, 1499, 1500, 4030.
pub(super) fn check_shape(clause: &PartitionClause) -> Result<(), MysqlError> {
    let definitions = &clause.definitions;
    if clause.count.is_some_and(|count| !definitions.is_empty() && count != definitions.len() as u64) {
        return Err(syntax("Wrong number of partitions defined, mismatch with previous setting"));
    }
    let each: Vec<usize> = definitions.iter().map(|definition| definition.subpartitions.len()).collect();
    let wrong = each.iter().any(|count| *count != each[0])
        || each.first().is_some_and(|&first| {
            first > 0 && clause.sub.as_ref().and_then(|sub| sub.count).is_some_and(|count| count != first as u64)
        });
    if wrong {
        return Err(syntax("Wrong number of subpartitions defined, mismatch with previous setting"));
    }
    let has_subpartitions = clause.sub.is_some() || each.first().is_some_and(|&first| first > 0);
    if has_subpartitions && (clause.sub.is_none() || !is_ranged(&clause.by.method)) {
        let text = "It is only possible to mix RANGE/LIST partitioning with HASH/KEY partitioning for subpartitioning";
        return Err(MysqlError::new(SUBPARTITION, text));
    }
    let makes_them = clause.interval.is_some() && clause.count.is_none();
    if is_ranged(&clause.by.method) && definitions.is_empty() && !makes_them {
        let text = format!("For {} partitions each partition must be defined", kind(&clause.by.method));
        return Err(MysqlError::new(MUST_BE_DEFINED, text));
    }
    let partitions = if definitions.is_empty() { clause.count.unwrap_or(1) } else { definitions.len() as u64 };
    if partitions.saturating_mul(count_each(clause)) > MAX_PARTITIONS as u64 {
        return Err(MysqlError::new(TOO_MANY, TOO_MANY_TEXT));
    }
    if definitions.iter().filter(|definition| definition.values == Written::Default).count() > 1 {
        return Err(MysqlError::new(SECOND_DEFAULT, "Only one DEFAULT partition allowed"));
    }
    Ok(())
}

/// Errors 1059, 1517, 1567.
pub(super) fn check_names(clause: &PartitionClause) -> Result<(), MysqlError> {
    let mut known = HashSet::new();
    let mut check = |name: &str| {
        check_identifier(name)?;
        if name.is_empty() || name.ends_with(' ') {
            return Err(MysqlError::new(WRONG_NAME, "Incorrect partition name"));
        }
        if !known.insert(name.to_lowercase()) {
            return Err(MysqlError::new(SAME_NAME, format!("Duplicate partition name {name}")));
        }
        Ok(())
    };
    for definition in &clause.definitions {
        check(&definition.name)?;
        for sub in &definition.subpartitions {
            check(&sub.name)?;
        }
        if clause.sub.is_some() && definition.subpartitions.is_empty() {
            (0..count_each(clause)).try_for_each(|at| check(&subpartition_name(&definition.name, at)))?;
        }
    }
    Ok(())
}

pub(super) fn subpartition_name(partition: &str, at: u64) -> String {
    format!("{partition}sp{at}")
}

/// Errors 1286, 1497, 1793; warning 1618.
pub(super) fn check_options(
    definitions: &[PartitionDefinition],
    engine: Option<&str>,
    context: &mut Context,
) -> Result<(), MysqlError> {
    let mut engine = engine.map(options::engine_name);
    let of_subpartitions = |definition: &PartitionDefinition| {
        definition.subpartitions.iter().map(|sub| (sub.name.clone(), sub.options.clone())).collect::<Vec<_>>()
    };
    for definition in definitions {
        let own = (definition.name.clone(), definition.options.clone());
        for (name, written) in std::iter::once(own).chain(of_subpartitions(definition)) {
            for (option, value) in &written {
                match *option {
                    "ENGINE" if !options::is_engine(value) => {
                        let text = format!("Unknown storage engine '{value}'");
                        return Err(MysqlError::new(codes::UNKNOWN_STORAGE_ENGINE, text));
                    }
                    "ENGINE" => {
                        let this = options::engine_name(value);
                        if *engine.get_or_insert_with(|| this.clone()) != this {
                            let text = "The mix of handlers in the partitions is not allowed in this version of MySQL";
                            return Err(MysqlError::new(MIX_OF_ENGINES, text));
                        }
                    }
                    "COMMENT" if value.chars().count() > LONGEST_COMMENT => {
                        let text =
                            format!("Comment for table partition '{name}' is too long (max = {LONGEST_COMMENT})");
                        return Err(MysqlError::new(COMMENT_TOO_LONG, text));
                    }
                    "DATA DIRECTORY" | "INDEX DIRECTORY" => options::ignored(context, option),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}
