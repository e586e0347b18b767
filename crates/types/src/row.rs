//! The bytes of a row.
//!
//! ```text
//! [bits: bit 0 of the first byte is WIDE where the layout has variable columns; then 1 bit a nullable column; rounded up to bytes]
//! [fixed part: every fixed-width column at its offset, little-endian, unaligned]
//! [end offsets of the variable columns, counted from the first variable byte: u16 each, or u32 each when WIDE]
//! [the variable columns' bytes]
//! ```
//! Fixed: integers (1, 2, 3, 4, 8 bytes), FLOAT 4, DOUBLE 8, DATE 3, TIME/DATETIME/TIMESTAMP 8, DECIMAL by precision: up to 9 digits
//! 4 bytes, up to 18 in 8, up to 38 in 16 (the unscaled integer at the column's scale); ENUM 1 or 2, SET and BIT 1, 2, 3, 4 or 8, unsigned; YEAR 1, the
//! years since 1900. Variable: CHAR (without trailing pad spaces), VARCHAR,
//! TEXT, BINARY, VARBINARY, BLOB, JSON in its [stored form](crate::json), wider DECIMAL (its unscaled integer in as few bytes as hold it). A NULL takes no variable bytes, and its fixed bytes are zero.
//! Rows are WIDE when their variable bytes are 64 KiB or more.
//!
//! The layout version is not in these bytes: the row's header has it. A [`RowView`] reads columns by their
//! position in the *newest* schema; a column that the row's layout lacks reads as the column's `initial` value, a dropped one is never asked for. The
//! newest layout lists the schema's columns in their order, so reading a row of that layout looks nothing up.
//!
//! A partition keeps values over 8 KiB beside the row ([`large`]); a [`RowView`] reads both forms.
//!
//! Bytes are trusted to be what [`encode_row`] made (the log and checkpoints have checksums): others may panic or read as
//! another value, and nothing worse.

mod covering;
mod digest;
mod field;
pub mod large;
pub mod sparse;

pub use covering::Covering;
pub use field::{Field, FieldKind};
pub use large::{LargeValue, RowImage};

use crate::json::JsonRef;
use crate::{ColumnId, DataType, Date, DateTime, Decimal, TableSchema, Time, TypeKind, Value, ValueRef, collation};
use ethnum::I256;
use serde::{Deserialize, Serialize};

/// Where each column lies in rows of one layout version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Parts", into = "Parts")]
pub struct RowLayout {
    /// Index in `TableSchema::layouts`; stored in row headers.
    pub version: u16,
    /// The columns of this layout in storage order: id, type, nullable.
    pub columns: Vec<(ColumnId, DataType, bool)>,
    slots: Vec<Slot>,
    /// Slot of a column by its id, [`NONE`] for those that the layout lacks.
    by_id: Vec<u16>,
    /// Where the end offsets of the variable columns begin, or the row ends.
    fixed_end: u32,
    variable_columns: u32,
    has_json: bool,
}

/// What of a layout is stored; the rest follows from it.
#[derive(Clone, Serialize, Deserialize)]
struct Parts {
    version: u16,
    columns: Vec<(ColumnId, DataType, bool)>,
}

const NONE: u16 = u16::MAX;
const WIDE: u8 = 1;

/// How a column's bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    I8,
    I16,
    I24,
    I32,
    I64,
    U8,
    U16,
    U24,
    U32,
    U64,
    F32,
    F64,
    Date,
    Time,
    DateTime,
    Timestamp,
    Decimal32,
    Decimal64,
    Decimal128,
    Year,
    /// Variable columns from here on.
    DecimalWide,
    Char,
    Text,
    Bytes,
    Json,
}

