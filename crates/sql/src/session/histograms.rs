//! ANALYZE TABLE … UPDATE HISTOGRAM and DROP HISTOGRAM.
//!
//! As in MySQL each column has a row of the result, in the order of their names, and what is wrong with one is a row too; errors
//! of the statement are a number of buckets that cannot be (1690) and a column that is named twice (1060).
//! Histograms are part of the catalog (`manage::histograms`): durable when the statement has answered, and the same on all nodes.

use super::run::Done;
use super::session::Session;
use super::users::Privileges;
use crate::exec::Limits;
use crate::histogram::{MOST_BUCKETS, Made, is_supported};
use crate::parse::ast::TableName;
use crate::parse::statement::HistogramChange;
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::result::ResultSink;
use rauk_types::{MysqlError, TableSchema, Value};

/// ER_DATA_OUT_OF_RANGE.
const OUT_OF_RANGE: u16 = 1690;
/// Columns whose values are counted in one pass over a table: it bounds the memory.
const COLUMNS_AT_ONCE: usize = 8;

/// What becomes of one column.
struct Column {
    name: String,
    /// Its position; `Err`: what is wrong.
    at: Result<usize, String>,
}

impl Session {
    pub(super) async fn change_histograms(
        &mut self,
        tables: &[TableName],
        change: &HistogramChange,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        if change.buckets.is_some_and(|buckets| !(1..=MOST_BUCKETS).contains(&buckets)) {
            return Err(MysqlError::new(OUT_OF_RANGE, "Number of buckets value is out of range in 'ANALYZE TABLE'"));
        }
        for (at, name) in change.columns.iter().enumerate() {
            if change.columns[..at].iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(MysqlError::new(codes::DUP_FIELDNAME, format!("Duplicate column name '{name}'")));
            }
        }
        self.commit_implicitly().await?;
        let mut rows: Vec<[String; 3]> = Vec::new();
        match tables {
            [table] => {
                let (database, name) = self.qualified(table)?;
                self.require_table("SELECT", &database, &name, Privileges::SELECT)?;
                self.require_table("INSERT", &database, &name, Privileges::INSERT)?;
                let shown = format!("{database}.{name}");
                let texts = match self.engine.database.view(&database, &name) {
                    _ if self.temporary.has(&database, &name) => {
                        vec![("Error", "Cannot create histogram statistics for a temporary table.".to_string())]
                    }
                    Some(_) => vec![("Error", "Cannot create histogram statistics for a view.".to_string())],
                    None => match self.base_table(&database, &name) {
                        Ok(_) => self.histograms_of(&self.stored_table(&database, &name)?, change).await?,
                        Err(error) => {
                            vec![("Error", error.message), ("status", "Operation failed".to_string())]
                        }
                    },
                };
                rows.extend(texts.into_iter().map(|(kind, text)| [shown.clone(), kind.to_string(), text]));
            }
            _ => {
                let text = "Only one table can be specified while modifying histogram statistics.";
                rows.push([String::new(), "Error".to_string(), text.to_string()]);
            }
        }
        let columns = ["Table", "Op", "Msg_type", "Msg_text"].map(|name| super::show::text_column(name, 128));
        let row = |[table, kind, text]: [String; 3]| {
            vec![Value::Str(table), Value::from("histogram"), Value::Str(kind), Value::Str(text)]
        };
        let rows: Vec<Vec<Value>> = rows.into_iter().map(row).collect();
        super::show::send(&columns, &rows, sink);
        Ok(Done::rows())
    }

    /// A row of each column: its kind and its text.
    async fn histograms_of(
        &mut self,
        table: &TableHandle,
        change: &HistogramChange,
    ) -> Result<Vec<(&'static str, String)>, MysqlError> {
        let schema = table.schema().clone();
        let mut columns: Vec<Column> = change.columns.iter().map(|name| column(&schema, name)).collect();
        columns.sort_by_key(|column| column.name.to_lowercase());
        let known: Vec<usize> = columns.iter().filter_map(|column| column.at.as_ref().ok().copied()).collect();
        let Some(buckets) = change.buckets else {
            let ids: Vec<_> = known.iter().map(|&at| schema.columns[at].id).collect();
            let gone = self.engine.drop_histograms(table, &ids).await?;
            let row = |column: Column| match column.at {
                Ok(at) if gone.contains(&schema.columns[at].id) => {
                    ("status", format!("Histogram statistics removed for column '{}'.", column.name))
                }
                _ => ("Error", format!("No histogram statistics found for column '{}'.", column.name)),
            };
            return Ok(columns.into_iter().map(row).collect());
        };
        let fits = |at: &usize| usable(&schema, *at).is_ok();
        let made = Made { buckets, sampling_rate: 1.0, now: self.context.now_micros };
        let known: Vec<usize> = known.into_iter().filter(fits).collect();
        for some in known.chunks(COLUMNS_AT_ONCE) {
            let mut open = self.new_transaction(true, Some(true));
            let database = &self.engine.database;
            database.gather_usage().await;
            let rows = database.estimate_rows(table);
            let clustered = database.member().is_some();
            let limits = Limits { rows, clustered, is_over: &|| false, context: Some(&self.context) };
            let result = self.engine.make_histograms(table, &mut open.transaction, limits, some, made).await;
            open.transaction.rollback();
            result?;
        }
        let row = |column: Column| match column.at.and_then(|at| usable(&schema, at)) {
            Ok(()) => ("status", format!("Histogram statistics created for column '{}'.", column.name)),
            Err(text) => ("Error", text),
        };
        Ok(columns.into_iter().map(row).collect())
    }
}

fn column(schema: &TableSchema, name: &str) -> Column {
    let at = schema.visible_columns().iter().position(|column| column.name.eq_ignore_ascii_case(name));
    match at {
        Some(at) => Column { name: schema.columns[at].name.clone(), at: Ok(at) },
        None => Column { name: name.to_string(), at: Err(format!("The column '{name}' does not exist.")) },
    }
}

/// Whether a column can have a histogram; `Err`: why not.
fn usable(schema: &TableSchema, at: usize) -> Result<(), String> {
    let column = &schema.columns[at];
    if !is_supported(&column.ty) {
        return Err(format!("The column '{}' has an unsupported data type.", column.name));
    }
    let unique = |index: &&rauk_types::IndexSchema| index.is_unique() && index.parts.len() == 1;
    if schema.indexes.iter().filter(unique).any(|index| index.parts[0].column == at) {
        return Err(format!("The column '{}' is covered by a single-part unique index.", column.name));
    }
    Ok(())
}
