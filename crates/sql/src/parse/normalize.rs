//! The normal form of a statement: literals become `?`, so that statements that differ only in them share a plan.
//!
//! One pass over the tokens, no tree. The text is kept as it was written but for the literals that were taken out and comments outside of select
//! lists; so the names of result columns stay what they were. A literal is taken only where its value cannot change the meaning or the shape of the plan:
//! as an operand of a comparison or arithmetic, in an IN list, in VALUES and SET, in LIMIT. It stays
//!
//! * in a select list and in that of RETURNING (names), in the subqueries of one too unless AS follows them, and behind GROUP BY and ORDER BY (positions);
//! * among the arguments of a function (`ROUND(x, 2)`, `CAST(x AS DECIMAL(10,2))`: their types follow from it);
//! * behind any word but a few (INTERVAL 1, DATE '…', LIKE '…', ESCAPE, introducers), and behind `->`;
//! * behind a minus if no BIGINT has it, and behind two: `- 18446744073709551615` and `- -9223372036854775808` are DECIMAL.
//!
//! What has placeholders of its own, version comments with code, adjacent strings or very long IN lists has no normal form.

use super::lexer::{Kind, Lexer, Mode, Token, unescape};
use rauk_types::{Collation, DataType, Decimal, TypeKind, Value};
use smallvec::SmallVec;

/// A normal form; reuse it, its buffers stay.
#[derive(Clone, Debug, Default)]
pub struct Normal {
    /// The statement with `?` in place of literals.
    pub text: String,
    /// What was taken out, in order.
    pub parameters: Vec<Value>,
    /// The types of the literals, in classes wide enough that plans are shared: the length of a text counts in powers of two.
    pub types: Vec<DataType>,
}

/// IN lists of more literals are planned anew: their sorted form belongs to the plan.
const MAX_LIST: u32 = 100;

/// What one pair of parentheses (or the whole statement) is.
#[derive(Clone, Copy)]
struct Frame {
    /// Literals may be taken here.
    open: bool,
    /// A name is made of the text: the items of a select list.
    items: bool,
    /// Inside of such an item: nothing opens again.
    named: bool,
    /// Arguments of a function: nothing inside opens again.
    function: bool,
    /// IN ( … )
    list: bool,
    literals: u32,
}

/// Words before `(` that call nothing.
const NOT_CALLS: &[&str] = &[
    "IN", "VALUES", "VALUE", "AND", "OR", "NOT", "XOR", "WHERE", "ON", "HAVING", "EXISTS", "ANY", "ALL", "SOME",
    "FROM", "JOIN", "ROW", "SELECT", "BETWEEN", "UNION", "BY", "SET",
];
/// Words before a literal that is an operand.
const OPERANDS: &[&str] =
    &["AND", "OR", "XOR", "NOT", "BETWEEN", "WHERE", "ON", "HAVING", "LIMIT", "OFFSET", "DIV", "MOD"];

fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.iter().any(|w| w.len() == word.len() && w.eq_ignore_ascii_case(word))
}

fn follows_operator(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Eq
            | Kind::NullEq
            | Kind::Lt
            | Kind::Le
            | Kind::Gt
            | Kind::Ge
            | Kind::Ne
            | Kind::Plus
            | Kind::Minus
            | Kind::Star
            | Kind::Slash
            | Kind::Percent
            | Kind::LParen
            | Kind::Comma
            | Kind::Amp
            | Kind::AmpAmp
            | Kind::Pipe
            | Kind::PipePipe
            | Kind::Caret
            | Kind::ShiftLeft
            | Kind::ShiftRight
    )
}

