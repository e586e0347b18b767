//! The choice of an access path never changes a result.
//!
//! Every query runs on tables with indexes of all kinds and on twins of them with the same rows and no index at all; and joins are computed a
//! third time here, from the cross product of the tables and the values of their conditions, so that nested loops, hash joins and null rows are
//! checked against something that shares only the evaluation of expressions with them.
mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use support::Session;

const COLUMNS: &str = "id int, a int null, b smallint null, s varchar(12) null, g varchar(12) null general, w varchar(12) null bin, d decimal(6.2) null, t datetime null, f double null, x varbinary(6) null, u int unsigned null, day date null";

/// Index sets; the same data stands under each.
const INDEXES: &[&str] = &[
    "primary id; index ia a; index iab a, b; index iss s; index ig g(2), a; index iw w desc; index id d; index it t; index if_ f; index ix x; index iu u; index iday day desc, a",
    "primary a_key; index ida id desc; index ibs b desc, s; index isa s(3), a desc; index igw g, w(1); unique uid id; index ida2 d desc, t; index iu u desc, id",
    "unique ui id; index ia a desc, b desc, s; index iw w(1); index iss s desc; index ix x(2), f; index itd t, day",
];

struct Data {
    session: Session,
    rng: StdRng,
}

const TEXTS: &[&str] = &[
    "a", "A", "ab", "aB", "abc", "abd", "b", "B ", "b", "ba", "á", "ß", "ss", "s", "z", "", " a", "a b", "a\tb", "10",
    "2",
];

fn literal(rng: &mut StdRng, column: &str) -> String {
    let null = rng.random_ratio(1, 12);
    if null {
        return "NULL".to_string();
    }
    match column {
        "id" | "a" | "b" | "u" => match rng.random_range(0..12) {
            0 => format!("{}.5", rng.random_range(-2..12)),
            1 => format!("'{}'", rng.random_range(-2..12)),
            2 => "99999999999".to_string(),
            3 => "-99999999999".to_string(),
            4 => format!("{}e0", rng.random_range(-2..12)),
            _ => rng.random_range(-3..14).to_string(),
        },
        "s" | "g" | "w" => format!("'{}'", TEXTS.choose(rng).unwrap()),
        "d" => match rng.random_range(0..4) {
            0 => format!("{}.125", rng.random_range(-3..8)),
            1 => rng.random_range(-3..8).to_string(),
            2 => "123456789.5".to_string(),
            _ => format!("{}.5", rng.random_range(-3..8)),
        },
        "t" | "day" => match rng.random_range(0..4) {
            0 => format!("'2024-01-0{}'", rng.random_range(1..9)),
            1 => format!("'2024-01-0{} 12:00:00.5'", rng.random_range(1..9)),
            _ => format!("'2024-01-0{} 12:00:00'", rng.random_range(1..9)),
        },
        "f" => format!("{}", f64::from(rng.random_range(-6..12)) / 2.0),
        "x" => format!("'{}'", ["a", "ab", "A", "b", "ba"].choose(rng).unwrap()),
        other => panic!("no literals for {other}"),
    }
}

fn value(rng: &mut StdRng, column: &str) -> String {
    if rng.random_ratio(1, 7) {
        return "NULL".to_string();
    }
    match column {
        "a" => rng.random_range(-2..12).to_string(),
        "b" => rng.random_range(0..6).to_string(),
        "u" => rng.random_range(0..10).to_string(),
        "s" | "g" | "w" => format!("'{}'", TEXTS.choose(rng).unwrap()),
        "d" => format!("{}.{}", rng.random_range(-3..8), ["00", "25", "50", "12", "13"].choose(rng).unwrap()),
        "t" => format!("'2024-01-0{} 12:00:00'", rng.random_range(1..9)),
        "day" => format!("'2024-01-0{}'", rng.random_range(1..9)),
        "f" => format!("{}", f64::from(rng.random_range(-6..12)) / 2.0),
        "x" => format!("'{}'", ["a", "ab", "A", "b", "ba", "abc"].choose(rng).unwrap()),
        other => panic!("no values for {other}"),
    }
}

