//! A random table whose rows are partitioned: its columns, its keys, and the values of its rows.
//!
//! Every column has a short list of literals, ascending in the order of its type and collation, no two of which are
//! equal. Ends of ranges and values of lists are taken from it by number; rows have these values, what is equal to them
//! in other letters, and NULL. So that few partitions are empty and many conditions hold, the lists are short.

use crate::dice::Dice;

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub columns: Vec<Column>,
    /// Columns by number; empty: there is no primary key.
    pub primary: Vec<usize>,
    pub uniques: Vec<Vec<usize>>,
    /// Columns of unique keys that are GLOBAL where the table is partitioned.
    pub globals: Vec<Vec<usize>>,
    /// Of secondary indexes, with their names.
    pub indexes: Vec<(String, Vec<usize>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Unsigned,
    Big,
    /// Text whose letters are equal in both cases, and spaces at its end are none.
    Folded,
    Binary,
    Date,
    DateTime,
}

const KINDS: &[(Kind, u32)] = &[
    (Kind::Int, 6),
    (Kind::Unsigned, 2),
    (Kind::Big, 2),
    (Kind::Folded, 3),
    (Kind::Binary, 2),
    (Kind::Date, 4),
    (Kind::DateTime, 3),
];

impl Kind {
    /// Ascending; no two are equal.
    pub fn domain(self) -> &'static [&'static str] {
        match self {
            Kind::Int => &["-7", "-3", "-1", "0", "1", "2", "3", "5", "8", "13", "40"],
            Kind::Unsigned => &["0", "1", "2", "3", "5", "8", "13", "40", "4294967295"],
            Kind::Big => &[
                "-9223372036854775807",
                "-5",
                "-1",
                "0",
                "1",
                "2",
                "3",
                "7",
                "20",
                "5000000000",
                "9223372036854775807",
            ],
            Kind::Folded => &["''", "'a'", "'b'", "'cc'", "'k'", "'m'", "'t'", "'z'"],
            Kind::Binary => &["''", "'A'", "'B'", "'Z'", "'a'", "'b'", "'m'", "'z'"],
            Kind::Date => &[
                "'2019-12-31'",
                "'2020-01-01'",
                "'2020-02-29'",
                "'2020-06-15'",
                "'2020-12-31'",
                "'2021-03-01'",
                "'2022-07-07'",
            ],
            Kind::DateTime => &[
                "'2019-12-31 23:59:59'",
                "'2020-01-01 00:00:00'",
                "'2020-02-29 12:30:00'",
                "'2020-06-15 23:59:59'",
                "'2020-12-31 00:00:01'",
                "'2021-03-01 06:00:00'",
                "'2022-07-07 18:45:10'",
            ],
        }
    }

    /// Other values, also equal to some of the domain.
    fn others(self) -> &'static [&'static str] {
        match self {
            Kind::Int => &["-2147483648", "2147483647", "4", "6", "-2"],
            Kind::Unsigned => &["4", "6", "2147483648"],
            Kind::Big => &["4", "-4", "4294967296"],
            Kind::Folded => &["'A'", "'B'", "'Cc'", "'CC'", "'K'", "'k '", "'M '", "'d'", "'Z'"],
            Kind::Binary => &["'C'", "'c'", "'k'"],
            Kind::Date => &["'2020-03-01'", "'2021-01-01'", "'1999-01-01'", "'2030-10-10'"],
            Kind::DateTime => &["'2020-01-01 00:00:01'", "'2021-01-01 00:00:00'", "'1999-05-05 05:05:05'"],
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Kind::Int => "INT",
            Kind::Unsigned => "INT UNSIGNED",
            Kind::Big => "BIGINT",
            Kind::Folded => "VARCHAR(8) COLLATE utf8mb4_unicode_ci",
            Kind::Binary => "VARCHAR(8) COLLATE utf8mb4_bin",
            Kind::Date => "DATE",
            Kind::DateTime => "DATETIME",
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Unsigned | Kind::Big)
    }

    pub fn is_time(self) -> bool {
        matches!(self, Kind::Date | Kind::DateTime)
    }
}

impl Column {
    /// A value of a row or of a condition, never NULL.
    pub fn literal(&self, dice: &mut Dice) -> String {
        let of = if dice.chance(0.25) { self.kind.others() } else { self.kind.domain() };
        dice.pick(of).to_string()
    }

    /// A value of a row.
    pub fn value(&self, dice: &mut Dice) -> String {
        if self.nullable && dice.chance(0.15) { "NULL".into() } else { self.literal(dice) }
    }

