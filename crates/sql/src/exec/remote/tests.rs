//! A statement over rows of which some lie elsewhere is the statement over all of them: rows, warnings, groups.

use super::SqlEvaluator;
use super::program::{self, EncodedAggregate, EncodedThen, Parts};
use super::work::Work;
use crate::exec::group::Grouper;
use crate::exec::scan::passes;
use crate::expr::codec::tests::schema;
use crate::expr::codec::{Inputs, encode};
use crate::expr::tests::{bound, context, table};
use crate::expr::{Aggregate, AggregateFunction, BindContext, Context, Expr};
use crate::memory::Memory;
use crate::physical::model::Grouping;
use crate::physical::row::{Joined, Part};
use parking_lot::Mutex;
use proptest::prelude::*;
use rauk_node::{Evaluator, Fate, NewRow, Pushdown, RowProgram};
use rauk_types::{DataType, RowView, TableSchema, Value, row};
use rauk_wire::expression::Type;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const INPUTS: Inputs<'_> = Inputs { table: 0, parameters: &[], others: None };

fn bind(sql: &str) -> Expr {
    bound(sql, &BindContext { sql_mode: context().sql_mode, ..BindContext::default() }).unwrap()
}

/// Rows that differ in `id`, `n` and `s`.
fn rows(values: &[(i64, Option<i64>, &str)], schema: &TableSchema) -> Vec<Vec<u8>> {
    let row = |&(id, n, s): &(i64, Option<i64>, &str)| {
        let mut values: Vec<Value> = table().columns.into_iter().map(|(_, _, _, value)| value).collect();
        let at = |name: &str| schema.columns.iter().position(|column| column.name == name).unwrap();
        values[at("id")] = Value::Int(id);
        values[at("n")] = n.map_or(Value::Null, Value::Int);
        values[at("s")] = Value::from(s);
        let mut bytes = Vec::new();
        row::encode_row(schema, &values, &mut bytes);
        bytes
    };
    values.iter().map(row).collect()
}

fn aggregate(function: AggregateFunction, argument: Option<&str>) -> Aggregate {
    let arguments: Vec<Expr> = argument.map(bind).into_iter().collect();
    let ty = match function {
        AggregateFunction::Count => DataType::BIGINT,
        AggregateFunction::Sum | AggregateFunction::Avg => DataType::decimal(40, 4),
        _ => arguments[0].ty,
    };
    Aggregate { function, distinct: false, arguments, ty, separator: None, order_by: Vec::new() }
}

fn work(filters: &[Expr], complete: bool, grouping: Option<&Grouping>, context: &Context) -> Work {
    let all = |exprs: &[Expr]| exprs.iter().map(|expr| encode(expr, &INPUTS).unwrap()).collect::<Vec<_>>();
    let aggregation = grouping.map(|grouping| {
        let one = |aggregate: &Aggregate| EncodedAggregate {
            function: aggregate.function,
            ty: Type { ty: aggregate.ty, nullable: true, coercibility: 0 },
            arguments: all(&aggregate.arguments),
        };
        let carried = grouping.carried.iter().map(|&(_, column)| column as u16).collect();
        EncodedThen::Sum(all(&grouping.keys), carried, grouping.aggregates.iter().map(one).collect())
    });
    let then = aggregation.unwrap_or(EncodedThen::Send);
    let parts = Parts { conditions: all(filters), complete, then };
    Work {
        program: program::encode(&parts, context).unwrap(),
        arrived: Mutex::default(),
        warned: AtomicBool::new(false),
        aggregates: grouping.is_some(),
        max_warnings: context.max_error_count,
        memory: context.budget.memory.clone(),
    }
}

fn prepared(work: &Work, schema: &Arc<TableSchema>) -> Box<dyn RowProgram> {
    SqlEvaluator::default().prepare(&work.program, schema).expect("it is known")
}

/// What a statement has found: rows, or groups, or its error; and its warnings.
type Outcome = (Result<Vec<Vec<Value>>, u16>, Vec<String>, u64);

