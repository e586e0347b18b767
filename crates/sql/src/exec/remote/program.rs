//! Programs and what they give back, as bytes.
//!
//! ```text
//! program   version u8, collations u8, sql_mode varint, flags u8 (1 strict statement, 2 all conditions are here), statement time i64,
//!           zone text, collation text, max_allowed_packet u64, most warnings varint,
//!           conditions, what becomes of a row u8:
//!           0 it is sent
//!           1 it is summed up: keys, carried columns, aggregates
//!           2 it is sent if it is one of the first: count varint, keys, which of them descend
//!           3 it is changed: assigned columns, expressions
//!           4 it is deleted
//! list      count varint, items
//! result    warnings varint (those that are counted only included), list of (rows before it varint, level u8, code u16, text), groups
//! ```
//! A receiver reads the version that it knows, and no other.

use super::best::{MAX_BEST, Order};
use crate::expr::context::{SqlMode, Warning, WarningLevel};
use crate::expr::{Aggregate, AggregateFunction, Context, Expr, codec};
use crate::logical::SetColumn;
use jiff::tz::{Offset, TimeZone};
use rauk_node::MAX_PROGRAM;
use rauk_types::{Collation, TableSchema, TypeKind};
use rauk_wire::WireError;
use rauk_wire::expression::{Expression, Type};
use rauk_wire::read::{Reader, put_prefixed, put_varint};

/// The first byte of a program; 0 is a native filter.
const VERSION: u8 = 1;
/// Raised when a weight of a collation changes, which changes what is equal.
const COLLATIONS: u8 = 1;

const STRICT: u8 = 1;
const COMPLETE: u8 = 2;

/// Most conditions, keys, aggregates of a program.
const MAX_ITEMS: usize = 1024;

/// What is evaluated, by the positions of the table's columns.
pub(super) struct Program {
    pub conditions: Vec<Expr>,
    /// No condition of the statement is missing.
    pub complete: bool,
    pub then: Then,
}

/// What becomes of a row that passes.
pub(super) enum Then {
    Send,
    Sum(Aggregation),
    First(Order),
    Change(Vec<SetColumn>),
    Delete,
}

pub(super) struct Aggregation {
    pub keys: Vec<Expr>,
    /// Columns whose values are kept from a group's first row.
    pub carried: Vec<u16>,
    pub aggregates: Vec<Aggregate>,
}

/// What evaluation reads of its session.
pub(super) struct Settings {
    pub sql_mode: SqlMode,
    pub strict_statement: bool,
    pub now_micros: i64,
    pub time_zone: TimeZone,
    pub collation: Collation,
    pub max_allowed_packet: usize,
    pub max_error_count: usize,
}

/// The encoded parts of a program.
pub(super) struct Parts {
    pub conditions: Vec<Expression>,
    pub complete: bool,
    pub then: EncodedThen,
}

pub(super) enum EncodedThen {
    Send,
    Sum(Vec<Expression>, Vec<u16>, Vec<EncodedAggregate>),
    First(usize, Vec<Expression>, Vec<bool>),
    Change(Vec<u16>, Vec<Expression>),
    Delete,
}

pub(super) struct EncodedAggregate {
    pub function: AggregateFunction,
    pub ty: Type,
    pub arguments: Vec<Expression>,
}

/// The aggregates that travel, by name.
const AGGREGATES: [(AggregateFunction, &str); 5] = [
    (AggregateFunction::Count, "COUNT"),
    (AggregateFunction::Sum, "SUM"),
    (AggregateFunction::Avg, "AVG"),
    (AggregateFunction::Min, "MIN"),
    (AggregateFunction::Max, "MAX"),
];

pub(super) fn travels(function: AggregateFunction) -> bool {
    AGGREGATES.iter().any(|(known, _)| *known == function)
}

