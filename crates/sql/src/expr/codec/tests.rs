//! What is sent means there what it means here; what comes damaged does no harm.

use super::*;
use crate::expr::tests::{Table, bound, context, table};
use crate::expr::{BindContext, Columns, Context, Expr, ExprKind, functions};
use proptest::prelude::*;
use rauk_types::schema::{Column, IndexSchema};
use rauk_types::{ColumnId, MysqlError, TableId, TableSchema, Value};
use rauk_wire::Expression;
use rauk_wire::read::Reader;

pub(crate) fn schema(table: &Table) -> TableSchema {
    let column = |(number, (name, ty, nullable, _)): (usize, &(&'static str, _, bool, Value))| {
        Column::new(ColumnId(number as u16), *name, *ty, *nullable)
    };
    let columns = table.columns.iter().enumerate().map(column).collect();
    TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[0])])
}

fn bind(sql: &str) -> Result<Expr, MysqlError> {
    bound(sql, &BindContext { sql_mode: context().sql_mode, ..BindContext::default() })
}

fn bytes_of(expr: &Expr) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    encode(expr, &Inputs { table: 0, parameters: &[], others: None })?.encode(&mut bytes);
    Some(bytes)
}

fn read(bytes: &[u8], schema: &TableSchema) -> Option<Expr> {
    let mut reader = Reader::new(bytes, "expression");
    let expression = Expression::decode(&mut reader).ok()?;
    reader.end().ok()?;
    decode(&expression, schema)
}

/// The value or the error, and the warnings.
fn outcome(expr: &Expr, row: &dyn Columns) -> (Result<Value, (u16, String)>, Vec<String>) {
    let mut context: Context = context();
    let value = expr.eval(row, &mut context).map_err(|error| (error.code, error.message));
    (value, context.warnings.into_iter().map(|w| format!("{} {}", w.code, w.message)).collect())
}

fn lines() -> impl Iterator<Item = &'static str> {
    let files = [include_str!("../golden.tsv"), include_str!("../matrix.tsv")];
    let lines = files.into_iter().flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once('\t').expect("an expression and a value").0)
}

/// All expressions of the files of expressions that may travel give there the value, the error and the warnings that they give here.
#[test]
fn what_is_sent_means_the_same() {
    let (table, mut sent, mut kept) = (table(), 0, Vec::new());
    let schema = schema(&table);
    for sql in lines() {
        let Ok(expr) = bind(sql) else { continue };
        let Some(bytes) = bytes_of(&expr) else {
            kept.push(sql);
            continue;
        };
        sent += 1;
        let back = read(&bytes, &schema).unwrap_or_else(|| panic!("{sql} is not read"));
        assert_eq!(bytes_of(&back), Some(bytes), "{sql}");
        assert_eq!((back.ty, back.nullable, back.coercibility), (expr.ty, expr.nullable, expr.coercibility), "{sql}");
        assert_eq!(outcome(&back, &table), outcome(&expr, &table), "{sql}");
    }
    assert!(sent >= 2700, "{sent} are sent, not these: {kept:#?}");
}

/// Without chains of AND and OR, the tree itself is the same.
#[test]
fn trees_are_the_same() {
    let table = table();
    let schema = schema(&table);
    for sql in [
        "id = 5 AND s LIKE 'a%' OR NOT n <=> NULL",
        "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9) XOR s NOT IN ('a', 'b')",
        "s IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')",
        "d IN (1, 2.5, 'x')",
        "d NOT BETWEEN 1 AND '2' AND (n IS NULL) IS NOT TRUE",
        "CASE id WHEN 1 THEN 'a' WHEN 2.5 THEN s ELSE sb END LIKE '%|%' ESCAPE '|'",
        "CASE WHEN id > 3 THEN 'a' END IS NOT NULL",
        "IF(id > 1, s, 'x') COLLATE utf8mb4_bin = NULLIF(s, CONCAT(s, sb)) ",
        "dt + INTERVAL id DAY > NOW() - INTERVAL '1:2' HOUR_MINUTE",
        "COALESCE(n, id, 3) % 7 DIV 2 = -id & ~ti << 2",
        "CAST(f AS DECIMAL(20, 3)) * ROUND(d, 1) >= ABS(ti) + LENGTH(vb)",
        "YEAR(da) = 2024 AND HOUR(tm) < 5",
        "s REGEXP '^a+[bc]' OR s COLLATE utf8mb4_bin NOT REGEXP 'B$'",
        "(id, s) IN ((1, 'a'), (2, 'b'))",
        "(id, s) NOT IN ((1, 'a'), (2, NULL), (n, s))",
        "(id, d) IN ((1, 2), (2.5, '3'), (4, 5))",
        "(id, n, s) IN ((1, 1, 'a'), (2, 1, 'a'), (3, 1, 'a'), (4, 1, 'a'), (5, 1, 'a'), (6, 1, 'a'), (7, 1, 'a'), (8, 1, 'b'), (42, 1, 'b'))",
        "(CONCAT(s, s, s, s, s, s, s, s, s, s), n) < (CONCAT(sb, sb, sb, sb, sb, sb, sb, sb, sb, sb), 5)",
    ] {
        let expr = bind(sql).unwrap();
        let bytes = bytes_of(&expr).unwrap_or_else(|| panic!("{sql} is not sent"));
        assert_eq!(read(&bytes, &schema), Some(expr), "{sql}");
    }
}

