//! The grammar as a whole: precedence against fully parenthesised forms, a corpus of statements, error places, deep and random input.

use super::ast::*;
use super::statement::*;
use super::*;
use crate::stack;
use proptest::prelude::*;

pub(super) fn statement(sql: &str) -> Statement {
    match parse(sql, Mode::default()) {
        Ok(parsed) => parsed.statement.into_statement(),
        Err(error) => panic!("{sql}: {error}"),
    }
}

pub(super) fn message(sql: &str) -> String {
    parse(sql, Mode::default()).expect_err(sql).message
}

/// The expression with every operator in parentheses.
fn full(expr: &Expr) -> String {
    let not = |negated: &bool| if *negated { "NOT " } else { "" };
    match expr {
        Expr::Binary { op, left, right } => {
            format!("({} {} {})", full(left), op.symbol().to_ascii_uppercase(), full(right))
        }
        Expr::Unary { op: UnaryOp::Not, operand } => format!("(NOT {})", full(operand)),
        Expr::Unary { op: UnaryOp::Minus, operand } => format!("(-{})", full(operand)),
        Expr::Unary { op: UnaryOp::BitNot, operand } => format!("(~{})", full(operand)),
        Expr::AssignVariable { name, value } => format!("(@{name} := {})", full(value)),
        Expr::Like { operand, pattern, negated, .. } => {
            format!("({} {}LIKE {})", full(operand), not(negated), full(pattern))
        }
        Expr::Regexp { operand, pattern, .. } => format!("({} REGEXP {})", full(operand), full(pattern)),
        Expr::Between { operand, low, high, .. } => {
            format!("({} BETWEEN {} AND {})", full(operand), full(low), full(high))
        }
        Expr::InList { operand, list, .. } => {
            format!("({} IN ({}))", full(operand), list.iter().map(full).collect::<Vec<_>>().join(", "))
        }
        Expr::Is { operand, test, negated } => {
            format!("({} IS {}{})", full(operand), not(negated), format!("{test:?}").to_ascii_uppercase())
        }
        Expr::Cast { operand, target: CastType::Binary(None) } => format!("(BINARY {})", full(operand)),
        Expr::Collate { operand, collation } => format!("({} COLLATE {collation})", full(operand)),
        Expr::Interval { amount, unit } => format!("INTERVAL {} {}", full(amount), unit.name()),
        Expr::Column(name) => name.path().join("."),
        other => other.to_string(),
    }
}

#[test]
fn precedence() {
    let cases = [
        ("a OR b AND c", "(a OR (b AND c))"),
        ("a || b && c", "(a OR (b AND c))"),
        ("a XOR b AND c", "(a XOR (b AND c))"),
        ("a OR b XOR c", "(a OR (b XOR c))"),
        ("a XOR b = c", "(a XOR (b = c))"),
        ("a = b XOR c = d", "((a = b) XOR (c = d))"),
        ("a = b || c = d", "((a = b) OR (c = d))"),
        ("NOT a = b", "(NOT (a = b))"),
        ("NOT a AND b", "((NOT a) AND b)"),
        ("NOT a LIKE b", "(NOT (a LIKE b))"),
        ("NOT NOT a", "(NOT (NOT a))"),
        ("!a = b", "((NOT a) = b)"),
        ("!a + b", "((NOT a) + b)"),
        ("a = b = c", "((a = b) = c)"),
        ("a <=> b <> c", "((a <=> b) <> c)"),
        ("a = b IS NULL", "((a = b) IS NULL)"),
        ("a + b IS NOT NULL AND c", "(((a + b) IS NOT NULL) AND c)"),
        ("a = b LIKE c", "(a = (b LIKE c))"),
        ("a BETWEEN b AND c AND d", "((a BETWEEN b AND c) AND d)"),
        ("a BETWEEN b + 1 AND c | d", "(a BETWEEN (b + 1) AND (c | d))"),
        ("a IN (1, 2) = b", "((a IN (1, 2)) = b)"),
        ("a | b & c", "(a | (b & c))"),
        ("a & b << c", "(a & (b << c))"),
        ("a << b + c", "(a << (b + c))"),
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("5 DIV 2 * 3", "((5 DIV 2) * 3)"),
        ("5 * 3 MOD 2 / 7 % 4", "((((5 * 3) % 2) / 7) % 4)"),
        ("a ^ b * c", "((a ^ b) * c)"),
        ("a * b ^ c", "(a * (b ^ c))"),
        ("-a ^ b", "((-a) ^ b)"),
        ("-a * b", "((-a) * b)"),
        ("~a & b", "((~a) & b)"),
        ("- -1", "(-(-1))"),
        ("BINARY a = b", "((BINARY a) = b)"),
        ("a = BINARY b COLLATE utf8mb4_bin", "(a = (BINARY (b COLLATE utf8mb4_bin)))"),
        ("a COLLATE x = b", "((a COLLATE x) = b)"),
        ("@a := b = c", "(@a := (b = c))"),
        ("1 + @a := 2 OR 3", "(1 + (@a := (2 OR 3)))"),
        ("d + INTERVAL 1 DAY + INTERVAL '1:2' HOUR_MINUTE", "((d + INTERVAL 1 DAY) + INTERVAL '1:2' HOUR_MINUTE)"),
        ("INTERVAL a + 1 MONTH + d", "(d + INTERVAL (a + 1) MONTH)"),
        ("a REGEXP b | c", "(a REGEXP (b | c))"),
        ("(a OR b) AND c", "((a OR b) AND c)"),
        ("a IS TRUE AND b", "((a IS TRUE) AND b)"),
    ];
    for (sql, expected) in cases {
        let expr = parse_expression(sql, Mode::default()).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_eq!(full(&expr), expected, "{sql}");
    }
    let concat = Mode { pipes_as_concat: true, ..Mode::default() };
    assert_eq!(full(&parse_expression("a || b = c", concat).unwrap()), "((a || b) = c)");
    let high = Mode { high_not_precedence: true, ..Mode::default() };
    assert_eq!(full(&parse_expression("NOT a = b", high).unwrap()), "((NOT a) = b)");
}

