//! Column and expression types, as MySQL declares and reports them.
//!
//! Stored forms are frozen. A type is written as the fields that it always had ([`stored`](self)): ZEROFILL is a bit of the length that numeric
//! types never use, and the members of an ENUM or SET follow the other fields of these types alone.

mod stored;

use crate::Collation;
use crate::geometry::GeometryKind;
use crate::geometry::reference::{ReferenceSystem, SYSTEMS};
use crate::members::Members;
use serde::{Deserialize, Serialize};

/// The families of MySQL's types that Rauk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TypeKind {
    /// The type of a bare NULL literal.
    Null,
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Decimal,
    Float,
    Double,
    Char,
    VarChar,
    TinyText,
    Text,
    MediumText,
    LongText,
    Binary,
    VarBinary,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Date,
    Time,
    DateTime,
    Timestamp,
    Json,
    /// The number of a member, 0 for the error value.
    Enum,
    /// A bit for each member.
    Set,
    /// `length` bits.
    Bit,
    /// 1901 to 2155, and 0.
    Year,
    /// A geometry of any kind, or of one ([`DataType::geometry_kind`]): bytes in the form of [`crate::geometry`].
    Geometry,
}

/// A complete type: family and attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataType {
    pub kind: TypeKind,
    pub unsigned: bool,
    /// CHAR, VARCHAR: characters. BINARY, VARBINARY: bytes. TEXT and BLOB kinds: the
    /// limit in bytes of the character set. Integers: display width where one was given (`tinyint(1)`), else 0. BIT: bits.
    pub length: u32,
    /// DECIMAL: total digits (1–65). GEOMETRY: the number of the kind. Else 0.
    pub precision: u8,
    /// DECIMAL: digits behind the point (0–30). TIME, DATETIME, TIMESTAMP: digits of the
    /// fraction of a second (0–6). FLOAT, DOUBLE: 31 = not fixed. GEOMETRY: 1 more than the place of its reference system, 0 = any.
    pub scale: u8,
    /// Of character types, ENUM and SET; [`Collation::Binary`] for all others.
    pub collation: Collation,
    /// Numbers of a column declared so are padded with zeros where they are text. They are unsigned.
    pub zerofill: bool,
    /// Of ENUM and SET.
    pub members: Option<&'static Members>,
}

impl DataType {
    /// A type with the defaults of its family.
    pub const fn new(kind: TypeKind) -> Self {
        let (length, precision, scale) = match kind {
            TypeKind::Decimal => (0, 10, 0),
            TypeKind::Float | TypeKind::Double => (0, 0, 31),
            TypeKind::Char | TypeKind::Binary | TypeKind::Bit => (1, 0, 0),
            TypeKind::TinyText | TypeKind::TinyBlob => (255, 0, 0),
            TypeKind::Text | TypeKind::Blob => (65_535, 0, 0),
            TypeKind::MediumText | TypeKind::MediumBlob => (16_777_215, 0, 0),
            TypeKind::LongText | TypeKind::LongBlob | TypeKind::Json | TypeKind::Geometry => (u32::MAX, 0, 0),
            _ => (0, 0, 0),
        };
        let collation = match kind {
            TypeKind::Char
            | TypeKind::VarChar
            | TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
            | TypeKind::Enum
            | TypeKind::Set => Collation::DEFAULT,
            TypeKind::Json => Collation::Utf8mb4Bin,
            _ => Collation::Binary,
        };
        DataType { kind, unsigned: false, length, precision, scale, collation, zerofill: false, members: None }
    }

    pub const BIGINT: DataType = DataType::new(TypeKind::BigInt);
    pub const BIGINT_UNSIGNED: DataType = DataType { unsigned: true, ..DataType::new(TypeKind::BigInt) };
    pub const DOUBLE: DataType = DataType::new(TypeKind::Double);

    pub const fn decimal(precision: u8, scale: u8) -> Self {
        DataType { precision, scale, ..DataType::new(TypeKind::Decimal) }
    }