/// `None`: it is too long, or the session's zone has no name.
pub(super) fn encode(parts: &Parts, context: &Context) -> Option<Vec<u8>> {
    let mut out = vec![VERSION, COLLATIONS];
    put_varint(mode_bits(&context.sql_mode), &mut out);
    let strict = if context.strict_statement { STRICT } else { 0 };
    out.push(strict | if parts.complete { COMPLETE } else { 0 });
    out.extend_from_slice(&context.now_micros.to_le_bytes());
    put_prefixed(zone_name(&context.time_zone)?.as_bytes(), &mut out);
    put_prefixed(context.collation.name().as_bytes(), &mut out);
    out.extend_from_slice(&(context.max_allowed_packet as u64).to_le_bytes());
    put_varint(u32::try_from(context.max_error_count).unwrap_or(u32::MAX), &mut out);
    put_list(&parts.conditions, &mut out, Expression::encode);
    let mut items = parts.conditions.len();
    match &parts.then {
        EncodedThen::Send => out.push(0),
        EncodedThen::First(count, keys, descending) => {
            out.push(2);
            put_varint(u32::try_from(*count).ok()?, &mut out);
            put_list(keys, &mut out, Expression::encode);
            put_list(descending, &mut out, |descending, out| out.push(u8::from(*descending)));
            items += keys.len();
        }
        EncodedThen::Change(columns, values) => {
            out.push(3);
            put_list(columns, &mut out, |column, out| put_varint((*column).into(), out));
            put_list(values, &mut out, Expression::encode);
            items += values.len();
        }
        EncodedThen::Delete => out.push(4),
        EncodedThen::Sum(keys, carried, aggregates) => {
            items += keys.len() + carried.len() + aggregates.len();
            out.push(1);
            put_list(keys, &mut out, Expression::encode);
            put_list(carried, &mut out, |column, out| put_varint((*column).into(), out));
            put_list(aggregates, &mut out, |aggregate, out| {
                let name = AGGREGATES.iter().find(|(known, _)| *known == aggregate.function);
                let name = name.expect("only those that travel are sent").1.to_string();
                Expression::Call { name, ty: aggregate.ty, arguments: aggregate.arguments.clone() }.encode(out);
            });
        }
    }
    (out.len() <= MAX_PROGRAM && items <= MAX_ITEMS).then_some(out)
}

/// `None`: it is of another version, or something of it is not known here.
pub(super) fn decode(bytes: &[u8], table: &TableSchema) -> Option<(Settings, Program)> {
    let mut reader = Reader::new(bytes, "program");
    if reader.array().ok()? != [VERSION, COLLATIONS] {
        return None;
    }
    let sql_mode = mode_of(reader.varint().ok()?)?;
    let flags = reader.u8().ok()?;
    let settings = Settings {
        sql_mode,
        strict_statement: flags & STRICT != 0,
        now_micros: reader.u64().ok()? as i64,
        time_zone: zone_of(reader.text().ok()?)?,
        collation: collation_of(reader.text().ok()?)?,
        max_allowed_packet: usize::try_from(reader.u64().ok()?).ok()?,
        max_error_count: reader.varint().ok()? as usize,
    };
    let conditions = list(&mut reader, |reader| codec::decode(&expression(reader)?, table))?;
    let then = match reader.u8().ok()? {
        0 => Then::Send,
        1 => Then::Sum(Aggregation {
            keys: list(&mut reader, |reader| codec::decode(&expression(reader)?, table))?,
            carried: list(&mut reader, |reader| column(reader, table))?,
            aggregates: list(&mut reader, |reader| aggregate(&expression(reader)?, table))?,
        }),
        2 => {
            let count = reader.varint().ok()? as usize;
            let keys = list(&mut reader, |reader| codec::decode(&expression(reader)?, table))?;
            let descending = list(&mut reader, |reader| reader.flag().ok())?;
            if !(1..=MAX_BEST).contains(&count) || keys.len() != descending.len() {
                return None;
            }
            Then::First(Order { keys: keys.into_iter().zip(descending).collect(), count })
        }
        3 => {
            let columns = list(&mut reader, |reader| column(reader, table))?;
            let values = list(&mut reader, |reader| codec::decode(&expression(reader)?, table))?;
            if columns.len() != values.len() {
                return None;
            }
            let set = columns.into_iter().zip(values);
            Then::Change(set.map(|(column, value)| SetColumn { column: column.into(), value: Some(value) }).collect())
        }
        4 => Then::Delete,
        _ => return None,
    };
    reader.end().ok()?;
    let complete = flags & COMPLETE != 0;
    (flags & !(STRICT | COMPLETE) == 0).then_some((settings, Program { conditions, complete, then }))
}

fn column(reader: &mut Reader<'_>, table: &TableSchema) -> Option<u16> {
    let column = reader.varint().ok()?;
    ((column as usize) < table.columns.len()).then_some(column as u16)
}

fn expression(reader: &mut Reader<'_>) -> Option<Expression> {
    Expression::decode(reader).ok()
}

fn aggregate(expression: &Expression, table: &TableSchema) -> Option<Aggregate> {
    let Expression::Call { name, ty, arguments } = expression else { return None };
    let function = AGGREGATES.iter().find(|(_, known)| known == name)?.0;
    let arguments = arguments.iter().map(|part| codec::decode(part, table)).collect::<Option<Vec<_>>>()?;
    if function != AggregateFunction::Count && arguments.len() != 1 {
        return None;
    }
    let ty = ty.ty;
    // Sums of doubles depend on their order: they do not travel.
    let sums = matches!(function, AggregateFunction::Sum | AggregateFunction::Avg);
    if sums && ty.kind != TypeKind::Decimal {
        return None;
    }
    Some(Aggregate { function, distinct: false, arguments, ty, separator: None, order_by: Vec::new() })
}

