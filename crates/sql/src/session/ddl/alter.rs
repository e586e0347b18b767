//! ALTER TABLE: the table taken apart into drafts, the operations applied, the table built again, and the difference carried out as one change.
//!
//! The operations of one statement happen in this order, whatever the order in which they are written: columns and keys are dropped; columns are
//! redefined and renamed, all at once; columns are added and moved, next to columns by their new names; keys are renamed and added. What
//! is dropped, redefined or renamed is named as it was before the statement, and once.
//!
//! Adding and dropping columns, and everything about indexes but the primary key, copies no row. A change of the primary key, of a column's type or
//! from NULL to NOT NULL rewrites the rows with the conversions of an INSERT in strict mode; a row that does not fit ends the
//! statement and nothing has changed.

use super::checks::{self, CheckDraft};
use super::columns::{self, ColumnDraft, DefaultDraft};
use super::demanded;
use super::drop;
use super::foreign;
use super::keys;
use super::options;
use super::repartition;
use super::rewrite::{is_as_new, is_copy, needs_rewrite};
use super::table::TableDraft;
use crate::bind::own_row;
use crate::expr::{self, Context};
use crate::parse::ast::{PartitionOperation, TableConstraint, TableName};
use crate::parse::statement::{AlterOperation, ColumnPosition, Demands};
use crate::session::session::Session;
use crate::session::users::Privileges;
use crate::session::{charset, errors, system};
use rauk_node::{DdlWait, TableHandle};
use rauk_types::error::codes;
use rauk_types::result::Completion;
use rauk_types::{
    Column, ColumnDefault, ColumnId, DataType, IndexKind, IndexSchema, KeyPart, MysqlError, TableSchema, TypeKind,
    Value,
};
use std::sync::Arc;

/// A table whose definition has been changed, and what is still to be done.
struct Redefined {
    completion: Completion,
    /// As it is called now.
    named: (String, String),
    rename: Option<(String, String)>,
    auto_increment: Option<u64>,
}

impl Session {
    pub(crate) async fn alter_table(
        &mut self,
        table: &TableName,
        operations: &[AlterOperation],
        partitions: Option<&PartitionOperation>,
    ) -> Result<Completion, MysqlError> {
        if let Some(PartitionOperation::Exchange { partition, table: with, validates }) = partitions {
            return self.exchange_partition(table, partition, with, *validates).await;
        }
        let mut attempts = self.attempts();
        let Redefined { completion, named, rename, auto_increment } = loop {
            match Box::pin(self.redefine(table, operations, partitions)).await {
                Err(error) if self.is_overtaken(&mut attempts, &error) => {}
                redefined => break redefined?,
            }
        };
        self.start_auto_increment(&self.stored_table(&named.0, &named.1)?, auto_increment).await?;
        if let Some(to) = rename {
            self.engine.database.rename_tables(&[(named, to)], self.ddl_wait()).await?;
        }
        Ok(completion)
    }

