//! Declared types: synonyms, lengths, precisions, character sets.
//!
//! Errors: 1074 (length), 1425, 1426, 1427 (precision and scale), 1439 (display width), 1063, 1115, 1273, 1235 for types that Rauk does not have.

use crate::parse::ast::{ColumnType, Digits, IntegerSize};
use crate::session::charset;
use crate::session::errors;
use rauk_types::error::codes;
use rauk_types::{Collation, DataType, MysqlError, TypeKind};

/// Bytes of the longest utf8mb4 character.
const MAX_CHAR_BYTES: u64 = 4;
const MAX_VARCHAR_CHARS: u64 = 65_535 / MAX_CHAR_BYTES;

/// What else the column definition says about its type.
#[derive(Default)]
pub struct TypeAttributes<'a> {
    pub charset: Option<&'a str>,
    pub collation: Option<&'a str>,
    /// The table's collation.
    pub inherited: Collation,
    pub strict: bool,
}

/// The type that a column definition declares.
pub fn convert(declared: &ColumnType, column: &str, attributes: &TypeAttributes<'_>) -> Result<DataType, MysqlError> {
    let ty = match declared {
        ColumnType::Integer { size, width, unsigned } => integer_type(*size, *width, *unsigned, column)?,
        ColumnType::Boolean => DataType { length: 1, ..DataType::new(TypeKind::TinyInt) },
        ColumnType::Decimal { digits, unsigned } => decimal(*digits, *unsigned, column)?,
        ColumnType::Float { digits, unsigned } => float(*digits, *unsigned, column)?,
        ColumnType::Double { digits, unsigned } => double(*digits, *unsigned, column)?,
        ColumnType::Char(length) => character(TypeKind::Char, *length, column, attributes)?,
        ColumnType::VarChar(length) => character(TypeKind::VarChar, *length, column, attributes)?,
        ColumnType::TinyText => character(TypeKind::TinyText, None, column, attributes)?,
        ColumnType::Text => character(TypeKind::Text, None, column, attributes)?,
        ColumnType::MediumText => character(TypeKind::MediumText, None, column, attributes)?,
        ColumnType::LongText => character(TypeKind::LongText, None, column, attributes)?,
        ColumnType::Binary(length) => binary(TypeKind::Binary, *length, column)?,
        ColumnType::VarBinary(length) => binary(TypeKind::VarBinary, *length, column)?,
        ColumnType::TinyBlob => DataType::new(TypeKind::TinyBlob),
        ColumnType::Blob => DataType::new(TypeKind::Blob),
        ColumnType::MediumBlob => DataType::new(TypeKind::MediumBlob),
        ColumnType::LongBlob => DataType::new(TypeKind::LongBlob),
        ColumnType::Date => DataType::new(TypeKind::Date),
        ColumnType::Time(digits) => temporal(TypeKind::Time, *digits, column)?,
        ColumnType::DateTime(digits) => temporal(TypeKind::DateTime, *digits, column)?,
        ColumnType::Timestamp(digits) => temporal(TypeKind::Timestamp, *digits, column)?,
        ColumnType::Json => DataType::new(TypeKind::Json),
        ColumnType::Enum(_) => return Err(errors::not_supported("ENUM columns")),
        ColumnType::Set(_) => return Err(errors::not_supported("SET columns")),
        ColumnType::Bit(_) => return Err(errors::not_supported("BIT columns")),
        ColumnType::Year(_) => return Err(errors::not_supported("YEAR columns")),
        ColumnType::Other(name) => return Err(errors::not_supported(&format!("{name} columns"))),
    };
    let character_type = ty.is_text() && ty.kind != TypeKind::Json || ty.is_bytes();
    if !character_type && attributes.charset.is_some() {
        return Err(MysqlError::new(
            codes::PARSE_ERROR,
            format!("You have an error in your SQL syntax; column '{column}' cannot have a character set"),
        ));
    }
    Ok(ty)
}

fn integer_type(size: IntegerSize, width: Option<u64>, unsigned: bool, column: &str) -> Result<DataType, MysqlError> {
    let kind = match size {
        IntegerSize::Tiny => TypeKind::TinyInt,
        IntegerSize::Small => TypeKind::SmallInt,
        IntegerSize::Medium => TypeKind::MediumInt,
        IntegerSize::Int => TypeKind::Int,
        IntegerSize::Big => TypeKind::BigInt,
    };
    if width.is_some_and(|w| w > 255) {
        let message = format!("Display width out of range for column '{column}' (max = 255)");
        return Err(MysqlError::new(1439, message));
    }
    // MySQL 8 forgets display widths but that of `tinyint(1)`, by which drivers know a boolean.
    let length = if kind == TypeKind::TinyInt && width == Some(1) && !unsigned { 1 } else { 0 };
    Ok(DataType { unsigned, length, ..DataType::new(kind) })
}