fn put_list<T>(items: &[T], out: &mut Vec<u8>, put: impl Fn(&T, &mut Vec<u8>)) {
    put_varint(u32::try_from(items.len()).expect("a list in memory"), out);
    items.iter().for_each(|item| put(item, out));
}

fn list<'a, T>(reader: &mut Reader<'a>, item: impl Fn(&mut Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
    let count = reader.varint().ok()? as usize;
    // Each takes a byte at least.
    if count > MAX_ITEMS || count > reader.remaining() {
        return None;
    }
    (0..count).map(|_| item(reader)).collect()
}

fn flags_of(mode: &mut SqlMode) -> [&mut bool; 17] {
    let SqlMode {
        strict,
        ansi_quotes,
        pipes_as_concat,
        no_backslash_escapes,
        only_full_group_by,
        no_zero_date,
        no_zero_in_date,
        error_for_division_by_zero,
        no_auto_value_on_zero,
        no_unsigned_subtraction,
        high_not_precedence,
        ignore_space,
        real_as_float,
        pad_char_to_full_length,
        allow_invalid_dates,
        time_truncate_fractional,
        no_engine_substitution,
        // What they say is in the expressions.
        formats: _,
    } = mode;
    [
        strict,
        ansi_quotes,
        pipes_as_concat,
        no_backslash_escapes,
        only_full_group_by,
        no_zero_date,
        no_zero_in_date,
        error_for_division_by_zero,
        no_auto_value_on_zero,
        no_unsigned_subtraction,
        high_not_precedence,
        ignore_space,
        real_as_float,
        pad_char_to_full_length,
        allow_invalid_dates,
        time_truncate_fractional,
        no_engine_substitution,
    ]
}

fn mode_bits(mode: &SqlMode) -> u32 {
    let mut mode = *mode;
    flags_of(&mut mode).iter().enumerate().map(|(number, flag)| u32::from(**flag) << number).sum()
}

fn mode_of(bits: u32) -> Option<SqlMode> {
    let mut mode = SqlMode::default();
    let flags = flags_of(&mut mode);
    let known = bits >> flags.len() == 0;
    for (number, flag) in flags.into_iter().enumerate() {
        *flag = bits >> number & 1 == 1;
    }
    known.then_some(mode)
}

/// A zone as every node knows it: by its name, or its distance from UTC in seconds.
fn zone_name(zone: &TimeZone) -> Option<String> {
    if zone.is_unknown() || *zone == TimeZone::UTC {
        return Some("+0".to_string());
    }
    match zone.to_fixed_offset() {
        Ok(offset) => Some(format!("{:+}", offset.seconds())),
        Err(_) => zone.iana_name().map(str::to_string),
    }
}

fn zone_of(name: &str) -> Option<TimeZone> {
    match name.as_bytes().first()? {
        b'+' | b'-' => match name.parse().ok()? {
            0 => Some(TimeZone::UTC),
            seconds => Some(TimeZone::fixed(Offset::from_seconds(seconds).ok()?)),
        },
        _ => TimeZone::get(name).ok(),
    }
}

fn collation_of(name: &str) -> Option<Collation> {
    Collation::named(name)
}

/// Warnings of rows that were not sent.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Warned {
    /// All, also those of which there is no text.
    pub count: u64,
    /// With the number of rows that were sent before.
    pub list: Vec<(u32, Warning)>,
}

impl Warned {
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(u32::try_from(self.count).unwrap_or(u32::MAX), out);
        put_list(&self.list, out, |(before, warning), out| {
            put_varint(*before, out);
            out.push(match warning.level {
                WarningLevel::Note => 0,
                WarningLevel::Warning => 1,
                WarningLevel::Error => 2,
            });
            out.extend_from_slice(&warning.code.to_le_bytes());
            put_prefixed(warning.message.as_bytes(), out);
        });
    }

    pub fn decode(reader: &mut Reader<'_>) -> Result<Warned, WireError> {
        let count = reader.varint()?.into();
        let listed = reader.varint()? as usize;
        if listed > reader.remaining() || listed as u64 > count {
            return Err(reader.malformed());
        }
        let list = (0..listed).map(|_| {
            let before = reader.varint()?;
            let level = match reader.u8()? {
                0 => WarningLevel::Note,
                1 => WarningLevel::Warning,
                2 => WarningLevel::Error,
                _ => return Err(reader.malformed()),
            };
            let code = reader.u16()?;
            Ok((before, Warning { level, code, message: reader.text()?.to_string() }))
        });
        let list = list.collect::<Result<_, _>>()?;
        Ok(Warned { count, list })
    }
}
