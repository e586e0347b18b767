//! Databases and whole tables, and what is of no table, in a cluster.

use super::{Place, Unchanged, describe};
use crate::ddl::TableName;
use crate::ddl::exchange::{Exchange, check_alike, look_for_others};
use crate::ddl::foreign;
use crate::ddl::partitions::{command, with_tables};
use crate::ddl::tables::{has_children, rename_sources, renamed_objects, with_children};
use crate::error::NodeError;
use crate::locks::metadata::DdlWait;
use crate::node::Node;
use crate::table::TableInfo;
use rauk_manage::{CatalogError, Command};
use rauk_types::{TableId, TableSchema};
use std::sync::Arc;

/// Gives how many tables and views it had.
pub async fn drop_database(place: Place<'_>, name: &str, wait: DdlWait<'_>) -> Result<u64, NodeError> {
    let end = place.node.runtime.now() + wait.limit;
    loop {
        let left = end.saturating_sub(place.node.runtime.now());
        let names: Vec<TableName> = {
            let catalog = place.node.catalog.lock();
            let catalog = catalog.catalog();
            if catalog.database(name).is_none() {
                return Err(CatalogError::UnknownDatabase(name.into()).into());
            }
            catalog.tables_of(name).map(|t| (t.database.clone(), t.name.clone())).collect()
        };
        let held =
            match place.lock_by_name(&names, &format!("DROP DATABASE {name}"), DdlWait { limit: left, ..wait }).await {
                // Somebody else dropped or renamed one meanwhile.
                Err(NodeError::NoSuchTable { .. }) if !left.is_zero() => continue,
                Err(NodeError::NoSuchTable { .. }) => return Err(NodeError::LockTimeout),
                held => held?,
            };
        foreign::check_dropped(place.node, &held.tables, wait.foreign_key_checks)?;
        let tables = held.tables.iter().map(|t| t.schema.id).collect();
        let views = place.node.catalog.lock().catalog().views_of(name).count();
        match held.change(Command::DropDatabaseOf { name: name.to_string(), tables }).await {
            Ok(_) => return Ok((held.tables.len() + views) as u64),
            // One was created meanwhile.
            Err(Unchanged::Refused(CatalogError::TablesChanged(_))) if !left.is_zero() => {}
            Err(Unchanged::Refused(CatalogError::TablesChanged(_))) => return Err(NodeError::LockTimeout),
            Err(other) => return Err(other.into()),
        }
    }
}

pub async fn create_table(place: Place<'_>, schema: TableSchema, wait: DdlWait<'_>) -> Result<(), NodeError> {
    let what = describe("CREATE TABLE", &[(schema.database.clone(), schema.name.clone())]);
    let parents = || foreign::parents(place.node, None, &schema);
    let held = place.lock_with(None, parents, what, wait).await?;
    foreign::check_declared(place.node, None, &schema, wait.foreign_key_checks)?;
    let make = |ids: &mut dyn FnMut() -> _| (Command::CreateTables { tables: Node::complete(schema.clone(), ids) }, ());
    place.change_with_ids(held.number(), make).await?;
    Ok(())
}

pub async fn drop_tables(place: Place<'_>, names: &[TableName], wait: DdlWait<'_>) -> Result<(), NodeError> {
    let held = place.lock_by_name(names, &describe("DROP TABLE", names), wait).await?;
    foreign::check_dropped(place.node, &held.tables, wait.foreign_key_checks)?;
    let tables: Vec<TableId> = held.tables.iter().map(|t| t.schema.id).collect();
    held.change(Command::DropTables { tables: tables.clone() }).await?;
    wait.forgets(tables.into_iter());
    Ok(())
}

pub async fn truncate_table(place: Place<'_>, table: TableName, wait: DdlWait<'_>) -> Result<(), NodeError> {
    let names = [table];
    let held = place.lock_by_name(&names, &describe("TRUNCATE TABLE", &names), wait).await?;
    let old = &held.tables[0];
    foreign::check_truncated(place.node, old, wait.foreign_key_checks)?;
    let make = |ids: &mut dyn FnMut() -> _| {
        let create = Node::complete((*old.schema).clone(), ids);
        let new = create[0].id;
        (Command::Switch { job: None, drop: old.family().map(|s| s.id).collect(), create, replace: vec![] }, new)
    };
    let (_, new) = place.change_with_ids(held.number(), make).await?;
    replaced(place, old.schema.id, new, wait);
    Ok(())
}

/// [`crate::Database::change_partitions`].
pub async fn change_partitions(
    place: Place<'_>,
    old: &Arc<TableInfo>,
    new: TableSchema,
    wait: DdlWait<'_>,
) -> Result<(), NodeError> {
    let what = describe("ALTER TABLE", &[(new.database.clone(), new.name.clone())]);
    let held = place.lock_with(Some(old.clone()), Vec::new, what, wait).await?;
    let old = &held.tables[0];
    let make = |ids: &mut dyn FnMut() -> _| (command(&with_tables(old, new.clone(), ids)), ());
    place.change_with_ids(held.number(), make).await?;
    Ok(())
}

/// [`crate::Database::exchange_leaf`].
pub async fn exchange_leaf(
    place: Place<'_>,
    partitioned: &Arc<TableInfo>,
    leaf: usize,
    other: &Arc<TableInfo>,
    validate: bool,
    wait: DdlWait<'_>,
) -> Result<(), NodeError> {
    let name = |table: &TableInfo| (table.schema.database.clone(), table.schema.name.clone());
    let what = describe("ALTER TABLE", &[name(partitioned), name(other)]);
    let held = place.lock(vec![partitioned.clone(), other.clone()], what, wait).await?;
    // A foreign key may have come to refer to it.
    check_alike(partitioned, leaf, other)?;
    if validate {
        wait.unless_killed(look_for_others(place.node, partitioned, leaf, other)).await?;
    }
    let with = other.schema.id;
    if partitioned.schema.auto_increment.is_some() {
        // What processes have in hand for the one may be numbers of rows in the other.
        let given = place.cluster.group().counters.get(&with).copied().unwrap_or(1);
        place.cluster.start_numbers(partitioned.schema.id, given.saturating_sub(1)).await?;
    }
    let exchange = Exchange::of(partitioned, leaf, other);
    let new = exchange.tables[0].id;
    held.change(exchange.command(with)).await?;
    replaced(place, with, new, wait);
    Ok(())
}

pub async fn rename_tables(
    place: Place<'_>,
    pairs: &[(TableName, TableName)],
    wait: DdlWait<'_>,
) -> Result<(), NodeError> {
    let sources = rename_sources(place.node, pairs);
    let held = loop {
        let names = with_children(place.node, &sources);
        let held = place.lock_by_name(&names, &describe("RENAME TABLE", &sources), wait).await?;
        if has_children(place.node, &held.tables, &sources) {
            break held;
        }
    };
    let renamed = renamed_objects(place.node, &held.tables, pairs)?;
    held.change(renamed.command()).await?;
    Ok(())
}

/// Tells the locks of the statement's session that a table has taken the place of another one.
pub(super) fn replaced(place: Place<'_>, old: TableId, new: TableId, wait: DdlWait<'_>) {
    if let Some(new) = place.node.tables.by_id(new) {
        wait.replaces(old, &new);
    }
    wait.forgets(std::iter::once(old));
}

/// A change that is of no table: settings, views.
pub async fn change_catalog(place: Place<'_>, command: Command) -> Result<(), NodeError> {
    place.change(command, None).await?;
    Ok(())
}