impl Codec {
    fn of(ty: &DataType) -> Codec {
        use TypeKind::*;
        match (ty.kind, ty.unsigned) {
            (TinyInt, false) => Codec::I8,
            (SmallInt, false) => Codec::I16,
            (MediumInt, false) => Codec::I24,
            (Int, false) => Codec::I32,
            (BigInt, false) => Codec::I64,
            (TinyInt, true) => Codec::U8,
            (SmallInt, true) => Codec::U16,
            (MediumInt, true) => Codec::U24,
            (Int, true) => Codec::U32,
            (BigInt, true) => Codec::U64,
            (Float, _) => Codec::F32,
            (Double, _) => Codec::F64,
            (Date, _) => Codec::Date,
            (Time, _) => Codec::Time,
            (DateTime, _) => Codec::DateTime,
            (Timestamp, _) => Codec::Timestamp,
            (Decimal, _) => match ty.precision {
                0..=9 => Codec::Decimal32,
                10..=18 => Codec::Decimal64,
                19..=38 => Codec::Decimal128,
                _ => Codec::DecimalWide,
            },
            (Char, _) => Codec::Char,
            (VarChar | TinyText | Text | MediumText | LongText, _) => Codec::Text,
            (Json, _) => Codec::Json,
            (Enum, _) => Codec::unsigned(if ty.member_count() < 256 { 8 } else { 16 }),
            (Set, _) => Codec::unsigned(ty.member_count() as u32),
            (Bit, _) => Codec::unsigned(ty.length),
            (Year, _) => Codec::Year,
            (Binary | VarBinary | TinyBlob | Blob | MediumBlob | LongBlob | Geometry | Null, _) => Codec::Bytes,
        }
    }

    /// Of unsigned numbers of so many bits.
    fn unsigned(bits: u32) -> Codec {
        match bits {
            0..=8 => Codec::U8,
            9..=16 => Codec::U16,
            17..=24 => Codec::U24,
            25..=32 => Codec::U32,
            _ => Codec::U64,
        }
    }

    /// Bytes in the fixed part; 0 for variable columns.
    fn width(self) -> u32 {
        match self {
            Codec::I8 | Codec::U8 | Codec::Year => 1,
            Codec::I16 | Codec::U16 => 2,
            Codec::I24 | Codec::U24 | Codec::Date => 3,
            Codec::I32 | Codec::U32 | Codec::F32 | Codec::Decimal32 => 4,
            Codec::I64
            | Codec::U64
            | Codec::F64
            | Codec::Time
            | Codec::DateTime
            | Codec::Timestamp
            | Codec::Decimal64 => 8,
            Codec::Decimal128 => 16,
            Codec::DecimalWide | Codec::Char | Codec::Text | Codec::Bytes | Codec::Json => 0,
        }
    }

    fn is_variable(self) -> bool {
        self.width() == 0
    }
}

/// One column of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    codec: Codec,
    scale: u8,
    /// Bit that says NULL, counted from the row's first bit; [`NONE`] for NOT NULL columns.
    null_bit: u16,
    /// Offset in the row of a fixed column; number among the variable columns of a variable one.
    place: u16,
}

impl Slot {
    /// Whether bytes from outside can be the value of this variable column.
    fn fits(&self, value: &[u8]) -> bool {
        match self.codec {
            Codec::Char | Codec::Text => std::str::from_utf8(value).is_ok(),
            Codec::DecimalWide => value.len() <= size_of::<I256>() && wide_decimal(value, self.scale).is_some(),
            _ => true,
        }
    }
}

impl PartialEq for RowLayout {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version && self.columns == other.columns
    }
}

impl From<Parts> for RowLayout {
    fn from(parts: Parts) -> Self {
        RowLayout::new(parts.version, parts.columns)
    }
}

impl From<RowLayout> for Parts {
    fn from(layout: RowLayout) -> Self {
        Parts { version: layout.version, columns: layout.columns }
    }
}

