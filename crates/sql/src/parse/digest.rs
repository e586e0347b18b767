//! The digest text of a statement: what is left of it without literals, comments and the way in which it was written.
//!
//! Tokens stand one space apart; keywords in upper case, other names in backquotes. A literal is `?`; several in a row are `?, ...`, a row of them in
//! parentheses is `(?)` or `(...)`, several such rows end with `/* , ... */`, and a list behind IN is `IN (...)`, as MySQL's performance schema
//! and STATEMENT_DIGEST_TEXT have it. Left out: max_digest_length; the text is never longer than four times the statement.

use super::lexer::{Kind, Lexer, Mode, unquote_name};
use super::reserved::is_reserved;

const VALUE: &str = "?";
const VALUES: &str = "?, ...";
const ROW: &str = "(?)";
const ROWS: &str = "(?) /* , ... */";
const LONG_ROW: &str = "(...)";
const LONG_ROWS: &str = "(...) /* , ... */";
const IN_LIST: &str = "IN (...)";

/// The digest text of a statement that has been parsed.
pub fn digest_text(sql: &str, mode: Mode) -> String {
    let mut lexer = Lexer::new(sql, mode);
    let mut out: Vec<String> = Vec::new();
    loop {
        let token = lexer.next_token();
        let text = token.text(sql);
        match token.kind {
            Kind::End | Kind::Bad => break,
            Kind::Semicolon => {}
            Kind::String
            | Kind::National
            | Kind::Hex
            | Kind::Bit
            | Kind::Integer
            | Kind::Decimal
            | Kind::Float
            | Kind::Placeholder => add_value(&mut out),
            Kind::Word if text.eq_ignore_ascii_case("NULL") && !is_part_of_null_test(&out) => add_value(&mut out),
            Kind::Word if is_reserved(text) || is_keyword(text) => out.push(text.to_ascii_uppercase()),
            Kind::Word => out.push(format!("`{text}`")),
            Kind::Quoted => out.push(format!("`{}`", unquote_name(text).replace('`', "``"))),
            Kind::RParen => close(&mut out),
            Kind::LParen => {
                if let Some(last) = out.last_mut()
                    && let Some(name) = FUNCTIONS.iter().find(|name| last.eq_ignore_ascii_case(&format!("`{name}`")))
                {
                    *last = name.to_string();
                }
                out.push(text.to_string());
            }
            _ => out.push(text.to_string()),
        }
    }
    out.join(" ")
}

/// The digest text of the beginning of a long text: so many bytes of it are read. A list of rows that is cut off ends with its last whole row, so
/// that the INSERTs of a dump have one digest.
pub fn digest_beginning(sql: &str, mode: Mode, bytes: usize) -> String {
    if sql.len() <= bytes {
        return digest_text(sql, mode);
    }
    let mut end = bytes;
    while !sql.is_char_boundary(end) {
        end -= 1;
    }
    let text = digest_text(&sql[..end], mode);
    match text.rfind(ROWS).or_else(|| text.rfind(LONG_ROWS)) {
        Some(at) => text[..at + text[at..].find("*/").map_or(0, |end| end + 2)].to_string(),
        None => text,
    }
}

/// Words that are keywords of MySQL's grammar and may be names.
const KEYWORDS: &[&str] = &[
    "ACTION",
    "AFTER",
    "ALGORITHM",
    "ALWAYS",
    "ANY",
    "AT",
    "AUTO_INCREMENT",
    "BEGIN",
    "BIT",
    "BOOL",
    "BOOLEAN",
    "CASCADED",
    "CHARSET",
    "CHECKSUM",
    "COLUMNS",
    "COMMENT",
    "COMMIT",
    "COMMITTED",
    "CONSISTENT",
    "DATE",
    "DATETIME",
    "DAY",
    "DEALLOCATE",
    "DEFINER",
    "DISABLE",
    "DO",
    "DUPLICATE",
    "DYNAMIC",
    "ENABLE",
    "END",
    "ENFORCED",
    "ENGINE",
    "ENUM",
    "ESCAPE",
    "EXECUTE",
    "EXPIRE",
    "FIELDS",
    "FIRST",
    "FLUSH",
    "FOLLOWING",
    "FORMAT",
    "FULL",
    "GLOBAL",
    "HASH",
    "HOUR",
    "INDEXES",
    "INVISIBLE",
    "INVOKER",
    "ISOLATION",
    "JSON",
    "LAST",
    "LEVEL",
    "LOCAL",
    "LOCKED",
    "MERGE",
    "MICROSECOND",
    "MINUTE",
    "MODE",
    "MODIFY",
    "MONTH",
    "NAME",
    "NAMES",
    "NEXT",
    "NO",
    "NOWAIT",
    "OFFSET",
    "ONLY",
    "OPEN",
    "OPTIONS",
    "PARTITIONS",
    "PASSWORD",
    "PRECEDING",
    "PREPARE",
    "PRIVILEGES",
    "PROCESSLIST",
    "QUARTER",
    "QUERY",
    "QUICK",
    "REPAIR",
    "RESET",
    "RETURNING",
    "ROLE",
    "ROLLBACK",
    "ROLLUP",
    "ROW_FORMAT",
    "SAVEPOINT",
    "SECOND",
    "SECURITY",
    "SERIAL",
    "SERIALIZABLE",
    "SESSION",
    "SHARE",
    "SIGNED",
    "SKIP",
    "SNAPSHOT",
    "SOME",
    "START",
    "STATUS",
    "TABLES",
    "TEMPORARY",
    "TEMPTABLE",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TRANSACTION",
    "TRUNCATE",
    "UNBOUNDED",
    "UNCOMMITTED",
    "UNKNOWN",
    "USER",
    "VALUE",
    "VARIABLES",
    "VIEW",
    "VISIBLE",
    "WARNINGS",
    "WEEK",
    "WORK",
    "YEAR",
];

