//! Queries: WITH, SELECT, set operations, and what holds for the whole.
//!
//! ```text
//! query       [WITH …] set operations [ORDER BY …] [LIMIT …] [INTO …] [FOR UPDATE | SHARE …]… [INTO …]
//! operations  term { UNION | EXCEPT | INTERSECT  term }      INTERSECT binds more tightly, equals from left to right
//! term        SELECT … | VALUES ROW(…), … | TABLE name | ( query )
//! ```
//! ORDER BY, LIMIT and the locking clauses behind the last term belong to the whole; a term of a set operation has its own only in parentheses.
//! Parentheses around a query without clauses of its own leave no trace in the tree.
//!
//! A select item without an alias that is not a plain column is called as the client wrote it (a string literal: its value), as
//! MySQL names result columns. Modifiers that steer MySQL's own buffers are dropped.
//!
//! INTO may stand behind the select items or behind the whole, once. It reaches the query of the statement; in a subquery or before
//! a set operator it is error 3954. Queries in queries are at most [`MAX_SELECTS`] deep.

use super::ast::{
    ColumnName, CommonTable, Expr, Hints, Into, IntoVariable, ItemName, Limit, Literal, LockClause, LockStrength,
    LockWait, OrderItem, OutFile, Query, QueryBody, Select, SelectItem, SetOp, TableName, With,
};
use super::cursor::{Parser, QUERY_LEVELS, Result};
use super::lexer::Kind;
use rauk_types::MysqlError;

/// Queries in queries, the outermost included.
pub const MAX_SELECTS: usize = 63;

/// ER_TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT.
const TOO_MANY_SELECTS: u16 = 1473;
/// ER_MULTIPLE_INTO_CLAUSES.
const MULTIPLE_INTO: u16 = 3953;
/// ER_MISPLACED_INTO.
const MISPLACED_INTO: u16 = 3954;

fn misplaced_into() -> MysqlError {
    MysqlError::new(
        MISPLACED_INTO,
        "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION clauses.",
    )
}