    async fn redefine(
        &mut self,
        table: &TableName,
        operations: &[AlterOperation],
        partitions: Option<&PartitionOperation>,
    ) -> Result<Redefined, MysqlError> {
        let (database, name) = self.qualified(table)?;
        system::refuse_change(&database, &self.account)?;
        let temporary = self.temporary.has(&database, &name);
        if !temporary {
            self.require_table("ALTER", &database, &name, Privileges::ALTER)?;
        }
        let table = self.base_table(&database, &name)?;
        self.commit_implicitly().await?;

        let mut draft = TableDraft::of(table.schema());
        let mut rename = None;
        let mut auto_increment = None;
        let mut altered =
            Altered { schema: table.schema().clone(), changed: vec![], redefined: vec![], renamed: vec![] };
        for operation in operations {
            self.drop_part(&mut draft, operation)?;
        }
        draft.drop_columns_without_key();
        for operation in operations {
            self.redefine_column(&mut draft, &mut altered, operation)?;
        }
        for (number, (column, name)) in altered.renamed.iter().enumerate() {
            let at = draft.columns.iter().position(|c| c.id == Some(*column)).expect("it has been redefined");
            assert_eq!(draft.columns[at].name, placeholder(number), "a renamed column waits for its name");
            rename_column(&mut draft, at, name);
        }
        altered.check_dependents(&mut draft)?;
        if !matches!(partitions, Some(PartitionOperation::By(_) | PartitionOperation::Remove)) {
            repartition::check_columns(&altered.schema, &draft)?;
        }
        for operation in operations {
            self.place_column(&mut draft, operation)?;
        }
        if draft.columns.iter().all(ColumnDraft::is_of_key) {
            return Err(MysqlError::new(
                codes::CANT_REMOVE_ALL_FIELDS,
                "You can't delete all columns with ALTER TABLE; use DROP TABLE instead",
            ));
        }
        let charset = operations.iter().find_map(|operation| match operation {
            AlterOperation::Option { name, value } if name == "CHARSET" => Some(value.as_str()),
            AlterOperation::ConvertTo { charset, .. } => Some(charset.as_str()),
            _ => None,
        });
        let charset = charset.filter(|value| !value.eq_ignore_ascii_case("DEFAULT"));
        for operation in operations {
            match operation {
                AlterOperation::RenameTable(to) => {
                    let to = self.qualified(to)?;
                    super::table::check_table_name(&to.1)?;
                    self.database_collation(&to.0)?;
                    if !temporary {
                        self.require_table("CREATE", &to.0, &to.1, Privileges::CREATE.with(Privileges::INSERT))?;
                        self.require_table("DROP", &database, &name, Privileges::DROP)?;
                    }
                    if to != (database.clone(), name.clone()) {
                        let is_there = match temporary {
                            true => self.temporary.has(&to.0, &to.1),
                            false => self.is_named(&to.0, &to.1),
                        };
                        if is_there {
                            return Err(errors::table_exists(&to.1));
                        }
                        rename = Some(to);
                    }
                }
                AlterOperation::Option { name: option, value } if option == "AUTO_INCREMENT" => {
                    auto_increment = value.parse().ok();
                }
                other => self.apply(&mut draft, &altered, charset, other)?,
            }
        }
        if let Some(operation) = partitions {
            self.change_partitions(&mut draft, operations, operation, temporary)?;
        }
        if temporary && let Some(to) = rename.take() {
            (draft.database, draft.name) = to;
        }
        if let Some(to) = &rename {
            self.checks_may_move(&(database.clone(), name.clone()), to)?;
        }
        let named = (draft.database.clone(), draft.name.clone());
        let mut demands = Demands::default();
        for operation in operations {
            if let AlterOperation::Demand(demand) = operation {
                demands.algorithm = demand.algorithm.or(demands.algorithm);
                demands.lock = demand.lock.or(demands.lock);
            }
        }
        let completion = self.change_table(&table, draft, &demands).await?;
        Ok(Redefined { completion, named, rename, auto_increment })
    }

    /// DROP of a column or key, which must be there before the statement.
    fn drop_part(&mut self, draft: &mut TableDraft, operation: &AlterOperation) -> Result<(), MysqlError> {
        let (name, if_exists) = match operation {
            AlterOperation::DropIndex(name) => return drop::remove_index(&mut draft.indexes, name),
            AlterOperation::DropForeignKey(name) => {
                if foreign::remove(draft, name) {
                    return Ok(());
                }
                return Err(drop::missing(name));
            }
            AlterOperation::DropConstraint(name) => return drop_constraint(draft, name),
            AlterOperation::DropPrimaryKey => return drop::remove_index(&mut draft.indexes, "PRIMARY"),
            AlterOperation::DropCheck(name) => return checks::remove(draft, name),
            AlterOperation::DropColumn { name, if_exists } => (name, *if_exists),
            _ => return Ok(()),
        };
        let Some(at) = draft.column(name) else {
            if if_exists {
                let error = drop::missing(name);
                self.note(error.code, error.message);
                return Ok(());
            }
            return Err(drop::missing(name));
        };
        let name = draft.columns.remove(at).name;
        for index in &mut draft.indexes {
            index.parts.retain(|p| !p.column.eq_ignore_ascii_case(&name));
        }
        draft.indexes.retain(|i| !i.parts.is_empty());
        let distributes = draft.distribution.iter().flatten().any(|n| n.eq_ignore_ascii_case(&name));
        if distributes {
            return Err(repartition::dependent(&name));
        }
        Ok(())
    }

