//! The shapes of queries and changes: what binds what, where clauses belong, what follows what. The grammar's other tests are in `tests`.

use super::ast::*;
use super::statement::*;
use super::tests::{message, statement};
use super::*;

fn query(sql: &str) -> Query {
    match statement(sql) {
        Statement::Query(query) => *query,
        other => panic!("{sql}: {other:?}"),
    }
}

fn code(sql: &str) -> u16 {
    parse(sql, Mode::default()).expect_err(sql).code
}

/// The end of the text where the error is.
fn near(sql: &str) -> String {
    let message = message(sql);
    let from = message.find("near '").unwrap_or_else(|| panic!("{sql}: {message}")) + 6;
    message[from..message.rfind("' at line").unwrap()].to_string()
}

/// Operators in parentheses, clauses behind what they belong to, in brackets a query in parentheses.
fn of_query(query: &Query) -> String {
    let mut text = String::new();
    if let Some(with) = &query.with {
        let tables: Vec<String> = with.tables.iter().map(|t| format!("{}={}", t.name, of_query(&t.query))).collect();
        text = format!("with{} {} ", if with.recursive { "*" } else { "" }, tables.join(" "));
    }
    text += &of_body(&query.body);
    for item in &query.order_by {
        text += &format!(" order {}", item.expr);
    }
    if let Some(limit) = &query.limit {
        text += &format!(" limit {}", limit.count);
    }
    for lock in &query.locks {
        let of: Vec<&str> = lock.of.iter().map(|t| t.name.as_str()).collect();
        text += &format!(" {:?}({}){:?}", lock.strength, of.join(" "), lock.wait);
    }
    if let Some(into) = &query.into {
        text += &format!(" {into:?}");
    }
    text
}

fn of_body(body: &QueryBody) -> String {
    match body {
        QueryBody::Select(select) => match &select.items[0] {
            SelectItem::Expr { expr, .. } => expr.to_string(),
            other => other.to_string(),
        },
        QueryBody::Query(query) => format!("[{}]", of_query(query)),
        QueryBody::SetOperation { op, all, left, right } => {
            let all = if *all { "All" } else { "" };
            format!("({} {op:?}{all} {})", of_body(left), of_body(right))
        }
        QueryBody::Values(rows) => format!("values {}", rows.len()),
        QueryBody::Table(table) => format!("table {}", table.name),
    }
}

/// Joins in parentheses.
fn of_table(table: &TableReference) -> String {
    match table {
        TableReference::Table(table) => table.alias.clone().unwrap_or_else(|| table.name.name.clone()),
        TableReference::Derived { lateral, query, alias, columns } => {
            let lateral = if *lateral { "lateral " } else { "" };
            format!("{lateral}[{}] {alias}{columns:?}", of_query(query))
        }
        TableReference::JsonTable(table) => format!("json_table {}", table.alias),
        TableReference::Join(join) => {
            let condition = match &join.condition {
                JoinCondition::None => String::new(),
                JoinCondition::On(expr) => format!(" on {expr}"),
                JoinCondition::Using(columns) => format!(" using {}", columns.join(" ")),
                JoinCondition::Natural => " natural".to_string(),
            };
            format!("({} {:?} {}{condition})", of_table(&join.left), join.kind, of_table(&join.right))
        }
    }
}

fn of_tables(tables: &[TableReference]) -> String {
    tables.iter().map(of_table).collect::<Vec<_>>().join(", ")
}

fn of_from(from: &str) -> String {
    let QueryBody::Select(select) = query(&format!("SELECT 1 FROM {from}")).body else { panic!("{from}") };
    of_tables(&select.from)
}

