//! Histograms of columns: ANALYZE TABLE … UPDATE HISTOGRAM.
//!
//! A column with no more different values than buckets has a *singleton* histogram, a bucket a value. Others have an
//! *equi-height* one, whose buckets hold about as many rows each, with their lowest and highest value and the number of
//! different values. Each bucket says which part of the rows lies in it and in those before it; NULLs are counted apart. The
//! form is MySQL 8's, which `information_schema.COLUMN_STATISTICS` shows as JSON.
//!
//! Texts count by their first [`MOST_CHARACTERS`] characters, as their collation compares them. A value between the bounds of a
//! bucket lies as far into it as it lies between them; a text lies in the middle.
//!
//! A histogram is made from the rows that a sample gives, and by request only. The catalog keeps it as text ([`Histogram::to_text`]): JSON with values
//! as they are stored, which is not the JSON that users see.

use rauk_types::datetime::{DateFlags, parse_date_time};
use rauk_types::format::append_text;
use rauk_types::{Collation, ColumnId, DataType, TypeKind, Value, ValueRef};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Characters (bytes of a binary string) that count.
const MOST_CHARACTERS: usize = 42;
/// Buckets that may be asked for.
pub(crate) const MOST_BUCKETS: u64 = 1024;
/// Buckets where none are asked for.
pub(crate) const USUAL_BUCKETS: u64 = 100;

/// Where a value lies among others of its column.
#[derive(Clone, Debug)]
pub(crate) enum Spot {
    /// Numbers, dates and times.
    At(f64),
    /// Texts, and how they compare.
    Text(Vec<u8>, Collation),
}

