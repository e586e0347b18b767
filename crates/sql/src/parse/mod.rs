//! Text to [`Statement`].
//!
//! ```text
//! lexer       text → tokens: kinds and byte ranges
//! cursor      the parser's place among the tokens, names, errors, the bound on nesting
//! expression  operators by MySQL's precedence, calls, literals      types   column types and those of CAST
//! query       SELECT            dml  INSERT, UPDATE, DELETE         table, alter  definitions
//! set, show, account, dispatch  the other statements
//! split       one text of several statements → their texts
//! tree        a statement with its height
//! normalize   statement → normal form with `?` for literals, for the plan cache
//! ```
//! The tree is sqlparser's ([`sqlparser::ast`]), which DataFusion plans from too; the parser is not: sqlparser's own reads a third
//! of MySQL's statements not at all and a dozen operators wrongly, and once those were overridden nothing of it was left
//! in use but the cursor, with neither MySQL's error positions nor a bound that holds for all that walks the tree.
//!
//! What a reader of the tree must know:
//! * `?` is a placeholder named `?0`, `?1`, …: [`parameter_index`];
//! * `@x` and `@@x` are identifiers without quotes whose name begins with `@`;
//! * an unnamed select item that is no plain column has its text as alias, with quote style [`AUTO_NAME`];
//! * DEFAULT without parentheses is an identifier of that name without quotes.

mod account;
mod alter;
mod cursor;
mod dispatch;
mod dml;
mod expression;
mod lexer;
mod normalize;
mod query;
mod reserved;
mod set;
mod show;
mod split;
pub mod statement;
mod table;
mod tree;
mod types;

#[cfg(test)]
mod tests;

pub use cursor::{MAX_DEPTH, MAX_HEIGHT, MAX_PARAMETERS};
pub use lexer::{Mode, VERSION};
pub use normalize::{Normal, normalize};
pub use query::AUTO_NAME;
pub use reserved::is_reserved;
pub use set::system_variable;
pub use split::split;
pub use statement::Statement;
pub use tree::Tree;

use crate::memory::Memory;
use crate::stack;
use cursor::Parser;
use rauk_types::MysqlError;
use rauk_types::error::codes;

/// A statement and how many `?` it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub statement: Tree,
    pub parameters: usize,
}

/// Parses one statement; a semicolon may end it. Errors: 1065 when there is none, 1064 with the place, 1235 for clauses that Rauk has not.
pub fn parse(sql: &str, mode: Mode) -> Result<Parsed, MysqlError> {
    parse_within(sql, mode, &Memory::default())
}

/// The same, where what is allocated counts against `memory`: 1038.
pub fn parse_within(sql: &str, mode: Mode, memory: &Memory) -> Result<Parsed, MysqlError> {
    if sql.len() > u32::MAX as usize {
        return Err(MysqlError::new(
            codes::NET_PACKET_TOO_LARGE,
            "Got a packet bigger than 'max_allowed_packet' bytes",
        ));
    }
    let mut parser = Parser::new(sql, mode, memory)?;
    if parser.kind() == lexer::Kind::End {
        return Err(MysqlError::new(codes::EMPTY_QUERY, "Query was empty"));
    }
    // A tree that is refused when it is high already is dropped on the way out.
    stack::with_room(parser.possible_height(), || {
        let statement = parser.statement()?;
        parser.accept(lexer::Kind::Semicolon);
        if parser.kind() != lexer::Kind::End {
            return parser.fail();
        }
        Ok(Parsed { statement: Tree::new(statement, parser.tree_height()), parameters: parser.parameters })
    })
}

/// Whether a text is a query, by its first word. It reads no further.
pub fn is_query(sql: &str, mode: Mode) -> bool {
    let mut lexer = lexer::Lexer::new(sql, mode);
    let first = std::iter::from_fn(|| Some(lexer.next_token())).find(|token| token.kind != lexer::Kind::LParen);
    let words = ["SELECT", "WITH", "VALUES", "TABLE"];
    first.is_some_and(|token| words.iter().any(|word| token.text(sql).eq_ignore_ascii_case(word)))
}

/// Parses an expression alone, as a column default or a test has it.
pub fn parse_expression(sql: &str, mode: Mode) -> Result<sqlparser::ast::Expr, MysqlError> {
    let mut parser = Parser::new(sql, mode, &Memory::default())?;
    let expr = parser.expr()?;
    if parser.kind() == lexer::Kind::End { Ok(expr) } else { parser.fail() }
}

/// The position of a `?`, from the name of its placeholder.
pub fn parameter_index(placeholder: &str) -> Option<usize> {
    placeholder.strip_prefix('?')?.parse().ok()
}

/// Parses anything, in every mode, and drops the result: the entry for fuzzing.
pub fn fuzz_parse(data: &[u8]) {
    let Ok(sql) = std::str::from_utf8(data) else { return };
    for mode in [
        Mode::default(),
        Mode { ansi_quotes: true, no_backslash_escapes: true, pipes_as_concat: true, high_not_precedence: true },
    ] {
        for text in split(sql, mode, || true) {
            let _ = parse(text, mode);
        }
        let _ = parse(sql, mode);
    }
}
