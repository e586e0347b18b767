//! Reading values of the binary form where they lie.

use super::{
    Corrupt, DOUBLE, INT16, INT32, INT64, JsonRef, LARGE_ARRAY, LARGE_OBJECT, LITERAL, LITERAL_FALSE, LITERAL_NULL,
    LITERAL_TRUE, MAX_DEPTH, OPAQUE, SMALL_ARRAY, SMALL_OBJECT, STRING, UINT16, UINT32, UINT64, field,
};
use crate::{Date, DateTime, Decimal, Time};
use ethnum::I256;
use std::cmp::Ordering;

type Result<T> = std::result::Result<T, Corrupt>;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Decimal(Decimal),
    String(&'a str),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    /// A binary string or BIT: MySQL's column type and the bytes.
    Opaque(u8, &'a [u8]),
    Array(List<'a>),
    Object(List<'a>),
}

impl Node<'_> {
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Node::Array(_) | Node::Object(_))
    }

    /// As JSON_TYPE names it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Node::Null => "NULL",
            Node::Bool(_) => "BOOLEAN",
            Node::Int(_) => "INTEGER",
            Node::UInt(_) => "UNSIGNED INTEGER",
            Node::Double(_) => "DOUBLE",
            Node::Decimal(_) => "DECIMAL",
            Node::String(_) => "STRING",
            Node::Date(_) => "DATE",
            Node::Time(_) => "TIME",
            Node::DateTime(_) => "DATETIME",
            Node::Opaque(field::BIT, _) => "BIT",
            Node::Opaque(
                field::VARCHAR
                | field::TINY_BLOB
                | field::MEDIUM_BLOB
                | field::LONG_BLOB
                | field::BLOB
                | field::VAR_STRING
                | field::STRING,
                _,
            ) => "BLOB",
            Node::Opaque(..) => "OPAQUE",
            Node::Array(_) => "ARRAY",
            Node::Object(_) => "OBJECT",
        }
    }
}

/// An array or object: its entries, not its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<'a> {
    bytes: &'a [u8],
    count: usize,
    large: bool,
    object: bool,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let end = at.checked_add(N).ok_or(Corrupt)?;
    bytes.get(at..end).and_then(|bytes| bytes.try_into().ok()).ok_or(Corrupt)
}

fn number(bytes: &[u8], at: usize, large: bool) -> Result<usize> {
    Ok(if large {
        u32::from_le_bytes(array(bytes, at)?) as usize
    } else {
        u16::from_le_bytes(array(bytes, at)?).into()
    })
}

/// A length in seven bits a byte, and how many bytes it takes.
fn length(bytes: &[u8]) -> Result<(usize, usize)> {
    let mut length = 0;
    for (place, byte) in bytes.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok((length, place + 1));
        }
    }
    Err(Corrupt)
}

/// The bytes behind a length, and where they end.
fn content(bytes: &[u8]) -> Result<(&[u8], usize)> {
    let (length, from) = length(bytes)?;
    let end = from + length;
    Ok((bytes.get(from..end).ok_or(Corrupt)?, end))
}

fn is_list(tag: u8) -> bool {
    tag <= LARGE_ARRAY
}

/// Values of these types stand in their entry.
pub(super) fn is_inline(tag: u8, large: bool) -> bool {
    matches!(tag, LITERAL | INT16 | UINT16) || large && matches!(tag, INT32 | UINT32)
}

