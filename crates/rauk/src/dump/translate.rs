//! Definitions for the server that loads the dump.
//!
//! What SHOW CREATE shows is parsed, what the target lacks is taken out of the tree or written in its way, and the tree
//! is printed. Each difference that the target's users could notice is a change; another spelling of the same thing
//! (INVISIBLE without a version comment, `IGNORED` indexes, JSON_EXTRACT for `->`) is none. For Rauk the statement
//! stays as it is shown, and parsing finds only what the rows need to know of the columns.
//!
//! A generated column that the target cannot have becomes a plain one with its values. A view that the target cannot
//! have is left out, and so is one that reads it. Views come in an order in which each finds those that it reads.

use super::catalog::{Schema, Shown, View};
use super::changes::Changes;
use super::target::Target;
use crate::import::literal::{push_text, quoted};
use rauk_sql::parse::ast::{
    ColumnDefinition, ColumnOption, ColumnType, DefaultValue, Expr, KeyDefinition, KeyPart, PartitionClause,
    PartitionValues, TableConstraint,
};
use rauk_sql::parse::print::{Foreign, Met, for_server};
use rauk_sql::parse::statement::{CreateTable, CreateView};
use rauk_sql::parse::{Mode, Statement, parse};
use rauk_types::partitioning::PartitionMethod;
use rauk_types::{GeometryKind, ViewAlgorithm, ViewCheck, ViewSecurity};
use std::collections::BTreeSet;

/// How values of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Number,
    /// FLOAT and DOUBLE: the text of a FLOAT has six digits, of which not every value can be read back.
    Float,
    Text,
    /// An ENUM without the member ''. A value '' is the number 0 then, which strict sessions do not take.
    Enum,
    Bytes,
}

#[derive(Debug)]
pub struct Column {
    pub name: String,
    pub form: Form,
}

/// A statement for the target, and of a table what its rows need.
#[derive(Debug)]
pub struct Definition {
    pub database: String,
    pub name: String,
    pub text: String,
    /// Those that take values.
    pub columns: Vec<Column>,
    pub order: Vec<String>,
    /// Of the session that defines a view.
    pub collation: Option<String>,
}

#[derive(Debug, Default)]
pub struct Definitions {
    /// In the order of the schema's.
    pub databases: Vec<String>,
    pub tables: Vec<Definition>,
    /// Each behind those that it reads.
    pub views: Vec<Definition>,
}

pub fn all(schema: &Schema, target: Target, changes: &mut Changes) -> Result<Definitions, String> {
    let mut definitions = Definitions::default();
    for database in &schema.databases {
        definitions.databases.push(self::database(database, target, changes)?);
    }
    for table in &schema.tables {
        let mut definition = self::table(&table.shown, target, changes)?;
        definition.order = table.order.clone();
        definitions.tables.push(definition);
    }
    definitions.views = views(&schema.views, target, changes)?;
    Ok(definitions)
}

fn parsed(shown: &Shown, what: &str) -> Result<rauk_sql::parse::Tree, String> {
    parse(&shown.create, Mode::default())
        .map(|parsed| parsed.statement)
        .map_err(|e| unreadable(shown, what, &e.message))
}

fn unreadable(shown: &Shown, what: &str, why: &str) -> String {
    let place = place(what, shown);
    format!("{place}: the server's definition is not understood ({why}); take the rauk of the server's version")
}

fn place(what: &str, shown: &Shown) -> String {
    match shown.database.is_empty() {
        true => format!("{what} {}", shown.name),
        false => format!("{what} {}.{}", shown.database, shown.name),
    }
}

