//! Whether a table that a client has made up is one that SQL's CREATE TABLE would have made.
//!
//! A schema arrives as a whole, and nothing in it is believed: names, types with their lengths, defaults, keys and their parts, row and key sizes, distribution. What the
//! node decides itself (ids, versions, layouts, index tables, the order of keys) is made anew. Codes and texts are CREATE TABLE's.

use super::definition::check_name;
use super::failure::refused;
use rauk_types::error::codes;
use rauk_types::members::{MAX_ENUM_MEMBERS, MAX_MEMBER_CHARS, MAX_SET_MEMBERS};
use rauk_types::schema::{HIDDEN_KEY_COLUMN, MAX_COLUMNS, MAX_INDEXES, MAX_KEY_BYTES, MAX_KEY_PARTS, MAX_ROW_BYTES};
use rauk_types::{
    Collation, Column, ColumnDefault, ColumnId, DataType, IndexId, IndexKind, IndexPart, IndexSchema, TableId,
    TableSchema, TypeKind, Value, check,
};
use rauk_wire::Failure;

/// Bytes of the longest utf8mb4 character.
const CHAR_BYTES: u64 = 4;
const MAX_COMMENT: usize = 1024;

/// The schema as it may be created.
pub fn check(mut table: TableSchema) -> Result<TableSchema, Failure> {
    if table.hidden_key {
        // It will get a hidden key of our making.
        table.columns.retain(|c| c.name != HIDDEN_KEY_COLUMN);
        table.indexes.retain(|i| i.kind != IndexKind::Primary);
    }
    if table.has_row_rules() || !table.checks.is_empty() {
        let what = "CHECK constraints, generated columns and defaults that are expressions by the native API; use SQL";
        let text = format!("This version of MySQL doesn't yet support '{what}'");
        return Err(refused(codes::NOT_SUPPORTED_YET, text));
    }
    if table.partitioning.is_some() || table.leaf_of.is_some() {
        let text = "This version of MySQL doesn't yet support 'partitions by the native API; use SQL'";
        return Err(refused(codes::NOT_SUPPORTED_YET, text));
    }
    check_columns(&mut table)?;
    check_indexes(&mut table)?;
    check_auto_increment(&mut table)?;
    check_row_size(&table)?;
    if table.comment.chars().count() > 2048 {
        let text = format!("Comment for table '{}' is too long (max = 2048)", table.name);
        return Err(refused(codes::TOO_LONG_TABLE_COMMENT, text));
    }
    table.hidden_key = table.indexes.first().is_none_or(|i| i.kind != IndexKind::Primary);
    if table.hidden_key {
        add_hidden_key(&mut table);
    }
    table.distribution = distribution(&table)?;
    table.id = TableId(0);
    table.version = 0;
    table.entry_of = None;
    table.layouts.clear();
    Ok(table)
}

fn check_columns(table: &mut TableSchema) -> Result<(), Failure> {
    if table.columns.is_empty() {
        return Err(refused(codes::TABLE_MUST_HAVE_COLUMNS, "A table must have at least 1 column"));
    }
    if table.columns.len() > MAX_COLUMNS {
        return Err(refused(codes::TOO_MANY_FIELDS, "Too many columns"));
    }
    for at in 0..table.columns.len() {
        let (before, rest) = table.columns.split_at_mut(at);
        let column = &mut rest[0];
        check_name(&column.name, codes::WRONG_COLUMN_NAME, "column")?;
        if before.iter().any(|c| c.name.eq_ignore_ascii_case(&column.name)) {
            return Err(refused(codes::DUP_FIELDNAME, format!("Duplicate column name '{}'", column.name)));
        }
        if column.comment.chars().count() > MAX_COMMENT {
            let text = format!("Comment for field '{}' is too long (max = {MAX_COMMENT})", column.name);
            return Err(refused(codes::TOO_LONG_FIELD_COMMENT, text));
        }
        column.id = ColumnId(at as u16);
        column.initial = Value::Null;
        column.ty = check_type(column)?;
        check_default(column)?;
    }
    Ok(())
}