impl RowLayout {
    pub fn new(version: u16, columns: Vec<(ColumnId, DataType, bool)>) -> Self {
        let codecs: Vec<Codec> = columns.iter().map(|(_, ty, _)| Codec::of(ty)).collect();
        let has_variable = codecs.iter().any(|c| c.is_variable());
        let nullable = columns.iter().filter(|(_, _, nullable)| *nullable).count();
        let mut next_bit = u16::from(has_variable);
        let mut next_offset = (usize::from(next_bit) + nullable).div_ceil(8) as u32;
        let mut next_variable = 0;
        let mut slots = Vec::with_capacity(columns.len());
        for ((_, ty, nullable), codec) in columns.iter().zip(codecs) {
            let place = if codec.is_variable() { next_variable } else { next_offset };
            let null_bit = if *nullable { next_bit } else { NONE };
            next_bit += u16::from(*nullable);
            next_offset += codec.width();
            next_variable += u32::from(codec.is_variable());
            slots.push(Slot { codec, scale: ty.scale, null_bit, place: place as u16 });
        }
        let mut by_id = vec![NONE; columns.iter().map(|(id, ..)| usize::from(id.0) + 1).max().unwrap_or(0)];
        for (slot, (id, ..)) in columns.iter().enumerate() {
            by_id[usize::from(id.0)] = slot as u16;
        }
        let has_json = slots.iter().any(|slot| slot.codec == Codec::Json);
        RowLayout { version, columns, slots, by_id, fixed_end: next_offset, variable_columns: next_variable, has_json }
    }

    /// The layout of a table's present columns, as version `version`.
    pub fn for_columns(version: u16, columns: &[crate::Column]) -> Self {
        RowLayout::new(version, columns.iter().map(|c| (c.id, c.ty, c.nullable)).collect())
    }

    /// Whether rows of this layout can hold the column.
    pub fn has_column(&self, id: ColumnId) -> bool {
        self.by_id.get(usize::from(id.0)).is_some_and(|slot| *slot != NONE)
    }

    /// Whether bytes that somebody else sent have the shape of a row of this layout, so that reading it does not panic: as long as its offsets say, the offsets
    /// in order, texts UTF-8. Says nothing of its values.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let fixed = self.fixed_end as usize;
        if bytes.len() < fixed || self.variable_columns == 0 {
            return bytes.len() == fixed;
        }
        let width = if bytes[0] & WIDE == 0 { 2 } else { 4 };
        let data = fixed + self.variable_columns as usize * width;
        if bytes.len() < data {
            return false;
        }
        let (ends, content) = bytes[fixed..].split_at(data - fixed);
        let mut start = 0;
        for (slot, end) in self.slots.iter().filter(|s| s.codec.is_variable()).zip(ends.chunks_exact(width)) {
            let mut wide = [0; 4];
            wide[..width].copy_from_slice(end);
            let end = u32::from_le_bytes(wide) as usize;
            let Some(value) = content.get(start..end) else { return false };
            if !slot.fits(value) {
                return false;
            }
            start = end;
        }
        start == content.len()
    }

    fn is_null(&self, slot: &Slot, bytes: &[u8]) -> bool {
        slot.null_bit != NONE && bytes[usize::from(slot.null_bit / 8)] & 1 << (slot.null_bit % 8) != 0
    }

    #[inline]
    fn read<'a>(&self, slot: &Slot, row: RowImage<'a>) -> ValueRef<'a> {
        let bytes = row.head;
        if self.is_null(slot, bytes) {
            return ValueRef::Null;
        }
        let at = usize::from(slot.place);
        let wide24 = || {
            let [a, b, c] = array(bytes, at);
            u32::from_le_bytes([a, b, c, 0])
        };
        match slot.codec {
            Codec::I8 => ValueRef::Int((bytes[at] as i8).into()),
            Codec::I16 => ValueRef::Int(i16::from_le_bytes(array(bytes, at)).into()),
            Codec::I24 => ValueRef::Int(((wide24() << 8) as i32 >> 8).into()),
            Codec::I32 => ValueRef::Int(i32::from_le_bytes(array(bytes, at)).into()),
            Codec::I64 => ValueRef::Int(i64::from_le_bytes(array(bytes, at))),
            Codec::U8 => ValueRef::UInt(bytes[at].into()),
            Codec::U16 => ValueRef::UInt(u16::from_le_bytes(array(bytes, at)).into()),
            Codec::U24 => ValueRef::UInt(wide24().into()),
            Codec::U32 => ValueRef::UInt(u32::from_le_bytes(array(bytes, at)).into()),
            Codec::U64 => ValueRef::UInt(u64::from_le_bytes(array(bytes, at))),
            Codec::Year => ValueRef::UInt(match bytes[at] {
                0 => 0,
                since => 1900 + u64::from(since),
            }),
            Codec::F32 => ValueRef::Double(f32::from_le_bytes(array(bytes, at)).into()),
            Codec::F64 => ValueRef::Double(f64::from_le_bytes(array(bytes, at))),
            Codec::Date => ValueRef::Date(Date::from_packed(wide24())),
            Codec::Time => ValueRef::Time(Time::clipped(i64::from_le_bytes(array(bytes, at)))),
            Codec::DateTime => ValueRef::DateTime(DateTime::from_packed(u64::from_le_bytes(array(bytes, at)))),
            Codec::Timestamp => ValueRef::Timestamp(i64::from_le_bytes(array(bytes, at))),
            Codec::Decimal32 => decimal(i32::from_le_bytes(array(bytes, at)), slot.scale),
            Codec::Decimal64 => decimal(i64::from_le_bytes(array(bytes, at)), slot.scale),
            Codec::Decimal128 => decimal(i128::from_le_bytes(array(bytes, at)), slot.scale),
            Codec::DecimalWide => ValueRef::Decimal(read_wide_decimal(self.variable(slot.place, row), slot.scale)),
            Codec::Char | Codec::Text => {
                ValueRef::Str(std::str::from_utf8(self.variable(slot.place, row)).expect("a stored text is UTF-8"))
            }
            Codec::Bytes => ValueRef::Bytes(self.variable(slot.place, row)),
            Codec::Json => ValueRef::Json(JsonRef::stored(self.variable(slot.place, row))),
        }
    }
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("N bytes")
}

