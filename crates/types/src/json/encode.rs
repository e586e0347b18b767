//! Trees to the binary form.
//!
//! An array or object is small where it fits into 64 KiB. Whether it does is known when it has been written, so it is written small first,
//! and again as a large one if it did not fit. What is in a small one is small too: one that does not fit ends the attempt of those around it
//! at once, so that an attempt writes 64 KiB at most, and each level has one.

use super::{
    DOUBLE, INT16, INT32, INT64, Json, JsonRef, LARGE_ARRAY, LARGE_OBJECT, LITERAL, LITERAL_FALSE, LITERAL_NULL,
    LITERAL_TRUE, MAX_DEPTH, MAX_NAME, Members, Node, OPAQUE, SMALL_ARRAY, SMALL_OBJECT, STRING, Take, UINT16, UINT32,
    UINT64, VERSION, field, read::is_inline, too_deep,
};
use crate::schema::MAX_LOB_BYTES;
use crate::{Date, DateTime, Decimal, MysqlError, Time};

/// Why writing ended.
enum Stop {
    /// It does not fit into a small array or object.
    Large,
    Error(MysqlError),
}

impl From<MysqlError> for Stop {
    fn from(error: MysqlError) -> Stop {
        Stop::Error(error)
    }
}

impl From<super::Corrupt> for Stop {
    fn from(corrupt: super::Corrupt) -> Stop {
        Stop::Error(corrupt.into())
    }
}

type Written<T> = Result<T, Stop>;

struct Writer<'t, 'f> {
    out: Vec<u8>,
    take: &'t mut Take<'f>,
    counted: usize,
}

/// Bytes of which the taker is told in one go.
const STEP: usize = 64 << 10;

impl Json<'_> {
    /// The stored form. Errors: 3150 (larger than a column may hold), 3151 (a name that is too long), 3157 (too deep), those of `take`.
    pub fn encode(&self, take: &mut Take<'_>) -> Result<Vec<u8>, MysqlError> {
        let mut writer = Writer { out: vec![VERSION, 0], take, counted: 0 };
        match writer.value(self, true, 1) {
            Ok(tag) => writer.out[1] = tag,
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Large) => return Err(too_big()),
        }
        Ok(writer.out)
    }
}

/// ER_JSON_VALUE_TOO_BIG.
fn too_big() -> MysqlError {
    MysqlError::new(3150, "The JSON value is too big to be stored in a JSON column.")
}

impl Writer<'_, '_> {
    fn count(&mut self) -> Written<()> {
        if self.out.len() > self.counted + STEP {
            if self.out.len() > MAX_LOB_BYTES {
                return Err(too_big().into());
            }
            (self.take)(self.out.len() - self.counted)?;
            self.counted = self.out.len();
        }
        Ok(())
    }

    /// Appends a value and gives its type. `large`: so is what is around it.
    fn value(&mut self, json: &Json<'_>, large: bool, depth: usize) -> Written<u8> {
        Ok(match json {
            Json::Null => self.literal(LITERAL_NULL),
            Json::Bool(true) => self.literal(LITERAL_TRUE),
            Json::Bool(false) => self.literal(LITERAL_FALSE),
            Json::Int(v) => self.int(*v),
            Json::UInt(v) => self.uint(*v),
            Json::Double(v) => self.double(*v),
            Json::Decimal(v) => self.decimal(v),
            Json::String(v) => self.string(v, large)?,
            Json::Date(v) => self.date(*v),
            Json::Time(v) => self.time(*v),
            Json::DateTime(v) => self.datetime(*v),
            Json::Opaque(ty, data) => {
                fits(data.len(), large)?;
                self.opaque(*ty, data)
            }
            Json::Array(items) => {
                check_depth(depth, items.is_empty())?;
                self.list(large, SMALL_ARRAY, LARGE_ARRAY, &|writer, large| {
                    let values = items.iter().map(|item| ("", item));
                    writer.entries(items.len(), None::<std::iter::Empty<&str>>, values, large, depth)
                })?
            }
            Json::Object(members) => {
                check_depth(depth, members.is_empty())?;
                self.list(large, SMALL_OBJECT, LARGE_OBJECT, &|writer, large| writer.members(members, large, depth))?
            }
            Json::Stored(value) => self.stored(*value, large, depth)?,
        })
    }

