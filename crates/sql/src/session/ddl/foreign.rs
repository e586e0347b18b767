//! Foreign keys: from declarations to checked schemas, and the indexes that they bring.
//!
//! A [`ForeignKeyDraft`] names columns by name; [`finish`] turns the drafts of a table into [`ForeignKey`]s when its columns and indexes are known.
//! What concerns the parent (is it there, do the types fit, has it an index) is checked by the node, under the locks of both tables.
//!
//! A new foreign key brings an index over its columns where no declared index begins with them ([`with_indexes`]); it has the constraint's name, else the
//! index name behind FOREIGN KEY, else the first column's. It stays when another index makes it superfluous later, which MySQL drops silently.
//!
//! Errors: 1072, 1091, 1215, 1235, 1239, 1506, 1828, 3104, 3823; 1059 for long names.

use super::columns::InlineKey;
use super::keys::{IndexDraft, PartDraft};
use super::partitions;
use super::table::TableDraft;
use crate::bind::own_row;
use crate::parse::ast::{ColumnDefinition, ColumnOption, MatchKind, References, ReferentialAction, TableConstraint};
use crate::session::errors;
use crate::session::session::Session;
use crate::session::users::Privileges;
use rauk_types::error::codes;
use rauk_types::{Column, ForeignKey, IndexKind, MysqlError, ReferenceAction, TableSchema};

/// A foreign key on its way into a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKeyDraft {
    /// `None`: named after the table.
    pub name: Option<String>,
    pub columns: Vec<String>,
    pub parent_database: String,
    pub parent_table: String,
    pub parent_columns: Vec<String>,
    pub on_delete: ReferenceAction,
    pub on_update: ReferenceAction,
    /// Of a new one: the name of the index that it brings, and how many indexes were declared before it.
    pub brings: Option<(Option<String>, usize)>,
}

/// The drafts of a table that is there.
pub fn of(schema: &TableSchema) -> Vec<ForeignKeyDraft> {
    let draft = |key: &ForeignKey| ForeignKeyDraft {
        name: Some(key.name.clone()),
        columns: key.positions(schema).into_iter().map(|at| schema.columns[at].name.clone()).collect(),
        parent_database: key.parent_database.clone(),
        parent_table: key.parent_table.clone(),
        parent_columns: key.parent_columns.clone(),
        on_delete: key.on_delete,
        on_update: key.on_update,
        brings: None,
    };
    schema.foreign_keys.iter().map(draft).collect()
}

fn action(action: Option<ReferentialAction>) -> Result<ReferenceAction, MysqlError> {
    Ok(match action {
        None | Some(ReferentialAction::NoAction) => ReferenceAction::NoAction,
        Some(ReferentialAction::Restrict) => ReferenceAction::Restrict,
        Some(ReferentialAction::Cascade) => ReferenceAction::Cascade,
        Some(ReferentialAction::SetNull) => ReferenceAction::SetNull,
        // As InnoDB says it.
        Some(ReferentialAction::SetDefault) => {
            return Err(MysqlError::new(codes::CANNOT_ADD_FOREIGN, "Cannot add foreign key constraint"));
        }
    })
}

impl Session {
    /// Takes a declared foreign key into a draft of its table. Error 1142 without REFERENCES on the parent.
    pub(super) fn add_foreign_key(
        &self,
        draft: &mut TableDraft,
        symbol: Option<&str>,
        index: Option<&str>,
        columns: &[String],
        references: &References,
    ) -> Result<(), MysqlError> {
        for name in symbol.iter().chain(&index) {
            super::check_identifier(name)?;
        }
        if columns.len() != references.columns.len() {
            let name = symbol.or(index).unwrap_or("foreign key without name");
            let text =
                format!("Incorrect foreign key definition for '{name}': Key reference and table reference don't match");
            return Err(MysqlError::new(codes::WRONG_FK_DEF, text));
        }
        if matches!(references.match_kind, Some(MatchKind::Full | MatchKind::Partial)) {
            return Err(errors::not_supported("MATCH FULL and MATCH PARTIAL; there is MATCH SIMPLE"));
        }
        let parent_database = references.table.database.clone().unwrap_or_else(|| draft.database.clone());
        let parent = &references.table.name;
        let on = |column: &String| self.account.on_column(&parent_database, parent, column, Privileges::REFERENCES);
        if references.columns.is_empty() || !references.columns.iter().all(on) {
            self.require_table("REFERENCES", &parent_database, parent, Privileges::REFERENCES)?;
        }
        if self.engine.database.table(&parent_database, parent).is_ok_and(|table| table.schema().partitioning.is_some())
        {
            return Err(partitions::no_foreign_keys());
        }
        draft.foreign_keys.push(ForeignKeyDraft {
            name: symbol.map(str::to_string),
            columns: columns.to_vec(),
            parent_database,
            parent_table: references.table.name.clone(),
            parent_columns: references.columns.clone(),
            on_delete: action(references.on_delete)?,
            on_update: action(references.on_update)?,
            brings: Some((symbol.or(index).map(str::to_string), draft.indexes.len())),
        });
        Ok(())
    }