    /// MODIFY, CHANGE, RENAME COLUMN and SET DEFAULT. The column keeps its id. A new name comes later, when all are known: names may be exchanged.
    fn redefine_column(
        &mut self,
        draft: &mut TableDraft,
        altered: &mut Altered,
        operation: &AlterOperation,
    ) -> Result<(), MysqlError> {
        let (old, definition) = match operation {
            AlterOperation::ModifyColumn { column, .. } => (&column.name, Some(column)),
            AlterOperation::ChangeColumn { old, column, .. } => (old, Some(column)),
            AlterOperation::RenameColumn { old, .. } => (old, None),
            AlterOperation::SetDefault { column, .. } | AlterOperation::SetVisible { column, .. } => (column, None),
            _ => return Ok(()),
        };
        let at = altered.find(draft, old)?;
        let column = draft.columns[at].id.expect("a column of the table");
        if let AlterOperation::SetVisible { invisible, .. } = operation {
            draft.columns[at].invisible = *invisible;
            return Ok(());
        }
        if let AlterOperation::SetDefault { value, .. } = operation {
            draft.columns[at].default = match value {
                Some(value) => columns::default_value(value, &draft.columns[at], &mut self.context)?,
                // DROP DEFAULT of a nullable column leaves none at all in MySQL; here it leaves NULL.
                None => DefaultDraft::NotGiven,
            };
            return Ok(());
        }
        altered.changed.push(column);
        let new = match definition {
            Some(definition) => {
                altered.redefined.push(column);
                draft.checks.extend(checks::of_column(definition));
                Some(columns::draft(definition, draft.collation, &mut self.context)?)
            }
            None => None,
        };
        let name = match (operation, &new) {
            (AlterOperation::RenameColumn { new, .. }, _) => {
                super::check_identifier(new)?;
                new.clone()
            }
            (_, Some(new)) => new.name.clone(),
            _ => return Ok(()),
        };
        let held = placeholder(altered.renamed.len());
        rename_column(draft, at, &held);
        altered.renamed.push((column, name));
        let Some(mut new) = new else { return Ok(()) };
        new.id = Some(column);
        new.initial = draft.columns[at].initial.clone();
        new.name = held;
        // A prefix that is not shorter than the column any more is no prefix.
        if !new.ty.is_lob() && (new.ty.is_text() || new.ty.is_bytes()) {
            for part in draft.indexes.iter_mut().flat_map(|i| &mut i.parts) {
                if part.column == new.name && part.prefix.is_some_and(|p| p >= u64::from(new.ty.length)) {
                    part.prefix = None;
                }
            }
        }
        draft.columns[at] = new;
        Ok(())
    }

    /// ADD COLUMN, and MODIFY or CHANGE with a place.
    fn place_column(&mut self, draft: &mut TableDraft, operation: &AlterOperation) -> Result<(), MysqlError> {
        let table = draft.name.clone();
        let unknown =
            |column: &str| MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{column}' in '{table}'"));
        match operation {
            AlterOperation::AddColumn { column, position, if_not_exists } => {
                if *if_not_exists && draft.column(&column.name).is_some() {
                    let message = format!("Duplicate column name '{}'", column.name);
                    self.note(codes::DUP_FIELDNAME, message);
                    return Ok(());
                }
                let new = columns::draft(column, draft.collation, &mut self.context)?;
                draft.checks.extend(checks::of_column(column));
                self.add_inline_keys(draft, column)?;
                insert_at(draft, new, position, draft.columns.len(), &unknown)
            }
            AlterOperation::ModifyColumn { column, position }
            | AlterOperation::ChangeColumn { column, position, .. }
                if *position != ColumnPosition::Last =>
            {
                let at = draft.column(&column.name).ok_or_else(|| unknown(&column.name))?;
                let moved = draft.columns.remove(at);
                insert_at(draft, moved, position, at, &unknown)
            }
            _ => Ok(()),
        }
    }

