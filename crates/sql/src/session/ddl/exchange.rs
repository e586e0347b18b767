//! ALTER TABLE … EXCHANGE PARTITION … WITH TABLE …
//!
//! What both tables have to be is found here where it shows in a statement (errors 1066, 1347, 1505, 1732 to 1735); whether their rows
//! are alike, and whether they belong to the partition, by the node ([`rauk_node::Database::exchange_leaf`]).

use super::partitions;
use crate::parse::ast::TableName;
use crate::session::session::Session;
use crate::session::system;
use crate::session::users::Privileges;
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::partitioning::UserPartition;
use rauk_types::result::Completion;
use rauk_types::{MysqlError, Partitioning};

const TABLE_IS_PARTITIONED: u16 = 1732;
const TABLE_IS_TEMPORARY: u16 = 1733;
const SUBPARTITION_IS_WANTED: u16 = 1734;

impl Session {
    pub(super) async fn exchange_partition(
        &mut self,
        table: &TableName,
        partition: &str,
        with: &TableName,
        validates: bool,
    ) -> Result<Completion, MysqlError> {
        let mut attempts = self.attempts();
        loop {
            match Box::pin(self.exchange_once(table, partition, with, validates)).await {
                Err(error) if self.is_overtaken(&mut attempts, &error) => {}
                exchanged => return exchanged.map(|()| Completion::default()),
            }
        }
    }

    async fn exchange_once(
        &mut self,
        table: &TableName,
        partition: &str,
        with: &TableName,
        validates: bool,
    ) -> Result<(), MysqlError> {
        let (database, name) = self.qualified(table)?;
        let (with_database, with_name) = self.qualified(with)?;
        let needed = Privileges::ALTER.with(Privileges::DROP).with(Privileges::INSERT).with(Privileges::CREATE);
        for (database, name) in [(&database, &name), (&with_database, &with_name)] {
            system::refuse_change(database, &self.account)?;
            if !self.temporary.has(database, name) {
                self.require_table("ALTER", database, name, needed)?;
            }
        }
        let partitioned = self.base_table(&database, &name)?;
        let other = self.base_table(&with_database, &with_name)?;
        self.commit_implicitly().await?;
        if (&database, &name) == (&with_database, &with_name) {
            let text = format!("Not unique table/alias: '{with_name}'");
            return Err(MysqlError::new(codes::NONUNIQ_TABLE, text));
        }
        let schema = partitioned.schema();
        let partitioning = schema.partitioning.as_ref().ok_or_else(partitions::not_partitioned)?;
        check_other(&other)?;
        let leaf = leaf_named(partitioning, partition, &name)?;
        let wait = self.ddl_wait();
        Ok(self.engine.database.exchange_leaf(&partitioned, leaf, &other, validates, wait).await?)
    }
}

fn check_other(other: &TableHandle) -> Result<(), MysqlError> {
    let name = &other.schema().name;
    if other.schema().partitioning.is_some() {
        let text = format!("Table to exchange with partition is partitioned: '{name}'");
        return Err(MysqlError::new(TABLE_IS_PARTITIONED, text));
    }
    if other.is_temporary() {
        let text = format!("Table to exchange with partition is temporary: '{name}'");
        return Err(MysqlError::new(TABLE_IS_TEMPORARY, text));
    }
    Ok(())
}

fn leaf_named(partitioning: &Partitioning, partition: &str, table: &str) -> Result<usize, MysqlError> {
    let is_divided = |of: &UserPartition| partitioning.sub.is_some() && of.name.eq_ignore_ascii_case(partition);
    match partitioning.named(partition) {
        Some(leaves) if !partitioning.partitions.iter().any(is_divided) => Ok(leaves.start),
        Some(_) => {
            let text = "Subpartitioned table, use subpartition instead of partition";
            Err(MysqlError::new(SUBPARTITION_IS_WANTED, text))
        }
        None => {
            let text = format!("Unknown partition '{partition}' in table '{table}'");
            Err(MysqlError::new(codes::UNKNOWN_PARTITION, text))
        }
    }
}