impl<'a> JsonRef<'a> {
    #[inline]
    pub fn read(self) -> Result<Node<'a>> {
        let bytes = self.bytes;
        Ok(match self.tag {
            SMALL_OBJECT | LARGE_OBJECT => Node::Object(List::of(self)?),
            SMALL_ARRAY | LARGE_ARRAY => Node::Array(List::of(self)?),
            LITERAL => match bytes.first() {
                Some(&LITERAL_NULL) => Node::Null,
                Some(&LITERAL_TRUE) => Node::Bool(true),
                Some(&LITERAL_FALSE) => Node::Bool(false),
                _ => return Err(Corrupt),
            },
            INT16 => Node::Int(i16::from_le_bytes(array(bytes, 0)?).into()),
            UINT16 => Node::UInt(u16::from_le_bytes(array(bytes, 0)?).into()),
            INT32 => Node::Int(i32::from_le_bytes(array(bytes, 0)?).into()),
            UINT32 => Node::UInt(u32::from_le_bytes(array(bytes, 0)?).into()),
            INT64 => Node::Int(i64::from_le_bytes(array(bytes, 0)?)),
            UINT64 => Node::UInt(u64::from_le_bytes(array(bytes, 0)?)),
            DOUBLE => {
                let value = f64::from_le_bytes(array(bytes, 0)?);
                if !value.is_finite() {
                    return Err(Corrupt);
                }
                Node::Double(value)
            }
            STRING => Node::String(std::str::from_utf8(content(bytes)?.0).map_err(|_| Corrupt)?),
            OPAQUE => {
                let (ty, rest) = bytes.split_first().ok_or(Corrupt)?;
                opaque(*ty, content(rest)?.0)?
            }
            _ => return Err(Corrupt),
        })
    }

    /// The array or object that it is.
    #[inline]
    pub fn list(self) -> Result<Option<List<'a>>> {
        if is_list(self.tag) { List::of(self).map(Some) } else { Ok(None) }
    }

    /// How deep it is: 1 of a scalar and of what is empty. Corrupt beyond [`MAX_DEPTH`].
    pub fn depth(self) -> Result<usize> {
        self.depth_below(MAX_DEPTH)
    }

    fn depth_below(self, most: usize) -> Result<usize> {
        if most == 0 {
            return Err(Corrupt);
        }
        let Some(list) = self.list()? else { return Ok(1) };
        let mut deepest = 0;
        for item in list.iter() {
            deepest = deepest.max(item?.1.depth_below(most - 1)?);
        }
        Ok(deepest + 1)
    }
}

fn opaque(ty: u8, data: &[u8]) -> Result<Node<'_>> {
    let packed = || Ok::<_, Corrupt>(i64::from_le_bytes(data.try_into().map_err(|_| Corrupt)?));
    let date = |packed: u32| {
        let date = Date::from_packed(packed);
        let fits = packed >> 23 == 0 && date.year() <= 9999 && date.month() <= 12 && date.day() <= 31;
        if fits { Ok(date) } else { Err(Corrupt) }
    };
    Ok(match ty {
        field::DATE => Node::Date(date(u32::try_from(packed()?).map_err(|_| Corrupt)?)?),
        field::TIME => Node::Time(Time::from_micros(packed()?).ok_or(Corrupt)?),
        field::DATETIME => {
            let value = DateTime::from_packed(packed()? as u64);
            date(value.date().packed())?;
            if value.micros_of_day() >= crate::datetime::MICROS_PER_DAY {
                return Err(Corrupt);
            }
            Node::DateTime(value)
        }
        field::DECIMAL => {
            let (scale, unscaled) = data.split_first().ok_or(Corrupt)?;
            let negative = unscaled.last().is_some_and(|byte| *byte >= 0x80);
            let mut all = [if negative { 0xFF } else { 0 }; 32];
            all.get_mut(..unscaled.len()).ok_or(Corrupt)?.copy_from_slice(unscaled);
            if *scale > crate::decimal::MAX_SCALE {
                return Err(Corrupt);
            }
            Node::Decimal(Decimal::from_unscaled(I256::from_le_bytes(all), *scale).map_err(|_| Corrupt)?)
        }
        ty => Node::Opaque(ty, data),
    })
}

