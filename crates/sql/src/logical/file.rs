//! Files of rows: how their lines are read, and where the fields of LOAD DATA go; how wide values are in lines without terminators.

use super::SetColumn;
use crate::parse::ast::FileFormat;
use rauk_types::error::codes;
use rauk_types::members::Members;
use rauk_types::{DataType, MysqlError, TypeKind};

/// ER_WRONG_FIELD_TERMINATORS.
const WRONG_TERMINATORS: u16 = 1083;

/// FIELDS and LINES, as a reader needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineFormat {
    pub field_end: Vec<u8>,
    pub quote: Option<u8>,
    pub escape: Option<u8>,
    pub line_start: Vec<u8>,
    /// Empty: a line ends with its last field. So it does where lines end as fields do.
    pub line_end: Vec<u8>,
    /// LINES TERMINATED BY is not empty.
    pub lines_end: bool,
}

/// How the bytes of a file become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileCharset {
    Utf8,
    /// Windows' code page 1252, as MySQL's latin1 is.
    Latin1,
    Ascii,
    /// Bytes as they are.
    Binary,
}

/// Where a field of a line goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileTarget {
    /// The column at this position.
    Column(usize),
    /// In lower case.
    Variable(String),
}

pub(crate) struct FileRows {
    /// As the statement names it.
    pub name: String,
    pub format: LineFormat,
    pub charset: FileCharset,
    /// Lines that are passed first.
    pub skip: u64,
    pub targets: Vec<FileTarget>,
    /// Expressions that read the row as its fields have made it.
    pub set: Vec<SetColumn>,
}

impl LineFormat {
    /// Errors: 1083, of enclosing and escape characters that are more than a byte.
    pub fn new(format: &FileFormat) -> Result<LineFormat, MysqlError> {
        let byte = |bytes: &[u8]| match bytes {
            [] => Ok(None),
            [byte] => Ok(Some(*byte)),
            _ => {
                let message = "Field separator argument is not what is expected; check the manual";
                Err(MysqlError::new(WRONG_TERMINATORS, message))
            }
        };
        let same = format.line_end == format.field_end;
        Ok(LineFormat {
            field_end: format.field_end.clone(),
            quote: byte(&format.enclosed)?,
            escape: byte(&format.escaped)?,
            line_start: format.line_start.clone(),
            line_end: if same { vec![] } else { format.line_end.clone() },
            lines_end: !format.line_end.is_empty(),
        })
    }

    /// Fields have the widths of their columns.
    pub fn is_fixed(&self) -> bool {
        self.field_end.is_empty() && self.quote.is_none()
    }
}

impl FileCharset {
    /// Error 1115.
    pub fn named(name: &str) -> Result<FileCharset, MysqlError> {
        match name.to_ascii_lowercase().as_str() {
            "utf8mb4" | "utf8mb3" | "utf8" => Ok(FileCharset::Utf8),
            "latin1" => Ok(FileCharset::Latin1),
            "ascii" => Ok(FileCharset::Ascii),
            "binary" => Ok(FileCharset::Binary),
            _ => Err(MysqlError::new(codes::UNKNOWN_CHARACTER_SET, format!("Unknown character set: '{name}'"))),
        }
    }

    /// A character beyond ASCII in a file of one byte a character; `None`: it has none such.
    pub fn encoded(self, character: char) -> Option<u8> {
        match self {
            _ if character.is_ascii() => u8::try_from(character).ok(),
            FileCharset::Latin1 => (0x80..=0xFF).find(|byte| latin1(*byte) == character),
            _ => None,
        }
    }
}

/// A character of code page 1252; its five free places are control characters.
pub(crate) fn latin1(byte: u8) -> char {
    const UPPER: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..0xA0 => UPPER[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

/// Bytes that a column has in a fixed line.
pub(crate) fn fixed_width(ty: &DataType) -> usize {
    let sign = usize::from(!ty.unsigned);
    let fraction = if ty.scale > 0 { 1 + usize::from(ty.scale) } else { 0 };
    match ty.kind {
        TypeKind::TinyInt => 3 + sign,
        TypeKind::SmallInt => 5 + sign,
        TypeKind::MediumInt => 8 + sign,
        TypeKind::Int => 10 + sign,
        TypeKind::BigInt => 20,
        TypeKind::Decimal => usize::from(ty.precision) + sign + usize::from(ty.scale > 0),
        TypeKind::Float | TypeKind::Double => rauk_types::format::display_width(ty) as usize,
        TypeKind::Date => 10,
        TypeKind::Time => 10 + fraction,
        TypeKind::DateTime | TypeKind::Timestamp => 19 + fraction,
        TypeKind::Year => 4,
        TypeKind::Bit => (ty.length as usize).div_ceil(8),
        TypeKind::Enum => 4 * ty.members.map_or(0, Members::longest),
        TypeKind::Set => 4 * ty.members.map_or(0, Members::joined),
        TypeKind::Char | TypeKind::VarChar => 4 * ty.length as usize,
        _ => ty.length as usize,
    }
}