#[test]
fn operators_that_cannot_follow() {
    for sql in [
        "1 + NOT 1",
        "a LIKE b + c",
        "a = NOT b",
        "a IN (1) IN (0)",
        "a BETWEEN 1",
        "1 +",
        "(1",
        "f(1,)",
        "CASE END",
        "a IS 5",
    ] {
        assert!(parse_expression(sql, Mode::default()).is_err(), "{sql}");
    }
}

#[test]
fn expressions_that_print_back() {
    let cases = [
        ("x'4D' + 0x4D", "(0x4D + 0x4D)"),
        ("0xA", "0x0A"),
        ("b'101'", "0b101"),
        ("_UTF8MB4'a' 'b'", "_utf8mb4'ab'"),
        ("_latin1 x'41'", "_latin1 0x41"),
        ("'a' 'b' \"c\"", "'abc'"),
        ("N'x'", "N'x'"),
        ("((a))", "`a`"),
        ("(a, (b, c))", "(`a`,(`b`,`c`))"),
        ("((SELECT 1) + 1)", "((select 1 AS `1`) + 1)"),
        ("(((SELECT 1)), 2)", "((select 1 AS `1`),2)"),
        ("(((SELECT 1)))", "(select 1 AS `1`)"),
        ("((SELECT 1) UNION SELECT 2)", "(select 1 AS `1` union select 2 AS `2`)"),
        ("a IN ((SELECT 1), 2)", "(`a` in ((select 1 AS `1`),2))"),
        ("a IN ((SELECT 1))", "(`a` in (select 1 AS `1`))"),
        ("a IN (((SELECT 1) LIMIT 1))", "(`a` in (select 1 AS `1` limit 1))"),
        ("a IN (TABLE t)", "(`a` in (table `t`))"),
        ("(VALUES ROW(1), ROW(2))", "(values row(1),row(2))"),
        ("COUNT(*)", "count(*)"),
        ("COUNT(ALL *)", "count(*)"),
        ("COUNT(DISTINCT a, b)", "count(distinct `a`,`b`)"),
        ("GROUP_CONCAT(a ORDER BY b DESC SEPARATOR '-')", "group_concat(`a` order by `b` desc separator '-')"),
        ("CASE a WHEN 1 THEN 2 ELSE 3 END", "(case `a` when 1 then 2 else 3 end)"),
        ("CAST(a AS DECIMAL(10, 2))", "cast(`a` as decimal(10,2))"),
        ("CAST(a AS CHAR(3) CHARACTER SET binary)", "cast(`a` as char(3) charset binary)"),
        ("CAST(a AS NCHAR)", "cast(`a` as char)"),
        ("CONVERT(a, UNSIGNED INTEGER)", "cast(`a` as unsigned)"),
        ("CONVERT(a USING latin1)", "convert(`a` using latin1)"),
        ("CHAR(77 USING utf8mb4)", "convert(char(77) using utf8mb4)"),
        ("TRIM(LEADING 'x' FROM a)", "trim(leading 'x' from `a`)"),
        ("TRIM('x' FROM a)", "trim(both 'x' from `a`)"),
        ("SUBSTRING(a FROM 2 FOR 3)", "substring(`a`,2,3)"),
        ("MID(a, 2)", "substring(`a`,2)"),
        ("POSITION('b' IN a)", "locate('b',`a`)"),
        ("EXTRACT(YEAR_MONTH FROM a)", "extract(year_month from `a`)"),
        ("CURRENT_TIMESTAMP", "current_timestamp()"),
        ("a SOUNDS LIKE b", "(soundex(`a`) = soundex(`b`))"),
        ("a NOT IN (SELECT 1)", "(`a` not in (select 1 AS `1`))"),
        ("(a, b) = ROW(1, 2)", "((`a`,`b`) = (1,2))"),
        ("a->>'$.x' = 1", "((`a`->>'$.x') = 1)"),
        ("INTERVAL(1, 2, 3)", "interval(1,2,3)"),
        ("a - INTERVAL(1, 2) * 3", "(`a` - (interval(1,2) * 3))"),
        ("a + INTERVAL (1) + 2 DAY", "(`a` + interval (1 + 2) day)"),
        ("a + INTERVAL (SELECT 1 FROM t, u) DAY", "(`a` + interval (select 1 AS `1` from (`t` join `u`)) day)"),
        ("a + INTERVAL ((SELECT 1) ORDER BY b, c) DAY", "(`a` + interval (select 1 AS `1` order by `b`,`c`) day)"),
        ("TIMESTAMPDIFF(SQL_TSI_DAY, a, b)", "timestampdiff(DAY,`a`,`b`)"),
        ("{d '2024-01-01'}", "DATE'2024-01-01'"),
        ("{fn UCASE('a')}", "ucase('a')"),
        ("IF(a, LEFT(b, 1), MOD(c, 2))", "if(`a`,left(`b`,1),mod(`c`,2))"),
        ("db.t.c + t.`d e`", "(`db`.`t`.`c` + `t`.`d e`)"),
        ("db.f(1)", "`db`.`f`(1)"),
        ("@@GLOBAL.sql_mode", "@@global.sql_mode"),
        ("@@local.`sql_mode`", "@@session.sql_mode"),
        ("DEFAULT(a) + VALUES(t.b)", "(default(`a`) + values(`t`.`b`))"),
        ("a = SOME (SELECT 1)", "(`a` = any (select 1 AS `1`))"),
        ("a <> ALL (TABLE t)", "(`a` <> all (table `t`))"),
        ("a MEMBER OF (b)", "(`a` member of (`b`))"),
        ("MATCH (a, b) AGAINST ('x' IN BOOLEAN MODE)", "(match `a`,`b` against ('x' in boolean mode))"),
        ("MATCH (a) AGAINST ('x')", "(match `a` against ('x'))"),
        ("MATCH a AGAINST ('x' IN NATURAL LANGUAGE MODE)", "(match `a` against ('x'))"),
        (
            "MATCH (a) AGAINST (? IN NATURAL LANGUAGE MODE WITH QUERY EXPANSION)",
            "(match `a` against (? in natural language mode with query expansion))",
        ),
        ("MATCH (a) AGAINST ('x' WITH QUERY EXPANSION)", "(match `a` against ('x' with query expansion))"),
        ("ROW_NUMBER() OVER (PARTITION BY a ORDER BY b)", "row_number() over (partition by `a` order by `b`)"),
        ("LAG(a, 1) IGNORE NULLS OVER w", "lag(`a`,1) ignore nulls over `w`"),
        ("NTH_VALUE(a, 2) FROM LAST RESPECT NULLS OVER ()", "nth_value(`a`,2) from last respect nulls over ()"),
        ("NTH_VALUE(a, 2) FROM FIRST OVER w", "nth_value(`a`,2) over `w`"),
        (
            "SUM(a) OVER (w ORDER BY b RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND UNBOUNDED FOLLOWING)",
            "sum(`a`) over (`w` order by `b` range between interval 1 day preceding and unbounded following)",
        ),
        ("SUM(a) OVER (ROWS ? PRECEDING)", "sum(`a`) over (rows ? preceding)"),
        (
            "SUM(a) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
            "sum(`a`) over (rows between unbounded preceding and current row)",
        ),
    ];
    for (sql, expected) in cases {
        let expr = parse_expression(sql, Mode::default()).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_eq!(expr.to_string(), expected, "{sql}");
    }
}

