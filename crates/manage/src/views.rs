//! The views of a catalog, by database and name.
//!
//! Views and base tables share one name space: the catalog asks both before it gives a name away. A view refers to tables by name only, so nothing here
//! changes when a table does: whoever reads the view finds out.

use rauk_types::ViewSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Two levels, since JSON has no keys of two parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Views(BTreeMap<String, BTreeMap<String, Arc<ViewSchema>>>);

impl Views {
    pub fn get(&self, database: &str, name: &str) -> Option<&Arc<ViewSchema>> {
        self.0.get(database)?.get(name)
    }

    /// Those of a database, sorted by name.
    pub fn of(&self, database: &str) -> impl Iterator<Item = &Arc<ViewSchema>> {
        self.0.get(database).into_iter().flat_map(BTreeMap::values)
    }

    /// In the place of one of its name.
    pub fn insert(&mut self, view: Arc<ViewSchema>) {
        self.0.entry(view.database.clone()).or_default().insert(view.name.clone(), view);
    }

    pub fn remove(&mut self, database: &str, name: &str) -> Option<Arc<ViewSchema>> {
        let of = self.0.get_mut(database)?;
        let removed = of.remove(name);
        if of.is_empty() {
            self.0.remove(database);
        }
        removed
    }

    pub fn remove_database(&mut self, database: &str) {
        self.0.remove(database);
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::tests::table;
    use crate::{Catalog, CatalogError, Command};
    use rauk_types::{Collation, TableId, ViewAlgorithm, ViewCheck, ViewSchema, ViewSecurity};
    use std::sync::Arc;

    fn view(database: &str, name: &str, query: &str) -> Arc<ViewSchema> {
        Arc::new(ViewSchema {
            database: database.into(),
            name: name.into(),
            query: query.into(),
            columns: vec!["1".into()],
            algorithm: ViewAlgorithm::Undefined,
            definer: ("root".into(), "localhost".into()),
            security: ViewSecurity::Definer,
            check: ViewCheck::None,
            charset: "utf8mb4".into(),
            collation: Collation::DEFAULT,
        })
    }

    fn create(name: &str, query: &str, replace: bool) -> Command {
        Command::CreateView { view: view("d", name, query), replace }
    }

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        for name in ["d", "e"] {
            catalog
                .apply(&Command::CreateDatabase {
                    name: name.into(),
                    collation: Collation::DEFAULT,
                    comment: String::new(),
                })
                .unwrap();
        }
        catalog.apply(&Command::CreateTables { tables: vec![table(1, "d", "t")] }).unwrap();
        catalog.apply(&create("v", "select 1", false)).unwrap();
        catalog
    }

    fn exists(name: &str) -> CatalogError {
        CatalogError::TableExists { database: "d".into(), name: name.into() }
    }

    fn refused(catalog: &mut Catalog, command: &Command, why: CatalogError) {
        let before = catalog.clone();
        assert_eq!(catalog.apply(command), Err(why));
        assert_eq!(*catalog, before, "a refused command leaves no trace");
    }

    fn name(database: &str, name: &str) -> (String, String) {
        (database.into(), name.into())
    }

    #[test]
    fn views_and_tables_share_one_name_space() {
        let mut c = catalog();
        refused(&mut c, &create("v", "select 2", false), exists("v"));
        refused(&mut c, &create("t", "select 2", true), exists("t"));
        refused(&mut c, &Command::CreateTables { tables: vec![table(2, "d", "v")] }, exists("v"));
        refused(&mut c, &Command::ReplaceDefinitions { tables: vec![table(1, "d", "v")] }, exists("v"));
        let switch = Command::Switch { job: None, drop: vec![], create: vec![table(2, "d", "v")], replace: vec![] };
        refused(&mut c, &switch, exists("v"));
        let elsewhere = Command::CreateView { view: view("nowhere", "v", "select 1"), replace: true };
        refused(&mut c, &elsewhere, CatalogError::UnknownDatabase("nowhere".into()));
        c.apply(&create("v", "select 2", true)).unwrap();
        assert_eq!(c.view("d", "v").unwrap().query, "select 2");
        c.apply(&Command::CreateView { view: view("e", "t", "select 1"), replace: false }).unwrap();
        assert_eq!(c.views_of("d").count(), 1);
    }