fn database(shown: &Shown, target: Target, changes: &mut Changes) -> Result<String, String> {
    if target == Target::Rauk {
        return Ok(shown.create.clone());
    }
    let tree = parsed(shown, "database")?;
    let Statement::CreateDatabase { options, .. } = &*tree else {
        return Err(unreadable(shown, "database", "it is another statement"));
    };
    let place = place("database", shown);
    let mut text = format!("CREATE DATABASE IF NOT EXISTS {}", quoted(&shown.name));
    if let Some(charset) = &options.charset {
        text += &format!(" DEFAULT CHARACTER SET {charset}");
    }
    if let Some(collation) = &options.collation {
        text += &format!(" COLLATE {}", collated(collation, target, &place, changes));
    }
    match (&options.comment, target) {
        (Some(comment), Target::MariaDb) if !comment.is_empty() => {
            text += " COMMENT ";
            push_text(&mut text, comment);
        }
        (Some(comment), _) if !comment.is_empty() => changes.add(&place, "the comment of a database is left out"),
        _ => {}
    }
    Ok(text)
}

/// The name of a collation there; another one is a change.
fn collated(name: &str, target: Target, place: &str, changes: &mut Changes) -> String {
    let there = target.collation(name);
    if there != name {
        changes.add(place, &format!("collation {name} becomes {there}"));
    }
    there
}

fn note_collations(met: &Met, target: Target, place: &str, changes: &mut Changes) {
    for name in &met.collations {
        collated(name, target, place, changes);
    }
}

/// An expression's text alone says what is in it.
fn lacks(expr: &Expr, target: Target) -> Option<String> {
    target.lacks(&for_server(expr, &target.rules()).1)
}

fn form(column_type: &ColumnType) -> Form {
    use ColumnType as T;
    match column_type {
        T::Integer { .. } | T::Boolean | T::Decimal { .. } => Form::Number,
        T::Float { .. } | T::Double { .. } => Form::Float,
        T::Binary(_) | T::VarBinary(_) | T::TinyBlob | T::Blob | T::MediumBlob | T::LongBlob => Form::Bytes,
        T::Bit(_) | T::Geometry(_) => Form::Bytes,
        T::Enum(members) if !members.iter().any(String::is_empty) => Form::Enum,
        _ => Form::Text,
    }
}

fn is_generated(column: &ColumnDefinition) -> bool {
    column.options.iter().any(|option| matches!(option, ColumnOption::Generated { .. }))
}

fn table(shown: &Shown, target: Target, changes: &mut Changes) -> Result<Definition, String> {
    let tree = parsed(shown, "table")?;
    let Statement::CreateTable(created) = &*tree else {
        return Err(unreadable(shown, "table", "it is another statement"));
    };
    let mut created = (**created).clone();
    let text = match target {
        Target::Rauk => shown.create.clone(),
        target => {
            let mut translation = Translation { target, place: place("table", shown), changes };
            translation.table(&mut created)
        }
    };
    let takes_values = created.columns.iter().filter(|column| !is_generated(column));
    let columns = takes_values.map(|c| Column { name: c.name.clone(), form: form(&c.column_type) }).collect();
    Ok(Definition {
        database: shown.database.clone(),
        name: shown.name.clone(),
        text,
        columns,
        order: Vec::new(),
        collation: None,
    })
}

/// Of one table.
struct Translation<'a> {
    target: Target,
    place: String,
    changes: &'a mut Changes,
}