    pub const fn varchar(chars: u32, collation: Collation) -> Self {
        DataType { length: chars, collation, ..DataType::new(TypeKind::VarChar) }
    }

    pub const fn varbinary(bytes: u32) -> Self {
        DataType { length: bytes, ..DataType::new(TypeKind::VarBinary) }
    }

    /// ENUM or SET of these members.
    pub const fn of_members(kind: TypeKind, members: &'static Members, collation: Collation) -> Self {
        DataType { collation, members: Some(members), ..DataType::new(kind) }
    }

    pub const fn bit(bits: u32) -> Self {
        DataType { length: bits, ..DataType::new(TypeKind::Bit) }
    }

    /// A geometry of this kind, and of this spatial reference system where one is given.
    pub fn geometry(kind: GeometryKind, system: Option<&'static ReferenceSystem>) -> Self {
        let place = system.and_then(|wanted| SYSTEMS.iter().position(|system| system.srid == wanted.srid));
        let scale = place.map_or(0, |place| place as u8 + 1);
        DataType { precision: kind as u8, scale, ..DataType::new(TypeKind::Geometry) }
    }

    pub const fn is_geometry(&self) -> bool {
        matches!(self.kind, TypeKind::Geometry)
    }

    /// Of a geometry: its kind.
    pub fn geometry_kind(&self) -> Option<GeometryKind> {
        GeometryKind::from_code(self.precision.into()).filter(|_| self.is_geometry())
    }

