//! Files of rows: how their lines are read, and where the fields of LOAD DATA go; how wide values are in lines without terminators.

use super::SetColumn;
use crate::parse::ast::FileFormat;
use rauk_types::error::codes;
use rauk_types::members::Members;
use rauk_types::{Charset, DataType, MysqlError, TypeKind};

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
    pub charset: Charset,
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

/// The character set of a file; `binary` means bytes as they are. Errors: 1115, and 1235 where a terminator of one byte is no character.
pub(crate) fn file_charset(name: &str) -> Result<Charset, MysqlError> {
    let unknown = || MysqlError::new(codes::UNKNOWN_CHARACTER_SET, format!("Unknown character set: '{name}'"));
    let set = Charset::named(name).ok_or_else(unknown)?;
    if set.is_for_clients() {
        return Ok(set);
    }
    let message = format!("This version of MySQL doesn't yet support 'files of rows in {}'", set.name());
    Err(MysqlError::new(codes::NOT_SUPPORTED_YET, message))
}

/// Bytes that a column has in a fixed line.
pub(crate) fn fixed_width(ty: &DataType) -> usize {
    let sign = usize::from(!ty.unsigned);
    let each = ty.collation.charset().max_bytes() as usize;
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
        TypeKind::Enum => each * ty.members.map_or(0, Members::longest),
        TypeKind::Set => each * ty.members.map_or(0, Members::joined),
        TypeKind::Char | TypeKind::VarChar => each * ty.length as usize,
        _ => ty.length as usize,
    }
}
