//! The expressions of a block as text: its conditions, and what the keys of its tables are made of.

use super::Print;
use super::build::Explain;
use crate::expr::{Expr, Named, Names, SubqueryId};
use crate::physical::model::{Access, Grouping, IndexAccess, KeyCondition, KeyValue, Level, MergeWay, Source};
use rauk_types::{DataType, TableSchema, TypeKind};

/// The names in a block.
pub(super) struct BlockNames<'a, 'p, 'c> {
    pub explain: &'a Explain<'p, 'c>,
    pub sources: &'a [Source],
    pub grouping: Option<&'a Grouping>,
}

impl BlockNames<'_, '_, '_> {
    pub fn text(&self, expr: &Expr) -> Option<String> {
        (self.explain.print != Print::No).then(|| Named { expr, names: self }.to_string())
    }

    /// A conjunction.
    pub fn all<'e>(&self, conditions: impl Iterator<Item = &'e Expr>) -> Option<String> {
        let texts: Vec<String> = conditions.filter_map(|condition| self.text(condition)).collect();
        match texts.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("({})", several.join(" and "))),
        }
    }

    /// What the keys of a table's access are: `a = 1, b >= 2`.
    pub fn keys(&self, level: &Level) -> String {
        if let Access::Merge(merge) = &level.access
            && self.explain.print != Print::No
        {
            let part = |part: &IndexAccess| self.condition(level, part.index, 0, &part.condition).join(" and ");
            let between = if merge.way == MergeWay::Intersect { " and " } else { " or " };
            return merge.parts.iter().map(part).collect::<Vec<String>>().join(between);
        }
        match index_of(&level.access).filter(|_| self.explain.print != Print::No) {
            Some(access) => {
                let mut keys = self.condition(level, access.index, 0, &access.condition);
                if let Access::Skip(skip) = &level.access
                    && let Some(rest) = &skip.rest
                {
                    keys.extend(self.condition(level, access.index, skip.prefix.parts.len(), rest));
                }
                keys.join(", ")
            }
            None => String::new(),
        }
    }

    /// What the keys of an index are, part by part from `first` on.
    fn condition(&self, level: &Level, number: usize, first: usize, condition: &KeyCondition) -> Vec<String> {
        let index = &self.sources[level.table].schema().indexes[number];
        let column = |at: usize| &self.sources[level.table].schema().columns[index.parts[first + at].column].name;
        let value = |value: &KeyValue| match value {
            KeyValue::Value(expr) | KeyValue::NullSafe(expr) => self.text(expr).unwrap_or_default(),
            KeyValue::Null => "NULL".to_string(),
        };
        let list = |values: &[KeyValue]| match values {
            [one] => format!("= {}", value(one)),
            several if several.len() <= 8 => {
                format!("in ({})", several.iter().map(value).collect::<Vec<String>>().join(", "))
            }
            several => format!("in ({} values)", several.len()),
        };
        let equal = condition.equal.iter().enumerate();
        let mut out: Vec<String> = equal.map(|(at, part)| format!("{} {}", column(at), list(&part.values))).collect();
        if let Some(tuples) = &condition.tuples {
            let columns: Vec<&str> = (0..condition.fixed_parts()).map(|at| column(at).as_str()).collect();
            out.push(format!("({}) in ({} rows)", columns.join(", "), tuples.len()));
        }
        if let Some(range) = &condition.range {
            let name = column(condition.fixed_parts());
            for (bounds, sign) in [(&range.low, '>'), (&range.high, '<')] {
                for (expr, inclusive) in bounds {
                    let equal = if *inclusive { "=" } else { "" };
                    out.push(format!("{name} {sign}{equal} {}", self.text(expr).unwrap_or_default()));
                }
            }
            for (pattern, _) in &range.like {
                out.push(format!("{name} like {}", self.text(pattern).unwrap_or_default()));
            }
            if range.low.is_empty() && range.high.is_empty() && range.like.is_empty() {
                out.push(format!("{name} is not null"));
            }
        }
        for any in &condition.any {
            let shown = any.iter().take(8).map(|of| self.condition(level, number, first, of).join(" and "));
            let mut shown: Vec<String> = shown.collect();
            if any.len() > shown.len() {
                shown.push(format!("{} more", any.len() - shown.len()));
            }
            out.push(format!("({})", shown.join(" or ")));
        }
        out
    }
}

