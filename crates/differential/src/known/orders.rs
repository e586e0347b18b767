//! The same change in another order of its rows or of its assignments.
//!
//! No manual says in which order rows and assignments of a change are taken, and some answers depend on it: in an
//! UPDATE of several tables an assignment sees its row as the assignments before it have left it, or as it was; a
//! DELETE comes to a parent before or behind the row whose cascade deletes what refers to it, or finds a row gone that
//! a cascade has deleted; an UPDATE gives a row the value that another one had, which a cascade follows; a subquery of
//! an INSERT is computed before or behind the row before it and its cascade. MariaDB is asked in each order of tables and
//! of columns, and in some in which any row may be the first ([`SHUFFLES`]). What is left out: all other orders of rows.

use super::names::Names;
use super::{Kind, Test};
use crate::tree::visit::{self, NodeMut};
use crate::tree::{Body, Class, Expr, From, Item, OrderKey, Query, Select, Source, Statement};

pub const KINDS: &[Kind] = &[Kind {
    name: "the order of a change",
    manual: "https://dev.mysql.com/doc/refman/8.0/en/update.html",
    test: Test::Orders(orders),
}];

/// The change in other orders; none, if nothing of what it does depends on one.
fn orders(statement: &Statement, names: &Names<'_>) -> Vec<Statement> {
    match statement {
        Statement::ThroughView { change, .. } => {
            let through = |change: Statement| {
                let mut whole = statement.clone();
                if let Statement::ThroughView { change: place, .. } = &mut whole {
                    **place = change;
                }
                whole
            };
            orders(change, names).into_iter().map(through).collect()
        }
        Statement::Insert { columns, source: Source::Rows(rows), .. } => of_values(statement, columns, rows, names),
        Statement::Update { from: From::Join { .. }, set, .. } => of_assignments(statement, set),
        Statement::Update { from: From::Table { .. }, order, .. } if order.is_empty() && names.has_foreign_keys() => {
            of_rows(statement, names)
        }
        Statement::Delete { from, order, .. } if order.is_empty() && names.has_foreign_keys() => match from {
            From::Join { .. } => of_tables(statement, from),
            _ => of_rows(statement, names),
        },
        _ => Vec::new(),
    }
}

/// Where the second of two assignments reads what the first one changes: turned round, so that it reads what was
/// before, and reading the first one's value in its place.
fn of_assignments(statement: &Statement, set: &[(Expr, Expr)]) -> Vec<Statement> {
    let [(place, value), (_, second)] = set else { return Vec::new() };
    let mut after = second.clone();
    let mut is_read = false;
    visit::expr(&mut after, &mut |node| {
        if let NodeMut::Expr(expr) = node
            && expr == place
        {
            *expr = value.clone();
            is_read = true;
        }
    });
    if !is_read {
        return Vec::new();
    }
    let with = |assignments: Vec<(Expr, Expr)>| {
        let mut other = statement.clone();
        if let Statement::Update { set, .. } = &mut other {
            *set = assignments;
        }
        other
    };
    vec![with(vec![set[1].clone(), set[0].clone()]), with(vec![set[0].clone(), (set[1].0.clone(), after)])]
}

