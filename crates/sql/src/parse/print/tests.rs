//! Golden texts: what a client writes, and what is printed.

use super::{Bounded, Reader, are_read, for_mode};
use crate::parse::ast::{BinaryOp, Expr, InsertSource, QueryBody, TableReference, UnaryOp};
use crate::parse::statement::{AlterOperation, Statement};
use crate::parse::{MAX_HEIGHT, Mode, parse, parse_expression};
use crate::stack;

fn expression(sql: &str) -> Expr {
    parse_expression(sql, Mode::default()).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

fn statement(sql: &str) -> String {
    let parsed = parse(sql, Mode::default()).unwrap_or_else(|e| panic!("{sql}: {e}"));
    match parsed.statement.into_statement() {
        Statement::Query(query) => query.to_string(),
        Statement::Insert(insert) => insert.to_string(),
        Statement::Update(update) => update.to_string(),
        Statement::Delete(delete) => delete.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Each text prints as the other, which prints as itself.
#[track_caller]
fn check(print: impl Fn(&str) -> String, cases: &[(&str, &str)]) {
    for (sql, expected) in cases {
        assert_eq!(print(sql), *expected, "{sql}");
        assert_eq!(print(expected), *expected, "{sql}");
    }
}

#[test]
fn operators() {
    check(
        |sql| expression(sql).to_string(),
        &[
            ("1 + 2 * 3", "(1 + (2 * 3))"),
            ("a DIV b MOD c / d", "(((`a` DIV `b`) % `c`) / `d`)"),
            ("a << 1 | b & ~c ^ d", "((`a` << 1) | (`b` & (~(`c`) ^ `d`)))"),
            ("a = b <=> c", "((`a` = `b`) <=> `c`)"),
            ("a != b", "(`a` <> `b`)"),
            ("a AND b && c AND (d AND e)", "(`a` and `b` and `c` and `d` and `e`)"),
            ("a OR b AND NOT c XOR d", "(`a` or ((`b` and (not(`c`))) xor `d`))"),
            ("!a = b", "((not(`a`)) = `b`)"),
            ("NOT a = b", "(not((`a` = `b`)))"),
            ("-5", "-5"),
            ("- - 5", "-(-5)"),
            ("-a", "-(`a`)"),
            ("-(a + 1)", "-(`a` + 1)"),
            ("-f(a * b)", "-(f((`a` * `b`)))"),
            ("-5 COLLATE binary", "-(5 collate binary)"),
            ("(-5) COLLATE utf8mb4_bin", "((-5) collate utf8mb4_bin)"),
            ("+a", "+(`a`)"),
            ("a IS NULL AND b IS NOT TRUE", "((`a` is null) and (`b` is not true))"),
            ("a IS UNKNOWN", "(`a` is unknown)"),
            ("a BETWEEN 1 AND 2 + 3", "(`a` between 1 and (2 + 3))"),
            ("a NOT BETWEEN b AND c", "(`a` not between `b` and `c`)"),
            ("a IN (1, 2, NULL)", "(`a` in (1,2,NULL))"),
            ("(a, b) NOT IN ((1, 2), (3, 4))", "((`a`,`b`) not in ((1,2),(3,4)))"),
            ("a LIKE 'x%' AND b NOT LIKE 'y' ESCAPE '|'", "((`a` like 'x%') and (`b` not like 'y' escape '|'))"),
            ("a REGEXP 'x' = b NOT RLIKE 'y'", "((`a` regexp 'x') = (`b` not regexp 'y'))"),
            ("a SOUNDS LIKE b", "(soundex(`a`) = soundex(`b`))"),
            ("1 MEMBER OF ('[1]')", "(1 member of ('[1]'))"),
            ("a->'$.x'", "(`a`->'$.x')"),
            ("t.a->>'$.x' = 'y'", "((`t`.`a`->>'$.x') = 'y')"),
            ("ROW(a, b) = (1, 2)", "((`a`,`b`) = (1,2))"),
            ("ROW(a)", "row(`a`)"),
            ("a = ANY (SELECT 1)", "(`a` = any (select 1 AS `1`))"),
            ("a > SOME (SELECT 1)", "(`a` > any (select 1 AS `1`))"),
            ("a <> ALL (SELECT 1)", "(`a` <> all (select 1 AS `1`))"),
            ("a IN (SELECT b FROM t)", "(`a` in (select `b` AS `b` from `t`))"),
            ("NOT EXISTS (SELECT * FROM t)", "(not(exists(select * from `t`)))"),
            ("((SELECT 1) + 1)", "((select 1 AS `1`) + 1)"),
            ("((SELECT 1) UNION (SELECT 2))", "(select 1 AS `1` union select 2 AS `2`)"),
            ("@a := b + 1", "(@a:=(`b` + 1))"),
            ("d + INTERVAL 1 DAY - INTERVAL -a HOUR", "((`d` + interval 1 day) - interval -(`a`) hour)"),
            ("INTERVAL 1 DAY + d", "(`d` + interval 1 day)"),
            ("d + INTERVAL (a + 1) DAY_HOUR", "(`d` + interval (`a` + 1) day_hour)"),
            (
                "d + INTERVAL (SELECT a FROM t, u ORDER BY a, b) DAY",
                "(`d` + interval (select `a` AS `a` from (`t` join `u`) order by `a`,`b`) day)",
            ),
        ],
    );
}

#[test]
fn literals_and_names() {
    check(
        |sql| expression(sql).to_string(),
        &[
            ("nUlL", "NULL"),
            ("TRUE", "true"),
            ("False", "false"),
            ("1.50", "1.50"),
            ("1e10", "1e10"),
            ("'a' 'b' \"c\"", "'abc'"),
            ("'it''s' '\\\\' '\\n\\r\\0\\Z\\t'", "'it''s\\\\\\n\\r\\0\\Z\t'"),
            // What LIKE makes of these two is its own affair.
            ("'\\% \\_ \\x'", "'\\\\% \\\\_ x'"),
            ("N'x'", "N'x'"),
            ("_UTF8MB4'x'", "_utf8mb4'x'"),
            ("x'4D'", "0x4D"),
            ("0x4D1", "0x04D1"),
            ("x''", "x''"),
            ("_binary 0x4D", "_binary 0x4D"),
            ("b'101'", "0b101"),
            ("b''", "b''"),
            ("{d '2024-01-01'}", "DATE'2024-01-01'"),
            ("TIME '10:00'", "TIME'10:00'"),
            ("TIMESTAMP '2024-01-01 10:00'", "TIMESTAMP'2024-01-01 10:00'"),
            ("Db.T.`a``b`", "`Db`.`T`.`a``b`"),
            ("@A", "@A"),
            ("@'a b'", "@`a b`"),
            ("@`a``b`", "@`a``b`"),
            ("@@sql_mode", "@@sql_mode"),
            ("@@GLOBAL.sql_mode", "@@global.sql_mode"),
            ("@@`local`.`sql_mode`", "@@session.sql_mode"),
            ("DEFAULT(t.a)", "default(`t`.`a`)"),
            ("VALUES(a)", "values(`a`)"),
            ("?", "?"),
        ],
    );
    let awkward = Expr::text("it's\\%\n\"x\"");
    let plain = Mode::default();
    let bare = Mode { no_backslash_escapes: true, ansi_quotes: true, ..plain };
    assert_eq!(for_mode(&awkward, plain).to_string(), "'it''s\\\\%\\n\"x\"'");
    assert_eq!(for_mode(&awkward, bare).to_string(), "'it''s\\%\n\"x\"'");
    assert_eq!(for_mode(&expression("t.`a\"b`"), bare).to_string(), "\"t\".\"a\"\"b\"");
    let concat = parse_expression("a || b", Mode { pipes_as_concat: true, ..plain }).unwrap();
    assert_eq!(concat.to_string(), "concat(`a`,`b`)");
}

#[test]
fn calls() {
    check(
        |sql| expression(sql).to_string(),
        &[
            ("IFNULL(a, 1)", "ifnull(`a`,1)"),
            ("NOW()", "now()"),
            ("CURRENT_TIMESTAMP", "current_timestamp()"),
            ("IF(a, LEFT(b, 1), MOD(c, 2))", "if(`a`,left(`b`,1),mod(`c`,2))"),
            ("db.Fn(a)", "`db`.`Fn`(`a`)"),
            ("`my fn`(a)", "`my fn`(`a`)"),
            ("`cast`(a)", "`cast`(`a`)"),
            ("COUNT( * )", "count(*)"),
            ("COUNT(DISTINCT a, b)", "count(distinct `a`,`b`)"),
            (
                "GROUP_CONCAT(a, b ORDER BY c DESC, d ASC SEPARATOR '-')",
                "group_concat(`a`,`b` order by `c` desc,`d` separator '-')",
            ),
            ("CASE WHEN a THEN 1 ELSE 2 END", "(case when `a` then 1 else 2 end)"),
            ("CASE a WHEN 1 THEN 2 WHEN 3 THEN 4 END", "(case `a` when 1 then 2 when 3 then 4 end)"),
            ("CAST(a AS SIGNED INTEGER)", "cast(`a` as signed)"),
            ("CONVERT(a, UNSIGNED)", "cast(`a` as unsigned)"),
            ("CAST(a AS CHAR(10) CHARACTER SET utf8mb4)", "cast(`a` as char(10) charset utf8mb4)"),
            ("BINARY a", "cast(`a` as char charset binary)"),
            ("CAST(a AS BINARY(4))", "cast(`a` as char(4) charset binary)"),
            ("CAST(a AS DATETIME(6))", "cast(`a` as datetime(6))"),
            ("CAST(a AS TIME)", "cast(`a` as time)"),
            ("CAST(a AS DECIMAL(10, 2))", "cast(`a` as decimal(10,2))"),
            ("CAST(a AS FLOAT(20))", "cast(`a` as float(20))"),
            (
                "CAST(CAST(CAST(CAST(a AS JSON) AS YEAR) AS DOUBLE) AS DATE)",
                "cast(cast(cast(cast(`a` as json) as year) as double) as date)",
            ),
            ("CONVERT(a USING latin1)", "convert(`a` using latin1)"),
            ("CHAR(77, 121 USING utf8mb4)", "convert(char(77,121) using utf8mb4)"),
            ("EXTRACT(YEAR_MONTH FROM a)", "extract(year_month from `a`)"),
            ("TRIM(a)", "trim(`a`)"),
            ("TRIM('x' FROM a)", "trim(both 'x' from `a`)"),
            ("TRIM(LEADING FROM a)", "trim(leading from `a`)"),
            ("WEIGHT_STRING(a)", "weight_string(`a`)"),
            ("WEIGHT_STRING(a AS CHAR(3))", "weight_string(`a` as char(3))"),
            ("WEIGHT_STRING(a AS BINARY(3))", "weight_string(`a` as binary(3))"),
            ("TRIM(TRAILING 'x' FROM a)", "trim(trailing 'x' from `a`)"),
            ("MID(a FROM 2 FOR 3)", "substring(`a`,2,3)"),
            ("POSITION('b' IN a)", "locate('b',`a`)"),
            ("INTERVAL(1, 2, 3)", "interval(1,2,3)"),
            ("GET_FORMAT(DATE, 'USA')", "get_format(DATE,'USA')"),
            ("DATE_ADD(d, INTERVAL 1 DAY)", "(`d` + interval 1 day)"),
            ("ADDDATE(d, 31)", "adddate(`d`,31)"),
            ("-DATE_SUB(d, INTERVAL '1:1' HOUR_MINUTE)", "-(`d` - interval '1:1' hour_minute)"),
            ("TIMESTAMPADD(SQL_TSI_DAY, 1, d)", "timestampadd(DAY,1,`d`)"),
            ("TIMESTAMPDIFF(MONTH, a, b)", "timestampdiff(MONTH,`a`,`b`)"),
            ("MATCH (a, t.b) AGAINST ('w')", "(match `a`,`t`.`b` against ('w'))"),
            ("MATCH a AGAINST ('w' IN BOOLEAN MODE)", "(match `a` against ('w' in boolean mode))"),
            ("MATCH a AGAINST ('w' WITH QUERY EXPANSION)", "(match `a` against ('w' with query expansion))"),
            ("SUM(a) OVER w", "sum(`a`) over `w`"),
            ("ROW_NUMBER() OVER ()", "row_number() over ()"),
            (
                "NTH_VALUE(a, 2) FROM LAST IGNORE NULLS OVER (w PARTITION BY b, c ORDER BY d DESC ROWS 1 PRECEDING)",
                "nth_value(`a`,2) from last ignore nulls over (`w` partition by `b`,`c` order by `d` desc rows 1 preceding)",
            ),
            (
                "SUM(a) OVER (ORDER BY b RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL 1 DAY FOLLOWING)",
                "sum(`a`) over (order by `b` range between unbounded preceding and interval 1 day following)",
            ),
        ],
    );
}

#[test]
fn queries() {
    check(
        statement,
        &[
            (
                "SELECT a, t.b x, 1 + 2, 'it''s', '' FROM t",
                "select `a` AS `a`,`t`.`b` AS `x`,(1 + 2) AS `1 + 2`,'it''s' AS `it's`,'' AS `` from `t`",
            ),
            ("SELECT *, t.*, d.t.* FROM d.t AS t", "select *,`t`.*,`d`.`t`.* from `d`.`t` `t`"),
            ("SELECT 1 FROM DUAL WHERE 1", "select 1 AS `1` from dual where 1"),
            (
                "SELECT DISTINCT STRAIGHT_JOIN SQL_CALC_FOUND_ROWS a FROM t WHERE b GROUP BY a, 2 WITH ROLLUP HAVING COUNT(*) > 1 \
                 WINDOW w AS (ORDER BY a), v AS (w) ORDER BY a DESC, 1 LIMIT 10 OFFSET 5 FOR UPDATE OF t, u NOWAIT LOCK IN SHARE MODE",
                "select distinct straight_join sql_calc_found_rows `a` AS `a` from `t` where `b` group by `a`,2 with rollup \
                 having (count(*) > 1) window `w` as (order by `a`),`v` as (`w`) order by `a` desc,1 limit 5,10 \
                 for update of `t`,`u` nowait for share",
            ),
            ("SELECT a FROM t LIMIT ?, ?", "select `a` AS `a` from `t` limit ?,?"),
            ("SELECT a FROM t LIMIT ? OFFSET ?", "select `a` AS `a` from `t` limit ? offset ?"),
            ("SELECT a FROM t FOR SHARE SKIP LOCKED", "select `a` AS `a` from `t` for share skip locked"),
            ("SELECT a INTO @x, y FROM t", "select `a` AS `a` from `t` into @x,`y`"),
            ("SELECT 1 INTO OUTFILE '/tmp/x'", "select 1 AS `1` into outfile '/tmp/x'"),
            ("SELECT 1 INTO DUMPFILE '/tmp/x'", "select 1 AS `1` into dumpfile '/tmp/x'"),
            (
                "SELECT 1 UNION ALL SELECT 2 UNION (SELECT 3) ORDER BY 1 LIMIT 2",
                "select 1 AS `1` union all select 2 AS `2` union select 3 AS `3` order by 1 limit 2",
            ),
            (
                "(SELECT 1 LIMIT 1) EXCEPT (SELECT 2 ORDER BY 1)",
                "(select 1 AS `1` limit 1) except (select 2 AS `2` order by 1)",
            ),
            (
                "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3",
                "select 1 AS `1` union select 2 AS `2` intersect select 3 AS `3`",
            ),
            (
                "(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3",
                "(select 1 AS `1` union select 2 AS `2`) intersect select 3 AS `3`",
            ),
            (
                "SELECT 1 EXCEPT (SELECT 2 EXCEPT SELECT 3)",
                "select 1 AS `1` except (select 2 AS `2` except select 3 AS `3`)",
            ),
            ("VALUES ROW(1, 2), ROW(3, 4)", "values row(1,2),row(3,4)"),
            ("TABLE t ORDER BY a", "table `t` order by `a`"),
            (
                "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c), d AS (TABLE c) SELECT n FROM d",
                "with recursive `c` (`n`) as (select 1 AS `1` union all select (`n` + 1) AS `n + 1` from `c`),`d` as (table `c`) \
                 select `n` AS `n` from `d`",
            ),
        ],
    );
}

#[test]
fn tables() {
    check(
        |sql| statement(&format!("SELECT 1 FROM {sql}")).replace("select 1 AS `1` from ", ""),
        &[
            ("a, b, c", "((`a` join `b`) join `c`)"),
            ("a JOIN b ON a.x = b.x", "(`a` join `b` on((`a`.`x` = `b`.`x`)))"),
            ("a LEFT JOIN b ON x CROSS JOIN c", "((`a` left join `b` on(`x`)) join `c`)"),
            ("a RIGHT OUTER JOIN b USING (x, y)", "(`a` right join `b` using (`x`,`y`))"),
            ("a NATURAL LEFT JOIN b NATURAL JOIN c", "((`a` natural left join `b`) natural join `c`)"),
            ("a STRAIGHT_JOIN b ON x", "(`a` straight_join `b` on(`x`))"),
            ("a JOIN b JOIN c ON x ON y", "(`a` join (`b` join `c` on(`x`)) on(`y`))"),
            ("a LEFT JOIN (b, c) ON x", "(`a` left join (`b` join `c`) on(`x`))"),
            ("a, LATERAL (TABLE b) AS c (x, y)", "(`a` join lateral (table `b`) `c` (`x`,`y`))"),
            ("((TABLE a) AS b JOIN c)", "((table `a`) `b` join `c`)"),
            (
                "d.t PARTITION (p, q) AS u USE INDEX (k, PRIMARY) IGNORE KEY FOR ORDER BY (l) FORCE INDEX FOR JOIN (m) USE INDEX ()",
                "`d`.`t` partition (`p`,`q`) `u` use index (`k`,`PRIMARY`) ignore index for order by (`l`) \
                 force index for join (`m`) use index ()",
            ),
        ],
    );
}

#[test]
fn changes() {
    check(
        statement,
        &[
            ("INSERT t VALUES (1, DEFAULT), ()", "insert into `t` values (1,default),()"),
            (
                "INSERT IGNORE INTO d.t PARTITION (p) (a, t.b) VALUES (1, 2) AS new (x, y) ON DUPLICATE KEY UPDATE a = new.x, b = VALUES(b)",
                "insert ignore into `d`.`t` partition (`p`) (`a`,`t`.`b`) values (1,2) as `new` (`x`,`y`) \
              on duplicate key update `a` = `new`.`x`,`b` = values(`b`)",
            ),
            (
                "INSERT INTO t () VALUES () RETURNING id, a + 1",
                "insert into `t` () values () returning `id` AS `id`,(`a` + 1) AS `a + 1`",
            ),
            ("REPLACE t SET a = 1, b = a", "replace into `t` set `a` = 1,`b` = `a`"),
            (
                "INSERT INTO t (a) SELECT b FROM u ON DUPLICATE KEY UPDATE a = 2",
                "insert into `t` (`a`) select `b` AS `b` from `u` on duplicate key update `a` = 2",
            ),
            ("INSERT INTO t WITH c AS (SELECT 1) TABLE c", "insert into `t` with `c` as (select 1 AS `1`) table `c`"),
            ("INSERT INTO t VALUES ROW(1), ROW(2)", "insert into `t` values (1),(2)"),
            ("INSERT INTO t (VALUES ROW(1) LIMIT 1)", "insert into `t` (values row(1) limit 1)"),
            (
                "UPDATE IGNORE t AS x SET a = a + 1, x.b = DEFAULT WHERE c ORDER BY d DESC LIMIT 4",
                "update ignore `t` `x` set `a` = (`a` + 1),`x`.`b` = default where `c` order by `d` desc limit 4",
            ),
            (
                "WITH c AS (SELECT 1) UPDATE a, c SET a.x = c.x",
                "with `c` as (select 1 AS `1`) update (`a` join `c`) set `a`.`x` = `c`.`x`",
            ),
            (
                "DELETE QUICK IGNORE FROM t AS x WHERE x.a = 1 ORDER BY b LIMIT 1 RETURNING *",
                "delete ignore from `t` `x` where (`x`.`a` = 1) order by `b` limit 1 returning *",
            ),
            ("DELETE a.*, d.b FROM a JOIN b ON x WHERE y", "delete `a`,`d`.`b` from (`a` join `b` on(`x`)) where `y`"),
            ("DELETE FROM a USING a, b", "delete `a` from (`a` join `b`)"),
        ],
    );
}

#[test]
fn definitions() {
    let printed = |sql: &str| match parse(&format!("ALTER TABLE t ADD {sql}"), Mode::default())
        .unwrap_or_else(|e| panic!("{sql}: {e}"))
        .statement
        .into_statement()
    {
        Statement::AlterTable { mut operations, .. } => match operations.pop() {
            Some(AlterOperation::AddColumn { column, .. }) => column.to_string(),
            Some(AlterOperation::AddConstraint(constraint)) => constraint.to_string(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    check(
        printed,
        &[
            (
                "id INTEGER UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY",
                "`id` int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY",
            ),
            ("a BOOL NULL", "`a` tinyint(1) NULL"),
            ("a NUMERIC(10, 2) DEFAULT -1.5", "`a` decimal(10,2) DEFAULT -1.5"),
            (
                "a VARCHAR(10) CHARSET latin1 COLLATE latin1_bin DEFAULT 'x' COMMENT 'it''s'",
                "`a` varchar(10) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT 'x' COMMENT 'it''s'",
            ),
            (
                "a TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE NOW(3) INVISIBLE",
                "`a` timestamp(3) DEFAULT current_timestamp(3) ON UPDATE now(3) /*!80023 INVISIBLE */",
            ),
            // What follows ON UPDATE is no part of its value.
            ("a TIMESTAMP ON UPDATE NOW() COLLATE utf8mb4_bin", "`a` timestamp ON UPDATE now() COLLATE utf8mb4_bin"),
            ("a TEXT DEFAULT (UUID())", "`a` text DEFAULT (uuid())"),
            ("a ENUM('x', 'y''z') UNIQUE", "`a` enum('x','y''z') UNIQUE KEY"),
            ("a INT AS (b + 1) STORED", "`a` int GENERATED ALWAYS AS ((`b` + 1)) STORED"),
            (
                "a INT CONSTRAINT c CHECK (a > 0) NOT ENFORCED",
                "`a` int CONSTRAINT `c` CHECK ((`a` > 0)) /*!80016 NOT ENFORCED */",
            ),
            (
                "a INT REFERENCES d.t (b) MATCH FULL ON UPDATE CASCADE ON DELETE SET NULL",
                "`a` int REFERENCES `d`.`t` (`b`) MATCH FULL ON DELETE SET NULL ON UPDATE CASCADE",
            ),
            ("a POINT SRID 4326", "`a` point /*!80003 SRID 4326 */"),
            ("PRIMARY KEY USING BTREE (a, b DESC)", "PRIMARY KEY (`a`,`b` DESC) USING BTREE"),
            (
                "CONSTRAINT s UNIQUE u (a(10), (b + 1)) COMMENT 'c'",
                "CONSTRAINT `s` UNIQUE KEY `u` (`a`(10),((`b` + 1))) COMMENT 'c'",
            ),
            ("INDEX (a) USING HASH", "KEY (`a`) USING HASH"),
            ("FULLTEXT INDEX f (a)", "FULLTEXT KEY `f` (`a`)"),
            (
                "CONSTRAINT f FOREIGN KEY i (a) REFERENCES t (b) ON DELETE NO ACTION",
                "CONSTRAINT `f` FOREIGN KEY `i` (`a`) REFERENCES `t` (`b`) ON DELETE NO ACTION",
            ),
            ("CHECK (a IS NOT NULL)", "CHECK ((`a` is not null))"),
        ],
    );
}

#[test]
fn bounded_text() {
    let bounded = |sql: &str, levels| Bounded(&expression(sql), levels).to_string();
    assert_eq!(bounded("t.b * 2", 32), "(`t`.`b` * 2)");
    assert_eq!(bounded("9223372036854775807 + 1", 32), "(9223372036854775807 + 1)");
    assert_eq!(bounded("-b", 32), "-(`b`)");
    assert_eq!(bounded("-(b + 1)", 32), "-(`b` + 1)");
    assert_eq!(bounded("-(a * (b + 1))", 32), "-(`a` * (`b` + 1))");
    assert_eq!(bounded("f(a + ?, @x)", 32), "f((`a` + ?),@x)");
    assert_eq!(bounded("a + b * (c - 1)", 3), "(`a` + (`b` * (... - ...)))");
    assert_eq!(bounded("a + 1", 1), "(... + ...)");
    assert_eq!(bounded("a + 1", 0), "...");
    // The levels count again behind what was cut.
    assert_eq!(bounded("(a + (b + (c + d))) + e", 2), "((... + ...) + `e`)");
    let long = bounded(&format!("a + (b IN ({}))", vec!["'é'"; 10_000].join(",")), 32);
    assert!(long.starts_with("(`a` + (`b` in ('é','é',") && long.ends_with("..."));
    assert!((1020..=1027).contains(&long.len()), "{}", long.len());
}

/// What clients send prints as a text that prints as itself.
#[test]
fn statements_of_every_kind() {
    let mut printed = 0;
    for sql in include_str!("../corpus.sql").split(";;\n").map(str::trim).filter(|sql| !sql.is_empty()) {
        let parsed = parse(sql, Mode::default()).unwrap();
        if let Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) =
            &*parsed.statement
        {
            let text = statement(sql);
            assert_eq!(statement(&text), text, "{sql}");
            assert_eq!(parse(&text, Mode::default()).unwrap().parameters, parsed.parameters, "{sql}");
            printed += 1;
        }
    }
    assert!(printed > 40, "{printed}");
}

/// Trees as high as the parser allows, on a stack as small as a worker's.
#[test]
fn high_trees() {
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(|| {
            // Levels in the text cost the parser several of its own.
            const READ: usize = 2_500;
            for (open, close) in
                [("-(", ")"), ("f(", ")"), ("(1 + ", ")"), ("(not(", "))"), ("(case when ", " then 1 end)")]
            {
                let sql = format!("{}`a`{}", open.repeat(READ), close.repeat(READ));
                let expr = expression(&sql);
                stack::with_room(MAX_HEIGHT, || {
                    assert!(expr.to_string() == sql, "{open}");
                    drop(expr);
                });
            }
            let operand = || Box::new(Expr::number("1"));
            type Layer = fn(Box<Expr>, Box<Expr>) -> Expr;
            let layers: [Layer; 3] = [
                |inner, _| Expr::Unary { op: UnaryOp::Minus, operand: inner },
                |inner, beside| Expr::Binary { op: BinaryOp::Add, left: inner, right: beside },
                |inner, beside| Expr::Binary { op: BinaryOp::And, left: beside, right: inner },
            ];
            for layer in layers {
                let mut tree = Expr::number("1");
                for _ in 0..MAX_HEIGHT {
                    tree = layer(Box::new(tree), operand());
                }
                assert!(tree.to_string().len() > 2 * MAX_HEIGHT);
                assert!(Bounded(&tree, usize::MAX).to_string().ends_with("..."));
                stack::with_room(MAX_HEIGHT, || drop(tree));
            }
            let union = vec!["SELECT 1"; READ].join(" UNION ");
            assert_eq!(statement(&union), vec!["select 1 AS `1`"; READ].join(" union "));
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn parts_print_alone() {
    let Statement::Query(query) =
        parse("SELECT a + 1 FROM t ORDER BY b DESC", Mode::default()).unwrap().statement.into_statement()
    else {
        panic!()
    };
    let QueryBody::Select(select) = &query.body else { panic!() };
    assert_eq!(select.items[0].to_string(), "(`a` + 1) AS `a + 1`");
    assert_eq!(query.order_by[0].to_string(), "`b` desc");
    let TableReference::Table(table) = &select.from[0] else { panic!() };
    assert_eq!(table.name.to_string(), "`t`");
    assert_eq!(select.to_string(), "select (`a` + 1) AS `a + 1` from `t`");
}

/// Which of the common tables `a` to `d` are read.
#[test]
fn common_tables_that_are_read() {
    for (sql, expected) in [
        ("WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM B", "b"),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a), c AS (SELECT * FROM b) SELECT * FROM b", "ab"),
        ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT b.* FROM x AS b, y.a", ""),
        ("WITH a AS (SELECT 1), b AS (SELECT 2) SELECT 1 UNION (SELECT 2 FROM x JOIN (SELECT * FROM b) y)", "b"),
        ("WITH a AS (SELECT 1) SELECT CASE WHEN x IN (SELECT * FROM a) THEN 1 END FROM y GROUP BY z", "a"),
        ("WITH a AS (SELECT 1), b AS (SELECT 2) TABLE b ORDER BY (SELECT MAX(x) FROM a)", "ab"),
        ("WITH a AS (SELECT 1), b AS (SELECT 2) SELECT SUM(x) OVER (ORDER BY (SELECT 1 FROM b)) FROM y", "b"),
        // An inner one of the same name, and what only an inner one reads that is not read.
        ("WITH a AS (SELECT 1) SELECT * FROM (WITH a AS (SELECT 2) SELECT * FROM a) x", ""),
        ("WITH a AS (SELECT 1) SELECT * FROM (WITH a AS (SELECT * FROM a) SELECT * FROM a) x", "a"),
        ("WITH a AS (SELECT 1) SELECT * FROM (WITH b AS (SELECT * FROM a) SELECT 1) x", ""),
        ("WITH a AS (SELECT 1) SELECT * FROM (WITH b AS (SELECT * FROM a) SELECT * FROM b) x", "a"),
        ("WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a), b AS (SELECT 2 FROM a) SELECT 1", ""),
        ("WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a), b AS (SELECT 2 FROM a) SELECT 1 FROM b", "ab"),
        ("WITH a AS (SELECT 1), b AS (SELECT 2) UPDATE x SET y = (SELECT * FROM b) WHERE z", "b"),
        ("WITH a AS (SELECT 1), b AS (SELECT 2) DELETE x FROM x JOIN a AS y", "a"),
        ("INSERT INTO x WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a", "a"),
    ] {
        let parsed = parse(sql, Mode::default()).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let statement = parsed.statement.into_statement();
        let reader = match &statement {
            Statement::Query(query) => Reader::Query(query),
            Statement::Update(update) => Reader::Update(update),
            Statement::Delete(delete) => Reader::Delete(delete),
            Statement::Insert(insert) => match &insert.source {
                InsertSource::Query(query) => Reader::Query(query),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let with = reader.with().expect("it has common tables");
        let read = with.tables.iter().zip(are_read(reader)).filter(|(_, is_read)| *is_read);
        assert_eq!(read.map(|(table, _)| table.name.as_str()).collect::<String>(), expected, "{sql}");
    }
}