fn too_big_precision(given: u64, column: &str, max: u64) -> MysqlError {
    MysqlError::new(
        codes::TOO_BIG_PRECISION,
        format!("Too-big precision {given} specified for '{column}'. Maximum is {max}."),
    )
}

fn check_scale(precision: u64, scale: u64, max_precision: u64, column: &str) -> Result<(), MysqlError> {
    if scale > 30 {
        let message = format!("Too big scale {scale} specified for column '{column}'. Maximum is 30.");
        return Err(MysqlError::new(codes::TOO_BIG_SCALE, message));
    }
    if precision > max_precision {
        return Err(too_big_precision(precision, column, max_precision));
    }
    if scale > precision {
        let message = format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}').");
        return Err(MysqlError::new(codes::M_BIGGER_THAN_D, message));
    }
    Ok(())
}

fn decimal(digits: Digits, unsigned: bool, column: &str) -> Result<DataType, MysqlError> {
    let scale = digits.scale.unwrap_or(0);
    // DECIMAL(0) is DECIMAL(10).
    let precision = match digits.precision {
        None => 10,
        Some(0) if scale == 0 => 10,
        Some(precision) => precision,
    };
    check_scale(precision, scale, 65, column)?;
    Ok(DataType { unsigned, ..DataType::decimal(precision as u8, scale as u8) })
}

fn float(digits: Digits, unsigned: bool, column: &str) -> Result<DataType, MysqlError> {
    match (digits.precision, digits.scale) {
        (Some(precision), Some(scale)) => fixed(TypeKind::Float, precision, scale, unsigned, column),
        (None | Some(0..=24), _) => Ok(DataType { unsigned, ..DataType::new(TypeKind::Float) }),
        (Some(25..=53), None) => Ok(DataType { unsigned, ..DataType::DOUBLE }),
        (Some(_), None) => Err(MysqlError::new(1063, format!("Incorrect column specifier for column '{column}'"))),
    }
}

fn double(digits: Digits, unsigned: bool, column: &str) -> Result<DataType, MysqlError> {
    match (digits.precision, digits.scale) {
        (Some(precision), Some(scale)) => fixed(TypeKind::Double, precision, scale, unsigned, column),
        (Some(_), None) => Err(MysqlError::new(
            codes::PARSE_ERROR,
            format!("You have an error in your SQL syntax; DOUBLE of column '{column}' takes both M and D, or neither"),
        )),
        (None, _) => Ok(DataType { unsigned, ..DataType::DOUBLE }),
    }
}

/// FLOAT(M,D) and DOUBLE(M,D): `precision` keeps M for SHOW CREATE TABLE.
fn fixed(kind: TypeKind, precision: u64, scale: u64, unsigned: bool, column: &str) -> Result<DataType, MysqlError> {
    if precision > 255 {
        return Err(MysqlError::new(1439, format!("Display width out of range for column '{column}' (max = 255)")));
    }
    check_scale(precision, scale, 255, column)?;
    Ok(DataType { unsigned, precision: precision as u8, scale: scale as u8, ..DataType::new(kind) })
}

fn temporal(kind: TypeKind, digits: Option<u64>, column: &str) -> Result<DataType, MysqlError> {
    let digits = digits.unwrap_or(0);
    if digits > 6 {
        return Err(too_big_precision(digits, column, 6));
    }
    Ok(DataType { scale: digits as u8, ..DataType::new(kind) })
}

fn too_long(column: &str, max: u64) -> MysqlError {
    MysqlError::new(
        codes::TOO_BIG_FIELDLENGTH,
        format!("Column length too big for column '{column}' (max = {max}); use BLOB or TEXT instead"),
    )
}

fn binary(kind: TypeKind, length: Option<u64>, column: &str) -> Result<DataType, MysqlError> {
    let max = if kind == TypeKind::Binary { 255 } else { 65_535 };
    let length = match (kind, length) {
        (_, Some(length)) if length > max => return Err(too_long(column, max)),
        (_, Some(length)) => length,
        (TypeKind::Binary, None) => 1,
        (_, None) => {
            return Err(MysqlError::new(
                codes::PARSE_ERROR,
                format!("You have an error in your SQL syntax; VARBINARY of column '{column}' needs a length"),
            ));
        }
    };
    Ok(DataType { length: length as u32, ..DataType::new(kind) })
}