/// Beside the rows a regular expression takes texts up to a length; what it leaves is an error, for which the row is sent.
#[test]
fn a_regular_expression_leaves_long_texts_to_the_sender() {
    let table = table();
    let schema = schema(&table);
    for (sql, there) in [("REPLACE(s, s, 'aaab') REGEXP 'a+b$'", true), ("REPEAT('a', 20000) REGEXP 'a{9}'", false)] {
        let expr = bind(sql).unwrap();
        // Bounded by its pattern, not by its text.
        let ExprKind::Regexp(regexp) = &expr.kind else { panic!("{sql}") };
        let text = Value::Str(if there { "aaab".into() } else { "a".repeat(20_000) });
        let known = crate::expr::Regexp {
            expr: Expr { kind: ExprKind::Literal(text), ..regexp.expr.clone() },
            ..(**regexp).clone()
        };
        let known = Expr { kind: ExprKind::Regexp(Box::new(known)), ..expr.clone() };
        let back = read(&bytes_of(&known).expect("it is sent"), &schema).unwrap();
        assert_eq!(outcome(&known, &table).0, Ok(Value::Int(1)), "{sql}");
        assert_eq!(outcome(&back, &table).0.is_ok(), there, "{sql}");
    }
}

/// A chain of any length is low when it arrives, and is evaluated from left to right.
#[test]
fn long_chains_arrive_low() {
    let table = table();
    let schema = schema(&table);
    for (word, expected) in [("OR", Value::Int(1)), ("AND", Value::Int(0))] {
        let chain = |count: usize| {
            let parts: Vec<_> = (1..=count).map(|n| format!("id = {n}")).collect();
            bind(&parts.join(&format!(" {word} "))).unwrap()
        };
        let expr = chain(800);
        let back = read(&bytes_of(&expr).unwrap(), &schema).unwrap();
        assert_eq!(outcome(&back, &table), (Ok(expected), vec![]));
        fn height(expr: &Expr) -> usize {
            let mut highest = 0;
            expr.for_each_child(&mut |child| highest = highest.max(height(child)));
            highest + 1
        }
        assert!(height(&back) < 16, "{}", height(&back));
        // More than the form takes.
        assert_eq!(bytes_of(&chain(2000)), None);
    }
    // The left one is decided before the right one can fail.
    let expr = bind("id = 42 OR b + 1 > 0 OR b + 2 > 0 OR b + 3 > 0").unwrap();
    let back = read(&bytes_of(&expr).unwrap(), &schema).unwrap();
    assert_eq!(outcome(&back, &table), (Ok(Value::Int(1)), vec![]));
}

#[test]
fn what_is_not_bounded_stays() {
    for sql in [
        "RAND() < 0.5",
        "id = @x",
        "@x := id",
        "id = @@version",
        "s = USER()",
        "s = DATABASE()",
        "id = CONNECTION_ID()",
        "id = LAST_INSERT_ID()",
        "s REGEXP sb",
        "s REGEXP '\\\\w{20}'",
        "s REGEXP CONCAT('a', s)",
        "REPEAT(s, id) = 'x'",
        "LPAD(s, id, 'x') = 'x'",
        "UUID() = s",
        "CONVERT_TZ(dt, 'UTC', s) > dt",
    ] {
        assert_eq!(bytes_of(&bind(sql).unwrap()), None, "{sql}");
    }
    let high = |levels: usize| format!("{}id{}", "ABS(".repeat(levels), ")".repeat(levels));
    assert!(bytes_of(&bind(&high(40)).unwrap()).is_some());
    assert_eq!(bytes_of(&bind(&high(60)).unwrap()), None);
}

