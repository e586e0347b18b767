//! Rows of the binary protocol: a bitmap of NULLs, then every other value in the form of its column's type.
//!
//! The column's type decides the width, so a value is converted to it when it is of another kind (an unsigned value in a signed
//! column and the like); no value can make the row unreadable.
use crate::packet::write;
use rauk_types::{DataType, Date, DateTime, Time, TypeKind, ValueRef, format};

/// Appends a row's payload; as many `values` as `types`.
pub fn write_row(values: &[ValueRef<'_>], types: &[DataType], out: &mut Vec<u8>) {
    out.push(0);
    let bitmap = out.len();
    out.resize(bitmap + (types.len() + 2).div_ceil(8), 0);
    for (i, (value, ty)) in values.iter().zip(types).enumerate() {
        if let ValueRef::Null = value {
            out[bitmap + (i + 2) / 8] |= 1 << ((i + 2) % 8);
        } else {
            write_value(*value, ty, out);
        }
    }
}

fn write_value(value: ValueRef<'_>, ty: &DataType, out: &mut Vec<u8>) {
    match ty.kind {
        TypeKind::TinyInt => out.push(integer(value) as u8),
        TypeKind::SmallInt | TypeKind::Year => out.extend_from_slice(&(integer(value) as u16).to_le_bytes()),
        TypeKind::MediumInt | TypeKind::Int => out.extend_from_slice(&(integer(value) as u32).to_le_bytes()),
        TypeKind::BigInt => out.extend_from_slice(&integer(value).to_le_bytes()),
        TypeKind::Float => out.extend_from_slice(&(double(value) as f32).to_le_bytes()),
        TypeKind::Double => out.extend_from_slice(&double(value).to_le_bytes()),
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => match value {
            ValueRef::Date(date) => write_datetime(date.at_midnight(), true, out),
            ValueRef::DateTime(moment) => write_datetime(moment, ty.kind == TypeKind::Date, out),
            ValueRef::Timestamp(micros) => write_datetime(utc(micros), false, out),
            _ => out.push(0),
        },
        TypeKind::Time => match value {
            ValueRef::Time(time) => write_time(time, out),
            _ => out.push(0),
        },
        _ => match value {
            ValueRef::Str(text) => write::lenenc_bytes(text.as_bytes(), out),
            ValueRef::Bytes(bytes) => write::lenenc_bytes(bytes, out),
            other => write::lenenc_with(out, |out| format::append_text(other, ty, out)),
        },
    }
}

/// The 64 bits of an integer, signed or not.
fn integer(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Int(n) => n as u64,
        ValueRef::UInt(n) => n,
        ValueRef::Double(n) if n < 0.0 => n as i64 as u64,
        ValueRef::Double(n) => n as u64,
        ValueRef::Decimal(n) => n.to_i64().map(|n| n as u64).or_else(|| n.to_u64()).unwrap_or(0),
        _ => 0,
    }
}

fn double(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::Double(n) => n,
        ValueRef::Int(n) => n as f64,
        ValueRef::UInt(n) => n as f64,
        ValueRef::Decimal(n) => n.to_f64(),
        _ => 0.0,
    }
}

fn utc(micros: i64) -> DateTime {
    const EPOCH: DateTime = Date::from_parts(1970, 1, 1).at_midnight();
    if micros == 0 { DateTime::ZERO } else { EPOCH.add_micros(micros).unwrap_or(DateTime::ZERO) }
}

/// 0, 4, 7 or 11 bytes: what is zero at the end is left out.
fn write_datetime(moment: DateTime, date_only: bool, out: &mut Vec<u8>) {
    let date = moment.date();
    let micros = moment.microsecond();
    let length = match () {
        () if moment.is_zero() => 0,
        () if date_only || moment.micros_of_day() == 0 => 4,
        () if micros == 0 => 7,
        () => 11,
    };
    out.push(length);
    if length >= 4 {
        out.extend_from_slice(&date.year().to_le_bytes());
        out.extend_from_slice(&[date.month(), date.day()]);
    }
    if length >= 7 {
        out.extend_from_slice(&[moment.hour(), moment.minute(), moment.second()]);
    }
    if length == 11 {
        out.extend_from_slice(&micros.to_le_bytes());
    }
}

