//! A whole table from drafts, and back to drafts.
//!
//! [`TableDraft::build`] checks what concerns the table as a whole: 1060, 1075, 1103, 1113, 1117, 1118, 1488, 1503, 1506.

use super::checks::CheckDraft;
use super::columns::{self, ColumnDraft, DefaultDraft};
use super::foreign::{self, ForeignKeyDraft};
use super::keys::{self, IndexDraft, PartDraft};
use super::options;
use super::partitions::{self, PartitionsDraft};
use crate::bind::own_row;
use crate::expr::Context;
use crate::parse::ast::{PartitionClause, PartitionOn};
use rauk_types::error::codes;
use rauk_types::partitioning::{self, PartitionMethod};
use rauk_types::schema::{HIDDEN_KEY_COLUMN, MAX_COLUMNS, MAX_ROW_BYTES};
use rauk_types::{
    Collation, ColumnDefault, ColumnId, DataType, IndexId, IndexKind, IndexPart, IndexSchema, MysqlError,
    StorageClauses, TableId, TableSchema,
};
use std::sync::Arc;

/// A table on its way to a [`TableSchema`].
#[derive(Clone, Debug)]
pub struct TableDraft {
    pub database: String,
    pub name: String,
    pub columns: Vec<ColumnDraft>,
    pub indexes: Vec<IndexDraft>,
    pub checks: Vec<CheckDraft>,
    pub foreign_keys: Vec<ForeignKeyDraft>,
    /// What a user has divided it into.
    pub partitions: Option<PartitionsDraft>,
    /// Columns of PARTITION BY KEY that says nothing of partitions; `None`: the primary key.
    pub distribution: Option<Vec<String>>,
    pub fully_replicated: bool,
    pub collation: Collation,
    pub comment: String,
    /// [`StorageClauses::options`].
    pub storage: Vec<(String, String)>,
    /// Ids from here on were never used by this table.
    pub next_column_id: u16,
    pub next_index_id: u16,
    /// ALTER TABLE … FORCE.
    pub writes_again: bool,
}

impl TableDraft {
    pub fn new(database: &str, name: &str, collation: Collation) -> TableDraft {
        TableDraft {
            database: database.to_string(),
            name: name.to_string(),
            columns: Vec::new(),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            partitions: None,
            distribution: None,
            fully_replicated: false,
            collation,
            comment: String::new(),
            storage: Vec::new(),
            next_column_id: 0,
            next_index_id: 1,
            writes_again: false,
        }
    }

    /// The drafts that would make this table; its hidden key is left out.
    pub fn of(schema: &TableSchema) -> TableDraft {
        let declared = &schema.columns[..schema.columns.len() - usize::from(schema.hidden_key)];
        let name = |at: usize| match &schema.columns[at] {
            column if column.is_of_key() => keys::name_of_expression(at),
            column => column.name.clone(),
        };
        let columns = declared.iter().enumerate().map(|(at, column)| ColumnDraft {
            id: Some(column.id),
            name: name(at),
            ty: column.ty,
            // A column that may be NULL becomes NOT NULL when a primary key takes it, as if nothing had been said.
            nullable: (!column.nullable).then_some(false),
            default: match &column.default {
                ColumnDefault::None => DefaultDraft::NotGiven,
                ColumnDefault::Value(value) => DefaultDraft::Value(value.clone()),
                ColumnDefault::Now => DefaultDraft::Now,
                ColumnDefault::Expression(text) => DefaultDraft::Expression(text.clone()),
            },
            on_update_now: column.on_update_now,
            auto_increment: schema.auto_increment == Some(at),
            comment: column.comment.clone(),
            initial: Some(column.initial.clone()),
            key: None,
            generated: column.generated.clone(),
            elements: None,
            invisible: column.invisible,
            storage: schema.storage.of_column(column.id).to_string(),
        });
        let shown = schema.indexes.iter().filter(|i| !(schema.hidden_key && i.kind == IndexKind::Primary));
        let indexes = shown.map(|index| IndexDraft {
            id: Some(index.id),
            entry_table: index.entry_table,
            name: Some(index.name.clone()),
            kind: index.kind,
            parts: index
                .parts
                .iter()
                .map(|p| PartDraft {
                    column: name(p.column),
                    prefix: p.prefix.map(u64::from),
                    descending: p.descending,
                })
                .collect(),
            hash_only: index.hash_only,
            comment: index.comment.clone(),
            invisible: index.invisible,
            global: index.global,
            storage: schema.storage.of_index(index.id).to_string(),
        });
        let distribution = schema
            .explicit_partitioning
            .then(|| schema.distribution.iter().map(|&at| schema.columns[at].name.clone()).collect());
        let used_columns = schema.layouts.iter().flat_map(|l| l.columns.iter().map(|(id, _, _)| id.0));
        let used_columns = used_columns.chain(schema.columns.iter().map(|c| c.id.0));
        TableDraft {
            database: schema.database.clone(),
            name: schema.name.clone(),
            columns: columns.collect(),
            indexes: indexes.collect(),
            checks: schema.checks.iter().map(CheckDraft::of).collect(),
            foreign_keys: foreign::of(schema),
            partitions: PartitionsDraft::of(schema),
            distribution,
            fully_replicated: schema.fully_replicated,
            collation: schema.collation,
            comment: schema.comment.clone(),
            storage: schema.storage.options.clone(),
            next_column_id: used_columns.max().map_or(0, |id| id + 1),
            next_index_id: schema.indexes.iter().map(|i| i.id.0 + 1).max().unwrap_or(1),
            writes_again: false,
        }
    }