#[test]
fn column_names_are_the_text() {
    let Statement::Query(query) =
        statement("SELECT a, t.b, 1 +  2, 'x' 'y', count( * ) n, @@version, \"q\" AS 'r', (a), ('x'), N'x' FROM t")
    else {
        panic!()
    };
    let QueryBody::Select(select) = query.body else { panic!() };
    let names: Vec<String> = select
        .items
        .iter()
        .map(|item| match item {
            SelectItem::Expr { name: ItemName::Text(text), .. } => format!("~{text}"),
            SelectItem::Expr { name: ItemName::Alias(alias), .. } => alias.clone(),
            _ => panic!(),
        })
        .collect();
    assert_eq!(names, ["~a", "~b", "~1 +  2", "~x", "n", "~@@version", "r", "~(a)", "~('x')", "~N'x'"]);
}

#[test]
fn errors_name_the_place() {
    let text = |near: &str, line: usize| {
        format!(
            "You have an error in your SQL syntax; see Rauk's SQL reference for the right syntax to use near '{near}' at line {line}"
        )
    };
    assert_eq!(message("SELEC 1"), text("SELEC 1", 1));
    assert_eq!(message("SELECT * FORM t"), text("FORM t", 1));
    assert_eq!(message("SELECT 1\nFROM\nWHERE x"), text("WHERE x", 3));
    assert_eq!(message("SELECT * FROM"), text("", 1));
    assert_eq!(message("SELECT 'abc"), text("'abc", 1));
    assert_eq!(message("SELECT 1 2"), text("2", 1));
    assert_eq!(
        message(&format!("SELECT * FROM t WHERE ) {}", "x".repeat(200))),
        text(&format!(") {}", "x".repeat(78)), 1)
    );
    assert_eq!(message("INSERT INTO t VALUES (1,)"), text(")", 1));
    assert_eq!(parse("", Mode::default()).unwrap_err().code, 1065);
    assert_eq!(parse(" /* nothing */ -- here\n", Mode::default()).unwrap_err().code, 1065);
    assert_eq!(parse(";", Mode::default()).unwrap_err().code, 1064);
    assert_eq!(parse("SELECT * FROM (SELECT 1)", Mode::default()).unwrap_err().code, 1248);
}

