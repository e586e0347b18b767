//! The logical tree after the passes over it, as EXPLAIN FORMAT=TREE prints it, and what the statements answer.

use super::{Test, server};

/// The tree of a statement, and its rows.
#[track_caller]
fn check(t: &mut Test, sql: &str, tree: &[&str], rows: &[&str]) {
    let got = t.run(&format!("EXPLAIN FORMAT=TREE {sql}"));
    assert_eq!(got.trim_end().lines().collect::<Vec<_>>(), tree, "{sql}");
    let text = t.run(sql);
    let mut got: Vec<&str> = text.lines().collect();
    got.sort_unstable();
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    assert_eq!(got, rows, "{sql}");
}

fn tables(t: &mut Test) {
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10))");
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, a INT)");
    t.ok("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'X'), (3, NULL, 'z'), (4, 2, 'y')");
    t.ok("INSERT INTO u VALUES (1, 10), (2, 20), (3, NULL)");
}

#[test]
fn each_pass_changes_the_tree() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let sql = "WITH c AS (SELECT id, a FROM t ORDER BY b), g AS (SELECT a, COUNT(*) AS n FROM c GROUP BY a) \
               SELECT g.n FROM g JOIN u ON u.id = g.a WHERE g.a > 1";
    let statement = t.session.parse_one(sql).unwrap();
    let lookup = t.session.lookup();
    let text = crate::physical::passes(&statement, &lookup, &t.session.bind_context(vec![])).unwrap();
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            "bind",
            "Project n#12 as n#15",
            "  Filter (a#11 > 1)",
            "    Join on (id#13 = a#11)",
            "      Rows of common table 1 g: a#11, n#12",
            "      Scan u: id#13, a#14",
            "Common table 0 c",
            "  Give id#3, a#4",
            "    Sort #5",
            "      Project id#0 as id#3, a#1 as a#4, b#2 as #5",
            "        Scan t: id#0, a#1, b#2",
            "Common table 1 g",
            "  Project a#7 as a#8, #9 as n#10",
            "    Aggregate Count(*) as #9 by a#7",
            "      Rows of common table 0 c: id#6, a#7",
            "common",
            "Project n#10 as n#15",
            "  Filter (a#8 > 1)",
            "    Join on (id#13 = a#8)",
            "      Derived g",
            "        Project a#4 as a#8, #9 as n#10",
            "          Aggregate Count(*) as #9 by a#4",
            "            Derived c",
            "              Give id#3, a#4",
            "                Sort #5",
            "                  Project id#0 as id#3, a#1 as a#4, b#2 as #5",
            "                    Scan t: id#0, a#1, b#2",
            "      Scan u: id#13, a#14",
            "sorts",
            "Project n#10 as n#15",
            "  Filter (a#8 > 1)",
            "    Join on (id#13 = a#8)",
            "      Derived g",
            "        Project a#4 as a#8, #9 as n#10",
            "          Aggregate Count(*) as #9 by a#4",
            "            Derived c",
            "              Give id#3, a#4",
            "                Project id#0 as id#3, a#1 as a#4, b#2 as #5",
            "                  Scan t: id#0, a#1, b#2",
            "      Scan u: id#13, a#14",
            "merge",
            "Project n#10 as n#15",
            "  Filter (a#8 > 1)",
            "    Join on (id#13 = a#8)",
            "      Derived g",
            "        Project a#1 as a#8, #9 as n#10",
            "          Aggregate Count(*) as #9 by a#1",
            "            Scan t: id#0, a#1, b#2",
            "      Scan u: id#13, a#14",
            "push",
            "Project n#10 as n#15",
            "  Join on (id#13 = a#8)",
            "    Derived g",
            "      Project a#1 as a#8, #9 as n#10",
            "        Aggregate Count(*) as #9 by a#1",
            "          Filter (a#1 > 1)",
            "            Scan t: id#0, a#1, b#2",
            "    Scan u: id#13, a#14",
        ]
    );
    t.expect(sql, &["2"]);
}

