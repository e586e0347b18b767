//! Table options: ENGINE, CHARSET, COLLATE, COMMENT, AUTO_INCREMENT, FULLY_REPLICATED. Those that promise what is not done (ENCRYPTION, TABLESPACE, …) are
//! refused; all others (ROW_FORMAT, KEY_BLOCK_SIZE, STATS_…) are read and have no effect.

use crate::expr::context::{Context, Warning, WarningLevel};
use crate::session::{charset, errors};
use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError};

/// What the options of one statement say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    pub collation: Option<Collation>,
    pub comment: Option<String>,
    pub auto_increment: Option<u64>,
    pub fully_replicated: Option<bool>,
}

/// Engines of MySQL and MariaDB whose tables Rauk makes tables of its own of.
const SUBSTITUTED: &[&str] = &[
    "MYISAM",
    "MEMORY",
    "HEAP",
    "NDB",
    "NDBCLUSTER",
    "ARIA",
    "ARCHIVE",
    "CSV",
    "BLACKHOLE",
    "MERGE",
    "MRG_MYISAM",
    "ROCKSDB",
    "TOKUDB",
    "XTRADB",
    "FEDERATED",
    "COLUMNSTORE",
    "SEQUENCE",
    "SPIDER",
];

pub fn read(options: &[(String, String)], table: &str, context: &mut Context) -> Result<TableOptions, MysqlError> {
    let mut charset_name: Option<&str> = None;
    let mut collation_name: Option<&str> = None;
    let mut out = TableOptions::default();
    for (name, value) in options {
        let upper = name.to_ascii_uppercase();
        match upper.strip_prefix("DEFAULT ").unwrap_or(&upper) {
            "ENGINE" | "TYPE" => engine(value, table, context)?,
            "CHARSET" | "CHARACTER SET" => {
                charset_name = Some(value).filter(|v| !v.eq_ignore_ascii_case("DEFAULT")).map(String::as_str)
            }
            "COLLATE" => collation_name = Some(value),
            "COMMENT" => {
                if value.chars().count() > 2048 {
                    let message = format!("Comment for table '{table}' is too long (max = 2048)");
                    return Err(MysqlError::new(1628, message));
                }
                out.comment = Some(value.clone());
            }
            "AUTO_INCREMENT" => out.auto_increment = value.parse().ok(),
            "FULLY_REPLICATED" => {
                let wrong = || MysqlError::new(codes::PARSE_ERROR, "FULLY_REPLICATED is 0 or 1");
                out.fully_replicated = Some(match value.as_str() {
                    "0" => false,
                    "1" => true,
                    _ => return Err(wrong()),
                });
            }
            // Promises about who can read the rows, where they are and what a table is made of.
            "ENCRYPTION" | "ENCRYPTED" if !matches!(value.to_ascii_uppercase().as_str(), "N" | "NO") => {
                return Err(errors::not_supported(&format!("{upper} = {value}")));
            }
            "TABLESPACE" | "CONNECTION" | "UNION" => return Err(errors::not_supported(&upper)),
            "DATA DIRECTORY" | "INDEX DIRECTORY" => {
                note(context, 1618, format!("<{upper}> option ignored"));
            }
            _ => {}
        }
    }
    if charset_name.is_some() || collation_name.is_some() {
        out.collation = Some(charset::resolve(charset_name, collation_name, Collation::DEFAULT)?);
    }
    Ok(out)
}

fn engine(name: &str, table: &str, context: &mut Context) -> Result<(), MysqlError> {
    let upper = name.to_ascii_uppercase();
    if matches!(upper.as_str(), "INNODB" | "RAUK") {
        return Ok(());
    }
    let unknown = format!("Unknown storage engine '{name}'");
    if !SUBSTITUTED.contains(&upper.as_str()) {
        if context.sql_mode.no_engine_substitution {
            return Err(MysqlError::new(codes::UNKNOWN_STORAGE_ENGINE, unknown));
        }
        note(context, codes::UNKNOWN_STORAGE_ENGINE, unknown);
    }
    note(context, 1266, format!("Using storage engine InnoDB for table '{table}'"));
    Ok(())
}

fn note(context: &mut Context, code: u16, message: String) {
    context.warning_count += 1;
    if context.warnings.len() < context.max_error_count {
        context.warnings.push(Warning { level: WarningLevel::Warning, code, message });
    }
}