    /// The columns of keys' expressions go with their keys.
    pub fn drop_columns_without_key(&mut self) {
        let indexes = &self.indexes;
        let is_part = |name: &str| indexes.iter().any(|index| index.parts.iter().any(|part| part.column == name));
        self.columns.retain(|column| !column.is_of_key() || is_part(&column.name));
    }

    /// Puts the columns of keys' expressions behind all others, and finds their types.
    fn settle_key_columns(&mut self) -> Result<(), MysqlError> {
        self.drop_columns_without_key();
        // A stable sort: the others keep their order.
        self.columns.sort_by_key(ColumnDraft::is_of_key);
        let own = self.columns.iter().take_while(|column| !column.is_of_key()).count();
        if own == 0 || own == self.columns.len() {
            return Ok(());
        }
        let finished = |draft: &ColumnDraft| columns::finish(draft, draft.nullable != Some(false), None);
        let row = self.columns[..own].iter().map(finished).collect();
        let key = vec![IndexSchema::primary(&[0])];
        let mut row = TableSchema::new(TableId(0), self.database.as_str(), self.name.as_str(), row, key);
        row.auto_increment = self.columns.iter().position(|column| column.auto_increment);
        for column in &mut self.columns[own..] {
            let index = self.indexes.iter().find(|index| index.parts.iter().any(|part| part.column == column.name));
            let index = index.and_then(|index| index.name.as_deref()).unwrap_or(keys::UNNAMED_EXPRESSION);
            let generated = column.generated.as_mut().expect("it holds an expression");
            let key = own_row::settled_key(&row, index, &generated.expression)?;
            generated.expression = key.text;
            column.ty = super::types::of_any_integer(super::types::of_expression(key.ty));
            column.elements = key.elements;
        }
        Ok(())
    }

    /// The position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// PARTITION BY. `engine`: what the statement says of the table's.
    pub fn partition_by(
        &mut self,
        clause: &PartitionClause,
        engine: Option<&str>,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        self.remove_partitioning();
        match (&clause.by.method, &clause.by.on) {
            (PartitionMethod::Key { linear, algorithm }, PartitionOn::Columns(columns))
                if clause.count.is_none()
                    && clause.sub.is_none()
                    && clause.definitions.is_empty()
                    && clause.interval.is_none() =>
            {
                self.distribution = Some(columns.clone());
                options::declare_distribution(&mut self.storage, *linear, *algorithm);
            }
            _ => self.partitions = Some(PartitionsDraft::written(clause, engine, context)?),
        }
        Ok(())
    }

    pub fn is_partitioned(&self) -> bool {
        self.partitions.is_some() || self.distribution.is_some()
    }

    /// Rows are told apart, and spread, by the primary key alone.
    pub fn remove_partitioning(&mut self) {
        self.partitions = None;
        self.distribution = None;
        options::forget_distribution(&mut self.storage);
    }