#[test]
fn set_operations_and_their_clauses() {
    let cases = [
        ("SELECT 1 UNION SELECT 2 UNION ALL SELECT 3", "((1 Union 2) UnionAll 3)"),
        ("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3", "(1 Union (2 Intersect 3))"),
        ("SELECT 1 INTERSECT SELECT 2 UNION SELECT 3", "((1 Intersect 2) Union 3)"),
        ("SELECT 1 INTERSECT ALL SELECT 2 INTERSECT SELECT 3", "((1 IntersectAll 2) Intersect 3)"),
        ("SELECT 1 EXCEPT SELECT 2 UNION DISTINCT SELECT 3", "((1 Except 2) Union 3)"),
        (
            "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4 INTERSECT SELECT 5",
            "((1 Union (2 Intersect 3)) Except (4 Intersect 5))",
        ),
        ("(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3", "((1 Union 2) Intersect 3)"),
        ("SELECT 1 UNION (SELECT 2 UNION SELECT 3)", "(1 Union (2 Union 3))"),
        ("SELECT 1 EXCEPT (SELECT 2 EXCEPT SELECT 3)", "(1 Except (2 Except 3))"),
        ("((SELECT 1)) UNION (((SELECT 2)))", "(1 Union 2)"),
        ("SELECT 1 ORDER BY a LIMIT 2", "1 order `a` limit 2"),
        ("(SELECT 1 ORDER BY a LIMIT 2)", "1 order `a` limit 2"),
        ("((SELECT 1 LIMIT 2) LIMIT 3) LIMIT 4", "[[1 limit 2] limit 3] limit 4"),
        ("(SELECT 1) ORDER BY a", "1 order `a`"),
        ("SELECT 1 UNION SELECT 2 ORDER BY a LIMIT 3", "(1 Union 2) order `a` limit 3"),
        ("SELECT 1 UNION (SELECT 2 ORDER BY a LIMIT 3)", "(1 Union [2 order `a` limit 3])"),
        ("(SELECT 1 LIMIT 2) UNION (SELECT 2 LIMIT 3) LIMIT 4", "([1 limit 2] Union [2 limit 3]) limit 4"),
        ("(SELECT 1 UNION SELECT 2 LIMIT 3) UNION SELECT 4", "([(1 Union 2) limit 3] Union 4)"),
        ("(SELECT 1 FOR UPDATE) UNION SELECT 2", "([1 Update()Wait] Union 2)"),
        ("TABLE t UNION VALUES ROW(1), ROW(2) ORDER BY 1", "(table t Union values 2) order 1"),
        ("(TABLE t LIMIT 1) EXCEPT TABLE u", "([table t limit 1] Except table u)"),
        ("WITH a AS (SELECT 1), b (x) AS (TABLE a) SELECT 2 UNION SELECT 3", "with a=1 b=table a (2 Union 3)"),
        ("WITH RECURSIVE a AS (SELECT 1 UNION SELECT 2) (SELECT 3) LIMIT 4", "with* a=(1 Union 2) 3 limit 4"),
        ("SELECT 1 UNION (WITH a AS (SELECT 2) SELECT 3)", "(1 Union [with a=2 3])"),
        ("WITH a AS (SELECT 1) (WITH b AS (SELECT 2) SELECT 3)", "with a=1 [with b=2 3]"),
        ("SELECT 1 FOR UPDATE OF a, b NOWAIT FOR SHARE OF c SKIP LOCKED", "1 Update(a b)NoWait Share(c)SkipLocked"),
        ("SELECT 1 LIMIT 2 LOCK IN SHARE MODE", "1 limit 2 Share()Wait"),
    ];
    for (sql, expected) in cases {
        assert_eq!(of_query(&query(sql)), expected, "{sql}");
    }
    assert_eq!(near("SELECT 1 ORDER BY a UNION SELECT 2"), "UNION SELECT 2");
    assert_eq!(near("SELECT 1 LIMIT 1 UNION SELECT 2"), "UNION SELECT 2");
    assert_eq!(near("SELECT 1 UNION ORDER BY 1"), "ORDER BY 1");
    assert_eq!(near("VALUES ROW(1), (2)"), "(2)");
    assert_eq!(near("VALUES ROW()"), ")");
    assert_eq!(near("WITH a AS (SELECT 1)"), "");
    assert_eq!(near("WITH a AS (SELECT 1) INSERT INTO t VALUES (1)"), "INSERT INTO t VALUES (1)");
}