impl PartialEq for Spot {
    fn eq(&self, other: &Spot) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Spot {
    fn partial_cmp(&self, other: &Spot) -> Option<Ordering> {
        match (self, other) {
            (Spot::At(a), Spot::At(b)) => a.partial_cmp(b),
            (Spot::Text(a, collation), Spot::Text(b, _)) => Some(collation.compare(a, b)),
            _ => None,
        }
    }
}

impl Spot {
    /// `None`: NULL, and what is no value of such a column.
    pub fn of(value: ValueRef<'_>, ty: &DataType) -> Option<Spot> {
        if !(ty.is_text() || ty.is_bytes()) {
            return position(value, ty).map(Spot::At);
        }
        let collation = if ty.is_text() { ty.collation } else { Collation::Binary };
        Some(Spot::Text(shortened(value).as_bytes()?.to_vec(), collation))
    }
}

/// Where a value lies among those of a column: numbers as they are, dates in days, times in seconds. `None`: texts, the zero
/// date, and what is no value of such a column. A timestamp counts as UTC, whatever the time zone is.
pub(crate) fn position(value: ValueRef<'_>, ty: &DataType) -> Option<f64> {
    const DAY: f64 = 86_400e6;
    const DAYS_BEFORE_1970: f64 = 719_528.0;
    let is_date = matches!(ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp);
    match value {
        ValueRef::Date(date) if is_date => date.to_days().map(|days| days as f64),
        ValueRef::DateTime(time) if is_date => time.to_micros().map(|micros| micros as f64 / DAY),
        ValueRef::Timestamp(micros) if is_date && micros != 0 => Some(DAYS_BEFORE_1970 + micros as f64 / DAY),
        ValueRef::Str(text) if is_date => {
            let parsed = parse_date_time(text.as_bytes(), DateFlags::default()).ok()?;
            position(ValueRef::DateTime(parsed.to_precision(6, true)?), ty)
        }
        ValueRef::Time(time) if ty.kind == TypeKind::Time => Some(time.micros() as f64 / 1e6),
        ValueRef::Int(number) if ty.is_numeric() || ty.holds_integer() => Some(number as f64),
        ValueRef::UInt(number) if ty.is_numeric() || ty.holds_integer() => Some(number as f64),
        ValueRef::Double(number) if ty.is_numeric() => Some(number),
        ValueRef::Decimal(number) if ty.is_numeric() => Some(number.to_f64()),
        ValueRef::Str(text) if ty.is_numeric() => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

/// The characters of a text that count.
pub(crate) fn shortened(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        ValueRef::Str(text) => {
            ValueRef::Str(text.char_indices().nth(MOST_CHARACTERS).map_or(text, |(end, _)| &text[..end]))
        }
        ValueRef::Bytes(bytes) => ValueRef::Bytes(&bytes[..bytes.len().min(MOST_CHARACTERS)]),
        value => value,
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    low: (Spot, Value),
    high: (Spot, Value),
    /// The part of all rows that lies in this bucket and in those before it.
    until: f64,
    distinct: u64,
}

/// The spread of a column's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    pub(crate) column: ColumnId,
    ty: DataType,
    buckets: Vec<Bucket>,
    singleton: bool,
    /// The part of the rows with NULL.
    pub(crate) nulls: f64,
    /// Of the rows so many were looked at.
    sampling_rate: f64,
    asked: u64,
    /// Microseconds since 1970.
    updated: i64,
}

/// A histogram as the catalog has it. Fields are added at the end, with a default.
#[derive(Serialize, Deserialize)]
struct Stored {
    ty: DataType,
    singleton: bool,
    nulls: f64,
    sampling_rate: f64,
    asked: u64,
    updated: i64,
    /// Low, high where it is another, until, distinct.
    buckets: Vec<(Value, Option<Value>, f64, u64)>,
}

/// Whether a column of this type can have one.
pub(crate) fn is_supported(ty: &DataType) -> bool {
    !matches!(ty.kind, TypeKind::Json | TypeKind::Geometry)
}

/// How a histogram is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    /// Buckets that were asked for.
    pub buckets: u64,
    /// The part of the table's rows that was looked at.
    pub sampling_rate: f64,
    /// Microseconds since 1970.
    pub now: i64,
}

impl Histogram {
    /// Of the different values of a column in their order, with the number of their rows, and so many rows with NULL.
    pub(crate) fn new(column: ColumnId, ty: DataType, values: Vec<(Value, u64)>, nulls: u64, made: Made) -> Histogram {
        let filled = values.iter().map(|(_, count)| count).sum::<u64>();
        let all = (filled + nulls).max(1) as f64;
        let singleton = values.len() as u64 <= made.buckets;
        let mut buckets: Vec<Bucket> = Vec::new();
        let (mut before, mut closed, mut open) = (0u64, 0u64, false);
        for (value, count) in values {
            // A frequent value has a bucket of its own, while there are enough of them.
            let parts = ((before + count) as f64 * made.buckets as f64 / filled as f64) as u64;
            let is_frequent = count * made.buckets >= filled;
            open &= !(is_frequent && (buckets.len() as u64) < parts);
            before += count;
            // The zero date lies before all others.
            let Some(spot) = Spot::of(value.as_ref(), &ty) else { continue };
            let until = before as f64 / all;
            match buckets.last_mut().filter(|_| open) {
                Some(bucket) => {
                    bucket.high = (spot, value);
                    bucket.until = until;
                    bucket.distinct += 1;
                }
                None => {
                    buckets.push(Bucket {
                        low: (spot.clone(), value.clone()),
                        high: (spot, value),
                        until,
                        distinct: 1,
                    });
                }
            }
            // It is full when it has reached the next of so many equal parts.
            open = !singleton && parts <= closed;
            closed = closed.max(parts);
        }
        let nulls = nulls as f64 / all;
        let Made { buckets: asked, sampling_rate, now: updated } = made;
        Histogram { column, ty, buckets, singleton, nulls, sampling_rate, asked, updated }
    }