/// Writes the normal form of `sql` into `out`. `false`: it has none; `out` is of no use then.
pub fn normalize(sql: &str, mode: Mode, out: &mut Normal) -> bool {
    out.text.clear();
    out.parameters.clear();
    out.types.clear();
    let mut lexer = Lexer::new(sql, mode);
    let first = lexer.next_token();
    if first.kind != Kind::Word || !is_one_of(first.text(sql), &["SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"]) {
        return false;
    }
    out.text.reserve(sql.len());
    let selects = is_one_of(first.text(sql), &["SELECT"]);
    let mut frames: SmallVec<[Frame; 16]> = SmallVec::new();
    frames.push(Frame { open: !selects, items: selects, named: false, function: false, list: false, literals: 0 });
    // Copied up to here.
    let mut copied = first.start as usize;
    let mut previous = first;
    let mut before = first;
    // Minus signs before the present token that negate what follows.
    let mut negations = 0u32;
    loop {
        let token = lexer.next_token();
        let Some(frame) = frames.last_mut() else { return false };
        // Comments between two tokens go, where no name is made of the text.
        if frame.open && token.start as usize > previous.end as usize + 1 && copied <= previous.end as usize {
            let gap = &sql[previous.end as usize..token.start as usize];
            // Hints of the statement stay.
            let hints = previous.start == first.start && gap.contains("/*+");
            if !hints && (gap.contains("/*") || gap.contains("--") || gap.contains('#')) {
                out.text.push_str(&sql[copied..previous.end as usize]);
                out.text.push(' ');
                copied = token.start as usize;
            }
        }
        match token.kind {
            Kind::End => break,
            Kind::Semicolon => {
                if lexer.next_token().kind != Kind::End {
                    return false;
                }
                out.text.push_str(sql[copied..token.start as usize].trim_end());
                copied = sql.len();
                break;
            }
            Kind::Placeholder | Kind::Bad => return false,
            Kind::LParen => {
                let word = (previous.kind == Kind::Word).then(|| previous.text(sql));
                let function =
                    frame.function || previous.kind == Kind::Quoted || word.is_some_and(|w| !is_one_of(w, NOT_CALLS));
                let list = word.is_some_and(|w| is_one_of(w, &["IN"]));
                let open = frame.open && !function && negations == 0;
                let named = frame.named || frame.items && !function && !has_alias(&lexer, sql);
                frames.push(Frame { open, items: false, named, function, list, literals: 0 });
            }
            Kind::RParen => {
                frames.pop();
            }
            // Behind a dot it is a column, whatever it is called.
            Kind::Word if previous.kind != Kind::Dot && !frame.function && !frame.named => {
                let word = token.text(sql);
                match word.len() {
                    6 if word.eq_ignore_ascii_case("SELECT") => (frame.open, frame.items) = (false, true),
                    9 if !selects && word.eq_ignore_ascii_case("RETURNING") => {
                        (frame.open, frame.items) = (false, true)
                    }
                    5 if word.eq_ignore_ascii_case("GROUP") || word.eq_ignore_ascii_case("ORDER") => {
                        (frame.open, frame.items) = (false, false)
                    }
                    4..=6 if is_one_of(word, &["FROM", "WHERE", "HAVING", "LIMIT", "VALUES", "UPDATE"]) => {
                        (frame.open, frame.items) = (true, false)
                    }
                    _ => {}
                }
            }
            Kind::String if previous.kind == Kind::String => return false,
            Kind::Integer | Kind::Decimal | Kind::Float | Kind::String if frame.open => {
                let operand = match previous.kind {
                    Kind::Word => is_one_of(previous.text(sql), OPERANDS),
                    // INTERVAL -1 DAY
                    Kind::Minus | Kind::Plus => {
                        before.kind != Kind::Word || !is_one_of(before.text(sql), &["INTERVAL"])
                    }
                    kind => follows_operator(kind),
                };
                // The negative of what no BIGINT is is a DECIMAL, and so is that of the least BIGINT.
                let fixes_type = negations > 1 || negations == 1 && is_beyond(token, sql);
                if operand && !fixes_type {
                    frame.literals += 1;
                    if frame.list && frame.literals > MAX_LIST {
                        return false;
                    }
                    out.text.push_str(&sql[copied..token.start as usize]);
                    out.text.push('?');
                    copied = token.end as usize;
                    if !take(token, sql, mode, out) {
                        return false;
                    }
                }
            }
            _ => {}
        }
        negations = match token.kind {
            Kind::Minus if is_sign(previous, sql) => negations + 1,
            _ => 0,
        };
        before = previous;
        previous = token;
    }
    if lexer.saw_code_comment || frames.len() != 1 {
        return false;
    }
    if copied < sql.len() {
        out.text.push_str(sql[copied..previous.end as usize].trim_end());
    }
    true
}