    /// Error 1506: a table that is to be partitioned is referred to.
    pub(super) fn check_not_referred_to(&self, schema: &TableSchema) -> Result<(), MysqlError> {
        if schema.partitioning.is_none() {
            return Ok(());
        }
        let refers = |key: &ForeignKey| key.parent_database == schema.database && key.parent_table == schema.name;
        for database in self.engine.database.databases() {
            // A database may be dropped between the two calls.
            let Ok(tables) = self.engine.database.tables(&database) else { continue };
            if tables.iter().any(|table| table.foreign_keys.iter().any(refers)) {
                return Err(partitions::no_foreign_keys());
            }
        }
        Ok(())
    }

    /// The foreign keys that stand beside new columns.
    pub(super) fn add_inline_keys(&self, draft: &mut TableDraft, column: &ColumnDefinition) -> Result<(), MysqlError> {
        for option in &column.options {
            if let ColumnOption::References(references) = option {
                self.add_foreign_key(draft, None, None, std::slice::from_ref(&column.name), references)?;
            }
        }
        Ok(())
    }

    /// Takes a constraint into a draft, if it is a foreign key.
    pub(super) fn add_if_foreign(
        &self,
        draft: &mut TableDraft,
        constraint: &TableConstraint,
    ) -> Result<bool, MysqlError> {
        let TableConstraint::ForeignKey { symbol, index, columns, references } = constraint else { return Ok(false) };
        self.add_foreign_key(draft, symbol.as_deref(), index.as_deref(), columns, references)?;
        Ok(true)
    }
}

/// Takes a foreign key out; `false`: there is none of this name.
pub fn remove(draft: &mut TableDraft, name: &str) -> bool {
    let is_it = |key: &ForeignKeyDraft| key.name.as_deref().is_some_and(|n| n.eq_ignore_ascii_case(name));
    let at = draft.foreign_keys.iter().position(is_it);
    at.map(|at| draft.foreign_keys.remove(at)).is_some()
}

/// Foreign keys follow a column's new name; those that refer to the table itself on both sides (the parent's side is done by the node for all
/// others).
pub fn rename_column(draft: &mut TableDraft, old: &str, new: &str) {
    for name in draft.foreign_keys.iter_mut().flat_map(|key| &mut key.columns) {
        if name.eq_ignore_ascii_case(old) {
            *name = new.to_string();
        }
    }
}

/// Whether an index serves a foreign key over these columns.
fn serves(index: &IndexDraft, columns: &[String]) -> bool {
    let same =
        |(part, column): (&PartDraft, &String)| part.prefix.is_none() && part.column.eq_ignore_ascii_case(column);
    !(index.hash_only || matches!(index.kind, IndexKind::FullText(_) | IndexKind::Elements(_)))
        && index.parts.len() >= columns.len()
        && index.parts.iter().zip(columns).all(same)
}

/// Takes out the index that was made for a foreign key when a new index of its name serves the key: MySQL lets it give way to one that is
/// declared. Programs that copy a table's reflected definition declare it so. That an index was made is told from its name and its columns.
pub fn give_way(draft: &mut TableDraft, new: &IndexDraft) {
    let same = |a: &Option<String>, b: &Option<String>| {
        a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
    };
    let made_for = |index: &IndexDraft| {
        draft.foreign_keys.iter().any(|key| {
            key.brings.is_none()
                && (same(&key.name, &index.name) || same(&key.columns.first().cloned(), &index.name))
                && index.parts.len() == key.columns.len()
                && serves(index, &key.columns)
                && serves(new, &key.columns)
        })
    };
    let is_it = |index: &IndexDraft| {
        index.id.is_some() && index.kind == IndexKind::Ordered && same(&index.name, &new.name) && made_for(index)
    };
    if let Some(at) = draft.indexes.iter().position(is_it) {
        draft.indexes.remove(at);
    }
}

