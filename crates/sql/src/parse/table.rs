//! CREATE TABLE, CREATE INDEX, and the column and key definitions that ALTER TABLE shares with them.

use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{CreateIndex, CreateTable, PartitionBy, Statement, TableName};
use sqlparser::ast::*;
use sqlparser::tokenizer::Token;

/// A UNIQUE without anything else.
pub(super) fn unique_option() -> UniqueConstraint {
    UniqueConstraint {
        name: None,
        index_name: None,
        index_type_display: KeyOrIndexDisplay::Key,
        index_type: None,
        columns: vec![],
        index_options: vec![],
        characteristics: None,
        nulls_distinct: NullsDistinctOption::None,
    }
}

fn primary_option() -> PrimaryKeyConstraint {
    PrimaryKeyConstraint {
        name: None,
        index_name: None,
        index_type: None,
        columns: vec![],
        index_options: vec![],
        characteristics: None,
    }
}

impl Parser<'_> {
    /// Behind `CREATE [TEMPORARY] TABLE`.
    pub fn create_table(&mut self, temporary: bool) -> Result<Statement> {
        let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
        let name = self.table_name()?;
        let mut table = CreateTable {
            if_not_exists,
            temporary,
            name,
            columns: vec![],
            constraints: vec![],
            options: vec![],
            like: None,
            partition_by: None,
            query: None,
        };
        if self.accept_kw("LIKE") {
            table.like = Some(self.table_name()?);
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.kind() == Kind::LParen && self.is_kw_at(1, "LIKE") {
            table.like = Some(self.parenthesized(|p| {
                p.expect_kw("LIKE")?;
                p.table_name()
            })?);
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.kind() == Kind::LParen && !self.is_query_start() {
            self.parenthesized(|p| {
                p.comma_separated(|p| match p.table_constraint()? {
                    Some(constraint) => {
                        table.constraints.push(constraint);
                        Ok(())
                    }
                    None => {
                        let column = p.column_definition()?;
                        table.columns.push(column);
                        Ok(())
                    }
                })
            })?;
        }
        table.options = self.table_options()?;
        if self.accept_kws(&["PARTITION", "BY"]) {
            table.partition_by = Some(self.partition_by()?);
        }
        let _ = self.accept_any_kw(&["IGNORE", "REPLACE"]);
        let explicit = self.accept_kw("AS");
        if self.is_query_start() {
            table.query = Some(self.query()?);
        } else if explicit || (table.columns.is_empty() && !self.at_end()) {
            return self.fail();
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    // Columns

    pub fn column_definition(&mut self) -> Result<ColumnDef> {
        let name = self.ident()?;
        self.column_body(name)
    }

    /// Type and options behind a column's name.
    pub fn column_body(&mut self, name: Ident) -> Result<ColumnDef> {
        let column_type = self.column_type()?;
        let mut options: Vec<ColumnOptionDef> =
            column_type.options.into_iter().map(|option| ColumnOptionDef { name: None, option }).collect();
        loop {
            let constraint = if self.is_kw("CONSTRAINT") {
                self.advance();
                if self.is_kw("CHECK") { None } else { Some(self.ident()?) }
            } else {
                None
            };
            match self.column_option()? {
                Some(option) => options.push(ColumnOptionDef { name: constraint, option }),
                None if constraint.is_some() => return self.fail(),
                None => break,
            }
        }
        Ok(ColumnDef { name, data_type: column_type.data_type, options })
    }

    fn column_option(&mut self) -> Result<Option<ColumnOption>> {
        Ok(Some(if self.accept_kws(&["NOT", "NULL"]) {
            ColumnOption::NotNull
        } else if self.accept_kw("NULL") {
            ColumnOption::Null
        } else if self.accept_kw("DEFAULT") {
            ColumnOption::Default(self.default_value()?)
        } else if self.accept_kws(&["ON", "UPDATE"]) {
            ColumnOption::OnUpdate(self.expr()?)
        } else if self.accept_kw("AUTO_INCREMENT") || self.accept_kws(&["SERIAL", "DEFAULT", "VALUE"]) {
            ColumnOption::DialectSpecific(vec![Token::make_keyword("AUTO_INCREMENT")])
        } else if self.accept_kw("UNIQUE") {
            self.accept_kw("KEY");
            ColumnOption::Unique(unique_option())
        } else if self.accept_kw("PRIMARY") {
            self.accept_kw("KEY");
            ColumnOption::PrimaryKey(primary_option())
        } else if self.accept_kw("KEY") {
            ColumnOption::PrimaryKey(primary_option())
        } else if self.accept_kw("COMMENT") {
            ColumnOption::Comment(self.string()?)
        } else if self.accept_kw("COLLATE") {
            ColumnOption::Collation(ObjectName::from(vec![Ident::new(self.charset_name()?)]))
        } else if self.accept_kws(&["CHARACTER", "SET"]) || self.accept_kw("CHARSET") {
            ColumnOption::CharacterSet(ObjectName::from(vec![Ident::new(self.charset_name()?)]))
        } else if self.accept_kw("REFERENCES") {
            ColumnOption::ForeignKey(self.references(None, None, vec![])?)
        } else if self.accept_kw("CHECK") {
            ColumnOption::Check(self.check(None)?)
        } else if self.accept_kws(&["GENERATED", "ALWAYS", "AS"]) || self.accept_kw("AS") {
            let expr = self.parenthesized(Self::expr)?;
            let mode = match self.accept_any_kw(&["VIRTUAL", "STORED", "PERSISTENT"]) {
                None => None,
                Some("VIRTUAL") => Some(GeneratedExpressionMode::Virtual),
                Some(_) => Some(GeneratedExpressionMode::Stored),
            };
            ColumnOption::Generated {
                generated_as: GeneratedAs::Always,
                sequence_options: None,
                generation_expr: Some(expr),
                generation_expr_mode: mode,
                generated_keyword: true,
            }
        } else if self.accept_kw("INVISIBLE") {
            ColumnOption::Invisible
        } else if let Some(word) = self.accept_any_kw(&["VISIBLE", "COLUMN_FORMAT", "STORAGE"]) {
            if word != "VISIBLE" {
                self.any_word()?;
            }
            return self.column_option();
        } else if self.accept_kw("SRID") {
            ColumnOption::Srid(Box::new(self.expr()?))
        } else {
            return Ok(None);
        }))
    }

    /// A literal with its sign, CURRENT_TIMESTAMP, or an expression in parentheses.
    pub fn default_value(&mut self) -> Result<Expr> {
        // `DEFAULT 1 NOT NULL` must not read NOT as an operator: a signed primary is all there is.
        let sign = match self.kind() {
            Kind::Minus => Some(UnaryOperator::Minus),
            Kind::Plus => Some(UnaryOperator::Plus),
            _ => None,
        };
        if sign.is_some() {
            self.advance();
        }
        let expr = self.operand()?;
        Ok(match sign {
            Some(op) => Expr::UnaryOp { op, expr: Box::new(expr) },
            None => expr,
        })
    }

    // Keys and constraints

    /// A key or constraint definition, if one stands here.
    pub fn table_constraint(&mut self) -> Result<Option<TableConstraint>> {
        let named = self.accept_kw("CONSTRAINT");
        let name = if named && !self.is_any_kw(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
            Some(self.ident()?)
        } else {
            None
        };
        if self.accept_kw("PRIMARY") {
            self.expect_kw("KEY")?;
            let index_name = if self.is_name() && !self.is_kw("USING") { Some(self.ident()?) } else { None };
            let index_type = self.index_type()?;
            let columns = self.index_columns()?;
            let (later, index_options) = self.index_options()?;
            return Ok(Some(TableConstraint::PrimaryKey(PrimaryKeyConstraint {
                name,
                index_name,
                index_type: later.or(index_type),
                columns,
                index_options,
                characteristics: None,
            })));
        }
        if self.accept_kw("UNIQUE") {
            let _ = self.accept_any_kw(&["KEY", "INDEX"]);
            let (index_name, index_type, columns, index_options) = self.index_body()?;
            return Ok(Some(TableConstraint::Unique(UniqueConstraint {
                name,
                index_name,
                index_type,
                columns,
                index_options,
                ..unique_option()
            })));
        }
        if self.accept_kw("FOREIGN") {
            self.expect_kw("KEY")?;
            self.accept_kws(&["IF", "NOT", "EXISTS"]);
            let index_name = if self.is_name() { Some(self.ident()?) } else { None };
            let columns = self.parenthesized(|p| p.comma_separated(Self::ident))?;
            self.expect_kw("REFERENCES")?;
            return Ok(Some(TableConstraint::ForeignKey(self.references(name, index_name, columns)?)));
        }
        if self.accept_kw("CHECK") {
            return Ok(Some(TableConstraint::Check(self.check(name)?)));
        }
        if named {
            return self.fail();
        }
        if let Some(word) = self.accept_any_kw(&["FULLTEXT", "SPATIAL"]) {
            let _ = self.accept_any_kw(&["KEY", "INDEX"]);
            let (opt_index_name, _, columns, _) = self.index_body()?;
            return Ok(Some(TableConstraint::FulltextOrSpatial(FullTextOrSpatialConstraint {
                fulltext: word == "FULLTEXT",
                index_type_display: KeyOrIndexDisplay::Key,
                opt_index_name,
                columns,
            })));
        }
        if let Some(word) = self.accept_any_kw(&["KEY", "INDEX"]) {
            let (name, index_type, columns, index_options) = self.index_body()?;
            return Ok(Some(TableConstraint::Index(IndexConstraint {
                display_as_key: word == "KEY",
                name,
                index_type,
                columns,
                index_options,
            })));
        }
        Ok(None)
    }

    #[allow(clippy::type_complexity)]
    fn index_body(&mut self) -> Result<(Option<Ident>, Option<IndexType>, Vec<IndexColumn>, Vec<IndexOption>)> {
        self.accept_kws(&["IF", "NOT", "EXISTS"]);
        let name = if self.is_name() { Some(self.ident()?) } else { None };
        let index_type = self.index_type()?;
        let columns = self.index_columns()?;
        let (later, options) = self.index_options()?;
        Ok((name, later.or(index_type), columns, options))
    }

    fn index_type(&mut self) -> Result<Option<IndexType>> {
        if self.accept_any_kw(&["USING", "TYPE"]).is_none() {
            return Ok(None);
        }
        match self.accept_any_kw(&["BTREE", "HASH", "RTREE"]) {
            Some("HASH") => Ok(Some(IndexType::Hash)),
            Some("BTREE") => Ok(Some(IndexType::BTree)),
            Some(_) => Ok(Some(IndexType::Custom(Ident::new("RTREE")))),
            None => self.fail(),
        }
    }

    /// `(a, b(10) DESC, (expression))`. A prefix is a call `b(10)`, as sqlparser has it.
    pub fn index_columns(&mut self) -> Result<Vec<IndexColumn>> {
        self.parenthesized(|p| {
            p.comma_separated(|p| {
                let expr = if p.kind() == Kind::LParen {
                    p.expr()?
                } else {
                    let name = p.ident()?;
                    if p.kind() == Kind::LParen {
                        let length = p.parenthesized(Self::integer)?;
                        let length = super::expression::value(Value::Number(length.to_string(), false));
                        match super::expression::call("", vec![length]) {
                            Expr::Function(call) => {
                                Expr::Function(Function { name: ObjectName::from(vec![name]), ..call })
                            }
                            other => other,
                        }
                    } else {
                        Expr::Identifier(name)
                    }
                };
                let asc = p.accept_any_kw(&["ASC", "DESC"]).map(|w| w == "ASC");
                let options = OrderByOptions { asc, nulls_first: None };
                Ok(IndexColumn { column: OrderByExpr { expr, options, with_fill: None }, operator_class: None })
            })
        })
    }

    fn index_options(&mut self) -> Result<(Option<IndexType>, Vec<IndexOption>)> {
        let mut index_type = None;
        let mut options = Vec::new();
        loop {
            if self.is_any_kw(&["USING", "TYPE"]) {
                index_type = self.index_type()?;
            } else if self.accept_kw("COMMENT") {
                options.push(IndexOption::Comment(self.string()?));
            } else if self.accept_kw("KEY_BLOCK_SIZE") {
                self.accept(Kind::Eq);
                self.integer()?;
            } else if self.accept_kws(&["WITH", "PARSER"]) {
                self.any_word()?;
            } else if self.accept_any_kw(&["VISIBLE", "INVISIBLE"]).is_none() {
                return Ok((index_type, options));
            }
        }
    }

    fn check(&mut self, name: Option<Ident>) -> Result<CheckConstraint> {
        let expr = Box::new(self.parenthesized(Self::expr)?);
        let enforced = if self.accept_kws(&["NOT", "ENFORCED"]) {
            Some(false)
        } else if self.accept_kw("ENFORCED") {
            Some(true)
        } else {
            None
        };
        Ok(CheckConstraint { name, expr, enforced })
    }

    /// Behind REFERENCES.
    fn references(
        &mut self,
        name: Option<Ident>,
        index_name: Option<Ident>,
        columns: Vec<Ident>,
    ) -> Result<ForeignKeyConstraint> {
        let foreign_table = self.object_name()?;
        let referred_columns =
            if self.kind() == Kind::LParen { self.parenthesized(|p| p.comma_separated(Self::ident))? } else { vec![] };
        let (mut match_kind, mut on_delete, mut on_update) = (None, None, None);
        loop {
            if self.accept_kw("MATCH") {
                match_kind = Some(match self.accept_any_kw(&["FULL", "PARTIAL", "SIMPLE"]) {
                    Some("FULL") => ConstraintReferenceMatchKind::Full,
                    Some("PARTIAL") => ConstraintReferenceMatchKind::Partial,
                    Some(_) => ConstraintReferenceMatchKind::Simple,
                    None => return self.fail(),
                });
            } else if self.accept_kws(&["ON", "DELETE"]) {
                on_delete = Some(self.referential_action()?);
            } else if self.is_kw("ON") && self.is_kw_at(1, "UPDATE") {
                self.advance();
                self.advance();
                on_update = Some(self.referential_action()?);
            } else {
                break;
            }
        }
        Ok(ForeignKeyConstraint {
            name,
            index_name,
            columns,
            foreign_table,
            referred_columns,
            on_delete,
            on_update,
            match_kind,
            characteristics: None,
        })
    }

    fn referential_action(&mut self) -> Result<ReferentialAction> {
        Ok(match () {
            () if self.accept_kw("RESTRICT") => ReferentialAction::Restrict,
            () if self.accept_kw("CASCADE") => ReferentialAction::Cascade,
            () if self.accept_kws(&["SET", "NULL"]) => ReferentialAction::SetNull,
            () if self.accept_kws(&["SET", "DEFAULT"]) => ReferentialAction::SetDefault,
            () if self.accept_kws(&["NO", "ACTION"]) => ReferentialAction::NoAction,
            () => return self.fail(),
        })
    }

    // Options

    /// One `NAME [=] value` of a table, with its name in upper case; `None` when something else stands here.
    pub fn table_option(&mut self) -> Result<Option<(String, String)>> {
        self.accept_kw("DEFAULT");
        if self.accept_kws(&["CHARACTER", "SET"]) || self.accept_kw("CHARSET") || self.accept_kws(&["CHAR", "SET"]) {
            self.accept(Kind::Eq);
            return Ok(Some(("CHARSET".into(), self.charset_name()?)));
        }
        if self.accept_kw("COLLATE") {
            self.accept(Kind::Eq);
            return Ok(Some(("COLLATE".into(), self.charset_name()?)));
        }
        if self.accept_any_kw(&["DATA", "INDEX"]).is_some() {
            self.expect_kw("DIRECTORY")?;
            self.accept(Kind::Eq);
            return Ok(Some(("DIRECTORY".into(), self.string()?)));
        }
        const NAMES: &[&str] = &[
            "ENGINE",
            "AUTO_INCREMENT",
            "COMMENT",
            "ROW_FORMAT",
            "AVG_ROW_LENGTH",
            "CHECKSUM",
            "COMPRESSION",
            "CONNECTION",
            "DELAY_KEY_WRITE",
            "ENCRYPTION",
            "INSERT_METHOD",
            "KEY_BLOCK_SIZE",
            "MAX_ROWS",
            "MIN_ROWS",
            "PACK_KEYS",
            "PASSWORD",
            "STATS_AUTO_RECALC",
            "STATS_PERSISTENT",
            "STATS_SAMPLE_PAGES",
            "TABLESPACE",
            "STORAGE",
            "UNION",
            "AUTOEXTEND_SIZE",
            "ENGINE_ATTRIBUTE",
            "SECONDARY_ENGINE",
            "SECONDARY_ENGINE_ATTRIBUTE",
            "TYPE",
            "PAGE_CHECKSUM",
            "TRANSACTIONAL",
            "FULLY_REPLICATED",
        ];
        let Some(name) = self.accept_any_kw(NAMES) else { return Ok(None) };
        self.accept(Kind::Eq);
        let value = match self.kind() {
            Kind::String => self.string()?,
            Kind::Integer | Kind::Word | Kind::Quoted => {
                let token = self.advance();
                super::lexer::unquote_name(self.text(token))
            }
            Kind::LParen => {
                self.skip_parentheses()?;
                String::new()
            }
            _ => return self.fail(),
        };
        Ok(Some((name.to_string(), value)))
    }

    fn table_options(&mut self) -> Result<Vec<(String, String)>> {
        let mut options = Vec::new();
        loop {
            match self.table_option()? {
                Some(option) => options.push(option),
                None => return Ok(options),
            }
            self.accept(Kind::Comma);
        }
    }

    /// Behind PARTITION BY.
    pub fn partition_by(&mut self) -> Result<PartitionBy> {
        let linear = self.accept_kw("LINEAR");
        if self.accept_kw("KEY") {
            if self.accept_kw("ALGORITHM") {
                self.expect(Kind::Eq)?;
                self.integer()?;
            }
            let columns = self
                .parenthesized(|p| if p.kind() == Kind::RParen { Ok(vec![]) } else { p.comma_separated(Self::name) })?;
            let partitions = if self.accept_kw("PARTITIONS") { Some(self.integer()?) } else { None };
            if self.is_kw("SUBPARTITION") {
                self.skip_partitioning();
                return Ok(PartitionBy::Other { kind: "SUBPARTITION BY".into() });
            }
            if self.kind() == Kind::LParen {
                self.skip_parentheses()?;
            }
            return Ok(PartitionBy::Key { columns, partitions });
        }
        match self.accept_any_kw(&["HASH", "RANGE", "LIST", "SYSTEM_TIME"]) {
            Some(kind) => {
                let kind = if linear { format!("LINEAR {kind}") } else { kind.to_string() };
                self.skip_partitioning();
                Ok(PartitionBy::Other { kind })
            }
            None => self.fail(),
        }
    }

    fn skip_partitioning(&mut self) {
        while !self.at_end() && !self.is_any_kw(&["AS", "SELECT", "WITH"]) {
            self.advance();
        }
    }

    /// Behind `CREATE [UNIQUE] INDEX`.
    pub fn create_index(&mut self, unique: bool) -> Result<Statement> {
        let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
        let name = self.name()?;
        let index_type = self.index_type()?;
        self.expect_kw("ON")?;
        let table = self.table_name()?;
        let columns = self.index_columns()?;
        let (later, _) = self.index_options()?;
        self.algorithm_and_lock()?;
        let hash = later.or(index_type) == Some(IndexType::Hash);
        Ok(Statement::CreateIndex(Box::new(CreateIndex { name, unique, hash, table, columns, if_not_exists })))
    }

    /// Behind `DROP INDEX`.
    pub fn drop_index(&mut self) -> Result<Statement> {
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        let name = if self.is_kw("PRIMARY") { self.any_word()? } else { self.name()? };
        self.expect_kw("ON")?;
        let table = self.table_name()?;
        self.algorithm_and_lock()?;
        Ok(Statement::DropIndex { name, table, if_exists })
    }

    /// `ALGORITHM = x` and `LOCK = x`: every change is made online here.
    pub fn algorithm_and_lock(&mut self) -> Result<()> {
        while self.accept_any_kw(&["ALGORITHM", "LOCK"]).is_some() {
            self.accept(Kind::Eq);
            self.any_word()?;
            self.accept(Kind::Comma);
        }
        Ok(())
    }

    pub fn table_names(&mut self) -> Result<Vec<TableName>> {
        self.comma_separated(Self::table_name)
    }
}