/// The type, with everything that does not belong to its kind as in a type of that kind.
fn check_type(column: &Column) -> Result<DataType, Failure> {
    let (ty, name) = (&column.ty, &column.name);
    let too_long = |max: u32| {
        let text = format!("Column length too big for column '{name}' (max = {max}); use BLOB or TEXT instead");
        Err(refused(codes::TOO_BIG_FIELDLENGTH, text))
    };
    let zerofill = ty.zerofill && ty.is_numeric();
    let unsigned = ty.unsigned && ty.is_numeric() || zerofill;
    let length = if zerofill && ty.is_integer() { ty.length.min(255) } else { DataType::new(ty.kind).length };
    let plain = DataType { unsigned, zerofill, length, ..DataType::new(ty.kind) };
    let collated = DataType { collation: ty.collation, ..plain };
    if ty.is_text() && ty.kind != TypeKind::Json && ty.collation == Collation::Binary {
        return Err(refused(codes::WRONG_FIELD_SPEC, format!("Incorrect column specifier for column '{name}'")));
    }
    match ty.kind {
        TypeKind::Null => {
            Err(refused(codes::WRONG_FIELD_SPEC, format!("Incorrect column specifier for column '{name}'")))
        }
        TypeKind::TinyInt if ty.length == 1 && !ty.unsigned => Ok(DataType { length: 1, ..plain }),
        TypeKind::Enum | TypeKind::Set => {
            check_members(ty, name).map(|()| DataType { members: ty.members, ..collated })
        }
        TypeKind::Bit if ty.length == 0 => {
            Err(refused(codes::INVALID_FIELD_SIZE, format!("Invalid size for column '{name}'.")))
        }
        TypeKind::Bit if ty.length > 64 => {
            let text = format!("Display width out of range for column '{name}' (max = 64)");
            Err(refused(codes::TOO_BIG_DISPLAYWIDTH, text))
        }
        TypeKind::Bit => Ok(DataType { length: ty.length, ..plain }),
        TypeKind::Char if ty.length > 255 => too_long(255),
        TypeKind::VarChar if ty.length > 16_383 => too_long(16_383),
        TypeKind::Binary if ty.length > 255 => too_long(255),
        TypeKind::VarBinary if ty.length > 65_535 => too_long(65_535),
        TypeKind::Char | TypeKind::VarChar => Ok(DataType { length: ty.length, ..collated }),
        TypeKind::Binary | TypeKind::VarBinary => Ok(DataType { length: ty.length, ..plain }),
        TypeKind::TinyText | TypeKind::Text | TypeKind::MediumText | TypeKind::LongText => Ok(collated),
        TypeKind::Geometry => {
            let known = ty.geometry_kind().is_some() && (ty.scale == 0 || ty.reference_system().is_some());
            if !known {
                return Err(refused(
                    codes::WRONG_FIELD_SPEC,
                    format!("Incorrect column specifier for column '{name}'"),
                ));
            }
            Ok(DataType { precision: ty.precision, scale: ty.scale, ..plain })
        }
        TypeKind::Decimal => {
            check_scale(ty, 65, name)?;
            Ok(DataType { precision: ty.precision, scale: ty.scale, ..plain })
        }
        TypeKind::Float | TypeKind::Double if ty.scale < 31 => {
            check_scale(ty, 255, name)?;
            Ok(DataType { precision: ty.precision, scale: ty.scale, ..plain })
        }
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
            if ty.scale > 6 {
                return Err(too_precise(ty.scale, name, 6));
            }
            Ok(DataType { scale: ty.scale, ..plain })
        }
        _ => Ok(plain),
    }
}

