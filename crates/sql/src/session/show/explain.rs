//! EXPLAIN in MySQL's traditional form, and FORMAT=TREE: the logical tree that is planned, in a text of our own.

use super::{Table, column, send, text_column, unsigned_column};
use crate::parse::Statement;
use crate::session::errors;
use crate::session::run::Done;
use crate::session::session::Session;
use rauk_types::result::ResultSink;
use rauk_types::{DataType, MysqlError, Value};

impl Session {
    pub(crate) fn explain(
        &mut self,
        analyze: bool,
        format: Option<&str>,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        if analyze {
            return Err(errors::not_supported("EXPLAIN ANALYZE"));
        }
        match format {
            Some(format) if format.eq_ignore_ascii_case("TREE") => {
                let tree = self.tree(statement, self.parameter_types.clone())?;
                send(&[text_column("EXPLAIN", 65_535)], &[vec![Value::Str(tree)]], sink);
                return Ok(Done::rows());
            }
            Some(format) if !format.eq_ignore_ascii_case("TRADITIONAL") => {
                return Err(errors::not_supported(&format!("EXPLAIN FORMAT={format}")));
            }
            _ => {}
        }
        let (plan, _) = self.plan(statement, self.parameter_types.clone())?;
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
}
