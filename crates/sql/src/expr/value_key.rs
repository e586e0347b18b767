//! Keys of values: bytes whose order is the order of the values.
//!
//! NULL comes first, text by its collation; descending parts are inverted. Equal bytes are equal values, so sorting,
//! grouping, DISTINCT, hash tables and the answers of `IN` use the same keys. An equality of two types has a class, the
//! type to which both sides are brought before they are encoded ([`in_class`]).

use super::json;
use rauk_types::{DataType, Decimal, KeyPart, TypeKind, ValueRef};

/// Appends a value's key. A DECIMAL counts with the digits that its type shows: a quotient has some more.
pub(crate) fn append_key(value: ValueRef<'_>, ty: &DataType, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        ValueRef::Null => out.push(0),
        ValueRef::Int(v) => {
            out.push(1);
            integer(v < 0, v as u64, out);
        }
        ValueRef::UInt(v) => {
            out.push(1);
            integer(false, v, out);
        }
        ValueRef::Double(v) => {
            out.push(1);
            // -0.0 equals 0.0.
            let bits = (v + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        ValueRef::Decimal(v) => {
            out.push(1);
            decimal(&shown(v, ty), out);
        }
        ValueRef::Date(v) => {
            out.push(1);
            out.extend_from_slice(&v.packed().to_be_bytes());
        }
        ValueRef::Time(v) => {
            out.push(1);
            out.extend_from_slice(&(v.micros() as u64 ^ 1 << 63).to_be_bytes());
        }
        ValueRef::DateTime(v) => {
            out.push(1);
            out.extend_from_slice(&v.packed().to_be_bytes());
        }
        ValueRef::Timestamp(v) => {
            out.push(1);
            out.extend_from_slice(&(v as u64 ^ 1 << 63).to_be_bytes());
        }
        ValueRef::Json(v) => {
            out.push(1);
            json::append_key(v, out);
        }
        ValueRef::Str(_) | ValueRef::Bytes(_) => {
            let kind = if ty.is_text() { TypeKind::VarChar } else { TypeKind::VarBinary };
            let collation = if ty.is_text() { ty.collation } else { rauk_types::Collation::Binary };
            let ty = DataType { length: u32::MAX, collation, ..DataType::new(kind) };
            let part = KeyPart { column: 0, ty, nullable: true, prefix: None, descending: false };
            match (value, ty.is_text()) {
                (ValueRef::Str(text), false) => part.encode(ValueRef::Bytes(text.as_bytes()), out),
                _ => part.encode(value, out),
            }
        }
    }
    if descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

/// A DECIMAL with the digits that its type shows.
pub(crate) fn shown(value: Decimal, ty: &DataType) -> Decimal {
    if ty.kind == TypeKind::Decimal && value.scale() > ty.scale { value.rounded(ty.scale) } else { value }
}

/// Appends the key of one side of an equality whose sides are encoded as `class`. All digits of a DECIMAL count.
pub(crate) fn append_class_key(value: ValueRef<'_>, class: &DataType, out: &mut Vec<u8>) {
    match in_class(value, class) {
        value if class.kind == TypeKind::Json && !matches!(value, ValueRef::Null | ValueRef::Json(_)) => {
            let document = json::scalar_document(value);
            append_key(document.as_ref(), class, false, out);
        }
        ValueRef::Decimal(value) => {
            out.push(1);
            decimal(&value, out);
        }
        value => append_key(value, class, false, out),
    }
}

/// Brings both sides of an equality into one type, so that equal values have equal keys.
pub(crate) fn in_class<'a>(value: ValueRef<'a>, class: &DataType) -> ValueRef<'a> {
    match (class.kind, value) {
        (TypeKind::Decimal, ValueRef::Int(v)) => ValueRef::Decimal(Decimal::from(v)),
        (TypeKind::Decimal, ValueRef::UInt(v)) => ValueRef::Decimal(Decimal::from(v)),
        (TypeKind::Double, ValueRef::Int(v)) => ValueRef::Double(v as f64),
        (TypeKind::Double, ValueRef::UInt(v)) => ValueRef::Double(v as f64),
        (TypeKind::Double, ValueRef::Decimal(v)) => ValueRef::Double(v.to_f64()),
        (TypeKind::DateTime, ValueRef::Date(v)) => ValueRef::DateTime(v.at_midnight()),
        (_, value) => value,
    }
}

