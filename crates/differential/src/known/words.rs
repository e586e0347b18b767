//! What a statement means by MySQL 8's manual, in words that MariaDB understands in the same way.
//!
//! Where the two manuals differ, or MariaDB does not keep to its own, the disputed construct is written otherwise: `(a,
//! b) < (c, d)` as `a < c OR a = c AND b < d`. The difference is known if MariaDB then gives Rauk's answer. So a kind
//! says exactly what the right answer is, and hides nothing else that is wrong in the same statement.
//!
//! Each function changes a statement and says whether there was something to change.

use super::evidence::{begins, is_null};
use super::names::Names;
use super::types::UNSIGNED;
use super::{Kind, Test, functions, joins, layers, texts};
use crate::generate::forms::{AGGREGATES, BITS, CHOICES, STATISTICS};
use crate::schema::Column;
use crate::tree::visit::{self, NodeMut, walk_mut};
use crate::tree::{Body, Class, Expr, From, Item, Query, Select, Statement};

pub const KINDS: &[Kind] = &[
    Kind {
        // What a statement means does not depend on how it is executed. MariaDB contradicts itself.
        name: "MariaDB by another plan",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/switchable-optimizations.html",
        test: Test::Plan,
    },
    Kind {
        // MySQL 8 gives the row of the total also where there are no rows to sum up. MariaDB shows NULL once for a
        // key that is selected twice, and keeps what a key in an expression had in the group before.
        name: "ROLLUP as groupings",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/group-by-modifiers.html",
        test: Test::Words(&[rollup_by_union, rollup_of_least_keys, rollup_in_layers, rollup_of_numbers]),
    },
    Kind {
        // MySQL finds a group key inside of a larger expression, in a list twice, and by its qualified name in
        // HAVING; MariaDB looks for columns alone, and for the last name. Of texts that are equal a server is free to
        // take any for its group.
        name: "group keys in expressions and in HAVING",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/group-by-handling.html",
        test: Test::Words(&[
            keys_as_aggregates,
            all_keys_as_aggregates,
            texts::least_of_groups,
            texts::largest_of_groups,
        ]),
    },
    Kind {
        // A NULL among the rows of a subquery makes what it does not decide unknown. MariaDB forgets it below NOT and
        // IS UNKNOWN, beside dates, and behind MIN and MAX. Beside a set operation it compares as its first part.
        name: "IN, ANY and ALL by existence",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/all-subqueries.html",
        test: Test::Words(&[by_existence, by_existence_outside, by_existence_of_layers, by_derived_sets]),
    },
    Kind {
        // MariaDB says 0 for (NULL, 1) = (2, 1), drops rows of an outer join for which (1, 1) < (12, NULL) is true,
        // mixes collations inside of rows, and joins by `a <=> b` alone where `a = b` is asked for too. A condition of
        // an outer join that only reads the blocks around it takes for true.
        name: "comparisons in other words",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/comparison-operators.html",
        test: Test::Words(&[compared, joins::conditions_of_blocks_around]),
    },
    Kind {
        // A number and a text are compared as DOUBLE, a YEAR and a number as numbers. MariaDB converts what does not
        // change to the type of the column beside it: 2 is not larger than '1.5', and what a YEAR is compared with is
        // a year. A quotient has more digits than it shows, until it is stored or MariaDB compares it.
        name: "compared numbers",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/type-conversion.html",
        test: Test::Words(&[compared_numbers, quotients]),
    },
    Kind {
        // REPLACE with NULL is NULL; FIELD and MAKE_SET pass over a NULL, INTERVAL of NULL is -1, and none of them
        // asks for a row of an outer join that is not NULL. CRC32 of NULL is NULL. TIME_TO_SEC is whole seconds.
        // NULLIF(a, MAX(a)) of a group by `a` is NULL. GREATEST and LEAST of texts compare texts also where a number
        // is asked for. The largest TIME has no fraction. A value that a frame loses is not in BIT_OR any more. A
        // product of DOUBLEs has all its digits where it is counted. Functions of the zero date that is the least of a
        // group are what they are of any zero date: NULL, but 0 of its parts. NULLIF of a BIT is its bytes in a text.
        // What a function gives beside an aggregate is a number for a BIT or YEAR. A time is rounded to a whole number.
        // A DISTINCT count is of its own rows, also where a choice did not ask for it before.
        // BIT_AND and its like take unsigned numbers of 64 bits, also from a DECIMAL.
        name: "functions in other words",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/functions.html",
        test: Test::Words(functions::WORDS),
    },
    Kind {
        // MariaDB shows the sign of a DECIMAL zero, and compares by it.
        name: "zeros without a sign",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/precision-math-decimal-characteristics.html",
        test: Test::Words(&[unsigned_zeros]),
    },
    Kind {
        // MIN and MAX of ENUM and SET compare texts, as both manuals say, and are texts here. MariaDB sorts by
        // number, finds them by number where it has a key, and has their number where it groups.
        name: "MIN and MAX of members",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/aggregate-functions.html",
        test: Test::Words(&[texts_of_members]),
    },
    Kind {
        // A view is its query. MariaDB's keeps the character set of a CAST alone, whose default is another collation,
        // and a key of ROLLUP without the name of its table. And it resolves common tables that nothing reads,
        // without the tables and columns around them.
        name: "views and common tables as they are read",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/derived-table-optimization.html",
        test: Test::Words(&[as_read, without_view]),
    },
    Kind {
        // MariaDB's distance from an unsigned number has no sign, that from a whole number may leave its range, and it
        // parts the rows by a column of a block around.
        name: "windows in other words",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/window-functions-frames.html",
        test: Test::Words(&[windows, windows_of_functions]),
    },
    Kind {
        // A signed and an unsigned integer agree on a BIGINT in MySQL 8, with which a sum may leave its range; on a
        // DECIMAL in MariaDB, as ROUND of a whole one is. It does not see that 0 - -9223372036854775808 leaves it.
        name: "whole numbers of a range",
        manual: "https://dev.mysql.com/doc/refman/8.0/en/out-of-range-and-overflow.html",
        test: Test::Words(&[
            signed_mixes,
            signed_mixes_of_all,
            negative_subtrahends,
            subtrahends_in_steps,
            subtrahends_of_functions,
            whole_rounds,
        ]),
    },
];