/// Members as `CREATE TABLE` takes them: some, each once, none too long, none with a comma in a SET.
fn check_members(ty: &DataType, column: &str) -> Result<(), Failure> {
    let wrong = || refused(codes::WRONG_FIELD_SPEC, format!("Incorrect column specifier for column '{column}'"));
    let members = ty.members.ok_or_else(wrong)?;
    let most = if ty.kind == TypeKind::Set { MAX_SET_MEMBERS } else { MAX_ENUM_MEMBERS };
    let sound = !members.is_empty()
        && members.len() <= most
        && members.longest() <= MAX_MEMBER_CHARS
        && !members.texts().any(|text| text.ends_with(' ') || ty.kind == TypeKind::Set && text.contains(','))
        && members.texts().zip(1..).all(|(text, number)| members.position(text, ty.collation) == Some(number));
    if sound { Ok(()) } else { Err(wrong()) }
}

fn too_precise(given: u8, column: &str, max: u8) -> Failure {
    let text = format!("Too-big precision {given} specified for '{column}'. Maximum is {max}.");
    refused(codes::TOO_BIG_PRECISION, text)
}

fn check_scale(ty: &DataType, max: u8, column: &str) -> Result<(), Failure> {
    if ty.scale > 30 {
        let text = format!("Too big scale {} specified for column '{column}'. Maximum is 30.", ty.scale);
        return Err(refused(codes::TOO_BIG_SCALE, text));
    }
    if ty.precision > max {
        return Err(too_precise(ty.precision, column, max));
    }
    if ty.precision == 0 || ty.scale > ty.precision {
        let text = format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}').");
        return Err(refused(codes::M_BIGGER_THAN_D, text));
    }
    Ok(())
}

fn check_default(column: &mut Column) -> Result<(), Failure> {
    let invalid = || refused(codes::INVALID_DEFAULT, format!("Invalid default value for '{}'", column.name));
    let is_time = matches!(column.ty.kind, TypeKind::DateTime | TypeKind::Timestamp);
    if column.on_update_now && !is_time {
        let text = format!("Invalid ON UPDATE clause for '{}' column", column.name);
        return Err(refused(codes::INVALID_ON_UPDATE, text));
    }
    let default = match &column.default {
        ColumnDefault::Now if is_time => ColumnDefault::Now,
        ColumnDefault::Now => return Err(invalid()),
        ColumnDefault::None if column.nullable => ColumnDefault::Value(Value::Null),
        ColumnDefault::None => ColumnDefault::None,
        // NOT NULL with nothing said.
        ColumnDefault::Value(Value::Null) if !column.nullable => ColumnDefault::None,
        ColumnDefault::Value(Value::Null) => ColumnDefault::Value(Value::Null),
        ColumnDefault::Value(value) => {
            let value = check::column_value(column, value.as_ref()).map_err(|_| invalid())?;
            ColumnDefault::Value(Value::from(value))
        }
        ColumnDefault::Expression(_) => unreachable!("refused above"),
    };
    column.default = default;
    Ok(())
}

fn check_indexes(table: &mut TableSchema) -> Result<(), Failure> {
    let TableSchema { columns, indexes, .. } = table;
    if indexes.iter().filter(|i| i.kind == IndexKind::Primary).count() > 1 {
        return Err(refused(codes::MULTIPLE_PRI_KEY, "Multiple primary key defined"));
    }
    if indexes.len() > MAX_INDEXES {
        return Err(refused(codes::TOO_MANY_KEYS, format!("Too many keys specified; max {MAX_INDEXES} keys allowed")));
    }
    for at in 0..indexes.len() {
        let (before, rest) = indexes.split_at_mut(at);
        let index = &mut rest[0];
        check_index_name(index, before)?;
        if index.is_full_text() {
            return Err(refused(codes::NOT_SUPPORTED_YET, "This version of Rauk makes full-text indexes by SQL only"));
        }
        if index.elements().is_some() {
            let text = "This version of Rauk makes multi-valued indexes by SQL only";
            return Err(refused(codes::NOT_SUPPORTED_YET, text));
        }
        check_parts(index, columns)?;
        // A key that is not unique is ordered in any case.
        index.hash_only &= index.is_unique();
        index.entry_table = None;
        // Partitioned tables are made by SQL.
        index.global = false;
    }
    let rank = |index: &IndexSchema| match index.kind {
        IndexKind::Primary => 0,
        IndexKind::Unique if index.parts.iter().all(|p| !columns[p.column].nullable) => 1,
        IndexKind::Unique => 2,
        IndexKind::Ordered | IndexKind::FullText(_) | IndexKind::Elements(_) => 3,
    };
    // Ids in the order given, the primary key's is always the same; then MySQL's order.
    let mut next = 1;
    for index in indexes.iter_mut() {
        index.id = if index.kind == IndexKind::Primary { IndexId::PRIMARY } else { IndexId(next) };
        next += u16::from(index.kind != IndexKind::Primary);
    }
    indexes.sort_by_key(rank);
    Ok(())
}