#[test]
fn into_stands_in_every_place_once() {
    let variables = "Variables([User(\"a\"), Local(\"b\")])";
    for sql in [
        "SELECT 1 INTO @a, b",
        "SELECT 1 INTO @a, b FROM t WHERE c ORDER BY d LIMIT 1",
        "SELECT 1 FROM t ORDER BY d LIMIT 1 INTO @a, b",
        "SELECT 1 FROM t INTO @a, b FOR UPDATE",
        "SELECT 1 FROM t FOR UPDATE INTO @a, b",
        "SELECT 1 UNION SELECT 2 INTO @a, b",
        "SELECT 1 UNION SELECT 2 INTO @a, b FROM t",
        "(SELECT 1 INTO @a, b)",
        "((SELECT 1 LIMIT 1 INTO @a, b))",
    ] {
        assert!(of_query(&query(sql)).ends_with(variables), "{sql}");
    }
    let file = query(
        "SELECT a FROM t INTO OUTFILE 'x' CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' \
         ESCAPED BY '\\\\' LINES STARTING BY '' TERMINATED BY '\\n'",
    );
    let format =
        FileFormat { field_end: b",".to_vec(), enclosed: b"\"".to_vec(), optionally: true, ..FileFormat::default() };
    let charset = Some("utf8mb4".to_string());
    assert_eq!(file.into, Some(Into::OutFile(Box::new(OutFile { path: "x".into(), charset, format }))));
    assert_eq!(query("SELECT 1 INTO DUMPFILE 'x'").into, Some(Into::DumpFile("x".into())));
    assert_eq!(code("SELECT 1 INTO @a FROM t INTO @b"), 3953);
    assert_eq!(near("SELECT 1 FROM t INTO"), "");
    for sql in [
        "SELECT (SELECT 1 INTO @a)",
        "SELECT 1 FROM (SELECT 1 INTO @a) d",
        "SELECT 1 INTO @a UNION SELECT 2",
        "(SELECT 1 INTO @a) UNION SELECT 2",
        "(SELECT 1 INTO @a) LIMIT 1",
        "WITH c AS (SELECT 1 INTO @a) SELECT 1",
        "INSERT INTO t SELECT 1 INTO @a",
        "CREATE TABLE t AS SELECT 1 INTO @a",
    ] {
        assert_eq!(code(sql), 3954, "{sql}");
    }
}

#[test]
fn joins_bind_as_in_mysql() {
    let cases = [
        ("a, b", "a, b"),
        ("a JOIN b", "(a Inner b)"),
        ("a JOIN b JOIN c", "((a Inner b) Inner c)"),
        ("a CROSS JOIN b STRAIGHT_JOIN c ON x", "((a Inner b) Straight c on `x`)"),
        ("a JOIN b ON x JOIN c ON y", "((a Inner b on `x`) Inner c on `y`)"),
        ("a JOIN b JOIN c ON x", "((a Inner b) Inner c on `x`)"),
        ("a JOIN b JOIN c ON x ON y", "(a Inner (b Inner c on `x`) on `y`)"),
        ("a JOIN b JOIN c JOIN d ON x ON y", "((a Inner b) Inner (c Inner d on `x`) on `y`)"),
        ("a JOIN b JOIN c ON x JOIN d ON y", "(((a Inner b) Inner c on `x`) Inner d on `y`)"),
        ("a JOIN b LEFT JOIN c ON x", "((a Inner b) Left c on `x`)"),
        ("a LEFT JOIN b ON x LEFT JOIN c ON y", "((a Left b on `x`) Left c on `y`)"),
        ("a LEFT JOIN b LEFT JOIN c ON x ON y", "(a Left (b Left c on `x`) on `y`)"),
        ("a LEFT OUTER JOIN b RIGHT JOIN c USING (x) USING (y, z)", "(a Left (b Right c using x) using y z)"),
        ("a RIGHT JOIN b ON x JOIN c ON y", "((a Right b on `x`) Inner c on `y`)"),
        ("a LEFT JOIN b JOIN c ON x ON y", "(a Left (b Inner c on `x`) on `y`)"),
        ("a LEFT JOIN b JOIN c JOIN d ON x ON y ON z", "(a Left (b Inner (c Inner d on `x`) on `y`) on `z`)"),
        ("a JOIN (b JOIN c ON x)", "(a Inner (b Inner c on `x`))"),
        ("a JOIN (b JOIN c) JOIN d", "((a Inner (b Inner c)) Inner d)"),
        ("a JOIN (b JOIN c) LEFT JOIN d ON x", "((a Inner (b Inner c)) Left d on `x`)"),
        ("(a JOIN b) JOIN c", "((a Inner b) Inner c)"),
        ("(((a)))", "a"),
        ("(a, b) LEFT JOIN c ON x", "((a Inner b) Left c on `x`)"),
        ("(a, b JOIN c ON x, d)", "((a Inner (b Inner c on `x`)) Inner d)"),
        ("a NATURAL JOIN b JOIN c ON x", "((a Inner b natural) Inner c on `x`)"),
        ("a NATURAL LEFT OUTER JOIN b NATURAL RIGHT JOIN c", "((a Left b natural) Right c natural)"),
        ("a LEFT JOIN b NATURAL INNER JOIN c ON x", "(a Left (b Inner c natural) on `x`)"),
        ("{ OJ a LEFT JOIN b ON x } JOIN c", "((a Left b on `x`) Inner c)"),
        ("(SELECT 1) AS d (x, y)", "[1] d[\"x\", \"y\"]"),
        ("((SELECT 1) UNION SELECT 2) d", "[(1 Union 2)] d[]"),
        ("((SELECT 1)) d", "[1] d[]"),
        ("((SELECT 1) d)", "[1] d[]"),
        ("((SELECT 1) d JOIN (SELECT 2) e ON x)", "([1] d[] Inner [2] e[] on `x`)"),
        ("((SELECT 1) d, b)", "([1] d[] Inner b)"),
        ("(((SELECT 1) d JOIN b) JOIN c)", "(([1] d[] Inner b) Inner c)"),
        ("(TABLE t) d, (VALUES ROW(1)) e", "[table t] d[], [values 1] e[]"),
        ("a, LATERAL (SELECT a.x) d", "a, lateral [`a`.`x`] d[]"),
        ("a LEFT JOIN LATERAL (SELECT 1) d ON x", "(a Left lateral [1] d[] on `x`)"),
    ];
    for (sql, expected) in cases {
        assert_eq!(of_from(sql), expected, "{sql}");
    }
    let errors = [
        ("a LEFT JOIN b", ""),
        ("a LEFT JOIN b JOIN c ON x", ""),
        ("a NATURAL CROSS JOIN b", "CROSS JOIN b"),
        ("a NATURAL JOIN b ON x", "ON x"),
        ("LATERAL a", "a"),
        ("LATERAL (a)", ""),
        ("a FORCE INDEX ()", ")"),
    ];
    for (sql, expected) in errors {
        assert_eq!(near(&format!("SELECT 1 FROM {sql}")), expected, "{sql}");
    }
    assert_eq!(code("SELECT 1 FROM ((SELECT 1), b)"), 1248);
    let joins = |n: usize, join: &str| format!("SELECT 1 FROM {}", vec!["a"; n + 1].join(join));
    for join in [" JOIN ", " NATURAL JOIN ", " STRAIGHT_JOIN "] {
        assert!(parse(&joins(500, join), Mode::default()).is_ok());
        assert_eq!(code(&joins(501, join)), 1436);
    }
    assert_eq!(code(&format!("SELECT 1 FROM ({})", vec!["a"; 600].join(","))), 1436);
}

