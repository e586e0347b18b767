//! What a name means in each clause.
//!
//! WHERE and ON see the tables of FROM; the select list too, and its aggregates; GROUP BY prefers columns to aliases of the
//! select list. In HAVING a name is a grouped column first, then an alias, then any column. ORDER BY takes a name by itself as an
//! alias first (the select binder does that) and inside of expressions as a column first. Inside of an aggregate a column always
//! goes before an alias.
//! Column names compare without case, table names and aliases with case, as MySQL does on Linux.

use super::model::Source;
use crate::expr::{self, Aggregate, BindContext, Expr, ExprKind, Resolved, Scope};
use crate::parse::ast::{self, ItemName};
use rauk_types::error::codes;
use rauk_types::{Column, DataType, MysqlError, Value, schema::ColumnDefault};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    FieldList,
    Where,
    On,
    From,
    GroupBy,
    Having,
    OrderBy,
}

impl Clause {
    /// As errors 1052 and 1054 name it.
    pub fn name(self) -> &'static str {
        match self {
            Clause::FieldList => "field list",
            Clause::Where => "where clause",
            Clause::On => "on clause",
            Clause::From => "from clause",
            Clause::GroupBy => "group statement",
            Clause::Having => "having clause",
            Clause::OrderBy => "order clause",
        }
    }
}

/// A column that a bare name or `*` finds.
#[derive(Clone, Debug)]
pub(crate) struct Visible {
    pub name: String,
    pub table: usize,
    pub column: usize,
}

/// An item of the select list that other clauses may name.
pub(crate) struct Alias {
    pub name: String,
    pub expr: Expr,
}

/// The names of one clause.
pub(crate) struct Names<'a> {
    pub sources: &'a [Source],
    /// Tables that qualified names may mean; `None`: all.
    pub tables: Option<&'a [usize]>,
    pub visible: &'a [Visible],
    pub clause: Clause,
    pub aliases: &'a [Alias],
    /// HAVING: the keys of GROUP BY.
    pub grouped: Option<&'a [Expr]>,
    /// How many aggregates are around the name that is looked up.
    aggregates_around: usize,
    /// `None`: aggregates are error 1111.
    pub aggregates: Option<&'a mut Vec<Aggregate>>,
    /// INSERT … ON DUPLICATE KEY UPDATE: what VALUES(column) reads.
    pub inserted: Option<&'a Source>,
    pub context: &'a BindContext,
}

impl<'a> Names<'a> {
    pub fn new(sources: &'a [Source], visible: &'a [Visible], clause: Clause, context: &'a BindContext) -> Self {
        Names {
            sources,
            tables: None,
            visible,
            clause,
            aliases: &[],
            grouped: None,
            aggregates_around: 0,
            aggregates: None,
            inserted: None,
            context,
        }
    }

    pub fn bind(&mut self, expr: &ast::Expr) -> Result<Expr, MysqlError> {
        let context = self.context;
        expr::bind(expr, self, context)
    }

    /// The column that a path names, with no regard to aliases.
    pub fn column(&self, path: &[&str]) -> Result<Option<(usize, usize)>, MysqlError> {
        let mut found = None;
        match path {
            [name] => {
                for visible in self.visible {
                    if visible.name.eq_ignore_ascii_case(name) {
                        if found.is_some_and(|f| f != (visible.table, visible.column)) {
                            return Err(ambiguous(path, self.clause));
                        }
                        found = Some((visible.table, visible.column));
                    }
                }
            }
            [rest @ .., table, name] => {
                for (number, source) in self.sources.iter().enumerate() {
                    if self.tables.is_some_and(|t| !t.contains(&number)) || source.alias != *table {
                        continue;
                    }
                    if let [database] = rest
                        && !source.schema().database.eq(database)
                    {
                        continue;
                    }
                    if let Some(column) = visible_column(source, name) {
                        if found.is_some() {
                            return Err(ambiguous(path, self.clause));
                        }
                        found = Some((number, column));
                    }
                }
            }
            [] => {}
        }
        Ok(found)
    }

