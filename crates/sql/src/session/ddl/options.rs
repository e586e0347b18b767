//! Table options: ENGINE, CHARSET, COLLATE, COMMENT, AUTO_INCREMENT, FULLY_REPLICATED.
//!
//! Those that promise what is not done (ENCRYPTION, TABLESPACE, …) are refused. Those about storage (ROW_FORMAT,
//! KEY_BLOCK_SIZE, STATS_…) change nothing: they are checked, kept and shown again ([`STORED`]). Left out of that are
//! options of engines that Rauk does not have (INSERT_METHOD, PAGE_CHECKSUM, TRANSACTIONAL) and PASSWORD, which no
//! server uses.

use crate::expr::context::{Context, Warning, WarningLevel};
use crate::session::{charset, errors};
use rauk_types::error::codes;
use rauk_types::{Collation, MysqlError, StorageClauses};

/// ER_ENGINE_ATTRIBUTE_NOT_SUPPORTED.
const ENGINE_ATTRIBUTE_NOT_SUPPORTED: u16 = 3981;

/// What the options of one statement say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    pub collation: Option<Collation>,
    pub comment: Option<String>,
    pub auto_increment: Option<u64>,
    pub fully_replicated: Option<bool>,
    /// Of [`STORED`], as given; an empty value takes the option away.
    pub storage: Vec<(&'static str, String)>,
}

/// What the value of an option about storage may be.
#[derive(Clone, Copy)]
enum Values {
    /// 0 is the default.
    Number,
    /// DEFAULT is the default, and 0 another number.
    NumberOrDefault,
    /// 0 is the default.
    Switch,
    /// DEFAULT is the default.
    SwitchOrDefault,
    Word(&'static [&'static str]),
    /// In quotes where it is shown.
    Text,
}

/// Options about storage, in the order in which SHOW CREATE TABLE shows them.
const STORED: &[(&str, Values)] = &[
    ("MIN_ROWS", Values::Number),
    ("MAX_ROWS", Values::Number),
    ("AVG_ROW_LENGTH", Values::Number),
    ("PACK_KEYS", Values::SwitchOrDefault),
    ("STATS_PERSISTENT", Values::SwitchOrDefault),
    ("STATS_AUTO_RECALC", Values::SwitchOrDefault),
    ("STATS_SAMPLE_PAGES", Values::NumberOrDefault),
    ("CHECKSUM", Values::Switch),
    ("DELAY_KEY_WRITE", Values::Switch),
    ("ROW_FORMAT", Values::Word(&["DYNAMIC", "FIXED", "COMPRESSED", "REDUNDANT", "COMPACT"])),
    ("KEY_BLOCK_SIZE", Values::Number),
    ("COMPRESSION", Values::Text),
    ("SECONDARY_ENGINE", Values::Text),
];

/// The value of an option about storage as it is kept; empty for its default.
fn stored(name: &str, values: Values, given: &str) -> Result<String, MysqlError> {
    let upper = given.to_ascii_uppercase();
    let wrong = || {
        let message = format!("You have an error in your SQL syntax; {name} cannot be '{given}'");
        MysqlError::new(codes::PARSE_ERROR, message)
    };
    let number = || given.parse::<u64>().map(|number| number.to_string()).map_err(|_| wrong());
    let without = |default: &str, value: String| if value == default { String::new() } else { value };
    Ok(match values {
        Values::NumberOrDefault | Values::SwitchOrDefault | Values::Word(_) if upper == "DEFAULT" => String::new(),
        Values::Number => without("0", number()?),
        Values::NumberOrDefault => number()?,
        // Any number but 0 is 1 in MySQL.
        Values::Switch => without("0", if number()? == "0" { "0".into() } else { "1".into() }),
        Values::SwitchOrDefault => match number()?.as_str() {
            word @ ("0" | "1") => word.into(),
            _ => return Err(wrong()),
        },
        Values::Word(words) if words.contains(&upper.as_str()) => upper,
        // Of MariaDB's Aria.
        Values::Word(_) if upper == "PAGE" => String::new(),
        Values::Word(_) => return Err(wrong()),
        Values::Text if name == "SECONDARY_ENGINE" && upper == "NULL" => String::new(),
        Values::Text => given.to_string(),
    })
}