#[test]
fn plain_derived_tables_are_merged() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "SELECT d.x + 1 FROM (SELECT a + 2 AS x, id FROM t WHERE b = 'x') d WHERE d.id > 1",
        &[
            "Project ((a#1 + 2) + 1) as d.x + 1#5",
            "  Filter (id#0 > 1)",
            "    Filter (b#2 = 'x')",
            "      Scan t: id#0, a#1, b#2",
        ],
        &["5"],
    );
    check(
        &mut t,
        "WITH c AS (SELECT a, id FROM t), e AS (SELECT a FROM c WHERE id > 1) SELECT x.a, y.a FROM e x JOIN u y ON x.a = y.id",
        &[
            "Project a#1 as a#11, a#10 as a#12",
            "  Join on (id#0 > 1) and (a#1 = id#9)",
            "    Scan t: id#0, a#1, b#2",
            "    Scan u y: id#9, a#10",
        ],
        &["2|20", "2|20"],
    );
    // The order of rows that are counted is of no use.
    check(
        &mut t,
        "SELECT COUNT(*) FROM (SELECT id FROM t ORDER BY b) d",
        &["Project #5 as COUNT(*)#6", "  Aggregate Count(*) as #5", "    Scan t: id#0, a#1, b#2"],
        &["4"],
    );
    // A subquery reads the column itself.
    check(
        &mut t,
        "SELECT d.y FROM (SELECT a + 1 AS x, id AS y FROM t) d WHERE EXISTS (SELECT 1 FROM u WHERE u.id = d.y)",
        &["Project id#0 as y#5", "  Semi join on (id#6 = id#0)", "    Scan t: id#0, a#1, b#2", "    Scan u: id#6, a#7"],
        &["1", "2", "3"],
    );
    // Plain columns only, where null rows stand for them.
    check(
        &mut t,
        "SELECT u.a, d.x FROM u LEFT JOIN (SELECT a AS x, id AS y FROM t WHERE b = 'x') d ON d.y = u.id",
        &[
            "Project a#1 as a#7, a#3 as x#8",
            "  Left join on (b#4 = 'x') and (id#2 = id#0)",
            "    Scan u: id#0, a#1",
            "    Scan t: id#2, a#3, b#4",
        ],
        &["10|1", "20|2", "NULL|NULL"],
    );
}

#[test]
fn derived_tables_that_would_change_an_answer_stay() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    for (sql, rows) in [
        ("SELECT r = r FROM (SELECT RAND() AS r FROM t WHERE id = 1) d", vec!["1"]),
        ("SELECT d.a FROM (SELECT a FROM t WHERE id = 1 FOR UPDATE) d", vec!["1"]),
        (
            "SELECT d.x FROM (SELECT a + 1 AS x, id FROM t) d WHERE EXISTS (SELECT 1 FROM u WHERE u.id = d.x)",
            vec!["2", "3", "3"],
        ),
        ("SELECT DISTINCT d.x FROM (SELECT a + 1 AS x FROM t) d", vec!["2", "3", "NULL"]),
        ("SELECT x, n FROM (SELECT a + 1 AS x, b AS n FROM t) d WHERE x = 2 GROUP BY n", vec!["2|x"]),
        ("SELECT x FROM (SELECT 1 AS x) d", vec!["1"]),
        ("SELECT x FROM (SELECT DISTINCT a AS x FROM t) d", vec!["1", "2", "NULL"]),
        ("SELECT id FROM (SELECT id FROM t ORDER BY b, id) d", vec!["1", "2", "4", "3"]),
        (
            "SELECT u.id, x FROM u LEFT JOIN (SELECT 1 AS x, id FROM t WHERE id > 2) d ON d.id = u.id",
            vec!["1|NULL", "2|NULL", "3|1"],
        ),
    ] {
        let tree = t.run(&format!("EXPLAIN FORMAT=TREE {sql}"));
        assert!(tree.contains("Derived d"), "{sql}\n{tree}");
        let text = t.run(sql);
        let mut got: Vec<&str> = text.lines().collect();
        if !sql.contains("ORDER BY") {
            got.sort_unstable();
        }
        assert_eq!(got, rows, "{sql}");
    }
}