    fn resolved(&self, (table, column): (usize, usize)) -> Resolved {
        let source = &self.sources[table];
        let definition = &source.schema().columns[column];
        Resolved::Column { table, column, ty: definition.ty, nullable: definition.nullable || source.null_rows }
    }

    fn alias(&self, path: &[&str]) -> Result<Option<Expr>, MysqlError> {
        let [name] = path else { return Ok(None) };
        let mut found: Option<&Expr> = None;
        for alias in self.aliases {
            if alias.name.eq_ignore_ascii_case(name) {
                if found.is_some_and(|f| *f != alias.expr) {
                    return Err(ambiguous(path, self.clause));
                }
                found = Some(&alias.expr);
            }
        }
        Ok(found.cloned())
    }
}

impl Names<'_> {
    /// The key of GROUP BY that a bare name in HAVING means: a column of that name, or what the select list calls so.
    fn grouped_key(&self, path: &[&str], keys: &[Expr]) -> Result<Option<Expr>, MysqlError> {
        let [name] = path else { return Ok(None) };
        let mut found: Option<&Expr> = None;
        for key in keys {
            let column = match key.kind {
                ExprKind::Column { table, column } if table != expr::AGGREGATES => {
                    Some(self.sources[table].schema().columns[column].name.as_str())
                }
                _ => None,
            };
            let alias = |name: &str| self.aliases.iter().any(|a| a.name.eq_ignore_ascii_case(name) && a.expr == *key);
            // GROUP BY has taken the key for the column and not for a selected expression of its name.
            let hidden = column.is_some_and(|column| {
                self.aliases.iter().any(|a| a.name.eq_ignore_ascii_case(column) && a.expr != *key)
            });
            let matches = column.is_some_and(|column| column.eq_ignore_ascii_case(name)) || !hidden && alias(name);
            if matches {
                if found.is_some_and(|f| f != key) {
                    return Err(ambiguous(path, self.clause));
                }
                found = Some(key);
            }
        }
        Ok(found.cloned())
    }
}

impl Scope for Names<'_> {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        if let Some(keys) = self.grouped.filter(|_| self.aggregates_around == 0) {
            if let Some(expr) = self.grouped_key(path, keys)? {
                return Ok(Resolved::Expression(expr));
            }
            if let Some(expr) = self.alias(path)? {
                return Ok(Resolved::Expression(expr));
            }
        }
        if let Some(found) = self.column(path)? {
            return Ok(self.resolved(found));
        }
        if let Some(expr) = self.alias(path)? {
            return Ok(Resolved::Expression(expr));
        }
        Err(unknown_column(path, self.clause))
    }

    fn aggregate(&mut self, aggregate: Aggregate) -> Result<usize, MysqlError> {
        let Some(aggregates) = &mut self.aggregates else {
            return Err(MysqlError::new(codes::INVALID_GROUP_FUNC_USE, "Invalid use of group function"));
        };
        for argument in &aggregate.arguments {
            let mut nested = false;
            argument.for_each_column(&mut |table, _| nested |= table == expr::AGGREGATES);
            if nested {
                return Err(MysqlError::new(codes::INVALID_GROUP_FUNC_USE, "Invalid use of group function"));
            }
        }
        if let Some(known) = aggregates.iter().position(|a| *a == aggregate) {
            return Ok(known);
        }
        aggregates.push(aggregate);
        Ok(aggregates.len() - 1)
    }

    fn within_aggregate(&mut self, inside: bool) {
        self.aggregates_around = if inside { self.aggregates_around + 1 } else { self.aggregates_around - 1 };
    }

    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError> {
        let source = self.inserted.or_else(|| self.sources.first());
        let Some((source, position)) = source.and_then(|s| visible_column(s, column).map(|p| (s, p))) else {
            return Err(unknown_column(&[column], self.clause));
        };
        let definition = &source.schema().columns[position];
        if self.inserted.is_none() {
            // VALUES(c) outside of ON DUPLICATE KEY UPDATE is NULL.
            return Ok(Resolved::Expression(literal(Value::Null, definition.ty)));
        }
        Ok(Resolved::Column { table: super::model::INSERTED, column: position, ty: definition.ty, nullable: true })
    }

    fn default_value(&mut self, column: &[&str]) -> Result<Expr, MysqlError> {
        let Some((table, position)) = self.column(column)? else {
            return Err(unknown_column(column, self.clause));
        };
        let definition = &self.sources[table].schema().columns[position];
        default_expression(definition, self.context)?.ok_or_else(|| no_default(&definition.name))
    }
}

