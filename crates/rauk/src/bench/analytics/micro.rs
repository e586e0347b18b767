//! Single operators: tables of a chosen number of rows, and one statement for each operator.
//!
//! Statements that read few rows by keys name different keys in each run, so that none is answered from what the last one
//! left. All answers are small: what is measured is the server, not the client.

use super::generate::date_text;
use super::random::Random;

pub const TABLES: [&str; 6] = ["parents", "children", "toys", "facts", "lefts", "rights"];

pub const DEFINITIONS: &[&str] = &[
    "CREATE TABLE parents (id INT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL)",
    "CREATE TABLE children (id INT NOT NULL PRIMARY KEY, parent INT NOT NULL, weight INT NOT NULL, KEY (parent))",
    "CREATE TABLE toys (id INT NOT NULL PRIMARY KEY, child INT NOT NULL, price INT NOT NULL, KEY (child))",
    "CREATE TABLE facts (id INT NOT NULL PRIMARY KEY, few INT NOT NULL, many INT NOT NULL, amount DECIMAL(12,2) NOT NULL, \
     rate DECIMAL(4,2) NOT NULL, day DATE NOT NULL, word VARCHAR(40) NOT NULL)",
    "CREATE TABLE lefts (id INT NOT NULL PRIMARY KEY, word VARCHAR(40) NOT NULL)",
    "CREATE TABLE rights (id INT NOT NULL PRIMARY KEY, word VARCHAR(40) NOT NULL)",
];

/// Rows of the large tables, of those reached by keys.
#[derive(Clone, Copy)]
struct Sizes {
    facts: i64,
    parents: i64,
}

impl Sizes {
    fn of(rows: u64) -> Sizes {
        Sizes { facts: rows as i64, parents: (rows / 20).max(200) as i64 }
    }
}

pub fn generate(rows: u64, take: &mut dyn FnMut(usize, &str) -> Result<(), String>) -> Result<(), String> {
    let Sizes { facts, parents } = Sizes::of(rows);
    let mut random = Random::new(7);
    for id in 1..=parents {
        take(0, &format!("({id},'the name of {id}')"))?;
    }
    for id in 1..=parents * 4 {
        take(1, &format!("({id},{},{})", random.between(1, parents), random.between(0, 99)))?;
    }
    for id in 1..=parents * 8 {
        take(2, &format!("({id},{},{})", random.between(1, parents * 4), random.between(0, 99)))?;
    }
    for id in 1..=facts {
        let (few, many) = (random.between(0, 999), random.between(0, (facts / 10).max(1)));
        let (amount, rate) = (random.between(0, 9_999_999), random.between(0, 10));
        let day = date_text(8035 + random.between(0, 2555));
        let row = format!(
            "({id},{few},{many},{}.{:02},0.{rate:02},'{day}','word {:x}')",
            amount / 100,
            amount % 100,
            random.between(0, facts)
        );
        take(3, &row)?;
    }
    // The same words in another order: a step without a divisor in common with the number of rows.
    let step = (facts * 61 / 100..).find(|step| common_divisor(*step, facts) == 1).unwrap_or(1);
    for id in 1..=facts {
        take(4, &format!("({id},'a word that is number {id}')"))?;
        take(5, &format!("({id},'a word that is number {}')", id * step % facts + 1))?;
    }
    Ok(())
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Names, and texts whose `{at+n}` is `n` more than a number that differs from run to run, below the last of the three.
pub fn statements(rows: u64) -> Vec<(String, String, u64)> {
    let few = (Sizes::of(rows).parents - 100) as u64;
    let list: [(&str, &str, u64); 13] = [
        (
            "exists",
            "SELECT COUNT(*) FROM parents p WHERE p.id BETWEEN {at+1} AND {at+100} \
             AND EXISTS (SELECT 1 FROM children c WHERE c.parent = p.id AND c.weight > 50)",
            few,
        ),
        (
            "in",
            "SELECT COUNT(*) FROM parents p WHERE p.id BETWEEN {at+1} AND {at+100} \
             AND p.id IN (SELECT c.parent FROM children c WHERE c.weight > 50)",
            few,
        ),
        (
            "scalar",
            "SELECT SUM((SELECT MAX(c.weight) FROM children c WHERE c.parent = p.id)) FROM parents p \
             WHERE p.id BETWEEN {at+1} AND {at+100}",
            few,
        ),
        (
            "join3",
            "SELECT COUNT(*), SUM(c.weight), SUM(t.price), MAX(p.name) FROM parents p JOIN children c ON c.parent = p.id \
             JOIN toys t ON t.child = c.id WHERE p.id BETWEEN {at+1} AND {at+10}",
            few,
        ),
        (
            "union",
            "SELECT name FROM parents WHERE id = {at+1} UNION ALL SELECT name FROM parents WHERE id = {at+2} \
             UNION ALL SELECT name FROM parents WHERE id = {at+3} UNION ALL SELECT name FROM parents WHERE id = {at+4}",
            few,
        ),
        ("group", "SELECT few, COUNT(*), SUM(amount), MAX(day) FROM facts GROUP BY few ORDER BY few", 1),
        (
            "groups",
            "SELECT COUNT(*), MAX(number), SUM(total) FROM \
             (SELECT many, COUNT(*) AS number, SUM(amount) AS total FROM facts GROUP BY many) g",
            1,
        ),
        (
            "group-words",
            "SELECT COUNT(*), MAX(number) FROM (SELECT word, COUNT(*) AS number FROM facts GROUP BY word) g",
            1,
        ),
        ("top", "SELECT id, amount, word FROM facts ORDER BY amount DESC, id LIMIT 100", 1),
        (
            "sum",
            "SELECT SUM(amount * rate) FROM facts WHERE day >= DATE '1994-01-01' \
             AND day < DATE '1994-01-01' + INTERVAL 1 YEAR AND rate BETWEEN 0.05 AND 0.07 AND few < 480",
            1,
        ),
        (
            "recursive",
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {tenth}) \
             SELECT COUNT(*), SUM(i) FROM n",
            1,
        ),
        ("hash", "SELECT COUNT(*), SUM(l.id), SUM(r.id) FROM lefts l JOIN rights r ON l.word = r.word", 1),
        (
            "hash-left",
            "SELECT COUNT(*), SUM(f.id) FROM lefts l LEFT JOIN facts f ON f.many = l.id WHERE l.word > ''",
            1,
        ),
    ];
    let tenth = (rows / 10).max(1).to_string();
    list.into_iter().map(|(name, text, at)| (name.to_string(), text.replace("{tenth}", &tenth), at)).collect()
}