/// What became of an expression.
pub(super) enum Step {
    Same,
    /// Another one is in its place.
    Changed,
    /// It is the first argument of the one in its place.
    Wrapped,
}

/// Does something to every expression, each once.
pub(super) fn each(statement: &mut Statement, change: &mut dyn FnMut(&mut Expr) -> Step) -> bool {
    let (mut changed, mut is_done) = (false, false);
    walk_mut(statement, &mut |node| {
        let NodeMut::Expr(expr) = node else { return };
        if std::mem::take(&mut is_done) {
            return;
        }
        match change(expr) {
            Step::Same => {}
            Step::Changed => changed = true,
            Step::Wrapped => (changed, is_done) = (true, true),
        }
    });
    changed
}

pub(super) fn wrap(expr: &mut Expr, form: &'static str) -> Step {
    let class = expr.class();
    let inner = std::mem::replace(expr, Expr::literal("NULL", class));
    *expr = Expr::form(form, class, vec![inner]);
    Step::Wrapped
}

/// Other words for forms, with the same arguments.
pub(super) fn reworded(statement: &mut Statement, words: &[(&'static str, &'static str)]) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form, .. } => match words.iter().find(|(from, _)| from == form) {
            Some((_, to)) => {
                *form = to;
                Step::Changed
            }
            None => Step::Same,
        },
        _ => Step::Same,
    })
}