/// 0, 8 or 12 bytes.
fn write_time(time: Time, out: &mut Vec<u8>) {
    if time.micros() == 0 {
        out.push(0);
        return;
    }
    let micros = time.microsecond();
    out.push(if micros == 0 { 8 } else { 12 });
    out.push(u8::from(time.is_negative()));
    out.extend_from_slice(&(time.hours() / 24).to_le_bytes());
    out.extend_from_slice(&[(time.hours() % 24) as u8, time.minutes(), time.seconds()]);
    if micros != 0 {
        out.extend_from_slice(&micros.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: ValueRef<'_>, ty: DataType) -> Vec<u8> {
        let mut out = Vec::new();
        write_value(value, &ty, &mut out);
        out
    }

    #[test]
    fn nulls_in_the_bitmap() {
        let types = [DataType::new(TypeKind::TinyInt); 7];
        let mut values = [ValueRef::Int(1); 7];
        values[0] = ValueRef::Null;
        values[6] = ValueRef::Null;
        let mut out = Vec::new();
        write_row(&values, &types, &mut out);
        assert_eq!(out, [0, 0b100, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn numbers_have_their_width() {
        let new = DataType::new;
        assert_eq!(one(ValueRef::Int(-2), new(TypeKind::TinyInt)), [0xFE]);
        assert_eq!(one(ValueRef::Int(-2), new(TypeKind::SmallInt)), [0xFE, 0xFF]);
        assert_eq!(one(ValueRef::Int(-2), new(TypeKind::MediumInt)), [0xFE, 0xFF, 0xFF, 0xFF]);
        assert_eq!(one(ValueRef::UInt(u64::MAX), DataType::BIGINT_UNSIGNED), [0xFF; 8]);
        assert_eq!(one(ValueRef::Double(1.0), new(TypeKind::Float)), [0, 0, 0x80, 0x3F]);
        assert_eq!(one(ValueRef::Int(3), DataType::DOUBLE), 3f64.to_le_bytes());
        assert_eq!(one(ValueRef::UInt(2024), new(TypeKind::Year)), [0xE8, 7]);
    }

    #[test]
    fn members_and_bits_are_texts() {
        let members = rauk_types::Members::intern(vec!["ab".to_string(), "c".to_string()]);
        let of = |kind| DataType::of_members(kind, members, rauk_types::Collation::DEFAULT);
        assert_eq!(one(ValueRef::UInt(1), of(TypeKind::Enum)), b"\x02ab");
        assert_eq!(one(ValueRef::UInt(0), of(TypeKind::Enum)), b"\0");
        assert_eq!(one(ValueRef::UInt(3), of(TypeKind::Set)), b"\x04ab,c");
        assert_eq!(one(ValueRef::UInt(0x201), DataType::bit(10)), [2, 2, 1]);
    }

    #[test]
    fn moments_are_as_short_as_they_can() {
        let at = |h, m, s, us| ValueRef::DateTime(DateTime::from_parts(2024, 2, 29, h, m, s, us).unwrap());
        let datetime = DataType::new(TypeKind::DateTime);
        assert_eq!(one(ValueRef::DateTime(DateTime::ZERO), datetime), [0]);
        assert_eq!(one(at(0, 0, 0, 0), datetime), [4, 0xE8, 7, 2, 29]);
        assert_eq!(one(at(1, 2, 3, 0), datetime), [7, 0xE8, 7, 2, 29, 1, 2, 3]);
        assert_eq!(one(at(1, 2, 3, 256), datetime), [11, 0xE8, 7, 2, 29, 1, 2, 3, 0, 1, 0, 0]);
        assert_eq!(
            one(ValueRef::Date(Date::from_parts(2024, 2, 0)), DataType::new(TypeKind::Date)),
            [4, 0xE8, 7, 2, 0]
        );
        let time = DataType::new(TypeKind::Time);
        assert_eq!(one(ValueRef::Time(Time::ZERO), time), [0]);
        assert_eq!(one(ValueRef::Time(Time::new(true, 49, 2, 3, 0).unwrap()), time), [8, 1, 2, 0, 0, 0, 1, 2, 3]);
        assert_eq!(
            one(ValueRef::Time(Time::new(false, 1, 0, 0, 1).unwrap()), time),
            [12, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0]
        );
        assert_eq!(one(ValueRef::Timestamp(86_400_000_000), DataType::new(TypeKind::Timestamp)), [4, 0xB2, 7, 1, 2]);
    }
}
