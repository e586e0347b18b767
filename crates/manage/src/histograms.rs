//! The histograms of columns that ANALYZE TABLE … UPDATE HISTOGRAM has made.
//!
//! A histogram is text here, whose form only `sql` knows; empty text is none. It belongs to the ids of its table and column: renaming keeps it, and it
//! goes with the column, with a change of the column's type, and with the table. A table that is put in the place of another by one command (TRUNCATE,
//! an ALTER TABLE that copies the rows) takes over the histograms of columns that stay as they are.
//!
//! All of them together have at most [`MOST_BYTES`], since the catalog is held and sent as a whole.

use crate::error::CatalogError;
use rauk_types::{ColumnId, TableId, TableSchema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of all histograms.
pub const MOST_BYTES: usize = 8 << 20;

/// Those of one table.
pub type TableHistograms = BTreeMap<ColumnId, Arc<str>>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histograms(BTreeMap<TableId, Arc<TableHistograms>>);

impl Histograms {
    pub fn of(&self, table: TableId) -> Option<&Arc<TableHistograms>> {
        self.0.get(&table)
    }

    /// New ones, in the place of those of the same columns; `None` takes one away.
    pub(crate) fn change(
        &mut self,
        table: &TableSchema,
        changes: &[(ColumnId, Option<Arc<str>>)],
    ) -> Result<(), CatalogError> {
        let mut of = self.0.get(&table.id).map(|of| (**of).clone()).unwrap_or_default();
        for (column, text) in changes {
            if !table.columns.iter().any(|other| other.id == *column) {
                return Err(CatalogError::NoSuchColumnId(table.id, *column));
            }
            match text {
                Some(text) => of.insert(*column, text.clone()),
                None => of.remove(column),
            };
        }
        let others = self.0.iter().filter(|(id, _)| **id != table.id).map(|(_, of)| bytes(of)).sum::<usize>();
        let grows = changes.iter().any(|(_, text)| text.is_some());
        if grows && others + bytes(&of) > MOST_BYTES {
            return Err(CatalogError::HistogramsTooLarge);
        }
        self.put(table.id, of);
        Ok(())
    }

    pub(crate) fn remove(&mut self, table: TableId) -> Option<Arc<TableHistograms>> {
        self.0.remove(&table)
    }

    /// A table has a new definition.
    pub(crate) fn follow(&mut self, old: &TableSchema, new: &TableSchema) {
        if let Some(of) = self.remove(old.id) {
            self.take_over(&of, old, new);
        }
    }

    /// What is left of the histograms of `old` becomes that of `new`.
    pub(crate) fn take_over(&mut self, of: &TableHistograms, old: &TableSchema, new: &TableSchema) {
        let column = |of: &TableSchema, id: ColumnId| of.columns.iter().find(|c| c.id == id).map(|c| c.ty);
        let stays = |id: &ColumnId| column(new, *id).is_some_and(|ty| column(old, *id) == Some(ty));
        let left = of.iter().filter(|(id, _)| stays(id)).map(|(id, text)| (*id, text.clone())).collect();
        self.put(new.id, left);
    }

    fn put(&mut self, table: TableId, of: TableHistograms) {
        match of.is_empty() {
            true => _ = self.0.remove(&table),
            false => _ = self.0.insert(table, Arc::new(of)),
        }
    }
}

fn bytes(of: &TableHistograms) -> usize {
    of.values().map(|text| text.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::tests::table;
    use crate::{Catalog, Command};
    use rauk_types::{Collation, DataType};

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        catalog
            .apply(&Command::CreateDatabase { name: "d".into(), collation: Collation::DEFAULT, comment: String::new() })
            .unwrap();
        catalog.apply(&Command::CreateTables { tables: vec![table(1, "d", "t"), table(2, "d", "u")] }).unwrap();
        catalog.apply(&set(1, 0, "x")).unwrap();
        catalog
    }

    fn set(table: u32, column: u16, text: &str) -> Command {
        let text = (!text.is_empty()).then(|| text.into());
        Command::ChangeHistograms { table: TableId(table), changes: vec![(ColumnId(column), text)] }
    }

    fn text(catalog: &Catalog, table: u32) -> Option<&str> {
        catalog.histograms(TableId(table))?.get(&ColumnId(0)).map(|text| &**text)
    }

    /// The table with another type, name or id.
    fn changed(id: u32, name: &str, change: impl Fn(&mut TableSchema)) -> Arc<TableSchema> {
        let mut table = (*table(id, "d", name)).clone();
        change(&mut table);
        Arc::new(table)
    }

    #[test]
    fn they_come_and_go_by_command() {
        let mut c = catalog();
        c.apply(&set(1, 0, "y")).unwrap();
        c.apply(&set(2, 0, "z")).unwrap();
        assert_eq!((text(&c, 1), text(&c, 2)), (Some("y"), Some("z")));
        let before = c.clone();
        assert_eq!(c.apply(&set(3, 0, "x")), Err(CatalogError::NoSuchTableId(TableId(3))));
        assert_eq!(c.apply(&set(1, 7, "x")), Err(CatalogError::NoSuchColumnId(TableId(1), ColumnId(7))));
        assert_eq!(c, before, "a refused command leaves no trace");
        c.apply(&set(1, 0, "")).unwrap();
        c.apply(&set(1, 0, "")).unwrap();
        assert!(c.histograms(TableId(1)).is_none());
    }

    #[test]
    fn they_go_with_the_table_and_with_the_type_of_the_column() {
        let mut c = catalog();
        c.apply(&Command::ReplaceDefinitions { tables: vec![changed(1, "v", |_| {})] }).unwrap();
        assert_eq!(text(&c, 1), Some("x"), "a name is no part of it");
        let other = |table: &mut TableSchema| table.columns[0].ty = DataType { unsigned: true, ..DataType::BIGINT };
        c.apply(&Command::ReplaceDefinitions { tables: vec![changed(1, "v", other)] }).unwrap();
        assert!(c.histograms(TableId(1)).is_none());
        let mut c = catalog();
        c.apply(&Command::DropTables { tables: vec![TableId(1)] }).unwrap();
        assert!(c.histograms(TableId(1)).is_none());
        let mut c = catalog();
        c.apply(&Command::DropDatabase { name: "d".into() }).unwrap();
        assert_eq!(c.histograms(TableId(1)), None);
    }

    #[test]
    fn a_table_in_the_place_of_another_takes_them_over() {
        let switch = |drop: &[u32], create: Vec<Arc<TableSchema>>| Command::Switch {
            job: None,
            drop: drop.iter().map(|id| TableId(*id)).collect(),
            create,
            replace: vec![],
        };
        let mut c = catalog();
        c.apply(&switch(&[1], vec![table(3, "d", "t")])).unwrap();
        assert_eq!((text(&c, 1), text(&c, 3)), (None, Some("x")));
        c.apply(&switch(&[3], vec![changed(4, "t", |table| table.columns[0].id = ColumnId(5))])).unwrap();
        assert!(c.histograms(TableId(4)).is_none());
        // Of two tables nobody knows which takes the place of which.
        let mut c = catalog();
        c.apply(&switch(&[1, 2], vec![table(3, "d", "t"), table(4, "d", "u")])).unwrap();
        assert_eq!((text(&c, 3), text(&c, 4)), (None, None));
    }

    #[test]
    fn all_of_them_have_a_limit() {
        let mut c = catalog();
        let large = "x".repeat(MOST_BYTES - 1);
        c.apply(&set(1, 0, &large)).unwrap();
        c.apply(&set(2, 0, "y")).unwrap();
        assert_eq!(c.apply(&set(2, 0, "yy")), Err(CatalogError::HistogramsTooLarge));
        assert_eq!(text(&c, 2), Some("y"));
        c.apply(&set(1, 0, "")).unwrap();
        c.apply(&set(2, 0, "yy")).unwrap();
    }

    #[test]
    fn a_snapshot_keeps_them_and_an_older_one_has_none() {
        let c = catalog();
        let json = serde_json::to_value(&c).unwrap();
        assert_eq!(json["histograms"].to_string(), r#"{"1":{"0":"x"}}"#);
        let mut again: Catalog = serde_json::from_value(json.clone()).unwrap();
        again.after_load();
        assert_eq!(again, c);
        let mut old = json;
        old.as_object_mut().unwrap().remove("histograms");
        let mut old: Catalog = serde_json::from_value(old).unwrap();
        old.after_load();
        assert!(old.histograms(TableId(1)).is_none() && old.table_by_name("d", "t").is_some());
    }

    /// As it is on disks.
    #[test]
    fn their_command_keeps_its_encoding() {
        let written = r#"{"ChangeHistograms":{"table":1,"changes":[[0,"x"],[3,null]]}}"#;
        let changes = vec![(ColumnId(0), Some("x".into())), (ColumnId(3), None)];
        let command = Command::ChangeHistograms { table: TableId(1), changes };
        assert_eq!(serde_json::to_string(&command).unwrap(), written);
        assert_eq!(serde_json::from_str::<Command>(written).unwrap(), command);
    }
}