fn check_index_name(index: &IndexSchema, before: &[IndexSchema]) -> Result<(), Failure> {
    let name = &index.name;
    check_name(name, codes::WRONG_NAME_FOR_INDEX, "index")?;
    if name.eq_ignore_ascii_case("PRIMARY") != (index.kind == IndexKind::Primary) {
        return Err(refused(codes::WRONG_NAME_FOR_INDEX, format!("Incorrect index name '{name}'")));
    }
    if before.iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
        return Err(refused(codes::DUP_KEYNAME, format!("Duplicate key name '{name}'")));
    }
    if index.comment.chars().count() > MAX_COMMENT {
        let text = format!("Comment for index '{name}' is too long (max = {MAX_COMMENT})");
        return Err(refused(codes::TOO_LONG_INDEX_COMMENT, text));
    }
    Ok(())
}

fn check_parts(index: &mut IndexSchema, columns: &mut [Column]) -> Result<(), Failure> {
    if index.parts.is_empty() {
        let text = format!("Key '{}' has no columns", index.name);
        return Err(refused(codes::KEY_COLUMN_DOES_NOT_EXIST, text));
    }
    if index.parts.len() > MAX_KEY_PARTS {
        let text = format!("Too many key parts specified; max {MAX_KEY_PARTS} parts allowed");
        return Err(refused(codes::TOO_MANY_KEY_PARTS, text));
    }
    let mut bytes = 0;
    for at in 0..index.parts.len() {
        let (before, rest) = index.parts.split_at_mut(at);
        let part = &mut rest[0];
        let Some(column) = columns.get_mut(part.column) else {
            let text = format!("Key column '{}' doesn't exist in table", part.column);
            return Err(refused(codes::KEY_COLUMN_DOES_NOT_EXIST, text));
        };
        if before.iter().any(|p| p.column == part.column) {
            return Err(refused(codes::DUP_FIELDNAME, format!("Duplicate column name '{}'", column.name)));
        }
        bytes += check_part(part, column)?;
        if index.kind == IndexKind::Primary {
            if column.nullable {
                let text = "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
                return Err(refused(codes::PRIMARY_CANT_HAVE_NULL, text));
            }
            if column.default == ColumnDefault::Value(Value::Null) {
                column.default = ColumnDefault::None;
            }
        }
    }
    if bytes > MAX_KEY_BYTES as u64 {
        let text = format!("Specified key was too long; max key length is {MAX_KEY_BYTES} bytes");
        return Err(refused(codes::TOO_LONG_KEY, text));
    }
    Ok(())
}

