//! Expressions as a whole: a file of expressions with the values that MySQL gives, storing into columns, names and types.

use super::context::SystemVariables;
use super::*;
use crate::parse::{self, Mode};
use crate::stack;
use rauk_types::format::append_text;
use rauk_types::schema::ColumnDefault;
use rauk_types::{Column, ColumnId, Date, DateTime, Decimal, Time, TypeKind};
use std::sync::Arc;

pub(crate) struct Variables;

impl SystemVariables for Variables {
    fn get(&self, _: crate::parse::statement::Scope, name: &str) -> Result<Value, MysqlError> {
        match name {
            "version" => Ok(Value::from("8.0.36-rauk")),
            "autocommit" => Ok(Value::Int(1)),
            _ => Err(MysqlError::new(1193, format!("Unknown system variable '{name}'"))),
        }
    }
}

/// One table `t` with a column of every kind, and one row.
pub(crate) struct Table {
    pub columns: Vec<(&'static str, DataType, bool, Value)>,
}

impl Columns for Table {
    fn column(&self, _: usize, column: usize) -> ValueRef<'_> {
        self.columns[column].3.as_ref()
    }
}

impl super::Scope for &Table {
    fn resolve(&mut self, path: &[&str]) -> Result<Resolved, MysqlError> {
        let name = path[path.len() - 1];
        let (column, (_, ty, nullable, _)) = self
            .columns
            .iter()
            .enumerate()
            .find(|(_, c)| c.0.eq_ignore_ascii_case(name))
            .ok_or_else(|| MysqlError::new(1054, format!("Unknown column '{}' in 'field list'", path.join("."))))?;
        Ok(Resolved::Column { table: 0, column, ty: *ty, nullable: *nullable })
    }

    fn aggregate(&mut self, _: Aggregate) -> Result<ExprKind, MysqlError> {
        Err(MysqlError::new(1111, "Invalid use of group function"))
    }

    fn inserted_value(&mut self, column: &str) -> Result<Resolved, MysqlError> {
        self.resolve(&[column])
    }

    fn default_value(&mut self, _: &[&str]) -> Result<Expr, MysqlError> {
        Ok(Expr::null())
    }
}

pub(crate) fn table() -> Table {
    let text = |collation| DataType::varchar(20, collation);
    let unsigned = |kind| DataType { unsigned: true, ..DataType::new(kind) };
    let fraction = |kind, scale| DataType { scale, ..DataType::new(kind) };
    Table {
        columns: vec![
            ("id", DataType::new(TypeKind::Int), false, Value::Int(42)),
            ("b", DataType::BIGINT, false, Value::Int(i64::MAX)),
            ("u", unsigned(TypeKind::BigInt), false, Value::UInt(5)),
            ("ti", DataType::new(TypeKind::TinyInt), true, Value::Int(-7)),
            ("d", DataType::decimal(10, 2), true, Value::Decimal(Decimal::new(1050, 2))),
            ("f", DataType::DOUBLE, true, Value::Double(1.5)),
            ("n", DataType::new(TypeKind::Int), true, Value::Null),
            ("s", text(Collation::Utf8mb40900AiCi), true, Value::from("Straße")),
            ("sb", text(Collation::Utf8mb4Bin), true, Value::from("abc")),
            ("sg", text(Collation::Utf8mb4GeneralCi), true, Value::from("ABC")),
            ("vb", DataType::varbinary(20), true, Value::Bytes(b"abc".to_vec())),
            (
                "dt",
                fraction(TypeKind::DateTime, 3),
                true,
                Value::DateTime(DateTime::from_parts(2024, 2, 29, 13, 14, 15, 678_000).unwrap()),
            ),
            ("da", DataType::new(TypeKind::Date), true, Value::Date(Date::new(2024, 2, 29).unwrap())),
            ("tm", DataType::new(TypeKind::Time), true, Value::Time(Time::new(true, 26, 30, 15, 0).unwrap())),
            ("ts", DataType::new(TypeKind::Timestamp), true, Value::Timestamp(1_700_000_000_000_000)),
            ("js", DataType::new(TypeKind::Json), true, Value::Json(b"{\"a\": 1}".to_vec())),
        ],
    }
}

pub(crate) fn context() -> Context {
    let mut context = Context::new(Arc::new(Variables));
    // 2024-03-10 12:34:56.789012 UTC
    context.now_micros = 1_710_074_096_789_012;
    context.current_database = Some("test".into());
    context.connection_id = 7;
    context.user = "u@localhost".into();
    context.current_user = "u@%".into();
    context
}