#[test]
fn tables_with_everything() {
    let QueryBody::Select(select) =
        query("SELECT 1 FROM d.t PARTITION (p, q) AS a USE INDEX () IGNORE KEY FOR GROUP BY (k, PRIMARY)").body
    else {
        panic!()
    };
    assert_eq!(
        select.from,
        [TableReference::Table(TableFactor {
            name: TableName { database: Some("d".into()), name: "t".into() },
            alias: Some("a".into()),
            partitions: vec!["p".into(), "q".into()],
            hints: vec![
                IndexHint { action: IndexHintAction::Use, scope: None, indexes: vec![] },
                IndexHint {
                    action: IndexHintAction::Ignore,
                    scope: Some(IndexHintScope::GroupBy),
                    indexes: vec!["k".into(), "PRIMARY".into()]
                },
            ],
        })]
    );
}

#[test]
fn windows_have_names_and_frames() {
    let QueryBody::Select(select) = query(
        "SELECT SUM(a) OVER w FROM t GROUP BY b WITH ROLLUP HAVING c WINDOW w AS (v ROWS 2 PRECEDING), v AS (PARTITION BY a, b \
         ORDER BY c DESC)",
    )
    .body
    else {
        panic!()
    };
    assert!(select.rollup && select.having.is_some());
    assert_eq!(select.windows.len(), 2);
    let (name, spec) = &select.windows[0];
    assert_eq!((name.as_str(), spec.base.as_deref()), ("w", Some("v")));
    let frame = Frame { unit: FrameUnit::Rows, start: FrameBound::Preceding(Expr::number("2")), end: None };
    assert_eq!(spec.frame, Some(frame));
    assert_eq!((select.windows[1].1.partition_by.len(), select.windows[1].1.order_by[0].descending), (2, true));
    assert_eq!(near("SELECT SUM(a) OVER (ROWS -1 PRECEDING)"), "-1 PRECEDING)");
    assert_eq!(near("SELECT SUM(a) OVER (ROWS a PRECEDING)"), "a PRECEDING)");
    assert_eq!(near("SELECT SUM(a) OVER (ROWS INTERVAL(1, 2) PRECEDING)"), "PRECEDING)");
    assert_eq!(near("SELECT LAG(a) NULLS OVER w"), "OVER w");
    assert_eq!(code("SELECT SUM(a) OVER (ORDER BY a GROUPS 1 PRECEDING)"), 1235);
    assert_eq!(code("SELECT SUM(a) OVER (ROWS CURRENT ROW EXCLUDE TIES)"), 1235);
    // The words are names elsewhere.
    assert_eq!(of_from("nulls JOIN respect ON lateral_view"), "(nulls Inner respect on `lateral_view`)");
}

