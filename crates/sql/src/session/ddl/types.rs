//! Declared types: synonyms, lengths, precisions, character sets.
//!
//! Errors: 1074 (length), 1425, 1426, 1427 (precision and scale), 1439 (display width), 1063, 1115, 1273, 1235 for types that Rauk does not have; of
//! members 1097, 1291, 1367, 3505; 1818 of YEAR, 3013 of BIT(0).

use crate::expr;
use crate::parse::ast::{ColumnType, Digits, IntegerSize};
use crate::session::charset;
use crate::session::errors;
use rauk_types::error::codes;
use rauk_types::format::display_width;
use rauk_types::geometry::ReferenceSystem;
use rauk_types::members::{MAX_ENUM_MEMBERS, MAX_KEPT_BYTES, MAX_MEMBER_CHARS, MAX_MEMBERS_BYTES, MAX_SET_MEMBERS};
use rauk_types::{Collation, DataType, GeometryKind, Members, MysqlError, TypeKind};

/// Bytes of the longest VARCHAR.
const MAX_VARCHAR_BYTES: u64 = 65_535;

/// What else the column definition says about its type.
#[derive(Default)]
pub struct TypeAttributes<'a> {
    pub charset: Option<&'a str>,
    pub collation: Option<&'a str>,
    /// BINARY behind the type: the `_bin` collation of its set.
    pub binary: bool,
    /// The table's collation.
    pub inherited: Collation,
    /// A VARCHAR or VARBINARY that is too long is an error, and not a TEXT or BLOB.
    pub strict: bool,
    pub zerofill: bool,
    /// Of SRID.
    pub system: Option<&'static ReferenceSystem>,
}

impl TypeAttributes<'_> {
    /// The collation of a type of text. One that is named comes before BINARY. Errors: 1115, 1273, 1253.
    fn resolve(&self) -> Result<Collation, MysqlError> {
        let resolved = charset::resolve(self.charset, self.collation, self.inherited)?;
        match self.binary && self.collation.is_none() {
            true => charset::binary_of(resolved.charset()),
            false => Ok(resolved),
        }
    }
}

/// The type that a column definition declares.
pub fn convert(declared: &ColumnType, column: &str, attributes: &TypeAttributes<'_>) -> Result<DataType, MysqlError> {
    let mut ty = match declared {
        ColumnType::Integer { size, width, unsigned } => integer_type(*size, *width, *unsigned, column, attributes)?,
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
        ColumnType::Binary(length) => binary(TypeKind::Binary, *length, column, attributes)?,
        ColumnType::VarBinary(length) => binary(TypeKind::VarBinary, *length, column, attributes)?,
        ColumnType::TinyBlob => DataType::new(TypeKind::TinyBlob),
        ColumnType::Blob => DataType::new(TypeKind::Blob),
        ColumnType::MediumBlob => DataType::new(TypeKind::MediumBlob),
        ColumnType::LongBlob => DataType::new(TypeKind::LongBlob),
        ColumnType::Date => DataType::new(TypeKind::Date),
        ColumnType::Time(digits) => temporal(TypeKind::Time, *digits, column)?,
        ColumnType::DateTime(digits) => temporal(TypeKind::DateTime, *digits, column)?,
        ColumnType::Timestamp(digits) => temporal(TypeKind::Timestamp, *digits, column)?,
        ColumnType::Json => DataType::new(TypeKind::Json),
        ColumnType::Enum(members) => of_members(TypeKind::Enum, members, column, attributes)?,
        ColumnType::Set(members) => of_members(TypeKind::Set, members, column, attributes)?,
        ColumnType::Bit(bits) => bit(*bits, column)?,
        ColumnType::Geometry(kind) => DataType::geometry(*kind, attributes.system),
        ColumnType::Year(None | Some(4)) => DataType::new(TypeKind::Year),
        ColumnType::Year(Some(_)) => {
            return Err(MysqlError::new(codes::INVALID_YEAR_COLUMN_LENGTH, "Supports only YEAR or YEAR(4) column."));
        }
        ColumnType::Other(name) => return Err(errors::not_supported(&format!("{name} columns"))),
    };
    if attributes.zerofill {
        ty.unsigned = true;
        ty.zerofill = true;
    }
    let character_type =
        ty.is_text() && ty.kind != TypeKind::Json || ty.is_bytes() && !ty.is_geometry() || ty.has_members();
    if !character_type && attributes.charset.is_some() {
        return Err(MysqlError::new(
            codes::PARSE_ERROR,
            format!("You have an error in your SQL syntax; column '{column}' cannot have a character set"),
        ));
    }
    Ok(ty)
}

