//! Databases, tables and columns in information_schema; views among tables and columns.

use super::views;
use super::{DATABASES, Definition, Hints, INFORMATION_SCHEMA, Rows, is_system, none, s, schemas, u, yes};
use crate::session::ddl::options;
use crate::session::ddl::types::{column_type, data_type_name};
use crate::session::lookup::Viewer;
use crate::session::show::partitions as show;
use crate::session::users::Privileges;
use rauk_types::partitioning::{Leaf, PartitionOptions, PartitionValues, Partitioning, UserPartition};
use rauk_types::{
    Collation, Column, ColumnDefault, DataType, GeometryKind, IndexKind, Members, MysqlError, TableId, TableSchema,
    TypeKind, Value, format,
};
use std::sync::Arc;

const I: &str = INFORMATION_SCHEMA;

pub(super) const TABLES: &[Definition] = &[
    Definition {
        database: I,
        name: "SCHEMATA",
        columns: "CATALOG_NAME s64?, SCHEMA_NAME b64?, DEFAULT_CHARACTER_SET_NAME s64, DEFAULT_COLLATION_NAME s64, SQL_PATH s64?, DEFAULT_ENCRYPTION s3, SCHEMA_COMMENT s1024",
        rows: schemata,
    },
    Definition {
        database: I,
        name: "TABLES",
        columns: "TABLE_CATALOG s64?, TABLE_SCHEMA b64?, TABLE_NAME b64?, TABLE_TYPE s11, ENGINE s64?, VERSION n?, ROW_FORMAT s10?, TABLE_ROWS u?, AVG_ROW_LENGTH u?, DATA_LENGTH u?, MAX_DATA_LENGTH u?, INDEX_LENGTH u?, DATA_FREE u?, AUTO_INCREMENT u?, CREATE_TIME p?, UPDATE_TIME t?, CHECK_TIME t?, TABLE_COLLATION s64?, CHECKSUM i?, CREATE_OPTIONS s256?, TABLE_COMMENT y?",
        rows: tables,
    },
    Definition {
        database: I,
        name: "COLUMNS",
        columns: "TABLE_CATALOG s64?, TABLE_SCHEMA b64?, TABLE_NAME b64?, COLUMN_NAME s64?, ORDINAL_POSITION m, COLUMN_DEFAULT y?, IS_NULLABLE s3, DATA_TYPE x?, CHARACTER_MAXIMUM_LENGTH i?, CHARACTER_OCTET_LENGTH i?, NUMERIC_PRECISION u?, NUMERIC_SCALE u?, DATETIME_PRECISION m?, CHARACTER_SET_NAME s64?, COLLATION_NAME s64?, COLUMN_TYPE z, COLUMN_KEY s3, EXTRA s256?, PRIVILEGES s154?, COLUMN_COMMENT y, GENERATION_EXPRESSION x, SRS_ID m?",
        rows: columns,
    },
    Definition {
        database: I,
        name: "PARTITIONS",
        columns: "TABLE_CATALOG s64?, TABLE_SCHEMA b64?, TABLE_NAME b64, PARTITION_NAME s64?, SUBPARTITION_NAME s64?, PARTITION_ORDINAL_POSITION m?, SUBPARTITION_ORDINAL_POSITION m?, PARTITION_METHOD s13?, SUBPARTITION_METHOD s13?, PARTITION_EXPRESSION s2048?, SUBPARTITION_EXPRESSION s2048?, PARTITION_DESCRIPTION y?, TABLE_ROWS u?, AVG_ROW_LENGTH u?, DATA_LENGTH u?, MAX_DATA_LENGTH u?, INDEX_LENGTH u?, DATA_FREE u?, CREATE_TIME p?, UPDATE_TIME t?, CHECK_TIME t?, CHECKSUM i?, PARTITION_COMMENT y, NODEGROUP s256?, TABLESPACE_NAME s268?",
        rows: partitions,
    },
    Definition {
        database: I,
        name: "ROUTINES",
        columns: "SPECIFIC_NAME s64, ROUTINE_CATALOG s64?, ROUTINE_SCHEMA b64?, ROUTINE_NAME s64, ROUTINE_TYPE s9, DATA_TYPE x?, CHARACTER_MAXIMUM_LENGTH i?, CHARACTER_OCTET_LENGTH i?, NUMERIC_PRECISION m?, NUMERIC_SCALE m?, DATETIME_PRECISION m?, CHARACTER_SET_NAME s64?, COLLATION_NAME s64?, DTD_IDENTIFIER x?, ROUTINE_BODY s8, ROUTINE_DEFINITION x?, EXTERNAL_NAME s64?, EXTERNAL_LANGUAGE s64, PARAMETER_STYLE s3, IS_DETERMINISTIC s3, SQL_DATA_ACCESS s17, SQL_PATH s64?, SECURITY_TYPE s7, CREATED p, LAST_ALTERED p, SQL_MODE s520, ROUTINE_COMMENT y, DEFINER s288, CHARACTER_SET_CLIENT s64, COLLATION_CONNECTION s64, DATABASE_COLLATION s64",
        rows: none,
    },
    Definition {
        database: I,
        name: "PARAMETERS",
        columns: "SPECIFIC_CATALOG s64?, SPECIFIC_SCHEMA b64?, SPECIFIC_NAME s64, ORDINAL_POSITION u, PARAMETER_MODE s5?, PARAMETER_NAME s64?, DATA_TYPE x?, CHARACTER_MAXIMUM_LENGTH i?, CHARACTER_OCTET_LENGTH i?, NUMERIC_PRECISION m?, NUMERIC_SCALE i?, DATETIME_PRECISION m?, CHARACTER_SET_NAME s64?, COLLATION_NAME s64?, DTD_IDENTIFIER z, ROUTINE_TYPE s9",
        rows: none,
    },
    Definition {
        database: I,
        name: "TRIGGERS",
        columns: "TRIGGER_CATALOG s64?, TRIGGER_SCHEMA b64?, TRIGGER_NAME s64, EVENT_MANIPULATION s6, EVENT_OBJECT_CATALOG s64?, EVENT_OBJECT_SCHEMA b64?, EVENT_OBJECT_TABLE b64?, ACTION_ORDER m, ACTION_CONDITION s64?, ACTION_STATEMENT x, ACTION_ORIENTATION s3, ACTION_TIMING s6, ACTION_REFERENCE_OLD_TABLE s64?, ACTION_REFERENCE_NEW_TABLE s64?, ACTION_REFERENCE_OLD_ROW s3, ACTION_REFERENCE_NEW_ROW s3, CREATED p, SQL_MODE s520, DEFINER s288, CHARACTER_SET_CLIENT s64, COLLATION_CONNECTION s64, DATABASE_COLLATION s64",
        rows: none,
    },
    Definition {
        database: I,
        name: "EVENTS",
        columns: "EVENT_CATALOG s64?, EVENT_SCHEMA b64?, EVENT_NAME s64, DEFINER s288, TIME_ZONE s64, EVENT_BODY s3, EVENT_DEFINITION x, EVENT_TYPE s9, EXECUTE_AT t?, INTERVAL_VALUE s256?, INTERVAL_FIELD s18?, SQL_MODE s520, STARTS t?, ENDS t?, STATUS s21, ON_COMPLETION s12, CREATED p, LAST_ALTERED p, LAST_EXECUTED t?, EVENT_COMMENT s2048, ORIGINATOR m, CHARACTER_SET_CLIENT s64, COLLATION_CONNECTION s64, DATABASE_COLLATION s64",
        rows: none,
    },
    Definition {
        database: I,
        name: "FILES",
        columns: "FILE_ID i?, FILE_NAME y?, FILE_TYPE s256?, TABLESPACE_NAME s268, TABLE_CATALOG s64, TABLE_SCHEMA b64?, TABLE_NAME b64?, LOGFILE_GROUP_NAME s256?, LOGFILE_GROUP_NUMBER i?, ENGINE s64, FULLTEXT_KEYS s64?, DELETED_ROWS s64?, UPDATE_COUNT s64?, FREE_EXTENTS i?, TOTAL_EXTENTS i?, EXTENT_SIZE i?, INITIAL_SIZE i?, MAXIMUM_SIZE i?, AUTOEXTEND_SIZE i?, CREATION_TIME s64?, LAST_UPDATE_TIME s64?, LAST_ACCESS_TIME s64?, RECOVER_TIME s64?, TRANSACTION_COUNTER s64?, VERSION i?, ROW_FORMAT s256?, TABLE_ROWS s64?, AVG_ROW_LENGTH s64?, DATA_LENGTH s64?, MAX_DATA_LENGTH s64?, INDEX_LENGTH s64?, DATA_FREE i?, CREATE_TIME s64?, UPDATE_TIME s64?, CHECK_TIME s64?, CHECKSUM s64?, STATUS s256?, EXTRA s256?",
        rows: none,
    },
    Definition {
        database: I,
        name: "TABLESPACES",
        columns: "TABLESPACE_NAME s64, ENGINE s64, TABLESPACE_TYPE s64?, LOGFILE_GROUP_NAME s64?, EXTENT_SIZE u?, AUTOEXTEND_SIZE u?, MAXIMUM_SIZE u?, NODEGROUP_ID u?, TABLESPACE_COMMENT s2048?",
        rows: none,
    },
    Definition {
        database: I,
        name: "INNODB_TABLESPACES",
        columns: "SPACE m, NAME s655, FLAG m?, ROW_FORMAT s22?, PAGE_SIZE m, ZIP_PAGE_SIZE m, SPACE_TYPE s10?, FS_BLOCK_SIZE m, FILE_SIZE u, ALLOCATED_SIZE u, AUTOEXTEND_SIZE u, SERVER_VERSION s10?, SPACE_VERSION m, ENCRYPTION s1?, STATE s10?",
        rows: none,
    },
];

