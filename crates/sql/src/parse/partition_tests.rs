//! Shapes of partition clauses and of ALTER TABLE … PARTITION.

use super::ast::{
    Expr, ListValue, Literal, PartitionBound, PartitionClause, PartitionNames, PartitionOn, PartitionOperation,
    PartitionValues, PartitionWork,
};
use super::{Mode, Statement, parse};
use rauk_types::partitioning::{PartitionInterval, PartitionMethod, Span, SpanUnit};

fn clause(sql: &str) -> PartitionClause {
    match clause_or_code(sql) {
        Ok(clause) => clause,
        Err(code) => panic!("{sql}: {code}"),
    }
}

fn clause_or_code(sql: &str) -> Result<PartitionClause, u16> {
    let created = parse(&format!("CREATE TABLE t (a INT, b INT) {sql}"), Mode::default()).map_err(|e| e.code)?;
    let altered = parse(&format!("ALTER TABLE t {sql}"), Mode::default()).map_err(|e| e.code)?;
    match (created.statement.into_statement(), altered.statement.into_statement()) {
        (Statement::CreateTable(table), Statement::AlterTable { partitions, .. }) => {
            let clause = table.partition_by.expect("a clause");
            assert_eq!(partitions, Some(PartitionOperation::By(clause.clone())));
            Ok(*clause)
        }
        other => panic!("{other:?}"),
    }
}

fn operation(sql: &str) -> PartitionOperation {
    let parsed = parse(&format!("ALTER TABLE t {sql}"), Mode::default());
    match parsed.unwrap_or_else(|e| panic!("{sql}: {e}")).statement.into_statement() {
        Statement::AlterTable { partitions: Some(operation), .. } => operation,
        other => panic!("{other:?}"),
    }
}

