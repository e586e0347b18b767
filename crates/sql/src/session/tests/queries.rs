//! Plans of several queries, put together by hand from the plans of simple statements.

use super::{Server, Test, render, server};
use crate::expr::{CompareOp, Comparison, Expr, ExprKind, Subquery, SubqueryId, SubqueryTest};
use crate::plan::model::{
    Access, CommonTablePlan, Parts, QueryPlan, RecursivePlan, RowsOf, SelectPlan, SetOp, SetPlan, SourceTable, Step,
    SubqueryPlan,
};
use crate::plan::{Plan, PlanKind};
use crate::session::collect::Collector;
use crate::session::plan_cache::CachedPlan;
use rauk_node::{TableHandle, block_on};
use rauk_types::result::ResultColumn;
use rauk_types::{Collation, DataType, TypeKind};
use std::sync::Arc;

const INT: DataType = DataType::new(TypeKind::Int);

/// A SELECT's block, what it is called by clients, and its tables.
struct Block {
    select: SelectPlan,
    columns: Vec<ResultColumn>,
    tables: Vec<(TableHandle, bool)>,
}

fn plan(t: &Test, sql: &str) -> CachedPlan {
    let tree = t.session.parse_one(sql).expect("it parses");
    let (plan, _) = t.session.plan(&tree, vec![]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    Arc::into_inner(plan).expect("nobody else has the plan")
}

fn block(t: &Test, sql: &str) -> Block {
    let Plan { columns, tables, kind, .. } = plan(t, sql).plan;
    let PlanKind::Select(select) = kind else { panic!("{sql} is no SELECT") };
    Block { select: *select, columns, tables }
}

fn query(t: &Test, sql: &str, tables: &mut Vec<(TableHandle, bool)>) -> QueryPlan {
    let block = block(t, sql);
    tables.extend(block.tables);
    QueryPlan::Select(Box::new(block.select))
}

/// Runs a plan as a SELECT.
fn run(t: &mut Test, plan: Plan) -> String {
    let cached = CachedPlan { plan, ..self::plan(t, "SELECT 1") };
    let mut sink = Collector::default();
    t.session.clear_warnings();
    let result = block_on(t.session.run_plan(&cached, &mut sink)).map(|_| ());
    render(&sink, result)
}

fn parts(subqueries: Vec<SubqueryPlan>, tables: Vec<CommonTablePlan>) -> Parts {
    let outer_columns = subqueries.iter().map(|s| s.outer).sum();
    Parts { subqueries, tables, parameters: 0, outer_columns }
}

fn set(t: &mut Test, op: SetOp, all: bool, left: &str, right: &str) -> String {
    let columns = block(t, left).columns;
    let mut tables = vec![];
    let (left, right) = (query(t, left, &mut tables), query(t, right, &mut tables));
    let QueryPlan::Select(first) = &left else { unreachable!() };
    let types = first.items.iter().map(|item| item.ty).collect();
    let plan = SetPlan { op, all, left, right, types };
    run(t, Plan { columns, tables, parts: None, kind: PlanKind::Query(Box::new(QueryPlan::Set(Box::new(plan)))) })
}

fn expr(kind: ExprKind, ty: DataType) -> Expr {
    Expr { kind, ty, nullable: true, coercibility: 2 }
}

fn column(table: usize, column: usize) -> Expr {
    expr(ExprKind::Column { table, column }, INT)
}

/// Table a (id, v) of 1|10, 2|20, 3|NULL, 4|20; table b (v) of 20, 20, 30.
fn tables(server: &Server) -> Test {
    let mut t = server.session();
    t.ok("CREATE TABLE a (id INT PRIMARY KEY, v INT)");
    t.ok("INSERT INTO a VALUES (1, 10), (2, 20), (3, NULL), (4, 20)");
    t.ok("CREATE TABLE b (n INT PRIMARY KEY, v INT)");
    t.ok("INSERT INTO b VALUES (1, 20), (2, 20), (3, 30)");
    t
}

fn sorted(answer: String) -> String {
    let mut lines: Vec<&str> = answer.lines().collect();
    lines.sort_unstable();
    lines.join(" ")
}

#[test]
fn set_operations_count_rows_as_multisets() {
    let server = server();
    let mut t = tables(&server);
    let (a, b) = ("SELECT v FROM a", "SELECT v FROM b");
    let mut set = |op, all, l, r| sorted(set(&mut t, op, all, l, r));
    assert_eq!(set(SetOp::Union, true, a, b), "10 20 20 20 20 30 NULL");
    assert_eq!(set(SetOp::Union, false, a, b), "10 20 30 NULL");
    assert_eq!(set(SetOp::Intersect, true, a, b), "20 20");
    assert_eq!(set(SetOp::Intersect, false, a, b), "20");
    assert_eq!(set(SetOp::Except, true, a, b), "10 NULL");
    assert_eq!(set(SetOp::Except, false, b, "SELECT 30"), "20");
    assert_eq!(set(SetOp::Except, true, b, "SELECT 20"), "20 30");
    // NULLs are equal, and texts by their collation; the left side's text stays.
    assert_eq!(set(SetOp::Intersect, false, a, "SELECT NULL FROM b"), "NULL");
    assert_eq!(set(SetOp::Union, false, "SELECT 'x'", "SELECT 'X'"), "x");
    // Each side has its own LIMIT.
    assert_eq!(set(SetOp::Union, true, "SELECT id FROM a ORDER BY id DESC LIMIT 1", "SELECT 7"), "4 7");
    t.expect("SELECT FOUND_ROWS()", &["2"]);
}

#[test]
fn what_set_operations_hold_is_counted() {
    let server = server();
    let mut t = tables(&server);
    t.ok("SET rauk_query_memory_limit = 1048576");
    for bit in 5..10 {
        t.ok(&format!("INSERT INTO a SELECT id + {}, v FROM a", 1 << bit));
    }
    let rows = "SELECT x.id, y.id, REPEAT('x', 100) FROM a x JOIN a y";
    assert!(set(&mut t, SetOp::Union, false, rows, rows).contains("ERROR 1038"));
    t.expect("SELECT 1", &["1"]);
}

/// `SELECT 1 UNION [ALL] SELECT n + 1 FROM t WHERE n < limit`.
fn recursive(t: &mut Test, all: bool, step: &str, limit: i64) -> String {
    let seed = QueryPlan::Select(Box::new(block(t, "SELECT 1").select));
    t.ok("CREATE TABLE IF NOT EXISTS shape (n BIGINT)");
    let over = |sql: &str, of: RowsOf, t: &Test| {
        let Block { mut select, columns, .. } = block(t, sql);
        let schema = select.sources[0].schema().clone();
        select.sources[0].table = SourceTable::Query(of, schema);
        for step in &mut select.steps {
            if let Step::Scan(level) = step {
                level.access = Access::Rows;
            }
        }
        (select, columns)
    };
    let (again, _) = over(&format!("SELECT {step} FROM shape WHERE n < {limit}"), RowsOf::Working(0), t);
    let (main, columns) = over("SELECT COUNT(*), SUM(n) FROM shape", RowsOf::Common(0), t);
    let table = CommonTablePlan {
        name: "t".to_string(),
        seed,
        recursive: Some(RecursivePlan { query: QueryPlan::Select(Box::new(again)), all }),
        types: vec![DataType::BIGINT],
    };
    let parts = Some(Arc::new(parts(vec![], vec![table])));
    run(t, Plan { columns, tables: vec![], parts, kind: PlanKind::Select(Box::new(main)) })
}

#[test]
fn recursive_tables_end_or_are_ended() {
    let server = server();
    let mut t = server.session();
    assert_eq!(recursive(&mut t, true, "n + 1", 100), "100|5050");
    assert_eq!(recursive(&mut t, true, "n + 1", 1000), "1000|500500");
    let error = "ERROR 3636: Recursive query aborted after 1001 iterations. \
                 Try increasing @@cte_max_recursion_depth to a larger value.";
    assert_eq!(recursive(&mut t, true, "n + 1", 1001), error);
    t.ok("SET cte_max_recursion_depth = 5000");
    assert_eq!(recursive(&mut t, true, "n + 1", 1001), "1001|501501");
    // Equal rows end a UNION, not a UNION ALL.
    assert_eq!(recursive(&mut t, false, "n % 7 + 1", 1000), "7|28");
    assert!(recursive(&mut t, true, "n % 7 + 1", 1000).contains("aborted after 5001 iterations"));
    t.ok("SET cte_max_recursion_depth = 4294967295");
    t.ok("SET max_execution_time = 50");
    assert!(recursive(&mut t, true, "n % 7 + 1", 1000).contains("ERROR 3024"));
    t.ok("SET max_execution_time = 0");
    t.ok("SET rauk_query_memory_limit = 1048576");
    assert!(recursive(&mut t, true, "n % 7 + 1", 1000).contains("ERROR 1038"));
}

/// A subquery for the number `id`; with `outer` it reads the column through its only parameter.
fn subquery(id: u32, outer: Vec<Expr>, test: SubqueryTest) -> Expr {
    let ty = if matches!(test, SubqueryTest::Scalar) { INT } else { DataType::BIGINT };
    expr(ExprKind::Subquery(Box::new(Subquery { id: SubqueryId(id), outer, test })), ty)
}

fn subquery_plan(query: QueryPlan, first_outer: usize, outer: usize) -> SubqueryPlan {
    let QueryPlan::Select(select) = &query else { panic!("a block") };
    let types = select.items.iter().map(|item| item.ty).collect();
    SubqueryPlan { query, first_outer, outer, types }
}

/// Runs `SELECT id FROM a WHERE condition`.
fn filtered(
    t: &mut Test,
    condition: Expr,
    subqueries: Vec<SubqueryPlan>,
    mut tables: Vec<(TableHandle, bool)>,
) -> String {
    let Block { mut select, columns, tables: own } = block(t, "SELECT id FROM a");
    tables.extend(own);
    for step in &mut select.steps {
        if let Step::Scan(level) = step {
            level.late_filters = vec![condition.clone()];
        }
    }
    select.late = true;
    let parts = Some(Arc::new(parts(subqueries, vec![])));
    sorted(run(t, Plan { columns, tables, parts, kind: PlanKind::Select(Box::new(select)) }))
}

/// `v op ANY|ALL (sql)` over table a.
fn quantified(t: &mut Test, op: CompareOp, all: bool, sql: &str) -> String {
    let mut tables = vec![];
    let plan = subquery_plan(query(t, sql, &mut tables), 0, 0);
    let test = SubqueryTest::Quantified { left: vec![column(0, 1)], op, by: vec![Comparison::Integer], all };
    filtered(t, subquery(0, vec![], test), vec![plan], tables)
}

#[test]
fn quantified_comparisons_know_nulls() {
    let server = server();
    let mut t = tables(&server);
    use CompareOp::{Eq, Ge, Gt, Lt, Ne};
    let b = "SELECT v FROM b";
    let nulls = "SELECT v FROM a";
    let none = "SELECT v FROM b WHERE v > 100";
    assert_eq!(quantified(&mut t, Eq, false, b), "2 4");
    assert_eq!(quantified(&mut t, Ne, true, b), "1");
    assert_eq!(quantified(&mut t, Eq, false, nulls), "1 2 4");
    assert_eq!(quantified(&mut t, Ne, true, nulls), "");
    assert_eq!(quantified(&mut t, Ne, true, none), "1 2 3 4");
    assert_eq!(quantified(&mut t, Eq, false, none), "");
    assert_eq!(quantified(&mut t, Gt, false, nulls), "2 4");
    assert_eq!(quantified(&mut t, Ge, true, nulls), "");
    assert_eq!(quantified(&mut t, Lt, true, b), "1");
    assert_eq!(quantified(&mut t, Ge, true, "SELECT v FROM a WHERE v IS NOT NULL"), "2 4");
    assert_eq!(quantified(&mut t, Eq, true, "SELECT v FROM b WHERE v < 30"), "2 4");
    assert_eq!(quantified(&mut t, Ne, false, "SELECT v FROM b WHERE v < 30"), "1");
}

#[test]
fn a_correlated_subquery_runs_for_each_outer_value() {
    let server = server();
    let mut t = tables(&server);
    // EXISTS (SELECT … FROM b WHERE b.v = a.v), with the outer column as parameter 0.
    let exists = |t: &Test| {
        let Block { mut select, tables, .. } = block(t, "SELECT n FROM b WHERE v = 20");
        for step in &mut select.steps {
            if let Step::Scan(level) = step {
                for filter in &mut level.filters {
                    *filter = filter.clone().map(&mut |e| match e.kind {
                        ExprKind::Literal(_) => expr(ExprKind::Parameter(0), INT),
                        _ => e,
                    });
                }
            }
        }
        (subquery_plan(QueryPlan::Select(Box::new(select)), 0, 1), tables)
    };
    let (plan, own) = exists(&t);
    let condition = subquery(0, vec![column(0, 1)], SubqueryTest::Exists);
    assert_eq!(filtered(&mut t, condition.clone(), vec![plan], own), "2 4");
    // A scalar one gives two rows for 20, but only where it is asked for that.
    let (plan, own) = exists(&t);
    let scalar = subquery(0, vec![column(0, 1)], SubqueryTest::Scalar);
    assert_eq!(filtered(&mut t, scalar.clone(), vec![plan], own), "ERROR 1242: Subquery returns more than 1 row");
    let small = expr(
        ExprKind::Compare {
            op: CompareOp::Lt,
            by: Comparison::Integer,
            left: Box::new(column(0, 0)),
            right: Box::new(expr(ExprKind::Literal(rauk_types::Value::Int(2)), INT)),
        },
        DataType::BIGINT,
    );
    let is_null = expr(ExprKind::IsNull { expr: Box::new(scalar), negated: false }, DataType::BIGINT);
    let both = expr(ExprKind::And(Box::new(small), Box::new(is_null)), DataType::BIGINT);
    let (plan, own) = exists(&t);
    assert_eq!(filtered(&mut t, both, vec![plan], own), "1");
}

#[test]
fn many_answers_are_dropped_and_evaluation_goes_on() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE a (id INT PRIMARY KEY, v INT)");
    for part in 0..10 {
        let rows: Vec<String> = (part * 1000..part * 1000 + 1000).map(|id| format!("({id}, {id})")).collect();
        t.ok(&format!("INSERT INTO a VALUES {}", rows.join(",")));
    }
    // (SELECT ?) for each row.
    let mut select = block(&t, "SELECT 1").select;
    select.items = vec![expr(ExprKind::Parameter(0), INT)];
    let scalar = subquery(0, vec![column(0, 1)], SubqueryTest::Scalar);
    let plan = subquery_plan(QueryPlan::Select(Box::new(select)), 0, 1);
    let Block { mut select, columns, tables } = block(&t, "SELECT SUM(v), COUNT(*) FROM a");
    select.late = true;
    let grouping = select.grouping.as_mut().expect("it groups");
    grouping.aggregates[0].arguments = vec![scalar];
    let parts = Some(Arc::new(parts(vec![plan], vec![])));
    let plan = Plan { columns, tables, parts, kind: PlanKind::Select(Box::new(select)) };
    assert_eq!(run(&mut t, plan), "49995000|10000");
}