const NAMES: [&str; 11] = ["a", "b", "s", "g", "w", "d", "t", "f", "x", "u", "day"];

/// Tables `name`0… with the indexes of [`INDEXES`], and `name`x without any, all with the same rows.
fn fill(data: &mut Data, name: &str, rows: usize) {
    let session = &mut data.session;
    for (number, indexes) in INDEXES.iter().enumerate() {
        let columns = format!("{COLUMNS}, a_key int");
        session.create(&format!("{name}{number}"), &columns, indexes);
    }
    session.create(&format!("{name}x"), &format!("{COLUMNS}, a_key int"), "");
    for id in 0..rows {
        let mut values = vec![id.to_string()];
        values.extend(NAMES.iter().map(|c| value(&mut data.rng, c)));
        values.push((id * 7 % 1000).to_string());
        for suffix in ["0", "1", "2", "x"] {
            session.ok(&format!("INSERT INTO {name}{suffix} VALUES ({})", values.join(", ")));
        }
    }
}

fn data(seed: u64, rows: usize) -> Data {
    let mut data = Data { session: Session::new(), rng: StdRng::seed_from_u64(seed) };
    fill(&mut data, "t", rows);
    data
}

fn atom(rng: &mut StdRng, prefix: &str) -> String {
    let column = *["id", "a", "b", "s", "g", "w", "d", "t", "f", "x", "u", "day", "a", "s", "b"].choose(rng).unwrap();
    let name = format!("{prefix}{column}");
    let mut value = || literal(rng, column);
    match value().len() % 9 {
        _ if column == "s" && value().len() % 3 == 0 => format!("{name} LIKE {}", like(rng)),
        _ if column == "g" && value().len() % 3 == 0 => format!("{name} LIKE {}", like(rng)),
        _ if column == "w" && value().len() % 3 == 0 => format!("{name} LIKE {}", like(rng)),
        _ => {
            let mut value = || literal(rng, column);
            let values: Vec<String> = (0..4).map(|_| value()).collect();
            match rng.random_range(0..12) {
                0 => format!("{name} IS NULL"),
                1 => format!("{name} IS NOT NULL"),
                2 => format!("{name} <=> {}", values[0]),
                3 => format!("{name} BETWEEN {} AND {}", values[0], values[1]),
                4 => format!("{name} IN ({})", values.join(", ")),
                5 => format!("{} < {name}", values[0]),
                6 => format!("{name} <= {}", values[0]),
                7 => format!("{name} > {}", values[0]),
                8 => format!("({name} = {} OR {name} = {})", values[0], values[1]),
                9 => format!(
                    "({prefix}a, {prefix}b) IN (({}, 1), ({}, 2), (3, 3))",
                    literal(rng, "a"),
                    literal(rng, "a")
                ),
                _ => format!("{name} = {}", values[0]),
            }
        }
    }
}

fn like(rng: &mut StdRng) -> String {
    format!(
        "'{}'",
        ["a%", "ab%", "A_c%", "%b", "ss%", "ß%", "a", "a %", " %", "b", "", "%", "á%", "a\\\\%"].choose(rng).unwrap()
    )
}

fn condition(rng: &mut StdRng, prefix: &str) -> String {
    let count = rng.random_range(1..4);
    let atoms: Vec<String> = (0..count).map(|_| atom(rng, prefix)).collect();
    if rng.random_ratio(1, 6) { format!("({})", atoms.join(" OR ")) } else { atoms.join(" AND ") }
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    lines.sort();
    lines
}

