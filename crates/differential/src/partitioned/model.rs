//! What is known of a table's partitions without asking the server: their names, their values, and the condition that a
//! row of each holds.
//!
//! Values are kept as numbers into ascending lists of literals ([`Kind::domain`](super::table::Kind::domain), or those
//! of an expression), so that ranges can be divided, joined and prolonged. [`Partitioning::members`] gives a condition
//! in plain SQL, which the table without partitions can be asked by. KEY has none: how it divides is the server's own.

use super::table::{Kind, Table, some_of};
use crate::dice::Dice;

#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    pub by: By,
    pub sub: Option<Sub>,
    pub partitions: Vec<Partition>,
    /// HASH or KEY by their number, not by names.
    pub counted: bool,
    /// New names have this number.
    pub names: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum By {
    Range(Expression),
    List(Expression),
    RangeColumns(Vec<usize>),
    ListColumns(Vec<usize>),
    Hash { linear: bool, of: Expression },
    Key(Key),
}

/// `LINEAR KEY ALGORITHM = 2 (a, b)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    text: String,
    columns: Vec<usize>,
}

/// HASH or KEY below RANGE or LIST.
#[derive(Clone, Debug, PartialEq)]
pub struct Sub {
    by: Box<By>,
    pub count: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub text: String,
    columns: Vec<usize>,
    /// Values, ascending.
    values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    pub name: String,
    pub values: Values,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of HASH and KEY.
    None,
    Less(Bound),
    /// `None` is NULL.
    In(Vec<Vec<Option<usize>>>),
    Default,
}

/// The upper end of a range: a prefix of the columns has values, the others are MAXVALUE.
pub type Bound = Vec<usize>;

/// MAXVALUE, above all numbers of values.
pub const MOST: usize = usize::MAX;

impl By {
    fn columns(&self) -> &[usize] {
        match self {
            By::Range(of) | By::List(of) | By::Hash { of, .. } => &of.columns,
            By::RangeColumns(columns) | By::ListColumns(columns) => columns,
            By::Key(key) => &key.columns,
        }
    }

    fn text(&self, table: &Table) -> String {
        let linear = |linear: &bool| if *linear { "LINEAR " } else { "" };
        match self {
            By::Range(of) => format!("RANGE ({})", of.text),
            By::List(of) => format!("LIST ({})", of.text),
            By::RangeColumns(columns) => format!("RANGE COLUMNS ({})", table.names(columns)),
            By::ListColumns(columns) => format!("LIST COLUMNS ({})", table.names(columns)),
            By::Hash { linear: is_linear, of } => format!("{}HASH ({})", linear(is_linear), of.text),
            By::Key(key) => key.text.clone(),
        }
    }