#[test]
fn conditions_move_into_derived_tables() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    // On keys below the grouping, on counts not.
    check(
        &mut t,
        "SELECT * FROM (SELECT a, COUNT(*) n FROM t GROUP BY a) d WHERE d.a > 1 AND d.n > 1",
        &[
            "Project a#3 as a#6, n#5 as n#7",
            "  Filter (n#5 > 1)",
            "    Derived d",
            "      Project a#1 as a#3, #4 as n#5",
            "        Aggregate Count(*) as #4 by a#1",
            "          Filter (a#1 > 1)",
            "            Scan t: id#0, a#1, b#2",
        ],
        &["2|2"],
    );
    check(
        &mut t,
        "SELECT * FROM (SELECT id FROM t UNION SELECT a FROM u) d WHERE d.id > 2",
        &[
            "Project id#7 as id#8",
            "  Derived d",
            "    Union id#7",
            "      Project id#0 as id#3",
            "        Filter (id#0 > 2)",
            "          Scan t: id#0, a#1, b#2",
            "      Project a#5 as a#6",
            "        Filter (a#5 > 2)",
            "          Scan u: id#4, a#5",
        ],
        &["3", "4", "10", "20"],
    );
    // LIMIT counts rows.
    check(
        &mut t,
        "SELECT * FROM (SELECT id FROM t LIMIT 2) d WHERE d.id > 1",
        &[
            "Project id#3 as id#4",
            "  Filter (id#3 > 1)",
            "    Derived d",
            "      Limit 2",
            "        Project id#0 as id#3",
            "          Scan t: id#0, a#1, b#2",
        ],
        &["2"],
    );
    // The union keeps one of x and X; which of them is decided before the bytes are looked at.
    check(
        &mut t,
        "SELECT * FROM (SELECT b FROM t UNION SELECT 'abc') d WHERE d.b = 'x' AND BINARY d.b = 'x'",
        &[
            "Project b#5 as b#7",
            "  Filter (cast(b#5 as VarBinary) = 'x')",
            "    Derived d",
            "      Union b#5",
            "        Project b#2 as b#3",
            "          Filter (b#2 = 'x')",
            "            Scan t: id#0, a#1, b#2",
            "        Project 'abc' as abc#6",
            "          Filter ('abc' = 'x')",
            "            One row",
        ],
        &["x"],
    );
    // Null rows stand for the right side.
    check(
        &mut t,
        "SELECT u.id FROM u LEFT JOIN (SELECT DISTINCT a FROM t) d ON d.a = u.id AND d.a < 2 WHERE d.a IS NULL",
        &[
            "Project id#0 as id#6",
            "  Filter (a#5 is null)",
            "    Left join on (a#5 = id#0)",
            "      Scan u: id#0, a#1",
            "      Derived d",
            "        Distinct a#5",
            "          Project a#3 as a#5",
            "            Filter (a#3 < 2)",
            "              Scan t: id#2, a#3, b#4",
        ],
        &["2", "3"],
    );
}

