//! Aggregates: which there are, what their calls may say, and the types of their results.
//!
//! An aggregate is not computed where it stands: the scope registers it with the query block it belongs to, and gives the node that reads its value.
//! `ANY_VALUE` is an ordinary function: it only keeps ONLY_FULL_GROUP_BY from judging its argument.

use super::operators::as_number;
use super::{Binder, members, syntax};
use crate::expr::convert::Result;
use crate::expr::types::{self, Class, decimal_digits, numeric, text_type};
use crate::expr::{Aggregate, AggregateFunction, Expr, ExprKind, cast};
use crate::parse::ast::{self, Arguments, Call};
use rauk_types::error::codes;
use rauk_types::{DataType, GeometryKind, MysqlError, TypeKind};

/// group_concat_max_len.
const GROUP_CONCAT_LENGTH: u32 = 1024;

/// Bytes of the longest binary string that BIT_AND and its kin take.
const MAX_BITWISE_LENGTH: u64 = 511;

/// ER_INVALID_BITWISE_AGGREGATE_OPERANDS_SIZE.
const BITWISE_AGGREGATE_OPERANDS_SIZE: u16 = 3514;

pub(super) fn aggregate_function(name: &str) -> Option<AggregateFunction> {
    Some(match name {
        "COUNT" => AggregateFunction::Count,
        "SUM" => AggregateFunction::Sum,
        "MIN" => AggregateFunction::Min,
        "MAX" => AggregateFunction::Max,
        "AVG" => AggregateFunction::Avg,
        "GROUP_CONCAT" => AggregateFunction::GroupConcat,
        "JSON_ARRAYAGG" => AggregateFunction::JsonArrayAgg,
        "JSON_OBJECTAGG" => AggregateFunction::JsonObjectAgg,
        "BIT_AND" => AggregateFunction::BitAnd,
        "BIT_OR" => AggregateFunction::BitOr,
        "BIT_XOR" => AggregateFunction::BitXor,
        "VAR_POP" | "VARIANCE" => AggregateFunction::VarPop,
        "VAR_SAMP" => AggregateFunction::VarSamp,
        "STD" | "STDDEV" | "STDDEV_POP" => AggregateFunction::StddevPop,
        "ST_COLLECT" => AggregateFunction::Collect,
        "STDDEV_SAMP" => AggregateFunction::StddevSamp,
        _ => return None,
    })
}

/// Whether MySQL's grammar has DISTINCT in the call.
fn takes_distinct(function: AggregateFunction) -> bool {
    use AggregateFunction::{Avg, Collect, Count, GroupConcat, Max, Min, Sum};
    matches!(function, Count | Sum | Avg | Min | Max | GroupConcat | Collect)
}

