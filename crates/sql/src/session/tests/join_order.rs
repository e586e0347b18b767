//! The order of joins: plans of random joins give the same rows in every order, and large joins are planned within bounds.

use super::{Test, server};
use std::time::{Duration, Instant};

/// A small generator, so that a failure is the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

fn sorted(t: &mut Test, sql: &str) -> Vec<String> {
    let text = t.run(sql);
    assert!(!text.starts_with("ERROR"), "{sql}: {text}");
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    lines.sort_unstable();
    lines
}

/// The tables in the order in which they are read.
fn order(t: &mut Test, sql: &str) -> Vec<String> {
    t.run(&format!("EXPLAIN {sql}")).lines().map(|line| line.split('|').nth(2).unwrap_or("").to_string()).collect()
}

#[test]
fn every_order_gives_the_same_rows() {
    let server = server();
    let mut t = server.session();
    let keys = ["", ", KEY (a)", ", KEY (b)", ", KEY (a, b)", ", UNIQUE KEY (c)"];
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    for table in 0..6 {
        let key = keys[dice.roll(keys.len())];
        t.ok(&format!("CREATE TABLE j{table} (id INT PRIMARY KEY, a INT, b INT, c INT{key})"));
        let rows = [1, 3, 9, 14, 0, 20][dice.roll(6)];
        for row in 0..rows {
            let value = |dice: &mut Dice| match dice.roll(6) {
                0 => "NULL".to_string(),
                value => value.to_string(),
            };
            let (a, b) = (value(&mut dice), value(&mut dice));
            t.ok(&format!("INSERT INTO j{table} VALUES ({row}, {a}, {b}, {row})"));
        }
    }
    let columns = ["id", "a", "b", "c"];
    for _ in 0..60 {
        let count = 2 + dice.roll(4);
        let tables: Vec<usize> = (0..count).map(|_| dice.roll(6)).collect();
        let mut from = format!("j{} t0", tables[0]);
        let mut plain = from.clone();
        for (at, table) in tables.iter().enumerate().skip(1) {
            let on = format!("t{at}.{} = t{}.{}", columns[dice.roll(4)], dice.roll(at), columns[dice.roll(4)]);
            let outer = dice.roll(4) == 0;
            let (join, straight) = if outer { ("LEFT JOIN", "LEFT JOIN") } else { ("JOIN", "STRAIGHT_JOIN") };
            from.push_str(&format!(" {join} j{table} t{at} ON {on}"));
            plain.push_str(&format!(" {straight} j{table} t{at} ON {on}"));
        }
        let filter = match dice.roll(3) {
            0 => format!(" WHERE t{}.a > {}", dice.roll(count), dice.roll(3)),
            1 => format!(" WHERE t{}.b = {} OR t0.id < 3", dice.roll(count), dice.roll(5)),
            _ => String::new(),
        };
        let list: Vec<String> = (0..count).map(|at| format!("t{at}.id")).collect();
        let list = list.join(", ");
        let free = sorted(&mut t, &format!("SELECT {list} FROM {from}{filter}"));
        let kept = sorted(&mut t, &format!("SELECT {list} FROM {plain}{filter}"));
        assert_eq!(free, kept, "{from}{filter}");
        // By no index, and with an order that an index may give.
        let ordered = sorted(&mut t, &format!("SELECT {list} FROM {from}{filter} ORDER BY t0.id, t0.a"));
        assert_eq!(free, ordered, "{from}{filter}");
    }
}

#[test]
fn tables_are_read_from_the_selective_end() {
    let server = server();
    let mut t = server.session();
    for table in ["a", "b", "c", "d"] {
        t.ok(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, next INT, UNIQUE KEY (next))"));
        let rows: Vec<String> = (0..200).map(|row| format!("({row}, {row})")).collect();
        t.ok(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
    }
    let from = "a JOIN b ON b.id = a.next JOIN c ON c.id = b.next JOIN d ON d.id = c.next";
    assert_eq!(order(&mut t, &format!("SELECT 1 FROM {from} WHERE a.id = 3")), ["a", "b", "c", "d"]);
    assert_eq!(order(&mut t, &format!("SELECT 1 FROM {from} WHERE d.id = 3")), ["d", "c", "b", "a"]);
    let kept = from.replace("JOIN", "STRAIGHT_JOIN");
    assert_eq!(order(&mut t, &format!("SELECT 1 FROM {kept} WHERE d.id = 3")), ["a", "b", "c", "d"]);
    assert_eq!(order(&mut t, &format!("SELECT STRAIGHT_JOIN 1 FROM {from} WHERE d.id = 3")), ["a", "b", "c", "d"]);
}

#[test]
fn a_join_of_61_tables_is_planned_and_62_are_refused() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, next INT, KEY (next))");
    t.ok("INSERT INTO t VALUES (1, 2), (2, 3), (3, 1)");
    let chain = |count: usize| {
        let rest: String = (1..count).map(|at| format!(" JOIN t t{at} ON t{at}.id = t{}.next", at - 1)).collect();
        format!("t t0{rest}")
    };
    let began = Instant::now();
    // From either end, and a clique in which everything is related.
    t.expect(&format!("SELECT COUNT(*), MAX(t60.id) FROM {}", chain(61)), &["3|3"]);
    t.expect(&format!("SELECT t0.id FROM {} WHERE t60.id = 1", chain(61)), &["1"]);
    let clique: Vec<String> = (0..61).flat_map(|a| (0..a).map(move |b| format!("t{a}.id = t{b}.id"))).collect();
    let tables: Vec<String> = (0..61).map(|at| format!("t t{at}")).collect();
    t.expect(&format!("SELECT COUNT(*) FROM {} WHERE {}", tables.join(", "), clique.join(" AND ")), &["3"]);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let text = "Too many tables; MySQL can only use 61 tables in a join";
    t.error(&format!("SELECT 1 FROM {}", chain(62)), 1116, text);
    // Merging makes no join that is too large.
    t.expect(&format!("SELECT COUNT(*) FROM (SELECT t0.id FROM {}) d JOIN t USING (id)", chain(61)), &["3"]);
}
