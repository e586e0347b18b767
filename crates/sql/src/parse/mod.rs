//! Text to [`Statement`].
//!
//! ```text
//! lexer       text → tokens: kinds and byte ranges
//! cursor      the parser's place among the tokens, names, errors, the bound on nesting
//! operators   expressions by MySQL's precedence
//! primary     what stands between operators: literals, names, variables, CASE     calls  functions, windows
//! query       SELECT, set operations, WITH      from  tables and joins
//! dml         INSERT, UPDATE, DELETE            load  LOAD DATA, formats of files
//! types, table, alter, partition, view  definitions
//! set, show, account, diagnostics, dispatch  the other statements
//! ast, statement   the tree that they make      tree  a statement with its height
//! print       tree → text, in MySQL's canonical form
//! split       one text of several statements → their texts
//! digest      statement → what is left of it without literals
//! normalize   statement → normal form with `?` for literals, for the plan cache
//! ```
//! The parser reads all of MySQL's queries and changes. What Rauk cannot execute yet is refused where the tree is bound and planned, which
//! knows what it is; only whole statements that Rauk has not are [`Statement::Unsupported`].

mod account;
mod alter;
pub mod ast;
mod calls;
mod cursor;
pub mod diagnostics;
mod digest;
mod dispatch;
mod dml;
mod from;
pub mod handler;
mod hints;
mod json_table;
mod lexer;
mod load;
mod normalize;
mod operators;
mod partition;
mod primary;
pub mod print;
mod query;
mod reserved;
mod set;
mod show;
mod split;
pub mod statement;
mod table;
mod tree;
mod types;
pub(crate) mod view;

#[cfg(test)]
mod partition_tests;
#[cfg(test)]
mod shape_tests;
#[cfg(test)]
mod tests;

pub use cursor::{MAX_DEPTH, MAX_HEIGHT, MAX_PARAMETERS};
pub use digest::{digest_beginning, digest_text};
pub use lexer::{Mode, RAUK_VERSION, VERSION};
pub use normalize::{Normal, normalize};
pub use query::MAX_SELECTS;
pub use reserved::is_reserved;
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

/// The value of `mandatory_roles`: roles, separated by commas. Error 1064.
pub fn role_list(text: &str) -> Result<Vec<statement::UserName>, MysqlError> {
    Parser::new(text, Mode::default(), &Memory::default())?.role_list()
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
pub fn parse_expression(sql: &str, mode: Mode) -> Result<ast::Expr, MysqlError> {
    let mut parser = Parser::new(sql, mode, &Memory::default())?;
    let expr = parser.expr()?;
    if parser.kind() == lexer::Kind::End { Ok(expr) } else { parser.fail() }
}

/// Parses anything, in every mode, and what was printed from it again: the entry for fuzzing.
pub fn fuzz_parse(data: &[u8]) {
    let Ok(sql) = std::str::from_utf8(data) else { return };
    for mode in [
        Mode::default(),
        Mode { ansi_quotes: true, no_backslash_escapes: true, pipes_as_concat: true, high_not_precedence: true },
    ] {
        for text in split(sql, mode, || true) {
            if let Ok(parsed) = parse(text, mode) {
                check_printed(&parsed.statement, mode);
            }
        }
        let _ = parse(sql, mode);
    }
}

/// Asserts that the text of a query or a change is one too, which prints the same. Its parentheses may be too many.
fn check_printed(statement: &Tree, mode: Mode) {
    let text = printed(statement, mode);
    if text.is_empty() {
        return;
    }
    match parse(&text, mode) {
        Ok(again) => assert_eq!(printed(&again.statement, mode), text),
        Err(error) => assert_eq!(error.code, cursor::STACK_OVERRUN, "{text}: {error}"),
    }
}

fn printed(statement: &Tree, mode: Mode) -> String {
    match &**statement {
        Statement::Query(query) => print::for_mode(&**query, mode).to_string(),
        Statement::Insert(insert) => print::for_mode(&**insert, mode).to_string(),
        Statement::Update(update) => print::for_mode(&**update, mode).to_string(),
        Statement::Delete(delete) => print::for_mode(&**delete, mode).to_string(),
        _ => String::new(),
    }
}