#[inline]
fn decimal<'a>(unscaled: impl Into<i128>, scale: u8) -> ValueRef<'a> {
    ValueRef::Decimal(Decimal::new(unscaled.into(), scale))
}

fn offset_width(variable_bytes: usize) -> usize {
    if variable_bytes > usize::from(u16::MAX) { 4 } else { 2 }
}

fn read_wide_decimal(bytes: &[u8], scale: u8) -> Decimal {
    wide_decimal(bytes, scale).expect("a stored decimal has at most 65 digits")
}

fn wide_decimal(bytes: &[u8], scale: u8) -> Option<Decimal> {
    let negative = bytes.last().is_some_and(|b| *b >= 0x80);
    let mut all = [if negative { 0xFF } else { 0 }; 32];
    all[..bytes.len()].copy_from_slice(bytes);
    Decimal::from_unscaled(I256::from_le_bytes(all), scale).ok()
}

/// As few little-endian two's complement bytes as hold `value`; zero is one byte.
fn wide_decimal_bytes(value: I256) -> ([u8; 32], usize) {
    let bytes = value.to_le_bytes();
    let fill = if value.is_negative() { 0xFF } else { 0 };
    let mut length = 32;
    while length > 1 && bytes[length - 1] == fill && (bytes[length - 2] >= 0x80) == (fill == 0xFF) {
        length -= 1;
    }
    (bytes, length)
}

/// The unscaled integer of a value in a DECIMAL column.
fn unscaled(value: ValueRef<'_>, scale: u8) -> I256 {
    match value {
        ValueRef::Decimal(v) if v.scale() == scale => v.unscaled(),
        ValueRef::Decimal(v) => v.rescale(scale).expect("a value converted to its column's type fits").unscaled(),
        _ => mismatch(value, "DECIMAL"),
    }
}

#[cold]
fn mismatch(value: ValueRef<'_>, column: &str) -> ! {
    panic!("{value:?} was not converted to the type of its column, {column}")
}

/// Encodes one value for each column of `table`, in order, into the table's newest layout. Appends to `out`.
/// Values must have been converted to the column types before (NOT NULL checked, lengths checked); one that was not panics.
pub fn encode_row(table: &TableSchema, values: &[Value], out: &mut Vec<u8>) {
    encode(table, values.iter(), out);
}

/// The same for values that own nothing.
pub fn encode_refs(table: &TableSchema, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
    encode(table, values.iter().copied(), out);
}