impl Parser<'_> {
    /// SELECT, WITH, VALUES ROW, TABLE, or parentheses around one of them.
    pub fn is_query_start(&self) -> bool {
        let ahead = self.open_parentheses();
        self.is_kw_at(ahead, "SELECT")
            || self.is_kw_at(ahead, "WITH")
            || self.is_kw_at(ahead, "TABLE")
            || (self.is_kw_at(ahead, "VALUES") && self.is_kw_at(ahead + 1, "ROW"))
    }

    /// Whether what follows a query in parentheses makes it a term of a query, or is the end of one in parentheses.
    pub fn goes_on_as_query(&self) -> bool {
        self.kind() == Kind::RParen
            || self.is_any_kw(&["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "FOR", "LOCK", "INTO"])
    }

    pub fn query(&mut self) -> Result<Query> {
        let with = self.with_clause()?;
        self.query_with(with)
    }

    /// A query that is part of something: its rows go there.
    pub fn subquery(&mut self) -> Result<Query> {
        let query = self.query()?;
        if query.into.is_some() { Err(misplaced_into()) } else { Ok(query) }
    }

    /// A subquery whose first term, in parentheses, has been read.
    pub fn subquery_from(&mut self, first: Query) -> Result<Query> {
        let query = self.query_from(None, QueryBody::Query(Box::new(first)))?;
        if query.into.is_some() { Err(misplaced_into()) } else { Ok(query) }
    }

    pub fn with_clause(&mut self) -> Result<Option<With>> {
        if !self.accept_kw("WITH") {
            return Ok(None);
        }
        let recursive = self.accept_kw("RECURSIVE");
        Ok(Some(With { recursive, tables: self.comma_separated(Self::common_table)? }))
    }

    fn common_table(&mut self) -> Result<CommonTable> {
        let name = self.name()?;
        let columns = if self.kind() == Kind::LParen { self.column_list()? } else { vec![] };
        self.expect_kw("AS")?;
        Ok(CommonTable { name, columns, query: self.nested(|p| p.parenthesized(Self::subquery))? })
    }

    /// `(a, b)`
    pub fn column_list(&mut self) -> Result<Vec<String>> {
        self.parenthesized(|p| p.comma_separated(Self::name))
    }

    /// What follows WITH.
    pub fn query_with(&mut self, with: Option<With>) -> Result<Query> {
        let first = self.query_term()?;
        self.query_from(with, first)
    }

    /// The rest of a query whose first term has been read.
    pub fn query_from(&mut self, with: Option<With>, first: QueryBody) -> Result<Query> {
        let mut into = None;
        let first = take_into(first, &mut into);
        let body = self.set_operations(first, 0, &mut into)?;
        let mut query = Query { with, order_by: self.order_by()?, limit: self.limit()?, ..Query::plain(body) };
        self.read_into(&mut into)?;
        query.locks = self.locks()?;
        self.read_into(&mut into)?;
        query.into = into;
        self.taller(QUERY_LEVELS)?;
        Ok(query.without_parentheses())
    }

    /// The operators behind `left` that are stronger than `weakest`.
    fn set_operations(&mut self, mut left: QueryBody, weakest: u8, into: &mut Option<Into>) -> Result<QueryBody> {
        while let Some((op, strength)) = self.set_operator().filter(|(_, s)| *s > weakest) {
            if into.is_some() {
                return Err(misplaced_into());
            }
            self.taller(1)?;
            self.advance();
            let all = self.accept_any_kw(&["ALL", "DISTINCT"]) == Some("ALL");
            let term = self.query_term()?;
            let right = take_into(term, into);
            let right = self.set_operations(right, strength, into)?;
            left = QueryBody::SetOperation { op, all, left: Box::new(left), right: Box::new(right) };
        }
        Ok(left)
    }

    fn set_operator(&self) -> Option<(SetOp, u8)> {
        Some(match () {
            () if self.is_kw("UNION") => (SetOp::Union, 10),
            () if self.is_kw("EXCEPT") => (SetOp::Except, 10),
            () if self.is_kw("INTERSECT") => (SetOp::Intersect, 20),
            () => return None,
        })
    }

    /// An operand of a set operation. INTO of a SELECT is in a query around it, for [`take_into`].
    fn query_term(&mut self) -> Result<QueryBody> {
        if self.kind() == Kind::LParen {
            let query = self.nested(|p| p.parenthesized(Self::query))?;
            if query.into.is_some() && self.kind() != Kind::RParen && !self.at_end() {
                return Err(misplaced_into());
            }
            return Ok(QueryBody::Query(Box::new(query)));
        }
        if self.accept_kw("TABLE") {
            return self.table_name().map(QueryBody::Table);
        }
        if self.selects >= MAX_SELECTS {
            return Err(MysqlError::new(TOO_MANY_SELECTS, "Too high level of nesting for select"));
        }
        self.selects += 1;
        let term = if self.accept_kw("VALUES") {
            let row = |p: &mut Self| p.parenthesized(|p| p.comma_separated(Self::expr));
            self.explicit_rows(row).map(QueryBody::Values)
        } else {
            self.select()
        };
        self.selects -= 1;
        term
    }

    /// Behind VALUES: `ROW(…), ROW(…)`.
    pub fn explicit_rows(&mut self, mut row: impl FnMut(&mut Self) -> Result<Vec<Expr>>) -> Result<Vec<Vec<Expr>>> {
        self.comma_separated(|p| {
            p.expect_kw("ROW")?;
            row(p)
        })
    }

    /// The optimizer hints in a comment that begins at this place, before the present token.
    pub(super) fn hints_behind(&self, start: usize) -> Hints {
        let gap = &self.sql[start..self.offset()];
        if !gap.contains("/*+") {
            return Hints::default();
        }
        super::hints::hints(gap, 1 + self.sql[..start].matches('\n').count())
    }

    fn select(&mut self) -> Result<QueryBody> {
        let start = self.offset();
        self.expect_kw("SELECT")?;
        let hints = self.hints_behind(start + "SELECT".len());
        let (mut distinct, mut straight_join, mut calc_found_rows) = (false, false, false);
        const MODIFIERS: &[&str] = &[
            "ALL",
            "DISTINCT",
            "DISTINCTROW",
            "HIGH_PRIORITY",
            "STRAIGHT_JOIN",
            "SQL_SMALL_RESULT",
            "SQL_BIG_RESULT",
            "SQL_BUFFER_RESULT",
            "SQL_NO_CACHE",
            "SQL_CACHE",
            "SQL_CALC_FOUND_ROWS",
        ];
        while let Some(word) = self.accept_any_kw(MODIFIERS) {
            match word {
                "DISTINCT" | "DISTINCTROW" => distinct = true,
                "STRAIGHT_JOIN" => straight_join = true,
                "SQL_CALC_FOUND_ROWS" => calc_found_rows = true,
                _ => {}
            }
        }
        let items = self.comma_separated(Self::select_item)?;
        let mut into = None;
        self.read_into(&mut into)?;
        let from = if self.accept_kw("FROM") {
            if self.accept_kw("DUAL") { vec![] } else { self.comma_separated(Self::table_reference)? }
        } else {
            vec![]
        };
        let filter = self.where_clause()?;
        let (mut group_by, mut rollup) = (vec![], false);
        if self.accept_kws(&["GROUP", "BY"]) {
            group_by = self.comma_separated(Self::expr)?;
            rollup = self.accept_kws(&["WITH", "ROLLUP"]);
        }
        let having = if self.accept_kw("HAVING") { Some(self.expr()?) } else { None };
        let windows = if self.accept_kw("WINDOW") {
            self.comma_separated(|p| {
                let name = p.name()?;
                p.expect_kw("AS")?;
                Ok((name, p.window_spec()?))
            })?
        } else {
            vec![]
        };
        let select = QueryBody::Select(Box::new(Select {
            hints,
            distinct,
            straight_join,
            calc_found_rows,
            items,
            from,
            filter,
            group_by,
            rollup,
            having,
            windows,
        }));
        Ok(match into {
            None => select,
            into => QueryBody::Query(Box::new(Query { into, ..Query::plain(select) })),
        })
    }

    pub fn where_clause(&mut self) -> Result<Option<Expr>> {
        if self.accept_kw("WHERE") { self.expr().map(Some) } else { Ok(None) }
    }

    /// `table.*` or `database.table.*`.
    fn is_qualified_wildcard(&self) -> bool {
        let mut ahead = 0;
        while matches!(self.kind_at(ahead), Kind::Word | Kind::Quoted)
            && self.kind_at(ahead + 1) == Kind::Dot
            && ahead < 4
        {
            ahead += 2;
            if self.kind_at(ahead) == Kind::Star {
                return true;
            }
        }
        false
    }

    pub fn select_item(&mut self) -> Result<SelectItem> {
        if self.accept(Kind::Star) {
            return Ok(SelectItem::Wildcard);
        }
        if self.is_qualified_wildcard() {
            let mut table = TableName { database: None, name: self.name()? };
            self.expect(Kind::Dot)?;
            if !self.accept(Kind::Star) {
                table.database = Some(std::mem::replace(&mut table.name, self.any_word()?));
                self.expect(Kind::Dot)?;
                self.expect(Kind::Star)?;
            }
            return Ok(SelectItem::TableWildcard(table));
        }
        let start = self.offset();
        let first = self.peek();
        let expr = self.expr()?;
        let end = self.end_of_last();
        if let Some(alias) = self.alias()? {
            return Ok(SelectItem::Expr { expr, name: ItemName::Alias(alias) });
        }
        let name = match &expr {
            Expr::Column(ColumnName { name, .. }) if first.kind != Kind::LParen => name.clone(),
            // Of adjacent strings, the first names the column.
            Expr::Literal(Literal::Text { introducer: None, .. }) if first.kind == Kind::String => {
                self.string_value(first)
            }
            _ => self.sql[start..end].to_string(),
        };
        Ok(SelectItem::Expr { expr, name: ItemName::Text(name) })
    }

    /// `[AS] name` or `[AS] 'name'` behind a select item.
    fn alias(&mut self) -> Result<Option<String>> {
        let explicit = self.accept_kw("AS");
        if self.kind() == Kind::String {
            return self.string().map(Some);
        }
        if explicit || self.is_name() { self.name().map(Some) } else { Ok(None) }
    }

    /// ORDER BY, if it stands here.
    pub fn order_by(&mut self) -> Result<Vec<OrderItem>> {
        if !self.accept_kws(&["ORDER", "BY"]) {
            return Ok(vec![]);
        }
        self.comma_separated(Self::order_item)
    }

    pub fn order_item(&mut self) -> Result<OrderItem> {
        let expr = self.expr()?;
        Ok(OrderItem { expr, descending: self.accept_any_kw(&["ASC", "DESC"]) == Some("DESC") })
    }

    fn limit_value(&mut self) -> Result<Expr> {
        match self.kind() {
            Kind::Placeholder => self.placeholder(),
            Kind::Integer => {
                let token = self.advance();
                Ok(Expr::number(self.text(token)))
            }
            _ => self.fail(),
        }
    }

    /// `LIMIT n`, `LIMIT offset, n`, `LIMIT n OFFSET offset`.
    pub fn limit(&mut self) -> Result<Option<Limit>> {
        if !self.accept_kw("LIMIT") {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.accept(Kind::Comma) {
            return Ok(Some(Limit { count: self.limit_value()?, offset: Some(first) }));
        }
        let offset = if self.accept_kw("OFFSET") { Some(self.limit_value()?) } else { None };
        Ok(Some(Limit { count: first, offset }))
    }

    /// LIMIT of UPDATE and DELETE.
    pub fn limit_count(&mut self) -> Result<Option<Expr>> {
        if self.accept_kw("LIMIT") { self.limit_value().map(Some) } else { Ok(None) }
    }

    fn locks(&mut self) -> Result<Vec<LockClause>> {
        let mut locks = Vec::new();
        loop {
            if self.accept_kws(&["LOCK", "IN", "SHARE", "MODE"]) {
                locks.push(LockClause { strength: LockStrength::Share, of: vec![], wait: LockWait::Wait });
                continue;
            }
            if !self.accept_kw("FOR") {
                return Ok(locks);
            }
            let strength = match self.accept_any_kw(&["UPDATE", "SHARE"]) {
                Some("UPDATE") => LockStrength::Update,
                Some(_) => LockStrength::Share,
                None => return self.fail(),
            };
            let of = if self.accept_kw("OF") { self.comma_separated(Self::table_name)? } else { vec![] };
            let wait = if self.accept_kw("NOWAIT") {
                LockWait::NoWait
            } else if self.accept_kws(&["SKIP", "LOCKED"]) {
                LockWait::SkipLocked
            } else {
                LockWait::Wait
            };
            locks.push(LockClause { strength, of, wait });
        }
    }

    /// INTO, if it stands here; a second one is error 3953.
    fn read_into(&mut self, into: &mut Option<Into>) -> Result<()> {
        if !self.is_kw("INTO") {
            return Ok(());
        }
        if into.is_some() {
            return Err(MysqlError::new(MULTIPLE_INTO, "Multiple INTO clauses in one query block."));
        }
        self.advance();
        *into = Some(if self.accept_kw("DUMPFILE") {
            Into::DumpFile(self.string()?)
        } else if self.accept_kw("OUTFILE") {
            let (path, charset) = (self.string()?, self.file_charset()?);
            Into::OutFile(Box::new(OutFile { path, charset, format: self.file_format()? }))
        } else {
            Into::Variables(self.comma_separated(|p| match p.kind() {
                Kind::UserVariable => p.user_variable().map(IntoVariable::User),
                _ => p.name().map(IntoVariable::Local),
            })?)
        });
        Ok(())
    }
}

/// Moves the INTO of a term out to the query around it.
fn take_into(mut term: QueryBody, into: &mut Option<Into>) -> QueryBody {
    if let QueryBody::Query(query) = &mut term
        && query.into.is_some()
    {
        *into = query.into.take();
    }
    term.without_parentheses()
}
