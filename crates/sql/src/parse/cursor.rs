//! The cursor over the tokens that every part of the grammar moves.
//!
//! The grammar is split by subject over the files of this folder; each adds methods to [`Parser`]. A method either consumes what it
//! names and gives it back, or fails with MySQL's error 1064 at the token where it could not go on. Nothing is tried and taken back,
//! but for a look at the next tokens.
//!
//! Nesting is bounded ([`MAX_DEPTH`], [`MAX_HEIGHT`]), and recursion takes stack where it needs more ([`crate::stack`]), so that no text can overflow
//! a thread's stack, neither here nor in what walks the tree later. Tokens and nodes count against the statement's [`Memory`].

use super::ast::{Expr, TableName};
use super::lexer::{Kind, Lexer, Mode, Token, unescape, unquote_name};
use super::reserved::is_reserved;
use super::statement::{Statement, UserName};
use crate::memory::Memory;
use crate::stack;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use std::cell::Cell;

pub(super) type Result<T> = std::result::Result<T, MysqlError>;

/// How deep parentheses, function calls, subqueries and unary operators may nest.
pub const MAX_DEPTH: usize = 10_000;
/// How high the tree of an expression may be: nesting and chains of operators together (AND and OR count little: they are balanced).
pub const MAX_HEIGHT: usize = 10_000;
/// Levels that a query in a query counts for: its tree has several of its own.
pub(super) const QUERY_LEVELS: usize = 8;
/// What an operand takes in the tree, with the operator beside it.
const OPERAND_BYTES: usize = 2 * size_of::<Expr>() + 32;
/// How many `?` a statement may have.
pub const MAX_PARAMETERS: usize = 65_535;

/// Tokens between two looks at KILL: they take well below a millisecond.
pub(super) const LOOK: usize = 4096;

/// ER_STACK_OVERRUN_NEED_MORE.
pub(super) const STACK_OVERRUN: u16 = 1436;

pub(super) struct Parser<'a> {
    pub sql: &'a str,
    tokens: Vec<Token>,
    position: usize,
    pub mode: Mode,
    depth: usize,
    deepest: usize,
    /// Levels of the highest expression since this was last set to zero.
    height: usize,
    /// Behind the parentheses that open here, when they have been counted.
    parentheses_end: Cell<usize>,
    memory: Memory,
    /// `?` met so far.
    pub parameters: usize,
    /// Queries around this place.
    pub selects: usize,
    /// Commas met between tables in parentheses.
    pub tables_in_parentheses: usize,
    /// RETURNING may follow, so it is no alias.
    pub may_return: bool,
}

/// MySQL's text of error 1064 for a failure at byte `offset`.
pub(super) fn syntax_error(sql: &str, offset: usize) -> MysqlError {
    let line = 1 + sql.as_bytes()[..offset].iter().filter(|&&b| b == b'\n').count();
    let mut end = (offset + 80).min(sql.len());
    while !sql.is_char_boundary(end) {
        end -= 1;
    }
    MysqlError::new(
        codes::PARSE_ERROR,
        format!(
            "You have an error in your SQL syntax; see Rauk's SQL reference for the right syntax to use near '{}' at line {line}",
            &sql[offset..end]
        ),
    )
}

/// Error 1235 for what MySQL's grammar has and Rauk cannot put into a tree.
pub(super) fn not_yet(feature: &str) -> MysqlError {
    MysqlError::new(codes::NOT_SUPPORTED_YET, format!("This version of MySQL doesn't yet support '{feature}'"))
}

pub(super) fn too_deep() -> MysqlError {
    MysqlError::new(
        STACK_OVERRUN,
        format!(
            "Thread stack overrun: the statement nests deeper than {MAX_DEPTH} levels, or its expressions are higher than {MAX_HEIGHT}; \
             split it"
        ),
    )
}