/// ENUM and SET: members lose the spaces at their ends. One that stands twice is a note, and an error when strict.
fn of_members(
    kind: TypeKind,
    written: &[String],
    column: &str,
    attributes: &TypeAttributes<'_>,
) -> Result<DataType, MysqlError> {
    let resolved = attributes.resolve()?;
    if resolved == Collation::Binary {
        return Err(errors::not_supported("ENUM and SET columns of the character set binary"));
    }
    let set = kind == TypeKind::Set;
    let most = if set { MAX_SET_MEMBERS } else { MAX_ENUM_MEMBERS };
    let texts: Vec<String> = written.iter().map(|text| text.trim_end_matches(' ').to_string()).collect();
    if texts.len() > most || !set && texts.iter().map(String::len).sum::<usize>() > MAX_MEMBERS_BYTES {
        let message = format!("Too many strings for column {column} and SET");
        let message = if set { message } else { format!("Too many enumeration values for column {column}.") };
        let code = if set { codes::TOO_BIG_SET } else { codes::TOO_BIG_ENUM };
        return Err(MysqlError::new(code, message));
    }
    if texts.iter().any(|text| text.chars().count() > MAX_MEMBER_CHARS) {
        let message = format!("Too long enumeration/set value for column {column}.");
        return Err(MysqlError::new(codes::TOO_LONG_SET_ENUM_VALUE, message));
    }
    let wrong = |text: &&String| set && text.contains(',') || resolved.charset().lacks(text).is_some();
    if let Some(text) = texts.iter().find(wrong) {
        let message = format!("Illegal {} '{text}' value found during parsing", data_type_name(kind));
        return Err(MysqlError::new(codes::ILLEGAL_VALUE_FOR_TYPE, message));
    }
    let needed = texts.iter().map(String::len).sum::<usize>();
    let members = Members::declare(texts).ok_or_else(|| {
        let message = format!(
            "Out of memory; restart server and try again (needed {needed} bytes for the members of column {column}: \
             lists of members are kept until the next start, {MAX_KEPT_BYTES} bytes at most)"
        );
        MysqlError::new(codes::OUTOFMEMORY, message)
    })?;
    let ty = DataType::of_members(kind, members, resolved);
    check_members(&ty, column)?;
    Ok(ty)
}

/// Error 1291 for members that are equal under the type's collation.
pub fn check_members(ty: &DataType, column: &str) -> Result<(), MysqlError> {
    let Some(members) = ty.members else { return Ok(()) };
    let position = |text: &str| members.position(text, ty.collation);
    // The first of the two is named.
    let mut first = members.texts().zip(1..).map(|(text, number)| (position(text), number));
    let Some((Some(twice), _)) = first.find(|(found, number)| *found != Some(*number)) else { return Ok(()) };
    let text = members.text(twice);
    let word = if ty.kind == TypeKind::Set { "SET" } else { "ENUM" };
    let message = format!("Column '{column}' has duplicated value '{text}' in {word}");
    Err(MysqlError::new(codes::DUPLICATED_VALUE_IN_TYPE, message))
}

fn bit(bits: Option<u64>, column: &str) -> Result<DataType, MysqlError> {
    match bits.unwrap_or(1) {
        0 => Err(MysqlError::new(codes::INVALID_FIELD_SIZE, format!("Invalid size for column '{column}'."))),
        bits @ 1..=64 => Ok(DataType::bit(bits as u32)),
        _ => {
            let message = format!("Display width out of range for column '{column}' (max = 64)");
            Err(MysqlError::new(codes::TOO_BIG_DISPLAYWIDTH, message))
        }
    }
}

