//! ANALYZE, CHECK, OPTIMIZE and REPAIR, of tables and of partitions.
//!
//! Rows live in memory in good order, so there is little to do: ANALYZE samples a table at once; CHECK binds the query of a view,
//! and looks in partitions for rows that belong to others, which EXCHANGE PARTITION … WITHOUT VALIDATION may have put there; REPAIR
//! writes such a table again, every row to where it belongs. OPTIMIZE only says whether the table is there.

use super::ddl::partitions::not_partitioned;
use super::run::Done;
use super::session::Session;
use super::users::Privileges;
use crate::exec::Limits;
use crate::parse::ast::{PartitionNames, PartitionWork, TableName};
use rauk_node::TableHandle;
use rauk_types::result::ResultSink;
use rauk_types::{MysqlError, Partitioning, Value};

const WRONG_NAME: &str = "Wrong partition name or partition list";

/// Rows of the answer about one table.
struct Answer<'a> {
    rows: &'a mut Vec<Vec<Value>>,
    table: String,
    verb: &'a str,
}

impl Answer<'_> {
    fn row(&mut self, kind: &str, text: String) {
        let (table, verb) = (Value::Str(self.table.clone()), Value::from(self.verb));
        self.rows.push(vec![table, verb, Value::from(kind), Value::Str(text)]);
    }

    fn ok(&mut self) {
        self.row("status", "OK".to_string());
    }

    fn failed(&mut self, kind: &str, text: String) {
        self.row(kind, text);
        self.row("status", "Operation failed".to_string());
    }
}

fn send(rows: &[Vec<Value>], sink: &mut dyn ResultSink) {
    let columns = ["Table", "Op", "Msg_type", "Msg_text"].map(|name| super::show::text_column(name, 128));
    super::show::send(&columns, rows, sink);
}

/// Marks of the leaves of named partitions; `None`: there is none of a name, or a name is there twice.
pub(super) fn marked(partitioning: &Partitioning, names: &PartitionNames) -> Option<Vec<bool>> {
    let each = partitioning.leaves_each();
    let PartitionNames::Named(names) = names else { return Some(vec![true; partitioning.leaves().count()]) };
    let mut marks = vec![false; partitioning.leaves().count()];
    for name in names {
        let at = partitioning.partitions.iter().position(|of| of.name.eq_ignore_ascii_case(name))?;
        if marks[at * each] {
            return None;
        }
        marks[at * each..(at + 1) * each].fill(true);
    }
    Some(marks)
}

impl Session {
    /// Samples a table at once.
    async fn analyze_table(&mut self, table: &TableHandle) -> Result<(), MysqlError> {
        let mut open = self.new_transaction(true, Some(true));
        let database = &self.engine.database;
        database.gather_usage().await;
        let rows = database.estimate_rows(table);
        let clustered = database.member().is_some();
        let limits = Limits { rows, clustered, is_over: &|| false, context: Some(&self.context) };
        let result = self.engine.gather_statistics(table, &mut open.transaction, limits, &mut []).await;
        open.transaction.rollback();
        result.map(drop)
    }

    pub(super) async fn maintain(
        &mut self,
        verb: &str,
        tables: &[TableName],
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        self.commit_implicitly().await?;
        let mut rows = Vec::new();
        for table in tables {
            let (database, name) = self.qualified(table)?;
            if !self.temporary.has(&database, &name) {
                self.require_table("SELECT", &database, &name, Privileges::SELECT)?;
            }
            let mut answer = Answer { rows: &mut rows, table: format!("{database}.{name}"), verb };
            let view = self.view(&database, &name);
            let checked = match (&view, verb) {
                // A view is in good order when its query can be bound.
                (Some(view), "check") => super::system::schema_of_view(&self.viewer(), view).map(drop),
                _ => self.base_table(&database, &name).map(Some).map(drop),
            };
            match checked {
                Ok(()) if view.is_some() => answer.ok(),
                Ok(()) => {
                    let table = self.stored_table(&database, &name)?;
                    match verb {
                        "analyze" if !table.is_temporary() => {
                            self.analyze_table(&table).await?;
                            answer.ok();
                        }
                        "check" | "repair" => {
                            let leaves = vec![true; table.parts().map_or(0, |parts| parts.count())];
                            self.look_for_misplaced(&table, &leaves, &mut answer).await?;
                        }
                        _ => answer.ok(),
                    }
                }
                Err(error) => answer.failed("Error", error.message),
            }
        }
        send(&rows, sink);
        Ok(Done::rows())
    }