impl Translation<'_> {
    fn change(&mut self, text: &str) {
        self.changes.add(&self.place, text);
    }

    fn is_mariadb(&self) -> bool {
        self.target == Target::MariaDb
    }

    /// The statement. What is taken out of the tree is not in it any more.
    fn table(&mut self, table: &mut CreateTable) -> String {
        let mut primary: BTreeSet<String> = BTreeSet::new();
        for constraint in &table.constraints {
            if let TableConstraint::PrimaryKey(key) = constraint {
                primary.extend(key.parts.iter().filter_map(|part| match part {
                    KeyPart::Column { name, .. } => Some(name.clone()),
                    KeyPart::Expr { .. } => None,
                }));
            }
        }
        let mut lines: Vec<String> = Vec::new();
        for column in &mut table.columns {
            lines.push(self.column(column, primary.contains(&column.name)));
        }
        let mut partitions = table.partition_by.take().filter(|clause| self.keeps_partitions(clause));
        if let Some(interval) = partitions.as_mut().and_then(|clause| clause.interval.take()) {
            self.change(&format!("{interval} is left out: no partitions are made and dropped by time there"));
        }
        for constraint in &mut table.constraints {
            lines.extend(self.constraint(constraint, partitions.is_some()));
        }
        let mut text = format!("CREATE TABLE {} (\n  {}\n)", quoted(&table.name.name), lines.join(",\n  "));
        for (name, value) in &table.options {
            text += &self.option(name, value);
        }
        if let Some(clause) = partitions {
            let (clause, met) = for_server(&*clause, &self.target.rules());
            note_collations(&met, self.target, &self.place, self.changes);
            text += &format!("\n{clause}");
        }
        text
    }

    fn column(&mut self, column: &mut ColumnDefinition, is_of_primary: bool) -> String {
        let name = quoted(&column.name);
        let has = |column: &ColumnDefinition, wanted: fn(&ColumnOption) -> bool| column.options.iter().any(wanted);
        if self.is_mariadb() && column.column_type == ColumnType::Geometry(GeometryKind::Collection) {
            column.column_type = ColumnType::Other("GEOMETRYCOLLECTION".into());
        }
        // First, since it decides what becomes of the others.
        let generated = column.options.iter().find_map(|option| match option {
            ColumnOption::Generated { expr, .. } => Some(lacks(expr, self.target)),
            _ => None,
        });
        let plain = match &generated {
            Some(Some(lack)) => Some(format!("{} has no {lack}", self.target.title())),
            Some(None) if self.is_mariadb() && is_of_primary => Some("it is of the primary key".to_string()),
            _ => None,
        };
        if let Some(why) = &plain {
            self.change(&format!("the generated column {name} becomes one with its values: {why}"));
        }
        let is_generated = generated.is_some() && plain.is_none();
        let has_value = is_generated
            || !has(column, |o| matches!(o, ColumnOption::NotNull))
            || has(column, |o| matches!(o, ColumnOption::Default(_) | ColumnOption::AutoIncrement));
        let mut suffix = "";
        let (mut kept, target) = (Vec::new(), self.target);
        for option in std::mem::take(&mut column.options) {
            let keeps = match &option {
                ColumnOption::Generated { .. } => plain.is_none(),
                ColumnOption::Default(DefaultValue::Expr(expr)) => match lacks(expr, target) {
                    Some(lack) => {
                        let title = target.title();
                        self.change(&format!("the default of column {name} is left out: {title} has no {lack}"));
                        false
                    }
                    None => true,
                },
                _ if target != Target::MariaDb => true,
                ColumnOption::NotNull if is_generated => {
                    self.change(&format!("NOT NULL of the generated column {name} is left out"));
                    false
                }
                ColumnOption::Storage(_) | ColumnOption::Format(_) => {
                    self.change("STORAGE and COLUMN_FORMAT of columns, which have no effect, are left out");
                    false
                }
                ColumnOption::Srid(id) => {
                    self.change(&format!("SRID {id} of column {name} is left out: values of others are taken, too"));
                    false
                }
                ColumnOption::Invisible if has_value => {
                    suffix = " INVISIBLE";
                    false
                }
                ColumnOption::Invisible => {
                    self.change(&format!("the INVISIBLE column {name} becomes visible, since it has no default"));
                    false
                }
                _ => true,
            };
            if keeps {
                kept.push(option);
            }
        }
        column.options = kept;
        let (text, met) = for_server(&*column, &self.target.rules());
        note_collations(&met, self.target, &self.place, self.changes);
        text + suffix
    }

    /// `None`: it is left out.
    fn constraint(&mut self, constraint: &mut TableConstraint, is_partitioned: bool) -> Option<String> {
        let title = self.target.title();
        if let TableConstraint::Unique(key) = constraint
            && std::mem::take(&mut key.global)
        {
            let name = key_name(key);
            self.change(&format!("the GLOBAL unique key {name} becomes a key that is not unique"));
            *constraint = TableConstraint::Index(std::mem::take(key));
        }
        let mut suffix = "";
        let is_unique = matches!(constraint, TableConstraint::Unique(_));
        match constraint {
            TableConstraint::FullText(key) if is_partitioned && self.target == Target::Mysql8 => {
                let name = key_name(key);
                self.change(&format!("FULLTEXT KEY {name} is left out: partitioned tables have none there"));
                return None;
            }
            TableConstraint::PrimaryKey(key)
            | TableConstraint::Unique(key)
            | TableConstraint::Index(key)
            | TableConstraint::FullText(key)
            | TableConstraint::Spatial(key) => {
                let lack = key.parts.iter().find_map(|part| match part {
                    KeyPart::Column { .. } => None,
                    KeyPart::Expr { .. } if self.target == Target::MariaDb => Some("keys on expressions".to_string()),
                    KeyPart::Expr { expr, .. } => lacks(expr, self.target),
                });
                if let Some(lack) = lack {
                    let unique = if is_unique { ", and nothing keeps its values unique" } else { "" };
                    let name = key_name(key);
                    self.change(&format!("the key {name} is left out{unique}: {title} has no {lack}"));
                    return None;
                }
                if self.is_mariadb() {
                    if std::mem::take(&mut key.invisible) {
                        suffix = " IGNORED";
                    }
                    if let Some(parser) = key.parser.take() {
                        self.change(&format!("FULLTEXT keys WITH PARSER {parser} become ones of words"));
                    }
                }
            }
            TableConstraint::Check(check) => {
                let name = check.name.as_deref().map(quoted).unwrap_or_default();
                if self.is_mariadb() && !check.enforced {
                    self.change(&format!("CHECK {name} is left out: it is NOT ENFORCED"));
                    return None;
                }
                if let Some(lack) = lacks(&check.expr, self.target) {
                    self.change(&format!("CHECK {name} is left out: {title} has no {lack}"));
                    return None;
                }
            }
            TableConstraint::ForeignKey { .. } => {}
        }
        let (text, met) = for_server(&*constraint, &self.target.rules());
        note_collations(&met, self.target, &self.place, self.changes);
        Some(text + suffix)
    }

    /// With the blank before it; empty: it is left out.
    fn option(&mut self, name: &str, value: &str) -> String {
        let is_lost = match (name, value) {
            ("FULLY_REPLICATED", _) => true,
            // InnoDB has no such rows, and refuses the table.
            ("ROW_FORMAT", "FIXED") => true,
            ("COMPRESSION" | "SECONDARY_ENGINE", _) => self.is_mariadb(),
            _ => false,
        };
        if is_lost {
            self.change(&format!("the option {name} of tables is left out"));
            return String::new();
        }
        match name {
            "ENGINE" => " ENGINE=InnoDB".into(),
            "CHARSET" => format!(" DEFAULT CHARSET={value}"),
            "COLLATE" => format!(" COLLATE={}", collated(value, self.target, &self.place, self.changes)),
            "COMMENT" | "COMPRESSION" => {
                let mut text = format!(" {name}=");
                push_text(&mut text, value);
                text
            }
            _ => format!(" {name}={value}"),
        }
    }

    fn keeps_partitions(&mut self, clause: &PartitionClause) -> bool {
        let is_key = matches!(clause.by.method, PartitionMethod::Key { .. });
        if is_key && clause.count.is_none() && clause.definitions.is_empty() {
            self.change("PARTITION BY KEY, which says how rows are spread over nodes, is left out");
            return false;
        }
        let is_default = clause.definitions.iter().any(|definition| definition.values == PartitionValues::Default);
        if is_default && self.target == Target::Mysql8 {
            self.change("PARTITION BY is left out: MySQL 8.0 has no DEFAULT partition");
            return false;
        }
        true
    }
}