pub(crate) fn bound(sql: &str, bind: &BindContext) -> Result<Expr, MysqlError> {
    stack::with_room(parse::MAX_HEIGHT, || {
        let parsed = parse::parse_expression(sql, Mode::default())?;
        super::bind(&parsed, &mut &table(), bind)
    })
}

fn evaluated(sql: &str, context: &mut Context) -> Result<(Value, DataType), MysqlError> {
    let bind = BindContext { collation: context.collation, sql_mode: context.sql_mode, ..BindContext::default() };
    let expr = bound(sql, &bind)?;
    Ok((expr.eval(&table(), context)?, expr.ty))
}

/// A value as a client sees it: text, bytes that are no text in hexadecimal, NULL.
fn printed(value: &Value, ty: &DataType) -> String {
    if value.is_null() {
        return "NULL".into();
    }
    let mut out = Vec::new();
    append_text(value.as_ref(), ty, &mut out);
    String::from_utf8(out).unwrap_or_else(|e| e.as_bytes().iter().map(|b| format!("\\x{b:02X}")).collect())
}

fn shown(sql: &str) -> String {
    match evaluated(sql, &mut context()) {
        Ok((value, ty)) => printed(&value, &ty),
        Err(error) => format!("ERROR {}: {}", error.code, error.message),
    }
}

