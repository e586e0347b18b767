//! Random tables: all column types that Rauk has, collations, NULLs, defaults, keys of all shapes, generated columns, CHECK constraints and foreign keys
//! to tables before.
//!
//! A schema is data, so that the shrinker can take columns, keys and rows away and print what is left. A seed decides
//! two things for all of its statements: *variants* (text that differs only by case, accent or trailing spaces; most
//! seeds have none, since then which of two equal texts a GROUP BY shows does not matter), and *newest* (most texts in
//! `utf8mb4_0900_ai_ci`; MariaDB 10.11 has another collation in its place).

use crate::data;
use crate::dice::Dice;
use crate::tree::Class;

#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub tables: Vec<Table>,
    pub variants: bool,
    pub newest: bool,
    /// One table has a few hundred rows: more than one batch of an operator.
    pub large: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    pub keys: Vec<Key>,
    /// Conditions of CHECK constraints.
    pub checks: Vec<String>,
    pub foreign: Vec<Foreign>,
    /// Literals; a row that a server refuses is taken out when the tables are filled.
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub kind: &'static Kind,
    pub nullable: bool,
    /// Empty for the default of the database.
    pub collation: &'static str,
    pub default: Option<String>,
    /// What it is computed from, and VIRTUAL or STORED.
    pub generated: Option<(String, &'static str)>,
}

/// A foreign key of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    pub column: String,
    pub parent: String,
    pub parent_column: String,
    pub on_delete: &'static str,
    pub on_update: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub primary: bool,
    pub unique: bool,
    pub hash: bool,
    pub name: String,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub column: String,
    pub prefix: Option<u32>,
    pub descending: bool,
}

/// A column type.
#[derive(Debug, PartialEq)]
pub struct Kind {
    pub sql: &'static str,
    pub class: Class,
    weight: u32,
    /// Keys on it need a length.
    pub long: bool,
}

const fn kind(sql: &'static str, class: Class, weight: u32) -> Kind {
    Kind { sql, class, weight, long: false }
}

pub const KINDS: &[Kind] = &[
    kind("INT", Class::Integer, 30),
    kind("BIGINT", Class::Integer, 8),
    kind("SMALLINT", Class::Integer, 5),
    kind("TINYINT", Class::Integer, 4),
    kind("MEDIUMINT", Class::Integer, 2),
    kind("INT UNSIGNED", Class::Integer, 4),
    kind("TINYINT UNSIGNED", Class::Integer, 2),
    kind("BIGINT UNSIGNED", Class::Integer, 2),
    kind("BOOL", Class::Integer, 2),
    kind("DECIMAL(10,2)", Class::Decimal, 8),
    kind("DECIMAL(5,0)", Class::Decimal, 2),
    kind("DECIMAL(30,10)", Class::Decimal, 2),
    kind("DECIMAL(8,3) UNSIGNED", Class::Decimal, 1),
    kind("DOUBLE", Class::Double, 5),
    kind("DOUBLE(8,2)", Class::Double, 1),
    kind("FLOAT", Class::Double, 2),
    kind("VARCHAR(20)", Class::Text, 18),
    kind("CHAR(6)", Class::Text, 6),
    kind("VARCHAR(300)", Class::Text, 2),
    Kind { sql: "TEXT", class: Class::Text, weight: 4, long: true },
    Kind { sql: "TINYTEXT", class: Class::Text, weight: 1, long: true },
    Kind { sql: "LONGTEXT", class: Class::Text, weight: 1, long: true },
    kind("VARBINARY(10)", Class::Binary, 3),
    kind("BINARY(4)", Class::Binary, 2),
    Kind { sql: "BLOB", class: Class::Binary, weight: 1, long: true },
    kind("DATE", Class::Date, 7),
    kind("DATETIME", Class::DateTime, 5),
    kind("DATETIME(3)", Class::DateTime, 1),
    kind("DATETIME(6)", Class::DateTime, 1),
    kind("TIMESTAMP", Class::DateTime, 2),
    kind("TIME", Class::Time, 3),
    kind("TIMESTAMP(3)", Class::DateTime, 1),
    kind("TIME(2)", Class::Time, 1),
    kind("JSON", Class::Json, 1),
    kind("ENUM('b', 'ab', 'a', 'x', '10')", Class::Text, 5),
    kind("SET('ab', 'x', 'b', '7')", Class::Text, 4),
    kind("YEAR", Class::Integer, 3),
    kind("BIT(10)", Class::Integer, 3),
];