#[test]
fn changes_of_several_tables() {
    let Statement::Update(update) = statement(
        "WITH c AS (SELECT 1) UPDATE LOW_PRIORITY IGNORE a JOIN c ON a.x = c.x, b SET a.x = b.x, d.b.y := DEFAULT WHERE z ORDER BY x \
         LIMIT ?",
    ) else {
        panic!()
    };
    assert!(update.with.is_some() && update.ignore && update.filter.is_some());
    assert_eq!(of_tables(&update.tables), "(a Inner c on (`a`.`x` = `c`.`x`)), b");
    assert_eq!(update.assignments[1].column.path().as_slice(), ["d", "b", "y"]);
    assert_eq!(update.assignments[1].value, Expr::Default);
    assert_eq!((update.order_by.len(), &update.limit), (1, &Some(Expr::Parameter(0))));

    let targets = |delete: &Delete| {
        let name = |t: &TableName| t.database.iter().chain([&t.name]).cloned().collect::<Vec<_>>().join(".");
        delete.targets.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    for (sql, expected) in [
        ("DELETE a, d.b.* FROM a JOIN d.b ON a.x = b.x WHERE z", "a d.b"),
        ("DELETE QUICK FROM a, d.b USING a JOIN d.b ON a.x = b.x WHERE z", "a d.b"),
        ("DELETE FROM a.* USING a JOIN d.b ON a.x = b.x WHERE z", "a"),
        ("WITH c AS (SELECT 1) DELETE a FROM a JOIN d.b ON a.x = b.x WHERE z", "a"),
    ] {
        let Statement::Delete(delete) = statement(sql) else { panic!("{sql}") };
        assert_eq!(targets(&delete), expected, "{sql}");
        assert_eq!(of_tables(&delete.from), "(a Inner b on (`a`.`x` = `b`.`x`))", "{sql}");
        assert!(delete.filter.is_some() && !delete.ignore);
        assert_eq!(delete.with.is_some(), sql.starts_with("WITH"));
    }
    let Statement::Delete(delete) = statement("DELETE IGNORE FROM t AS a PARTITION (p) WHERE x ORDER BY y LIMIT 1")
    else {
        panic!()
    };
    assert!(delete.ignore && delete.targets.is_empty() && delete.order_by.len() == 1 && delete.limit.is_some());
    assert_eq!(of_tables(&delete.from), "a");
    assert_eq!(near("DELETE a FROM a, b LIMIT 1"), "LIMIT 1");
    assert_eq!(near("DELETE FROM t JOIN u"), "JOIN u");
}

#[test]
fn inserts_in_every_form() {
    let insert = |sql: &str| match statement(sql) {
        Statement::Insert(insert) => *insert,
        other => panic!("{sql}: {other:?}"),
    };
    let all = insert(
        "INSERT IGNORE INTO d.t PARTITION (p) (a, t.b) VALUES (1, DEFAULT), () AS n (x, y) ON DUPLICATE KEY UPDATE a = n.x, b = \
         VALUES(b) RETURNING *, a + 1 AS c",
    );
    assert!(all.ignore && !all.replace);
    assert_eq!(all.partitions, ["p"]);
    assert_eq!(all.columns.as_ref().map(Vec::len), Some(2));
    assert_eq!(all.source, InsertSource::Values(vec![vec![Expr::number("1"), Expr::Default], vec![]]));
    assert_eq!(all.row_alias, Some(RowAlias { name: "n".into(), columns: vec!["x".into(), "y".into()] }));
    assert_eq!(all.on_duplicate[1].value, Expr::InsertedValue(ColumnName::bare("b")));
    assert_eq!(all.returning.len(), 2);
    assert_eq!(insert("INSERT t () VALUES ()").columns, Some(vec![]));
    assert_eq!(insert("INSERT t VALUES ()").columns, None);
    let set = insert("REPLACE INTO t SET a = 1, b = 2 RETURNING a");
    assert!(set.replace && set.returning.len() == 1);
    assert!(matches!(set.source, InsertSource::Set(assignments) if assignments.len() == 2));
    let rows = |sql: &str| match insert(sql).source {
        InsertSource::Values(rows) => format!("{} rows", rows.len()),
        InsertSource::Query(query) => of_query(&query),
        InsertSource::Set(_) => panic!("{sql}"),
    };
    assert_eq!(rows("INSERT INTO t VALUES ROW(1, 2), ROW()"), "2 rows");
    assert_eq!(rows("INSERT INTO t VALUES ROW(1) UNION VALUES ROW(2) LIMIT 1"), "(values 1 Union values 1) limit 1");
    assert_eq!(rows("INSERT INTO t (a) WITH c AS (SELECT 1) SELECT 2"), "with c=1 2");
    assert_eq!(rows("INSERT INTO t ((SELECT 1) UNION SELECT 2)"), "(1 Union 2)");
    assert_eq!(rows("INSERT INTO t TABLE u ON DUPLICATE KEY UPDATE a = 1"), "table u");
    // RETURNING is no alias where it may follow, and a name elsewhere.
    assert_eq!(insert("INSERT INTO t SELECT a FROM u RETURNING *").returning, [SelectItem::Wildcard]);
    let Statement::Delete(delete) = statement("DELETE FROM t WHERE a ORDER BY b LIMIT 1 RETURNING t.*") else {
        panic!()
    };
    assert_eq!(delete.returning.len(), 1);
    let Statement::Delete(delete) = statement("DELETE FROM t RETURNING a") else { panic!() };
    assert_eq!(of_tables(&delete.from), "t");
    assert_eq!(of_from("t returning"), "returning");
    assert_eq!(near("UPDATE t SET a = 1 RETURNING a"), "RETURNING a");
    assert_eq!(near("INSERT INTO t SELECT 1 LIMIT 1 AS n"), "AS n");
    assert_eq!(near("INSERT INTO t VALUES (1) ROW"), "ROW");
}

#[test]
fn queries_in_queries_have_a_bound() {
    let scalar = |n: usize| format!("SELECT {}1{}", "(SELECT ".repeat(n - 1), ")".repeat(n - 1));
    let derived = |n: usize| format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(n - 1), ") d".repeat(n - 1));
    let common = |n: usize| format!("{}SELECT 1{}", "WITH c AS (".repeat(n - 1), ") SELECT 1".repeat(n - 1));
    for text in [&scalar as &dyn Fn(usize) -> String, &derived] {
        assert!(parse(&text(MAX_SELECTS), Mode::default()).is_ok());
        assert_eq!(code(&text(MAX_SELECTS + 1)), 1473);
    }
    // Neither what stands beside each other counts, nor parentheses, nor WITH, whose queries are not in its own.
    assert!(parse(&vec!["SELECT (SELECT 1)"; 200].join(" UNION "), Mode::default()).is_ok());
    assert!(parse(&format!("{}SELECT 1{}", "(".repeat(200), ")".repeat(200)), Mode::default()).is_ok());
    assert!(parse(&common(MAX_SELECTS + 1), Mode::default()).is_ok());
}