/// The statement over `rows`; of each part with `true` beside it another node has the rows.
fn statement(
    filters: &[Expr],
    complete: bool,
    grouping: Option<&Grouping>,
    parts: &[(bool, &[Vec<u8>])],
    context: &mut Context,
    schema: &Arc<TableSchema>,
) -> (Outcome, usize) {
    let zone = context.time_zone.clone();
    let root = Joined::root(&zone);
    let memory = Memory::default();
    let work = work(&filters[..if complete { filters.len() } else { 1 }], complete, grouping, context);
    let mut grouper = grouping.map(|grouping| Grouper::new(grouping, false, memory.clone(), context));
    let (mut found, mut sent) = (Vec::new(), 0);
    let mut failed = None;
    'parts: for (elsewhere, rows) in parts {
        let mut here: Vec<&Vec<u8>> = rows.iter().collect();
        if *elsewhere {
            let mut program = prepared(&work, schema);
            here.retain(|bytes| program.visit(&RowView::new(schema, 0, bytes)) == Fate::Send);
            assert!(work.take(&program.finish()));
            sent += here.len();
        }
        for bytes in here {
            work.before_row(context);
            let view = RowView::new(schema, 0, bytes);
            let joined = root.with(0, Part::Stored(view));
            let result = passes(filters, &joined, context).and_then(|passes| {
                match (passes, &mut grouper) {
                    (false, _) => {}
                    (true, Some(grouper)) => drop(grouper.push(&joined, context)?),
                    (true, None) => found.push(vec![view.get(0).to_owned()]),
                }
                Ok(())
            });
            if let Err(error) = result {
                failed = Some(error.code);
                break 'parts;
            }
        }
    }
    work.end(failed.is_some(), context);
    if let (Some(mut grouper), None) = (grouper, failed) {
        work.add_groups(&mut grouper).unwrap();
        let groups = grouper.finish(context).unwrap();
        found = (0..groups.len())
            .map(|number| {
                let group = groups.row(number);
                group.aggregates.iter().chain(group.values).cloned().collect()
            })
            .collect();
    }
    let warnings = context.warnings.iter().map(|w| format!("{} {}", w.code, w.message)).collect();
    ((failed.map_or(Ok(found), Err), warnings, context.warning_count), sent)
}

/// The same over rows of which none, some or all lie elsewhere. Gives what came of it, and how many rows were sent when all lie elsewhere.
fn anywhere(filters: &[&str], complete: bool, grouping: Option<&Grouping>, rows: &[Vec<u8>]) -> (Outcome, usize) {
    let schema = Arc::new(schema(&table()));
    let filters: Vec<Expr> = filters.iter().map(|sql| bind(sql)).collect();
    let run = |parts: &[(bool, &[Vec<u8>])]| statement(&filters, complete, grouping, parts, &mut context(), &schema);
    let (expected, _) = run(&[(false, rows)]);
    let (all, sent) = run(&[(true, rows)]);
    assert_eq!(all, expected);
    for at in [1, rows.len() / 2, rows.len() - 1] {
        let (first, rest) = rows.split_at(at);
        for (one, other) in [(true, false), (false, true), (true, true)] {
            assert_eq!(run(&[(one, first), (other, rest)]).0, expected, "{at} {one} {other}");
        }
    }
    (expected, sent)
}

#[test]
fn only_rows_that_pass_come() {
    let schema = schema(&table());
    let rows = rows(&(0..100).map(|id| (id, Some(id % 10), "x")).collect::<Vec<_>>(), &schema);
    let ((found, warnings, _), sent) = anywhere(&["n = 3", "id > 50"], true, None, &rows);
    assert_eq!((found.unwrap().len(), warnings.len(), sent), (5, 0, 5));
    // One condition stays: rows that pass the other come.
    let (_, sent) = anywhere(&["n = 3", "s REGEXP 'y'"], false, None, &rows);
    assert_eq!(sent, 10);
}

