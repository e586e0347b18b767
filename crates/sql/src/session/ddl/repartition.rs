//! What ALTER TABLE does with partitions.
//!
//! PARTITION BY and REMOVE PARTITIONING change the draft of the table, beside whatever else the statement changes of it; the
//! operations that name partitions stand alone ([`super::partition_changes`]). Where rows belong to other physical tables
//! afterwards ([`repartitions`]), the table is written again, like after a change of the primary key; else only leaves come
//! and go. EXCHANGE is [`super::exchange`]; ANALYZE, CHECK, OPTIMIZE and REPAIR are [`crate::session`]'s `maintenance`. REBUILD is FORCE: the
//! table is written again where its rows are not as those of a new table would be.

use super::partitions;
use super::table::TableDraft;
use crate::parse::ast::{PartitionOperation, PartitionWork};
use crate::parse::statement::{AlterOperation, Demands};
use crate::session::session::Session;
use crate::session::temporary;
use rauk_node::TableHandle;
use rauk_types::partitioning::PartitionOn;
use rauk_types::{MysqlError, TableSchema};

impl Session {
    /// What a statement does with partitions, in the draft of the table. Errors 1505, 1562.
    pub(super) fn change_partitions(
        &mut self,
        draft: &mut TableDraft,
        operations: &[AlterOperation],
        operation: &PartitionOperation,
        temporary: bool,
    ) -> Result<(), MysqlError> {
        let engine = operations.iter().rev().find_map(|operation| match operation {
            AlterOperation::Option { name, value } if name == "ENGINE" => Some(value.as_str()),
            _ => None,
        });
        match operation {
            PartitionOperation::By(_) if temporary => Err(temporary::partitioned()),
            PartitionOperation::By(clause) => draft.partition_by(clause, engine, &mut self.context),
            _ if !draft.is_partitioned() => Err(partitions::not_partitioned()),
            PartitionOperation::Remove => {
                draft.remove_partitioning();
                // All rows are in one table again. A key that the statement adds is not meant.
                let kept = draft.indexes.iter_mut().filter(|index| index.id.is_some());
                kept.for_each(|index| index.global = false);
                Ok(())
            }
            PartitionOperation::Maintain { work: PartitionWork::Rebuild, names } => {
                let partitioning = draft.partitions.as_ref().ok_or_else(partitions::not_partitioned)?;
                partitioning.check_names_to_rebuild(names)?;
                draft.writes_again = true;
                Ok(())
            }
            operation => {
                let table = draft.name.clone();
                // What only spreads rows over data nodes is no partitions of the user's.
                let partitions = draft.partitions.as_mut().ok_or_else(partitions::not_partitioned)?;
                partitions.change(operation, &table, engine, &mut self.context)
            }
        }
    }
}

impl Session {
    /// Every row of a partitioned table goes to where it belongs.
    pub(crate) async fn write_partitions_again(&mut self, table: &TableHandle) -> Result<(), MysqlError> {
        let mut draft = TableDraft::of(table.schema());
        draft.partitions.as_mut().ok_or_else(partitions::not_partitioned)?.forget_tables();
        self.change_table(table, draft, &Demands::default()).await.map(drop)
    }
}

/// Whether rows of the table go to other physical tables.
pub(super) fn repartitions(old: &TableSchema, draft: &TableDraft) -> bool {
    match &draft.partitions {
        Some(partitions) => partitions.is_new(),
        None => old.partitioning.is_some(),
    }
}

/// Error 3855: a column that rows are partitioned by was dropped or renamed.
pub(super) fn check_columns(old: &TableSchema, draft: &TableDraft) -> Result<(), MysqlError> {
    let Some(partitioning) = &old.partitioning else { return Ok(()) };
    // KEY () goes with the primary key.
    if matches!(partitioning.by.on, PartitionOn::Columns { implied: true, .. }) {
        return Ok(());
    }
    for at in partitioning.columns() {
        let before = &old.columns[at];
        let after = draft.columns.iter().find(|column| column.id == Some(before.id));
        if !after.is_some_and(|after| after.name.eq_ignore_ascii_case(&before.name)) {
            return Err(dependent(&before.name));
        }
    }
    Ok(())
}

/// ER_DEPENDENT_BY_PARTITION_FUNCTION.
pub(super) fn dependent(column: &str) -> MysqlError {
    let text = format!("Column '{column}' has a partitioning function dependency and cannot be dropped or renamed.");
    MysqlError::new(3855, text)
}