/// Adds the indexes that new foreign keys need and that nobody has declared. Error 1170: a geometry is in keys by a prefix alone, even a POINT.
pub fn with_indexes(draft: &mut TableDraft) -> Result<(), MysqlError> {
    let is_new = |key: &&ForeignKeyDraft| key.brings.is_some();
    for name in draft.foreign_keys.iter().filter(is_new).flat_map(|key| &key.columns) {
        if draft.column(name).is_some_and(|at| draft.columns[at].ty.is_geometry()) {
            let message = format!("BLOB/TEXT column '{name}' used in key specification without a key length");
            return Err(MysqlError::new(codes::BLOB_KEY_WITHOUT_LENGTH, message));
        }
    }
    let inline: Vec<IndexDraft> = draft
        .columns
        .iter()
        .filter_map(|c| {
            let kind = match c.key? {
                InlineKey::Primary => IndexKind::Primary,
                InlineKey::Unique => IndexKind::Unique,
            };
            Some(IndexDraft::on_column(kind, &c.name))
        })
        .collect();
    let is_served = |columns: &[String]| draft.indexes.iter().chain(&inline).any(|index| serves(index, columns));
    let mut wanted: Vec<(usize, IndexDraft)> = Vec::new();
    for key in &draft.foreign_keys {
        let Some((name, at)) = &key.brings else { continue };
        if is_served(&key.columns) || key.columns.is_empty() {
            continue;
        }
        let mut index = IndexDraft::on_column(IndexKind::Ordered, &key.columns[0]);
        index.name = name.clone();
        index.parts = key
            .columns
            .iter()
            .map(|column| PartDraft { column: column.clone(), prefix: None, descending: false })
            .collect();
        wanted.push((*at, index));
    }
    // One serves several keys: the longest, or the first of equal ones.
    let columns: Vec<Vec<String>> =
        wanted.iter().map(|(_, i)| i.parts.iter().map(|p| p.column.clone()).collect()).collect();
    let superfluous = |at: usize| {
        wanted.iter().enumerate().any(|(other, (_, index))| {
            let longer = index.parts.len() > columns[at].len();
            other != at && serves(index, &columns[at]) && (longer || other < at)
        })
    };
    let kept: Vec<bool> = (0..wanted.len()).map(|at| !superfluous(at)).collect();
    let wanted = wanted.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(index, _)| index);
    for (moved, (at, index)) in wanted.enumerate() {
        draft.indexes.insert(at + moved, index);
    }
    Ok(())
}

/// The foreign keys of a table whose columns are these.
pub fn finish(drafts: &[ForeignKeyDraft], table: &str, columns: &[Column]) -> Result<Vec<ForeignKey>, MysqlError> {
    let made = format!("{table}_ibfk_");
    let numbers = drafts.iter().filter_map(|d| d.name.as_ref()?.strip_prefix(&made)?.parse::<u64>().ok());
    let mut last = numbers.max().unwrap_or(0);
    let mut out = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let name = match &draft.name {
            Some(name) => name.clone(),
            None => {
                last += 1;
                format!("{made}{last}")
            }
        };
        let mut ids = Vec::with_capacity(draft.columns.len());
        for wanted in &draft.columns {
            let column = columns.iter().find(|column| column.name.eq_ignore_ascii_case(wanted));
            match column {
                Some(column) if ids.contains(&column.id) => {
                    return Err(MysqlError::new(codes::DUP_FIELDNAME, format!("Duplicate column name '{wanted}'")));
                }
                Some(column) => ids.push(column.id),
                None if draft.brings.is_some() => {
                    let text = format!("Key column '{wanted}' doesn't exist in table");
                    return Err(MysqlError::new(codes::KEY_COLUMN_DOES_NOT_EXIST, text));
                }
                None => {
                    let text = format!("Cannot drop column '{wanted}': needed in a foreign key constraint '{name}'");
                    return Err(MysqlError::new(codes::FK_COLUMN_CANNOT_DROP, text));
                }
            }
        }
        out.push(ForeignKey {
            name,
            columns: ids,
            parent_database: draft.parent_database.clone(),
            parent_table: draft.parent_table.clone(),
            parent_columns: draft.parent_columns.clone(),
            on_delete: draft.on_delete,
            on_update: draft.on_update,
        });
    }
    Ok(out)
}