    /// Everything about keys and options. `charset`: what the statement says of the table's character set.
    fn apply(
        &mut self,
        draft: &mut TableDraft,
        altered: &Altered,
        charset: Option<&str>,
        operation: &AlterOperation,
    ) -> Result<(), MysqlError> {
        let table = draft.name.clone();
        match operation {
            AlterOperation::AddConstraint(TableConstraint::Check(check)) => {
                draft.checks.push(CheckDraft::new(check, None));
                Ok(())
            }
            AlterOperation::AlterIndex { name, invisible } => {
                let found = draft.indexes.iter_mut().find(|i| match i.kind {
                    IndexKind::Primary => name.eq_ignore_ascii_case("PRIMARY"),
                    _ => i.name.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(name)),
                });
                let index = found.ok_or_else(|| {
                    MysqlError::new(codes::KEY_DOES_NOT_EXITS, format!("Key '{name}' doesn't exist in table '{table}'"))
                })?;
                index.invisible = *invisible;
                Ok(())
            }
            AlterOperation::AlterCheck { name, enforced, constraint } => {
                checks::enforce(draft, name, *enforced, *constraint)
            }
            AlterOperation::AddConstraint(constraint) => {
                if !self.add_if_foreign(draft, constraint)? {
                    let index = keys::draft(constraint, &mut draft.columns)?;
                    foreign::give_way(draft, &index);
                    draft.indexes.push(index);
                    self.note_if_not_hashed(constraint);
                }
                Ok(())
            }
            AlterOperation::RenameIndex { old, new } => {
                let missing = || {
                    MysqlError::new(codes::KEY_DOES_NOT_EXITS, format!("Key '{old}' doesn't exist in table '{table}'"))
                };
                let before = altered.schema.indexes.iter();
                let mut before = before.filter(|i| i.kind != IndexKind::Primary && i.name.eq_ignore_ascii_case(old));
                let id = before.next().ok_or_else(missing)?.id;
                let index = draft.indexes.iter_mut().find(|i| i.id == Some(id)).ok_or_else(missing)?;
                index.name = Some(new.clone());
                Ok(())
            }
            AlterOperation::ConvertTo { charset: of, collation } => {
                let mut converted = charset::resolve(Some(of), None, draft.collation)?;
                if let Some(collation) = collation {
                    converted = charset::resolve(charset, Some(collation), converted)?;
                }
                draft.collation = converted;
                for column in draft
                    .columns
                    .iter_mut()
                    .filter(|c| c.ty.is_text() && c.ty.kind != TypeKind::Json || c.ty.has_members())
                {
                    column.ty = super::types::converted(column.ty, converted, &column.name)?;
                    super::types::check_members(&column.ty, &column.name)?;
                }
                Ok(())
            }
            AlterOperation::Option { name, value } => {
                let mut given = vec![(name.clone(), value.clone())];
                if let (Some(charset), "COLLATE") = (charset, name.as_str()) {
                    given.push(("CHARSET".to_string(), charset.to_string()));
                }
                let options = options::read(&given, &draft.name, &mut self.context)?;
                draft.collation = options.collation.unwrap_or(draft.collation);
                if options.fully_replicated.is_some_and(|wanted| wanted != draft.fully_replicated) {
                    return Err(errors::not_supported(
                        "ALTER TABLE … FULLY_REPLICATED; make a new table and copy the rows",
                    ));
                }
                if let Some(comment) = options.comment {
                    draft.comment = comment;
                }
                options::merge(&mut draft.storage, &options.storage);
                Ok(())
            }
            AlterOperation::Force => {
                draft.writes_again = true;
                Ok(())
            }
            AlterOperation::Nothing | AlterOperation::Demand(_) => Ok(()),
            AlterOperation::RenameTable(_) => unreachable!("the caller keeps renames for the end"),
            // Done before.
            AlterOperation::AddColumn { .. }
            | AlterOperation::DropColumn { .. }
            | AlterOperation::ModifyColumn { .. }
            | AlterOperation::ChangeColumn { .. }
            | AlterOperation::RenameColumn { .. }
            | AlterOperation::SetDefault { .. }
            | AlterOperation::SetVisible { .. }
            | AlterOperation::DropIndex(_)
            | AlterOperation::DropCheck(_)
            | AlterOperation::DropForeignKey(_)
            | AlterOperation::DropConstraint(_)
            | AlterOperation::DropPrimaryKey => Ok(()),
        }
    }

    /// Error 1832: where NULLs of a foreign key's column would become values that no parent has. In strict mode they are an error themselves.
    fn check_foreign_nulls(&self, old: &TableSchema, new: &TableSchema) -> Result<(), MysqlError> {
        if self.settings.sql_mode.strict || !self.settings.foreign_key_checks {
            return Ok(());
        }
        for foreign in &old.foreign_keys {
            let columns = foreign.columns.iter().filter_map(|&id| old.columns.iter().find(|column| column.id == id));
            for column in columns.filter(|column| column.nullable) {
                if new.columns.iter().any(|after| after.id == column.id && !after.nullable) {
                    let (column, name) = (&column.name, &foreign.name);
                    let text = format!("Cannot change column '{column}': used in a foreign key constraint '{name}'");
                    return Err(MysqlError::new(codes::FK_COLUMN_CANNOT_CHANGE, text));
                }
            }
        }
        Ok(())
    }

    /// Makes a table what the draft says. Error 1412: another statement has changed the table since it was looked at, and
    /// nothing was done.
    pub(crate) async fn change_table(
        &mut self,
        table: &TableHandle,
        draft: TableDraft,
        demands: &Demands,
    ) -> Result<Completion, MysqlError> {
        let old = table.schema().clone();
        let hidden = old.hidden_key.then(|| old.columns[old.columns.len() - 1].id);
        let writes_again = draft.writes_again && !is_as_new(&old);
        let writes_again = writes_again || repartition::repartitions(&old, &draft);
        let moves_rows = draft.partitions.as_ref().is_some_and(|partitions| partitions.moves_rows);
        let mut new = match table.is_temporary() {
            true => self.temporary_schema(draft, hidden)?,
            false => draft.build(hidden)?,
        };
        self.check_primary_key(&new)?;
        if old.partitioning.is_none() {
            self.check_not_referred_to(&new)?;
        }
        self.check_foreign_nulls(&old, &new)?;
        self.warn_of_duplicate_indexes(&new, |index| old.index(index.id).is_none());
        if !table.is_temporary() {
            self.check_names_are_free(&new, Some(old.id))?;
        }
        check_storage(&old, &new)?;
        new.id = old.id;
        new.version = old.version;
        new.layouts = old.layouts.clone();
        for column in &mut new.columns {
            if old.columns.iter().all(|c| c.id != column.id) {
                column.initial = initial_value(column, &mut self.context)?;
            }
        }
        renumber_changed_indexes(&old, &mut new);
        let checks = self.settings.foreign_key_checks;
        demanded::check(&old, &new, demands, writes_again || moves_rows, table.is_temporary(), checks)?;
        let info = "Records: 0  Duplicates: 0  Warnings: 0".to_string();
        let keeps_rows = !writes_again && !needs_rewrite(&old, &new);
        if keeps_rows && old.partitioning.is_some() && same_indexes(&old, &new) {
            match moves_rows {
                true => {
                    let wait = DdlWait { meanwhile: demanded::meanwhile(demands), ..self.ddl_wait() };
                    self.engine.database.reorganize_leaves(table, new, wait).await?;
                }
                false => self.engine.database.change_partitions(table, new, self.ddl_wait()).await?,
            }
            return Ok(Completion { info, ..Completion::default() });
        }
        // Indexes of a partitioned table are made with its rows.
        if !table.is_temporary() && keeps_rows && old.partitioning.is_none() {
            let wait = DdlWait { meanwhile: demanded::meanwhile(demands), ..self.ddl_wait() };
            self.engine.database.alter_table(table, new, wait).await?;
            return Ok(Completion { info, ..Completion::default() });
        }
        let same = TableSchema { database: old.database.clone(), name: old.name.clone(), ..new.clone() };
        let renamed = table.is_temporary() && same == *old;
        let copies = !renamed && (table.is_temporary() || is_copy(&old, &new));
        let rows = self.rewrite_table(table, &old, new, demanded::meanwhile(demands)).await?;
        // MySQL counts rows when it copies them to a new table, and not when it rebuilds one in place.
        let counted = if copies { rows } else { 0 };
        let info = format!("Records: {counted}  Duplicates: 0  Warnings: 0");
        Ok(Completion { affected_rows: counted, info, ..Completion::default() })
    }
}