    /// For the catalog.
    pub(crate) fn to_text(&self) -> String {
        let bucket = |bucket: &Bucket| {
            let high = (bucket.high.1 != bucket.low.1).then(|| bucket.high.1.clone());
            (bucket.low.1.clone(), high, bucket.until, bucket.distinct)
        };
        let stored = Stored {
            ty: self.ty,
            singleton: self.singleton,
            nulls: self.nulls,
            sampling_rate: self.sampling_rate,
            asked: self.asked,
            updated: self.updated,
            buckets: self.buckets.iter().map(bucket).collect(),
        };
        serde_json::to_string(&stored).expect("a histogram can always be written as JSON")
    }

    /// From the catalog. `Err`: why it cannot be read.
    pub(crate) fn from_text(column: ColumnId, text: &str) -> Result<Histogram, String> {
        let Stored { ty, singleton, nulls, sampling_rate, asked, updated, buckets } =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let spot = |value: &Value| Spot::of(value.as_ref(), &ty).ok_or_else(|| format!("{value:?} is no value of it"));
        let bucket = |(low, high, until, distinct): (Value, Option<Value>, f64, u64)| {
            let high = high.unwrap_or_else(|| low.clone());
            Ok(Bucket { low: (spot(&low)?, low), high: (spot(&high)?, high), until, distinct: distinct.max(1) })
        };
        let buckets = buckets.into_iter().map(bucket).collect::<Result<_, String>>()?;
        Ok(Histogram { column, ty, buckets, singleton, nulls, sampling_rate, asked, updated })
    }

    /// Whether it is of a column as it is now.
    pub(crate) fn is_of(&self, column: &rauk_types::Column) -> bool {
        self.column == column.id && self.ty == column.ty
    }

    /// Different values.
    pub(crate) fn distinct(&self) -> f64 {
        self.buckets.iter().map(|bucket| bucket.distinct as f64).sum()
    }

    /// The part of the rows before a bucket.
    fn before(&self, bucket: usize) -> f64 {
        bucket.checked_sub(1).map_or(0.0, |last| self.buckets[last].until)
    }

    /// The part of the rows that has a value; of one that no bucket has, nothing.
    pub(crate) fn part_of(&self, spot: &Spot) -> f64 {
        let at = self.buckets.partition_point(|bucket| bucket.high.0 < *spot);
        match self.buckets.get(at) {
            Some(bucket) if bucket.low.0 <= *spot => (bucket.until - self.before(at)) / bucket.distinct as f64,
            _ => 0.0,
        }
    }

    /// The part of the rows that lies below a value, or with `inclusive` at most at it.
    pub(crate) fn part_below(&self, spot: &Spot, inclusive: bool) -> f64 {
        let at = self.buckets.partition_point(|bucket| bucket.high.0 < *spot);
        let Some(bucket) = self.buckets.get(at) else { return 1.0 - self.nulls };
        let (before, whole) = (self.before(at), bucket.until - self.before(at));
        if *spot < bucket.low.0 {
            return before;
        }
        let one = whole / bucket.distinct as f64;
        let within = match (&bucket.low.0, &bucket.high.0, spot) {
            _ if *spot == bucket.high.0 => 1.0 - one / whole.max(f64::MIN_POSITIVE),
            (Spot::At(low), Spot::At(high), Spot::At(at)) => {
                let within = (at - low) / (high - low);
                if within.is_finite() { within } else { 0.5 }
            }
            _ if *spot == bucket.low.0 => 0.0,
            _ => 0.5,
        };
        let inclusive = if inclusive { one } else { 0.0 };
        (before + whole * within.clamp(0.0, 1.0) + inclusive).min(bucket.until)
    }