impl<'a> List<'a> {
    fn of(value: JsonRef<'a>) -> Result<List<'a>> {
        let large = matches!(value.tag, LARGE_ARRAY | LARGE_OBJECT);
        let object = value.tag <= LARGE_OBJECT;
        let width = if large { 4 } else { 2 };
        let count = number(value.bytes, 0, large)?;
        let size = number(value.bytes, width, large)?;
        let bytes = value.bytes.get(..size).ok_or(Corrupt)?;
        let list = List { bytes, count, large, object };
        if list.values_at().checked_add(count.checked_mul(width + 1).ok_or(Corrupt)?).is_none_or(|end| end > size) {
            return Err(Corrupt);
        }
        Ok(list)
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn is_object(&self) -> bool {
        self.object
    }

    fn width(&self) -> usize {
        if self.large { 4 } else { 2 }
    }

    /// Where the entries of the values begin.
    fn values_at(&self) -> usize {
        let width = self.width();
        2 * width + if self.object { self.count.saturating_mul(width + 2) } else { 0 }
    }

    /// Where the entries end.
    fn head(&self) -> usize {
        self.values_at() + self.count * (self.width() + 1)
    }

    /// The name of a member; of an array nothing.
    #[inline]
    pub fn name(&self, place: usize) -> Result<&'a str> {
        std::str::from_utf8(self.name_bytes(place)?).map_err(|_| Corrupt)
    }

    fn name_bytes(&self, place: usize) -> Result<&'a [u8]> {
        if !self.object {
            return Ok(&[]);
        }
        let width = self.width();
        if place >= self.count {
            return Err(Corrupt);
        }
        let at = 2 * width + place * (width + 2);
        let from = number(self.bytes, at, self.large)?;
        let length = usize::from(u16::from_le_bytes(array(self.bytes, at + width)?));
        self.bytes.get(from..from + length).ok_or(Corrupt)
    }

    /// The value of an element or a member.
    #[inline]
    pub fn value(&self, place: usize) -> Result<JsonRef<'a>> {
        self.placed(place).map(|(value, _)| value)
    }

    /// A value, and where it lies if not in its entry.
    fn placed(&self, place: usize) -> Result<(JsonRef<'a>, Option<usize>)> {
        if place >= self.count {
            return Err(Corrupt);
        }
        let width = self.width();
        let at = self.values_at() + place * (width + 1);
        let tag = self.bytes[at];
        if is_inline(tag, self.large) {
            return Ok((JsonRef { tag, bytes: &self.bytes[at + 1..at + 1 + width] }, None));
        }
        let from = number(self.bytes, at + 1, self.large)?;
        let rest = self.bytes.get(from..).filter(|_| from >= self.head()).ok_or(Corrupt)?;
        let end = match tag {
            SMALL_OBJECT | SMALL_ARRAY => number(rest, 2, false)?,
            LARGE_OBJECT | LARGE_ARRAY => number(rest, 4, true)?,
            INT32 | UINT32 => 4,
            INT64 | UINT64 | DOUBLE => 8,
            STRING => content(rest)?.1,
            OPAQUE => 1 + content(rest.get(1..).ok_or(Corrupt)?)?.1,
            _ => return Err(Corrupt),
        };
        let bytes = rest.get(..end).ok_or(Corrupt)?;
        Ok((JsonRef { tag, bytes }, Some(from)))
    }

    /// The place of a member.
    #[inline]
    pub fn find(&self, name: &str) -> Result<Option<usize>> {
        if !self.object {
            return Ok(None);
        }
        let (mut low, mut high) = (0, self.count);
        let name = name.as_bytes();
        while low < high {
            let middle = low.midpoint(high);
            let other = self.name_bytes(middle)?;
            match other.len().cmp(&name.len()).then_with(|| other.cmp(name)) {
                Ordering::Equal => return Ok(Some(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    /// Names and values in their order. A value that overlaps one before it is corrupt, so that a walk of all takes time of the size.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a str, JsonRef<'a>)>> + use<'a> {
        let list = *self;
        let mut end = 0;
        (0..self.count).map(move |place| {
            let (value, at) = list.placed(place)?;
            if let Some(at) = at {
                if at < end {
                    return Err(Corrupt);
                }
                end = at + value.bytes.len();
            }
            Ok((list.name(place)?, value))
        })
    }
}