/// No names at all: LIMIT, and the like.
pub(crate) fn bind_constant(expr: &ast::Expr, clause: Clause, context: &BindContext) -> Result<Expr, MysqlError> {
    Names::new(&[], &[], clause, context).bind(expr)
}

/// The position of a column that users may name.
pub(crate) fn visible_column(source: &Source, name: &str) -> Option<usize> {
    source.schema().visible_columns().iter().position(|c| c.name.eq_ignore_ascii_case(name))
}

pub(crate) fn column_expression(sources: &[Source], table: usize, column: usize) -> Expr {
    let definition = &sources[table].schema().columns[column];
    Expr {
        kind: ExprKind::Column { table, column },
        ty: definition.ty,
        nullable: definition.nullable || sources[table].null_rows,
        coercibility: 2,
    }
}

pub(crate) fn literal(value: Value, ty: DataType) -> Expr {
    let nullable = value.is_null();
    Expr { kind: ExprKind::Literal(value), ty, nullable, coercibility: if nullable { 6 } else { 4 } }
}

/// What DEFAULT means for a column; `None` when it has no default.
pub(crate) fn default_expression(column: &Column, context: &BindContext) -> Result<Option<Expr>, MysqlError> {
    Ok(match &column.default {
        ColumnDefault::None => None,
        // The value keeps the column's type even for TIMESTAMP, so that storing it again changes nothing.
        ColumnDefault::Value(value) => Some(literal(value.clone(), column.ty)),
        ColumnDefault::Now => Some(now_expression(column.ty.scale, context)?),
    })
}

/// `CURRENT_TIMESTAMP(digits)`.
pub(crate) fn now_expression(digits: u8, context: &BindContext) -> Result<Expr, MysqlError> {
    let arguments = if digits > 0 { vec![ast::Expr::number(digits.to_string())] } else { vec![] };
    bind_constant(&ast::Expr::call("CURRENT_TIMESTAMP", arguments), Clause::FieldList, context)
}

pub(crate) fn no_default(column: &str) -> MysqlError {
    MysqlError::new(codes::NO_DEFAULT_FOR_FIELD, format!("Field '{column}' doesn't have a default value"))
}

pub(crate) fn unknown_column(path: &[&str], clause: Clause) -> MysqlError {
    MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{}' in '{}'", path.join("."), clause.name()))
}

fn ambiguous(path: &[&str], clause: Clause) -> MysqlError {
    MysqlError::new(codes::NON_UNIQ, format!("Column '{}' in {} is ambiguous", path.join("."), clause.name()))
}

/// Characters of an alias.
const MAX_ALIAS: usize = 256;

/// Error 1059 for an alias of more than 256 characters.
pub(crate) fn check_alias(alias: &str) -> Result<(), MysqlError> {
    if alias.chars().nth(MAX_ALIAS).is_none() {
        return Ok(());
    }
    Err(MysqlError::new(codes::TOO_LONG_IDENT, format!("Identifier name '{alias}' is too long")))
}

/// The name of a select item: its alias, or the beginning of its text.
pub(crate) fn item_name(name: &ItemName) -> Result<String, MysqlError> {
    match name {
        ItemName::Alias(alias) => {
            check_alias(alias)?;
            Ok(alias.clone())
        }
        ItemName::Text(text) => Ok(text.chars().take(MAX_ALIAS).collect()),
    }
}