/// Warnings come with the rows that give them, each once and in their order, whether the row is sent or not.
#[test]
fn warnings_come_in_their_places() {
    let schema = schema(&table());
    let texts = ["1a", "0", "b", "0c", "2", "0", "d", "7e", "0"];
    let values: Vec<_> = (0..).zip(texts).map(|(id, s)| (id, Some(1), s)).collect();
    let rows = rows(&values, &schema);
    let ((found, warnings, count), sent) = anywhere(&["s = 0"], true, None, &rows);
    assert_eq!((found.unwrap().len(), sent), (6, 6));
    let truncated = |text: &str| format!("1292 Truncated incorrect DOUBLE value: '{text}'");
    assert_eq!(warnings, ["1a", "b", "0c", "d", "7e"].map(truncated));
    assert_eq!(count, 5);
    // What the statement would not have evaluated warns nobody: a row that warns is sent where a condition is missing.
    let (_, sent) = anywhere(&["s = 0", "s REGEXP 'z'"], false, None, &rows);
    assert_eq!(sent, 8);
}

/// More warnings than are kept are counted.
#[test]
fn many_warnings_are_counted() {
    let schema = schema(&table());
    let rows = rows(&(0..3000).map(|id| (id, Some(1), "abc")).collect::<Vec<_>>(), &schema);
    let ((found, warnings, count), sent) = anywhere(&["s = 1"], true, None, &rows);
    assert_eq!((found, warnings.len(), count, sent), (Ok(vec![]), 1024, 3000, 0));
}

/// A row whose evaluation fails is sent: the error is the statement's own, and only if it comes to that row.
#[test]
fn errors_are_those_of_the_statement() {
    let schema = schema(&table());
    let rows = rows(&(0..9).map(|id| (id, Some(id), "x")).collect::<Vec<_>>(), &schema);
    let ((found, ..), sent) = anywhere(&["IF(id = 5, b + id, 1) < 1"], true, None, &rows);
    assert_eq!((found, sent), (Err(1690), 1));
}

#[test]
fn long_inputs_are_left_to_the_statement() {
    let mut table = table();
    let text = table.columns.iter().position(|column| column.0 == "s").unwrap();
    table.columns[text].1.length = 20_000;
    let schema = Arc::new(schema(&table));
    let long = "x".repeat(9000);
    let rows = rows(&[(1, None, "x"), (2, None, &long), (3, None, "y")], &schema);
    let condition = bind("s = 'y'");
    let mut encoded = encode(&condition, &INPUTS).unwrap();
    if let rauk_wire::Expression::Call { arguments, .. } = &mut encoded
        && let rauk_wire::Expression::Column { ty, .. } = &mut arguments[0]
    {
        ty.ty.length = 20_000;
    }
    let parts = Parts { conditions: vec![encoded], complete: true, then: EncodedThen::Send };
    let program = program::encode(&parts, &context()).unwrap();
    let mut program = SqlEvaluator::default().prepare(&program, &schema).expect("it is known");
    let fates: Vec<_> = rows.iter().map(|row| program.visit(&RowView::new(&schema, 0, row))).collect();
    assert_eq!(fates, [Fate::Drop, Fate::Send, Fate::Send]);
}

fn grouping(keys: &[&str], aggregates: Vec<Aggregate>) -> Grouping {
    let carried = if keys.is_empty() { vec![] } else { vec![(0, 6)] };
    let kept = vec![false; keys.len()];
    Grouping { keys: keys.iter().map(|sql| bind(sql)).collect(), aggregates, carried, kept, rollup: None }
}

