//! Random reads and writes of a partitioned table and its twin.
//!
//! Conditions are of the forms that leave partitions out (equalities, lists, ranges, row values, ANDs and ORs of these, the
//! partitioning expression itself) and of some that must leave none out. What is drawn has one right answer, whatever
//! order rows are found in: a LIMIT is behind an order by all that is shown, texts that are equal in both cases are
//! shown in one.

use super::model::Partitioning;
use super::step::{MARK, Only, Step, Text, Which, Write};
use super::table::{Column, Kind, Table, some_of, subset};
use crate::dice::Dice;

/// Draws statements over a table as it is now.
pub struct Drawing<'a> {
    pub dice: &'a mut Dice,
    pub table: &'a Table,
    pub partitioning: Option<&'a Partitioning>,
}

const COMPARISONS: &[&str] = &["=", "=", "=", "<", "<=", ">", ">=", "<>", "<=>"];

impl Drawing<'_> {
    fn column(&mut self) -> Column {
        let columns = match self.partitioning {
            Some(partitioning) if self.dice.chance(0.6) => partitioning.columns(),
            _ => (0..self.table.columns.len()).collect(),
        };
        self.table.columns[*self.dice.pick(&columns)].clone()
    }

    /// A condition on the columns of the table with this alias and a dot, or nothing.
    fn condition(&mut self, of: &str, depth: usize) -> String {
        if depth > 0 && self.dice.chance(0.45) {
            let (one, two) = (self.condition(of, depth - 1), self.condition(of, depth - 1));
            return match self.dice.below(9) {
                0..4 => format!("{one} AND {two}"),
                4..8 => format!("({one} OR {two})"),
                _ => format!("NOT ({one})"),
            };
        }
        let column = self.column();
        let name = format!("{of}{}", column.name);
        match self.dice.below(16) {
            0..5 => format!("{name} {} {}", self.dice.pick(COMPARISONS), column.literal(self.dice)),
            5 | 6 => {
                let (low, high) = (column.literal(self.dice), column.literal(self.dice));
                let not = if self.dice.chance(0.1) { "NOT " } else { "" };
                format!("{name} {not}BETWEEN {low} AND {high}")
            }
            7 | 8 => {
                let count = self.dice.between(1, 4);
                let list: Vec<String> = (0..count).map(|_| column.value(self.dice)).collect();
                let not = if self.dice.chance(0.1) { "NOT " } else { "" };
                format!("{name} {not}IN ({})", list.join(", "))
            }
            9 => format!("{name} IS {}NULL", if self.dice.chance(0.3) { "NOT " } else { "" }),
            10 | 11 => self.row_values(of),
            12 => self.odd(&column, &name),
            _ => self.by_partitions(of, &column, &name),
        }
    }

    fn row_values(&mut self, of: &str) -> String {
        let columns = subset(self.dice, self.table.columns.len());
        let names: Vec<String> = columns.iter().map(|&at| format!("{of}{}", self.table.columns[at].name)).collect();
        let mut values = || {
            let all: Vec<String> = columns.iter().map(|&at| self.table.columns[at].literal(self.dice)).collect();
            if all.len() > 1 { format!("({})", all.join(", ")) } else { all[0].clone() }
        };
        let (one, two, three) = (values(), values(), values());
        let names = if names.len() > 1 { format!("({})", names.join(", ")) } else { names[0].clone() };
        match self.dice.below(4) {
            0 => format!("{names} = {one}"),
            1 => format!("{names} IN ({one}, {two}, {three})"),
            _ => format!("{names} {} {one}", self.dice.pick(&["<", "<=", ">", ">="])),
        }
    }

    /// Values of other types, and functions.
    fn odd(&mut self, column: &Column, name: &str) -> String {
        let comparison = *self.dice.pick(COMPARISONS);
        let value = match column.kind {
            Kind::Int | Kind::Unsigned | Kind::Big => *self.dice.pick(&[
                "2.5",
                "'3'",
                "-0.5",
                "3.0",
                "1e0",
                "4294967296",
                "-1",
                "99999999999999999999",
                "TRUE",
            ]),
            Kind::Folded | Kind::Binary => {
                *self.dice.pick(&["'a '", "'B%'", "_utf8mb4'k'", "'\u{e1}'", "'zzzzzzzzzzzz'"])
            }
            Kind::Date => {
                *self.dice.pick(&["'2020-06-15 00:00:00'", "'2020-06-15 12:00:00'", "20200229", "DATE'2021-03-01'"])
            }
            Kind::DateTime => {
                *self.dice.pick(&["'2020-01-01'", "20200101000000", "TIMESTAMP'2020-06-15 23:59:59.5'", "'2020-12-31'"])
            }
        };
        if column.kind.is_time() && self.dice.chance(0.4) {
            return format!("YEAR({name}) {comparison} {}", self.dice.between(2019, 2022));
        }
        if matches!(column.kind, Kind::Folded | Kind::Binary) && self.dice.chance(0.4) {
            return format!("{name} LIKE '{}%'", self.dice.pick(&["a", "B", "c", "z", ""]));
        }
        if column.kind == Kind::Int && self.dice.chance(0.3) {
            return format!("{name} + 1 {comparison} {value}");
        }
        format!("{name} {comparison} {value}")
    }

    /// By what decides the partition.
    fn by_partitions(&mut self, of: &str, column: &Column, name: &str) -> String {
        if let (Some(partitioning), "") = (self.partitioning, of) {
            if let (Some((text, values)), true) = (partitioning.expression(), self.dice.chance(0.5)) {
                return format!("{text} {} {}", self.dice.pick(COMPARISONS), self.dice.pick(values));
            }
            let leaves = partitioning.leaves(self.table);
            if let (_, Some(members)) = self.dice.pick(&leaves) {
                return format!("({members})");
            }
        }
        format!("{name} = {}", column.literal(self.dice))
    }

    fn shown(&self, of: &str) -> String {
        let all: Vec<String> =
            self.table.columns.iter().map(|column| column.shown(&format!("{of}{}", column.name))).collect();
        all.join(", ")
    }

    fn only(&mut self) -> Option<Only> {
        let partitioning = self.partitioning?;
        let leaves = partitioning.leaves(self.table);
        let some = some_of(self.dice, &leaves);
        let some = &some[..some.len().min(3)];
        let members: Option<Vec<String>> =
            some.iter().map(|(_, members)| members.as_ref().map(|one| format!("({one})"))).collect();
        let names: Vec<&str> = some.iter().map(|(name, _)| name.as_str()).collect();
        Some(Only { clause: format!("PARTITION ({})", names.join(", ")), members: members?.join(" OR ") })
    }

    pub fn query(&mut self) -> Step {
        let only = if self.dice.chance(0.12) { self.only() } else { None };
        let depth = self.dice.below(3);
        let condition = if self.dice.chance(0.9) { self.condition("", depth) } else { "TRUE".into() };
        let shown = self.shown("");
        let order = |drawing: &mut Self| {
            let columns = subset(drawing.dice, drawing.table.columns.len());
            let way = *drawing.dice.pick(&["", " DESC"]);
            let ordered: Vec<String> =
                columns.iter().map(|&at| format!("{}{way}", drawing.table.columns[at].name)).collect();
            let shown: Vec<String> =
                columns.iter().map(|&at| drawing.table.columns[at].shown(&drawing.table.columns[at].name)).collect();
            (shown.join(", "), ordered.join(", "))
        };
        let sql = match self.dice.below(15) {
            0..4 => format!("SELECT {shown} FROM {MARK} WHERE {condition}"),
            4 | 5 => {
                let (shown, ordered) = order(self);
                let limit = self.dice.between(1, 9);
                let offset = if self.dice.chance(0.3) { " OFFSET 2" } else { "" };
                format!("SELECT {shown} FROM {MARK} WHERE {condition} ORDER BY {ordered} LIMIT {limit}{offset}")
            }
            6 => {
                let column = self.column();
                let (by, other) = (column.shown(&column.name), self.column());
                let name = &other.name;
                let (least, most) = (other.shown(&format!("MIN({name})")), other.shown(&format!("MAX({name})")));
                format!(
                    "SELECT {by}, COUNT(*), COUNT({name}), {least}, {most} FROM {MARK} WHERE {condition} GROUP BY {}",
                    column.name
                )
            }
            7 => {
                let other = self.column();
                let name = &other.name;
                let (least, most) = (other.shown(&format!("MIN({name})")), other.shown(&format!("MAX({name})")));
                format!("SELECT COUNT(*), COUNT(DISTINCT {name}), {least}, {most} FROM {MARK} WHERE {condition}")
            }
            8 => {
                let column = self.column();
                let lock = *self.dice.pick(&["FOR UPDATE", "LOCK IN SHARE MODE"]);
                format!("SELECT {shown} FROM {MARK} WHERE {} = {} {lock}", column.name, column.literal(self.dice))
            }
            9 | 10 => return Step::Query { sql: self.join(), values: Vec::new(), only: None },
            11 => return self.prepared(),
            12 if !self.table.indexes.is_empty() && only.is_none() => {
                let index = self.dice.pick(&self.table.indexes).0.clone();
                format!("SELECT {shown} FROM {MARK} FORCE INDEX ({index}) WHERE {condition}")
            }
            13 if only.is_none() => {
                let (column, comparison) = (self.column().name, *self.dice.pick(COMPARISONS));
                let most = *self.dice.pick(&["MAX", "MIN"]);
                format!(
                    "SELECT {shown} FROM {MARK} WHERE {column} {comparison} (SELECT {most}({column}) FROM t WHERE {condition})"
                )
            }
            _ => {
                let column = self.column();
                format!("SELECT DISTINCT {} FROM {MARK} WHERE {condition}", column.shown(&column.name))
            }
        };
        Step::Query { sql, values: Vec::new(), only }
    }

    fn join(&mut self) -> String {
        let column = self.column();
        let alike: Vec<Column> = self.table.columns.iter().filter(|other| other.kind == column.kind).cloned().collect();
        let (one, two) = (&column.name, self.dice.pick(&alike).name.clone());
        let on = format!("a.{one} = b.{two}");
        let (depth, of) = (self.dice.below(2), *self.dice.pick(&["a.", "b.", "a."]));
        let condition = self.condition(of, depth);
        // The second table is the same, or always the one without partitions.
        let second = if self.dice.chance(0.3) { "t".to_string() } else { MARK.to_string() };
        let shown = format!("{}, {}", self.shown("a."), self.shown("b."));
        match self.dice.below(7) {
            0 | 1 => format!("SELECT {shown} FROM {MARK} a JOIN {second} b ON {on} WHERE {condition}"),
            2 => format!("SELECT {shown} FROM {second} a LEFT JOIN {MARK} b ON {on} AND {condition}"),
            3 => {
                let shown = self.shown("a.");
                let condition = condition.replace("a.", "b.");
                format!(
                    "SELECT {shown} FROM {MARK} a WHERE EXISTS (SELECT * FROM {second} b WHERE {on} AND {condition})"
                )
            }
            4 => {
                let shown = self.shown("a.");
                let condition = condition.replace("a.", "b.");
                format!(
                    "SELECT {shown} FROM {MARK} a WHERE a.{one} IN (SELECT b.{two} FROM {second} b WHERE {condition})"
                )
            }
            5 => format!(
                "SELECT {shown} FROM {second} a JOIN {MARK} b ON {on} AND a.{one} <=> b.{one} WHERE {condition}"
            ),
            _ => {
                let shown = self.shown("a.");
                let condition = condition.replace("b.", "a.");
                format!("SELECT {shown}, (SELECT COUNT(*) FROM {MARK} b WHERE {on}) FROM {MARK} a WHERE {condition}")
            }
        }
    }

    fn prepared(&mut self) -> Step {
        let count = self.dice.between(1, 2);
        let columns: Vec<Column> = (0..count).map(|_| self.column()).collect();
        let form = |drawing: &mut Self, name: &str| match drawing.dice.below(4) {
            0 => format!("{name} >= ?"),
            1 => format!("{name} < ?"),
            _ => format!("{name} = ?"),
        };
        let conditions: Vec<String> = columns.iter().map(|column| form(self, &column.name)).collect();
        let operator = *self.dice.pick(&[" AND ", " OR "]);
        let values = (0..3).map(|_| columns.iter().map(|column| column.value(self.dice)).collect()).collect();
        let sql = format!("SELECT {} FROM {MARK} WHERE {}", self.shown(""), conditions.join(operator));
        Step::Query { sql, values, only: None }
    }

    pub fn write(&mut self) -> Step {
        let plain = |text: String, loose: bool| {
            let text = Text::Plain(text);
            Step::Write(Write { which: Which::Main, text, ignores: false, loose, replaces: false })
        };
        match self.dice.below(20) {
            0..9 => self.insert(Which::Main),
            9..15 => {
                let (set, loose) = self.assignments();
                let depth = self.dice.below(2);
                let condition = self.condition("", depth);
                if let (Some(only), true) = (self.only(), self.dice.chance(0.15)) {
                    let text = Text::Within { before: "UPDATE".into(), behind: format!(" SET {set}"), condition, only };
                    return Step::Write(Write { which: Which::Main, text, ignores: false, loose, replaces: false });
                }
                // Which of two rows gets a key is decided by the order; every row has a partition.
                if self.dice.chance(0.25) && self.partitioning.is_none_or(|now| now.fits(self.table).is_none()) {
                    let order = self.table.whole_order();
                    return plain(format!("UPDATE IGNORE {MARK} SET {set} WHERE {condition} ORDER BY {order}"), false);
                }
                let limited = if self.dice.chance(0.2) { self.limit() } else { String::new() };
                plain(format!("UPDATE {MARK} SET {set} WHERE {condition}{limited}"), loose)
            }
            15 => {
                let (set, loose) = self.assignments();
                let condition = self.condition("a.", 1);
                plain(format!("UPDATE {MARK} a JOIN (SELECT 1 AS one) b SET {set} WHERE {condition}"), loose)
            }
            16 if self.table.columns.len() > 1 => {
                let column = self.column();
                let condition = self.condition("b.", 1);
                plain(
                    format!("DELETE a FROM {MARK} a JOIN {MARK} b ON a.{0} = b.{0} WHERE {condition}", column.name),
                    false,
                )
            }
            17 => self.insert_select(),
            _ => {
                let condition = self.condition("", 1);
                // Few rows go at once, so that many are there.
                let condition = format!("{condition} AND {}", self.condition("", 0));
                if let (Some(only), true) = (self.only(), self.dice.chance(0.15)) {
                    let (before, behind) = ("DELETE FROM".into(), String::new());
                    let text = Text::Within { before, behind, condition, only };
                    return Step::Write(Write {
                        which: Which::Main,
                        text,
                        ignores: false,
                        loose: false,
                        replaces: false,
                    });
                }
                let limited = if self.dice.chance(0.3) { self.limit() } else { String::new() };
                plain(format!("DELETE FROM {MARK} WHERE {condition}{limited}"), false)
            }
        }
    }

    fn limit(&mut self) -> String {
        format!(" ORDER BY {} LIMIT {}", self.table.whole_order(), self.dice.between(1, 4))
    }

    /// `c0 = 5, c1 = c1 + 1`, and whether a unique key's column is among them.
    fn assignments(&mut self) -> (String, bool) {
        let count = if self.dice.chance(0.3) { 2 } else { 1 };
        let columns = subset(self.dice, self.table.columns.len());
        let columns = &columns[..columns.len().min(count)];
        let loose = columns.iter().any(|&at| self.table.is_in_unique_key(at));
        let set = columns.iter().map(|&at| {
            let column = &self.table.columns[at];
            let value = match column.kind {
                Kind::Int | Kind::Big if self.dice.chance(0.3) => format!("{} + 1", column.name),
                Kind::Date | Kind::DateTime if self.dice.chance(0.2) => {
                    format!("{} + INTERVAL 1 MONTH", column.name)
                }
                _ => column.value(self.dice),
            };
            format!("{} = {value}", column.name)
        });
        (set.collect::<Vec<_>>().join(", "), loose)
    }

    pub fn insert(&mut self, which: Which) -> Step {
        // A row that no partition takes is in the way of another in the twin alone, if a key does not tell partitions apart.
        let apart = self.table.globals.is_empty() || which == Which::Other;
        let count = if apart { *self.dice.pick(&[1, 1, 1, 2, 2, 3, 3, 5, 9, 40]) } else { 1 };
        let rows = (0..count).map(|_| self.table.row(self.dice)).collect();
        let (mut before, mut behind, mut ignores) = (format!("INSERT INTO {MARK}"), String::new(), false);
        let mut replaces = false;
        match self.dice.below(10) {
            0..3 => {
                before = format!("INSERT IGNORE INTO {MARK}");
                ignores = true;
            }
            3 | 4 => {
                before = format!("REPLACE INTO {MARK}");
                replaces = true;
            }
            5 | 6 => {
                let column = self.column();
                let value = match self.dice.below(3) {
                    0 => format!("VALUES({})", column.name),
                    _ => column.value(self.dice),
                };
                behind = format!(" ON DUPLICATE KEY UPDATE {} = {value}", column.name);
                replaces = true;
            }
            _ => {}
        }
        let may_name = which == Which::Main && !ignores && self.dice.chance(0.1);
        let only = if may_name { self.only() } else { None };
        let text = Text::Rows { before, rows, behind, only };
        Step::Write(Write { which, text, ignores, loose: false, replaces })
    }

    /// Copies of rows with another value in one column.
    fn insert_select(&mut self) -> Step {
        let changed = self.dice.below(self.table.columns.len());
        let value = self.table.columns[changed].value(self.dice);
        let shown: Vec<String> = (0..self.table.columns.len())
            .map(|at| if at == changed { value.clone() } else { self.table.columns[at].name.clone() })
            .collect();
        let condition = format!("{} AND {}", self.condition("", 0), self.condition("", 0));
        let most = if self.table.globals.is_empty() { 4 } else { 1 };
        let (order, limit) = (self.table.whole_order(), self.dice.between(1, most));
        let text = format!(
            "INSERT IGNORE INTO {MARK} SELECT {} FROM {MARK} WHERE {condition} ORDER BY {order} LIMIT {limit}",
            shown.join(", ")
        );
        let text = Text::Plain(text);
        Step::Write(Write { which: Which::Main, text, ignores: true, loose: false, replaces: false })
    }
}