    fn members(&mut self, members: &Members<'_>, large: bool, depth: usize) -> Written<()> {
        let names = members.iter().map(|(name, _)| &**name);
        let values = members.iter().map(|(name, value)| (&**name, value));
        self.entries(members.len(), Some(names), values, large, depth)
    }

    /// Writes an array or object small, or large if it must be.
    fn list(
        &mut self,
        around: bool,
        small: u8,
        large: u8,
        write: &dyn Fn(&mut Self, bool) -> Written<()>,
    ) -> Written<u8> {
        let start = self.out.len();
        match write(self, false) {
            Ok(()) => Ok(small),
            Err(Stop::Large) if around => {
                self.out.truncate(start);
                self.counted = self.counted.min(start);
                write(self, true)?;
                Ok(large)
            }
            Err(stop) => Err(stop),
        }
    }

    fn entries<'n, 'v, 'j: 'v>(
        &mut self,
        count: usize,
        names: Option<impl Iterator<Item = &'n str>>,
        values: impl Iterator<Item = (&'n str, &'v Json<'j>)>,
        large: bool,
        depth: usize,
    ) -> Written<()> {
        let start = self.out.len();
        let width = if large { 4 } else { 2 };
        let keys_at = start + 2 * width;
        let values_at = keys_at + if names.is_some() { count * (width + 2) } else { 0 };
        let head = values_at + count * (width + 1);
        if !large && head - start > usize::from(u16::MAX) {
            return Err(Stop::Large);
        }
        if head > MAX_LOB_BYTES {
            return Err(too_big().into());
        }
        self.out.resize(head, 0);
        self.number(start, count, large)?;
        for (place, name) in names.into_iter().flatten().enumerate() {
            if name.len() > MAX_NAME {
                return Err(MysqlError::new(3151, "The JSON object contains a key name that is too long.").into());
            }
            let at = keys_at + place * (width + 2);
            self.number(at, self.out.len() - start, large)?;
            self.out[at + width..at + width + 2].copy_from_slice(&(name.len() as u16).to_le_bytes());
            self.out.extend_from_slice(name.as_bytes());
            self.count()?;
        }
        for (place, (_, value)) in values.enumerate() {
            let at = values_at + place * (width + 1);
            let from = self.out.len();
            let tag = self.value(value, large, depth + 1)?;
            self.out[at] = tag;
            if is_inline(tag, large) {
                let written = self.out.len() - from;
                self.out.copy_within(from..from + written.min(width), at + 1);
                self.out.truncate(from);
            } else {
                self.number(at + 1, from - start, large)?;
            }
            self.count()?;
        }
        self.number(start + width, self.out.len() - start, large)
    }

    /// Writes a number to `at`.
    fn number(&mut self, at: usize, number: usize, large: bool) -> Written<()> {
        if large {
            let number = u32::try_from(number).map_err(|_| Stop::Error(too_big()))?;
            self.out[at..at + 4].copy_from_slice(&number.to_le_bytes());
        } else {
            let number = u16::try_from(number).map_err(|_| Stop::Large)?;
            self.out[at..at + 2].copy_from_slice(&number.to_le_bytes());
        }
        Ok(())
    }

    fn literal(&mut self, literal: u8) -> u8 {
        self.out.push(literal);
        LITERAL
    }

    fn int(&mut self, value: i64) -> u8 {
        if let Ok(value) = i16::try_from(value) {
            self.out.extend_from_slice(&value.to_le_bytes());
            INT16
        } else if let Ok(value) = i32::try_from(value) {
            self.out.extend_from_slice(&value.to_le_bytes());
            INT32
        } else {
            self.out.extend_from_slice(&value.to_le_bytes());
            INT64
        }
    }

    fn uint(&mut self, value: u64) -> u8 {
        if let Ok(value) = u16::try_from(value) {
            self.out.extend_from_slice(&value.to_le_bytes());
            UINT16
        } else if let Ok(value) = u32::try_from(value) {
            self.out.extend_from_slice(&value.to_le_bytes());
            UINT32
        } else {
            self.out.extend_from_slice(&value.to_le_bytes());
            UINT64
        }
    }

    fn double(&mut self, value: f64) -> u8 {
        self.out.extend_from_slice(&value.to_le_bytes());
        DOUBLE
    }

    /// A length and as many bytes.
    fn content(&mut self, bytes: &[u8]) {
        let mut length = bytes.len();
        while length >= 0x80 {
            self.out.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.out.push(length as u8);
        self.out.extend_from_slice(bytes);
    }

    fn string(&mut self, text: &str, large: bool) -> Written<u8> {
        fits(text.len(), large)?;
        self.content(text.as_bytes());
        self.count()?;
        Ok(STRING)
    }

    fn opaque(&mut self, ty: u8, data: &[u8]) -> u8 {
        self.out.push(ty);
        self.content(data);
        OPAQUE
    }

    /// The scale, and the digits as an integer in as few bytes as hold it.
    fn decimal(&mut self, value: &Decimal) -> u8 {
        let bytes = value.unscaled().to_le_bytes();
        let fill = if value.is_negative() { 0xFF } else { 0 };
        let mut length = bytes.len();
        while length > 1 && bytes[length - 1] == fill && (bytes[length - 2] >= 0x80) == (fill == 0xFF) {
            length -= 1;
        }
        let mut data = [0; 33];
        data[0] = value.scale();
        data[1..=length].copy_from_slice(&bytes[..length]);
        self.opaque(field::DECIMAL, &data[..=length])
    }

    fn date(&mut self, value: Date) -> u8 {
        self.opaque(field::DATE, &i64::from(value.packed()).to_le_bytes())
    }

    fn time(&mut self, value: Time) -> u8 {
        self.opaque(field::TIME, &value.micros().to_le_bytes())
    }

    fn datetime(&mut self, value: DateTime) -> u8 {
        self.opaque(field::DATETIME, &value.packed().to_le_bytes())
    }

    /// A stored array or object is copied as it is: it is as small as it can be.
    fn stored(&mut self, value: JsonRef<'_>, large: bool, depth: usize) -> Written<u8> {
        fits(value.bytes.len(), large)?;
        Ok(match value.read()? {
            Node::Array(_) | Node::Object(_) => {
                if depth > 1 && value.depth()? + depth - 1 > MAX_DEPTH {
                    return Err(too_deep().into());
                }
                self.out.extend_from_slice(value.bytes);
                self.count()?;
                value.tag
            }
            Node::Null => self.literal(LITERAL_NULL),
            Node::Bool(v) => self.literal(if v { LITERAL_TRUE } else { LITERAL_FALSE }),
            Node::Int(v) => self.int(v),
            Node::UInt(v) => self.uint(v),
            Node::Double(v) => self.double(v),
            Node::String(v) => self.string(v, large)?,
            Node::Decimal(v) => self.decimal(&v),
            Node::Date(v) => self.date(v),
            Node::Time(v) => self.time(v),
            Node::DateTime(v) => self.datetime(v),
            Node::Opaque(ty, data) => self.opaque(ty, data),
        })
    }
}

/// Whether so many bytes can be in what is around them.
fn fits(bytes: usize, large: bool) -> Written<()> {
    if !large && bytes > usize::from(u16::MAX) { Err(Stop::Large) } else { Ok(()) }
}

/// An array or object that holds something has a level below it.
fn check_depth(depth: usize, empty: bool) -> Written<()> {
    if depth + usize::from(!empty) > MAX_DEPTH { Err(too_deep().into()) } else { Ok(()) }
}