#[test]
fn groups_are_summed_up_where_the_rows_are() {
    use AggregateFunction::{Avg, Count, Max, Min, Sum};
    let schema = schema(&table());
    let values: Vec<_> =
        (0..300).map(|id| (id, (id % 7 != 0).then_some(id % 7), ["a", "B", "é"][id as usize % 3])).collect();
    let rows = rows(&values, &schema);
    let all = || {
        vec![
            aggregate(Count, None),
            aggregate(Count, Some("n")),
            aggregate(Sum, Some("id")),
            aggregate(Avg, Some("d * n")),
            aggregate(Min, Some("s")),
            aggregate(Max, Some("dt + INTERVAL id DAY")),
            aggregate(Max, Some("f * n")),
            aggregate(Min, Some("ts")),
        ]
    };
    for (keys, count) in [(vec![], 1), (vec!["n"], 7), (vec!["n", "id % 3"], 21)] {
        let grouping = grouping(&keys, all());
        let ((found, ..), sent) = anywhere(&["id < 290"], true, Some(&grouping), &rows);
        assert_eq!((found.unwrap().len(), sent), (count, 0), "{keys:?}");
        let ((found, ..), sent) = anywhere(&["id < 0"], true, Some(&grouping), &rows);
        assert_eq!((found.unwrap().len(), sent), (usize::from(keys.is_empty()), 0), "{keys:?}");
    }
}

/// Groups for which there is no room begin with the statement; a row that fails in one aggregate counts in none.
/// Groups that have come count as the statement's memory until they are taken over.
#[test]
fn groups_that_come_are_counted() {
    let schema = Arc::new(schema(&table()));
    let rows = rows(&[(1, Some(1), "a"), (2, Some(2), "b")], &schema);
    let grouping = grouping(&["n"], vec![aggregate(AggregateFunction::Count, None)]);
    for (limit, expected) in [(1 << 20, None), (1, Some(1038))] {
        let mut context = Context { ..context() };
        context.budget.memory = Memory::limited(limit);
        let work = work(&[], true, Some(&grouping), &context);
        let mut program = prepared(&work, &schema);
        for bytes in &rows {
            assert!(matches!(program.visit(&RowView::new(&schema, 0, bytes)), Fate::Drop));
        }
        assert!(work.take(&program.finish()));
        assert_eq!(work.is_full(), expected.is_some());
        assert_eq!(context.budget.memory.used() > 0, expected.is_none());
        let mut grouper = Grouper::new(&grouping, false, Memory::default(), &context);
        assert_eq!(work.add_groups(&mut grouper).err().map(|error| error.code), expected);
        assert_eq!(context.budget.memory.used(), 0);
    }
}

#[test]
fn what_cannot_be_summed_up_comes() {
    use AggregateFunction::{Count, Max, Sum};
    let schema = schema(&table());
    let rows = rows(&(0..1500).map(|id| (id, Some(id % 2), "x")).collect::<Vec<_>>(), &schema);
    let many = grouping(&["id"], vec![aggregate(Count, None), aggregate(Max, Some("n"))]);
    let ((found, ..), sent) = anywhere(&[], true, Some(&many), &rows);
    assert_eq!((found.unwrap().len(), sent), (1500, 1500 - 1024));
    let failing =
        vec![aggregate(Count, None), aggregate(Sum, Some("n")), aggregate(Sum, Some("IF(id = 700, b + id, 1)"))];
    let ((found, ..), sent) = anywhere(&[], true, Some(&grouping(&["n"], failing)), &rows);
    assert_eq!((found, sent), (Err(1690), 1));
}