/// What an ALTER TABLE has done so far to the columns that were there before.
struct Altered {
    /// The table before the statement.
    schema: Arc<TableSchema>,
    /// Columns that MODIFY, CHANGE or RENAME COLUMN has taken.
    changed: Vec<ColumnId>,
    /// Those among them that have a new definition.
    redefined: Vec<ColumnId>,
    /// Their new names; meanwhile each is called by its [`placeholder`].
    renamed: Vec<(ColumnId, String)>,
}

impl Altered {
    /// Where a column stands in the draft that was called so before the statement; error 1054 when it has been dropped or changed.
    fn find(&self, draft: &TableDraft, name: &str) -> Result<usize, MysqlError> {
        let before = self.schema.visible_columns().iter().find(|c| c.name.eq_ignore_ascii_case(name)).map(|c| c.id);
        before
            .filter(|id| !self.changed.contains(id))
            .and_then(|id| draft.columns.iter().position(|c| c.id == Some(id)))
            .ok_or_else(|| {
                MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{name}' in '{}'", self.schema.name))
            })
    }
}

impl Altered {
    /// What reads columns that were dropped or renamed: CHECKs of a dropped column alone go with it, everything else is in the way. Errors 3108, 3755, 3766, 3837,
    /// 3959.
    fn check_dependents(&self, draft: &mut TableDraft) -> Result<(), MysqlError> {
        let schema = &self.schema;
        let dropped = |at: usize| !draft.columns.iter().any(|c| c.id == Some(schema.columns[at].id));
        let renamed = |at: usize| {
            let column = &schema.columns[at];
            self.renamed.iter().any(|(id, name)| *id == column.id && !name.eq_ignore_ascii_case(&column.name))
        };
        let moved: Vec<usize> = (0..schema.visible_columns().len()).filter(|&at| dropped(at) || renamed(at)).collect();
        for at in 0..schema.columns.len() - usize::from(schema.hidden_key) {
            let dependent = &schema.columns[at];
            let redefined = self.redefined.contains(&dependent.id);
            let read = if dropped(at) || redefined { vec![] } else { own_row::read_by_column(schema, at) };
            let Some(&column) = read.iter().find(|read| moved.contains(read)) else { continue };
            let name = &schema.columns[column].name;
            return Err(match dependent.generated {
                Some(_) if dependent.is_of_key() && dropped(column) => MysqlError::new(
                    3755,
                    format!(
                        "Cannot drop column '{name}' because it is used by a functional index. In order to drop the column, you must remove the functional index."
                    ),
                ),
                Some(_) if dependent.is_of_key() => MysqlError::new(
                    3837,
                    format!("Column '{name}' has a functional index dependency and cannot be dropped or renamed."),
                ),
                Some(_) => MysqlError::new(3108, format!("Column '{name}' has a generated column dependency.")),
                None => MysqlError::new(
                    3766,
                    format!(
                        "Column '{name}' of table '{}' has a default value expression dependency and cannot be dropped or renamed.",
                        schema.name
                    ),
                ),
            });
        }
        if moved.is_empty() || schema.checks.is_empty() && !schema.has_row_rules() {
            return Ok(());
        }
        let mut gone = Vec::new();
        for check in &schema.checks {
            let kept = draft.checks.iter().any(|c| c.name.as_ref() == Some(&check.name));
            let read = own_row::read_by_check(schema, check);
            let Some(&at) = read.iter().find(|at| kept && moved.contains(at)) else { continue };
            if read.len() > 1 || !dropped(at) {
                return Err(checks::dependent(&check.name, &schema.columns[at].name));
            }
            gone.push(check.name.clone());
        }
        draft.checks.retain(|check| !check.name.as_ref().is_some_and(|name| gone.contains(name)));
        Ok(())
    }
}