/// The same query on every table; all answers must be the same.
fn same(data: &mut Data, query: &dyn Fn(&str) -> String, ordered: bool) -> usize {
    let expected = data.session.run(&query("x")).map(|a| a.text());
    for suffix in ["0", "1", "2"] {
        let sql = query(suffix);
        let got = data.session.run(&sql).map(|a| a.text());
        match (&got, &expected) {
            (Ok(got), Ok(expected)) => {
                let same = if ordered { got == expected } else { sorted(got) == sorted(expected) };
                assert!(same, "{sql}\n{}\ngot:\n{got}\nexpected:\n{expected}", data.session.path(&sql));
            }
            (Err(got), Err(expected)) => assert_eq!(got.code, expected.code, "{sql}"),
            _ => panic!("{sql}\n{got:?}\n{expected:?}"),
        }
    }
    expected.map_or(0, |e| e.lines().count())
}

#[test]
fn one_table() {
    let mut found = 0;
    for seed in 0..6 {
        let mut data = data(seed, 60 + seed as usize * 30);
        for _ in 0..160 {
            let condition = condition(&mut data.rng, "");
            found += same(&mut data, &|t| format!("SELECT id, a, s FROM t{t} WHERE {condition}"), false);
            let column = *NAMES.choose(&mut data.rng).unwrap();
            let (first, second) =
                (["", "DESC"].choose(&mut data.rng).unwrap(), ["", "DESC"].choose(&mut data.rng).unwrap());
            let (limit, offset) = (data.rng.random_range(1..9), data.rng.random_range(0..3));
            same(
                &mut data,
                &|t| {
                    format!(
                        "SELECT id, {column} FROM t{t} WHERE {condition} ORDER BY {column} {first}, id {second} LIMIT {offset}, {limit}"
                    )
                },
                true,
            );
            // Of equal texts any may be the smallest.
            let least = if ["s", "g", "w"].contains(&column) { "a" } else { column };
            same(
                &mut data,
                &|t| {
                    format!(
                        "SELECT COUNT(*), MIN({least}), SUM(a), COUNT(DISTINCT {column}) FROM t{t} WHERE {condition}"
                    )
                },
                true,
            );
        }
        for column in NAMES.into_iter().filter(|c| !["s", "g", "w"].contains(c)) {
            same(&mut data, &|t| format!("SELECT MAX({column}) FROM t{t}"), true);
            same(&mut data, &|t| format!("SELECT MIN({column}) FROM t{t} WHERE id > 5"), true);
            same(
                &mut data,
                &|t| format!("SELECT {column} IS NULL, COUNT(*) FROM t{t} GROUP BY {column} IS NULL"),
                true,
            );
        }
    }
    assert!(found > 5000, "the conditions find too little: {found}");
}

#[test]
fn forced_indexes() {
    let mut data = data(77, 150);
    let names: Vec<Vec<&str>> = INDEXES
        .iter()
        .map(|set| {
            set.split(';')
                .filter_map(|i| {
                    let mut words = i.split_whitespace();
                    (words.next() != Some("primary")).then(|| words.next().unwrap())
                })
                .collect()
        })
        .collect();
    for _ in 0..250 {
        let condition = condition(&mut data.rng, "");
        let expected = data.session.run(&format!("SELECT id FROM tx WHERE {condition}")).map(|a| sorted(&a.text()));
        for (table, indexes) in names.iter().enumerate() {
            for index in indexes {
                let sql = format!("SELECT id FROM t{table} FORCE INDEX ({index}) WHERE {condition}");
                let got = data.session.run(&sql).map(|a| sorted(&a.text()));
                assert_eq!(got.as_ref().ok(), expected.as_ref().ok(), "{sql}\n{}", data.session.path(&sql));
            }
        }
    }
}