fn number(digits: &str) -> PartitionBound {
    PartitionBound::Value(Expr::Literal(Literal::Number(digits.into())))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

#[test]
fn methods() {
    let by = |sql: &str| clause(sql).by;
    let columns = |list: &[&str]| PartitionOn::Columns(names(list));
    let key = by("PARTITION BY LINEAR KEY ALGORITHM = 1 (a, b) PARTITIONS 3");
    assert_eq!(key.method, PartitionMethod::Key { linear: true, algorithm: Some(1) });
    assert_eq!(key.on, columns(&["a", "b"]));
    assert_eq!(by("PARTITION BY KEY ()").on, columns(&[]));
    let hash = by("PARTITION BY LINEAR HASH (a + b DIV 2) PARTITIONS 4");
    assert_eq!(hash.method, PartitionMethod::Hash { linear: true });
    assert!(matches!(hash.on, PartitionOn::Expr(_)));
    assert_eq!(by("PARTITION BY RANGE COLUMNS (a, b) (PARTITION p VALUES LESS THAN (1, 2))").on, columns(&["a", "b"]));
    assert_eq!(by("PARTITION BY LIST COLUMNS (a) (PARTITION p VALUES IN (1))").method, PartitionMethod::List);
    for wrong in [
        "PARTITION BY KEY ALGORITHM = 3 (a)",
        "PARTITION BY LINEAR RANGE (a) (PARTITION p VALUES LESS THAN (1))",
        "PARTITION BY HASH (a > 1)",
        "PARTITION BY RANGE COLUMNS () (PARTITION p VALUES LESS THAN (1))",
        "PARTITION BY HASH (a) PARTITIONS",
        "PARTITION BY LIST (a) (PARTITION p VALUES IN ())",
        "PARTITION BY RANGE (a) ()",
        "PARTITION BY HASH (a) SUBPARTITION BY KEY () PARTITIONS 2",
    ] {
        assert_eq!(clause_or_code(wrong).err(), Some(1064), "{wrong}");
    }
}

#[test]
fn values() {
    let values = |sql: &str| {
        let clause = clause(&format!("PARTITION BY RANGE (a) (PARTITION p {sql})"));
        clause.definitions.into_iter().next().expect("a definition").values
    };
    let one = |digits: &str| ListValue::One(number(digits));
    let max = || PartitionBound::MaxValue;
    assert_eq!(values("VALUES LESS THAN MAXVALUE"), PartitionValues::LessThan(vec![max()]));
    assert_eq!(values("VALUES LESS THAN (MAXVALUE)"), PartitionValues::LessThan(vec![max()]));
    assert_eq!(values("VALUES LESS THAN (1, MAXVALUE)"), PartitionValues::LessThan(vec![number("1"), max()]));
    assert_eq!(values("VALUES IN (1, 2)"), PartitionValues::In(vec![one("1"), one("2")]));
    let row = |list: &[&str]| ListValue::Row(list.iter().map(|digits| number(digits)).collect());
    assert_eq!(values("VALUES IN ((1, 2), (3, 4))"), PartitionValues::In(vec![row(&["1", "2"]), row(&["3", "4"])]));
    assert_eq!(values("VALUES IN ((1))"), PartitionValues::In(vec![row(&["1"])]));
    assert!(
        matches!(values("VALUES IN ((1 + 2) * 3)"), PartitionValues::In(list) if matches!(list[0], ListValue::One(_)))
    );
    let null = ListValue::One(PartitionBound::Value(Expr::Literal(Literal::Null)));
    assert_eq!(values("VALUES IN (NULL)"), PartitionValues::In(vec![null]));
    assert_eq!(values("VALUES IN (DEFAULT)"), PartitionValues::Default);
    assert_eq!(values("DEFAULT"), PartitionValues::Default);
    assert_eq!(values(""), PartitionValues::None);
}

#[test]
fn older_spelling() {
    let newer = clause("PARTITION BY RANGE COLUMNS (a, b) (PARTITION p0 VALUES LESS THAN (99, MAXVALUE))");
    for older in [
        "PARTITION BY RANGE COLUMN_LIST(a,b) (PARTITION p0 VALUES LESS THAN (COLUMN_LIST(99,MAXVALUE)))",
        "PARTITION BY RANGE (COLUMN_LIST(a,b)) (PARTITION p0 VALUES LESS THAN (COLUMN_LIST(99, MAXVALUE)))",
    ] {
        assert_eq!(clause(older), newer);
    }
    let newer = clause("PARTITION BY LIST COLUMNS (a, b) (PARTITION p0 VALUES IN ((1, 2), (3, 4)))");
    let older = "PARTITION BY LIST COLUMN_LIST(a,b) (PARTITION p0 VALUES IN (COLUMN_LIST(1,2), COLUMN_LIST(3,4)))";
    assert_eq!(clause(older), newer);
}

#[test]
fn options_and_subpartitions() {
    let clause = clause(
        "PARTITION BY RANGE (a) PARTITIONS 2 SUBPARTITION BY LINEAR HASH (b) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (1) \
         STORAGE ENGINE = InnoDB COMMENT 'c' DATA DIRECTORY = '/d' MAX_ROWS 5 (SUBPARTITION s0 COMMENT = 's', SUBPARTITION 's1'), \
         PARTITION p1 VALUES LESS THAN MAXVALUE TABLESPACE = ts NODEGROUP = 2 (SUBPARTITION s2, SUBPARTITION s3 ENGINE 'InnoDB'))",
    );
    assert_eq!(clause.count, Some(2));
    let sub = clause.sub.expect("subpartitions");
    assert_eq!((sub.by.method, sub.count), (PartitionMethod::Hash { linear: true }, Some(2)));
    let first = &clause.definitions[0];
    let option = |name, value: &str| (name, value.to_string());
    assert_eq!(
        first.options,
        [option("ENGINE", "InnoDB"), option("COMMENT", "c"), option("DATA DIRECTORY", "/d"), option("MAX_ROWS", "5")]
    );
    assert_eq!(first.subpartitions[0].options, [option("COMMENT", "s")]);
    assert_eq!(first.subpartitions[1].name, "s1");
    assert_eq!(clause.definitions[1].options, [option("TABLESPACE", "ts"), option("NODEGROUP", "2")]);
}

/// As dump tools write it.
#[test]
fn in_versioned_comments() {
    let plain = clause("PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (1) ENGINE = InnoDB)");
    let dumped = "/*!50100 PARTITION BY RANGE (a)\n(PARTITION p0 VALUES LESS THAN (1) ENGINE = InnoDB) */";
    assert_eq!(clause(dumped), plain);
}

#[test]
fn behind_the_clause_a_query_may_stand() {
    let parsed = parse("CREATE TABLE t PARTITION BY HASH (a) PARTITIONS 2 AS SELECT 1 AS a", Mode::default()).unwrap();
    assert!(matches!(parsed.statement.into_statement(), Statement::CreateTable(table) if table.query.is_some()));
}

#[test]
fn intervals() {
    let every = Span { count: 1, unit: SpanUnit::Day };
    let retain = Some(Span { count: 30, unit: SpanUnit::Month });
    let both = Some(PartitionInterval { every, retain });
    let of = |sql: &str| clause(&format!("PARTITION BY RANGE COLUMNS (d) {sql}"));
    assert_eq!(of("").interval, None);
    assert_eq!(of("INTERVAL 1 DAY").interval, Some(PartitionInterval { every, retain: None }));
    assert_eq!(of("INTERVAL 1 day RETAIN 30 Month").interval, both);
    let with = of("INTERVAL 1 DAY RETAIN 30 MONTH SUBPARTITION BY HASH (a) (PARTITION p VALUES LESS THAN (1))");
    assert!(with.interval == both && with.sub.is_some() && with.definitions.len() == 1);
    // As it is shown: MySQL's clause in its comment, and Rauk's in another.
    let shown = "/*!50500 PARTITION BY RANGE  COLUMNS(d)\n(PARTITION p VALUES LESS THAN (1) ENGINE = InnoDB) */\n\
                 /*!990001 INTERVAL 1 DAY RETAIN 30 MONTH */";
    assert!(clause(shown).interval == both && clause(shown).definitions.len() == 1);
    assert_eq!(clause(&shown.replace("990001", "990002")).interval, None, "a later version's comment");
    assert_eq!(operation("INTERVAL 1 DAY RETAIN 30 MONTH"), PartitionOperation::Interval(both));
    assert_eq!(operation("ALGORITHM=INSTANT, REMOVE INTERVAL"), PartitionOperation::Interval(None));
    assert_eq!(operation("APPLY INTERVAL"), PartitionOperation::ApplyInterval);
}

#[test]
fn operations() {
    let all = || PartitionNames::All;
    assert!(matches!(
        operation("ADD PARTITION (PARTITION p5 VALUES LESS THAN (5), PARTITION p6 VALUES LESS THAN (6))"),
        PartitionOperation::Add { definitions, if_not_exists: false } if definitions.len() == 2
    ));
    assert_eq!(operation("ADD PARTITION LOCAL PARTITIONS 2"), PartitionOperation::AddCount(2));
    assert_eq!(
        operation("ALGORITHM=INPLACE, LOCK=NONE, DROP PARTITION a, b"),
        PartitionOperation::Drop { names: names(&["a", "b"]), if_exists: false }
    );
    assert_eq!(operation("TRUNCATE PARTITION ALL"), PartitionOperation::Truncate(all()));
    assert_eq!(operation("REORGANIZE PARTITION"), PartitionOperation::Reorganize(None));
    assert!(matches!(
        operation("REORGANIZE PARTITION a, b INTO (PARTITION c VALUES LESS THAN (5))"),
        PartitionOperation::Reorganize(Some(of)) if of.names.len() == 2 && of.into.len() == 1
    ));
    assert_eq!(operation("COALESCE PARTITION 3"), PartitionOperation::Coalesce(3));
    assert!(matches!(
        operation("EXCHANGE PARTITION p WITH TABLE d.o WITHOUT VALIDATION"),
        PartitionOperation::Exchange { validates: false, .. }
    ));
    assert!(matches!(
        operation("EXCHANGE PARTITION p WITH TABLE o"),
        PartitionOperation::Exchange { validates: true, .. }
    ));
    let works = [
        ("REBUILD", PartitionWork::Rebuild),
        ("ANALYZE", PartitionWork::Analyze),
        ("CHECK", PartitionWork::Check),
        ("OPTIMIZE", PartitionWork::Optimize),
        ("REPAIR", PartitionWork::Repair),
    ];
    for (verb, work) in works {
        let expected = PartitionOperation::Maintain { work, names: all() };
        assert_eq!(operation(&format!("{verb} PARTITION ALL")), expected);
    }
    assert_eq!(operation("ADD COLUMN c INT REMOVE PARTITIONING"), PartitionOperation::Remove);
    assert!(matches!(operation("ADD COLUMN c INT PARTITION BY HASH (c)"), PartitionOperation::By(_)));
    for wrong in [
        "ADD COLUMN c INT, DROP PARTITION p",
        "DROP PARTITION p, ADD COLUMN c INT",
        "DROP PARTITION",
        "FORCE, REMOVE PARTITIONING",
    ] {
        assert_eq!(parse(&format!("ALTER TABLE t {wrong}"), Mode::default()).unwrap_err().code, 1064, "{wrong}");
    }
}
