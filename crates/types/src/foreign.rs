//! Foreign keys: what a table declares of the tables that its rows refer to.
//!
//! The *child* has the declaration. It names its *parent* by database and name, and the parent's columns by name, so that a parent may be missing
//! (dump tools load children first, with `foreign_key_checks=0`), and may be replaced by a copy of itself. A RENAME of the parent or of one of
//! its columns rewrites the declaration. The child's own columns are named by their ids.
//!
//! Here are the rules that need the two schemas only: which index serves the lookup on each side, which column types fit together, and the text
//! of the constraint as errors and SHOW CREATE TABLE print it. Enforcement is `node::transaction::foreign`, DDL `node::ddl::foreign`.

use crate::schema::{IndexSchema, TableSchema};
use crate::{ColumnId, DataType, IndexId, TypeKind};
use serde::{Deserialize, Serialize};

/// Levels of rows that one change may go down, its own row among them (MySQL's limit, error 3008).
pub const MAX_CASCADE_DEPTH: usize = 15;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Unique among the constraints of the child's database.
    pub name: String,
    pub columns: Vec<ColumnId>,
    pub parent_database: String,
    pub parent_table: String,
    /// As many as `columns`.
    pub parent_columns: Vec<String>,
    pub on_delete: ReferenceAction,
    pub on_update: ReferenceAction,
}

/// What becomes of child rows whose parent goes or gets another key. There are no deferred checks, so NO ACTION does what RESTRICT does; it shows
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferenceAction {
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
}

impl ReferenceAction {
    pub fn text(self) -> &'static str {
        match self {
            ReferenceAction::NoAction => "NO ACTION",
            ReferenceAction::Restrict => "RESTRICT",
            ReferenceAction::Cascade => "CASCADE",
            ReferenceAction::SetNull => "SET NULL",
        }
    }

    /// Whether child rows are changed; else they are in the way.
    pub fn changes_children(self) -> bool {
        matches!(self, ReferenceAction::Cascade | ReferenceAction::SetNull)
    }
}

/// How a parent row is found by the referenced columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentKey {
    /// They are the whole key of the primary key or of a unique index.
    Whole(IndexId),
    /// They are the first columns of an ordered index.
    First(IndexId),
}

impl ForeignKey {
    /// Positions of the columns in the child.
    pub fn positions(&self, child: &TableSchema) -> Vec<usize> {
        let position = |id: &ColumnId| child.column_position(*id).expect("a foreign key's column is in its table");
        self.columns.iter().map(position).collect()
    }

    /// Positions of the referenced columns in the parent; `None` when it lacks one.
    pub fn parent_positions(&self, parent: &TableSchema) -> Option<Vec<usize>> {
        let position =
            |name: &String| parent.visible_columns().iter().position(|column| column.name.eq_ignore_ascii_case(name));
        self.parent_columns.iter().map(position).collect()
    }

    pub fn is_parent(&self, table: &TableSchema) -> bool {
        self.parent_table == table.name && self.parent_database == table.database
    }

    /// `CONSTRAINT … FOREIGN KEY … REFERENCES …`; `name` quotes an identifier.
    pub fn clause(&self, child: &TableSchema, name: &dyn Fn(&str) -> String) -> String {
        let list = |names: Vec<String>| names.join(", ");
        let columns = list(self.positions(child).into_iter().map(|at| name(&child.columns[at].name)).collect());
        let parent_columns = list(self.parent_columns.iter().map(|column| name(column)).collect());
        let database = match self.parent_database == child.database {
            true => String::new(),
            false => format!("{}.", name(&self.parent_database)),
        };
        let mut out = format!(
            "CONSTRAINT {} FOREIGN KEY ({columns}) REFERENCES {database}{} ({parent_columns})",
            name(&self.name),
            name(&self.parent_table)
        );
        for (event, action) in [("DELETE", self.on_delete), ("UPDATE", self.on_update)] {
            if action != ReferenceAction::NoAction {
                out.push_str(&format!(" ON {event} {}", action.text()));
            }
        }
        out
    }

    /// The constraint as errors 1451 and 1452 name it.
    pub fn described(&self, child: &TableSchema) -> String {
        let clause = self.clause(child, &quoted);
        format!("({}.{}, {clause})", quoted(&child.database), quoted(&child.name))
    }
}

pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn begins_with(index: &IndexSchema, columns: &[usize]) -> bool {
    index.parts.len() >= columns.len()
        && index.parts.iter().zip(columns).all(|(part, column)| part.column == *column && part.prefix.is_none())
}