    /// As MySQL prints it: keys by their length, then their bytes. `collation`: the number of the column's.
    pub(crate) fn json(&self, collation: u16) -> String {
        let mut out = String::from("{\"buckets\": [");
        for (number, bucket) in self.buckets.iter().enumerate() {
            out.push_str(if number > 0 { ", [" } else { "[" });
            out.push_str(&self.shown(&bucket.low.1));
            if !self.singleton {
                out.push_str(&format!(", {}", self.shown(&bucket.high.1)));
            }
            out.push_str(&format!(", {}", number_text(bucket.until)));
            if !self.singleton {
                out.push_str(&format!(", {}", bucket.distinct));
            }
            out.push(']');
        }
        let data_type = match self.ty.kind {
            TypeKind::Bit | TypeKind::Year => "uint",
            TypeKind::Enum => "enum",
            TypeKind::Set => "set",
            _ if self.ty.is_integer() => {
                if self.ty.unsigned {
                    "uint"
                } else {
                    "int"
                }
            }
            TypeKind::Decimal => "decimal",
            TypeKind::Float | TypeKind::Double => "double",
            TypeKind::Date => "date",
            TypeKind::Time => "time",
            TypeKind::DateTime | TypeKind::Timestamp => "datetime",
            _ => "string",
        };
        let mut updated = Vec::new();
        let micros = DataType { scale: 6, ..DataType::new(TypeKind::Timestamp) };
        append_text(ValueRef::Timestamp(self.updated), &micros, &mut updated);
        let updated = String::from_utf8_lossy(&updated);
        let kind = if self.singleton { "singleton" } else { "equi-height" };
        out.push_str(&format!(
            "], \"data-type\": \"{data_type}\", \"null-values\": {}, \"collation-id\": {collation}, \
             \"last-updated\": \"{updated}\", \"sampling-rate\": {}, \"histogram-type\": \"{kind}\", \
             \"number-of-buckets-specified\": {}}}",
            number_text(self.nulls),
            number_text(self.sampling_rate),
            self.asked
        ));
        out
    }

