//! A statement of MySQL 8 in the words of MariaDB 10.11, where that has no such syntax.
//!
//! `TABLE t` is a SELECT of the table's columns, the rows of `VALUES ROW(…)` are SELECTs under UNION ALL, LAG with a
//! value for the first row is a CASE, ranks of rows without an order have one by a constant, a common table before UPDATE
//! or DELETE stands where it is read, ANY_VALUE of a group key is that key, GROUPING is a number in each of the groupings
//! of a ROLLUP, and a LATERAL table that names nothing around it is a derived table. Rauk is asked the statement itself.
//!
//! What is left out: LATERAL tables that name a table beside them, a ROLLUP with a LIMIT or DISTINCT, common tables of
//! a change that nothing reads; of those Rauk is judged alone. The collation `utf8mb4_0900_ai_ci` is another one in the
//! text that a session sends (`run`).

use crate::known::groupings;
use crate::schema::Schema;
use crate::tree::feature::{Feature, Features, is_correlated};
use crate::tree::visit::{NodeMut, walk_mut};
use crate::tree::{Body, Class, Cte, Expr, From, Item, OrderKey, Query, Select, Statement};

/// What MariaDB is asked; `None` if it has no words for it.
pub fn of(statement: &Statement, schema: &Schema) -> Option<Statement> {
    let features = Features::of(statement);
    let mut other = statement.clone();
    lag_without_default(&mut other);
    ranks_by_constants(&mut other);
    if features.iter().all(Feature::is_in_reference) {
        return Some(other);
    }
    if features.has(Feature::ChangeWith) && !in_place(&mut other) {
        return None;
    }
    if features.has(Feature::Grouping) {
        groupings(&mut other);
    }
    walk_mut(&mut other, &mut |node| match node {
        NodeMut::Query(query) => match &query.body {
            Body::Table(name) => query.body = of_table(name, schema),
            Body::Values(rows) => query.body = of_rows(rows),
            _ => {}
        },
        NodeMut::From(From::Derived { query, lateral, .. }) if *lateral => *lateral = is_correlated(query),
        // A key has no value of one group in a ROLLUP's total.
        NodeMut::Expr(expr) if !features.has(Feature::Rollup) => {
            while let Expr::Form { form: "ANY_VALUE({0})", arguments, .. } = expr {
                *expr = arguments.swap_remove(0);
            }
        }
        _ => {}
    });
    Features::of(&other).iter().all(Feature::is_in_reference).then_some(other)
}

/// LAG with a value for the first row: that value where the row's number is 1.
fn lag_without_default(statement: &mut Statement) {
    walk_mut(statement, &mut |node| {
        let NodeMut::Expr(expr) = node else { return };
        let of_window = |form: &'static str| {
            let mut other = expr.clone();
            let Expr::Window { function, .. } = &mut other else { return None };
            let Expr::Form { form: own @ "LAG({0}, 1, 7)", arguments, .. } = &mut **function else { return None };
            *own = form;
            arguments.truncate(usize::from(form.contains("{0}")));
            Some(other)
        };
        if let (Some(number), Some(before)) = (of_window("ROW_NUMBER()"), of_window("LAG({0})")) {
            *expr = Expr::form("CASE WHEN {0} = 1 THEN 7 ELSE {1} END", expr.class(), vec![number, before]);
        }
    });
}

/// All rows have the same rank where nothing orders them; MariaDB asks for an order (4018).
fn ranks_by_constants(statement: &mut Statement) {
    const RANKS: &[&str] = &["RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()"];
    walk_mut(statement, &mut |node| {
        if let NodeMut::Expr(Expr::Window { function, order, named: false, .. }) = node
            && matches!(&**function, Expr::Form { form, .. } if RANKS.contains(form))
            && order.is_empty()
        {
            order.push(OrderKey { expr: Expr::literal("'a'", Class::Text), descending: false });
        }
    });
}

fn of_table(name: &str, schema: &Schema) -> Body {
    let columns = schema.table(name).map(|table| table.columns.as_slice()).unwrap_or_default();
    let item = |column: &crate::schema::Column| Item {
        expr: Expr::column(name, &column.name, column.class()),
        alias: column.name.clone(),
    };
    let mut select = Select::of(columns.iter().map(item).collect());
    select.from = Some(From::Table { name: name.into(), alias: name.into(), hint: String::new() });
    Body::Select(Box::new(select))
}