/// Refuses actions that would write columns on which a CHECK or a STORED generated column depends, as MySQL does.
/// Errors: 1215 for the generated columns that read them, 3104 for generated columns themselves, 3823 for CHECK.
pub fn check_actions(schema: &TableSchema) -> Result<(), MysqlError> {
    for key in &schema.foreign_keys {
        let writes = |action| matches!(action, ReferenceAction::Cascade | ReferenceAction::SetNull);
        let clause = match (key.on_update, key.on_delete) {
            (action, _) if writes(action) => format!("ON UPDATE {}", action.text()),
            (_, action @ ReferenceAction::SetNull) => format!("ON DELETE {}", action.text()),
            _ => continue,
        };
        let columns: Vec<usize> = key.columns.iter().filter_map(|&id| schema.column_position(id)).collect();
        for check in &schema.checks {
            if let Some(&column) = own_row::read_by_check(schema, check).iter().find(|at| columns.contains(at)) {
                let text = format!(
                    "Column '{}' cannot be used in a check constraint '{}': needed in a foreign key constraint '{}' \
                     referential action.",
                    schema.columns[column].name, check.name, key.name
                );
                return Err(MysqlError::new(3823, text));
            }
        }
        for (at, column) in schema.columns.iter().enumerate().filter(|(_, column)| column.generated.is_some()) {
            if columns.contains(&at) {
                let text = format!("Cannot define foreign key with {clause} clause on a generated column.");
                return Err(MysqlError::new(3104, text));
            }
            // VIRTUAL ones are computed when a cascade has changed what they read.
            let stored = column.generated.as_ref().is_some_and(|generated| generated.stored);
            if stored && own_row::read_by_column(schema, at).iter().any(|read| columns.contains(read)) {
                let text = format!(
                    "Cannot add foreign key constraint: {clause} would change what the generated column '{}' reads",
                    column.name
                );
                return Err(MysqlError::new(codes::CANNOT_ADD_FOREIGN, text));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::ddl::columns::{ColumnDraft, DefaultDraft};
    use rauk_types::{Collation, DataType};

    fn table(keys: &[&[&str]]) -> TableDraft {
        let mut draft = TableDraft::new("d", "t", Collation::DEFAULT);
        for name in ["a", "b", "c"] {
            draft.columns.push(ColumnDraft {
                id: None,
                name: name.to_string(),
                ty: DataType::BIGINT,
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
            });
        }
        for columns in keys {
            draft.foreign_keys.push(ForeignKeyDraft {
                name: None,
                columns: columns.iter().map(|c| c.to_string()).collect(),
                parent_database: "d".to_string(),
                parent_table: "p".to_string(),
                parent_columns: columns.iter().map(|c| c.to_string()).collect(),
                on_delete: ReferenceAction::NoAction,
                on_update: ReferenceAction::NoAction,
                brings: Some((None, 0)),
            });
        }
        draft
    }

    #[test]
    fn a_foreign_key_brings_an_index_unless_one_serves_it() {
        let schema = table(&[&["a"], &["a", "b"], &["c"], &["c"]]).build(None).unwrap();
        let names: Vec<&str> = schema.indexes.iter().skip(1).map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(schema.indexes[1].parts.len(), 2);
        let names: Vec<&str> = schema.foreign_keys.iter().map(|k| k.name.as_str()).collect();
        assert_eq!(names, ["t_ibfk_1", "t_ibfk_2", "t_ibfk_3", "t_ibfk_4"]);
        let mut declared = table(&[&["a"]]);
        declared.indexes.push(IndexDraft::on_column(IndexKind::Unique, "A"));
        assert_eq!(declared.build(None).unwrap().indexes.len(), 2);
    }

    #[test]
    fn numbers_go_on_above_those_that_are_there() {
        let mut draft = table(&[&["a"], &["b"]]);
        draft.foreign_keys[1].name = Some("t_ibfk_7".to_string());
        let schema = draft.build(None).unwrap();
        let names: Vec<&str> = schema.foreign_keys.iter().map(|k| k.name.as_str()).collect();
        assert_eq!(names, ["t_ibfk_8", "t_ibfk_7"]);
    }
}