    pub fn is_range(&self) -> bool {
        matches!(self, By::Range(_) | By::RangeColumns(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(self, By::List(_) | By::ListColumns(_))
    }

    /// The sizes of the lists of values, one for each column that is looked at.
    pub fn sizes(&self, table: &Table) -> Vec<usize> {
        match self {
            By::Range(of) | By::List(of) => vec![of.values.len()],
            _ => self.columns().iter().map(|&column| table.columns[column].kind.domain().len()).collect(),
        }
    }

    fn literal(&self, table: &Table, part: usize, value: usize) -> String {
        match self {
            By::Range(of) | By::List(of) => of.values[value].clone(),
            _ => table.columns[self.columns()[part]].kind.domain()[value].to_string(),
        }
    }

    /// What is compared with values.
    fn looked_at(&self, table: &Table, part: usize) -> String {
        match self {
            By::Range(of) | By::List(of) => format!("({})", of.text),
            _ => table.columns[self.columns()[part]].name.clone(),
        }
    }

    /// HASH or KEY: the condition of a row in one of `count`.
    fn is_hashed_to(&self, at: usize, count: usize) -> Option<String> {
        let By::Hash { linear, of } = self else { return None };
        let value = format!("COALESCE({}, 0)", of.text);
        Some(match linear {
            false => format!("MOD(ABS({value}), {count}) = {at}"),
            true => {
                let mask = count.next_power_of_two() - 1;
                let half = mask >> 1;
                format!("IF(({value} & {mask}) >= {count}, {value} & {half}, {value} & {mask}) = {at}")
            }
        })
    }

    fn random_hash(dice: &mut Dice, table: &Table, allowed: &[usize], may_imply: bool) -> By {
        let linear = dice.chance(0.4);
        if dice.chance(0.55)
            && let Some(of) = Expression::random(dice, table, allowed)
        {
            return By::Hash { linear, of };
        }
        let columns = some_of(dice, allowed);
        let algorithm = *dice.pick(&["", "", "ALGORITHM = 1 ", "ALGORITHM = 2 "]);
        let linear = if linear { "LINEAR " } else { "" };
        // Without columns it is by the primary key, all of whose columns other unique keys need then.
        let implies = may_imply
            && !table.primary.is_empty()
            && table.primary.iter().all(|column| allowed.contains(column))
            && dice.chance(0.4);
        if implies {
            return By::Key(Key { text: format!("{linear}KEY {algorithm}()"), columns: table.primary.clone() });
        }
        By::Key(Key { text: format!("{linear}KEY {algorithm}({})", table.names(&columns)), columns })
    }
}

impl Expression {
    fn random(dice: &mut Dice, table: &Table, allowed: &[usize]) -> Option<Expression> {
        let usable: Vec<usize> = allowed
            .iter()
            .copied()
            .filter(|&column| table.columns[column].kind.is_number() || table.columns[column].kind.is_time())
            .collect();
        if usable.is_empty() {
            return None;
        }
        let column = *dice.pick(&usable);
        let name = &table.columns[column].name;
        let kind = table.columns[column].kind;
        let numbers = |values: std::ops::RangeInclusive<i64>| values.map(|value| value.to_string()).collect();
        let other = usable.iter().copied().find(|&other| other != column && table.columns[other].kind == Kind::Int);
        if let (Kind::Int, Some(other), true) = (kind, other, dice.chance(0.3)) {
            let text = format!("{name} {} {}", dice.pick(&["+", "-"]), table.columns[other].name);
            return Some(Expression { text, columns: vec![column, other], values: numbers(-6..=9) });
        }
        let (text, values) = match kind {
            Kind::Int | Kind::Unsigned | Kind::Big => {
                let plain = kind.domain().iter().map(|value| value.to_string()).collect();
                match dice.below(6) {
                    0 => (format!("{name} % 5"), numbers(if kind == Kind::Unsigned { 0..=4 } else { -3..=4 })),
                    1 => (format!("{name} DIV 3"), numbers(if kind == Kind::Unsigned { 0..=7 } else { -3..=5 })),
                    2 if kind == Kind::Int => (format!("ABS({name})"), numbers(0..=9)),
                    3 if kind == Kind::Int => (format!("{name} * 2 + 1"), numbers(-6..=12)),
                    _ => (name.clone(), plain),
                }
            }
            _ => match dice.below(9) {
                0 | 1 => {
                    let dates = Kind::Date.domain().iter();
                    (format!("TO_DAYS({name})"), dates.map(|date| format!("TO_DAYS({date})")).collect())
                }
                2 => {
                    let times = kind.domain().iter();
                    (format!("TO_SECONDS({name})"), times.map(|time| format!("TO_SECONDS({time})")).collect())
                }
                3 => (format!("MONTH({name})"), numbers(1..=12)),
                4 => (format!("QUARTER({name})"), numbers(1..=4)),
                5 if kind == Kind::DateTime => (format!("HOUR({name})"), numbers(0..=23)),
                6 => (format!("DAYOFMONTH({name})"), numbers(1..=31)),
                _ => (format!("YEAR({name})"), numbers(2018..=2023)),
            },
        };
        Some(Expression { text, columns: vec![column], values })
    }
}

impl Partitioning {
    pub fn random(dice: &mut Dice, table: &Table, names: usize) -> Partitioning {
        let allowed = table.partitionable();
        let by = match dice.below(10) {
            0..3 if let Some(of) = Expression::random(dice, table, &allowed) => {
                if dice.chance(0.6) {
                    By::Range(of)
                } else {
                    By::List(of)
                }
            }
            0..6 => {
                let columns = some_of(dice, &allowed);
                if dice.chance(0.6) { By::RangeColumns(columns) } else { By::ListColumns(columns) }
            }
            _ => By::random_hash(dice, table, &allowed, true),
        };
        let mut made = Partitioning { by, sub: None, partitions: Vec::new(), counted: false, names };
        if made.by.is_range() {
            let count = dice.between(1, 5) as usize;
            let most = dice.chance(0.5);
            for bound in made.bounds_between(dice, table, None, None, count, most) {
                made.push(Values::Less(bound));
            }
        } else if made.by.is_list() {
            let count = dice.between(1, 4) as usize;
            for values in made.share_out(dice, table, count) {
                made.push(Values::In(values));
            }
            if dice.chance(0.2) {
                made.push(Values::Default);
            }
        } else {
            let count = dice.between(1, 6) as usize;
            made.counted = dice.chance(0.7);
            for at in 0..count {
                match made.counted {
                    true => made.partitions.push(Partition { name: format!("p{at}"), values: Values::None }),
                    false => made.push(Values::None),
                }
            }
        }
        if (made.by.is_range() || made.by.is_list()) && dice.chance(0.35) {
            let by = Box::new(By::random_hash(dice, table, &allowed, false));
            made.sub = Some(Sub { by, count: dice.between(1, 3) as usize });
        }
        made
    }

    /// Another partition behind the others, under a new name.
    pub fn push(&mut self, values: Values) {
        let name = self.new_name();
        self.partitions.push(Partition { name, values });
    }

    pub fn new_name(&mut self) -> String {
        self.names += 1;
        format!("q{}", self.names)
    }

    /// At most `count` ends of ranges above one end and below another, ascending; the last may be MAXVALUE in all columns.
    pub fn bounds_between(
        &self,
        dice: &mut Dice,
        table: &Table,
        low: Option<&Bound>,
        high: Option<&Bound>,
        count: usize,
        most: bool,
    ) -> Vec<Bound> {
        let sizes = self.by.sizes(table);
        let mut bounds: Vec<Bound> = Vec::new();
        for _ in 0..count {
            let mut bound: Bound = sizes.iter().map(|size| dice.below(*size)).collect();
            // Behind MAXVALUE nothing is looked at.
            if dice.chance(0.15) && bound.len() > 1 {
                let first = 1 + dice.below(bound.len() - 1);
                bound[first..].fill(MOST);
            }
            if low.is_none_or(|low| bound > *low) && high.is_none_or(|high| bound < *high) {
                bounds.push(bound);
            }
        }
        if most {
            bounds.push(vec![MOST; sizes.len()]);
        }
        bounds.sort();
        bounds.dedup();
        if bounds.is_empty() && low.is_none() && high.is_none() {
            bounds.push(sizes.iter().map(|size| size / 2).collect());
        }
        bounds
    }

    /// Values that no list has, and NULL among them, for so many lists; lists without values are left out.
    pub fn share_out(&self, dice: &mut Dice, table: &Table, count: usize) -> Vec<Vec<Vec<Option<usize>>>> {
        let sizes = self.by.sizes(table);
        let mut used: Vec<Vec<Option<usize>>> = self.listed();
        let mut lists = vec![Vec::new(); count];
        for _ in 0..count * 4 {
            let value: Vec<Option<usize>> =
                sizes.iter().map(|size| (!dice.chance(0.1)).then(|| dice.below(*size))).collect();
            let nullable = self.by.columns().iter().all(|&column| table.columns[column].nullable);
            if used.contains(&value) || (!nullable && value.contains(&None)) {
                continue;
            }
            used.push(value.clone());
            lists[dice.below(count)].push(value);
        }
        lists.retain(|list| !list.is_empty());
        if lists.is_empty() && self.partitions.is_empty() {
            lists.push(vec![vec![Some(0); sizes.len()]]);
        }
        lists
    }

    /// The values of all lists.
    pub fn listed(&self) -> Vec<Vec<Option<usize>>> {
        let values = self.partitions.iter().filter_map(|partition| match &partition.values {
            Values::In(values) => Some(values.clone()),
            _ => None,
        });
        values.flatten().collect()
    }

    pub fn has_default(&self) -> bool {
        self.partitions.iter().any(|partition| partition.values == Values::Default)
    }

    /// The end of the last range.
    pub fn last_bound(&self) -> Option<&Bound> {
        match &self.partitions.last()?.values {
            Values::Less(bound) => Some(bound),
            _ => None,
        }
    }

    pub fn clause(&self, table: &Table) -> String {
        let mut text = format!("PARTITION BY {}", self.by.text(table));
        if self.counted {
            return format!("{text} PARTITIONS {}", self.partitions.len());
        }
        if let Some(sub) = &self.sub {
            text += &format!(" SUBPARTITION BY {} SUBPARTITIONS {}", sub.by.text(table), sub.count);
        }
        format!("{text} ({})", self.definitions(table, &self.partitions))
    }

    /// As ADD PARTITION has them.
    pub fn definitions(&self, table: &Table, partitions: &[Partition]) -> String {
        let all: Vec<String> = partitions.iter().map(|partition| self.definition(table, partition)).collect();
        all.join(", ")
    }

    fn definition(&self, table: &Table, partition: &Partition) -> String {
        let of_columns = matches!(self.by, By::RangeColumns(_) | By::ListColumns(_));
        let values = match &partition.values {
            Values::None => String::new(),
            Values::Default => " VALUES IN (DEFAULT)".into(),
            Values::Less(bound) if !of_columns && bound[0] == MOST => " VALUES LESS THAN MAXVALUE".into(),
            Values::Less(bound) => {
                let end = |(part, &value): (usize, &usize)| match value {
                    MOST => "MAXVALUE".into(),
                    value => self.by.literal(table, part, value),
                };
                format!(" VALUES LESS THAN ({})", bound.iter().enumerate().map(end).collect::<Vec<_>>().join(", "))
            }
            Values::In(values) => {
                let value = |value: &Vec<Option<usize>>| {
                    let parts = value.iter().enumerate().map(|(part, value)| match value {
                        None => "NULL".into(),
                        Some(value) => self.by.literal(table, part, *value),
                    });
                    let parts = parts.collect::<Vec<_>>().join(", ");
                    if value.len() > 1 { format!("({parts})") } else { parts }
                };
                format!(" VALUES IN ({})", values.iter().map(value).collect::<Vec<_>>().join(", "))
            }
        };
        format!("PARTITION {}{values}", partition.name)
    }

    /// The names of all leaves, with the conditions of their rows where they are known.
    pub fn leaves(&self, table: &Table) -> Vec<(String, Option<String>)> {
        let mut leaves = Vec::new();
        for (at, partition) in self.partitions.iter().enumerate() {
            let members = self.members(table, at);
            match &self.sub {
                None => leaves.push((partition.name.clone(), members)),
                Some(sub) => leaves.extend((0..sub.count).map(|number| {
                    let within = sub.by.is_hashed_to(number, sub.count);
                    let both = members.as_ref().zip(within).map(|(one, two)| format!("({one}) AND ({two})"));
                    (format!("{}sp{number}", partition.name), both)
                })),
            }
        }
        leaves
    }

    /// The condition of a row of one partition; `None`: it is the server's own.
    pub fn members(&self, table: &Table, at: usize) -> Option<String> {
        match &self.partitions[at].values {
            Values::None => self.by.is_hashed_to(at, self.partitions.len()),
            Values::Less(end) => {
                let before = at.checked_sub(1).map(|before| match &self.partitions[before].values {
                    Values::Less(bound) => format!(" AND NOT ({})", self.less(table, bound, 0)),
                    other => unreachable!("{other:?} of a range"),
                });
                Some(format!("({}){}", self.less(table, end, 0), before.unwrap_or_default()))
            }
            Values::In(values) => Some(self.is_one_of(table, values)),
            Values::Default => Some(format!("NOT ({})", self.is_one_of(table, &self.listed()))),
        }
    }

    /// NULL is below all values.
    fn less(&self, table: &Table, bound: &[usize], part: usize) -> String {
        if bound[part] == MOST {
            return "TRUE".into();
        }
        let (looked_at, end) = (self.by.looked_at(table, part), self.by.literal(table, part, bound[part]));
        let below = format!("{looked_at} IS NULL OR {looked_at} < {end}");
        match part + 1 == bound.len() {
            true => below,
            false => format!("{below} OR ({looked_at} = {end} AND ({}))", self.less(table, bound, part + 1)),
        }
    }

    fn is_one_of(&self, table: &Table, values: &[Vec<Option<usize>>]) -> String {
        if values.is_empty() {
            return "FALSE".into();
        }
        let equal = |value: &Vec<Option<usize>>| {
            let parts = value.iter().enumerate().map(|(part, value)| {
                let looked_at = self.by.looked_at(table, part);
                match value {
                    None => format!("{looked_at} IS NULL"),
                    Some(value) => format!("{looked_at} <=> {}", self.by.literal(table, part, *value)),
                }
            });
            parts.collect::<Vec<_>>().join(" AND ")
        };
        values.iter().map(equal).collect::<Vec<_>>().join(" OR ")
    }

    /// The condition of rows that some partition takes; `None`: all are.
    pub fn fits(&self, table: &Table) -> Option<String> {
        match self.partitions.last().map(|partition| &partition.values)? {
            Values::None => None,
            Values::Less(bound) if bound[0] == MOST => None,
            Values::Less(bound) => Some(self.less(table, bound, 0)),
            _ if self.has_default() => None,
            _ => Some(self.is_one_of(table, &self.listed())),
        }
    }

    /// The columns that decide where a row is.
    pub fn columns(&self) -> Vec<usize> {
        let mut columns = self.by.columns().to_vec();
        columns.extend(self.sub.iter().flat_map(|sub| sub.by.columns().iter().copied()));
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// An expression over columns that rows are partitioned by, for conditions.
    pub fn expression(&self) -> Option<(&str, &[String])> {
        match &self.by {
            By::Range(of) | By::List(of) | By::Hash { of, .. } => Some((&of.text, &of.values)),
            _ => None,
        }
    }
}