    #[test]
    fn views_are_dropped_all_or_none() {
        let mut c = catalog();
        c.apply(&create("w", "select 1", false)).unwrap();
        let drop = |names: &[&str]| Command::DropViews { views: names.iter().map(|n| name("d", n)).collect() };
        let missing = CatalogError::NoSuchTable { database: "d".into(), name: "t".into() };
        refused(&mut c, &drop(&["v", "t"]), missing);
        c.apply(&drop(&["v", "w"])).unwrap();
        assert_eq!(c.views_of("d").count(), 0);
        c.apply(&Command::CreateTables { tables: vec![table(2, "d", "v")] }).unwrap();
    }

    #[test]
    fn a_database_goes_with_its_views() {
        let mut c = catalog();
        c.apply(&Command::DropDatabaseOf { name: "d".into(), tables: vec![TableId(1)] }).unwrap();
        assert!(c.view("d", "v").is_none());
        c.apply(&Command::CreateDatabase { name: "d".into(), collation: Collation::DEFAULT, comment: String::new() })
            .unwrap();
        assert!(c.view("d", "v").is_none());
        c.apply(&create("v", "select 1", false)).unwrap();
        c.apply(&Command::DropDatabase { name: "d".into() }).unwrap();
        assert!(c.view("d", "v").is_none());
    }

    #[test]
    fn tables_and_views_exchange_names_in_one_step() {
        let mut c = catalog();
        let swap = Command::Rename { tables: vec![table(1, "d", "v")], views: vec![(name("d", "v"), name("d", "t"))] };
        c.apply(&swap).unwrap();
        assert_eq!(c.table_by_name("d", "v").unwrap().id, TableId(1));
        assert!(c.table_by_name("d", "t").is_none());
        let moved = c.view("d", "t").unwrap();
        assert_eq!((&*moved.name, &*moved.query), ("t", "select 1"));
        refused(&mut c, &swap, CatalogError::NoSuchTable { database: "d".into(), name: "v".into() });
        let onto = Command::Rename { tables: vec![], views: vec![(name("d", "t"), name("d", "v"))] };
        refused(&mut c, &onto, exists("v"));
        let out = Command::Rename { tables: vec![], views: vec![(name("d", "t"), name("f", "t"))] };
        refused(&mut c, &out, CatalogError::UnknownDatabase("f".into()));
    }

    #[test]
    fn a_snapshot_keeps_views_and_an_older_one_has_none() {
        let c = catalog();
        let json = serde_json::to_value(&c).unwrap();
        let mut again: Catalog = serde_json::from_value(json.clone()).unwrap();
        again.after_load();
        assert_eq!(again, c);
        let mut old = json;
        old.as_object_mut().unwrap().remove("views");
        let mut old: Catalog = serde_json::from_value(old).unwrap();
        old.after_load();
        assert!(old.view("d", "v").is_none() && old.table_by_name("d", "t").is_some());
    }

    /// As it is on disks.
    #[test]
    fn commands_about_views_keep_their_encoding() {
        let written = [
            (
                r#"{"CreateView":{"view":{"database":"d","name":"v","query":"select 1","columns":["1"],"algorithm":"Undefined","definer":["root","localhost"],"security":"Definer","check":"None","charset":"utf8mb4","collation":"Utf8mb40900AiCi"},"replace":true}}"#,
                create("v", "select 1", true),
            ),
            (r#"{"DropViews":{"views":[["d","v"]]}}"#, Command::DropViews { views: vec![name("d", "v")] }),
            (
                r#"{"Rename":{"tables":[],"views":[[["d","v"],["d","w"]]]}}"#,
                Command::Rename { tables: vec![], views: vec![(name("d", "v"), name("d", "w"))] },
            ),
        ];
        for (text, command) in written {
            assert_eq!(serde_json::to_string(&command).unwrap(), text);
            assert_eq!(serde_json::from_str::<Command>(text).unwrap(), command);
        }
    }
}
