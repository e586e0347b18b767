//! Values on the wire: a tag byte and as few bytes as are needed. Strings are checked for UTF-8, dates and times for their ranges;
//! whether a value fits its column is for who knows the column ([`rauk_types::check`]).
//!
//! The upper half of the tag is the type, the lower half a number of bytes `n`:
//!
//! | type | `n` | behind the tag |
//! |---|---|---|
//! | 0 NULL | 0 | |
//! | 1 Int, 6 Time, 8 Timestamp | 0–8 | the number, little-endian two's complement in `n` bytes; 0 takes none |
//! | 2 UInt, 5 Date, 7 DateTime | 0–8 | the number (packed), little-endian in `n` bytes |
//! | 3 Double | 8 | IEEE, little-endian |
//! | 4 Decimal | 0 | scale u8, count u8, the unscaled integer as little-endian two's complement in `count` bytes |
//! | 9 Str, 10 Bytes, 11 Json | 0–14 | `n` bytes |
//! | 9 Str, 10 Bytes, 11 Json | 15 | varint length, bytes |

use crate::WireError;
use crate::read::{Reader, put_varint};
use ethnum::I256;
use rauk_types::datetime::{MICROS_PER_DAY, TIMESTAMP_MAX, TIMESTAMP_MIN};
use rauk_types::decimal::MAX_SCALE;
use rauk_types::json::JsonRef;
use rauk_types::{Date, DateTime, Decimal, Time, ValueRef};

const NULL: u8 = 0;
const INT: u8 = 1;
const UINT: u8 = 2;
const DOUBLE: u8 = 3;
const DECIMAL: u8 = 4;
const DATE: u8 = 5;
const TIME: u8 = 6;
const DATE_TIME: u8 = 7;
const TIMESTAMP: u8 = 8;
const STR: u8 = 9;
const BYTES: u8 = 10;
/// JSON in its stored form, between nodes. Clients send text, and get it by [`put_shown`].
const JSON: u8 = 11;

/// In the lower half of the tag of texts and bytes: the length follows.
const LONG: u8 = 15;
/// A decimal of 65 digits takes so many bytes.
const MAX_DECIMAL_BYTES: usize = 28;

pub fn put(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Null => out.push(NULL << 4),
        ValueRef::Int(v) => put_signed(INT, v, out),
        ValueRef::UInt(v) => put_unsigned(UINT, v, out),
        ValueRef::Double(v) => put_number(DOUBLE, v.to_bits(), 8, out),
        ValueRef::Decimal(v) => put_decimal(v, out),
        ValueRef::Date(v) => put_unsigned(DATE, v.packed().into(), out),
        ValueRef::Time(v) => put_signed(TIME, v.micros(), out),
        ValueRef::DateTime(v) => put_unsigned(DATE_TIME, v.packed(), out),
        ValueRef::Timestamp(v) => put_signed(TIMESTAMP, v, out),
        ValueRef::Str(v) => put_content(STR, v.as_bytes(), out),
        ValueRef::Bytes(v) => put_content(BYTES, v, out),
        ValueRef::Json(v) => put_content(JSON, &v.to_stored(), out),
    }
}

/// The same for clients: JSON is text.
pub fn put_shown(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Json(v) => {
            let mut text = Vec::with_capacity(2 * v.stored_len());
            v.append_shown(&mut text);
            put_content(STR, &text, out);
        }
        value => put(value, out),
    }
}

#[inline]
fn put_number(tag: u8, bits: u64, width: usize, out: &mut Vec<u8>) {
    let mut bytes = [0; 9];
    bytes[0] = tag << 4 | width as u8;
    bytes[1..].copy_from_slice(&bits.to_le_bytes());
    out.extend_from_slice(&bytes[..1 + width]);
}

#[inline]
fn put_unsigned(tag: u8, value: u64, out: &mut Vec<u8>) {
    put_number(tag, value, (64 - value.leading_zeros()).div_ceil(8) as usize, out);
}

#[inline]
fn put_signed(tag: u8, value: i64, out: &mut Vec<u8>) {
    // One bit more than the magnitude has, for the sign.
    let bits = if value == 0 { 0 } else { 65 - (value ^ value >> 63).leading_zeros() };
    put_number(tag, value as u64, bits.div_ceil(8) as usize, out);
}

fn put_decimal(value: Decimal, out: &mut Vec<u8>) {
    let (bytes, negative) = match value.unscaled_i128() {
        Some(small) => {
            let mut bytes = [if small < 0 { 0xFF } else { 0 }; 32];
            bytes[..16].copy_from_slice(&small.to_le_bytes());
            (bytes, small < 0)
        }
        None => (value.unscaled().to_le_bytes(), value.is_negative()),
    };
    let fill = if negative { 0xFF } else { 0 };
    let mut count = 32;
    while count > 1 && bytes[count - 1] == fill && (bytes[count - 2] >= 0x80) == negative {
        count -= 1;
    }
    out.extend_from_slice(&[DECIMAL << 4, value.scale(), count as u8]);
    out.extend_from_slice(&bytes[..count]);
}