/// Databases that the session may know of, the virtual ones included, by name.
pub(crate) fn visible_databases(viewer: &Viewer) -> Vec<String> {
    let stored = viewer.engine.database.databases();
    let virtual_ones = DATABASES.iter().map(|name| name.to_string());
    let mut names: Vec<String> =
        stored.into_iter().chain(virtual_ones).filter(|name| viewer.account.sees_database(name)).collect();
    names.sort();
    names.dedup();
    names
}

/// Stored tables that the session may know of.
pub(super) fn stored_tables(viewer: &Viewer, hints: &Hints<'_>) -> Vec<Arc<TableSchema>> {
    let databases = match hints.schema {
        Some(name) => vec![name.to_string()],
        None => viewer.engine.database.databases(),
    };
    let mut out = Vec::new();
    for database in databases {
        // A database may be dropped between the two calls.
        let Ok(tables) = viewer.engine.database.tables(&database) else { continue };
        let wanted = |t: &TableSchema| hints.table.is_none_or(|name| t.name == name);
        let seen = |t: &TableSchema| viewer.account.sees_table(&database, &t.name);
        out.extend(tables.into_iter().filter(|t| wanted(t) && seen(t)));
    }
    out
}

/// Virtual tables, as far as the hints leave them.
fn virtual_tables(viewer: &Viewer, hints: &Hints<'_>) -> Vec<Arc<TableSchema>> {
    let databases = DATABASES.iter().filter(|d| hints.schema.is_none_or(|name| name == **d));
    let databases = databases.filter(|d| viewer.account.sees_database(d));
    databases.flat_map(|d| schemas(d)).filter(|t| hints.table.is_none_or(|name| t.name == name)).collect()
}

