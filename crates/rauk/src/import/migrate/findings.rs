//! What is not taken, where it is, and what to do about it.
//!
//! The same error of many places is one finding with the first place and a count, and findings are bounded, so that a
//! dump of a million rows of a table that is not taken gives a list that can be read.

use super::super::server;
use std::collections::HashMap;

/// Most findings that are listed one by one.
const MOST: usize = 500;

#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    /// By place's kind and text, where it is in the list.
    known: HashMap<String, usize>,
    beyond: u64,
}

#[derive(Debug)]
struct Finding {
    place: String,
    text: String,
    more: u64,
}

impl Findings {
    pub fn new() -> Findings {
        Findings::default()
    }

    pub fn add(&mut self, place: &str, error: &mysql::Error) {
        let advice = server::code(error).and_then(advice);
        let text = match advice {
            Some(advice) => format!("{}\n    → {advice}", server::told(error)),
            None => server::told(error),
        };
        self.add_text(place, &text);
    }

    pub fn add_text(&mut self, place: &str, text: &str) {
        if let Some(at) = self.known.get(text) {
            self.list[*at].more += 1;
        } else if self.list.len() == MOST {
            self.beyond += 1;
        } else {
            self.known.insert(text.into(), self.list.len());
            self.list.push(Finding { place: place.into(), text: text.into(), more: 0 });
        }
    }

    pub fn append(&mut self, other: Findings) {
        for finding in other.list {
            self.add_text(&finding.place, &finding.text);
            if let Some(at) = self.known.get(&finding.text) {
                self.list[*at].more += finding.more;
            }
        }
        self.beyond += other.beyond;
    }

    pub fn count(&self) -> u64 {
        self.list.iter().map(|finding| 1 + finding.more).sum::<u64>() + self.beyond
    }

    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::with_capacity(self.list.len() + 1);
        for finding in &self.list {
            let more = match finding.more {
                0 => String::new(),
                more => format!(" (and {more} more with the same error)"),
            };
            lines.push(format!("{}{more}: {}", finding.place, finding.text));
        }
        if self.beyond > 0 {
            lines.push(format!("{} more are not listed", self.beyond));
        }
        lines
    }

    /// An error where something was not taken.
    pub fn outcome(&self) -> Result<(), String> {
        match self.count() {
            0 => Ok(()),
            1 => Err("1 thing is not taken; it is listed above with its cause".into()),
            n => Err(format!("{n} things are not taken; they are listed above with their causes")),
        }
    }
}

/// What can be done about an error.
fn advice(code: u16) -> Option<&'static str> {
    Some(match code {
        1235 | 1031 => {
            "Rauk has no such feature; leave the clause or statement out, or do in the application what it did"
        }
        1273 => "take a collation that SHOW COLLATION lists, such as utf8mb4_0900_ai_ci or utf8mb4_general_ci",
        1115 => "take a character set that SHOW CHARACTER SET lists, such as utf8mb4",
        1286 => "leave ENGINE out, or write ENGINE=InnoDB; Rauk stores all tables in memory and on disk itself",
        1064 => "docs/sql.md says which statements there are; leave this one out or write it in their form",
        1305 | 1128 => "docs/functions.md lists the functions; compute the value in the application or by those",
        1193 | 1238 => "leave the SET out, or set a variable that docs/sql.md lists",
        1071 | 1170 => "shorten the key, or give its columns a length: KEY (column(100))",
        1118 | 1074 => "make columns shorter, or TEXT or BLOB",
        1146 | 1356 | 1449 => "create what it refers to before it",
        1396 => "the account exists here, or its plugin is another one; create it by hand",
        1290 => "the server's options do not allow it",
        1045 | 1044 | 1142 | 1227 => "the user of this import lacks the privilege; take one that has it",
        1406 | 1264 | 1265 | 1292 | 1366 | 1048 | 1364 => {
            "the value does not fit its column; correct it, or change the column"
        }
        1062 => "remove one of the rows with the same key",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_errors_are_one_finding() {
        let mut findings = Findings::new();
        let error = |code, message: &str| {
            mysql::Error::MySqlError(mysql::error::MySqlError { state: "HY000".into(), message: message.into(), code })
        };
        assert_eq!(findings.outcome(), Ok(()));
        for line in 1..=3 {
            findings.add(&format!("a.sql:{line}"), &error(1273, "Unknown collation: 'x'"));
        }
        findings.add("a.sql:9", &error(9999, "odd"));
        let lines = findings.lines();
        assert!(
            lines[0].starts_with("a.sql:1 (and 2 more with the same error): ERROR 1273")
                && lines[0].contains("→ take a collation")
        );
        assert_eq!(lines[1], "a.sql:9: ERROR 9999 (HY000): odd");
        assert!(findings.outcome().expect_err("findings").starts_with("4 things"));
        for n in 0..2 * MOST {
            findings.add_text("x", &n.to_string());
        }
        assert_eq!(findings.lines().len(), MOST + 1);
    }
}