#[inline]
fn put_content(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.len() < LONG.into() {
        out.push(tag << 4 | bytes.len() as u8);
    } else {
        out.push(tag << 4 | LONG);
        put_varint(u32::try_from(bytes.len()).expect("a payload is bounded"), out);
    }
    out.extend_from_slice(bytes);
}

pub fn get<'a>(reader: &mut Reader<'a>) -> Result<ValueRef<'a>, WireError> {
    let tag = reader.u8()?;
    let low = tag & 15;
    let value = match tag >> 4 {
        NULL if low == 0 => Some(ValueRef::Null),
        INT => Some(ValueRef::Int(signed(reader, low)?)),
        UINT => Some(ValueRef::UInt(reader.unsigned(low.into())?)),
        DOUBLE if low == 8 => Some(ValueRef::Double(f64::from_bits(reader.u64()?))),
        DECIMAL if low == 0 => Some(ValueRef::Decimal(decimal(reader)?)),
        DATE => date(reader.unsigned(low.into())?).map(ValueRef::Date),
        TIME => Time::from_micros(signed(reader, low)?).map(ValueRef::Time),
        DATE_TIME => date_time(reader.unsigned(low.into())?).map(ValueRef::DateTime),
        TIMESTAMP => {
            let micros = signed(reader, low)?;
            let right = micros == 0 || (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(&micros);
            right.then_some(ValueRef::Timestamp(micros))
        }
        STR => std::str::from_utf8(content(reader, low)?).ok().map(ValueRef::Str),
        BYTES => Some(ValueRef::Bytes(content(reader, low)?)),
        JSON => {
            Some(content(reader, low)?).filter(|bytes| !bytes.is_empty()).map(|b| ValueRef::Json(JsonRef::stored(b)))
        }
        _ => None,
    };
    value.ok_or_else(|| reader.malformed())
}

/// Goes past a value without looking whether it is right: only so far as to know where it ends.
#[inline]
pub fn skip(reader: &mut Reader<'_>) -> Result<(), WireError> {
    let tag = reader.u8()?;
    let low = usize::from(tag & 15);
    let count = match tag >> 4 {
        DECIMAL => usize::from(reader.array::<2>()?[1]),
        STR | BYTES | JSON if low == usize::from(LONG) => reader.varint()? as usize,
        _ => low,
    };
    reader.bytes(count).map(drop)
}

#[inline]
fn signed(reader: &mut Reader<'_>, width: u8) -> Result<i64, WireError> {
    let bits = reader.unsigned(width.into())?;
    if width == 0 {
        return Ok(0);
    }
    let shift = 64 - 8 * u32::from(width);
    Ok((bits << shift) as i64 >> shift)
}

fn content<'a>(reader: &mut Reader<'a>, low: u8) -> Result<&'a [u8], WireError> {
    if low == LONG { reader.prefixed() } else { reader.bytes(low.into()) }
}

fn decimal(reader: &mut Reader<'_>) -> Result<Decimal, WireError> {
    let [scale, count] = reader.array::<2>()?;
    let bytes = reader.bytes(usize::from(count))?;
    if scale > MAX_SCALE || bytes.is_empty() || bytes.len() > MAX_DECIMAL_BYTES {
        return Err(reader.malformed());
    }
    let mut all = [if bytes[bytes.len() - 1] >= 0x80 { 0xFFu8 } else { 0 }; 32];
    all[..bytes.len()].copy_from_slice(bytes);
    Decimal::from_unscaled(I256::from_le_bytes(all), scale).map_err(|_| reader.malformed())
}

/// A date whose parts are those that a date may have.
fn date(packed: u64) -> Option<Date> {
    let date = Date::from_packed(packed.try_into().ok()?);
    // Days are five bits, so 31 at most.
    (date.year() <= 9999 && date.month() <= 12 && packed >> 23 == 0).then_some(date)
}

fn date_time(packed: u64) -> Option<DateTime> {
    let time = DateTime::from_packed(packed);
    (packed >> 60 == 0 && date(time.date().packed().into()).is_some() && time.micros_of_day() < MICROS_PER_DAY)
        .then_some(time)
}

/// A number of values, still encoded. Copying it copies nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// `count` values should stand in `bytes`; [`Values::read`] says whether they do.
    pub fn new(count: usize, bytes: &'a [u8]) -> Values<'a> {
        Values { count, bytes }
    }

    /// Takes `count` values from a reader, which goes past them.
    #[inline]
    pub(crate) fn take(reader: &mut Reader<'a>, count: usize) -> Result<Values<'a>, WireError> {
        let start = *reader;
        for _ in 0..count {
            skip(reader)?;
        }
        Ok(Values { count, bytes: reader.since(&start) })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the values to a list; on an error some may have been appended.
    pub fn read(&self, into: &mut Vec<ValueRef<'a>>) -> Result<(), WireError> {
        let mut reader = Reader::new(self.bytes, "value");
        // Every value takes a byte at least, so a count that lies allocates nothing.
        into.reserve(self.count.min(self.bytes.len()));
        for _ in 0..self.count {
            into.push(get(&mut reader)?);
        }
        reader.end()
    }
}