impl Names for BlockNames<'_, '_, '_> {
    fn column(&self, table: usize, column: usize) -> String {
        let source = &self.sources[table];
        let schema = source.schema();
        let name = &schema.columns[column].name;
        match self.explain.print {
            Print::Quoted if schema.database.is_empty() => format!("`{}`.`{name}`", source.alias),
            Print::Quoted => format!("`{}`.`{}`.`{name}`", schema.database, source.alias),
            _ => format!("{}.{name}", source.alias),
        }
    }

    fn group_value(&self, number: usize) -> String {
        let Some(grouping) = self.grouping else { return format!("aggregate {number}") };
        let Some(aggregate) = grouping.aggregates.get(number) else {
            let key = number - grouping.aggregates.len();
            return grouping.keys.get(key).and_then(|key| self.text(key)).unwrap_or_else(|| "grouping()".into());
        };
        let arguments: Vec<String> = aggregate.arguments.iter().filter_map(|expr| self.text(expr)).collect();
        let arguments = if arguments.is_empty() { "0".to_string() } else { arguments.join(",") };
        let distinct = if aggregate.distinct { "distinct " } else { "" };
        format!("{}({distinct}{arguments})", aggregate.function.name())
    }

    fn parameter(&self, index: usize) -> String {
        self.explain.outer.get(&index).cloned().flatten().unwrap_or_else(|| "?".to_string())
    }

    fn subquery(&self, id: SubqueryId) -> String {
        self.explain.numbers.get(&id).map_or_else(|| "?".to_string(), i64::to_string)
    }
}

pub(super) fn column_name(source: &Source, column: usize) -> String {
    let schema = source.schema();
    let name = &schema.columns[column].name;
    if schema.database.is_empty() {
        return format!("{}.{name}", source.alias);
    }
    format!("{}.{}.{name}", schema.database, source.alias)
}

pub(super) fn index_of(access: &Access) -> Option<&IndexAccess> {
    match access {
        Access::Primary(access) | Access::Unique(access) | Access::Range(access) => Some(access),
        Access::Skip(skip) => Some(&skip.access),
        Access::Text(text) => Some(&text.access),
        Access::Full { .. } | Access::Virtual { .. } | Access::Rows | Access::Merge(_) => None,
    }
}

/// How many parts of the index its keys have.
pub(super) fn used_parts(access: &Access, of: &IndexAccess, schema: &TableSchema) -> usize {
    match access {
        Access::Skip(skip) => skip.used,
        Access::Text(_) => 0,
        _ if of.condition.is_empty() => schema.indexes[of.index].parts.len(),
        _ => of.condition.used_parts(),
    }
}

/// Bytes of the key parts in use, as MySQL counts them.
pub(super) fn key_length(access: &Access, of: &IndexAccess, schema: &TableSchema) -> u32 {
    let used = used_parts(access, of, schema);
    let lengths = schema
        .key_def(&schema.indexes[of.index])
        .parts
        .into_iter()
        .take(used)
        .map(|part| type_length(&part.ty, part.prefix) + u32::from(schema.columns[part.column].nullable));
    lengths.sum()
}

fn type_length(ty: &DataType, prefix: Option<u32>) -> u32 {
    let fraction = u32::from(ty.scale.min(6)).div_ceil(2);
    match ty.kind {
        TypeKind::Null => 0,
        TypeKind::TinyInt => 1,
        TypeKind::SmallInt => 2,
        TypeKind::MediumInt | TypeKind::Date => 3,
        TypeKind::Int | TypeKind::Float => 4,
        TypeKind::BigInt | TypeKind::Double => 8,
        TypeKind::Time => 3 + fraction,
        TypeKind::Timestamp => 4 + fraction,
        TypeKind::DateTime => 5 + fraction,
        TypeKind::Decimal => {
            let bytes = |digits: u32| digits / 9 * 4 + [0, 1, 1, 2, 2, 3, 3, 4, 4][(digits % 9) as usize];
            bytes(u32::from(ty.precision - ty.scale)) + bytes(u32::from(ty.scale))
        }
        _ if ty.is_plain_number() => ty.row_bytes() as u32,
        TypeKind::Char => prefix.unwrap_or(ty.length) * 4,
        TypeKind::Binary => prefix.unwrap_or(ty.length),
        TypeKind::VarBinary => prefix.unwrap_or(ty.length) + 2,
        _ if ty.is_bytes() => prefix.unwrap_or(ty.length) + 2,
        _ => prefix.unwrap_or(ty.length).saturating_mul(4) + 2,
    }
}