#[inline(always)]
fn encode<'v>(table: &TableSchema, values: impl ExactSizeIterator<Item = impl Source<'v>> + Clone, out: &mut Vec<u8>) {
    let layout = table.layout();
    assert_eq!(values.len(), layout.slots.len(), "one value for each column");
    let columns = layout.slots.iter().zip(values);
    let variable_bytes = columns.clone().map(|(slot, value)| variable_length(slot, value)).sum();
    let start = out.len();
    let width = offset_width(variable_bytes);
    let head = layout.fixed_end as usize + layout.variable_columns as usize * width;
    out.reserve(head + variable_bytes);
    out.resize(start + head, 0);
    if width == 4 {
        out[start] |= WIDE;
    }
    let data = out.len();
    for (slot, value) in columns {
        if value.is_null() {
            assert!(slot.null_bit != NONE, "NULL in a NOT NULL column");
            out[start + usize::from(slot.null_bit / 8)] |= 1 << (slot.null_bit % 8);
        } else if slot.codec.is_variable() {
            append_variable(slot, value, out);
        } else {
            let at = start + usize::from(slot.place);
            write_fixed(slot, value, &mut out[at..at + slot.codec.width() as usize]);
        }
        if slot.codec.is_variable() {
            let end = (out.len() - data) as u32;
            let at = start + layout.fixed_end as usize + usize::from(slot.place) * width;
            out[at..at + width].copy_from_slice(&end.to_le_bytes()[..width]);
        }
    }
}

/// A value to be encoded, owned or borrowed. Each way has code of its own, since turning an owned value into a borrowed one costs more than writing it.
trait Source<'v>: Copy {
    fn is_null(self) -> bool;
    fn text(self) -> Option<&'v str>;
    fn bytes(self) -> Option<&'v [u8]>;
    fn integer(self) -> Option<i128>;
    fn value(self) -> ValueRef<'v>;
}

macro_rules! source {
    ($enum:ident, $of:ty) => {
        impl<'v> Source<'v> for $of {
            #[inline]
            fn is_null(self) -> bool {
                matches!(self, $enum::Null)
            }

            #[inline]
            fn text(self) -> Option<&'v str> {
                if let $enum::Str(text) = self { Some(text) } else { None }
            }

            #[inline]
            fn bytes(self) -> Option<&'v [u8]> {
                if let $enum::Bytes(bytes) = self { Some(bytes) } else { None }
            }

            #[inline]
            fn integer(self) -> Option<i128> {
                match self {
                    $enum::Int(v) => Some(v.to_owned().into()),
                    $enum::UInt(v) => Some(v.to_owned().into()),
                    _ => None,
                }
            }

            #[inline]
            fn value(self) -> ValueRef<'v> {
                self.into()
            }
        }
    };
}
source!(Value, &'v Value);
source!(ValueRef, ValueRef<'v>);

fn variable_length<'v>(slot: &Slot, value: impl Source<'v>) -> usize {
    match slot.codec {
        Codec::Char => value.text().map_or(0, |text| collation::trim_spaces(text.as_bytes()).len()),
        Codec::Text => value.text().map_or(0, str::len),
        Codec::Bytes => value.bytes().map_or(0, <[u8]>::len),
        Codec::Json => json(value).map_or(0, JsonRef::stored_len),
        Codec::DecimalWide if !value.is_null() => wide_decimal_bytes(unscaled(value.value(), slot.scale)).1,
        _ => 0,
    }
}

fn append_variable<'v>(slot: &Slot, value: impl Source<'v>, out: &mut Vec<u8>) {
    let bytes = match slot.codec {
        Codec::Char => value.text().map(|text| collation::trim_spaces(text.as_bytes())),
        Codec::Text => value.text().map(str::as_bytes),
        Codec::Bytes => value.bytes(),
        Codec::Json => {
            match json(value) {
                Some(json) => json.append_stored(out),
                None => mismatch(value.value(), "JSON"),
            }
            return;
        }
        _ => {
            let (bytes, length) = wide_decimal_bytes(unscaled(value.value(), slot.scale));
            out.extend_from_slice(&bytes[..length]);
            return;
        }
    };
    out.extend_from_slice(bytes.unwrap_or_else(|| mismatch(value.value(), "text or bytes")));
}

/// JSON in its stored form; a text is stored as it is.
fn json<'v>(value: impl Source<'v>) -> Option<JsonRef<'v>> {
    match value.value() {
        ValueRef::Json(json) => Some(json),
        ValueRef::Str(text) => Some(JsonRef::of_text(text)),
        _ => None,
    }
}