/// The name of a column between its old and its new one, which no column can have.
fn placeholder(number: usize) -> String {
    format!("\0{number}")
}

fn insert_at(
    draft: &mut TableDraft,
    column: ColumnDraft,
    position: &ColumnPosition,
    last: usize,
    unknown: &dyn Fn(&str) -> MysqlError,
) -> Result<(), MysqlError> {
    let at = match position {
        ColumnPosition::Last => last,
        ColumnPosition::First => 0,
        ColumnPosition::After(name) => draft.column(name).ok_or_else(|| unknown(name))? + 1,
    };
    draft.columns.insert(at, column);
    Ok(())
}

/// Keys and distribution follow the new name.
fn rename_column(draft: &mut TableDraft, at: usize, new: &str) {
    let old = std::mem::replace(&mut draft.columns[at].name, new.to_string());
    let parts = draft.indexes.iter_mut().flat_map(|i| &mut i.parts).map(|p| &mut p.column);
    for name in parts.chain(draft.distribution.iter_mut().flatten()) {
        if name.eq_ignore_ascii_case(&old) {
            *name = new.to_string();
        }
    }
    foreign::rename_column(draft, &old, new);
}

/// DROP CONSTRAINT: a foreign key, or what [`checks::remove_constraint`] finds.
fn drop_constraint(draft: &mut TableDraft, name: &str) -> Result<(), MysqlError> {
    let mut without = draft.clone();
    match (foreign::remove(&mut without, name), checks::remove_constraint(&mut draft.clone(), name).is_ok()) {
        (true, true) => Err(checks::several(name)),
        (true, false) => {
            *draft = without;
            Ok(())
        }
        (false, _) => checks::remove_constraint(draft, name),
    }
}