fn schemata(viewer: &Viewer, _: &Hints<'_>) -> Rows {
    let row = |name: String| {
        let database = &viewer.engine.database;
        let collation = database.database_collation(&name).unwrap_or(Collation::Utf8mb4GeneralCi);
        let comment = database.database_comment(&name).unwrap_or_default();
        vec![s("def"), s(name), s(collation.charset_name()), s(collation.name()), Value::Null, s("NO"), s(comment)]
    };
    Ok(visible_databases(viewer).into_iter().map(row).collect())
}

fn tables(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in virtual_tables(viewer, hints) {
        let mut row = vec![s("def"), s(&table.database), s(&table.name), s("SYSTEM VIEW"), Value::Null, Value::Int(10)];
        row.resize(20, Value::Null);
        row.push(s(""));
        rows.push(row);
    }
    for table in stored_tables(viewer, hints) {
        let usage = usage_of(viewer, &table);
        let average = usage.row_bytes.checked_div(usage.rows).unwrap_or(0);
        let next = match table.auto_increment {
            Some(_) => Value::UInt(viewer.engine.database.peek_auto_increment(table.id)),
            None => Value::Null,
        };
        rows.push(vec![
            s("def"),
            s(&table.database),
            s(&table.name),
            s("BASE TABLE"),
            s("InnoDB"),
            Value::Int(10),
            s(row_format(&table)),
            Value::UInt(usage.rows),
            Value::UInt(average),
            Value::UInt(usage.row_bytes),
            Value::UInt(0),
            Value::UInt(usage.index_bytes),
            Value::UInt(0),
            next,
            Value::Null,
            Value::Null,
            Value::Null,
            s(table.collation.name()),
            Value::Null,
            s(create_options(&table)),
            s(&table.comment),
        ]);
    }
    rows.extend(views::tables(viewer, hints));
    Ok(rows)
}

