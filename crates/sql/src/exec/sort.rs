//! Sort keys, and the buffer that sorts.
//!
//! A sort key is bytes whose order is the order of the values: NULL first, text by its collation, descending parts inverted. Equal bytes are
//! equal values, so grouping and DISTINCT use the same keys. With a limit only the best rows are kept, so that ORDER BY … LIMIT 10 of a
//! large table needs the memory of a few rows. Rows with equal keys keep the order they came in. What is sorted are values, or whatever leads to them
//! ([`Payload`]).

use crate::memory::Memory;
use rauk_types::{DataType, Decimal, KeyPart, MysqlError, TypeKind, Value, ValueRef};

/// Appends a value's key.
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
            decimal(&v, out);
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

/// Appends the key of one side of an equality whose sides are encoded as `class`.
pub(crate) fn append_class_key(value: ValueRef<'_>, class: &DataType, out: &mut Vec<u8>) {
    append_key(in_class(value, class), class, false, out);
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
    if value.is_zero() {
        out.push(1);
        return;
    }
    let mut text = Vec::with_capacity(72);
    value.abs().append_text(&mut text);
    let point = text.iter().position(|b| *b == b'.').unwrap_or(text.len());
    let mut digits: Vec<u8> = text.iter().copied().filter(u8::is_ascii_digit).collect();
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    digits.drain(..zeros);
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    // The number is 0.DIGITS × 10^exponent.
    let exponent = point as i32 - zeros as i32;
    let start = out.len();
    out.push((exponent + 128) as u8);
    out.extend_from_slice(&digits);
    out.push(0);
    if value.is_negative() {
        out[start..].iter_mut().for_each(|b| *b = !*b);
        out.insert(start, 0);
    } else {
        out.insert(start, 2);
    }
}

/// What is sorted beside its key.
pub(crate) trait Payload {
    /// The memory that it takes.
    fn bytes(&self) -> usize;
}

impl Payload for Vec<Value> {
    fn bytes(&self) -> usize {
        crate::memory::values_bytes(self) + size_of::<Self>()
    }
}

/// Rows that wait to be sorted.
pub(crate) struct Sorter<P> {
    rows: Vec<SortedRow<P>>,
    /// Rows that will be wanted; `usize::MAX`: all.
    keep: usize,
    arrived: u64,
    memory: Memory,
    cut: Option<Box<[u8]>>,
}

pub(crate) struct SortedRow<P> {
    key: Box<[u8]>,
    arrival: u64,
    pub payload: P,
}

impl<P: Payload> Sorter<P> {
    pub fn new(keep: usize, memory: Memory) -> Self {
        Sorter { rows: Vec::new(), keep, arrived: 0, memory, cut: None }
    }

    /// Whether a row with this key could still be among those kept.
    pub fn wants(&self, key: &[u8]) -> bool {
        self.cut.as_ref().is_none_or(|cut| key < &**cut)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn push(&mut self, key: &[u8], payload: P) -> Result<(), MysqlError> {
        if self.keep == 0 || !self.wants(key) {
            return Ok(());
        }
        self.memory.take(row_bytes(key, &payload))?;
        self.rows.push(SortedRow { key: key.into(), arrival: self.arrived, payload });
        self.arrived += 1;
        if self.keep < usize::MAX / 4 && self.rows.len() >= self.keep * 2 + 256 {
            self.shrink();
        }
        Ok(())
    }

    fn shrink(&mut self) {
        let keep = self.keep;
        self.rows.select_nth_unstable_by(keep - 1, order);
        for row in self.rows.drain(keep..) {
            self.memory.give(row_bytes(&row.key, &row.payload));
        }
        self.cut = Some(self.rows[keep - 1].key.clone());
    }

    pub fn finish(mut self) -> Vec<SortedRow<P>> {
        self.rows.sort_unstable_by(order);
        self.rows.truncate(self.keep);
        self.rows
    }
}

fn order<P>(a: &SortedRow<P>, b: &SortedRow<P>) -> std::cmp::Ordering {
    a.key.cmp(&b.key).then(a.arrival.cmp(&b.arrival))
}

/// Of a row among others: the table of rows has up to twice as many places as rows.
fn row_bytes(key: &[u8], payload: &impl Payload) -> usize {
    key.len() + 48 + payload.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_bounded_sort_keeps_the_first_rows_in_order() {
        for keep in [0usize, 1, 3, 100, usize::MAX] {
            let mut sorter = Sorter::new(keep, Memory::default());
            let mut expected = Vec::new();
            for i in 0..1000u64 {
                let v = (i * 7919) % 100;
                let mut bytes = Vec::new();
                append_key(ValueRef::UInt(v), &DataType::BIGINT, true, &mut bytes);
                sorter.push(&bytes, vec![Value::UInt(v), Value::UInt(i)]).unwrap();
                expected.push((std::cmp::Reverse(v), i));
            }
            expected.sort();
            expected.truncate(keep);
            let got: Vec<_> = sorter
                .finish()
                .into_iter()
                .map(|r| match r.payload[..] {
                    [Value::UInt(v), Value::UInt(i)] => (std::cmp::Reverse(v), i),
                    _ => unreachable!(),
                })
                .collect();
            assert_eq!(got, expected, "keep {keep}");
        }
    }
}