/// Of text columns; the empty one is the database's `utf8mb4_unicode_ci`.
const COLLATIONS: &[(&str, u32)] =
    &[("", 85), ("utf8mb4_bin", 6), ("utf8mb4_general_ci", 5), ("utf8mb4_unicode_ci", 4)];

/// MySQL 8's default.
pub const NEWEST: &str = "utf8mb4_0900_ai_ci";

impl Schema {
    pub fn random(seed: u64) -> Schema {
        let mut dice = Dice::new(seed, 0);
        let variants = dice.chance(0.3);
        let newest = dice.chance(0.1);
        let large = dice.chance(0.04);
        let count = dice.between(2, 4);
        let mut tables: Vec<Table> = Vec::new();
        for n in 1..=count {
            let table = Table::random(&mut dice, format!("t{n}"), (variants, newest, large && n == 1));
            tables.push(table);
        }
        // Drawn behind the tables, so that seeds keep the tables that they had.
        let mut dice = Dice::new(seed, 1 << 41);
        if dice.chance(0.35) {
            add_foreign_keys(&mut dice, &mut tables);
        }
        Schema { tables, variants, newest, large }
    }

    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

impl Table {
    fn random(dice: &mut Dice, name: String, (variants, newest, large): (bool, bool, bool)) -> Table {
        let count = dice.between(2, 6) as usize;
        let mut columns: Vec<Column> =
            (0..count).map(|i| Column::random(dice, char::from(b'a' + i as u8).to_string(), newest)).collect();
        if dice.chance(0.6) {
            columns[0].kind = &KINDS[0];
            columns[0].collation = "";
            columns[0].nullable = false;
            columns[0].default = None;
        }
        let mut keys = keys(dice, &mut columns);
        let checks = if dice.chance(0.2) { check(dice, &columns).into_iter().collect() } else { vec![] };
        if dice.chance(0.25)
            && let Some(generated) = generated(dice, &columns)
        {
            if dice.chance(0.5) {
                let parts = vec![generated.part(dice, false)];
                keys.push(Key { primary: false, unique: false, hash: false, name: "kg".into(), parts });
            }
            columns.push(generated);
        }
        let rows = match dice.below(20) {
            _ if large => dice.between(150, 400),
            0 => 0,
            1..=2 => dice.between(1, 2),
            3..=16 => dice.between(3, 14),
            _ => dice.between(20, 45),
        };
        let row = |dice: &mut Dice, n: i64| {
            let value = |(i, column): (usize, &Column)| match i {
                // Numbers in a row make most rows acceptable to a primary key.
                0 if column.kind.sql == "INT" && dice.chance(0.9) => n.to_string(),
                _ => data::value(dice, column, variants),
            };
            columns.iter().enumerate().map(value).collect()
        };
        let rows = (1..=rows).map(|n| row(dice, n)).collect();
        Table { name, columns, keys, checks, foreign: vec![], rows }
    }

    /// The columns that take values.
    pub fn base(&self) -> Vec<&Column> {
        self.columns.iter().filter(|column| column.generated.is_none()).collect()
    }

    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The column is in a primary or unique key.
    pub fn is_unique_part(&self, column: &str) -> bool {
        self.keys.iter().any(|key| (key.primary || key.unique) && key.parts.iter().any(|part| part.column == column))
    }

    pub fn primary(&self) -> Option<&Key> {
        self.keys.iter().find(|key| key.primary)
    }