/// No function has the name of an operator: both are calls.
#[test]
fn names_are_of_one_thing() {
    let names = COMPARISONS.iter().map(|(_, name)| *name).chain(ARITHMETIC.iter().map(|(_, name)| *name));
    let names = names.chain(BITS.iter().map(|(_, name)| *name)).chain(TRUTHS.iter().map(|(_, name)| *name));
    let mut names: Vec<_> = names.chain(OTHERS).chain([DATE_SUB]).collect();
    assert!(names.iter().all(|name| functions::find(name).is_none()));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn parameters_and_other_tables_travel_as_values() {
    let table = table();
    let column = bind("id = 1").unwrap();
    let ExprKind::Compare { op, by, left, right } = column.kind else { panic!("a comparison") };
    let parameter = Expr { kind: ExprKind::Parameter(1), ..(*right).clone() };
    let expr = |left: &Expr, right: &Expr| Expr {
        kind: ExprKind::Compare { op, by, left: Box::new(left.clone()), right: Box::new(right.clone()) },
        ty: column.ty,
        nullable: true,
        coercibility: column.coercibility,
    };
    let parameters = [Value::Int(7), Value::Int(42)];
    let inputs = |table| Inputs { table, parameters: &parameters, others: None };
    let there = |expression: &Expression| outcome(&decode(expression, &schema(&table)).unwrap(), &table);
    let sent = encode(&expr(&left, &parameter), &inputs(0)).unwrap();
    assert_eq!(there(&sent), (Ok(Value::Int(1)), vec![]));
    // The column is one of a table that the receiver does not read.
    assert_eq!(encode(&expr(&left, &parameter), &inputs(1)), None);
    let sent = encode(&expr(&left, &parameter), &Inputs { others: Some(&table), ..inputs(1) }).unwrap();
    assert_eq!(there(&sent), (Ok(Value::Int(1)), vec![]));
}

#[test]
fn what_does_not_fit_is_refused() {
    let table = table();
    let schema = schema(&table);
    let Some(Expression::Call { name, ty, arguments }) =
        bind("id = 5").ok().and_then(|expr| encode(&expr, &Inputs { table: 0, parameters: &[], others: None }))
    else {
        panic!("a comparison is sent")
    };
    let call = |name: &str, arguments: &[Expression]| {
        decode(&Expression::Call { name: name.to_string(), ty, arguments: arguments.to_vec() }, &schema)
    };
    assert!(call(&name, &arguments).is_some());
    assert_eq!(call("NO_SUCH_FUNCTION", &arguments), None);
    assert_eq!(call("RAND", &[]), None, "it is not bounded");
    assert_eq!(call("ABS", &arguments[..2]), None, "it has one argument");
    assert_eq!(call(&name, &arguments[..2]), None, "as what they compare is missing");
    assert_eq!(call(&name, &[arguments[2].clone(), arguments[1].clone(), arguments[2].clone()]), None);
    assert_eq!(call(&name, &[arguments[0].clone(), arguments[1].clone(), Expression::attribute("klingon")]), None);
    let Expression::Column { ty: wrong, .. } = arguments[0].clone() else { panic!("a column") };
    assert_eq!(decode(&Expression::Column { column: 3, ty: wrong }, &schema), None, "a column of another type");
    assert_eq!(decode(&Expression::Column { column: 99, ty: wrong }, &schema), None);
    let test = rauk_wire::Filter::IsNull { column: 0 };
    assert_eq!(decode(&Expression::Test(test), &schema), None, "it has no types");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any bytes, and bytes that are nearly right, are refused or are an expression that can be evaluated.
    #[test]
    fn damaged_bytes_do_no_harm(
        line in 0..2500usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        noise in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let table = table();
        let schema = schema(&table);
        let _ = read(&noise, &schema);
        let expr = lines().nth(line).and_then(|sql| bind(sql).ok());
        if let Some(mut bytes) = expr.as_ref().and_then(bytes_of) {
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(expr) = read(&bytes, &schema) {
                let _ = outcome(&expr, &table);
            }
        }
    }
}
