//! EXPLAIN: MySQL's table and its JSON; FORMAT=TREE, the logical tree that is planned, in a text of our own; and EXPLAIN
//! ANALYZE, which runs the statement and shows its operators with what was estimated and what was counted. As in MySQL that is a query,
//! or an UPDATE or DELETE of several tables, which changes the rows.

use super::{Table, column, send, text_column, unsigned_column};
use crate::parse::Statement;
use crate::session::errors;
use crate::session::run::Done;
use crate::session::session::Session;
use rauk_types::result::ResultSink;
use rauk_types::{DataType, MysqlError, Value};

/// ER_UNKNOWN_EXPLAIN_FORMAT.
const UNKNOWN_EXPLAIN_FORMAT: u16 = 1791;

impl Session {
    pub(crate) fn explain(
        &mut self,
        format: Option<&str>,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        match format {
            Some(format) if format.eq_ignore_ascii_case("TREE") => {
                let tree = self.tree(statement, self.parameter_types.clone())?;
                send_text(tree, sink);
                return Ok(Done::rows());
            }
            Some(format) if format.eq_ignore_ascii_case("JSON") => {
                let (plan, _) = self.plan(statement, self.parameter_types.clone())?;
                let text = plan.plan.explain_json(&mut self.context)?;
                send_text(text, sink);
                return Ok(Done::rows());
            }
            Some(format) if !format.eq_ignore_ascii_case("TRADITIONAL") => return Err(unknown_format(format)),
            _ => {}
        }
        let (plan, _) = self.plan(statement, self.parameter_types.clone())?;
        if let Some(hints) = &plan.plan.hints {
            self.warn_of_hints(hints);
        }
        let rows = plan.plan.explain(&mut self.context)?;
        let table = Table {
            columns: vec![
                unsigned_column("id"),
                text_column("select_type", 19),
                text_column("table", 64),
                text_column("partitions", 512),
                text_column("type", 10),
                text_column("possible_keys", 4096),
                text_column("key", 64),
                text_column("key_len", 393),
                text_column("ref", 2048),
                unsigned_column("rows"),
                column("filtered", DataType::DOUBLE, true),
                text_column("Extra", 255),
            ],
            rows,
        };
        send(&table.columns, &table.rows, sink);
        Ok(Done::rows())
    }

    /// Runs a query, or a change of several tables, and shows what its operators did.
    pub(crate) async fn explain_analyze(
        &mut self,
        format: Option<&str>,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        match format.map(str::to_ascii_uppercase).as_deref() {
            None | Some("TREE") => {}
            Some(name @ ("JSON" | "TRADITIONAL")) => {
                return Err(errors::not_supported(&format!("EXPLAIN ANALYZE with {name} format")));
            }
            Some(name) => return Err(unknown_format(name)),
        }
        if !matches!(statement, Statement::Query(_) | Statement::Update(_) | Statement::Delete(_)) {
            return Err(not_measured());
        }
        let text = self.run_measured(statement).await?;
        send_text(text, sink);
        Ok(Done::rows())
    }
}

/// Error 1235 of a statement whose operators are not counted.
pub(in crate::session) fn not_measured() -> MysqlError {
    errors::not_supported("EXPLAIN ANALYZE on this query")
}

fn send_text(text: String, sink: &mut dyn ResultSink) {
    send(&[text_column("EXPLAIN", 65_535)], &[vec![Value::Str(text)]], sink);
}

fn unknown_format(name: &str) -> MysqlError {
    MysqlError::new(UNKNOWN_EXPLAIN_FORMAT, format!("Unknown EXPLAIN format name: '{name}'"))
}