    pub fn create(&self) -> String {
        let mut lines: Vec<String> = self.columns.iter().map(Column::definition).collect();
        lines.extend(self.keys.iter().map(Key::definition));
        lines.extend(self.checks.iter().map(|check| format!("CHECK ({check})")));
        lines.extend(self.foreign.iter().map(Foreign::definition));
        format!("CREATE TABLE {} ({})", self.name, lines.join(", "))
    }

    /// One statement for these rows; nothing if there are none.
    pub fn insert(&self, rows: &[Vec<String>]) -> Option<String> {
        let rows: Vec<String> = rows.iter().map(|row| format!("({})", row.join(", "))).collect();
        (!rows.is_empty()).then(|| format!("INSERT INTO {} VALUES {}", self.name, rows.join(", ")))
    }
}

impl Column {
    /// It is computed from the column of this name.
    pub fn reads(&self, name: &str) -> bool {
        let words = |(text, _): &(String, &str)| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
        self.generated.as_ref().is_some_and(words)
    }

    fn random(dice: &mut Dice, name: String, newest: bool) -> Column {
        let kind = dice.weighted(KINDS, |kind| kind.weight).expect("kinds weigh something");
        let collation = match kind.class {
            Class::Text if newest && dice.chance(0.8) => NEWEST,
            Class::Text => dice.weighted(COLLATIONS, |(_, weight)| *weight).expect("collations weigh something").0,
            _ => "",
        };
        let nullable = dice.chance(0.75);
        let default = match kind.class {
            Class::Integer if dice.chance(0.15) => Some("5".to_string()),
            Class::Text if !kind.long && dice.chance(0.15) => Some("'ab'".to_string()),
            Class::Decimal if dice.chance(0.1) => Some("1.5".to_string()),
            Class::Date if dice.chance(0.15) => Some("'2020-01-01'".to_string()),
            Class::Time if dice.chance(0.15) => Some("'10:30:15'".to_string()),
            _ => None,
        };
        Column { name, kind, nullable, collation, default, generated: None }
    }

    pub fn class(&self) -> Class {
        self.kind.class
    }

    fn definition(&self) -> String {
        let mut text = format!("{} {}", self.name, self.kind.sql);
        if !self.collation.is_empty() {
            text += &format!(" COLLATE {}", self.collation);
        }
        if let Some((expression, storage)) = &self.generated {
            return format!("{text} AS ({expression}) {storage}");
        }
        text += if self.nullable { " NULL" } else { " NOT NULL" };
        if let Some(default) = &self.default {
            text += &format!(" DEFAULT {default}");
        }
        text
    }

