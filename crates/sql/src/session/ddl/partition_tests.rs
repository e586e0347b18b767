//! Definitions of partitioned tables: errors, values, and what is shown of them.

use super::columns;
use super::keys;
use super::table::TableDraft;
use crate::exec::SqlEvaluator;
use crate::expr::Context;
use crate::parse::{Mode, Statement, parse};
use crate::session::show::partitions as show;
use rauk_node::Evaluator;
use rauk_types::partitioning::{PartitionBound, PartitionOn, PartitionValues, Partitioning};
use rauk_types::{Collation, MysqlError, TableId, TableSchema, Value};
use std::sync::Arc;

/// What CREATE TABLE would make.
fn defined(sql: &str) -> Result<TableSchema, MysqlError> {
    let Statement::CreateTable(statement) = parse(sql, Mode::default())?.statement.into_statement() else { panic!() };
    let mut context = Context::without_session();
    let mut draft = TableDraft::new("d", &statement.name.name, Collation::DEFAULT);
    for definition in &statement.columns {
        draft.columns.push(columns::draft(definition, Collation::DEFAULT, &mut context)?);
    }
    for constraint in &statement.constraints {
        let index = keys::draft(constraint, &mut draft.columns)?;
        draft.indexes.push(index);
    }
    let engine = statement.options.iter().find(|(name, _)| name == "ENGINE").map(|(_, value)| value.as_str());
    if let Some(clause) = &statement.partition_by {
        draft.partition_by(clause, engine, &mut context)?;
    }
    draft.build(None)
}

fn code(sql: &str) -> u16 {
    defined(sql).map_or_else(|error| error.code, |_| 0)
}

