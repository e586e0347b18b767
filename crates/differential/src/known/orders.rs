//! The same change in another order of its rows or of its assignments.
//!
//! No manual says in which order rows and assignments of a change are taken, and some answers depend on it: in an
//! UPDATE of several tables an assignment sees its row as the assignments before it have left it, or IGNORE has stored
//! it, or as it was; a DELETE comes to a parent before or behind the row whose cascade deletes what refers to it, or
//! finds a row gone that a cascade has deleted; an UPDATE gives a row the value that another one had, which a cascade
//! follows; a subquery of an INSERT is computed before or behind the row before it and its cascade; of two assignments of
//! ON DUPLICATE KEY UPDATE that read nothing of each other either may come first; of two rows that are wrong either may be
//! met first. MariaDB is asked in each order of tables and of columns, and in some in which any row may be the first
//! ([`SHUFFLES`]). What is left out: all other orders of rows.

use super::names::Names;
use super::{Kind, Test, places};
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
        Statement::Insert { columns, source, on_duplicate, .. } => {
            let mut others = of_collisions(statement, on_duplicate);
            if let Source::Rows(rows) = source {
                others.extend(of_values(statement, columns, rows, names));
            }
            others
        }
        Statement::Update { from: From::Join { .. }, set, .. } => of_assignments(statement, set, names),
        Statement::Update { from: From::Table { .. }, set, order, .. }
            if order.is_empty()
                && (names.has_foreign_keys() || set.iter().any(|(_, value)| may_leave_its_type(value))) =>
        {
            of_rows(statement, names)
        }
        Statement::Delete { from, order, .. } if order.is_empty() && names.has_foreign_keys() => match from {
            From::Join { .. } => of_tables(statement, from),
            _ => of_rows(statement, names),
        },
        _ => Vec::new(),
    }
}

/// A number may be out of the range of what it is computed in, which IGNORE does not pass over: what is wrong in other rows
/// is not told then.
fn may_leave_its_type(value: &Expr) -> bool {
    match value {
        Expr::Form { arguments, .. } => places::may_fail(value, 1690) || arguments.iter().any(may_leave_its_type),
        _ => false,
    }
}

/// Where the second of two assignments reads what the first one changes: turned round, so that it reads what was
/// before; reading the first one's value in its place; and what IGNORE stores of that where it is NULL and the column takes
/// none.
fn of_assignments(statement: &Statement, set: &[(Expr, Expr)], names: &Names<'_>) -> Vec<Statement> {
    let [(place, value), (own, second)] = set else { return Vec::new() };
    let mut is_read = false;
    let mut reading = |value: &Expr| {
        let mut after = second.clone();
        // In two steps: the value may read the place itself.
        visit::expr(&mut after, &mut |node| {
            if let NodeMut::Expr(expr) = node
                && expr == place
            {
                *expr = Expr::literal(STORED, place.class());
                is_read = true;
            }
        });
        visit::expr(&mut after, &mut |node| {
            if let NodeMut::Expr(expr) = node
                && matches!(expr, Expr::Literal { text, .. } if text == STORED)
            {
                *expr = value.clone();
            }
        });
        (own.clone(), after)
    };
    let mut seconds = vec![reading(value)];
    if names.column(place).is_some_and(|column| !column.nullable) {
        let zero = match place.class() {
            class if class.is_number() => Some(Expr::literal("0", class)),
            class @ Class::Text => Some(Expr::literal("''", class)),
            _ => None,
        };
        let stored = |zero| Expr::form("COALESCE({0}, {1})", place.class(), vec![value.clone(), zero]);
        seconds.extend(zero.map(|zero| reading(&stored(zero))));
    }
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
    let turned = with(vec![set[1].clone(), set[0].clone()]);
    [turned].into_iter().chain(seconds.into_iter().map(|second| with(vec![set[0].clone(), second]))).collect()
}

/// Stands for a value until all its places are found; no literal is written so.
const STORED: &str = "stored";

/// The assignments of ON DUPLICATE KEY UPDATE turned round, where neither reads what another one changes: MariaDB gives
/// the second one of `a = VALUES(b), b = VALUES(a)` bytes that the first has put into a TEXT.
fn of_collisions(statement: &Statement, assignments: &[(String, Expr)]) -> Vec<Statement> {
    let reads_another = |(own, value): &(String, Expr)| {
        let mut found = false;
        visit::expr(&mut value.clone(), &mut |node| {
            if let NodeMut::Expr(Expr::Column { name, .. }) = node {
                found |= assignments.iter().any(|(place, _)| place == name && place != own);
            }
        });
        found
    };
    if assignments.len() < 2 || assignments.iter().any(reads_another) {
        return Vec::new();
    }
    let mut other = statement.clone();
    if let Statement::Insert { on_duplicate, .. } = &mut other {
        on_duplicate.reverse();
    }
    vec![other]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    #[test]
    fn a_second_assignment_reads_what_the_first_one_stores() {
        let a = Expr::column("r1", "a", Class::Integer);
        let place = |name: &str| Expr::column("r1", name, Class::Integer);
        let value = Expr::form("({0} + {1})", Class::Integer, vec![a.clone(), place("c")]);
        let table = |name: &str| Box::new(From::Table { name: name.into(), alias: name.into(), hint: String::new() });
        let statement = Statement::Update {
            with: Vec::new(),
            ignore: false,
            from: From::Join { kind: "JOIN", left: table("r1"), right: table("r2"), on: None },
            set: vec![(a.clone(), value), (place("e"), a)],
            filter: None,
            order: Vec::new(),
            limit: None,
        };
        let schema = Schema::random(1);
        let others = orders(&statement, &Names::of(&statement, &schema));
        let shown: Vec<String> = others.iter().map(Statement::to_string).collect();
        assert_eq!(
            shown,
            [
                "UPDATE r1 JOIN r2 SET r1.e = r1.a, r1.a = (r1.a + r1.c)",
                "UPDATE r1 JOIN r2 SET r1.a = (r1.a + r1.c), r1.e = (r1.a + r1.c)",
            ]
        );
    }
}