/// Error 3106: MySQL makes no VIRTUAL column of a column that is stored, nor the other way.
fn check_storage(old: &TableSchema, new: &TableSchema) -> Result<(), MysqlError> {
    for column in &new.columns {
        let Some(before) = old.columns.iter().find(|c| c.id == column.id) else { continue };
        let is_stored = |column: &Column| column.generated.as_ref().is_none_or(|generated| generated.stored);
        if is_stored(before) != is_stored(column) {
            return Err(own_row::unsupported("Changing the STORED status"));
        }
    }
    Ok(())
}

/// What rows written before the column was there have in it.
fn initial_value(column: &Column, context: &mut Context) -> Result<Value, MysqlError> {
    if column.generated.is_some() {
        return Ok(Value::Null);
    }
    match &column.default {
        ColumnDefault::Value(value) => Ok(value.clone()),
        ColumnDefault::None if column.name == rauk_types::schema::HIDDEN_KEY_COLUMN => Ok(Value::Null),
        ColumnDefault::None => columns::implicit_value(column, context),
        // The table is written again, where it is computed for each row.
        ColumnDefault::Expression(_) => Ok(Value::Null),
        ColumnDefault::Now => {
            let ty = DataType { scale: 6, ..DataType::new(TypeKind::Timestamp) };
            expr::convert_for_column(Value::Timestamp(context.now_micros), &ty, column, 1, context)
        }
    }
}

/// A key part without its position, which moves when columns do, and without a length that does not show in the key.
pub(super) fn key_parts(schema: &TableSchema, index: &rauk_types::IndexSchema) -> Vec<(rauk_types::ColumnId, KeyPart)> {
    let bare = |part: KeyPart| {
        let variable = matches!(part.ty.kind, TypeKind::VarChar | TypeKind::VarBinary | TypeKind::Char);
        let length = match part.ty {
            // Index tables store it as wide as rows do.
            ty if ty.is_plain_number() => ty.row_bytes() as u32,
            ty if variable || ty.is_integer() => 0,
            ty => ty.length,
        };
        // Nor do members that are added, or zeros before a number.
        KeyPart { column: 0, ty: DataType { length, members: None, zerofill: false, ..part.ty }, ..part }
    };
    schema.key_def(index).parts.into_iter().map(|p| (schema.columns[p.column].id, bare(p))).collect()
}

/// An index whose keys are encoded in another way than before is another index.
fn renumber_changed_indexes(old: &TableSchema, new: &mut TableSchema) {
    let mut next = old.indexes.iter().chain(&new.indexes).map(|i| i.id.0 + 1).max().unwrap_or(1);
    let changed: Vec<bool> = new
        .indexes
        .iter()
        .map(|index| match old.index(index.id) {
            Some(before) if index.kind != IndexKind::Primary => {
                key_parts(old, before) != key_parts(new, index)
                    || before.hash_only != index.hash_only
                    || before.kind != index.kind
            }
            _ => false,
        })
        .collect();
    for (index, changed) in new.indexes.iter_mut().zip(changed) {
        if changed {
            let id = rauk_types::IndexId(next);
            new.storage.indexes.iter_mut().filter(|(of, _)| *of == index.id).for_each(|(of, _)| *of = id);
            index.id = id;
            index.entry_table = None;
            next += 1;
        }
    }
}

/// Whether partitions have the same entries for both.
fn same_indexes(old: &TableSchema, new: &TableSchema) -> bool {
    let kept = |(a, b): (&IndexSchema, &IndexSchema)| {
        a.id == b.id
            && (a.kind, a.global, a.has_entries()) == (b.kind, b.global, b.has_entries())
            && key_parts(old, a) == key_parts(new, b)
    };
    old.indexes.len() == new.indexes.len() && old.indexes.iter().zip(&new.indexes).all(kept)
}