fn key_name(key: &KeyDefinition) -> String {
    key.name.as_deref().map_or_else(|| "PRIMARY".into(), quoted)
}

/// A view whose text is ready, and what it reads.
struct Ready<'a> {
    view: &'a View,
    text: String,
    reads: BTreeSet<(String, String)>,
}

fn views(views: &[View], target: Target, changes: &mut Changes) -> Result<Vec<Definition>, String> {
    let (mut ready, mut gone) = (Vec::new(), BTreeSet::new());
    // In a query `_utf8mb4` says a collation, too, and does no harm.
    let rules = Foreign { bare_texts: false, ..target.rules() };
    for view in views {
        let key = (view.shown.database.clone(), view.shown.name.clone());
        let place = place("view", &view.shown);
        if let Some(why) = &view.broken {
            changes.add(&place, &format!("it is left out, since it cannot be read: {why}"));
            gone.insert(key);
            continue;
        }
        let tree = parsed(&view.shown, "view")?;
        let Statement::CreateView(created) = &*tree else {
            return Err(unreadable(&view.shown, "view", "it is another statement"));
        };
        let (query, met) = for_server(&created.query, &rules);
        if let Some(lack) = target.lacks(&met) {
            changes.add(&place, &format!("it is left out: {} has no {lack}", target.title()));
            gone.insert(key);
            continue;
        }
        note_collations(&met, target, &place, changes);
        let text = match target {
            Target::Rauk => view.shown.create.clone(),
            _ => create_view(created, &view.shown.name, &query),
        };
        let home = &view.shown.database;
        let reads = met.tables.into_iter().map(|(database, name)| (database.unwrap_or_else(|| home.clone()), name));
        ready.push(Ready { view, text, reads: reads.filter(|read| *read != key).collect() });
    }
    let mut left: BTreeSet<(String, String)> = ready.iter().map(|ready| key(ready)).collect();
    let mut ordered = Vec::with_capacity(ready.len());
    loop {
        let before = ready.len();
        let mut later = Vec::new();
        for one in ready {
            if let Some((database, name)) = one.reads.iter().find(|read| gone.contains(*read)) {
                let text = format!("it is left out, since it reads {database}.{name}, which is left out");
                changes.add(&place("view", &one.view.shown), &text);
                left.remove(&key(&one));
                gone.insert(key(&one));
            } else if one.reads.iter().any(|read| left.contains(read)) {
                later.push(one);
            } else {
                left.remove(&key(&one));
                ordered.push(one);
            }
        }
        let stuck = later.len() == before;
        ready = later;
        if ready.is_empty() {
            break;
        }
        // Only a common table with the name of a view looks like a circle; such views come as they are.
        if stuck {
            let first = ready.remove(0);
            left.remove(&key(&first));
            ordered.push(first);
        }
    }
    let definition = |one: Ready<'_>| Definition {
        database: one.view.shown.database.clone(),
        name: one.view.shown.name.clone(),
        text: one.text,
        columns: Vec::new(),
        order: Vec::new(),
        collation: Some(target.collation(&one.view.collation)),
    };
    Ok(ordered.into_iter().map(definition).collect())
}

