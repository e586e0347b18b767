//! The text of a statement.
//!
//! Every operator stands in parentheses and every alias behind AS, so that the text means the tree whatever a parser
//! thinks of precedence. Precedence itself is the matter of the parser's own tests.

use super::{Body, Cte, Expr, From, Item, OrderKey, Query, Select, Source, Statement, WINDOW};
use std::fmt::{Display, Formatter, Result};

/// The name of the view that [`Statement::View`] and [`Statement::ThroughView`] make.
pub const VIEW: &str = "differential_view";
/// The name of a view over that view.
pub const OUTER_VIEW: &str = "differential_outer_view";

fn list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

/// Fills the places of a form: `{0}` … `{9}`, and `{Q}` with a query in parentheses.
fn fill(f: &mut Formatter<'_>, form: &str, arguments: &[Expr], query: Option<&Query>) -> Result {
    let mut rest = form;
    while let Some(at) = rest.find('{') {
        f.write_str(&rest[..at])?;
        let place = rest.as_bytes()[at + 1];
        assert_eq!(rest.as_bytes()[at + 2], b'}', "a place of a form is one character: {form}");
        match (place, query) {
            (b'Q', Some(query)) => write!(f, "({query})")?,
            (b'Q', None) => panic!("a form with a query has one: {form}"),
            (digit, _) => write!(f, "{}", arguments[usize::from(digit - b'0')])?,
        }
        rest = &rest[at + 3..];
    }
    f.write_str(rest)
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expr::Literal { text, .. } => f.write_str(text),
            Expr::Column { table, name, .. } if table.is_empty() => f.write_str(name),
            Expr::Column { table, name, .. } => write!(f, "{table}.{name}"),
            Expr::Form { form, arguments, .. } => fill(f, form, arguments, None),
            Expr::Subquery { form, arguments, query, .. } => fill(f, form, arguments, Some(query)),
            Expr::Window { function, frame, named: true, .. } if frame.is_empty() => {
                write!(f, "{function} OVER {WINDOW}")
            }
            Expr::Window { function, frame, named: true, .. } => write!(f, "{function} OVER ({WINDOW} {frame})"),
            Expr::Window { function, partition, order, frame, named: false } => {
                write!(f, "{function} OVER ({})", window(partition, order, frame))
            }
        }
    }
}

fn window(partition: &[Expr], order: &[OrderKey], frame: &str) -> String {
    let mut parts = Vec::new();
    if !partition.is_empty() {
        parts.push(format!("PARTITION BY {}", joined(partition)));
    }
    if !order.is_empty() {
        parts.push(format!("ORDER BY {}", joined(order)));
    }
    if !frame.is_empty() {
        parts.push(frame.to_string());
    }
    parts.join(" ")
}

fn joined<T: Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl Display for OrderKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}{}", self.expr, if self.descending { " DESC" } else { "" })
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} AS {}", self.expr, self.alias)
    }
}

impl Display for Cte {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.name)?;
        if !self.columns.is_empty() {
            write!(f, " ({})", self.columns.join(", "))?;
        }
        write!(f, " AS ({})", self.query)
    }
}

fn with(f: &mut Formatter<'_>, ctes: &[Cte]) -> Result {
    if ctes.is_empty() {
        return Ok(());
    }
    f.write_str(if ctes.iter().any(|cte| cte.recursive) { "WITH RECURSIVE " } else { "WITH " })?;
    list(f, ctes)?;
    f.write_str(" ")
}

fn order_by(f: &mut Formatter<'_>, order: &[OrderKey]) -> Result {
    if order.is_empty() {
        return Ok(());
    }
    f.write_str(" ORDER BY ")?;
    list(f, order)
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        with(f, &self.with)?;
        match &self.body {
            Body::Select(select) => write!(f, "{select}")?,
            Body::Set { operator, left, right } => write!(f, "({left}) {operator} ({right})")?,
            Body::Values(rows) => {
                f.write_str("VALUES ")?;
                let rows: Vec<String> = rows.iter().map(|row| format!("ROW({})", joined(row))).collect();
                list(f, &rows)?;
            }
            Body::Table(name) => write!(f, "TABLE {name}")?,
        }
        order_by(f, &self.order)?;
        match self.limit {
            Some((0, rows)) => write!(f, " LIMIT {rows}")?,
            Some((skipped, rows)) => write!(f, " LIMIT {rows} OFFSET {skipped}")?,
            None => {}
        }
        if self.lock.is_empty() { Ok(()) } else { write!(f, " {}", self.lock) }
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("SELECT ")?;
        if !self.hints.is_empty() {
            write!(f, "/*+ {} */ ", self.hints)?;
        }
        f.write_str(if self.distinct { "DISTINCT " } else { "" })?;
        list(f, &self.items)?;
        if let Some(from) = &self.from {
            write!(f, " FROM {from}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        if !self.group.is_empty() {
            f.write_str(" GROUP BY ")?;
            list(f, &self.group)?;
            f.write_str(if self.rollup { " WITH ROLLUP" } else { "" })?;
        }
        if let Some(having) = &self.having {
            write!(f, " HAVING {having}")?;
        }
        if let Some((partition, order)) = &self.window {
            write!(f, " WINDOW {WINDOW} AS ({})", window(partition, order, ""))?;
        }
        Ok(())
    }
}