    /// ALTER TABLE … ANALYZE, CHECK, OPTIMIZE, REPAIR PARTITION. Error 1505; whatever else is wrong is said in the answer, as in MySQL.
    pub(super) async fn maintain_partitions(
        &mut self,
        table: &TableName,
        work: PartitionWork,
        names: &PartitionNames,
        sink: &mut dyn ResultSink,
    ) -> Result<Done, MysqlError> {
        let (database, name) = self.qualified(table)?;
        let (verb, needed) = match work {
            PartitionWork::Check => ("check", Privileges::SELECT),
            PartitionWork::Analyze => ("analyze", Privileges::SELECT.with(Privileges::INSERT)),
            PartitionWork::Optimize => ("optimize", Privileges::SELECT.with(Privileges::INSERT)),
            PartitionWork::Repair => ("repair", Privileges::SELECT.with(Privileges::INSERT)),
            PartitionWork::Rebuild => unreachable!("REBUILD PARTITION gives no rows"),
        };
        if !self.temporary.has(&database, &name) {
            self.require_table("SELECT", &database, &name, needed)?;
        }
        self.commit_implicitly().await?;
        let mut rows = Vec::new();
        let mut answer = Answer { rows: &mut rows, table: format!("{database}.{name}"), verb };
        match self.base_table(&database, &name) {
            Err(error) => answer.failed("Error", error.message),
            Ok(table) => {
                let partitioning = table.schema().partitioning.clone().ok_or_else(not_partitioned)?;
                match marked(&partitioning, names) {
                    None => answer.row("error", WRONG_NAME.to_string()),
                    Some(leaves) => match work {
                        PartitionWork::Analyze => {
                            self.analyze_table(&table).await?;
                            answer.ok();
                        }
                        PartitionWork::Optimize => {
                            let text = "Table does not support optimize on partitions. All partitions will be rebuilt and analyzed.";
                            answer.row("note", text.to_string());
                            answer.ok();
                        }
                        _ => self.look_for_misplaced(&table, &leaves, &mut answer).await?,
                    },
                }
            }
        }
        send(&rows, sink);
        Ok(Done::rows())
    }

    /// CHECK and REPAIR of leaves of a table, one mark for each: whether they have rows that belong to others. REPAIR writes the whole table again then.
    async fn look_for_misplaced(
        &mut self,
        table: &TableHandle,
        leaves: &[bool],
        answer: &mut Answer<'_>,
    ) -> Result<(), MysqlError> {
        let Some(partitioning) = &table.schema().partitioning else {
            answer.ok();
            return Ok(());
        };
        let mut open = self.new_transaction(true, Some(true));
        let found = self.engine.database.leaf_with_others(table, leaves, &mut open.transaction).await;
        open.transaction.rollback();
        match found? {
            None => answer.ok(),
            Some(_) if answer.verb == "repair" => match self.write_partitions_again(table).await {
                Ok(()) => answer.ok(),
                Err(error) => answer.failed("Error", error.message),
            },
            Some(leaf) => {
                answer.row("error", "Found a misplaced row".to_string());
                let partition = &partitioning.partitions[leaf / partitioning.leaves_each()].name;
                answer.failed("error", format!("Partition {partition} returned error"));
            }
        }
        Ok(())
    }
}