#[test]
fn conditions_with_subqueries_become_semi_and_anti_joins() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "SELECT id FROM t WHERE b <> 'x' AND a IN (SELECT id FROM u WHERE u.a > 10 ORDER BY id)",
        &[
            "Project id#0 as id#3",
            "  Filter (b#2 <> 'x')",
            "    Semi join on (a#5 > 10) and (a#1 = id#4)",
            "      Scan t: id#0, a#1, b#2",
            "      Scan u: id#4, a#5",
        ],
        &["4"],
    );
    // Chains collapse; the conditions of the inner one read the outermost block.
    check(
        &mut t,
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.a AND NOT EXISTS \
         (SELECT 1 FROM u v WHERE v.a = t.id))",
        &[
            "Project id#0 as id#3",
            "  Semi join on (id#4 = a#1)",
            "    Scan t: id#0, a#1, b#2",
            "    Anti join on (a#8 = id#0)",
            "      Scan u: id#4, a#5",
            "      Scan u v: id#7, a#8",
        ],
        &["1", "2", "4"],
    );
    // A NULL on either side makes NOT IN false where it stands against a row.
    check(
        &mut t,
        "SELECT id FROM t WHERE a NOT IN (SELECT a FROM u WHERE u.id = t.id)",
        &[
            "Project id#0 as id#3",
            "  Anti join on (id#4 = id#0) and ((a#1 = a#5) is not false)",
            "    Scan t: id#0, a#1, b#2",
            "    Scan u: id#4, a#5",
        ],
        &["1", "2", "4"],
    );
    check(
        &mut t,
        "SELECT t.id FROM t JOIN u ON u.id = t.id AND t.a > ALL (SELECT v.id FROM u v WHERE v.id < t.id)",
        &[
            "Project id#0 as id#8",
            "  Anti join on (id#5 < id#0) and ((a#1 <= id#5) is not false)",
            "    Join on (id#3 = id#0)",
            "      Scan t: id#0, a#1, b#2",
            "      Scan u: id#3, a#4",
            "    Scan u v: id#5, a#6",
        ],
        &["1", "2"],
    );
    // A condition on the outer tables alone goes to them.
    check(
        &mut t,
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.a AND t.b = 'x')",
        &[
            "Project id#0 as id#3",
            "  Filter (b#2 = 'x')",
            "    Semi join on (id#4 = a#1)",
            "      Scan t: id#0, a#1, b#2",
            "      Scan u: id#4, a#5",
        ],
        &["1", "2"],
    );
    // What cannot be looked up by a key is run once, and so is what reads no column of the block; a block that locks rows keeps its subqueries.
    for sql in [
        "SELECT id FROM t WHERE b IN (SELECT id FROM u)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u)",
        "SELECT id FROM t WHERE a NOT IN (SELECT a FROM u)",
        "SELECT id FROM t WHERE EXISTS (SELECT COUNT(*) FROM u WHERE u.id = t.id)",
        "SELECT id FROM t WHERE a IN (SELECT id FROM u WHERE RAND() < 2)",
        "SELECT id FROM t WHERE a IN (SELECT id FROM u UNION SELECT 7)",
        "SELECT id FROM t WHERE a IN (SELECT id FROM u) OR id = 1",
        "SELECT id FROM t WHERE a IN (SELECT id FROM u) FOR UPDATE",
    ] {
        let tree = t.run(&format!("EXPLAIN FORMAT=TREE {sql}"));
        assert!(!tree.contains("join"), "{sql}\n{tree}");
    }
}

#[test]
fn aggregates_over_an_equality_become_joins() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("CREATE TABLE w (id INT PRIMARY KEY, k INT, v INT)");
    t.ok("INSERT INTO w VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7), (4, NULL, 8)");
    check(
        &mut t,
        "SELECT id, (SELECT COUNT(*) + 1 FROM w WHERE v > 5 AND w.k = t.a) FROM t",
        &[
            "Project id#0 as id#3, (coalesce(#11,0) + 1) as (SELECT COUNT(*) + 1 FROM w WHERE v > 5 AND w.k = t.a)#9",
            "  Left join on (k#10 = a#1)",
            "    Scan t: id#0, a#1, b#2",
            "    Derived <group2>",
            "      Project k#5 as k#10, #7 as #11",
            "        Aggregate Count(*) as #7 by k#5",
            "          Filter (v#6 > 5)",
            "            Scan w: id#4, k#5, v#6",
        ],
        &["1|2", "2|2", "3|1", "4|2"],
    );
    // By an index, for one row, under LIMIT, and where equal values are several groups, it is run for the rows that ask for it.
    for sql in [
        "SELECT id, (SELECT MAX(u.a) FROM u WHERE u.id = t.a) FROM t",
        "SELECT id, (SELECT SUM(v) FROM w WHERE w.k = t.a) FROM t WHERE id = 1",
        "SELECT id, (SELECT SUM(v) FROM w WHERE w.k = t.a) FROM t LIMIT 1",
        "SELECT id, (SELECT SUM(v) FROM w WHERE w.k = t.b) FROM t",
        "SELECT id, (SELECT SUM(v) FROM w WHERE w.k <=> t.a) FROM t",
        "SELECT id, (SELECT SUM(v + 1) FROM w WHERE w.k = t.a) FROM t",
        "SELECT id, (SELECT SUM(v) FROM w WHERE w.k = t.a) FROM t FOR UPDATE",
    ] {
        let tree = t.run(&format!("EXPLAIN FORMAT=TREE {sql}"));
        assert!(!tree.contains("join"), "{sql}\n{tree}");
    }
}