/// Of rows in no order few more are sent than are wanted, and all of these; of equal ones those that came first.
#[test]
fn rows_beyond_a_limit_stay() {
    let schema = Arc::new(schema(&table()));
    let values: Vec<_> = (0..2000).map(|id| (id, (id % 9 != 0).then_some(id * 7919 % 400), "x")).collect();
    let rows = rows(&values, &schema);
    for (order, count) in [
        (vec![("n", false)], 10),
        (vec![("n", true)], 1),
        (vec![("n % 10", true), ("id", false)], 25),
        (vec![("id", true)], 10),
        (vec![("s", false)], 3),
    ] {
        let keys: Vec<_> = order.iter().map(|(sql, _)| encode(&bind(sql), &INPUTS).unwrap()).collect();
        let descending: Vec<bool> = order.iter().map(|(_, descending)| *descending).collect();
        let then = EncodedThen::First(count, keys, descending);
        let parts = Parts { conditions: vec![encode(&bind("id >= 5"), &INPUTS).unwrap()], complete: true, then };
        let program = program::encode(&parts, &context()).unwrap();
        let mut program = SqlEvaluator::default().prepare(&program, &schema).expect("it is known");
        let view = |row: &Vec<u8>| RowView::new(&schema, 0, row).get(0).to_owned();
        let (mut sent, mut wanted) = (Vec::new(), Vec::new());
        for row in &rows {
            if program.visit(&RowView::new(&schema, 0, row)) == Fate::Send {
                sent.push(view(row));
            }
            let zone = context().time_zone;
            let root = Joined::root(&zone);
            let joined = root.with(0, Part::Stored(RowView::new(&schema, 0, row)));
            let mut key = Vec::new();
            for (sql, descending) in &order {
                let expr = bind(sql);
                let value = expr.eval(&joined, &mut context()).unwrap();
                crate::expr::value_key::append_key(value.as_ref(), &expr.ty, *descending, &mut key);
            }
            if passes(&[bind("id >= 5")], &joined, &mut context()).unwrap() {
                wanted.push((key, view(row)));
            }
        }
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        let first: Vec<_> = wanted.iter().take(count).map(|(_, id)| id.clone()).collect();
        assert!(first.iter().all(|id| sent.contains(id)), "{order:?}");
        let most = if order[0] == ("id", true) { 1995 } else { count * 12 };
        assert!(sent.len() <= most, "{order:?}: {} rows are sent for {count}", sent.len());
    }
}

#[test]
fn settings_travel() {
    let schema = schema(&table());
    let parts = || Parts { conditions: vec![], complete: true, then: EncodedThen::Send };
    for zone in ["UTC", "Europe/Berlin", "America/New_York"] {
        let mut context = context();
        context.time_zone = jiff::tz::TimeZone::get(zone).unwrap();
        context.sql_mode.strict = false;
        context.sql_mode.allow_invalid_dates = true;
        context.strict_statement = true;
        context.max_error_count = 64;
        let (settings, program) = program::decode(&program::encode(&parts(), &context).unwrap(), &schema).unwrap();
        assert_eq!(settings.sql_mode, context.sql_mode);
        assert_eq!(settings.now_micros, context.now_micros);
        let instant = jiff::Timestamp::from_microsecond(context.now_micros).unwrap();
        assert_eq!(settings.time_zone.to_offset(instant), context.time_zone.to_offset(instant));
        assert_eq!((settings.collation, settings.max_allowed_packet), (context.collation, context.max_allowed_packet));
        assert_eq!((settings.max_error_count, settings.strict_statement, program.complete), (64, true, true));
    }
    let mut context = context();
    let offset = jiff::tz::Offset::from_seconds(-9000).unwrap();
    context.time_zone = jiff::tz::TimeZone::fixed(offset);
    let (settings, _) = program::decode(&program::encode(&parts(), &context).unwrap(), &schema).unwrap();
    assert_eq!(settings.time_zone.to_fixed_offset().unwrap(), offset);
    // Another version is not read.
    let mut bytes = program::encode(&parts(), &context).unwrap();
    bytes[0] += 1;
    assert!(program::decode(&bytes, &schema).is_none());
}

/// A change of rows that meet a condition: an assignment, or `None`: they are deleted.
fn change_of(condition: &str, set: Option<(&str, &str)>, schema: &TableSchema) -> Vec<u8> {
    let column = |name: &str| schema.columns.iter().position(|column| column.name == name).unwrap() as u16;
    let then = match set {
        None => EncodedThen::Delete,
        Some((name, value)) => EncodedThen::Change(vec![column(name)], vec![encode(&bind(value), &INPUTS).unwrap()]),
    };
    let conditions = vec![encode(&bind(condition), &INPUTS).unwrap()];
    program::encode(&Parts { conditions, complete: true, then }, &context()).unwrap()
}