fn compared(statement: &mut Statement, _: &Names) -> bool {
    reworded(
        statement,
        &[
            ("(({0}, {1}) = ({2}, {3}))", "({0} = {2} AND {1} = {3})"),
            ("(({0}, {1}) IN (({2}, {3}), ({4}, {5})))", "({0} = {2} AND {1} = {3} OR {0} = {4} AND {1} = {5})"),
            ("(({0}, {1}) < ({2}, {3}))", "({0} < {2} OR {0} = {2} AND {1} < {3})"),
            // A quotient has other digits in IN there than beside `=`.
            ("({0} IN ({1}, {2}, {3}))", "({0} = {1} OR {0} = {2} OR {0} = {3})"),
            ("({0} NOT IN ({1}, {2}))", "(NOT ({0} = {1} OR {0} = {2}))"),
            ("({0} <=> {1})", "COALESCE({0} = {1}, {0} IS NULL AND {1} IS NULL)"),
        ],
    )
}

/// A sum of 0 has no sign.
fn unsigned_zeros(statement: &mut Statement, _: &Names) -> bool {
    const SIGNED: &[&str] =
        &["({0} % {1})", "(- {0})", "({0} * {1})", "({0} / {1})", "ROUND({0}, 1)", "TRUNCATE({0}, 1)", "({0} - {1})"];
    each(statement, &mut |expr| match expr {
        Expr::Form { form, class: Class::Decimal, .. } if SIGNED.contains(form) => wrap(expr, "({0} + 0)"),
        _ => Step::Same,
    })
}

/// MIN and MAX of the texts of ENUM and SET.
fn texts_of_members(statement: &mut Statement, names: &Names) -> bool {
    let is_member = |sql: &str| sql.starts_with("ENUM(") || sql.starts_with("SET(");
    each(statement, &mut |expr| match expr {
        Expr::Form { form, arguments, .. } if matches!(*form, "MIN({0})" | "MAX({0})") => {
            if !names.column(&arguments[0]).is_some_and(|column| is_member(column.kind.sql)) {
                return Step::Same;
            }
            *form = if *form == "MIN({0})" { "MIN(CONCAT({0}))" } else { "MAX(CONCAT({0}))" };
            Step::Changed
        }
        _ => Step::Same,
    })
}

/// Numbers that are compared are no columns whose type MariaDB gives to what stands beside them.
pub(super) fn compared_numbers(statement: &mut Statement, names: &Names) -> bool {
    each(statement, &mut |expr| {
        let Expr::Form { class: Class::Boolean, arguments, form } = expr else { return Step::Same };
        let is_comparison = ["=", "<", ">", "BETWEEN", " IN "].iter().any(|operator| form.contains(operator));
        let has_text = arguments.iter().any(|argument| argument.class() == Class::Text);
        if !is_comparison || arguments.len() < 2 {
            return Step::Same;
        }
        let mut changed = false;
        for argument in arguments.iter_mut() {
            let is_value = matches!(argument, Expr::Form { .. } | Expr::Subquery { .. });
            if argument.class().is_number() && (names.column(argument).is_some() || has_text && is_value) {
                wrap(argument, if has_text { "({0} + 0e0)" } else { "({0} + 0)" });
                changed = true;
            }
        }
        if changed { Step::Changed } else { Step::Same }
    })
}

/// Quotients and averages with all their digits, which a factor of as many zeros keeps.
fn quotients(statement: &mut Statement, _: &Names) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form, class: Class::Decimal, .. }
            if matches!(*form, "({0} / {1})" | "AVG({0})" | "AVG(DISTINCT {0})") =>
        {
            wrap(expr, "({0} * 1.000000000)")
        }
        _ => Step::Same,
    })
}

/// A set operation whose rows a value is compared with as a derived table: its columns have the types of all its parts.
fn by_derived_sets(statement: &mut Statement, _: &Names) -> bool {
    let mut number = 0;
    each(statement, &mut |expr| match expr {
        Expr::Subquery { query, .. } if matches!(query.body, Body::Set { .. }) && query.with.is_empty() => {
            **query = layers::around(query, &mut number);
            Step::Changed
        }
        _ => Step::Same,
    })
}

fn by_existence(statement: &mut Statement, _: &Names) -> bool {
    exists(statement, true)
}

/// With the subquery as a derived table.
fn by_existence_outside(statement: &mut Statement, _: &Names) -> bool {
    exists(statement, false)
}