/// As declared; rows are stored in one way.
pub(super) fn row_format(table: &TableSchema) -> String {
    let declared = table.storage.option("ROW_FORMAT").unwrap_or("DYNAMIC");
    format!("{}{}", &declared[..1], declared[1..].to_ascii_lowercase())
}

fn create_options(table: &TableSchema) -> String {
    let mut all: Vec<String> = table
        .storage
        .options
        .iter()
        .filter(|(name, _)| !options::is_of_partitions(name))
        .map(|(name, value)| match name.as_str() {
            "KEY_BLOCK_SIZE" => format!("{name}={value}"),
            "COMPRESSION" => format!("{name}=\"{value}\""),
            "SECONDARY_ENGINE" => format!("{name}=\"{value}\""),
            _ => format!("{}={value}", name.to_ascii_lowercase()),
        })
        .collect();
    let is_partitioned = table.explicit_partitioning || table.partitioning.is_some();
    all.extend(is_partitioned.then(|| "partitioned".to_string()));
    all.join(" ")
}

fn columns(viewer: &Viewer, hints: &Hints<'_>) -> Rows {
    let mut rows = Vec::new();
    let views = views::visible(viewer, hints).into_iter().filter_map(|view| views::schema_of(viewer, &view).ok());
    for table in virtual_tables(viewer, hints).into_iter().chain(stored_tables(viewer, hints)).chain(views) {
        let privileges = column_privileges(viewer, &table);
        for (at, column) in table.visible_columns().iter().enumerate() {
            let privileges = privileges(&column.name);
            if privileges.is_empty() {
                continue;
            }
            let ty = &column.ty;
            let (characters, octets) = text_lengths(ty);
            let (precision, scale) = numeric_precision(ty);
            let fraction = match ty.kind {
                TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => Value::UInt(u64::from(ty.scale)),
                _ => Value::Null,
            };
            let text = ty.is_text() && ty.kind != TypeKind::Json || ty.has_members();
            let (set, collation) = match text {
                true => (s(ty.collation.charset_name()), s(ty.collation.name())),
                false => (Value::Null, Value::Null),
            };
            let default = match &column.default {
                _ if is_system(&table.database) => Value::Null,
                _ => default_text(column, &jiff::tz::TimeZone::system()).map_or(Value::Null, Value::Str),
            };
            rows.push(vec![
                s("def"),
                s(&table.database),
                s(&table.name),
                s(&column.name),
                u(at as u64 + 1),
                default,
                yes(column.nullable),
                s(ty.geometry_kind().map_or(data_type_name(ty.kind), GeometryKind::type_name)),
                characters,
                octets,
                precision,
                scale,
                fraction,
                set,
                collation,
                s(column_type(ty)),
                s(column_key(&table, at)),
                s(column_extra(&table, at)),
                s(privileges),
                s(&column.comment),
                s(column.generated.as_ref().map_or(String::new(), |of| shown_expression(&of.expression))),
                ty.reference_system().map_or(Value::Null, |system| u(system.srid)),
            ]);
        }
    }
    Ok(rows)
}