    /// The schema, without what the node fills in (table id, version, layouts, index tables). `hidden` is the id of the hidden key that the table
    /// has already.
    pub fn build(mut self, hidden: Option<ColumnId>) -> Result<TableSchema, MysqlError> {
        check_table_name(&self.name)?;
        if self.columns.iter().all(ColumnDraft::is_of_key) {
            return Err(MysqlError::new(codes::TABLE_MUST_HAVE_COLUMNS, "A table must have at least 1 column"));
        }
        if self.columns.len() > MAX_COLUMNS {
            return Err(MysqlError::new(codes::TOO_MANY_FIELDS, "Too many columns"));
        }
        for (at, column) in self.columns.iter().enumerate() {
            if self.columns[..at].iter().any(|c| c.name.eq_ignore_ascii_case(&column.name)) {
                let message = format!("Duplicate column name '{}'", column.name);
                return Err(MysqlError::new(codes::DUP_FIELDNAME, message));
            }
        }
        if self.columns.iter().all(|column| column.invisible || column.is_of_key()) {
            return Err(MysqlError::new(4028, "A table must have at least one visible column."));
        }
        self.settle_key_columns()?;
        foreign::with_indexes(&mut self)?;
        let inline = self.columns.iter().filter_map(|c| {
            let kind = match c.key? {
                columns::InlineKey::Primary => IndexKind::Primary,
                columns::InlineKey::Unique => IndexKind::Unique,
            };
            Some(IndexDraft::on_column(kind, &c.name))
        });
        let mut drafts: Vec<IndexDraft> = inline.collect();
        drafts.append(&mut self.indexes);
        for column in self.columns.iter_mut().filter(|c| c.auto_increment) {
            if column.nullable != Some(false) {
                column.nullable = Some(false);
                column.default = DefaultDraft::NotGiven;
            }
        }
        let (mut indexes, of_indexes) = keys::build(drafts, &mut self.columns, self.next_index_id)?;
        let mut storage = StorageClauses { options: self.storage.clone(), columns: Vec::new(), indexes: of_indexes };
        let auto_increment = self.auto_increment(&indexes)?;
        self.check_row_size()?;

        let mut next_id = self.next_column_id;
        let mut new_id = || {
            next_id += 1;
            ColumnId(next_id - 1)
        };
        let mut columns: Vec<rauk_types::Column> = Vec::with_capacity(self.columns.len() + 1);
        for draft in &self.columns {
            let id = draft.id.unwrap_or_else(&mut new_id);
            let mut column = columns::finish(draft, draft.nullable != Some(false), Some(id));
            if let Some(generated) = column.generated.as_ref().filter(|generated| generated.of_key) {
                column.name = generated.expression.clone();
            }
            if !draft.storage.is_empty() {
                storage.columns.push((id, draft.storage.clone()));
            }
            columns.push(column);
        }
        let hidden_key = indexes.first().is_none_or(|i| i.kind != IndexKind::Primary);
        if hidden_key {
            columns.push(rauk_types::Column {
                id: hidden.unwrap_or_else(&mut new_id),
                name: HIDDEN_KEY_COLUMN.to_string(),
                ty: DataType::BIGINT_UNSIGNED,
                nullable: false,
                default: ColumnDefault::None,
                on_update_now: false,
                comment: String::new(),
                initial: rauk_types::Value::Null,
                generated: None,
                invisible: false,
            });
            let part = IndexPart { column: columns.len() - 1, prefix: None, descending: false };
            indexes.insert(
                0,
                IndexSchema {
                    id: IndexId::PRIMARY,
                    name: "PRIMARY".to_string(),
                    kind: IndexKind::Primary,
                    parts: vec![part],
                    hash_only: true,
                    entry_table: None,
                    comment: String::new(),
                    invisible: false,
                    global: false,
                },
            );
        }
        let foreign_keys = foreign::finish(&self.foreign_keys, &self.name, &columns)?;
        let partitions = self.partitions.take();
        let explicit_partitioning = self.distribution.is_some();
        let distribution = self.distribute(&indexes[0], hidden_key)?;
        let (checks, beside) = super::checks::name_all(&self.name, self.checks)?;
        let mut schema = TableSchema {
            id: TableId(0),
            version: 0,
            database: self.database,
            name: self.name,
            columns: columns.into(),
            indexes: indexes.into(),
            distribution,
            hidden_key,
            auto_increment,
            collation: self.collation,
            comment: self.comment,
            explicit_partitioning,
            fully_replicated: self.fully_replicated,
            checks,
            entry_of: None,
            foreign_keys,
            storage,
            partitioning: None,
            leaf_of: None,
            leaf_tables: Default::default(),
            layouts: Vec::new(),
        };
        own_row::settle(&mut schema, &beside)?;
        foreign::check_actions(&schema)?;
        match &partitions {
            Some(draft) => partition(&mut schema, draft)?,
            None if schema.indexes.iter().any(|index| index.global) => return Err(partitions::not_partitioned()),
            None => {}
        }
        Ok(schema)
    }