/// With the windows of the subquery in layers, so that the condition may stand in it.
fn by_existence_of_layers(statement: &mut Statement, names: &Names) -> bool {
    layers::in_layers(statement, names) && exists(statement, true)
}

/// IN, ANY and ALL by EXISTS: a row that decides, else a row of which it is not known. `inside`: where it may, the
/// condition stands in the subquery.
fn exists(statement: &mut Statement, inside: bool) -> bool {
    let mut number = 0;
    each(statement, &mut |expr| {
        let Expr::Subquery { form, arguments, query, .. } = expr else { return Step::Same };
        let (comparison, decides, is_negated): (&'static str, &str, bool) = match *form {
            "({0} IN {Q})" | "({0} = ANY {Q})" => ("({0} = {1})", "1", false),
            "({0} NOT IN {Q})" | "({0} <> ALL {Q})" => ("({0} = {1})", "0", false),
            "({0} < ANY {Q})" => ("({0} < {1})", "1", false),
            "({0} >= ANY {Q})" => ("({0} >= {1})", "1", false),
            "({0} > ALL {Q})" => ("({0} > {1})", "0", true),
            "(({0}, {1}) IN {Q})" => ("({0} = {2} AND {1} = {3})", "1", false),
            "(({0}, {1}) NOT IN {Q})" => ("({0} = {2} AND {1} = {3})", "0", false),
            _ => return Step::Same,
        };
        // The shrinker tries rows of other widths.
        if !is_as_wide(query, arguments.len()) {
            return Step::Same;
        }
        if arguments.iter().any(needs_rows) {
            // An aggregate stays where it is.
            let is_null = Expr::form("({0} IS NULL)", Class::Boolean, vec![arguments[0].clone()]);
            let has_rows = Expr::Subquery {
                form: "EXISTS {Q}",
                arguments: Vec::new(),
                query: query.clone(),
                class: Class::Boolean,
            };
            let whole = std::mem::replace(expr, Expr::literal("NULL", Class::Boolean));
            let form = "CASE WHEN {1} AND {2} THEN NULL ELSE {0} END";
            *expr = Expr::form(form, Class::Boolean, vec![whole, is_null, has_rows]);
            return Step::Wrapped;
        }
        let mut exists = |form: &'static str| {
            number += 1;
            let holds = |items: Vec<Expr>| {
                let compared = Expr::form(comparison, Class::Boolean, [arguments.clone(), items].concat());
                Expr::form(form, Class::Boolean, vec![compared])
            };
            let query = Box::new(rows_for_which(query, number, inside, &holds)?);
            Some(Expr::Subquery { form: "EXISTS {Q}", arguments: Vec::new(), query, class: Class::Boolean })
        };
        let parts = [exists(if is_negated { "(NOT {0})" } else { "{0}" }), exists("({0} IS NULL)")];
        let [Some(decided), Some(unknown)] = parts else { return Step::Same };
        let form = match decides {
            "1" => "CASE WHEN {0} THEN 1 WHEN {1} THEN NULL ELSE 0 END",
            _ => "CASE WHEN {0} THEN 0 WHEN {1} THEN NULL ELSE 1 END",
        };
        *expr = Expr::form(form, Class::Boolean, vec![decided, unknown]);
        Step::Changed
    })
}

fn is_as_wide(query: &Query, columns: usize) -> bool {
    match &query.body {
        Body::Select(select) => select.items.len() == columns,
        Body::Set { left, right, .. } => is_as_wide(left, columns) && is_as_wide(right, columns),
        Body::Values(_) | Body::Table(_) => false,
    }
}

/// The rows of the query for whose items a condition holds.
fn rows_for_which(query: &Query, number: u32, inside: bool, holds: &dyn Fn(Vec<Expr>) -> Expr) -> Option<Query> {
    if inside && let Some(inside) = rows_inside(query, holds) {
        return Some(inside);
    }
    let alias = format!("x{number}");
    let first = query.first_select()?;
    let items = first.items.iter().map(|item| Expr::column(&alias, &item.alias, item.expr.class())).collect();
    let mut select = Select::of(vec![Item { expr: Expr::literal("1", Class::Integer), alias: format!("y{number}") }]);
    select.from = Some(From::Derived { query: Box::new(query.clone()), alias, lateral: false });
    select.filter = Some(holds(items));
    Some(Query::of(Body::Select(Box::new(select))))
}