impl Binder<'_> {
    pub(super) fn aggregate(&mut self, function: AggregateFunction, call: &Call, name: &str) -> Result<Expr> {
        let (aggregate, coercibility) = self.aggregate_call(function, call, name)?;
        let (ty, nullable) = (aggregate.ty, function.is_nullable());
        let kind = self.scope.aggregate(aggregate)?;
        Ok(Expr { kind, ty, nullable, coercibility })
    }

    /// What the call says, and the coercibility of its result.
    pub(super) fn aggregate_call(
        &mut self,
        function: AggregateFunction,
        call: &Call,
        name: &str,
    ) -> Result<(Aggregate, u8)> {
        let concatenates = function == AggregateFunction::GroupConcat;
        let (distinct, items) = match &call.arguments {
            Arguments::Star if function == AggregateFunction::Count => (false, &[][..]),
            Arguments::List { distinct, items } => {
                let many = concatenates || function == AggregateFunction::Count && *distinct;
                let wanted = if function == AggregateFunction::JsonObjectAgg { 2 } else { 1 };
                if !(items.len() == wanted || many && !items.is_empty()) {
                    return Err(syntax(name));
                }
                (*distinct, items.as_slice())
            }
            Arguments::Star => return Err(syntax(name)),
        };
        if distinct && !takes_distinct(function) {
            return Err(syntax(&format!("DISTINCT {name}")));
        }
        if !concatenates && (call.separator.is_some() || !call.order_by.is_empty()) {
            return Err(syntax(name));
        }
        let mut arguments = Vec::with_capacity(items.len());
        let mut bits = Vec::new();
        for item in items {
            use AggregateFunction::{Collect, Count, GroupConcat, JsonArrayAgg, JsonObjectAgg, Max, Min};
            let numeric = !matches!(function, Count | Min | Max | GroupConcat | JsonArrayAgg | JsonObjectAgg | Collect);
            let documents = matches!(function, JsonArrayAgg | JsonObjectAgg);
            let bound = if documents { self.bind_for_document(item)? } else { self.bind(item)? };
            if bound.ty.kind == TypeKind::Bit {
                bits.push(arguments.len());
            }
            arguments.push(match function {
                _ if numeric => as_number(bound),
                // By text, as MySQL has it.
                Min | Max => members::as_text(bound),
                JsonArrayAgg | JsonObjectAgg => members::as_document(bound),
                // Rows that are sorted first have a BIT as its number.
                GroupConcat if distinct || !call.order_by.is_empty() => members::as_sorted(bound),
                GroupConcat => members::as_shown(bound),
                _ => bound,
            });
        }
        let mut order_by = Vec::with_capacity(call.order_by.len());
        for order in &call.order_by {
            // A number is the position of an argument.
            let key = match &order.expr {
                ast::Expr::Literal(ast::Literal::Number(position)) if position.bytes().all(|b| b.is_ascii_digit()) => {
                    let argument = position.parse::<usize>().ok().and_then(|p| arguments.get(p.checked_sub(1)?));
                    argument.cloned().ok_or_else(|| {
                        MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{position}' in 'order clause'"))
                    })?
                }
                expr => self.bind(expr)?,
            };
            order_by.push((key, order.descending));
        }
        if concatenates && (distinct || !order_by.is_empty()) {
            for at in bits {
                let number = std::mem::replace(&mut arguments[at], Expr::null());
                arguments[at] = members::as_digits(number);
            }
        }
        let separator = call.separator.clone();
        let (ty, coercibility) = self.aggregate_type(function, &arguments)?;
        Ok((Aggregate { function, distinct, arguments, ty, separator, order_by }, coercibility))
    }

    fn aggregate_type(&self, function: AggregateFunction, arguments: &[Expr]) -> Result<(DataType, u8)> {
        let first = arguments.first();
        match function {
            AggregateFunction::Sum => types::refuse_geometry(arguments, "sum")?,
            AggregateFunction::Avg => types::refuse_geometry(arguments, "avg")?,
            AggregateFunction::VarPop | AggregateFunction::VarSamp => types::refuse_geometry(arguments, "variance")?,
            AggregateFunction::StddevPop | AggregateFunction::StddevSamp => types::refuse_geometry(arguments, "std")?,
            _ => {}
        }
        let exact = |extra: u8, digits: u8| {
            let ty = numeric(&first.map_or(DataType::BIGINT, |e| e.ty));
            if ty.kind == TypeKind::Double {
                let scale = ty.scale.saturating_add(digits).min(DataType::DOUBLE.scale);
                return DataType { scale, ..DataType::DOUBLE };
            }
            let (precision, scale) = decimal_digits(&ty);
            let scale = (scale + digits).min(rauk_types::decimal::MAX_SCALE);
            DataType::decimal(precision.saturating_add(extra).min(rauk_types::decimal::MAX_PRECISION), scale)
        };
        Ok(match function {
            AggregateFunction::Count => (DataType { length: 21, ..DataType::BIGINT }, types::NUMERIC),
            AggregateFunction::Sum => (exact(22, 0), types::NUMERIC),
            AggregateFunction::Avg => {
                let digits = self.context.sql_mode.formats.division_digits;
                (exact(digits, digits), types::NUMERIC)
            }
            AggregateFunction::Min | AggregateFunction::Max => match first {
                Some(e) => {
                    types::refuse_mixed(e, if function == AggregateFunction::Min { "min" } else { "max" })?;
                    (types::plain(e.ty), e.coercibility)
                }
                None => (DataType::BIGINT, types::NUMERIC),
            },
            AggregateFunction::VarPop
            | AggregateFunction::VarSamp
            | AggregateFunction::StddevPop
            | AggregateFunction::StddevSamp => (DataType::DOUBLE, types::NUMERIC),
            AggregateFunction::BitAnd | AggregateFunction::BitOr | AggregateFunction::BitXor => match first {
                Some(e) if Class::of(&e.ty) == Class::Bytes && !types::is_hex(&e.ty) => {
                    (bitwise_type(e)?, types::COERCIBLE)
                }
                _ => (DataType { length: 21, ..DataType::BIGINT_UNSIGNED }, types::NUMERIC),
            },
            AggregateFunction::JsonArrayAgg | AggregateFunction::JsonObjectAgg => {
                // A binary string is no name of a member.
                if arguments.len() == 2 && arguments[0].ty.is_bytes() {
                    return Err(crate::expr::json::binary_text());
                }
                (DataType::new(TypeKind::Json), types::IMPLICIT)
            }
            AggregateFunction::Collect => (DataType::geometry(GeometryKind::Geometry, None), types::IMPLICIT),
            AggregateFunction::GroupConcat => {
                let decides = |e: &&Expr| Class::of(&e.ty).is_string() && !members::is_shown_number(e);
                let strings = arguments.iter().filter(decides);
                let (collation, coercibility) =
                    types::result_collation(strings, "group_concat", self.context.collation)?;
                (text_type(GROUP_CONCAT_LENGTH.into(), collation), coercibility)
            }
        })
    }
}

/// The type of bits of binary strings. Error 3514.
fn bitwise_type(argument: &Expr) -> Result<DataType> {
    let length = match &argument.kind {
        // CAST(… AS BINARY) without a length is as long as what is cast.
        ExprKind::Cast(inner) if argument.ty.length == cast::NO_LENGTH => {
            let bytes_each = if inner.ty.is_text() { 4 } else { 1 };
            types::text_length(&inner.ty).saturating_mul(bytes_each)
        }
        _ => types::text_length(&argument.ty),
    };
    if length > MAX_BITWISE_LENGTH {
        let message = format!(
            "Aggregate bitwise functions cannot accept arguments longer than {MAX_BITWISE_LENGTH} bytes; consider using the SUBSTRING() \
             function"
        );
        return Err(MysqlError::new(BITWISE_AGGREGATE_OPERANDS_SIZE, message));
    }
    Ok(DataType::varbinary(length as u32))
}
