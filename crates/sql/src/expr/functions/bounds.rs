//! No function makes a text longer than max_allowed_packet: every entry of the registry, with long and odd arguments.
//!
//! The check is on what the function itself gives, before [`Function::call`] would make NULL of it: so it holds of what is allocated.

use super::*;
use crate::expr::bind::literal;
use crate::expr::types::COERCIBLE;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// max_allowed_packet here.
const LIMIT: usize = 4096;
/// Functions whose result is their argument, character by character: a character of another case may have some bytes more.
const ALIKE: usize = LIMIT * 2;

/// Numbers and dates as text, whose length is not foreseen.
const SHORT: usize = 512;

/// Values that make results long, each at most as long as a result may be.
fn arguments() -> Vec<Expr> {
    let text = |unit: &str| {
        let text = unit.repeat(LIMIT / unit.len());
        let ty = types::text_type(text.chars().count() as u64, Collation::DEFAULT);
        literal(Value::Str(text), ty, COERCIBLE)
    };
    let bytes = |byte: u8| {
        literal(Value::Bytes(vec![byte; LIMIT]), types::text_type(LIMIT as u64, Collation::Binary), COERCIBLE)
    };
    let integer = |value: i64| literal(Value::Int(value), DataType::BIGINT, types::NUMERIC);
    let date = DateTime::from_unix_micros(1_727_222_400_000_000, &jiff::tz::TimeZone::UTC).unwrap();
    vec![
        text("a"),
        text("'"),
        text("\u{0}"),
        text("ı"),
        text("%M"),
        text("%r"),
        text("1"),
        text("a,"),
        text("Bx"),
        text("😀"),
        literal(Value::from("a"), DataType::varchar(1, Collation::DEFAULT), COERCIBLE),
        literal(Value::from(""), DataType::varchar(0, Collation::DEFAULT), COERCIBLE),
        bytes(0),
        bytes(0xFF),
        integer(i64::MAX),
        integer(i64::MIN),
        integer(-1),
        integer(0),
        integer(1),
        integer(3),
        integer(LIMIT as i64 - 1),
        integer(1 << 32),
        literal(Value::UInt(u64::MAX), DataType::BIGINT_UNSIGNED, types::NUMERIC),
        literal(Value::Double(1e308), DataType::DOUBLE, types::NUMERIC),
        literal(Value::Decimal(Decimal::largest(65, 0)), DataType::decimal(65, 0), types::NUMERIC),
        literal(Value::DateTime(date), DataType::new(rauk_types::TypeKind::DateTime), types::NUMERIC),
        Expr::null(),
    ]
}

#[test]
fn no_result_is_longer_than_a_packet() {
    let all = arguments();
    let bind = BindContext::default();
    let mut random = StdRng::seed_from_u64(7);
    let (mut called, mut refused) = (0, 0);
    for function in registered() {
        for round in 0..400 {
            let most = usize::from(function.max).min(usize::from(function.min) + 6);
            let count = random.random_range(usize::from(function.min)..=most);
            // All the same, or any.
            let first = random.random_range(0..all.len());
            let mut arguments: Vec<Expr> = (0..count)
                .map(|_| all[if round % 4 == 0 { first } else { random.random_range(0..all.len()) }].clone())
                .collect();
            let typing = Typing { name: function.name, arguments: &mut arguments, context: &bind };
            let Ok(derived) = (function.ty)(typing) else { continue };
            let mut context = Context::new(Arc::new(crate::expr::tests::Variables));
            context.max_allowed_packet = LIMIT;
            let owned: Vec<Value> = arguments
                .iter()
                .map(|argument| argument.eval(&crate::expr::NoColumns, &mut context).expect("a literal has a value"))
                .collect();
            if function.null_on_null && owned.iter().any(Value::is_null) {
                continue;
            }
            let values: Vec<Val<'_>> = owned.iter().map(|value| Val::Ref(value.as_ref())).collect();
            let call = Call { name: function.name, arguments: &arguments, values: &values, ty: &derived.ty };
            let Ok(value) = (function.eval)(&call, &mut context) else { continue };
            let length = value.as_ref().as_bytes().map_or(0, <[u8]>::len);
            let most = match function.name {
                "UPPER" | "LOWER" | "SOUNDEX" => ALIKE,
                "CONCAT" | "CONCAT_WS" | "DATE_FORMAT" | "TIME_FORMAT" | "FROM_UNIXTIME" => LIMIT + SHORT,
                _ => LIMIT,
            };
            assert!(length <= most, "{} gives {length} bytes of {:.300}", function.name, format!("{owned:?}"));
            called += 1;
            let warned = context.warnings.iter().any(|warning| warning.code == OVERFLOWED);
            assert!(!warned || value.is_null(), "{} warns and gives a value", function.name);
            refused += usize::from(warned);
            // What everybody calls keeps the bound exactly.
            let value = function.call(&arguments, &values, &derived.ty, &mut context);
            assert!(value.map_or(0, |v| v.as_ref().as_bytes().map_or(0, <[u8]>::len)) <= LIMIT, "{}", function.name);
        }
    }
    assert!(called > 20_000 && refused > 300, "{called} {refused}");
}