#[inline]
fn write_fixed<'v>(slot: &Slot, value: impl Source<'v>, out: &mut [u8]) {
    match slot.codec {
        Codec::I8 | Codec::I16 | Codec::I24 | Codec::I32 | Codec::I64 => write_integer(integer(value), true, out),
        Codec::U8 | Codec::U16 | Codec::U24 | Codec::U32 | Codec::U64 => write_integer(integer(value), false, out),
        _ => write_other(slot, value.value(), out),
    }
}

fn integer<'v>(value: impl Source<'v>) -> i128 {
    value.integer().unwrap_or_else(|| mismatch(value.value(), "an integer"))
}

/// Of a fixed column that has no integer.
fn write_other(slot: &Slot, value: ValueRef<'_>, out: &mut [u8]) {
    let width = out.len();
    match (slot.codec, value) {
        (Codec::F32, ValueRef::Double(v)) => out.copy_from_slice(&(v as f32).to_le_bytes()),
        (Codec::F64, ValueRef::Double(v)) => out.copy_from_slice(&v.to_le_bytes()),
        (Codec::Date, ValueRef::Date(v)) => out.copy_from_slice(&v.packed().to_le_bytes()[..3]),
        (Codec::Time, ValueRef::Time(v)) => out.copy_from_slice(&v.micros().to_le_bytes()),
        (Codec::DateTime, ValueRef::DateTime(v)) => out.copy_from_slice(&v.packed().to_le_bytes()),
        (Codec::Timestamp, ValueRef::Timestamp(v)) => out.copy_from_slice(&v.to_le_bytes()),
        (Codec::Year, ValueRef::UInt(year @ (0 | 1901..=2155))) => out[0] = year.saturating_sub(1900) as u8,
        (Codec::Decimal32 | Codec::Decimal64 | Codec::Decimal128, ValueRef::Decimal(_)) => {
            let value = unscaled(value, slot.scale);
            write_integer(value.as_i128(), true, out);
            assert!(width == 16 || in_range(value.as_i128(), width, true), "a decimal over its column's precision");
        }
        (codec, _) => mismatch(value, &format!("{codec:?}")),
    }
}

fn in_range(value: i128, width: usize, signed: bool) -> bool {
    let bits = 8 * width as u32;
    if signed {
        (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&value)
    } else {
        (0..1i128 << bits).contains(&value)
    }
}

fn write_integer(value: i128, signed: bool, out: &mut [u8]) {
    let width = out.len();
    assert!(width == 16 || in_range(value, width, signed), "{value} is out of the range of its column");
    out.copy_from_slice(&value.to_le_bytes()[..width]);
}

/// What a row reads that is older than the column. Catalogs of before have JSON as text.
#[cold]
fn initial(column: &crate::Column) -> ValueRef<'_> {
    match column.initial.as_ref() {
        ValueRef::Str(text) if column.ty.kind == TypeKind::Json => ValueRef::Json(JsonRef::of_text(text)),
        value => value,
    }
}

/// A stored row and how to read it.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    table: &'a TableSchema,
    layout: &'a RowLayout,
    image: RowImage<'a>,
    /// The layout is the newest: a column's position is its slot.
    newest: bool,
}

impl<'a> RowView<'a> {
    /// Of a whole row. `layout_version` is the one in the row's header.
    #[inline]
    pub fn new(table: &'a TableSchema, layout_version: u16, bytes: &'a [u8]) -> Self {
        RowView::of(table, layout_version, bytes.into())
    }

    #[inline]
    pub fn of(table: &'a TableSchema, layout_version: u16, image: RowImage<'a>) -> Self {
        let layout: &RowLayout = table.layout_of(layout_version);
        let newest = usize::from(layout_version) + 1 == table.layouts.len();
        debug_assert!(!newest || layout.columns.iter().map(|c| c.0).eq(table.columns.iter().map(|c| c.id)));
        RowView { table, layout, image, newest }
    }