/// Names that are keywords before a parenthesis.
const FUNCTIONS: &[&str] = &["AVG", "COUNT", "GROUP_CONCAT", "MAX", "MIN", "NOW", "SUBSTRING", "SUM", "TRIM"];

fn is_keyword(word: &str) -> bool {
    let upper = word.to_ascii_uppercase();
    KEYWORDS.binary_search(&upper.as_str()).is_ok()
}

fn is_part_of_null_test(out: &[String]) -> bool {
    out.last().is_some_and(|last| last == "IS" || last == "NOT")
}

/// The token at this distance from the end.
fn behind(out: &[String], distance: usize) -> Option<&str> {
    out.len().checked_sub(distance + 1).map(|at| out[at].as_str())
}

/// A sign is the literal's own where no operand stands before it.
fn drop_sign(out: &mut Vec<String>) {
    while matches!(behind(out, 0), Some("-" | "+")) {
        let operator = match behind(out, 1) {
            None => false,
            Some(word) if word.chars().all(|c| c.is_ascii_uppercase() || c == '_') => is_operand_word(word),
            Some(
                "(" | "," | "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" | "<=>" | "+" | "-" | "*" | "/" | "%" | ":=",
            ) => false,
            Some(_) => true,
        };
        if operator {
            return;
        }
        out.pop();
    }
}

/// Keywords that are values, behind which a sign is an operator.
fn is_operand_word(word: &str) -> bool {
    matches!(word, "TRUE" | "FALSE" | "CURRENT_DATE" | "CURRENT_TIME" | "CURRENT_TIMESTAMP" | "CURRENT_USER")
}

fn add_value(out: &mut Vec<String>) {
    drop_sign(out);
    if behind(out, 0) == Some(",") && matches!(behind(out, 1), Some(VALUE | VALUES)) {
        out.truncate(out.len() - 2);
        out.push(VALUES.to_string());
    } else {
        out.push(VALUE.to_string());
    }
}

/// A closing parenthesis: behind literals alone it ends a row.
fn close(out: &mut Vec<String>) {
    let (row, rows) = match (behind(out, 0), behind(out, 1)) {
        (Some(VALUE), Some("(")) => (ROW, ROWS),
        (Some(VALUES), Some("(")) => (LONG_ROW, LONG_ROWS),
        _ => {
            out.push(")".to_string());
            return;
        }
    };
    out.truncate(out.len() - 2);
    if behind(out, 0) == Some("IN") {
        out.pop();
        out.push(IN_LIST.to_string());
    } else if behind(out, 0) == Some(",") && behind(out, 1).is_some_and(|last| last == row || last == rows) {
        out.truncate(out.len() - 2);
        out.push(rows.to_string());
    } else {
        out.push(row.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(sql: &str) -> String {
        digest_text(sql, Mode::default())
    }

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
        assert_eq!(digest("select count(*), `count` from date"), "SELECT COUNT ( * ) , `count` FROM DATE");
    }

    #[test]
    fn literals_lists_and_rows_are_reduced() {
        let cases = [
            (
                "SELECT * FROM mytable WHERE cola = 10 AND colb = 20",
                "SELECT * FROM `mytable` WHERE `cola` = ? AND `colb` = ?",
            ),
            (
                "select a from t where b in (1, 2,3) and c in ('x')",
                "SELECT `a` FROM `t` WHERE `b` IN (...) AND `c` IN (...)",
            ),
            ("insert into t values (1, 2), (3, 4), (5, 6);", "INSERT INTO `t` VALUES (...) /* , ... */"),
            ("insert into t values (1), (2)", "INSERT INTO `t` VALUES (?) /* , ... */"),
            ("select -1, a - 1, f(1, 2) /* x */ -- y", "SELECT ? , `a` - ? , `f` (...)"),
            (
                "select t.a from t where a is not null and b = null limit 1, 2",
                "SELECT `t` . `a` FROM `t` WHERE `a` IS NOT NULL AND `b` = ? LIMIT ?, ...",
            ),
        ];
        for (sql, expected) in cases {
            assert_eq!(digest(sql), expected, "{sql}");
        }
    }
}