/// A chain between lists is as high as it is long, whatever the commas say: it needs room when it is dropped.
#[test]
fn chains_between_lists_have_room() {
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(|| {
            let union = vec!["SELECT a, b"; MAX_HEIGHT - 100].join(" UNION ");
            assert!(parse(&union, Mode::default()).is_ok());
            assert_eq!(code(&format!("{union})")), 1064);
            let joins = vec!["t USE INDEX (a), USE INDEX (b)"; 500].join(" JOIN ");
            assert!(parse(&format!("SELECT a, b FROM {joins}"), Mode::default()).is_ok());
            assert_eq!(code(&format!("SELECT a, b FROM {joins})")), 1064);
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn types_that_were_read_wrongly() {
    let column = |declared: &str| match statement(&format!("CREATE TABLE t (c {declared})")) {
        Statement::CreateTable(mut table) => table.columns.remove(0),
        other => panic!("{other:?}"),
    };
    for (declared, expected) in [
        ("TEXT(63)", ColumnType::TinyText),
        ("TEXT(64)", ColumnType::Text),
        ("TEXT(16384)", ColumnType::MediumText),
        ("TEXT(18446744073709551615)", ColumnType::LongText),
        ("LONG VARBINARY", ColumnType::MediumBlob),
        ("NATIONAL CHARACTER VARYING(3)", ColumnType::VarChar(Some(3))),
        ("YEAR(4)", ColumnType::Year(Some(4))),
    ] {
        assert_eq!(column(declared).column_type, expected, "{declared}");
    }
    let national = [ColumnOption::Charset("utf8mb3".into()), ColumnOption::BinaryCollation];
    assert_eq!(column("NCHAR VARCHAR(3) BINARY").options, national);
    assert_eq!(column("LONG CHARACTER VARYING BYTE").options, [ColumnOption::Charset("binary".into())]);
    let serial = [ColumnOption::NotNull, ColumnOption::AutoIncrement, ColumnOption::Unique];
    assert_eq!(column("SERIAL").options, serial);
    assert_eq!(column("BIGINT SERIAL DEFAULT VALUE").options, serial);
    assert_eq!(
        column("INT DEFAULT (1) CONSTRAINT c CHECK (c > 0) NOT ENFORCED").options,
        [
            ColumnOption::Default(DefaultValue::Expr(Expr::number("1"))),
            ColumnOption::Check(Check {
                name: Some("c".into()),
                expr: Expr::binary(BinaryOp::Greater, Expr::Column(ColumnName::bare("c")), Expr::number("0")),
                enforced: false
            })
        ]
    );
    assert_eq!(near("CREATE TABLE t (a INT CONSTRAINT c NOT NULL)"), "NOT NULL)");
    // The time of now ends ON UPDATE: what follows is another option.
    let now = ColumnOption::OnUpdate(Expr::call("NOW", vec![]));
    assert_eq!(column("DATETIME ON UPDATE NOW() NOT NULL").options, [now.clone(), ColumnOption::NotNull]);
    assert_eq!(column("DATETIME ON UPDATE NOW() COLLATE c").options, [now, ColumnOption::Collation("c".into())]);
}

#[test]
fn load_data() {
    let sql = "LOAD DATA LOW_PRIORITY LOCAL INFILE 'f' REPLACE INTO TABLE d.t PARTITION (p) CHARACTER SET latin1 \
               COLUMNS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY 0x21 LINES STARTING BY 'a' TERMINATED BY b'1010' \
               IGNORE 3 ROWS (a, @b, t.c) SET c = a + 1, d = DEFAULT";
    let Statement::Load(load) = statement(sql) else { panic!("{sql}") };
    assert!(load.local && load.duplicates == LoadDuplicates::Replace && !load.ignores());
    assert_eq!((load.file.as_str(), load.table.name.as_str(), load.skip), ("f", "t", 3));
    let format = FileFormat {
        field_end: b",".to_vec(),
        enclosed: b"\"".to_vec(),
        optionally: false,
        escaped: b"!".to_vec(),
        line_start: b"a".to_vec(),
        line_end: b"\n".to_vec(),
    };
    assert_eq!(load.format, format);
    assert_eq!((load.targets.len(), load.set.len(), load.partitions.len()), (3, 2, 1));
    assert_eq!(load.targets[1], LoadTarget::Variable("b".into()));
    let Statement::Load(load) = statement("LOAD DATA INFILE 'f' INTO TABLE t ()") else { panic!() };
    assert!(load.targets.is_empty() && !load.ignores() && load.format == FileFormat::default());
    let mode = Mode { no_backslash_escapes: true, ..Mode::default() };
    let parsed = parse("LOAD DATA INFILE 'f' INTO TABLE t", mode).expect("it is one");
    let Statement::Load(load) = &*parsed.statement else { panic!() };
    assert!(load.format.escaped.is_empty());
    assert_eq!(near("LOAD DATA INFILE 'f' INTO TABLE t FIELDS LINES TERMINATED BY 'x'"), "LINES TERMINATED BY 'x'");
    assert_eq!(near("LOAD DATA INFILE 'f' INTO TABLE t IGNORE 1 (a)"), "(a)");
    assert_eq!(near("LOAD DATA INFILE f INTO TABLE t"), "f INTO TABLE t");
}