/// The same where the condition may stand in the query's own blocks.
fn rows_inside(query: &Query, holds: &dyn Fn(Vec<Expr>) -> Expr) -> Option<Query> {
    if query.limit.is_some() || !query.with.is_empty() {
        return None;
    }
    let body = match &query.body {
        Body::Select(select) => {
            if select.rollup || select.items.iter().any(|item| has_window(&item.expr)) {
                return None;
            }
            let mut select = select.clone();
            let condition = holds(select.items.iter().map(|item| item.expr.clone()).collect());
            let is_grouped = !select.group.is_empty()
                || select.having.is_some()
                || select.items.iter().any(|item| needs_rows(&item.expr));
            let place = if is_grouped { &mut select.having } else { &mut select.filter };
            *place = Some(match place.take() {
                Some(other) => Expr::form("({0} AND {1})", Class::Boolean, vec![other, condition]),
                None => condition,
            });
            Body::Select(select)
        }
        Body::Set { operator, left, right } => Body::Set {
            operator,
            left: Box::new(rows_inside(left, holds)?),
            right: Box::new(rows_inside(right, holds)?),
        },
        _ => return None,
    };
    Some(Query::of(body))
}

/// An aggregate or a window.
fn needs_rows(expr: &Expr) -> bool {
    match expr {
        Expr::Window { .. } => true,
        Expr::Form { form, arguments, .. } => is_aggregate(form) || arguments.iter().any(needs_rows),
        Expr::Subquery { arguments, .. } => arguments.iter().any(needs_rows),
        Expr::Literal { .. } | Expr::Column { .. } => false,
    }
}

pub fn is_aggregate(form: &str) -> bool {
    AGGREGATES.iter().any(|(_, aggregate, _)| *aggregate == form)
        || STATISTICS.contains(&form)
        || BITS.contains(&form)
        || ["MIN(", "MAX("].iter().any(|begin| form.starts_with(begin))
        || form.contains("AGG(")
}

fn has_window(expr: &Expr) -> bool {
    match expr {
        Expr::Window { .. } => true,
        Expr::Form { arguments, .. } | Expr::Subquery { arguments, .. } => arguments.iter().any(has_window),
        _ => false,
    }
}

fn as_read(statement: &mut Statement, names: &Names) -> bool {
    without_view(statement, names) | without_unread(statement)
}

/// The query itself in the place of a view.
fn without_view(statement: &mut Statement, _: &Names) -> bool {
    let Statement::View { query, .. } = statement else { return false };
    *statement = Statement::Query(query.clone());
    true
}

/// Common tables that nothing reads are left out.
fn without_unread(statement: &mut Statement) -> bool {
    let mut changed = false;
    loop {
        let mut read = Vec::new();
        walk_mut(statement, &mut |node| {
            if let NodeMut::From(From::Table { name, .. }) = node {
                read.push(name.clone());
            }
        });
        let mut is_less = false;
        walk_mut(statement, &mut |node| {
            if let NodeMut::Query(query) = node {
                let before = query.with.len();
                query.with.retain(|cte| cte.recursive || read.contains(&cte.name));
                is_less |= query.with.len() < before;
            }
        });
        changed |= is_less;
        if !is_less {
            return changed;
        }
    }
}