impl Display for From {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            From::Table { name, alias, hint } => {
                f.write_str(name)?;
                if alias != name {
                    write!(f, " AS {alias}")?;
                }
                if hint.is_empty() { Ok(()) } else { write!(f, " {hint}") }
            }
            From::Derived { query, alias, lateral } => {
                write!(f, "{}({query}) AS {alias}", if *lateral { "LATERAL " } else { "" })
            }
            From::Join { kind, left, right, on } => {
                write!(f, "{left} {kind} ")?;
                match right.as_ref() {
                    From::Join { .. } => write!(f, "({right})")?,
                    _ => write!(f, "{right}")?,
                }
                match on {
                    Some(on) => write!(f, " ON {on}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Statement::Query(query) => write!(f, "{query}"),
            Statement::View { query, columns, .. } if columns.is_empty() => write!(f, "CREATE VIEW {VIEW} AS {query}"),
            Statement::View { query, columns, .. } => {
                write!(f, "CREATE VIEW {VIEW} ({}) AS {query}", columns.join(", "))
            }
            Statement::ThroughView { change, .. } => {
                let (before, _) = self.frame().expect("there is a view");
                write!(f, "{before}; {change}")
            }
            Statement::Insert { verb, table, columns, source, on_duplicate, returning } => {
                write!(f, "{verb} INTO {table} ({})", columns.join(", "))?;
                match source {
                    Source::Rows(rows) => {
                        let rows: Vec<String> = rows.iter().map(|row| format!("({})", joined(row))).collect();
                        write!(f, " VALUES {}", rows.join(", "))?;
                    }
                    Source::Query(query) => write!(f, " {query}")?,
                }
                for (i, (column, value)) in on_duplicate.iter().enumerate() {
                    f.write_str(if i == 0 { " ON DUPLICATE KEY UPDATE " } else { ", " })?;
                    write!(f, "{column} = {value}")?;
                }
                give_back(f, returning)
            }
            Statement::Update { with: ctes, ignore, from, set, filter, order, limit } => {
                with(f, ctes)?;
                write!(f, "UPDATE {}{from} SET ", if *ignore { "IGNORE " } else { "" })?;
                let set: Vec<String> = set.iter().map(|(column, value)| format!("{column} = {value}")).collect();
                list(f, &set)?;
                rest(f, filter, order, limit)
            }
            Statement::Delete { with: ctes, ignore, targets, from, filter, order, limit, returning } => {
                with(f, ctes)?;
                write!(f, "DELETE {}", if *ignore { "IGNORE " } else { "" })?;
                if !targets.is_empty() {
                    write!(f, "{} ", targets.join(", "))?;
                }
                write!(f, "FROM {from}")?;
                rest(f, filter, order, limit)?;
                give_back(f, returning)
            }
        }
    }
}

impl Statement {
    /// What is to run before the inner statement and behind it.
    pub fn frame(&self) -> Option<(String, String)> {
        let Statement::ThroughView { table, columns, filter, check, .. } = self else { return None };
        let mut view = format!("CREATE VIEW {VIEW} AS SELECT {} FROM {table}", columns.join(", "));
        if let Some(filter) = filter {
            view += &format!(" WHERE {filter}");
        }
        if !check.is_empty() {
            view += &format!(" {check}");
        }
        Some((view, format!("DROP VIEW {VIEW}")))
    }
}

fn rest(f: &mut Formatter<'_>, filter: &Option<Expr>, order: &[OrderKey], limit: &Option<u64>) -> Result {
    if let Some(filter) = filter {
        write!(f, " WHERE {filter}")?;
    }
    order_by(f, order)?;
    match limit {
        Some(limit) => write!(f, " LIMIT {limit}"),
        None => Ok(()),
    }
}

fn give_back(f: &mut Formatter<'_>, returning: &[Item]) -> Result {
    if returning.is_empty() {
        return Ok(());
    }
    f.write_str(" RETURNING ")?;
    list(f, returning)
}

#[cfg(test)]
mod tests {
    use super::super::Class;
    use super::*;

    #[test]
    fn a_query_is_printed_with_all_its_clauses() {
        let column = |name: &str| Expr::column("t", name, Class::Integer);
        let item = |expr, alias: &str| Item { expr, alias: alias.into() };
        let table = |alias: &str| From::Table { name: "t1".into(), alias: alias.into(), hint: String::new() };
        let inner = Query::of(Body::Select(Box::new(Select::of(vec![item(column("b"), "e2")]))));
        let select = Select {
            from: Some(From::Join {
                kind: "LEFT JOIN",
                left: Box::new(table("t")),
                right: Box::new(From::Join {
                    kind: "JOIN",
                    left: Box::new(table("u")),
                    right: Box::new(table("v")),
                    on: None,
                }),
                on: Some(Expr::form("({0} = {1})", Class::Boolean, vec![column("a"), column("b")])),
            }),
            filter: Some(Expr::Subquery {
                form: "({0} IN {Q})",
                arguments: vec![column("a")],
                query: Box::new(inner),
                class: Class::Boolean,
            }),
            group: vec![column("a")],
            rollup: true,
            ..Select::of(vec![item(Expr::form("SUM({0})", Class::Integer, vec![column("b")]), "e1")])
        };
        let mut query = Query::of(Body::Select(Box::new(select)));
        query.order.push(OrderKey { expr: Expr::column("", "e1", Class::Integer), descending: true });
        query.limit = Some((2, 3));
        assert_eq!(
            query.to_string(),
            "SELECT SUM(t.b) AS e1 FROM t1 AS t LEFT JOIN (t1 AS u JOIN t1 AS v) ON (t.a = t.b) \
             WHERE (t.a IN (SELECT t.b AS e2)) GROUP BY t.a WITH ROLLUP ORDER BY e1 DESC LIMIT 3 OFFSET 2"
        );
    }
}