#[test]
fn lateral_tables_have_queries_of_their_own() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "SELECT t.id, d.n FROM t, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.a > t.id * 10) d WHERE d.n > 0",
        &[
            "Project id#0 as id#7, n#6 as n#8",
            "  Filter (n#6 > 0)",
            "    Join",
            "      Scan t: id#0, a#1, b#2",
            "      Lateral d (select #2): n#6",
            "Subquery #2 reads id#0",
            "  Project #5 as n#6",
            "    Aggregate Count(*) as #5",
            "      Filter (a#4 > (id#0 * 10))",
            "        Scan u: id#3, a#4",
        ],
        &["1|1"],
    );
}

#[test]
fn optimizer_switch_decides_about_semi_joins() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("CREATE TABLE w (id INT PRIMARY KEY, k INT, KEY (k))");
    for number in 0..400 {
        t.ok(&format!("INSERT INTO w VALUES ({number}, {})", number % 7));
    }
    let sql = "SELECT id FROM w WHERE k IN (SELECT a FROM t) AND id < 9 ORDER BY id";
    let rows = ["1", "2", "8"];
    let explained = |t: &mut Test| t.run(&format!("EXPLAIN {sql}"));
    assert!(explained(&mut t).contains("FirstMatch(w)"));
    t.expect(sql, &rows);
    // The same text has another plan in a session with other switches.
    t.ok("SET optimizer_switch = 'semijoin=off'");
    assert!(explained(&mut t).contains("SUBQUERY"));
    t.expect(sql, &rows);
    t.ok("SET optimizer_switch = DEFAULT");
    let by_index = "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM w WHERE w.k = t.a)";
    let explained = |t: &mut Test| t.run(&format!("EXPLAIN {by_index}"));
    assert!(explained(&mut t).contains("|k|"), "{}", explained(&mut t));
    t.ok("SET optimizer_switch = 'firstmatch=off'");
    assert!(explained(&mut t).contains("hash join"), "{}", explained(&mut t));
    t.expect(by_index, &["1", "2", "4"]);
}

#[test]
fn optimizer_switch_decides_about_derived_tables() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("CREATE VIEW plain AS SELECT id, a FROM t");
    t.ok("CREATE ALGORITHM = MERGE VIEW merging AS SELECT id, a FROM t");
    t.ok("CREATE ALGORITHM = TEMPTABLE VIEW kept AS SELECT id, a FROM t");
    let shapes = |t: &mut Test, hint: &str| {
        let common = format!("WITH c AS (SELECT id FROM t) SELECT {hint} id FROM c");
        let of = |from: &str| format!("SELECT {hint} d.id FROM {from} d");
        let queries = [of("(SELECT id FROM t)"), of("plain"), of("merging"), of("kept"), common];
        queries.map(|sql| if t.run(&format!("EXPLAIN {sql}")).contains("DERIVED") { 'd' } else { 'm' }).iter().collect()
    };
    let expect = |t: &mut Test, hint: &str, wanted: &str| {
        let found: String = shapes(t, hint);
        assert_eq!(found, wanted, "{hint}");
    };
    let off = "/*+ SET_VAR(optimizer_switch = 'derived_merge=off') */";
    expect(&mut t, "", "mmmdm");
    expect(&mut t, "/*+ NO_MERGE(d) */", "ddmdm");
    expect(&mut t, off, "ddmdd");
    expect(&mut t, "", "mmmdm");
    t.ok("SET optimizer_switch = 'derived_merge=off'");
    expect(&mut t, "", "ddmdd");
    // A hint wins.
    expect(&mut t, "/*+ MERGE(d) */", "mmmdd");
    expect(&mut t, "/*+ SET_VAR(optimizer_switch = 'derived_merge=on') */", "mmmdm");
    expect(&mut t, "/*+ SET_VAR(optimizer_switch = 'default') */", "mmmdm");
    // DEFAULT in a hint is the global value of now, whatever plan the text had before.
    t.ok("SET GLOBAL optimizer_switch = 'derived_merge=off'");
    expect(&mut t, "/*+ SET_VAR(optimizer_switch = 'default') */", "ddmdd");
    let shown = "SELECT /*+ SET_VAR(optimizer_switch = 'derived_merge=default') */ @@optimizer_switch LIKE \
                 '%derived_merge=on%', id FROM (SELECT id FROM t) d WHERE id = 1";
    t.expect(shown, &["0|1"]);
    t.ok("SET GLOBAL optimizer_switch = DEFAULT");
    t.expect(shown, &["1|1"]);
}

