//! CREATE TABLE, CREATE INDEX, and the column and key definitions that ALTER TABLE shares with them.

use super::ast::{
    Check, ColumnDefinition, ColumnOption, DefaultValue, Expr, IndexAlgorithm, KeyDefinition, KeyPart, MatchKind,
    References, ReferentialAction, TableConstraint, TableName, UnaryOp,
};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{CreateIndex, CreateTable, Demands, DuplicateRows, Statement};
use rauk_types::MysqlError;

/// ER_UNKNOWN_ALTER_ALGORITHM, ER_UNKNOWN_ALTER_LOCK.
const UNKNOWN_ALTER_ALGORITHM: u16 = 1800;
const UNKNOWN_ALTER_LOCK: u16 = 1801;

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
            behind: vec![],
            options: vec![],
            like: None,
            partition_by: None,
            query: None,
            duplicates: DuplicateRows::Error,
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
                        table.behind.push(table.columns.len());
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
            table.partition_by = Some(Box::new(self.partition_clause()?));
        }
        let duplicates = self.accept_any_kw(&["IGNORE", "REPLACE"]);
        let explicit = self.accept_kw("AS");
        if self.is_query_start() {
            table.duplicates = match duplicates {
                Some("IGNORE") => DuplicateRows::Ignore,
                Some(_) => DuplicateRows::Replace,
                None => DuplicateRows::Error,
            };
            table.query = Some(Box::new(self.subquery()?));
        } else if explicit || duplicates.is_some() || (table.columns.is_empty() && !self.at_end()) {
            return self.fail();
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    // Columns

    pub fn column_definition(&mut self) -> Result<ColumnDefinition> {
        let name = self.name()?;
        let (column_type, mut options) = self.column_type()?;
        loop {
            if self.accept_kw("CONSTRAINT") {
                let name = if self.is_kw("CHECK") { None } else { Some(self.name()?) };
                self.expect_kw("CHECK")?;
                options.push(ColumnOption::Check(self.check(name)?));
            } else if !self.column_option(&mut options)? {
                return Ok(ColumnDefinition { name, column_type, options });
            }
        }
    }

    /// Reads one option, if one stands here.
    fn column_option(&mut self, options: &mut Vec<ColumnOption>) -> Result<bool> {
        let option = if self.accept_kws(&["NOT", "NULL"]) {
            ColumnOption::NotNull
        } else if self.accept_kw("NULL") {
            ColumnOption::Null
        } else if self.accept_kw("DEFAULT") {
            ColumnOption::Default(self.default_value()?)
        } else if self.accept_kws(&["ON", "UPDATE"]) {
            // What follows it is another option: `ON UPDATE NOW() COLLATE …`.
            ColumnOption::OnUpdate(self.operand()?)
        } else if self.accept_kw("AUTO_INCREMENT") {
            ColumnOption::AutoIncrement
        } else if self.accept_kws(&["SERIAL", "DEFAULT", "VALUE"]) {
            options.extend([ColumnOption::NotNull, ColumnOption::AutoIncrement]);
            ColumnOption::Unique
        } else if self.accept_kw("UNIQUE") {
            self.accept_kw("KEY");
            ColumnOption::Unique
        } else if self.accept_kw("PRIMARY") {
            self.accept_kw("KEY");
            ColumnOption::PrimaryKey
        } else if self.accept_kw("KEY") {
            ColumnOption::PrimaryKey
        } else if self.accept_kw("COMMENT") {
            ColumnOption::Comment(self.string()?)
        } else if self.accept_kw("COLLATE") {
            ColumnOption::Collation(self.charset_name()?)
        } else if self.accept_kws(&["CHARACTER", "SET"]) || self.accept_kw("CHARSET") {
            ColumnOption::Charset(self.charset_name()?)
        } else if self.accept_kw("REFERENCES") {
            ColumnOption::References(self.references()?)
        } else if self.accept_kw("CHECK") {
            ColumnOption::Check(self.check(None)?)
        } else if self.accept_kws(&["GENERATED", "ALWAYS", "AS"]) || self.accept_kw("AS") {
            let expr = self.parenthesized(Self::expr)?;
            let stored =
                matches!(self.accept_any_kw(&["VIRTUAL", "STORED", "PERSISTENT"]), Some("STORED" | "PERSISTENT"));
            ColumnOption::Generated { expr, stored }
        } else if self.accept_kw("INVISIBLE") {
            ColumnOption::Invisible
        } else if self.accept_kw("VISIBLE") {
            return Ok(true);
        } else if self.accept_kw("COLUMN_FORMAT") {
            match self.accept_any_kw(&["FIXED", "DYNAMIC", "DEFAULT"]) {
                Some("DEFAULT") => return Ok(true),
                Some(word) => ColumnOption::Format(word),
                None => return self.fail(),
            }
        } else if self.accept_kw("STORAGE") {
            match self.accept_any_kw(&["DISK", "MEMORY", "DEFAULT"]) {
                Some("DEFAULT") => return Ok(true),
                Some(word) => ColumnOption::Storage(word),
                None => return self.fail(),
            }
        } else if self.accept_kw("SRID") {
            ColumnOption::Srid(self.operand()?)
        } else {
            return Ok(false);
        };
        options.push(option);
        Ok(true)
    }

    /// A literal with its sign, CURRENT_TIMESTAMP, or an expression in parentheses.
    pub fn default_value(&mut self) -> Result<DefaultValue> {
        if self.kind() == Kind::LParen {
            return self.operand().map(DefaultValue::Expr);
        }
        // `DEFAULT 1 NOT NULL` must not read NOT as an operator: a signed primary is all there is.
        let op = match self.kind() {
            Kind::Minus => Some(UnaryOp::Minus),
            Kind::Plus => Some(UnaryOp::Plus),
            _ => None,
        };
        let Some(op) = op else { return self.operand().map(DefaultValue::Plain) };
        self.advance();
        let operand = Box::new(self.operand()?);
        Ok(DefaultValue::Plain(Expr::Unary { op, operand }))
    }

    // Keys and constraints

    /// A key or constraint definition, if one stands here.
    pub fn table_constraint(&mut self) -> Result<Option<TableConstraint>> {
        let named = self.accept_kw("CONSTRAINT");
        let symbol = if named && !self.is_any_kw(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
            Some(self.name()?)
        } else {
            None
        };
        if self.accept_kw("PRIMARY") {
            self.expect_kw("KEY")?;
            let name = if self.is_name() && !self.is_kw("USING") { Some(self.name()?) } else { None };
            return Ok(Some(TableConstraint::PrimaryKey(self.key_body(symbol, name)?)));
        }
        if self.accept_kw("UNIQUE") {
            let _ = self.accept_any_kw(&["KEY", "INDEX"]);
            return Ok(Some(TableConstraint::Unique(self.key(symbol)?)));
        }
        if self.accept_kw("FOREIGN") {
            self.expect_kw("KEY")?;
            self.accept_kws(&["IF", "NOT", "EXISTS"]);
            let index = if self.is_name() { Some(self.name()?) } else { None };
            let columns = self.column_list()?;
            self.expect_kw("REFERENCES")?;
            let references = self.references()?;
            return Ok(Some(TableConstraint::ForeignKey { symbol, index, columns, references }));
        }
        if self.accept_kw("CHECK") {
            return Ok(Some(TableConstraint::Check(self.check(symbol)?)));
        }
        if named {
            return self.fail();
        }
        if let Some(word) = self.accept_any_kw(&["FULLTEXT", "SPATIAL"]) {
            let _ = self.accept_any_kw(&["KEY", "INDEX"]);
            let key = self.key(None)?;
            return Ok(Some(if word == "FULLTEXT" {
                TableConstraint::FullText(key)
            } else {
                TableConstraint::Spatial(key)
            }));
        }
        if self.accept_any_kw(&["KEY", "INDEX"]).is_some() {
            return Ok(Some(TableConstraint::Index(self.key(None)?)));
        }
        Ok(None)
    }

    /// Behind KEY: name and body.
    fn key(&mut self, symbol: Option<String>) -> Result<KeyDefinition> {
        self.accept_kws(&["IF", "NOT", "EXISTS"]);
        let name = if self.is_name() { Some(self.name()?) } else { None };
        self.key_body(symbol, name)
    }

    /// `[USING …] (parts) [options]`
    fn key_body(&mut self, symbol: Option<String>, name: Option<String>) -> Result<KeyDefinition> {
        let before = self.index_algorithm()?;
        let parts = self.key_parts()?;
        let mut key = KeyDefinition { symbol, name, parts, ..self.index_options()? };
        key.algorithm = key.algorithm.or(before);
        Ok(key)
    }

    fn index_algorithm(&mut self) -> Result<Option<IndexAlgorithm>> {
        if self.accept_any_kw(&["USING", "TYPE"]).is_none() {
            return Ok(None);
        }
        match self.accept_any_kw(&["BTREE", "HASH", "RTREE"]) {
            Some("HASH") => Ok(Some(IndexAlgorithm::Hash)),
            Some("BTREE") => Ok(Some(IndexAlgorithm::BTree)),
            Some(_) => Ok(Some(IndexAlgorithm::RTree)),
            None => self.fail(),
        }
    }

    /// `(a, b(10) DESC, (expression))`
    fn key_parts(&mut self) -> Result<Vec<KeyPart>> {
        self.parenthesized(|p| p.comma_separated(Self::key_part))
    }

    fn key_part(&mut self) -> Result<KeyPart> {
        if self.kind() == Kind::LParen {
            let expr = self.parenthesized(Self::expr)?;
            return Ok(KeyPart::Expr { expr, descending: self.descending() });
        }
        let name = self.name()?;
        let prefix = if self.kind() == Kind::LParen { Some(self.parenthesized(Self::integer)?) } else { None };
        Ok(KeyPart::Column { name, prefix, descending: self.descending() })
    }

    fn descending(&mut self) -> bool {
        self.accept_any_kw(&["ASC", "DESC"]) == Some("DESC")
    }

    /// What follows the parts of a key; the rest of the key is empty.
    fn index_options(&mut self) -> Result<KeyDefinition> {
        let mut options = KeyDefinition::default();
        loop {
            if self.is_any_kw(&["USING", "TYPE"]) {
                options.algorithm = self.index_algorithm()?;
            } else if self.accept_kw("COMMENT") {
                options.comment = Some(self.string()?);
            } else if self.accept_kw("KEY_BLOCK_SIZE") {
                self.accept(Kind::Eq);
                options.block_size = self.integer()?;
            } else if self.accept_kws(&["WITH", "PARSER"]) {
                options.parser = Some(self.name()?);
            } else if let Some(word) = self.accept_any_kw(&["VISIBLE", "INVISIBLE"]) {
                options.invisible = word == "INVISIBLE";
            } else if self.accept_kw("GLOBAL") {
                options.global = true;
            } else {
                return Ok(options);
            }
        }
    }

    /// Behind CHECK.
    fn check(&mut self, name: Option<String>) -> Result<Check> {
        let expr = self.parenthesized(Self::expr)?;
        let enforced = !self.accept_kws(&["NOT", "ENFORCED"]);
        if enforced {
            self.accept_kw("ENFORCED");
        }
        Ok(Check { name, expr, enforced })
    }

    /// Behind REFERENCES.
    fn references(&mut self) -> Result<References> {
        let table = self.table_name()?;
        let columns = if self.kind() == Kind::LParen { self.column_list()? } else { vec![] };
        let (mut match_kind, mut on_delete, mut on_update) = (None, None, None);
        loop {
            if self.accept_kw("MATCH") {
                match_kind = Some(match self.accept_any_kw(&["FULL", "PARTIAL", "SIMPLE"]) {
                    Some("FULL") => MatchKind::Full,
                    Some("PARTIAL") => MatchKind::Partial,
                    Some(_) => MatchKind::Simple,
                    None => return self.fail(),
                });
            } else if self.accept_kws(&["ON", "DELETE"]) {
                on_delete = Some(self.referential_action()?);
            } else if self.accept_kws(&["ON", "UPDATE"]) {
                on_update = Some(self.referential_action()?);
            } else {
                return Ok(References { table, columns, match_kind, on_delete, on_update });
            }
        }
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
        if let Some(of) = self.accept_any_kw(&["DATA", "INDEX"]) {
            self.expect_kw("DIRECTORY")?;
            self.accept(Kind::Eq);
            return Ok(Some((format!("{of} DIRECTORY"), self.string()?)));
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

    /// Behind `CREATE [UNIQUE] INDEX`.
    pub fn create_index(&mut self, constraint: fn(KeyDefinition) -> TableConstraint) -> Result<Statement> {
        let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
        let name = self.name()?;
        let before = self.index_algorithm()?;
        self.expect_kw("ON")?;
        let table = self.table_name()?;
        let parts = self.key_parts()?;
        let mut key = KeyDefinition { name: Some(name), parts, ..self.index_options()? };
        key.algorithm = key.algorithm.or(before);
        let key = constraint(key);
        let demands = self.demands()?;
        Ok(Statement::CreateIndex(Box::new(CreateIndex { key, table, if_not_exists, demands })))
    }

    /// Behind `DROP INDEX`.
    pub fn drop_index(&mut self) -> Result<Statement> {
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        let name = if self.is_kw("PRIMARY") { self.any_word()? } else { self.name()? };
        self.expect_kw("ON")?;
        let table = self.table_name()?;
        let demands = self.demands()?;
        Ok(Statement::DropIndex { name, table, if_exists, demands })
    }

    /// `ALGORITHM = x` and `LOCK = x` of CREATE INDEX and DROP INDEX.
    fn demands(&mut self) -> Result<Demands> {
        let mut demands = Demands::default();
        while self.demand(&mut demands)? {}
        Ok(demands)
    }

    /// One of them, where one stands. Error 1800 or 1801 for a word that says nothing.
    pub fn demand(&mut self, demands: &mut Demands) -> Result<bool> {
        let Some(clause) = self.accept_any_kw(&["ALGORITHM", "LOCK"]) else { return Ok(false) };
        self.accept(Kind::Eq);
        let word = self.any_word()?;
        if clause == "LOCK" {
            let known = |word| ["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"].into_iter().find(|known| *known == word);
            let unknown = || MysqlError::new(UNKNOWN_ALTER_LOCK, format!("Unknown LOCK type '{word}'"));
            demands.lock = Some(known(word.to_ascii_uppercase().as_str()).ok_or_else(unknown)?);
        } else {
            let known = |word| ["DEFAULT", "INSTANT", "INPLACE", "COPY"].into_iter().find(|known| *known == word);
            let unknown = || MysqlError::new(UNKNOWN_ALTER_ALGORITHM, format!("Unknown ALGORITHM '{word}'"));
            demands.algorithm = Some(known(word.to_ascii_uppercase().as_str()).ok_or_else(unknown)?);
        }
        Ok(true)
    }

    pub fn table_names(&mut self) -> Result<Vec<TableName>> {
        self.comma_separated(Self::table_name)
    }
}