fn integer_type(
    size: IntegerSize,
    width: Option<u64>,
    unsigned: bool,
    column: &str,
    attributes: &TypeAttributes<'_>,
) -> Result<DataType, MysqlError> {
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
    // MySQL 8 forgets display widths but that of ZEROFILL, and of `tinyint(1)`, by which drivers know a boolean.
    if attributes.zerofill {
        let length = width.filter(|width| *width > 0).unwrap_or(0) as u32;
        return Ok(DataType { unsigned: true, zerofill: true, length, ..DataType::new(kind) });
    }
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

/// Of a VARCHAR or VARBINARY that became a TEXT or BLOB: the text of note 1246.
pub fn conversion(declared: &ColumnType, ty: &DataType, column: &str) -> Option<String> {
    let varying = matches!(declared, ColumnType::VarChar(_) | ColumnType::VarBinary(_));
    let (from, to) = if ty.is_text() { ("VARCHAR", "TEXT") } else { ("VARBINARY", "BLOB") };
    (varying && ty.is_lob()).then(|| format!("Converting column '{column}' from {from} to {to}"))
}

fn binary(
    kind: TypeKind,
    length: Option<u64>,
    column: &str,
    attributes: &TypeAttributes<'_>,
) -> Result<DataType, MysqlError> {
    let max = if kind == TypeKind::Binary { 255 } else { MAX_VARCHAR_BYTES };
    let length = match (kind, length) {
        (TypeKind::VarBinary, Some(length)) if length > max && !attributes.strict => {
            let kind = match sized_text(length, column)? {
                TypeKind::LongText => TypeKind::LongBlob,
                _ => TypeKind::MediumBlob,
            };
            return Ok(DataType::new(kind));
        }
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

/// The smallest TEXT kind for so many bytes.
fn sized_text(bytes: u64, column: &str) -> Result<TypeKind, MysqlError> {
    match bytes {
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
    let collation = attributes.resolve()?;
    if collation == Collation::Binary {
        // CHARACTER SET binary makes the byte type of the same shape.
        let kind = match kind {
            TypeKind::Char => return binary(TypeKind::Binary, length, column, attributes),
            TypeKind::VarChar => return binary(TypeKind::VarBinary, length, column, attributes),
            TypeKind::TinyText => TypeKind::TinyBlob,
            TypeKind::Text => TypeKind::Blob,
            TypeKind::MediumText => TypeKind::MediumBlob,
            _ => TypeKind::LongBlob,
        };
        return Ok(DataType::new(kind));
    }
    let each = u64::from(collation.charset().max_bytes());
    let mut ty = DataType { collation, ..DataType::new(kind) };
    match (kind, length) {
        (TypeKind::Char, Some(length)) if length > 255 => return Err(too_long(column, 255)),
        (TypeKind::VarChar, Some(length)) if length > MAX_VARCHAR_BYTES / each => {
            if attributes.strict {
                return Err(too_long(column, MAX_VARCHAR_BYTES / each));
            }
            ty = DataType { collation, ..DataType::new(sized_text(length.saturating_mul(each), column)?) };
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

/// The type of a column that is converted to another collation (ALTER TABLE … CONVERT TO): it holds as many characters as before, for which a longer kind
/// may be needed. `binary` makes the byte type of the same shape.
pub fn converted(ty: DataType, collation: Collation, column: &str) -> Result<DataType, MysqlError> {
    let (from, to) = (ty.collation.charset(), collation.charset());
    if ty.has_members() {
        return match collation {
            Collation::Binary => Err(errors::not_supported("ENUM and SET columns of the character set binary")),
            _ => Ok(DataType { collation, ..ty }),
        };
    }
    let each = u64::from(to.max_bytes());
    let length = u64::from(ty.length);
    let kept = DataType { collation, ..ty };
    Ok(match ty.kind {
        TypeKind::Char if collation == Collation::Binary => {
            DataType { length: ty.length.saturating_mul(from.max_bytes()), ..DataType::new(TypeKind::Binary) }
        }
        TypeKind::VarChar if collation == Collation::Binary => {
            DataType::varbinary(ty.length.saturating_mul(from.max_bytes()))
        }
        TypeKind::TinyText if collation == Collation::Binary => DataType::new(TypeKind::TinyBlob),
        TypeKind::Text if collation == Collation::Binary => DataType::new(TypeKind::Blob),
        TypeKind::MediumText if collation == Collation::Binary => DataType::new(TypeKind::MediumBlob),
        TypeKind::LongText if collation == Collation::Binary => DataType::new(TypeKind::LongBlob),
        TypeKind::VarChar if length > MAX_VARCHAR_BYTES / each => {
            return Err(too_long(column, MAX_VARCHAR_BYTES / each));
        }
        TypeKind::TinyText | TypeKind::Text | TypeKind::MediumText if to.max_bytes() > from.max_bytes() => {
            let bytes = length / u64::from(from.min_bytes()) * each;
            DataType { collation, ..DataType::new(sized_text(bytes, column)?) }
        }
        _ => kept,
    })
}

/// The type as MySQL 8 writes it in SHOW CREATE TABLE and COLUMN_TYPE: `int unsigned`, `decimal(10,2)`, `varchar(20)`.
pub fn column_type(ty: &DataType) -> String {
    let mut out = match ty.kind {
        TypeKind::Enum | TypeKind::Set => {
            let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
            let members: Vec<String> =
                ty.members.map(|members| members.texts().map(quoted).collect()).unwrap_or_default();
            format!("{}({})", data_type_name(ty.kind), members.join(","))
        }
        TypeKind::Bit => format!("bit({})", ty.length),
        TypeKind::Geometry => ty.geometry_kind().map_or("geometry", GeometryKind::type_name).to_string(),
        _ if ty.zerofill && ty.is_integer() => format!("{}({})", data_type_name(ty.kind), display_width(ty)),
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
    if ty.zerofill {
        out.push_str(" zerofill");
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
        TypeKind::Enum => "enum",
        TypeKind::Set => "set",
        TypeKind::Bit => "bit",
        TypeKind::Year => "year",
        TypeKind::Geometry => "geometry",
    }
}

/// Characters of the longest text that CREATE … SELECT keeps as a VARCHAR or VARBINARY where it is no column's.
const LONGEST_VARYING: u32 = 512;

/// The type of a text that is no column's: a long one becomes a TEXT or BLOB.
pub fn of_long_text(ty: DataType) -> DataType {
    let bytes = u64::from(ty.length) * u64::from(ty.collation.charset().max_bytes());
    match ty.kind {
        TypeKind::VarChar if ty.length > LONGEST_VARYING => {
            let kind = if bytes <= MAX_VARCHAR_BYTES { TypeKind::Text } else { TypeKind::MediumText };
            DataType { collation: ty.collation, ..DataType::new(kind) }
        }
        TypeKind::Binary | TypeKind::VarBinary if ty.length > LONGEST_VARYING => DataType::new(TypeKind::Blob),
        // No column is a BINARY of so many.
        TypeKind::Binary if ty.length > 255 => DataType::varbinary(ty.length),
        _ => ty,
    }
}

/// The type of an integer that is no column's: one of so few digits that they fit is an INT.
pub fn of_short_integer(ty: DataType) -> DataType {
    match ty.kind {
        TypeKind::BigInt if (1..10).contains(&ty.length) => {
            DataType { unsigned: ty.unsigned, ..DataType::new(TypeKind::Int) }
        }
        _ => of_any_integer(ty),
    }
}

/// The same of as many digits as the type has: a column takes values that are longer than those that it begins with.
pub fn of_any_integer(ty: DataType) -> DataType {
    match ty.kind {
        TypeKind::BigInt if !ty.zerofill => DataType { length: 0, ..ty },
        _ => ty,
    }
}

/// The type of a column that holds an expression's values.
pub fn of_expression(ty: DataType) -> DataType {
    let ty = expr::plain_type(ty);
    match ty.kind {
        TypeKind::Null => DataType { length: 0, ..DataType::new(TypeKind::Binary) },
        TypeKind::VarChar if ty.length > 16_383 => {
            DataType { collation: ty.collation, ..DataType::new(TypeKind::LongText) }
        }
        TypeKind::VarBinary if ty.length > 65_535 => DataType::new(TypeKind::LongBlob),
        TypeKind::VarChar if ty.collation == Collation::Binary => DataType::varbinary(ty.length),
        // So many digits as a DOUBLE shows before the point.
        TypeKind::Float | TypeKind::Double if ty.scale <= 30 && ty.precision == 0 => {
            DataType { precision: 17 + ty.scale, ..ty }
        }
        _ => ty,
    }
}