fn is_joining(word: &str) -> bool {
    const WORDS: [&str; 5] = ["JOIN", "UNION", "EXCEPT", "INTERSECT", "STRAIGHT_JOIN"];
    matches!(word.len(), 4 | 5 | 6 | 9 | 13) && WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

impl<'a> Parser<'a> {
    /// Errors: 1038, the tokens take more memory than there may be; 1317 and 3024.
    pub fn new(sql: &'a str, mode: Mode, memory: &Memory) -> Result<Self> {
        let mut lexer = Lexer::new(sql, mode);
        let expected = sql.len() / 6 + 4;
        memory.take(expected * size_of::<Token>())?;
        let mut tokens = Vec::with_capacity(expected);
        loop {
            if tokens.len() == tokens.capacity() {
                memory.take(tokens.capacity() * size_of::<Token>())?;
            }
            if tokens.len() % LOOK == LOOK - 1 {
                memory.look()?;
            }
            let token = lexer.next_token();
            tokens.push(token);
            if token.kind == Kind::End {
                break;
            }
        }
        Ok(Parser {
            sql,
            tokens,
            position: 0,
            mode,
            depth: 0,
            deepest: 0,
            height: 0,
            parentheses_end: Cell::new(0),
            memory: memory.clone(),
            parameters: 0,
            selects: 0,
            tables_in_parentheses: 0,
            may_return: false,
        })
    }

    /// A height that no tree of the text exceeds by much, unless the parser refuses it: tokens that are not separated by a comma, those around
    /// parentheses included, and every word that joins queries or tables, since commas stand between those.
    pub fn possible_height(&self) -> usize {
        let (mut open, mut here, mut highest, mut joined) = (Vec::new(), 0usize, 0, 0);
        for token in &self.tokens {
            match token.kind {
                Kind::Word if is_joining(self.text(*token)) => {
                    here += 1;
                    joined += 1;
                }
                Kind::LParen => {
                    if open.len() > MAX_DEPTH {
                        return MAX_HEIGHT;
                    }
                    open.push(here);
                    here += 1;
                }
                Kind::RParen => here = open.pop().unwrap_or(0) + 1,
                Kind::Comma => here = open.last().copied().unwrap_or(0) + 1,
                Kind::Semicolon => here = 0,
                _ => here += 1,
            }
            highest = highest.max(here);
        }
        (highest + joined).min(MAX_HEIGHT)
    }

    /// The height that [`Parser::taller`] has counted since, zero again from now on.
    pub fn take_height(&mut self) -> usize {
        std::mem::take(&mut self.height)
    }

    /// Levels of the whole tree at most, those of queries in queries included.
    pub fn tree_height(&self) -> usize {
        self.height + self.deepest
    }

    /// Of an expression beside the last one: the higher counts.
    pub fn beside(&mut self, height: usize) {
        self.height = self.height.max(height);
    }

    /// The last expression has got `levels` more.
    pub fn taller(&mut self, levels: usize) -> Result<()> {
        self.height += levels;
        if self.height > MAX_HEIGHT { Err(too_deep()) } else { Ok(()) }
    }

    /// Counts an operand.
    pub fn count_operand(&self) -> Result<()> {
        self.memory.take(OPERAND_BYTES)
    }

    /// How many parentheses open here.
    pub fn open_parentheses(&self) -> usize {
        if self.parentheses_end.get() <= self.position {
            let other = self.tokens[self.position..].iter().position(|t| t.kind != Kind::LParen);
            self.parentheses_end.set(self.position + other.unwrap_or(0));
        }
        self.parentheses_end.get() - self.position
    }

    // Looking

    #[inline]
    pub fn peek(&self) -> Token {
        self.tokens[self.position]
    }

    #[inline]
    pub fn peek_at(&self, ahead: usize) -> Token {
        self.tokens[(self.position + ahead).min(self.tokens.len() - 1)]
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        self.tokens[self.position].kind
    }

    pub fn kind_at(&self, ahead: usize) -> Kind {
        self.peek_at(ahead).kind
    }

    pub fn text(&self, token: Token) -> &'a str {
        token.text(self.sql)
    }

    #[inline]
    pub fn is_kw(&self, keyword: &str) -> bool {
        self.is_kw_at(0, keyword)
    }

    #[inline]
    pub fn is_kw_at(&self, ahead: usize, keyword: &str) -> bool {
        let token = self.peek_at(ahead);
        token.kind == Kind::Word
            && (token.end - token.start) as usize == keyword.len()
            && token.text(self.sql).eq_ignore_ascii_case(keyword)
    }

    pub fn is_any_kw(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|k| self.is_kw(k))
    }

    /// Whether the next words are these.
    pub fn are_kws(&self, keywords: &[&str]) -> bool {
        keywords.iter().enumerate().all(|(i, k)| self.is_kw_at(i, k))
    }

    pub fn at_end(&self) -> bool {
        matches!(self.kind(), Kind::End | Kind::Semicolon)
    }

    /// Byte offset where the next token begins.
    pub fn offset(&self) -> usize {
        self.peek().start as usize
    }

    /// Byte offset behind the token consumed last.
    pub fn end_of_last(&self) -> usize {
        if self.position == 0 { 0 } else { self.tokens[self.position - 1].end as usize }
    }

    pub fn position(&self) -> usize {
        self.position
    }

    pub fn rewind(&mut self, position: usize) {
        self.position = position;
    }

    // Moving

    #[inline]
    pub fn advance(&mut self) -> Token {
        let token = self.tokens[self.position];
        if token.kind != Kind::End {
            self.position += 1;
        }
        token
    }

    #[inline]
    pub fn accept(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.advance();
        }
        found
    }

    #[inline]
    pub fn accept_kw(&mut self, keyword: &str) -> bool {
        let found = self.is_kw(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// All of them or none.
    pub fn accept_kws(&mut self, keywords: &[&str]) -> bool {
        let found = self.are_kws(keywords);
        if found {
            self.position += keywords.len();
        }
        found
    }

    /// The first of `keywords` that stands here, consumed.
    pub fn accept_any_kw<'k>(&mut self, keywords: &[&'k str]) -> Option<&'k str> {
        let found = keywords.iter().find(|k| self.is_kw(k)).copied();
        if found.is_some() {
            self.advance();
        }
        found
    }

    pub fn expect(&mut self, kind: Kind) -> Result<Token> {
        if self.kind() == kind { Ok(self.advance()) } else { self.fail() }
    }

    pub fn expect_kw(&mut self, keyword: &str) -> Result<()> {
        if self.accept_kw(keyword) { Ok(()) } else { self.fail() }
    }

    pub fn expect_kws(&mut self, keywords: &[&str]) -> Result<()> {
        keywords.iter().try_for_each(|k| self.expect_kw(k))
    }

    /// Error 1064 at the next token.
    pub fn fail<T>(&self) -> Result<T> {
        Err(syntax_error(self.sql, self.offset()))
    }

    pub fn fail_at<T>(&self, token: Token) -> Result<T> {
        Err(syntax_error(self.sql, token.start as usize))
    }

    /// Runs `inner` one level deeper.
    pub fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let result = stack::grow(|| inner(self));
        self.depth -= 1;
        result
    }

    pub fn comma_separated<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept(Kind::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub fn parenthesized<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.expect(Kind::LParen)?;
        let result = inner(self)?;
        self.expect(Kind::RParen)?;
        Ok(result)
    }

    /// Passes `( … )` with whatever is inside.
    pub fn skip_parentheses(&mut self) -> Result<()> {
        self.expect(Kind::LParen)?;
        let mut depth = 1;
        while depth > 0 {
            match self.advance().kind {
                Kind::LParen => depth += 1,
                Kind::RParen => depth -= 1,
                Kind::End => return self.fail(),
                _ => {}
            }
        }
        Ok(())
    }

    /// The rest of the statement is not looked at.
    pub fn skip_rest(&mut self) {
        while !self.at_end() {
            self.advance();
        }
    }

    /// The statement is MySQL's, and Rauk has it not: 1235 names it.
    pub fn unsupported(&mut self, feature: &str) -> Result<Statement> {
        self.skip_rest();
        Ok(Statement::Unsupported(feature.to_string()))
    }

    // Names and simple values

    pub fn is_name(&self) -> bool {
        let token = self.peek();
        match token.kind {
            Kind::Quoted => true,
            Kind::Word => !is_reserved(self.text(token)),
            _ => false,
        }
    }

    pub fn name(&mut self) -> Result<String> {
        if self.is_name() { self.any_word() } else { self.fail() }
    }

    /// A name behind a dot, or where only a name can stand: reserved words too.
    pub fn any_word(&mut self) -> Result<String> {
        match self.kind() {
            Kind::Quoted | Kind::Word => {
                let token = self.advance();
                Ok(unquote_name(self.text(token)))
            }
            _ => self.fail(),
        }
    }

    /// `[database.]name`
    pub fn table_name(&mut self) -> Result<TableName> {
        // `.name` is the current database's (ODBC).
        self.accept(Kind::Dot);
        let name = self.name()?;
        if self.accept(Kind::Dot) {
            Ok(TableName { database: Some(name), name: self.any_word()? })
        } else {
            Ok(TableName { database: None, name })
        }
    }

    /// The value of a string token, adjacent strings joined.
    pub fn string(&mut self) -> Result<String> {
        let mut value = match self.kind() {
            Kind::String | Kind::National => {
                let token = self.advance();
                self.string_value(token)
            }
            _ => return self.fail(),
        };
        while self.kind() == Kind::String {
            let token = self.advance();
            value.push_str(&self.string_value(token));
        }
        Ok(value)
    }

    pub fn string_value(&self, token: Token) -> String {
        let text = self.text(token);
        let text = if token.kind == Kind::National { &text[1..] } else { text };
        let quote = char::from(text.as_bytes()[0]);
        unescape(&text[1..text.len() - 1], quote, self.mode)
    }

    pub fn integer(&mut self) -> Result<u64> {
        let token = self.peek();
        match (token.kind, self.text(token).parse()) {
            (Kind::Integer, Ok(value)) => {
                self.advance();
                Ok(value)
            }
            _ => self.fail(),
        }
    }

    /// `@name` without the at sign and quotes.
    pub fn user_variable(&mut self) -> Result<String> {
        let token = self.expect(Kind::UserVariable)?;
        Ok(self.variable_name(token))
    }

    pub fn variable_name(&self, token: Token) -> String {
        let text = &self.text(token)[1..];
        match text.as_bytes().first() {
            Some(quote @ (b'\'' | b'"')) => unescape(&text[1..text.len() - 1], char::from(*quote), self.mode),
            _ => unquote_name(text),
        }
    }

    /// `'user'@'host'`, `user`, `CURRENT_USER()`: the last is an empty user name.
    pub fn user_name(&mut self) -> Result<UserName> {
        if self.is_kw("USER") && self.kind_at(1) == Kind::LParen || self.is_kw("CURRENT_USER") {
            self.advance();
            if self.accept(Kind::LParen) {
                self.expect(Kind::RParen)?;
            }
            return Ok(UserName { user: String::new(), host: String::new() });
        }
        let user = if self.kind() == Kind::String { self.string()? } else { self.name()? };
        let host = match self.kind() {
            Kind::UserVariable => self.user_variable()?,
            Kind::At => {
                self.advance();
                if self.kind() == Kind::String { self.string()? } else { self.any_word()? }
            }
            _ => "%".to_string(),
        };
        Ok(UserName { user, host: host.to_ascii_lowercase() })
    }

    /// A charset or collation: a name, a string, or BINARY.
    pub fn charset_name(&mut self) -> Result<String> {
        match self.kind() {
            Kind::String => self.string(),
            _ if self.is_any_kw(&["BINARY", "DEFAULT"]) => self.any_word(),
            _ => self.name(),
        }
    }
}