fn key(ready: &Ready<'_>) -> (String, String) {
    (ready.view.shown.database.clone(), ready.view.shown.name.clone())
}

fn create_view(view: &CreateView, name: &str, query: &str) -> String {
    let algorithm = match view.algorithm {
        None | Some(ViewAlgorithm::Undefined) => "UNDEFINED",
        Some(ViewAlgorithm::Merge) => "MERGE",
        Some(ViewAlgorithm::Temptable) => "TEMPTABLE",
    };
    let definer = match &view.definer {
        Some(definer) if !definer.user.is_empty() => {
            format!(" DEFINER={}@{}", quoted(&definer.user), quoted(&definer.host))
        }
        _ => String::new(),
    };
    let security = match view.security {
        Some(ViewSecurity::Invoker) => "INVOKER",
        _ => "DEFINER",
    };
    let columns: Vec<String> = view.columns.iter().map(|name| quoted(name)).collect();
    let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(",")) };
    let check = match view.check {
        ViewCheck::None => "",
        ViewCheck::Local => " WITH LOCAL CHECK OPTION",
        ViewCheck::Cascaded => " WITH CASCADED CHECK OPTION",
    };
    let name = quoted(name);
    format!("CREATE ALGORITHM={algorithm}{definer} SQL SECURITY {security} VIEW {name}{columns} AS {query}{check}")
}