fn partitioning(sql: &str) -> Arc<Partitioning> {
    let schema = defined(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let partitioning = schema.partitioning.expect("partitions");
    partitioning.validate(0);
    partitioning
}

fn shown(schema: &TableSchema) -> String {
    let name = |name: &str| format!("`{name}`");
    show::clause(schema.partitioning.as_ref().expect("partitions"), schema, &name)
}

/// All columns that the clauses below name.
const TABLE: &str = "CREATE TABLE t (a INT, b INT, u INT UNSIGNED, y TINYINT, d DATE, e DATE, dt DATETIME, ti TIME, ts TIMESTAMP NULL, \
                     v VARCHAR(5), x TEXT, f FLOAT, n DECIMAL(5,2), bb VARBINARY(5), yr YEAR, en ENUM('a','b'))";

#[test]
fn what_is_shown_makes_the_same() {
    for clause in [
        "/*!50100 PARTITION BY HASH (`a`)\nPARTITIONS 4 */",
        "/*!50100 PARTITION BY HASH (`a`) */",
        "/*!50100 PARTITION BY LINEAR HASH ((`a` + `b`))\nPARTITIONS 2 */",
        "/*!50100 PARTITION BY HASH (`a`)\n(PARTITION `x` COMMENT = 'it''s' ENGINE = InnoDB,\n PARTITION `y` MAX_ROWS = 5 MIN_ROWS = 2 ENGINE = InnoDB) */",
        "/*!50100 PARTITION BY HASH (`a`)\n(PARTITION `x*/` COMMENT = 'a */ /* b\\\\' ENGINE = InnoDB) */",
        "/*!50100 PARTITION BY KEY (`a`,`v`)\nPARTITIONS 1 */",
        "/*!50100 PARTITION BY LINEAR KEY ALGORITHM = 1 (`a`)\nPARTITIONS 3 */",
        "/*!50100 PARTITION BY RANGE (to_days(`d`))\n(PARTITION `p0` VALUES LESS THAN (-5) ENGINE = InnoDB,\n PARTITION `p1` VALUES LESS THAN (734138) ENGINE = InnoDB,\n PARTITION `p2` VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */",
        "/*!50100 PARTITION BY LIST (`u`)\n(PARTITION `p` VALUES IN (NULL,4294967295,0) ENGINE = InnoDB,\n PARTITION `q` DEFAULT ENGINE = InnoDB) */",
        "/*!50500 PARTITION BY RANGE  COLUMNS(`a`,`d`,`v`)\n(PARTITION `p0` VALUES LESS THAN (5,'2010-01-01','x') ENGINE = InnoDB,\n PARTITION `p1` VALUES LESS THAN (5,MAXVALUE,MAXVALUE) ENGINE = InnoDB,\n PARTITION `p2` VALUES LESS THAN (MAXVALUE,MAXVALUE,MAXVALUE) ENGINE = InnoDB) */",
        "/*!50500 PARTITION BY RANGE  COLUMNS(`a`)\n(PARTITION `p0` VALUES LESS THAN (MAXVALUE) ENGINE = InnoDB) */",
        "/*!50500 PARTITION BY LIST  COLUMNS(`a`,`bb`)\n(PARTITION `p` VALUES IN ((1,'x'),(NULL,_binary 0xFF00),(2,NULL)) ENGINE = InnoDB) */",
        "/*!50500 PARTITION BY LIST  COLUMNS(`dt`)\n(PARTITION `p` VALUES IN ('2010-01-01 00:00:00','2011-02-03 04:05:06') ENGINE = InnoDB) */",
        "/*!50100 PARTITION BY RANGE (`a`)\nSUBPARTITION BY HASH (`b`)\nSUBPARTITIONS 2\n(PARTITION `p0` VALUES LESS THAN (1) COMMENT = 'c' ENGINE = InnoDB,\n PARTITION `p1` VALUES LESS THAN (2) ENGINE = InnoDB) */",
        "/*!50100 PARTITION BY LIST (`a`)\nSUBPARTITION BY LINEAR KEY (`b`)\n(PARTITION `p0` VALUES IN (1)\n (SUBPARTITION `s0` COMMENT = 's' ENGINE = InnoDB,\n  SUBPARTITION `s1` ENGINE = InnoDB)) */",
        "/*!50100 PARTITION BY RANGE (unix_timestamp(`ts`))\n(PARTITION `p` VALUES LESS THAN (10) ENGINE = InnoDB) */",
    ] {
        let schema = defined(&format!("{TABLE} {clause}")).unwrap_or_else(|e| panic!("{clause}: {e}"));
        assert_eq!(shown(&schema).trim_start(), clause);
        let again =
            TableDraft::of(&schema).build(schema.hidden_key.then(|| schema.columns.last().unwrap().id)).unwrap();
        assert_eq!(again, schema, "{clause}");
    }
}

#[test]
fn names_and_values() {
    let of = partitioning(&format!("{TABLE} PARTITION BY HASH (a) PARTITIONS 3"));
    let names: Vec<&str> = of.partitions.iter().map(|partition| partition.name.as_str()).collect();
    assert_eq!(names, ["p0", "p1", "p2"]);
    assert!(of.counted && of.leaves().all(|leaf| leaf.name.is_none()));
    let of = partitioning(&format!(
        "{TABLE} PARTITION BY RANGE (a) SUBPARTITION BY HASH (b) SUBPARTITIONS 2 (PARTITION x VALUES LESS THAN (1 + 2 * 3))"
    ));
    let names: Vec<_> = of.leaves().map(|leaf| leaf.name.clone().unwrap()).collect();
    assert_eq!(names, ["xsp0", "xsp1"]);
    assert_eq!(of.partitions[0].values, PartitionValues::LessThan(vec![PartitionBound::Value(Value::Int(7))]));
    let of = partitioning(&format!(
        "{TABLE} PARTITION BY RANGE (unix_timestamp(ts)) (PARTITION x VALUES LESS THAN (UNIX_TIMESTAMP('2010-01-01 00:00:00')))"
    ));
    let bound = PartitionBound::Value(Value::Int(1262304000));
    assert_eq!(of.partitions[0].values, PartitionValues::LessThan(vec![bound]));
    // The older spelling.
    let older = partitioning(&format!(
        "{TABLE} PARTITION BY RANGE COLUMN_LIST(a,b) (PARTITION p0 VALUES LESS THAN (COLUMN_LIST(99,99)))"
    ));
    let newer =
        partitioning(&format!("{TABLE} PARTITION BY RANGE COLUMNS (a,b) (PARTITION p0 VALUES LESS THAN (99,99))"));
    assert_eq!(older, newer);
    // A text that is too long is cut, as the column would be.
    let of = partitioning(&format!("{TABLE} PARTITION BY LIST COLUMNS (v) (PARTITION p VALUES IN ('abcdefg'))"));
    assert_eq!(of.partitions[0].values, PartitionValues::In(vec![vec![Value::Str("abcde".into())]]));
}

#[test]
fn keys_distribute() {
    let key = "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b))";
    let schema = defined(&format!("{key} PARTITION BY KEY (b) PARTITIONS 2")).unwrap();
    assert_eq!((schema.distribution.as_slice(), schema.explicit_partitioning), (&[1][..], false));
    let schema = defined(&format!("{key} PARTITION BY KEY () PARTITIONS 2")).unwrap();
    let of = schema.partitioning.as_ref().unwrap();
    assert_eq!(of.by.on, PartitionOn::Columns { columns: vec![0, 1], implied: true });
    assert_eq!(shown(&schema), "\n/*!50100 PARTITION BY KEY ()\nPARTITIONS 2 */");
    let schema = defined(&format!("{key} PARTITION BY HASH (b) PARTITIONS 2")).unwrap();
    assert_eq!(schema.distribution, [0, 1]);
    // Without a number it says how rows are spread.
    let schema = defined(&format!("{key} PARTITION BY KEY (b)")).unwrap();
    assert!(schema.partitioning.is_none() && schema.explicit_partitioning);
    assert_eq!(schema.distribution, [1]);
    let unique = "CREATE TABLE t (a INT, b INT NOT NULL, UNIQUE (b)) PARTITION BY KEY () PARTITIONS 2";
    assert_eq!(partitioning(unique).by.on.columns(), [1]);
    let again = TableDraft::of(&defined(&format!("{key} PARTITION BY KEY (b) PARTITIONS 2")).unwrap());
    assert_eq!(again.build(None).unwrap().distribution, [1]);
}

#[test]
fn values_of_rows() {
    let row = |schema: &TableSchema, of: &[(&str, Value)]| -> Vec<Value> {
        let value = |name: &str| of.iter().find(|(known, _)| *known == name).map_or(Value::Null, |(_, v)| v.clone());
        schema.columns.iter().map(|column| value(&column.name)).collect()
    };
    let evaluator = SqlEvaluator::default();
    let date = Value::Date(rauk_types::Date::new(2010, 1, 1).unwrap());
    let cases = [
        ("a", vec![("a", Value::Int(-7))], Some(-7)),
        ("a", vec![], None),
        ("a * b - 3", vec![("a", Value::Int(2)), ("b", Value::Int(5))], Some(7)),
        ("a DIV b", vec![("a", Value::Int(2)), ("b", Value::Int(0))], None),
        ("TO_DAYS(d)", vec![("d", date.clone())], Some(734138)),
        ("YEAR(d)", vec![("d", date)], Some(2010)),
        ("FLOOR(n)", vec![("n", Value::Decimal("2.75".parse().unwrap()))], Some(2)),
        ("UNIX_TIMESTAMP(ts)", vec![("ts", Value::Timestamp(1_262_304_000_000_000))], Some(1_262_304_000)),
    ];
    for (expression, values, expected) in cases {
        let clause = format!("{TABLE} PARTITION BY HASH ({expression}) PARTITIONS 2");
        let schema = defined(&clause).unwrap();
        let value = evaluator.partition_value(&schema, false, &row(&schema, &values)).unwrap();
        assert_eq!(value, expected, "{expression}");
        let sub = "PARTITION BY RANGE (y) SUBPARTITION BY HASH";
        let schema = defined(&format!("{TABLE} {sub} ({expression}) (PARTITION p VALUES LESS THAN (1))")).unwrap();
        for _ in 0..2 {
            let value = evaluator.partition_value(&schema, true, &row(&schema, &values)).unwrap();
            assert_eq!(value, expected, "{expression}");
            assert_eq!(evaluator.partition_value(&schema, false, &row(&schema, &values)).unwrap(), None);
        }
    }
    let schema = defined(&format!("{TABLE} PARTITION BY HASH (u - b) PARTITIONS 2")).unwrap();
    let wrong = row(&schema, &[("u", Value::UInt(1)), ("b", Value::Int(2))]);
    assert_eq!(evaluator.partition_value(&schema, false, &wrong).unwrap_err().code, 1690);
}

#[test]
fn leaves_keep_their_tables() {
    let mut schema = defined(&format!("{TABLE} PARTITION BY HASH (a) PARTITIONS 2")).unwrap();
    let of = Arc::make_mut(schema.partitioning.as_mut().unwrap());
    of.leaves_mut().zip(7..).for_each(|(leaf, id)| leaf.tables = vec![TableId(id)]);
    let again = TableDraft::of(&schema).build(Some(schema.columns.last().unwrap().id)).unwrap();
    assert_eq!(again.partitioning, schema.partitioning);
    let mut draft = TableDraft::of(&schema);
    draft.partitions.as_mut().unwrap().forget_tables();
    assert!(draft.build(None).unwrap().partitioning.unwrap().leaves().all(|leaf| leaf.tables.is_empty()));
}

#[test]
fn clauses_that_are_wrong() {
    let cases = [
        ("RANGE (a)", 1492),
        ("LIST (a) PARTITIONS 2", 1492),
        ("RANGE (a) (PARTITION p)", 1479),
        ("RANGE (a) (PARTITION p VALUES IN (1))", 1480),
        ("HASH (a) (PARTITION p VALUES LESS THAN (1))", 1480),
        ("RANGE (a) (PARTITION p DEFAULT)", 1480),
        ("LIST (a) (PARTITION p DEFAULT, PARTITION q DEFAULT)", 4030),
        ("RANGE (a) (PARTITION p VALUES LESS THAN MAXVALUE, PARTITION q VALUES LESS THAN (1))", 1481),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (5), PARTITION q VALUES LESS THAN (5))", 1493),
        (
            "RANGE COLUMNS (a, b) (PARTITION p VALUES LESS THAN (5, MAXVALUE), PARTITION q VALUES LESS THAN (5, 7))",
            1493,
        ),
        ("RANGE COLUMNS (a) (PARTITION p VALUES LESS THAN MAXVALUE, PARTITION q VALUES LESS THAN MAXVALUE)", 1493),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (1, 2))", 1657),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (NULL))", 1566),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (1 DIV 0))", 1566),
        ("RANGE COLUMNS (a) (PARTITION p VALUES LESS THAN (NULL))", 1566),
        ("RANGE (a) (PARTITION p VALUES LESS THAN ('x'))", 1697),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (1.5))", 1697),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (0x10))", 1697),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (6/2))", 1564),
        ("RANGE (a) (PARTITION p VALUES LESS THAN ((SELECT 1)))", 1564),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (@x))", 1064),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (RAND()))", 1064),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (a))", 1054),
        ("RANGE (u) (PARTITION p VALUES LESS THAN (-1))", 1563),
        ("LIST (u - 10) (PARTITION p VALUES IN (-1))", 1563),
        ("LIST (a) (PARTITION p VALUES IN (1), PARTITION q VALUES IN (2, 1))", 1495),
        ("LIST (a) (PARTITION p VALUES IN (NULL), PARTITION q VALUES IN (NULL))", 1495),
        ("LIST COLUMNS (v) (PARTITION p VALUES IN ('a', 'A'))", 1495),
        ("LIST COLUMNS (bb) (PARTITION p VALUES IN ('a', 'A'))", 0),
        ("LIST COLUMNS (d) (PARTITION p VALUES IN ('2010-1-1', '20100101'))", 1495),
        ("LIST (a) (PARTITION p VALUES IN (MAXVALUE))", 1064),
        ("LIST (a) (PARTITION p VALUES IN ((1), (2)))", 1064),
        ("LIST COLUMNS (a, b) (PARTITION p VALUES IN (1, 2))", 1064),
        ("LIST COLUMNS (a, b) (PARTITION p VALUES IN ((1)))", 1064),
        ("LIST COLUMNS (a, b) (PARTITION p VALUES IN ((1, 2, 3)))", 1653),
        ("RANGE COLUMNS (a, b) (PARTITION p VALUES LESS THAN (1))", 1064),
        ("RANGE COLUMNS (a, b) (PARTITION p VALUES LESS THAN (1, 2, 3))", 1653),
        ("RANGE COLUMNS (a, b) (PARTITION p VALUES LESS THAN (1, 'x'))", 1654),
        ("RANGE COLUMNS (a) (PARTITION p VALUES LESS THAN ('3'))", 1654),
        ("RANGE COLUMNS (a) (PARTITION p VALUES LESS THAN (1.0))", 1654),
        ("RANGE COLUMNS (y) (PARTITION p VALUES LESS THAN (1000))", 1654),
        ("RANGE COLUMNS (v) (PARTITION p VALUES LESS THAN (5))", 1654),
        ("RANGE COLUMNS (d) (PARTITION p VALUES LESS THAN (20100101))", 1654),
        ("RANGE COLUMNS (d) (PARTITION p VALUES LESS THAN ('nothing'))", 1654),
        ("RANGE COLUMNS (d) (PARTITION p VALUES LESS THAN ('2010-01-01 10:00:00'))", 1654),
        ("RANGE COLUMNS (d) (PARTITION p VALUES LESS THAN ('0000-00-00'))", 0),
        ("RANGE COLUMNS (ti) (PARTITION p VALUES LESS THAN ('10:00:00'))", 0),
        ("RANGE COLUMNS (ts) (PARTITION p VALUES LESS THAN ('2010-01-01'))", 1659),
        ("RANGE COLUMNS (f) (PARTITION p VALUES LESS THAN (1))", 1659),
        ("RANGE COLUMNS (n) (PARTITION p VALUES LESS THAN (1))", 1659),
        ("RANGE COLUMNS (yr) (PARTITION p VALUES LESS THAN (2000))", 1659),
        ("RANGE COLUMNS (en) (PARTITION p VALUES LESS THAN ('b'))", 1659),
        ("RANGE COLUMNS (x) (PARTITION p VALUES LESS THAN ('b'))", 1502),
        ("RANGE COLUMNS (a, zz) (PARTITION p VALUES LESS THAN (1, 2))", 1488),
        ("RANGE COLUMNS (a, a) (PARTITION p VALUES LESS THAN (1, 2))", 1652),
        ("KEY (zz) PARTITIONS 2", 1488),
        ("KEY (a, a) PARTITIONS 2", 1652),
        ("KEY (x) PARTITIONS 2", 1502),
        ("KEY (f, en, ts) PARTITIONS 2", 0),
        ("KEY () PARTITIONS 2", 1488),
        ("HASH (a) PARTITIONS 0", 1504),
        ("HASH (a) PARTITIONS 8193", 1499),
        ("HASH (a) PARTITIONS 2 (PARTITION p)", 1064),
        ("HASH (a) (PARTITION p, PARTITION P)", 1517),
        ("HASH (a) (PARTITION ``)", 1567),
        ("HASH (a) (PARTITION p ENGINE = InnoDB, PARTITION q ENGINE = MyISAM)", 1497),
        ("HASH (a) (PARTITION p ENGINE = Nonsense)", 1286),
        ("HASH (a) SUBPARTITION BY HASH (b)", 1500),
        ("RANGE (a) (PARTITION p VALUES LESS THAN (1) (SUBPARTITION s))", 1500),
        ("RANGE (a) SUBPARTITION BY HASH (b) SUBPARTITIONS 0 (PARTITION p VALUES LESS THAN (1))", 1504),
        (
            "RANGE (a) SUBPARTITION BY HASH (b) SUBPARTITIONS 4097 (PARTITION p VALUES LESS THAN (1), PARTITION q VALUES LESS THAN (2))",
            1499,
        ),
        (
            "RANGE (a) SUBPARTITION BY HASH (b) SUBPARTITIONS 3 (PARTITION p VALUES LESS THAN (1) (SUBPARTITION s))",
            1064,
        ),
        (
            "RANGE (a) SUBPARTITION BY HASH (b) (PARTITION p VALUES LESS THAN (1) (SUBPARTITION s), PARTITION q VALUES LESS THAN (2))",
            1064,
        ),
        ("RANGE (a) SUBPARTITION BY HASH (b) (PARTITION p VALUES LESS THAN (1) (SUBPARTITION p))", 1517),
        (
            "RANGE (a) SUBPARTITION BY HASH (b) (PARTITION p VALUES LESS THAN (1), PARTITION psp0 VALUES LESS THAN (2))",
            1517,
        ),
    ];
    for (clause, expected) in cases {
        assert_eq!(code(&format!("{TABLE} PARTITION BY {clause}")), expected, "{clause}");
    }
}