    fn part(&self, dice: &mut Dice, primary: bool) -> Part {
        let is_long = self.kind.long;
        let may_prefix = matches!(self.kind.sql, "VARCHAR(20)" | "CHAR(6)" | "VARBINARY(10)") && !primary;
        let prefix = (is_long || may_prefix && dice.chance(0.2)).then(|| dice.between(1, 4) as u32);
        Part { column: self.name.clone(), prefix, descending: dice.chance(0.1) }
    }
}

impl Foreign {
    fn definition(&self) -> String {
        let Foreign { column, parent, parent_column, on_delete, on_update } = self;
        format!(
            "FOREIGN KEY ({column}) REFERENCES {parent} ({parent_column}) ON DELETE {on_delete} ON UPDATE {on_update}"
        )
    }
}

impl Key {
    fn definition(&self) -> String {
        let part = |part: &Part| {
            let prefix = part.prefix.map_or(String::new(), |n| format!("({n})"));
            format!("{}{prefix}{}", part.column, if part.descending { " DESC" } else { "" })
        };
        let parts: Vec<String> = self.parts.iter().map(part).collect();
        let hash = if self.hash { " USING HASH" } else { "" };
        match (self.primary, self.unique) {
            (true, _) => format!("PRIMARY KEY ({})", parts.join(", ")),
            (_, true) => format!("UNIQUE KEY {} ({}){hash}", self.name, parts.join(", ")),
            _ => format!("KEY {} ({}){hash}", self.name, parts.join(", ")),
        }
    }
}

/// A primary key for most tables, up to three others.
fn keys(dice: &mut Dice, columns: &mut [Column]) -> Vec<Key> {
    let mut keys = Vec::new();
    let key =
        |parts: Vec<Part>, n: usize| Key { primary: false, unique: false, hash: false, name: format!("k{n}"), parts };
    if dice.chance(0.85) {
        let second = dice.chance(0.2).then(|| dice.below(columns.len())).filter(|i| *i != 0);
        let chosen: Vec<usize> = [Some(0), second].into_iter().flatten().collect();
        let fits = |i: &usize| !columns[*i].kind.long && columns[*i].class() != Class::Json;
        if chosen.iter().all(fits) {
            let parts = chosen.iter().map(|i| columns[*i].part(dice, true)).collect();
            for i in chosen {
                columns[i].nullable = false;
            }
            keys.push(Key { primary: true, ..key(parts, 0) });
        }
    }
    for n in 1..=dice.below(4) {
        let mut parts: Vec<Part> = Vec::new();
        for _ in 0..=dice.below(3) {
            let column = dice.pick(columns);
            if column.class() != Class::Json && parts.iter().all(|part| part.column != column.name) {
                parts.push(column.part(dice, false));
            }
        }
        if !parts.is_empty() {
            // The beginning of a CHAR has the spaces of its middle, which InnoDB passes over at its end under NO PAD, and
            // Rauk does not (docs/sql.md).
            let unique = dice.chance(0.35) && !parts.iter().any(|part| is_beginning_without_pad(part, columns));
            // A unique HASH key of a prefix is of whole values in MariaDB.
            let hash = dice.chance(0.1) && !parts.iter().any(|part| part.prefix.is_some());
            keys.push(Key { unique, hash, ..key(parts, n) });
        }
    }
    keys
}

/// The first letters of a CHAR under the collation that adds no spaces.
fn is_beginning_without_pad(part: &Part, columns: &[Column]) -> bool {
    let is_char = |column: &Column| column.kind.sql.starts_with("CHAR(") && column.collation == NEWEST;
    part.prefix.is_some() && columns.iter().any(|column| column.name == part.column && is_char(column))
}

/// Columns of the same type become foreign keys to a column that a key of their parent begins with. What an action writes is read by no generated column
/// and no CHECK, since these are refused in different ways (MySQL 8: 3104, 3823). None is to the table itself: which of its rows a statement comes to first,
/// a cascade or the row's own turn, decides how many are counted and what RESTRICT refuses, and no order is promised.
fn add_foreign_keys(dice: &mut Dice, tables: &mut [Table]) {
    const ACTIONS: &[&str] = &["RESTRICT", "NO ACTION", "CASCADE", "CASCADE", "CASCADE", "SET NULL", "SET NULL"];
    for child in 1..tables.len() {
        for _ in 0..dice.between(0, 2) {
            let parent = dice.below(child);
            let name = tables[parent].name.clone();
            let key = match tables[parent].keys.iter().filter(|key| !key.hash).nth(dice.below(3)) {
                Some(key) if key.parts[0].prefix.is_none() && !key.parts[0].descending => key.parts[0].column.clone(),
                _ => continue,
            };
            let referred = tables[parent].column(&key).expect("keys are of columns").clone();
            let has_number = referred.kind.sql.starts_with("FLOAT") || referred.kind.sql.starts_with("DOUBLE");
            if referred.generated.is_some() || referred.kind.long || has_number {
                continue;
            }
            let table = &mut tables[child];
            let at = dice.below(table.columns.len());
            let own = table.columns[at].name.clone();
            let is_read = table.checks.iter().any(|check| check.contains(&own))
                || table.columns.iter().any(|c| c.generated.as_ref().is_some_and(|(text, _)| text.contains(&own)))
                || table.columns[at].generated.is_some();
            let is_key =
                table.keys.iter().any(|k| k.parts.iter().any(|part| part.column == own && part.prefix.is_some()));
            let is_taken = table.foreign.iter().any(|foreign| foreign.column == own);
            if is_read || is_key || is_taken {
                continue;
            }
            let column = &mut table.columns[at];
            if column.kind != referred.kind || column.collation != referred.collation {
                if at == 0 {
                    continue;
                }
                (column.kind, column.collation, column.default) = (referred.kind, referred.collation, None);
                // Values that parents have.
                let values: Vec<String> =
                    (0..table.rows.len()).map(|_| data::value(dice, &table.columns[at], false)).collect();
                table.rows.iter_mut().zip(values).for_each(|(row, value)| row[at] = value);
            }
            let nullable = table.columns[at].nullable;
            let mut action = || *dice.pick(ACTIONS);
            let fits = |action: &'static str| if action == "SET NULL" && !nullable { "CASCADE" } else { action };
            let (on_delete, mut on_update) = (fits(action()), fits(action()));
            // MariaDB refuses what would bring a NULL of the parent to a child that takes none.
            if on_update == "CASCADE" && !nullable && referred.nullable {
                on_update = "RESTRICT";
            }
            table.foreign.push(Foreign { column: own, parent: name, parent_column: key, on_delete, on_update });
        }
    }
}

/// A condition that few rows break.
fn check(dice: &mut Dice, columns: &[Column]) -> Option<String> {
    let column = dice.pick(columns);
    let name = &column.name;
    match (column.class(), dice.below(3)) {
        (Class::Integer, 0) => Some(format!("{name} <> 5")),
        (Class::Integer, 1) => Some(format!("{name} < 11 OR {name} > 13")),
        (Class::Integer, _) => Some(format!("NOT ({name} BETWEEN 6 AND 7)")),
        (Class::Decimal, _) => Some(format!("{name} > -1")),
        (Class::Text, 0) if !column.kind.long => Some(format!("{name} <> 'x'")),
        (Class::Text, _) => Some(format!("CHAR_LENGTH({name}) < 5")),
        (Class::Date, _) => Some(format!("{name} IS NULL OR {name} > '1980-01-01'")),
        _ => None,
    }
}

/// A column that follows from another one; its values fit its type, since MariaDB finds what does not fit when a VIRTUAL one is read.
fn generated(dice: &mut Dice, columns: &[Column]) -> Option<Column> {
    let of = dice.pick(columns);
    let name = &of.name;
    let expression = match (of.class(), dice.below(2)) {
        (Class::Integer, 0) => format!("{name} % 4"),
        (Class::Integer, _) => format!("CASE WHEN {name} > 3 THEN 1 WHEN {name} IS NULL THEN 2 ELSE 3 END"),
        // Of a CHAR it is not deterministic to MariaDB.
        (Class::Text, _) if of.kind.sql != "CHAR(6)" => format!("CHAR_LENGTH({name})"),
        (Class::Date, 0) => format!("YEAR({name})"),
        (Class::Date, _) => format!("MONTH({name})"),
        _ => return None,
    };
    let kind = &KINDS[0];
    let storage = if dice.chance(0.5) { "STORED" } else { "VIRTUAL" };
    Some(Column {
        name: "g".into(),
        kind,
        nullable: true,
        collation: "",
        default: None,
        generated: Some((expression, storage)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_tables_and_all_types_are_met() {
        let mut met = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let schema = Schema::random(seed);
            assert_eq!(schema, Schema::random(seed));
            for table in &schema.tables {
                met.extend(table.columns.iter().map(|column| column.kind.sql));
                assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
            }
        }
        assert_eq!(met.len(), KINDS.len());
    }

    #[test]
    fn no_unique_key_is_of_the_beginning_of_a_char_without_pad() {
        let (mut unique, mut beginnings) = (0, 0);
        for table in (0..2000).flat_map(|seed| Schema::random(seed).tables) {
            for key in table.keys.iter().filter(|key| key.unique) {
                unique += 1;
                let is_open = |part: &Part| is_beginning_without_pad(part, &table.columns);
                assert!(!key.parts.iter().any(is_open), "{}", table.create());
                beginnings += usize::from(key.parts.iter().any(|part| part.prefix.is_some()));
            }
        }
        assert!(unique > 1000 && beginnings > 100, "{unique} unique keys, {beginnings} of beginnings");
    }
}