/// Checks lines of `expression` TAB `value`; lines that begin with `#` are comments.
fn compare_file(text: &str, least: usize) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (sql, expected) = line.split_once('\t').expect("an expression and a value");
        let expected = expected.replace("\\n", "\n").replace("\\t", "\t");
        let found = shown(sql);
        count += 1;
        // An error is known by its number.
        let same = match expected.strip_prefix("ERROR ") {
            Some(code) => found.starts_with(&format!("ERROR {code}")),
            None => found == expected,
        };
        if !same {
            wrong.push(format!("{sql}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= least, "{count}");
}

#[test]
fn golden() {
    compare_file(include_str!("golden.tsv"), 900);
}

#[test]
fn every_type_with_every_operator() {
    compare_file(include_str!("matrix.tsv"), 1800);
}

fn column_of(name: &str) -> DataType {
    let unsigned = name.contains("UNSIGNED");
    let base = name.split_whitespace().next().unwrap_or_default();
    let (kind, numbers) = match base.split_once('(') {
        Some((kind, rest)) => (kind, rest.trim_end_matches(')').split(',').map(|n| n.parse().unwrap()).collect()),
        None => (base, vec![]),
    };
    let first = numbers.first().copied().unwrap_or(0);
    let fixed = |kind| match numbers[..] {
        [precision, scale] => DataType { precision: precision as u8, scale: scale as u8, ..DataType::new(kind) },
        _ => DataType::new(kind),
    };
    let ty = match kind {
        "TINYINT" => DataType::new(TypeKind::TinyInt),
        "INT" => DataType::new(TypeKind::Int),
        "BIGINT" => DataType::BIGINT,
        "DECIMAL" => fixed(TypeKind::Decimal),
        "FLOAT" => fixed(TypeKind::Float),
        "DOUBLE" => DataType::DOUBLE,
        "CHAR" => DataType { length: first, ..DataType::new(TypeKind::Char) },
        "VARCHAR" => DataType::varchar(first, Collation::DEFAULT),
        "TINYTEXT" => DataType::new(TypeKind::TinyText),
        "BINARY" => DataType { length: first, ..DataType::new(TypeKind::Binary) },
        "VARBINARY" => DataType::varbinary(first),
        "DATE" => DataType::new(TypeKind::Date),
        "TIME" => DataType { scale: first as u8, ..DataType::new(TypeKind::Time) },
        "DATETIME" => DataType { scale: first as u8, ..DataType::new(TypeKind::DateTime) },
        "TIMESTAMP" => DataType { scale: first as u8, ..DataType::new(TypeKind::Timestamp) },
        other => panic!("{other}"),
    };
    DataType { unsigned, ..ty }
}

fn column(ty: DataType) -> Column {
    Column {
        id: ColumnId(1),
        name: "c".into(),
        ty,
        nullable: true,
        default: ColumnDefault::Value(Value::Null),
        on_update_now: false,
        comment: String::new(),
        initial: Value::Null,
        generated: None,
        invisible: false,
    }
}

/// The stored value and the warnings, or the error.
fn stored(sql: &str, ty: DataType, strict: bool) -> String {
    let mut context = context();
    context.strict_statement = strict;
    context.sql_mode.strict = strict;
    let (value, from) = evaluated(sql, &mut context).unwrap();
    match convert_for_column(value, &from, &column(ty), 1, &mut context) {
        Err(error) => format!("ERROR {}", error.code),
        Ok(value) => {
            let mut text = printed(&value, &ty).replace('\0', "\\0");
            if !context.warnings.is_empty() {
                let codes: Vec<String> = context.warnings.iter().map(|w| w.code.to_string()).collect();
                text.push_str(&format!(" !{}", codes.join(",")));
            }
            text
        }
    }
}

/// Column type, expression, what is stored in strict mode and otherwise: with `!codes` of warnings.
#[test]
fn stored_values() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("columns.tsv").lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [ty, sql, strict, lenient] = fields[..] else { panic!("{line}") };
        let found = [stored(sql, column_of(ty), true), stored(sql, column_of(ty), false)];
        count += 1;
        if found != [strict, lenient] {
            wrong.push(format!("{ty}\t{sql}\t{strict}\t{lenient}\n  found {}\t{}", found[0], found[1]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 1000, "{count}");
}

fn failure(sql: &str, ty: DataType) -> String {
    let mut context = context();
    context.strict_statement = true;
    let (value, from) = evaluated(sql, &mut context).unwrap();
    convert_for_column(value, &from, &column(ty), 3, &mut context).expect_err(sql).message
}

#[test]
fn messages_of_columns() {
    let int = DataType::new(TypeKind::Int);
    assert_eq!(failure("'abc'", int), "Incorrect integer value: 'abc' for column 'c' at row 3");
    assert_eq!(failure("3000000000", int), "Out of range value for column 'c' at row 3");
    assert_eq!(failure("'1x'", int), "Data truncated for column 'c' at row 3");
    assert_eq!(failure("'abcd'", DataType::varchar(3, Collation::DEFAULT)), "Data too long for column 'c' at row 3");
    assert_eq!(
        failure("x'FF'", DataType::varchar(3, Collation::DEFAULT)),
        "Incorrect string value: '\\xFF' for column 'c' at row 3"
    );
    assert_eq!(failure("'x'", DataType::new(TypeKind::Date)), "Incorrect date value: 'x' for column 'c' at row 3");
    assert_eq!(
        failure("'x'", DataType::new(TypeKind::DateTime)),
        "Incorrect datetime value: 'x' for column 'c' at row 3"
    );
    assert_eq!(failure("'x'", DataType::decimal(5, 2)), "Incorrect decimal value: 'x' for column 'c' at row 3");
    assert_eq!(
        failure("'{\"a\": }'", DataType::new(TypeKind::Json)),
        "Invalid JSON text: \"Invalid value.\" at position 6 in value for column 'c'."
    );
    // 16 MiB is the longest value, whatever the type says.
    let long = DataType::new(TypeKind::LongText);
    let mut context = context();
    context.strict_statement = true;
    let value = Value::Str("x".repeat(rauk_types::schema::MAX_LOB_BYTES + 1));
    let error = convert_for_column(value, &long, &column(long), 1, &mut context).unwrap_err();
    assert_eq!(error.code, 1406);
}

fn warnings(sql: &str) -> Vec<String> {
    let mut context = context();
    evaluated(sql, &mut context).unwrap();
    context.warnings.iter().map(|w| format!("{} {}", w.code, w.message)).collect()
}

#[test]
fn warnings_of_expressions() {
    assert_eq!(warnings("'12abc' + 1"), ["1292 Truncated incorrect DOUBLE value: '12abc'"]);
    assert_eq!(warnings("'abc' = 0"), ["1292 Truncated incorrect DOUBLE value: 'abc'"]);
    assert_eq!(warnings("CAST('1x' AS SIGNED)"), ["1292 Truncated incorrect INTEGER value: '1x'"]);
    assert_eq!(warnings("CAST('abc' AS CHAR(2))"), ["1292 Truncated incorrect CHAR(2) value: 'abc'"]);
    assert_eq!(warnings("1 / 0"), ["1365 Division by 0"]);
    assert_eq!(warnings("YEAR('abc')"), ["1292 Incorrect datetime value: 'abc'"]);
    assert_eq!(warnings("LN(0)"), ["3020 Invalid argument for logarithm"]);
    assert_eq!(
        warnings("REPEAT('a', 100000000)"),
        ["1301 Result of repeat() was larger than max_allowed_packet (67108864) - truncated"]
    );
    assert!(warnings("1 + 1 = 2").is_empty());
    let mut context = context();
    context.strict_statement = true;
    assert_eq!(evaluated("1 / 0", &mut context).unwrap_err().code, 1365);
    assert_eq!(evaluated("'x' + 1", &mut context).unwrap_err().code, 1292);
}

#[test]
fn messages_of_expressions() {
    for (sql, message) in [
        ("b + 1", "BIGINT value is out of range in '(`b` + 1)'"),
        ("u - 6", "BIGINT UNSIGNED value is out of range in '(`u` - 6)'"),
        ("t.b * 2", "BIGINT value is out of range in '(`t`.`b` * 2)'"),
        ("nosuch(1)", "FUNCTION nosuch does not exist"),
        ("Abs()", "Incorrect parameter count in the call to native function 'Abs'"),
        ("da = 'abc'", "Incorrect DATE value: 'abc'"),
        ("(1, 2) = 1", "Operand should contain 1 column(s)"),
        ("(1, 2) = (1, 2, 3)", "Operand should contain 2 column(s)"),
        ("'a' COLLATE nosuch", "Unknown collation: 'nosuch'"),
        (
            "'a' COLLATE utf8mb4_bin = 'b' COLLATE utf8mb4_general_ci",
            "Illegal mix of collations (utf8mb4_bin,EXPLICIT) and (utf8mb4_general_ci,EXPLICIT) for operation '='",
        ),
        (
            "s = sg",
            "Illegal mix of collations (utf8mb4_0900_ai_ci,IMPLICIT) and (utf8mb4_general_ci,IMPLICIT) for operation '='",
        ),
        (
            "JSON_EXTRACT(id, '$.a')",
            "Invalid data type for JSON data in argument 1 to function json_extract; a JSON string or JSON type is required.",
        ),
        ("js->'$.'", "Invalid JSON path expression. The error is around character position 2."),
        ("id IN (SELECT 1)", "This version of MySQL doesn't yet support 'subqueries in expressions'"),
        ("id = ANY (SELECT 1)", "This version of MySQL doesn't yet support 'subqueries in expressions'"),
        ("NOT EXISTS (SELECT 1)", "This version of MySQL doesn't yet support 'subqueries in expressions'"),
        ("MATCH (s) AGAINST ('x')", "Incorrect arguments to MATCH"),
        (
            "1 MEMBER OF (id)",
            "Invalid data type for JSON data in argument 2 to function member of; a JSON string or JSON type is required.",
        ),
        ("RANK() OVER (ORDER BY id)", "You cannot use the window function 'rank' in this context.'"),
        ("CAST(id AS YEAR)", "This version of MySQL doesn't yet support 'CAST ... AS YEAR'"),
        ("test.nosuch(1)", "FUNCTION test.nosuch does not exist"),
        ("`EXTRACT`('DAY', dt)", "FUNCTION EXTRACT does not exist"),
        ("`trim`(s, 'x')", "FUNCTION trim does not exist"),
        ("ltrim(s, 'x')", "Incorrect parameter count in the call to native function 'ltrim'"),
        ("ABS(DISTINCT 1)", "Incorrect parameter count in the call to native function 'ABS'"),
        ("CAST(1 AS DECIMAL(70))", "Too-big precision 70 specified for 'CAST(1 AS DECIMAL(70))'. Maximum is 65."),
    ] {
        assert_eq!(evaluated(sql, &mut context()).expect_err(sql).message, message, "{sql}");
    }
}

/// What the grammar of expressions has, but not in this place.
#[test]
fn misplaced_parts_are_errors_of_syntax() {
    for (sql, near) in [
        ("id + DEFAULT", "DEFAULT"),
        ("ABS(INTERVAL 1 DAY)", "INTERVAL"),
        ("SUM(id SEPARATOR ',')", "SUM"),
        ("MAX(id ORDER BY id)", "MAX"),
        ("SUM(*)", "SUM"),
        ("COUNT(id, n)", "COUNT"),
    ] {
        let error = bound(sql, &BindContext::default()).expect_err(sql);
        assert!(error.code == 1064 && error.message.contains(&format!("near '{near}")), "{sql}: {error}");
    }
}

#[test]
fn escape_is_a_constant_of_one_character_at_most() {
    for (sql, expected) in [
        ("'a%' LIKE 'a|%' ESCAPE '|'", "1"),
        ("'ab' LIKE 'a|%' ESCAPE '|'", "0"),
        ("'a%' LIKE 'a|%' ESCAPE _utf8mb4'|'", "1"),
        ("'a%' LIKE 'a|%' ESCAPE CONCAT('|', '')", "1"),
        ("'a%' LIKE 'aä%' ESCAPE 'ä'", "1"),
        // None at all, and the usual one.
        ("'a|b' LIKE 'a|%' ESCAPE ''", "1"),
        (r"'a%' LIKE 'a\\%' ESCAPE NULL", "1"),
    ] {
        assert_eq!(shown(sql), expected, "{sql}");
    }
    for escape in ["'ab'", "1", "s", "?", "UPPER(s)", "x'7C'"] {
        let error = bound(&format!("s LIKE 'a' ESCAPE {escape}"), &BindContext::default()).expect_err(escape);
        assert_eq!((error.code, error.message.as_str()), (1210, "Incorrect arguments to ESCAPE"), "{escape}");
    }
}

#[test]
fn types_of_expressions() {
    let described = |ty: &DataType| match ty.kind {
        TypeKind::Decimal => format!("decimal({},{})", ty.precision, ty.scale),
        TypeKind::VarChar | TypeKind::VarBinary => format!("{:?}({})", ty.kind, ty.length).to_lowercase(),
        TypeKind::DateTime | TypeKind::Time => format!("{:?}({})", ty.kind, ty.scale).to_lowercase(),
        kind => format!("{kind:?}{}", if ty.unsigned { " unsigned" } else { "" }).to_lowercase(),
    };
    for (sql, expected) in [
        ("1", "bigint"),
        ("1.50", "decimal(3,2)"),
        ("1e0", "double"),
        ("'abc'", "varchar(3)"),
        ("x'41'", "varbinary(1)"),
        ("id + 1", "bigint"),
        ("u + 1", "bigint unsigned"),
        ("d + 1", "decimal(11,2)"),
        ("d * d", "decimal(20,4)"),
        ("d / 3", "decimal(14,6)"),
        ("id / 2", "decimal(14,4)"),
        ("f + d", "double"),
        ("s + 1", "double"),
        ("id DIV 2", "bigint"),
        ("id = 1", "bigint"),
        ("IF(id, 1, 2.5)", "decimal(2,1)"),
        ("IFNULL(d, 'x')", "varchar(12)"),
        ("CONCAT(s, 'x')", "varchar(21)"),
        ("da + INTERVAL 1 DAY", "date"),
        ("da + INTERVAL 1 HOUR", "datetime(0)"),
        ("dt + INTERVAL 1 MICROSECOND", "datetime(6)"),
        ("NOW(3)", "datetime(3)"),
        ("CAST(id AS CHAR(5))", "varchar(5)"),
        ("CAST(d AS UNSIGNED)", "bigint unsigned"),
        ("COALESCE(da, dt)", "datetime(3)"),
        ("ROUND(d, 1)", "decimal(10,1)"),
        ("id & 1", "bigint unsigned"),
        ("vb", "varbinary(20)"),
    ] {
        let expr = bound(sql, &BindContext::default()).unwrap();
        assert_eq!(described(&expr.ty), expected, "{sql}");
    }
    assert!(!bound("id + 1", &BindContext::default()).unwrap().nullable);
    assert!(bound("n + 1", &BindContext::default()).unwrap().nullable);
    assert!(!bound("n IS NULL", &BindContext::default()).unwrap().nullable);
}

#[test]
fn parameters_and_variables() {
    let bind = BindContext {
        parameters: vec![DataType::BIGINT, DataType::varchar(16, Collation::DEFAULT)],
        ..BindContext::default()
    };
    let mut context = context();
    context.parameters = vec![Value::Int(42), Value::from("STRASSE")];
    let check = |sql: &str, context: &mut Context| bound(sql, &bind).unwrap().eval_bool(&table(), context).unwrap();
    assert!(check("id = ? AND s = ?", &mut context));
    context.parameters[0] = Value::Int(41);
    assert!(!check("id = ? AND s = ?", &mut context));
    // A parameter may hold another type than it was bound for.
    context.parameters[0] = Value::from("42");
    assert!(check("id = ?", &mut context));
    context.parameters[0] = Value::Null;
    assert!(!check("id = ?", &mut context));
    assert_eq!(context.parameters.len(), 2);

    assert_eq!(evaluated("@x := id + 1", &mut context).unwrap().0, Value::Int(43));
    assert_eq!(evaluated("@x + 1", &mut context).unwrap().0, Value::Double(44.0));
    assert_eq!(evaluated("@nothing", &mut context).unwrap().0, Value::Null);
    assert_eq!(evaluated("@@session.autocommit", &mut context).unwrap().0, Value::Int(1));
    assert_eq!(evaluated("@@nosuch", &mut context).unwrap_err().code, 1193);

    // A text parameter beside a date is read as one, and refused when it is none.
    let dates = BindContext { parameters: vec![DataType::varchar(16, Collation::DEFAULT)], ..BindContext::default() };
    let expr = bound("da = ?", &dates).unwrap();
    context.parameters = vec![Value::from("2024-2-29")];
    assert!(expr.eval_bool(&table(), &mut context).unwrap());
    context.parameters = vec![Value::from("soon")];
    assert_eq!(expr.eval_bool(&table(), &mut context).unwrap_err().message, "Incorrect DATE value: 'soon'");
}

#[test]
fn constants_are_known_and_folded() {
    let bind = BindContext { parameters: vec![DataType::BIGINT], ..BindContext::default() };
    for (sql, constant) in [
        ("1 + 1", true),
        ("? + 1", true),
        ("NOW()", true),
        ("id", false),
        ("RAND()", false),
        ("UUID()", false),
        ("1 + id", false),
        ("@@autocommit", true),
        ("@x := 1", false),
        ("CASE WHEN id THEN 1 END", false),
        ("f IN (1, n)", false),
    ] {
        assert_eq!(bound(sql, &bind).unwrap().is_constant(), constant, "{sql}");
    }
    for sql in ["1 + 1", "CONCAT('a', 'b')", "-(5)", "1 = 1", "CAST('2024-01-01' AS DATE)", "UPPER('x')"] {
        assert!(matches!(bound(sql, &bind).unwrap().kind, ExprKind::Literal(_)), "{sql}");
    }
    // Warnings and the clock belong to every execution.
    for sql in
        ["'x' + 1", "1 / 0", "NOW()", "CURDATE()", "RAND(1)", "TIME '10:00:00' = TIMESTAMP '2024-01-01 10:00:00'"]
    {
        assert!(!matches!(bound(sql, &bind).unwrap().kind, ExprKind::Literal(_)), "{sql}");
    }
    let mut columns = Vec::new();
    bound("id + d * 2 = 5 AND s LIKE sb", &bind).unwrap().for_each_column(&mut |t, c| columns.push((t, c)));
    assert_eq!(columns, [(0, 0), (0, 4), (0, 7), (0, 8)]);
    assert_eq!(bound("id = 1 AND d = 2 AND s = 'x'", &bind).unwrap().conjuncts().len(), 3);
}

#[test]
fn time_zones_move_timestamps() {
    let mut context = context();
    context.time_zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
    let (value, ty) = evaluated("ts", &mut context).unwrap();
    assert_eq!(printed(&value, &ty), "2023-11-15 00:13:20");
    assert_eq!(evaluated("ts = '2023-11-15 00:13:20'", &mut context).unwrap().0, Value::Int(1));
    assert_eq!(evaluated("ts = '2023-11-14 22:13:20+00:00'", &mut context).unwrap().0, Value::Int(1));
    assert_eq!(evaluated("UNIX_TIMESTAMP(ts)", &mut context).unwrap().0, Value::Int(1_700_000_000));
    let ty = DataType::new(TypeKind::Timestamp);
    let stored = convert_for_column(
        Value::from("2023-11-15 00:13:20"),
        &DataType::varchar(30, Collation::DEFAULT),
        &column(ty),
        1,
        &mut context,
    );
    assert_eq!(stored.unwrap(), Value::Timestamp(1_700_000_000_000_000));
}

#[test]
fn printed_for_people() {
    let bind = BindContext { parameters: vec![DataType::BIGINT], ..BindContext::default() };
    for (sql, expected) in [
        ("id = ? AND s LIKE 'a%'", "((#0.0 = ?0) and (#0.7 like 'a%'))"),
        ("id IN (1, 2) OR n IS NOT NULL", "((#0.0 in (1,2)) or (#0.6 is not null))"),
        ("d + 1.5 * f", "(#0.4 + (1.5 * #0.5))"),
        ("da + INTERVAL 1 DAY", "(#0.12 + interval 1 DAY)"),
        ("CASE WHEN id THEN 'x' ELSE UPPER(s) END", "(case when #0.0 then 'x' else upper(#0.7) end)"),
    ] {
        assert_eq!(bound(sql, &bind).unwrap().to_string(), expected);
    }
}

/// Binding, evaluating and dropping what the parser lets through, on a worker's stack.
#[test]
fn deep_expressions() {
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(|| {
            let mut context = context();
            for n in [100, 4_000] {
                let nested = |open: &str, close: &str| format!("{}id{}", open.repeat(n), close.repeat(n));
                for (text, expected) in [
                    (vec!["id"; 2 * n].join(" + "), 84 * n as i64),
                    (vec!["id"; 2 * n + 1].join(" <=> "), 0),
                    (nested("(", ")"), 42),
                    (nested("ABS(", ")"), 42),
                    (nested("-", ""), 42),
                    (nested("NOT ", ""), 1),
                    (nested("(1 + ", ")"), 42 + n as i64),
                    (nested("CASE WHEN id THEN ", " END"), 42),
                    (nested("IF(NOT id, 7, ", ")"), 42),
                    (nested("id IN (1, ", ")"), 0),
                    (nested("CAST(", " AS SIGNED)"), 42),
                    (nested("LENGTH(CONCAT(", ", 'a'))"), 2),
                ] {
                    let value = evaluated(&text, &mut context).unwrap_or_else(|e| panic!("{n} {:.40}: {e}", text)).0;
                    assert_eq!(value, Value::Int(expected), "{n} {text:.40}");
                }
            }
            let row = vec!["id"; 3_000].join(",");
            for op in ["=", "<"] {
                let (value, _) = evaluated(&format!("({row}) {op} ({row})"), &mut context).unwrap();
                assert_eq!(value, Value::Int(i64::from(op == "=")));
            }
            let terms: Vec<String> = (0..20_000).map(|i| format!("id = {}", i + 100)).collect();
            assert_eq!(evaluated(&terms.join(" OR "), &mut context).unwrap().0, Value::Int(0));
            let list: Vec<String> = (0..50_000).map(|i| i.to_string()).collect();
            assert_eq!(evaluated(&format!("id IN ({})", list.join(",")), &mut context).unwrap().0, Value::Int(1));
        })
        .unwrap()
        .join()
        .unwrap();
}

/// A fraction is cut from a DOUBLE, and a DECIMAL and a text are rounded, as where they are stored.
#[test]
fn a_constant_beside_a_year_is_the_year_as_which_it_would_be_stored() {
    let decimal = |text: &str| Value::Decimal(text.parse().expect("a number"));
    for (constant, year) in [
        (Value::Int(5), Some(2005)),
        (Value::Int(70), Some(1970)),
        (Value::Int(2005), Some(2005)),
        (Value::Int(0), Some(0)),
        (Value::Int(1900), None),
        (Value::Int(-5), None),
        (Value::UInt(u64::MAX), None),
        (Value::Double(5.0), Some(2005)),
        (Value::Double(5.9), Some(2005)),
        (Value::Double(69.9), Some(2069)),
        (Value::Double(2005.7), Some(2005)),
        (Value::Double(-0.5), None),
        (Value::Double(2155.5), None),
        (Value::Double(1e300), None),
        (decimal("5.4"), Some(2005)),
        (decimal("69.5"), Some(1970)),
        (decimal("99.9"), None),
        (decimal("0.4"), Some(0)),
        (decimal("1900.5"), Some(1901)),
        (decimal("-1.5"), None),
        (decimal("-0.01"), None),
        (Value::from("-0.01"), Some(2000)),
        (Value::from("-1.5"), None),
        (Value::from("5"), Some(2005)),
        (Value::from("5.4"), Some(2005)),
        (Value::from("1999.1 "), Some(1999)),
        (Value::from("0"), Some(2000)),
        (Value::from("0000"), Some(0)),
        (Value::from("5x"), None),
        (Value::from(""), None),
    ] {
        assert_eq!(year_number(constant.as_ref()), year, "{constant:?}");
    }
}