#[test]
fn a_change_is_made_only_where_it_is_certain() {
    let schema = Arc::new(schema(&table()));
    let row = &rows(&[(7, Some(3), "three")], &schema)[0];
    let view = RowView::new(&schema, 0, row);
    let change = |condition: &str, set: Option<(&str, &str)>| {
        let program = change_of(condition, set, &schema);
        let mut change = SqlEvaluator::default().prepare_change(&program, &schema).expect("it is known");
        let first = change.change(&view);
        assert_eq!(change.change(&view), first, "it is asked again after a wait");
        first
    };
    let with = |name: &str, value: Value| {
        let mut values = view.to_values();
        values[schema.columns.iter().position(|column| column.name == name).unwrap()] = value;
        NewRow::Values(values)
    };
    assert_eq!(change("n = 3", Some(("n", "n + id"))), with("n", Value::Int(10)));
    assert_eq!(change("s = 'THREE'", Some(("s", "CONCAT(s, '!')"))), with("s", Value::from("three!")));
    assert_eq!(change("n = 3", Some(("n", "NULL"))), with("n", Value::Null));
    assert_eq!(change("id > 6", None), NewRow::Deleted);
    // The condition is not met, nothing changes, a value does not fit, something is to be warned of.
    for (condition, set) in [
        ("n = 4", Some(("n", "n + 1"))),
        ("n = 4", None),
        ("n = NULL", None),
        ("n = 3", Some(("n", "n"))),
        ("n = 3", Some(("ti", "n + 1000"))),
        ("n = 3", Some(("id", "NULL"))),
        ("n = 3", Some(("b", "b + 1"))),
        ("n = 3", Some(("s", "REPEAT('x', 30)"))),
        ("n = 3", Some(("d", "1 / 3"))),
        ("n = '3x'", Some(("n", "4"))),
        ("n = '3x'", None),
    ] {
        assert_eq!(change(condition, set), NewRow::Unsure, "{condition}: {set:?}");
    }
    // A scan's program changes nothing, and a change is none of a scan's.
    let evaluator = SqlEvaluator::default();
    assert!(evaluator.prepare(&change_of("n = 3", None, &schema), &schema).is_none());
    assert!(evaluator.prepare_change(&work(&[bind("n = 3")], true, None, &context()).program, &schema).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Programs and results that come damaged are refused, or do something else, and nothing worse.
    #[test]
    fn damage_does_no_harm(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        noise in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        use AggregateFunction::{Count, Min, Sum};
        let schema = Arc::new(schema(&table()));
        let rows = rows(&(0..20).map(|id| (id, Some(id % 2), "x1")).collect::<Vec<_>>(), &schema);
        let aggregates = vec![aggregate(Count, None), aggregate(Sum, Some("id * d")), aggregate(Min, Some("s"))];
        let grouping = grouping(&["n"], aggregates);
        let mut context = context();
        let work = work(&[bind("s = 0 OR id > 3")], true, Some(&grouping), &context);
        let spoil = |bytes: &mut Vec<u8>| {
            for (at, byte) in &damage {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
        };
        let run = |program: &[u8]| {
            let mut program = SqlEvaluator::default().prepare(program, &schema)?;
            for row in &rows {
                program.visit(&RowView::new(&schema, 0, row));
            }
            Some(program.finish())
        };
        let mut program = work.program.clone();
        spoil(&mut program);
        run(&program);
        run(&noise);
        for set in [None, Some(("n", "n + id")), Some(("s", "CONCAT(s, d)"))] {
            let mut program = change_of("n = 0 OR id > 3", set, &schema);
            spoil(&mut program);
            if let Some(mut change) = SqlEvaluator::default().prepare_change(&program, &schema) {
                rows.iter().for_each(|row| drop(change.change(&RowView::new(&schema, 0, row))));
            }
        }
        let mut result = run(&work.program).expect("it is known");
        spoil(&mut result);
        for result in [&result, &noise] {
            if work.take(result) {
                let mut grouper = Grouper::new(&grouping, false, Memory::default(), &context);
                if work.add_groups(&mut grouper).is_ok() {
                    let _ = grouper.finish(&mut context);
                }
                work.end(false, &mut context);
            }
        }
    }
}