    fn auto_increment(&self, indexes: &[IndexSchema]) -> Result<Option<usize>, MysqlError> {
        let mut found = self.columns.iter().enumerate().filter(|(_, c)| c.auto_increment).map(|(at, _)| at);
        let Some(at) = found.next() else { return Ok(None) };
        let is_key = indexes.iter().any(|i| i.parts[0].column == at);
        if found.next().is_some() || !is_key {
            return Err(MysqlError::new(
                codes::WRONG_AUTO_KEY,
                "Incorrect table definition; there can be only one auto column and it must be defined as a key",
            ));
        }
        Ok(Some(at))
    }

    fn check_row_size(&self) -> Result<(), MysqlError> {
        let nullable = self.columns.iter().filter(|c| c.nullable != Some(false)).count() as u64;
        let bytes: u64 = self.columns.iter().map(|c| c.ty.row_bytes()).sum();
        if bytes + nullable.div_ceil(8) > MAX_ROW_BYTES as u64 {
            return Err(MysqlError::new(
                codes::TOO_BIG_ROWSIZE,
                format!(
                    "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {MAX_ROW_BYTES}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs"
                ),
            ));
        }
        Ok(())
    }

    /// Positions of the distribution columns: those of PARTITION BY KEY, else the primary key's whole columns. A key of prefixes only distributes by
    /// these: rows that are equal in the prefix meet in one partition.
    fn distribute(&self, primary: &IndexSchema, hidden_key: bool) -> Result<Vec<usize>, MysqlError> {
        let whole: Vec<usize> = primary.parts.iter().filter(|p| p.prefix.is_none()).map(|p| p.column).collect();
        let not_in_key = || {
            MysqlError::new(
                codes::PARTITION_FUNC_NOT_ALLOWED,
                "A PRIMARY KEY must include all columns in the table's partitioning function (prefixed columns are not considered).",
            )
        };
        match &self.distribution {
            Some(names) if !names.is_empty() => {
                let mut out = Vec::with_capacity(names.len());
                for name in names {
                    let at = self.column(name).ok_or_else(|| {
                        MysqlError::new(1488, "Field in list of fields for partition function not found in table")
                    })?;
                    if hidden_key || !whole.contains(&at) {
                        return Err(not_in_key());
                    }
                    if !out.contains(&at) {
                        out.push(at);
                    }
                }
                Ok(out)
            }
            Some(_) if hidden_key => {
                Err(MysqlError::new(1488, "Field in list of fields for partition function not found in table"))
            }
            Some(_) if whole.is_empty() => Err(not_in_key()),
            None if whole.is_empty() => Ok(primary.parts.iter().map(|p| p.column).collect()),
            _ => Ok(whole),
        }
    }
}

/// Divides a table that is finished otherwise. Columns of KEY that are in the primary key spread its rows, too.
fn partition(schema: &mut TableSchema, draft: &PartitionsDraft) -> Result<(), MysqlError> {
    if !schema.foreign_keys.is_empty() {
        return Err(partitions::no_foreign_keys());
    }
    let partitioning = draft.finish(schema)?;
    if let (PartitionMethod::Key { .. }, partitioning::PartitionOn::Columns { columns, .. }) =
        (&partitioning.by.method, &partitioning.by.on)
        && !schema.hidden_key
    {
        schema.distribution = columns.clone();
    }
    schema.partitioning = Some(Arc::new(partitioning));
    Ok(())
}

pub fn check_table_name(name: &str) -> Result<(), MysqlError> {
    super::check_identifier(name)?;
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(MysqlError::new(codes::WRONG_TABLE_NAME, format!("Incorrect table name '{name}'")));
    }
    Ok(())
}