/// Puts options into those that a table has, in the order of [`STORED`].
pub fn merge(into: &mut Vec<(String, String)>, given: &[(&'static str, String)]) {
    for (name, value) in given {
        into.retain(|(known, _)| known != name);
        into.push((name.to_string(), value.clone()));
    }
    into.retain(|(_, value)| !value.is_empty());
    into.sort_by_key(|(name, _)| STORED.iter().position(|(known, _)| known == name));
}

/// What is declared of partitions beside their columns, which changes nothing: rows go to the partitions of the data
/// directory. It is kept beside the options and shown behind them.
const LINEAR: &str = "PARTITION LINEAR";
const ALGORITHM: &str = "PARTITION ALGORITHM";
const NUMBER: &str = "PARTITIONS";
const NAMES: &str = "PARTITION NAMES";

/// Numbers and names of partitions are there in tables that were made when these declared nothing else.
pub fn declare_distribution(into: &mut Vec<(String, String)>, linear: bool, algorithm: Option<u8>) {
    let declared = [(LINEAR, linear.then(|| "1".to_string())), (ALGORITHM, algorithm.map(|number| number.to_string()))];
    forget_distribution(into);
    into.extend(declared.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
}

pub fn forget_distribution(into: &mut Vec<(String, String)>) {
    into.retain(|(name, _)| !is_of_partitions(name));
}

pub fn is_of_partitions(name: &str) -> bool {
    [LINEAR, ALGORITHM, NUMBER, NAMES].contains(&name)
}

/// As information_schema.PARTITIONS names it.
pub fn method(storage: &StorageClauses) -> &'static str {
    if storage.option(LINEAR).is_some() { "LINEAR KEY" } else { "KEY" }
}

/// `PARTITION BY KEY …` as it was declared, over `columns`.
pub fn partitioning(storage: &StorageClauses, columns: &str) -> String {
    let linear = if storage.option(LINEAR).is_some() { "LINEAR " } else { "" };
    let algorithm = storage.option(ALGORITHM).map(|number| format!("ALGORITHM = {number} ")).unwrap_or_default();
    let mut out = format!("PARTITION BY {linear}KEY {algorithm}({columns})");
    match (storage.option(NAMES), storage.option(NUMBER)) {
        (Some(names), _) => {
            let names: Vec<String> =
                names.split('\n').map(|name| format!("PARTITION {name} ENGINE = InnoDB")).collect();
            out.push_str(&format!("\n({})", names.join(",\n ")));
        }
        (None, Some(number)) => out.push_str(&format!("\nPARTITIONS {number}")),
        (None, None) => {}
    }
    out
}

/// Whether the value of an option stands in quotes.
pub fn is_quoted(name: &str) -> bool {
    name == "COMPRESSION"
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
            "DATA DIRECTORY" | "INDEX DIRECTORY" => ignored(context, &upper),
            "ENGINE_ATTRIBUTE" | "SECONDARY_ENGINE_ATTRIBUTE" if !value.is_empty() => {
                let message = format!("Storage engine 'InnoDB' does not support {upper}.");
                return Err(MysqlError::new(ENGINE_ATTRIBUTE_NOT_SUPPORTED, message));
            }
            other => {
                if let Some((name, values)) = STORED.iter().find(|(name, _)| *name == other) {
                    out.storage.push((name, stored(name, *values, value)?));
                }
            }
        }
    }
    if charset_name.is_some() || collation_name.is_some() {
        out.collation = Some(charset::resolve(charset_name, collation_name, Collation::DEFAULT)?);
    }
    Ok(out)
}

/// Warning 1618.
pub fn ignored(context: &mut Context, option: &str) {
    note(context, 1618, format!("<{option}> option ignored"));
}

/// An engine by the one name that is compared.
pub fn engine_name(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    if upper == "RAUK" { "INNODB".to_string() } else { upper }
}

/// Whether tables can be declared with it.
pub fn is_engine(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    matches!(upper.as_str(), "INNODB" | "RAUK") || SUBSTITUTED.contains(&upper.as_str())
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