#[test]
fn version_comments_run_up_to_our_version() {
    let show = |sql: &str| match statement(sql) {
        Statement::Query(query) => query.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(show("SELECT 1 a /*!80036 , 2 b */"), "select 1 AS `a`,2 AS `b`");
    assert_eq!(show("SELECT 1 a /*!80037 , 2 b */"), "select 1 AS `a`");
    assert_eq!(show("SELECT 1 a /*!999999 , 2 b */ /*M! , 3 c */"), "select 1 AS `a`");
    assert_eq!(show("/*! SELECT */ 1 a"), "select 1 AS `a`");
}

#[test]
fn statements_of_every_kind() {
    for sql in include_str!("corpus.sql").split(";;\n").map(str::trim).filter(|s| !s.is_empty()) {
        if let Err(error) = parse(sql, Mode::default()) {
            panic!("{sql}\n{error}");
        }
    }
}

#[test]
fn unsupported_statements_say_what_they_are() {
    let cases = [
        ("XA START 'x'", "XA transactions"),
        ("LOAD XML INFILE 'x' INTO TABLE t", "LOAD XML"),
        ("CREATE DEFINER=`root`@`%` PROCEDURE p() BEGIN END", "CREATE PROCEDURE"),
        ("CREATE TRIGGER t BEFORE INSERT ON x FOR EACH ROW SET a = 1", "CREATE TRIGGER"),
        ("CREATE LOGFILE GROUP lg ADD UNDOFILE 'x'", "CREATE LOGFILE GROUP"),
        ("CREATE TABLESPACE ts ADD DATAFILE 'x'", "CREATE TABLESPACE"),
        ("ALTER TABLE t IMPORT PARTITION p TABLESPACE", "ALTER TABLE ... TABLESPACE"),
        ("CALL p(1)", "CALL"),
    ];
    for (sql, feature) in cases {
        assert_eq!(statement(sql), Statement::Unsupported(feature.into()), "{sql}");
    }
}

#[test]
fn set_and_transactions() {
    let Statement::Set(items) = statement(
        "SET @a = 1, SESSION sql_mode = '', @@global.x := DEFAULT, autocommit=ON, NAMES utf8mb4 COLLATE utf8mb4_bin",
    ) else {
        panic!()
    };
    assert!(matches!(&items[0], SetItem::UserVariable { name, .. } if name == "a"));
    assert!(
        matches!(&items[1], SetItem::Variable { scope: Scope::Session, name, value: Some(_) } if name == "sql_mode")
    );
    assert!(matches!(&items[2], SetItem::Variable { scope: Scope::Global, name, value: None } if name == "x"));
    assert!(
        matches!(&items[3], SetItem::Variable { scope: Scope::Session, value: Some(Expr::Column(c)), .. } if c.name == "ON")
    );
    assert!(matches!(&items[4], SetItem::Names { charset: Some(c), collation: Some(_) } if c == "utf8mb4"));
    assert_eq!(
        statement("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY"),
        Statement::Set(vec![SetItem::Transaction {
            scope: Scope::Session,
            isolation: Some(IsolationLevel::ReadCommitted),
            read_only: Some(true)
        }])
    );
    assert_eq!(
        statement("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"),
        Statement::Begin { read_only: Some(true), consistent_snapshot: true }
    );
    assert_eq!(statement("COMMIT AND CHAIN NO RELEASE"), Statement::Commit { chain: Some(true), release: Some(false) });
    assert_eq!(statement("ROLLBACK WORK TO SAVEPOINT `a b`"), Statement::RollbackToSavepoint("a b".into()));
}

#[test]
fn definitions() {
    let Statement::CreateTable(table) = statement(
        "CREATE TABLE IF NOT EXISTS d.t (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(10) CHARACTER SET utf8mb4 \
         COLLATE utf8mb4_bin DEFAULT 'x' COMMENT 'c', at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE \
         CURRENT_TIMESTAMP(3), KEY k (name(5) DESC) USING HASH, UNIQUE KEY u (id, name), CONSTRAINT f FOREIGN KEY (id) REFERENCES o (id) \
         ON DELETE CASCADE, CHECK (id > 0)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='t' PARTITION BY KEY (id) PARTITIONS 4",
    ) else {
        panic!()
    };
    assert_eq!((table.columns.len(), table.constraints.len(), table.if_not_exists), (3, 4, true));
    assert_eq!(table.partition_by.as_ref().and_then(|clause| clause.count), Some(4));
    assert_eq!(table.options[1], ("CHARSET".to_string(), "utf8mb4".to_string()));
    assert_eq!(
        table.columns[0].column_type,
        ColumnType::Integer { size: IntegerSize::Int, width: None, unsigned: true }
    );
    assert_eq!(
        table.columns[1].options[..3],
        [
            ColumnOption::Charset("utf8mb4".into()),
            ColumnOption::Collation("utf8mb4_bin".into()),
            ColumnOption::Default(DefaultValue::Plain(Expr::text("x")))
        ]
    );
    let TableConstraint::Index(key) = &table.constraints[0] else { panic!() };
    assert_eq!(key.parts, [KeyPart::Column { name: "name".into(), prefix: Some(5), descending: true }]);
    assert_eq!(key.algorithm, Some(IndexAlgorithm::Hash));
    let Statement::AlterTable { operations, .. } = statement(
        "ALTER TABLE t ADD COLUMN a INT AFTER b, ADD (c INT, d INT), DROP COLUMN e, MODIFY f BIGINT FIRST, CHANGE g h TEXT, ADD INDEX \
         (a), DROP PRIMARY KEY, DROP INDEX i, RENAME COLUMN j TO k, RENAME INDEX l TO m, RENAME TO n, ENGINE=InnoDB, ALTER o SET DEFAULT \
         -1, ALGORITHM=INPLACE, LOCK=NONE, AUTO_INCREMENT=5",
    ) else {
        panic!()
    };
    assert_eq!(operations.len(), 17);
    assert_eq!(operations[16], AlterOperation::Option { name: "AUTO_INCREMENT".into(), value: "5".into() });
}

#[test]
fn grants() {
    let Statement::Grant { privileges, database, table, users, grant_option } =
        statement("GRANT SELECT, INSERT, ALL ON db.* TO 'a'@'%', b@localhost WITH GRANT OPTION")
    else {
        panic!()
    };
    let names: Vec<&str> = privileges.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["SELECT", "INSERT", "ALL PRIVILEGES"]);
    assert_eq!((database.as_deref(), table, grant_option), (Some("db"), None, true));
    assert_eq!(users[1], UserName { user: "b".into(), host: "localhost".into() });
    assert!(matches!(
        statement("CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p'"),
        Statement::CreateUser { users, .. }
            if users[0].authentication == Some(Authentication::Password { plugin: Some("mysql_native_password".into()), password: "p".into() })
    ));
}