#[test]
fn two_tables() {
    let mut data = Data { session: Session::new(), rng: StdRng::seed_from_u64(5) };
    fill(&mut data, "t", 25);
    fill(&mut data, "q", 22);
    let on = [
        "l.a = r.a",
        "l.id = r.a",
        "l.a = r.id",
        "l.s = r.s",
        "l.g = r.g",
        "l.g = r.s",
        "l.b = r.u AND l.a < r.a",
        "l.d = r.a",
        "l.t = r.t",
        "l.t = r.day",
        "l.w = r.w",
        "l.f = r.a",
        "l.a = r.b AND l.s = r.s",
        "l.a < r.b",
        "l.a <=> r.a",
        "l.a_key = r.a_key",
        "l.x = r.x",
        "l.a = r.a AND r.b > 2",
        "l.a = r.a AND l.b > 2",
        "l.u = r.a + 1",
        "l.a + 1 = r.a",
    ];
    for round in 0..140 {
        let on = on[round % on.len()];
        let left = data.rng.random_ratio(1, 2);
        let filter = match data.rng.random_range(0..4) {
            0 => condition(&mut data.rng, "l."),
            1 => condition(&mut data.rng, "r."),
            2 => format!("{} AND {}", atom(&mut data.rng, "l."), atom(&mut data.rng, "r.")),
            _ => "TRUE".to_string(),
        };
        let join = if left { "LEFT JOIN" } else { "JOIN" };
        let first = data
            .session
            .run(&format!("SELECT l.id, r.id, ({on}), ({filter}) FROM tx l STRAIGHT_JOIN qx r ORDER BY l.id, r.id"));
        // A left row without a match, under the filter.
        let lonely =
            data.session.run(&format!("SELECT l.id, ({filter}) FROM tx l LEFT JOIN qx r ON r.id = -5 ORDER BY l.id"));
        let (Ok(pairs), Ok(lonely)) = (first, lonely) else { continue };
        let mut expected = Vec::new();
        for alone in &lonely.rows {
            let mut matched = false;
            for pair in pairs.rows.iter().filter(|p| p[0] == alone[0]) {
                if pair[2] == "1" {
                    matched = true;
                    if pair[3] == "1" {
                        expected.push(format!("{}|{}", pair[0], pair[1]));
                    }
                }
            }
            if !matched && left && alone[1] == "1" {
                expected.push(format!("{}|NULL", alone[0]));
            }
        }
        expected.sort();
        for (l, r) in [("x", "x"), ("0", "0"), ("1", "2"), ("2", "1"), ("0", "x"), ("x", "0")] {
            let sql = format!("SELECT l.id, r.id FROM t{l} l {join} q{r} r ON {on} WHERE {filter}");
            let got = sorted(&data.session.rows(&sql));
            assert_eq!(got, expected, "{sql}\n{}", data.session.path(&sql));
        }
        // The other way round, as a RIGHT JOIN.
        if left {
            let sql = format!("SELECT l.id, r.id FROM q0 r RIGHT JOIN t1 l ON {on} WHERE {filter}");
            assert_eq!(sorted(&data.session.rows(&sql)), expected, "{sql}");
        }
    }
}

#[test]
fn changes_through_any_path() {
    for seed in 20..26 {
        let mut data = data(seed, 60);
        for _ in 0..25 {
            let condition = condition(&mut data.rng, "");
            let assignments =
                ["a = a + 1", "b = 3, a = b", "s = 'moved'", "g = w, w = g", "d = d * 2", "u = id", "t = NULL"];
            let assignment = assignments.choose(&mut data.rng).unwrap();
            let delete = data.rng.random_ratio(1, 5);
            let limit = if data.rng.random_ratio(1, 3) { "ORDER BY id DESC LIMIT 3" } else { "" };
            let mut outcomes = Vec::new();
            for suffix in ["x", "0", "1", "2"] {
                let sql = match delete {
                    true => format!("DELETE FROM t{suffix} WHERE {condition} {limit}"),
                    false => format!("UPDATE t{suffix} SET {assignment} WHERE {condition} {limit}"),
                };
                let outcome =
                    data.session.run(&sql).map(|a| (a.completion.affected_rows, a.completion.info)).map_err(|e| e.code);
                let rows = data.session.rows(&format!("SELECT * FROM t{suffix} ORDER BY id"));
                outcomes.push((sql, outcome, rows));
            }
            for other in &outcomes[1..] {
                assert_eq!((&other.1, &other.2), (&outcomes[0].1, &outcomes[0].2), "{}", other.0);
            }
        }
    }
}