#[test]
fn an_evaluation_that_waits_leaves_no_warnings() {
    let server = server();
    let mut t = server.session();
    // SELECT ('abc' + 0) + (SELECT 1): the warning of 'abc' comes once.
    let plan = subquery_plan(QueryPlan::Select(Box::new(block(&t, "SELECT 1").select)), 0, 0);
    let Block { mut select, columns, .. } = block(&t, "SELECT 'abc' + 7");
    select.late = true;
    select.items[0] = select.items[0].clone().map(&mut |e| match &e.kind {
        ExprKind::Literal(value) if value.as_ref().as_str().is_none() => subquery(0, vec![], SubqueryTest::Scalar),
        _ => e,
    });
    let parts = Some(Arc::new(parts(vec![plan], vec![])));
    assert_eq!(run(&mut t, Plan { columns, tables: vec![], parts, kind: PlanKind::Select(Box::new(select)) }), "1");
    t.expect("SHOW WARNINGS", &["Warning|1292|Truncated incorrect DOUBLE value: 'abc'"]);
}

#[test]
fn texts_of_in_are_equal_by_their_collation() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE a (id INT PRIMARY KEY, s VARCHAR(9))");
    t.ok("INSERT INTO a VALUES (1, 'x'), (2, 'Y'), (3, 'z')");
    let mut tables = vec![];
    let plan = subquery_plan(query(&t, "SELECT 'y'", &mut tables), 0, 0);
    let left = expr(ExprKind::Column { table: 0, column: 1 }, DataType::varchar(9, Collation::DEFAULT));
    let by = vec![Comparison::Text(Collation::DEFAULT)];
    let test = SubqueryTest::Quantified { left: vec![left], op: CompareOp::Eq, by, all: false };
    assert_eq!(filtered(&mut t, subquery(0, vec![], test), vec![plan], tables), "2");
}
