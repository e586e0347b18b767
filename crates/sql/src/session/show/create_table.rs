//! The text of SHOW CREATE TABLE, in MySQL 8's layout: reading it back makes the same table.

use crate::parse::RAUK_VERSION;
use crate::session::ddl::options;
use crate::session::ddl::types::column_type;
use crate::session::system::{self, current_timestamp};
use rauk_types::{Collation, Column, ColumnDefault, IndexKind, IndexSchema, TableSchema, TextParser, TypeKind, Value};

/// A text literal that every sql_mode reads alike but NO_BACKSLASH_ESCAPES.
pub(super) fn quoted_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for character in text.chars() {
        match character {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

fn quoted_name(name: &str, always: bool) -> String {
    let plain = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
        && !name.bytes().all(|b| b.is_ascii_digit());
    if plain && !always && !crate::parse::is_reserved(name) {
        name.to_string()
    } else {
        format!("`{}`", name.replace('`', "``"))
    }
}

/// How a session wants to see definitions.
pub(super) struct Style<'a> {
    /// Shows defaults of TIMESTAMP columns.
    pub zone: &'a jiff::tz::TimeZone,
    /// sql_quote_show_create.
    pub quotes: bool,
    /// show_create_table_verbosity: ROW_FORMAT also where it is the default.
    pub shows_row_format: bool,
}

/// `next`: the next AUTO_INCREMENT number.
pub(super) fn text(schema: &TableSchema, temporary: bool, next: Option<u64>, style: &Style<'_>) -> String {
    let name = |name: &str| quoted_name(name, style.quotes);
    let mut lines: Vec<String> = Vec::new();
    for (at, column) in schema.visible_columns().iter().enumerate() {
        lines.push(format!("  {} {}", name(&column.name), column_text(schema, at, column, style.zone)));
    }
    for index in system::declared(schema) {
        lines.push(format!("  {}", index_text(schema, index, &name)));
    }
    for key in &schema.foreign_keys {
        lines.push(format!("  {}", key.clause(schema, &name)));
    }
    for check in &schema.checks {
        let enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
        lines.push(format!("  CONSTRAINT {} CHECK ({}){enforced}", name(&check.name), check.expression));
    }
    let kind = if temporary { " TEMPORARY" } else { "" };
    let mut out = format!("CREATE{kind} TABLE {} (\n{}\n) ENGINE=InnoDB", name(&schema.name), lines.join(",\n"));
    if let Some(next) = next.filter(|n| *n > 1) {
        out.push_str(&format!(" AUTO_INCREMENT={next}"));
    }
    out.push_str(&format!(" DEFAULT CHARSET={}", schema.collation.charset_name()));
    if says_collation(schema.collation) {
        out.push_str(&format!(" COLLATE={}", schema.collation.name()));
    }
    for (option, value) in schema.storage.options.iter().filter(|(option, _)| !options::is_of_partitions(option)) {
        let value = if options::is_quoted(option) { quoted_text(value) } else { value.clone() };
        out.push_str(&format!(" {option}={value}"));
    }
    if style.shows_row_format && schema.storage.option("ROW_FORMAT").is_none() {
        out.push_str(" ROW_FORMAT=DYNAMIC");
    }
    if schema.fully_replicated {
        out.push_str(" FULLY_REPLICATED=1");
    }
    if !schema.comment.is_empty() {
        out.push_str(&format!(" COMMENT={}", quoted_text(&schema.comment)));
    }
    if let Some(partitioning) = &schema.partitioning {
        out.push_str(&super::partitions::clause(partitioning, schema, &name));
    } else if schema.explicit_partitioning {
        let columns: Vec<String> = schema.distribution.iter().map(|&at| name(&schema.columns[at].name)).collect();
        let clause = options::partitioning(&schema.storage, &columns.join(","));
        out.push_str(&format!("\n/*!50100 {clause} */"));
    }
    out
}

/// Whether a definition names the collation, too: it is not the default of its character set, or is that of utf8mb4, which other servers have otherwise.
pub(super) fn says_collation(collation: Collation) -> bool {
    !collation.is_default() || collation == Collation::DEFAULT
}

fn column_text(schema: &TableSchema, at: usize, column: &Column, zone: &jiff::tz::TimeZone) -> String {
    let ty = &column.ty;
    let mut out = column_type(ty);
    if ty.is_text() && ty.kind != TypeKind::Json || ty.has_members() {
        if ty.collation != schema.collation {
            out.push_str(&format!(" CHARACTER SET {}", ty.collation.charset_name()));
        }
        // A column says its collation when it is not the character set's default, or is that of utf8mb4 and not the table's.
        if !ty.collation.is_default() || says_collation(ty.collation) && ty.collation != schema.collation {
            out.push_str(&format!(" COLLATE {}", ty.collation.name()));
        }
    }
    if let Some(generated) = &column.generated {
        let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
        out.push_str(&format!(" GENERATED ALWAYS AS ({}) {kind}", generated.expression));
    }
    if !column.nullable {
        out.push_str(" NOT NULL");
    } else if ty.kind == TypeKind::Timestamp {
        out.push_str(" NULL");
    }
    if let Some(system) = ty.reference_system() {
        out.push_str(&format!(" /*!80003 SRID {} */", system.srid));
    }
    out.push_str(schema.storage.of_column(column.id));
    match &column.default {
        ColumnDefault::None => {}
        _ if column.generated.is_some() => {}
        ColumnDefault::Expression(text) => out.push_str(&format!(" DEFAULT ({text})")),
        ColumnDefault::Now => out.push_str(&format!(" DEFAULT {}", current_timestamp(ty))),
        // TEXT and BLOB show none; JSON and geometries do.
        ColumnDefault::Value(Value::Null)
            if !column.nullable || ty.is_lob() && !matches!(ty.kind, TypeKind::Json | TypeKind::Geometry) => {}
        ColumnDefault::Value(Value::Null) => out.push_str(" DEFAULT NULL"),
        ColumnDefault::Value(Value::Bytes(bytes)) => {
            let printable = bytes.iter().all(|b| (b' '..=b'~').contains(b));
            let literal = match (printable, std::str::from_utf8(bytes)) {
                (true, Ok(text)) => quoted_text(text),
                _ => format!("0x{}", bytes.iter().map(|b| format!("{b:02X}")).collect::<String>()),
            };
            // TEXT and BLOB take a default as an expression only.
            out.push_str(&if ty.is_lob() { format!(" DEFAULT ({literal})") } else { format!(" DEFAULT {literal}") });
        }
        ColumnDefault::Value(_) if ty.kind == TypeKind::Bit => {
            let text = system::default_text(column, zone).unwrap_or_default();
            out.push_str(&format!(" DEFAULT {text}"));
        }
        ColumnDefault::Value(_) => {
            let text = quoted_text(&system::default_text(column, zone).unwrap_or_default());
            out.push_str(&if ty.is_lob() { format!(" DEFAULT ({text})") } else { format!(" DEFAULT {text}") });
        }
    }
    if column.on_update_now {
        out.push_str(&format!(" ON UPDATE {}", current_timestamp(ty)));
    }
    if schema.auto_increment == Some(at) {
        out.push_str(" AUTO_INCREMENT");
    }
    if column.invisible {
        out.push_str(" /*!80023 INVISIBLE */");
    }
    if !column.comment.is_empty() {
        out.push_str(&format!(" COMMENT {}", quoted_text(&column.comment)));
    }
    out
}

fn index_text(schema: &TableSchema, index: &IndexSchema, name: &dyn Fn(&str) -> String) -> String {
    let parts: Vec<String> = index
        .parts
        .iter()
        .map(|part| {
            let column = &schema.columns[part.column];
            let mut out = match &column.generated {
                Some(generated) if generated.of_key => format!("({})", generated.expression),
                _ => name(&column.name),
            };
            if let Some(prefix) = part.prefix {
                out.push_str(&format!("({prefix})"));
            }
            if part.descending {
                out.push_str(" DESC");
            }
            out
        })
        .collect();
    let mut out = match index.kind {
        IndexKind::Primary => "PRIMARY KEY".to_string(),
        IndexKind::Unique => format!("UNIQUE KEY {}", name(&index.name)),
        IndexKind::Elements(elements) if elements.unique => format!("UNIQUE KEY {}", name(&index.name)),
        IndexKind::Ordered | IndexKind::Elements(_) => format!("KEY {}", name(&index.name)),
        IndexKind::FullText(_) => format!("FULLTEXT KEY {}", name(&index.name)),
    };
    out.push_str(&format!(" ({})", parts.join(",")));
    if index.hash_only {
        out.push_str(" USING HASH");
    }
    out.push_str(schema.storage.of_index(index.id));
    if !index.comment.is_empty() {
        out.push_str(&format!(" COMMENT {}", quoted_text(&index.comment)));
    }
    if index.invisible {
        out.push_str(" /*!80000 INVISIBLE */");
    }
    if index.global {
        out.push_str(&format!(" /*!{RAUK_VERSION} GLOBAL */"));
    }
    if index.kind == IndexKind::FullText(TextParser::Ngram) {
        out.push_str(" /*!50100 WITH PARSER `ngram` */");
    }
    out
}

/// Virtual tables have columns only.
pub(super) fn text_of_virtual(schema: &TableSchema) -> String {
    let line = |column: &Column| {
        let null = if column.nullable { "DEFAULT NULL" } else { "NOT NULL" };
        format!("  {} {} {null}", quoted_name(&column.name, true), column_type(&column.ty))
    };
    let lines: Vec<String> = schema.columns.iter().map(line).collect();
    format!(
        "CREATE TEMPORARY TABLE {} (\n{}\n) DEFAULT CHARSET=utf8mb4",
        quoted_name(&schema.name, true),
        lines.join(",\n")
    )
}