/// The column PRIVILEGES: what the session may do with each column of a table. Columns for which it is empty are not
/// shown.
pub(crate) fn column_privileges<'a>(viewer: &'a Viewer, table: &TableSchema) -> impl Fn(&str) -> String + 'a {
    const WORDS: [(Privileges, &str); 4] = [
        (Privileges::SELECT, "select"),
        (Privileges::INSERT, "insert"),
        (Privileges::UPDATE, "update"),
        (Privileges::REFERENCES, "references"),
    ];
    let system = is_system(&table.database);
    let granted = viewer.account.on_table(&table.database, &table.name);
    let columns = viewer.account.on_columns(&table.database, &table.name);
    move |column| {
        if system {
            return "select".to_string();
        }
        let of_column = columns.into_iter().flatten().filter(|(name, _)| name.eq_ignore_ascii_case(column));
        let all = of_column.fold(granted, |all, (_, privileges)| all.with(*privileges));
        let words: Vec<&str> = WORDS.iter().filter(|(p, _)| all.contains(*p)).map(|(_, word)| *word).collect();
        words.join(",")
    }
}

fn text_lengths(ty: &DataType) -> (Value, Value) {
    if matches!(ty.kind, TypeKind::Json | TypeKind::Geometry) {
        return (Value::Null, Value::Null);
    }
    let length = i64::from(ty.length);
    let each = i64::from(ty.collation.charset().max_bytes());
    let members = |characters: Option<usize>| {
        let characters = characters.unwrap_or(0) as i64;
        (Value::Int(characters), Value::Int(characters * each))
    };
    match ty.kind {
        TypeKind::Enum => members(ty.members.map(Members::longest)),
        TypeKind::Set => members(ty.members.map(Members::joined)),
        TypeKind::Char | TypeKind::VarChar => (Value::Int(length), Value::Int(length * each)),
        // Of the kinds of TEXT the limit is one of bytes.
        _ if ty.is_text() => (Value::Int(length / i64::from(ty.collation.charset().min_bytes())), Value::Int(length)),
        _ if ty.is_bytes() => (Value::Int(length), Value::Int(length)),
        _ => (Value::Null, Value::Null),
    }
}

fn numeric_precision(ty: &DataType) -> (Value, Value) {
    let of = |precision: u64, scale: Option<u64>| (Value::UInt(precision), scale.map_or(Value::Null, Value::UInt));
    match ty.kind {
        TypeKind::Bit => of(u64::from(ty.length), None),
        TypeKind::TinyInt => of(3, Some(0)),
        TypeKind::SmallInt => of(5, Some(0)),
        TypeKind::MediumInt => of(7, Some(0)),
        TypeKind::Int => of(10, Some(0)),
        TypeKind::BigInt => of(if ty.unsigned { 20 } else { 19 }, Some(0)),
        TypeKind::Decimal => of(u64::from(ty.precision), Some(u64::from(ty.scale))),
        TypeKind::Float | TypeKind::Double if ty.scale < 31 => of(u64::from(ty.precision), Some(u64::from(ty.scale))),
        TypeKind::Float => of(12, None),
        TypeKind::Double => of(22, None),
        _ => (Value::Null, Value::Null),
    }
}

/// COLUMN_KEY: PRI, UNI, MUL or nothing.
pub(crate) fn column_key(table: &TableSchema, at: usize) -> &'static str {
    let stands_for_primary = |index: &rauk_types::IndexSchema| {
        index.kind == IndexKind::Unique && index.parts.iter().all(|p| !table.columns[p.column].nullable)
    };
    let primary = match table.hidden_key {
        false => table.indexes.first(),
        // Without a primary key, MySQL takes the first unique key over NOT NULL columns for it.
        true => table.indexes.iter().find(|i| stands_for_primary(i)),
    };
    if primary.is_some_and(|i| i.parts.iter().any(|p| p.column == at)) {
        return "PRI";
    }
    let mut key = "";
    for index in table.indexes.iter().filter(|i| i.parts[0].column == at) {
        if index.kind == IndexKind::Unique && index.parts.len() == 1 {
            return "UNI";
        }
        key = "MUL";
    }
    key
}

