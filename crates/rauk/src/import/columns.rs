//! The columns of a table, and which of them a file has.
//!
//! A header's names are matched without regard to case, as MySQL's columns are. A name that no column has, a name twice
//! and a generated column are errors before anything is read, since guessing would put values into wrong columns.
//! Columns that the file does not have get their defaults.

use super::literal::{Kind, quoted};
use super::server;
use mysql::Conn;
use mysql::prelude::Queryable;

/// A table by its database and its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub database: String,
    pub name: String,
}

impl Table {
    /// `db.table`, or `table` of a database that is given otherwise.
    pub fn parse(text: &str, database: Option<&str>) -> Result<Table, String> {
        let parts: Vec<&str> = text.split('.').collect();
        let (database, name) = match (parts.as_slice(), database) {
            ([name], Some(database)) => (database, *name),
            ([name], None) => return Err(format!("of which database is table '{name}'? Give --database, or DB.TABLE")),
            ([database, name], _) => (*database, *name),
            _ => return Err(format!("'{text}' is no TABLE or DB.TABLE")),
        };
        if database.is_empty() || name.is_empty() {
            return Err(format!("'{text}' is no TABLE or DB.TABLE"));
        }
        Ok(Table { database: database.into(), name: name.into() })
    }

    /// For statements.
    pub fn sql(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.name))
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    pub generated: bool,
}

/// Empty: there is no such table.
pub fn of_table(connection: &mut Conn, table: &Table) -> Result<Vec<Column>, String> {
    let rows: Vec<(String, String, String)> = connection
        .exec(
            "SELECT COLUMN_NAME, DATA_TYPE, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
             ORDER BY ORDINAL_POSITION",
            (&table.database, &table.name),
        )
        .map_err(|e| server::told(&e))?;
    let column = |(name, data_type, extra): (String, String, String)| {
        let extra = extra.to_ascii_uppercase();
        // DEFAULT_GENERATED is a default that is an expression.
        let generated = extra.contains("VIRTUAL GENERATED") || extra.contains("STORED GENERATED");
        Column { kind: Kind::of(&data_type), name, generated }
    };
    Ok(rows.into_iter().map(column).collect())
}

/// For each field of a file its column, by number; `None`: the field is left out.
pub fn matched(names: &[String], columns: &[Column], table: &Table) -> Result<Vec<Option<usize>>, String> {
    let mut found: Vec<Option<usize>> = Vec::with_capacity(names.len());
    for name in names {
        if name == "-" {
            found.push(None);
            continue;
        }
        let at = position(name, columns).ok_or_else(|| unknown(name, columns, table))?;
        if columns[at].generated {
            return Err(format!(
                "column '{name}' of {table} is generated and takes no values; name the file's columns with --columns, \
                 with - for each that is left out"
            ));
        }
        if found.contains(&Some(at)) {
            return Err(format!("column '{name}' is there twice; name the file's columns with --columns"));
        }
        found.push(Some(at));
    }
    match found.iter().all(Option::is_none) {
        true => Err("no column of the file goes to a column of the table".into()),
        false => Ok(found),
    }
}

pub fn position(name: &str, columns: &[Column]) -> Option<usize> {
    columns.iter().position(|c| c.name == name).or_else(|| {
        let lower = name.to_lowercase();
        columns.iter().position(|c| c.name.to_lowercase() == lower)
    })
}

pub fn unknown(name: &str, columns: &[Column], table: &Table) -> String {
    let names: Vec<&str> = columns.iter().filter(|c| !c.generated).map(|c| c.name.as_str()).collect();
    let text = format!("table {table} has no column '{name}'");
    match nearest(name, &names) {
        Some(near) => format!("{text}; did you mean '{near}'?"),
        None => {
            let shown: Vec<&str> = names.iter().take(20).copied().collect();
            let more = if names.len() > shown.len() { ", …" } else { "" };
            format!("{text}; it has {}{more} (without a header line: --no-header or --columns)", shown.join(", "))
        }
    }
}

/// The nearest of some words, where one is near.
pub fn nearest<'a>(word: &str, words: &[&'a str]) -> Option<&'a str> {
    let score = |w: &str| strsim::jaro_winkler(&w.to_lowercase(), &word.to_lowercase());
    let best = words.iter().map(|w| (score(w), *w)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.8).map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let column = |name: &str, generated| Column { name: name.into(), kind: Kind::Text, generated };
        vec![column("id", false), column("Name", false), column("sum", true)]
    }

    fn matching(names: &[&str]) -> Result<Vec<Option<usize>>, String> {
        let table = Table { database: "d".into(), name: "t".into() };
        matched(&names.iter().map(|n| n.to_string()).collect::<Vec<_>>(), &columns(), &table)
    }

    #[test]
    fn names_find_their_columns() {
        assert_eq!(matching(&["NAME", "-", "id"]), Ok(vec![Some(1), None, Some(0)]));
        assert!(matching(&["id", "nmae"]).expect_err("unknown").contains("did you mean 'Name'?"));
        assert!(matching(&["17"]).expect_err("unknown").contains("it has id, Name (without a header"));
        assert!(matching(&["sum"]).expect_err("generated").contains("generated"));
        assert!(matching(&["id", "ID"]).expect_err("twice").contains("twice"));
        assert!(matching(&["-"]).is_err());
    }

    #[test]
    fn tables_by_name() {
        let parsed = |text, database| Table::parse(text, database).map(|t| t.to_string());
        assert_eq!(parsed("a.b", None), Ok("a.b".into()));
        assert_eq!(parsed("b", Some("d")), Ok("d.b".into()));
        assert!(parsed("b", None).expect_err("no database").contains("--database"));
        assert!(parsed("a.b.c", None).is_err() && parsed(".b", None).is_err());
    }
}