fn of_rows(rows: &[Vec<Expr>]) -> Body {
    let select = |row: &Vec<Expr>| {
        let item = |(at, expr): (usize, &Expr)| Item { expr: expr.clone(), alias: format!("column_{at}") };
        Body::Select(Box::new(Select::of(row.iter().enumerate().map(item).collect())))
    };
    let union = |left: Body, right: Body| Body::Set {
        operator: "UNION ALL",
        left: Box::new(Query::of(left)),
        right: Box::new(Query::of(right)),
    };
    rows.iter().map(select).reduce(union).expect("VALUES has a row")
}

/// The common tables of a change as derived tables where they are read. `false`: there is one that nothing reads, whose
/// errors are errors too.
fn in_place(statement: &mut Statement) -> bool {
    let (Statement::Update { with, .. } | Statement::Delete { with, .. }) = statement else { return true };
    let with = std::mem::take(with);
    let mut read: Vec<&str> = Vec::new();
    walk_mut(statement, &mut |node| {
        let NodeMut::From(from) = node else { return };
        let From::Table { name, alias, .. } = &*from else { return };
        // What is put here is visited too, with the tables before it that it reads.
        let Some(cte) = with.iter().find(|cte| cte.name == *name) else { return };
        read.push(&cte.name);
        *from = From::Derived { query: Box::new(rows_of(cte)), alias: alias.clone(), lateral: false };
    });
    with.iter().all(|cte| read.contains(&cte.name.as_str()))
}

/// What the name of a common table ends with that stands where it is read.
pub const IN_PLACE: &str = "_here";

/// `WITH w AS (…) SELECT … FROM w`
fn rows_of(cte: &Cte) -> Query {
    let (name, alias) = (format!("{}{IN_PLACE}", cte.name), format!("{}_rows", cte.name));
    let items = cte.query.first_select().map(|select| select.items.as_slice()).unwrap_or_default();
    let item = |(at, item): (usize, &Item)| {
        let column = cte.columns.get(at).unwrap_or(&item.alias);
        Item { expr: Expr::column(&alias, column, item.expr.class()), alias: column.clone() }
    };
    let mut select = Select::of(items.iter().enumerate().map(item).collect());
    select.from = Some(From::Table { name: name.clone(), alias: alias.clone(), hint: String::new() });
    let mut own = Statement::Query(cte.query.clone());
    walk_mut(&mut own, &mut |node| {
        // A recursive table reads itself.
        if let NodeMut::From(From::Table { name: read, .. }) = node
            && *read == cte.name
        {
            *read = name.clone();
        }
    });
    let Statement::Query(query) = own else { unreachable!("it was made above") };
    let mut whole = Query::of(Body::Select(Box::new(select)));
    whole.with.push(Cte { name, columns: cte.columns.clone(), recursive: cte.recursive, query });
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use std::collections::BTreeMap;

    #[test]
    fn most_statements_have_words() {
        let mut counts: BTreeMap<Feature, (u32, u32)> = BTreeMap::new();
        let (mut all, mut lost) = (0, 0);
        for seed in 0..60 {
            let schema = Schema::random(seed);
            for number in 0..50 {
                let one = generate::statement(&schema, seed, number, Features::all());
                let other = of(&one, &schema);
                all += 1;
                lost += u32::from(other.is_none());
                for feature in Features::of(&one).iter().filter(|feature| !feature.is_in_reference()) {
                    let count = counts.entry(feature).or_default();
                    count.0 += 1;
                    count.1 += u32::from(other.is_some());
                }
            }
        }
        assert!(lost * 30 < all, "{lost} of {all} statements are not said: {counts:?}");
        for feature in [Feature::TableStatement, Feature::ValuesStatement, Feature::ChangeWith, Feature::AnyValue] {
            let (met, said) = counts[&feature];
            assert!(said * 2 > met, "{}: {said} of {met}", feature.name());
        }
    }
}