/// The distance of a RANGE is taken from a number with a sign; a column of a block around is the same for all rows, and
/// parts none.
fn windows(statement: &mut Statement, names: &Names) -> bool {
    let mut is_parted = false;
    walk_mut(statement, &mut |node| {
        let NodeMut::Select(select) = node else { return };
        let own = select.from.as_ref().map(aliases).unwrap_or_default();
        let is_outer = |expr: &Expr| matches!(expr, Expr::Column { table, .. } if !own.contains(table));
        for item in &mut select.items {
            visit::expr(&mut item.expr, &mut |node| {
                if let NodeMut::Expr(Expr::Window { partition, named, .. }) = node
                    && partition.iter().any(is_outer)
                {
                    partition.retain(|expr| !is_outer(expr));
                    (*named, is_parted) = (false, true);
                }
            });
        }
        if let Some((partition, _)) = &mut select.window {
            partition.retain(|expr| !is_outer(expr));
        }
    });
    let is_reworded = each(statement, &mut |expr| match expr {
        Expr::Window { order, frame, .. } if frame.starts_with("RANGE BETWEEN") && order.len() == 1 => {
            let key = &mut order[0].expr;
            let is_open = |column: &Column| is_unsigned(column.kind.sql) || column.kind.sql == "BIGINT";
            if key.class() == Class::Integer || names.column(key).is_some_and(is_open) {
                wrap(key, "CAST({0} AS DECIMAL(40,3))");
                return Step::Changed;
            }
            Step::Same
        }
        _ => Step::Same,
    });
    is_parted || is_reworded
}

/// With functions in other words in them.
fn windows_of_functions(statement: &mut Statement, names: &Names) -> bool {
    functions::functions(statement, names) && windows(statement, names)
}

fn is_unsigned(sql: &str) -> bool {
    sql.ends_with("UNSIGNED") || sql == "YEAR" || sql.starts_with("BIT")
}

/// What the tables of a FROM are called.
pub(super) fn aliases(from: &From) -> Vec<String> {
    match from {
        From::Table { alias, .. } | From::Derived { alias, .. } => vec![alias.clone()],
        From::Join { left, right, .. } => [aliases(left), aliases(right)].concat(),
    }
}

/// What is taken away is added as its negative, which the least BIGINT has not.
fn negative_subtrahends(statement: &mut Statement, _: &Names) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form, class: Class::Integer, .. } if *form == "({0} - {1})" => {
            *form = "({0} + (- {1}))";
            Step::Changed
        }
        _ => Step::Same,
    })
}

/// The negative of what a function gives that is in other words.
fn subtrahends_of_functions(statement: &mut Statement, names: &Names) -> bool {
    functions::functions(statement, names) && negative_subtrahends(statement, names)
}

/// All but one is taken away, and then one: the negative of a constant is a DECIMAL.
fn subtrahends_in_steps(statement: &mut Statement, _: &Names) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form, class: Class::Integer, .. } if *form == "({0} - {1})" => {
            *form = "({0} - ({1} + 1) + 1)";
            Step::Changed
        }
        _ => Step::Same,
    })
}

/// ROUND of a whole number is one of its type, which decides about the range of what is computed from it.
fn whole_rounds(statement: &mut Statement, names: &Names) -> bool {
    each(statement, &mut |expr| match expr {
        Expr::Form { form: "ROUND({0}, -1)", class: Class::Integer, arguments } => {
            let is_unsigned = names.column(&arguments[0]).is_some_and(|column| is_unsigned(column.kind.sql))
                || begins(&arguments[0], UNSIGNED);
            wrap(expr, if is_unsigned { "CAST({0} AS UNSIGNED)" } else { "CAST({0} AS SIGNED)" })
        }
        _ => Step::Same,
    })
}

/// What a signed and an unsigned number agree on is a BIGINT.
fn signed_mixes(statement: &mut Statement, names: &Names) -> bool {
    signed_mixes_but(statement, names, &[])
}

/// NULLIF has the type of its first argument, whatever the second one is.
fn signed_mixes_of_all(statement: &mut Statement, names: &Names) -> bool {
    signed_mixes_but(statement, names, &["NULLIF({0}, {1})"])
}