/// Whether it is an integer beyond BIGINT.
fn is_beyond(token: Token, sql: &str) -> bool {
    token.kind == Kind::Integer && token.text(sql).parse::<i64>().is_err()
}

/// Whether a minus behind this token negates.
fn is_sign(previous: Token, sql: &str) -> bool {
    match previous.kind {
        Kind::Word => is_one_of(previous.text(sql), OPERANDS),
        kind => follows_operator(kind),
    }
}

/// Whether AS follows the parenthesis that has just been opened: the name of the item is not its text then.
fn has_alias(lexer: &Lexer<'_>, sql: &str) -> bool {
    let mut ahead = lexer.clone();
    let mut depth = 1;
    while depth > 0 {
        match ahead.next_token().kind {
            Kind::LParen => depth += 1,
            Kind::RParen => depth -= 1,
            Kind::End => return false,
            _ => {}
        }
    }
    let next = ahead.next_token();
    next.kind == Kind::Word && is_one_of(next.text(sql), &["AS"])
}

/// Takes a literal out; `false` for a number beyond DOUBLE, which binding refuses.
fn take(token: Token, sql: &str, mode: Mode, out: &mut Normal) -> bool {
    let text = token.text(sql);
    let (value, ty) = match token.kind {
        Kind::String => {
            let content = unescape(&text[1..text.len() - 1], char::from(text.as_bytes()[0]), mode);
            let length = content.len().next_power_of_two().clamp(16, 1 << 24) as u32;
            let ty = if length < 16_384 {
                DataType::varchar(length, Collation::DEFAULT)
            } else {
                DataType::new(TypeKind::LongText)
            };
            // Beside a character set that may lack its characters such a text is planned as a literal.
            let ty = DataType { unsigned: !content.is_ascii(), ..ty };
            (Value::Str(content), ty)
        }
        Kind::Integer => match (text.parse::<i64>(), text.parse::<u64>()) {
            (Ok(value), _) => (Value::Int(value), DataType::BIGINT),
            (_, Ok(value)) => (Value::UInt(value), DataType::BIGINT_UNSIGNED),
            _ => decimal(text),
        },
        Kind::Float => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => (Value::Double(value), DataType::DOUBLE),
            _ => return false,
        },
        _ => decimal(text),
    };
    out.parameters.push(value);
    out.types.push(ty);
    true
}