fn integer(negative: bool, bits: u64, out: &mut Vec<u8>) {
    out.push(u8::from(!negative));
    out.extend_from_slice(&bits.to_be_bytes());
}

/// Sign, exponent, digits without zeros at either end.
fn decimal(value: &Decimal, out: &mut Vec<u8>) {
    match value.unscaled_i128() {
        Some(0) => out.push(1),
        Some(unscaled) => {
            // The digits from the last one on.
            let mut digits = [0; 40];
            let (mut rest, mut first) = (unscaled.unsigned_abs(), digits.len());
            // Of two registers until one is enough: dividing them is slow.
            while rest > u128::from(u64::MAX) {
                first -= 1;
                digits[first] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            let mut rest = rest as u64;
            while rest > 0 {
                first -= 1;
                digits[first] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            let exponent = (digits.len() - first) as i32 - i32::from(value.scale());
            scientific(unscaled < 0, exponent, &digits[first..], out);
        }
        None => {
            let mut text = Vec::with_capacity(72);
            value.abs().append_text(&mut text);
            let point = text.iter().position(|b| *b == b'.').unwrap_or(text.len());
            let digits: Vec<u8> = text.iter().copied().filter(u8::is_ascii_digit).collect();
            let zeros = digits.iter().take_while(|b| **b == b'0').count();
            scientific(value.is_negative(), point as i32 - zeros as i32, &digits[zeros..], out);
        }
    }
}

/// The number 0.DIGITS × 10^exponent; the first digit is not zero.
fn scientific(negative: bool, exponent: i32, digits: &[u8], out: &mut Vec<u8>) {
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    out.push(if negative { 0 } else { 2 });
    let start = out.len();
    out.push((exponent + 128) as u8);
    out.extend_from_slice(&digits[..digits.len() - zeros]);
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::Value;

    fn key(value: Value, ty: &DataType) -> Vec<u8> {
        let mut out = Vec::new();
        append_key(value.as_ref(), ty, false, &mut out);
        out
    }

    #[test]
    fn keys_are_in_the_order_of_the_values() {
        let integers =
            [Value::Null, Value::Int(i64::MIN), Value::Int(-1), Value::Int(0), Value::UInt(5), Value::UInt(u64::MAX)];
        for pair in integers.windows(2) {
            assert!(key(pair[0].clone(), &DataType::BIGINT) < key(pair[1].clone(), &DataType::BIGINT), "{pair:?}");
        }
        assert_eq!(key(Value::Int(5), &DataType::BIGINT), key(Value::UInt(5), &DataType::BIGINT));
        let decimals = [
            "-1000", "-100.5", "-100.45", "-1", "-0.01", "-0.001", "0", "0.001", "0.01", "0.9", "1", "1.01", "9", "10",
            "99.9", "1000",
        ];
        let decimals: Vec<Value> =
            decimals.iter().map(|t| Value::Decimal(Decimal::parse_prefix(t.as_bytes()).value)).collect();
        let ty = DataType::decimal(65, 30);
        for pair in decimals.windows(2) {
            assert!(key(pair[0].clone(), &ty) < key(pair[1].clone(), &ty), "{pair:?}");
        }
        let equal = |t: &str| key(Value::Decimal(Decimal::parse_prefix(t.as_bytes()).value), &ty);
        assert_eq!(equal("1.50"), equal("1.5"));
        assert_eq!(equal("-0.0"), equal("0"));
        let doubles = [f64::MIN, -1.5, -0.1, 0.0, 1e-300, 2.0, f64::MAX];
        for pair in doubles.windows(2) {
            assert!(key(pair[0].into(), &DataType::DOUBLE) < key(pair[1].into(), &DataType::DOUBLE));
        }
        assert_eq!(key(Value::from(-0.0), &DataType::DOUBLE), key(Value::from(0.0), &DataType::DOUBLE));
    }
}