    /// Of a geometry: the one system that it may be in.
    pub fn reference_system(&self) -> Option<&'static ReferenceSystem> {
        let place = self.scale.checked_sub(1).filter(|_| self.is_geometry())?;
        SYSTEMS.get(usize::from(place))
    }

    /// ENUM and SET: numbers that are shown as text.
    pub const fn has_members(&self) -> bool {
        matches!(self.kind, TypeKind::Enum | TypeKind::Set)
    }

    /// The number of members of an ENUM or SET.
    pub fn member_count(&self) -> usize {
        self.members.map_or(0, Members::len)
    }

    /// Values are stored as integers: the integer types, BIT, YEAR, ENUM and SET.
    pub const fn holds_integer(&self) -> bool {
        self.is_integer() || self.is_plain_number()
    }

    /// BIT, YEAR, ENUM and SET: values are unsigned integers, and text of a form of their own.
    pub const fn is_plain_number(&self) -> bool {
        matches!(self.kind, TypeKind::Enum | TypeKind::Set | TypeKind::Bit | TypeKind::Year)
    }

    /// The text of a value depends on more than the value: BIT, YEAR, ENUM, SET and ZEROFILL.
    pub const fn has_own_text(&self) -> bool {
        self.is_plain_number() || self.zerofill
    }

    pub const fn is_integer(&self) -> bool {
        matches!(
            self.kind,
            TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int | TypeKind::BigInt
        )
    }

    pub const fn is_numeric(&self) -> bool {
        self.is_integer() || matches!(self.kind, TypeKind::Decimal | TypeKind::Float | TypeKind::Double)
    }

    /// CHAR, VARCHAR and the TEXT kinds: text with a collation (JSON is text too, in utf8mb4_bin).
    pub const fn is_text(&self) -> bool {
        matches!(
            self.kind,
            TypeKind::Char
                | TypeKind::VarChar
                | TypeKind::TinyText
                | TypeKind::Text
                | TypeKind::MediumText
                | TypeKind::LongText
                | TypeKind::Json
        )
    }

    /// BINARY, VARBINARY and the BLOB kinds, and geometries, which are bytes too.
    pub const fn is_bytes(&self) -> bool {
        matches!(
            self.kind,
            TypeKind::Binary
                | TypeKind::VarBinary
                | TypeKind::TinyBlob
                | TypeKind::Blob
                | TypeKind::MediumBlob
                | TypeKind::LongBlob
                | TypeKind::Geometry
        )
    }

    pub const fn is_temporal(&self) -> bool {
        matches!(self.kind, TypeKind::Date | TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp)
    }

    /// The kinds that need a prefix length in an index and may not have a literal default.
    pub const fn is_lob(&self) -> bool {
        matches!(
            self.kind,
            TypeKind::TinyText
                | TypeKind::Text
                | TypeKind::MediumText
                | TypeKind::LongText
                | TypeKind::TinyBlob
                | TypeKind::Blob
                | TypeKind::MediumBlob
                | TypeKind::LongBlob
                | TypeKind::Json
                | TypeKind::Geometry
        )
    }

    /// Smallest and largest value of a type that is stored as an integer, as i128. `None` for other types.
    pub fn integer_range(&self) -> Option<(i128, i128)> {
        let bits = match self.kind {
            TypeKind::Enum => return Some((0, self.member_count() as i128)),
            TypeKind::Set => return Some((0, self.members.map_or(0, Members::all).into())),
            TypeKind::Bit => return Some((0, (1i128 << self.length.min(64)) - 1)),
            TypeKind::Year => return Some((0, 2155)),
            TypeKind::TinyInt => 8,
            TypeKind::SmallInt => 16,
            TypeKind::MediumInt => 24,
            TypeKind::Int => 32,
            TypeKind::BigInt => 64,
            _ => return None,
        };
        Some(if self.unsigned { (0, (1i128 << bits) - 1) } else { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) })
    }

    /// The largest number that AUTO_INCREMENT gives in a column of this type: of FLOAT and DOUBLE the one up to which each integer is one of them.
    pub fn largest_counted(&self) -> u64 {
        match (self.kind, self.integer_range()) {
            (TypeKind::Float, _) => 1 << 24,
            (TypeKind::Double, _) => 1 << 53,
            (_, Some((_, largest))) => largest as u64,
            _ => u64::MAX,
        }
    }

    /// Bytes that a column takes in MySQL's count of a row (limit 65 535) and of a key part: a character counts as the longest of its set.
    pub fn row_bytes(&self) -> u64 {
        let length = u64::from(self.length);
        let prefixed = |bytes: u64| bytes + if bytes > 255 { 2 } else { 1 };
        let fraction = u64::from(self.scale.div_ceil(2));
        match self.kind {
            TypeKind::Null => 0,
            TypeKind::TinyInt => 1,
            TypeKind::SmallInt => 2,
            TypeKind::MediumInt | TypeKind::Date => 3,
            TypeKind::Int | TypeKind::Float => 4,
            TypeKind::BigInt | TypeKind::Double => 8,
            TypeKind::Decimal => {
                let digits = |n: u64| n / 9 * 4 + [0, 1, 1, 2, 2, 3, 3, 4, 4][(n % 9) as usize];
                digits(u64::from(self.precision - self.scale)) + digits(u64::from(self.scale))
            }
            TypeKind::Char => length * u64::from(self.collation.charset().max_bytes()),
            TypeKind::VarChar => prefixed(length * u64::from(self.collation.charset().max_bytes())),
            TypeKind::Binary => length,
            TypeKind::VarBinary => prefixed(length),
            TypeKind::Time => 3 + fraction,
            TypeKind::DateTime => 5 + fraction,
            TypeKind::Timestamp => 4 + fraction,
            TypeKind::TinyText | TypeKind::TinyBlob => 9,
            TypeKind::Text | TypeKind::Blob => 10,
            TypeKind::MediumText | TypeKind::MediumBlob => 11,
            TypeKind::LongText | TypeKind::LongBlob | TypeKind::Json | TypeKind::Geometry => 12,
            TypeKind::Enum if self.member_count() < 256 => 1,
            TypeKind::Enum => 2,
            TypeKind::Set => match self.member_count().div_ceil(8) {
                bytes @ 0..=4 => bytes.max(1) as u64,
                _ => 8,
            },
            TypeKind::Bit => length.div_ceil(8),
            TypeKind::Year => 1,
        }
    }
}