/// The smallest TEXT kind for so many characters.
fn sized_text(characters: u64, column: &str) -> Result<TypeKind, MysqlError> {
    match characters.saturating_mul(MAX_CHAR_BYTES) {
        0..=255 => Ok(TypeKind::TinyText),
        256..=65_535 => Ok(TypeKind::Text),
        65_536..=16_777_215 => Ok(TypeKind::MediumText),
        16_777_216..=0xFFFF_FFFF => Ok(TypeKind::LongText),
        _ => Err(MysqlError::new(1439, format!("Display width out of range for column '{column}' (max = 4294967295)"))),
    }
}

fn character(
    kind: TypeKind,
    length: Option<u64>,
    column: &str,
    attributes: &TypeAttributes<'_>,
) -> Result<DataType, MysqlError> {
    let collation = charset::resolve(attributes.charset, attributes.collation, attributes.inherited)?;
    if collation == Collation::Binary {
        // CHARACTER SET binary makes the byte type of the same shape.
        let kind = match kind {
            TypeKind::Char => return binary(TypeKind::Binary, length, column),
            TypeKind::VarChar => return binary(TypeKind::VarBinary, length, column),
            TypeKind::TinyText => TypeKind::TinyBlob,
            TypeKind::Text => TypeKind::Blob,
            TypeKind::MediumText => TypeKind::MediumBlob,
            _ => TypeKind::LongBlob,
        };
        return Ok(DataType::new(kind));
    }
    let mut ty = DataType { collation, ..DataType::new(kind) };
    match (kind, length) {
        (TypeKind::Char, Some(length)) if length > 255 => return Err(too_long(column, 255)),
        (TypeKind::VarChar, Some(length)) if length > MAX_VARCHAR_CHARS => {
            if attributes.strict {
                return Err(too_long(column, MAX_VARCHAR_CHARS));
            }
            ty = DataType { collation, ..DataType::new(sized_text(length, column)?) };
        }
        (TypeKind::Char | TypeKind::VarChar, Some(length)) => ty.length = length as u32,
        (TypeKind::VarChar, None) => {
            return Err(MysqlError::new(
                codes::PARSE_ERROR,
                format!("You have an error in your SQL syntax; VARCHAR of column '{column}' needs a length"),
            ));
        }
        _ => {}
    }
    Ok(ty)
}

/// The type as MySQL 8 writes it in SHOW CREATE TABLE and COLUMN_TYPE: `int unsigned`, `decimal(10,2)`, `varchar(20)`.
pub fn column_type(ty: &DataType) -> String {
    let mut out = match ty.kind {
        TypeKind::Null => "null".to_string(),
        TypeKind::TinyInt if ty.length == 1 => "tinyint(1)".to_string(),
        TypeKind::Decimal => format!("decimal({},{})", ty.precision, ty.scale),
        TypeKind::Float | TypeKind::Double if ty.scale < 31 => {
            format!("{}({},{})", data_type_name(ty.kind), ty.precision, ty.scale)
        }
        TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary => {
            format!("{}({})", data_type_name(ty.kind), ty.length)
        }
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp if ty.scale > 0 => {
            format!("{}({})", data_type_name(ty.kind), ty.scale)
        }
        kind => data_type_name(kind).to_string(),
    };
    if ty.unsigned {
        out.push_str(" unsigned");
    }
    out
}

/// DATA_TYPE of information_schema: the family's name.
pub fn data_type_name(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Null => "null",
        TypeKind::TinyInt => "tinyint",
        TypeKind::SmallInt => "smallint",
        TypeKind::MediumInt => "mediumint",
        TypeKind::Int => "int",
        TypeKind::BigInt => "bigint",
        TypeKind::Decimal => "decimal",
        TypeKind::Float => "float",
        TypeKind::Double => "double",
        TypeKind::Char => "char",
        TypeKind::VarChar => "varchar",
        TypeKind::TinyText => "tinytext",
        TypeKind::Text => "text",
        TypeKind::MediumText => "mediumtext",
        TypeKind::LongText => "longtext",
        TypeKind::Binary => "binary",
        TypeKind::VarBinary => "varbinary",
        TypeKind::TinyBlob => "tinyblob",
        TypeKind::Blob => "blob",
        TypeKind::MediumBlob => "mediumblob",
        TypeKind::LongBlob => "longblob",
        TypeKind::Date => "date",
        TypeKind::Time => "time",
        TypeKind::DateTime => "datetime",
        TypeKind::Timestamp => "timestamp",
        TypeKind::Json => "json",
    }
}