    /// A value in JSON: numbers as they are, texts in base64, others in quotes.
    fn shown(&self, value: &Value) -> String {
        let text = |ty: &DataType| {
            let mut out = Vec::new();
            append_text(value.as_ref(), ty, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        match value {
            Value::Str(text) => format!("\"base64:type254:{}\"", base64(text.as_bytes())),
            Value::Bytes(bytes) => format!("\"base64:type254:{}\"", base64(bytes)),
            Value::Double(number) => number_text(*number),
            // Numbers of members, and numbers without zeros before them.
            Value::Int(_) | Value::UInt(_) => text(&DataType::BIGINT),
            Value::Decimal(_) => text(&DataType { zerofill: false, ..self.ty }),
            Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => {
                format!("\"{}\"", text(&DataType { scale: 6, ..self.ty }))
            }
            _ => format!("\"{}\"", text(&self.ty)),
        }
    }
}

/// A double, with a point even where it is whole.
fn number_text(number: f64) -> String {
    let text = format!("{number}");
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') { format!("{text}.0") } else { text }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let shown = DIGITS[(bits >> (18 - 6 * digit) & 63) as usize];
            out.push(if digit <= three.len() { char::from(shown) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = Value>, ty: DataType, buckets: u64) -> Histogram {
        let mut counted: Vec<(Value, u64)> = Vec::new();
        let mut nulls = 0;
        for value in values {
            let Some(spot) = Spot::of(value.as_ref(), &ty) else {
                nulls += 1;
                continue;
            };
            let at = counted.partition_point(|(other, _)| Spot::of(other.as_ref(), &ty).unwrap() < spot);
            match counted.get_mut(at).filter(|(other, _)| Spot::of(other.as_ref(), &ty).unwrap() == spot) {
                Some((_, count)) => *count += 1,
                None => counted.insert(at, (value, 1)),
            }
        }
        Histogram::new(ColumnId(1), ty, counted, nulls, Made { buckets, sampling_rate: 1.0, now: 1_000_000 })
    }

    fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-9, "{got} for {expected}");
    }

    #[test]
    fn few_values_have_a_bucket_each() {
        let values = [1, 1, 2, 5, 5, 5, 5].map(Value::Int).into_iter().chain([Value::Null]);
        let of = of(values, DataType::BIGINT, 4);
        assert!(of.singleton && of.buckets.len() == 3);
        let part = |value: i64| of.part_of(&Spot::At(value as f64));
        assert_eq!([part(0), part(1), part(2), part(3), part(5), part(6)], [0.0, 0.25, 0.125, 0.0, 0.5, 0.0]);
        let below = |value: i64, inclusive| of.part_below(&Spot::At(value as f64), inclusive);
        assert_eq!([below(0, true), below(1, false), below(1, true), below(3, true)], [0.0, 0.0, 0.25, 0.375]);
        assert_eq!([below(5, false), below(5, true), below(9, false)], [0.375, 0.875, 0.875]);
        assert_eq!(of.nulls, 0.125);
        assert_eq!(
            of.json(8),
            "{\"buckets\": [[1, 0.25], [2, 0.375], [5, 0.875]], \"data-type\": \"int\", \"null-values\": 0.125, \
             \"collation-id\": 8, \"last-updated\": \"1970-01-01 00:00:01.000000\", \"sampling-rate\": 1.0, \
             \"histogram-type\": \"singleton\", \"number-of-buckets-specified\": 4}"
        );
    }

    #[test]
    fn many_values_share_buckets_of_equal_height() {
        for (count, buckets) in [(1000, 10), (1000, 7), (11, 10), (1000, 1), (5000, 1024)] {
            let of = of((0..count).map(Value::Int), DataType::BIGINT, buckets);
            assert!(!of.singleton && of.buckets.len() as u64 <= buckets, "{count} {buckets}: {}", of.buckets.len());
            near(of.buckets.last().unwrap().until, 1.0);
            near(of.distinct(), count as f64);
            for value in [0, count / 3, count / 2, count - 1] {
                let below = of.part_below(&Spot::At(value as f64), false);
                assert!((below - value as f64 / count as f64).abs() < 0.02 + 1.0 / count as f64, "{value}: {below}");
                near(of.part_of(&Spot::At(value as f64)), 1.0 / count as f64);
            }
            near(of.part_below(&Spot::At(-1.0), true), 0.0);
            near(of.part_below(&Spot::At(count as f64), true), 1.0);
        }
    }

    #[test]
    fn a_frequent_value_fills_its_bucket() {
        // Nine of ten rows have 500.
        let values = (0..1000).chain(std::iter::repeat_n(500, 9000)).map(Value::Int);
        let of = of(values, DataType::BIGINT, 10);
        let below = |value: f64| of.part_below(&Spot::At(value), false);
        assert!(below(400.0) < 0.06 && below(600.0) > 0.9, "{} {}", below(400.0), below(600.0));
        assert!(of.json(8).contains("\"histogram-type\": \"equi-height\""));
    }

    #[test]
    fn texts_count_as_they_compare() {
        let ty = DataType { length: 100, ..DataType::new(TypeKind::VarChar) };
        let values = ["a", "A", "b", "c"].map(|text| Value::Str(text.to_string()));
        let few = of(values, ty, 100);
        let spot = |text: &str| Spot::of(ValueRef::Str(text), &ty).unwrap();
        near(few.part_of(&spot("a")), 0.5);
        near(few.part_below(&spot("B"), true), 0.75);
        assert!(few.json(255).starts_with("{\"buckets\": [[\"base64:type254:YQ==\", 0.5], "), "{}", few.json(255));
        // What is longer counts by its beginning.
        let long = |end: &str| format!("{}{end}", "x".repeat(50));
        assert_eq!(spot(&long("1")), spot(&long("2")));
        assert!(spot("x") < spot(&long("")) && spot("y") > spot(&long("")));
    }

    #[test]
    fn nothing_and_only_nulls_are_histograms_too() {
        let none = of([], DataType::BIGINT, 100);
        assert!(none.json(8).starts_with("{\"buckets\": [], \"data-type\": \"int\", \"null-values\": 0.0, "));
        near(none.part_below(&Spot::At(1.0), true), 1.0);
        let nulls = of([Value::Null, Value::Null], DataType::BIGINT, 100);
        assert_eq!((nulls.nulls, nulls.part_of(&Spot::At(1.0))), (1.0, 0.0));
        for (text, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

    #[test]
    fn the_catalog_gives_back_what_it_was_given() {
        let of_kind = DataType::new;
        let text = DataType { length: 9, ..of_kind(TypeKind::VarChar) };
        for (values, ty) in [
            (vec![], DataType::BIGINT),
            (vec![Value::Null], DataType::BIGINT),
            (vec![Value::Int(-5), Value::Int(i64::MAX), Value::Int(7)], DataType::BIGINT),
            (vec![Value::UInt(u64::MAX), Value::UInt(0)], DataType { unsigned: true, ..DataType::BIGINT }),
            (vec![Value::Double(0.1), Value::Double(1e300), Value::Double(-7.3e-9)], DataType::DOUBLE),
            (vec![Value::Str("a\"b".into()), Value::Str("ä".into()), Value::Str(String::new())], text),
            (vec![Value::Bytes(vec![0, 255]), Value::Bytes(vec![1])], of_kind(TypeKind::VarBinary)),
        ] {
            for buckets in [1, 2, 100] {
                let made = of(values.clone(), ty, buckets);
                let read = Histogram::from_text(ColumnId(1), &made.to_text()).unwrap();
                assert_eq!(read, made);
                assert_eq!(read.json(8), made.json(8));
            }
        }
        let thirds = of((0..999).map(|n| Value::Int(n % 7)), DataType::BIGINT, 3);
        assert_eq!(Histogram::from_text(ColumnId(1), &thirds.to_text()), Ok(thirds));
        for text in ["", "{}", "[1]", "null"] {
            assert!(Histogram::from_text(ColumnId(1), text).is_err(), "{text}");
        }
    }

    /// As it is on disks.
    #[test]
    fn the_text_of_the_catalog_keeps_its_form() {
        let made = of([Value::Int(1), Value::Int(2), Value::Null], DataType::BIGINT, 1);
        let ty = serde_json::to_string(&DataType::BIGINT).unwrap();
        let expected = format!(
            "{{\"ty\":{ty},\"singleton\":false,\"nulls\":0.3333333333333333,\"sampling_rate\":1.0,\"asked\":1,\
             \"updated\":1000000,\"buckets\":[[{{\"Int\":1}},{{\"Int\":2}},0.6666666666666666,2]]}}"
        );
        assert_eq!(made.to_text(), expected);
    }

    #[test]
    fn values_of_all_forms_have_the_same_position() {
        use rauk_types::{Date, DateTime, Time};
        let date = DataType::new(TypeKind::DateTime);
        let day = position(ValueRef::Date(Date::new(1995, 3, 15).unwrap()), &date).unwrap();
        let noon = position(ValueRef::DateTime(DateTime::new(Date::new(1995, 3, 15).unwrap(), 43_200_000_000)), &date)
            .unwrap();
        assert_eq!(noon, day + 0.5);
        assert_eq!(position(ValueRef::Str("1995-03-15 12:00:00"), &date), Some(noon));
        let epoch = position(ValueRef::Date(Date::new(1970, 1, 2).unwrap()), &date);
        assert_eq!(position(ValueRef::Timestamp(86_400_000_000), &date), epoch);
        let number = DataType::new(TypeKind::Decimal);
        assert_eq!(position(ValueRef::Int(-7), &number), Some(-7.0));
        assert_eq!(position(ValueRef::Str(" 2.5"), &number), Some(2.5));
        let time = DataType::new(TypeKind::Time);
        assert_eq!(position(ValueRef::Time(Time::clipped(1_500_000)), &time), Some(1.5));
        // What lies nowhere.
        for (value, ty) in [
            (ValueRef::Null, number),
            (ValueRef::Str("x"), number),
            (ValueRef::Str("inf"), number),
            (ValueRef::Str("x"), date),
            (ValueRef::Timestamp(0), date),
            (ValueRef::Int(19_950_315), date),
            (ValueRef::Str("a"), DataType::new(TypeKind::VarChar)),
        ] {
            assert_eq!(position(value, &ty), None, "{value:?}");
        }
    }
}