fn signed_mixes_but(statement: &mut Statement, names: &Names, but: &[&str]) -> bool {
    let is_mixing = |form: &str| {
        CHOICES.iter().any(|(choice, _)| *choice == form) || form.starts_with("GREATEST(") || form.starts_with("LEAST(")
    };
    let is_unsigned_column = |expr: &Expr| names.column(expr).is_some_and(|column| is_unsigned(column.kind.sql));
    let is_large = |expr: &Expr| matches!(expr, Expr::Literal { text, .. } if text == "18446744073709551615");
    each(statement, &mut |expr| {
        let Expr::Form { form, class: Class::Integer, arguments } = expr else { return Step::Same };
        if is_unsigned_or_null(form, arguments, &is_unsigned_column) {
            return wrap(expr, "CAST({0} AS UNSIGNED)");
        }
        let is_mix = is_mixing(form) && !but.contains(form) && !arguments.iter().all(is_unsigned_column);
        if is_mix && (names.reads(expr, &|column| is_unsigned(column.kind.sql)) || names.has(expr, &is_large)) {
            return wrap(expr, "CAST({0} AS SIGNED)");
        }
        Step::Same
    })
}

/// It chooses among unsigned columns and NULL, which has no sign; to MariaDB it is a signed number.
fn is_unsigned_or_null(form: &str, arguments: &[Expr], is_unsigned: &dyn Fn(&Expr) -> bool) -> bool {
    let Some((_, conditions)) = CHOICES.iter().find(|(choice, _)| *choice == form) else { return false };
    let values: Vec<&Expr> =
        arguments.iter().zip(*conditions).filter(|(_, is_condition)| !**is_condition).map(|(value, _)| value).collect();
    values.iter().any(|value| is_null(value))
        && values.iter().any(|value| is_unsigned(value))
        && values.iter().all(|value| is_null(value) || is_unsigned(value))
}

/// Groupings in the place of a ROLLUP whose keys GROUPING asks for.
pub fn groupings(statement: &mut Statement) {
    rollup_by_union_where(statement, &|select| select.items.iter().any(|item| asks_grouping(&item.expr)));
}

fn asks_grouping(expr: &Expr) -> bool {
    match expr {
        Expr::Form { form, arguments, .. } => *form == GROUPING || arguments.iter().any(asks_grouping),
        Expr::Subquery { arguments, .. } => arguments.iter().any(asks_grouping),
        _ => false,
    }
}

const GROUPING: &str = "GROUPING({0})";

/// Groupings one by one in the place of ROLLUP: with the last key NULL, with the last two NULL, …
pub(super) fn rollup_by_union(statement: &mut Statement, _: &Names) -> bool {
    rollup_by_union_where(statement, &|_| true)
}

fn rollup_by_union_where(statement: &mut Statement, is_meant: &dyn Fn(&Select) -> bool) -> bool {
    let mut changed = false;
    walk_mut(statement, &mut |node| {
        let NodeMut::Query(query) = node else { return };
        let is_plain = query.limit.is_none();
        let Body::Select(select) = &query.body else { return };
        if !select.rollup || !is_plain || select.distinct || select.window.is_some() || !is_meant(select) {
            return;
        }
        let mut whole: Option<Query> = None;
        for kept in (0..=select.group.len()).rev() {
            let part = Query::of(Body::Select(Box::new(grouping(select, kept))));
            whole = Some(match whole {
                None => part,
                Some(left) => {
                    Query::of(Body::Set { operator: "UNION ALL", left: Box::new(left), right: Box::new(part) })
                }
            });
        }
        query.body = whole.expect("there is a grouping without keys").body;
        query.lock = "";
        changed = true;
    });
    changed
}

/// With the least of each key, where MariaDB has that of another group.
fn rollup_of_least_keys(statement: &mut Statement, names: &Names) -> bool {
    rollup_by_union(statement, names) && least_keys(statement, true)
}

/// With the aggregates that are compared with rows of a subquery named by a derived table.
fn rollup_in_layers(statement: &mut Statement, names: &Names) -> bool {
    rollup_by_union(statement, names) && by_existence_of_layers(statement, names)
}

/// With what is put into a column as a number from a derived table.
fn rollup_of_numbers(statement: &mut Statement, names: &Names) -> bool {
    rollup_by_union(statement, names) && functions::numbers_of_groups(statement, names)
}

