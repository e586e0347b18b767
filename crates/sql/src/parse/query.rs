//! SELECT and everything it can contain.
//!
//! A select item without an alias that is not a plain column gets as its alias the text that the client wrote (a string literal: its
//! value), as MySQL names result columns; such an alias has the quote style [`AUTO_NAME`], so that it can be told from one that was
//! written. Optimizer hints and modifiers that steer MySQL's own buffers are dropped.

use super::cursor::{Parser, QUERY_LEVELS, Result, too_deep};
use super::expression::value;
use super::lexer::Kind;
use super::reserved::is_reserved;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::*;

/// How many joins may follow each other.
const MAX_JOINS: usize = 500;

/// The quote style of a column name that was not written but taken from the expression's text.
pub const AUTO_NAME: char = '[';

/// A query around `body` without clauses of its own.
pub(super) fn query_of(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: vec![],
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: vec![],
    }
}

fn parens<T>(content: T) -> Parens<T> {
    Parens { opening_token: AttachedToken::empty(), content, closing_token: AttachedToken::empty() }
}

fn not_yet(feature: &str) -> MysqlError {
    MysqlError::new(codes::NOT_SUPPORTED_YET, format!("This version of MySQL doesn't yet support '{feature}'"))
}

impl Parser<'_> {
    /// SELECT, WITH, VALUES ROW, TABLE, or parentheses around one of them.
    pub fn is_query_start(&self) -> bool {
        let ahead = self.open_parentheses();
        self.is_kw_at(ahead, "SELECT")
            || self.is_kw_at(ahead, "WITH")
            || (self.is_kw_at(ahead, "VALUES") && self.is_kw_at(ahead + 1, "ROW"))
            || (self.is_kw_at(ahead, "TABLE") && ahead == 0)
    }

    pub fn query(&mut self) -> Result<Box<Query>> {
        let with = if self.accept_kw("WITH") {
            let recursive = self.accept_kw("RECURSIVE");
            let cte_tables = self.comma_separated(Self::cte)?;
            Some(With { with_token: AttachedToken::empty(), recursive, cte_tables })
        } else {
            None
        };
        let mut query = query_of(self.query_body(0)?);
        query.with = with;
        if self.accept_kws(&["ORDER", "BY"]) {
            let kind = OrderByKind::Expressions(self.comma_separated(Self::order_by_expr)?);
            query.order_by = Some(OrderBy { kind, interpolate: None });
        }
        query.limit_clause = self.limit_clause()?;
        self.refuse_into()?;
        query.locks = self.locks()?;
        self.refuse_into()?;
        self.taller(QUERY_LEVELS)?;
        Ok(Box::new(query))
    }

    fn refuse_into(&self) -> Result<()> {
        if !self.is_kw("INTO") {
            return Ok(());
        }
        Err(not_yet(if self.is_kw_at(1, "OUTFILE") || self.is_kw_at(1, "DUMPFILE") {
            "SELECT ... INTO OUTFILE"
        } else {
            "SELECT ... INTO variable"
        }))
    }

    fn cte(&mut self) -> Result<Cte> {
        let name = self.ident()?;
        let columns = if self.kind() == Kind::LParen { self.alias_columns()? } else { vec![] };
        self.expect_kw("AS")?;
        let query = self.nested(|p| p.parenthesized(Self::query))?;
        Ok(Cte {
            alias: TableAlias { explicit: true, name, columns, at: None },
            query,
            from: None,
            materialized: None,
            closing_paren_token: AttachedToken::empty(),
        })
    }

    fn alias_columns(&mut self) -> Result<Vec<TableAliasColumnDef>> {
        self.parenthesized(|p| p.comma_separated(|p| Ok(TableAliasColumnDef { name: p.ident()?, data_type: None })))
    }

    fn set_operator(&self) -> Option<(SetOperator, u8)> {
        Some(match () {
            () if self.is_kw("UNION") => (SetOperator::Union, 10),
            () if self.is_kw("EXCEPT") => (SetOperator::Except, 10),
            () if self.is_kw("INTERSECT") => (SetOperator::Intersect, 20),
            () => return None,
        })
    }

    fn query_body(&mut self, weakest: u8) -> Result<SetExpr> {
        let mut left = self.query_term()?;
        while let Some((op, strength)) = self.set_operator().filter(|(_, s)| *s > weakest) {
            self.taller(1)?;
            self.advance();
            let set_quantifier = match self.accept_any_kw(&["ALL", "DISTINCT"]) {
                Some("ALL") => SetQuantifier::All,
                Some(_) => SetQuantifier::Distinct,
                None => SetQuantifier::None,
            };
            let right = Box::new(self.query_body(strength)?);
            left = SetExpr::SetOperation { left: Box::new(left), op, set_quantifier, right };
        }
        Ok(left)
    }

    fn query_term(&mut self) -> Result<SetExpr> {
        if self.kind() == Kind::LParen {
            return self.nested(|p| p.parenthesized(Self::query)).map(SetExpr::Query);
        }
        if self.accept_kw("VALUES") {
            let rows = self.comma_separated(|p| {
                p.expect_kw("ROW")?;
                p.parenthesized(|p| p.comma_separated(Self::expr)).map(parens)
            })?;
            return Ok(SetExpr::Values(Values { explicit_row: true, value_keyword: false, rows }));
        }
        if self.accept_kw("TABLE") {
            let name = self.table_name()?;
            return Ok(SetExpr::Table(Box::new(Table { table_name: Some(name.name), schema_name: name.database })));
        }
        self.select().map(|s| SetExpr::Select(Box::new(s)))
    }

    /// The row lists of INSERT: `VALUES (…), ROW(…), ()`.
    pub fn insert_values(&mut self) -> Result<Values> {
        let mut explicit_row = false;
        let rows = self.comma_separated(|p| {
            explicit_row |= p.accept_kw("ROW");
            p.parenthesized(|p| if p.kind() == Kind::RParen { Ok(vec![]) } else { p.comma_separated(Self::expr) })
                .map(parens)
        })?;
        Ok(Values { explicit_row, value_keyword: false, rows })
    }

    fn select(&mut self) -> Result<Select> {
        self.expect_kw("SELECT")?;
        let mut distinct = None;
        let mut modifiers = SelectModifiers {
            high_priority: false,
            straight_join: false,
            sql_small_result: false,
            sql_big_result: false,
            sql_buffer_result: false,
            sql_no_cache: false,
            sql_calc_found_rows: false,
        };
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
                "ALL" => {}
                "DISTINCT" | "DISTINCTROW" => distinct = Some(Distinct::Distinct),
                "HIGH_PRIORITY" => modifiers.high_priority = true,
                "STRAIGHT_JOIN" => modifiers.straight_join = true,
                "SQL_CALC_FOUND_ROWS" => modifiers.sql_calc_found_rows = true,
                _ => modifiers.sql_no_cache = true,
            }
        }
        let projection = self.comma_separated(Self::select_item)?;
        self.refuse_into()?;
        let from = if self.accept_kw("FROM") {
            if self.accept_kw("DUAL") { vec![] } else { self.comma_separated(Self::table_with_joins)? }
        } else {
            vec![]
        };
        let selection = if self.accept_kw("WHERE") { Some(self.expr()?) } else { None };
        let mut group_by = GroupByExpr::Expressions(vec![], vec![]);
        if self.accept_kws(&["GROUP", "BY"]) {
            let expressions = self.comma_separated(|p| {
                let expr = p.expr()?;
                // Deprecated before MySQL 8, and without effect then.
                let _ = p.accept_any_kw(&["ASC", "DESC"]);
                Ok(expr)
            })?;
            let rollup = if self.accept_kws(&["WITH", "ROLLUP"]) { vec![GroupByWithModifier::Rollup] } else { vec![] };
            group_by = GroupByExpr::Expressions(expressions, rollup);
        }
        let having = if self.accept_kw("HAVING") { Some(self.expr()?) } else { None };
        let named_window = if self.accept_kw("WINDOW") {
            self.comma_separated(|p| {
                let name = p.ident()?;
                p.expect_kw("AS")?;
                Ok(NamedWindowDefinition(name, NamedWindowExpr::WindowSpec(p.window_spec()?)))
            })?
        } else {
            vec![]
        };
        Ok(Select {
            select_token: AttachedToken::empty(),
            optimizer_hints: vec![],
            distinct,
            select_modifiers: Some(modifiers),
            top: None,
            top_before_distinct: false,
            projection,
            exclude: None,
            into: None,
            from,
            lateral_views: vec![],
            prewhere: None,
            selection,
            connect_by: vec![],
            group_by,
            cluster_by: vec![],
            distribute_by: vec![],
            sort_by: vec![],
            having,
            named_window,
            qualify: None,
            window_before_qualify: false,
            value_table_mode: None,
            flavor: SelectFlavor::Standard,
        })
    }

    fn wildcard(&self) -> WildcardAdditionalOptions {
        WildcardAdditionalOptions {
            wildcard_token: AttachedToken::empty(),
            opt_ilike: None,
            opt_exclude: None,
            opt_except: None,
            opt_replace: None,
            opt_rename: None,
            opt_alias: None,
        }
    }

    /// `table.*` or `database.table.*`: how many tokens.
    fn qualified_wildcard(&self) -> Option<usize> {
        let mut ahead = 0;
        while matches!(self.kind_at(ahead), Kind::Word | Kind::Quoted)
            && self.kind_at(ahead + 1) == Kind::Dot
            && ahead < 4
        {
            ahead += 2;
            if self.kind_at(ahead) == Kind::Star {
                return Some(ahead);
            }
        }
        None
    }

    pub fn select_item(&mut self) -> Result<SelectItem> {
        if self.accept(Kind::Star) {
            return Ok(SelectItem::Wildcard(self.wildcard()));
        }
        if let Some(tokens) = self.qualified_wildcard() {
            let mut parts = Vec::new();
            while parts.len() * 2 < tokens {
                parts.push(if parts.is_empty() { self.ident()? } else { self.ident_after_dot()? });
                self.expect(Kind::Dot)?;
            }
            self.expect(Kind::Star)?;
            let kind = SelectItemQualifiedWildcardKind::ObjectName(ObjectName::from(parts));
            return Ok(SelectItem::QualifiedWildcard(kind, self.wildcard()));
        }
        let start = self.offset();
        let first = self.peek();
        let expr = self.expr()?;
        let end = self.end_of_last();
        if let Some(alias) = self.alias()? {
            return Ok(SelectItem::ExprWithAlias { expr, alias });
        }
        let name = match &expr {
            Expr::Identifier(name) if !name.value.starts_with('@') || name.quote_style.is_some() => {
                return Ok(SelectItem::UnnamedExpr(expr));
            }
            Expr::CompoundIdentifier(_) => return Ok(SelectItem::UnnamedExpr(expr)),
            // Of adjacent strings, the first names the column.
            Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }) if first.kind == Kind::String => {
                self.string_value(first)
            }
            _ => self.sql[start..end].to_string(),
        };
        Ok(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote(AUTO_NAME, name) })
    }

    /// `[AS] name` or `[AS] 'name'` behind a select item.
    fn alias(&mut self) -> Result<Option<Ident>> {
        let explicit = self.accept_kw("AS");
        if self.kind() == Kind::String {
            return self.string().map(|s| Some(Ident::with_quote('\'', s)));
        }
        if explicit || self.is_name() { self.ident().map(Some) } else { Ok(None) }
    }

    pub fn order_by_expr(&mut self) -> Result<OrderByExpr> {
        let expr = self.expr()?;
        let asc = self.accept_any_kw(&["ASC", "DESC"]).map(|w| w == "ASC");
        Ok(OrderByExpr { expr, options: OrderByOptions { asc, nulls_first: None }, with_fill: None })
    }

    fn limit_value(&mut self) -> Result<Expr> {
        match self.kind() {
            Kind::Placeholder => self.placeholder(),
            Kind::Integer => {
                let token = self.advance();
                Ok(value(Value::Number(self.text(token).to_string(), false)))
            }
            _ => self.fail(),
        }
    }

    /// `LIMIT n`, `LIMIT offset, n`, `LIMIT n OFFSET offset`.
    fn limit_clause(&mut self) -> Result<Option<LimitClause>> {
        if !self.accept_kw("LIMIT") {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.accept(Kind::Comma) {
            return Ok(Some(LimitClause::OffsetCommaLimit { offset: first, limit: self.limit_value()? }));
        }
        let offset = if self.accept_kw("OFFSET") {
            Some(Offset { value: self.limit_value()?, rows: OffsetRows::None })
        } else {
            None
        };
        Ok(Some(LimitClause::LimitOffset { limit: Some(first), offset, limit_by: vec![] }))
    }

    /// ORDER BY and LIMIT of UPDATE and DELETE.
    pub fn order_and_limit(&mut self) -> Result<(Vec<OrderByExpr>, Option<Expr>)> {
        let order_by =
            if self.accept_kws(&["ORDER", "BY"]) { self.comma_separated(Self::order_by_expr)? } else { vec![] };
        let limit = if self.accept_kw("LIMIT") { Some(self.limit_value()?) } else { None };
        Ok((order_by, limit))
    }

    fn locks(&mut self) -> Result<Vec<LockClause>> {
        let mut locks = Vec::new();
        loop {
            if self.accept_kws(&["LOCK", "IN", "SHARE", "MODE"]) {
                locks.push(LockClause { lock_type: LockType::Share, of: None, nonblock: None });
                continue;
            }
            if !self.accept_kw("FOR") {
                return Ok(locks);
            }
            let lock_type = match self.accept_any_kw(&["UPDATE", "SHARE"]) {
                Some("UPDATE") => LockType::Update,
                Some(_) => LockType::Share,
                None => return self.fail(),
            };
            // One clause a table: sqlparser's clause has room for one.
            let of = if self.accept_kw("OF") { self.comma_separated(Self::object_name)? } else { vec![] };
            let nonblock = if self.accept_kw("NOWAIT") {
                Some(NonBlock::Nowait)
            } else if self.accept_kws(&["SKIP", "LOCKED"]) {
                Some(NonBlock::SkipLocked)
            } else {
                None
            };
            if of.is_empty() {
                locks.push(LockClause { lock_type, of: None, nonblock });
            } else {
                let clause = |name| LockClause { lock_type, of: Some(name), nonblock };
                locks.extend(of.into_iter().map(clause));
            }
        }
    }

    // FROM

    pub fn table_with_joins(&mut self) -> Result<TableWithJoins> {
        let relation = self.table_factor()?;
        let joins = self.joins()?;
        Ok(TableWithJoins { relation, joins })
    }

    fn joins(&mut self) -> Result<Vec<Join>> {
        let mut joins = Vec::new();
        loop {
            if joins.len() > MAX_JOINS {
                return Err(too_deep());
            }
            let natural = self.accept_kw("NATURAL");
            let side = self.accept_any_kw(&["LEFT", "RIGHT"]);
            if side.is_some() {
                self.accept_kw("OUTER");
                self.expect_kw("JOIN")?;
            } else {
                match self.accept_any_kw(&["INNER", "CROSS", "JOIN", "STRAIGHT_JOIN"]) {
                    None if natural => return self.fail(),
                    None => return Ok(joins),
                    Some("STRAIGHT_JOIN") => {
                        let relation = self.table_factor()?;
                        let constraint = self.join_constraint(false)?;
                        joins.push(Join {
                            relation,
                            global: false,
                            join_operator: JoinOperator::StraightJoin(constraint),
                        });
                        continue;
                    }
                    Some("JOIN") => {}
                    Some(_) => self.expect_kw("JOIN")?,
                }
            }
            let mut relation = self.table_factor()?;
            // `a JOIN b JOIN c ON … ON …`: the inner join belongs to the right side. Without ON before the next join it is
            // simply left-associative, unless a condition of this one is still to come, which only an outer join demands.
            // A NATURAL join has no condition to come.
            if side.is_some()
                && !natural
                && self.is_any_kw(&["JOIN", "INNER", "LEFT", "RIGHT", "CROSS", "NATURAL", "STRAIGHT_JOIN"])
            {
                let inner = self.nested(Self::joins)?;
                relation = TableFactor::NestedJoin {
                    table_with_joins: Box::new(TableWithJoins { relation, joins: inner }),
                    alias: None,
                };
            }
            let constraint = self.join_constraint(natural)?;
            if side.is_some() && constraint == JoinConstraint::None {
                return self.fail();
            }
            let join_operator = match side {
                Some("LEFT") => JoinOperator::Left(constraint),
                Some(_) => JoinOperator::Right(constraint),
                None => JoinOperator::Inner(constraint),
            };
            joins.push(Join { relation, global: false, join_operator });
        }
    }

    fn join_constraint(&mut self, natural: bool) -> Result<JoinConstraint> {
        if natural {
            return Ok(JoinConstraint::Natural);
        }
        if self.accept_kw("ON") {
            return Ok(JoinConstraint::On(self.expr()?));
        }
        if self.accept_kw("USING") {
            let columns = self.parenthesized(|p| p.comma_separated(Self::ident))?;
            return Ok(JoinConstraint::Using(columns.into_iter().map(ObjectName::from).collect()));
        }
        Ok(JoinConstraint::None)
    }

    fn table_alias(&mut self) -> Result<Option<TableAlias>> {
        let explicit = self.accept_kw("AS");
        if !explicit && !self.is_name() {
            return Ok(None);
        }
        let name = self.ident()?;
        let columns = if explicit && self.kind() == Kind::LParen { self.alias_columns()? } else { vec![] };
        Ok(Some(TableAlias { explicit, name, columns, at: None }))
    }

    pub fn table_factor(&mut self) -> Result<TableFactor> {
        let lateral = self.accept_kw("LATERAL");
        if self.kind() == Kind::LParen {
            if self.is_query_start() && !self.is_parenthesized_join() {
                let subquery = self.nested(|p| p.parenthesized(Self::query))?;
                let alias = self.derived_alias()?;
                return Ok(TableFactor::Derived { lateral, subquery, alias, sample: None });
            }
            let mut tables = self.nested(|p| p.parenthesized(|p| p.comma_separated(Self::table_with_joins)))?;
            let mut first = tables.remove(0);
            // `(a, b)` is a cross join.
            for table in tables {
                first.joins.push(Join {
                    relation: TableFactor::NestedJoin { table_with_joins: Box::new(table), alias: None },
                    global: false,
                    join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
                });
            }
            return Ok(TableFactor::NestedJoin { table_with_joins: Box::new(first), alias: None });
        }
        if self.is_kw("JSON_TABLE") {
            return Err(not_yet("JSON_TABLE"));
        }
        // `{ OJ a LEFT JOIN b ON … }`
        if self.kind() == Kind::LBrace && self.is_kw_at(1, "OJ") {
            self.advance();
            self.advance();
            let inner = self.nested(Self::table_with_joins)?;
            self.expect(Kind::RBrace)?;
            return Ok(TableFactor::NestedJoin { table_with_joins: Box::new(inner), alias: None });
        }
        self.accept(Kind::Dot);
        let name = self.object_name()?;
        let partitions = if self.is_kw("PARTITION") && self.kind_at(1) == Kind::LParen {
            self.advance();
            self.parenthesized(|p| p.comma_separated(Self::ident))?
        } else {
            vec![]
        };
        let alias = self.table_alias()?;
        let index_hints = self.index_hints()?;
        Ok(TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints: vec![],
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        })
    }

    /// `((SELECT …) AS a JOIN b)`: a join whose first table is a subquery. The inner parentheses end before the outer ones do.
    fn is_parenthesized_join(&self) -> bool {
        if self.kind_at(1) != Kind::LParen {
            return false;
        }
        let mut depth = 0;
        for ahead in 1.. {
            match self.kind_at(ahead) {
                Kind::LParen => depth += 1,
                Kind::RParen => {
                    depth -= 1;
                    if depth == 0 {
                        let next = self.peek_at(ahead + 1);
                        let set_operator = ["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "FOR"]
                            .iter()
                            .any(|k| self.is_kw_at(ahead + 1, k));
                        return matches!(next.kind, Kind::Word | Kind::Quoted | Kind::Comma) && !set_operator;
                    }
                }
                Kind::End => return false,
                _ => {}
            }
        }
        false
    }

    fn derived_alias(&mut self) -> Result<Option<TableAlias>> {
        let Some(mut alias) = self.table_alias()? else {
            return Err(MysqlError::new(codes::DERIVED_MUST_HAVE_ALIAS, "Every derived table must have its own alias"));
        };
        if alias.columns.is_empty() && self.kind() == Kind::LParen {
            alias.columns = self.alias_columns()?;
        }
        Ok(Some(alias))
    }

    fn index_hints(&mut self) -> Result<Vec<TableIndexHints>> {
        let mut hints = Vec::new();
        loop {
            let hint_type = match self.accept_any_kw(&["USE", "FORCE", "IGNORE"]) {
                Some("USE") => TableIndexHintType::Use,
                Some("FORCE") => TableIndexHintType::Force,
                Some(_) => TableIndexHintType::Ignore,
                None => return Ok(hints),
            };
            let index_type = match self.accept_any_kw(&["INDEX", "KEY"]) {
                Some("INDEX") => TableIndexType::Index,
                Some(_) => TableIndexType::Key,
                None => return self.fail(),
            };
            let for_clause = if self.accept_kw("FOR") {
                Some(match () {
                    () if self.accept_kw("JOIN") => TableIndexHintForClause::Join,
                    () if self.accept_kws(&["ORDER", "BY"]) => TableIndexHintForClause::OrderBy,
                    () if self.accept_kws(&["GROUP", "BY"]) => TableIndexHintForClause::GroupBy,
                    () => return self.fail(),
                })
            } else {
                None
            };
            let index_names = self.parenthesized(|p| {
                if p.kind() == Kind::RParen {
                    return Ok(vec![]);
                }
                p.comma_separated(|p| {
                    let token = p.peek();
                    // PRIMARY is the one reserved word that names an index.
                    if token.kind == Kind::Word && is_reserved(p.text(token)) && !p.is_kw("PRIMARY") {
                        return p.fail();
                    }
                    p.ident_after_dot()
                })
            })?;
            hints.push(TableIndexHints { hint_type, index_type, for_clause, index_names });
            // Hints may be separated by commas, but so are tables.
            if self.kind() == Kind::Comma && ["USE", "FORCE", "IGNORE"].iter().any(|k| self.is_kw_at(1, k)) {
                self.advance();
            }
        }
    }
}