    /// What a query shows of an expression over this column, so that equal texts look the same: which of them a group
    /// shows, or comes first, is left open.
    pub fn shown(&self, expression: &str) -> String {
        if self.kind == Kind::Folded { format!("RTRIM(LOWER({expression}))") } else { expression.to_string() }
    }
}

impl Table {
    pub fn random(dice: &mut Dice) -> Table {
        let count = dice.between(1, 4) as usize;
        let mut columns: Vec<Column> = (0..count)
            .map(|number| Column {
                name: format!("c{number}"),
                kind: dice.weighted(KINDS, |(_, weight)| *weight).expect("some weigh").0,
                nullable: dice.chance(0.7),
            })
            .collect();
        let mut primary = Vec::new();
        if dice.chance(0.6) {
            primary = subset(dice, count);
            primary.iter().for_each(|&column| columns[column].nullable = false);
        }
        let mut uniques = Vec::new();
        if dice.chance(0.3) {
            let unique = subset(dice, count);
            // Rows are partitioned by columns that all keys have.
            if primary.is_empty() || unique.iter().any(|column| primary.contains(column)) {
                uniques.push(unique);
            }
        }
        let globals = if dice.chance(0.25) { vec![subset(dice, count)] } else { Vec::new() };
        let mut indexes = Vec::new();
        if dice.chance(0.6) {
            indexes.push(("k0".to_string(), subset(dice, count)));
        }
        Table { columns, primary, uniques, globals, indexes }
    }

    /// The columns that rows may be partitioned by.
    pub fn partitionable(&self) -> Vec<usize> {
        let keys = || self.uniques.iter().chain(std::iter::once(&self.primary).filter(|key| !key.is_empty()));
        (0..self.columns.len()).filter(|column| keys().all(|key| key.contains(column))).collect()
    }

    pub fn is_in_unique_key(&self, column: usize) -> bool {
        let uniques = self.uniques.iter().chain(&self.globals);
        self.primary.contains(&column) || uniques.into_iter().any(|key| key.contains(&column))
    }

    pub fn names(&self, columns: &[usize]) -> String {
        columns.iter().map(|&column| self.columns[column].name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// What a table that has no partitions changes to be divided: its keys are GLOBAL from then on.
    pub fn keys_to_divide(&self) -> String {
        let changed =
            self.globals.iter().enumerate().map(|(number, key)| {
                format!("DROP KEY g{number}, ADD UNIQUE KEY g{number} ({}) GLOBAL", self.names(key))
            });
        changed.collect::<Vec<_>>().join(", ")
    }

    /// What stands before PARTITION BY, if `divided`; else the whole.
    pub fn create(&self, name: &str, divided: bool) -> String {
        let mut items: Vec<String> = Vec::new();
        for column in &self.columns {
            let nullable = if column.nullable { "NULL" } else { "NOT NULL" };
            items.push(format!("{} {} {nullable}", column.name, column.kind.sql()));
        }
        if !self.primary.is_empty() {
            items.push(format!("PRIMARY KEY ({})", self.names(&self.primary)));
        }
        for (number, unique) in self.uniques.iter().enumerate() {
            items.push(format!("UNIQUE KEY u{number} ({})", self.names(unique)));
        }
        for (number, key) in self.globals.iter().enumerate() {
            let global = if divided { " GLOBAL" } else { "" };
            items.push(format!("UNIQUE KEY g{number} ({}){global}", self.names(key)));
        }
        for (index, columns) in &self.indexes {
            items.push(format!("KEY {index} ({})", self.names(columns)));
        }
        format!("CREATE TABLE {name} ({})", items.join(", "))
    }

    pub fn row(&self, dice: &mut Dice) -> String {
        let values: Vec<String> = self.columns.iter().map(|column| column.value(dice)).collect();
        format!("({})", values.join(", "))
    }

    /// An order in which only equal rows are beside each other in any order.
    pub fn whole_order(&self) -> String {
        let mut items: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let folded = self.columns.iter().filter(|column| column.kind == Kind::Folded);
        items.extend(folded.map(|column| format!("HEX({})", column.name)));
        items.join(", ")
    }
}

/// Some of the numbers below `count`, at least one, in any order.
pub fn subset(dice: &mut Dice, count: usize) -> Vec<usize> {
    let all: Vec<usize> = (0..count).collect();
    some_of(dice, &all)
}

/// Some of the items, at least one, in any order.
pub fn some_of<T: Clone>(dice: &mut Dice, items: &[T]) -> Vec<T> {
    let mut left = items.to_vec();
    let wanted = 1 + dice.below(items.len());
    (0..wanted).map(|_| left.swap_remove(dice.below(left.len()))).collect()
}