/// All rows before the first is stored, which a subquery of the next may read, as what its cascade leaves.
fn of_values(statement: &Statement, columns: &[String], rows: &[Vec<Expr>], names: &Names<'_>) -> Vec<Statement> {
    let is_query = |expr: &Expr| matches!(expr, Expr::Subquery { .. });
    if !rows.iter().flatten().any(|value| names.has(value, &is_query)) {
        return Vec::new();
    }
    // DEFAULT is no expression of a SELECT.
    let value = |(at, expr): (usize, &Expr)| match expr {
        Expr::Literal { text, class } if text == "DEFAULT" => {
            let column = names.target()?.column(columns.get(at)?).filter(|column| column.generated.is_none())?;
            match &column.default {
                Some(default) => Some(Expr::literal(default.clone(), *class)),
                None => column.nullable.then(|| Expr::literal("NULL", *class)),
            }
        }
        other => Some(other.clone()),
    };
    let row_values = |row: &Vec<Expr>| row.iter().enumerate().map(value).collect::<Option<Vec<Expr>>>();
    let Some(rows): Option<Vec<Vec<Expr>>> = rows.iter().map(row_values).collect() else { return Vec::new() };
    let select = |row: &Vec<Expr>| {
        let item = |(at, expr): (usize, &Expr)| Item { expr: expr.clone(), alias: format!("value_{at}") };
        Query::of(Body::Select(Box::new(Select::of(row.iter().enumerate().map(item).collect()))))
    };
    let union = |left: Query, right: Query| {
        Query::of(Body::Set { operator: "UNION ALL", left: Box::new(left), right: Box::new(right) })
    };
    let mut other = statement.clone();
    if let (Statement::Insert { source, .. }, Some(query)) = (&mut other, rows.iter().map(select).reduce(union)) {
        *source = Source::Query(query);
    }
    vec![other]
}

/// Each inner join from either side, and the changed tables in either order.
fn of_tables(statement: &Statement, from: &From) -> Vec<Statement> {
    let with = |from: From, is_turned: bool| {
        let mut other = statement.clone();
        if let Statement::Delete { from: place, targets, .. } = &mut other {
            *place = from;
            if is_turned {
                targets.reverse();
            }
        }
        other
    };
    let ways = ways(from);
    [false, true].into_iter().flat_map(|turned| ways.iter().map(move |way| with(way.clone(), turned))).collect()
}

fn ways(from: &From) -> Vec<From> {
    let From::Join { kind, left, right, on } = from else { return vec![from.clone()] };
    let mut found = Vec::new();
    for left in ways(left) {
        let join = |kind, left: &From, right: &From| From::Join {
            kind,
            left: Box::new(left.clone()),
            right: Box::new(right.clone()),
            on: on.clone(),
        };
        if kind.starts_with("LEFT") || kind.starts_with("RIGHT") {
            found.push(join(kind, &left, right));
            continue;
        }
        found.push(join("STRAIGHT_JOIN", &left, right));
        found.push(join("STRAIGHT_JOIN", right, &left));
    }
    found
}

/// Orders that have nothing to do with the order of their column; NULL stands anywhere.
const SHUFFLES: &[&str] = &[
    "MD5(CONCAT('a', COALESCE({0}, '')))",
    "MD5(CONCAT('b', COALESCE({0}, '')))",
    "MD5(CONCAT('c', COALESCE({0}, '')))",
    "MD5(CONCAT('d', COALESCE({0}, '')))",
    "MD5(CONCAT('e', COALESCE({0}, '')))",
    "MD5(CONCAT('f', COALESCE({0}, '')))",
    "MD5(CONCAT('g', COALESCE({0}, '')))",
    "MD5(CONCAT('h', COALESCE({0}, '')))",
];

/// By each column, upwards, downwards and shuffled.
fn of_rows(statement: &Statement, names: &Names<'_>) -> Vec<Statement> {
    let (Statement::Delete { from: From::Table { alias, .. }, .. }
    | Statement::Update { from: From::Table { alias, .. }, .. }) = statement
    else {
        return Vec::new();
    };
    let columns = names.target().map(|table| table.columns.as_slice()).unwrap_or_default();
    let by = |expr: Expr, descending: bool| {
        let mut other = statement.clone();
        if let Statement::Delete { order, .. } | Statement::Update { order, .. } = &mut other {
            *order = vec![OrderKey { expr, descending }];
        }
        other
    };
    let orders = |column: &crate::schema::Column| {
        let column = || Expr::column(alias, &column.name, column.class());
        let shuffled = SHUFFLES.iter().map(|form| by(Expr::form(form, Class::Text, vec![column()]), false));
        [by(column(), false), by(column(), true)].into_iter().chain(shuffled).collect::<Vec<_>>()
    };
    columns.iter().flat_map(orders).collect()
}