/// EXTRA: auto_increment, VIRTUAL GENERATED, DEFAULT_GENERATED, on update CURRENT_TIMESTAMP.
pub(crate) fn column_extra(table: &TableSchema, at: usize) -> String {
    let column = &table.columns[at];
    let mut words = Vec::new();
    if table.auto_increment == Some(at) {
        words.push("auto_increment".to_string());
    }
    let has_expression = match &column.default {
        ColumnDefault::Now | ColumnDefault::Expression(_) => true,
        ColumnDefault::Value(value) => column.ty.is_lob() && !value.is_null(),
        ColumnDefault::None => false,
    };
    match &column.generated {
        Some(generated) if generated.stored => words.push("STORED GENERATED".to_string()),
        Some(_) => words.push("VIRTUAL GENERATED".to_string()),
        None => {}
    }
    if has_expression && !is_system(&table.database) {
        words.push("DEFAULT_GENERATED".to_string());
    }
    if column.on_update_now {
        words.push(format!("on update {}", current_timestamp(&column.ty)));
    }
    if column.invisible {
        words.push("INVISIBLE".to_string());
    }
    words.join(" ")
}

/// An expression of the catalog as MySQL's tables of metadata show it: with quotes escaped.
pub(crate) fn shown_expression(text: &str) -> String {
    text.replace('\'', "\\'")
}

/// `CURRENT_TIMESTAMP` with the digits of a type.
pub(crate) fn current_timestamp(ty: &DataType) -> String {
    if ty.scale == 0 { "CURRENT_TIMESTAMP".to_string() } else { format!("CURRENT_TIMESTAMP({})", ty.scale) }
}

/// A column's default as text; `None`: NULL, or none. `zone` shows a TIMESTAMP's.
pub(crate) fn default_text(column: &Column, zone: &jiff::tz::TimeZone) -> Option<String> {
    match &column.default {
        ColumnDefault::None | ColumnDefault::Value(Value::Null) => None,
        ColumnDefault::Now => Some(current_timestamp(&column.ty)),
        ColumnDefault::Expression(text) => Some(shown_expression(text)),
        ColumnDefault::Value(Value::Timestamp(0)) => {
            let fraction =
                if column.ty.scale == 0 { String::new() } else { format!(".{:0w$}", 0, w = column.ty.scale as usize) };
            Some(format!("0000-00-00 00:00:00{fraction}"))
        }
        ColumnDefault::Value(Value::Timestamp(micros)) => {
            let local = jiff::Timestamp::from_microsecond(*micros).ok()?.to_zoned(zone.clone()).datetime();
            let ty = DataType { scale: column.ty.scale, ..DataType::new(TypeKind::DateTime) };
            Some(text(&super::civil(local), &ty))
        }
        ColumnDefault::Value(Value::UInt(bits)) if column.ty.kind == TypeKind::Bit => Some(format!("b'{bits:b}'")),
        ColumnDefault::Value(value) => Some(text(value, &column.ty)),
    }
}