pub fn check_database_name(name: &str) -> Result<(), MysqlError> {
    super::check_identifier(name)?;
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(MysqlError::new(codes::WRONG_DB_NAME, format!("Incorrect database name '{name}'")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_types::TypeKind;

    fn column(name: &str, ty: DataType) -> ColumnDraft {
        ColumnDraft {
            id: None,
            name: name.to_string(),
            ty,
            nullable: None,
            default: DefaultDraft::NotGiven,
            on_update_now: false,
            auto_increment: false,
            comment: String::new(),
            initial: None,
            key: None,
            generated: None,
            elements: None,
            invisible: false,
            storage: String::new(),
        }
    }

    fn draft(columns: Vec<ColumnDraft>, indexes: Vec<IndexDraft>) -> TableDraft {
        TableDraft { columns, indexes, ..TableDraft::new("d", "t", Collation::DEFAULT) }
    }

    #[test]
    fn a_table_without_a_key_gets_a_hidden_one() {
        let schema = draft(vec![column("a", DataType::BIGINT)], vec![]).build(None).unwrap();
        assert!(schema.hidden_key);
        assert_eq!(schema.visible_columns().len(), 1);
        assert_eq!(schema.primary().parts[0].column, 1);
        assert_eq!(schema.distribution, [1]);
    }

    #[test]
    fn keys_are_named_and_sorted_as_mysql_does() {
        let columns = vec![column("a", DataType::BIGINT), column("b", DataType::BIGINT)];
        let mut keys = vec![
            IndexDraft::on_column(IndexKind::Ordered, "a"),
            IndexDraft::on_column(IndexKind::Unique, "b"),
            IndexDraft::on_column(IndexKind::Ordered, "a"),
            IndexDraft::on_column(IndexKind::Primary, "a"),
        ];
        keys[2].parts.push(PartDraft { column: "b".to_string(), prefix: None, descending: true });
        let schema = draft(columns, keys).build(None).unwrap();
        let names: Vec<&str> = schema.indexes.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["PRIMARY", "b", "a", "a_2"]);
        assert!(!schema.columns[0].nullable && schema.columns[1].nullable);
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let code = |columns: Vec<ColumnDraft>, indexes: Vec<IndexDraft>| {
            draft(columns, indexes).build(None).map(|_| 0).unwrap_or_else(|e| e.code)
        };
        let a = || column("a", DataType::BIGINT);
        let long = |name: &str, characters: u32| column(name, DataType::varchar(characters, Collation::DEFAULT));
        assert_eq!(code(vec![], vec![]), 1113);
        assert_eq!(code(vec![a(), column("A", DataType::BIGINT)], vec![]), 1060);
        assert_eq!(code(vec![a()], vec![IndexDraft::on_column(IndexKind::Ordered, "z")]), 1072);
        assert_eq!(code(vec![long("a", 800)], vec![IndexDraft::on_column(IndexKind::Ordered, "a")]), 1071);
        assert_eq!(code(vec![long("a", 16000), long("b", 16000)], vec![]), 1118);
        let text = column("a", DataType::new(TypeKind::Text));
        assert_eq!(code(vec![text], vec![IndexDraft::on_column(IndexKind::Ordered, "a")]), 1170);
        let mut auto = a();
        auto.auto_increment = true;
        assert_eq!(code(vec![auto], vec![]), 1075);
        let primary = || IndexDraft::on_column(IndexKind::Primary, "a");
        assert_eq!(code(vec![a()], vec![primary(), primary()]), 1068);
        assert_eq!(code((0..1018).map(|n| column(&format!("c{n}"), DataType::BIGINT)).collect(), vec![]), 1117);
    }

    #[test]
    fn drafts_of_a_schema_make_the_same_schema() {
        let columns = vec![column("a", DataType::BIGINT), column("b", DataType::BIGINT)];
        let keys = vec![IndexDraft::on_column(IndexKind::Primary, "a"), IndexDraft::on_column(IndexKind::Unique, "b")];
        let schema = draft(columns, keys).build(None).unwrap();
        let again = TableDraft::of(&schema).build(None).unwrap();
        assert_eq!(schema, again);
    }
}
