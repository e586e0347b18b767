//! Full-text search: short texts of words whose frequencies fall as in a language, and searches of several kinds.
//!
//! Words have numbers, so that each run of a statement searches for others. Relevance itself is not among the answers,
//! since MariaDB computes it with an estimate of the number of rows; of one word the order is the same.

use super::random::Random;

pub const TABLES: [&str; 1] = ["texts"];

pub const DEFINITIONS: &[&str] = &["CREATE TABLE texts (id INT NOT NULL PRIMARY KEY, body VARCHAR(400) NOT NULL)"];

/// Once the rows are there: InnoDB builds an index many times faster than it keeps one.
pub const INDEXES: &[&str] = &["ALTER TABLE texts ADD FULLTEXT KEY words (body)"];

/// Different words.
const WORDS: f64 = 50_000.0;

/// The word of rank `n` stands in a text about 1/n as often as the first.
fn word(random: &mut Random) -> i64 {
    const STEPS: i64 = 1 << 40;
    let at = random.between(0, STEPS - 1) as f64 / STEPS as f64;
    WORDS.powf(at) as i64
}

pub fn generate(rows: u64, take: &mut dyn FnMut(usize, &str) -> Result<(), String>) -> Result<(), String> {
    let mut random = Random::new(11);
    for id in 1..=rows {
        let mut row = format!("({id},'");
        for number in 0..random.between(6, 18) {
            if number > 0 {
                row.push(' ');
            }
            row.push_str(&format!("term{}", word(&mut random)));
        }
        row.push_str("')");
        take(0, &row)?;
    }
    Ok(())
}

/// As those of the other parts.
pub fn statements() -> Vec<(String, String, u64)> {
    let search = |text: &str| format!("MATCH (body) AGAINST ('{text}' IN BOOLEAN MODE)");
    let top = "MATCH (body) AGAINST ('term{at+100}')";
    let natural = "MATCH (body) AGAINST ('term{at+50} term{at+90} term{at+200}')";
    let count = |condition: &str| format!("SELECT COUNT(*), SUM(id) FROM texts WHERE {condition}");
    let list = [
        ("match", format!("SELECT id FROM texts WHERE {top} ORDER BY {top} DESC, id LIMIT 10"), 300),
        ("match-words", count(natural), 300),
        ("match-common", count("MATCH (body) AGAINST ('term{at+2}')"), 10),
        ("match-all", count(&search("+term{at+10} +term{at+25} -term{at+2}")), 100),
        ("match-groups", count(&search("+(term{at+40} term{at+60}) +term{at+9} term{at+12}")), 50),
        ("match-phrase", count(&search("\"term{at+3} term{at+5}\"")), 30),
        ("match-begin", count(&search("term3{at+100}*")), 300),
    ];
    list.into_iter().map(|(name, text, range)| (name.to_string(), text, range)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_words_are_frequent() {
        let mut counts = std::collections::HashMap::new();
        generate(2_000, &mut |_, row| {
            let body = row.split('\'').nth(1).expect("a text");
            body.split(' ').for_each(|word| *counts.entry(word.to_string()).or_insert(0) += 1);
            Ok(())
        })
        .unwrap();
        let count = |word: &str| counts.get(word).copied().unwrap_or(0);
        assert!(count("term1") > 5 * count("term20") && count("term20") > 0 && counts.len() > 2_000);
    }
}