fn decimal(text: &str) -> (Value, DataType) {
    /// Digits before the point, in classes.
    const CLASSES: [u8; 2] = [20, 35];
    let value = Decimal::parse_prefix(text.as_bytes()).value;
    let (digits, scale) = (value.integer_digits(), value.scale());
    let integer = CLASSES.into_iter().find(|c| digits <= *c).unwrap_or(65 - scale);
    (Value::Decimal(value), DataType::decimal((integer + scale).min(65), scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::ast::Expr;
    use crate::parse::{Parsed, parse};
    use proptest::prelude::*;

    fn normal(sql: &str) -> Option<(String, Vec<Value>)> {
        let mut out = Normal::default();
        normalize(sql, Mode::default(), &mut out).then_some((out.text, out.parameters))
    }

    fn text(sql: &str) -> String {
        normal(sql).unwrap_or_else(|| panic!("{sql}")).0
    }

    #[test]
    fn literals_that_are_taken() {
        let cases = [
            ("SELECT c FROM sbtest1 WHERE id=42", "SELECT c FROM sbtest1 WHERE id=?"),
            ("SELECT a, 1, 'x' FROM t WHERE b = 'y' AND c > -1.5", "SELECT a, 1, 'x' FROM t WHERE b = ? AND c > -?"),
            (
                "SELECT a FROM t WHERE b IN (1, 'x', 1e3) LIMIT 5, 10;",
                "SELECT a FROM t WHERE b IN (?, ?, ?) LIMIT ?, ?",
            ),
            (
                "SELECT a FROM t WHERE b BETWEEN 1 AND 2 ORDER BY 1 LIMIT 3",
                "SELECT a FROM t WHERE b BETWEEN ? AND ? ORDER BY 1 LIMIT ?",
            ),
            ("SELECT a FROM t GROUP BY 1 HAVING COUNT(*) > 2", "SELECT a FROM t GROUP BY 1 HAVING COUNT(*) > ?"),
            (
                "INSERT INTO t (a, b) VALUES (1, 'x'), (NOW(3), NULL)",
                "INSERT INTO t (a, b) VALUES (?, ?), (NOW(3), NULL)",
            ),
            (
                "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1",
                "INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = VALUES(a) + ?",
            ),
            ("REPLACE t SET a = 1, b = 'x'", "REPLACE t SET a = ?, b = ?"),
            ("UPDATE t SET a = a + 1 WHERE b = 2", "UPDATE t SET a = a + ? WHERE b = ?"),
            ("DELETE FROM t WHERE a = 1 LIMIT 2", "DELETE FROM t WHERE a = ? LIMIT ?"),
            ("DELETE FROM t WHERE a = 1 RETURNING b + 1", "DELETE FROM t WHERE a = ? RETURNING b + 1"),
            ("INSERT INTO t VALUES (1) RETURNING a, 'x'", "INSERT INTO t VALUES (?) RETURNING a, 'x'"),
            ("SELECT (SELECT a FROM t WHERE b = 1) AS x, (2)", "SELECT (SELECT a FROM t WHERE b = ?) AS x, (2)"),
            (
                "SELECT a FROM (SELECT b, (SELECT 1 FROM u WHERE c = 2) FROM t WHERE d = 3) x WHERE a = (SELECT 4 LIMIT 5)",
                "SELECT a FROM (SELECT b, (SELECT 1 FROM u WHERE c = 2) FROM t WHERE d = ?) x WHERE a = (SELECT 4 LIMIT ?)",
            ),
            ("SELECT a FROM t WHERE (b = 1 OR (c = 2))", "SELECT a FROM t WHERE (b = ? OR (c = ?))"),
            ("SELECT a FROM t WHERE b - -1 = -(2) - (3)", "SELECT a FROM t WHERE b - -? = -(2) - (?)"),
            ("SELECT a FROM t WHERE (a, b) IN ((1, 2), (3, 4))", "SELECT a FROM t WHERE (a, b) IN ((?, ?), (?, ?))"),
        ];
        for (sql, expected) in cases {
            assert_eq!(text(sql), expected, "{sql}");
        }
        assert_eq!(
            normal("SELECT a FROM t WHERE b = 'it''s' AND c = 18446744073709551615").unwrap().1,
            [Value::from("it's"), Value::UInt(u64::MAX)]
        );
    }

    #[test]
    fn literals_that_stay() {
        for sql in [
            "SELECT ROUND(a, 2), 'x' FROM t",
            "SELECT a FROM t WHERE ROUND(a, 2) = CAST(b AS DECIMAL(10,2))",
            "SELECT a FROM t WHERE d > NOW() - INTERVAL 1 DAY",
            "SELECT a FROM t WHERE d > NOW() + INTERVAL -1 DAY",
            "SELECT a FROM t WHERE b LIKE 'x%' ESCAPE '|'",
            "SELECT a FROM t WHERE d = DATE '2024-01-01'",
            "SELECT a FROM t WHERE b = _utf8mb4'x' COLLATE utf8mb4_bin",
            "SELECT a FROM t WHERE b = x'41'",
            "SELECT a FROM t WHERE EXTRACT(YEAR FROM d) = c",
            "SELECT a FROM t WHERE j->'$.a' = c",
            "SELECT a FROM t WHERE b = - -9223372036854775808 AND c = -(-1) AND d = -18446744073709551615",
            "SELECT a, (SELECT 1) FROM t ORDER BY FIELD(id, 3, 1, 2)",
            "SELECT a, (SELECT b FROM u WHERE c = 1 LIMIT 2) + 3, EXISTS (SELECT 4 FROM u WHERE d > 5) FROM t",
            "SELECT a FROM t WHERE CASE b WHEN c THEN 'x' ELSE 'y' END = d",
        ] {
            let (text, parameters) = normal(sql).unwrap_or_else(|| panic!("{sql}"));
            assert_eq!((text.as_str(), parameters.len()), (sql, 0));
        }
    }

    #[test]
    fn statements_without_a_normal_form() {
        for sql in [
            "SELECT a FROM t WHERE b = ?",
            "SELECT a FROM t WHERE b = 'x' 'y'",
            "SELECT /*!40000 a */ FROM t",
            "SELECT 1; SELECT 2",
            "SET a = 1",
            "COMMIT",
            "SELECT a FROM t WHERE b = 'x",
            "SELECT a FROM t WHERE (b = 1",
            "",
        ] {
            assert!(normal(sql).is_none(), "{sql}");
        }
        assert!(normal(&format!("SELECT a FROM t WHERE b IN ({})", vec!["1"; 101].join(","))).is_none());
        assert!(normal(&format!("SELECT a FROM t WHERE b IN ({})", vec!["1"; 100].join(","))).is_some());
    }

    #[test]
    fn comments_go_but_not_from_names() {
        assert_eq!(
            text("/* trace 1 */ SELECT a FROM t /* 2 */ WHERE b = 1 -- x\n AND c = 2"),
            "SELECT a FROM t WHERE b = ? AND c = ?"
        );
        assert_eq!(text("SELECT a /* b */ FROM t"), "SELECT a /* b */ FROM t");
    }

    /// The literals put back in place of `?`, in the tree.
    fn restored(parsed: Parsed, parameters: &[Value]) -> String {
        let mut text = format!("{:?}", parsed.statement);
        for (i, value) in parameters.iter().enumerate() {
            let expr = match value {
                Value::Str(s) => Expr::text(s.as_str()),
                other => {
                    let mut out = Vec::new();
                    rauk_types::format::append_text(other.as_ref(), &DataType::varbinary(0), &mut out);
                    Expr::number(String::from_utf8(out).unwrap())
                }
            };
            text = text.replace(&format!("Parameter({i})"), &format!("{expr:?}"));
        }
        text
    }

    fn literal() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<u32>().prop_map(|n| n.to_string()),
            (1u32..1000, 0u32..100).prop_map(|(a, b)| format!("{a}.{b:02}")),
            "[a-z'\\\\ ]{0,8}".prop_map(|s| format!("'{}'", s.replace('\\', "\\\\").replace('\'', "''"))),
        ]
    }

    proptest! {
        /// Parsing the normal form and putting the literals back gives the tree of the statement itself.
        #[test]
        fn the_normal_form_means_the_same(
            shape in prop_oneof![
                Just("SELECT a, $ FROM t WHERE b = $ AND (c IN ($, $) OR d BETWEEN $ AND $) ORDER BY $, e LIMIT 7"),
                Just("INSERT INTO t (a, b) VALUES ($, $), (f($), $ + $) ON DUPLICATE KEY UPDATE a = $"),
                Just("UPDATE t SET a = $, b = b * $ WHERE c <=> $ AND NOT d > -$ LIMIT 3"),
                Just("SELECT x FROM t JOIN u ON t.a = $ WHERE EXISTS (SELECT $ FROM v WHERE v.a < $) HAVING z != $"),
                Just("DELETE FROM t WHERE a LIKE $ OR (a, b) = ($, $) OR c >= $ /* $ */"),
            ],
            literals in proptest::collection::vec(literal(), 12),
        ) {
            let mut sql = String::new();
            for (i, part) in shape.split('$').enumerate() {
                if i > 0 {
                    sql.push_str(&literals[i % literals.len()]);
                }
                sql.push_str(part);
            }
            // Quotes inside of the comment would end up in it; that is what the lexer has to get right.
            if let Some((text, parameters)) = normal(&sql) {
                let whole = parse(&sql, Mode::default()).unwrap();
                let parsed = parse(&text, Mode::default()).unwrap();
                prop_assert_eq!(parsed.parameters, parameters.len());
                prop_assert_eq!(restored(parsed, &parameters), format!("{:?}", whole.statement));
            }
        }

        #[test]
        fn anything_is_survived(text in "\\PC{0,80}") {
            let _ = normal(&format!("SELECT {text}"));
        }
    }
}