fn text(value: &Value, ty: &DataType) -> String {
    let mut out = Vec::new();
    format::append_text(value.as_ref(), ty, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// What a table takes.
#[derive(Clone, Copy, Default)]
pub(super) struct Usage {
    pub rows: u64,
    pub row_bytes: u64,
    pub index_bytes: u64,
}

/// Of a partitioned table, that of its leaves together.
pub(super) fn usage_of(viewer: &Viewer, table: &TableSchema) -> Usage {
    let Some(partitioning) = &table.partitioning else { return usage_of_stored(viewer, Some(table.id)) };
    partitioning.leaves().fold(Usage::default(), |sum, leaf| {
        let usage = usage_of_stored(viewer, leaf.tables.first().copied());
        Usage {
            rows: sum.rows + usage.rows,
            row_bytes: sum.row_bytes + usage.row_bytes,
            index_bytes: sum.index_bytes + usage.index_bytes,
        }
    })
}

fn usage_of_stored(viewer: &Viewer, table: Option<TableId>) -> Usage {
    let Some(table) = table else { return Usage::default() };
    let usage = viewer.engine.database.table_usage(table);
    Usage { rows: usage.rows, row_bytes: usage.row_bytes, index_bytes: usage.hash_bytes + usage.ordered_bytes }
}

/// A row for each leaf of a partitioned table. Every other table has one row, as MySQL shows tables without declared
/// partitions: buckets move by themselves here and have no names.
fn partitions(viewer: &Viewer, hints: &Hints<'_>) -> Result<Vec<Vec<Value>>, MysqlError> {
    let mut rows = Vec::new();
    for table in stored_tables(viewer, hints) {
        if let Some(partitioning) = &table.partitioning {
            leaves(viewer, &table, partitioning, &mut rows);
            continue;
        }
        let usage = usage_of(viewer, &table);
        let (method, expression) = match table.explicit_partitioning {
            true => {
                let names: Vec<String> =
                    table.distribution.iter().map(|&at| format!("`{}`", table.columns[at].name)).collect();
                (s(options::method(&table.storage)), s(names.join(",")))
            }
            false => (Value::Null, Value::Null),
        };
        let mut row = vec![s("def"), s(&table.database), s(&table.name)];
        row.resize(7, Value::Null);
        row.extend([method, Value::Null, expression, Value::Null, Value::Null]);
        row.extend(usage_columns(usage));
        row.resize(22, Value::Null);
        row.extend([s(""), Value::Null, Value::Null]);
        rows.push(row);
    }
    Ok(rows)
}

/// TABLE_ROWS to DATA_FREE.
fn usage_columns(usage: Usage) -> [Value; 6] {
    [
        Value::UInt(usage.rows),
        Value::UInt(usage.row_bytes.checked_div(usage.rows).unwrap_or(0)),
        Value::UInt(usage.row_bytes),
        Value::UInt(0),
        Value::UInt(usage.index_bytes),
        Value::UInt(0),
    ]
}

fn leaves(viewer: &Viewer, table: &TableSchema, partitioning: &Partitioning, rows: &mut Vec<Vec<Value>>) {
    let name = |name: &str| format!("`{}`", name.replace('`', "``"));
    let null = Value::Null;
    let by = &partitioning.by;
    let sub = partitioning.sub.as_ref();
    for (at, partition) in partitioning.partitions.iter().enumerate() {
        for (sub_at, leaf) in partition.leaves.iter().enumerate() {
            let usage = usage_of_stored(viewer, leaf.tables.first().copied());
            // Subpartitions that were named have options of their own.
            let options = if partitioning.counted_sub { &partition.options } else { leaf_options(partition, leaf) };
            let option =
                |wanted: &str| options.others.iter().find(|(known, _)| known == wanted).map(|(_, value)| s(value));
            let has_values = partition.values != PartitionValues::None;
            let mut row = vec![
                s("def"),
                s(&table.database),
                s(&table.name),
                s(&partition.name),
                leaf.name.as_ref().map_or(null.clone(), s),
                u(at as u64 + 1),
                sub.map_or(null.clone(), |_| u(sub_at as u64 + 1)),
                s(show::method(by)),
                sub.map_or(null.clone(), |by| s(show::method(by))),
                s(show::expression(by, table, &name)),
                sub.map_or(null.clone(), |by| s(show::expression(by, table, &name))),
                if has_values { s(show::description(partition, partitioning, table)) } else { null.clone() },
            ];
            row.extend(usage_columns(usage));
            row.resize(22, Value::Null);
            row.push(s(&options.comment));
            row.extend([option("NODEGROUP").unwrap_or_else(|| s("default")), option("TABLESPACE").unwrap_or_default()]);
            rows.push(row);
        }
    }
}

fn leaf_options<'a>(partition: &'a UserPartition, leaf: &'a Leaf) -> &'a PartitionOptions {
    if leaf.name.is_some() { &leaf.options } else { &partition.options }
}