#[test]
fn expressions() {
    let cases = [
        ("a", 0),
        ("yr", 0),
        ("a * b - 3", 0),
        ("-a", 0),
        ("a DIV b", 0),
        ("MOD(a, b)", 0),
        ("ABS(a)", 0),
        ("FLOOR(a)", 0),
        ("FLOOR(n)", 0),
        ("YEAR(dt)", 0),
        ("TO_DAYS(d) + 1", 0),
        ("TO_SECONDS(d)", 0),
        ("DATEDIFF(d, e)", 0),
        ("YEARWEEK(d, 1)", 0),
        ("HOUR(ti)", 0),
        ("TIME_TO_SEC(dt)", 0),
        ("EXTRACT(YEAR FROM d)", 0),
        ("EXTRACT(DAY_HOUR FROM dt)", 0),
        ("UNIX_TIMESTAMP(ts)", 0),
        ("t.a", 0),
        ("zz", 1054),
        ("o.a", 1054),
        ("d", 1659),
        ("v", 1659),
        ("n", 1659),
        ("ts", 1659),
        ("en", 1659),
        ("a + 1.5", 1491),
        ("a + '1'", 1491),
        ("CEILING(f)", 1491),
        ("5", 1486),
        ("NULL", 1486),
        ("ts + 1", 1486),
        ("YEAR(ts)", 1486),
        ("YEAR(ti)", 1486),
        ("YEAR(v)", 1486),
        ("HOUR(d)", 1486),
        ("UNIX_TIMESTAMP(dt)", 1486),
        ("a + TO_DAYS('2010-01-01')", 1486),
        ("DATEDIFF(d, '2010-01-01')", 1486),
        ("EXTRACT(HOUR FROM d)", 1486),
        ("EXTRACT(WEEK FROM d)", 1486),
        ("a / b", 1564),
        ("a & b", 1564),
        ("~a", 1564),
        ("ROUND(a)", 1564),
        ("IF(a, 1, b)", 1564),
        ("CASE a WHEN 1 THEN 2 ELSE b END", 1564),
        ("LENGTH(v)", 1564),
        ("CAST(v AS SIGNED)", 1564),
        ("WEEK(d)", 1564),
        ("SUM(a)", 1564),
        ("(SELECT 1)", 1564),
        ("a + (SELECT 1)", 1564),
        ("(a > 1)", 1564),
        ("a > 1", 1064),
        ("RAND()", 1064),
        ("a + UNIX_TIMESTAMP()", 1064),
        ("a + YEAR(NOW())", 1064),
        ("a + @x", 1064),
        ("a + @@max_connections", 1064),
    ];
    for (expression, expected) in cases {
        assert_eq!(code(&format!("{TABLE} PARTITION BY HASH ({expression})")), expected, "{expression}");
        let sub = "PARTITION BY RANGE (b) SUBPARTITION BY HASH";
        assert_eq!(
            code(&format!("{TABLE} {sub} ({expression}) (PARTITION p VALUES LESS THAN (1))")),
            expected,
            "{expression}"
        );
    }
}

#[test]
fn keys_include_the_columns() {
    for (columns, clause, expected) in [
        ("a INT PRIMARY KEY, b INT", "HASH (b)", 1503),
        ("a INT, b INT, UNIQUE (a)", "HASH (b)", 1503),
        ("a INT, b INT, UNIQUE (a)", "RANGE (b) SUBPARTITION BY HASH (a) (PARTITION p VALUES LESS THAN (1))", 1503),
        ("a INT, b INT, PRIMARY KEY (a, b), UNIQUE (b)", "HASH (b)", 0),
        ("a VARCHAR(20), PRIMARY KEY (a(5))", "KEY (a) PARTITIONS 2", 1503),
        ("a INT, b INT, KEY (a)", "HASH (b)", 0),
        ("a INT, b TEXT, FULLTEXT (b)", "HASH (a)", 0),
    ] {
        assert_eq!(code(&format!("CREATE TABLE t ({columns}) PARTITION BY {clause}")), expected, "{columns} {clause}");
    }
}