    /// The row as it is kept: [`Field`]s read it.
    #[inline]
    pub fn image(&self) -> RowImage<'a> {
        self.image
    }

    /// Bytes of the row, of its large values too.
    #[inline]
    pub fn size(&self) -> usize {
        self.image.size()
    }

    /// Appends the whole row, as [`encode_row`] made it.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        self.image.append_whole(self.layout, out);
    }

    /// The same for a reader that reads none of the columns at the positions `unread`: where a row has large values, those columns are empty.
    #[inline]
    pub fn append_without(&self, unread: &[usize], out: &mut Vec<u8>) {
        match unread.is_empty() || self.image.beside.is_empty() {
            true => self.append_to(out),
            false => self.append_read(unread, out),
        }
    }

    #[cold]
    fn append_read(&self, unread: &[usize], out: &mut Vec<u8>) {
        let slots = unread.iter().filter_map(|&position| self.slot(position));
        let without: Vec<u16> = slots.filter(|slot| slot.codec.is_variable()).map(|slot| slot.place).collect();
        self.image.append_values(self.layout, &without, out);
    }

    /// The whole row, copied.
    pub fn to_whole(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.size());
        self.append_to(&mut whole);
        whole
    }

    /// The whole row: `room` is where it is put together, if it must be.
    #[inline]
    pub fn whole<'r>(&self, room: &'r mut Vec<u8>) -> &'r [u8]
    where
        'a: 'r,
    {
        self.image.whole(self.layout, room)
    }

    /// The same as [`RowView::new`] for bytes and a version that somebody else sent: `None` when reading a column could panic.
    pub fn checked(table: &'a TableSchema, layout_version: u16, bytes: &'a [u8]) -> Option<Self> {
        let layout = table.layouts.get(usize::from(layout_version))?;
        layout.holds(bytes).then(|| RowView::new(table, layout_version, bytes))
    }

    /// The version of the row's layout.
    pub fn layout(&self) -> u16 {
        self.layout.version
    }

    /// The row's layout, when it is the newest one: that of [`Field`]s.
    #[inline]
    pub fn newest_layout(&self) -> Option<&'a RowLayout> {
        self.newest.then_some(self.layout)
    }

    /// The schema by which the row is read.
    pub fn table(&self) -> &'a TableSchema {
        self.table
    }

    /// The slot of a column, or `None` when the row is older than the column.
    #[inline]
    fn slot(&self, position: usize) -> Option<&'a Slot> {
        if self.newest {
            return Some(&self.layout.slots[position]);
        }
        let id = usize::from(self.table.columns[position].id.0);
        let slot = *self.layout.by_id.get(id)?;
        (slot != NONE).then(|| &self.layout.slots[usize::from(slot)])
    }

    /// The value of the column at `position` of the newest schema.
    #[inline]
    pub fn get(&self, position: usize) -> ValueRef<'a> {
        match self.slot(position) {
            Some(slot) => self.layout.read(slot, self.image),
            None => initial(&self.table.columns[position]),
        }
    }

    /// The row as programs of the native API see it, where it is another one: with JSON as text. The version is that of its layout.
    #[inline]
    pub fn shown(&self) -> Option<(u16, Vec<u8>)> {
        if self.layout.has_json { self.with_text() } else { None }
    }

    #[cold]
    fn with_text(&self) -> Option<(u16, Vec<u8>)> {
        let values = (0..self.table.columns.len()).map(|position| match self.get(position) {
            ValueRef::Json(json) => {
                let mut text = Vec::new();
                json.append_shown(&mut text);
                Value::Str(String::from_utf8_lossy(&text).into_owned())
            }
            value => value.to_owned(),
        });
        let mut bytes = Vec::new();
        encode_row(self.table, &values.collect::<Vec<_>>(), &mut bytes);
        Some((self.table.layout().version, bytes))
    }

    #[inline]
    pub fn is_null(&self, position: usize) -> bool {
        match self.slot(position) {
            Some(slot) => self.layout.is_null(slot, self.image.head),
            None => self.table.columns[position].initial.is_null(),
        }
    }

    /// All values, owned, one for each column of the newest schema.
    pub fn to_values(&self) -> Vec<Value> {
        (0..self.table.columns.len()).map(|position| self.get(position).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests;