#[test]
fn a_kept_derived_table_may_read_what_is_changed() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("CREATE VIEW plain AS SELECT a FROM t");
    t.ok("CREATE ALGORITHM = TEMPTABLE VIEW kept AS SELECT a FROM t");
    t.ok("CREATE ALGORITHM = MERGE VIEW merging AS SELECT a FROM t");
    let merged = "UPDATE t SET a = (SELECT COUNT(*) FROM (SELECT a FROM t) d)";
    let hinted = "UPDATE t SET a = (SELECT /*+ NO_MERGE(d) */ COUNT(*) + 1 FROM (SELECT a FROM t) d)";
    let hinted_view = "UPDATE t SET a = (SELECT /*+ NO_MERGE(d) */ COUNT(*) + 2 FROM plain d)";
    let temporary = "UPDATE t SET a = (SELECT COUNT(*) + 3 FROM kept)";
    let view = "UPDATE t SET a = (SELECT COUNT(*) + 4 FROM plain)";
    let hint_on = "UPDATE t SET a = (SELECT /*+ MERGE(d) */ COUNT(*) FROM (SELECT a FROM t) d)";
    let merging = "UPDATE t SET a = (SELECT COUNT(*) FROM merging)";
    let rows: i64 = t.run("SELECT COUNT(*) FROM t").parse().unwrap();
    let all = "SELECT DISTINCT a FROM t";
    t.code(merged, 1093);
    t.code(view, 1443);
    for (sql, more) in [(hinted, 1), (hinted_view, 2), (temporary, 3)] {
        t.ok(sql);
        t.expect(all, &[(rows + more).to_string().as_str()]);
    }
    t.ok("SET optimizer_switch = 'derived_merge=off'");
    for (sql, more) in [(merged, 0), (view, 4)] {
        t.ok(sql);
        t.expect(all, &[(rows + more).to_string().as_str()]);
    }
    t.code(hint_on, 1093);
    t.code(merging, 1443);
    // A view is changed through as before.
    t.ok("UPDATE plain SET a = 7");
    t.expect(all, &["7"]);
    t.ok("DELETE FROM t WHERE a IN (SELECT a FROM (SELECT a FROM t) d)");
    t.expect("SELECT COUNT(*) FROM t", &["0"]);
}

#[test]
fn optimizer_switch_decides_about_grouped_subqueries_and_conditions() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let grouped = "SELECT id FROM t WHERE b > (SELECT AVG(a) FROM u WHERE u.a = t.a)";
    let explained = |t: &mut Test, sql: &str| t.run(&format!("EXPLAIN FORMAT=TREE {sql}"));
    assert!(!explained(&mut t, grouped).contains("Subquery"));
    let pushed = "SELECT n FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a) d WHERE a = 1";
    let before = explained(&mut t, pushed);
    let rows = [t.run(grouped), t.run(pushed)];
    t.ok("SET optimizer_switch = 'subquery_to_derived=off,derived_condition_pushdown=off'");
    assert!(explained(&mut t, grouped).contains("Subquery"));
    assert_ne!(explained(&mut t, pushed), before);
    assert_eq!([t.run(grouped), t.run(pushed)], rows);
}