#[test]
fn parameters_are_numbered() {
    let parsed = parse("SELECT ? FROM t WHERE a = ? LIMIT ?", Mode::default()).unwrap();
    assert_eq!(parsed.parameters, 3);
    let Statement::Query(query) = &*parsed.statement else { panic!() };
    assert_eq!(query.limit, Some(Limit { count: Expr::Parameter(2), offset: None }));
}

/// Deep or long input ends in an error or a tree, on a stack as small as a worker's.
#[test]
fn deep_and_long_input() {
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(|| {
            let deep = |open: &str, close: &str, n: usize| format!("SELECT {}1{}", open.repeat(n), close.repeat(n));
            for n in [8, 4_000, MAX_DEPTH + 1, 100_000] {
                for (open, close) in
                    [("(", ")"), ("-", ""), ("NOT ", ""), ("f(", ")"), ("(SELECT ", ")"), ("CASE WHEN ", " THEN 1 END")]
                {
                    let result = parse(&deep(open, close, n), Mode::default());
                    // Queries in queries have a bound of their own, which is reached before the one for all nesting.
                    let expected = if open == "(SELECT " {
                        (n > MAX_SELECTS).then_some(1473)
                    } else {
                        (n > MAX_DEPTH).then_some(1436)
                    };
                    assert_eq!(result.as_ref().err().map(|e| e.code), expected, "{open} {n}");
                    // A copy and a print are as high.
                    if let Ok(parsed) = result {
                        stack::with_room(parsed.statement.height, || {
                            let copy = parsed.statement.clone();
                            assert!(copy == parsed.statement && format!("{copy:?}").len() > n);
                        });
                    }
                }
            }
            assert!(parse(&format!("SELECT {}", vec!["a = 1"; 50_000].join(" OR ")), Mode::default()).is_ok());
            for (operators, separator) in [("SELECT ", "+"), ("SELECT ", " = "), ("SELECT ", " XOR "), ("", " UNION ")]
            {
                for (n, expected) in [(MAX_HEIGHT / 2, None), (MAX_HEIGHT + 1, Some(1436)), (100_000, Some(1436))] {
                    let operand = if operators.is_empty() { "SELECT 1" } else { "1" };
                    let text = format!("{operators}{}", vec![operand; n].join(separator));
                    assert_eq!(parse(&text, Mode::default()).err().map(|e| e.code), expected, "{separator} {n}");
                    // The high tree is dropped where the text cannot go on.
                    assert_eq!(parse(&format!("{text})"), Mode::default()).unwrap_err().code, expected.unwrap_or(1064));
                }
            }
            // Parentheses that open without end are counted once, not again at each.
            assert!(parse(&format!("SELECT {}", "(".repeat(5_000_000)), Mode::default()).is_err());
            let rows = format!("INSERT INTO t VALUES {}", vec!["(1, 'x')"; 50_000].join(","));
            assert!(parse(&rows, Mode::default()).is_ok());
        })
        .unwrap()
        .join()
        .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Statements cut, joined and littered with bytes: no panic.
    #[test]
    fn mutated_statements_do_not_panic(seed in any::<u64>(), edits in proptest::collection::vec((any::<u16>(), any::<u8>(), any::<u16>()), 1..12)) {
        let corpus: Vec<&str> = include_str!("corpus.sql").split(";;\n").collect();
        let mut bytes = corpus[seed as usize % corpus.len()].as_bytes().to_vec();
        for (place, what, other) in edits {
            let place = if bytes.is_empty() { 0 } else { place as usize % bytes.len() };
            match what % 4 {
                0 if !bytes.is_empty() => { bytes.remove(place); }
                1 => bytes.insert(place, b"'\"`()*/@;?.,-+ \\x0"[other as usize % 18]),
                2 => bytes.truncate(place),
                _ => {
                    let donor = corpus[other as usize % corpus.len()].as_bytes();
                    let cut = donor.len() / 2;
                    bytes.splice(place..place, donor[cut..].iter().copied());
                }
            }
        }
        fuzz_parse(&bytes);
    }

    #[test]
    fn random_text_does_not_panic(text in "\\PC{0,60}") {
        fuzz_parse(text.as_bytes());
    }
}