/// One grouping of a ROLLUP: the keys from the `kept`-th on are NULL outside of aggregates.
fn grouping(select: &Select, kept: usize) -> Select {
    let mut part = select.clone();
    part.rollup = false;
    let gone = part.group.split_off(kept);
    for expr in part.items.iter_mut().map(|item| &mut item.expr).chain(&mut part.having) {
        hide(expr, &gone, &part.group);
    }
    if part.group.is_empty() && part.having.is_none() {
        // The total is one row, of no rows too.
        part.having = Some(Expr::form("(COUNT(*) >= 0)", Class::Boolean, vec![]));
    }
    part
}

/// A key that is kept is itself, whatever it is computed from.
fn hide(expr: &mut Expr, gone: &[Expr], kept: &[Expr]) {
    if kept.contains(expr) {
        return;
    }
    if gone.contains(expr) {
        // NULL of the key's own type, with its digits.
        let is_text = matches!(expr.class(), Class::Text | Class::Binary | Class::Json);
        *expr = match is_text {
            true => Expr::literal("NULL", expr.class()),
            false => Expr::form("MIN(NULLIF({0}, {0}))", expr.class(), vec![expr.clone()]),
        };
        return;
    }
    match expr {
        Expr::Form { form: GROUPING, arguments, .. } => {
            let is_gone = arguments.iter().any(|key| gone.contains(key));
            *expr = Expr::literal(if is_gone { "1" } else { "0" }, Class::Integer);
        }
        Expr::Form { form, arguments, .. } if !is_aggregate(form) => {
            arguments.iter_mut().for_each(|argument| hide(argument, gone, kept));
        }
        Expr::Subquery { arguments, .. } => arguments.iter_mut().for_each(|argument| hide(argument, gone, kept)),
        _ => {}
    }
}

/// Group keys are the least of their group, where they are parts of something and in HAVING.
fn keys_as_aggregates(statement: &mut Statement, _: &Names) -> bool {
    least_keys(statement, false)
}

/// Columns too, of which MariaDB has that of another group beside an aggregate.
fn all_keys_as_aggregates(statement: &mut Statement, _: &Names) -> bool {
    least_keys(statement, true)
}

fn least_keys(statement: &mut Statement, columns: bool) -> bool {
    let mut changed = false;
    walk_mut(statement, &mut |node| {
        let NodeMut::Select(select) = node else { return };
        let keys = select.group.clone();
        if keys.is_empty() || select.rollup {
            return;
        }
        let mut met: Vec<Expr> = Vec::new();
        for item in &mut select.items {
            // MariaDB finds it once.
            let is_first = !columns && keys.contains(&item.expr) && !met.contains(&item.expr);
            met.push(item.expr.clone());
            if !is_first {
                let is_shown = |key: &&Expr| columns || !matches!(key, Expr::Column { .. });
                let expressions: Vec<Expr> = keys.iter().filter(is_shown).cloned().collect();
                changed |= aggregate_keys(&mut item.expr, &expressions);
            }
        }
        if let Some(having) = &mut select.having {
            changed |= aggregate_keys(having, &keys);
        }
    });
    changed
}

fn aggregate_keys(expr: &mut Expr, keys: &[Expr]) -> bool {
    if keys.contains(expr) {
        let class = expr.class();
        let key = std::mem::replace(expr, Expr::literal("NULL", class));
        *expr = Expr::form("MIN({0})", class, vec![key]);
        return true;
    }
    match expr {
        Expr::Form { form, arguments, .. } if !is_aggregate(form) => {
            arguments.iter_mut().fold(false, |changed, argument| aggregate_keys(argument, keys) | changed)
        }
        Expr::Window { function, .. } => match &mut **function {
            // The window's function is no aggregate of the group; its argument is.
            Expr::Form { arguments, .. } => {
                arguments.iter_mut().fold(false, |changed, argument| aggregate_keys(argument, keys) | changed)
            }
            _ => false,
        },
        Expr::Subquery { arguments, .. } => {
            arguments.iter_mut().fold(false, |changed, argument| aggregate_keys(argument, keys) | changed)
        }
        _ => false,
    }
}
