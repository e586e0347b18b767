//! CHECKSUM TABLE.
//!
//! The checksum of a table is the sum of those of its rows, so it does not depend on where they are and in which order they are read. A row's is the
//! CRC-32 of its columns, INVISIBLE and generated ones too: for each a byte that says whether there is a value, the length of its text, and the text.
//! TIMESTAMPs count as in UTC. So tables of the same definition and rows have the same checksum on every Rauk; MySQL and MariaDB, which sum
//! up their record formats, give other numbers, and others than each other.
//!
//! The rows are those that a SELECT in the present transaction sees. QUICK asks for a sum that is kept with the table, which InnoDB has not either: NULL.

use super::data::Source;
use super::into::select_of;
use super::run::Done;
use super::session::Session;
use super::users::Privileges;
use crate::expr::context::WarningLevel;
use crate::expr::crc32;
use crate::parse::Statement;
use crate::parse::ast::{ColumnName, Expr, Limit, QueryBody, TableFactor, TableName, TableReference};
use rauk_types::format::append_text;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink};
use rauk_types::{DataType, MysqlError, Value, ValueRef};

/// Sums up the rows of a query.
#[derive(Default)]
struct Summing {
    types: Vec<DataType>,
    sum: u32,
    row: Vec<u8>,
    text: Vec<u8>,
}

impl ResultSink for Summing {
    fn columns(&mut self, columns: &[ResultColumn]) {
        self.types = columns.iter().map(|column| column.ty).collect();
    }

    fn row(&mut self, values: &[ValueRef<'_>]) {
        self.row.clear();
        for (value, ty) in values.iter().zip(&self.types) {
            self.row.push(u8::from(!value.is_null()));
            if !value.is_null() {
                self.text.clear();
                append_text(*value, ty, &mut self.text);
                self.row.extend_from_slice(&(self.text.len() as u64).to_le_bytes());
                self.row.extend_from_slice(&self.text);
            }
        }
        self.sum = self.sum.wrapping_add(crc32(&self.row));
    }

    fn withdraw(&mut self) -> bool {
        self.sum = 0;
        true
    }

    fn complete(&mut self, _: &Completion) {}

    fn buffered(&self) -> usize {
        0
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Session {
    /// A table that is not there, and a view, have NULL, and their error among the warnings.
    pub(super) async fn checksum_tables(
        &mut self,
        tables: &[TableName],
        quick: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        let zone = std::mem::replace(&mut self.context.time_zone, jiff::tz::TimeZone::UTC);
        let mut rows = Vec::with_capacity(tables.len());
        let mut failed = None;
        for table in tables {
            match self.checksum(table, quick).await {
                Ok(row) => rows.push(row),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        self.context.time_zone = zone;
        if let Some(error) = failed {
            return Err(error);
        }
        let columns = [super::show::text_column("Table", 128), super::show::integer_column("Checksum")];
        super::show::send(&columns, &rows, sink);
        Ok(Done::rows())
    }

    async fn checksum(&mut self, table: &TableName, quick: bool) -> Result<Vec<Value>, MysqlError> {
        let (database, name) = self.qualified(table)?;
        if !self.temporary.has(&database, &name) {
            self.require_table("SELECT", &database, &name, Privileges::SELECT)?;
        }
        let shown = Value::Str(format!("{database}.{name}"));
        let schema = match self.base_table(&database, &name) {
            Ok(found) => found.schema().clone(),
            Err(error) => {
                self.push_warning(WarningLevel::Error, error.code, error.message);
                return Ok(vec![shown, Value::Null]);
            }
        };
        if quick {
            return Ok(vec![shown, Value::Null]);
        }
        let columns = schema.visible_columns().iter().map(|column| Expr::Column(ColumnName::bare(column.name.clone())));
        let mut query = select_of(columns.collect());
        let QueryBody::Select(select) = &mut query.body else { unreachable!("it was made as one") };
        select.from = vec![TableReference::Table(TableFactor {
            name: TableName { database: Some(database), name },
            alias: None,
            partitions: vec![],
            hints: vec![],
        })];
        // sql_select_limit is for the client's own.
        query.limit = Some(Limit { count: Expr::number(u64::MAX.to_string()), offset: None });
        let statement = Statement::Query(Box::new(query));
        let mut sum = Summing::default();
        let source = Source { text: "", statement: Some(&statement), types: &[], known: None };
        self.run_uncached(source, &mut sum).await?;
        Ok(vec![shown, Value::Int(sum.sum.into())])
    }
}