/// The part's bytes in MySQL's count of a key. A prefix of the whole column becomes none.
fn check_part(part: &mut IndexPart, column: &Column) -> Result<u64, Failure> {
    let (ty, name) = (&column.ty, &column.name);
    let wrong_prefix = || {
        refused(
            codes::WRONG_SUB_KEY,
            "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys",
        )
    };
    if ty.kind == TypeKind::Json {
        let text =
            format!("JSON column '{name}' supports indexing only via generated columns on a specified JSON path.");
        return Err(refused(codes::JSON_USED_AS_KEY, text));
    }
    let character = if ty.is_text() { CHAR_BYTES } else { 1 };
    match part.prefix {
        None if ty.is_lob() => {
            let text = format!("BLOB/TEXT column '{name}' used in key specification without a key length");
            Err(refused(codes::BLOB_KEY_WITHOUT_LENGTH, text))
        }
        None if ty.is_text() || ty.is_bytes() => Ok(u64::from(ty.length) * character),
        None => Ok(ty.row_bytes()),
        Some(0) => Err(refused(codes::KEY_PART_0, format!("Key part '{name}' length cannot be 0"))),
        Some(_) if !ty.is_text() && !ty.is_bytes() => Err(wrong_prefix()),
        Some(length) if !ty.is_lob() && length > ty.length => Err(wrong_prefix()),
        Some(length) => {
            if !ty.is_lob() && length == ty.length {
                part.prefix = None;
            }
            Ok(u64::from(length) * character)
        }
    }
}

fn check_auto_increment(table: &mut TableSchema) -> Result<(), Failure> {
    let Some(at) = table.auto_increment else { return Ok(()) };
    let Some(column) = table.columns.get_mut(at) else {
        return Err(refused(codes::BAD_FIELD, format!("Unknown column '{at}' in 'AUTO_INCREMENT'")));
    };
    if !column.ty.is_integer() && !matches!(column.ty.kind, TypeKind::Float | TypeKind::Double) {
        let text = format!("Incorrect column specifier for column '{}'", column.name);
        return Err(refused(codes::WRONG_FIELD_SPEC, text));
    }
    if !matches!(column.default, ColumnDefault::None | ColumnDefault::Value(Value::Null)) {
        return Err(refused(codes::INVALID_DEFAULT, format!("Invalid default value for '{}'", column.name)));
    }
    column.nullable = false;
    column.default = ColumnDefault::None;
    if !table.indexes.iter().any(|i| i.parts[0].column == at) {
        let text = "Incorrect table definition; there can be only one auto column and it must be defined as a key";
        return Err(refused(codes::WRONG_AUTO_KEY, text));
    }
    Ok(())
}

fn check_row_size(table: &TableSchema) -> Result<(), Failure> {
    let nullable = table.columns.iter().filter(|c| c.nullable).count() as u64;
    let bytes: u64 = table.columns.iter().map(|c| c.ty.row_bytes()).sum();
    if bytes + nullable.div_ceil(8) > MAX_ROW_BYTES as u64 {
        let text = format!(
            "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {MAX_ROW_BYTES}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs"
        );
        return Err(refused(codes::TOO_BIG_ROWSIZE, text));
    }
    Ok(())
}

fn add_hidden_key(table: &mut TableSchema) {
    let id = ColumnId(table.columns.len() as u16);
    table.columns.push(Column {
        default: ColumnDefault::None,
        ..Column::new(id, HIDDEN_KEY_COLUMN, DataType::BIGINT_UNSIGNED, false)
    });
    let primary = IndexSchema { hash_only: true, ..IndexSchema::primary(&[table.columns.len() - 1]) };
    table.indexes.insert(0, primary);
}

/// The columns that distribute: those given where PARTITION BY KEY was, else the whole columns of the primary key, or its prefixes where it has nothing else.
fn distribution(table: &TableSchema) -> Result<Vec<usize>, Failure> {
    let whole: Vec<usize> = table.primary().parts.iter().filter(|p| p.prefix.is_none()).map(|p| p.column).collect();
    if !table.explicit_partitioning || table.distribution.is_empty() {
        return Ok(match whole.is_empty() {
            true => table.primary().parts.iter().map(|p| p.column).collect(),
            false => whole,
        });
    }
    let mut out: Vec<usize> = Vec::with_capacity(table.distribution.len());
    for &column in &table.distribution {
        if table.hidden_key || !whole.contains(&column) {
            let text = "A PRIMARY KEY must include all columns in the table's partitioning function (prefixed columns are not considered).";
            return Err(refused(codes::PARTITION_FUNC_NOT_ALLOWED, text));
        }
        if !out.contains(&column) {
            out.push(column);
        }
    }
    Ok(out)
}