/// The index by which child rows are found: ordered, with the key's columns first, in their order.
pub fn child_index<'a>(child: &'a TableSchema, columns: &[usize]) -> Option<&'a IndexSchema> {
    child.indexes.iter().find(|index| index.is_ordered() && begins_with(index, columns))
}

/// The index by which a parent row is found; unique ones first.
pub fn parent_key(parent: &TableSchema, columns: &[usize]) -> Option<ParentKey> {
    let fits = |index: &&IndexSchema| begins_with(index, columns);
    let whole = |index: &&IndexSchema| index.is_unique() && index.parts.len() == columns.len();
    if let Some(index) = parent.indexes.iter().filter(fits).find(whole) {
        return Some(ParentKey::Whole(index.id));
    }
    let first = parent.indexes.iter().filter(fits).find(|index| index.is_ordered());
    first.map(|index| ParentKey::First(index.id))
}

/// Whether values of one column are values of the other, and equal in both at the same time.
pub fn is_compatible(child: &DataType, parent: &DataType) -> bool {
    use TypeKind::*;
    let text = |ty: &DataType| matches!(ty.kind, Char | VarChar);
    let bytes = |ty: &DataType| matches!(ty.kind, Binary | VarBinary);
    if text(child) && text(parent) {
        return child.collation == parent.collation;
    }
    if bytes(child) && bytes(parent) {
        return true;
    }
    if child.kind != parent.kind || child.unsigned != parent.unsigned {
        return false;
    }
    match child.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt | Float | Double | Date => true,
        Decimal => (child.precision, child.scale) == (parent.precision, parent.scale),
        Time | DateTime | Timestamp => child.scale == parent.scale,
        _ => child == parent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Column, IndexKind, IndexPart};
    use crate::{Collation, TableId};

    fn table() -> TableSchema {
        let column = |id: u16, name: &str| Column::new(ColumnId(id), name, DataType::BIGINT, true);
        let part = |column| IndexPart { column, prefix: None, descending: false };
        let index = |id: u16, kind, parts: &[usize]| IndexSchema {
            id: IndexId(id),
            name: format!("i{id}"),
            kind,
            parts: parts.iter().map(|at| part(*at)).collect(),
            hash_only: false,
            entry_table: None,
            comment: String::new(),
            invisible: false,
            global: false,
        };
        TableSchema::new(
            TableId(1),
            "d",
            "t",
            vec![column(0, "a"), column(1, "b"), column(2, "c`")],
            vec![
                IndexSchema::primary(&[0, 1]),
                index(1, IndexKind::Ordered, &[1, 2]),
                index(2, IndexKind::Unique, &[2]),
            ],
        )
    }

    #[test]
    fn a_lookup_takes_the_best_index() {
        let table = table();
        assert_eq!(parent_key(&table, &[0, 1]), Some(ParentKey::Whole(IndexId::PRIMARY)));
        assert_eq!(parent_key(&table, &[0]), Some(ParentKey::First(IndexId::PRIMARY)));
        assert_eq!(parent_key(&table, &[2]), Some(ParentKey::Whole(IndexId(2))));
        assert_eq!(parent_key(&table, &[1]), Some(ParentKey::First(IndexId(1))));
        // The order counts.
        assert_eq!(parent_key(&table, &[1, 0]), None);
        assert_eq!(child_index(&table, &[1]).map(|index| index.id), Some(IndexId(1)));
        assert_eq!(child_index(&table, &[2, 0]), None);
    }

    #[test]
    fn types_fit_as_in_mysql() {
        let varchar = |length, collation| DataType::varchar(length, collation);
        let default = Collation::DEFAULT;
        assert!(is_compatible(&varchar(10, default), &varchar(20, default)));
        assert!(!is_compatible(&varchar(10, Collation::Binary), &varchar(10, default)));
        assert!(is_compatible(&DataType::BIGINT, &DataType::BIGINT));
        assert!(!is_compatible(&DataType::BIGINT, &DataType::BIGINT_UNSIGNED));
        assert!(!is_compatible(&DataType::BIGINT, &DataType::new(TypeKind::Int)));
    }

    #[test]
    fn a_clause_reads_as_it_is_declared() {
        let key = ForeignKey {
            name: "f".into(),
            columns: vec![ColumnId(0), ColumnId(2)],
            parent_database: "e".into(),
            parent_table: "p".into(),
            parent_columns: vec!["x".into(), "y".into()],
            on_delete: ReferenceAction::SetNull,
            on_update: ReferenceAction::NoAction,
        };
        let text =
            "(`d`.`t`, CONSTRAINT `f` FOREIGN KEY (`a`, `c```) REFERENCES `e`.`p` (`x`, `y`) ON DELETE SET NULL)";
        assert_eq!(key.described(&table()), text);
    }
}
